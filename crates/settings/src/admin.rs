//! Where the operator's listener is, and who may reach it.

use crate::Faults;
use crate::read::Values;
use crate::shape::socket_of;
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Who may reach the operator's listener, beside its address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AdminAccess {
    /// The Unix socket it listens on, in place of an address.
    pub socket: Option<PathBuf>,
    /// The file of the token.
    pub token_file: Option<PathBuf>,
    /// Paths that are answered to everybody.
    pub public: Vec<String>,
    /// How it speaks TLS; `None`: it does not.
    pub tls: Option<AdminTls>,
}

/// TLS of the operator's listener.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AdminTls {
    /// The certificate chain, PEM.
    pub cert: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
    /// Who signs the certificates of clients, PEM; `None`: they need none.
    pub client_ca: Option<PathBuf>,
}

/// Returns the address in `[admin]`, if there is one, and who may reach it.
pub(crate) fn read(admin: &Values, tls: Option<&Values>) -> (Option<SocketAddr>, AdminAccess) {
    let listen = admin.text("listen");
    let tls = tls.and_then(|tls| {
        let (cert, key) = (tls.given_path("cert")?, tls.given_path("key")?);
        Some(AdminTls { cert, key, client_ca: tls.given_path("client_ca") })
    });
    let access = AdminAccess {
        socket: socket_of(listen).map(Into::into),
        token_file: admin.given_path("token_file"),
        public: admin.texts("public"),
        tls,
    };
    (listen.parse().ok(), access)
}

impl AdminAccess {
    /// Returns whether somebody must show who they are.
    pub fn asks(&self) -> bool {
        self.token_file.is_some() || self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some())
    }

    /// Notes an address that anybody may reach, where nothing says who may.
    pub(crate) fn check(&self, listen: Option<SocketAddr>, faults: &mut Faults) {
        let Some(address) = listen.filter(|address| !address.ip().is_loopback()) else { return };
        if !self.asks() && self.public.is_empty() {
            faults.value(
                "admin.listen",
                format!("\"{address}\""),
                "on loopback or a Unix socket, as nothing says who may reach it: set admin.token_file or admin.tls.client_ca, or \
                 admin.public = [\"/metrics\", \"/healthz\", \"/readyz\"] to answer only these beyond loopback",
            );
        }
    }

    /// Notes files that cannot be read.
    pub(crate) fn check_files(&self, faults: &mut Faults) {
        let tls = self.tls.as_ref();
        let named = [
            ("admin.token_file", self.token_file.as_ref()),
            ("admin.tls.cert", tls.map(|tls| &tls.cert)),
            ("admin.tls.key", tls.map(|tls| &tls.key)),
            ("admin.tls.client_ca", tls.and_then(|tls| tls.client_ca.as_ref())),
        ];
        for (key, path) in named.into_iter().filter_map(|(key, path)| Some((key, path?))) {
            if let Err(error) = File::open(path) {
                let seen = format!("\"{}\"", path.display());
                faults.value(key, seen, format!("a file that can be read ({error})"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Settings;

    #[test]
    fn beyond_loopback_somebody_must_say_who_may_reach_it() {
        for right in [
            "listen = \"127.0.0.1:8001\"",
            "listen = \"[::1]:8001\"",
            "listen = \"unix:/run/suimon/admin.sock\"",
            "listen = \"off\"",
            "listen = \"0.0.0.0:8001\"\npublic = [\"/metrics\"]",
            "listen = \"0.0.0.0:8001\"\ntoken_file = \"/t\"",
            "listen = \"0.0.0.0:8001\"\n[admin.tls]\ncert = \"/c\"\nkey = \"/k\"\nclient_ca = \"/a\"",
        ] {
            let read = Settings::parse("t", &format!("[admin]\n{right}\n"));
            assert!(read.is_ok(), "{right}: {}", read.unwrap_err());
        }
        for (wrong, why) in [
            ("listen = \"0.0.0.0:8001\"", "set admin.token_file or admin.tls.client_ca"),
            (
                "listen = \"10.0.0.1:8001\"\n[admin.tls]\ncert = \"/c\"\nkey = \"/k\"",
                "set admin.token_file or admin.tls.client_ca",
            ),
            ("listen = \"unix:admin.sock\"", "unix: and the path of a socket"),
            ("public = [\"/api/state\"]", "\"/metrics\", \"/healthz\" or \"/readyz\""),
        ] {
            let told = Settings::parse("t", &format!("[admin]\n{wrong}\n")).unwrap_err().to_string();
            assert!(told.contains(why), "{wrong}: {told}");
        }
    }
}

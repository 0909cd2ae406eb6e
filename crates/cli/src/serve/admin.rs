//! The operator's listener: where it is, and who may reach it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use suimon_admin::{Access, AccessParams, AdminListener, Tls, TlsFiles, UnixBeside};
use suimon_settings::{AdminAccess, Settings};
use tokio::net::TcpListener;

/// What proves who may reach the listener; read again at each reload. Clones are of the same.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(super) access: Arc<Access>,
    tls: Option<Arc<Tls>>,
}

/// A listener that is bound, and not open to operators yet if another process has its path.
pub(super) enum Bound {
    /// With the address that it really has.
    Address(AdminListener, Option<SocketAddr>),
    /// With the path that it is for.
    Unix(UnixBeside, PathBuf),
}

impl Bound {
    /// Returns the address that it really has, if it has one.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Bound::Address(_, address) => *address,
            Bound::Unix(..) => None,
        }
    }

    /// Opens it to operators: this process is the gateway now.
    pub(super) fn open(self) -> Result<AdminListener, String> {
        match self {
            Bound::Address(listener, _) => Ok(listener),
            Bound::Unix(bound, path) => bound.put_in_place().map_err(|error| explain_socket(&path, &error)),
        }
    }
}

/// Credentials as their files have them now.
pub(super) struct Renewed {
    token: Option<suimon_admin::Token>,
    tls: Option<suimon_admin::TlsInUse>,
}

impl Credentials {
    /// Returns the credentials that the settings name.
    ///
    /// # Errors
    /// A sentence about a file that cannot be used.
    pub(crate) fn load(settings: &Settings) -> Result<Credentials, String> {
        let AdminAccess { token_file, public, tls, .. } = &settings.admin_access;
        let trusts_loopback = !settings.admin_access.asks();
        let params = AccessParams { token_file: token_file.clone(), public: public.clone(), trusts_loopback };
        let access = Arc::new(Access::load(params)?);
        let files =
            tls.clone().map(|tls| TlsFiles { cert: tls.cert, key: tls.key, client_ca: tls.client_ca });
        let tls = files.map(Tls::load).transpose()?.map(Arc::new);
        Ok(Credentials { access, tls })
    }

    /// Reads the files again.
    ///
    /// # Errors
    /// A sentence about a file that cannot be used.
    pub(super) fn read(&self) -> Result<Renewed, String> {
        let tls = self.tls.as_ref().map(|tls| tls.read()).transpose()?;
        Ok(Renewed { token: self.access.read_token()?, tls })
    }

    /// Goes by what was read from now on.
    pub(super) fn adopt(&self, Renewed { token, tls }: Renewed) {
        self.access.use_token(token);
        if let Some((own, tls)) = self.tls.as_ref().zip(tls) {
            own.adopt(tls);
        }
    }

    /// Binds the listener that the settings name, or says why there is none. `given`: it is open already. `takes_over`: whoever listens on the socket now hands
    /// over.
    pub(super) async fn listen(
        &self,
        settings: &Settings,
        given: Option<std::net::TcpListener>,
        takes_over: bool,
    ) -> Result<Option<Bound>, String> {
        if let Some(path) = &settings.admin_access.socket {
            let bound = UnixBeside::bind(path, takes_over).map_err(|error| explain_socket(path, &error))?;
            return Ok(Some(Bound::Unix(bound, path.clone())));
        }
        let Some(address) = settings.admin_listen else { return Ok(None) };
        let listener = match given {
            Some(listener) => adopted(listener).map_err(|error| {
                format!("the socket for operators that was passed cannot be used: {error}")
            })?,
            None => TcpListener::bind(address).await.map_err(|error| explain(address, &error))?,
        };
        let own = listener.local_addr().ok();
        let listener = match &self.tls {
            None => listener.into(),
            Some(tls) => AdminListener::with_tls(listener, Arc::clone(tls)),
        };
        Ok(Some(Bound::Address(listener, own)))
    }

    /// Warns of a token that travels in clear.
    pub(super) fn warn(&self, settings: &Settings) {
        let beyond = settings.admin_listen.filter(|address| !address.ip().is_loopback());
        if let Some(address) = beyond.filter(|_| self.tls.is_none())
            && settings.admin_access.token_file.is_some()
        {
            tracing::warn!(
                "the admin listener at {address} has a token but no TLS: whoever sees the traffic can read it; set [admin.tls], or keep it in a network of your own"
            );
        }
    }
}

fn adopted(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

fn explain(address: SocketAddr, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => "another program has the port, perhaps another gateway",
        io::ErrorKind::AddrNotAvailable => "the address is not one of this machine's",
        _ => "it cannot be had",
    };
    format!(
        "the operator's listener cannot listen on {address}: {error}; {remedy}: name another with --admin or admin.listen, or switch it off with --admin off"
    )
}

fn explain_socket(path: &Path, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => "another gateway listens there, or something that is no socket is there",
        io::ErrorKind::NotFound => "its folder is not there",
        _ => "it cannot be had",
    };
    format!(
        "the operator's listener cannot listen on unix:{}: {error}; {remedy}: name another with --admin or admin.listen, or switch it off with --admin off",
        path.display()
    )
}

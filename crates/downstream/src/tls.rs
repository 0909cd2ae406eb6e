//! The certificates a TLS listener shows, read again when their files change.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use suimon_params::{ListenTls, Site, SiteMatch, SiteTable};
use tokio_rustls::TlsAcceptor;

/// The certificates in use.
#[derive(Debug)]
pub struct Certificate {
    files: Vec<Pair>,
    reload_every: Duration,
    /// By file.
    in_use: Mutex<InUse>,
    config: RwLock<Arc<ServerConfig>>,
}

/// The files of one certificate.
#[derive(Debug)]
struct Pair {
    cert: PathBuf,
    key: PathBuf,
    /// The site, by its place among all but the main one, whose it is.
    site: Option<usize>,
}

#[derive(Debug)]
struct InUse {
    keys: Vec<Arc<CertifiedKey>>,
    /// By site beside the main one: its hosts.
    hosts: Vec<Vec<String>>,
}

/// What tells one state of two files from another.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Certificate {
    /// Returns the certificate of the files, and those of the sites that have one, or a sentence about
    /// what is wrong with them.
    pub fn load(files: &ListenTls, sites: &[Site]) -> Result<Self, String> {
        let of_sites = sites.iter().enumerate().filter_map(|(index, site)| {
            let of_site = site.certificate.as_ref()?;
            Some(Pair { cert: of_site.cert.clone(), key: of_site.key.clone(), site: Some(index) })
        });
        let first = Pair { cert: files.cert.clone(), key: files.key.clone(), site: None };
        let pairs: Vec<_> = std::iter::once(first).chain(of_sites).collect();
        let keys = pairs.iter().map(Pair::read).collect::<Result<_, _>>()?;
        let in_use = InUse { keys, hosts: sites.iter().map(|site| site.takes.hosts.clone()).collect() };
        let config = RwLock::new(in_use.config(&pairs)?);
        let in_use = Mutex::new(in_use);
        Ok(Certificate { files: pairs, reload_every: files.reload_every, in_use, config })
    }

    /// Returns who accepts a connection with the certificates in use now.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Chooses certificates by these hosts from now on: by site beside the main one.
    pub fn serve_hosts(&self, takes: &[SiteMatch]) {
        self.change(|in_use| in_use.hosts = takes.iter().map(|site| site.hosts.clone()).collect());
    }

    /// Looks at the files from time to time. Never returns.
    pub async fn watch(&self) {
        let every = self.reload_every.max(Duration::from_millis(10));
        let mut seen: Vec<_> = self.files.iter().map(Pair::stamp).collect();
        loop {
            tokio::time::sleep(every).await;
            for (place, (pair, seen)) in self.files.iter().zip(&mut seen).enumerate() {
                let stamp = pair.stamp();
                if stamp == *seen {
                    continue;
                }
                *seen = stamp;
                match pair.read() {
                    Ok(key) => {
                        self.change(|in_use| in_use.keys[place] = key);
                        tracing::info!(cert = %pair.cert.display(), "certificate reloaded");
                    }
                    // Half-written files are common: the second file's change brings us back here.
                    Err(error) => tracing::warn!("the current certificate is kept: {error}"),
                }
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut InUse)) {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut in_use);
        match in_use.config(&self.files) {
            Ok(config) => *self.config.write().unwrap_or_else(PoisonError::into_inner) = config,
            Err(error) => tracing::warn!("the current certificate is kept: {error}"),
        }
    }
}

impl Pair {
    fn stamp(&self) -> Stamp {
        let of = |path: &Path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        [of(&self.cert), of(&self.key)]
    }

    fn read(&self) -> Result<Arc<CertifiedKey>, String> {
        let (cert, key) = (self.cert.display(), self.key.display());
        let chain = CertificateDer::pem_file_iter(&self.cert);
        let chain = chain
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| format!("certificate file {cert}: {error}; it must hold certificates in PEM"))?;
        if chain.is_empty() {
            return Err(format!(
                "certificate file {cert}: holds no certificate; it must hold certificates in PEM"
            ));
        }
        let private = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| format!("key file {key}: {error}; it must hold one private key in PEM"))?;
        CertifiedKey::from_der(chain, private, &rustls::crypto::ring::default_provider())
            .map(Arc::new)
            .map_err(|error| format!("certificate {cert} with key {key}: {error}; do they belong together?"))
    }
}

impl InUse {
    fn config(&self, files: &[Pair]) -> Result<Arc<ServerConfig>, String> {
        let hosts =
            |pair: &Pair| pair.site.and_then(|site| self.hosts.get(site)).cloned().unwrap_or_default();
        let takes = |pair: &Pair| SiteMatch { hosts: hosts(pair), paths: Vec::new() };
        let table = SiteTable::new(&files.iter().skip(1).map(takes).collect::<Vec<_>>());
        let by_host = ByHost { keys: self.keys.clone(), table };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS: {error}"))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(by_host));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if let Ok(ticketer) = rustls::crypto::ring::Ticketer::new() {
            config.ticketer = ticketer;
        }
        Ok(Arc::new(config))
    }
}

/// Chooses the certificate by the host that a client asks for (SNI, RFC 6066, 3).
#[derive(Debug)]
struct ByHost {
    /// By site of the table.
    keys: Vec<Arc<CertifiedKey>>,
    table: SiteTable,
}

impl ResolvesServerCert for ByHost {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.keys.get(self.table.site_of(hello.server_name(), "/")?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Writes a fresh certificate and its key into `folder`.
    fn write(files: &ListenTls) {
        let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
        fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        fs::write(&files.cert, made.cert.pem()).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_half_written_certificate_changes_nothing_and_a_whole_one_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let reload_every = Duration::from_secs(5);
        let files = ListenTls {
            cert: folder.path().join("cert.pem"),
            key: folder.path().join("key.pem"),
            reload_every,
            address: "127.0.0.1:0".parse().unwrap(),
        };
        write(&files);
        let certificate = Arc::new(Certificate::load(&files, &[]).unwrap());
        let in_use = || Arc::clone(&certificate.config.read().unwrap());
        let first = in_use();
        let watching = tokio::spawn({
            let certificate = Arc::clone(&certificate);
            async move { certificate.watch().await }
        });

        fs::write(&files.cert, "half a certifica").unwrap();
        tokio::time::sleep(3 * reload_every).await;
        assert!(Arc::ptr_eq(&in_use(), &first), "it was looked at, and not taken");

        write(&files);
        tokio::time::sleep(3 * reload_every).await;
        assert!(!Arc::ptr_eq(&in_use(), &first));
        watching.abort();
    }
}

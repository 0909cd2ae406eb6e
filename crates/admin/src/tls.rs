//! TLS of the operator's listener, with certificates of clients where they are asked for.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::TlsAcceptor;

/// The files that it is made of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TlsFiles {
    /// The certificate chain, PEM, the server's own first.
    pub cert: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
    /// Who signs the certificates of clients, PEM; `None`: they need none.
    pub client_ca: Option<PathBuf>,
}

/// What the files held when they were read.
pub struct TlsInUse(Arc<ServerConfig>);

/// TLS as it is spoken now.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Returns TLS with what the files hold.
    ///
    /// # Errors
    /// A sentence about a file that cannot be used.
    pub fn load(files: TlsFiles) -> Result<Tls, String> {
        let config = RwLock::new(read(&files)?);
        Ok(Tls { files, config })
    }

    /// Returns what the files hold now, to be used by [`Tls::adopt`].
    ///
    /// # Errors
    /// A sentence about a file that cannot be used.
    pub fn read(&self) -> Result<TlsInUse, String> {
        read(&self.files).map(TlsInUse)
    }

    /// Speaks TLS so from the next connection on.
    pub fn adopt(&self, TlsInUse(config): TlsInUse) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
    let wrong = |key: &str, path: &Path, why: &dyn std::fmt::Display| {
        format!("admin.tls.{key}: {}: {why}", path.display())
    };
    let chain = certificates("cert", &files.cert)?;
    let private = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| {
        wrong("key", &files.key, &format!("{error}; it must hold one private key in PEM"))
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates("client_ca", path)? {
                roots.add(certificate).map_err(|error| wrong("client_ca", path, &error))?;
            }
            // Who shows none may still show the token, or read what is public.
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| wrong("client_ca", path, &error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, private).map_err(|error| {
        wrong(
            "cert",
            &files.cert,
            &format!("with key {}: {error}; do they belong together?", files.key.display()),
        )
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(format!("admin.tls.{key}: {}: holds no certificate in PEM", path.display())),
        Err(error) => {
            Err(format!("admin.tls.{key}: {}: {error}; it must hold certificates in PEM", path.display()))
        }
    }
}

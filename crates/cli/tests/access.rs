//! Who may reach the admin listener: a token, client certificates, a Unix socket, and what is public.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

mod common;

use common::{Backend, Gateway, LONG, Running, file, get, run, suimon};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use suimon_process::Signal;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const NEXT: &str = "ffffffffffffffffffffffffffffffffffff";

/// Writes a token as a file that others cannot read.
fn token(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = file(folder, name, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// Returns status and whole answer of a request with these lines in its head.
fn ask_over(mut stream: impl Read + Write, request: &str, head: &str, body: &str) -> (u16, String) {
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    // TLS may end without its own goodbye.
    let _ = stream.read_to_string(&mut answer);
    (answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), answer)
}

fn ask(address: SocketAddr, request: &str, head: &str, body: &str) -> (u16, String) {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    ask_over(stream, request, head, body)
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

const JSON: &str = "Content-Type: application/json\r\n";
const OPEN: &str = r#"{"gate":"open"}"#;

#[test]
fn with_a_token_all_but_what_is_public_needs_it() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let path = token(&folder, "token", TOKEN);
    let settings = file(
        &folder,
        "suimon.toml",
        &format!("[admin]\ntoken_file = \"{path}\"\npublic = [\"/metrics\", \"/healthz\"]\n"),
    );
    let gateway = Gateway::start(&["--to", &backend.url(), "--config", &settings, "--log", "trace"]);
    let admin = gateway.admin;
    for path in ["/", "/api/state", "/api/config", "/api/override", "/readyz"] {
        let (status, answer) = ask(admin, &format!("GET {path}"), "", "");
        assert_eq!(status, 401, "{path}: {answer}");
        assert!(answer.to_lowercase().contains("www-authenticate: bearer"), "{answer}");
        assert_eq!(ask(admin, &format!("GET {path}"), &bearer(TOKEN), "").0, 200, "{path}");
    }
    assert_eq!((get(admin, "/metrics").0, get(admin, "/healthz").0), (200, 200));
    assert_eq!(ask(admin, "POST /api/override", JSON, OPEN).0, 401);
    let began = Instant::now();
    let (status, answer) = ask(admin, "POST /api/override", &(bearer(NEXT) + JSON), OPEN);
    assert_eq!(status, 401, "{answer}");
    assert!(began.elapsed().as_millis() >= 400, "guesses are slow: {:?}", began.elapsed());
    let said = gateway.process.wait_err("refused a wrong token from 127.0.0.1");
    assert!(!said.contains(NEXT), "{said}");
    let metrics = get(admin, "/metrics").1;
    for line in [
        "suimon_admin_refused_requests_total{reason=\"no_token\"} 6",
        "suimon_admin_refused_requests_total{reason=\"wrong_token\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert_eq!(ask(admin, "POST /api/override", &(bearer(TOKEN) + JSON), OPEN).0, 200);
    let page = |origin: &str, site: &str| {
        let head = format!("{}{JSON}Origin: {origin}\r\nSec-Fetch-Site: {site}\r\n", bearer(TOKEN));
        ask(admin, "POST /api/override", &head, OPEN).0
    };
    assert_eq!(page("http://localhost", "same-origin"), 200, "our own page");
    assert_eq!(page("http://evil.example", "cross-site"), 403);
    assert_eq!(page("http://localhost:3000", "same-site"), 403);

    // The tool, with the file.
    let url = gateway.admin_url();
    let status = run(&["status", "--admin", &url, "--token-file", &path]);
    assert_eq!(status.code, Some(0), "{status:?}");
    let status = run(&["status", "--admin", &url]);
    assert_eq!(status.code, Some(1), "{status:?}");
    assert!(status.err.contains("a token is needed") && status.err.contains("--token-file"), "{status:?}");
    let none = run(&["override", "list", "--admin", &url, "--token-file", "/no/such"]);
    assert_eq!(none.code, Some(2), "{none:?}");

    // Another token counts from the reload on; one that cannot be used changes nothing.
    fs::write(&path, "short").unwrap();
    gateway.process.signal(Signal::HUP);
    let said = gateway.process.wait_err("settings not reloaded");
    assert!(said.contains("at least 32"), "{said}");
    assert_eq!(ask(admin, "GET /api/state", &bearer(TOKEN), "").0, 200);
    fs::write(&path, NEXT).unwrap();
    gateway.process.signal(Signal::HUP);
    gateway.process.wait_err("settings reloaded");
    assert_eq!(ask(admin, "GET /api/state", &bearer(TOKEN), "").0, 401);
    assert_eq!(ask(admin, "GET /api/state", &bearer(NEXT), "").0, 200);
    let log = gateway.process.complaints();
    assert!(log.contains("wrong token") && log.contains("settings reloaded"), "{log}");
    assert!(!log.contains(TOKEN) && !log.contains(NEXT), "and no token");
    gateway.process.finish();
}

#[test]
fn beyond_loopback_a_gateway_does_not_start_without_saying_who_may_reach_it() {
    let folder = tempfile::tempdir().unwrap();
    let settings = file(&folder, "suimon.toml", "[admin]\nlisten = \"0.0.0.0:0\"\n");
    for args in [
        &["serve", "--to", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--config", &settings][..],
        &["serve", "--to", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0"],
        &["check", &settings],
    ] {
        let ran = run(args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let told = ran.out + &ran.err;
        for part in ["admin.listen", "admin.token_file", "admin.tls.client_ca", "admin.public"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
    let path = file(&folder, "token", TOKEN);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let settings = file(&folder, "t.toml", &format!("[admin]\ntoken_file = \"{path}\"\n"));
    let ran = run(&["check", &settings]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.out.contains("chmod o-rwx"), "{ran:?}");
}

/// Returns an address of this machine that is not loopback, if there is one.
fn elsewhere() -> Option<std::net::IpAddr> {
    // Nothing is sent: the system says which address it would send from.
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
}

#[test]
fn what_is_public_is_answered_beyond_loopback_and_the_rest_on_loopback_alone() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let settings =
        file(&folder, "suimon.toml", "[admin]\npublic = [\"/metrics\", \"/healthz\", \"/readyz\"]\n");
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "0.0.0.0:0",
        "--to",
        &backend.url(),
        "--config",
        &settings,
    ];
    let gateway = Gateway::of(suimon(&arguments));
    let near = SocketAddr::from(([127, 0, 0, 1], gateway.admin.port()));
    assert_eq!((get(near, "/api/state").0, get(near, "/metrics").0), (200, 200));
    // A machine without a network has nobody elsewhere.
    if let Some(address) = elsewhere() {
        let far = SocketAddr::new(address, gateway.admin.port());
        for path in ["/metrics", "/healthz", "/readyz"] {
            assert_eq!(get(far, path).0, 200, "{path}");
        }
        for path in ["/", "/api/state", "/api/config"] {
            let (status, answer) = get(far, path);
            assert_eq!(status, 403, "{path}: {answer}");
            assert!(answer.contains("on the gateway's machine only"), "{answer}");
        }
        assert_eq!(ask(far, "POST /api/override", JSON, OPEN).0, 403);
    }
    gateway.process.finish();
}

/// Starts a gateway whose admin listener is a socket.
fn on_socket(backend: &Backend, path: &Path) -> Running {
    let at = format!("unix:{}", path.display());
    let process =
        Running::of(suimon(&["serve", "--listen", "127.0.0.1:0", "--admin", &at, "--to", &backend.url()]));
    process.wait_out(&at);
    process
}

#[test]
fn whoever_can_open_the_socket_may_do_everything() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let path = folder.path().join("admin.sock");
    let process = on_socket(&backend, &path);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o660);
    let at = format!("unix:{}", path.display());
    assert_eq!(run(&["status", "--admin", &at]).code, Some(0));
    let ran = run(&["override", "open", "--admin", &at]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("session gate"), "{ran:?}");
    let (status, _) = ask_over(UnixStream::connect(&path).unwrap(), "GET /healthz", "", "");
    assert_eq!(status, 200);
    // A second gateway does not take it, and one after a crash does.
    let second =
        run(&["serve", "--listen", "127.0.0.1:0", "--admin", &at, "--to", &backend.url(), "--log", "error"]);
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.err.contains("another gateway listens there"), "{second:?}");
    process.signal(Signal::KILL);
    process.end();
    assert!(path.exists());
    let process = on_socket(&backend, &path);
    assert_eq!(run(&["status", "--admin", &at]).code, Some(0));
    process.finish();
}

/// A certificate authority.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    /// Returns a certificate and its key.
    fn sign(&self, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// Returns a connection of TLS that trusts `server` and shows a certificate, if there is one.
fn tls(address: SocketAddr, server: &str, own: Option<&(String, String)>) -> impl Read + Write + use<> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            let cert = CertificateDer::from_pem_slice(cert.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![cert], key).unwrap()
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream)
}

#[test]
fn a_certificate_that_is_trusted_may_do_everything_and_others_what_is_public() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let (ours, strangers) = (Authority::new(), Authority::new());
    let (cert, key) = ours.sign(ExtendedKeyUsagePurpose::ServerAuth);
    let [cert, key, ca] = [("cert", cert), ("key", key), ("ca", ours.pem.clone())]
        .map(|(name, text)| file(&folder, name, &text));
    let settings = file(
        &folder,
        "suimon.toml",
        &format!(
            "[admin]\npublic = [\"/healthz\"]\n[admin.tls]\ncert = \"{cert}\"\nkey = \"{key}\"\nclient_ca = \"{ca}\"\n"
        ),
    );
    let process = Running::of(suimon(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--to",
        &backend.url(),
        "--config",
        &settings,
    ]));
    let line = process.wait_out("  operator ");
    let address = line.split("https://").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    let own = ours.sign(ExtendedKeyUsagePurpose::ClientAuth);
    let with_own = || tls(address, &ours.pem, Some(&own));
    assert_eq!(ask_over(with_own(), "GET /api/state", "", "").0, 200);
    assert_eq!(ask_over(with_own(), "POST /api/override", JSON, OPEN).0, 200);
    let (status, answer) = ask_over(tls(address, &ours.pem, None), "GET /api/state", "", "");
    assert_eq!(status, 403, "{answer}");
    assert!(answer.contains("a client certificate is needed"), "{answer}");
    assert_eq!(ask_over(tls(address, &ours.pem, None), "GET /healthz", "", "").0, 200);
    // One that nobody trusts is refused before any request.
    let stranger = strangers.sign(ExtendedKeyUsagePurpose::ClientAuth);
    let mut refused = tls(address, &ours.pem, Some(&stranger));
    let wrote = refused.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let read = refused.read_to_end(&mut answer);
    assert!(wrote.is_err() || read.is_err() || answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    // Whoever opens connections and says nothing keeps nobody out.
    let silent: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    let began = Instant::now();
    assert_eq!(ask_over(with_own(), "GET /api/state", "", "").0, 200);
    assert!(began.elapsed().as_secs() < 9, "before the first of them has timed out: {:?}", began.elapsed());
    drop(silent);
    process.finish();
}

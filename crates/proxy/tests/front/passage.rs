//! What passes through: bodies, headers, protocols, switched connections, streams.

use crate::support::{
    ASK_EVERY, Answer, app, ask_over, asked_until, collected, connect, gateway, get, h2_over, params, raw,
    read_until, request, soon, until,
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use suimon_gate::RouteMode;
use suimon_model::Limit;
use suimon_params::{DeclaredRoute, ListenTls, Network, QueryPattern, RoutePattern};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Certificate and key in files.
pub(crate) struct Files {
    dir: tempfile::TempDir,
}

pub(crate) fn certificate(name: &str) -> Files {
    let files = Files { dir: tempfile::tempdir().unwrap() };
    files.renew(name);
    files
}

impl Files {
    pub(crate) fn renew(&self, name: &str) {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        std::fs::write(self.key(), signing_key.serialize_pem()).unwrap();
        std::fs::write(self.cert(), cert.pem()).unwrap();
    }

    pub(crate) fn cert(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.dir.path().join("key.pem")
    }

    pub(crate) fn listen(&self) -> ListenTls {
        ListenTls {
            address: "127.0.0.1:0".parse().unwrap(),
            cert: self.cert(),
            key: self.key(),
            reload_every: Duration::from_millis(20),
        }
    }
}

pub(crate) async fn tls_client(
    address: SocketAddr,
    files: &Files,
    protocols: &[&[u8]],
) -> TlsStream<TcpStream> {
    try_tls_client(address, files, protocols).await.unwrap()
}

async fn try_tls_client(
    address: SocketAddr,
    files: &Files,
    protocols: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    tls_over(connect(address).await, files, protocols).await
}

/// Speaks TLS over a connection that is open.
pub(crate) async fn tls_over(
    stream: TcpStream,
    files: &Files,
    protocols: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    tls_as("a", stream, files, protocols).await
}

/// The same, and asks for the host of this name.
pub(crate) async fn tls_as(
    name: &'static str,
    stream: TcpStream,
    files: &Files,
    protocols: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(files.cert()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from(name).unwrap(), stream).await
}

#[tokio::test]
async fn bodies_of_any_size_arrive_as_they_were_sent() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    for length in [0, 10, 10_000, 100_000, 5_000_000] {
        let body: Vec<u8> = (0..length).map(|at: usize| (at * 31 % 251) as u8).collect();
        let expected = format!("{length} {}", blake3::hash(&body));
        let sized = gateway.ask(request("POST", "/echo", &[], body.clone())).await;
        assert_eq!(sized.text(), expected);
        let mut chunked =
            b"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                .to_vec();
        for piece in body.chunks(7_777) {
            chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            chunked.extend_from_slice(piece);
            chunked.extend_from_slice(b"\r\n");
        }
        chunked.extend_from_slice(b"0\r\n\r\n");
        assert!(raw(gateway.plain, &chunked).await.contains(&expected), "{length} bytes in chunks");
    }
    for (path, length) in
        [("/sized", 0), ("/sized", 5000), ("/sized", 3_000_000), ("/big", 5000), ("/big", 3_000_000)]
    {
        let answer = gateway.get(&format!("{path}?{length}")).await;
        assert_eq!((answer.status, answer.body.len()), (200, length), "{path}");
        assert!(answer.body.iter().all(|byte| *byte == b'x'));
    }
    until("all slots are free", || gateway.in_flight() == 0).await;
}

#[tokio::test]
async fn a_head_request_gets_the_length_and_no_body() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let answer =
        raw(gateway.plain, b"HEAD /sized?5000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.to_lowercase().contains("content-length: 5000"),
        "{answer}"
    );
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    assert_eq!(gateway.in_flight(), 0);
}

fn line<'a>(answer: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!("{name}: ");
    answer.lines().filter_map(|line| line.strip_prefix(start.as_str())).collect()
}

#[tokio::test]
async fn the_application_learns_who_asks_from_us_alone() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let answer = gateway
        .ask(get(
            "/head?q=1",
            &[
                ("x-forwarded-for", "6.6.6.6"),
                ("x-forwarded-proto", "https"),
                ("forwarded", "for=6.6.6.6"),
                ("connection", "x-forwarded-for, x-hop"),
                ("x-hop", "1"),
                ("suimon-session", "7"),
                ("te", "trailers"),
                ("cookie", "a=b; suimon=forged; c=d"),
            ],
        ))
        .await
        .text();
    assert!(answer.starts_with("GET /head?q=1\n"), "{answer}");
    assert_eq!(line(&answer, "host"), ["shop.example"]);
    assert_eq!(line(&answer, "x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(line(&answer, "x-forwarded-proto"), ["http"]);
    assert_eq!(line(&answer, "x-forwarded-host"), ["shop.example"]);
    assert_eq!(line(&answer, "forwarded"), ["for=127.0.0.1;proto=http"]);
    assert_eq!(line(&answer, "cookie"), ["a=b; c=d"]);
    for name in ["x-hop", "suimon-session", "te", "connection", "transfer-encoding", "content-length"] {
        assert_eq!(line(&answer, name), [""; 0], "{name}");
    }
}

#[tokio::test]
async fn a_trusted_proxy_is_believed() {
    let app = app().await;
    let mut params = params(app.address);
    params.trusted_proxies = vec![Network { address: "127.0.0.0".parse().unwrap(), prefix: 8 }];
    params.via = true;
    let gateway = gateway(params);
    let headers =
        [("x-forwarded-for", "6.6.6.6"), ("x-forwarded-proto", "https"), ("x-forwarded-host", "www")];
    let answer = gateway.ask(get("/head", &headers)).await.text();
    assert_eq!(line(&answer, "x-forwarded-for"), ["6.6.6.6, 127.0.0.1"]);
    assert_eq!(line(&answer, "x-forwarded-proto"), ["https"]);
    assert_eq!(line(&answer, "x-forwarded-host"), ["www"]);
    assert_eq!(line(&answer, "via"), ["1.1 suimon"]);
}

#[tokio::test]
async fn http2_passes_in_clear_and_over_tls() {
    let app = app().await;
    let files = certificate("a");
    let mut params = params(app.address);
    params.listen.tls = Some(files.listen());
    let gateway = gateway(params);
    let plain = h2_over(TcpStream::connect(gateway.plain).await.unwrap()).await;
    let tls = h2_over(tls_client(gateway.tls.unwrap(), &files, &[b"h2", b"http/1.1"]).await).await;
    for ((mut sender, _driver), scheme) in [(plain, "http"), (tls, "https")] {
        let mut split = get(&format!("{scheme}://shop.example:8443/head"), &[]);
        split.headers_mut().remove("host");
        split.headers_mut().append("cookie", "a=1".parse().unwrap());
        split.headers_mut().append("cookie", "b=2".parse().unwrap());
        let answer = collected(soon(sender.send_request(split)).await.unwrap()).await.text();
        assert_eq!(line(&answer, "host"), ["shop.example:8443"]);
        assert_eq!(line(&answer, "cookie"), ["a=1; b=2"]);
        assert_eq!(line(&answer, "x-forwarded-proto"), [scheme]);
        let body = vec![7; 300_000];
        let expected = format!("300000 {}", blake3::hash(&body));
        let echo = request("POST", &format!("{scheme}://a/echo"), &[("host", "a")], body);
        let mut echo = echo;
        echo.headers_mut().remove("host");
        assert_eq!(collected(soon(sender.send_request(echo)).await.unwrap()).await.text(), expected);
        let mut big = get(&format!("{scheme}://a/big?2000000"), &[]);
        big.headers_mut().remove("host");
        assert_eq!(collected(soon(sender.send_request(big)).await.unwrap()).await.body.len(), 2_000_000);
        let mismatch = get(&format!("{scheme}://other/head"), &[]);
        assert_eq!(soon(sender.send_request(mismatch)).await.unwrap().status(), 400);
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_used() {
    let app = app().await;
    let files = certificate("a");
    let mut params = params(app.address);
    params.listen.plain = None;
    params.listen.tls = Some(files.listen());
    let gateway = gateway(params);
    let tls = gateway.tls.unwrap();
    let answer = ask_over(tls_client(tls, &files, &[b"http/1.1"]).await, get("/head", &[])).await;
    assert_eq!(line(&answer.text(), "x-forwarded-proto"), ["https"]);

    files.renew("a");
    asked_until("the new certificate", ASK_EVERY, async || try_tls_client(tls, &files, &[]).await.ok()).await;
}

#[tokio::test]
async fn a_websocket_passes_both_ways_and_holds_no_slot() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let mut stream = TcpStream::connect(gateway.plain).await.unwrap();
    let ask = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n";
    stream.write_all(ask.as_bytes()).await.unwrap();
    let head = read_until(&mut stream, "welcome").await;
    assert!(head.starts_with("HTTP/1.1 101") && head.to_lowercase().contains("upgrade: websocket"), "{head}");
    assert_eq!(gateway.in_flight(), 0);
    // Bytes that look like a bad request are nobody's business now.
    let bytes = b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n".repeat(10_000);
    let (mut from, mut to) = stream.into_split();
    let sent = bytes.clone();
    let sender = tokio::spawn(async move { to.write_all(&sent).await.map(|()| to).unwrap() });
    let mut echoed = vec![0; bytes.len()];
    soon(from.read_exact(&mut echoed)).await.unwrap();
    assert!(echoed == bytes);
    drop((sender.await.unwrap(), from));
    until("the connection is closed", || gateway.view().connections_open == 0).await;
}

#[tokio::test]
async fn a_websocket_the_application_does_not_want_is_an_ordinary_answer() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let ask = "GET /missing HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let answer = raw(gateway.plain, ask.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn events_pass_as_they_come_and_hold_no_slot() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let mut stream = TcpStream::connect(gateway.plain).await.unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    read_until(&mut stream, "data: hello").await;
    assert_eq!(gateway.in_flight(), 0);
    drop(stream);
    until("the application sees the end", || app.state.cancelled.load(SeqCst) == 1).await;
}

#[tokio::test]
async fn routes_are_found_from_good_answers_only() {
    let app = app().await;
    let mut params = params(app.address);
    params.routes.declared.clear();
    let gateway = gateway(params);
    for path in ["/items/1", "/items/2", "/missing", "/site.css", "/cart"] {
        let _: Answer = gateway.get(path).await;
    }
    let view = gateway.view();
    let names: Vec<_> = view.routes.iter().map(|route| route.name.as_str()).collect();
    assert_eq!(names, ["other", "GET /items/{id}", "GET /cart"]);
    assert_eq!(view.routes[0].statuses[1], 2, "the first of each is counted before it is known");
    assert_eq!((view.routes[0].statuses[3], view.routes[1].statuses[1]), (1, 1));
    assert_eq!(view.ungated.statuses[1], 1);
    assert_eq!(view.requests, 5);
}

#[tokio::test]
async fn pages_of_one_path_that_the_query_tells_apart_have_limits_of_their_own() {
    let app = app().await;
    let mut params = params(app.address);
    // The application holds this path, as a front controller may be slow at all of its pages.
    params.routes.declared = [None, Some("s")]
        .map(|query| DeclaredRoute {
            pattern: RoutePattern { method: Some("GET".to_owned()), path: "/hold".to_owned() },
            query: query.map(|query| QueryPattern::parse(query).unwrap()),
            mode: RouteMode::Fixed(Limit::of(1)),
        })
        .to_vec();
    let gateway = gateway(params);
    let mut asking = JoinSet::new();
    let mut ask = |path: &'static str| {
        let address = gateway.plain;
        asking.spawn(
            async move { ask_over(connect(address).await, get(path, &[("x-who", path)])).await.status },
        );
    };
    let held = || app.state.held.load(SeqCst);
    ask("/hold");
    until("the home page has its slot", || held() == 1).await;
    ask("/hold?p=1");
    until("whatever is no search waits for it", || gateway.waiting() == 1).await;
    ask("/hold?lang=en&s=shoes");
    until("a search does not", || held() == 2).await;
    ask("/hold?%73=boots");
    until("another one does, in disguise, too", || gateway.waiting() == 2).await;
    app.state.release(4);
    let answers = soon(asking.join_all()).await;
    assert_eq!(answers, [200; 4]);
    assert_eq!(app.state.who.lock().unwrap()[..2], ["/hold", "/hold?lang=en&s=shoes"]);

    let view = gateway.view();
    let answered: Vec<_> = view.routes.iter().map(|route| (route.name.as_str(), route.statuses[1])).collect();
    assert_eq!(answered, [("other", 0), ("GET /hold", 2), ("GET /hold?s", 2)]);
}

/// An application of HTTP/1.0 that ends its answer by closing; with `is_seen`, by breaking off once
/// the answer's head is.
async fn old_application(is_seen: Option<Arc<Notify>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_until(&mut stream, "\r\n\r\n").await;
        stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n").await.unwrap();
        // More than is taken whole, so that the head goes out before the end is known.
        stream.write_all(&[b'y'; 300_000]).await.unwrap();
        if let Some(is_seen) = is_seen {
            is_seen.notified().await;
            socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        }
    });
    address
}

#[tokio::test]
async fn an_answer_of_http_1_0_is_passed_on_in_http_1_1_whose_end_can_be_seen() {
    for breaks_off in [false, true] {
        let is_seen = Arc::new(Notify::new());
        let application = old_application(breaks_off.then(|| Arc::clone(&is_seen))).await;
        let gateway = gateway(params(application));
        let mut stream = connect(gateway.plain).await;
        stream.write_all(b"GET /old HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        let head = read_until(&mut stream, "\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head:.80}");
        is_seen.notify_one();
        let mut rest = Vec::new();
        let _ = soon(stream.read_to_end(&mut rest)).await;
        assert_eq!(rest.ends_with(b"0\r\n\r\n"), !breaks_off, "breaks off: {breaks_off}");
    }
}

//! What is told of requests at their end, what they are called, and which trace they belong to.

use crate::support::{
    Gateway, Nobody, app, collected, connect, gateway, gateway_that_notes, get, h2_over, params, raw,
    read_until, request, soon, until,
};
use http_body_util::BodyExt as _;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use suimon_params::{Network, Params};
use suimon_proxy::{RequestNotes, RequestOutcome, RequestRecord, RequestSink};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

/// Keeps what it is told.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Vec<RequestRecord>>);

impl RequestSink for Kept {
    fn end(&self, record: Box<RequestRecord>) {
        self.0.lock().unwrap().push(*record);
    }
}

impl Kept {
    /// Returns the outcomes of all it was told of.
    pub(crate) fn outcomes(&self) -> Vec<RequestOutcome> {
        self.0.lock().unwrap().iter().map(|record| record.outcome).collect()
    }

    /// Waits for what is told of the request for `path`.
    async fn of(&self, path: &str) -> RequestRecord {
        let find = || {
            let all = self.0.lock().unwrap();
            all.iter()
                .find(|record| record.target.as_ref().is_some_and(|target| target.path() == path))
                .cloned()
        };
        until("the request is told of", || find().is_some()).await;
        find().unwrap()
    }
}

pub(crate) fn noting(params: Params, trace_ratio: Option<f64>) -> (Gateway, Arc<Kept>) {
    let kept = Arc::new(Kept::default());
    let notes = RequestNotes { sink: Some(kept.clone()), traced_only: false, trace_ratio };
    (gateway_that_notes(params, Some(notes)), kept)
}

/// Everybody on this machine is a trusted proxy.
fn trusting(mut params: Params) -> Params {
    params.trusted_proxies = vec![Network { address: [127, 0, 0, 1].into(), prefix: 8 }];
    params
}

#[tokio::test]
async fn a_request_that_is_served_is_told_with_its_waits_and_its_node() {
    let app = app().await;
    let (gateway, kept) = noting(params(app.address), None);
    let first = gateway.occupy(&app).await;
    let address = gateway.plain;
    let second = tokio::spawn(async move {
        crate::support::ask_over(connect(address).await, get("/hold?secret", &[("x-who", "second")])).await
    });
    until("it waits", || gateway.waiting() == 1).await;
    app.state.release(2);
    assert_eq!((soon(first).await.unwrap().status, soon(second).await.unwrap().status), (200, 200));
    until("both are told of", || kept.0.lock().unwrap().len() == 2).await;
    let told = kept.0.lock().unwrap().clone();
    let of = |waited: bool| told.iter().find(|record| record.queued.is_zero() != waited).unwrap();
    let (at_once, waited) = (of(false), of(true));
    for record in [at_once, waited] {
        assert_eq!(record.outcome, RequestOutcome::Served);
        assert_eq!(record.status.map(|status| status.as_u16()), Some(200));
        assert_eq!(record.bytes, "held 0".len() as u64);
        assert_eq!((record.limit, record.in_flight), (Some(1), Some(1)));
        assert_eq!(record.route.as_deref(), Some("* /hold"));
        assert_eq!(record.node, Some(format!("http://{}", app.address)));
        assert!(record.held.is_zero());
        assert!(record.first_byte.is_some_and(|first| first <= record.total));
        assert!(record.application.is_some_and(|took| took <= record.total));
        assert_eq!(record.id.len(), 32);
    }
    assert_ne!(at_once.id, waited.id);
    assert!(waited.queued + waited.application.unwrap() <= waited.total);
}

#[tokio::test]
async fn a_client_that_leaves_is_told_wherever_it_leaves() {
    let app = app().await;
    let (gateway, kept) = noting(params(app.address), None);
    let first = gateway.occupy(&app).await;
    let mut waiting = connect(gateway.plain).await;
    waiting.write_all(b"GET /holding HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let mut queued = connect(gateway.plain).await;
    queued.write_all(b"GET /hold HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    until("it waits", || gateway.waiting() == 1).await;
    drop(queued);
    let left = kept.of("/hold").await;
    assert_eq!((left.outcome, left.status, left.sent), (RequestOutcome::ClientGone, None, None));

    // Its route has no limit of one.
    until("it is in the application", || app.state.held.load(SeqCst) == 2).await;
    drop(waiting);
    let left = kept.of("/holding").await;
    assert_eq!((left.outcome, left.status), (RequestOutcome::ClientGone, None));
    assert!(left.sent.is_some());

    let mut slow = connect(gateway.plain).await;
    slow.write_all(b"GET /big?100000000 HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    read_until(&mut slow, "xxxx").await;
    drop(slow);
    let left = kept.of("/big").await;
    assert_eq!((left.outcome, left.status.map(|it| it.as_u16())), (RequestOutcome::ClientGone, Some(200)));
    assert!(left.bytes > 0 && left.bytes < 100_000_000, "{}", left.bytes);
    app.state.release(2);
    soon(first).await.unwrap();
}

#[tokio::test]
async fn bodies_are_counted_however_they_go_out() {
    let app = app().await;
    let (gateway, kept) = noting(params(app.address), None);
    for (path, bytes) in [("/big", 3_000_000), ("/sized", 2_000_000), ("/sized", 10)] {
        assert_eq!(gateway.get(&format!("{path}?{bytes}")).await.body.len(), bytes);
        let told = kept.of(path).await;
        assert_eq!((told.outcome, told.bytes), (RequestOutcome::Served, bytes as u64), "{path}");
        kept.0.lock().unwrap().clear();
    }
    let head = gateway.ask(request("HEAD", "/sized?77", &[], "")).await;
    assert_eq!(head.body.len(), 0);
    let told = kept.of("/sized").await;
    assert_eq!((told.outcome, told.bytes), (RequestOutcome::Served, 0));
    let (mut sender, driver) = h2_over(connect(gateway.plain).await).await;
    let over_h2 = http::Request::get("http://shop.example/big?500000").body(Default::default()).unwrap();
    let response = soon(sender.send_request(over_h2)).await.unwrap();
    assert_eq!(soon(response.into_body().collect()).await.unwrap().to_bytes().len(), 500_000);
    let told = kept.of("/big").await;
    assert_eq!(
        (told.outcome, told.bytes, told.version),
        (RequestOutcome::Served, 500_000, http::Version::HTTP_2)
    );
    assert_eq!(told.host.as_ref().map(|host| host.as_bytes()), Some(&b"shop.example"[..]));
    driver.abort();
}

#[tokio::test]
async fn failures_and_faults_are_told_with_their_reasons_and_the_client_learns_the_id() {
    let nobody = Nobody::new();
    let (gateway, kept) = noting(params(nobody.address), None);
    let failed = gateway.ask(get("/away?secret=1", &[("accept", "application/json")])).await;
    assert_eq!(failed.status, 502);
    let told = kept.of("/away").await;
    assert_eq!((told.outcome, told.reason), (RequestOutcome::UpstreamError, Some("connect")));
    assert_eq!(told.node, Some(format!("http://{}", nobody.address)));
    assert_eq!(failed.header("x-request-id").as_bytes(), told.id.as_bytes());
    assert!(
        failed.text().contains(&format!("\"request_id\":\"{}\"", told.id.to_str().unwrap())),
        "{}",
        failed.text()
    );
    let answer = raw(gateway.plain, b"TRACE /bad HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let told = kept.of("/bad").await;
    assert_eq!((told.outcome, told.reason), (RequestOutcome::BadRequest, Some("method")));
    assert!(
        answer.to_ascii_lowercase().contains(&format!("x-request-id: {}", told.id.to_str().unwrap())),
        "{answer}"
    );
}

#[tokio::test]
async fn a_session_is_told_by_a_tag_that_is_not_its_number() {
    let app = app().await;
    let mut with_sessions = params(app.address);
    with_sessions.sessions = Params::default().sessions;
    let (gateway, kept) = noting(with_sessions, None);
    gateway.get("/one").await;
    let told = kept.of("/one").await;
    let (kind, tag) = told.session.unwrap();
    assert_eq!(kind, "visit");
    assert!(tag > 1 << 20, "a number of a session is small: {tag}");
    assert_eq!(told.route.as_deref(), Some("other"));
}

#[tokio::test]
async fn only_a_trusted_proxy_names_requests_and_the_application_is_told_the_name() {
    let app = app().await;
    let named = |trusts: bool| if trusts { trusting(params(app.address)) } else { params(app.address) };
    for trusts in [true, false] {
        let (gateway, kept) = noting(named(trusts), None);
        let head = gateway.ask(get("/head", &[("x-request-id", "theirs-1")])).await;
        let id = kept.of("/head").await.id.to_str().unwrap().to_owned();
        assert_eq!(id == "theirs-1", trusts);
        assert!(head.text().contains(&format!("x-request-id: {id}\n")), "{}", head.text());
        assert_eq!(head.text().matches("x-request-id").count(), 1);
    }
    // Without notes nothing is made, and what a client says passes on.
    let gateway = gateway(params(app.address));
    assert!(!gateway.get("/head").await.text().contains("x-request-id"));
    let told = gateway.ask(get("/head", &[("x-request-id", "theirs-2")])).await;
    assert!(told.text().contains("x-request-id: theirs-2\n"), "{}", told.text());
    // All requests may get one without anybody being told of them.
    let gateway = gateway_that_notes(params(app.address), Some(RequestNotes::default()));
    assert!(gateway.get("/head").await.text().contains("x-request-id: "));
}

#[tokio::test]
async fn a_trace_passes_on_unchanged_unless_spans_of_it_are_taken() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let app = app().await;
    let headers = [("traceparent", PARENT), ("tracestate", "a=1,b=2")];
    let plain = gateway(params(app.address));
    let (unsampled, kept) = noting(params(app.address), Some(0.0));
    for gateway in [&plain, &unsampled] {
        let text = gateway.ask(get("/head", &headers)).await.text();
        assert!(text.contains(&format!("traceparent: {PARENT}\n")), "{text}");
        assert!(text.contains("tracestate: a=1,b=2\n"), "{text}");
    }
    assert_eq!(kept.of("/head").await.trace, None);
    assert!(!plain.get("/head").await.text().contains("traceparent"));

    let (sampled, kept) = noting(trusting(params(app.address)), Some(0.0));
    let text = sampled.ask(get("/head", &headers)).await.text();
    let trace = kept.of("/head").await.trace.expect("its proxy says so");
    assert_eq!(trace.parent, Some(0x00f0_67aa_0ba9_02b7));
    let told = format!("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-{:016x}-01\n", trace.application);
    assert!(text.contains(&told) && text.contains("tracestate: a=1,b=2\n"), "{text}");

    let kept = Arc::new(Kept::default());
    let notes = RequestNotes { sink: Some(kept.clone()), traced_only: true, trace_ratio: Some(0.0) };
    let untraced = gateway_that_notes(params(app.address), Some(notes));
    assert!(untraced.ask(get("/head", &headers)).await.text().contains("x-request-id"));
    assert_eq!(kept.0.lock().unwrap().len(), 0, "nobody wants to be told of it");

    let (all, kept) = noting(params(app.address), Some(1.0));
    let text = all.get("/head").await.text();
    let trace = kept.of("/head").await.trace.expect("all are");
    assert!(
        text.contains(&format!("traceparent: 00-{:032x}-{:016x}-01\n", trace.trace, trace.application)),
        "{text}"
    );
    assert_eq!(trace.parent, None);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_told_as_the_applications_fault() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (gateway, kept) = noting(params(address), None);
    let mut client = connect(gateway.plain).await;
    client.write_all(b"GET /breaks HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let (mut stream, _) = soon(listener.accept()).await.unwrap();
    read_until(&mut stream, "\r\n\r\n").await;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: 5000000\r\n\r\n{}", "x".repeat(200_000));
    stream.write_all(head.as_bytes()).await.unwrap();
    read_until(&mut client, "xxxx").await;
    drop(stream);
    assert_eq!(kept.of("/breaks").await.outcome, RequestOutcome::UpstreamError);
}

#[tokio::test]
async fn a_connection_that_switched_is_told_once_it_is_closed() {
    let app = app().await;
    let (gateway, kept) = noting(params(app.address), None);
    let mut stream = connect(gateway.plain).await;
    let asks = b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(asks).await.unwrap();
    read_until(&mut stream, "welcome").await;
    stream.write_all(b"echo").await.unwrap();
    read_until(&mut stream, "echo").await;
    assert_eq!(kept.0.lock().unwrap().len(), 0);
    drop(stream);
    let told = kept.of("/ws").await;
    assert_eq!(told.status.map(|status| status.as_u16()), Some(101));
    assert_eq!((told.outcome, told.bytes), (RequestOutcome::Served, "welcomeecho".len() as u64));
}

/// Over HTTP/2 a server sends what is there, whatever was asked for, and the client breaks off.
#[tokio::test]
async fn an_answer_of_the_gateways_own_to_a_head_has_a_length_and_no_body() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let long = format!("/{}", "x".repeat(20_000));
    let told = gateway.get(&long).await;
    assert_eq!(told.status, 414);
    let length = told.body.len().to_string();
    let (mut sender, driver) = h2_over(connect(gateway.plain).await).await;
    let head = http::Request::head(format!("http://shop.example{long}")).body(Default::default()).unwrap();
    let head = collected(soon(sender.send_request(head)).await.unwrap()).await;
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (414, length.as_str(), 0));
    driver.abort();
}

//! What gRPC needs of a gateway: HTTP/2 on both sides, `te: trailers`, trailers both ways, statuses
//! that its clients understand, and calls that end where they are cancelled.

use crate::support::{Nobody, ask_over, connect, gateway, params, read_until, request, soon, until};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;
use suimon_gate::RouteMode;
use suimon_model::Limit;
use suimon_params::PassFor;
use suimon_params::upstream::Protocol;
use suimon_params::{DeclaredRoute, OnClientDisconnect, Params, PassPage, RoutePattern};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

/// A body of the frames that come over a channel.
struct Frames(mpsc::UnboundedReceiver<Frame<Bytes>>);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

type Sender = mpsc::UnboundedSender<Frame<Bytes>>;

fn frames() -> (Sender, Frames) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Frames(receiver))
}

fn data(text: &'static str) -> Frame<Bytes> {
    Frame::data(Bytes::from_static(text.as_bytes()))
}

fn trailers(fields: &[(&'static str, &'static str)]) -> Frame<Bytes> {
    let fields =
        fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    Frame::trailers(fields.collect())
}

/// A node that speaks HTTP/2.
struct Node {
    address: SocketAddr,
    calls: Arc<Calls>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Calls {
    begun: AtomicUsize,
    cancelled: AtomicUsize,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts the node.
///
/// - `/call` answers with what was sent, says in `x-te` what `TE` was and in `x-sent` what the
///   trailer `x-sum` was, and ends with trailers.
/// - `/hold` never answers; `/echo` answers with a head at once and then sends back what comes,
///   until its end.
async fn node() -> Node {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let calls = Arc::new(Calls::default());
    let shared = Arc::clone(&calls);
    let task = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let calls = Arc::clone(&shared);
            connections.spawn(async move {
                let service = service_fn(move |request| answer(Arc::clone(&calls), request));
                let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    Node { address, calls, task }
}

/// Counts a call that ended before it was answered in full.
struct Call(Arc<Calls>, bool);

impl Call {
    fn done(mut self) {
        self.1 = true;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.1 {
            self.0.cancelled.fetch_add(1, SeqCst);
        }
    }
}

async fn answer(calls: Arc<Calls>, request: Request<Incoming>) -> Result<Response<Frames>, Infallible> {
    calls.begun.fetch_add(1, SeqCst);
    let call = Call(calls, false);
    let (head, mut body) = request.into_parts();
    let (sender, frames) = frames();
    let mut response = Response::new(frames);
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response.headers_mut().insert("trailer", HeaderValue::from_static("x-sum, grpc-status"));
    match head.uri.path() {
        "/hold" => std::future::pending().await,
        path @ ("/echo" | "/later") => {
            if path == "/later" {
                // Longer than a client is waited for while its request holds a slot.
                tokio::time::sleep(Duration::from_millis(400)).await;
            }
            tokio::spawn(async move {
                loop {
                    let frame = tokio::select! {
                        frame = body.frame() => frame,
                        () = sender.closed() => return,
                    };
                    match frame {
                        Some(Ok(frame)) => drop(sender.send(frame)),
                        Some(Err(_)) => return,
                        None => break,
                    }
                }
                call.done();
                let _ = sender.send(trailers(&[("grpc-status", "0")]));
            });
        }
        _ => {
            let sent = body.collect().await.unwrap();
            let sum = sent.trailers().and_then(|trailers| trailers.get("x-sum")).cloned();
            response.headers_mut().extend(sum.map(|sum| (HeaderName::from_static("x-sent"), sum)));
            let heard: Vec<_> =
                sent.trailers().into_iter().flat_map(HeaderMap::keys).map(HeaderName::as_str).collect();
            response.headers_mut().insert("x-heard", heard.join(",").parse().unwrap());
            let te = head.headers.get("te").cloned();
            response.headers_mut().extend(te.map(|te| (HeaderName::from_static("x-te"), te)));
            let _ = sender.send(Frame::data(sent.to_bytes()));
            let _ = sender.send(trailers(&[
                ("x-sum", "42"),
                ("grpc-status", "0"),
                ("suimon-session", "ends"),
                ("suimon-paused", "1"),
                ("suimon_paused", "1"),
                ("set-cookie", "JSESSIONID=1"),
                ("content-length", "7"),
                ("content-encoding", "gzip"),
                ("host", "elsewhere"),
                ("proxy-authorization", "Basic x"),
            ]));
            call.done();
        }
    }
    Ok(response)
}

fn before(node: &Node) -> Params {
    let mut params = params(node.address);
    for node in &mut params.upstream.nodes {
        node.protocol = Protocol::Http2;
    }
    params
}

async fn client(address: SocketAddr) -> SendRequest<Frames> {
    let stream = TokioIo::new(connect(address).await);
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn call(path: &str) -> (Sender, Request<Frames>) {
    let (sender, frames) = frames();
    let request = Request::post(format!("http://shop.example{path}"))
        .header("te", "trailers")
        .header("content-type", "application/grpc+proto");
    (sender, request.body(frames).unwrap())
}

/// Returns a response's status, headers, body and trailers.
async fn whole(response: Response<Incoming>) -> (u16, HeaderMap, Bytes, Option<HeaderMap>) {
    let (head, body) = response.into_parts();
    let body = soon(body.collect()).await.unwrap();
    let trailers = body.trailers().cloned();
    (head.status.as_u16(), head.headers, body.to_bytes(), trailers)
}

#[tokio::test]
async fn te_trailers_reaches_an_http2_node_and_nothing_else_of_te_does() {
    let node = node().await;
    let gateway = gateway(before(&node));
    let mut client = client(gateway.plain).await;
    for (sent, reaches) in [("trailers", Some("trailers")), ("", None)] {
        let (sender, mut request) = call("/call");
        request.headers_mut().remove("te");
        if !sent.is_empty() {
            request.headers_mut().insert("te", HeaderValue::from_static(sent));
        }
        drop(sender);
        let (_, headers, ..) = whole(soon(client.send_request(request)).await.unwrap()).await;
        assert_eq!(headers.get("x-te").map(|te| te.to_str().unwrap()), reaches, "{sent:?}");
    }
    for (sent, reaches) in [("gzip;q=0.5, trailers", "trailers"), ("gzip", "")] {
        let request = request("POST", "/call", &[("te", sent), ("connection", "te")], "x");
        let answer = ask_over(connect(gateway.plain).await, request).await;
        assert_eq!(answer.header("x-te"), reaches, "{sent}");
    }
}

#[tokio::test]
async fn trailers_pass_both_ways_over_http2() {
    let node = node().await;
    let gateway = gateway(before(&node));
    let mut client = client(gateway.plain).await;
    let (sender, request) = call("/call");
    sender.send(data("hello")).unwrap();
    let forged =
        ["suimon-session", "suimon-pause", "suimon_pause", "x-forwarded-for"].map(|name| (name, "1"));
    sender.send(trailers(&[&[("x-sum", "41")], &forged[..]].concat())).unwrap();
    drop(sender);
    let (status, headers, body, trailers) = whole(soon(client.send_request(request)).await.unwrap()).await;
    assert_eq!((status, &body[..]), (200, &b"hello"[..]));
    assert_eq!(headers["x-sent"], "41", "the trailers of the request have reached the application");
    assert_eq!(headers["x-heard"], "x-sum", "but not what only a gateway may say");
    let trailers = trailers.expect("the application's trailers");
    assert_eq!(
        (&trailers["x-sum"], &trailers["grpc-status"]),
        (&"42".parse().unwrap(), &"0".parse().unwrap())
    );
}

#[tokio::test]
async fn trailers_that_came_while_a_request_waited_reach_the_application() {
    let node = node().await;
    let mut params = before(&node);
    params.routes.declared = vec![one_at_a_time("/hold"), one_at_a_time("/call")];
    let gateway = gateway(params);
    // A call that is not over yet holds the slot of the route.
    let mut first = client(gateway.plain).await;
    let (open, request) = call("/call");
    let first = tokio::spawn(async move { first.send_request(request).await.map(drop) });
    until("the application has the first", || node.calls.begun.load(SeqCst) == 1).await;

    let mut second = client(gateway.plain).await;
    let (sender, request) = call("/call");
    sender.send(data("hello")).unwrap();
    sender.send(trailers(&[("x-sum", "41")])).unwrap();
    drop(sender);
    let second = tokio::spawn(async move { second.send_request(request).await });
    until("the second waits", || gateway.waiting() == 1).await;
    drop(open);
    let (_, headers, body, _) = whole(soon(second).await.unwrap().unwrap()).await;
    assert_eq!((&headers["x-sent"], &body[..]), (&"41".parse::<HeaderValue>().unwrap(), &b"hello"[..]));
    soon(first).await.unwrap().unwrap();
}

#[tokio::test]
async fn trailers_are_filtered_as_headers_are() {
    let node = node().await;
    let gateway = gateway(before(&node));
    let mut client = client(gateway.plain).await;
    let (sender, request) = call("/call");
    drop(sender);
    let (.., trailers) = whole(soon(client.send_request(request)).await.unwrap()).await;
    let trailers = trailers.unwrap();
    let mut names: Vec<_> = trailers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["grpc-status", "x-sum"]);
}

#[tokio::test]
async fn an_http1_client_gets_trailers_where_it_asked_for_them() {
    let node = node().await;
    let gateway = gateway(before(&node));
    for (te, gets_them) in [("te: trailers\r\n", true), ("", false)] {
        let mut stream = connect(gateway.plain).await;
        let head = format!("GET /call HTTP/1.1\r\nhost: shop.example\r\n{te}connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = read_until(&mut stream, "\r\n0\r\n").await;
        let rest =
            if answer.ends_with("\r\n\r\n") { String::new() } else { read_until(&mut stream, "\r\n").await };
        let answer = answer + &rest;
        assert_eq!(
            answer.contains("\r\n0\r\nx-sum: 42\r\n") || answer.contains("\r\nx-sum: 42\r\n"),
            gets_them,
            "{answer}"
        );
    }
}

fn one_at_a_time(path: &str) -> DeclaredRoute {
    let pattern = RoutePattern { method: None, path: path.to_owned() };
    DeclaredRoute { pattern, query: None, mode: RouteMode::Fixed(Limit::of(1)) }
}

#[tokio::test]
async fn a_refused_call_gets_a_status_of_grpc() {
    let node = node().await;
    let mut params = before(&node);
    params.gate.waiting_max = 1;
    let gateway = gateway(params);
    let mut first = client(gateway.plain).await;
    let (_open, request) = call("/hold");
    let held = tokio::spawn(async move { first.send_request(request).await.map(drop) });
    until("the application has the first", || node.calls.begun.load(SeqCst) == 1).await;

    let mut second = client(gateway.plain).await;
    let (_waits, request) = call("/hold");
    let mut waiting = second.clone();
    let waiting = tokio::spawn(async move { waiting.send_request(request).await.map(drop) });
    until("the second waits", || gateway.waiting() == 1).await;
    let (sender, request) = call("/hold");
    drop(sender);
    let (status, headers, body, trailers) = whole(soon(second.send_request(request)).await.unwrap()).await;
    assert_eq!((status, body.len(), trailers), (200, 0, None), "a response of trailers only");
    assert_eq!(headers["content-type"], "application/grpc");
    assert_eq!(headers["grpc-status"], "14");
    let pushback: u64 = headers["grpc-retry-pushback-ms"].to_str().unwrap().parse().unwrap();
    assert!(pushback >= 1, "{pushback}");
    let message = headers["grpc-message"].to_str().unwrap();
    assert!(message.contains("Too many people at once"), "{message}");
    waiting.abort();
    held.abort();
}

#[tokio::test]
async fn a_failing_application_is_told_in_grpc() {
    let nobody = Nobody::new();
    let mut gone = params(nobody.address);
    gone.upstream.nodes[0].protocol = Protocol::Http2;
    let gateway_of_none = gateway(gone);
    let mut client_of_none = client(gateway_of_none.plain).await;
    let (sender, request) = call("/call");
    drop(sender);
    let (status, headers, ..) = whole(soon(client_of_none.send_request(request)).await.unwrap()).await;
    assert_eq!((status, &headers["grpc-status"]), (200, &HeaderValue::from_static("14")));
    assert!(headers.contains_key("grpc-retry-pushback-ms"), "it did not reach the application: {headers:?}");

    let node = node().await;
    let mut impatient = before(&node);
    impatient.upstream.first_byte_timeout = Duration::from_millis(50);
    let gateway = gateway(impatient);
    let mut client = client(gateway.plain).await;
    let (sender, request) = call("/hold");
    drop(sender);
    let (status, headers, ..) = whole(soon(client.send_request(request)).await.unwrap()).await;
    assert_eq!((status, &headers["grpc-status"]), (200, &HeaderValue::from_static("4")));
    assert!(!headers.contains_key("grpc-retry-pushback-ms"), "it may have been worked on: {headers:?}");
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_application() {
    let node = node().await;
    let mut params = before(&node);
    params.on_client_disconnect = Some(OnClientDisconnect::Finish);
    let gateway = gateway(params);
    let mut client = client(gateway.plain).await;
    // Before the application has answered ...
    let (sender, request) = call("/hold");
    drop(sender);
    let mut sending = client.clone();
    let held = tokio::spawn(async move { sending.send_request(request).await.map(drop) });
    until("the application has it", || node.calls.begun.load(SeqCst) == 1).await;
    held.abort();
    until("the application is told", || node.calls.cancelled.load(SeqCst) == 1).await;
    until("its slot is free", || gateway.in_flight() == 0).await;
    // ... and in the middle of a stream.
    let (sender, request) = call("/echo");
    let response = soon(client.send_request(request)).await.unwrap();
    sender.send(data("one")).unwrap();
    let mut body = response.into_body();
    assert_eq!(soon(body.frame()).await.unwrap().unwrap().into_data().unwrap(), "one");
    drop((body, sender));
    until("the application is told", || node.calls.cancelled.load(SeqCst) == 2).await;
}

#[tokio::test]
async fn log_ins_that_say_they_are_calls_keep_nobody_from_logging_in() {
    let node = node().await;
    let mut params = before(&node);
    params.waiting_room.pass = Some(PassPage { page: "/call".to_owned(), needed_by: PassFor::Everybody });
    let gateway = gateway(params);
    let client = client(gateway.plain).await;
    let mut open = Vec::new();
    let mut asked = JoinSet::new();
    for _ in 0..6 {
        let (sender, request) = call("/call");
        open.push(sender);
        let mut client = client.clone();
        asked.spawn(async move { client.send_request(request).await.map(drop) });
    }
    until("all have come", || gateway.view().requests == 6).await;
    let answer = gateway.ask(request("POST", "/call", &[], "hello")).await;
    assert_eq!((answer.status, &answer.body[..]), (200, &b"hello"[..]));
    assert_eq!(node.calls.begun.load(SeqCst), 1, "the application knows of none of the others");
}

#[tokio::test]
async fn a_call_may_be_silent_once_answered_whether_it_needs_a_slot_or_not() {
    for (path, is_ungated) in [("/echo", true), ("/echo", false), ("/later", false)] {
        let node = node().await;
        let mut params = before(&node);
        params.routes.declared.clear();
        params.routes.ungated = is_ungated.then(|| path.to_owned()).into_iter().collect();
        params.routes.discovered_mode = RouteMode::Fixed(Limit::of(100));
        params.limits.slow_uploads = 4;
        let gateway = gateway(params);
        let mut client = client(gateway.plain).await;
        let mut calls = Vec::new();
        for _ in 0..12 {
            let (sender, request) = call(path);
            let body = soon(client.send_request(request)).await.unwrap().into_body();
            calls.push((sender, body));
        }
        // Longer than a client is waited for before it is counted among those that are.
        tokio::time::sleep(Duration::from_millis(500)).await;
        for (sender, body) in &mut calls {
            sender.send(data("one")).unwrap();
            assert_eq!(soon(body.frame()).await.unwrap().unwrap().into_data().unwrap(), "one", "{path}");
        }
    }
}

#[tokio::test]
async fn of_calls_without_a_slot_that_say_nothing_a_few_are_waited_for() {
    let node = node().await;
    let mut params = before(&node);
    params.routes.declared.clear();
    params.routes.ungated = vec!["/hold".to_owned()];
    params.limits.slow_uploads = 4;
    let gateway = gateway(params);
    let client = client(gateway.plain).await;
    let mut open = Vec::new();
    let mut asked = JoinSet::new();
    for _ in 0..12 {
        let (sender, request) = call("/hold");
        open.push(sender);
        let mut client = client.clone();
        asked.spawn(async move { client.send_request(request).await.map(drop) });
    }
    for _ in 0..8 {
        soon(asked.join_next()).await.unwrap().unwrap().unwrap();
    }
    until("the application is told", || node.calls.cancelled.load(SeqCst) == 8).await;
    assert_eq!((node.calls.begun.load(SeqCst), asked.len()), (12, 4));
}

#[tokio::test]
async fn a_stream_goes_both_ways_at_its_own_pace() {
    let node = node().await;
    let mut params = before(&node);
    // A client that has nothing to say on an open stream is not slow with its body.
    params.timeouts.body_read = Duration::from_secs(1);
    let gateway = gateway(params);
    let mut client = client(gateway.plain).await;
    let (sender, request) = call("/echo");
    let mut body = soon(client.send_request(request)).await.unwrap().into_body();
    for pause in [Duration::ZERO, Duration::from_millis(2500)] {
        tokio::time::sleep(pause).await;
        sender.send(data("one")).unwrap();
        assert_eq!(soon(body.frame()).await.unwrap().unwrap().into_data().unwrap(), "one");
    }
    drop(sender);
    let trailers = soon(body.frame()).await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["grpc-status"], "0");
}

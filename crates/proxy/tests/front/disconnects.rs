//! Clients that leave: while they wait, while the application works for them, and while they are
//! slow to take the answer.

use crate::passage::{certificate, tls_client};
use crate::support::{
    App, Gateway, app, connect, gateway, get, h2_over, params, read_until, request, soon, until,
};
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use suimon_params::OnClientDisconnect;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The promise: a client that leaves has left the line within this time.
const PROMISE: Duration = Duration::from_millis(20);

/// How often a measurement may be spoilt by other work on the machine.
const TRIES: u64 = 10;

/// Lets a client wait for the only slot, lets it leave, and measures how long it takes to be
/// noticed. Returns how many clients that took.
async fn notices<C>(
    gateway: &Gateway,
    case: &str,
    mut come: impl AsyncFnMut() -> C,
    mut leave: impl AsyncFnMut(C),
) -> u64 {
    let mut best = Duration::MAX;
    for tries in 1..=TRIES {
        let client = come().await;
        until("the client waits", || gateway.waiting() == 1).await;
        let left = Instant::now();
        leave(client).await;
        while gateway.waiting() > 0 {
            assert!(left.elapsed() < Duration::from_secs(10), "{case}: never noticed");
            tokio::task::yield_now().await;
        }
        best = best.min(left.elapsed());
        if best < PROMISE {
            return tries;
        }
    }
    panic!("{case}: noticed after {best:?} at best");
}

async fn send(gateway: &Gateway, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.plain).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Makes the stream's end a reset.
fn will_reset(stream: &TcpStream) {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)).unwrap();
}

const GET: &str = "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n";
const PIPELINED: &str = "GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET /head HTTP/1.1\r\nHost: a\r\n\r\n";
const BODY: &str = "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789";
const HALF: &str = "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n0123456789";
const CHUNKED: &str = "POST /hold HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n";
const EXPECT: &str = "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n";
const SAYS_GRPC: &str = "GET /hold HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\n\r\n";

async fn occupied() -> (App, Gateway) {
    let app = app().await;
    let gateway = gateway(params(app.address));
    gateway.occupy(&app).await;
    (app, gateway)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_has_left_the_line_whatever_it_has_sent() {
    let (app, gateway) = occupied().await;
    let long = format!("{HALF}{}", "x".repeat(100 << 10));
    let long_chunked = format!("{CHUNKED}14000\r\n{}\r\n", "x".repeat(0x14000));
    let mut came = 0;
    for (case, bytes) in [
        ("idle", GET),
        ("pipelined bytes behind", PIPELINED),
        ("body sent", BODY),
        ("long body half sent", &long),
        ("long chunked body half sent", &long_chunked),
        ("expects 100", EXPECT),
    ] {
        came += notices(
            &gateway,
            case,
            async || send(&gateway, bytes.as_bytes()).await,
            async |stream| drop(stream),
        )
        .await;
        came += notices(
            &gateway,
            case,
            async || send(&gateway, bytes.as_bytes()).await,
            async |stream| will_reset(&stream),
        )
        .await;
    }
    came += notices(
        &gateway,
        "pipelined bytes later",
        async || {
            let mut stream = send(&gateway, GET.as_bytes()).await;
            until("the client waits", || gateway.waiting() == 1).await;
            stream.write_all(GET.as_bytes()).await.unwrap();
            stream
        },
        async |stream| drop(stream),
    )
    .await;
    assert_eq!(app.state.begun.load(SeqCst), 1, "none of them ever reached the application");
    // Whoever leaves is counted just after it waits no more.
    until("each of them is counted", || gateway.view().disconnects_waiting >= came).await;
    app.state.release(1);
    until("the slot is free", || gateway.in_flight() == 0).await;
    assert_eq!(gateway.view().disconnects_waiting, came, "and once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_is_noticed_over_tls_and_over_http2() {
    let app = app().await;
    let files = certificate("a");
    let mut with_tls = params(app.address);
    with_tls.listen.tls = Some(files.listen());
    let gateway = gateway(with_tls);
    gateway.occupy(&app).await;
    let tls = gateway.tls.unwrap();
    let long = format!("{HALF}{}", "x".repeat(100 << 10));
    for (case, bytes) in [("idle", GET), ("pipelined", PIPELINED), ("half a long body", &long)] {
        notices(
            &gateway,
            case,
            async || {
                let mut stream = tls_client(tls, &files, &[b"http/1.1"]).await;
                stream.write_all(bytes.as_bytes()).await.unwrap();
                stream
            },
            async |stream| drop(stream),
        )
        .await;
    }
    let mut kept = Vec::new();
    for over_tls in [false, true] {
        for method in ["GET", "POST"] {
            // The whole connection closes; then one stream of it is reset.
            for whole in [true, false] {
                notices(
                    &gateway,
                    "HTTP/2",
                    async || {
                        let (mut sender, driver) = if over_tls {
                            h2_over(tls_client(tls, &files, &[b"h2"]).await).await
                        } else {
                            h2_over(connect(gateway.plain).await).await
                        };
                        let mut held = request(method, "https://a/hold", &[], "body");
                        held.headers_mut().remove("host");
                        let asked = tokio::spawn(sender.send_request(held));
                        (asked, sender, driver)
                    },
                    async |(asked, sender, driver)| {
                        asked.abort();
                        if whole {
                            driver.abort();
                        } else {
                            let _ = asked.await;
                            // Alive while the measurement lasts.
                            kept.push((sender, driver));
                        }
                    },
                )
                .await;
            }
        }
    }
}

#[tokio::test]
async fn a_body_sent_while_waiting_arrives_whole() {
    let (app, gateway) = occupied().await;
    let body = vec![b'x'; 300_000];
    let mut stream = TcpStream::connect(gateway.plain).await.unwrap();
    stream.write_all(b"POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n").await.unwrap();
    let (mut from, mut to) = stream.into_split();
    let sender = tokio::spawn(async move { to.write_all(&body).await.map(|()| to).unwrap() });
    until("the client waits", || gateway.waiting() == 1).await;
    app.state.release(2);
    read_until(&mut from, "held 300000").await;
    drop(sender.await.unwrap());
}

#[tokio::test]
async fn a_client_that_expects_100_gets_it_only_once_let_in() {
    let (app, gateway) = occupied().await;
    let mut stream = send(&gateway, EXPECT.as_bytes()).await;
    until("the client waits", || gateway.waiting() == 1).await;
    let mut byte = [0];
    let early = tokio::time::timeout(Duration::from_millis(50), stream.read(&mut byte)).await;
    assert!(early.is_err(), "nothing is asked of it while it waits");
    app.state.release(1);
    read_until(&mut stream, "100 Continue").await;
    stream.write_all(b"0123456789").await.unwrap();
    app.state.release(1);
    read_until(&mut stream, "held 10").await;
}

#[tokio::test]
async fn work_for_a_client_that_left_keeps_its_slot_until_done() {
    for bytes in [GET, PIPELINED, SAYS_GRPC] {
        let app = app().await;
        let gateway = gateway(params(app.address));
        let stream = send(&gateway, bytes.as_bytes()).await;
        until("the application has it", || app.state.held.load(SeqCst) == 1).await;
        drop(stream);
        until("it is an orphan", || gateway.view().disconnects_upstream == 1).await;
        assert_eq!(gateway.view().routes[1].gate.orphaned, 1);
        assert_eq!((gateway.in_flight(), app.state.cancelled.load(SeqCst)), (1, 0));
        app.state.release(1);
        until("the slot is free", || gateway.in_flight() == 0).await;
        assert_eq!(gateway.view().routes[1].gate.counts.abandoned, 1);
        assert_eq!(app.state.cancelled.load(SeqCst), 0);
    }
}

#[tokio::test]
async fn what_is_called_grpc_and_cannot_be_is_worked_on_to_its_end() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let (mut sender, _driver) = h2_over(connect(gateway.plain).await).await;
    let mut held = get("http://a/hold", &[("content-type", "application/grpc")]);
    held.headers_mut().remove("host");
    let asked = tokio::spawn(sender.send_request(held));
    until("the application has it", || app.state.held.load(SeqCst) == 1).await;
    asked.abort();
    until("it is an orphan", || gateway.view().disconnects_upstream == 1).await;
    assert_eq!((gateway.in_flight(), app.state.cancelled.load(SeqCst)), (1, 0));
    app.state.release(1);
    until("the slot is free", || gateway.in_flight() == 0).await;
}

#[tokio::test]
async fn work_for_a_client_that_left_is_cancelled_where_that_is_wished() {
    for bytes in [GET, PIPELINED] {
        let app = app().await;
        let mut params = params(app.address);
        params.on_client_disconnect = Some(OnClientDisconnect::Cancel);
        let gateway = gateway(params);
        let stream = send(&gateway, bytes.as_bytes()).await;
        until("the application has it", || app.state.held.load(SeqCst) == 1).await;
        drop(stream);
        until("the application saw it", || app.state.cancelled.load(SeqCst) == 1).await;
        until("the slot is free", || gateway.in_flight() == 0).await;
        assert_eq!(gateway.view().routes[1].gate.counts.abandoned, 1);
    }
}

#[tokio::test]
async fn a_slow_client_frees_the_slot_and_still_gets_everything() {
    const LENGTH: usize = 16_000_000;
    let app = app().await;
    let mut params = params(app.address);
    params.limits.response_buffer_bytes = LENGTH;
    let gateway = gateway(params);
    for path in ["/big", "/sized"] {
        let mut stream = TcpStream::connect(gateway.plain).await.unwrap();
        let text = format!("GET {path}?{LENGTH} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        let counts = || gateway.view().routes.iter().map(|route| route.gate.counts.completed).sum::<u64>();
        let before = counts();
        until("the application is done and its slot free", || counts() == before + 1).await;
        assert_eq!(gateway.in_flight(), 0);
        assert!(gateway.view().buffered_bytes > 0, "and the client has not got it yet");
        let mut all = Vec::new();
        soon(stream.read_to_end(&mut all)).await.unwrap();
        assert_eq!(all.iter().filter(|byte| **byte == b'x').count(), LENGTH);
        until("nothing is held any more", || gateway.view().buffered_bytes == 0).await;
    }
}

#[tokio::test]
async fn past_the_bound_the_application_waits_for_the_client() {
    let app = app().await;
    let mut params = params(app.address);
    params.limits.response_buffer_bytes = 64 << 10;
    let gateway = gateway(params);
    let mut stream =
        send(&gateway, b"GET /big?30000000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    until("the queue is full", || gateway.view().buffered_bytes >= 64 << 10).await;
    assert_eq!(gateway.in_flight(), 1);
    // However slowly it is emptied, it never holds more.
    let (mut count, mut piece) = (0, vec![0; 64 << 10]);
    loop {
        assert!(gateway.view().buffered_bytes <= 2 << 20, "{}", gateway.view().buffered_bytes);
        let read = soon(stream.read(&mut piece)).await.unwrap();
        if read == 0 {
            break;
        }
        count += piece[..read].iter().filter(|byte| **byte == b'x').count();
    }
    assert_eq!(count, 30_000_000);
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_given_up() {
    let app = app().await;
    let mut params = params(app.address);
    params.timeouts.body_write = Duration::from_millis(200);
    params.limits.response_buffer_bytes = 64 << 10;
    let gateway = gateway(params);
    let _stream = send(&gateway, b"GET /big?30000000 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until("the application has it", || app.state.begun.load(SeqCst) == 1).await;
    until("and is at it no longer", || gateway.observer.upstream()[0].in_flight == 0).await;
    assert_eq!(gateway.in_flight(), 0);
    until("nothing is held", || gateway.view().buffered_bytes == 0).await;
    until("the connection is closed", || gateway.view().connections_open == 0).await;
}

#[tokio::test]
async fn an_http2_client_that_takes_nothing_is_given_up() {
    let app = app().await;
    let mut params = params(app.address);
    params.timeouts.body_write = Duration::from_millis(200);
    params.limits.response_buffer_bytes = 64 << 10;
    let gateway = gateway(params);
    let (mut sender, _driver) = h2_over(connect(gateway.plain).await).await;
    let mut big = get("http://a/big?30000000", &[]);
    big.headers_mut().remove("host");
    // Its head is taken, its body is not: the stream's window closes while the connection is well.
    let _answer = soon(sender.send_request(big)).await.unwrap();
    until("the application has it", || app.state.begun.load(SeqCst) == 1).await;
    until("and is at it no longer", || gateway.observer.upstream()[0].in_flight == 0).await;
    assert_eq!(gateway.in_flight(), 0);
}

#[tokio::test]
async fn an_ungated_answer_that_is_not_taken_holds_no_connection_to_the_application() {
    let app = app().await;
    let mut params = params(app.address);
    params.routes.declared.clear();
    params.routes.ungated = vec!["/sized".to_owned(), "/big".to_owned()];
    let gateway = gateway(params);
    let stream = TokioIo::new(connect(gateway.plain).await);
    // No piece of an answer may be sent before the client asks for it.
    let (mut sender, driver) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(0)
        .handshake::<_, Full<Bytes>>(stream)
        .await
        .unwrap();
    tokio::spawn(driver);
    let mut answers = Vec::new();
    // A length is declared or not, and there is room in memory or not.
    for (begun, path) in ["/sized?60000", "/big?60000", "/big?5000000"].into_iter().enumerate() {
        let mut asked = get(&format!("http://a{path}"), &[]);
        asked.headers_mut().remove("host");
        answers.push(soon(sender.send_request(asked)).await.unwrap());
        assert_eq!(app.state.begun.load(SeqCst), begun + 1);
        until("the application is done", || gateway.observer.upstream()[0].in_flight == 0).await;
    }
    drop(answers);
    until("nothing is held", || gateway.view().buffered_bytes == 0 && gateway.view().spooled_bytes == 0)
        .await;
}

#[tokio::test]
async fn a_crowd_that_leaves_at_once_leaves_nothing_behind() {
    let (app, gateway) = occupied().await;
    let mut crowd = Vec::new();
    for _ in 0..200 {
        crowd.push(send(&gateway, GET.as_bytes()).await);
    }
    until("all wait", || gateway.waiting() == 200).await;
    drop(crowd);
    until("none waits", || gateway.waiting() == 0).await;
    app.state.release(1);
    until("the slot is free", || gateway.in_flight() == 0).await;
    app.state.release(1);
    assert_eq!(gateway.ask(get("/hold", &[])).await.status, 200);
}

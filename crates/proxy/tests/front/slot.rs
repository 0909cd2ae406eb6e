//! A slot is the application's time, never the client's: a client that is slow to send or to take
//! holds none.

use crate::support::{
    App, Gateway, Pieces, app, asked_until, connect, gateway, get, h2_over, params, read_until, request,
    soon, until,
};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use suimon_gate::RouteMode;
use suimon_model::Limit;
use suimon_model::Rng;
use suimon_params::{DeclaredRoute, OnClientDisconnect, Params, RoutePattern};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Time between two bytes of a body that drips.
const DRIP_EVERY: Duration = Duration::from_millis(20);

/// Returns parameters for a gateway with `slots` slots for each of these paths.
fn with_slots(app: &App, slots: u32, paths: &[&str]) -> Params {
    let mut params = params(app.address);
    let declared = |path: &&str| DeclaredRoute {
        pattern: RoutePattern { method: None, path: (*path).to_owned() },
        query: None,
        mode: RouteMode::Fixed(Limit::of(slots)),
    };
    params.routes.declared = paths.iter().map(declared).collect();
    params
}

/// Sends `begin`, and then a byte now and then for as long as it is taken.
async fn drip(address: SocketAddr, begin: String) {
    let mut stream = connect(address).await;
    let mut sent = stream.write_all(begin.as_bytes()).await;
    while sent.is_ok() {
        tokio::time::sleep(DRIP_EVERY).await;
        sent = stream.write_all(b"x").await;
    }
}

/// Opens one HTTP/2 connection on which `count` bodies for `path` drip behind their first `begin`
/// bytes.
async fn drip_over_http2(gateway: &Gateway, path: &str, count: usize, begin: usize) -> JoinSet<()> {
    let stream = TokioIo::new(connect(gateway.plain).await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let mut all = JoinSet::new();
    all.spawn(async move { _ = connection.await });
    for _ in 0..count {
        let (pieces, body) = mpsc::channel(1);
        let request = Request::post(format!("http://a{path}")).header("content-length", "1000000");
        let answer = sender.send_request(request.body(Pieces(body)).unwrap());
        all.spawn(async move { _ = answer.await });
        all.spawn(async move {
            let mut piece = Bytes::from(vec![b'x'; begin.max(1)]);
            while pieces.send(piece).await.is_ok() {
                tokio::time::sleep(DRIP_EVERY).await;
                piece = Bytes::from_static(b"x");
            }
        });
    }
    all
}

#[tokio::test]
async fn bodies_that_drip_hold_no_slot() {
    for count in [2, 20] {
        for expects in ["", "Expect: 100-continue\r\n"] {
            let app = app().await;
            let gateway = gateway(with_slots(&app, 2, &["/echo"]));
            let head = format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n{expects}\r\n");
            let mut drips = JoinSet::new();
            (0..count).for_each(|_| _ = drips.spawn(drip(gateway.plain, head.clone())));
            until("all have come", || gateway.view().requests == count).await;
            for _ in 0..3 {
                let answer = gateway.ask(request("POST", "/echo", &[], "hello")).await;
                assert!(answer.text().starts_with("5 "), "{}", answer.text());
            }
            if expects.is_empty() {
                assert_eq!(app.state.begun.load(SeqCst), 3, "the application knows of none of them");
            }
            drop(drips);
            until("nothing is left", || gateway.view().connections_open == 0).await;
            until("and nothing is held", || gateway.view().buffered_bytes == 0).await;
            until("nor counted", || (gateway.in_flight(), gateway.waiting()) == (0, 0)).await;
        }
    }
}

#[tokio::test]
async fn bodies_that_drip_over_one_http2_connection_hold_no_slot() {
    let app = app().await;
    let gateway = gateway(with_slots(&app, 2, &["/echo"]));
    let drips = drip_over_http2(&gateway, "/echo", 20, 1).await;
    until("all have come", || gateway.view().requests == 20).await;
    for _ in 0..3 {
        assert_eq!(gateway.ask(request("POST", "/echo", &[], "hello")).await.status, 200);
    }
    assert_eq!(app.state.begun.load(SeqCst), 3, "the application knows of none of them");
    drop(drips);
    until("nothing is left", || gateway.view().connections_open == 0).await;
    until("and nothing is held", || gateway.view().buffered_bytes == 0).await;
}

#[tokio::test]
async fn bodies_that_drip_behind_a_long_beginning_hold_no_slot_for_long() {
    for over_http2 in [false, true] {
        let app = app().await;
        let gateway = gateway(with_slots(&app, 2, &["/echo"]));
        let begin = 80 << 10;
        let head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n".to_owned();
        let mut drips = JoinSet::new();
        if over_http2 {
            drips = drip_over_http2(&gateway, "/echo", 20, begin).await;
        } else {
            let begun = head + &"x".repeat(begin);
            (0..20).for_each(|_| _ = drips.spawn(drip(gateway.plain, begun.clone())));
        }
        until("all are in the application, without a slot", || gateway.view().gate.suspended == 20).await;
        assert_eq!((gateway.in_flight(), gateway.waiting()), (0, 0));
        for _ in 0..3 {
            assert_eq!(gateway.ask(request("POST", "/echo", &[], "hello")).await.status, 200);
        }
        drop(drips);
        until("nothing is left", || gateway.view().connections_open == 0).await;
        until("nor counted", || (gateway.in_flight(), gateway.view().gate.suspended) == (0, 0)).await;
        assert_eq!(gateway.view().buffered_bytes, 0);
        let counts = gateway.view().routes[1].gate.counts;
        assert_eq!((counts.offered, counts.completed), (23, 3));
        assert_eq!(counts.abandoned + counts.failed, 20, "each has ended once");
    }
}

#[tokio::test]
async fn a_dozen_uploads_over_one_http2_connection_all_come_to_the_gate() {
    const UPLOADS: usize = 12;
    let app = app().await;
    let gateway = gateway(with_slots(&app, 1, &["/hold"]));
    let first = gateway.occupy(&app).await;
    let (mut sender, _driver) = h2_over(connect(gateway.plain).await).await;
    let mut answers = JoinSet::new();
    for waiting in 1..=UPLOADS {
        // More than is read before the gate is asked: the rest lies unread.
        let body = Full::new(Bytes::from(vec![b'x'; 100 << 10]));
        answers.spawn(sender.send_request(Request::post("http://a/hold").body(body).unwrap()));
        until("it waits, too", || gateway.waiting() == waiting).await;
    }
    app.state.release(1 + UPLOADS);
    while let Some(answer) = soon(answers.join_next()).await {
        assert_eq!(answer.unwrap().unwrap().status(), 200);
    }
    assert_eq!(first.await.unwrap().status, 200);
}

/// Begins an upload of 200,000 bytes to `path`, whose last one is still to come.
async fn upload(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = connect(address).await;
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'x'; 199_999]).await.unwrap();
    stream
}

#[tokio::test]
async fn a_slow_upload_has_its_slot_again_before_the_application_has_the_end_of_it() {
    let app = app().await;
    let gateway = gateway(with_slots(&app, 1, &["/hold"]));
    let mut slow = upload(gateway.plain, "/hold").await;
    until("it holds no slot", || gateway.view().gate.suspended == 1).await;
    let first = gateway.occupy(&app).await;
    let mut later = connect(gateway.plain).await;
    later.write_all(b"GET /hold HTTP/1.1\r\nHost: a\r\nX-Who: later\r\n\r\n").await.unwrap();
    until("another waits", || gateway.waiting() == 1).await;
    slow.write_all(b"x").await.unwrap();
    until("it waits for its slot, too", || gateway.waiting() == 2).await;
    assert_eq!((gateway.in_flight(), gateway.view().gate.suspended), (1, 0));
    app.state.release(1);
    assert_eq!(first.await.unwrap().status, 200);
    until("it goes first", || gateway.waiting() == 1).await;
    app.state.release(1);
    read_until(&mut slow, "held 200000").await;
    app.state.release(1);
    read_until(&mut later, "held 0").await;
    until("nothing is left", || (gateway.in_flight(), gateway.waiting()) == (0, 0)).await;
    assert_eq!(gateway.view().routes[1].gate.counts.completed, 3);
}

#[tokio::test]
async fn of_too_many_slow_uploads_the_slowest_is_broken_off() {
    let app = app().await;
    let mut params = with_slots(&app, 1, &["/echo"]);
    params.limits.slow_uploads = 1;
    params.spool.bytes_max = 0;
    let gateway = gateway(params);
    let mut slow = upload(gateway.plain, "/echo").await;
    until("it holds no slot", || gateway.view().gate.suspended == 1).await;
    // It has been waited for longer than the one that comes now, for as many bytes.
    let mut quick = upload(gateway.plain, "/echo").await;
    read_until(&mut slow, "408").await;
    until("the other holds no slot", || gateway.view().gate.suspended == 1).await;
    quick.write_all(b"x").await.unwrap();
    read_until(&mut quick, "200000 ").await;
    until("nothing is left", || (gateway.in_flight(), gateway.view().gate.suspended) == (0, 0)).await;
}

/// Asks for an answer of many bytes and takes nothing of it.
async fn takes_nothing(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = connect(address).await;
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    stream
}

#[tokio::test]
async fn whoever_takes_nothing_of_a_long_answer_holds_no_slot() {
    for over_http2 in [false, true] {
        let app = app().await;
        let gateway = gateway(with_slots(&app, 2, &["/big"]));
        let (mut kept, mut streams) = (Vec::new(), JoinSet::new());
        if over_http2 {
            let (mut sender, driver) = h2_over(connect(gateway.plain).await).await;
            for _ in 0..6 {
                let mut big = get("http://a/big?30000000", &[]);
                big.headers_mut().remove("host");
                // Its head is taken, its body is not: its window closes.
                let answer = sender.send_request(big);
                streams.spawn(async move {
                    let answer = answer.await;
                    std::future::pending::<()>().await;
                    drop(answer);
                });
            }
            streams.spawn(async move { _ = driver.await });
        } else {
            for _ in 0..6 {
                kept.push(takes_nothing(gateway.plain, "/big?30000000").await);
            }
        }
        until("all have begun, and none holds a slot", || {
            app.state.begun.load(SeqCst) == 6 && gateway.in_flight() == 0
        })
        .await;
        assert_eq!(gateway.get("/big?10").await.body.len(), 10);
        let view = gateway.view();
        assert_eq!(view.routes[1].gate.counts.completed, 7);
        assert!(
            view.routes[1].gate.service_seconds < 0.25,
            "what the client takes is not the application's time"
        );
        drop((kept, streams));
        until("nothing is held", || gateway.view().buffered_bytes == 0).await;
    }
}

#[tokio::test]
async fn a_long_download_that_flows_slowly_is_whole() {
    const LENGTH: usize = 8_000_000;
    let app = app().await;
    let gateway = gateway(with_slots(&app, 1, &["/big"]));
    let mut stream = takes_nothing(gateway.plain, &format!("/big?{LENGTH}")).await;
    until("it holds no slot", || app.state.begun.load(SeqCst) == 1 && gateway.in_flight() == 0).await;
    assert_eq!(gateway.get("/big?10").await.body.len(), 10);
    let (mut count, mut piece) = (0, vec![0; 256 << 10]);
    loop {
        let read = soon(stream.read(&mut piece)).await.unwrap();
        if read == 0 {
            break;
        }
        count += piece[..read].iter().filter(|byte| **byte == b'x').count();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(count, LENGTH);
}

/// Opens an HTTP/2 connection whose client takes heads and nothing of any body.
async fn shut_windows(gateway: &Gateway) -> SendRequest<Full<Bytes>> {
    windows_of(gateway, 0).await
}

/// Opens an HTTP/2 connection whose client takes `bytes` bytes of each body before it asks for
/// more.
async fn windows_of(gateway: &Gateway, bytes: u32) -> SendRequest<Full<Bytes>> {
    let stream = TokioIo::new(connect(gateway.plain).await);
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (sender, connection) = builder.initial_stream_window_size(bytes).handshake(stream).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn over_http2(path: &str) -> Request<Full<Bytes>> {
    Request::get(format!("http://a{path}")).body(Full::default()).unwrap()
}

#[tokio::test]
async fn what_is_held_for_shut_windows_counts_and_their_streams_are_reset() {
    const STREAMS: usize = 20;
    const LENGTH: usize = 900_000;
    let app = app().await;
    let mut params = with_slots(&app, 2, &["/sized"]);
    params.timeouts.body_write = Duration::from_secs(2);
    let gateway = gateway(params);
    let mut sender = shut_windows(&gateway).await;
    let mut answers = Vec::new();
    for _ in 0..STREAMS {
        answers.push(soon(sender.send_request(over_http2(&format!("/sized?{LENGTH}")))).await.unwrap());
    }
    until("all is held and counted", || gateway.view().buffered_bytes >= STREAMS * LENGTH).await;
    for answer in answers {
        soon(answer.into_body().collect()).await.expect_err("reset in time");
    }
    until("and nothing is held", || gateway.view().buffered_bytes == 0).await;
    assert_eq!(gateway.observer.upstream()[0].in_flight, 0);
    assert_eq!(gateway.view().connections_open, 1, "the connection is as usable as before");
}

#[tokio::test]
async fn shut_windows_hold_no_connection_to_the_application_for_long() {
    let app = app().await;
    let mut params = with_slots(&app, 2, &["/echo"]);
    params.routes.ungated.push("/big".to_owned());
    params.timeouts.body_write = Duration::from_secs(1);
    let gateway = gateway(params);
    let mut sender = shut_windows(&gateway).await;
    let mut answers = Vec::new();
    for _ in 0..12 {
        answers.push(soon(sender.send_request(over_http2("/big?30000000"))).await.unwrap());
    }
    until("the application is let go of", || gateway.observer.upstream()[0].in_flight == 0).await;
    for answer in answers {
        soon(answer.into_body().collect()).await.expect_err("reset in time");
    }
}

/// Leaves the ends of many answers for `path` lying, and asks on all the while.
async fn leaves_ends_lying(app: &App, path: &str, ungated: bool) {
    const STREAMS: usize = 20;
    // One piece.
    const LENGTH: usize = 4000;
    let mut params = with_slots(app, 2, &[path]);
    params.timeouts.body_write = Duration::from_secs(1);
    if ungated {
        params.routes.ungated.push(path.to_owned());
    }
    let gateway = gateway(params);
    // One byte of window, and the library takes over a piece of any length.
    let mut sender = windows_of(&gateway, 1).await;
    let mut answers = Vec::new();
    for _ in 0..STREAMS {
        answers.push(soon(sender.send_request(over_http2(&format!("{path}?{LENGTH}")))).await.unwrap());
    }
    until("all is held and counted", || gateway.view().buffered_bytes >= STREAMS * LENGTH).await;
    asked_until("the connection is closed", DRIP_EVERY, async || {
        let asked = soon(sender.send_request(over_http2("/head"))).await;
        asked.is_err().then_some(())
    })
    .await;
    until("it is gone", || gateway.view().connections_open == 0).await;
    until("and nothing is held", || gateway.view().buffered_bytes == 0).await;
}

#[tokio::test]
async fn the_ends_of_answers_that_are_not_taken_count_and_their_connection_is_closed() {
    let app = app().await;
    tokio::join!(
        leaves_ends_lying(&app, "/sized", false),
        leaves_ends_lying(&app, "/big", false),
        leaves_ends_lying(&app, "/sized", true),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_a_slow_line_takes_in_its_time_are_whole() {
    const STREAMS: usize = 120;
    const LENGTH: usize = 130_000;
    let app = app().await;
    let mut params = with_slots(&app, STREAMS as u32, &["/sized"]);
    params.timeouts.body_write = Duration::from_millis(1200);
    let gateway = gateway(params);
    let mut line = connect(gateway.plain).await;
    let (near, mut far) = tokio::io::duplex(16 << 10);
    // Some seconds for all of them.
    tokio::spawn(async move {
        let (mut from, mut to) = line.split();
        let (mut near_from, mut near_to) = tokio::io::split(&mut far);
        let slowly = async {
            let mut piece = vec![0; 32 << 10];
            while let Ok(count @ 1..) = from.read(&mut piece).await {
                near_to.write_all(&piece[..count]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = slowly => {}
            _ = tokio::io::copy(&mut near_from, &mut to) => {}
        }
    });
    // Every answer is the library's at once: it is the line that is slow, and no window.
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(1 << 20).initial_connection_window_size(64 << 20);
    let (mut sender, connection) = builder.handshake(TokioIo::new(near)).await.unwrap();
    tokio::spawn(connection);
    let mut answers = JoinSet::new();
    for _ in 0..STREAMS {
        let answer = sender.send_request(over_http2(&format!("/sized?{LENGTH}")));
        answers.spawn(async move { answer.await.unwrap().into_body().collect().await });
    }
    while let Some(answer) = soon(answers.join_next()).await {
        assert_eq!(answer.unwrap().expect("whole").to_bytes().len(), LENGTH);
    }
}

#[tokio::test]
async fn no_more_is_held_for_shut_windows_than_may_be() {
    const LENGTH: usize = 900_000;
    let app = app().await;
    let mut params = with_slots(&app, 2, &["/sized"]);
    params.limits.buffered_bytes = 3_000_000;
    let gateway = gateway(params);
    let mut sender = shut_windows(&gateway).await;
    let mut answers = Vec::new();
    for _ in 0..30 {
        answers.push(soon(sender.send_request(over_http2(&format!("/sized?{LENGTH}")))).await.unwrap());
        let held = gateway.view().buffered_bytes;
        // Of each of those behind the bound a piece is held, which is as long as one read.
        assert!(held < 3_000_000 + LENGTH + 30 * (64 << 10), "{held}");
    }
    until("none holds a slot", || gateway.in_flight() == 0).await;
    assert_eq!(gateway.get("/sized?10").await.body.len(), 10, "and others are served");
    drop(answers);
    until("and nothing is held", || gateway.view().buffered_bytes == 0).await;
}

#[tokio::test]
async fn a_client_that_resets_all_it_asks_for_is_cut_off() {
    let app = app().await;
    let mut params = with_slots(&app, 2, &["/echo"]);
    params.routes.ungated.push("/hold".to_owned());
    let gateway = gateway(params);
    let (mut sender, _driver) = h2_over(connect(gateway.plain).await).await;
    let mut resets = 0;
    while soon(sender.ready()).await.is_ok() && resets < 2000 {
        let begun = app.state.begun.load(SeqCst);
        let asked = tokio::spawn(sender.send_request(over_http2("/hold")));
        until("it has come, or was refused", || app.state.begun.load(SeqCst) > begun || asked.is_finished())
            .await;
        asked.abort();
        resets += 1;
    }
    assert!((200..1000).contains(&resets), "{resets}");
    until("the connection is closed", || gateway.view().connections_open == 0).await;
    until("and the application at rest", || gateway.observer.upstream()[0].in_flight == 0).await;
}

#[tokio::test]
async fn slow_readers_of_a_file_keep_no_page_of_a_cold_gateway_waiting() {
    let app = app().await;
    let mut params = params(app.address);
    params.routes.declared.clear();
    let gateway = gateway(params);
    let mut readers = Vec::new();
    for _ in 0..6 {
        readers.push(takes_nothing(gateway.plain, "/big?20000000").await);
    }
    until("all have come", || gateway.view().requests == 6).await;
    for page in 0..20 {
        assert_eq!(gateway.get(&format!("/page-{page}")).await.status, 200);
    }
    until("all are begun, and none holds a slot", || {
        app.state.begun.load(SeqCst) == 26 && gateway.in_flight() == 0
    })
    .await;
    assert!(gateway.view().buffered_bytes > 0, "while they have still to take theirs");
}

/// Does one thing that a client may do, and comes to an end by itself.
async fn whatever(address: SocketAddr, seed: u64) {
    let mut rng = Rng::stream(seed, 1);
    let path = ["/echo", "/big?3000000", "/sized?200000", "/work?20", "/missing"][rng.below(5)];
    let pause = Duration::from_millis(rng.below(400) as u64);
    if rng.chance(0.4) {
        let (mut sender, driver) = h2_over(connect(address).await).await;
        let answer = tokio::time::timeout(pause, sender.send_request(over_http2(path))).await;
        tokio::time::sleep(pause / 2).await;
        if rng.chance(0.5) {
            drop(answer);
            tokio::time::sleep(pause / 2).await;
        }
        driver.abort();
        return;
    }
    let mut stream = connect(address).await;
    let length = [0, 10, 200_000][rng.below(3)];
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    let _ = stream.write_all(head.as_bytes()).await;
    let sent = if rng.chance(0.5) { length } else { length / 2 };
    let _ = tokio::time::timeout(pause, stream.write_all(&vec![b'x'; sent])).await;
    tokio::time::sleep(pause).await;
    if rng.chance(0.3) {
        let _ = tokio::time::timeout(pause, stream.write_all(&vec![b'x'; length - sent])).await;
    }
    if rng.chance(0.5) {
        let _ = tokio::time::timeout(pause, stream.read(&mut vec![0; 64 << 10])).await;
    }
    if rng.chance(0.3) {
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_clients_do_nothing_of_them_stays() {
    for on_client_disconnect in [OnClientDisconnect::Finish, OnClientDisconnect::Cancel] {
        let app = app().await;
        let mut params = with_slots(&app, 2, &["/echo", "/big", "/sized", "/work"]);
        params.on_client_disconnect = Some(on_client_disconnect);
        params.limits.slow_uploads = 4;
        params.limits.response_buffer_bytes = 256 << 10;
        params.timeouts.body_write = Duration::from_millis(500);
        let gateway = gateway(params);
        let mut clients = JoinSet::new();
        (0..150).for_each(|seed| _ = clients.spawn(whatever(gateway.plain, seed)));
        while let Some(client) = soon(clients.join_next()).await {
            client.unwrap();
        }
        until("all connections are closed", || gateway.view().connections_open == 0).await;
        until("nothing is inside", || {
            let gate = gateway.view().gate;
            (gate.in_flight, gate.waiting, gate.suspended) == (0, 0, 0)
        })
        .await;
        until("and nothing is held", || gateway.view().buffered_bytes == 0).await;
        until("of the application either", || gateway.observer.upstream()[0].in_flight == 0).await;
        for route in gateway.view().routes {
            let counts = route.gate.counts;
            let ended = counts.completed + counts.failed + counts.abandoned + counts.refused;
            assert_eq!(counts.offered, ended, "each has ended once");
        }
    }
}

#[tokio::test]
async fn lines_of_headers_are_bounded_over_http2_too() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let (mut sender, _driver) = h2_over(connect(gateway.plain).await).await;
    for (lines, status) in [(90, 200), (150, 431), (1500, 431)] {
        let mut request = Request::get("http://a/head");
        for line in 0..lines {
            request = request.header(format!("x-{line}"), "y");
        }
        let answer = soon(sender.send_request(request.body(Full::default()).unwrap())).await.unwrap();
        assert_eq!(answer.status(), status, "{lines} lines");
    }
    assert_eq!(app.state.begun.load(SeqCst), 1);
}

#[tokio::test]
async fn a_body_must_keep_a_pace_and_come_to_an_end() {
    let app = app().await;
    let mut params = with_slots(&app, 2, &["/echo"]);
    params.limits.body_rate_min = 100_000;
    params.timeouts.body_read = Duration::from_millis(300);
    params.timeouts.body_total = Duration::from_secs(3);
    let gateway = gateway(params);
    let long = async |bytes: usize, pieces: usize| {
        let mut stream = connect(gateway.plain).await;
        let head = format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", bytes * pieces);
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..pieces {
            if stream.write_all(&vec![b'x'; bytes]).await.is_err() {
                break;
            }
            tokio::time::sleep(DRIP_EVERY).await;
        }
        read_until(&mut stream, "\r\n\r\n").await
    };
    // Both go on for longer than any pause may be.
    assert!(long(20_000, 50).await.starts_with("HTTP/1.1 200"), "a long one that flows is taken");
    assert!(long(10, 1000).await.starts_with("HTTP/1.1 408"), "one that drips is not");
    assert!(long(20_000, 1000).await.starts_with("HTTP/1.1 408"), "nor one without end");
    until("no slot is held", || gateway.in_flight() == 0).await;
}

#[tokio::test]
async fn a_body_over_http2_whose_end_never_comes_ends_in_time() {
    let app = app().await;
    let mut params = with_slots(&app, 2, &["/echo"]);
    params.timeouts.body_read = Duration::from_millis(300);
    let gateway = gateway(params);
    let stream = TokioIo::new(connect(gateway.plain).await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    for (length, declared) in [(9, true), (9, false), (100_000, true), (100_000, false)] {
        let (pieces, body) = mpsc::channel(1);
        let mut request = Request::post("http://a/echo").header("trailer", "x-sum");
        if declared {
            request = request.header("content-length", length.to_string());
        }
        pieces.send(Bytes::from(vec![b'x'; length])).await.unwrap();
        // All of it is there but the trailers.
        let answer = soon(sender.send_request(request.body(Pieces(body)).unwrap())).await.unwrap();
        assert_eq!(answer.status(), 408, "{length}, declared: {declared}");
        let _ = soon(answer.into_body().collect()).await;
        until("nothing is inside", || {
            let gate = gateway.view().gate;
            (gate.in_flight, gate.waiting, gate.suspended) == (0, 0, 0)
        })
        .await;
        until("and nothing is held", || gateway.view().buffered_bytes == 0).await;
        soon(pieces.closed()).await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_with_half_a_body_sent_was_never_in_the_line() {
    let app = app().await;
    let gateway = gateway(with_slots(&app, 1, &["/echo"]));
    for body in ["Content-Length: 10\r\n\r\n01234", "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n"] {
        let before = gateway.view().disconnects_waiting;
        let mut stream = connect(gateway.plain).await;
        stream.write_all(format!("POST /echo HTTP/1.1\r\nHost: a\r\n{body}").as_bytes()).await.unwrap();
        until("half of it is here", || gateway.view().buffered_bytes == 5).await;
        drop(stream);
        until("it has gone", || gateway.view().disconnects_waiting == before + 1).await;
        until("and nothing is held", || gateway.view().buffered_bytes == 0).await;
    }
    assert_eq!(app.state.begun.load(SeqCst), 0);
    assert_eq!(gateway.view().routes[1].gate.counts.offered, 0);
}

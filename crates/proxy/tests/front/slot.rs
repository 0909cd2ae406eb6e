//! A slot is the application's time, never the client's: whoever is slow to send or to take holds none.

use crate::support::{App, Gateway, Pieces, app, connect, gateway, params, read_until, request, until};
use bytes::Bytes;
use http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use suimon_gate::Mode;
use suimon_proxy::params::{DeclaredRoute, Params, RoutePattern};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Time between two bytes of a body that drips.
const DRIP_EVERY: Duration = Duration::from_millis(20);

/// Returns parameters for a gateway with so many slots for each of these paths.
fn with_slots(app: &App, slots: u32, paths: &[&str]) -> Params {
    let mut params = params(app.address);
    let declared = |path: &&str| DeclaredRoute {
        pattern: RoutePattern { method: None, path: (*path).to_owned() },
        query: None,
        mode: Mode::Fixed(slots),
    };
    params.routes.declared = paths.iter().map(declared).collect();
    params
}

/// Sends `begin`, and then a byte now and then for as long as it is taken.
async fn drip(address: std::net::SocketAddr, begin: String) {
    let mut stream = connect(address).await;
    let mut sent = stream.write_all(begin.as_bytes()).await;
    while sent.is_ok() {
        tokio::time::sleep(DRIP_EVERY).await;
        sent = stream.write_all(b"x").await;
    }
}

/// Opens one HTTP/2 connection on which so many bodies for `path` drip behind their first `begin` bytes.
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
        for expects in [""] {
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
async fn a_body_must_keep_a_pace_and_come_to_an_end() {
    let app = app().await;
    let mut params = with_slots(&app, 2, &["/echo"]);
    params.limits.body_rate = 100_000;
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
async fn a_client_that_leaves_with_half_a_body_sent_was_never_in_the_line() {
    let app = app().await;
    let gateway = gateway(with_slots(&app, 1, &["/echo"]));
    for body in ["Content-Length: 10\r\n\r\n01234", "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n"] {
        let before = gateway.view().gone_while_waiting;
        let mut stream = connect(gateway.plain).await;
        stream.write_all(format!("POST /echo HTTP/1.1\r\nHost: a\r\n{body}").as_bytes()).await.unwrap();
        until("half of it is here", || gateway.view().buffered_bytes == 5).await;
        drop(stream);
        until("it has gone", || gateway.view().gone_while_waiting == before + 1).await;
        until("and nothing is held", || gateway.view().buffered_bytes == 0).await;
    }
    assert_eq!(app.state.begun.load(SeqCst), 0);
    assert_eq!(gateway.view().routes[1].gate.counts.offered, 0);
}

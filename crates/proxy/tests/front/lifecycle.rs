//! Start, failure of the application, and the end.

use crate::passage::certificate;
use crate::support::{Nobody, app, gateway, get, params, read_until, request, soon, until};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use suimon_proxy::{Server, StartError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn a_port_in_use_is_named_with_the_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut params = params("127.0.0.1:1".parse().unwrap());
    params.listen.plain = Some(taken.local_addr().unwrap());
    let error = Server::bind(params).unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, StartError::Listen(..)));
    assert!(
        message.contains(&taken.local_addr().unwrap().to_string()) && message.contains("ss -ltnp"),
        "{message}"
    );
}

#[tokio::test]
async fn what_cannot_be_used_is_said_at_the_start() {
    let base = || params("127.0.0.1:1".parse().unwrap());
    let message = |params| Server::bind(params).unwrap_err().to_string();
    let mut nowhere = base();
    nowhere.listen.plain = None;
    assert!(message(nowhere).contains("no address to listen on"));
    let mut no_nodes = base();
    no_nodes.upstream.nodes.clear();
    assert!(message(no_nodes).contains("no nodes"));
    let mut no_keys = base();
    no_keys.lease.keys_file = Some("/nowhere/at/all".into());
    assert!(message(no_keys).contains("/nowhere/at/all"));
    let files = certificate("a");
    let mut mixed = base();
    let mut tls = files.listen();
    tls.key = certificate("b").key();
    mixed.listen.tls = Some(tls);
    assert!(message(mixed).contains("key file"), "its directory is gone");
    let other = certificate("b");
    let mut tls = files.listen();
    tls.key = other.key();
    let mut mixed = base();
    mixed.listen.tls = Some(tls);
    assert!(message(mixed).contains("do they belong together"));
}

#[tokio::test]
async fn an_application_that_is_not_there_is_told_honestly() {
    let nobody = Nobody::new();
    let gateway = gateway(params(nobody.address));
    let answer = gateway.get("/").await;
    assert_eq!(answer.status, 502);
    assert!(answer.text().contains("cannot be reached"), "{}", answer.text());
    assert!(answer.header("proxy-status").contains("connection_refused"));
    assert_eq!(answer.header("retry-after"), "5");
    let page = gateway.ask(get("/", &[("accept", "text/html")])).await;
    assert!(page.text().contains("<h1>This site is not answering right now</h1>"));
    assert_eq!(gateway.in_flight(), 0);
    assert_eq!(gateway.view().upstream_errors, 2);
}

#[tokio::test]
async fn an_application_that_breaks_off_or_is_silent_frees_its_slots() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut params = params(listener.local_addr().unwrap());
    params.upstream.first_byte_timeout = Duration::from_millis(200);
    params.upstream.health.interval = Duration::ZERO;
    let gateway = gateway(params);
    let broken = tokio::spawn(async move {
        for answer in [
            "",
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "nonsense\r\n\r\n",
        ] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        let mut kept = Vec::new();
        loop {
            kept.push(listener.accept().await);
        }
    });
    for status in [502, 502] {
        let answer = gateway.ask(request("POST", "/hold", &[], "x")).await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    // Here the head may have gone out already: then all that can be done is not to pretend that the
    // body is complete.
    let mut stream = TcpStream::connect(gateway.plain).await.unwrap();
    stream
        .write_all(b"POST /hold HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx")
        .await
        .unwrap();
    let mut all = Vec::new();
    let _ = soon(stream.read_to_end(&mut all)).await;
    let all = String::from_utf8_lossy(&all);
    assert!(all.starts_with("HTTP/1.1 502") || !all.contains("\r\n0\r\n"), "{all}");
    assert_eq!(gateway.ask(request("POST", "/hold", &[], "x")).await.status, 502);
    let silent = gateway.ask(request("POST", "/hold", &[], "x")).await;
    assert_eq!(silent.status, 504, "{}", silent.text());
    assert!(silent.text().contains("may still have done"), "{}", silent.text());
    until("all slots are free", || gateway.in_flight() == 0).await;
    let counts = gateway.view().routes[1].gate.counts;
    assert_eq!((counts.offered, counts.failed), (5, 5));
    broken.abort();
}

#[tokio::test]
async fn an_application_that_dies_under_load_and_comes_back_leaves_no_slot_behind() {
    let dying = app().await;
    let address = dying.address;
    let gateway = gateway(params(address));
    gateway.occupy(&dying).await;
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let plain = gateway.plain;
            tokio::spawn(async move {
                crate::support::ask_over(TcpStream::connect(plain).await.unwrap(), get("/hold", &[])).await
            })
        })
        .collect();
    until("all wait", || gateway.waiting() == 20).await;
    dying.kill().await;
    for waited in waiting {
        let answer = soon(waited).await.unwrap();
        assert_eq!(answer.status, 502, "told honestly: {}", answer.text());
    }
    until("all slots are free", || gateway.in_flight() == 0).await;
    let again = crate::support::app_at(address).await;
    again.state.release(1);
    soon(async { while gateway.get("/hold").await.status != 200 {} }).await;
}

#[tokio::test]
async fn an_error_of_the_application_passes_and_counts_as_one() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    app.state.release(1);
    assert_eq!(gateway.get("/hold/fail").await.status, 500);
    let view = gateway.view();
    assert_eq!((view.routes[0].gate.counts.failed, view.routes[0].statuses[4]), (1, 1));
}

#[tokio::test]
async fn a_shutdown_lets_everything_under_way_end_and_loses_nothing() {
    let app = app().await;
    let mut gateway = gateway(params(app.address));
    let working = gateway.occupy(&app).await;
    let plain = gateway.plain;
    let waiting = tokio::spawn(async move {
        let stream = TcpStream::connect(plain).await.unwrap();
        crate::support::ask_over(stream, get("/hold", &[])).await
    });
    until("one waits", || gateway.waiting() == 1).await;
    let mut idle = TcpStream::connect(plain).await.unwrap();
    idle.write_all(b"GET /head HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    read_until(&mut idle, "host: a").await;

    let ended = gateway.stop();
    let mut rest = Vec::new();
    soon(idle.read_to_end(&mut rest)).await.unwrap();
    until("nobody is accepted any more", || std::net::TcpStream::connect(plain).is_err()).await;
    assert!(!ended.is_finished());
    app.state.release(2);
    assert_eq!(working.await.unwrap().status, 200);
    assert_eq!(waiting.await.unwrap().status, 200);
    soon(ended).await.unwrap();
    assert_eq!(app.state.begun.load(SeqCst), 3);
}

#[tokio::test]
async fn a_shutdown_ends_even_if_a_client_does_not() {
    let app = app().await;
    let mut params = params(app.address);
    params.timeouts.drain = Duration::from_millis(100);
    let mut gateway = gateway(params);
    let _working = gateway.occupy(&app).await;
    soon(gateway.stop()).await.unwrap();
}

#[tokio::test]
async fn more_connections_than_allowed_wait_their_turn() {
    let app = app().await;
    let mut params = params(app.address);
    params.limits.connections = 2;
    let gateway = gateway(params);
    let first = gateway.occupy(&app).await;
    let mut second = TcpStream::connect(gateway.plain).await.unwrap();
    second.write_all(b"GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    until("it waits for its slot", || gateway.waiting() == 1).await;
    let mut third = TcpStream::connect(gateway.plain).await.unwrap();
    third.write_all(b"GET /head HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let mut byte = [0];
    assert!(tokio::time::timeout(Duration::from_millis(100), third.read(&mut byte)).await.is_err());
    app.state.release(1);
    assert_eq!(soon(first).await.unwrap().status, 200, "a client that is being answered stays");
    read_until(&mut third, "host: a").await;
    app.state.release(1);
    read_until(&mut second, "held").await;
}

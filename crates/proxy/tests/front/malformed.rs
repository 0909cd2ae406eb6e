//! Requests that two parsers could read differently, byte by byte.

use crate::support::{app, gateway, params, raw, read_until};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a line of the list expects: a status, or any of several.
type Case = (&'static str, &'static str, &'static [&'static str]);

const HOST: &str = "Host: a\r\n";

/// `~` stands for a good Host line. Behind each request stands a second one, which must never be
/// answered.
const REFUSED: &[Case] = &[
    (
        "CL and TE",
        "POST / HTTP/1.1\r\n~Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        &["400"],
    ),
    (
        "TE and CL",
        "POST / HTTP/1.1\r\n~Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        &["400"],
    ),
    ("equal CLs", "POST / HTTP/1.1\r\n~Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", &["400"]),
    ("different CLs", "POST / HTTP/1.1\r\n~Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!", &["400"]),
    ("CL list", "POST / HTTP/1.1\r\n~Content-Length: 2, 2\r\n\r\nhi", &["400"]),
    ("CL +5", "POST / HTTP/1.1\r\n~Content-Length: +5\r\n\r\nhello", &["400"]),
    ("CL hex", "POST / HTTP/1.1\r\n~Content-Length: 0x5\r\n\r\nhello", &["400"]),
    ("CL negative", "POST / HTTP/1.1\r\n~Content-Length: -1\r\n\r\n", &["400"]),
    ("CL over 2^64", "POST / HTTP/1.1\r\n~Content-Length: 18446744073709551617\r\n\r\nh", &["400", "431"]),
    ("CL empty", "POST / HTTP/1.1\r\n~Content-Length: \r\n\r\n", &["400"]),
    ("TE xchunked", "POST / HTTP/1.1\r\n~Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", &["400", "501"]),
    (
        "TE chunked, identity",
        "POST / HTTP/1.1\r\n~Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        &["400", "501"],
    ),
    ("TE gzip, chunked", "POST / HTTP/1.1\r\n~Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", &["501"]),
    (
        "TE chunked, chunked",
        "POST / HTTP/1.1\r\n~Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        &["400", "501"],
    ),
    (
        "TE twice",
        "POST / HTTP/1.1\r\n~Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        &["400"],
    ),
    ("TE space before colon", "POST / HTTP/1.1\r\n~Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", &["400"]),
    ("TE vertical tab", "POST / HTTP/1.1\r\n~Transfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\n", &["400"]),
    ("TE in HTTP/1.0", "POST / HTTP/1.0\r\n~Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", &["400"]),
    ("bare CR", "GET / HTTP/1.1\r\n~X: a\rb\r\n\r\n", &["400"]),
    ("NUL", "GET / HTTP/1.1\r\n~X: a\0b\r\n\r\n", &["400"]),
    ("line folding", "GET / HTTP/1.1\r\n~X: a\r\n b\r\n\r\n", &["400"]),
    ("folded TE", "POST / HTTP/1.1\r\n~Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", &["400"]),
    ("space in the path", "GET /a b HTTP/1.1\r\n~\r\n", &["400"]),
    ("no Host", "GET / HTTP/1.1\r\n\r\n", &["400"]),
    ("two Hosts", "GET / HTTP/1.1\r\n~Host: a\r\n\r\n", &["400"]),
    ("empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", &["400"]),
    ("user in Host", "GET / HTTP/1.1\r\nHost: me@a\r\n\r\n", &["400"]),
    ("other Host in the target", "GET http://b/ HTTP/1.1\r\n~\r\n", &["400"]),
    ("user in the target", "GET http://me@a/ HTTP/1.1\r\n~\r\n", &["400"]),
    ("ftp", "GET ftp://a/ HTTP/1.1\r\n~\r\n", &["400"]),
    ("CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", &["405"]),
    ("TRACE", "TRACE / HTTP/1.1\r\n~\r\n", &["405"]),
    ("Expect", "POST / HTTP/1.1\r\n~Expect: 200-ok\r\nContent-Length: 2\r\n\r\nhi", &["417"]),
    (
        "bad chunk size",
        "POST /echo HTTP/1.1\r\n~Transfer-Encoding: chunked\r\n\r\nxyz\r\nhi\r\n0\r\n\r\n",
        &["400"],
    ),
    (
        "chunk size overflow",
        "POST /echo HTTP/1.1\r\n~Transfer-Encoding: chunked\r\n\r\n11111111111111111\r\nhi\r\n0\r\n\r\n",
        &["400"],
    ),
    (
        "missing CRLF after a chunk",
        "POST /echo HTTP/1.1\r\n~Transfer-Encoding: chunked\r\n\r\n2\r\nhiXX0\r\n\r\n",
        &["400"],
    ),
    (
        "line feed in a chunk extension",
        "POST /echo HTTP/1.1\r\n~Transfer-Encoding: chunked\r\n\r\n2;a\nb\r\nhi\r\n0\r\n\r\n",
        &["400"],
    ),
    ("not HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", &["400", ""]),
    ("no version", "GET /\r\n\r\n", &["400", ""]),
];

#[tokio::test]
async fn what_could_be_read_in_two_ways_is_refused_and_nothing_behind_it_is_answered() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let mut wrong = Vec::new();
    for (name, text, allowed) in REFUSED {
        let text = text.replace('~', HOST) + "GET /smuggled HTTP/1.1\r\n" + HOST + "\r\n";
        let answer = raw(gateway.plain, text.as_bytes()).await;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        let says_why = status.is_empty() || answer.contains("application/problem+json");
        if !allowed.contains(&status) || answer.matches("HTTP/1.1 ").count() > 1 || !says_why {
            wrong.push(format!("{name}: {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(gateway.in_flight(), 0);
}

#[tokio::test]
async fn odd_but_sound_requests_are_served() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    for (name, text, part) in [
        ("bare line feeds", "GET /head HTTP/1.1\nHost: a\nConnection: close\n\n", "GET /head"),
        ("HTTP/1.0", "GET /head HTTP/1.0\r\nHost: a\r\n\r\n", "GET /head"),
        (
            "absolute target",
            "GET http://a/head HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "GET /head",
        ),
        (
            "empty lines before",
            "\r\n\r\nGET /head HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "GET /head",
        ),
        (
            "chunked with extension and trailers",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2;x=y\r\nhi\r\n0\r\nT: u\r\n\r\n",
            "2 ",
        ),
        (
            "h2c offered",
            "GET /head HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
            "GET /head",
        ),
    ] {
        let answer = raw(gateway.plain, text.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.0 200"), "{name}: {answer}");
        assert!(answer.contains(part) && !answer.contains("h2c"), "{name}: {answer}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_until_a_bad_one() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let text = "GET /head?1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\
        POST /head?3 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nxGET /head?4 HTTP/1.1\r\nHost: a\r\n\r\n";
    let answer = raw(gateway.plain, text.as_bytes()).await;
    let statuses: Vec<_> = answer.split("HTTP/1.1 ").skip(1).map(|part| &part[..3]).collect();
    assert_eq!(statuses, ["200", "200", "400"], "{answer}");
    assert_eq!(app.state.begun.load(SeqCst), 2);
}

#[tokio::test]
async fn heads_targets_and_bodies_have_their_limits() {
    let app = app().await;
    let mut params = params(app.address);
    params.limits.body_bytes = Some(1000);
    let gateway = gateway(params);
    let head = |line: &str, headers: &str| format!("{line} HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
    for (name, text, status) in [
        ("long target", head(&format!("GET /{}", "x".repeat(17 << 10)), ""), "414"),
        ("very long target", head(&format!("GET /{}", "x".repeat(70 << 10)), ""), "4"),
        ("large header", head("GET /", &format!("X: {}\r\n", "x".repeat(70 << 10))), "431"),
        ("many headers", head("GET /", &"X: y\r\n".repeat(150)), "431"),
        ("large body, declared", head("POST /echo", "Content-Length: 1001\r\n"), "413"),
        (
            "large body, chunked",
            head("POST /echo", "Transfer-Encoding: chunked\r\n")
                + "3e9\r\n"
                + &"x".repeat(1001)
                + "\r\n0\r\n\r\n",
            "413",
        ),
    ] {
        let answer = raw(gateway.plain, text.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{name}: {answer}");
        assert!(answer.contains("application/problem+json"), "{name}: {answer}");
    }
    let fits = head("POST /echo", "Content-Length: 1000\r\nConnection: close\r\n") + &"x".repeat(1000);
    assert!(raw(gateway.plain, fits.as_bytes()).await.contains("1000 "));
    assert_eq!(gateway.in_flight(), 0);
}

#[tokio::test]
async fn slow_heads_slow_bodies_and_idle_connections_are_closed() {
    let app = app().await;
    let mut params = params(app.address);
    params.timeouts.header_read = Duration::from_millis(300);
    params.timeouts.keep_alive = Duration::from_millis(600);
    params.timeouts.body_read = Duration::from_millis(300);
    let gateway = gateway(params);

    // A head that never ends, though bytes keep coming.
    let mut slow = TcpStream::connect(gateway.plain).await.unwrap();
    let trickle = async {
        slow.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if slow.write_all(b"X: y\r\n").await.is_err() {
                return;
            }
        }
    };
    crate::support::soon(trickle).await;

    // Nothing at all, and nothing more after an answer.
    assert_eq!(raw(gateway.plain, b"").await, "");
    let mut idle = TcpStream::connect(gateway.plain).await.unwrap();
    for _ in 0..2 {
        idle.write_all(b"GET /head HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        read_until(&mut idle, "host: a").await;
    }
    let mut rest = Vec::new();
    crate::support::soon(idle.read_to_end(&mut rest)).await.unwrap();

    // A body that stops.
    let answer = raw(gateway.plain, b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhi").await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert_eq!(gateway.in_flight(), 0);
}

#[tokio::test]
async fn a_long_answer_outlives_the_limits_for_heads_and_idling() {
    let app = app().await;
    let mut params = params(app.address);
    params.timeouts.header_read = Duration::from_millis(50);
    params.timeouts.keep_alive = Duration::from_millis(50);
    let gateway = gateway(params);
    let holder = gateway.occupy(&app).await;
    // Silent connections tell that the limits have passed: each is closed by them.
    for _ in 0..4 {
        assert_eq!(raw(gateway.plain, b"").await, "");
    }
    app.state.release(1);
    assert_eq!(holder.await.unwrap().status, 200);
}

//! The life of a client's connection: how long it may be idle or silent, and who has one when there
//! are not enough.

use crate::passage::{certificate, tls_client, tls_over};
use crate::support::{
    Gateway, app, collected, connect, gateway, get, h2_over, params, raw, read_until, soon, until,
};
use crate::waiting_room::{HTML, POLL, room};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use suimon_params::{Network, Params};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How every HTTP/2 client begins.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty frame of settings.
pub(crate) const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Returns once the other side has closed.
async fn closed(stream: &mut (impl tokio::io::AsyncRead + Unpin)) {
    let mut rest = Vec::new();
    let _ = soon(stream.read_to_end(&mut rest)).await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_whatever_its_last_answer() {
    let app = app().await;
    let mut params = room(app.address);
    params.timeouts.keep_alive = Duration::from_millis(200);
    params.timeouts.disconnect_watch_after = Duration::ZERO;
    let gateway = gateway(params);
    let insider = gateway.taken().await;
    let placed = gateway.ask(get("/page", &[HTML])).await.place().unwrap();
    let case = |path: &str, headers: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
    for (name, text, status) in [
        ("a page", case("/head", &format!("Cookie: {insider}\r\n")), "200"),
        ("an error of the application", case("/hold/fail", &format!("Cookie: {insider}\r\n")), "500"),
        ("a static file", case("/a.css", ""), "200"),
        ("a waiting page", case("/page", &format!("{}: {}\r\n", HTML.0, HTML.1)), "503"),
        ("a waiting answer for programs", case("/page", ""), "503"),
        (
            "a poll, whether or not it comes too early",
            case("/page", &format!("{}: {}\r\nCookie: {placed}\r\n", POLL.0, POLL.1)),
            "200 429",
        ),
        ("a poll without a place", case("/page", &format!("{}: full\r\n", POLL.0)), "204"),
        ("an address of the room's", case("/.well-known/suimon/draw", ""), "200"),
    ] {
        app.state.release(3);
        for _ in 0..3 {
            let answer = raw(gateway.plain, text.as_bytes()).await;
            assert!(
                status.split(' ').any(|status| answer.starts_with(&format!("HTTP/1.1 {status}"))),
                "{name}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn a_client_of_http2_that_says_no_more_is_closed() {
    let app = app().await;
    let files = certificate("a");
    let mut params = params(app.address);
    params.timeouts.header_read = Duration::from_millis(200);
    params.listen.tls = Some(files.listen());
    let gateway = gateway(params);
    let plain = gateway.plain;
    for begin in [&b"P"[..], b"PRI", b"PRI * HTTP/2.0\r\n", PREFACE, &[PREFACE, &SETTINGS[..5]].concat()] {
        raw(plain, begin).await;
    }
    let tls = gateway.tls.unwrap();
    for begin in [&b""[..], PREFACE] {
        let mut stream = tls_client(tls, &files, &[b"h2"]).await;
        stream.write_all(begin).await.unwrap();
        closed(&mut stream).await;
    }
    until("all are closed", || gateway.view().connections_open == 0).await;
}

#[tokio::test]
async fn a_client_that_sends_empty_lines_alone_has_said_nothing() {
    let app = app().await;
    let mut params = params(app.address);
    params.timeouts.header_read = Duration::from_millis(200);
    params.timeouts.keep_alive = Duration::from_secs(3600);
    let gateway = gateway(params);
    let mut stream = TcpStream::connect(gateway.plain).await.unwrap();
    stream.write_all(b"\r\n").await.unwrap();
    closed(&mut stream).await;
    // Before a request they are passed over, however many there are.
    let asked =
        raw(gateway.plain, b"\r\n\r\nGET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(asked.starts_with("HTTP/1.1 200"), "{asked}");
}

#[tokio::test]
async fn clients_that_say_nothing_do_not_hold_up_a_shutdown() {
    let app = app().await;
    let files = certificate("a");
    let mut params = params(app.address);
    // Nothing but the shutdown closes them.
    params.timeouts.header_read = Duration::from_secs(3600);
    params.timeouts.handshake = Duration::from_secs(3600);
    params.timeouts.keep_alive = Duration::from_secs(3600);
    params.timeouts.drain = Duration::from_secs(3600);
    params.listen.tls = Some(files.listen());
    let mut gateway = gateway(params);
    let mut kept = Vec::new();
    for begin in [&b""[..], b"PRI", PREFACE, &[PREFACE, SETTINGS].concat()] {
        let mut stream = TcpStream::connect(gateway.plain).await.unwrap();
        stream.write_all(begin).await.unwrap();
        kept.push(stream);
    }
    let silent = TcpStream::connect(gateway.tls.unwrap()).await.unwrap();
    let over_tls = tls_client(gateway.tls.unwrap(), &files, &[b"h2"]).await;
    until("all are accepted", || gateway.view().connections >= 3).await;
    soon(gateway.stop()).await.unwrap();
    drop((kept, silent, over_tls));
}

#[tokio::test]
async fn what_a_client_of_http2_may_send_unread_is_little() {
    const WINDOW_SIZE: [u8; 2] = [0, 4];
    let app = app().await;
    let gateway = gateway(params(app.address));
    let mut stream = connect(gateway.plain).await;
    stream.write_all(&[PREFACE, SETTINGS].concat()).await.unwrap();
    let (mut of_stream, mut of_connection) = (None, None);
    while of_stream.is_none() || of_connection.is_none() {
        let mut head = [0; 9];
        soon(stream.read_exact(&mut head)).await.unwrap();
        let mut frame = vec![0; usize::from(head[2])];
        soon(stream.read_exact(&mut frame)).await.unwrap();
        let number = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
        match head[3] {
            4 if head[4] == 0 => {
                let at = frame.chunks(6).position(|setting| setting[..2] == WINDOW_SIZE).unwrap();
                of_stream = Some(number(6 * at + 2));
            }
            8 => of_connection = Some(65_535 + number(0)),
            _ => {}
        }
    }
    assert_eq!((of_stream, of_connection), (Some(64 << 10), Some(512 << 10)));
}

#[tokio::test]
async fn a_preface_in_pieces_is_one_all_the_same() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let mut stream = connect(gateway.plain).await;
    let begin = [PREFACE, SETTINGS].concat();
    for piece in [&begin[..1], &begin[1..2], &begin[2..]] {
        stream.write_all(piece).await.unwrap();
        // A segment of its own.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut head = [0; 9];
    soon(stream.read_exact(&mut head)).await.unwrap();
    assert_eq!(head[3], 4, "a frame of settings: {head:?}");
}

#[tokio::test]
async fn a_health_check_of_http_1_0_needs_no_host() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let answer = raw(gateway.plain, b"GET /head HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains(&format!("host: {}", app.address)), "{answer}");
    let answer = raw(gateway.plain, b"GET /head HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}

#[tokio::test]
async fn an_offer_to_switch_that_is_not_taken_up_ends_the_connection_on_every_path() {
    let app = app().await;
    let gateway = gateway(room(app.address));
    let _insider = gateway.taken().await;
    for (path, more) in [
        ("/.well-known/suimon/draw", ""),
        ("/page", "Suimon-Poll: full\r\n"),
        ("/page", ""),
        ("/a.css", ""),
        ("/page", "Expect: a-pony\r\n"),
    ] {
        let text = format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n{more}\r\n\
             POST /a.css HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        );
        let answer = raw(gateway.plain, text.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{path} {more}: {answer}");
        assert!(answer.to_ascii_lowercase().contains("connection: close"), "{path} {more}: {answer}");
    }
}

/// Opens a connection that sends `bytes` and holds on.
pub(crate) async fn holding(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = connect(address).await;
    stream.write_all(bytes).await.unwrap();
    stream
}

/// A room of which nothing but want of connections closes one.
pub(crate) fn patient(app: SocketAddr, connections: usize) -> Params {
    let mut params = room(app);
    let hour = Duration::from_secs(3600);
    params.timeouts.header_read = hour;
    params.timeouts.keep_alive = hour;
    params.timeouts.body_read = hour;
    params.timeouts.handshake = hour;
    params.limits.connections = connections;
    params
}

const WAITS: &[u8] = b"GET /page HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n";

#[tokio::test]
async fn whatever_strangers_hold_somebody_inside_gets_a_connection() {
    const CONNECTIONS: usize = 20;
    let app = app().await;
    let gateway = gateway(patient(app.address, CONNECTIONS));
    let cookie = gateway.taken().await;
    let begin = [PREFACE, SETTINGS].concat();
    let mut kept = Vec::new();
    for (name, bytes, answered) in [
        ("silence", &b""[..], ""),
        ("half a head", b"GET / HTTP/1.1\r\nHo", ""),
        ("an idle connection behind a waiting page", WAITS, "poll_after_s"),
        ("an idle connection behind a static file", b"GET /a.css HTTP/1.1\r\nHost: a\r\n\r\n", "ok"),
        ("HTTP/2 without a stream", &begin, ""),
        ("half a preface", b"PRI", ""),
        ("a body that does not come", b"POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", ""),
    ] {
        for _ in 0..3 {
            for _ in 0..CONNECTIONS + 5 {
                let mut stream = holding(gateway.plain, bytes).await;
                if !answered.is_empty() {
                    read_until(&mut stream, answered).await;
                }
                kept.push(stream);
            }
            let answer = gateway.ask(get("/head", &[("cookie", &cookie)])).await;
            assert_eq!(answer.status, 200, "{name}");
            assert!(gateway.view().connections_open <= CONNECTIONS, "{name}");
        }
    }
}

#[tokio::test]
async fn a_thousand_idle_connections_at_the_defaults_keep_nobody_out() {
    const IDLE: usize = 1000;
    let app = app().await;
    let gateway = gateway(room(app.address));
    let cookie = gateway.taken().await;
    let mut kept = Vec::new();
    for number in 0..IDLE {
        let bytes = if number % 2 == 0 { WAITS } else { b"GET /a.css HTTP/1.1\r\nHost: a\r\n\r\n" };
        kept.push(holding(gateway.plain, bytes).await);
    }
    until("all are open", || gateway.view().connections_open >= IDLE).await;
    assert_eq!(gateway.ask(get("/head", &[("cookie", &cookie)])).await.status, 200);
    assert_eq!(gateway.view().connections_displaced, 0);
}

#[tokio::test]
async fn somebody_inside_who_is_being_answered_is_never_displaced() {
    let app = app().await;
    let gateway = gateway(patient(app.address, 3));
    let cookie = gateway.taken().await;
    let text = format!("GET /hold HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n");
    let mut inside = holding(gateway.plain, text.as_bytes()).await;
    until("the application has it", || app.state.held.load(SeqCst) == 1).await;
    let mut waits = holding(gateway.plain, text.as_bytes()).await;
    until("another waits for the slot", || gateway.waiting() == 1).await;
    for _ in 0..10 {
        drop(holding(gateway.plain, WAITS).await);
        let _ = raw(gateway.plain, b"nonsense\r\n\r\n").await;
    }
    app.state.release(2);
    read_until(&mut inside, "held").await;
    read_until(&mut waits, "held").await;
}

#[tokio::test]
async fn whoever_waits_keeps_a_connection_only_while_there_are_plenty() {
    let app = app().await;
    let gateway = gateway(patient(app.address, 20));
    let cookie = gateway.taken().await;
    let mut kept = Vec::new();
    let mut waiting = async || {
        let mut stream = holding(gateway.plain, WAITS).await;
        let text = read_until(&mut stream, "poll_after_s").await;
        kept.push(stream);
        text.to_ascii_lowercase().contains("connection: close")
    };
    assert!(!waiting().await, "to keep it is cheaper than to open another");
    let mut insiders = Vec::new();
    for _ in 0..9 {
        let text = format!("GET /head HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n");
        let mut stream = holding(gateway.plain, text.as_bytes()).await;
        let answer = read_until(&mut stream, "host: a").await;
        assert!(!answer.to_ascii_lowercase().contains("connection: close"));
        insiders.push(stream);
    }
    assert!(waiting().await, "the page");
    for (name, headers) in [("a poll", "Suimon-Poll: full\r\n"), ("for programs", ""), ("a side", "")] {
        let path = if name == "a side" { "/.well-known/suimon/draw" } else { "/page" };
        let text = format!("GET {path} HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
        let answer = raw(gateway.plain, text.as_bytes()).await;
        assert!(answer.to_ascii_lowercase().contains("connection: close"), "{name}: {answer}");
    }
    let (mut sender, driver) = h2_over(connect(gateway.plain).await).await;
    let mut page = get("http://a/page", &[HTML]);
    page.headers_mut().remove("host");
    assert_eq!(soon(sender.send_request(page)).await.unwrap().status(), 503);
    soon(driver).await.unwrap();
}

/// Opens a WebSocket to the application and returns it once it was greeted.
async fn websocket(gateway: &Gateway) -> TcpStream {
    let text = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let mut stream = holding(gateway.plain, text.as_bytes()).await;
    read_until(&mut stream, "welcome").await;
    stream
}

#[tokio::test]
async fn a_websocket_by_which_nothing_comes_is_closed_and_one_that_is_used_is_not() {
    let app = app().await;
    let mut params = params(app.address);
    params.timeouts.tunnel_idle = Duration::from_millis(300);
    let gateway = gateway(params);
    let (mut silent, mut used) = (websocket(&gateway).await, websocket(&gateway).await);
    until("both are counted", || gateway.view().tunnels == 2).await;
    let pings = async {
        let mut byte = [0];
        loop {
            used.write_all(b"p").await.unwrap();
            used.read_exact(&mut byte).await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = closed(&mut silent) => {}
        () = pings => {}
    }
    until("only the silent one has gone", || gateway.view().tunnels == 1).await;
    used.write_all(b"still there").await.unwrap();
    read_until(&mut used, "still there").await;
    drop(used);
    until("nothing is left", || gateway.view().connections_open == 0 && gateway.view().tunnels == 0).await;
}

#[tokio::test]
async fn a_client_that_half_closes_behind_its_request_gets_its_answer() {
    let app = app().await;
    let mut params = room(app.address);
    params.timeouts.disconnect_watch_after = Duration::ZERO;
    let gateway = gateway(params);
    let cookie = gateway.taken().await;
    for (path, part) in
        [("/head", "host: a"), ("/work?100", "worked"), ("/sized?100000", "xxxx"), ("/a.css", "ok")]
    {
        let text = format!("GET {path} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n");
        let mut stream = holding(gateway.plain, text.as_bytes()).await;
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.contains(part), "{path}: {answer}");
    }
    until("all are closed", || gateway.view().connections_open == 0).await;
}

#[tokio::test]
async fn a_client_that_has_left_is_not_answered_for_long() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    for path in ["/hold", "/events"] {
        let text = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        let before = app.state.begun.load(SeqCst);
        let stream = holding(gateway.plain, text.as_bytes()).await;
        until("the application has it", || app.state.begun.load(SeqCst) > before).await;
        drop(stream);
        until("it is noticed", || gateway.view().connections_open == 0).await;
    }
    assert_eq!(gateway.view().disconnects_upstream, 1);
}

const FROM_V4: &[u8] = b"PROXY TCP4 203.0.113.7 192.0.2.1 40000 443\r\n";

/// Returns networks that contain this machine.
pub(crate) fn this_machine() -> Vec<Network> {
    vec![Network { address: "127.0.0.0".parse().unwrap(), prefix: 8 }]
}

#[tokio::test]
async fn a_balancers_header_says_where_the_client_is_in_clear_and_over_tls() {
    let app = app().await;
    let files = certificate("a");
    let mut params = params(app.address);
    params.listen.proxy_protocol = this_machine();
    params.listen.tls = Some(files.listen());
    let gateway = gateway(params);
    let head = b"GET /head HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n";
    let binary = |command: u8, family: u8, rest: &[u8]| {
        [b"\r\n\r\n\0\r\nQUIT\n", &[command, family, 0, rest.len() as u8][..], rest].concat()
    };
    let v4 = [203, 0, 113, 8, 192, 0, 2, 1, 1, 1, 1, 1, 4, 0, 1, 0];
    for (header, client) in [
        (FROM_V4.to_vec(), "203.0.113.7"),
        (b"PROXY TCP6 2001:db8::7 2001:db8::1 1 2\r\n".to_vec(), "2001:db8::7"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
        (binary(0x21, 0x11, &v4), "203.0.113.8"),
        (binary(0x20, 0, &[]), "127.0.0.1"),
    ] {
        let answer = raw(gateway.plain, &[&header, &head[..]].concat()).await;
        assert!(answer.contains(&format!("x-forwarded-for: {client}\n")), "{client}: {answer}");
        let mut stream = connect(gateway.tls.unwrap()).await;
        stream.write_all(&header).await.unwrap();
        let mut stream = tls_over(stream, &files, &[b"http/1.1"]).await.unwrap();
        stream.write_all(head).await.unwrap();
        read_until(&mut stream, &format!("x-forwarded-for: {client}\n")).await;
    }
    // Byte by byte, and HTTP/2 behind it.
    let mut stream = connect(gateway.plain).await;
    for byte in FROM_V4 {
        stream.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let (mut sender, _driver) = h2_over(stream).await;
    let mut page = get("http://a/head", &[]);
    page.headers_mut().remove("host");
    let answer = collected(soon(sender.send_request(page)).await.unwrap()).await;
    assert!(answer.text().contains("x-forwarded-for: 203.0.113.7"), "{}", answer.text());
}

#[tokio::test]
async fn a_balancer_without_a_header_is_refused_and_a_stranger_with_one_too() {
    let app = app().await;
    let mut set = params(app.address);
    set.listen.proxy_protocol = this_machine();
    set.timeouts.header_read = Duration::from_millis(200);
    let with = gateway(set);
    let head = "GET /head HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for begin in ["", "PROXY TCP4 203.0.113.7 2001:db8::1 1 2\r\n", "PROXY TCP4 203.0.113.7\n"] {
        let answer = raw(with.plain, format!("{begin}{head}").as_bytes()).await;
        assert!(
            answer.starts_with("HTTP/1.1 400") && answer.contains("no_proxy_header"),
            "{begin}: {answer}"
        );
    }
    assert_eq!(raw(with.plain, b"PROXY TCP4 203").await, "", "half of one is waited for so long");
    let without = gateway(params(app.address));
    let answer = raw(without.plain, &[FROM_V4, head.as_bytes()].concat()).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(app.state.begun.load(SeqCst), 0);
}

#[tokio::test]
async fn one_address_that_takes_all_connections_leaves_others_theirs() {
    const CONNECTIONS: usize = 40;
    let app = app().await;
    let mut params = patient(app.address, CONNECTIONS);
    params.listen.proxy_protocol = this_machine();
    let gateway = gateway(params);
    let asks = |client: &str, path: &str, cookie: &str| {
        format!(
            "PROXY TCP4 {client} 192.0.2.1 1 2\r\nGET {path} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"
        )
    };
    let mut first = holding(gateway.plain, asks("203.0.113.7", "/login", "").as_bytes()).await;
    read_until(&mut first, "JSESSIONID=").await;
    let cookie = "JSESSIONID=s1-0123456789";
    // All are of an admitted visitor, and are being answered: nothing else would displace them.
    let mut taken = Vec::new();
    for _ in 0..CONNECTIONS {
        taken.push(holding(gateway.plain, asks("203.0.113.7", "/hold", cookie).as_bytes()).await);
    }
    until("all wait but one", || gateway.waiting() + gateway.in_flight() >= CONNECTIONS - 1).await;
    for _ in 0..3 {
        let mut other = holding(gateway.plain, asks("198.51.100.1", "/head", cookie).as_bytes()).await;
        read_until(&mut other, "host: a").await;
        taken.push(other);
    }
    let open = gateway.view().connections_open;
    let more = raw(gateway.plain, asks("203.0.113.7", "/hold", cookie).as_bytes()).await;
    assert_eq!((more.as_str(), open), ("", CONNECTIONS), "it has more than its share, and all of it is busy");
}

//! WebSocket: over HTTP/1.1, where the connection becomes the conversation, and over HTTP/2 (RFC
//! 8441), where a stream does. What is said passes untouched.

use crate::support::{App, PATIENCE, app, connect, gateway, params, read_until, soon, until};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Empty;
use hyper::ext::Protocol;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use suimon_params::Params;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A frame of a client, masked, as RFC 6455 has it.
fn frame(fin: bool, opcode: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
    let mut bytes = vec![u8::from(fin) << 7 | opcode];
    match payload.len() {
        length @ 0..126 => bytes.push(0x80 | length as u8),
        length @ 126..0x1_0000 => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// What a conversation may consist of: whole and fragmented messages with a ping among the
/// fragments, all 256 bytes, empty ones, each form of the length, a mebibyte, a pong nobody asked
/// for, and close codes.
fn conversation() -> Vec<u8> {
    let bytes: Vec<u8> = (0..=255).collect();
    let long: Vec<u8> = (0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut all = Vec::new();
    for part in [
        frame(true, 1, "水門".as_bytes()),
        frame(true, 1, b""),
        frame(false, 1, b"first "),
        frame(true, 9, b"a ping between"),
        frame(false, 0, b"second "),
        frame(true, 0, b"third"),
        frame(true, 2, &bytes),
        frame(true, 2, &long[..125]),
        frame(true, 2, &long[..126]),
        frame(true, 2, &long[..65_535]),
        frame(true, 2, &long[..65_536]),
        frame(true, 2, &long),
        frame(true, 10, b"unasked"),
        // What could be taken for HTTP is none here.
        frame(true, 1, b"GET / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"),
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n".to_vec(),
        frame(true, 8, &[0x03, 0xe8]),
        frame(true, 8, &[0x0f, 0xa0, b'b', b'y', b'e']),
    ] {
        all.extend_from_slice(&part);
    }
    all
}

const ASK: &str = "GET /ws HTTP/1.1\r\nhost: shop.example\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

#[tokio::test]
async fn a_conversation_over_http1_passes_untouched_both_ways() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    for pieces in [usize::MAX, 4099, 1 << 16] {
        let mut stream = connect(gateway.plain).await;
        stream.write_all(ASK.as_bytes()).await.unwrap();
        // The application speaks first, right behind its head.
        let answer = read_until(&mut stream, "welcome").await;
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        let (mut from, mut to) = stream.into_split();
        let sent = conversation();
        let expected = sent.clone();
        let sending = tokio::spawn(async move {
            for piece in sent.chunks(pieces.min(sent.len())) {
                to.write_all(piece).await.unwrap();
            }
            to
        });
        let mut echoed = vec![0; expected.len()];
        tokio::time::timeout(PATIENCE, from.read_exact(&mut echoed)).await.expect("all of it").unwrap();
        assert!(echoed == expected, "in pieces of {pieces}");
        drop(sending.await.unwrap());
    }
}

#[tokio::test]
async fn what_a_client_sends_before_it_has_the_answer_is_part_of_the_conversation() {
    let app = app().await;
    let gateway = gateway(params(app.address));
    let mut stream = connect(gateway.plain).await;
    let mut sent = ASK.as_bytes().to_vec();
    sent.extend_from_slice(&frame(true, 1, b"early"));
    stream.write_all(&sent).await.unwrap();
    let early = frame(true, 1, b"early");
    let mut answer = Vec::new();
    let head = |answer: &[u8]| answer.windows(4).position(|four| four == b"\r\n\r\n");
    let expected = [b"welcome".as_slice(), &early].concat();
    loop {
        assert!(soon(stream.read_buf(&mut answer)).await.unwrap() > 0);
        if let Some(end) = head(&answer)
            && answer.len() >= end + 4 + expected.len()
        {
            assert_eq!(answer[end + 4..], expected);
            return;
        }
    }
}

async fn h2(address: SocketAddr) -> hyper::client::conn::http2::SendRequest<Empty<Bytes>> {
    let stream = TokioIo::new(connect(address).await);
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn tunnel(path: &str, protocol: &'static str) -> Request<Empty<Bytes>> {
    let request = Request::builder().method(Method::CONNECT).uri(format!("http://shop.example{path}"));
    let mut request = request.header("sec-websocket-version", "13").body(Empty::new()).unwrap();
    request.extensions_mut().insert(Protocol::from_static(protocol));
    request
}

/// Waits until the gateway has said that it takes tunnels: its settings come behind the handshake.
async fn settled(sender: &mut hyper::client::conn::http2::SendRequest<Empty<Bytes>>) {
    let request = Request::builder().uri("http://shop.example/").body(Empty::new()).unwrap();
    assert_eq!(soon(sender.send_request(request)).await.unwrap().status(), 200);
}

async fn ready(app: &App, change: impl FnOnce(&mut Params)) -> crate::support::Gateway {
    let mut params = params(app.address);
    change(&mut params);
    gateway(params)
}

#[tokio::test]
async fn a_conversation_over_http2_passes_untouched_both_ways() {
    let app = app().await;
    let gateway = ready(&app, |_| ()).await;
    let mut client = h2(gateway.plain).await;
    settled(&mut client).await;
    let response = soon(client.send_request(tunnel("/ws", "websocket"))).await.unwrap();
    assert_eq!(response.status(), 200);
    for name in ["connection", "upgrade", "sec-websocket-accept", "content-length"] {
        assert!(!response.headers().contains_key(name), "{name}");
    }
    let stream = TokioIo::new(soon(hyper::upgrade::on(response)).await.unwrap());
    let (mut from, mut to) = tokio::io::split(stream);
    let sent = conversation();
    let expected = [b"welcome".as_slice(), &sent].concat();
    let sending = tokio::spawn(async move {
        to.write_all(&sent).await.unwrap();
        to
    });
    let mut echoed = vec![0; expected.len()];
    tokio::time::timeout(PATIENCE, from.read_exact(&mut echoed)).await.expect("all of it").unwrap();
    assert!(echoed == expected);
    // Beside it the connection serves requests, and the conversation holds no slot.
    settled(&mut client).await;
    assert_eq!(gateway.in_flight(), 0);
    // The client's end is the application's.
    let mut to = sending.await.unwrap();
    to.shutdown().await.unwrap();
    let mut rest = Vec::new();
    soon(from.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty());
}

#[tokio::test]
async fn the_application_gets_an_upgrade_of_http1_whatever_the_client_speaks() {
    let app = app().await;
    let gateway = ready(&app, |_| ()).await;
    let mut client = h2(gateway.plain).await;
    settled(&mut client).await;
    // This one does not switch: a good status would tell the client that it did.
    let response = soon(client.send_request(tunnel("/head", "websocket"))).await.unwrap();
    assert_eq!(response.status(), 501);
    let response = soon(client.send_request(tunnel("/missing", "websocket"))).await.unwrap();
    assert_eq!(response.status(), 404, "what the application says of it is passed on");
    let response = soon(client.send_request(tunnel("/ws", "connect-udp"))).await.unwrap();
    assert_eq!(response.status(), 501);
    let mut plain = tunnel("/ws", "websocket");
    plain.extensions_mut().remove::<Protocol>();
    *plain.uri_mut() = "shop.example:80".parse().unwrap();
    let response = soon(client.send_request(plain)).await.unwrap();
    assert_eq!(response.status(), 405, "a tunnel to anywhere is none that we dig");
    assert!(response.headers().contains_key("allow"));
    until("nothing is left in there", || gateway.in_flight() == 0).await;
}

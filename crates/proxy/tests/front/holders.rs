//! Clients that were admitted once and then hold all connections, each waiting for its client: who
//! gets through meanwhile, and who is left alone.

use crate::connections::{holding, patient, this_machine};
use crate::passage::{certificate, tls_client};
use crate::support::{App, Gateway, Pieces, app, gateway, read_until, soon, until};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::SendRequest;
use hyper::ext::Protocol;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::any::Any;
use std::convert::Infallible;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 40;
/// Addresses of holders: each has exactly what the others have, and less than somebody honest.
const ADDRESSES: usize = 5;
/// Requests of one honest address that are under way.
const HONEST: usize = 12;
const COOKIE: &str = "JSESSIONID=s1-0123456789";

/// What a client holds a connection with.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Holder {
    WebSocket,
    Body,
    BodyAskedFor,
    Answer,
    Events,
    TunnelOverHttp2,
    BodyOverHttp2,
    AnswerOverHttp2,
    EventsOverHttp2,
}

fn from(client: &str) -> String {
    format!("PROXY TCP4 {client} 192.0.2.1 1 2\r\n")
}

fn asks(client: &str, method: &str, path: &str, more: &str) -> String {
    format!("{}{}", from(client), head(method, path, more))
}

fn head(method: &str, path: &str, more: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a\r\nCookie: {COOKIE}\r\n{more}\r\n")
}

impl Holder {
    /// Opens a connection, is admitted by it, and holds it. What is returned must be kept.
    async fn hold(self, gateway: &Gateway, client: &str) -> Box<dyn Any + Send> {
        if matches!(
            self,
            Holder::TunnelOverHttp2
                | Holder::BodyOverHttp2
                | Holder::AnswerOverHttp2
                | Holder::EventsOverHttp2
        ) {
            return self.hold_over_http2(gateway, client).await;
        }
        let mut stream = holding(gateway.plain, asks(client, "GET", "/head", "").as_bytes()).await;
        read_until(&mut stream, "host: a").await;
        let (text, until) = match self {
            Holder::WebSocket => {
                (head("GET", "/ws", "Connection: Upgrade\r\nUpgrade: websocket\r\n"), "welcome")
            }
            Holder::Body => (head("POST", "/page", "Content-Length: 60000\r\n"), ""),
            Holder::BodyAskedFor => {
                (head("POST", "/page", "Content-Length: 9\r\nExpect: 100-continue\r\n"), "100 Continue")
            }
            Holder::Answer => (head("GET", "/big?100000000", ""), "200"),
            _ => (head("GET", "/events", ""), "hello"),
        };
        stream.write_all(text.as_bytes()).await.unwrap();
        if self == Holder::Body {
            stream.write_all(&[b'x'; 5200]).await.unwrap();
        }
        read_until(&mut stream, until).await;
        Box::new(stream)
    }

    async fn hold_over_http2(self, gateway: &Gateway, client: &str) -> Box<dyn Any + Send> {
        let stream = holding(gateway.plain, from(client).as_bytes()).await;
        let mut sender = http2(stream).await;
        let first = request(Method::GET, "/head", Empty::new().boxed());
        assert_eq!(soon(sender.send_request(first)).await.unwrap().status(), 200);
        match self {
            Holder::TunnelOverHttp2 => {
                let mut request = request(Method::CONNECT, "/ws", Empty::new().boxed());
                request.extensions_mut().insert(Protocol::from_static("websocket"));
                let mut answer = soon(sender.send_request(request)).await.unwrap();
                let tunnel = soon(hyper::upgrade::on(&mut answer)).await.unwrap();
                let mut tunnel = TokioIo::new(tunnel);
                read_until(&mut tunnel, "welcome").await;
                Box::new((sender, tunnel))
            }
            Holder::BodyOverHttp2 => {
                let (pieces, body) = tokio::sync::mpsc::channel(1);
                pieces.send(Bytes::from_static(b"x")).await.unwrap();
                let answer = sender.send_request(request(Method::POST, "/page", Pieces(body).boxed()));
                let answer = tokio::spawn(answer);
                // Taken by the connection, so that the request is under way.
                soon(pieces.reserve()).await.unwrap().send(Bytes::from_static(b"x"));
                Box::new((sender, pieces, answer))
            }
            _ => {
                let path = if self == Holder::AnswerOverHttp2 { "/big?100000000" } else { "/events" };
                let answer =
                    soon(sender.send_request(request(Method::GET, path, Empty::new().boxed()))).await;
                Box::new((sender, answer.unwrap()))
            }
        }
    }
}

fn request(
    method: Method,
    path: &str,
    body: BoxBody<Bytes, Infallible>,
) -> Request<BoxBody<Bytes, Infallible>> {
    let request = Request::builder().method(method).uri(format!("http://a{path}")).header("cookie", COOKIE);
    request.body(body).unwrap()
}

async fn http2(stream: TcpStream) -> SendRequest<BoxBody<Bytes, Infallible>> {
    let io = TokioIo::new(stream);
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// Holds all connections, and more than there are, while somebody honest has requests under way;
/// then others come.
async fn others_get_through(holder: Holder) {
    let app = app().await;
    let mut params = patient(app.address, CONNECTIONS);
    params.listen.proxy_protocol = this_machine();
    let gateway = gateway(params);
    let mut first = holding(gateway.plain, asks("198.51.100.9", "GET", "/login", "").as_bytes()).await;
    read_until(&mut first, "JSESSIONID=").await;
    drop(first);
    let mut honest = Vec::new();
    for _ in 0..HONEST {
        honest.push(holding(gateway.plain, asks("198.51.100.9", "GET", "/hold", "").as_bytes()).await);
    }
    until("the honest wait for the application", || gateway.waiting() == HONEST - 1).await;

    let mut held = Vec::new();
    for number in 0..CONNECTIONS + ADDRESSES {
        let client = format!("203.0.113.{}", number % ADDRESSES);
        held.push(holder.hold(&gateway, &client).await);
    }
    until("all are taken", || gateway.view().connections_open == CONNECTIONS).await;
    for visit in 0..5 {
        let client = format!("192.88.99.{visit}");
        let mut insider = holding(gateway.plain, asks(&client, "GET", "/head", "").as_bytes()).await;
        read_until(&mut insider, "host: a").await;
        let text = format!("{}GET /page HTTP/1.1\r\nHost: a\r\n\r\n", from(&format!("192.88.98.{visit}")));
        let mut newcomer = holding(gateway.plain, text.as_bytes()).await;
        read_until(&mut newcomer, "HTTP/1.1 503").await;
        held.push(Box::new((insider, newcomer)));
        held.push(holder.hold(&gateway, "203.0.113.1").await);
    }
    // One of the same address as all that is under way there.
    let mut insider = holding(gateway.plain, asks("198.51.100.9", "GET", "/head", "").as_bytes()).await;
    read_until(&mut insider, "host: a").await;
    let view = gateway.view();
    assert!(view.connections_displaced >= 15, "{}", view.connections_displaced);
    assert!(view.connections_open <= CONNECTIONS);
    answered(&app, honest).await;
    drop(held);
}

async fn answered(app: &App, honest: Vec<TcpStream>) {
    app.state.release(HONEST);
    for mut stream in honest {
        read_until(&mut stream, "held").await;
    }
}

macro_rules! others_get_through {
    ($($name:ident: $holder:ident,)*) => {$(
        #[tokio::test]
        async fn $name() {
            others_get_through(Holder::$holder).await;
        }
    )*};
}

others_get_through! {
    idle_websockets_shut_nobody_out: WebSocket,
    bodies_that_do_not_come_shut_nobody_out: Body,
    bodies_that_are_asked_for_and_do_not_come_shut_nobody_out: BodyAskedFor,
    answers_that_are_not_taken_shut_nobody_out: Answer,
    silent_streams_of_events_shut_nobody_out: Events,
    idle_tunnels_over_http2_shut_nobody_out: TunnelOverHttp2,
    bodies_that_do_not_come_over_http2_shut_nobody_out: BodyOverHttp2,
    answers_that_are_not_taken_over_http2_shut_nobody_out: AnswerOverHttp2,
    silent_streams_of_events_over_http2_shut_nobody_out: EventsOverHttp2,
}

#[tokio::test]
async fn handshakes_that_are_never_finished_shut_nobody_out_and_end() {
    let app = app().await;
    let files = certificate("a");
    let mut params = patient(app.address, CONNECTIONS);
    params.listen.tls = Some(files.listen());
    let gateway_of_patience = gateway(params.clone());
    let cookie = gateway_of_patience.taken().await;
    let tls = gateway_of_patience.tls.unwrap();
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS + 5 {
        held.push(holding(tls, b"\x16\x03\x01\x02\x00\x01").await);
    }
    for _ in 0..3 {
        let mut insider = tls_client(tls, &files, &[b"http/1.1"]).await;
        let text = format!("GET /head HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n");
        insider.write_all(text.as_bytes()).await.unwrap();
        read_until(&mut insider, "host: a").await;
        held.push(holding(tls, b"\x16").await);
    }
    assert!(gateway_of_patience.view().connections_open <= CONNECTIONS);
    params.timeouts.handshake = Duration::from_millis(200);
    let gateway = gateway(params);
    let mut half = holding(gateway.tls.unwrap(), b"\x16\x03").await;
    soon(half.read_to_end(&mut Vec::new())).await.unwrap();
}

#[tokio::test]
async fn a_handshake_that_drips_ends_in_time() {
    let app = app().await;
    let files = certificate("a");
    let mut params = patient(app.address, CONNECTIONS);
    params.listen.tls = Some(files.listen());
    params.timeouts.handshake = Duration::from_millis(200);
    let gateway = gateway(params);
    // A record of which a byte comes now and then, for an hour and more.
    let mut stream = holding(gateway.tls.unwrap(), b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc").await;
    let dripping = async {
        while stream.write_all(b"\x03").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon(dripping).await;
    until("it is closed", || gateway.view().connections_open == 0).await;
}

//! Answers of the layer over real connections of hyper: however it leaves a body, what has ended is no
//! request that was abandoned.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod support;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use support::{ONE_SLOT, Running, gate, pieces, until};
use tokio::io::DuplexStream;
use tower::{Layer, Service, ServiceExt, service_fn};

type Answer = Response<StreamBody<support::Pieces>>;
/// What the answer is, the method that asks for it, the body that arrives, and the answer.
type Case = (&'static str, Method, &'static str, fn() -> Answer);

const LONG_PIECE: usize = 64 << 10;
const LONG_PIECES: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    Http1,
    Http2,
}

/// Serves the gated service on one end of a connection, and returns the other end.
fn serve(gate: &Running, version: Version, answer: fn() -> Answer) -> DuplexStream {
    serve_by(gate.layer.layer(service_fn(move |_| async move { Ok::<_, Infallible>(answer()) })), version)
}

fn serve_by<S, R>(gated: S, version: Version) -> DuplexStream
where
    S: Service<Request<Incoming>, Response = Response<R>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static,
    R: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let (here, there) = tokio::io::duplex(1 << 16);
    let service = hyper::service::service_fn(move |request| gated.clone().oneshot(request));
    tokio::spawn(async move {
        let io = TokioIo::new(here);
        match version {
            Version::Http1 => {
                drop(hyper::server::conn::http1::Builder::new().serve_connection(io, service).await);
            }
            Version::Http2 => {
                let executor = TokioExecutor::new();
                drop(hyper::server::conn::http2::Builder::new(executor).serve_connection(io, service).await);
            }
        }
    });
    there
}

/// Asks by `method`, and returns the body of the answer, of which nothing is taken yet.
async fn ask(io: DuplexStream, version: Version, method: &Method) -> Incoming {
    let request = Request::builder().method(method).uri("http://shop/one").header("host", "shop");
    let request = request.header("te", "trailers").body(Empty::<Bytes>::new()).unwrap();
    send(io, version, request).await.into_body()
}

async fn send<B>(io: DuplexStream, version: Version, request: Request<B>) -> Response<Incoming>
where
    B: Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static,
{
    let io = TokioIo::new(io);
    let answer = match version {
        Version::Http1 => {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await
        }
        Version::Http2 => {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await
        }
    };
    answer.unwrap()
}

/// An answer that is longer than what lies between its client and the service.
fn long() -> Answer {
    let piece = || Ok(Frame::data(Bytes::from_static(&[b'x'; LONG_PIECE])));
    Response::new(StreamBody::new(pieces((0..LONG_PIECES).map(|_| piece()))))
}

fn data(bytes: &'static [u8]) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(Bytes::from_static(bytes)))
}

/// An answer of two pieces; with `length`, of declared length.
fn two_pieces(status: u16, length: Option<usize>) -> Answer {
    let answer = Response::builder().status(status);
    let answer = length.into_iter().fold(answer, |answer, length| answer.header("content-length", length));
    answer.body(StreamBody::new(pieces([data(b"hel"), data(b"lo")]))).unwrap()
}

fn with_trailers() -> Answer {
    let pieces = pieces([data(b"hello"), Ok(Frame::trailers(trailers(&["x-sum"])))]);
    Response::builder().header("trailer", "x-sum").body(StreamBody::new(pieces)).unwrap()
}

#[tokio::test]
async fn however_the_library_leaves_a_body_that_is_over_its_request_is_completed() {
    let cases: [Case; 6] = [
        ("of declared length", Method::GET, "hello", || two_pieces(200, Some(5))),
        ("of unknown length", Method::GET, "hello", || two_pieces(200, None)),
        ("with trailers", Method::GET, "hello", with_trailers),
        ("of HEAD", Method::HEAD, "", || two_pieces(200, Some(5))),
        ("of 204", Method::GET, "", || two_pieces(204, None)),
        ("of 304", Method::GET, "", || two_pieces(304, Some(5))),
    ];
    for version in [Version::Http1, Version::Http2] {
        for (what, method, body, answer) in &cases {
            if version == Version::Http2 && body.is_empty() {
                // There the library sends whatever the service gives it.
                continue;
            }
            let gate = gate(ONE_SLOT);
            let io = serve(&gate, version, *answer);
            let answer = ask(io, version, method).await.collect().await.unwrap().to_bytes();
            assert_eq!(answer, body, "{what}, {version:?}");
            until("its slot is back", || gate.in_flight() == 0).await;
            assert_eq!(gate.counts(), (1, 0, 0), "{what}, {version:?}");
        }
    }
}

/// Says which trailers have come, and answers with such as are between an application and its gate.
async fn says_trailers<B: Body>(
    request: Request<B>,
) -> Result<Response<StreamBody<support::Pieces>>, Infallible> {
    let sent = request.into_body().collect().await.ok().unwrap();
    let mut heard: Vec<_> = sent.trailers().unwrap().keys().map(HeaderName::as_str).collect();
    heard.sort_unstable();
    let names = ["x-sum", "suimon-paused", "suimon_session"];
    let pieces = pieces([data(b"hello"), Ok(Frame::trailers(trailers(&names)))]);
    let answer = Response::builder().header("trailer", names.join(",")).header("x-heard", heard.join(","));
    Ok(answer.body(StreamBody::new(pieces)).unwrap())
}

fn trailers(names: &[&'static str]) -> HeaderMap {
    names.iter().map(|name| (HeaderName::from_static(name), HeaderValue::from_static("1"))).collect()
}

#[tokio::test]
async fn what_is_between_a_service_and_its_gate_passes_in_no_trailers() {
    for version in [Version::Http1, Version::Http2] {
        let gate = gate(ONE_SLOT);
        let io = serve_by(gate.layer.layer(service_fn(says_trailers)), version);
        let names = ["x-sum", "suimon-pause", "suimon_held", "x-forwarded-for"];
        let sent = pieces([data(b"hi"), Ok(Frame::trailers(trailers(&names)))]);
        let request = Request::post("http://shop/one").header("host", "shop").header("te", "trailers");
        let request = request.header("trailer", names.join(",")).body(StreamBody::new(sent)).unwrap();
        let answer = send(io, version, request).await;
        assert_eq!(answer.headers()["x-heard"], "x-sum", "{version:?}");
        let told = answer.into_body().collect().await.unwrap();
        let told: Vec<_> = told.trailers().unwrap().keys().map(HeaderName::as_str).collect();
        assert_eq!(told, ["x-sum"], "{version:?}");
    }
}

#[tokio::test]
async fn a_client_that_takes_nothing_holds_no_slot() {
    for version in [Version::Http1, Version::Http2] {
        let gate = gate(ONE_SLOT);
        let slow = ask(serve(&gate, version, long), version, &Method::GET).await;
        until("its slot is back", || gate.in_flight() == 0).await;
        let other = ask(serve(&gate, version, with_trailers), version, &Method::GET).await;
        assert_eq!(other.collect().await.unwrap().to_bytes(), "hello", "{version:?}");
        assert_eq!(gate.counts(), (2, 0, 0), "{version:?}");
        let all = slow.collect().await.unwrap().to_bytes();
        assert_eq!(all.len(), LONG_PIECE * LONG_PIECES, "{version:?}");
    }
}

/// Over HTTP/2 a server sends what is there, whatever was asked for.
#[tokio::test]
async fn a_refusal_of_a_head_has_a_length_and_no_body() {
    let gate = gate(
        "[gate]\nsession_law = \"static\"\nstatic_sessions = 1\n[[session]]\nkind = \"visit\"\nwaiting_room = false\npatience = \"100ms\"\n",
    );
    let ask = async |version: Version, method: Method, browser: &str| {
        let request = Request::builder().method(method).uri("http://shop/start").header("host", "shop");
        let request = request.header("user-agent", browser).body(Empty::<Bytes>::new()).unwrap();
        send(serve(&gate, version, with_trailers), version, request).await
    };
    drop(ask(Version::Http1, Method::GET, "one").await.into_body().collect().await.unwrap());
    for version in [Version::Http1, Version::Http2] {
        let asked = ask(version, Method::GET, "two").await;
        assert_eq!(asked.status(), 503, "{version:?}");
        let length = asked.into_body().collect().await.unwrap().to_bytes().len();
        assert!(length > 0, "{version:?}");
        let head = ask(version, Method::HEAD, "two").await;
        assert_eq!(
            (head.status().as_u16(), &head.headers()["content-length"]),
            (503, &HeaderValue::from(length))
        );
        let sent = head.into_body().collect().await.unwrap_or_else(|error| panic!("{version:?}: {error}"));
        assert!(sent.to_bytes().is_empty(), "{version:?}");
    }
}

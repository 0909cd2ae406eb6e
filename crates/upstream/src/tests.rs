//! The upstream side against real servers over real sockets.

mod backend;
mod connections;
mod fastcgi;
mod faults;
mod nodes;
mod protocols;
mod reports;

use super::*;
use backend::Backend;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use suimon_params::upstream::{HealthParams, NodeAddress, Scheme};
use tokio::sync::mpsc;

/// Long enough for a busy machine, short enough for a person: anything slower hangs.
const HANGS: Duration = Duration::from_secs(20);

fn node(address: SocketAddr) -> NodeParams {
    NodeParams::parse(&format!("http://{address}")).unwrap()
}

/// Parameters for nodes at `addresses`, without checks.
fn params(addresses: &[SocketAddr]) -> UpstreamParams {
    UpstreamParams {
        nodes: addresses.iter().copied().map(node).collect(),
        health: HealthParams { interval: Duration::ZERO, ..HealthParams::default() },
        ..UpstreamParams::default()
    }
}

fn upstream(backend: &Backend) -> Upstream {
    Upstream::new(params(&[backend.address])).unwrap()
}

fn head(method: Method, path: &str) -> Parts {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "shop.example")
        .body(())
        .unwrap()
        .into_parts()
        .0
}

async fn send(
    upstream: &Upstream,
    method: Method,
    path: &str,
) -> Result<Response<UpstreamBody>, UpstreamError> {
    within(upstream.send(head(method, path), Empty::<Bytes>::new(), None)).await
}

async fn text(response: Response<UpstreamBody>) -> Result<String, UpstreamError> {
    let body = within(response.into_body().collect()).await?.to_bytes();
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

async fn get(upstream: &Upstream, path: &str) -> Result<String, UpstreamError> {
    text(send(upstream, Method::GET, path).await?).await
}

async fn post(upstream: &Upstream, path: &str, body: &'static str) -> Result<String, UpstreamError> {
    let body = Full::new(Bytes::from_static(body.as_bytes()));
    text(within(upstream.send(head(Method::POST, path), body, None)).await?).await
}

fn kind<T: fmt::Debug>(result: Result<T, UpstreamError>) -> UpstreamErrorKind {
    result.expect_err("no error").kind()
}

fn in_flight(upstream: &Upstream) -> u32 {
    upstream.view().iter().map(|node| node.in_flight).sum()
}

fn idle(upstream: &Upstream) -> usize {
    upstream.view().iter().map(|node| node.connections).sum()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANGS, future).await.expect("it hangs")
}

/// Waits until `holds` returns true, for what another task or the kernel does soon.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waits = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(HANGS, waits).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// A request body whose pieces the test hands over one by one.
struct Piped {
    pieces: mpsc::Receiver<Result<Bytes, io::Error>>,
}

fn piped() -> (mpsc::Sender<Result<Bytes, io::Error>>, Piped) {
    let (sender, pieces) = mpsc::channel(1);
    (sender, Piped { pieces })
}

impl Body for Piped {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.pieces.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

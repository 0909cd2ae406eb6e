//! Nodes behind Unix sockets of this machine.

use crate::support::{gateway, get, params, request, until};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use suimon_params::Params;
use suimon_params::upstream::{NodeParams, Protocol};
use tokio::net::UnixListener;
use tokio::task::{JoinHandle, JoinSet};

/// Starts an application at a socket. It answers with path, `Host` and body, and counts what it was
/// asked for at `/health`.
fn app(path: &Path, protocol: Protocol) -> (Arc<AtomicUsize>, JoinHandle<()>) {
    let listener = UnixListener::bind(path).unwrap();
    let checks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&checks);
    let task = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let checks = Arc::clone(&counted);
            connections.spawn(async move {
                let service = service_fn(move |request| answer(Arc::clone(&checks), request));
                match protocol {
                    Protocol::Http1 => {
                        let http1 = hyper::server::conn::http1::Builder::new();
                        let _ = http1.serve_connection(TokioIo::new(stream), service).await;
                    }
                    Protocol::Http2 => {
                        let http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                        let _ = http2.serve_connection(TokioIo::new(stream), service).await;
                    }
                }
            });
        }
    });
    (checks, task)
}

async fn answer(
    checks: Arc<AtomicUsize>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let authority = head.uri.authority().map(ToString::to_string);
    let host = head.headers.get("host").map(|host| host.to_str().unwrap().to_owned());
    if head.uri.path() == "/health" {
        assert_eq!(authority.as_deref().or(host.as_deref()), Some("localhost"));
        checks.fetch_add(1, SeqCst);
    }
    let body = body.collect().await.unwrap().to_bytes();
    let host = authority.or(host).unwrap_or_default();
    let text = format!("{} {host} {}", head.uri.path(), String::from_utf8_lossy(&body));
    Ok(Response::new(Full::new(Bytes::from(text))))
}

fn before(path: &Path, protocol: Protocol) -> Params {
    let mut params = params("127.0.0.1:9".parse().unwrap());
    let node = NodeParams::parse(&format!("unix:{}", path.display())).unwrap();
    params.upstream.nodes = vec![NodeParams { protocol, ..node }];
    params
}

#[tokio::test]
async fn an_application_behind_a_unix_socket_is_served_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let path = folder.path().join(format!("{protocol:?}.sock"));
        let (checks, task) = app(&path, protocol);
        let mut params = before(&path, protocol);
        params.upstream.health.path = Some("/health".to_owned());
        params.upstream.health.interval = Duration::from_millis(10);
        let gateway = gateway(params);
        let answer = gateway.ask(request("POST", "/a", &[], "sent")).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "/a shop.example sent"), "{protocol:?}");
        until("it is checked", || checks.load(SeqCst) > 2).await;
        assert!(gateway.observer.is_ready());
        task.abort();
    }
}

#[tokio::test]
async fn a_socket_that_is_not_there_yet_is_an_application_that_is_not_there_yet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let gateway = gateway(before(&path, Protocol::Http1));
    let answer = gateway.ask(get("/", &[])).await;
    assert_eq!((answer.status, answer.header("retry-after")), (502, "5"), "{}", answer.text());
    let (_, task) = app(&path, Protocol::Http1);
    assert_eq!(gateway.get("/b").await.text(), "/b shop.example ");
    task.abort();
}

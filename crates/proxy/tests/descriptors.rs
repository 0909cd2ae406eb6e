//! A gateway that has no descriptor left: the fault is its own, and says nothing about the
//! application. Alone in its process, whose limit it is.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::future::pending;
use std::time::Duration;
use suimon_params::upstream::{HealthParams, NodeParams, UpstreamParams};
use suimon_upstream::{Blame, Upstream, UpstreamError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Time between two checks of a node.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// Answers one request on each connection.
async fn answer(listener: TcpListener) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            // It is of the same process, and has none left either.
            tokio::time::sleep(CHECK_EVERY).await;
            continue;
        };
        tokio::spawn(async move {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
                .await;
        });
    }
}

async fn get(upstream: &Upstream) -> Result<Bytes, UpstreamError> {
    let (head, ()) = http::Request::get("/").body(()).unwrap().into_parts();
    let response = upstream.send(head, Empty::<Bytes>::new(), None).await?;
    Ok(response.into_body().collect().await?.to_bytes())
}

#[tokio::test]
async fn a_gateway_without_descriptors_takes_no_node_for_dead() {
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(200), ..before }).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(answer(listener));
    let upstreams = [("127.0.0.1", None), ("127.0.0.1", Some("/".to_owned())), ("localhost", None)];
    let upstreams = upstreams.map(|(host, path)| {
        let params = UpstreamParams {
            nodes: vec![NodeParams::parse(&format!("http://{host}:{port}")).unwrap()],
            health: HealthParams { interval: CHECK_EVERY, path, ..HealthParams::default() },
            ..UpstreamParams::default()
        };
        Upstream::new(params).unwrap()
    });
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    for upstream in &upstreams {
        let error = get(upstream).await.unwrap_err();
        assert_eq!((error.kind().code(), error.fault()), ("gateway_full", Blame::Gateway), "{error}");
        assert!(error.retry_may_help());
        let checked = upstream.clone();
        tokio::spawn(async move { checked.run(pending()).await });
    }
    // Many times as many checks as take a node out.
    let goes_down = async {
        while upstreams.iter().all(Upstream::is_up) {
            tokio::time::sleep(CHECK_EVERY).await;
        }
    };
    assert!(tokio::time::timeout(30 * CHECK_EVERY, goes_down).await.is_err(), "it is there");
    drop(files);
    for upstream in &upstreams {
        assert_eq!(get(upstream).await.unwrap(), "ok");
        let node = &upstream.view()[0];
        assert_eq!((node.status, node.reason), ("up", "initial"));
    }
}

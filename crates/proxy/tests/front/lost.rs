//! Requests that an application takes and drops: a worker that crashes over a page is no
//! application that is down, and one that drops everything is.

use crate::support::{ASK_EVERY, Gateway, app, asked_until, gateway, get, params, request, until};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use suimon_control::SessionLawKind;
use suimon_gate::KindParams;
use suimon_params::upstream::NodeParams;
use suimon_params::{Params, SessionKind};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A gateway in front of `nodes`, with a waiting room that nobody has to be in.
fn room(nodes: &[SocketAddr]) -> Params {
    let mut params = params(nodes[0]);
    params.upstream.nodes =
        nodes.iter().map(|node| NodeParams::parse(&format!("http://{node}")).unwrap()).collect();
    params.sessions.kinds = vec![SessionKind {
        gate: KindParams {
            line: Some(suimon_line::Params::default()),
            hold: Some(Duration::from_millis(10)),
            ..KindParams::default()
        },
        ..SessionKind::default()
    }];
    params.gate.session_law = SessionLawKind::Static(1000);
    params
}

/// An application whose workers crash over `/crash`: the connection closes without an answer. All
/// else it answers.
async fn fragile() -> SocketAddr {
    counting(Arc::default()).await
}

/// Starts such an application that counts its crashes, and returns its address.
async fn counting(crashes: Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(work(stream, Arc::clone(&crashes)));
        }
    });
    address
}

async fn work(stream: TcpStream, crashes: Arc<AtomicUsize>) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
        stream.read_line(&mut first).await.unwrap_or(0);
        while stream.read_line(&mut line).await.unwrap_or(0) > 2 {
            let value = line.to_ascii_lowercase();
            if let Some(value) = value.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).await.is_err() || first.is_empty() {
            return;
        }
        if first.contains("/crash") {
            crashes.fetch_add(1, SeqCst);
            return;
        }
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

impl Gateway {
    fn statuses(&self) -> Vec<&'static str> {
        self.observer.upstream().iter().map(|node| node.status).collect()
    }

    fn takes_it_for_down(&self) -> bool {
        self.observer.lines()[0].view.away
    }

    /// Has these strangers ask for what crashes a worker, one after another, and each of them see
    /// that.
    async fn crash(&self, strangers: std::ops::Range<u32>) {
        for number in strangers {
            let browser = format!("stranger {number}");
            let headers = [("user-agent", browser.as_str())];
            let asked = if number % 2 == 0 {
                get("/crash", &headers)
            } else {
                request("POST", "/crash", &headers, "twelve bytes")
            };
            assert_eq!(self.ask(asked).await.status, 502);
        }
    }
}

/// Starts an application that takes every request and closes, as one whose workers all crash does,
/// and returns its address.
async fn mute() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn a_request_that_crashes_a_worker_crashes_two_at_most() {
    for nodes in 1..=3 {
        let crashes = Arc::<AtomicUsize>::default();
        let mut addresses = vec![];
        for _ in 0..nodes {
            addresses.push(counting(Arc::clone(&crashes)).await);
        }
        let gateway = gateway(room(&addresses));
        // Some with connections that were used before, and some without.
        for round in 1..=4 {
            assert_eq!(gateway.ask(get("/crash", &[])).await.status, 502);
            assert!(crashes.swap(0, SeqCst) <= 2, "{nodes} nodes, round {round}");
            for _ in 0..2 * round {
                assert_eq!(gateway.get("/").await.status, 200);
            }
        }
    }
}

#[tokio::test]
async fn requests_that_crash_a_worker_stop_no_line() {
    for interval in [Duration::ZERO, Duration::from_secs(2)] {
        let mut params = room(&[fragile().await]);
        params.upstream.health.interval = interval;
        let gateway = gateway(params);
        for round in 0..5 {
            gateway.crash(round * 4..(round + 1) * 4).await;
            assert!(!gateway.takes_it_for_down(), "round {round}");
            let browser = format!("newcomer {round}");
            let page = gateway.ask(get("/page", &[("user-agent", browser.as_str())])).await;
            assert_eq!(page.status, 200, "round {round}");
        }
    }
}

#[tokio::test]
async fn requests_that_crash_workers_eject_no_node() {
    let gateway = gateway(room(&[fragile().await, fragile().await]));
    gateway.crash(0..40).await;
    assert_eq!(gateway.statuses(), ["up", "up"]);
}

#[tokio::test]
async fn a_node_that_drops_everything_is_left_out_and_the_other_serves() {
    let mute = mute().await;
    let well = app().await;
    let mut params = room(&[mute, well.address]);
    params.upstream.health.interval = Duration::ZERO;
    let gateway = gateway(params);
    asked_until("it is left out", ASK_EVERY, async || {
        let asked = gateway.ask(get("/page", &[("user-agent", "somebody")])).await;
        assert_eq!(asked.status, 200, "the other node answers");
        (gateway.statuses()[0] != "up").then_some(())
    })
    .await;
    assert_eq!(gateway.statuses()[1], "up");
}

#[tokio::test]
async fn one_request_that_is_lost_is_enough_to_find_that_everything_is_dropped() {
    let mute = mute().await;
    let gateway = gateway(room(&[mute]));
    let asked = gateway.ask(get("/page", &[("user-agent", "somebody")])).await;
    assert_eq!(asked.status, 502);
    until("it is known to be down", || gateway.takes_it_for_down()).await;
}

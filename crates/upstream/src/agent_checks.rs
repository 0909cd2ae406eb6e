//! Asks nodes for their load, as HAProxy does: at a TCP port, for the line of its `agent-check`.

use super::{Node, Shared};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use suimon_agent::agent_check::{AgentReply, BadLine, LINE_MAX};
use suimon_fleet::LoadReport;
use suimon_params::upstream::NodeAddress;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, timeout};

/// How often each node is asked.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// The longest that an answer may take, the connection included.
const ANSWERED_WITHIN: Duration = Duration::from_millis(500);

/// Asks all nodes for ever, if they are to be asked.
pub(super) async fn run(shared: &Arc<Shared>) {
    let Some(port) = shared.params.load_reports.agent_check else { return std::future::pending().await };
    let mut every = tokio::time::interval(ASKED_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let mut asked = JoinSet::new();
        for node in shared.nodes.present() {
            asked.spawn(ask(Arc::clone(shared), node, port));
        }
        while asked.join_next().await.is_some() {}
    }
}

/// Asks one node, and tells the fleet.
async fn ask(shared: Arc<Shared>, node: Arc<Node>, port: u16) {
    let counts = &shared.agent_checks;
    let answer = match timeout(ANSWERED_WITHIN, answer(&node.params.address, port)).await {
        Ok(Ok(Some(answer))) => answer,
        // It has no TCP address.
        Ok(Ok(None)) => return,
        Ok(Err(_)) | Err(_) => {
            counts.unreachable.fetch_add(1, Relaxed);
            return;
        }
    };
    let Some(capacity) = answer.ok().and_then(|reply| node.said_weight.capacity(&reply)) else {
        counts.unreadable.fetch_add(1, Relaxed);
        return;
    };
    counts.accepted.fetch_add(1, Relaxed);
    let now = shared.now();
    let mut fleet = shared.fleet();
    // Another node may have its place by now.
    if shared.nodes.has(node.id, &node) {
        let load = f64::from(fleet.in_flight(node.id));
        fleet.handle_report(
            now,
            node.id,
            &LoadReport { load, capacity, run_queue: None, every: ASKED_EVERY },
        );
    }
}

/// Reads the line that an agent says at `port`; `None`: the node has no TCP address.
async fn answer(node: &NodeAddress, port: u16) -> io::Result<Option<Result<AgentReply, BadLine>>> {
    let stream = match node {
        NodeAddress::Tcp { host, .. } => TcpStream::connect((host.as_str(), port)).await,
        NodeAddress::Found { address, .. } => TcpStream::connect(SocketAddr::new(address.ip(), port)).await,
        _ => return Ok(None),
    };
    let mut stream = stream?;
    let (mut line, mut length) = ([0; LINE_MAX], 0);
    loop {
        let read = stream.read(&mut line[length..]).await?;
        length += read;
        let reply = AgentReply::parse(&line[..length]);
        if read == 0 || reply != Err(BadLine::Unfinished) {
            return Ok(Some(reply));
        }
    }
}

//! Whether a node is ready: it accepts connections, or answers a question with success.

use std::time::Duration;
use suimon_params::upstream::{NodeAddress, NodeParams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};

/// The pause between two questions, ...
const ASK_EVERY: Duration = Duration::from_millis(20);
/// ... and the longest wait for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The bytes of an answer that say whether it is a success: `HTTP/1.1 200`.
const STATUS_BYTES: usize = 12;

/// Waits until a node is ready, for as long as it takes.
pub(crate) async fn until_ready(node: &NodeParams, path: Option<&str>) {
    loop {
        if timeout(ANSWER_WITHIN, is_ready(node, path)).await == Ok(Some(())) {
            return;
        }
        sleep(ASK_EVERY).await;
    }
}

async fn is_ready(node: &NodeParams, path: Option<&str>) -> Option<()> {
    let authority = node.authority();
    match &node.address {
        NodeAddress::Tcp { host, port } => {
            ask(TcpStream::connect((host.as_str(), *port)).await.ok()?, path, &authority).await
        }
        NodeAddress::Found { address, .. } => {
            ask(TcpStream::connect(address).await.ok()?, path, &authority).await
        }
        NodeAddress::Unix(path_of_socket) => {
            ask(UnixStream::connect(path_of_socket).await.ok()?, path, &authority).await
        }
        NodeAddress::Workers(_) => None,
    }
}

async fn ask<S>(mut stream: S, path: Option<&str>, authority: &str) -> Option<()>
where
    S: AsyncReadExt + AsyncWriteExt + Unpin,
{
    let Some(path) = path else { return Some(()) };
    let question = format!(
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: suimon-ready-check\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(question.as_bytes()).await.ok()?;
    let mut status = [0; STATUS_BYTES];
    stream.read_exact(&mut status).await.ok()?;
    let is_success = status.starts_with(b"HTTP/1.") && matches!(status[9], b'2' | b'3');
    is_success.then_some(())
}

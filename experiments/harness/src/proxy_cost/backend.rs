//! A backend that costs as little as possible: one thread, and one answer to every request.

use clap::Args;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::trouble::{Result, While};

/// Bytes of an answer's body.
pub(super) const BODY_BYTES: usize = 1024;
/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// The backend of proxy-cost.
#[derive(Args, Debug)]
pub(crate) struct BackendOptions {}

/// Answers every request on every connection, and first prints its listening address. Never ends by
/// itself.
pub(crate) fn run(_options: &BackendOptions) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().trouble("the runtime")?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.trouble("the backend")?;
        println!("listening on http://{}", listener.local_addr().trouble("the backend")?);
        let answer = answer();
        loop {
            let (stream, _) = listener.accept().await.trouble("the backend")?;
            tokio::spawn(serve(stream, answer.clone().into()));
        }
    })
}

fn answer() -> Vec<u8> {
    let body = vec![b'x'; BODY_BYTES];
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend(body);
    answer
}

/// Serves one connection. Requests have no body, so one ends where its head does.
async fn serve(mut stream: TcpStream, answer: std::sync::Arc<[u8]>) {
    let _ = stream.set_nodelay(true);
    let mut bytes = [0; HEAD_BYTES_MAX];
    let mut filled = 0;
    loop {
        match stream.read(&mut bytes[filled..]).await {
            Ok(0) | Err(_) => return,
            Ok(read) => filled += read,
        }
        while let Some(end) = head_end(&bytes[..filled]) {
            bytes.copy_within(end..filled, 0);
            filled -= end;
            if stream.write_all(&answer).await.is_err() {
                return;
            }
        }
        if filled == bytes.len() {
            return;
        }
    }
}

fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|start| start + 4)
}

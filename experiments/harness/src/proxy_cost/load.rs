//! The load: connections that send a request, read the whole answer, and repeat.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_statistics::quantile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use super::own;
use crate::common::Common;
use crate::trouble::{Result, While};

/// The longest head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The most headers of an answer.
const HEADERS_MAX: usize = 64;
/// How long a load may take beyond its time.
const OVERTIME: Duration = Duration::from_secs(15);

/// The load of proxy-cost and of workers-cost.
#[derive(Args, Clone, Debug)]
pub(crate) struct LoadOptions {
    #[arg(long)]
    pub(crate) to: SocketAddr,
    /// What is asked for: path and query.
    #[arg(long)]
    pub(crate) page: String,
    /// Bytes of a good answer's body.
    #[arg(long)]
    pub(crate) body: usize,
    #[arg(long)]
    pub(crate) seconds: f64,
    #[arg(long)]
    pub(crate) connections: u32,
    /// Send no cookie.
    #[arg(long)]
    pub(crate) strangers: bool,
}

/// The results.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Load {
    /// Answers with status 200 and the whole body.
    pub(crate) requests: u64,
    /// Other answers, and connections that broke.
    pub(crate) errors: u64,
    pub(crate) seconds: f64,
    pub(crate) latency_p50_us: f64,
    pub(crate) latency_p99_us: f64,
}

impl LoadOptions {
    /// Plays it in a process of its own, on the load's core.
    pub(crate) fn play(&self, common: &Common) -> Result<Load> {
        let LoadOptions { to, page, body, seconds, connections, strangers } = self;
        let mut words: Vec<String> = ["proxy-cost-load", "--to"].map(String::from).into();
        words.extend([to.to_string(), "--page".into(), page.clone(), "--body".into(), body.to_string()]);
        words.extend(["--seconds".into(), seconds.to_string()]);
        words.extend(["--connections".into(), connections.to_string()]);
        if *strangers {
            words.push("--strangers".into());
        }
        let mut load = own(common, "load", &words)?;
        load.wait(Duration::from_secs_f64(*seconds) + OVERTIME)?;
        serde_json::from_str(&load.said()).trouble(format!("what the load says\n{}", load.last_words()))
    }
}

impl Load {
    pub(crate) fn requests_per_s(&self) -> f64 {
        self.requests as f64 / self.seconds
    }
}

/// Counts of the present run.
#[derive(Default)]
struct Counts {
    errors: u64,
    latencies_us: Vec<f64>,
}

/// Loads the address and prints the results, as one line of JSON.
pub(crate) fn run(options: &LoadOptions) -> Result<bool> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().trouble("the runtime")?;
    let local = LocalSet::new();
    let counts = Rc::new(RefCell::new(Counts::default()));
    let began = Instant::now();
    let until = began + Duration::from_secs_f64(options.seconds);
    local.block_on(&runtime, async {
        let asking: Vec<_> = (0..options.connections)
            .map(|number| {
                let asks = Asks { to: options.to, request: request(options, number), body: options.body };
                tokio::task::spawn_local(keep_asking(asks, until, Rc::clone(&counts)))
            })
            .collect();
        for task in asking {
            task.await.trouble("a connection of the load")?;
        }
        Result::Ok(())
    })?;
    let counts = counts.borrow();
    let load = Load {
        requests: counts.latencies_us.len() as u64,
        errors: counts.errors,
        seconds: began.elapsed().as_secs_f64(),
        latency_p50_us: quantile(&counts.latencies_us, 0.5),
        latency_p99_us: quantile(&counts.latencies_us, 0.99),
    };
    println!("{}", serde_json::to_string(&load).trouble("the counts")?);
    Ok(true)
}

fn request(options: &LoadOptions, number: u32) -> Vec<u8> {
    let cookie =
        if options.strangers { String::new() } else { format!("Cookie: JSESSIONID={number:032X}\r\n") };
    let LoadOptions { to, page, .. } = options;
    format!("GET {page} HTTP/1.1\r\nHost: {to}\r\nUser-Agent: load\r\nAccept: */*\r\n{cookie}\r\n")
        .into_bytes()
}

/// What a connection asks for.
struct Asks {
    to: SocketAddr,
    request: Vec<u8>,
    /// Bytes of a good answer's body.
    body: usize,
}

async fn keep_asking(asks: Asks, until: Instant, counts: Rc<RefCell<Counts>>) {
    let mut bytes = vec![0; HEAD_BYTES_MAX + asks.body];
    while Instant::now() < until {
        let Ok(mut stream) = TcpStream::connect(asks.to).await else {
            counts.borrow_mut().errors += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        while Instant::now() < until {
            let asked = Instant::now();
            match asks.ask(&mut stream, &mut bytes).await {
                Some(true) => counts.borrow_mut().latencies_us.push(asked.elapsed().as_secs_f64() * 1e6),
                Some(false) => counts.borrow_mut().errors += 1,
                None => {
                    counts.borrow_mut().errors += 1;
                    break;
                }
            }
        }
    }
}

impl Asks {
    /// Returns whether the answer is the expected one; `None` if the connection can no longer be used.
    async fn ask(&self, stream: &mut TcpStream, bytes: &mut [u8]) -> Option<bool> {
        stream.write_all(&self.request).await.ok()?;
        let mut filled = 0;
        let mut wanted = None;
        loop {
            let read = stream.read(&mut bytes[filled..]).await.ok().filter(|read| *read > 0)?;
            filled += read;
            if wanted.is_none() {
                wanted = head(&bytes[..filled], self.body)?;
            }
            if let Some((good, length)) = wanted {
                if filled == length {
                    return Some(good);
                }
                if filled > length {
                    return None;
                }
            }
            if filled == bytes.len() {
                return None;
            }
        }
    }
}

/// Returns whether the answer is good, with a body of `wanted` bytes, and how long all of it is:
/// `Some(None)` if the head is incomplete, `None` if it is invalid.
fn head(bytes: &[u8], wanted: usize) -> Option<Option<(bool, usize)>> {
    let mut lines = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut lines);
    let httparse::Status::Complete(length) = response.parse(bytes).ok()? else { return Some(None) };
    let body = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"))?;
    let body: usize = std::str::from_utf8(body.value).ok()?.parse().ok()?;
    Some(Some((response.code == Some(200) && body == wanted, length + body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_as_long_as_it_says() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1024\r\n\r\n";
        assert_eq!(head(answer, 1024), Some(Some((true, answer.len() + 1024))));
        assert_eq!(head(&answer[..20], 1024), Some(None));
        let refusal = b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(head(refusal, 1024), Some(Some((false, refusal.len() + 2))));
        assert_eq!(head(b"SSH-2.0\r\n\r\n", 1024), None);
    }
}

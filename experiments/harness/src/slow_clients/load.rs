//! The slow clients, and one visitor with a fast line.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::LocalSet;
use tokio::time::{interval, sleep, timeout};

use crate::trouble::{Result, While};

/// From one page of the visitor to the next request.
const PAGE_EVERY: Duration = Duration::from_millis(50);
/// The longest the visitor waits for a page, ...
const PAGE_PATIENCE: Duration = Duration::from_secs(15);
/// ... and a slow client for the next piece of an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// From one step of a transfer to the next.
const STEP: Duration = Duration::from_millis(100);
/// Bytes per second.
const DOWN_PER_S: usize = 100_000;
const UP_PER_S: usize = 1_000_000;
const UPLOAD_BYTES: usize = 50_000_000;
/// The buffer size of a slow line.
const SMALL_BUFFER: u32 = 32 << 10;

/// The clients of slow-clients.
#[derive(Args, Debug)]
pub(crate) struct LoadOptions {
    #[arg(long)]
    to: SocketAddr,
    #[arg(long)]
    seconds: f64,
}

/// The clients.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Client {
    /// Downloads a file at 100 KB/s.
    Download,
    /// Waits 30 s for an answer.
    LongPoll,
    /// Listens to a stream of events.
    Events,
    /// Sends 50 MB at 1 MB/s.
    Upload,
}

/// How many of each.
const CLIENTS: [(Client, u32); 4] =
    [(Client::Download, 100), (Client::LongPoll, 50), (Client::Events, 50), (Client::Upload, 20)];

/// The results.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Load {
    /// Milliseconds until each page that the visitor got.
    pub(crate) pages_ms: Vec<f64>,
    /// Pages that the visitor did not get.
    pub(crate) pages_failed: u64,
    pub(crate) slow: BTreeMap<Client, Slow>,
}

/// The results of one kind of slow client.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Slow {
    pub(crate) begun: u64,
    /// Answers that began with 200.
    pub(crate) answered: u64,
    /// Other answers, and connections that closed or stalled for a minute.
    pub(crate) failed: u64,
    pub(crate) bytes: u64,
    /// The longest time until an answer began, or for uploads until it ended, seconds.
    pub(crate) first_byte_s_max: f64,
}

type Came = Rc<RefCell<Load>>;

/// The cookies of one browser.
#[derive(Default)]
struct Jar(BTreeMap<String, String>);

/// Plays them, and prints the results as one line of JSON.
pub(crate) fn run(options: &LoadOptions) -> Result<bool> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().trouble("the runtime")?;
    let came = Came::default();
    let until = Instant::now() + Duration::from_secs_f64(options.seconds);
    let to = options.to;
    LocalSet::new().block_on(&runtime, async {
        for (client, count) in CLIENTS {
            for number in 0..count {
                let came = Rc::clone(&came);
                tokio::task::spawn_local(async move {
                    let mut jar = Jar::default();
                    loop {
                        note(&came, client, |slow| slow.begun += 1);
                        if play(client, to, number, &mut jar, &came).await.is_none() {
                            note(&came, client, |slow| slow.failed += 1);
                            sleep(Duration::from_secs(1)).await;
                        }
                    }
                });
            }
        }
        tokio::task::spawn_local(visit(to, Rc::clone(&came)));
        tokio::time::sleep_until(until.into()).await;
    });
    println!("{}", serde_json::to_string(&*came.borrow()).trouble("what came of it")?);
    Ok(true)
}

fn note(came: &Came, client: Client, what: impl FnOnce(&mut Slow)) {
    what(came.borrow_mut().slow.entry(client).or_default());
}

/// A visitor who requests one page after the other, on a separate connection, and keeps the cookie.
async fn visit(to: SocketAddr, came: Came) {
    let mut ticks = interval(PAGE_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut jar = Jar::default();
    let mut stream = None;
    loop {
        ticks.tick().await;
        let asked = Instant::now();
        let page = timeout(PAGE_PATIENCE, page(to, &mut stream, &mut jar)).await;
        let mut came = came.borrow_mut();
        if let Ok(Some(())) = page {
            came.pages_ms.push(asked.elapsed().as_secs_f64() * 1000.0);
        } else {
            came.pages_failed += 1;
            stream = None;
        }
    }
}

async fn page(to: SocketAddr, stream: &mut Option<TcpStream>, jar: &mut Jar) -> Option<()> {
    if stream.is_none() {
        *stream = Some(TcpStream::connect(to).await.ok()?);
    }
    let connection = stream.as_mut()?;
    let head = format!("GET /page HTTP/1.1\r\nHost: site.example\r\nAccept: text/html\r\n{}\r\n", jar.line());
    connection.write_all(head.as_bytes()).await.ok()?;
    let (head, mut body) = head_of(connection).await?;
    jar.keep(&head);
    // The page has no declared length; its last chunk marks its end.
    let is_over = |body: &[u8]| body.ends_with(b"0\r\n\r\n");
    let length = head
        .to_ascii_lowercase()
        .split("content-length:")
        .nth(1)
        .and_then(|rest| rest.split("\r\n").next()?.trim().parse::<usize>().ok());
    let mut bytes = [0; 16 << 10];
    while length.map_or(!is_over(&body), |length| body.len() < length) {
        let count = connection.read(&mut bytes).await.ok().filter(|count| *count > 0)?;
        body.extend_from_slice(&bytes[..count]);
    }
    head.starts_with("HTTP/1.1 200").then_some(())
}

impl Jar {
    /// Keeps the cookies set by a head.
    fn keep(&mut self, head: &str) {
        let lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        let set = lines.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        for (name, value) in set.filter_map(|(_, cookie)| cookie.split(';').next()?.trim().split_once('=')) {
            self.0.insert(name.to_string(), value.to_string());
        }
    }

    /// Returns the header line that sends them back.
    fn line(&self) -> String {
        let pairs: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if pairs.is_empty() { String::new() } else { format!("Cookie: {}\r\n", pairs.join("; ")) }
    }
}

/// Reads a head, and the part of the body that came with it.
async fn head_of(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let count = timeout(PATIENCE, stream.read(&mut bytes)).await.ok()?.ok().filter(|count| *count > 0)?;
        all.extend_from_slice(&bytes[..count]);
        if let Some(at) = all.windows(4).position(|window| window == b"\r\n\r\n") {
            let body = all.split_off(at + 4);
            return Some((String::from_utf8_lossy(&all).into_owned(), body));
        }
    }
}

/// Plays one slow client once; `None`: its transfer failed.
async fn play(client: Client, to: SocketAddr, number: u32, jar: &mut Jar, came: &Came) -> Option<()> {
    let socket = TcpSocket::new_v4().ok()?;
    socket.set_recv_buffer_size(SMALL_BUFFER).ok()?;
    let mut stream = socket.connect(to).await.ok()?;
    let asked = Instant::now();
    let request = match client {
        Client::Download => format!("GET /file/{number} HTTP/1.1\r\n"),
        Client::LongPoll => "GET /poll HTTP/1.1\r\n".to_string(),
        Client::Events => "GET /events HTTP/1.1\r\n".to_string(),
        Client::Upload => format!("POST /upload HTTP/1.1\r\nContent-Length: {UPLOAD_BYTES}\r\n"),
    };
    // Each client is a browser of its own.
    let own = format!(
        "Host: site.example\r\nUser-Agent: client {client:?} {number}\r\n{}Connection: close\r\n\r\n",
        jar.line()
    );
    stream.write_all((request + &own).as_bytes()).await.ok()?;
    if client == Client::Upload {
        let piece = vec![b'x'; UP_PER_S * STEP.as_millis() as usize / 1000];
        let mut sent = 0;
        let mut steps = interval(STEP);
        while sent < UPLOAD_BYTES {
            steps.tick().await;
            let piece = &piece[..piece.len().min(UPLOAD_BYTES - sent)];
            timeout(PATIENCE, stream.write_all(piece)).await.ok()?.ok()?;
            sent += piece.len();
            note(came, client, |slow| slow.bytes += piece.len() as u64);
        }
    }
    let (head, body) = head_of(&mut stream).await?;
    jar.keep(&head);
    if !head.starts_with("HTTP/1.1 200") {
        return None;
    }
    note(came, client, |slow| {
        slow.answered += 1;
        slow.first_byte_s_max = slow.first_byte_s_max.max(asked.elapsed().as_secs_f64());
        slow.bytes += body.len() as u64;
    });
    let mut bytes = vec![0; DOWN_PER_S * STEP.as_millis() as usize / 1000];
    let mut steps = interval(STEP);
    loop {
        steps.tick().await;
        let count = timeout(PATIENCE, stream.read(&mut bytes)).await.ok()?.ok()?;
        if count == 0 {
            return Some(());
        }
        note(came, client, |slow| slow.bytes += count as u64);
    }
}

//! An application that does what each request says it should, good or bad, is killed once, and
//! comes back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What the application does with a request. In the request's query as `plan=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plan {
    /// Answers at once, with the request's number.
    Fine,
    /// The same after 80 ms.
    Late,
    /// The same, but in chunks of which one comes each 30 ms.
    Drip,
    /// The same and 300 KB behind it.
    Big,
    /// Some hints first.
    Hints,
    /// Answers before it has read the body, which it never does.
    Early,
    /// Says more bytes than it sends.
    Cut,
    /// Closes without a word.
    Mute,
    /// Resets the connection.
    Reset,
    /// Says what is not HTTP.
    Junk,
    /// Never answers.
    Hang,
    /// Sends some events, one each 100 ms, as long as somebody listens.
    Events,
    /// Switches to an echo of bytes.
    Switch,
}

pub(super) const PLANS: [Plan; 13] = {
    use Plan::*;
    [Fine, Late, Drip, Big, Hints, Early, Cut, Mute, Reset, Junk, Hang, Events, Switch]
};

/// Plans that a request which is sent whole is answered well by.
pub(super) const GOOD: [Plan; 5] = [Plan::Fine, Plan::Late, Plan::Drip, Plan::Big, Plan::Hints];

/// Events of a stream of them.
const EVENTS: usize = 15;

/// When it is killed, and for how long it stays away.
const DIES_AFTER: Duration = Duration::from_millis(700);
const AWAY: Duration = Duration::from_millis(500);

pub(super) struct Application {
    address: SocketAddr,
    counts: Arc<Counts>,
    task: std::sync::Mutex<JoinHandle<()>>,
}

#[derive(Default)]
struct Counts {
    open: AtomicUsize,
    served: AtomicUsize,
}

impl Application {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, counts) = (listener.local_addr().unwrap(), Arc::default());
        let task = std::sync::Mutex::new(tokio::spawn(accept(listener, Arc::clone(&counts))));
        Application { address, counts, task }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections open now.
    pub(super) fn open(&self) -> usize {
        self.counts.open.load(SeqCst)
    }

    /// Requests whose head has come.
    pub(super) fn served(&self) -> usize {
        self.counts.served.load(SeqCst)
    }

    /// Is killed in the middle of everything, with all of its connections, and is there again a
    /// little later.
    pub(super) async fn dies_and_returns(&self) {
        tokio::time::sleep(DIES_AFTER).await;
        self.task.lock().unwrap().abort();
        tokio::time::sleep(AWAY).await;
        let listener = TcpListener::bind(self.address).await.unwrap();
        *self.task.lock().unwrap() = tokio::spawn(accept(listener, Arc::clone(&self.counts)));
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.task.lock().unwrap().abort();
    }
}

async fn accept(listener: TcpListener, counts: Arc<Counts>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let open = Open::new(&counts);
        connections.spawn(async move {
            let _ = serve(stream, &open.0).await;
            drop(open);
        });
    }
}

struct Open(Arc<Counts>);

impl Open {
    fn new(counts: &Arc<Counts>) -> Self {
        counts.open.fetch_add(1, SeqCst);
        Open(Arc::clone(counts))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, SeqCst);
    }
}

/// Serves the requests of one connection, one after the other, until one's plan ends it.
async fn serve(mut stream: TcpStream, counts: &Counts) -> std::io::Result<()> {
    let mut read = Vec::new();
    loop {
        let Some(head) = taken(&mut stream, &mut read, b"\r\n\r\n").await? else { return Ok(()) };
        let head = String::from_utf8_lossy(&head).into_owned();
        counts.served.fetch_add(1, SeqCst);
        let said = |name: &str| {
            let query = head.split_once('?').map_or("", |(_, rest)| rest.split(' ').next().unwrap());
            query.split('&').find_map(|pair| pair.strip_prefix(name)).unwrap_or("").to_owned()
        };
        let (id, plan) = (said("id="), said("plan="));
        // The connection check of the gateway asks for nothing that has a plan.
        let plan = PLANS.into_iter().find(|known| format!("{known:?}") == plan).unwrap_or(Plan::Fine);
        if plan != Plan::Early && !body(&mut stream, &mut read, &head).await? {
            return Ok(());
        }
        if !answer(&mut stream, plan, &format!("id={id};")).await? {
            return Ok(());
        }
    }
}

/// Reads a request's body; `false`: it never came whole.
async fn body(stream: &mut TcpStream, read: &mut Vec<u8>, head: &str) -> std::io::Result<bool> {
    let head = head.to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        // What clients send here has no such bytes in it.
        return Ok(taken(stream, read, b"0\r\n\r\n").await?.is_some());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length = length.map_or(0, |length| length.trim().parse().unwrap());
    while read.len() < length {
        if stream.read_buf(read).await? == 0 {
            return Ok(false);
        }
    }
    read.drain(..length);
    Ok(true)
}

/// Reads up to and with `end`; `None`: it never came.
async fn taken(stream: &mut TcpStream, read: &mut Vec<u8>, end: &[u8]) -> std::io::Result<Option<Vec<u8>>> {
    loop {
        if let Some(at) = read.windows(end.len()).position(|bytes| bytes == end) {
            return Ok(Some(read.drain(..at + end.len()).collect()));
        }
        if stream.read_buf(read).await? == 0 {
            return Ok(None);
        }
    }
}

/// Answers as the plan says; `false`: the connection ends.
async fn answer(stream: &mut TcpStream, plan: Plan, id: &str) -> std::io::Result<bool> {
    let whole = |rest: usize| {
        let length = id.len() + rest;
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{id}{}", "x".repeat(rest))
    };
    match plan {
        Plan::Fine => stream.write_all(whole(0).as_bytes()).await?,
        Plan::Late => {
            tokio::time::sleep(Duration::from_millis(80)).await;
            stream.write_all(whole(0).as_bytes()).await?;
        }
        Plan::Drip => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
            for piece in [id, "a", "b", "c", "d"] {
                stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).await?;
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
            stream.write_all(b"0\r\n\r\n").await?;
        }
        Plan::Big => stream.write_all(whole(300_000).as_bytes()).await?,
        Plan::Hints => {
            let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
            stream.write_all(format!("{hints}{}", whole(0)).as_bytes()).await?;
        }
        Plan::Early => {
            let head =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", id.len());
            stream.write_all(format!("{head}{id}").as_bytes()).await?;
            return Ok(false);
        }
        Plan::Cut => {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n";
            stream.write_all(format!("{head}{id}").as_bytes()).await?;
            return Ok(false);
        }
        Plan::Mute => return Ok(false),
        Plan::Reset => {
            socket2::SockRef::from(&*stream).set_linger(Some(Duration::ZERO))?;
            return Ok(false);
        }
        Plan::Junk => {
            stream.write_all(b"\x00\xff what is this\r\n\r\n").await?;
            return Ok(false);
        }
        Plan::Hang => {
            let mut rest = [0; 1024];
            while stream.read(&mut rest).await? > 0 {}
            return Ok(false);
        }
        Plan::Events => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await?;
            let mut rest = [0; 64];
            for _ in 0..EVENTS {
                stream.write_all(format!("data: {id}\n\n").as_bytes()).await?;
                let next = tokio::time::timeout(Duration::from_millis(100), stream.read(&mut rest)).await;
                if matches!(next, Ok(Ok(0) | Err(_))) {
                    break;
                }
            }
            return Ok(false);
        }
        Plan::Switch => {
            let head =
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
            stream.write_all(head.as_bytes()).await?;
            let (mut from, mut to) = stream.split();
            tokio::io::copy(&mut from, &mut to).await?;
            return Ok(false);
        }
    }
    Ok(true)
}

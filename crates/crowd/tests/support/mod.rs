//! A small HTTP server on a real socket that does exactly what a test asks, and remembers its
//! requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) connection: usize,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) at: Instant,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns method and path.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// What the server does with a request.
pub(crate) enum Reply {
    /// Answers and keeps the connection.
    Answer { status: u16, headers: Vec<(&'static str, String)>, body: String },
    /// Writes these bytes, whatever they are, and closes.
    Bytes(&'static str),
    /// Closes without a response.
    Close,
    /// Answers and closes without announcing that.
    AnswerAndClose,
    /// Sends nothing until the client disconnects, and then tells [`Server::client_left`].
    Hang,
    /// The same in the middle of a response.
    HangHalfway,
}

pub(crate) fn page(body: &str) -> Reply {
    Reply::Answer { status: 200, headers: Vec::new(), body: body.to_owned() }
}

pub(crate) fn status(status: u16, headers: &[(&'static str, &str)]) -> Reply {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Reply::Answer { status, headers, body: "x".to_owned() }
}

/// Runs until the test's process ends.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    left: Receiver<Instant>,
}

impl Server {
    /// Starts a server; `reply` gets the request and the number of requests before it.
    pub(crate) fn start(reply: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (tell, left) = channel();
        let shared = (Arc::new(reply), Arc::clone(&seen), Arc::new(AtomicUsize::new(0)));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let ((reply, seen, connections), tell) = (shared.clone(), tell.clone());
                let connection = connections.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || serve(&stream, connection, &*reply, &seen, &tell));
            }
        });
        Server { address, seen, left }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().iter().map(Seen::line).collect()
    }

    /// Waits until the client of a hanging request has disconnected.
    pub(crate) fn client_left(&self) -> Instant {
        self.left.recv_timeout(Duration::from_secs(20)).expect("the client closes its connection")
    }
}

fn serve(
    stream: &TcpStream,
    connection: usize,
    reply: &(dyn Fn(&Seen, usize) -> Reply + Send + Sync),
    seen: &Mutex<Vec<Seen>>,
    tell: &Sender<Instant>,
) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = read_request(&mut reader, connection) {
        let before = {
            let mut seen = seen.lock().unwrap();
            seen.push(request.clone());
            seen.len() - 1
        };
        match reply(&request, before) {
            Reply::Answer { status, headers, body } => {
                let extra: String =
                    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                let length = body.len();
                let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{extra}\r\n{body}");
                if writer.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
            Reply::Bytes(bytes) => {
                let _ = writer.write_all(bytes.as_bytes());
                return;
            }
            Reply::Close => return,
            Reply::AnswerAndClose => {
                let _ = writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                return;
            }
            stuck @ (Reply::Hang | Reply::HangHalfway) => {
                if matches!(stuck, Reply::HangHalfway) {
                    let _ = writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
                }
                let _ = reader.read(&mut [0]);
                let _ = tell.send(Instant::now());
                return;
            }
        }
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>, connection: usize) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let at = Instant::now();
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let mut seen = Seen { connection, method, path, headers, body: String::new(), at };
    let length = seen.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    seen.body = String::from_utf8(body).unwrap();
    Some(seen)
}

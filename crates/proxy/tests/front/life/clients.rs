//! Clients: what each does with its one connection from the first byte to the last.

use super::application::{GOOD, PLANS, Plan};
use crate::passage::{Files, tls_over};
use crate::support::{connect, h2_with_window};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Incoming;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// When clients come.
const COME_WITHIN_MS: u64 = 1_500;

/// For how long some take nothing.
const NOTHING_FOR: Duration = Duration::from_secs(3);

/// Requests on one connection. Their numbers are its client's times this, and on.
const REQUESTS_MAX: usize = 5;

/// How an answer of HTTP/1.1 begins; its status follows.
const BEGIN: &[u8] = b"HTTP/1.1 ";

/// The life of one connection.
#[derive(Clone, Debug)]
pub(super) enum Life {
    /// Requests of HTTP/1.1, or a part of them.
    Http1(Http1),
    /// Requests of HTTP/2, each a stream.
    Http2(Http2),
    /// Whatever bytes.
    Bytes { comes_after: Duration, is_tls: bool, bytes: Vec<u8>, end: End },
}

#[derive(Clone, Debug)]
pub(super) struct Http1 {
    comes_after: Duration,
    is_tls: bool,
    requests: Vec<Asked>,
    /// Whether each request waits until the one before is answered. Otherwise all are sent, one
    /// behind the other.
    in_turn: bool,
    /// How much of it is sent, in thousandths; then `end` follows.
    sends_permille: usize,
    /// In pieces of this many bytes, with a pause behind each.
    piece: usize,
    pause: Duration,
    takes: Takes,
    end: End,
}

#[derive(Clone, Debug)]
pub(super) struct Http2 {
    comes_after: Duration,
    is_tls: bool,
    /// The window of a stream, in bytes.
    window: u32,
    streams: Vec<Stream>,
    end: End,
}

#[derive(Clone, Debug)]
struct Stream {
    asked: Asked,
    /// When the client resets it. `None`: it takes the answer.
    resets_after: Option<Duration>,
    /// Whether the answer's body is taken.
    reads: bool,
}

#[derive(Clone, Debug)]
struct Asked {
    path: &'static str,
    plan: Plan,
    body: Body,
    expects: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Body {
    None,
    Sized(usize),
    Chunked(usize),
}

/// How a client takes what comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Takes {
    AsItComes,
    /// 2 KB each 20 ms.
    Slowly,
    /// Nothing for so long that the gateway has closed; what lies in the kernel stands before the
    /// end that it is told.
    Nothing,
}

/// What a client does when it has sent what it sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// Stays until the gateway ends the connection, which it must.
    Stays,
    /// Says that it sends no more, and stays.
    HalfCloses,
    Closes,
    Resets,
}

/// What a client was told.
#[derive(Debug)]
pub(super) struct Told {
    answers: usize,
    /// Whether all that came was meant for this client, in order.
    pub(super) is_own: bool,
    /// Whether the gateway said that it closes the connection.
    says_close: bool,
}

impl Told {
    const NOTHING: Told = Told { answers: 0, is_own: true, says_close: false };

    /// Reads what came over a connection of HTTP/1.1 that asked with these numbers.
    fn of(bytes: &[u8], ids: &RangeInclusive<usize>) -> Told {
        let text = String::from_utf8_lossy(bytes);
        let heads = text.matches("HTTP/1.1 ").count() - text.matches("HTTP/1.1 1").count();
        let said: Vec<usize> = numbers(&text).collect();
        Told {
            answers: heads,
            is_own: said.is_sorted() && said.iter().all(|id| ids.contains(id)),
            says_close: text.to_ascii_lowercase().contains("\r\nconnection: close\r\n"),
        }
    }
}

/// Returns whether these bytes, one more than `BEGIN`, begin a last answer and no interim one.
fn begins_answer(bytes: &[u8]) -> bool {
    bytes.strip_prefix(BEGIN).is_some_and(|rest| rest != b"1")
}

/// Returns the numbers of requests that an application's answers tell: `id=7;`.
fn numbers(text: &str) -> impl Iterator<Item = usize> {
    text.split("id=").skip(1).filter_map(|rest| rest.split_once(';')?.0.parse().ok())
}

/// Draws a life.
pub(super) fn life() -> impl Strategy<Value = Life> {
    prop_oneof![
        4 => honest().prop_map(Life::Http1),
        6 => http1().prop_map(Life::Http1),
        3 => http2(Just(65_535), false).prop_map(Life::Http2),
        3 => http2(select(vec![1, 100, 65_535]), true).prop_map(Life::Http2),
        2 => bytes(),
    ]
}

fn honest() -> impl Strategy<Value = Http1> {
    let requests = vec(asked(select(GOOD.to_vec())), 1..=REQUESTS_MAX);
    (comes_after(), any::<bool>(), requests, any::<bool>()).prop_map(
        |(comes_after, is_tls, requests, in_turn)| {
            let (piece, pause) = (usize::MAX, Duration::ZERO);
            let (takes, end) = (Takes::AsItComes, End::Stays);
            Http1 { comes_after, is_tls, requests, in_turn, sends_permille: 1_000, piece, pause, takes, end }
        },
    )
}

fn http1() -> impl Strategy<Value = Http1> {
    let asks = (vec(asked(select(PLANS.to_vec())), 1..=REQUESTS_MAX), any::<bool>());
    let sends = prop_oneof![Just(1_000), 0..1_000_usize];
    let pieces = prop_oneof![Just((usize::MAX, 0)), (1..4_000_usize, 0..60_u64)];
    let takes = select(vec![Takes::AsItComes, Takes::Slowly, Takes::Nothing]);
    (comes_after(), any::<bool>(), asks, sends, pieces, takes, end()).prop_map(
        |(comes_after, is_tls, (requests, in_turn), sends_permille, (piece, pause), takes, end)| {
            let pause = Duration::from_millis(pause);
            Http1 { comes_after, is_tls, requests, in_turn, sends_permille, piece, pause, takes, end }
        },
    )
}

fn http2(window: impl Strategy<Value = u32>, is_hostile: bool) -> impl Strategy<Value = Http2> {
    let plans = if is_hostile { PLANS.to_vec() } else { GOOD.to_vec() };
    let resets = if is_hostile { proptest::option::of(0..300_u64).boxed() } else { Just(None).boxed() };
    let reads = if is_hostile { any::<bool>().boxed() } else { Just(true).boxed() };
    let stream = (asked(select(plans)), resets, reads).prop_map(|(asked, resets, reads)| Stream {
        asked,
        resets_after: resets.map(Duration::from_millis),
        reads,
    });
    (comes_after(), any::<bool>(), window, vec(stream, 1..=REQUESTS_MAX), end()).prop_map(
        |(comes_after, is_tls, window, streams, end)| Http2 { comes_after, is_tls, window, streams, end },
    )
}

fn bytes() -> impl Strategy<Value = Life> {
    let begins =
        select(vec!["", "PRI", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n", "\x16\x03\x01"]);
    (comes_after(), any::<bool>(), begins, vec(any::<u8>(), 0..200), end()).prop_map(
        |(comes_after, is_tls, begins, rest, end)| {
            let bytes = [begins.as_bytes(), &rest].concat();
            Life::Bytes { comes_after, is_tls, bytes, end }
        },
    )
}

fn comes_after() -> impl Strategy<Value = Duration> {
    (0..COME_WITHIN_MS).prop_map(Duration::from_millis)
}

fn end() -> impl Strategy<Value = End> {
    select(vec![End::Stays, End::HalfCloses, End::Closes, End::Resets])
}

fn asked(plan: impl Strategy<Value = Plan>) -> impl Strategy<Value = Asked> {
    let path = select(vec!["/two", "/page", "/shop/7", "/search", "/a.css", "/healthz"]);
    let body = prop_oneof![
        2 => Just(Body::None),
        1 => (0..40_000_usize).prop_map(Body::Sized),
        1 => (0..40_000_usize).prop_map(Body::Chunked),
    ];
    (path, plan, body, proptest::bool::weighted(0.1)).prop_map(|(path, plan, body, expects)| Asked {
        path,
        plan,
        body,
        expects,
    })
}

impl Life {
    /// Whether each of its requests deserves an answer, and it stays for them.
    pub(super) fn is_honest(&self) -> bool {
        match self {
            Life::Http1(life) => {
                let is_good = life.requests.iter().all(|asked| GOOD.contains(&asked.plan));
                let is_whole = life.sends_permille == 1_000 && life.piece == usize::MAX;
                is_good && is_whole && life.takes == Takes::AsItComes && life.end == End::Stays
            }
            Life::Http2(life) => life.streams.iter().all(|stream| {
                let is_taken = stream.reads && stream.resets_after.is_none();
                is_taken && life.window > 100 && GOOD.contains(&stream.asked.plan)
            }),
            Life::Bytes { .. } => false,
        }
    }

    /// Returns whether it got what it came for: an answer to each request, or to those before the
    /// gateway said that it closes.
    pub(super) fn is_answered(&self, told: &Told) -> bool {
        let (asked, are_in_order) = match self {
            Life::Http1(life) => (life.requests.len(), true),
            Life::Http2(life) => (life.streams.len(), false),
            Life::Bytes { .. } => return true,
        };
        told.answers == asked || are_in_order && told.answers > 0 && told.says_close
    }

    /// Lives it, as the client of this number.
    pub(super) async fn live(
        &self,
        number: usize,
        plain: SocketAddr,
        tls: SocketAddr,
        files: &Files,
    ) -> Told {
        let (comes_after, is_tls) = match self {
            Life::Http1(life) => (life.comes_after, life.is_tls),
            Life::Http2(life) => (life.comes_after, life.is_tls),
            Life::Bytes { comes_after, is_tls, .. } => (*comes_after, *is_tls),
        };
        tokio::time::sleep(comes_after).await;
        let stream = connect(if is_tls { tls } else { plain }).await;
        let protocol: &[u8] = if matches!(self, Life::Http2(_)) { b"h2" } else { b"http/1.1" };
        let ids = number * REQUESTS_MAX..=number * REQUESTS_MAX + REQUESTS_MAX - 1;
        match self {
            Life::Bytes { bytes, end, .. } => of_bytes(stream, bytes, *end).await,
            // It may be turned away before it has said anything.
            Life::Http1(life) if is_tls => match tls_over(stream, files, &[protocol]).await {
                Ok(stream) => life.live(stream, |stream| stream.get_ref().0, ids).await,
                Err(_) => Told::NOTHING,
            },
            Life::Http1(life) => life.live(stream, |stream| stream, ids).await,
            Life::Http2(life) if is_tls => match tls_over(stream, files, &[protocol]).await {
                Ok(stream) => life.live(stream, ids).await,
                Err(_) => Told::NOTHING,
            },
            Life::Http2(life) => life.live(stream, ids).await,
        }
    }
}

async fn of_bytes(mut stream: TcpStream, bytes: &[u8], end: End) -> Told {
    // The other side may have had enough of it.
    let _ = stream.write_all(bytes).await;
    match end {
        End::Closes => {}
        End::Resets => will_reset(&stream),
        End::Stays | End::HalfCloses => {
            if end == End::HalfCloses {
                let _ = stream.shutdown().await;
            }
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    }
    Told::NOTHING
}

fn will_reset(stream: &TcpStream) {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)).unwrap();
}

impl Http1 {
    async fn live<S>(&self, stream: S, socket: impl Fn(&S) -> &TcpStream, ids: RangeInclusive<usize>) -> Told
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if self.end == End::Resets {
            will_reset(socket(&stream));
        }
        let (heard, answers) = watch::channel(0);
        let mut came = Vec::new();
        let (mut from, mut to) = tokio::io::split(stream);
        let takes = self.take(&mut from, &mut came, &heard);
        let lives = async {
            let _ = self.send(&mut to, answers, *ids.start()).await;
            match self.end {
                End::Closes | End::Resets => return,
                End::HalfCloses => {
                    let _ = to.shutdown().await;
                }
                End::Stays => {}
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = takes => {}
            () = lives => {}
        }
        Told::of(&came, &ids)
    }

    /// Sends the requests, or a part of them.
    async fn send(
        &self,
        to: &mut (impl AsyncWrite + Unpin),
        mut answers: watch::Receiver<usize>,
        first: usize,
    ) -> std::io::Result<()> {
        let requests = self.requests.iter().enumerate().map(|(index, asked)| asked.bytes(first + index));
        let requests: Vec<Vec<u8>> = requests.collect();
        let mut left = requests.iter().map(Vec::len).sum::<usize>() * self.sends_permille / 1_000;
        for (index, request) in requests.iter().enumerate() {
            if self.in_turn && answers.wait_for(|answers| *answers >= index).await.is_err() {
                return Ok(());
            }
            for piece in request.chunks(self.piece) {
                let sent = piece.len().min(left);
                to.write_all(&piece[..sent]).await?;
                to.flush().await?;
                left -= sent;
                if left == 0 {
                    return Ok(());
                }
                if !self.pause.is_zero() {
                    tokio::time::sleep(self.pause).await;
                }
            }
        }
        Ok(())
    }

    /// Takes what comes until the gateway ends the connection, and tells how many answers have.
    async fn take(
        &self,
        from: &mut (impl AsyncRead + Unpin),
        came: &mut Vec<u8>,
        heard: &watch::Sender<usize>,
    ) {
        if self.takes == Takes::Nothing {
            tokio::time::sleep(NOTHING_FOR).await;
        }
        let (mut answers, mut looked_at) = (0, 0);
        loop {
            let mut piece = [0; 2 << 10];
            match from.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(count) => came.extend_from_slice(&piece[..count]),
            }
            // Each byte once: a client that is slow by its own counting would meet time-outs that
            // are for others.
            answers +=
                came[looked_at..].windows(BEGIN.len() + 1).filter(|bytes| begins_answer(bytes)).count();
            looked_at = came.len().saturating_sub(BEGIN.len());
            heard.send_if_modified(|heard| std::mem::replace(heard, answers) != answers);
            if self.takes == Takes::Slowly {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

impl Asked {
    fn target(&self, id: usize) -> String {
        format!("{}?id={id}&plan={:?}", self.path, self.plan)
    }

    fn method(&self) -> &'static str {
        if self.body == Body::None { "GET" } else { "POST" }
    }

    fn bytes(&self, id: usize) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: a\r\n", self.method(), self.target(id));
        if self.plan == Plan::Switch && self.body == Body::None {
            head += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        }
        if self.expects && self.body != Body::None {
            head += "Expect: 100-continue\r\n";
        }
        match self.body {
            Body::None => format!("{head}\r\n").into_bytes(),
            Body::Sized(length) => {
                format!("{head}Content-Length: {length}\r\n\r\n{}", "y".repeat(length)).into_bytes()
            }
            Body::Chunked(length) => {
                let mut bytes = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
                for piece in "y".repeat(length).as_bytes().chunks(1_000) {
                    bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                    bytes.extend_from_slice(piece);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
                bytes
            }
        }
    }
}

impl Http2 {
    async fn live<S>(&self, stream: S, ids: RangeInclusive<usize>) -> Told
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Ok((sender, driver)) = h2_with_window(stream, Some(self.window)).await else {
            return Told::NOTHING;
        };
        let mut streams = JoinSet::new();
        for (stream, id) in self.streams.clone().into_iter().zip(ids) {
            let mut sender = sender.clone();
            streams.spawn(async move {
                let body = match stream.asked.body {
                    Body::None => Bytes::new(),
                    Body::Sized(length) | Body::Chunked(length) => Bytes::from(vec![b'y'; length]),
                };
                let uri = format!("http://a{}", stream.asked.target(id));
                let request = Request::builder().method(stream.asked.method()).uri(uri);
                let answer = sender.send_request(request.body(Full::new(body)).unwrap());
                let taken = async {
                    let answer = answer.await.ok()?;
                    stream.reads.then_some(whole(answer.into_body()).await)?
                };
                match stream.resets_after {
                    Some(after) => tokio::time::timeout(after, taken).await.ok().flatten(),
                    None => taken.await,
                }
                .map(|text| numbers(&text).all(|said| said == id))
            });
        }
        let mut told = Told::NOTHING;
        while let Some(answer) = streams.join_next().await {
            if let Some(is_own) = answer.unwrap() {
                told.answers += 1;
                told.is_own &= is_own;
            }
        }
        match self.end {
            End::Stays | End::HalfCloses => driver.await.unwrap(),
            End::Closes | End::Resets => driver.abort(),
        }
        drop(sender);
        told
    }
}

async fn whole(body: Incoming) -> Option<String> {
    Some(String::from_utf8_lossy(&body.collect().await.ok()?.to_bytes()).into_owned())
}

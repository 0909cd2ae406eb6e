//! The clients: kept-alive connections, each of which sends its next request after an answer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::trouble::{Result, Trouble, While, failed};

/// The longest answer, and the most headers of one.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;

/// What the JSON form of the page says to a client that must go on waiting.
const WAITING: &[u8] = b"\"state\":\"waiting\"";

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ask {
    /// A page, as a browser requests it: the answer is the waiting page, with a ticket in a cookie.
    Page,
    /// The same as a program requests it: the answer is the page's JSON form, with a ticket in a
    /// header.
    Draw,
    /// A poll for the holder of this ticket, as the page's script sends it.
    Poll(String),
}

/// The answers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Answers {
    pub(super) count: u64,
    /// The tickets in them.
    pub(super) tickets: Vec<String>,
    /// How many of them say to go on waiting.
    pub(super) waiting: u64,
}

/// Sends requests to one gateway.
#[derive(Debug)]
pub(super) struct Asker {
    to: SocketAddr,
    connections: usize,
}

impl Asker {
    /// Returns a client with this many `connections`.
    pub(super) fn new(to: SocketAddr, connections: usize) -> Self {
        Asker { to, connections }
    }

    /// Sends all of `asks` and returns the answers, all of which must have the status `wanted`.
    pub(super) fn ask(&self, asks: impl Iterator<Item = Ask>, wanted: u16) -> Result<Answers> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().trouble("the runtime")?;
        let (asks, answers) =
            (Rc::new(RefCell::new(asks.collect())), Rc::new(RefCell::new(Answers::default())));
        let local = LocalSet::new();
        local.block_on(&runtime, async {
            let asking = (0..self.connections).map(|_| {
                let one = keep_asking(self.to, Rc::clone(&asks), wanted, Rc::clone(&answers));
                tokio::task::spawn_local(one)
            });
            for one in asking.collect::<Vec<_>>() {
                one.await.trouble("a connection")??;
            }
            Ok::<(), Trouble>(())
        })?;
        Ok(answers.take())
    }
}

async fn keep_asking(
    to: SocketAddr,
    asks: Rc<RefCell<VecDeque<Ask>>>,
    wanted: u16,
    answers: Rc<RefCell<Answers>>,
) -> Result<()> {
    let mut stream = TcpStream::connect(to).await.trouble(to)?;
    stream.set_nodelay(true).trouble(to)?;
    let mut bytes = vec![0; ANSWER_BYTES_MAX];
    loop {
        let Some(ask) = asks.borrow_mut().pop_front() else { return Ok(()) };
        stream.write_all(&request(to, &ask)).await.trouble(to)?;
        let (mut filled, mut head) = (0, None);
        while head.as_ref().is_none_or(|head: &Head| filled < head.length) {
            let read = stream.read(&mut bytes[filled..]).await.trouble(to)?;
            filled += read;
            head = Head::of(&bytes[..filled]).trouble(to)?;
            if read == 0 {
                return failed(format!(
                    "{to} closed the connection, or an answer has more than {ANSWER_BYTES_MAX} bytes"
                ));
            }
        }
        let Some(head) = head else { unreachable!("the loop ends with a head") };
        if head.status != wanted {
            return failed(format!("{to} answered {ask:?} with {} where {wanted} was to come", head.status));
        }
        let mut answers = answers.borrow_mut();
        answers.count += 1;
        answers.tickets.extend(head.ticket);
        let says_wait = bytes[..filled].windows(WAITING.len()).any(|part| part == WAITING);
        answers.waiting += u64::from(says_wait);
    }
}

fn request(to: SocketAddr, ask: &Ask) -> Vec<u8> {
    let own = match ask {
        Ask::Page => {
            "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\nSec-Fetch-Mode: navigate\r\n"
                .to_string()
        }
        Ask::Draw => "Accept: application/json\r\n".to_string(),
        Ask::Poll(ticket) => {
            format!("Accept: application/json\r\nSuimon-Poll: waiting\r\nSuimon-Ticket: {ticket}\r\n")
        }
    };
    format!(
        "GET /catalogue/page HTTP/1.1\r\nHost: {to}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept-Language: en\r\n{own}\r\n"
    )
    .into_bytes()
}

/// The needed parts of an answer's head.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Head {
    status: u16,
    /// Bytes of head and body.
    length: usize,
    ticket: Option<String>,
}

impl Head {
    /// Returns the head once it is complete.
    fn of(bytes: &[u8]) -> std::result::Result<Option<Head>, &'static str> {
        let mut lines = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut lines);
        let parsed = response.parse(bytes).map_err(|_| "answered something that is not HTTP/1.1")?;
        let httparse::Status::Complete(head) = parsed else { return Ok(None) };
        let header = |name: &str| {
            let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            found.and_then(|header| std::str::from_utf8(header.value).ok())
        };
        let body = header("content-length").and_then(|length| length.parse::<usize>().ok());
        let body = body.ok_or("answered without a length")?;
        let cookie = header("set-cookie").and_then(|line| {
            let (name, value) = line.split(';').next()?.split_once('=')?;
            name.contains("suimon-ticket-").then_some(value)
        });
        let ticket = header("suimon-ticket").or(cookie).map(str::to_owned);
        Ok(Some(Head { status: response.code.unwrap_or_default(), length: head + body, ticket }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_as_long_as_it_says_and_its_ticket_is_found() {
        let answer =
            b"HTTP/1.1 503 No\r\nset-cookie: suimon-ticket-AA=ticket; Path=/\r\ncontent-length: 3\r\n\r\n{}";
        let head = Head { status: 503, length: answer.len() + 1, ticket: Some("ticket".to_owned()) };
        assert_eq!(Head::of(answer), Ok(Some(head)));
        assert_eq!(Head::of(&answer[..20]), Ok(None));
        assert!(Head::of(b"SSH-2.0\r\n\r\n").is_err());
        assert!(Head::of(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}

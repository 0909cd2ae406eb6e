//! What takes load reports, and counts them: the socket for datagrams of `suimon agent`, and what is read
//! of headers of responses. Which datagrams are believed is told by `suimon_agent::book`.

use http::HeaderMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use suimon_agent::Refused;
use suimon_agent::book::{Accepted, Book};
use suimon_agent::datagram::{DATAGRAM_MAX, Load};
use suimon_agent::keyring::Keyring;
use suimon_agent::orca::{HEADER, HEADER_BIN, OrcaReport};
use suimon_model::Instant;
use tokio::net::UdpSocket;
use tokio::sync::watch;

/// Of one reason for refusals only one is logged in this time.
const LOGGED_EVERY: Duration = Duration::from_secs(60);
/// Pause after a failed receive, which has no reason that we know of.
const RECEIVES_AGAIN: Duration = Duration::from_millis(100);

const ACCEPTED: &str = "accepted";

/// What takes datagrams.
pub(super) struct Receiver {
    socket: UdpSocket,
    keys: Keyring,
    /// Whether what comes is left in the socket.
    paused: watch::Sender<bool>,
    heard: Mutex<Heard>,
}

struct Heard {
    book: Book,
    /// By node: what its agent said last.
    loads: Vec<Option<Load>>,
    /// By reason: when a refusal was logged last.
    logged: [Option<Instant>; Refused::ALL.len()],
}

/// Reports in responses, by what became of them.
#[derive(Default)]
pub(super) struct OrcaCounts {
    accepted: AtomicU64,
    unreadable: AtomicU64,
    without_load: AtomicU64,
}

/// How many load reports came, by what became of them: `accepted`, or why not. Empty where none are
/// taken.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LoadReportCounts {
    /// Datagrams of agents.
    pub datagrams: Vec<(&'static str, u64)>,
    /// Reports in headers of responses.
    pub responses: Vec<(&'static str, u64)>,
    /// Answers of agents that were asked.
    pub checks: Vec<(&'static str, u64)>,
}

impl Receiver {
    /// Returns one that reads this socket and knows no node yet. Must be called inside the runtime.
    pub(super) fn new(
        socket: std::net::UdpSocket,
        keys: Keyring,
        clock_skew_max: Duration,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let heard = Heard { book: Book::new(clock_skew_max), loads: Vec::new(), logged: Default::default() };
        let paused = watch::Sender::new(false);
        Ok(Receiver { socket: UdpSocket::from_std(socket)?, keys, paused, heard: Mutex::new(heard) })
    }

    /// Returns the socket, for another process.
    pub(super) fn socket(&self) -> io::Result<std::net::UdpSocket> {
        self.socket.as_fd().try_clone_to_owned().map(Into::into)
    }

    /// Leaves what comes in the socket, or takes it again.
    pub(super) fn pause(&self, is_paused: bool) {
        self.paused.send_replace(is_paused);
    }

    /// Returns its address, with the port that it really has.
    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Says which node is at a place from now on; `None`: none.
    pub(super) fn name(&self, node: usize, name: Option<String>) {
        let mut heard = self.heard();
        heard.book.name(node, name);
        if let Some(load) = heard.loads.get_mut(node) {
            *load = None;
        }
    }

    /// Returns whether the node that has reported is still at its place.
    pub(super) fn is_there(&self, accepted: &Accepted) -> bool {
        self.heard().book.is_named(accepted.node, &accepted.name)
    }

    /// Returns the next report that is believed. `now`: the gateway's clock.
    pub(super) async fn next(&self, now: impl Fn() -> Instant) -> Accepted {
        // One byte more than a datagram has, so that longer ones are not taken for one.
        let mut bytes = [0; DATAGRAM_MAX + 1];
        let mut paused = self.paused.subscribe();
        loop {
            // The sender is ours.
            let _ = paused.wait_for(|paused| !paused).await;
            let received = tokio::select! {
                biased;
                _ = paused.wait_for(|paused| *paused) => continue,
                received = self.socket.recv_from(&mut bytes) => received,
            };
            match received {
                Ok((length, from)) => {
                    if let Some(believed) = self.take(now(), &bytes[..length], from) {
                        return believed;
                    }
                }
                Err(error) => {
                    tracing::warn!("load reports cannot be received: {error}");
                    tokio::time::sleep(RECEIVES_AGAIN).await;
                }
            }
        }
    }

    fn take(&self, now: Instant, bytes: &[u8], from: SocketAddr) -> Option<Accepted> {
        let refused = {
            let mut heard = self.heard();
            match heard.book.handle_datagram(now, clock_us(), bytes, &self.keys) {
                Ok(accepted) => {
                    // The book knows no place beyond its bound.
                    if heard.loads.len() <= accepted.node {
                        heard.loads.resize(accepted.node + 1, None);
                    }
                    heard.loads[accepted.node] = Some(accepted.load);
                    return Some(accepted);
                }
                Err(refused) => heard.logs(now, refused).then_some(refused)?,
            }
        };
        // A stranger can cause it, so it is told rarely.
        tracing::warn!(
            %from,
            reason = refused.code(),
            "a load report is refused: {refused}; others like it are counted and not told for {} s",
            LOGGED_EVERY.as_secs()
        );
        None
    }

    /// Returns what the agent of a node said last.
    pub(super) fn last(&self, node: usize) -> Option<Load> {
        self.heard().loads.get(node).copied().flatten()
    }

    /// Returns how many datagrams came, by what became of them.
    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        let heard = self.heard();
        let refused = heard.book.refused().map(|(refused, count)| (refused.code(), count));
        [(ACCEPTED, heard.book.accepted())].into_iter().chain(refused).collect()
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        // What is in it stays right whatever panics.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heard {
    /// Returns whether a refusal is to be logged.
    fn logs(&mut self, now: Instant, refused: Refused) -> bool {
        let place = Refused::ALL.iter().position(|other| *other == refused);
        let Some(logged) = place.and_then(|place| self.logged.get_mut(place)) else { return false };
        let is_due = logged.is_none_or(|at| now.since(at) >= LOGGED_EVERY);
        if is_due {
            *logged = Some(now);
        }
        is_due
    }
}

impl OrcaCounts {
    /// Takes the load report out of the head of a response, so that its client does not see it, and
    /// returns how busy its node is; `None`: there is none that says so.
    pub(super) fn take(&self, headers: &mut HeaderMap) -> Option<f64> {
        let (bin, plain) = (headers.remove(HEADER_BIN), headers.remove(HEADER));
        // The binary header wins, as with other readers.
        let report = match (bin, plain) {
            (Some(value), _) => OrcaReport::parse_bin(value.as_bytes()),
            (None, Some(value)) => OrcaReport::parse(value.as_bytes()),
            (None, None) => return None,
        };
        let utilization = match report {
            Ok(report) => report.utilization(),
            Err(bad) => {
                tracing::debug!(reason = bad.code(), "a load report in a response cannot be read");
                self.unreadable.fetch_add(1, Relaxed);
                return None;
            }
        };
        let count = if utilization.is_some() { &self.accepted } else { &self.without_load };
        count.fetch_add(1, Relaxed);
        utilization
    }

    /// Returns how many there were, by what became of them.
    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = [
            (ACCEPTED, &self.accepted),
            ("unreadable", &self.unreadable),
            ("without_load", &self.without_load),
        ];
        counts.map(|(result, count)| (result, count.load(Relaxed))).to_vec()
    }
}

/// Returns what the clock says, microseconds since 1970.
fn clock_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn taken(counts: &OrcaCounts, pairs: &[(&'static str, &'static str)]) -> (Option<f64>, usize) {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("text/plain"));
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        (counts.take(&mut headers), headers.len())
    }

    #[test]
    fn a_load_report_is_taken_out_whatever_it_says() {
        let counts = OrcaCounts::default();
        assert_eq!(taken(&counts, &[]), (None, 1));
        assert_eq!(taken(&counts, &[(HEADER, "TEXT cpu_utilization=0.5")]), (Some(0.5), 1));
        // cpu_utilization = 0.1, and nothing else.
        let bin = "CZqZmZmZmbk/";
        assert_eq!(taken(&counts, &[(HEADER, "TEXT eps=1"), (HEADER_BIN, bin)]), (Some(0.1), 1));
        assert_eq!(taken(&counts, &[(HEADER, "TEXT eps=1"), (HEADER, "TEXT eps=2")]), (None, 1));
        assert_eq!(taken(&counts, &[(HEADER, "nonsense")]), (None, 1));
        assert_eq!(counts.counts(), [("accepted", 2), ("unreadable", 1), ("without_load", 1)]);
    }
}

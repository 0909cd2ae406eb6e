//! What all requests of one client connection share.

use crate::connections::{ClientWait, ConnectionState, Entry};
use crate::deadline::Deadline;
use crate::host::Host;
use crate::streams::Delivery;
use crate::watch::Socket;
use bytes::Bytes;
use http::HeaderMap;
use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use suimon_message::peer::Peer;
use suimon_message::validate::RequestFault;
use suimon_model::{KindId, SessionId};

/// How long a half-closed client is still answered. Some clients half-close after their request and
/// keep reading; most have disconnected, and the two cannot be distinguished before something is
/// written. In the line, where it matters most, there is no such grace period.
pub const HALF_CLOSED_MAX: Duration = Duration::from_secs(1);

/// One client connection. Lives as long as any work for it goes on.
#[derive(Debug)]
pub struct Connection {
    peer: Peer,
    /// Its socket, where a closed one is not noticed otherwise: HTTP/1.
    socket: Option<Socket>,
    /// Until the watch is armed.
    watch_delay: Mutex<Deadline>,
    /// The visitor behind it, where nothing else identifies them.
    known: Mutex<ConnectionVisitor>,
    /// Whether what is written waits for the client.
    writes_wait: AtomicBool,
    /// See [`Connection::memo`].
    memo: OnceLock<Arc<AtomicU32>>,
    host: Arc<dyn Host>,
    entry: Entry,
}

/// Sites as whose visitor a client is known by one connection at a time.
const SITES_MAX: usize = 4;

/// What a visitor is at the sites behind the gateway: the number of each, and the session there. The
/// latest first.
type SiteSessions = [Option<(usize, (KindId, SessionId))>; SITES_MAX];

#[derive(Clone, Copy, Debug, Default)]
enum ConnectionVisitor {
    #[default]
    Nobody,
    Visitor(u64, SiteSessions),
    /// Several browsers use it: it is a balancer's.
    Many,
}

/// Marks a request as under way until it is dropped.
#[derive(Debug)]
pub struct Busy(Arc<Connection>);

impl Connection {
    /// Returns the connection of `peer`. `socket` is that of an HTTP/1 connection.
    pub fn new(peer: Peer, socket: Option<Socket>, host: Arc<dyn Host>, entry: Entry) -> Arc<Self> {
        host.note_connection_opened();
        let watch_delay = Mutex::default();
        let known = Mutex::default();
        let writes_wait = AtomicBool::new(false);
        let memo = OnceLock::new();
        Arc::new(Connection { peer, socket, watch_delay, known, writes_wait, memo, host, entry })
    }

    /// Returns a number that the application's side remembers for this connection; `u32::MAX` at first.
    pub fn memo(&self) -> &Arc<AtomicU32> {
        self.memo.get_or_init(|| Arc::new(AtomicU32::new(u32::MAX)))
    }

    /// Returns who is at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the whole answer to a request that cannot be read, and takes note of it. `accepts`:
    /// what its head says of the answer it asks for.
    pub fn unreadable(&self, fault: RequestFault, accepts: Option<HeaderMap>) -> Bytes {
        self.host.note_unreadable();
        self.host.unreadable(fault, accepts)
    }

    /// Returns the session as which a client has been served at a site by this connection before.
    pub fn session_of(&self, site: usize, client: u64) -> Option<(KindId, SessionId)> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            ConnectionVisitor::Visitor(key, sessions) if key == client => {
                sessions.into_iter().flatten().find(|(of, _)| *of == site).map(|(_, session)| session)
            }
            ConnectionVisitor::Visitor(..) => {
                *known = ConnectionVisitor::Many;
                None
            }
            ConnectionVisitor::Nobody | ConnectionVisitor::Many => None,
        }
    }

    /// Takes note that a client is served as `session` at a site, and returns whether the connection is
    /// its own.
    pub fn note_session(&self, site: usize, client: u64, session: (KindId, SessionId)) -> bool {
        if self.peer.is_trusted() {
            return false;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sessions = match *known {
            ConnectionVisitor::Many => return false,
            ConnectionVisitor::Visitor(key, _) if key != client => {
                *known = ConnectionVisitor::Many;
                return false;
            }
            ConnectionVisitor::Nobody => SiteSessions::default(),
            ConnectionVisitor::Visitor(_, sessions) => sessions,
        };
        let is_of_site = |entry: &Option<(usize, _)>| entry.is_none_or(|(of, _)| of == site);
        let at = sessions.iter().position(is_of_site).unwrap_or(SITES_MAX - 1);
        sessions[..=at].rotate_right(1);
        sessions[0] = Some((site, session));
        *known = ConnectionVisitor::Visitor(client, sessions);
        true
    }

    /// Takes note that a request is under way, `now`.
    pub fn begin(self: &Arc<Self>, now: Instant) -> Busy {
        self.entry.begin(now);
        Busy(Arc::clone(self))
    }

    /// Returns what is known of it as one of all connections.
    pub fn standing(&self) -> &Arc<ConnectionState> {
        self.entry.standing()
    }

    /// Returns whether it should not be kept for clients that only wait: nobody admitted comes by
    /// it, connections are few, and it is no balancer's.
    pub fn is_to_spare(&self) -> bool {
        !self.peer.is_trusted() && self.entry.is_to_spare()
    }

    /// Takes note whether what is written waits for the client.
    pub fn note_writes_wait(&self, waits: bool) {
        self.writes_wait.store(waits, Relaxed);
    }

    /// Returns whether all that the client lets us write is written.
    pub fn is_written(&self) -> bool {
        !self.writes_wait.load(Relaxed)
    }

    /// Returns how many requests have ended, answered or not. Wraps.
    pub fn done(&self) -> u32 {
        self.standing().done()
    }

    /// Returns how many requests have begun. Wraps.
    pub fn begun(&self) -> u32 {
        self.standing().begun()
    }

    fn watch_delay(&self) -> MutexGuard<'_, Deadline> {
        self.watch_delay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns once the client is known to have closed the connection; the watch is armed `after` a
    /// while. Never returns where the HTTP library notices by itself. For one request at a time.
    pub async fn closed(&self, after: Duration) {
        let Some(socket) = &self.socket else {
            return pending().await;
        };
        // One timer serves all requests of the connection: most are answered long before it goes
        // off.
        self.watch_delay().set(Some(after));
        poll_fn(|cx| self.watch_delay().poll(cx)).await;
        match socket.watch() {
            Ok(watch) => watch.await,
            // Out of kernel memory: the library still notices most clients that leave.
            Err(_) => pending().await,
        }
    }

    /// Returns once the client is known to have left, or to have closed its half of the connection
    /// for [`HALF_CLOSED_MAX`], which looks the same.
    pub async fn left(&self, after: Duration) {
        self.closed(after).await;
        tokio::time::sleep(HALF_CLOSED_MAX).await;
    }

    /// Takes note that its socket is about to be closed.
    pub fn close(&self) {
        if let Some(socket) = &self.socket {
            socket.close();
        }
    }
}

impl Busy {
    /// Returns what tells whether the request waits for its client.
    pub fn client_wait(&self) -> ClientWait {
        ClientWait::of(self.0.standing(), Delivery::current())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.host.note_connection_closed();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.standing().end();
    }
}

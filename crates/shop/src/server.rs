//! Threads and connections.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::http::{Connection, HttpFault, Request, Response};
use crate::pages;

/// Pause when the system has no descriptor or thread for another connection.
const PAUSE_WHEN_EXHAUSTED: Duration = Duration::from_millis(50);
/// How long a closing server waits for requests in progress; under overload they could take
/// minutes.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// Stack of a connection's thread, bytes; the walk over a document is a few calls deep.
const STACK_BYTES: usize = 256 * 1024;

/// What answers requests.
pub(crate) trait Site: Send + Sync {
    /// Returns the response to a request; may take as long as its work does.
    fn answer(&self, request: &Request) -> Response;
}

/// A site that is bound to its port. A clone is the same one.
#[derive(Clone)]
pub(crate) struct Server {
    inside: Arc<Inside>,
}

struct Inside {
    /// `None` once it serves.
    listener: Mutex<Option<TcpListener>>,
    address: SocketAddr,
    site: Box<dyn Site>,
    threads_max: usize,
    closing: AtomicBool,
    connections: Mutex<Connections>,
    one_ended: Condvar,
}

#[derive(Default)]
struct Connections {
    open: HashMap<u64, TcpStream>,
    next: u64,
}

impl Server {
    /// Serves `site` at `listener`, with so many connections at once.
    pub(crate) fn new(listener: TcpListener, threads_max: usize, site: Box<dyn Site>) -> io::Result<Self> {
        let inside = Inside {
            address: listener.local_addr()?,
            listener: Mutex::new(Some(listener)),
            site,
            threads_max,
            closing: AtomicBool::new(false),
            connections: Mutex::default(),
            one_ended: Condvar::new(),
        };
        Ok(Server { inside: Arc::new(inside) })
    }

    /// Returns the address it listens on.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.inside.address
    }

    /// Serves until [`Server::shutdown`]. Returns when the last request in progress is answered, or
    /// after waiting five seconds for that. It serves once; a second call returns at once.
    pub(crate) fn serve(&self) {
        let inside = &self.inside;
        let taken = inside.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(listener) = taken else { return };
        loop {
            let crowded = |connections: &mut Connections| {
                connections.open.len() >= inside.threads_max && !inside.closing.load(Ordering::SeqCst)
            };
            let room = inside.one_ended.wait_while(inside.connections(), crowded);
            drop(room.unwrap_or_else(PoisonError::into_inner));
            if inside.closing.load(Ordering::SeqCst) {
                break;
            }
            let accepted = listener.accept();
            if inside.closing.load(Ordering::SeqCst) {
                // This may be shutdown's own connection. Other connections that arrive during
                // shutdown are not served.
                break;
            }
            if accepted.and_then(|(stream, _)| begin(inside, stream)).is_err() {
                thread::sleep(PAUSE_WHEN_EXHAUSTED);
            }
        }
        // Frees the port now, even if connections are still open.
        drop(listener);
        let connections = inside.connections();
        for stream in connections.open.values() {
            // Idle connections wake and end; busy ones still send their response.
            let _already_gone = stream.shutdown(Shutdown::Read);
        }
        let busy = |connections: &mut Connections| !connections.open.is_empty();
        let ended = inside.one_ended.wait_timeout_while(connections, DRAIN_MAX, busy);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends [`Server::serve`]: it accepts no new connections and no further requests on open ones.
    pub(crate) fn shutdown(&self) {
        self.inside.closing.store(true, Ordering::SeqCst);
        // Takes the lock, so that a server about to wait for a free thread sees the flag or this
        // wake-up.
        drop(self.inside.connections());
        self.inside.one_ended.notify_all();
        // Wakes a server that waits for a connection.
        let _nobody_waits = TcpStream::connect(self.inside.address);
    }
}

impl Inside {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the connection a thread.
fn begin(inside: &Arc<Inside>, stream: TcpStream) -> io::Result<()> {
    let noted = stream.try_clone()?;
    let key = {
        let mut connections = inside.connections();
        connections.next += 1;
        let key = connections.next;
        connections.open.insert(key, noted);
        key
    };
    let place = ThreadPermit { inside: Arc::clone(inside), key };
    let thread = thread::Builder::new().name("shop".to_owned()).stack_size(STACK_BYTES);
    // If no thread can be started, dropping the closure returns the permit.
    thread.spawn(move || converse(&place.inside, stream)).map(drop)
}

/// A connection's entry among the open ones; removed on every way out, even after a panic.
struct ThreadPermit {
    inside: Arc<Inside>,
    key: u64,
}

impl Drop for ThreadPermit {
    fn drop(&mut self) {
        self.inside.connections().open.remove(&self.key);
        self.inside.one_ended.notify_all();
    }
}

/// Answers the connection's requests, one after another.
fn converse(inside: &Inside, stream: TcpStream) {
    let Ok(mut connection) = Connection::new(stream) else { return };
    loop {
        match connection.read_request() {
            Ok(request) => {
                let answer = inside.site.answer(&request);
                let keep = request.keep && !inside.closing.load(Ordering::SeqCst);
                let written = connection.write_response(&answer, request.method == "HEAD", keep);
                if written.is_err() {
                    return;
                }
                if !keep {
                    return connection.linger();
                }
            }
            Err(HttpFault::Refused(status, reason)) => {
                if connection.write_response(&pages::page(status, reason, ""), false, false).is_ok() {
                    connection.linger();
                }
                return;
            }
            Err(HttpFault::Gone) => return,
        }
    }
}

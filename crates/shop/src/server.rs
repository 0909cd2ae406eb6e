//! Threads and connections.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::http::{Connection, HttpFault};
use crate::options::Options;
use crate::pages::{self, Pages};
use crate::work::Work;

/// When the system has no descriptor or thread for another connection, it may have one after this
/// long.
const PAUSE_WHEN_EXHAUSTED: Duration = Duration::from_millis(50);
/// A server that closes waits this long for the requests under way; overloaded, they could take
/// minutes.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// Stack of a connection's thread, bytes; the walk over a document is a few calls deep.
const STACK_BYTES: usize = 256 * 1024;

/// The shop, bound to its port. A clone is the same shop.
#[derive(Clone)]
pub struct Shop {
    inside: Arc<Inside>,
}

struct Inside {
    /// Until it serves.
    listener: Mutex<Option<TcpListener>>,
    address: SocketAddr,
    pages: Pages,
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

impl Shop {
    /// Binds to the port on 127.0.0.1 and prepares the work, which takes about half a second of CPU
    /// unless the options name the counts. Fails if an option is out of range (`InvalidInput`) or
    /// the port cannot be had.
    pub fn bind(options: &Options) -> io::Result<Self> {
        options.check()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        let inside = Inside {
            address: listener.local_addr()?,
            listener: Mutex::new(Some(listener)),
            pages: Pages::prepare(options),
            threads_max: options.threads_max,
            closing: AtomicBool::new(false),
            connections: Mutex::default(),
            one_ended: Condvar::new(),
        };
        Ok(Shop { inside: Arc::new(inside) })
    }

    /// Returns the address it listens at.
    pub fn local_addr(&self) -> SocketAddr {
        self.inside.address
    }

    /// Returns what a page costs, as counts; the same counts given as options make the same work
    /// again.
    pub fn work(&self) -> Work {
        self.inside.pages.work
    }

    /// Serves until [`Shop::shutdown`]; returns when the last request under way has been answered,
    /// or after five seconds of waiting for that. A shop serves once; called again, this returns at
    /// once.
    pub fn serve(&self) {
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
                // Perhaps it was shutdown's own call; and connections that come while we close are
                // not served.
                break;
            }
            if accepted.and_then(|(stream, _)| begin(inside, stream)).is_err() {
                thread::sleep(PAUSE_WHEN_EXHAUSTED);
            }
        }
        // Frees the port now, whatever connections still have to end.
        drop(listener);
        let connections = inside.connections();
        for stream in connections.open.values() {
            // Idle ones wake and end; busy ones still answer.
            let _already_gone = stream.shutdown(Shutdown::Read);
        }
        let busy = |connections: &mut Connections| !connections.open.is_empty();
        let ended = inside.one_ended.wait_timeout_while(connections, DRAIN_MAX, busy);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends [`Shop::serve`]: no new connections, no further request on those that are open.
    pub fn shutdown(&self) {
        self.inside.closing.store(true, Ordering::SeqCst);
        // Taken, so that a server about to wait for room sees the flag or this wake-up.
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
    // If the thread cannot be had, the place is given back with the closure.
    thread.spawn(move || converse(&place.inside, stream)).map(drop)
}

/// A connection's entry among the open ones; given back on every way out, a panic included.
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
                let answer = inside.pages.answer(&request);
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

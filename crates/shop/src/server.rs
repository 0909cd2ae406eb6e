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

/// Pause when the system has no descriptor or thread for another connection.
const PAUSE_WHEN_EXHAUSTED: Duration = Duration::from_millis(50);
/// How long a closing server waits for requests in progress; under overload they could take
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
    /// `None` once it serves.
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
    /// the port cannot be bound.
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

    /// Returns the address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.inside.address
    }

    /// Returns the cost of a page as counts; passing them as options repeats the same work.
    pub fn work(&self) -> Work {
        self.inside.pages.work
    }

    /// Serves until [`Shop::shutdown`]. Returns when the last request in progress is answered, or
    /// after waiting five seconds for that. A shop serves once; a second call returns at once.
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

    /// Ends [`Shop::serve`]: it accepts no new connections and no further requests on open ones.
    pub fn shutdown(&self) {
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

//! What stands around the gateways: an application that does so many pages at once, the engine, and
//! a relay on the way to it that may swallow what is sent.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use suimon_process::{Program, Running, free_address};

use crate::common::Common;
use crate::gateways::{START_PATIENCE, find};
use crate::trouble::{Result, While};

/// The longest head of a request.
const HEAD_MAX: usize = 16 << 10;

/// An application whose capacity is no processor's: a page sleeps in one of so many slots.
pub(super) struct Application {
    pub(super) address: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    slots: u32,
    service: Duration,
    busy: Mutex<u32>,
    freed: Condvar,
    inside: AtomicU32,
    most: AtomicU32,
    served: AtomicU64,
}

impl Application {
    /// Starts one that works on so many pages at once, each for so long.
    pub(super) fn start(slots: u32, service: Duration) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).trouble("the application")?;
        let address = listener.local_addr().trouble("the application")?;
        let inner = Arc::new(Inner {
            slots,
            service,
            busy: Mutex::new(0),
            freed: Condvar::new(),
            inside: AtomicU32::new(0),
            most: AtomicU32::new(0),
            served: AtomicU64::new(0),
        });
        let of_all = Arc::clone(&inner);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(std::io::Result::ok) {
                let inner = Arc::clone(&of_all);
                thread::spawn(move || inner.serve(stream));
            }
        });
        Ok(Application { address, inner })
    }

    /// Returns the most requests that were in it at once since the last look.
    pub(super) fn most_inside(&self) -> u32 {
        let now = self.inner.inside.load(Ordering::SeqCst);
        self.inner.most.swap(now, Ordering::SeqCst)
    }

    /// Returns how many pages it has served.
    pub(super) fn served(&self) -> u64 {
        self.inner.served.load(Ordering::SeqCst)
    }
}

impl Inner {
    fn serve(&self, mut stream: TcpStream) {
        let (mut head, mut bytes) = (Vec::new(), [0; 4096]);
        while head.len() < HEAD_MAX {
            let Some(length) = stream.read(&mut bytes).ok().filter(|length| *length > 0) else { return };
            head.extend_from_slice(&bytes[..length]);
            while let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
                if head.starts_with(b"GET /page") {
                    self.page();
                }
                head.drain(..end + 4);
                let answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
                if stream.write_all(answer).is_err() {
                    return;
                }
            }
        }
    }

    fn page(&self) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |busy: &mut u32| *busy >= self.slots;
        let mut busy = self.freed.wait_while(busy, full).unwrap_or_else(PoisonError::into_inner);
        *busy += 1;
        drop(busy);
        thread::sleep(self.service);
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.freed.notify_one();
        self.inside.fetch_sub(1, Ordering::SeqCst);
        self.served.fetch_add(1, Ordering::SeqCst);
    }
}

/// A real server.
pub(super) struct Engine {
    pub(super) process: Running,
    pub(super) port: u16,
}

impl Engine {
    /// Starts one with nothing, on this port or a free one.
    pub(super) fn start(common: &Common, port: Option<u16>) -> Result<Engine> {
        let port = match port {
            Some(port) => port,
            None => free_address()?.port(),
        };
        let program = find("valkey-server").or_else(|_| find("redis-server"))?;
        let mut process = Program::new("engine", program)
            .cores(&[common.load_core])
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--port".to_string(), port.to_string()])
            .args(["--dir".to_string(), common.scratch.display().to_string()])
            .start(&common.scratch)?;
        process.wait_for_listener(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), START_PATIENCE)?;
        Ok(Engine { process, port })
    }
}

/// Passes connections on, or swallows what comes: as where packets are dropped.
pub(super) struct Relay {
    pub(super) port: u16,
    swallows: Arc<AtomicBool>,
}

impl Relay {
    pub(super) fn start(to: u16) -> Result<Relay> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).trouble("the relay")?;
        let port = listener.local_addr().trouble("the relay")?.port();
        let swallows = Arc::new(AtomicBool::new(false));
        let of_all = Arc::clone(&swallows);
        thread::spawn(move || {
            for near in listener.incoming().map_while(std::io::Result::ok) {
                let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)) else { continue };
                let (Ok(back), Ok(forth)) = (near.try_clone(), far.try_clone()) else { continue };
                for (from, to) in [(near, forth), (far, back)] {
                    let swallows = Arc::clone(&of_all);
                    thread::spawn(move || pass(from, to, &swallows));
                }
            }
        });
        Ok(Relay { port, swallows })
    }

    pub(super) fn swallow(&self, swallows: bool) {
        self.swallows.store(swallows, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, swallows: &AtomicBool) {
    let mut bytes = [0; 16 << 10];
    while let Some(length) = from.read(&mut bytes).ok().filter(|length| *length > 0) {
        if !swallows.load(Ordering::SeqCst) && to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

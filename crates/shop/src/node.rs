//! One of several servers of a made-up application: what it can do is said, not measured, and it takes
//! only a part of a processor, so that many of them fit on a small machine.
//!
//! A request holds a slot for as long as its work takes, and computes for a share of that time. With a
//! slice it gives its slot to the next one after each slice and waits again, as threads on a processor
//! do. So a node with `k` slots and work of `s` seconds on average serves `k / s` requests per second.
//!
//! ```text
//! GET  /ready                       200, or 500 while it fails
//! GET  /load                        how many requests it has
//! POST /control?mode=fail           from now on it answers 500 at once
//! POST /control?mode=slow&factor=5  from now on all work takes five times as long
//! POST /control?mode=silent         from now on it takes requests and answers none
//! POST /control?mode=well           as before; what was not answered is answered now
//! any other                         does its work, then 200 with the node's process
//! ```

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use suimon_model::Rng;

use crate::http::{Request, Response};
use crate::server::{Server, Site};

/// Connections at once, each with a thread.
const THREADS_MAX: usize = 2000;
/// A slot that is taken within this time of being given back has not been idle: what a sleep was too
/// long is caught up.
const CATCH_UP: Duration = Duration::from_millis(3);
/// How often a node's run queue is written.
const RUN_QUEUE_EVERY: Duration = Duration::from_millis(5);
/// The least and the most by which work can be slowed down.
const FACTORS: std::ops::RangeInclusive<f64> = 1.0..=1000.0;

/// How a node is set up.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeOptions {
    /// Address on this machine that it listens on.
    pub address: Ipv4Addr,
    /// Port there; 0 takes a free one.
    pub port: u16,
    /// Requests that it serves at once.
    pub slots: usize,
    /// Mean time of a request in a slot.
    pub mean: Duration,
    /// Whether that time is always the same; else it is exponential.
    pub is_fixed: bool,
    /// Share of the requests that take another time, and the shortest and longest of it; all of equal
    /// ratio are as likely.
    pub dynamic: (f64, Duration, Duration),
    /// After this time in a slot a request waits for its next turn; `None`: it keeps the slot.
    pub slice: Option<Duration>,
    /// Share of the time in a slot that it computes.
    pub cpu: f64,
    /// How long it takes from its start until it listens.
    pub starts_after: Duration,
    /// A folder in which it writes `loadavg` as the kernel of a machine would that runs nothing but
    /// its requests, each as a task.
    pub proc: Option<PathBuf>,
}

impl Default for NodeOptions {
    fn default() -> Self {
        NodeOptions {
            address: Ipv4Addr::LOCALHOST,
            port: 8080,
            slots: 1,
            mean: Duration::from_millis(20),
            is_fixed: false,
            dynamic: (0.0, Duration::from_millis(5), Duration::from_millis(500)),
            slice: None,
            cpu: 0.1,
            starts_after: Duration::ZERO,
            proc: None,
        }
    }
}

impl NodeOptions {
    fn check(&self) -> io::Result<()> {
        let (share, from, to) = self.dynamic;
        let fault = if self.slots == 0 {
            "slots: must be at least 1"
        } else if self.slice.is_some_and(|slice| slice < Duration::from_millis(1)) {
            "slice: must be at least 1ms"
        } else if !(0.0..=1.0).contains(&self.cpu) || !(0.0..=1.0).contains(&share) {
            "cpu, dynamic: must be from 0 to 1"
        } else if from.is_zero() || to < from {
            "dynamic-from, dynamic-to: must be above 0, and in this order"
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, fault))
    }

    /// Returns the mean time of a request in a slot, dynamic ones among them.
    pub fn mean_s(&self) -> f64 {
        let (share, from, to) = self.dynamic;
        let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
        let dynamic = if to > from { (to - from) / (to / from).ln() } else { from };
        share * dynamic + (1.0 - share) * self.mean.as_secs_f64()
    }
}

/// A node, bound to its port. A clone is the same node.
#[derive(Clone)]
pub struct Node {
    server: Server,
}

impl Node {
    /// Starts, which takes as long as it is said to, and binds to the port.
    ///
    /// # Errors
    /// An option is out of range (`InvalidInput`), or the port cannot be bound.
    pub fn bind(options: &NodeOptions) -> io::Result<Self> {
        options.check()?;
        thread::sleep(options.starts_after);
        let listener = TcpListener::bind((options.address, options.port))?;
        let seed = u64::from(listener.local_addr()?.port());
        let present = Arc::new(AtomicUsize::new(0));
        if let Some(folder) = options.proc.clone() {
            write_run_queue(&folder, 0)?;
            let present = Arc::clone(&present);
            let write = move || keep_writing(&folder, &present);
            thread::Builder::new().name("run queue".to_owned()).spawn(write)?;
        }
        let site = NodeSite {
            slots: Slots::new(options.slots),
            options: options.clone(),
            rng: Mutex::new(Rng::new(seed)),
            mode: Mutex::new(Mode::Well),
            mode_changed: Condvar::new(),
            present: Arc::clone(&present),
        };
        Ok(Node { server: Server::new(listener, THREADS_MAX, Box::new(site))? })
    }

    /// Returns the address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Serves until [`Node::shutdown`], and to the end of what it has then, for five seconds at most.
    pub fn serve(&self) {
        self.server.serve();
    }

    /// Ends [`Node::serve`].
    pub fn shutdown(&self) {
        self.server.shutdown();
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Well,
    Fail,
    Slow(f64),
    Silent,
}

struct NodeSite {
    options: NodeOptions,
    slots: Slots,
    rng: Mutex<Rng>,
    mode: Mutex<Mode>,
    mode_changed: Condvar,
    /// Requests that are served or wait for a slot.
    present: Arc<AtomicUsize>,
}

impl Site for NodeSite {
    fn answer(&self, request: &Request) -> Response {
        match request.path.as_str() {
            "/control" if request.method == "POST" => return self.control(request),
            "/load" => return text(200, &self.present.load(Ordering::Relaxed).to_string()),
            _ => {}
        }
        let mode = self.mode_unless_silent();
        match request.path.as_str() {
            _ if mode == Mode::Fail => text(500, "it fails"),
            "/ready" => text(200, "ready"),
            _ => {
                self.present.fetch_add(1, Ordering::Relaxed);
                self.work();
                self.present.fetch_sub(1, Ordering::Relaxed);
                text(200, &format!("served by {}", std::process::id()))
            }
        }
    }
}

impl NodeSite {
    /// Returns how it behaves; waits for as long as it answers nothing.
    fn mode_unless_silent(&self) -> Mode {
        let is_silent = |mode: &mut Mode| *mode == Mode::Silent;
        let mode = self.mode_changed.wait_while(locked(&self.mode), is_silent);
        *mode.unwrap_or_else(PoisonError::into_inner)
    }

    fn control(&self, request: &Request) -> Response {
        let factor = request.query_field("factor").and_then(|factor| factor.parse().ok());
        let factor = factor.filter(|factor| FACTORS.contains(factor));
        let mode = match (request.query_field("mode").as_deref(), factor) {
            (Some("well"), _) => Mode::Well,
            (Some("fail"), _) => Mode::Fail,
            (Some("silent"), _) => Mode::Silent,
            (Some("slow"), Some(factor)) => Mode::Slow(factor),
            _ => return text(400, "mode: well, fail, silent, or slow with a factor from 1 to 1000"),
        };
        *locked(&self.mode) = mode;
        self.mode_changed.notify_all();
        text(200, "done")
    }

    fn work(&self) {
        let mut left = self.time();
        let slice = self.options.slice.unwrap_or(Duration::MAX);
        while !left.is_zero() {
            let part = left.min(slice);
            let began = self.slots.take();
            // What it was told meanwhile counts from the next slice on.
            let factor = if let Mode::Slow(factor) = *locked(&self.mode) { factor } else { 1.0 };
            let lasts = part.mul_f64(factor);
            compute(part.mul_f64(self.options.cpu));
            thread::sleep((began + lasts).saturating_duration_since(Instant::now()));
            self.slots.give_back(began + lasts);
            left -= part;
        }
    }

    /// Draws the time of a request in a slot.
    fn time(&self) -> Duration {
        let (share, from, to) = self.options.dynamic;
        let mut rng = locked(&self.rng);
        if rng.chance(share) {
            return from.mul_f64((to.as_secs_f64() / from.as_secs_f64()).powf(rng.uniform()));
        }
        let mean = self.options.mean;
        if self.options.is_fixed { mean } else { mean.mul_f64(rng.exponential(1.0)) }
    }
}

/// Writes how many requests there are, whenever it has changed, for as long as the process lives.
fn keep_writing(folder: &Path, present: &AtomicUsize) {
    let mut written = 0;
    loop {
        let count = present.load(Ordering::Relaxed);
        if count != written && write_run_queue(folder, count).is_ok() {
            written = count;
        }
        thread::sleep(RUN_QUEUE_EVERY);
    }
}

/// Whoever reads sees the old file or the new one. The agent takes itself for one of the tasks.
fn write_run_queue(folder: &Path, count: usize) -> io::Result<()> {
    let next = folder.join("loadavg.next");
    fs::write(&next, format!("0.00 0.00 0.00 {}/4000 1\n", count + 1))?;
    fs::rename(next, folder.join("loadavg"))
}

/// Computes for so long, by this thread's own CPU time: on a busy machine it is waited for.
fn compute(lasts: Duration) {
    let until = thread_cpu() + lasts;
    while thread_cpu() < until {
        std::hint::spin_loop();
    }
}

fn thread_cpu() -> Duration {
    // The kernel never counts below zero.
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Slots that are given to those who wait in the order in which they came.
struct Slots {
    inside: Mutex<Inside>,
}

struct Inside {
    /// When each free slot was given back.
    free: Vec<Instant>,
    /// At most as many as there are connections.
    waiting: VecDeque<SyncSender<Instant>>,
}

impl Slots {
    fn new(count: usize) -> Self {
        let free = vec![Instant::now(); count];
        Slots { inside: Mutex::new(Inside { free, waiting: VecDeque::new() }) }
    }

    /// Waits for a slot, and returns since when it is held.
    fn take(&self) -> Instant {
        let turn = {
            let mut inside = locked(&self.inside);
            if let Some(since) = inside.free.pop() {
                Ok(since)
            } else {
                let (sender, turn) = sync_channel(1);
                inside.waiting.push_back(sender);
                Err(turn)
            }
        };
        let since = turn.or_else(|turn| turn.recv()).unwrap_or_else(|_| Instant::now());
        let now = Instant::now();
        if now.saturating_duration_since(since) < CATCH_UP { since } else { now }
    }

    /// Gives a slot back that was held until `until`.
    fn give_back(&self, until: Instant) {
        let mut inside = locked(&self.inside);
        while let Some(next) = inside.waiting.pop_front() {
            if next.send(until).is_ok() {
                return;
            }
        }
        inside.free.push(until);
    }
}

fn locked<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(status: u16, body: &str) -> Response {
    Response { status, content_type: "text/plain", headers: String::new(), body: format!("{body}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(options: NodeOptions) -> NodeSite {
        NodeSite {
            slots: Slots::new(options.slots),
            options,
            rng: Mutex::new(Rng::new(1)),
            mode: Mutex::new(Mode::Well),
            mode_changed: Condvar::new(),
            present: Arc::default(),
        }
    }

    fn ask(site: &NodeSite, method: &str, path: &str, query: &str) -> Response {
        site.answer(&Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            cookies: Vec::new(),
            body: Vec::new(),
            keep: true,
        })
    }

    #[test]
    fn work_takes_a_slot_for_its_time_and_the_next_waits() {
        let mean = Duration::from_millis(20);
        let site = Arc::new(site(NodeOptions { mean, is_fixed: true, ..NodeOptions::default() }));
        let began = Instant::now();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert_eq!(ask(&site, "GET", "/", "").status, 200));
            }
        });
        assert!(began.elapsed() >= 3 * mean - CATCH_UP, "one slot serves one at a time");
        assert_eq!(ask(&site, "GET", "/load", "").body, "0\n");
    }

    #[test]
    fn the_run_queue_is_written_as_the_kernel_writes_it() {
        let folder = std::env::temp_dir().join(format!("suimon-node-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        write_run_queue(&folder, 3).unwrap();
        assert_eq!(fs::read_to_string(folder.join("loadavg")).unwrap(), "0.00 0.00 0.00 4/4000 1\n");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn it_fails_and_is_slow_as_it_is_told() {
        let mean = Duration::from_millis(5);
        let site = site(NodeOptions { mean, is_fixed: true, ..NodeOptions::default() });
        assert_eq!(ask(&site, "POST", "/control", "mode=fail").status, 200);
        assert_eq!((ask(&site, "GET", "/", "").status, ask(&site, "GET", "/ready", "").status), (500, 500));
        assert_eq!(ask(&site, "POST", "/control", "mode=slow&factor=5").status, 200);
        let began = Instant::now();
        assert_eq!(ask(&site, "GET", "/", "").status, 200);
        assert!(began.elapsed() >= 5 * mean - CATCH_UP);
        for wrong in ["", "mode=slow", "mode=slow&factor=0.5", "mode=slow&factor=NaN"] {
            assert_eq!(ask(&site, "POST", "/control", wrong).status, 400, "{wrong}");
        }
    }

    #[test]
    fn while_it_is_silent_it_answers_nothing() {
        let site = site(NodeOptions { mean: Duration::from_millis(1), ..NodeOptions::default() });
        assert_eq!(ask(&site, "POST", "/control", "mode=silent").status, 200);
        thread::scope(|scope| {
            let (done, answered) = std::sync::mpsc::channel();
            let site = &site;
            scope.spawn(move || done.send(ask(site, "GET", "/", "").status));
            assert!(answered.recv_timeout(Duration::from_millis(100)).is_err());
            assert_eq!(ask(site, "POST", "/control", "mode=well").status, 200);
            assert_eq!(answered.recv(), Ok(200));
        });
    }

    #[test]
    fn times_have_their_mean() {
        let dynamic = (0.1, Duration::from_millis(5), Duration::from_millis(500));
        let site = site(NodeOptions { dynamic, ..NodeOptions::default() });
        let count = 20_000;
        let sum: Duration = (0..count).map(|_| site.time()).sum();
        let off = sum.as_secs_f64() / f64::from(count) / site.options.mean_s();
        assert!((0.97..1.03).contains(&off), "{off}");
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let wrong = [
            NodeOptions { slots: 0, ..NodeOptions::default() },
            NodeOptions { cpu: 1.5, ..NodeOptions::default() },
            NodeOptions { slice: Some(Duration::ZERO), ..NodeOptions::default() },
        ];
        for options in wrong {
            let error = Node::bind(&options).err().map(|error| error.kind());
            assert_eq!(error, Some(io::ErrorKind::InvalidInput), "{options:?}");
        }
    }
}

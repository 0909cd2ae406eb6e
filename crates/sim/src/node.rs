//! A model of an application server: an accept path, threads, waits for other systems, and a
//! processor shared by the jobs in service.
//!
//! All jobs on the processor advance in one virtual time V, so an event costs O(log n):
//!
//! ```text
//! dV/dt = work(n, M) / Σ q_i                                    job i ends when V has advanced by demand_i / q_i      (1)
//! work  = min(n, cores) · speed · E(M)                          CPU seconds done a second                             (2)
//! E(M)  = 1 for M ≤ knee, else max(floor, 1 / (1 + slope · (M − knee)))            the paper's collector              (3)
//! E(M)  = max(floor, 1 / (1 + cost · M / (heap − M)))                              a copying collector in a heap      (4)
//! work  = n · speed / (1 + contention · (n − 1) + coherency · n (n − 1))           the universal scalability law      (5)
//! 1/E(M) straight between measured points                                          a real application's own curve     (6)
//! ```
//!
//! M: memory held by the jobs in service; for (4) plus what the application holds at rest. q_i: the
//! operating system's uneven weights, exponential with mean 1 plus 0.02, or all 1. With equal
//! weights, a burst of equal jobs ends at a single instant.
//!
//! A request passes these stages before the processor:
//! - the accept path, one request at a time: a0 + κ · max(0, (n − cores) / cores) seconds, κ being
//!   the operating system's constant;
//! - a thread, for which it may have to wait;
//! - its route's lock, if it has one, held until the request ends;
//! - a wait for other systems (a database) on one of the connections, without using the processor.
//!
//! It may pause before, inside and after its work on the processor, and holds its thread meanwhile.
//!
//! *Source*: LAWS §1 of the design, with (3) and q from what reproduces the paper's results; (4)
//! for a real virtual machine; (5) Gunther.

mod machine;
mod pauses;

use pauses::Paced;

pub use machine::{Curve, Efficiency, Machine, POINTS_MAX};
pub use pauses::Pauses;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use suimon_model::{Instant, Rng, seconds};
use suimon_statistics::Histogram;

/// The resolution of virtual time: jobs that end within it have ended.
const GRAIN: f64 = 1e-9;

/// One request's work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Job {
    /// Its number, unique while it is in the node.
    pub id: u64,
    /// Seconds of waiting for other systems.
    pub elsewhere: f64,
    /// CPU seconds.
    pub cpu: f64,
    /// Memory held while it is on the processor.
    pub memory: f64,
    /// The lock that it must take first, if any.
    pub lock: Option<Lock>,
    /// When it rests although it could work.
    pub pauses: Pauses,
}

/// A lock inside the application, held from the time a request has its thread until it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lock {
    /// The number of the lock.
    pub number: u32,
    /// The most requests that hold it at once; the rest wait, first in, first out.
    pub holders_max: u32,
}

/// A node and all requests in it.
#[derive(Debug)]
pub struct Node {
    machine: Machine,
    rng: Rng,
    /// Requests in the accept path and since when; the first one leaves it at `accepted`.
    arriving: VecDeque<(Instant, Job)>,
    accepted: Instant,
    accept_path: Histogram,
    /// Requests waiting for a thread.
    threadless: VecDeque<Job>,
    /// Requests that have a thread.
    running: usize,
    /// By lock: the number of its holders, and the requests that wait for it.
    locks: BTreeMap<u32, (usize, VecDeque<Job>)>,
    /// By request: the lock that it holds.
    holders: BTreeMap<u64, u32>,
    /// Requests waiting for a connection.
    unconnected: VecDeque<Job>,
    /// Requests that wait for other systems, by the end of the wait.
    elsewhere: BinaryHeap<Reverse<(Instant, u64)>>,
    /// Those requests, by number, for their later work on the processor.
    to_come: BTreeMap<u64, Job>,
    /// Pausing, until then.
    paused: BinaryHeap<Reverse<(Instant, u64)>>,
    /// Requests that pause, from their thread to their end.
    paced: BTreeMap<u64, Paced>,
    processor: Processor,
    ended: VecDeque<u64>,
}

#[derive(Debug)]
struct Processor {
    now: Instant,
    virtual_time: f64,
    weights: f64,
    memory: f64,
    /// Memory held by requests that pause in the middle of their work.
    paused_memory: f64,
    /// By the virtual time at which they end (as ordered bits) and number: weight and memory.
    jobs: BTreeMap<(u64, u64), (f64, f64)>,
    busy: f64,
    work: f64,
}

/// What a node's processor has done since the start.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    /// Core-seconds in use.
    pub busy: f64,
    /// CPU seconds of work done.
    pub work: f64,
}

impl Node {
    /// Returns an idle node.
    pub fn new(machine: Machine, rng: Rng) -> Self {
        Node {
            machine,
            rng,
            arriving: VecDeque::new(),
            accepted: Instant::ORIGIN,
            accept_path: Histogram::default(),
            threadless: VecDeque::new(),
            running: 0,
            locks: BTreeMap::new(),
            holders: BTreeMap::new(),
            unconnected: VecDeque::new(),
            elsewhere: BinaryHeap::new(),
            to_come: BTreeMap::new(),
            paused: BinaryHeap::new(),
            paced: BTreeMap::new(),
            processor: Processor {
                now: Instant::ORIGIN,
                virtual_time: 0.0,
                weights: 0.0,
                memory: 0.0,
                paused_memory: 0.0,
                jobs: BTreeMap::new(),
                busy: 0.0,
                work: 0.0,
            },
            ended: VecDeque::new(),
        }
    }

    /// Takes in a request.
    pub fn handle_arrival(&mut self, now: Instant, job: Job) {
        self.handle_timeout(now);
        if self.machine.accept <= 0.0 && self.machine.accept_crowded <= 0.0 {
            return self.take_thread(now, job);
        }
        self.arriving.push_back((now, job));
        if self.arriving.len() == 1 {
            self.accepted = now + seconds(self.accept_time());
        }
    }

    /// Replaces the machine from now on. A request in the accept path goes on as it began.
    pub fn handle_change(&mut self, now: Instant, machine: Machine) {
        self.handle_timeout(now);
        self.machine = machine;
        while self.has_thread()
            && let Some(job) = self.threadless.pop_front()
        {
            self.take_thread(now, job);
        }
        self.connect(now);
    }

    /// Does all that is due by `now`: see [`Node::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.poll_timeout().filter(|due| *due <= now) {
            self.step(due);
        }
        self.processor.advance(now, &self.machine);
    }

    /// Returns the number of a request that has ended; `None` if there is none.
    pub fn poll_ended(&mut self) -> Option<u64> {
        self.ended.pop_front()
    }

    /// Returns when `handle_timeout` must be called, if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let accepted = (!self.arriving.is_empty()).then_some(self.accepted);
        let back = self.elsewhere.peek().map(|Reverse((at, _))| *at);
        let resumed = self.paused.peek().map(|Reverse((at, _))| *at);
        let done = self.processor.next_end(&self.machine);
        [accepted, back, resumed, done].into_iter().flatten().min()
    }

    /// Returns what the processor has done by `now`.
    pub fn usage(&mut self, now: Instant) -> Usage {
        self.processor.advance(now, &self.machine);
        Usage { busy: self.processor.busy, work: self.processor.work }
    }

    /// Returns the times from arrival to the end of the accept path, of all requests so far that
    /// have passed it; empty where there is no accept path.
    pub const fn accept_path(&self) -> &Histogram {
        &self.accept_path
    }

    /// Returns how many requests are in the node.
    pub fn in_service(&self) -> usize {
        self.arriving.len() + self.threadless.len() + self.running
    }

    fn step(&mut self, now: Instant) {
        self.processor.advance(now, &self.machine);
        if !self.arriving.is_empty() && self.accepted <= now {
            let (since, job) = self.arriving.pop_front().expect("somebody was being taken in a line ago");
            self.accept_path.record(now.since(since));
            if !self.arriving.is_empty() {
                self.accepted = now + seconds(self.accept_time());
            }
            self.take_thread(now, job);
        }
        while let Some(Reverse((_, id))) =
            self.elsewhere.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.elsewhere.pop();
            let job = self.to_come.remove(&id).expect("a job that waits for others comes back once");
            self.processor.start(job, weight(&self.machine, &mut self.rng));
        }
        while let Some(Reverse((_, id))) = self.paused.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.paused.pop();
            self.resume(now, id);
        }
        self.connect(now);
        while let Some(id) = self.processor.pop_ended() {
            if !self.pause_after_work(now, id) {
                self.end(now, id);
            }
        }
    }

    fn end(&mut self, now: Instant, id: u64) {
        self.ended.push_back(id);
        self.running -= 1;
        self.unlock(now, id);
        if let Some(job) = self.threadless.pop_front() {
            self.take_thread(now, job);
        }
    }

    fn has_thread(&self) -> bool {
        self.machine.threads.is_none_or(|threads| self.running < threads as usize)
    }

    fn take_thread(&mut self, now: Instant, job: Job) {
        if !self.has_thread() {
            return self.threadless.push_back(job);
        }
        self.running += 1;
        if let Some(lock) = job.lock {
            let (held, waiting) = self.locks.entry(lock.number).or_default();
            if *held >= lock.holders_max as usize {
                return waiting.push_back(job);
            }
            *held += 1;
            self.holders.insert(job.id, lock.number);
        }
        self.begin(now, job);
    }

    /// Begins with a request that has its thread and its lock.
    fn begin(&mut self, now: Instant, job: Job) {
        if job.pauses == Pauses::default() { self.work(now, job) } else { self.pause_before_work(now, job) }
    }

    /// Begins the work of a request, or a piece of it.
    fn work(&mut self, now: Instant, job: Job) {
        if job.elsewhere > 0.0 {
            self.unconnected.push_back(job);
            self.connect(now);
        } else {
            self.processor.start(job, weight(&self.machine, &mut self.rng));
        }
    }

    /// Gives connections to waiting requests, as long as both last.
    fn connect(&mut self, now: Instant) {
        while self.machine.connections.is_none_or(|all| self.elsewhere.len() < all as usize)
            && let Some(job) = self.unconnected.pop_front()
        {
            self.elsewhere.push(Reverse((now + seconds(job.elsewhere), job.id)));
            self.to_come.insert(job.id, job);
        }
    }

    /// Passes the lock that request `id` held, if any, to the request that has waited longest for
    /// it.
    fn unlock(&mut self, now: Instant, id: u64) {
        let Some(number) = self.holders.remove(&id) else { return };
        let (held, waiting) = self.locks.get_mut(&number).expect("a lock that is held is known");
        match waiting.pop_front() {
            Some(job) => {
                self.holders.insert(job.id, number);
                self.begin(now, job);
            }
            None => *held -= 1,
        }
    }

    fn accept_time(&self) -> f64 {
        let Machine { cores, accept, accept_crowded, .. } = self.machine;
        accept + accept_crowded * ((self.processor.jobs.len() as f64 - cores) / cores).max(0.0)
    }
}

fn weight(machine: &Machine, rng: &mut Rng) -> f64 {
    if machine.even { 1.0 } else { rng.exponential(1.0) + 0.02 }
}

impl Processor {
    fn start(&mut self, job: Job, weight: f64) {
        let ends = self.virtual_time + job.cpu / weight;
        // Positive floats have the order of their bits.
        self.jobs.insert((ends.to_bits(), job.id), (weight, job.memory));
        self.weights += weight;
        self.memory += job.memory;
    }

    fn pop_ended(&mut self) -> Option<u64> {
        let (&(ends, id), &(weight, memory)) = self.jobs.first_key_value()?;
        if f64::from_bits(ends) > self.virtual_time + GRAIN {
            return None;
        }
        self.jobs.remove(&(ends, id));
        self.weights -= weight;
        self.memory -= memory;
        if self.jobs.is_empty() {
            // Sums of floats drift, so they are reset whenever the processor is idle.
            (self.weights, self.memory, self.virtual_time) = (0.0, 0.0, 0.0);
        }
        Some(id)
    }

    fn next_end(&self, machine: &Machine) -> Option<Instant> {
        let (&(ends, _), _) = self.jobs.first_key_value()?;
        let left = (f64::from_bits(ends) - self.virtual_time).max(0.0);
        if left <= GRAIN {
            return Some(self.now);
        }
        // Rounded up, so that the job has certainly ended by then.
        Some(self.now + seconds(left / self.rate(machine)) + std::time::Duration::from_nanos(1))
    }

    /// Returns dV/dt of (1).
    fn rate(&self, machine: &Machine) -> f64 {
        machine.work_per_second(self.jobs.len(), self.memory + self.paused_memory) / self.weights.max(1e-9)
    }

    fn advance(&mut self, now: Instant, machine: &Machine) {
        if !self.jobs.is_empty() {
            let passed = now.secs_since(self.now);
            self.virtual_time += self.rate(machine) * passed;
            self.busy += (self.jobs.len() as f64).min(machine.cores) * passed;
            self.work += machine.work_per_second(self.jobs.len(), self.memory + self.paused_memory) * passed;
        }
        self.now = self.now.max(now);
    }
}

#[cfg(test)]
mod tests;

//! Resident workers in front of the application: paper P3's host.
//!
//! ```text
//! c(n) = (c + c_cgi) · (1 + beyond · max(0, n − cached))          CPU seconds of a request            (1)
//! w(n) = w + swap · max(0, 1 − machine / (n · memory))            its seconds elsewhere               (2)
//! ```
//!
//! n: processes, whatever they do. A request has a worker from its start to its end, and waits where
//! none is idle, first in, first out. A start is a job of its own on the same processor. Under CGI each
//! request is a process: it waits for none, and pays for its start (c_cgi).
//!
//! *Source*: LAWS §5 of the design, with figures that reproduce P3's results.

use crate::node::{Job, Machine};
use crate::threads::through;
use std::collections::{BTreeMap, VecDeque};
use suimon_control::{ResidentMove, ResidentParams, ResidentSample, SizeLaw, SizeLawKind};
use suimon_fleet::workers::{Exit, Release, WorkerId, Workers, WorkersCount, WorkersOutput, WorkersParams};
use suimon_model::{Duration, Instant};

/// Numbers of jobs from here on are starts of workers.
const STARTS: u64 = 1 << 62;
/// The most moves kept of a run.
const MOVES_MAX: usize = 10_000;
/// Times from a start until the worker is ready count by this share of the mean.
const START_SHARE: f64 = 0.3;

/// The pool of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolSetup {
    /// How the number of residents is found; `None`: CGI, a process for each request.
    pub law: Option<SizeLawKind>,
    /// Workers that are ready at the start.
    pub workers: u32,
    /// Whether that number was found before.
    pub is_known: bool,
    /// The most workers.
    pub most: u32,
    /// CPU seconds of a start.
    pub start: f64,
    /// Processes up to which they cost nothing, ...
    pub cached: u32,
    /// ... and what each further one adds to the CPU seconds of a request, as a share.
    pub beyond: f64,
    /// Memory of a worker.
    pub memory: f64,
    /// Memory that the pool may take, and that the machine has for it; `None`: enough.
    pub budget: Option<f64>,
    /// See [`PoolSetup::budget`].
    pub machine: Option<f64>,
    /// Seconds to bring back a worker that was swapped out.
    pub swap: f64,
}

impl Default for PoolSetup {
    fn default() -> Self {
        PoolSetup {
            law: Some(SizeLawKind::default()),
            workers: 5,
            is_known: false,
            most: 100,
            start: 0.5,
            cached: 22,
            beyond: 0.02,
            memory: 0.0,
            budget: None,
            machine: None,
            swap: 1.0,
        }
    }
}

/// A pool at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolSecond {
    /// Workers that are ready.
    pub ready: u32,
    /// Workers that start.
    pub starting: u32,
    /// Workers with a request.
    pub busy: u32,
    /// Requests that wait for one.
    pub waiting: u32,
    /// Starts so far.
    pub starts: u64,
    /// Moves of the number of residents so far.
    pub moves: u64,
}

impl PoolSetup {
    /// (1) as a factor of c.
    fn cost_of(&self, processes: u32) -> f64 {
        1.0 + self.beyond * f64::from(processes.saturating_sub(self.cached))
    }

    /// The share of (2).
    fn swapped(&self, processes: u32) -> f64 {
        let needed = f64::from(processes) * self.memory;
        self.machine.map_or(0.0, |machine| (1.0 - machine / needed.max(1e-9)).max(0.0))
    }

    /// Returns the requests per second with the best fixed number of workers. A request takes `cpu`
    /// seconds of the processor and `elsewhere` without, and holds `memory`.
    pub(crate) fn best(&self, machine: &Machine, cpu: f64, elsewhere: f64, memory: f64) -> f64 {
        (1..=self.most).map(|workers| self.with(workers, machine, cpu, elsewhere, memory)).fold(0.0, f64::max)
    }

    fn with(&self, workers: u32, machine: &Machine, cpu: f64, elsewhere: f64, memory: f64) -> f64 {
        let cgi = if self.law.is_none() { self.start } else { 0.0 };
        let cpu = (cpu + cgi) * self.cost_of(workers);
        through(machine, workers, cpu, elsewhere + self.swap * self.swapped(workers), memory)
    }
}

/// The pool of a run.
pub(crate) struct Pool {
    setup: PoolSetup,
    law: Option<SizeLaw>,
    workers: Workers,
    waiting: VecDeque<(Instant, Job)>,
    /// By job: its worker, and since when.
    at_work: BTreeMap<u64, (WorkerId, Instant)>,
    /// Under CGI: requests in the node.
    processes: u32,
    /// By worker: when its start began.
    starts: BTreeMap<WorkerId, Instant>,
    start_s: Option<f64>,
    /// Since the last tick.
    completed: u64,
    took_s: f64,
    running_max: u32,
    short_s: f64,
    held_s: f64,
    is_held: bool,
    /// Since when all have a request and others wait.
    short_since: Option<Instant>,
    looked: Instant,
    ticked: Instant,
    seen: PoolSecond,
    pub(crate) moves: Vec<(Instant, ResidentMove)>,
}

impl Pool {
    pub(crate) fn new(setup: &PoolSetup, cores: f64, seed: u64) -> Self {
        let now = Instant::ORIGIN;
        let cores = (cores.ceil() as u32).max(1);
        let params = ResidentParams {
            initial: setup.workers,
            is_known: setup.is_known,
            least: 1,
            most: setup.most,
            cores,
        };
        let law = setup.law.map(|law| SizeLaw::new(law, params));
        let workers = Workers::new(WorkersParams {
            starting_cores: (cores / 2).max(1) as usize,
            ready_within: Duration::from_secs(600),
            stop_within: Duration::from_secs(30),
            seed,
            ..WorkersParams::default()
        });
        let mut pool = Pool {
            setup: setup.clone(),
            law,
            workers,
            waiting: VecDeque::new(),
            at_work: BTreeMap::new(),
            processes: 0,
            starts: BTreeMap::new(),
            start_s: None,
            completed: 0,
            took_s: 0.0,
            running_max: 0,
            short_s: 0.0,
            held_s: 0.0,
            is_held: false,
            short_since: None,
            looked: now,
            ticked: now,
            seen: PoolSecond::default(),
            moves: vec![],
        };
        let wanted = pool.law.as_ref().map_or(0, SizeLaw::wanted);
        pool.workers.set_wanted(now, wanted as usize);
        // They are there already.
        while let Some(output) = pool.workers.poll_output() {
            if let WorkersOutput::Start(worker) = output {
                pool.workers.handle_ready(now, worker);
            }
        }
        pool
    }

    /// Takes in a request.
    pub(crate) fn handle_arrival(&mut self, now: Instant, job: Job) {
        self.waiting.push_back((now, job));
    }

    /// Takes note of the end of a job in the node. Returns whether it was a request.
    pub(crate) fn handle_end(&mut self, now: Instant, job: u64) -> bool {
        if let Some(worker) = job.checked_sub(STARTS).map(WorkerId) {
            if let Some(since) = self.starts.remove(&worker) {
                let took = now.secs_since(since);
                let mean = self.start_s.unwrap_or(took);
                self.start_s = Some(mean + START_SHARE * (took - mean));
            }
            self.workers.handle_ready(now, worker);
            return false;
        }
        self.completed += 1;
        match self.at_work.remove(&job) {
            Some((worker, since)) => {
                self.took_s += now.secs_since(since);
                self.workers.release(now, worker, Release::Done);
            }
            None => self.processes = self.processes.saturating_sub(1),
        }
        true
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.workers.handle_timeout(now);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.workers.poll_timeout()
    }

    /// Returns the next job for the node.
    pub(crate) fn poll_output(&mut self, now: Instant) -> Option<Job> {
        while let Some(output) = self.workers.poll_output() {
            match output {
                WorkersOutput::Start(worker) => {
                    self.starts.insert(worker, now);
                    self.seen.starts += 1;
                    return Some(self.start_of(worker));
                }
                // Idle ones end at once; one that starts goes on to its end on the processor.
                WorkersOutput::Stop(worker) | WorkersOutput::Kill(worker) => {
                    self.starts.remove(&worker);
                    self.workers.handle_exit(now, worker, Exit::Code(0));
                }
                // Nothing is cancelled here.
                WorkersOutput::Ask(_) | WorkersOutput::Changed(_) => {}
            }
        }
        if self.waiting.is_empty() {
            return None;
        }
        let worker = if self.law.is_some() { Some(self.workers.take(false)?) } else { None };
        let (_, mut job) = self.waiting.pop_front()?;
        match worker {
            Some(worker) => _ = self.at_work.insert(job.id, (worker, now)),
            None => {
                self.processes += 1;
                job.cpu += self.setup.start;
            }
        }
        let processes = self.processes();
        job.cpu *= self.setup.cost_of(processes);
        job.elsewhere += self.setup.swap * self.setup.swapped(processes);
        Some(job)
    }

    /// Returns whether no worker is idle.
    fn is_full(&self) -> bool {
        self.law.is_some() && self.workers.count().idle == 0
    }

    /// Takes note of the present state. `do_others_wait`: at the gate.
    pub(crate) fn look(&mut self, now: Instant, do_others_wait: bool) {
        if self.short_since.is_some() {
            self.short_s += now.secs_since(self.looked);
        }
        if self.is_held {
            self.held_s += now.secs_since(self.looked);
        }
        self.looked = now;
        self.is_held = !self.is_full() && do_others_wait;
        let is_short = self.is_full() && (do_others_wait || !self.waiting.is_empty());
        self.short_since = is_short.then(|| self.short_since.unwrap_or(now));
        self.running_max = self.running_max.max(self.workers.count().busy as u32);
    }

    /// Lets the law decide, once a second.
    pub(crate) fn tick(&mut self, now: Instant) {
        let passed = now.secs_since(self.ticked);
        self.ticked = now;
        let WorkersCount { starting, idle, busy, .. } = self.workers.count();
        let oldest = self.waiting.front().map(|(since, _)| *since).into_iter().chain(self.short_since).min();
        let fit = self.setup.budget.map(|budget| (budget / self.setup.memory.max(1e-9)) as u32);
        let sample = ResidentSample {
            ready: (idle + busy) as u32,
            idle: idle as u32,
            starting: starting as u32,
            running_max: self.running_max,
            short: (self.short_s / passed.max(1e-9)).min(1.0),
            held: (self.held_s / passed.max(1e-9)).min(1.0),
            completed: self.completed,
            failed: 0,
            took_s: (self.completed > 0).then(|| self.took_s / self.completed as f64),
            oldest_s: oldest.map_or(0.0, |since| now.secs_since(since)),
            start_s: self.start_s,
            // A start takes nothing but the processor.
            starts_at_once: 0,
            fit,
            is_swapping: self.setup.swapped(self.processes()) > 0.0,
        };
        (self.completed, self.took_s) = (0, 0.0);
        (self.running_max, self.short_s, self.held_s) = (busy as u32, 0.0, 0.0);
        if passed <= 0.0 {
            return;
        }
        if let Some(moved) = self.law.as_mut().and_then(|law| law.on_tick(now, passed, &sample)) {
            self.seen.moves += 1;
            if self.moves.len() < MOVES_MAX {
                self.moves.push((now, moved));
            }
            self.workers.set_wanted(now, moved.wanted as usize);
        }
    }

    /// Returns how many workers are ready; `None`: under CGI there are none.
    pub(crate) fn ready(&self) -> Option<u32> {
        self.law.as_ref().map(|_| self.workers.count().ready() as u32)
    }

    /// Returns the present state; `waiting`: requests at the gate's routes.
    pub(crate) fn second(&self, waiting: u32) -> PoolSecond {
        let WorkersCount { starting, idle, busy, .. } = self.workers.count();
        PoolSecond {
            ready: (idle + busy) as u32,
            starting: starting as u32,
            busy: busy as u32 + self.processes,
            waiting: self.waiting.len() as u32 + waiting,
            ..self.seen
        }
    }

    fn start_of(&self, worker: WorkerId) -> Job {
        Job {
            id: STARTS + worker.0,
            elsewhere: 0.0,
            cpu: self.setup.start,
            memory: 0.0,
            lock: None,
            pauses: crate::node::Pauses::default(),
        }
    }

    fn processes(&self) -> u32 {
        self.workers.count().all() as u32 + self.processes
    }
}

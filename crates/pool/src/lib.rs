//! Resident workers: processes of the application that the gateway starts, gives requests to, and
//! replaces.
//!
//! - [`Pool::take`]: an idle worker, until its [`Lease`] ends.
//! - [`Pool::run`]: the supervisor. It starts workers, waits until they are ready, stops and
//!   replaces them, and reports how they ended.
//! - [`Pool::sample`], [`Pool::status`], [`Pool::trace`]: what can be seen of it.
//! - [`check`](fn@check): what would keep it from working.
//! - [`Lease::run`]: a program that runs once for each request, in place of workers.
//!
//! Which worker is started, used or ended is decided by [`suimon_fleet::workers`], a pure machine.
//! Here is what it needs of the system: processes, sockets, signals and memory.
//!
//! Every worker has a socket of its own, so that a request goes to a worker that is known to be
//! idle and never waits behind another one in the kernel.
//!
//! However the gateway ends, no worker outlives it, nor does anything that a worker has started in
//! its process group.

mod back_off;
mod check;
mod folder;
mod guardian;
mod keeper;
mod kept;
mod launch;
mod lease;
mod memory;
mod recent;
mod runner;
mod runs;
mod standard_error;
mod supervisor;
mod trace;
mod view;

pub use check::{PoolFault, check, find_user};
pub use guardian::guard;
pub use kept::Kept;
pub use launch::Program;
pub use lease::Lease;
pub use runs::{Run, RunEnd};
pub use supervisor::WorkerCheck;
pub use trace::{PoolChange, PoolEvent};
pub use view::{PoolSample, PoolStatus, WorkerStatus};

use memory::Look;
use memory::process::ProcessMemory;
use runs::Runs;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use suimon_fleet::workers::{WorkerId, WorkerView, Workers, WorkersCount, WorkersTotals};
use suimon_model::Instant;
use suimon_params::pool::{PoolParams, WorkerKind};
use suimon_params::upstream::NodeAddress;
use tokio::sync::{Notify, watch};
use trace::{Trace, UNABLE, UNGUARDED};

/// The longest that a pool without a worker waits for the first one that starts after the last has
/// gone, before it counts as down.
const RETURNS_WITHIN: Duration = Duration::from_secs(5);

/// Workers that run the same program. All clones share them.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    origin: std::time::Instant,
    params: Arc<PoolParams>,
    state: Mutex<State>,
    /// Wakes the supervisor when something is to be done.
    hurry: Notify,
    count: watch::Sender<WorkersCount>,
    /// How many requests may be let in: apart, as it does not change with each request.
    gated: watch::Sender<usize>,
}

struct State {
    workers: Workers,
    /// The processes of those that run.
    processes: BTreeMap<WorkerId, Process>,
    /// The programs that run instead, once for each request; `None`: workers stay.
    runs: Option<Runs>,
    /// When the supervisor wakes by itself.
    sleeps_until: Instant,
    trace: Trace,
    look: Look,
    /// The last that a worker wrote which has ended, or why there is none.
    last_words: String,
    /// Why the pool cannot run, and why it has no guardian; `None`: it can, and has.
    unable: Option<String>,
    unguarded: Option<String>,
    /// Whether memory has no room for all that are wanted, as was told.
    lacks_room: bool,
    /// When the last worker went that took requests; `None`: there was never one.
    down_since: Option<Instant>,
}

/// A worker's process.
struct Process {
    pid: u32,
    address: Arc<NodeAddress>,
    memory: Option<ProcessMemory>,
    /// A connection to it that is open while it is idle.
    kept: Option<Kept>,
}

impl Pool {
    /// Returns a pool without workers, with time counted from `origin`. [`Pool::run`] must run
    /// beside it.
    pub fn new(origin: std::time::Instant, params: PoolParams) -> Self {
        let mut workers = Workers::new(params.workers.clone());
        let runs =
            (params.kind == WorkerKind::Cgi).then(|| Runs::new(&params.name, params.workers.stop_within));
        if runs.is_none() {
            workers.set_room(Instant::ORIGIN, memory::UNMEASURED_MAX);
        }
        let state = State {
            workers,
            processes: BTreeMap::new(),
            runs,
            sleeps_until: Instant::FAR_FUTURE,
            trace: Trace::default(),
            look: Look::default(),
            last_words: String::new(),
            unable: None,
            unguarded: None,
            lacks_room: false,
            down_since: None,
        };
        let (params, state) = (Arc::new(params), Mutex::new(state));
        let (hurry, count, gated) = (Notify::new(), watch::Sender::default(), watch::Sender::default());
        Pool { shared: Arc::new(Shared { origin, params, state, hurry, count, gated }) }
    }

    /// Returns what the pool was told before it started.
    pub fn params(&self) -> &PoolParams {
        &self.shared.params
    }

    /// Takes an idle worker; `None`: there is none. `passes`: the request passes by the gate. Not all
    /// workers are given to such ones.
    pub fn take(&self, passes: bool) -> Option<Lease> {
        let (worker, address, deaths) = {
            let mut state = self.state();
            let worker = state.workers.take(passes)?;
            let address = match &state.runs {
                Some(runs) => runs.address(),
                None => {
                    let process = state.processes.get(&worker);
                    &process.expect("a worker that is ready has a process").address
                }
            };
            (worker, Arc::clone(address), deaths(&state.workers))
        };
        self.publish();
        Some(Lease::new(self.clone(), worker, address, deaths))
    }

    /// Takes an idle worker as soon as there is one; `None`: there is none within `patience`.
    /// Whoever waits has no place in a line: the route's gate lets in no more than there are workers,
    /// so that only a worker's death, or too many that pass by the gate, make anybody wait here.
    pub async fn take_within(&self, patience: Duration, passes: bool) -> Option<Lease> {
        let mut counts = self.watch();
        let taken = async {
            loop {
                if let Some(lease) = self.take(passes) {
                    return Some(lease);
                }
                counts.wait_for(|count| count.idle > 0 && (!passes || count.may_pass())).await.ok()?;
            }
        };
        tokio::time::timeout(patience, taken).await.ok().flatten()
    }

    /// Says how many workers should be resident, and why. Once the pool ends, this changes nothing.
    pub fn set_wanted(&self, wanted: usize, why: &'static str) {
        self.change(|state, now| {
            let from = state.workers.wanted();
            state.workers.set_wanted(now, wanted);
            let to = state.workers.wanted();
            if from != to {
                state.note(&self.shared.params.name, now, PoolEvent::Wanted { from, to, why });
            }
        });
    }

    /// Replaces all workers, one after the other. No request fails by it.
    pub fn reload(&self) {
        self.change(|state, now| {
            state.note(&self.shared.params.name, now, PoolEvent::Reload);
            state.workers.reload(now);
        });
    }

    /// Returns how many workers are in which state.
    pub fn count(&self) -> WorkersCount {
        self.state().workers.count()
    }

    /// Returns whether no worker takes requests, and none is about to: one that starts in place of the
    /// last is there in a moment, unless such starts fail or take long.
    pub fn is_down(&self) -> bool {
        let (state, now) = (self.state(), self.now());
        let count = state.workers.count();
        let returns = count.starting > 0
            && !state.workers.fails_to_start()
            && state.down_since.is_some_and(|since| now.since(since) < RETURNS_WITHIN);
        count.is_down() && !returns
    }

    /// Waits until a worker's process has ended, but no longer than `within`.
    pub async fn ended(&self, worker: WorkerId, within: Duration) {
        let mut counts = self.watch();
        let ended =
            async { while self.state().processes.contains_key(&worker) && counts.changed().await.is_ok() {} };
        // Who lives on is waited for in vain.
        let _ = tokio::time::timeout(within, ended).await;
    }

    /// Returns whether a worker's process lives, and was not killed either.
    pub fn is_alive(&self, worker: WorkerId) -> bool {
        let pid = self.state().processes.get(&worker).map(|process| process.pid);
        let Some((number, pid)) = pid.and_then(|pid| Some((pid, Pid::from_raw(i32::try_from(pid).ok()?)?)))
        else {
            return false;
        };
        // Whoever is dead is not reaped by looking.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        matches!(waitid(WaitId::Pid(pid), options), Ok(None)) && !suimon_process::is_ending(number)
    }

    /// Returns how many workers have ended unasked since the pool began, at their start or later.
    pub fn deaths(&self) -> u64 {
        deaths(&self.state().workers)
    }

    /// Returns what has happened since the pool began.
    pub fn totals(&self) -> WorkersTotals {
        self.state().totals()
    }

    /// Returns a receiver that holds how many workers are in which state, and is notified of changes.
    pub fn watch(&self) -> watch::Receiver<WorkersCount> {
        self.shared.count.subscribe()
    }

    /// Returns a receiver that holds how many requests may be let in, and is notified of changes.
    pub fn watch_gated(&self) -> watch::Receiver<usize> {
        self.shared.gated.subscribe()
    }

    /// Returns the numbers that a law of the pool's size needs, and begins to count anew what is
    /// counted from one sample to the next. Only one asks for it, about once per second.
    pub fn sample(&self) -> PoolSample {
        let mut state = self.state();
        let count = state.workers.count();
        PoolSample {
            wanted: state.workers.wanted(),
            ready: count.ready(),
            ungated: count.ungated,
            starting: count.starting,
            idle: count.idle,
            unsure: count.unsure,
            stopping: count.stopping,
            busy_max: state.workers.take_busy_max(),
            start_s: state.workers.start_s(),
            start_cpu_s: state.workers.start_cpu_s(),
            starts_at_once: state.workers.starts_at_once(),
            fit: state.look.fit,
            worker_bytes: state.look.worker_bytes,
            swap_bytes: state.look.swap_bytes,
            major_faults_per_s: state.look.faults_per_s,
            is_swapping: state.look.is_swapping,
            is_unhealthy: state.unable.is_some() || state.workers.unhealthy().is_some(),
        }
    }

    /// Returns the pool as a person sees it.
    pub fn status(&self) -> PoolStatus {
        let now = self.now();
        let state = self.state();
        PoolStatus {
            name: Arc::clone(&self.shared.params.name),
            wanted: state.workers.wanted(),
            count: state.workers.count(),
            generation: state.workers.generation(),
            totals: state.totals(),
            unhealthy: state.unhealthy(),
            worker_bytes: state.look.worker_bytes,
            fit: state.look.fit,
            start_s: state.runs.as_ref().map_or_else(|| state.workers.start_s(), Runs::start_s),
            start_cpu_s: state.workers.start_cpu_s(),
            last_move: state.trace.moved().cloned(),
            workers: state.workers.views().map(|view| state.status_of(now, &view)).collect(),
        }
    }

    /// Returns what has happened from the change of this number on, as far as it is kept.
    pub fn trace(&self, since: u64) -> Vec<PoolChange> {
        self.state().trace.since(since)
    }

    fn now(&self) -> Instant {
        Instant::ORIGIN + self.shared.origin.elapsed()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves a worker that is counted as busy.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the workers something, and wakes the supervisor if there is something for it to do.
    fn change(&self, tell: impl FnOnce(&mut State, Instant)) {
        let is_due = {
            let (mut state, now) = (self.state(), self.now());
            let was_down = state.workers.count().is_down();
            tell(&mut state, now);
            if !was_down && state.workers.count().is_down() {
                state.down_since = Some(now);
            }
            let due = state.due();
            state.workers.has_output()
                || state.runs.as_ref().is_some_and(Runs::has_orders)
                || due.is_some_and(|due| due < state.sleeps_until)
                || state.workers.count().all() == 0
        };
        self.publish();
        if is_due {
            self.shared.hurry.notify_one();
        }
    }

    /// Tells those who watch how many workers are in which state.
    fn publish(&self) {
        // The watch's lock is held while the workers are counted, so that the last count is the last
        // one published.
        self.shared.count.send_if_modified(|was| {
            let count = self.count();
            std::mem::replace(was, count) != count
        });
        self.shared.gated.send_if_modified(|was| {
            let gated = self.count().gated();
            std::mem::replace(was, gated) != gated
        });
    }
}

fn deaths(workers: &Workers) -> u64 {
    let totals = workers.totals();
    totals.deaths + totals.failed_starts
}

impl State {
    /// Returns when something is due, if ever.
    fn due(&self) -> Option<Instant> {
        let kill = self.runs.as_ref().and_then(Runs::next_due);
        self.workers.poll_timeout().into_iter().chain(kill).min()
    }

    /// Returns what has happened since the pool began.
    fn totals(&self) -> WorkersTotals {
        let totals = self.workers.totals();
        self.runs.as_ref().map_or(totals, |runs| runs.totals(&totals))
    }

    /// Forgets all processes: they are gone.
    fn forget_processes(&mut self) {
        self.processes.clear();
        if let Some(runs) = &mut self.runs {
            runs.clear();
        }
    }

    /// Returns what is wrong with the pool, the worst first.
    fn unhealthy(&self) -> Option<String> {
        let unable = self.unable.as_ref().map(|why| format!("{UNABLE}: {why}"));
        let no_start = || {
            self.workers.unhealthy().map(|why| match self.last_words.as_str() {
                "" => why.to_string(),
                words => format!("{why}; the last that it wrote: {words:?}"),
            })
        };
        let unguarded = || self.unguarded.as_ref().map(|why| format!("{UNGUARDED}: {why}"));
        unable.or_else(no_start).or_else(unguarded)
    }

    fn status_of(&self, now: Instant, view: &WorkerView) -> WorkerStatus {
        let process = self.processes.get(&view.id);
        let memory = process.and_then(|process| process.memory).unwrap_or_default();
        let run = self.runs.as_ref().and_then(|runs| runs.at(view.id));
        WorkerStatus {
            id: view.id,
            pid: process.map(|process| process.pid).or(run.map(|(_, pid)| pid)),
            state: view.state,
            is_retiring: view.is_retiring,
            generation: view.generation,
            age: now.since(run.map_or(view.started, |(since, _)| since)),
            start: view.ready_at.map(|ready| ready.since(view.started)),
            requests: view.requests,
            memory: memory.bytes,
            is_proportional: memory.is_proportional,
            swap: memory.swap,
            major_faults: memory.major_faults,
        }
    }
}

#[cfg(test)]
mod tests;

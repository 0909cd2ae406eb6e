//! The resident workers of a pool: who is started, used, replaced and stopped.
//!
//! ```text
//! starting → idle ⇄ busy → stopping → gone
//!              ↖ unsure ↙
//! ```
//!
//! - **As many as wanted.** [`Workers::set_wanted`] says how many should be resident. Of idle ones
//!   that are too many, those used least recently end.
//! - **The one used last is used next**: its memory is warm, and the others are idle long enough to
//!   be the ones that end.
//! - **Starts** take a processor and the database, so only some run at once. A worker that ends
//!   before it is ready, is not ready in time, or ends idle within [`YOUNG`] of being ready has
//!   failed to start: the next one waits for a second, then for two, up to [`BACK_OFF_S_MAX`]. After
//!   [`FAILURES_MAX`] in a row the pool is unhealthy, and says why, until one is ready. One that
//!   ends with a request has not failed to start: else a client whose requests end workers could
//!   keep others from being started.
//! - **A cancelled request** leaves a worker that may be busy with what nobody waits for. It is given
//!   no request until it says that it is idle, and ends if it does not say so in time.
//! - **Replacing**, after so many requests, at an age, above a size in memory, or because the
//!   program has changed: one at a time, and the new one is ready before the old one ends. An old
//!   one that is busy ends after its request. Until then any other one that is due and idle takes its
//!   turn, so a long request keeps only its own worker. One that is waited for longer than
//!   [`AWAITED_AFTER`] is told.
//! - **Room.** No worker starts while there are as many processes as memory has room for
//!   ([`Workers::set_room`]); those that end count until they are gone. The first one always may
//!   start, and so may one in the place of one that retires: else those that take too much memory
//!   would stay.
//! - **Stopping** is polite at first (SIGTERM) and forced (SIGKILL) where that takes too long.
//!
//! *Source*: paper P3 (workers stay resident); the back-off and the replacement are this project's.

mod api;
mod replacing;
mod starts;
mod table;

pub use api::{
    EndReason, Exit, Release, StartFault, Unhealthy, WorkerEvent, WorkerId, WorkerState, WorkerView,
    WorkersChange, WorkersCount, WorkersOutput, WorkersParams, WorkersTotals,
};

use starts::Starts;
use std::collections::{BTreeSet, VecDeque};
use suimon_model::{Duration, Instant, Rng, seconds};
use table::{Holder, State, Table, Worker};

/// The most workers of a pool.
pub const WORKERS_MAX: usize = 1024;
/// The most processes of a pool: while all are replaced, those that end are there, too.
pub const PROCESSES_MAX: usize = 2 * WORKERS_MAX;
/// The least CPU time that a start counts as, seconds: it is measured to a hundredth.
const START_CPU_S_LEAST: f64 = 0.01;
/// A worker that ends this soon after it was ready, and without a request, has failed to start.
pub const YOUNG: Duration = Duration::from_secs(5);
/// A worker that is to be replaced and still has a request after this long is told.
pub const AWAITED_AFTER: Duration = Duration::from_secs(10);
/// The most starts at once, however little of a core one needs.
pub const STARTING_MAX: usize = 16;
/// The longest delay after failed starts, in seconds.
pub const BACK_OFF_S_MAX: u32 = 60;
/// Failed starts in a row after which a pool is unhealthy.
pub const FAILURES_MAX: u32 = 6;
/// The random variation of when a worker is replaced, so that those that started together are not
/// replaced one right after the other.
const JITTER: f64 = 0.1;

/// The workers of a pool.
#[derive(Clone, Debug)]
pub struct Workers {
    params: WorkersParams,
    wanted: usize,
    /// Whether the gateway ends: nothing is started any more.
    is_ending: bool,
    /// Whether nobody runs them: nothing is started until somebody does.
    is_suspended: bool,
    /// How many processes memory has room for.
    room: usize,
    table: Table,
    /// Those that may be due to be replaced, and the one that is being replaced.
    due: BTreeSet<WorkerId>,
    retiring: Option<WorkerId>,
    next: u64,
    /// Workers started before have another program.
    generation: u64,
    starts: Starts,
    totals: WorkersTotals,
    /// The most that were busy at once since somebody asked.
    busy_max: usize,
    outputs: VecDeque<WorkersOutput>,
    rng: Rng,
}

impl Workers {
    /// Returns a pool without workers.
    pub fn new(params: WorkersParams) -> Self {
        Workers {
            wanted: 0,
            is_ending: false,
            is_suspended: false,
            room: usize::MAX,
            table: Table::default(),
            due: BTreeSet::new(),
            retiring: None,
            next: 0,
            generation: 0,
            starts: Starts::new(params.back_off),
            totals: WorkersTotals::default(),
            busy_max: 0,
            outputs: VecDeque::new(),
            rng: Rng::stream(params.seed, 0x90_01),
            params,
        }
    }

    /// Says how many workers should be resident, at most [`WORKERS_MAX`]. After
    /// [`Workers::end_all`] this changes nothing.
    pub fn set_wanted(&mut self, now: Instant, wanted: usize) {
        if self.is_ending {
            return;
        }
        self.wanted = wanted.min(WORKERS_MAX);
        self.balance(now);
    }

    /// Says how many processes memory has room for, those that there are among them.
    pub fn set_room(&mut self, now: Instant, room: usize) {
        self.room = room;
        if !self.is_ending {
            self.balance(now);
        }
    }

    /// Forgets all workers, because whoever ran them cannot, and starts none until
    /// [`Workers::resume`].
    pub fn suspend(&mut self, now: Instant) {
        let all: Vec<WorkerId> = self.table.iter().map(|(id, _)| id).collect();
        for id in all {
            self.table.remove(id);
        }
        self.due.clear();
        (self.is_suspended, self.retiring) = (true, None);
        self.outputs.clear();
        self.starts.forgive(now);
    }

    /// Starts workers again.
    pub fn resume(&mut self, now: Instant) {
        self.is_suspended = false;
        self.balance(now);
    }

    /// Replaces all workers, one after the other: their program has changed. Those that start
    /// already end, and a start that is delayed after failures may begin at once.
    pub fn reload(&mut self, now: Instant) {
        if self.is_ending {
            return;
        }
        self.generation += 1;
        self.starts.forgive(now);
        let starting: Vec<WorkerId> = self.table.starting().collect();
        for id in starting {
            self.stop(now, id, EndReason::Reload);
        }
        self.due
            .extend(self.table.iter().filter(|(_, it)| it.is_ready() && !it.is_retiring).map(|(id, _)| id));
        self.balance(now);
    }

    /// Takes an idle worker for a request, until [`Workers::release`]. `passes`: it passes by the gate;
    /// not all workers are given to such ones, see [`WorkersCount::may_pass`].
    pub fn take(&mut self, passes: bool) -> Option<WorkerId> {
        if passes && !self.table.count().may_pass() {
            return None;
        }
        let id = self.table.warmest()?;
        let holder = if passes { Holder::Passing } else { Holder::Gated };
        self.table.change(id, |worker| worker.state = State::Busy { holder });
        self.busy_max = self.busy_max.max(self.table.count().busy);
        Some(id)
    }

    /// Notes that from now on nobody counts the worker's request among those that are let in, although
    /// it is not over: its client takes the answer slowly. One that passes by the gate stays one.
    pub fn ungate(&mut self, id: WorkerId) {
        let is_gated = |worker: &Worker| worker.state == State::Busy { holder: Holder::Gated };
        if self.table.of(id).is_some_and(is_gated) {
            self.table.change(id, |worker| worker.state = State::Busy { holder: Holder::Released });
        }
    }

    /// Takes a worker back after its request.
    pub fn release(&mut self, now: Instant, id: WorkerId, how: Release) {
        let Some(worker) = self.table.of(id).filter(|worker| worker.is_busy()) else {
            // It died meanwhile.
            return;
        };
        let requests = worker.requests + 1;
        if requests >= worker.requests_max && !worker.is_retiring {
            self.due.insert(id);
        }
        let idle_by = now + self.params.idle_within;
        self.table.change(id, |worker| {
            worker.requests = requests;
            worker.state = if how == Release::Cancelled { State::Unsure { idle_by } } else { State::Idle };
        });
        match how {
            Release::Done => self.totals.requests += 1,
            Release::Cancelled => self.outputs.push_back(WorkersOutput::Ask(id)),
            Release::Stuck => self.stop(now, id, EndReason::Stuck),
        }
        self.balance(now);
    }

    /// Notes that a worker takes requests: for the first time, or again after a cancelled one.
    pub fn handle_ready(&mut self, now: Instant, id: WorkerId) {
        match self.table.of(id).map(|worker| (worker.state, worker.started)) {
            Some((State::Starting { .. }, started)) => {
                self.table.change(id, |worker| (worker.state, worker.ready_at) = (State::Idle, Some(now)));
                self.starts.succeed(now.secs_since(started));
                self.find_proof();
                self.tell(now, id, WorkerEvent::Ready);
            }
            Some((State::Unsure { .. }, _)) => self.table.change(id, |worker| worker.state = State::Idle),
            _ => return,
        }
        self.balance(now);
    }

    /// Notes that another process listens where a starting worker should: it has failed to start.
    pub fn handle_squatted(&mut self, now: Instant, id: WorkerId) {
        if self.table.of(id).is_some_and(Worker::is_starting) {
            self.give_up(now, id, EndReason::Squatted);
            self.balance(now);
        }
    }

    /// Notes what memory a worker takes, bytes.
    pub fn handle_memory(&mut self, now: Instant, id: WorkerId, bytes: u64) {
        let Some(worker) = self.table.of(id) else { return };
        let is_due = worker.is_ready()
            && !worker.is_retiring
            && self.params.memory_max.is_some_and(|max| bytes > max)
            && now >= worker.started + self.params.memory_age;
        self.table.change(id, |worker| worker.memory = bytes);
        if is_due {
            self.due.insert(id);
            self.balance(now);
        }
    }

    /// Notes that a worker has ended, for any reason.
    pub fn handle_exit(&mut self, now: Instant, id: WorkerId, exit: Exit) {
        let Some(worker) = self.table.remove(id) else { return };
        self.forget(id);
        let is_young = worker.requests == 0 && worker.ready_at.is_none_or(|ready| now < ready + YOUNG);
        match worker.state {
            State::Stopping { .. } => {}
            State::Starting { .. } | State::Idle if is_young => {
                self.note_failure(now, id, StartFault::Ended(exit));
            }
            _ => {
                self.totals.deaths += 1;
                self.tell(now, id, WorkerEvent::Died(exit));
            }
        }
        self.find_proof();
        self.balance(now);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((due, id)) = self.table.next_due().filter(|(due, _)| *due <= now) {
            let state = self.table.of(id).map(|worker| worker.state);
            match state.expect("what is due is of a worker that is there") {
                State::Starting { .. } => self.give_up(now, id, EndReason::NotReady),
                State::Unsure { .. } => self.stop(now, id, EndReason::Cancelled),
                State::Stopping { .. } => {
                    let kill_at = Instant::FAR_FUTURE;
                    self.table.change(id, |worker| worker.state = State::Stopping { kill_at });
                    self.totals.kills += 1;
                    self.outputs.push_back(WorkersOutput::Kill(id));
                    self.tell(now, id, WorkerEvent::Killed);
                }
                State::Idle | State::Busy { .. } => self.note_time(now, id),
            }
            debug_assert!(self.table.next_due() != Some((due, id)), "it would be due for ever");
        }
        self.balance(now);
    }

    /// Returns when [`Workers::handle_timeout`] is due, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let waits = self.starts.have_failed() && self.may_replace();
        let lacks = self.table.serving() < self.wanted && self.may_start_more();
        let start = (lacks || waits).then_some(self.starts.may_start());
        let due = self.table.next_due().map(|(due, _)| due);
        due.into_iter().chain(start).chain(self.starts.proven_at()).min()
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<WorkersOutput> {
        self.outputs.pop_front()
    }

    /// Returns whether there is an output.
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Ends all workers, those with a request, too: the gateway ends. Nothing is started any more.
    pub fn end_all(&mut self, now: Instant) {
        (self.wanted, self.is_ending) = (0, true);
        let stays = self.table.iter().filter(|(_, worker)| !worker.is_stopping());
        let stays: Vec<WorkerId> = stays.map(|(id, _)| id).collect();
        for id in stays {
            self.stop(now, id, EndReason::Surplus);
        }
    }

    /// Returns how many workers are in which state.
    pub fn count(&self) -> WorkersCount {
        self.table.count()
    }

    /// Returns how many workers should be resident.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Returns whether workers are missing for which memory has no room.
    pub fn lacks_room(&self) -> bool {
        self.table.serving() < self.wanted && !self.has_room()
    }

    /// Returns how often the program was reloaded.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns what has happened since the pool began.
    pub fn totals(&self) -> WorkersTotals {
        self.totals
    }

    /// Returns whether a worker is ready and has no request.
    pub fn is_idle(&self, id: WorkerId) -> bool {
        self.table.of(id).is_some_and(|worker| worker.state == State::Idle)
    }

    /// Returns the most workers that were busy at once since the last call.
    pub fn take_busy_max(&mut self) -> usize {
        std::mem::replace(&mut self.busy_max, self.table.count().busy)
    }

    /// Returns the median of how long recent starts took until the worker was ready, seconds;
    /// `None`: none has succeeded yet.
    pub fn start_s(&self) -> Option<f64> {
        self.starts.median_s()
    }

    /// Takes note of the CPU time that a start took, seconds.
    pub fn handle_start_cost(&mut self, cpu_s: f64) {
        self.starts.cost(cpu_s);
    }

    /// Returns the median of the CPU time of recent starts, seconds; `None`: it is not known.
    pub fn start_cpu_s(&self) -> Option<f64> {
        self.starts.median_cpu_s()
    }

    /// Returns how many workers start at once: as many as keep the cores for it busy.
    pub fn starts_at_once(&self) -> usize {
        let cores = self.params.starting_cores.max(1);
        match (self.starts.median_s(), self.starts.median_cpu_s()) {
            (Some(took), Some(cpu)) => {
                let at_once = cores as f64 * took / cpu.max(START_CPU_S_LEAST);
                (at_once as usize).clamp(cores, STARTING_MAX.max(cores))
            }
            _ => cores,
        }
    }

    /// Returns what is known of each worker, in the order of their starts.
    pub fn views(&self) -> impl Iterator<Item = WorkerView> {
        self.table.iter().map(|(id, worker)| WorkerView {
            id,
            state: match worker.state {
                State::Starting { .. } => WorkerState::Starting,
                State::Idle => WorkerState::Idle,
                State::Busy { .. } => WorkerState::Busy,
                State::Unsure { .. } => WorkerState::Unsure,
                State::Stopping { .. } => WorkerState::Stopping,
            },
            is_retiring: worker.is_retiring,
            generation: worker.generation,
            started: worker.started,
            ready_at: worker.ready_at,
            requests: worker.requests,
            memory: worker.memory,
        })
    }

    /// Returns whether the last start failed.
    pub fn fails_to_start(&self) -> bool {
        self.starts.failures() > 0
    }

    /// Returns that starts fail, if so many have failed in a row and no worker is ready.
    pub fn unhealthy(&self) -> Option<Unhealthy> {
        let is_unhealthy = self.starts.are_hopeless() && self.table.count().ready() == 0;
        let last = self.starts.last().filter(|_| is_unhealthy)?;
        Some(Unhealthy { failures: self.starts.failures(), last })
    }

    /// Brings the workers nearer to what is wanted.
    fn balance(&mut self, now: Instant) {
        if self.starts.proven_at().is_some_and(|proven| proven <= now) {
            self.starts.forgive(now);
        }
        self.end_surplus(now);
        self.end_retired(now);
        self.retire_next(now);
        self.start_missing(now);
    }

    /// After failed starts: finds the worker that shows first that starts succeed again.
    fn find_proof(&mut self) {
        if !self.starts.have_failed() {
            return;
        }
        let failed_at = self.starts.failed_at();
        let is_proof = |worker: &&Worker| worker.is_ready() && worker.started >= failed_at;
        let proofs = self.table.iter().map(|(_, worker)| worker).filter(is_proof);
        let first = proofs.filter_map(|worker| worker.ready_at).min();
        self.starts.set_proven_at(first.map(|ready| ready + YOUNG));
    }

    fn end_surplus(&mut self, now: Instant) {
        while self.table.serving() > self.wanted
            && let Some(id) = self.table.most_dispensable()
        {
            self.stop(now, id, EndReason::Surplus);
        }
    }

    fn start_missing(&mut self, now: Instant) {
        while self.table.serving() < self.wanted && now >= self.starts.may_start() && self.may_start_more() {
            self.start(now);
        }
    }

    /// Returns whether another one may start at the same time as those that start already.
    fn may_start_more(&self) -> bool {
        // After a failure one start tells whether the next ones are worth it.
        let at_once = if self.starts.have_failed() { 1 } else { self.starts_at_once() };
        !self.is_suspended
            && self.table.count().starting < at_once
            && self.table.len() < PROCESSES_MAX
            && self.has_room()
    }

    /// Returns whether memory has room for another process. One in the place of one that retires
    /// needs none, once the one that was replaced before is gone.
    fn has_room(&self) -> bool {
        let replaces = self.retiring.is_some()
            && self.table.serving() < self.attainable()
            && self.table.count().stopping == 0;
        self.table.len() < self.room.max(1) || replaces
    }

    fn start(&mut self, now: Instant) {
        let id = WorkerId(self.next);
        self.next += 1;
        self.totals.starts += 1;
        let mut jittered = |value: f64| value * self.rng.between(1.0 - JITTER, 1.0 + JITTER);
        let requests_max = self.params.requests_max;
        let requests_max = requests_max.map_or(u64::MAX, |max| jittered(max as f64).max(1.0) as u64);
        let age_max = self.params.age_max;
        let old_at = age_max.map_or(Instant::FAR_FUTURE, |age| now + seconds(jittered(age.as_secs_f64())));
        let worker = Worker {
            state: State::Starting { ready_by: now + self.params.ready_within },
            generation: self.generation,
            started: now,
            ready_at: None,
            requests: 0,
            memory: 0,
            requests_max,
            old_at,
            is_old: false,
            awaited_at: Instant::FAR_FUTURE,
            is_retiring: false,
            was_told: false,
        };
        self.table.insert(id, worker);
        self.outputs.push_back(WorkersOutput::Start(id));
    }

    /// Ends a worker whose start has failed.
    fn give_up(&mut self, now: Instant, id: WorkerId, why: EndReason) {
        self.note_failure(now, id, StartFault::GivenUp(why));
        self.stop(now, id, why);
    }

    fn note_failure(&mut self, now: Instant, id: WorkerId, how: StartFault) {
        self.starts.fail(now, how);
        self.totals.failed_starts += 1;
        self.tell(now, id, WorkerEvent::StartFailed(how));
    }

    fn stop(&mut self, now: Instant, id: WorkerId, why: EndReason) {
        self.totals.ended[why as usize] += 1;
        self.tell(now, id, WorkerEvent::Ends(why));
        self.end(now, id);
    }

    fn end(&mut self, now: Instant, id: WorkerId) {
        let kill_at = now + self.params.stop_within;
        self.table.change(id, |worker| worker.state = State::Stopping { kill_at });
        self.forget(id);
        self.find_proof();
        self.outputs.push_back(WorkersOutput::Stop(id));
    }

    /// Forgets what is kept of a worker beside the table.
    fn forget(&mut self, id: WorkerId) {
        self.due.remove(&id);
        if self.retiring == Some(id) {
            self.retiring = None;
        }
    }

    fn tell(&mut self, at: Instant, worker: WorkerId, what: WorkerEvent) {
        self.outputs.push_back(WorkersOutput::Changed(WorkersChange { at, worker, what }));
    }
}

#[cfg(test)]
mod tests;

//! The workers by number, with what is asked for at each request kept beside them: how many there
//! are of each kind, who is idle, and what is due next. All changes go through [`Table::change`], so
//! that the two never differ. A request costs at most the logarithm of their number.

use super::api::{WorkerId, WorkersCount};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use suimon_model::Instant;

/// A worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Worker {
    pub(super) state: State,
    pub(super) generation: u64,
    pub(super) started: Instant,
    pub(super) ready_at: Option<Instant>,
    pub(super) requests: u64,
    pub(super) memory: u64,
    /// When it is due to be replaced: after so many requests, and at this time.
    pub(super) requests_max: u64,
    pub(super) old_at: Instant,
    pub(super) is_old: bool,
    /// When it is told that it is waited for, if it has a request then.
    pub(super) awaited_at: Instant,
    /// Whether it ends once another one is ready, and whether it was told once that it is to.
    pub(super) is_retiring: bool,
    pub(super) was_told: bool,
}

/// What a worker's request is to those who count how many are let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Holder {
    /// One of those.
    Gated,
    /// No longer one of them: it streams, or its client is waited for.
    Released,
    /// One that passes by the gate.
    Passing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Starting { ready_by: Instant },
    Idle,
    Busy { holder: Holder },
    Unsure { idle_by: Instant },
    Stopping { kill_at: Instant },
}

impl Worker {
    pub(super) fn is_starting(&self) -> bool {
        matches!(self.state, State::Starting { .. })
    }

    /// Returns whether it has been ready and does not end. One whose request was cancelled is among
    /// them: else a stream of those would keep all others from being replaced.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.state, State::Idle | State::Busy { .. } | State::Unsure { .. })
    }

    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.state, State::Stopping { .. })
    }

    pub(super) fn is_busy(&self) -> bool {
        matches!(self.state, State::Busy { .. })
    }

    fn is_ungated(&self) -> bool {
        matches!(self.state, State::Busy { holder: Holder::Released | Holder::Passing })
    }

    fn is_passing(&self) -> bool {
        self.state == State::Busy { holder: Holder::Passing }
    }

    /// Returns whether it is one of those that are wanted: it neither ends nor retires.
    fn counts(&self) -> bool {
        !self.is_retiring && !self.is_stopping()
    }

    fn due(&self) -> Instant {
        match self.state {
            State::Starting { ready_by } => ready_by,
            State::Unsure { idle_by } => idle_by,
            State::Stopping { kill_at } => kill_at,
            State::Idle | State::Busy { .. } => self.old_at.min(self.awaited_at),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    workers: BTreeMap<WorkerId, Worker>,
    /// Used least recently first.
    idle: VecDeque<WorkerId>,
    starting: BTreeSet<WorkerId>,
    unsure: BTreeSet<WorkerId>,
    due: BTreeSet<(Instant, WorkerId)>,
    count: WorkersCount,
    /// Those that neither end nor retire, and the ready ones of them.
    serving: usize,
    serving_ready: usize,
}

impl Table {
    pub(super) fn insert(&mut self, id: WorkerId, worker: Worker) {
        self.workers.insert(id, worker);
        self.enter(id, &worker);
    }

    pub(super) fn remove(&mut self, id: WorkerId) -> Option<Worker> {
        let worker = self.workers.remove(&id)?;
        self.leave(id, &worker);
        if worker.state == State::Idle {
            self.forget_idle(id);
        }
        Some(worker)
    }

    /// Changes the worker, which must be there.
    pub(super) fn change(&mut self, id: WorkerId, how: impl FnOnce(&mut Worker)) {
        let worker = self.workers.get_mut(&id).expect("it is looked for where it was found");
        let before = *worker;
        how(worker);
        let after = *worker;
        self.leave(id, &before);
        self.enter(id, &after);
        match (before.state == State::Idle, after.state == State::Idle) {
            (true, false) => self.forget_idle(id),
            (false, true) => self.idle.push_back(id),
            _ => {}
        }
    }

    pub(super) fn of(&self, id: WorkerId) -> Option<&Worker> {
        self.workers.get(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (WorkerId, &Worker)> {
        self.workers.iter().map(|(id, worker)| (*id, worker))
    }

    pub(super) fn len(&self) -> usize {
        self.workers.len()
    }

    pub(super) fn count(&self) -> WorkersCount {
        self.count
    }

    pub(super) fn serving(&self) -> usize {
        self.serving
    }

    pub(super) fn serving_ready(&self) -> usize {
        self.serving_ready
    }

    /// Returns the idle one that was used last.
    pub(super) fn warmest(&self) -> Option<WorkerId> {
        self.idle.back().copied()
    }

    /// Returns who of those that count is missed least: a starting one, one whose request nobody
    /// waits for, or the idle one used least recently. `None`: the others are busy.
    pub(super) fn most_dispensable(&self) -> Option<WorkerId> {
        let counts = |id: &&WorkerId| self.workers.get(id).is_some_and(Worker::counts);
        let groups = self.starting.iter().rev().chain(&self.unsure);
        groups.chain(&self.idle).find(counts).copied()
    }

    pub(super) fn starting(&self) -> impl Iterator<Item = WorkerId> {
        self.starting.iter().copied()
    }

    pub(super) fn next_due(&self) -> Option<(Instant, WorkerId)> {
        self.due.first().copied()
    }

    fn forget_idle(&mut self, id: WorkerId) {
        // It is the last one if it is taken, and the first one if it is surplus.
        if self.idle.back() == Some(&id) {
            self.idle.pop_back();
        } else {
            self.idle.retain(|idle| *idle != id);
        }
    }

    fn enter(&mut self, id: WorkerId, worker: &Worker) {
        *self.counter(worker.state) += 1;
        match worker.state {
            State::Starting { .. } => _ = self.starting.insert(id),
            State::Unsure { .. } => _ = self.unsure.insert(id),
            _ => {}
        }
        if worker.due() < Instant::FAR_FUTURE {
            self.due.insert((worker.due(), id));
        }
        self.count.ungated += usize::from(worker.is_ungated());
        self.count.passing += usize::from(worker.is_passing());
        self.serving += usize::from(worker.counts());
        self.serving_ready += usize::from(worker.counts() && worker.is_ready());
    }

    fn leave(&mut self, id: WorkerId, worker: &Worker) {
        *self.counter(worker.state) -= 1;
        match worker.state {
            State::Starting { .. } => _ = self.starting.remove(&id),
            State::Unsure { .. } => _ = self.unsure.remove(&id),
            _ => {}
        }
        if worker.due() < Instant::FAR_FUTURE {
            self.due.remove(&(worker.due(), id));
        }
        self.count.ungated -= usize::from(worker.is_ungated());
        self.count.passing -= usize::from(worker.is_passing());
        self.serving -= usize::from(worker.counts());
        self.serving_ready -= usize::from(worker.counts() && worker.is_ready());
    }

    fn counter(&mut self, state: State) -> &mut usize {
        match state {
            State::Starting { .. } => &mut self.count.starting,
            State::Idle => &mut self.count.idle,
            State::Busy { .. } => &mut self.count.busy,
            State::Unsure { .. } => &mut self.count.unsure,
            State::Stopping { .. } => &mut self.count.stopping,
        }
    }
}

//! The life of nodes that a provider starts and ends: started, ready, serving, draining, ended.
//!
//! Two tiers: *parked* nodes are started and ready, but take no requests, so that borrowing one is a
//! word; behind them are nodes that must be started first. When a number is wanted, in this order:
//!
//! 1. more serve: nodes that still drain come back, the newest first, but none that is down; then parked
//!    ones; then ones that are started now;
//! 2. fewer serve: the newest of those that are down drains, else the newest of all. Once it has nothing
//!    left it is parked, or ended where enough are parked, or it is down.
//!
//! A node that ends by itself is replaced at once. Starts that fail, and nodes that end when they are
//! hardly ready, are tried again after 1, 2, 4 … up to 60 seconds, one at a time.
//!
//! A node that could not be ended is still there, and costs what a node costs. So it counts among the most that
//! there may be, and none is started beyond them until it is gone.
//!
//! *Source*: P4 §3.2 (borrow, give back the newest, drain); parked nodes are ours.

use std::collections::VecDeque;
use suimon_model::{Duration, Instant, seconds};

/// The most nodes a provider has at once, whatever they do.
pub const BORROWED_MAX: usize = 2 * crate::NODES_MAX;
/// The longest time between two tries of a start, seconds.
pub const START_BACK_OFF_S_MAX: u32 = 60;
/// A node that ends so soon after it was ready counts as a start that failed.
const YOUNG: Duration = Duration::from_secs(5);
/// Starts over which the time of a start is the mean.
const STARTS: f64 = 4.0;

/// A node of a provider; never given twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BorrowedId(pub u64);

/// What a provider is told before it starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LifecycleParams {
    /// Nodes kept ready beside those that serve.
    pub parked: u32,
    /// The most nodes that serve or are parked, with those that could not be ended.
    pub most: u32,
    /// The longest that a start may take.
    pub start_within: Duration,
    /// The longest that a node may drain; what is there then is cut off.
    pub drain_within: Duration,
}

/// What the shell must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LifecycleOutput {
    /// Start a node of this name. Answer with [`Lifecycle::handle_ready`] or
    /// [`Lifecycle::handle_gone`].
    Start(BorrowedId),
    /// Send it requests.
    Serve(BorrowedId),
    /// Send it no new sessions, and say [`Lifecycle::handle_empty`] once it has nothing left.
    Drain(BorrowedId),
    /// End it, whatever it does. Answer with [`Lifecycle::handle_gone`].
    End(BorrowedId),
}

/// What a node does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LifecycleState {
    /// It was ordered and is not ready yet.
    Starting,
    /// It is ready and takes no requests.
    Parked,
    /// It takes requests.
    Serving,
    /// It takes no new sessions.
    Draining,
    /// It was told to end.
    Ending,
}

/// How many nodes do what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LifecycleCount {
    /// See [`LifecycleState::Starting`].
    pub starting: u32,
    /// See [`LifecycleState::Parked`].
    pub parked: u32,
    /// See [`LifecycleState::Serving`].
    pub serving: u32,
    /// See [`LifecycleState::Draining`].
    pub draining: u32,
    /// See [`LifecycleState::Ending`].
    pub ending: u32,
    /// Those of them that could not be ended, and are still there.
    pub stuck: u32,
}

/// The nodes of a provider.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    params: LifecycleParams,
    wanted: u32,
    /// The oldest first.
    nodes: Vec<Borrowed>,
    next: u64,
    outputs: VecDeque<LifecycleOutput>,
    /// Starts that failed in a row, when the last one did, and when the next one is due.
    failures: u32,
    failed_at: Instant,
    due: Option<Instant>,
    start_s: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Borrowed {
    id: BorrowedId,
    state: LifecycleState,
    since: Instant,
    ready: Option<Instant>,
    /// Whether it gets no requests because it does not answer.
    is_down: bool,
    /// Whether it was told to end, could not be ended, and is still there.
    is_stuck: bool,
}

impl Lifecycle {
    /// Returns a provider's nodes, of which there are none yet.
    pub fn new(params: LifecycleParams) -> Self {
        Lifecycle {
            params: LifecycleParams { most: params.most.min(crate::NODES_MAX as u32), ..params },
            wanted: 0,
            nodes: Vec::new(),
            next: 0,
            outputs: VecDeque::new(),
            failures: 0,
            failed_at: Instant::ORIGIN,
            due: None,
            start_s: None,
        }
    }

    /// Takes in a node that ran before us, and is ready. [`Lifecycle::set_wanted`] says what becomes of
    /// it.
    pub fn adopt(&mut self, now: Instant) -> Option<BorrowedId> {
        self.add(now, LifecycleState::Parked)
    }

    /// Returns how many of so many nodes that ran before us served, as far as can be told: all but those that
    /// were parked. Were the parked ones to serve, each restart would have others started in their place.
    /// Where there are as many as may be, fewer may have been parked than should be, and all serve.
    pub fn serving_of(&self, found: u32) -> u32 {
        let LifecycleParams { parked, most, .. } = self.params;
        // One that is alone may have served.
        if found >= most { found } else { found.saturating_sub(parked).max(found.min(1)) }
    }

    /// Says how many should serve.
    pub fn set_wanted(&mut self, now: Instant, wanted: u32) {
        self.wanted = wanted.min(self.params.most);
        self.settle(now);
    }

    /// Notes whether a node that serves, or drains, gets no requests because it does not answer, or fails
    /// them.
    pub fn handle_health(&mut self, id: BorrowedId, is_down: bool) {
        use LifecycleState::{Draining, Serving};
        let is_meant = |node: &&mut Borrowed| node.id == id && matches!(node.state, Draining | Serving);
        if let Some(node) = self.nodes.iter_mut().find(is_meant) {
            node.is_down = is_down;
        }
    }

    /// Notes that a node is ready.
    pub fn handle_ready(&mut self, now: Instant, id: BorrowedId) {
        let Some(node) = self.node(id, LifecycleState::Starting) else { return };
        let took = now.secs_since(node.since);
        (node.state, node.since, node.ready) = (LifecycleState::Parked, now, Some(now));
        let mean = self.start_s.get_or_insert(took);
        *mean += (took - *mean) / STARTS;
        self.settle(now);
    }

    /// Notes that a node that drains has nothing left.
    pub fn handle_empty(&mut self, now: Instant, id: BorrowedId) {
        let keeps = self.others(id) < self.kept();
        let Some(node) = self.node(id, LifecycleState::Draining) else { return };
        let (state, output) = match keeps && !node.is_down {
            true => (LifecycleState::Parked, None),
            false => (LifecycleState::Ending, Some(LifecycleOutput::End(id))),
        };
        (node.state, node.since) = (state, now);
        self.outputs.extend(output);
        self.settle(now);
    }

    /// Notes that a node answers nothing any more: it is ended, and another takes its place.
    pub fn handle_lost(&mut self, now: Instant, id: BorrowedId) {
        use LifecycleState::{Draining, Parked, Serving};
        let is_lost = |node: &Borrowed| node.id == id && matches!(node.state, Draining | Parked | Serving);
        if let Some(index) = self.nodes.iter().position(is_lost) {
            self.end(now, index);
        }
        self.settle(now);
    }

    /// Notes whether a node that could not be ended is still there.
    pub fn handle_stuck(&mut self, now: Instant, id: BorrowedId, is_stuck: bool) {
        let Some(node) = self.node(id, LifecycleState::Ending) else { return };
        node.is_stuck = is_stuck;
        self.settle(now);
    }

    /// Notes that a node is gone: ended, or never started.
    pub fn handle_gone(&mut self, now: Instant, id: BorrowedId) {
        let Some(index) = self.nodes.iter().position(|node| node.id == id) else { return };
        let node = self.nodes.remove(index);
        let is_young = node.ready.is_none_or(|ready| now.since(ready) < YOUNG);
        match node.state {
            LifecycleState::Ending => {}
            _ if is_young => self.note_failure(now),
            _ => {}
        }
        self.settle(now);
    }

    /// Does what is due: see [`Lifecycle::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        for index in 0..self.nodes.len() {
            let node = self.nodes[index];
            if self.until(&node).is_none_or(|until| until > now) {
                continue;
            }
            if node.state == LifecycleState::Starting {
                self.note_failure(now);
            }
            self.end(now, index);
        }
        self.settle(now);
    }

    /// Returns when [`Lifecycle::handle_timeout`] must be called, if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.nodes.iter().filter_map(|node| self.until(node)).chain(self.due).min()
    }

    /// Returns the next thing to do; `None` if there is none. Call it after every other call.
    pub fn poll_output(&mut self) -> Option<LifecycleOutput> {
        self.outputs.pop_front()
    }

    /// Returns how many nodes do what.
    pub fn count(&self) -> LifecycleCount {
        let mut count = LifecycleCount::default();
        for node in &self.nodes {
            *match node.state {
                LifecycleState::Starting => &mut count.starting,
                LifecycleState::Parked => &mut count.parked,
                LifecycleState::Serving => &mut count.serving,
                LifecycleState::Draining => &mut count.draining,
                LifecycleState::Ending => &mut count.ending,
            } += 1;
            count.stuck += u32::from(node.is_stuck);
        }
        count
    }

    /// Returns what a node does; `None`: it is gone.
    pub fn state(&self, id: BorrowedId) -> Option<LifecycleState> {
        self.nodes.iter().find(|node| node.id == id).map(|node| node.state)
    }

    /// Returns the mean time of a start, seconds; `None`: none was seen.
    pub fn start_s(&self) -> Option<f64> {
        self.start_s
    }

    /// Returns whether the last start failed.
    pub fn fails_to_start(&self) -> bool {
        self.failures > 0
    }

    /// Does whatever makes the number that serves the one that is wanted.
    fn settle(&mut self, now: Instant) {
        use LifecycleState::{Draining, Parked, Serving, Starting};
        self.forgive(now);
        while self.in_state(Serving) < self.wanted as usize {
            let is_one = |node: &Borrowed, state| node.state == state && !node.is_down;
            let newest = |state| self.nodes.iter().rposition(|node| is_one(node, state));
            let Some(index) = newest(Draining).or(newest(Parked)) else { break };
            self.turn(now, index, Serving, LifecycleOutput::Serve);
        }
        while self.in_state(Serving) > self.wanted as usize {
            let is_one = |node: &Borrowed| node.state == Serving;
            let down = self.nodes.iter().rposition(|node| is_one(node) && node.is_down);
            let Some(index) = down.or(self.nodes.iter().rposition(is_one)) else { break };
            self.turn(now, index, Draining, LifecycleOutput::Drain);
        }
        let kept = self.kept();
        let mut present = self.in_state(Serving) + self.in_state(Parked) + self.in_state(Starting);
        while present > kept {
            let newest = |state| self.nodes.iter().rposition(|node: &Borrowed| node.state == state);
            let Some(index) = newest(Starting).or(newest(Parked)) else { break };
            self.end(now, index);
            present -= 1;
        }
        // One that drains is parked when it is done, or comes back.
        present += self.nodes.iter().filter(|node| node.state == Draining && !node.is_down).count();
        // Those that could not be ended cost as much as any other.
        let room = (self.params.most as usize).saturating_sub(self.stuck());
        self.due = None;
        while present < kept.min(room) {
            if let Some(due) = self.back_off(now) {
                self.due = due;
                break;
            }
            let Some(id) = self.add(now, Starting) else { break };
            self.outputs.push_back(LifecycleOutput::Start(id));
            present += 1;
        }
    }

    /// Returns why no start may be tried now, after one that failed: until when, or until the one that
    /// is tried has ended.
    fn back_off(&self, now: Instant) -> Option<Option<Instant>> {
        if self.failures == 0 {
            return None;
        }
        if self.in_state(LifecycleState::Starting) > 0 {
            return Some(None);
        }
        let wait = (1 << (self.failures - 1).min(6)).min(START_BACK_OFF_S_MAX);
        let due = self.failed_at + seconds(f64::from(wait));
        (due > now).then_some(Some(due))
    }

    fn note_failure(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.failed_at = now;
    }

    /// Forgets failures once a node that was started later has lived for a while.
    fn forgive(&mut self, now: Instant) {
        let lives = |ready: Instant| ready > self.failed_at && now.since(ready) >= YOUNG;
        if self.nodes.iter().any(|node| node.ready.is_some_and(lives)) {
            self.failures = 0;
        }
    }

    /// How many nodes there should be, parked ones among them.
    fn kept(&self) -> usize {
        self.wanted.saturating_add(self.params.parked).min(self.params.most) as usize
    }

    /// Returns how many serve, are parked or start, but for one.
    fn others(&self, id: BorrowedId) -> usize {
        use LifecycleState::{Parked, Serving, Starting};
        let counts = |node: &&Borrowed| node.id != id && matches!(node.state, Parked | Serving | Starting);
        self.nodes.iter().filter(counts).count()
    }

    fn stuck(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_stuck).count()
    }

    fn in_state(&self, state: LifecycleState) -> usize {
        self.nodes.iter().filter(|node| node.state == state).count()
    }

    fn node(&mut self, id: BorrowedId, state: LifecycleState) -> Option<&mut Borrowed> {
        self.nodes.iter_mut().find(|node| node.id == id && node.state == state)
    }

    fn add(&mut self, now: Instant, state: LifecycleState) -> Option<BorrowedId> {
        if self.nodes.len() >= BORROWED_MAX {
            return None;
        }
        let id = BorrowedId(self.next);
        self.next += 1;
        let ready = (state != LifecycleState::Starting).then_some(now);
        self.nodes.push(Borrowed { id, state, since: now, ready, is_down: false, is_stuck: false });
        Some(id)
    }

    fn turn(
        &mut self,
        now: Instant,
        index: usize,
        state: LifecycleState,
        says: fn(BorrowedId) -> LifecycleOutput,
    ) {
        let node = &mut self.nodes[index];
        (node.state, node.since) = (state, now);
        self.outputs.push_back(says(node.id));
    }

    fn end(&mut self, now: Instant, index: usize) {
        self.turn(now, index, LifecycleState::Ending, LifecycleOutput::End);
    }

    /// Returns until when a node may be in its state.
    fn until(&self, node: &Borrowed) -> Option<Instant> {
        let longest = match node.state {
            LifecycleState::Starting => self.params.start_within,
            LifecycleState::Draining => self.params.drain_within,
            _ => return None,
        };
        Some(node.since + longest)
    }
}

#[cfg(test)]
mod tests;

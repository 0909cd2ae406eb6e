//! The shell around the gate: its clock, its lock, and the futures that wait for its verdict.
//!
//! The gate decides in well under a microsecond, so a plain mutex is held just for that and never
//! across an await. A waiting request holds a [`Waiting`]; one in the application holds a [`Slot`].
//! Both are guards: a future that is dropped settles what it held, and no path leaks a slot.

mod declare;
mod sharing;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use suimon_downstream::charge;
use suimon_downstream::connection::Connection;
use suimon_gate::{
    Arrival, Gate, InLine, Knowledge, Learned, LeaseDue, Membership, Output, Params, Permit, Refusal,
    RouteMode, SessionSignal, Snapshot, Start,
};
use suimon_identity::memory::{Client, ClientMemory, Owed};
use suimon_line::{Command, Position, PositionStatus, SavedLine};
use suimon_model::{Instant, KindId, Outcome, RequestId, SessionId};
use suimon_params::Recording;
use suimon_record::Event;
use suimon_store::recorder::{RecordError, RecordNames, Recorder};
use tokio::sync::{Notify, oneshot};

/// The longest time between two calls of the gate. Also keeps the runtime's timer from being
/// rearmed for each request.
const TICK: Duration = Duration::from_millis(20);

/// The gate and everything that waits for it.
#[derive(Debug)]
pub(crate) struct Gatekeeper {
    clock: Clock,
    inner: Mutex<Inner>,
    /// Wakes the ticker before the time it has set itself.
    earlier: Notify,
    /// The time the ticker has set itself, in nanoseconds since the origin.
    armed: AtomicU64,
    /// Visitors who wait to be admitted, as of the last tick.
    waiting: AtomicU64,
    /// What the gate says of leases, as of its last event.
    lease_due: AtomicU8,
    /// The most requests ever seen in the application at a tick, apart from those whose bodies are
    /// still coming.
    in_flight_max: AtomicUsize,
    /// Requests with a slot whose bodies are still coming.
    sending: AtomicUsize,
    /// Whether another process takes newcomers in its place.
    handed_over: AtomicBool,
    /// How often the gate was called because it was time to.
    ticks: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    gate: Gate,
    /// Bounded by the gate's `waiting_max`.
    waiters: HashMap<RequestId, oneshot::Sender<GateAnswer>>,
    /// Clients that were served and that no cookie identifies.
    memory: ClientMemory<Connection>,
    /// What the gate does on routes that are found.
    found_mode: RouteMode,
    /// What it does instead on routes of these names, and whether nobody is held at the session gate:
    /// an operator says so for a while.
    overridden: (Vec<(String, RouteMode)>, bool),
    /// What a recording calls the gate's routes and kinds.
    names: RecordNames,
    /// Nodes that limits and capacities are those of: the last number that was not 0.
    nodes: u32,
    /// Told of each call that changes the gate, before it is made, if a recording is made.
    recorder: Option<Recorder>,
}

/// Turns the system's clock into the gate's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

#[derive(Debug)]
enum GateAnswer {
    Start(Start),
    Refuse(Refusal),
    Wait(InLine),
    Resumed,
}

/// A client that no cookie identifies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnidentifiedClient {
    pub(crate) client: Client,
    /// The session it has been served as on the same connection.
    pub(crate) hint: Option<(KindId, SessionId)>,
    /// The session that it was found to belong to.
    pub(crate) found: Option<(KindId, SessionId)>,
}

/// Says how a request belongs to the session it was found to be of; `None`: that one has ended.
pub(crate) type MemberOf<'a> = &'a dyn Fn((KindId, SessionId)) -> Option<Membership>;

/// Whether a request that names a session may name another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SessionLookup {
    /// It may.
    First,
    /// If the gate does not have it, it is a newcomer's.
    Last,
}

/// The fate of a request that has arrived.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// It may go to the application now.
    Admitted(GateAdmission),
    /// It is not admitted now.
    TurnedAway(TurnedAway),
    /// It waits.
    Waiting(Waiting),
}

/// A request that is not admitted now.
#[derive(Debug)]
pub(crate) enum TurnedAway {
    /// It is to be refused.
    Refused(Refusal),
    /// It is to be shown its place.
    InLine(InLine),
}

/// A request that may go to the application.
#[derive(Debug)]
pub(crate) struct GateAdmission {
    pub(crate) slot: Slot,
    pub(crate) session: Option<(KindId, SessionId)>,
    pub(crate) lease: LeaseDue,
    /// In all, and the part of it before it came to its route.
    pub(crate) waited: Duration,
    pub(crate) held: Duration,
    /// Of its route when it was admitted; requests in the application with this one.
    pub(crate) limit: Option<u32>,
    pub(crate) in_flight: usize,
    /// What the application is told to pause inside it; 0: nothing.
    pub(crate) pause_ratio: f64,
}

/// A request in a queue of the gate. Dropped, it leaves the queue.
#[derive(Debug)]
pub(crate) struct Waiting {
    keeper: Arc<Gatekeeper>,
    request: RequestId,
    verdict: oneshot::Receiver<GateAnswer>,
    settled: bool,
}

/// The right to be in the application. Dropped, it ends as abandoned.
#[derive(Debug)]
pub(crate) struct Slot {
    keeper: Arc<Gatekeeper>,
    permit: Option<Permit>,
}

/// The slot of a request as the request's body sees it: given back while the client is waited for
/// in the middle of it, and taken again before its end.
#[derive(Debug)]
pub(crate) struct BodySlot {
    keeper: Arc<Gatekeeper>,
    request: RequestId,
    held: SlotState,
}

#[derive(Debug)]
enum SlotState {
    Yes,
    No,
    Again(oneshot::Receiver<GateAnswer>),
}

impl Clock {
    /// Returns the clock whose origin is now.
    pub(crate) fn new() -> Self {
        Clock { origin: std::time::Instant::now() }
    }

    /// Returns the time as the pure crates see it.
    pub(crate) fn now(self) -> Instant {
        self.at(std::time::Instant::now())
    }

    /// Returns a moment as the pure crates see it.
    fn at(self, moment: std::time::Instant) -> Instant {
        Instant::ORIGIN + moment.saturating_duration_since(self.origin)
    }

    /// Returns when it began.
    pub(crate) fn origin(self) -> std::time::Instant {
        self.origin
    }

    /// Returns the time since the origin.
    pub(crate) fn elapsed(self) -> Duration {
        self.origin.elapsed()
    }
}

impl Gatekeeper {
    /// Returns the keeper of a gate that knows no routes and no kinds yet.
    pub(crate) fn new(params: Params, found_mode: RouteMode) -> Arc<Self> {
        let clock = Clock::new();
        let gate = Gate::new(params, clock.now());
        Arc::new(Gatekeeper {
            clock,
            inner: Mutex::new(Inner {
                gate,
                waiters: HashMap::new(),
                memory: ClientMemory::default(),
                found_mode,
                overridden: (Vec::new(), false),
                names: RecordNames::default(),
                nodes: 1,
                recorder: None,
            }),
            earlier: Notify::new(),
            armed: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            in_flight_max: AtomicUsize::new(0),
            sending: AtomicUsize::new(0),
            handed_over: AtomicBool::new(false),
            ticks: AtomicU64::new(0),
            lease_due: AtomicU8::new(LeaseDue::No as u8),
        })
    }

    /// Returns the clock the gate goes by.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Writes what happens to the gate from now on.
    pub(crate) fn begin_recording(&self, recording: &Recording) -> Result<(), RecordError> {
        let now = self.clock.now();
        let mut inner = self.lock();
        inner.recorder = Some(Recorder::begin(recording, &inner.gate, &inner.names, now)?);
        Ok(())
    }

    /// Returns whether what happens to the gate is written.
    pub(crate) fn is_recording(&self) -> bool {
        self.lock().recorder.is_some()
    }

    /// Writes nothing more, and waits until all there is to write is on the disk.
    pub(crate) fn end_recording(&self) {
        let mut inner = self.lock();
        let Some(recorder) = inner.recorder.take() else { return };
        let trace = inner.gate.trace();
        drop(inner);
        recorder.end(trace);
    }

    /// Finds the session of a client that no cookie tells from others.
    pub(crate) fn recognise(
        &self,
        unknown: &mut UnidentifiedClient,
        kind: Option<KindId>,
        member: MemberOf<'_>,
    ) {
        let now = self.clock.now();
        self.lock().recognise(now, unknown, kind, member);
    }

    /// Returns whether the gate has a session: it was admitted, has not ended and was heard of not
    /// long ago.
    pub(crate) fn has(&self, session: SessionId) -> bool {
        self.lock().gate.begun(session).is_some()
    }

    /// Remembers that a client which no cookie identifies was served as `session`, and what it is
    /// owed for that.
    pub(crate) fn remember(
        &self,
        client: &Client,
        session: (KindId, SessionId),
        owed: Owed,
        connection: Option<&Arc<Connection>>,
    ) {
        let now = self.clock.now();
        self.lock().memory.note(now, client, session, owed, connection);
    }

    /// Returns whether an answer of this moment should carry a lease, if its session has none.
    pub(crate) fn lease_due(&self) -> LeaseDue {
        let due = self.lease_due.load(Relaxed);
        [LeaseDue::IfUnknown, LeaseDue::Yes].into_iter().rfind(|it| *it as u8 == due).unwrap_or(LeaseDue::No)
    }

    /// Takes in a request; `None`: it names a session that the gate does not have and may name
    /// another, and nothing was done. For a request that nothing identifies, `unknown` says whose
    /// it may be and how it then belongs to that session.
    pub(crate) fn arrive(
        self: &Arc<Self>,
        mut arrival: Arrival,
        unknown: Option<(&mut UnidentifiedClient, MemberOf<'_>)>,
        lookup: SessionLookup,
    ) -> Option<Arrived> {
        let now = self.clock.now();
        let mut inner = self.lock();
        if let Some((unknown, member)) = unknown {
            inner.recognise(now, unknown, kind_of(arrival.session), member);
            arrival.session = unknown.found.and_then(member).or(arrival.session);
        } else if let Some(Membership::Member { session, leased: false, .. }) = arrival.session {
            if lookup == SessionLookup::First && inner.gate.begun(session).is_none() {
                return None;
            }
            inner.memory.comes_with_cookie(session);
        }
        inner.note(now, || Event::Arrival(arrival));
        let request = inner.gate.handle_arrival(now, arrival);
        let verdict = inner.settle(now, Some(request));
        let arrived = match verdict {
            Some(GateAnswer::Start(start)) => Arrived::Admitted(self.admission(start)),
            Some(GateAnswer::Refuse(refusal)) => Arrived::TurnedAway(TurnedAway::Refused(refusal)),
            Some(GateAnswer::Wait(position)) => Arrived::TurnedAway(TurnedAway::InLine(position)),
            Some(GateAnswer::Resumed) => unreachable!("what has just come was not suspended"),
            None => {
                let (sender, verdict) = oneshot::channel();
                inner.waiters.insert(request, sender);
                Arrived::Waiting(Waiting { keeper: Arc::clone(self), request, verdict, settled: false })
            }
        };
        self.lease_due.store(inner.gate.lease_due(now) as u8, Relaxed);
        self.rearm(inner);
        Some(arrived)
    }

    /// Returns how many visitors wait to be admitted, in line and held.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    /// Returns the most requests ever seen in the application at once, apart from those whose
    /// bodies are still coming: a client must not raise the bound on slow bodies by sending many of
    /// them.
    pub(crate) fn in_flight_max(&self) -> usize {
        self.in_flight_max.load(Relaxed)
    }

    /// Returns whether a request of an admitted visitor has been held for this `time` at a route
    /// whose limit is found by the law.
    pub(crate) fn holds_insider_for(&self, time: Duration) -> bool {
        let now = self.clock.now();
        self.lock().gate.holds_insider_since(now - time)
    }

    /// Returns everything that can be seen of the gate.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let now = self.clock.now();
        self.lock().gate.snapshot(now)
    }

    /// Returns what the gate has learned.
    pub(crate) fn learned(&self) -> Learned {
        self.lock().gate.learned()
    }

    /// Returns what another process can begin with, and how many nodes it is of.
    pub(crate) fn knowledge(&self) -> (Knowledge, u32) {
        let inner = self.lock();
        (inner.gate.knowledge(), inner.nodes)
    }

    /// Begins with what was known `age` ago, of so many `nodes`. To be called before anything is recorded,
    /// and before any request.
    pub(crate) fn recall(&self, knowledge: &Knowledge, age: Duration, nodes: Option<u32>) {
        self.with_gate(|inner, now| {
            if let Some(nodes) = nodes {
                // Limits are then those of the nodes there are, as with any other change.
                inner.gate.handle_nodes(now, inner.nodes, nodes);
                inner.nodes = nodes;
            }
            inner.gate.recall(now, knowledge, age);
        });
    }

    /// Takes note that the holder of a place asks how it stands, and returns that; `None`: the kind
    /// has no line.
    pub(crate) fn contact(&self, kind: KindId, position: Position) -> Option<PositionStatus> {
        let now = self.clock.now();
        let mut inner = self.lock();
        inner.note(now, || Event::Contact(kind, position));
        inner.gate.handle_contact(now, kind, position)
    }

    /// Returns when the line of `kind` opens, if it is to.
    pub(crate) fn opens(&self, kind: KindId) -> Option<Instant> {
        let inner = self.lock();
        match inner.gate.line(kind)?.state() {
            suimon_line::LineStatus::Opening(at) => Some(at),
            suimon_line::LineStatus::Moving
            | suimon_line::LineStatus::Paused
            | suimon_line::LineStatus::Closed => None,
        }
    }

    /// Returns whether the line of `kind` is closed.
    pub(crate) fn is_closed(&self, kind: KindId) -> bool {
        let state = self.lock().gate.line(kind).map(|line| line.view().state);
        state == Some(suimon_line::LineStatus::Closed)
    }

    /// Returns whether a draw by lot has decided about people who are still to be called.
    pub(crate) fn has_lots_to_call(&self, kind: KindId) -> bool {
        self.lock().gate.line(kind).is_some_and(suimon_line::Line::has_lots_to_call)
    }

    /// Tells a line what its operator says, and returns whether the kind has one.
    pub(crate) fn command(&self, kind: KindId, command: Command) -> bool {
        let mut has_line = false;
        self.with_gate(|inner, now| {
            inner.note(now, || Event::Command(kind, command));
            has_line = inner.gate.handle_command(now, kind, command);
        });
        has_line
    }

    /// Tells the gate what the application says of a session.
    pub(crate) fn session_signal(&self, session: SessionId, word: SessionSignal) {
        self.with_gate(|inner, now| {
            inner.note(now, || Event::SessionSignal(session, word));
            inner.gate.handle_session_signal(now, session, word);
        });
    }

    /// Goes on with a line where another process ended, at this moment if this one takes over. Before
    /// anything is recorded.
    pub(crate) fn restore_line(&self, kind: KindId, saved: &SavedLine, skipped: u64, takes_over: bool) {
        let now = self.clock.now();
        self.lock().gate.restore_line(now, kind, saved, skipped, takes_over);
    }

    /// Returns what of a line must survive a restart, if the kind has one.
    pub(crate) fn saved_line(&self, kind: KindId) -> Option<SavedLine> {
        self.lock().gate.line(kind).map(suimon_line::Line::saved)
    }

    /// Takes note whether any node of the application is up.
    pub(crate) fn application(&self, is_up: bool) {
        self.with_gate(|inner, now| {
            inner.note(now, || Event::Application(is_up));
            inner.gate.handle_application(now, is_up);
        });
    }

    /// Returns how long a request of `kind` waits for an application that does not answer.
    pub(crate) fn awaits_application(&self, kind: Option<KindId>) -> Duration {
        self.lock().gate.awaits_application(kind)
    }

    /// Begins to refuse newcomers.
    pub(crate) fn drain(&self) {
        self.with_gate(|inner, now| {
            inner.note(now, || Event::Drain);
            inner.gate.drain(now);
        });
    }

    /// Begins to refuse newcomers, who are to ask another process. To be called when nothing is
    /// recorded any more: a recording knows no way back.
    pub(crate) fn hand_over(&self) {
        self.handed_over.store(true, Relaxed);
        self.with_gate(|inner, now| inner.gate.hand_over(now));
    }

    /// Returns the sessions that have begun.
    pub(crate) fn sessions_begun(&self) -> Vec<(KindId, SessionId)> {
        self.lock().gate.sessions_begun().collect()
    }

    /// Goes on with sessions that have begun at another process. Before anything is recorded.
    pub(crate) fn reopen(&self, sessions: impl Iterator<Item = (KindId, SessionId)>) {
        self.with_gate(|inner, now| {
            sessions.for_each(|(kind, session)| inner.gate.reopen(now, kind, session));
        });
    }

    /// Takes newcomers again: no other process does.
    pub(crate) fn take_back(&self) {
        self.handed_over.store(false, Relaxed);
        self.with_gate(|inner, _| inner.gate.take_back());
    }

    /// Returns whether newcomers are to ask another process.
    pub(crate) fn is_handed_over(&self) -> bool {
        self.handed_over.load(Relaxed)
    }

    /// Returns how often the gate was called because it was time to: it stands still only if the gate
    /// does.
    pub(crate) fn ticks(&self) -> u64 {
        self.ticks.load(Relaxed)
    }

    /// Calls the gate whenever it has asked for it. Never returns.
    pub(crate) async fn tick(&self) {
        loop {
            self.ticks.fetch_add(1, Relaxed);
            let now = self.clock.now();
            let latest = now + TICK;
            let due = {
                let mut inner = self.lock();
                inner.note(now, || Event::Timeout);
                inner.gate.handle_timeout(now);
                inner.settle(now, None);
                self.waiting.store(inner.gate.visitors_waiting(), Relaxed);
                let worked_at = inner.gate.in_flight().saturating_sub(self.sending.load(Relaxed));
                self.in_flight_max.fetch_max(worked_at, Relaxed);
                self.lease_due.store(inner.gate.lease_due(now) as u8, Relaxed);
                inner.gate.poll_timeout().map_or(latest, |due| due.min(latest))
            };
            self.armed.store(due.as_nanos(), Relaxed);
            let pause = due.since(now);
            if pause.is_zero() {
                // Due already: let others at the lock first.
                tokio::task::yield_now().await;
                continue;
            }
            let _ = tokio::time::timeout(pause, self.earlier.notified()).await;
        }
    }

    fn with_gate(&self, act: impl FnOnce(&mut Inner, Instant)) {
        self.with_gate_at(self.clock.now(), act);
    }

    fn with_gate_at(&self, now: Instant, act: impl FnOnce(&mut Inner, Instant)) {
        let mut inner = self.lock();
        act(&mut inner, now);
        inner.settle(now, None);
        self.rearm(inner);
    }

    /// Lets go of the lock, and wakes the ticker if the gate wants to be called before the ticker
    /// would.
    fn rearm(&self, inner: MutexGuard<'_, Inner>) {
        let due = inner.gate.poll_timeout();
        drop(inner);
        if due.is_some_and(|due| due.as_nanos() < self.armed.load(Relaxed)) {
            self.earlier.notify_one();
        }
    }

    fn admission(self: &Arc<Self>, start: Start) -> GateAdmission {
        let Start { request: _, permit, session, lease, waited, held, limit, in_flight, pause_ratio } = start;
        let slot = Slot { keeper: Arc::clone(self), permit: Some(permit) };
        GateAdmission { slot, session, lease, waited, held, limit, in_flight, pause_ratio }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // After a panic inside the gate its numbers may be off; refusing every request from then on
        // would be worse.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the kind of session that a request of an unknown client would begin.
pub(crate) fn kind_of(session: Option<Membership>) -> Option<KindId> {
    match session? {
        Membership::Newcomer(kind) | Membership::Drawing { kind, .. } | Membership::WithoutLine(kind) => {
            Some(kind)
        }
        Membership::Placed { kind, .. }
        | Membership::Entering { kind, .. }
        | Membership::Member { kind, .. } => Some(kind),
    }
}

impl Inner {
    fn recognise(
        &mut self,
        now: Instant,
        unknown: &mut UnidentifiedClient,
        kind: Option<KindId>,
        member: MemberOf<'_>,
    ) {
        let gate = &self.gate;
        let is_fit = |(own, session): &(KindId, SessionId)| {
            let is_of_kind = kind.is_none_or(|kind| kind == *own);
            is_of_kind && gate.begun(*session).is_some() && member((*own, *session)).is_some()
        };
        unknown.found = unknown.hint.filter(is_fit);
        if unknown.found.is_some() {
            return self.memory.touch(now, &unknown.client);
        }
        let is_pressed = gate.lease_due(now) != LeaseDue::No;
        let begun = |session| gate.begun(session);
        let found = self.memory.recall(now, &unknown.client, kind, is_pressed, begun);
        unknown.found = found.filter(|own| member(*own).is_some());
    }

    /// Does what the gate wants done. Returns the verdict on `own`, if there is one among it.
    fn settle(&mut self, now: Instant, own: Option<RequestId>) -> Option<GateAnswer> {
        let mut verdict_on_own = None;
        while let Some(output) = self.gate.poll_output() {
            if let Some(recorder) = &mut self.recorder {
                recorder.answer(&output);
            }
            let (request, verdict) = match output {
                Output::Start(start) => (start.request, GateAnswer::Start(start)),
                Output::Refuse(refusal) => (refusal.request, GateAnswer::Refuse(refusal)),
                Output::Wait(position) => (position.request, GateAnswer::Wait(position)),
                Output::Resumed(request) => (request, GateAnswer::Resumed),
                Output::Decided(record) => {
                    tracing::debug!(?record, reason = record.reason.code(), "decided");
                    continue;
                }
            };
            if own == Some(request) {
                verdict_on_own = Some(verdict);
                continue;
            }
            let unheard = match self.waiters.remove(&request) {
                Some(waiter) => waiter.send(verdict).err(),
                None => Some(verdict),
            };
            // Its client left at this very moment: the slot goes to the next request.
            if let Some(GateAnswer::Start(start)) = unheard {
                self.end(now, start.permit, Outcome::Abandoned);
            }
        }
        self.keep_recording(now);
        verdict_on_own
    }

    /// Tells the recording, if there is one, of a call that is about to be made.
    fn note(&mut self, now: Instant, event: impl FnOnce() -> Event) {
        if let Some(recorder) = &mut self.recorder {
            recorder.push(now, &event());
        }
    }

    /// Hands on what was recorded when it is time to. Only here, where the gate has processed all
    /// calls.
    fn keep_recording(&mut self, now: Instant) {
        let Some(recorder) = &mut self.recorder else { return };
        if recorder.is_due(now) && recorder.hand_on(&self.gate, &self.names, now).is_err() {
            self.recorder = None;
        }
    }

    fn end(&mut self, now: Instant, permit: Permit, ending: Outcome) {
        if !self.waiters.is_empty() {
            // A body that waits for this slot need not wait any more.
            self.waiters.remove(&permit.request());
        }
        self.note(now, || Event::End(permit.request(), ending));
        self.gate.handle_end(now, permit, ending);
    }

    fn pause(&mut self, now: Instant, request: RequestId, client_time: Duration) -> bool {
        self.note(now, || Event::Suspend(request, client_time));
        self.gate.handle_suspend(now, request, client_time)
    }

    fn depart(&mut self, now: Instant, request: RequestId) {
        self.note(now, || Event::Departure(request));
        self.gate.handle_departure(now, request);
    }
}

impl Waiting {
    /// Waits for the gate's verdict. May be dropped and called again.
    pub(crate) async fn verdict(&mut self) -> Result<GateAdmission, TurnedAway> {
        let verdict = (&mut self.verdict).await;
        self.settled = true;
        match verdict {
            Ok(GateAnswer::Start(start)) => Ok(self.keeper.admission(start)),
            Ok(GateAnswer::Refuse(refusal)) => Err(TurnedAway::Refused(refusal)),
            Ok(GateAnswer::Wait(position)) => Err(TurnedAway::InLine(position)),
            Ok(GateAnswer::Resumed) => unreachable!("what waits for its first slot was not suspended"),
            // The sender goes only with a verdict or with the keeper, of which we hold a share.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let request = self.request;
        let now = self.keeper.clock.now();
        let mut inner = self.keeper.lock();
        inner.waiters.remove(&request);
        // Under the lock no verdict can be on its way any more: either it is here, or it never
        // comes.
        match self.verdict.try_recv() {
            Ok(GateAnswer::Start(start)) => inner.end(now, start.permit, Outcome::Abandoned),
            Ok(GateAnswer::Refuse(_) | GateAnswer::Wait(_) | GateAnswer::Resumed) => {}
            Err(_) => inner.depart(now, request),
        }
        inner.settle(now, None);
        self.keeper.rearm(inner);
    }
}

impl Slot {
    /// Gives the slot back.
    pub(crate) fn end(mut self, ending: Outcome) {
        let now = self.keeper.clock.now();
        self.settle(ending, now);
    }

    /// As [`Slot::end`], where the caller knows the time: `now`.
    pub(crate) fn end_at(mut self, ending: Outcome, now: std::time::Instant) {
        let now = self.keeper.clock.at(now);
        self.settle(ending, now);
    }

    /// Gives the slot back of a request whose answer waits for its client. The client was waited
    /// for `client_time`, which does not count as the application's time.
    pub(crate) fn end_without(mut self, ending: Outcome, client_time: Duration) {
        let Some(permit) = self.permit.take() else { return };
        self.keeper.with_gate(|inner, now| {
            inner.pause(now, permit.request(), client_time);
            inner.end(now, permit, ending);
        });
    }

    /// Takes note that the application says it has paused inside the request for so long in all.
    pub(crate) fn paused(&self, paused: Duration) {
        let Some(request) = self.permit.as_ref().map(Permit::request) else { return };
        let now = self.keeper.clock.now();
        let mut inner = self.keeper.lock();
        inner.note(now, || Event::Paused(request, paused));
        inner.gate.handle_paused(request, paused);
    }

    /// Returns the slot as the request's body sees it.
    pub(crate) fn turn(&self) -> Option<BodySlot> {
        let request = self.permit.as_ref()?.request();
        self.keeper.sending.fetch_add(1, Relaxed);
        Some(BodySlot { keeper: Arc::clone(&self.keeper), request, held: SlotState::Yes })
    }

    /// Takes note that the client has gone; the slot stays taken, by an orphaned request.
    pub(crate) fn depart(&self) {
        if let Some(permit) = &self.permit {
            let request = permit.request();
            self.keeper.with_gate(|inner, now| inner.depart(now, request));
        }
    }

    fn settle(&mut self, ending: Outcome, now: Instant) {
        if let Some(permit) = self.permit.take() {
            self.keeper.with_gate_at(now, |inner, now| inner.end(now, permit, ending));
        }
    }
}

impl charge::Slot for BodySlot {
    fn is_paused(&self) -> bool {
        !matches!(self.held, SlotState::Yes)
    }

    fn pause(&mut self, client_time: Duration) -> bool {
        let mut was_held = false;
        self.keeper.with_gate(|inner, now| was_held = inner.pause(now, self.request, client_time));
        self.hold(if was_held { SlotState::No } else { SlotState::Yes });
        was_held
    }

    fn poll_resumed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if matches!(self.held, SlotState::No) {
            self.resume();
        }
        if let SlotState::Again(verdict) = &mut self.held {
            // If the slot is given back for good meanwhile, there is none to wait for.
            let _ = ready!(Pin::new(verdict).poll(cx));
            self.hold(SlotState::Yes);
        }
        Poll::Ready(())
    }
}

impl BodySlot {
    fn resume(&mut self) {
        let now = self.keeper.clock.now();
        let mut inner = self.keeper.lock();
        inner.note(now, || Event::Resume(self.request));
        let is_resumed = inner.gate.handle_resume(now, self.request);
        let held = match inner.settle(now, Some(self.request)) {
            None if is_resumed => {
                let (sender, verdict) = oneshot::channel();
                inner.waiters.insert(self.request, sender);
                SlotState::Again(verdict)
            }
            _ => SlotState::Yes,
        };
        self.keeper.rearm(inner);
        self.hold(held);
    }

    fn hold(&mut self, held: SlotState) {
        let was_held = matches!(std::mem::replace(&mut self.held, held), SlotState::Yes);
        match (was_held, matches!(self.held, SlotState::Yes)) {
            (true, false) => _ = self.keeper.sending.fetch_sub(1, Relaxed),
            (false, true) => _ = self.keeper.sending.fetch_add(1, Relaxed),
            _ => {}
        }
    }
}

impl Drop for BodySlot {
    fn drop(&mut self) {
        if matches!(self.held, SlotState::Yes) {
            self.keeper.sending.fetch_sub(1, Relaxed);
        }
        if matches!(self.held, SlotState::Again(_)) {
            self.keeper.lock().waiters.remove(&self.request);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.permit.is_some() {
            let now = self.keeper.clock.now();
            self.settle(Outcome::Abandoned, now);
        }
    }
}

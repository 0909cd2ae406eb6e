//! What goes into the gate and what comes out of it.

use suimon_control::{DegradationMode, RouteLawKind, ServiceStanding, ServiceWish, SessionLawKind};
use suimon_line::{Lane, Position, PositionStatus};
use suimon_model::{Choice, Duration, KindId, Limit, PoolId, Reason, Record, RequestId, RouteId, SessionId};

/// Parameters of the gate. The defaults suit an application of which nothing is known.
#[derive(Clone, Debug)]
pub struct Params {
    /// Processor cores the application is assumed to have; only where the search for limits starts.
    /// At least 1.
    pub cores: u32,
    /// Seed of the jitter in `Retry-After`.
    pub seed: u64,
    /// How limits are found.
    pub route_law: RouteLawKind,
    /// How sessions are admitted.
    pub session_law: SessionLawKind,
    /// Who goes first in a route's queue.
    pub order: QueueOrder,
    /// How long clients wait for one answer when nothing was declared or learned yet.
    pub patience: Duration,
    /// The most requests that wait at once; newcomers beyond it are refused.
    pub waiting_max: usize,
    /// The most sessions remembered; the one idle longest is forgotten for a new one.
    pub sessions_max: usize,
    /// A session idle for longer is forgotten.
    pub session_idle: Duration,
    /// The most recent decision records kept for [`Snapshot`].
    pub decisions_max: usize,
    /// The pools of which a law finds how many workers are needed. There a route of which nothing is
    /// learned may have all of them at once: they are what protects the application.
    pub finds_workers: Vec<PoolId>,
}

suimon_model::saved_struct!(Params {
    cores,
    seed,
    route_law,
    session_law,
    order,
    patience,
    waiting_max,
    sessions_max,
    session_idle,
    decisions_max,
    finds_workers,
});

impl Default for Params {
    fn default() -> Self {
        Params {
            cores: 2,
            seed: 1,
            route_law: RouteLawKind::default(),
            session_law: SessionLawKind::default(),
            order: QueueOrder::default(),
            patience: Duration::from_secs(60),
            waiting_max: 20_000,
            sessions_max: 200_000,
            session_idle: Duration::from_secs(1800),
            decisions_max: 256,
            finds_workers: vec![],
        }
    }
}

suimon_model::choices! {
    /// Who goes first in a route's queue.
    #[derive(Eq)]
    pub enum QueueOrder {
        /// First in, first out.
        FirstIn = 1, "fifo", "first in, first out";
        /// The session with more requests behind it; equal ones first in, first out. Saves what can
        /// be saved where sessions are admitted without limit; sessions at an earlier step starve
        /// meanwhile.
        LaterInSession = 0, "later_in_session", "later steps of a session first, which completes more where session_law = \"open\", and lets requests at an earlier step starve";
    }
}

suimon_model::choices! {
    /// What the gate does on a route.
    #[derive(Eq)]
    pub enum RouteMode {
        /// Finds a limit and enforces it.
        Enforce = 0, "enforce", "a limit is found and enforced";
        /// Measures and shows, holds nobody back. (A limit cannot be found without trying it.)
        Observe = 1, "observe", "measured and shown, nobody waits";
        /// Counts only.
        Off = 2, "off", "only counted";
        /// Enforces this limit.
        Fixed(limit: Limit) = 3, "fixed", "a number: that limit";
    }
}

impl RouteMode {
    /// The words it may be written with: a declared limit is written as a number.
    pub const WORDS: &'static [Choice] = match RouteMode::CHOICES {
        [words @ .., _fixed] => words,
        [] => &[],
    };

    /// Returns the limit that is declared, if one is.
    pub const fn fixed(self) -> Option<u32> {
        if let RouteMode::Fixed(limit) = self { Some(limit.slots()) } else { None }
    }
}

suimon_model::choices! {
    /// Whether newcomers of a kind are ever held back.
    #[derive(Eq)]
    pub enum KindMode {
        /// They are, when necessary.
        Enforce = 0, "enforce", "newcomers are held back when necessary";
        /// They are not; it is shown when they would be.
        Observe = 1, "observe", "newcomers are not held back; it is shown when they would be";
        /// They are not.
        Off = 2, "off", "nobody is ever held back";
    }
}

/// One kind of session.
#[derive(Clone, Debug)]
pub struct KindParams {
    /// How long its visitors wait for one answer, if declared; else learned.
    pub patience: Option<Duration>,
    /// The longest a newcomer is held waiting before being refused instead; `None`: 0.7 of the
    /// patience, at most 10 s.
    pub hold: Option<Duration>,
    /// Whether newcomers are ever held back.
    pub mode: KindMode,
    /// The line of newcomers who cannot begin within `hold`; `None`: they are refused.
    pub line: Option<suimon_line::Params>,
}

suimon_model::saved_struct!(KindParams { patience, hold, mode, line });

impl Default for KindParams {
    fn default() -> Self {
        KindParams { patience: None, hold: None, mode: KindMode::Enforce, line: None }
    }
}

/// The services, and what their split goes by.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Services {
    /// What it goes by.
    pub mode: DegradationMode,
    /// In the order in which floors are kept.
    pub services: Vec<ServiceParams>,
}

suimon_model::saved_struct!(Services { mode, services });

/// One service: a group of routes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ServiceParams {
    /// Its name, for show.
    pub name: String,
    /// Its routes; each is in one service at most.
    pub routes: Vec<RouteId>,
    /// What is wished for it.
    pub wish: ServiceWish,
    /// For how long each of its requests is held before it goes on: the papers' fixed pause.
    pub pause: Duration,
    /// Seconds of pause for each second of work, in every mode; 0 to
    /// [`PAUSE_RATIO_MAX`](suimon_control::PAUSE_RATIO_MAX).
    pub pause_ratio: f64,
    /// Where the pauses are taken that `pause_ratio` and caps come to.
    pub pauses: PausePlace,
}

suimon_model::saved_struct!(
    ServiceParams { name, routes, wish, pause, pause_ratio, pauses },
    |it: &ServiceParams| { (0.0..=suimon_control::PAUSE_RATIO_MAX).contains(&it.pause_ratio) }
);

suimon_model::choices! {
    /// Where pauses are taken.
    #[derive(Eq)]
    pub enum PausePlace {
        /// Before a request goes to the application.
        Around = 0, "around", "a request is held before it goes to the application";
        /// In the application, which is told the ratio with each request. What it does not say it has
        /// paused is held around.
        Inside = 1, "inside", "the application is told the ratio with each request, and pauses while it works; it says for how long, and what it does not pause of a cap is held around";
    }
}

/// Settings that a running gate is to adopt.
#[derive(Clone, Debug, Default)]
pub struct Adoption {
    /// The gate's own, all of them.
    pub params: Params,
    /// The routes whose mode changes.
    pub routes: Vec<(RouteId, RouteMode)>,
    /// The kinds of session whose parameters change; the line stays as it was declared.
    pub kinds: Vec<(KindId, KindParams)>,
}

suimon_model::saved_struct!(Adoption { params, routes, kinds });

impl From<Params> for Adoption {
    fn from(params: Params) -> Self {
        Adoption { params, ..Adoption::default() }
    }
}

/// A request that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The route it is for.
    pub route: RouteId,
    /// The session it belongs to or would begin; `None`: neither, it only passes the route gate.
    pub session: Option<Membership>,
}

/// How a request belongs to a session.
#[derive(Clone, Copy, Debug)]
pub enum Membership {
    /// It would begin a session of this kind. Where it cannot do so soon it draws a place, if the
    /// kind has a line.
    Newcomer(KindId),
    /// The same, and the place it draws is in this lane.
    Drawing {
        /// The kind of session it would begin.
        kind: KindId,
        /// The lane.
        lane: Lane,
    },
    /// It would begin a session of this kind, but gets no position: it is not a page visit.
    WithoutLine(KindId),
    /// It holds a place it drew before.
    Placed {
        /// The kind of session it waits to begin.
        kind: KindId,
        /// The place.
        position: Position,
        /// The session that this place begins, no matter which client presents it and how often.
        session: SessionId,
        /// Whether it may draw another place, if that session is over.
        draws: bool,
    },
    /// It holds such a place and asks only to begin: once its session has begun, it is told so, and
    /// the visitor's next request goes to the application. It draws no other place.
    Entering {
        /// The kind of session it waits to begin.
        kind: KindId,
        /// The place.
        position: Position,
        /// The session that this place begins.
        session: SessionId,
    },
    /// It is of a session that was admitted: by this gate, or by one before a restart. A session
    /// that is not `leased` and unknown to the gate is a newcomer's.
    Member {
        /// The kind the session was admitted as.
        kind: KindId,
        /// The session.
        session: SessionId,
        /// Whether it carries proof of that, our lease; else it only names the session, by the
        /// application's own cookie or by an old lease.
        leased: bool,
        /// Whether this request, once completed, ends the session. One that the application
        /// declines does not.
        ends: bool,
    },
}

/// What the application says of one of its sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionSignal {
    /// It has ended.
    Ends,
    /// Its visitor pays: it goes first in every queue from now on.
    Checkout,
    /// It is worth this many others, 1 to [`SessionSignal::WEIGHT_MAX`]: the next one begins later
    /// by that factor. Only the first such signal counts.
    Weighs(u32),
}

suimon_model::saved_enum!(SessionSignal { 0 = Ends, 1 = Checkout, 2 = Weighs(weight) });

impl SessionSignal {
    /// The most that a session can weigh.
    pub const WEIGHT_MAX: u32 = 100;
}

/// The right to be in the application. Not copyable: it ends once, in `Gate::handle_end`.
#[derive(Debug)]
#[must_use = "a slot leaks unless its token is handed to Gate::handle_end"]
pub struct Permit {
    pub(crate) request: RequestId,
}

impl Permit {
    /// Returns the request that holds the slot.
    pub fn request(&self) -> RequestId {
        self.request
    }
}

/// What should happen.
#[derive(Debug)]
pub enum Output {
    /// Send this request to the application now.
    Start(Start),
    /// Answer this request with a refusal.
    Refuse(Refusal),
    /// Answer this request with its place in line.
    Wait(InLine),
    /// This request, which was suspended, holds its slot again.
    Resumed(RequestId),
    /// Show this decision.
    Decided(Record),
}

/// A request that may go to the application.
#[derive(Debug)]
pub struct Start {
    /// The request.
    pub request: RequestId,
    /// Its slot.
    pub permit: Permit,
    /// The session it belongs to from now on.
    pub session: Option<(KindId, SessionId)>,
    /// Whether the answer should carry a lease.
    pub lease: LeaseDue,
    /// Time it was held in the session's queue and the route's queue together.
    pub waited: Duration,
    /// The part of it before its session began: at the session gate, or while the application was
    /// away.
    pub held: Duration,
    /// The limit of its route at that moment; `None`: there is none.
    pub limit: Option<u32>,
    /// Requests of its route in the application, with this one.
    pub in_flight: usize,
    /// Seconds of pause for each second of work that the application is to take inside it; 0: none.
    pub pause_ratio: f64,
}

/// How a session stands that was admitted and is not known to have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionStatus {
    /// Whether its visitor has come with a lease.
    pub is_leased: bool,
    /// Whether a request of it is at a gate or in the application.
    pub is_busy: bool,
}

/// Whether an answer should carry a lease. The later of two values is the stronger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LeaseDue {
    /// There is no session, it has a lease, or it does not need one.
    No,
    /// The gate may close before long: it should if nothing else identifies the visitor.
    IfUnknown,
    /// It should: there is pressure, or its visitor has waited.
    Yes,
}

/// A request that is not admitted. A decision, not an error.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Refusal {
    /// The request; it is forgotten by the gate from now on.
    pub request: RequestId,
    /// Why.
    pub reason: Reason,
    /// When it is worth coming back; jittered so that not all come back at once.
    pub retry_after: Duration,
    /// The wait predicted had it been held.
    pub predicted_wait: Duration,
    /// How many are waiting to begin a session of the kind.
    pub waiting: usize,
}

/// A request that is answered with the status of its position in line: it is not admitted yet, or
/// polled only for that.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct InLine {
    /// The request; it is forgotten by the gate from now on.
    pub request: RequestId,
    /// The kind of session it waits to begin.
    pub kind: KindId,
    /// Its place; `None` where the line takes no more visitors, or the place it came with is over.
    pub position: Option<Position>,
    /// The session that has begun for it, where it asked only for that.
    pub begun: Option<SessionId>,
    /// How far away its turn is. A called visitor was held for as long as a connection should be,
    /// or there was no room to hold it, and asks again at once.
    pub standing: PositionStatus,
}

/// A request in the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestInfo {
    /// The request.
    pub request: RequestId,
    /// Its route.
    pub route: RouteId,
    /// The kind of the session it waits to begin, if it does.
    pub newcomer: Option<KindId>,
}

/// Everything that can be seen of the gate at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// By [`RouteId`].
    pub routes: Vec<RouteView>,
    /// By [`KindId`].
    pub kinds: Vec<KindView>,
    /// By [`ServiceId`](suimon_model::ServiceId).
    pub services: Vec<ServiceView>,
    /// By [`PoolId`].
    pub pools: Vec<PoolView>,
    /// Requests held waiting, all queues together.
    pub waiting: usize,
    /// Requests in the application, all routes together.
    pub in_flight: usize,
    /// Requests in the application that wait for their clients and hold no slot.
    pub suspended: usize,
    /// Sessions remembered.
    pub sessions: usize,
    /// Of these, those whose visitors carry a lease.
    pub leased_sessions: usize,
    /// The last decisions, oldest first.
    pub records: Vec<Record>,
    /// Decisions since the start, including those no longer kept.
    pub recorded: u64,
    /// The route whose limit is being probed, if any.
    pub probing: Option<RouteId>,
}

/// The workers of one pool at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolView {
    /// How many are ready; `None`: they are not counted.
    pub ready: Option<u32>,
    /// Requests of its routes that are in the application.
    pub in_flight: usize,
}

/// One service at one moment.
#[derive(Clone, Debug, Default)]
pub struct ServiceView {
    /// Its name.
    pub name: String,
    /// What the split goes by.
    pub mode: DegradationMode,
    /// What is wished for it.
    pub wish: ServiceWish,
    /// Its routes.
    pub routes: Vec<RouteId>,
    /// Where its pauses are taken.
    pub pauses: PausePlace,
    /// Seconds that its last requests paused inside for each second of work, as far as the application
    /// is believed; `None`: none was told to.
    pub inside_ratio: Option<f64>,
    /// What is measured of it, and what binds it.
    pub standing: ServiceStanding,
    /// Requests in the application.
    pub in_flight: usize,
    /// Requests waiting at its routes, or held by the declared pause.
    pub waiting: usize,
    /// Seconds of pause that each request gets: the declared one, and what a cap below one comes to.
    pub pause_seconds: f64,
}

/// One route at one moment.
#[derive(Clone, Debug, Default)]
pub struct RouteView {
    /// What the gate does here.
    pub mode: RouteMode,
    /// The pool whose workers take its requests.
    pub pool: PoolId,
    /// The limit now; `None` where none is held.
    pub limit: Option<u32>,
    /// Whether a law has found it: it does not rise any more, and only others are tried beside it.
    pub is_found: bool,
    /// Requests in the application.
    pub in_flight: usize,
    /// Of these, requests whose client has disconnected.
    pub orphaned: usize,
    /// Beside these, requests whose client is waited for in the middle of its body.
    pub suspended: usize,
    /// Requests waiting.
    pub waiting: usize,
    /// Completions per second, over the last seconds.
    pub rate: f64,
    /// Mean time in the application, seconds.
    pub service_seconds: f64,
    /// Outcomes of all requests that arrived here.
    pub counts: Counts,
    /// Of the refused, those that were shown a place in line.
    pub placed: u64,
    /// What the other gateways before the same application have of it, if several share.
    pub elsewhere: Elsewhere,
}

/// Requests of a route at the other gateways before the same application.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Elsewhere {
    /// In the application.
    pub in_flight: u64,
    /// Waiting.
    pub waiting: u64,
    /// Ended since this gateway shares, ...
    pub ended: u64,
    /// ... and of these, those that were answered.
    pub answered: u64,
}

/// What a session gate does with the next newcomer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GateState {
    /// Nobody is ever held back here.
    Off,
    /// Measured and shown; nobody is held back.
    Observe,
    /// The next one begins at once.
    #[default]
    Open,
    /// Newcomers begin one after another, behind those who wait.
    Paced,
    /// The maximum number of sessions is under way.
    Full,
    /// Nobody is admitted: the line stands still, or the gateway is shutting down.
    Shut,
}

impl GateState {
    /// Returns its name, which never changes.
    pub const fn name(self) -> &'static str {
        match self {
            GateState::Off => "off",
            GateState::Observe => "observe",
            GateState::Open => "open",
            GateState::Paced => "paced",
            GateState::Full => "full",
            GateState::Shut => "shut",
        }
    }
}

/// How sessions of a kind ended. What was admitted or reopened is active, or has ended in one of
/// four ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SessionEnds {
    /// The application said so, or a request that ends one was answered.
    pub finished: u64,
    /// No request after a response: how most visits end. A visitor who comes back later is counted
    /// again.
    pub silent: u64,
    /// The client disconnected before an answer came. Closing a page that keeps a request open
    /// looks the same.
    pub abandoned: u64,
    /// No request after an error.
    pub failed: u64,
    /// Not an end: sessions taken to have ended that went on, and those of a gate before a restart.
    pub reopened: u64,
}

/// One kind of session at one moment.
#[derive(Clone, Debug, Default)]
pub struct KindView {
    /// Whether newcomers pass without being held back.
    pub open: bool,
    /// What happens to the next newcomer.
    pub gate_state: GateState,
    /// `flow`, `seed`, `static` or `open`.
    pub law: &'static str,
    /// The maximum number of sessions, where the law goes by their number.
    pub sessions_max: Option<u32>,
    /// Seconds between two session starts; 0 while open.
    pub interval_seconds: f64,
    /// Newcomers waiting to begin.
    pub waiting: usize,
    /// Sessions under way: admitted, not ended, not silent for long.
    pub active: usize,
    /// Sessions admitted that are not known to have ended, the silent ones included.
    pub remembered: usize,
    /// How they ended.
    pub ends: SessionEnds,
    /// Newcomers since the start, whatever their outcome.
    pub newcomers: u64,
    /// Sessions admitted since the start.
    pub admitted: u64,
    /// Sessions per second that the law plans to admit; infinite if it admits everybody, 0 where it
    /// does not know.
    pub rate: f64,
    /// Seconds that a newcomer who is held would wait.
    pub predicted_wait_seconds: f64,
    /// The predicted wait of a newcomer who draws a place now, seconds, at least and at most.
    /// `None`: there is no line, or it is unknown.
    pub newcomer_wait: Option<(f64, f64)>,
    /// Patience in use, seconds, and whether it was declared, learned or assumed.
    pub patience_seconds: f64,
    /// Where the patience comes from.
    pub patience_source: &'static str,
    /// Newcomers refused.
    pub refused: u64,
    /// The line, if the kind has one.
    pub line: Option<suimon_line::View>,
    /// Newcomers who wait at the other gateways and would be let in if more could be served.
    pub newcomers_elsewhere: f64,
}

/// Conservation: `offered = completed + failed + abandoned + refused + waiting + in flight +
/// suspended`, after every event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Requests that came.
    pub offered: u64,
    /// Ended as `Completed`.
    pub completed: u64,
    /// Ended as `Failed`.
    pub failed: u64,
    /// Left while waiting, or ended as `Abandoned`.
    pub abandoned: u64,
    /// Refused, or shown their place in line.
    pub refused: u64,
}

suimon_model::saved_struct!(Counts { offered, completed, failed, abandoned, refused });

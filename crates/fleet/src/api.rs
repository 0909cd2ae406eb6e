//! What goes into the fleet and what comes out of it.

use crate::affinity::AffinityParams;
use std::fmt;
use suimon_model::{Duration, Instant, NodeId, RouteId};

/// The most nodes a fleet may have.
pub const NODES_MAX: usize = 256;

/// The most outputs kept for [`Fleet::poll_output`](crate::Fleet::poll_output); beyond it the
/// oldest change is dropped.
pub const OUTPUTS_MAX: usize = 4 * NODES_MAX;

/// What the fleet is told before it starts.
#[derive(Clone, PartialEq, Debug)]
pub struct Params {
    /// Active checks; `None`: nodes count as up until requests show otherwise.
    pub checks: Option<CheckParams>,
    /// When a node that fails requests is ejected.
    pub ejection: EjectionParams,
    /// How a node is chosen among several.
    pub balance: Balance,
    /// For how long a node that has come, or come back, has less than its share; zero: it has all at once.
    pub slow_start: Duration,
    /// How sessions of the application are kept at their nodes; `None`: they are not.
    pub affinity: Option<AffinityParams>,
    /// The share of requests that may be sent again although a node may have worked on them, 0 to 1.
    pub retry_share: f64,
    /// Seed of the choices and of the checks' jitter.
    pub seed: u64,
}

impl Params {
    /// As many may be sent again as with Finagle and Envoy.
    pub const RETRY_SHARE: f64 = 0.2;
    /// Long enough for a pool of connections and a compiler at run time, and too short to be missed.
    pub const SLOW_START: Duration = Duration::from_secs(10);
}

impl Default for Params {
    fn default() -> Self {
        Params {
            checks: None,
            ejection: EjectionParams::default(),
            balance: Balance::default(),
            slow_start: Params::SLOW_START,
            affinity: None,
            retry_share: Params::RETRY_SHARE,
            seed: 0,
        }
    }
}

suimon_model::choices! {
    /// How a node is chosen among several.
    #[derive(Eq)]
    pub enum Balance {
        /// By what the fleet itself sees.
        Shares = 0, "shares", "the fewest requests in flight for the node's share, which moves until requests take as long on every node";
        /// By what nodes report, for every request.
        Reported = 1, "reported", "the least reported load per processor, corrected by what was sent and answered since the report, for every request";
        /// By what nodes report, for every connection of a client.
        Paper = 2, "paper", "the papers' rule: the shortest reported run queue, chosen once for all requests of a client's connection";
    }
}

/// What a node reports of its load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LoadReport {
    /// What it has to do: tasks, or requests. At least 0.
    pub load: f64,
    /// How much of that it does at once. Above 0.
    pub capacity: f64,
    /// Tasks that run or could at the moment of the report; `None`: it does not say. A report without it
    /// counts only while there is none with it, and never for [`Balance::Paper`].
    pub run_queue: Option<u32>,
    /// Time to the next report. Three times as long it counts.
    pub every: Duration,
}

impl LoadReport {
    /// Returns whether it still counts at this age.
    pub fn is_current(&self, age: Duration) -> bool {
        age <= self.every.saturating_mul(crate::told::PERIODS)
    }
}

/// Active checks of each node.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckParams {
    /// Time from the end of one check to the next, plus or minus a tenth. Above zero.
    pub interval: Duration,
    /// Failed checks in a row after which a node is down; 0 counts as 1.
    pub down_after: u32,
    /// Passed checks in a row after which it is up again; 0 counts as 1.
    pub up_after: u32,
}

/// When a node that fails requests is ejected for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EjectionParams {
    /// Failed requests in a row after which a node is ejected, and the fewest answers in a row that are faults;
    /// 0: never.
    pub after: u32,
    /// How long the first ejection lasts; each further one lasts twice as long.
    pub base: Duration,
    /// The longest ejection.
    pub max: Duration,
}

impl Default for EjectionParams {
    fn default() -> Self {
        EjectionParams { after: 5, base: Duration::from_secs(5), max: Duration::from_secs(60) }
    }
}

/// A node for a request, and why it was picked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pick {
    /// The node. It counts as in flight until it is released.
    pub node: NodeId,
    /// Why this node.
    pub reason: PickReason,
}

/// Why a node was picked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PickReason {
    /// No other node is up.
    OnlyOne,
    /// The one with the fewest requests in flight for its share; a random one of equals.
    LeastInFlight,
    /// Of two random nodes of many, the one with fewer requests in flight for its share.
    PowerOfTwo,
    /// The one with the least reported load; a random one of equals.
    LeastReported,
    /// The one that the earlier requests of the client's connection went to.
    SameConnection,
    /// The one that the session of the application is at.
    SameSession,
    /// It was to be avoided, but no other node is up.
    NoOther,
    /// No node is up, so one of all was picked.
    Panic,
}

impl PickReason {
    /// Returns whether no other node would have done, as long as this one is up.
    pub fn is_bound(self) -> bool {
        matches!(self, PickReason::SameConnection | PickReason::SameSession)
    }

    /// Every reason there is.
    pub const ALL: &[PickReason] = &[
        PickReason::OnlyOne,
        PickReason::LeastInFlight,
        PickReason::PowerOfTwo,
        PickReason::LeastReported,
        PickReason::SameConnection,
        PickReason::SameSession,
        PickReason::NoOther,
        PickReason::Panic,
    ];

    /// Returns the short name used in metrics and JSON; it never changes.
    pub const fn code(self) -> &'static str {
        match self {
            PickReason::OnlyOne => "only_one",
            PickReason::LeastInFlight => "least_in_flight",
            PickReason::PowerOfTwo => "power_of_two",
            PickReason::LeastReported => "least_reported",
            PickReason::SameConnection => "same_connection",
            PickReason::SameSession => "same_session",
            PickReason::NoOther => "no_other",
            PickReason::Panic => "panic",
        }
    }
}

/// What a request asks for, by which it is known how long it may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsksFor {
    /// A route.
    Route(RouteId),
    /// A path that has no route of its own yet: nothing is known of it.
    NewPath,
    /// Something that passes without a slot.
    Ungated,
}

/// What became of a request that a node has served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// Its route: requests are compared with those of the same one.
    pub route: RouteId,
    /// How long the node had it.
    pub took: Duration,
    /// Whether it was answered without a fault of the node.
    pub is_good: bool,
    /// Whether the node was bound to have it, by its session or its connection: its client has chosen.
    pub is_bound: bool,
}

/// What a node can be used for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Status {
    /// It gets requests.
    Up,
    /// Checks failed, or requests reach no node.
    Down,
    /// Requests to it failed, so it gets none for a while.
    Ejected,
    /// It finishes its requests and gets no new ones.
    Draining,
}

impl Status {
    /// Returns the short name used in metrics and JSON; it never changes.
    pub const fn code(self) -> &'static str {
        match self {
            Status::Up => "up",
            Status::Down => "down",
            Status::Ejected => "ejected",
            Status::Draining => "draining",
        }
    }
}

/// Why a node's status is what it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Why {
    /// No state change since the start.
    Initial,
    /// As many checks in a row passed as are required.
    ChecksPassed,
    /// As many checks in a row failed as make a node down.
    ChecksFailed,
    /// As many requests in a row failed as make a node ejected.
    RequestsFailed,
    /// Several answers in a row were faults, to requests that other nodes answered well.
    AnswersFailed,
    /// It answers neither requests nor checks, while other nodes answer.
    Silent,
    /// Several requests and checks in a row did not reach it, and none reach another node.
    Unreached,
    /// It was out of reach and has answered again.
    Reached,
    /// Its ejection is over; one more failure ejects it again.
    EjectionOver,
    /// The operator drains it.
    Drain,
    /// The operator no longer drains it.
    DrainOver,
}

impl Why {
    /// Returns the short name used in metrics and JSON; it never changes.
    pub const fn code(self) -> &'static str {
        match self {
            Why::Initial => "initial",
            Why::ChecksPassed => "checks_passed",
            Why::ChecksFailed => "checks_failed",
            Why::RequestsFailed => "requests_failed",
            Why::AnswersFailed => "answers_failed",
            Why::Silent => "silent",
            Why::Unreached => "unreached",
            Why::Reached => "reached",
            Why::EjectionOver => "ejection_over",
            Why::Drain => "drain",
            Why::DrainOver => "drain_over",
        }
    }

    /// Returns the reason as a sentence for people.
    pub const fn explain(self) -> &'static str {
        match self {
            Why::Initial => "no state change since the start",
            Why::ChecksPassed => "health checks passed",
            Why::ChecksFailed => "health checks failed in a row",
            Why::RequestsFailed => "several requests in a row could not connect or got no response",
            Why::AnswersFailed => {
                "several answers in a row were server errors, while other nodes answered the same routes well"
            }
            Why::Silent => "it takes requests and answers neither these nor checks, while other nodes answer",
            Why::Unreached => "several requests or checks in a row reached neither this node nor any other",
            Why::Reached => "it has answered again",
            Why::EjectionOver => "the ejection is over; one more failure ejects it again",
            Why::Drain => "it finishes its requests and gets no new ones",
            Why::DrainOver => "it was put back into service",
        }
    }
}

/// The result of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checked {
    /// It answered like a node that is up.
    Answered,
    /// It accepted a connection, and the check asked no more.
    Accepted,
    /// It accepted a connection, and did not answer in time. No health path is configured: it is there.
    Mute,
    /// The same, where a health path is configured: it is not well.
    TimedOut,
    /// Its answer does not show that it is up.
    Failed,
    /// It closed the connection without an answer.
    Closed,
    /// The connection to it could not be opened.
    Unreached,
    /// The check could not be made, so there is no result.
    NotMade,
}

impl Checked {
    /// Returns whether the check passed.
    pub const fn passed(self) -> bool {
        matches!(self, Checked::Answered | Checked::Accepted | Checked::Mute)
    }
}

/// What the shell must do, or what has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Check this node and always report the result by
    /// [`Fleet::handle_check`](crate::Fleet::handle_check).
    Check(NodeId),
    /// A node's status changed.
    Changed(Change),
    /// A node that is back has answered, so that it counts again in [`Fleet::up`](crate::Fleet::up).
    Proven(NodeId),
    /// A node was left out because it answers nothing, and has answered nothing for as long as the shortest
    /// ejection since.
    Hangs(NodeId),
    /// Sessions that were at a node go elsewhere: since the last such word, so many.
    Released {
        /// The node.
        node: NodeId,
        /// How many sessions.
        sessions: u32,
    },
}

/// A change of a node's status: a decision, with its reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// When it changed.
    pub at: Instant,
    /// The node.
    pub node: NodeId,
    /// The status before.
    pub from: Status,
    /// The status from now on.
    pub to: Status,
    /// Why it changed.
    pub why: Why,
    /// How long an ejection lasts; zero otherwise.
    pub lasts: Duration,
}

/// The visible state of a node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NodeView {
    /// The node.
    pub node: NodeId,
    /// What it can be used for.
    pub status: Status,
    /// Why it has this status.
    pub why: Why,
    /// Since when.
    pub since: Instant,
    /// When an ejection ends.
    pub until: Option<Instant>,
    /// When it has all of its share, if it is up and one of several; it may have been long ago.
    pub slow_start_until: Option<Instant>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Its share of the requests in flight; the mean of all nodes is 1.
    pub share: f64,
    /// Its last report, and when it came; `None`: there was none.
    pub report: Option<(LoadReport, Instant)>,
    /// Sessions that are known to be there, and those that it has lost since it was added; `None`: they are
    /// not kept at their nodes.
    pub sessions: Option<(u32, u64)>,
    /// How often it was picked since the start.
    pub picked: u64,
    /// Failed requests in a row.
    pub failures_in_a_row: u32,
}

/// The table of nodes is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FleetFull;

impl fmt::Display for FleetFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an upstream may have at most {NODES_MAX} nodes")
    }
}

impl std::error::Error for FleetFull {}

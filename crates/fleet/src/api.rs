//! What goes into the fleet and what comes out of it.

use std::fmt;
use suimon_model::{Duration, Instant, NodeId};

/// The most nodes a fleet may have.
pub const NODES_MAX: usize = 256;

/// The most outputs kept for [`Fleet::poll_output`](crate::Fleet::poll_output); past it the oldest
/// change is dropped.
pub const OUTPUTS_MAX: usize = 4 * NODES_MAX;

/// Everything the fleet is told before it starts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Params {
    /// Active checks; `None`: nodes are well until requests say otherwise.
    pub checks: Option<CheckParams>,
    /// When a node that fails requests is left out.
    pub ejection: EjectionParams,
    /// Seed of the choices and of the jitter.
    pub seed: u64,
}

/// Active checks of each node.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckParams {
    /// Time from the end of one check to the next, give or take a tenth. Above zero.
    pub interval: Duration,
    /// Failed checks in a row after which a node is down; 0 counts as 1.
    pub down_after: u32,
    /// Passed checks in a row after which it is up again; 0 counts as 1.
    pub up_after: u32,
}

/// When a node that fails requests is left out for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EjectionParams {
    /// Failed requests in a row after which a node is ejected; 0: never.
    pub after: u32,
    /// How long the first ejection lasts; each further one lasts twice as long.
    pub base: Duration,
    /// The longest an ejection lasts.
    pub max: Duration,
}

impl Default for EjectionParams {
    fn default() -> Self {
        EjectionParams { after: 5, base: Duration::from_secs(5), max: Duration::from_secs(60) }
    }
}

/// A node for a request, and why that one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pick {
    /// The node. It counts as in flight until it is released.
    pub node: NodeId,
    /// Why this one.
    pub reason: PickReason,
}

/// Why a node was picked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PickReason {
    /// No other node is well.
    OnlyOne,
    /// Fewest requests in flight of two; chance decides between equals.
    LeastInFlight,
    /// Fewest requests in flight of two drawn by chance.
    PowerOfTwo,
    /// It was to be avoided, but no other node is well.
    NoOther,
    /// No node is well, so one of all was taken.
    Panic,
}

impl PickReason {
    /// Every reason there is.
    pub const ALL: &[PickReason] = &[
        PickReason::OnlyOne,
        PickReason::LeastInFlight,
        PickReason::PowerOfTwo,
        PickReason::NoOther,
        PickReason::Panic,
    ];

    /// Returns the short name used in metrics and JSON; it never changes.
    pub const fn code(self) -> &'static str {
        match self {
            PickReason::OnlyOne => "only_one",
            PickReason::LeastInFlight => "least_in_flight",
            PickReason::PowerOfTwo => "power_of_two",
            PickReason::NoOther => "no_other",
            PickReason::Panic => "panic",
        }
    }
}

/// What a node is good for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Status {
    /// It gets requests.
    Up,
    /// Checks say it is down, or requests reach no node.
    Down,
    /// Requests failed on it, so it is left out for a while.
    Ejected,
    /// It finishes what it has and gets nothing new.
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
    /// Nothing was found out yet.
    Initial,
    /// As many checks passed in a row as are asked for.
    ChecksPassed,
    /// As many checks failed in a row as are allowed.
    ChecksFailed,
    /// As many requests failed in a row as are allowed.
    RequestsFailed,
    /// Some requests and checks in a row did not reach it, nor any other node.
    Unreached,
    /// It was not reached, and has answered again.
    Reached,
    /// Its time out is over; one more failure, and it is out again.
    EjectionOver,
    /// It was told to drain.
    Drain,
    /// It was told to take requests again.
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
            Why::Unreached => "several requests or checks in a row reached neither this node nor any other",
            Why::Reached => "it has answered again",
            Why::EjectionOver => "the ejection is over; one more failure ejects it again",
            Why::Drain => "it finishes its requests and gets no new ones",
            Why::DrainOver => "it was put back into service",
        }
    }
}

/// What came of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checked {
    /// It answered as a node that is well does.
    Answered,
    /// It accepted a connection; nothing more was asked of it, or no answer came in time where none
    /// tells how it is.
    Accepted,
    /// Its answer does not tell that it is well, or did not come in time.
    Failed,
    /// It closed the connection instead of an answer.
    Closed,
    /// It could not be connected to.
    Unreached,
    /// The check could not be made: nothing was found out.
    NotMade,
}

impl Checked {
    /// Returns whether it speaks for the node.
    pub const fn passed(self) -> bool {
        matches!(self, Checked::Answered | Checked::Accepted)
    }
}

/// What should happen, or has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Check this node and tell what came of it by
    /// [`Fleet::handle_check`](crate::Fleet::handle_check), always.
    Check(NodeId),
    /// A node's status changed.
    Changed(Change),
}

/// A change of a node's status: a decision, with its reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// When.
    pub at: Instant,
    /// Whose.
    pub node: NodeId,
    /// The status before.
    pub from: Status,
    /// The status from now on.
    pub to: Status,
    /// Why.
    pub why: Why,
    /// How long an ejection lasts; zero otherwise.
    pub lasts: Duration,
}

/// What can be seen of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeView {
    /// Which one.
    pub node: NodeId,
    /// What it is good for.
    pub status: Status,
    /// Why.
    pub why: Why,
    /// Since when.
    pub since: Instant,
    /// When an ejection ends.
    pub until: Option<Instant>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests it was picked for since the start.
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

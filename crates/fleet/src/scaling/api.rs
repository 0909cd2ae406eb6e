//! What a law of the number of nodes is told, and what it says.

use suimon_model::Duration;

/// How the number of nodes is found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ScalingLaw {
    /// By the work that comes and that waits.
    Demand {
        /// What counts more, from 0 (few nodes) to 1 (short waits).
        eagerness: f64,
    },
    /// The papers' rule.
    Seed {
        /// Time from one decision to the next.
        interval: Duration,
        /// The mean length of the run queues above which a node is added; above 1.
        load_max: f64,
    },
    /// A number that never changes.
    Fixed(u32),
}

/// The eagerness, where nobody says it.
pub const EAGERNESS: f64 = 0.5;

impl Default for ScalingLaw {
    fn default() -> Self {
        ScalingLaw::Demand { eagerness: EAGERNESS }
    }
}

/// What a law is told before it starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScalingParams {
    /// Nodes that are there.
    pub present: u32,
    /// The fewest nodes.
    pub least: u32,
    /// The most nodes; at least `least`.
    pub most: u32,
}

/// What happened since the tick before.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ScalingSample {
    /// Nodes that take new requests.
    pub serving: u32,
    /// Nodes that were ordered and do not serve yet.
    pub starting: u32,
    /// The mean over all serving nodes of the mean length of their run queues over the last 100 ms.
    /// `None`: a node has not said it.
    pub load: Option<f64>,
    /// Requests in the nodes, those that wait for a process among them.
    pub requests: u32,
    /// Visits that began: sessions, or requests where there are none.
    pub begun: u64,
    /// Visits that ended.
    pub ended: u64,
    /// Of these, those that were answered: whoever leaves a queue was served by no node.
    pub answered: u64,
    /// Work that nodes have done, node-seconds.
    pub work_s: f64,
    /// Whether that was measured by how full the nodes were: what fills them may be something that all share.
    pub by_fullness: bool,
    /// Work that the visits that are there will still ask for, node-seconds, as far as can be told.
    pub to_come_s: f64,
    /// Whether somebody waits to be let in: then what the nodes do is not what is asked for.
    pub is_held: bool,
    /// Seconds from an order until the node serves, if any was seen.
    pub start_s: Option<f64>,
}

/// Why the number of nodes changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScalingReason {
    /// More visits begin than the nodes can serve.
    Arrivals,
    /// Work waits that the nodes do not work off in time.
    Backlog,
    /// The run queues are long.
    Load,
    /// Fewer are enough.
    Enough,
    /// More have not served more.
    NoGain,
}

impl ScalingReason {
    /// Returns the short name used in metrics and JSON; it never changes.
    pub const fn code(self) -> &'static str {
        match self {
            ScalingReason::Arrivals => "arrivals",
            ScalingReason::Backlog => "backlog",
            ScalingReason::Load => "load",
            ScalingReason::Enough => "enough",
            ScalingReason::NoGain => "no_gain",
        }
    }

    /// Returns the reason as a sentence for people.
    pub const fn explain(self) -> &'static str {
        match self {
            ScalingReason::Arrivals => "more visits begin than these nodes can serve",
            ScalingReason::Backlog => "work waits that these nodes would not work off in time",
            ScalingReason::Load => "the run queues of the nodes are long",
            ScalingReason::Enough => "fewer nodes are enough",
            ScalingReason::NoGain => "more nodes have not served more",
        }
    }
}

/// A new number of nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScalingMove {
    /// How many there should be, starting ones among them.
    pub wanted: u32,
    /// Why.
    pub why: ScalingReason,
    /// What it rests on: the nodes that are needed, or the mean length of the run queues.
    pub signal: f64,
}

//! How the nodes stand that come and go.

use std::time::Duration;
use suimon_cluster::ProviderView;
use suimon_fleet::scaling::ScalingMove;

/// The number of nodes, as an operator sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct NodesReport {
    /// Who starts and ends them: a word of `nodes.provider`.
    pub provider: &'static str,
    /// How their number is found: a word of `nodes.law`.
    pub law: &'static str,
    /// How many there should be.
    pub wanted: u32,
    /// The fewest and the most that there may be.
    pub range: (u32, u32),
    /// Nodes that take new requests.
    pub serving: u32,
    /// Nodes that take no new requests and end once they have none.
    pub draining: u32,
    /// What the provider shows.
    pub view: ProviderView,
    /// Work that is done, node-seconds per second; `None`: unknown, so that the number is held.
    pub busy: Option<f64>,
    /// Work that is there or waits to be let in, node-seconds, as far as can be told.
    pub to_come_s: f64,
    /// The last change, with how long ago that was.
    pub last: Option<(ScalingMove, Duration)>,
}

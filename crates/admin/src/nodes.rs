//! The application's nodes, as the state shows them.

use crate::load_reports::NodeReportState;
use serde::{Deserialize, Serialize};
use suimon_proxy::{THIS_PROCESS, UpstreamNodeView};

/// One node of the application.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeState {
    /// `http://host:port`.
    pub address: String,
    /// Whether the gateway is inside the application, whose requests in flight are those of `totals` then;
    /// absent: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_process: bool,
    /// `up`, `down`, `ejected` or `draining`.
    pub status: String,
    /// Short name of the reason.
    pub reason: String,
    /// The reason in words.
    pub explanation: String,
    /// How long it has been so, seconds.
    pub for_seconds: f64,
    /// How long an ejection still lasts, seconds.
    pub ejected_for_seconds: Option<f64>,
    /// How long it still has less than its share, as it has just come or come back, seconds; absent: it has all
    /// of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_start_for_seconds: Option<f64>,
    /// Requests at the node.
    pub in_flight: u32,
    /// Its share of the requests in flight, which moves until requests take as long on all nodes; their
    /// mean is 1.
    #[serde(default)]
    pub share: f64,
    /// Sessions of the application that are known to be there; absent: they do not stay at their nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u32>,
    /// Sessions that were there and went elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_sessions: Option<u64>,
    /// Requests it was picked for.
    pub picked: u64,
    /// Failed requests in a row.
    pub failures_in_a_row: u32,
    /// Connections kept open.
    pub connections: usize,
    /// What it last reported of its load; absent: it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<NodeReportState>,
    /// What php-fpm says of its children there (`upstream.fastcgi.status`); absent: it is not asked, or
    /// does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub php: Option<PhpState>,
}

/// The children of php-fpm at a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhpState {
    /// How many work on a request.
    pub active: u64,
    /// How many wait for one.
    pub idle: u64,
    /// How many there are.
    pub total: u64,
    /// Connections that no child has taken yet.
    pub listen_queue: u64,
    /// How often there were as many as there may be, since php-fpm began.
    pub max_children_reached: u64,
}

impl NodeState {
    /// Returns the state of a node.
    pub(crate) fn of(node: &UpstreamNodeView) -> NodeState {
        NodeState {
            address: node.address.clone(),
            in_process: node.address == THIS_PROCESS,
            status: node.status.to_string(),
            reason: node.reason.to_string(),
            explanation: node.explanation.to_string(),
            for_seconds: node.for_the_last.as_secs_f64(),
            ejected_for_seconds: node.ejected_for.map(|left| left.as_secs_f64()),
            slow_start_for_seconds: node.slow_start_for.map(|left| left.as_secs_f64()),
            in_flight: node.in_flight,
            share: node.share,
            sessions: node.sessions.map(|(there, _)| there),
            released_sessions: node.sessions.map(|(_, released)| released),
            picked: node.picked,
            failures_in_a_row: node.failures_in_a_row,
            connections: node.connections,
            report: node.report.as_ref().map(NodeReportState::of),
            php: node.php.map(|php| PhpState {
                active: php.active,
                idle: php.idle,
                total: php.total,
                listen_queue: php.listen_queue,
                max_children_reached: php.max_children_reached,
            }),
        }
    }
}

//! The present state of the upstream side, for people and metrics.

use super::Upstream;
use std::time::Duration;
use suimon_agent::datagram::Load;
use suimon_fastcgi::php_status::PhpStatus;
use suimon_fleet::RetryCounts;
use suimon_model::{NodeId, PoolId};

/// The visible state of a node.
#[derive(Clone, PartialEq, Debug)]
pub struct UpstreamNodeView {
    /// The node.
    pub node: NodeId,
    /// The pool whose requests it takes; of nodes, the first.
    pub pool: PoolId,
    /// `http://host:port`.
    pub address: String,
    /// `up`, `down`, `ejected` or `draining`.
    pub status: &'static str,
    /// Short name of the reason, such as `checks_failed`.
    pub reason: &'static str,
    /// The reason as a sentence for people.
    pub explanation: &'static str,
    /// How long it has had this status.
    pub for_the_last: Duration,
    /// How long an ejection still lasts.
    pub ejected_for: Option<Duration>,
    /// How long it still has less than its share, as it has just come or come back.
    pub slow_start_for: Option<Duration>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Its share of the requests in flight; the mean of all nodes is 1.
    pub share: f64,
    /// Sessions of the application that are known to be there, and those that went elsewhere since it was
    /// added; `None`: they do not stay at their nodes.
    pub sessions: Option<(u32, u64)>,
    /// How often it was picked since the start.
    pub picked: u64,
    /// Failed requests in a row.
    pub failures_in_a_row: u32,
    /// Connections kept open: idle ones (HTTP/1.1), all (HTTP/2).
    pub connections: usize,
    /// What it last reported of its load; `None`: it never did.
    pub report: Option<NodeReportView>,
    /// What php-fpm says of its children there; `None`: it is not asked, or does not answer.
    pub php: Option<PhpStatus>,
}

/// What a node last reported of its load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NodeReportView {
    /// `agent`; `agent_check`: it was asked; or `response`: the headers of ORCA.
    pub source: &'static str,
    /// Its load: tasks that run or could for each processor, or the share of the application that is in
    /// use: from 1 on requests wait there. Where it was asked: its requests divided by its weight.
    pub load: f64,
    /// How long ago it came.
    pub age: Duration,
    /// Whether it still counts: it is at most three periods old.
    pub is_current: bool,
    /// What an agent says beside.
    pub agent: Option<Load>,
}

impl Upstream {
    /// Returns where a node is, such as `http://host:port`; `None`: it has gone.
    pub fn address_of(&self, node: NodeId) -> Option<String> {
        Some(self.shared.nodes.get(node)?.params.to_string())
    }

    /// Returns how many requests were tried again, and how many were not as there were too many.
    pub fn retry_counts(&self) -> RetryCounts {
        self.shared.fleet().retry_counts()
    }

    /// Returns the state of every node, by id.
    pub fn view(&self) -> Vec<UpstreamNodeView> {
        let now = self.shared.now();
        let nodes = self.shared.fleet().view();
        let there = nodes.into_iter().filter_map(|seen| Some((seen, self.shared.nodes.get(seen.node)?)));
        let seen = there.map(|(seen, node)| UpstreamNodeView {
            node: seen.node,
            pool: PoolId(0),
            address: node.params.to_string(),
            status: seen.status.code(),
            reason: seen.why.code(),
            explanation: seen.why.explain(),
            for_the_last: now.since(seen.since),
            ejected_for: seen.until.map(|until| until.since(now)),
            slow_start_for: seen
                .slow_start_until
                .map(|until| until.since(now))
                .filter(|left| !left.is_zero()),
            in_flight: seen.in_flight,
            share: seen.share,
            sessions: seen.sessions,
            picked: seen.picked,
            failures_in_a_row: seen.failures_in_a_row,
            connections: node.pooled(),
            report: seen.report.map(|report| self.shared.report_view(now, seen.node, report)),
            php: node.php.status(),
        });
        seen.collect()
    }
}

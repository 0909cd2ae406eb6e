//! What nodes report of their load, and what it says of the next request.
//!
//! *Law*. Where nodes are picked by it ([`Balance::Reported`](crate::Balance)), with p the part that a node
//! which has just come back has of its share (see the shares), and g how seldom it fails:
//!
//! ```text
//! node = argmin ((load + sent since) / p + 1) / (capacity · g)                               (1)
//! g ← g (1 − 0.3 w) for each failure; back to 1 within some ten seconds                       (2)
//! ```
//!
//! w is the part of the route's requests that does not fail on all nodes: a node that fails at once has
//! nothing to do, and would attract everybody. The papers' rule ([`Balance::Paper`](crate::Balance)) is the
//! least run queue, and nothing else.
//!
//! *Limits*: g is at least 1/20. A report that is older than three periods says nothing. *Units*: tasks or
//! requests; capacity in the same. *Source*: P4 §3.1; that what was sent since must count, Mitzenmacher 2000;
//! failures as in the shares.

use crate::api::LoadReport;
use crate::told::ToldLoad;
use suimon_model::real::exp;
use suimon_model::{Duration, Instant};

/// What a failure takes of g, and its least value.
const FAILED: f64 = 0.3;
const GOOD_LEAST: f64 = 0.05;
/// Time constant with which g goes back to 1.
const FORGETS_S: f64 = 5.0;
/// The least capacity, so that nothing is divided by 0.
const CAPACITY_LEAST: f64 = 1e-3;

/// The last report of every node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    /// By node; shorter than their list while nobody reports.
    nodes: Vec<NodeReports>,
}

#[derive(Clone, Copy, Debug)]
struct NodeReports {
    last: Option<(LoadReport, Instant)>,
    told: ToldLoad,
    /// g, and when it was that.
    good: f64,
    good_at: Instant,
}

impl Default for NodeReports {
    fn default() -> Self {
        NodeReports {
            last: None,
            told: ToldLoad::new(Instant::ORIGIN, 0, 0.0, Duration::ZERO),
            good: 1.0,
            good_at: Instant::ORIGIN,
        }
    }
}

impl Reports {
    /// Folds in a report. One without a run queue does not replace one with it that is young enough.
    pub(crate) fn handle_report(&mut self, now: Instant, node: usize, report: &LoadReport) {
        if self.nodes.len() <= node {
            self.nodes.resize(node + 1, NodeReports::default());
        }
        let better = self.run_queue(now, node).is_some();
        if report.run_queue.is_none() && better {
            return;
        }
        let load = if report.load.is_finite() { report.load.max(0.0) } else { f64::MAX };
        let node = &mut self.nodes[node];
        (node.last, node.told) = (Some((*report, now)), ToldLoad::new(now, 0, load, report.every));
    }

    /// Forgets a node that is gone for good: its place may be another's.
    pub(crate) fn remove_node(&mut self, node: usize) {
        if let Some(node) = self.nodes.get_mut(node) {
            *node = NodeReports::default();
        }
    }

    /// Notes that a node was sent a request.
    pub(crate) fn handle_sent(&mut self, node: usize) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.told.handle_sent();
        }
    }

    /// Notes what became of a request. `weight`: how much a failure says of this node, 0 to 1.
    pub(crate) fn handle_served(&mut self, now: Instant, node: usize, is_good: bool, weight: f64) {
        if let Some(node) = self.nodes.get_mut(node).filter(|_| !is_good) {
            node.good = (node.good(now) * (1.0 - FAILED * weight)).max(GOOD_LEAST);
            node.good_at = now;
        }
    }

    /// (1), without the least. `None`: no report is young enough. `part`: what the node has of its share
    /// already, above 0.
    pub(crate) fn load(&self, now: Instant, node: usize, part: f64) -> Option<f64> {
        let node = self.nodes.get(node)?;
        let (report, _) = node.last?;
        let capacity = report.capacity.max(CAPACITY_LEAST);
        Some((node.told.load(now)? / part + 1.0) / (capacity * node.good(now)))
    }

    /// Returns the last reported run queue. `None`: no report that has one is young enough.
    pub(crate) fn run_queue(&self, now: Instant, node: usize) -> Option<f64> {
        let node = self.nodes.get(node)?;
        let (report, _) = node.last?;
        node.told.told(now)?;
        report.run_queue.map(f64::from)
    }

    /// Returns the last report of a node, and when it came.
    pub(crate) fn last(&self, node: usize) -> Option<(LoadReport, Instant)> {
        self.nodes.get(node)?.last
    }
}

impl NodeReports {
    /// (2)
    fn good(&self, now: Instant) -> f64 {
        1.0 - (1.0 - self.good) * exp(-now.secs_since(self.good_at) / FORGETS_S)
    }
}

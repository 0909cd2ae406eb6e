//! What nodes report of their load, and what it says of the next request.
//!
//! *Law*. Where nodes are picked by it ([`Balance::Reported`](crate::Balance)), with p the part that a node
//! which has just come back has of its share (see the shares), and g how seldom it fails:
//!
//! ```text
//! node = argmin (load / p + 1) / (capacity · g); of equals by the shares                      (1)
//! g ← g (1 − 0.3 w) for each failure; back to 1 within some ten seconds                       (2)
//!        told − own + n                                            where told ≥ own
//! load =                                                                                      (3)
//!        told · min(n / own, 1) + max(n − own, 0)                  where told < own
//! ```
//!
//! n are the gateway's own requests at the node now, and own is what it had there when the load was told: their
//! mean over as long a past as the load is a mean of. So a report is corrected for its age by what was sent since
//! and by what was answered since. What it tells besides is the load of others, until the next report. Where less
//! is told than the gateway has there, as most of its requests wait for a database, one that was answered takes
//! its part of the load with it, and one that was sent counts in full: nobody is buried between two reports.
//!
//! w is the part of the route's requests that does not fail on all nodes: a node that fails at once has
//! nothing to do, and would attract everybody. The papers' rule ([`Balance::Paper`](crate::Balance)) is the
//! least run queue, and nothing else.
//!
//! Counting only what was sent since, and not what was answered, sends as many to each node for its capacity in
//! the second after a report, whatever the node still has to do.
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
/// Time constant of the mean of the gateway's own requests: as old as the mean of 100 ms that agents tell.
const OWN_S: f64 = 0.05;
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
    own: OwnRequests,
    /// The gateway's own requests when the load was told.
    own_told: f64,
    /// g, and when it was that.
    good: f64,
    good_at: Instant,
}

impl Default for NodeReports {
    fn default() -> Self {
        NodeReports {
            last: None,
            told: ToldLoad::new(Instant::ORIGIN, 0, 0.0, Duration::ZERO),
            own: OwnRequests::default(),
            own_told: 0.0,
            good: 1.0,
            good_at: Instant::ORIGIN,
        }
    }
}

impl Reports {
    /// Folds in a report. One without a run queue does not replace one with it that is young enough.
    /// `in_flight`: the gateway's own requests at the node.
    pub(crate) fn handle_report(&mut self, now: Instant, node: usize, report: &LoadReport, in_flight: u32) {
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
        let mean = node.own.mean(now, in_flight);
        // A response tells of the moment.
        node.own_told = if report.run_queue.is_some() { mean } else { f64::from(in_flight) };
    }

    /// Forgets a node that is gone for good: its place may be another's.
    pub(crate) fn remove_node(&mut self, node: usize) {
        if let Some(node) = self.nodes.get_mut(node) {
            *node = NodeReports::default();
        }
    }

    /// Notes that the gateway's own requests at a node, so many until now, become one more or one fewer.
    pub(crate) fn handle_in_flight(&mut self, now: Instant, node: usize, in_flight: u32) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.own.pass(now, in_flight);
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
    /// already, above 0; `in_flight`: the gateway's own requests there.
    pub(crate) fn load(&self, now: Instant, node: usize, part: f64, in_flight: u32) -> Option<f64> {
        let node = self.nodes.get(node)?;
        let (report, _) = node.last?;
        let capacity = report.capacity.max(CAPACITY_LEAST);
        let load = corrected(node.told.told(now)?, node.own_told, f64::from(in_flight));
        Some((load / part + 1.0) / (capacity * node.good(now)))
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

/// (3)
fn corrected(told: f64, own_told: f64, own_now: f64) -> f64 {
    if told >= own_told {
        return told - own_told + own_now;
    }
    told * (own_now / own_told).min(1.0) + (own_now - own_told).max(0.0)
}

/// The mean of the gateway's own requests at a node over the last moments.
#[derive(Clone, Copy, Debug, Default)]
struct OwnRequests {
    mean: f64,
    at: Option<Instant>,
}

impl OwnRequests {
    /// Folds in that there were so many until now.
    fn pass(&mut self, now: Instant, in_flight: u32) {
        self.mean = self.mean(now, in_flight);
        self.at = self.at.max(Some(now));
    }

    fn mean(&self, now: Instant, in_flight: u32) -> f64 {
        let in_flight = f64::from(in_flight);
        match self.at {
            Some(at) => in_flight + (self.mean - in_flight) * exp(-now.secs_since(at) / OWN_S),
            None => in_flight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use suimon_model::seconds;

    #[test]
    fn what_was_sent_and_what_was_answered_since_counts() {
        // Told 8, of which 6 were ours.
        for (own_now, load) in [(6.0, 8.0), (9.0, 11.0), (1.0, 3.0), (0.0, 2.0)] {
            assert!((corrected(8.0, 6.0, own_now) - load).abs() < 1e-9, "{own_now}");
        }
        // Of ours most wait for a database.
        for (own_now, load) in [(10.0, 2.0), (12.0, 4.0), (5.0, 1.0), (0.0, 0.0)] {
            assert!((corrected(2.0, 10.0, own_now) - load).abs() < 1e-9, "{own_now}");
        }
    }

    #[test]
    fn the_mean_of_our_own_requests_is_of_the_last_moments() {
        let at = |second: f64| Instant::ORIGIN + seconds(second);
        let mut own = OwnRequests::default();
        assert!((own.mean(at(5.0), 7) - 7.0).abs() < 1e-9, "what it has is all that is known");
        own.pass(at(5.0), 0);
        own.pass(at(6.0), 10);
        assert!((own.mean(at(6.0), 4) - 10.0).abs() < 1e-6);
        let mean = own.mean(at(6.05), 4);
        assert!((mean - (4.0 + 6.0 * exp(-1.0))).abs() < 1e-6, "{mean}");
    }

    proptest! {
        #[test]
        fn a_corrected_load_grows_with_what_is_sent_and_is_never_below_nothing(
            told in 0.0f64..200.0, own_told in 0.0f64..200.0, own_now in 0.0f64..200.0, more in 0.0f64..50.0,
        ) {
            let load = corrected(told, own_told, own_now);
            prop_assert!(load.is_finite() && load >= -1e-9);
            prop_assert!(corrected(told, own_told, own_now + more) >= load - 1e-9);
            // As it was told, where nothing has changed.
            prop_assert!((corrected(told, own_told, own_told) - told).abs() < 1e-9);
            // What was sent beyond what there was counts in full.
            let beyond = corrected(told, own_told, own_told + more);
            prop_assert!((beyond - told - more).abs() < 1e-6);
        }
    }
}

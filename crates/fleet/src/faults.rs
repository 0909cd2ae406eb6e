//! Nodes that answer with faults what others answer well.
//!
//! One that fails at once has the fewest requests in flight, so that a choice by their number sends it all
//! there are. Its share keeps it from that while others have few; here it is left out, as soon as it cannot
//! be by chance.
//!
//! *Law*. With f, which part of their answers are faults at the other nodes:
//!
//! ```text
//! row ← row + min(−ln f, ln 100)     for a fault that counts                                     (1)
//! row ← 0                            for a good answer                                           (2)
//! leave out if row ≥ after · ln 100                                                              (3)
//! ```
//!
//! A fault counts if another node has answered the same route well within ten seconds before, and of the nodes
//! that have answered anything in that time more did so well than not. So a page that is broken, and an
//! application that is, leave no node out. One that comes back is left out again by its first fault that counts.
//! And the node must have been chosen freely: else a client whose session is bound to it could have it left out,
//! with all sessions there, by what it asks for, or because its own session is broken.
//!
//! *Signals*: outcomes of requests, by node and route. *Units*: natural logarithms of probabilities. *Limits*:
//! f is 1/100 at least, so that `after` faults in a row are the fewest. *Source*: the sequential test of
//! Wald (1945), one-sided.

use crate::Served;
use suimon_model::real::ln;
use suimon_model::{Duration, Instant, RouteId};

/// Requests over which it is known which part of a node's answers are faults.
const NODE_REQUESTS: f64 = 100.0;
/// The least part of answers that are taken to be faults by chance.
const CHANCE_MIN: f64 = 0.01;
/// How long an answer tells what a node does.
const TELLS_FOR: Duration = Duration::from_secs(10);
/// The most routes that are told apart; faults of those beyond do not count.
const ROUTES_MAX: usize = 1024;

/// What nodes have answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    nodes: Vec<NodeFaults>,
    /// By route: the two nodes that answered it well last, and when.
    routes: Vec<[Option<(usize, Instant)>; 2]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct NodeFaults {
    /// Which part of its answers are faults.
    part: f64,
    /// Its last answer, and whether that was good.
    last: Option<(Instant, bool)>,
    row: f64,
}

impl Faults {
    /// Takes a node in, at the place of one that is gone or at the end.
    pub(crate) fn add_node(&mut self, node: usize) {
        if self.nodes.len() <= node {
            self.nodes.resize(node + 1, NodeFaults::default());
        }
        self.nodes[node] = NodeFaults::default();
        for good in self.routes.iter_mut().flatten() {
            good.take_if(|(by, _)| *by == node);
        }
    }

    /// Folds in an answer, and returns whether it was a fault that counts.
    pub(crate) fn handle_served(&mut self, now: Instant, node: usize, served: &Served) -> bool {
        if node >= self.nodes.len() {
            return false;
        }
        let Served { route, is_good, is_bound, .. } = *served;
        let counts = !is_good && !is_bound && self.counts(now, node, route);
        let weight = if counts { -ln(self.chance(node)) } else { 0.0 };
        let state = &mut self.nodes[node];
        state.part += (f64::from(u8::from(!is_good)) - state.part) / NODE_REQUESTS;
        state.last = Some((now, is_good));
        state.row += weight;
        if is_good {
            state.row = 0.0;
            self.note_good(now, node, route);
        }
        counts
    }

    /// Returns whether a node has had as many faults in a row as `after` that nobody else has.
    pub(crate) fn has_failed(&self, node: usize, after: u32) -> bool {
        // What is added up may miss it by its last digits.
        let enough = f64::from(after) * -ln(CHANCE_MIN) - 1e-6;
        after > 0 && self.nodes.get(node).is_some_and(|node| node.row >= enough)
    }

    fn note_good(&mut self, now: Instant, node: usize, route: RouteId) {
        let index = route.index();
        if index >= ROUTES_MAX {
            return;
        }
        if self.routes.len() <= index {
            self.routes.resize(index + 1, [None, None]);
        }
        let good = &mut self.routes[index];
        if good[0].is_some_and(|(by, _)| by != node) {
            good[1] = good[0];
        }
        good[0] = Some((node, now));
    }

    fn counts(&self, now: Instant, node: usize, route: RouteId) -> bool {
        let tells = |at: Instant| now.since(at) <= TELLS_FOR;
        let good = self.routes.get(route.index()).into_iter().flatten().flatten();
        let is_answered = good.into_iter().any(|(by, at)| *by != node && tells(*at));
        let others = self.nodes.iter().enumerate().filter(|(index, _)| *index != node);
        let said = others.filter_map(|(_, other)| other.last).filter(|(at, _)| tells(*at));
        let (well, not) = said.fold(
            (0, 0),
            |(well, not), (_, is_good)| {
                if is_good { (well + 1, not) } else { (well, not + 1) }
            },
        );
        is_answered && well > not
    }

    /// Returns the probability that an answer of another node is a fault, as far as it counts.
    fn chance(&self, node: usize) -> f64 {
        let others = || {
            let others = self.nodes.iter().enumerate();
            others.filter(|(index, other)| *index != node && other.last.is_some())
        };
        let parts: f64 = others().map(|(_, other)| other.part).sum();
        (parts / others().count().max(1) as f64).max(CHANCE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::Rng;

    const AFTER: u32 = 5;

    fn served(route: u32, is_good: bool) -> Served {
        Served { route: RouteId(route), took: Duration::from_millis(1), is_good, is_bound: false }
    }

    fn at(millis: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(millis)
    }

    fn faults(nodes: usize) -> Faults {
        let mut faults = Faults::default();
        (0..nodes).for_each(|node| faults.add_node(node));
        faults
    }

    #[test]
    fn faults_that_nobody_else_has_are_enough_at_once() {
        let mut faults = faults(2);
        faults.handle_served(at(0), 1, &served(0, true));
        for number in 1..=AFTER {
            assert!(!faults.has_failed(0, AFTER), "{number}");
            assert!(faults.handle_served(at(number.into()), 0, &served(0, false)));
        }
        assert!(faults.has_failed(0, AFTER) && !faults.has_failed(0, 0) && !faults.has_failed(1, AFTER));
        faults.handle_served(at(9), 0, &served(0, true));
        assert!(!faults.has_failed(0, AFTER), "a good answer forgives them");
    }

    #[test]
    fn faults_of_a_page_that_nobody_answers_well_do_not_count() {
        let mut faults = faults(3);
        for number in 0..200 {
            faults.handle_served(at(number), 1, &served(0, true));
            assert!(!faults.handle_served(at(number), 0, &served(1, false)));
        }
    }

    #[test]
    fn faults_that_a_client_brings_to_the_node_of_its_session_do_not_count() {
        let mut faults = faults(2);
        faults.handle_served(at(0), 1, &served(0, true));
        for number in 1..50 {
            let bound = Served { is_bound: true, ..served(0, false) };
            assert!(!faults.handle_served(at(number), 0, &bound) && !faults.has_failed(0, AFTER));
        }
    }

    #[test]
    fn what_was_answered_long_ago_tells_nothing() {
        let mut faults = faults(2);
        faults.handle_served(at(0), 1, &served(0, true));
        assert!(!faults.handle_served(at(10_001), 0, &served(0, false)));
    }

    #[test]
    fn a_site_on_which_a_third_of_all_fails_leaves_no_node_out() {
        let mut faults = faults(4);
        let mut rng = Rng::new(3);
        for number in 0..400_000 {
            let (node, is_good) = (rng.below(4), !rng.chance(0.33));
            faults.handle_served(at(number), node, &served(0, is_good));
            // What is known of the first hundred answers is little.
            assert!(number < 400 || !faults.has_failed(node, AFTER), "after {number}");
        }
    }

    #[test]
    fn a_place_that_is_taken_again_knows_nothing_of_the_one_before() {
        let mut faults = faults(2);
        faults.handle_served(at(0), 1, &served(0, true));
        (1..9).for_each(|number| _ = faults.handle_served(at(number), 0, &served(0, false)));
        faults.add_node(0);
        assert!(!faults.has_failed(0, AFTER));
        faults.handle_served(at(9), 0, &served(0, true));
        faults.add_node(1);
        assert!(faults.handle_served(at(10), 1, &served(0, false)), "only what others answer counts");
    }
}

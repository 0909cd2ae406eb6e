//! Nodes that are found: which of those that serve are still named, and what becomes of the others.
//!
//! Told what a list names, it says which nodes serve from now on and which drain, and of those that
//! drain when their time is over. That a list cannot be read is no news of nodes, and not told here.

use suimon_model::{Duration, Instant};

/// Nodes that were found, by their addresses.
#[derive(Clone, Debug)]
pub struct Discovery<A> {
    drain_within: Duration,
    nodes: Vec<Found<A>>,
}

#[derive(Clone, Debug)]
struct Found<A> {
    address: A,
    state: FoundState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FoundState {
    Serves,
    /// It is named no longer: it has until then.
    Drains(Instant),
}

/// What becomes of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiscoveryStep<A> {
    /// It serves from now on, for the first time or again.
    Serve(A),
    /// It gets no new sessions. Say [`Discovery::handle_empty`] once it has nothing left.
    Drain(A),
    /// Its time to drain is over, and it is known no longer.
    End(A),
}

impl<A: Clone + PartialEq> Discovery<A> {
    /// Returns one that knows of no node. `drain_within`: how long a node that is named no longer may
    /// go on with what it has.
    pub fn new(drain_within: Duration) -> Self {
        Discovery { drain_within, nodes: Vec::new() }
    }

    /// Folds in which nodes are named now: all of them, and no others.
    pub fn handle_found(&mut self, now: Instant, named: &[A]) -> Vec<DiscoveryStep<A>> {
        let until = now + self.drain_within;
        let (mut steps, mut drains) = (Vec::new(), Vec::new());
        for node in &mut self.nodes {
            let is_named = named.contains(&node.address);
            match node.state {
                FoundState::Serves if !is_named => {
                    node.state = FoundState::Drains(until);
                    drains.push(DiscoveryStep::Drain(node.address.clone()));
                }
                FoundState::Drains(_) if is_named => {
                    node.state = FoundState::Serves;
                    steps.push(DiscoveryStep::Serve(node.address.clone()));
                }
                FoundState::Serves | FoundState::Drains(_) => {}
            }
        }
        for address in named {
            if !self.nodes.iter().any(|node| node.address == *address) {
                self.nodes.push(Found { address: address.clone(), state: FoundState::Serves });
                steps.push(DiscoveryStep::Serve(address.clone()));
            }
        }
        // Last: where all are replaced, there would be a moment without any.
        steps.append(&mut drains);
        steps
    }

    /// Returns the nodes whose time to drain is over. They are known no longer: one that is named later is
    /// another one, even where the old one still has requests.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<DiscoveryStep<A>> {
        let mut steps = Vec::new();
        self.nodes.retain(|node| {
            let is_over = matches!(node.state, FoundState::Drains(until) if until <= now);
            if is_over {
                steps.push(DiscoveryStep::End(node.address.clone()));
            }
            !is_over
        });
        steps
    }

    /// Notes that a node that drains has nothing left, and is known no longer.
    pub fn handle_empty(&mut self, address: &A) {
        self.nodes.retain(|node| node.state == FoundState::Serves || node.address != *address);
    }

    /// Notes that a node cannot be used, so that it is offered again when it is named again.
    pub fn handle_refused(&mut self, address: &A) {
        self.nodes.retain(|node| node.address != *address);
    }
}

#[cfg(test)]
mod tests {
    use super::DiscoveryStep::{Drain, End, Serve};
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Instant {
        Instant::ORIGIN + Duration::from_secs(seconds)
    }

    fn discovery() -> Discovery<u8> {
        Discovery::new(Duration::from_secs(60))
    }

    #[test]
    fn what_is_named_serves_and_what_is_named_no_longer_drains() {
        let mut nodes = discovery();
        assert_eq!(nodes.handle_found(at(0), &[1, 2]), [Serve(1), Serve(2)]);
        assert_eq!(nodes.handle_found(at(1), &[1, 2]), []);
        assert_eq!(nodes.handle_found(at(2), &[3, 2]), [Serve(3), Drain(1)]);
        assert_eq!(nodes.handle_found(at(3), &[3, 2]), [], "it drains once");
    }

    #[test]
    fn a_node_that_is_named_again_while_it_drains_goes_on() {
        let mut nodes = discovery();
        nodes.handle_found(at(0), &[1, 2]);
        nodes.handle_found(at(1), &[1]);
        assert_eq!(nodes.handle_found(at(2), &[1, 2]), [Serve(2)]);
        assert_eq!(nodes.handle_timeout(at(100)), []);
    }

    #[test]
    fn a_node_drains_for_so_long() {
        let mut nodes = discovery();
        nodes.handle_found(at(0), &[1, 2]);
        nodes.handle_found(at(1), &[1]);
        assert_eq!(nodes.handle_timeout(at(60)), []);
        assert_eq!(nodes.handle_timeout(at(61)), [End(2)]);
        assert_eq!(nodes.handle_timeout(at(62)), []);
        assert_eq!(nodes.handle_found(at(63), &[1, 2]), [Serve(2)], "it is new");
    }

    #[test]
    fn a_node_that_has_nothing_left_is_new_when_it_is_named_again() {
        let mut nodes = discovery();
        nodes.handle_found(at(0), &[1, 2]);
        nodes.handle_found(at(1), &[1]);
        nodes.handle_empty(&2);
        assert_eq!(nodes.handle_timeout(at(100)), []);
        assert_eq!(nodes.handle_found(at(101), &[1, 2]), [Serve(2)]);
        nodes.handle_empty(&2);
        assert_eq!(nodes.handle_found(at(102), &[1, 2]), [], "one that serves is not asked to be empty");
    }

    #[test]
    fn a_node_that_cannot_be_used_is_tried_again() {
        let mut nodes = discovery();
        nodes.handle_found(at(0), &[1]);
        nodes.handle_refused(&1);
        assert_eq!(nodes.handle_found(at(1), &[1]), [Serve(1)]);
    }

    #[test]
    fn a_node_whose_time_is_over_is_remembered_no_longer() {
        let mut nodes = discovery();
        for address in 0..100 {
            nodes.handle_found(at(100 * u64::from(address)), &[address]);
            nodes.handle_timeout(at(100 * u64::from(address) + 60));
        }
        assert_eq!(nodes.nodes.len(), 1);
    }

    proptest! {
        /// Whoever follows the steps has what is named in service, and nothing else, and at no moment nothing
        /// where something is named.
        #[test]
        fn those_that_serve_are_those_that_are_named(
            lists in proptest::collection::vec((proptest::collection::btree_set(0..8u8, 0..6), 0..90u64), 1..40),
        ) {
            let (mut nodes, mut now) = (discovery(), 0);
            let (mut serve, mut drain) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
            for (named, later) in lists {
                let named: Vec<u8> = named.into_iter().collect();
                let mut steps = nodes.handle_timeout(at(now));
                steps.extend(nodes.handle_found(at(now), &named));
                for step in steps {
                    match step {
                        Serve(node) => {
                            drain.remove(&node);
                            prop_assert!(serve.insert(node), "once");
                        }
                        Drain(node) => {
                            prop_assert!(serve.remove(&node) && drain.insert(node));
                            prop_assert!(!serve.is_empty() || named.is_empty(), "for a moment none serves");
                        }
                        End(node) => prop_assert!(drain.remove(&node)),
                    }
                }
                prop_assert_eq!(serve.iter().copied().collect::<Vec<_>>(), named);
                prop_assert!(nodes.nodes.len() == serve.len() + drain.len());
                now += later;
            }
        }
    }
}

//! What it costs to choose a node for a request: pick, answer and release, with two requests in flight on each
//! node.
//!
//! Question: from how many nodes on is it more than the rest of a decision? `cargo bench -p suimon-fleet`.

#![allow(missing_docs)] // criterion's macro writes a public function without one

use criterion::{Criterion, criterion_group, criterion_main};
use std::collections::VecDeque;
use std::hint::black_box;
use suimon_fleet::{AsksFor, Balance, Fleet, LoadReport, Params, Served};
use suimon_model::{Duration, Instant, NodeId, RouteId};

/// Time from one request to the next.
const EVERY: Duration = Duration::from_micros(50);
/// Requests from one report of a node to its next: far fewer than three periods of it.
const REPORTED_EVERY: usize = 100;
/// Longer than the bench takes by its own clock between two reports of a node.
const PERIOD: Duration = Duration::from_secs(60);

struct Bench {
    fleet: Fleet,
    nodes: Vec<NodeId>,
    in_flight: VecDeque<NodeId>,
    now: Instant,
    turn: usize,
}

impl Bench {
    fn new(nodes: usize, balance: Balance) -> Self {
        let mut fleet = Fleet::new(Params { balance, ..Params::default() });
        let now = Instant::ORIGIN;
        let add = |fleet: &mut Fleet| fleet.add_node(now).expect("there is room for so many");
        let nodes: Vec<_> = (0..nodes).map(|_| add(&mut fleet)).collect();
        let mut bench = Bench { fleet, nodes, in_flight: VecDeque::new(), now, turn: 0 };
        (0..bench.nodes.len()).for_each(|node| bench.report(node));
        (0..2 * bench.nodes.len()).for_each(|_| bench.begin());
        // Shares and what is known of nodes are there then.
        (0..1000).for_each(|_| bench.request());
        bench
    }

    fn report(&mut self, node: usize) {
        let report = LoadReport { load: 2.0, capacity: 2.0, run_queue: Some(2), every: PERIOD };
        self.fleet.handle_report(self.now, self.nodes[node], &report);
    }

    fn begin(&mut self) {
        let pick = self.fleet.pick(self.now, AsksFor::Ungated, None).expect("there are nodes");
        self.in_flight.push_back(black_box(pick).node);
    }

    /// The oldest request ends and the next one begins.
    fn request(&mut self) {
        self.turn += 1;
        self.now += EVERY;
        let node = self.in_flight.pop_front().expect("as many begin as end");
        self.fleet.handle_answer(self.now, node, AsksFor::Ungated);
        let served =
            Served { route: RouteId(0), took: Duration::from_millis(20), is_good: true, is_bound: false };
        self.fleet.handle_served(self.now, node, &served);
        self.fleet.handle_release(self.now, node);
        if self.turn.is_multiple_of(REPORTED_EVERY) {
            self.report(self.turn / REPORTED_EVERY % self.nodes.len());
        }
        self.begin();
    }
}

fn pick(criterion: &mut Criterion) {
    for (word, balance) in [("shares", Balance::Shares), ("reported", Balance::Reported)] {
        for nodes in [1, 4, 64, 256] {
            let mut bench = Bench::new(nodes, balance);
            let name = format!("pick by {word} of {nodes} nodes");
            criterion.bench_function(&name, |b| b.iter(|| bench.request()));
        }
    }
}

criterion_group!(benches, pick);
criterion_main!(benches);

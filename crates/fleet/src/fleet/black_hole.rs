//! A node that fails at once, beside nodes that work.

use super::*;
use std::collections::VecDeque;
use suimon_model::RouteId;

/// Nodes that answer `PER_S` requests per second, however many they have, in the order in which they came.
const PER_S: f64 = 200.0;

/// What became of requests that came in one phase.
#[derive(Debug, Default)]
struct Seen {
    good: u32,
    bad: u32,
}

struct Play {
    fleet: Fleet,
    now: Instant,
    nodes: Vec<VecDeque<Instant>>,
    owed: Vec<f64>,
}

impl Play {
    fn new(count: u32) -> Self {
        let mut fleet = Fleet::new(Params::default());
        for _ in 0..count {
            fleet.add_node(Instant::ORIGIN).unwrap();
        }
        let nodes = vec![VecDeque::new(); count as usize];
        Play { fleet, now: Instant::ORIGIN, owed: vec![0.0; nodes.len()], nodes }
    }

    /// Plays for some seconds with so many requests in flight all the time; `fails` says which nodes do.
    fn run(&mut self, seconds: u32, in_flight: usize, fails: impl Fn(usize) -> bool) -> Seen {
        let mut seen = Seen::default();
        for _ in 0..seconds * 1000 {
            self.now += Duration::from_millis(1);
            let now = self.now;
            self.fleet.handle_timeout(now);
            while self.fleet.poll_output().is_some() {}
            let mut budget = 20;
            while self.nodes.iter().map(VecDeque::len).sum::<usize>() < in_flight && budget > 0 {
                budget -= 1;
                let node = self.fleet.pick(now, AsksFor::Ungated, None).unwrap().node;
                self.nodes[node.index()].push_back(now);
            }
            for index in 0..self.nodes.len() {
                let fails = fails(index);
                self.owed[index] =
                    if fails { 1e9 } else { (self.owed[index].min(1.0) + PER_S / 1000.0).min(2.0) };
                while self.owed[index] >= 1.0
                    && let Some(since) = self.nodes[index].pop_front()
                {
                    self.owed[index] -= 1.0;
                    let node = NodeId(index as u32);
                    let took = now.since(since).max(Duration::from_millis(1));
                    self.fleet.handle_answer(now, node, AsksFor::Ungated);
                    self.fleet.handle_release(now, node);
                    self.fleet.handle_served(
                        now,
                        node,
                        &Served { route: RouteId(0), took, is_good: !fails, is_bound: false },
                    );
                    if fails { seen.bad += 1 } else { seen.good += 1 }
                }
            }
        }
        seen
    }
}

#[test]
fn a_node_that_fails_at_once_draws_no_requests_however_many_there_are() {
    for in_flight in [3, 12, 60, 300, 1000] {
        let mut play = Play::new(3);
        play.run(20, in_flight, |_| false);
        // What it had already fails.
        let had = play.nodes[0].len() as u32;
        let seen = play.run(30, in_flight, |node| node == 0);
        assert!(seen.bad <= had + 30, "{in_flight} in flight: {} fail, {had} were there", seen.bad);
        assert!(seen.good >= 11_900, "the others serve all they can: {}", seen.good);
        play.run(60, in_flight, |_| false);
        assert_eq!(play.fleet.up(), 3, "it is back");
        assert!(play.run(10, in_flight, |_| false).good >= 5_900, "with all that it can do");
    }
}

#[test]
fn it_is_said_why_it_is_out() {
    let mut play = Play::new(3);
    play.run(5, 60, |_| false);
    play.run(1, 60, |node| node == 0);
    let view = play.fleet.view();
    assert_eq!((view[0].status, view[0].why), (Status::Ejected, Why::AnswersFailed));
    assert!(view[1..].iter().all(|node| node.status == Status::Up));
}

#[test]
fn an_application_that_fails_everywhere_loses_no_node() {
    for failing in [3, 2] {
        let mut play = Play::new(3);
        play.run(5, 60, |_| false);
        play.run(20, 60, |node| node < failing);
        let out = play.fleet.view().iter().filter(|node| node.status == Status::Ejected).count();
        assert!(out <= usize::from(failing < 3), "{out} of 3 are out, {failing} fail");
    }
}

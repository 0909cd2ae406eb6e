//! Nodes that are not alike, and the shares that they get.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::collections::BTreeMap;
use std::time::Duration;
use suimon_fleet::{AsksFor, Fleet, Params, Served};
use suimon_model::{Instant, NodeId, Rng, RouteId, seconds};
use suimon_sim::{Efficiency, Job, Machine, Node, Pauses};

/// CPU seconds of a request on a node of speed 1.
const EACH: f64 = 0.05;
const ROUTE: RouteId = RouteId(0);

/// Nodes of these speeds, and a fleet that sends requests to them.
struct Site {
    fleet: Fleet,
    nodes: Vec<Node>,
    /// Nodes that answer with an error at once, and those that answer nothing.
    fails: Option<usize>,
    freezes: Option<usize>,
    learns: bool,
    /// Seconds that a request waits for other systems besides.
    waits: f64,
    rng: Rng,
    sent: BTreeMap<u64, (NodeId, Instant)>,
    next: u64,
    took: Vec<f64>,
    errors: u64,
}

impl Site {
    fn new(speeds: &[f64], learns: bool) -> Self {
        let mut fleet = Fleet::new(Params { seed: 1, ..Params::default() });
        let machine = |speed| Machine {
            cores: 1.0,
            speed,
            efficiency: Efficiency::Flat,
            even: true,
            threads: None,
            connections: None,
            accept: 0.0,
            accept_crowded: 0.0,
        };
        let nodes = speeds.iter().map(|speed| Node::new(machine(*speed), Rng::new(3))).collect();
        for _ in speeds {
            fleet.add_node(Instant::ORIGIN).unwrap();
        }
        let (sent, took) = (BTreeMap::new(), vec![]);
        Site {
            fleet,
            nodes,
            fails: None,
            freezes: None,
            learns,
            waits: 0.0,
            rng: Rng::new(2),
            sent,
            next: 0,
            took,
            errors: 0,
        }
    }

    /// Sends a request; returns whether it failed at once.
    fn send(&mut self, now: Instant) -> bool {
        let node = self.fleet.pick(now, AsksFor::Ungated, None).unwrap().node;
        if self.fails == Some(node.index()) {
            self.errors += 1;
            let served =
                Served { route: ROUTE, took: Duration::from_millis(1), is_good: false, is_bound: false };
            self.fleet.handle_answer(now, node, AsksFor::Ungated);
            self.fleet.handle_release(now, node);
            self.fleet.handle_served(now, node, &served);
            return true;
        }
        let id = self.next;
        self.next += 1;
        self.sent.insert(id, (node, now));
        if self.freezes != Some(node.index()) {
            let cpu = self.rng.exponential(EACH);
            let elsewhere = if self.waits > 0.0 { self.rng.exponential(self.waits) } else { 0.0 };
            let job = Job { id, elsewhere, cpu, memory: 0.0, lock: None, pauses: Pauses::default() };
            self.nodes[node.index()].handle_arrival(now, job);
        }
        false
    }

    /// Goes on to the next end of a request, at most to `until`; returns when that is, and how many ended.
    fn step(&mut self, until: Instant) -> (Instant, usize) {
        let due = self.nodes.iter().filter_map(Node::poll_timeout).min().unwrap_or(Instant::FAR_FUTURE);
        let now = due.min(until);
        let mut ended = 0;
        for node in &mut self.nodes {
            node.handle_timeout(now);
            while let Some(id) = node.poll_ended() {
                let (node, since) = self.sent.remove(&id).unwrap();
                let took = now.since(since);
                self.took.push(took.as_secs_f64());
                ended += 1;
                self.fleet.handle_answer(now, node, AsksFor::Ungated);
                self.fleet.handle_release(now, node);
                if self.learns {
                    self.fleet.handle_served(
                        now,
                        node,
                        &Served { route: ROUTE, took, is_good: true, is_bound: false },
                    );
                }
            }
        }
        (now, ended)
    }

    /// Keeps so many requests in flight for some time; returns requests per second.
    fn keep_busy(&mut self, from: Instant, lasts: f64, in_flight: usize) -> f64 {
        let (mut now, until) = (from, from + seconds(lasts));
        let before = self.took.len();
        while now < until {
            for _ in self.sent.len()..in_flight {
                // One that fails at once is followed by the next, a moment later.
                self.send(now);
            }
            (now, _) = self.step(until);
        }
        (self.took.len() - before) as f64 / lasts
    }

    /// Sends requests at random times; returns their mean time.
    fn send_at_random(&mut self, from: Instant, rate: f64, lasts: f64) -> f64 {
        let (mut now, until) = (from, from + seconds(lasts));
        let mut next = now;
        while now < until {
            if now >= next {
                self.send(now);
                next = now + seconds(self.rng.exponential(1.0 / rate));
            }
            (now, _) = self.step(next.min(until));
        }
        let late = &self.took[self.took.len() / 2..];
        late.iter().sum::<f64>() / late.len() as f64
    }
}

#[test]
fn nodes_of_unequal_speed_do_together_what_they_can() {
    let mut site = Site::new(&[1.0, 2.0, 4.0], true);
    let all = 7.0 / EACH;
    let done = site.keep_busy(Instant::ORIGIN, 60.0, 12);
    assert!(done >= 0.95 * all, "{done} of {all}");
    let shares: Vec<f64> = site.fleet.view().iter().map(|node| node.share).collect();
    for (share, speed) in shares.iter().zip([1.0, 2.0, 4.0]) {
        let fair = speed * 3.0 / 7.0;
        assert!((share / fair - 1.0).abs() < 0.25, "{shares:?}");
    }
}

#[test]
fn requests_take_less_time_where_fast_nodes_get_more_of_them() {
    let mean = |learns| {
        Site::new(&[1.0, 2.0, 4.0], learns).send_at_random(Instant::ORIGIN, 0.75 * 7.0 / EACH, 120.0)
    };
    let (with, without) = (mean(true), mean(false));
    assert!(with < 0.9 * without, "{with} s instead of {without} s");
}

#[test]
fn a_node_that_fails_at_once_attracts_nobody() {
    let mut site = Site::new(&[1.0, 1.0, 1.0], true);
    let before = site.keep_busy(Instant::ORIGIN, 20.0, 12);
    site.fails = Some(1);
    site.keep_busy(Instant::ORIGIN + seconds(20.0), 20.0, 12);
    site.errors = 0;
    let after = site.keep_busy(Instant::ORIGIN + seconds(40.0), 20.0, 12);
    let share = site.errors as f64 / (20.0 * after + site.errors as f64);
    assert!(after > 0.6 * before && share < 0.1, "{after} of {before} a second, {share} of them errors");
}

#[test]
fn a_node_that_answers_nothing_gets_one_request_a_second() {
    let mut site = Site::new(&[1.0, 1.0, 1.0], true);
    site.keep_busy(Instant::ORIGIN, 20.0, 12);
    site.freezes = Some(2);
    site.send_at_random(Instant::ORIGIN + seconds(20.0), 30.0, 40.0);
    let stuck = site.fleet.view()[2].in_flight;
    assert!(stuck <= 12 + 40, "{stuck} are stuck");
    let done = site.took.len();
    assert!(done > 1000, "{done} were served");
}

/// Pages of a chat take 12 s wherever they are: their number says nothing of a node.
#[test]
fn requests_that_wait_for_other_systems_leave_all_nodes_alike() {
    let mut site = Site::new(&[1.0, 1.0, 1.0], true);
    site.waits = 12.0;
    site.send_at_random(Instant::ORIGIN, 10.0, 600.0);
    let shares: Vec<f64> = site.fleet.view().iter().map(|node| node.share).collect();
    assert!(shares.iter().all(|share| (0.6..1.6).contains(share)), "{shares:?}");
}

/// Where nodes have room, the time of a request does not depend on how many there are: nothing but what is
/// forgotten holds the shares together.
#[test]
fn chance_does_not_drive_shares_apart() {
    let mut site = Site::new(&[8.0, 8.0], true);
    site.waits = 0.1;
    site.send_at_random(Instant::ORIGIN, 40.0, 3600.0);
    let shares: Vec<f64> = site.fleet.view().iter().map(|node| node.share).collect();
    let picked: Vec<u64> = site.fleet.view().iter().map(|node| node.picked).collect();
    assert!(shares.iter().all(|share| (0.5..2.0).contains(share)), "{shares:?}");
    assert!(picked.iter().all(|picked| *picked > 50_000), "{picked:?}");
}

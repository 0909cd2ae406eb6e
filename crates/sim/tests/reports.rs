//! Nodes that are chosen by what they report, often and seldom.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use suimon_fleet::{AsksFor, Balance, Fleet, LoadReport, Params};
use suimon_model::{Duration, Instant, NodeId, Rng, seconds};

/// Requests that each node serves at once, and the mean seconds of one.
const SLOTS: [u32; 3] = [2, 4, 8];
const MEAN_S: f64 = 0.04;
/// What is asked for, as a share of what the nodes can do together.
const ASKED: f64 = 0.85;
const LASTS_S: f64 = 300.0;
/// An agent looks this often, and tells the mean of so many looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const LOOKS: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    Look,
    Report(usize),
    End(usize, Instant),
}

#[derive(Default)]
struct Node {
    slots: u32,
    busy: u32,
    waiting: VecDeque<Instant>,
    looks: VecDeque<u32>,
}

/// Returns the 99th percentile of the time from a request's arrival to its answer, seconds, where nodes report so
/// often.
fn p99_s(every: Duration, seed: u64) -> f64 {
    let mut rng = Rng::new(seed);
    let mut fleet = Fleet::new(Params { balance: Balance::Reported, ..Params::default() });
    let mut nodes: Vec<Node> = SLOTS.iter().map(|slots| Node { slots: *slots, ..Node::default() }).collect();
    let mut events = BinaryHeap::from([Reverse((Instant::ORIGIN, Event::Look))]);
    for index in 0..nodes.len() {
        fleet.add_node(Instant::ORIGIN).unwrap();
        // They begin at moments of their own.
        let begins = Instant::ORIGIN + every.mul_f64(rng.uniform());
        events.push(Reverse((begins, Event::Report(index))));
    }
    let rate = ASKED * f64::from(SLOTS.iter().sum::<u32>()) / MEAN_S;
    let (warm, until) = (Instant::ORIGIN + seconds(15.0), Instant::ORIGIN + seconds(LASTS_S));
    events.push(Reverse((Instant::ORIGIN, Event::Arrival)));
    let mut took = vec![];
    while let Some(Reverse((now, event))) = events.pop().filter(|Reverse((at, _))| *at < until) {
        match event {
            Event::Arrival => {
                let node = fleet.pick(now, AsksFor::Ungated, None).unwrap().node.index();
                let state = &mut nodes[node];
                if state.busy < state.slots {
                    state.busy += 1;
                    let ends = now + seconds(rng.exponential(MEAN_S));
                    events.push(Reverse((ends, Event::End(node, now))));
                } else {
                    state.waiting.push_back(now);
                }
                events.push(Reverse((now + seconds(rng.exponential(1.0 / rate)), Event::Arrival)));
            }
            Event::End(node, came) => {
                fleet.handle_unanswered(now, NodeId(node as u32), AsksFor::Ungated);
                if now >= warm {
                    took.push(now.secs_since(came));
                }
                let state = &mut nodes[node];
                match state.waiting.pop_front() {
                    Some(came) => {
                        let ends = now + seconds(rng.exponential(MEAN_S));
                        events.push(Reverse((ends, Event::End(node, came))));
                    }
                    None => state.busy -= 1,
                }
            }
            Event::Look => {
                for node in &mut nodes {
                    if node.looks.len() == LOOKS {
                        node.looks.pop_front();
                    }
                    node.looks.push_back(node.busy + node.waiting.len() as u32);
                }
                events.push(Reverse((now + LOOK_EVERY, Event::Look)));
            }
            Event::Report(index) => {
                let node = &nodes[index];
                let sum: u32 = node.looks.iter().sum();
                let report = LoadReport {
                    load: f64::from(sum) / node.looks.len().max(1) as f64,
                    capacity: f64::from(node.slots),
                    run_queue: node.looks.back().copied().or(Some(0)),
                    every,
                };
                fleet.handle_report(now, NodeId(index as u32), &report);
                events.push(Reverse((now + every, Event::Report(index))));
            }
        }
    }
    took.sort_by(f64::total_cmp);
    took[took.len() * 99 / 100]
}

#[test]
fn with_reports_a_second_old_the_slowest_requests_take_hardly_longer_than_with_fresh_ones() {
    for seed in 1..=5 {
        let (fresh, old) = (p99_s(Duration::from_millis(10), seed), p99_s(Duration::from_secs(1), seed));
        println!("seed {seed}: {:.0} ms with fresh reports, {:.0} ms with old ones", 1e3 * fresh, 1e3 * old);
        assert!(old <= 1.25 * fresh, "seed {seed}: {old} and {fresh} s");
    }
}

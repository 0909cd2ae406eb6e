//! A node that comes, or comes back, gets its share little by little.

use super::*;
use crate::{Balance, LoadReport};

/// Returns how many of a hundred requests at one moment node 1 of two gets.
fn of_a_hundred(fleet: &mut Fleet, now: Instant) -> u32 {
    let got: Vec<u32> = (0..100).map(|_| fleet.pick(now, AsksFor::Ungated, None).unwrap().node.0).collect();
    got.iter().for_each(|node| fleet.handle_unanswered(now, NodeId(*node), AsksFor::Ungated));
    got.iter().sum()
}

fn left(fleet: &Fleet, now: Instant, node: usize) -> Duration {
    fleet.view()[node].slow_start_until.expect("it is up, and one of two").since(now)
}

/// What has just come back at this time, in each of the ways in which a node can.
fn returned(params: &Params) -> Vec<(&'static str, Fleet, Instant)> {
    let checks = Some(CheckParams { interval: 2 * SECOND, down_after: 3, up_after: 2 });
    let params = Params { checks, ..params.clone() };
    let two = || fleet_with(2, params.clone());
    let (down, up) = (at(100.0), at(110.0));
    let mut all = vec![];

    let mut fleet = two();
    // As long as the gateway itself has just started all nodes are as cold.
    while next_checks(&mut fleet, |_| true) < at(100.0) {}
    while status(&fleet, 1) == Status::Up {
        next_checks(&mut fleet, |node| node.0 == 0);
    }
    let mut now = Instant::ORIGIN;
    while status(&fleet, 1) != Status::Up {
        now = next_checks(&mut fleet, |_| true);
    }
    all.push(("checks pass", fleet, now));

    let mut fleet = two();
    fail(&mut fleet, down, 1, 5);
    assert_eq!(status(&fleet, 1), Status::Ejected);
    let now = fleet.view()[1].until.unwrap();
    fleet.handle_timeout(now);
    all.push(("its ejection is over", fleet, now));

    let mut fleet = two();
    fleet.drain(down, NodeId(1), true);
    fleet.drain(up, NodeId(1), false);
    all.push(("it was drained", fleet, up));

    let mut fleet = fleet_with(1, params.clone());
    fleet.pick(down, AsksFor::Ungated, None).unwrap();
    fleet.handle_unanswered(down, NodeId(0), AsksFor::Ungated);
    fleet.handle_answer(down, NodeId(0), AsksFor::Ungated);
    fleet.add_node(up).unwrap();
    all.push(("it is new", fleet, up));
    all
}

#[test]
fn however_a_node_comes_back_it_begins_with_a_quarter_of_its_share() {
    for (how, mut fleet, now) in returned(&Params::default()) {
        assert_eq!(left(&fleet, now, 1), 10 * SECOND, "{how}");
        assert_eq!(left(&fleet, now, 0), Duration::ZERO, "{how}: the other one has not gone");
        // A quarter of its share and all of the other's.
        assert_eq!(of_a_hundred(&mut fleet, now), 20, "{how}");
        let half = of_a_hundred(&mut fleet, now + 5 * SECOND);
        assert!((37..=39).contains(&half), "{how}: {half}");
        assert_eq!(left(&fleet, now + 5 * SECOND, 1), 5 * SECOND, "{how}");
        assert_eq!(of_a_hundred(&mut fleet, now + 10 * SECOND), 50, "{how}");
        assert_eq!(left(&fleet, now + 10 * SECOND, 1), Duration::ZERO, "{how}");
    }
}

#[test]
fn it_takes_as_long_as_is_said_and_no_time_if_that_is_nothing() {
    for (how, mut fleet, now) in returned(&Params { slow_start: 60 * SECOND, ..Params::default() }) {
        assert_eq!(of_a_hundred(&mut fleet, now), 20, "{how}");
        let half = of_a_hundred(&mut fleet, now + 30 * SECOND);
        assert!((37..=39).contains(&half), "{how}: {half}");
    }
    for (how, mut fleet, now) in returned(&Params { slow_start: Duration::ZERO, ..Params::default() }) {
        assert_eq!(of_a_hundred(&mut fleet, now), 50, "{how}");
        assert_eq!(left(&fleet, now, 1), Duration::ZERO, "{how}");
    }
}

#[test]
fn nodes_that_come_back_together_share_all_there_is() {
    let mut fleet = fleet(2);
    for _ in 0..3 {
        (0..2).for_each(|node| fleet.handle_unreached(at(30.0), NodeId(node)));
    }
    assert_eq!((status(&fleet, 0), status(&fleet, 1)), (Status::Down, Status::Down));
    (0..2).for_each(|node| fleet.handle_answer(at(40.0), NodeId(node), AsksFor::Ungated));
    assert_eq!(of_a_hundred(&mut fleet, at(40.0)), 50);
    // The only one that is left has every request, however cold it is.
    fleet.drain(at(40.5), NodeId(0), true);
    assert_eq!(of_a_hundred(&mut fleet, at(41.0)), 100);
}

#[test]
fn reported_loads_count_for_more_on_a_node_that_has_come_back_and_the_papers_rule_knows_nothing_of_it() {
    let report = LoadReport { load: 0.0, capacity: 1.0, run_queue: Some(0), every: SECOND };
    let spread = |balance| {
        let mut got = vec![];
        for (_, mut fleet, now) in returned(&Params { balance, ..Params::default() }) {
            (0..2).for_each(|node| fleet.handle_report(now, NodeId(node), &report));
            got.push((of_a_hundred(&mut fleet, now), fleet.view()[1].slow_start_until.is_some()));
        }
        got
    };
    assert_eq!(spread(Balance::Reported), [(20, true); 4]);
    // Of equal run queues a random one.
    let paper = spread(Balance::Paper);
    assert!(paper.iter().all(|(got, shown)| (30..=70).contains(got) && !shown), "{paper:?}");
}

use super::*;
use crate::{AsksFor, LoadReport, Params, Served, Status};
use proptest::prelude::*;
use suimon_model::{Duration, RouteId, seconds};

const EVERY: Duration = Duration::from_millis(100);

fn at(second: f64) -> Instant {
    Instant::ORIGIN + seconds(second)
}

fn fleet(balance: Balance, nodes: u32) -> Fleet {
    let mut fleet = Fleet::new(Params { balance, ..Params::default() });
    for _ in 0..nodes {
        fleet.add_node(Instant::ORIGIN).unwrap();
    }
    fleet
}

/// A node with so many processors says that so many tasks run or could.
fn says(fleet: &mut Fleet, now: Instant, node: u32, tasks: u32, processors: u32) {
    let report = LoadReport {
        load: f64::from(tasks),
        capacity: f64::from(processors),
        run_queue: Some(tasks),
        every: EVERY,
    };
    fleet.handle_report(now, NodeId(node), &report);
}

/// Returns how many of so many requests at one moment each node gets.
fn spread(fleet: &mut Fleet, now: Instant, requests: u32) -> Vec<u32> {
    let before: Vec<u32> = fleet.view().iter().map(|node| node.in_flight).collect();
    for _ in 0..requests {
        fleet.pick(now, AsksFor::Ungated, None).unwrap();
    }
    fleet.view().iter().zip(before).map(|(node, before)| node.in_flight - before).collect()
}

#[test]
fn reports_are_shown_and_change_nothing_unless_nodes_are_picked_by_them() {
    let (mut with, mut without) = (fleet(Balance::Shares, 3), fleet(Balance::Shares, 3));
    says(&mut with, at(1.0), 0, 100, 1);
    for _ in 0..50 {
        assert_eq!(with.pick(at(1.0), AsksFor::Ungated, None), without.pick(at(1.0), AsksFor::Ungated, None));
    }
    assert_eq!(with.view()[0].report.unwrap().0.run_queue, Some(100));
}

#[test]
fn the_least_load_for_its_processors_gets_the_request() {
    let mut fleet = fleet(Balance::Reported, 3);
    for (node, tasks, processors) in [(0, 4, 2), (1, 6, 16), (2, 1, 1)] {
        says(&mut fleet, at(1.0), node, tasks, processors);
    }
    let pick = fleet.pick(at(1.0), AsksFor::Ungated, None).unwrap();
    assert_eq!((pick.node, pick.reason), (NodeId(1), PickReason::LeastReported));
    assert_eq!(fleet.pick(at(1.0), AsksFor::Ungated, Some(NodeId(1))).unwrap().node, NodeId(2));
}

#[test]
fn what_was_sent_since_counts_so_nobody_is_buried_between_two_reports() {
    let mut fleet = fleet(Balance::Reported, 3);
    for (node, tasks) in [(0, 0), (1, 10), (2, 10)] {
        says(&mut fleet, at(1.0), node, tasks, 4);
    }
    assert_eq!(spread(&mut fleet, at(1.0), 10), [10, 0, 0], "until all have ten");
    assert_eq!(spread(&mut fleet, at(1.1), 30), [10, 10, 10]);
    // The next report has them in it.
    says(&mut fleet, at(1.2), 0, 0, 4);
    assert_eq!(spread(&mut fleet, at(1.2), 5), [5, 0, 0]);
}

#[test]
fn without_a_young_report_of_each_node_nodes_are_picked_by_shares() {
    let mut fleet = fleet(Balance::Reported, 2);
    says(&mut fleet, at(1.0), 0, 100, 1);
    assert_eq!(
        fleet.pick(at(1.0), AsksFor::Ungated, None).unwrap().reason,
        PickReason::LeastInFlight,
        "one has none"
    );
    says(&mut fleet, at(1.0), 1, 0, 1);
    assert_eq!(fleet.pick(at(1.3), AsksFor::Ungated, None).unwrap().reason, PickReason::LeastReported);
    says(&mut fleet, at(1.3), 1, 0, 1);
    assert_eq!(
        fleet.pick(at(1.31), AsksFor::Ungated, None).unwrap().reason,
        PickReason::LeastInFlight,
        "that of one is too old"
    );
    says(&mut fleet, at(1.4), 0, 100, 1);
    assert_eq!(fleet.pick(at(1.4), AsksFor::Ungated, None).unwrap().reason, PickReason::LeastReported);
}

#[test]
fn a_node_that_gets_nothing_needs_no_report() {
    let mut fleet = fleet(Balance::Reported, 3);
    fleet.drain(at(0.5), NodeId(0), true);
    says(&mut fleet, at(1.0), 1, 5, 1);
    says(&mut fleet, at(1.0), 2, 4, 1);
    let pick = fleet.pick(at(1.0), AsksFor::Ungated, None).unwrap();
    assert_eq!((pick.node, pick.reason), (NodeId(2), PickReason::LeastReported));
}

#[test]
fn a_node_that_fails_at_once_attracts_nobody_and_is_tried_again() {
    let mut fleet = fleet(Balance::Reported, 2);
    let mut failed = [0, 0];
    // A thousand requests in ten seconds; the first node has nothing to do, as it fails at once.
    for step in 0..1000 {
        let now = at(20.0 + 0.01 * f64::from(step));
        says(&mut fleet, now, 0, 0, 1);
        says(&mut fleet, now, 1, 8, 1);
        let node = fleet.pick(now, AsksFor::Ungated, None).unwrap().node;
        failed[node.index()] += 1;
        let served = Served {
            route: RouteId(0),
            took: Duration::from_millis(5),
            is_good: node.index() == 1,
            is_bound: false,
        };
        fleet.handle_answer(now, node, AsksFor::Ungated);
        fleet.handle_served(now, node, &served);
        fleet.handle_release(now, node);
    }
    assert!(failed[0] < 100 && failed[0] > 5, "{failed:?}");
}

#[test]
fn shares_stay_as_they_are_while_nodes_are_picked_by_reports() {
    let mut fleet = fleet(Balance::Reported, 2);
    for step in 0..1000 {
        let now = at(1.0 + 0.05 * f64::from(step));
        says(&mut fleet, now, 0, 1, 1);
        says(&mut fleet, now, 1, 1, 1);
        let node = fleet.pick(now, AsksFor::Ungated, None).unwrap().node;
        let took = Duration::from_millis(if node.index() == 0 { 10 } else { 100 });
        fleet.handle_answer(now, node, AsksFor::Ungated);
        fleet.handle_served(now, node, &Served { route: RouteId(0), took, is_good: true, is_bound: false });
        fleet.handle_release(now, node);
    }
    let shares: Vec<f64> = fleet.view().iter().map(|node| node.share).collect();
    assert!(shares.iter().all(|share| (share - 1.0).abs() < 1e-9), "{shares:?}");
}

#[test]
fn the_papers_rule_is_the_shortest_run_queue_and_nothing_else() {
    let mut fleet = fleet(Balance::Paper, 3);
    for (node, tasks, processors) in [(0, 3, 100), (1, 2, 1), (2, 9, 1)] {
        says(&mut fleet, at(1.0), node, tasks, processors);
    }
    assert_eq!(spread(&mut fleet, at(1.0), 40), [0, 40, 0], "all of a period go to one");
    says(&mut fleet, at(1.1), 1, 42, 1);
    assert_eq!(spread(&mut fleet, at(1.1), 1), [1, 0, 0]);
}

#[test]
fn a_connection_stays_with_its_node_as_long_as_that_is_up() {
    let mut fleet = fleet(Balance::Paper, 2);
    says(&mut fleet, at(1.0), 0, 9, 1);
    says(&mut fleet, at(1.0), 1, 0, 1);
    let again = fleet.pick_again(at(1.0), AsksFor::Ungated, NodeId(0), None).unwrap();
    assert_eq!((again.node, again.reason), (NodeId(0), PickReason::SameConnection));
    assert_eq!(fleet.in_flight(NodeId(0)), 1);
    assert_eq!(fleet.pick_again(at(1.0), AsksFor::Ungated, NodeId(0), Some(NodeId(0))), None);
    assert_eq!(fleet.pick_again(at(1.0), AsksFor::Ungated, NodeId(7), None), None);
    fleet.drain(at(1.1), NodeId(0), true);
    assert_eq!(fleet.pick_again(at(1.1), AsksFor::Ungated, NodeId(0), None), None);
}

#[test]
fn a_report_of_a_response_does_not_replace_a_young_one_of_an_agent() {
    let mut fleet = fleet(Balance::Reported, 2);
    let response = LoadReport { load: 1.0, capacity: 2.0, run_queue: None, every: EVERY };
    says(&mut fleet, at(1.0), 0, 7, 1);
    fleet.handle_report(at(1.1), NodeId(0), &response);
    assert_eq!(fleet.view()[0].report.unwrap().0.run_queue, Some(7));
    fleet.handle_report(at(1.4), NodeId(0), &response);
    assert_eq!(fleet.view()[0].report.unwrap().0.run_queue, None);
    // For the papers' rule it is none.
    let mut paper = self::fleet(Balance::Paper, 2);
    paper.handle_report(at(1.0), NodeId(0), &response);
    says(&mut paper, at(1.0), 1, 7, 1);
    assert_eq!(paper.pick(at(1.0), AsksFor::Ungated, None).unwrap().reason, PickReason::LeastInFlight);
}

#[test]
fn a_node_that_comes_in_the_place_of_another_has_not_reported() {
    let mut fleet = fleet(Balance::Reported, 3);
    for node in 0..3 {
        says(&mut fleet, at(1.0), node, 1, 1);
    }
    fleet.drain(at(1.0), NodeId(1), true);
    assert!(fleet.remove_node(at(1.0), NodeId(1)));
    says(&mut fleet, at(1.0), 1, 0, 1);
    assert_eq!(
        fleet.pick(at(1.0), AsksFor::Ungated, None).unwrap().reason,
        PickReason::LeastReported,
        "of those that are left"
    );
    assert_eq!(fleet.pick_again(at(1.0), AsksFor::Ungated, NodeId(1), None), None);
    assert_eq!(fleet.add_node(at(1.1)), Ok(NodeId(1)));
    assert_eq!(fleet.view()[1].report, None);
    assert_eq!(
        fleet.pick(at(1.1), AsksFor::Ungated, None).unwrap().reason,
        PickReason::LeastInFlight,
        "the new one is unknown"
    );
    says(&mut fleet, at(1.1), 1, 0, 1);
    let pick = fleet.pick(at(1.1), AsksFor::Ungated, None).unwrap();
    assert_eq!(pick.reason, PickReason::LeastReported);
}

#[test]
fn of_many_nodes_the_least_loaded_of_all_is_found() {
    let mut fleet = fleet(Balance::Reported, 200);
    for node in 0..200 {
        says(&mut fleet, at(1.0), node, if node == 137 { 1 } else { 5 }, 1);
    }
    assert_eq!(fleet.pick(at(1.0), AsksFor::Ungated, None).unwrap().node, NodeId(137));
}

#[test]
fn what_is_no_number_makes_a_node_the_last_choice() {
    let mut fleet = fleet(Balance::Reported, 2);
    let strange = LoadReport { load: f64::NAN, capacity: f64::NAN, run_queue: Some(0), every: EVERY };
    fleet.handle_report(at(1.0), NodeId(0), &strange);
    fleet.handle_report(at(1.0), NodeId(9), &strange);
    says(&mut fleet, at(1.0), 1, 1000, 1);
    assert_eq!(spread(&mut fleet, at(1.0), 20), [0, 20]);
}

proptest! {
    #[test]
    fn a_pick_by_reports_is_of_nodes_that_are_up_and_have_reported(
        steps in proptest::collection::vec((0u32..4, 0u32..5, 0u32..50, 0u32..200), 1..200),
        paper: bool,
    ) {
        let mut fleet = fleet(if paper { Balance::Paper } else { Balance::Reported }, 4);
        let mut reported = [None::<Instant>; 4];
        let mut now = at(1.0);
        for (node, what, tasks, pause) in steps {
            now += Duration::from_millis(u64::from(pause));
            match what {
                0 | 1 => {
                    says(&mut fleet, now, node, tasks, 1 + tasks % 3);
                    reported[node as usize] = Some(now);
                }
                2 => fleet.drain(now, NodeId(node), tasks % 2 == 0),
                3 => fleet.handle_failure(now, NodeId(node)),
                _ => {
                    let up: Vec<usize> = (0..4).filter(|node| fleet.view()[*node].status == Status::Up).collect();
                    let young = |node: &usize| reported[*node].is_some_and(|at| now.since(at) <= 3 * EVERY);
                    let Some(pick) = fleet.pick(now, AsksFor::Ungated, None) else { continue };
                    let by_reports = pick.reason == PickReason::LeastReported;
                    // Nodes come back as time goes by, so what is up is known after the pick.
                    let up_now: Vec<usize> = (0..4).filter(|node| fleet.view()[*node].status == Status::Up).collect();
                    if by_reports {
                        prop_assert!(up_now.contains(&pick.node.index()));
                        prop_assert!(young(&pick.node.index()));
                    } else if up == up_now && up.len() > 1 {
                        prop_assert!(!up.iter().all(young), "by {:?}", pick.reason);
                    }
                }
            }
        }
    }
}

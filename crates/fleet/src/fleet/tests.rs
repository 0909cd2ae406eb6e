use super::*;
use crate::{CheckParams, Checked, EjectionParams};
use proptest::prelude::*;
use std::collections::BTreeSet;

mod slow_start;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: f64) -> Instant {
    Instant::ORIGIN + suimon_model::seconds(seconds)
}

fn fleet(nodes: u32) -> Fleet {
    fleet_with(nodes, Params::default())
}

fn fleet_with(nodes: u32, params: Params) -> Fleet {
    let mut fleet = Fleet::new(params);
    for _ in 0..nodes {
        fleet.add_node(Instant::ORIGIN).unwrap();
    }
    fleet
}

fn checked(nodes: u32) -> Fleet {
    let checks = Some(CheckParams { interval: 2 * SECOND, down_after: 3, up_after: 2 });
    fleet_with(nodes, Params { checks, ..Params::default() })
}

fn fail(fleet: &mut Fleet, now: Instant, node: u32, times: u32) {
    for _ in 0..times {
        fleet.handle_failure(now, NodeId(node));
    }
}

fn status(fleet: &Fleet, node: u32) -> Status {
    fleet.view().iter().find(|view| view.node.0 == node).unwrap().status
}

fn picks(fleet: &mut Fleet, now: Instant, times: usize) -> BTreeSet<u32> {
    (0..times)
        .map(|_| {
            let node = fleet.pick(now, AsksFor::Ungated, None).unwrap().node;
            fleet.handle_unanswered(now, node, AsksFor::Ungated);
            node.0
        })
        .collect()
}

fn changes(fleet: &mut Fleet) -> Vec<(u32, Status, Status, Why)> {
    let mut changes = Vec::new();
    while let Some(output) = fleet.poll_output() {
        if let Output::Changed(change) = output {
            changes.push((change.node.0, change.from, change.to, change.why));
        }
    }
    changes
}

/// Advances time to the next check of any node; answers it, and all due with it, by `verdict`.
fn next_checks(fleet: &mut Fleet, verdict: impl Fn(NodeId) -> bool) -> Instant {
    next_looks(fleet, |node| if verdict(node) { Checked::Answered } else { Checked::Unreached })
}

fn next_looks(fleet: &mut Fleet, verdict: impl Fn(NodeId) -> Checked) -> Instant {
    let now = fleet.poll_timeout().expect("checks are on");
    fleet.handle_timeout(now);
    let mut due = Vec::new();
    let mut kept = Vec::new();
    while let Some(output) = fleet.poll_output() {
        match output {
            Output::Check(node) => due.push(node),
            Output::Changed(_) | Output::Hangs(_) | Output::Proven(_) | Output::Released { .. } => {
                kept.push(output);
            }
        }
    }
    fleet.outputs.extend(kept);
    for node in due {
        fleet.handle_check(now, node, verdict(node));
    }
    now
}

fn unreached(fleet: &mut Fleet, now: Instant, node: u32, times: u32) {
    (0..times).for_each(|_| fleet.handle_unreached(now, NodeId(node)));
}

#[test]
fn requests_that_reach_no_node_show_that_the_application_is_down_without_any_check() {
    let mut fleet = fleet(1);
    unreached(&mut fleet, at(2.0), 0, LOST_AFTER - 1);
    fleet.handle_answer(at(2.0), NodeId(0), AsksFor::Ungated);
    unreached(&mut fleet, at(2.0), 0, LOST_AFTER - 1);
    assert!(fleet.is_up(), "not in a row");
    unreached(&mut fleet, at(2.0), 0, 1);
    assert!(!fleet.is_up() && fleet.is_doubted(NodeId(0)));
    assert_eq!(changes(&mut fleet), [(0, Status::Up, Status::Down, Why::Unreached)]);
    // From now on it is checked each second, as long as necessary.
    for second in 2..60 {
        let due = at(f64::from(second) + 0.25);
        assert_eq!(fleet.poll_timeout(), Some(due));
        assert_eq!(next_checks(&mut fleet, |_| second == 59), due);
    }
    assert!(fleet.is_up() && !fleet.is_doubted(NodeId(0)));
    assert_eq!(changes(&mut fleet), [(0, Status::Down, Status::Up, Why::Reached)]);
    assert_eq!(fleet.poll_timeout(), None, "no checks are asked for");
}

#[test]
fn a_single_request_that_does_not_reach_it_has_the_application_looked_at_at_once() {
    for mut fleet in [fleet(1), checked(1)] {
        unreached(&mut fleet, at(0.0), 0, 1);
        let mut now = at(0.0);
        while fleet.is_up() {
            now = next_checks(&mut fleet, |_| false);
        }
        assert!(now <= at(0.5), "{now:?}");
        // If only that request's connection closed, nothing follows from it.
        fleet.handle_answer(now, NodeId(0), AsksFor::Ungated);
        unreached(&mut fleet, now, 0, 1);
        next_checks(&mut fleet, |_| true);
        assert!(fleet.is_up());
    }
}

#[test]
fn of_several_nodes_all_must_be_out_of_reach_before_the_application_is_down() {
    for nodes in 2..6 {
        let mut fleet = fleet(nodes);
        for node in 1..nodes {
            unreached(&mut fleet, at(1.0), node, 20);
        }
        assert!(fleet.is_up(), "one answers as far as is known");
        unreached(&mut fleet, at(1.0), 0, LOST_AFTER);
        assert!(!fleet.is_up(), "{nodes}");
        // A node that was ejected returns only to be checked.
        for _ in 0..200 {
            next_checks(&mut fleet, |_| false);
            assert!(!fleet.is_up(), "{nodes}");
        }
        next_checks(&mut fleet, |_| true);
        assert!(fleet.is_up(), "{nodes}");
    }
}

fn lost(fleet: &mut Fleet, now: Instant, node: u32, times: u32) {
    (0..times).for_each(|_| fleet.handle_lost(now, NodeId(node)));
}

#[test]
fn lost_requests_alone_take_no_node_out() {
    for mut fleet in [fleet(1), fleet(2), checked(1), checked(2)] {
        // No other client sends requests, so no other request's answer shows that the node is up.
        for second in 0..60 {
            lost(&mut fleet, at(f64::from(second)), 0, 20);
            while fleet.poll_timeout().is_some_and(|due| due < at(f64::from(second + 1))) {
                // An application with work for many seconds, which takes a request and does not get
                // to it, is there as well.
                next_looks(
                    &mut fleet,
                    |_| if second % 9 < 5 { Checked::Accepted } else { Checked::Answered },
                );
            }
            assert_eq!(status(&fleet, 0), Status::Up, "second {second}");
        }
        assert_eq!(changes(&mut fleet), []);
    }
}

#[test]
fn lost_requests_have_the_node_looked_at_at_once_and_at_most_once_a_second() {
    let mut fleet = fleet(1);
    let mut looks = 0;
    for tenth in 0..100 {
        let now = at(10.0 + f64::from(tenth) / 10.0);
        lost(&mut fleet, now, 0, 5);
        assert!(fleet.is_doubted(NodeId(0)), "a check is to ask for an answer");
        while fleet.poll_timeout().is_some_and(|due| due <= now) {
            assert_eq!(next_looks(&mut fleet, |_| Checked::Answered), now);
            looks += 1;
        }
        assert!(looks > 0, "at once");
    }
    assert!((9..=11).contains(&looks), "{looks} in ten seconds");
}

#[test]
fn an_application_that_closes_everything_is_down_within_a_second_of_the_first_lost_request() {
    for mut fleet in [fleet(1), checked(1)] {
        lost(&mut fleet, at(10.0), 0, 1);
        let mut now = at(10.0);
        while fleet.is_up() {
            now = next_looks(&mut fleet, |_| Checked::Closed);
        }
        assert!(now <= at(11.0), "{now:?}");
        // An accepted connection is no sign of life; an answer is.
        now = next_looks(&mut fleet, |_| Checked::Accepted);
        assert!(!fleet.is_up(), "{now:?}");
        next_looks(&mut fleet, |_| Checked::Answered);
        assert!(fleet.is_up());
    }
}

#[test]
fn an_answer_to_anybody_speaks_for_a_node_that_closes_what_checks_ask_for() {
    let mut fleet = fleet(1);
    for second in 10..60 {
        lost(&mut fleet, at(f64::from(second)), 0, 5);
        for _ in 0..LOST_AFTER - 1 {
            next_looks(&mut fleet, |_| Checked::Closed);
        }
        fleet.handle_answer(at(f64::from(second) + 0.9), NodeId(0), AsksFor::Ungated);
        assert!(fleet.is_up(), "second {second}");
    }
}

#[test]
fn a_node_of_two_that_closes_everything_is_ejected_once_a_check_bears_it_out() {
    let mut fleet = fleet(2);
    lost(&mut fleet, at(10.0), 0, 4);
    assert_eq!(status(&fleet, 0), Status::Up);
    next_looks(&mut fleet, |_| Checked::Closed);
    assert_eq!(status(&fleet, 0), Status::Ejected);
    // On probation, too, a lost request is not a failure of the node.
    fleet.handle_timeout(at(15.0));
    lost(&mut fleet, at(15.0), 0, 4);
    assert_eq!(status(&fleet, 0), Status::Up);
}

#[test]
fn a_node_that_is_down_is_found_within_two_seconds_of_its_return() {
    let checks = Some(CheckParams { interval: 10 * SECOND, down_after: 3, up_after: 2 });
    let mut fleet = fleet_with(1, Params { checks, ..Params::default() });
    let mut now = Instant::ORIGIN;
    while fleet.is_up() {
        now = next_checks(&mut fleet, |_| false);
    }
    for _ in 0..5 {
        let next = next_checks(&mut fleet, |_| false);
        assert!(next.since(now) <= SECOND, "looked at each second");
        now = next;
    }
    let back = now;
    while !fleet.is_up() {
        now = next_checks(&mut fleet, |_| true);
    }
    assert!(now.since(back) < 2 * SECOND, "{:?}", now.since(back));
}

#[test]
fn two_nodes_never_differ_by_more_than_one_request() {
    let mut fleet = fleet(2);
    for _ in 0..101 {
        fleet.pick(at(0.0), AsksFor::Ungated, None).unwrap();
        assert!(fleet.in_flight(NodeId(0)).abs_diff(fleet.in_flight(NodeId(1))) <= 1);
    }
}

#[test]
fn the_only_node_gets_everything_whatever_it_does() {
    let mut fleet = fleet(1);
    fail(&mut fleet, at(0.0), 0, 100);
    let pick = fleet.pick(at(0.0), AsksFor::Ungated, None).unwrap();
    assert_eq!(pick, Pick { node: NodeId(0), reason: PickReason::OnlyOne });
    assert_eq!(fleet.pick(at(0.0), AsksFor::Ungated, Some(NodeId(0))).unwrap().reason, PickReason::NoOther);
}

#[test]
fn all_of_some_nodes_are_compared_and_two_of_many() {
    for (nodes, reason, apart) in [(10, PickReason::LeastInFlight, 1), (100, PickReason::PowerOfTwo, 10)] {
        let mut fleet = fleet(nodes);
        for _ in 0..nodes * 100 {
            assert_eq!(fleet.pick(at(0.0), AsksFor::Ungated, None).unwrap().reason, reason);
        }
        let in_flight: Vec<_> = fleet.view().iter().map(|node| node.in_flight).collect();
        assert!(in_flight.iter().all(|count| count.abs_diff(100) <= apart), "{in_flight:?}");
    }
}

#[test]
fn a_retry_goes_to_another_node_while_one_is_well() {
    let mut fleet = fleet(3);
    for _ in 0..100 {
        assert_ne!(fleet.pick(at(0.0), AsksFor::Ungated, Some(NodeId(1))).unwrap().node, NodeId(1));
    }
}

#[test]
fn failures_in_a_row_leave_a_node_out_and_one_answer_forgives_them() {
    let mut fleet = fleet(2);
    fail(&mut fleet, at(0.0), 0, 4);
    fleet.handle_answer(at(0.0), NodeId(0), AsksFor::Ungated);
    fail(&mut fleet, at(0.0), 0, 4);
    assert_eq!(status(&fleet, 0), Status::Up);
    fail(&mut fleet, at(0.0), 0, 1);
    assert_eq!(status(&fleet, 0), Status::Ejected);
    assert_eq!(picks(&mut fleet, at(4.9), 50), BTreeSet::from([1]));
    assert_eq!(picks(&mut fleet, at(5.0), 50), BTreeSet::from([0, 1]));
    let told = changes(&mut fleet);
    assert_eq!(
        told,
        [
            (0, Status::Up, Status::Ejected, Why::RequestsFailed),
            (0, Status::Ejected, Status::Up, Why::EjectionOver)
        ]
    );
}

#[test]
fn time_out_doubles_up_to_its_bound_and_is_forgotten_after_a_healthy_stretch() {
    let mut fleet = fleet(2);
    let mut now = at(0.0);
    fail(&mut fleet, now, 0, 5);
    for lasts in [5, 10, 20, 40, 60, 60] {
        let until = fleet.view()[0].until.unwrap();
        assert_eq!(until, now + lasts * SECOND);
        now = until;
        fleet.handle_timeout(now);
        assert_eq!(status(&fleet, 0), Status::Up);
        // On probation, one failure is enough.
        fail(&mut fleet, now, 0, 1);
        assert_eq!(status(&fleet, 0), Status::Ejected);
    }
    now = fleet.view()[0].until.unwrap();
    fleet.handle_timeout(now);
    fleet.handle_answer(now, NodeId(0), AsksFor::Ungated);
    fail(&mut fleet, now, 0, 1);
    assert_eq!(status(&fleet, 0), Status::Up, "an answer ends the probation");
    fleet.handle_answer(now + 60 * SECOND, NodeId(0), AsksFor::Ungated);
    fail(&mut fleet, now + 61 * SECOND, 0, 5);
    assert_eq!(fleet.view()[0].until, Some(now + 66 * SECOND));
}

#[test]
fn at_most_half_are_ejected_and_none_of_a_single_one() {
    for (nodes, out) in [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)] {
        let mut fleet = fleet(nodes);
        for node in 0..nodes {
            fail(&mut fleet, at(0.0), node, 100);
        }
        let ejected = fleet.view().iter().filter(|node| node.status == Status::Ejected).count();
        assert_eq!(ejected, out, "of {nodes}");
    }
}

#[test]
fn checks_take_a_node_out_and_back() {
    let mut fleet = checked(2);
    while status(&fleet, 0) == Status::Up {
        next_checks(&mut fleet, |node| node != NodeId(0));
        assert!(fleet.view()[0].since < at(8.0), "three checks of two seconds are enough");
    }
    assert_eq!(picks(&mut fleet, at(8.0), 50), BTreeSet::from([1]));
    while status(&fleet, 0) == Status::Down {
        next_checks(&mut fleet, |_| true);
    }
    let told = changes(&mut fleet);
    assert_eq!(
        told,
        [(0, Status::Up, Status::Down, Why::ChecksFailed), (0, Status::Down, Status::Up, Why::ChecksPassed)]
    );
}

#[test]
fn checks_are_spread_and_keep_their_interval() {
    let mut fleet = checked(20);
    let first: BTreeSet<_> = fleet.nodes.iter().map(|node| node.health.due().unwrap()).collect();
    assert!(first.len() > 15 && first.iter().all(|due| *due <= at(2.0)), "{first:?}");
    let mut last = vec![None; 20];
    for _ in 0..200 {
        let now = fleet.poll_timeout().unwrap();
        fleet.handle_timeout(now);
        while let Some(Output::Check(node)) = fleet.poll_output() {
            fleet.handle_check(now, node, Checked::Accepted);
            if let Some(before) = last[node.index()].replace(now) {
                let apart = now.secs_since(before);
                assert!((1.8..=2.2).contains(&apart), "{apart}");
            }
        }
    }
}

#[test]
fn an_unanswered_check_is_not_asked_for_twice() {
    let mut fleet = checked(1);
    fleet.handle_timeout(at(2.0));
    assert_eq!(fleet.poll_output(), Some(Output::Check(NodeId(0))));
    fleet.handle_timeout(at(100.0));
    assert_eq!(fleet.poll_output(), None);
    assert_eq!(fleet.poll_timeout(), None);
    fleet.handle_check(at(100.0), NodeId(0), Checked::Accepted);
    assert!(fleet.poll_timeout().is_some());
}

#[test]
fn a_check_that_was_not_made_says_nothing_and_is_made_again_soon() {
    for mut fleet in [fleet(1), checked(1)] {
        unreached(&mut fleet, at(0.5), 0, LOST_AFTER - 1);
        for _ in 0..10 {
            let now = next_looks(&mut fleet, |_| Checked::NotMade);
            assert!(fleet.poll_timeout().is_some_and(|next| next > now && next.secs_since(now) <= 1.0));
        }
        assert_eq!((fleet.view()[0].status, fleet.is_doubted(NodeId(0))), (Status::Up, true));
        next_looks(&mut fleet, |_| Checked::Answered);
        assert!(!fleet.is_doubted(NodeId(0)));
    }
}

#[test]
fn with_none_well_any_is_picked_but_never_one_that_drains() {
    let mut fleet = checked(3);
    while fleet.view().iter().any(|node| node.status == Status::Up) {
        next_checks(&mut fleet, |_| false);
    }
    fleet.drain(at(9.0), NodeId(2), true);
    let pick = fleet.pick(at(9.0), AsksFor::Ungated, None).unwrap();
    assert_eq!(pick.reason, PickReason::Panic);
    fleet.handle_unanswered(at(9.0), pick.node, AsksFor::Ungated);
    assert_eq!(picks(&mut fleet, at(9.0), 50), BTreeSet::from([0, 1]));
    fleet.drain(at(9.0), NodeId(0), true);
    assert_eq!(
        fleet.pick(at(9.0), AsksFor::Ungated, Some(NodeId(1))).unwrap().node,
        NodeId(1),
        "better the avoided than none"
    );
    fleet.drain(at(9.0), NodeId(1), true);
    assert_eq!(fleet.pick(at(9.0), AsksFor::Ungated, None), None);
}

#[test]
fn the_table_is_bounded() {
    let mut fleet = fleet(NODES_MAX as u32);
    assert_eq!(fleet.add_node(at(0.0)), Err(FleetFull));
}

#[test]
fn a_node_that_drains_is_removed_once_it_has_nothing_in_flight() {
    let mut fleet = fleet(2);
    let node = fleet.pick(at(0.0), AsksFor::Ungated, Some(NodeId(0))).unwrap().node;
    assert!(!fleet.remove_node(at(0.0), node), "it serves");
    fleet.drain(at(0.0), node, true);
    assert!(!fleet.remove_node(at(0.0), node), "a request is there");
    fleet.handle_unanswered(at(0.0), node, AsksFor::Ungated);
    assert!(fleet.remove_node(at(0.0), node));
    assert_eq!(fleet.view().iter().map(|node| node.node.0).collect::<Vec<_>>(), [0]);
    assert_eq!(picks(&mut fleet, at(1.0), 9), BTreeSet::from([0]));
    assert!(fleet.remove_node(at(1.0), node), "once more is no harm");
}

#[test]
fn a_node_that_is_held_back_and_drains_serves_again_once_both_are_over() {
    let mut fleet = fleet(2);
    let node = NodeId(1);
    fleet.hold_back(at(0.0), node, true);
    assert_eq!(picks(&mut fleet, at(0.0), 9), BTreeSet::from([0]));
    assert!(!fleet.remove_node(at(0.0), node), "it is to come back");
    fleet.drain(at(1.0), node, true);
    fleet.hold_back(at(2.0), node, false);
    assert_eq!(status(&fleet, 1), Status::Draining, "who found it says that it is gone");
    fleet.hold_back(at(3.0), node, true);
    fleet.drain(at(4.0), node, false);
    assert_eq!(status(&fleet, 1), Status::Draining, "the operator wants it out");
    fleet.hold_back(at(5.0), node, false);
    assert_eq!(status(&fleet, 1), Status::Up);
    assert_eq!(picks(&mut fleet, at(6.0), 99), BTreeSet::from([0, 1]));
}

#[test]
fn a_new_node_takes_a_place_that_is_free_and_none_of_its_past() {
    let mut fleet = checked(2);
    while status(&fleet, 1) == Status::Up {
        next_checks(&mut fleet, |node| node.0 == 0);
    }
    fleet.drain(at(50.0), NodeId(1), true);
    assert!(fleet.remove_node(at(50.0), NodeId(1)));
    assert_eq!(fleet.add_node(at(51.0)), Ok(NodeId(1)));
    assert_eq!(fleet.add_node(at(51.0)), Ok(NodeId(2)));
    assert_eq!(status(&fleet, 1), Status::Up);
    assert_eq!(picks(&mut fleet, at(80.0), 99), BTreeSet::from([0, 1, 2]));
}

#[test]
fn a_fleet_may_be_empty_for_a_while() {
    let mut fleet = fleet(1);
    fleet.drain(at(0.0), NodeId(0), true);
    assert!(fleet.remove_node(at(0.0), NodeId(0)));
    assert_eq!(
        (fleet.pick(at(0.0), AsksFor::Ungated, None), fleet.is_up(), fleet.poll_timeout()),
        (None, false, None)
    );
    assert_eq!(fleet.add_node(at(1.0)), Ok(NodeId(0)));
    assert!(fleet.is_up() && fleet.pick(at(1.0), AsksFor::Ungated, None).is_some());
}

/// What may happen to a fleet.
#[derive(Clone, Debug)]
enum Event {
    Pick(Option<u32>),
    Release,
    Answer(u32),
    Failure(u32),
    Unreached(u32),
    Lost(u32),
    Timeout,
    Check(Checked),
    Drain(u32, bool),
    Add,
    Remove(u32),
    Wait(u32),
}

fn checked_as() -> impl Strategy<Value = Checked> {
    proptest::sample::select(vec![
        Checked::Answered,
        Checked::Accepted,
        Checked::Mute,
        Checked::TimedOut,
        Checked::Failed,
        Checked::Closed,
        Checked::Unreached,
        Checked::NotMade,
    ])
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => proptest::option::of(0..6u32).prop_map(Event::Pick),
        4 => Just(Event::Release),
        1 => (0..6u32).prop_map(Event::Answer),
        8 => (0..6u32).prop_map(Event::Failure),
        8 => (0..6u32).prop_map(Event::Unreached),
        4 => (0..6u32).prop_map(Event::Lost),
        3 => Just(Event::Timeout),
        4 => checked_as().prop_map(Event::Check),
        1 => (0..6u32, any::<bool>()).prop_map(|(node, draining)| Event::Drain(node, draining)),
        1 => Just(Event::Add),
        2 => (0..6u32).prop_map(Event::Remove),
        3 => (0..5_000u32).prop_map(Event::Wait),
    ]
}

/// Plays `events` and returns everything the fleet reported, checking its promises after each.
fn play(nodes: u32, seed: u64, events: &[Event]) -> Vec<String> {
    let checks = Some(CheckParams { interval: SECOND, down_after: 2, up_after: 1 });
    let ejection = EjectionParams { after: 2, base: SECOND, max: 8 * SECOND };
    let mut fleet = fleet_with(nodes, Params { checks, ejection, seed, ..Params::default() });
    let mut now = Instant::ORIGIN;
    let mut held = Vec::new();
    let mut to_check: VecDeque<NodeId> = VecDeque::new();
    let mut said = Vec::new();
    for event in events {
        match *event {
            Event::Pick(avoid) => {
                fleet.end_ejections(now);
                let before = fleet.view();
                let is_silent = |node: &NodeView| fleet.shares.is_silent(now, node.node.index());
                let any_is_silent = before.iter().any(is_silent);
                let pick = fleet.pick(now, AsksFor::Ungated, avoid.map(NodeId));
                let well: Vec<_> = before.iter().filter(|node| node.status == Status::Up).collect();
                let able = before.iter().any(|node| node.status != Status::Draining);
                assert_eq!(pick.is_some(), able);
                if let Some(pick) = pick {
                    let chosen = *before.iter().find(|node| node.node == pick.node).unwrap();
                    assert_ne!(chosen.status, Status::Draining);
                    assert_eq!(chosen.status == Status::Up, !well.is_empty());
                    let others = well.iter().any(|node| Some(node.node.0) != avoid);
                    assert!(!(others && Some(pick.node.0) == avoid), "the avoided one was not needed");
                    // Who has come back lately has less than its share for a while.
                    let is_warm = |node: &&NodeView| {
                        node.why == Why::Initial && node.since == Instant::ORIGIN
                            || now.since(node.since) > 10 * SECOND
                    };
                    if avoid.is_none() && !any_is_silent && !well.is_empty() && well.iter().all(is_warm) {
                        assert!(
                            well.iter().all(|node| node.in_flight >= chosen.in_flight),
                            "exact least in flight"
                        );
                    }
                    held.push(pick.node);
                }
                said.push(format!("{pick:?}"));
            }
            Event::Release => {
                if let Some(node) = held.pop() {
                    fleet.handle_unanswered(now, node, AsksFor::Ungated);
                }
            }
            Event::Answer(node) => fleet.handle_answer(now, NodeId(node), AsksFor::Ungated),
            Event::Failure(node) => fleet.handle_failure(now, NodeId(node)),
            Event::Unreached(node) => fleet.handle_unreached(now, NodeId(node)),
            Event::Lost(node) => fleet.handle_lost(now, NodeId(node)),
            Event::Timeout => {
                fleet.handle_timeout(now);
                assert!(
                    fleet.poll_timeout().is_none_or(|next| next > now),
                    "asked for a moment that is over"
                );
            }
            Event::Check(checked) => {
                if let Some(node) = to_check.pop_front() {
                    fleet.handle_check(now, node, checked);
                }
            }
            Event::Drain(node, draining) => fleet.drain(now, NodeId(node), draining),
            Event::Add => {
                if fleet.view().len() < 8 {
                    let new = fleet.add_node(now).unwrap();
                    assert_eq!((status(&fleet, new.0), fleet.in_flight(new)), (Status::Up, 0));
                }
            }
            Event::Remove(node) => {
                if fleet.remove_node(now, NodeId(node)) {
                    assert!(!held.contains(&NodeId(node)), "a request was lost");
                    assert!(fleet.view().iter().all(|view| view.node.0 != node));
                    to_check.retain(|checked| checked.0 != node);
                }
            }
            Event::Wait(millis) => now += Duration::from_millis(u64::from(millis)),
        }
        while let Some(output) = fleet.poll_output() {
            said.push(format!("{output:?}"));
            match output {
                Output::Check(node) => {
                    assert!(!to_check.contains(&node), "a node is checked once at a time");
                    to_check.push_back(node);
                }
                Output::Changed(change) => assert_ne!(change.from, change.to),
                Output::Hangs(_) | Output::Proven(_) => {}
                Output::Released { .. } => panic!("no session is kept anywhere"),
            }
        }
        let view = fleet.view();
        let in_flight: usize = view.iter().map(|node| node.in_flight as usize).sum();
        assert_eq!(in_flight, held.len(), "in flight = picked - released");
        let out = fleet.present().filter(|(_, node)| node.ejection.is_out()).count();
        assert!(out <= view.len() / 2, "more than half ejected");
    }
    said
}

proptest! {
    #[test]
    fn the_promises_hold_whatever_happens(
        nodes in 1..6u32,
        seed: u64,
        events in proptest::collection::vec(event(), 1..200),
    ) {
        let said = play(nodes, seed, &events);
        prop_assert_eq!(said, play(nodes, seed, &events), "same events, same decisions");
    }
}

/// What a review found of the first shares: each is a way in which they were worse than none.
mod shares {
    use super::*;
    use suimon_model::{Rng, RouteId};

    fn served(fleet: &mut Fleet, now: Instant, node: NodeId, route: u32, millis: u64, is_good: bool) {
        fleet.handle_answer(now, node, AsksFor::Ungated);
        fleet.handle_release(now, node);
        let took = Duration::from_millis(millis);
        fleet.handle_served(now, node, &Served { route: RouteId(route), took, is_good, is_bound: false });
    }

    /// Plays one request after the other, and returns how many each node got.
    fn one_by_one(
        fleet: &mut Fleet,
        from: f64,
        count: u32,
        took: impl Fn(u32, NodeId) -> (u64, bool),
    ) -> Vec<u32> {
        let mut got = vec![0; fleet.nodes.len()];
        for number in 0..count {
            let now = at(from + f64::from(number));
            let node = fleet.pick(now, AsksFor::Ungated, None).unwrap().node;
            got[node.index()] += 1;
            let (millis, is_good) = took(number, node);
            served(fleet, now + Duration::from_millis(millis), node, 0, millis, is_good);
        }
        got
    }

    #[test]
    fn one_error_does_not_cost_a_node_all_requests_for_good() {
        let mut fleet = fleet(2);
        one_by_one(&mut fleet, 0.0, 20, |_, _| (30, true));
        one_by_one(&mut fleet, 20.0, 1, |_, _| (30, false));
        one_by_one(&mut fleet, 21.0, 60, |_, _| (30, true));
        let got = one_by_one(&mut fleet, 81.0, 1000, |_, _| (30, true));
        assert!(got.iter().all(|got| *got > 350), "{got:?}");
    }

    #[test]
    fn a_favourite_that_turns_slow_is_left_by_others_requests() {
        let mut fleet = fleet(2);
        let mut rng = Rng::new(5);
        let random: Vec<u64> = (0..2000).map(|_| 20 + rng.below(20) as u64).collect();
        one_by_one(&mut fleet, 0.0, 2000, |number, _| (random[number as usize], true));
        let got = one_by_one(&mut fleet, 2000.0, 2000, |_, node| (if node.0 == 0 { 95 } else { 30 }, true));
        assert!(got[1] > 600, "{got:?}");
    }

    #[test]
    fn a_route_that_fails_on_all_nodes_moves_no_share_far() {
        let mut fleet = fleet(4);
        for number in 0..20_000_u32 {
            let now = at(f64::from(number) * 0.05);
            let node = fleet.pick(now, AsksFor::Ungated, None).unwrap().node;
            let fails = number % 3 == 0;
            served(&mut fleet, now, node, u32::from(fails), 30, !fails);
        }
        let shares: Vec<f64> = fleet.view().iter().map(|node| node.share).collect();
        assert!(shares.iter().all(|share| (0.6..1.6).contains(share)), "{shares:?}");
    }
}

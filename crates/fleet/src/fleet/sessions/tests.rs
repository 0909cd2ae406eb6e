use super::*;
use crate::{AffinityParams, AsksFor, CheckParams, EjectionParams, Params};
use proptest::prelude::*;
use std::collections::BTreeMap;
use suimon_model::Duration;

const SECOND: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(600);

fn at(seconds: u64) -> Instant {
    Instant::ORIGIN + Duration::from_secs(seconds)
}

fn fleet(nodes: u32) -> Fleet {
    let params = Params {
        affinity: Some(AffinityParams { idle: IDLE }),
        ejection: EjectionParams { after: 2, base: 5 * SECOND, max: 60 * SECOND },
        checks: Some(CheckParams { interval: 2 * SECOND, down_after: 1, up_after: 1 }),
        ..Params::default()
    };
    let mut fleet = Fleet::new(params);
    for _ in 0..nodes {
        fleet.add_node(Instant::ORIGIN).unwrap();
    }
    fleet
}

fn key(value: u64) -> SessionKey {
    SessionKey { value, suffix: None }
}

/// Has a node answer a request with `key`, and returns which one did.
fn ask(fleet: &mut Fleet, now: Instant, asked: SessionKey) -> NodeId {
    let Pick { node, .. } = fleet.pick_for(now, AsksFor::Ungated, asked, None).unwrap();
    fleet.handle_session(now, node, Some(asked), SessionSaid::Nothing);
    fleet.handle_unanswered(now, node, AsksFor::Ungated);
    node
}

/// Begins a session, and returns where it is.
fn begin(fleet: &mut Fleet, now: Instant, value: u64) -> NodeId {
    let Pick { node, .. } = fleet.pick(now, AsksFor::Ungated, None).unwrap();
    fleet.handle_session(now, node, None, SessionSaid::Set(key(value)));
    fleet.handle_unanswered(now, node, AsksFor::Ungated);
    node
}

fn released(fleet: &mut Fleet) -> Vec<(u32, u32)> {
    let said = std::iter::from_fn(|| fleet.poll_output());
    said.filter_map(|said| match said {
        Output::Released { node, sessions } => Some((node.0, sessions)),
        _ => None,
    })
    .collect()
}

#[test]
fn a_session_goes_to_its_node_however_much_that_has_to_do() {
    let mut fleet = fleet(3);
    let home = begin(&mut fleet, at(0), 7);
    for _ in 0..50 {
        let pick = fleet.pick_for(at(1), AsksFor::Ungated, key(7), None).unwrap();
        assert_eq!(pick, Pick { node: home, reason: PickReason::SameSession });
    }
    // Others do not stand behind them.
    assert_ne!(fleet.pick(at(1), AsksFor::Ungated, None).unwrap().node, home);
}

#[test]
fn sessions_of_a_node_that_is_down_go_elsewhere_one_by_one_and_stay_there() {
    let mut fleet = fleet(2);
    let homes: Vec<_> = (0..20).map(|value| begin(&mut fleet, at(0), value)).collect();
    (0..2).for_each(|_| fleet.handle_failure(at(1), NodeId(0)));
    assert!((0..20).all(|value| ask(&mut fleet, at(2), key(value)) == NodeId(1)));
    let moved = homes.iter().filter(|home| home.0 == 0).count();
    let told = released(&mut fleet);
    assert_eq!(told, [(0, 1)], "the others are told later, together");
    // It has returned, and they have not.
    fleet.handle_timeout(at(20));
    assert_eq!(released(&mut fleet), [(0, moved as u32 - 1)]);
    assert!((0..20).all(|value| ask(&mut fleet, at(21), key(value)) == NodeId(1)));
    let seen: Vec<_> = fleet.view().iter().map(|node| node.sessions).collect();
    assert_eq!(seen, [Some((0, moved as u64)), Some((20, 0))]);
}

#[test]
fn a_session_that_did_not_ask_meanwhile_is_still_at_its_node() {
    let mut fleet = fleet(2);
    let home = begin(&mut fleet, at(0), 7);
    (0..2).for_each(|_| fleet.handle_failure(at(1), home));
    assert_eq!(ask(&mut fleet, at(20), key(7)), home);
}

#[test]
fn where_no_node_is_up_a_session_waits_for_its_own() {
    let mut fleet = fleet(2);
    let home = begin(&mut fleet, at(0), 7);
    for node in [0, 1, 0, 1, 0, 1] {
        fleet.handle_unreached(at(1), NodeId(node));
    }
    assert!(!fleet.is_up());
    assert!((0..20).all(|_| ask(&mut fleet, at(2), key(7)) == home));
}

#[test]
fn a_node_to_be_avoided_is() {
    let mut fleet = fleet(2);
    let home = begin(&mut fleet, at(0), 7);
    assert_ne!(fleet.pick_for(at(1), AsksFor::Ungated, key(7), Some(home)).unwrap().node, home);
}

#[test]
fn a_node_that_drains_keeps_its_sessions_and_gets_no_new_ones_until_they_end() {
    let mut fleet = fleet(2);
    let home = begin(&mut fleet, at(0), 7);
    fleet.drain(at(1), home, true);
    assert!((10..30).all(|value| begin(&mut fleet, at(1), value) != home));
    assert_eq!(ask(&mut fleet, at(500), key(7)), home);
    // A log-in gives the session another name.
    let pick = fleet.pick_for(at(500), AsksFor::Ungated, key(7), None).unwrap();
    fleet.handle_session(at(500), pick.node, Some(key(7)), SessionSaid::Set(key(8)));
    fleet.handle_unanswered(at(500), pick.node, AsksFor::Ungated);
    assert!(!fleet.remove_node(at(501), home));
    assert_eq!(ask(&mut fleet, at(1000), key(8)), home);
    fleet.handle_session(at(1001), home, Some(key(8)), SessionSaid::Withdrawn);
    assert!(!fleet.remove_node(at(1002), home));
    assert!(fleet.remove_node(at(1031), home));
    assert_eq!(released(&mut fleet), []);
}

#[test]
fn a_node_whose_time_to_drain_is_over_lets_its_sessions_go() {
    let mut fleet = fleet(2);
    let home = begin(&mut fleet, at(0), 7);
    fleet.drain(at(1), home, true);
    assert!(!fleet.remove_node(at(2), home));
    fleet.release_sessions(at(3), home);
    assert_eq!(released(&mut fleet), [(home.0, 1)]);
    assert!(fleet.remove_node(at(3), home));
    let other = ask(&mut fleet, at(4), key(7));
    assert_ne!(other, home);
    assert_eq!(fleet.sessions(other), 1);
}

#[test]
fn without_affinity_a_cookie_leads_nowhere() {
    let mut fleet = Fleet::new(Params::default());
    (0..2).for_each(|_| _ = fleet.add_node(Instant::ORIGIN).unwrap());
    begin(&mut fleet, at(0), 7);
    let mut seen = [false; 2];
    (0..100).for_each(|_| seen[ask(&mut fleet, at(1), key(7)).index()] = true);
    assert_eq!(seen, [true; 2]);
    assert!(fleet.view().iter().all(|node| node.sessions.is_none()));
}

#[derive(Clone, Debug)]
enum Event {
    Begin(u64),
    Ask(u64),
    Replace(u64, u64),
    Withdraw(u64),
    Fail(u32),
    Drain(u32, bool),
    Add,
    Go(u32),
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let value = || 0..12u64;
    prop_oneof![
        5 => value().prop_map(Event::Begin),
        8 => value().prop_map(Event::Ask),
        2 => (value(), value()).prop_map(|(was, is)| Event::Replace(was, is)),
        1 => value().prop_map(Event::Withdraw),
        2 => (0..4u32).prop_map(Event::Fail),
        2 => (0..4u32, any::<bool>()).prop_map(|(node, draining)| Event::Drain(node, draining)),
        1 => Just(Event::Add),
        1 => (0..4u32).prop_map(Event::Go),
        2 => (1..400u64).prop_map(Event::Wait),
    ]
}

/// What a session is known by: its node, unless that is gone; when it was last used, and whether it is
/// ending.
type Known = BTreeMap<u64, (Option<NodeId>, Instant, bool)>;

proptest! {
    /// A naive memory of the same says where each request must go.
    #[test]
    fn a_session_stays_at_its_node_while_that_can_be_had(
        events in proptest::collection::vec(event(), 1..150),
    ) {
        let (mut fleet, mut now, mut known) = (fleet(3), at(0), Known::new());
        for event in events {
            let life = |is_ending: bool| if is_ending { 30 * SECOND } else { IDLE };
            known.retain(|_, (_, used, is_ending)| now.since(*used) < life(*is_ending));
            let (asked, said) = match event {
                Event::Begin(value) => (None, SessionSaid::Set(key(value))),
                Event::Ask(value) => (Some(value), SessionSaid::Nothing),
                Event::Replace(was, is) => (Some(was), SessionSaid::Set(key(is))),
                Event::Withdraw(value) => (Some(value), SessionSaid::Withdrawn),
                Event::Fail(node) => {
                    fleet.handle_failure(now, NodeId(node));
                    continue;
                }
                Event::Drain(node, draining) => {
                    fleet.drain(now, NodeId(node), draining);
                    continue;
                }
                Event::Add => {
                    if fleet.view().len() < 4 {
                        fleet.add_node(now).unwrap();
                    }
                    continue;
                }
                Event::Go(node) => {
                    let node = NodeId(node);
                    if fleet.view().iter().any(|view| view.node == node && view.status == Status::Draining) {
                        let has = known.values().any(|(home, ..)| *home == Some(node));
                        prop_assert_eq!(fleet.remove_node(now, node), !has);
                        fleet.release_sessions(now, node);
                        prop_assert!(fleet.remove_node(now, node));
                        known.values_mut().for_each(|(home, ..)| *home = home.filter(|home| *home != node));
                    }
                    continue;
                }
                Event::Wait(seconds) => {
                    now += Duration::from_secs(seconds);
                    fleet.handle_timeout(now);
                    continue;
                }
            };
            let pick = match asked {
                Some(value) => fleet.pick_for(now, AsksFor::Ungated, key(value), None),
                None => fleet.pick(now, AsksFor::Ungated, None),
            };
            let Some(Pick { node, reason }) = pick else {
                // The session was used, though there is no node for it.
                if let Some((_, used, false)) = asked.and_then(|asked| known.get_mut(&asked)) {
                    *used = now;
                }
                continue;
            };
            let statuses: BTreeMap<_, _> = fleet.view().iter().map(|view| (view.node, view.status)).collect();
            let home = asked.and_then(|asked| known.get(&asked)?.0);
            let can_be_had = |status: Status| match status {
                Status::Up | Status::Draining => true,
                _ => statuses.values().all(|other| *other != Status::Up),
            };
            match home.filter(|home| can_be_had(statuses[home])) {
                Some(home) => prop_assert_eq!((node, reason), (home, PickReason::SameSession)),
                None => prop_assert_ne!(statuses[&node], Status::Draining),
            }
            fleet.handle_session(now, node, asked.map(key), said);
            fleet.handle_unanswered(now, node, AsksFor::Ungated);
            let before = asked.and_then(|asked| Some((asked, *known.get(&asked)?)));
            match (before, said) {
                (Some((asked, (home, _, false))), SessionSaid::Set(new)) if asked != new.value => {
                    known.insert(asked, (home, now, true));
                }
                (Some((asked, (.., false))), SessionSaid::Withdrawn) => {
                    known.insert(asked, (Some(node), now, true));
                }
                (Some((asked, (.., false))), SessionSaid::Nothing) => {
                    known.insert(asked, (Some(node), now, false));
                }
                _ => {}
            }
            if let SessionSaid::Set(new) = said {
                known.insert(new.value, (Some(node), now, false));
            }
            for &node in statuses.keys() {
                let here = known.values().filter(|(home, ..)| *home == Some(node)).count();
                prop_assert_eq!(fleet.sessions(node) as usize, here);
            }
        }
    }
}

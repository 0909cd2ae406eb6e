use super::*;

const IDLE: Duration = Duration::from_secs(1800);

fn at(seconds: u64) -> Instant {
    Instant::ORIGIN + Duration::from_secs(seconds)
}

fn affinity(nodes: u32) -> Affinity {
    let mut affinity = Affinity::new(AffinityParams { idle: IDLE });
    (0..nodes).for_each(|node| affinity.add_node(NodeId(node)));
    affinity
}

fn key(value: u64) -> SessionKey {
    SessionKey { value, suffix: None }
}

fn named(value: u64, suffix: u64) -> SessionKey {
    SessionKey { value, suffix: Some(suffix) }
}

fn begin(affinity: &mut Affinity, now: Instant, node: u32, key: SessionKey) {
    affinity.handle_answer(now, NodeId(node), None, SessionSaid::Set(key));
}

#[test]
fn a_session_is_at_the_node_that_has_set_its_cookie() {
    let mut affinity = affinity(3);
    begin(&mut affinity, at(0), 1, key(7));
    assert_eq!(affinity.home(at(1), key(7)), Some(NodeId(1)));
    assert_eq!(affinity.home(at(1), key(8)), None);
    assert_eq!([0, 1, 2].map(|node| affinity.count(NodeId(node)).0), [0, 1, 0]);
}

#[test]
fn an_answer_without_the_cookie_teaches_nothing_of_a_session_that_is_unknown() {
    let mut affinity = affinity(2);
    affinity.handle_answer(at(0), NodeId(1), Some(key(7)), SessionSaid::Nothing);
    assert_eq!(affinity.home(at(1), key(7)), None);
}

#[test]
fn a_session_is_forgotten_once_it_is_silent_for_too_long() {
    let mut affinity = affinity(1);
    begin(&mut affinity, at(0), 0, key(7));
    assert_eq!(affinity.home(at(1799), key(7)), Some(NodeId(0)));
    assert_eq!(affinity.home(at(3598), key(7)), Some(NodeId(0)), "a request is a use");
    assert_eq!(affinity.home(at(5398), key(7)), None);
    assert_eq!(affinity.count(NodeId(0)).0, 0);
}

#[test]
fn a_cookie_that_is_withdrawn_still_leads_what_is_under_way() {
    let mut affinity = affinity(2);
    begin(&mut affinity, at(0), 1, key(7));
    affinity.handle_answer(at(10), NodeId(1), Some(key(7)), SessionSaid::Withdrawn);
    assert_eq!(affinity.home(at(39), key(7)), Some(NodeId(1)));
    assert_eq!(affinity.home(at(40), key(7)), None, "and use does not prolong it");
}

#[test]
fn a_cookie_that_is_replaced_is_the_same_session() {
    let mut affinity = affinity(2);
    begin(&mut affinity, at(0), 1, key(7));
    affinity.handle_answer(at(10), NodeId(1), Some(key(7)), SessionSaid::Set(key(8)));
    assert_eq!(affinity.home(at(39), key(7)), Some(NodeId(1)));
    assert_eq!(affinity.home(at(40), key(7)), None);
    assert_eq!(affinity.home(at(40), key(8)), Some(NodeId(1)));
    assert_eq!(affinity.count(NodeId(1)), (1, 0));
}

#[test]
fn a_value_that_is_set_again_goes_on() {
    let mut affinity = affinity(2);
    begin(&mut affinity, at(0), 1, key(7));
    affinity.handle_answer(at(10), NodeId(1), Some(key(7)), SessionSaid::Withdrawn);
    begin(&mut affinity, at(20), 0, key(7));
    assert_eq!(affinity.home(at(1000), key(7)), Some(NodeId(0)));
    assert_eq!([0, 1].map(|node| affinity.count(NodeId(node)).0), [1, 0]);
}

#[test]
fn a_session_that_is_answered_elsewhere_is_there_from_then_on_and_counts_as_lost() {
    let mut affinity = affinity(2);
    begin(&mut affinity, at(0), 1, key(7));
    affinity.handle_answer(at(1), NodeId(0), Some(key(7)), SessionSaid::Nothing);
    assert_eq!(affinity.home(at(2), key(7)), Some(NodeId(0)));
    assert_eq!([0, 1].map(|node| affinity.count(NodeId(node))), [(1, 0), (0, 1)]);
    assert_eq!(affinity.poll_released(at(2)), Some((NodeId(1), 1)));
}

#[test]
fn losses_are_told_at_once_and_then_together_once_in_a_while() {
    let mut affinity = affinity(2);
    (0..9).for_each(|value| begin(&mut affinity, at(0), 1, key(value)));
    let lose = |affinity: &mut Affinity, now, value| {
        affinity.handle_answer(now, NodeId(0), Some(key(value)), SessionSaid::Nothing);
    };
    lose(&mut affinity, at(1), 0);
    assert_eq!(affinity.poll_released(at(1)), Some((NodeId(1), 1)));
    (1..4).for_each(|value| lose(&mut affinity, at(2), value));
    assert_eq!((affinity.poll_released(at(2)), affinity.due()), (None, Some(at(11))));
    assert_eq!(affinity.poll_released(at(11)), Some((NodeId(1), 3)));
    assert_eq!(affinity.due(), None);
}

#[test]
fn the_next_node_with_an_id_has_no_sessions_of_the_one_before() {
    let mut affinity = affinity(2);
    begin(&mut affinity, at(0), 1, key(7));
    affinity.release(NodeId(1));
    assert_eq!(affinity.poll_released(at(0)), Some((NodeId(1), 1)));
    assert_eq!(affinity.home(at(1), key(7)), None);
    affinity.add_node(NodeId(1));
    assert_eq!(affinity.home(at(1), key(7)), None);
    assert_eq!(affinity.count(NodeId(1)), (0, 0));
    // Wherever it is answered, it stays.
    affinity.handle_answer(at(2), NodeId(0), Some(key(7)), SessionSaid::Nothing);
    assert_eq!(affinity.home(at(3), key(7)), Some(NodeId(0)));
    assert_eq!(affinity.count(NodeId(0)), (1, 0));
}

#[test]
fn of_too_many_those_used_longest_ago_are_forgotten() {
    let mut affinity = affinity(1);
    (0..AFFINITY_MAX as u64).for_each(|value| begin(&mut affinity, at(0), 0, key(value)));
    assert_eq!(affinity.home(at(1), key(0)), Some(NodeId(0)));
    begin(&mut affinity, at(2), 0, key(u64::MAX));
    assert_eq!(affinity.home(at(3), key(1)), None);
    assert_eq!(affinity.home(at(3), key(0)), Some(NodeId(0)));
    assert_eq!(affinity.count(NodeId(0)).0 as usize, AFFINITY_MAX);
}

#[test]
fn a_suffix_that_one_node_alone_sets_names_it() {
    let mut affinity = affinity(2);
    (0..2).for_each(|value| begin(&mut affinity, at(0), 1, named(value, 50)));
    assert_eq!(affinity.home(at(1), named(99, 50)), None, "twice may be by chance");
    // The same value once more says nothing new.
    begin(&mut affinity, at(1), 1, named(1, 50));
    assert_eq!(affinity.home(at(1), named(99, 50)), None);
    begin(&mut affinity, at(1), 1, named(2, 50));
    assert_eq!(affinity.home(at(1), named(99, 50)), Some(NodeId(1)));
    // It counts among the node's own once it was answered there.
    affinity.handle_answer(at(2), NodeId(1), Some(named(99, 50)), SessionSaid::Nothing);
    assert_eq!(affinity.count(NodeId(1)).0, 4);
}

#[test]
fn a_suffix_that_several_nodes_set_names_none() {
    let mut affinity = affinity(2);
    (0..5).for_each(|value| begin(&mut affinity, at(0), 1, named(value, 50)));
    begin(&mut affinity, at(0), 0, named(5, 50));
    assert_eq!(affinity.home(at(1), named(99, 50)), None);
    (6..20).for_each(|value| begin(&mut affinity, at(0), 1, named(value, 50)));
    assert_eq!(affinity.home(at(1), named(99, 50)), None);
}

#[test]
fn a_suffix_names_the_node_that_took_the_place_of_one_that_is_gone() {
    let mut affinity = affinity(2);
    (0..5).for_each(|value| begin(&mut affinity, at(0), 1, named(value, 50)));
    affinity.release(NodeId(1));
    assert_eq!(affinity.home(at(1), named(99, 50)), None);
    (5..8).for_each(|value| begin(&mut affinity, at(2), 0, named(value, 50)));
    assert_eq!(affinity.home(at(3), named(99, 50)), Some(NodeId(0)));
}

#[test]
fn suffixes_of_signed_values_do_not_crowd_out_names() {
    let mut affinity = affinity(1);
    (0..3).for_each(|value| begin(&mut affinity, at(0), 0, named(value, 50)));
    for value in 100..100 + 2 * SUFFIXES_MAX as u64 {
        begin(&mut affinity, at(0), 0, named(value, value));
        assert!(affinity.suffixes.len() <= SUFFIXES_MAX);
    }
    assert_eq!(affinity.home(at(1), named(99, 50)), Some(NodeId(0)));
}

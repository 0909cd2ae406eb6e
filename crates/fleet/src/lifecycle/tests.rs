use super::*;
use proptest::prelude::*;

fn at(second: f64) -> Instant {
    Instant::ORIGIN + seconds(second)
}

fn params(parked: u32, most: u32) -> LifecycleParams {
    LifecycleParams { parked, most, start_within: seconds(30.0), drain_within: seconds(60.0) }
}

fn said(nodes: &mut Lifecycle) -> Vec<LifecycleOutput> {
    std::iter::from_fn(|| nodes.poll_output()).collect()
}

use LifecycleOutput::{Drain, End, Serve, Start};

fn id(number: u64) -> BorrowedId {
    BorrowedId(number)
}

/// A provider whose nodes are all ready at once.
fn with(parked: u32, serving: u32) -> Lifecycle {
    let mut nodes = Lifecycle::new(params(parked, 8));
    nodes.set_wanted(at(0.0), serving);
    for output in said(&mut nodes) {
        if let Start(id) = output {
            nodes.handle_ready(at(1.0), id);
        }
    }
    said(&mut nodes);
    nodes
}

#[test]
fn nodes_are_started_serve_drain_and_end_the_newest_first() {
    let mut nodes = Lifecycle::new(params(0, 8));
    nodes.set_wanted(at(0.0), 2);
    assert_eq!(said(&mut nodes), [Start(id(0)), Start(id(1))]);
    nodes.handle_ready(at(0.5), id(1));
    assert_eq!(said(&mut nodes), [Serve(id(1))]);
    nodes.handle_ready(at(0.5), id(0));
    assert_eq!(said(&mut nodes), [Serve(id(0))]);
    assert_eq!(nodes.start_s(), Some(0.5));
    nodes.set_wanted(at(9.0), 1);
    assert_eq!(said(&mut nodes), [Drain(id(1))], "the one that was ordered last");
    nodes.handle_empty(at(10.0), id(1));
    assert_eq!(said(&mut nodes), [End(id(1))]);
    nodes.handle_gone(at(10.1), id(1));
    assert_eq!(nodes.count(), LifecycleCount { serving: 1, ..LifecycleCount::default() });
    assert_eq!((said(&mut nodes), nodes.poll_timeout()), (vec![], None));
}

#[test]
fn one_that_is_down_drains_before_any_other_and_is_neither_parked_nor_back() {
    let mut nodes = with(0, 3);
    nodes.handle_health(id(1), true);
    nodes.set_wanted(at(9.0), 2);
    assert_eq!(said(&mut nodes), [Drain(id(1))]);
    nodes.set_wanted(at(9.1), 3);
    assert_eq!(said(&mut nodes), [Start(id(3))], "what is down is no help");
    nodes.handle_empty(at(9.2), id(1));
    assert_eq!(said(&mut nodes), [End(id(1))]);
    nodes.handle_health(id(2), true);
    nodes.handle_health(id(2), false);
    nodes.handle_ready(at(9.3), id(3));
    nodes.set_wanted(at(9.4), 2);
    assert_eq!(said(&mut nodes), [Serve(id(3)), Drain(id(3))], "it is up again");
}

#[test]
fn one_that_drains_comes_back_before_any_other_is_asked_for() {
    let mut nodes = with(1, 2);
    nodes.set_wanted(at(9.0), 1);
    assert_eq!(said(&mut nodes), [Drain(id(1))]);
    nodes.set_wanted(at(9.1), 2);
    assert_eq!(said(&mut nodes), [Serve(id(1))]);
}

#[test]
fn a_parked_node_serves_at_once_and_another_is_started_behind_it() {
    let mut nodes = with(1, 1);
    assert_eq!((nodes.count().serving, nodes.count().parked), (1, 1));
    nodes.set_wanted(at(9.0), 2);
    assert_eq!(said(&mut nodes), [Serve(id(1)), Start(id(2))]);
}

#[test]
fn one_that_has_nothing_left_is_parked_before_any_is_ended() {
    let mut nodes = with(1, 2);
    nodes.set_wanted(at(9.0), 1);
    assert_eq!(said(&mut nodes), [Drain(id(1))], "it will be the parked one, or the other is ended");
    nodes.handle_empty(at(9.5), id(1));
    assert_eq!(said(&mut nodes), [End(id(1))]);
    nodes.handle_gone(at(9.6), id(2));
    assert_eq!(said(&mut nodes), [Start(id(3))], "the parked one ended by itself");
}

#[test]
fn nodes_that_are_ordered_and_not_needed_any_more_are_not_waited_for() {
    let mut nodes = with(0, 1);
    nodes.set_wanted(at(9.0), 3);
    assert_eq!(said(&mut nodes), [Start(id(1)), Start(id(2))]);
    nodes.set_wanted(at(9.5), 2);
    assert_eq!(said(&mut nodes), [End(id(2))]);
    nodes.handle_ready(at(9.6), id(2));
    assert_eq!(said(&mut nodes), [], "it was ready too late");
}

#[test]
fn a_node_that_ends_by_itself_is_replaced_at_once() {
    let mut nodes = with(0, 2);
    nodes.handle_gone(at(60.0), id(0));
    assert_eq!(said(&mut nodes), [Start(id(2))]);
    assert!(!nodes.fails_to_start());
}

#[test]
fn starts_that_fail_are_tried_one_at_a_time_and_ever_less_often() {
    let mut nodes = Lifecycle::new(params(0, 8));
    nodes.set_wanted(at(0.0), 3);
    let mut starts = said(&mut nodes);
    assert_eq!(starts.len(), 3);
    for start in starts.drain(..) {
        let Start(id) = start else { panic!("{start:?}") };
        nodes.handle_gone(at(0.0), id);
    }
    let mut waits = vec![];
    let mut now = at(0.0);
    for _ in 0..8 {
        let due = nodes.poll_timeout().unwrap();
        waits.push(due.secs_since(now).round());
        now = due;
        nodes.handle_timeout(now);
        let starts = said(&mut nodes);
        assert!(matches!(starts[..], [Start(_)]), "{starts:?}");
        let Start(id) = starts[0] else { unreachable!() };
        nodes.handle_gone(now, id);
    }
    // The first three failed at once.
    assert_eq!(waits, [4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]);
    now = nodes.poll_timeout().unwrap();
    nodes.handle_timeout(now);
    let starts = said(&mut nodes);
    let Start(first) = starts[0] else { panic!("{starts:?}") };
    nodes.handle_ready(now + seconds(1.0), first);
    let BorrowedId(number) = first;
    assert_eq!(said(&mut nodes), [Serve(first), Start(id(number + 1))], "one at a time: it may still fail");
    nodes.handle_timeout(now + seconds(7.0));
    assert_eq!(said(&mut nodes), [Start(id(number + 2))], "it lives");
}

#[test]
fn a_start_that_takes_too_long_has_failed() {
    let mut nodes = Lifecycle::new(params(0, 8));
    nodes.set_wanted(at(0.0), 1);
    said(&mut nodes);
    assert_eq!(nodes.poll_timeout(), Some(at(30.0)));
    nodes.handle_timeout(at(30.0));
    assert_eq!(said(&mut nodes), [End(id(0))]);
    nodes.handle_gone(at(30.1), id(0));
    assert_eq!(nodes.poll_timeout(), Some(at(31.0)));
}

#[test]
fn one_that_drains_for_too_long_is_ended() {
    let mut nodes = with(0, 2);
    nodes.set_wanted(at(9.0), 1);
    said(&mut nodes);
    assert_eq!(nodes.poll_timeout(), Some(at(69.0)));
    nodes.handle_timeout(at(69.0));
    assert_eq!(said(&mut nodes), [End(id(1))]);
}

#[test]
fn nodes_that_ran_before_serve_before_any_is_started() {
    let mut nodes = Lifecycle::new(params(0, 8));
    assert_eq!([nodes.adopt(at(0.0)), nodes.adopt(at(0.0))], [Some(id(0)), Some(id(1))]);
    nodes.set_wanted(at(0.0), 3);
    assert_eq!(said(&mut nodes), [Serve(id(1)), Serve(id(0)), Start(id(2))]);
}

#[test]
fn of_nodes_that_ran_before_all_served_but_those_that_were_parked() {
    let nodes = Lifecycle::new(params(2, 8));
    let served: Vec<u32> = [0, 1, 2, 3, 6, 7, 8, 9].map(|found| nodes.serving_of(found)).to_vec();
    assert_eq!(served, [0, 1, 1, 1, 4, 5, 8, 9], "with eight it is not known how many were parked");
}

#[test]
fn a_node_that_answers_nothing_is_ended_and_replaced() {
    let mut nodes = with(0, 2);
    nodes.handle_lost(at(60.0), id(0));
    assert_eq!(said(&mut nodes), [End(id(0)), Start(id(2))]);
    nodes.handle_lost(at(60.1), id(0));
    nodes.handle_gone(at(60.2), id(0));
    assert_eq!((said(&mut nodes), nodes.fails_to_start()), (vec![], false));
}

#[test]
fn nodes_that_could_not_be_ended_count_among_the_most_that_there_may_be() {
    let mut nodes = with(0, 6);
    for number in 0..3 {
        let another = id(6 + number);
        nodes.handle_lost(at(60.0), id(number));
        assert_eq!(said(&mut nodes), [End(id(number)), Start(another)], "it may end in a moment");
        nodes.handle_stuck(at(60.1), id(number), true);
        nodes.handle_ready(at(60.2), another);
        assert_eq!(said(&mut nodes), [Serve(another)]);
    }
    nodes.handle_lost(at(90.0), id(3));
    assert_eq!(said(&mut nodes), [End(id(3))], "five serve, and three could not be ended");
    assert_eq!((nodes.count().ending, nodes.count().stuck), (4, 3));
    nodes.handle_stuck(at(91.0), id(0), false);
    assert_eq!(said(&mut nodes), [Start(id(9))], "nobody can stop it, as it has ended");
}

#[derive(Clone, Debug)]
enum Event {
    Wanted(u32),
    Ready(usize),
    Empty(usize),
    Gone(usize),
    Health(usize, bool),
    Stuck(usize, bool),
    Wait(f64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..12u32).prop_map(Event::Wanted),
        (0..12usize).prop_map(Event::Ready),
        (0..12usize).prop_map(Event::Empty),
        (0..12usize).prop_map(Event::Gone),
        (0..12usize, any::<bool>()).prop_map(|(index, is_down)| Event::Health(index, is_down)),
        (0..12usize, any::<bool>()).prop_map(|(index, is_stuck)| Event::Stuck(index, is_stuck)),
        (0.0..40.0f64).prop_map(Event::Wait),
    ]
}

proptest! {
    /// What is told to the shell is what the shell would see, the number that serves is never more than
    /// what is wanted, and none is started beyond the most, whatever could not be ended.
    #[test]
    fn whatever_happens_the_shell_and_the_machine_agree(
        parked in 0..3u32,
        events in proptest::collection::vec(event(), 1..200),
    ) {
        let mut nodes = Lifecycle::new(params(parked, 8));
        let mut shell: Vec<(BorrowedId, LifecycleState)> = vec![];
        let (mut now, mut wanted) = (at(0.0), 0);
        for event in events {
            let of = |shell: &[(BorrowedId, _)], index: usize| shell.get(index).map(|node| node.0);
            match event {
                Event::Wanted(number) => {
                    wanted = number.min(8);
                    nodes.set_wanted(now, number);
                }
                Event::Ready(index) => {
                    if let Some((id, state)) = shell.get_mut(index)
                        && *state == LifecycleState::Starting
                    {
                        *state = LifecycleState::Parked;
                        nodes.handle_ready(now, *id);
                    }
                }
                Event::Empty(index) => {
                    if let Some(id) = of(&shell, index) {
                        if nodes.state(id) == Some(LifecycleState::Draining) {
                            shell[index].1 = LifecycleState::Parked;
                        }
                        nodes.handle_empty(now, id);
                    }
                }
                Event::Gone(index) => {
                    if let Some(id) = of(&shell, index) {
                        shell.remove(index);
                        nodes.handle_gone(now, id);
                    }
                }
                Event::Health(index, is_down) => {
                    if let Some(id) = of(&shell, index) {
                        nodes.handle_health(id, is_down);
                    }
                }
                Event::Stuck(index, is_stuck) => {
                    if let Some(id) = of(&shell, index) {
                        nodes.handle_stuck(now, id, is_stuck);
                    }
                }
                Event::Wait(wait) => {
                    now += seconds(wait);
                    nodes.handle_timeout(now);
                }
            }
            let mut has_started = false;
            for output in said(&mut nodes) {
                has_started |= matches!(output, Start(_));
                let (id, state) = match output {
                    Start(id) => {
                        prop_assert!(shell.iter().all(|node| node.0 != id), "started twice");
                        shell.push((id, LifecycleState::Starting));
                        continue;
                    }
                    Serve(id) => (id, LifecycleState::Serving),
                    Drain(id) => (id, LifecycleState::Draining),
                    End(id) => (id, LifecycleState::Ending),
                };
                let node = shell.iter_mut().find(|node| node.0 == id).unwrap();
                prop_assert_ne!(node.1, LifecycleState::Ending, "it was told to end");
                prop_assert!(state != LifecycleState::Serving || node.1 != LifecycleState::Starting);
                node.1 = state;
            }
            for (id, state) in &shell {
                prop_assert_eq!(nodes.state(*id), Some(*state));
            }
            let count = nodes.count();
            prop_assert!(count.serving <= wanted);
            prop_assert!(count.serving + count.parked + count.starting <= (wanted + parked).min(8));
            let present = count.serving + count.draining + count.starting + count.parked;
            let paid = count.serving + count.parked + count.starting + count.stuck;
            prop_assert!(!has_started || paid <= 8, "a start too many: {count:?}");
            let lacks = present < wanted && count.stuck == 0;
            prop_assert!(!lacks || nodes.poll_timeout().is_some(), "nothing would ever happen");
        }
    }
}

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn at(secs: f64) -> Instant {
    Instant::ORIGIN + seconds(secs)
}

fn params() -> WorkersParams {
    WorkersParams {
        starting_cores: 2,
        ready_within: Duration::from_secs(10),
        idle_within: Duration::from_secs(4),
        stop_within: Duration::from_secs(3),
        seed: 7,
        ..WorkersParams::default()
    }
}

fn outputs(workers: &mut Workers) -> Vec<WorkersOutput> {
    std::iter::from_fn(|| workers.poll_output()).collect()
}

fn started(workers: &mut Workers) -> Vec<WorkerId> {
    let starts = outputs(workers).into_iter().filter_map(|output| match output {
        WorkersOutput::Start(id) => Some(id),
        _ => None,
    });
    starts.collect()
}

/// A pool of `count` workers that are ready and no longer young.
fn pool(params: WorkersParams, count: usize) -> Workers {
    let mut workers = Workers::new(params);
    workers.set_wanted(at(0.0), count);
    while workers.count().ready() < count {
        let new = started(&mut workers);
        assert!(!new.is_empty());
        new.into_iter().for_each(|id| workers.handle_ready(at(0.0), id));
    }
    workers.handle_timeout(at(10.0));
    outputs(&mut workers);
    workers
}

#[test]
fn some_start_at_once_and_the_others_after_them() {
    let mut workers = Workers::new(params());
    workers.set_wanted(at(0.0), 5);
    let first = started(&mut workers);
    assert_eq!(first, [WorkerId(0), WorkerId(1)]);
    workers.handle_ready(at(0.5), WorkerId(1));
    assert_eq!(started(&mut workers), [WorkerId(2)]);
    assert_eq!(workers.count(), WorkersCount { starting: 2, idle: 1, ..WorkersCount::default() });
}

#[test]
fn the_one_used_last_is_used_next_and_the_others_are_the_surplus() {
    let mut workers = pool(params(), 3);
    let [first, second] = [workers.take(false).unwrap(), workers.take(false).unwrap()];
    workers.release(at(11.0), second, Release::Done);
    workers.release(at(11.0), first, Release::Done);
    assert_eq!(workers.take(false), Some(first));
    workers.release(at(11.0), first, Release::Done);
    workers.set_wanted(at(12.0), 1);
    let stopped: Vec<_> =
        outputs(&mut workers).into_iter().filter(|it| matches!(it, WorkersOutput::Stop(_))).collect();
    assert_eq!(stopped.len(), 2);
    assert!(!stopped.contains(&WorkersOutput::Stop(first)));
}

#[test]
fn requests_that_pass_by_the_gate_do_not_take_all_workers() {
    let mut workers = pool(params(), 5);
    let passing: Vec<_> = std::iter::from_fn(|| workers.take(true)).collect();
    assert_eq!((passing.len(), workers.count().gated()), (2, 3));
    workers.ungate(passing[0]);
    assert_eq!(workers.take(true), None, "its client is slow, but it has passed by the gate");
    let stream = workers.take(false).unwrap();
    workers.ungate(stream);
    assert_eq!(workers.take(true), None, "half of four is two");
    workers.release(at(11.0), passing[1], Release::Done);
    assert!(workers.take(true).is_some());
    // Somebody has to have the only one.
    assert!(pool(params(), 1).take(true).is_some());
}

#[test]
fn a_busy_worker_is_never_handed_out_again_nor_stopped() {
    let mut workers = pool(params(), 2);
    let taken = [workers.take(false).unwrap(), workers.take(false).unwrap()];
    assert_eq!(workers.take(false), None);
    workers.set_wanted(at(11.0), 0);
    assert!(!outputs(&mut workers).iter().any(|it| matches!(it, WorkersOutput::Stop(_))));
    workers.release(at(12.0), taken[0], Release::Done);
    assert!(outputs(&mut workers).contains(&WorkersOutput::Stop(taken[0])));
}

#[test]
fn failed_starts_are_tried_again_ever_later_and_told() {
    let mut workers = Workers::new(params());
    workers.set_wanted(at(0.0), 1);
    let (mut now, mut delays) = (0.0, vec![]);
    for failure in 1..=8 {
        let id = started(&mut workers).pop().expect("one starts");
        assert_eq!(workers.unhealthy().is_some(), failure > FAILURES_MAX);
        workers.handle_exit(at(now), id, Exit::Code(3));
        assert_eq!(started(&mut workers), []);
        let due = workers.poll_timeout().expect("it is tried again");
        delays.push(due.secs_since(at(now)).round() as u32);
        now = due.secs_since(Instant::ORIGIN);
        workers.handle_timeout(due);
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(workers.unhealthy(), Some(Unhealthy { failures: 8, last: StartFault::Ended(Exit::Code(3)) }));
    let id = started(&mut workers).pop().expect("one starts");
    workers.handle_ready(at(now), id);
    assert_eq!(workers.unhealthy(), None);
}

#[test]
fn starts_that_fail_together_are_one_failure() {
    let mut workers = Workers::new(params());
    workers.set_wanted(at(0.0), 4);
    for id in started(&mut workers) {
        workers.handle_exit(at(0.5), id, Exit::Code(1));
    }
    assert_eq!(workers.poll_timeout(), Some(at(1.5)));
}

#[test]
fn a_failed_start_beside_a_settled_worker_is_tried_again() {
    let mut workers = pool(params(), 2);
    let gone = workers.take(false).unwrap();
    workers.handle_exit(at(20.0), gone, Exit::Signal(9));
    for (failed, due) in [(20.5, 21.5), (21.6, 23.6), (23.7, 27.7)] {
        let id = started(&mut workers).pop().expect("one starts");
        workers.handle_exit(at(failed), id, Exit::Code(1));
        assert_eq!(workers.poll_timeout(), Some(at(due)));
        workers.handle_timeout(at(due));
    }
}

#[test]
fn a_reload_goes_on_after_a_failed_start() {
    let mut workers = pool(params(), 1);
    workers.reload(at(11.0));
    let id = started(&mut workers).pop().expect("the new program starts");
    workers.handle_exit(at(11.5), id, Exit::Code(1));
    workers.handle_timeout(at(12.5));
    let id = started(&mut workers).pop().expect("it is tried again");
    workers.handle_ready(at(12.6), id);
    assert!(outputs(&mut workers).contains(&WorkersOutput::Stop(WorkerId(0))));
}

#[test]
fn a_reload_ends_what_starts_with_the_old_program() {
    let mut workers = Workers::new(params());
    workers.set_wanted(at(0.0), 1);
    let old = started(&mut workers).pop().unwrap();
    workers.reload(at(1.0));
    let told = outputs(&mut workers);
    assert!(told.contains(&WorkersOutput::Stop(old)));
    assert!(told.iter().any(|it| matches!(it, WorkersOutput::Start(_))));
    workers.handle_exit(at(1.1), old, Exit::Signal(15));
    assert_eq!(workers.totals().failed_starts, 0, "it was asked to end");
}

#[test]
fn one_whose_request_ends_it_has_not_failed_to_start() {
    let mut workers = Workers::new(params());
    workers.set_wanted(at(0.0), 1);
    let id = started(&mut workers).pop().unwrap();
    workers.handle_ready(at(0.1), id);
    let id = workers.take(false).unwrap();
    workers.handle_exit(at(0.2), id, Exit::Signal(11));
    assert_eq!(started(&mut workers).len(), 1, "another one starts at once");
}

#[test]
fn one_that_dies_young_after_it_was_ready_has_failed_to_start() {
    let mut workers = Workers::new(params());
    workers.set_wanted(at(0.0), 1);
    let id = started(&mut workers).pop().unwrap();
    workers.handle_ready(at(0.1), id);
    workers.handle_exit(at(1.0), id, Exit::Signal(11));
    assert_eq!(started(&mut workers), []);
    assert_eq!(workers.poll_timeout(), Some(at(2.0)));
}

#[test]
fn one_that_dies_later_is_replaced_at_once() {
    let mut workers = pool(params(), 2);
    let busy = workers.take(false).unwrap();
    workers.handle_exit(at(20.0), busy, Exit::Signal(9));
    let told = outputs(&mut workers);
    assert!(told.contains(&WorkersOutput::Changed(WorkersChange {
        at: at(20.0),
        worker: busy,
        what: WorkerEvent::Died(Exit::Signal(9))
    })));
    assert!(told.iter().any(|it| matches!(it, WorkersOutput::Start(_))));
    workers.release(at(20.1), busy, Release::Done);
    assert_eq!(workers.count().idle, 1, "its request changes nothing any more");
}

#[test]
fn one_that_is_not_ready_in_time_is_stopped_then_killed() {
    let mut workers = Workers::new(params());
    workers.set_wanted(at(0.0), 1);
    let id = started(&mut workers).pop().unwrap();
    assert_eq!(workers.poll_timeout(), Some(at(10.0)));
    workers.handle_timeout(at(10.0));
    assert!(outputs(&mut workers).contains(&WorkersOutput::Stop(id)));
    workers.handle_timeout(at(13.0));
    assert!(outputs(&mut workers).contains(&WorkersOutput::Kill(id)));
    workers.handle_exit(at(13.1), id, Exit::Signal(9));
    assert_eq!(workers.count().stopping, 0);
}

#[test]
fn a_reload_replaces_one_after_the_other_and_the_new_one_is_ready_first() {
    let mut workers = pool(params(), 3);
    let old: BTreeSet<u64> = (0..3).collect();
    let busy = workers.take(false).unwrap();
    workers.reload(at(11.0));
    let mut replaced = BTreeSet::new();
    for round in 0..3 {
        let now = at(12.0 + f64::from(round) * 10.0);
        let told = outputs(&mut workers);
        assert!(!told.iter().any(|it| matches!(it, WorkersOutput::Stop(_))), "{told:?}");
        let new: Vec<_> = told.iter().filter(|it| matches!(it, WorkersOutput::Start(_))).collect();
        assert_eq!(new.len(), 1, "{told:?}");
        assert!(workers.count().ready() >= 3, "as many as before, until the new one is ready");
        let &WorkersOutput::Start(id) = new[0] else { unreachable!() };
        workers.handle_ready(now, id);
        if round == 2 {
            workers.release(now, busy, Release::Done);
        }
        let told = outputs(&mut workers);
        let stopped: Vec<_> = told
            .iter()
            .filter_map(|it| if let WorkersOutput::Stop(id) = it { Some(id.0) } else { None })
            .collect();
        replaced.extend(stopped.iter().copied());
        stopped.into_iter().for_each(|id| workers.handle_exit(now, WorkerId(id), Exit::Code(0)));
        for output in told {
            if let WorkersOutput::Start(_) = output {
                workers.outputs.push_back(output);
            }
        }
    }
    assert_eq!(replaced, old);
}

#[test]
fn a_stuck_worker_ends_and_is_replaced() {
    let mut workers = pool(params(), 1);
    let id = workers.take(false).unwrap();
    workers.release(at(60.0), id, Release::Stuck);
    let told = outputs(&mut workers);
    assert!(told.contains(&WorkersOutput::Stop(id)));
    assert!(told.iter().any(|it| matches!(it, WorkersOutput::Start(_))));
    assert_eq!(workers.take(false), None);
}

#[test]
fn requests_age_and_memory_each_replace_a_worker() {
    for (params, uses, bytes, after, why) in [
        (WorkersParams { requests_max: Some(10), ..params() }, 11, 0, 11.0, EndReason::Requests),
        (WorkersParams { age_max: Some(Duration::from_secs(100)), ..params() }, 0, 0, 111.0, EndReason::Age),
        (WorkersParams { memory_max: Some(1000), ..params() }, 0, 1001, 61.0, EndReason::Memory),
    ] {
        let mut workers = pool(params, 1);
        for _ in 0..uses {
            let id = workers.take(false).unwrap();
            workers.release(at(11.0), id, Release::Done);
        }
        workers.handle_memory(at(11.0), WorkerId(0), bytes);
        workers.handle_timeout(at(after));
        workers.handle_memory(at(after), WorkerId(0), bytes);
        let told = outputs(&mut workers);
        let replaced = |it: &WorkersOutput| matches!(it, WorkersOutput::Changed(change) if change.what == WorkerEvent::Replaced(why));
        assert!(told.iter().any(replaced), "{told:?}");
        assert!(workers.take(false).is_some(), "it serves until the new one is ready");
    }
}

#[test]
fn one_whose_request_was_cancelled_is_used_again_once_it_says_that_it_is_idle() {
    let mut workers = pool(params(), 1);
    let id = workers.take(false).unwrap();
    workers.release(at(20.0), id, Release::Cancelled);
    assert_eq!(outputs(&mut workers), [WorkersOutput::Ask(id)]);
    assert_eq!(workers.take(false), None);
    assert_eq!(workers.count().unsure, 1);
    workers.handle_ready(at(21.0), id);
    assert_eq!(workers.take(false), Some(id));
}

#[test]
fn one_whose_request_was_cancelled_and_that_goes_on_with_it_ends_and_is_replaced() {
    let mut workers = pool(params(), 1);
    let id = workers.take(false).unwrap();
    workers.release(at(20.0), id, Release::Cancelled);
    outputs(&mut workers);
    assert_eq!(workers.poll_timeout(), Some(at(24.0)));
    workers.handle_timeout(at(24.0));
    let told = outputs(&mut workers);
    assert!(told.contains(&WorkersOutput::Stop(id)));
    assert!(told.iter().any(|it| matches!(it, WorkersOutput::Start(_))));
    assert_eq!(workers.totals().ended_by(EndReason::Cancelled), 1);
}

#[test]
fn nothing_starts_once_all_were_told_to_end() {
    let mut workers = pool(params(), 2);
    workers.end_all(at(20.0));
    workers.set_wanted(at(20.0), 5);
    workers.reload(at(20.0));
    workers.handle_exit(at(20.1), WorkerId(0), Exit::Signal(15));
    workers.handle_exit(at(20.1), WorkerId(1), Exit::Signal(15));
    workers.handle_timeout(at(100.0));
    assert_eq!(started(&mut workers), []);
    assert_eq!(workers.count(), WorkersCount::default());
}

#[test]
fn one_that_somebody_else_listens_for_has_failed_to_start() {
    let mut workers = Workers::new(params());
    workers.set_wanted(at(0.0), 1);
    let id = started(&mut workers).pop().unwrap();
    workers.handle_squatted(at(0.5), id);
    let told = outputs(&mut workers);
    assert!(told.contains(&WorkersOutput::Stop(id)));
    assert_eq!(workers.poll_timeout(), Some(at(1.5)));
}

#[test]
fn a_failed_start_delays_a_replacement_and_does_not_forbid_it() {
    let mut workers = pool(params(), 2);
    let dead = workers.take(false).unwrap();
    workers.handle_exit(at(20.0), dead, Exit::Signal(9));
    let id = started(&mut workers).pop().unwrap();
    workers.handle_exit(at(20.1), id, Exit::Code(1));
    workers.handle_timeout(at(21.1));
    let id = started(&mut workers).pop().unwrap();
    workers.handle_ready(at(21.2), id);
    workers.reload(at(21.3));
    assert_eq!(started(&mut workers).len(), 1, "the first one is replaced");
    let id = WorkerId(workers.next - 1);
    workers.handle_exit(at(21.4), id, Exit::Code(1));
    workers.handle_timeout(at(22.4));
    let id = started(&mut workers).pop().expect("it is tried again");
    workers.handle_ready(at(22.5), id);
    assert_eq!(started(&mut workers).len(), 1, "the next one's turn comes");
}

#[test]
fn a_long_request_keeps_only_its_own_worker_from_being_replaced() {
    let mut workers = pool(params(), 3);
    let busy = workers.take(false).unwrap();
    workers.reload(at(11.0));
    for _ in 0..2 {
        let id = started(&mut workers).pop().expect("a new one starts");
        workers.handle_ready(at(12.0), id);
    }
    let old: Vec<_> =
        workers.views().filter(|it| it.generation == 0 && it.state != WorkerState::Stopping).collect();
    assert_eq!(old.iter().map(|it| it.id).collect::<Vec<_>>(), [busy]);
}

/// Returns who is asked to end.
fn stopped(told: &[WorkersOutput]) -> Vec<WorkerId> {
    told.iter().filter_map(|it| if let WorkersOutput::Stop(id) = it { Some(*id) } else { None }).collect()
}

#[test]
fn while_the_one_that_retires_has_a_long_request_others_take_its_turn() {
    let mut workers = pool(params(), 3);
    let busy: Vec<_> = (0..3).map(|_| workers.take(false).unwrap()).collect();
    workers.reload(at(11.0));
    let id = started(&mut workers).pop().expect("the first replacement");
    workers.handle_ready(at(12.0), id);
    let first = workers.views().find(|it| it.is_retiring).expect("one retires").id;
    let others: Vec<_> = busy.into_iter().filter(|it| *it != first).collect();
    for (other, now) in others.iter().zip([13.0, 15.0]) {
        workers.release(at(now), *other, Release::Done);
        let told = outputs(&mut workers);
        assert_eq!(stopped(&told), [*other], "{told:?}");
        workers.handle_exit(at(now), *other, Exit::Code(0));
        let new = told.iter().chain(&outputs(&mut workers)).find_map(|it| match it {
            WorkersOutput::Start(id) => Some(*id),
            _ => None,
        });
        workers.handle_ready(at(now + 1.0), new.expect("the next one is replaced"));
        assert!(workers.count().all() <= 4, "never more than one beyond those wanted");
        outputs(&mut workers);
    }
    let old: Vec<_> = workers.views().filter(|it| it.generation == 0).map(|it| it.id).collect();
    assert_eq!(old, [first]);
    workers.handle_timeout(at(25.0));
    let told = outputs(&mut workers);
    let awaited = |it: &&WorkersOutput| matches!(it, WorkersOutput::Changed(it) if it.what == WorkerEvent::Awaited && it.worker == first);
    assert_eq!(told.iter().filter(awaited).count(), 1, "{told:?}");
    workers.release(at(60.0), first, Release::Done);
    assert_eq!(stopped(&outputs(&mut workers)), [first]);
    assert_eq!(workers.totals().ended_by(EndReason::Reload), 3, "each is counted once");
}

#[test]
fn no_more_start_than_memory_has_room_for_and_those_that_end_count() {
    let mut workers = Workers::new(params());
    workers.set_room(at(0.0), 3);
    workers.set_wanted(at(0.0), 5);
    for id in (0..3).map(WorkerId) {
        workers.handle_ready(at(0.0), id);
    }
    assert_eq!(workers.count(), WorkersCount { idle: 3, ..WorkersCount::default() });
    assert!(workers.lacks_room());
    assert!(workers.poll_timeout().is_none_or(|due| due > at(0.0)), "it would be woken again and again");
    outputs(&mut workers);
    let stuck = workers.take(false).unwrap();
    workers.release(at(60.0), stuck, Release::Stuck);
    assert_eq!(started(&mut workers), [], "its process is there still");
    workers.handle_exit(at(61.0), stuck, Exit::Signal(9));
    assert_eq!(started(&mut workers).len(), 1);
    workers.set_room(at(62.0), 5);
    assert_eq!(started(&mut workers).len(), 1, "two start at once");
}

#[test]
fn without_room_a_worker_is_replaced_all_the_same_and_the_first_one_starts() {
    let mut workers = Workers::new(params());
    workers.set_room(at(0.0), 0);
    workers.set_wanted(at(0.0), 2);
    assert_eq!(started(&mut workers), [WorkerId(0)]);
    workers.handle_ready(at(0.0), WorkerId(0));
    assert_eq!(started(&mut workers), []);
    let long = workers.take(false).unwrap();
    workers.reload(at(10.0));
    assert_eq!(started(&mut workers), [WorkerId(1)]);
    workers.handle_ready(at(10.0), WorkerId(1));
    assert_eq!(started(&mut workers), [], "it is one beyond the room, and no more");
    workers.release(at(11.0), long, Release::Done);
    assert_eq!(stopped(&outputs(&mut workers)), [long]);
    assert_eq!(started(&mut workers), []);
}

#[test]
fn suspended_workers_are_forgotten_and_others_start_once_they_are_resumed() {
    let mut workers = pool(params(), 2);
    let taken = workers.take(false).unwrap();
    workers.reload(at(20.0));
    workers.suspend(at(20.0));
    assert_eq!((outputs(&mut workers), workers.count()), (vec![], WorkersCount::default()));
    workers.set_wanted(at(21.0), 1);
    workers.release(at(21.0), taken, Release::Done);
    assert_eq!((outputs(&mut workers), workers.poll_timeout()), (vec![], None));
    workers.resume(at(22.0));
    assert_eq!(started(&mut workers).len(), 1);
    assert_eq!((workers.totals().deaths, workers.totals().failed_starts), (0, 0));
}

#[test]
fn the_most_that_were_busy_and_how_long_starts_take_are_known() {
    let mut workers = pool(params(), 3);
    assert_eq!(workers.start_s(), Some(0.0));
    let taken = [workers.take(false).unwrap(), workers.take(false).unwrap()];
    workers.release(at(11.0), taken[0], Release::Done);
    assert_eq!(workers.take_busy_max(), 2);
    assert_eq!(workers.take_busy_max(), 1);
    workers.set_wanted(at(12.0), 4);
    let id = started(&mut workers).pop().unwrap();
    workers.handle_ready(at(15.0), id);
    assert_eq!(workers.totals().starts, 4);
}

#[derive(Clone, Debug)]
enum Act {
    Want(usize),
    Ready(usize),
    Exit(usize),
    Take,
    Release(usize, Release),
    Memory(usize, u64),
    Squatted(usize),
    Reload,
    Room(usize),
    Suspend,
    End,
    Wait(f64),
}

fn how() -> impl Strategy<Value = Release> {
    prop_oneof![Just(Release::Done), Just(Release::Cancelled), Just(Release::Stuck)]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..8_usize).prop_map(Act::Want),
        any::<usize>().prop_map(Act::Ready),
        any::<usize>().prop_map(Act::Exit),
        Just(Act::Take),
        (any::<usize>(), how()).prop_map(|(which, how)| Act::Release(which, how)),
        (any::<usize>(), 0..2000_u64).prop_map(|(which, bytes)| Act::Memory(which, bytes)),
        any::<usize>().prop_map(Act::Squatted),
        Just(Act::Reload),
        prop_oneof![0..6_usize, Just(usize::MAX)].prop_map(Act::Room),
        Just(Act::Suspend),
        (0.0..8.0).prop_map(Act::Wait),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_nobody_is_used_twice_and_no_more_start_than_may(acts in prop::collection::vec(act(), 0..200), end in any::<bool>()) {
        let mut workers = Workers::new(WorkersParams { requests_max: Some(5), memory_max: Some(1000), ..params() });
        let (mut now, mut alive, mut taken, mut ends, mut room) = (at(0.0), vec![], vec![], false, usize::MAX);
        for act in acts.into_iter().chain(end.then_some(Act::End)).chain([Act::Want(3), Act::Reload]) {
            let pick = |from: &[WorkerId], which: usize| (!from.is_empty()).then(|| from[which % from.len()]);
            match act {
                Act::Want(wanted) => workers.set_wanted(now, wanted),
                Act::Ready(which) => if let Some(id) = pick(&alive, which) { workers.handle_ready(now, id) },
                Act::Exit(which) => if let Some(id) = pick(&alive, which) {
                    alive.retain(|it| *it != id);
                    taken.retain(|it| *it != id);
                    workers.handle_exit(now, id, Exit::Code(0));
                },
                Act::Take => if let Some(id) = workers.take(false) {
                    prop_assert!(!taken.contains(&id) && alive.contains(&id));
                    taken.push(id);
                },
                Act::Release(which, how) => if let Some(id) = pick(&taken, which) {
                    taken.retain(|it| *it != id);
                    workers.release(now, id, how);
                },
                Act::Memory(which, bytes) => if let Some(id) = pick(&alive, which) {
                    workers.handle_memory(now, id, bytes);
                },
                Act::Squatted(which) => if let Some(id) = pick(&alive, which) {
                    workers.handle_squatted(now, id);
                },
                Act::Reload => workers.reload(now),
                Act::Room(to) => {
                    room = to;
                    workers.set_room(now, room);
                }
                Act::Suspend => {
                    workers.suspend(now);
                    (alive, taken) = (vec![], vec![]);
                    workers.resume(now);
                }
                Act::End => {
                    workers.end_all(now);
                    ends = true;
                    taken.clear();
                }
                Act::Wait(secs) => {
                    now += seconds(secs);
                    workers.handle_timeout(now);
                }
            }
            let mut before = alive.len();
            for output in outputs(&mut workers) {
                match output {
                    WorkersOutput::Start(id) => {
                        prop_assert!(!ends);
                        // One more where one is replaced.
                        prop_assert!(before <= room.max(1), "{before} processes, room for {room}");
                        before += 1;
                        alive.push(id);
                    }
                    WorkersOutput::Ask(id) => prop_assert!(alive.contains(&id) && !taken.contains(&id)),
                    WorkersOutput::Stop(id) => prop_assert!(alive.contains(&id) && !taken.contains(&id)),
                    WorkersOutput::Kill(id) => prop_assert!(alive.contains(&id)),
                    WorkersOutput::Changed(_) => {}
                }
            }
            workers.handle_timeout(now);
            prop_assert!(workers.poll_timeout().is_none_or(|due| due > now), "it would be woken again and again");
            for output in outputs(&mut workers) {
                if let WorkersOutput::Start(id) = output {
                    alive.push(id);
                }
            }
            let count = workers.count();
            prop_assert!(count.starting <= 2);
            let is_short = count.ready() + count.unsure + count.starting < workers.wanted();
            let comes = workers.poll_timeout().is_some() || count.stopping > 0;
            prop_assert!(!is_short || comes || count.starting > 0 || count.all() >= room.max(1), "nobody will start the missing one");
            prop_assert_eq!(count.busy, taken.len());
            prop_assert_eq!(count.all(), alive.len());
            let found = workers.views().fold(WorkersCount::default(), |mut found, view| {
                *match view.state {
                    WorkerState::Starting => &mut found.starting,
                    WorkerState::Idle => &mut found.idle,
                    WorkerState::Busy => &mut found.busy,
                    WorkerState::Unsure => &mut found.unsure,
                    WorkerState::Stopping => &mut found.stopping,
                } += 1;
                found
            });
            prop_assert_eq!(found, count, "the counters are right");
            // One more while one is replaced, and those that were wanted before and are busy.
            prop_assert!(count.idle + count.starting <= workers.wanted() + 1);
        }
    }
}

#[test]
fn as_many_start_at_once_as_keep_the_cores_for_it_busy() {
    let mut workers = Workers::new(WorkersParams { starting_cores: 1, ..params() });
    workers.set_wanted(at(0.0), 40);
    let first = started(&mut workers);
    assert_eq!(first.len(), 1, "nothing is known of a start");
    // A fifth of a second, for most of which it waits for a database.
    workers.handle_start_cost(0.04);
    workers.handle_ready(at(0.2), first[0]);
    let next = started(&mut workers);
    assert_eq!((next.len(), workers.starts_at_once()), (5, 5));
    // The same work on a busy processor takes longer, as it waits for its turn.
    for id in next {
        workers.handle_start_cost(0.04);
        workers.handle_ready(at(2.2), id);
    }
    assert_eq!(started(&mut workers).len(), STARTING_MAX);
    // Those that need a core for all of the time start one after the other.
    let mut heavy = Workers::new(WorkersParams { starting_cores: 1, ..params() });
    heavy.set_wanted(at(0.0), 40);
    let first = started(&mut heavy);
    heavy.handle_start_cost(0.7);
    heavy.handle_ready(at(0.8), first[0]);
    assert_eq!(started(&mut heavy).len(), 1);
}

#[test]
fn after_a_failed_start_one_tells_whether_the_next_are_worth_it() {
    let mut workers = Workers::new(WorkersParams { starting_cores: 1, ..params() });
    workers.set_wanted(at(0.0), 9);
    let first = started(&mut workers);
    workers.handle_start_cost(0.01);
    workers.handle_ready(at(1.0), first[0]);
    let next = started(&mut workers);
    assert!(next.len() > 3);
    for id in next {
        workers.handle_exit(at(2.0), id, Exit::Code(1));
    }
    workers.handle_timeout(at(60.0));
    assert_eq!(started(&mut workers).len(), 1);
}

//! Few jobs on machines whose results can be computed by hand.

use super::*;

fn job(id: u64, memory: f64) -> Job {
    Job { id, elsewhere: 0.0, cpu: 0.4, memory, lock: None, pauses: Pauses::default() }
}

/// Plays `node` until it is idle; returns how many requests ended, and when the last one did.
fn drain(node: &mut Node) -> (usize, f64) {
    let (mut count, mut last) = (0, 0.0);
    while let Some(next) = node.poll_timeout() {
        node.handle_timeout(next);
        while node.poll_ended().is_some() {
            count += 1;
            last = next.as_secs_f64();
        }
    }
    (count, last)
}

fn seconds_for(machine: &Machine, jobs: u64, memory: f64) -> f64 {
    let mut node = Node::new(machine.clone(), Rng::new(3));
    (0..jobs).for_each(|id| node.handle_arrival(Instant::ORIGIN, job(id, memory)));
    let (count, last) = drain(&mut node);
    assert_eq!(count as u64, jobs);
    last
}

#[test]
fn two_cores_do_two_seconds_of_work_a_second() {
    let last = seconds_for(&Machine::default(), 40, 0.0);
    assert!((8.0..8.5).contains(&last), "16 s of work on 2 cores, the tail on one: {last}");
}

#[test]
fn too_much_memory_at_once_costs_most_of_the_machine() {
    let knee = Machine::default();
    assert!(seconds_for(&knee, 40, 1.0) > 2.0 * seconds_for(&knee, 40, 0.1));
    let efficiency = Efficiency::Heap { heap: 50.0, resting: 5.0, cost: 0.2, floor: 0.05 };
    let heap = Machine { efficiency, ..knee };
    assert!(seconds_for(&heap, 40, 1.0) > 1.5 * seconds_for(&heap, 40, 0.1));
}

#[test]
fn threads_bound_what_runs_and_nothing_is_lost_for_it() {
    let machine = Machine { threads: Some(3), ..Machine::default() };
    let last = seconds_for(&machine, 40, 1.0);
    assert!((8.0..8.7).contains(&last), "three at once hold no more memory than the collector bears: {last}");
}

#[test]
fn waiting_for_others_takes_time_and_no_processor() {
    let mut node = Node::new(Machine { even: true, ..Machine::default() }, Rng::new(3));
    (0..4).for_each(|id| node.handle_arrival(Instant::ORIGIN, Job { elsewhere: 2.0, ..job(id, 0.0) }));
    let (count, last) = drain(&mut node);
    assert_eq!(count, 4);
    assert!((last - 2.8).abs() < 1e-6, "2 s beside each other, then 1.6 s of work on 2 cores: {last}");
    assert!((node.usage(Instant::ORIGIN + seconds(10.0)).work - 1.6).abs() < 1e-6);
}

#[test]
fn so_many_wait_for_others_at_once_as_there_are_connections() {
    let machine = Machine { even: true, connections: Some(2), ..Machine::default() };
    let mut node = Node::new(machine, Rng::new(3));
    (0..6).for_each(|id| node.handle_arrival(Instant::ORIGIN, Job { elsewhere: 2.0, ..job(id, 0.0) }));
    let (count, last) = drain(&mut node);
    assert_eq!(count, 6);
    assert!(
        (last - 6.4).abs() < 1e-6,
        "three times two beside each other, then the work of the last two: {last}"
    );
}

#[test]
fn a_lock_is_held_to_the_end_by_one_after_the_other_and_others_pass() {
    let mut node = Node::new(Machine { even: true, ..Machine::default() }, Rng::new(3));
    let lock = Some(Lock { number: 7, holders_max: 1 });
    (0..5).for_each(|id| {
        node.handle_arrival(Instant::ORIGIN, Job { elsewhere: 1.0, lock, ..job(id, 0.0) });
    });
    node.handle_arrival(Instant::ORIGIN, job(5, 0.0));
    assert_eq!(node.in_service(), 6);
    node.handle_timeout(Instant::ORIGIN + seconds(0.5));
    assert_eq!((node.poll_ended(), node.poll_ended()), (Some(5), None));
    let (count, last) = drain(&mut node);
    assert_eq!(count, 5);
    assert!((last - 5.0 * 1.4).abs() < 1e-6, "five times 1 s elsewhere and 0.4 s of work: {last}");
}

#[test]
fn a_pause_takes_time_and_no_processor_wherever_it_is() {
    let around = Pauses { before: 1.0, after: 2.0, ..Pauses::default() };
    let inside = Pauses { inside: 3.0, pieces: 4, ..Pauses::default() };
    let all = Pauses { before: 0.5, inside: 2.0, pieces: 100, after: 0.5 };
    for pauses in [around, inside, all] {
        let mut node = Node::new(Machine { even: true, ..Machine::default() }, Rng::new(3));
        (0..2).for_each(|id| node.handle_arrival(Instant::ORIGIN, Job { pauses, ..job(id, 0.0) }));
        let (count, last) = drain(&mut node);
        assert_eq!((count, node.in_service()), (2, 0));
        assert!((last - 3.4).abs() < 1e-6, "3 s of pauses and 0.4 s of work on its own core: {last}");
        let usage = node.usage(Instant::ORIGIN + seconds(10.0));
        assert!((usage.work - 0.8).abs() < 1e-6 && (usage.busy - 0.8).abs() < 1e-6, "{usage:?}");
    }
}

#[test]
fn who_pauses_holds_thread_and_lock() {
    let pauses = Pauses { before: 1.0, ..Pauses::default() };
    let machine = Machine { even: true, threads: Some(1), ..Machine::default() };
    let mut node = Node::new(machine, Rng::new(3));
    (0..3).for_each(|id| node.handle_arrival(Instant::ORIGIN, Job { pauses, ..job(id, 0.0) }));
    let (count, last) = drain(&mut node);
    assert_eq!(count, 3);
    assert!((last - 3.0 * 1.4).abs() < 1e-6, "one after the other on one thread: {last}");
    let mut node = Node::new(Machine { even: true, ..Machine::default() }, Rng::new(3));
    let lock = Some(Lock { number: 7, holders_max: 1 });
    (0..3).for_each(|id| node.handle_arrival(Instant::ORIGIN, Job { pauses, lock, ..job(id, 0.0) }));
    let (_, last) = drain(&mut node);
    assert!((last - 3.0 * 1.4).abs() < 1e-6, "one after the other with the lock: {last}");
}

#[test]
fn memory_is_held_in_pauses_inside_the_work_and_not_around_it() {
    let efficiency = Efficiency::Knee { knee: 1.0, slope: 1.0, floor: 0.1 };
    let machine = Machine { even: true, efficiency, ..Machine::default() };
    // One rests for a long time while another works: 0.2 s of its work are over by then.
    let beside = |pauses: Pauses| {
        let mut node = Node::new(machine.clone(), Rng::new(3));
        node.handle_arrival(Instant::ORIGIN, Job { pauses, ..job(0, 1.0) });
        node.handle_timeout(Instant::ORIGIN + seconds(5.0));
        node.handle_arrival(Instant::ORIGIN + seconds(5.0), job(1, 1.0));
        while node.poll_ended().is_none() {
            let next = node.poll_timeout().expect("somebody is at work");
            node.handle_timeout(next);
        }
        node.processor.now.as_secs_f64() - 5.0
    };
    let inside = beside(Pauses { inside: 20.0, pieces: 2, ..Pauses::default() });
    assert!((inside - 0.8).abs() < 1e-6, "two hold memory, which costs half of the speed: {inside}");
    for around in [Pauses { before: 10.0, ..Pauses::default() }, Pauses { after: 10.0, ..Pauses::default() }]
    {
        assert!((beside(around) - 0.4).abs() < 1e-6, "{around:?}");
    }
}

#[test]
fn the_accept_path_takes_one_at_a_time_and_longer_when_the_machine_is_crowded() {
    let quiet = Machine { accept: 0.01, ..Machine::default() };
    let crowded = Machine { accept_crowded: 0.01, ..quiet.clone() };
    let last = |machine: &Machine| {
        let mut node = Node::new(machine.clone(), Rng::new(3));
        (0..20).for_each(|id| node.handle_arrival(Instant::ORIGIN, job(id, 0.0)));
        let mut last = 0.0;
        while !node.arriving.is_empty() {
            let next = node.poll_timeout().expect("somebody is arriving");
            node.handle_timeout(next);
            last = next.as_secs_f64();
        }
        last
    };
    assert!((last(&quiet) - 0.2).abs() < 1e-6, "20 · 10 ms");
    assert!(last(&crowded) > 0.3, "{}", last(&crowded));
}

#[test]
fn how_long_the_accept_path_took_is_told() {
    let mut node = Node::new(Machine { accept: 0.01, ..Machine::default() }, Rng::new(3));
    (0..20).for_each(|id| node.handle_arrival(Instant::ORIGIN, job(id, 0.0)));
    drain(&mut node);
    let times = node.accept_path();
    let (least, most) = (times.min().expect("20 passed"), times.max().expect("20 passed"));
    assert_eq!((least.as_millis(), most.as_millis()), (10, 200));
}

#[test]
fn the_scalability_law_has_its_best_where_its_formula_says() {
    let scalability = |contention: f64, n: f64| Efficiency::Scalability {
        contention,
        coherency: (1.0 - contention) / (n * n),
    };
    for best in [4.0, 10.0, 30.0] {
        let machine = Machine { efficiency: scalability(0.02, best), ..Machine::default() };
        let at = |n: usize| machine.work_per_second(n, 0.0);
        let top = (1..200).max_by(|a, b| at(*a).total_cmp(&at(*b)));
        assert_eq!(top, Some(best as usize));
        assert!((machine.work_per_second_max(0.0) - at(best as usize)).abs() < 1e-12);
    }
}

#[test]
fn a_measured_curve_is_straight_in_its_cost_and_holds_beyond_its_ends() {
    let curve = Curve::through(&[(1.0, 1.0), (4.0, 0.5), (8.0, 0.25)]).unwrap();
    let close = |memory: f64, efficiency: f64| assert!((curve.at(memory) - efficiency).abs() < 1e-12);
    close(0.0, 1.0);
    close(1.0, 1.0);
    close(2.5, 1.0 / 1.5);
    close(4.0, 0.5);
    close(6.0, 1.0 / 3.0);
    close(100.0, 0.25);
    let machine =
        Machine { cores: 1.0, even: true, efficiency: Efficiency::Measured(curve), ..Machine::default() };
    assert!((seconds_for(&machine, 4, 1.0) - 4.0 * 0.4 / 0.5).abs() < 1e-6, "all four end together");
}

#[test]
fn a_measured_curve_must_rise_in_memory_and_stay_above_nothing() {
    for points in [&[][..], &[(1.0, 1.0), (1.0, 0.5)], &[(1.0, 0.0)], &[(0.5, 1.0); 17]] {
        assert_eq!(Curve::through(points), None, "{points:?}");
    }
}

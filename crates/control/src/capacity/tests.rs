use super::*;
use std::collections::VecDeque;
use suimon_model::{Rng, seconds};

const TICK: f64 = 0.25;
const SEEDS: u64 = 400;
/// Greatest bias of the mean over saturated windows; that of so few seeds has itself an error of 1
/// %.
const BIAS_SATURATED: f64 = 0.02;

fn at(secs: f64) -> Instant {
    Instant::ORIGIN + seconds(secs)
}

/// A route with this many places, each serving for an exponential or Erlang time, and Poisson
/// arrivals.
struct Queue {
    rng: Rng,
    now: f64,
    meter: Meter,
    capacity: Capacity,
    places: usize,
    service: f64,
    /// Phases of a service: 1 is exponential.
    phases: u32,
    ends: Vec<(f64, f64)>,
    waiting: VecDeque<f64>,
    arrival: f64,
}

impl Queue {
    fn new(seed: u64, places: usize, per_second: f64, phases: u32) -> Self {
        let service = places as f64 / per_second;
        let meter = Meter::new(at(0.0));
        let (rng, capacity) = (Rng::stream(seed, 7), Capacity::new(at(0.0), &Meter::new(at(0.0))));
        let (ends, waiting) = (vec![], VecDeque::new());
        Queue { rng, now: 0.0, meter, capacity, places, service, phases, ends, waiting, arrival: 0.0 }
    }

    fn fill(&mut self, now: f64) {
        while self.ends.len() < self.places && !self.waiting.is_empty() {
            self.waiting.pop_front();
            let phase = self.service / f64::from(self.phases);
            let service = (0..self.phases).map(|_| self.rng.exponential(phase)).sum::<f64>();
            self.ends.push((now + service, service));
        }
        self.meter.load(at(now), self.ends.len(), self.waiting.len());
    }

    /// Plays `secs` with `demand` arrivals per second.
    fn play(&mut self, secs: f64, demand: f64) {
        let end = self.now + secs;
        self.arrival = self.now + self.rng.exponential(1.0 / demand);
        while self.now < end - 1e-9 {
            let tick = self.now + TICK;
            loop {
                let done = self.ends.iter().enumerate().min_by(|a, b| a.1.0.total_cmp(&b.1.0));
                let (index, (next, service)) = done.map_or((0, (f64::MAX, 0.0)), |(i, end)| (i, *end));
                if next.min(self.arrival) > tick {
                    break;
                }
                if next <= self.arrival {
                    self.meter.end(service, true);
                    self.ends.swap_remove(index);
                    self.fill(next);
                } else {
                    let now = self.arrival;
                    self.waiting.push_back(now);
                    self.arrival += self.rng.exponential(1.0 / demand);
                    self.fill(now);
                }
            }
            self.now = tick;
            self.capacity.tick(at(tick), &self.meter, false);
        }
    }
}

/// Returns mean and count of X over those seeds for which it is known, as shares of `truth`.
fn mean_of(truth: f64, play: impl Fn(u64) -> Queue) -> (f64, usize) {
    let known: Vec<f64> =
        (0..SEEDS).filter_map(|seed| play(seed).capacity.measured()).map(|x| x.per_second / truth).collect();
    (known.iter().sum::<f64>() / known.len() as f64, known.len())
}

/// Returns a route that has been saturated for this long.
fn saturated(seed: u64, (places, per_second, phases): (usize, f64, u32), secs: f64) -> Queue {
    let mut queue = Queue::new(seed, places, per_second, phases);
    queue.play(secs, 3.0 * per_second);
    queue
}

/// Places, capacity per second, phases of a service.
const ROUTES: [(usize, f64, u32); 5] = [(4, 8.0, 1), (4, 8.0, 4), (1, 2.0, 1), (10, 20.0, 1), (20, 100.0, 4)];

#[test]
fn before_anybody_waited_throughout_a_window_x_is_unknown() {
    let mut queue = Queue::new(1, 50, 100.0, 1);
    queue.play(60.0, 20.0);
    assert_eq!(queue.capacity.measured(), None, "what was done was asked for, and no more");
    assert_eq!(queue.capacity.saturated(), None);
}

#[test]
fn x_is_told_once_it_rests_on_eight_completions() {
    let (mut capacity, mut meter) = (Capacity::new(at(0.0), &Meter::new(at(0.0))), Meter::new(at(0.0)));
    meter.load(at(0.0), 1, 5);
    for second in 1..=9 {
        meter.end(1.0, true);
        capacity.tick(at(f64::from(second)), &meter, false);
        assert_eq!(capacity.measured().is_some(), second >= 8, "after {second} completions");
    }
    assert!((capacity.measured().unwrap().per_second - 1.0).abs() < 1e-9);
}

#[test]
fn the_mean_over_saturated_windows_has_no_bias_from_the_first_seconds_on() {
    for route in ROUTES {
        for secs in [10.0, 20.0, 60.0] {
            let (mean, known) = mean_of(route.1, |seed| saturated(seed, route, secs));
            assert!(known as u64 > SEEDS * 9 / 10);
            assert!((mean - 1.0).abs() < BIAS_SATURATED, "{route:?} after {secs} s: {mean}");
        }
    }
}

#[test]
fn where_demand_is_what_the_route_can_do_x_is_hardly_biased_after_20_s() {
    for route @ (places, per_second, phases) in ROUTES {
        let (mean, known) = mean_of(per_second, |seed| {
            let mut queue = Queue::new(seed, places, per_second, phases);
            queue.play(20.0, per_second);
            queue
        });
        assert!(known as u64 > SEEDS / 2, "{known}");
        // Windows are saturated in which less was done, and the more so the fewer run at a time.
        let bias_max = if places == 1 { 0.1 } else { 0.08 };
        assert!((mean - 1.0).abs() < bias_max, "{route:?}: {mean}");
    }
}

#[test]
fn windows_at_a_limit_under_trial_never_count() {
    let (mut capacity, mut meter) = (Capacity::new(at(0.0), &Meter::new(at(0.0))), Meter::new(at(0.0)));
    meter.load(at(0.0), 1, 5);
    let mut play = |capacity: &mut Capacity, from: u32, per_second: u32, unsettled: bool| {
        for second in from + 1..=from + 10 {
            (0..per_second).for_each(|_| meter.end(0.1, true));
            capacity.tick(at(f64::from(second)), &meter, unsettled);
        }
    };
    play(&mut capacity, 0, 8, true);
    assert_eq!(capacity.measured(), None);
    assert!((capacity.saturated().unwrap() - 8.0).abs() < 1e-9, "but it was done, and that is told");
    play(&mut capacity, 10, 8, false);
    let before = capacity.measured();
    play(&mut capacity, 20, 4, true);
    play(&mut capacity, 30, 80, true);
    assert_eq!(capacity.measured(), before);
}

#[test]
fn a_lull_never_lowers_x() {
    for seed in 0..SEEDS {
        let mut queue = saturated(seed, (4, 8.0, 4), 30.0);
        let before = queue.capacity.measured().unwrap();
        queue.waiting.clear();
        queue.places = 50;
        queue.play(120.0, 2.0);
        let after = queue.capacity.measured().unwrap();
        assert!(after.per_second >= before.per_second, "seed {seed}: {before:?}, {after:?}");
        assert_eq!(after.at, before.at, "and nobody waited throughout a window since");
    }
}

#[test]
fn a_route_that_does_twice_as_much_with_nobody_waiting_can_do_about_twice_as_much() {
    let (mean, _) = mean_of(8.0, |seed| {
        let mut queue = saturated(seed, (4, 8.0, 1), 30.0);
        queue.waiting.clear();
        queue.places *= 4;
        queue.play(20.0, 16.0);
        queue
    });
    assert!((1.8..2.2).contains(&mean), "{mean}");
}

#[test]
fn x_lies_within_its_standard_error_in_two_thirds_of_the_cases() {
    for (route, secs) in [((4, 8.0, 1), 10.0), ((4, 8.0, 1), 60.0), ((10, 20.0, 1), 60.0)] {
        let within = |seed: &u64| {
            let measured = saturated(*seed, route, secs).capacity.measured().unwrap();
            (measured.per_second / route.1 - 1.0).abs() < measured.error()
        };
        let share = (0..SEEDS).filter(within).count() as f64 / SEEDS as f64;
        assert!((0.6..0.75).contains(&share), "{route:?} after {secs} s: {share}");
    }
}

#[test]
fn the_age_of_x_is_the_time_since_the_last_saturated_window_ended() {
    let (mut capacity, mut meter) = (Capacity::new(at(0.0), &Meter::new(at(0.0))), Meter::new(at(0.0)));
    meter.load(at(0.0), 1, 5);
    for second in 1..=30 {
        (0..8).for_each(|_| meter.end(0.1, true));
        if second == 20 {
            meter.load(at(20.0), 1, 0);
        }
        capacity.tick(at(f64::from(second)), &meter, false);
    }
    assert_eq!(capacity.measured().unwrap().at, at(20.0));
}

#[test]
fn what_a_meter_has_seen_before_is_nothing_that_a_route_can_do() {
    let mut meter = Meter::new(at(0.0));
    meter.load(at(0.0), 1, 1);
    (0..10_000).for_each(|_| meter.end(0.001, true));
    let mut capacity = Capacity::new(at(100.0), &meter);
    meter.load(at(101.0), 1, 1);
    capacity.tick(at(101.0), &meter, false);
    assert_eq!(capacity.measured(), None, "nothing has ended since");
}

#[test]
fn with_twice_the_nodes_it_is_twice_as_much_at_once() {
    let mut queue = saturated(1, (4, 20.0, 1), 60.0);
    let before = queue.capacity.measured().unwrap();
    queue.capacity.scale(at(queue.now), &queue.meter, 2.0);
    let after = queue.capacity.measured().unwrap();
    assert!((after.per_second / before.per_second - 2.0).abs() < 1e-9);
    assert!(
        queue.capacity.saturated().unwrap() > 1.5 * 20.0,
        "and what was seen under full load: {:?}",
        queue.capacity.saturated()
    );
    assert_eq!((after.at, after.seconds), (before.at, before.seconds), "it is as old as it was");
}

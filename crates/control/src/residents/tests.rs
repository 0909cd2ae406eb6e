//! The law in front of hosts that complete so many requests a second with so many workers.

use super::measured::WINDOW_LEAST;
use super::*;
use crate::size_law::{SizeLaw, SizeLawKind};
use suimon_model::Rng;

/// P3's host: two cores, 20.9 ms of them and 150 ms elsewhere for a request, and 2 % more for each
/// resident beyond 22 (LAWS §5). `cpu`: a factor on the first.
fn p3(workers: u32, cpu: f64) -> f64 {
    let beyond = f64::from(workers.saturating_sub(22));
    let work = 0.0209 * cpu * (1.0 + 0.02 * beyond);
    smooth(f64::from(workers) / (0.15 + work), 2.0 / work)
}

/// The less of two, with a corner that is round.
fn smooth(one: f64, other: f64) -> f64 {
    1.0 / exp(ln(one.powi(-8) + other.powi(-8)) / 8.0)
}

fn best(capacity: fn(u32, f64) -> f64, cpu: f64, most: u32) -> f64 {
    (1..=most).map(|n| capacity(n, cpu)).fold(0.0, f64::max)
}

const MOST: u32 = 200;

/// A pool that starts its workers one or more at a time, with a queue that visitors leave after
/// [`PATIENCE`] seconds.
struct Host {
    law: SizeLaw,
    capacity: fn(u32, f64) -> f64,
    now: Instant,
    /// Of a request.
    cpu: f64,
    /// Requests offered a second, and those that wait.
    offered: f64,
    queue: f64,
    ready: f64,
    start_s: f64,
    at_once: f64,
    /// Variance of completions, as a share of what chance gives.
    dispersion: f64,
    carried: f64,
    fit: Option<u32>,
    is_swapping: bool,
    moves: Vec<(Instant, ResidentMove)>,
    rng: Rng,
}

const PATIENCE: f64 = 10.0;

impl Host {
    fn of(initial: u32, is_known: bool) -> Self {
        Host::with(p3, ResidentParams { initial, is_known, least: 5, most: MOST, cores: 2 })
    }

    fn with(capacity: fn(u32, f64) -> f64, params: ResidentParams) -> Self {
        Host::under(SizeLawKind::Measured, capacity, params)
    }

    fn under(law: SizeLawKind, capacity: fn(u32, f64) -> f64, params: ResidentParams) -> Self {
        let law = SizeLaw::new(law, params);
        let ready = f64::from(law.wanted());
        Host {
            law,
            capacity,
            now: Instant::ORIGIN,
            cpu: 1.0,
            offered: 1e6,
            queue: 0.0,
            ready,
            start_s: 1.0,
            at_once: f64::from((params.cores / 2).max(1)),
            dispersion: 1.0,
            carried: 0.0,
            fit: None,
            is_swapping: false,
            moves: vec![],
            rng: Rng::new(u64::from(params.initial)),
        }
    }

    /// Plays so many seconds and returns what was completed a second.
    fn play(&mut self, seconds: u32) -> f64 {
        let all: f64 = (0..seconds).map(|_| self.second()).sum();
        all / f64::from(seconds)
    }

    fn second(&mut self) -> f64 {
        self.now += Duration::from_secs(1);
        let wanted = f64::from(self.law.wanted());
        let starting = (wanted - self.ready).max(0.0);
        self.ready = wanted.min(self.ready + self.at_once / self.start_s);
        let ready = self.ready as u32;
        let capacity = (self.capacity)(ready, self.cpu);
        let demand = self.queue + self.offered + (self.offered * self.dispersion).sqrt() * self.rng.normal();
        let load = demand.max(0.0) / capacity.max(1e-9);
        let completed = demand.clamp(0.0, capacity);
        self.queue = (demand - completed).clamp(0.0, PATIENCE * capacity.max(1e-9));
        let chance = if load >= 1.0 { (completed * self.dispersion).sqrt() * self.rng.normal() } else { 0.0 };
        self.carried += (completed + chance).max(0.0);
        let counted = self.carried.floor();
        self.carried -= counted;
        let short = load.powi(16).min(1.0);
        let running = if short > 0.05 { ready } else { (load * self.ready).ceil() as u32 };
        let sample = ResidentSample {
            took_s: None,
            ready,
            idle: ready.saturating_sub(running),
            starting: starting.ceil() as u32,
            running_max: running,
            short,
            held: 0.0,
            completed: counted as u64,
            failed: 0,
            oldest_s: self.queue / capacity.max(1e-9),
            start_s: Some(self.start_s),
            starts_at_once: 0,
            fit: self.fit,
            is_swapping: self.is_swapping,
        };
        if let Some(moved) = self.law.on_tick(self.now, 1.0, &sample) {
            self.moves.push((self.now, moved));
        }
        completed
    }

    fn told(&self) -> String {
        let told = self.moves.iter().map(|(at, moved)| {
            format!("{:.0}: {} {}", at.secs_since(Instant::ORIGIN), moved.wanted, moved.why.code())
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

#[test]
fn from_few_and_from_many_it_finds_what_is_best_within_a_minute() {
    // Completions at random (1) are worse than those of a busy processor.
    for (dispersion, least) in [(0.1, 0.97), (0.5, 0.94), (1.0, 0.93)] {
        for (initial, is_known) in [(5, false), (20, true), (40, false), (100, false), (1, false)] {
            let mut host = Host::of(initial, is_known);
            host.dispersion = dispersion;
            host.play(if initial == 1 { 90 } else { 60 });
            let share = host.play(240) / best(p3, 1.0, MOST);
            assert!(share >= least, "from {initial}, {dispersion}: {share} of the best, {}", host.told());
        }
    }
}

#[test]
fn it_follows_requests_that_become_heavier_and_lighter() {
    let mut host = Host::of(5, false);
    host.dispersion = 0.5;
    host.play(120);
    for cpu in [2.0, 1.0, 0.5, 1.0] {
        host.cpu = cpu;
        host.play(60);
        let share = host.play(240) / best(p3, cpu, MOST);
        assert!(share >= 0.955, "{share} of the best with {cpu} times the work, {}", host.told());
    }
}

fn shared(cores: u32) -> ResidentParams {
    ResidentParams { initial: 2 * cores + 1, is_known: false, least: 2 * cores + 1, most: MOST, cores }
}

/// Returns the share of the best number's completions, from the `from`th to the `to`th second.
fn share_of_best(
    capacity: fn(u32, f64) -> f64,
    params: ResidentParams,
    (from, to): (u32, u32),
) -> (f64, String) {
    let mut host = Host::with(capacity, params);
    host.dispersion = 0.5;
    host.play(from);
    (host.play(to - from) / best(capacity, 1.0, params.most), host.told())
}

#[test]
fn in_a_steady_state_it_moves_once_a_dwell_at_most() {
    for dispersion in [0.1, 1.0] {
        let mut host = Host::of(5, false);
        host.dispersion = dispersion;
        host.play(1800);
        host.moves.clear();
        host.play(3600);
        // There and back, after ten minutes each; at random it errs more often.
        assert!(host.moves.len() <= if dispersion < 1.0 { 14 } else { 60 }, "{}", host.told());
        let dwells = host.moves.windows(2).map(|pair| pair[1].0.secs_since(pair[0].0));
        assert!(dwells.into_iter().all(|dwell| dwell >= SETTLE_LEAST + WINDOW_LEAST), "{}", host.told());
    }
}

#[test]
fn a_database_that_serializes_is_given_few() {
    let serial = |n: u32, _: f64| smooth(f64::from(n) / 0.12, 10.0 / (1.0 + 0.03 * f64::from(n)));
    let (share, told) = share_of_best(serial, ResidentParams { least: 1, ..shared(2) }, (120, 900));
    assert!(share >= 0.94, "{share}, {told}");
}

#[test]
fn where_more_never_hurt_there_are_more_and_more() {
    let free = |n: u32, _: f64| f64::from(n) / 0.5;
    // One starts after the other, and each takes a second.
    let (share, told) = share_of_best(free, shared(2), (300, 900));
    assert!(share >= 0.97, "{share}, {told}");
}

#[test]
fn a_host_of_64_cores_is_filled() {
    let large = |n: u32, _: f64| smooth(f64::from(n) / 0.2, 640.0 / (1.0 + 0.002 * f64::from(n)));
    let (share, told) = share_of_best(large, ResidentParams { most: 1000, ..shared(64) }, (60, 300));
    assert!(share >= 0.95, "{share}, {told}");
}

#[test]
fn one_request_a_second_moves_nothing() {
    let mut host = Host::with(|n, _| smooth(f64::from(n) / 0.4, 6.0), shared(2));
    host.offered = 1.0;
    host.play(3600);
    assert_eq!(host.moves, []);
}

#[test]
fn answers_of_twelve_seconds_get_as_many_workers_as_they_need() {
    let mut host = Host::with(|n, _| f64::from(n) / 12.0, shared(2));
    (host.dispersion, host.offered) = (0.1, 4.0);
    host.play(600);
    assert!(host.play(60) >= 0.95 * 4.0, "{}", host.told());
    assert!(host.law.wanted() < 2 * 48, "{}", host.told());
}

#[test]
fn a_host_that_changes_every_half_minute_is_served_better_than_by_a_fixed_number() {
    for dispersion in [0.1, 0.5, 1.0] {
        let mut host = Host::with(p3, shared(2));
        host.dispersion = dispersion;
        let (mut done, mut fixed, mut most) = (0.0, 0.0, 0.0);
        for period in 0..40 {
            host.cpu = if period % 2 == 0 { 1.0 } else { 2.0 };
            done += host.play(30);
            fixed += p3(5, host.cpu);
            most += best(p3, host.cpu, MOST);
        }
        assert!(done >= 1.5 * fixed && done >= 0.65 * most, "{done} {fixed} {most} {}", host.told());
    }
}

#[test]
fn demand_about_as_large_as_capacity_is_served() {
    for demand in [0.9, 0.95, 1.0, 1.05] {
        let mut host = Host::with(p3, shared(2));
        let most = best(p3, 1.0, MOST);
        host.offered = demand * most;
        host.play(60);
        let share = host.play(1200) / host.offered.min(most);
        assert!(share >= 0.97, "{share} of {demand}, {}", host.told());
    }
}

#[test]
fn bursts_bring_no_more_than_what_is_best() {
    let mut host = Host::with(p3, shared(2));
    let mut fixed = Host::under(SizeLawKind::Fixed(20), p3, shared(2));
    let minutes = |host: &mut Host| {
        (0..20)
            .map(|_| {
                host.offered = 150.0;
                let burst = 5.0 * host.play(5);
                host.offered = 50.0;
                burst + 55.0 * host.play(55)
            })
            .sum::<f64>()
    };
    let (ours, theirs) = (minutes(&mut host), minutes(&mut fixed));
    assert!(ours >= 0.99 * theirs, "{ours} {theirs} {}", host.told());
    assert!(host.moves.iter().all(|(_, moved)| moved.wanted <= 30), "{}", host.told());
}

#[test]
fn the_rule_of_idle_workers_grows_beyond_what_helps() {
    let mut host = Host::under(SizeLawKind::Seed, p3, ResidentParams { most: 100, ..shared(2) });
    host.offered = 120.0;
    host.play(300);
    assert_eq!(host.law.wanted(), 100);
    assert!(host.play(60) < 0.5 * best(p3, 1.0, MOST));
}

#[test]
fn what_is_idle_goes_one_by_one_and_a_rush_finds_the_learned_number_again() {
    let mut host = Host::of(20, true);
    host.offered = 9.0;
    host.play(1800);
    let steps = host.moves.windows(2).all(|pair| pair[1].1.wanted + 1 == pair[0].1.wanted);
    assert!(steps && host.law.wanted() <= 10, "{}", host.told());
    host.offered = 0.0;
    host.play(1800);
    assert_eq!(host.law.wanted(), 5, "so many stay");
    host.offered = 90.0;
    host.play(30);
    assert!(host.moves.iter().any(|(_, moved)| (moved.wanted, moved.why) == (20, ResidentReason::Waits)));
    assert!(host.play(60) >= 0.97 * 90.0, "{}", host.told());
}

#[test]
fn after_a_restart_it_begins_with_what_was_found() {
    let mut host = Host::of(5, false);
    host.play(300);
    let learned = host.law.learned().expect("the search has ended");
    let mut again = Host::of(learned, true);
    assert!(again.play(60) >= 0.95 * best(p3, 1.0, MOST));
    assert_eq!(again.law.learned(), Some(learned));
}

#[test]
fn a_dead_application_gets_no_more_workers() {
    let mut host = Host::with(p3, shared(2));
    host.offered = 90.0;
    host.play(120);
    let before = host.law.wanted();
    (host.cpu, host.moves) = (1e9, vec![]);
    host.play(600);
    assert!(host.moves.iter().all(|(_, moved)| moved.wanted <= before), "{}", host.told());
    host.cpu = 1.0;
    host.play(60);
    assert!(host.play(120) >= 0.95 * 90.0, "{}", host.told());
}

#[test]
fn memory_is_never_exceeded_not_even_by_a_trial() {
    let mut host = Host::of(5, false);
    for fit in [12, 13, 6, 3, 50] {
        host.fit = Some(fit);
        let from = host.moves.len();
        host.play(120);
        let moves = &host.moves[from..];
        assert!(moves.iter().all(|(_, moved)| moved.wanted <= fit), "{fit}: {}", host.told());
        assert!(host.law.wanted() <= fit, "{fit}: {}", host.told());
    }
}

#[test]
fn memory_that_becomes_short_during_a_trial_of_fewer_is_not_exceeded_when_it_fails() {
    let mut host = Host::of(5, false);
    let is_trial =
        |host: &Host| host.moves.last().is_some_and(|(_, moved)| moved.why == ResidentReason::TriesFewer);
    while !is_trial(&host) {
        host.play(1);
        assert!(host.moves.len() < 100, "{}", host.told());
    }
    let fit = host.law.wanted() + 1;
    host.fit = Some(fit);
    for _ in 0..300 {
        host.play(1);
        assert!(host.law.wanted() <= fit, "{}", host.told());
    }
}

#[test]
fn workers_that_take_ten_seconds_to_start_are_tried_and_found() {
    let mut host = Host::of(5, false);
    host.start_s = 10.0;
    host.play(600);
    let share = host.play(1200) / best(p3, 1.0, MOST);
    assert!(share >= 0.95, "{share}: {}", host.told());
}

#[test]
fn swapping_makes_them_fewer_one_cut_after_the_other() {
    let mut host = Host::of(40, true);
    host.is_swapping = true;
    host.play(29);
    host.is_swapping = false;
    let cuts: Vec<u32> = host.moves.iter().map(|(_, moved)| moved.wanted).collect();
    assert_eq!(cuts, [36, 32], "{}", host.told());
    host.play(500);
    assert!(host.moves.iter().skip(1).all(|(_, moved)| moved.wanted <= 32), "{}", host.told());
}

#[test]
fn a_request_that_waits_longer_than_a_start_takes_brings_one_more() {
    let mut law = Residents::new(ResidentParams { initial: 4, ..shared(2) });
    let mut sample = ResidentSample {
        ready: 4,
        running_max: 4,
        short: 0.3,
        start_s: Some(2.0),
        ..ResidentSample::default()
    };
    let mut now = Instant::ORIGIN;
    let mut ticks = |sample: &ResidentSample| {
        (0..5).find_map(|_| {
            now += Duration::from_secs(1);
            law.on_tick(now, 1.0, sample)
        })
    };
    sample.oldest_s = 2.5;
    assert_eq!(ticks(&sample), None, "none of the workers answers");
    sample.completed = 1;
    assert_eq!(ticks(&sample), Some(ResidentMove { wanted: 5, why: ResidentReason::Waits }));
}

#[test]
fn workers_that_a_limit_keeps_idle_go_within_seconds_though_requests_wait() {
    let mut law = Residents::new(ResidentParams { initial: 100, ..shared(2) });
    let mut now = Instant::ORIGIN;
    for _ in 0..15 {
        now += Duration::from_secs(1);
        let ready = law.wanted();
        let sample = ResidentSample {
            ready,
            idle: ready - 15,
            running_max: 15,
            held: 1.0,
            completed: 40,
            ..ResidentSample::default()
        };
        let _ = law.on_tick(now, 1.0, &sample);
    }
    assert_eq!(law.wanted(), 15);
}

/// Plays so many seconds of a rush with workers that start at once. `took`: seconds that a request is
/// with its worker beside so many.
fn rush(law: &mut Residents, from: u64, for_seconds: u64, took: impl Fn(u32) -> f64) -> u32 {
    for second in from..from + for_seconds {
        let ready = law.wanted();
        let sample = ResidentSample {
            ready,
            running_max: ready,
            short: 1.0,
            completed: (f64::from(ready) / took(ready)) as u64,
            took_s: Some(took(ready)),
            start_s: Some(0.05),
            ..ResidentSample::default()
        };
        let _ = law.on_tick(Instant::ORIGIN + Duration::from_secs(second + 1), 1.0, &sample);
    }
    law.wanted()
}

#[test]
fn workers_come_within_seconds_while_they_bring_what_is_in_proportion() {
    let mut law = Residents::new(ResidentParams { initial: 3, ..shared(1) });
    assert!((20..=50).contains(&rush(&mut law, 0, 9, |_| 0.165)), "{}", law.wanted());
}

#[test]
fn workers_come_without_trials_as_long_as_they_bring_a_third_of_what_is_in_proportion() {
    // Pages of 8 ms that run in step on one core, after 150 ms elsewhere: the next half as many bring
    // less than that from 48 on.
    let mut law = Residents::new(ResidentParams { initial: 3, ..shared(1) });
    let found = rush(&mut law, 0, 30, |n| 0.15 + 0.008 * f64::from(n));
    assert!((40..=75).contains(&found), "{found}");
    // On a core that is full with 18 of them they stop soon after.
    let mut law = Residents::new(ResidentParams { initial: 3, ..shared(1) });
    let found = rush(&mut law, 0, 30, |n| (0.008 * f64::from(n)).max(0.15));
    assert!((18..=36).contains(&found), "{found}");
}

#[test]
fn requests_that_take_long_are_not_judged_before_those_have_ended_that_began_earlier() {
    let mut law = Residents::new(ResidentParams { initial: 8, ..shared(2) });
    assert!(rush(&mut law, 0, 45, |_| 12.0) <= 16, "{}", law.wanted());
}

#[test]
fn an_application_that_fails_moves_nothing() {
    let mut law = Residents::new(ResidentParams { initial: 4, ..shared(2) });
    for second in 1..=300 {
        let ready = law.wanted();
        let sample = ResidentSample {
            ready,
            running_max: ready,
            short: 1.0,
            completed: 3,
            failed: 400,
            took_s: Some(0.01),
            oldest_s: 5.0,
            start_s: Some(0.05),
            ..ResidentSample::default()
        };
        assert_eq!(law.on_tick(Instant::ORIGIN + Duration::from_secs(second), 1.0, &sample), None);
    }
}

#[test]
fn no_trial_goes_below_the_least() {
    // One core that four workers keep busy.
    let mut law = Residents::new(ResidentParams { initial: 16, least: 16, ..shared(1) });
    for second in (0..600).step_by(10) {
        let wanted = rush(&mut law, second, 10, |n| (0.04 * f64::from(n)).max(0.15));
        assert!(wanted >= 16, "{wanted} at {second} s");
    }
}

//! Paper P3's host: resident workers, their best number, and how it is found.

use std::path::Path;
use suimon_control::SizeLawKind;
use suimon_model::{Duration, RouteId};
use suimon_settings::scenario;
use suimon_sim::{Change, Cost, Laws, PoolSetup, RunResult, Scenario, What, run};
use suimon_workload::{Arrivals, Phase, Spacing};

/// The host under constant demand, with a pool made of its own.
fn host(pool: impl FnOnce(PoolSetup) -> PoolSetup) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/_workers.toml");
    let mut scenario = scenario::load(&file).unwrap_or_else(|faults| panic!("{faults}"));
    scenario.pool = scenario.pool.map(pool);
    scenario
}

fn fixed(workers: u32) -> impl FnOnce(PoolSetup) -> PoolSetup {
    move |pool| PoolSetup { law: Some(SizeLawKind::Fixed(workers)), workers, ..pool }
}

fn from(workers: u32) -> impl FnOnce(PoolSetup) -> PoolSetup {
    move |pool| PoolSetup { law: Some(SizeLawKind::Measured), workers, ..pool }
}

fn play(scenario: &Scenario, seed: u64) -> RunResult {
    run(scenario, seed, &Laws::AS_SET).unwrap_or_else(|violation| panic!("{violation}"))
}

fn told(result: &RunResult) -> String {
    let moves = result.resident_moves.iter();
    let moves =
        moves.map(|(at, moved)| format!("{:.0}: {} {}", at.as_secs_f64(), moved.wanted, moved.why.code()));
    moves.collect::<Vec<_>>().join(", ")
}

/// Requests per second, measured for a minute.
fn per_second(pool: impl FnOnce(PoolSetup) -> PoolSetup) -> f64 {
    let scenario = Scenario { measure: Duration::from_secs(60), ..host(pool) };
    play(&scenario, 1).summary.sessions_per_s
}

#[test]
fn about_twenty_workers_complete_the_most_and_fewer_or_many_more_complete_less() {
    let rates = [10, 15, 20, 25, 40, 100].map(|workers| per_second(fixed(workers)));
    let [ten, fifteen, twenty, more, many, hundred] = rates;
    assert!((90.0..97.0).contains(&twenty), "{rates:.1?}");
    assert!(ten < fifteen && fifteen < 0.9 * twenty, "{rates:.1?}");
    assert!(more < twenty && many < 0.8 * twenty && hundred < 0.5 * twenty, "{rates:.1?}");
    let bound = host(fixed(20)).bound(Duration::ZERO);
    assert!((0.96..1.04).contains(&(twenty / bound)), "{bound} {rates:.1?}");
}

#[test]
fn a_process_for_each_request_is_half_as_fast() {
    let cgi = |pool: PoolSetup| PoolSetup { law: None, start: 0.019, ..pool };
    let scenario = Scenario { measure: Duration::from_secs(60), ..host(cgi) };
    let laws = Laws::parse("fixed:22+open").expect("they are laws");
    let result = run(&scenario, 1, &laws).expect("it runs");
    let share = result.summary.sessions_per_s / per_second(fixed(22));
    assert!((0.45..0.6).contains(&share), "{share}");
    // Without a limit there are as many processes as requests.
    assert!(play(&scenario, 1).summary.sessions_per_s < 0.5 * result.summary.sessions_per_s);
}

#[test]
fn from_few_and_from_many_the_law_finds_what_is_best_within_a_minute() {
    for (workers, least) in [(5, 0.97), (20, 0.965), (40, 0.97), (100, 0.965)] {
        for seed in 1..=3 {
            let result = play(&host(from(workers)), seed);
            let share = result.summary.bound_share;
            assert!(share >= least, "{share} from {workers}, seed {seed}: {}", told(&result));
        }
    }
}

#[test]
fn it_follows_requests_that_take_twice_and_half_of_the_processor() {
    for seed in 1..=2 {
        let mut scenario = Scenario { measure: Duration::from_secs(1440), ..host(from(5)) };
        let cost = scenario.routes[0].cost;
        for (at, factor) in [(300, 2.0), (600, 1.0), (900, 0.5), (1200, 1.0)] {
            let what = What::Cost(RouteId(0), Cost { cpu: factor * cost.cpu, ..cost });
            scenario.changes.push(Change { at: Duration::from_secs(at), what });
        }
        let result = play(&scenario, seed);
        for period in 0..5 {
            let from = 300.0 * f64::from(period);
            let share = result.between(from + 60.0, from + 300.0).bound_share;
            assert!(share >= 0.96, "{share} from {from} s, seed {seed}: {}", told(&result));
        }
    }
}

#[test]
fn the_rule_of_idle_workers_grows_on_and_on_and_completes_less_and_less() {
    let seed = |pool| PoolSetup { law: Some(SizeLawKind::Seed), workers: 5, ..pool };
    let result = play(&host(seed), 1);
    assert!(result.pool.last().is_some_and(|second| second.ready > 50));
    let (first, last) = (result.between(60.0, 120.0).bound_share, result.between(240.0, 300.0).bound_share);
    assert!(last < first - 0.1 && last < 0.7, "{first} {last}");
}

#[test]
fn memory_that_the_pool_may_take_is_never_exceeded_and_swapping_ends() {
    let fits = |pool| PoolSetup { memory: 60.0, budget: Some(720.0), ..pool };
    let result = play(&host(|pool| fits(from(5)(pool))), 1);
    assert!(result.pool.iter().all(|second| second.ready + second.starting <= 12), "{}", told(&result));
    let swaps = |pool| PoolSetup { memory: 60.0, machine: Some(900.0), ..pool };
    let fixed = play(&host(|pool| swaps(fixed(20)(pool))), 1).summary.sessions_per_s;
    let ours = play(&host(|pool| swaps(from(20)(pool))), 1);
    assert!(
        ours.summary.sessions_per_s > 1.2 * fixed,
        "{} {fixed} {}",
        ours.summary.sessions_per_s,
        told(&ours)
    );
    assert!(ours.pool.iter().skip(120).all(|second| second.ready <= 15), "{}", told(&ours));
}

/// The host under the paper's peak: 250 requests in a second, then 100 a second.
fn peak() -> Scenario {
    let phase =
        |seconds, rate| Phase { lasts: Duration::from_secs(seconds), from_per_s: rate, to_per_s: rate };
    let phases = vec![phase(1, 250.0), phase(39, 100.0)];
    let mut scenario = host(fixed(22));
    scenario.workload.arrivals = Arrivals::Open { phases, spacing: Spacing::Even, users_max: 10_000 };
    (scenario.warm_up, scenario.measure) = (Duration::ZERO, Duration::from_secs(40));
    scenario
}

#[test]
fn after_the_papers_peak_the_backlog_grows_by_what_comes_beyond_capacity() {
    let result = play(&peak(), 1);
    let backlog = |second: usize| f64::from(result.pool[second].waiting);
    let (after_peak, growth) = (backlog(1), (backlog(39) - backlog(1)) / 38.0);
    assert!((140.0..165.0).contains(&after_peak), "{after_peak}");
    assert!((3.0..7.0).contains(&growth), "{growth}");
}

#[test]
fn with_a_gate_admitted_requests_keep_their_time_through_the_papers_peak() {
    let scenario = peak();
    let laws = Laws::parse("fixed:22+static:44").expect("they are laws");
    let gated = run(&scenario, 1, &laws).expect("it runs");
    let time = |result: &RunResult| result.session_time.mean().unwrap_or_default().as_secs_f64();
    let open = time(&play(&scenario, 1));
    assert!(time(&gated) < 0.6 && open > 1.5, "{} {open}", time(&gated));
}

#[test]
fn the_same_seed_makes_the_same_moves() {
    let scenario = Scenario { measure: Duration::from_secs(120), ..host(from(5)) };
    let (one, other) = (play(&scenario, 7), play(&scenario, 7));
    assert_eq!((one.trace, &one.resident_moves), (other.trace, &other.resident_moves));
    assert_eq!(one.pool, other.pool);
}

//! Another gate's knowledge helps, and does little harm if the site has changed since.

use std::path::Path;
use std::time::Duration;
use suimon_gate::Knowledge;
use suimon_settings::scenario;
use suimon_sim::{Laws, RunResult, Scenario, run, run_knowing};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// The scenario of this name, from its first second on; each request costs `cost` times as much.
fn site(name: &str, cost: f64) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.toml"));
    let mut site = scenario::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
    site.routes.iter_mut().for_each(|route| route.cost.cpu *= cost);
    site.warm_up = Duration::ZERO;
    site.measure = Duration::from_secs(300);
    site
}

fn cold(site: &Scenario, seed: u64) -> RunResult {
    run(site, seed, &Laws::AS_SET).unwrap_or_else(|violation| panic!("{violation}"))
}

fn knowing(site: &Scenario, seed: u64, knowledge: &Knowledge) -> RunResult {
    let knowledge = (knowledge, Duration::from_secs(60));
    run_knowing(site, seed, &Laws::AS_SET, knowledge).unwrap_or_else(|violation| panic!("{violation}"))
}

/// What a gate with another crowd knows of the same site, where each request costs `cost` times as
/// much.
fn known(name: &str, cost: f64, seed: u64) -> Knowledge {
    cold(&site(name, cost), seed + 100).knowledge
}

fn done(outcomes: &[RunResult], from: f64, to: f64) -> f64 {
    outcomes.iter().map(|outcome| outcome.between(from, to).completed as f64).sum()
}

#[test]
fn a_gate_restarted_in_the_rush_does_at_once_what_a_new_one_must_find_out() {
    // A route that mostly waits for other systems, and a wrong number of cores: both need a search.
    for (name, until, times) in [("io-route", 30.0, 1.4), ("bad-start", 120.0, 1.4)] {
        let site = site(name, 1.0);
        let new: Vec<_> = SEEDS.map(|seed| cold(&site, seed)).collect();
        let restarted: Vec<_> = SEEDS.map(|seed| knowing(&site, seed, &known(name, 1.0, seed))).collect();
        let failures = |outcomes: &[RunResult]| {
            outcomes.iter().map(|outcome| outcome.summary.mid_session_failures).sum::<u64>()
        };
        let (lost_by_new, lost) = (failures(&new), failures(&restarted));
        assert!(2 * lost <= lost_by_new, "{name}: {lost} failures inside, {lost_by_new} with a new gate");
        let (by_new, by_it) = (done(&new, 0.0, until), done(&restarted, 0.0, until));
        assert!(by_it > times * by_new, "{name}: {by_it} sessions within {until} s, {by_new} by a new gate");
    }
}

#[test]
fn a_site_that_has_become_twice_as_quick_or_as_slow_is_found_out_within_a_minute() {
    for name in ["open-200-percent", "closed-400", "io-route"] {
        let site = site(name, 1.0);
        let new: Vec<_> = SEEDS.map(|seed| cold(&site, seed)).collect();
        for (what, cost) in [("quicker", 2.0), ("slower", 0.5)] {
            let restarted: Vec<_> =
                SEEDS.map(|seed| knowing(&site, seed, &known(name, cost, seed))).collect();
            let share = |from, to| done(&restarted, from, to) / done(&new, from, to);
            let (early, late) = (share(0.0, 60.0), share(60.0, 300.0));
            assert!(early > 0.8 && late > 0.7, "{name}, {what}: {early:.2}, then {late:.2} of a new gate's");
            let lost: u64 = restarted.iter().map(|outcome| outcome.summary.mid_session_failures).sum();
            let completed: u64 = restarted.iter().map(|outcome| outcome.summary.completed).sum();
            assert!(50 * lost <= completed, "{name}, {what}: {lost} failures inside, {completed} sessions");
        }
    }
}

#[test]
fn below_capacity_old_knowledge_refuses_nobody() {
    let name = "open-60-percent";
    let site = site(name, 1.0);
    for cost in [0.5, 1.0, 2.0] {
        for seed in SEEDS {
            let outcome = knowing(&site, seed, &known(name, cost, seed));
            let summary = outcome.summary;
            assert_eq!((summary.refusals, summary.mid_session_failures), (0, 0), "cost {cost}, seed {seed}");
            assert!(summary.wait_p95_s < 5.0, "cost {cost}, seed {seed}: {summary:?}");
        }
    }
}

#[test]
fn knowledge_of_a_site_that_is_no_more_is_outgrown() {
    // A shop in which every page is new: knowledge of the old pages does not help, and does not
    // hinder for long.
    let site = site("closed-400", 1.0);
    let mut knowledge = known("closed-400", 4.0, 1);
    knowledge.routes.rotate_left(2);
    let (new, restarted) = (cold(&site, 1), knowing(&site, 1, &knowledge));
    let share = done(&[restarted], 60.0, 300.0) / done(&[new], 60.0, 300.0);
    assert!(share > 0.9, "{share:.2}");
}

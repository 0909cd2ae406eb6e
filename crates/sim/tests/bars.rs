//! What the laws must hold to in virtual time. Each failure names its seed.

use suimon_control::{RouteLawKind, SeedRouteParams, SessionLawKind};
use suimon_sim::{Change, Machine, Outcome, Page, Scenario, run};

const SEEDS: [u64; 3] = [1, 2, 3];

/// Runs `scenario` for every seed and holds each outcome to `bar`.
fn every_seed(scenario: &Scenario, bar: impl Fn(&Outcome) -> Result<(), String>) {
    for seed in SEEDS {
        let outcome = run(&Scenario { seed, ..scenario.clone() });
        assert_eq!(outcome.members_refused, 0, "seed {seed}: a begun session was refused");
        if let Err(fault) = bar(&outcome) {
            panic!("seed {seed}: {fault}\n{outcome:#?}");
        }
    }
}

fn at_least(share: f64, mid_session_failures: u64) -> impl Fn(&Outcome) -> Result<(), String> {
    move |outcome| {
        if outcome.goodput_share < share {
            return Err(format!(
                "goodput {:.3} of the bound, at least {share} expected",
                outcome.goodput_share
            ));
        }
        if outcome.mid_session_failures > mid_session_failures {
            return Err(format!("{} mid-session failures", outcome.mid_session_failures));
        }
        Ok(())
    }
}

#[test]
fn four_hundred_visitors_are_served_at_the_bound_and_none_is_lost() {
    every_seed(&Scenario::default(), at_least(0.90, 0));
}

#[test]
fn nothing_needs_to_be_declared() {
    every_seed(&Scenario { patience_declared: false, ..Scenario::default() }, at_least(0.90, 0));
}

#[test]
fn impatient_visitors_change_little() {
    every_seed(&Scenario { patience: vec![30.0], ..Scenario::default() }, at_least(0.90, 0));
}

#[test]
fn mixed_patience_and_exponential_thought_change_little() {
    let scenario = Scenario { patience: vec![30.0, 60.0], think_exponential: true, ..Scenario::default() };
    every_seed(&scenario, at_least(0.90, 0));
}

#[test]
fn quick_visitors_change_little() {
    every_seed(&Scenario { think: 1.0, ..Scenario::default() }, at_least(0.90, 0));
}

#[test]
fn seven_in_ten_only_browsing_need_not_be_declared() {
    every_seed(&Scenario { browse_only: 0.7, ..Scenario::default() }, at_least(0.88, 0));
}

#[test]
fn leavers_do_not_shut_the_gate() {
    // One in twenty leaves after each page: what they used is lost, so the bound is out of reach by their share.
    every_seed(&Scenario { leave: 0.05, ..Scenario::default() }, at_least(0.80, 0));
}

#[test]
fn a_patience_of_ten_seconds_loses_at_most_one_session_in_a_hundred() {
    let scenario = Scenario { patience: vec![10.0], ..Scenario::default() };
    every_seed(&scenario, at_least(0.88, 20));
}

#[test]
fn halved_capacity_is_found_and_forgotten_again() {
    let half = Machine { speed: 0.5, ..Machine::default() };
    let scenario = Scenario {
        changes: vec![Change { at: 300.0, machine: half }, Change { at: 600.0, machine: Machine::default() }],
        measure: 780.0,
        ..Scenario::default()
    };
    every_seed(&scenario, |outcome| {
        at_least(0.70, 0)(outcome)?;
        let mean = |from: usize, to: usize| outcome.bins[from..to].iter().sum::<f64>() / (to - from) as f64;
        let (halved, back) = (mean(12, 20), mean(23, 29));
        if halved < 0.45 || back < 0.90 {
            return Err(format!("{halved:.2} of 0.5 while halved, {back:.2} of 1 afterwards"));
        }
        Ok(())
    });
}

#[test]
fn under_capacity_nobody_is_refused_and_nothing_is_tried() {
    let bound = Scenario::default().bound();
    every_seed(&Scenario { arrivals_per_s: 0.6 * bound, ..Scenario::default() }, |outcome| {
        at_least(0.55, 0)(outcome)?;
        if outcome.refusals + outcome.first_step_failures > 0 {
            return Err(format!("{} refused, {} timed out", outcome.refusals, outcome.first_step_failures));
        }
        if outcome.trial_windows > 0 {
            return Err(format!("{} windows at limits under trial", outcome.trial_windows));
        }
        match outcome.limit_range.iter().find(|(low, high)| high > &(2 * low)) {
            Some((low, high)) => Err(format!("a limit wandered from {low} to {high}")),
            None => Ok(()),
        }
    });
}

#[test]
fn two_heavy_routes_do_not_fight() {
    let mut scenario = Scenario::default();
    scenario.pages[2] = Page::HEAVY;
    scenario.routes = vec![0, 1, 2, 1, 3, 4, 5];
    every_seed(&scenario, at_least(0.88, 0));
}

#[test]
fn a_burst_on_a_cold_gate_loses_nobody_mid_session() {
    every_seed(&Scenario { burst: true, ..Scenario::default() }, at_least(0.70, 0));
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let scenario = Scenario { measure: 60.0, ..Scenario::default() };
    let (first, second) = (run(&scenario), run(&scenario));
    assert_eq!((first.trace, first.completed, first.events), (second.trace, second.completed, second.events));
    assert_ne!(first.trace, run(&Scenario { seed: 99, ..scenario }).trace);
}

#[test]
fn the_model_shows_what_the_paper_saw_without_control() {
    let mut scenario = Scenario { clients: 100, burst: true, route_gates_off: true, ..Scenario::default() };
    scenario.gate.session_law = SessionLawKind::Open;
    let outcomes: Vec<_> =
        SEEDS.iter().map(|seed| run(&Scenario { seed: *seed, ..scenario.clone() })).collect();
    // The paper counted 317 failures at 100 clients, all on the search.
    assert!(
        outcomes.iter().all(|outcome| (150..600).contains(&outcome.mid_session_failures)),
        "{outcomes:#?}"
    );
}

#[test]
fn route_gates_alone_lose_sessions_and_the_papers_rules_hold_less() {
    let mut routes_only = Scenario::default();
    routes_only.gate.session_law = SessionLawKind::Open;
    let mut paper = Scenario::default();
    paper.gate.session_law = SessionLawKind::Seed(suimon_control::SeedSessionParams::default());
    paper.gate.route_law = RouteLawKind::Seed(SeedRouteParams { initial: 2, ..SeedRouteParams::default() });
    for seed in SEEDS {
        let ours = run(&Scenario { seed, ..Scenario::default() });
        let routes_only = run(&Scenario { seed, ..routes_only.clone() });
        let paper = run(&Scenario { seed, ..paper.clone() });
        assert!(routes_only.mid_session_failures > 500, "seed {seed}: {}", routes_only.mid_session_failures);
        assert!(
            paper.goodput_share < ours.goodput_share,
            "seed {seed}: {} {}",
            paper.goodput_share,
            ours.goodput_share
        );
    }
}

//! A scenario made from a gate's learned state gives the goodput of the scenario it was learned in.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

use super::*;
use std::path::PathBuf;
use std::time::Duration;
use suimon_model::RouteId;
use suimon_params::SessionKind;
use suimon_proxy::LearnedView;
use suimon_settings::scenario;
use suimon_sim::{Laws, RunResult, Scenario};

/// How far goodput may be off, as a share of it.
const TOLERANCE: f64 = 0.12;

fn scenario_named(name: &str) -> Scenario {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios")).join(name);
    scenario::load(&path).unwrap_or_else(|faults| panic!("{faults}"))
}

fn played(scenario: &Scenario, seed: u64) -> RunResult {
    suimon_sim::run(scenario, seed, &Laws::AS_SET).unwrap_or_else(|violation| panic!("{violation}"))
}

/// Returns sessions per second, mean of a few seeds.
fn goodput(scenario: &Scenario) -> f64 {
    (1..=4).map(|seed| played(scenario, seed).summary.sessions_per_s).sum::<f64>() / 4.0
}

/// Returns the learned state that a gateway with the gate of that run would report.
fn told(scenario: &Scenario, outcome: &RunResult) -> Learned {
    let routes = (0u32..).zip(&scenario.routes).map(|(id, route)| (route.name.clone(), RouteId(id)));
    let kind = |kind: &suimon_sim::KindSetup| SessionKind {
        name: kind.name.clone(),
        gate: kind.params.clone(),
        ..SessionKind::default()
    };
    let view = LearnedView {
        uptime: Duration::from_secs_f64(outcome.counted.1),
        routes: routes.collect(),
        kinds: scenario.gate.kinds.iter().map(kind).collect(),
        gate: outcome.learned.clone(),
    };
    Learned::of(&view, scenario.nodes as usize, "1.2.3")
}

/// Returns the file made from a scenario's run, and the scenario read from that file.
fn again(before: &Scenario, seed: u64) -> (String, Scenario) {
    let learned = told(before, &played(before, seed));
    let text = scenario_of(&learned, "http://127.0.0.1:8001", "some time").unwrap();
    let after = scenario::read("again.toml", &text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    (text, after)
}

#[test]
fn what_was_learned_of_a_scenario_gives_its_goodput_again() {
    // Too many visitors at once; about as many as can be served, and twice as many; two heavy
    // pages, two kinds, and visitors who become silent.
    for name in [
        "closed-400.toml",
        "open-95-percent.toml",
        "open-200-percent.toml",
        "two-heavy-pages.toml",
        "kinds-70-30-undeclared.toml",
        "silent-visitors.toml",
    ] {
        let before = scenario_named(name);
        // Learns from each run that it is compared with, because a single run may have a bad
        // minute.
        let of = |seed: u64| played(&again(&before, seed).1, seed).summary.sessions_per_s;
        let (was, is) = (goodput(&before), (1..=4).map(of).sum::<f64>() / 4.0);
        assert!((is / was - 1.0).abs() < TOLERANCE, "{name}: {was:.2} sessions a second, then {is:.2}");
    }
}

#[test]
fn below_capacity_as_many_come_and_what_could_be_done_is_not_less() {
    let before = scenario_named("open-60-percent.toml");
    let (text, after) = again(&before, 5);
    let (was, is) = (goodput(&before), goodput(&after));
    assert!((is / was - 1.0).abs() < TOLERANCE, "{was:.2} sessions a second, then {is:.2}\n{text}");
    let bound = after.bound(Duration::ZERO) / before.bound(Duration::ZERO);
    assert!(
        (0.8..1.3).contains(&bound),
        "nothing was short, so it is a guess, but no wild one: {bound}\n{text}"
    );
}

#[test]
fn the_same_is_learned_the_same_is_written_and_what_is_assumed_is_said() {
    let before = scenario_named("closed-400.toml");
    let learned = told(&before, &played(&before, 5));
    let wire: Learned = serde_json::from_str(&serde_json::to_string(&learned).unwrap()).unwrap();
    let text = scenario_of(&learned, "x", "y").unwrap();
    assert_eq!(text, scenario_of(&wire, "x", "y").unwrap(), "nothing is lost on the way");
    for said in [
        "Measured: newcomers",
        "Assumed: too few have gone",
        "GET /search was short",
        "efficiency = \"flat\"",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }

    let mut unpressed = learned;
    unpressed.routes.iter_mut().for_each(|route| route.capacity_per_second = None);
    assert!(scenario_of(&unpressed, "x", "y").unwrap().contains("NOT MEASURED"));
    for kind in &mut unpressed.kinds {
        kind.ended = 3;
    }
    assert_eq!(scenario_of(&unpressed, "x", "y"), Err(TooLittle { ended: 3 }));
}

#[test]
fn names_from_strangers_cannot_break_the_file() {
    let before = scenario_named("open-60-percent.toml");
    let mut learned = told(&before, &played(&before, 5));
    let text = serde_json::to_string(&learned).unwrap().replace("/search", "/s\\\"\\n[server]{x\u{e9}#");
    learned = serde_json::from_str(&text).unwrap();
    learned.kinds[0].name = "a\"b\n]".to_owned();
    let text = scenario_of(&learned, "http://x/\n[gate]", "y").unwrap();
    let read = scenario::read("again.toml", &text);
    // Only the kind's name may be refused.
    let faults = read.err().map_or_else(String::new, |faults| faults.to_string());
    assert!(faults.lines().all(|line| line.contains("session[0].kind")), "{faults}\n{text}");
}

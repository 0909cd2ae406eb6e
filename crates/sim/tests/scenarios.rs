//! The scenario files hold what they promise, for each of their seeds. Each failure names its seed, and the command that repeats it.

use std::path::{Path, PathBuf};
use suimon_settings::scenario;
use suimon_sim::{Laws, Metric, Scenario, run};

/// What takes too long for a test that is not optimised; `suimon sim scenarios/` plays it.
const LONG: &[&str] = &["flash-crowd"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn scenarios() -> Vec<Scenario> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the scenarios lie beside the crates")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .filter(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('_')))
        .collect();
    paths.sort();
    paths.iter().map(|path| scenario::load(path).unwrap_or_else(|faults| panic!("{faults}"))).collect()
}

#[test]
fn every_scenario_keeps_its_bands_on_every_seed() {
    let scenarios = scenarios();
    assert!(scenarios.len() > 30, "{} found in {}", scenarios.len(), folder().display());
    let mut faults = vec![];
    for scenario in scenarios.iter().filter(|scenario| !LONG.contains(&scenario.name.as_str())) {
        assert!(!scenario.question.is_empty(), "{} asks nothing", scenario.name);
        assert!(!scenario.expect.is_empty(), "{} expects nothing", scenario.name);
        for seed in &scenario.seeds {
            match run(scenario, *seed, &Laws::AS_SET) {
                Ok(outcome) => {
                    let misses = scenario.expect.iter().filter_map(|band| band.judge(&outcome));
                    let name = &scenario.name;
                    faults.extend(
                        misses.map(|miss| format!("{miss}: suimon sim scenarios/{name}.toml --seed {seed}")),
                    );
                }
                Err(violation) => faults.push(violation.to_string()),
            }
        }
    }
    assert!(faults.is_empty(), "{} bands missed:\n{}", faults.len(), faults.join("\n"));
}

/// A single seed says little of requests this uneven, so their bands are wide; what many say together is held closely.
#[test]
fn very_uneven_requests_cost_a_twentieth_of_the_best_in_the_mean() {
    const SEEDS: u64 = 24;
    for name in ["scalability-4-uneven", "scalability-10-uneven", "scalability-30-uneven"] {
        let scenario = scenario::load(&folder().join(format!("{name}.toml"))).expect("it is there");
        let share = scenario.expect.iter().find(|band| band.metric == Metric::GoodputShare);
        let share = share.unwrap_or_else(|| panic!("{name} expects nothing of its goodput"));
        let play =
            |seed| run(&scenario, seed, &Laws::AS_SET).unwrap_or_else(|violation| panic!("{violation}"));
        let mean = (1..=SEEDS).map(|seed| share.value(&play(seed))).sum::<f64>() / SEEDS as f64;
        assert!(mean >= 0.945, "{name}: {mean:.3}: suimon sim scenarios/{name}.toml --seeds {SEEDS}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_on_any_thread() {
    let scenario = scenario::load(&folder().join("closed-400.toml")).expect("it is there");
    let play = |seed| run(&scenario, seed, &Laws::AS_SET).unwrap_or_else(|violation| panic!("{violation}"));
    let here = play(7);
    let there = std::thread::scope(|scope| scope.spawn(|| play(7)).join().expect("it plays"));
    assert_eq!((here.trace, here.events, here.counts), (there.trace, there.events, there.counts));
    assert_ne!(here.trace, play(8).trace);
}

/// Logarithms, random numbers and the order of events are the same everywhere; so is everything that follows from them. When a law
/// or the model is changed on purpose this number changes too, and is to be written anew.
#[test]
fn the_same_seed_gives_this_very_run_on_every_machine() {
    let scenario = scenario::load(&folder().join("closed-400.toml")).expect("it is there");
    let outcome = run(&scenario, 1, &Laws::AS_SET).unwrap_or_else(|violation| panic!("{violation}"));
    assert_eq!(format!("{:016x}", outcome.trace), "020d47e687afa604");
}

#[test]
fn rivals_break_no_promise_of_the_gate() {
    let scenario = scenario::load(&folder().join("leave-5-percent.toml")).expect("it is there");
    for (name, _) in Laws::catalogue() {
        let laws = Laws::parse(&name).expect("the catalogue names laws");
        let outcome = run(&scenario, 1, &laws).unwrap_or_else(|violation| panic!("{name}: {violation}"));
        assert!(outcome.events > 10_000, "{name}");
    }
}

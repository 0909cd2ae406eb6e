//! What the papers found on four operating systems, in the scenario files of
//! `experiments/degradation-papers`: how a light job fades beside heavy ones where nothing is
//! controlled, and what pauses in the heavy ones do for it.

use std::path::Path;
use std::sync::Arc;
use suimon_model::Duration;
use suimon_settings::scenario;
use suimon_sim::{Laws, Pauses, Scenario, run};
use suimon_workload::Arrivals;

const SEEDS: u64 = 3;
/// Seconds played, from the start: the paper's.
const SECONDS: u64 = 120;
const LIGHT: u32 = 30;

fn system(name: &str, heavy: u32, pauses: Pauses) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/degradation-papers");
    let mut scenario =
        scenario::load(&folder.join(format!("{name}.toml"))).unwrap_or_else(|faults| panic!("{faults}"));
    for (journey, users) in scenario.workload.kinds.iter_mut().zip([LIGHT, heavy]) {
        Arc::make_mut(journey).users = Some(users);
    }
    let Arrivals::Closed { users, .. } = &mut scenario.workload.arrivals else {
        panic!("{name}: clients that ask again at once")
    };
    *users = LIGHT + heavy;
    let walk = scenario.steps[1][0];
    scenario.routes[walk.index()].cost.pauses = pauses;
    scenario.measure = Duration::from_secs(SECONDS);
    scenario
}

/// Returns the light and the heavy jobs done per second, on average over the seeds.
fn done(scenario: &Scenario) -> (f64, f64) {
    let laws = Laws::parse("none").expect("no control has a name");
    let (mut light, mut heavy) = (0, 0);
    for seed in 1..=SEEDS {
        let result = run(scenario, seed, &laws).unwrap_or_else(|violation| panic!("{violation}"));
        light += result.steps[0][0].time.count();
        heavy += result.steps[1][0].time.count();
    }
    let seconds = (SEEDS * SECONDS) as f64;
    (light as f64 / seconds, heavy as f64 / seconds)
}

#[test]
fn beside_forty_heavy_jobs_the_light_one_falls_as_on_each_of_the_papers_systems() {
    for (name, least, most) in
        [("linux", 0.0, 0.05), ("freebsd", 0.0, 0.05), ("windows", 0.0, 0.05), ("solaris", 0.15, 0.4)]
    {
        let light = |heavy| done(&system(name, heavy, Pauses::default())).0;
        let (few, many) = (light(1), light(40));
        let left = many / few;
        assert!((least..most).contains(&left), "{name}: {few:.0} and {many:.1} per second: {left:.3}");
    }
}

/// What the model has of pauses of 4 s: the paper's ×6.5, ×2.6 and ×1.4 in their order and within
/// twice their size, and at a higher price. On Windows it does not have the paper's ×17 for 2 s; the
/// experiment says why.
#[test]
fn pauses_in_heavy_jobs_give_the_light_one_most_where_it_suffered_most() {
    let around = Pauses { before: 2.0, after: 2.0, ..Pauses::default() };
    let inside = Pauses { inside: 4.0, pieces: 100, ..Pauses::default() };
    for (name, least, most) in [("linux", 6.5, 13.0), ("freebsd", 2.6, 5.2), ("solaris", 1.2, 1.7)] {
        let plain = done(&system(name, 20, Pauses::default()));
        for pauses in [around, inside] {
            let paused = done(&system(name, 20, pauses));
            let (light, heavy) = (paused.0 / plain.0, paused.1 / plain.1);
            assert!((least..most).contains(&light), "{name}, {pauses:?}: {light:.2} times the light ones");
            assert!((0.6..0.95).contains(&heavy), "{name}, {pauses:?}: {heavy:.2} of the heavy ones");
        }
    }
}

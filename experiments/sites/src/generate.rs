//! Scenarios that nobody designed: sites drawn from a number, to test laws on sites for which they
//! were not tuned.
//!
//! A site has one to three journeys of two to eight steps over three to ten routes, one or two of
//! them heavy. Its machine has one to eight cores with any of the efficiency curves. Its visitors
//! think, wait and leave in any of the possible ways, and are more or fewer than it can serve. One
//! site in four changes while it runs. The same number gives the same site.

use crate::draw::{between, machine};
use std::sync::Arc;
use suimon_gate::{KindParams, Params, RouteMode};
use suimon_model::{Duration, KindId, Rng, seconds};
use suimon_sim::{Change, Cost, GateSetup, KindSetup, Machine, Route, Scenario, What};
use suimon_workload::{
    Arrivals, InLine, Journey, OnFailure, OnRefusal, Patience, Phase, Retry, Spacing, Step, Think, Workload,
};

/// A separate stream of random numbers.
const SITES: u64 = 0x517E;
/// The most visitors at once.
const USERS_MAX: f64 = 20_000.0;
/// Sites outside these many sessions per second are drawn again: too few to measure, or too slow to
/// simulate.
const BOUND: (f64, f64) = (0.5, 150.0);

/// Returns the site of this number.
pub fn generate(number: u64) -> Scenario {
    let mut rng = Rng::stream(number, SITES);
    loop {
        let site = draw(number, &mut rng);
        if (BOUND.0..=BOUND.1).contains(&site.bound(Duration::ZERO)) {
            return site;
        }
    }
}

fn draw(number: u64, rng: &mut Rng) -> Scenario {
    let costs = costs(rng);
    let kinds: Vec<Arc<Journey>> =
        (0..=rng.below(3)).map(|index| Arc::new(journey(index, costs.len(), rng))).collect();
    let cores = (1 << rng.below(4)) as f64;
    let machine = machine(cores, rng);
    let idle = Arrivals::Open { phases: vec![], spacing: Spacing::Poisson, users_max: 1 };
    let workload = Workload { kinds, arrivals: idle, returning: false, seed: number };
    let (names, steps) = Scenario::routes_of(&workload);
    let cost_of = |name: &str| {
        let index = name.rsplit('/').next().and_then(|index| index.parse::<usize>().ok());
        costs[index.expect("the paths end in numbers")]
    };
    let routes = names
        .iter()
        .map(|name| Route { name: name.clone(), mode: RouteMode::Enforce, cost: cost_of(name) })
        .collect();
    let kind = KindSetup { name: "visit".into(), params: KindParams::default(), ends: vec![] };
    let gate = GateSetup {
        params: Params { cores: machine.cores.ceil() as u32, ..Params::default() },
        kind_of: vec![KindId(0); steps.len()],
        kinds: vec![kind],
        services: suimon_gate::Services::default(),
        unaware: false,
    };
    let mut site = Scenario {
        name: format!("site-{number}"),
        question: "What are the laws worth on a site nobody thought of?".into(),
        seeds: vec![number],
        workload,
        routes,
        steps,
        machine: machine.clone(),
        nodes: 1,
        scaling: None,
        pool: None,
        changes: vec![],
        gate,
        warm_up: Duration::from_secs(120),
        measure: Duration::from_secs(300),
        expect: vec![],
    };
    site.workload.arrivals = arrivals(&site, rng);
    if rng.chance(0.25) {
        let changed = Machine { speed: between(rng, 0.4, 1.0), ..machine.clone() };
        let at = seconds(rng.between(150.0, 250.0));
        site.changes.push(Change { at, what: What::Machine(changed) });
        if rng.chance(0.5) {
            let back = at + seconds(rng.between(40.0, 100.0));
            site.changes.push(Change { at: back, what: What::Machine(machine) });
        }
    }
    site
}

/// One or two heavy routes, the rest light; some wait for other systems.
fn costs(rng: &mut Rng) -> Vec<Cost> {
    let routes = 3 + rng.below(8);
    let heavy = 1 + rng.below(2);
    let cost = |index: usize| {
        let is_heavy = index < heavy;
        let waits = rng.chance(0.3);
        Cost {
            cpu: if is_heavy { between(rng, 0.1, 0.8) } else { between(rng, 0.002, 0.05) },
            variation: rng.between(0.1, 1.0),
            memory: if is_heavy { between(rng, 0.3, 2.0) } else { rng.between(0.0, 0.05) },
            elsewhere: if waits { between(rng, 0.02, 2.0) } else { 0.0 },
            elsewhere_variation: if waits { rng.between(0.0, 0.7) } else { 0.0 },
            ..Cost::default()
        }
    };
    (0..routes).map(cost).collect()
}

fn journey(index: usize, routes: usize, rng: &mut Rng) -> Journey {
    let length = 2 + rng.below(7);
    // The heavy page is rarely the first.
    let heavy_at = if rng.chance(0.85) { 1 + rng.below(length - 1) } else { 0 };
    let step = |number: usize| {
        let route = if number == heavy_at { rng.below(2) } else { rng.below(routes) };
        Step::get(&format!("step-{number}"), &format!("/page/{route}"))
    };
    let steps = (0..length).map(step).collect();
    let mean = seconds(between(rng, 0.5, 8.0));
    let think = match rng.below(3) {
        0 => Think::Constant(mean),
        1 => Think::Exponential { mean },
        _ => Think::Lognormal { mean, cv: rng.between(0.2, 1.5) },
    };
    let waits = seconds(between(rng, 10.0, 90.0));
    let patience = if rng.chance(0.5) {
        Patience::Constant(waits)
    } else {
        Patience::Mixture(vec![(1.0, waits), (1.0, waits * 2)])
    };
    let retry = Retry {
        from: 1,
        from_after_error: 1,
        retries_max: 3,
        pause_after_timeout: Duration::ZERO,
        pause_after_error: Duration::from_secs(3),
    };
    Journey {
        name: format!("journey-{index}"),
        weight: rng.between(0.2, 1.0),
        users: None,
        steps,
        think,
        patience,
        leave: if rng.chance(0.5) { 0.0 } else { rng.between(0.0, 0.1) },
        on_failure: if rng.chance(0.5) { OnFailure::Retry(retry) } else { OnFailure::GiveUp },
        on_refusal: OnRefusal { retries_max: rng.below(100) as u32, ..OnRefusal::default() },
        in_line: InLine::default(),
    }
}

/// From half of what can be served to several times as much, steadily or with a rush in the middle.
fn arrivals(site: &Scenario, rng: &mut Rng) -> Arrivals {
    let bound = site.bound(Duration::ZERO);
    let times = between(rng, 0.5, 5.0);
    if rng.chance(0.5) {
        let one = Arrivals::Closed {
            users: 1,
            start_over: Duration::from_secs(5),
            spacing: Spacing::Poisson,
            sessions_each: None,
            pause: Think::Exponential { mean: Duration::from_secs(2) },
        };
        let of_one = Scenario {
            workload: Workload { arrivals: one.clone(), ..site.workload.clone() },
            ..site.clone()
        };
        let users = (times * bound / of_one.offered(Duration::ZERO)).clamp(2.0, USERS_MAX) as u32;
        let Arrivals::Closed { start_over, spacing, sessions_each, pause, .. } = one else {
            unreachable!("it was made closed")
        };
        return Arrivals::Closed { users, start_over, spacing, sessions_each, pause };
    }
    let stays = site.offered_share();
    let steady = |lasts: f64, rate: f64| Phase { lasts: seconds(lasts), from_per_s: rate, to_per_s: rate };
    let rate = times * bound / stays;
    let phases = if rng.chance(0.3) {
        let calm = rate.min(0.6 * bound / stays);
        vec![
            steady(rng.between(130.0, 200.0), calm),
            steady(rng.between(30.0, 100.0), rate),
            steady(3600.0, calm),
        ]
    } else {
        vec![steady(3600.0, rate)]
    };
    Arrivals::Open { phases, spacing: Spacing::Poisson, users_max: USERS_MAX as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_sim::{Laws, run};

    #[test]
    fn the_same_number_gives_the_same_site_and_another_another() {
        let told = |number| format!("{:?}", generate(number));
        assert_eq!(told(7), told(7));
        assert_ne!(told(7), told(8));
    }

    #[test]
    fn sites_can_be_played_and_the_checkers_find_nothing() {
        for number in 0..20 {
            let mut site = generate(number);
            (site.warm_up, site.measure) = (Duration::from_secs(10), Duration::from_secs(20));
            let outcome = run(&site, number, &Laws::AS_SET).unwrap_or_else(|violation| panic!("{violation}"));
            assert!(outcome.events > 100, "site {number} is dead");
        }
    }
}

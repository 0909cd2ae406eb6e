//! The question a run answers: which visitors, which application, which gate, and what is expected.

use crate::node::Machine;
use std::collections::BTreeMap;
use suimon_gate::{KindParams, Mode, Params};
use suimon_model::{Duration, KindId, RouteId};
use suimon_workload::{Arrivals, Journey, Workload};

/// One scenario, as it is played for each seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: the file's, without its ending.
    pub name: String,
    /// What it asks, in one sentence.
    pub question: String,
    /// The seeds it is played with where nothing else is said; at least one.
    pub seeds: Vec<u64>,
    /// Who comes, and what they do. Its own seed is replaced by that of the run.
    pub workload: Workload,
    /// The routes of the application, by [`RouteId`].
    pub routes: Vec<Route>,
    /// By kind of journey, then by step: the route it asks for.
    pub steps: Vec<Vec<RouteId>>,
    /// The application's machine; every node is alike.
    pub machine: Machine,
    /// How many nodes there are; at least 1.
    pub nodes: u32,
    /// What changes during the run, in order of time.
    pub changes: Vec<Change>,
    /// The gate in front.
    pub gate: GateSetup,
    /// Time before counting begins.
    pub warm_up: Duration,
    /// Time counted; a run in which everybody has finished ends earlier.
    pub measure: Duration,
    /// What should come of it.
    pub expect: Vec<crate::Band>,
}

/// One route of the application, and what a request of it costs.
#[derive(Clone, Debug)]
pub struct Route {
    /// Method and path: "GET /search".
    pub name: String,
    /// What the gate does on it.
    pub mode: Mode,
    /// What a request costs.
    pub cost: Cost,
}

/// What a request costs the application.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Mean CPU seconds, lognormal.
    pub cpu: f64,
    /// Coefficient of variation of the CPU seconds.
    pub variation: f64,
    /// Memory units (or MB) held while in service.
    pub memory: f64,
    /// Seconds of waiting for others (a database) before the CPU part.
    pub elsewhere: f64,
    /// Coefficient of variation of these.
    pub elsewhere_variation: f64,
    /// Share of requests that fail, 0 to 1, ...
    pub errors: f64,
    /// ... after this many CPU seconds.
    pub error_cpu: f64,
}

impl Default for Cost {
    /// A light page of the paper's shop.
    fn default() -> Self {
        Cost {
            cpu: 0.03,
            variation: 0.15,
            memory: 0.02,
            elsewhere: 0.0,
            elsewhere_variation: 0.0,
            errors: 0.0,
            error_cpu: 0.005,
        }
    }
}

/// Something that changes during a run.
#[derive(Clone, Debug)]
pub struct Change {
    /// When, after the start.
    pub at: Duration,
    /// What.
    pub what: What,
}

/// What changes.
#[derive(Clone, Debug)]
pub enum What {
    /// Every node's machine is this from now on.
    Machine(Machine),
    /// A request of the route costs this from now on.
    Cost(RouteId, Cost),
}

/// The gate in front of the application.
#[derive(Clone, Debug, Default)]
pub struct GateSetup {
    /// As of `suimon serve`.
    pub params: Params,
    /// The kinds of session, by [`KindId`]; at least one.
    pub kinds: Vec<Kind>,
    /// By kind of journey: the kind of session it begins.
    pub kind_of: Vec<KindId>,
    /// Whether a client that has left goes unnoticed: its request keeps its place, and is worked on as if somebody waited for it,
    /// as servers without an eye on their connections do.
    pub unaware: bool,
}

/// One kind of session, as the gate is told of it.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// As of `suimon serve`.
    pub params: KindParams,
    /// The routes that end it, once answered.
    pub ends: Vec<RouteId>,
}

impl Scenario {
    /// Returns B at `at`: sessions per second if the application did nothing but sessions that are finished.
    ///
    /// B = what the machine can do at the best number at once ÷ CPU seconds per finished session, those of visitors who leave on the way
    /// included. What requests hold in memory counts: a heap that is half full with every core at work is collected, whoever limits it.
    pub fn bound(&self, at: Duration) -> f64 {
        let (machine, costs) = self.state(at);
        let weights: f64 = self.workload.kinds.iter().map(|journey| journey.weight).sum();
        let (mut cpu, mut held, mut finished) = (0.0, 0.0, 0.0);
        for (journey, steps) in self.workload.kinds.iter().zip(&self.steps) {
            let share = journey.weight / weights;
            let mut still_there = 1.0;
            for (number, route) in steps.iter().enumerate() {
                let cost = &costs[route.index()];
                cpu += share * still_there * cost.cpu;
                held += share * still_there * cost.cpu * cost.memory;
                still_there *= if number + 1 < steps.len() { 1.0 - journey.leave } else { 1.0 };
            }
            finished += share * still_there;
        }
        let work = machine.work_per_second_max(held / cpu.max(1e-12));
        f64::from(self.nodes) * work * finished / cpu.max(1e-12)
    }

    /// Returns sessions per second that would be finished if nobody ever had to wait for anybody, at `at`.
    pub fn offered(&self, at: Duration) -> f64 {
        let (_, costs) = self.state(at);
        let weights: f64 = self.workload.kinds.iter().map(|journey| journey.weight).sum();
        let shares = || self.workload.kinds.iter().map(|journey| journey.weight / weights);
        let finished = self.offered_share();
        match &self.workload.arrivals {
            Arrivals::Closed { users, pause, .. } => {
                let sessions = self.workload.kinds.iter().zip(&self.steps);
                let mean: f64 = shares()
                    .zip(sessions)
                    .map(|(share, (journey, steps))| share * length(journey, steps, &costs))
                    .sum();
                f64::from(*users) * finished / (mean + pause.mean().as_secs_f64()).max(1e-9)
            }
            Arrivals::Open { phases, .. } => {
                let mut ends = Duration::ZERO;
                let phase = phases.iter().find(|phase| {
                    ends = ends.saturating_add(phase.lasts);
                    at < ends
                });
                let Some(phase) = phase else { return 0.0 };
                let into = at.as_secs_f64() - ends.saturating_sub(phase.lasts).as_secs_f64();
                let share = if phase.lasts == Duration::MAX { 0.0 } else { into / phase.lasts.as_secs_f64() };
                (phase.from_per_s + share * (phase.to_per_s - phase.from_per_s)) * finished
            }
        }
    }

    /// Returns the share of sessions whose visitors stay to the end of their own accord.
    pub(crate) fn offered_share(&self) -> f64 {
        let weights: f64 = self.workload.kinds.iter().map(|journey| journey.weight).sum();
        self.workload.kinds.iter().map(|journey| journey.weight / weights * stays(journey)).sum()
    }

    /// Returns sessions per second that could be finished at `at`: what the application can do, or what is asked of it.
    pub fn reachable(&self, at: Duration) -> f64 {
        self.bound(at).min(self.offered(at))
    }

    /// Returns the machine and the costs by route as they are at `at`.
    pub(crate) fn state(&self, at: Duration) -> (Machine, Vec<Cost>) {
        let mut machine = self.machine.clone();
        let mut costs: Vec<Cost> = self.routes.iter().map(|route| route.cost).collect();
        for change in self.changes.iter().take_while(|change| change.at <= at) {
            match &change.what {
                What::Machine(changed) => machine = changed.clone(),
                What::Cost(route, cost) => costs[route.index()] = *cost,
            }
        }
        (machine, costs)
    }

    /// Returns the routes that `workload` asks for, each named once, in the order in which it asks, and by kind and step which.
    ///
    /// A route is the method and the path without its query: what the gateway discovers from traffic of such paths.
    pub fn routes_of(workload: &Workload) -> (Vec<String>, Vec<Vec<RouteId>>) {
        let mut names = vec![];
        let mut known = BTreeMap::new();
        let mut route = |step: &suimon_workload::Step| {
            let path = step.path.to_string();
            let path = path.split('?').next().unwrap_or(&path);
            let name = format!("{} {path}", step.method);
            *known.entry(name.clone()).or_insert_with(|| {
                names.push(name);
                RouteId(u32::try_from(names.len() - 1).expect("a scenario has few routes"))
            })
        };
        let steps =
            workload.kinds.iter().map(|journey| journey.steps.iter().map(&mut route).collect()).collect();
        (names, steps)
    }
}

/// Returns the probability that a visitor stays to the end.
fn stays(journey: &Journey) -> f64 {
    (1..journey.steps.len()).fold(1.0, |stays, _| stays * (1.0 - journey.leave))
}

/// Returns the mean seconds of a session in which nobody waits, those of visitors who leave on the way included.
fn length(journey: &Journey, steps: &[RouteId], costs: &[Cost]) -> f64 {
    let mut still_there = 1.0;
    let mut seconds = 0.0;
    for (number, (step, route)) in journey.steps.iter().zip(steps).enumerate() {
        if number > 0 {
            still_there *= 1.0 - journey.leave;
            seconds += still_there * step.think.unwrap_or(journey.think).mean().as_secs_f64();
        }
        let cost = &costs[route.index()];
        seconds += still_there * (cost.cpu + cost.elsewhere);
    }
    seconds
}

//! The question that a run answers: which visitors, which application, which gate, and what is
//! expected.

use crate::node::{Machine, Pauses};
use crate::pool::PoolSetup;
use crate::threads::through;
use std::collections::BTreeMap;
use suimon_fleet::scaling::ScalingLaw;
use suimon_gate::{KindParams, Params, RouteMode};
use suimon_model::{Duration, KindId, RouteId};
use suimon_workload::{Arrivals, Journey, Workload};

/// One scenario, as it is played for each seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: the file's, without its extension.
    pub name: String,
    /// What it asks, in one sentence.
    pub question: String,
    /// The seeds it is played with by default; at least one.
    pub seeds: Vec<u64>,
    /// Which visitors come, and what they do. The run's seed replaces its own.
    pub workload: Workload,
    /// The routes of the application, by [`RouteId`].
    pub routes: Vec<Route>,
    /// By kind of journey, then by step: the route of the request.
    pub steps: Vec<Vec<RouteId>>,
    /// The application's machine; all nodes are alike.
    pub machine: Machine,
    /// How many nodes there are, at the start where they come and go; at least 1, and exactly 1 with a
    /// pool.
    pub nodes: u32,
    /// How nodes come and go; `None`: they stay.
    pub scaling: Option<NodesSetup>,
    /// The resident workers that the application consists of; `None`: it takes any number of
    /// requests at once.
    pub pool: Option<PoolSetup>,
    /// What changes during the run, in order of time.
    pub changes: Vec<Change>,
    /// The gate in front.
    pub gate: GateSetup,
    /// Time before measuring begins.
    pub warm_up: Duration,
    /// Measured time; a run in which all visitors have finished ends earlier.
    pub measure: Duration,
    /// The expected results.
    pub expect: Vec<crate::Band>,
}

/// How nodes come and go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NodesSetup {
    /// How their number is found.
    pub law: ScalingLaw,
    /// The fewest nodes; at least 1.
    pub least: u32,
    /// The most nodes.
    pub most: u32,
    /// The shortest and the longest start of a node; all between are as likely.
    pub start: (Duration, Duration),
    /// Nodes that are kept ready beside those that serve.
    pub parked: u32,
    /// Whether the law is told of newcomers that wait to be let in; if not, it knows what can be seen
    /// behind the gateway.
    pub sees_newcomers: bool,
}

impl Default for NodesSetup {
    fn default() -> Self {
        NodesSetup {
            law: ScalingLaw::default(),
            least: 1,
            most: 8,
            start: (Duration::from_millis(250), Duration::from_millis(400)),
            parked: 0,
            sees_newcomers: true,
        }
    }
}

/// One route of the application, and what a request of it costs.
#[derive(Clone, Debug)]
pub struct Route {
    /// Method and path: "GET /search".
    pub name: String,
    /// What the gate does on it.
    pub mode: RouteMode,
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
    /// Seconds of waiting for other systems (a database) before the CPU part.
    pub elsewhere: f64,
    /// Coefficient of variation of that wait.
    pub elsewhere_variation: f64,
    /// Share of requests that fail, 0 to 1, ...
    pub errors: f64,
    /// ... after this many CPU seconds.
    pub error_cpu: f64,
    /// The most requests of this route in work at once; the rest wait inside the application (for a
    /// lock held during the whole request, or a pool of its own). `None`: unlimited.
    pub own_pool: Option<u32>,
    /// When it rests although it could work, holding its thread.
    pub pauses: Pauses,
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
            own_pool: None,
            pauses: Pauses::default(),
        }
    }
}

/// Something that changes during a run.
#[derive(Clone, Debug)]
pub struct Change {
    /// When, counted from the start.
    pub at: Duration,
    /// What changes.
    pub what: What,
}

/// What changes.
#[derive(Clone, Debug)]
pub enum What {
    /// Every node has this machine from now on.
    Machine(Machine),
    /// A request of the route costs this from now on.
    Cost(RouteId, Cost),
    /// New journeys are chosen by these weights from now on, by kind of journey; 0: never.
    Weights(Vec<f64>),
}

/// The gate in front of the application.
#[derive(Clone, Debug, Default)]
pub struct GateSetup {
    /// As for `suimon serve`.
    pub params: Params,
    /// The kinds of session, by [`KindId`]; at least one.
    pub kinds: Vec<KindSetup>,
    /// By kind of journey: the kind of session it begins.
    pub kind_of: Vec<KindId>,
    /// The services, and what their split goes by.
    pub services: suimon_gate::Services,
    /// Whether client disconnects go unnoticed: the request keeps its place, and is worked on as if
    /// its client still waited, as in servers that do not watch their connections.
    pub unaware: bool,
}

/// One kind of session, as declared to the gate.
#[derive(Clone, Debug)]
pub struct KindSetup {
    /// Its name.
    pub name: String,
    /// As for `suimon serve`.
    pub params: KindParams,
    /// The routes whose answer ends it.
    pub ends: Vec<RouteId>,
}

impl Scenario {
    /// Returns how many nodes there can be.
    pub fn nodes_most(&self) -> u32 {
        self.scaling.map_or(self.nodes, |scaling| scaling.most)
    }

    /// Returns B at `at`: sessions per second if the application worked only for sessions that are
    /// finished.
    ///
    /// B = what the machine can do at the best concurrency ÷ CPU seconds per finished session.
    /// These include the CPU seconds of visitors who leave on the way. B is less if threads,
    /// connections or locks limit the rate further. The memory of requests counts: a heap that is
    /// half full with every core at work is collected, whatever sets the limit.
    pub fn bound(&self, at: Duration) -> f64 {
        self.state(at).bound(self)
    }

    /// Returns the sessions per second that would be finished at `at` if no request ever waited.
    pub fn offered(&self, at: Duration) -> f64 {
        self.state(at).offered(self, at)
    }

    /// Returns the share of sessions whose visitors want to stay to the end.
    pub fn offered_share(&self) -> f64 {
        self.state(Duration::ZERO).offered_share(self)
    }

    /// Returns the sessions per second that could be finished at `at`: the application's bound or
    /// the demand, whichever is less.
    pub fn reachable(&self, at: Duration) -> f64 {
        self.bound(at).min(self.offered(at))
    }

    /// Returns B and what is reachable at each of `times`, which must ascend.
    pub fn rates(&self, times: impl Iterator<Item = Duration>) -> Vec<(f64, f64)> {
        let mut known: Option<(usize, SiteState, f64)> = None;
        let rate = |at: Duration| {
            let changes = self.changes.partition_point(|change| change.at <= at);
            let (_, state, bound) = match known.take().filter(|(seen, ..)| *seen == changes) {
                Some(same) => known.insert(same),
                None => {
                    let state = self.state(at);
                    let bound = state.bound(self);
                    known.insert((changes, state, bound))
                }
            };
            (*bound, bound.min(state.offered(self, at)))
        };
        times.map(rate).collect()
    }

    /// Returns the machine, the costs by route and the weights of the journeys at `at`.
    pub fn state(&self, at: Duration) -> SiteState {
        let mut state = SiteState {
            machine: self.machine.clone(),
            costs: self.routes.iter().map(|route| route.cost).collect(),
            weights: self.workload.kinds.iter().map(|journey| journey.weight).collect(),
        };
        for change in self.changes.iter().take_while(|change| change.at <= at) {
            match &change.what {
                What::Machine(changed) => state.machine = changed.clone(),
                What::Cost(route, cost) => state.costs[route.index()] = *cost,
                What::Weights(weights) => state.weights.clone_from(weights),
            }
        }
        self.weigh_by_users(&mut state);
        state
    }

    /// Where users keep to their journeys, sessions are begun as often as these users would begin
    /// them if nobody ever had to wait for anybody.
    fn weigh_by_users(&self, state: &mut SiteState) {
        let Arrivals::Closed { pause, .. } = &self.workload.arrivals else { return };
        let pause = pause.mean().as_secs_f64();
        for (index, journey) in self.workload.kinds.iter().enumerate() {
            if let Some(users) = journey.users {
                let seconds = length(journey, &self.steps[index], &state.costs) + pause;
                state.weights[index] = f64::from(users) / seconds.max(1e-9);
            }
        }
    }

    /// Returns the routes that `workload` asks for, each once, in the order of first use, and the
    /// route of each step, by kind.
    ///
    /// A route is the method and the path without its query, as the gateway discovers it from
    /// traffic.
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

/// The state of a scenario at one moment.
#[derive(Clone, Debug)]
pub struct SiteState {
    /// The machine.
    pub machine: Machine,
    /// The costs by route.
    pub costs: Vec<Cost>,
    /// The weights by kind of journey.
    pub weights: Vec<f64>,
}

impl SiteState {
    /// Returns the journeys with a weight, each with its share of the sessions and the routes of
    /// its steps.
    fn journeys<'a>(
        &'a self,
        scenario: &'a Scenario,
    ) -> impl Iterator<Item = (f64, &'a Journey, &'a [RouteId])> {
        let all: f64 = self.weights.iter().sum();
        let journeys = scenario.workload.kinds.iter().zip(&scenario.steps);
        let chosen = self.weights.iter().zip(journeys).filter(|(weight, _)| **weight > 0.0);
        chosen.map(move |(weight, (journey, steps))| (weight / all, &**journey, steps.as_slice()))
    }

    /// Returns, by route, how many requests a session sends on average.
    pub fn visits(&self, scenario: &Scenario) -> Vec<f64> {
        let mut visits = vec![0.0; self.costs.len()];
        for (share, journey, steps) in self.journeys(scenario) {
            let mut still_there = share;
            for (number, route) in steps.iter().enumerate() {
                visits[route.index()] += still_there;
                still_there *= 1.0 - journey.leaves_after(number);
            }
        }
        visits
    }

    /// See [`Scenario::bound`].
    pub fn bound(&self, scenario: &Scenario) -> f64 {
        let SiteState { machine, costs, .. } = self;
        let visits = self.visits(scenario);
        let per_session = |of: fn(&Cost) -> f64| {
            visits.iter().zip(costs).map(|(visits, cost)| visits * of(cost)).sum::<f64>()
        };
        let cpu = per_session(|cost| cost.cpu).max(1e-12);
        let elsewhere = per_session(|cost| cost.elsewhere).max(1e-12);
        let off_processor = elsewhere + per_session(|cost| cost.pauses.seconds());
        let memory = per_session(|cost| cost.cpu * cost.memory) / cpu;
        let work = match &scenario.pool {
            Some(pool) => pool.best(machine, cpu, off_processor, memory),
            None => machine.work_per_second_max(memory) / cpu,
        };
        let threads =
            machine.threads.map_or(work, |threads| through(machine, threads, cpu, off_processor, memory));
        let connections = machine.connections.map_or(f64::INFINITY, |all| f64::from(all) / elsewhere);
        // A request holds a lock while it waits for other systems or pauses and while it has a core
        // of its own.
        let held = |cost: &Cost| {
            cost.elsewhere + cost.pauses.seconds() + cost.cpu / machine.work_per_second(1, cost.memory)
        };
        let lock = |(visits, cost): (&f64, &Cost)| {
            Some(f64::from(cost.own_pool?) / (visits * held(cost)).max(1e-12))
        };
        let locks = visits.iter().zip(costs).filter_map(lock).fold(f64::INFINITY, f64::min);
        let sessions = work.min(threads).min(connections).min(locks);
        f64::from(scenario.nodes_most()) * sessions * self.offered_share(scenario)
    }

    /// See [`Scenario::offered`].
    pub fn offered(&self, scenario: &Scenario, at: Duration) -> f64 {
        let finished = self.offered_share(scenario);
        match &scenario.workload.arrivals {
            Arrivals::Closed { users, pause, .. } => {
                let mean = self.session_seconds(scenario);
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

    /// Returns the mean seconds of a session in which no request waits.
    pub fn session_seconds(&self, scenario: &Scenario) -> f64 {
        self.journeys(scenario)
            .map(|(share, journey, steps)| share * length(journey, steps, &self.costs))
            .sum()
    }

    /// Returns the share of sessions whose visitors want to stay to the end.
    pub fn offered_share(&self, scenario: &Scenario) -> f64 {
        self.journeys(scenario).map(|(share, journey, _)| share * stays(journey)).sum()
    }
}

/// Returns the probability that a visitor stays to the end.
fn stays(journey: &Journey) -> f64 {
    (0..journey.steps.len()).fold(1.0, |stays, step| stays * (1.0 - journey.leaves_after(step)))
}

/// Returns the mean seconds of a session in which no request waits, including those of visitors who
/// leave on the way.
fn length(journey: &Journey, steps: &[RouteId], costs: &[Cost]) -> f64 {
    let mut still_there = 1.0;
    let mut seconds = 0.0;
    for (number, (step, route)) in journey.steps.iter().zip(steps).enumerate() {
        if number > 0 {
            still_there *= 1.0 - journey.leaves_after(number - 1);
            seconds += still_there * step.think.unwrap_or(journey.think).mean().as_secs_f64();
        }
        let cost = &costs[route.index()];
        seconds += still_there * (cost.cpu + cost.elsewhere + cost.pauses.seconds());
    }
    seconds
}

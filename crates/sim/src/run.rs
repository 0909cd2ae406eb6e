//! One run: visitors, gate, nodes and checkers on one event heap, in virtual time.
//!
//! The gate, the choice of a node and the visitors are the same code as in the gateway and the
//! crowd; only the application is a model.

mod nodes;
mod visitors;

use crate::check::{Checker, Violation};
use crate::cluster::NodeRule;
use crate::laws::{Laws, RouteChoice, SessionChoice};
use crate::node::{Job, Lock, Machine, Node, Pauses};
use crate::others::Site;
use crate::outcome::{RECORDS_MAX, RunResult, Sample};
use crate::pool::Pool;
use crate::scenario::{Cost, Scenario, What};
use crate::utilisation::Utilisation;
use nodes::Nodes;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::iter::Peekable;
use std::sync::Arc;
use suimon_control::SizeLawKind;
use suimon_fleet::lifecycle::BorrowedId;
use suimon_fleet::{AsksFor, Fleet, Served};
use suimon_gate::{Gate, Knowledge, Output, Permit, RouteMode, Start};
use suimon_model::{
    Duration, Failure, Instant, KindId, Limit, NodeId, Outcome, PoolId, Reason, RequestId, Rng, RouteId,
};
use suimon_workload::{Starts, StepOutcome as Answer, Tally, Window, Workload};
use visitors::User;

/// Separate random streams, so that more draws in one place never change another.
const NODES: u64 = 0x4E0D;
const COSTS: u64 = 0xC057;
const PLACES: u64 = 0x91ACE;
/// Interval at which the state of the gate is recorded.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Interval at which the number of residents is decided.
const POOL_EVERY: Duration = Duration::from_secs(1);
/// Conservation, an expensive check, is checked once in this many events.
const CONSERVATION_EVERY: u64 = 256;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Begin,
    Ask(usize),
    GiveUp(usize, RequestId),
    /// Checks whether the newcomer is still held.
    Look(RequestId),
    Node(NodeId),
    GateWake,
    Change(usize),
    Sample,
    PoolWake,
    PoolTick,
    NodeReady(BorrowedId),
    Scale,
}

/// A request in the application.
struct Work {
    permit: Permit,
    gate_route: RouteId,
    node: NodeId,
    since: Instant,
    fails: bool,
}

struct Run<'a> {
    scenario: &'a Scenario,
    seed: u64,
    workload: Workload,
    gate: Gate,
    fleet: Fleet,
    /// As they are now.
    machine: Machine,
    nodes: Vec<Node>,
    /// `None`: nodes do not come and go.
    scaled: Option<Nodes>,
    /// By node: the time of its next event; far in the future if it has none.
    node_wakes: Vec<Instant>,
    gate_wake: Instant,
    pool: Option<Pool>,
    pool_wake: Instant,
    workers_told: Option<u32>,
    costs: Vec<Cost>,
    cpu: Utilisation,
    /// When `cpu` was last set, and the nodes' busy time by then.
    cpu_told: (Instant, f64),
    whole: bool,
    starts: Peekable<Starts>,
    users: Vec<Option<User>>,
    free_users: Vec<usize>,
    users_now: usize,
    /// Requests inside the gate with a client that waits, and the index of its user.
    owners: HashMap<RequestId, usize>,
    /// Requests in the gate whose client left unnoticed, and their routes.
    unnoticed: HashMap<RequestId, RouteId>,
    work: Vec<Option<Work>>,
    free_work: Vec<usize>,
    heap: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    order: u64,
    cost_rng: Rng,
    checker: Checker,
    tally: Tally,
    outcome: RunResult,
    end: Instant,
}

/// Plays `scenario` with `seed` and `laws` to its end. The same scenario, seed and laws give the
/// same outcome, bit for bit.
///
/// # Errors
/// Returns the first violation that a checker found.
pub fn run(scenario: &Scenario, seed: u64, laws: &Laws) -> Result<RunResult, Violation> {
    play(Run::new(scenario, seed, laws, None))
}

/// Plays `scenario`, whose nodes come and go, as [`run`] does, with a rule in place of its law for their
/// number.
///
/// # Errors
/// As [`run`].
pub fn run_ruled(
    scenario: &Scenario,
    seed: u64,
    laws: &Laws,
    rule: Box<dyn NodeRule>,
) -> Result<RunResult, Violation> {
    play(Run::new(scenario, seed, laws, Some(rule)))
}

/// Plays `scenario` as [`run`] does, with a gate that starts from another gate's knowledge of a
/// given age: [`RunResult::knowledge`] of a run of a site with the same routes and kinds of
/// session.
///
/// # Errors
/// As [`run`].
pub fn run_knowing(
    scenario: &Scenario,
    seed: u64,
    laws: &Laws,
    (knowledge, age): (&Knowledge, Duration),
) -> Result<RunResult, Violation> {
    let mut run = Run::new(scenario, seed, laws, None);
    run.gate.recall(Instant::ORIGIN, knowledge, age);
    play(run)
}

fn play(mut run: Run<'_>) -> Result<RunResult, Violation> {
    let last = run.play()?;
    Ok(run.conclude(last))
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, seed: u64, laws: &Laws, rule: Option<Box<dyn NodeRule>>) -> Self {
        let cpu = Utilisation::default();
        let (gate, routes) = gate(scenario, seed, laws, &cpu, Instant::ORIGIN);
        let mut fleet = Fleet::new(suimon_fleet::Params { seed, ..suimon_fleet::Params::default() });
        let scaled = Nodes::of(scenario, seed, rule);
        // Those that come and go come at the start of the run.
        let there = if scaled.is_some() { 0 } else { scenario.nodes };
        for _ in 0..there {
            fleet.add_node(Instant::ORIGIN).expect("the scenario was checked to have few nodes");
        }
        let node = |index| Node::new(scenario.machine.clone(), Rng::stream(seed, NODES + u64::from(index)));
        let workload = Workload { seed, ..scenario.workload.clone() };
        let from = Instant::ORIGIN + scenario.warm_up;
        let window = Window { from, to: from + scenario.measure };
        Run {
            checker: Checker::new(scenario.gate.params.order, routes),
            tally: Tally::new(&workload, window),
            starts: Starts::new(&workload.arrivals, seed).peekable(),
            outcome: RunResult::new(scenario, seed, laws, routes),
            end: window.to,
            machine: scenario.machine.clone(),
            nodes: (0..there).map(node).collect(),
            node_wakes: vec![Instant::FAR_FUTURE; there as usize],
            scaled,
            gate_wake: Instant::FAR_FUTURE,
            pool: scenario.pool.as_ref().map(|pool| Pool::new(pool, scenario.machine.cores, seed)),
            pool_wake: Instant::FAR_FUTURE,
            workers_told: None,
            costs: scenario.routes.iter().map(|route| route.cost).collect(),
            whole: laws.whole,
            cpu,
            cpu_told: (Instant::ORIGIN, 0.0),
            users: vec![],
            free_users: vec![],
            users_now: 0,
            owners: HashMap::new(),
            unnoticed: HashMap::new(),
            work: vec![],
            free_work: vec![],
            heap: BinaryHeap::new(),
            order: 0,
            cost_rng: Rng::stream(seed, COSTS),
            scenario,
            seed,
            workload,
            gate,
            fleet,
        }
    }

    fn play(&mut self) -> Result<Instant, Violation> {
        if let Some(start) = self.starts.peek() {
            let at = start.at;
            self.at(at, Event::Begin);
        }
        for (index, change) in self.scenario.changes.iter().enumerate() {
            self.at(Instant::ORIGIN + change.at, Event::Change(index));
        }
        self.at(Instant::ORIGIN, Event::Sample);
        if self.pool.is_some() {
            self.at(Instant::ORIGIN + POOL_EVERY, Event::PoolTick);
        }
        self.begin_nodes().map_err(|what| self.violation(Instant::ORIGIN, what))?;
        self.wake_gate();
        let mut last = Instant::ORIGIN;
        while let Some(Reverse((now, _, event))) = self.heap.pop() {
            if now >= self.end {
                return Ok(self.end);
            }
            last = now;
            self.outcome.events += 1;
            self.handle(now, event).map_err(|what| self.violation(now, what))?;
            if self.outcome.events.is_multiple_of(CONSERVATION_EVERY) {
                self.checker.conserved(now, &self.gate).map_err(|what| self.violation(now, what))?;
            }
            if self.users_now == 0 && self.starts.peek().is_none() {
                break;
            }
        }
        Ok(last)
    }

    fn violation(&self, at: Instant, what: String) -> Violation {
        Violation { scenario: self.scenario.name.clone(), seed: self.seed, at, what }
    }

    fn handle(&mut self, now: Instant, event: Event) -> Result<(), String> {
        match event {
            Event::Begin => self.begin(now),
            Event::Ask(user) => self.ask(now, user)?,
            Event::GiveUp(user, request) => self.give_up(now, user, request)?,
            Event::Look(request) => {
                let is_held = self.owners.contains_key(&request) && self.gate.is_held(request);
                self.outcome.gates.newcomers_held_long += u64::from(is_held);
            }
            Event::Node(node) if now == self.node_wakes[node.index()] => {
                self.node_wakes[node.index()] = Instant::FAR_FUTURE;
                self.nodes[node.index()].handle_timeout(now);
                self.drain_node(now, node)?;
            }
            Event::GateWake if now >= self.gate_wake => {
                self.gate_wake = Instant::FAR_FUTURE;
                self.tell_utilisation(now);
                self.gate.handle_timeout(now);
                self.drain_gate(now)?;
                for route in 0..self.outcome.gate_routes {
                    self.checker.no_idle_slot(now, RouteId(route as u32), &self.gate)?;
                }
            }
            // Obsolete: the node has changed since, or the gate has woken earlier.
            Event::Node(_) | Event::GateWake => {}
            Event::PoolWake | Event::PoolTick => self.wake_pool(now, event),
            Event::Change(index) => self.change(now, index)?,
            Event::Sample => self.sample(now),
            Event::NodeReady(id) => self.node_ready(now, id)?,
            Event::Scale => self.scale(now)?,
        }
        self.tell_workers(now)
    }

    /// Tells the gate how many workers are ready, if that has changed.
    fn tell_workers(&mut self, now: Instant) -> Result<(), String> {
        let ready = self.pool.as_ref().and_then(Pool::ready);
        if ready != std::mem::replace(&mut self.workers_told, ready) {
            self.gate.handle_workers(now, PoolId(0), ready);
            self.drain_gate(now)?;
        }
        Ok(())
    }

    fn drain_gate(&mut self, now: Instant) -> Result<(), String> {
        while let Some(output) = self.gate.poll_output() {
            match output {
                Output::Start(start) => self.start(now, start)?,
                Output::Refuse(refusal) => {
                    self.checker.refused(&refusal)?;
                    if self.unnoticed.remove(&refusal.request).is_some() {
                        continue;
                    }
                    let owner = self.owners.remove(&refusal.request).ok_or("nobody's request was refused")?;
                    self.answered(now, owner, Answer::Refused { retry_after: Some(refusal.retry_after) });
                }
                Output::Wait(wait) => self.wait_in_line(now, &wait)?,
                Output::Resumed(_) => {}
                Output::Decided(record) => {
                    let counted = now >= self.tally.window().from;
                    self.outcome.trial_windows += u64::from(counted && record.reason == Reason::TrialWindow);
                    self.outcome.decisions += 1;
                    if self.outcome.records.len() < RECORDS_MAX {
                        self.outcome.records.push(record);
                    }
                }
            }
        }
        self.wake_gate();
        Ok(())
    }

    fn start(&mut self, now: Instant, start: Start) -> Result<(), String> {
        self.checker.started(&start, &self.gate)?;
        let (route, was_let_in) = match self.unnoticed.get(&start.request) {
            Some(route) => (*route, false),
            None => {
                let owner = *self.owners.get(&start.request).ok_or("nobody's request was started")?;
                let user = self.users[owner].as_mut().expect("a request has its user until it ends");
                let was_let_in = user.session.is_some();
                user.session = start.session;
                user.position = None;
                (self.scenario.steps[user.visitor.kind().index()][user.visitor.step_number()], was_let_in)
            }
        };
        self.note_wait(now, &start, was_let_in);
        let cost = self.costs[route.index()];
        let fails = cost.errors > 0.0 && self.cost_rng.chance(cost.errors);
        let mean = if fails { cost.error_cpu } else { cost.cpu };
        let cpu = self.cost_rng.lognormal(mean, cost.variation);
        let elsewhere =
            if fails { 0.0 } else { self.cost_rng.lognormal(cost.elsewhere, cost.elsewhere_variation) };
        let gate_route = self.gate_route(route);
        let asks = AsksFor::Route(gate_route);
        let node = self.fleet.pick(now, asks, None).ok_or("no node was found")?.node;
        let work = Work { permit: start.permit, gate_route, node, since: now, fails };
        let id = match self.free_work.pop() {
            Some(index) => {
                self.work[index] = Some(work);
                index
            }
            None => {
                self.work.push(Some(work));
                self.work.len() - 1
            }
        };
        let lock = cost.own_pool.map(|holders_max| Lock { number: route.0, holders_max });
        let pauses = if fails { Pauses::default() } else { cost.pauses };
        let job = Job { id: id as u64, elsewhere, cpu, memory: cost.memory, lock, pauses };
        match &mut self.pool {
            Some(pool) => {
                pool.handle_arrival(now, job);
                self.drain_pool(now);
            }
            None => {
                self.nodes[node.index()].handle_arrival(now, job);
                self.wake_node(node);
            }
        }
        Ok(())
    }

    /// Does what is due in the pool.
    fn wake_pool(&mut self, now: Instant, event: Event) {
        if event == Event::PoolTick {
            self.at(now + POOL_EVERY, Event::PoolTick);
        }
        let Some(pool) = &mut self.pool else { return };
        if now >= self.pool_wake {
            self.pool_wake = Instant::FAR_FUTURE;
            pool.handle_timeout(now);
        }
        self.look_at_pool(now);
        if let Some(pool) = self.pool.as_mut().filter(|_| event == Event::PoolTick) {
            pool.tick(now);
        }
        self.drain_pool(now);
    }

    /// Gives the only node what the pool has for it.
    fn drain_pool(&mut self, now: Instant) {
        while let Some(job) = self.pool.as_mut().and_then(|pool| pool.poll_output(now)) {
            self.nodes[0].handle_arrival(now, job);
        }
        self.look_at_pool(now);
        self.wake_node(NodeId(0));
        let wake = self.pool.as_ref().and_then(Pool::poll_timeout);
        if let Some(wake) = wake.filter(|wake| *wake < self.pool_wake) {
            self.pool_wake = wake;
            self.at(wake, Event::PoolWake);
        }
    }

    fn look_at_pool(&mut self, now: Instant) {
        let Some(pool) = &mut self.pool else { return };
        let snapshot = self.gate.snapshot(now);
        let do_others_wait = snapshot.routes.iter().any(|route| route.waiting > 0)
            || snapshot.kinds.iter().any(|kind| kind.waiting > 0);
        pool.look(now, do_others_wait);
    }

    /// Notes how long a request that starts was held.
    fn note_wait(&mut self, now: Instant, start: &Start, was_let_in: bool) {
        if !self.tally.window().holds(now) {
            return;
        }
        let (gates, held) = (&mut self.outcome.gates, start.waited.as_secs_f64());
        (gates.started, gates.held_s) = (gates.started + 1, gates.held_s + held);
        if was_let_in {
            (gates.inside, gates.inside_held_s) = (gates.inside + 1, gates.inside_held_s + held);
        }
    }

    fn drain_node(&mut self, now: Instant, node: NodeId) -> Result<(), String> {
        while let Some(id) = self.nodes[node.index()].poll_ended() {
            if let Some(pool) = &mut self.pool {
                let is_request = pool.handle_end(now, id);
                self.drain_pool(now);
                if !is_request {
                    continue;
                }
            }
            let work = self.work[id as usize].take().expect("what ends on a node was started there");
            self.free_work.push(id as usize);
            let took = now.since(work.since);
            let served = Served { route: work.gate_route, took, is_good: !work.fails, is_bound: false };
            self.fleet.handle_served(now, work.node, &served);
            self.fleet.handle_answer(now, work.node, AsksFor::Route(work.gate_route));
            self.fleet.handle_release(now, work.node);
            let owner = self.owners.remove(&work.permit.request());
            let ending = match owner {
                None if self.unnoticed.remove(&work.permit.request()).is_none() => Outcome::Abandoned,
                _ if work.fails => Outcome::Failed(Failure::ServerError),
                _ => Outcome::Completed,
            };
            self.gate.handle_end(now, work.permit, ending);
            self.checker.ended(work.gate_route);
            if let Some(index) = owner {
                self.answered(now, index, if work.fails { Answer::Failed } else { Answer::Passed });
            }
            self.drain_gate(now)?;
            self.checker.no_idle_slot(now, work.gate_route, &self.gate)?;
        }
        self.wake_node(node);
        self.let_go(now)
    }

    fn change(&mut self, now: Instant, index: usize) -> Result<(), String> {
        match &self.scenario.changes[index].what {
            What::Cost(route, cost) => self.costs[route.index()] = *cost,
            What::Weights(weights) => {
                for (journey, weight) in self.workload.kinds.iter_mut().zip(weights) {
                    Arc::make_mut(journey).weight = *weight;
                }
            }
            What::Machine(machine) => {
                self.machine = machine.clone();
                for node in 0..self.nodes.len() {
                    self.nodes[node].handle_change(now, machine.clone());
                    self.drain_node(now, NodeId(node as u32))?;
                }
            }
        }
        Ok(())
    }

    fn sample(&mut self, now: Instant) {
        let snapshot = self.gate.snapshot(now);
        let (used, nodes) = (self.usage(now), self.present(now));
        self.outcome.series.push(Sample::new(now, &snapshot, used, nodes));
        let at_routes: usize = snapshot.routes.iter().map(|route| route.waiting).sum();
        self.outcome.pool.extend(self.pool.as_ref().map(|pool| pool.second(at_routes as u32)));
        self.at(now + SAMPLE_EVERY, Event::Sample);
    }

    fn gate_route(&self, route: RouteId) -> RouteId {
        if self.whole { RouteId(0) } else { route }
    }

    fn wake_gate(&mut self) {
        if let Some(wake) = self.gate.poll_timeout().filter(|wake| *wake < self.gate_wake) {
            self.gate_wake = wake;
            self.at(wake, Event::GateWake);
        }
    }

    fn wake_node(&mut self, node: NodeId) {
        let wake = self.nodes[node.index()].poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        if wake != self.node_wakes[node.index()] {
            self.node_wakes[node.index()] = wake;
            if wake < Instant::FAR_FUTURE {
                self.at(wake, Event::Node(node));
            }
        }
    }

    fn at(&mut self, when: Instant, event: Event) {
        let order = self.next_order();
        self.heap.push(Reverse((when, order, event)));
    }

    /// Returns the next of the numbers by which events of one moment are ordered.
    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    fn conclude(mut self, last: Instant) -> RunResult {
        self.sample(last);
        self.tally.close(last.max(Instant::ORIGIN + Duration::from_nanos(1)));
        self.outcome.resident_moves = self.pool.take().map_or_else(Vec::new, |pool| pool.moves);
        self.outcome.trace = self.gate.trace().value();
        self.outcome.learned = self.gate.learned();
        self.outcome.knowledge = self.gate.knowledge();
        self.nodes.iter().for_each(|node| self.outcome.accept_path.merge(node.accept_path()));
        self.outcome.finish(self.scenario, &self.tally)
    }
}

/// Returns the gate of a run, and the number of its routes. `cpu`: how busy the application's
/// processors are, for laws that use it.
pub(crate) fn gate(
    scenario: &Scenario,
    seed: u64,
    laws: &Laws,
    cpu: &Utilisation,
    now: Instant,
) -> (Gate, usize) {
    let setup = &scenario.gate;
    let law = scenario.pool.as_ref().and_then(|pool| pool.law);
    let finds_workers = if law == Some(SizeLawKind::Measured) { vec![PoolId(0)] } else { vec![] };
    let params = suimon_gate::Params { seed, finds_workers, ..setup.params.clone() };
    let cores = params.cores;
    let sessions_per_second = scenario.bound(Duration::ZERO);
    let site = Site { cores, cpu: cpu.clone(), sessions_per_second, kinds: setup.kinds.len() };
    let mut gate = match &laws.routes {
        RouteChoice::AsSet | RouteChoice::Off | RouteChoice::Fixed(_) => Gate::new(params, now),
        RouteChoice::Law(kind) => Gate::with_route_law(params, kind.build(cores), now),
        RouteChoice::Other(other) => Gate::with_route_law(params, other.law(&site), now),
    };
    let modes: Vec<RouteMode> = scenario.routes.iter().map(|route| route.mode).collect();
    let modes = if laws.whole { &modes[..1] } else { &modes[..] };
    for mode in modes {
        let mode = match &laws.routes {
            RouteChoice::AsSet => *mode,
            RouteChoice::Off => RouteMode::Off,
            RouteChoice::Fixed(limit) => RouteMode::Fixed(Limit::of(*limit)),
            RouteChoice::Law(_) | RouteChoice::Other(_) => RouteMode::Enforce,
        };
        gate.declare_route(now, mode);
    }
    for (index, kind) in setup.kinds.iter().enumerate() {
        let id = KindId(index as u32);
        match &laws.sessions {
            SessionChoice::AsSet => gate.declare_kind(now, kind.params.clone()),
            SessionChoice::Law(law) => {
                gate.declare_kind_with_law(now, kind.params.clone(), law.build(id, cores, now))
            }
            SessionChoice::Other(other) => {
                gate.declare_kind_with_law(now, kind.params.clone(), other.law(&site, id, now))
            }
        };
    }
    if !laws.whole {
        gate.declare_services(now, setup.services.clone());
    }
    (gate, modes.len())
}

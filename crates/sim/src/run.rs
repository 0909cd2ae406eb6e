//! One run: visitors, gate, nodes and checkers on one event heap, in virtual time.
//!
//! The gate, the choice of a node and the visitors are the very code of the gateway and of the crowd; only the application is a model.

use crate::check::{Checker, Violation};
use crate::laws::{Laws, RouteChoice, SessionChoice};
use crate::node::{Job, Lock, Node};
use crate::outcome::{Outcome, RECORDS_MAX, Sample};
use crate::rivals::{Bounds, Site, Utilisation};
use crate::scenario::{Cost, Scenario, What};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::iter::Peekable;
use std::sync::Arc;
use suimon_fleet::Fleet;
use suimon_gate::{
    Arrival, Gate, InLine, Knowledge, Membership, Mode, Output, Place, Standing, Start, Token,
};
use suimon_model::{
    Duration, Ending, Failure, Instant, KindId, NodeId, Reason, RequestId, Rng, RouteId, SessionId,
};
use suimon_workload::{Next, Outcome as Answer, Starts, Tally, Visitor, Window, Workload};

/// Streams of random numbers of their own, so that drawing more in one place never changes another.
const NODES: u64 = 0x4E0D;
const COSTS: u64 = 0xC057;
const PLACES: u64 = 0x91ACE;
/// How often the state of the gate is noted down.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// A newcomer held for longer at the session gate has noticed.
const HELD_LONG: Duration = Duration::from_secs(1);
/// The shortest time over which it is told how busy the processors are.
const UTILISATION_SECONDS: f64 = 0.2;
/// A visitor whose turn it is, and who was held as long as is good for a connection, comes again after this.
const CALLED_AGAIN: Duration = Duration::from_secs(1);
/// Conservation, which looks at everything, is checked once in so many events.
const CONSERVATION_EVERY: u64 = 256;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Begin,
    Ask(usize),
    GiveUp(usize, RequestId),
    /// Is the newcomer still held?
    Look(RequestId),
    Node(NodeId),
    GateWake,
    Change(usize),
    Sample,
}

struct User {
    rng: Rng,
    visitor: Visitor,
    /// The session he is in, as his cookies say, ...
    session: Option<(KindId, SessionId)>,
    /// ... or his place in line.
    place: Option<Place>,
    request: Option<RequestId>,
    /// Sessions played, this one included.
    played: u32,
    first: bool,
}

/// A request in the application.
struct Work {
    token: Token,
    gate_route: RouteId,
    node: NodeId,
    fails: bool,
}

struct Run<'a> {
    scenario: &'a Scenario,
    seed: u64,
    workload: Workload,
    gate: Gate,
    fleet: Fleet,
    nodes: Vec<Node>,
    /// By node: when its next event is, if one is under way.
    node_wakes: Vec<Instant>,
    gate_wake: Instant,
    costs: Vec<Cost>,
    cpu: Utilisation,
    /// When `cpu` was last told, and what the nodes had done by then.
    cpu_told: (Instant, f64),
    whole: bool,
    starts: Peekable<Starts>,
    users: Vec<Option<User>>,
    free_users: Vec<usize>,
    users_now: usize,
    /// Requests inside the gate whose client is there, and whose they are.
    owners: HashMap<RequestId, usize>,
    /// Requests in the gate's queues whose client has left unnoticed, and what they ask for.
    unnoticed: HashMap<RequestId, RouteId>,
    work: Vec<Option<Work>>,
    free_work: Vec<usize>,
    heap: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    order: u64,
    cost_rng: Rng,
    checker: Checker,
    tally: Tally,
    outcome: Outcome,
    end: Instant,
}

/// Plays `scenario` with `seed` and `laws` to its end. The same scenario, seed and laws give the same outcome, bit for bit.
///
/// # Errors
/// Returns the first thing a checker found that must never happen.
pub fn run(scenario: &Scenario, seed: u64, laws: &Laws) -> Result<Outcome, Violation> {
    play(Run::new(scenario, seed, laws))
}

/// Plays `scenario` as [`run`] does, to a gate that begins with what another one knew so long ago: [`Outcome::knowledge`] of a run of a site
/// with the same routes and kinds of session.
///
/// # Errors
/// As [`run`].
pub fn run_knowing(
    scenario: &Scenario,
    seed: u64,
    laws: &Laws,
    (knowledge, age): (&Knowledge, Duration),
) -> Result<Outcome, Violation> {
    let mut run = Run::new(scenario, seed, laws);
    run.gate.recall(Instant::ORIGIN, knowledge, age);
    play(run)
}

fn play(mut run: Run<'_>) -> Result<Outcome, Violation> {
    let last = run.play()?;
    Ok(run.conclude(last))
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, seed: u64, laws: &Laws) -> Self {
        let cpu = Utilisation::default();
        let (gate, routes) = gate(scenario, seed, laws, &cpu);
        let mut fleet = Fleet::new(suimon_fleet::Params { seed, ..suimon_fleet::Params::default() });
        for _ in 0..scenario.nodes {
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
            outcome: Outcome::new(scenario, seed, laws, routes),
            end: window.to,
            nodes: (0..scenario.nodes).map(node).collect(),
            node_wakes: vec![Instant::FAR_FUTURE; scenario.nodes as usize],
            gate_wake: Instant::FAR_FUTURE,
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
                    self.checker.no_idle_slot(RouteId(route as u32), &self.gate)?;
                }
            }
            // Overtaken by a later state of the node, or by an earlier wish of the gate.
            Event::Node(_) | Event::GateWake => {}
            Event::Change(index) => self.change(now, index)?,
            Event::Sample => self.sample(now),
        }
        Ok(())
    }

    /// Lets in everybody who starts now.
    fn begin(&mut self, now: Instant) {
        while let Some(start) = self.starts.next_if(|start| start.at <= now) {
            if self.users_now >= self.workload.arrivals.users_max() as usize {
                self.outcome.not_started += 1;
                continue;
            }
            let rng = self.workload.rng_of(start.user);
            self.users_now += 1;
            self.begin_session(start.at, rng, None, 1);
        }
        if let Some(start) = self.starts.peek() {
            let at = start.at;
            self.at(at, Event::Begin);
        }
    }

    fn begin_session(
        &mut self,
        at: Instant,
        mut rng: Rng,
        session: Option<(KindId, SessionId)>,
        played: u32,
    ) {
        let kind = self.workload.choose(&mut rng);
        let (visitor, next) = Visitor::begin(&self.workload, kind, at, &mut rng);
        let user = User { rng, visitor, session, place: None, request: None, played, first: true };
        let index = match self.free_users.pop() {
            Some(index) => {
                self.users[index] = Some(user);
                index
            }
            None => {
                self.users.push(Some(user));
                self.users.len() - 1
            }
        };
        if let Next::Ask { at, .. } = next {
            self.at(at, Event::Ask(index));
        }
    }

    fn ask(&mut self, now: Instant, index: usize) -> Result<(), String> {
        let user = self.users[index].as_mut().expect("whoever asks is there");
        let patience = user.visitor.asked(now, &mut user.rng);
        if std::mem::take(&mut user.first) {
            self.tally.begun(now);
        }
        self.tally.asked(now);
        let kind = self.scenario.gate.kind_of[user.visitor.kind().index()];
        let route = self.scenario.steps[user.visitor.kind().index()][user.visitor.step_number()];
        let ends = self.scenario.gate.kinds[kind.index()].ends.contains(&route);
        let session = match user.session {
            Some((kind, session)) => Membership::Member { kind, session, leased: true, ends },
            None => match user.place {
                Some(place) => {
                    let session = session_of(self.seed, kind, place);
                    Membership::Placed { kind, place, session, draws: true }
                }
                None => Membership::Newcomer(kind),
            },
        };
        let arrival = Arrival { route: self.gate_route(route), session: Some(session) };
        let request = self.gate.handle_arrival(now, arrival);
        if !matches!(session, Membership::Member { .. }) && self.tally.window().holds(now) {
            self.outcome.gates.newcomers += 1;
            if self.gate.is_held(request) {
                self.at(now + HELD_LONG, Event::Look(request));
            }
        }
        self.checker.arrived(request, &arrival);
        self.users[index].as_mut().expect("whoever asks is there").request = Some(request);
        self.owners.insert(request, index);
        if let Some(patience) = patience {
            self.at(now + patience, Event::GiveUp(index, request));
        }
        self.drain_gate(now)?;
        self.checker.no_idle_slot(arrival.route, &self.gate)
    }

    fn give_up(&mut self, now: Instant, index: usize, request: RequestId) -> Result<(), String> {
        let Some(user) = self.users[index].as_mut().filter(|user| user.request == Some(request)) else {
            return Ok(());
        };
        if user.visitor.step_number() == 0 {
            // The answer that would have brought the lease was not waited for.
            user.session = None;
        }
        self.owners.remove(&request);
        if self.scenario.gate.unaware {
            let route = self.scenario.steps[user.visitor.kind().index()][user.visitor.step_number()];
            self.unnoticed.insert(request, route);
        } else {
            self.gate.handle_departure(now, request);
            self.checker.departed(request);
        }
        self.answered(now, index, Answer::TimedOut);
        self.drain_gate(now)
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

    fn wait_in_line(&mut self, now: Instant, wait: &InLine) -> Result<(), String> {
        self.checker.waits_in_line(wait)?;
        if self.unnoticed.remove(&wait.request).is_some() {
            return Ok(());
        }
        let owner = self.owners.remove(&wait.request).ok_or("nobody's request waits in line")?;
        self.users[owner].as_mut().expect("a request has its user until it ends").place = wait.place;
        let retry_after = match wait.standing {
            Standing::Called => Some(CALLED_AGAIN),
            Standing::Waiting(left) | Standing::Opening(_, left) | Standing::Paused(left) => {
                Some(left.poll_after)
            }
            Standing::Closed => None,
        };
        self.answered(now, owner, Answer::Refused { retry_after });
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
                user.place = None;
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
        let node = self.fleet.pick(now, None).ok_or("no node was found")?.node;
        let gate_route = self.gate_route(route);
        let work = Work { token: start.token, gate_route, node, fails };
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
        self.nodes[node.index()]
            .handle_arrival(now, Job { id: id as u64, elsewhere, cpu, memory: cost.memory, lock });
        self.wake_node(node);
        Ok(())
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
            let work = self.work[id as usize].take().expect("what ends on a node was started there");
            self.free_work.push(id as usize);
            self.fleet.handle_release(work.node);
            self.fleet.handle_answer(now, work.node);
            let owner = self.owners.remove(&work.token.request());
            let ending = match owner {
                None if self.unnoticed.remove(&work.token.request()).is_none() => Ending::Abandoned,
                _ if work.fails => Ending::Failed(Failure::ServerError),
                _ => Ending::Completed,
            };
            self.gate.handle_end(now, work.token, ending);
            self.checker.ended(work.gate_route);
            if let Some(index) = owner {
                self.answered(now, index, if work.fails { Answer::Failed } else { Answer::Passed });
            }
            self.drain_gate(now)?;
            self.checker.no_idle_slot(work.gate_route, &self.gate)?;
        }
        self.wake_node(node);
        Ok(())
    }

    /// A visitor's request has ended; he goes on, or comes again, or is gone.
    fn answered(&mut self, now: Instant, index: usize, answer: Answer) {
        let user = self.users[index].as_mut().expect("an answered user is there");
        user.request = None;
        let turn = user.visitor.answered(now, answer, &mut user.rng);
        self.tally.fold(&turn);
        if let Next::Ask { at, .. } = turn.next {
            return self.at(at, Event::Ask(index));
        }
        let mut user = self.users[index].take().expect("the user was there a line ago");
        self.free_users.push(index);
        if !self.workload.returning
            && let Some((_, session)) = user.session.take()
        {
            self.checker.forget(session);
        }
        match self.workload.next_session(now, user.played, &mut user.rng) {
            Some(at) => self.begin_session(at, user.rng, user.session, user.played + 1),
            None => self.users_now -= 1,
        }
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
        let (mut busy, mut work) = (0.0, 0.0);
        for node in &mut self.nodes {
            let usage = node.usage(now);
            (busy, work) = (busy + usage.busy, work + usage.work);
        }
        self.outcome.series.push(Sample::new(now, &snapshot, busy, work));
        self.at(now + SAMPLE_EVERY, Event::Sample);
    }

    /// Tells how busy the processors were since the last tick of the gate or so.
    fn tell_utilisation(&mut self, now: Instant) {
        let (told, busy_then) = self.cpu_told;
        let passed = now.secs_since(told);
        if passed < UTILISATION_SECONDS {
            return;
        }
        let busy: f64 = self.nodes.iter_mut().map(|node| node.usage(now).busy).sum();
        let cores = self.scenario.machine.cores * f64::from(self.scenario.nodes);
        self.cpu.set(((busy - busy_then) / (passed * cores)).clamp(0.0, 1.0));
        self.cpu_told = (now, busy);
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
        self.order += 1;
        self.heap.push(Reverse((when, self.order, event)));
    }

    fn conclude(mut self, last: Instant) -> Outcome {
        self.sample(last);
        self.tally.close(last.max(Instant::ORIGIN + Duration::from_nanos(1)));
        self.outcome.trace = self.gate.trace().value();
        self.outcome.learned = self.gate.learned();
        self.outcome.knowledge = self.gate.knowledge();
        self.outcome.finish(self.scenario, &self.tally)
    }
}

/// Returns the session that a place begins: the same for whoever comes with it.
fn session_of(seed: u64, kind: KindId, place: Place) -> SessionId {
    let place = place.number << 8 | u64::from(kind.0) << 2 | place.lane.index() as u64;
    SessionId(Rng::stream(seed ^ PLACES, place).bits())
}

/// Returns the gate of a run, and how many routes it has. `cpu`: how busy the application's processors are, for laws that look.
fn gate(scenario: &Scenario, seed: u64, laws: &Laws, cpu: &Utilisation) -> (Gate, usize) {
    let now = Instant::ORIGIN;
    let setup = &scenario.gate;
    let params = suimon_gate::Params { seed, ..setup.params.clone() };
    let cores = params.cores;
    let site = Site { cores, cpu: cpu.clone(), sessions_per_second: scenario.bound(Duration::ZERO) };
    let mut gate = match laws.routes {
        RouteChoice::AsSet | RouteChoice::Off | RouteChoice::Fixed(_) => Gate::new(params, now),
        RouteChoice::Law(kind) => Gate::with_route_law(params, kind.build(cores), now),
        RouteChoice::Rival(rival) => {
            let bounds = Bounds { least: 1, ..rival.bounds(cores) };
            Gate::with_route_law(params, rival.build_within(&site, bounds), now)
        }
    };
    let modes: Vec<Mode> = scenario.routes.iter().map(|route| route.mode).collect();
    let modes = if laws.whole { &modes[..1] } else { &modes[..] };
    for mode in modes {
        let mode = match laws.routes {
            RouteChoice::AsSet => *mode,
            RouteChoice::Off => Mode::Off,
            RouteChoice::Fixed(limit) => Mode::Fixed(limit),
            RouteChoice::Law(_) | RouteChoice::Rival(_) => Mode::Enforce,
        };
        gate.declare_route(now, mode);
    }
    for (index, kind) in setup.kinds.iter().enumerate() {
        let id = KindId(index as u32);
        match laws.sessions {
            SessionChoice::AsSet => gate.declare_kind(now, kind.params.clone()),
            SessionChoice::Law(law) => {
                gate.declare_kind_with_law(now, kind.params.clone(), law.build(id, cores, now))
            }
            SessionChoice::Rival(rival) => {
                gate.declare_kind_with_law(now, kind.params.clone(), rival.build(&site, id, now))
            }
        };
    }
    (gate, modes.len())
}

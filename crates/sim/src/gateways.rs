//! Several gateways before one application, in virtual time: each has a gate of its own, and shares
//! limits, what begins and the line with the others by the records of `suimon-sharing`.
//!
//! Visitors come to one gateway and stay with it, as behind a balancer that goes by address; when it
//! dies, they go to another with what they have: a lease, or a ticket. Requests that a dead gateway
//! had in the application are worked on to their end.

mod result;

pub use result::{GatewaysResult, GatewaysSecond};

use crate::laws::Laws;
use crate::node::{Job, Node, Pauses};
use crate::run;
use crate::scenario::{Cost, Scenario};
use crate::utilisation::Utilisation;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::iter::Peekable;
use suimon_gate::{Arrival, Gate, InLine, Membership, Output, Permit, Start};
use suimon_line::{Lane, Position, PositionStatus};
use suimon_model::{Duration, Instant, KindId, Outcome, RequestId, Rng, RouteId, SessionId};
use suimon_sharing::{Exchange, GatewayId, Numbers, Params, Phase, Record, Seen, Sharing};
use suimon_workload::{Next, Starts, StepOutcome as Answer, Tally, Visitor, Window, Workload};

/// How often records are exchanged.
pub const PERIOD: Duration = Duration::from_millis(100);
/// Seconds since 1970 at which runs begin.
const UNIX: u64 = 1_800_000_000;
/// How long a called visitor waits before it asks again.
const CALLED_AGAIN: Duration = Duration::from_secs(1);
/// After the gateway of a visitor died, the request is sent again after this long.
const AGAIN: Duration = Duration::from_secs(1);

/// What goes wrong, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// This gateway dies.
    Dies(usize, Instant),
    /// This gateway is not there before, and knows nothing when it comes.
    Joins(usize, Instant),
    /// The engine answers nobody from the first moment until before the second; what it had is
    /// lost.
    EngineLost(Instant, Instant),
    /// The same, and it keeps what it had.
    EnginePaused(Instant, Instant),
    /// This gateway alone does not reach it.
    Partitioned(usize, Instant, Instant),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Begin,
    Ask(usize),
    GiveUp(usize, u64),
    Node,
    Gate(usize),
    Exchange(usize),
    Dies(usize),
    EngineBack,
    Joins(usize),
    Second,
}

struct User {
    rng: Rng,
    number: u32,
    visitor: Visitor,
    gateway: usize,
    session: Option<(KindId, SessionId)>,
    position: Option<(Position, Instant)>,
    request: Option<RequestId>,
    /// Counts up with each request; when the last was sent.
    asked: u64,
    sent: Instant,
    played: u32,
    is_new: bool,
}

struct Gateway {
    gate: Gate,
    sharing: Sharing,
    numbers: Vec<[Numbers; Lane::ALL.len()]>,
    owners: HashMap<RequestId, usize>,
    wake: Instant,
}

struct World<'a> {
    scenario: &'a Scenario,
    workload: Workload,
    faults: &'a [Fault],
    gateways: Vec<Option<Gateway>>,
    engine: Vec<Option<(Instant, Record)>>,
    /// By kind and lane: the next number that the engine hands out.
    counters: Vec<[u64; Lane::ALL.len()]>,
    node: Node,
    node_wake: Instant,
    costs: Vec<Cost>,
    work: Vec<Option<(usize, Permit, RouteId)>>,
    inside: Vec<u32>,
    starts: Peekable<Starts>,
    users: Vec<Option<User>>,
    heap: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    order: u64,
    rng: Rng,
    tally: Tally,
    result: GatewaysResult,
    second: GatewaysSecond,
}

/// Plays `scenario` with `count` gateways, and with these `faults`. The same arguments give the same
/// result, bit for bit.
pub fn run_gateways(scenario: &Scenario, seed: u64, count: usize, faults: &[Fault]) -> GatewaysResult {
    World::new(scenario, seed, count, faults).play()
}

impl Gateway {
    fn new(scenario: &Scenario, seed: u64, index: usize, count: usize, now: Instant) -> Self {
        let seed = seed + 1000 * index as u64;
        let (mut gate, _) = run::gate(scenario, seed, &Laws::AS_SET, &Utilisation::default(), now);
        if count > 1 {
            gate.share();
        }
        let me = GatewayId(index as u64 + 1);
        let params = Params { me, life: seed, period: PERIOD, gateways: count as u32 };
        Gateway {
            gate,
            sharing: Sharing::new(params),
            numbers: vec![Default::default(); scenario.gate.kinds.len()],
            owners: HashMap::new(),
            wake: Instant::FAR_FUTURE,
        }
    }
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, seed: u64, count: usize, faults: &'a [Fault]) -> Self {
        let workload = Workload { seed, ..scenario.workload.clone() };
        let from = Instant::ORIGIN + scenario.warm_up;
        let kinds = scenario.gate.kinds.len();
        let is_there = |index: usize| {
            !faults.iter().any(|fault| matches!(fault, Fault::Joins(late, _) if *late == index))
        };
        let gateway = |index: usize| {
            is_there(index).then(|| Gateway::new(scenario, seed, index, count, Instant::ORIGIN))
        };
        World {
            gateways: (0..count).map(gateway).collect(),
            engine: vec![None; count],
            counters: vec![[0; Lane::ALL.len()]; kinds],
            node: Node::new(scenario.machine.clone(), Rng::stream(seed, 1)),
            node_wake: Instant::FAR_FUTURE,
            costs: scenario.routes.iter().map(|route| route.cost).collect(),
            work: vec![],
            inside: vec![0; scenario.routes.len()],
            starts: Starts::new(&workload.arrivals, seed).peekable(),
            users: vec![],
            heap: BinaryHeap::new(),
            order: 0,
            rng: Rng::stream(seed, 2),
            tally: Tally::new(&workload, Window { from, to: from + scenario.measure }),
            result: GatewaysResult::default(),
            second: GatewaysSecond::default(),
            scenario,
            workload,
            faults,
        }
    }

    fn at(&mut self, when: Instant, event: Event) {
        self.order += 1;
        self.heap.push(Reverse((when, self.order, event)));
    }

    fn play(mut self) -> GatewaysResult {
        let end = self.tally.window().to;
        if let Some(start) = self.starts.peek() {
            let at = start.at;
            self.at(at, Event::Begin);
        }
        let count = self.gateways.len();
        for index in (0..count).filter(|_| count > 1) {
            // Each at its own moment of the period.
            self.at(Instant::ORIGIN + PERIOD * index as u32 / count as u32, Event::Exchange(index));
        }
        (0..count).for_each(|index| self.wake_gate(index));
        for fault in self.faults {
            match *fault {
                Fault::Dies(index, at) => self.at(at, Event::Dies(index)),
                Fault::Joins(index, at) => self.at(at, Event::Joins(index)),
                Fault::EngineLost(_, back) => self.at(back, Event::EngineBack),
                Fault::EnginePaused(..) | Fault::Partitioned(..) => {}
            }
        }
        self.at(Instant::ORIGIN + Duration::from_secs(1), Event::Second);
        while let Some(Reverse((now, _, event))) = self.heap.pop() {
            if now >= end {
                break;
            }
            self.handle(now, event);
        }
        self.tally.close(end);
        self.result.counts = *self.tally.measured();
        self.result.seconds = self.scenario.measure.as_secs_f64();
        let gates = self.gateways.iter().flatten();
        self.result.trace = gates.fold(0, |all, gateway| all.rotate_left(7) ^ gateway.gate.trace().value());
        self.result
    }

    fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::Begin => self.begin(now),
            Event::Ask(user) => self.ask(now, user),
            Event::GiveUp(user, asked) => self.give_up(now, user, asked),
            Event::Node if now == self.node_wake => {
                self.node_wake = Instant::FAR_FUTURE;
                self.node.handle_timeout(now);
                self.drain_node(now);
            }
            Event::Node => {}
            Event::Gate(index) => {
                if let Some(gateway) = self.gateways[index].as_mut().filter(|gateway| now >= gateway.wake) {
                    gateway.wake = Instant::FAR_FUTURE;
                    gateway.gate.handle_timeout(now);
                    self.drain(now, index);
                }
            }
            Event::Exchange(index) => self.exchange(now, index),
            Event::Dies(index) => self.dies(now, index),
            Event::EngineBack => {
                self.engine.fill(None);
                self.counters.fill(Default::default());
            }
            Event::Joins(index) => self.joins(now, index),
            Event::Second => {
                let safe = |gateway: &&Gateway| gateway.sharing.phase(now) == Phase::SafeShare;
                self.second.safe = self.gateways.iter().flatten().filter(safe).count() as u32;
                self.result.series.push(std::mem::take(&mut self.second));
                self.at(now + Duration::from_secs(1), Event::Second);
            }
        }
    }

    fn begin(&mut self, now: Instant) {
        while let Some(start) = self.starts.next_if(|start| start.at <= now) {
            let rng = self.workload.rng_of(start.user);
            self.begin_session(start.at, start.user, rng, None, 1);
        }
        if let Some(start) = self.starts.peek() {
            let at = start.at;
            self.at(at, Event::Begin);
        }
    }

    fn begin_session(
        &mut self,
        at: Instant,
        number: u32,
        mut rng: Rng,
        session: Option<(KindId, SessionId)>,
        played: u32,
    ) {
        let kind = self.workload.choose(number, &mut rng);
        let (visitor, next) = Visitor::begin(&self.workload, kind, at, &mut rng);
        let gateway = number as usize % self.gateways.len();
        let user = User {
            rng,
            number,
            visitor,
            gateway,
            session,
            position: None,
            request: None,
            asked: 0,
            sent: at,
            played,
            is_new: true,
        };
        self.users.push(Some(user));
        if let Next::Ask { at, .. } = next {
            let index = self.users.len() - 1;
            self.at(at, Event::Ask(index));
        }
    }

    /// Returns a gateway that is alive: the visitor's own, or the next.
    fn alive(&self, gateway: usize) -> Option<usize> {
        let count = self.gateways.len();
        (0..count).map(|step| (gateway + step) % count).find(|index| self.gateways[*index].is_some())
    }

    fn ask(&mut self, now: Instant, index: usize) {
        let Some(gateway) = self.users[index].as_ref().and_then(|user| self.alive(user.gateway)) else {
            return;
        };
        let Some(user) = &mut self.users[index] else { return };
        user.gateway = gateway;
        let patience = user.visitor.asked(now, &mut user.rng);
        if std::mem::take(&mut user.is_new) {
            self.tally.begun(now);
        }
        self.tally.asked(now);
        user.asked += 1;
        user.sent = now;
        let kind = self.scenario.gate.kind_of[user.visitor.kind().index()];
        let route = self.scenario.steps[user.visitor.kind().index()][user.visitor.step_number()];
        let ends = self.scenario.gate.kinds[kind.index()].ends.contains(&route);
        let session = match (user.session, user.position) {
            (Some((kind, session)), _) => Membership::Member { kind, session, leased: true, ends },
            (None, Some((position, _))) => {
                let session = SessionId(position.number << 3 | position.lane.index() as u64);
                Membership::Placed { kind, position, session, draws: true }
            }
            (None, None) => Membership::Newcomer(kind),
        };
        let asked = user.asked;
        let Some(there) = &mut self.gateways[gateway] else { return };
        let request = there.gate.handle_arrival(now, Arrival { route, session: Some(session) });
        there.owners.insert(request, index);
        if let Some(user) = &mut self.users[index] {
            user.request = Some(request);
        }
        if let Some(patience) = patience {
            self.at(now + patience, Event::GiveUp(index, asked));
        }
        self.drain(now, gateway);
    }

    fn give_up(&mut self, now: Instant, index: usize, asked: u64) {
        let Some(user) = self.users[index].as_mut().filter(|user| user.asked == asked) else { return };
        let Some(request) = user.request.take() else { return };
        if user.visitor.step_number() == 0 {
            user.session = None;
        }
        let gateway = user.gateway;
        if let Some(there) = &mut self.gateways[gateway] {
            there.owners.remove(&request);
            there.gate.handle_departure(now, request);
        }
        self.answered(now, index, Answer::TimedOut);
        self.drain(now, gateway);
    }

    fn dies(&mut self, now: Instant, index: usize) {
        let Some(dead) = self.gateways[index].take() else { return };
        self.engine[index] = self.engine[index].take();
        // Their connections break: they send the request again, to another gateway.
        let mut owners: Vec<usize> = dead.owners.into_values().collect();
        owners.sort_unstable();
        for user in owners {
            if let Some(user) = &mut self.users[user] {
                user.request = None;
                user.asked += 1;
            }
            self.at(now + AGAIN, Event::Ask(user));
        }
    }

    fn joins(&mut self, now: Instant, index: usize) {
        let count = self.gateways.len();
        self.gateways[index] = Some(Gateway::new(self.scenario, self.workload.seed, index, count, now));
        self.exchange(now, index);
    }

    fn drain(&mut self, now: Instant, index: usize) {
        while let Some(output) = self.gateways[index].as_mut().and_then(|there| there.gate.poll_output()) {
            match output {
                Output::Start(start) => self.start(now, index, start),
                Output::Refuse(refusal) => {
                    let Some(owner) = self.owner(index, refusal.request) else { continue };
                    let is_inside = self.users[owner].as_ref().is_some_and(|user| user.session.is_some());
                    self.result.sent_back += u64::from(is_inside);
                    self.answered(now, owner, Answer::Refused { retry_after: Some(refusal.retry_after) });
                }
                Output::Wait(wait) => self.wait_in_line(now, index, &wait),
                Output::Resumed(_) | Output::Decided(_) => {}
            }
        }
        self.wake_gate(index);
    }

    fn owner(&mut self, index: usize, request: RequestId) -> Option<usize> {
        self.gateways[index].as_mut()?.owners.remove(&request)
    }

    fn wait_in_line(&mut self, now: Instant, index: usize, wait: &InLine) {
        let Some(owner) = self.owner(index, wait.request) else { return };
        let Some(user) = &mut self.users[owner] else { return };
        self.result.sent_back += u64::from(user.session.is_some());
        let had = user.position.map(|(position, _)| position);
        self.result.places_lost += u64::from(had.is_some() && had != wait.position);
        if had != wait.position {
            let drawn = wait.position.filter(|position| position.lane == Lane::Normal);
            self.result.drawn.extend(drawn.map(|position| (user.sent, position.number)));
            user.position = wait.position.map(|position| (position, now));
        }
        let mut in_line = |again_after| user.visitor.in_line(now, again_after, &mut user.rng);
        let answer = match wait.standing {
            PositionStatus::Called(_) => in_line(CALLED_AGAIN),
            PositionStatus::Waiting(left)
            | PositionStatus::Opening(_, left)
            | PositionStatus::Paused(left)
            | PositionStatus::ApplicationDown(left) => in_line(left.poll_after),
            PositionStatus::Closed => Answer::Refused { retry_after: None },
        };
        self.answered(now, owner, answer);
    }

    fn start(&mut self, now: Instant, index: usize, start: Start) {
        let owner = self.gateways[index].as_ref().and_then(|there| there.owners.get(&start.request).copied());
        let Some(user) = owner.and_then(|owner| self.users[owner].as_mut()) else { return };
        if user.session.is_none() {
            self.second.begun += 1;
            self.result.begun += u64::from(self.tally.window().holds(now));
            if let Some((_, drawn)) = user.position.take() {
                self.result.from_line.push((drawn, now));
            }
        }
        user.session = start.session;
        let route = self.scenario.steps[user.visitor.kind().index()][user.visitor.step_number()];
        let cost = self.costs[route.index()];
        let cpu = self.rng.lognormal(cost.cpu, cost.variation);
        let elsewhere = self.rng.lognormal(cost.elsewhere, cost.elsewhere_variation);
        let id = self.work.len() as u64;
        self.work.push(Some((index, start.permit, route)));
        self.inside[route.index()] += 1;
        self.note_over(route);
        let pauses = Pauses::default();
        self.node.handle_arrival(now, Job { id, elsewhere, cpu, memory: cost.memory, lock: None, pauses });
        self.wake_node();
    }

    /// Notes by how much the application has more than the limit that is learned.
    fn note_over(&mut self, route: RouteId) {
        let limits = self.gateways.iter().flatten().filter_map(|there| there.gate.limit(route));
        let Some(limit) = limits.max() else { return };
        let over = self.inside[route.index()].saturating_sub(limit);
        if over > self.second.over {
            (self.second.over, self.second.limit) = (over, limit);
        }
    }

    fn drain_node(&mut self, now: Instant) {
        while let Some(id) = self.node.poll_ended() {
            let Some((index, permit, route)) = self.work[id as usize].take() else { continue };
            self.inside[route.index()] -= 1;
            let Some(there) = &mut self.gateways[index] else { continue };
            let owner = there.owners.remove(&permit.request());
            let ending = if owner.is_some() { Outcome::Completed } else { Outcome::Abandoned };
            there.gate.handle_end(now, permit, ending);
            if let Some(owner) = owner {
                self.answered(now, owner, Answer::Passed);
            }
            self.drain(now, index);
        }
        self.wake_node();
    }

    fn answered(&mut self, now: Instant, index: usize, answer: Answer) {
        let Some(user) = &mut self.users[index] else { return };
        user.request = None;
        let turn = user.visitor.answered(now, answer, &mut user.rng);
        self.tally.fold(&turn);
        if let Next::Ask { at, .. } = turn.next {
            return self.at(at, Event::Ask(index));
        }
        let Some(mut user) = self.users[index].take() else { return };
        let is_done = turn.outcome == Answer::Passed;
        self.second.completed += u64::from(is_done);
        let session = user.session.filter(|_| self.workload.returning);
        if let Some(at) = self.workload.next_session(now, user.played, &mut user.rng) {
            self.begin_session(at, user.number, user.rng, session, user.played + 1);
        }
    }

    fn wake_gate(&mut self, index: usize) {
        let Some(there) = &mut self.gateways[index] else { return };
        if let Some(wake) = there.gate.poll_timeout().filter(|wake| *wake < there.wake) {
            there.wake = wake;
            self.at(wake, Event::Gate(index));
        }
    }

    fn wake_node(&mut self) {
        let wake = self.node.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        if wake != self.node_wake {
            self.node_wake = wake;
            if wake < Instant::FAR_FUTURE {
                self.at(wake, Event::Node);
            }
        }
    }

    fn reaches_engine(&self, now: Instant, index: usize) -> bool {
        !self.faults.iter().any(|fault| match *fault {
            Fault::EngineLost(from, to) | Fault::EnginePaused(from, to) => now >= from && now < to,
            Fault::Partitioned(gateway, from, to) => gateway == index && now >= from && now < to,
            Fault::Dies(..) | Fault::Joins(..) => false,
        })
    }

    /// One script of the engine: the record is written, the numbers are counted, all are read.
    fn exchange(&mut self, now: Instant, index: usize) {
        let reaches = self.reaches_engine(now, index);
        let Some(there) = &mut self.gateways[index] else { return };
        let report = there.gate.report(now, |route| u64::from(route.0) + 1, |kind| u64::from(kind.0) + 1);
        let record = there.sharing.handle_report(now, report);
        let kinds = record.kinds.clone();
        let unix = UNIX + now.since(Instant::ORIGIN).as_secs();
        // As the gateway does: it asks by what it read the last time.
        let mut asks = vec![];
        for (kind, record) in kinds.iter().enumerate() {
            for own in &record.report.lanes {
                let lane = own.lane as usize;
                let others = there.sharing.lanes_elsewhere(record.report.key);
                let others = others.filter(|other| other.lane == own.lane);
                asks.push((kind, lane, there.numbers[kind][lane].wanted(own, others, now, unix)));
            }
        }
        if reaches {
            let record = Record::of_bytes(&record.to_bytes()).expect("a record is read as it was written");
            self.engine[index] = Some((now, record));
            let seen = self.engine.iter().enumerate().filter_map(|(index, record)| {
                let (at, record) = record.as_ref()?;
                Some(Seen {
                    member: GatewayId(index as u64 + 1),
                    age: now.since(*at),
                    record: record.clone(),
                })
            });
            there.sharing.handle_exchange(now, Exchange { seen: seen.collect() });
        } else {
            there.sharing.handle_failure();
        }
        let (me, members) = (GatewayId(index as u64 + 1), there.sharing.members());
        let is_lost = there.sharing.phase(now) == Phase::SafeShare;
        for (kind, lane, wanted) in asks {
            let numbers = &mut there.numbers[kind][lane];
            if let Some(wanted) = wanted.filter(|_| reaches) {
                let block = wanted.block(self.counters[kind][lane]);
                self.counters[kind][lane] = block.to;
                numbers.handle_block(block);
            } else if is_lost {
                numbers.handle_loss(now, unix, me, &members);
            }
            let allotment = numbers.allotment(now, unix, me, &members);
            there.gate.handle_allotment(KindId(kind as u32), Lane::ALL[lane], allotment);
        }
        let part = there.sharing.part(now);
        there.gate.handle_part(
            now,
            &part,
            |key| Some(RouteId(u32::try_from(key).ok()?.checked_sub(1)?)),
            |key| Some(KindId(u32::try_from(key).ok()?.checked_sub(1)?)),
        );
        self.drain(now, index);
        self.at(now + PERIOD, Event::Exchange(index));
    }
}

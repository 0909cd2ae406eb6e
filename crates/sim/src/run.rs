//! One run: visitors, gate and server on one event heap.

use crate::server::{Job, Server};
use crate::shop::Scenario;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use suimon_gate::{Arrival, Counts, Gate, KindParams, Membership, Mode, Output, Token};
use suimon_model::{Ending, Instant, KindId, Reason, RequestId, Rng, RouteId, SessionId, TraceHash, seconds};

const KIND: KindId = KindId(0);

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Sessions completed in the time counted.
    pub completed: u64,
    /// Completed sessions per second (for a burst: all sessions over the time until the last one ended).
    pub sessions_per_s: f64,
    /// That as a share of the bound.
    pub goodput_share: f64,
    /// Timeouts after the first page.
    pub mid_session_failures: u64,
    /// Timeouts on the first page.
    pub first_step_failures: u64,
    /// Refusals on the first page.
    pub refusals: u64,
    /// Members that were refused: must be 0.
    pub members_refused: u64,
    /// Goodput share by bins of 30 s from the start.
    pub bins: Vec<f64>,
    /// Limit by route at the end.
    pub limits: Vec<u32>,
    /// The least and the highest limit of each route in the time counted.
    pub limit_range: Vec<(u32, u32)>,
    /// Windows at a limit under trial in the time counted.
    pub trial_windows: u64,
    /// The hash of all decisions.
    pub trace: u64,
    /// Events handled.
    pub events: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Ask(usize),
    Timeout(usize, RequestId),
    Elsewhere(u64),
    ServerEnd(u64),
    GateWake,
    Change(usize),
    NewClient,
}

struct Client {
    page: usize,
    session: Option<SessionId>,
    patience: f64,
    buys: bool,
    request: Option<RequestId>,
}

struct Run<'a> {
    scenario: &'a Scenario,
    gate: Gate,
    server: Server,
    clients: Vec<Client>,
    heap: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    order: u64,
    rng: Rng,
    demands: Rng,
    /// Requests inside the gate, and whose they are.
    owners: BTreeMap<RequestId, usize>,
    tokens: BTreeMap<u64, (Token, f64, f64)>,
    next_job: u64,
    server_epoch: u64,
    gate_wake: Instant,
    outcome: Outcome,
    bins: Vec<u64>,
    finished: usize,
    last_finish: Instant,
    end: Instant,
    count_from: Instant,
}

/// Runs `scenario` to its end. The same scenario gives the same outcome, bit for bit.
pub fn run(scenario: &Scenario) -> Outcome {
    let mut gate = Gate::new(scenario.gate.clone(), Instant::ORIGIN);
    let routes = scenario.routes.iter().max().map_or(0, |last| last + 1);
    let mode = if scenario.route_gates_off { Mode::Off } else { Mode::Enforce };
    (0..routes).for_each(|_| _ = gate.declare_route(Instant::ORIGIN, mode));
    let declared =
        scenario.patience.iter().copied().min_by(f64::total_cmp).filter(|_| scenario.patience_declared);
    gate.declare_kind(
        Instant::ORIGIN,
        KindParams { patience: declared.map(seconds), ..KindParams::default() },
    );
    let warm_up = if scenario.burst { 0.0 } else { scenario.warm_up };
    let mut run = Run {
        gate,
        server: Server::new(scenario.machine, Rng::stream(scenario.seed, 2)),
        clients: vec![],
        heap: BinaryHeap::new(),
        order: 0,
        rng: Rng::stream(scenario.seed, 3),
        demands: Rng::stream(scenario.seed, 4),
        owners: BTreeMap::new(),
        tokens: BTreeMap::new(),
        next_job: 0,
        server_epoch: 0,
        gate_wake: Instant::FAR_FUTURE,
        outcome: Outcome { limit_range: vec![(u32::MAX, 0); routes as usize], ..Outcome::default() },
        bins: vec![0; ((warm_up + scenario.measure) / 30.0) as usize + 1],
        finished: 0,
        last_finish: Instant::ORIGIN,
        end: Instant::ORIGIN + seconds(warm_up + scenario.measure),
        count_from: Instant::ORIGIN + seconds(warm_up),
        scenario,
    };
    run.play();
    run.conclude()
}

impl Run<'_> {
    fn play(&mut self) {
        if self.scenario.arrivals_per_s > 0.0 {
            self.at(Instant::ORIGIN, Event::NewClient);
        } else {
            for _ in 0..self.scenario.clients {
                let start = Instant::ORIGIN + seconds(self.rng.uniform());
                self.new_client(start);
            }
        }
        for (index, change) in self.scenario.changes.iter().enumerate() {
            self.at(Instant::ORIGIN + seconds(change.at), Event::Change(index));
        }
        self.wake_gate();
        while let Some(Reverse((now, _, event))) = self.heap.pop() {
            if now > self.end || (self.scenario.burst && self.finished == self.scenario.clients) {
                break;
            }
            self.outcome.events += 1;
            self.handle(now, event);
            self.drain_gate(now);
            self.check(now);
        }
    }

    fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::Ask(client) => self.ask(now, client),
            Event::Timeout(client, request) => self.time_out(now, client, request),
            Event::Elsewhere(job) => self.serve(now, job),
            Event::ServerEnd(epoch) if epoch == self.server_epoch => {
                while let Some(job) = self.server.ended(now) {
                    self.answered(now, job);
                    self.drain_gate(now);
                }
                self.schedule_server();
            }
            Event::GateWake if now >= self.gate_wake => {
                self.gate_wake = Instant::FAR_FUTURE;
                self.gate.handle_timeout(now);
            }
            // Overtaken by a later state of the server, or by an earlier wish of the gate.
            Event::ServerEnd(_) | Event::GateWake => {}
            Event::Change(index) => {
                let machine = self.scenario.changes[index].machine;
                self.server.change(now, |current| *current = machine);
                self.schedule_server();
            }
            Event::NewClient => {
                self.new_client(now);
                let gap = self.rng.exponential(1.0 / self.scenario.arrivals_per_s);
                self.at(now + seconds(gap), Event::NewClient);
            }
        }
    }

    fn new_client(&mut self, at: Instant) {
        let patience = self.scenario.patience[self.rng.below(self.scenario.patience.len())];
        let buys = !self.rng.chance(self.scenario.browse_only);
        self.clients.push(Client { page: 0, session: None, patience, buys, request: None });
        self.at(at, Event::Ask(self.clients.len() - 1));
    }

    fn ask(&mut self, now: Instant, index: usize) {
        let client = &self.clients[index];
        let session = match client.session {
            Some(session) => Membership::Member {
                kind: KIND,
                session,
                leased: true,
                ends: client.page + 1 == self.scenario.pages.len(),
            },
            None => Membership::Newcomer(KIND),
        };
        let route = RouteId(self.scenario.routes[client.page]);
        let patience = client.patience;
        let request = self.gate.handle_arrival(now, Arrival { route, session: Some(session) });
        self.clients[index].request = Some(request);
        self.owners.insert(request, index);
        self.at(now + seconds(patience), Event::Timeout(index, request));
    }

    fn time_out(&mut self, now: Instant, index: usize, request: RequestId) {
        if self.clients[index].request != Some(request) {
            return;
        }
        self.owners.remove(&request);
        self.gate.handle_departure(now, request);
        let client = &mut self.clients[index];
        client.request = None;
        let counted = now >= self.count_from;
        if client.session.is_none() || client.page == 0 {
            self.outcome.first_step_failures += u64::from(counted);
            client.page = 0;
            client.session = None;
        } else {
            self.outcome.mid_session_failures += u64::from(counted);
            client.page = 1;
        }
        self.at(now, Event::Ask(index));
    }

    fn serve(&mut self, now: Instant, job: u64) {
        let (_, demand, memory) = self.tokens.get(&job).expect("a job has its token until it ends");
        self.server.start(now, Job { id: job, demand: *demand, memory: *memory });
        self.schedule_server();
    }

    fn answered(&mut self, now: Instant, job: u64) {
        let (token, _, _) = self.tokens.remove(&job).expect("a job has its token until it ends");
        let owner = self.owners.remove(&token.request());
        self.gate.handle_end(now, token, if owner.is_some() { Ending::Completed } else { Ending::Abandoned });
        if let Some(index) = owner {
            self.turn_page(now, index);
        }
    }

    fn turn_page(&mut self, now: Instant, index: usize) {
        let think = if self.scenario.think_exponential {
            self.rng.exponential(self.scenario.think)
        } else {
            self.scenario.think
        };
        let left = self.rng.chance(self.scenario.leave);
        let client = &mut self.clients[index];
        client.request = None;
        client.page += 1;
        while !client.buys && self.scenario.pages.get(client.page).is_some_and(|page| page.memory >= 0.5) {
            client.page += 1;
        }
        let done = client.page >= self.scenario.pages.len();
        if !done && !left {
            return self.at(now + seconds(think), Event::Ask(index));
        }
        if done {
            self.bins[(now.as_secs_f64() / 30.0) as usize] += 1;
            self.last_finish = now;
            self.finished += 1;
            self.outcome.completed += u64::from(now >= self.count_from);
        }
        let closed = !self.scenario.burst && self.scenario.arrivals_per_s <= 0.0;
        if closed {
            let patience = self.scenario.patience[self.rng.below(self.scenario.patience.len())];
            let buys = !self.rng.chance(self.scenario.browse_only);
            self.clients[index] = Client { page: 0, session: None, patience, buys, request: None };
            self.at(now + seconds(think), Event::Ask(index));
        }
    }

    fn drain_gate(&mut self, now: Instant) {
        while let Some(output) = self.gate.poll_output() {
            match output {
                Output::Start(start) => {
                    let owner =
                        self.owners.get(&start.request).copied().expect("a started request has a client");
                    let client = &mut self.clients[owner];
                    client.session = start.session.map(|(_, session)| session);
                    let page = self.scenario.pages[client.page];
                    let demand = self.demands.lognormal(page.demand, self.scenario.variation);
                    let job = self.next_job;
                    self.next_job += 1;
                    self.tokens.insert(job, (start.token, demand, page.memory));
                    self.at(now + seconds(page.elsewhere), Event::Elsewhere(job));
                }
                Output::Refuse(refusal) => {
                    let owner = self.owners.remove(&refusal.request).expect("a refused request has a client");
                    let client = &mut self.clients[owner];
                    client.request = None;
                    self.outcome.members_refused += u64::from(client.session.is_some());
                    self.outcome.refusals += u64::from(now >= self.count_from);
                    self.at(now + refusal.retry_after, Event::Ask(owner));
                }
                Output::Decided(record) => {
                    let trial = record.reason == Reason::TrialWindow && now >= self.count_from;
                    self.outcome.trial_windows += u64::from(trial);
                }
            }
        }
        self.wake_gate();
    }

    /// Conservation and limits, after every event.
    fn check(&mut self, now: Instant) {
        if !self.outcome.events.is_multiple_of(64) {
            return;
        }
        let snapshot = self.gate.snapshot(now);
        let mut total = Counts::default();
        for (route, range) in snapshot.routes.iter().zip(&mut self.outcome.limit_range) {
            if let Some(limit) = route.limit.filter(|_| now >= self.count_from) {
                *range = (range.0.min(limit), range.1.max(limit));
            }
            total.offered += route.counts.offered;
            total.completed +=
                route.counts.completed + route.counts.failed + route.counts.abandoned + route.counts.refused;
        }
        let inside = (snapshot.waiting + snapshot.in_flight) as u64;
        assert_eq!(
            total.offered,
            total.completed + inside,
            "seed {}: requests lost at {now:?}",
            self.scenario.seed
        );
    }

    fn wake_gate(&mut self) {
        if let Some(wake) = self.gate.poll_timeout().filter(|wake| *wake < self.gate_wake) {
            self.gate_wake = wake;
            self.at(wake, Event::GateWake);
        }
    }

    fn schedule_server(&mut self) {
        self.server_epoch += 1;
        if let Some(end) = self.server.next_end() {
            self.at(end, Event::ServerEnd(self.server_epoch));
        }
    }

    fn at(&mut self, when: Instant, event: Event) {
        self.order += 1;
        self.heap.push(Reverse((when, self.order, event)));
    }

    fn conclude(mut self) -> Outcome {
        let bound = self.scenario.bound();
        let snapshot = self.gate.snapshot(self.end);
        self.outcome.limits = snapshot.routes.iter().map(|route| route.limit.unwrap_or(0)).collect();
        self.outcome.bins = self.bins.iter().map(|count| *count as f64 / 30.0 / bound).collect();
        let trace: TraceHash = self.gate.trace();
        self.outcome.trace = trace.value();
        self.outcome.sessions_per_s = if self.scenario.burst {
            self.finished as f64 / self.last_finish.as_secs_f64().max(1e-9)
        } else {
            self.outcome.completed as f64 / self.scenario.measure
        };
        self.outcome.goodput_share = self.outcome.sessions_per_s / bound;
        self.outcome
    }
}

//! The machine: what happens when a request comes, ends, leaves, and when time passes.

use crate::api::{
    Arrival, Counts, InLine, KindParams, Membership, Mode, Order, Output, Params, Refusal, RouteView,
    Snapshot, Start, Token, Word,
};
use crate::held::{Key, Newcomer};
use crate::kinds::Kind;
use crate::queue::Queue;
use crate::requests::{Request, Requests, Stage};
use crate::sessions::Sessions;
use std::collections::VecDeque;
use suimon_control::{
    Admission, Capacity, Meter, Moments, Outlook, Reading, RequestEnd, RouteLaw, RouteOutlook, SessionLaw,
    Visits,
};
use suimon_line::{Lane, Place, Standing};
use suimon_model::{
    Duration, Ending, Instant, KindId, Reason, Record, RequestId, Rng, RouteId, SessionId, TraceHash, seconds,
};

/// Time between two ticks: the grain of everything that is not driven by a request.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// Rates shown are taken over this long.
const VIEW_SECONDS: f64 = 2.0;
/// Leases are given for this long after the last sign of pressure.
const PRESSURE: Duration = Duration::from_secs(600);
/// A newcomer held for this many times the longest hold is told so.
const OVERDUE: f64 = 1.25;
/// Where a request stands in its route's queue; 0 is behind all others.
const POSITION: u32 = 1;
/// Share of the time somebody must wait at a route, and for how many views on end, for that to be pressure.
const PRESSURE_SHARE: f64 = 0.8;
const PRESSURE_VIEWS: u32 = 5;
/// The least weight of the newest time in the application, in what is told of them.
const TOOK_WEIGHT: f64 = 0.01;
/// A newcomer held for longer, seconds, is pressure; a shorter wait is chance.
const PRESSURE_HELD: f64 = 1.0;

/// The gate. See the crate's documentation for how it is spoken to.
#[derive(Debug)]
pub struct Gate {
    params: Params,
    requests: Requests,
    sessions: Sessions,
    routes: Vec<Route>,
    /// By route, beside `routes` so that the law can read all of them.
    meters: Vec<Meter>,
    outlook: Vec<RouteOutlook>,
    kinds: Vec<Kind>,
    visits: Visits,
    law: Box<dyn RouteLaw>,
    rng: Rng,
    outputs: VecDeque<Output>,
    records: VecDeque<Record>,
    trace: TraceHash,
    /// Records of the event under way, until they are published.
    fresh: Vec<Record>,
    waiting: usize,
    in_flight: usize,
    next_tick: Instant,
    pressed_until: Instant,
    draining: bool,
}

/// What a newcomer has of the line.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Claim {
    /// Nothing, and it is to draw no place.
    None,
    /// Nothing yet, and it is to draw a place in this lane.
    Draws(Lane),
    /// This place, and whether it may draw another if that is over.
    Holds(Place, bool),
}

#[derive(Debug)]
struct Route {
    mode: Mode,
    queue: Queue,
    in_flight: usize,
    ghosts: usize,
    capacity: Capacity,
    counts: Counts,
    view_begin: Reading,
    view_rate: f64,
    view_service: f64,
    /// Views on end that showed pressure.
    pressed_views: u32,
    /// Seconds in the application, of all that made progress, and of those that had a core of their own.
    took: Moments,
    took_alone: Moments,
}

impl Gate {
    /// Returns a gate that knows no routes and no kinds yet.
    pub fn new(params: Params, now: Instant) -> Self {
        let law = params.route_law.build(params.cores);
        Gate::with_route_law(params, law, now)
    }

    /// Returns a gate whose limits are found by `law`, whatever `params` say of it.
    pub fn with_route_law(params: Params, law: Box<dyn RouteLaw>, now: Instant) -> Self {
        Gate {
            requests: Requests::default(),
            sessions: Sessions::new(params.sessions_max),
            routes: vec![],
            meters: vec![],
            outlook: vec![],
            kinds: vec![],
            visits: Visits::default(),
            law,
            rng: Rng::stream(params.seed, 1),
            outputs: VecDeque::new(),
            records: VecDeque::with_capacity(params.records_max),
            trace: TraceHash::default(),
            fresh: vec![],
            waiting: 0,
            in_flight: 0,
            next_tick: now + TICK,
            pressed_until: Instant::ORIGIN,
            draining: false,
            params,
        }
    }

    /// Declares a route and returns its id; ids count up from 0. The caller bounds how many there are.
    pub fn declare_route(&mut self, now: Instant, mode: Mode) -> RouteId {
        let id = RouteId(self.routes.len() as u32);
        let meter = Meter::new(now);
        self.routes.push(Route {
            mode,
            queue: Queue::default(),
            in_flight: 0,
            ghosts: 0,
            capacity: Capacity::new(now),
            counts: Counts::default(),
            view_begin: meter.read(now),
            view_rate: 0.0,
            view_service: 0.0,
            pressed_views: 0,
            took: Moments::new(TOOK_WEIGHT),
            took_alone: Moments::new(TOOK_WEIGHT),
        });
        self.meters.push(meter);
        self.outlook.push(RouteOutlook::default());
        let fixed = if let Mode::Fixed(limit) = mode { Some(limit) } else { None };
        self.law.add_route(now, fixed);
        self.visits.add_route();
        id
    }

    /// Declares a kind of session and returns its id; ids count up from 0. The caller bounds how many there are.
    pub fn declare_kind(&mut self, now: Instant, params: KindParams) -> KindId {
        let id = KindId(self.kinds.len() as u32);
        let law = self.params.session_law.build(id, self.params.cores, now);
        self.declare_kind_with_law(now, params, law)
    }

    /// Declares a kind of session whose newcomers are let in by `law`, and returns its id as [`Gate::declare_kind`] does.
    pub fn declare_kind_with_law(
        &mut self,
        now: Instant,
        params: KindParams,
        law: Box<dyn SessionLaw>,
    ) -> KindId {
        let id = KindId(self.kinds.len() as u32);
        self.kinds.push(Kind::new(id, params, law, self.params.patience, now));
        self.visits.add_kind();
        id
    }

    /// Takes in a request. If it may go on, or is refused, an output for it follows from `poll_output` at once; otherwise it
    /// waits, and the output follows when its time has come.
    pub fn handle_arrival(&mut self, now: Instant, arrival: Arrival) -> RequestId {
        self.routes[arrival.route.index()].counts.offered += 1;
        let mut request = Request {
            route: arrival.route,
            session: None,
            newcomer: None,
            place: None,
            begins: None,
            passes: false,
            leased: false,
            ends_session: false,
            beyond: false,
            arrived: now,
            stage: Stage::InApplication(now),
            alone: false,
        };
        let id = match arrival.session {
            None => {
                let id = self.requests.insert(request);
                if self.route_hopeless(arrival.route) {
                    self.refuse(now, id, Reason::WaitTooLong, None);
                } else {
                    self.enter_route_gate(now, id);
                }
                id
            }
            Some(Membership::Member { kind, session, leased, ends }) => {
                request.session = Some((kind, session));
                request.leased = leased;
                request.ends_session = ends;
                let id = self.requests.insert(request);
                // A lease from before a restart: whoever was let in stays let in.
                if self.sessions.get(session).is_none() {
                    self.sessions.begin(now, session, kind, &mut self.visits);
                }
                self.enter_route_gate(now, id);
                id
            }
            Some(Membership::Newcomer(kind)) => {
                request.newcomer = Some(kind);
                let id = self.requests.insert(request);
                self.enter_session_gate(now, id, kind, Claim::Draws(Lane::Normal));
                id
            }
            Some(Membership::Drawing { kind, lane }) => {
                request.newcomer = Some(kind);
                let id = self.requests.insert(request);
                self.enter_session_gate(now, id, kind, Claim::Draws(lane));
                id
            }
            Some(Membership::Passing(kind)) => {
                request.newcomer = Some(kind);
                request.passes = true;
                let id = self.requests.insert(request);
                self.enter_session_gate(now, id, kind, Claim::None);
                id
            }
            // Whoever comes with a place that has begun its session belongs to that.
            Some(Membership::Placed { kind, place, session, draws: _ })
                if self.sessions.get(session).is_some() =>
            {
                request.session = Some((kind, session));
                request.place = Some(place);
                let id = self.requests.insert(request);
                self.enter_route_gate(now, id);
                id
            }
            Some(Membership::Placed { kind, place, session, draws }) => {
                request.newcomer = Some(kind);
                request.place = Some(place);
                request.begins = Some(session);
                let id = self.requests.insert(request);
                self.enter_session_gate(now, id, kind, Claim::Holds(place, draws));
                id
            }
        };
        self.publish();
        id
    }

    /// Takes note that the client of `request` has gone. Waiting: it leaves the queue at once and its id is forgotten. In the
    /// application: its slot stays with its token, as ghost work. Unknown or stale ids are ignored.
    pub fn handle_departure(&mut self, now: Instant, request: RequestId) {
        let Some(entry) = self.requests.get(request).copied() else { return };
        match entry.stage {
            Stage::Ghost(_) => return,
            Stage::InApplication(since) => {
                let ghost = self.requests.get_mut(request).expect("the request was there a line ago");
                ghost.stage = Stage::Ghost(since);
                self.routes[entry.route.index()].ghosts += 1;
                self.learn_patience(&entry, now, true);
                return;
            }
            Stage::AtSessionGate(key) => {
                if let Some(kind) = entry.newcomer {
                    let kind = &mut self.kinds[kind.index()];
                    kind.held.remove(key);
                    // Nobody else knows of a place that was drawn here and never told.
                    if let (Some(line), Some(place), None) = (&mut kind.line, entry.place, entry.begins) {
                        line.left(place);
                    }
                }
            }
            Stage::AtRouteGate(key) => {
                self.routes[entry.route.index()].queue.remove(key);
                self.note_load(now, entry.route);
                if let Some((_, session)) = entry.session {
                    self.sessions.waited(now, session, entry.arrived);
                    self.sessions.answered(now, session, entry.counted(), &mut self.visits);
                }
            }
        }
        self.waiting -= 1;
        self.requests.remove(request);
        self.routes[entry.route.index()].counts.abandoned += 1;
        self.learn_patience(&entry, now, true);
        self.admit_from_lines(now);
        self.publish();
    }

    /// Takes back a slot.
    #[allow(clippy::needless_pass_by_value)] // taking the token is what ends it
    pub fn handle_end(&mut self, now: Instant, token: Token, ending: Ending) {
        let Token { request: id } = token;
        let entry =
            self.requests.remove(id).expect("a token is made for a request in the table and ends once");
        let (Stage::InApplication(since) | Stage::Ghost(since)) = entry.stage else {
            unreachable!("a token is given only to a request in the application")
        };
        let ghost = matches!(entry.stage, Stage::Ghost(_));
        let alone = entry.alone && self.has_cores_for_all();
        let route = &mut self.routes[entry.route.index()];
        route.in_flight -= 1;
        self.in_flight -= 1;
        route.ghosts -= usize::from(ghost);
        let counted = match ending {
            Ending::Completed if ghost => &mut route.counts.abandoned,
            Ending::Completed => &mut route.counts.completed,
            Ending::Failed(_) => &mut route.counts.failed,
            Ending::Abandoned => &mut route.counts.abandoned,
        };
        *counted += 1;
        let service = now.secs_since(since);
        let progress = !matches!(ending, Ending::Failed(_));
        if progress {
            route.took.fold(service);
            if alone {
                route.took_alone.fold(service);
            }
        }
        self.meters[entry.route.index()].end(service, progress);
        self.note_load(now, entry.route);
        let end = RequestEnd { route: entry.route, request: id, service, progress };
        self.law.on_end(now, &end, &self.meters, &mut self.fresh);
        if let Some((_, session)) = entry.session {
            self.sessions.answered(now, session, entry.counted(), &mut self.visits);
            if entry.ends_session && ending == Ending::Completed {
                self.sessions.end(session, &mut self.visits);
            }
        }
        if !ghost {
            self.learn_patience(&entry, now, ending == Ending::Abandoned);
        }
        self.serve_route(now, entry.route);
        self.admit_from_lines(now);
        self.publish();
    }

    /// Takes note of what the application says of a session. Sessions that are not known are ignored.
    pub fn handle_word(&mut self, now: Instant, session: SessionId, word: Word) {
        let Some(kind) = self.sessions.get(session).map(|session| session.kind()) else { return };
        match word {
            Word::Ends => self.sessions.end(session, &mut self.visits),
            Word::Checkout => self.sessions.checks_out(session),
            Word::Weighs(weight) => {
                if self.sessions.weighs(session) {
                    self.kinds[kind.index()].law.weighs(weight.clamp(1, Word::WEIGHT_MAX));
                }
            }
        }
        self.admit_from_lines(now);
        self.publish();
    }

    /// Does what is due by `now`: see `poll_timeout`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next_tick {
            self.tick(now);
            // A late shell gets one tick, not all it missed.
            self.next_tick = now + TICK;
        }
        self.admit_from_lines(now);
        self.publish();
    }

    /// Returns the next thing that should happen, until there is none. Call after every `handle_*`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns when `handle_timeout` is to be called, if nothing else happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        // Of a line that stands still nobody is let in, whatever the law says.
        let kinds = self.kinds.iter().filter(|kind| kind.lets_in() && !kind.held.is_empty());
        let next = kinds.filter_map(|kind| kind.next).min();
        Some(next.map_or(self.next_tick, |next| next.min(self.next_tick)))
    }

    /// Refuses newcomers from now on, those in line included, so that what is under way can end (graceful shutdown).
    pub fn drain(&mut self, now: Instant) {
        self.draining = true;
        for index in 0..self.kinds.len() {
            while let Some(Newcomer { key, request, .. }) = self.kinds[index].held.head() {
                self.kinds[index].held.remove(key);
                self.waiting -= 1;
                self.refuse(now, request, Reason::ShuttingDown, Some(KindId(index as u32)));
            }
        }
        self.publish();
    }

    /// Returns what the gate was told before it started.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the limit held at `route`, if one is.
    pub fn limit(&self, route: RouteId) -> Option<u32> {
        match self.routes[route.index()].mode {
            Mode::Enforce => Some(self.law.limit(route)),
            Mode::Fixed(limit) => Some(limit),
            Mode::Observe | Mode::Off => None,
        }
    }

    /// Returns how many requests of `route` wait for a slot and how many are in the application.
    pub fn load(&self, route: RouteId) -> (usize, usize) {
        let state = &self.routes[route.index()];
        (state.queue.len(), state.in_flight)
    }

    /// Returns the hash of all decisions so far: the same events give the same hash.
    pub fn trace(&self) -> TraceHash {
        self.trace
    }

    /// Returns everything that can be seen of the gate at `now`.
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        let route_view = |(index, route): (usize, &Route)| RouteView {
            mode: route.mode,
            limit: self.limit(RouteId(index as u32)),
            in_flight: route.in_flight,
            ghosts: route.ghosts,
            waiting: route.queue.len(),
            rate: route.view_rate,
            service_seconds: route.view_service,
            counts: route.counts,
        };
        Snapshot {
            routes: self.routes.iter().enumerate().map(route_view).collect(),
            kinds: self.kinds.iter().map(|kind| kind.view(now, &self.outlook_of(kind.id))).collect(),
            waiting: self.waiting,
            in_flight: self.in_flight,
            sessions: self.sessions.len(),
            records: self.records.iter().copied().collect(),
            probing: self.law.probing(),
        }
    }

    fn enter_session_gate(&mut self, now: Instant, id: RequestId, kind_id: KindId, claim: Claim) {
        let route = self.requests.get(id).expect("the request was inserted by the caller").route;
        // Whoever has a place came before.
        if !matches!(claim, Claim::Holds(..)) {
            self.kinds[kind_id.index()].came.note();
        }
        if self.draining {
            return self.refuse(now, id, Reason::ShuttingDown, Some(kind_id));
        }
        let is_hopeless = self.route_hopeless(route);
        let kind = &self.kinds[kind_id.index()];
        let has_line = kind.line.is_some();
        if is_hopeless && !(has_line && kind.holds()) {
            return self.refuse(now, id, Reason::WaitTooLong, Some(kind_id));
        }
        if !kind.holds() {
            return self.let_in(now, id, kind_id);
        }
        // A place is good for one session; whoever comes with it when that is over waits like everybody.
        let is_over = |place| kind.line.as_ref().is_some_and(|line| line.is_claimed(place));
        let claim = match claim {
            Claim::Holds(place, draws) if is_over(place) => {
                let request = self.requests.get_mut(id).expect("the request was inserted by the caller");
                (request.place, request.begins) = (None, None);
                if draws { Claim::Draws(Lane::Normal) } else { Claim::None }
            }
            claim => claim,
        };
        if let (Some(line), Claim::Holds(place, _)) = (&mut self.kinds[kind_id.index()].line, claim) {
            let standing = line.knock(now, place);
            if standing != Standing::Called {
                return self.wait_in_line(now, id, kind_id, Some(place), standing);
            }
        }
        let kind = &self.kinds[kind_id.index()];
        let is_first = kind.held.is_empty()
            && !is_hopeless
            && kind.lets_in()
            && (kind.nobody_in_line() || matches!(claim, Claim::Holds(..)));
        let admission = if is_first { Some(self.may_admit(now, kind_id)) } else { None };
        if admission == Some(Admission::Now) {
            return self.let_in(now, id, kind_id);
        }
        if has_line {
            let may_be_held = !is_hopeless && !self.is_full();
            return self.take_place(now, id, kind_id, claim, may_be_held);
        }
        if admission == Some(Admission::Refuse) {
            return self.refuse(now, id, Reason::WorkToCome, Some(kind_id));
        }
        if self.is_full() {
            return self.refuse(now, id, Reason::GatewayFull, Some(kind_id));
        }
        let kind = &mut self.kinds[kind_id.index()];
        if kind.too_many_held(now) {
            return self.refuse(now, id, Reason::WaitTooLong, Some(kind_id));
        }
        let key = (Lane::Normal, kind.rank());
        self.hold(id, kind_id, key);
    }

    /// Holds a newcomer whose turn is soon, if it `may_be_held`, and shows its place to any other.
    fn take_place(&mut self, now: Instant, id: RequestId, kind_id: KindId, claim: Claim, may_be_held: bool) {
        let kind = &mut self.kinds[kind_id.index()];
        let line = kind.line.as_mut().expect("the caller has seen that there is one");
        let place = match claim {
            Claim::Holds(place, _) => place,
            Claim::None if kind.is_waited_in => {
                return self.refuse(now, id, Reason::WaitTooLong, Some(kind_id));
            }
            Claim::None | Claim::Draws(_) => {
                let lane = if let Claim::Draws(lane) = claim { lane } else { Lane::Normal };
                let Some(place) = line.draw(lane) else {
                    let standing = line.standing(now, Place { lane, number: u64::MAX });
                    return match standing {
                        Standing::Closed => self.wait_in_line(now, id, kind_id, None, standing),
                        Standing::Called
                        | Standing::Waiting(_)
                        | Standing::Opening(..)
                        | Standing::Paused(_) => self.refuse(now, id, Reason::GatewayFull, Some(kind_id)),
                    };
                };
                self.requests.get_mut(id).expect("the request was inserted by the caller").place =
                    Some(place);
                place
            }
        };
        let standing = line.standing(now, place);
        let key = line.rank(place);
        // In another tab of the same browser it is held already.
        if standing == Standing::Called && may_be_held && kind.held.at(key).is_none() {
            line.knock(now, place);
            self.hold(id, kind_id, key);
            return self.admit_from_lines(now);
        }
        kind.is_waited_in = true;
        if claim == Claim::None {
            line.left(place);
            return self.refuse(now, id, Reason::WaitTooLong, Some(kind_id));
        }
        self.wait_in_line(now, id, kind_id, Some(place), standing);
    }

    fn hold(&mut self, id: RequestId, kind: KindId, key: Key) {
        let request = self.requests.get_mut(id).expect("the request was inserted by the caller");
        request.stage = Stage::AtSessionGate(key);
        let arrived = request.arrived;
        self.kinds[kind.index()].held.insert(Newcomer { key, request: id, arrived });
        self.waiting += 1;
    }

    /// Answers a newcomer with its place.
    fn wait_in_line(
        &mut self,
        now: Instant,
        id: RequestId,
        kind: KindId,
        place: Option<Place>,
        standing: Standing,
    ) {
        let Some(entry) = self.requests.remove(id) else { return };
        self.pressed_until = now + PRESSURE;
        self.routes[entry.route.index()].counts.refused += 1;
        self.outputs.push_back(Output::Wait(InLine { request: id, kind, place, standing }));
    }

    /// Begins a session for a newcomer and sends it on to its route.
    fn let_in(&mut self, now: Instant, id: RequestId, kind: KindId) {
        let request = *self.requests.get(id).expect("a newcomer is in the table until it is let in");
        let session = request.begins.unwrap_or_else(|| SessionId(self.rng.bits()));
        // It may have begun meanwhile, by a lease of another tab.
        if self.sessions.get(session).is_none() {
            self.sessions.begin(now, session, kind, &mut self.visits);
        }
        let request = self.requests.get_mut(id).expect("a newcomer is in the table until it is let in");
        request.session = Some((kind, session));
        request.newcomer = None;
        let place = request.place;
        let state = &mut self.kinds[kind.index()];
        if let (Some(line), Some(place)) = (&mut state.line, place) {
            line.claimed(place);
        }
        state.admitted += 1;
        state.begun.note();
        state.law.admitted(now);
        self.enter_route_gate(now, id);
    }

    fn enter_route_gate(&mut self, now: Instant, id: RequestId) {
        let request = *self.requests.get(id).expect("a request is in the table until it ends");
        let mut position = POSITION;
        if let Some((_, session)) = request.session {
            let within_budget = self.sessions.asks(now, session, request.route, &mut self.visits);
            let state = self.sessions.get(session);
            position = match state {
                _ if !within_budget => 0,
                Some(state) if state.checkout => u32::MAX,
                Some(state) if self.params.order == Order::LaterInSession => {
                    POSITION.saturating_add(state.requests)
                }
                _ => POSITION,
            };
        }
        let route = &mut self.routes[request.route.index()];
        let key = route.queue.push(position, id);
        self.waiting += 1;
        let entry = self.requests.get_mut(id).expect("a request is in the table until it ends");
        (entry.stage, entry.beyond) = (Stage::AtRouteGate(key), position == 0);
        self.serve_route(now, request.route);
    }

    /// Starts whoever may start at `route`: nobody waits while a slot is free.
    fn serve_route(&mut self, now: Instant, route_id: RouteId) {
        let index = route_id.index();
        while self.limit(route_id).is_none_or(|limit| self.routes[index].in_flight < limit as usize) {
            let Some(id) = self.routes[index].queue.pop() else { break };
            self.waiting -= 1;
            self.start(now, id);
        }
        self.note_load(now, route_id);
    }

    fn start(&mut self, now: Instant, id: RequestId) {
        let pressed = now < self.pressed_until;
        let request = self.requests.get_mut(id).expect("a queued request is in the table");
        request.stage = Stage::InApplication(now);
        let (route, session, arrived) = (request.route, request.session, request.arrived);
        let lease_due = session.is_some() && !request.leased && (pressed || request.place.is_some());
        self.routes[route.index()].in_flight += 1;
        self.in_flight += 1;
        let alone = self.has_cores_for_all();
        self.requests.get_mut(id).expect("a queued request is in the table").alone = alone;
        self.law.on_start(now, route, id, &self.meters);
        let waited = now.since(arrived);
        if let Some((_, session)) = session.filter(|_| now > arrived) {
            self.sessions.waited(now, session, arrived);
        }
        self.outputs.push_back(Output::Start(Start {
            request: id,
            token: Token { request: id },
            session,
            lease_due,
            waited,
        }));
    }

    /// Returns whether everything in the application can have a core of its own, as far as is known.
    fn has_cores_for_all(&self) -> bool {
        self.in_flight <= self.params.cores as usize
    }

    fn refuse(&mut self, now: Instant, id: RequestId, reason: Reason, kind: Option<KindId>) {
        let Some(entry) = self.requests.remove(id) else { return };
        self.pressed_until = now + PRESSURE;
        self.routes[entry.route.index()].counts.refused += 1;
        let jitter = self.rng.between(0.75, 1.25);
        let (retry_after, predicted_wait, waiting) = match kind {
            Some(kind) => {
                let state = &mut self.kinds[kind.index()];
                state.refused += 1;
                (state.retry_after(now, jitter), state.predicted_wait(now), state.held.len())
            }
            None => {
                let wait = self.time_to_serve(entry.route).unwrap_or(1.0);
                let waiting = self.routes[entry.route.index()].queue.len();
                (seconds((wait * jitter).clamp(1.0, 30.0)), seconds(wait), waiting)
            }
        };
        self.outputs.push_back(Output::Refuse(Refusal {
            request: id,
            reason,
            retry_after,
            predicted_wait,
            waiting,
        }));
    }

    /// Lets in from the lines whoever may begin, the one waiting longest over all kinds first.
    fn admit_from_lines(&mut self, now: Instant) {
        let mut blocked = vec![];
        loop {
            let heads = self.kinds.iter().filter(|kind| kind.lets_in() && !blocked.contains(&kind.id));
            let heads = heads.filter_map(|kind| Some((kind.held.head()?, kind.id)));
            let Some((Newcomer { key, request, .. }, kind)) = heads.min_by_key(|(head, _)| head.arrived)
            else {
                return;
            };
            self.kinds[kind.index()].next = None;
            match self.may_admit(now, kind) {
                Admission::Now => {
                    self.kinds[kind.index()].held.begins(key);
                    self.waiting -= 1;
                    self.let_in(now, request, kind);
                }
                Admission::NotBefore(next) => {
                    self.kinds[kind.index()].next = Some(next);
                    blocked.push(kind);
                }
                Admission::Held(_) | Admission::Refuse => blocked.push(kind),
            }
        }
    }

    fn may_admit(&mut self, now: Instant, kind: KindId) -> Admission {
        let state = &mut self.kinds[kind.index()];
        let outlook = Outlook {
            visits: &self.visits,
            routes: &self.outlook,
            patience: state.patience(),
            waiting: state.waiting(),
            active: self.sessions.of_kind(kind),
        };
        state.law.may_admit(now, &outlook)
    }

    fn outlook_of(&self, kind: KindId) -> Outlook<'_> {
        let state = &self.kinds[kind.index()];
        Outlook {
            visits: &self.visits,
            routes: &self.outlook,
            patience: state.patience(),
            waiting: state.waiting(),
            active: self.sessions.of_kind(kind),
        }
    }

    fn tick(&mut self, now: Instant) {
        self.sessions.sweep(now, now - self.params.session_idle, &mut self.visits);
        self.visits.refresh();
        for kind in &mut self.kinds {
            kind.learner.refresh();
            kind.came.tick(now);
            kind.begun.tick(now);
        }
        let patience = self.kinds.iter().map(Kind::patience).min_by(f64::total_cmp);
        self.law.set_patience(patience.unwrap_or(self.params.patience.as_secs_f64()));
        self.look_at_routes(now);
        self.law.on_tick(now, &self.meters, &mut self.fresh);
        for index in 0..self.kinds.len() {
            let state = &mut self.kinds[index];
            let outlook = Outlook {
                visits: &self.visits,
                routes: &self.outlook,
                patience: state.patience(),
                waiting: state.waiting(),
                active: self.sessions.of_kind(state.id),
            };
            state.law.on_tick(now, &outlook, &mut self.fresh);
            state.move_line(now);
        }
        (0..self.routes.len()).for_each(|index| self.serve_route(now, RouteId(index as u32)));
        self.expire(now);
    }

    /// Takes in what each route can do and shows; notices pressure.
    fn look_at_routes(&mut self, now: Instant) {
        for (index, route) in self.routes.iter_mut().enumerate() {
            let meter = &self.meters[index];
            let id = RouteId(index as u32);
            route.capacity.tick(now, meter, self.law.tries_less(id));
            let service = self.law.service(id);
            let held = matches!(route.mode, Mode::Enforce | Mode::Fixed(_));
            let capacity =
                if held { route.capacity.per_second(Some(self.law.limit(id)), service) } else { None };
            self.outlook[index] = RouteOutlook { capacity, service, waiting: route.queue.ahead() };
            let window = meter.since(&route.view_begin, now);
            if window.seconds >= VIEW_SECONDS {
                route.view_begin = meter.read(now);
                route.view_rate = window.throughput();
                route.view_service = window.mean_service().unwrap_or(route.view_service);
                let pressed = window.queued_share() > PRESSURE_SHARE;
                route.pressed_views = if pressed { route.pressed_views + 1 } else { 0 };
                if route.pressed_views >= PRESSURE_VIEWS {
                    self.pressed_until = now + PRESSURE;
                }
            }
        }
    }

    /// Notices lines; refuses newcomers that have been held for much longer than was foreseen: an honest answer before they give up.
    fn expire(&mut self, now: Instant) {
        for index in 0..self.kinds.len() {
            let held = &self.kinds[index].held;
            if held.longest().is_some_and(|longest| now.secs_since(longest.arrived) > PRESSURE_HELD) {
                self.pressed_until = now + PRESSURE;
            }
            let oldest = now - seconds(OVERDUE * self.kinds[index].hold());
            while let Some(Newcomer { key, request, arrived }) = self.kinds[index].held.longest()
                && arrived < oldest
            {
                self.kinds[index].held.remove(key);
                self.waiting -= 1;
                self.held_too_long(now, request, KindId(index as u32));
            }
        }
    }

    /// Answers a newcomer that was held as long as is good for a connection: with its place, where it has one.
    fn held_too_long(&mut self, now: Instant, id: RequestId, kind: KindId) {
        let entry = self.requests.get(id).copied();
        match (&mut self.kinds[kind.index()].line, entry.and_then(|request| request.place)) {
            // Whoever was to draw no place is told of none, and nobody will come with it.
            (Some(line), Some(place)) if entry.is_some_and(|request| request.passes) => {
                line.left(place);
                self.refuse(now, id, Reason::WaitedTooLong, Some(kind));
            }
            (Some(line), Some(place)) => {
                let standing = line.contact(now, place);
                self.wait_in_line(now, id, kind, Some(place), standing);
            }
            _ => self.refuse(now, id, Reason::WaitedTooLong, Some(kind)),
        }
    }

    /// Returns whether one more at `route` would wait for longer than anybody stays. Never asked for members: they are not refused.
    fn route_hopeless(&self, route: RouteId) -> bool {
        self.is_full()
            || self.time_to_serve(route).is_some_and(|wait| wait > self.params.patience.as_secs_f64())
    }

    /// Returns whether as many wait as may. What goes beyond a session's budget keeps nobody else out.
    fn is_full(&self) -> bool {
        let max = self.params.waiting_max;
        self.waiting >= max
            && self.kinds.iter().map(|kind| kind.held.len()).sum::<usize>()
                + self.routes.iter().map(|route| route.queue.ahead()).sum::<usize>()
                >= max
    }

    /// Returns seconds until a request that joins `route`'s queue now would start.
    fn time_to_serve(&self, route: RouteId) -> Option<f64> {
        let waiting = self.routes[route.index()].queue.ahead() as f64;
        self.outlook[route.index()].capacity.filter(|x| *x > 0.0).map(|x| waiting / x)
    }

    fn learn_patience(&mut self, request: &Request, now: Instant, left: bool) {
        let kind = request.session.map(|(kind, _)| kind).or(request.newcomer);
        if let Some(kind) = kind {
            self.kinds[kind.index()].learner.fold(now.secs_since(request.arrived), left);
        }
    }

    fn note_load(&mut self, now: Instant, route: RouteId) {
        let state = &self.routes[route.index()];
        self.meters[route.index()].load(now, state.in_flight, state.queue.len());
    }

    /// Moves the records of the event under way to where they are seen.
    fn publish(&mut self) {
        for record in self.fresh.drain(..) {
            self.trace.record(&record);
            if self.records.len() == self.params.records_max {
                self.records.pop_front();
            }
            self.records.push_back(record);
            self.outputs.push_back(Output::Decided(record));
        }
    }
}

mod learned;
mod line;
mod saved;
#[cfg(test)]
mod tests;

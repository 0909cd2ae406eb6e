//! The machine: what happens when a request arrives, ends or leaves, and when time passes.
//!
//! | file | holds |
//! |---|---|
//! | `session_gate` | whether a newcomer begins now, is held, waits in line or is refused |
//! | `route_gate` | who starts at a route, and when |
//! | `split` | services: their caps and pauses |
//! | `sharing` | what other gateways before the same application have, and what is left to this one |
//! | `workers` | workers of a pool: how many may have a request at once |
//! | `away` | an application that does not answer, and the requests that wait for it |
//! | `tick` | what happens with time alone |
//! | `line` | what pages and operators ask of the lines |
//! | `learned` | what was learned, for reports |
//! | `pressure` | whether answers should carry leases |
//! | `saved` | the gate as bytes, and back |
//! | `adopt` | other settings, put in force while it runs |
//! | `knowledge` | what another process can begin with, and beginning with it |

use crate::api::{
    Arrival, KindParams, KindView, LeaseDue, Membership, Output, Params, Permit, Refusal, RouteMode,
    RouteView, SessionSignal, SessionStatus, Snapshot,
};
use crate::held::Newcomer;
use crate::kinds::KindGate;
use crate::requests::{NewcomerPosition, Origin, Request, Requests, Stage};
use crate::services::ServiceGates;
use crate::sessions::{RequestTrouble, Session, Sessions};
use crate::shared::Shared;
use away::Outage;
use occupancy::Occupancy;
use pressure::Pressure;
use route_gate::Route;
use session_gate::Claim;
use std::collections::VecDeque;
use suimon_control::{
    KindInputs, Meter, RequestEnd, RouteInputs, RouteKnowledge, RouteLaw, SessionLaw, Trust, Visits,
};
use suimon_line::{Lane, Position};
use suimon_model::{
    Duration, Failure, Instant, KindId, Outcome, PoolId, Reason, Record, RequestId, Rng, RouteId, SessionId,
    TraceHash, seconds,
};
use workers::WorkerSlots;

/// Time between two ticks: the grain of everything that is not driven by a request.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// Mean Retry-After of requests refused while the application is down, seconds.
const AWAY_RETRY: f64 = 5.0;
/// Requests that, on average over its life, may be beside one that counts as having had a core, where
/// the others have one each: it makes it take a tenth longer at most.
const COMPANY: f64 = 0.2;
/// What a request takes in the application ÷ what one takes alone, from which one that was declined
/// or left by its client counts as answered.
const WORK_DONE: f64 = 0.1;

/// The gate. See the crate's documentation for how it is spoken to.
#[derive(Debug)]
pub struct Gate {
    params: Params,
    requests: Requests,
    sessions: Sessions,
    routes: Vec<Route>,
    /// By route, beside `routes` so that the law can read all of them.
    meters: Vec<Meter>,
    inputs: Vec<RouteInputs>,
    kind_inputs: Vec<KindInputs>,
    kinds: Vec<KindGate>,
    services: ServiceGates,
    visits: Visits,
    law: Box<dyn RouteLaw>,
    rng: Rng,
    outputs: VecDeque<Output>,
    records: VecDeque<Record>,
    /// For display: how many there were in all.
    recorded: u64,
    trace: TraceHash,
    /// Records of the event under way, until they are published.
    fresh: Vec<Record>,
    waiting: usize,
    in_application: Occupancy,
    next_tick: Instant,
    pressure: Pressure,
    draining: bool,
    /// Never in a recording, which ends before.
    handed_over: bool,
    away: Outage,
    /// By pool; every pool that a route has is there.
    workers: Vec<WorkerSlots>,
    /// What is shared with other gateways, if anything is.
    shared: Option<Box<Shared>>,
}

/// Where a request enters the gate.
enum Entrance {
    /// At its route.
    RouteGate,
    /// As one of a session that has begun; whether it came with a lease.
    Inside(KindId, SessionId, bool),
    /// At the gate of its kind of session.
    SessionGate(KindId, Claim),
    /// There, and no further: with this position, which begins this session.
    SessionOnly(KindId, Position, SessionId),
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
            inputs: vec![],
            kind_inputs: vec![],
            kinds: vec![],
            services: ServiceGates::default(),
            visits: Visits::default(),
            law,
            rng: Rng::stream(params.seed, 1),
            outputs: VecDeque::new(),
            records: VecDeque::with_capacity(params.decisions_max),
            recorded: 0,
            trace: TraceHash::default(),
            fresh: vec![],
            waiting: 0,
            in_application: Occupancy::new(now),
            next_tick: now + TICK,
            pressure: Pressure::default(),
            draining: false,
            handed_over: false,
            away: Outage::default(),
            workers: vec![WorkerSlots::default()],
            shared: None,
            params,
        }
    }

    /// Declares a route and returns its id; ids count up from 0. The caller bounds how many there
    /// are.
    pub fn declare_route(&mut self, now: Instant, mode: RouteMode) -> RouteId {
        let id = RouteId(self.routes.len() as u32);
        let meter = Meter::new(now);
        self.routes.push(Route::new(mode, &meter, now));
        self.meters.push(meter);
        self.inputs.push(RouteInputs::default());
        let fixed = mode.fixed();
        self.law.add_route(now, fixed);
        self.visits.add_route();
        self.begin_with_workers(PoolId(0));
        id
    }

    /// Declares a route shared by all requests without one of their own: what was seen there says
    /// little of the next requests. Else as [`Gate::declare_route`].
    pub fn declare_mixed_route(&mut self, now: Instant, mode: RouteMode) -> RouteId {
        let id = self.declare_route(now, mode);
        self.law.mix(id);
        id
    }

    /// Lets `route`, of which nothing is known, begin with the limit of `other`, at which its
    /// requests were until now.
    pub fn begin_with_limit_of(&mut self, route: RouteId, other: RouteId) {
        let known = RouteKnowledge::of_limit(self.law.limit(other));
        self.law.recall(route, &known, Trust::after(Duration::ZERO));
    }

    /// Returns whether no request is at `route`, neither waiting nor in the application, nor held
    /// on the way there. Looks at every request, so it is not to be called for each.
    pub fn is_deserted(&self, route: RouteId) -> bool {
        self.requests.iter().all(|(_, request)| request.route != route)
    }

    /// Gives the number of `route` to another one, of which nothing is known, if [no request is
    /// there](Gate::is_deserted); else nothing happens.
    pub fn renew_route(&mut self, now: Instant, route: RouteId, mode: RouteMode) {
        if !self.is_deserted(route) {
            return;
        }
        let index = route.index();
        let pool = self.routes[index].pool;
        self.routes[index] = Route::new(mode, &self.meters[index], now);
        self.inputs[index] = RouteInputs::default();
        let fixed = mode.fixed();
        self.law.renew_route(now, route, fixed, &self.meters[index]);
        self.visits.renew_route(route);
        self.routes[index].pool = pool;
        self.begin_with_workers(pool);
    }

    /// Declares a kind of session and returns its id; ids count up from 0. The caller bounds how
    /// many there are.
    pub fn declare_kind(&mut self, now: Instant, params: KindParams) -> KindId {
        let id = KindId(self.kinds.len() as u32);
        let law = self.params.session_law.build(id, self.params.cores, now);
        self.declare_kind_with_law(now, params, law)
    }

    /// Declares a kind of session whose newcomers are admitted by `law`, and returns its id as
    /// [`Gate::declare_kind`] does.
    pub fn declare_kind_with_law(
        &mut self,
        now: Instant,
        params: KindParams,
        law: Box<dyn SessionLaw>,
    ) -> KindId {
        let id = KindId(self.kinds.len() as u32);
        self.kinds.push(KindGate::new(id, params, law, self.params.patience, now));
        self.visits.add_kind();
        id
    }

    /// Takes in a request. If it may go on, or is refused, an output for it follows from
    /// `poll_output` at once; otherwise it waits, and the output follows when its time has come.
    pub fn handle_arrival(&mut self, now: Instant, arrival: Arrival) -> RequestId {
        self.routes[arrival.route.index()].counts.offered += 1;
        let (origin, entrance) = self.origin_of(arrival.session);
        let id = self.requests.insert(Request::new(now, arrival.route, origin));
        match entrance {
            Entrance::RouteGate if self.route_hopeless(arrival.route) => {
                self.refuse(now, id, Reason::WaitTooLong, None);
            }
            Entrance::RouteGate => self.enter_route_gate(now, id),
            Entrance::Inside(kind, session, leased) => {
                // A lease from before a restart: an admitted visitor stays admitted.
                self.reopen(now, kind, session);
                if leased {
                    self.sessions.carries_lease(session);
                }
                self.enter_as_member(now, id, session);
            }
            Entrance::SessionGate(kind, claim) => self.enter_session_gate(now, id, kind, claim),
            Entrance::SessionOnly(kind, position, session) => {
                self.enter_only(now, id, kind, position, session);
            }
        }
        self.publish();
        id
    }

    /// Returns whose request this is, and where it enters.
    fn origin_of(&self, membership: Option<Membership>) -> (Origin, Entrance) {
        let has = |session: SessionId| self.sessions.get(session).is_some();
        let newcomer =
            |kind: KindId, claim: Claim| (Origin::newcomer(kind), Entrance::SessionGate(kind, claim));
        match membership {
            None => (Origin::Sessionless, Entrance::RouteGate),
            // A cookie that only names a session proves nothing once the gate has not got it.
            Some(Membership::Member { kind, session, leased: false, ends: _ }) if !has(session) => {
                newcomer(kind, Claim::Draws(Lane::Normal))
            }
            Some(Membership::Member { kind, session, leased, ends }) => (
                Origin::Member { kind, session, leased, ends, had_position: false },
                Entrance::Inside(kind, session, leased),
            ),
            Some(Membership::Newcomer(kind)) => newcomer(kind, Claim::Draws(Lane::Normal)),
            Some(Membership::Drawing { kind, lane }) => newcomer(kind, Claim::Draws(lane)),
            Some(Membership::WithoutLine(kind)) => {
                let position = NewcomerPosition::Drawn { drawn: None, is_visit: false };
                (Origin::Newcomer { kind, position }, Entrance::SessionGate(kind, Claim::None))
            }
            // A client that comes with a place whose session has begun belongs to that session.
            Some(Membership::Placed { kind, position: _, session, draws: _ }) if has(session) => (
                Origin::Member { kind, session, leased: false, ends: false, had_position: true },
                Entrance::Inside(kind, session, false),
            ),
            Some(Membership::Placed { kind, position, session, draws }) => {
                let own = NewcomerPosition::Own { position, session, enters_only: false };
                let claim = Claim::Holds(position, draws);
                (Origin::Newcomer { kind, position: own }, Entrance::SessionGate(kind, claim))
            }
            Some(Membership::Entering { kind, position, session }) => {
                let own = NewcomerPosition::Own { position, session, enters_only: true };
                (Origin::Newcomer { kind, position: own }, Entrance::SessionOnly(kind, position, session))
            }
        }
    }

    /// Takes note that the client of `request` has disconnected. If it waits, it leaves the queue
    /// at once and its id is forgotten. If it is in the application, its slot stays with its token,
    /// as orphaned work. Unknown or stale ids are ignored.
    pub fn handle_departure(&mut self, now: Instant, request: RequestId) {
        let Some(entry) = self.requests.get(request).copied() else { return };
        match entry.stage {
            // A suspended request ends with its body, and its token reports that.
            Stage::Orphaned(_) | Stage::Suspended | Stage::Returning(_) => return,
            Stage::InApplication(since) => {
                let orphaned = self.requests.get_mut(request).expect("the request was there a line ago");
                orphaned.stage = Stage::Orphaned(since);
                self.routes[entry.route.index()].orphaned += 1;
                self.learn_patience(&entry, now, true);
                return;
            }
            Stage::AtSessionGate(key) => {
                if let Origin::Newcomer { kind, position } = entry.origin {
                    let kind = &mut self.kinds[kind.index()];
                    kind.held.remove(key);
                    // Nobody else knows of a place that was drawn here and never shown.
                    if let (Some(line), NewcomerPosition::Drawn { drawn: Some(position), .. }) =
                        (&mut kind.line, position)
                    {
                        line.left(position);
                    }
                }
            }
            Stage::AwaitsApplication(_) => {
                self.away.forget(request, entry.session().map(|(_, session)| session));
            }
            Stage::Paused(until) => {
                self.services.leave_pause(entry.route, until, request, entry.beyond);
                self.leaves_unanswered(now, &entry);
            }
            Stage::AtRouteGate(key) => {
                self.routes[entry.route.index()].queue.remove(key);
                self.note_load(now, entry.route);
                self.leaves_unanswered(now, &entry);
            }
        }
        self.waiting -= 1;
        self.requests.remove(request);
        self.routes[entry.route.index()].counts.abandoned += 1;
        self.learn_patience(&entry, now, true);
        self.admit_from_lines(now);
        self.publish();
    }

    /// Takes note that the client of a request left that its session had asked for.
    fn leaves_unanswered(&mut self, now: Instant, request: &Request) {
        let Some((_, session)) = request.session() else { return };
        self.sessions.waited(now, session, request.arrived);
        self.sessions.came_to(session, Some(RequestTrouble::Abandoned));
        self.visits.unanswered();
        self.sessions.answered(now, session, request.counted(), &mut self.visits);
    }

    /// Takes back a slot.
    #[allow(clippy::needless_pass_by_value)] // taking the token is what ends it
    pub fn handle_end(&mut self, now: Instant, permit: Permit, outcome: Outcome) {
        let Permit { request: id } = permit;
        let entry =
            self.requests.remove(id).expect("a token is made for a request in the table and ends once");
        let orphaned = matches!(entry.stage, Stage::Orphaned(_));
        let mut had_a_core = false;
        let stay = match entry.stage {
            Stage::InApplication(since) | Stage::Orphaned(since) => {
                self.leaves_application(now, entry.route, entry.pause_share);
                let company = self.in_application.mean_since(since, entry.occupancy_mark);
                had_a_core = company + self.in_flight_elsewhere() <= f64::from(self.params.cores) + COMPANY;
                now.secs_since(since)
            }
            Stage::Suspended => {
                self.routes[entry.route.index()].suspended -= 1;
                entry.spent.as_secs_f64()
            }
            Stage::Returning(key) => {
                self.routes[entry.route.index()].queue.remove(key);
                self.waiting -= 1;
                entry.spent.as_secs_f64()
            }
            Stage::AtSessionGate(_)
            | Stage::AtRouteGate(_)
            | Stage::Paused(_)
            | Stage::AwaitsApplication(_) => {
                unreachable!("a token is given only to a request in the application")
            }
        };
        let service = stay - self.settle_pauses(now, &entry, stay);
        let route = &mut self.routes[entry.route.index()];
        route.orphaned -= usize::from(orphaned);
        let counted = match outcome {
            Outcome::Completed | Outcome::Declined if orphaned => &mut route.counts.abandoned,
            Outcome::Completed | Outcome::Declined => &mut route.counts.completed,
            Outcome::Failed(_) => &mut route.counts.failed,
            Outcome::Abandoned => &mut route.counts.abandoned,
        };
        *counted += 1;
        // The application never had all of what has ended while its client was waited for.
        let was_sent = matches!(entry.stage, Stage::InApplication(_) | Stage::Orphaned(_));
        let progress = match outcome {
            Outcome::Completed | Outcome::Declined => true,
            Outcome::Abandoned => was_sent,
            Outcome::Failed(_) => false,
        };
        self.workers[route.pool.index()].note_end(service, outcome);
        if let Some(shared) = &mut self.shared {
            shared.ended(entry.route, service, progress);
        }
        let meter = &mut self.meters[entry.route.index()];
        meter.end(service, progress);
        if progress {
            route.took.fold(service);
        }
        // What was declined, or left by its client, may have ended long before its work was done.
        let usual = route.took_alone.mean().unwrap_or(0.0);
        let answered = match outcome {
            Outcome::Completed => true,
            Outcome::Declined | Outcome::Abandoned => progress && service >= WORK_DONE * usual,
            Outcome::Failed(_) => false,
        };
        // Those that clients left are work like others to the route law, which has to do with hosts
        // that are too slow for their clients.
        let says_work = if outcome == Outcome::Declined { answered } else { progress };
        if answered {
            meter.answer(service);
            if let Some(shared) = &mut self.shared {
                shared.answered(entry.route, service);
            }
            if had_a_core {
                route.was_alone(service);
            }
        }
        self.note_load(now, entry.route);
        let end = RequestEnd { route: entry.route, request: id, service, progress, says_work };
        self.law.on_end(now, &end, &self.meters, &mut self.fresh);
        if let Some((_, session)) = entry.session() {
            let trouble = trouble(outcome, orphaned);
            self.sessions.came_to(session, trouble);
            if trouble.is_some() {
                self.visits.unanswered();
            }
            self.sessions.answered(now, session, entry.counted(), &mut self.visits);
            let is_end = matches!(entry.origin, Origin::Member { ends: true, .. });
            if is_end && outcome == Outcome::Completed {
                self.sessions.end(session, &mut self.visits);
            }
        }
        if !orphaned {
            self.learn_patience(&entry, now, outcome == Outcome::Abandoned);
        }
        self.serve_route(now, entry.route);
        self.admit_from_lines(now);
        self.publish();
    }

    /// Suspends `request`: takes note that the application waits for its client, who was waited for
    /// `client_time` of its stay so far, or that it could not be sent to the application and waits
    /// for its return. From now on it holds no slot, and its time does not count. Its token stays,
    /// and may end it. Ignored for any request that is not in the application. Returns whether it
    /// was not ignored.
    pub fn handle_suspend(&mut self, now: Instant, request: RequestId, client_time: Duration) -> bool {
        let Some(entry) = self.requests.get_mut(request) else { return false };
        let Stage::InApplication(since) = entry.stage else { return false };
        entry.stage = Stage::Suspended;
        entry.spent = now.since(since).saturating_sub(client_time);
        let id = entry.route;
        let share = entry.pause_share;
        self.routes[id.index()].suspended += 1;
        self.leaves_application(now, id, share);
        self.note_load(now, id);
        self.law.on_suspend(id, request);
        self.serve_route(now, id);
        self.admit_from_lines(now);
        self.publish();
        true
    }

    /// Takes note that the client of a suspended request is waited for no longer: it has its slot
    /// again once one is free, before requests that wait for a first one. `Output::Resumed` follows
    /// then. Ignored for any other request. Returns whether it was not ignored.
    pub fn handle_resume(&mut self, now: Instant, request: RequestId) -> bool {
        let Some(entry) = self.requests.get_mut(request) else { return false };
        if entry.stage != Stage::Suspended {
            return false;
        }
        let id = entry.route;
        let route = &mut self.routes[id.index()];
        route.suspended -= 1;
        entry.stage = Stage::Returning(route.queue.push(u32::MAX, request));
        self.waiting += 1;
        self.serve_route(now, id);
        self.publish();
        true
    }

    /// Takes note of what the application says of a session. Sessions that are not known are
    /// ignored.
    pub fn handle_session_signal(&mut self, now: Instant, session: SessionId, word: SessionSignal) {
        let Some(kind) = self.sessions.get(session).map(|session| session.kind()) else { return };
        match word {
            SessionSignal::Ends => self.sessions.end(session, &mut self.visits),
            SessionSignal::Checkout => self.sessions.checks_out(session),
            SessionSignal::Weighs(weight) => {
                if self.sessions.weighs(session) {
                    self.kinds[kind.index()].law.weighs(weight.clamp(1, SessionSignal::WEIGHT_MAX));
                }
            }
        }
        self.admit_from_lines(now);
        self.publish();
    }

    /// Returns whether an answer at this moment should carry a lease, if its session has none. The
    /// need may have grown since its request started: a rush comes while its first requests are in
    /// the application.
    pub fn lease_due(&self, now: Instant) -> LeaseDue {
        // Another gateway knows a session by its lease alone.
        if self.shared.is_some() {
            return LeaseDue::Yes;
        }
        self.pressure
            .lease_due(now, || self.kinds.iter().any(|kind| kind.is_rushed(now) || kind.may_close_at_once()))
    }

    /// Returns how a session stands that was admitted and is not known to have ended.
    pub fn begun(&self, session: SessionId) -> Option<SessionStatus> {
        self.sessions.get(session).map(Session::view)
    }

    /// Does what is due by `now`: see `poll_timeout`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next_tick {
            self.tick(now);
            // A late shell gets one tick, not all it missed.
            self.next_tick = now + TICK;
        }
        self.serve_services(now);
        self.admit_from_lines(now);
        self.look_again_at_held(now);
        self.publish();
    }

    /// Returns the next thing that should happen, until there is none. Call after every `handle_*`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns when `handle_timeout` is to be called, if nothing else happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        // Of a line that stands still nobody is admitted, whatever the law says.
        let kinds = self.kinds.iter().filter(|kind| kind.admits() && !kind.held.is_empty());
        let next = kinds.filter_map(|kind| kind.next).min();
        [next, self.next_of_services(), Some(self.next_tick)].into_iter().flatten().min()
    }

    /// Refuses newcomers from now on, those in line included, so that what is under way can end
    /// (graceful shutdown).
    pub fn drain(&mut self, now: Instant) {
        self.draining = true;
        self.send_held_away(|gate, request, kind| {
            gate.refuse(now, request, Reason::ShuttingDown, Some(kind));
        });
    }

    /// Another process goes on with the lines: no place is drawn here any more, and nobody is held.
    /// Those who are held and have a place are shown it, as it is good there; newcomers who would
    /// have to wait are refused, as by [`Gate::drain`], and those who need not are admitted.
    pub fn hand_over(&mut self, now: Instant) {
        self.handed_over = true;
        self.send_held_away(|gate, request, kind| {
            gate.answer_held(now, request, kind, Reason::ShuttingDown);
        });
    }

    /// Undoes [`Gate::hand_over`]: no other process goes on.
    pub fn take_back(&mut self) {
        self.handed_over = false;
    }

    /// Returns the sessions that were admitted and have not ended, as far as is known.
    pub fn sessions_begun(&self) -> impl Iterator<Item = (KindId, SessionId)> {
        self.sessions.all()
    }

    /// Goes on with a session that was admitted by another gate, if this one does not have it.
    pub fn reopen(&mut self, now: Instant, kind: KindId, session: SessionId) {
        if self.sessions.get(session).is_none() {
            self.sessions.begin(now, session, kind, &mut self.visits);
            self.sessions.resumes(kind);
        }
    }

    fn send_held_away(&mut self, mut send: impl FnMut(&mut Self, RequestId, KindId)) {
        for index in 0..self.kinds.len() {
            while let Some(Newcomer { key, request, .. }) = self.kinds[index].held.head(|_| true) {
                self.kinds[index].held.remove(key);
                self.waiting -= 1;
                send(self, request, KindId(index as u32));
            }
        }
        self.publish();
    }

    /// Returns the settings in force: those it began with, or those adopted last.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Returns whether a request of an admitted visitor, who asks for no more than one visitor
    /// does, arrived before that moment and waits for its first slot at a route whose limit is
    /// found by the law, and whose service has no cap. The first request of a session counts, too.
    pub fn holds_insider_since(&self, before: Instant) -> bool {
        let is_held = |request: &Request| {
            let began = request.session().and_then(|(_, session)| self.sessions.began(session));
            matches!(request.stage, Stage::AtRouteGate(_))
                && began.is_none_or(|began| began < request.arrived)
                && !request.beyond
                && request.arrived < before
                && !self.services.is_capped(request.route)
                && self.routes[request.route.index()].mode == RouteMode::Enforce
        };
        self.waiting > 0 && self.requests.iter().any(|(_, request)| is_held(request))
    }

    /// Returns what is done on each route.
    pub fn modes(&self) -> impl Iterator<Item = (RouteId, RouteMode)> {
        (0..).map(RouteId).zip(self.routes.iter().map(|route| route.mode))
    }

    /// Returns the limit held at `route`, if one is.
    pub fn limit(&self, route: RouteId) -> Option<u32> {
        match self.routes[route.index()].mode {
            RouteMode::Enforce => Some(self.law.limit(route).saturating_add(self.services.spare(route))),
            RouteMode::Fixed(limit) => Some(limit.slots()),
            RouteMode::Observe | RouteMode::Off => None,
        }
    }

    /// Returns how many requests of `route` wait for a slot and how many are in the application.
    pub fn load(&self, route: RouteId) -> (usize, usize) {
        let state = &self.routes[route.index()];
        (state.queue.len(), state.in_flight)
    }

    /// Returns how many requests are in the application, of all routes.
    pub fn in_flight(&self) -> usize {
        self.in_application.count()
    }

    /// Returns whether `request` is a newcomer's that is held until its session may begin.
    pub fn is_held(&self, request: RequestId) -> bool {
        self.requests.get(request).is_some_and(|entry| matches!(entry.stage, Stage::AtSessionGate(_)))
    }

    /// Returns the hash of all decisions so far: the same events give the same hash.
    pub fn trace(&self) -> TraceHash {
        self.trace
    }

    /// Returns everything that can be seen of the gate at `now`.
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        let route_view = |(index, route): (usize, &Route)| RouteView {
            mode: route.mode,
            pool: route.pool,
            limit: self.limit(RouteId(index as u32)),
            is_found: self.is_found(now, RouteId(index as u32)),
            in_flight: route.in_flight,
            orphaned: route.orphaned,
            suspended: route.suspended,
            waiting: route.queue.len(),
            rate: route.view_rate,
            service_seconds: route.view_service,
            counts: route.counts,
            placed: route.placed,
            elsewhere: self
                .shared
                .as_ref()
                .map_or_else(Default::default, |shared| shared.elsewhere(RouteId(index as u32))),
        };
        let kind_view = |kind: &KindGate| {
            let (ends, is_shut) = (self.sessions.ends(kind.id), self.draining);
            KindView {
                ends,
                law: self.params.session_law.word(),
                ..kind.view(now, &self.inputs_of(kind.id), is_shut)
            }
        };
        Snapshot {
            routes: self.routes.iter().enumerate().map(route_view).collect(),
            kinds: self.kinds.iter().map(kind_view).collect(),
            services: self.service_views(),
            pools: self.pool_views(),
            waiting: self.waiting,
            in_flight: self.in_application.count(),
            suspended: self.routes.iter().map(|route| route.suspended).sum(),
            sessions: self.sessions.len(),
            leased_sessions: self.sessions.leased(),
            records: self.records.iter().copied().collect(),
            recorded: self.recorded,
            probing: self.law.probing(),
        }
    }

    /// Returns whether the law has found the limit of a route, and only tries others beside it, or at least knows
    /// that more is too much; where another gateway learns it, whether that one says that it is settled.
    fn is_found(&self, now: Instant, route: RouteId) -> bool {
        let law = &self.law;
        let here = || law.is_settled(route) || law.probing() == Some(route) || law.is_bounded(now, route);
        self.routes[route.index()].mode == RouteMode::Enforce
            && self.shared.as_ref().and_then(|shared| shared.is_settled(route)).unwrap_or_else(here)
    }

    fn refuse(&mut self, now: Instant, id: RequestId, reason: Reason, kind: Option<KindId>) {
        let Some(entry) = self.requests.remove(id) else { return };
        self.learn_patience(&entry, now, false);
        self.pressure.note(now);
        self.routes[entry.route.index()].counts.refused += 1;
        let jitter = self.rng.between(0.75, 1.25);
        let (retry_after, predicted_wait, waiting) = match kind {
            // It is unknown when it comes back.
            Some(kind) if reason == Reason::ApplicationDown => {
                let state = &mut self.kinds[kind.index()];
                state.refused += 1;
                (seconds(AWAY_RETRY * jitter), Duration::ZERO, self.away.len())
            }
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

    fn learn_patience(&mut self, request: &Request, now: Instant, left: bool) {
        if let Some(kind) = request.kind() {
            let visitor = request.visitor().map(|SessionId(id)| id);
            self.kinds[kind.index()].learn_patience(visitor, now.secs_since(request.arrived), left);
        }
    }

    /// Moves the records of the event under way to where they are seen.
    fn publish(&mut self) {
        let mut fresh = std::mem::take(&mut self.fresh);
        for record in fresh.drain(..) {
            self.trace.record(&record);
            self.show(record);
        }
        // For the next event: the room for them stays.
        self.fresh = fresh;
    }

    /// Publishes a record. One that only shows the state, and is no decision, is no part of the
    /// trace.
    fn show(&mut self, record: Record) {
        if self.records.len() == self.params.decisions_max {
            self.records.pop_front();
        }
        self.records.push_back(record);
        self.recorded += 1;
        self.outputs.push_back(Output::Decided(record));
    }
}

/// Returns the outcome of a request that got no answer; `orphaned`: its client had disconnected
/// before.
fn trouble(outcome: Outcome, orphaned: bool) -> Option<RequestTrouble> {
    match outcome {
        Outcome::Failed(Failure::BadRequest) => None,
        Outcome::Failed(_) => Some(RequestTrouble::Failed),
        Outcome::Abandoned => Some(RequestTrouble::Abandoned),
        Outcome::Completed | Outcome::Declined => orphaned.then_some(RequestTrouble::Abandoned),
    }
}

mod adopt;
mod away;
mod knowledge;
mod learned;
mod line;
mod nodes;
mod occupancy;
mod pauses;
mod pressure;
mod route_gate;
mod saved;
mod session_gate;
mod sharing;
mod split;
#[cfg(test)]
mod tests;
mod tick;
mod workers;

pub use workers::{POOLS_MAX, WorkerLoad};

//! The route gate: a request that may begin or belongs to a session waits for a slot at its route,
//! and starts when it has one.

use super::Gate;
use super::tick::VIEW_SECONDS;
use crate::api::{Counts, LeaseDue, Output, Permit, QueueOrder, RouteMode, Start};
use crate::kinds::KindGate;
use crate::knowledge::RecalledCapacity;
use crate::queue::Queue;
use crate::requests::{Origin, Request, Stage};
use crate::sessions::Session;
use suimon_control::{Capacity, Forecast, Meter, Moments, PauseShare, Reading, RouteKnowledge};
use suimon_model::{Instant, PoolId, Reason, RequestId, RouteId, SessionId};

/// Where a request stands in its route's queue; 0 is behind all others.
const PRIORITY: u32 = 1;
/// A visitor must still be ready to wait for this many times the mean time in the application to be
/// answered in time: nearly all requests take no longer. In a queue of those who come too fast for
/// long all that start have waited until just before then, so what is missing here is lost of all
/// work.
const IN_TIME: f64 = 3.0;
/// But where that is more than this share of the patience, so many times the mean will do: most
/// requests take no longer.
const IN_TIME_SHARE: f64 = 0.25;
const IN_TIME_LEAST: f64 = 1.5;
/// The least weight of the newest time in the application, in the times that are reported.
const TOOK_WEIGHT: f64 = 0.01;
/// Of those that had a core of their own so many seconds in the application are remembered, or a
/// hundred if that is more: a hundred short ones are over in half a second, in which the host may
/// have been slow or quick by chance.
const ALONE_MEMORY: f64 = 120.0;

/// A route: its queue, its requests in the application, and what is measured of both.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) mode: RouteMode,
    /// The pool whose workers take its requests.
    pub(super) pool: PoolId,
    pub(super) queue: Queue,
    pub(super) in_flight: usize,
    /// Of those in flight, how many are expected to pause in the application, in millionths.
    pub(super) pausing: u64,
    pub(super) orphaned: usize,
    /// Beside those in flight, suspended requests.
    pub(super) suspended: usize,
    pub(super) capacity: Capacity,
    pub(super) forecast: Forecast,
    /// When the last tick was, and when somebody waited last.
    pub(super) tick_begin: Reading,
    pub(super) waited_at: Option<Instant>,
    /// What it was in another run, until it was measured in this one.
    pub(super) recalled: Option<RecalledCapacity>,
    /// While its limit is fixed, what the law had learned of it before.
    pub(super) before_fixed: Option<RouteKnowledge>,
    pub(super) counts: Counts,
    /// Of the refused, those that were shown a place in line. For show.
    pub(super) placed: u64,
    pub(super) view_begin: Reading,
    pub(super) view_rate: f64,
    /// When something ended last, if anything has.
    pub(super) ended_at: Option<Instant>,
    pub(super) view_service: f64,
    /// Consecutive views that showed pressure.
    pub(super) pressed_views: u32,
    /// Seconds in the application, of all that made progress, and of those that had a core of their
    /// own.
    pub(super) took: Moments,
    pub(super) took_alone: Moments,
}

impl Route {
    /// Returns completions per second, as far as is known: where there were none just now, at most
    /// one since the last.
    pub(super) fn rate(&self, now: Instant) -> f64 {
        if self.view_rate > 0.0 {
            return self.view_rate;
        }
        self.ended_at.map_or(0.0, |at| 1.0 / now.secs_since(at).max(VIEW_SECONDS))
    }

    /// Takes note of a request that had a core of its own for `service` seconds. Its weight goes by
    /// what such requests usually take: by its own, long ones would count for more than short ones,
    /// and the mean would be no mean.
    pub(super) fn was_alone(&mut self, service: f64) {
        let usual = self.took_alone.mean().unwrap_or(service);
        self.took_alone.fold_at_least(service, (usual / ALONE_MEMORY).min(TOOK_WEIGHT));
    }

    /// Returns a route without any request, as `meter` has just begun to measure it.
    pub(super) fn new(mode: RouteMode, meter: &Meter, now: Instant) -> Self {
        Route {
            mode,
            pool: PoolId(0),
            queue: Queue::default(),
            in_flight: 0,
            pausing: 0,
            orphaned: 0,
            suspended: 0,
            capacity: Capacity::new(now, meter),
            forecast: Forecast::default(),
            tick_begin: meter.read(now),
            waited_at: None,
            recalled: None,
            before_fixed: None,
            counts: Counts::default(),
            placed: 0,
            view_begin: meter.read(now),
            view_rate: 0.0,
            ended_at: None,
            view_service: 0.0,
            pressed_views: 0,
            took: Moments::new(TOOK_WEIGHT),
            took_alone: Moments::new(TOOK_WEIGHT),
        }
    }
}

/// Returns whether a visitor can hardly be answered in time any more, by a page that takes
/// `service` seconds on average.
fn is_late(now: Instant, request: &Request, kinds: &[KindGate], service: f64) -> bool {
    let patience = request.kind().map(|kind| kinds[kind.index()].patience());
    patience.is_some_and(|patience| {
        let needed = (IN_TIME * service).min((IN_TIME_SHARE * patience).max(IN_TIME_LEAST * service));
        now.secs_since(request.arrived) > patience - needed
    })
}

impl Gate {
    /// Takes a request of a session to its route. It is refused only if the session has more
    /// requests under way than any visitor has, and it would have to wait.
    pub(super) fn enter_as_member(&mut self, now: Instant, id: RequestId, session: SessionId) {
        let route = self.requests.get(id).expect("a request is in the table until it ends").route;
        let has_to_wait = !self.has_own_slot(route)
            || !self.has_worker(route)
            || self.is_held_back(now, route)
            || self.services.pauses(route);
        if has_to_wait && self.sessions.get(session).is_some_and(Session::is_full) {
            return self.refuse(now, id, Reason::GatewayFull, None);
        }
        self.enter_application(now, id);
    }

    /// Takes a request to its route, after the pause of its service, if it has one. Its session has
    /// asked for it from here on: what a pause holds counts, too.
    pub(super) fn enter_route_gate(&mut self, now: Instant, id: RequestId) {
        let entry = self.requests.get_mut(id).expect("a request is in the table until it ends");
        let route = entry.route;
        entry.held = now.since(entry.arrived);
        if let Some((_, session)) = entry.session() {
            entry.beyond = !self.sessions.asks(now, session, route, &mut self.visits);
        }
        if !self.pause(now, id, route) {
            self.queue_at_route(now, id);
        }
    }

    /// Returns where a request stands in its route's queue.
    fn position(&self, request: &Request) -> u32 {
        let session = request.session().and_then(|(_, session)| self.sessions.get(session));
        match session {
            _ if request.beyond => 0,
            Some(session) if session.checkout => u32::MAX,
            Some(session) if self.params.order == QueueOrder::LaterInSession => {
                PRIORITY.saturating_add(session.requests)
            }
            _ => PRIORITY,
        }
    }

    /// Queues a request at its route, and starts it if it need not wait.
    pub(super) fn queue_at_route(&mut self, now: Instant, id: RequestId) {
        let request = *self.requests.get(id).expect("a request is in the table until it ends");
        let starts_now =
            self.routes[request.route.index()].queue.is_empty() && self.has_slot(now, request.route);
        if starts_now {
            // The size of the queue, without its trees.
            if !request.beyond && self.law.demotes_late_requests() {
                let entry = self.requests.get_mut(id).expect("a request is in the table until it ends");
                let service = self.law.service(request.route).unwrap_or(0.0);
                entry.late = is_late(now, entry, &self.kinds, service);
            }
            self.routes[request.route.index()].queue.pass_by();
            self.start(now, id);
            return self.note_load(now, request.route);
        }
        let position = self.position(&request);
        let key = self.routes[request.route.index()].queue.push(position, id);
        let entry = self.requests.get_mut(id).expect("a request is in the table until it ends");
        entry.stage = Stage::AtRouteGate(key);
        self.waiting += 1;
        self.serve_route(now, request.route);
    }

    /// Returns whether the service of `route` has a cap, under which another one would wait.
    fn is_held_back(&mut self, now: Instant, route: RouteId) -> bool {
        self.services.is_capped(route)
            && !(self.routes[route.index()].queue.is_empty() && self.services.may_start(now, route))
    }

    fn has_slot(&mut self, now: Instant, route: RouteId) -> bool {
        self.has_own_slot(route) && self.has_worker(route) && self.services.may_start(now, route)
    }

    /// Returns whether the limit of `route` lets another one start.
    pub(super) fn has_own_slot(&self, route: RouteId) -> bool {
        let Some(limit) = self.limit(route) else { return true };
        let in_flight = self.routes[route.index()].in_flight;
        match &self.shared {
            None => in_flight < limit as usize,
            Some(shared) => shared.has_slot(route, in_flight),
        }
    }

    /// Starts the requests that may start at `route`: none waits while a slot is free.
    pub(super) fn serve_route(&mut self, now: Instant, route: RouteId) {
        if self.services.is_capped(route)
            && let Some(service) = self.services.of(route)
        {
            self.serve_service(now, service);
            return self.note_load(now, route);
        }
        let pool = self.routes[route.index()].pool;
        if self.counts_workers(pool) {
            self.serve_workers(now, pool);
            return self.note_load(now, route);
        }
        while self.has_own_slot(route) && self.start_next(now, route) {}
        self.note_load(now, route);
    }

    /// Starts the next request of `route`, and returns whether there was one.
    pub(super) fn start_next(&mut self, now: Instant, route: RouteId) -> bool {
        let service = self.law.service(route).unwrap_or(0.0);
        let (requests, kinds) = (&mut self.requests, &self.kinds);
        let may_be_late = self.law.demotes_late_requests();
        let is_late = |id| {
            let request = requests.get_mut(id).expect("a queued request is in the table");
            let is_inside = matches!(request.stage, Stage::Returning(_));
            request.late = may_be_late && !is_inside && is_late(now, request, kinds, service);
            request.late
        };
        let Some(id) = self.routes[route.index()].queue.pop(is_late) else { return false };
        self.waiting -= 1;
        self.start(now, id);
        true
    }

    fn start(&mut self, now: Instant, id: RequestId) {
        let request = self.requests.get_mut(id).expect("a queued request is in the table");
        let (route, session, arrived, held) =
            (request.route, request.session(), request.arrived, request.held);
        let share = request.pause_share;
        if matches!(request.stage, Stage::Returning(_)) {
            // As if the client had never been waited for.
            request.stage = Stage::InApplication(now - request.spent);
            self.enters_application(now, route, share);
            self.law.on_start(now, route, id, &self.meters);
            return self.outputs.push_back(Output::Resumed(id));
        }
        request.stage = Stage::InApplication(now);
        let lease = match request.origin {
            Origin::Member { leased: false, had_position: true, .. } => LeaseDue::Yes,
            Origin::Member { leased: false, had_position: false, .. } => self.lease_due(now),
            Origin::Member { leased: true, .. } | Origin::Sessionless | Origin::Newcomer { .. } => {
                LeaseDue::No
            }
        };
        let pause_ratio = self.services.ratio_inside(route);
        let share = PauseShare::of(pause_ratio);
        self.enters_application(now, route, share);
        let mark = self.in_application.mark();
        let request = self.requests.get_mut(id).expect("a queued request is in the table");
        (request.occupancy_mark, request.pause_share) = (mark, share);
        self.law.on_start(now, route, id, &self.meters);
        let waited = now.since(arrived);
        if let Some((_, session)) = session.filter(|_| now > arrived) {
            self.sessions.waited(now, session, arrived);
        }
        self.outputs.push_back(Output::Start(Start {
            request: id,
            permit: Permit { request: id },
            session,
            lease,
            waited,
            held,
            limit: self.limit(route),
            in_flight: self.routes[route.index()].in_flight,
            pause_ratio,
        }));
    }

    fn enters_application(&mut self, now: Instant, route: RouteId, share: PauseShare) {
        let state = &mut self.routes[route.index()];
        state.in_flight += 1;
        state.pausing += share.millionths();
        self.workers[state.pool.index()].taken += 1;
        self.in_application.enters(now);
        self.services.enters(now, route, share);
    }

    pub(super) fn leaves_application(&mut self, now: Instant, route: RouteId, share: PauseShare) {
        let state = &mut self.routes[route.index()];
        state.in_flight -= 1;
        state.pausing -= share.millionths();
        self.workers[state.pool.index()].taken -= 1;
        self.in_application.leaves(now);
        self.services.leaves(now, route, share);
    }

    /// Returns whether a request, that waits at its route or has just started, had to let later
    /// ones go first, as it could hardly be answered in time any more.
    pub fn is_late(&self, request: RequestId) -> bool {
        self.requests.get(request).is_some_and(|request| request.late)
    }

    /// Returns whether a request, that waits at its route or has just started, had to let all
    /// others go first, as its session asks for more than one visitor does.
    pub fn is_beyond(&self, request: RequestId) -> bool {
        self.requests.get(request).is_some_and(|request| request.beyond)
    }

    /// Returns whether one more at `route` would wait for longer than any visitor stays. Never
    /// called for sessions that have begun: they are not refused.
    pub(super) fn route_hopeless(&self, route: RouteId) -> bool {
        self.is_full()
            || self.time_to_serve(route).is_some_and(|wait| wait > self.params.patience.as_secs_f64())
    }

    /// Returns whether the maximum number waits. Requests beyond a session's budget keep no others
    /// out.
    pub(super) fn is_full(&self) -> bool {
        let max = self.params.waiting_max;
        self.waiting >= max
            && self.kinds.iter().map(|kind| kind.held.len()).sum::<usize>()
                + self.routes.iter().map(|route| route.queue.ahead()).sum::<usize>()
                + self.services.paused_ahead()
                >= max
    }

    /// Returns seconds until a request that joins `route`'s queue now would start.
    pub(super) fn time_to_serve(&self, route: RouteId) -> Option<f64> {
        let waiting = self.routes[route.index()].queue.ahead() as f64;
        self.inputs[route.index()].capacity.filter(|x| *x > 0.0).map(|x| waiting / x)
    }

    pub(super) fn note_load(&mut self, now: Instant, route: RouteId) {
        let state = &self.routes[route.index()];
        let (in_flight, waiting) = self.load_elsewhere(route);
        let meter = &mut self.meters[route.index()];
        meter.load(now, state.in_flight + in_flight, state.queue.len() + waiting);
        meter.pausing(now, PauseShare::sum(state.pausing));
    }
}

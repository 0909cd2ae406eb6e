//! The workers of a pool: a request starts only while one of them is free, whatever the limit of its
//! route allows.

use super::Gate;
use crate::api::PoolView;
use crate::queue::LATE;
use crate::requests::Request;
use suimon_model::{Instant, Outcome, PoolId, RouteId};

/// The most pools of one gate.
pub const POOLS_MAX: usize = 16;

/// Ticks without a request that lacks a worker, after which limits are what holds requests back.
const CALM_TICKS: u32 = 4;

/// How many workers a pool has, and whether they were enough.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkerSlots {
    /// Those that are ready; `None`: there are none that are counted.
    ready: Option<u32>,
    /// Requests of the pool's routes that are in the application.
    pub(super) taken: usize,
    /// Ticks since a request lacked nothing but a worker.
    calm: u32,
    /// While requests lack workers: how many were ready when that began, and the limits then.
    bound: Option<(u32, Vec<u32>)>,
    /// For the next report alone: ticks, those at which requests waited and all workers were taken,
    /// and those at which they waited although one was free.
    ticks: u32,
    short: u32,
    held: u32,
    /// For the next report, too: requests that were answered well, seconds they took, and those that
    /// failed.
    completed: u64,
    took: f64,
    failed: u64,
}

suimon_model::saved_struct!(
    WorkerSlots { ready, calm, bound } without { taken, ticks, short, held, completed, took, failed }
);

impl WorkerSlots {
    /// Returns how many are ready, where they are counted.
    #[cfg(test)]
    pub(super) fn ready(&self) -> Option<u32> {
        self.ready
    }

    /// Takes note of the end of a request that was `service` seconds with the application.
    pub(super) fn note_end(&mut self, service: f64, outcome: Outcome) {
        match outcome {
            Outcome::Completed | Outcome::Declined => {
                self.completed += 1;
                self.took += service;
            }
            Outcome::Failed(_) => self.failed += 1,
            Outcome::Abandoned => {}
        }
    }

    /// Returns whether requests wait for a worker, not for their route's limit.
    fn binds(&self) -> bool {
        self.ready.is_some() && self.calm < CALM_TICKS
    }
}

/// What the law of a pool's size is told: who waits for its workers, and what these do.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WorkerLoad {
    /// The share of the time since the last report in which requests waited and all workers were
    /// taken, 0 to 1.
    pub short: f64,
    /// The share in which requests waited although a worker was free: a limit holds them.
    pub held: f64,
    /// Seconds that the request has waited which would be next at its route, of all routes the
    /// longest.
    pub longest_wait: f64,
    /// Requests that had a slot and were answered, not with an error of the application's own, since
    /// the last report.
    pub completed: u64,
    /// Seconds that these were with the application, on average; `None`: there are none.
    pub took_s: Option<f64>,
    /// Requests that failed since the last report: an error comes sooner than an answer, and says
    /// nothing of how many workers help.
    pub failed: u64,
}

impl Gate {
    /// Gives the requests of `route`, which has just been declared or renewed, to the workers of
    /// `pool`. Until then they are the first pool's. Ignored beyond [`POOLS_MAX`] pools, and where
    /// [a request is there](Gate::is_deserted).
    pub fn give_to_pool(&mut self, now: Instant, route: RouteId, pool: PoolId) {
        let own = self.routes[route.index()].pool;
        if pool == own || !self.is_deserted(route) || !self.declare_pool(pool) {
            return;
        }
        let state = &mut self.routes[route.index()];
        state.pool = pool;
        // It may have begun with the workers of the other one.
        let (fixed, is_mixed) = (state.mode.fixed(), self.law.is_mixed(route));
        self.law.renew_route(now, route, fixed, &self.meters[route.index()]);
        if is_mixed {
            self.law.mix(route);
        }
        self.begin_with_workers(pool);
    }

    /// Returns the pool whose workers take the requests of `route`.
    pub fn pool_of(&self, route: RouteId) -> PoolId {
        self.routes[route.index()].pool
    }

    /// Makes room for a pool; returns whether there is.
    fn declare_pool(&mut self, pool: PoolId) -> bool {
        if pool.index() >= POOLS_MAX {
            return false;
        }
        let pools = self.workers.len().max(pool.index() + 1);
        self.workers.resize_with(pools, WorkerSlots::default);
        true
    }

    /// Says how many workers of a pool are ready; `None`: it has none that are counted. Requests that
    /// are with a worker stay, also if there are fewer now. Ignored beyond [`POOLS_MAX`] pools.
    pub fn handle_workers(&mut self, now: Instant, pool: PoolId, ready: Option<u32>) {
        if !self.declare_pool(pool) {
            return;
        }
        let before = std::mem::replace(&mut self.workers[pool.index()].ready, ready);
        if before == ready {
            return;
        }
        if before.is_none() || ready.is_none() {
            self.workers[pool.index()].calm = CALM_TICKS;
            self.follow_workers(pool);
        }
        self.begin_with_workers(pool);
        if self.away.is_on() && self.serves_alone(pool) {
            self.resume_awaiting(now, pool);
        }
        if ready.is_some() {
            self.serve_workers(now, pool);
        } else {
            self.routes_of(pool).for_each(|route| self.serve_route(now, route));
        }
        self.publish();
    }

    /// Reports what the workers of a pool did since the last report, and whether they were enough.
    pub fn take_worker_load(&mut self, now: Instant, pool: PoolId) -> WorkerLoad {
        let own = self.routes.iter().filter(|route| route.pool == pool);
        let heads = own.filter_map(|route| self.requests.get(route.queue.head()?.1));
        let waits = heads.map(|request| now.secs_since(request.arrived));
        let longest_wait = waits.fold(0.0, f64::max);
        let Some(slots) = self.workers.get_mut(pool.index()) else { return WorkerLoad::default() };
        let WorkerSlots { ticks, short, held, completed, took, failed, .. } = *slots;
        (slots.ticks, slots.short, slots.held) = (0, 0, 0);
        (slots.completed, slots.took, slots.failed) = (0, 0.0, 0);
        let share = |of: u32| f64::from(of) / f64::from(ticks.max(1));
        let took_s = (completed > 0).then(|| took / completed as f64);
        WorkerLoad { short: share(short), held: share(held), longest_wait, completed, took_s, failed }
    }

    /// Returns whether `route` has a pool other than the first, with workers that are ready: then it
    /// does not matter whether the application answers otherwise.
    pub(super) fn has_own_workers(&self, route: RouteId) -> bool {
        self.serves_alone(self.routes[route.index()].pool)
    }

    fn serves_alone(&self, pool: PoolId) -> bool {
        pool != PoolId(0) && self.workers[pool.index()].ready.is_some_and(|ready| ready > 0)
    }

    /// Returns whether a worker is free for a request of `route`, or none are counted. While the
    /// application does not answer none is waited for: who goes on is told that it does not.
    pub(super) fn has_worker(&self, route: RouteId) -> bool {
        self.has_free(self.routes[route.index()].pool)
    }

    fn has_free(&self, pool: PoolId) -> bool {
        let slots = &self.workers[pool.index()];
        let is_away = self.away.is_on() && !self.serves_alone(pool);
        slots.ready.is_none_or(|ready| slots.taken < ready as usize) || is_away
    }

    /// Returns whether all workers that are counted for `route` have a request.
    pub fn lacks_worker(&self, route: RouteId) -> bool {
        !self.has_worker(route)
    }

    /// Returns whether the workers of any pool are counted.
    pub(super) fn counts_any_workers(&self) -> bool {
        self.workers.iter().any(|slots| slots.ready.is_some())
    }

    /// Returns whether the workers of a pool are counted.
    pub(super) fn counts_workers(&self, pool: PoolId) -> bool {
        self.workers[pool.index()].ready.is_some()
    }

    /// Returns how the workers of each pool stand.
    pub(super) fn pool_views(&self) -> Vec<PoolView> {
        let view = |slots: &WorkerSlots| PoolView { ready: slots.ready, in_flight: slots.taken };
        self.workers.iter().map(view).collect()
    }

    fn routes_of(&self, pool: PoolId) -> impl Iterator<Item = RouteId> + use<> {
        let routes = (0..).map(RouteId).zip(&self.routes);
        let own = routes.filter(|(_, route)| route.pool == pool).map(|(id, _)| id);
        own.collect::<Vec<_>>().into_iter()
    }

    /// Gives free workers of all pools to those who wait, as if all routes whose limit, pool and
    /// service allow it had one queue: a service may have routes of several pools.
    pub(super) fn serve_all(&mut self, now: Instant) {
        self.serve_from(now, |_| true);
    }

    /// Gives free workers of a pool to those who wait, as if all its routes whose limit allows it had
    /// one queue.
    pub(super) fn serve_workers(&mut self, now: Instant, pool: PoolId) {
        if self.has_free(pool) {
            self.serve_from(now, |own| own == pool);
        }
    }

    fn serve_from(&mut self, now: Instant, is_meant: impl Fn(PoolId) -> bool) {
        while self.waiting > 0 {
            let Some(route) = self.next_for_worker(now, &is_meant) else { break };
            if !self.start_next(now, route) {
                break;
            }
            self.note_load(now, route);
        }
    }

    fn next_for_worker(&mut self, now: Instant, is_meant: impl Fn(PoolId) -> bool) -> Option<RouteId> {
        let mut first = None;
        for route in (0..self.routes.len()).map(|index| RouteId(index as u32)) {
            let state = &self.routes[route.index()];
            let waits = is_meant(state.pool) && !state.queue.is_empty() && self.has_worker(route);
            if waits && self.has_own_slot(route) && self.services.may_start(now, route) {
                first = self.goes_first(first.into_iter().chain([route]));
            }
        }
        first
    }

    /// Returns the route whose next request would go first in one queue for all of `routes`.
    pub(super) fn goes_first(&self, routes: impl Iterator<Item = RouteId>) -> Option<RouteId> {
        let heads = routes.filter_map(|route| {
            let (rank, head) = self.routes[route.index()].queue.head()?;
            Some((rank, self.requests.get(head)?.arrived, route))
        });
        let first = heads.min_by(|(rank, arrived, _), (other_rank, other_arrived, _)| {
            let by_arrival = arrived.cmp(other_arrived);
            let among_equals = if *rank == LATE { by_arrival.reverse() } else { by_arrival };
            rank.cmp(other_rank).then(among_equals)
        });
        first.map(|(_, _, route)| route)
    }

    /// Takes note at a tick whether a request lacks nothing but a worker. While some do, limits say
    /// nothing, and nothing is learned of them.
    pub(super) fn look_at_workers(&mut self, pool: PoolId) {
        if !self.counts_workers(pool) {
            return;
        }
        let is_free = self.has_free(pool);
        let mut waiting = self
            .routes
            .iter()
            .enumerate()
            .filter(|(_, route)| route.pool == pool && !route.queue.is_empty())
            .map(|(index, _)| RouteId(index as u32))
            .peekable();
        let is_waited_for = waiting.peek().is_some();
        let lacks_worker = !is_free && waiting.any(|route| self.has_own_slot(route));
        // Who waits at the gate of sessions waits for workers, too.
        let waits = |(_, request): (_, &Request)| {
            request.stage.waits() && self.routes[request.route.index()].pool == pool
        };
        let is_short = !is_free && (is_waited_for || self.waiting > 0 && self.requests.iter().any(waits));
        // What waits there, or for an application that is down, no limit of a route holds.
        let is_held = is_free && !self.away.is_on() && is_waited_for;
        let slots = &mut self.workers[pool.index()];
        slots.ticks = slots.ticks.saturating_add(1);
        slots.short += u32::from(is_short);
        slots.held += u32::from(is_held);
        slots.calm = if lacks_worker { 0 } else { slots.calm.saturating_add(1) };
        self.follow_workers(pool);
    }

    /// Lets routes of which nothing is learned have all workers at once, where a law finds how many
    /// these are: a search that begins with one request would keep the others idle for seconds.
    pub(super) fn begin_with_workers(&mut self, pool: PoolId) {
        let finds_workers = self.params.finds_workers.contains(&pool);
        let slots = &self.workers[pool.index()];
        let Some(ready) = slots.ready.filter(|_| finds_workers) else { return };
        let is_bound = slots.bound.is_some();
        for route in self.routes_of(pool) {
            let is_learned = self.law.knowledge(route).is_some_and(|known| known.settled);
            if !is_learned && self.law.limit(route) < ready {
                self.law.set_capped(route, true);
                self.law.set_limit(route, ready);
                self.law.set_capped(route, is_bound || self.services.is_capped(route));
            }
        }
    }

    /// While requests lack workers, nothing is learned of limits, and where there are more workers
    /// than when that began the limits are higher by as much: else they would hide whether more
    /// workers complete more. A route of which nothing has been learned yet may have all of them: its
    /// limit is only where the search for one began, and would keep its visitors behind all others.
    fn follow_workers(&mut self, pool: PoolId) {
        let slots = &mut self.workers[pool.index()];
        let Some(ready) = slots.ready.filter(|_| slots.binds()) else {
            if slots.bound.take().is_some() {
                for route in self.routes_of(pool) {
                    self.law.set_capped(route, self.services.is_capped(route));
                }
            }
            return;
        };
        if slots.bound.is_none() {
            let routes = (0..self.routes.len()).map(|index| RouteId(index as u32));
            slots.bound = Some((ready, routes.map(|route| self.law.limit(route)).collect()));
        }
        let routes = self.routes_of(pool);
        let Some((then, limits)) = &self.workers[pool.index()].bound else { return };
        let share = (f64::from(ready) / f64::from((*then).max(1))).max(1.0);
        for route in routes {
            self.law.set_capped(route, true);
            let is_learned = self.law.knowledge(route).is_some_and(|known| known.settled);
            let then = limits.get(route.index()).copied().unwrap_or_else(|| self.law.limit(route));
            // However few there were then: twice as many as workers hide nothing.
            let most = then.max(ready.saturating_mul(2));
            let limit = ((share * f64::from(then)).ceil() as u32).min(most);
            self.law.set_limit(route, if is_learned { limit } else { limit.max(ready) });
        }
    }
}

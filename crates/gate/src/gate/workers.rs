//! The workers of a pool: a request starts only while one of them is free, whatever the limit of its
//! route allows.

use super::Gate;
use crate::queue::LATE;
use suimon_model::{Instant, Outcome, RouteId};

/// Ticks without a request that lacks a worker, after which limits are what holds requests back.
const CALM_TICKS: u32 = 4;

/// How many workers there are, and whether they were enough.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkerSlots {
    /// Those that are ready; `None`: the application has none that are counted.
    ready: Option<u32>,
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
    WorkerSlots { ready, calm, bound } without { ticks, short, held, completed, took, failed }
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
    /// Says how many workers of a pool are ready; `None`: the application has no workers that are
    /// counted. Requests that are with a worker stay, also if there are fewer now.
    pub fn handle_workers(&mut self, now: Instant, ready: Option<u32>) {
        let before = std::mem::replace(&mut self.workers.ready, ready);
        if before == ready {
            return;
        }
        if before.is_none() || ready.is_none() {
            self.workers.calm = CALM_TICKS;
            self.follow_workers();
        }
        self.begin_with_workers();
        if ready.is_some() {
            self.serve_workers(now);
        } else {
            (0..self.routes.len()).for_each(|index| self.serve_route(now, RouteId(index as u32)));
        }
        self.publish();
    }

    /// Reports what workers did since the last report, and whether they were enough.
    pub fn take_worker_load(&mut self, now: Instant) -> WorkerLoad {
        let heads = self.routes.iter().filter_map(|route| self.requests.get(route.queue.head()?.1));
        let waits = heads.map(|request| now.secs_since(request.arrived));
        let longest_wait = waits.fold(0.0, f64::max);
        let WorkerSlots { ticks, short, held, completed, took, failed, .. } = self.workers;
        (self.workers.ticks, self.workers.short, self.workers.held) = (0, 0, 0);
        (self.workers.completed, self.workers.took, self.workers.failed) = (0, 0.0, 0);
        let share = |of: u32| f64::from(of) / f64::from(ticks.max(1));
        let took_s = (completed > 0).then(|| took / completed as f64);
        WorkerLoad { short: share(short), held: share(held), longest_wait, completed, took_s, failed }
    }

    /// Returns whether a worker is free, or none are counted. While the application does not answer
    /// none is waited for: who goes on is told that it does not.
    pub(super) fn has_worker(&self) -> bool {
        let is_free = |ready| self.in_application.count() < ready as usize;
        self.workers.ready.is_none_or(is_free) || self.away.is_on()
    }

    /// Returns whether all workers that are counted have a request.
    pub fn lacks_worker(&self) -> bool {
        !self.has_worker()
    }

    /// Returns whether workers are counted.
    pub(super) fn counts_workers(&self) -> bool {
        self.workers.ready.is_some()
    }

    /// Gives free workers to those who wait, as if all routes whose limit allows it had one queue.
    pub(super) fn serve_workers(&mut self, now: Instant) {
        while self.waiting > 0 && self.has_worker() {
            let Some(route) = self.next_for_worker(now) else { break };
            if !self.start_next(now, route) {
                break;
            }
            self.note_load(now, route);
        }
    }

    fn next_for_worker(&mut self, now: Instant) -> Option<RouteId> {
        let mut first = None;
        for route in (0..self.routes.len()).map(|index| RouteId(index as u32)) {
            let waits = !self.routes[route.index()].queue.is_empty();
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
    pub(super) fn look_at_workers(&mut self) {
        if !self.counts_workers() {
            return;
        }
        let lacks = |(index, route): (usize, &super::route_gate::Route)| {
            !route.queue.is_empty() && self.has_own_slot(RouteId(index as u32))
        };
        let is_free = self.has_worker();
        let lacks_worker = !is_free && self.routes.iter().enumerate().any(lacks);
        self.workers.ticks = self.workers.ticks.saturating_add(1);
        self.workers.short += u32::from(!is_free && self.waiting > 0);
        // What waits at the gate of sessions, or for an application that is down, no limit of a route
        // holds.
        let is_held =
            is_free && !self.away.is_on() && self.routes.iter().any(|route| !route.queue.is_empty());
        self.workers.held += u32::from(is_held);
        self.workers.calm = if lacks_worker { 0 } else { self.workers.calm.saturating_add(1) };
        self.follow_workers();
    }

    /// Lets routes of which nothing is learned have all workers at once, where a law finds how many
    /// these are: a search that begins with one request would keep the others idle for seconds.
    pub(super) fn begin_with_workers(&mut self) {
        let Some(ready) = self.workers.ready.filter(|_| self.params.finds_workers) else { return };
        for route in (0..self.routes.len()).map(|index| RouteId(index as u32)) {
            let is_learned = self.law.knowledge(route).is_some_and(|known| known.settled);
            if !is_learned && self.law.limit(route) < ready {
                self.law.set_capped(route, true);
                self.law.set_limit(route, ready);
                self.law.set_capped(route, self.workers.bound.is_some() || self.services.is_capped(route));
            }
        }
    }

    /// While requests lack workers, nothing is learned of limits, and where there are more workers
    /// than when that began the limits are higher by as much: else they would hide whether more
    /// workers complete more. A route of which nothing has been learned yet may have all of them: its
    /// limit is only where the search for one began, and would keep its visitors behind all others.
    fn follow_workers(&mut self) {
        let routes = || (0..self.routes.len()).map(|index| RouteId(index as u32));
        let Some(ready) = self.workers.ready.filter(|_| self.workers.binds()) else {
            if self.workers.bound.take().is_some() {
                for route in routes() {
                    self.law.set_capped(route, self.services.is_capped(route));
                }
            }
            return;
        };
        if self.workers.bound.is_none() {
            self.workers.bound = Some((ready, routes().map(|route| self.law.limit(route)).collect()));
        }
        let Some((then, limits)) = &self.workers.bound else { return };
        let share = (f64::from(ready) / f64::from((*then).max(1))).max(1.0);
        for route in routes() {
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

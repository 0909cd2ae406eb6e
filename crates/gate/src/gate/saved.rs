//! The gate saved as bytes, and restored.
//!
//! Everything that a later decision can rest on is saved. Left out are the decision records kept
//! for display, and counts for display alone: a restored gate shows none of before, and decides
//! alike.

use super::Gate;
use super::route_gate::Route;
use super::workers::POOLS_MAX;
use crate::api::{Params, Permit, RequestInfo};
use crate::kinds::KindGate;
use crate::requests::{Request, Stage};
use std::collections::VecDeque;
use suimon_model::persist::{Broken, Persist, Reader, Unsavable, Writer};
use suimon_model::{KindId, RequestId, RouteId, ServiceId};

/// About what a session takes, with some of its path.
const SESSION_BYTES: usize = 128;

suimon_model::saved_struct!(Route {
    mode,
    pool,
    queue,
    in_flight,
    pausing,
    orphaned,
    suspended,
    capacity,
    forecast,
    tick_begin,
    waited_at,
    recalled,
    before_fixed,
    counts,
    view_begin,
    view_rate,
    ended_at,
    view_service,
    pressed_views,
    took,
    took_alone,
} without { placed });

impl Gate {
    /// Returns all that is known, for [`Gate::restore`]. To be called when `poll_output` has
    /// nothing more to give.
    ///
    /// # Errors
    /// Returns [`Unsavable`] if a law in force cannot be saved.
    pub fn save(&self) -> Result<Vec<u8>, Unsavable> {
        debug_assert!(self.outputs.is_empty() && self.fresh.is_empty(), "outputs would be lost");
        // Room for about what it takes, as it is written under a shell's lock.
        let mut out = Writer::over(Vec::with_capacity(4096 + SESSION_BYTES * self.sessions.len()));
        self.routes.save(&mut out);
        self.meters.save(&mut out);
        self.inputs.save(&mut out);
        self.kind_inputs.save(&mut out);
        self.requests.save(&mut out);
        self.visits.save(&mut out);
        self.sessions.save(&mut out);
        self.law.save(&mut out)?;
        self.kinds.len().save(&mut out);
        self.kinds.iter().try_for_each(|kind| kind.save(&mut out))?;
        self.services.save(&mut out);
        self.rng.save(&mut out);
        self.trace.save(&mut out);
        self.waiting.save(&mut out);
        self.in_application.save(&mut out);
        self.next_tick.save(&mut out);
        self.pressure.save(&mut out);
        self.draining.save(&mut out);
        self.away.save(&mut out);
        self.workers.save(&mut out);
        Ok(out.into_bytes())
    }

    /// Returns the gate that was saved, and the tokens of what was in the application. `params` are
    /// those it had; it goes on exactly as the one that was saved would have.
    ///
    /// # Errors
    /// Returns [`Broken`] where the bytes are not those of a gate, or its parts contradict each
    /// other.
    pub fn restore(params: Params, bytes: &[u8]) -> Result<(Gate, Vec<Permit>), Broken> {
        let from = &mut Reader::new(bytes);
        let routes: Vec<Route> = Persist::load(from)?;
        let (meters, inputs, kind_inputs) =
            (Persist::load(from)?, Persist::load(from)?, Persist::load(from)?);
        let (requests, visits, sessions) = (Persist::load(from)?, Persist::load(from)?, Persist::load(from)?);
        let law = params.route_law.load(routes.len(), from)?;
        let kinds = (0..from.length()?).map(|_| KindGate::load(params.session_law, routes.len(), from));
        let mut gate = Gate {
            kinds: kinds.collect::<Result<_, _>>()?,
            services: Persist::load(from)?,
            rng: Persist::load(from)?,
            trace: Persist::load(from)?,
            waiting: Persist::load(from)?,
            in_application: Persist::load(from)?,
            next_tick: Persist::load(from)?,
            pressure: Persist::load(from)?,
            draining: Persist::load(from)?,
            handed_over: false,
            away: Persist::load(from)?,
            workers: Persist::load(from)?,
            requests,
            sessions,
            routes,
            meters,
            inputs,
            kind_inputs,
            visits,
            law,
            outputs: VecDeque::new(),
            records: VecDeque::new(),
            recorded: 0,
            fresh: vec![],
            params,
            shared: None,
        };
        from.finish()?;
        gate.away.count_again(&gate.requests);
        if let Some(why) = gate.contradiction() {
            return Err(from.broken(why));
        }
        gate.count_taken();
        let running = gate.requests.iter().filter(|(_, request)| request.stage.has_started());
        let tokens = running.map(|(request, _)| Permit { request }).collect();
        Ok((gate, tokens))
    }

    /// Returns every request in the gate, waiting or in the application.
    pub fn inside(&self) -> Vec<RequestInfo> {
        let inside = |(request, entry): (RequestId, &Request)| RequestInfo {
            request,
            route: entry.route,
            newcomer: entry.newcomer(),
        };
        self.requests.iter().map(inside).collect()
    }

    /// Returns what is impossible in a gate that strangers' bytes describe: every index must lead
    /// somewhere, and every count must be right.
    fn contradiction(&self) -> Option<&'static str> {
        let (routes, kinds) = (self.routes.len(), self.kinds.len());
        if [self.meters.len(), self.inputs.len()] != [routes; 2] || !self.visits.fits(routes, kinds) {
            return Some("its lists of routes or kinds differ in length");
        }
        let pools = self.workers.len();
        if !(1..=POOLS_MAX).contains(&pools) || self.routes.iter().any(|route| route.pool.index() >= pools) {
            return Some("its routes have pools that are not there");
        }
        if !self.sessions.are_sound(routes, kinds, &self.visits) {
            return Some("its sessions and the counts of them contradict each other");
        }
        if (0u32..).zip(&self.kinds).any(|(index, kind)| kind.id != KindId(index)) {
            return Some("its kinds of session are not in order");
        }
        if !self.requests_are_sound() {
            return Some("its requests and the queues contradict each other");
        }
        None
    }

    /// Counts the requests that are with each pool.
    fn count_taken(&mut self) {
        for route in &self.routes {
            self.workers[route.pool.index()].taken += route.in_flight;
        }
    }

    fn requests_are_sound(&self) -> bool {
        let mut in_flight = vec![(0, 0); self.routes.len()];
        let mut pausing = vec![0; self.routes.len()];
        let mut suspended = vec![0; self.routes.len()];
        let mut queued = vec![0; self.routes.len()];
        let mut in_line = vec![0; self.kinds.len()];
        let (mut awaiting, mut paused) = (0, 0);
        let mut paused_beyond = vec![0; self.services.gates.len()];
        for (id, request) in self.requests.iter() {
            let known = |kind: KindId| kind.index() < self.kinds.len();
            if request.route.index() >= self.routes.len() || !request.kind().is_none_or(known) {
                return false;
            }
            let RouteId(route) = request.route;
            let route = route as usize;
            let is_there = match (request.stage, request.newcomer()) {
                (Stage::AtSessionGate(key), Some(kind)) => {
                    in_line[kind.index()] += 1;
                    self.kinds[kind.index()].held.at(key).is_some_and(|held| held.request == id)
                }
                (Stage::AtSessionGate(_), None) => false,
                (Stage::AtRouteGate(key) | Stage::Returning(key), _) => {
                    queued[route] += 1;
                    self.routes[route].queue.get(key) == Some(id)
                }
                (Stage::AwaitsApplication(_), _) => {
                    awaiting += 1;
                    request.session().is_some() && self.away.awaits(id)
                }
                (Stage::Paused(until), _) => {
                    paused += 1;
                    let service = self.services.of(request.route).map_or(usize::MAX, ServiceId::index);
                    let Some(beyond) = paused_beyond.get_mut(service) else { return false };
                    *beyond += usize::from(request.beyond);
                    self.services.holds(request.route, until, id)
                }
                (Stage::InApplication(_), _) => {
                    in_flight[route].0 += 1;
                    true
                }
                (Stage::Suspended, _) => {
                    suspended[route] += 1;
                    true
                }
                (Stage::Orphaned(_), _) => {
                    in_flight[route].0 += 1;
                    in_flight[route].1 += 1;
                    true
                }
            };
            if !is_there {
                return false;
            }
            if request.stage.has_slot() {
                pausing[route] += request.pause_share.millionths();
            }
        }
        let flights = self.routes.iter().map(|route| (route.in_flight, route.orphaned));
        let waiting: usize = queued.iter().chain(&in_line).sum::<usize>() + awaiting + paused;
        flights.eq(in_flight.iter().copied())
            && self.routes.iter().map(|route| route.pausing).eq(pausing)
            && self.services.are_sound(
                &self.routes.iter().map(|route| (route.in_flight, route.pausing)).collect::<Vec<_>>(),
            )
            && self.routes.iter().map(|route| route.suspended).eq(suspended)
            && self.routes.iter().map(|route| route.queue.len()).eq(queued)
            && self.kinds.iter().map(|kind| kind.held.len()).eq(in_line)
            && self.waiting == waiting
            && self.services.paused() == paused
            && self.services.paused_beyond() == paused_beyond
            && self.away.len() == awaiting
            && self.in_application.count() == in_flight.iter().map(|(running, _)| running).sum::<usize>()
    }
}

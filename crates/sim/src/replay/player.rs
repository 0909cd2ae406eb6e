//! The gate of one run of a recording: it takes the recorded events, and remembers what happened to
//! its requests.

use super::figures::Counter;
use super::{ReplayError, STAYS_MAX};
use std::collections::BTreeMap;
use suimon_gate::{Gate, InLine, Output, Permit, Refusal};
use suimon_model::{Duration, Instant, Outcome, Record, RequestId, RouteId, SessionId};
use suimon_record::{Answers, Event, Header, Segment};

/// The assumed service time of a request that never started, if no other request gives one.
const SERVICE_ASSUMED: Duration = Duration::from_millis(100);

/// The gate of one run.
#[derive(Debug)]
pub(super) struct Player {
    pub(super) gate: Gate,
    tokens: BTreeMap<RequestId, Permit>,
    pub(super) answers: Answers,
    run: u64,
    pub(super) segment: u64,
    begun: Instant,
    pub(super) now: Instant,
    routes: usize,
    kinds: usize,
    /// For a what-if: the index in the list of each request in the gate, and the last service time
    /// of each route.
    pub(super) places: BTreeMap<RequestId, usize>,
    services: Vec<Option<Duration>>,
}

/// What happened to a request in the recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    pub(super) request: RequestId,
    pub(super) route: RouteId,
    pub(super) started: Option<Instant>,
    /// Its service time, or an assumed one if it never started; `None`: it had not ended at the
    /// end.
    pub(super) service: Option<Duration>,
    pub(super) outcome: Outcome,
    /// The session it began or belonged to.
    pub(super) session: Option<SessionId>,
    /// When its client disconnected, if it did.
    pub(super) left: Option<Instant>,
    pub(super) was_refused: bool,
    /// Since when it is suspended, and how long its client was waited for before that.
    paused: Option<Instant>,
    slept: Duration,
}

/// Why an event was not passed to the gate.
pub(super) enum Refused {
    Error(ReplayError),
    Differs(&'static str),
}

impl Player {
    pub(super) fn new(segment: &Segment<'_>) -> Result<Self, ReplayError> {
        let header = &segment.header;
        let (gate, tokens) =
            Gate::restore(header.params.clone(), &segment.snapshot).map_err(ReplayError::State)?;
        let snapshot = gate.snapshot(header.at);
        let (routes, kinds) = (snapshot.routes.len(), snapshot.kinds.len());
        Ok(Player {
            tokens: tokens.into_iter().map(|permit| (permit.request(), permit)).collect(),
            answers: Answers::default(),
            run: header.run,
            segment: header.segment,
            begun: header.at,
            now: header.at,
            places: BTreeMap::new(),
            services: vec![None; routes],
            routes,
            kinds,
            gate,
        })
    }

    pub(super) fn is_followed_by(&self, header: &Header) -> bool {
        self.run == header.run && self.segment + 1 == header.segment && self.begun <= header.at
    }

    /// Passes one event to the gate, and takes in its outputs.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        event: Event,
        counter: &mut Counter,
        mut stays: Option<&mut Vec<Stay>>,
        mut decided: impl FnMut(Record),
    ) -> Result<(), Refused> {
        let fits = event.fits(self.routes, self.kinds);
        fits.map_err(|why| Refused::Error(ReplayError::Impossible(why)))?;
        match event {
            Event::Route { is_mixed, mode, name } => {
                if is_mixed {
                    self.gate.declare_mixed_route(now, mode);
                } else {
                    self.gate.declare_route(now, mode);
                }
                self.routes += 1;
                self.services.push(None);
                if let Some(timeline) = &mut counter.timeline {
                    timeline.add_route(name.clone());
                }
                counter.declare(now, &self.gate, name);
            }
            Event::Renewed { route, mode, name } => {
                self.gate.renew_route(now, route, mode);
                self.services[route.index()] = None;
                if let Some(timeline) = &mut counter.timeline {
                    timeline.renew_route(route, name.clone());
                }
                counter.renew(now, &self.gate, route, name);
            }
            Event::LimitOf { route, other } => self.gate.begin_with_limit_of(route, other),
            Event::Kind { params, name } => {
                self.gate.declare_kind(now, params);
                self.kinds += 1;
                if let Some(timeline) = &mut counter.timeline {
                    timeline.add_kind(name);
                }
            }
            Event::Arrival(arrival) => {
                let request = self.gate.handle_arrival(now, arrival);
                counter.offered();
                if let Some(timeline) = &mut counter.timeline {
                    timeline.came(now, request, &arrival);
                }
                if let Some(stays) = stays.as_deref_mut() {
                    self.places.insert(request, stays.len());
                    remember(stays, Stay::new(request, arrival.route))?;
                }
            }
            Event::Departure(request) => {
                self.gate.handle_departure(now, request);
                if let Some(timeline) = &mut counter.timeline {
                    timeline.departed(request);
                }
                if let Some(stay) = self.stay_of(request, &mut stays) {
                    stay.left = Some(now);
                }
                if !self.tokens.contains_key(&request) && self.forget(request, &mut stays) {
                    counter.left();
                }
            }
            Event::End(request, outcome) => {
                let Some(permit) = self.tokens.remove(&request) else {
                    return Err(Refused::Differs("a request ended that was not let in here"));
                };
                self.gate.handle_end(now, permit, outcome);
                if let Some(timeline) = &mut counter.timeline {
                    timeline.ended(now, request, outcome);
                }
                self.note_end(now, request, outcome, &mut stays);
            }
            Event::Timeout => self.gate.handle_timeout(now),
            Event::Drain => self.gate.drain(now),
            Event::Application(is_up) => self.gate.handle_application(now, is_up),
            Event::Adopt(adoption) => self.gate.adopt(now, &adoption),
            Event::Services(services) => {
                if let Some(timeline) = &mut counter.timeline {
                    timeline.services =
                        services.services.iter().map(|service| service.name.clone()).collect();
                }
                self.gate.declare_services(now, *services);
            }
            Event::Lag(lag) => self.gate.handle_lag(lag),
            Event::Workers(pool, ready) => self.gate.handle_workers(now, pool, ready),
            Event::Nodes(before, now_there) => self.gate.handle_nodes(now, before, now_there),
            Event::PoolOf(route, pool) => self.gate.give_to_pool(now, route, pool),
            Event::Contact(kind, place) => {
                self.gate.handle_contact(now, kind, place);
                if let Some(timeline) = &mut counter.timeline {
                    timeline.polled();
                }
            }
            Event::Command(kind, command) => _ = self.gate.handle_command(now, kind, command),
            Event::SessionSignal(session, word) => self.gate.handle_session_signal(now, session, word),
            Event::Suspend(request, client_time) => {
                self.gate.handle_suspend(now, request, client_time);
                if let Some(stay) = self.stay_of(request, &mut stays) {
                    stay.slept += client_time;
                    stay.paused.get_or_insert(now);
                }
            }
            Event::Resume(request) => _ = self.gate.handle_resume(now, request),
            Event::Paused(request, paused) => self.gate.handle_paused(request, paused),
        }
        while let Some(output) = self.gate.poll_output() {
            self.answers.fold(&output);
            counter.answered(now, &output);
            if let Some(timeline) = &mut counter.timeline {
                timeline.answered(now, &output);
            }
            let begun = if let Output::Wait(waits) = &output { waits.begun } else { None };
            match output {
                Output::Start(start) => {
                    if let Some(stay) = self.stay_of(start.request, &mut stays) {
                        stay.started = Some(now);
                        stay.session = start.session.map(|(_, session)| session);
                    }
                    self.tokens.insert(start.request, start.permit);
                }
                Output::Resumed(request) => {
                    if let Some(stay) = self.stay_of(request, &mut stays) {
                        stay.slept += stay.paused.take().map_or(Duration::ZERO, |paused| now.since(paused));
                    }
                }
                Output::Refuse(Refusal { request, .. }) | Output::Wait(InLine { request, .. }) => {
                    if let Some(stay) = self.stay_of(request, &mut stays) {
                        stay.was_refused = true;
                        // The request only asked for its session to begin.
                        if begun.is_some() {
                            (stay.session, stay.started) = (begun, Some(now));
                        }
                    }
                    self.forget(request, &mut stays);
                }
                Output::Decided(record) => decided(record),
            }
        }
        Ok(())
    }

    fn note_end(
        &mut self,
        now: Instant,
        request: RequestId,
        outcome: Outcome,
        stays: &mut Option<&mut Vec<Stay>>,
    ) {
        let Some(stay) = self.stay_of(request, stays) else { return };
        stay.outcome = outcome;
        let until = stay.paused.unwrap_or(now);
        stay.service = stay.started.map(|started| until.since(started).saturating_sub(stay.slept));
        let (route, service) = (stay.route, stay.service);
        if service.is_some() {
            self.services[route.index()] = service;
        }
        self.places.remove(&request);
    }

    /// Notes that a request that never started has ended. Returns whether it was in the gate.
    fn forget(&mut self, request: RequestId, stays: &mut Option<&mut Vec<Stay>>) -> bool {
        let Some(stays) = stays else { return true };
        let Some(place) = self.places.remove(&request) else { return false };
        let route = stays[place].route.index();
        let any = || self.services.iter().flatten().next().copied();
        stays[place].service = Some(self.services[route].or_else(any).unwrap_or(SERVICE_ASSUMED));
        true
    }

    fn stay_of<'a>(&self, request: RequestId, stays: &'a mut Option<&mut Vec<Stay>>) -> Option<&'a mut Stay> {
        let place = self.places.get(&request)?;
        stays.as_deref_mut()?.get_mut(*place)
    }

    /// Remembers the requests that are in the gate at the beginning.
    pub(super) fn remember_all(&self, stays: &mut Vec<Stay>) -> Result<(), ReplayError> {
        for inside in self.gate.inside() {
            let started = self.tokens.contains_key(&inside.request).then_some(self.now);
            let stay = Stay { started, ..Stay::new(inside.request, inside.route) };
            remember(stays, stay).map_err(|_| ReplayError::TooMany)?;
        }
        Ok(())
    }
}

impl Stay {
    fn new(request: RequestId, route: RouteId) -> Self {
        let outcome = Outcome::Completed;
        Stay {
            request,
            route,
            started: None,
            service: None,
            outcome,
            session: None,
            left: None,
            was_refused: false,
            paused: None,
            slept: Duration::ZERO,
        }
    }
}

fn remember(stays: &mut Vec<Stay>, stay: Stay) -> Result<(), Refused> {
    if stays.len() >= STAYS_MAX {
        return Err(Refused::Error(ReplayError::TooMany));
    }
    stays.push(stay);
    Ok(())
}

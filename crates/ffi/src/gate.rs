//! The gate alone, told the time by its caller.

use crate::code::Fault;
use crate::output::{self, GateOutput};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use suimon_gate::{Arrival, Gate, KindParams, Params, Permit, RouteMode};
use suimon_model::{Instant, RequestId};
use suimon_record::{Answers, Event, Header, Segment};
use suimon_settings::Settings;

/// Outputs that wait to be polled; with more of them nothing else is taken.
const OUTPUTS_MAX: usize = 65_536;

/// A gate, the permits of what is in the application, and what it has answered.
#[derive(Debug)]
pub(crate) struct OwnedGate {
    gate: Gate,
    permits: BTreeMap<RequestId, Permit>,
    outputs: VecDeque<GateOutput>,
    answers: Answers,
    routes: usize,
    kinds: usize,
}

impl OwnedGate {
    /// Returns a gate with the settings in `text`, which knows no routes and no kinds yet.
    pub(crate) fn open(text: &str, now: Instant) -> Result<OwnedGate, Fault> {
        let settings =
            Settings::parse("settings", text).map_err(|faults| Fault::invalid(faults.to_string()))?;
        Ok(OwnedGate::new(Gate::new(settings.proxy.gate, now), Vec::new(), now))
    }

    /// Returns the gate whose state a segment of a recording begins with.
    pub(crate) fn restore(bytes: &[u8]) -> Result<OwnedGate, Fault> {
        let segment = Segment::read(bytes).map_err(|damage| Fault::invalid(damage.to_string()))?;
        let Header { params, at, .. } = segment.header;
        let restored = Gate::restore(params, &segment.snapshot);
        let (gate, permits) = restored.map_err(|broken| {
            Fault::invalid(format!("the gate's state, at byte {}: {}", broken.at, broken.why))
        })?;
        Ok(OwnedGate::new(gate, permits, at))
    }

    fn new(gate: Gate, permits: Vec<Permit>, now: Instant) -> Self {
        let snapshot = gate.snapshot(now);
        OwnedGate {
            permits: permits.into_iter().map(|permit| (permit.request(), permit)).collect(),
            outputs: VecDeque::new(),
            answers: Answers::default(),
            routes: snapshot.routes.len(),
            kinds: snapshot.kinds.len(),
            gate,
        }
    }

    /// Returns the gate as [`OwnedGate::restore`] takes it.
    pub(crate) fn save(&self, now: Instant) -> Result<Vec<u8>, Fault> {
        let state = self.gate.save().map_err(|_| Fault::invalid("a law in force cannot be saved"))?;
        let header = Header {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            at: now,
            params: Params::clone(self.gate.params()),
            ..Header::default()
        };
        Ok(suimon_record::begin(&header, &state))
    }

    /// Declares a route, and returns its number.
    pub(crate) fn route(&mut self, now: Instant, mode: RouteMode) -> Result<u32, Fault> {
        let declared = self.routes as u32;
        self.apply(now, Event::Route { is_mixed: false, mode, name: String::new() })?;
        Ok(declared)
    }

    /// Declares a kind of session, and returns its number.
    pub(crate) fn kind(&mut self, now: Instant, params: KindParams) -> Result<u32, Fault> {
        let declared = self.kinds as u32;
        self.apply(now, Event::Kind { params, name: String::new() })?;
        Ok(declared)
    }

    /// Takes in a request, and returns its number.
    pub(crate) fn arrive(&mut self, now: Instant, arrival: Arrival) -> Result<u64, Fault> {
        self.check(&Event::Arrival(arrival))?;
        let RequestId(request) = self.gate.handle_arrival(now, arrival);
        self.take();
        Ok(request)
    }

    /// Does what a recorded event says.
    pub(crate) fn apply(&mut self, now: Instant, event: Event) -> Result<(), Fault> {
        self.check(&event)?;
        match event {
            Event::Route { is_mixed, mode, name: _ } => {
                if is_mixed {
                    self.gate.declare_mixed_route(now, mode);
                } else {
                    self.gate.declare_route(now, mode);
                }
                self.routes += 1;
            }
            Event::Kind { params, name: _ } => {
                self.gate.declare_kind(now, params);
                self.kinds += 1;
            }
            Event::End(request, outcome) => {
                let permit = self.permits.remove(&request).ok_or(Fault::Unknown)?;
                self.gate.handle_end(now, permit, outcome);
            }
            Event::Renewed { route, mode, name: _ } => self.gate.renew_route(now, route, mode),
            Event::LimitOf { route, other } => self.gate.begin_with_limit_of(route, other),
            Event::Arrival(arrival) => _ = self.gate.handle_arrival(now, arrival),
            Event::Departure(request) => self.gate.handle_departure(now, request),
            Event::Timeout => self.gate.handle_timeout(now),
            Event::Drain => self.gate.drain(now),
            Event::Contact(kind, place) => _ = self.gate.handle_contact(now, kind, place),
            Event::Command(kind, command) => _ = self.gate.handle_command(now, kind, command),
            Event::SessionSignal(session, word) => self.gate.handle_session_signal(now, session, word),
            Event::Suspend(request, client_time) => _ = self.gate.handle_suspend(now, request, client_time),
            Event::Resume(request) => _ = self.gate.handle_resume(now, request),
            Event::Paused(request, paused) => self.gate.handle_paused(request, paused),
            Event::Application(is_up) => self.gate.handle_application(now, is_up),
            Event::Adopt(adoption) => self.gate.adopt(now, &adoption),
            Event::Services(services) => self.gate.declare_services(now, *services),
            Event::Lag(lag) => self.gate.handle_lag(lag),
            Event::Workers(pool, ready) => self.gate.handle_workers(now, pool, ready),
            Event::PoolOf(route, pool) => self.gate.give_to_pool(now, route, pool),
            Event::Nodes(before, now_there) => self.gate.handle_nodes(now, before, now_there),
        }
        self.take();
        Ok(())
    }

    fn check(&self, event: &Event) -> Result<(), Fault> {
        if self.outputs.len() >= OUTPUTS_MAX {
            return Err(Fault::invalid("there are too many outputs; poll them first"));
        }
        event.fits(self.routes, self.kinds).map_err(Fault::invalid)
    }

    fn take(&mut self) {
        while let Some(output) = self.gate.poll_output() {
            self.answers.fold(&output);
            let (output, permit) = GateOutput::of(output);
            // Whoever ends the request names it by its number.
            self.permits.extend(permit.map(|permit| (permit.request(), permit)));
            self.outputs.push_back(output);
        }
    }

    /// Returns the next thing that should happen.
    pub(crate) fn poll(&mut self) -> Option<GateOutput> {
        self.outputs.pop_front()
    }

    /// Returns when [`Event::Timeout`] is due, if nothing else happens before.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.gate.poll_timeout()
    }

    /// Returns everything that can be seen of it.
    pub(crate) fn state(&self, now: Instant) -> Value {
        output::state(&self.gate.snapshot(now), now)
    }

    /// Returns the hash of all decisions so far.
    pub(crate) fn trace(&self) -> u64 {
        self.gate.trace().value()
    }

    /// Returns the hash of all answers since it was opened or restored.
    pub(crate) fn answers(&self) -> u64 {
        self.answers.value()
    }
}

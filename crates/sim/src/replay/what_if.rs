//! Another gate, told of the visitors of a recording. The rules by which what follows from its answers is made up are in the
//! documentation of the module above.

use super::{Counter, DECISIONS_MAX, Figures, Replay, ReplayError, Stay, check};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use suimon_gate::{Arrival, Gate, Membership, Output, Params, Token};
use suimon_model::{Ending, Instant, Record, RequestId, SessionId};
use suimon_record::{Event, Header, Part, Segment};

/// A recording played to a gate of other settings, after it was played to the recorded one.
#[derive(Debug)]
pub struct WhatIf<'a> {
    /// What was decided, up to [`DECISIONS_MAX`].
    pub decisions: Vec<Record>,
    /// How much was decided.
    pub decided: u64,
    /// Hash of all decisions of the last run.
    pub trace: u64,
    params: Params,
    /// Every request of the recording, in the order in which they came.
    stays: &'a [Stay],
    /// How many of them have come.
    come: usize,
    counter: Counter,
    other: Option<Other>,
}

/// The gate of one run, and what it answered to each request.
#[derive(Debug)]
struct Other {
    gate: Gate,
    run: u64,
    segment: u64,
    now: Instant,
    routes: usize,
    kinds: usize,
    /// Requests that are still in the recorded gate, by what they are called there.
    recorded: BTreeMap<RequestId, usize>,
    /// Requests that are in this gate, by what they are called here.
    here: BTreeMap<RequestId, usize>,
    twins: BTreeMap<usize, Twin>,
    ends: BinaryHeap<Reverse<(Instant, usize)>>,
    /// What became of sessions that began in the recording.
    sessions: BTreeMap<SessionId, Fate>,
    /// Requests that come as soon as this one is let in.
    held: BTreeMap<usize, Vec<(usize, Arrival)>>,
}

/// A request of the recording, as this gate has it.
#[derive(Debug)]
enum Twin {
    /// It has not come: its session waits to begin.
    Held,
    Waiting(RequestId),
    /// In the application. `as_recorded`: started at the recorded moment, so that it ends at the recorded moment too.
    Running {
        token: Token,
        as_recorded: bool,
    },
}

/// What became of a session that began in the recording.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// The request that would begin it waits.
    Waits(usize),
    LetIn(SessionId),
    TurnedAway,
}

impl<'a> WhatIf<'a> {
    /// Returns a gate of these settings that has been told nothing. `recorded` is the recording, played to its end by a
    /// [`Replay::for_what_if`].
    pub fn new(params: Params, recorded: &'a Replay) -> Self {
        let stays = recorded.stays.as_deref().unwrap_or_default();
        WhatIf {
            decisions: Vec::new(),
            decided: 0,
            trace: 0,
            params,
            stays,
            come: 0,
            counter: Counter::default(),
            other: None,
        }
    }

    /// Plays one segment, of those that were played to the recorded gate, in the same order.
    ///
    /// # Errors
    /// Returns [`ReplayError`] where it cannot be played on.
    pub fn play(&mut self, segment: &Segment<'_>) -> Result<(), ReplayError> {
        self.enter(segment)?;
        for part in segment.parts() {
            let Part::Block(block) = part? else { break };
            for event in block.events() {
                let (now, event) = event?;
                self.tell(now, event)?;
            }
            if let Some(other) = &self.other {
                self.counter.until(other.now);
                self.trace = other.gate.trace().value();
            }
        }
        Ok(())
    }

    /// Returns what visitors had of it.
    pub fn figures(&self) -> Figures {
        self.counter.figures()
    }

    fn enter(&mut self, segment: &Segment<'_>) -> Result<(), ReplayError> {
        let header = &segment.header;
        if let Some(other) = self.other.as_mut().filter(|other| other.is_followed_by(header)) {
            other.segment = header.segment;
            return Ok(());
        }
        let (mut gate, tokens) =
            Gate::load(header.params.clone(), &segment.snapshot).map_err(ReplayError::State)?;
        let inside = gate.inside();
        gate.adopt(self.params.clone(), header.at);
        self.counter.enter(&gate, header);
        let snapshot = gate.snapshot(header.at);
        let mut other = Other {
            gate,
            run: header.run,
            segment: header.segment,
            now: header.at,
            routes: snapshot.routes.len(),
            kinds: snapshot.kinds.len(),
            recorded: BTreeMap::new(),
            here: BTreeMap::new(),
            twins: BTreeMap::new(),
            ends: BinaryHeap::new(),
            sessions: BTreeMap::new(),
            held: BTreeMap::new(),
        };
        let mut tokens: BTreeMap<_, _> = tokens.into_iter().map(|token| (token.request(), token)).collect();
        for inside in inside {
            let place = self.come;
            self.come += 1;
            let twin = match tokens.remove(&inside.request) {
                Some(token) => Twin::Running { token, as_recorded: true },
                None => Twin::Waiting(inside.request),
            };
            other.recorded.insert(inside.request, place);
            other.here.insert(inside.request, place);
            other.twins.insert(place, twin);
            let session = self.stays.get(place).and_then(|stay| stay.session);
            if let Some(session) = session.filter(|_| inside.is_newcomer) {
                other.sessions.insert(session, Fate::Waits(place));
            }
        }
        self.other = Some(other);
        Ok(())
    }

    fn tell(&mut self, now: Instant, event: Event) -> Result<(), ReplayError> {
        let Some(mut other) = self.other.take() else { return Ok(()) };
        let told = self.tell_other(&mut other, now, event);
        self.other = Some(other);
        told
    }

    fn tell_other(&mut self, other: &mut Other, now: Instant, event: Event) -> Result<(), ReplayError> {
        check(&event, other.routes, other.kinds)?;
        self.end_until(other, now);
        other.now = other.now.max(now);
        match event {
            Event::Route { mode, name } => {
                other.gate.declare_route(now, mode);
                other.routes += 1;
                self.counter.declare(now, &other.gate, name);
            }
            Event::Kind { params, name: _ } => {
                other.gate.declare_kind(now, params);
                other.kinds += 1;
            }
            Event::Arrival(arrival) => self.arrival(other, now, arrival),
            Event::Departure(request) => self.departure(other, now, request),
            Event::End(request, ending) => self.recorded_end(other, now, request, ending),
            Event::Timeout => other.gate.handle_timeout(now),
            Event::Drain => other.gate.drain(now),
        }
        self.take_in(other, now);
        Ok(())
    }

    /// Lets requests end whose time has come, other than in the recording.
    fn end_until(&mut self, other: &mut Other, now: Instant) {
        while let Some(Reverse((at, place))) =
            other.ends.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            other.ends.pop();
            let ending = self.stays.get(place).map_or(Ending::Completed, |stay| stay.ending);
            other.end(at, place, ending);
            self.take_in(other, at);
        }
    }

    fn arrival(&mut self, other: &mut Other, now: Instant, arrival: Arrival) {
        let place = self.come;
        self.come += 1;
        let Some(stay) = self.stays.get(place) else { return };
        if !stay.was_refused {
            other.recorded.insert(stay.request, place);
        }
        match (arrival.session, stay.session) {
            (Some(Membership::Newcomer(_)), Some(session)) => {
                other.sessions.insert(session, Fate::Waits(place));
            }
            (Some(Membership::Member { session, .. }), _) => match other.sessions.get(&session).copied() {
                None => {}
                Some(Fate::Waits(begins)) => {
                    other.twins.insert(place, Twin::Held);
                    other.held.entry(begins).or_default().push((place, arrival));
                    return;
                }
                Some(Fate::LetIn(session)) => return self.come(other, now, place, arrival.of(session)),
                Some(Fate::TurnedAway) => return self.counter.did_not_come(),
            },
            _ => {}
        }
        self.come(other, now, place, arrival);
    }

    fn come(&mut self, other: &mut Other, now: Instant, place: usize, arrival: Arrival) {
        self.counter.offered();
        let request = other.gate.handle_arrival(now, arrival);
        other.here.insert(request, place);
        other.twins.insert(place, Twin::Waiting(request));
    }

    fn departure(&mut self, other: &mut Other, now: Instant, request: RequestId) {
        let Some(place) = other.recorded.get(&request).copied() else { return };
        if self.stays.get(place).is_some_and(|stay| stay.started.is_none()) {
            other.recorded.remove(&request);
        }
        match other.twins.get(&place) {
            None => {}
            Some(Twin::Held) => {
                other.twins.remove(&place);
                self.counter.did_not_come();
            }
            Some(Twin::Running { token, .. }) => other.gate.handle_departure(now, token.request()),
            Some(Twin::Waiting(here)) => {
                let here = *here;
                other.gate.handle_departure(now, here);
                other.here.remove(&here);
                other.twins.remove(&place);
                self.counter.left();
                self.turn_away(other, place);
            }
        }
    }

    fn recorded_end(&mut self, other: &mut Other, now: Instant, request: RequestId, ending: Ending) {
        let Some(place) = other.recorded.remove(&request) else { return };
        if let Some(Twin::Running { as_recorded: true, .. }) = other.twins.get(&place) {
            other.end(now, place, ending);
        }
    }

    /// Takes in what the gate answers, and what follows from it.
    fn take_in(&mut self, other: &mut Other, now: Instant) {
        while let Some(output) = other.gate.poll_output() {
            self.counter.answered(now, &output);
            match output {
                Output::Start(start) => {
                    let Some(place) = other.here.get(&start.request).copied() else { continue };
                    let Some(stay) = self.stays.get(place) else { continue };
                    let as_recorded = stay.started == Some(now);
                    other.twins.insert(place, Twin::Running { token: start.token, as_recorded });
                    if let Some(service) = stay.service.filter(|_| !as_recorded) {
                        other.ends.push(Reverse((now + service, place)));
                    }
                    if let (Some(recorded), Some((_, session))) = (stay.session, start.session) {
                        self.let_in(other, now, place, recorded, session);
                    }
                }
                Output::Refuse(refusal) => {
                    let Some(place) = other.here.remove(&refusal.request) else { continue };
                    other.twins.remove(&place);
                    self.turn_away(other, place);
                }
                Output::Decided(record) => {
                    self.decided += 1;
                    if self.decisions.len() < DECISIONS_MAX {
                        self.decisions.push(record);
                    }
                }
            }
        }
    }

    /// A session of the recording begins here; whoever waited for that comes now.
    fn let_in(
        &mut self,
        other: &mut Other,
        now: Instant,
        place: usize,
        recorded: SessionId,
        session: SessionId,
    ) {
        if !matches!(other.sessions.get(&recorded), Some(Fate::Waits(begins)) if *begins == place) {
            return;
        }
        other.sessions.insert(recorded, Fate::LetIn(session));
        for (later, arrival) in other.held.remove(&place).unwrap_or_default() {
            if matches!(other.twins.get(&later), Some(Twin::Held)) {
                self.come(other, now, later, arrival.of(session));
            }
        }
    }

    /// If the request would have begun a session, that does not begin: nothing more comes of it.
    fn turn_away(&mut self, other: &mut Other, place: usize) {
        let Some(session) = self.stays.get(place).and_then(|stay| stay.session) else { return };
        if !matches!(other.sessions.get(&session), Some(Fate::Waits(begins)) if *begins == place) {
            return;
        }
        other.sessions.insert(session, Fate::TurnedAway);
        for (later, _) in other.held.remove(&place).unwrap_or_default() {
            if other.twins.remove(&later).is_some() {
                self.counter.did_not_come();
            }
        }
    }
}

impl Other {
    fn is_followed_by(&self, header: &Header) -> bool {
        self.run == header.run && self.segment + 1 == header.segment
    }

    fn end(&mut self, now: Instant, place: usize, ending: Ending) {
        if let Some(Twin::Running { token, .. }) = self.twins.remove(&place) {
            self.here.remove(&token.request());
            self.gate.handle_end(now, token, ending);
        }
    }
}

/// The same request, of another session.
trait Of {
    fn of(self, session: SessionId) -> Self;
}

impl Of for Arrival {
    fn of(mut self, other: SessionId) -> Self {
        if let Some(Membership::Member { session, .. }) = &mut self.session {
            *session = other;
        }
        self
    }
}

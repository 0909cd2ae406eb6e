//! Another gate that gets the visitors of a recording. The parent module documents the rules for
//! what follows from its answers.

use super::player::Stay;
use super::{Counter, DECISIONS_MAX, Figures, Replay, ReplayError};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use suimon_gate::{Adoption, Arrival, Gate, InLine, Membership, Output, Params, Permit, Refusal};
use suimon_model::{Duration, Instant, KindId, Outcome, Record, RequestId, SessionId};
use suimon_record::{Event, Header, Part, Segment};

/// A recording played to a gate with other settings, after it was played to the recorded one.
#[derive(Debug)]
pub struct WhatIf<'a> {
    /// Decisions, up to [`DECISIONS_MAX`].
    pub decisions: Vec<Record>,
    /// The number of all decisions.
    pub decided: u64,
    /// Hash of all decisions of the last run.
    pub trace: u64,
    with: With<'a>,
    /// Every request of the recording, in the order of arrival.
    stays: &'a [Stay],
    /// How many of them have been reached, and how many of those were due to arrive.
    reached: usize,
    asked: u64,
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
    /// Requests that are still in the recorded gate, by their ids there.
    recorded: BTreeMap<RequestId, usize>,
    /// Requests that are in this gate, by their ids here.
    here: BTreeMap<RequestId, usize>,
    counterparts: BTreeMap<usize, Counterpart>,
    /// What happens at other moments than recorded; numbered, so that events of one moment keep
    /// their order.
    later: BTreeMap<(Instant, u64), Later>,
    numbered: u64,
    /// Requests that arrived at other moments than recorded, so that their clients disconnect at
    /// other moments, too.
    on_own_time: BTreeSet<usize>,
    /// What happened to sessions that began in the recording.
    sessions: BTreeMap<SessionId, Fate>,
    /// Later requests of sessions that have not begun here, and when they arrived.
    pending: BTreeMap<SessionId, Vec<(Instant, usize, Arrival)>>,
    /// Sessions that are turned away here, and when they began in the recording.
    turned_away: VecDeque<(KindId, SessionId, Instant)>,
    /// Newcomers who were not admitted in the recording, and the sessions of those admitted here,
    /// for which the recording has no requests.
    unknown: BTreeMap<usize, KindId>,
    idle: VecDeque<(KindId, SessionId, Instant)>,
}

/// What happens at another moment than recorded.
#[derive(Clone, Copy, Debug)]
enum Later {
    End(usize),
    Come { place: usize, arrival: Arrival, shift: Duration },
    Leave(usize),
}

/// A request of the recording, in this gate.
#[derive(Debug)]
enum Counterpart {
    Waiting(RequestId),
    /// In the application. `as_recorded`: started at the recorded moment, and so ends at the
    /// recorded moment.
    Running {
        permit: Permit,
        as_recorded: bool,
    },
}

/// What happened here to a session that began in the recording.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// The request with this index would begin it, and waits.
    Waits(usize, KindId),
    /// The session's id here, and how much later it began.
    LetIn(SessionId, Duration),
    TurnedAway,
}

/// The settings to try in place of recorded ones; see [`WhatIf::new`].
type InPlaceOf<'a> = dyn Fn(&Params) -> Result<Params, String> + 'a;
struct With<'a>(Box<InPlaceOf<'a>>);

impl fmt::Debug for With<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("With(..)")
    }
}

impl With<'_> {
    /// Returns the settings to try in place of those in force in the recording since `at`.
    fn in_place_of(&self, recorded: &Params, segment: u64, at: Instant) -> Result<Params, ReplayError> {
        (self.0)(recorded).map_err(|why| ReplayError::Misfit { segment, at, why })
    }
}

impl<'a> WhatIf<'a> {
    /// Returns a gate with other settings that has played nothing yet. `with` maps the settings in
    /// force in the recording to those to try, or says why the two cannot be combined. `recorded`
    /// is the recording, played to its end by a [`Replay::for_what_if`].
    pub fn new(with: impl Fn(&Params) -> Result<Params, String> + 'a, recorded: &'a Replay) -> Self {
        let stays = recorded.stays.as_deref().unwrap_or_default();
        WhatIf {
            decisions: Vec::new(),
            decided: 0,
            trace: 0,
            with: With(Box::new(with)),
            stays,
            reached: 0,
            asked: 0,
            counter: Counter::default(),
            other: None,
        }
    }

    /// Plays one segment. All segments that were played to the recorded gate must follow, in the
    /// same order.
    ///
    /// # Errors
    /// Returns [`ReplayError`] if it cannot continue. The figures are useless then, as the settings
    /// were tried on a part of the recording only.
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

    /// Returns the results for the visitors.
    pub fn figures(&self) -> Figures {
        let figures = self.counter.figures();
        Figures { not_come: self.asked.saturating_sub(figures.offered), ..figures }
    }

    fn enter(&mut self, segment: &Segment<'_>) -> Result<(), ReplayError> {
        let header = &segment.header;
        if let Some(other) = self.other.as_mut().filter(|other| other.is_followed_by(header)) {
            other.segment = header.segment;
            return Ok(());
        }
        let (mut gate, tokens) =
            Gate::restore(header.params.clone(), &segment.snapshot).map_err(ReplayError::State)?;
        let inside = gate.inside();
        let params = self.with.in_place_of(&header.params, header.segment, header.at)?;
        gate.adopt(header.at, &params.into());
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
            counterparts: BTreeMap::new(),
            later: BTreeMap::new(),
            numbered: 0,
            on_own_time: BTreeSet::new(),
            sessions: BTreeMap::new(),
            pending: BTreeMap::new(),
            turned_away: VecDeque::new(),
            unknown: BTreeMap::new(),
            idle: VecDeque::new(),
        };
        let mut tokens: BTreeMap<_, _> =
            tokens.into_iter().map(|permit| (permit.request(), permit)).collect();
        for inside in inside {
            let place = self.reached;
            self.reached += 1;
            let counterpart = match tokens.remove(&inside.request) {
                Some(permit) => Counterpart::Running { permit, as_recorded: true },
                None => Counterpart::Waiting(inside.request),
            };
            other.recorded.insert(inside.request, place);
            other.here.insert(inside.request, place);
            other.counterparts.insert(place, counterpart);
            if let (Some(kind), Some(stay)) = (inside.newcomer, self.stays.get(place)) {
                other.expect(place, kind, stay);
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
        event.fits(other.routes, other.kinds).map_err(ReplayError::Impossible)?;
        self.do_until(other, now);
        other.now = other.now.max(now);
        match event {
            Event::Route { is_mixed, mode, name } => {
                if is_mixed {
                    other.gate.declare_mixed_route(now, mode);
                } else {
                    other.gate.declare_route(now, mode);
                }
                other.routes += 1;
                self.counter.declare(now, &other.gate, name);
            }
            // This gate may still have a request there, although the recorded gate had none.
            Event::Renewed { route, mode, name } => {
                other.gate.renew_route(now, route, mode);
                self.counter.renew(now, &other.gate, route, name);
            }
            Event::LimitOf { route, other: from } => other.gate.begin_with_limit_of(route, from),
            Event::Kind { params, name: _ } => {
                other.gate.declare_kind(now, params);
                other.kinds += 1;
            }
            Event::Arrival(arrival) => self.arrival(other, now, arrival),
            Event::Departure(request) => self.departure(other, now, request),
            Event::End(request, outcome) => self.recorded_end(other, now, request, outcome),
            Event::Timeout => other.gate.handle_timeout(now),
            Event::Drain => other.gate.drain(now),
            Event::Application(is_up) => other.gate.handle_application(now, is_up),
            Event::Services(services) => other.gate.declare_services(now, *services),
            Event::Lag(lag) => other.gate.handle_lag(lag),
            Event::Workers(pool, ready) => other.gate.handle_workers(now, pool, ready),
            Event::Nodes(before, now_there) => other.gate.handle_nodes(now, before, now_there),
            Event::PoolOf(route, pool) => other.gate.give_to_pool(now, route, pool),
            Event::Adopt(adoption) => {
                let params = self.with.in_place_of(&adoption.params, other.segment, now)?;
                other.gate.adopt(now, &Adoption { params, ..*adoption });
            }
            Event::Contact(kind, place) => _ = other.gate.handle_contact(now, kind, place),
            Event::Command(kind, command) => _ = other.gate.handle_command(now, kind, command),
            Event::SessionSignal(session, word) => other.gate.handle_session_signal(now, session, word),
            Event::Suspend(request, client_time) => {
                if let Some(here) = other.as_recorded(request) {
                    other.gate.handle_suspend(now, here, client_time);
                }
            }
            Event::Paused(request, paused) => {
                if let Some(here) = other.as_recorded(request) {
                    other.gate.handle_paused(here, paused);
                }
            }
            Event::Resume(request) => {
                if let Some(here) = other.as_recorded(request) {
                    other.gate.handle_resume(now, here);
                }
            }
        }
        self.take_in(other, now);
        Ok(())
    }

    /// Does what is due by `now` but not in the recording.
    fn do_until(&mut self, other: &mut Other, now: Instant) {
        while let Some(entry) = other.later.first_entry().filter(|entry| entry.key().0 <= now) {
            let at = entry.key().0;
            match entry.remove() {
                Later::End(place) => {
                    let outcome = self.stays.get(place).map_or(Outcome::Completed, |stay| stay.outcome);
                    other.end(at, place, outcome);
                }
                Later::Come { place, arrival, shift } => {
                    other.on_own_time.insert(place);
                    if let Some(left) = self.stays.get(place).and_then(|stay| stay.left) {
                        other.put_off((left + shift).max(at), Later::Leave(place));
                    }
                    self.come(other, at, place, arrival);
                }
                Later::Leave(place) => self.leave(other, at, place),
            }
            self.take_in(other, at);
        }
    }

    fn arrival(&mut self, other: &mut Other, now: Instant, arrival: Arrival) {
        let place = self.reached;
        self.reached += 1;
        self.asked += 1;
        let Some(stay) = self.stays.get(place) else { return };
        if !stay.was_refused {
            other.recorded.insert(stay.request, place);
        }
        match arrival.session {
            None => {}
            Some(
                Membership::Newcomer(kind)
                | Membership::WithoutLine(kind)
                | Membership::Drawing { kind, .. }
                | Membership::Placed { kind, .. }
                | Membership::Entering { kind, .. },
            ) => other.expect(place, kind, stay),
            Some(Membership::Member { session, .. }) => match other.sessions.get(&session).copied() {
                // It began before the recording, and has the same id here.
                None => {}
                Some(Fate::Waits(..) | Fate::TurnedAway) => {
                    other.pending.entry(session).or_default().push((now, place, arrival));
                    return;
                }
                Some(Fate::LetIn(session, Duration::ZERO)) => {
                    return self.come(other, now, place, of(session, arrival));
                }
                Some(Fate::LetIn(session, shift)) => {
                    let arrival = of(session, arrival);
                    return other.put_off(now + shift, Later::Come { place, arrival, shift });
                }
            },
        }
        self.come(other, now, place, arrival);
    }

    fn come(&mut self, other: &mut Other, now: Instant, place: usize, arrival: Arrival) {
        self.counter.offered();
        let request = other.gate.handle_arrival(now, arrival);
        other.here.insert(request, place);
        other.counterparts.insert(place, Counterpart::Waiting(request));
    }

    fn departure(&mut self, other: &mut Other, now: Instant, request: RequestId) {
        let Some(place) = other.recorded.get(&request).copied() else { return };
        if self.stays.get(place).is_some_and(|stay| stay.started.is_none()) {
            other.recorded.remove(&request);
        }
        if !other.on_own_time.contains(&place) {
            self.leave(other, now, place);
        }
    }

    fn leave(&mut self, other: &mut Other, now: Instant, place: usize) {
        match other.counterparts.get(&place) {
            None => {}
            Some(Counterpart::Running { permit, .. }) => other.gate.handle_departure(now, permit.request()),
            Some(Counterpart::Waiting(here)) => {
                let here = *here;
                other.gate.handle_departure(now, here);
                other.here.remove(&here);
                other.counterparts.remove(&place);
                self.counter.left();
                self.turn_away(other, now, place);
            }
        }
    }

    fn recorded_end(&mut self, other: &mut Other, now: Instant, request: RequestId, outcome: Outcome) {
        let Some(place) = other.recorded.remove(&request) else { return };
        if let Some(Counterpart::Running { as_recorded: true, .. }) = other.counterparts.get(&place) {
            other.end(now, place, outcome);
        }
    }

    /// Takes in the gate's outputs, and does what follows from them.
    fn take_in(&mut self, other: &mut Other, now: Instant) {
        while let Some(output) = other.gate.poll_output() {
            self.counter.answered(now, &output);
            let begun = if let Output::Wait(waits) = &output { waits.begun } else { None };
            match output {
                Output::Start(start) => {
                    let Some(place) = other.here.get(&start.request).copied() else { continue };
                    let Some(stay) = self.stays.get(place) else { continue };
                    let as_recorded = stay.started == Some(now);
                    other
                        .counterparts
                        .insert(place, Counterpart::Running { permit: start.permit, as_recorded });
                    if let Some(service) = stay.service.filter(|_| !as_recorded) {
                        other.put_off(now + service, Later::End(place));
                    }
                    if let Some((_, session)) = start.session {
                        other.let_in(now, place, stay, session);
                    }
                }
                Output::Refuse(Refusal { request, .. }) | Output::Wait(InLine { request, .. }) => {
                    let Some(place) = other.here.remove(&request) else { continue };
                    other.counterparts.remove(&place);
                    if let Some((session, stay)) = begun.zip(self.stays.get(place)) {
                        other.let_in(now, place, stay, session);
                        continue;
                    }
                    self.turn_away(other, now, place);
                }
                Output::Resumed(_) => {}
                Output::Decided(record) => {
                    self.decided += 1;
                    if self.decisions.len() < DECISIONS_MAX {
                        self.decisions.push(record);
                    }
                }
            }
        }
    }

    /// If the request would have begun a session, that session does not begin; another one may take
    /// its requests over.
    fn turn_away(&mut self, other: &mut Other, now: Instant, place: usize) {
        other.unknown.remove(&place);
        let Some(Stay { session: Some(session), started: Some(started), .. }) = self.stays.get(place) else {
            return;
        };
        let Some(Fate::Waits(begins, kind)) = other.sessions.get(session).copied() else { return };
        if begins != place {
            return;
        }
        other.sessions.insert(*session, Fate::TurnedAway);
        match take_first(&mut other.idle, kind) {
            Some((here, since)) => other.follow(now, *session, here, since.since(*started)),
            None => other.turned_away.push_back((kind, *session, *started)),
        }
    }
}

impl Other {
    fn is_followed_by(&self, header: &Header) -> bool {
        self.run == header.run && self.segment + 1 == header.segment
    }

    /// Returns this gate's id of a request, if it is in the application here since its recorded
    /// start.
    fn as_recorded(&self, request: RequestId) -> Option<RequestId> {
        match self.counterparts.get(self.recorded.get(&request)?)? {
            Counterpart::Running { permit, as_recorded: true } => Some(permit.request()),
            Counterpart::Running { .. } | Counterpart::Waiting(_) => None,
        }
    }

    fn put_off(&mut self, until: Instant, what: Later) {
        self.numbered += 1;
        self.later.insert((until, self.numbered), what);
    }

    /// Notes a newcomer.
    fn expect(&mut self, place: usize, kind: KindId, stay: &Stay) {
        match stay.session {
            Some(session) => _ = self.sessions.insert(session, Fate::Waits(place, kind)),
            None => _ = self.unknown.insert(place, kind),
        }
    }

    /// Notes that a request started; if it was a newcomer's, it began `session`.
    fn let_in(&mut self, now: Instant, place: usize, stay: &Stay, session: SessionId) {
        if let Some(kind) = self.unknown.remove(&place) {
            return match take_first(&mut self.turned_away, kind) {
                Some((recorded, started)) => self.follow(now, recorded, session, now.since(started)),
                None => self.idle.push_back((kind, session, now)),
            };
        }
        let Some(recorded) = stay.session else { return };
        if matches!(self.sessions.get(&recorded), Some(Fate::Waits(begins, _)) if *begins == place) {
            let shift = stay.started.map_or(Duration::ZERO, |started| now.since(started));
            self.follow(now, recorded, session, shift);
        }
    }

    /// Makes `session` send the requests of `recorded` from now on, later by `shift`.
    fn follow(&mut self, now: Instant, recorded: SessionId, session: SessionId, shift: Duration) {
        self.sessions.insert(recorded, Fate::LetIn(session, shift));
        for (at, place, arrival) in self.pending.remove(&recorded).unwrap_or_default() {
            let arrival = of(session, arrival);
            self.put_off((at + shift).max(now), Later::Come { place, arrival, shift });
        }
    }

    fn end(&mut self, now: Instant, place: usize, outcome: Outcome) {
        if let Some(Counterpart::Running { permit, .. }) = self.counterparts.remove(&place) {
            self.on_own_time.remove(&place);
            self.here.remove(&permit.request());
            self.gate.handle_end(now, permit, outcome);
        }
    }
}

/// Removes and returns the first entry of `kind`.
fn take_first(
    list: &mut VecDeque<(KindId, SessionId, Instant)>,
    kind: KindId,
) -> Option<(SessionId, Instant)> {
    let index = list.iter().position(|(other, ..)| *other == kind)?;
    list.remove(index).map(|(_, session, at)| (session, at))
}

/// Returns the same request for another session.
fn of(other: SessionId, mut arrival: Arrival) -> Arrival {
    if let Some(Membership::Member { session, .. }) = &mut arrival.session {
        *session = other;
    }
    arrival
}

//! A recording played to a real gate: the same events, so the same decisions, bit for bit; and what other settings would
//! have decided.
//!
//! [`Replay`] is the first. It is fed with the segments of a recording, in order, and holds the gate against the marks in
//! them: hashes of what the gate in the gateway had decided and answered until there.
//!
//! [`WhatIf`] is the second: another gate is told of the same visitors. Its answers differ, so what followed from the
//! recorded ones has to be made up, and by these rules alone:
//!
//! - Requests come when they came; those of a session that is let in later than it was come later by as much.
//! - A session that is turned away asks for nothing more. Where somebody is let in instead who was turned away in the
//!   recording, of whom nothing is known, that visitor does what the one turned away did: the one longest ago first.
//! - A request that is started at another time takes as long as it took. One that was never started takes as long as the
//!   last one of its route had when it was turned away.
//! - A client leaves when it left (later, if it came later), if it is still there. Nobody leaves who stayed.
//! - Time passes for the gate at the recorded moments, every 20 ms or so.
//!
//! So a what-if tells what a gate would have done *with that traffic*: it cannot know how much quicker or slower the application
//! would have been, nor who would have come again. With the settings that were recorded it is the recording, exactly.

mod figures;
mod timeline;
mod what_if;

pub use figures::{Figures, RouteFigures};
pub use timeline::{Bin, CHANGES_MAX, Change, Moment, Of, RouteLine, Timeline, Visitors};
pub use what_if::WhatIf;

use figures::Counter;
use std::collections::BTreeMap;
use std::fmt;
use suimon_gate::{Gate, InLine, Output, Refusal, Token};
use suimon_model::state::Broken;
use suimon_model::{Duration, Ending, Instant, Record, RequestId, RouteId, SessionId};
use suimon_record::{Answers, Block, Damage, Event, Header, Mark, Part, Segment};

/// Decisions kept for the report; of a longer recording the last are only counted.
pub const DECISIONS_MAX: usize = 100_000;
/// Requests remembered for a what-if: about half a gigabyte.
pub const STAYS_MAX: usize = 10_000_000;
/// More routes, or kinds, than any gateway has.
const ROUTES_MAX: usize = 12_000;
const KINDS_MAX: usize = 64;
/// What a request took that was never started, where no other was before it.
const SERVICE_ASSUMED: Duration = Duration::from_millis(100);

/// A recording being played, or played to its end.
#[derive(Debug, Default)]
pub struct Replay {
    /// Segments played.
    pub segments: u64,
    /// Runs of a gateway that they are of.
    pub runs: u64,
    /// Calls made.
    pub events: u64,
    /// Marks that the gate agreed with.
    pub marks: u64,
    /// Time from the first event to the last of each run, together.
    pub span: Duration,
    /// When the first segment began, since 1970.
    pub began: Duration,
    /// What was decided, up to [`DECISIONS_MAX`].
    pub decisions: Vec<Record>,
    /// How much was decided.
    pub decided: u64,
    /// Hash of all decisions of the last run.
    pub trace: u64,
    /// Where decisions begin to differ from those recorded; nothing is played after it.
    pub divergence: Option<Divergence>,
    /// The program that recorded, where it is another version than this one.
    pub other_program: Option<String>,
    counter: Counter,
    player: Option<Player>,
    /// For a what-if: every request, in the order in which they came.
    stays: Option<Vec<Stay>>,
}

/// Where decisions begin to differ.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// The segment.
    pub segment: u64,
    /// They were still the same then, since the run's origin ...
    pub after: Instant,
    /// ... and not any more then.
    pub until: Instant,
    /// What differs.
    pub what: &'static str,
}

/// Why a recording cannot be played.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplayError {
    /// The file is damaged.
    Damage(Damage),
    /// The state a segment begins with is not one that a gate can have.
    State(Broken),
    /// The gate of these settings cannot be told what is recorded: not a recording of a gate.
    Impossible(&'static str),
    /// There are more requests than a what-if can remember.
    TooMany,
}

/// The gate of one run.
#[derive(Debug)]
struct Player {
    gate: Gate,
    tokens: BTreeMap<RequestId, Token>,
    answers: Answers,
    run: u64,
    segment: u64,
    begun: Instant,
    now: Instant,
    routes: usize,
    kinds: usize,
    /// For a what-if: where in the list a request is that is in the gate, and what the last one of each route took.
    places: BTreeMap<RequestId, usize>,
    services: Vec<Option<Duration>>,
}

/// What became of a request in the recording.
#[derive(Clone, Copy, Debug)]
struct Stay {
    request: RequestId,
    route: RouteId,
    started: Option<Instant>,
    /// What it took; where it was never started, what it is taken to have taken; `None`: it was not over at the end.
    service: Option<Duration>,
    ending: Ending,
    /// The session it began or belonged to.
    session: Option<SessionId>,
    /// When its client left, if it did.
    left: Option<Instant>,
    was_refused: bool,
    /// Since when it has been paused, and the time before that in which its client was waited for.
    paused: Option<Instant>,
    slept: Duration,
}

impl Replay {
    /// Returns a replay that has been told nothing.
    pub fn new() -> Self {
        Replay::default()
    }

    /// Returns one that remembers what a what-if needs.
    pub fn for_what_if() -> Self {
        Replay { stays: Some(Vec::new()), ..Replay::default() }
    }

    /// Returns one that keeps what happened over time.
    pub fn for_timeline() -> Self {
        let mut replay = Replay::default();
        replay.counter.timeline = Some(Timeline::default());
        replay
    }

    /// Returns what happened over time, if it was to be kept.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.counter.timeline.as_ref()
    }

    /// Plays one segment. Those of a run follow one another; where one is missing, the gate goes on with the state the
    /// segment begins with.
    ///
    /// # Errors
    /// Returns [`ReplayError`] where it cannot be played on; what was played before stays.
    pub fn play(&mut self, segment: &Segment<'_>) -> Result<(), ReplayError> {
        if self.divergence.is_some() {
            return Ok(());
        }
        self.enter(segment)?;
        for part in segment.parts() {
            let Part::Block(block) = part.map_err(ReplayError::Damage)? else { break };
            self.play_block(&block)?;
            if self.divergence.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Returns what visitors had of it.
    pub fn figures(&self) -> Figures {
        self.counter.figures()
    }

    /// Begins a segment: goes on from the one before, or from the state in this one.
    fn enter(&mut self, segment: &Segment<'_>) -> Result<(), ReplayError> {
        let header = &segment.header;
        if self.segments == 0 {
            self.began = header.since_1970;
        }
        self.segments += 1;
        if header.program != env!("CARGO_PKG_VERSION") {
            self.other_program = Some(header.program.clone());
        }
        if let Some(player) = self.player.as_mut().filter(|player| player.is_followed_by(header)) {
            player.segment = header.segment;
            player.answers = Answers::default();
            if player.gate.save().as_ref() != Ok(&segment.snapshot) {
                self.diverge("the state of the gate");
            }
            return Ok(());
        }
        self.leave();
        let player = Player::new(segment)?;
        self.runs += 1;
        self.counter.enter(&player.gate, header);
        if let Some(timeline) = &mut self.counter.timeline {
            timeline.enter(&player.gate, header, self.segments == 1);
        }
        if let Some(stays) = &mut self.stays {
            player.remember_all(stays)?;
        }
        self.player = Some(player);
        let begin = self.places_inside();
        if let Some(player) = &mut self.player {
            player.places = begin;
        }
        Ok(())
    }

    /// Returns where in the list the requests are that were in the gate when a segment began: at its end, in order.
    fn places_inside(&self) -> BTreeMap<RequestId, usize> {
        let (Some(player), Some(stays)) = (&self.player, &self.stays) else { return BTreeMap::new() };
        let inside = player.gate.inside();
        let first = stays.len() - inside.len();
        inside.iter().enumerate().map(|(index, inside)| (inside.request, first + index)).collect()
    }

    /// Ends a run: counts how long it was.
    fn leave(&mut self) {
        let Some(player) = self.player.take() else { return };
        self.counter.leave(player.now);
    }

    fn play_block(&mut self, block: &Block<'_>) -> Result<(), ReplayError> {
        let Some(player) = &mut self.player else { return Ok(()) };
        let after = player.now;
        for event in block.events() {
            let (now, event) = event.map_err(ReplayError::Damage)?;
            self.span += now.since(player.now);
            player.now = player.now.max(now);
            self.events += 1;
            if let Some(timeline) = &mut self.counter.timeline {
                timeline.pass(self.span.as_secs_f64(), now, &player.gate);
            }
            let stays = self.stays.as_mut();
            let told = player.tell(now, event, &mut self.counter, stays, |record| {
                self.decided += 1;
                if self.decisions.len() < DECISIONS_MAX {
                    self.decisions.push(record);
                }
            });
            match told {
                Ok(()) => {}
                Err(Refused::Error(error)) => return Err(error),
                Err(Refused::Differs(what)) => {
                    self.divergence =
                        Some(Divergence { segment: player.segment, after, until: player.now, what });
                    return Ok(());
                }
            }
        }
        self.counter.until(player.now);
        if let Some(timeline) = &mut self.counter.timeline {
            timeline.look(player.now, &player.gate);
        }
        self.trace = player.gate.trace().value();
        let Mark { trace, answers, events: _ } = block.mark;
        if player.gate.trace().value() != trace {
            self.diverge_after(after, "what was decided");
        } else if player.answers.value() != answers {
            self.diverge_after(after, "who was let in or refused");
        } else {
            self.marks += 1;
        }
        Ok(())
    }

    fn diverge(&mut self, what: &'static str) {
        if let Some(player) = &self.player {
            self.diverge_after(player.now, what);
        }
    }

    fn diverge_after(&mut self, after: Instant, what: &'static str) {
        if let Some(player) = &self.player {
            self.divergence = Some(Divergence { segment: player.segment, after, until: player.now, what });
        }
    }
}

/// Why a gate was not told of an event.
enum Refused {
    Error(ReplayError),
    Differs(&'static str),
}

impl Player {
    fn new(segment: &Segment<'_>) -> Result<Self, ReplayError> {
        let header = &segment.header;
        let (gate, tokens) =
            Gate::restore(header.params.clone(), &segment.snapshot).map_err(ReplayError::State)?;
        let snapshot = gate.snapshot(header.at);
        let (routes, kinds) = (snapshot.routes.len(), snapshot.kinds.len());
        Ok(Player {
            tokens: tokens.into_iter().map(|token| (token.request(), token)).collect(),
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

    fn is_followed_by(&self, header: &Header) -> bool {
        self.run == header.run && self.segment + 1 == header.segment && self.begun <= header.at
    }

    /// Tells the gate of one event, and takes in what it answers.
    fn tell(
        &mut self,
        now: Instant,
        event: Event,
        counter: &mut Counter,
        mut stays: Option<&mut Vec<Stay>>,
        mut decided: impl FnMut(Record),
    ) -> Result<(), Refused> {
        check(&event, self.routes, self.kinds).map_err(Refused::Error)?;
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
            Event::End(request, ending) => {
                let Some(token) = self.tokens.remove(&request) else {
                    return Err(Refused::Differs("a request ended that was not let in here"));
                };
                self.gate.handle_end(now, token, ending);
                if let Some(timeline) = &mut counter.timeline {
                    timeline.ended(now, request, ending);
                }
                self.note_end(now, request, ending, &mut stays);
            }
            Event::Timeout => self.gate.handle_timeout(now),
            Event::Drain => self.gate.drain(now),
            Event::Application(is_up) => self.gate.handle_application(now, is_up),
            Event::Contact(kind, place) => {
                self.gate.handle_contact(now, kind, place);
                if let Some(timeline) = &mut counter.timeline {
                    timeline.polled();
                }
            }
            Event::Command(kind, command) => _ = self.gate.handle_command(now, kind, command),
            Event::Word(session, word) => self.gate.handle_word(now, session, word),
            Event::Pause(request, client_time) => {
                self.gate.handle_pause(now, request, client_time);
                if let Some(stay) = self.stay_of(request, &mut stays) {
                    stay.slept += client_time;
                    stay.paused.get_or_insert(now);
                }
            }
            Event::Resume(request) => _ = self.gate.handle_resume(now, request),
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
                    self.tokens.insert(start.request, start.token);
                }
                Output::Resumed(request) => {
                    if let Some(stay) = self.stay_of(request, &mut stays) {
                        stay.slept += stay.paused.take().map_or(Duration::ZERO, |paused| now.since(paused));
                    }
                }
                Output::Refuse(Refusal { request, .. }) | Output::Wait(InLine { request, .. }) => {
                    if let Some(stay) = self.stay_of(request, &mut stays) {
                        stay.was_refused = true;
                        // It asked for nothing but that its session begins.
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
        ending: Ending,
        stays: &mut Option<&mut Vec<Stay>>,
    ) {
        let Some(stay) = self.stay_of(request, stays) else { return };
        stay.ending = ending;
        let until = stay.paused.unwrap_or(now);
        stay.service = stay.started.map(|started| until.since(started).saturating_sub(stay.slept));
        let (route, service) = (stay.route, stay.service);
        if service.is_some() {
            self.services[route.index()] = service;
        }
        self.places.remove(&request);
    }

    /// Takes note that a request is gone that was never started. Returns whether it was there.
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

    /// Remembers the requests that are in the gate when it begins.
    fn remember_all(&self, stays: &mut Vec<Stay>) -> Result<(), ReplayError> {
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
        let ending = Ending::Completed;
        Stay {
            request,
            route,
            started: None,
            service: None,
            ending,
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

/// Succeeds if a gate with so many routes and kinds can be told of this.
fn check(event: &Event, routes: usize, kinds: usize) -> Result<(), ReplayError> {
    use suimon_gate::Membership::{Drawing, Member, Newcomer, Passing, Placed};
    let impossible = |why| Err(ReplayError::Impossible(why));
    match event {
        Event::Route { .. } if routes >= ROUTES_MAX => impossible("there are more routes than there can be"),
        Event::Renewed { route, .. } if route.index() >= routes => {
            impossible("a number that no route has is given to another")
        }
        Event::LimitOf { route, other } if route.index().max(other.index()) >= routes => {
            impossible("a route that was not declared begins with a limit, or gives one")
        }
        Event::Kind { .. } if kinds >= KINDS_MAX => impossible("there are more kinds than there can be"),
        Event::Arrival(arrival) if arrival.route.index() >= routes => {
            impossible("a request is for a route that was not declared")
        }
        Event::Arrival(arrival) => match arrival.session {
            Some(
                Newcomer(kind)
                | Passing(kind)
                | Drawing { kind, .. }
                | Placed { kind, .. }
                | Member { kind, .. },
            ) if kind.index() >= kinds => impossible("a session is of a kind that was not declared"),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

impl From<Damage> for ReplayError {
    fn from(damage: Damage) -> Self {
        ReplayError::Damage(damage)
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Damage(damage) => damage.fmt(f),
            ReplayError::State(broken) => write!(
                f,
                "the gate's state at its beginning is none that this build knows ({broken} of the state): it was written by another build, or changed"
            ),
            ReplayError::Impossible(why) => write!(f, "{why}: it is no recording of a gate"),
            ReplayError::TooMany => {
                write!(
                    f,
                    "it has more than {STAYS_MAX} requests, which is more than can be compared at once: name one of its segments"
                )
            }
        }
    }
}

impl std::error::Error for ReplayError {}

#[cfg(test)]
mod tests;

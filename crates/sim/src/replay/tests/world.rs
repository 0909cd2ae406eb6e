//! A gate with random visitors, and its recording.

use std::collections::BTreeMap;
use suimon_gate::{Arrival, Gate, KindParams, Membership, Output, Params, Permit, RouteMode, SessionSignal};
use suimon_line::{Command, Lane, Position};
use suimon_model::{
    Duration, Failure, Instant, KindId, Outcome, RequestId, Rng, RouteId, SessionId, seconds,
};
use suimon_record::{Encoder, Event, Header, SegmentEnd};

const VISITORS: usize = 60;
pub(super) const ROUTES: u32 = 3;

/// A gate with visitors, and its recording. Service times grow with the number of requests in the
/// application.
pub(super) struct World {
    pub(super) gate: Gate,
    pub(super) now: Instant,
    rng: Rng,
    header: Header,
    encoder: Encoder,
    segments: Vec<Vec<u8>>,
    open: Vec<u8>,
    running: Vec<(Instant, Permit, usize)>,
    waiting: BTreeMap<RequestId, (Instant, usize)>,
    visitors: Vec<Visitor>,
    pub(super) waited: u64,
    /// Whether there is a line, and how many visitors got a position and were admitted by one.
    has_line: bool,
    pub(super) told: u64,
    pub(super) came_in: u64,
}

#[derive(Clone, Copy)]
struct Visitor {
    session: Option<SessionId>,
    position: Option<Position>,
    steps_left: u32,
    /// Instant of the next request; `None` while one is under way.
    next: Option<Instant>,
}

impl World {
    pub(super) fn new(params: Params, seed: u64) -> Self {
        World::of_kind(params, KindParams::default(), seed)
    }

    pub(super) fn of_kind(params: Params, kind: KindParams, seed: u64) -> Self {
        let now = Instant::from_nanos(1_000);
        let mut gate = Gate::new(params.clone(), now);
        let has_line = kind.line.is_some();
        gate.declare_kind(now, kind);
        let header = Header {
            program: env!("CARGO_PKG_VERSION").to_string(),
            run: 1,
            segment: 1,
            at: now,
            params,
            kinds: vec!["visit".to_string()],
            ..Header::default()
        };
        let open = suimon_record::begin(&header, &gate.save().unwrap());
        let mut rng = Rng::new(seed);
        let visitor = |_| {
            let next = Some(now + seconds(rng.between(0.0, 2.0)));
            Visitor { session: None, position: None, steps_left: 5, next }
        };
        let visitors = (0..VISITORS).map(visitor).collect();
        let mut world = World {
            gate,
            now,
            rng,
            header,
            encoder: Encoder::default(),
            segments: vec![],
            open,
            running: vec![],
            waiting: BTreeMap::new(),
            visitors,
            waited: 0,
            has_line,
            told: 0,
            came_in: 0,
        };
        for route in 0..ROUTES {
            let name = format!("GET /{route}");
            world.header.routes.push(name.clone());
            world.push(&Event::Route { is_mixed: false, mode: RouteMode::Enforce, name });
            world.gate.declare_route(now, RouteMode::Enforce);
        }
        world
    }

    pub(super) fn push(&mut self, event: &Event) {
        self.encoder.push(self.now, event);
    }

    pub(super) fn play(&mut self, duration: f64) {
        for _ in 0..duration as u32 {
            let until = self.now + seconds(1.0);
            while self.now < until {
                self.now += seconds(self.rng.between(0.0005, 0.008));
                self.step();
            }
            self.seal();
        }
    }

    fn step(&mut self) {
        if self.gate.poll_timeout().is_some_and(|due| due <= self.now) || self.rng.chance(0.2) {
            self.push(&Event::Timeout);
            self.gate.handle_timeout(self.now);
            self.settle();
        }
        if self.has_line && self.rng.chance(0.002) {
            let command = if self.rng.chance(0.3) { Command::Pause } else { Command::Move };
            self.push(&Event::Command(KindId(0), command));
            self.gate.handle_command(self.now, KindId(0), command);
            self.settle();
        }
        while let Some(index) = self.running.iter().position(|(end, _, _)| *end <= self.now) {
            let (_, permit, visitor) = self.running.swap_remove(index);
            let ending = if self.rng.chance(0.03) {
                Outcome::Failed(Failure::ServerError)
            } else {
                Outcome::Completed
            };
            self.push(&Event::End(permit.request(), ending));
            self.gate.handle_end(self.now, permit, ending);
            self.speak(visitor);
            self.go_on(visitor);
            self.settle();
        }
        let impatient: Vec<_> =
            self.waiting.iter().filter(|(_, (leaves, _))| *leaves <= self.now).map(|(r, _)| *r).collect();
        for request in impatient {
            let (_, visitor) = self.waiting.remove(&request).unwrap();
            self.push(&Event::Departure(request));
            self.gate.handle_departure(self.now, request);
            self.visitors[visitor].session = None;
            self.go_on(visitor);
            self.settle();
        }
        for visitor in 0..self.visitors.len() {
            if self.visitors[visitor].next.is_some_and(|next| next <= self.now) {
                self.visitors[visitor].next = None;
                self.ask(visitor);
            }
        }
    }

    fn ask(&mut self, visitor: usize) {
        let kind = KindId(0);
        let ends = self.visitors[visitor].steps_left == 1;
        let Visitor { session, position, .. } = self.visitors[visitor];
        let session = match (session, position) {
            (Some(session), _) => Membership::Member { kind, session, leased: true, ends },
            (None, Some(position)) if self.rng.chance(0.4) => {
                self.push(&Event::Contact(kind, position));
                self.gate.handle_contact(self.now, kind, position);
                self.visitors[visitor].next = Some(self.now + seconds(0.3));
                return self.settle();
            }
            (None, Some(position)) => Membership::Placed {
                kind,
                position,
                session: session_of(position),
                draws: self.rng.chance(0.8),
            },
            (None, None) if self.has_line => match self.rng.below(10) {
                0 => Membership::WithoutLine(kind),
                1 => Membership::Drawing { kind, lane: Lane::Invited },
                _ => Membership::Newcomer(kind),
            },
            (None, None) => Membership::Newcomer(kind),
        };
        let route = RouteId(self.rng.below(ROUTES as usize) as u32);
        let session = if self.rng.chance(0.05) { None } else { Some(session) };
        let arrival = Arrival { route, session };
        self.push(&Event::Arrival(arrival));
        let request = self.gate.handle_arrival(self.now, arrival);
        let leaves = self.now + seconds(self.rng.between(3.0, 12.0));
        self.waiting.insert(request, (leaves, visitor));
        self.settle();
    }

    /// The application sends a signal about a session now and then.
    fn speak(&mut self, visitor: usize) {
        let Some(session) = self.visitors[visitor].session.filter(|_| self.has_line) else { return };
        let word = match self.rng.below(30) {
            0 => SessionSignal::Ends,
            1 => SessionSignal::Checkout,
            2 => SessionSignal::Weighs(3),
            _ => return,
        };
        self.push(&Event::SessionSignal(session, word));
        self.gate.handle_session_signal(self.now, session, word);
    }

    fn go_on(&mut self, visitor: usize) {
        let think = seconds(self.rng.exponential(0.8));
        let state = &mut self.visitors[visitor];
        state.next = Some(self.now + think);
        state.steps_left = state.steps_left.saturating_sub(1);
        if state.steps_left == 0 {
            *state = Visitor { session: None, position: None, steps_left: 5, ..*state };
        }
    }

    pub(super) fn settle(&mut self) {
        while let Some(output) = self.gate.poll_output() {
            self.encoder.answer(&output);
            match output {
                Output::Start(start) => {
                    let (_, visitor) = self.waiting.remove(&start.request).unwrap();
                    if let Some((_, session)) = start.session {
                        self.visitors[visitor].session = Some(session);
                        self.came_in += u64::from(self.visitors[visitor].position.take().is_some());
                    }
                    self.waited += u64::from(start.waited > Duration::ZERO);
                    let crowded = 1.0 + self.running.len() as f64 / 6.0;
                    let service = seconds(self.rng.lognormal(0.12, 0.6) * crowded);
                    self.running.push((self.now + service, start.permit, visitor));
                }
                Output::Refuse(refusal) => {
                    let (_, visitor) = self.waiting.remove(&refusal.request).unwrap();
                    self.visitors[visitor].next = Some(self.now + refusal.retry_after);
                }
                Output::Wait(waits) => {
                    let (_, visitor) = self.waiting.remove(&waits.request).unwrap();
                    self.told += 1;
                    self.visitors[visitor].position = waits.position;
                    self.visitors[visitor].next = Some(self.now + seconds(0.5));
                }
                Output::Resumed(_) | Output::Decided(_) => {}
            }
        }
        if self.encoder.is_full() {
            self.seal();
        }
    }

    pub(super) fn seal(&mut self) {
        let content = self.encoder.seal(self.gate.trace(), Vec::new());
        self.open.extend(suimon_record::events(&content));
    }

    /// Begins another segment.
    pub(super) fn rotate(&mut self) {
        self.open.extend(suimon_record::end(SegmentEnd::Continued));
        self.header.segment += 1;
        self.header.at = self.now;
        self.header.params = self.gate.params().clone();
        self.encoder.restart();
        let next = suimon_record::begin(&self.header, &self.gate.save().unwrap());
        self.segments.push(std::mem::replace(&mut self.open, next));
    }

    pub(super) fn end(mut self) -> Vec<Vec<u8>> {
        self.seal();
        self.open.extend(suimon_record::end(SegmentEnd::Closed));
        self.segments.push(self.open);
        self.segments
    }
}

/// The session that a position begins.
pub(super) fn session_of(position: Position) -> SessionId {
    SessionId(1 << 40 | (position.lane.index() as u64) << 32 | position.number)
}

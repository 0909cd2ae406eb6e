//! What the gate promises, whatever happens in whatever order.

use super::*;
use crate::api::{
    Adoption, InLine, KindMode, PausePlace, QueueOrder, ServiceParams, Services, SessionEnds, Start,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use suimon_control::{
    AdmissionInputs, Amount, DegradationMode, PaperRouteParams, RouteLawKind, ServiceWish, SessionLawKind,
};
use suimon_line::{Command, Lane, Position, PositionStatus};
use suimon_model::{Failure, Limit, PoolId};

mod adopt;
mod away;
mod budget;
mod cold;
mod counts;
mod leases;
mod line_ends;
mod lines;
mod nodes;
mod patience;
mod queues;
mod renewed;
mod services;
mod shared;
mod words;
mod workers;

const ROUTES: u32 = 3;
const KINDS: u32 = 3;
/// The second route has the last one.
const POOLS: u32 = 2;
/// The kind that has a line.
const LINED: KindId = KindId(2);

/// One thing that happens to a gate. Numbers pick among what is there.
#[derive(Clone, Debug)]
enum Event {
    Newcomer { route: u32, kind: u32 },
    Member { route: u32, pick: usize, ends: bool },
    Stranger { route: u32, session: u64 },
    Sessionless { route: u32 },
    Drawing { route: u32, lane: Lane },
    Passing { route: u32, kind: u32 },
    Placed { route: u32, pick: usize, draws: bool },
    Entering { route: u32, pick: usize },
    Contact { pick: usize },
    Command(Command),
    Application(bool),
    Word { pick: usize, word: SessionSignal },
    End { pick: usize, how: u8 },
    Pause { pick: usize, millis: u8 },
    PausedInside { pick: usize, millis: u8 },
    Resume { pick: usize },
    Leave { pick: usize },
    Adopt { route: u32, limit: u32, cores: u32, off: bool },
    Services { ceiling: bool, pause: u64 },
    Workers { pool: u32, ready: Option<u32> },
    Pass { milliseconds: u32 },
}

fn event() -> impl Strategy<Value = Event> {
    let route = || 0..ROUTES;
    prop_oneof![
        4 => (route(), 0..KINDS).prop_map(|(route, kind)| Event::Newcomer { route, kind }),
        4 => (route(), any::<usize>(), prop::bool::weighted(0.1)).prop_map(|(route, pick, ends)| Event::Member { route, pick, ends }),
        1 => (route(), any::<u64>()).prop_map(|(route, session)| Event::Stranger { route, session }),
        1 => route().prop_map(|route| Event::Sessionless { route }),
        1 => (route(), lane()).prop_map(|(route, lane)| Event::Drawing { route, lane }),
        1 => (route(), 0..KINDS).prop_map(|(route, kind)| Event::Passing { route, kind }),
        4 => (route(), any::<usize>(), any::<bool>()).prop_map(|(route, pick, draws)| Event::Placed { route, pick, draws }),
        2 => (route(), any::<usize>()).prop_map(|(route, pick)| Event::Entering { route, pick }),
        1 => any::<usize>().prop_map(|pick| Event::Contact { pick }),
        1 => command().prop_map(Event::Command),
        1 => prop::bool::weighted(0.7).prop_map(Event::Application),
        1 => (any::<usize>(), word()).prop_map(|(pick, word)| Event::Word { pick, word }),
        6 => (any::<usize>(), 0u8..4).prop_map(|(pick, how)| Event::End { pick, how }),
        2 => (any::<usize>(), any::<u8>()).prop_map(|(pick, millis)| Event::Pause { pick, millis }),
        2 => (any::<usize>(), any::<u8>()).prop_map(|(pick, millis)| Event::PausedInside { pick, millis }),
        2 => any::<usize>().prop_map(|pick| Event::Resume { pick }),
        1 => any::<usize>().prop_map(|pick| Event::Leave { pick }),
        1 => (route(), 0u32..4, 1u32..9, any::<bool>())
            .prop_map(|(route, limit, cores, off)| Event::Adopt { route, limit, cores, off }),
        1 => (any::<bool>(), 0u64..300).prop_map(|(ceiling, pause)| Event::Services { ceiling, pause }),
        1 => (0..POOLS, prop::option::of(0u32..9)).prop_map(|(pool, ready)| Event::Workers { pool, ready }),
        4 => (0u32..600).prop_map(|milliseconds| Event::Pass { milliseconds }),
    ]
}

fn lane() -> impl Strategy<Value = Lane> {
    prop_oneof![3 => Just(Lane::Normal), 1 => Just(Lane::Invited), 1 => Just(Lane::Restored)]
}

/// An opening comes within seconds, as the time that passes here is short.
fn command() -> impl Strategy<Value = Command> {
    let at = (0_u64..60_000).prop_map(|millis| Instant::ORIGIN + Duration::from_millis(millis));
    prop_oneof![
        1 => Just(Command::Pause),
        4 => Just(Command::Move),
        1 => Just(Command::Close),
        1 => at.prop_map(|at| Command::OpenAt { at, lots: None }),
    ]
}

fn word() -> impl Strategy<Value = SessionSignal> {
    prop_oneof![
        Just(SessionSignal::Ends),
        Just(SessionSignal::Checkout),
        (0_u32..200).prop_map(SessionSignal::Weighs)
    ]
}

fn laws() -> impl Strategy<Value = Params> {
    // All there are, some with numbers that suit so short a time.
    let session =
        prop::sample::select(SessionLawKind::CHOICES).prop_map(|choice| {
            match SessionLawKind::of(choice.word).expect("it is a choice") {
                SessionLawKind::Static(_) => SessionLawKind::Static(3),
                law => law,
            }
        });
    let route = prop::sample::select(RouteLawKind::CHOICES).prop_map(|choice| {
        match RouteLawKind::of(choice.word).expect("it is a choice") {
            RouteLawKind::Paper(_) => {
                RouteLawKind::Paper(PaperRouteParams { initial: 2, period: seconds(0.5) })
            }
            law => law,
        }
    });
    let order = prop::sample::select(QueueOrder::CHOICES)
        .prop_map(|choice| QueueOrder::of(choice.word).expect("it is a choice"));
    (session, route, any::<u64>(), order).prop_map(|(session_law, route_law, seed, order)| Params {
        session_law,
        route_law,
        seed,
        order,
        waiting_max: 40,
        sessions_max: 60,
        ..Params::default()
    })
}

/// Two services: of the first two routes, and of the third; with a ceiling the first is soon held.
fn services(ceiling: bool, pause: u64) -> Services {
    let of = |routes: &[u32], ceiling: Option<f64>| ServiceParams {
        name: String::new(),
        routes: routes.iter().copied().map(RouteId).collect(),
        wish: ServiceWish {
            ceiling: ceiling.map(Amount::PerSecond),
            alone: Some(0.01),
            ..ServiceWish::default()
        },
        pause: Duration::from_millis(pause / 100 * 100),
        pause_ratio: (pause % 100) as f64 / 25.0,
        pauses: if pause.is_multiple_of(2) { PausePlace::Inside } else { PausePlace::Around },
    };
    let services = vec![of(&[0, 1], ceiling.then_some(0.5)), of(&[2], None)];
    Services { mode: DegradationMode::Slowdown, services }
}

/// A gate and what its shell would know.
struct Shell {
    gate: Gate,
    now: Instant,
    running: Vec<(RouteId, Permit)>,
    waiting: Vec<RequestId>,
    members: BTreeMap<RequestId, RouteId>,
    routes: BTreeMap<RequestId, RouteId>,
    sessions: Vec<(KindId, SessionId)>,
    /// Places in line that somebody was told of.
    places: Vec<Position>,
    /// Requests that may be told of none.
    passing: BTreeSet<RequestId>,
    /// Requests that would begin a session, and sessions that began so.
    newcomers: BTreeSet<RequestId>,
    begun: BTreeSet<SessionId>,
    offered: u64,
}

/// The session that a place begins, as the shell has it: another for each place.
fn session_of(position: Position) -> SessionId {
    SessionId(1 << 40 | (position.lane.index() as u64) << 32 | position.number)
}

impl Shell {
    fn new(params: Params) -> Self {
        Shell::with_law(params, |gate, params| gate.declare_kind(Instant::ORIGIN, params))
    }

    /// Returns a shell whose kind with a line is declared so.
    fn with_law(params: Params, declare: impl FnOnce(&mut Gate, KindParams) -> KindId) -> Self {
        let now = Instant::ORIGIN;
        let mut gate = Gate::new(params, now);
        gate.declare_route(now, RouteMode::Enforce);
        gate.declare_route(now, RouteMode::Enforce);
        gate.declare_route(now, RouteMode::Fixed(Limit::of(2)));
        gate.give_to_pool(now, RouteId(1), PoolId(POOLS - 1));
        (0..KINDS - 1).for_each(|_| _ = gate.declare_kind(now, KindParams::default()));
        let line = Some(suimon_line::Params::default());
        let lined =
            declare(&mut gate, KindParams { line, hold: Some(seconds(1.0)), ..KindParams::default() });
        assert_eq!(lined, LINED);
        Shell {
            gate,
            now,
            running: vec![],
            waiting: vec![],
            members: BTreeMap::new(),
            routes: BTreeMap::new(),
            sessions: vec![],
            places: vec![],
            passing: BTreeSet::new(),
            newcomers: BTreeSet::new(),
            begun: BTreeSet::new(),
            offered: 0,
        }
    }

    fn play(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let limits = self.limits();
        let before = self.in_flight();
        let line = self.line();
        match *event {
            Event::Newcomer { route, kind } => self.arrive(route, Some(Membership::Newcomer(KindId(kind)))),
            Event::Member { route, pick, ends } if !self.sessions.is_empty() => {
                let (kind, session) = self.sessions[pick % self.sessions.len()];
                self.arrive(route, Some(Membership::Member { kind, session, leased: true, ends }));
            }
            Event::Stranger { route, session } => {
                let session = SessionId(session);
                self.arrive(
                    route,
                    Some(Membership::Member { kind: KindId(0), session, leased: true, ends: false }),
                );
            }
            Event::Sessionless { route } => self.arrive(route, None),
            Event::Drawing { route, lane } => {
                self.arrive(route, Some(Membership::Drawing { kind: LINED, lane }));
            }
            Event::Passing { route, kind } => self.arrive(route, Some(Membership::WithoutLine(KindId(kind)))),
            Event::Placed { route, pick, draws } if !self.places.is_empty() => {
                let position = self.places[pick % self.places.len()];
                let session = session_of(position);
                self.arrive(route, Some(Membership::Placed { kind: LINED, position, session, draws }));
            }
            Event::Entering { route, pick } if !self.places.is_empty() => {
                let position = self.places[pick % self.places.len()];
                self.arrive(
                    route,
                    Some(Membership::Entering { kind: LINED, position, session: session_of(position) }),
                );
            }
            Event::Contact { pick } if !self.places.is_empty() => {
                let position = self.places[pick % self.places.len()];
                let standing = self.gate.handle_contact(self.now, LINED, position);
                let is_over = self.gate.line(LINED).is_some_and(|line| line.is_claimed(position));
                prop_assert_eq!(standing.is_none(), is_over, "a visitor with a place is told how it stands");
            }
            Event::Command(command) => {
                prop_assert!(self.gate.handle_command(self.now, LINED, command));
                prop_assert!(!self.gate.handle_command(self.now, KindId(0), command), "it has no line");
            }
            Event::Application(is_up) => self.gate.handle_application(self.now, is_up),
            Event::Word { pick, word } if !self.sessions.is_empty() => {
                let (_, session) = self.sessions[pick % self.sessions.len()];
                self.gate.handle_session_signal(self.now, session, word);
            }
            Event::End { pick, how } if !self.running.is_empty() => {
                let (_, permit) = self.running.swap_remove(pick % self.running.len());
                let ending = match how {
                    0 => Outcome::Completed,
                    1 => Outcome::Declined,
                    2 => Outcome::Failed(Failure::ServerError),
                    _ => Outcome::Abandoned,
                };
                self.gate.handle_end(self.now, permit, ending);
            }
            Event::Pause { pick, millis } if !self.running.is_empty() => {
                let request = self.running[pick % self.running.len()].1.request();
                self.gate.handle_suspend(self.now, request, Duration::from_millis(u64::from(millis)));
            }
            Event::PausedInside { pick, millis } if !self.running.is_empty() => {
                let request = self.running[pick % self.running.len()].1.request();
                self.gate.handle_paused(request, Duration::from_millis(u64::from(millis)));
            }
            Event::Resume { pick } if !self.running.is_empty() => {
                let request = self.running[pick % self.running.len()].1.request();
                self.gate.handle_resume(self.now, request);
            }
            Event::Leave { pick } => {
                let running = self.running.iter().map(|(_, permit)| permit.request());
                let all: Vec<_> = self.waiting.iter().copied().chain(running).collect();
                if !all.is_empty() {
                    let request = all[pick % all.len()];
                    self.gate.handle_departure(self.now, request);
                    self.waiting.retain(|id| *id != request);
                    // Its id is stale now, and a second notice changes nothing.
                    self.gate.handle_departure(self.now, request);
                }
            }
            Event::Adopt { route, limit, cores, off } => {
                let mode = if limit == 0 { RouteMode::Enforce } else { RouteMode::Fixed(Limit::of(limit)) };
                let kind = KindParams {
                    mode: if off { KindMode::Off } else { KindMode::Enforce },
                    ..KindParams::default()
                };
                let adoption = Adoption {
                    params: Params { cores, ..self.gate.params().clone() },
                    routes: vec![(RouteId(route), mode)],
                    kinds: vec![(KindId(0), kind)],
                };
                self.gate.adopt(self.now, &adoption);
            }
            Event::Services { ceiling, pause } => {
                self.gate.declare_services(self.now, services(ceiling, pause));
            }
            Event::Workers { pool, ready } => self.gate.handle_workers(self.now, PoolId(pool), ready),
            Event::Pass { milliseconds } => {
                self.now += Duration::from_millis(u64::from(milliseconds));
                while let Some(due) = self.gate.poll_timeout().filter(|due| *due <= self.now) {
                    self.gate.handle_timeout(due.max(self.now));
                    self.drain()?;
                }
            }
            Event::Member { .. }
            | Event::End { .. }
            | Event::Pause { .. }
            | Event::PausedInside { .. }
            | Event::Resume { .. }
            | Event::Placed { .. }
            | Event::Entering { .. }
            | Event::Contact { .. }
            | Event::Word { .. } => {}
        }
        self.drain()?;
        self.check(&limits, &before)?;
        self.check_line(&line)
    }

    fn arrive(&mut self, route: u32, session: Option<Membership>) {
        let is_inside = match session {
            Some(Membership::Member { .. }) => true,
            // Its session goes on.
            Some(Membership::Placed { session, .. }) => self.gate.sessions.get(session).is_some(),
            _ => false,
        };
        let others = self.gate.line(LINED).map_or(0, suimon_line::Line::waiting);
        let id = self.gate.handle_arrival(self.now, Arrival { route: RouteId(route), session });
        // Where anybody is in line, every newcomer who begins has a place.
        let entry = self.gate.requests.get(id);
        let has_begun = entry
            .is_some_and(|it| matches!(it.origin, Origin::Member { kind: LINED, had_position: false, .. }));
        assert!(is_inside || !has_begun || others == 0, "somebody has overtaken {others} in line");
        self.offered += 1;
        self.waiting.push(id);
        self.routes.insert(id, RouteId(route));
        if is_inside {
            self.members.insert(id, RouteId(route));
        } else if session.is_some() {
            self.newcomers.insert(id);
        }
        if matches!(session, Some(Membership::WithoutLine(_))) {
            self.passing.insert(id);
        }
    }

    /// Returns the line, and how many have begun a session of its kind.
    fn line(&self) -> (suimon_line::View, u64) {
        let kind = self.gate.snapshot(self.now).kinds.swap_remove(LINED.index());
        (kind.line.expect("it has a line"), kind.admitted)
    }

    fn drain(&mut self) -> Result<(), TestCaseError> {
        while let Some(output) = self.gate.poll_output() {
            match output {
                Output::Start(start) => {
                    let position = self.waiting.iter().position(|id| *id == start.request);
                    prop_assert!(position.is_some(), "started once, and not after it left");
                    self.waiting.swap_remove(position.unwrap());
                    if let Some((_, session)) = start.session
                        && self.newcomers.contains(&start.request)
                    {
                        prop_assert!(self.begun.insert(session), "a session began twice: {session:?}");
                    }
                    self.sessions.extend(start.session);
                    self.sessions.truncate(50);
                    self.running.push((self.routes[&start.request], start.permit));
                }
                Output::Refuse(refusal) => {
                    let is_member = self.members.contains_key(&refusal.request);
                    prop_assert!(
                        !is_member || refusal.reason == Reason::ApplicationDown,
                        "a member was refused: {refusal:?}"
                    );
                    prop_assert!(refusal.retry_after >= seconds(1.0) && refusal.retry_after <= seconds(30.0));
                    self.waiting.retain(|id| *id != refusal.request);
                }
                Output::Wait(waits) => {
                    prop_assert!(!self.members.contains_key(&waits.request), "a member was sent to the line");
                    prop_assert!(
                        waits.position.is_none() || !self.passing.contains(&waits.request),
                        "it was to draw no place"
                    );
                    prop_assert_eq!(waits.kind, LINED);
                    if let Some(session) = waits.begun {
                        prop_assert!(self.gate.sessions.get(session).is_some(), "it has begun");
                        self.sessions.push((LINED, session));
                        self.sessions.truncate(50);
                    }
                    self.places.extend(waits.position);
                    self.waiting.retain(|id| *id != waits.request);
                }
                Output::Resumed(request) => {
                    let is_there = self.running.iter().any(|(_, permit)| permit.request() == request);
                    prop_assert!(is_there, "resumed after it ended");
                }
                Output::Decided(_) => {}
            }
        }
        Ok(())
    }

    fn check(&self, limits: &[Option<u32>], before: &[usize]) -> Result<(), TestCaseError> {
        let snapshot = self.gate.snapshot(self.now);
        let mut ended = 0;
        for (index, route) in snapshot.routes.iter().enumerate() {
            let limit = route.limit.expect("all routes of this test are limited") as usize;
            let drains = route.in_flight <= before[index];
            prop_assert!(
                route.in_flight <= limit || drains,
                "route {index}: {} over {limit}",
                route.in_flight
            );
            prop_assert!(
                route.waiting == 0
                    || route.in_flight >= limit
                    || !self.gate.has_worker(RouteId(index as u32))
                    || self.is_held_by_service(index),
                "route {index}: waiting beside a free slot"
            );
            let started_under = limits[index].map_or(limit, |old| (old as usize).max(limit));
            prop_assert!(route.in_flight <= started_under.max(before[index]));
            ended +=
                route.counts.completed + route.counts.failed + route.counts.abandoned + route.counts.refused;
        }
        for (pool, workers) in self.gate.workers.iter().enumerate() {
            let own = |index: &usize| self.gate.routes[*index].pool.index() == pool;
            let in_flight: usize =
                (0..snapshot.routes.len()).filter(own).map(|index| snapshot.routes[index].in_flight).sum();
            let before: usize = (0..before.len()).filter(own).map(|index| before[index]).sum();
            prop_assert_eq!(workers.taken, in_flight);
            prop_assert!(
                self.gate.is_application_away()
                    || workers.ready().is_none_or(|ready| in_flight <= (ready as usize).max(before)),
                "{in_flight} with {:?} workers of pool {pool}",
                workers.ready()
            );
        }
        // Those who wait for a slot of theirs again are in the application.
        let again = snapshot.waiting.checked_sub(self.waiting.len());
        prop_assert_eq!(
            again.map(|again| snapshot.in_flight + snapshot.suspended + again),
            Some(self.running.len())
        );
        let inside = snapshot.in_flight + snapshot.waiting + snapshot.suspended;
        prop_assert_eq!(self.offered, ended + inside as u64, "conservation");
        prop_assert!(snapshot.sessions <= 60 + inside);
        // A request that waits at a route waits as part of a session: an admitted visitor never
        // stands in the session's line again.
        let at_routes: usize = snapshot.routes.iter().map(|route| route.waiting).sum();
        let in_lines: usize = snapshot.kinds.iter().map(|kind| kind.waiting).sum();
        let awaiting = self.gate.away.len();
        prop_assert!(awaiting == 0 || self.gate.is_application_away());
        let paused = self.gate.requests.iter().filter(|(_, it)| matches!(it.stage, Stage::Paused(_))).count();
        prop_assert_eq!(at_routes + in_lines + awaiting + paused, snapshot.waiting);
        let held = snapshot.kinds[LINED.index()].waiting;
        prop_assert!(held <= self.gate.params.waiting_max, "{held} held");
        let members_waiting = self.waiting.iter().filter(|id| self.members.contains_key(id)).count();
        prop_assert!(members_waiting <= at_routes + awaiting + paused, "a member stands in a session's line");
        Ok(())
    }

    /// Returns whether what waits there waits for the cap of its service, and will be looked at again
    /// when there is credit or a request ends.
    fn is_held_by_service(&self, route: usize) -> bool {
        let id = RouteId(route as u32);
        let credit = self.gate.services.of(id).map(|id| &self.gate.services.gates[id.index()].credit);
        self.gate.is_held_by_service(self.now, id)
            && credit.is_some_and(|it| it.next_start().is_some() || it.in_flight() > 0)
    }

    /// Checks that a session which ended was admitted before, and ended once. Of a gate that was
    /// brought back it is not known what was before.
    fn check_sessions(&self) -> Result<(), TestCaseError> {
        for kind in self.gate.snapshot(self.now).kinds {
            let SessionEnds { finished, silent, abandoned, failed, reopened } = kind.ends;
            let known = finished + silent + abandoned + failed + kind.active as u64;
            // A visitor admitted twice, by two tabs, begins one session.
            prop_assert!(known <= kind.admitted + reopened, "{kind:?}");
        }
        Ok(())
    }

    /// Checks what may become of a line by one event, before which it was so.
    fn check_line(&self, (before, admitted_before): &(suimon_line::View, u64)) -> Result<(), TestCaseError> {
        use suimon_line::LineStatus;
        let (line, admitted) = self.line();
        prop_assert!(line.admitted <= admitted && line.called <= line.issued, "{line:?}");
        prop_assert!(line.called >= before.called && line.admitted >= before.admitted, "{line:?}");
        // An opening may come while an event is played.
        let stands = |state: LineStatus| matches!(state, LineStatus::Paused | LineStatus::Closed);
        if stands(before.state) && stands(line.state) {
            prop_assert_eq!(admitted, *admitted_before, "somebody began though the line stands still");
        }
        if before.away && line.away {
            prop_assert_eq!(
                (admitted, line.called),
                (*admitted_before, before.called),
                "somebody was called or begun though the application does not answer"
            );
        }
        if (before.state, line.state) == (LineStatus::Closed, LineStatus::Closed) {
            prop_assert_eq!(line.issued, before.issued, "somebody drew though there is nothing to wait for");
        }
        Ok(())
    }

    fn limits(&self) -> Vec<Option<u32>> {
        self.gate.snapshot(self.now).routes.iter().map(|route| route.limit).collect()
    }

    fn in_flight(&self) -> Vec<usize> {
        self.gate.snapshot(self.now).routes.iter().map(|route| route.in_flight).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn the_promises_hold_after_every_event(params in laws(), events in prop::collection::vec(event(), 1..400)) {
        let mut shell = Shell::new(params);
        for event in &events {
            shell.play(event)?;
        }
    }

    #[test]
    fn the_same_events_give_the_same_decisions(params in laws(), events in prop::collection::vec(event(), 1..200)) {
        let play = |params: Params| -> Result<u64, TestCaseError> {
            let mut shell = Shell::new(params);
            events.iter().try_for_each(|event| shell.play(event))?;
            Ok(shell.gate.trace().value())
        };
        prop_assert_eq!(play(params.clone())?, play(params)?);
    }

    #[test]
    fn everything_that_ends_leaves_an_empty_gate(params in laws(), events in prop::collection::vec(event(), 1..300)) {
        let mut shell = Shell::new(params);
        for event in &events {
            shell.play(event)?;
            shell.check_sessions()?;
        }
        shell.gate.drain(shell.now);
        shell.drain()?;
        (0..POOLS).for_each(|pool| shell.gate.handle_workers(shell.now, PoolId(pool), Some(1)));
        shell.drain()?;
        shell.gate.handle_application(shell.now, true);
        shell.drain()?;
        // What a pause or a cap holds goes on when its time has come: each within its pause, or the
        // longest one of a cap.
        for _ in 0..100_000 {
            while let Some((_, permit)) = shell.running.pop() {
                shell.gate.handle_end(shell.now, permit, Outcome::Completed);
                shell.drain()?;
            }
            if shell.gate.snapshot(shell.now).waiting == 0 {
                break;
            }
            shell.now = shell.gate.poll_timeout().expect("the tick comes").max(shell.now);
            shell.gate.handle_timeout(shell.now);
            shell.drain()?;
        }
        let snapshot = shell.gate.snapshot(shell.now);
        prop_assert_eq!((snapshot.in_flight, snapshot.waiting), (0, 0));
    }
}

/// Returns what is seen of an event: everything but the token, which is the request's.
fn seen(gate: &mut Gate) -> Vec<String> {
    std::iter::from_fn(|| gate.poll_output()).map(|output| format!("{output:?}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_gate_that_is_brought_back_goes_on_as_if_nothing_had_happened(
        params in laws(),
        before in prop::collection::vec(event(), 1..300),
        after in prop::collection::vec(event(), 1..100),
    ) {
        let mut shell = Shell::new(params);
        for event in &before {
            shell.play(event)?;
        }
        let bytes = shell.gate.save().unwrap();
        let (other, tokens) = Gate::restore(shell.gate.params().clone(), &bytes).unwrap();
        prop_assert_eq!(&other.save().unwrap(), &bytes);
        let mut running: Vec<_> = shell.running.iter().map(|(_, permit)| permit.request()).collect();
        running.sort_unstable_by_key(|request| request.0 & 0xFFFF_FFFF);
        prop_assert_eq!(tokens.iter().map(Permit::request).collect::<Vec<_>>(), running);

        let mut by_request: BTreeMap<_, _> = tokens.into_iter().map(|permit| (permit.request(), permit)).collect();
        let mut twin = Shell { gate: other, ..Shell::new(Params::default()) };
        twin.now = shell.now;
        twin.running = shell.running.iter().map(|(route, permit)| (*route, by_request.remove(&permit.request()).unwrap())).collect();
        twin.waiting.clone_from(&shell.waiting);
        twin.members.clone_from(&shell.members);
        twin.routes.clone_from(&shell.routes);
        twin.sessions.clone_from(&shell.sessions);
        twin.places.clone_from(&shell.places);
        twin.passing.clone_from(&shell.passing);
        twin.newcomers.clone_from(&shell.newcomers);
        twin.begun.clone_from(&shell.begun);
        twin.offered = shell.offered;
        for event in &after {
            shell.play(event)?;
            twin.play(event)?;
            prop_assert_eq!(shell.gate.trace(), twin.gate.trace());
            prop_assert_eq!(&shell.waiting, &twin.waiting, "the same were let in and refused");
        }
        prop_assert_eq!(shell.gate.save().unwrap(), twin.gate.save().unwrap());
    }

    #[test]
    fn bytes_that_were_changed_are_no_reason_to_panic(
        params in laws(),
        events in prop::collection::vec(event(), 1..200),
        change in (any::<prop::sample::Index>(), any::<u8>()),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut shell = Shell::new(params.clone());
        for event in &events {
            shell.play(event)?;
        }
        let mut bytes = shell.gate.save().unwrap();
        prop_assert!(Gate::restore(params.clone(), &bytes[..cut.index(bytes.len())]).is_err(), "a part is no gate");
        let at = change.0.index(bytes.len());
        bytes[at] ^= change.1;
        // It may still be a gate, of which then a newcomer and a tick may be asked.
        if let Ok((mut gate, _tokens)) = Gate::restore(params, &bytes) {
            let newcomer = Membership::Newcomer(KindId(0));
            gate.handle_arrival(shell.now, Arrival { route: RouteId(0), session: Some(newcomer) });
            gate.handle_timeout(shell.now + seconds(1.0));
            seen(&mut gate);
        }
    }
}

#[test]
fn a_law_of_somebody_elses_says_that_it_cannot_be_saved() {
    #[derive(Debug)]
    struct Foreign;
    impl RouteLaw for Foreign {
        fn renew_route(&mut self, _: Instant, _: RouteId, _: Option<u32>, _: &Meter) {}
        fn add_route(&mut self, _now: Instant, _fixed: Option<u32>) {}
        fn limit(&self, _route: RouteId) -> u32 {
            1
        }
        fn service(&self, _route: RouteId) -> Option<f64> {
            None
        }
        fn on_end(&mut self, _now: Instant, _end: &RequestEnd, _meters: &[Meter], _out: &mut Vec<Record>) {}
        fn on_tick(&mut self, _now: Instant, _meters: &[Meter], _out: &mut Vec<Record>) {}
    }
    let gate = Gate::with_route_law(Params::default(), Box::new(Foreign), Instant::ORIGIN);
    assert!(gate.save().is_err());
}

fn fixed(limit: u32) -> (Gate, RouteId, KindId) {
    let mut gate =
        Gate::new(Params { session_law: SessionLawKind::Open, ..Params::default() }, Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Fixed(Limit::of(limit)));
    let kind = gate.declare_kind(Instant::ORIGIN, KindParams::default());
    (gate, route, kind)
}

fn started(gate: &mut Gate) -> Vec<Start> {
    std::iter::from_fn(|| gate.poll_output())
        .filter_map(|output| if let Output::Start(start) = output { Some(start) } else { None })
        .collect()
}

#[test]
fn a_static_number_refuses_at_once_and_a_logout_makes_room() {
    let params = Params { session_law: SessionLawKind::Static(1), ..Params::default() };
    let mut gate = Gate::new(params, Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Off);
    let kind = gate.declare_kind(Instant::ORIGIN, KindParams::default());
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let start = started(&mut gate).pop().unwrap();
    let (_, session) = start.session.unwrap();
    gate.handle_end(Instant::ORIGIN, start.permit, Outcome::Completed);
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    assert!(matches!(gate.poll_output(), Some(Output::Refuse(Refusal { reason: Reason::WorkToCome, .. }))));
    let logout = Membership::Member { kind, session, leased: true, ends: true };
    gate.handle_arrival(Instant::ORIGIN, Arrival { route, session: Some(logout) });
    let start = started(&mut gate).pop().unwrap();
    gate.handle_end(Instant::ORIGIN, start.permit, Outcome::Completed);
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let start = started(&mut gate).pop().expect("the place is free again");
    gate.handle_end(Instant::ORIGIN, start.permit, Outcome::Completed);
}

#[test]
fn a_draining_gate_refuses_newcomers_and_finishes_members() {
    let (mut gate, route, kind) = fixed(4);
    gate.drain(Instant::ORIGIN);
    gate.handle_arrival(Instant::ORIGIN, Arrival { route, session: Some(Membership::Newcomer(kind)) });
    assert!(matches!(gate.poll_output(), Some(Output::Refuse(Refusal { reason: Reason::ShuttingDown, .. }))));
    let member = Membership::Member { kind, session: SessionId(9), leased: true, ends: false };
    gate.handle_arrival(Instant::ORIGIN, Arrival { route, session: Some(member) });
    let start = started(&mut gate).pop().expect("members finish");
    gate.handle_end(Instant::ORIGIN, start.permit, Outcome::Completed);
}

#[test]
fn a_gate_that_is_handed_over_admits_those_who_need_not_wait_and_sends_the_others_on() {
    let params = Params { session_law: SessionLawKind::Static(1), ..Params::default() };
    let mut gate = Gate::new(params, Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Off);
    let kind = gate.declare_kind(Instant::ORIGIN, KindParams::default());
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    let refused = |gate: &mut Gate| {
        gate.handle_arrival(Instant::ORIGIN, newcomer);
        match gate.poll_output() {
            Some(Output::Refuse(refusal)) => refusal.reason,
            other => panic!("{other:?}"),
        }
    };
    gate.hand_over(Instant::ORIGIN);
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let start = started(&mut gate).pop().expect("nobody has to wait");
    assert_eq!(refused(&mut gate), Reason::ShuttingDown);
    gate.take_back();
    assert_eq!(refused(&mut gate), Reason::WorkToCome);
    gate.handle_end(Instant::ORIGIN, start.permit, Outcome::Completed);
}

#[test]
fn a_gate_goes_on_with_the_sessions_of_another() {
    let params = Params { session_law: SessionLawKind::Static(1), ..Params::default() };
    let gate = |params: Params| {
        let mut gate = Gate::new(params, Instant::ORIGIN);
        let route = gate.declare_route(Instant::ORIGIN, RouteMode::Off);
        let kind = gate.declare_kind(Instant::ORIGIN, KindParams::default());
        (gate, Arrival { route, session: Some(Membership::Newcomer(kind)) })
    };
    let (mut old, newcomer) = gate(params.clone());
    old.handle_arrival(Instant::ORIGIN, newcomer);
    let start = started(&mut old).pop().unwrap();
    let begun: Vec<_> = old.sessions_begun().collect();
    assert_eq!(begun, [start.session.unwrap()]);
    let (mut new, newcomer) = gate(params);
    begun.iter().for_each(|(kind, session)| new.reopen(Instant::ORIGIN, *kind, *session));
    new.handle_arrival(Instant::ORIGIN, newcomer);
    assert!(started(&mut new).is_empty(), "the one session there may be is under way");
    old.handle_end(Instant::ORIGIN, start.permit, Outcome::Completed);
}

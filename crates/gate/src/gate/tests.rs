//! What the gate promises, whatever happens in whatever order.

use super::*;
use crate::api::{Order, Start};
use proptest::prelude::*;
use std::collections::BTreeMap;
use suimon_control::{RouteLawKind, SeedRouteParams, SeedSessionParams, SessionLawKind};
use suimon_model::Failure;

const ROUTES: u32 = 3;
const KINDS: u32 = 2;

/// One thing that happens to a gate. Numbers pick among what is there.
#[derive(Clone, Debug)]
enum Event {
    Newcomer { route: u32, kind: u32 },
    Member { route: u32, pick: usize, ends: bool },
    Stranger { route: u32, session: u64 },
    Sessionless { route: u32 },
    End { pick: usize, how: u8 },
    Leave { pick: usize },
    Pass { milliseconds: u32 },
}

fn event() -> impl Strategy<Value = Event> {
    let route = || 0..ROUTES;
    prop_oneof![
        4 => (route(), 0..KINDS).prop_map(|(route, kind)| Event::Newcomer { route, kind }),
        4 => (route(), any::<usize>(), prop::bool::weighted(0.1)).prop_map(|(route, pick, ends)| Event::Member { route, pick, ends }),
        1 => (route(), any::<u64>()).prop_map(|(route, session)| Event::Stranger { route, session }),
        1 => route().prop_map(|route| Event::Sessionless { route }),
        6 => (any::<usize>(), 0u8..4).prop_map(|(pick, how)| Event::End { pick, how }),
        1 => any::<usize>().prop_map(|pick| Event::Leave { pick }),
        4 => (0u32..600).prop_map(|milliseconds| Event::Pass { milliseconds }),
    ]
}

fn laws() -> impl Strategy<Value = Params> {
    let session = prop_oneof![
        Just(SessionLawKind::Flow),
        Just(SessionLawKind::Seed(SeedSessionParams::default())),
        Just(SessionLawKind::Static { sessions: 3 }),
        Just(SessionLawKind::Open),
    ];
    let route = prop_oneof![
        Just(RouteLawKind::Paired),
        Just(RouteLawKind::Seed(SeedRouteParams { initial: 2, period: seconds(0.5) })),
    ];
    (session, route, any::<u64>(), prop_oneof![Just(Order::LaterInSession), Just(Order::FirstIn)]).prop_map(
        |(session_law, route_law, seed, order)| Params {
            session_law,
            route_law,
            seed,
            order,
            waiting_max: 40,
            sessions_max: 60,
            ..Params::default()
        },
    )
}

/// A gate and what its shell would know.
struct Shell {
    gate: Gate,
    now: Instant,
    running: Vec<(RouteId, Token)>,
    waiting: Vec<RequestId>,
    members: BTreeMap<RequestId, RouteId>,
    routes: BTreeMap<RequestId, RouteId>,
    sessions: Vec<(KindId, SessionId)>,
    offered: u64,
}

impl Shell {
    fn new(params: Params) -> Self {
        let now = Instant::ORIGIN;
        let mut gate = Gate::new(params, now);
        gate.declare_route(now, Mode::Enforce);
        gate.declare_route(now, Mode::Enforce);
        gate.declare_route(now, Mode::Fixed(2));
        (0..KINDS).for_each(|_| _ = gate.declare_kind(now, KindParams::default()));
        Shell {
            gate,
            now,
            running: vec![],
            waiting: vec![],
            members: BTreeMap::new(),
            routes: BTreeMap::new(),
            sessions: vec![],
            offered: 0,
        }
    }

    fn play(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let limits = self.limits();
        let before = self.in_flight();
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
            Event::End { pick, how } if !self.running.is_empty() => {
                let (_, token) = self.running.swap_remove(pick % self.running.len());
                let ending = match how {
                    0 | 1 => Ending::Completed,
                    2 => Ending::Failed(Failure::ServerError),
                    _ => Ending::Abandoned,
                };
                self.gate.handle_end(self.now, token, ending);
            }
            Event::Leave { pick } => {
                let running = self.running.iter().map(|(_, token)| token.request());
                let all: Vec<_> = self.waiting.iter().copied().chain(running).collect();
                if !all.is_empty() {
                    let request = all[pick % all.len()];
                    self.gate.handle_departure(self.now, request);
                    self.waiting.retain(|id| *id != request);
                    // Its id is stale now, and a second notice changes nothing.
                    self.gate.handle_departure(self.now, request);
                }
            }
            Event::Pass { milliseconds } => {
                self.now += Duration::from_millis(u64::from(milliseconds));
                while let Some(due) = self.gate.poll_timeout().filter(|due| *due <= self.now) {
                    self.gate.handle_timeout(due.max(self.now));
                    self.drain()?;
                }
            }
            Event::Member { .. } | Event::End { .. } => {}
        }
        self.drain()?;
        self.check(&limits, &before)
    }

    fn arrive(&mut self, route: u32, session: Option<Membership>) {
        let id = self.gate.handle_arrival(self.now, Arrival { route: RouteId(route), session });
        self.offered += 1;
        self.waiting.push(id);
        self.routes.insert(id, RouteId(route));
        if matches!(session, Some(Membership::Member { .. })) {
            self.members.insert(id, RouteId(route));
        }
    }

    fn drain(&mut self) -> Result<(), TestCaseError> {
        while let Some(output) = self.gate.poll_output() {
            match output {
                Output::Start(start) => {
                    let place = self.waiting.iter().position(|id| *id == start.request);
                    prop_assert!(place.is_some(), "started once, and not after it left");
                    self.waiting.swap_remove(place.unwrap());
                    self.sessions.extend(start.session);
                    self.sessions.truncate(50);
                    self.running.push((self.routes[&start.request], start.token));
                }
                Output::Refuse(refusal) => {
                    prop_assert!(
                        !self.members.contains_key(&refusal.request),
                        "a member was refused: {refusal:?}"
                    );
                    prop_assert!(refusal.retry_after >= seconds(1.0) && refusal.retry_after <= seconds(30.0));
                    self.waiting.retain(|id| *id != refusal.request);
                }
                Output::Wait(_) => unreachable!("no kind here has a line"),
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
                route.waiting == 0 || route.in_flight >= limit,
                "route {index}: waiting beside a free slot"
            );
            let started_under = limits[index].map_or(limit, |old| (old as usize).max(limit));
            prop_assert!(route.in_flight <= started_under.max(before[index]));
            ended +=
                route.counts.completed + route.counts.failed + route.counts.abandoned + route.counts.refused;
        }
        prop_assert_eq!(snapshot.in_flight, self.running.len());
        prop_assert_eq!(snapshot.waiting, self.waiting.len());
        prop_assert_eq!(self.offered, ended + (snapshot.in_flight + snapshot.waiting) as u64, "conservation");
        prop_assert!(snapshot.sessions <= 60 + snapshot.in_flight + snapshot.waiting);
        // What waits at a route waits as a member: whoever was let in never stands in the session's line again.
        let at_routes: usize = snapshot.routes.iter().map(|route| route.waiting).sum();
        let in_lines: usize = snapshot.kinds.iter().map(|kind| kind.waiting).sum();
        prop_assert_eq!(at_routes + in_lines, snapshot.waiting);
        let members_waiting = self.waiting.iter().filter(|id| self.members.contains_key(id)).count();
        prop_assert!(members_waiting <= at_routes, "a member stands in a session's line");
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
        }
        shell.gate.drain(shell.now);
        shell.drain()?;
        while let Some((_, token)) = shell.running.pop() {
            shell.gate.handle_end(shell.now, token, Ending::Completed);
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
        let mut shell = Shell::new(params.clone());
        for event in &before {
            shell.play(event)?;
        }
        let bytes = shell.gate.save().unwrap();
        let (other, tokens) = Gate::restore(params, &bytes).unwrap();
        prop_assert_eq!(&other.save().unwrap(), &bytes);
        let mut running: Vec<_> = shell.running.iter().map(|(_, token)| token.request()).collect();
        running.sort_unstable_by_key(|request| request.0 & 0xFFFF_FFFF);
        prop_assert_eq!(tokens.iter().map(Token::request).collect::<Vec<_>>(), running);

        let mut by_request: BTreeMap<_, _> = tokens.into_iter().map(|token| (token.request(), token)).collect();
        let mut twin = Shell { gate: other, ..Shell::new(Params::default()) };
        twin.now = shell.now;
        twin.running = shell.running.iter().map(|(route, token)| (*route, by_request.remove(&token.request()).unwrap())).collect();
        twin.waiting.clone_from(&shell.waiting);
        twin.members.clone_from(&shell.members);
        twin.routes.clone_from(&shell.routes);
        twin.sessions.clone_from(&shell.sessions);
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
fn other_parameters_leave_what_they_do_not_change_and_begin_anew_what_they_do() {
    let (mut gate, route, kind) = fixed(1);
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let first = started(&mut gate).pop().unwrap();
    let waits = gate.handle_arrival(Instant::ORIGIN, newcomer);
    let params =
        Params { session_law: SessionLawKind::Static { sessions: 2 }, cores: 4, ..Params::default() };
    gate.adopt(params, Instant::ORIGIN);
    gate.handle_end(Instant::ORIGIN, first.token, Ending::Completed);
    let next = started(&mut gate).pop().expect("who waited goes on");
    assert_eq!(next.request, waits);
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    assert!(
        matches!(gate.poll_output(), Some(Output::Refuse(Refusal { reason: Reason::WorkToCome, .. }))),
        "two sessions are all there may be now"
    );
    gate.handle_end(Instant::ORIGIN, next.token, Ending::Completed);
}

#[test]
fn a_law_of_somebody_elses_says_that_it_cannot_be_saved() {
    #[derive(Debug)]
    struct Foreign;
    impl RouteLaw for Foreign {
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
    let route = gate.declare_route(Instant::ORIGIN, Mode::Fixed(limit));
    let kind = gate.declare_kind(Instant::ORIGIN, KindParams::default());
    (gate, route, kind)
}

fn started(gate: &mut Gate) -> Vec<Start> {
    std::iter::from_fn(|| gate.poll_output())
        .filter_map(|output| if let Output::Start(start) = output { Some(start) } else { None })
        .collect()
}

#[test]
fn whoever_came_first_goes_first_or_whoever_is_further_along() {
    assert_eq!(order_of_three(Order::FirstIn), ["newcomer", "another", "member"]);
    assert_eq!(order_of_three(Order::LaterInSession), ["member", "newcomer", "another"]);
}

/// Returns who started after whom, of two newcomers and a member at its second request who came in this order.
fn order_of_three(order: Order) -> Vec<&'static str> {
    let (mut gate, route, kind) = fixed(1);
    gate.params.order = order;
    let now = Instant::ORIGIN;
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    gate.handle_arrival(now, newcomer);
    let first = started(&mut gate).pop().unwrap();
    let (_, far_along) = first.session.unwrap();
    let a = gate.handle_arrival(now, newcomer);
    let b = gate.handle_arrival(now, newcomer);
    let member = Membership::Member { kind, session: far_along, leased: true, ends: false };
    let c = gate.handle_arrival(now, Arrival { route, session: Some(member) });
    let names = [(a, "newcomer"), (b, "another"), (c, "member")];
    let (mut seen, mut token) = (vec![], first.token);
    while seen.len() < names.len() {
        gate.handle_end(now, token, Ending::Completed);
        let start = started(&mut gate).pop().unwrap();
        token = start.token;
        seen.extend(names.iter().filter(|(request, _)| *request == start.request).map(|(_, name)| *name));
    }
    seen
}

#[test]
fn a_ghost_keeps_its_slot_until_the_application_is_done() {
    let (mut gate, route, kind) = fixed(1);
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    let ghost = gate.handle_arrival(Instant::ORIGIN, newcomer);
    let start = started(&mut gate).pop().unwrap();
    gate.handle_departure(Instant::ORIGIN, ghost);
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    assert!(started(&mut gate).is_empty(), "the application still works on the first");
    let snapshot = gate.snapshot(Instant::ORIGIN);
    assert_eq!((snapshot.routes[0].ghosts, snapshot.in_flight), (1, 1));
    gate.handle_end(Instant::ORIGIN, start.token, Ending::Abandoned);
    assert_eq!(started(&mut gate).len(), 1);
    assert_eq!(gate.snapshot(Instant::ORIGIN).routes[0].counts.abandoned, 1);
}

#[test]
fn a_client_that_leaves_the_queue_is_never_sent_on() {
    let (mut gate, route, kind) = fixed(1);
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let start = started(&mut gate).pop().unwrap();
    let leaves = gate.handle_arrival(Instant::ORIGIN, newcomer);
    let stays = gate.handle_arrival(Instant::ORIGIN, newcomer);
    gate.handle_departure(Instant::ORIGIN, leaves);
    gate.handle_end(Instant::ORIGIN, start.token, Ending::Completed);
    let next: Vec<_> = started(&mut gate);
    assert_eq!(next.iter().map(|start| start.request).collect::<Vec<_>>(), [stays]);
    next.into_iter().for_each(|start| gate.handle_end(Instant::ORIGIN, start.token, Ending::Completed));
}

#[test]
fn a_static_number_refuses_at_once_and_a_logout_makes_room() {
    let params = Params { session_law: SessionLawKind::Static { sessions: 1 }, ..Params::default() };
    let mut gate = Gate::new(params, Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, Mode::Off);
    let kind = gate.declare_kind(Instant::ORIGIN, KindParams::default());
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let start = started(&mut gate).pop().unwrap();
    let (_, session) = start.session.unwrap();
    gate.handle_end(Instant::ORIGIN, start.token, Ending::Completed);
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    assert!(matches!(gate.poll_output(), Some(Output::Refuse(Refusal { reason: Reason::WorkToCome, .. }))));
    let logout = Membership::Member { kind, session, leased: true, ends: true };
    gate.handle_arrival(Instant::ORIGIN, Arrival { route, session: Some(logout) });
    let start = started(&mut gate).pop().unwrap();
    gate.handle_end(Instant::ORIGIN, start.token, Ending::Completed);
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let start = started(&mut gate).pop().expect("the place is free again");
    gate.handle_end(Instant::ORIGIN, start.token, Ending::Completed);
}

#[test]
fn a_lease_is_due_only_under_pressure_and_until_it_is_carried() {
    let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, Mode::Enforce);
    let kind = gate.declare_kind(Instant::ORIGIN, KindParams::default());
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let calm = started(&mut gate).pop().unwrap();
    assert!(!calm.lease_due, "under capacity no cookie is set");
    let (_, session) = calm.session.unwrap();
    (0..50).for_each(|_| _ = gate.handle_arrival(Instant::ORIGIN, newcomer));
    let member =
        |leased| Arrival { route, session: Some(Membership::Member { kind, session, leased, ends: false }) };
    gate.handle_end(Instant::ORIGIN, calm.token, Ending::Completed);
    let without = gate.handle_arrival(Instant::ORIGIN, member(false));
    let with = gate.handle_arrival(Instant::ORIGIN, member(true));
    let mut due = BTreeMap::new();
    let mut open = started(&mut gate);
    while let Some(start) = open.pop() {
        due.insert(start.request, start.lease_due);
        gate.handle_end(Instant::ORIGIN, start.token, Ending::Completed);
        open.extend(started(&mut gate));
    }
    assert!(due[&without] && !due[&with], "a lease is given until a request carries it");
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
    gate.handle_end(Instant::ORIGIN, start.token, Ending::Completed);
}

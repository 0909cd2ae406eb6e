//! A kind that has a line: who begins, who is told what, and who is told nothing.

use super::*;
use suimon_control::{AdmissionDecision, is_token_spare};

/// Lets in by tokens, and sees to it that nobody begins without one.
#[derive(Debug)]
pub(super) struct Metered {
    per_second: f64,
    depth: f64,
    tokens: f64,
    at: Instant,
}

impl Metered {
    /// Returns a law by which `depth` begin at once, and `per_second` per second after that.
    pub(super) fn new(depth: u32, per_second: f64) -> Box<Metered> {
        let depth = f64::from(depth);
        Box::new(Metered { per_second, depth, tokens: depth, at: Instant::ORIGIN })
    }

    fn refill(&mut self, now: Instant) {
        let gained = self.per_second * now.secs_since(self.at);
        (self.tokens, self.at) = ((self.tokens + gained).min(self.depth), now);
    }
}

impl SessionLaw for Metered {
    fn may_admit(&mut self, now: Instant, _outlook: &AdmissionInputs<'_>) -> AdmissionDecision {
        self.refill(now);
        let missing = 1.0 - self.tokens;
        if missing < 1e-6 {
            return AdmissionDecision::Now;
        }
        AdmissionDecision::NotBefore(now + seconds(missing / self.per_second))
    }

    fn has_enough_for(&self, _outlook: &AdmissionInputs<'_>, others: u64) -> bool {
        is_token_spare(self.tokens, self.depth, self.per_second, others)
    }

    fn has_left_over(&self, _now: Instant, _outlook: &AdmissionInputs<'_>, others: u64) -> bool {
        is_token_spare(self.tokens, self.depth, self.per_second, others)
    }

    fn admitted(&mut self, now: Instant, _entry: suimon_control::LastRoute) {
        self.refill(now);
        assert!(self.tokens > 1.0 - 1e-6, "somebody begins without a token: {self:?}");
        self.tokens -= 1.0;
    }

    fn weighs(&mut self, weight: u32) {
        self.tokens -= f64::from(weight - 1);
    }

    fn rate(&self) -> Option<f64> {
        Some(self.per_second)
    }

    fn predicted_wait(&self, _now: Instant, ahead: usize) -> Duration {
        seconds((ahead + 1) as f64 / self.per_second)
    }
}

/// A gate with one route that holds nobody back and one kind with a line.
pub(super) fn lined(law: Box<Metered>) -> (Gate, RouteId, KindId) {
    let now = Instant::ORIGIN;
    let mut gate = Gate::new(Params::default(), now);
    let route = gate.declare_route(now, RouteMode::Off);
    let params = KindParams {
        line: Some(suimon_line::Params::default()),
        hold: Some(seconds(1.0)),
        ..KindParams::default()
    };
    let kind = gate.declare_kind_with_law(now, params, law);
    (gate, route, kind)
}

/// Lets time go by, and returns what happened meanwhile.
pub(super) fn pass(gate: &mut Gate, until: Instant) -> Vec<Output> {
    let mut seen = vec![];
    while let Some(due) = gate.poll_timeout().filter(|due| *due <= until) {
        gate.handle_timeout(due);
        seen.extend(std::iter::from_fn(|| gate.poll_output()));
    }
    seen
}

pub(super) fn at(secs: f64) -> Instant {
    Instant::ORIGIN + seconds(secs)
}

/// Comes with a place, and may draw another.
pub(super) fn placed(kind: KindId, position: Position) -> Membership {
    Membership::Placed { kind, position, session: session_of(position), draws: true }
}

/// Returns the place that a newcomer is told of at once.
pub(super) fn told_at_once(gate: &mut Gate) -> InLine {
    match gate.poll_output() {
        Some(Output::Wait(waits)) => waits,
        other => panic!("{other:?}"),
    }
}

#[test]
fn whoever_is_to_draw_no_place_is_told_of_none_however_long_it_was_held() {
    let (mut gate, route, kind) = lined(Metered::new(1, 0.01));
    let now = at(0.0);
    let asks = |session| Arrival { route, session: Some(session) };
    gate.handle_arrival(now, asks(Membership::Newcomer(kind)));
    assert!(matches!(gate.poll_output(), Some(Output::Start(_))), "the one token there is");
    let picture = gate.handle_arrival(now, asks(Membership::WithoutLine(kind)));
    assert!(gate.poll_output().is_none(), "it is held: nobody is before it");
    let outputs = pass(&mut gate, at(3.0));
    let refused = |output: &Output| matches!(output, Output::Refuse(it) if it.request == picture);
    assert_eq!(outputs.iter().filter(|output| refused(output)).count(), 1, "{outputs:?}");
    assert!(!outputs.iter().any(|output| matches!(output, Output::Wait(_))), "{outputs:?}");
    let line = gate.line(kind).unwrap();
    assert_eq!(line.waiting(), 0, "and nobody is waited for");
}

#[test]
fn no_more_are_held_than_begin_while_one_is_but_whoever_came_before_them_is() {
    // Six begin per second, and each is held for a second; forty have begun, so that the law is
    // believed.
    let (mut gate, route, kind) = lined(Metered::new(40, 6.0));
    let asks = |session| Arrival { route, session: Some(session) };
    for _ in 0..40 {
        gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
        started(&mut gate)
            .into_iter()
            .for_each(|start| gate.handle_end(at(0.0), start.permit, Outcome::Completed));
    }
    gate.handle_command(at(0.0), kind, Command::Pause);
    let mut places = vec![];
    for _ in 0..30 {
        gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
        places.push(told_at_once(&mut gate).position.expect("it drew one"));
    }
    gate.handle_command(at(0.0), kind, Command::Move);
    // The line hears of the pace with the first tick.
    pass(&mut gate, at(0.3));
    let now = at(0.3);
    let is_called = |position: &&Position| gate.handle_contact(now, kind, **position).unwrap().is_called();
    let called: Vec<Position> = places.iter().filter(is_called).copied().collect();
    assert!(called.len() > 10, "more are called than have room: {}", called.len());
    gate.handle_arrival(now, asks(placed(kind, called[1])));
    assert_eq!(started(&mut gate).len(), 1, "there is a token");
    let held = |gate: &mut Gate, position: Position| {
        gate.handle_arrival(now, asks(placed(kind, position)));
        gate.poll_output().is_none()
    };
    let room: Vec<bool> = called[2..].iter().map(|position| held(&mut gate, *position)).collect();
    assert_eq!(room.iter().filter(|is_held| **is_held).count(), 6, "{room:?}");
    assert!(held(&mut gate, called[0]), "a lower number is never sent away for those behind");
}

#[test]
fn before_the_law_knows_much_twice_as_many_are_held() {
    let (mut gate, route, kind) = lined(Metered::new(40, 6.0));
    let held_at_once = |gate: &Gate| gate.line(kind).unwrap().held_at_once();
    pass(&mut gate, at(0.3));
    assert_eq!(held_at_once(&gate), 12);
    for _ in 0..40 {
        gate.handle_arrival(at(0.3), Arrival { route, session: Some(Membership::Newcomer(kind)) });
    }
    assert_eq!(started(&mut gate).len(), 40);
    pass(&mut gate, at(0.6));
    assert_eq!(held_at_once(&gate), 6);
}

#[test]
fn a_number_begins_one_session_whoever_comes_with_it() {
    let (mut gate, route, kind) = lined(Metered::new(1, 2.0));
    let asks = |session| Arrival { route, session: Some(session) };
    gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
    let first = started(&mut gate).pop().unwrap();
    gate.handle_command(at(0.0), kind, Command::Pause);
    gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
    let position = told_at_once(&mut gate).position.expect("it drew one");
    gate.handle_command(at(0.0), kind, Command::Move);
    pass(&mut gate, at(0.3));
    // Two tabs, and somebody who was given the ticket, before it is their turn: one is held, the
    // others are told to wait.
    let tabs = [0; 3].map(|_| gate.handle_arrival(at(0.3), asks(placed(kind, position))));
    let waits: Vec<_> = [told_at_once(&mut gate), told_at_once(&mut gate)].map(|it| it.request).into();
    assert_eq!(waits, tabs[1..]);
    let begun = pass(&mut gate, at(1.0));
    let start = |output: &Output| match output {
        Output::Start(start) => Some((start.request, start.session)),
        _ => None,
    };
    let own = Some((kind, session_of(position)));
    assert_eq!(begun.iter().filter_map(start).collect::<Vec<_>>(), [(tabs[0], own)]);
    // A client that presents it now belongs to that session, and takes no turn.
    let later = gate.handle_arrival(at(1.1), asks(placed(kind, position)));
    let start = started(&mut gate).pop().unwrap();
    assert_eq!((start.request, start.session), (later, own));
    assert_eq!(gate.snapshot(at(1.1)).kinds[kind.index()].admitted, 2);
    // Once it is over the number is nobody's: they wait like everybody, in another place.
    gate.handle_session_signal(at(1.1), session_of(position), SessionSignal::Ends);
    gate.handle_command(at(1.1), kind, Command::Pause);
    gate.handle_arrival(at(1.1), asks(placed(kind, position)));
    let other = told_at_once(&mut gate).position;
    assert!(other.is_some_and(|other| other.number > position.number), "{other:?}");
    gate.handle_end(at(1.1), first.permit, Outcome::Completed);
}

#[test]
fn whoever_asks_only_to_begin_is_held_until_their_session_has_and_takes_no_slot() {
    let (mut gate, route, kind) = lined(Metered::new(1, 2.0));
    let asks = |session| Arrival { route, session: Some(session) };
    gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
    let first = started(&mut gate).pop().unwrap();
    gate.handle_command(at(0.0), kind, Command::Pause);
    gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
    let position = told_at_once(&mut gate).position.expect("it drew one");
    let enters = asks(Membership::Entering { kind, position, session: session_of(position) });
    gate.handle_arrival(at(0.0), enters);
    let told = told_at_once(&mut gate);
    assert!(matches!(told.standing, PositionStatus::Paused(_)) && told.begun.is_none(), "{told:?}");
    gate.handle_command(at(0.0), kind, Command::Move);
    pass(&mut gate, at(0.3));
    // In two tabs: one is held, the other told to ask again.
    let tabs = [0; 2].map(|_| gate.handle_arrival(at(0.3), enters));
    let again = told_at_once(&mut gate);
    assert!(again.request == tabs[1] && again.standing.is_called() && again.begun.is_none(), "{again:?}");
    let begun = pass(&mut gate, at(1.0)).into_iter().find_map(|output| match output {
        Output::Wait(told) => Some(told),
        Output::Start(start) => panic!("nothing of it goes to the application: {start:?}"),
        _ => None,
    });
    let begun = begun.expect("a token came");
    assert_eq!((begun.request, begun.begun), (tabs[0], Some(session_of(position))));
    let seen = gate.snapshot(at(1.0));
    assert_eq!((seen.in_flight, seen.waiting, seen.kinds[kind.index()].admitted), (1, 0, 2));
    // A client that asks again gets the same answer, and its next request is of that session.
    gate.handle_arrival(at(1.1), enters);
    assert_eq!(told_at_once(&mut gate).begun, Some(session_of(position)));
    gate.handle_arrival(at(1.2), asks(placed(kind, position)));
    assert_eq!(started(&mut gate).pop().unwrap().session, Some((kind, session_of(position))));
    // Once it is over there is nothing to come in with.
    gate.handle_session_signal(at(1.3), session_of(position), SessionSignal::Ends);
    gate.handle_arrival(at(1.3), enters);
    let over = told_at_once(&mut gate);
    assert_eq!((over.begun, over.position), (None, None));
    gate.handle_end(at(1.3), first.permit, Outcome::Completed);
}

#[test]
fn whoever_asks_only_to_begin_is_told_after_a_while_how_many_are_ahead_at_the_gate() {
    // One begins, and then nobody for a long time.
    let (mut gate, route, kind) = lined(Metered::new(1, 0.01));
    let asks = |session| Arrival { route, session: Some(session) };
    gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
    started(&mut gate);
    gate.handle_command(at(0.0), kind, Command::Pause);
    let places = [(); 3].map(|()| {
        gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
        told_at_once(&mut gate).position.unwrap()
    });
    gate.handle_command(at(0.0), kind, Command::Move);
    pass(&mut gate, at(0.3));
    for position in places {
        gate.handle_arrival(
            at(0.3),
            asks(Membership::Entering { kind, position, session: session_of(position) }),
        );
    }
    assert!(gate.poll_output().is_none(), "all of them are held");
    let told = pass(&mut gate, at(2.0)).into_iter().filter_map(|output| match output {
        Output::Wait(told) => Some(told),
        _ => None,
    });
    let told: Vec<InLine> = told.collect();
    let ahead = |told: &InLine| match told.standing {
        PositionStatus::Called(left) => left.ahead,
        ref other => panic!("{other:?}"),
    };
    assert_eq!(told.iter().map(ahead).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(told.iter().all(|told| told.begun.is_none()));
}

#[test]
fn whoever_is_at_the_gate_with_the_lowest_number_begins_first() {
    let (mut gate, route, kind) = lined(Metered::new(1, 2.0));
    let asks = |session| Arrival { route, session: Some(session) };
    gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
    started(&mut gate);
    gate.handle_command(at(0.0), kind, Command::Pause);
    let places = [(); 2].map(|()| {
        gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
        told_at_once(&mut gate).position.unwrap()
    });
    gate.handle_command(at(0.0), kind, Command::Move);
    pass(&mut gate, at(0.3));
    let later = gate.handle_arrival(at(0.3), asks(placed(kind, places[1])));
    let sooner = gate.handle_arrival(at(0.4), asks(placed(kind, places[0])));
    assert!(gate.poll_output().is_none(), "no token is there yet");
    let begun = pass(&mut gate, at(1.1)).into_iter().filter_map(|output| match output {
        Output::Start(start) => Some(start.request),
        _ => None,
    });
    assert_eq!(begun.collect::<Vec<_>>(), [sooner, later]);
}

#[test]
fn whoever_has_just_come_is_not_held_before_those_who_are_on_the_way_from_their_page() {
    let (mut gate, route, kind) = lined(Metered::new(1, 2.0));
    let asks = |session| Arrival { route, session: Some(session) };
    gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
    started(&mut gate);
    gate.handle_command(at(0.0), kind, Command::Pause);
    gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
    let position = told_at_once(&mut gate).position.unwrap();
    gate.handle_command(at(0.0), kind, Command::Move);
    pass(&mut gate, at(0.3));
    assert!(gate.handle_contact(at(0.3), kind, position).unwrap().is_called());
    gate.handle_arrival(at(0.4), asks(Membership::Newcomer(kind)));
    let told = told_at_once(&mut gate);
    assert!(told.standing.is_called(), "it is their turn too, and they come from their page");
    gate.handle_arrival(at(0.45), asks(placed(kind, position)));
    gate.handle_arrival(at(0.46), asks(placed(kind, told.position.unwrap())));
    gate.handle_arrival(at(0.47), asks(Membership::Newcomer(kind)));
    assert!(
        gate.poll_output().is_none(),
        "all who came before are at the gate, and so is the one that comes now"
    );
}

/// Returns a line where another gate's ended that had told these places of their turns, and those
/// places.
fn resumed(law: Box<Metered>, called: usize) -> (Gate, RouteId, KindId, Vec<Position>) {
    let (mut gate, route, kind) = lined(Metered::new(1, 1.0));
    gate.handle_command(at(0.0), kind, Command::Pause);
    let places = Vec::from_iter((0..called).map(|_| {
        let session = Some(Membership::Newcomer(kind));
        gate.handle_arrival(at(0.0), Arrival { route, session });
        told_at_once(&mut gate).position.unwrap()
    }));
    gate.handle_command(at(0.0), kind, Command::Move);
    pass(&mut gate, at(0.5));
    for position in &places {
        assert!(gate.handle_contact(at(0.5), kind, *position).unwrap().is_called());
    }
    let saved = gate.line(kind).unwrap().saved();
    let (mut gate, route, kind) = lined(law);
    gate.restore_line(at(0.0), kind, &saved, 0, false);
    (gate, route, kind, places)
}

#[test]
fn after_a_restart_whoever_is_back_first_does_not_begin_before_those_who_stand_before_them() {
    let (mut gate, route, kind, places) = resumed(Metered::new(10, 1.0), 6);
    let mut comes = BTreeMap::new();
    let mut began = vec![];
    // They come back the other way round, the fourth not at all; two are sent back to their pages,
    // and come once more.
    let comers = [(0.5, 5), (0.6, 4), (0.8, 2), (0.9, 1), (1.0, 0), (4.2, 5), (4.3, 4)];
    let hear =
        |outputs: Vec<Output>, comes: &BTreeMap<RequestId, usize>, began: &mut Vec<(f64, usize)>, now| {
            for output in outputs {
                match output {
                    Output::Start(start) => began.push((now, comes[&start.request])),
                    Output::Wait(told) => assert!(told.standing.is_called() && comes[&told.request] > 3),
                    Output::Refuse(refusal) => panic!("{refusal:?}"),
                    Output::Decided(_) | Output::Resumed(_) => {}
                }
            }
        };
    for (now, index) in comers {
        hear(pass(&mut gate, at(now)), &comes, &mut began, now);
        let session = Some(placed(kind, places[index]));
        comes.insert(gate.handle_arrival(at(now), Arrival { route, session }), index);
        hear(std::iter::from_fn(|| gate.poll_output()).collect(), &comes, &mut began, now);
    }
    assert_eq!(began, [(1.0, 0), (1.0, 1), (1.0, 2)], "once all of the first three are back");
    hear(pass(&mut gate, at(4.9)), &comes, &mut began, 4.9);
    assert_eq!(began.len(), 3);
    hear(pass(&mut gate, at(5.1)), &comes, &mut began, 5.1);
    assert_eq!(began[3..], [(5.1, 4), (5.1, 5)], "nobody is waited for longer than some seconds");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn nobody_begins_without_a_token_and_no_more_are_held_than_may_be(
        depth in 1_u32..5,
        per_second in 0.2..20.0,
        waiting_max in 1_usize..8,
        events in prop::collection::vec(event(), 1..400),
    ) {
        let declare = |gate: &mut Gate, params| {
            gate.declare_kind_with_law(Instant::ORIGIN, params, Metered::new(depth, per_second))
        };
        let mut shell = Shell::with_law(Params { waiting_max, sessions_max: 60, ..Params::default() }, declare);
        for event in &events {
            shell.play(event)?;
        }
    }
}

#[test]
fn a_called_visitor_who_never_comes_is_no_reason_for_more_nodes() {
    let (mut gate, route, kind) = lined(Metered::new(1, 2.0));
    let asks = |session| Arrival { route, session: Some(session) };
    gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
    started(&mut gate);
    gate.handle_command(at(0.0), kind, Command::Pause);
    gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
    let position = told_at_once(&mut gate).position.unwrap();
    gate.handle_command(at(0.0), kind, Command::Move);
    let newcomers = |gate: &Gate, now| gate.snapshot(now).asked().newcomers.iter().sum::<f64>();
    for second in 1..=600 {
        let now = at(f64::from(second));
        pass(&mut gate, now);
        if second % 5 == 0 {
            assert!(gate.handle_contact(now, kind, position).unwrap().is_called());
        }
        if second == 5 {
            assert!(newcomers(&gate, now) > 0.5, "it may come in a moment");
        }
    }
    assert!(newcomers(&gate, at(600.0)) < 0.5, "it asks for its place only");
}

//! Recordings of a gate with random visitors, played again and played with other settings.

mod world;

use super::*;
use proptest::prelude::*;
use suimon_control::SessionLawKind;
use suimon_gate::{
    Adoption, Amount, Arrival, DegradationMode, Gate, InLine, KindParams, Membership, Output, Params,
    PausePlace, Permit, Refusal, RouteMode, ServiceParams, ServiceWish, Services, SessionSignal,
};
use suimon_line::{Command, Lane, Position};
use suimon_model::{KindId, Limit, Outcome, PoolId, RouteId, SessionId, seconds};
use suimon_record::{Encoder, Event, Header, NAME_BYTES_MAX, SegmentEnd};
use world::{ROUTES, World, session_of};

/// Forty seconds of a gate with a line, in two segments. The application sends signals, and the
/// operator stops the line now and then.
fn recording_of_a_line() -> Vec<Vec<u8>> {
    let kind = KindParams {
        line: Some(suimon_line::Params::default()),
        hold: Some(seconds(0.4)),
        ..KindParams::default()
    };
    let mut world = World::of_kind(Params { cores: 1, ..Params::default() }, kind, 7);
    world.play(20.0);
    world.rotate();
    world.play(20.0);
    assert!(world.told > 100 && world.came_in > 20, "{} told, {} came in", world.told, world.came_in);
    world.end()
}

/// Forty seconds of a crowded gate, in three segments.
fn recording() -> Vec<Vec<u8>> {
    let mut world = World::new(Params::default(), 7);
    for seconds in [15.0, 15.0] {
        world.play(seconds);
        world.rotate();
    }
    world.play(10.0);
    assert!(world.waited > 500, "{} waited: the gate has something to decide", world.waited);
    world.end()
}

fn played(segments: &[Vec<u8>]) -> Replay {
    let mut replay = Replay::for_what_if();
    for bytes in segments {
        replay.play(&Segment::read(bytes).unwrap()).unwrap();
    }
    replay
}

fn what_if(params: Params, segments: &[Vec<u8>], recorded: &Replay) -> (Figures, u64, u64) {
    let mut what_if = WhatIf::new(move |_| Ok(params.clone()), recorded);
    for bytes in segments {
        what_if.play(&Segment::read(bytes).unwrap()).unwrap();
    }
    (what_if.figures(), what_if.decided, what_if.trace)
}

#[test]
fn a_recording_played_again_is_the_same_to_the_last_bit() {
    let segments = recording();
    let replay = played(&segments);
    assert!(replay.divergence.is_none(), "{:?}", replay.divergence);
    assert_eq!((replay.segments, replay.runs), (3, 1));
    assert!(replay.marks >= 40 && replay.events > 4000, "{} marks, {} events", replay.marks, replay.events);
    assert!(replay.decided > 20 && replay.decisions.len() as u64 == replay.decided);
    let figures = replay.figures();
    assert!(figures.admitted > 900 && figures.wait_p95 > figures.wait_mean, "{figures:?}");
    assert!(figures.routes.iter().all(|route| route.limit_mean.is_some_and(|limit| limit >= 1.0)));

    // Without the segments before, and with a gap: each segment has the state it begins with.
    for part in [&segments[1..], &segments[2..]] {
        assert!(played(part).divergence.is_none());
    }
    let holed = played(&[segments[0].clone(), segments[2].clone()]);
    assert!(holed.divergence.is_none() && holed.runs == 2);
}

#[test]
fn a_recording_of_a_line_played_again_is_the_same_to_the_last_bit() {
    let segments = recording_of_a_line();
    let replay = played(&segments);
    assert!(replay.divergence.is_none(), "{:?}", replay.divergence);
    assert_eq!((replay.segments, replay.runs), (2, 1));
    assert!(played(&segments[1..]).divergence.is_none());
    let (figures, decided, trace) = what_if(Params { cores: 1, ..Params::default() }, &segments, &replay);
    assert_eq!((decided, trace), (replay.decided, replay.trace), "what if nothing were different");
    assert_eq!(format!("{figures:?}"), format!("{:?}", replay.figures()));
}

#[test]
fn the_line_and_how_sessions_ended_are_seen_over_time() {
    let segments = recording_of_a_line();
    let mut replay = Replay::for_timeline();
    segments.iter().for_each(|bytes| replay.play(&Segment::read(bytes).unwrap()).unwrap());
    let (figures, timeline) = (replay.figures(), replay.timeline().unwrap());
    let sum = |of: fn(&Bin) -> u64| timeline.bins.iter().map(of).sum::<u64>();
    let visitors = &timeline.visitors;
    assert!(visitors.in_line_max > 0 && visitors.waiting_pages > 0, "{visitors:?}");
    assert_eq!(figures.waiting_pages, visitors.waiting_pages);
    assert_eq!(
        (sum(|bin| bin.waiting_pages), sum(|bin| bin.began)),
        (visitors.waiting_pages, visitors.began)
    );
    assert_eq!(figures.refused, timeline.refusals.values().sum::<u64>(), "a waiting page is no refusal");
    let ended = |ends: &suimon_gate::SessionEnds| ends.finished + ends.silent + ends.abandoned + ends.failed;
    assert_eq!(sum(|bin| bin.ends.silent), visitors.ends.silent);
    assert!(ended(&visitors.ends) > 0 && ended(&visitors.ends) <= visitors.began + visitors.ends.reopened);
    assert!(visitors.waits.count() > 0 && visitors.waits.count() <= visitors.began, "{visitors:?}");
    let longest = visitors.waits.max().unwrap();
    assert!(longest > figures.wait_p95, "{longest:?} in line, {:?} held", figures.wait_p95);
    assert!(visitors.admitted + visitors.still_waiting + visitors.abandoned() >= visitors.issued);
}

#[test]
fn what_happened_over_time_adds_up_to_what_happened() {
    let segments = recording();
    let mut replay = Replay::for_timeline();
    segments.iter().for_each(|bytes| replay.play(&Segment::read(bytes).unwrap()).unwrap());
    let (figures, timeline) = (replay.figures(), replay.timeline().unwrap());
    let sum = |of: fn(&Bin) -> u64| timeline.bins.iter().map(of).sum::<u64>();
    assert_eq!((sum(|bin| bin.came), sum(|bin| bin.let_in)), (figures.offered, figures.admitted));
    assert_eq!(
        (sum(|bin| bin.refused), timeline.refusals.values().sum()),
        (figures.refused, figures.refused)
    );
    let by_route = |of: fn(&RouteLine) -> u64| timeline.routes.iter().map(of).sum::<u64>();
    assert_eq!(
        (by_route(|route| route.came), by_route(|route| route.refused)),
        (figures.offered, figures.refused)
    );
    assert_eq!(
        (by_route(|route| route.waits.count()), by_route(|route| route.abandoned)),
        (figures.admitted, sum(|bin| bin.abandoned))
    );
    // Each visitor who came has finished, or was still there at the end.
    let done = by_route(|route| {
        route.completed + route.failed + route.abandoned + route.refused + route.waiting_pages
    });
    let inside =
        timeline.bins.last().map(|bin| bin.gate.queued + bin.gate.held + bin.gate.in_flight).unwrap();
    assert!(
        done <= figures.offered && done + inside as u64 >= figures.offered,
        "{done} {inside} {figures:?}"
    );

    let gate = &timeline.bins[timeline.bins.len() / 2].gate;
    assert!(gate.limits.len() == ROUTES as usize && gate.limits.iter().all(Option::is_some), "{gate:?}");
    assert!(gate.intervals.len() == 1 && gate.in_flight > 0, "{gate:?}");
    assert!(timeline.changed > 0 && timeline.changed == timeline.reasons.values().sum::<u64>());
    assert!(timeline.changes.iter().all(|change| change.at <= timeline.seconds()));
    assert!((timeline.seconds() - replay.span.as_secs_f64()).abs() < 1e-6 && timeline.restarts.is_empty());

    // With a gap it is two runs, drawn one after the other.
    let mut holed = Replay::for_timeline();
    for bytes in [&segments[0], &segments[2]] {
        holed.play(&Segment::read(bytes).unwrap()).unwrap();
    }
    let timeline = holed.timeline().unwrap();
    assert_eq!((timeline.restarts.len(), timeline.routes.len()), (1, ROUTES as usize));
    assert!(
        (10.0..20.0).contains(&timeline.restarts[0]) && timeline.seconds() < 30.0,
        "{:?}",
        timeline.restarts
    );
}

#[test]
fn a_long_recording_has_no_more_bins_than_a_picture_can_show() {
    let mut world = World::new(Params::default(), 7);
    world.play(3.0);
    // After that no visitors for an hour.
    for _ in 0..3600 {
        world.now += seconds(1.0);
        world.push(&Event::Timeout);
        world.gate.handle_timeout(world.now);
        world.settle();
    }
    world.seal();
    let mut replay = Replay::for_timeline();
    world.end().iter().for_each(|bytes| replay.play(&Segment::read(bytes).unwrap()).unwrap());
    let timeline = replay.timeline().unwrap();
    let bins = timeline.bins.len();
    assert!(
        (200..=480).contains(&bins) && (7.9..8.1).contains(&timeline.width),
        "{bins} of {} s",
        timeline.width
    );
    assert!((timeline.width * bins as f64 - timeline.seconds()).abs() <= timeline.width);
    assert_eq!(timeline.bins.iter().map(|bin| bin.came).sum::<u64>(), replay.figures().offered);
}

#[test]
fn another_gate_is_noticed_and_the_moment_told() {
    let segments = recording();
    let mut segment = Segment::read(&segments[0]).unwrap();
    segment.header.params.order = suimon_gate::QueueOrder::LaterInSession;
    let mut replay = Replay::new();
    replay.play(&segment).unwrap();
    let divergence = replay.divergence.expect("in another order it decides otherwise");
    assert!(divergence.after < divergence.until && divergence.segment == 1, "{divergence:?}");

    // A state that differs from the one in which the segment before ended.
    let mut replay = Replay::new();
    replay.play(&Segment::read(&segments[0]).unwrap()).unwrap();
    let mut next = Segment::read(&segments[1]).unwrap();
    next.snapshot = Segment::read(&segments[2]).unwrap().snapshot;
    replay.play(&next).unwrap();
    assert_eq!(replay.divergence.unwrap().what, "the state of the gate");
}

#[test]
fn what_if_nothing_were_different_is_the_recording() {
    let segments = recording();
    for part in [&segments[..], &segments[1..]] {
        let recorded = played(part);
        let (figures, decided, trace) = what_if(Params::default(), part, &recorded);
        assert_eq!((decided, trace), (recorded.decided, recorded.trace));
        assert_eq!(format!("{figures:?}"), format!("{:?}", recorded.figures()));
    }
}

#[test]
fn another_setting_shows_in_the_figures() {
    let segments = recording();
    let recorded = played(&segments);
    let before = recorded.figures();

    let few = SessionLawKind::Static(3);
    let (turned_away, ..) = what_if(Params { session_law: few, ..Params::default() }, &segments, &recorded);
    assert!(turned_away.refused > before.refused + 50, "{turned_away:?} {before:?}");
    assert!(turned_away.not_come > 100 && turned_away.wait_mean < before.wait_mean, "{turned_away:?}");
    assert_eq!(turned_away.offered + turned_away.not_come, before.offered, "nobody is lost");

    let everybody = SessionLawKind::Open;
    let (open, ..) = what_if(Params { session_law: everybody, ..Params::default() }, &segments, &recorded);
    // Requests that would wait longer than any visitor stays are turned away at the route, with any
    // session law.
    assert!(open.refused < before.refused / 2, "{open:?} {before:?}");
    assert!(open.admitted != before.admitted || open.wait_mean != before.wait_mean, "{open:?}");
}

#[test]
fn settings_that_cannot_be_combined_with_recorded_ones_are_an_error_that_names_the_moment() {
    let mut world = World::new(Params::default(), 7);
    world.play(5.0);
    let few = Params { session_law: SessionLawKind::Static(9), ..Params::default() };
    world.push(&Event::Adopt(Box::new(few.clone().into())));
    world.gate.adopt(world.now, &few.into());
    world.settle();
    let adopted = world.now;
    world.play(5.0);
    world.rotate();
    world.play(1.0);
    let segments = world.end();
    let recorded = played(&segments);
    assert!(recorded.divergence.is_none(), "{:?}", recorded.divergence);

    let with = |params: &Params| match params.session_law {
        SessionLawKind::Static(_) => Err("no such pair".to_owned()),
        _ => Ok(Params { cores: 7, ..params.clone() }),
    };
    let told = |bytes: &[u8]| WhatIf::new(with, &recorded).play(&Segment::read(bytes).unwrap()).unwrap_err();
    let misfit = |segment, at| ReplayError::Misfit { segment, at, why: "no such pair".to_owned() };
    assert_eq!(told(&segments[0]), misfit(1, adopted), "where they were adopted");
    let second = Segment::read(&segments[1]).unwrap();
    assert_eq!(told(&segments[1]), misfit(2, second.header.at), "where a recording begins with them");
    let said = told(&segments[0]).to_string();
    assert!(
        said.contains("s after the gateway's start (segment 1)") && said.ends_with("no such pair"),
        "{said}"
    );
}

#[test]
fn what_a_gate_cannot_be_told_is_refused() {
    let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
    gate.declare_route(Instant::ORIGIN, RouteMode::Enforce);
    let (kind, session) = (KindId(9), SessionId(1));
    let position = Position { lane: Lane::Normal, number: 1 };
    let of_no_kind = [
        Membership::Newcomer(kind),
        Membership::WithoutLine(kind),
        Membership::Drawing { kind, lane: Lane::Normal },
        Membership::Placed { kind, position, session, draws: true },
        Membership::Entering { kind, position, session },
        Membership::Member { kind, session, leased: true, ends: false },
    ];
    let arrivals = of_no_kind.map(|session| Arrival { route: RouteId(0), session: Some(session) });
    for arrival in arrivals.into_iter().chain([Arrival { route: RouteId(9), session: None }]) {
        let mut encoder = Encoder::default();
        let mut file = suimon_record::begin(&Header::default(), &gate.save().unwrap());
        encoder.push(Instant::ORIGIN, &Event::Arrival(arrival));
        file.extend(suimon_record::events(&encoder.seal(gate.trace(), Vec::new())));
        file.extend(suimon_record::end(SegmentEnd::Closed));
        let segment = Segment::read(&file).unwrap();
        let mut replay = Replay::for_what_if();
        let why = replay.play(&segment).unwrap_err();
        assert!(why.to_string().contains("was not declared"), "{arrival:?}: {why}");
        let other = WhatIf::new(|recorded| Ok(recorded.clone()), &replay).play(&segment);
        assert_eq!(other, Err(why), "{arrival:?}");
    }
}

/// Two services: of the first two routes, and of the third; `split`: with wishes that soon bind.
fn services(mode: usize, split: bool, pause: u64) -> Services {
    let of = |routes: &[u32], slowdown: f64| ServiceParams {
        name: "service".to_owned(),
        routes: routes.iter().copied().map(RouteId).collect(),
        wish: ServiceWish {
            slowdown,
            ceiling: split.then_some(Amount::PerSecond(0.5)),
            alone: Some(0.01),
            ..ServiceWish::default()
        },
        pause: Duration::from_millis(pause),
        pause_ratio: slowdown,
        pauses: if split { PausePlace::Inside } else { PausePlace::Around },
    };
    let modes = [DegradationMode::Off, DegradationMode::Slowdown, DegradationMode::Shares];
    Services { mode: modes[mode], services: vec![of(&[0, 1], 1.0), of(&[2], 9.0)] }
}

fn any_event() -> impl Strategy<Value = Event> {
    let position = || {
        (prop::sample::select(Lane::ALL.to_vec()), 0u64..5)
            .prop_map(|(lane, number)| Position { lane, number })
    };
    let kind = || (0u32..3).prop_map(KindId);
    let command = prop_oneof![
        Just(Command::Pause),
        Just(Command::Move),
        Just(Command::Close),
        (any::<u32>(), any::<Option<[u64; 2]>>())
            .prop_map(|(at, lots)| Command::OpenAt { at: Instant::from_nanos(u64::from(at)), lots }),
    ];
    let word = prop_oneof![
        Just(SessionSignal::Ends),
        Just(SessionSignal::Checkout),
        any::<u32>().prop_map(SessionSignal::Weighs)
    ];
    let line = any::<bool>().prop_map(|has| has.then(suimon_line::Params::default));
    let session =
        prop_oneof![
            Just(None),
            kind().prop_map(|kind| Some(Membership::Newcomer(kind))),
            kind().prop_map(|kind| Some(Membership::WithoutLine(kind))),
            (kind(), position())
                .prop_map(|(kind, Position { lane, .. })| Some(Membership::Drawing { kind, lane })),
            (kind(), position(), any::<bool>()).prop_map(|(kind, position, draws)| Some(
                Membership::Placed { kind, position, session: session_of(position), draws }
            )),
            (kind(), position()).prop_map(|(kind, position)| Some(Membership::Entering {
                kind,
                position,
                session: session_of(position)
            })),
            (0u32..3, 0u64..4, any::<bool>()).prop_map(|(kind, session, ends)| Some(Membership::Member {
                kind: KindId(kind),
                session: SessionId(session),
                leased: true,
                ends
            })),
        ];
    let request = || (0u64..6, 0u64..3).prop_map(|(index, generation)| RequestId(generation << 32 | index));
    let outcome = prop_oneof![Just(Outcome::Completed), Just(Outcome::Declined), Just(Outcome::Abandoned)];
    prop_oneof![
        3 => Just(Event::Timeout),
        1 => Just(Event::Drain),
        1 => any::<bool>().prop_map(Event::Application),
        // Most are requests: an end of a request that was never admitted ends the replay.
        9 => (0u32..3, session)
            .prop_map(|(route, session)| Event::Arrival(Arrival { route: RouteId(route), session })),
        1 => request().prop_map(Event::Departure),
        1 => (request(), outcome).prop_map(|(request, outcome)| Event::End(request, outcome)),
        1 => (request(), 0u64..9).prop_map(|(request, nanos)| Event::Suspend(request, Duration::from_nanos(nanos))),
        1 => request().prop_map(Event::Resume),
        1 => (request(), 0u64..9).prop_map(|(request, nanos)| Event::Paused(request, Duration::from_nanos(nanos))),
        1 => "[a-z]{1,9}".prop_map(|name| Event::Route { is_mixed: false, mode: RouteMode::Fixed(Limit::of(1)), name }),
        1 => (0u32..2, "[a-z]{1,9}").prop_map(|(route, name)| Event::Renewed { route: RouteId(route), mode: RouteMode::Enforce, name }),
        1 => (0u32..2, 0u32..2).prop_map(|(route, other)| Event::LimitOf { route: RouteId(route), other: RouteId(other) }),
        1 => (1u32..9, 0u32..3, 0u32..9).prop_map(|(cores, index, limit)| {
            let mode = if limit == 0 { RouteMode::Enforce } else { RouteMode::Fixed(Limit::of(limit)) };
            let kind = KindParams { hold: Some(seconds(f64::from(limit))), ..KindParams::default() };
            Event::Adopt(Box::new(Adoption {
                params: Params { cores, ..Params::default() },
                routes: vec![(RouteId(index), mode)],
                kinds: vec![(KindId(index), kind)],
            }))
        }),
        1 => (0usize..3, any::<bool>(), 0u64..900).prop_map(|(mode, split, pause)| Event::Services(Box::new(services(mode, split, pause)))),
        1 => (0u64..90).prop_map(|millis| Event::Lag(Duration::from_millis(millis))),
        1 => (0u32..3, proptest::option::of(0u32..40)).prop_map(|(pool, ready)| Event::Workers(PoolId(pool), ready)),
        1 => (0u32..5, 0u32..5).prop_map(|(before, now_there)| Event::Nodes(before, now_there)),
        1 => (0u32..2, 0u32..20).prop_map(|(route, pool)| Event::PoolOf(RouteId(route), PoolId(pool))),
        1 => ("[a-z]{1,9}", line).prop_map(|(name, line)| Event::Kind {
            params: KindParams { line, ..KindParams::default() },
            name
        }),
        3 => (kind(), position()).prop_map(|(kind, position)| Event::Contact(kind, position)),
        3 => (kind(), command).prop_map(|(kind, command)| Event::Command(kind, command)),
        3 => (0u64..4, word).prop_map(|(session, word)| Event::SessionSignal(SessionId(session), word)),
    ]
}

/// A gate with three routes and three kinds, of which two have a line.
fn gate_of_three_kinds() -> Gate {
    let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
    (0..3).for_each(|_| _ = gate.declare_route(Instant::ORIGIN, RouteMode::Fixed(Limit::of(1))));
    for line in [None, Some(suimon_line::Params::default()), Some(suimon_line::Params::default())] {
        let hold = Some(seconds(0.5));
        gate.declare_kind(Instant::ORIGIN, KindParams { line, hold, ..KindParams::default() });
    }
    gate
}

/// Passes the events to a gate, as far as their requests exist, and records them.
fn recording_of(events: &[(u32, Event)]) -> Vec<u8> {
    let mut gate = gate_of_three_kinds();
    let mut file = suimon_record::begin(&Header::default(), &gate.save().unwrap());
    let mut encoder = Encoder::default();
    let (mut now, mut tokens, mut waiting) = (Instant::ORIGIN, Vec::<Permit>::new(), Vec::<RequestId>::new());
    for (passed, event) in events {
        now += Duration::from_nanos(u64::from(*passed));
        let pick = |request: RequestId, among: usize| (request.0 as usize).checked_rem(among);
        // Ids of existing requests replace the random ones.
        let event = match event.clone() {
            Event::End(request, outcome) => match pick(request, tokens.len()) {
                Some(index) => Event::End(tokens[index].request(), outcome),
                None => continue,
            },
            Event::Suspend(request, client_time) => match pick(request, tokens.len()) {
                Some(index) => Event::Suspend(tokens[index].request(), client_time),
                None => continue,
            },
            Event::Paused(request, paused) => match pick(request, tokens.len()) {
                Some(index) => Event::Paused(tokens[index].request(), paused),
                None => continue,
            },
            Event::Resume(request) => match pick(request, tokens.len()) {
                Some(index) => Event::Resume(tokens[index].request()),
                None => continue,
            },
            Event::Departure(request) => match pick(request, waiting.len()) {
                Some(index) => Event::Departure(waiting.swap_remove(index)),
                None => continue,
            },
            Event::Route { .. } | Event::Kind { .. } | Event::Drain => continue,
            event => event,
        };
        encoder.push(now, &event);
        match event {
            Event::Arrival(arrival) => waiting.push(gate.handle_arrival(now, arrival)),
            Event::Departure(request) => gate.handle_departure(now, request),
            Event::End(request, outcome) => {
                let index = tokens.iter().position(|permit| permit.request() == request).unwrap();
                gate.handle_end(now, tokens.swap_remove(index), outcome);
            }
            Event::Timeout => gate.handle_timeout(now),
            Event::Contact(kind, position) => _ = gate.handle_contact(now, kind, position),
            Event::Command(kind, command) => _ = gate.handle_command(now, kind, command),
            Event::Application(is_up) => gate.handle_application(now, is_up),
            Event::SessionSignal(session, word) => gate.handle_session_signal(now, session, word),
            Event::Suspend(request, client_time) => _ = gate.handle_suspend(now, request, client_time),
            Event::Resume(request) => _ = gate.handle_resume(now, request),
            Event::Paused(request, paused) => gate.handle_paused(request, paused),
            Event::Renewed { route, mode, name: _ } => gate.renew_route(now, route, mode),
            Event::LimitOf { route, other } => gate.begin_with_limit_of(route, other),
            Event::Adopt(adoption) => gate.adopt(now, &adoption),
            Event::Services(services) => gate.declare_services(now, *services),
            Event::Lag(lag) => gate.handle_lag(lag),
            Event::Workers(pool, ready) => gate.handle_workers(now, pool, ready),
            Event::Nodes(before, now_there) => gate.handle_nodes(now, before, now_there),
            Event::PoolOf(route, pool) => gate.give_to_pool(now, route, pool),
            Event::Route { .. } | Event::Kind { .. } | Event::Drain => {}
        }
        while let Some(output) = gate.poll_output() {
            encoder.answer(&output);
            let request = match output {
                Output::Start(start) => {
                    let request = start.request;
                    tokens.push(start.permit);
                    request
                }
                Output::Refuse(Refusal { request, .. }) | Output::Wait(InLine { request, .. }) => request,
                Output::Resumed(_) | Output::Decided(_) => continue,
            };
            waiting.retain(|other| *other != request);
        }
    }
    file.extend(suimon_record::events(&encoder.seal(gate.trace(), Vec::new())));
    file.extend(suimon_record::end(SegmentEnd::Closed));
    file
}

proptest! {
    #[test]
    fn whatever_happens_is_the_same_when_it_is_played_again(
        events in prop::collection::vec((0u32..400_000_000, any_event()), 0..200),
    ) {
        let file = recording_of(&events);
        let segment = Segment::read(&file).unwrap();
        let mut replay = Replay::for_what_if();
        replay.play(&segment).unwrap();
        prop_assert!(replay.divergence.is_none(), "{:?}", replay.divergence);
        let mut what_if = WhatIf::new(|recorded| Ok(recorded.clone()), &replay);
        what_if.play(&segment).unwrap();
        prop_assert_eq!((what_if.decided, what_if.trace), (replay.decided, replay.trace));
        prop_assert_eq!(format!("{:?}", what_if.figures()), format!("{:?}", replay.figures()));
        let params = Params { session_law: SessionLawKind::Open, cores: 7, ..Params::default() };
        WhatIf::new(|_| Ok(params.clone()), &replay).play(&segment).unwrap();
    }

    #[test]
    fn whatever_events_are_played_nothing_panics(events in prop::collection::vec((any::<u32>(), any_event()), 0..200)) {
        let gate = gate_of_three_kinds();
        let mut file = suimon_record::begin(&Header::default(), &gate.save().unwrap());
        for (at, event) in events {
            let mut encoder = Encoder::default();
            encoder.push(Instant::from_nanos(u64::from(at)), &event);
            file.extend(suimon_record::events(&encoder.seal(gate.trace(), Vec::new())));
        }
        file.extend(suimon_record::end(SegmentEnd::Closed));
        prop_assert!(file.len() > NAME_BYTES_MAX / 4);
        let segment = Segment::read(&file).unwrap();
        let _ = Replay::for_timeline().play(&segment);
        let mut replay = Replay::for_what_if();
        let _ = replay.play(&segment);
        let params = Params { session_law: SessionLawKind::Open, cores: 7, ..Params::default() };
        let _ = WhatIf::new(|_| Ok(params.clone()), &replay).play(&segment);
    }
}

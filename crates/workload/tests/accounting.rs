//! Whatever the server does, the counts add up: checked after every event of random runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use suimon_model::{Duration, Instant, Rng, seconds};
use suimon_workload::{
    Arrivals, InLine, Journey, Next, OnFailure, OnRefusal, Patience, Retry, Spacing, Starts, Step,
    StepOutcome, Tally, Think, Visitor, Window, Workload,
};

#[derive(Clone, Debug)]
struct Shape {
    steps: usize,
    leave: f64,
    users: u32,
    sessions_each: u32,
    retry: Option<(usize, u32)>,
    refusals_max: u32,
    /// Chances of: passed, failed, refused with `Retry-After`, refused without, disconnected;
    /// otherwise timed out.
    odds: [f64; 5],
    warmup_s: f64,
    seed: u64,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let retry = prop::option::of((0usize..4, 0u32..5));
    let leave = prop_oneof![Just(0.0), 0.0..0.5f64];
    let odds = prop::array::uniform5(0.0..1.0f64);
    (1usize..6, 1u32..9, 1u32..4, retry, 0u32..4, odds, 0.0..20.0f64, any::<u64>(), leave).prop_map(
        |(steps, users, sessions_each, retry, refusals_max, odds, warmup_s, seed, leave)| Shape {
            steps,
            leave,
            users,
            sessions_each,
            retry,
            refusals_max,
            odds,
            warmup_s,
            seed,
        },
    )
}

fn workload(shape: &Shape) -> Workload {
    let journey = |name: &str, steps: usize| {
        Arc::new(Journey {
            name: name.into(),
            weight: 1.0,
            users: None,
            steps: (0..steps).map(|i| Step::get(&format!("s{i}"), "/")).collect(),
            think: Think::Exponential { mean: Duration::from_secs(1) },
            patience: Patience::Constant(Duration::from_secs(5)),
            on_failure: match shape.retry {
                None => OnFailure::GiveUp,
                Some((from, retries_max)) => OnFailure::Retry(Retry {
                    from,
                    from_after_error: from / 2,
                    retries_max,
                    pause_after_timeout: Duration::ZERO,
                    pause_after_error: Duration::from_secs(1),
                }),
            },
            leave: shape.leave,
            on_refusal: OnRefusal { retries_max: shape.refusals_max, ..OnRefusal::default() },
            in_line: InLine::default(),
        })
    };
    Workload {
        kinds: vec![journey("long", shape.steps), journey("short", 1)],
        arrivals: Arrivals::Closed {
            users: shape.users,
            start_over: Duration::from_secs(1),
            spacing: Spacing::Poisson,
            sessions_each: Some(shape.sessions_each),
            pause: Think::Constant(Duration::from_secs(2)),
        },
        returning: false,
        seed: shape.seed,
    }
}

/// A server that answers at random: how a step ends, and after how long.
fn dice(shape: &Shape, patience: Option<Duration>, rng: &mut Rng) -> (StepOutcome, Duration) {
    let [passed, failed, told, untold, disconnected] = shape.odds;
    let outcomes = [
        StepOutcome::Passed,
        StepOutcome::Failed,
        StepOutcome::Refused { retry_after: Some(Duration::from_secs(2)) },
        StepOutcome::Refused { retry_after: None },
        StepOutcome::Disconnected,
        StepOutcome::TimedOut,
        StepOutcome::InLine { again_after: Duration::from_secs(3) },
    ];
    let drawn =
        rng.weighted(&[passed, failed, told, untold, disconnected, 0.2, 0.2]).expect("time-outs have odds");
    match (outcomes[drawn], patience) {
        (StepOutcome::TimedOut, Some(patience)) => (StepOutcome::TimedOut, patience),
        (outcome, _) => (outcome, seconds(rng.between(0.0, 4.0))),
    }
}

struct User {
    rng: Rng,
    visitor: Option<Visitor>,
    begun: bool,
    played: u32,
    steps: u64,
}

enum Event {
    SessionBegins,
    Ask,
    Ends(StepOutcome),
}

/// Plays the whole workload; `check` gets the counts after every event. Returns them, and the good
/// answers that all completed sessions needed.
fn play(
    shape: &Shape,
    mut check: impl FnMut(&Tally) -> Result<(), TestCaseError>,
) -> Result<(Tally, u64), TestCaseError> {
    let workload = workload(shape);
    let window = Window { from: Instant::ORIGIN + seconds(shape.warmup_s), to: Instant::FAR_FUTURE };
    let mut tally = Tally::new(&workload, window);
    let mut server = Rng::new(shape.seed ^ 1);
    let mut needed = 0;
    let mut users: Vec<User> = (0..shape.users)
        .map(|user| User { rng: workload.rng_of(user), visitor: None, begun: false, played: 0, steps: 0 })
        .collect();
    let mut events = BTreeMap::new();
    for (serial, start) in Starts::new(&workload.arrivals, workload.seed).enumerate() {
        events.insert((start.at, serial), (start.user, Event::SessionBegins));
    }
    let mut serial = events.len();
    while let Some(((now, _), (id, event))) = events.pop_first() {
        let user = &mut users[id as usize];
        let next = match event {
            Event::SessionBegins => {
                let kind = workload.choose(id, &mut user.rng);
                let (visitor, next) = Visitor::begin(&workload, kind, now, &mut user.rng);
                user.steps = workload.journey(kind).steps.len() as u64;
                user.visitor = Some(visitor);
                user.begun = false;
                next
            }
            Event::Ask => {
                let visitor = user.visitor.as_mut().expect("a session asks");
                let patience = visitor.asked(now, &mut user.rng);
                if !std::mem::replace(&mut user.begun, true) {
                    tally.begun(now);
                }
                tally.asked(now);
                let (outcome, took) = dice(shape, patience, &mut server);
                events.insert((now + took, serial), (id, Event::Ends(outcome)));
                serial += 1;
                check(&tally)?;
                continue;
            }
            Event::Ends(outcome) => {
                let visitor = user.visitor.as_mut().expect("a session ends a step");
                let turn = visitor.answered(now, outcome, &mut user.rng);
                tally.fold(&turn);
                // The good answers to a visitor who leaves are not wasted.
                needed += if turn.next == Next::Left { turn.step as u64 + 1 } else { 0 };
                turn.next
            }
        };
        match next {
            Next::Ask { at, .. } => {
                prop_assert!(at >= now, "nobody asks in the past");
                events.insert((at, serial), (id, Event::Ask));
            }
            Next::Done | Next::Left | Next::GaveUp => {
                needed += if next == Next::Done { user.steps } else { 0 };
                user.played += 1;
                user.visitor = None;
                if let Some(at) = workload.next_session(now, user.played, &mut user.rng) {
                    events.insert((at, serial), (id, Event::SessionBegins));
                }
            }
        }
        serial += 1;
        prop_assert!(serial < 100_000, "bounded retries end");
        check(&tally)?;
    }
    Ok((tally, needed))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_books_add_up_after_every_event(shape in shapes()) {
        let (tally, needed) = play(&shape, |tally| {
            prop_assert!(tally.adds_up(), "{:?}", tally.whole());
            Ok(())
        })?;
        let whole = tally.whole();
        prop_assert_eq!(tally.under_way(), 0, "all have finished");
        prop_assert_eq!(tally.in_flight(), 0);
        prop_assert_eq!(whole.sessions_begun, u64::from(shape.users * shape.sessions_each));
        // Each good answer either was needed by a completed session or was wasted.
        prop_assert_eq!(whole.passed, needed + whole.wasted_requests);
        prop_assert!(whole.sessions_failed_inside <= whole.mid_session_failures);
    }

    #[test]
    fn the_series_tells_the_same_story_as_the_sums(shape in shapes()) {
        let (tally, _) = play(&shape, |tally| {
            let under_way = tally.series().last().map_or(0, |second| second.under_way);
            prop_assert_eq!(u64::from(under_way), tally.under_way());
            Ok(())
        })?;
        let sum = |of: fn(&suimon_workload::Second) -> u32| {
            tally.series().iter().map(|second| u64::from(of(second))).sum::<u64>()
        };
        let whole = tally.whole();
        prop_assert_eq!(sum(|s| s.begun), whole.sessions_begun);
        prop_assert_eq!(sum(|s| s.completed), whole.sessions_completed);
        prop_assert_eq!(sum(|s| s.left), whole.sessions_left);
        prop_assert_eq!(sum(|s| s.gave_up), whole.sessions_gave_up);
        prop_assert_eq!(sum(|s| s.requests), whole.requests);
        prop_assert_eq!(sum(|s| s.refusals), whole.refusals);
        prop_assert_eq!(sum(|s| s.waiting_pages), whole.waiting_pages);
        prop_assert_eq!(sum(|s| s.mid_session_failures), whole.mid_session_failures);
        prop_assert_eq!(sum(|s| s.first_step_failures), whole.first_step_failures);
    }

    #[test]
    fn the_same_seed_plays_the_same_run(shape in shapes()) {
        let (first, _) = play(&shape, |_| Ok(()))?;
        let (second, _) = play(&shape, |_| Ok(()))?;
        prop_assert_eq!(first.whole(), second.whole());
        prop_assert_eq!(first.series(), second.series());
        prop_assert_eq!(first.session_time(), second.session_time());
    }
}

use super::*;
use crate::{Arrivals, InLine, OnRefusal, Patience, Retry, Spacing, Think};

const THINK: Duration = Duration::from_secs(3);
const REFUSED: StepOutcome = StepOutcome::Refused { retry_after: None };

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn at(secs: u64) -> Instant {
    Instant::ORIGIN + Duration::from_secs(secs)
}

fn retry(from: usize, retries_max: u32) -> OnFailure {
    OnFailure::Retry(Retry {
        from,
        from_after_error: from,
        retries_max,
        pause_after_timeout: Duration::ZERO,
        pause_after_error: secs(2),
    })
}

/// A journey of five steps, a constant think time and patience, like the paper's.
fn workload(on_failure: OnFailure) -> Workload {
    let steps = (1..=5).map(|i| Step::get(&format!("step-{i}"), "/")).collect();
    let journey = Journey {
        name: "shopping".into(),
        weight: 1.0,
        users: None,
        steps,
        think: Think::Constant(THINK),
        patience: Patience::Constant(secs(60)),
        on_failure,
        leave: 0.0,
        on_refusal: OnRefusal { retries_max: 2, wait_default: secs(3), wait_max: secs(30) },
        in_line: InLine::default(),
    };
    Workload {
        kinds: vec![Arc::new(journey)],
        arrivals: Arrivals::Closed {
            users: 1,
            start_over: Duration::ZERO,
            spacing: Spacing::Even,
            sessions_each: Some(1),
            pause: Think::Constant(Duration::ZERO),
        },
        returning: false,
        seed: 1,
    }
}

/// Plays outcomes one second after each request; returns the turns.
fn play(workload: &Workload, outcomes: &[StepOutcome]) -> Vec<Turn> {
    let mut rng = workload.rng_of(0);
    let (mut visitor, mut next) = Visitor::begin(workload, KindId(0), at(0), &mut rng);
    let mut turns = Vec::new();
    for &outcome in outcomes {
        let Next::Ask { at, .. } = next else { panic!("the session ended before {outcome:?}") };
        visitor.asked(at, &mut rng);
        let turn = visitor.answered(at + secs(1), outcome, &mut rng);
        next = turn.next;
        turns.push(turn);
    }
    turns
}

#[test]
fn a_smooth_session_thinks_between_its_steps_and_is_done() {
    let turns = play(&workload(OnFailure::GiveUp), &[StepOutcome::Passed; 5]);
    assert_eq!(turns[0].next, Next::Ask { step: 1, at: at(1 + 3) });
    assert_eq!(turns[0].first_step_wait, Some(secs(1)));
    assert!(turns[1..].iter().all(|turn| turn.first_step_wait.is_none()));
    assert_eq!(turns[4].next, Next::Done);
    assert_eq!(turns[4].session_time, secs(5 + 4 * 3));
    assert!(turns.iter().all(|turn| turn.wasted == 0 && turn.took == secs(1) && !turn.is_failure()));
}

#[test]
fn a_time_out_inside_goes_back_to_the_second_step_at_once() {
    use StepOutcome::{Passed, TimedOut};
    let turns = play(&workload(retry(1, 9)), &[Passed, Passed, Passed, TimedOut, Passed]);
    let failed = turns[3];
    assert_eq!(failed.next, Next::Ask { step: 1, at: failed.at });
    assert_eq!(failed.wasted, 2, "steps 2 and 3 must be done again, step 1 keeps its value");
    assert!(failed.is_failure() && failed.first_mid_failure);
    assert_eq!(turns[4].step, 1);
}

#[test]
fn a_timed_out_first_step_is_asked_again_and_wastes_nothing() {
    use StepOutcome::{Passed, TimedOut};
    let turns = play(&workload(retry(1, 9)), &[TimedOut, Passed]);
    assert_eq!(turns[0].next, Next::Ask { step: 0, at: turns[0].at });
    assert_eq!((turns[0].wasted, turns[0].first_mid_failure), (0, false));
    assert!(turns[0].is_failure());
    assert_eq!(turns[1].first_step_wait, Some(secs(2)), "counted from the first try");
}

#[test]
fn an_error_pauses_before_it_is_tried_again() {
    for outcome in [StepOutcome::Failed, StepOutcome::Disconnected] {
        let turns = play(&workload(retry(0, 9)), &[StepOutcome::Passed, outcome]);
        assert_eq!(turns[1].next, Next::Ask { step: 0, at: turns[1].at + secs(2) });
        assert_eq!(turns[1].wasted, 1);
    }
}

#[test]
fn an_error_may_go_back_further_than_a_time_out() {
    use StepOutcome::{Failed, Passed, TimedOut};
    let mut workload = workload(retry(2, 9));
    let OnFailure::Retry(retry) = &mut Arc::make_mut(&mut workload.kinds[0]).on_failure else {
        panic!("it retries")
    };
    retry.from_after_error = 0;
    let turns = play(&workload, &[Passed, Passed, Passed, TimedOut, Failed]);
    assert!(matches!(turns[3].next, Next::Ask { step: 2, .. }));
    assert!(matches!(turns[4].next, Next::Ask { step: 0, .. }));
    assert_eq!((turns[3].wasted, turns[4].wasted), (1, 2));
}

#[test]
fn a_visitor_who_gives_up_wastes_all_he_had() {
    use StepOutcome::{Passed, TimedOut};
    let turns = play(&workload(OnFailure::GiveUp), &[Passed, Passed, TimedOut]);
    assert_eq!((turns[2].next, turns[2].wasted), (Next::GaveUp, 2));
    let turns = play(&workload(retry(1, 1)), &[Passed, Passed, TimedOut, Passed, TimedOut]);
    assert_eq!(turns[2].wasted, 1);
    assert_eq!((turns[4].next, turns[4].wasted), (Next::GaveUp, 2), "steps 1 and 2, once more");
}

#[test]
fn a_refusal_is_waited_out_as_told_within_bounds() {
    let told = |secs: u64| StepOutcome::Refused { retry_after: Some(Duration::from_secs(secs)) };
    for (outcome, wait) in [(told(7), 7), (told(500), 30), (REFUSED, 3)] {
        let turns = play(&workload(OnFailure::GiveUp), &[outcome]);
        assert_eq!(turns[0].next, Next::Ask { step: 0, at: at(1 + wait) }, "{outcome:?}");
    }
}

#[test]
fn refusals_in_a_row_end_the_session_and_a_good_answer_forgives_them() {
    use StepOutcome::Passed;
    let turns = play(&workload(OnFailure::GiveUp), &[REFUSED, REFUSED, REFUSED]);
    assert_eq!(turns[2].next, Next::GaveUp);
    let turns = play(&workload(OnFailure::GiveUp), &[REFUSED, REFUSED, Passed, REFUSED, REFUSED, REFUSED]);
    assert_eq!((turns[5].next, turns[5].wasted), (Next::GaveUp, 1));
}

#[test]
fn only_an_honest_refusal_at_the_first_step_is_no_failure() {
    let honest = StepOutcome::Refused { retry_after: Some(secs(1)) };
    let workload = workload(OnFailure::GiveUp);
    assert!(!play(&workload, &[honest])[0].is_failure());
    assert!(play(&workload, &[REFUSED])[0].is_failure());
    let inside = play(&workload, &[StepOutcome::Passed, honest]);
    assert!(inside[1].is_failure() && inside[1].first_mid_failure);
    assert_eq!(inside[1].wasted, 0, "the same step is asked again, so nothing is lost yet");
}

#[test]
fn only_the_first_failure_inside_marks_the_session() {
    use StepOutcome::{Passed, TimedOut};
    let turns = play(&workload(retry(1, 9)), &[Passed, TimedOut, TimedOut]);
    let marks: Vec<bool> = turns.iter().map(|turn| turn.first_mid_failure).collect();
    assert_eq!(marks, [false, true, false]);
}

#[test]
fn a_steps_own_patience_and_think_time_win() {
    let mut workload = workload(OnFailure::GiveUp);
    let journey = Arc::make_mut(&mut workload.kinds[0]);
    journey.steps[1].patience = Some(Patience::Constant(secs(5)));
    journey.steps[1].think = Some(Think::Constant(secs(20)));
    let mut rng = workload.rng_of(0);
    let (mut visitor, _) = Visitor::begin(&workload, KindId(0), at(0), &mut rng);
    assert_eq!(visitor.asked(at(0), &mut rng), Some(secs(60)));
    let turn = visitor.answered(at(1), StepOutcome::Passed, &mut rng);
    assert_eq!(turn.next, Next::Ask { step: 1, at: at(21) });
    assert_eq!(visitor.asked(at(21), &mut rng), Some(secs(5)));
    assert_eq!(visitor.gives_up_waiting_at(), Some(at(26)));
}

#[test]
fn a_world_four_times_as_fast_has_a_quarter_of_every_time() {
    let workload = workload(retry(1, 9)).faster_by(4.0);
    let turns = play(&workload, &[StepOutcome::Passed, StepOutcome::Failed, REFUSED]);
    assert_eq!(turns[0].next, Next::Ask { step: 1, at: turns[0].at + THINK / 4 });
    assert_eq!(turns[1].next, Next::Ask { step: 1, at: turns[1].at + secs(2) / 4 });
    assert_eq!(turns[2].next, Next::Ask { step: 1, at: turns[2].at + secs(3) / 4 });
}

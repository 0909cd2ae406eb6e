//! How often a trial is wrong: many trials of two limits whose true difference is known.

use super::*;
use suimon_model::real::{exp, ln};

/// Limits compared; their cohorts are of 10 and 12 requests.
const BASE: u32 = 5;
const PROBE: u32 = 6;
/// Useful work per second at the base; a window then takes about a second.
const RATE: f64 = 10.0;
/// c of formula (4) where service times vary by half of their mean.
const NOISE: f64 = 0.6;
const TRIALS: u32 = 1500;
/// What the document may differ by, in per cent of the trials.
const TOLERANCE: f64 = 3.0;
const DOCUMENT: &str = include_str!("../../../../../docs/laws/route.md");

/// What became of many trials, in per cent.
#[derive(Debug)]
struct Odds {
    better: f64,
    worse: f64,
    lost: f64,
}

/// Plays trials in which d is really `difference`, and ln U of a window of n ends is off by a
/// normal error of `noise` ÷ √n.
fn odds(difference: f64, noise: f64, pairs_max: usize) -> Odds {
    let mut rng = Rng::new(1);
    let (mut better, mut worse, mut lost) = (0, 0, 0);
    for _ in 0..TRIALS {
        let (verdict, law) = play(&mut rng, difference, noise, pairs_max);
        better += u32::from(verdict.decided && verdict.accepted);
        worse += u32::from(verdict.decided && !verdict.accepted);
        lost += u32::from(law.routes[0].highest(Instant::ORIGIN, LIMIT_MAX) < LIMIT_MAX);
    }
    let share = |count: u32| 100.0 * f64::from(count) / f64::from(TRIALS);
    Odds { better: share(better), worse: share(worse), lost: share(lost) }
}

fn play(rng: &mut Rng, difference: f64, noise: f64, pairs_max: usize) -> (TrialResult, Paired) {
    let bias = BIAS * ln(f64::from(PROBE) / f64::from(BASE));
    let mut law = law_before_a_trial(BASE, pairs_max);
    // As if the noise had been seen in many windows; those of the trial are folded in as they come.
    (0..8).for_each(|_| law.routes[0].noise.fold(noise * noise));
    let (mut now, mut id, mut out) = (Instant::ORIGIN, 0, vec![]);
    let mut meter = Meter::new(now);
    law.trial = Some(Trial::new(now, ROUTE, BASE, PROBE, vec![1.0], vec![0.0]));
    law.open_window(now, &mut out);
    while let Some(trial) = &law.trial {
        let size = trial.cohort_size;
        let truth = if trial.next_arm() == Arm::Probe { difference + bias } else { 0.0 };
        let took = size as f64 / RATE * exp(-truth - noise / (size as f64).sqrt() * rng.normal());
        let cohort = id..id + size as u64;
        id = cohort.end;
        meter.load(now, size, 100);
        for request in cohort.clone() {
            law.on_start(now, ROUTE, RequestId(request), std::slice::from_ref(&meter));
        }
        for tick in (1..).map(|quarter| f64::from(quarter) * 0.25).take_while(|tick| *tick < took) {
            law.on_tick(now + seconds(tick), std::slice::from_ref(&meter), &mut out);
        }
        now += seconds(took);
        for request in cohort {
            meter.end(took, true);
            let end = RequestEnd {
                route: ROUTE,
                request: RequestId(request),
                service: took,
                progress: true,
                says_work: true,
            };
            law.on_end(now, &end, std::slice::from_ref(&meter), &mut out);
        }
        meter.load(now, 0, 100);
    }
    (law.routes[0].memory.expect("the trial came to a verdict"), law)
}

/// Returns a law that does nothing but the trial it is given.
fn law_before_a_trial(base: u32, pairs_max: usize) -> Paired {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, None);
    let route = &mut law.routes[0];
    (route.limit, route.base, route.pairs_max) = (base, base, pairs_max);
    (route.learns, route.slow_start, route.pressure, route.share) = (false, None, 1.0, 1.0);
    law
}

/// Returns the numbers in each row of the document's table that begins with `head`.
fn table(head: &str) -> Vec<Vec<f64>> {
    let rows = DOCUMENT.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let number = |word: &str| word.replace('−', "-").parse().ok();
    rows.map(|row| row.split([' ', '|', '/']).filter_map(number).collect()).collect()
}

#[test]
fn a_trial_is_wrong_as_often_as_the_document_says() {
    let rows = table("| true d |");
    assert_eq!(rows.len(), 8);
    for row in rows {
        let [difference, figures @ ..] = row.as_slice() else { panic!("an empty row") };
        let mut seen = vec![];
        for pairs_max in [4, 8, 16] {
            let Odds { better, worse, .. } = odds(*difference, NOISE, pairs_max);
            seen.extend([better, worse]);
        }
        let agrees = figures.iter().zip(&seen).all(|(told, seen)| (told - seen).abs() <= TOLERANCE);
        assert!(
            agrees && figures.len() == seen.len(),
            "d {difference}: {figures:?} is told, {seen:.0?} is so"
        );
    }
}

#[test]
fn noise_is_taken_for_much_worse_as_rarely_as_the_document_says() {
    let rows = table("| much worse noted, true d |");
    assert_eq!(rows.len(), 4);
    for row in rows {
        let [difference, figures @ ..] = row.as_slice() else { panic!("an empty row") };
        let seen: Vec<f64> = [0.3, 0.6, 1.0].map(|noise| odds(*difference, noise, 4).lost).to_vec();
        let agrees = figures.iter().zip(&seen).all(|(told, seen)| (told - seen).abs() <= TOLERANCE);
        assert!(
            agrees && figures.len() == seen.len(),
            "d {difference}: {figures:?} is told, {seen:.0?} is so"
        );
    }
}

#[test]
fn a_window_that_is_not_worth_its_end_has_the_error_of_any_other() {
    let mut meter = Meter::new(Instant::ORIGIN);
    let mut trial = Trial::new(Instant::ORIGIN, ROUTE, BASE, PROBE, vec![1.0], vec![0.0]);
    trial.open(Instant::ORIGIN, std::iter::empty(), BASE);
    meter.load(Instant::ORIGIN, 10, 100);
    let start = |trial: &mut Trial, now, ids: std::ops::Range<u64>, meter: &Meter| {
        ids.for_each(|id| {
            trial.on_start(now, RequestId(id), std::iter::empty(), std::slice::from_ref(meter));
        });
    };
    start(&mut trial, Instant::ORIGIN, 0..10, &meter);
    let now = Instant::ORIGIN + seconds(1.0);
    (0..10).for_each(|_| meter.end(1.0, true));
    assert_eq!((0..10).filter(|id| trial.on_end(now, RequestId(*id), 1.0)).count(), 1);
    trial.close(now, std::iter::empty(), std::slice::from_ref(&meter));
    trial.open(now, std::iter::empty(), PROBE);
    start(&mut trial, now, 10..22, &meter);
    let futile = |after: f64| trial.futile(now + seconds(after), std::slice::from_ref(&meter), NOISE, 1.0);
    assert!(futile(2.3).is_none(), "twelve take 1.2 s at the pace of the base");
    let verdict = futile(2.5).expect("it takes too long");
    let bias = BIAS * ln(f64::from(PROBE) / f64::from(BASE));
    assert!((verdict.difference + ln(2.0) + bias).abs() < 1e-9, "{verdict:?}");
    assert!((verdict.standard_error - NOISE * (1.0_f64 / 10.0 + 1.0 / 12.0).sqrt()).abs() < 1e-9);
}

#[test]
fn the_size_of_a_cohort_favours_neither_limit_by_more_than_a_few_per_cent() {
    // As much is done at any limit, by requests whose work varies by as much as it is.
    for (base, probe) in [(8, 4), (20, 16), (16, 20)] {
        let (mut sum, mut trials) = (0.0, 0.0);
        for seed in 0..150 {
            let mut closed = Loop::new(Host { contention: 1.0, coherence: 0.0 }, 1.0, seed);
            closed.law = law_before_a_trial(base, 1);
            closed.law.routes[0].noise.fold(1e12);
            closed.run(1.0);
            let (now, weights) = (closed.now, vec![WORK * f64::from(base)]);
            closed.law.trial = Some(Trial::new(now, ROUTE, base, probe, weights, vec![0.0]));
            closed.law.open_window(now, &mut closed.out);
            closed.run(60.0);
            let verdict = closed.law.routes[0].memory.expect("the trial came to a verdict");
            if !verdict.decided {
                sum += verdict.difference + BIAS * ln(f64::from(probe) / f64::from(base));
                trials += 1.0;
            }
        }
        let mean = sum / trials;
        assert!(mean.abs() < 0.05 && trials > 140.0, "{base} to {probe}: {mean:.3} in {trials} trials");
    }
}

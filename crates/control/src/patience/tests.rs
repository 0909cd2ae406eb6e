//! What is learned of made-up visitors whose patience is known.

use super::*;
use suimon_model::persist::{Persist, Reader, Writer};
use suimon_model::{Rng, seconds};

/// A request as it would go: when it comes, how long its answer takes, how long its visitor waits,
/// and who that is.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: f64,
    answer: f64,
    patience: f64,
    visitor: Option<u64>,
}

impl Asked {
    fn end(&self) -> f64 {
        self.at + self.answer.min(self.patience)
    }
}

/// Plays requests, sorted by when they come, with a refresh every quarter of a second, and shows
/// the learner after each.
fn play(patience: &mut Patience, requests: &[Asked], mut seen: impl FnMut(f64, &Patience)) {
    let (mut there, mut next) = (Vec::<Asked>::new(), 0);
    let Some(first) = requests.first() else { return };
    let mut tick = (first.at / 0.25).floor() * 0.25;
    while next < requests.len() || !there.is_empty() {
        tick += 0.25;
        let coming = requests[next..].iter().take_while(|asked| asked.at <= tick);
        let before = next;
        next += coming.clone().count();
        there.extend(&requests[before..next]);
        there.retain(|asked| {
            if asked.end() <= tick {
                patience.fold_of(asked.visitor, asked.end() - asked.at, asked.patience < asked.answer);
            }
            asked.end() > tick
        });
        let now = Instant::ORIGIN + seconds(tick);
        if patience.asks_who_waits(now) {
            there.iter().for_each(|asked| patience.fold_waiting(tick - asked.at));
        }
        patience.refresh(now);
        seen(tick, patience);
    }
}

fn learned(requests: &[Asked]) -> Option<f64> {
    let mut patience = Patience::default();
    play(&mut patience, requests, |_, _| {});
    patience.learned()
}

/// Returns requests from second `from` on, Poisson at a rate, with `answer` and `patience` drawn.
fn poisson(
    rng: &mut Rng,
    (from, rate, count): (f64, f64, usize),
    mut answer: impl FnMut(&mut Rng) -> f64,
    mut patience: impl FnMut(&mut Rng) -> f64,
) -> Vec<Asked> {
    let mut at = from;
    let one = |_| {
        at += rng.exponential(1.0 / rate);
        Asked { at, answer: answer(rng), patience: patience(rng), visitor: None }
    };
    (0..count).map(one).collect()
}

fn merged(mut a: Vec<Asked>, b: Vec<Asked>) -> Vec<Asked> {
    a.extend(b);
    a.sort_by(|a, b| a.at.total_cmp(&b.at));
    a
}

/// Bias and spread of what several runs learn, as shares of the truth, and the mean of the error
/// they report.
#[derive(Debug)]
struct Judged {
    known: f64,
    bias: f64,
    spread: f64,
    told: f64,
}

fn judged(truth: f64, runs: u64, mut requests: impl FnMut(&mut Rng) -> Vec<Asked>) -> Judged {
    let mut estimates = vec![];
    for run in 0..runs {
        let mut patience = Patience::default();
        play(&mut patience, &requests(&mut Rng::stream(7, run)), |_, _| {});
        estimates.extend(patience.estimate_learned());
    }
    let n = estimates.len() as f64;
    let mean = |of: &dyn Fn(&PatienceEstimate) -> f64| estimates.iter().map(of).sum::<f64>() / n;
    let bias = mean(&|it| it.seconds / truth - 1.0);
    let spread = mean(&|it| (it.seconds / truth - 1.0 - bias) * (it.seconds / truth - 1.0 - bias)).sqrt();
    Judged { known: n / runs as f64, bias, spread, told: mean(&|it| it.error_seconds / truth) }
}

/// Answers of 0.1 to 5 s, as many short as long ones on a logarithmic scale.
fn censoring(rng: &mut Rng) -> f64 {
    0.1 * exp(rng.uniform() * ln(50.0))
}

const NEVER: f64 = 1e9;

#[test]
fn exponential_patience_is_learned_through_censoring() {
    // Among those who still wait at 0.5 s a tenth leaves in the next −mean · ln 0.9.
    let (mean, rate) = (20.0, 5.0);
    let truth = AGE_MIN - mean * ln(0.9);
    let it =
        judged(truth, 200, |rng| poisson(rng, (0.0, rate, 4000), censoring, |rng| rng.exponential(mean)));
    assert!(it.known > 0.9 && it.bias.abs() < 0.06 && it.spread < 0.2, "{it:?}");
}

#[test]
fn constant_patience_is_learned_through_censoring() {
    let it = judged(3.0, 100, |rng| poisson(rng, (0.0, 5.0, 3000), censoring, |_| 3.0));
    assert!(it.known > 0.99 && it.bias.abs() < 0.05 && it.spread < 0.05, "{it:?}");
}

/// The median 4 s, its logarithm's deviation 0.6: the 10th percentile is 4 · exp(−1.2816 · 0.6).
fn lognormal(rng: &mut Rng) -> f64 {
    4.0 * exp(0.6 * rng.normal())
}

#[test]
fn lognormal_patience_is_learned_through_censoring() {
    let truth = 4.0 * exp(-1.2816 * 0.6);
    let it = judged(truth, 200, |rng| poisson(rng, (0.0, 5.0, 3000), censoring, lognormal));
    assert!(it.known > 0.95 && it.bias.abs() < 0.05 && it.spread < 0.15, "{it:?}");
}

#[test]
fn the_error_told_is_the_spread_seen() {
    let truth = 4.0 * exp(-1.2816 * 0.6);
    for count in [250, 600, 3000] {
        let it = judged(truth, 300, |rng| poisson(rng, (0.0, 5.0, count), |_| 60.0, lognormal));
        assert!(it.told / it.spread > 0.75 && it.told / it.spread < 1.5, "{it:?}");
    }
}

#[test]
fn the_first_conclusion_is_near_and_once_known_it_stays_known() {
    let truth = AGE_MIN - 20.0 * ln(0.9);
    let (mut firsts, mut lost) = (vec![], 0);
    for run in 0..200 {
        let rng = &mut Rng::stream(11, run);
        let requests = poisson(rng, (0.0, 5.0, 4000), censoring, |rng| rng.exponential(20.0));
        let mut first = None;
        play(&mut Patience::default(), &requests, |_, patience| {
            lost += u32::from(first.is_some() && patience.learned().is_none());
            first = first.or(patience.learned());
        });
        firsts.push(first.unwrap() / truth - 1.0);
    }
    let bias = firsts.iter().sum::<f64>() / 200.0;
    let spread = (firsts.iter().map(|it| (it - bias) * (it - bias)).sum::<f64>() / 200.0).sqrt();
    assert!(bias.abs() < 0.1 && spread < 0.3, "{bias} {spread}");
    assert!(lost < 640_000 / 50, "{lost}");
}

#[test]
fn the_rate_of_requests_does_not_matter() {
    let truth = 4.0 * exp(-1.2816 * 0.6);
    for (rate, count) in [(0.2, 2000), (200.0, 40_000)] {
        let it = judged(truth, 20, |rng| poisson(rng, (0.0, rate, count), censoring, lognormal));
        assert!(it.known > 0.9 && it.bias.abs() < 0.08 && it.spread < 0.15, "{rate}/s: {it:?}");
    }
}

/// Answers of 50 ms, of which a share is clicked away within 0.3 s.
fn click_aways(rng: &mut Rng, share: f64) -> Vec<Asked> {
    let mut requests = poisson(rng, (0.0, 200.0, 20_000), |_| 0.05, |_| NEVER);
    for asked in &mut requests {
        if rng.chance(share) {
            (asked.answer, asked.patience) = (0.4, rng.uniform() * 0.3);
        }
    }
    requests
}

#[test]
fn click_aways_among_quick_answers_teach_nothing() {
    for share in [0.002, 0.02, 0.2] {
        assert_eq!(learned(&click_aways(&mut Rng::new(1), share)), None, "{share}");
    }
}

#[test]
fn click_aways_do_not_move_what_those_who_wait_teach() {
    let truth = 4.0 * exp(-1.2816 * 0.6);
    for share in [0.002, 0.02] {
        let it = judged(truth, 50, |rng| {
            let quick = click_aways(rng, share);
            merged(quick, poisson(rng, (0.0, 20.0, 2000), censoring, lognormal))
        });
        assert!(it.known > 0.95 && it.bias.abs() < 0.06, "{share}: {it:?}");
    }
}

#[test]
fn ten_thousand_quick_answers_a_second_do_not_hide_the_leavers() {
    // One in twenty thousand takes long, and all who have to wait for it leave at 10 s.
    let mut patience = Patience::default();
    for second in 0..120_u32 {
        (0..10_000).for_each(|_| patience.fold(0.005, false));
        if second % 2 == 0 {
            patience.fold(10.0, true);
        }
        patience.refresh(Instant::ORIGIN + seconds(f64::from(second + 1)));
    }
    let learned = patience.learned().unwrap();
    assert!((learned / 10.0 - 1.0).abs() < 0.05, "{learned}");
}

#[test]
fn twelve_aborted_requests_teach_nothing() {
    for age in [0.1, 1.0, 5.0] {
        let quick = poisson(&mut Rng::new(2), (0.0, 50.0, 2000), |_| 0.05, |_| NEVER);
        let aborted =
            (0..12).map(|i| Asked { at: f64::from(i), answer: NEVER, patience: age, visitor: None });
        assert_eq!(learned(&merged(quick, aborted.clone().collect())), None, "{age}");
        let slow = poisson(&mut Rng::new(2), (0.0, 5.0, 60), |_| 10.0, |_| NEVER);
        assert_eq!(learned(&merged(slow, aborted.collect())), None, "{age}: sixty were answered after 10 s");
    }
}

#[test]
fn twelve_aborted_requests_hardly_move_what_others_teach() {
    let truth = 4.0 * exp(-1.2816 * 0.6);
    let it = judged(truth, 100, |rng| {
        let others = poisson(rng, (0.0, 5.0, 2000), censoring, lognormal);
        let aborted =
            (0..12).map(|i| Asked { at: 350.0 + f64::from(i), answer: NEVER, patience: 1.0, visitor: None });
        merged(others, aborted.collect())
    });
    assert!(it.known > 0.95 && it.bias.abs() < 0.15, "{it:?}");
}

/// One robot, one session, 64 requests aborted at one second.
fn robot(from: f64) -> Vec<Asked> {
    let one = |i| Asked { at: from + f64::from(i) * 0.5, answer: NEVER, patience: 1.0, visitor: Some(99) };
    (0..64).map(one).collect()
}

#[test]
fn a_robot_that_aborts_all_its_requests_teaches_nothing() {
    let quick = poisson(&mut Rng::new(2), (0.0, 50.0, 2000), |_| 0.05, |_| NEVER);
    assert_eq!(learned(&merged(quick, robot(1.0))), None);
    let slow = poisson(&mut Rng::new(2), (0.0, 2.0, 200), |_| 2.0, |_| NEVER);
    assert_eq!(learned(&merged(slow, robot(50.0))), None, "two hundred were answered after 2 s");
}

#[test]
fn a_robot_does_not_move_what_others_teach() {
    let mut alone = vec![];
    let mut beside = vec![];
    for run in 0..30 {
        let others = poisson(&mut Rng::stream(3, run), (0.0, 5.0, 2000), censoring, lognormal);
        alone.extend(learned(&others));
        beside.extend(learned(&merged(others, robot(360.0))));
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let moved = mean(&beside) / mean(&alone) - 1.0;
    assert!(moved.abs() < 0.02, "{moved}");
}

#[test]
fn where_nobody_waits_long_nothing_is_learned() {
    // Patience of 30 s and answers of up to 5 s: nobody shows it. Of exponential patience only some
    // is seen.
    let requests =
        |rng: &mut Rng, mean: f64| poisson(rng, (0.0, 5.0, 3000), censoring, |rng| rng.exponential(mean));
    assert_eq!(learned(&poisson(&mut Rng::new(4), (0.0, 5.0, 3000), censoring, |_| 30.0)), None);
    let concluded =
        (0..50).filter(|run| learned(&requests(&mut Rng::stream(4, *run), 100.0)).is_some()).count();
    assert_eq!(concluded, 0, "at 5 s 4.4 % have left");
}

#[test]
fn a_few_at_risk_are_noise() {
    // Thirty-nine waited for 5 s, and all of them left.
    let few =
        |count| (0..count).map(|i| Asked { at: f64::from(i), answer: NEVER, patience: 5.0, visitor: None });
    assert_eq!(learned(&few(39).collect::<Vec<_>>()), None);
    assert!((learned(&few(60).collect::<Vec<_>>()).unwrap() / 5.0 - 1.0).abs() < 0.05);
}

#[test]
fn in_a_rush_those_who_still_wait_are_counted() {
    // Two thousand come within ten seconds to an application that answers nobody for a minute; 10 %
    // would have left by 14.4 s.
    let truth = 30.0 * exp(-1.2816 * 0.57);
    let mut seen = vec![];
    for run in 0..40 {
        let rush = poisson(
            &mut Rng::stream(5, run),
            (0.0, 200.0, 2000),
            |_| 60.0,
            |rng| 30.0 * exp(0.57 * rng.normal()),
        );
        let mut patience = Patience::default();
        play(&mut patience, &rush, |at, patience| {
            if at <= 60.0 {
                seen.extend(patience.learned());
            }
        });
    }
    let (low, high) = seen.iter().fold((NEVER, 0.0_f64), |(low, high), it| (low.min(*it), high.max(*it)));
    assert!(low > 0.85 * truth && high < 1.2 * truth, "{low} to {high} for {truth}");
}

#[test]
fn rushes_far_apart_teach_the_same_as_a_steady_stream() {
    let truth = 4.0 * exp(-1.2816 * 0.6);
    let it = judged(truth, 30, |rng| {
        let mut all = vec![];
        for rush in 0..8 {
            all.extend(poisson(rng, (600.0 * f64::from(rush), 100.0, 800), censoring, lognormal));
        }
        all
    });
    assert!(it.known > 0.9 && it.bias.abs() < 0.06 && it.spread < 0.15, "{it:?}");
}

/// Cuts the connection of everybody who is there at `at`: a router restarts.
fn cut(requests: &mut [Asked], at: f64) {
    let there = requests.iter_mut().filter(|asked| asked.at < at && asked.end() > at);
    there.for_each(|asked| (asked.answer, asked.patience) = (NEVER, at - asked.at));
}

#[test]
fn connections_cut_all_at_once_teach_nothing() {
    let slow = |rng: &mut Rng| rng.between(2.0, 20.0);
    let mut requests = poisson(&mut Rng::new(6), (0.0, 100.0, 5000), slow, |_| NEVER);
    cut(&mut requests, 15.0);
    assert!(requests.iter().filter(|asked| asked.patience < NEVER).count() > 500);
    assert_eq!(learned(&requests), None);
}

#[test]
fn connections_cut_all_at_once_hardly_move_what_others_teach() {
    for rate in [10.0, 200.0] {
        let mut requests = poisson(&mut Rng::new(6), (0.0, rate, 400 * rate as usize), censoring, lognormal);
        cut(&mut requests, 200.0);
        let (mut before, mut most) = (0.0, 0.0_f64);
        play(&mut Patience::default(), &requests, |at, patience| {
            let learned = patience.learned().unwrap_or(0.0);
            if at <= 200.0 {
                before = learned;
            } else if at < 202.0 {
                most = most.max((learned / before - 1.0_f64).abs());
            }
        });
        assert!(most < 0.1, "{rate}/s: by {most}");
    }
}

/// Returns how many requests older than 0.5 s it takes after a change until the estimate stays
/// within 20 % of the truth.
fn relearns(rate: f64, from: f64, to: f64) -> f64 {
    let mut total = 0.0;
    for run in 0..20 {
        let rng = &mut Rng::stream(8, run);
        let long = |rng: &mut Rng| rng.between(20.0, 60.0);
        let waits = |scale: f64| move |rng: &mut Rng| scale * exp(0.6 * (rng.normal() + 1.2816));
        let before = poisson(rng, (0.0, rate, 2000), long, waits(from));
        let change = before.last().unwrap().at;
        let after = poisson(rng, (change, rate, 6000), long, waits(to));
        let mut off = change;
        play(&mut Patience::default(), &[before, after].concat(), |at, patience| {
            let fits = patience.learned().is_some_and(|it| (it / to - 1.0).abs() < 0.2);
            if at <= change + 5000.0 / rate && !fits && off > at - 30.0 - 60.0 / rate {
                off = at;
            }
        });
        total += (off - change) * rate;
    }
    total / 20.0
}

#[test]
fn a_change_of_patience_is_learned_within_some_hundred_who_wait() {
    assert!(relearns(2.0, 10.0, 3.0) < 800.0);
    assert!(relearns(2.0, 3.0, 10.0) < 1200.0);
}

#[test]
fn visitors_who_became_patient_are_no_longer_taken_to_leave() {
    let rng = &mut Rng::new(9);
    let before = poisson(rng, (0.0, 2.0, 1000), |_| 30.0, |_| 5.0);
    let change = before.last().unwrap().at;
    let after = poisson(rng, (change, 2.0, 1000), |_| 30.0, |_| NEVER);
    assert!(learned(&before).is_some());
    assert_eq!(learned(&[before, after].concat()), None);
}

#[test]
fn it_tells_its_error_and_when_it_was_learned() {
    let mut patience = Patience::default();
    assert_eq!(patience.estimate_learned(), None);
    let requests: Vec<_> = (0..60)
        .map(|i| Asked { at: f64::from(i), answer: NEVER, patience: 15.0, visitor: Some(i as u64) })
        .collect();
    play(&mut patience, &requests, |_, _| {});
    let it = patience.estimate_learned().unwrap();
    assert!((it.seconds - 15.0).abs() < 0.75 && it.error_seconds < 0.75, "{it:?}");
    assert!(it.leavers > 50.0 && it.leavers <= 60.0 && it.at == Instant::ORIGIN + seconds(74.0), "{it:?}");
    patience.refresh(Instant::ORIGIN + seconds(600.0));
    assert_eq!(patience.estimate_learned(), Some(it), "nothing new was seen");
}

#[test]
fn odd_ages_are_harmless() {
    let mut patience = Patience::default();
    for age in [f64::NAN, -1.0, 0.0, f64::INFINITY, 1e300] {
        (0..100).for_each(|_| patience.fold(age, true));
        patience.fold_waiting(age);
    }
    patience.refresh(Instant::ORIGIN + seconds(5.0));
    assert_eq!(patience.learned(), None);
}

#[test]
fn what_is_saved_goes_on_the_same() {
    let mut patience = Patience::default();
    let requests = poisson(&mut Rng::new(10), (0.0, 5.0, 3000), censoring, lognormal);
    play(&mut patience, &requests, |_, _| {});
    let mut out = Writer::default();
    patience.save(&mut out);
    let bytes = out.into_bytes();
    let mut back = Patience::load(&mut Reader::new(&bytes)).unwrap();
    assert_eq!(back.estimate_learned(), patience.estimate_learned());
    let more: Vec<_> = requests.iter().map(|asked| Asked { at: asked.at + 1000.0, ..*asked }).collect();
    play(&mut patience, &more, |_, _| {});
    play(&mut back, &more, |_, _| {});
    assert_eq!(back.estimate_learned(), patience.estimate_learned());
}

#[test]
fn what_was_learned_stays_for_a_while_and_fades_where_nobody_leaves_any_more() {
    let mut patience = Patience::default();
    let mut rng = Rng::stream(11, 0);
    let requests = poisson(&mut rng, (0.0, 5.0, 3000), censoring, |_| 3.0);
    play(&mut patience, &requests, |_, _| {});
    let learned = patience.estimate_learned().expect("enough have left");
    let end = requests.last().unwrap().at + NEARLY_ALL;
    let mut gone = None;
    for second in 0..4 * 3600 {
        patience.refresh(Instant::ORIGIN + seconds(end + f64::from(second)));
        match patience.estimate_learned() {
            Some(now) => {
                assert!((now.seconds / learned.seconds - 1.0).abs() < 0.05, "{now:?} at {second}");
                assert!(now.at.as_secs_f64() <= end, "nothing new was learned: {now:?}");
                assert!(gone.is_none(), "known again at {second}");
            }
            None => gone = gone.or(Some(second)),
        }
    }
    let gone = gone.expect("it fades");
    assert!((900..3 * 3600).contains(&gone), "{gone} s");
    let much_later = end + 24.0 * 3600.0;
    (0..5).for_each(|visitor| patience.fold_of(Some(visitor), 3.0, true));
    patience.refresh(Instant::ORIGIN + seconds(much_later));
    assert_eq!(patience.learned(), None, "a few do not bring it back");
}

#[test]
fn what_was_learned_fades_although_somebody_leaves_now_and_then() {
    let mut patience = Patience::default();
    let mut rng = Rng::stream(11, 0);
    let requests = poisson(&mut rng, (0.0, 5.0, 3000), censoring, |_| 3.0);
    play(&mut patience, &requests, |_, _| {});
    let learned = patience.learned().expect("enough have left");
    let end = requests.last().unwrap().at + NEARLY_ALL;
    // One of the same visitors each five minutes would else keep it for ever.
    for second in 0..2 * 3600 {
        if second % 300 == 0 {
            patience.fold(learned, true);
        }
        patience.refresh(Instant::ORIGIN + seconds(end + f64::from(second)));
    }
    assert_eq!(patience.learned(), None);
}

/// Seconds after which the last of those played have been answered.
const NEARLY_ALL: f64 = 10.0;

#[test]
fn it_is_known_whether_most_stay() {
    // All are answered after two and a half seconds; so many of five have a second.
    let stay = |hasty: usize| {
        let requests: Vec<Asked> = (0..3000)
            .map(|number| Asked {
                at: 0.02 * number as f64,
                answer: 2.5,
                patience: if number % 5 < hasty { 1.0 } else { 60.0 },
                visitor: None,
            })
            .collect();
        let mut patience = Patience::default();
        play(&mut patience, &requests, |_, _| {});
        patience.survival(3.0)
    };
    assert_eq!(stay(0), None, "nobody leaves");
    assert!(stay(1).is_some_and(|stay| (stay - 0.8).abs() < 0.05), "{:?}", stay(1));
    assert!(stay(5).is_some_and(|stay| stay < 0.01), "{:?}", stay(5));
}

use super::seed::load_min;
use super::*;
use proptest::prelude::*;
use suimon_model::seconds;

const PARAMS: ScalingParams = ScalingParams { present: 3, least: 3, most: 24 };

fn seed(load_max: f64) -> Scaling {
    Scaling::new(ScalingLaw::Seed { interval: Duration::from_millis(500), load_max }, PARAMS)
}

fn loaded(serving: u32, load: f64) -> ScalingSample {
    ScalingSample { serving, load: Some(load), ..ScalingSample::default() }
}

#[test]
fn the_papers_rule_adds_one_above_the_most_and_drops_one_below_the_least() {
    let mut law = seed(27.0);
    let mut tick = |serving, load| law.on_tick(Instant::ORIGIN, &loaded(serving, load)).map(|it| it.wanted);
    assert_eq!(tick(3, 27.0), None, "only above it");
    assert_eq!(tick(3, 27.1), Some(4));
    assert_eq!(tick(4, 19.6), None, "3 · 26 / 4 is 19.5");
    assert_eq!(tick(4, 19.4), Some(3));
    assert_eq!(tick(3, 0.0), None, "no fewer than at the start");
}

#[test]
fn without_a_report_from_a_node_nothing_changes() {
    let mut law = seed(27.0);
    assert_eq!(law.on_tick(Instant::ORIGIN, &ScalingSample { serving: 5, ..ScalingSample::default() }), None);
}

/// Dropping a node leaves the same work for one fewer, which is never enough to add it again.
#[test]
fn the_papers_rule_never_undoes_a_drop_at_once() {
    for nodes in 2..200_u32 {
        for load_max in [1.5, 2.0, 15.0, 27.0, 39.0, 55.0, 1000.0] {
            let just_below = load_min(load_max, nodes) * (1.0 - 1e-9);
            let after = just_below * f64::from(nodes) / f64::from(nodes - 1);
            assert!(after < load_max - 1.0 + 1e-9, "{nodes} nodes, {load_max}: {after}");
        }
    }
}

proptest! {
    /// The same tasks on the nodes of a moment later never ask for the opposite. After a drop there may even be
    /// one more on each node.
    #[test]
    fn the_papers_rule_never_undoes_a_move_at_once(
        load_max in 1.1..1000.0_f64,
        nodes in 1..=256_u32,
        load in prop_oneof![0.0..2000.0_f64, 0.0..4.0_f64],
        near in prop_oneof![Just(None), (0.99..1.01_f64).prop_map(Some)],
        more in 0.0..=1.0_f64,
    ) {
        // Loads around the two bounds are rare by chance.
        let load = near.map_or(load, |near| near * load_min(load_max, nodes));
        let interval = Duration::from_millis(500);
        let params = ScalingParams { present: nodes, least: 1, most: 300 };
        let mut law = Scaling::new(ScalingLaw::Seed { interval, load_max }, params);
        let tasks = load * f64::from(nodes);
        if let Some(moved) = law.on_tick(Instant::ORIGIN, &loaded(nodes, load)) {
            prop_assert_eq!(moved.wanted.abs_diff(nodes), 1);
            let after = tasks / f64::from(moved.wanted);
            let after = if moved.wanted < nodes { after + more } else { after };
            let next = law.on_tick(Instant::ORIGIN + interval, &loaded(moved.wanted, after));
            let is_undone = next.is_some_and(|next| next.wanted == nodes);
            prop_assert!(!is_undone, "{nodes} nodes, {load} tasks each: {moved:?}, {next:?}");
        }
    }
}

/// Feeds a law with `rate` visits a second, of `each` node-seconds, for so many ticks.
fn feed(law: &mut Scaling, from_s: f64, ticks: u32, rate: f64, each: f64, to_come_s: f64) -> Vec<u32> {
    let tick = |tick: u32| {
        let visits = (rate / 2.0) as u64;
        let sample = ScalingSample {
            serving: law.wanted(),
            begun: visits,
            ended: visits,
            work_s: visits as f64 * each,
            to_come_s,
            start_s: Some(0.3),
            ..ScalingSample::default()
        };
        let _ = law.on_tick(Instant::ORIGIN + seconds(from_s + 0.5 * f64::from(tick)), &sample);
        law.wanted()
    };
    (0..ticks).map(tick).collect()
}

#[test]
fn as_many_nodes_as_what_comes_keeps_busy() {
    for eagerness in [0.0, 0.5, 1.0] {
        let mut law = Scaling::new(ScalingLaw::Demand { eagerness }, PARAMS);
        let nodes = feed(&mut law, 0.0, 600, 40.0, 0.16, 0.0);
        assert_eq!(nodes.last(), Some(&6), "40 · 0.16 = 6.4, at eagerness {eagerness}");
    }
}

#[test]
fn a_rise_counts_in_full_at_once_if_the_law_is_eager_and_else_once_it_has_lasted() {
    let nodes = |eagerness| {
        let mut law = Scaling::new(ScalingLaw::Demand { eagerness }, PARAMS);
        feed(&mut law, 0.0, 100, 20.0, 0.16, 0.0);
        let rise = feed(&mut law, 50.0, 24, 80.0, 0.16, 0.0);
        (rise[0], rise[17], rise[23])
    };
    // 20 visits a second are 3.2 nodes, 80 are 12.8.
    assert_eq!(nodes(1.0), (13, 13, 13));
    assert_eq!(nodes(0.5), (8, 8, 13));
    assert_eq!(nodes(0.0), (4, 4, 13), "23.2 may be chance");
}

#[test]
fn what_waits_is_worked_off_by_nodes_of_its_own() {
    let nodes = |eagerness, waits| {
        let mut law = Scaling::new(ScalingLaw::Demand { eagerness }, PARAMS);
        feed(&mut law, 0.0, 100, 20.0, 0.16, 0.0);
        *feed(&mut law, 50.0, 2, 20.0, 0.16, waits).last().unwrap()
    };
    assert_eq!(nodes(0.5, 101.6), 5, "3.2 and 0.2 · 10");
    assert_eq!(nodes(1.0, 13.6), 11, "3.2, and all of it within the second: 2.2 · 3.46");
    assert_eq!(nodes(1.0, 4.6), 6, "3.2 and 3");
    assert_eq!(nodes(0.0, 101.6), 3, "3.2 and 0.02 · 10");
    assert_eq!(nodes(1.0, 1e9), 24);
}

#[test]
fn nodes_are_given_back_only_after_twice_the_time_of_a_start() {
    let mut law = Scaling::new(ScalingLaw::Demand { eagerness: 1.0 }, PARAMS);
    let quiet = |at: f64| ScalingSample { serving: 10, start_s: Some(at), ..ScalingSample::default() };
    feed(&mut law, 0.0, 20, 60.0, 0.16, 0.0);
    assert_eq!(law.wanted(), 10);
    let mut given_back = None;
    for tick in 0..60 {
        let now = Instant::ORIGIN + seconds(10.0 + 0.5 * f64::from(tick));
        if law.on_tick(now, &quiet(10.0)).is_some() && given_back.is_none() {
            given_back = Some(0.5 * f64::from(tick));
        }
    }
    assert!(given_back.is_some_and(|after| (18.0..=24.0).contains(&after)), "{given_back:?}");
}

#[test]
fn nothing_is_given_back_before_it_is_known_what_is_enough() {
    let params = ScalingParams { present: 10, least: 2, most: 24 };
    let mut law = Scaling::new(ScalingLaw::Demand { eagerness: 0.5 }, params);
    // Visits last two seconds: none of them has ended yet.
    for tick in 0..4 {
        let sample = ScalingSample { serving: 10, begun: 30, start_s: Some(5.0), ..ScalingSample::default() };
        assert_eq!(law.on_tick(Instant::ORIGIN + seconds(0.5 * f64::from(tick)), &sample), None);
    }
    assert_eq!(feed(&mut law, 2.0, 10, 60.0, 0.16, 0.0).into_iter().min(), Some(10));
}

#[test]
fn a_tick_right_behind_a_late_one_orders_nothing() {
    let mut law = Scaling::new(ScalingLaw::Demand { eagerness: 1.0 }, PARAMS);
    feed(&mut law, 0.0, 100, 38.0, 0.16, 0.0);
    let before = law.wanted();
    let one = |begun| ScalingSample {
        serving: before,
        begun,
        ended: begun,
        work_s: begun as f64 * 0.16,
        start_s: Some(0.3),
        ..ScalingSample::default()
    };
    let _ = law.on_tick(Instant::ORIGIN + seconds(50.499), &one(38));
    let _ = law.on_tick(Instant::ORIGIN + seconds(50.5), &one(1));
    assert_eq!(law.wanted(), before);
}

#[test]
fn where_chance_moves_the_need_around_a_whole_number_the_larger_one_soon_stays() {
    let mut law = Scaling::new(ScalingLaw::Demand { eagerness: 0.5 }, PARAMS);
    let mut moves = vec![];
    let mut rng = suimon_model::Rng::new(3);
    for tick in 0..3600 {
        // 31 visits per second and what has lasted of them are about 2.5 nodes.
        let begun: u64 = (0..155).map(|_| u64::from(rng.below(10) == 0)).sum();
        let sample = ScalingSample {
            serving: law.wanted(),
            begun,
            ended: begun,
            work_s: begun as f64 * 0.1,
            start_s: Some(0.05),
            ..ScalingSample::default()
        };
        let now = Instant::ORIGIN + seconds(0.5 * f64::from(tick));
        moves.extend(law.on_tick(now, &sample).map(|_| now.secs_since(Instant::ORIGIN)));
    }
    let late = moves.iter().filter(|at| **at > 900.0).count();
    assert!(late <= 24, "{late} of {}: {moves:?}", moves.len());
    assert!((2..=4).contains(&law.wanted()), "{}", law.wanted());
}

#[test]
fn nothing_is_given_back_while_somebody_waits_to_be_let_in() {
    let mut law = Scaling::new(ScalingLaw::Demand { eagerness: 1.0 }, PARAMS);
    feed(&mut law, 0.0, 20, 60.0, 0.16, 0.0);
    let held = ScalingSample { serving: 10, is_held: true, start_s: Some(0.3), ..ScalingSample::default() };
    let now = |tick: i32| Instant::ORIGIN + seconds(10.0 + 0.5 * f64::from(tick));
    (0..60).for_each(|tick| assert_eq!(law.on_tick(now(tick), &held), None));
    let moved = law.on_tick(now(60), &ScalingSample { is_held: false, ..held });
    assert_eq!(moved.map(|moved| moved.why), Some(ScalingReason::Enough));
}

#[test]
fn whatever_little_is_asked_for_has_a_node() {
    let params = ScalingParams { present: 0, least: 0, most: 8 };
    let mut law = Scaling::new(ScalingLaw::Demand { eagerness: 0.5 }, params);
    let now = |tick: i32| Instant::ORIGIN + seconds(0.5 * f64::from(tick));
    (0..9).for_each(|tick| assert_eq!(law.on_tick(now(tick), &ScalingSample::default()), None));
    let first = ScalingSample { begun: 1, ..ScalingSample::default() };
    assert_eq!(law.on_tick(now(9), &first).map(|moved| moved.wanted), Some(1));
    // One visit per second of a twentieth of a node-second keeps it.
    feed(&mut law, 10.0, 200, 1.0, 0.05, 0.0);
    assert_eq!(law.wanted(), 1);
}

#[test]
fn nodes_are_given_back_where_visits_have_become_few() {
    let mut law = Scaling::new(ScalingLaw::Demand { eagerness: 1.0 }, PARAMS);
    feed(&mut law, 0.0, 20, 60.0, 0.16, 0.0);
    assert_eq!(law.wanted(), 10);
    // A start takes two minutes, so a long time passes until it is known that fewer are enough.
    let quiet = ScalingSample { serving: 10, start_s: Some(120.0), ..ScalingSample::default() };
    let now = |tick: i32| Instant::ORIGIN + seconds(10.0 + 0.5 * f64::from(tick));
    let moves: Vec<_> = (0..1000).filter_map(|tick| law.on_tick(now(tick), &quiet)).collect();
    assert_eq!(moves.last().map(|moved| moved.wanted), Some(PARAMS.least));
}

/// Plays five minutes at full nodes with idle processors, before which people wait; `rate`: requests that
/// end per second by the number of nodes. Returns the moves, with their seconds.
fn play_full(rate: impl Fn(u32) -> u64, waits: impl Fn(u32) -> bool) -> Vec<(f64, u32, ScalingReason)> {
    let params = ScalingParams { present: 1, least: 1, most: 8 };
    let mut law = Scaling::new(ScalingLaw::Demand { eagerness: 0.5 }, params);
    let mut moves = vec![];
    for tick in 0..1200 {
        let (now, serving) = (Instant::ORIGIN + seconds(0.5 * f64::from(tick)), law.wanted());
        let ended = rate(serving) / 2;
        let sample = ScalingSample {
            serving,
            begun: ended,
            ended,
            answered: ended,
            requests: 20 * serving,
            work_s: 0.5 * f64::from(serving),
            by_fullness: true,
            to_come_s: if waits(serving) { 100.0 } else { 0.0 },
            is_held: waits(serving),
            start_s: Some(1.0),
            ..ScalingSample::default()
        };
        let moved = law.on_tick(now, &sample);
        moves.extend(moved.map(|moved| (now.secs_since(Instant::ORIGIN), moved.wanted, moved.why)));
    }
    moves
}

#[test]
fn nodes_that_are_full_of_requests_that_wait_get_more_as_long_as_more_serve_more() {
    let moves = play_full(|nodes| 20 * u64::from(nodes), |nodes| nodes < 5);
    let wanted: Vec<u32> = moves.iter().map(|(_, wanted, _)| *wanted).collect();
    assert!(wanted.iter().max().is_some_and(|most| *most >= 5), "{moves:?}");
    assert!(moves.iter().all(|(_, _, why)| *why != ScalingReason::NoGain), "{moves:?}");
}

#[test]
fn where_more_nodes_serve_no_more_they_go_back_and_it_is_tried_ever_less_often() {
    let moves = play_full(|_| 20, |_| true);
    let back: Vec<f64> = moves
        .iter()
        .filter(|(_, wanted, why)| *why == ScalingReason::NoGain && *wanted == 1)
        .map(|(at, ..)| *at)
        .collect();
    assert!((2..=4).contains(&back.len()), "{moves:?}");
    let pauses: Vec<f64> = back.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.windows(2).all(|pair| pair[1] > pair[0] + 30.0), "{moves:?}");
}

#[test]
fn nodes_that_nobody_is_let_in_to_are_not_judged() {
    let params = ScalingParams { present: 1, least: 1, most: 8 };
    let mut law = Scaling::new(ScalingLaw::Demand { eagerness: 1.0 }, params);
    // The line is served faster by eight nodes, which are filled to a third: the gate lets in only so many.
    for tick in 0..600 {
        let (now, serving) = (Instant::ORIGIN + seconds(0.5 * f64::from(tick)), law.wanted());
        let ended = if serving == 1 { 3 } else { 8 };
        let sample = ScalingSample {
            serving,
            begun: ended,
            ended,
            answered: ended,
            requests: 40 * serving.min(3),
            work_s: 0.5 * f64::from(serving.min(3)),
            by_fullness: true,
            to_come_s: 100.0,
            is_held: true,
            start_s: Some(1.0),
            ..ScalingSample::default()
        };
        let moved = law.on_tick(now, &sample);
        assert!(moved.is_none_or(|moved| moved.why != ScalingReason::NoGain), "{moved:?} after {tick} ticks");
    }
    assert!(law.wanted() > 3);
}

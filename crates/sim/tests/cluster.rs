//! A cluster whose number of nodes changes.

use std::time::Duration;
use suimon_sim::cluster::{
    ClusterRun, ClusterSetup, Dispatch, PageViews, Scaling, ScalingLaw, ScalingParams, run_cluster,
};
use suimon_workload::{Arrivals, Phase, Spacing};

const LASTS: u64 = 20;

/// 15 page views a second, and `most` from the second to the eighth.
fn setup(most: f64) -> ClusterSetup {
    let phase =
        |seconds, rate| Phase { lasts: Duration::from_secs(seconds), from_per_s: rate, to_per_s: rate };
    let phases = vec![phase(2, 15.0), phase(6, most), phase(LASTS - 8, 15.0)];
    ClusterSetup {
        arrivals: Arrivals::Open { phases, spacing: Spacing::Even, users_max: 100_000 },
        nodes_first: 3,
        nodes_most: 24,
        start: (Duration::from_millis(250), Duration::from_millis(400)),
        views: PageViews {
            files: (5, 15),
            kept: 0.7,
            static_s: 0.0062,
            dynamic: 0.1,
            dynamic_s: (0.005, 0.5),
        },
        reports_every: Duration::from_millis(10),
        dispatch: Dispatch::Told,
    }
}

fn played(setup: &ClusterSetup, seed: u64, law: ScalingLaw) -> ClusterRun {
    let nodes = setup.nodes_first;
    let params = ScalingParams { present: nodes, least: nodes, most: setup.nodes_most };
    run_cluster(setup, seed, &mut Scaling::new(law, params))
}

const PAPER: ScalingLaw = ScalingLaw::Seed { interval: Duration::from_millis(500), load_max: 25.0 };

#[test]
fn everybody_is_served_and_nothing_is_done_twice() {
    let setup = setup(60.0);
    let came = 2 * 15 + 6 * 60 + 12 * 15;
    for law in [ScalingLaw::Fixed(3), PAPER, ScalingLaw::default()] {
        let run = played(&setup, 1, law);
        let last = run.seconds.last().unwrap();
        assert!(run.views.len().abs_diff(came) <= 3, "{} of {came} with {law:?}", run.views.len());
        let files = last.files as f64 / run.views.len() as f64;
        assert!((9.5..10.5).contains(&files), "{files} files of a view with {law:?}");
        let each = last.work / run.views.len() as f64;
        let expected = setup.views.mean_s();
        assert!((each / expected - 1.0).abs() < 0.1, "{each} s instead of {expected} with {law:?}");
        assert!(last.work <= last.node_seconds, "{last:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let once = |seed| {
        let run = played(&setup(60.0), seed, PAPER);
        (run.seconds, run.views, run.orders)
    };
    assert_eq!(once(7), once(7));
    assert_ne!(once(7).0, once(8).0);
}

#[test]
fn fixed_nodes_cost_what_they_are() {
    let run = played(&ClusterSetup { nodes_first: 5, ..setup(30.0) }, 1, ScalingLaw::Fixed(5));
    let last = run.seconds.len() - 1;
    assert!((run.seconds[last].node_seconds - 5.0 * last as f64).abs() < 1e-6);
    assert_eq!((run.orders, run.returns), (0, 0));
}

#[test]
fn nodes_come_with_a_rise_and_go_after_it() {
    for law in [PAPER, ScalingLaw::default()] {
        let run = played(&setup(60.0), 3, law);
        let most = run.seconds.iter().map(|second| second.nodes).max().unwrap();
        assert!((5..=24).contains(&most), "{most} nodes with {law:?}");
        assert!(run.seconds.iter().all(|second| second.nodes >= 3));
        assert_eq!(run.seconds.last().unwrap().nodes, 3, "{law:?}");
        assert_eq!(run.orders, run.returns);
    }
}

#[test]
fn a_rise_takes_less_time_with_nodes_that_come() {
    let setup = setup(60.0);
    let mean = |law| {
        let views = played(&setup, 5, law).views;
        views.iter().map(|view| view.took.as_secs_f64()).sum::<f64>() / views.len() as f64
    };
    let (fixed, paper, own) = (mean(ScalingLaw::Fixed(3)), mean(PAPER), mean(ScalingLaw::default()));
    assert!(paper < 0.5 * fixed && own < 0.5 * fixed, "{fixed} {paper} {own}");
}

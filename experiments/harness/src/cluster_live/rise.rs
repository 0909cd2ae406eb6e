//! The rise: nodes come and go, beside what the simulator says of the same scenario.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use suimon_sim::cluster::{Scaling, ScalingLaw, ScalingParams, run_cluster};
use suimon_statistics::{mean, quantile};

use super::place::Place;
use super::scenario::Scenario;
use crate::common::Common;
use crate::crowd::Crowd;
use crate::trouble::Result;

/// What nobody has set.
const EAGERNESS: f64 = 0.5;

/// One play, live or simulated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Rise {
    pub(super) seed: u64,
    /// Mean number of nodes that were there while it counted, starting and draining ones, too: n_s.
    pub(super) nodes: f64,
    pub(super) peak: u32,
    /// Page views that were completed while it counted, and how long they took, seconds.
    pub(super) views: u64,
    pub(super) mean_s: f64,
    pub(super) p99_s: f64,
    /// Visitors who failed, and those who were shown the waiting page.
    pub(super) failed: u64,
    pub(super) in_line: u64,
    /// Nodes at moments: seconds, and how many.
    pub(super) course: Vec<(f64, u32)>,
}

/// Plays it in the simulator.
pub(super) fn simulated(scenario: &Scenario, seed: u64) -> Rise {
    let nodes = &scenario.nodes;
    let params = ScalingParams { present: nodes.first, least: nodes.first, most: nodes.most };
    let mut rule = Scaling::new(ScalingLaw::Demand { eagerness: EAGERNESS }, params);
    let run = run_cluster(&scenario.simulated(), seed, &mut rule);
    let (from, until) = (scenario.counted.from_s as usize, scenario.counted.until_s as usize);
    let counted = |second: f64| (from as f64..until as f64).contains(&second);
    let ended = run.views.iter().filter(|view| counted((view.began + view.took).as_secs_f64()));
    let took: Vec<f64> = ended.map(|view| view.took.as_secs_f64()).collect();
    let seconds = |at: usize| run.seconds.get(at).copied().unwrap_or_default().node_seconds;
    Rise {
        seed,
        nodes: (seconds(until) - seconds(from)) / (until - from) as f64,
        peak: run.seconds.iter().map(|second| second.nodes).max().unwrap_or_default(),
        views: took.len() as u64,
        mean_s: mean(&took),
        p99_s: quantile(&took, 0.99),
        failed: 0,
        in_line: 0,
        course: run.seconds.iter().enumerate().map(|(at, second)| (at as f64, second.nodes)).collect(),
    }
}

/// Plays it with real processes.
pub(super) fn live(common: &Common, scenario: &Scenario, seed: u64) -> Result<Rise> {
    let nodes = &scenario.nodes;
    let law = format!("min = {}\nmax = {}\neagerness = {EAGERNESS}", nodes.first, nodes.most);
    let mut place = Place::start(common, "rise", scenario, &law, nodes.first)?;
    let (from, until) = (scenario.counted.from_s, scenario.counted.until_s);
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &place.folder.clone(),
        core: common.load_core,
        journey: scenario.journey(seed, &scenario.phase),
        to: place.gateway.address,
        warmup: Duration::from_secs(from.into()),
        measure: Some(Duration::from_secs((until - from).into())),
    };
    let began = Instant::now();
    let mut course: Vec<(f64, u32)> = Vec::new();
    let report = crowd.start()?.finish(|_| {
        place.must_run()?;
        let scaling = place.scaling()?;
        let count = scaling.serving + scaling.starting + scaling.parked + scaling.draining;
        course.push((began.elapsed().as_secs_f64(), count));
        Ok(())
    })?;
    place.end()?;
    Ok(Rise {
        seed,
        nodes: mean_between(&course, from.into(), until.into()),
        peak: course.iter().map(|(_, count)| *count).max().unwrap_or_default(),
        views: report.sessions_completed,
        mean_s: report.session_time.mean_s,
        p99_s: report.session_time.p99_s,
        failed: report.mid_session_failures + report.first_step_failures,
        in_line: report.line.as_ref().map_or(0, |line| line.visitors),
        course,
    })
}

/// Returns the mean over time of what was seen; each look holds until the next one.
fn mean_between(course: &[(f64, u32)], from: f64, until: f64) -> f64 {
    let next = course.iter().skip(1).map(|(at, _)| *at).chain([until]);
    let parts = course.iter().zip(next).map(|((at, count), next)| {
        let lasts = (next.min(until) - at.max(from)).max(0.0);
        (lasts, lasts * f64::from(*count))
    });
    let (time, sum) = parts.fold((0.0, 0.0), |(time, sum), (lasts, part)| (time + lasts, sum + part));
    sum / time.max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_holds_until_the_next_one() {
        let course = [(0.0, 3), (2.0, 5), (3.0, 1)];
        assert!((mean_between(&course, 1.0, 4.0) - (3.0 + 5.0 + 1.0) / 3.0).abs() < 1e-9);
    }
}

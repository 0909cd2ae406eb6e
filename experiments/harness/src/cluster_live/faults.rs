//! Faults of nodes under a steady load.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use suimon_process::{Signal, group};

use super::place::{NodeProcess, Place};
use super::scenario::{Rate, Scenario};
use crate::common::Common;
use crate::crowd::Crowd;
use crate::http::Visitor;
use crate::trouble::{Result, failed};

/// Nodes, and what is asked for as a share of what they can do.
pub(super) const NODES: u32 = 4;
pub(super) const SHARE: f64 = 0.6;
/// When the counting begins, when the fault comes, and how long the load goes on after it, seconds.
pub(super) const COUNTED_FROM_S: u32 = 5;
pub(super) const AT_S: u32 = 15;
const AFTER_S: u32 = 25;
/// How long a fault lasts that is undone.
const LASTS_S: u32 = 10;
/// How long one counts that is not.
const KILLED_S: u32 = 3;
/// From where on it is "after", seconds from the fault.
const LATER_S: u32 = 17;
/// Visitors who come while all nodes are gone, when, and from one to the next.
pub(super) const WITNESSES: usize = 5;
const WITNESS_AFTER: Duration = Duration::from_millis(1500);
const WITNESS_EVERY: Duration = Duration::from_millis(300);
/// How long one waits for an answer, between two questions at least, and in all.
const WITNESS_PATIENCE: Duration = Duration::from_secs(20);
const ASK_AGAIN: Duration = Duration::from_millis(2200);
const WITNESS_LASTS: Duration = Duration::from_secs(60);
/// Seconds over which completions are averaged, for how many means it must be normal in a row, and the share
/// of what was before that is normal.
const WINDOW: usize = 5;
const IN_A_ROW: usize = 6;
const NORMAL: f64 = 0.9;

/// What is done to nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// One is killed with SIGKILL.
    Killed,
    /// One is stopped with SIGSTOP.
    Frozen,
    /// One answers 500 at once.
    Failing,
    /// One takes five times as long.
    Slow,
    /// All are killed, and none comes to its start for ten seconds.
    AllKilled,
}

impl Fault {
    pub(super) const ALL: [Fault; 5] =
        [Fault::Killed, Fault::Frozen, Fault::Failing, Fault::Slow, Fault::AllKilled];

    pub(super) const fn words(self) -> &'static str {
        match self {
            Fault::Killed => "one killed",
            Fault::Frozen => "one frozen",
            Fault::Failing => "one answers 500 at once",
            Fault::Slow => "one slowed fivefold",
            Fault::AllKilled => "all killed, back after 10 s",
        }
    }
}

/// A fault under load. Seconds are since the load began.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) fault: Fault,
    pub(super) asked_per_s: f64,
    pub(super) fault_at_s: f64,
    pub(super) completed: u64,
    /// Sessions that had begun and were not finished, and what befell them and newcomers.
    pub(super) lost: u64,
    pub(super) failures_by_kind: BTreeMap<String, u64>,
    /// Answers of the failing node itself: the application's, not the gateway's.
    pub(super) failed_by_node: u64,
    pub(super) first_step_failures: u64,
    pub(super) waiting_pages: u64,
    pub(super) refusals: u64,
    pub(super) completed_by_second: Vec<u32>,
    pub(super) failed_by_second: Vec<u32>,
    /// Sessions per second before, while it lasted, and after it.
    pub(super) before_per_s: f64,
    pub(super) during_per_s: f64,
    pub(super) after_per_s: f64,
    /// From the fault until it stays at 0.9 of before; absent: never.
    pub(super) normal_after_s: Option<u32>,
    pub(super) p99_s: f64,
    /// Nodes that serve at the end, and processes that outlived the gateway.
    pub(super) serving: u32,
    pub(super) left: usize,
    pub(super) witnesses: Vec<Witness>,
}

/// A visitor who came while all nodes were gone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Witness {
    /// Answers: seconds since the first question, the status, the state of the line, and the place in it.
    pub(super) answers: Vec<(f64, u16, String, Option<u64>)>,
    /// When it was served.
    pub(super) served_after_s: Option<f64>,
}

impl Witness {
    /// Returns whether it got a place, kept it, and was told that the application is down.
    pub(super) fn was_told(&self) -> bool {
        self.answers.iter().any(|(_, _, state, _)| state == "application_down")
    }

    pub(super) fn kept_place(&self) -> bool {
        let places: Vec<u64> = self.answers.iter().filter_map(|(.., place)| *place).collect();
        self.served_after_s.is_some() && places.windows(2).all(|pair| pair[1] <= pair[0])
    }
}

pub(super) fn play(common: &Common, scenario: &Scenario, fault: Fault) -> Result<Case> {
    let law = format!("law = \"fixed\"\ncount = {NODES}\nmax = {NODES}");
    let name = format!("{fault:?}").to_lowercase();
    // As many files in every page view, so that those of a second are as much work as those of another.
    let (fewest, most) = scenario.views.files;
    let mut scenario = scenario.clone();
    scenario.views.files = ((fewest + most) / 2, (fewest + most) / 2);
    let scenario = &scenario;
    let mut place = Place::start(common, &name, scenario, &law, NODES)?;
    let asked_per_s = SHARE * f64::from(NODES) / scenario.view_s();
    let lasts = AT_S + AFTER_S;
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &place.folder.clone(),
        core: common.load_core,
        journey: scenario.journey(common.seed, &[Rate { seconds: lasts, per_s: asked_per_s }]),
        to: place.address,
        // Losses count from the first second on.
        warmup: Duration::ZERO,
        measure: None,
    };
    let mut hit: Vec<NodeProcess> = Vec::new();
    let mut fault_at: Option<Duration> = None;
    let mut is_undone = false;
    let mut witnesses: Vec<JoinHandle<Witness>> = Vec::new();
    let report = crowd.start()?.finish(|at| {
        place.must_run()?;
        if fault_at.is_none() && at >= Duration::from_secs(AT_S.into()) {
            fault_at = Some(at);
            hit = strike(&place, fault)?;
            if fault == Fault::AllKilled {
                witnesses = (0..WITNESSES).map(|number| witness(place.address, number)).collect();
            }
        }
        if !is_undone && at >= Duration::from_secs((AT_S + LASTS_S).into()) {
            is_undone = true;
            undo(&place, fault, &hit)?;
        }
        Ok(())
    })?;
    let witnesses = witnesses.into_iter().map(|witness| {
        witness.join().map_err(|_| crate::trouble::Trouble::Failed("a witness panicked".to_owned()))
    });
    let witnesses = witnesses.collect::<Result<Vec<Witness>>>()?;
    let serving = place.scaling()?.serving;
    let left = place.end()?;
    let completed: Vec<u32> = report.series.iter().map(|second| second.completed).collect();
    let of = |second: &suimon_crowd::SecondReport| {
        second.mid_session_failures + second.first_step_failures + second.refusals
    };
    let during = if fault == Fault::Killed { KILLED_S } else { LASTS_S };
    let before = rate(&completed, COUNTED_FROM_S, AT_S);
    Ok(Case {
        fault,
        asked_per_s,
        fault_at_s: fault_at.map_or(f64::NAN, |at| at.as_secs_f64()),
        completed: report.sessions_completed,
        lost: report.sessions_failed_inside,
        failed_by_node: report.failures_by_kind.get("status_500").copied().unwrap_or_default(),
        failures_by_kind: report.failures_by_kind.clone(),
        first_step_failures: report.first_step_failures,
        waiting_pages: report.waiting_pages,
        refusals: report.refusals,
        failed_by_second: report.series.iter().map(of).collect(),
        before_per_s: before,
        during_per_s: rate(&completed, AT_S, AT_S + during),
        after_per_s: rate(&completed, AT_S + LATER_S, lasts),
        normal_after_s: normal_after(&completed, before, lasts as usize),
        completed_by_second: completed,
        p99_s: report.session_time.p99_s,
        serving,
        left,
        witnesses,
    })
}

/// Does it, and returns the nodes that it was done to.
fn strike(place: &Place, fault: Fault) -> Result<Vec<NodeProcess>> {
    let nodes = place.answering()?;
    if nodes.len() < NODES as usize {
        return failed(format!("{} of {NODES} nodes answer before the fault", nodes.len()));
    }
    let one = &nodes[..1];
    match fault {
        Fault::Killed => group::signal(one[0].pid, Signal::KILL),
        Fault::Frozen => group::signal(one[0].pid, Signal::STOP),
        Fault::Failing => one[0].told("mode=fail")?,
        Fault::Slow => one[0].told("mode=slow&factor=5")?,
        Fault::AllKilled => {
            place.hold_starts(true)?;
            nodes.iter().for_each(|node| group::signal(node.pid, Signal::KILL));
            return Ok(nodes);
        }
    }
    Ok(one.to_vec())
}

/// Undoes what has not been replaced meanwhile.
fn undo(place: &Place, fault: Fault, hit: &[NodeProcess]) -> Result<()> {
    let alive = place.nodes()?;
    let hit = hit.iter().filter(|node| alive.contains(node));
    match fault {
        Fault::Killed => Ok(()),
        Fault::AllKilled => place.hold_starts(false),
        Fault::Frozen => {
            hit.for_each(|node| group::signal(node.pid, Signal::CONT));
            Ok(())
        }
        // It may be ended at this moment.
        Fault::Failing | Fault::Slow => {
            hit.for_each(|node| drop(node.told("mode=well")));
            Ok(())
        }
    }
}

/// A visitor who comes a while after the fault, and asks until it is served.
fn witness(to: SocketAddr, number: usize) -> JoinHandle<Witness> {
    thread::spawn(move || {
        thread::sleep(WITNESS_AFTER + WITNESS_EVERY * number as u32);
        let mut visitor = Visitor::new(to, WITNESS_PATIENCE);
        let began = Instant::now();
        let mut witness = Witness { answers: Vec::new(), served_after_s: None };
        while began.elapsed() < WITNESS_LASTS {
            let Ok(answer) = visitor.ask("/file", None) else {
                witness.answers.push((began.elapsed().as_secs_f64(), 0, "no answer".to_owned(), None));
                thread::sleep(ASK_AGAIN);
                continue;
            };
            let at = began.elapsed().as_secs_f64();
            if answer.status == 200 && answer.body.starts_with(b"served by") {
                witness.served_after_s = Some(at);
                break;
            }
            let said: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let state = said["state"].as_str().unwrap_or("none").to_owned();
            witness.answers.push((at, answer.status, state, said["position"].as_u64()));
            let after =
                said["poll_after_s"].as_f64().filter(|after| (0.0..10.0).contains(after)).unwrap_or(1.0);
            thread::sleep(Duration::from_secs_f64(after).max(ASK_AGAIN));
        }
        witness
    })
}

fn rate(completed: &[u32], from: u32, until: u32) -> f64 {
    let seconds = completed.iter().skip(from as usize).take((until - from) as usize);
    f64::from(seconds.sum::<u32>()) / f64::from(until - from)
}

/// Returns the seconds from the fault until the means of some seconds are normal in a row.
fn normal_after(completed: &[u32], before: f64, until: usize) -> Option<u32> {
    let seconds = &completed[..completed.len().min(until)];
    let is_normal = |some: &[u32]| f64::from(some.iter().sum::<u32>()) / WINDOW as f64 >= NORMAL * before;
    let normal: Vec<bool> = seconds.get(AT_S as usize..)?.windows(WINDOW).map(is_normal).collect();
    let first = normal.windows(IN_A_ROW).position(|row| row.iter().all(|it| *it))?;
    Some(first as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_normal_from_where_it_is_so_for_a_while() {
        let with = |change: fn(&mut Vec<u32>)| {
            let mut seconds = vec![5; 40];
            change(&mut seconds);
            normal_after(&seconds, 5.0, 40)
        };
        assert_eq!(with(|_| ()), Some(0));
        assert_eq!(with(|seconds| seconds[15..20].fill(0)), Some(5));
        assert_eq!(with(|seconds| seconds[15..].fill(0)), None);
    }

    #[test]
    fn a_witness_keeps_its_place_if_it_never_moves_back() {
        let answer = |place| (1.0, 503, "application_down".to_owned(), Some(place));
        let with = |places: &[u64]| Witness {
            answers: places.iter().map(|place| answer(*place)).collect(),
            served_after_s: Some(9.0),
        };
        assert!(with(&[3, 3, 1]).kept_place() && with(&[3]).was_told());
        assert!(!with(&[3, 4]).kept_place());
    }
}

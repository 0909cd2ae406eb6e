//! Faults of nodes under a steady load.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use suimon_process::{Signal, group};

use super::place::{NodeProcess, Place};
use super::scenario::{Rate, Scenario};
use crate::common::Common;
use crate::crowd::Crowd;
use crate::lab_nodes;
use crate::recovery::{Recovery, Spans};
use crate::trouble::{Result, failed};
use crate::witness::{Witness, Witnesses};

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
    /// Sessions around it.
    #[serde(flatten)]
    pub(super) sessions: Recovery,
    pub(super) p99_s: f64,
    /// Nodes that serve at the end, and processes that outlived the gateway.
    pub(super) serving: u32,
    pub(super) left: usize,
    pub(super) witnesses: Vec<Witness>,
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
        to: place.gateway.address,
        // Losses count from the first second on.
        warmup: Duration::ZERO,
        measure: None,
    };
    let mut hit: Vec<NodeProcess> = Vec::new();
    let mut fault_at: Option<Duration> = None;
    let mut is_undone = false;
    let mut witnesses = None;
    let report = crowd.start()?.finish(|at| {
        place.must_run()?;
        if fault_at.is_none() && at >= Duration::from_secs(AT_S.into()) {
            fault_at = Some(at);
            hit = strike(&place, fault)?;
            if fault == Fault::AllKilled {
                witnesses = Some(Witnesses::send(place.gateway.address, "/file"));
            }
        }
        if !is_undone && at >= Duration::from_secs((AT_S + LASTS_S).into()) {
            is_undone = true;
            undo(&place, fault, &hit)?;
        }
        Ok(())
    })?;
    let witnesses = witnesses.map_or(Ok(Vec::new()), Witnesses::end)?;
    let serving = place.scaling()?.serving;
    let left = place.end()?;
    let completed: Vec<u32> = report.series.iter().map(|second| second.completed).collect();
    let of = |second: &suimon_crowd::SecondReport| {
        second.mid_session_failures + second.first_step_failures + second.refusals
    };
    let during = if fault == Fault::Killed { KILLED_S } else { LASTS_S };
    let spans = Spans {
        before: COUNTED_FROM_S..AT_S,
        during: AT_S..AT_S + during,
        after: AT_S + LATER_S..lasts,
        normal: AT_S..lasts,
    };
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
        sessions: Recovery::of(&completed, &spans),
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
        Fault::Failing => lab_nodes::tell(one[0].to(), "mode=fail")?,
        Fault::Slow => lab_nodes::tell(one[0].to(), "mode=slow&factor=5")?,
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
            hit.for_each(|node| drop(lab_nodes::tell(node.to(), "mode=well")));
            Ok(())
        }
    }
}

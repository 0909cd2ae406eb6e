//! A fault under a steady load.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use suimon_process::Signal;

use super::scene::{Known, NODES, Nodes, capacity_per_s};
use crate::common::Common;
use crate::crowd::Crowd;
use crate::lab_nodes;
use crate::recovery::{Recovery, Spans};
use crate::trouble::Result;
use crate::witness::{Witness, Witnesses};

/// What is asked for as a share of what all nodes can do.
pub(super) const SHARE: f64 = 0.7;
/// Requests of a session, and the time between two of them.
pub(super) const STEPS: u32 = 5;
const THINK: Duration = Duration::from_millis(100);
/// How long a visitor waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// When the counting begins, when the fault comes, how long it lasts, from where on it is "after", and when
/// the load ends, seconds.
pub(super) const FROM_S: u32 = 5;
pub(super) const AT_S: u32 = 15;
pub(super) const LASTS_S: u32 = 12;
const AFTER_S: u32 = 35;
pub(super) const END_S: u32 = 50;
/// How long a gateway learns at half of it, and at all of it.
const LEARNS_S: u32 = 20;
/// How often the gateway is asked for its state.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What is done to nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// One is killed with SIGKILL, and started again.
    Killed,
    /// All are.
    AllKilled,
    /// One is stopped with SIGSTOP, and goes on.
    Frozen,
    /// One takes requests and answers none, for as long as the load lasts.
    Silent,
    /// One answers 500 to everything at once.
    Failing,
    /// The name leads to other nodes; those that it led to go on.
    Renamed,
    /// The name leads to other nodes, as those that it led to are dead.
    Moved,
}

impl Fault {
    pub(super) const ALL: [Fault; 7] = [
        Fault::Killed,
        Fault::AllKilled,
        Fault::Frozen,
        Fault::Silent,
        Fault::Failing,
        Fault::Renamed,
        Fault::Moved,
    ];

    pub(super) const fn words(self) -> &'static str {
        match self {
            Fault::Killed => "one killed",
            Fault::AllKilled => "all killed",
            Fault::Frozen => "one frozen",
            Fault::Silent => "one takes requests and answers none",
            Fault::Failing => "one answers 500 at once",
            Fault::Renamed => "the name leads to other nodes",
            Fault::Moved => "the name leads to other nodes, the old ones are dead",
        }
    }

    pub(super) const fn is_of_the_name(self) -> bool {
        matches!(self, Fault::Renamed | Fault::Moved)
    }

    /// Returns whether it is over after its time.
    pub(super) const fn is_undone(self) -> bool {
        !self.is_of_the_name() && !matches!(self, Fault::Silent)
    }

    /// Returns settings of `[upstream]` that are not the defaults.
    const fn upstream(self) -> &'static str {
        // A name is looked up every half minute by default: the play is too short for that.
        if matches!(self, Fault::Renamed) { "discover_every = \"5s\"\n" } else { "" }
    }
}

/// A fault under load. Seconds are since the load began.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) fault: Fault,
    pub(super) known: Known,
    pub(super) asked_per_s: f64,
    pub(super) fault_at_s: f64,
    pub(super) undone_at_s: Option<f64>,
    pub(super) begun: u64,
    pub(super) completed: u64,
    /// Sessions that had begun and were not finished, and what befell them and newcomers.
    pub(super) lost: u64,
    pub(super) failures_by_kind: BTreeMap<String, u64>,
    pub(super) first_step_failures: u64,
    pub(super) waiting_pages: u64,
    pub(super) refusals: u64,
    pub(super) completed_by_second: Vec<u32>,
    pub(super) failed_by_second: Vec<u32>,
    /// Sessions around it.
    #[serde(flatten)]
    pub(super) sessions: Recovery,
    pub(super) p99_s: f64,
    /// What nodes became: when, which, its status, and why.
    pub(super) changes: Vec<(f64, String, String, String)>,
    pub(super) witnesses: Vec<Witness>,
}

impl Case {
    /// Returns failures that are not answers of a failing node.
    pub(super) fn ours(&self) -> u64 {
        self.failures_by_kind.values().sum::<u64>() - self.failed_by_node()
    }

    /// Returns how many answers of the failing node itself were passed on.
    pub(super) fn failed_by_node(&self) -> u64 {
        self.failures_by_kind.get("status_500").copied().unwrap_or_default()
    }

    /// Returns how many who had a place lost it.
    pub(super) fn places_lost(&self) -> usize {
        self.witnesses.iter().filter(|witness| !witness.kept_place()).count()
    }
}

/// Returns the file of what a gateway has learned that has run for a while in front of nodes that work.
pub(super) fn learn(common: &Common, is_found: bool) -> Result<PathBuf> {
    let nodes = Nodes::start(common, if is_found { "learning-named" } else { "learning" }, is_found)?;
    let (mut gateway, learned) = nodes.suimon("", None)?;
    let asked_per_s = asked_per_s();
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &nodes.folder,
        core: common.load_core,
        journey: journey(common.seed, &[(LEARNS_S, asked_per_s / 2.0), (LEARNS_S, asked_per_s)]),
        to: gateway.address,
        warmup: Duration::ZERO,
        measure: None,
    };
    crowd.start()?.finish(|_| gateway.must_run())?;
    gateway.end(true)?;
    Ok(learned)
}

fn asked_per_s() -> f64 {
    SHARE * capacity_per_s() / f64::from(STEPS)
}

pub(super) fn play(common: &Common, fault: Fault, learned: &Path) -> Result<Case> {
    let name = format!("{fault:?}").to_lowercase();
    let mut nodes = Nodes::start(common, &name, fault.is_of_the_name())?;
    let (mut gateway, _) = nodes.suimon(fault.upstream(), Some(learned))?;
    let asked_per_s = asked_per_s();
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &nodes.folder.clone(),
        core: common.load_core,
        journey: journey(common.seed, &[(END_S, asked_per_s)]),
        to: gateway.address,
        // Losses count from the first second on.
        warmup: Duration::ZERO,
        measure: None,
    };
    let (mut fault_at, mut undone_at, mut looked_at) = (None, None, Duration::ZERO);
    let mut witnesses = None;
    let mut changes: Vec<(f64, String, String, String)> = Vec::new();
    let report = crowd.start()?.finish(|at| {
        gateway.must_run()?;
        if fault_at.is_none() && at >= Duration::from_secs(AT_S.into()) {
            fault_at = Some(at);
            strike(&mut nodes, fault)?;
            witnesses = Some(Witnesses::send(gateway.address, "/enter"));
        }
        if undone_at.is_none() && fault.is_undone() && at >= Duration::from_secs((AT_S + LASTS_S).into()) {
            undone_at = Some(at);
            undo(&mut nodes, fault)?;
        }
        if at >= looked_at + LOOK_EVERY
            && let Some(state) = gateway.state()
        {
            looked_at = at;
            for node in state.nodes {
                let before = changes.iter().rfind(|(_, address, ..)| *address == node.address);
                if before.is_none_or(|(.., status, _)| *status != node.status) {
                    changes.push((at.as_secs_f64(), node.address, node.status, node.reason));
                }
            }
        }
        Ok(())
    })?;
    let witnesses = witnesses.map_or(Ok(Vec::new()), Witnesses::end)?;
    gateway.end(true)?;
    let completed: Vec<u32> = report.series.iter().map(|second| second.completed).collect();
    let failed = report
        .series
        .iter()
        .map(|second| second.mid_session_failures + second.first_step_failures + second.refusals);
    let spans = Spans {
        before: FROM_S..AT_S,
        during: AT_S..AT_S + LASTS_S,
        after: AFTER_S..END_S,
        normal: AT_S..END_S,
    };
    Ok(Case {
        fault,
        known: nodes.known(),
        asked_per_s,
        fault_at_s: fault_at.map_or(f64::NAN, |at| at.as_secs_f64()),
        undone_at_s: undone_at.map(|at| at.as_secs_f64()),
        begun: report.sessions_begun,
        completed: report.sessions_completed,
        lost: report.sessions_failed_inside,
        first_step_failures: report.first_step_failures,
        waiting_pages: report.waiting_pages,
        refusals: report.refusals,
        failed_by_second: failed.collect(),
        sessions: Recovery::of(&completed, &spans),
        p99_s: report.session_time.p99_s,
        completed_by_second: completed,
        failures_by_kind: report.failures_by_kind,
        changes,
        witnesses,
    })
}

fn strike(nodes: &mut Nodes<'_>, fault: Fault) -> Result<()> {
    match fault {
        Fault::Killed => nodes.kill(0),
        Fault::AllKilled => (0..NODES.into()).for_each(|number| nodes.kill(number)),
        Fault::Frozen => signal(nodes, Signal::STOP),
        Fault::Silent => lab_nodes::tell(nodes.first[0].0, "mode=silent")?,
        Fault::Failing => lab_nodes::tell(nodes.first[0].0, "mode=fail")?,
        Fault::Renamed => nodes.name(true)?,
        Fault::Moved => {
            (0..NODES.into()).for_each(|number| nodes.kill(number));
            nodes.name(true)?;
        }
    }
    Ok(())
}

fn undo(nodes: &mut Nodes<'_>, fault: Fault) -> Result<()> {
    match fault {
        Fault::Killed => nodes.bring_back(0),
        Fault::AllKilled => (0..NODES.into()).try_for_each(|number| nodes.bring_back(number)),
        Fault::Frozen => {
            signal(nodes, Signal::CONT);
            Ok(())
        }
        Fault::Failing => lab_nodes::tell(nodes.first[0].0, "mode=well"),
        Fault::Silent | Fault::Renamed | Fault::Moved => Ok(()),
    }
}

fn signal(nodes: &Nodes<'_>, signal: Signal) {
    if let Some(node) = &nodes.first[0].1 {
        node.process.signal(signal);
    }
}

/// Who fails gives up; who is to wait in line waits.
fn journey(seed: u64, phases: &[(u32, f64)]) -> String {
    let phase =
        |(seconds, per_s): &(u32, f64)| format!("{{ for = \"{seconds}s\", rate_per_s = {per_s:.3} }}");
    let phases: Vec<String> = phases.iter().map(phase).collect();
    let mut text = format!(
        "seed = {seed}\n\n[arrivals.open]\nspacing = \"even\"\n\
         phases = [{}]\n\n[visitor]\nthink = \"{}ms\"\n\
         patience = \"{}s\"\nreturning = false\n\n[visitor.in_line]\npatience = \"5m\"\n\n\
         [visitor.on_failure]\nretries_max = 0\n\n[[journey]]\nname = \"visit\"\n\n",
        phases.join(", "),
        THINK.as_millis(),
        PATIENCE.as_secs()
    );
    for path in ["enter", "list", "item", "basket", "pay"] {
        text += &format!(
            "[[journey.steps]]\nname = \"{path}\"\npath = \"/{path}\"\nexpect = {{ status = 200, text = \"served by\" }}\n\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crowd_understands_the_journey() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journey.toml");
        std::fs::write(&path, journey(1, &[(9, 28.0)])).unwrap();
        let workload = suimon_settings::journey::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(workload.kinds[0].steps.len(), STEPS as usize);
    }
}

//! A metastable failure: clients that try again keep the application down once something else has brought it
//! down, though that is over.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_process::Signal;

use super::scene::{Nodes, capacity_per_s};
use crate::common::Common;
use crate::crowd::Crowd;
use crate::recovery::{Recovery, Spans, rate};
use crate::trouble::Result;

/// What is asked for as a share of what all nodes can do, before anybody tries again.
pub(super) const SHARE: f64 = 0.9;
/// How long a client waits for an answer, and how often it tries again, at once.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
pub(super) const RETRIES: u32 = 3;
/// As in the other plays.
pub(super) const FROM_S: u32 = 8;
pub(super) const AT_S: u32 = 20;
const AFTER_S: u32 = 45;
pub(super) const END_S: u32 = 65;

/// How long all nodes are stopped.
pub(super) const LASTS_S: u32 = 10;

/// What is between clients and nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Before {
    /// HAProxy, which sends a request where the fewest are.
    Haproxy,
    Suimon,
}

impl Before {
    pub(super) const ALL: [Before; 2] = [Before::Haproxy, Before::Suimon];

    pub(super) const fn words(self) -> &'static str {
        match self {
            Before::Haproxy => "haproxy leastconn",
            Before::Suimon => "suimon",
        }
    }
}

/// One play. Seconds are since the load began.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Storm {
    pub(super) before: Before,
    pub(super) asked_per_s: f64,
    pub(super) over_at_s: f64,
    pub(super) answered_by_second: Vec<u32>,
    pub(super) sent_by_second: Vec<u32>,
    /// Useful answers around the trigger; normal is what is so from its end on.
    #[serde(flatten)]
    pub(super) answers: Recovery,
    /// Requests per second after it.
    pub(super) sent_after_per_s: f64,
}

/// Clients of an interface wait in no line.
const KIND: &str = "\n[[session]]\nkind = \"call\"\nwaiting_room = false\n";
/// How long a gateway learns, and at which share.
const LEARNS_S: u32 = 30;
const LEARNS_AT: f64 = 0.7;

/// Returns the file of what a gateway has learned that has run for a while in front of nodes that work.
pub(super) fn learn(common: &Common) -> Result<PathBuf> {
    let nodes = Nodes::start(common, "learning-calls", false)?;
    let (mut gateway, learned) = nodes.suimon(KIND, None)?;
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &nodes.folder,
        core: common.load_core,
        journey: journey(common.seed, LEARNS_S, LEARNS_AT * capacity_per_s()),
        to: gateway.address,
        warmup: Duration::ZERO,
        measure: Some(Duration::from_secs(LEARNS_S.into())),
    };
    crowd.start()?.finish(|_| gateway.must_run())?;
    gateway.end(true)?;
    Ok(learned)
}

pub(super) fn play(common: &Common, before: Before, learned: &Path) -> Result<Storm> {
    let name = format!("stall-{before:?}").to_lowercase();
    let nodes = Nodes::start(common, &name, false)?;
    let mut gateway = match before {
        Before::Haproxy => nodes.haproxy()?,
        Before::Suimon => nodes.suimon(KIND, Some(learned))?.0,
    };
    let asked_per_s = SHARE * capacity_per_s();
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &nodes.folder,
        core: common.load_core,
        journey: journey(common.seed, END_S, asked_per_s),
        to: gateway.address,
        warmup: Duration::ZERO,
        measure: Some(Duration::from_secs(END_S.into())),
    };
    let (mut began_at, mut over_at) = (None, None);
    let report = crowd.start()?.finish(|at| {
        gateway.must_run()?;
        if began_at.is_none() && at >= Duration::from_secs(AT_S.into()) {
            began_at = Some(at);
            signal(&nodes, Signal::STOP);
        }
        if over_at.is_none() && at >= Duration::from_secs((AT_S + LASTS_S).into()) {
            over_at = Some(at);
            signal(&nodes, Signal::CONT);
        }
        Ok(())
    });
    // A node that is stopped would not end.
    signal(&nodes, Signal::CONT);
    let report = report?;
    gateway.end(false)?;
    let answered: Vec<u32> = report.series.iter().map(|second| second.completed).collect();
    let sent: Vec<u32> = report.series.iter().map(|second| second.requests).collect();
    let over = AT_S + LASTS_S;
    let spans =
        Spans { before: FROM_S..AT_S, during: AT_S..over, after: AFTER_S..END_S, normal: over..END_S };
    Ok(Storm {
        before,
        asked_per_s,
        over_at_s: over_at.map_or(f64::NAN, |at: Duration| at.as_secs_f64()),
        answers: Recovery::of(&answered, &spans),
        sent_after_per_s: rate(&sent, AFTER_S..END_S),
        answered_by_second: answered,
        sent_by_second: sent,
    })
}

fn signal(nodes: &Nodes<'_>, signal: Signal) {
    let running = nodes.first.iter().filter_map(|(_, node)| node.as_ref());
    running.for_each(|node| node.process.signal(signal));
}

/// Each request is a session of its own; whoever waits too long, or is refused, tries again at once.
fn journey(seed: u64, seconds: u32, per_s: f64) -> String {
    format!(
        "seed = {seed}\n\n[arrivals.open]\nspacing = \"even\"\nusers_max = 5000\n\
         phases = [{{ for = \"{seconds}s\", rate_per_s = {per_s:.3} }}]\n\n[visitor]\nthink = \"0s\"\n\
         patience = \"{}ms\"\nreturning = false\n\n[visitor.on_failure]\nretry_from = 1\nretries_max = {RETRIES}\n\
         pause_after_timeout = \"0s\"\npause_after_error = \"1ms\"\n\n[visitor.on_refusal]\nretries_max = {RETRIES}\n\
         wait_default = \"1ms\"\nwait_max = \"1ms\"\n\n[[journey]]\nname = \"call\"\n\n[[journey.steps]]\n\
         name = \"call\"\npath = \"/call\"\nexpect = {{ status = 200, text = \"served by\" }}\n",
        PATIENCE.as_millis()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crowd_understands_the_journey() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journey.toml");
        std::fs::write(&path, journey(1, 9, 180.0)).unwrap();
        suimon_settings::journey::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
    }
}

//! The number of nodes, as JSON.

use serde::{Deserialize, Serialize};
use suimon_proxy::NodesReport;

/// How the nodes stand that come and go.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingState {
    /// Who starts and ends them: a word of `nodes.provider`.
    pub provider: String,
    /// How their number is found: a word of `nodes.law`.
    pub law: String,
    /// How many there should be.
    pub wanted: u32,
    /// The fewest that there may be.
    pub min: u32,
    /// The most that there may be.
    pub max: u32,
    /// Nodes that take new requests.
    pub serving: u32,
    /// Nodes that were ordered and are not ready yet.
    pub starting: u32,
    /// Nodes that are ready and take no requests.
    pub parked: u32,
    /// Nodes that take no new requests and end once they have none.
    pub draining: u32,
    /// Mean time of a start, seconds; `null`: none was seen.
    pub start_seconds: Option<f64>,
    /// How many nodes are kept busy; `null`: unknown, so that the number is held.
    pub busy: Option<f64>,
    /// Work that is there, or in line, node-seconds, as far as can be told.
    pub to_come_seconds: f64,
    /// The last change; `null`: none yet.
    pub last: Option<ScalingChange>,
    /// What keeps the provider from its work, and the remedy.
    pub trouble: Option<String>,
}

/// A change of the number of nodes that are wanted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingChange {
    /// How long ago, seconds.
    pub ago_seconds: f64,
    /// The number since then.
    pub wanted: u32,
    /// Its reason, as metrics name it.
    pub reason: String,
    /// The reason as a sentence.
    pub explanation: String,
    /// What it rests on: the nodes that are needed, or the mean length of the run queues.
    pub signal: f64,
}

impl ScalingState {
    pub(crate) fn of(report: &NodesReport) -> Self {
        let view = &report.view;
        ScalingState {
            provider: report.provider.to_owned(),
            law: report.law.to_owned(),
            wanted: report.wanted,
            min: report.range.0,
            max: report.range.1,
            serving: report.serving,
            starting: view.starting,
            parked: view.parked,
            draining: report.draining,
            start_seconds: view.start_s,
            busy: report.busy,
            to_come_seconds: report.to_come_s,
            last: report.last.map(|(moved, ago)| ScalingChange {
                ago_seconds: ago.as_secs_f64(),
                wanted: moved.wanted,
                reason: moved.why.code().to_owned(),
                explanation: moved.why.explain().to_owned(),
                signal: moved.signal,
            }),
            trouble: view.trouble.clone(),
        }
    }
}

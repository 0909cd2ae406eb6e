//! What nodes report of their load, in state and metrics.

use crate::names;
use crate::text::{Exposition, Metric};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use suimon_proxy::{LoadReportCounts, NodeReportView, UpstreamNodeView};

/// How many load reports came since the start, by what became of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadReportsState {
    /// Datagrams of `suimon agent`: `accepted`, or why not; empty where none are listened for.
    pub datagrams: BTreeMap<String, u64>,
    /// Reports in responses (ORCA): `accepted`, `unreadable` or `without_load`; empty where they are not
    /// read.
    pub responses: BTreeMap<String, u64>,
    /// Answers of nodes that were asked (agent-check): `accepted`, `unreachable` or
    /// `unreadable`; empty where none is asked.
    #[serde(default)]
    pub checks: BTreeMap<String, u64>,
}

/// What a node last reported of its load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeReportState {
    /// `agent`; `agent_check`: it was asked; or `response`: the headers of ORCA.
    pub source: String,
    /// Tasks that run or could for each processor, or the share of the application in use; of one that
    /// was asked, its requests divided by its weight.
    pub load: f64,
    /// How long ago it came, seconds.
    pub age_seconds: f64,
    /// Whether it still counts: it is at most three periods old.
    pub is_current: bool,
    /// Tasks that ran or could at that moment; this and what follows is said by agents alone.
    pub run_queue: Option<u32>,
    /// Their mean over the 100 ms before, ...
    pub run_queue_mean_100ms: Option<f64>,
    /// ... and over the second before.
    pub run_queue_mean_1s: Option<f64>,
    /// Processors of the node.
    pub processors: Option<u16>,
    /// Share of the second before for which a task waited for a processor, 0 to 1; absent: not known.
    pub pressure: Option<f64>,
    /// Requests that the application says it has; absent: not known.
    pub in_flight: Option<u32>,
    /// Time from one report to the next, seconds.
    pub every_seconds: Option<f64>,
}

impl LoadReportsState {
    /// Returns the counts; `None`: no reports are taken.
    pub(crate) fn of(counts: &LoadReportCounts) -> Option<Self> {
        let named = |counts: &[(&str, u64)]| {
            counts.iter().map(|(result, count)| ((*result).to_owned(), *count)).collect()
        };
        let is_on =
            [&counts.datagrams, &counts.responses, &counts.checks].iter().any(|counts| !counts.is_empty());
        is_on.then(|| LoadReportsState {
            datagrams: named(&counts.datagrams),
            responses: named(&counts.responses),
            checks: named(&counts.checks),
        })
    }
}

impl NodeReportState {
    pub(crate) fn of(report: &NodeReportView) -> Self {
        let agent = report.agent.as_ref();
        NodeReportState {
            source: report.source.to_owned(),
            load: report.load,
            age_seconds: report.age.as_secs_f64(),
            is_current: report.is_current,
            run_queue: agent.map(|load| load.run_queue),
            run_queue_mean_100ms: agent.map(|load| load.mean_100ms()),
            run_queue_mean_1s: agent.map(|load| load.mean_1s()),
            processors: agent.map(|load| load.processors),
            pressure: agent.and_then(|load| load.pressure_percent()).map(|percent| percent / 100.0),
            in_flight: agent.and_then(|load| load.in_flight),
            every_seconds: agent.map(|load| load.every.as_secs_f64()),
        }
    }
}

/// Writes how many load reports came, and what nodes say in the last ones.
pub(crate) fn render(out: &mut Exposition, counts: &LoadReportCounts, nodes: &[UpstreamNodeView]) {
    for (metric, counts) in [
        (names::AGENT_DATAGRAMS, &counts.datagrams),
        (names::ORCA_RESPONSES, &counts.responses),
        (names::AGENT_CHECKS, &counts.checks),
    ] {
        let mut family = out.family(metric);
        for (result, count) in counts {
            family.value(&[("result", result)], *count as f64);
        }
    }
    let mut each = |metric: Metric, value: fn(&NodeReportView) -> Option<f64>| {
        let mut family = out.family(metric);
        for node in nodes {
            if let Some(value) = node.report.as_ref().and_then(value) {
                family.value(&[("node", &node.address)], value);
            }
        }
    };
    each(names::NODE_REPORT_CURRENT, |report| Some(f64::from(u8::from(report.is_current))));
    each(names::NODE_REPORT_AGE, |report| Some(report.age.as_secs_f64()));
    each(names::NODE_REPORTED_LOAD, |report| Some(report.load));
    each(names::NODE_RUN_QUEUE, |report| report.agent.map(|load| load.mean_1s()));
    each(names::NODE_PRESSURE, |report| Some(report.agent?.pressure_percent()? / 100.0));
}

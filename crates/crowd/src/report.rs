//! What the visitors saw, as data; [`table`](Report::table) shows it to people.

mod table;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use suimon_model::KindId;
use suimon_statistics::Histogram;
use suimon_workload::Workload;

use crate::line::LineReport;
use crate::quantiles::Quantiles;
use crate::user::Books;

/// The histogram's 64 bins per doubling are merged in groups of 8: the report has 64 ÷ 8 = 8 per
/// doubling.
const BINS_MERGED: usize = 8;

/// What the visitors saw. Counts and times cover the measured time, unless noted otherwise. Times
/// are in seconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The URL that the crowd visited.
    pub base_url: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// Why the run ended.
    pub ended: Ended,
    /// When it began, in seconds since 1970.
    pub started_unix_s: f64,
    /// How long it took, warm-up included.
    pub duration_s: f64,
    /// Its unmeasured beginning.
    pub warmup_s: f64,
    /// Its measured part.
    pub measured_s: f64,

    /// Sessions completed per second.
    pub sessions_per_s: f64,
    /// Sessions begun.
    pub sessions_begun: u64,
    /// Sessions completed.
    pub sessions_completed: u64,
    /// Sessions that visitors left before the end without any failure.
    #[serde(default)]
    pub sessions_left: u64,
    /// Sessions given up.
    pub sessions_gave_up: u64,
    /// Sessions under way at the end.
    pub sessions_under_way: u64,
    /// Sessions with at least one failure after their first step.
    pub sessions_failed_inside: u64,
    /// Time-outs, errors and refusals after the first step; each one counts.
    pub mid_session_failures: u64,
    /// Time-outs and errors at the first step, and refusals there without a time to retry.
    pub first_step_failures: u64,
    /// The failures of both numbers above by step (`kind/step` where there are several kinds).
    pub failures_by_step: BTreeMap<String, u64>,
    /// The same failures by kind.
    pub failures_by_kind: BTreeMap<String, u64>,
    /// The first of them, with what the server said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_failures: Vec<FailureReport>,
    /// Refusals at the first step with a time to retry and without a position. They are not
    /// failures.
    pub refusals: u64,
    /// Waiting pages at the first step. They are not failures, either.
    #[serde(default)]
    pub waiting_pages: u64,
    /// Good responses that were wasted, because their session failed later.
    pub wasted_requests: u64,
    /// Requests sent.
    pub requests: u64,
    /// Requests sent, per second.
    pub requests_per_s: f64,
    /// Requests sent again because a kept connection turned out to be closed, or because the server
    /// has handed over to another process; over the whole run.
    pub reconnects: u64,
    /// Users who did not start because too many were active already (open arrivals); over the whole
    /// run.
    pub users_not_started: u64,

    /// From a session's first request to its last response, of completed sessions.
    pub session_time: Quantiles,
    /// The same, in bins.
    pub session_time_distribution: Vec<Bin>,
    /// From a session's first request to its first step's good response, including refusals and
    /// retries.
    pub first_step_wait: Quantiles,
    /// The steps, in the order of the journeys.
    pub steps: Vec<StepReport>,
    /// Every second of the run, warm-up included.
    pub series: Vec<SecondReport>,

    /// What visitors saw of a waiting room; over the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<LineReport>,

    /// The crowd's own CPU time ÷ time. Above about 0.8 the crowd was the bottleneck, and the
    /// report measures the crowd instead of the server.
    pub crowd_cpu_share: f64,
    /// Delay between the planned and the actual time of sending requests: the crowd's own slowness.
    pub send_delay: Quantiles,
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Its time was over.
    TimeOver,
    /// All users were done.
    AllDone,
    /// It was told to stop.
    Interrupted,
}

/// One bin of a distribution.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Bin {
    /// Lower bound, inclusive.
    pub from_s: f64,
    /// Upper bound, exclusive.
    pub to_s: f64,
    /// How many.
    pub count: u64,
}

/// One step of one kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StepReport {
    /// The journey.
    pub kind: String,
    /// The step.
    pub step: String,
    /// Failures.
    pub failures: u64,
    /// Refusals. Those after the first step are also failures.
    pub refusals: u64,
    /// Waiting pages.
    #[serde(default)]
    pub waiting_pages: u64,
    /// Time to its good responses.
    pub time: Quantiles,
}

/// One failure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FailureReport {
    /// Seconds since the run began.
    pub at_s: f64,
    /// The step (`kind/step` where there are several kinds).
    pub step: String,
    /// What failed, as in the failures by kind.
    pub failure: String,
    /// The beginning of the text that the answer shows to people; empty if nothing was answered.
    pub said: String,
}

/// What happened in one second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SecondReport {
    /// Its index, from 0.
    pub at_s: u64,
    /// Sessions begun.
    pub begun: u32,
    /// Sessions completed.
    pub completed: u32,
    /// Sessions left by their visitors.
    #[serde(default)]
    pub left: u32,
    /// Sessions given up.
    pub gave_up: u32,
    /// Failures after the first step.
    pub mid_session_failures: u32,
    /// Failures at the first step.
    pub first_step_failures: u32,
    /// Refusals at the first step.
    pub refusals: u32,
    /// Waiting pages at the first step.
    #[serde(default)]
    pub waiting_pages: u32,
    /// Requests sent.
    pub requests: u32,
    /// Sessions under way at its end.
    pub under_way: u32,
}

/// The data for a report.
pub(crate) struct Facts<'a> {
    pub(crate) base_url: &'a str,
    pub(crate) workload: &'a Workload,
    pub(crate) books: &'a Books,
    pub(crate) ended: Ended,
    pub(crate) started: SystemTime,
    pub(crate) duration: Duration,
    pub(crate) cpu: Duration,
    pub(crate) cpu_over: Duration,
    pub(crate) reconnects: u64,
    pub(crate) not_started: u64,
}

impl Report {
    pub(crate) fn new(facts: &Facts<'_>) -> Self {
        let tally = &facts.books.tally;
        let counts = tally.measured();
        let window = tally.window();
        let measured_s = window.to.secs_since(window.from);
        let per_s = |count: u64| if measured_s > 0.0 { count as f64 / measured_s } else { 0.0 };
        let steps = steps(facts);
        let several = facts.workload.kinds.len() > 1;
        let step_name =
            |s: &StepReport| if several { format!("{}/{}", s.kind, s.step) } else { s.step.clone() };
        let first_step = |kind: KindId| -> usize {
            facts.workload.kinds[..kind.index()].iter().map(|journey| journey.steps.len()).sum()
        };
        let first_failures = facts.books.first_failures.iter().map(|failure| FailureReport {
            at_s: failure.at.as_secs_f64(),
            step: step_name(&steps[first_step(failure.kind) + failure.step]),
            failure: failure.trouble.to_string(),
            said: failure.said.clone(),
        });
        let troubles = facts.books.troubles.iter().map(|(trouble, count)| (trouble.to_string(), *count));
        Report {
            base_url: facts.base_url.to_owned(),
            seed: facts.workload.seed,
            ended: facts.ended,
            started_unix_s: facts
                .started
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs_f64(),
            duration_s: facts.duration.as_secs_f64(),
            warmup_s: window.from.as_secs_f64().min(facts.duration.as_secs_f64()),
            measured_s,
            sessions_per_s: per_s(counts.sessions_completed),
            sessions_begun: counts.sessions_begun,
            sessions_completed: counts.sessions_completed,
            sessions_left: counts.sessions_left,
            sessions_gave_up: counts.sessions_gave_up,
            sessions_under_way: tally.under_way(),
            sessions_failed_inside: counts.sessions_failed_inside,
            mid_session_failures: counts.mid_session_failures,
            first_step_failures: counts.first_step_failures,
            failures_by_step: steps.iter().map(|step| (step_name(step), step.failures)).collect(),
            failures_by_kind: troubles.collect(),
            first_failures: first_failures.collect(),
            refusals: counts.refusals,
            waiting_pages: counts.waiting_pages,
            wasted_requests: counts.wasted_requests,
            requests: counts.requests,
            requests_per_s: per_s(counts.requests),
            reconnects: facts.reconnects,
            users_not_started: facts.not_started,
            session_time: Quantiles::of(tally.session_time()),
            session_time_distribution: bins(tally.session_time()),
            first_step_wait: Quantiles::of(tally.first_step_wait()),
            steps,
            series: series(facts),
            line: facts.books.line.report(),
            crowd_cpu_share: facts.cpu.as_secs_f64() / facts.cpu_over.as_secs_f64().max(1e-9),
            send_delay: Quantiles::of(&facts.books.send_delay),
        }
    }
}

fn bins(histogram: &Histogram) -> Vec<Bin> {
    let bin = |bin: suimon_statistics::Bin| Bin {
        from_s: bin.from.as_secs_f64(),
        to_s: bin.to.as_secs_f64(),
        count: bin.count,
    };
    histogram.bins(BINS_MERGED).into_iter().map(bin).collect()
}

fn steps(facts: &Facts<'_>) -> Vec<StepReport> {
    let mut reports = Vec::new();
    for (journey, tallies) in facts.workload.kinds.iter().zip(facts.books.tally.steps()) {
        for (step, tally) in journey.steps.iter().zip(tallies) {
            reports.push(StepReport {
                kind: journey.name.clone(),
                step: step.name.clone(),
                failures: tally.failures,
                refusals: tally.refusals,
                waiting_pages: tally.waiting_pages,
                time: Quantiles::of(&tally.time),
            });
        }
    }
    reports
}

fn series(facts: &Facts<'_>) -> Vec<SecondReport> {
    let second = |(at_s, second): (u64, &suimon_workload::Second)| SecondReport {
        at_s,
        begun: second.begun,
        completed: second.completed,
        left: second.left,
        gave_up: second.gave_up,
        mid_session_failures: second.mid_session_failures,
        first_step_failures: second.first_step_failures,
        refusals: second.refusals,
        waiting_pages: second.waiting_pages,
        requests: second.requests,
        under_way: second.under_way,
    };
    (0..).zip(facts.books.tally.series()).map(second).collect()
}

//! Pools of workers as JSON, and the commands of an operator to them.

use crate::request::whole;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use suimon_fleet::workers::EndReason;
use suimon_model::Instant;
use suimon_proxy::{PoolChange, PoolCommand, PoolEvent, PoolReport, View, WorkerStatus};

/// One pool.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolState {
    /// Its name.
    pub name: String,
    /// What its workers speak: `http`, `fastcgi` or `cgi`. With `cgi` none stays: a worker is a place at
    /// which a process runs for one request.
    #[serde(default)]
    pub kind: String,
    /// How the number of workers is found: `measured`, `seed`, `dynamic` or `fixed`.
    pub law: String,
    /// The number of workers that an operator has fixed; absent: the law finds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<u32>,
    /// How many workers should be resident.
    pub wanted: usize,
    /// How many can take a request or have one: the idle and the busy ones.
    pub ready: usize,
    /// How many are ready, without a request.
    pub idle: usize,
    /// How many have a request.
    pub busy: usize,
    /// How many had a request that was cancelled, and are not known to be idle.
    pub unsure: usize,
    /// How many are not ready yet.
    pub starting: usize,
    /// How many are on their way out.
    pub stopping: usize,
    /// The most that it may have.
    pub workers_max: u32,
    /// How many requests may run at once by the limits of routes, together; absent: no limit yet.
    pub limit: Option<u64>,
    /// Requests that wait for their route's limit or for a worker.
    pub queued: usize,
    /// Reloads of the program.
    pub generation: u64,
    /// What is wrong: why the pool cannot run, no worker starts, or there is no guardian; absent: all
    /// is well.
    pub unhealthy: Option<String>,
    /// Memory of all workers together, bytes.
    pub memory_bytes: u64,
    /// Of it, what is swapped, bytes.
    pub swap_bytes: u64,
    /// What nearly every worker takes at most, bytes; absent: not known yet.
    pub worker_bytes: Option<u64>,
    /// How many workers fit into the memory that they may take; absent: not known yet.
    pub workers_fit: Option<usize>,
    /// How long a start takes until the worker is ready, the median of the last ones; absent: none
    /// has succeeded yet.
    pub start_seconds: Option<f64>,
    /// CPU time of a start, the median of the last ones.
    pub start_cpu_seconds: Option<f64>,
    /// What has happened since the pool began.
    pub totals: PoolTotals,
    /// The last time that another number of workers was wanted, and why.
    pub last_move: Option<PoolChangeState>,
}

/// What has happened in a pool since it began.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolTotals {
    /// Requests whose answers were read to the end.
    pub requests: u64,
    /// Starts, failed ones, too.
    pub starts: u64,
    /// Failed starts.
    pub failed_starts: u64,
    /// Workers that were ready and ended unasked; with `cgi`, processes that ended by themselves with
    /// another exit code than 0, or by a signal.
    pub deaths: u64,
    /// Workers that did not end when asked to; with `cgi`, processes that were killed because nobody
    /// waited for them any more.
    pub kills: u64,
    /// Workers that were ended or replaced, by the short name of the reason.
    pub ended: BTreeMap<String, u64>,
}

/// One worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerState {
    /// Its number; they count up from 0 and are never used again.
    pub id: u64,
    /// Its process; absent: there is none yet.
    pub pid: Option<u32>,
    /// `starting`, `idle`, `busy`, `unsure` or `stopping`.
    pub state: String,
    /// Whether it ends once another one is ready in its place.
    pub retiring: bool,
    /// Reloads before it was started.
    pub generation: u64,
    /// Time since its start.
    pub age_seconds: f64,
    /// Time from its start until it was ready; absent: not yet.
    pub start_seconds: Option<f64>,
    /// Requests that it was given and that have ended.
    pub requests: u64,
    /// Memory of it and of what it has started, bytes; absent: not looked at yet.
    pub memory_bytes: Option<u64>,
    /// Whether shared pages are counted in part; else they are counted in full.
    pub memory_is_proportional: bool,
    /// Of its memory, what is swapped, bytes.
    pub swap_bytes: u64,
    /// Pages that were read from disk for it.
    pub major_faults: u64,
}

/// A change in a pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolChangeState {
    /// Its number: they count up from 1.
    pub id: u64,
    /// When, seconds since 1970.
    pub at: f64,
    /// `wanted`, `reload`, `ready`, `start_failed`, `not_started`, `died`, `ends`, `replaced`,
    /// `awaited`, `killed`, `wrote`, `failed`, `no_room`, `unable`, `able` or `unguarded`.
    pub what: String,
    /// Which worker; absent: it is about the pool.
    pub worker: Option<u64>,
    /// With `wanted`: how many workers were wanted before, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<usize>,
    /// ... and how many are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<usize>,
    /// Why, or how it went; with `wrote`, the last that the worker wrote to its standard error.
    pub reason: Option<String>,
}

/// A pool with its workers and what has happened lately.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolDetails {
    /// As in [`crate::State`].
    #[serde(flatten)]
    pub pool: PoolState,
    /// The workers, in the order of their starts.
    pub workers: Vec<WorkerState>,
    /// The last changes, oldest first; with `?since=ID`, those after that one.
    pub changes: Vec<PoolChangeState>,
}

/// The pools, as they stand now.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolAnswer {
    /// The site whose pools they are; absent where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The wall clock, seconds since 1970.
    pub now: f64,
    /// All of them; none where `[[pool]]` is not in the settings.
    pub pools: Vec<PoolDetails>,
}

/// A command of an operator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolRequest {
    /// The pool; absent: every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The command.
    pub order: PoolOrder,
}

/// A command to a pool: `"reload"`, `{"resize": 8}` or `{"resize": "auto"}`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PoolOrder {
    /// Replace all workers, one after the other.
    Reload,
    /// Have so many workers.
    Resize(PoolSize),
}

/// How many workers a pool is to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "resize must be a number of workers or \"auto\"")]
pub enum PoolSize {
    /// So many.
    #[serde(deserialize_with = "whole")]
    Workers(#[cfg_attr(feature = "schema", schemars(range(max = 4_294_967_295u32)))] u32),
    /// As many as the law of its size finds.
    Law(Auto),
}

/// The word for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Auto {
    /// `"auto"`.
    Auto,
}

impl PoolOrder {
    pub(crate) fn command(self) -> PoolCommand {
        match self {
            PoolOrder::Reload => PoolCommand::Reload,
            PoolOrder::Resize(PoolSize::Workers(workers)) => PoolCommand::Resize(Some(workers)),
            PoolOrder::Resize(PoolSize::Law(Auto::Auto)) => PoolCommand::Resize(None),
        }
    }
}

impl PoolState {
    pub(crate) fn of(report: &PoolReport, view: &View, started_at: f64) -> PoolState {
        let PoolReport { id, status, kind, law, fixed, most, .. } = report;
        let (count, totals) = (status.count, status.totals);
        let own = || view.routes.iter().filter(|route| route.gate.pool == *id);
        let used = own().filter(|route| route.gate.counts.offered > 0);
        let limits: Vec<u64> = used.filter_map(|route| route.gate.limit).map(u64::from).collect();
        PoolState {
            name: status.name.to_string(),
            kind: (*kind).to_owned(),
            law: (*law).to_owned(),
            fixed: *fixed,
            wanted: status.wanted,
            ready: count.ready(),
            idle: count.idle,
            busy: count.busy,
            unsure: count.unsure,
            starting: count.starting,
            stopping: count.stopping,
            workers_max: *most,
            limit: (!limits.is_empty()).then(|| limits.iter().sum()),
            queued: own().map(|route| route.gate.waiting).sum(),
            generation: status.generation,
            unhealthy: status.unhealthy.clone(),
            memory_bytes: status.workers.iter().map(|worker| worker.memory).sum(),
            swap_bytes: status.workers.iter().map(|worker| worker.swap).sum(),
            worker_bytes: status.worker_bytes,
            workers_fit: status.fit,
            start_seconds: status.start_s,
            start_cpu_seconds: status.start_cpu_s,
            totals: PoolTotals {
                requests: totals.requests,
                starts: totals.starts,
                failed_starts: totals.failed_starts,
                deaths: totals.deaths,
                kills: totals.kills,
                ended: EndReason::ALL
                    .into_iter()
                    .map(|why| (why.code().to_owned(), totals.ended_by(why)))
                    .filter(|(_, count)| *count > 0)
                    .collect(),
            },
            last_move: status.last_move.as_ref().map(|change| change_state(change, started_at)),
        }
    }
}

impl PoolDetails {
    pub(crate) fn of(report: &PoolReport, view: &View, started_at: f64) -> PoolDetails {
        PoolDetails {
            pool: PoolState::of(report, view, started_at),
            workers: report.status.workers.iter().map(worker_state).collect(),
            changes: report.changes.iter().map(|change| change_state(change, started_at)).collect(),
        }
    }
}

fn worker_state(worker: &WorkerStatus) -> WorkerState {
    WorkerState {
        id: worker.id.0,
        pid: worker.pid,
        state: worker.state.code().to_owned(),
        retiring: worker.is_retiring,
        generation: worker.generation,
        age_seconds: worker.age.as_secs_f64(),
        start_seconds: worker.start.map(|start| start.as_secs_f64()),
        requests: worker.requests,
        memory_bytes: Some(worker.memory).filter(|bytes| *bytes > 0),
        memory_is_proportional: worker.is_proportional,
        swap_bytes: worker.swap,
        major_faults: worker.major_faults,
    }
}

fn change_state(change: &PoolChange, started_at: f64) -> PoolChangeState {
    let (old, new) = match change.what {
        PoolEvent::Wanted { from, to, .. } => (Some(from), Some(to)),
        _ => (None, None),
    };
    PoolChangeState {
        id: change.number + 1,
        at: started_at + change.at.secs_since(Instant::ORIGIN),
        what: change.what.code().to_owned(),
        worker: change.what.worker().map(|worker| worker.0),
        old,
        new,
        reason: change.what.reason(),
    }
}

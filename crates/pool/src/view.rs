//! What can be seen of a pool.

use super::PoolChange;
use std::sync::Arc;
use std::time::Duration;
use suimon_fleet::workers::{WorkerId, WorkerState, WorkersCount, WorkersTotals};

/// A pool, as a person or a dashboard sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolStatus {
    /// Its name.
    pub name: Arc<str>,
    /// How many workers should be resident.
    pub wanted: usize,
    /// How many are in which state.
    pub count: WorkersCount,
    /// How often the program was reloaded.
    pub generation: u64,
    /// What has happened since the pool began.
    pub totals: WorkersTotals,
    /// What is wrong: why the pool cannot run, or no worker starts, with the last that one wrote, or
    /// why there is no guardian; `None`: all is well.
    pub unhealthy: Option<String>,
    /// What nearly every worker takes at most, bytes; `None`: not known yet.
    pub worker_bytes: Option<u64>,
    /// How many workers fit into the memory there is; `None`: not known yet.
    pub fit: Option<usize>,
    /// How long a start takes until the worker is ready: the median of the last ones, seconds;
    /// `None`: none has succeeded yet.
    pub start_s: Option<f64>,
    /// CPU time of a start: the median of the last ones, seconds, to a hundredth.
    pub start_cpu_s: Option<f64>,
    /// The last time that another number of workers was wanted, and why.
    pub last_move: Option<PoolChange>,
    /// The workers, in the order of their starts.
    pub workers: Vec<WorkerStatus>,
}

/// A worker, as a person or a dashboard sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkerStatus {
    /// Which.
    pub id: WorkerId,
    /// Its process; `None`: there is none yet.
    pub pid: Option<u32>,
    /// What it does.
    pub state: WorkerState,
    /// Whether it ends once another one is ready in its place.
    pub is_retiring: bool,
    /// Reloads before it was started.
    pub generation: u64,
    /// Time since its start.
    pub age: Duration,
    /// Time from its start until it was ready; `None`: it is not yet.
    pub start: Option<Duration>,
    /// Requests that it was given and that have ended.
    pub requests: u64,
    /// Bytes of memory of it and of what it has started, when last looked at; 0: not yet.
    pub memory: u64,
    /// Whether `memory` counts shared pages in part; else it counts them in full.
    pub is_proportional: bool,
    /// Bytes of it that are swapped.
    pub swap: u64,
    /// Pages that were read from disk for it since its start.
    pub major_faults: u64,
}

/// The numbers that a law of the pool's size needs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PoolSample {
    /// How many workers should be resident.
    pub wanted: usize,
    /// How many can take requests, or have one.
    pub ready: usize,
    /// Of these, how many have a request that nobody counts among those that are let in: a stream, or
    /// one whose client is waited for.
    pub ungated: usize,
    /// How many are not ready yet.
    pub starting: usize,
    /// How many are ready, without a request.
    pub idle: usize,
    /// How many are kept from requests after a cancelled one.
    pub unsure: usize,
    /// How many are on their way out.
    pub stopping: usize,
    /// The most that had a request at once since the last sample.
    pub busy_max: usize,
    /// How long a start takes until the worker is ready: the median of the last ones, seconds;
    /// `None`: none has succeeded yet.
    pub start_s: Option<f64>,
    /// CPU time of a start: the median of the last ones, seconds, to a hundredth.
    pub start_cpu_s: Option<f64>,
    /// How many may start at once.
    pub starts_at_once: usize,
    /// How many workers fit into the memory there is; `None`: not known yet.
    pub fit: Option<usize>,
    /// What nearly every worker takes at most, bytes; `None`: not known yet.
    pub worker_bytes: Option<u64>,
    /// Bytes of the workers' memory that are swapped.
    pub swap_bytes: u64,
    /// Pages that were read from disk for the workers, per second.
    pub major_faults_per_s: f64,
    /// Whether workers are being swapped.
    pub is_swapping: bool,
    /// Whether the pool cannot run, or so many starts have failed in a row that there is no worker.
    pub is_unhealthy: bool,
}

//! What goes in and out of a pool's machine.

use std::fmt;
use suimon_model::{Duration, Instant};

/// A worker; numbers count up from 0 and are never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkerId(pub u64);

/// What a pool is told before it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkersParams {
    /// Cores that starts may keep busy; 0 counts as 1. As many workers start at once, and more where
    /// a start is known to wait for most of its time, for a database or for its turn: up to
    /// [`super::STARTING_MAX`].
    pub starting_cores: usize,
    /// The longest from a start until the worker is ready.
    pub ready_within: Duration,
    /// The longest from the end of a cancelled request, which the worker may be busy with still,
    /// until it is idle; then it ends.
    pub idle_within: Duration,
    /// The longest from the request to end until the end; then it is forced.
    pub stop_within: Duration,
    /// The delay after the first failed start. It doubles with each further one, up to
    /// [`super::BACK_OFF_S_MAX`].
    pub back_off: Duration,
    /// Requests after which a worker is replaced; `None`: never.
    pub requests_max: Option<u64>,
    /// Age at which a worker is replaced; `None`: never.
    pub age_max: Option<Duration>,
    /// Bytes of memory above which a worker is replaced; `None`: never.
    pub memory_max: Option<u64>,
    /// Age from which a worker may be replaced for its memory: where the program needs more than a
    /// worker may take, each new one would be replaced at once.
    pub memory_age: Duration,
    /// Seed of the jitter.
    pub seed: u64,
}

impl Default for WorkersParams {
    fn default() -> Self {
        WorkersParams {
            starting_cores: 1,
            ready_within: Duration::from_secs(30),
            idle_within: Duration::from_secs(10),
            stop_within: Duration::from_secs(10),
            back_off: Duration::from_secs(1),
            requests_max: None,
            age_max: None,
            memory_max: None,
            memory_age: Duration::from_secs(10),
            seed: 1,
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It could not be started.
    NotStarted,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
            Exit::NotStarted => f.write_str("it could not be started"),
        }
    }
}

/// How a start failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartFault {
    /// The process ended.
    Ended(Exit),
    /// It was given up, for this reason.
    GivenUp(EndReason),
}

impl fmt::Display for StartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartFault::Ended(exit) => exit.fmt(f),
            StartFault::GivenUp(why) => f.write_str(why.explain()),
        }
    }
}

/// What has become of a worker's request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// It is done: the worker is idle.
    Done,
    /// Nobody waits for it any more: the worker may be busy with it for as long as it likes.
    Cancelled,
    /// It was not answered in time: nobody knows what the worker does, and it ends.
    Stuck,
}

/// What the shell must do, or what has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkersOutput {
    /// Start a worker; report it by `handle_ready` and `handle_exit`.
    Start(WorkerId),
    /// Ask it whether it is idle, until it says so; then report it by `handle_ready`.
    Ask(WorkerId),
    /// Ask it to end.
    Stop(WorkerId),
    /// Force it to end.
    Kill(WorkerId),
    /// Something that the operator may want to know.
    Changed(WorkersChange),
}

/// A decision about a worker, or what has become of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkersChange {
    /// When.
    pub at: Instant,
    /// Which.
    pub worker: WorkerId,
    /// What.
    pub what: WorkerEvent,
}

/// What has become of a worker, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerEvent {
    /// It takes requests for the first time.
    Ready,
    /// It failed to start: how.
    StartFailed(StartFault),
    /// It ended unasked.
    Died(Exit),
    /// It is to end: why.
    Ends(EndReason),
    /// It is to be replaced: why.
    Replaced(EndReason),
    /// It is to be replaced and has had a request for long: it ends after that.
    Awaited,
    /// It did not end when asked to, and is killed.
    Killed,
}

/// Why a worker ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EndReason {
    /// Fewer are wanted.
    Surplus,
    /// It has served as many requests as it may.
    Requests,
    /// It is as old as it may be.
    Age,
    /// It takes more memory than it may.
    Memory,
    /// Its program is to be started anew.
    Reload,
    /// It did not answer a request in time.
    Stuck,
    /// Its request was cancelled, and it was not idle in time.
    Cancelled,
    /// It was not ready in time.
    NotReady,
    /// Another process listens where it should.
    Squatted,
}

impl EndReason {
    /// All, in order.
    pub const ALL: [EndReason; 9] = [
        EndReason::Surplus,
        EndReason::Requests,
        EndReason::Age,
        EndReason::Memory,
        EndReason::Reload,
        EndReason::Stuck,
        EndReason::Cancelled,
        EndReason::NotReady,
        EndReason::Squatted,
    ];

    /// Returns the short name used in metrics and JSON; it never changes.
    pub const fn code(self) -> &'static str {
        match self {
            EndReason::Surplus => "surplus",
            EndReason::Requests => "requests",
            EndReason::Age => "age",
            EndReason::Memory => "memory",
            EndReason::Reload => "reload",
            EndReason::Stuck => "stuck",
            EndReason::Cancelled => "cancelled",
            EndReason::NotReady => "not_ready",
            EndReason::Squatted => "squatted",
        }
    }

    /// Returns the reason as a sentence for people.
    pub const fn explain(self) -> &'static str {
        match self {
            EndReason::Surplus => "fewer workers are wanted",
            EndReason::Requests => "it has served as many requests as a worker may",
            EndReason::Age => "it is as old as a worker may be",
            EndReason::Memory => "it takes more memory than a worker may",
            EndReason::Reload => "its program is started anew",
            EndReason::Stuck => "it did not answer a request in time",
            EndReason::Cancelled => "its request was cancelled, and it was not idle in time",
            EndReason::NotReady => "it was not ready in time",
            EndReason::Squatted => "another process listens at its port",
        }
    }
}

/// How many workers are in which state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkersCount {
    /// Not ready yet.
    pub starting: usize,
    /// Ready, without a request.
    pub idle: usize,
    /// With a request.
    pub busy: usize,
    /// Of these, with one that nobody counts among those that are let in.
    pub ungated: usize,
    /// Of these, with one that passes by the gate.
    pub passing: usize,
    /// With a cancelled request, until they are known to be idle.
    pub unsure: usize,
    /// On their way out.
    pub stopping: usize,
}

impl WorkersCount {
    /// Returns how many can take requests, or have one.
    pub fn ready(&self) -> usize {
        self.idle + self.busy
    }

    /// Returns how many requests may be let in.
    pub fn gated(&self) -> usize {
        self.ready() - self.ungated
    }

    /// Returns whether one more request that passes by the gate may have a worker. Together they have
    /// no more than half of those that the gate may give away, and one: else requests for files that a
    /// program answers would keep everybody out.
    pub fn may_pass(&self) -> bool {
        let given = self.gated() + self.passing;
        self.passing < (given / 2).max(1)
    }

    /// Returns whether there is no worker that takes requests, has one, or is asked whether it takes
    /// them again after a cancelled one.
    pub fn is_down(&self) -> bool {
        self.ready() + self.unsure == 0
    }

    /// Returns how many processes there are.
    pub fn all(&self) -> usize {
        self.starting + self.idle + self.busy + self.unsure + self.stopping
    }
}

/// What has happened since the pool began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkersTotals {
    /// Requests whose answers were read to the end.
    pub requests: u64,
    /// Starts, failed ones, too.
    pub starts: u64,
    /// Failed starts.
    pub failed_starts: u64,
    /// Workers that were ready and ended unasked.
    pub deaths: u64,
    /// Workers that did not end when asked to.
    pub kills: u64,
    /// Workers that were ended or replaced, by reason, in the order of [`EndReason::ALL`].
    pub ended: [u64; EndReason::ALL.len()],
}

impl WorkersTotals {
    /// Returns how many were ended or replaced for this reason.
    pub fn ended_by(&self, why: EndReason) -> u64 {
        self.ended[why as usize]
    }
}

/// That starts fail again and again, and no worker is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unhealthy {
    /// Failed starts in a row.
    pub failures: u32,
    /// How the last one failed.
    pub last: StartFault,
}

impl fmt::Display for Unhealthy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} starts in a row failed, the last one: {}", self.failures, self.last)
    }
}

/// What a worker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerState {
    /// It is not ready yet.
    Starting,
    /// It is ready, without a request.
    Idle,
    /// It has a request.
    Busy,
    /// It had a request that was cancelled, and is not known to be idle.
    Unsure,
    /// It is on its way out.
    Stopping,
}

impl WorkerState {
    /// Returns the short name used in metrics and JSON; it never changes.
    pub const fn code(self) -> &'static str {
        match self {
            WorkerState::Starting => "starting",
            WorkerState::Idle => "idle",
            WorkerState::Busy => "busy",
            WorkerState::Unsure => "unsure",
            WorkerState::Stopping => "stopping",
        }
    }
}

/// What is known of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerView {
    /// Which.
    pub id: WorkerId,
    /// What it does.
    pub state: WorkerState,
    /// Whether it ends once another one is ready in its place.
    pub is_retiring: bool,
    /// Reloads before it was started.
    pub generation: u64,
    /// When it was started.
    pub started: Instant,
    /// When it was ready; `None`: not yet.
    pub ready_at: Option<Instant>,
    /// Requests that it was given and that have ended.
    pub requests: u64,
    /// Bytes of memory, when last looked at; 0: not yet.
    pub memory: u64,
}

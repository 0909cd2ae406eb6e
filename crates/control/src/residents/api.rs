//! What a law of residents is told, and what it says.

/// What a pool did since the tick before.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ResidentSample {
    /// Workers that are ready, with a request or without.
    pub ready: u32,
    /// Of these, workers without a request, now.
    pub idle: u32,
    /// Workers that start.
    pub starting: u32,
    /// The most workers that had a request at once.
    pub running_max: u32,
    /// The share of the time in which all had one and others waited, 0 to 1.
    pub short: f64,
    /// The share of the time in which requests waited although a worker was idle: a limit of what
    /// may run holds them.
    pub held: f64,
    /// Requests completed.
    pub completed: u64,
    /// Requests that failed: they say nothing of how many workers help.
    pub failed: u64,
    /// Seconds that the completed ones were with their worker, on average; `None`: unknown.
    pub took_s: Option<f64>,
    /// Seconds that the oldest waiting request has waited; 0: none waits.
    pub oldest_s: f64,
    /// Seconds from a start until the worker is ready, if any was seen.
    pub start_s: Option<f64>,
    /// How many may start at once, as far as is known; half of the cores and one always may.
    pub starts_at_once: u32,
    /// The most workers that fit into the memory that the pool may take, those it has among them;
    /// `None`: unknown.
    pub fit: Option<u32>,
    /// Whether memory of workers was swapped.
    pub is_swapping: bool,
}

/// Why the number of residents changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResidentReason {
    /// More are tried: requests wait for a worker.
    TriesMore,
    /// Fewer are tried.
    TriesFewer,
    /// The move before did not pay.
    Back,
    /// More than are needed.
    Idle,
    /// A request waits longer than a start takes, or too few are idle.
    Waits,
    /// They need more memory than the pool may take.
    Memory,
    /// Their memory was swapped.
    Swapped,
}

impl ResidentReason {
    /// Returns the short name used in metrics and JSON; it never changes.
    pub const fn code(self) -> &'static str {
        match self {
            ResidentReason::TriesMore => "tries_more",
            ResidentReason::TriesFewer => "tries_fewer",
            ResidentReason::Back => "back",
            ResidentReason::Idle => "idle",
            ResidentReason::Waits => "waits",
            ResidentReason::Memory => "memory",
            ResidentReason::Swapped => "swapped",
        }
    }

    /// Returns the reason as a sentence for people.
    pub const fn explain(self) -> &'static str {
        match self {
            ResidentReason::TriesMore => "requests wait, and more workers may complete more of them",
            ResidentReason::TriesFewer => "requests wait, and fewer workers may complete as many of them",
            ResidentReason::Back => "the number before completed more requests",
            ResidentReason::Idle => "more workers are idle than are kept",
            ResidentReason::Waits => "requests wait, and no worker is idle",
            ResidentReason::Memory => "the workers need more memory than they may take",
            ResidentReason::Swapped => "memory of workers was swapped",
        }
    }
}

/// A new number of residents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResidentMove {
    /// How many should be resident.
    pub wanted: u32,
    /// Why.
    pub why: ResidentReason,
}

/// What a law of the number of residents is told before it starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResidentParams {
    /// Workers at the start.
    pub initial: u32,
    /// Whether that number was found before: see [`Residents::learned`].
    pub is_known: bool,
    /// So many stay, although they are idle.
    pub least: u32,
    /// The most workers.
    pub most: u32,
    /// Processor cores; 0 counts as 1.
    pub cores: u32,
}

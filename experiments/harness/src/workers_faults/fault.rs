//! The faults: what is done to the workers, when, and under which settings.

use serde::{Deserialize, Serialize};

use super::place::Wishes;

/// Seconds of the load before anything counts: limits and the number of workers are found.
pub(super) const WARM_UP_S: u32 = 6;
/// When the fault comes, seconds since the load began: five seconds of it are counted before.
pub(super) const AT_S: u32 = 11;
/// The fewest workers: enough for the load, so that the number has settled before the fault.
pub(super) const WORKERS: usize = 20;
/// How long a worker may take to answer, and to end.
const FIRST_BYTE_S: u32 = 3;
const STOP_WITHIN_S: u32 = 2;
/// Requests that ask for a page that never comes.
pub(super) const HANGING: usize = 3;
/// Workers that are killed while their program is broken.
pub(super) const KILLED_BROKEN: usize = 2;
/// Memory at which a worker is replaced, MB (2^20).
pub(super) const LEAK_LIMIT_MB: u32 = 32;
/// Requests after which one is.
const REQUESTS_MAX: u32 = 25;
pub(super) const RELOADS: usize = 10;

/// What is done to the workers, or to what they need.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// One worker with a request is killed with SIGKILL.
    WorkerKilled,
    /// All of them at once are.
    AllKilled,
    /// Some requests ask for a page that never comes.
    Hanging,
    /// One worker with a request is stopped with SIGSTOP.
    Stopped,
    /// Every page leaves 256 KB behind in its worker.
    Leaking,
    /// The program is replaced by one that does not start, all are to be replaced, two are killed;
    /// then it is mended.
    Broken,
    /// The database stops, and is started again.
    Database,
    /// The gateway is killed with SIGKILL, and started again.
    Gateway,
    /// Each worker is replaced after 25 requests.
    Recycled,
    /// `suimon pool reload --wait`, ten times.
    Reloaded,
}

/// One thing that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    KillOne,
    KillAll,
    AskForHanging,
    StopOne,
    Break,
    Mend,
    StopDatabase,
    StartDatabase,
    KillGateway,
    StartGateway,
    Reload,
}

impl Fault {
    pub(super) const ALL: [Fault; 10] = [
        Fault::WorkerKilled,
        Fault::AllKilled,
        Fault::Hanging,
        Fault::Stopped,
        Fault::Leaking,
        Fault::Broken,
        Fault::Database,
        Fault::Gateway,
        Fault::Recycled,
        Fault::Reloaded,
    ];

    /// Returns it for people.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Fault::WorkerKilled => "a worker killed",
            Fault::AllKilled => "all workers killed",
            Fault::Hanging => "three pages hang",
            Fault::Stopped => "a worker stopped",
            Fault::Leaking => "workers leak",
            Fault::Broken => "a broken program",
            Fault::Database => "the database away",
            Fault::Gateway => "the gateway killed",
            Fault::Recycled => "all recycled",
            Fault::Reloaded => "ten reloads",
        }
    }

    /// Returns what is done, and when: seconds since the load began, in order.
    pub(super) fn script(self) -> Vec<(u32, Action)> {
        match self {
            Fault::WorkerKilled => vec![(AT_S, Action::KillOne)],
            Fault::AllKilled => vec![(AT_S, Action::KillAll)],
            Fault::Hanging => vec![(AT_S, Action::AskForHanging)],
            Fault::Stopped => vec![(AT_S, Action::StopOne)],
            Fault::Broken => vec![(AT_S, Action::Break), (AT_S + 7, Action::Mend)],
            Fault::Database => vec![(AT_S, Action::StopDatabase), (AT_S + 4, Action::StartDatabase)],
            Fault::Gateway => vec![(AT_S, Action::KillGateway), (AT_S + 1, Action::StartGateway)],
            Fault::Reloaded => vec![(AT_S, Action::Reload)],
            Fault::Leaking | Fault::Recycled => vec![],
        }
    }

    /// Returns how long the load lasts, seconds.
    pub(super) const fn lasts_s(self) -> u32 {
        AT_S + match self {
            Fault::WorkerKilled | Fault::AllKilled => 10,
            Fault::Hanging | Fault::Stopped => 12,
            Fault::Database | Fault::Gateway => 14,
            Fault::Recycled => 20,
            Fault::Broken => 22,
            // No worker is replaced for its memory in its first ten seconds.
            Fault::Reloaded | Fault::Leaking => 60,
        }
    }

    /// Returns the path of the pages that are asked for.
    pub(super) const fn path(self) -> &'static str {
        if matches!(self, Fault::Leaking) { "/leak.php" } else { "/page.php" }
    }

    /// Returns how the gateway is to run.
    pub(super) fn wishes(self) -> Wishes<'static> {
        let more = match self {
            Fault::Leaking => format!("worker_memory_max = \"{LEAK_LIMIT_MB}MiB\"\n"),
            Fault::Recycled => format!("requests_max = {REQUESTS_MAX}\n"),
            _ => String::new(),
        };
        Wishes {
            pool: format!("min = {WORKERS}\nstop_within = \"{STOP_WITHIN_S}s\"\n{more}"),
            others: format!("[timeouts]\nfirst_byte = \"{FIRST_BYTE_S}s\"\n"),
            workers: WORKERS,
            ..Wishes::default()
        }
    }
}

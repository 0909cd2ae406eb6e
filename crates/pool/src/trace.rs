//! What has happened lately in a pool, and why: a bounded list for whoever asks.

use std::collections::VecDeque;
use std::fmt;
use suimon_fleet::workers::{Exit, WorkerEvent, WorkerId};
use suimon_model::Instant;

/// What is said of a pool that cannot run, and of one without a guardian.
pub(super) const UNABLE: &str = "the pool cannot run, and is tried again";
pub(super) const UNGUARDED: &str =
    "there is no guardian, so what workers start may outlive a gateway that is killed";
/// Changes that are kept, the last ones.
pub(super) const CHANGES_MAX: usize = 256;

/// A change in a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolChange {
    /// Its number; they count up from 0.
    pub number: u64,
    /// When, from the pool's origin.
    pub at: Instant,
    /// What, and why.
    pub what: PoolEvent,
}

/// What has happened in a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolEvent {
    /// Something has become of a worker.
    Worker(WorkerId, WorkerEvent),
    /// The last that a worker wrote to its standard error before it ended. A client may have caused
    /// any of it.
    Wrote(WorkerId, String),
    /// Another number of workers is wanted.
    Wanted {
        /// So many were.
        from: usize,
        /// So many are.
        to: usize,
        /// Why.
        why: &'static str,
    },
    /// All are replaced.
    Reload,
    /// The program could not be started at all.
    NotStarted(WorkerId, String),
    /// A program that runs once for each request has failed: how it ended.
    Failed(WorkerId, Exit),
    /// Memory has room for no more than so many workers, and more are wanted.
    NoRoom(usize),
    /// The pool cannot run, for this reason, and is tried again.
    Unable(String),
    /// It runs again.
    Able,
    /// There is no guardian, for this reason, and one is tried again to be started: what workers
    /// start may outlive a gateway that is killed.
    Unguarded(String),
}

impl PoolEvent {
    /// Returns the short name used in JSON; it never changes.
    pub fn code(&self) -> &'static str {
        match self {
            PoolEvent::Worker(_, WorkerEvent::Ready) => "ready",
            PoolEvent::Worker(_, WorkerEvent::StartFailed(_)) => "start_failed",
            PoolEvent::Worker(_, WorkerEvent::Died(_)) => "died",
            PoolEvent::Worker(_, WorkerEvent::Ends(_)) => "ends",
            PoolEvent::Worker(_, WorkerEvent::Replaced(_)) => "replaced",
            PoolEvent::Worker(_, WorkerEvent::Awaited) => "awaited",
            PoolEvent::Worker(_, WorkerEvent::Killed) => "killed",
            PoolEvent::Wrote(..) => "wrote",
            PoolEvent::Wanted { .. } => "wanted",
            PoolEvent::Reload => "reload",
            PoolEvent::NotStarted(..) => "not_started",
            PoolEvent::Failed(..) => "failed",
            PoolEvent::NoRoom(_) => "no_room",
            PoolEvent::Unable(_) => "unable",
            PoolEvent::Able => "able",
            PoolEvent::Unguarded(_) => "unguarded",
        }
    }

    /// Returns why, or how it went, in words; `None`: there is no more to say.
    pub fn reason(&self) -> Option<String> {
        match self {
            PoolEvent::Worker(_, WorkerEvent::Ready | WorkerEvent::Killed)
            | PoolEvent::Reload
            | PoolEvent::Able => None,
            PoolEvent::Worker(_, WorkerEvent::Awaited) => {
                Some("it is to be replaced, and has a request still".to_owned())
            }
            PoolEvent::Worker(_, WorkerEvent::StartFailed(how)) => Some(how.to_string()),
            PoolEvent::Worker(_, WorkerEvent::Died(exit)) | PoolEvent::Failed(_, exit) => {
                Some(exit.to_string())
            }
            PoolEvent::Worker(_, WorkerEvent::Ends(why) | WorkerEvent::Replaced(why)) => {
                Some(why.explain().to_owned())
            }
            // Quoted: it may repeat what a client has sent.
            PoolEvent::Wrote(_, words) => Some(format!("{words:?}")),
            PoolEvent::Wanted { why, .. } => Some((*why).to_owned()),
            PoolEvent::NotStarted(_, error) => Some(error.clone()),
            PoolEvent::NoRoom(fit) => Some(format!("memory has room for {fit}")),
            PoolEvent::Unable(why) | PoolEvent::Unguarded(why) => Some(why.clone()),
        }
    }

    /// Returns which worker it is about, if it is about one.
    pub fn worker(&self) -> Option<WorkerId> {
        match self {
            PoolEvent::Worker(id, _)
            | PoolEvent::Wrote(id, _)
            | PoolEvent::NotStarted(id, _)
            | PoolEvent::Failed(id, _) => Some(*id),
            PoolEvent::Wanted { .. }
            | PoolEvent::Reload
            | PoolEvent::NoRoom(_)
            | PoolEvent::Unable(_)
            | PoolEvent::Able
            | PoolEvent::Unguarded(_) => None,
        }
    }
}

impl fmt::Display for PoolEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolEvent::Worker(_, WorkerEvent::Ready) => f.write_str("a worker is ready"),
            PoolEvent::Worker(_, WorkerEvent::StartFailed(how)) => {
                write!(f, "a worker failed to start: {how}")
            }
            PoolEvent::Worker(_, WorkerEvent::Died(exit)) => write!(f, "a worker ended unasked: {exit}"),
            PoolEvent::Worker(_, WorkerEvent::Ends(why)) => write!(f, "a worker ends: {}", why.explain()),
            PoolEvent::Worker(_, WorkerEvent::Replaced(why)) => {
                write!(f, "a worker is replaced: {}", why.explain())
            }
            PoolEvent::Worker(_, WorkerEvent::Awaited) => {
                f.write_str("a worker is waited for: it is to be replaced, and has a request still")
            }
            PoolEvent::Worker(_, WorkerEvent::Killed) => f.write_str("a worker did not end and is killed"),
            // Quoted: it may repeat what a client has sent.
            PoolEvent::Wrote(_, words) => write!(f, "the last that it wrote: {words:?}"),
            PoolEvent::Wanted { from, to, why } => write!(f, "{to} workers are wanted, not {from}: {why}"),
            PoolEvent::Reload => f.write_str("all workers are replaced: the program is started anew"),
            PoolEvent::NotStarted(_, error) => write!(f, "the program cannot be started: {error}"),
            PoolEvent::Failed(_, exit) => write!(f, "a program failed: {exit}"),
            PoolEvent::NoRoom(fit) => {
                write!(f, "no more workers start than memory has room for: {fit}")
            }
            PoolEvent::Unable(why) => write!(f, "{UNABLE}: {why}"),
            PoolEvent::Able => f.write_str("the pool runs again"),
            PoolEvent::Unguarded(why) => write!(f, "{UNGUARDED}: {why}"),
        }
    }
}

/// The last changes.
#[derive(Debug, Default)]
pub(super) struct Trace {
    changes: VecDeque<PoolChange>,
    next: u64,
    /// The last time that another number was wanted, which stays when others push it out.
    moved: Option<PoolChange>,
}

impl Trace {
    pub(super) fn note(&mut self, at: Instant, what: PoolEvent) {
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
        }
        let change = PoolChange { number: self.next, at, what };
        if matches!(change.what, PoolEvent::Wanted { .. }) {
            self.moved = Some(change.clone());
        }
        self.changes.push_back(change);
        self.next += 1;
    }

    pub(super) fn moved(&self) -> Option<&PoolChange> {
        self.moved.as_ref()
    }

    /// Returns those that are kept from this number on.
    pub(super) fn since(&self, number: u64) -> Vec<PoolChange> {
        self.changes.iter().filter(|change| change.number >= number).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_and_have_numbers() {
        let mut trace = Trace::default();
        let moved = PoolEvent::Wanted { from: 1, to: 2, why: "of the test" };
        trace.note(Instant::ORIGIN, moved.clone());
        for _ in 1..CHANGES_MAX + 3 {
            trace.note(Instant::ORIGIN, PoolEvent::Reload);
        }
        let all = trace.since(0);
        assert_eq!((all.len(), all[0].number), (CHANGES_MAX, 3));
        assert_eq!(trace.moved().map(|change| &change.what), Some(&moved), "it is kept beside them");
        assert_eq!(trace.since(CHANGES_MAX as u64 + 2).len(), 1);
    }
}

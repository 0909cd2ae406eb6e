//! Parts of a timeline: bins, the state of the gate at the end of each, and what happened to routes
//! and visitors.

use suimon_gate::{PoolView, SessionEnds, Snapshot};
use suimon_model::Record;
use suimon_statistics::Histogram;

/// What happened to visitors.
#[derive(Clone, Debug, Default)]
pub struct Visitors {
    /// Newcomers.
    pub newcomers: u64,
    /// Sessions that began.
    pub began: u64,
    /// How sessions ended.
    pub ends: SessionEnds,
    /// Tickets issued.
    pub issued: u64,
    /// Of these, those whose holders were admitted, ...
    pub admitted: u64,
    /// ... and those whose holders still waited at the end.
    pub still_waiting: u64,
    /// The most visitors in line at once, as seen at the end of a bin.
    pub in_line_max: u64,
    /// Answers that showed a position; `polls` are the requests for its status.
    pub waiting_pages: u64,
    /// See `waiting_pages`.
    pub polls: u64,
    /// How long newcomers waited until their sessions began, in line and held.
    pub waits: Histogram,
}

impl Visitors {
    /// Returns how many tickets were abandoned: their holders stopped polling before they were
    /// admitted.
    pub fn abandoned(&self) -> u64 {
        self.issued.saturating_sub(self.admitted + self.still_waiting)
    }
}

/// What a gate has counted since its start, over all kinds of session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) newcomers: u64,
    pub(super) began: u64,
    pub(super) ends: SessionEnds,
    pub(super) issued: u64,
    pub(super) admitted: u64,
}

impl Counted {
    pub(super) fn of(snapshot: &Snapshot) -> Counted {
        let mut counted = Counted::default();
        for kind in &snapshot.kinds {
            counted.newcomers += kind.newcomers;
            counted.began += kind.admitted;
            counted.ends = sum(counted.ends, kind.ends);
            counted.issued += kind.line.as_ref().map_or(0, |line| line.issued);
            counted.admitted += kind.line.as_ref().map_or(0, |line| line.admitted);
        }
        counted
    }

    pub(super) fn since(&self, before: &Counted) -> Counted {
        let (now, then) = (&self.ends, &before.ends);
        Counted {
            newcomers: self.newcomers.saturating_sub(before.newcomers),
            began: self.began.saturating_sub(before.began),
            ends: SessionEnds {
                finished: now.finished.saturating_sub(then.finished),
                silent: now.silent.saturating_sub(then.silent),
                abandoned: now.abandoned.saturating_sub(then.abandoned),
                failed: now.failed.saturating_sub(then.failed),
                reopened: now.reopened.saturating_sub(then.reopened),
            },
            issued: self.issued.saturating_sub(before.issued),
            admitted: self.admitted.saturating_sub(before.admitted),
        }
    }
}

pub(super) fn sum(a: SessionEnds, b: SessionEnds) -> SessionEnds {
    SessionEnds {
        finished: a.finished + b.finished,
        silent: a.silent + b.silent,
        abandoned: a.abandoned + b.abandoned,
        failed: a.failed + b.failed,
        reopened: a.reopened + b.reopened,
    }
}

/// A route, a kind of session or a service, by its index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TimelineSubject {
    /// A route.
    Route(usize),
    /// A kind of session.
    Kind(usize),
    /// A service.
    Service(usize),
}

/// What happened in a bin.
#[derive(Clone, Debug, Default)]
pub struct Bin {
    /// Requests that arrived.
    pub came: u64,
    /// Requests that were admitted to the application.
    pub let_in: u64,
    /// Requests that were refused, without a position in line.
    pub refused: u64,
    /// Requests answered with a position in line, or that began the session of their position.
    pub waiting_pages: u64,
    /// Requests abandoned, waiting or served: their clients disconnected.
    pub abandoned: u64,
    /// Sessions that began, ...
    pub began: u64,
    /// ... and how sessions ended.
    pub ends: SessionEnds,
    /// How long newcomers waited whose sessions began, in line and held.
    pub entries: Histogram,
    /// Waits of the admitted requests.
    pub waits: Histogram,
    /// The state of the gate at its end.
    pub gate: Moment,
}

/// The gate at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Moment {
    /// By route: the limit; `None` if it has none, or does not exist.
    pub limits: Vec<Option<u32>>,
    /// By kind: the admission interval in seconds; 0: open.
    pub intervals: Vec<f64>,
    /// Newcomers held at the gate.
    pub held: usize,
    /// Visitors in line, including those held.
    pub in_line: u64,
    /// Sessions under way.
    pub sessions: usize,
    /// Requests waiting for a slot.
    pub queued: usize,
    /// Requests in the application.
    pub in_flight: usize,
    /// By pool: its workers, and the requests that they have.
    pub pools: Vec<PoolView>,
}

/// What happened to the requests of a route.
#[derive(Clone, Debug, Default)]
pub struct RouteLine {
    /// Its name in metrics.
    pub name: String,
    /// Requests that arrived.
    pub came: u64,
    /// Answered well, with the client still connected.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// Abandoned, waiting or served: their clients disconnected.
    pub abandoned: u64,
    /// Refused, without a position in line.
    pub refused: u64,
    /// Answered with a position in line, or began the session of their position.
    pub waiting_pages: u64,
    /// Waits of the admitted requests.
    pub waits: Histogram,
    /// Their times in the application.
    pub services: Histogram,
}

/// A change of a limit or an interval.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// When, in seconds of the time played.
    pub at: f64,
    /// The route or kind.
    pub of: TimelineSubject,
    /// The decision itself.
    pub record: Record,
}

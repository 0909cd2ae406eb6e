//! Programs that run once for each request, as CGI does: no worker stays.
//!
//! A *place* is the right to run one of them. Places are counted as workers that are ready are: by the
//! machine of the workers, by the gate, and by whoever fixes their number. A [`Lease`](super::Lease)
//! takes a place, [`Lease::run`](super::Lease::run) starts a program there, and it is free again once
//! the program's process has ended, and all that it has left in its process group.
//!
//! A program whose request is cancelled, or not answered in time, is killed. One that has answered may
//! go on for as long as a worker may take to stop; it keeps its place meanwhile.

use super::keeper::Order;
use super::launch::Launch;
use super::recent::Recent;
use super::standard_error::LineBudget;
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::{fmt, io};
use suimon_fleet::workers::{Exit, Release, WorkerId, WorkersTotals};
use suimon_model::{Duration, Instant};
use suimon_params::upstream::NodeAddress;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::oneshot;

/// A program that runs.
#[derive(Debug)]
pub struct Run {
    /// Where it reads the request's body; `None`: it has none.
    pub body: Option<Sender>,
    /// What it answers.
    pub answer: Receiver,
    /// How it ends.
    pub end: oneshot::Receiver<RunEnd>,
}

/// How a program has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunEnd {
    /// Its exit code, or the signal that ended it.
    pub exit: Exit,
    /// The last that it wrote to its standard error.
    pub words: String,
}

impl fmt::Display for RunEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the program ended with {}", self.exit)?;
        match self.words.lines().next_back() {
            // Quoted: it may repeat what a client has sent.
            Some(line) => write!(f, "; the last that it wrote: {line:?}"),
            None => f.write_str(" and wrote nothing to its standard error"),
        }
    }
}

impl std::error::Error for RunEnd {}

/// What tells whoever started a program how it ends; an error: it was not started.
pub(super) type Started = io::Result<oneshot::Receiver<RunEnd>>;

/// The programs of a pool.
pub(super) struct Runs {
    address: Arc<NodeAddress>,
    /// How long a program may go on after its answer.
    pub(super) ends_within: Duration,
    /// By place, the one that runs there, or is being started.
    pub(super) by_place: BTreeMap<WorkerId, Running>,
    /// Places that are to be none any more.
    pub(super) closing: BTreeSet<WorkerId>,
    /// What the keeper is to do: at most a start and two signals of each place.
    pub(super) orders: Vec<Order>,
    pub(super) totals: RunTotals,
    /// How long recent starts took, seconds.
    pub(super) start: Recent,
    /// Failures that are told, and lines that are logged.
    pub(super) told: LineBudget,
    pub(super) log: Arc<LineBudget>,
}

/// A program, as long as it has a place.
pub(super) struct Running {
    pub(super) since: Instant,
    /// Its process; `None`: it is being started.
    pub(super) pid: Option<u32>,
    /// Who waits for its start.
    pub(super) starter: Option<oneshot::Sender<Started>>,
    /// How its lease has ended; `None`: it has not.
    pub(super) released: Option<Release>,
    pub(super) kill_at: Instant,
    pub(super) is_killed: bool,
}

#[derive(Default)]
pub(super) struct RunTotals {
    pub(super) starts: u64,
    pub(super) failed_starts: u64,
    /// Those that ended by themselves, by a signal or with another code than 0.
    pub(super) failures: u64,
    pub(super) kills: u64,
}

impl Runs {
    pub(super) fn new(pool: &Arc<str>, ends_within: Duration) -> Self {
        Runs {
            address: Arc::new(NodeAddress::Workers(Arc::clone(pool))),
            ends_within,
            by_place: BTreeMap::new(),
            closing: BTreeSet::new(),
            orders: Vec::new(),
            totals: RunTotals::default(),
            start: Recent::default(),
            told: LineBudget::default(),
            log: Arc::default(),
        }
    }

    pub(super) fn address(&self) -> &Arc<NodeAddress> {
        &self.address
    }

    /// Returns since when a program runs at this place, and its process.
    pub(super) fn at(&self, place: WorkerId) -> Option<(Instant, u32)> {
        let running = self.by_place.get(&place)?;
        running.pid.map(|pid| (running.since, pid))
    }

    /// Returns what has happened, told as of workers.
    pub(super) fn totals(&self, places: &WorkersTotals) -> WorkersTotals {
        let RunTotals { starts, failed_starts, failures, kills } = self.totals;
        let requests = places.requests;
        WorkersTotals { requests, starts, failed_starts, deaths: failures, kills, ..WorkersTotals::default() }
    }

    /// Returns the median of how long recent starts took, seconds; `None`: there was none.
    pub(super) fn start_s(&self) -> Option<f64> {
        self.start.median()
    }

    /// Forgets all: nobody runs them any more.
    pub(super) fn clear(&mut self) {
        self.by_place.clear();
        self.closing.clear();
        self.orders.clear();
    }

    /// Returns whether the keeper is to do something.
    pub(super) fn has_orders(&self) -> bool {
        !self.orders.is_empty()
    }

    /// Returns when one is to be killed that goes on after its answer.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = self.by_place.values().map(|running| running.kill_at);
        due.filter(|at| *at < Instant::FAR_FUTURE).min()
    }

    pub(super) fn begin(
        &mut self,
        since: Instant,
        place: WorkerId,
        starter: oneshot::Sender<Started>,
        launch: Box<Launch>,
    ) {
        let running = Running {
            since,
            pid: None,
            starter: Some(starter),
            released: None,
            kill_at: Instant::FAR_FUTURE,
            is_killed: false,
        };
        self.by_place.insert(place, running);
        self.totals.starts += 1;
        self.orders.push(Order::Run(place, launch));
    }

    pub(super) fn kill(&mut self, place: WorkerId) {
        let Some(running) = self.by_place.get_mut(&place) else { return };
        running.kill_at = Instant::FAR_FUTURE;
        // One that is being started is killed once it is there.
        if running.pid.is_some() && !std::mem::replace(&mut running.is_killed, true) {
            self.totals.kills += 1;
            self.orders.push(Order::Signal(place, Signal::KILL));
        }
    }

    pub(super) fn kill_overdue(&mut self, now: Instant) {
        let overdue = self.by_place.iter().filter(|(_, running)| running.kill_at <= now);
        let overdue: Vec<WorkerId> = overdue.map(|(place, _)| *place).collect();
        for place in overdue {
            self.kill(place);
        }
    }
}

//! What is asked of the gateway each second, from its operator's listener.

use crate::fetch;
use serde::Serialize;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use suimon_admin::{KindState, State};

/// How often it is asked.
const EVERY: Duration = Duration::from_secs(1);
/// Answers that wait to be read; further ones are dropped.
const ANSWERS_MAX: usize = 64;

/// The gateway at one moment.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Sample {
    /// Seconds since the crowd began.
    pub(super) at_s: f64,
    /// Seconds between two session starts; 0 while the gate is open; absent: nobody is admitted.
    pub(super) interval_s: Option<f64>,
    /// Newcomers held at the gate, or in line.
    pub(super) newcomers_waiting: usize,
    /// Sessions under way.
    pub(super) sessions: usize,
    /// Sessions admitted since the start.
    pub(super) admitted: u64,
    /// Newcomers told to come again later, since the start.
    pub(super) refused: u64,
    /// Requests in the application.
    pub(super) in_flight: usize,
    /// Every gated route that was ever asked for.
    pub(super) routes: Vec<Route>,
}

/// A route at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Route {
    /// Its name.
    pub(super) name: String,
    /// Requests that may be in the application at once.
    pub(super) limit: Option<u32>,
    /// Requests waiting for a slot.
    pub(super) waiting: usize,
    /// Requests in the application.
    pub(super) in_flight: usize,
}

/// Returns how many wait to begin a session of a kind.
fn waiting(kind: &KindState) -> usize {
    kind.in_line.and_then(|people| usize::try_from(people).ok()).unwrap_or(kind.held)
}

impl Sample {
    /// Returns what is of interest here, all kinds of session together. The slowest kind's interval
    /// stands for all; the demo has one kind.
    fn of(state: &State, at_s: f64) -> Sample {
        let kinds = &state.kinds;
        let interval = kinds.iter().map(|kind| kind.interval_seconds);
        Sample {
            at_s,
            interval_s: interval.reduce(|a, b| Some(a?.max(b?))).flatten(),
            newcomers_waiting: kinds.iter().map(waiting).sum(),
            sessions: kinds.iter().map(|kind| kind.active).sum(),
            admitted: kinds.iter().map(|kind| kind.admitted).sum(),
            refused: kinds.iter().map(|kind| kind.refused).sum(),
            in_flight: state.totals.in_flight,
            routes: state
                .routes
                .iter()
                .filter(|route| route.offered > 0)
                .map(|route| Route {
                    name: route.name.clone(),
                    limit: route.limit,
                    waiting: route.queued,
                    in_flight: route.in_flight,
                })
                .collect(),
        }
    }

    /// Returns how many wait behind the gate, for a slot of their route.
    pub(super) fn waiting_inside(&self) -> usize {
        self.routes.iter().map(|route| route.waiting).sum()
    }
}

/// Asks the gateway each second, on a thread of its own, until dropped.
pub(super) struct Watcher {
    answers: Receiver<Sample>,
    _stop: Sender<()>,
}

impl Watcher {
    /// Begins to ask at the operator's address `admin`; times count from `began`.
    pub(super) fn start(admin: String, began: Instant) -> std::io::Result<Watcher> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (sender, answers) = sync_channel(ANSWERS_MAX);
        let (stop, stopped) = channel();
        let ask = move || {
            // The other end is only ever dropped.
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(EVERY) {
                let body = runtime.block_on(fetch::get(&admin, suimon_admin::STATE_PATH));
                tell(body.ok().as_deref(), began, &sender);
            }
        };
        thread::Builder::new().name("watcher".to_owned()).spawn(ask)?;
        Ok(Watcher { answers, _stop: stop })
    }

    /// Returns what came since the last call.
    pub(super) fn new_samples(&self) -> impl Iterator<Item = Sample> + '_ {
        self.answers.try_iter()
    }
}

/// Sends on what the gateway answered. A second without an answer is a gap in the figures, and no
/// more.
fn tell(body: Option<&[u8]>, began: Instant, to: &SyncSender<Sample>) {
    let state = body.and_then(|body| serde_json::from_slice::<State>(body).ok());
    if let Some(state) = state {
        let _ = to.try_send(Sample::of(&state, began.elapsed().as_secs_f64()));
    }
}

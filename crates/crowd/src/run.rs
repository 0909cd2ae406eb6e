//! A run: users start, progress is reported each second, and a report follows at the end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use suimon_model::Instant;
use suimon_statistics::Histogram;
use suimon_workload::{Starts, Tally, Window, Workload};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::MissedTickBehavior;

use crate::clock::Clock;
use crate::line::LineBooks;
use crate::machine::{ensure_descriptors, thread_cpu_time};
use crate::report::{Ended, Facts, Report};
use crate::target::BaseUrl;
use crate::user::{Books, Shared, play};

/// Receives progress reports.
pub type OnProgress = Box<dyn FnMut(&Progress) + Send>;

/// What to play, where, and for how long.
pub struct Options {
    /// Target URL: `http://host:port`, optionally with a path that is prefixed to every step's
    /// path.
    pub base_url: String,
    /// The workload to play.
    pub workload: Workload,
    /// Replaces the workload's own seed.
    pub seed: Option<u64>,
    /// Time that is played but not measured.
    pub warmup: Duration,
    /// Time that is measured; then the run ends, even if sessions are under way. `None`: until all
    /// users are done; not allowed for an endless workload.
    pub measure: Option<Duration>,
    /// Called each second with the progress.
    pub progress: Option<OnProgress>,
}

/// The progress of a run. Counts cover the whole run so far.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// Seconds since the run began.
    pub at_s: f64,
    /// Whether the warm-up is over.
    pub measuring: bool,
    /// Seconds until the run ends, if that is known.
    pub left_s: Option<f64>,
    /// Current users.
    pub users: u64,
    /// Sessions under way.
    pub sessions_under_way: u64,
    /// Sessions completed.
    pub sessions_completed: u64,
    /// Sessions completed since the last snapshot, per second.
    pub sessions_per_s: f64,
    /// Failures after the first step.
    pub mid_session_failures: u64,
    /// Failures at the first step.
    pub first_step_failures: u64,
    /// Refusals at the first step with a time to retry and without a position.
    pub refusals: u64,
    /// Waiting pages.
    #[serde(default)]
    pub waiting_pages: u64,
    /// Visitors who wait in line now.
    #[serde(default)]
    pub in_line: u64,
    /// Requests sent.
    pub requests: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// The crowd's own share of a core since the last snapshot.
    pub crowd_cpu_share: f64,
}

impl Progress {
    /// Returns what is told, in parts that each stay on one line.
    pub fn parts(&self) -> [String; 6] {
        let of = self.left_s.map_or_else(String::new, |left| format!(" of {:.0}", self.at_s + left));
        let phase = if self.measuring { "" } else { " (warm-up)" };
        [
            format!("{:.0}{of} s{phase}", self.at_s),
            format!("{} done, {:.1}/s", self.sessions_completed, self.sessions_per_s),
            // A visitor in line is not a session of the application yet.
            format!(
                "{} inside, {} in line",
                self.sessions_under_way.saturating_sub(self.in_line),
                self.in_line
            ),
            format!("lost {} inside, {} at the start", self.mid_session_failures, self.first_step_failures),
            format!("{} refused", self.refusals),
            format!("CPU {:.0} %", self.crowd_cpu_share * 100.0),
        ]
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts().join(" | "))
    }
}

/// Why a run could not begin.
#[derive(Debug)]
pub enum CrowdError {
    /// The base URL cannot be used; the sentence says why.
    BadUrl(String),
    /// The workload is endless and no time was given.
    Endless,
    /// There is no kind of journey, or one has no steps.
    NothingToDo,
    /// The process may not hold this many connections.
    TooManyUsers {
        /// Descriptors needed.
        needed: u64,
        /// Descriptors it may have.
        limit: u64,
    },
    /// The host name could not be resolved.
    UnknownHost(String, std::io::Error),
    /// The runtime did not start.
    Runtime(std::io::Error),
}

impl CrowdError {
    /// Returns whether the caller's options are wrong, as opposed to an error of the environment.
    pub const fn is_usage(&self) -> bool {
        matches!(self, CrowdError::BadUrl(_) | CrowdError::Endless | CrowdError::NothingToDo)
    }
}

impl fmt::Display for CrowdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CrowdError::BadUrl(sentence) => f.write_str(sentence),
            CrowdError::Endless => f.write_str(
                "this workload never ends: give a time to measure, or arrivals that end (sessions_each, or phases)",
            ),
            CrowdError::NothingToDo => f.write_str("this workload has nothing to do: give it a journey with steps"),
            CrowdError::TooManyUsers { needed, limit } => write!(
                f,
                "this number of users needs {needed} descriptors and this process may have {limit}: \
                 raise it (ulimit -Hn), or play fewer users"
            ),
            CrowdError::UnknownHost(host, error) => write!(f, "the host {host} was not found ({error})"),
            CrowdError::Runtime(error) => write!(f, "the runtime did not start ({error})"),
        }
    }
}

impl std::error::Error for CrowdError {}

/// Plays the workload and returns the report. It ends when its time is over, when all users are
/// done, or when `shutdown` is ready. Sessions still under way are dropped and counted as such.
///
/// The calling thread plays all users and is blocked meanwhile. Call it from a thread of its own,
/// not from inside an async runtime.
///
/// # Errors
/// Fails before it sends anything if the run cannot begin.
pub fn run(options: Options, shutdown: impl Future<Output = ()>) -> Result<Report, CrowdError> {
    let base = BaseUrl::parse(&options.base_url).map_err(CrowdError::BadUrl)?;
    if options.measure.is_none() && options.workload.arrivals.is_endless() {
        return Err(CrowdError::Endless);
    }
    let kinds = &options.workload.kinds;
    if kinds.is_empty() || kinds.iter().any(|kind| kind.steps.is_empty()) {
        return Err(CrowdError::NothingToDo);
    }
    ensure_descriptors(options.workload.arrivals.users_max())
        .map_err(|(needed, limit)| CrowdError::TooManyUsers { needed, limit })?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CrowdError::Runtime)?;
    let local = LocalSet::new();
    let report = local.block_on(&runtime, observe(options, base, shutdown));
    drop(local);
    runtime.shutdown_background();
    report
}

async fn observe(
    options: Options,
    base: BaseUrl,
    shutdown: impl Future<Output = ()>,
) -> Result<Report, CrowdError> {
    let Options { base_url, mut workload, seed, warmup, measure, mut progress } = options;
    workload.seed = seed.unwrap_or(workload.seed);
    let addresses =
        base.resolve().await.map_err(|error| CrowdError::UnknownHost(base.host.clone(), error))?;
    let from = Instant::ORIGIN + warmup;
    let window = Window { from, to: measure.map_or(Instant::FAR_FUTURE, |measure| from + measure) };
    let users_max = workload.arrivals.users_max() as usize;
    let mut starts = Starts::new(&workload.arrivals, workload.seed).peekable();
    let books = Books {
        tally: Tally::new(&workload, window),
        troubles: BTreeMap::new(),
        first_failures: Vec::new(),
        send_delay: Histogram::default(),
        line: LineBooks::default(),
    };
    let started = SystemTime::now();
    let shared = Rc::new(Shared {
        workload: Arc::new(workload),
        base,
        addresses,
        clock: Clock::start(),
        books: RefCell::new(books),
        reconnects: Cell::new(0),
    });
    let clock = shared.clock;
    let mut users = JoinSet::new();
    let mut not_started = 0;
    let mut cpu_before = thread_cpu_time();
    let mut warming_up = true;
    let mut watch = Watch::new(cpu_before);
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + Watch::EVERY, Watch::EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut shutdown = pin!(shutdown);

    let ended = loop {
        let next_start = starts.peek().map(|start| start.at);
        if users.is_empty() && next_start.is_none() {
            break Ended::AllDone;
        }
        tokio::select! {
            biased;
            () = &mut shutdown => break Ended::Interrupted,
            () = clock.sleep_until(window.to) => break Ended::TimeOver,
            () = clock.sleep_until(window.from), if warming_up => {
                warming_up = false;
                cpu_before = thread_cpu_time();
            }
            _ = ticks.tick() => {
                let snapshot = watch.snapshot(&shared, users.len());
                if let Some(tell) = &mut progress {
                    tell(&snapshot);
                }
            }
            Some(done) = users.join_next() => {
                if let Err(error) = done
                    && let Ok(panic) = error.try_into_panic()
                {
                    std::panic::resume_unwind(panic);
                }
            }
            () = clock.sleep_until(next_start.unwrap_or(Instant::FAR_FUTURE)), if next_start.is_some() => {
                let now = clock.now();
                while let Some(start) = starts.next_if(|start| start.at <= now) {
                    if users.len() < users_max {
                        users.spawn_local(play(Rc::clone(&shared), start));
                    } else {
                        not_started += 1;
                    }
                }
            }
        }
    };

    let now = clock.now();
    let cpu = thread_cpu_time().saturating_sub(cpu_before);
    let mut books = shared.books.borrow_mut();
    books.tally.close(now);
    Ok(Report::new(&Facts {
        base_url: &base_url,
        workload: &shared.workload,
        books: &books,
        ended,
        started,
        duration: now.since(Instant::ORIGIN),
        cpu,
        // If interrupted during the warm-up, the CPU time counts from the beginning.
        cpu_over: if warming_up { now.since(Instant::ORIGIN) } else { now.since(window.from) },
        reconnects: shared.reconnects.get(),
        not_started,
    }))
}

/// Makes progress snapshots, with rates since the last one.
struct Watch {
    at: Instant,
    cpu: Duration,
    completed: u64,
}

impl Watch {
    const EVERY: Duration = Duration::from_secs(1);

    const fn new(cpu: Duration) -> Self {
        Watch { at: Instant::ORIGIN, cpu, completed: 0 }
    }

    fn snapshot(&mut self, shared: &Shared, users: usize) -> Progress {
        let now = shared.clock.now();
        let cpu = thread_cpu_time();
        let books = shared.books.borrow();
        let (whole, window) = (books.tally.whole(), books.tally.window());
        let elapsed = now.secs_since(self.at).max(1e-9);
        let snapshot = Progress {
            at_s: now.as_secs_f64(),
            measuring: now >= window.from,
            left_s: (window.to < Instant::FAR_FUTURE).then(|| window.to.secs_since(now)),
            users: users as u64,
            sessions_under_way: books.tally.under_way(),
            sessions_completed: whole.sessions_completed,
            sessions_per_s: (whole.sessions_completed - self.completed) as f64 / elapsed,
            mid_session_failures: whole.mid_session_failures,
            first_step_failures: whole.first_step_failures,
            refusals: whole.refusals,
            waiting_pages: whole.waiting_pages,
            in_line: books.line.waiting(),
            requests: whole.requests,
            in_flight: books.tally.in_flight(),
            crowd_cpu_share: cpu.saturating_sub(self.cpu).as_secs_f64() / elapsed,
        };
        *self = Watch { at: now, cpu, completed: whole.sessions_completed };
        snapshot
    }
}

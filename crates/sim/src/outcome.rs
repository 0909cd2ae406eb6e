//! The result of a run: the visitors' counts, the state of the gate at each second, and figures
//! derived from both.

use crate::laws::Laws;
use crate::pool::PoolSecond;
use crate::scenario::Scenario;
use crate::services::ServiceSeries;
use serde::Serialize;
use suimon_control::ResidentMove;
use suimon_gate::{Knowledge, Learned, Snapshot};
use suimon_model::{Duration, Instant, Record};
use suimon_statistics::Histogram;
use suimon_workload::{Counts, Second, StepTally, Tally};

/// Goodput counts as settled when it is at least this share of what is reachable ...
const SETTLED_SHARE: f64 = 0.9;
/// ... over this many seconds.
const SETTLED_SECONDS: usize = 30;

/// The most decisions kept of a run.
pub const RECORDS_MAX: usize = 10_000;

/// The result of one run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// The seed that reproduces it.
    pub seed: u64,
    /// The laws, as `ROUTES+SESSIONS`.
    pub laws: String,
    /// The most important figures, over the measured time.
    pub summary: Summary,
    /// The visitors' own counts, over the measured time.
    pub counts: Counts,
    /// By kind of journey, then by step.
    pub steps: Vec<Vec<StepTally>>,
    /// Times of the completed sessions, from first request to last answer.
    pub session_time: Histogram,
    /// What the visitors saw, second by second from the start.
    pub seconds: Vec<Second>,
    /// What was done for each service.
    pub services: ServiceSeries,
    /// The gate and the machine, about once per second.
    pub series: Vec<Sample>,
    /// The pool at the same moments; empty without one.
    pub pool: Vec<PoolSecond>,
    /// The first decisions about the number of resident workers, and when they were made.
    pub resident_moves: Vec<(Instant, ResidentMove)>,
    /// Sessions per second that were reachable, for each second.
    pub reachable: Vec<f64>,
    /// Sessions per second of which the application was capable, for each second.
    pub bound: Vec<f64>,
    /// The measured time, in seconds from the start: from, to.
    pub counted: (f64, f64),
    /// The number of the gate's routes.
    pub gate_routes: usize,
    /// Windows at a limit under trial, in the measured time.
    pub trial_windows: u64,
    /// The number of all decisions.
    pub decisions: u64,
    /// The first [`RECORDS_MAX`] of them.
    pub records: Vec<Record>,
    /// Waiting at the gates, in the measured time.
    pub gates: Gates,
    /// Of all requests, warm-up included: from arrival at a node to the end of its accept path.
    pub accept_path: Histogram,
    /// Users that did not start because `users_max` were already present.
    pub not_started: u64,
    /// What the gate had learned by the end.
    pub learned: Learned,
    /// What another gate could start from: see [`crate::run_knowing`].
    pub knowledge: Knowledge,
    /// The hash of all decisions.
    pub trace: u64,
    /// Events handled.
    pub events: u64,
}

/// Waiting at the gates.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Gates {
    /// Requests that went to the application, ...
    pub started: u64,
    /// ... and the seconds for which they were held before, at both gates together.
    pub held_s: f64,
    /// Of these, the requests of visitors who had been admitted before, ...
    pub inside: u64,
    /// ... and the seconds for which these were held at their routes.
    pub inside_held_s: f64,
    /// Requests of newcomers, ...
    pub newcomers: u64,
    /// ... and how many of these were held at the session gate for over a second.
    pub newcomers_held_long: u64,
}

impl Gates {
    /// Returns the share of newcomers that were held at the session gate for over a second.
    pub fn held_long_share(&self) -> f64 {
        self.newcomers_held_long as f64 / self.newcomers.max(1) as f64
    }

    /// Returns the mean seconds for which a request of an admitted visitor waited at its route's
    /// gate.
    pub fn delay_s(&self) -> f64 {
        self.inside_held_s / self.inside.max(1) as f64
    }
}

/// The most important figures of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Summary {
    /// Completed sessions per second.
    pub sessions_per_s: f64,
    /// Completed sessions as a share of what was reachable: of the bound B, or of the demand if
    /// that is less.
    pub goodput_share: f64,
    /// Completed sessions as a share of B.
    pub bound_share: f64,
    /// Sessions completed.
    pub completed: u64,
    /// Timeouts, errors and refusals after the first page.
    pub mid_session_failures: u64,
    /// Mid-session failures per session completed or left.
    pub mid_session_failure_share: f64,
    /// Timeouts and errors at the first page.
    pub first_step_failures: u64,
    /// Refusals at the first page with `Retry-After` and without a position in line.
    pub refusals: u64,
    /// Answers that showed a position in line; each request counts.
    pub waiting_pages: u64,
    /// Median of the time from a visitor's first request to the first good answer, seconds.
    pub wait_p50_s: f64,
    /// The 95th percentile of that time.
    pub wait_p95_s: f64,
    /// CPU seconds of work done per core-second in use; 1 if concurrency costs nothing.
    pub efficiency: f64,
    /// Seconds from the start until goodput is settled: at least 0.9 of what is reachable over 30
    /// s; `None`: never.
    pub settled_after_s: Option<f64>,
    /// The widest range of any route's limit: its highest divided by its lowest.
    pub limit_swing: f64,
    /// Nodes that were there, on average.
    #[serde(skip)]
    pub nodes: f64,
    /// Resident workers, on average; 0 without a pool.
    #[serde(skip)]
    pub residents: f64,
    /// Decisions that changed their number.
    #[serde(skip)]
    pub resident_moves: u64,
}

/// The gate and the machine at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// When, in seconds from the start.
    pub at_s: f64,
    /// By route: the limit; `None` if it has none.
    pub limits: Vec<Option<u32>>,
    /// By route: requests waiting.
    pub waiting: Vec<usize>,
    /// By route: requests in the application.
    pub in_flight: Vec<usize>,
    /// By kind: the admission interval in seconds; 0: open.
    pub intervals: Vec<f64>,
    /// By kind: sessions under way.
    pub active: Vec<usize>,
    /// By kind: newcomers waiting.
    pub line: Vec<usize>,
    /// Core-seconds in use since the start, of all nodes.
    pub busy: f64,
    /// CPU seconds of work done since the start.
    pub work: f64,
    /// Nodes that are there, those that start or drain among them.
    pub nodes: u32,
    /// Node-seconds since the start.
    pub node_seconds: f64,
}

impl Sample {
    pub(crate) fn new(
        now: Instant,
        snapshot: &Snapshot,
        (busy, work): (f64, f64),
        (nodes, node_seconds): (u32, f64),
    ) -> Self {
        Sample {
            at_s: now.as_secs_f64(),
            limits: snapshot.routes.iter().map(|route| route.limit).collect(),
            waiting: snapshot.routes.iter().map(|route| route.waiting).collect(),
            in_flight: snapshot.routes.iter().map(|route| route.in_flight).collect(),
            intervals: snapshot.kinds.iter().map(|kind| kind.interval_seconds).collect(),
            active: snapshot.kinds.iter().map(|kind| kind.active).collect(),
            line: snapshot.kinds.iter().map(|kind| kind.waiting).collect(),
            busy,
            work,
            nodes,
            node_seconds,
        }
    }
}

impl RunResult {
    pub(crate) fn new(scenario: &Scenario, seed: u64, laws: &Laws, gate_routes: usize) -> Self {
        RunResult {
            scenario: scenario.name.clone(),
            seed,
            laws: laws.to_string(),
            summary: Summary::default(),
            counts: Counts::default(),
            steps: vec![],
            session_time: Histogram::default(),
            seconds: vec![],
            services: ServiceSeries::new(&scenario.gate.services, scenario.routes.len()),
            series: vec![],
            pool: vec![],
            resident_moves: vec![],
            reachable: vec![],
            bound: vec![],
            counted: (0.0, 0.0),
            gate_routes,
            trial_windows: 0,
            decisions: 0,
            records: vec![],
            gates: Gates::default(),
            accept_path: Histogram::default(),
            not_started: 0,
            learned: Learned::default(),
            knowledge: Knowledge::default(),
            trace: 0,
            events: 0,
        }
    }

    /// Takes in what the visitors saw, after the last of them is done.
    pub(crate) fn finish(mut self, scenario: &Scenario, tally: &Tally) -> Self {
        let window = tally.window();
        self.counted = (window.from.as_secs_f64(), window.to.as_secs_f64());
        self.counts = *tally.measured();
        self.steps = tally.steps().to_vec();
        self.session_time = tally.session_time().clone();
        self.seconds = tally.series().to_vec();
        let middle = |second: usize| Duration::from_millis(second as u64 * 1000 + 500);
        (self.bound, self.reachable) =
            scenario.rates((0..self.seconds.len()).map(middle)).into_iter().unzip();
        let (from, to) = self.counted;
        let quantile = |q| tally.first_step_wait().quantile_s(q).unwrap_or(0.0);
        let mut summary = self.between(from, to);
        // Exact when the window does not end at full seconds.
        summary.sessions_per_s = self.counts.sessions_completed as f64 / (to - from).max(1e-9);
        (summary.wait_p50_s, summary.wait_p95_s) = (quantile(0.5), quantile(0.95));
        self.summary = summary;
        self
    }

    /// Returns the summary of the time from `from` to `to`, seconds from the start, in whole
    /// seconds. Its waits are those of the whole measured time.
    pub fn between(&self, from: f64, to: f64) -> Summary {
        let seconds = from.round().max(0.0) as usize..(to.round().max(0.0) as usize).min(self.seconds.len());
        let sum = |of: fn(&Second) -> u32| {
            self.seconds[seconds.clone()].iter().map(|second| u64::from(of(second))).sum::<u64>()
        };
        let completed = sum(|second| second.completed);
        let mid_session_failures = sum(|second| second.mid_session_failures);
        let total = |rates: &[f64]| rates[seconds.clone()].iter().sum::<f64>();
        let samples: Vec<&Sample> = self.series.iter().filter(|s| (from..=to).contains(&s.at_s)).collect();
        let efficiency = match (samples.first(), samples.last()) {
            (Some(first), Some(last)) if last.busy > first.busy => {
                (last.work - first.work) / (last.busy - first.busy)
            }
            _ => 1.0,
        };
        let nodes = match (samples.first(), samples.last()) {
            (Some(first), Some(last)) if last.at_s > first.at_s => {
                (last.node_seconds - first.node_seconds) / (last.at_s - first.at_s)
            }
            _ => 0.0,
        };
        Summary {
            nodes,
            sessions_per_s: completed as f64 / seconds.len().max(1) as f64,
            goodput_share: completed as f64 / total(&self.reachable).max(1e-9),
            bound_share: completed as f64 / total(&self.bound).max(1e-9),
            completed,
            mid_session_failures,
            mid_session_failure_share: mid_session_failures as f64
                / (completed + sum(|second| second.left)).max(1) as f64,
            first_step_failures: sum(|second| second.first_step_failures),
            refusals: sum(|second| second.refusals),
            waiting_pages: sum(|second| second.waiting_pages),
            efficiency,
            settled_after_s: self.settled_after(),
            limit_swing: limit_swing(&samples),
            residents: self.residents(from, to),
            resident_moves: self.moves(from, to),
            ..self.summary
        }
    }

    /// Returns the mean number of workers that were ready or started.
    fn residents(&self, from: f64, to: f64) -> f64 {
        let seconds = self.series.iter().zip(&self.pool);
        let seconds = seconds.filter(|(sample, _)| (from..=to).contains(&sample.at_s));
        let (count, sum) = seconds.fold((0.0, 0.0), |(count, sum), (_, second)| {
            (count + 1.0, sum + f64::from(second.ready + second.starting))
        });
        sum / f64::max(count, 1.0)
    }

    fn moves(&self, from: f64, to: f64) -> u64 {
        let moves = self.resident_moves.iter();
        moves.filter(|(at, _)| (from..to).contains(&at.as_secs_f64())).count() as u64
    }

    /// Returns goodput as a share of B in bins of `seconds` from the start; without the last one,
    /// if it is incomplete.
    pub fn bins(&self, seconds: usize) -> Vec<f64> {
        let share = |(done, bound): (&[Second], &[f64])| {
            done.iter().map(|second| f64::from(second.completed)).sum::<f64>()
                / bound.iter().sum::<f64>().max(1e-9)
        };
        self.seconds.chunks_exact(seconds).zip(self.bound.chunks_exact(seconds)).map(share).collect()
    }

    fn settled_after(&self) -> Option<f64> {
        let done: Vec<f64> = self.seconds.iter().map(|second| f64::from(second.completed)).collect();
        let windows = done.windows(SETTLED_SECONDS).zip(self.reachable.windows(SETTLED_SECONDS));
        let mut settled =
            windows.map(|(done, can)| done.iter().sum::<f64>() >= SETTLED_SHARE * can.iter().sum::<f64>());
        settled.position(|is| is).map(|second| second as f64)
    }
}

fn limit_swing(samples: &[&Sample]) -> f64 {
    let routes = samples.first().map_or(0, |sample| sample.limits.len());
    let swing = |route: usize| {
        let limits: Vec<u32> = samples.iter().filter_map(|sample| sample.limits[route]).collect();
        let (low, high) =
            (limits.iter().min().copied().unwrap_or(1), limits.iter().max().copied().unwrap_or(1));
        f64::from(high) / f64::from(low.max(1))
    };
    (0..routes).map(swing).fold(1.0, f64::max)
}

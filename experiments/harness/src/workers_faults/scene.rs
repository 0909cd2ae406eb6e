//! One fault under load, and what is seen of it.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use suimon_admin::{PoolDetails, PoolTotals, WorkerState};
use suimon_crowd::Report;
use suimon_process::{Signal, group};

use super::fault::{Action, Fault, HANGING, KILLED_BROKEN, RELOADS, WARM_UP_S};
use super::load;
use super::place::{Place, Serving, is_complete, lives};
use crate::crowd::Crowd;
use crate::http;
use crate::trouble::{Result, While, failed};

/// How long it may take until nothing is under way any more and all workers are ready, after the
/// load has ended.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);
/// How long processes may take to be gone after a gateway has ended or was killed.
const GONE_WITHIN: Duration = Duration::from_secs(3);
/// How long a page that never comes is waited for.
const HANGING_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Interval of looks at the pool while the load goes on.
const WATCH_EVERY: Duration = Duration::from_millis(500);

/// A fault under load. Times are in seconds since the load began.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) fault: Fault,
    /// When the counting began, the fault came, what it broke was whole again, and the load ended.
    pub(super) counted_from_s: f64,
    pub(super) fault_at_s: f64,
    pub(super) mended_at_s: Option<f64>,
    pub(super) load_until_s: f64,
    /// Requests sent, and those that were answered with the page.
    pub(super) requests: u64,
    pub(super) completed: u64,
    /// Those that were not: by status or kind, and of those that may be sent again (GET).
    pub(super) failed: u64,
    pub(super) failed_by_kind: BTreeMap<String, u64>,
    pub(super) failed_gets: u64,
    /// Requests that were in workers when these were killed or stopped.
    pub(super) in_dead_workers: u32,
    /// Statuses of the pages that hang.
    pub(super) hanging: Vec<u16>,
    /// Slowest page of all, and the slowest of 99 in 100.
    pub(super) p99_s: f64,
    pub(super) slowest_s: f64,
    pub(super) completed_by_second: Vec<u32>,
    pub(super) failed_by_second: Vec<u32>,
    /// After the load: how long until nothing was under way and all workers were ready; absent: some
    /// never were. What was under way then, and the workers.
    pub(super) settled_after_s: Option<f64>,
    pub(super) slots_left: u64,
    pub(super) workers_wanted: usize,
    pub(super) workers_ready: usize,
    /// Processes of workers that nobody supervised any more, in the whole case.
    pub(super) orphans: u32,
    /// What became of workers from the beginning of the load on; after a restart of the gateway,
    /// from there on.
    pub(super) totals: PoolTotals,
    /// The most memory that a worker had when looked at, and the most workers.
    pub(super) worker_mb_max: f64,
    pub(super) workers_max: usize,
    /// How long each reload took.
    pub(super) reloads_s: Vec<f64>,
    pub(super) reloads_failed: u32,
}

/// Plays it.
pub(super) fn play(place: &mut Place<'_>, fault: Fault, rate_per_s: f64) -> Result<Case> {
    let folder = place.workspace.fresh("case")?;
    // It is left there if a case was given up.
    let _ = fs::remove_file(place.broken());
    let common = place.common;
    // What is written in a case stays for inspection.
    let logs = common.scratch.join(format!("{fault:?}"));
    fs::create_dir_all(&logs).trouble(logs.display())?;
    let gateway = place.serve(&folder, &logs, &fault.wishes(), None)?;
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &logs,
        core: common.load_core,
        journey: load::steady(common.seed, fault, rate_per_s),
        to: gateway.address,
        warmup: Duration::from_secs(WARM_UP_S.into()),
        measure: None,
    };
    let mut scene = Scene {
        fault,
        folder,
        logs: logs.clone(),
        suimon: common.suimon.clone(),
        before: gateway.pool()?.pool.totals,
        place,
        gateway,
        due: fault.script().into(),
        watched: None,
        fault_at: None,
        mended_at: None,
        in_dead_workers: 0,
        orphans: 0,
        gateway_is_dead: false,
        worker_bytes_max: 0,
        workers_max: 0,
        hanging: Vec::new(),
        reloads: None,
    };
    let report = crowd.start()?.finish(|at| scene.look(at))?;
    scene.end(&report)
}

struct Scene<'p, 'a> {
    fault: Fault,
    folder: PathBuf,
    logs: PathBuf,
    suimon: PathBuf,
    before: PoolTotals,
    place: &'p mut Place<'a>,
    gateway: Serving,
    due: VecDeque<(u32, Action)>,
    watched: Option<Duration>,
    /// Seconds since 1970.
    fault_at: Option<f64>,
    mended_at: Option<f64>,
    in_dead_workers: u32,
    orphans: u32,
    gateway_is_dead: bool,
    worker_bytes_max: u64,
    workers_max: usize,
    hanging: Vec<JoinHandle<u16>>,
    reloads: Option<JoinHandle<(Vec<f64>, u32)>>,
}

impl Scene<'_, '_> {
    /// Is called every tenth of a second with the time since the load began.
    fn look(&mut self, at: Duration) -> Result<()> {
        while let Some((second, action)) = self.due.front().copied() {
            if at < Duration::from_secs(second.into()) {
                break;
            }
            self.due.pop_front();
            self.act(action)?;
        }
        if self.gateway_is_dead {
            return Ok(());
        }
        self.gateway.must_run()?;
        if self.watched.is_none_or(|last| at >= last + WATCH_EVERY) {
            self.watched = Some(at);
            let pool = self.gateway.pool()?;
            let most = pool.workers.iter().filter_map(|worker| worker.memory_bytes).max();
            self.worker_bytes_max = self.worker_bytes_max.max(most.unwrap_or(0));
            self.workers_max = self.workers_max.max(pool.workers.len());
        }
        Ok(())
    }

    fn act(&mut self, action: Action) -> Result<()> {
        let now = unix_s();
        match action {
            Action::KillOne => {
                let workers = self.with_request()?;
                self.signal(workers.iter().take(1), Signal::KILL);
            }
            Action::KillAll => {
                let workers = self.gateway.pool()?.workers;
                self.signal(workers.iter(), Signal::KILL);
            }
            Action::StopOne => {
                let workers = self.with_request()?;
                self.signal(workers.iter().take(1), Signal::STOP);
            }
            Action::AskForHanging => {
                let to = self.gateway.address;
                let ask = || {
                    thread::spawn(move || {
                        http::get(to, "/hang.php", HANGING_PATIENCE).map_or(0, |answer| answer.status)
                    })
                };
                self.hanging = (0..HANGING).map(|_| ask()).collect();
            }
            Action::Break => {
                let broken = self.place.broken();
                fs::write(&broken, "").trouble(broken.display())?;
                reload(&self.suimon, self.gateway.admin, false)?;
                let workers = self.gateway.pool()?.workers;
                self.signal(workers.iter().take(KILLED_BROKEN), Signal::KILL);
            }
            Action::Mend => {
                let broken = self.place.broken();
                fs::remove_file(&broken).trouble(broken.display())?;
            }
            Action::StopDatabase => self.place.database.stop(),
            Action::StartDatabase => self.place.database.start(self.place.workspace)?,
            Action::KillGateway => {
                let state = self.gateway.state()?;
                self.in_dead_workers = (state.totals.in_flight + state.totals.waiting()) as u32;
                let family = self.gateway.family()?;
                self.gateway.kill()?;
                self.gateway_is_dead = true;
                self.orphans += left(|| family.iter().copied().filter(|pid| lives(*pid)).collect());
            }
            Action::StartGateway => {
                let at = (self.gateway.address, self.gateway.admin);
                self.gateway = self.place.start(&self.folder, &self.logs, &self.fault.wishes(), Some(at))?;
                self.gateway_is_dead = false;
                self.before = PoolTotals::default();
            }
            Action::Reload => {
                let (suimon, admin) = (self.suimon.clone(), self.gateway.admin);
                self.reloads = Some(thread::spawn(move || reloads(&suimon, admin)));
            }
        }
        match action {
            Action::Mend | Action::StartDatabase | Action::StartGateway => self.mended_at = Some(unix_s()),
            _ => self.fault_at = Some(now),
        }
        Ok(())
    }

    /// Returns the workers that have a request.
    fn with_request(&self) -> Result<Vec<WorkerState>> {
        let mut workers = self.gateway.pool()?.workers;
        workers.retain(|worker| worker.state == "busy");
        if workers.is_empty() { failed("no worker has a request") } else { Ok(workers) }
    }

    /// Sends the workers a signal, all at once, and notes how many had a request.
    fn signal<'w>(&mut self, workers: impl Iterator<Item = &'w WorkerState>, signal: Signal) {
        for worker in workers {
            if let Some(pid) = worker.pid {
                group::signal(pid, signal);
                self.in_dead_workers += u32::from(worker.state == "busy");
            }
        }
    }

    /// Waits until all is quiet, ends the gateway, and returns what was seen.
    fn end(mut self, report: &Report) -> Result<Case> {
        let hanging = self.hanging.drain(..).map(|asked| asked.join().unwrap_or(0)).collect();
        let (reloads_s, reloads_failed) = match self.reloads.take() {
            Some(reloads) => reloads.join().map_err(|_| "they panicked").trouble("the reloads")?,
            None => (Vec::new(), 0),
        };
        let (settled_after_s, slots_left, pool) = settled(&self.gateway)?;
        // What carries our mark and is in nobody's family has lost its parent.
        let family = self.gateway.family()?;
        let marked = self.place.marked();
        self.orphans += marked.iter().filter(|pid| !family.contains(pid)).count() as u32;
        let place = self.place;
        self.gateway.end()?;
        self.orphans += left(|| place.marked());
        place.marked().into_iter().for_each(|pid| group::signal(pid, Signal::KILL));
        let since = |unix: f64| unix - report.started_unix_s;
        let lost: Vec<u32> = report
            .series
            .iter()
            .map(|second| {
                second.first_step_failures
                    + second.mid_session_failures
                    + second.refusals
                    + second.waiting_pages
            })
            .collect();
        let mut failed_by_kind = report.failures_by_kind.clone();
        for (kind, count) in [("refused", report.refusals), ("waiting_page", report.waiting_pages)] {
            if count > 0 {
                *failed_by_kind.entry(kind.to_string()).or_default() += count;
            }
        }
        // A refusal without a time to ask again is counted as a failure, too.
        let gets = report.steps.iter().filter(|step| step.step == load::GET);
        let longest = |of: fn(&suimon_crowd::Quantiles) -> f64| {
            report.steps.iter().map(|step| of(&step.time)).fold(0.0, f64::max)
        };
        Ok(Case {
            fault: self.fault,
            counted_from_s: report.warmup_s,
            fault_at_s: self.fault_at.map_or(report.warmup_s, since),
            mended_at_s: self.mended_at.map(since),
            load_until_s: self.fault.lasts_s().into(),
            requests: report.requests,
            completed: report.sessions_completed,
            failed: failed_by_kind.values().sum(),
            failed_by_kind,
            failed_gets: gets.map(|step| step.failures.max(step.refusals) + step.waiting_pages).sum(),
            in_dead_workers: self.in_dead_workers,
            hanging,
            p99_s: longest(|time| time.p99_s),
            slowest_s: longest(|time| time.max_s),
            completed_by_second: report.series.iter().map(|second| second.completed).collect(),
            failed_by_second: lost,
            settled_after_s,
            slots_left,
            workers_wanted: pool.pool.wanted,
            workers_ready: pool.pool.ready,
            orphans: self.orphans,
            totals: between(&self.before, &pool.pool.totals),
            worker_mb_max: self.worker_bytes_max as f64 / f64::from(1 << 20),
            workers_max: self.workers_max,
            reloads_s,
            reloads_failed,
        })
    }
}

/// Waits until no request is under way and all workers are ready. Returns how long that took, `None`
/// if it did not come true; what is under way then; and the pool.
fn settled(gateway: &Serving) -> Result<(Option<f64>, u64, PoolDetails)> {
    let began = Instant::now();
    loop {
        let (state, pool) = (gateway.state()?, gateway.pool()?);
        let at_nodes: u32 = state.nodes.iter().map(|node| node.in_flight).sum();
        let gate = state.totals.in_flight + state.totals.waiting();
        let slots = gate.max(at_nodes as usize).max(pool.pool.busy) as u64;
        let is_new = |worker: &WorkerState| worker.generation == pool.pool.generation;
        if slots == 0 && is_complete(&pool.pool) && pool.workers.iter().all(is_new) {
            return Ok((Some(began.elapsed().as_secs_f64()), 0, pool));
        }
        if began.elapsed() > SETTLED_WITHIN {
            return Ok((None, slots, pool));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Waits until no process is left, and returns how many are if some stay.
fn left(of: impl Fn() -> Vec<u32>) -> u32 {
    let deadline = Instant::now() + GONE_WITHIN;
    loop {
        let count = of().len() as u32;
        if count == 0 || Instant::now() > deadline {
            return count;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Reloads again and again. Returns how long each took, and how many failed.
fn reloads(suimon: &Path, admin: SocketAddr) -> (Vec<f64>, u32) {
    let (mut took, mut lost) = (Vec::new(), 0);
    for _ in 0..RELOADS {
        let began = Instant::now();
        match reload(suimon, admin, true) {
            Ok(()) => took.push(began.elapsed().as_secs_f64()),
            Err(trouble) => {
                eprintln!("{trouble}");
                lost += 1;
            }
        }
    }
    (took, lost)
}

fn reload(suimon: &Path, admin: SocketAddr, waits: bool) -> Result<()> {
    let mut command = Command::new(suimon);
    command.args(["pool", "reload", "--admin", &format!("http://{admin}")]);
    command.args(waits.then_some("--wait")).stdin(Stdio::null());
    let output = command.output().trouble("suimon pool reload")?;
    if output.status.success() {
        return Ok(());
    }
    failed(format!("suimon pool reload: {}", String::from_utf8_lossy(&output.stderr)))
}

fn between(before: &PoolTotals, after: &PoolTotals) -> PoolTotals {
    let ended = after
        .ended
        .iter()
        .map(|(why, count)| (why.clone(), count.saturating_sub(before.ended.get(why).copied().unwrap_or(0))));
    PoolTotals {
        requests: after.requests.saturating_sub(before.requests),
        starts: after.starts.saturating_sub(before.starts),
        failed_starts: after.failed_starts.saturating_sub(before.failed_starts),
        deaths: after.deaths.saturating_sub(before.deaths),
        kills: after.kills.saturating_sub(before.kills),
        ended: ended.filter(|(_, count)| *count > 0).collect(),
    }
}

fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

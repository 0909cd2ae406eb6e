//! A crowd that is observed while it plays: what it saw, and how the processors were used.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use suimon_admin::State;
use suimon_crowd::Report;

use crate::common::Common;
use crate::cpu::{CoreTimes, CoreUse, process_time};
use crate::crowd::Crowd;
use crate::gateways::Gateway;
use crate::trouble::{Result, Trouble, While};

/// Interval at which the gateway's state is read.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Decisions kept in data files.
const DECISIONS_KEPT: usize = 12;

/// The observations of one crowd. Shares are of one core, over the measured time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// What the visitors saw; its series is left out.
    pub(crate) crowd: Report,
    /// Sessions completed in each second of the run, warm-up included.
    pub(crate) completed_by_second: Vec<u32>,
    /// The application's processor time ÷ time.
    pub(crate) app_cpu_share: f64,
    /// The gateway's.
    pub(crate) gateway_cpu_share: Option<f64>,
    /// How the application's core was used.
    pub(crate) app_core: CoreUse,
    /// How the core of gateway and crowd was used.
    pub(crate) load_core: CoreUse,
    /// The gateway's state at the end, with its last decisions.
    pub(crate) gateway_at_end: Option<State>,
}

impl Seen {
    /// Returns the share in which the application's core was neither idle nor used by the
    /// application.
    pub(crate) fn foreign(&self) -> f64 {
        self.app_core.foreign(self.app_cpu_share)
    }
}

/// Processor times at one moment.
struct Moment {
    at: Instant,
    app: Duration,
    gateway: Option<Duration>,
    app_core: CoreTimes,
    load_core: CoreTimes,
}

impl Moment {
    fn now(common: &Common, app_pid: u32, gateway_pid: Option<u32>) -> Result<Moment> {
        Ok(Moment {
            at: Instant::now(),
            app: process_time(app_pid)?,
            gateway: gateway_pid.map(process_time).transpose()?,
            app_core: CoreTimes::now(common.app_core)?,
            load_core: CoreTimes::now(common.load_core)?,
        })
    }
}

/// Plays the crowd. Once per second it writes the gateway's state to `states`, as a line with the
/// decisions since the last one, and passes it to `each_second`.
pub(crate) fn observe(
    common: &Common,
    crowd: &Crowd<'_>,
    app_pid: u32,
    gateway: &mut Gateway,
    states: &Path,
    mut each_second: impl FnMut(&State),
) -> Result<Seen> {
    let mut lines = File::create(states).trouble(states.display())?;
    let gateway_pid = gateway.pid();
    let playing = crowd.start()?;
    let measuring_from = playing.measuring_from();
    let mut before = None;
    let mut asked: Option<Instant> = None;
    let mut last_state = None;
    let mut newest = f64::NEG_INFINITY;
    let mut report = playing.finish(|_| {
        gateway.must_run()?;
        if before.is_none() && Instant::now() >= measuring_from {
            before = Some(Moment::now(common, app_pid, gateway_pid)?);
        }
        if asked.is_some_and(|at| at.elapsed() < ASK_EVERY) {
            return Ok(());
        }
        asked = Some(Instant::now());
        let Some(state) = gateway.state() else { return Ok(()) };
        each_second(&state);
        let mut news = state.clone();
        news.decisions.retain(|decision| decision.at_seconds > newest);
        newest = news.decisions.iter().map(|decision| decision.at_seconds).fold(newest, f64::max);
        let line = serde_json::to_string(&news).trouble("the gateway's state")?;
        writeln!(lines, "{line}").trouble(states.display())?;
        last_state = Some(state);
        Ok(())
    })?;
    let before =
        before.ok_or_else(|| Trouble::Failed("the crowd ended before it was measured".to_string()))?;
    let after = Moment::now(common, app_pid, gateway_pid)?;
    let elapsed = after.at.duration_since(before.at).as_secs_f64().max(1e-9);
    let share = |before: Duration, after: Duration| after.saturating_sub(before).as_secs_f64() / elapsed;
    if let Some(state) = &mut last_state {
        let surplus = state.decisions.len().saturating_sub(DECISIONS_KEPT);
        state.decisions.drain(..surplus);
    }
    let completed_by_second = report.series.iter().map(|second| second.completed).collect();
    report.series.clear();
    Ok(Seen {
        crowd: report,
        completed_by_second,
        app_cpu_share: share(before.app, after.app),
        gateway_cpu_share: before.gateway.zip(after.gateway).map(|(before, after)| share(before, after)),
        app_core: before.app_core.until(&after.app_core),
        load_core: before.load_core.until(&after.load_core),
        gateway_at_end: last_state,
    })
}

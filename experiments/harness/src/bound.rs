//! The bound: no more sessions per second than cores ÷ processor seconds per session.

use serde::{Deserialize, Serialize};

use crate::apps::OpenShop;
use crate::common::Common;
use crate::cpu::{CoreTimes, CoreUse, process_time};
use crate::crowd::Crowd;
use crate::journey::{Journey, Thinks};
use crate::trouble::{Result, failed};
use std::path::Path;
use std::time::Duration;

/// The application has one core.
const CORES: f64 = 1.0;

/// What one session costs, measured with one user.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Bound {
    /// Sessions it was measured over.
    pub(crate) sessions: u64,
    /// Processor seconds of the application per session, its collector and compiler included.
    pub(crate) cpu_s_per_session: f64,
    /// Cores ÷ that.
    pub(crate) sessions_per_s: f64,
    /// What became of the application's core meanwhile.
    pub(crate) app_core: CoreUse,
}

/// Plays `warmup` sessions of a single user who does not think, then `sessions` that are measured,
/// straight at the shop. Between the pages of these the user `thinks`: without a pause a page finds
/// the caches as the one before has left them, and is the cheaper.
pub(crate) fn measure(
    common: &Common,
    folder: &Path,
    shop: &OpenShop,
    scale: f64,
    warmup: u32,
    sessions: u32,
    thinks: Thinks,
) -> Result<Bound> {
    let play = |name: &str, sessions, thinks| {
        let journey = Journey::single_user(sessions, scale, thinks);
        let crowd = Crowd {
            suimon: &common.suimon,
            name,
            folder,
            core: common.load_core,
            journey: journey.toml(),
            to: shop.address,
            warmup: Duration::ZERO,
            measure: None,
        };
        crowd.play()
    };
    if warmup > 0 {
        play("warm-up", warmup, Thinks::No)?;
    }
    let (cpu, core) = (process_time(shop.process.pid())?, CoreTimes::now(common.app_core)?);
    let report = play("single-user", sessions, thinks)?;
    let cpu = process_time(shop.process.pid())?.saturating_sub(cpu).as_secs_f64();
    let app_core = core.until(&CoreTimes::now(common.app_core)?);
    if report.sessions_completed == 0 || report.mid_session_failures > 0 {
        return failed("a single user cannot complete sessions at the shop; the bound cannot be measured");
    }
    let cpu_s_per_session = cpu / report.sessions_completed as f64;
    Ok(Bound {
        sessions: report.sessions_completed,
        cpu_s_per_session,
        sessions_per_s: CORES / cpu_s_per_session,
        app_core,
    })
}

//! The bound: at most cores ÷ processor seconds per session, in sessions per second.

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
    /// Processor seconds of the application per session, including its collector and compiler.
    pub(crate) cpu_s_per_session: f64,
    /// Cores ÷ that.
    pub(crate) sessions_per_s: f64,
    /// How the application's core was used meanwhile.
    pub(crate) app_core: CoreUse,
}

/// Plays `warmup` sessions of a single user without think time, then `sessions` that are measured,
/// directly at the shop. In the measured sessions the user `thinks` between pages: without a pause
/// a page finds warm caches, and costs less.
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

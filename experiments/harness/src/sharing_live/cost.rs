//! What sharing costs one gateway: processor time while nobody comes, and per request at two rates.

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use suimon_statistics::median;

use super::parts::{Application, Engine};
use super::{PAGES, Times, journey, settings, start};
use crate::claims::Claim;
use crate::common::Common;
use crate::cpu::threads_time;
use crate::crowd::Crowd;
use crate::gateways::Gateway;
use crate::trouble::{Result, Trouble};

/// The application here: 1600 pages per second, so that both rates are well below what it can do.
const SLOTS: u32 = 8;
const SERVICE: Duration = Duration::from_millis(5);
/// Requests per second: so few that the exchanges weigh most, and so many that processor time matters.
const LOW_PER_S: f64 = 40.0;
const HIGH_PER_S: f64 = 600.0;
/// Processor time per request of a gateway that shares, at the high rate, as a multiple of one alone.
const RATIO_MAX: f64 = 1.05;
/// What is served must be this share of the rate, or it is not the rate that was measured.
const SERVED_MIN: f64 = 0.95;

/// Of one gateway, in one round.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Cost {
    shares: bool,
    /// Processor seconds per second while nobody comes.
    idle: f64,
    low: AtRate,
    high: AtRate,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct AtRate {
    /// Requests served per second.
    served_per_s: f64,
    /// Processor seconds per request.
    cpu_s: f64,
}

/// What was spent and served until a moment.
struct Until {
    at: Instant,
    cpu: Duration,
    served: u64,
}

impl Until {
    fn now(pid: u32, app: &Application) -> Result<Until> {
        Ok(Until { at: Instant::now(), cpu: threads_time(pid)?, served: app.served() })
    }

    /// Returns seconds, processor seconds and requests from here until `later`.
    fn until(&self, later: &Until) -> (f64, f64, f64) {
        let took = later.at.duration_since(self.at).as_secs_f64();
        let spent = later.cpu.saturating_sub(self.cpu).as_secs_f64();
        (took, spent, later.served.saturating_sub(self.served) as f64)
    }
}

/// Measures one gateway, first without visitors, then at both rates.
pub(super) fn measure(common: &Common, times: Times, shares: bool) -> Result<Cost> {
    let app = Application::start(SLOTS, SERVICE)?;
    let engine = Engine::start(common, None)?;
    let url = format!("redis://127.0.0.1:{}", engine.port);
    let settings = settings(common, shares.then_some(url.as_str()), 1);
    let gateway = start(common, &app, "gateway-cost", &settings)?;
    let pid = gateway.pid().ok_or_else(|| Trouble::Failed("the gateway has no process".to_string()))?;
    let before = Until::now(pid, &app)?;
    thread::sleep(Duration::from_secs(times.idle));
    let (took, spent, _) = before.until(&Until::now(pid, &app)?);
    let at = |per_s| at_rate(common, times, &app, (&gateway, pid), per_s);
    // In this order: a gateway that has learned the low rate admits no twentyfold of it at once.
    let high = at(HIGH_PER_S)?;
    Ok(Cost { shares, idle: spent / took, low: at(LOW_PER_S)?, high })
}

fn at_rate(
    common: &Common,
    times: Times,
    app: &Application,
    (gateway, pid): (&Gateway, u32),
    per_s: f64,
) -> Result<AtRate> {
    let (warm_up, measured) = (Duration::from_secs(times.cost), Duration::from_secs(times.cost));
    let lasts = (warm_up + measured).as_secs();
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd-cost",
        folder: &common.scratch,
        core: common.load_core,
        journey: journey(common, 0, (per_s / f64::from(PAGES), "even"), lasts),
        to: gateway.address,
        warmup: warm_up,
        measure: Some(measured),
    };
    let playing = crowd.start()?;
    thread::sleep(playing.measuring_from().saturating_duration_since(Instant::now()));
    let before = Until::now(pid, app)?;
    thread::sleep(measured);
    let (took, spent, served) = before.until(&Until::now(pid, app)?);
    playing.finish(|_| Ok(()))?;
    Ok(AtRate { served_per_s: served / took, cpu_s: spent / served.max(1.0) })
}

/// Returns the median over the rounds of those that share, or do not.
fn middle(costs: &[Cost], shares: bool, of: impl Fn(&Cost) -> f64) -> f64 {
    median(&costs.iter().filter(|cost| cost.shares == shares).map(of).collect::<Vec<f64>>())
}

/// Returns what alone and sharing cost, in the middle of the rounds.
fn both(costs: &[Cost], of: impl Fn(&Cost) -> f64) -> (f64, f64) {
    (middle(costs, false, &of), middle(costs, true, &of))
}

pub(super) fn judge(costs: &[Cost]) -> Vec<Claim> {
    let (alone, shared) = both(costs, |cost| cost.high.cpu_s);
    let ratio = shared / alone;
    let fewest = costs
        .iter()
        .flat_map(|cost| [cost.low.served_per_s / LOW_PER_S, cost.high.served_per_s / HIGH_PER_S])
        .fold(f64::INFINITY, f64::min);
    vec![
        Claim::new(
            format!(
                "processor time per request at {HIGH_PER_S} requests per second: sharing {ratio:.3} of alone, at most {RATIO_MAX}"
            ),
            ratio <= RATIO_MAX,
        ),
        Claim::new(
            format!("both rates were served: {fewest:.3} of the rate at worst, at least {SERVED_MIN}"),
            fewest >= SERVED_MIN,
        ),
    ]
}

pub(super) fn table(costs: &[Cost]) -> String {
    let mut out = "| processor time of one gateway | alone | sharing | ratio | ratios, round by round |\n|---|---|---|---|---|\n".to_string();
    let mut row = |what: String, unit: (f64, &str), of: fn(&Cost) -> f64| {
        let (alone, shared) = both(costs, of);
        let (scale, unit) = unit;
        let of_those = |shares: bool| costs.iter().filter(move |cost| cost.shares == shares);
        let rounds: Vec<String> = of_those(false)
            .zip(of_those(true))
            .map(|(alone, shared)| format!("{:.3}", of(shared) / of(alone)))
            .collect();
        // Writing into a String cannot fail.
        let _ = writeln!(
            out,
            "| {what} | {:.2} {unit} | {:.2} {unit} | {:.3} | {} |",
            alone * scale,
            shared * scale,
            shared / alone,
            rounds.join(", ")
        );
    };
    row("per second, nobody comes".to_string(), (1e3, "ms"), |cost| cost.idle);
    row(format!("per request, at {LOW_PER_S} per second"), (1e6, "µs"), |cost| cost.low.cpu_s);
    row(format!("per request, at {HIGH_PER_S} per second"), (1e6, "µs"), |cost| cost.high.cpu_s);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(shares: bool, high_s: f64, served_per_s: f64) -> Cost {
        let low = AtRate { served_per_s: LOW_PER_S, cpu_s: 2.0 * high_s };
        Cost { shares, idle: 0.001, low, high: AtRate { served_per_s, cpu_s: high_s } }
    }

    #[test]
    fn the_ratio_is_that_of_medians_and_says_nothing_about_another_rate() {
        let holds = |costs: &[Cost]| judge(costs).iter().map(|claim| claim.holds).collect::<Vec<_>>();
        let alone = [100.0, 101.0, 180.0].map(|cpu| cost(false, cpu, HIGH_PER_S));
        let sharing = |cpu: f64, served| [0.0, 1.0, 90.0].map(|more| cost(true, cpu + more, served));
        assert_eq!(holds(&[&alone[..], &sharing(104.0, HIGH_PER_S)].concat()), [true, true]);
        assert_eq!(holds(&[&alone[..], &sharing(108.0, HIGH_PER_S)].concat()), [false, true]);
        assert_eq!(holds(&[&alone[..], &sharing(104.0, 0.9 * HIGH_PER_S)].concat()), [true, false]);
    }
}

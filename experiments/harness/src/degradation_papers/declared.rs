//! One declaration on four systems: how much the heavy job is slowed relative to the light one,
//! under the law that splits the host's work, and without it.

use std::fmt::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use suimon_chart::{Axis, Hue, Plot, Series};
use suimon_control::{DegradationMode, ServiceWish};
use suimon_gate::{RouteMode, ServiceParams, Services};
use suimon_model::Duration;
use suimon_sim::{Laws, Scenario};
use suimon_statistics::median;

use super::systems::{Setting, System};
use super::{LIGHT, PAUSING, row};
use crate::claims::Claim;
use crate::figures::{self, Panel};
use crate::parallel;
use crate::trouble::{Result, Trouble};

const HEIGHT: f64 = 320.0;
/// The heavy one is to be slowed so many times as much as the light one.
const WISHES: [f64; 4] = [0.5, 1.0, 2.0, 4.0];
/// Seconds until the law has settled, which do not count, and seconds that do.
const SETTLE_S: f64 = 30.0;
const COUNT_S: f64 = 300.0;
/// How far the reached ratio may be from the wish.
const OFF_MAX: f64 = 0.1;

/// What came of a wish on a system.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Declared {
    system: System,
    /// None: nothing is declared, and nobody is held back.
    wish: Option<f64>,
    /// By seed.
    outcomes: Vec<Outcome>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Outcome {
    /// Response time ÷ processor time alone, of the light and of the heavy job.
    light_slowed: f64,
    heavy_slowed: f64,
    light_per_s: f64,
    heavy_per_s: f64,
}

impl Declared {
    fn ratios(&self) -> Vec<f64> {
        self.outcomes.iter().map(|outcome| outcome.heavy_slowed / outcome.light_slowed).collect()
    }

    fn middle(&self, of: fn(&Outcome) -> f64) -> f64 {
        median(&self.outcomes.iter().map(of).collect::<Vec<_>>())
    }
}

/// Plays every wish on every system. `scale` divides the time.
pub(super) fn play(scale: f64, seeds: u64) -> Result<Vec<Declared>> {
    let laws = Laws::parse("set+open").map_err(Trouble::Usage)?;
    let wishes = [None].into_iter().chain(WISHES.map(Some));
    let settings: Vec<_> = wishes.flat_map(|wish| System::ALL.map(|system| (system, wish))).collect();
    let scenarios =
        settings.iter().map(|(system, wish)| scenario(*system, *wish, scale)).collect::<Result<Vec<_>>>()?;
    let runs: Vec<_> =
        scenarios.iter().flat_map(|scenario| (1..=seeds).map(move |seed| (scenario, seed))).collect();
    let outcomes = parallel::map(&runs, |(scenario, seed)| {
        let result = suimon_sim::run(scenario, *seed, &laws)?;
        let [light, heavy] = result.services.between(SETTLE_S / scale, (SETTLE_S + COUNT_S) / scale)[..]
        else {
            unreachable!("two services are declared")
        };
        Ok(Outcome {
            light_slowed: light.slowdown,
            heavy_slowed: heavy.slowdown,
            light_per_s: light.per_s,
            heavy_per_s: heavy.per_s,
        })
    });
    let outcomes = outcomes
        .into_iter()
        .collect::<std::result::Result<Vec<_>, suimon_sim::Violation>>()
        .map_err(|violation| Trouble::Failed(violation.to_string()))?;
    let declared = |((system, wish), outcomes): ((System, Option<f64>), &[Outcome])| Declared {
        system,
        wish,
        outcomes: outcomes.to_vec(),
    };
    Ok(settings.into_iter().zip(outcomes.chunks(seeds as usize)).map(declared).collect())
}

/// Returns the system's file with two services, and no limit on any route.
fn scenario(system: System, wish: Option<f64>, scale: f64) -> Result<Scenario> {
    let mut scenario = Setting::new(system, LIGHT, PAUSING, 0).scenario()?;
    scenario.measure = Duration::from_secs_f64((SETTLE_S + COUNT_S) / scale);
    let service = |name: &str, place: usize, slowdown: f64| {
        let route = scenario.steps[place][0];
        let alone = Some(scenario.routes[route.index()].cost.cpu);
        let wish = ServiceWish { slowdown, alone, ..ServiceWish::default() };
        ServiceParams { name: name.into(), routes: vec![route], wish, ..ServiceParams::default() }
    };
    scenario.gate.services = Services {
        mode: if wish.is_some() { DegradationMode::Slowdown } else { DegradationMode::Off },
        services: vec![service("light", 0, 1.0), service("heavy", 1, wish.unwrap_or(1.0))],
    };
    scenario.routes.iter_mut().for_each(|route| route.mode = RouteMode::Observe);
    Ok(scenario)
}

/// Draws what was reached against what was wished.
pub(super) fn draw(declared: &[Declared], path: &Path) -> Result<()> {
    let mut plot = Plot::new("Slowdown of the heavy job ÷ slowdown of the light one")
        .describe("By operating system: reached under a wish, and without one (dashed, level).")
        .x(Axis::new("wished").logarithmic().ticks(WISHES.to_vec()))
        .y(Axis::new("reached").logarithmic());
    for system in System::ALL {
        let own = || declared.iter().filter(|it| it.system == system);
        let without = own().find(|it| it.wish.is_none()).map(|it| median(&it.ratios()));
        let reached = own().filter_map(|it| Some((it.wish?, median(&it.ratios())))).collect();
        plot = plot.series(Series::dotted(system.words(), system.hue(), reached));
        if let Some(without) = without {
            let level = WISHES.map(|wish| (wish, without)).to_vec();
            plot = plot.series(Series::line("", system.hue(), level).dashed());
        }
    }
    let wished = WISHES.map(|wish| (wish, wish)).to_vec();
    figures::write(path, &[Panel::Lines(plot.series(Series::line("as wished", Hue::Grey, wished)), HEIGHT)])
}

pub(super) fn table(declared: &[Declared]) -> String {
    let mut out = format!(
        "\n## One declaration: 30 clients for A beside {PAUSING} for B, five minutes after half a minute\n\nDeclared: how many times as much as A B may be slowed, and what each takes alone. Routes have no limits. Median\nratio of the slowdowns, the least and the most of the seeds in brackets, and what both do.\n\n| system | wished | reached | A/s | B/s |\n|---|--:|--:|--:|--:|\n"
    );
    for system in System::ALL {
        for (place, own) in declared.iter().filter(|it| it.system == system).enumerate() {
            let ratios = own.ratios();
            let (least, most) =
                ratios.iter().fold((f64::MAX, f64::MIN), |(least, most), it| (least.min(*it), most.max(*it)));
            row(
                &mut out,
                &[
                    if place == 0 { system.words().to_owned() } else { String::new() },
                    own.wish.map_or("nothing".to_owned(), |wish| wish.to_string()),
                    format!("{:.3} ({least:.3}–{most:.3})", median(&ratios)),
                    format!("{:.0}", own.middle(|it| it.light_per_s)),
                    format!("{:.2}", own.middle(|it| it.heavy_per_s)),
                ],
            );
        }
    }
    out
}

/// Returns what was to hold, a line for each wish.
pub(super) fn claims(declared: &[Declared]) -> Vec<Claim> {
    let claim = |wish: f64| {
        let own = declared.iter().filter(|it| it.wish == Some(wish));
        let mut told = String::new();
        let mut holds = true;
        for it in own {
            let reached = median(&it.ratios());
            holds &= (reached / wish - 1.0).abs() <= OFF_MAX;
            let _ = write!(told, " {} {reached:.2},", it.system.words());
        }
        let told = told.trim_end_matches(',');
        Claim::new(
            format!(
                "a wished ratio of {wish} is reached within 10 % on the models of all four systems:{told}"
            ),
            holds,
        )
    };
    WISHES.map(claim).to_vec()
}

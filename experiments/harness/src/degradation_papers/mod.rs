//! `degradation-papers`: what becomes of a light job beside heavy ones on four operating systems,
//! what pauses in the heavy one do for it, and what one declared wish does; simulated, beside the
//! paper's own numbers.

mod declared;
mod draw;
mod systems;
mod tell;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_sim::{Laws, RunResult};
use suimon_statistics::median;

use crate::common::folder;
use crate::parallel;
use crate::trouble::{Result, Trouble, While};
use crate::{claims, data};
use declared::Declared;
use systems::{Place, Setting, System};

const NAME: &str = "degradation-papers";
/// Clients that ask for A, beside whatever of B.
const LIGHT: u32 = 30;
/// Clients that ask for B, in figures 1 to 4, ...
const HEAVY: [u32; 5] = [1, 5, 10, 20, 40];
/// ... and in figures 5 to 8, where each job B pauses for so many seconds.
const PAUSING: u32 = 20;
const PAUSES: [f64; 5] = [2.0, 4.0, 6.0, 8.0, 10.0];
const SEEDS: u64 = 5;

/// What becomes of a light job when heavy ones come, by operating system, and what do pauses in the
/// heavy ones do for it?
///
/// Figures 1 to 8 and tables 1 to 3 of the second paper, played in the simulator: thirty clients
/// that ask for a short computation beside one to forty that parse an XML file, on a model of four
/// systems that differ in what a job costs and in how the way in suffers from crowding. Then what
/// that paper wished for: one declared ratio of slowdowns, held on all four.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Folder for data and figures [default: the experiment's own; with --quick one under target/]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Draws figures and table from the data that are there.
    #[arg(long)]
    redraw: bool,
    /// A tenth of the time and one seed, to see whether everything runs.
    #[arg(long)]
    quick: bool,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    seeds: u64,
    cells: Vec<Cell>,
    declared: Vec<Declared>,
}

/// What came of one setting.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    setting: Setting,
    /// Jobs A and B done, by seed.
    light: Vec<u64>,
    heavy: Vec<u64>,
    /// From arrival to the start of work, all jobs of all seeds: median and maximum, milliseconds.
    accept_ms: Option<(f64, f64)>,
    /// From request to answer, jobs A of all seeds: median and maximum, milliseconds.
    answer_ms: Option<(f64, f64)>,
}

impl Cell {
    fn light(&self) -> f64 {
        middle(&self.light)
    }

    fn heavy(&self) -> f64 {
        middle(&self.heavy)
    }
}

impl Data {
    /// Returns what was played with `setting`.
    fn cell(&self, setting: Setting) -> &Cell {
        let found = self.cells.iter().find(|cell| cell.setting == setting);
        found.expect("everything that is told was played")
    }

    /// Returns the jobs A and B done, relative to those without a pause, by seed.
    fn relative(&self, paused: Setting) -> (Vec<f64>, Vec<f64>) {
        let (paused, plain) = (
            self.cell(paused),
            self.cell(Setting {
                pause_s: 0.0,
                ..Setting::new(paused.system, LIGHT, PAUSING, paused.seconds)
            }),
        );
        (ratios(&paused.light, &plain.light), ratios(&paused.heavy, &plain.heavy))
    }
}

/// Writes a row of a table.
fn row(out: &mut String, cells: &[String]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn middle(counts: &[u64]) -> f64 {
    median(&counts.iter().map(|count| *count as f64).collect::<Vec<f64>>())
}

fn ratios(of: &[u64], to: &[u64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| *of as f64 / (*to as f64).max(1.0)).collect()
}

/// Seconds of each kind of measurement: the paper's, or a tenth.
#[derive(Clone, Copy)]
struct Times {
    figures: u32,
    table_1: u32,
    light_alone: u32,
    heavy_alone: u32,
}

impl Times {
    const PAPER: Times = Times { figures: 120, table_1: 180, light_alone: 60, heavy_alone: 240 };
    const QUICK: Times = Times { figures: 12, table_1: 18, light_alone: 6, heavy_alone: 24 };

    /// Returns the times that `data` was made with.
    fn of(data: &Data) -> Times {
        let quick = data.cells.iter().all(|cell| cell.setting.seconds < Times::PAPER.light_alone);
        if quick { Times::QUICK } else { Times::PAPER }
    }
}

/// Plays all of it, and says whether the model does what it is to do.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let out = folder(NAME, options.out.clone(), options.quick)?;
    fs::create_dir_all(out.join("data")).trouble(out.display())?;
    let path = out.join("data/result.json");
    let data = data::measured(&path, NAME, options.redraw, || {
        let (times, seeds) = if options.quick { (Times::QUICK, 1) } else { (Times::PAPER, SEEDS) };
        let declared = declared::play(if options.quick { 10.0 } else { 1.0 }, seeds)?;
        Ok(Data { seeds, cells: play(times, seeds)?, declared })
    })?;
    draw::company(&data, &out.join("figure.svg"))?;
    draw::pauses(&data, &out.join("pauses.svg"))?;
    declared::draw(&data.declared, &out.join("declared.svg"))?;
    data::write(&out.join("table.md"), &tell::text(&data))?;
    let claims = tell::claims(&data);
    print!("{}{}", tell::tables(&data), claims::text(&claims));
    Ok(options.quick || claims::all_hold(&claims))
}

/// Returns every setting of the paper.
fn settings(times: Times) -> Vec<Setting> {
    let of = |system: System| {
        let figures = move |heavy| Setting::new(system, LIGHT, heavy, times.figures);
        let pauses = [Place::Around, Place::Inside]
            .into_iter()
            .flat_map(move |place| PAUSES.map(|pause_s| Setting { place, pause_s, ..figures(PAUSING) }));
        let tables = [
            Setting::new(system, LIGHT, 40, times.table_1),
            Setting::new(system, 80, 0, times.light_alone),
            Setting::new(system, 0, 80, times.heavy_alone),
            Setting::new(system, LIGHT, 0, times.light_alone),
            Setting::new(system, LIGHT, 80, times.figures),
        ];
        HEAVY.map(figures).into_iter().chain(pauses).chain(tables)
    };
    System::ALL.into_iter().flat_map(of).collect()
}

fn play(times: Times, seeds: u64) -> Result<Vec<Cell>> {
    let laws = Laws::parse("none").map_err(Trouble::Usage)?;
    let settings = settings(times);
    let scenarios = settings.iter().map(|setting| setting.scenario()).collect::<Result<Vec<_>>>()?;
    let runs: Vec<_> =
        scenarios.iter().flat_map(|scenario| (1..=seeds).map(move |seed| (scenario, seed))).collect();
    let results = parallel::map(&runs, |(scenario, seed)| suimon_sim::run(scenario, *seed, &laws));
    let results = results
        .into_iter()
        .collect::<std::result::Result<Vec<RunResult>, _>>()
        .map_err(|violation| Trouble::Failed(violation.to_string()))?;
    let cells = settings.into_iter().zip(results.chunks(seeds as usize));
    Ok(cells.map(|(setting, results)| cell(setting, results)).collect())
}

fn cell(setting: Setting, results: &[RunResult]) -> Cell {
    let done = |kind: usize| results.iter().map(|result| result.steps[kind][0].time.count()).collect();
    let mut accept = suimon_statistics::Histogram::default();
    let mut answer = accept.clone();
    for result in results {
        accept.merge(&result.accept_path);
        answer.merge(&result.steps[0][0].time);
    }
    let told = |times: &suimon_statistics::Histogram| {
        let median = times.quantile_s(0.5)?;
        Some((1e3 * median, 1e3 * times.max()?.as_secs_f64()))
    };
    Cell { setting, light: done(0), heavy: done(1), accept_ms: told(&accept), answer_ms: told(&answer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_run_tells_and_draws_all_systems() {
        let place = tempfile::tempdir().unwrap();
        let options = Options { out: Some(place.path().to_path_buf()), redraw: false, quick: true };
        assert!(run(&options).unwrap());
        let table = fs::read_to_string(place.path().join("table.md")).unwrap();
        for system in System::ALL {
            assert!(table.contains(system.words()), "{table}");
            for figure in ["figure.svg", "pauses.svg", "declared.svg"] {
                let drawn = fs::read_to_string(place.path().join(figure)).unwrap();
                assert!(drawn.contains(system.words()), "{figure}");
            }
        }
    }

    #[test]
    fn what_is_committed_tells_what_its_data_say_and_holds() {
        let own = folder(NAME, None, false).unwrap();
        let data: Data = data::load(&own.join("data/result.json")).unwrap().unwrap();
        let table = fs::read_to_string(own.join("table.md")).unwrap();
        assert!(table == tell::text(&data), "write it anew: ./experiments/run {NAME} --redraw");
        assert!(claims::all_hold(&tell::claims(&data)));
    }
}

//! `slow-clients`: downloads, uploads, long polls and event streams over slow lines, and one
//! visitor who requests pages.
//!
//! Each cell is a fresh application and, with Suimon, a fresh gateway that is told only the
//! application's address.

mod load;

pub(crate) use load::{LoadOptions, run as run_load};

use std::env;
use std::fs;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Axis, Hue, Plot, Series};
use suimon_process::{Program, listening_address};
use suimon_statistics::quantile;
use suimon_statistics::table::numbers;

use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions, experiments};
use crate::cpu::{CoreTimes, CoreUse};
use crate::data;
use crate::figures::{self, Panel};
use crate::gateways::{Control, find, start_suimon};
use crate::machine::Machine;
use crate::memory::memory;
use crate::trouble::{Result, While};
use load::Load;

const NAME: &str = "slow-clients";
/// How long the application may take to listen.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// The most that Suimon may add to the 99th percentile of the page times, milliseconds.
const ADDED_MS_MAX: f64 = 10.0;
/// The longest time until the clients report their results.
const TELL_PATIENCE: Duration = Duration::from_secs(20);

/// Do clients with slow lines shut the gate for other visitors?
///
/// An application that is never busy, on a core of its own. 100 clients download a file of 20 MB
/// each at 100 KB/s, 50 wait for answers of 30 s, 50 listen to events, 20 send 50 MB at 1 MB/s, all
/// from the first moment of a gateway that knows nothing; and a visitor requests a page 20 times
/// per second. It holds if the 99th percentile of the pages is within 10 ms of that without Suimon,
/// and no client is refused or cut off.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run slow-clients                 about 7 minutes")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Length of a round, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Rounds without Suimon and as many with it, in turn.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measure nothing: judge and draw earlier data.
    #[arg(long)]
    redraw: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    cells: Vec<Cell>,
    claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    control: Control,
    load: Load,
    /// Suimon's memory at the end, MB.
    resident_mb: Option<f64>,
    app_core: CoreUse,
    load_core: CoreUse,
}

impl Cell {
    fn is_suimon(&self) -> bool {
        self.control == Control::Suimon
    }
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let mut data = data::measured(&path, NAME, options.redraw, || measure(&common, options))?;
    data.claims = judge(&data.cells);
    data::save(&path, &data)?;
    draw(&common, &data)?;
    print!("{}{}", tables(&data), claims::text(&data.claims));
    Ok(common.quick || claims::all_hold(&data.claims))
}

fn measure(common: &Common, options: &Options) -> Result<Data> {
    let mut cells = Vec::new();
    for round in 0..options.rounds {
        for control in [Control::None, Control::Suimon] {
            let cell = cell(common, options, control, round)?;
            let pages = &cell.load.pages_ms;
            eprintln!(
                "{control:?}: pages {:.1} ms in the median, {:.1} ms at the 99th percentile, {} failed",
                quantile(pages, 0.5),
                quantile(pages, 0.99),
                cell.load.pages_failed
            );
            cells.push(cell);
        }
    }
    Ok(Data { experiment: NAME.to_string(), machine: common.machine.clone(), cells, claims: Vec::new() })
}

fn cell(common: &Common, options: &Options, control: Control, round: u32) -> Result<Cell> {
    let folder = common.scratch.join(format!("{control:?}-{round}").to_lowercase());
    fs::create_dir_all(&folder).trouble(folder.display())?;
    let script = experiments().join(NAME).join("app.js");
    let mut app =
        Program::new("app", find("node")?).cores(&[common.app_core]).arg(script.display()).start(&folder)?;
    let address =
        app.wait_for("line with its address", START_PATIENCE, |app| listening_address(&app.said()))?;
    let gateway = match control {
        // Without any settings, like a new user's.
        Control::Suimon => start_suimon(common, &folder, address, None, common.load_core)?,
        _ => control.start(common, &folder, address, 60.0, 1.0)?,
    };
    let seconds = if common.quick { 6 } else { options.seconds };
    let (app_core, load_core) = (CoreTimes::now(common.app_core)?, CoreTimes::now(common.load_core)?);
    let own = env::current_exe().trouble("this program cannot find itself")?;
    let mut clients = Program::new("clients", own)
        .cores(&[common.load_core])
        .args(["slow-clients-load".to_string(), "--to".to_string(), gateway.address.to_string()])
        .args(["--seconds".to_string(), seconds.to_string()])
        .start(&folder)?;
    clients.wait(Duration::from_secs(seconds) + TELL_PATIENCE)?;
    let load = serde_json::from_str(clients.said().trim()).trouble("what the clients say")?;
    let resident_mb = gateway.pid().map(memory).transpose()?.map(|memory| memory.resident_kb as f64 / 1024.0);
    let app_core = app_core.until(&CoreTimes::now(common.app_core)?);
    let load_core = load_core.until(&CoreTimes::now(common.load_core)?);
    Ok(Cell { control, load, resident_mb, app_core, load_core })
}

/// The pages of all rounds with Suimon, or of all without.
fn pages(cells: &[Cell], suimon: bool) -> Vec<f64> {
    let those = cells.iter().filter(|cell| cell.is_suimon() == suimon);
    those.flat_map(|cell| cell.load.pages_ms.iter().copied()).collect()
}

fn judge(cells: &[Cell]) -> Vec<Claim> {
    let p99 = |suimon| quantile(&pages(cells, suimon), 0.99);
    let added = p99(true) - p99(false);
    let ours = || cells.iter().filter(|cell| cell.is_suimon());
    let pages_failed: u64 = ours().map(|cell| cell.load.pages_failed).sum();
    let slow_failed: u64 = ours().flat_map(|cell| cell.load.slow.values()).map(|slow| slow.failed).sum();
    vec![
        Claim::new(
            format!(
                "the 99th percentile of the pages is at most {ADDED_MS_MAX} ms above that without ({added:+.1} ms)"
            ),
            added <= ADDED_MS_MAX,
        ),
        Claim::new(format!("the visitor gets every page ({pages_failed} failed)"), pages_failed == 0),
        Claim::new(format!("nobody slow is refused or cut off ({slow_failed})"), slow_failed == 0),
    ]
}

fn tables(data: &Data) -> String {
    let pages = |cell: &Cell| {
        let at = |share| format!("{:.1}", quantile(&cell.load.pages_ms, share));
        vec![
            name(cell).to_string(),
            cell.load.pages_ms.len().to_string(),
            cell.load.pages_failed.to_string(),
            at(0.5),
            at(0.99),
            at(1.0),
            cell.resident_mb.map_or(String::new(), |mb| format!("{mb:.0}")),
        ]
    };
    let headings = ["in front", "pages", "failed", "p50 ms", "p99 ms", "max ms", "memory MB"];
    let first = numbers(&headings, &data.cells.iter().map(pages).collect::<Vec<_>>());
    let slow = data.cells.iter().flat_map(|cell| {
        cell.load.slow.iter().map(move |(client, slow)| {
            vec![
                name(cell).to_string(),
                format!("{client:?}"),
                slow.begun.to_string(),
                slow.answered.to_string(),
                slow.failed.to_string(),
                format!("{:.0}", slow.bytes as f64 / 1e6),
                format!("{:.1}", slow.first_byte_s_max),
            ]
        })
    });
    let headings = ["in front", "client", "begun", "answered", "failed", "MB", "first byte s, max"];
    format!("{first}\n{}", numbers(&headings, &slow.collect::<Vec<_>>()))
}

fn name(cell: &Cell) -> &'static str {
    if cell.is_suimon() { "Suimon" } else { "none" }
}

fn draw(common: &Common, data: &Data) -> Result<()> {
    let mut plot = Plot::new("Pages beside 220 slow clients, from a cold start")
        .x(Axis::new("share of the pages that were quicker, percent"))
        .y(Axis::new("milliseconds").from(0.0))
        .describe("Time for a page at each percentile, with Suimon and without, beside slow downloads, uploads, long polls and streams.");
    for (suimon, label, hue) in [(true, "Suimon", Hue::Green), (false, "none", Hue::Grey)] {
        let pages = pages(&data.cells, suimon);
        let points =
            (0..=99).map(|percent| (f64::from(percent), quantile(&pages, f64::from(percent) / 100.0)));
        plot = plot.series(Series::line(label, hue, points.collect()));
    }
    figures::write(&common.out.join("figure.svg"), &[Panel::Lines(plot, 280.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(control: Control, page_ms: f64, pages_failed: u64) -> Cell {
        let idle = CoreUse { busy: 0.0, stolen: 0.0 };
        let load = Load { pages_ms: vec![page_ms; 10], pages_failed, ..Load::default() };
        Cell { control, load, resident_mb: None, app_core: idle, load_core: idle }
    }

    #[test]
    fn pages_are_judged_against_those_without() {
        let holds = |ours: Cell| {
            let cells = [cell(Control::None, 3.0, 0), ours];
            judge(&cells).iter().map(|claim| claim.holds).collect::<Vec<_>>()
        };
        assert_eq!(holds(cell(Control::Suimon, 12.0, 0)), [true, true, true]);
        assert_eq!(holds(cell(Control::Suimon, 14.0, 1)), [false, false, true]);
    }
}

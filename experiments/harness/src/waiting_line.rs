//! `waiting-line`: how much of the admission rate a waiting room's rule uses, how bursty it is and
//! in what order people are admitted; simulated.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Bars, Hue};
use suimon_rivals::waiting::{self, Crowd, Policy};
use suimon_statistics::median;

use crate::claims::{self, Claim};
use crate::common::folder;
use crate::data;
use crate::figures::{self, Panel};
use crate::parallel;
use crate::trouble::{Result, While};

const NAME: &str = "waiting-line";
const SEEDS: u64 = 3;
/// The claims on the gateway's rule in every column: the least share of the admission rate that is
/// used, and the largest excess in the worst ten seconds.
const USED_MIN: f64 = 0.97;
const WORST_MAX: f64 = 1.10;
/// A bucket of one second's worth adds exactly a tenth to ten seconds; the rest is floating-point
/// rounding.
const ROUNDING: f64 = 1e-9;
/// The largest median error of the first predicted wait.
const BIAS_MAX: f64 = 0.15;

/// How much of the admission rate does the rule of a waiting room use, how bursty is it, and in
/// what order are people admitted?
///
/// A hundred thousand people, half of them within a minute, at fifty admissions per second; some
/// take a number and never come back, some give up, some are away for a while. The gateway's rule
/// is its own code; the others are modelled after their documentation. And a million people in the
/// gateway's line.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Folder for data and figure [default: the experiment's own; with --quick one under target/]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Draws figure and table from existing data.
    #[arg(long)]
    redraw: bool,
    /// A hundredth of the people, to see whether everything runs.
    #[arg(long)]
    quick: bool,
}

/// The crowd, in words.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Column {
    words: &'static str,
    hue: Hue,
    /// Clients who take a number and never come back, as a multiple of the people.
    dead: f64,
    patience_s: f64,
}

const COLUMNS: [Column; 3] = [
    Column { words: "nobody dead, 60 min of patience", hue: Hue::Blue, dead: 0.0, patience_s: 3600.0 },
    Column { words: "a quarter as many dead, 20 min", hue: Hue::Amber, dead: 0.25, patience_s: 1200.0 },
    Column { words: "as many dead, 20 min", hue: Hue::Vermilion, dead: 1.0, patience_s: 1200.0 },
];

/// The results.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    people: u32,
    seeds: u64,
    cells: Vec<Cell>,
    million: Cell,
}

/// The results of one rule with one crowd: medians over the seeds; for the worst ten seconds the
/// maximum.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    policy: String,
    column: String,
    people: u32,
    used: f64,
    worst_ten_seconds: f64,
    overtaken_p95_s: f64,
    bias: Option<(f64, f64)>,
    requests_each: f64,
}

/// Plays all runs, and returns whether the claims on the gateway's rule hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let out = folder(NAME, options.out.clone(), options.quick)?;
    fs::create_dir_all(out.join("data")).trouble(out.display())?;
    let path = out.join("data/result.json");
    let data = data::measured(&path, NAME, options.redraw, || {
        Ok(play(if options.quick { 1_000 } else { 100_000 }))
    })?;
    draw(&data, &out.join("figure.svg"))?;
    let claims = claims(&data);
    data::write(&out.join("table.md"), &text(&data))?;
    print!("{}{}", table(&data), claims::text(&claims));
    Ok(options.quick || claims::all_hold(&claims))
}

fn play(people: u32) -> Data {
    let mut crowds = Vec::new();
    for policy in Policy::ALL {
        for column in COLUMNS {
            let crowd = Crowd {
                people,
                dead: (f64::from(people) * column.dead) as u32,
                patience_s: column.patience_s,
                per_second: f64::from(people) / 2000.0,
                ..Crowd::default()
            };
            crowds.push((policy, column.words, crowd));
        }
    }
    let plays = crowds.iter().flat_map(|(policy, words, crowd)| {
        (1..=SEEDS).map(|seed| (*policy, *words, Crowd { seed, ..*crowd }))
    });
    let plays: Vec<(Policy, &str, Crowd)> = plays.collect();
    let results = parallel::map(&plays, |(policy, words, crowd)| {
        eprintln!("  {}: {} people, {words}, seed {}", policy.name(), crowd.people, crowd.seed);
        waiting::play(crowd, *policy)
    });
    let cells = crowds
        .iter()
        .zip(results.chunks(SEEDS as usize))
        .map(|((policy, words, crowd), results)| cell(*policy, words, crowd, results))
        .collect();
    let crowd =
        Crowd { people: 10 * people, per_second: f64::from(people) / 200.0, seed: 1, ..Crowd::default() };
    eprintln!("  {}: {} people", Policy::Ours.name(), crowd.people);
    let result = waiting::play(&crowd, Policy::Ours);
    let million = cell(Policy::Ours, COLUMNS[0].words, &crowd, &[result]);
    Data { people, seeds: SEEDS, cells, million }
}

fn cell(policy: Policy, words: &str, crowd: &Crowd, results: &[waiting::Result]) -> Cell {
    let middle = |of: fn(&waiting::Result) -> f64| median(&results.iter().map(of).collect::<Vec<f64>>());
    let bias = |of: fn((f64, f64)) -> f64| {
        let all: Vec<f64> = results.iter().filter_map(|result| result.bias.map(of)).collect();
        (!all.is_empty()).then(|| median(&all))
    };
    Cell {
        policy: policy.name().to_owned(),
        column: words.to_owned(),
        people: crowd.people,
        used: middle(|result| result.used),
        worst_ten_seconds: results.iter().map(|result| result.worst_ten_seconds).fold(0.0, f64::max),
        overtaken_p95_s: middle(|result| result.overtaken_p95_s),
        bias: bias(|(low, _)| low).zip(bias(|(_, high)| high)),
        requests_each: middle(|result| result.requests as f64) / f64::from(crowd.people),
    }
}

fn claims(data: &Data) -> Vec<Claim> {
    let ours = data.cells.iter().filter(|cell| cell.policy == Policy::Ours.name()).chain([&data.million]);
    let ours: Vec<&Cell> = ours.collect();
    let least = |of: fn(&Cell) -> f64| ours.iter().map(|cell| of(cell)).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&Cell) -> f64| ours.iter().map(|cell| of(cell)).fold(0.0, f64::max);
    let used = least(|cell| cell.used);
    let worst = most(|cell| cell.worst_ten_seconds);
    let off = most(|cell| cell.bias.map_or(f64::INFINITY, |(low, _)| low.abs()));
    let overtaken = most(|cell| cell.overtaken_p95_s);
    vec![
        Claim::new(
            format!("ours uses at least {USED_MIN} of what may begin with every crowd: {used:.3}"),
            used >= USED_MIN,
        ),
        Claim::new(
            format!("in the worst ten seconds at most {WORST_MAX:.2} of what may begin does: {worst:.2}"),
            worst <= WORST_MAX + ROUNDING,
        ),
        Claim::new(
            format!(
                "the time told first is off by at most {:.0} % in the median: {:.0} %",
                100.0 * BIAS_MAX,
                100.0 * off
            ),
            off <= BIAS_MAX,
        ),
        Claim::new(
            format!("95 of 100 are overtaken by at most a second's worth of admissions: {overtaken:.2} s"),
            overtaken <= 1.0,
        ),
    ]
}

fn text(data: &Data) -> String {
    format!(
        "# Rules for a line of people who go away\n\nWritten by `./experiments/run {NAME}` from `data/result.json`. Medians of {} seeds, the worst\nten seconds' maximum.\n\n{}\n## What was to hold\n\n{}",
        data.seeds,
        table(data),
        claims::list(&claims(data))
    )
}

fn table(data: &Data) -> String {
    let mut out = String::from(
        "| rule | people | arrivals | used | worst 10 s | overtaken, s | told too long, % | requests each |\n|---|--:|---|--:|--:|--:|--:|--:|\n",
    );
    for cell in data.cells.iter().chain([&data.million]) {
        let told = match cell.bias {
            Some((low, high)) if low >= high => format!("{:+.0}", 100.0 * low),
            Some((low, high)) => format!("{:+.0} to {:+.0}", 100.0 * low, 100.0 * high),
            None => "nothing told".to_owned(),
        };
        out += &format!(
            "| {} | {} | {} | {:.2} | {:.2} | {:.2} | {told} | {:.1} |\n",
            cell.policy,
            cell.people,
            cell.column,
            cell.used,
            cell.worst_ten_seconds,
            cell.overtaken_p95_s,
            cell.requests_each,
        );
    }
    out
}

fn draw(data: &Data, path: &Path) -> Result<()> {
    let mut panels = Vec::new();
    for (title, unit, of) in [
        (
            "Sessions begun, of those that might have",
            "% of what may begin, until all but a hundredth had",
            (|cell| 100.0 * cell.used) as fn(&Cell) -> f64,
        ),
        ("Sessions begun in the worst ten seconds", "% of what may begin", |cell| {
            100.0 * cell.worst_ten_seconds
        }),
    ] {
        let mut bars = Bars::new(title).describe("Bars by rule and by arrivals.").unit(unit);
        for column in COLUMNS {
            bars = bars.group(column.words, column.hue);
        }
        for cells in data.cells.chunks(COLUMNS.len()) {
            let Some(first) = cells.first() else { continue };
            bars = bars.row(&first.policy, cells.iter().map(of).collect());
        }
        panels.push(Panel::Bars(bars));
    }
    figures::write(path, &panels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_run_tells_and_draws_all_rules() {
        let place = tempfile::tempdir().unwrap();
        let options = Options { out: Some(place.path().to_path_buf()), redraw: false, quick: true };
        assert!(run(&options).unwrap());
        let table = fs::read_to_string(place.path().join("table.md")).unwrap();
        assert!(table.contains("| Suimon | 10000 |") && table.contains("nothing told"), "{table}");
        assert!(fs::read_to_string(place.path().join("figure.svg")).unwrap().contains("Suimon"));
    }

    #[test]
    fn what_is_committed_tells_what_its_data_say() {
        let own = folder(NAME, None, false).unwrap();
        let data: Data = data::load(&own.join("data/result.json")).unwrap().unwrap();
        let table = fs::read_to_string(own.join("table.md")).unwrap();
        assert!(table == text(&data), "write it anew: ./experiments/run {NAME} --redraw");
    }
}

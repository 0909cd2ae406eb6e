//! `workers-papers`: how many resident workers are best, and whether the law finds them; figures 3
//! to 6 of the third paper, simulated.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Axis, Hue, Plot, Rule, Series, Span};
use suimon_control::SizeLawKind;
use suimon_model::Duration;
use suimon_sim::{Laws, PoolSetup, RunResult, Scenario};
use suimon_workload::{Arrivals, Phase, Spacing};

use crate::claims::{self, Claim};
use crate::common::{experiments, folder};
use crate::figures::{self, Panel};
use crate::trouble::{Result, Trouble, While};
use crate::{data, parallel};

const NAME: &str = "workers-papers";
/// Numbers of workers in figures 3, 4 and 6.
const WORKERS: [u32; 11] = [10, 15, 18, 20, 22, 25, 30, 40, 60, 80, 100];
/// The paper's peak: requests per second in its one second, and after it.
const PEAK: f64 = 250.0;
const STEADY: f64 = 100.0;
/// CPU seconds that a process costs under CGI: the paper's gets half as much done.
const CGI_START: f64 = 0.019;
/// Where the laws begin.
const BEGINNINGS: [u32; 2] = [5, 100];
const SEEDS: u64 = 3;
const HEIGHT: f64 = 300.0;
/// Seconds of a bin of figure 6.
const BIN: usize = 10;

/// How many resident workers are best on the third paper's host, and are they found by measuring?
///
/// Figures 3 to 6 of the paper as its text describes them, played in the simulator: mean response
/// and requests handled by number of workers through a peak of 250 in one second, the backlog after
/// it with and without a gate, a process for each request, and the law from 5 and from 100 workers
/// beside the paper's rule of idle workers.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Folder for data and figures [default: the experiment's own; with --quick one under target/]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Draws figures and table from the data that are there.
    #[arg(long)]
    redraw: bool,
    /// A quarter of the time and one seed, to see whether everything runs.
    #[arg(long)]
    quick: bool,
}

/// What came of it; numbers are means of all seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    seeds: u64,
    by_number: Vec<Number>,
    /// Requests that wait for a worker, second by second, with 22 of them.
    backlog_open: Vec<f64>,
    backlog_gated: Vec<f64>,
    /// Mean response of those who are let in then, seconds.
    open_s: f64,
    gated_s: f64,
    courses: Vec<Course>,
}

/// What came of a fixed number of workers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Number {
    workers: u32,
    /// Requests per second under constant demand, and with as many processes under CGI.
    per_s: f64,
    cgi_per_s: f64,
    /// Through the peak and a minute: mean response, and requests handled.
    response_s: f64,
    handled: f64,
}

/// What a law did.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Course {
    name: String,
    from: u32,
    /// In bins of [`BIN`] seconds from the start.
    per_s: Vec<f64>,
    workers: Vec<f64>,
}

impl Data {
    fn best(&self) -> &Number {
        let numbers = self.by_number.iter();
        numbers.max_by(|one, other| one.per_s.total_cmp(&other.per_s)).expect("some were played")
    }

    fn number(&self, workers: u32) -> &Number {
        self.by_number.iter().find(|number| number.workers == workers).expect("it was played")
    }
}

impl Course {
    /// Returns requests per second after the first minute.
    fn after_a_minute(&self) -> f64 {
        let bins = &self.per_s[60 / BIN..];
        bins.iter().sum::<f64>() / bins.len().max(1) as f64
    }
}

/// Plays all of it, and says whether what the paper says holds.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let out = folder(NAME, options.out.clone(), options.quick)?;
    fs::create_dir_all(out.join("data")).trouble(out.display())?;
    let path = out.join("data/result.json");
    let data = data::measured(&path, NAME, options.redraw, || play(options.quick))?;
    draw(&data, &out)?;
    let claims = claims(&data);
    data::write(&out.join("table.md"), &table(&data, &claims))?;
    print!("{}{}", numbers(&data), claims::text(&claims));
    Ok(options.quick || claims::all_hold(&claims))
}

/// What is played: a host, with the laws of its gate.
struct Job {
    scenario: Scenario,
    laws: Laws,
}

fn job(scenario: Scenario, laws: &str) -> Result<Job> {
    Ok(Job { scenario, laws: Laws::parse(laws).map_err(Trouble::Usage)? })
}

fn host(change: impl FnOnce(PoolSetup) -> PoolSetup, seconds: u64) -> Result<Scenario> {
    let path = experiments().join("../scenarios/_workers.toml");
    let mut host =
        suimon_settings::scenario::load(&path).map_err(|faults| Trouble::Usage(faults.to_string()))?;
    host.pool = host.pool.map(change);
    host.measure = Duration::from_secs(seconds);
    Ok(host)
}

fn fixed(workers: u32) -> impl FnOnce(PoolSetup) -> PoolSetup {
    move |pool| PoolSetup { law: Some(SizeLawKind::Fixed(workers)), workers, ..pool }
}

fn peak(workers: u32) -> Result<Scenario> {
    let mut scenario = host(fixed(workers), 60)?;
    let phase =
        |seconds, rate| Phase { lasts: Duration::from_secs(seconds), from_per_s: rate, to_per_s: rate };
    let phases = vec![phase(1, PEAK), phase(59, STEADY)];
    scenario.workload.arrivals = Arrivals::Open { phases, spacing: Spacing::Even, users_max: 20_000 };
    scenario.warm_up = Duration::ZERO;
    Ok(scenario)
}

fn play(quick: bool) -> Result<Data> {
    let seeds = if quick { 1 } else { SEEDS };
    let (short, long) = if quick { (15, 60) } else { (60, 540) };
    let cgi = |pool: PoolSetup| PoolSetup { law: None, start: CGI_START, ..pool };
    let mut jobs = vec![];
    for workers in WORKERS {
        jobs.push(job(host(fixed(workers), short)?, "suimon")?);
        jobs.push(job(host(cgi, short)?, &format!("fixed:{workers}+open"))?);
        jobs.push(job(peak(workers)?, "suimon")?);
    }
    jobs.push(job(peak(22)?, "suimon")?);
    jobs.push(job(peak(22)?, "fixed:22+static:44")?);
    let laws = [("measured", SizeLawKind::Measured), ("idle workers", SizeLawKind::Seed)];
    let courses: Vec<(&str, SizeLawKind, u32)> =
        laws.iter().flat_map(|(name, law)| BEGINNINGS.map(|from| (*name, *law, from))).collect();
    for (_, law, workers) in &courses {
        jobs.push(job(
            host(|pool| PoolSetup { law: Some(*law), workers: *workers, ..pool }, long)?,
            "suimon",
        )?);
    }
    let runs: Vec<_> = jobs.iter().flat_map(|job| (1..=seeds).map(move |seed| (job, seed))).collect();
    let results = parallel::map(&runs, |(job, seed)| suimon_sim::run(&job.scenario, *seed, &job.laws));
    let results = results
        .into_iter()
        .collect::<std::result::Result<Vec<RunResult>, _>>()
        .map_err(|violation| Trouble::Failed(violation.to_string()))?;
    let mut results = results.chunks(seeds as usize);
    let mut next = || results.next().expect("each job was played");
    let by_number = WORKERS.map(|workers| {
        let (constant, cgi, peak) = (next(), next(), next());
        Number {
            workers,
            per_s: mean(constant, |result| result.summary.sessions_per_s),
            cgi_per_s: mean(cgi, |result| result.summary.sessions_per_s),
            response_s: mean(peak, response_s),
            handled: mean(peak, |result| result.counts.sessions_completed as f64),
        }
    });
    let (open, gated) = (next(), next());
    let backlog = |results: &[RunResult]| {
        (0..60).map(|second| mean(results, |result| f64::from(result.pool[second].waiting))).collect()
    };
    Ok(Data {
        seeds,
        by_number: by_number.to_vec(),
        backlog_open: backlog(open),
        backlog_gated: backlog(gated),
        open_s: mean(open, response_s),
        gated_s: mean(gated, response_s),
        courses: courses.iter().map(|(name, _, from)| course(name, *from, next())).collect(),
    })
}

fn course(name: &str, from: u32, results: &[RunResult]) -> Course {
    let seconds = results.iter().map(|result| result.seconds.len().min(result.pool.len())).min().unwrap_or(0);
    let bins = |of: &dyn Fn(&RunResult, usize) -> f64| {
        let bin = |bin: usize| {
            let seconds = bin * BIN..(bin + 1) * BIN;
            mean(results, |result| seconds.clone().map(|second| of(result, second)).sum::<f64>() / BIN as f64)
        };
        (0..seconds / BIN).map(bin).collect()
    };
    Course {
        name: name.to_owned(),
        from,
        per_s: bins(&|result, second| f64::from(result.seconds[second].completed)),
        workers: bins(&|result, second| f64::from(result.pool[second].ready)),
    }
}

fn response_s(result: &RunResult) -> f64 {
    result.session_time.mean().unwrap_or_default().as_secs_f64()
}

fn mean(results: &[RunResult], of: impl Fn(&RunResult) -> f64) -> f64 {
    results.iter().map(of).sum::<f64>() / results.len().max(1) as f64
}

fn draw(data: &Data, out: &Path) -> Result<()> {
    let number = |title: &str, y: Axis, series: Vec<Series>| {
        let plot = Plot::new(title).describe("By number of workers.").x(Axis::new("workers").from(0.0)).y(y);
        Panel::Lines(series.into_iter().fold(plot, Plot::series), HEIGHT)
    };
    let points = |of: fn(&Number) -> f64| {
        data.by_number.iter().map(|number| (f64::from(number.workers), of(number))).collect::<Vec<_>>()
    };
    figures::write(
        &out.join("workers-3.svg"),
        &[number(
            "Mean response through the peak and a minute",
            Axis::new("seconds").from(0.0),
            vec![Series::dotted("", Hue::Blue, points(|number| number.response_s))],
        )],
    )?;
    figures::write(
        &out.join("workers-4.svg"),
        &[number(
            "Requests handled in that minute",
            Axis::new("requests").from(0.0),
            vec![Series::dotted("", Hue::Blue, points(|number| number.handled))],
        )],
    )?;
    let seconds =
        |values: &[f64]| values.iter().enumerate().map(|(second, value)| (second as f64, *value)).collect();
    let backlog = Plot::new("Requests that wait for one of 22 workers")
        .describe("After 250 requests in the first second, then 100 a second.")
        .x(Axis::new("seconds").from(0.0))
        .y(Axis::new("requests").from(0.0))
        .series(Series::line("without a gate", Hue::Vermilion, seconds(&data.backlog_open)))
        .series(Series::line("with a gate", Hue::Blue, seconds(&data.backlog_gated)));
    figures::write(&out.join("workers-5.svg"), &[Panel::Lines(backlog, HEIGHT)])?;
    let cgi = number(
        "Requests per second, all workers busy",
        Axis::new("per second").from(0.0),
        vec![
            Series::dotted("CGI", Hue::Grey, points(|number| number.cgi_per_s)),
            Series::dotted("resident", Hue::Blue, points(|number| number.per_s)),
        ],
    );
    let over_time = |title: &str, y: Axis, of: fn(&Course) -> &[f64]| {
        let mut plot = Plot::new(title).describe("Over time.").x(Axis::new("seconds").from(0.0)).y(y);
        for course in &data.courses {
            let hue = if course.name == "measured" { Hue::Blue } else { Hue::Vermilion };
            let middle = |bin: usize| (bin * BIN + BIN / 2) as f64;
            let points = of(course).iter().enumerate().map(|(bin, value)| (middle(bin), *value)).collect();
            plot = plot.series(Series::line(&format!("{} from {}", course.name, course.from), hue, points));
        }
        plot.span(Span::new(0.0, 60.0, "the first minute"))
    };
    let best = data.best();
    let rate = over_time("Requests per second", Axis::new("per second").from(0.0), |course| &course.per_s)
        .rule(Rule::new(best.per_s, &format!("{} workers", best.workers)));
    let workers = over_time("Resident workers", Axis::new("workers").from(0.0), |course| &course.workers);
    figures::write(
        &out.join("workers-6.svg"),
        &[cgi, Panel::Lines(rate, HEIGHT), Panel::Lines(workers, HEIGHT)],
    )
}

fn numbers(data: &Data) -> String {
    let mut out = String::from(
        "\n| workers | per second | CGI, as many processes | peak: mean response, s | peak: handled in 60 s |\n|--:|--:|--:|--:|--:|\n",
    );
    for number in &data.by_number {
        let Number { workers, per_s, cgi_per_s, response_s, handled } = number;
        let _ = writeln!(out, "| {workers} | {per_s:.1} | {cgi_per_s:.1} | {response_s:.2} | {handled:.0} |");
    }
    out += "\n| law | from | per second after a minute | share of the best number | workers at the end |\n|---|--:|--:|--:|--:|\n";
    for course in &data.courses {
        let (rate, last) = (course.after_a_minute(), course.workers.last().copied().unwrap_or_default());
        let share = rate / data.best().per_s;
        let _ = writeln!(out, "| {} | {} | {rate:.1} | {share:.3} | {last:.0} |", course.name, course.from);
    }
    let (first, growth) = backlog(data);
    let _ = writeln!(
        out,
        "\nBacklog with 22 workers: {first:.0} after the peak, then {growth:.1} more a second; mean response {:.2} s, with a gate {:.2} s.",
        data.open_s, data.gated_s
    );
    out
}

/// Returns what waits after the peak, and by how much that grows a second.
fn backlog(data: &Data) -> (f64, f64) {
    let waiting = &data.backlog_open;
    (waiting[1], (waiting[59] - waiting[1]) / 58.0)
}

fn claims(data: &Data) -> Vec<Claim> {
    let best = data.best();
    let (fifteen, hundred) = (data.number(15), data.number(100));
    let cgi = data.by_number.iter().map(|number| number.cgi_per_s).fold(0.0, f64::max) / best.per_s;
    let (first, growth) = backlog(data);
    let beyond = STEADY - data.number(22).per_s;
    let mut claims = vec![
        Claim::new(
            format!(
                "about 20 workers do the most, 15 less and 100 least: {} do {:.1} a second, 15 {:.1}, 100 {:.1}",
                best.workers, best.per_s, fifteen.per_s, hundred.per_s
            ),
            (18..=25).contains(&best.workers) && fifteen.per_s < best.per_s && hundred.per_s < fifteen.per_s,
        ),
        Claim::new(format!("CGI does about half: {cgi:.2}"), (0.4..0.65).contains(&cgi)),
        Claim::new(
            format!(
                "about 154 wait after the peak, and then as many more a second as come beyond what is done: {first:.0}, and {growth:.1} of {beyond:.1} (paper: 154, and 4 to 5)"
            ),
            (139.0..169.0).contains(&first) && (growth - beyond).abs() < 1.0,
        ),
        Claim::new(
            format!(
                "with a gate requests that are let in keep their time: {:.2} s, without it {:.2} s",
                data.gated_s, data.open_s
            ),
            data.gated_s < 0.6 && data.open_s > 3.0 * data.gated_s,
        ),
    ];
    for course in data.courses.iter().filter(|course| course.name == "measured") {
        let share = course.after_a_minute() / best.per_s;
        claims.push(Claim::new(
            format!("from {} the law does 0.97 of the best number after a minute: {share:.3}", course.from),
            share >= 0.97,
        ));
    }
    claims
}

fn table(data: &Data, claims: &[Claim]) -> String {
    format!(
        "# How many resident workers are best\n\nWritten by `./experiments/run {NAME}` from `data/result.json`. Means of {} seeds.\n{}\n## What was to hold\n\n{}",
        data.seeds,
        numbers(data),
        claims::list(claims)
    )
}

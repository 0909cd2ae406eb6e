//! `sharing-simulated`: several gateways before one application at three times what it can do, and what
//! becomes of it when a gateway or the engine is lost, simulated.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Axis, Bars, Hue, Plot, Series};
use suimon_model::{Instant, seconds};
use suimon_sim::Scenario;
use suimon_sim::gateways::{Fault, GatewaysResult, run_gateways};
use suimon_workload::Arrivals;

use crate::claims::{self, Claim};
use crate::common::{experiments, folder};
use crate::figures::{self, Panel};
use crate::trouble::{Result, Trouble, While};
use crate::{data, parallel};

const NAME: &str = "sharing-simulated";
const SEEDS: u64 = 12;
const COUNTS: [usize; 3] = [1, 2, 4];
/// Gateways in the runs in which something goes wrong.
const FAULT_COUNT: usize = 4;
/// What several gateways must do of what one does.
const GOODPUT_MIN: f64 = 0.95;
const BEGUN_APART_MAX: f64 = 0.03;
/// When something goes wrong, and how long it lasts, seconds.
const FAULT_AT: f64 = 150.0;
const FAULT_SECONDS: f64 = 60.0;
const PAUSE_SECONDS: f64 = 10.0;
/// People leave the line after this time, on average.
const LEAVING: Duration = Duration::from_secs(20);
/// What a silent gateway had ends within this many seconds.
const ENDING_SECONDS: usize = 15;
/// As before is this share of the completions per second before, over ten seconds.
const AS_BEFORE: f64 = 0.9;
const HEIGHT: f64 = 260.0;

/// What do several gateways do together that one does alone, on sites of several kinds?
///
/// 1, 2 and 4 gateways before one application, which three times as many ask as it can serve; then four of
/// which one dies or is cut off, and four whose engine is lost or paused.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Folder for data and figures [default: the experiment's own; with --quick one under target/]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Draws figures and table from the data that are there.
    #[arg(long)]
    redraw: bool,
    /// Two seeds, to see whether everything runs.
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Site {
    Shop,
    /// The same, where people wait in line.
    ShopInLine,
    TwoHeavyPages,
    Chat,
    /// Pages that wait for others, of which eight are worked on at once; people wait in line, ...
    Pages,
    /// ... or leave it.
    PagesLeft,
}

impl Site {
    const ALL: [Site; 6] =
        [Site::Shop, Site::ShopInLine, Site::TwoHeavyPages, Site::Chat, Site::Pages, Site::PagesLeft];

    const fn name(self) -> &'static str {
        match self {
            Site::Shop => "shop",
            Site::ShopInLine => "shop, with a line",
            Site::TwoHeavyPages => "two heavy pages",
            Site::Chat => "chat with answers of 12 s",
            Site::Pages => "pages of 120 ms, with a line",
            Site::PagesLeft => "the same, and people leave",
        }
    }

    /// The scenario's file, sessions per second that are three times what it can do, and seconds before
    /// what is measured.
    const fn of(self) -> (&'static str, f64, u64) {
        match self {
            Site::Shop | Site::ShopInLine => ("open-200-percent.toml", 10.345, 20),
            // 2 ÷ (5 · 0.03 + 2 · 0.4) sessions per second.
            Site::TwoHeavyPages => ("two-heavy-pages.toml", 6.316, 20),
            Site::Chat => ("chat-300-percent.toml", 16.0, 60),
            Site::Pages | Site::PagesLeft => ("_pages.toml", 66.667, 20),
        }
    }

    fn scenario(self) -> Result<Scenario> {
        let (file, rate, warm_up) = self.of();
        let load = |file: &str| {
            let path = experiments().join("../scenarios").join(file);
            suimon_settings::scenario::load(&path).map_err(|faults| Trouble::Failed(faults.to_string()))
        };
        let mut scenario = load(file)?;
        if let Arrivals::Closed { .. } = scenario.workload.arrivals {
            scenario.workload.arrivals = load(Site::Shop.of().0)?.workload.arrivals;
        }
        if let Arrivals::Open { phases, .. } = &mut scenario.workload.arrivals {
            phases.iter_mut().for_each(|phase| (phase.from_per_s, phase.to_per_s) = (rate, rate));
        }
        scenario.warm_up = Duration::from_secs(warm_up);
        scenario.measure = Duration::from_secs(280);
        if self == Site::PagesLeft {
            for kind in &mut scenario.workload.kinds {
                Arc::make_mut(kind).in_line.patience = Some(LEAVING);
            }
        }
        if matches!(self, Site::ShopInLine | Site::Pages | Site::PagesLeft) {
            for kind in &mut scenario.gate.kinds {
                kind.params.line = Some(Default::default());
            }
        }
        Ok(scenario)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Wrong {
    Nothing,
    Dies,
    EngineLost,
    EnginePaused,
    CutOff,
}

impl Wrong {
    const FAULTS: [Wrong; 4] = [Wrong::Dies, Wrong::EngineLost, Wrong::EnginePaused, Wrong::CutOff];

    const fn name(self) -> &'static str {
        match self {
            Wrong::Nothing => "nothing",
            Wrong::Dies => "a gateway dies",
            Wrong::EngineLost => "the engine is lost for 60 s, and comes back empty",
            Wrong::EnginePaused => "the engine stands still for 10 s",
            Wrong::CutOff => "a gateway does not reach the engine for 60 s",
        }
    }

    /// Seconds from which and until which it is so.
    const fn span(self) -> (f64, f64) {
        match self {
            Wrong::Nothing | Wrong::Dies => (FAULT_AT, FAULT_AT),
            Wrong::EngineLost | Wrong::CutOff => (FAULT_AT, FAULT_AT + FAULT_SECONDS),
            Wrong::EnginePaused => (FAULT_AT, FAULT_AT + PAUSE_SECONDS),
        }
    }

    fn faults(self) -> Vec<Fault> {
        let (from, to) = self.span();
        let (from, to) = (Instant::ORIGIN + seconds(from), Instant::ORIGIN + seconds(to));
        match self {
            Wrong::Nothing => vec![],
            Wrong::Dies => vec![Fault::Dies(1, from)],
            Wrong::EngineLost => vec![Fault::EngineLost(from, to)],
            Wrong::EnginePaused => vec![Fault::EnginePaused(from, to)],
            Wrong::CutOff => vec![Fault::Partitioned(1, from, to)],
        }
    }

    /// Gateways beside the limit in this second: they died, or do not reach the engine while others do.
    fn silent(self, second: usize) -> u32 {
        let (from, to) = self.span();
        let is_silent = matches!(self, Wrong::Dies | Wrong::CutOff)
            && (from as usize..to as usize + ENDING_SECONDS).contains(&second);
        u32::from(is_silent)
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    seeds: u64,
    plays: Vec<Play>,
}

/// One site with so many gateways; seed by seed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Play {
    site: Site,
    gateways: usize,
    wrong: Wrong,
    /// Sessions per second.
    begun: Vec<f64>,
    completed: Vec<f64>,
    /// Sessions that failed after they had begun, ...
    failed_inside: Vec<u64>,
    /// ... and requests of begun sessions that were refused or sent to the line.
    sent_back: Vec<u64>,
    places_lost: Vec<u64>,
    /// By how many requests the limit was exceeded at most, and by how many the stated bound.
    over_limit: Vec<u32>,
    over_bound: Vec<u32>,
    /// Seconds from the end of what went wrong until as many are completed as before; `None`: not in
    /// the run.
    as_before_s: Vec<Option<f64>>,
    /// Completed per second, mean of all seeds.
    course: Vec<f64>,
}

impl Data {
    fn of(&self, site: Site, gateways: usize, wrong: Wrong) -> Option<&Play> {
        self.plays.iter().find(|play| (play.site, play.gateways, play.wrong) == (site, gateways, wrong))
    }
}

/// The ratio of sums, and of the ratios seed by seed the least, the median and the most.
struct Ratio {
    all: f64,
    least: f64,
    median: f64,
    most: f64,
}

impl Ratio {
    fn new(several: &[f64], one: &[f64]) -> Self {
        let mut each: Vec<f64> = several.iter().zip(one).map(|(several, one)| several / one).collect();
        each.sort_by(f64::total_cmp);
        let at = |index: usize| each.get(index).copied().unwrap_or(f64::NAN);
        let half = each.len() / 2;
        Ratio {
            all: several.iter().sum::<f64>() / one.iter().sum::<f64>(),
            least: at(0),
            median: f64::midpoint(at(each.len().saturating_sub(1) / 2), at(half)),
            most: at(each.len().saturating_sub(1)),
        }
    }

    fn text(&self) -> String {
        format!("{:.3} ({:.3}; {:.3} to {:.3})", self.all, self.median, self.least, self.most)
    }
}

/// Plays all of it, and says whether it holds.
pub(crate) fn run_it(options: &Options) -> Result<bool> {
    let out = folder(NAME, options.out.clone(), options.quick)?;
    fs::create_dir_all(out.join("data")).trouble(out.display())?;
    let path = out.join("data/result.json");
    let data = data::measured(&path, NAME, options.redraw, || play(options.quick))?;
    draw(&data, &out.join("figure.svg"))?;
    let claims = claims(&data);
    data::write(&out.join("table.md"), &table(&data, &claims))?;
    print!("{}{}", numbers(&data), claims::text(&claims));
    Ok(options.quick || claims::all_hold(&claims))
}

fn play(quick: bool) -> Result<Data> {
    let seeds = if quick { 2 } else { SEEDS };
    let mut plays = vec![];
    for site in Site::ALL {
        let scenario = site.scenario()?;
        let together = COUNTS.map(|count| (count, Wrong::Nothing));
        let faults = Wrong::FAULTS.map(|wrong| (FAULT_COUNT, wrong));
        let with_faults = matches!(site, Site::ShopInLine);
        let all = together.into_iter().chain(faults.into_iter().filter(|_| with_faults));
        plays.extend(all.map(|(count, wrong)| (site, scenario.clone(), count, wrong)));
    }
    let jobs: Vec<_> = plays.iter().flat_map(|play| (1..=seeds).map(move |seed| (play, seed))).collect();
    let results = parallel::map(&jobs, |((_, scenario, count, wrong), seed)| {
        run_gateways(scenario, *seed, *count, &wrong.faults())
    });
    let plays = plays.iter().zip(results.chunks(seeds as usize));
    let plays = plays.map(|((site, _, count, wrong), runs)| summed_up(*site, *count, *wrong, runs));
    Ok(Data { seeds, plays: plays.collect() })
}

fn summed_up(site: Site, gateways: usize, wrong: Wrong, runs: &[GatewaysResult]) -> Play {
    let seconds = runs.iter().map(|run| run.series.len()).min().unwrap_or(0);
    let completed = |second: usize| runs.iter().map(move |run| run.series[second].completed).sum::<u64>();
    Play {
        site,
        gateways,
        wrong,
        begun: runs.iter().map(GatewaysResult::begun_per_second).collect(),
        completed: runs.iter().map(GatewaysResult::goodput).collect(),
        failed_inside: runs.iter().map(|run| run.counts.mid_session_failures).collect(),
        sent_back: runs.iter().map(|run| run.sent_back).collect(),
        places_lost: runs.iter().map(|run| run.places_lost).collect(),
        over_limit: runs
            .iter()
            .map(|run| run.series.iter().map(|second| second.over).max().unwrap_or(0))
            .collect(),
        over_bound: runs.iter().map(|run| over_bound(run, gateways, wrong)).collect(),
        as_before_s: runs.iter().map(|run| as_before(run, wrong)).collect(),
        course: (0..seconds).map(|second| completed(second) as f64 / runs.len() as f64).collect(),
    }
}

/// Returns by how many requests the bound of `docs/sharing.md` was exceeded at most: L + N + P · L, where
/// L is the highest limit seen in this second or the two before.
fn over_bound(run: &GatewaysResult, gateways: usize, wrong: Wrong) -> u32 {
    let over = run.series.iter().enumerate().map(|(index, second)| {
        let recent = &run.series[index.saturating_sub(2)..=index];
        let limit = recent.iter().map(|second| second.limit).max().unwrap_or(0);
        let bound = limit + gateways as u32 + wrong.silent(index) * limit;
        (second.limit + second.over).saturating_sub(bound)
    });
    over.max().unwrap_or(0)
}

/// Returns the seconds from the end of what went wrong until as many are completed in ten seconds as
/// before it.
fn as_before(run: &GatewaysResult, wrong: Wrong) -> Option<f64> {
    const TEN: usize = 10;
    const BEFORE: usize = 60;
    let (from, to) = wrong.span();
    let (from, to) = (from as usize, to as usize);
    let mean = |seconds: &[suimon_sim::gateways::GatewaysSecond]| {
        seconds.iter().map(|second| second.completed).sum::<u64>() as f64 / seconds.len().max(1) as f64
    };
    let before = mean(run.series.get(from.checked_sub(BEFORE)?..from)?);
    let after = run.series.get(to..)?;
    let again = after.windows(TEN).position(|seconds| mean(seconds) >= AS_BEFORE * before)?;
    Some(again as f64)
}

fn claims(data: &Data) -> Vec<Claim> {
    let mut claims = vec![];
    for play in &data.plays {
        let name = format!("{}, {} gateways, {}", play.site.name(), play.gateways, play.wrong.name());
        let one = data.of(play.site, 1, Wrong::Nothing);
        if let Some(one) = one.filter(|_| play.gateways > 1 && play.wrong == Wrong::Nothing) {
            let goodput = Ratio::new(&play.completed, &one.completed).all;
            let begun = Ratio::new(&play.begun, &one.begun).all;
            claims.push(Claim::new(
                format!("{name}: goodput {goodput:.3} of one gateway's, at least {GOODPUT_MIN}"),
                goodput >= GOODPUT_MIN,
            ));
            claims.push(Claim::new(
                format!("{name}: sessions begun {begun:.3} of one gateway's, within {BEGUN_APART_MAX}"),
                (begun - 1.0).abs() <= BEGUN_APART_MAX,
            ));
        }
        if play.gateways > 1 {
            let over = play.over_bound.iter().copied().max().unwrap_or(0);
            claims.push(Claim::new(
                format!("{name}: {over} requests beyond the stated bound in any second, none"),
                over == 0,
            ));
            let lost = play.sent_back.iter().sum::<u64>() + play.places_lost.iter().sum::<u64>();
            claims.push(Claim::new(
                format!("{name}: {lost} requests of begun sessions sent back or places in line lost, none"),
                lost == 0,
            ));
        }
    }
    claims
}

fn numbers(data: &Data) -> String {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut text = String::from(
        "| site | gateways | begun/s | of one gateway's | completed/s | of one gateway's | failed inside | over the limit | over the bound |\n|---|--:|--:|---|--:|---|--:|--:|--:|\n",
    );
    for play in data.plays.iter().filter(|play| play.wrong == Wrong::Nothing) {
        let one = data.of(play.site, 1, Wrong::Nothing).filter(|_| play.gateways > 1);
        let of_one = |of: fn(&Play) -> &Vec<f64>| {
            one.map_or("–".to_owned(), |one| Ratio::new(of(play), of(one)).text())
        };
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {} | {:.2} | {} | {:.1} | {} | {} |",
            play.site.name(),
            play.gateways,
            mean(&play.begun),
            of_one(|play| &play.begun),
            mean(&play.completed),
            of_one(|play| &play.completed),
            play.failed_inside.iter().sum::<u64>() as f64 / play.failed_inside.len().max(1) as f64,
            play.over_limit.iter().max().unwrap_or(&0),
            play.over_bound.iter().max().unwrap_or(&0),
        );
    }
    text.push_str("\n| what goes wrong | begun/s | completed/s | failed inside | sent back | places lost | over the limit | over the bound | as before after, s: median | longest | not in the run |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for play in data.plays.iter().filter(|play| play.wrong != Wrong::Nothing) {
        let mut again: Vec<f64> = play.as_before_s.iter().copied().flatten().collect();
        again.sort_by(f64::total_cmp);
        let show =
            |seconds: Option<&f64>| seconds.map_or("–".to_owned(), |seconds| format!("{seconds:.0}"));
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.2} | {:.1} | {} | {} | {} | {} | {} | {} | {} |",
            play.wrong.name(),
            mean(&play.begun),
            mean(&play.completed),
            play.failed_inside.iter().sum::<u64>() as f64 / play.failed_inside.len().max(1) as f64,
            play.sent_back.iter().sum::<u64>(),
            play.places_lost.iter().sum::<u64>(),
            play.over_limit.iter().max().unwrap_or(&0),
            play.over_bound.iter().max().unwrap_or(&0),
            show(again.get(again.len() / 2)),
            show(again.last()),
            play.as_before_s.len() - again.len(),
        );
    }
    text.push('\n');
    text
}

fn table(data: &Data, claims: &[Claim]) -> String {
    format!(
        "# What several gateways do together, simulated\n\nWritten by `./experiments/run {NAME}` from `data/result.json`. Means of {} seeds; of one gateway's: the ratio of the\nmeans, and in brackets the median and the range of the ratios seed by seed. Over the limit and the bound: the most of any second and seed.\n\n{}{}",
        data.seeds,
        numbers(data),
        claims::list(claims)
    )
}

fn draw(data: &Data, path: &std::path::Path) -> Result<()> {
    let bars = |title: &str, of: fn(&Play) -> &Vec<f64>| {
        let bars = Bars::new(title)
            .describe("The ratio of the means of all seeds, at three times the capacity.")
            .group("2 gateways", Hue::Blue)
            .group("4 gateways", Hue::Amber);
        Site::ALL.into_iter().fold(bars, |bars, site| {
            let ratio = |count: usize| {
                let both = data.of(site, count, Wrong::Nothing).zip(data.of(site, 1, Wrong::Nothing));
                both.map_or(0.0, |(several, one)| 100.0 * Ratio::new(of(several), of(one)).all)
            };
            bars.row(site.name(), vec![ratio(2), ratio(4)])
        })
    };
    let plot = Plot::new("Sessions completed per second when something is lost at 150 s")
        .describe("Four gateways before the shop, with a line; means of ten seconds and of all seeds.")
        .x(Axis::new("seconds").from(0.0))
        .y(Axis::new("sessions per second").from(0.0));
    let faults = Wrong::FAULTS.into_iter().zip([Hue::Blue, Hue::Vermilion, Hue::Amber, Hue::Green]);
    let plot = faults.fold(plot, |plot, (wrong, hue)| {
        let Some(play) = data.of(Site::ShopInLine, FAULT_COUNT, wrong) else { return plot };
        let ten = play.course.windows(10).enumerate();
        let points = ten.map(|(second, values)| (second as f64 + 5.0, values.iter().sum::<f64>() / 10.0));
        plot.series(Series::line(wrong.name(), hue, points.collect()))
    });
    figures::write(
        path,
        &[
            Panel::Bars(bars("Sessions begun, % of one gateway's", |play| &play.begun)),
            Panel::Bars(bars("Sessions completed, % of one gateway's", |play| &play.completed)),
            Panel::Lines(plot, HEIGHT),
        ],
    )
}

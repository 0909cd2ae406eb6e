//! `slow-answers`: pages that mostly wait for other systems, below and above the application's
//! capacity.
//!
//! Each cell is a fresh shop and, with Suimon, a fresh gateway that is told only the shop's
//! address.

use std::fs;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Axis, Hue, Plot, Series};
use suimon_crowd::Report;
use suimon_statistics::mean;
use suimon_statistics::table::numbers;

use crate::apps::{OpenShop, Shop, ShopKind, ShopOptions, Work};
use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::cpu::{CoreTimes, CoreUse, process_time};
use crate::crowd::Crowd;
use crate::data;
use crate::figures::{self, Panel};
use crate::gateways::Control;
use crate::http::Visitor;
use crate::machine::Machine;
use crate::trouble::{Result, While, failed};

const NAME: &str = "slow-answers";
/// How often each page is requested before its cost is measured, and how often meanwhile.
const WARM_UP_ASKED: usize = 60;
const COST_ASKED: usize = 40;
/// The longest that such a page may take.
const COST_PATIENCE: Duration = Duration::from_secs(30);
/// What Suimon must reach above the bound, as a share of it, ...
const ABOVE_MIN: f64 = 0.93;
/// ... and below it, as a share of what is completed without Suimon.
const BELOW_MIN: f64 = 0.97;
/// Seconds over which a curve of the figure is a mean.
const SMOOTH: usize = 20;

/// Do pages that mostly wait for other systems shut the gate, or open it too far?
///
/// Two sites on the Tomcat shop: a chat, whose answers take twelve seconds and come in parts, and a
/// site whose first page waits for four seconds. The demand on each is half of its capacity and
/// three times its capacity, with Suimon without settings and with nothing in front. It holds if
/// below the bound Suimon costs no session and refuses nobody, above it 0.93 of the bound is
/// completed, and no admitted session fails.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run slow-answers                      about 20 minutes
  ./experiments/run slow-answers --sites chat         one of the two")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Heap of the shop, MB.
    #[arg(long, value_name = "MB", default_value_t = 256)]
    heap_mb: u32,
    /// Requests the shop runs at once (its maxThreads).
    #[arg(long, value_name = "N", default_value_t = 1000)]
    threads: u32,
    /// Which sites.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Site::Chat, Site::FirstPage])]
    sites: Vec<Site>,
    /// Measure nothing: judge and draw earlier data.
    #[arg(long)]
    redraw: bool,
    /// Demand in sessions, as shares of the bound.
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_values_t = [0.5, 3.0])]
    loads: Vec<f64>,
}

/// A site.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Site {
    /// Three answers of 12 s each, streamed.
    Chat,
    /// The first page waits for 4 s; two quick ones follow.
    FirstPage,
}

/// A page: method, path, milliseconds of waiting, its work in light pages, parts.
type Page = (&'static str, &'static str, u32, u32, u32);

impl Site {
    fn pages(self) -> [Page; 3] {
        const ANSWER: Page = ("POST", "/ask", 12_000, 8, 24);
        const QUICK: Page = ("POST", "/ask", 0, 4, 1);
        match self {
            Site::Chat => [ANSWER; 3],
            Site::FirstPage => [("GET", "/slow", 4_000, 2, 1), QUICK, QUICK],
        }
    }

    /// Returns the seconds of think time and patience, of the time before counting, and of the
    /// counted time.
    fn times(self) -> [u64; 4] {
        match self {
            Site::Chat => [8, 60, 80, 100],
            Site::FirstPage => [2, 15, 30, 80],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Site::Chat => "chat",
            Site::FirstPage => "first-page",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Site::Chat => "chat, 3 answers of 12 s",
            Site::FirstPage => "first page waits for 4 s",
        }
    }

    /// Returns a journey file in which `per_second` visitors come per second.
    fn journey(self, seed: u64, per_second: f64) -> String {
        let [think, patience, ..] = self.times();
        let step = |(number, (method, path, ms, pages, parts)): (usize, Page)| {
            let asks = format!("{path}?ms={ms}&pages={pages}&parts={parts}");
            let name = format!("page-{number}");
            format!("[[journey.steps]]\nname = \"{name}\"\nmethod = \"{method}\"\npath = \"{asks}\"\n\n")
        };
        let steps: String = (1..).zip(self.pages()).map(step).collect();
        format!(
            "seed = {seed}\n\n[arrivals.open]\nrate_per_s = {per_second:.3}\n\n[visitor]\n\
             think = {{ mean = \"{think}s\", shape = \"exponential\" }}\npatience = \"{patience}s\"\nreturning = false\n\n\
             [visitor.on_failure]\nretry_from = 2\nretry_from_after_error = 1\nretries_max = 3\n\
             pause_after_timeout = \"0s\"\npause_after_error = \"3s\"\n\n\
             [visitor.on_refusal]\nretries_max = 3\nwait_default = \"3s\"\nwait_max = \"30s\"\n\n[[journey]]\nname = \"{}\"\n\n{steps}",
            self.name()
        )
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    cells: Vec<Cell>,
    claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    site: Site,
    load: f64,
    control: Control,
    /// Cores ÷ processor seconds of a session's pages, requested one after the other.
    bound_per_s: f64,
    app_core: CoreUse,
    crowd: Report,
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
    Ok(claims::all_hold(&data.claims))
}

fn measure(common: &Common, options: &Options) -> Result<Data> {
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        seed: common.seed,
        cells: Vec::new(),
        claims: Vec::new(),
    };
    let mut work = None;
    for site in &options.sites {
        // Once per site, so that all its cells have the same demand.
        let mut bound = None;
        for load in &options.loads {
            for control in [Control::Suimon, Control::None] {
                let cell = cell(common, options, (*site, *load, control), &mut work, &mut bound)?;
                let done = cell.crowd.sessions_per_s / cell.bound_per_s;
                eprintln!("{}, {load} of the bound, {control:?}: {done:.2} of it completed", site.words());
                data.cells.push(cell);
            }
        }
    }
    Ok(data)
}

fn cell(
    common: &Common,
    options: &Options,
    (site, load, control): (Site, f64, Control),
    work: &mut Option<Work>,
    bound: &mut Option<f64>,
) -> Result<Cell> {
    let folder = common.scratch.join(format!("{site:?}-{load}-{control:?}").to_lowercase());
    fs::create_dir_all(&folder).trouble(folder.display())?;
    let shop_options = ShopOptions {
        scale: 1.0,
        heap_mb: options.heap_mb,
        threads: options.threads,
        ..ShopOptions::DEFAULT
    };
    let shop = Shop {
        kind: ShopKind::Tomcat,
        options: &shop_options,
        suimon: &common.suimon,
        core: common.app_core,
        logs: &folder,
        work: *work,
        filter: None,
    };
    let opened = shop.open()?;
    // All cells use the pages of the first shop.
    *work = Some(opened.work);
    warm_up(&opened, site)?;
    let bound_per_s = match *bound {
        Some(known) => known,
        None => *bound.insert(measure_bound(&opened, site)?),
    };
    let [_, patience, mut warm_up, mut seconds] = site.times();
    if common.quick {
        (warm_up, seconds) = (5, 10);
    }
    let mut gateway = control.start(common, &folder, opened.address, patience as f64, 1.0)?;
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &folder,
        core: common.load_core,
        journey: site.journey(common.seed, load * bound_per_s),
        to: gateway.address,
        warmup: Duration::from_secs(warm_up),
        measure: Some(Duration::from_secs(seconds)),
    };
    let core = CoreTimes::now(common.app_core)?;
    let crowd = crowd.start()?.finish(|_| gateway.must_run())?;
    let app_core = core.until(&CoreTimes::now(common.app_core)?);
    Ok(Cell { site, load, control, bound_per_s, app_core, crowd })
}

/// Requests pages one after the other, without their waiting.
fn ask(shop: &OpenShop, site: Site, times: usize) -> Result<()> {
    for (method, path, _, pages, parts) in site.pages().into_iter().cycle().take(times) {
        let form = (method == "POST").then_some("");
        let path = format!("{path}?ms=0&pages={pages}&parts={parts}");
        let answer = Visitor::new(shop.address, COST_PATIENCE).ask(&path, form)?;
        if answer.status != 200 {
            return failed(format!("{method} {path}: status {}", answer.status));
        }
    }
    Ok(())
}

/// Lets the shop's compiler finish.
fn warm_up(shop: &OpenShop, site: Site) -> Result<()> {
    ask(shop, site, WARM_UP_ASKED)
}

/// Returns sessions per second of one core.
fn measure_bound(shop: &OpenShop, site: Site) -> Result<f64> {
    let before = process_time(shop.process.pid())?;
    // Whole sessions only.
    let sessions = COST_ASKED / site.pages().len();
    ask(shop, site, sessions * site.pages().len())?;
    let cost = process_time(shop.process.pid())?.saturating_sub(before).as_secs_f64() / sessions as f64;
    Ok(1.0 / cost.max(1e-6))
}

fn judge(cells: &[Cell]) -> Vec<Claim> {
    cells.iter().filter(|cell| cell.is_suimon()).flat_map(|cell| judge_cell(cell, cells)).collect()
}

fn judge_cell(cell: &Cell, cells: &[Cell]) -> Vec<Claim> {
    let (site, load, report) = (cell.site.words(), cell.load, &cell.crowd);
    let inside = report.mid_session_failures;
    let mut claims = vec![Claim::new(
        format!("{site}, {load} of the bound: nobody inside fails ({inside} failures)"),
        inside == 0,
    )];
    if load >= 1.0 {
        let share = report.sessions_per_s / cell.bound_per_s;
        claims.push(Claim::new(
            format!("{site}, {load} of the bound: at least {ABOVE_MIN} of it are completed ({share:.2})"),
            share >= ABOVE_MIN,
        ));
        return claims;
    }
    claims.push(Claim::new(
        format!(
            "{site}, {load} of the bound: nobody is refused ({})",
            report.refusals + report.waiting_pages
        ),
        report.refusals + report.waiting_pages == 0,
    ));
    let same =
        |other: &&Cell| other.site == cell.site && other.load.total_cmp(&load).is_eq() && !other.is_suimon();
    if let Some(without) = cells.iter().find(same) {
        let share_of = |cell: &Cell| cell.crowd.sessions_per_s / cell.bound_per_s;
        let share = share_of(cell) / share_of(without).max(1e-9);
        claims.push(Claim::new(
            format!("{site}, {load} of the bound: at least {BELOW_MIN} of what is completed without Suimon ({share:.2})"),
            without.crowd.sessions_completed > 0 && share >= BELOW_MIN,
        ));
    }
    claims
}

fn tables(data: &Data) -> String {
    let row = |cell: &Cell| {
        let report = &cell.crowd;
        vec![
            cell.site.words().to_string(),
            format!("{:.1}", cell.load),
            if cell.is_suimon() { "Suimon" } else { "none" }.to_string(),
            format!("{:.2}", cell.bound_per_s),
            report.sessions_completed.to_string(),
            format!("{:.2}", report.sessions_per_s / cell.bound_per_s),
            report.mid_session_failures.to_string(),
            report.refusals.to_string(),
            format!("{:.2}", cell.app_core.busy),
        ]
    };
    let headings = [
        "site",
        "load",
        "in front",
        "bound/s",
        "done",
        "of the bound",
        "failed inside",
        "refused",
        "core busy",
    ];
    numbers(&headings, &data.cells.iter().map(row).collect::<Vec<_>>())
}

fn draw(common: &Common, data: &Data) -> Result<()> {
    let panel = |site: Site| {
        let mut plot = Plot::new(&format!("Sessions completed, {}", site.words()))
            .x(Axis::new("seconds"))
            .y(Axis::new("share of the bound").from(0.0))
            .describe("Sessions completed per second as a share of what the application can do, with Suimon and without, below and above it.");
        let cells = data.cells.iter().filter(|cell| cell.site == site);
        for (cell, hue) in cells.zip([Hue::Green, Hue::Grey, Hue::Blue, Hue::Amber].into_iter().cycle()) {
            let completed: Vec<f64> =
                cell.crowd.series.iter().map(|second| f64::from(second.completed)).collect();
            let share = |window: &[f64]| mean(window) / cell.bound_per_s;
            let smooth = completed.windows(SMOOTH).enumerate();
            let points = smooth.map(|(at, window)| ((at + SMOOTH / 2) as f64, share(window)));
            let name = format!("{} at {}", if cell.is_suimon() { "Suimon" } else { "none" }, cell.load);
            plot = plot.series(Series::line(&name, hue, points.collect()));
        }
        Panel::Lines(plot, 280.0)
    };
    let mut sites: Vec<Site> = data.cells.iter().map(|cell| cell.site).collect();
    sites.dedup();
    figures::write(&common.out.join("figure.svg"), &sites.into_iter().map(panel).collect::<Vec<_>>())
}

//! `workers-real`: how many resident workers a page in PHP and in Python needs, with a database
//! behind it, and what servers make of it that choose the number by themselves.
//!
//! First a scan: a closed load that never lets a worker rest, for each fixed number of workers and
//! for CGI. It gives the capacity and the best number. Then open loads, as shares of that
//! capacity, for each fixed number and each server. Each cell has fresh processes.

mod draw;
mod load;
mod tell;

use std::fs;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::cpu::{CoreTimes, CoreUse};
use crate::crowd::Crowd;
use crate::data;
use crate::database::Database;
use crate::machine::Machine;
use crate::trouble::{Result, Trouble, While, failed};
use crate::workers::{Language, Open, Seen, Server, Site, Watch, sources, versions};
use crate::workspace::Workspace;
use load::Load;

const NAME: &str = "workers-real";
/// Processes of CGI at once: enough for the waiting in its pages.
const CGI_AT_ONCE: u32 = 20;
/// The longest that a scan waits for its queues, seconds.
const SCAN_WARM_UP_S: u32 = 8;
/// Pages asked for by themselves to learn what one costs, and before that.
const COST_ASKED: u32 = 30;
const WARM_UP_ASKED: u32 = 20;
/// The least number of workers that completes this share of the most is the best: more only cost
/// memory.
const BEST_SHARE: f64 = 0.98;

/// How many resident workers need a page in PHP and one in Python, and who finds the number?
///
/// The page of apps/pool-shop renders for some milliseconds and asks a PostgreSQL of this
/// experiment, whose answer takes a while. CGI, fixed numbers of workers (php-fpm's static,
/// gunicorn), php-fpm's dynamic as packaged and tuned by hand, gunicorn's formula and uWSGI's
/// busyness, all behind nginx, with 0.6, 1 and 3 times the capacity asked for, and through a peak
/// of one second. Workers have a core of their own; database, nginx and load share the other. Needs
/// what ./scripts/setup --experiments installs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run workers-real                             about an hour
  ./experiments/run workers-real --languages php --loads 3
  ./experiments/run workers-real --scan-only --rounds 3      a quarter of an hour: only the capacities
  ./experiments/run workers-real --quick                     some minutes, and its figures mean little")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Which pages.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Language::Php, Language::Python])]
    languages: Vec<Language>,
    /// Fixed numbers of workers.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [5, 10, 15, 20, 30, 50, 100],
        value_parser = clap::value_parser!(u32).range(1..=200))]
    numbers: Vec<u32>,
    /// Offered loads, as shares of the capacity.
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_values_t = [0.6, 1.0, 3.0])]
    loads: Vec<f64>,
    /// Leaves out the peak.
    #[arg(long)]
    no_peak: bool,
    /// Rounds of all cells, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=20))]
    rounds: u32,
    /// Seconds that count of each cell.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=600))]
    seconds: u32,
    /// Seconds before that: queues fill, servers choose their number, and learn how long people wait.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=600))]
    warm_up: u32,
    /// How often a page does its rendering.
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    work: u32,
    /// Milliseconds that the database lets a page wait.
    #[arg(long, value_name = "MS", default_value_t = 150, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    wait_ms: u32,
    /// Seconds in which Suimon learns a number, for those that begin with a known one.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u32).range(10..=3600))]
    learn: u32,
    /// Seconds that a visitor waits for a page.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    patience: u32,
    /// Measures only the fixed numbers and CGI under a load that never lets a worker rest.
    #[arg(long)]
    scan_only: bool,
    /// Measure nothing: judge and draw earlier data.
    #[arg(long)]
    redraw: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    /// Versions of the servers.
    versions: Vec<String>,
    work: u32,
    wait_ms: u32,
    patience_s: u32,
    seconds: u32,
    warm_up_s: u32,
    pages: Vec<Page>,
    claims: Vec<Claim>,
}

/// What was measured of the page in one language.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Page {
    language: Language,
    /// Processor time of a page that a resident worker answers with nothing else to do.
    cpu_ms_alone: f64,
    scan: Vec<Scanned>,
    /// The best number of the scan, and what it completes.
    best: u32,
    capacity_per_s: f64,
    cells: Vec<Cell>,
}

/// A server under a load that never lets a worker rest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Scanned {
    round: u32,
    server: Server,
    per_s: f64,
    workers: Seen,
    app_core: CoreUse,
}

/// A server under an open load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    round: u32,
    server: Server,
    load: Load,
    offered_per_s: f64,
    /// Pages that came within the visitor's patience.
    completed_per_s: f64,
    mean_s: f64,
    p99_s: f64,
    /// Visitors who waited in vain, and those who got an error, by kind.
    failed_per_s: f64,
    /// Visitors who were asked to come later.
    refused_per_s: f64,
    failures: std::collections::BTreeMap<String, u64>,
    workers: Seen,
    app_core: CoreUse,
    /// Of the load's core, by the load itself.
    crowd_cpu_share: f64,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if let Some(load) = options.loads.iter().find(|load| !(0.01..=20.0).contains(*load)) {
        return Err(Trouble::Usage(format!("--loads {load}: must be from 0.01 to 20")));
    }
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let mut data = data::measured(&path, NAME, options.redraw, || measure(&common, options))?;
    data.claims = tell::judge(&data);
    data::save(&path, &data)?;
    draw::figure(&data, &common.out.join("figure.svg"))?;
    print!("{}{}", tell::tables(&data), claims::text(&data.claims));
    Ok(common.quick || claims::all_hold(&data.claims))
}

/// What is measured, once `--quick` has been taken into account.
#[derive(Clone)]
struct Plan {
    /// Seconds in which Suimon learns a number.
    learn_s: u32,
    numbers: Vec<u32>,
    loads: Vec<Load>,
    rounds: u32,
    seconds: u32,
    warm_up_s: u32,
    patience_s: u32,
}

impl Plan {
    fn of(options: &Options, quick: bool) -> Self {
        let mut loads: Vec<Load> = options.loads.iter().copied().map(Load::Share).collect();
        if !options.no_peak {
            loads.push(Load::Peak);
        }
        if options.scan_only {
            loads.clear();
        }
        let plan = Plan {
            learn_s: options.learn,
            numbers: options.numbers.clone(),
            loads,
            rounds: options.rounds,
            seconds: options.seconds,
            warm_up_s: options.warm_up,
            patience_s: options.patience,
        };
        if !quick {
            return plan;
        }
        let loads = if options.scan_only { vec![] } else { vec![Load::Share(0.6), Load::Share(3.0)] };
        Plan {
            learn_s: 20,
            numbers: vec![5, 20, 60],
            loads,
            rounds: 1,
            seconds: 5,
            warm_up_s: 3,
            patience_s: 3,
        }
    }
}

fn measure(common: &Common, options: &Options) -> Result<Data> {
    let plan = Plan::of(options, common.quick);
    let workspace = Workspace::open()?;
    let app = workspace.copy(&sources(), "app")?;
    let database = Database::open(&workspace, common.load_core, &app.join("schema.sql"))?;
    let wait = Duration::from_millis(options.wait_ms.into());
    let site = Site {
        common,
        workspace: &workspace,
        database: &database,
        app,
        work: options.work,
        wait,
        page: "page.php",
        options: &[],
        memory: None,
    };
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        seed: common.seed,
        versions: versions(&[
            ("php-cgi", "-v"),
            ("gunicorn", "--version"),
            ("uwsgi", "--version"),
            ("nginx", "-v"),
            ("psql", "-V"),
        ]),
        work: options.work,
        wait_ms: options.wait_ms,
        patience_s: plan.patience_s,
        seconds: plan.seconds,
        warm_up_s: plan.warm_up_s,
        pages: Vec::new(),
        claims: Vec::new(),
    };
    for language in &options.languages {
        data.pages.push(page(&site, &plan, *language)?);
        data::save(&common.out.join("data/result.json"), &data)?;
    }
    Ok(data)
}

fn page(site: &Site<'_>, plan: &Plan, language: Language) -> Result<Page> {
    let cpu_ms_alone = cost(site, language)?;
    eprintln!("{language:?}: a page by itself costs {cpu_ms_alone:.1} ms of the processor");
    let mut scan = Vec::new();
    for round in 0..plan.rounds {
        let fixed = plan.numbers.iter().copied().map(Server::Fixed);
        for server in turned(fixed.chain([Server::Cgi(CGI_AT_ONCE)]).collect(), round) {
            let scanned = scanned(site, plan, language, server, round)?;
            eprintln!("{}, always asked: {:.1} pages/s", server.words(language), scanned.per_s);
            scan.push(scanned);
        }
    }
    let (best, capacity_per_s) = best(&scan).ok_or("no number completed a page").trouble(NAME)?;
    learn(site, plan, language)?;
    let mut page = Page { language, cpu_ms_alone, scan, best, capacity_per_s, cells: Vec::new() };
    for round in 0..plan.rounds {
        for load in &plan.loads {
            for server in turned(contestants(&page, plan), round) {
                let cell = cell(site, plan, &page, server, *load, round)?;
                eprintln!(
                    "{}, {}: {:.1} pages/s of {:.1}, p99 {:.2} s",
                    server.words(language),
                    load.words(),
                    cell.completed_per_s,
                    cell.offered_per_s,
                    cell.p99_s
                );
                page.cells.push(cell);
            }
        }
    }
    Ok(page)
}

/// Returns who is measured under open loads.
fn contestants(page: &Page, plan: &Plan) -> Vec<Server> {
    let mut all: Vec<Server> = plan.numbers.iter().copied().map(Server::Fixed).collect();
    all.push(Server::Cgi(CGI_AT_ONCE));
    match page.language {
        Language::Php => {
            // As many may wait as are answered within half of a visitor's patience.
            let backlog = (page.capacity_per_s * f64::from(plan.patience_s) / 2.0).ceil().max(1.0) as u32;
            all.extend([Server::FpmPackaged, Server::FpmTuned { workers: page.best, backlog }]);
        }
        Language::Python => all.extend([Server::GunicornFormula, Server::UwsgiBusyness]),
    }
    all.extend([Server::Suimon { known: false }, Server::Suimon { known: true }]);
    all
}

/// Every round begins elsewhere, so that nothing that drifts favours one of them.
fn turned(mut servers: Vec<Server>, round: u32) -> Vec<Server> {
    let by = round as usize * 3 % servers.len().max(1);
    servers.rotate_left(by);
    servers
}

/// Returns the best fixed number of workers of a scan, and what it completes per second: the mean
/// over its rounds.
fn best(scan: &[Scanned]) -> Option<(u32, f64)> {
    let of = |number: u32| {
        let rounds: Vec<f64> =
            scan.iter().filter(|s| s.server == Server::Fixed(number)).map(|s| s.per_s).collect();
        suimon_statistics::mean(&rounds)
    };
    let mut numbers: Vec<u32> = scan
        .iter()
        .filter_map(|scanned| if let Server::Fixed(number) = scanned.server { Some(number) } else { None })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let most = numbers.iter().map(|number| of(*number)).max_by(f64::total_cmp).filter(|most| *most > 0.0)?;
    let best = numbers.into_iter().find(|number| of(*number) >= BEST_SHARE * most)?;
    Some((best, of(best)))
}

/// Returns the processor time of a page by itself, milliseconds.
fn cost(site: &Site<'_>, language: Language) -> Result<f64> {
    let open = site.open(language, Server::Fixed(1), "cell")?;
    open.page_cost(WARM_UP_ASKED)?;
    Ok(open.page_cost(COST_ASKED)?.as_secs_f64() * 1000.0)
}

/// Lets Suimon find its number under a load that never lets a worker rest, for those that begin with
/// what it has learned.
fn learn(site: &Site<'_>, plan: &Plan, language: Language) -> Result<()> {
    let server = Server::Suimon { known: true };
    let mut open = site.open(language, server, "cell")?;
    let journey = load::closed(site.common.seed, server);
    let plan = Plan { seconds: plan.learn_s, ..plan.clone() };
    let (report, workers, _) = play(site.common, &plan, &mut open, journey)?;
    eprintln!("Suimon learns: {:.1} pages/s with {:.1} workers", report.sessions_per_s, workers.workers_mean);
    Ok(())
}

fn scanned(site: &Site<'_>, plan: &Plan, language: Language, server: Server, round: u32) -> Result<Scanned> {
    let mut open = site.open(language, server, "cell")?;
    let journey = load::closed(site.common.seed + u64::from(round), server);
    // A fixed number learns nothing.
    let plan = Plan { warm_up_s: plan.warm_up_s.min(SCAN_WARM_UP_S), ..plan.clone() };
    let (report, workers, app_core) = play(site.common, &plan, &mut open, journey)?;
    Ok(Scanned { round, server, per_s: report.sessions_per_s, workers, app_core })
}

fn cell(site: &Site<'_>, plan: &Plan, page: &Page, server: Server, load: Load, round: u32) -> Result<Cell> {
    let mut open = site.open(page.language, server, "cell")?;
    let journey = load.journey(site.common.seed + u64::from(round), page.capacity_per_s, plan);
    let (report, workers, app_core) = play(site.common, plan, &mut open, journey)?;
    let Some(step) = report.steps.first() else { return failed("the crowd has played no step") };
    let per_s = |count: u64| count as f64 / report.measured_s.max(1e-9);
    Ok(Cell {
        round,
        server,
        load,
        offered_per_s: per_s(report.sessions_begun),
        completed_per_s: report.sessions_per_s,
        mean_s: step.time.mean_s,
        p99_s: step.time.p99_s,
        failed_per_s: per_s(report.first_step_failures),
        refused_per_s: per_s(report.refusals + report.waiting_pages),
        failures: report.failures_by_kind.clone(),
        workers,
        app_core,
        crowd_cpu_share: report.crowd_cpu_share,
    })
}

fn play(
    common: &Common,
    plan: &Plan,
    open: &mut Open,
    journey: String,
) -> Result<(suimon_crowd::Report, Seen, CoreUse)> {
    let folder = common.scratch.join("cell");
    fs::create_dir_all(&folder).trouble(folder.display())?;
    let warm_up = Duration::from_secs(plan.warm_up_s.into());
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &folder,
        core: common.load_core,
        journey,
        to: open.address(),
        warmup: warm_up,
        measure: Some(Duration::from_secs(plan.seconds.into())),
    };
    let mut watch = Watch::begin(open.root, open.besides.clone(), warm_up)?;
    let mut core = None;
    let playing = crowd.start()?;
    let from = playing.measuring_from();
    let report = playing.finish(|_| {
        if core.is_none() && std::time::Instant::now() >= from {
            core = Some(CoreTimes::now(common.app_core)?);
        }
        watch.look()?;
        open.must_run()
    })?;
    let Some(core) = core else { return failed("the crowd ended before it was measured") };
    Ok((report, watch.seen(), core.until(&CoreTimes::now(common.app_core)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_number_is_the_least_that_is_nearly_as_good_as_any() {
        let scanned = |server, per_s| Scanned {
            round: 0,
            server,
            per_s,
            workers: Seen::default(),
            app_core: CoreUse { busy: 1.0, stolen: 0.0 },
        };
        let fixed = |number, per_s| scanned(Server::Fixed(number), per_s);
        let scan = [fixed(100, 99.0), fixed(5, 30.0), fixed(20, 98.5), fixed(15, 90.0)];
        assert_eq!(best(&scan), Some((20, 98.5)));
        // The mean over rounds counts, and CGI does not.
        let scan = [fixed(5, 60.0), fixed(5, 100.0), fixed(20, 90.0), scanned(Server::Cgi(20), 500.0)];
        assert_eq!(best(&scan), Some((20, 90.0)));
        assert_eq!(best(&[]), None);
    }
}

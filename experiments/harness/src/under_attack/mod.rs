//! `under-attack`: a thousand malicious connections beside an honest crowd.
//!
//! Each cell is a fresh shop and a fresh gateway. It is played without the attackers and then with
//! them.

mod attackers;
mod contestants;

pub(crate) use attackers::{AttackOptions, run as run_attackers};

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Axis, Hue, Plot, Series};
use suimon_crowd::Report;

use crate::apps::{Shop, ShopKind, ShopOptions, Work};
use crate::bound::{self, Bound};
use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::cpu::{CoreTimes, CoreUse, process_time};
use crate::crowd::Crowd;
use crate::data;
use crate::figures::{self, Panel};
use crate::journey::{Arrivals, Journey, Thinks};
use crate::machine::Machine;
use crate::memory::memory;
use crate::trouble::{Result, While, failed};
use attackers::{Came, Manner};
use contestants::Contestant;
use suimon_process::{Program, Running};
use suimon_statistics::table::numbers;

const NAME: &str = "under-attack";
/// Sessions of each shop's warm-up, and sessions in which the bound is measured, once.
const WARMUP_SESSIONS: u32 = 40;
const BOUND_SESSIONS: u32 = 60;
/// Attackers, each with one connection.
const ATTACKERS: u32 = 1000;
/// The least share of the sessions completed without the attackers that is completed with them.
const KEPT_MIN: f64 = 0.95;
/// The most memory of Suimon, MB.
const RESIDENT_MB_MAX: f64 = 100.0;
/// Interval at which memory is read.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The longest time until the attackers report their results.
const TELL_PATIENCE: Duration = Duration::from_secs(20);
/// Seconds over which a curve of the figure is a mean.
const SMOOTH: usize = 10;

/// Does an honest crowd notice a thousand malicious connections?
///
/// A Tomcat shop on one core. Visitors come at 0.6 of the bound and at three times it, while a
/// thousand attackers from fifty addresses drip heads and bodies, read nothing, close windows,
/// reset, abort, farm positions, forge, poll and request unknown paths. Suimon has no settings;
/// nginx and HAProxy are compared with it, with their usual protections. It holds if with the
/// attackers at least 0.95 of the sessions are completed that are completed without them, no
/// admitted session fails, and Suimon's memory stays under 100 MB.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run under-attack                           about 30 minutes
  ./experiments/run under-attack --contestants suimon      one third of it")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop: ShopOptions,
    /// The gateways in front of the shop.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Contestant::Suimon, Contestant::Nginx, Contestant::Haproxy])]
    contestants: Vec<Contestant>,
    /// Sessions per second, as shares of the bound.
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_values_t = [0.6, 3.0])]
    loads: Vec<f64>,
    /// Time before counting, seconds; the attackers are there from the beginning.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    warmup: u64,
    /// Counted, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Measure nothing: judge and draw earlier data.
    #[arg(long)]
    redraw: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    scale: f64,
    attackers: u32,
    bound: Option<Bound>,
    cells: Vec<Cell>,
    claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    contestant: Contestant,
    load: f64,
    /// The results of each manner of attack; `None`: without attackers.
    attack: Option<BTreeMap<Manner, Came>>,
    crowd: Report,
    /// The gateway's processor time ÷ time, and its highest memory.
    gateway_cpu_share: f64,
    resident_mb_max: f64,
    app_core: CoreUse,
    load_core: CoreUse,
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
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        seed: common.seed,
        scale: options.shop.scale,
        attackers: ATTACKERS,
        bound: None,
        cells: Vec::new(),
        claims: Vec::new(),
    };
    let mut work = None;
    for load in &options.loads {
        for contestant in &options.contestants {
            for attacked in [false, true] {
                let what = (*contestant, *load, attacked);
                let cell = cell(common, options, what, &mut work, &mut data.bound)?;
                eprintln!(
                    "{}, {load} of the bound, {}: {:.2} sessions/s, {} failed inside, {:.0} MB",
                    contestant.name(),
                    if attacked { "attacked" } else { "in peace" },
                    cell.crowd.sessions_per_s,
                    cell.crowd.mid_session_failures,
                    cell.resident_mb_max,
                );
                data.cells.push(cell);
            }
        }
    }
    Ok(data)
}

fn cell(
    common: &Common,
    options: &Options,
    (contestant, load, attacked): (Contestant, f64, bool),
    work: &mut Option<Work>,
    bound: &mut Option<Bound>,
) -> Result<Cell> {
    let way = if attacked { "attacked" } else { "peace" };
    let folder = common.scratch.join(format!("{}-{load}-{way}", contestant.name().to_lowercase()));
    // A missing file counts as an empty one.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).trouble(folder.display())?;
    let shop = Shop {
        kind: ShopKind::Tomcat,
        options: &options.shop,
        suimon: &common.suimon,
        core: common.app_core,
        logs: &folder,
        work: *work,
        filter: None,
    };
    let opened = shop.open()?;
    // All cells use the pages of the first shop.
    *work = Some(opened.work);
    let scale = options.shop.scale;
    let measured = if bound.is_some() { 1 } else { BOUND_SESSIONS };
    let played = bound::measure(common, &folder, &opened, scale, WARMUP_SESSIONS, measured, Thinks::No)?;
    let rate = load * bound.get_or_insert(played).sessions_per_s;
    let (warmup, seconds) = if common.quick { (3, 10) } else { (options.warmup, options.seconds) };

    let mut gateway = contestant.start(common, &folder, opened.address)?;
    let Some(pid) = gateway.pid() else { return failed("a gateway is a process") };
    let arrivals = Arrivals::Open(vec![((warmup + seconds) as f64, rate)]);
    let journey =
        Journey { seed: common.seed, arrivals, scale, thinks: Thinks::Varied, endless: false, in_line: None };
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &folder,
        core: common.load_core,
        journey: journey.toml(),
        to: gateway.address,
        warmup: Duration::from_secs(warmup),
        measure: Some(Duration::from_secs(seconds)),
    };
    let attack =
        attacked.then(|| start_attackers(common, &folder, gateway.address, warmup + seconds)).transpose()?;
    let playing = crowd.start()?;
    let measuring_from = playing.measuring_from();
    let mut before = None;
    let mut looked: Option<Instant> = None;
    let mut resident_mb_max = 0.0_f64;
    let report = playing.finish(|_| {
        gateway.must_run()?;
        if before.is_none() && Instant::now() >= measuring_from {
            let cores = (CoreTimes::now(common.app_core)?, CoreTimes::now(common.load_core)?);
            before = Some((Instant::now(), process_time(pid)?, cores));
        }
        if looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            looked = Some(Instant::now());
            resident_mb_max = resident_mb_max.max(memory(pid)?.resident_kb as f64 / 1024.0);
        }
        Ok(())
    })?;
    let Some((at, cpu, (app_core, load_core))) = before else {
        return failed("the crowd ended before it was measured");
    };
    let gateway_cpu_share =
        process_time(pid)?.saturating_sub(cpu).as_secs_f64() / at.elapsed().as_secs_f64().max(1e-9);
    let app_core = app_core.until(&CoreTimes::now(common.app_core)?);
    let load_core = load_core.until(&CoreTimes::now(common.load_core)?);
    let attack = attack.map(told).transpose()?;
    Ok(Cell {
        contestant,
        load,
        attack,
        crowd: report,
        gateway_cpu_share,
        resident_mb_max,
        app_core,
        load_core,
    })
}

/// Starts the attackers in a separate process, on the core of the crowd.
fn start_attackers(
    common: &Common,
    folder: &std::path::Path,
    to: std::net::SocketAddr,
    seconds: u64,
) -> Result<Running> {
    let own = env::current_exe().trouble("this program cannot find itself")?;
    let attackers = Program::new("attackers", own)
        .cores(&[common.load_core])
        .args(["under-attack-attackers".to_string(), "--to".to_string(), to.to_string()])
        .args(["--seconds".to_string(), seconds.to_string()])
        .args(["--connections".to_string(), ATTACKERS.to_string()])
        .descriptors(2 * ATTACKERS)
        .start(folder)?;
    Ok(attackers)
}

/// Waits for the attackers' own report.
fn told(mut attackers: Running) -> Result<BTreeMap<Manner, Came>> {
    attackers.wait(TELL_PATIENCE)?;
    serde_json::from_str(attackers.said().trim()).trouble("what the attackers say")
}

/// Returns pairs of cells, without the attackers and with them.
fn pairs(cells: &[Cell]) -> impl Iterator<Item = (&Cell, &Cell)> {
    cells.iter().filter(|cell| cell.attack.is_none()).filter_map(|peace| {
        let is_pair = |cell: &&Cell| {
            cell.attack.is_some()
                && cell.contestant == peace.contestant
                && cell.load.total_cmp(&peace.load).is_eq()
        };
        Some((peace, cells.iter().find(is_pair)?))
    })
}

fn kept(peace: &Cell, attacked: &Cell) -> f64 {
    attacked.crowd.sessions_per_s / peace.crowd.sessions_per_s
}

fn judge(cells: &[Cell]) -> Vec<Claim> {
    let ours = pairs(cells).filter(|(peace, _)| peace.contestant == Contestant::Suimon);
    let judged = ours.flat_map(|(peace, attacked)| {
        let (inside, resident_mb) = (attacked.crowd.mid_session_failures, attacked.resident_mb_max);
        judge_pair(peace.load, kept(peace, attacked), inside, resident_mb)
    });
    judged.collect()
}

fn judge_pair(load: f64, kept: f64, inside: u64, resident_mb: f64) -> [Claim; 3] {
    [
        Claim::new(
            format!(
                "{load} of the bound: at least {KEPT_MIN} of the sessions of peace are completed ({kept:.2})"
            ),
            kept >= KEPT_MIN,
        ),
        Claim::new(format!("{load} of the bound: nobody inside fails ({inside} failures)"), inside == 0),
        Claim::new(
            format!("{load} of the bound: memory stays under {RESIDENT_MB_MAX} MB ({resident_mb:.0})"),
            resident_mb < RESIDENT_MB_MAX,
        ),
    ]
}

fn tables(data: &Data) -> String {
    let bound = data.bound.map_or(f64::NAN, |bound| bound.sessions_per_s);
    let row = |(peace, attacked): (&Cell, &Cell)| {
        vec![
            peace.contestant.name().to_string(),
            format!("{:.1}", peace.load),
            format!("{:.2}", peace.crowd.sessions_per_s / bound),
            format!("{:.2}", attacked.crowd.sessions_per_s / bound),
            format!("{:.2}", kept(peace, attacked)),
            format!("{} / {}", peace.crowd.mid_session_failures, attacked.crowd.mid_session_failures),
            format!("{:.2} / {:.2}", peace.gateway_cpu_share, attacked.gateway_cpu_share),
            format!("{:.0} / {:.0}", peace.resident_mb_max, attacked.resident_mb_max),
        ]
    };
    let headings = ["in front", "load", "in peace", "attacked", "kept", "failed inside", "CPU", "memory MB"];
    let rows: Vec<Vec<String>> = pairs(&data.cells).map(row).collect();
    format!(
        "B = {bound:.2} sessions/s; completed as shares of it, in peace and attacked\n{}\n{}",
        numbers(&headings, &rows),
        attack_table(&data.cells)
    )
}

/// The results of each manner, at the largest load.
fn attack_table(cells: &[Cell]) -> String {
    let attacked = || cells.iter().filter(|cell| cell.attack.is_some());
    let most = attacked().map(|cell| cell.load).fold(0.0, f64::max);
    let rows: Vec<Vec<String>> = attacked()
        .filter(|cell| cell.load.total_cmp(&most).is_eq())
        .flat_map(|cell| {
            cell.attack.iter().flatten().map(move |(manner, came)| (cell.contestant, manner, came))
        })
        .map(|(contestant, manner, came)| {
            let answers: Vec<String> =
                came.answers.iter().map(|(status, count)| format!("{status}: {count}")).collect();
            vec![
                contestant.name().to_string(),
                format!("{manner:?}"),
                came.opened.to_string(),
                came.refused.to_string(),
                came.cut_off.to_string(),
                format!("{:.1}", came.open_s_mean),
                came.requests.to_string(),
                answers.join(", "),
            ]
        })
        .collect();
    numbers(&["in front", "attack", "opened", "refused", "cut off", "open s", "requests", "answers"], &rows)
}

fn draw(common: &Common, data: &Data) -> Result<()> {
    let bound = data.bound.map_or(1.0, |bound| bound.sessions_per_s);
    let mut loads: Vec<f64> = data.cells.iter().map(|cell| cell.load).collect();
    loads.dedup();
    let panels: Vec<Panel> = loads
        .into_iter()
        .map(|load| {
            let mut plot = Plot::new(&format!("Sessions completed while attacked, {load} of the bound asked for"))
                .x(Axis::new("seconds"))
                .y(Axis::new("share of the bound").from(0.0))
                .describe("Sessions completed per second as a share of the bound while a thousand connections attack: Suimon, nginx and HAProxy, and Suimon in peace.");
            let shown = data.cells.iter().filter(|cell| {
                cell.load.total_cmp(&load).is_eq()
                    && (cell.attack.is_some() || cell.contestant == Contestant::Suimon)
            });
            for cell in shown {
                let (name, hue) = match (cell.contestant, cell.attack.is_some()) {
                    (Contestant::Suimon, true) => ("Suimon", Hue::Green),
                    (Contestant::Suimon, false) => ("Suimon in peace", Hue::Grey),
                    (Contestant::Nginx, _) => ("nginx", Hue::Amber),
                    (Contestant::Haproxy, _) => ("HAProxy", Hue::Blue),
                };
                let completed: Vec<f64> =
                    cell.crowd.series.iter().map(|second| f64::from(second.completed)).collect();
                let share = |window: &[f64]| window.iter().sum::<f64>() / window.len() as f64 / bound;
                let smooth = completed.windows(SMOOTH).enumerate();
                let points = smooth.map(|(at, window)| ((at + SMOOTH / 2) as f64, share(window)));
                plot = plot.series(Series::line(name, hue, points.collect()));
            }
            Panel::Lines(plot, 280.0)
        })
        .collect();
    figures::write(&common.out.join("figure.svg"), &panels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_who_fails_and_memory_are_judged_each_by_itself() {
        let holds = |claims: [Claim; 3]| claims.map(|claim| claim.holds);
        assert_eq!(holds(judge_pair(0.6, 0.96, 0, 20.0)), [true, true, true]);
        assert_eq!(holds(judge_pair(3.0, 0.94, 1, 120.0)), [false, false, false]);
        // If nothing is completed without attackers, there is nothing to compare.
        assert_eq!(holds(judge_pair(3.0, f64::NAN, 0, 20.0)), [false, true, true]);
    }
}

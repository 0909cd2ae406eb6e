//! `inside-tomcat`: the gate as a servlet filter of the shop, beside the gateway in front, the papers' rules, and what
//! others have for the inside of a servlet container.
//!
//! Each cell is a fresh shop. Methods that need a number get the best of a short scan.

mod methods;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_process::free_address;
use suimon_statistics::mean;

use crate::apps::{OpenShop, Shop, ShopKind, ShopOptions, Work, open_tomcat};
use crate::bound::{self, Bound};
use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::crowd::Crowd;
use crate::data;
use crate::journey::{Arrivals, Journey, Thinks};
use crate::machine::Machine;
use crate::observe::{Seen, observe};
use crate::trouble::{Result, Trouble, While};
use methods::Method;

const NAME: &str = "inside-tomcat";
/// Sessions of a single user before each crowd, for the shop's compiler.
const WARMUP_SESSIONS: u32 = 25;
/// The same before the bound is measured, and those in which it is.
const BOUND_SESSIONS: (u32, u32) = (40, 80);
/// Time before counting, and counted, of one setting in a scan.
const SCAN: (Duration, Duration) = (Duration::from_secs(8), Duration::from_secs(12));
/// From this size on more visitors come than can be served.
const OVERLOADED: u32 = 100;

/// Does a servlet filter inside the application protect it as well as a gateway in front of it, and as others do?
///
/// The Tomcat shop on one core, closed crowds on another, as in sessions-under-overload. The shop alone; with the best
/// of Tomcat's own limits; with the limits of Netflix, with Sentinel, and with Suimon as a filter; behind Suimon with the
/// first paper's rules, with the second paper's pauses around each search, and without settings. What is inside uses the shop's core, what is in front the other one. It holds if the
/// filter completes 0.95 of the sessions that the gateway in front does above capacity, and fails none inside.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run inside-tomcat                        about 100 minutes
  ./experiments/run inside-tomcat --quick                a look whether it runs, about 5 minutes
  ./experiments/run inside-tomcat --methods filter,gateway --rounds 4 --out /tmp/two      these alone")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop: ShopOptions,
    /// Sizes of the crowd.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [25, 50, 100, 200, 400], value_parser = clap::value_parser!(u32).range(1..=5000))]
    users: Vec<u32>,
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', value_enum, default_values_t = Method::ALL, hide_default_value = true)]
    methods: Vec<Method>,
    /// How often each is played, in turns.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=20))]
    rounds: u32,
    /// Time before counting in each cell, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    warmup: u64,
    /// Counted in each cell, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// The filter's jar [default: java/filter/jakarta/target/suimon-filter.jar]
    #[arg(long, value_name = "FILE")]
    filter: Option<PathBuf>,
    /// Measure nothing: judge and draw earlier data.
    #[arg(long)]
    redraw: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    measured_s: u64,
    work: Work,
    /// At the start and at the end.
    bounds: Vec<Bound>,
    scans: Vec<Cell>,
    cells: Vec<Cell>,
    claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    method: Method,
    setting: String,
    users: u32,
    /// `None`: the shop did not live through it.
    seen: Option<Seen>,
}

impl Cell {
    fn per_s(&self) -> f64 {
        self.seen.as_ref().map_or(0.0, |seen| seen.crowd.sessions_per_s)
    }

    fn failures(&self) -> u64 {
        self.seen.as_ref().map_or(0, |seen| seen.crowd.mid_session_failures)
    }
}

impl Data {
    fn bound_per_s(&self) -> f64 {
        mean(&self.bounds.iter().map(|bound| bound.sessions_per_s).collect::<Vec<_>>())
    }

    fn of(&self, method: Method, users: u32) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(move |cell| cell.method == method && cell.users == users)
    }

    /// Returns the mean of a method's rounds, as a share of the bound.
    fn share(&self, method: Method, users: u32) -> Option<f64> {
        let rounds: Vec<f64> = self.of(method, users).map(Cell::per_s).collect();
        (!rounds.is_empty()).then(|| mean(&rounds) / self.bound_per_s())
    }

    fn failures(&self, method: Method, users: u32) -> u64 {
        self.of(method, users).map(Cell::failures).sum()
    }

    /// Returns the sessions per second with a setting of a scan, at all sizes together, and the failures inside.
    fn scanned(&self, method: Method, setting: &str) -> (f64, u64) {
        let cells = self.scans.iter().filter(|cell| cell.method == method && cell.setting == setting);
        cells.fold((0.0, 0), |(per_s, failures), cell| (per_s + cell.per_s(), failures + cell.failures()))
    }

    fn sizes(&self) -> Vec<u32> {
        self.cells.iter().map(|cell| (cell.users, ())).collect::<BTreeMap<_, _>>().into_keys().collect()
    }
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let mut data = data::measured(&path, NAME, options.redraw, || measure(&common, options, &path))?;
    data.claims = tell::judge(&data);
    data::save(&path, &data)?;
    tell::draw(&common, &data)?;
    print!("{}{}", tell::tables(&data), claims::text(&data.claims));
    Ok(claims::all_hold(&data.claims))
}

fn measure(common: &Common, options: &Options, path: &Path) -> Result<Data> {
    let opened = open_tomcat(common, &options.shop, None)?;
    let work = opened.work;
    let bound = |opened: &OpenShop| {
        let (warmup, sessions) = BOUND_SESSIONS;
        bound::measure(common, &common.scratch, opened, options.shop.scale, warmup, sessions, Thinks::No)
    };
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        seed: common.seed,
        measured_s: options.seconds,
        work,
        bounds: vec![bound(&opened)?],
        scans: Vec::new(),
        cells: Vec::new(),
        claims: Vec::new(),
    };
    drop(opened);
    // Where the load passes the capacity, and at the worst: a number that serves one may not serve the other.
    let largest = options.users.iter().copied().max().unwrap_or(OVERLOADED);
    let scanned: BTreeSet<u32> = [OVERLOADED, largest].into();
    let mut chosen: BTreeMap<Method, &str> = BTreeMap::new();
    for method in &options.methods {
        let tried = method.settings();
        if tried.len() > 1 {
            for setting in tried {
                for users in &scanned {
                    data.scans.push(cell(common, options, work, (*method, setting, *users), true)?);
                    data::save(path, &data)?;
                }
            }
        }
        let best = tried.iter().copied().max_by(|a, b| {
            let [a, b] = [a, b].map(|setting| data.scanned(*method, setting));
            a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))
        });
        chosen.insert(*method, best.unwrap_or_default());
    }
    for users in &options.users {
        for _ in 0..options.rounds {
            for method in &options.methods {
                let what = (*method, chosen[method], *users);
                data.cells.push(cell(common, options, work, what, false)?);
                data::save(path, &data)?;
            }
        }
    }
    data.bounds.push(bound(&open_tomcat(common, &options.shop, Some(work))?)?);
    Ok(data)
}

fn cell(
    common: &Common,
    options: &Options,
    work: Work,
    what: (Method, &str, u32),
    is_scan: bool,
) -> Result<Cell> {
    let (method, setting, users) = what;
    let seen =
        play(common, options, work, what, is_scan).inspect_err(|trouble| eprintln!("        {trouble}"));
    let cell = Cell { method, setting: setting.to_string(), users, seen: seen.ok() };
    if method.is_ours() && cell.seen.is_none() {
        return Err(Trouble::Failed(format!("{} at {users} users could not be played", method.name())));
    }
    let (per_s, failures) = (cell.per_s(), cell.failures());
    eprintln!(
        "{} {setting} at {users} users: {per_s:.2} sessions/s, {failures} failures inside",
        method.name()
    );
    Ok(cell)
}

/// Opens a shop, warms it up, and plays the crowd.
fn play(
    common: &Common,
    options: &Options,
    work: Work,
    (method, setting, users): (Method, &str, u32),
    is_scan: bool,
) -> Result<Seen> {
    let folder = common
        .scratch
        .join(format!("{method:?}-{users}-{}", setting.replace(['=', '/'], "-")).to_lowercase());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).trouble(folder.display())?;
    let admin = free_address()?;
    let filter = method.filter(options, setting, &folder, admin)?;
    let shop_options = method.shop(setting, &options.shop)?;
    let shop = Shop {
        kind: ShopKind::Tomcat,
        options: &shop_options,
        suimon: &common.suimon,
        core: common.app_core,
        logs: &folder,
        work: Some(work),
        filter: filter.as_ref(),
    };
    let opened = shop.open()?;
    let scale = options.shop.scale;
    bound::measure(common, &folder, &opened, scale, 0, WARMUP_SESSIONS, Thinks::No)?;
    let journey = Journey {
        seed: common.seed,
        arrivals: Arrivals::Closed { users, sessions_each: None },
        scale,
        thinks: Thinks::Varied,
        endless: false,
        in_line: None,
    };
    let mut gateway = method.in_front(common, &folder, &opened, (setting, &journey, admin))?;
    let (warmup, measured) = match is_scan {
        _ if common.quick => (Duration::from_secs(2), Duration::from_secs(4)),
        true => SCAN,
        false => (Duration::from_secs(options.warmup), Duration::from_secs(options.seconds)),
    };
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &folder,
        core: common.load_core,
        journey: journey.toml(),
        to: gateway.address,
        warmup,
        measure: Some(measured),
    };
    observe(common, &crowd, opened.process.pid(), &mut gateway, &folder.join("states.jsonl"), |_| ())
}

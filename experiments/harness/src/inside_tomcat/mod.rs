//! `inside-tomcat`: the gate as a servlet filter of the shop, beside the gateway in front, the paper's rules, and what
//! others have for the inside of a servlet container.
//!
//! Each cell is a fresh shop. Methods that need a number get the best of a short scan.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Axis, Hue, Plot, Series};
use suimon_process::free_address;
use suimon_statistics::mean;
use suimon_statistics::table::numbers;

use crate::apps::{Filter, OpenShop, Shop, ShopKind, ShopOptions, Work, open_tomcat};
use crate::bound::{self, Bound};
use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions, experiments};
use crate::crowd::Crowd;
use crate::data;
use crate::figures::{self, Panel};
use crate::gateways::{Control, Gateway, PaperSettings};
use crate::journey::{Arrivals, Journey, Thinks};
use crate::machine::Machine;
use crate::observe::{Seen, observe};
use crate::trouble::{Result, Trouble, While};

const NAME: &str = "inside-tomcat";
/// Sessions of a single user before each crowd, for the shop's compiler.
const WARMUP_SESSIONS: u32 = 25;
/// The same before the bound is measured, and those in which it is.
const BOUND_SESSIONS: (u32, u32) = (40, 80);
/// Time before counting, and counted, of one setting in a scan.
const SCAN: (Duration, Duration) = (Duration::from_secs(8), Duration::from_secs(12));
/// From this size on more visitors come than can be served.
const OVERLOADED: u32 = 100;
/// What the filter must complete of what the gateway in front does, at all such sizes together.
const OF_GATEWAY_MIN: f64 = 0.95;

/// Does a servlet filter inside the application protect it as well as a gateway in front of it, and as others do?
///
/// The Tomcat shop on one core, closed crowds on another, as in sessions-under-overload. The shop alone; with the best
/// `maxThreads`; with the limits of Netflix, with Sentinel, and with Suimon as a filter; behind Suimon with the paper's
/// rules, and without settings. What is inside uses the shop's core, what is in front the other one. It holds if the
/// filter completes 0.95 of the sessions that the gateway in front does above capacity, and fails none inside.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run inside-tomcat                        about 40 minutes
  ./experiments/run inside-tomcat --quick                a look whether it runs, about 5 minutes
  ./experiments/run inside-tomcat --methods filter,gateway --rounds 4 --out /tmp/two      these alone")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop: ShopOptions,
    /// Sizes of the crowd.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [25, 100, 400], value_parser = clap::value_parser!(u32).range(1..=5000))]
    users: Vec<u32>,
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', value_enum, default_values_t = Method::ALL, hide_default_value = true)]
    methods: Vec<Method>,
    /// How often filter and gateway are played, in turns; the others once.
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

/// What protects the shop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Method {
    /// Nothing.
    None,
    /// Tomcat's own limit of requests at once, the best of five.
    MaxThreads,
    /// Netflix' limits of concurrency, the best of three laws.
    Netflix,
    /// Sentinel, the best of four rules.
    Sentinel,
    /// The paper's two rules in a gateway in front, as sessions-under-overload chose them.
    Paper,
    /// Suimon in front, without settings.
    Gateway,
    /// Suimon inside, without settings.
    Filter,
}

impl Method {
    const ALL: [Method; 7] = [
        Method::None,
        Method::MaxThreads,
        Method::Netflix,
        Method::Sentinel,
        Method::Paper,
        Method::Gateway,
        Method::Filter,
    ];

    const fn name(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::MaxThreads => "maxThreads",
            Method::Netflix => "Netflix",
            Method::Sentinel => "Sentinel",
            Method::Paper => "paper",
            Method::Gateway => "in front",
            Method::Filter => "inside",
        }
    }

    const fn hue(self) -> Hue {
        match self {
            Method::None => Hue::Vermilion,
            Method::MaxThreads => Hue::Grey,
            Method::Netflix => Hue::Purple,
            Method::Sentinel => Hue::Green,
            Method::Paper => Hue::Amber,
            // One of the two is dashed.
            Method::Gateway | Method::Filter => Hue::Blue,
        }
    }

    /// Returns the settings to try, in words; one where there is nothing to choose.
    const fn settings(self) -> &'static [&'static str] {
        match self {
            Method::MaxThreads => &["2", "4", "8", "16", "32"],
            Method::Netflix => &["vegas", "gradient2", "aimd"],
            Method::Sentinel => &["load=1", "load=2.5", "threads=2", "threads=4"],
            Method::None | Method::Paper | Method::Gateway | Method::Filter => &[""],
        }
    }

    const fn is_ours(self) -> bool {
        matches!(self, Method::Gateway | Method::Filter)
    }
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

    fn sizes(&self) -> Vec<u32> {
        self.cells.iter().map(|cell| (cell.users, ())).collect::<BTreeMap<_, _>>().into_keys().collect()
    }
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let mut data = data::measured(&path, NAME, options.redraw, || measure(&common, options, &path))?;
    data.claims = judge(&data);
    data::save(&path, &data)?;
    draw(&common, &data)?;
    print!("{}{}", tables(&data), claims::text(&data.claims));
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
    let largest = options.users.iter().copied().max().unwrap_or(OVERLOADED);
    let mut chosen: BTreeMap<Method, String> = BTreeMap::new();
    for method in &options.methods {
        let tried = method.settings();
        if tried.len() > 1 {
            for setting in tried {
                let cell = cell(common, options, work, (*method, setting, largest), true)?;
                data.scans.push(cell);
            }
        }
        let of_it = data.scans.iter().filter(|cell| cell.method == *method);
        let best = of_it.max_by(|a, b| a.per_s().total_cmp(&b.per_s()).then(b.failures().cmp(&a.failures())));
        chosen.insert(*method, best.map_or(String::new(), |cell| cell.setting.clone()));
    }
    for users in &options.users {
        for round in 0..options.rounds {
            for method in options.methods.iter().filter(|method| round == 0 || method.is_ours()) {
                let what = (*method, chosen[method].as_str(), *users);
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
    let folder =
        common.scratch.join(format!("{method:?}-{users}-{}", setting.replace('=', "-")).to_lowercase());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).trouble(folder.display())?;
    let admin = free_address()?;
    let filter = filter(options, method, setting, &folder, admin)?;
    let mut shop_options = options.shop.clone();
    if method == Method::MaxThreads {
        shop_options.threads = setting.parse().trouble("maxThreads")?;
    }
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
    let mut gateway = match method {
        Method::Paper => {
            let paper = PaperSettings { initial: 2, threshold: 1.0, step_ms: 12 };
            Control::Paper(paper).start(common, &folder, opened.address, journey.patience_s(), scale)?
        }
        Method::Gateway => {
            Control::Suimon.start(common, &folder, opened.address, journey.patience_s(), scale)?
        }
        Method::Filter => Gateway { process: None, address: opened.address, admin: Some(admin) },
        _ => Gateway { process: None, address: opened.address, admin: None },
    };
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

/// Returns what the shop has before its pages.
fn filter(
    options: &Options,
    method: Method,
    setting: &str,
    folder: &Path,
    admin: SocketAddr,
) -> Result<Option<Filter>> {
    let others = || existing(experiments().join("inside-tomcat/filters/target/filters.jar"));
    let filter = match method {
        Method::None | Method::MaxThreads | Method::Paper | Method::Gateway => return Ok(None),
        Method::Netflix => Filter {
            class: "org.suimon.filters.NetflixFilter",
            jar: others()?,
            properties: vec![format!("-Dlimit={setting}")],
        },
        Method::Sentinel => Filter {
            class: "org.suimon.filters.SentinelFilter",
            jar: others()?,
            properties: vec![format!("-D{setting}"), format!("-Dcsp.sentinel.log.dir={}", folder.display())],
        },
        Method::Filter => {
            let built = experiments().join("../java/filter/jakarta/target/suimon-filter.jar");
            let path = folder.join("suimon.toml");
            // As the gateway in front: refused visitors come back, and nothing is kept.
            let settings = format!(
                "[[session]]\nkind = \"visit\"\nwaiting_room = false\n\n[admin]\nlisten = \"{admin}\"\n\n\
                 [lease]\nkeys = \"none\"\n\n[learned]\nstate = \"none\"\n"
            );
            fs::write(&path, settings).trouble(path.display())?;
            Filter {
                class: "org.suimon.filter.SuimonFilter",
                jar: existing(options.filter.clone().unwrap_or(built))?,
                properties: vec![format!("-Dsuimon.config={}", path.display())],
            }
        }
    };
    Ok(Some(filter))
}

fn existing(jar: PathBuf) -> Result<PathBuf> {
    if jar.is_file() {
        return Ok(jar);
    }
    Err(Trouble::Usage(format!("{} is not built: ./experiments/run inside-tomcat does it", jar.display())))
}

fn judge(data: &Data) -> Vec<Claim> {
    let sizes: Vec<u32> = data.sizes().into_iter().filter(|users| *users >= OVERLOADED).collect();
    let total = |method: Method| -> f64 { sizes.iter().filter_map(|users| data.share(method, *users)).sum() };
    let (inside, in_front) = (total(Method::Filter), total(Method::Gateway));
    let ratio = inside / in_front;
    let failures: u64 = data.sizes().iter().map(|users| data.failures(Method::Filter, *users)).sum();
    let shares = |method| {
        let of_size = |users: &u32| data.share(method, *users).map(|share| format!("{share:.2}"));
        sizes.iter().filter_map(of_size).collect::<Vec<_>>().join(", ")
    };
    vec![
        Claim::new(
            format!(
                "inside, at least {OF_GATEWAY_MIN} of the sessions that the gateway in front completes above capacity: \
                 {ratio:.3} ({} of the bound, and {})",
                shares(Method::Filter),
                shares(Method::Gateway)
            ),
            ratio >= OF_GATEWAY_MIN,
        ),
        Claim::new(format!("inside, no failure inside a session: {failures}"), failures == 0 && inside > 0.0),
    ]
}

fn draw(common: &Common, data: &Data) -> Result<()> {
    let panel = |title: &str, axis: &str, value: &dyn Fn(Method, u32) -> Option<f64>| {
        let sizes: Vec<f64> = data.sizes().into_iter().map(f64::from).collect();
        let mut plot =
            Plot::new(title).x(Axis::new("users").logarithmic().ticks(sizes)).y(Axis::new(axis).from(0.0));
        for method in Method::ALL {
            let point = |users: &u32| value(method, *users).map(|value| (f64::from(*users), value));
            let points: Vec<(f64, f64)> = data.sizes().iter().filter_map(point).collect();
            if !points.is_empty() {
                let series = Series::dotted(&label(data, method), method.hue(), points);
                plot = plot.series(if method == Method::Gateway { series.dashed() } else { series });
            }
        }
        Panel::Lines(plot, 320.0)
    };
    let share = |method, users| data.share(method, users);
    let failures = |method, users| data.share(method, users).map(|_| data.failures(method, users) as f64);
    let panels = [
        panel("Sessions completed per second, as a share of the bound", "share of the bound", &share),
        panel("Failures inside sessions", &format!("failures in {} s", data.measured_s), &failures),
    ];
    figures::write(&common.out.join("figure.svg"), &panels)
}

fn label(data: &Data, method: Method) -> String {
    let setting = data.cells.iter().find(|cell| cell.method == method).map_or("", |cell| &cell.setting);
    if setting.is_empty() { method.name().to_string() } else { format!("{} {setting}", method.name()) }
}

fn tables(data: &Data) -> String {
    let bounds: Vec<String> =
        data.bounds.iter().map(|bound| format!("{:.2}", bound.sessions_per_s)).collect();
    let headings = [
        "cell",
        "users",
        "per s",
        "of B",
        "inside",
        "at start",
        "refused",
        "session p50",
        "app cpu",
        "gateway",
    ];
    let row = |cell: &Cell| {
        let name = label(data, cell.method);
        let Some(seen) = &cell.seen else { return vec![name, cell.users.to_string(), "failed".to_string()] };
        let (crowd, percent) = (&seen.crowd, |share: f64| format!("{:.0} %", share * 100.0));
        vec![
            name,
            cell.users.to_string(),
            format!("{:.2}", crowd.sessions_per_s),
            format!("{:.2}", crowd.sessions_per_s / data.bound_per_s()),
            crowd.mid_session_failures.to_string(),
            crowd.first_step_failures.to_string(),
            crowd.refusals.to_string(),
            format!("{:.1} s", crowd.session_time.p50_s),
            percent(seen.app_cpu_share),
            seen.gateway_cpu_share.map_or(String::new(), percent),
        ]
    };
    let tried = |cell: &Cell| {
        vec![
            format!("{} {}", cell.method.name(), cell.setting),
            format!("{:.2}", cell.per_s()),
            cell.failures().to_string(),
        ]
    };
    format!(
        "\nB = {:.2} sessions/s (measured: {}); {}\n\n{}\nSettings tried\n{}",
        data.bound_per_s(),
        bounds.join(", "),
        data.machine.processor,
        numbers(&headings, &data.cells.iter().map(row).collect::<Vec<_>>()),
        numbers(&["setting", "per s", "inside"], &data.scans.iter().map(tried).collect::<Vec<_>>()),
    )
}

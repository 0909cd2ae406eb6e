//! `sqs-live`: the paper's figures on a real Tomcat shop, through real gateways, with all times divided by the scale.
//!
//! Each cell is a burst: N clients over real HTTP, one session each, until all are done or the time is over. What was measured is kept cell
//! by cell, so that an interrupted run goes on; at the end each figure that shows measurements gets its `data/measured.json`.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_admin::State;

use super::data::{self, Content, Curve, Data, PAGES, Point, Shop};
use super::make;
use super::method::{Constants, Control, Method};
use super::play::{Played, Player, Second};
use super::predict;
use super::table::{FIGURES, Figure, Shows};
use super::worlds::World;
use crate::apps::{ShopOptions, Work, open_tomcat};
use crate::bound::{self, Bound};
use crate::claims;
use crate::clock::Clock;
use crate::common::{Common, CommonOptions, experiments};
use crate::crowd::Crowd;
use crate::gateways::{self, SqsSettings};
use crate::journey::{Arrivals, Journey, Thinks};
use crate::machine::Machine;
use crate::observe::{Seen, observe};
use crate::statistics::median;
use crate::tomcat_model;
use crate::trouble::{Result, Trouble, While};

const NAME: &str = "sqs-live";
/// The worlds that are measured.
const WORLDS: [World; 2] = [World::Timeout60, World::NoTimeout];
/// Fixed numbers of sessions that are tried where none is named, at the largest crowd.
const STATIC_TRIED: [u32; 4] = [20, 28, 36, 48];
/// Sessions of a single user that warm a cell's shop up (after 40, the compiler still took a sixth of the core), and those that then tell what a session
/// costs in this cell.
const WARMUP_SESSIONS: u32 = 100;
const BOUND_SESSIONS: u32 = 30;
/// These are off by some 7 % by themselves: of so many cells before and behind it, and of the cell, the median is taken.
const NEIGHBOURS: usize = 2;
/// Starting and stopping around a cell, and a burst, as long as that is not known.
const BEYOND_ASSUMED: Duration = Duration::from_secs(15);
const BURST_ASSUMED: Duration = Duration::from_secs(90);
/// The steps of the journey, in order: the pages.
const STEPS: [&str; PAGES] = ["login", "browse-1", "browse-2", "browse-3", "search", "buy", "logout"];

/// The paper's figures 4, 5, 8, 9, 10 and its table, measured on the Tomcat shop: what do real gateways do with bursts of 25 to 400 clients?
///
/// Each cell is a fresh shop on one core, and N clients with one session each, until all are done; all of the paper's times are divided by --scale.
/// Then the same cells are simulated with the costs that `tomcat-model` measured: it holds where both agree within 10 %. Writes data/measured.json of those
/// figures; draw them anew with `./experiments/run sqs`. An hour and a half, on a quiet machine.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop: ShopOptions,
    /// Numbers of clients; figures 9, 10 and the table need 100 and 400.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [25, 50, 100, 200, 400], value_parser = clap::value_parser!(u32).range(1..=5000))]
    clients: Vec<u32>,
    /// What stands between clients and shop: none, session-only, page-only, sqs, suimon.
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', default_values_t = ["none", "session-only", "page-only", "sqs", "suimon"].map(String::from))]
    methods: Vec<String>,
    /// Sessions at once for `session-only`; left out: the best of a scan with the most clients, in each world.
    #[arg(long, value_name = "N")]
    static_sessions: Option<u32>,
    /// A burst that takes longer is dead, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..))]
    dead_after: u64,
    /// Keep the cells that the data file holds, and measure what is missing.
    #[arg(long)]
    resume: bool,
    /// Measure nothing: simulate, draw and tell what the data file holds.
    #[arg(long)]
    redraw: bool,
}

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) machine: Machine,
    pub(super) scale: f64,
    pub(super) dead_after_s: f64,
    work: Work,
    pub(super) cells: Vec<Cell>,
}

/// One burst.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) world: World,
    pub(super) control: Control,
    pub(super) clients: u32,
    pub(super) seed: u64,
    /// What a session of a single user cost in the same shop just before.
    bound: Bound,
    pub(super) played: Played,
    /// Share of the shop's core that others had.
    pub(super) others: f64,
}

impl Measured {
    /// Returns the shop's speed around the cell of this index, 1 being the one its pages' costs were measured at.
    pub(super) fn speed_at(&self, index: usize, model: &tomcat_model::Measured) -> f64 {
        let around = index.saturating_sub(NEIGHBOURS)..(index + NEIGHBOURS + 1).min(self.cells.len());
        median_speed(&self.cells[around], model)
    }

    /// Returns the largest crowd in a world.
    fn largest(&self, world: World) -> u32 {
        let own = self.cells.iter().filter(|cell| cell.world == world);
        own.map(|cell| cell.clients).max().unwrap_or_default()
    }

    /// Returns the fixed number of sessions that was best with so many clients.
    fn best_static(&self, world: World, clients: u32) -> u32 {
        let scanned = self.cells.iter().filter(|cell| cell.world == world && cell.clients == clients);
        let rated = scanned.filter_map(|cell| match cell.control {
            Control::Static(sessions) => Some((cell.played.sessions_per_s, sessions)),
            Control::None | Control::PageOnly(_) | Control::SqsAsSet | Control::Sqs(_) | Control::Suimon => {
                None
            }
        });
        rated.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(STATIC_TRIED[0], |(_, sessions)| sessions)
    }
}

/// Returns the shop's speed in the median of some cells.
fn median_speed(cells: &[Cell], model: &tomcat_model::Measured) -> f64 {
    let bounds: Vec<f64> = cells.iter().map(|cell| cell.bound.sessions_per_s).collect();
    median(&bounds) / model.sessions_per_s()
}

/// Measures what is missing, writes what the figures show of it, and returns whether the simulation foretold it.
pub(crate) fn run(mut options: Options) -> Result<bool> {
    if options.common.quick {
        options.clients = vec![25];
        options.methods.truncate(1);
        options.dead_after = options.dead_after.min(60);
        options.methods = vec!["suimon".to_owned()];
    }
    options.clients.sort_unstable();
    options.clients.dedup();
    let methods: Vec<Method> = options.methods.iter().map(|name| method(name)).collect::<Result<_>>()?;
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let keeps = options.resume || options.redraw;
    let kept: Option<Measured> = if keeps { crate::data::load(&path)? } else { None };
    if options.redraw && kept.is_none() {
        return Err(Trouble::Usage(format!("{} is missing: nothing was measured yet", path.display())));
    }
    let model = tomcat_model::measured()?;
    let dead_after_s = options.dead_after as f64;
    let (scale, work) = (options.shop.scale, model.work);
    if scale.total_cmp(&model.scale).is_ne() {
        return Err(Trouble::Usage(format!(
            "--scale {scale}: tomcat-model was measured with {}",
            model.scale
        )));
    }
    let is_other =
        |kept: &&Measured| (kept.scale, kept.dead_after_s, kept.work) != (scale, dead_after_s, work);
    if let Some(kept) = kept.as_ref().filter(is_other) {
        return Err(Trouble::Usage(format!(
            "{} was measured with --scale {} --dead-after {} and {:?}; this would be --scale {scale} --dead-after {dead_after_s} and {work:?}, the work of the last \
             tomcat-model (which keeps it with --same-work)",
            path.display(),
            kept.scale,
            kept.dead_after_s,
            kept.work,
        )));
    }
    let machine = common.machine.clone();
    let measured = kept.unwrap_or(Measured { machine, scale, dead_after_s, work, cells: Vec::new() });
    let mut live = Live { common: &common, options: &options, model: &model, path, measured };
    if !live.options.redraw {
        live.measure(&methods)?;
    }
    live.publish()?;
    live.predict()
}

fn method(name: &str) -> Result<Method> {
    let value = serde_json::Value::from(name);
    let method: Method = serde_json::from_value(value).trouble(format!("--methods {name}"))?;
    match method {
        Method::SqsAsSet => Err(Trouble::Usage("--methods sqs: the tuned constants are measured".to_owned())),
        Method::None | Method::SessionOnly | Method::PageOnly | Method::Sqs | Method::Suimon => Ok(method),
    }
}

struct Live<'a> {
    common: &'a Common,
    options: &'a Options,
    model: &'a tomcat_model::Measured,
    path: PathBuf,
    measured: Measured,
}

impl Live<'_> {
    fn measure(&mut self, methods: &[Method]) -> Result<()> {
        let largest =
            *self.options.clients.last().ok_or_else(|| Trouble::Usage("--clients: none".to_owned()))?;
        let scans =
            usize::from(methods.contains(&Method::SessionOnly) && self.options.static_sessions.is_none());
        let bursts = WORLDS.len() * (methods.len() * self.options.clients.len() + scans * STATIC_TRIED.len());
        let mut clock = Clock::new((0..bursts).map(|_| BURST_ASSUMED), BEYOND_ASSUMED);
        for world in WORLDS {
            if scans > 0 {
                for sessions in STATIC_TRIED {
                    self.cell(world, Control::Static(sessions), largest, &mut clock)?;
                }
            }
            for clients in self.options.clients.clone() {
                for method in methods {
                    let control = self.control(world, *method, largest)?;
                    self.cell(world, control, clients, &mut clock)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the method with its numbers: those of the simulation for the paper's rules, the best of the scan for the fixed number.
    fn control(&self, world: World, method: Method, largest: u32) -> Result<Control> {
        Ok(match method {
            Method::None => Control::None,
            Method::PageOnly => Control::PageOnly(Constants::usual()),
            Method::SqsAsSet => Control::SqsAsSet,
            Method::Sqs => Control::Sqs(make::tuned_in_simulation()?),
            Method::Suimon => Control::Suimon,
            Method::SessionOnly => Control::Static(match self.options.static_sessions {
                Some(sessions) => sessions,
                None => self.measured.best_static(world, largest),
            }),
        })
    }

    /// Returns the fixed number of sessions that the figures show.
    fn fixed(&self, world: World) -> u32 {
        let best = || self.measured.best_static(world, self.measured.largest(world));
        self.options.static_sessions.unwrap_or_else(best)
    }

    fn cell(&mut self, world: World, control: Control, clients: u32, clock: &mut Clock) -> Result<()> {
        let seed = self.common.seed;
        let is_same = |cell: &Cell| {
            (cell.world, cell.control, cell.clients, cell.seed) == (world, control, clients, seed)
        };
        if self.measured.cells.iter().any(is_same) {
            return Ok(());
        }
        let name = control.method().name();
        clock.begin(&format!("{}: {name} {} with {clients} clients", world.name(), control.setting()));
        let began = Instant::now();
        let (bound, played, others) = self.burst(world, control, clients)?;
        clock.done(BURST_ASSUMED, began.elapsed());
        let failed: f64 = played.by_page.iter().sum();
        eprintln!(
            "        {:.2} sessions/s of {:.2}, {failed:.0} failures; others had {:.0} %",
            played.sessions_per_s,
            bound.sessions_per_s,
            others * 100.0
        );
        self.measured.cells.push(Cell { world, control, clients, seed, bound, played, others });
        crate::data::save(&self.path, &self.measured)
    }

    fn burst(&self, world: World, control: Control, clients: u32) -> Result<(Bound, Played, f64)> {
        let (common, scale) = (self.common, self.options.shop.scale);
        let folder = common.scratch.join(format!("{}-{:?}-{clients}", world.name(), control.method()));
        fs::create_dir_all(&folder).trouble(folder.display())?;
        let shop = open_tomcat(common, &self.options.shop, Some(self.measured.work))?;
        let bound =
            bound::measure(common, &folder, &shop, scale, WARMUP_SESSIONS, BOUND_SESSIONS, Thinks::Briefly)?;
        let arrivals = Arrivals::Closed { users: clients, sessions_each: Some(1) };
        let endless = world == World::NoTimeout;
        let journey =
            Journey { seed: common.seed, arrivals, scale, thinks: Thinks::Always, endless, in_line: None };
        let patience_s = if endless { self.measured.dead_after_s } else { journey.patience_s() };
        let mut gateway = real(control).start(common, &folder, shop.address, patience_s, scale)?;
        let crowd = Crowd {
            suimon: &common.suimon,
            name: "crowd",
            folder: &folder,
            core: common.load_core,
            journey: journey.toml(),
            to: gateway.address,
            warmup: Duration::ZERO,
            measure: Some(Duration::from_secs(self.options.dead_after)),
        };
        let mut seconds: Vec<Second> = Vec::new();
        let mut first = None;
        let states = folder.join("states.jsonl");
        let seen = observe(common, &crowd, shop.process.pid(), &mut gateway, &states, |state| {
            let began = *first.get_or_insert(state.uptime_seconds);
            seconds.push(second(state, state.uptime_seconds - began));
        })?;
        let others = seen.foreign();
        Ok((bound, played(&seen, clients, seconds), others))
    }

    /// Writes what each figure shows of it.
    fn publish(&self) -> Result<()> {
        for figure in FIGURES.iter().filter(|figure| figure.is_measured) {
            let content = self.content(figure);
            let mut seeds: Vec<u64> = self.measured.cells.iter().map(|cell| cell.seed).collect();
            seeds.sort_unstable();
            seeds.dedup();
            let data = Data {
                figure: figure.name.to_owned(),
                world: format!(
                    "{} on the Tomcat shop, times divided by {}",
                    figure.world.name(),
                    self.measured.scale
                ),
                seeds,
                dead_after_s: self.measured.dead_after_s,
                content,
                scan: Vec::new(),
                at_sixty: None,
                calibrated: None,
                shop: Some(Shop {
                    machine: self.measured.machine.clone(),
                    speed: median_speed(&self.measured.cells, self.model),
                    static_sessions: self.fixed(figure.world),
                }),
            };
            let beside = if self.common.quick { self.common.out.join("..") } else { experiments() };
            let folder = beside.join(figure.name).join("data");
            fs::create_dir_all(&folder).trouble(folder.display())?;
            data::save(&folder.join("measured.json"), &data)?;
        }
        Ok(())
    }

    /// Simulates what was measured, draws both, and returns whether they agree.
    fn predict(&self) -> Result<bool> {
        let predictions = predict::predict(&self.measured, self.model, &mut Player::default())?;
        let (out, claims) = (&self.common.out, predict::claims(&predictions));
        crate::data::save(&out.join("data/prediction.json"), &predictions)?;
        let fixed = |world| self.fixed(world);
        predict::draw(&predictions, fixed, self.measured.dead_after_s, &out.join("figure.svg"))?;
        let table = predict::table(&predictions);
        crate::data::write(&out.join("prediction.md"), &predict::text(&table, &claims))?;
        print!("{table}{}", claims::text(&claims));
        Ok(claims::all_hold(&claims))
    }

    fn content(&self, figure: &Figure) -> Content {
        let cells: Vec<&Cell> =
            self.measured.cells.iter().filter(|cell| cell.world == figure.world).collect();
        let largest = self.measured.largest(figure.world);
        let fixed = self.fixed(figure.world);
        let shown = cells.iter().map(|cell| cell.control).filter(|control| control.is_shown(fixed));
        let mut controls: Vec<Control> = shown.collect();
        controls.sort_by_key(|control| control.method());
        controls.dedup();
        let runs = |control: Control, clients: u32| -> Vec<Arc<Played>> {
            let own = cells.iter().filter(|cell| cell.control == control && cell.clients == clients);
            own.map(|cell| Arc::new(cell.played.clone())).collect()
        };
        let sizes = |control: Control| {
            let mut sizes: Vec<u32> =
                cells.iter().filter(|cell| cell.control == control).map(|cell| cell.clients).collect();
            sizes.sort_unstable();
            sizes.dedup();
            sizes
        };
        match figure.shows {
            Shows::Throughput | Shows::Failures => {
                let curve = |control: &Control| {
                    let points: Vec<Point> = sizes(*control)
                        .into_iter()
                        .map(|clients| make::point(clients, &runs(*control, clients)))
                        .collect();
                    Curve { method: control.method(), setting: control.setting(), points }
                };
                Content::Sweep(controls.iter().map(curve).collect())
            }
            Shows::Distribution(clients, until_s) => Content::Distribution(
                controls
                    .iter()
                    .map(|control| make::distribution(*control, clients, until_s, &runs(*control, clients)))
                    .collect(),
            ),
            Shows::Pages => {
                let mut all = Vec::new();
                for clients in [100, largest] {
                    let measured = controls.iter().filter(|control| !runs(**control, clients).is_empty());
                    all.extend(
                        measured.map(|control| make::by_page(*control, clients, &runs(*control, clients))),
                    );
                }
                Content::Pages(all)
            }
            Shows::Interval | Shows::Limits => {
                let shown = controls.iter().filter(|control| make::is_in_series(control.method()));
                let series = |control: &Control| {
                    let runs = runs(*control, largest);
                    let seconds: Vec<&[Second]> = runs.iter().map(|run| run.seconds.as_slice()).collect();
                    make::series(*control, largest, &seconds)
                };
                Content::Series(shown.map(series).collect())
            }
        }
    }
}

/// Returns the same in front of a real shop.
fn real(control: Control) -> gateways::Control {
    let sqs = |constants: Constants| {
        gateways::Control::Sqs(SqsSettings {
            initial: constants.initial,
            threshold: constants.threshold(),
            up_ms: constants.up_ms,
            down_ms: constants.down_ms,
        })
    };
    match control {
        Control::None => gateways::Control::None,
        Control::Static(sessions) => gateways::Control::Static(sessions),
        Control::PageOnly(constants) => gateways::Control::PageOnly(constants.initial),
        Control::SqsAsSet => sqs(Constants::usual()),
        Control::Sqs(constants) => sqs(constants),
        Control::Suimon => gateways::Control::Suimon,
    }
}

fn second(state: &State, at_s: f64) -> Second {
    let limit = |path: &str| {
        let route = state.routes.iter().find(|route| route.name.ends_with(path));
        route.and_then(|route| route.limit).map_or(0.0, f64::from)
    };
    let waiting: usize = state.routes.iter().map(|route| route.queued).sum();
    Second {
        at_s,
        interval_s: state.kinds.first().and_then(|kind| kind.interval_seconds).unwrap_or(0.0),
        mean_queue: waiting as f64 / PAGES as f64,
        limit_of_page_5: limit("/search"),
        limit_of_page_1: limit("/login"),
    }
}

fn played(seen: &Seen, clients: u32, seconds: Vec<Second>) -> Played {
    let crowd = &seen.crowd;
    let ended = crowd.sessions_completed == u64::from(clients);
    let mut by_page = [0.0; PAGES];
    for (page, step) in by_page.iter_mut().zip(STEPS) {
        *page = crowd.failures_by_step.get(step).copied().unwrap_or_default() as f64;
    }
    Played {
        ended,
        sessions_per_s: if ended { f64::from(clients) / crowd.measured_s.max(1e-9) } else { 0.0 },
        by_page,
        refusals: crowd.refusals as f64,
        times: crowd.session_time_distribution.iter().map(|bin| (bin.to_s, bin.count)).collect(),
        seconds,
    }
}

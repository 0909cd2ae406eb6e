//! `sqs live`: the paper's figures on a real Tomcat shop, through real gateways, with all times
//! divided by the scale.
//!
//! Each cell is a burst: N clients over real HTTP, one session each, until all are done or the time
//! is over. Results are saved cell by cell, so that an interrupted run can continue;
//! [`super::measured`] derives from them what figures show.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use suimon_admin::State;

use super::data::PAGES;
use super::make;
use super::measured::{Cell, FILE, Measured, STATIC_TRIED};
use super::method::{Constants, Control, Method};
use super::play::{Played, Player, Second};
use super::predict;
use super::worlds::World;
use crate::apps::{ShopOptions, open_tomcat};
use crate::bound::{self, Bound};
use crate::claims;
use crate::clock::Clock;
use crate::common::{Common, CommonOptions};
use crate::crowd::Crowd;
use crate::gateways::{self, SqsSettings};
use crate::journey::{Arrivals, Journey, Thinks};
use crate::observe::{Seen, observe};
use crate::tomcat_model;
use crate::trouble::{Result, Trouble, While};

/// The worlds that are measured.
const WORLDS: [World; 2] = [World::Timeout60, World::NoTimeout];
/// Single-user sessions that warm up a cell's shop (after 40 of them, the compiler still used a
/// sixth of the core), and those that then measure the cost of a session in this cell.
const WARMUP_SESSIONS: u32 = 100;
const BOUND_SESSIONS: u32 = 30;
/// The assumed time for a burst, and for starting and stopping around a cell, until it is known.
const BEYOND_ASSUMED: Duration = Duration::from_secs(15);
const BURST_ASSUMED: Duration = Duration::from_secs(90);
/// The steps of the journey, in order: the pages.
const STEPS: [&str; PAGES] = ["login", "browse-1", "browse-2", "browse-3", "search", "buy", "logout"];

/// The paper's figures 4, 5, 8, 9, 10 and its table, measured on the Tomcat shop: what do real
/// gateways do with bursts of 25 to 400 clients?
///
/// Each cell is a fresh shop on one core, and N clients with one session each, until all are done;
/// all of the paper's times are divided by --scale. Then the same cells are simulated with the
/// costs that `tomcat-model` measured: it holds where both agree within 10 %. Writes measured.json;
/// `./experiments/run sqs` draws it below the simulated figures. An hour and a half, on a quiet
/// machine.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop: ShopOptions,
    /// Numbers of clients; figures 9, 10 and the table need 100 and 400.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [25, 50, 100, 200, 400], value_parser = clap::value_parser!(u32).range(1..=5000))]
    clients: Vec<u32>,
    /// What is between clients and shop: none, session-only, page-only, sqs, suimon.
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', default_values_t = ["none", "session-only", "page-only", "sqs", "suimon"].map(String::from))]
    methods: Vec<String>,
    /// Sessions at once for `session-only`; left out: the best of a scan with the most clients, in
    /// each world.
    #[arg(long, value_name = "N")]
    static_sessions: Option<u32>,
    /// A burst that takes longer is dead, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..))]
    dead_after: u64,
    /// Keep the cells that the data file holds, and measure what is missing.
    #[arg(long)]
    resume: bool,
    /// Measure nothing: simulate, draw and report what the data file holds.
    #[arg(long)]
    redraw: bool,
}

/// Measures what is missing, writes what the figures show of it, and returns whether the simulation
/// predicted it.
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
    let common = options.common.prepare(super::NAME)?;
    let path = common.out.join(FILE);
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
                    let control = self.control(world, *method)?;
                    self.cell(world, control, clients, &mut clock)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the method with its numbers: for the paper's rules those of the simulation, for the
    /// fixed number the best of the scan.
    fn control(&self, world: World, method: Method) -> Result<Control> {
        Ok(match method {
            Method::None => Control::None,
            Method::PageOnly => Control::PageOnly(Constants::usual()),
            Method::SqsAsSet => Control::SqsAsSet,
            Method::Sqs => Control::Sqs(make::tuned_in_simulation()?),
            Method::Suimon => Control::Suimon,
            Method::SessionOnly => Control::Static(match self.options.static_sessions {
                Some(sessions) => sessions,
                None => self.measured.best_static(world),
            }),
        })
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

    /// Simulates what was measured, draws both, and returns whether they agree.
    fn predict(&self) -> Result<bool> {
        let predictions = predict::predict(&self.measured, self.model, &mut Player::default())?;
        let claims = predict::claims(&predictions);
        predict::draw(&predictions, &self.measured, &self.common.out)?;
        print!("{}{}", predict::table(&predictions), claims::text(&claims));
        Ok(claims::all_hold(&claims))
    }
}

/// Returns the same method for a real shop.
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

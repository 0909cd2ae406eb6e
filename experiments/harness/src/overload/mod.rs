//! `sessions-under-overload`: one crowd, five sizes, six methods of control.
//!
//! Each cell (a method at a size) has a shop of its own, warmed up by a fixed number of single-user
//! sessions. Their processor time also gives the bound of that shop. Before the cells, a short scan
//! finds the best numbers for the methods that need some.

mod figure;
mod plan;
mod report;
#[cfg(test)]
mod tests;
mod verdict;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::apps::{ShopOptions, Work, open_tomcat};
use crate::bound::{self, Bound};
use crate::claims;
use crate::clock::Clock;
use crate::common::{Common, CommonOptions};
use crate::crowd::Crowd;
use crate::data;
use crate::gateways::{Control, find};
use crate::journey::{Arrivals, Journey, Thinks};
use crate::machine::Machine;
use crate::observe::{Seen, observe};
use crate::trouble::{Result, Trouble, While};
use plan::{Method, Step};

const NAME: &str = "sessions-under-overload";
/// Sessions of the shop's compiler warm-up in each cell, and later sessions in which the bound is
/// measured.
const CELL_WARMUP_SESSIONS: u32 = 15;
const CELL_BOUND_SESSIONS: u32 = 25;
/// The same if only the bound is measured.
const BOUND_WARMUP_SESSIONS: u32 = 40;
const BOUND_SESSIONS: u32 = 80;
/// The assumed time for starting and stopping around a cell, until it is known.
const BEYOND_ASSUMED: Duration = Duration::from_secs(12);

/// How many sessions per second does a real shop complete when too many visitors come, without
/// control and under each of five controls?
///
/// A Tomcat shop on one core, gateway and crowd on another. Closed crowds of 25 to 400 users, each
/// of whom plays one session after another as a new visitor. B, the bound, is cores ÷ processor
/// seconds per session. It holds if Suimon completes at least 0.85 B at 100, 200 and 400 users
/// without a mid-session failure, the shop without control collapses, and nothing else sustains
/// 400.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run sessions-under-overload                     everything, about 48 minutes
  ./experiments/run sessions-under-overload --quick             a look whether it runs, about 4 minutes
  ./experiments/run sessions-under-overload --resume            go on with what an interrupted run left
  ./experiments/run sessions-under-overload --again --methods suimon      that method anew, the others kept

Data: data/result.json in the experiment's folder; what the gateway said each second, logs and settings: under target/.")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop: ShopOptions,
    /// Sizes of the crowd.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [25, 50, 100, 200, 400], value_parser = clap::value_parser!(u32).range(1..=5000))]
    users: Vec<u32>,
    /// What stands between crowd and shop.
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', value_enum, default_values_t = Method::ALL)]
    methods: Vec<Method>,
    /// Time before counting in each cell, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    warmup: u64,
    /// Measured in each cell, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 45, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Sessions at once for `static`; left out: the best of a scan at the largest crowd.
    #[arg(long, value_name = "N")]
    static_sessions: Option<u32>,
    /// maxconn for `haproxy`; left out: the best of a scan at 200 users.
    #[arg(long, value_name = "N")]
    haproxy_maxconn: Option<u32>,
    /// Keep what the data file already holds, and measure what is missing.
    #[arg(long)]
    resume: bool,
    /// Keep the data of other methods and sizes, and measure the named ones again.
    #[arg(long, conflicts_with = "resume")]
    again: bool,
    /// Measure nothing: draw figure and tables from the data file.
    #[arg(long, conflicts_with_all = ["resume", "again"])]
    redraw: bool,
}

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Data {
    pub(crate) experiment: String,
    pub(crate) machine: Machine,
    pub(crate) settings: Fixed,
    /// Found once, so that a page is the same work in every cell.
    pub(crate) work: Work,
    /// The bound at the start, and again at the end (of each run that added to this file).
    pub(crate) bounds: Vec<Bound>,
    pub(crate) scans: Vec<Tried>,
    pub(crate) cells: Vec<Cell>,
}

/// What must be equal in all cells of a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Fixed {
    pub(crate) seed: u64,
    pub(crate) warmup_s: u64,
    pub(crate) measured_s: u64,
    pub(crate) scale: f64,
    pub(crate) heap_mb: u32,
    pub(crate) threads: u32,
}

/// One setting of a method in a scan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Tried {
    pub(crate) method: Method,
    pub(crate) users: u32,
    pub(crate) control: Control,
    pub(crate) sessions_per_s: f64,
    pub(crate) mid_session_failures: u64,
}

/// One method at one size.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) method: Method,
    pub(crate) users: u32,
    pub(crate) control: Control,
    /// Measured on this cell's shop before the crowd came.
    pub(crate) bound: Option<Bound>,
    pub(crate) seen: Option<Seen>,
    /// Why nothing was observed.
    pub(crate) error: Option<String>,
}

impl Data {
    /// Returns the bound that shares refer to: the mean of those measured at the starts and ends.
    pub(crate) fn bound_per_s(&self) -> f64 {
        self.bounds.iter().map(|bound| bound.sessions_per_s).sum::<f64>() / self.bounds.len().max(1) as f64
    }

    /// Returns the cell of a method at a size.
    pub(crate) fn cell(&self, method: Method, users: u32) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.method == method && cell.users == users)
    }

    /// Returns a cell's sessions per second as a share of the bound.
    pub(crate) fn share(&self, cell: &Cell) -> Option<f64> {
        cell.seen.as_ref().map(|seen| seen.crowd.sessions_per_s / self.bound_per_s())
    }

    /// Returns the sizes, ascending.
    pub(crate) fn sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<u32> = self.cells.iter().map(|cell| cell.users).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(mut options: Options) -> Result<bool> {
    if options.common.quick {
        options.users.truncate(0);
        options.users.extend([25, 200]);
        (options.warmup, options.seconds) = (2, 5);
    }
    options.users.sort_unstable();
    options.users.dedup();
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let kept = if options.resume || options.again || options.redraw { data::load(&path)? } else { None };
    if options.redraw {
        let data: Data = kept.ok_or_else(|| Trouble::Usage(format!("{} is not there", path.display())))?;
        return conclude(&common, &data);
    }
    let mut run = Run::begin(&common, &options, path, kept)?;
    run.measure()?;
    conclude(&common, &run.data)
}

fn conclude(common: &Common, data: &Data) -> Result<bool> {
    print!("{}", report::tables(data));
    figure::draw(data, &common.out.join("figure.svg"))?;
    let claims = verdict::claims(data);
    print!("{}", claims::text(&claims));
    Ok(claims::all_hold(&claims))
}

/// A run under way.
struct Run<'a> {
    common: &'a Common,
    options: &'a Options,
    path: PathBuf,
    data: Data,
    clock: Clock,
}

impl<'a> Run<'a> {
    /// Finds the work of a page, unless a data file has it, and measures the bound.
    fn begin(common: &'a Common, options: &'a Options, path: PathBuf, kept: Option<Data>) -> Result<Self> {
        let shop = &options.shop;
        let settings = Fixed {
            seed: common.seed,
            warmup_s: options.warmup,
            measured_s: options.seconds,
            scale: shop.scale,
            heap_mb: shop.heap_mb,
            threads: shop.threads,
        };
        if let Some(kept) = kept.as_ref().filter(|kept| kept.settings != settings) {
            return Err(Trouble::Usage(format!(
                "{} was measured with other settings:\n  {:?}\nnow:\n  {settings:?}\n\
                 give the same ones, or leave out --resume and --again to measure everything anew",
                path.display(),
                kept.settings
            )));
        }
        if options.methods.contains(&Method::Haproxy) {
            // Checked now rather than in half an hour.
            find("haproxy")?;
        }
        eprintln!("measuring the bound: one user, straight at the shop");
        let opened = open_tomcat(common, &options.shop, kept.as_ref().map(|data| data.work))?;
        let bound = bound::measure(
            common,
            &common.scratch,
            &opened,
            shop.scale,
            BOUND_WARMUP_SESSIONS,
            BOUND_SESSIONS,
            Thinks::No,
        )?;
        say_bound(&bound);
        let mut data = kept.unwrap_or(Data {
            experiment: NAME.to_string(),
            machine: common.machine.clone(),
            settings,
            work: opened.work,
            bounds: Vec::new(),
            scans: Vec::new(),
            cells: Vec::new(),
        });
        data.machine = common.machine.clone();
        data.bounds.push(bound);
        if options.again {
            let is_named =
                |cell: &Cell| options.methods.contains(&cell.method) && options.users.contains(&cell.users);
            data.cells.retain(|cell| !is_named(cell));
        }
        Ok(Run { common, options, path, data, clock: Clock::new([], BEYOND_ASSUMED) })
    }

    /// Measures all that is missing, saving after each step.
    fn measure(&mut self) -> Result<()> {
        data::save(&self.path, &self.data)?;
        let steps = plan::steps(self.options, &self.data);
        let plan: Vec<Duration> = steps.iter().map(|step| self.planned(step)).collect();
        self.clock = Clock::new(plan.iter().copied(), BEYOND_ASSUMED);
        for (step, planned) in steps.iter().zip(plan) {
            let began = Instant::now();
            match *step {
                Step::Scan(method, users, control) => self.scan(method, users, control)?,
                Step::Cell(method, users) => self.cell(method, users)?,
            }
            self.clock.done(planned, began.elapsed());
            data::save(&self.path, &self.data)?;
        }
        eprintln!("measuring the bound again");
        let opened = open_tomcat(self.common, &self.options.shop, Some(self.data.work))?;
        let scale = self.options.shop.scale;
        let folder = &self.common.scratch;
        let bound = bound::measure(
            self.common,
            folder,
            &opened,
            scale,
            BOUND_WARMUP_SESSIONS,
            BOUND_SESSIONS,
            Thinks::No,
        )?;
        say_bound(&bound);
        self.data.bounds.push(bound);
        eprintln!("took {:.1} min behind the first bound", self.clock.elapsed().as_secs_f64() / 60.0);
        data::save(&self.path, &self.data)
    }

    fn planned(&self, step: &Step) -> Duration {
        let (warmup, measured) = self.times(step);
        warmup + measured
    }

    /// Returns warm-up and measured time.
    fn times(&self, step: &Step) -> (Duration, Duration) {
        let seconds = Duration::from_secs;
        match step {
            Step::Cell(..) => (seconds(self.options.warmup), seconds(self.options.seconds)),
            Step::Scan(..) if self.common.quick => (seconds(2), seconds(3)),
            Step::Scan(..) => plan::SCAN_TIMES,
        }
    }

    fn scan(&mut self, method: Method, users: u32, control: Control) -> Result<()> {
        let step = Step::Scan(method, users, control);
        self.clock.begin(&format!("{} at {users} users, trying {}", method.name(), control.setting()));
        let name = format!("scan-{}", method.name());
        let seen = match self.play(&name, users, control, self.times(&step)) {
            Ok((_, seen)) => seen,
            Err(trouble) => {
                // Other settings may work; if none does, the method's cells say so.
                eprintln!("        {trouble}");
                return Ok(());
            }
        };
        let tried = Tried {
            method,
            users,
            control,
            sessions_per_s: seen.crowd.sessions_per_s,
            mid_session_failures: seen.crowd.mid_session_failures,
        };
        eprintln!(
            "        {:.2} sessions/s, {} failures inside",
            tried.sessions_per_s, tried.mid_session_failures
        );
        self.data.scans.push(tried);
        Ok(())
    }

    fn cell(&mut self, method: Method, users: u32) -> Result<()> {
        let control = plan::chosen(method, self.options, &self.data)
            .ok_or("no setting was found in the scan")
            .trouble(method.name())?;
        let setting = control.setting();
        let setting = if setting.is_empty() { setting } else { format!(" ({setting})") };
        self.clock.begin(&format!("{}{setting} at {users} users", method.name()));
        let name = format!("{}-{users}", method.name());
        let cell = match self.play(&name, users, control, self.times(&Step::Cell(method, users))) {
            Ok((bound, seen)) => {
                eprintln!("        {}", report::line(&seen, self.data.bound_per_s()));
                Cell { method, users, control, bound: Some(bound), seen: Some(seen), error: None }
            }
            Err(trouble) => {
                eprintln!("        {trouble}");
                Cell { method, users, control, bound: None, seen: None, error: Some(trouble.to_string()) }
            }
        };
        self.data.cells.push(cell);
        Ok(())
    }

    /// Opens a shop, warms it up, puts the control in front of it and plays the crowd.
    fn play(
        &self,
        name: &str,
        users: u32,
        control: Control,
        (warmup, measure): (Duration, Duration),
    ) -> Result<(Bound, Seen)> {
        let (common, scale) = (self.common, self.options.shop.scale);
        let folder = common.scratch.join(name);
        fs::create_dir_all(&folder).trouble(folder.display())?;
        let shop = open_tomcat(common, &self.options.shop, Some(self.data.work))?;
        let bound = bound::measure(
            common,
            &folder,
            &shop,
            scale,
            CELL_WARMUP_SESSIONS,
            CELL_BOUND_SESSIONS,
            Thinks::No,
        )?;
        let arrivals = Arrivals::Closed { users, sessions_each: None };
        let journey = Journey {
            seed: common.seed,
            arrivals,
            scale,
            thinks: Thinks::Varied,
            endless: false,
            in_line: None,
        };
        let mut gateway = control.start(common, &folder, shop.address, journey.patience_s(), scale)?;
        let crowd = Crowd {
            suimon: &common.suimon,
            name: "crowd",
            folder: &folder,
            core: common.load_core,
            journey: journey.toml(),
            to: gateway.address,
            warmup,
            measure: Some(measure),
        };
        let states = folder.join("states.jsonl");
        let seen = observe(common, &crowd, shop.process.pid(), &mut gateway, &states, |_| ())?;
        Ok((bound, seen))
    }
}

fn say_bound(bound: &Bound) {
    eprintln!(
        "B = {:.2} sessions/s ({:.1} ms of processor per session; others had {:.0} % of the core)",
        bound.sessions_per_s,
        bound.cpu_s_per_session * 1000.0,
        bound.app_core.stolen * 100.0
    );
}

//! `mediawiki`: an application that nobody here has written, behind a pool of workers.
//!
//! One wiki and one database for all servers. First a visit through Suimon and the same one through
//! nginx and php-fpm: equal statuses, redirects and texts. Then the capacity under a closed load, and
//! a crowd of sessions at a multiple of it.

mod load;
mod serve;
mod tell;
mod text;
mod visit;
mod wiki;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::cpu::{CoreTimes, CoreUse};
use crate::crowd::Crowd;
use crate::data;
use crate::machine::Machine;
use crate::mariadb::MariaDb;
use crate::trouble::{Result, While, failed};
use crate::workers::{self, Seen, Watch};
use crate::workspace::Workspace;
use load::{Arrivals, journey};
use serve::{Open, Server, Told};
use visit::Exchange;
use wiki::Wiki;

const NAME: &str = "mediawiki";
/// Visitors of the closed load: enough that the workers' core never rests.
const CLOSED_USERS: u32 = 8;
/// Names of the visitors, of the same length.
const VISITORS: [&str; 2] = ["Alpha", "Omega"];
/// Interval at which the gateway's state is written down.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Does MediaWiki work behind a pool of workers, and do its visitors finish when too many come?
///
/// A wiki of the distribution's MediaWiki and MariaDB, both private to this experiment. The same
/// visit (redirects, a session, an edit, an upload) through Suimon's pool of php-cgi and through
/// nginx and php-fpm must come to the same. Then a crowd of sessions comes, three times as many as
/// can be served. Workers have a core of their own; database, gateway and crowd share the other.
/// Needs what ./scripts/setup --experiments installs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run mediawiki                  about 9 minutes
  ./experiments/run mediawiki --visit-only     a minute: does it work
  ./experiments/run mediawiki --quick          some minutes, and its figures mean little")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// How many times the capacity the crowd asks for.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    times: u32,
    /// Children of the php-fpm whose number is fixed.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=200))]
    children: u32,
    /// Seconds that count of each crowd.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(2..=600))]
    seconds: u32,
    /// Seconds before that.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=600))]
    warm_up: u32,
    /// Seconds that a visitor waits for a page.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=600))]
    patience: u32,
    /// Leaves out capacity and crowd.
    #[arg(long)]
    visit_only: bool,
    /// Measure nothing: judge earlier data.
    #[arg(long)]
    redraw: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    /// Versions of the programs.
    versions: Vec<String>,
    times: u32,
    patience_s: u32,
    seconds: u32,
    warm_up_s: u32,
    visits: Vec<Visited>,
    /// What differs between the two visits; empty if nothing does.
    differences: Vec<String>,
    /// Closed loads; the most that one completes is the capacity.
    closed: Vec<Cell>,
    capacity_per_s: f64,
    cells: Vec<Cell>,
    claims: Vec<Claim>,
}

/// A visit through a server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Visited {
    server: Server,
    exchanges: Vec<Exchange>,
}

/// A server under a crowd.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    server: Server,
    /// Sessions that came in the counted time, per second.
    offered_per_s: f64,
    begun: u64,
    completed: u64,
    completed_per_s: f64,
    /// Sessions that had had an answer, and then an error, a refusal, a waiting page or none in time.
    cut_off: u64,
    /// Of these failures, refusals and waiting pages.
    refused_inside: u64,
    /// Sessions whose first request failed.
    failed_at_start: u64,
    /// Answers to first requests that say when to come again, and those that show a place in line.
    asked_to_wait: u64,
    /// All failures by kind, and by step.
    failures: BTreeMap<String, u64>,
    failures_by_step: BTreeMap<String, u64>,
    /// From a session's first request to its last answer, seconds; of completed ones.
    session_s_p50: f64,
    /// From a session's first request to its first page.
    wait_s_p90: f64,
    requests_per_s: f64,
    workers: Seen,
    app_core: CoreUse,
    crowd_cpu_share: f64,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let mut data = data::measured(&path, NAME, options.redraw, || measure(&common, options))?;
    data.claims = tell::judge(&data);
    data::save(&path, &data)?;
    print!("{}{}", tell::tables(&data), claims::text(&data.claims));
    Ok(common.quick || claims::all_hold(&data.claims))
}

/// What all servers share.
struct Site<'a> {
    common: &'a Common,
    workspace: &'a Workspace,
    wiki: &'a Wiki<'a>,
    patience_s: u32,
}

fn measure(common: &Common, options: &Options) -> Result<Data> {
    let (seconds, warm_up_s) = if common.quick { (10, 5) } else { (options.seconds, options.warm_up) };
    let workspace = Workspace::open()?;
    eprintln!("installing a wiki");
    let mut database = MariaDb::open(&workspace, common.load_core)?;
    let wiki = Wiki::install(&workspace, common.app_core, &database, &VISITORS)?;
    let site = Site { common, workspace: &workspace, wiki: &wiki, patience_s: options.patience };
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        seed: common.seed,
        versions: versions(),
        times: options.times,
        patience_s: options.patience,
        seconds,
        warm_up_s,
        visits: Vec::new(),
        differences: Vec::new(),
        closed: Vec::new(),
        capacity_per_s: 0.0,
        cells: Vec::new(),
        claims: Vec::new(),
    };
    let fixed = Server::FpmStatic(options.children);
    for (server, name) in [Server::Suimon(Told::Nothing), fixed].into_iter().zip(VISITORS) {
        eprintln!("a visit through {}", server.words());
        let open = site.open(server)?;
        data.visits.push(Visited { server, exchanges: visit::visit(open.address(), name)? });
    }
    data.differences = tell::differences(&data.visits);
    if options.visit_only {
        return Ok(data);
    }
    for server in [fixed, Server::Suimon(Told::Open)] {
        let cell = site.cell(server, Arrivals::Closed(CLOSED_USERS), warm_up_s, seconds.div_ceil(2))?;
        eprintln!("{}, always asked: {:.2} sessions/s", server.words(), cell.completed_per_s);
        data.capacity_per_s = data.capacity_per_s.max(cell.completed_per_s);
        data.closed.push(cell);
    }
    if data.capacity_per_s == 0.0 {
        return failed("no session was completed: there is no capacity to multiply");
    }
    let offered = f64::from(options.times) * data.capacity_per_s;
    let ours = [Told::Nothing, Told::Route].map(Server::Suimon);
    for server in ours.into_iter().chain([Server::FpmPackaged, fixed]) {
        let cell = site.cell(server, Arrivals::Open(offered), warm_up_s, seconds)?;
        eprintln!(
            "{}, {:.2} sessions/s asked for: {:.2} completed, {} cut off",
            server.words(),
            cell.offered_per_s,
            cell.completed_per_s,
            cell.cut_off
        );
        data.cells.push(cell);
    }
    database.must_run()?;
    Ok(data)
}

impl Site<'_> {
    fn open(&self, server: Server) -> Result<Open> {
        Open::start(self.common, self.workspace, self.wiki, server)
    }

    /// Plays a crowd at a server with fresh processes.
    fn cell(&self, server: Server, arrivals: Arrivals, warm_up_s: u32, seconds: u32) -> Result<Cell> {
        let common = self.common;
        let mut open = self.open(server)?;
        let kind = if matches!(arrivals, Arrivals::Closed(_)) { "closed" } else { "crowd" };
        let folder = common.scratch.join(format!("{kind}-{}", server.words().replace([' ', ','], "-")));
        fs::create_dir_all(&folder).trouble(folder.display())?;
        let warm_up = Duration::from_secs(warm_up_s.into());
        let crowd = Crowd {
            suimon: &common.suimon,
            name: "crowd",
            folder: &folder,
            core: common.load_core,
            journey: journey(common.seed, arrivals, self.patience_s),
            to: open.address(),
            warmup: warm_up,
            measure: Some(Duration::from_secs(seconds.into())),
        };
        let states = folder.join("states.jsonl");
        let mut states = File::create(&states).trouble(states.display())?;
        let mut watch = Watch::begin(open.root, open.besides.clone(), warm_up)?;
        let (mut core, mut asked) = (None, None::<Instant>);
        let playing = crowd.start()?;
        let from = playing.measuring_from();
        let report = playing.finish(|_| {
            if core.is_none() && Instant::now() >= from {
                core = Some(CoreTimes::now(common.app_core)?);
            }
            if asked.is_none_or(|at| at.elapsed() >= ASK_EVERY) {
                asked = Some(Instant::now());
                if let Some(state) = open.front.state() {
                    let line = serde_json::to_string(&state).trouble("the gateway's state")?;
                    writeln!(states, "{line}").trouble("the gateway's state")?;
                }
            }
            watch.look()?;
            open.must_run()
        })?;
        let Some(core) = core else { return failed("the crowd ended before it was measured") };
        let per_s = |count: u64| count as f64 / report.measured_s.max(1e-9);
        let mut first = BTreeMap::new();
        for step in &report.steps {
            first.entry(step.kind.clone()).or_insert(step.step.clone());
        }
        let inside = report.steps.iter().filter(|step| first.get(&step.kind) != Some(&step.step));
        Ok(Cell {
            server,
            offered_per_s: per_s(report.sessions_begun),
            begun: report.sessions_begun,
            completed: report.sessions_completed,
            completed_per_s: report.sessions_per_s,
            cut_off: report.mid_session_failures,
            refused_inside: inside.map(|step| step.refusals + step.waiting_pages).sum(),
            failed_at_start: report.first_step_failures,
            asked_to_wait: report.refusals + report.waiting_pages,
            failures: report.failures_by_kind.clone(),
            failures_by_step: report.failures_by_step.clone().into_iter().filter(|(_, n)| *n > 0).collect(),
            session_s_p50: report.session_time.p50_s,
            wait_s_p90: report.first_step_wait.p90_s,
            requests_per_s: report.requests_per_s,
            workers: watch.seen(),
            app_core: core.until(&CoreTimes::now(common.app_core)?),
            crowd_cpu_share: report.crowd_cpu_share,
        })
    }
}

/// Returns the versions of the programs, as they report them.
fn versions() -> Vec<String> {
    let mediawiki = fs::read_to_string(wiki::root().join("includes/Defines.php")).ok().and_then(|text| {
        let behind = text.split("'MW_VERSION', '").nth(1)?;
        Some(format!("MediaWiki {}", behind.split('\'').next()?))
    });
    let others = workers::versions(&[("php-cgi", "-v"), ("nginx", "-v"), ("mariadbd", "--version")]);
    mediawiki.into_iter().chain(others).collect()
}

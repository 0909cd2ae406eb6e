//! `wars`: the filter in wars that nobody has changed, beside the gateway in front of the same.
//!
//! Each cell is a Tomcat, a JDK, a war and what protects it. One Tomcat with the filter and one behind the gateway
//! run at the same time, on the same core, and have visitors in turns: who has none uses nothing.

mod place;
mod tell;
mod thrown;
mod visit;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_crowd::FailureReport;
use suimon_process::Running;

use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::cpu::{CoreTimes, CoreUse, named_threads_time};
use crate::crowd::Crowd;
use crate::data;
use crate::machine::Machine;
use crate::observe::{Seen, observe};
use crate::trouble::{Result, Trouble, failed};
use place::{Jdk, Place, Plan, Tomcat};
use visit::War;

const NAME: &str = "wars";
/// How long the crowd comes to each first, at a time: again and again, until the compilers keep up. Whoever is counted
/// before that is slower for no reason of its own.
const WARM_UP: Duration = Duration::from_secs(20);
/// The share of their core that they use then. They go on for many minutes, for pages that no longer become faster.
const COMPILERS_QUIET: f64 = 0.25;
/// How often it comes at most.
const WARM_UPS_MAX: u32 = 15;
/// The share of the applications' core up to which the next turn may begin, and how long that may take.
const SETTLED: f64 = 0.2;
const SETTLES_MAX: Duration = Duration::from_secs(300);
/// The time at once, before counting and counted, with --quick, which waits for no compiler.
const QUICK: [Duration; 3] = [Duration::from_secs(6), Duration::from_secs(2), Duration::from_secs(3)];

/// Does the servlet filter, in a war that nobody has changed, protect it as well as the gateway in front?
///
/// Tomcat 9, 10.1 and 11 on each Java of 17 or later that is here, with three wars: Tomcat's own examples, a wiki
/// (JSPWiki), which Tomcat 10.1 and 11 convert at deployment, and the papers' shop. More visitors come than can be served, to the filter and
/// to the gateway in turns. Filter and gateway compute on Tomcat's core, so that both have the same; the crowd has the
/// other one. It holds if the filter completes 0.95 of the sessions that the gateway in front does, for each war, and
/// neither fails any inside. On the newest Tomcat and Java two more are played, to tell what a second core and
/// protection come to: the gateway on the other core, and Tomcat alone.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run wars                   about 100 minutes
  ./experiments/run wars --quick           a look whether it runs, with one Java, about 3 minutes
  ./experiments/run wars --wars jspwiki --add          one war again; what the data have of the others stays
  ./experiments/run wars --wars jspwiki --java /usr/lib/jvm/java-17-openjdk-amd64 --out /tmp/wiki      these alone")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', value_enum, default_values_t = [War::Examples, War::Jspwiki, War::Shop])]
    wars: Vec<War>,
    /// Keep what the data have of other wars.
    #[arg(long)]
    add: bool,
    /// Homes of Javas [default: all of 17 or later in /usr/lib/jvm]
    #[arg(long, value_name = "HOME,HOME", value_delimiter = ',')]
    java: Vec<PathBuf>,
    /// Visitors at once.
    #[arg(long, value_name = "N", default_value_t = 150, value_parser = clap::value_parser!(u32).range(1..=5000))]
    users: u32,
    /// How often each is played, in turns.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=20))]
    rounds: u32,
    /// Time before counting in each turn, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    warmup: u64,
    /// Counted in each turn, seconds [default: 10 of the examples, 20 of the others]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// Measure nothing: judge earlier data.
    #[arg(long)]
    redraw: bool,
}

/// What protects a war, and where it computes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    /// The filter, on Tomcat's core.
    Inside,
    /// The gateway, on Tomcat's core.
    InFront,
    /// The gateway, on the other one.
    OtherCore,
    /// Nothing.
    Alone,
}

impl Way {
    const ALL: [Way; 4] = [Way::Inside, Way::InFront, Way::OtherCore, Way::Alone];
    /// What is compared everywhere; the others are played once.
    const COMPARED: [Way; 2] = [Way::Inside, Way::InFront];

    const fn word(self) -> &'static str {
        match self {
            Way::Inside => "inside",
            Way::InFront => "in-front",
            Way::OtherCore => "other-core",
            Way::Alone => "alone",
        }
    }

    /// Returns the gateway's core; `None`: there is no gateway.
    const fn core(self, common: &Common) -> Option<usize> {
        match self {
            Way::Inside | Way::Alone => None,
            Way::InFront => Some(common.app_core),
            Way::OtherCore => Some(common.load_core),
        }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    users: u32,
    warmup_s: f64,
    cells: Vec<Cell>,
    claims: Vec<Claim>,
}

/// A turn: one crowd.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    war: War,
    tomcat: String,
    java: u32,
    way: Way,
    measured_s: f64,
    sessions_per_s: f64,
    completed: u64,
    /// Time-outs, errors and refusals after the first page.
    failures_inside: u64,
    /// Time-outs and errors at the first page.
    failures_at_start: u64,
    /// First pages refused, with a time to come again.
    refused: u64,
    /// What kinds of failures, and at which steps.
    failures: BTreeMap<String, u64>,
    failures_by_step: BTreeMap<String, u64>,
    /// The first of those after the first page, with what was answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failures_told: Vec<FailureReport>,
    /// Where something failed after the first page: the exceptions that Tomcat and the application wrote of in that turn.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    thrown: BTreeMap<String, u64>,
    requests_per_s: f64,
    session_s_p50: f64,
    /// Shares of one core.
    tomcat_cpu_share: f64,
    /// Of Java's compilers, on the other core, in the whole turn; it is part of Tomcat's. `None`: an earlier turn, in which
    /// they had Tomcat's core.
    #[serde(default)]
    compilers_cpu_share: Option<f64>,
    gateway_cpu_share: Option<f64>,
    crowd_cpu_share: f64,
    app_core: CoreUse,
    load_core: CoreUse,
}

impl Cell {
    fn new(plan: &Plan<'_>, way: Way, measured: Duration, turn: Turn) -> Self {
        let Turn { seen, compilers_cpu_share, said } = turn;
        let crowd = seen.crowd;
        let thrown = if crowd.mid_session_failures > 0 { thrown::thrown(&said) } else { BTreeMap::new() };
        // All journeys of a war begin with the same page.
        let first = crowd.steps.first().map_or(String::new(), |step| step.step.clone());
        let is_inside = |failure: &FailureReport| failure.step.rsplit('/').next() != Some(&first);
        Cell {
            war: plan.war,
            tomcat: plan.tomcat.version.clone(),
            java: plan.jdk.version,
            way,
            measured_s: measured.as_secs_f64(),
            sessions_per_s: crowd.sessions_per_s,
            completed: crowd.sessions_completed,
            failures_inside: crowd.mid_session_failures,
            failures_at_start: crowd.first_step_failures,
            refused: crowd.refusals,
            failures: crowd.failures_by_kind.into_iter().filter(|(_, count)| *count > 0).collect(),
            failures_by_step: crowd.failures_by_step.into_iter().filter(|(_, count)| *count > 0).collect(),
            failures_told: crowd.first_failures.into_iter().filter(is_inside).collect(),
            thrown,
            requests_per_s: crowd.requests_per_s,
            session_s_p50: crowd.session_time.p50_s,
            tomcat_cpu_share: seen.app_cpu_share,
            compilers_cpu_share: Some(compilers_cpu_share),
            gateway_cpu_share: seen.gateway_cpu_share,
            crowd_cpu_share: crowd.crowd_cpu_share,
            app_core: seen.app_core,
            load_core: seen.load_core,
        }
    }
}

/// What was seen of a turn.
struct Turn {
    seen: Seen,
    compilers_cpu_share: f64,
    /// What Tomcat wrote meanwhile.
    said: String,
}

/// The times of a turn.
#[derive(Clone, Copy)]
struct Times {
    /// Of one warm-up, and how many there may be.
    compilers: (Duration, u32),
    warmup: Duration,
    /// `None`: as long as the war needs.
    measured: Option<Duration>,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let mut data = data::measured(&path, NAME, options.redraw, || measure(&common, options, &path))?;
    data.claims = tell::judge(&data);
    data::save(&path, &data)?;
    print!("{}{}", tell::tables(&data), claims::text(&data.claims));
    Ok(common.quick || claims::all_hold(&data.claims))
}

fn measure(common: &Common, options: &Options, path: &Path) -> Result<Data> {
    let (tomcats, mut jdks) = (Tomcat::all()?, Jdk::all(&options.java)?);
    let seconds = |seconds| Duration::from_secs(seconds);
    let (mut times, mut rounds) = (
        Times {
            compilers: (WARM_UP, WARM_UPS_MAX),
            warmup: seconds(options.warmup),
            measured: options.seconds.map(seconds),
        },
        options.rounds,
    );
    if common.quick {
        let [compilers, warmup, measured] = QUICK;
        (times, rounds) = (Times { compilers: (compilers, 1), warmup, measured: Some(measured) }, 1);
        jdks.truncate(1);
    }
    let kept = if options.add { kept(options, path)? } else { Vec::new() };
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        seed: common.seed,
        users: options.users,
        warmup_s: times.warmup.as_secs_f64(),
        cells: kept,
        claims: Vec::new(),
    };
    let before = data.cells.len();
    let pairs = tomcats.len() * jdks.len();
    let more = Way::ALL.len() - Way::COMPARED.len();
    let all = options.wars.len() * (pairs * Way::COMPARED.len() + more) * rounds as usize;
    let began = Instant::now();
    for war in &options.wars {
        for (at, tomcat) in tomcats.iter().enumerate() {
            let plans: Vec<Plan<'_>> =
                jdks.iter().map(|jdk| Plan { common, tomcat, jdk, war: *war }).collect();
            // What an earlier run has left is not taken for something new.
            for folder in Way::ALL.iter().flat_map(|way| plans.first().map(|plan| plan.base(*way))) {
                let _ = fs::remove_dir_all(folder);
            }
            for (of_tomcat, plan) in plans.into_iter().enumerate() {
                let number = at * jdks.len() + of_tomcat;
                let mut ways = if number + 1 == pairs { Way::ALL.to_vec() } else { Way::COMPARED.to_vec() };
                // Whoever is first, it is not always the same one.
                if number % 2 == 1 {
                    ways.reverse();
                }
                data.cells.extend(turns(&plan, options.users, &ways, times, rounds)?);
                data::save(path, &data)?;
                eprintln!("{} of {all} turns, {} s", data.cells.len() - before, began.elapsed().as_secs());
            }
        }
    }
    Ok(data)
}

/// Returns the turns of other wars in the data at `path`.
fn kept(options: &Options, path: &Path) -> Result<Vec<Cell>> {
    let Some(data) = data::load::<Data>(path)? else { return Ok(Vec::new()) };
    if data.users != options.users {
        return failed(format!("--add: {} has turns of {} visitors", path.display(), data.users));
    }
    Ok(data.cells.into_iter().filter(|cell| !options.wars.contains(&cell.war)).collect())
}

/// Plays one war in one Tomcat on one Java, protected in each of the ways in turns.
fn turns(plan: &Plan<'_>, users: u32, ways: &[Way], times: Times, rounds: u32) -> Result<Vec<Cell>> {
    let mut places = Vec::new();
    for way in ways {
        let mut place = plan.open(*way)?;
        warm_up(plan, *way, &mut place, users, times.compilers)?;
        places.push((*way, place));
    }
    let measured = times.measured.unwrap_or(Duration::from_secs(plan.war.measured_s()));
    let mut cells = Vec::new();
    for round in 0..rounds {
        for (way, place) in &mut places {
            let turn = play(plan, *way, place, users, (times.warmup, measured))?;
            let cell = Cell::new(plan, *way, measured, turn);
            eprintln!("{}", tell::line(&cell, round + 1));
            cells.push(cell);
        }
    }
    Ok(cells)
}

fn warm_up(
    plan: &Plan<'_>,
    way: Way,
    place: &mut Place,
    users: u32,
    (time, most): (Duration, u32),
) -> Result<()> {
    let (war, tomcat) = (plan.war.name(), &plan.tomcat.version);
    let mut completed = 0;
    let mut failures = BTreeMap::new();
    for number in 1..=most {
        let turn = play(plan, way, place, users, (Duration::ZERO, time))?;
        completed += turn.seen.crowd.sessions_completed;
        failures = turn.seen.crowd.failures_by_step;
        eprintln!(
            "{war}, Tomcat {tomcat}, Java {}, {}, warm-up {number}: {:.2} sessions/s, compilers use {:.2} of a core",
            plan.jdk.version,
            way.word(),
            turn.seen.crowd.sessions_per_s,
            turn.compilers_cpu_share
        );
        if turn.compilers_cpu_share < COMPILERS_QUIET {
            break;
        }
    }
    // Without protection it may be that nobody does, where so many come.
    if completed > 0 || way == Way::Alone {
        return Ok(());
    }
    Err(Trouble::Failed(format!("nobody completes a session of {war} in Tomcat {tomcat}: {failures:?}")))
}

fn play(
    plan: &Plan<'_>,
    way: Way,
    place: &mut Place,
    users: u32,
    (warmup, measured): (Duration, Duration),
) -> Result<Turn> {
    let (common, folder) = (plan.common, plan.base(way));
    place.tomcat.must_run()?;
    settle(common.app_core)?;
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &folder,
        core: common.load_core,
        journey: plan.war.journey(common.seed, users, &place.field),
        to: place.gateway.address,
        warmup,
        measure: Some(measured),
    };
    let pid = place.tomcat.pid();
    let written = written(&place.tomcat).map(|text| text.len());
    let (began, before) = (Instant::now(), compilers_time(pid)?);
    let seen = observe(common, &crowd, pid, &mut place.gateway, &folder.join("states.jsonl"), |_| ())?;
    let compiled = compilers_time(pid)?.saturating_sub(before);
    let compilers_cpu_share = compiled.as_secs_f64() / began.elapsed().as_secs_f64();
    let said = written_since(&place.tomcat, written);
    Ok(Turn { seen, compilers_cpu_share, said })
}

/// Returns what Tomcat and the application have written, to standard output and standard error.
fn written(tomcat: &Running) -> [String; 2] {
    [tomcat.said(), tomcat.complained()]
}

fn written_since(tomcat: &Running, [said, complained]: [usize; 2]) -> String {
    let [all, all_complaints] = written(tomcat);
    // A letter that was half written then is not where the rest begins.
    all.get(said..).unwrap_or(&all).to_owned() + all_complaints.get(complained..).unwrap_or(&all_complaints)
}

/// Waits until the last turn is over for the applications, too: a Tomcat without protection goes on working for
/// visitors who have left.
fn settle(core: usize) -> Result<()> {
    let until = Instant::now() + SETTLES_MAX;
    loop {
        let before = CoreTimes::now(core)?;
        std::thread::sleep(Duration::from_secs(1));
        let busy = before.until(&CoreTimes::now(core)?).busy;
        if busy < SETTLED {
            return Ok(());
        }
        if Instant::now() > until {
            return failed(format!(
                "core {core} is still used to {busy:.2}, {SETTLES_MAX:?} after the last visitors left"
            ));
        }
    }
}

fn compilers_time(pid: u32) -> Result<Duration> {
    named_threads_time(pid, is_compiler)
}

/// Returns whether a thread of this name is one of Java's compilers, as the kernel cuts it: `C2 CompilerThread0`.
fn is_compiler(name: &str) -> bool {
    name.contains("CompilerThre")
}

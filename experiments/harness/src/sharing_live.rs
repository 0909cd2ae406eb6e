//! `sharing-live`: several real gateways before one application at three times what it can do, with a
//! real engine that is killed, paused or cut off.

mod cost;
mod parts;
mod places;

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_crowd::Report;
use suimon_process::{Signal, free_address};

use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::crowd::{Crowd, Playing};
use crate::data;
use crate::gateways::{Gateway, Served};
use crate::machine::Machine;
use crate::trouble::{Result, While};
use cost::Cost;
use parts::{Application, Engine, Relay};
use places::{Doors, Kept, Place};

const NAME: &str = "sharing-live";
/// Pages that the application works on at once, and how long each takes.
const SLOTS: u32 = 8;
const SERVICE: Duration = Duration::from_millis(120);
/// Pages of a session, and how many times more sessions come than the application can do.
const PAGES: u32 = 3;
const TIMES: f64 = 3.0;
/// Goodput and sessions begun of several gateways, as a share of one gateway's.
const GOODPUT_MIN: f64 = 0.95;
const BEGUN_APART_MAX: f64 = 0.03;
/// What gateways had silently ends within this many seconds of a fault, and of its end.
const CHANGING: u64 = 3;
/// Normal is this share of the rate before.
const NORMAL: f64 = 0.9;

/// What do several gateways do together, and when one of them or the engine is lost?
///
/// 1, 2 and 4 gateways before one application that does so many pages at once, at three times its
/// capacity; then two of them while a gateway is killed, the engine is killed, paused or cut off from
/// one. Processor time per request alone beside that of one that shares, at two rates.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
}

/// What goes wrong in the middle of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Fault {
    None,
    /// One gateway is killed.
    GatewayKilled,
    /// The engine is killed, and started again with nothing.
    EngineKilled,
    /// The engine stands still.
    EnginePaused,
    /// One gateway does not reach the engine: what is sent vanishes.
    CutOff,
}

const FAULTS: [(Fault, &str); 4] = [
    (Fault::GatewayKilled, "one gateway is killed"),
    (Fault::EngineKilled, "the engine is killed and comes back empty"),
    (Fault::EnginePaused, "the engine stands still"),
    (Fault::CutOff, "one gateway does not reach the engine"),
];

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    runs: Vec<Run>,
    /// Of a gateway alone and one that shares, in turns.
    costs: Vec<Cost>,
    claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Run {
    gateways: usize,
    fault: Fault,
    /// From the warm-up's end; where nothing goes wrong, the time after it is `later`.
    measured: Rates,
    later: Option<Rates>,
    /// Sessions that failed after they had begun, at gateways that were not killed.
    failed_inside: u64,
    /// From the fault's end until all gateways share again, and as many sessions are completed as
    /// before; seconds.
    shared_again_s: Option<f64>,
    normal_again_s: Option<f64>,
    seconds: Vec<Second>,
    /// Places drawn and asked for at both gateways, where something goes wrong.
    places: Vec<Place>,
    kept: Option<Kept>,
}

/// Sessions of all gateways, per second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Rates {
    begun: f64,
    completed: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Second {
    /// Since the crowds began.
    at_s: f64,
    /// The most requests in the application at once, and the highest limit published.
    inside: u32,
    limit: u32,
    /// By how many the stated bound was exceeded.
    over: u32,
    /// Sessions begun since the start, by what living gateways say.
    begun: u64,
    phases: Vec<String>,
}

/// How long each part of a run takes, seconds.
#[derive(Clone, Copy)]
struct Times {
    warm_up: u64,
    measured: u64,
    /// Measured after that, where nothing goes wrong.
    later: u64,
    fault: u64,
    /// Processor time: without visitors, and at each rate, once unmeasured and once measured; how
    /// often.
    idle: u64,
    cost: u64,
    rounds: u32,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let times = match common.quick {
        true => Times { warm_up: 4, measured: 10, later: 10, fault: 3, idle: 2, cost: 4, rounds: 1 },
        false => Times { warm_up: 12, measured: 28, later: 60, fault: 10, idle: 3, cost: 6, rounds: 3 },
    };
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        seed: common.seed,
        runs: vec![],
        costs: vec![],
        claims: vec![],
    };
    for gateways in [1, 2, 4] {
        eprintln!("{gateways} gateways");
        data.runs.push(play(&common, times, gateways, Fault::None)?);
    }
    for (fault, words) in FAULTS {
        eprintln!("2 gateways, {words}");
        data.runs.push(play(&common, times, 2, fault)?);
    }
    for round in 0..times.rounds {
        eprintln!("processor time, round {}", round + 1);
        for shares in [false, true] {
            data.costs.push(cost::measure(&common, times, shares)?);
        }
    }
    data.claims = judge(&data);
    data::save(&common.out.join("data/result.json"), &data)?;
    let table = table(&data);
    data::write(&common.out.join("table.md"), &format!("{table}\n{}", claims::list(&data.claims)))?;
    print!("{table}{}", claims::text(&data.claims));
    Ok(common.quick || claims::all_hold(&data.claims))
}

/// Returns a gateway's settings; `engine`: that which it shares by, if it does.
fn settings(common: &Common, engine: Option<&str>, gateways: usize) -> String {
    let keys = common.scratch.join("lease.keys");
    let sharing = engine.map_or(String::new(), |engine| {
        format!("[sharing]\nengine = \"{engine}\"\ngroup = \"live\"\ngateways = {gateways}\n")
    });
    format!(
        "[lease]\nkeys = \"{}\"\n[waiting_room]\nstate = \"none\"\ntickets_burst = 100000\n{sharing}",
        keys.display()
    )
}

fn start(common: &Common, app: &Application, name: &str, settings: &str) -> Result<Gateway> {
    let folder = common.scratch.join(name);
    // What an earlier run has left is not known to this one.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).trouble(folder.display())?;
    let (listen, admin) = (free_address()?, free_address()?);
    let to = format!("http://{}", app.address);
    let keys = "../lease.keys";
    Served { to: &to, listen, admin, learned: "none", keys }.start(
        common,
        &folder,
        Some(settings),
        common.app_core,
    )
}

/// Returns what so many sessions per second do at one gateway.
fn journey(common: &Common, number: usize, (per_s, spacing): (f64, &str), lasts: u64) -> String {
    let mut text = format!(
        "seed = {}\n[arrivals.open]\nphases = [{{ for = \"{lasts}s\", rate_per_s = {per_s:.3} }}]\nspacing = \"{spacing}\"\nusers_max = 5000\n\
         [visitor]\nthink = \"200ms\"\npatience = \"30s\"\nreturning = false\n[visitor.in_line]\npatience = \"20s\"\naway = 0.0\n\
         [visitor.on_refusal]\nretries_max = 20\nwait_default = \"2s\"\nwait_max = \"10s\"\n[[journey]]\nname = \"visit\"\n",
        common.seed + number as u64
    );
    for page in 1..=PAGES {
        // Writing into a String cannot fail.
        let _ = write!(
            text,
            "[[journey.steps]]\nname = \"page-{page}\"\npath = \"/page?number={page}\"\nexpect = {{ status = 200 }}\n"
        );
    }
    text
}

fn play(common: &Common, times: Times, count: usize, fault: Fault) -> Result<Run> {
    let app = Application::start(SLOTS, SERVICE)?;
    let mut engine = Some(Engine::start(common, None)?);
    let port = engine.as_ref().map_or(0, |engine| engine.port);
    let relay = Relay::start(port)?;
    let mut gateways = vec![];
    for number in 0..count {
        // The last reaches the engine through what may be cut.
        let to = if number + 1 == count { relay.port } else { port };
        let engine = format!("redis://127.0.0.1:{to}");
        let settings = settings(common, (count > 1).then_some(engine.as_str()), count);
        gateways.push(Some(start(common, &app, &format!("gateway-{number}"), &settings)?));
    }
    let cold_ends = times.warm_up + times.measured;
    let lasts = if fault == Fault::None { cold_ends + times.later } else { cold_ends };
    let per_s = TIMES * f64::from(SLOTS) / SERVICE.as_secs_f64() / f64::from(PAGES) / count as f64;
    let mut crowds: Vec<Playing> = vec![];
    for (number, gateway) in gateways.iter().enumerate() {
        let Some(gateway) = gateway else { continue };
        let name = format!("crowd-{number}");
        let crowd = Crowd {
            suimon: &common.suimon,
            name: &name,
            folder: &common.scratch,
            core: common.load_core,
            journey: journey(common, number, (per_s, "poisson"), lasts),
            to: gateway.address,
            warmup: Duration::from_secs(times.warm_up),
            measure: Some(Duration::from_secs(lasts - times.warm_up)),
        };
        crowds.push(crowd.start()?);
    }
    let began = Instant::now();
    let fault_at = times.warm_up + times.measured / 4;
    let ends_at = fault_at + times.fault;
    let engine_lost_s = matches!(fault, Fault::EngineKilled | Fault::EnginePaused | Fault::CutOff);
    let doors = Arc::new(Doors::new(&gateways, began, engine_lost_s.then_some(fault_at as f64)));
    let visitors = (fault != Fault::None).then(|| {
        let (doors, from) = (Arc::clone(&doors), began + Duration::from_secs(times.warm_up));
        thread::spawn(move || doors.visit(from))
    });
    let mut seconds: Vec<Second> = vec![];
    for second in 1..=lasts {
        thread::sleep((began + Duration::from_secs(second)).saturating_duration_since(Instant::now()));
        seconds.push(look(&app, &gateways, &seconds, began));
        if second == fault_at {
            match fault {
                Fault::None => {}
                Fault::GatewayKilled => {
                    doors.kill(0);
                    gateways[0] = None;
                }
                Fault::EngineKilled => engine = None,
                Fault::EnginePaused => engine.iter().for_each(|engine| engine.process.signal(Signal::STOP)),
                Fault::CutOff => relay.swallow(true),
            }
        }
        if second == ends_at {
            match fault {
                Fault::None | Fault::GatewayKilled => {}
                Fault::EngineKilled => engine = Some(Engine::start(common, Some(port))?),
                Fault::EnginePaused => engine.iter().for_each(|engine| engine.process.signal(Signal::CONT)),
                Fault::CutOff => relay.swallow(false),
            }
        }
    }
    doors.close();
    let reports: Vec<Report> =
        crowds.into_iter().map(|crowd| crowd.finish(|_| Ok(()))).collect::<Result<_>>()?;
    let places = visitors.and_then(|visitors| visitors.join().ok()).unwrap_or_default();
    excuse(&mut seconds, fault, (fault_at, ends_at), count);
    let is_alive = |number: &usize| gateways[*number].is_some();
    let of_living = || (0..count).filter(is_alive).map(|number| &reports[number]);
    let begun = |at: u64| seconds.get(at as usize - 1).map_or(0, |second| second.begun);
    let rates = |from: u64, to: u64| Rates {
        begun: begun(to).saturating_sub(begun(from)) as f64 / (to - from) as f64,
        completed: (from..to).map(|at| completed(&reports, at)).sum::<f64>() / (to - from) as f64,
    };
    let shared = |second: &&Second| {
        second.at_s > ends_at as f64
            && second.phases.iter().all(|phase| phase == "shared" || phase == "killed")
    };
    let back_at = if fault == Fault::GatewayKilled { fault_at } else { ends_at };
    let measured = rates(times.warm_up, cold_ends);
    let later = (lasts > cold_ends).then(|| rates(cold_ends, lasts));
    for Rates { begun, completed } in [Some(measured), later].into_iter().flatten() {
        eprintln!("  {begun:.2} sessions/s begun, {completed:.2} completed");
    }
    Ok(Run {
        gateways: count,
        fault,
        measured,
        later,
        failed_inside: of_living().map(|report| report.sessions_failed_inside).sum(),
        shared_again_s: seconds.iter().find(shared).map(|second| second.at_s - ends_at as f64),
        normal_again_s: normal_again(&reports, times.warm_up, fault_at, back_at),
        seconds,
        kept: (fault != Fault::None).then(|| Kept::of(&places, fault_at as f64)),
        places,
    })
}

/// Returns how many sessions were completed in the second that begins at `at` seconds.
fn completed(reports: &[Report], at: u64) -> f64 {
    let of = |report: &Report| {
        report.series.iter().filter(|second| second.at_s == at).map(|second| second.completed).sum::<u32>()
    };
    f64::from(reports.iter().map(of).sum::<u32>())
}

/// Returns how long after `back_at` as many sessions are completed as before `fault_at`, as a mean of
/// three seconds.
fn normal_again(reports: &[Report], from: u64, fault_at: u64, back_at: u64) -> Option<f64> {
    let completed = |at: u64| completed(reports, at);
    let before = (from..fault_at).map(completed).sum::<f64>() / (fault_at - from) as f64;
    let last = reports.iter().flat_map(|report| &report.series).map(|second| second.at_s).max()?;
    let mean = |at: u64| (at..at + 3).map(completed).sum::<f64>() / 3.0;
    (back_at..last.saturating_sub(2)).find(|at| mean(*at) >= NORMAL * before).map(|at| (at - back_at) as f64)
}

/// One look at the application and the gateways.
fn look(app: &Application, gateways: &[Option<Gateway>], before: &[Second], began: Instant) -> Second {
    let inside = app.most_inside();
    let (mut limit, mut begun, mut phases) = (0, 0, vec![]);
    for gateway in gateways {
        let Some(gateway) = gateway else {
            phases.push("killed".to_string());
            continue;
        };
        let Some(state) = gateway.state() else {
            phases.push("silent".to_string());
            continue;
        };
        let limits = state.routes.iter().chain([&state.ungated]).filter_map(|route| route.limit);
        limit = limit.max(limits.sum::<u32>());
        begun += state.kinds.iter().map(|kind| kind.admitted).sum::<u64>();
        phases.push(state.sharing.map_or_else(|| "alone".to_string(), |sharing| sharing.phase));
    }
    // A gateway that is gone says no more what it has begun.
    let last = before.last().map_or(0, |second| second.begun);
    Second { at_s: began.elapsed().as_secs_f64(), inside, limit, over: 0, begun: begun.max(last), phases }
}

/// Notes by how much each second exceeded the stated bound. The limit is looked at once a second, so
/// that the highest of three counts.
fn excuse(seconds: &mut [Second], fault: Fault, (from, to): (u64, u64), count: usize) {
    let limits: Vec<u32> = seconds.iter().map(|second| second.limit).collect();
    for (at, second) in seconds.iter_mut().enumerate() {
        let limit = limits[at.saturating_sub(2)..limits.len().min(at + 2)].iter().copied().max().unwrap_or(0);
        let (now, gateways) = (at as u64 + 1, count as u32);
        let changes = |moment: u64| now > moment && now <= moment + CHANGING;
        let silent = match fault {
            Fault::GatewayKilled if changes(from) => limit,
            Fault::CutOff if changes(from) || changes(to) => limit,
            Fault::CutOff if now > from && now <= to => (limit / gateways).max(1),
            _ => 0,
        };
        let alone = if count == 1 { 0 } else { gateways };
        second.over = second.inside.saturating_sub(limit.max(gateways) + alone + silent);
    }
}

/// Returns the rates of a run as shares of one gateway's, cold and later.
fn of_one(run: &Run, one: &Run) -> Option<(Rates, Rates)> {
    let share = |of: Rates, one: Rates| Rates {
        begun: of.begun / one.begun,
        completed: of.completed / one.completed,
    };
    Some((share(run.measured, one.measured), share(run.later?, one.later?)))
}

fn judge(data: &Data) -> Vec<Claim> {
    let one = data.runs.iter().find(|run| run.gateways == 1);
    let mut claims = vec![];
    for run in data.runs.iter().filter(|run| run.gateways > 1) {
        let name = format!("{} gateways, {:?}", run.gateways, run.fault);
        if let Some((cold, later)) = one.filter(|_| run.fault == Fault::None).and_then(|one| of_one(run, one))
        {
            for (words, goodput) in [("cold", cold.completed), ("later", later.completed)] {
                claims.push(Claim::new(
                    format!("{name}, {words}: goodput {goodput:.3} of one gateway's, at least {GOODPUT_MIN}"),
                    goodput >= GOODPUT_MIN,
                ));
            }
            let begun = later.begun;
            claims.push(Claim::new(
                format!(
                    "{name}, later: sessions begun {begun:.3} of one gateway's, within {BEGUN_APART_MAX}"
                ),
                (begun - 1.0).abs() <= BEGUN_APART_MAX,
            ));
        }
        let over = run.seconds.iter().map(|second| second.over).max().unwrap_or(0);
        claims.push(Claim::new(
            format!("{name}: {over} requests beyond the stated bound, in any second"),
            over == 0,
        ));
        claims.push(Claim::new(
            format!("{name}: {} sessions failed inside", run.failed_inside),
            run.failed_inside == 0,
        ));
        claims.extend(run.kept.iter().flat_map(|kept| kept.judge(&name)));
    }
    claims.extend(cost::judge(&data.costs));
    claims
}

fn table(data: &Data) -> String {
    let mut out = "| gateways | what goes wrong | begun/s | completed/s | later begun/s | completed/s | failed inside | most beyond the bound | shared again, s | normal again, s |\n|---|---|---|---|---|---|---|---|---|---|\n".to_string();
    let or = |value: Option<f64>| value.map_or("–".to_string(), |value| format!("{value:.1}"));
    let words = |run: &Run| {
        FAULTS.iter().find(|(fault, _)| *fault == run.fault).map_or("nothing", |(_, words)| *words)
    };
    for run in &data.runs {
        let over = run.seconds.iter().map(|second| second.over).max().unwrap_or(0);
        let later =
            |of: fn(Rates) -> f64| run.later.map_or("–".to_string(), |later| format!("{:.2}", of(later)));
        let _ = writeln!(
            out,
            "| {} | {} | {:.2} | {:.2} | {} | {} | {} | {over} | {} | {} |",
            run.gateways,
            words(run),
            run.measured.begun,
            run.measured.completed,
            later(|later| later.begun),
            later(|later| later.completed),
            run.failed_inside,
            or(run.shared_again_s),
            or(run.normal_again_s)
        );
    }
    out.push('\n');
    out.push_str(&places::table(data.runs.iter().filter_map(|run| Some((words(run), run.kept?)))));
    out.push('\n');
    out.push_str(&cost::table(&data.costs));
    out
}

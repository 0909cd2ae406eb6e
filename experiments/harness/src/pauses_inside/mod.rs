//! `pauses-inside`: declared ratios of pause and work for a heavy job, taken around it by the gateway
//! and inside it by the Java agent, on a real Tomcat with one core.

mod agent;
mod draw;
mod tell;

use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_crowd::profile::{PointReport, ProfileReport};
use suimon_process::free_address;

use crate::apps::OpenShop;
use crate::common::{Common, CommonOptions};
use crate::degradation_tomcat::{HEAVY, HEAVY_CLIENTS, HEAVY_SIZE, LIGHT, Load, Side, folder, open};
use crate::gateways::{Gateway, Served};
use crate::machine::Machine;
use crate::trouble::{Result, failed};
use crate::{claims, data};
use agent::Agent;

const NAME: &str = "pauses-inside";
/// Seconds from the beginning of the load that do not count, without pauses, and as many more for each second of pause
/// that is declared for one of work: who comes first is not held, takes some four seconds in its crowd, and has each of
/// those who follow held for four times the ratio. That wave is to be over.
const SETTLE_S: u64 = 25;
const SETTLE_MORE_S: f64 = 12.0;
/// When the heap is looked at, seconds before what counts, as that stops all threads.
const LOOKS_S: [u64; 3] = [12, 9, 6];
/// When the agent is asked what has been done so far: before what counts, as asking takes the load's core a second.
const ASKED_S: u64 = 3;

/// What does it cost to pause inside a job instead of around it?
///
/// Thirty clients ask for a short computation and twenty for an XML file to be parsed and walked, on
/// a Tomcat with one core, behind Suimon with a declared ratio of pause and work for the heavy job:
/// held around by the gateway, or told to the Java agent, which pauses inside. What ratio is reached,
/// how long light jobs take, and what heap the heavy ones hold.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Rounds of all setups, one after the other.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Seconds that count of each cell, after 25 to 73 in which it settles.
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(5..=600))]
    seconds: u32,
    /// Adds rounds to the data that are there.
    #[arg(long, conflicts_with = "redraw")]
    add: bool,
    /// Draws figure and table from the data that are there.
    #[arg(long)]
    redraw: bool,
}

/// What was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    rounds: Vec<Vec<Cell>>,
}

/// Where the pauses of the heavy job are taken, in which ratio.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Setup {
    Without,
    Around(f64),
    Inside(f64),
}

/// The ratios that are declared.
const RATIOS: [f64; 4] = [0.5, 1.0, 2.0, 4.0];

/// One setup in one round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    setup: Setup,
    light: Side,
    heavy: Side,
    /// Seconds of pause for each second of work, over what counts.
    ratio: f64,
    /// Heavy jobs in the application, on average.
    heavy_inside: f64,
    /// Bytes of live objects: with nobody there just before, and under the load.
    idle_bytes: u64,
    held_bytes: Vec<u64>,
}

impl Setup {
    fn all() -> Vec<Setup> {
        let each = RATIOS.into_iter().flat_map(|ratio| [Setup::Around(ratio), Setup::Inside(ratio)]);
        std::iter::once(Setup::Without).chain(each).collect()
    }

    fn declared(self) -> f64 {
        match self {
            Setup::Without => 0.0,
            Setup::Around(ratio) | Setup::Inside(ratio) => ratio,
        }
    }

    fn settle_s(self) -> u64 {
        SETTLE_S + (SETTLE_MORE_S * self.declared()) as u64
    }

    fn words(self) -> String {
        match self {
            Setup::Without => "no pauses".into(),
            Setup::Around(ratio) => format!("{ratio} around"),
            Setup::Inside(ratio) => format!("{ratio} inside"),
        }
    }

    /// Nothing but the declared ratio holds anybody: no limits, no sessions.
    fn settings(self) -> String {
        let place = if matches!(self, Setup::Inside(_)) { "inside" } else { "around" };
        let route = |path: &str| format!("[[route]]\nmatch = \"GET {path}\"\nmode = \"observe\"\n\n");
        format!(
            "[gate]\nsession_law = \"open\"\n\n{}{}[[service]]\nname = \"light\"\nroutes = [\"GET {LIGHT}\"]\n\n[[service]]\nname = \"heavy\"\nroutes = [\"GET {HEAVY}\"]\npause_ratio = {:?}\npauses = \"{place}\"\n\n[degradation]\nmode = \"off\"\n",
            route(LIGHT),
            route(HEAVY),
            self.declared(),
        )
    }

    fn start(self, common: &Common, folder: &Path, shop: &OpenShop) -> Result<Gateway> {
        let (to, listen, admin) = (format!("http://{}", shop.address), free_address()?, free_address()?);
        Served { to: &to, listen, admin, learned: "none", keys: "none" }.start(
            common,
            folder,
            Some(&self.settings()),
            common.load_core,
        )
    }
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let nothing = || Ok(Data { experiment: NAME.into(), machine: common.machine.clone(), rounds: vec![] });
    let mut data = data::measured(&path, NAME, options.add || options.redraw, nothing)?;
    if !options.redraw {
        for _ in 0..if common.quick { 1 } else { options.rounds } {
            let number = data.rounds.len();
            data.rounds.push(round(&common, options, number)?);
            data::save(&path, &data)?;
        }
    }
    draw::figure(&data, &common.out.join("figure.svg"))?;
    data::write(&common.out.join("table.md"), &tell::text(&data))?;
    let claims = tell::claims(&data);
    print!("{}{}", tell::table(&data), claims::text(&claims));
    Ok(common.quick || claims::all_hold(&claims))
}

/// Measures every setup before one application, to which the agent is attached all the time.
fn round(common: &Common, options: &Options, number: usize) -> Result<Vec<Cell>> {
    let place = folder(common, "application")?;
    let shop = open(common, &place, HEAVY_SIZE, &mut None)?;
    let agent = Agent::attach(shop.process.pid())?;
    let setups = Setup::all();
    // Every round begins elsewhere, so that nothing that drifts favours one of them.
    let turns = (0..setups.len()).map(|turn| setups[(turn + 4 * number) % setups.len()]);
    turns
        .map(|setup| {
            let cell = cell(common, options, &shop, &agent, setup)?;
            eprintln!(
                "round {}: {}: came to {:.2}; light mean {:.1} ms, {:.0}/s; heavy {:.2}/s, {:.1} inside",
                number + 1,
                setup.words(),
                cell.ratio,
                1e3 * cell.light.mean_s,
                cell.light.per_s,
                cell.heavy.per_s,
                cell.heavy_inside
            );
            Ok(cell)
        })
        .collect()
}

fn cell(common: &Common, options: &Options, shop: &OpenShop, agent: &Agent, setup: Setup) -> Result<Cell> {
    let folder = folder(common, "cell")?;
    let mut gateway = setup.start(common, &folder, shop)?;
    let idle_bytes = agent.live_bytes()?;
    let settle_s = setup.settle_s();
    let seconds = if common.quick { 5 } else { options.seconds };
    let load = Load {
        light: LIGHT.into(),
        heavy: HEAVY.into(),
        heavy_clients: vec![HEAVY_CLIENTS],
        settle_s,
        seconds,
    };
    let mut looks = LOOKS_S.iter().map(|before| Duration::from_secs(settle_s - before)).peekable();
    let (mut held_bytes, mut from, mut to) = (vec![], None, None);
    let report = load.play(common, &folder, gateway.address, |since| {
        gateway.must_run()?;
        if looks.next_if(|at| since >= *at).is_some() {
            held_bytes.push(agent.live_bytes()?);
        }
        if from.is_none() && since >= Duration::from_secs(settle_s - ASKED_S) {
            from = Some(agent.done()?);
        }
        if to.is_none() && since >= Duration::from_secs(settle_s + u64::from(seconds)) {
            to = Some(agent.done()?);
        }
        Ok(())
    })?;
    let Some(from) = from else { return failed("the load was over too early") };
    let to = to.map_or_else(|| agent.done(), Ok)?;
    of_report(&report, setup, to.pausing_since(&from), (idle_bytes, held_bytes))
}

fn of_report(
    report: &ProfileReport,
    setup: Setup,
    pausing: f64,
    (idle_bytes, held_bytes): (u64, Vec<u64>),
) -> Result<Cell> {
    let [point] = &report.points[..] else { return failed("one point was to be measured") };
    let PointReport { light, heavy: Some(heavy), .. } = point else {
        return failed("no heavy job was asked for");
    };
    let told = |name: &str| heavy.told.get(name).map_or(0.0, |times| times.mean_s);
    // In the application; the shop does not know of the agent: to it a pause inside is a part of the job.
    let there_s = told("accept") + told("job");
    let heavy_inside = heavy.per_second * there_s;
    let ratio = match setup {
        Setup::Without => 0.0,
        Setup::Around(_) => heavy.response.mean_s / there_s - 1.0,
        // Jobs are long, and each counts only at its end: so how many of them pause at a time, and how many do not.
        Setup::Inside(_) => pausing / (f64::from(HEAVY_CLIENTS) - pausing),
    };
    Ok(Cell {
        setup,
        light: Side::of(light.as_ref()),
        heavy: Side::of(Some(heavy)),
        ratio,
        heavy_inside,
        idle_bytes,
        held_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_settings_file_is_one_suimon_understands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.toml");
        for setup in Setup::all() {
            std::fs::write(&path, setup.settings()).unwrap();
            suimon_settings::Settings::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
        }
    }
}

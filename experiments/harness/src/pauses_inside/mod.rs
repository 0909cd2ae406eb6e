//! `pauses-inside`: declared ratios of pause and work for a heavy job, taken around it by the gateway
//! and inside it by the Java agent, on a real Tomcat with one core.

mod agent;
mod draw;
mod floors;
mod numbers;
mod tell;

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_crowd::profile::{PointReport, ProfileReport, ServiceReport};
use suimon_process::free_address;

use crate::apps::OpenShop;
use crate::common::{Common, CommonOptions};
use crate::degradation_tomcat::{
    HEAVY, HEAVY_CLIENTS, HEAVY_SIZE, LEARNED, LIGHT, Load, Side, folder, learn, open,
};
use crate::gateways::{Gateway, Served};
use crate::machine::Machine;
use crate::trouble::{Result, While, failed};
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
/// how long light jobs take, and what heap the heavy ones hold. Then with no ratio but a floor for the
/// light job, which Suimon keeps by pauses around the heavy one or inside it.
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
    /// Three in each round.
    floors: Vec<floors::Kept>,
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
    /// Bytes of live objects: with nobody there, at the beginning of the round, and under the load.
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
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let nothing = || {
        Ok(Data { experiment: NAME.into(), machine: common.machine.clone(), rounds: vec![], floors: vec![] })
    };
    let mut data = data::measured(&path, NAME, options.add || options.redraw, nothing)?;
    if !options.redraw {
        for _ in 0..if common.quick { 1 } else { options.rounds } {
            round(&common, options, &mut data)?;
            data::save(&path, &data)?;
        }
    }
    draw::figure(&data, &common.out.join("figure.svg"))?;
    data::write(&common.out.join("table.md"), &tell::text(&data))?;
    let claims = tell::claims(&data);
    print!("{}{}{}", tell::table(&data), floors::table(&data.floors), claims::text(&claims));
    Ok(common.quick || claims::all_hold(&claims))
}

/// Measures every setup before one application, to which the agent is attached all the time, and adds it to the data.
fn round(common: &Common, options: &Options, data: &mut Data) -> Result<()> {
    let number = data.rounds.len();
    let place = folder(common, "application")?;
    let shop = open(common, &place, HEAVY_SIZE, &mut None)?;
    let learned = learn(common, &shop)?;
    let agent = Agent::attach(shop.process.pid())?;
    // Nobody is there yet. Between two setups jobs of the last one go on, with what they hold.
    let idle_bytes = agent.live_bytes()?;
    let bench = Bench { common, options, shop: &shop, agent: &agent, idle_bytes };
    let setups = Setup::all();
    // Every round begins elsewhere, so that nothing that drifts favours one of them.
    let turns = (0..setups.len()).map(|turn| setups[(turn + 4 * number) % setups.len()]);
    let cells = turns.map(|setup| cell(&bench, setup, number)).collect::<Result<Vec<_>>>()?;
    data.floors.extend(floors::round(&bench, &learned, &cells, number)?);
    data.rounds.push(cells);
    Ok(())
}

/// The application with the agent in it, before which everything of a round is played.
struct Bench<'a> {
    common: &'a Common,
    options: &'a Options,
    shop: &'a OpenShop,
    agent: &'a Agent,
    /// Bytes of live objects before any of the setups.
    idle_bytes: u64,
}

/// What a load came to.
struct Played {
    report: ProfileReport,
    /// Heavy jobs that paused, on average, over what counts.
    pausing: f64,
    held_bytes: Vec<u64>,
}

impl Bench<'_> {
    /// Plays the load through a gateway with these settings; `learned`: what it has learned before.
    fn play(&self, settings: &str, learned: Option<&Path>, settle_s: u64) -> Result<Played> {
        let Bench { common, agent, .. } = *self;
        let folder = folder(common, "cell")?;
        let mut gateway = self.start(&folder, settings, learned)?;
        let seconds = self.seconds();
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
        Ok(Played { report, pausing: to.pausing_since(&from), held_bytes })
    }

    fn start(&self, folder: &Path, settings: &str, learned: Option<&Path>) -> Result<Gateway> {
        let name = match learned {
            None => "none",
            Some(path) => {
                fs::copy(path, folder.join(LEARNED)).trouble(path.display())?;
                LEARNED
            }
        };
        let (to, listen, admin) = (format!("http://{}", self.shop.address), free_address()?, free_address()?);
        Served { to: &to, listen, admin, learned: name, keys: "none" }.start(
            self.common,
            folder,
            Some(settings),
            self.common.load_core,
        )
    }

    fn seconds(&self) -> u32 {
        if self.common.quick { 5 } else { self.options.seconds }
    }
}

impl Played {
    /// Returns what came of the light and of the heavy job.
    fn jobs(&self) -> Result<(Option<&ServiceReport>, &ServiceReport)> {
        let [point] = &self.report.points[..] else { return failed("one point was to be measured") };
        let PointReport { light, heavy: Some(heavy), .. } = point else {
            return failed("no heavy job was asked for");
        };
        Ok((light.as_ref(), heavy))
    }
}

/// Returns the seconds that a job is in the application. The shop does not know of the agent: to it a pause inside is
/// a part of the job.
fn there_s(heavy: &ServiceReport) -> f64 {
    let told = |name: &str| heavy.told.get(name).map_or(0.0, |times| times.mean_s);
    told("accept") + told("job")
}

fn cell(bench: &Bench<'_>, setup: Setup, number: usize) -> Result<Cell> {
    let played = bench.play(&setup.settings(), None, setup.settle_s())?;
    let cell = of_played(bench.idle_bytes, played, setup)?;
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
}

fn of_played(idle_bytes: u64, played: Played, setup: Setup) -> Result<Cell> {
    let (light, heavy) = played.jobs()?;
    let there_s = there_s(heavy);
    let pausing = played.pausing;
    let ratio = match setup {
        Setup::Without => 0.0,
        Setup::Around(_) => heavy.response.mean_s / there_s - 1.0,
        // Jobs are long, and each counts only at its end: so how many of them pause at a time, and how many do not.
        Setup::Inside(_) => pausing / (f64::from(HEAVY_CLIENTS) - pausing),
    };
    Ok(Cell {
        setup,
        light: Side::of(light),
        heavy: Side::of(Some(heavy)),
        ratio,
        heavy_inside: heavy.per_second * there_s,
        idle_bytes,
        held_bytes: played.held_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_settings_file_is_one_suimon_understands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.toml");
        let floors = floors::PLACES.map(|place| floors::settings(place, 229.0));
        for settings in Setup::all().into_iter().map(Setup::settings).chain(floors) {
            fs::write(&path, settings).unwrap();
            suimon_settings::Settings::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
        }
    }
}

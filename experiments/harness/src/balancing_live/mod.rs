//! `balancing-live`: three nodes of unequal speed behind Suimon and behind HAProxy, and nodes chosen by
//! what real agents report, fresh and old.

mod contestants;
mod tell;

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_model::Rng;
use suimon_statistics::median;

use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::cpu::{CoreTimes, CoreUse};
use crate::crowd::Crowd;
use crate::data;
use crate::lab_nodes::{self, LabNode};
use crate::machine::Machine;
use crate::proxy_cost::shuffle;
use crate::trouble::{Result, Trouble};
use contestants::{Contestant, Standing};

const NAME: &str = "balancing-live";
/// Requests that each node serves at once: speeds of 1 : 2 : 4.
const SLOTS: [u32; 3] = [2, 4, 8];
/// Mean seconds of a request in a slot, exponential, and the share of it that is computed.
const MEAN_S: f64 = 0.04;
const CPU: f64 = 0.02;
/// How long a visitor waits for an answer, seconds.
const PATIENCE_S: u32 = 2;
/// What is asked for, as shares of what the nodes can do together: nearly all of it, more than it, and
/// for the comparison of reports, where there is some room.
const FULL: f64 = 0.95;
const OVER: f64 = 1.2;
const ROOM: f64 = 0.85;
/// What a gateway that learns is asked for at first, and how long, seconds: it knows nothing of the
/// application when it starts.
const LEARNS_AT: [f64; 2] = [0.5, 0.95];
const LEARNS_S: u32 = 40;

/// Does a gateway get out of unequal nodes what they can do, and by old reports, too?
///
/// Three nodes serve 50, 100 and 200 requests per second. Suimon, which learns their shares, and HAProxy
/// with roundrobin, leastconn, random(2) (the less loaded of two), and with leastconn and the number of
/// requests that each node serves at once, are asked for 0.95 and 1.2 of that, one after the other in
/// random order; all of them stand at the same time. It also chooses by what `suimon agent` reports every 10 ms and every second, at 0.85.
/// It holds if Suimon completes 0.95 of what the nodes can do when asked for more, and if the 99th
/// percentile with old reports is at most 1.5 times that with fresh ones.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run balancing-live                 about ten minutes
  ./experiments/run balancing-live --rounds 9
  ./experiments/run balancing-live --reports       only old and fresh reports
  ./experiments/run balancing-live --redraw        tables and figure from the data that is there")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Rounds; each plays everything once.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Seconds of each play before they count, and that count.
    #[arg(long, value_name = "SECONDS", default_value_t = 6.0)]
    warmup: f64,
    #[arg(long, value_name = "SECONDS", default_value_t = 8.0)]
    seconds: f64,
    /// Only the comparison of old and fresh reports: two minutes and a half; without HAProxy.
    #[arg(long)]
    reports: bool,
    /// Measures nothing: tables, claims and figure again from the data.
    #[arg(long)]
    redraw: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    slots: Vec<u32>,
    mean_s: f64,
    /// What the nodes can do together.
    capacity_per_s: f64,
    patience_s: u32,
    plays: Vec<Play>,
    summaries: Vec<Summary>,
    claims: Vec<Claim>,
}

/// One contestant in one round under one load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Play {
    round: u32,
    contestant: Contestant,
    /// What was asked for, as a share of what the nodes can do.
    offered: f64,
    asked: u64,
    completed_per_s: f64,
    failed: u64,
    refused: u64,
    p50_s: f64,
    p99_s: f64,
    /// The share of each node of Suimon's requests in flight, at the end; their mean is 1.
    shares: Vec<f64>,
    crowd_cpu_share: f64,
    load_core: CoreUse,
    app_core: CoreUse,
}

/// Medians of all rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Summary {
    contestant: Contestant,
    offered: f64,
    rounds: usize,
    completed_per_s: f64,
    /// Of what the nodes can do together: median, least and most.
    of_capacity: f64,
    of_capacity_min: f64,
    of_capacity_max: f64,
    failed_share: f64,
    p50_s: f64,
    p99_s: f64,
    p99_s_min: f64,
    p99_s_max: f64,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if !(0.5..=600.0).contains(&options.warmup) || !(1.0..=600.0).contains(&options.seconds) {
        return Err(Trouble::Usage("--warmup, --seconds: must be from 0.5 and 1 to 600".to_owned()));
    }
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let mut data = data::measured(&path, NAME, options.redraw, || measure(&common, options))?;
    data.summaries = summaries(&data);
    data.claims = tell::judge(&data);
    data::save(&path, &data)?;
    tell::figure(&data, &common.out.join("figure.svg"))?;
    print!("{}{}", tell::tables(&data), claims::text(&data.claims));
    Ok(common.quick || claims::all_hold(&data.claims))
}

fn capacity_per_s() -> f64 {
    f64::from(SLOTS.iter().sum::<u32>()) / MEAN_S
}

fn measure(common: &Common, options: &Options) -> Result<Data> {
    let nodes: Result<Vec<(LabNode, u32)>> = SLOTS
        .iter()
        .enumerate()
        .map(|(at, slots)| Ok((lab_nodes::start(common, &format!("node{at}"), *slots, MEAN_S, CPU)?, *slots)))
        .collect();
    let mut nodes = nodes?;
    let mut cells: Vec<(Contestant, f64)> = Vec::new();
    let full = if options.reports { &[][..] } else { &[FULL, OVER] };
    for offered in full.iter().copied() {
        cells.extend(Contestant::FULL.map(|contestant| (contestant, offered)));
    }
    cells.extend(Contestant::REPORTS.map(|contestant| (contestant, ROOM)));
    let (rounds, warmup, seconds) =
        if common.quick { (1, 2.0, 3.0) } else { (options.rounds, options.warmup, options.seconds) };
    let times = [warmup, seconds].map(Duration::from_secs_f64);
    let mut standing = Vec::new();
    let compared = Contestant::ALL.into_iter();
    for contestant in compared.filter(|it| cells.iter().any(|(other, _)| other == it)) {
        let folder = common.scratch.join(contestant.name().replace([' ', ',', '(', ')'], "-"));
        let mut one = contestant.start(common, &folder, &nodes)?;
        if contestant.is_suimon() {
            eprintln!("{} learns", contestant.name());
            learn(common, &mut one, &nodes)?;
        }
        standing.push(one);
    }
    let mut rng = Rng::new(common.seed);
    let mut plays = Vec::new();
    for round in 1..=rounds {
        shuffle(&mut rng, &mut cells);
        for (contestant, offered) in &cells {
            let one = standing.iter_mut().find(|one| one.contestant == *contestant);
            let Some(one) = one else { continue };
            let play = play(common, (round, *offered), one, &mut nodes, times)?;
            eprintln!(
                "round {round} of {rounds}: {}, {offered} asked for: {:.1}/s, p99 {:.2} s",
                contestant.name(),
                play.completed_per_s,
                play.p99_s
            );
            plays.push(play);
        }
    }
    Ok(Data {
        experiment: NAME.to_owned(),
        machine: common.machine.clone(),
        seed: common.seed,
        slots: SLOTS.to_vec(),
        mean_s: MEAN_S,
        capacity_per_s: capacity_per_s(),
        patience_s: PATIENCE_S,
        plays,
        summaries: Vec::new(),
        claims: Vec::new(),
    })
}

/// Lets a gateway find the limits and shares of an application that it does not know.
fn learn(common: &Common, one: &mut Standing, nodes: &[(LabNode, u32)]) -> Result<()> {
    let seconds = if common.quick { LEARNS_S / 2 } else { LEARNS_S };
    let [low, high] = LEARNS_AT.map(|share| share * capacity_per_s());
    let half = seconds / 2;
    let arrivals = format!(
        "phases = [{{ for = \"{half}s\", rate_per_s = {low:.3} }}, {{ for = \"{half}s\", rate_per_s = {high:.3} }}]"
    );
    crowd(common, one, &arrivals, [Duration::ZERO, Duration::from_secs(seconds.into())], common.seed)
        .play()?;
    lab_nodes::wait_until_idle(nodes.iter().map(|(node, _)| node))
}

fn crowd<'a>(
    common: &'a Common,
    one: &'a Standing,
    arrivals: &str,
    [warmup, seconds]: [Duration; 2],
    seed: u64,
) -> Crowd<'a> {
    Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &one.folder,
        core: common.load_core,
        journey: journey(seed, arrivals),
        to: one.gateway.address,
        warmup,
        measure: Some(seconds),
    }
}

fn play(
    common: &Common,
    (round, offered): (u32, f64),
    one: &mut Standing,
    nodes: &mut [(LabNode, u32)],
    times: [Duration; 2],
) -> Result<Play> {
    let arrivals = format!("rate_per_s = {:.3}", offered * capacity_per_s());
    // The same visitors for all contestants of a round.
    let playing = crowd(common, one, &arrivals, times, common.seed + u64::from(round)).start()?;
    let before = [CoreTimes::now(common.load_core)?, CoreTimes::now(common.app_core)?];
    let report = playing.finish(|_| {
        one.gateway.must_run()?;
        Ok(nodes.iter_mut().try_for_each(|(node, _)| node.process.must_run())?)
    })?;
    let [load_core, app_core] = before;
    let (load_core, app_core) = (
        load_core.until(&CoreTimes::now(common.load_core)?),
        app_core.until(&CoreTimes::now(common.app_core)?),
    );
    let shares =
        one.gateway.state().map_or(Vec::new(), |state| state.nodes.iter().map(|node| node.share).collect());
    lab_nodes::wait_until_idle(nodes.iter().map(|(node, _)| node))?;
    Ok(Play {
        round,
        contestant: one.contestant,
        offered,
        asked: report.sessions_begun,
        completed_per_s: report.sessions_per_s,
        failed: report.first_step_failures,
        refused: report.refusals + report.waiting_pages,
        p50_s: report.session_time.p50_s,
        p99_s: report.session_time.p99_s,
        shares,
        crowd_cpu_share: report.crowd_cpu_share,
        load_core,
        app_core,
    })
}

/// Returns the journey file of visitors who ask for one page, and do not come back.
fn journey(seed: u64, arrivals: &str) -> String {
    format!(
        "seed = {seed}\n\n[arrivals.open]\n{arrivals}\n\n[visitor]\npatience = \"{PATIENCE_S}s\"\n\
         returning = false\n\n[visitor.on_failure]\nretries_max = 0\n\n[visitor.on_refusal]\nretries_max = 0\n\n\
         [[journey]]\nname = \"page\"\n\n[[journey.steps]]\nname = \"page\"\npath = \"/page\"\nexpect = {{ status = 200, text = \"served by\" }}\n"
    )
}

fn summaries(data: &Data) -> Vec<Summary> {
    let full = [FULL, OVER].into_iter().flat_map(|load| Contestant::FULL.map(|one| (one, load)));
    let cells = full.chain(Contestant::REPORTS.map(|one| (one, ROOM)));
    cells.filter_map(|(contestant, offered)| summary(data, contestant, offered)).collect()
}

fn summary(data: &Data, contestant: Contestant, offered: f64) -> Option<Summary> {
    let is_meant = |play: &&Play| play.contestant == contestant && (play.offered - offered).abs() < 1e-9;
    let plays: Vec<&Play> = data.plays.iter().filter(is_meant).collect();
    if plays.is_empty() {
        return None;
    }
    let all = |of: fn(&Play) -> f64| plays.iter().map(|play| of(play)).collect::<Vec<f64>>();
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let (rates, p99s) = (all(|play| play.completed_per_s), all(|play| play.p99_s));
    let lost = all(|play| (play.failed + play.refused) as f64 / (play.asked as f64).max(1.0));
    Some(Summary {
        contestant,
        offered,
        rounds: plays.len(),
        completed_per_s: median(&rates),
        of_capacity: median(&rates) / data.capacity_per_s,
        of_capacity_min: least(&rates) / data.capacity_per_s,
        of_capacity_max: most(&rates) / data.capacity_per_s,
        failed_share: median(&lost),
        p50_s: median(&all(|play| play.p50_s)),
        p99_s: median(&p99s),
        p99_s_min: least(&p99s),
        p99_s_max: most(&p99s),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journey_is_one_the_crowd_understands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journey.toml");
        std::fs::write(&path, journey(1, "rate_per_s = 332.5")).unwrap();
        suimon_settings::journey::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
    }
}

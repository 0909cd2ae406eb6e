//! `cluster-live`: the fourth paper's workload A with real processes that the gateway starts and ends,
//! beside the simulator; and what faults of nodes cost.

mod faults;
mod place;
mod rise;
mod scenario;
mod tell;

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::claims::{self, Claim};
use crate::common::{CommonOptions, experiments};
use crate::data;
use crate::machine::Machine;
use crate::trouble::Result;
use faults::{Case, Fault};
use rise::Rise;
use scenario::{Rate, Scenario};

const NAME: &str = "cluster-live";
/// Seeds of the simulator.
const SEEDS: u64 = 12;

/// Do real nodes come and go as the simulator says, and what do visitors notice when nodes fail?
///
/// `suimon serve` with provider = "processes" plays the scenario file of the folder: 5, 15 and 5 page
/// views per second, 3 nodes at first, 10 at most. Then four nodes at 0.6 of what they can do: one is
/// killed, one frozen, one answers 500 at once, one is slowed fivefold, and all are killed and come back
/// after ten seconds. It holds if real nodes are within 15 % of the simulated ones, no begun session is
/// lost for a reason that is ours, goodput comes back to 0.9, and those who come while all nodes are gone
/// keep their places and are told.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run cluster-live                   about six minutes
  ./experiments/run cluster-live --only frozen,slow
  ./experiments/run cluster-live --redraw          tables and figure from the data that is there")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Plays of the rise.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=20))]
    rounds: u64,
    /// Only these faults.
    #[arg(long, value_name = "FAULT", value_enum, value_delimiter = ',')]
    only: Vec<Fault>,
    /// The scenario [default: that of the experiment's folder]
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Measures nothing: tables, claims and figure again from the data.
    #[arg(long)]
    redraw: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    /// Work of a page view, node-seconds.
    view_s: f64,
    counted_s: (u32, u32),
    simulated: Vec<Rise>,
    live: Vec<Rise>,
    cases: Vec<Case>,
    claims: Vec<Claim>,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let file = options.scenario.clone().unwrap_or_else(|| experiments().join(NAME).join("scenario.toml"));
    let mut scenario = Scenario::read(&file)?;
    if common.quick {
        scenario.phase = vec![Rate { seconds: 8, per_s: 5.0 }, Rate { seconds: 8, per_s: 12.0 }];
        scenario.counted = scenario::Counted { from_s: 8, until_s: 16 };
    }
    let path = common.out.join("data/result.json");
    let measure = || {
        let mut data = Data {
            experiment: NAME.to_owned(),
            machine: common.machine.clone(),
            seed: common.seed,
            view_s: scenario.view_s(),
            counted_s: (scenario.counted.from_s, scenario.counted.until_s),
            simulated: (0..SEEDS).map(|seed| rise::simulated(&scenario, common.seed + seed)).collect(),
            live: Vec::new(),
            cases: Vec::new(),
            claims: Vec::new(),
        };
        let rounds = if common.quick { options.rounds.min(1) } else { options.rounds };
        for round in 0..rounds {
            let rise = rise::live(&common, &scenario, common.seed + round)?;
            eprintln!(
                "rise {} of {rounds}, {} s: {:.2} nodes, a page view takes {:.2} s",
                round + 1,
                scenario.lasts_s(),
                rise.nodes,
                rise.mean_s
            );
            data.live.push(rise);
        }
        let chosen = if options.only.is_empty() { &Fault::ALL[..] } else { &options.only[..] };
        for fault in chosen {
            let case = faults::play(&common, &scenario, *fault)?;
            eprintln!("{}", tell::line(&case));
            data.cases.push(case);
        }
        Ok(data)
    };
    let mut data = data::measured(&path, NAME, options.redraw, measure)?;
    data.claims = tell::judge(&data);
    data::save(&path, &data)?;
    tell::figure(&data, &common.out.join("figure.svg"))?;
    print!("{}{}", tell::tables(&data), claims::text(&data.claims));
    Ok(common.quick || claims::all_hold(&data.claims))
}

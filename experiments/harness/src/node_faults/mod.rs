//! `node-faults`: what visitors notice when nodes fail in every way that nodes do, and come back.

mod faults;
mod scene;
mod storm;
mod tell;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::claims::{self, Claim};
use crate::common::CommonOptions;
use crate::data;
use crate::machine::Machine;
use crate::trouble::Result;
use faults::{Case, Fault};
use storm::{Before, Storm};

const NAME: &str = "node-faults";

/// What do visitors notice when nodes fail in every way that nodes do, and come back?
///
/// Three nodes behind one gateway that nobody has told anything but their addresses, and sessions at 0.7
/// of what they can do. One is killed and started again; all are; one freezes; one takes requests and
/// answers none; one answers 500 to everything at once; the application's name leads to other nodes. Then
/// clients at 0.9 of it who wait for a second and try again three times at once, and all nodes stall for
/// ten seconds; the same behind HAProxy. It
/// holds if no request fails for a reason that is ours, no place in line is lost, and goodput
/// comes back to 0.9.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run node-faults                    about eight minutes
  ./experiments/run node-faults --only failing
  ./experiments/run node-faults --storms
  ./experiments/run node-faults --redraw           tables and figure from the data that is there")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Only these faults.
    #[arg(long, value_name = "FAULT", value_enum, value_delimiter = ',')]
    only: Vec<Fault>,
    /// Only clients that try again after something has brought all nodes down.
    #[arg(long)]
    storms: bool,
    /// Measures nothing: tables, claims and figure again from the data.
    #[arg(long)]
    redraw: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    cases: Vec<Case>,
    storms: Vec<Storm>,
    claims: Vec<Claim>,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let measure = || {
        let mut data = Data {
            experiment: NAME.to_owned(),
            machine: common.machine.clone(),
            seed: common.seed,
            cases: Vec::new(),
            storms: Vec::new(),
            claims: Vec::new(),
        };
        let chosen = match &options.only[..] {
            [] if options.storms => &[],
            [] if common.quick => &[Fault::Killed][..],
            [] => &Fault::ALL[..],
            only => only,
        };
        // What was learned of nodes that are named in the settings is not believed of those that are found.
        let mut learned = [None, None];
        for fault in chosen {
            let learned = &mut learned[usize::from(fault.is_of_the_name())];
            if learned.is_none() {
                *learned = Some(faults::learn(&common, fault.is_of_the_name())?);
            }
            let Some(learned) = learned else { continue };
            let case = faults::play(&common, *fault, learned)?;
            eprintln!("{}", tell::line(&case));
            data.cases.push(case);
        }
        if options.only.is_empty() || options.storms {
            let learned = storm::learn(&common)?;
            for before in Before::ALL {
                let storm = storm::play(&common, before, &learned)?;
                eprintln!("{}", tell::storm_line(&storm));
                data.storms.push(storm);
            }
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

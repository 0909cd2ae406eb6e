//! `laws`: every scenario and hundreds of generated sites under the gateway's laws and external
//! ones, in the simulator.
//!
//! [`play`] plays them, [`tell`] writes the tables, [`draw`] the figure.

mod draw;
mod play;
mod tell;

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::claims;
use crate::common::folder;
use crate::data;
use crate::trouble::{Result, While};

/// The experiment.
const NAME: &str = "laws";

/// How do our laws compare with those of others, on each scenario and on sites that nobody has
/// looked at?
///
/// Each scenario with ten seeds and each generated site with one, under every law, in the simulator
/// only. It holds if on the generated sites our median is at least 0.95 of what is reachable, the
/// worst tenth at least 0.85, and at most 0.1 % of the sessions fail after admission.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run laws                                  a quarter of an hour on two cores
  ./experiments/run laws --seeds 3 --sites 1000..1050     less of everything
  ./experiments/run laws --redraw                         tables and figure anew, from the data")]
pub(crate) struct Options {
    /// Every scenario is played with this many seeds, from 1 on.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// Generated sites, by their numbers. The laws were developed on those below 1000.
    #[arg(long, value_name = "FROM..TO", default_value = "1000..1300", value_parser = sites)]
    sites: (u64, u64),
    /// Folder for data, tables and figure [default: the experiment's own; with --quick one under
    /// target/]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Simulate nothing: write and draw what the data file holds.
    #[arg(long)]
    redraw: bool,
    /// A few short runs, to see whether everything runs. Its figures have no meaning.
    #[arg(long, conflicts_with = "redraw")]
    quick: bool,
}

/// Everything that was simulated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Data {
    pub(super) seeds: u64,
    pub(super) sites: (u64, u64),
    pub(super) laws: Vec<Law>,
}

/// One law's results.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Law {
    /// As `./experiments/run sim --vs` understands it.
    pub(super) name: String,
    pub(super) scenarios: Vec<Played>,
    pub(super) sites: Sites,
}

/// One scenario under one law: shares of what is reachable, over all seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Played {
    pub(super) scenario: String,
    pub(super) least: f64,
    pub(super) mean: f64,
    pub(super) most: f64,
    /// Mid-session failures ÷ sessions, on average.
    pub(super) failures: f64,
}

/// The generated sites under one law.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Sites {
    /// Goodput as a share of what is reachable, ascending.
    pub(super) shares: Vec<f64>,
    pub(super) failures: u64,
    /// Sessions that were completed or left by their visitors.
    pub(super) sessions: u64,
}

impl Sites {
    /// Returns the share below which `part` (0 to 1) of the sites lie.
    pub(super) fn quantile(&self, part: f64) -> f64 {
        suimon_statistics::quantile(&self.shares, part)
    }

    pub(super) fn mean(&self) -> f64 {
        self.shares.iter().sum::<f64>() / self.shares.len().max(1) as f64
    }

    /// Returns mid-session failures as a share of all sessions.
    pub(super) fn failed(&self) -> f64 {
        self.failures as f64 / self.sessions.max(1) as f64
    }
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let out = folder(NAME, options.out.clone(), options.quick)?;
    fs::create_dir_all(out.join("data")).trouble(out.display())?;
    let path = out.join("data/result.json");
    let data = data::measured(&path, NAME, options.redraw, || play::all(options))?;
    draw::draw(&data, &out.join("figure.svg"))?;
    let claims = tell::claims(&data);
    data::write(&out.join("table.md"), &tell::text(&data, &claims))?;
    print!("{}{}", tell::sites_table(&data), claims::text(&claims));
    Ok(claims::all_hold(&claims))
}

pub(crate) fn sites(text: &str) -> std::result::Result<(u64, u64), String> {
    let number = |text: &str| text.parse::<u64>().ok();
    let range = text.split_once("..").and_then(|(from, to)| Some((number(from)?, number(to)?)));
    range.filter(|(from, to)| from < to).ok_or_else(|| "write FROM..TO, such as 1000..1300".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_sites_is_read_and_anything_else_refused() {
        assert_eq!(sites("1000..1300"), Ok((1000, 1300)));
        for wrong in ["", "7", "7..7", "9..3", "a..b"] {
            assert!(sites(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_quick_run_tells_and_draws_all_laws() {
        let place = tempfile::tempdir().unwrap();
        let out = Some(place.path().to_path_buf());
        let options = Options { seeds: 1, sites: (1000, 1001), out, redraw: false, quick: true };
        run(&options).unwrap();
        let table = fs::read_to_string(place.path().join("table.md")).unwrap();
        assert!(table.contains("| suimon |") && table.contains("| vegas+flow |"), "{table}");
        let data: Data = data::load(&place.path().join("data/result.json")).unwrap().unwrap();
        assert_eq!(tell::text(&data, &tell::claims(&data)), table);
        assert!(fs::read_to_string(place.path().join("figure.svg")).unwrap().contains("Suimon"));
    }

    #[test]
    fn what_is_committed_tells_what_its_data_say() {
        let own = folder(NAME, None, false).unwrap();
        let data: Data = data::load(&own.join("data/result.json")).unwrap().unwrap();
        let table = fs::read_to_string(own.join("table.md")).unwrap();
        assert!(
            table == tell::text(&data, &tell::claims(&data)),
            "write it anew: ./experiments/run {NAME} --redraw"
        );
    }
}

//! `any-site`: sites of every kind, with demand below, around and above their capacity, under any
//! laws, in the simulator.
//!
//! [`play`] plays them, [`oracle`] finds what is reachable, [`tell`] writes the tables.

mod oracle;
mod play;
mod tell;

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_sim::Laws;
use suimon_sites::{Family, Regime};

use crate::trouble::{Result, Trouble, While};

/// How good are laws on kinds of site for which nobody tuned them, and does a site below its
/// capacity notice the gate?
///
/// Site n belongs to the family n modulo the number of families. Each site is played in each regime
/// under each law, in the simulator only. Numbers below 10,000 are for development. Those from
/// 10,000 on are held out, and so are some families (marked *).
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run any-site                                       64 sites, three regimes, suimon and none
  ./experiments/run any-site --regimes below --sites 0..320        whether anybody notices the gate
  ./experiments/run any-site --families pool,threads --sites 0..320
                                                                   twenty sites of each of the two
  ./experiments/run any-site --laws suimon,none,routes-only,paper  more laws; `./experiments/run sim --list-laws` names them
  ./experiments/run any-site --regimes above --oracle              what a gate could reach that is told the bound
  ./experiments/run sim --site chat:below:17 --vs none             one site again, as the last table says")]
pub(crate) struct Options {
    /// Sites, by their numbers.
    #[arg(long, value_name = "FROM..TO", default_value = "0..64", value_parser = super::laws::sites)]
    sites: (u64, u64),
    /// Only these families; numbers of other families are skipped.
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = family)]
    families: Vec<Family>,
    /// Only these regimes: below, around, above.
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = regime)]
    regimes: Vec<Regime>,
    /// The laws, as `./experiments/run sim --vs` takes them; if `none` is among them, the others
    /// are compared with it.
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "suimon,none")]
    laws: Vec<String>,
    /// Also find what is reachable on each site: the best result of gates that know the true bound,
    /// or do nothing. Takes six more runs per site.
    #[arg(long)]
    oracle: bool,
    /// Runs at once [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Write all numbers to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Short runs, to see whether everything runs. Their figures have no meaning.
    #[arg(long)]
    quick: bool,
}

/// One site under one law.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Played {
    pub(super) family: String,
    pub(super) regime: String,
    pub(super) number: u64,
    pub(super) law: String,
    /// Completed sessions as a share of what was reachable; 0 if a checker found a violation.
    pub(super) share: f64,
    /// Sessions completed.
    pub(super) completed: u64,
    /// Mid-session failures ÷ sessions that were completed or left.
    pub(super) failures: f64,
    /// Newcomers refused.
    pub(super) refusals: u64,
    /// Share of the newcomers held at the session gate for over a second.
    pub(super) held_long: f64,
    /// Mean seconds for which admitted visitors waited at the route's gate.
    pub(super) delay_s: f64,
    /// Sessions per second of which the site is capable.
    pub(super) bound: f64,
    /// Virtual seconds, events, and the real seconds of the run.
    pub(super) seconds: f64,
    pub(super) events: u64,
    pub(super) wall_s: f64,
    /// The violation that a checker found.
    pub(super) violation: Option<String>,
}

/// Runs it, and returns whether no checker found a violation.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let asked: Vec<&str> = options.laws.iter().map(String::as_str).collect();
    let told = oracle::TOLD.iter().copied().filter(|name| options.oracle && !asked.contains(name));
    let laws: Vec<(String, Laws)> = asked
        .iter()
        .copied()
        .chain(told)
        .map(|name| Ok((name.to_owned(), suimon_rivals::parse(name).map_err(Trouble::Usage)?)))
        .collect::<Result<_>>()?;
    let mut played = play::all(options, &laws)?;
    // The oracle's runs count, too, although the tables leave them out.
    let is_sound = played.iter().all(|played| played.violation.is_none());
    let mut names = asked;
    if options.oracle {
        played = oracle::asked(&played, &names);
        names.push(oracle::NAME);
    }
    if let Some(path) = &options.json {
        let text =
            serde_json::to_string_pretty(&played).map_err(|error| Trouble::Failed(error.to_string()))?;
        fs::write(path, text + "\n").trouble(path.display())?;
    }
    print!("{}", tell::text(&played, &names));
    Ok(is_sound)
}

fn family(name: &str) -> std::result::Result<Family, String> {
    let names = || Family::ALL.iter().map(|family| family.name()).collect::<Vec<_>>().join(", ");
    Family::parse(name).ok_or_else(|| format!("write one of {}", names()))
}

fn regime(name: &str) -> std::result::Result<Regime, String> {
    Regime::parse(name).ok_or_else(|| "write one of below, around, above".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_run_plays_every_family_in_every_regime() {
        let place = tempfile::tempdir().unwrap();
        let json = place.path().join("all.json");
        let options = Options {
            sites: (0, Family::ALL.len() as u64),
            families: vec![],
            regimes: vec![],
            laws: vec!["suimon".to_owned()],
            oracle: false,
            jobs: Some(1),
            json: Some(json.clone()),
            quick: true,
        };
        assert!(run(&options).unwrap());
        let played: Vec<Played> = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
        assert_eq!(played.len(), Family::ALL.len() * Regime::ALL.len());
    }

    #[test]
    fn what_is_no_family_and_no_regime_is_told_what_there_is() {
        assert!(family("chats").unwrap_err().contains("chat, long-pages"));
        assert!(regime("beside").unwrap_err().contains("around"));
    }
}

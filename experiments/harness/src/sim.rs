//! `sim`: `suimon sim` with external laws and generated sites, which the product does not have.

use std::process::ExitCode;

use clap::Args;
use suimon_cli::{Beyond, Sim};
use suimon_sites::SiteName;

use crate::site;

/// `suimon sim`, with external laws for --vs, and with generated sites.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run sim scenarios/burst-400.toml --vs brpc+flow,vegas+open
  ./experiments/run sim --site chat:below:17 --vs none     a generated site
  ./experiments/run sim --site chat:below:17 --show        what it is
  ./experiments/run sim --list-laws")]
pub(crate) struct Options {
    /// Play a generated site, named as by any-site, such as chat:below:17; can be given several
    /// times. Its number is its seed.
    #[arg(long, value_name = "FAMILY:REGIME:NUMBER", value_parser = SiteName::parse)]
    site: Vec<SiteName>,
    /// With --site: print a description of the site, and end.
    #[arg(long, requires = "site")]
    show: bool,
    #[command(flatten)]
    sim: Sim,
}

/// Plays what is asked for.
pub(crate) fn run(options: &Options) -> ExitCode {
    if options.show {
        options.site.iter().for_each(|site| print!("{}", site::text(&site.scenario())));
        return ExitCode::SUCCESS;
    }
    suimon_cli::simulate(&options.sim, &beyond(&options.site))
}

fn beyond(sites: &[SiteName]) -> Beyond {
    Beyond {
        parse: suimon_rivals::parse,
        catalogue: suimon_rivals::catalogue(),
        how_written: suimon_rivals::how_written(),
        scenarios: sites.iter().map(|site| (format!("--site {site}"), site.scenario())).collect(),
        command: "./experiments/run sim",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn played(words: &[&str]) -> ExitCode {
        run(&Command::parse_from(["sim"].iter().chain(words)).options)
    }

    #[test]
    fn every_law_of_others_that_is_listed_can_be_played() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("few.toml");
        let scenario = "warm_up = \"5s\"\nmeasure = \"20s\"\n[arrivals.closed]\nusers = 12\n[server]\ncores = 1\n\
            [[journey]]\nname = \"j\"\nsteps = [{ name = \"front\", path = \"/\" }]\n\
            [[server.route]]\nmatch = \"* /*\"\ncpu = \"100ms\"\n";
        std::fs::write(&path, scenario).unwrap();
        let json = folder.path().join("numbers.json");
        let words = [path.to_str().unwrap(), "--seed", "1", "--vs", "all", "--json", json.to_str().unwrap()];
        assert_eq!(played(&words), ExitCode::SUCCESS);
        let numbers: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
        let runs = numbers["scenarios"][0]["runs"].as_array().unwrap();
        assert_eq!(runs.len(), suimon_rivals::catalogue().len());
        assert!(runs.iter().all(|run| run["ended"] == "played"), "{runs:?}");
    }

    #[test]
    fn a_generated_site_is_shown_and_played_with_the_command_that_plays_it_again() {
        assert_eq!(played(&["--site", "tiny:below:7", "--show"]), ExitCode::SUCCESS);
        let sites = [SiteName::parse("tiny:below:7").unwrap()];
        let (named, scenario) = &beyond(&sites).scenarios[0];
        assert_eq!((named.as_str(), scenario.name.as_str()), ("--site tiny:below:7", "tiny:below:7"));
    }
}

//! `suimon sim`: plays scenarios in a model of the application, in virtual time, and reports
//! whether their expectations hold.
//!
//! Map: `question` what to play, from the command line and the files; `play` plays it on several
//! threads; `answer` the results; `table` for the terminal; `json` for scripts; `report` (with
//! `figures`) for the browser. `replay` plays recordings of a live gateway instead, and `from`
//! makes a scenario from a gateway's learned state. [`Beyond`] is what an experiment adds: other
//! laws and generated sites.

mod answer;
mod figures;
mod from;
mod json;
mod play;
mod question;
mod replay;
mod report;
mod table;

use crate::args::AdminAt;
use crate::exit::{Exit, with_runtime};
use crate::table::Table;
use crate::{interrupt, terminal, whole_file};
use answer::Answer;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use suimon_sim::{Laws, Scenario, how_written};
use suimon_statistics::table::Align;

/// Ask what would happen: play scenarios in a model, or a recording, in virtual time.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  suimon sim scenarios/                              every scenario of a folder
  suimon sim shop.toml --vs none --seeds 10          with Suimon and without, ten times each
  suimon sim shop.toml --vs all --report shop.html   against everything it is compared with, as a page with charts
  suimon sim shop.toml --seed 7                      one run, always the same
  suimon sim --from http://127.0.0.1:8001 --out site.toml
                                                     the site as a running gateway sees it, to be edited and played
  suimon sim --replay gate.rec                       are the decisions of a recorded gateway made again?
  suimon sim --replay gate.rec --with gate.session_law=open --with gate.order=fifo
                                                     what would have been with other settings?

What would happen with ten times the visitors? With one more core? Copy a scenario, change a line, run it again. A scenario describes
visitors, application and expectations; docs/simulator.md explains the model and its limits.
`suimon check FILE` reports what is wrong with a scenario; `suimon crowd FILE` plays the same one against a real gateway.

--from reads what a gateway has learned from its admin listener: what visitors do, how long they think and wait, how many arrive, how long
requests take, and which route was the bottleneck. Each number in the file says whether it was measured or assumed, and how to correct it.

A recording (see `suimon serve --record`) is played with the parts of the same run that were set aside beside it; name one of those,
FILE.000003, to play it alone. It gives the same decisions, bit for bit. With --with it is an estimate: requests arrive when they arrived
and take as long as they took, whatever the other settings would have changed. docs/recording.md explains its limits.

Exit codes: 0 all expectations hold, or the replay made the same decisions; 1 otherwise, an invariant was violated, or it was interrupted;
2 wrong file or command line, or the recording is damaged, truncated or not a recording.")]
pub struct Sim {
    /// Scenario files, or folders: every *.toml in them whose name does not begin with an
    /// underscore.
    #[arg(value_name = "FILE", conflicts_with_all = ["replay", "from"])]
    pub(crate) files: Vec<PathBuf>,
    /// Play seeds 1 to N, in place of the file's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=question::SEEDS_MAX))]
    pub(crate) seeds: Option<u64>,
    /// Play this seed alone.
    #[arg(long, value_name = "S", conflicts_with = "seeds")]
    pub(crate) seed: Option<u64>,
    /// Compare with this law, or several (see --list-laws); "all" for all of these.
    #[arg(long, value_name = "LAW", value_delimiter = ',')]
    pub(crate) vs: Vec<String>,
    /// Parallel runs; the results do not depend on it. [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Write all numbers to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page for the browser to this file, with charts.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Play this recording of a live gateway instead.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["files", "seeds", "seed", "vs", "jobs", "report"])]
    pub(crate) replay: Option<PathBuf>,
    /// With --replay: a setting of [gate] to try in place of the recorded one, such as
    /// gate.order=fifo. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", requires = "replay")]
    pub(crate) with: Vec<String>,
    /// With --replay: play the complete part of a recording that is truncated or still being
    /// written.
    #[arg(long, requires = "replay")]
    pub(crate) partial: bool,
    /// Make a scenario, to be edited and played, from what a gateway has learned. URL is its admin
    /// listener, such as http://127.0.0.1:8001.
    #[arg(long, value_name = "URL", conflicts_with_all = ["files", "seeds", "seed", "vs", "jobs", "json", "report", "replay", "list_laws"])]
    pub(crate) from: Option<String>,
    /// With --from: file with the token of admin.token_file, where the gateway asks for one.
    #[arg(long, value_name = "FILE", requires = "from")]
    pub(crate) token_file: Option<PathBuf>,
    /// With --from: the site that is meant, where the gateway serves several. [default: the main one]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(crate) from_site: Option<String>,
    /// With --from: the file it is written to. [default: standard output]
    #[arg(long, value_name = "FILE", requires = "from")]
    pub(crate) out: Option<PathBuf>,
    /// With --out: replace the file if it is there.
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// List all laws and exit.
    #[arg(long)]
    pub(crate) list_laws: bool,
}

/// Laws and scenarios beyond the product's own laws and scenario files.
#[derive(Debug)]
pub struct Beyond {
    /// Parses a law's name.
    pub parse: fn(&str) -> Result<Laws, String>,
    /// The available laws: names and descriptions.
    pub catalogue: Vec<(String, String)>,
    /// How to write laws that have no name of their own.
    pub how_written: String,
    /// Scenarios without a file, each with its name on the command line.
    pub scenarios: Vec<(String, Scenario)>,
    /// The command that plays a run again.
    pub command: &'static str,
}

impl Beyond {
    /// Returns no additions, as the product has none.
    fn nothing() -> Self {
        Beyond {
            parse: Laws::parse,
            catalogue: Laws::catalogue(),
            how_written: how_written(),
            scenarios: vec![],
            command: "suimon sim",
        }
    }
}

/// Plays files with the product's own laws.
pub(crate) fn run(args: &Sim) -> Exit {
    play(args, &Beyond::nothing())
}

/// Plays the scenarios, shows the tables, and writes the requested files.
pub(crate) fn play(args: &Sim, beyond: &Beyond) -> Exit {
    if args.list_laws {
        print!("{}", laws(beyond, terminal::columns()));
        return Exit::Done;
    }
    if let Some(admin) = &args.from {
        let (token_file, site) = (args.token_file.clone(), args.from_site.clone());
        let at = AdminAt { token_file, site, ..AdminAt::of(admin) };
        return with_runtime(from::run(&at, args));
    }
    if let Some(recording) = &args.replay {
        return replay::run(recording, args);
    }
    let questions = match question::questions(args, beyond) {
        Ok(questions) => Arc::new(questions),
        Err(why) => {
            eprintln!("{why}");
            return Exit::Usage;
        }
    };
    if let Err(why) = whole_file::try_writing_all(&[("--json", &args.json), ("--report", &args.report)]) {
        eprintln!("{why}");
        return Exit::Usage;
    }
    interrupt::listen();
    let jobs = args.jobs.map_or_else(cores, usize::from);
    let answers = play::play(&questions, jobs);
    let answers: Vec<Answer<'_>> =
        questions.iter().zip(answers).map(|(question, runs)| Answer::new(question, runs)).collect();
    print!("{}", table::tables(&answers));
    if let Err(why) = write(args, &answers) {
        eprintln!("{why}");
        return Exit::Failed;
    }
    if answers.iter().all(Answer::holds) { Exit::Done } else { Exit::Failed }
}

fn write(args: &Sim, answers: &[Answer<'_>]) -> Result<(), String> {
    let numbers = json::Numbers::new(answers);
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&numbers).map_err(|error| format!("--json: {error}"))? + "\n";
        whole_file::write(path, &text)
            .map_err(|error| format!("--json: {}: could not be written: {error}", path.display()))?;
    }
    if let Some(path) = &args.report {
        whole_file::write(path, &report::page(answers, &numbers))
            .map_err(|error| format!("--report: {}: could not be written: {error}", path.display()))?;
        println!("\nReport: {}", path.display());
    }
    Ok(())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the laws to compare with, and how to write others.
fn laws(beyond: &Beyond, columns: usize) -> String {
    let law = |(name, words): &(String, String)| {
        let laws = (beyond.parse)(name).map_or_else(|_| String::new(), |laws| laws.to_string());
        let meaning = if laws == *name { String::new() } else { laws };
        vec![name.clone(), meaning, words.clone()]
    };
    let head = ["name", "stands for", ""].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(beyond.catalogue.iter().map(law)).collect();
    let table = Table::of_sentences(&[Align::Left; 3], rows).text(columns);
    let also = format!("Also: {}", beyond.how_written);
    format!("{table}\n{}", terminal::paragraphs(&also, columns))
}

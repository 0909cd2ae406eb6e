//! `suimon demo`: one crowd, one shop, twice: without Suimon and with it. Shows what happens and
//! writes a report.
//!
//! Shop and gateway are separate processes of this binary, on free ports of 127.0.0.1; this process
//! plays the crowd. The demo first measures the most the shop can do (the bound). Then the same
//! crowd visits a fresh shop directly, and then another fresh one through a gateway without any
//! settings. Where possible the shop has a core of its own, so that gateway and crowd take no CPU
//! time from it.
//!
//! Map: `stage` the three acts; `outcome` their results; `live` and `comparison` for the terminal;
//! `report` (with `figures`) for the browser.

mod comparison;
mod figures;
mod live;
mod outcome;
mod report;
mod stage;

use crate::exit::Exit;
use crate::interrupt;
use crate::whole_file;
use clap::Args;
use outcome::DemoResult;
use stage::Stage;
use std::error::Error;
use std::path::{Path, PathBuf};

/// A value, or a sentence that says why there is none and what may help.
type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  suimon demo
  suimon demo --clients 400 --seconds 60 --json demo.json

Takes about two minutes and leaves a report, suimon-demo.html. Everything happens on this machine, on 127.0.0.1.
Exit codes: 0 Suimon held: no session it let in failed, and more were finished than without it; 1 it did not, or something
failed while running; 2 wrong usage.")]
pub(crate) struct Demo {
    /// Visitors at once, each playing one session after another.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) clients: u32,
    /// Divides all times: costs of pages, think times and patience; from 0.1 to 100.
    #[arg(long, value_name = "N", default_value_t = 4.0, value_parser = scale)]
    pub(crate) scale: f64,
    /// Seed of all random choices; the same for both runs.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How long each of the two runs lasts.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(2..=3600))]
    pub(crate) seconds: u32,
    /// The report, a page for the browser.
    #[arg(long, value_name = "FILE", default_value = "suimon-demo.html")]
    pub(crate) report: PathBuf,
    /// Write all numbers to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the chart of sessions per second to this file, as an SVG picture of its own.
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
}

fn scale(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    value
        .filter(|value| (0.1..=100.0).contains(value))
        .ok_or_else(|| "must be a number from 0.1 to 100".to_owned())
}

/// Plays the demo, shows it, and writes what was asked for.
pub(crate) fn run(args: &Demo) -> Exit {
    let files = [
        ("--report", Some(&args.report)),
        ("--json", args.json.as_ref()),
        ("--picture", args.picture.as_ref()),
    ];
    for (flag, path) in files {
        if let Some(Err(error)) = path.map(|path| whole_file::try_writing(path)) {
            eprintln!(
                "{flag}: {}: cannot be written: {error}",
                path.map_or("".into(), |path| path.display().to_string())
            );
            return Exit::Usage;
        }
    }
    interrupt::listen();
    let outcome = match Stage::new(args).and_then(Stage::play) {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("{error}");
            return Exit::Failed;
        }
    };
    print!("{}", comparison::table(&outcome));
    println!("\n{}", outcome.verdict());
    if let Some(caution) = outcome.caution() {
        println!("{caution}");
    }
    match write(args, &outcome) {
        Ok(()) => {
            println!("\nReport: {}", args.report.display());
            if outcome.holds { Exit::Done } else { Exit::Failed }
        }
        Err(why) => {
            eprintln!("{why}");
            Exit::Failed
        }
    }
}

fn write(args: &Demo, outcome: &DemoResult) -> Outcome<()> {
    let put = |path: &Path, text: String| {
        whole_file::write(path, &text)
            .map_err(|error| format!("{}: could not be written: {error}", path.display()))
    };
    put(&args.report, report::page(outcome))?;
    if let Some(path) = &args.json {
        put(path, serde_json::to_string_pretty(outcome)? + "\n")?;
    }
    if let Some(path) = &args.picture {
        put(path, figures::picture(outcome))?;
    }
    Ok(())
}

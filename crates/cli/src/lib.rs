//! The suimon command as a library: its `main`, and the parts of `suimon sim` that experiments use.
//!
//! Each command has a file; `args.rs` has its arguments. Standard output has the result, standard
//! error the progress. Exit codes: 0 done, and everything checked holds; 1 something does not hold
//! or failed while running; 2 wrong usage or settings.

mod agent;
mod args;
mod check;
mod crowd;
mod demo;
#[cfg(test)]
mod documented;
mod exit;
mod fetch;
mod file_kind;
mod found_nodes;
mod interrupt;
mod local_time;
mod manual;
mod numbers;
mod overrides;
mod page;
mod pool;
mod profile;
mod recording;
mod report;
mod serve;
mod shop;
mod sim;
mod status;
mod summary;
mod table;
mod terminal;
mod waiting_room;
mod whole_file;

use args::{Cli, Command};
use clap::Parser;
use exit::with_runtime;
use std::process::ExitCode;
use suimon_sim::Scenario;

pub use sim::{Beyond, Sim};

/// Runs the command that this process was started with.
pub fn main() -> ExitCode {
    let exit = match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Status(args) => with_runtime(status::run(&args)),
        Command::WaitingRoom(args) => with_runtime(waiting_room::run(&args)),
        Command::Override(args) => with_runtime(overrides::run(&args)),
        Command::Pool(args) => with_runtime(pool::run(&args)),
        Command::Agent(args) => agent::run(&args),
        Command::Crowd(args) => crowd::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Shop(args) => shop::run(&args),
        Command::LabNode(args) => shop::run_node(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => manual::complete(&args),
        Command::Manual(args) => manual::write(&args),
    };
    exit.into()
}

/// Runs `suimon sim` with additional laws and scenarios.
pub fn simulate(args: &Sim, beyond: &Beyond) -> ExitCode {
    sim::play(args, beyond).into()
}

/// Returns what `suimon check` prints about a scenario: headings and texts.
pub fn summary_of(scenario: &Scenario) -> Vec<(&'static str, String)> {
    summary::of_scenario(scenario)
}

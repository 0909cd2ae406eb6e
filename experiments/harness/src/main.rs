//! The experiments: each is a command that measures, writes its data, draws its figure and says whether what was to hold
//! holds.
//!
//! - [`overload`]: `sessions-under-overload`, the figure the whole project is about.
//! - [`under_capacity`]: `under-capacity`, that nobody notices it as long as nothing is wrong.
//! - [`proxy_cost`]: `proxy-cost`, processor time per request beside nginx and HAProxy.
//! - [`waiting_memory`]: `waiting-memory`, what a client that is held waiting costs.
//! - [`kill_and_restart`]: `kill-and-restart`, the application dies under load and comes back.
//!
//! Beneath them: `processes` (pinned, gone with us), `cpu`, `machine`, `apps`, `gateways`, `crowd`, `journey`, `bound`,
//! `observe`; and `data`, `table`, `figures`, `clock`.
//!
//! Exit codes: 0 done and it holds, 1 it does not or something failed while running, 2 wrong usage.

mod apps;
mod bound;
mod clock;
mod common;
mod cpu;
mod crowd;
mod data;
mod figures;
mod gateways;
mod http;
mod journey;
mod machine;
mod observe;
mod overload;
mod processes;
mod table;
mod trouble;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use trouble::Trouble;

/// Runs the experiments, each with one command.
#[derive(Parser, Debug)]
#[command(
    name = "suimon-experiments",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Each has a folder under experiments/ with its question, data and figure. All of them run on two cores of this
machine over loopback only; let nothing else run meanwhile. Ctrl-C leaves no process behind.

Exit codes: 0 done and it holds; 1 it does not hold, or something failed while running; 2 wrong usage."
)]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand, Debug)]
enum Experiment {
    #[command(name = "sessions-under-overload")]
    Overload(overload::Options),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().experiment {
        Experiment::Overload(options) => overload::run(options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(trouble) => {
            eprintln!("{trouble}");
            match trouble {
                Trouble::Usage(_) => ExitCode::from(2),
                Trouble::Failed(_) => ExitCode::FAILURE,
            }
        }
    }
}

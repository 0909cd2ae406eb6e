//! `suimon crowd`: plays a journey file against an address and tells what the visitors saw.

use crate::args::Crowd;
use crate::exit::Exit;
use crate::interrupt;
use std::fs;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use suimon_crowd::{CrowdError, Options, Progress, Report};
use suimon_settings::journey;
use suimon_workload::{Arrivals, Workload};

/// How long an endless workload is measured where nothing is said.
const MEASURE_DEFAULT: Duration = Duration::from_secs(60);
/// Progress lines where nobody watches: one in so many seconds.
const QUIET_EVERY: u64 = 5;

/// Plays, shows how it goes, prints the table, and writes the report.
pub(crate) fn run(args: &Crowd) -> Exit {
    let mut workload = match journey::load(&args.file) {
        Ok(workload) => workload,
        Err(faults) => {
            eprintln!("{faults}");
            return Exit::Usage;
        }
    };
    if let Some(wanted) = args.users
        && let Err(why) = set_users(&mut workload, wanted)
    {
        eprintln!("--users: {why}");
        return Exit::Usage;
    }
    // Asked for now, so that a run is not lost to a path that cannot be written.
    let json = match args.json.as_ref().map(|path| (path, fs::File::create(path))) {
        None => None,
        Some((_, Ok(file))) => Some(file),
        Some((path, Err(error))) => {
            eprintln!("--json: {}: cannot be written: {error}", path.display());
            return Exit::Usage;
        }
    };
    interrupt::listen();
    let endless = workload.arrivals.is_endless();
    let options = Options {
        base_url: args.to.clone(),
        workload,
        seed: args.seed,
        warmup: args.warmup,
        measure: args.duration.or_else(|| endless.then_some(MEASURE_DEFAULT)),
        progress: Some(progress()),
    };
    let outcome = suimon_crowd::run(options, interrupt::first());
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    match outcome {
        Ok(report) => tell(&report, json),
        Err(error) => {
            eprintln!("{error}");
            if let CrowdError::UnknownHost(..) = error { Exit::Failed } else { usage_or_failure(&error) }
        }
    }
}

fn usage_or_failure(error: &CrowdError) -> Exit {
    if error.is_usage() { Exit::Usage } else { Exit::Failed }
}

fn set_users(workload: &mut Workload, wanted: u32) -> Result<(), String> {
    if wanted > journey::USERS_MAX {
        return Err(format!("{wanted} are too many; at most {}", journey::USERS_MAX));
    }
    match &mut workload.arrivals {
        Arrivals::Closed { users, .. } => {
            *users = wanted;
            Ok(())
        }
        Arrivals::Open { .. } => {
            Err("this file has open arrivals, where users come at a rate; change the rate in the file"
                .to_string())
        }
    }
}

/// Returns what shows how it goes: one line that is drawn over, or a line now and then where nobody watches.
fn progress() -> Box<dyn FnMut(&Progress) + Send> {
    let live = std::io::stderr().is_terminal();
    let mut told = 0;
    Box::new(move |progress| {
        let second = progress.at_s as u64;
        let mut stderr = std::io::stderr().lock();
        // Nothing is lost if nobody can be told.
        let _ = if live {
            write!(stderr, "\r\x1b[2K{progress}").and_then(|()| stderr.flush())
        } else if second / QUIET_EVERY > told {
            told = second / QUIET_EVERY;
            writeln!(stderr, "{progress}")
        } else {
            Ok(())
        };
    })
}

fn tell(report: &Report, json: Option<fs::File>) -> Exit {
    print!("{}", report.table());
    if let Some(mut file) = json {
        let written = serde_json::to_writer_pretty(&mut file, report).map_err(std::io::Error::from);
        if let Err(error) = written.and_then(|()| writeln!(file)).and_then(|()| file.sync_all()) {
            eprintln!("--json: the report could not be written: {error}");
            return Exit::Failed;
        }
    }
    if report.sessions_completed == 0 {
        eprintln!(
            "no session was completed: is {} the right place, and does it answer as the file expects?",
            report.base_url
        );
        return Exit::Failed;
    }
    Exit::Done
}

//! `suimon crowd`: plays a journey file or a scenario against an address and reports what visitors
//! saw.

mod judge;

use crate::args::Crowd;
use crate::exit::Exit;
use crate::file_kind::FileKind;
use crate::interrupt;
use crate::terminal::{self, Colour, Line, Live};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use suimon_crowd::{CrowdError, Options, Progress, Report};
use suimon_settings::{Faults, journey, scenario};
use suimon_sim::Scenario;
use suimon_workload::{Arrivals, Workload};

/// How long an endless workload is measured by default.
const MEASURE_DEFAULT: Duration = Duration::from_secs(60);
/// Seconds between two progress lines if standard error is no terminal.
const QUIET_EVERY: u64 = 5;

/// Plays the crowd, shows the progress, prints the table and writes the report.
pub(crate) fn run(args: &Crowd) -> Exit {
    let (mut workload, scenario) = match load(&args.file) {
        Ok(loaded) => loaded,
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
    for kind in &mut workload.kinds {
        let in_line = &mut Arc::make_mut(kind).in_line;
        in_line.farm.share = args.farm.unwrap_or(in_line.farm.share);
        in_line.forge.share = args.forge.unwrap_or(in_line.forge.share);
        if in_line.farm.share + in_line.forge.share > 1.0 {
            eprintln!(
                "--farm, --forge: those who farm and those who forge are more than all; at most 1 together"
            );
            return Exit::Usage;
        }
    }
    // Created before the run, so that no run is lost because its file cannot be written.
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
        seed: args.seed.or_else(|| scenario.as_ref()?.seeds.first().copied()),
        warmup: args.warmup.or_else(|| Some(scenario.as_ref()?.warm_up)).unwrap_or_default(),
        measure: args
            .duration
            .or_else(|| Some(scenario.as_ref()?.measure))
            .or_else(|| endless.then_some(MEASURE_DEFAULT)),
        progress: Some(progress()),
    };
    let outcome = suimon_crowd::run(options, interrupt::first());
    match outcome {
        Ok(report) => {
            let told = tell(&report, json);
            let kept = scenario.is_none_or(|scenario| judge::tell(&scenario.expect, &report));
            if told == Exit::Done && !kept { Exit::Failed } else { told }
        }
        Err(error) => {
            eprintln!("{error}");
            if let CrowdError::UnknownHost(..) = error { Exit::Failed } else { usage_or_failure(&error) }
        }
    }
}

/// Returns the workload, and the scenario if the file is one.
fn load(path: &Path) -> Result<(Workload, Option<Scenario>), Faults> {
    if FileKind::of(path) == FileKind::Scenario {
        let scenario = scenario::load(path)?;
        return Ok((scenario.workload.clone(), Some(scenario)));
    }
    Ok((journey::load(path)?, None))
}

fn usage_or_failure(error: &CrowdError) -> Exit {
    if error.is_usage() { Exit::Usage } else { Exit::Failed }
}

fn set_users(workload: &mut Workload, wanted: u32) -> Result<(), String> {
    if wanted > journey::USERS_MAX {
        return Err(format!("{wanted} are too many; at most {}", journey::USERS_MAX));
    }
    if workload.kinds.iter().any(|kind| kind.users.is_some()) {
        return Err("this file says how many users play each journey; change it in the file".to_string());
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

/// Returns a function that shows the progress: lines that it draws over on a terminal, else a line now
/// and then.
fn progress() -> Box<dyn FnMut(&Progress) + Send> {
    let mut live = terminal::can_draw(&std::io::stderr()).then(Live::default);
    let mut told = 0;
    Box::new(move |progress| {
        let second = progress.at_s as u64;
        if let Some(live) = &mut live {
            let columns = terminal::columns_of(std::io::stderr());
            live.draw(&lines(progress, columns.saturating_sub(1)));
        } else if second / QUIET_EVERY > told {
            told = second / QUIET_EVERY;
            // A failure to show progress does not matter.
            let _ = writeln!(std::io::stderr(), "{progress}");
        }
    })
}

/// Returns the progress in as few lines of at most `columns` columns as its parts fit into.
fn lines(progress: &Progress, columns: usize) -> Vec<Line> {
    let lost = progress.mid_session_failures + progress.first_step_failures > 0;
    let mut lines: Vec<Line> = Vec::new();
    for part in progress.parts() {
        let styled = |line: Line| match part.starts_with("lost") && lost {
            true => line.coloured(Colour::Red, &part),
            false => line.plain(&part),
        };
        match lines.last_mut() {
            Some(line) if line.width() + 3 + part.len() <= columns => {
                *line = styled(std::mem::take(line).faint(" | "));
            }
            _ => lines.push(styled(Line::default())),
        }
    }
    lines
}

fn tell(report: &Report, json: Option<fs::File>) -> Exit {
    let columns = terminal::columns();
    print!("{}", terminal::paragraphs(&report.table(columns), columns));
    if let Some(mut file) = json {
        let written = serde_json::to_writer_pretty(&mut file, report).map_err(std::io::Error::from);
        if let Err(error) = written.and_then(|()| writeln!(file)).and_then(|()| file.sync_all()) {
            eprintln!("--json: the report could not be written: {error}");
            return Exit::Failed;
        }
    }
    if let Some(forge) = report.line.as_ref().and_then(|line| line.forge.as_ref())
        && forge.taken + forge.entered > 0
    {
        eprintln!(
            "edited tickets were believed: {} were taken for a position, {} got in",
            forge.taken, forge.entered
        );
        return Exit::Failed;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_fits_every_terminal_and_says_all_of_it() {
        let progress = Progress {
            at_s: 111.0,
            left_s: Some(489.0),
            measuring: true,
            sessions_under_way: 12_345,
            users: 12_345,
            sessions_completed: 12_345,
            sessions_per_s: 123.4,
            mid_session_failures: 12_345,
            first_step_failures: 0,
            refusals: 12_345,
            waiting_pages: 0,
            in_line: 12_300,
            requests: 1,
            in_flight: 1,
            crowd_cpu_share: 1.0,
        };
        let text = |columns| -> Vec<String> {
            lines(&progress, columns).iter().map(|line| line.written(columns, false)).collect()
        };
        assert_eq!(
            text(79),
            [
                "111 of 600 s | 12345 done, 123.4/s | 45 inside, 12300 in line",
                "lost 12345 inside, 0 at the start | 12345 refused | CPU 100 %",
            ]
        );
        assert_eq!(text(200).len(), 1);
        let narrow = text(39);
        assert_eq!(narrow.len(), 4, "{narrow:?}");
        assert_eq!(narrow.join(" | "), progress.to_string(), "nothing is left out");
        let coloured = lines(&progress, 79)[1].written(79, true);
        assert!(coloured.starts_with("\u{1b}[31mlost 12345 inside, 0 at the start\u{1b}[0m"), "{coloured:?}");
    }
}

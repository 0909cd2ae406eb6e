//! Compares what a scenario expects with what live visitors saw.

use crate::terminal;
use suimon_crowd::{Ended, Report, SecondReport};
use suimon_sim::{Band, Metric};

/// Prints for each band whether it holds, and returns whether none was missed.
pub(super) fn tell(bands: &[Band], report: &Report) -> bool {
    if bands.is_empty() {
        return true;
    }
    println!();
    if report.ended == Ended::Interrupted {
        println!("  interrupted: what is expected was not judged");
        return false;
    }
    let mut all = true;
    for band in bands {
        match value(band, report) {
            Ok(value) => {
                let held = band.holds(value);
                all &= held;
                say(&format!("  {} {band}: {value:.3}", if held { "✓" } else { "✗" }));
            }
            Err(why) => say(&format!("  · {band}: not judged, {why}")),
        }
    }
    all
}

fn say(text: &str) {
    print!("{}", terminal::paragraphs(text, terminal::columns()));
}

/// Returns the band's number, or why visitors cannot know it: a bound, a limit and completed work
/// are not visible from outside.
fn value(band: &Band, report: &Report) -> Result<f64, &'static str> {
    let seen = match band.between {
        None => Seen {
            seconds: report.measured_s,
            completed: report.sessions_completed,
            left: report.sessions_left,
            mid_session_failures: report.mid_session_failures,
            first_step_failures: report.first_step_failures,
            refusals: report.refusals + report.waiting_pages,
        },
        Some((from, to)) => Seen::between(&report.series, from, to).ok_or("the run was shorter")?,
    };
    match band.metric {
        Metric::SessionsPerSecond => Ok(seen.completed as f64 / seen.seconds.max(1e-9)),
        Metric::Completed => Ok(seen.completed as f64),
        Metric::MidSessionFailures => Ok(seen.mid_session_failures as f64),
        Metric::MidSessionFailureShare => {
            Ok(seen.mid_session_failures as f64 / (seen.completed + seen.left).max(1) as f64)
        }
        Metric::FirstStepFailures => Ok(seen.first_step_failures as f64),
        Metric::Refusals => Ok(seen.refusals as f64),
        // As in the simulator: waits cover all of the time counted.
        Metric::WaitP95 => Ok(report.first_step_wait.p95_s),
        _ => Err("visitors cannot see it"),
    }
}

/// What was counted in a period of time.
struct Seen {
    seconds: f64,
    completed: u64,
    left: u64,
    mid_session_failures: u64,
    first_step_failures: u64,
    refusals: u64,
}

impl Seen {
    /// Returns what was counted from `from` to `to`, in whole seconds, if the run was that long.
    fn between(series: &[SecondReport], from: f64, to: f64) -> Option<Seen> {
        let seconds = series.get(from.round() as usize..to.round() as usize)?;
        let sum = |of: fn(&SecondReport) -> u32| seconds.iter().map(|second| u64::from(of(second))).sum();
        Some(Seen {
            seconds: seconds.len() as f64,
            completed: sum(|second| second.completed),
            left: sum(|second| second.left),
            mid_session_failures: sum(|second| second.mid_session_failures),
            first_step_failures: sum(|second| second.first_step_failures),
            refusals: sum(|second| second.refusals) + sum(|second| second.waiting_pages),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(at_s: u64, completed: u32) -> SecondReport {
        SecondReport {
            at_s,
            completed,
            begun: 0,
            left: 0,
            gave_up: 0,
            mid_session_failures: 0,
            first_step_failures: 0,
            refusals: 0,
            waiting_pages: 0,
            requests: 0,
            under_way: 0,
        }
    }

    #[test]
    fn a_stretch_counts_its_own_seconds_and_only_if_all_were_played() {
        let series: Vec<SecondReport> = (0..10).map(|at| second(at, at as u32)).collect();
        let seen = Seen::between(&series, 2.0, 4.0).unwrap();
        assert_eq!((seen.completed, seen.seconds as u32), (5, 2));
        assert!(Seen::between(&series, 8.0, 11.0).is_none());
    }
}

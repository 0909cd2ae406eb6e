//! Both runs side by side, for the terminal; the report shows the same rows.

use super::outcome::{DemoResult, Run};
use crate::numbers::{rate, share, time};
use suimon_crowd::Quantiles;
use suimon_statistics::table::{Align, columns};

/// A row: its name and its two values.
pub(super) type Row = (String, [String; 2]);

/// Returns the table for the terminal.
pub(super) fn table(outcome: &DemoResult) -> String {
    let [none, suimon] = &outcome.runs;
    let head = vec![String::new(), none.name.title().to_owned(), suimon.name.title().to_owned()];
    let blank = || vec![String::new(); 3];
    let mut rows = vec![head];
    let line = |(name, [none, suimon]): Row| vec![name, none, suimon];
    rows.extend(numbers(outcome).into_iter().map(line));
    rows.push(blank());
    rows.push(vec!["failures by step".to_owned(), String::new(), String::new()]);
    rows.extend(failures(outcome).into_iter().map(|(name, values)| line((format!("  {name}"), values))));
    columns(&[Align::Left, Align::Right, Align::Right], &rows)
}

/// Returns the most important numbers.
pub(super) fn numbers(outcome: &DemoResult) -> Vec<Row> {
    let both = |name: &str, of: &dyn Fn(&Run) -> String| {
        let [none, suimon] = &outcome.runs;
        (name.to_owned(), [of(none), of(suimon)])
    };
    let bound = format!("share of the bound, {}", rate(outcome.bound.per_s));
    vec![
        both("sessions finished a second", &|run| rate(run.sessions_per_s)),
        both(&bound, &|run| share(run.goodput_share)),
        both("sessions finished", &|run| run.visitors.sessions_completed.to_string()),
        both("failures inside sessions", &|run| run.mid_session_failures.to_string()),
        both("failures at the first step", &|run| run.first_step_failures.to_string()),
        both("told to wait in line, or to come again", &|run| {
            (run.visitors.refusals + run.visitors.waiting_pages).to_string()
        }),
        both("wasted requests", &|run| run.wasted_requests.to_string()),
        both("wait to get in, median", &|run| median(&run.visitors.first_step_wait)),
        both("a whole session, median", &|run| median(&run.visitors.session_time)),
        both("a whole session, 99 of 100", &|run| {
            when_any(&run.visitors.session_time, run.visitors.session_time.p99_s)
        }),
    ]
}

/// Returns the failures by step, in the order of the journey.
pub(super) fn failures(outcome: &DemoResult) -> Vec<Row> {
    let [none, suimon] = &outcome.runs;
    none.visitors
        .steps
        .iter()
        .map(|step| {
            let of = |run: &Run| failures_at(run, &step.step).to_string();
            (step.step.clone(), [of(none), of(suimon)])
        })
        .collect()
}

/// Returns how often a step failed.
pub(super) fn failures_at(run: &Run, step: &str) -> u64 {
    run.visitors.steps.iter().find(|found| found.step == step).map_or(0, |found| found.failures)
}

fn median(spread: &Quantiles) -> String {
    when_any(spread, spread.p50_s)
}

/// Returns the time, or "none" if nothing was measured.
fn when_any(spread: &Quantiles, seconds: f64) -> String {
    if spread.count == 0 { "none".to_owned() } else { time(seconds) }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Name;
    use super::super::outcome::tests::{outcome, run};
    use super::*;

    #[test]
    fn both_runs_stand_side_by_side() {
        let table = table(&outcome([run(Name::None, 1, 9), run(Name::Suimon, 6, 0)]));
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = table.lines().map(words).collect();
        assert_eq!(lines[0], "without Suimon with Suimon");
        for line in ["sessions finished a second 1.00 6.00", "failures inside sessions 9 0", "search 9 0"] {
            assert!(lines.iter().any(|found| found == line), "{line} in\n{table}");
        }
    }
}

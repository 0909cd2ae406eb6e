//! Tables, claims and the figure.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use suimon_chart::{Axis, Hue, Plot, Series, Span};

use super::Data;
use super::faults::{AT_S, Case, END_S, FROM_S, Fault, LASTS_S, SHARE};
use super::scene::{Known, NODES};
use super::storm::{self, Before, Storm};
use crate::claims::Claim;
use crate::figures::{self, Panel};
use crate::trouble::Result;
use crate::witness::WITNESSES;

/// What brings all nodes down in a storm.
const STALL: &str = "all nodes stall for 10 s";
/// Height of a panel, pixels.
const HEIGHT: f64 = 190.0;

fn kinds(failures: &BTreeMap<String, u64>) -> String {
    if failures.is_empty() {
        return "none".to_owned();
    }
    failures.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
}

fn after(seconds: Option<u32>) -> String {
    seconds.map_or("never".to_owned(), |seconds| format!("{seconds} s"))
}

pub(super) fn judge(data: &Data) -> Vec<Claim> {
    let mut claims = Vec::new();
    for case in &data.cases {
        let words = case.fault.words();
        claims.push(Claim::new(
            format!("{words}: no request fails for a reason that is ours: {}", kinds(&case.failures_by_kind)),
            case.ours() == 0,
        ));
        claims.push(Claim::new(
            format!(
                "{words}: goodput comes back to 0.9 for good: after {}",
                after(case.sessions.normal_for_good_after_s)
            ),
            case.sessions.normal_for_good_after_s.is_some(),
        ));
        claims.push(Claim::new(
            format!(
                "{words}: who came in the middle of it has kept the place: {} of {WITNESSES} have not",
                case.places_lost()
            ),
            case.places_lost() == 0,
        ));
        if case.fault == Fault::AllKilled {
            let told = case.witnesses.iter().filter(|witness| witness.was_told()).count();
            claims.push(Claim::new(
                format!("{words}: who came in the middle of it was told so: {told} of {WITNESSES}"),
                told == WITNESSES,
            ));
        }
    }
    for storm in data.storms.iter().filter(|storm| storm.before == Before::Suimon) {
        claims.push(Claim::new(
            format!(
                "{}, clients try again: 0.9 of the answers come again for good: after {} from its end",
                STALL,
                after(storm.answers.normal_for_good_after_s)
            ),
            storm.answers.normal_for_good_after_s.is_some(),
        ));
    }
    claims
}

/// Returns a storm in one line.
pub(super) fn storm_line(storm: &Storm) -> String {
    format!(
        "{}, {}: {:.0} before, {:.0} during, {:.0} after, where {:.0} are sent; 0.9 again after {}, for good {}",
        STALL,
        storm.before.words(),
        storm.answers.before_per_s,
        storm.answers.during_per_s,
        storm.answers.after_per_s,
        storm.sent_after_per_s,
        after(storm.answers.normal_after_s),
        after(storm.answers.normal_for_good_after_s)
    )
}

/// Returns a case in one line.
pub(super) fn line(case: &Case) -> String {
    format!(
        "{}: {:.1} before, {:.1} during, {:.1} after; 0.9 again after {}, for good {}; {} lost; failures: {}",
        case.fault.words(),
        case.sessions.before_per_s,
        case.sessions.during_per_s,
        case.sessions.after_per_s,
        after(case.sessions.normal_after_s),
        after(case.sessions.normal_for_good_after_s),
        case.lost,
        kinds(&case.failures_by_kind)
    )
}

pub(super) fn tables(data: &Data) -> String {
    let mut out = format!(
        "\n| {NODES} nodes, {SHARE} of what they can do | before, sessions/s | during | after | 0.9 again after | for good after | failed requests | of these the node's 500 | begun sessions lost | places lost | waiting pages | p99 s |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for case in &data.cases {
        let failed: u64 = case.failures_by_kind.values().sum();
        let _ = writeln!(
            out,
            "| {} | {:.1} | {:.1} | {:.1} | {} | {} | {failed} | {} | {} | {} | {} | {:.2} |",
            case.fault.words(),
            case.sessions.before_per_s,
            case.sessions.during_per_s,
            case.sessions.after_per_s,
            after(case.sessions.normal_after_s),
            after(case.sessions.normal_for_good_after_s),
            case.failed_by_node(),
            case.lost,
            case.places_lost(),
            case.waiting_pages,
            case.p99_s
        );
    }
    if !data.storms.is_empty() {
        let _ = writeln!(
            out,
            "\n| {} of what they can do, tried again {} times | | before, answers/s | during | 15 s after it and later | requests/s then | 0.9 again after | for good after |\n|---|---|--:|--:|--:|--:|--:|--:|",
            storm::SHARE,
            storm::RETRIES
        );
    }
    for storm in &data.storms {
        let _ = writeln!(
            out,
            "| {} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {} | {} |",
            STALL,
            storm.before.words(),
            storm.answers.before_per_s,
            storm.answers.during_per_s,
            storm.answers.after_per_s,
            storm.sent_after_per_s,
            after(storm.answers.normal_after_s),
            after(storm.answers.normal_for_good_after_s)
        );
    }
    for case in &data.cases {
        let _ = writeln!(
            out,
            "\n{}{}; failures: {}",
            case.fault.words(),
            known(case.known),
            kinds(&case.failures_by_kind)
        );
        for (at, address, status, reason) in &case.changes {
            let _ = writeln!(out, "  {:6.1} s: {address} {status} ({reason})", at - case.fault_at_s);
        }
        for witness in &case.witnesses {
            let _ = writeln!(out, "  came in the middle of it: {}", witness.line());
        }
    }
    out
}

const fn known(known: Known) -> &'static str {
    match known {
        Known::Settings => "",
        Known::Name => " (looked up)",
        Known::File => " (by a file: a process cannot be given names of its own here)",
    }
}

pub(super) fn figure(data: &Data, path: &Path) -> Result<()> {
    let mut panels: Vec<Panel> = data.cases.iter().map(|case| Panel::Lines(plot(case), HEIGHT)).collect();
    if !data.storms.is_empty() {
        panels.push(Panel::Lines(storm_plot(&data.storms), HEIGHT));
    }
    if panels.is_empty() { Ok(()) } else { figures::write(path, &panels) }
}

fn storm_plot(storms: &[Storm]) -> Plot {
    let points = |storm: &Storm| -> Vec<(f64, f64)> {
        let all = storm.answered_by_second.iter().enumerate().skip(storm::FROM_S as usize);
        let all = all.take_while(|(second, _)| *second < storm::END_S as usize);
        all.map(|(second, count)| (second as f64 - f64::from(storm::AT_S), f64::from(*count))).collect()
    };
    let hue = |before| if before == Before::Suimon { Hue::Blue } else { Hue::Grey };
    let plot = Plot::new(&format!("{STALL}, clients try again: useful answers per second"))
        .x(Axis::new("seconds from the fault"))
        .y(Axis::new("answers/s").from(0.0))
        .describe(
            "Answers in time in each second, before, during and after the fault, behind Suimon and HAProxy.",
        )
        .span(Span::new(0.0, f64::from(storm::LASTS_S), "fault"));
    storms.iter().fold(plot, |plot, storm| {
        plot.series(Series::steps(storm.before.words(), hue(storm.before), points(storm)))
    })
}

fn plot(case: &Case) -> Plot {
    let at = f64::from(AT_S);
    let points = |counts: &[u32]| -> Vec<(f64, f64)> {
        let all = counts.iter().enumerate().take(END_S as usize).skip(FROM_S as usize);
        all.map(|(second, count)| (second as f64 - at, f64::from(*count))).collect()
    };
    let mut plot = Plot::new(&format!("{}: sessions per second", case.fault.words()))
        .x(Axis::new("seconds from the fault"))
        .y(Axis::new("sessions/s").from(0.0))
        .describe("Sessions completed and requests failed in each second before, during and after the fault.")
        .series(Series::steps("completed", Hue::Blue, points(&case.completed_by_second)));
    if case.fault.is_undone() {
        plot = plot.span(Span::new(0.0, f64::from(LASTS_S), "fault"));
    }
    if case.failed_by_second.iter().any(|count| *count > 0) {
        plot = plot.series(Series::steps("failed requests", Hue::Vermilion, points(&case.failed_by_second)));
    }
    plot
}

//! Tables, claims and the figure.

use std::fmt::Write;
use std::path::Path;

use suimon_chart::{Axis, Hue, Plot, Series, Span};
use suimon_statistics::mean;

use super::Data;
use super::faults::{AT_S, COUNTED_FROM_S, Case, Fault, NODES, SHARE};
use super::rise::Rise;
use crate::claims::Claim;
use crate::figures::{self, Panel};
use crate::trouble::Result;
use crate::witness::WITNESSES;

/// How far the real number of nodes may be from the simulated one, as a share.
const NODES_WITHIN: f64 = 0.15;
/// Height of a panel, pixels.
const HEIGHT: f64 = 210.0;

/// Returns the mean of all plays.
fn over(plays: &[Rise], of: impl Fn(&Rise) -> f64) -> f64 {
    mean(&plays.iter().map(of).collect::<Vec<f64>>())
}

/// Returns the failures that are not answers of a failing node.
fn ours(case: &Case) -> u64 {
    case.failures_by_kind.values().sum::<u64>().saturating_sub(case.failed_by_node)
}

fn kinds(case: &Case) -> String {
    if case.failures_by_kind.is_empty() {
        return "none".to_owned();
    }
    case.failures_by_kind.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
}

pub(super) fn judge(data: &Data) -> Vec<Claim> {
    let mut claims = Vec::new();
    if !data.live.is_empty() {
        let (live, simulated) = (over(&data.live, |it| it.nodes), over(&data.simulated, |it| it.nodes));
        let off = (live / simulated - 1.0).abs();
        claims.push(Claim::new(
            format!(
                "as many real nodes are there as simulated ones, within {NODES_WITHIN}: {live:.2} and {simulated:.2}, views take {:.2} and {:.2} s",
                over(&data.live, |it| it.mean_s),
                over(&data.simulated, |it| it.mean_s)
            ),
            off <= NODES_WITHIN,
        ));
        let failed: u64 = data.live.iter().map(|it| it.failed).sum();
        claims.push(Claim::new(format!("nobody fails while nodes come and go: {failed}"), failed == 0));
    }
    for case in &data.cases {
        claims.push(Claim::new(
            format!(
                "{}: no begun session is lost for a reason that is ours: {} lost; failures: {}",
                case.fault.words(),
                case.lost,
                kinds(case)
            ),
            ours(case) == 0,
        ));
        let after =
            case.sessions.normal_after_s.map_or("never".to_owned(), |after| format!("after {after} s"));
        claims.push(Claim::new(
            format!(
                "{}: 0.9 of the goodput before it comes back while the load lasts: {after}",
                case.fault.words()
            ),
            case.sessions.normal_after_s.is_some(),
        ));
        if case.fault == Fault::AllKilled {
            let kept = case.witnesses.iter().filter(|witness| witness.kept_place()).count();
            let told = case.witnesses.iter().filter(|witness| witness.was_told()).count();
            claims.push(Claim::new(
                format!(
                    "those who come while all nodes are gone keep their places, are told, and are served: {kept} and {told} of {WITNESSES}"
                ),
                kept == WITNESSES && told == WITNESSES,
            ));
        }
    }
    let left: usize = data.cases.iter().map(|case| case.left).sum();
    claims.push(Claim::new(format!("no node outlives the gateway: {left}"), left == 0));
    claims
}

/// Returns a case in one line.
pub(super) fn line(case: &Case) -> String {
    format!(
        "{}: {:.1} before, {:.1} during, {:.1} after; failures: {}",
        case.fault.words(),
        case.sessions.before_per_s,
        case.sessions.during_per_s,
        case.sessions.after_per_s,
        kinds(case)
    )
}

pub(super) fn tables(data: &Data) -> String {
    let mut out = format!("\nA page view is {:.2} node-seconds of work.\n", data.view_s);
    if !data.live.is_empty() {
        let (from, until) = data.counted_s;
        let _ = writeln!(
            out,
            "\n| from {from} to {until} s | n_s | peak | page views | mean s | p99 s | failed | in line |\n|---|--:|--:|--:|--:|--:|--:|--:|"
        );
        for (name, plays) in [
            (format!("simulator, {} seeds", data.simulated.len()), &data.simulated),
            (format!("live, {} plays", data.live.len()), &data.live),
        ] {
            let _ = writeln!(
                out,
                "| {name} | {:.2} | {:.1} | {:.0} | {:.2} | {:.2} | {:.0} | {:.0} |",
                over(plays, |it| it.nodes),
                over(plays, |it| f64::from(it.peak)),
                over(plays, |it| it.views as f64),
                over(plays, |it| it.mean_s),
                over(plays, |it| it.p99_s),
                over(plays, |it| it.failed as f64),
                over(plays, |it| it.in_line as f64)
            );
        }
    }
    if !data.cases.is_empty() {
        let _ = writeln!(
            out,
            "\n| {NODES} nodes, {SHARE} of what they can do | before, sessions/s | during | after | 0.9 again after, s | begun sessions lost | by the node's 500 | failures | waiting pages | p99 s | serve in the end |\n|---|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|"
        );
        for case in &data.cases {
            let _ = writeln!(
                out,
                "| {} | {:.2} | {:.2} | {:.2} | {} | {} | {} | {} | {} | {:.2} | {} |",
                case.fault.words(),
                case.sessions.before_per_s,
                case.sessions.during_per_s,
                case.sessions.after_per_s,
                case.sessions.normal_after_s.map_or("-".to_owned(), |after| after.to_string()),
                case.lost,
                case.failed_by_node,
                kinds(case),
                case.waiting_pages,
                case.p99_s,
                case.serving
            );
        }
    }
    for witness in data.cases.iter().flat_map(|case| &case.witnesses) {
        let _ = writeln!(out, "  came while all were gone: {}", witness.line());
    }
    out
}

pub(super) fn figure(data: &Data, path: &Path) -> Result<()> {
    let mut panels = Vec::new();
    if let Some((live, simulated)) = data.live.first().zip(data.simulated.first()) {
        let points = |rise: &Rise| rise.course.iter().map(|(at, count)| (*at, f64::from(*count))).collect();
        let (from, until) = data.counted_s;
        let plot = Plot::new("Nodes that are there, through the rise")
            .x(Axis::new("seconds").from(0.0).to(f64::from(until)))
            .y(Axis::new("nodes").from(0.0).whole())
            .describe("The number of nodes over time, with real processes and simulated.")
            .span(Span::new(f64::from(from), f64::from(until), "counted"))
            .series(Series::steps("simulated", Hue::Amber, points(simulated)))
            .series(Series::steps("live", Hue::Blue, points(live)));
        panels.push(Panel::Lines(plot, HEIGHT));
    }
    panels.extend(data.cases.iter().map(|case| Panel::Lines(plot(case), HEIGHT)));
    if panels.is_empty() { Ok(()) } else { figures::write(path, &panels) }
}

fn plot(case: &Case) -> Plot {
    let at = f64::from(AT_S);
    let points = |counts: &[u32]| -> Vec<(f64, f64)> {
        let all = counts.iter().enumerate().skip(COUNTED_FROM_S as usize);
        all.map(|(second, count)| (second as f64 - at, f64::from(*count))).collect()
    };
    let plot = Plot::new(&format!("{}: page views per second", case.fault.words()))
        .x(Axis::new("seconds from the fault"))
        .y(Axis::new("page views/s").from(0.0))
        .describe("Page views completed and failed in each second before and after the fault.")
        .series(Series::steps("completed", Hue::Blue, points(&case.completed_by_second)));
    if case.failed_by_second.iter().any(|count| *count > 0) {
        return plot.series(Series::steps("failed", Hue::Vermilion, points(&case.failed_by_second)));
    }
    plot
}

//! Tables, claims and the figure.

use std::fmt::Write;
use std::path::Path;

use suimon_chart::{Bars, Hue};

use super::contestants::Contestant;
use super::{Data, FULL, OVER, ROOM, Summary};
use crate::claims::Claim;
use crate::figures::{self, Panel};
use crate::trouble::Result;

/// The least that must be completed of what the nodes can do, when more is asked for, and of what is
/// asked for, when it is less.
const OF_CAPACITY_MIN: f64 = 0.95;
const OF_OFFERED_MIN: f64 = 0.95;
/// What reports of 1 s may cost at most, as a multiple of fresh ones.
const AGE_COSTS_MAX: f64 = 1.5;

fn of(data: &Data, contestant: Contestant, offered: f64) -> Option<&Summary> {
    let is_meant = |it: &&Summary| it.contestant == contestant && (it.offered - offered).abs() < 1e-9;
    data.summaries.iter().find(is_meant)
}

pub(super) fn judge(data: &Data) -> Vec<Claim> {
    let mut claims = Vec::new();
    if let Some(ours) = of(data, Contestant::Shares, OVER) {
        claims.push(Claim::new(
            format!(
                "asked for {OVER} of it, Suimon completes {OF_CAPACITY_MIN} of what the nodes can do together: {:.3}",
                ours.of_capacity
            ),
            ours.of_capacity >= OF_CAPACITY_MIN,
        ));
    }
    if let Some(ours) = of(data, Contestant::Shares, FULL) {
        let share = ours.of_capacity / FULL;
        claims.push(Claim::new(
            format!(
                "asked for {FULL} of it, it completes {OF_OFFERED_MIN} of what it is asked for: {share:.3}"
            ),
            share >= OF_OFFERED_MIN,
        ));
    }
    for (other, offered) in [Contestant::RoundRobin, Contestant::LeastConn, Contestant::TwoRandom]
        .iter()
        .flat_map(|other| [FULL, OVER].map(|offered| (*other, offered)))
    {
        if let Some((ours, theirs)) = of(data, Contestant::Shares, offered).zip(of(data, other, offered)) {
            claims.push(Claim::new(
                format!(
                    "asked for {offered} of it, it completes at least 0.98 of what {} does: {:.1} and {:.1} per second",
                    other.name(),
                    ours.completed_per_s,
                    theirs.completed_per_s
                ),
                ours.completed_per_s >= 0.98 * theirs.completed_per_s,
            ));
        }
    }
    if let Some((old, fresh)) = of(data, Contestant::Old, ROOM).zip(of(data, Contestant::Fresh, ROOM)) {
        claims.push(Claim::new(
            format!(
                "with reports every second the 99th percentile is at most {AGE_COSTS_MAX} times that with one every 10 ms: {:.3} and {:.3} s",
                old.p99_s, fresh.p99_s
            ),
            old.p99_s <= AGE_COSTS_MAX * fresh.p99_s,
        ));
    }
    claims
}

pub(super) fn tables(data: &Data) -> String {
    let mut out = format!(
        "\nNodes with {:?} slots, {:.0} ms a request: {:.0} requests per second together; visitors wait {} s\n",
        data.slots,
        data.mean_s * 1000.0,
        data.capacity_per_s,
        data.patience_s
    );
    out += "\n| asked for | chooses | per second | of what they can do | least to most | not served | p50 s | p99 s | least to most | rounds |\n|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for it in &data.summaries {
        let _ = writeln!(
            out,
            "| {} | {} | {:.1} | {:.3} | {:.3} to {:.3} | {:.1} % | {:.3} | {:.3} | {:.3} to {:.3} | {} |",
            it.offered,
            it.contestant.name(),
            it.completed_per_s,
            it.of_capacity,
            it.of_capacity_min,
            it.of_capacity_max,
            100.0 * it.failed_share,
            it.p50_s,
            it.p99_s,
            it.p99_s_min,
            it.p99_s_max,
            it.rounds
        );
    }
    let last =
        data.plays.iter().rev().find(|play| play.contestant == Contestant::Shares && play.offered > 1.0);
    if let Some(play) = last {
        let shares: Vec<String> = play.shares.iter().map(|share| format!("{share:.2}")).collect();
        let _ = writeln!(
            out,
            "\nShares that Suimon had learned in the end of the last play above capacity: {}",
            shares.join(", ")
        );
    }
    let busiest = data.plays.iter().map(|play| play.crowd_cpu_share).fold(0.0, f64::max);
    let core = data.plays.iter().map(|play| play.load_core.busy).fold(0.0, f64::max);
    let _ =
        writeln!(out, "The crowd took at most {busiest:.2} of its core, which was {core:.2} busy at most");
    out
}

pub(super) fn figure(data: &Data, path: &Path) -> Result<()> {
    let bars = |title: &str, unit: &str, value: fn(&Summary) -> f64| {
        let bars = Bars::new(title)
            .unit(unit)
            .describe("Medians of all rounds, by who chooses the node.")
            .group(&format!("{FULL} asked for"), Hue::Blue)
            .group(&format!("{OVER} asked for"), Hue::Vermilion);
        Contestant::FULL.iter().fold(bars, |bars, contestant| {
            let values = [FULL, OVER].map(|load| of(data, *contestant, load).map_or(0.0, value));
            bars.row(contestant.name(), values.to_vec())
        })
    };
    figures::write(
        path,
        &[
            Panel::Bars(bars("Completed, per cent of what the nodes can do together", "%", |it| {
                100.0 * it.of_capacity
            })),
            Panel::Bars(bars("99th percentile, seconds", "s", |it| it.p99_s)),
        ],
    )
}

//! The claims, the tables and the figure.

use std::fs;
use std::time::Duration;

use suimon_chart::{Axis, Hue, Plot, Series, Span};
use suimon_statistics::table::numbers;

use super::{DENIED, DRAIN_MAX, Data, Look, Testimony, WITNESSES};
use crate::claims::Claim;
use crate::common::Common;
use crate::figures::{self, Panel};
use crate::trouble::Result;

pub(super) fn judge(data: &Data, patience: Duration) -> Vec<Claim> {
    let denied = data.witnesses.iter().filter(|said| is_denial(said)).count();
    let silent = data.witnesses.iter().filter(|said| said.status.is_none()).count();
    let refused: u64 = data.refusals.iter().map(|(_, count)| count).sum();
    let members_refused = refused.saturating_sub(data.newcomers_refused);
    let timed_out = data.crowd.failures_by_kind.iter().filter(|(kind, _)| *kind == "timeout");
    let timed_out: u64 = timed_out.map(|(_, count)| count).sum();
    let rate = |from: f64, to: f64| {
        let seconds = data.crowd.series.iter().filter(|second| (from..to).contains(&(second.at_s as f64)));
        seconds.map(|second| f64::from(second.completed)).sum::<f64>() / (to - from).max(1.0)
    };
    let before = rate(5.0_f64.min(data.killed_at_s), data.killed_at_s);
    // A session needs some seconds of thinking before the first one can be completed.
    let after = rate(data.listening_again_at_s + 5.0, data.crowd.duration_s);
    vec![
        Claim::new(
            format!(
                "no begun session was refused by Suimon: {members_refused} of {refused} refusals; {denied} of {} answers to witnesses",
                data.witnesses.len()
            ),
            denied == 0 && members_refused == 0,
        ),
        Claim::new(
            format!(
                "every question of a witness was answered within {} s: {silent} were not",
                patience.as_secs()
            ),
            silent == 0,
        ),
        Claim::new(format!("no visitor waited in vain: {timed_out} time-outs in the crowd"), timed_out == 0),
        Claim::new(
            format!(
                "sessions are completed again, at half the rate at least: {before:.1} per s before, {after:.1} after"
            ),
            after > 0.0 && after >= before / 2.0,
        ),
        Claim::new(
            match data.drained_after_s {
                Some(seconds) => {
                    format!("no slot is left taken: none {seconds:.1} s after the crowd had gone")
                }
                None => format!(
                    "no slot is left taken: some were {} s after the crowd had gone",
                    DRAIN_MAX.as_secs()
                ),
            },
            data.drained_after_s.is_some(),
        ),
    ]
}

fn is_denial(said: &Testimony) -> bool {
    said.reason.as_ref().is_some_and(|reason| reason.contains(DENIED))
}

pub(super) fn tables(data: &Data) -> String {
    let phases = [
        ("before the kill", f64::NEG_INFINITY, data.killed_at_s),
        ("while it was dead", data.killed_at_s, data.listening_again_at_s),
        ("afterwards", data.listening_again_at_s, f64::INFINITY),
    ];
    let row = |(name, from, to): (&str, f64, f64)| {
        let inside: Vec<&Testimony> = data
            .witnesses
            .iter()
            .filter(|said| (from..to).contains(&(said.asked_at_s + said.took_s)))
            .collect();
        let count =
            |holds: &dyn Fn(&Testimony) -> bool| inside.iter().filter(|said| holds(said)).count().to_string();
        let longest = inside.iter().map(|said| said.took_s).fold(0.0, f64::max);
        vec![
            name.to_string(),
            inside.len().to_string(),
            count(&|said| said.status == Some(200)),
            count(&|said| said.status == Some(403)),
            count(&|said| matches!(said.status, Some(502..=504)) && !is_denial(said)),
            count(&is_denial),
            count(&|said| said.status.is_none()),
            format!("{longest:.1} s"),
        ]
    };
    let headings = ["answered", "answers", "200", "403", "502-504", "refused", "none", "longest"];
    let rows: Vec<Vec<String>> = phases.into_iter().map(row).collect();
    let kinds: Vec<String> =
        data.crowd.failures_by_kind.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    format!(
        "\nKilled at {:.1} s, started at {:.1} s, listening at {:.1} s\n\nAnswers to {WITNESSES} witnesses\n{}\n  \
         the crowd: {} sessions completed; failures: {}\n",
        data.killed_at_s,
        data.started_again_at_s,
        data.listening_again_at_s,
        numbers(&headings, &rows),
        data.crowd.sessions_completed,
        if kinds.is_empty() { "none".to_string() } else { kinds.join(", ") }
    )
}

pub(super) fn draw(common: &Common, data: &Data) -> Result<()> {
    let dead = || Span::new(data.killed_at_s, data.listening_again_at_s, "dead");
    let completed =
        data.crowd.series.iter().map(|second| (second.at_s as f64, f64::from(second.completed))).collect();
    let sessions = Plot::new("Sessions completed")
        .x(Axis::new("seconds"))
        .y(Axis::new("sessions per second").from(0.0))
        .span(dead())
        .series(Series::steps("completed", Hue::Blue, completed))
        .describe("Sessions per second before, during and after the application's death.");
    let points =
        |value: fn(&Look) -> f64| data.timeline.iter().map(|look| (look.at_s, value(look))).collect();
    let held = Plot::new("Requests held by the gateway")
        .x(Axis::new("seconds"))
        .y(Axis::new("requests").from(0.0))
        .span(dead())
        .series(Series::line("waiting", Hue::Amber, points(|look| look.waiting as f64)))
        .series(Series::line("in the application", Hue::Blue, points(|look| look.in_flight as f64)))
        .describe("Requests waiting and in the application before, during and after its death.");
    let path = common.out.join("figure.svg");
    figures::write(&path, &[Panel::Lines(sessions, 280.0), Panel::Lines(held, 280.0)])?;
    // What the gateway logged is of use when a claim does not hold.
    let log = common.scratch.join("gateway.err");
    if let Ok(text) = fs::read_to_string(&log) {
        eprintln!("the gateway wrote {} lines to {}", text.lines().count(), log.display());
    }
    Ok(())
}

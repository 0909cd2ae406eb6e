//! The report's figures, from the numbers.

use super::comparison::failures_at;
use super::outcome::{DemoResult, Name, Run, Sample};
use super::seconds::smoothed;
use crate::numbers::rate;
use crate::page::{self, LINES_MAX};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use suimon_chart::{Axis, Bars, Dress, Hue, Plot, Rule, Series, Size, Span};

/// Height of the axis ÷ the highest value, to leave room for text.
const HEADROOM: f64 = 1.2;

/// Returns the colour of a run.
pub(super) const fn hue(name: Name) -> Hue {
    match name {
        Name::None => Hue::Vermilion,
        Name::Suimon => Hue::Blue,
    }
}

/// Returns the most important chart as a separate picture. It is small enough to read on a phone.
pub(super) fn picture(outcome: &DemoResult) -> String {
    let title = format!("{} visitors at a shop with room for {:.0}", outcome.clients, outcome.bound.visitors);
    let [none, suimon] = &outcome.runs;
    [suimon, none]
        .into_iter()
        .fold(sessions(outcome, &title), |plot, run| plot.remark(hue(run.name), &remark(run)))
        .svg(Size::new(640.0, 400.0), Dress::Alone)
}

/// Returns the result of a run, in one line.
fn remark(run: &Run) -> String {
    let failures = match run.mid_session_failures {
        0 => "no failure".to_owned(),
        1 => "1 failure".to_owned(),
        count => format!("{count} failures"),
    };
    let (name, finished) = (run.name.title(), rate(run.sessions_per_s));
    format!("{name}: {finished} sessions finished per second, {failures} mid-session")
}

/// Returns sessions per second over time, of both runs, under the bound.
pub(super) fn sessions(outcome: &DemoResult, title: &str) -> Plot {
    let bound = outcome.bound.per_s;
    let lines = outcome.runs.each_ref().map(completed);
    let peak = lines.iter().flatten().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let mut plot = Plot::new(title)
        .describe(&outcome.verdict())
        .x(Axis::new("seconds").from(0.0).to(f64::from(outcome.seconds)))
        .y(Axis::new("sessions finished per second").from(0.0).to(peak.max(bound) * HEADROOM))
        .rule(Rule::new(bound, &format!("best possible {}", rate(bound))));
    if outcome.settle_s > 0.0 {
        plot = plot.span(Span::new(0.0, outcome.settle_s, "start"));
    }
    outcome
        .runs
        .iter()
        .zip(lines)
        .fold(plot, |plot, (run, line)| plot.series(Series::line(run.name.title(), hue(run.name), line)))
}

/// Returns the failures of both runs by step.
pub(super) fn failures(outcome: &DemoResult) -> Bars {
    let bars = Bars::new("Failures by step")
        .unit("failures")
        .describe("Time-outs and errors by step of the journey.");
    let bars = outcome.runs.iter().fold(bars, |bars, run| bars.group(run.name.title(), hue(run.name)));
    let [none, _] = &outcome.runs;
    none.visitors.steps.iter().fold(bars, |bars, step| {
        bars.row(&step.step, outcome.runs.iter().map(|run| failures_at(run, &step.step) as f64).collect())
    })
}

/// Returns where visitors are, with Suimon.
pub(super) fn queues(outcome: &DemoResult) -> Plot {
    let of = |value: &dyn Fn(&Sample) -> f64| over_time(outcome, &|sample| Some(value(sample)));
    timeline(outcome, "Where visitors are", Axis::new("visitors").from(0.0).whole())
        .describe("Visitors in line, sessions under way, requests waiting for a slot and in the shop.")
        .series(Series::line("in line", Hue::Amber, of(&|sample| sample.newcomers_waiting as f64)))
        .series(Series::line("let in", Hue::Blue, of(&|sample| sample.sessions as f64)))
        .series(Series::line(
            "queued inside",
            Hue::Purple,
            of(&|sample| sample.routes.iter().map(|route| route.waiting).sum::<usize>() as f64),
        ))
        .series(Series::line("in the shop", Hue::Green, of(&|sample| sample.in_flight as f64)))
}

/// Returns the admission interval, with Suimon.
pub(super) fn interval(outcome: &DemoResult) -> Plot {
    timeline(outcome, "Admission interval", Axis::new("seconds from one session to the next").from(0.0))
        .describe(
            "The time between two session starts; 0 while the gate is open, a gap while nobody is let in.",
        )
        .series(Series::steps("interval", Hue::Blue, over_time(outcome, &|sample| sample.interval_s)))
        .rule(Rule::new(1.0 / outcome.bound.per_s, "bound"))
}

/// Returns the routes' limits, with Suimon.
pub(super) fn limits(outcome: &DemoResult) -> Plot {
    let [_, suimon] = &outcome.runs;
    let mut busy: BTreeMap<&str, usize> = BTreeMap::new();
    for route in suimon.gateway.iter().flat_map(|sample| &sample.routes) {
        *busy.entry(&route.name).or_default() += route.in_flight + route.waiting;
    }
    let mut names: Vec<&str> = busy.keys().copied().collect();
    names.sort_by_key(|name| Reverse(busy[name]));
    let of = |name: &str| {
        let limit =
            |sample: &Sample| sample.routes.iter().find(|route| route.name == name)?.limit.map(f64::from);
        over_time(outcome, &limit)
    };
    let lines: Vec<_> = names.into_iter().take(LINES_MAX).map(|name| (name, of(name))).collect();
    page::limits(|axis| timeline(outcome, "Limits", axis), &lines)
}

fn timeline(outcome: &DemoResult, title: &str, axis: Axis) -> Plot {
    let seconds = Axis::new("seconds").from(0.0).to(f64::from(outcome.seconds));
    Plot::new(title).x(seconds).y(axis)
}

/// Returns a value over time, with gaps where there is none.
fn over_time(outcome: &DemoResult, value: &dyn Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    let [_, suimon] = &outcome.runs;
    suimon.gateway.iter().map(|sample| (sample.at_s, value(sample).unwrap_or(f64::NAN))).collect()
}

/// Returns sessions completed per second.
fn completed(run: &Run) -> Vec<(f64, f64)> {
    let completed: Vec<f64> = run.visitors.series.iter().map(|second| f64::from(second.completed)).collect();
    // The last second was cut short.
    smoothed(&completed[..completed.len().min(run.visitors.duration_s.floor() as usize)])
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Bound;
    use super::super::outcome::tests::{outcome, run};
    use super::*;
    use serde_json::Value;
    use std::path::Path;

    /// Returns the part of a demo's `--json` that a picture is drawn from, as an outcome.
    fn pictured(json: &Value) -> DemoResult {
        let number = |of: &Value, key: &str| of[key].as_f64().unwrap_or_else(|| panic!("{key} in {of}"));
        let drawn = |name: Name, json: &Value| {
            let mut run = run(name, 0, 0);
            run.sessions_per_s = number(json, "sessions_per_s");
            run.mid_session_failures = number(json, "mid_session_failures") as u64;
            run.visitors.duration_s = number(&json["visitors"], "duration_s");
            let second = run.visitors.series[0];
            let series = json["visitors"]["series"].as_array().unwrap();
            run.visitors.series = vec![second; series.len()];
            for (at, (second, json)) in run.visitors.series.iter_mut().zip(series).enumerate() {
                second.at_s = at as u64;
                second.completed = number(json, "completed") as u32;
            }
            run
        };
        let [none, suimon] = json["runs"].as_array().unwrap().as_slice() else { panic!("two runs") };
        let made_up = outcome([drawn(Name::None, none), drawn(Name::Suimon, suimon)]);
        DemoResult {
            clients: number(json, "clients") as u32,
            seconds: number(json, "seconds") as u32,
            settle_s: number(json, "settle_s"),
            bound: Bound {
                per_s: number(json, "bound_sessions_per_s"),
                visitors: number(json, "visitors_at_the_bound"),
                ..made_up.bound
            },
            holds: json["holds"].as_bool().unwrap(),
            ..made_up
        }
    }

    /// `docs/picture.json` is a part of a demo's `--json`. After a change to the drawing:
    /// `SUIMON_REDRAW=1 cargo test -p suimon-cli --lib picture`.
    #[test]
    fn the_readme_s_picture_is_drawn_from_its_numbers() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let json = std::fs::read_to_string(folder.join("picture.json")).unwrap();
        let drawn = picture(&pictured(&serde_json::from_str(&json).unwrap()));
        if std::env::var_os("SUIMON_REDRAW").is_some() {
            std::fs::write(folder.join("picture.svg"), &drawn).unwrap();
        }
        let committed = std::fs::read_to_string(folder.join("picture.svg")).unwrap();
        assert!(committed == drawn, "docs/picture.svg is not what is drawn from docs/picture.json");
    }

    #[test]
    fn a_run_of_nothing_is_drawn_too() {
        let mut empty = outcome([run(Name::None, 0, 0), run(Name::Suimon, 0, 0)]);
        for run in &mut empty.runs {
            run.gateway.clear();
            run.visitors.series.clear();
            run.visitors.steps.clear();
        }
        for text in [picture(&empty), failures(&empty).svg(400.0, Dress::Page)] {
            assert!(text.contains("nothing was measured") && !text.contains("NaN"));
        }
        for plot in [queues(&empty), interval(&empty), limits(&empty)] {
            assert!(plot.svg(Size::new(400.0, 300.0), Dress::Page).contains("nothing was measured"));
        }
    }
}

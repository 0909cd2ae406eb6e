//! The report's figures, from the numbers.

use super::answer::{Answer, Played, Run};
use crate::numbers::rate;
use crate::page::{self, LINE_HUES, LINES_MAX};
use suimon_chart::{Axis, Band, Bars, Hue, Plot, Rule, Series, Span};
use suimon_sim::{Sample, Scenario};

/// Most laws drawn in one figure. Readers could not tell more lines than colours apart.
pub(super) const LAWS_MAX: usize = 6;
/// Colours of laws. The scenario's own is blue, as in every report.
const LAW_HUES: [Hue; LAWS_MAX] = [Hue::Blue, Hue::Vermilion, Hue::Green, Hue::Purple, Hue::Amber, Hue::Grey];
/// Colours of steps; grey is for the rest.
const STEP_HUES: [Hue; LINES_MAX] = [Hue::Vermilion, Hue::Amber, Hue::Purple, Hue::Blue, Hue::Green];
/// Height of the axis ÷ the highest value, to leave room above the highest line.
const HEADROOM: f64 = 1.12;

/// Returns the seconds per point over which sessions are counted, because they end in bunches.
pub(super) fn bin_s(answer: &Answer<'_>) -> usize {
    match seconds(answer) {
        ..=60 => 2,
        61..=1800 => 10,
        _ => 60,
    }
}

/// Returns sessions per second over time: a line per law with its band over the seeds, the bound,
/// and what was reachable if that is less.
pub(super) fn goodput(answer: &Answer<'_>) -> Plot {
    let bin = bin_s(answer);
    let mut plot = timeline(answer, "Sessions finished", Axis::new("sessions finished per second").from(0.0))
        .describe("Sessions finished per second over time, each law's mean over its seeds, under the bound.");
    let mut highest: f64 = 0.0;
    for (hue, (contender, runs)) in LAW_HUES.into_iter().zip(answer.contenders()) {
        let points = binned(runs, bin);
        highest = points.iter().map(|(_, _, _, high)| *high).fold(highest, f64::max);
        plot = plot
            .band(Band::new(hue, points.iter().map(|(at, _, low, high)| (*at, *low, *high)).collect()))
            .series(Series::line(
                &contender.name,
                hue,
                points.iter().map(|(at, mean, ..)| (*at, *mean)).collect(),
            ));
    }
    let Some(played) = longest(answer) else { return plot };
    let bound = played.bound.first().copied().unwrap_or(0.0);
    let steady =
        |rates: &[f64]| rates.iter().all(|rate| (rate - rates[0]).abs() < 0.005 * rates[0].max(1e-9));
    highest = played.bound.iter().copied().fold(highest, f64::max);
    plot = if steady(&played.bound) {
        plot.rule(Rule::new(bound, &format!("bound {}", rate(bound))))
    } else {
        plot.series(Series::steps("bound", Hue::Grey, each_second(&played.bound)).dashed())
    };
    if played.reachable.iter().zip(&played.bound).any(|(reachable, bound)| reachable + 1e-9 < 0.995 * bound) {
        plot = plot.series(Series::steps("reachable", Hue::Grey, each_second(&played.reachable)));
    }
    plot.y(Axis::new("sessions finished per second").from(0.0).to(highest.max(1e-3) * HEADROOM))
}

/// Returns the limits of the busiest routes, of the run whose gate states were kept.
pub(super) fn limits(answer: &Answer<'_>) -> Plot {
    let scenario = &answer.question.scenario;
    let samples = inside(answer);
    let going_on = |route: &usize| {
        let load = |sample: &Sample| {
            sample.in_flight.get(*route).copied().unwrap_or(0)
                + sample.waiting.get(*route).copied().unwrap_or(0)
        };
        samples.iter().map(load).sum::<usize>()
    };
    let mut routes: Vec<usize> = (0..scenario.routes.len()).collect();
    routes.sort_by_key(|route| std::cmp::Reverse(going_on(route)));
    routes.truncate(LINES_MAX);
    let limit = |sample: &Sample, route: usize| sample.limits.get(route).copied().flatten();
    let of = |route: usize| over_time(samples, &|sample| limit(sample, route).map(f64::from));
    let lines: Vec<_> = routes.iter().map(|route| (&*scenario.routes[*route].name, of(*route))).collect();
    page::limits(|axis| timeline(answer, "Limits", axis), &lines)
}

/// Returns the admission interval, by kind of session.
pub(super) fn interval(answer: &Answer<'_>) -> Plot {
    let kinds = &answer.question.scenario.gate.kinds;
    let plot = timeline(
        answer,
        "Admission interval",
        Axis::new("seconds from one session to the next").from(0.0),
    )
    .describe("The time between two session starts; 0 while the gate is open, a gap while nobody is let in.");
    kinds.iter().enumerate().take(LINES_MAX).fold(plot, |plot, (index, kind)| {
        let points = over_time(inside(answer), &|sample| sample.intervals.get(index).copied());
        plot.series(Series::steps(&kind.name, LINE_HUES[index], points))
    })
}

/// Returns where visitors are.
pub(super) fn visitors(answer: &Answer<'_>) -> Plot {
    let of =
        |value: &dyn Fn(&Sample) -> usize| over_time(inside(answer), &|sample| Some(value(sample) as f64));
    let sum = |counts: &[usize]| counts.iter().sum::<usize>();
    // Waiting requests include newcomers in line.
    let queued = |sample: &Sample| sum(&sample.waiting).saturating_sub(sum(&sample.line));
    timeline(answer, "Where visitors are", Axis::new("visitors").from(0.0).whole())
        .describe("Visitors held at the gate, sessions under way, requests waiting for a slot and in the application.")
        .series(Series::line("at the gate", Hue::Amber, of(&|sample| sum(&sample.line))))
        .series(Series::line("let in", Hue::Blue, of(&|sample| sum(&sample.active))))
        .series(Series::line("queued inside", Hue::Purple, of(&queued)))
        .series(Series::line("in service", Hue::Green, of(&|sample| sum(&sample.in_flight))))
}

/// Returns the mean failures per run of each law, stacked by step; `None` if there were none.
pub(super) fn failures(answer: &Answer<'_>) -> Option<Bars> {
    let names = steps(&answer.question.scenario);
    let means: Vec<(&str, Vec<f64>)> = answer
        .contenders()
        .map(|(contender, runs)| (contender.name.as_str(), failures_of(runs, names.len())))
        .collect();
    let all = |step: usize| means.iter().map(|(_, law)| law[step]).sum::<f64>();
    let mut shown: Vec<usize> = (0..names.len()).filter(|step| all(*step) > 0.0).collect();
    if shown.is_empty() {
        return None;
    }
    shown.sort_by(|a, b| all(*b).total_cmp(&all(*a)));
    let elsewhere = shown.split_off(shown.len().min(LINES_MAX));
    shown.sort_unstable();
    let mut bars = Bars::new("Failures by law")
        .unit("failures")
        .describe("Time-outs and errors of each law, by step of the journey.")
        .stacked();
    for (hue, step) in STEP_HUES.into_iter().zip(&shown) {
        bars = bars.group(&names[*step], hue);
    }
    if !elsewhere.is_empty() {
        bars = bars.group("elsewhere", Hue::Grey);
    }
    let row = |bars: Bars, (name, law): &(&str, Vec<f64>)| {
        let rest = elsewhere.iter().map(|step| law[*step]).sum();
        bars.row(name, shown.iter().map(|step| law[*step]).chain(std::iter::once(rest)).collect())
    };
    Some(means.iter().fold(bars, row))
}

/// Returns the names of all steps, those of the first kind first.
fn steps(scenario: &Scenario) -> Vec<String> {
    let kinds = &scenario.workload.kinds;
    let several = kinds.len() > 1;
    let name = |kind: &str, step: &str| if several { format!("{kind}/{step}") } else { step.to_owned() };
    kinds.iter().flat_map(|kind| kind.steps.iter().map(|step| name(&kind.name, &step.name))).collect()
}

fn failures_of(runs: &[Run], steps: usize) -> Vec<f64> {
    let mut sums = vec![0.0; steps];
    let played: Vec<&Played> = runs.iter().filter_map(Run::played).collect();
    for run in &played {
        for (sum, failures) in sums.iter_mut().zip(run.failures.iter().flatten()) {
            *sum += *failures as f64;
        }
    }
    sums.iter().map(|sum| sum / played.len().max(1) as f64).collect()
}

/// Returns for each bin its middle in seconds, and mean, least and most of the runs in sessions per
/// second. Leaves out bins that no run filled.
fn binned(runs: &[Run], bin: usize) -> Vec<(f64, f64, f64, f64)> {
    let rates: Vec<Vec<f64>> =
        runs.iter().filter_map(Run::played).map(|run| rates(&run.completed, bin)).collect();
    let bins = rates.iter().map(Vec::len).max().unwrap_or(0);
    let spread = |number: usize| {
        let values = rates.iter().filter_map(|run| run.get(number).copied());
        let spread = suimon_statistics::MeanAndRange::of(values)?;
        Some(((number as f64 + 0.5) * bin as f64, spread.mean, spread.min, spread.max))
    };
    (0..bins).filter_map(spread).collect()
}

fn rates(completed: &[u32], bin: usize) -> Vec<f64> {
    let rate = |seconds: &[u32]| seconds.iter().map(|second| f64::from(*second)).sum::<f64>() / bin as f64;
    completed.chunks_exact(bin).map(rate).collect()
}

/// Returns the gate's state each second, of the first seed with the scenario's own laws.
fn inside<'a>(answer: &'a Answer<'_>) -> &'a [Sample] {
    answer.own().first().and_then(Run::played).map_or(&[], |played| &played.inside)
}

fn longest<'a>(answer: &'a Answer<'_>) -> Option<&'a Played> {
    let played = answer.contenders().flat_map(|(_, runs)| runs).filter_map(Run::played);
    played.max_by_key(|played| played.completed.len())
}

fn seconds(answer: &Answer<'_>) -> usize {
    longest(answer).map_or(0, |played| played.completed.len())
}

fn timeline(answer: &Answer<'_>, title: &str, axis: Axis) -> Plot {
    let warm_up = answer.question.scenario.warm_up.as_secs_f64();
    let plot = Plot::new(title).x(Axis::new("seconds").from(0.0).to(seconds(answer).max(1) as f64)).y(axis);
    if warm_up > 0.0 { plot.span(Span::new(0.0, warm_up, "not counted")) } else { plot }
}

fn each_second(rates: &[f64]) -> Vec<(f64, f64)> {
    rates.iter().enumerate().map(|(second, rate)| (second as f64, *rate)).collect()
}

/// Returns a value over time, with gaps where there is none.
fn over_time(samples: &[Sample], value: &dyn Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    samples.iter().map(|sample| (sample.at_s, value(sample).unwrap_or(f64::NAN))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_that_is_not_whole_is_left_out() {
        assert_eq!(rates(&[1, 3, 0, 4, 9], 2), [2.0, 2.0]);
        assert!(rates(&[7], 2).is_empty());
    }
}

//! The report's figures over time.

use super::numbers::{finished, lost};
use crate::page::{self, LINE_HUES, LINES_MAX};
use suimon_chart::{Axis, Hue, Plot, Series, Span};
use suimon_gate::PoolView;
use suimon_sim::replay::{Bin, RouteLine, Timeline};
use suimon_statistics::Histogram;

/// A last bin shorter than this share of the others is left out, because its rates are mostly
/// chance.
const LAST_MIN: f64 = 0.3;
/// Most points of a line of quantiles. With more, each point would have too few requests and the
/// line would be noisy.
const QUANTILES_MAX: usize = 48;
/// Runs of at least this many seconds show time in minutes; from `HOURS_FROM` on, in hours.
const MINUTES_FROM: f64 = 900.0;
const HOURS_FROM: f64 = 4.0 * 3600.0;

/// Returns sessions per second: those that began, and those that ended.
pub(super) fn sessions(timeline: &Timeline) -> Plot {
    let rate = |count: fn(&Bin) -> u64| over_time(timeline, &|bin, length| count(bin) as f64 / length);
    over(timeline, "Sessions", Axis::new("sessions per second").from(0.0))
        .describe("Sessions a second: those that began, that finished, and that were lost inside.")
        .series(Series::line("began", Hue::Grey, rate(|bin| bin.began)))
        .series(Series::line("finished", Hue::Blue, rate(|bin| finished(&bin.ends))))
        .series(Series::line("lost inside", Hue::Vermilion, rate(|bin| lost(&bin.ends))))
}

/// Returns the visitors who wait for admission.
pub(super) fn line(timeline: &Timeline) -> Plot {
    let of = |count: fn(&Bin) -> u64| over_time(timeline, &|bin, _| count(bin) as f64);
    over(timeline, "People in line", Axis::new("people").from(0.0).whole())
        .describe("Visitors in line, those of them who are held at the gate, and sessions under way.")
        .series(Series::line("in line", Hue::Amber, of(|bin| bin.gate.in_line)))
        .series(Series::line("held at the gate", Hue::Purple, of(|bin| bin.gate.held as u64)))
        .series(Series::line("inside", Hue::Blue, of(|bin| bin.gate.sessions as u64)))
}

/// Returns how long visitors waited for admission.
pub(super) fn entries(timeline: &Timeline) -> Plot {
    let describe = "The median and the 95th percentile of the time from a visitor's arrival to admission, for admitted visitors.";
    quantiles(timeline, "Wait to get in", "seconds waited to get in", |bin| &bin.entries).describe(describe)
}

/// Returns requests per second: arrivals, and their outcomes at the gate.
pub(super) fn requests(timeline: &Timeline) -> Plot {
    let rate = |count: fn(&Bin) -> u64| over_time(timeline, &|bin, length| count(bin) as f64 / length);
    over(timeline, "Requests", Axis::new("requests per second").from(0.0))
        .describe("Requests a second: those that came, were let in, were shown a position in line, were refused, and were abandoned.")
        .series(Series::line("came", Hue::Grey, rate(|bin| bin.came)))
        .series(Series::line("let in", Hue::Blue, rate(|bin| bin.let_in)))
        .series(Series::line("waiting page", Hue::Purple, rate(|bin| bin.waiting_pages)))
        .series(Series::line("refused", Hue::Vermilion, rate(|bin| bin.refused)))
        .series(Series::line("abandoned", Hue::Amber, rate(|bin| bin.abandoned)))
}

/// Returns the limits of the routes with the most work.
pub(super) fn limits(timeline: &Timeline) -> Plot {
    let mut routes: Vec<usize> = (0..timeline.routes.len()).collect();
    let work = |route: &RouteLine| {
        let mean = route.services.mean().unwrap_or_default();
        mean.as_secs_f64() * route.services.count() as f64
    };
    routes.sort_by(|a, b| work(&timeline.routes[*b]).total_cmp(&work(&timeline.routes[*a])));
    routes.retain(|route| {
        let has_one = |bin: &Bin| bin.gate.limits.get(*route).is_some_and(Option::is_some);
        timeline.routes[*route].came > 0 && timeline.bins.iter().any(has_one)
    });
    routes.truncate(LINES_MAX);
    let limit = |bin: &Bin, route: usize| bin.gate.limits.get(route).copied().flatten();
    let of = |route: usize| over_time(timeline, &|bin, _| limit(bin, route).map_or(f64::NAN, f64::from));
    let lines: Vec<_> = routes.iter().map(|route| (&*timeline.routes[*route].name, of(*route))).collect();
    page::limits(|axis| over(timeline, "Limits", axis), &lines)
}

/// Returns the admission interval, by kind.
pub(super) fn interval(timeline: &Timeline) -> Plot {
    let axis = Axis::new("seconds from one session to the next").from(0.0);
    let plot = over(timeline, "Admission interval", axis).describe(
        "The time between two session starts; 0 while the gate is open, a gap while nobody is let in.",
    );
    timeline.kinds.iter().enumerate().take(LINES_MAX).fold(plot, |plot, (index, kind)| {
        let points =
            over_time(timeline, &|bin, _| bin.gate.intervals.get(index).copied().unwrap_or(f64::NAN));
        plot.series(Series::steps(kind, LINE_HUES[index], points))
    })
}

/// Returns who waited where.
pub(super) fn waiting(timeline: &Timeline) -> Plot {
    let of = |count: fn(&Bin) -> usize| over_time(timeline, &|bin, _| count(bin) as f64);
    over(timeline, "Where requests are", Axis::new("requests").from(0.0).whole())
        .describe("Newcomers held at the gate, requests waiting for a slot, and requests in the application.")
        .series(Series::line("held", Hue::Amber, of(|bin| bin.gate.held)))
        .series(Series::line("queued", Hue::Purple, of(|bin| bin.gate.queued)))
        .series(Series::line("in service", Hue::Green, of(|bin| bin.gate.in_flight)))
}

/// Returns the workers of the first two pools, and how many of them had a request; `None`: none were
/// counted.
pub(super) fn workers(timeline: &Timeline) -> Option<Plot> {
    let view = |bin: &Bin, pool: usize| bin.gate.pools.get(pool).copied().unwrap_or_default();
    let pools = timeline.bins.iter().map(|bin| bin.gate.pools.len()).max().unwrap_or(0);
    let are_counted = |pool: &usize| timeline.bins.iter().any(|bin| view(bin, *pool).ready.is_some());
    let counted: Vec<usize> = (0..pools).filter(are_counted).take(LINES_MAX / 2).collect();
    let plot = over(timeline, "Workers", Axis::new("workers").from(0.0).whole())
        .describe("Workers that were ready, of the first two pools, and how many of them had a request.");
    let plot =
        counted.iter().enumerate().fold(plot, |plot, (index, pool)| {
            let ready = over_time(timeline, &|bin, _| view(bin, *pool).ready.map_or(f64::NAN, f64::from));
            let busy = over_time(timeline, &|bin, _| match view(bin, *pool) {
                PoolView { ready: Some(_), in_flight } => in_flight as f64,
                PoolView { ready: None, .. } => f64::NAN,
            });
            // The recording knows their numbers, not their names.
            let of = if counted.len() > 1 { format!(", pool {}", pool + 1) } else { String::new() };
            plot.series(Series::steps(&format!("ready{of}"), LINE_HUES[2 * index], ready))
                .series(Series::line(&format!("busy{of}"), LINE_HUES[2 * index + 1], busy))
        });
    (!counted.is_empty()).then_some(plot)
}

/// Returns the waiting times of admitted requests.
pub(super) fn waits(timeline: &Timeline) -> Plot {
    let describe = "The median and the 95th percentile of the time that requests had waited, held or queued, when they were let in.";
    quantiles(timeline, "Waits", "seconds waited before being let in", |bin| &bin.waits).describe(describe)
}

fn quantiles(timeline: &Timeline, title: &str, axis: &str, of: fn(&Bin) -> &Histogram) -> Plot {
    let (_, unit) = unit(timeline);
    let together = timeline.bins.len().div_ceil(QUANTILES_MAX).max(1);
    let several: Vec<(f64, Histogram)> = timeline
        .bins
        .chunks(together)
        .enumerate()
        .map(|(number, bins)| {
            let from = (number * together) as f64 * timeline.width;
            let to = (from + bins.len() as f64 * timeline.width).min(timeline.seconds());
            let mut waits = Histogram::default();
            bins.iter().for_each(|bin| waits.merge(of(bin)));
            ((from + to) / 2.0 / unit, waits)
        })
        .collect();
    let quantile = |q: f64| {
        let point = |(at, waits): &(f64, Histogram)| (*at, waits.quantile_s(q).unwrap_or(f64::NAN));
        several.iter().map(point).collect::<Vec<_>>()
    };
    over(timeline, title, Axis::new(axis).from(0.0))
        .series(Series::line("95 of 100", Hue::Vermilion, quantile(0.95)))
        .series(Series::line("half", Hue::Blue, quantile(0.5)))
}

fn over(timeline: &Timeline, title: &str, y: Axis) -> Plot {
    let (unit, length) = unit(timeline);
    let plot = Plot::new(title).x(Axis::new(unit).from(0.0).to((timeline.seconds() / length).max(1e-3))).y(y);
    // Every second run has a marked background.
    timeline.restarts.chunks(2).enumerate().fold(plot, |plot, (pair, ends)| {
        let to = ends.get(1).copied().unwrap_or(timeline.seconds());
        plot.span(Span::new(ends[0] / length, to / length, &format!("run {}", 2 * pair + 2)))
    })
}

/// Returns the unit of time for the figures, and its length in seconds.
fn unit(timeline: &Timeline) -> (&'static str, f64) {
    match timeline.seconds() {
        seconds if seconds >= HOURS_FROM => ("hours", 3600.0),
        seconds if seconds >= MINUTES_FROM => ("minutes", 60.0),
        _ => ("seconds", 1.0),
    }
}

/// Returns a value for each bin, at its middle. `value` gets the bin and its length in seconds.
fn over_time(timeline: &Timeline, value: &dyn Fn(&Bin, f64) -> f64) -> Vec<(f64, f64)> {
    let (_, unit) = unit(timeline);
    let point = |(number, bin): (usize, &Bin)| {
        let from = number as f64 * timeline.width;
        let length = timeline.width.min(timeline.seconds() - from);
        (length >= LAST_MIN * timeline.width).then(|| ((from + length / 2.0) / unit, value(bin, length)))
    };
    timeline.bins.iter().enumerate().filter_map(point).collect()
}

//! The pictures.

use std::path::Path;

use suimon_chart::{Axis, Band, Bars, Hue, Plot, Rule, Series as Line};

use super::data::{Content, Curve, Data, Moment, PAGES, Point, Range};
use super::method::Method;
use super::table::{Figure, Shows};
use super::worlds::World;
use crate::figures::{self, Panel};
use crate::trouble::Result;

/// Height of a panel, CSS pixels.
const HEIGHT: f64 = 360.0;
/// The axis shows at least this many failures.
const FAILURES_SHOWN_MIN: f64 = 400.0;
/// Numbers of clients along the bottom.
const CLIENTS_TICKS: [f64; 5] = [1.0, 100.0, 200.0, 300.0, 400.0];

/// One set of curves on a panel.
struct Layer<'a> {
    content: &'a Content,
    /// Appended to each name.
    suffix: &'static str,
    is_measured: bool,
    has_bands: bool,
}

/// Draws `simulated`, and below it what was measured, with the time after which a run was dead
/// there. `bound_per_s`: what no scheduler exceeds.
pub(super) fn draw(
    figure: &Figure,
    simulated: &Data,
    measured: Option<(&Content, f64)>,
    bound_per_s: f64,
    path: &Path,
) -> Result<()> {
    let of_the_paper =
        [Layer { content: &simulated.content, suffix: "", is_measured: false, has_bands: true }];
    let mut panels = panels(figure, &of_the_paper, simulated.dead_after_s, "simulated", Some(bound_per_s));
    if let Some((measured, dead_after_s)) = measured {
        let mut layers = Vec::new();
        if let Some(calibrated) = &simulated.calibrated {
            layers.push(Layer {
                content: calibrated,
                suffix: ", model",
                is_measured: false,
                has_bands: false,
            });
        }
        layers.push(Layer { content: measured, suffix: "", is_measured: true, has_bands: false });
        panels.extend(self::panels(figure, &layers, dead_after_s, "measured on the Tomcat shop", None));
    }
    figures::write(path, &panels)
}

fn panels(
    figure: &Figure,
    layers: &[Layer<'_>],
    dead_after_s: f64,
    how: &str,
    bound_per_s: Option<f64>,
) -> Vec<Panel> {
    let is_measured = layers.iter().any(|layer| layer.is_measured);
    let dashed = if is_measured { "; dashed: its model" } else { "" };
    let none = if is_measured { "; 0: no limit yet" } else { "" };
    let dead = format!("0: not all done after {dead_after_s:.0} s{dashed}");
    match figure.shows {
        Shows::Throughput => {
            let title = format!("Sessions per second, {how}: {}", words(figure.world, layers));
            let mut plot = Plot::new(&title)
                .describe(
                    "Lines by number of clients, one for each method; bands from the worst to the best seed.",
                )
                .x(clients_axis())
                .y(Axis::new(&format!("sessions per second ({dead})")).from(0.0));
            if let Some(bound) = bound_per_s {
                plot = plot.rule(Rule::new(bound, &format!("bound: {bound:.2}")));
            }
            vec![Panel::Lines(sweep(plot, layers, |point| Some(point.sessions_per_s)), HEIGHT)]
        }
        Shows::Failures => {
            let title = format!("Failed pages, {how}: {}", words(figure.world, layers));
            let label = format!("failures until all are done (gap: not after {dead_after_s:.0} s{dashed})");
            let plot = Plot::new(&title)
                .describe("Lines by number of clients, one for each method; bands from the lowest to the highest seed.")
                .x(clients_axis())
                .y(Axis::new(&label).from(0.0).to(failures_shown(layers)));
            let failures = |point: &Point| (!point.is_dead()).then_some(point.failures);
            vec![Panel::Lines(sweep(plot, layers, failures), HEIGHT)]
        }
        Shows::Distribution(clients, until_s) => {
            let title = format!("Sessions done after how long, {how}: {clients} clients");
            let mut plot = Plot::new(&title)
                .describe("Lines over time since a session's first request: sessions done.")
                .x(Axis::new("seconds since the session's first request").from(0.0).to(until_s))
                .y(Axis::new("sessions done").from(0.0).to(f64::from(clients)));
            for layer in layers {
                let Content::Distribution(all) = layer.content else { continue };
                for distribution in all {
                    let rows = || distribution.done.iter().map(|(at, done)| (*at, *done));
                    plot = plot.band(Band::new(
                        distribution.method.hue(),
                        rows().map(|(at, done)| (at, done.0, done.2)).collect(),
                    ));
                    let points = rows().map(|(at, done)| (at, done.1)).collect();
                    let name = name(distribution.method, &distribution.setting);
                    let line = Line::line(&name, distribution.method.hue(), points);
                    let is_dashed = distribution.method == Method::SqsAsSet;
                    plot = plot.series(if is_dashed { line.dashed() } else { line });
                }
            }
            vec![Panel::Lines(plot, HEIGHT)]
        }
        Shows::Pages => pages(layers, how),
        Shows::Interval => {
            let mut panels = Vec::new();
            // Each on a scale of its own, because one is many times the other.
            for method in [Method::Sqs, Method::Suimon] {
                let who = if method == Method::Sqs { "SQS" } else { method.name() };
                let plot =
                    Plot::new(&format!("Admission interval, {who}, {how}: {} clients", clients(layers)))
                        .y(Axis::new(&format!("seconds between two session starts{dashed}")).from(0.0));
                panels.push(over_time(plot, layers, &[method], |moment| moment.interval_s));
            }
            let plot = Plot::new(&format!("Mean page queue, {how}"))
                .y(Axis::new(&format!("requests waiting at a page, mean of the seven pages{dashed}"))
                    .from(0.0));
            panels.push(over_time(plot, layers, &Method::ALL, |moment| moment.mean_queue));
            panels
        }
        Shows::Limits => vec![
            over_time(
                Plot::new(&format!("Limit of page 5, the heavy one, {how}: {} clients", clients(layers))).y(
                    Axis::new(&format!("requests in the application at once{none}{dashed}"))
                        .from(0.0)
                        .whole(),
                ),
                layers,
                &Method::ALL,
                |moment| moment.limit_of_page_5,
            ),
            over_time(
                Plot::new(&format!("Limit of page 1, a light one, {how}")).y(Axis::new(&format!(
                    "requests in the application at once{dashed}"
                ))
                .from(0.0)
                .whole()),
                layers,
                &Method::ALL,
                |moment| moment.limit_of_page_1,
            ),
        ],
    }
}

/// The Tomcat shop's times are the paper's, divided by the scale.
fn words(world: World, layers: &[Layer<'_>]) -> String {
    let is_scaled = layers.iter().any(|layer| layer.is_measured);
    let words = world.words();
    if is_scaled { format!("{words}, ÷ 4") } else { words.to_owned() }
}

/// Returns how many failures the axis shows: all those of the methods with control, and at least as
/// many as in the paper's figures.
fn failures_shown(layers: &[Layer<'_>]) -> f64 {
    let mut most: f64 = FAILURES_SHOWN_MIN;
    for layer in layers {
        let Content::Sweep(curves) = layer.content else { continue };
        let controlled = curves.iter().filter(|curve| curve.method != Method::None);
        let ended = controlled.flat_map(|curve| &curve.points).filter(|point| !point.is_dead());
        most = ended.map(|point| point.failures.1 * 1.1).fold(most, f64::max);
    }
    (most / 100.0).ceil() * 100.0
}

fn clients_axis() -> Axis {
    Axis::new("clients, one session each").from(0.0).to(400.0).ticks(CLIENTS_TICKS.to_vec())
}

/// Returns a method's name with the number a reader needs.
fn name(method: Method, setting: &str) -> String {
    match method {
        Method::SessionOnly => format!("{} ({})", method.name(), setting.trim_end_matches(" sessions")),
        Method::None | Method::PageOnly | Method::SqsAsSet | Method::Sqs | Method::Suimon => {
            method.name().to_owned()
        }
    }
}

fn sweep(mut plot: Plot, layers: &[Layer<'_>], of: impl Fn(&Point) -> Option<Range>) -> Plot {
    let value = |curve: &Curve| -> Vec<(f64, Range)> {
        let gap = Range(f64::NAN, f64::NAN, f64::NAN);
        let row = |point: &Point| (f64::from(point.clients), of(point).unwrap_or(gap));
        curve.points.iter().map(row).collect()
    };
    for layer in layers {
        let Content::Sweep(curves) = layer.content else { continue };
        if layer.has_bands {
            for curve in curves {
                let rows = value(curve).into_iter().map(|(x, range)| (x, range.0, range.2)).collect();
                plot = plot.band(Band::new(curve.method.hue(), rows));
            }
        }
        for curve in curves {
            let points = value(curve).into_iter().map(|(x, range)| (x, range.1)).collect();
            let text = name(curve.method, &curve.setting) + layer.suffix;
            let hue = curve.method.hue();
            plot = plot.series(match (layer.is_measured, layer.suffix.is_empty()) {
                (true, _) => Line::dotted(&text, hue, points),
                (false, true) if curve.method == Method::SqsAsSet => Line::line(&text, hue, points).dashed(),
                (false, true) => Line::line(&text, hue, points),
                (false, false) => Line::line("", hue, points).dashed(),
            });
        }
    }
    plot
}

fn over_time(
    mut plot: Plot,
    layers: &[Layer<'_>],
    methods: &[Method],
    of: impl Fn(&Moment) -> Range,
) -> Panel {
    plot = plot
        .x(Axis::new("seconds").from(0.0).to(over_after(layers)))
        .describe("Lines over time: one seed, in a band from the lowest to the highest of all seeds.");
    for layer in layers {
        let Content::Series(all) = layer.content else { continue };
        for series in all.iter().filter(|series| methods.contains(&series.method)) {
            let rows = || series.moments.iter().map(|moment| (moment.at_s, of(moment)));
            let hue = series.method.hue();
            if layer.has_bands {
                plot = plot.band(Band::new(hue, rows().map(|(at, range)| (at, range.0, range.2)).collect()));
            }
            let points = rows().map(|(at, range)| (at, range.1)).collect();
            let text = series.method.name();
            plot = plot.series(if layer.suffix.is_empty() {
                Line::steps(text, hue, points)
            } else {
                Line::steps("", hue, points).dashed()
            });
        }
    }
    Panel::Lines(plot, HEIGHT * 0.8)
}

/// Returns when the last run shown ends: panels below each other have the same time axis.
fn over_after(layers: &[Layer<'_>]) -> f64 {
    let of = |layer: &Layer<'_>| match layer.content {
        Content::Series(all) => {
            all.iter().filter_map(|series| Some(series.moments.last()?.at_s)).fold(0.0, f64::max)
        }
        Content::Sweep(_) | Content::Distribution(_) | Content::Pages(_) => 0.0,
    };
    layers.iter().map(of).fold(1.0, f64::max)
}

fn clients(layers: &[Layer<'_>]) -> u32 {
    let of = |layer: &Layer<'_>| match layer.content {
        Content::Series(all) => all.first().map(|series| series.clients),
        Content::Sweep(_) | Content::Distribution(_) | Content::Pages(_) => None,
    };
    layers.iter().find_map(of).unwrap_or_default()
}

fn pages(layers: &[Layer<'_>], how: &str) -> Vec<Panel> {
    let mut panels = Vec::new();
    for layer in layers {
        let Content::Pages(all) = layer.content else { continue };
        let mut sizes: Vec<u32> = all.iter().map(|pages| pages.clients).collect();
        sizes.dedup();
        for clients in sizes {
            let how = if layer.suffix.is_empty() { how } else { "Tomcat shop, its model" };
            let mut bars = Bars::new(&format!("Failed pages, {how}: {clients} clients"))
                .describe("Bars by method, in parts by page.")
                .unit("failures, by page")
                .group("page 1", Hue::Amber)
                .group("pages 2 to 4", Hue::Grey)
                .group("page 5, the heavy one", Hue::Vermilion)
                .group("pages 6 and 7", Hue::Blue)
                .stacked();
            for pages in all.iter().filter(|pages| pages.clients == clients) {
                let part = |of: std::ops::Range<usize>| pages.failures[of].iter().map(|range| range.1).sum();
                let mut text = name(pages.method, &pages.setting);
                if pages.ended * 2 < pages.runs {
                    text += ", never done";
                }
                bars = bars.row(&text, vec![part(0..1), part(1..4), part(4..5), part(5..PAGES)]);
            }
            panels.push(Panel::Bars(bars));
        }
    }
    panels
}

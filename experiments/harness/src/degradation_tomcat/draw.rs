//! The figures.

use std::path::Path;

use suimon_chart::{Axis, Hue, Plot, Series, Span};
use suimon_statistics::median;

use super::changes::{Change, Changed, WISHED};
use super::setups::Setup;
use super::{Data, tell};
use crate::figures::{self, Panel};
use crate::trouble::Result;

const HEIGHT: f64 = 320.0;

/// Setups that are drawn in one colour: name, colour, and which they are.
type Group = (&'static str, Hue, fn(Setup) -> bool);

/// Draws what was wished against what was reached, and what each setup does for light and heavy
/// jobs.
pub(super) fn setups(data: &Data, path: &Path) -> Result<()> {
    let ratios: Vec<(f64, Vec<f64>)> = Setup::ALL
        .iter()
        .filter_map(|setup| match setup {
            Setup::Ratio(ratio) => Some((*ratio, tell::per_round(data, *setup, tell::ratio))),
            _ => None,
        })
        .filter(|(_, reached)| !reached.is_empty())
        .collect();
    let wishes: Vec<f64> = ratios.iter().map(|(wish, _)| *wish).collect();
    let reached = ratios.iter().flat_map(|(wish, reached)| reached.iter().map(|it| (*wish, *it))).collect();
    let held = Plot::new("Slowdown of the heavy job ÷ slowdown of the light one")
        .describe("Reached in each round, against what was wished.")
        .x(Axis::new("wished").logarithmic().ticks(wishes.clone()))
        .y(Axis::new("reached").logarithmic())
        .series(Series::line("as wished", Hue::Grey, wishes.iter().map(|it| (*it, *it)).collect()).dashed())
        .series(dots("reached, each round", Hue::Blue, reached));
    let groups: [Group; 4] = [
        ("nothing, or Suimon without a wish", Hue::Grey, Setup::is_without_wish),
        ("fixed pauses", Hue::Amber, |setup| {
            matches!(setup, Setup::Around(_) | Setup::Inside(_) | Setup::Pause(_))
        }),
        ("Suimon with a wish", Hue::Blue, Setup::is_wish),
        ("HAProxy, nginx, Envoy", Hue::Purple, |setup| {
            matches!(
                setup,
                Setup::HaproxySplit(..) | Setup::HaproxyPriority(_) | Setup::NginxLimit(_) | Setup::Envoy
            )
        }),
    ];
    let mut both = Plot::new("Light jobs and heavy jobs, as a share of what the core does of each alone")
        .describe("Each point is a setup: the median of its rounds. On the line nothing is lost.")
        .x(Axis::new("heavy jobs ÷ those of the core alone").from(0.0))
        .y(Axis::new("light jobs ÷ those of the core alone").from(0.0))
        .series(Series::line("nothing lost", Hue::Grey, vec![(0.0, 1.0), (1.0, 0.0)]).dashed());
    for (name, hue, belongs) in groups {
        let points = Setup::ALL.iter().filter(|setup| belongs(**setup)).filter_map(|setup| {
            let light = tell::per_round(data, *setup, tell::light_share);
            let heavy = tell::per_round(data, *setup, tell::heavy_share);
            (!light.is_empty()).then(|| (median(&heavy), median(&light)))
        });
        both = both.series(dots(name, hue, points.collect()));
    }
    figures::write(path, &[Panel::Lines(held, HEIGHT), Panel::Lines(both, HEIGHT)])
}

/// Draws the runs in which something changes.
pub(super) fn changes(data: &Data, path: &Path) -> Result<()> {
    let panels: Vec<Panel> = data.changes.iter().map(|changed| Panel::Lines(one(changed), HEIGHT)).collect();
    if panels.is_empty() { Ok(()) } else { figures::write(path, &panels) }
}

fn one(changed: &Changed) -> Plot {
    let (title, words) = match changed.change {
        Change::Cost => ("The heavy job costs five times as much for a minute", "five times"),
        Change::Load => ("Heavy load comes, goes and comes again", "gone"),
    };
    let of = |value: fn(&super::changes::Seen) -> Option<f64>| {
        changed.seen.iter().filter_map(|seen| Some((seen.at_s, value(seen)?))).collect::<Vec<_>>()
    };
    let end = changed.seconds.len() as f64;
    let mut plot = Plot::new(title)
        .describe("Ratio of the slowdowns over ten seconds, as clients saw it, and the gateway's cap.")
        .x(Axis::new("seconds").from(0.0))
        .y(Axis::new("ratio; requests").logarithmic())
        .series(Series::line("wished", Hue::Grey, vec![(0.0, WISHED), (end, WISHED)]).dashed())
        .series(Series::line("ratio of slowdowns, clients", Hue::Blue, with_gaps(&changed.ratios())))
        .series(Series::line("cap of the heavy one", Hue::Amber, with_gaps(&of(|seen| seen.cap))));
    if let [from, to, ..] = changed.at[..] {
        plot = plot.span(Span::new(from, to, words));
    }
    plot
}

/// What is not drawn.
const GAP: (f64, f64) = (f64::NAN, f64::NAN);

/// Returns points of which those are joined that are about a second apart: nothing is drawn over a time
/// without any.
fn with_gaps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    points.chunk_by(|one, next| next.0 - one.0 < 1.5).flat_map(|run| [run, &[GAP]].concat()).collect()
}

/// Returns points that are not joined.
fn dots(name: &str, hue: Hue, points: Vec<(f64, f64)>) -> Series {
    Series::dotted(name, hue, points.into_iter().flat_map(|point| [point, GAP]).collect())
}

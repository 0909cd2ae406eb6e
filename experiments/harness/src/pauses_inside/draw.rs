//! The figure.

use std::path::Path;

use suimon_chart::{Axis, Hue, Plot, Series};
use suimon_statistics::median;

use super::{Cell, Data, RATIOS, Setup, tell};
use crate::figures::{self, Panel};
use crate::trouble::Result;

const HEIGHT: f64 = 280.0;

/// Where pauses are taken: name, colour, and the setup of a ratio.
type Place = (&'static str, Hue, fn(f64) -> Setup);

/// Draws what came of each declared ratio, around and inside: the ratio, how long light jobs take,
/// what heavy ones hold.
pub(super) fn figure(data: &Data, path: &Path) -> Result<()> {
    let declared = || {
        Axis::new("declared: seconds of pause for each second of work").ticks(vec![0.0, 0.5, 1.0, 2.0, 4.0])
    };
    let lines = |plot: Plot, of: fn(&Cell) -> f64| {
        let places: [Place; 2] =
            [("around", Hue::Blue, Setup::Around), ("inside", Hue::Amber, Setup::Inside)];
        places.into_iter().fold(plot, |plot, (name, hue, place)| {
            let without = (0.0, tell::per_round(data, Setup::Without, of));
            let each = RATIOS.iter().map(|ratio| (*ratio, tell::per_round(data, place(*ratio), of)));
            let points = std::iter::once(without).chain(each).filter(|(_, values)| !values.is_empty());
            plot.series(Series::line(name, hue, points.map(|(x, values)| (x, median(&values))).collect()))
        })
    };
    let as_declared = RATIOS.iter().map(|ratio| (*ratio, *ratio)).collect();
    let reached = Plot::new("The ratio that is reached")
        .describe("Medians of the rounds, around the job and inside it, against the declared ratio.")
        .x(declared())
        .y(Axis::new("reached").from(0.0))
        .series(Series::line("as declared", Hue::Grey, as_declared).dashed());
    let light = Plot::new("Response time of the light job")
        .describe("Means, medians of the rounds.")
        .x(declared())
        .y(Axis::new("ms").from(0.0));
    let held = Plot::new("Heap that heavy jobs hold")
        .describe("Live objects beyond those of an idle application, medians of the rounds.")
        .x(declared())
        .y(Axis::new("MB").from(0.0));
    let panels = [
        lines(reached, |cell| cell.ratio),
        lines(light, |cell| 1e3 * cell.light.mean_s),
        lines(held, tell::held),
    ];
    figures::write(path, &panels.map(|plot| Panel::Lines(plot, HEIGHT)))
}

//! The figure: completions and failures per second around each fault.

use std::path::Path;

use suimon_chart::{Axis, Hue, Plot, Series, Span};

use super::Data;
use super::fault::AT_S;
use super::scene::Case;
use crate::figures::{self, Panel};
use crate::trouble::Result;

/// Height of a panel, pixels.
const HEIGHT: f64 = 210.0;
/// Seconds shown before the fault.
const BEFORE_S: f64 = 5.0;

pub(super) fn figure(data: &Data, path: &Path) -> Result<()> {
    let panels: Vec<Panel> = data.cases.iter().map(|case| Panel::Lines(plot(case), HEIGHT)).collect();
    if panels.is_empty() { Ok(()) } else { figures::write(path, &panels) }
}

fn plot(case: &Case) -> Plot {
    // What has no moment is shown from where others have theirs.
    let at = if case.fault.script().is_empty() { f64::from(AT_S) } else { case.fault_at_s };
    let until = case.load_until_s - at;
    let points = |counts: &[u32]| -> Vec<(f64, f64)> {
        let all = counts.iter().enumerate().map(|(second, count)| (second as f64 - at, f64::from(*count)));
        all.filter(|(second, _)| *second >= -BEFORE_S && *second < until - 0.5).collect()
    };
    let mut plot = Plot::new(&format!("{}: pages per second", case.fault.words()))
        .x(Axis::new("seconds from the fault").from(-BEFORE_S).to(until))
        .y(Axis::new("pages/s").from(0.0))
        .describe("Pages completed and failed in each second before and after the fault.")
        .series(Series::steps("completed", Hue::Blue, points(&case.completed_by_second)));
    if case.failed > 0 {
        plot = plot.series(Series::steps("failed", Hue::Vermilion, points(&case.failed_by_second)));
    }
    if let Some(mended) = case.mended_at_s {
        plot = plot.span(Span::new(0.0, mended - at, "broken"));
    }
    plot
}

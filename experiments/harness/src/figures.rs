//! Figures of several panels in one file.

use crate::data;
use crate::trouble::Result;
use std::path::Path;
use suimon_chart::{Bars, Dress, Plot, Size};

/// Width of every figure, CSS pixels.
const WIDTH: f64 = 860.0;

/// One chart of a figure.
#[allow(clippy::large_enum_variant, reason = "a figure has a handful of them")]
pub(crate) enum Panel {
    /// Lines, of this height.
    Lines(Plot, f64),
    /// Bars, as high as necessary.
    Bars(Bars),
}

/// Writes the panels to `path`, one under the other.
pub(crate) fn write(path: &Path, panels: &[Panel]) -> Result<()> {
    let drawn = panels.iter().map(|panel| match panel {
        Panel::Lines(plot, height) => plot.svg(Size::new(WIDTH, *height), Dress::Alone),
        Panel::Bars(bars) => bars.svg(WIDTH, Dress::Alone),
    });
    data::write(path, &(stacked(&drawn.collect::<Vec<_>>()) + "\n"))
}

/// A drawing inside another keeps its size and is only moved down.
fn stacked(drawings: &[String]) -> String {
    if let [only] = drawings {
        return only.clone();
    }
    let mut top = 0.0;
    let mut inside = String::new();
    for drawing in drawings {
        inside += &drawing.replacen("<svg ", &format!("<svg y=\"{top}\" "), 1);
        top += height(drawing);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {top}\" width=\"{WIDTH}\" height=\"{top}\">{inside}</svg>"
    )
}

fn height(drawing: &str) -> f64 {
    let behind = drawing.split_once(" height=\"").map_or("", |(_, rest)| rest);
    behind.split('"').next().and_then(|text| text.parse().ok()).unwrap_or(Size::HEIGHT_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_chart::{Axis, Hue, Series};

    #[test]
    fn panels_stand_under_each_other() {
        let plot = || {
            let points = vec![(1.0, 2.0), (3.0, 4.0)];
            Plot::new("T").x(Axis::new("x")).series(Series::line("s", Hue::Blue, points))
        };
        let drawings = [plot(), plot()].map(|plot| plot.svg(Size::new(WIDTH, 300.0), Dress::Alone));
        let figure = stacked(&drawings);
        assert!(figure.contains("<svg y=\"300\""), "{figure}");
        assert!(figure.contains("height=\"600\""), "{figure}");
    }
}

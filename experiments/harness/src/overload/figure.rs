//! The figure: which method sustains the crowd, and which loses sessions after admission.

use std::path::Path;

use suimon_chart::{Axis, Hue, Plot, Rule, Series};

use super::plan::Method;
use super::{Cell, Data};
use crate::figures::{self, Panel};
use crate::trouble::Result;

/// Height of a panel, CSS pixels.
const HEIGHT: f64 = 340.0;

/// Draws it.
pub(super) fn draw(data: &Data, path: &Path) -> Result<()> {
    let share = panel(data, "Sessions completed per second, as a share of the bound B", |cell| {
        data.share(cell).unwrap_or(f64::NAN)
    });
    let share = share
        .y(Axis::new("share of B").from(0.0))
        .rule(Rule::new(1.0, &format!("B = {:.2} per s", data.bound_per_s())))
        .describe("Lines by users: Suimon and the other methods, each as a share of the bound.");
    let failures = panel(data, "Failures inside sessions", |cell| {
        cell.seen.as_ref().map_or(f64::NAN, |seen| seen.crowd.mid_session_failures as f64)
    });
    let failures = failures
        .y(Axis::new(&format!("failures in {} s", data.settings.measured_s)).from(0.0))
        .describe("Lines by users: time-outs, errors and refusals behind the first step.");
    figures::write(path, &[Panel::Lines(share, HEIGHT), Panel::Lines(failures, HEIGHT)])
}

fn panel(data: &Data, title: &str, value: impl Fn(&Cell) -> f64) -> Plot {
    let sizes: Vec<f64> = data.sizes().into_iter().map(f64::from).collect();
    let mut plot = Plot::new(title).x(Axis::new("users").logarithmic().ticks(sizes));
    for method in Method::ALL {
        let mut points: Vec<(f64, f64)> = data
            .cells
            .iter()
            .filter(|cell| cell.method == method)
            .map(|cell| (f64::from(cell.users), value(cell)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if points.is_empty() {
            continue;
        }
        let setting = data.cells.iter().find(|cell| cell.method == method).map(|cell| cell.control.setting());
        // The paper's numbers are too many for a label at a line's end; they are in the table.
        let setting = setting.filter(|setting| !setting.is_empty() && method != Method::Paper);
        let name =
            setting.map_or(method.name().to_string(), |setting| format!("{}, {setting}", method.name()));
        plot = plot.series(Series::dotted(&name, hue(method), points));
    }
    plot
}

const fn hue(method: Method) -> Hue {
    match method {
        Method::None => Hue::Vermilion,
        Method::RoutesOnly => Hue::Purple,
        Method::Static => Hue::Grey,
        Method::Paper => Hue::Amber,
        Method::Haproxy => Hue::Green,
        Method::Suimon => Hue::Blue,
    }
}

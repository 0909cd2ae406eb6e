//! The figures.

use std::path::Path;

use suimon_chart::{Axis, Plot, Series};

use super::systems::{Place, Setting, System};
use super::{Cell, Data, HEAVY, LIGHT, PAUSES, PAUSING, Times, middle};
use crate::figures::{self, Panel};
use crate::trouble::Result;

const HEIGHT: f64 = 320.0;

/// Draws figures 1 to 4: jobs done beside 1 to 40 clients for B.
pub(super) fn company(data: &Data, path: &Path) -> Result<()> {
    let seconds = Times::of(data).figures;
    let panel = |title: &str, of: fn(&Cell) -> f64, y: Axis| {
        let clients =
            Axis::new("clients for B, beside 30 for A").from(0.0).ticks(HEAVY.map(f64::from).to_vec());
        let mut plot = Plot::new(title).describe("By operating system.").x(clients).y(y);
        for system in System::ALL {
            let at = |heavy| (f64::from(heavy), of(data.cell(Setting::new(system, LIGHT, heavy, seconds))));
            plot = plot.series(Series::dotted(system.words(), system.hue(), HEAVY.map(at).to_vec()));
        }
        Panel::Lines(plot, HEIGHT)
    };
    let done = format!("done in {seconds} s");
    figures::write(
        path,
        &[
            panel("Light jobs A", Cell::light, Axis::new(&done).logarithmic()),
            panel("Heavy jobs B", Cell::heavy, Axis::new(&done).from(0.0)),
        ],
    )
}

/// Draws figures 5 to 8: jobs done where each job B pauses.
pub(super) fn pauses(data: &Data, path: &Path) -> Result<()> {
    let seconds = Times::of(data).figures;
    let panel = |title: &str, of: fn(&Cell) -> &[u64], y: Axis| {
        let pause = Axis::new("seconds of pause in each job B, 20 clients; dashed: inside it").from(0.0);
        let mut plot = Plot::new(title).describe("By operating system and place of the pause.").x(pause).y(y);
        for (system, place) in System::ALL
            .into_iter()
            .flat_map(|system| [Place::Inside, Place::Around].map(|place| (system, place)))
        {
            let at = |pause_s| {
                let setting = Setting { pause_s, ..Setting::new(system, LIGHT, PAUSING, seconds) };
                let setting = if pause_s > 0.0 { Setting { place, ..setting } } else { setting };
                (pause_s, middle(of(data.cell(setting))))
            };
            let points = [0.0].into_iter().chain(PAUSES).map(at).collect();
            let series = match place {
                Place::Around => Series::dotted(system.words(), system.hue(), points),
                Place::Inside => Series::line("", system.hue(), points).dashed(),
            };
            plot = plot.series(series);
        }
        Panel::Lines(plot, HEIGHT)
    };
    let done = format!("done in {seconds} s");
    figures::write(
        path,
        &[
            panel("Light jobs A", |cell| &cell.light, Axis::new(&done).logarithmic()),
            panel("Heavy jobs B", |cell| &cell.heavy, Axis::new(&done).from(0.0)),
        ],
    )
}

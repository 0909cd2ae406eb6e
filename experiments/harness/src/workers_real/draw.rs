//! The figure: for each language the scan, and what each server completes under each load.

use std::path::Path;

use suimon_chart::{Axis, Bars, Hue, Plot, Series};

use super::load::Load;
use super::tell::{scanned, servers, under};
use super::{CGI_AT_ONCE, Data, Page};
use crate::figures::{self, Panel};
use crate::trouble::Result;
use crate::workers::Server;

const HUES: [Hue; 4] = [Hue::Blue, Hue::Green, Hue::Amber, Hue::Grey];

pub(super) fn figure(data: &Data, path: &Path) -> Result<()> {
    let panels = data.pages.iter().flat_map(|page| {
        let has_cells = !page.cells.is_empty();
        [scan(page)].into_iter().chain(has_cells.then(|| cells(page)))
    });
    figures::write(path, &panels.collect::<Vec<_>>())
}

fn scan(page: &Page) -> Panel {
    let all = servers(page.scan.iter().map(|scanned| scanned.server));
    let mut points: Vec<(f64, f64)> = all
        .iter()
        .filter_map(|server| match server {
            Server::Fixed(number) => Some((f64::from(*number), scanned(page, *server, |s| s.per_s)?)),
            _ => None,
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let most = points.last().map_or(1.0, |(number, _)| *number);
    let mut plot = Plot::new(&format!("Pages per second, {:?}, workers that never rest", page.language))
        .x(Axis::new("resident workers").from(0.0))
        .y(Axis::new("pages/s").from(0.0))
        .describe("Pages per second by the fixed number of resident workers, and of CGI.")
        .series(Series::line("resident", Hue::Blue, points));
    if let Some(cgi) = scanned(page, Server::Cgi(CGI_AT_ONCE), |s| s.per_s) {
        plot = plot.series(Series::dotted("CGI", Hue::Grey, vec![(0.0, cgi), (most, cgi)]));
    }
    Panel::Lines(plot, 260.0)
}

fn cells(page: &Page) -> Panel {
    let mut loads: Vec<Load> = Vec::new();
    for cell in &page.cells {
        if !loads.contains(&cell.load) {
            loads.push(cell.load);
        }
    }
    let mut bars = Bars::new(&format!("Pages per second within the visitors' patience, {:?}", page.language))
        .unit("/s")
        .describe("For each server a bar for each offered load.");
    for (load, hue) in loads.iter().zip(HUES.into_iter().cycle()) {
        bars = bars.group(&load.words(), hue);
    }
    for server in servers(page.cells.iter().map(|cell| cell.server)) {
        let done = |load: &Load| under(page, server, *load, |cell| cell.completed_per_s).unwrap_or(0.0);
        bars = bars.row(&server.words(page.language), loads.iter().map(done).collect());
    }
    Panel::Bars(bars)
}

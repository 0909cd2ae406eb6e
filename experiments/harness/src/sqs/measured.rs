//! What was measured on the Tomcat shop, cell by cell, and the part that each figure shows.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_statistics::median;

use super::data::{Content, Curve, Point, Shop};
use super::make;
use super::method::Control;
use super::play::{Played, Second};
use super::table::{Figure, Shows};
use super::worlds::World;
use crate::apps::Work;
use crate::bound::Bound;
use crate::machine::Machine;
use crate::tomcat_model;
use crate::trouble::Result;

/// The file in the folder of this experiment.
pub(super) const FILE: &str = "measured.json";
/// Fixed numbers of sessions to try with the largest crowd, if none is named.
pub(super) const STATIC_TRIED: [u32; 4] = [20, 28, 36, 48];
/// A cell's own bound is wrong by some 7 %. So the median of it and of this many cells before and
/// after it is used.
const NEIGHBOURS: usize = 2;

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) machine: Machine,
    pub(super) scale: f64,
    pub(super) dead_after_s: f64,
    pub(super) work: Work,
    pub(super) cells: Vec<Cell>,
}

/// One burst.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) world: World,
    pub(super) control: Control,
    pub(super) clients: u32,
    pub(super) seed: u64,
    /// What a session of a single user cost in the same shop just before the burst.
    pub(super) bound: Bound,
    pub(super) played: Played,
    /// Share of the shop's core that other processes used.
    pub(super) others: f64,
}

impl Measured {
    /// Returns the data in the folder of this experiment, if anything was measured.
    pub(super) fn load(folder: &Path) -> Result<Option<Measured>> {
        crate::data::load(&folder.join(FILE))
    }

    /// Returns the shop of the cells of `world`.
    pub(super) fn shop(&self, world: World, model: &tomcat_model::Measured) -> Shop {
        Shop { speed: median_speed(&self.cells, model), static_sessions: self.best_static(world) }
    }

    /// Returns the shop's speed around the cell with this index; 1 is the speed at which its pages'
    /// costs were measured.
    pub(super) fn speed_at(&self, index: usize, model: &tomcat_model::Measured) -> f64 {
        let around = index.saturating_sub(NEIGHBOURS)..(index + NEIGHBOURS + 1).min(self.cells.len());
        median_speed(&self.cells[around], model)
    }

    /// Returns the largest crowd in a world.
    fn largest(&self, world: World) -> u32 {
        let own = self.cells.iter().filter(|cell| cell.world == world);
        own.map(|cell| cell.clients).max().unwrap_or_default()
    }

    /// Returns the fixed number of sessions that was best with the largest crowd.
    pub(super) fn best_static(&self, world: World) -> u32 {
        let largest = self.largest(world);
        let scanned = self.cells.iter().filter(|cell| cell.world == world && cell.clients == largest);
        let rated = scanned.filter_map(|cell| match cell.control {
            Control::Static(sessions) => Some((cell.played.sessions_per_s, sessions)),
            Control::None | Control::PageOnly(_) | Control::SqsAsSet | Control::Sqs(_) | Control::Suimon => {
                None
            }
        });
        rated.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(STATIC_TRIED[0], |(_, sessions)| sessions)
    }

    /// Returns the part that `figure` shows; `None` if none of it was measured.
    pub(super) fn content(&self, figure: &Figure) -> Option<Content> {
        if !figure.is_measured {
            return None;
        }
        let cells: Vec<&Cell> = self.cells.iter().filter(|cell| cell.world == figure.world).collect();
        let largest = self.largest(figure.world);
        let fixed = self.best_static(figure.world);
        let shown = cells.iter().map(|cell| cell.control).filter(|control| control.is_shown(fixed));
        let mut controls: Vec<Control> = shown.collect();
        controls.sort_by_key(|control| control.method());
        controls.dedup();
        let runs = |control: Control, clients: u32| -> Vec<Arc<Played>> {
            let own = cells.iter().filter(|cell| cell.control == control && cell.clients == clients);
            own.map(|cell| Arc::new(cell.played.clone())).collect()
        };
        let sizes = |control: Control| {
            let mut sizes: Vec<u32> =
                cells.iter().filter(|cell| cell.control == control).map(|cell| cell.clients).collect();
            sizes.sort_unstable();
            sizes.dedup();
            sizes
        };
        Some(match figure.shows {
            Shows::Throughput | Shows::Failures => {
                let curve = |control: &Control| {
                    let points: Vec<Point> = sizes(*control)
                        .into_iter()
                        .map(|clients| make::point(clients, &runs(*control, clients)))
                        .collect();
                    Curve { method: control.method(), setting: control.setting(), points }
                };
                Content::Sweep(controls.iter().map(curve).collect())
            }
            Shows::Distribution(clients, until_s) => Content::Distribution(
                controls
                    .iter()
                    .map(|control| make::distribution(*control, clients, until_s, &runs(*control, clients)))
                    .collect(),
            ),
            Shows::Pages => {
                let mut all = Vec::new();
                for clients in [100, largest] {
                    let measured = controls.iter().filter(|control| !runs(**control, clients).is_empty());
                    all.extend(
                        measured.map(|control| make::by_page(*control, clients, &runs(*control, clients))),
                    );
                }
                Content::Pages(all)
            }
            Shows::Interval | Shows::Limits => {
                let shown = controls.iter().filter(|control| make::is_in_series(control.method()));
                let series = |control: &Control| {
                    let runs = runs(*control, largest);
                    let seconds: Vec<&[Second]> = runs.iter().map(|run| run.seconds.as_slice()).collect();
                    make::series(*control, largest, &seconds)
                };
                Content::Series(shown.map(series).collect())
            }
        })
    }
}

/// Returns the median of the shop's speed over some cells.
fn median_speed(cells: &[Cell], model: &tomcat_model::Measured) -> f64 {
    let bounds: Vec<f64> = cells.iter().map(|cell| cell.bound.sessions_per_s).collect();
    median(&bounds) / model.sessions_per_s()
}

//! A floor for the light job, kept by pauses around the heavy one or inside it: nobody declares a ratio, Suimon finds
//! it.

use std::fmt::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::numbers::{held_mb, spread};
use super::{Bench, Cell, Setup, there_s};
use crate::claims::Claim;
use crate::degradation_tomcat::{HEAVY, LIGHT, Side};
use crate::trouble::{Result, failed};

/// What is kept for light jobs, in what they get without pauses.
const FLOOR: f64 = 4.0 / 3.0;
/// Seconds from the beginning of the load that do not count: the cap on heavy jobs is to be found.
const SETTLE_S: u64 = 45;
/// Share of the seconds in which a floor must be kept.
const KEPT_MIN: f64 = 0.95;
/// Share of the time in the application that heavy jobs must pause, to say that a floor is kept inside.
const PAUSING_MIN: f64 = 0.1;

/// Where pauses are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Place {
    /// Nowhere: no floor is declared. What the limits of the routes do by themselves.
    None,
    Around,
    Inside,
}

pub(super) const PLACES: [Place; 3] = [Place::None, Place::Around, Place::Inside];

/// What came of a floor in one round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    place: Place,
    floor_per_s: f64,
    light: Side,
    heavy: Side,
    /// Light jobs done, second by second.
    seconds: Vec<u32>,
    /// Heavy jobs in the application, and those of them that pause, on average.
    heavy_inside: f64,
    pausing: f64,
    idle_bytes: u64,
    held_bytes: Vec<u64>,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::None => "no floor",
            Place::Around => "around",
            Place::Inside => "inside",
        }
    }
}

impl Kept {
    /// Returns the share of the time in the application that heavy jobs pause.
    fn pausing_share(&self) -> f64 {
        self.pausing / self.heavy_inside
    }

    fn is_kept_in(&self, light: u32) -> bool {
        f64::from(light) >= self.floor_per_s
    }
}

/// Nothing but the floor is declared; limits are found as ever.
pub(super) fn settings(place: Place, floor_per_s: f64) -> String {
    let open = "[gate]\nsession_law = \"open\"\n";
    if place == Place::None {
        return open.into();
    }
    let place = place.name();
    format!(
        "{open}\n[[service]]\nname = \"light\"\nroutes = [\"GET {LIGHT}\"]\nfloor = \"{floor_per_s:.0}/s\"\n\n[[service]]\nname = \"heavy\"\nroutes = [\"GET {HEAVY}\"]\npauses = \"{place}\"\n\n[degradation]\nmode = \"bands\"\n"
    )
}

/// Measures the floor in both places and without it, the first of them in turns of rounds. `learned`: what Suimon learned of the
/// jobs alone; `cells`: the other setups of the round.
pub(super) fn round(bench: &Bench<'_>, learned: &Path, cells: &[Cell], number: usize) -> Result<Vec<Kept>> {
    let Some(without) = cells.iter().find(|cell| cell.setup == Setup::Without) else {
        return failed("nothing says what light jobs get without pauses");
    };
    let floor_per_s = (FLOOR * without.light.per_s).round();
    let turns = (0..PLACES.len()).map(|turn| PLACES[(turn + number) % PLACES.len()]);
    turns.map(|place| kept(bench, learned, place, floor_per_s, number)).collect()
}

fn kept(bench: &Bench<'_>, learned: &Path, place: Place, floor_per_s: f64, number: usize) -> Result<Kept> {
    let played = bench.play(&settings(place, floor_per_s), Some(learned), SETTLE_S)?;
    let (light, heavy) = played.jobs()?;
    let counted = played.report.series.iter().skip(SETTLE_S as usize).take(bench.seconds() as usize);
    let kept = Kept {
        place,
        floor_per_s,
        light: Side::of(light),
        heavy: Side::of(Some(heavy)),
        seconds: counted.map(|second| second.light).collect(),
        heavy_inside: heavy.per_second * there_s(heavy),
        pausing: played.pausing,
        idle_bytes: bench.idle_bytes,
        held_bytes: played.held_bytes,
    };
    eprintln!(
        "round {}: floor {floor_per_s:.0}/s {}: light {:.0}/s, mean {:.1} ms; heavy {:.2}/s, {:.2} inside, {:.2} of them pausing",
        number + 1,
        place.name(),
        kept.light.per_s,
        1e3 * kept.light.mean_s,
        kept.heavy.per_s,
        kept.heavy_inside,
        kept.pausing
    );
    Ok(kept)
}

pub(super) fn table(floors: &[Kept]) -> String {
    if floors.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "\n## A floor for the light job, a third more than it gets without pauses\n\n*Kept*: seconds with as many light jobs as the floor. *Inside*: heavy jobs in the application on average, and of these\n*pausing* by what the agent counts.\n\n| pauses | floor/s | light/s | kept | light mean | light p99 | heavy/s | heavy mean | inside | pausing | held |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for place in PLACES.into_iter().filter(|place| at(floors, *place).next().is_some()) {
        let of = |of: fn(&Kept) -> f64, digits| {
            let values: Vec<f64> = at(floors, place).map(of).collect();
            spread(&values, digits)
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {:.0} % | {} ms | {} ms | {} | {} s | {} | {} | {} MB |",
            place.name(),
            of(|kept| kept.floor_per_s, 0),
            of(|kept| kept.light.per_s, 0),
            100.0 * kept_share(floors, place),
            of(|kept| 1e3 * kept.light.mean_s, 0),
            of(|kept| 1e3 * kept.light.p99_s, 0),
            of(|kept| kept.heavy.per_s, 2),
            of(|kept| kept.heavy.mean_s, 1),
            of(|kept| kept.heavy_inside, 2),
            of(|kept| kept.pausing, 2),
            of(|kept| held_mb(kept.idle_bytes, &kept.held_bytes), 0),
        );
    }
    out
}

pub(super) fn claims(floors: &[Kept]) -> Vec<Claim> {
    if floors.is_empty() {
        return vec![];
    }
    let kept = |place: Place| {
        let share = kept_share(floors, place);
        let sentence = format!(
            "a floor kept by pauses {} is had in {:.0} % of the seconds: {:.0} %",
            place.name(),
            100.0 * KEPT_MIN,
            100.0 * share
        );
        Claim::new(sentence, share >= KEPT_MIN)
    };
    let shares: Vec<f64> = at(floors, Place::Inside).map(Kept::pausing_share).collect();
    let told: Vec<String> = shares.iter().map(|share| format!("{share:.2}")).collect();
    let paused = Claim::new(
        format!(
            "for a floor kept by pauses inside heavy jobs pause for a tenth of their time in the application: {}",
            told.join(", ")
        ),
        shares.iter().all(|share| *share >= PAUSING_MIN),
    );
    vec![kept(Place::Around), kept(Place::Inside), paused]
}

pub(super) fn errors(floors: &[Kept]) -> u64 {
    floors.iter().map(|kept| kept.light.errors + kept.heavy.errors).sum()
}

/// Returns the share of all seconds in which the floor was had.
fn kept_share(floors: &[Kept], place: Place) -> f64 {
    let seconds =
        || at(floors, place).flat_map(|kept| kept.seconds.iter().map(|light| kept.is_kept_in(*light)));
    seconds().filter(|is_kept| *is_kept).count() as f64 / seconds().count() as f64
}

fn at(floors: &[Kept], place: Place) -> impl Iterator<Item = &Kept> {
    floors.iter().filter(move |kept| kept.place == place)
}

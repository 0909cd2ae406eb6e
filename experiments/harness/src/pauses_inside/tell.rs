//! The table, and what was to hold.

use std::fmt::Write;

use suimon_statistics::median;

use super::numbers::{held_mb, spread};
use super::{Cell, Data, NAME, RATIOS, Setup, floors};
use crate::claims::{self, Claim};
use crate::degradation_tomcat::{HEAVY_CLIENTS, LIGHT_CLIENTS};

/// How far the reached ratio may be from the declared one.
const RATIO_OFF_MAX: f64 = 0.15;

/// Returns the values of a setup in all rounds.
pub(super) fn per_round(data: &Data, setup: Setup, of: impl Fn(&Cell) -> f64) -> Vec<f64> {
    data.rounds.iter().flatten().filter(|cell| cell.setup == setup).map(of).collect()
}

/// Returns the megabytes of live objects of a cell, beyond those of an idle application.
pub(super) fn held(cell: &Cell) -> f64 {
    held_mb(cell.idle_bytes, &cell.held_bytes)
}

pub(super) fn text(data: &Data) -> String {
    format!(
        "# Pauses around a heavy job and inside it\n\nWritten by `./experiments/run {NAME}` from `data/result.json`, measured on {}, {} cores,\n{}. Medians of {} rounds; the least and the most in brackets.\n{}{}\n## What was to hold\n\n{}",
        data.machine.processor,
        data.machine.cores,
        data.machine.system,
        data.rounds.len(),
        table(data),
        floors::table(&data.floors),
        claims::list(&claims(data))
    )
}

pub(super) fn table(data: &Data) -> String {
    let mut out = format!(
        "\n## {LIGHT_CLIENTS} clients for the light job beside {HEAVY_CLIENTS} for the heavy one\n\n*Inside*: heavy jobs in the application on average, paused ones among them. *Held*: bytes of live objects beyond those\nof an idle application.\n\n| pauses | came to | light/s | light mean | light p50 | light p99 | heavy/s | heavy mean | inside | held |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for setup in Setup::all() {
        let of = |of: fn(&Cell) -> f64, digits| spread(&per_round(data, setup, of), digits);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} ms | {} ms | {} ms | {} | {} s | {} | {} MB |",
            setup.words(),
            of(|cell| cell.ratio, 2),
            of(|cell| cell.light.per_s, 0),
            of(|cell| 1e3 * cell.light.mean_s, 0),
            of(|cell| 1e3 * cell.light.p50_s, 0),
            of(|cell| 1e3 * cell.light.p99_s, 0),
            of(|cell| cell.heavy.per_s, 2),
            of(|cell| cell.heavy.mean_s, 1),
            of(|cell| cell.heavy_inside, 1),
            of(held, 0),
        );
    }
    out
}

pub(super) fn claims(data: &Data) -> Vec<Claim> {
    let reached = |place: fn(f64) -> Setup, words: &str| {
        let came: Vec<f64> =
            RATIOS.iter().map(|ratio| median(&per_round(data, place(*ratio), |cell| cell.ratio))).collect();
        let holds = RATIOS.iter().zip(&came).all(|(ratio, came)| (came / ratio - 1.0).abs() <= RATIO_OFF_MAX);
        let came: Vec<String> = came.iter().map(|came| format!("{came:.2}")).collect();
        let sentence = format!(
            "declared ratios of 0.5, 1, 2 and 4 {words} are reached within {:.0} %: {}",
            100.0 * RATIO_OFF_MAX,
            came.join(", ")
        );
        Claim::new(sentence, holds)
    };
    let errors: u64 =
        data.rounds.iter().flatten().map(|cell| cell.light.errors + cell.heavy.errors).sum::<u64>()
            + floors::errors(&data.floors);
    let failed = Claim::new(format!("no request fails: {errors} did"), errors == 0);
    let mut claims = vec![reached(Setup::Around, "around"), reached(Setup::Inside, "inside")];
    claims.extend(floors::claims(&data.floors));
    claims.push(failed);
    claims
}

//! `sqs live`'s own figure: every measured cell beside the prediction by the model of the shop.
//!
//! The model's costs come from `tomcat-model`, from one kind of page at a time. The cells only give
//! the speed of the shop around them, measured with a single user, so that a slower hour of the
//! machine does not count as an error of the model.

use std::path::Path;

use suimon_chart::{Axis, Plot, Series as Line};

use super::data::Range;
use super::make;
use super::measured::{Cell, Measured};
use super::method::{Control, Method};
use super::play::{Job, Player, thousandths};
use super::worlds::{Site, World};
use crate::claims::Claim;
use crate::figures::{self, Panel};
use crate::tomcat_model;
use crate::trouble::Result;

/// The largest allowed difference between simulation and measurement, as a share.
const WITHIN: f64 = 0.1;
/// The methods to which the claim applies.
const PREDICTED: [Method; 4] = [Method::None, Method::PageOnly, Method::SessionOnly, Method::Suimon];
/// Seeds of the simulation.
const SEEDS: u64 = 5;
/// Height of a panel, CSS pixels.
const HEIGHT: f64 = 360.0;

/// One method at one number of clients: sessions per second, 0 where not all were done in time.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Prediction {
    pub(super) world: World,
    pub(super) control: Control,
    pub(super) clients: u32,
    pub(super) measured: Range,
    pub(super) simulated: Range,
    /// Failures of all kinds, as measured.
    pub(super) measured_failures: Range,
    pub(super) simulated_failures: Range,
}

impl Prediction {
    /// Returns measured ÷ simulated; 1 if neither was done in time.
    fn ratio(&self) -> f64 {
        let (measured, simulated) = (self.measured.1, self.simulated.1);
        if measured <= 0.0 && simulated <= 0.0 { 1.0 } else { measured / simulated.max(1e-9) }
    }

    fn is_within(&self) -> bool {
        (self.ratio() - 1.0).abs() <= WITHIN
    }
}

/// Simulates all measured cells.
pub(super) fn predict(
    measured: &Measured,
    model: &tomcat_model::Measured,
    player: &mut Player,
) -> Result<Vec<Prediction>> {
    let mut groups: Vec<(World, Control, u32)> =
        measured.cells.iter().map(|cell| (cell.world, cell.control, cell.clients)).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
        .into_iter()
        .map(|(world, control, clients)| one(measured, model, player, world, control, clients))
        .collect()
}

fn one(
    measured: &Measured,
    model: &tomcat_model::Measured,
    player: &mut Player,
    world: World,
    control: Control,
    clients: u32,
) -> Result<Prediction> {
    let is_own =
        |(_, cell): &(usize, &Cell)| (cell.world, cell.control, cell.clients) == (world, control, clients);
    let cells: Vec<(usize, &Cell)> = measured.cells.iter().enumerate().filter(is_own).collect();
    let mut jobs = Vec::new();
    for (index, _) in &cells {
        let (site, speed) = (Site::Tomcat, thousandths(measured.speed_at(*index, model)));
        jobs.extend((1..=SEEDS).map(|seed| Job { site, world, control, clients, seed, speed }));
    }
    let simulated = make::point(clients, &player.play(&jobs)?);
    let played: Vec<_> = cells.iter().map(|(_, cell)| cell.played.clone().into()).collect();
    let seen = make::point(clients, &played);
    Ok(Prediction {
        world,
        control,
        clients,
        measured: seen.sessions_per_s,
        simulated: simulated.sessions_per_s,
        measured_failures: seen.failures,
        simulated_failures: simulated.failures,
    })
}

/// Returns the claims: a sentence for each method.
pub(super) fn claims(predictions: &[Prediction]) -> Vec<Claim> {
    let sentence = |method: Method| {
        let own: Vec<&Prediction> =
            predictions.iter().filter(|prediction| prediction.control.method() == method).collect();
        let off = |prediction: &&&Prediction| (prediction.ratio() - 1.0).abs();
        let worst = own.iter().max_by(|a, b| off(a).total_cmp(&off(b)))?;
        let within = own.iter().filter(|prediction| prediction.is_within()).count();
        let text = format!(
            "{}: the simulation is within {:.0} % of the shop; in {within} of {} cells, at worst {} at {} clients ({}: {} measured, {} simulated)",
            method.name(),
            WITHIN * 100.0,
            own.len(),
            by_how_much(worst),
            worst.clients,
            worst.world.name(),
            told(worst.measured),
            told(worst.simulated),
        );
        Some(Claim::new(text, within == own.len()))
    };
    PREDICTED.into_iter().filter_map(sentence).collect()
}

fn by_how_much(prediction: &Prediction) -> String {
    if prediction.measured.1 <= 0.0 || prediction.simulated.1 <= 0.0 {
        return "one done and one not".to_owned();
    }
    format!("{:+.0} %", 100.0 * (prediction.ratio() - 1.0))
}

/// Returns sessions per second in words.
fn told(range: Range) -> String {
    if range.1 > 0.0 { format!("{:.2}", range.1) } else { "dead".to_owned() }
}

/// Returns a table: a row for each method and number of clients.
pub(super) fn table(predictions: &[Prediction]) -> String {
    let mut out = String::from(
        "| | method | clients | measured, sessions/s | simulated | measured ÷ simulated | failures measured | simulated |\n|---|---|--:|--:|--:|--:|--:|--:|\n",
    );
    let range = |Range(low, _, high): Range| format!("{low:.2}–{high:.2}");
    for prediction in predictions {
        let Prediction { world, control, clients, measured, simulated, .. } = prediction;
        let setting = match control {
            Control::Static(sessions) => format!(" ({sessions})"),
            _ => String::new(),
        };
        let ratio = if measured.1 > 0.0 && simulated.1 > 0.0 {
            format!("{:.2}", prediction.ratio())
        } else if prediction.is_within() {
            "as told".to_owned()
        } else {
            "not as told".to_owned()
        };
        out += &format!(
            "| {} | {}{setting} | {clients} | {} | {} ({}) | {ratio} | {:.0} | {:.0} |\n",
            world.name(),
            control.method().name(),
            told(*measured),
            told(*simulated),
            range(*simulated),
            prediction.measured_failures.1,
            prediction.simulated_failures.1,
        );
    }
    out
}

/// Draws a panel for each world into `folder`: measurements as dots, the model dashed.
pub(super) fn draw(predictions: &[Prediction], measured: &Measured, folder: &Path) -> Result<()> {
    let dead_after_s = measured.dead_after_s;
    let mut panels = Vec::new();
    let mut worlds: Vec<World> = predictions.iter().map(|prediction| prediction.world).collect();
    worlds.dedup();
    for world in worlds {
        let mut plot = Plot::new(&format!(
            "Measured on the Tomcat shop, and foretold: {}, ÷ 4",
            world.words()
        ))
        .describe("Sessions per second by number of clients: dots are measured, dashed lines are the model.")
        .x(Axis::new("clients, one session each").from(0.0).to(400.0))
        .y(Axis::new(&format!(
            "sessions per second (0: not all done after {dead_after_s:.0} s; dashed: the model)"
        ))
        .from(0.0));
        for method in Method::ALL {
            let is_own = |it: &&Prediction| {
                it.world == world
                    && it.control.method() == method
                    && it.control.is_shown(measured.best_static(world))
            };
            let own = || predictions.iter().filter(is_own);
            let points = |of: fn(&Prediction) -> Range| -> Vec<(f64, f64)> {
                own().map(|it| (f64::from(it.clients), of(it).1)).collect()
            };
            if own().next().is_none() {
                continue;
            }
            plot = plot
                .series(Line::dotted(method.name(), method.hue(), points(|it| it.measured)))
                .series(Line::line("", method.hue(), points(|it| it.simulated)).dashed());
        }
        panels.push(Panel::Lines(plot, HEIGHT));
    }
    figures::write(&folder.join("live.svg"), &panels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prediction(measured: f64, simulated: f64) -> Prediction {
        let range = |middle| Range(middle, middle, middle);
        Prediction {
            world: World::Timeout60,
            control: Control::Suimon,
            clients: 25,
            measured: range(measured),
            simulated: range(simulated),
            measured_failures: range(0.0),
            simulated_failures: range(0.0),
        }
    }

    #[test]
    fn a_tenth_off_is_told_and_so_is_one_that_was_done_against_all_foretelling() {
        for (measured, simulated, within) in
            [(1.09, 1.0, true), (0.88, 1.0, false), (0.0, 0.0, true), (1.0, 0.0, false), (0.0, 1.0, false)]
        {
            let claims = claims(&[prediction(measured, simulated)]);
            assert_eq!(
                (claims.len(), claims[0].holds),
                (1, within),
                "{measured} and {simulated}: {claims:?}"
            );
        }
    }
}

//! `sqs`: the figures and the table of the paper on Session-aware Queue Scheduling, simulated at
//! full size.
//!
//! [`table::FIGURES`] lists what each figure shows and what the paper says about it. [`make`]
//! simulates it, [`draw`] draws it and [`readme`] reports it. [`live`] measures some figures on a
//! real shop, and [`predict`] compares the model with that.

mod data;
mod draw;
mod live;
mod make;
mod measured;
mod method;
mod play;
mod predict;
mod readme;
mod table;
#[cfg(test)]
mod tests;
mod view;
mod worlds;

use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::claims;
use crate::common;
use crate::tomcat_model;
use crate::trouble::{Result, While};
use data::Data;
use make::{Effort, Maker};
use measured::Measured;
use play::Player;
use readme::Told;
use table::{FIGURES, Figure};
use worlds::Site;

const NAME: &str = "sqs";

/// The figures 4 to 16 and table 1 of the paper on Session-aware Queue Scheduling, simulated at
/// full size.
///
/// Draws the figures named. Without a name it draws all of them, with what `sqs live` measured, and
/// writes the table of the README.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    /// Figures to draw [default: all]
    #[arg(value_name = "FIGURE", value_parser = PossibleValuesParser::new(FIGURES.iter().map(|figure| figure.name)))]
    figures: Vec<String>,
    /// Every run is played with this many seeds, from 1 on.
    #[arg(long, value_name = "N", default_value_t = make::SEEDS, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Folder for figures and README [default: the experiment's own; with --quick one under
    /// target/]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// A few short runs, to see whether everything runs. Its figures have no meaning.
    #[arg(long)]
    quick: bool,
    #[command(subcommand)]
    measure: Option<Measure>,
}

#[derive(Subcommand, Debug)]
enum Measure {
    Live(Box<live::Options>),
}

/// Runs the requested figures, or measures; returns whether the claims hold.
pub(crate) fn run(options: Options) -> Result<bool> {
    if let Some(Measure::Live(options)) = options.measure {
        return live::run(*options);
    }
    let folder = common::folder(NAME, options.out, options.quick)?;
    fs::create_dir_all(&folder).trouble(folder.display())?;
    let is_chosen = |figure: &&Figure| {
        options.figures.is_empty() || options.figures.iter().any(|name| name == figure.name)
    };
    let effort = if options.quick { Effort::quick() } else { Effort::full(options.seeds) };
    let measured = Measured::load(&folder)?;
    let mut player = Player::default();
    let mut told = Vec::new();
    for figure in FIGURES.iter().filter(is_chosen) {
        let data = one(figure, &effort, measured.as_ref(), &folder, &mut player)?;
        let one = Told::new(figure, &data);
        println!("{}{}", one.row, one.finding);
        print!("{}", claims::text(&one.claims));
        told.push(one);
    }
    if options.figures.is_empty() {
        let foretold = match &measured {
            None => Vec::new(),
            Some(measured) => {
                let predictions = predict::predict(measured, &tomcat_model::measured()?, &mut player)?;
                predict::draw(&predictions, measured, &folder)?;
                predict::claims(&predictions)
            }
        };
        let path = folder.join("README.md");
        let before = fs::read_to_string(&path).unwrap_or_default();
        crate::data::write(&path, &readme::text(&before, &told, &foretold))?;
    }
    Ok(told.iter().all(|one| claims::all_hold(&one.claims)))
}

/// Simulates and draws one figure.
fn one(
    figure: &Figure,
    effort: &Effort,
    measured: Option<&Measured>,
    folder: &Path,
    player: &mut Player,
) -> Result<Data> {
    let mut data = Maker { player, effort, shop: None }.make(figure)?;
    let mut beside = None;
    if let Some(measured) = measured.filter(|_| figure.is_measured) {
        let shop = measured.shop(figure.world, &tomcat_model::measured()?);
        data.calibrated = Some(Maker { player, effort, shop: Some(shop) }.make(figure)?.content);
        beside = measured.content(figure).map(|content| (content, measured.dead_after_s));
    }
    let bound = player.scenario(Site::Paper, figure.world)?.bound(suimon_model::Duration::ZERO);
    let shown = beside.as_ref().map(|(content, dead_after_s)| (content, *dead_after_s));
    draw::draw(figure, &data, shown, bound, &folder.join(format!("{}.svg", figure.name)))?;
    Ok(data)
}

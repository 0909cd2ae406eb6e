//! `sqs-04` to `sqs-16` and `sqs-table-1`: the figures and the table of the paper on Session-aware Queue Scheduling, at full size.
//!
//! [`table::FIGURES`] says what each shows and what the paper says of it; [`make`] simulates it, [`draw`] draws it, [`readme`] tells it.
//! Everything in a figure's folder but `data/measured.json` is written by its command; that one is [`live`]'s.

mod command;
mod data;
mod draw;
mod live;
mod make;
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
use std::path::PathBuf;

use clap::Args;

pub(crate) use command::Command;
pub(crate) use live::{Options as LiveOptions, run as run_live};

use crate::claims;
use crate::common;
use crate::trouble::{Result, While};
use data::Data;
use make::{Effort, Maker};
use play::Player;
use table::{FIGURES, Figure};
use worlds::Site;

/// Flags of the simulated figures.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Every run is played with so many seeds, from 1 on.
    #[arg(long, value_name = "N", default_value_t = make::SEEDS, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Folder for data, figure and README [default: the figure's own; with --quick one under target/]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Simulate nothing: draw and tell what the data file holds.
    #[arg(long)]
    redraw: bool,
    /// A few short runs, to see whether everything runs. Its figures mean nothing.
    #[arg(long, conflicts_with = "redraw")]
    quick: bool,
}

/// Runs one figure, or all of them where `name` is none's; returns whether what was to hold holds.
pub(crate) fn run(name: &str, options: &Options) -> Result<bool> {
    let mut player = Player::default();
    let mut holds = true;
    let named = FIGURES.iter().filter(|figure| figure.name == name);
    let chosen: Vec<&Figure> = if name == command::ALL { FIGURES.iter().collect() } else { named.collect() };
    for figure in chosen {
        holds &= one(figure, options, &mut player)?;
    }
    Ok(holds)
}

fn one(figure: &Figure, options: &Options, player: &mut Player) -> Result<bool> {
    let folder = folder(figure, options)?;
    let path = folder.join("data/simulated.json");
    fs::create_dir_all(folder.join("data")).trouble(folder.display())?;
    let measured: Option<Data> = crate::data::load(&folder.join("data/measured.json"))?;
    let simulated = match crate::data::load(&path)?.filter(|_| options.redraw) {
        Some(kept) => kept,
        None => {
            let effort = if options.quick { Effort::quick() } else { Effort::full(options.seeds) };
            let simulated = simulate(figure, &effort, measured.as_ref(), player)?;
            data::save(&path, &simulated)?;
            simulated
        }
    };
    let bound = player.scenario(Site::Paper, figure.world)?.bound(suimon_model::Duration::ZERO);
    draw::draw(figure, &simulated, measured.as_ref(), bound, &folder.join("figure.svg"))?;
    let text = readme::text(figure, &simulated, measured.as_ref());
    crate::data::write(&folder.join("README.md"), &text)?;
    let claims = readme::claims(figure, &simulated);
    println!("{}", finding(&text));
    print!("{}", claims::text(&claims));
    Ok(claims::all_hold(&claims))
}

fn simulate(figure: &Figure, effort: &Effort, measured: Option<&Data>, player: &mut Player) -> Result<Data> {
    let mut data = Maker { player, effort, shop: None }.make(figure)?;
    if let Some(shop) = measured.and_then(|measured| measured.shop.as_ref()) {
        data.calibrated = Some(Maker { player, effort, shop: Some(shop) }.make(figure)?.content);
    }
    Ok(data)
}

/// Returns the folder of a figure.
fn folder(figure: &Figure, options: &Options) -> Result<PathBuf> {
    let asked_for = options.out.as_ref().map(|out| out.join(figure.name));
    common::folder(figure.name, asked_for, options.quick)
}

/// Returns a README's title and finding, for the terminal.
fn finding(readme: &str) -> String {
    let is_told = |line: &&str| line.starts_with("# ") || line.starts_with(['1', '2', '3']);
    readme.lines().filter(is_told).map(|line| format!("{line}\n")).collect()
}

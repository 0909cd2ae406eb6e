//! The figure: the worse half of the generated sites, and every scenario beside the best external
//! law.

use std::path::Path;

use suimon_chart::{Axis, Bars, Hue, Plot, Rule, Series};

use super::tell::{best_other, ours};
use super::{Data, Law};
use crate::figures::{self, Panel};
use crate::trouble::Result;

/// Laws that are drawn, each in a colour: the obvious choices.
const DRAWN: &[(&str, &str, Hue, bool)] = &[
    ("none", "no control", Hue::Vermilion, false),
    ("envoy-gradient+flow", "Envoy's gradient", Hue::Grey, false),
    ("vegas+flow", "Vegas", Hue::Purple, false),
    ("hill-climbing+flow", "hill climbing", Hue::Green, false),
    ("paper", "the paper", Hue::Amber, false),
    ("paper+flow", "the paper's routes, our sessions", Hue::Amber, true),
    ("suimon", "Suimon", Hue::Blue, false),
];
/// How many of a hundred sites are shown, the worst first: on the others most laws are similar.
const WORST: f64 = 50.0;
/// Height of the lines, CSS pixels.
const HEIGHT: f64 = 380.0;

/// Draws it.
pub(super) fn draw(data: &Data, path: &Path) -> Result<()> {
    figures::write(path, &[Panel::Lines(sites(data), HEIGHT), Panel::Bars(scenarios(data))])
}

fn sites(data: &Data) -> Plot {
    let count = data.sites.1 - data.sites.0;
    let mut plot = Plot::new(&format!("The worse half of {count} generated sites, from the worst on"))
        .describe(
            "Lines by share of the sites: the share of what is reachable that the site reaches at most.",
        )
        .x(Axis::new("share of the sites, %").from(0.0).to(WORST))
        .y(Axis::new("goodput as a share of what is reachable").from(0.0))
        .rule(Rule::new(1.0, "all that is reachable"));
    for (name, words, hue, is_dashed) in DRAWN {
        let Some(law) = data.laws.iter().find(|law| law.name == *name) else { continue };
        let line = Series::line(words, *hue, points(law));
        plot = plot.series(if *is_dashed { line.dashed() } else { line });
    }
    plot
}

fn points(law: &Law) -> Vec<(f64, f64)> {
    let percents = (0..=100).map(f64::from).take_while(|percent| *percent <= WORST);
    percents.map(|percent| (percent, law.sites.quantile(percent / 100.0))).collect()
}

fn scenarios(data: &Data) -> Bars {
    let mut bars =
        Bars::new("Every scenario: ours, and the best of the others whatever it costs those inside")
            .describe(
                "Bars by scenario: goodput of our laws and of the best other law, which is named behind it.",
            )
            .unit("goodput, % of what is reachable, mean of all seeds")
            .group("Suimon", Hue::Blue)
            .group("the best other", Hue::Grey);
    for own in ours(data).map(|law| law.scenarios.as_slice()).unwrap_or_default() {
        let Some((name, other)) = best_other(data, &own.scenario) else { continue };
        bars = bars.row(&format!("{}: {name}", own.scenario), vec![own.mean * 100.0, other.mean * 100.0]);
    }
    bars
}

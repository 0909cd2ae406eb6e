//! The paper's figures 8 to 14.

use std::path::Path;

use suimon_chart::{Axis, Hue, Plot, Rule, Series};

use super::{ALL, Data, EXAMPLE, INTERVALS, Load, Play, UNTIL, Who, bound};
use crate::figures::{self, Panel};
use crate::trouble::Result;

const HEIGHT: f64 = 300.0;

/// Draws all of them.
pub(super) fn draw(data: &Data, out: &Path) -> Result<()> {
    let fixed = |load: Load| -> Vec<(f64, f64)> {
        let plays = data.of_load(load, |who| matches!(who, Who::Fixed(1..=12)));
        plays
            .map(|play| {
                (
                    if let Who::Fixed(nodes) = play.who { f64::from(nodes) } else { 0.0 },
                    play.files_per_s[EXAMPLE],
                )
            })
            .collect()
    };
    let plot = Plot::new("Files per second by number of nodes, none added")
        .describe("Between 1 and 35 s.")
        .x(Axis::new("nodes").from(0.0))
        .y(Axis::new("files per second").from(0.0))
        .series(Series::dotted("workload A", Hue::Blue, fixed(Load::A)))
        .series(Series::dotted("15 page views/s", Hue::Grey, fixed(Load::Constant(15))))
        .series(Series::dotted("45 page views/s", Hue::Vermilion, fixed(Load::Constant(45))));
    figures::write(&out.join("cluster-8.svg"), &[Panel::Lines(plot, HEIGHT)])?;
    let mut plot = Plot::new("Nodes on workload A, every 0.5 s")
        .describe("By MaxCPULoad of the paper's rule, and ours.")
        .x(Axis::new("seconds").from(0.0))
        .y(Axis::new("nodes").from(0.0));
    for (course, hue) in data.courses.iter().filter(|course| course.load == Load::A).zip([
        Hue::Grey,
        Hue::Vermilion,
        Hue::Amber,
        Hue::Blue,
    ]) {
        let points =
            course.nodes.iter().enumerate().map(|(second, nodes)| (second as f64, f64::from(*nodes)));
        let name =
            if let Who::Paper(_, most) = course.who { format!("MaxCPULoad {most}") } else { "Suimon".into() };
        plot = plot.series(Series::steps(&name, hue, points.collect()));
    }
    figures::write(&out.join("cluster-9.svg"), &[Panel::Lines(plot, HEIGHT)])?;
    let hues = [Hue::Blue, Hue::Amber, Hue::Vermilion];
    let by_load = |title: &str, label: &str, of: fn(&Play) -> f64| {
        let plot = Plot::new(title).describe("By MaxCPULoad, on workload A, between 1 and 35 s.");
        let plot = plot.x(Axis::new("MaxCPULoad")).y(Axis::new(label));
        INTERVALS.iter().zip(hues).fold(plot, |plot, (interval, hue)| {
            let plays =
                data.of_load(Load::A, |who| matches!(who, Who::Paper(every, _) if every == *interval));
            let points = plays.map(|play| {
                (if let Who::Paper(_, most) = play.who { f64::from(most) } else { 0.0 }, of(play))
            });
            plot.series(Series::line(
                &format!("every {:.1} s", *interval as f64 / 1000.0),
                hue,
                points.collect(),
            ))
        })
    };
    let files = by_load("Files per second", "files per second", |play| play.files_per_s[EXAMPLE]);
    figures::write(&out.join("cluster-10.svg"), &[Panel::Lines(files, HEIGHT)])?;
    let nodes = by_load("Nodes (n_s)", "nodes", |play| play.nodes[EXAMPLE]);
    figures::write(&out.join("cluster-11.svg"), &[Panel::Lines(nodes, HEIGHT)])?;
    for (load, figure) in Load::PAPER.into_iter().zip(12..) {
        let points = |of: &dyn Fn(usize) -> Option<f64>| -> Vec<(f64, f64)> {
            UNTIL.iter().enumerate().filter_map(|(at, until)| Some((*until as f64, of(at)?))).collect()
        };
        let plot = Plot::new(&format!("Nodes on workload {load:?} by t_req"))
            .describe("Fewest that fetch all in time: fixed, by the paper's rule with its best MaxCPULoad, and ours.")
            .x(Axis::new("t_req, seconds"))
            .y(Axis::new("nodes"))
            .series(Series::line("fixed", Hue::Grey, points(&|at| data.fewest_fixed(load, at).map(|play| play.nodes[at]))));
        let plot = INTERVALS.iter().zip([Hue::Green, Hue::Amber, Hue::Vermilion]).fold(
            plot,
            |plot, (interval, hue)| {
                let nodes = |at: usize| data.paper(load, at, *interval).map(|play| play.nodes[at]);
                plot.series(Series::line(
                    &format!("every {:.1} s", *interval as f64 / 1000.0),
                    hue,
                    points(&nodes),
                ))
            },
        );
        let ours = data.of(load, Who::Ours(0.5));
        let ours = |at: usize| ours.filter(|play| play.share[at] >= ALL).map(|play| play.nodes[at]);
        let plot = plot.series(Series::line("Suimon", Hue::Blue, points(&ours)));
        let plot = plot.rule(Rule::new(bound(data, load, EXAMPLE), "work at 35 s"));
        figures::write(&out.join(format!("cluster-{figure}.svg")), &[Panel::Lines(plot, HEIGHT)])?;
    }
    Ok(())
}

//! `nodes-and-line`: what it is worth that the law of the number of nodes sees who waits to be let in,
//! simulated.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Axis, Hue, Plot, Series};
use suimon_rivals::scaling::NodeRival;
use suimon_sim::cluster::ScalingLaw;
use suimon_sim::{Laws, NodesSetup, RunResult, Scenario, run, run_ruled};

use crate::claims::{self, Claim};
use crate::common::{experiments, folder};
use crate::figures::{self, Panel};
use crate::trouble::{Result, Trouble, While};
use crate::{data, parallel};

const NAME: &str = "nodes-and-line";
const SEEDS: u64 = 6;
const NODES_MOST: u32 = 8;
const HEIGHT: f64 = 260.0;
/// Targets that others' rules are tried with: the use of a processor, and requests per node.
const USES: [f64; 4] = [0.3, 0.5, 0.6, 0.7];
const REQUESTS: [f64; 5] = [2.0, 4.0, 8.0, 16.0, 32.0];

/// What is it worth that the law of the number of nodes sees the line?
///
/// A gateway lets in only as many as will finish, so what stands behind it sees a load that it can bear, and the
/// more people wait, the less of them it sees. The simulator plays rises of demand with the law of the gateway, the same
/// law without sight of the line, and the rules of Kubernetes, KEDA and Knative behind the same gateway.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Folder for data and figures [default: the experiment's own; with --quick one under target/]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Draws figures and table from the data that are there.
    #[arg(long)]
    redraw: bool,
    /// One seed and fewer settings, to see whether everything runs.
    #[arg(long)]
    quick: bool,
}

/// A site and who comes to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Site {
    /// Five times as many come to the shop for five minutes; nodes start in so many seconds.
    Shop(u32),
    /// Six times as many ask a chat with answers of 12 s, whose nodes run out of threads.
    Chat,
    /// Few come, evenly: one node is enough.
    Quiet,
}

impl Site {
    const ALL: [Site; 5] = [Site::Shop(0), Site::Shop(10), Site::Shop(60), Site::Chat, Site::Quiet];

    fn name(self) -> String {
        match self {
            Site::Shop(0) => "shop, nodes start in 0.25 to 0.4 s".to_owned(),
            Site::Shop(start) => format!("shop, nodes start in {start} to {} s", start * 6 / 5),
            Site::Chat => "chat with answers of 12 s, nodes start in 10 to 12 s".to_owned(),
            Site::Quiet => "shop at a quarter of a node".to_owned(),
        }
    }

    fn scenario(self) -> Result<Scenario> {
        let file = if self == Site::Chat { "nodes-chat.toml" } else { "nodes-tripled.toml" };
        let path = experiments().join("../scenarios").join(file);
        let mut scenario =
            suimon_settings::scenario::load(&path).map_err(|faults| Trouble::Failed(faults.to_string()))?;
        let scaling = scenario.scaling.get_or_insert_with(NodesSetup::default);
        match self {
            Site::Shop(0) => scaling.start = NodesSetup::default().start,
            Site::Shop(start) => {
                let start = Duration::from_secs(start.into());
                scaling.start = (start, start.mul_f64(1.2));
            }
            Site::Chat => {}
            Site::Quiet => {
                if let suimon_workload::Arrivals::Open { phases, .. } = &mut scenario.workload.arrivals {
                    for phase in phases {
                        (phase.from_per_s, phase.to_per_s) = (0.85, 0.85);
                    }
                }
            }
        }
        Ok(scenario)
    }
}

/// Who decides how many nodes there are.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
enum Who {
    Fixed(u32),
    Ours,
    /// Ours, as eager as it can be.
    Eager,
    /// Ours, without sight of those who wait to be let in.
    Blind,
    HpaCpu(f64),
    Keda(f64),
    Kpa(f64),
}

const OWN: [Who; 5] = [Who::Fixed(1), Who::Fixed(NODES_MOST), Who::Ours, Who::Eager, Who::Blind];

impl Who {
    fn all(quick: bool) -> Vec<Who> {
        let own = OWN;
        let tried = if quick { 1 } else { usize::MAX };
        let uses = || USES.into_iter().take(tried);
        let requests = || REQUESTS.into_iter().take(tried);
        let others = uses().map(Who::HpaCpu).chain(requests().map(Who::Keda)).chain(requests().map(Who::Kpa));
        own.into_iter().chain(others).collect()
    }

    fn rival(self) -> Option<(NodeRival, f64)> {
        match self {
            Who::HpaCpu(target) => Some((NodeRival::HpaCpu, target)),
            Who::Keda(target) => Some((NodeRival::Keda, target)),
            Who::Kpa(target) => Some((NodeRival::Kpa, target)),
            Who::Fixed(_) | Who::Ours | Who::Eager | Who::Blind => None,
        }
    }

    fn name(self) -> String {
        match self {
            Who::Fixed(1) => "1 node".to_owned(),
            Who::Fixed(nodes) => format!("{nodes} nodes"),
            Who::Ours => "Suimon".to_owned(),
            Who::Eager => "Suimon, eagerness 1".to_owned(),
            Who::Blind => "Suimon, without sight of the line".to_owned(),
            Who::HpaCpu(target) | Who::Keda(target) | Who::Kpa(target) => {
                let name = self.rival().map_or("", |(rival, _)| rival.name());
                format!("{name}, {target}")
            }
        }
    }
}

/// What came of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    seeds: u64,
    plays: Vec<Play>,
    courses: Vec<Course>,
}

/// One site under one rule; means of all seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Play {
    site: Site,
    who: Who,
    /// Sessions finished of those that were asked for or possible.
    goodput: f64,
    /// The worst seed.
    goodput_least: f64,
    /// From a visitor's first request to the first good answer: 95 of 100, seconds.
    wait_s: f64,
    /// Timeouts, errors and refusals inside sessions.
    lost: f64,
    nodes: f64,
}

/// Nodes and newcomers that wait, by second, of one seed of the shop whose nodes start in 10 s.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Course {
    who: Who,
    nodes: Vec<u32>,
    waiting: Vec<usize>,
}

impl Data {
    fn of(&self, site: Site, who: Who) -> Option<&Play> {
        self.plays.iter().find(|play| play.site == site && play.who == who)
    }

    /// Returns each rule of others with the target that has most sessions finished there.
    fn others(&self, site: Site) -> Vec<&Play> {
        let best = |rival: NodeRival| {
            let of = self.plays.iter().filter(move |play| {
                play.site == site && play.who.rival().is_some_and(|(other, _)| other == rival)
            });
            of.max_by(|one, other| one.goodput.total_cmp(&other.goodput))
        };
        NodeRival::ALL.into_iter().filter_map(best).collect()
    }
}

/// Plays all of it, and says whether it holds.
pub(crate) fn run_it(options: &Options) -> Result<bool> {
    let out = folder(NAME, options.out.clone(), options.quick)?;
    fs::create_dir_all(out.join("data")).trouble(out.display())?;
    let path = out.join("data/result.json");
    let data = data::measured(&path, NAME, options.redraw, || play(options.quick))?;
    draw(&data, &out.join("figure.svg"))?;
    let claims = claims(&data);
    data::write(&out.join("table.md"), &table(&data, &claims))?;
    print!("{}{}", numbers(&data), claims::text(&claims));
    Ok(options.quick || claims::all_hold(&claims))
}

fn play(quick: bool) -> Result<Data> {
    let seeds = if quick { 1 } else { SEEDS };
    let mut jobs = vec![];
    for site in Site::ALL {
        let scenario = site.scenario()?;
        for who in Who::all(quick) {
            jobs.extend((1..=seeds).map(|seed| (site, who, seed, scenario.clone())));
        }
    }
    let results = parallel::map(&jobs, |(_, who, seed, scenario)| played(scenario, *who, *seed));
    let results: Vec<RunResult> = results.into_iter().collect::<Result<_>>()?;
    let mut data = Data { seeds, plays: vec![], courses: vec![] };
    for (jobs, runs) in jobs.chunks(seeds as usize).zip(results.chunks(seeds as usize)) {
        let (site, who, ..) = jobs[0];
        data.plays.push(summed_up(site, who, runs));
        let is_shown = matches!(who, Who::Ours | Who::Blind) || who == Who::HpaCpu(0.5);
        if site == Site::Shop(10) && is_shown {
            data.courses.push(Course {
                who,
                nodes: runs[0].series.iter().map(|sample| sample.nodes).collect(),
                waiting: runs[0].series.iter().map(|sample| sample.line.iter().sum()).collect(),
            });
        }
    }
    Ok(data)
}

fn played(scenario: &Scenario, who: Who, seed: u64) -> Result<RunResult> {
    let mut scenario = scenario.clone();
    let scaling = scenario.scaling.get_or_insert_with(NodesSetup::default);
    match who {
        Who::Fixed(nodes) => {
            (scaling.law, scaling.least, scaling.most) =
                (ScalingLaw::Fixed(nodes), nodes, nodes.max(NODES_MOST));
            scenario.nodes = nodes;
            scenario.gate.params.cores = (scenario.machine.cores * f64::from(nodes)).ceil() as u32;
        }
        Who::Eager => scaling.law = ScalingLaw::Demand { eagerness: 1.0 },
        Who::Blind => scaling.sees_newcomers = false,
        Who::Ours | Who::HpaCpu(_) | Who::Keda(_) | Who::Kpa(_) => {}
    }
    let played = match who.rival() {
        // Each seed begins at another moment of the rule's period.
        Some((rival, target)) => {
            run_ruled(&scenario, seed, &Laws::AS_SET, rival.rule(target, seed as usize, scenario.nodes))
        }
        None => run(&scenario, seed, &Laws::AS_SET),
    };
    played.map_err(|violation| Trouble::Failed(violation.to_string()))
}

fn summed_up(site: Site, who: Who, runs: &[RunResult]) -> Play {
    let mean = |of: &dyn Fn(&RunResult) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    Play {
        site,
        who,
        goodput: mean(&|run| run.summary.goodput_share),
        goodput_least: runs.iter().map(|run| run.summary.goodput_share).fold(f64::INFINITY, f64::min),
        wait_s: mean(&|run| run.summary.wait_p95_s),
        lost: mean(&|run| run.summary.mid_session_failures as f64),
        nodes: mean(&|run| run.summary.nodes),
    }
}

fn claims(data: &Data) -> Vec<Claim> {
    let mut claims = vec![];
    for site in Site::ALL {
        let of = |who| data.of(site, who);
        let (Some(ours), Some(most), Some(blind)) =
            (of(Who::Ours), of(Who::Fixed(NODES_MOST)), of(Who::Blind))
        else {
            continue;
        };
        let best = data.others(site).iter().map(|play| play.goodput).fold(0.0, f64::max);
        let name = site.name();
        let share = ours.goodput / most.goodput;
        claims.push(Claim::new(
            format!(
                "{name}: at least 0.9 of what {NODES_MOST} fixed nodes finish: {share:.3}, with {:.2} nodes",
                ours.nodes
            ),
            share >= 0.9,
        ));
        claims.push(Claim::new(
            format!(
                "{name}: no less than 0.98 of the best of the others' rules: {:.3} and {best:.3}",
                ours.goodput
            ),
            ours.goodput >= 0.98 * best,
        ));
        if site == Site::Quiet {
            claims
                .push(Claim::new(format!("{name}: at most 1.1 nodes: {:.2}", ours.nodes), ours.nodes <= 1.1));
        } else {
            claims.push(Claim::new(
                format!(
                    "{name}: the line is worth a tenth more sessions, or half of the wait: {:.3} and {:.1} s with sight of it, {:.3} and {:.1} s without",
                    ours.goodput, ours.wait_s, blind.goodput, blind.wait_s
                ),
                ours.goodput >= 1.1 * blind.goodput || ours.wait_s <= 0.5 * blind.wait_s,
            ));
            let is_better = |play: &&Play| {
                play.site == site
                    && play.who.rival().is_some()
                    && play.goodput >= 0.98 * ours.goodput
                    && play.wait_s <= ours.wait_s
                    && play.nodes <= ours.nodes
            };
            let better: Vec<String> =
                data.plays.iter().filter(is_better).map(|play| play.who.name()).collect();
            let found = if better.is_empty() { "none".to_owned() } else { better.join("; ") };
            claims.push(Claim::new(
                format!("{name}: none of the others, with any target, finishes as much with a shorter wait and fewer nodes: {found}"),
                better.is_empty(),
            ));
        }
    }
    claims
}

fn numbers(data: &Data) -> String {
    let mut text = String::new();
    for site in Site::ALL {
        let _ = writeln!(
            text,
            "| {} | goodput | worst seed | wait, 95 of 100, s | lost inside | nodes |\n|---|--:|--:|--:|--:|--:|",
            site.name()
        );
        for play in OWN.iter().filter_map(|who| data.of(site, *who)).chain(data.others(site)) {
            let _ = writeln!(
                text,
                "| {} | {:.3} | {:.3} | {:.1} | {:.1} | {:.2} |",
                play.who.name(),
                play.goodput,
                play.goodput_least,
                play.wait_s,
                play.lost,
                play.nodes
            );
        }
        text.push('\n');
    }
    text
}

fn table(data: &Data, claims: &[Claim]) -> String {
    format!(
        "# What the law of the number of nodes gains from the line\n\nWritten by `./experiments/run {NAME}` from `data/result.json`. Means of {} seeds.\nGoodput: sessions finished of those asked for, or possible with {NODES_MOST} nodes. Others' rules: with the target that finishes most there.\n\n{}{}",
        data.seeds,
        numbers(data),
        claims::list(claims)
    )
}

fn draw(data: &Data, path: &std::path::Path) -> Result<()> {
    let plot = |title: &str, label: &str, of: &dyn Fn(&Course) -> Vec<f64>| {
        let plot = Plot::new(title)
            .describe("Five times as many come to the shop from 120 s to 420 s; nodes start in 10 to 12 s.")
            .x(Axis::new("seconds").from(0.0))
            .y(Axis::new(label).from(0.0));
        data.courses.iter().zip([Hue::Blue, Hue::Amber, Hue::Grey]).fold(plot, |plot, (course, hue)| {
            let points = of(course).into_iter().enumerate().map(|(second, value)| (second as f64, value));
            plot.series(Series::steps(&course.who.name(), hue, points.collect()))
        })
    };
    let nodes =
        plot("Nodes", "nodes", &|course| course.nodes.iter().map(|nodes| f64::from(*nodes)).collect());
    let waiting = plot("Newcomers held at the gate", "newcomers", &|course| {
        course.waiting.iter().map(|waiting| *waiting as f64).collect()
    });
    figures::write(path, &[Panel::Lines(nodes, HEIGHT), Panel::Lines(waiting, HEIGHT)])
}

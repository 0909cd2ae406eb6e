//! `cluster-papers`: how many nodes serve through a sudden rise, by the fourth paper's rule, by others'
//! and by ours; its figures 8 to 14 and table 1, simulated.

mod draw;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_rivals::scaling::NodeRival;
use suimon_sim::cluster::{
    ClusterRun, ClusterSetup, Dispatch, NodeRule, PageViews, Scaling, ScalingLaw, ScalingParams, View,
    run_cluster,
};
use suimon_workload::{Arrivals, Phase, Spacing};

use crate::claims::{self, Claim};
use crate::common::folder;
use crate::trouble::{Result, While};
use crate::{data, parallel};

const NAME: &str = "cluster-papers";
/// Nodes at the start, and the most: one of the paper's 25 is the front end.
const NODES_FIRST: u32 = 3;
const NODES_MOST: u32 = 24;
/// t_start, seconds.
const FROM: usize = 1;
/// t_req, seconds; the paper's example is the third.
const UNTIL: [usize; 5] = [25, 30, 35, 40, 45];
const EXAMPLE: usize = 2;
/// Arrivals end then.
const LASTS: u64 = 45;
/// The share of the files that many nodes fetch that counts as all.
const ALL: f64 = 0.99;
/// The paper's intervals, milliseconds, and its range of MaxCPULoad.
const INTERVALS: [u64; 3] = [500, 1000, 1500];
const LOADS: std::ops::RangeInclusive<u32> = 15..=65;
/// What is best on A, every 0.5 s.
const LOAD_OF_A: u32 = 25;
/// Of figure 9.
const LOADS_SHOWN: [u32; 3] = [25, 40, 55];
const EAGERNESSES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// Targets that others' rules are tried with: requests per node, or the use of a processor.
const REQUESTS: [f64; 14] = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 13.0, 16.0, 20.0, 25.0, 32.0, 40.0, 50.0, 65.0];
const USES: [f64; 6] = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
/// Nodes, choices of one, and times between two reports, milliseconds, that are compared.
const BALANCED: u32 = 7;
const DISPATCHES: [(&str, Dispatch); 4] = [
    ("the least told", Dispatch::Told),
    ("the least told, and sent since", Dispatch::Corrected),
    ("the less told of two", Dispatch::TwoTold),
    ("one after the other", Dispatch::InTurn),
];
const REPORTS_MS: [u64; 4] = [10, 100, 1000, 2000];
/// What reports of 1 s may cost at most, as a multiple of fresh ones.
const AGE_COSTS_MAX: f64 = 1.5;
const SEEDS: u64 = 12;

/// How many nodes serve through a sudden rise, and who finds the number?
///
/// Figures 8 to 14 and table 1 of the paper as its text describes them, played in the simulator; its rule,
/// Kubernetes' and Knative's, and ours beside fixed numbers.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Folder for data and figures [default: the experiment's own; with --quick one under target/]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Draws figures and table from the data that are there.
    #[arg(long)]
    redraw: bool,
    /// Two seeds and fewer settings, to see whether everything runs.
    #[arg(long)]
    quick: bool,
}

/// A workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Load {
    /// The paper's; the shapes of the last two were in lost figures, and are ours.
    A,
    B,
    C,
    /// Kinds on which no constant of our law was chosen: a slow rise, a saw, chance alone, a spike, and A
    /// with nodes that take 10 to 12 s to start.
    Ramp,
    Saw,
    Chance,
    Spike,
    SlowStart,
    /// A constant rate, page views per second.
    Constant(u32),
}

impl Load {
    const PAPER: [Load; 3] = [Load::A, Load::B, Load::C];
    const HELD_OUT: [Load; 5] = [Load::Ramp, Load::Saw, Load::Chance, Load::Spike, Load::SlowStart];

    /// Returns page views per second from a second on.
    fn phases(self) -> Vec<(u64, f64)> {
        match self {
            Load::A | Load::SlowStart => vec![(0, 15.0), (1, 45.0), (21, 15.0)],
            Load::Ramp => (0..=15).map(|step| (step, 15.0 + 3.0 * step as f64)).chain([(25, 15.0)]).collect(),
            Load::Saw => (0..8).map(|turn| (5 * turn, if turn % 2 == 0 { 15.0 } else { 50.0 })).collect(),
            Load::Chance => vec![(0, 30.0)],
            Load::Spike => vec![(0, 15.0), (5, 200.0), (6, 15.0)],
            Load::B => vec![(0, 15.0), (1, 75.0), (9, 15.0)],
            Load::C => {
                vec![(0, 15.0), (1, 55.0), (6, 15.0), (11, 45.0), (17, 15.0), (28, 82.0), (29, 15.0)]
            }
            Load::Constant(rate) => vec![(0, f64::from(rate))],
        }
    }

    fn setup(self) -> ClusterSetup {
        let phases = self.phases();
        let ends = phases.iter().skip(1).map(|(from, _)| *from).chain([LASTS]);
        let phases = phases.iter().zip(ends).map(|((from, rate), end)| Phase {
            lasts: Duration::from_secs(end - from),
            from_per_s: *rate,
            to_per_s: *rate,
        });
        let spacing = if self == Load::Chance { Spacing::Poisson } else { Spacing::Even };
        let start = if self == Load::SlowStart { (10_000, 12_000) } else { (250, 400) };
        ClusterSetup {
            arrivals: Arrivals::Open { phases: phases.collect(), spacing, users_max: 100_000 },
            nodes_first: NODES_FIRST,
            nodes_most: NODES_MOST,
            start: (Duration::from_millis(start.0), Duration::from_millis(start.1)),
            views: PageViews {
                files: (5, 15),
                kept: 0.7,
                static_s: 0.0062,
                dynamic: 0.1,
                dynamic_s: (0.005, 0.5),
            },
            reports_every: Duration::from_millis(10),
            dispatch: Dispatch::Told,
        }
    }
}

/// Who decides how many nodes there are.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
enum Who {
    Fixed(u32),
    /// With this interval, milliseconds, and MaxCPULoad.
    Paper(u64, u32),
    Ours(f64),
    HpaCpu(f64),
    Keda(f64),
    Kpa(f64),
}

impl Who {
    fn rule(self, seed: u64) -> Box<dyn NodeRule> {
        let first = if let Who::Fixed(nodes) = self { nodes } else { NODES_FIRST };
        let params = ScalingParams { present: first, least: first, most: NODES_MOST };
        let own = |law| -> Box<dyn NodeRule> { Box::new(Scaling::new(law, params)) };
        let other = |rival: NodeRival, target| rival.rule(target, seed as usize, NODES_FIRST);
        match self {
            Who::Fixed(nodes) => own(ScalingLaw::Fixed(nodes)),
            Who::Paper(interval, load_max) => {
                own(ScalingLaw::Seed { interval: Duration::from_millis(interval), load_max: load_max.into() })
            }
            Who::Ours(eagerness) => own(ScalingLaw::Demand { eagerness }),
            Who::HpaCpu(target) => other(NodeRival::HpaCpu, target),
            Who::Keda(target) => other(NodeRival::Keda, target),
            Who::Kpa(target) => other(NodeRival::Kpa, target),
        }
    }

    fn name(self) -> String {
        match self {
            Who::Fixed(nodes) => format!("{nodes} nodes"),
            Who::Paper(interval, load) => {
                format!("the paper's, every {:.1} s, MaxCPULoad {load}", interval as f64 / 1000.0)
            }
            Who::Ours(eagerness) => format!("Suimon, eagerness {eagerness}"),
            Who::HpaCpu(target) => format!("{}, {target}", NodeRival::HpaCpu.name()),
            Who::Keda(target) => format!("{}, {target}", NodeRival::Keda.name()),
            Who::Kpa(target) => format!("{}, {target}", NodeRival::Kpa.name()),
        }
    }
}

/// What came of it; means of all seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    seeds: u64,
    /// Work of a page view, node-seconds.
    view_s: f64,
    plays: Vec<Play>,
    /// Nodes by second, of one seed.
    courses: Vec<Course>,
    /// Page views on A with [`BALANCED`] fixed nodes.
    balance: Vec<Balance>,
}

/// How long page views take by where connections are sent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Balance {
    dispatch: String,
    /// Time from one report of a node to the next, seconds.
    reports_s: f64,
    mean_s: f64,
    p99_s: f64,
}

/// One workload under one rule.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Play {
    load: Load,
    who: Who,
    /// By t_req: files per second, their share of what most nodes fetch, n_s, and the work done as nodes.
    files_per_s: Vec<f64>,
    share: Vec<f64>,
    nodes: Vec<f64>,
    work: Vec<f64>,
    /// Of page views that began up to the example's t_req: mean and 99th percentile, seconds.
    mean_s: f64,
    p99_s: f64,
    /// The most nodes at once, orders and returns.
    peak: f64,
    orders: f64,
    returns: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Course {
    who: Who,
    load: Load,
    nodes: Vec<u32>,
}

impl Data {
    fn of(&self, load: Load, who: Who) -> Option<&Play> {
        self.plays.iter().find(|play| play.load == load && play.who == who)
    }

    fn of_load(&self, load: Load, is_meant: impl Fn(Who) -> bool) -> impl Iterator<Item = &Play> {
        self.plays.iter().filter(move |play| play.load == load && is_meant(play.who))
    }

    /// Returns the fewest fixed nodes that fetch all by the t_req of this number: n_opt.
    fn fewest_fixed(&self, load: Load, until: usize) -> Option<&Play> {
        let fixed = self.of_load(load, |who| matches!(who, Who::Fixed(_)));
        let all = fixed.filter(|play| play.share[until] >= ALL);
        all.min_by_key(|play| if let Who::Fixed(nodes) = play.who { nodes } else { u32::MAX })
    }

    /// Returns the play with the fewest nodes of those that fetch all.
    fn best(&self, load: Load, until: usize, is_meant: impl Fn(Who) -> bool) -> Option<&Play> {
        let all = self.of_load(load, is_meant).filter(|play| play.share[until] >= ALL);
        all.min_by(|one, other| one.nodes[until].total_cmp(&other.nodes[until]))
    }

    /// Returns the play of the paper's rule with the greatest MaxCPULoad that fetches all: Max_opt.
    fn paper(&self, load: Load, until: usize, interval: u64) -> Option<&Play> {
        let load_of = |play: &&Play| if let Who::Paper(_, load) = play.who { load } else { 0 };
        let of = self.of_load(load, |who| matches!(who, Who::Paper(every, _) if every == interval));
        of.filter(|play| play.share[until] >= ALL).max_by_key(load_of)
    }
}

/// Plays all of it, and says whether what the paper says holds.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let out = folder(NAME, options.out.clone(), options.quick)?;
    fs::create_dir_all(out.join("data")).trouble(out.display())?;
    let path = out.join("data/result.json");
    let data = data::measured(&path, NAME, options.redraw, || Ok(play(options.quick)))?;
    draw::draw(&data, &out)?;
    let claims = claims(&data);
    data::write(&out.join("table.md"), &table(&data, &claims))?;
    print!("{}{}", numbers(&data), claims::text(&claims));
    Ok(options.quick || claims::all_hold(&claims))
}

fn play(quick: bool) -> Data {
    let seeds = if quick { 2 } else { SEEDS };
    let step = if quick { 10 } else { 2 };
    let mut jobs: Vec<(Load, Who)> = vec![];
    for load in Load::PAPER {
        jobs.extend((1..=12).chain([NODES_MOST]).map(|nodes| (load, Who::Fixed(nodes))));
        for interval in INTERVALS {
            jobs.extend(LOADS.step_by(step).map(|most| (load, Who::Paper(interval, most))));
        }
        jobs.extend(EAGERNESSES.map(|eagerness| (load, Who::Ours(eagerness))));
        jobs.extend(USES.map(|target| (load, Who::HpaCpu(target))));
        jobs.extend(REQUESTS.map(|target| (load, Who::Keda(target))));
        jobs.extend(REQUESTS.map(|target| (load, Who::Kpa(target))));
    }
    for load in Load::HELD_OUT {
        jobs.extend((1..=12).chain([NODES_MOST]).map(|nodes| (load, Who::Fixed(nodes))));
        jobs.extend([Who::Paper(INTERVALS[0], LOAD_OF_A), Who::Ours(0.5)].map(|who| (load, who)));
    }
    for rate in [15, 45] {
        jobs.extend((1..=12).chain([NODES_MOST]).map(|nodes| (Load::Constant(rate), Who::Fixed(nodes))));
    }
    let runs: Vec<_> = jobs.iter().flat_map(|job| (1..=seeds).map(move |seed| (*job, seed))).collect();
    let results = parallel::map(&runs, |((load, who), seed)| played(*load, *who, *seed));
    let results: Vec<&[ClusterRun]> = results.chunks(seeds as usize).collect();
    let most = |load: Load| {
        let at = jobs.iter().position(|job| *job == (load, Who::Fixed(NODES_MOST)));
        results[at.expect("each load is played with most nodes")]
    };
    let plays =
        jobs.iter().zip(&results).map(|((load, who), runs)| summed_up(*load, *who, runs, most(*load)));
    let shown = LOADS_SHOWN.map(|most| Who::Paper(INTERVALS[0], most)).into_iter().chain([Who::Ours(0.5)]);
    let courses = shown.flat_map(|who| Load::PAPER.map(|load| (who, load))).map(|(who, load)| {
        let nodes = played(load, who, 1).seconds.iter().map(|second| second.nodes).collect();
        Course { who, load, nodes }
    });
    let (plays, courses) = (plays.collect(), courses.collect());
    Data { seeds, view_s: Load::A.setup().views.mean_s(), plays, courses, balance: balance(seeds) }
}

/// Plays A with fixed nodes, with loads of other ages and other choices of a node.
fn balance(seeds: u64) -> Vec<Balance> {
    let choices = DISPATCHES.iter().flat_map(|choice| REPORTS_MS.map(|age| (*choice, age)));
    let jobs: Vec<_> = choices.flat_map(|job| (1..=seeds).map(move |seed| (job, seed))).collect();
    let runs = parallel::map(&jobs, |(((_, dispatch), age), seed)| {
        let every = Duration::from_millis(*age);
        let setup = ClusterSetup {
            nodes_first: BALANCED,
            reports_every: every,
            dispatch: *dispatch,
            ..Load::A.setup()
        };
        run_cluster(&setup, *seed, &mut *Who::Fixed(BALANCED).rule(*seed))
    });
    let told = jobs.chunks(seeds as usize).zip(runs.chunks(seeds as usize));
    told.map(|(jobs, runs)| {
        let ((name, _), age) = jobs[0].0;
        let took = sorted_times(runs);
        let (mean_s, p99_s) = mean_and_p99(&took);
        Balance { dispatch: name.to_owned(), reports_s: age as f64 / 1000.0, mean_s, p99_s }
    })
    .collect()
}

fn played(load: Load, who: Who, seed: u64) -> ClusterRun {
    let mut setup = load.setup();
    if let Who::Fixed(nodes) = who {
        setup.nodes_first = nodes;
    }
    run_cluster(&setup, seed, &mut *who.rule(seed))
}

fn summed_up(load: Load, who: Who, runs: &[ClusterRun], most: &[ClusterRun]) -> Play {
    let mean = |of: &dyn Fn(&ClusterRun) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let between = |run: &ClusterRun, until: usize, of: fn(&suimon_sim::cluster::ClusterSecond) -> f64| {
        let last = run.seconds.len() - 1;
        of(&run.seconds[until.min(last)]) - of(&run.seconds[FROM])
    };
    let by_end = |of: fn(&suimon_sim::cluster::ClusterSecond) -> f64| {
        UNTIL.map(|until| mean(&|run| between(run, until, of) / (until - FROM) as f64)).to_vec()
    };
    let files_per_s = by_end(|second| second.files as f64);
    let share = |(at, until): (usize, &usize)| {
        let all = most.iter().map(|run| between(run, *until, |second| second.files as f64)).sum::<f64>();
        files_per_s[at] * (until - FROM) as f64 / (all / most.len() as f64)
    };
    let took = sorted_times(runs);
    let (mean_s, p99_s) = mean_and_p99(&took);
    Play {
        load,
        who,
        share: UNTIL.iter().enumerate().map(share).collect(),
        files_per_s: files_per_s.clone(),
        nodes: by_end(|second| second.node_seconds),
        work: by_end(|second| second.work),
        mean_s,
        p99_s,
        peak: mean(&|run| run.seconds.iter().map(|second| f64::from(second.nodes)).fold(0.0, f64::max)),
        orders: mean(&|run| run.orders.into()),
        returns: mean(&|run| run.returns.into()),
    }
}

/// Returns the times of page views that began up to the example's t_req, in ascending order, seconds.
fn sorted_times(runs: &[ClusterRun]) -> Vec<f64> {
    let counts = |view: &&View| {
        let began = view.began.since(suimon_model::Instant::ORIGIN).as_secs_f64();
        began >= FROM as f64 && began < UNTIL[EXAMPLE] as f64
    };
    let views = runs.iter().flat_map(|run| &run.views).filter(counts);
    let mut took: Vec<f64> = views.map(|view| view.took.as_secs_f64()).collect();
    took.sort_by(f64::total_cmp);
    took
}

fn mean_and_p99(took: &[f64]) -> (f64, f64) {
    let mean = took.iter().sum::<f64>() / took.len().max(1) as f64;
    (mean, took.get(took.len() * 99 / 100).copied().unwrap_or_default())
}

/// Returns who is compared on a workload up to the example's t_req: fixed numbers, the paper's rule with
/// its best setting for each interval, ours with each eagerness, and others with their best target.
fn compared(data: &Data, load: Load) -> Vec<&Play> {
    let mut plays: Vec<&Play> = data.fewest_fixed(load, EXAMPLE).into_iter().collect();
    plays.extend(INTERVALS.iter().filter_map(|interval| data.paper(load, EXAMPLE, *interval)));
    plays.extend(data.of_load(load, |who| matches!(who, Who::Ours(_))));
    let others: [fn(Who) -> bool; 3] = [
        |who| matches!(who, Who::HpaCpu(_)),
        |who| matches!(who, Who::Keda(_)),
        |who| matches!(who, Who::Kpa(_)),
    ];
    plays.extend(others.iter().filter_map(|is_meant| data.best(load, EXAMPLE, is_meant)));
    plays
}

/// Returns the nodes that the work that comes needs, if none is ever idle.
fn bound(data: &Data, load: Load, until: usize) -> f64 {
    data.of(load, Who::Fixed(NODES_MOST)).map_or(f64::NAN, |play| play.work[until])
}

fn numbers(data: &Data) -> String {
    let mut out = format!("\nA page view is {:.3} node-seconds of work.\n", data.view_s);
    for load in Load::PAPER {
        let _ = writeln!(
            out,
            "\n| {load:?}, t_req {} s (bound {:.2}) | n_s | ÷ bound | of all files | mean s | p99 s | peak | orders | returns |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|",
            UNTIL[EXAMPLE],
            bound(data, load, EXAMPLE)
        );
        for play in compared(data, load) {
            let _ = writeln!(
                out,
                "| {} | {:.2} | {:.3} | {:.3} | {:.2} | {:.1} | {:.1} | {:.1} | {:.1} |",
                play.who.name(),
                play.nodes[EXAMPLE],
                play.nodes[EXAMPLE] / bound(data, load, EXAMPLE),
                play.share[EXAMPLE],
                play.mean_s,
                play.p99_s,
                play.peak,
                play.orders,
                play.returns
            );
        }
        let heads: String = UNTIL.iter().map(|until| format!(" {until} s |")).collect();
        let _ = writeln!(out, "\n| {load:?}, by t_req |{heads}\n|---|{}", "--:|".repeat(UNTIL.len()));
        let row = |name: &str, of: &dyn Fn(usize) -> Option<f64>| {
            let cells =
                (0..UNTIL.len()).map(|at| of(at).map_or(" - |".into(), |nodes| format!(" {nodes:.2} |")));
            format!("| {name} |{}\n", cells.collect::<String>())
        };
        out += &row("bound", &|at| Some(bound(data, load, at)));
        out += &row("n_opt", &|at| data.fewest_fixed(load, at).map(|play| play.nodes[at]));
        for interval in INTERVALS {
            let name = format!("the paper's, every {:.1} s", interval as f64 / 1000.0);
            out += &row(&name, &|at| data.paper(load, at, interval).map(|play| play.nodes[at]));
        }
        for eagerness in EAGERNESSES {
            let play = data.of(load, Who::Ours(eagerness));
            let all = |at: usize| play.filter(|play| play.share[at] >= ALL).map(|play| play.nodes[at]);
            out += &row(&format!("Suimon, eagerness {eagerness}"), &all);
        }
    }
    let _ = writeln!(
        out,
        "\n| A, {BALANCED} nodes: a connection goes to | reports every | mean s | p99 s |\n|---|--:|--:|--:|"
    );
    for Balance { dispatch, reports_s, mean_s, p99_s } in &data.balance {
        let _ = writeln!(out, "| {dispatch} | {reports_s} s | {mean_s:.2} | {p99_s:.1} |");
    }
    out += "\n| kinds on which no constant was chosen | n_s | bound | of all files | mean s | p99 s | orders |\n|---|--:|--:|--:|--:|--:|--:|\n";
    for load in Load::HELD_OUT {
        let fixed = data.fewest_fixed(load, EXAMPLE).into_iter();
        for play in fixed.chain(data.of_load(load, |who| !matches!(who, Who::Fixed(_)))) {
            let _ = writeln!(
                out,
                "| {load:?}: {} | {:.2} | {:.2} | {:.3} | {:.2} | {:.1} | {:.1} |",
                play.who.name(),
                play.nodes[EXAMPLE],
                bound(data, load, EXAMPLE),
                play.share[EXAMPLE],
                play.mean_s,
                play.p99_s,
                play.orders
            );
        }
    }
    out
}

fn claims(data: &Data) -> Vec<Claim> {
    let mut claims = vec![];
    let fixed = data
        .fewest_fixed(Load::A, EXAMPLE)
        .map_or(0, |play| if let Who::Fixed(nodes) = play.who { nodes } else { 0 });
    claims.push(Claim::new(format!("six fixed nodes are needed for A (paper: 6): {fixed}"), fixed == 6));
    let optima: Vec<(f64, u32)> = INTERVALS
        .iter()
        .filter_map(|interval| data.paper(Load::A, EXAMPLE, *interval))
        .map(|play| (play.nodes[EXAMPLE], if let Who::Paper(_, most) = play.who { most } else { 0 }))
        .collect();
    let told: Vec<String> = optima.iter().map(|(nodes, most)| format!("{most} → {nodes:.2}")).collect();
    claims.push(Claim::new(
        format!(
            "the paper's rule needs 5.3 to 5.7 on A at each interval, with a greater MaxCPULoad for a longer one (paper: 27, 39, 55 → 5.49, 5.52, 5.66): {}",
            told.join(", ")
        ),
        optima.len() == INTERVALS.len()
            && optima.iter().all(|(nodes, _)| (5.3..=5.7).contains(nodes))
            && optima.windows(2).all(|pair| pair[0].1 <= pair[1].1),
    ));
    for load in Load::PAPER {
        let Some((ours, fixed)) = data.of(load, Who::Ours(0.5)).zip(data.fewest_fixed(load, EXAMPLE)) else {
            continue;
        };
        let ratio = ours.nodes[EXAMPLE] / bound(data, load, EXAMPLE);
        claims.push(Claim::new(
            format!(
                "{load:?}: ours fetches all with at most 1.05 of the bound, and no slower than n_opt fixed nodes: {ratio:.3}, {:.2} and {:.2} s, {:.3} of all",
                ours.mean_s, fixed.mean_s, ours.share[EXAMPLE]
            ),
            ratio <= 1.05 && ours.mean_s <= fixed.mean_s && ours.share[EXAMPLE] >= ALL,
        ));
    }
    let p99 = |reports_s: f64| {
        let is_meant =
            |it: &&Balance| it.dispatch == DISPATCHES[1].0 && (it.reports_s - reports_s).abs() < 1e-9;
        data.balance.iter().find(is_meant).map_or(f64::NAN, |it| it.p99_s)
    };
    let (old, fresh) = (p99(1.0), p99(0.01));
    claims.push(Claim::new(
        format!(
            "with reports every second, and what was sent since, the 99th percentile is at most {AGE_COSTS_MAX} times that with fresh ones: {old:.2} and {fresh:.2} s"
        ),
        old <= AGE_COSTS_MAX * fresh,
    ));
    for load in Load::HELD_OUT {
        let paper = Who::Paper(INTERVALS[0], LOAD_OF_A);
        let Some((ours, paper)) = data.of(load, Who::Ours(0.5)).zip(data.of(load, paper)) else { continue };
        claims.push(Claim::new(
            format!(
                "{load:?}: ours is faster than the paper's rule with what is best for it on A, and fetches as much: {:.2} and {:.2} s, {:.3} and {:.3} of all, with {:.2} and {:.2} nodes",
                ours.mean_s, paper.mean_s, ours.share[EXAMPLE], paper.share[EXAMPLE], ours.nodes[EXAMPLE], paper.nodes[EXAMPLE]
            ),
            ours.mean_s <= paper.mean_s && ours.share[EXAMPLE] >= paper.share[EXAMPLE],
        ));
    }
    claims
}

fn table(data: &Data, claims: &[Claim]) -> String {
    format!(
        "# How many nodes serve through a sudden rise\n\nWritten by `./experiments/run {NAME}` from `data/result.json`. Means of {} seeds.\n{}\n## What was to hold\n\n{}",
        data.seeds,
        numbers(data),
        claims::list(claims)
    )
}

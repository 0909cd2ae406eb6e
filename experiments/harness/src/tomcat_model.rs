//! `tomcat-model`: what pages of the Tomcat shop cost alone and concurrently, and from that the
//! shop as a scenario.
//!
//! Only pages of one kind are measured at a time, at a fixed concurrency: nothing that the model
//! must predict.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_statistics::median;
use suimon_statistics::table::numbers;

use crate::apps::{OpenShop, ShopOptions, Work, open_tomcat};
use crate::bound::{self, Bound};
use crate::common::{Common, CommonOptions, experiments};
use crate::cpu::{CoreTimes, process_time};
use crate::data;
use crate::http::Visitor;
use crate::journey::{BRIEFLY, Thinks};
use crate::machine::Machine;
use crate::trouble::{Result, Trouble, failed};

const NAME: &str = "tomcat-model";
/// The two pages that represent all: any light one, and the search.
const LIGHT: &str = "/browse?page=1";
const SEARCH: &str = "/search?q=lantern";
/// The concurrencies at which each is measured.
const LIGHT_AT_ONCE: [u32; 3] = [1, 8, 64];
const SEARCH_AT_ONCE: [u32; 13] = [1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 80, 96, 128];
/// The time between their starts, as in a crowd. Searches that start at the same moment stay in
/// step: all reach their highest memory use at the same time, and fewer of them fit into the heap.
const APART: Duration = Duration::from_millis(50);
/// Light pages of a session.
const LIGHT_PAGES: f64 = 6.0;
/// The spread of the times at this many concurrent searches shows how evenly the processor is
/// shared.
const SHARED_BY: u32 = 8;
/// The longest that a visitor waits for one page.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest wait for any answer: with an exhausted heap there may be none.
const SILENCE: Duration = Duration::from_secs(75);
/// Sessions of the shop's warm-up, and sessions over which a session's cost is measured.
const WARMUP_SESSIONS: u32 = 40;
const BOUND_SESSIONS: u32 = 100;
/// Sessions of the comparison with and without pauses.
const PACED_SESSIONS: u32 = 40;
/// If the processor is shared evenly, the spread of times is below this; with the model's uneven
/// weights it is far above 1.
const EVEN_BELOW: f64 = 0.5;
/// The least efficiency in a scenario: no work gets done.
const NOTHING: f64 = 0.001;

/// What does a page of the Tomcat shop cost alone and concurrently?
///
/// Processor seconds of the shop's process for each page answered, including the collector, at a
/// constant 1 to 128 requests for the same page; several rounds, each with a fresh shop. Writes
/// data/result.json and _server.toml, the shop as a scenario, from which `sqs live` is predicted.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop: ShopOptions,
    /// The least time for each concurrency, seconds; measuring also goes on until as many requests
    /// were answered.
    #[arg(long, value_name = "SECONDS", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// How often all of it is measured; the medians count.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    rounds: u32,
    /// Keep the counts of work in the data file, to measure again a shop that had them.
    #[arg(long)]
    same_work: bool,
    /// Measure nothing: write the scenario and the tables again from the data.
    #[arg(long, conflicts_with = "same_work")]
    redraw: bool,
}

/// What was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    machine: Machine,
    pub(crate) scale: f64,
    /// The work of a page, so that it can be reproduced.
    pub(crate) work: Work,
    rounds: Vec<Round>,
}

/// One complete round, at a fresh shop.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Round {
    /// A whole session of a single user without a pause, before anything else: the compiler is
    /// still active then.
    bound: Bound,
    /// The same right after it with a pause before each page: the effect of pauses alone.
    paced: Bound,
    /// And without a pause again.
    unpaced: Bound,
    light: Vec<Step>,
    search: Vec<Step>,
}

/// One page at a fixed concurrency, again and again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Step {
    at_once: u32,
    completed: u32,
    failed: u32,
    /// Processor seconds of the shop in that time.
    cpu_s: f64,
    /// Median time of a page as its visitor sees it, seconds, and standard deviation ÷ mean; 0 if
    /// none was answered.
    time_s: f64,
    variation: f64,
    /// Share of the shop's core that other processes used.
    others: f64,
}

/// Returns the last measurement, if there is one.
pub(crate) fn measured() -> Result<Measured> {
    let path = experiments().join(NAME).join("data/result.json");
    data::load(&path)?.ok_or_else(|| {
        Trouble::Usage(format!("{} is missing: ./experiments/run {NAME} measures it", path.display()))
    })
}

/// Measures, and writes the scenario. There are no claims.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let measured = if options.redraw {
        measured()?
    } else {
        let measured = measure(&common, options)?;
        data::save(&common.out.join("data/result.json"), &measured)?;
        measured
    };
    data::write(&common.out.join("_server.toml"), &measured.scenario())?;
    print!("{}", measured.tables());
    Ok(true)
}

fn measure(common: &Common, options: &Options) -> Result<Measured> {
    let mut work = if options.same_work { Some(measured()?.work) } else { None };
    let mut rounds = Vec::new();
    for number in 1..=options.rounds {
        eprintln!("round {number} of {}", options.rounds);
        let shop = open_tomcat(common, &options.shop, work)?;
        work = Some(shop.work);
        rounds.push(round(common, options, &shop)?);
    }
    let work = work.ok_or_else(|| Trouble::Usage("--rounds: none".to_owned()))?;
    Ok(Measured { machine: common.machine.clone(), scale: options.shop.scale, work, rounds })
}

fn round(common: &Common, options: &Options, shop: &OpenShop) -> Result<Round> {
    let time = Duration::from_secs(if common.quick { 1 } else { options.seconds });
    let scale = options.shop.scale;
    let lone = |warmup, thinks| {
        let sessions = if warmup > 0 { BOUND_SESSIONS } else { PACED_SESSIONS };
        bound::measure(common, &common.scratch, shop, scale, warmup, sessions, thinks)
    };
    let bound = lone(WARMUP_SESSIONS, Thinks::No)?;
    let (paced, unpaced) = (lone(0, Thinks::Briefly)?, lone(0, Thinks::No)?);
    let steps = |page: &str, numbers: &[u32]| -> Result<Vec<Step>> {
        let most = if common.quick { 8 } else { u32::MAX };
        let mut steps = Vec::new();
        // A single page pauses half of the time, and all other measurements are compared with it.
        let time = |at_once| if at_once == 1 { 2 * time } else { time };
        for at_once in numbers.iter().filter(|at_once| **at_once <= most) {
            let step = keep_up(common, shop, page, *at_once, time(*at_once))?;
            let is_over = step.failed > step.completed;
            steps.push(step);
            // After its heap was exhausted, a shop is of no more use.
            if is_over {
                break;
            }
        }
        Ok(steps)
    };
    Ok(Round {
        bound,
        paced,
        unpaced,
        light: steps(LIGHT, &LIGHT_AT_ONCE)?,
        search: steps(SEARCH, &SEARCH_AT_ONCE)?,
    })
}

/// Keeps `at_once` visitors requesting `page`, each in a session of its own. They begin one after
/// the other, as visitors do. Counting begins after that many answers; it ends after `time`, but
/// not before as many again. A single visitor pauses before each request: a page that comes to an
/// idle shop finds cold caches, and costs up to half as much again as one right behind another.
fn keep_up(common: &Common, shop: &OpenShop, page: &str, at_once: u32, time: Duration) -> Result<Step> {
    eprint!("{page}, {at_once} at once: ");
    let pid = shop.process.pid();
    let visitors = (0..at_once).map(|_| logged_in(shop.address)).collect::<Result<Vec<Visitor>>>()?;
    let (over, (answered, answers)) = (AtomicBool::new(false), mpsc::channel());
    thread::scope(|scope| {
        for mut visitor in visitors {
            thread::sleep(APART);
            let (over, answered) = (&over, answered.clone());
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    if at_once == 1 {
                        thread::sleep(BRIEFLY);
                    }
                    let began = Instant::now();
                    let is_done = visitor.ask(page, None).is_ok_and(|answer| answer.status == 200);
                    // At the end of the measurement there is no receiver.
                    let _ = answered.send(is_done.then(|| began.elapsed().as_secs_f64()));
                }
            });
        }
        let step = watch(common, pid, at_once, time, &answers);
        over.store(true, Ordering::Relaxed);
        step
    })
}

/// Counts the answers meanwhile, and their cost.
fn watch(
    common: &Common,
    pid: u32,
    at_once: u32,
    time: Duration,
    answers: &mpsc::Receiver<Option<f64>>,
) -> Result<Step> {
    for _ in 0..at_once {
        if answers.recv_timeout(SILENCE).is_err() {
            break;
        }
    }
    let (cpu, core, began) = (process_time(pid)?, CoreTimes::now(common.app_core)?, Instant::now());
    let mut seen = Vec::new();
    while began.elapsed() < time || seen.len() < at_once as usize {
        match answers.recv_timeout(SILENCE) {
            Ok(answer) => seen.push(answer),
            Err(_) => break,
        }
    }
    let cpu_s = process_time(pid)?.saturating_sub(cpu).as_secs_f64();
    let core = core.until(&CoreTimes::now(common.app_core)?);
    let times: Vec<f64> = seen.iter().copied().flatten().collect();
    eprintln!("{} of {} answered, {cpu_s:.2} s of processor time", times.len(), seen.len());
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    let square = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / times.len().max(1) as f64;
    Ok(Step {
        at_once,
        completed: times.len() as u32,
        // A request without an answer in all that time counts, too.
        failed: seen.len().max(at_once as usize) as u32 - times.len() as u32,
        cpu_s,
        time_s: if times.is_empty() { 0.0 } else { median(&times) },
        variation: if times.is_empty() { 0.0 } else { square.sqrt() / mean },
        others: core.foreign(cpu_s / began.elapsed().as_secs_f64()),
    })
}

fn logged_in(address: SocketAddr) -> Result<Visitor> {
    let mut visitor = Visitor::new(address, PATIENCE);
    match visitor.ask("/login", Some("user=one&password=secret"))?.status {
        200 => Ok(visitor),
        status => failed(format!("/login: status {status}")),
    }
}

impl Step {
    /// Returns processor seconds per answer; infinite if there was none.
    fn cost(&self) -> f64 {
        self.cpu_s / f64::from(self.completed)
    }
}

/// Returns what a page alone costs, processor seconds.
fn alone(steps: &[Step]) -> f64 {
    steps.iter().find(|step| step.at_once == 1).map_or(f64::NAN, Step::cost)
}

impl Measured {
    /// Returns what a light page and a search cost alone, processor seconds.
    fn costs(&self) -> (f64, f64) {
        (self.middle(|round| Some(alone(&round.light))), self.middle(|round| Some(alone(&round.search))))
    }

    /// Returns the sessions per second that one core could do of pages alone.
    pub(crate) fn sessions_per_s(&self) -> f64 {
        let (light, search) = self.costs();
        1.0 / (search + LIGHT_PAGES * light)
    }

    /// Returns the median over the rounds that have a value.
    fn middle(&self, of: impl Fn(&Round) -> Option<f64>) -> f64 {
        median(&self.rounds.iter().filter_map(of).collect::<Vec<f64>>())
    }

    /// Returns the efficiency by number of concurrent searches: processor seconds alone ÷ processor
    /// seconds concurrently, in the same round.
    fn curve(&self) -> Vec<(u32, f64)> {
        let at = |at_once: u32| {
            let of = |round: &Round| {
                let step = round.search.iter().find(|step| step.at_once == at_once)?;
                Some(alone(&round.search) / step.cost())
            };
            // A round ends early only because it failed at a lower concurrency.
            let known: Vec<f64> = self.rounds.iter().map(|round| of(round).unwrap_or(0.0)).collect();
            let reached = self.rounds.iter().any(|round| of(round).is_some());
            reached.then(|| (at_once, median(&known)))
        };
        never_rising(SEARCH_AT_ONCE.into_iter().filter_map(at))
    }

    fn is_even(&self) -> bool {
        let of = |round: &Round| {
            round.search.iter().find(|step| step.at_once == SHARED_BY).map(|step| step.variation)
        };
        self.rounds.iter().filter_map(of).all(|variation| variation < EVEN_BELOW)
    }

    /// Returns the shop as a scenario.
    fn scenario(&self) -> String {
        let (light, search) = self.costs();
        let variation =
            |of: fn(&Round) -> &[Step]| self.middle(|round| of(round).first().map(|step| step.variation));
        let points: Vec<String> = self
            .curve()
            .iter()
            .map(|(at_once, share)| format!("[{at_once}, {:.3}]", share.max(NOTHING)))
            .collect();
        format!(
            "# The Tomcat shop on one core, all times divided by {}. Written by ./experiments/run {NAME} from data/result.json: single requests, and\n\
             # a fixed number of one kind kept up at once.\n\nbase = \"../sqs/model/_burst.toml\"\n\n\
             [server]\ncores = 1\nsharing = \"{}\"\nthreads = 200\n\
             efficiency = {{ measured = [{}] }}\n\n\
             [[server.route]]\nmatch = \"* /*\"\ncpu = \"{:.2}ms\"\nvariation = {:.2}\nmemory = 0\n\n\
             [[server.route]]\nmatch = \"GET /search\"\ncpu = \"{:.2}ms\"\nvariation = {:.2}\nmemory = 1\n",
            self.scale,
            if self.is_even() { "even" } else { "uneven" },
            points.join(", "),
            light * 1000.0,
            variation(|round| &round.light),
            search * 1000.0,
            variation(|round| &round.search),
        )
    }

    fn tables(&self) -> String {
        let rows = |of: fn(&Round) -> &[Step]| -> Vec<Vec<String>> {
            let row = |(number, step, alone): (usize, &Step, f64)| {
                vec![
                    step.at_once.to_string(),
                    number.to_string(),
                    format!("{:.2}", step.cost() * 1000.0),
                    format!("{:.0} %", 100.0 * alone / step.cost()),
                    format!("{:.0}", step.time_s * 1000.0),
                    format!("{:.2}", step.variation),
                    step.completed.to_string(),
                    step.failed.to_string(),
                    format!("{:.0} %", 100.0 * step.others),
                ]
            };
            let mut steps: Vec<(usize, &Step, f64)> = Vec::new();
            for (index, round) in self.rounds.iter().enumerate() {
                let alone = alone(of(round));
                steps.extend(of(round).iter().map(|step| (index + 1, step, alone)));
            }
            steps.sort_by_key(|(_, step, _)| step.at_once);
            steps.into_iter().map(row).collect()
        };
        let headings = [
            "at once",
            "round",
            "CPU ms each",
            "efficiency",
            "time ms",
            "variation",
            "completed",
            "failed",
            "others",
        ];
        let mut out = String::new();
        // Writing into a String cannot fail.
        let _ = writeln!(out, "\nA light page\n{}", numbers(&headings, &rows(|round| &round.light)));
        let _ = writeln!(out, "A search\n{}", numbers(&headings, &rows(|round| &round.search)));
        let (light, search) = self.costs();
        let _ = writeln!(
            out,
            "A search and six light pages alone: {:.0} + 6 · {:.1} ms, {:.2} sessions a second. A session of a single user",
            search * 1000.0,
            light * 1000.0,
            self.sessions_per_s(),
        );
        let of = |bound: fn(&Round) -> &Bound| -> String {
            let each =
                self.rounds.iter().map(|round| format!("{:.0}", bound(round).cpu_s_per_session * 1000.0));
            each.collect::<Vec<String>>().join(" · ")
        };
        let _ = writeln!(
            out,
            "without a pause, by round: {} ms; right afterwards with pauses: {} ms; without again: {} ms.",
            of(|round| &round.bound),
            of(|round| &round.paced),
            of(|round| &round.unpaced),
        );
        out
    }
}

/// Returns the curve with rising neighbours replaced by their mean: more concurrency never helps,
/// so a rise is noise. No value is above 1.
fn never_rising(curve: impl Iterator<Item = (u32, f64)>) -> Vec<(u32, f64)> {
    let mut pools: Vec<(Vec<u32>, f64)> = Vec::new();
    for (at_once, share) in curve {
        let mut pool = (vec![at_once], share);
        while let Some((before, mean)) = pools.pop_if(|(_, mean)| *mean < pool.1) {
            let (many, few) = (before.len() as f64, pool.0.len() as f64);
            pool.1 = (many * mean + few * pool.1) / (many + few);
            pool.0.splice(0..0, before);
        }
        pools.push(pool);
    }
    pools
        .into_iter()
        .flat_map(|(all, mean)| all.into_iter().map(move |at_once| (at_once, mean.min(1.0))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_that_rises_is_evened_out_and_any_other_left_alone() {
        let even = |shares: &[f64]| never_rising((1..).zip(shares.iter().copied()));
        assert_eq!(even(&[1.0, 0.5, 0.5, 0.0]), [(1, 1.0), (2, 0.5), (3, 0.5), (4, 0.0)]);
        assert_eq!(even(&[1.0, 0.25, 0.5, 0.75]), [(1, 1.0), (2, 0.5), (3, 0.5), (4, 0.5)]);
        assert_eq!(even(&[0.5, 1.0]), [(1, 0.75), (2, 0.75)]);
        assert_eq!(even(&[1.0, 1.5, 0.5]), [(1, 1.0), (2, 1.0), (3, 0.5)]);
    }

    #[test]
    fn the_committed_scenario_is_that_of_the_committed_measurement() {
        let scenario = std::fs::read_to_string(experiments().join(NAME).join("_server.toml")).unwrap();
        assert!(
            scenario == measured().unwrap().scenario(),
            "write it anew: ./experiments/run {NAME} --redraw"
        );
    }
}

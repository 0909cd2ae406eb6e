//! `tomcat-model`: what pages of the Tomcat shop cost alone, and what company costs them; from that, the shop as a scenario.
//!
//! Only single requests are measured, or many of one kind that begin together: nothing that the model is to predict.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::apps::{OpenShop, ShopOptions, Work, open_tomcat};
use crate::bound::{self, Bound};
use crate::common::{Common, CommonOptions, experiments};
use crate::cpu::{CoreTimes, process_time};
use crate::data;
use crate::http::Visitor;
use crate::machine::Machine;
use crate::statistics::median;
use crate::table::table;
use crate::trouble::{Result, Trouble, failed};

const NAME: &str = "tomcat-model";
/// The two pages that stand for all: any light one, and the search.
const LIGHT: &str = "/browse?page=1";
const SEARCH: &str = "/search?q=lantern";
/// So many at once are measured of each.
const LIGHT_AT_ONCE: [u32; 3] = [1, 8, 64];
const SEARCH_AT_ONCE: [u32; 10] = [1, 2, 3, 4, 8, 16, 24, 32, 64, 128];
/// Light pages of a session.
const LIGHT_PAGES: f64 = 6.0;
/// The spread of the times of so many searches at once tells how evenly the processor is shared.
const SHARED_BY: u32 = 8;
/// The longest anybody waits for one page.
const PATIENCE: Duration = Duration::from_secs(60);
/// Sessions that warm the shop up, and over which a session's cost is measured.
const WARMUP_SESSIONS: u32 = 40;
const BOUND_SESSIONS: u32 = 100;
/// Times spread less than this where the processor is shared evenly, more where it is not: with the model's uneven weights it is far above 1.
const EVEN_BELOW: f64 = 0.5;

/// What does a page of the Tomcat shop cost alone, and in company?
///
/// Processor seconds of the shop's process for each page, collector included, with 1 to 128 of the same page at once. Writes data/result.json and
/// _server.toml, the shop as a scenario: what `sqs-live` is predicted with.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop: ShopOptions,
    /// How long each number at once is measured, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Keep the counts of work that the data file holds: for another look at a shop that was measured with them.
    #[arg(long)]
    same_work: bool,
    /// Measure nothing: write the scenario and the tables anew from the data.
    #[arg(long, conflicts_with = "same_work")]
    redraw: bool,
}

/// What was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    machine: Machine,
    pub(crate) scale: f64,
    /// The work of a page, so that it can be the same again.
    pub(crate) work: Work,
    /// A whole session of a single user; what it costs beyond its search is that of the light pages.
    pub(crate) bound: Bound,
    light: Vec<Step>,
    search: Vec<Step>,
}

/// One page, so many at once, again and again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Step {
    at_once: u32,
    completed: u32,
    failed: u32,
    /// Processor seconds of the shop for each that was completed.
    cpu_s: f64,
    /// Median time of a page as its visitor sees it, seconds, and standard deviation ÷ mean.
    time_s: f64,
    variation: f64,
    /// Share of the shop's core that others had.
    others: f64,
}

/// Returns what was measured last, if it was.
pub(crate) fn measured() -> Result<Measured> {
    let path = experiments().join(NAME).join("data/result.json");
    data::load(&path)?.ok_or_else(|| {
        Trouble::Usage(format!("{} is missing: ./experiments/run {NAME} measures it", path.display()))
    })
}

/// Measures, and writes the scenario. There is nothing that was to hold.
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
    let time = Duration::from_secs(if common.quick { 1 } else { options.seconds });
    let work = if options.same_work { Some(measured()?.work) } else { None };
    let shop = open_tomcat(common, &options.shop, work)?;
    let scale = options.shop.scale;
    let bound = bound::measure(common, &common.scratch, &shop, scale, WARMUP_SESSIONS, BOUND_SESSIONS)?;
    let steps = |page: &str, numbers: &[u32]| -> Result<Vec<Step>> {
        let most = if common.quick { 8 } else { u32::MAX };
        let wanted = numbers.iter().filter(|at_once| **at_once <= most);
        // The first number of which none is answered is the last: more do not fit into the heap either.
        let steps = wanted.map(|at_once| step(common, &shop, page, *at_once, time).transpose());
        steps.map_while(|step| step).collect()
    };
    let (light, search) = (steps(LIGHT, &LIGHT_AT_ONCE)?, steps(SEARCH, &SEARCH_AT_ONCE)?);
    Ok(Measured { machine: common.machine.clone(), scale, work: shop.work, bound, light, search })
}

/// Lets `at_once` visitors ask for `page` at the same moment, wave after wave, each in a session of its own.
fn step(common: &Common, shop: &OpenShop, page: &str, at_once: u32, time: Duration) -> Result<Option<Step>> {
    eprint!("{page}, {at_once} at once: ");
    let pid = shop.process.pid();
    let mut visitors = (0..at_once).map(|_| logged_in(shop.address)).collect::<Result<Vec<Visitor>>>()?;
    // The first wave meets what the step before has left behind.
    wave(&mut visitors, page);
    let (cpu, core, began) = (process_time(pid)?, CoreTimes::now(common.app_core)?, Instant::now());
    let mut answers = Vec::new();
    while began.elapsed() < time {
        answers.extend(wave(&mut visitors, page));
    }
    let cpu_s = process_time(pid)?.saturating_sub(cpu).as_secs_f64();
    let core = core.until(&CoreTimes::now(common.app_core)?);
    let times: Vec<f64> = answers.iter().copied().flatten().collect();
    eprintln!("{} of {} answered, {cpu_s:.2} s of processor time", times.len(), answers.len());
    if times.is_empty() {
        return Ok(None);
    }
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let square = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / times.len() as f64;
    Ok(Some(Step {
        at_once,
        completed: times.len() as u32,
        failed: (answers.len() - times.len()) as u32,
        cpu_s: cpu_s / times.len() as f64,
        time_s: median(&times),
        variation: square.sqrt() / mean,
        others: core.foreign(cpu_s / began.elapsed().as_secs_f64()),
    }))
}

fn logged_in(address: SocketAddr) -> Result<Visitor> {
    let mut visitor = Visitor::new(address, PATIENCE);
    match visitor.ask("/login", Some("user=one&password=secret"))?.status {
        200 => Ok(visitor),
        status => failed(format!("/login: status {status}")),
    }
}

/// Returns how long each of them took, seconds; `None` where the shop failed.
fn wave(visitors: &mut [Visitor], page: &str) -> Vec<Option<f64>> {
    thread::scope(|scope| {
        let ask = |visitor: &mut Visitor| {
            let began = Instant::now();
            let is_done = visitor.ask(page, None).is_ok_and(|answer| answer.status == 200);
            is_done.then(|| began.elapsed().as_secs_f64())
        };
        let asking: Vec<_> = visitors.iter_mut().map(|visitor| scope.spawn(move || ask(visitor))).collect();
        asking.into_iter().map(|asked| asked.join().expect("a visitor only asks and waits")).collect()
    })
}

impl Measured {
    /// Returns processor seconds of a light page, which is what a whole session costs beyond its search in equal parts, and of a search alone.
    fn costs(&self) -> (f64, f64) {
        let alone = self.search.iter().find(|step| step.at_once == 1);
        let search = alone.map_or(f64::NAN, |step| step.cpu_s);
        ((self.bound.cpu_s_per_session - search) / LIGHT_PAGES, search)
    }

    /// Returns the efficiency by searches at once: processor seconds alone ÷ processor seconds in company.
    fn curve(&self) -> Vec<(u32, f64)> {
        let (_, alone) = self.costs();
        self.search.iter().map(|step| (step.at_once, alone / step.cpu_s)).collect()
    }

    fn is_even(&self) -> bool {
        let shared = self.search.iter().find(|step| step.at_once == SHARED_BY);
        shared.is_none_or(|step| step.variation < EVEN_BELOW)
    }

    /// Returns the shop as a scenario.
    fn scenario(&self) -> String {
        let (light, search) = self.costs();
        let variation = |steps: &[Step]| steps.first().map_or(0.0, |step| step.variation);
        let points: Vec<String> =
            self.curve().iter().map(|(at_once, share)| format!("[{at_once}, {share:.3}]")).collect();
        format!(
            "# The Tomcat shop on one core, all times divided by {}. Written by ./experiments/run {NAME} from data/result.json: single requests, and\n\
             # many of one kind that begin together.\n\nbase = \"../sqs-model/_burst.toml\"\n\n\
             [server]\ncores = 1\nsharing = \"{}\"\nthreads = 200\n\
             efficiency = {{ measured = [{}] }}\n\n\
             [[server.route]]\nmatch = \"* /*\"\ncpu = \"{:.2}ms\"\nvariation = {:.2}\nmemory = 0\n\n\
             [[server.route]]\nmatch = \"GET /search\"\ncpu = \"{:.2}ms\"\nvariation = {:.2}\nmemory = 1\n",
            self.scale,
            if self.is_even() { "even" } else { "uneven" },
            points.join(", "),
            light * 1000.0,
            variation(&self.light),
            search * 1000.0,
            variation(&self.search),
        )
    }

    fn tables(&self) -> String {
        let rows = |steps: &[Step]| -> Vec<Vec<String>> {
            let alone = steps.first().map_or(f64::NAN, |step| step.cpu_s);
            let row = |step: &Step| {
                vec![
                    step.at_once.to_string(),
                    format!("{:.2}", step.cpu_s * 1000.0),
                    format!("{:.0} %", 100.0 * alone / step.cpu_s),
                    format!("{:.0}", step.time_s * 1000.0),
                    format!("{:.2}", step.variation),
                    step.completed.to_string(),
                    step.failed.to_string(),
                    format!("{:.0} %", 100.0 * step.others),
                ]
            };
            steps.iter().map(row).collect()
        };
        let headings =
            ["at once", "CPU ms each", "efficiency", "time ms", "variation", "completed", "failed", "others"];
        let (light, search) = self.costs();
        let session = self.bound.cpu_s_per_session * 1000.0;
        let mut out = String::new();
        // Writing into a String cannot fail.
        let _ = writeln!(out, "\nA light page\n{}", table(&headings, &rows(&self.light)));
        let _ = writeln!(out, "A search\n{}", table(&headings, &rows(&self.search)));
        let _ = writeln!(
            out,
            "A session of a single user costs {session:.0} ms: a search of {:.0} ms and six light pages of {:.1} ms.",
            search * 1000.0,
            light * 1000.0
        );
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_scenario_is_that_of_the_committed_measurement() {
        let scenario = std::fs::read_to_string(experiments().join(NAME).join("_server.toml")).unwrap();
        assert!(
            scenario == measured().unwrap().scenario(),
            "write it anew: ./experiments/run {NAME} --redraw"
        );
    }
}

//! `under-capacity`: while nothing is wrong, visitors do not notice the gateway.
//!
//! The added delay is judged by the gateway's own histograms: its own time apart from queues and
//! application (`added`), and which requests waited at all. For comparison there are rounds
//! directly at the shop and through the gateway, in turn and with the same visitors. In these the
//! noise of the shop's own queueing exceeds the delay in question.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_admin::State;
use suimon_chart::{Axis, Hue, Plot, Rule, Series};
use suimon_crowd::Report;
use suimon_statistics::median;
use suimon_statistics::table::numbers;

use crate::apps::{OpenShop, ShopOptions, open_tomcat};
use crate::bound::{self, Bound};
use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::crowd::Crowd;
use crate::data;
use crate::figures::{self, Panel};
use crate::gateways::{Gateway, start_suimon};
use crate::histograms::Histograms;
use crate::http::Visitor;
use crate::journey::{Arrivals, Journey, Thinks};
use crate::machine::Machine;
use crate::observe::{Seen, observe};
use crate::trouble::{Result, Trouble, While};

const NAME: &str = "under-capacity";
/// Sessions of the shop's warm-up, and sessions in which the bound is measured.
const WARMUP_SESSIONS: u32 = 40;
const BOUND_SESSIONS: u32 = 60;
/// The load of the warm-up, as a share of the load that is measured.
const WARMUP_SHARE: f64 = 0.5;
/// The most delay the gateway may add, at the median.
const ADDED_MAX_S: f64 = 0.001;
/// From one visit of the witness to the next.
const VISIT_EVERY: Duration = Duration::from_secs(10);
/// The cookie of the shop itself.
const APP_COOKIE: &str = "JSESSIONID";
/// Warm-up of each comparing round.
const ROUND_WARMUP: Duration = Duration::from_secs(3);
/// How far the share of offered sessions that are completed may be from 1.
const RATE_TOLERANCE: f64 = 0.2;

/// Do visitors notice the gateway while the application has room?
///
/// A Tomcat shop on one core; visitors arrive at a rate of 60 % of the bound for three minutes,
/// through Suimon without configuration. It holds if nobody is refused, nobody waits to begin, no
/// limit is tried, no cookie is set but the shop's own, and the median delay added is under a
/// millisecond.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run under-capacity                 about 6 minutes
  ./experiments/run under-capacity --load 0.5")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop: ShopOptions,
    /// Sessions per second, as a share of the bound.
    #[arg(long, value_name = "SHARE", default_value_t = 0.6)]
    load: f64,
    /// Time at half the load before counting, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    warmup: u64,
    /// Measured, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Rounds directly at the shop, and as many through the gateway, in turn; 0: none.
    #[arg(long, value_name = "N", default_value_t = 4)]
    rounds: u32,
    /// Length of a round, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..))]
    round_seconds: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    scale: f64,
    load: f64,
    sessions_per_s_offered: f64,
    bound: Bound,
    seen: Seen,
    watched: Watched,
    /// Names of all cookies that the witness received.
    cookies: BTreeSet<String>,
    witness_answers: u64,
    delay: Delay,
    rounds: Vec<Round>,
    claims: Vec<Claim>,
}

/// What the gateway's state showed, once per second.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Watched {
    looks: u64,
    /// Looks at which the session gate was not open.
    looks_not_open: u64,
    newcomers_waiting_max: usize,
    /// Looks at which a limit was under trial.
    looks_probing: u64,
    /// Decisions that belong to trials.
    trial_decisions: u64,
    waiting_max: usize,
    in_flight_max: usize,
}

/// What the gateway's own histograms show for the measured time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Delay {
    requests: f64,
    /// Requests that waited in a route's queue at all.
    waited: f64,
    /// Median of what the gateway added apart from waiting, seconds; read off buckets.
    added_p50_s: f64,
    added_p99_s: f64,
    /// A lower bound of the share of requests with less than a millisecond of delay, including
    /// waiting.
    share_under_1ms: f64,
}

/// One round of the comparison: medians in seconds by step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Round {
    through_gateway: bool,
    seed: u64,
    p50_s: BTreeMap<String, f64>,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(mut options: Options) -> Result<bool> {
    if options.common.quick {
        (options.warmup, options.seconds, options.rounds, options.round_seconds) = (3, 8, 1, 3);
    }
    if !(0.05..=0.95).contains(&options.load) {
        return Err(Trouble::Usage(format!("--load {}: must be from 0.05 to 0.95", options.load)));
    }
    let common = options.common.prepare(NAME)?;
    let data = measure(&common, &options)?;
    data::save(&common.out.join("data/result.json"), &data)?;
    draw(&common, &data)?;
    print!("{}{}", tables(&data), claims::text(&data.claims));
    Ok(claims::all_hold(&data.claims))
}

fn measure(common: &Common, options: &Options) -> Result<Data> {
    let scale = options.shop.scale;
    eprintln!("opening the shop and measuring the bound");
    let opened = open_tomcat(common, &options.shop, None)?;
    let bound =
        bound::measure(common, &common.scratch, &opened, scale, WARMUP_SESSIONS, BOUND_SESSIONS, Thinks::No)?;
    let rate = options.load * bound.sessions_per_s;
    eprintln!(
        "B = {:.2} sessions/s; {rate:.2} come per second for {} s",
        bound.sessions_per_s, options.seconds
    );
    let mut gateway = start_suimon(common, &common.scratch, opened.address, None, common.load_core)?;
    let witness = Witness::begin(gateway.address);
    let (warmup, seconds) = (options.warmup as f64, options.seconds as f64);
    let arrivals = Arrivals::Open(vec![(warmup, rate * WARMUP_SHARE), (seconds, rate)]);
    let journey =
        Journey { seed: common.seed, arrivals, scale, thinks: Thinks::Varied, endless: false, in_line: None };
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &common.scratch,
        core: common.load_core,
        journey: journey.toml(),
        to: gateway.address,
        warmup: Duration::from_secs(options.warmup),
        measure: Some(Duration::from_secs(options.seconds)),
    };
    let mut watched = Watched::default();
    let mut newest = -1.0;
    let mut before = None;
    let began = Instant::now();
    let admin = gateway.admin.ok_or("is not told").trouble("the operator's address")?;
    let states = common.scratch.join("states.jsonl");
    let seen = observe(common, &crowd, opened.process.pid(), &mut gateway, &states, |state| {
        watched.look(state, &mut newest);
        if before.is_none() && began.elapsed() >= Duration::from_secs(options.warmup) {
            before = Histograms::fetch(admin).ok();
        }
    })?;
    let after = Histograms::fetch(admin)?;
    let (cookies, witness_answers) = witness.end()?;
    let delay = Delay::of(&before.unwrap_or_default(), &after);
    let rounds = compare(common, options, &opened, &gateway, rate)?;
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        seed: common.seed,
        scale,
        load: options.load,
        sessions_per_s_offered: rate,
        bound,
        seen,
        watched,
        cookies,
        witness_answers,
        delay,
        rounds,
        claims: Vec::new(),
    };
    data.claims = judge(&data);
    Ok(data)
}

impl Watched {
    /// `newest` is the time of the newest decision seen so far.
    fn look(&mut self, state: &State, newest: &mut f64) {
        self.looks += 1;
        self.looks_not_open += u64::from(state.kinds.iter().any(|kind| !kind.open));
        let newcomers = state.kinds.iter().map(|kind| kind.held).sum();
        self.newcomers_waiting_max = self.newcomers_waiting_max.max(newcomers);
        self.looks_probing += u64::from(state.probing.is_some());
        self.waiting_max = self.waiting_max.max(state.totals.waiting());
        self.in_flight_max = self.in_flight_max.max(state.totals.in_flight);
        let new = state.decisions.iter().filter(|decision| decision.at_seconds > *newest);
        self.trial_decisions += new
            .filter(|decision| ["trial_window", "base_window"].contains(&decision.reason.as_str()))
            .count() as u64;
        *newest = state.decisions.iter().map(|decision| decision.at_seconds).fold(*newest, f64::max);
    }
}

impl Delay {
    fn of(before: &Histograms, after: &Histograms) -> Delay {
        let added = after.since(before, "suimon_added_seconds");
        let waited = after.since(before, "suimon_wait_seconds");
        let requests = added.count();
        // A request that waited may have been delayed by any time; all others only by what was
        // added.
        let quick = (added.up_to(ADDED_MAX_S) - waited.count()).max(0.0);
        Delay {
            requests,
            waited: waited.count(),
            added_p50_s: added.quantile(0.5),
            added_p99_s: added.quantile(0.99),
            share_under_1ms: quick / requests.max(1.0),
        }
    }
}

/// A visitor who walks through the shop now and then and checks the cookies received.
struct Witness {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Result<(BTreeSet<String>, u64)>>,
}

impl Witness {
    fn begin(gateway: SocketAddr) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        Witness { over, thread: thread::spawn(move || visit(gateway, &told)) }
    }

    fn end(self) -> Result<(BTreeSet<String>, u64)> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| Trouble::Failed("the witness panicked".to_string()))?
    }
}

fn visit(gateway: SocketAddr, over: &AtomicBool) -> Result<(BTreeSet<String>, u64)> {
    let (mut cookies, mut answers) = (BTreeSet::new(), 0);
    loop {
        let mut visitor = Visitor::new(gateway, Duration::from_secs(15));
        for (path, form) in [
            ("/login", Some("user=witness&password=secret")),
            ("/browse?page=1", None),
            ("/browse?page=2", None),
            ("/logout", Some("")),
        ] {
            visitor.ask(path, form)?;
            answers += 1;
        }
        cookies.extend(visitor.cookie_names().map(str::to_string));
        let next = Instant::now() + VISIT_EVERY;
        while Instant::now() < next {
            if over.load(Ordering::Relaxed) {
                return Ok((cookies, answers));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Plays the same visitors directly at the shop and through the gateway, in turn; each goes first
/// equally often.
fn compare(
    common: &Common,
    options: &Options,
    shop: &OpenShop,
    gateway: &Gateway,
    rate: f64,
) -> Result<Vec<Round>> {
    let measured = Duration::from_secs(options.round_seconds);
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        let seed = common.seed + u64::from(round);
        let gateway_first = round % 2 == 1;
        for through_gateway in [gateway_first, !gateway_first] {
            let seconds = (ROUND_WARMUP + measured).as_secs_f64();
            let arrivals = Arrivals::Open(vec![(seconds, rate)]);
            let journey = Journey {
                seed,
                arrivals,
                scale: options.shop.scale,
                thinks: Thinks::Varied,
                endless: false,
                in_line: None,
            };
            let crowd = Crowd {
                suimon: &common.suimon,
                name: "round",
                folder: &common.scratch,
                core: common.load_core,
                journey: journey.toml(),
                to: if through_gateway { gateway.address } else { shop.address },
                warmup: ROUND_WARMUP,
                measure: Some(measured),
            };
            eprintln!(
                "round {} of {}, {}",
                round + 1,
                options.rounds,
                if through_gateway { "through the gateway" } else { "straight" }
            );
            rounds.push(Round { through_gateway, seed, p50_s: medians(&crowd.play()?) });
        }
    }
    Ok(rounds)
}

fn medians(report: &Report) -> BTreeMap<String, f64> {
    report.steps.iter().map(|step| (step.step.clone(), step.time.p50_s)).collect()
}

fn judge(data: &Data) -> Vec<Claim> {
    let crowd = &data.seen.crowd;
    let end = data.seen.gateway_at_end.as_ref();
    let refused: u64 = end.map_or(0, |state| state.refusals.iter().map(|reason| reason.count).sum());
    let watched = &data.watched;
    let rate = crowd.sessions_per_s / data.sessions_per_s_offered;
    let failures = crowd.mid_session_failures + crowd.first_step_failures;
    let foreign: Vec<&str> =
        data.cookies.iter().map(String::as_str).filter(|name| *name != APP_COOKIE).collect();
    vec![
        Claim::new(
            format!(
                "sessions are completed as they come, and none fails: {rate:.2} of those offered, {failures} failures"
            ),
            (rate - 1.0).abs() <= RATE_TOLERANCE && failures == 0,
        ),
        Claim::new(format!("nobody is refused: {refused}"), refused == 0 && crowd.refusals == 0),
        Claim::new(
            format!(
                "nobody waits to begin: {} at most; not open at {} of {} looks",
                watched.newcomers_waiting_max, watched.looks_not_open, watched.looks
            ),
            watched.newcomers_waiting_max == 0 && watched.looks_not_open == 0 && watched.looks > 0,
        ),
        Claim::new(
            format!(
                "nothing is probed: {} trial windows, a trial at {} looks",
                watched.trial_decisions, watched.looks_probing
            ),
            watched.trial_decisions == 0 && watched.looks_probing == 0,
        ),
        Claim::new(
            format!(
                "no cookie is set but the shop's own: {}, in {} answers to the witness",
                if foreign.is_empty() { "none".to_string() } else { foreign.join(", ") },
                data.witness_answers
            ),
            foreign.is_empty() && data.witness_answers > 0,
        ),
        Claim::new(
            format!(
                "the median delay is under 1 ms: {:.0} % of {:.0} requests were delayed by less, waiting included; median of what is added beside it {:.2} ms",
                data.delay.share_under_1ms * 100.0,
                data.delay.requests,
                data.delay.added_p50_s * 1000.0
            ),
            data.delay.share_under_1ms > 0.5,
        ),
    ]
}

fn tables(data: &Data) -> String {
    let of = |through: bool, step: &str| {
        let rounds = data.rounds.iter().filter(|round| round.through_gateway == through);
        let times: Vec<f64> = rounds.filter_map(|round| round.p50_s.get(step).copied()).collect();
        median(&times) * 1000.0
    };
    let row = |step: &String| {
        let (straight, through) = (of(false, step), of(true, step));
        vec![
            step.clone(),
            format!("{straight:.1} ms"),
            format!("{through:.1} ms"),
            format!("{:+.1} ms", through - straight),
        ]
    };
    let steps: Vec<String> = data.seen.crowd.steps.iter().map(|step| step.step.clone()).collect();
    let rows: Vec<Vec<String>> = steps.iter().map(row).collect();
    let compared = if data.rounds.is_empty() {
        String::new()
    } else {
        let headings = ["median of rounds", "straight", "through", "difference"];
        format!("\nThe same visitors straight and through the gateway\n{}", numbers(&headings, &rows))
    };
    format!(
        "\nB = {:.2} sessions/s; offered {:.2}, completed {:.2} per s; others had {:.0} % of the shop's core\n  \
         {:.0} requests: {:.0} waited in a route's queue; added beside waiting: median {:.2} ms, 99 of 100 under {:.2} ms\n  \
         at most {} waiting, {} in the application\n{compared}",
        data.bound.sessions_per_s,
        data.sessions_per_s_offered,
        data.seen.crowd.sessions_per_s,
        data.seen.foreign() * 100.0,
        data.delay.requests,
        data.delay.waited,
        data.delay.added_p50_s * 1000.0,
        data.delay.added_p99_s * 1000.0,
        data.watched.waiting_max,
        data.watched.in_flight_max,
    )
}

fn draw(common: &Common, data: &Data) -> Result<()> {
    /// Length of the spans in which sessions are counted: one second has too few.
    const STRETCH_S: usize = 10;
    let stretches = data.seen.completed_by_second.chunks_exact(STRETCH_S).enumerate();
    let points = stretches.map(|(index, seconds)| {
        let middle = (index * STRETCH_S) as f64 + STRETCH_S as f64 / 2.0;
        (middle, f64::from(seconds.iter().sum::<u32>()) / STRETCH_S as f64)
    });
    let plot = Plot::new("Sessions completed under capacity, through Suimon")
        .x(Axis::new("seconds").from(0.0))
        .y(Axis::new("sessions per second").from(0.0))
        .series(Series::dotted("completed", Hue::Blue, points.collect()))
        .rule(Rule::new(data.bound.sessions_per_s, "B"))
        .rule(Rule::new(data.sessions_per_s_offered, "offered"))
        .describe("Sessions completed stay at the rate at which visitors come.");
    figures::write(&common.out.join("figure.svg"), &[Panel::Lines(plot, 320.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waited_does_not_count_as_undelayed() {
        let text = "suimon_added_seconds_bucket{route=\"a\",le=\"0.001\"} 90\n\
                    suimon_added_seconds_bucket{route=\"a\",le=\"+Inf\"} 100\n\
                    suimon_wait_seconds_bucket{route=\"a\",le=\"0.001\"} 10\n\
                    suimon_wait_seconds_bucket{route=\"a\",le=\"+Inf\"} 45\n";
        let delay = Delay::of(&Histograms::default(), &Histograms::read(text));
        assert!((delay.share_under_1ms - 0.45).abs() < 1e-9, "{delay:?}");
        assert!((delay.waited - 45.0).abs() < 1e-9);
    }
}

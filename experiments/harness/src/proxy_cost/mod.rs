//! `proxy-cost`: processor time per request of Suimon beside nginx and HAProxy.
//!
//! All proxies run at the same time in front of the same backend and do the same work. In each
//! round each of them is loaded for some seconds, in random order, on a core of its own. Load and
//! backend share the other core. The result is the processor time of the proxy's threads, by the
//! scheduler's nanosecond counters, divided by the number of answers.

mod backend;
mod contestants;
mod load;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Bars, Hue};
use suimon_model::Rng;
use suimon_process::{Program, Running, listening_address};
use suimon_statistics::table::numbers;
use suimon_statistics::{median, quantile};

use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::cpu::{CoreTimes, CoreUse, threads_time};
use crate::data;
use crate::figures::{self, Panel};
use crate::gateways::Gateway;
use crate::machine::Machine;
use crate::trouble::{Result, Trouble, While, failed};
use contestants::Contestant;

pub(crate) use backend::BackendOptions;
pub(crate) use backend::run as run_backend;
pub(crate) use load::run as run_load;
pub(crate) use load::{Load, LoadOptions};

const NAME: &str = "proxy-cost";
/// The most that Suimon may cost, as a multiple of HAProxy's cost.
const RATIO_MAX: f64 = 1.3;
/// A round in which other processes used more than this share of the proxy's core does not count.
const FOREIGN_MAX: f64 = 0.15;
/// To get enough quiet rounds, at most this many times as many are played.
const ROUNDS_FACTOR: u32 = 2;
/// How long the backend may take to listen.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// How much processor time does a proxied request cost, beside nginx and HAProxy?
///
/// HTTP/1.1, keep-alive, answers of 1 KiB, 64 connections; each proxy on one core, the load and a
/// backend on the other. All add X-Forwarded-For, -Proto and -Host. "suimon" is without
/// configuration; "suimon, ungated" has both gates off, which shows what the gates cost. It holds
/// if suimon costs at most 1.3 times as much as HAProxy.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run proxy-cost                 about 2 minutes on a quiet machine, 4 on one that is not
  ./experiments/run proxy-cost --rounds 14 --connections 256
  ./experiments/run proxy-cost --baseline ../before/target/release/suimon --rounds 30 --seconds 1

Rounds in which others had more than 15 % of the proxy's core are kept in the data but do not count.")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Quiet rounds wanted.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=200))]
    rounds: u32,
    /// Length of a round for each proxy, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.5)]
    seconds: f64,
    /// Connections of the load.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=2000))]
    connections: u32,
    /// The load sends no cookie, so that each request is a new visitor's. (Otherwise each
    /// connection is a visitor whom the application knows.)
    #[arg(long)]
    strangers: bool,
    /// Another build of suimon to compare with this one: does a request cost more than before?
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    seconds: f64,
    connections: u32,
    strangers: bool,
    /// Versions of the other proxies.
    versions: Vec<String>,
    rounds: Vec<Round>,
    summaries: Vec<Summary>,
    claims: Vec<Claim>,
}

/// One proxy in one round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Round {
    round: u32,
    proxy: Contestant,
    load: Load,
    cpu_us_per_request: f64,
    proxy_cpu_share: f64,
    proxy_core: CoreUse,
    quiet: bool,
}

/// One proxy, over its quiet rounds; over all rounds if too few were quiet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Summary {
    proxy: Contestant,
    rounds: usize,
    only_quiet: bool,
    cpu_us_p25: f64,
    cpu_us_p50: f64,
    cpu_us_p75: f64,
    requests_per_s_p50: f64,
    latency_p50_us: f64,
    /// Median over the rounds of this proxy's cost ÷ HAProxy's in the same round.
    ratio_to_haproxy: f64,
    /// The same compared with its other build; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ratio_to_baseline: Option<f64>,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(mut options: Options) -> Result<bool> {
    if options.common.quick {
        (options.rounds, options.seconds) = (2, 0.5);
    }
    if !(0.2..=60.0).contains(&options.seconds) {
        return Err(Trouble::Usage(format!("--seconds {}: must be from 0.2 to 60", options.seconds)));
    }
    let common = options.common.prepare(NAME)?;
    let (_one, one) = start_backend(&common, "backend")?;
    let (_other, other) = start_backend(&common, "other-backend")?;
    let backends = [one, other];
    let mut gateways: Vec<(Contestant, Gateway)> = start_all(&Contestant::USUAL, &common, backends)?;
    if let Some(baseline) = &options.baseline {
        let common = Common { suimon: baseline.clone(), ..common.clone() };
        gateways.extend(start_all(&Contestant::OF_BASELINE, &common, backends)?);
    }
    let data = measure(&common, &options, &gateways)?;
    data::save(&common.out.join("data/result.json"), &data)?;
    draw(&common, &data)?;
    print!("{}{}", tables(&data), claims::text(&data.claims));
    Ok(claims::all_hold(&data.claims))
}

fn start_all(
    contestants: &[Contestant],
    common: &Common,
    backends: [SocketAddr; 2],
) -> Result<Vec<(Contestant, Gateway)>> {
    contestants.iter().map(|contestant| Ok((*contestant, contestant.start(common, backends)?))).collect()
}

fn start_backend(common: &Common, name: &str) -> Result<(Running, SocketAddr)> {
    let mut backend = own(common, name, &["proxy-cost-backend"])?;
    let said = |backend: &Running| listening_address(&backend.said());
    let address = backend.wait_for("line with its address", START_PATIENCE, said)?;
    Ok((backend, address))
}

/// Starts this program again with other arguments, on the load's core.
fn own(common: &Common, name: &str, words: &[impl ToString]) -> Result<Running> {
    let program = std::env::current_exe().trouble("this program cannot find itself")?;
    Ok(Program::new(name, program)
        .cores(&[common.load_core])
        .args(words.iter().map(ToString::to_string))
        .start(&common.scratch)?)
}

fn measure(common: &Common, options: &Options, gateways: &[(Contestant, Gateway)]) -> Result<Data> {
    let mut rng = Rng::stream(common.seed, 0);
    let mut rounds: Vec<Round> = Vec::new();
    // One round without counting: connections are made, memory is touched, limits are found.
    for (contestant, gateway) in gateways {
        play(common, options, 0, *contestant, gateway)?;
    }
    for round in 1..=options.rounds * ROUNDS_FACTOR {
        let mut order: Vec<&(Contestant, Gateway)> = gateways.iter().collect();
        shuffle(&mut rng, &mut order);
        for (contestant, gateway) in order {
            let played = play(common, options, round, *contestant, gateway)?;
            eprintln!(
                "round {round:>2}: {:<15} {:5.1} µs, {:6.0} requests/s{}",
                contestant.name(),
                played.cpu_us_per_request,
                played.load.requests_per_s(),
                if played.quiet { "" } else { " (not quiet)" }
            );
            rounds.push(played);
        }
        let quiet = |contestant| rounds.iter().filter(|r| r.proxy == contestant && r.quiet).count() as u32;
        if round >= options.rounds
            && gateways.iter().all(|(contestant, _)| quiet(*contestant) >= options.rounds)
        {
            break;
        }
    }
    let summaries: Vec<Summary> =
        gateways.iter().map(|(contestant, _)| summary(*contestant, &rounds, options.rounds)).collect();
    let claims = judge(&summaries, &rounds);
    Ok(Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        seed: common.seed,
        seconds: options.seconds,
        connections: options.connections,
        strangers: options.strangers,
        versions: contestants::versions(),
        rounds,
        summaries,
        claims,
    })
}

/// Puts them into a random order.
pub(crate) fn shuffle<T>(rng: &mut Rng, order: &mut [T]) {
    for last in (1..order.len()).rev() {
        order.swap(last, (rng.between(0.0, (last + 1) as f64) as usize).min(last));
    }
}

fn play(
    common: &Common,
    options: &Options,
    round: u32,
    proxy: Contestant,
    gateway: &Gateway,
) -> Result<Round> {
    let pid = gateway.pid().ok_or("has no process").trouble(proxy.name())?;
    let (cpu, core) = (threads_time(pid)?, CoreTimes::now(common.app_core)?);
    let load = put_under_load(common, options, gateway.address)?;
    let core = core.until(&CoreTimes::now(common.app_core)?);
    let cpu = threads_time(pid)?.saturating_sub(cpu).as_secs_f64();
    if load.requests == 0 {
        return failed(format!("{} answered nothing", proxy.name()));
    }
    let proxy_cpu_share = cpu / load.seconds;
    Ok(Round {
        round,
        proxy,
        cpu_us_per_request: cpu * 1e6 / load.requests as f64,
        proxy_cpu_share,
        proxy_core: core,
        quiet: core.foreign(proxy_cpu_share) <= FOREIGN_MAX,
        load,
    })
}

fn put_under_load(common: &Common, options: &Options, to: SocketAddr) -> Result<Load> {
    let load = LoadOptions {
        to,
        page: "/page".to_string(),
        body: backend::BODY_BYTES,
        seconds: options.seconds,
        connections: options.connections,
        strangers: options.strangers,
    };
    load.play(common)
}

fn summary(proxy: Contestant, rounds: &[Round], wanted: u32) -> Summary {
    let all: Vec<&Round> = rounds.iter().filter(|round| round.proxy == proxy).collect();
    let quiet: Vec<&Round> = all.iter().copied().filter(|round| round.quiet).collect();
    // Half of the wanted rounds are better than figures from a noisy machine.
    let only_quiet = quiet.len() * 2 >= wanted as usize;
    let counted = if only_quiet { quiet } else { all };
    let of = |value: &dyn Fn(&Round) -> f64| counted.iter().map(|round| value(round)).collect::<Vec<f64>>();
    let cost = of(&|round| round.cpu_us_per_request);
    let ratio_to = |other: Contestant| {
        let of_round = |round: u32| {
            rounds.iter().find(|r| r.round == round && r.proxy == other && (r.quiet || !only_quiet))
        };
        let ratios: Vec<f64> = counted
            .iter()
            .filter_map(|round| Some(round.cpu_us_per_request / of_round(round.round)?.cpu_us_per_request))
            .collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    };
    Summary {
        proxy,
        rounds: counted.len(),
        only_quiet,
        cpu_us_p25: quantile(&cost, 0.25),
        cpu_us_p50: median(&cost),
        cpu_us_p75: quantile(&cost, 0.75),
        requests_per_s_p50: median(&of(&|round| round.load.requests_per_s())),
        latency_p50_us: median(&of(&|round| round.load.latency_p50_us)),
        ratio_to_haproxy: ratio_to(Contestant::Haproxy).unwrap_or(f64::NAN),
        ratio_to_baseline: proxy.before().and_then(ratio_to),
    }
}

fn judge(summaries: &[Summary], rounds: &[Round]) -> Vec<Claim> {
    let of = |proxy| summaries.iter().find(|summary| summary.proxy == proxy);
    let ratio = of(Contestant::Suimon)
        .zip(of(Contestant::Haproxy))
        .map_or(f64::NAN, |(suimon, haproxy)| suimon.cpu_us_p50 / haproxy.cpu_us_p50);
    let errors: u64 = rounds.iter().map(|round| round.load.errors).sum();
    vec![
        Claim::new(
            format!(
                "a request through suimon costs at most {RATIO_MAX} times one through HAProxy: {ratio:.2}"
            ),
            ratio <= RATIO_MAX,
        ),
        Claim::new(
            format!("every request was answered with what was asked for: {errors} were not"),
            errors == 0,
        ),
    ]
}

fn tables(data: &Data) -> String {
    let headings = [
        "proxy",
        "µs per request",
        "middle half",
        "of HAProxy",
        "of baseline",
        "requests/s",
        "latency p50",
        "rounds",
    ];
    let row = |summary: &Summary| {
        vec![
            summary.proxy.name().to_string(),
            format!("{:.1}", summary.cpu_us_p50),
            format!("{:.1}-{:.1}", summary.cpu_us_p25, summary.cpu_us_p75),
            format!("{:.2}", summary.ratio_to_haproxy),
            summary.ratio_to_baseline.map_or("-".to_string(), |ratio| format!("{ratio:.3}")),
            format!("{:.0}", summary.requests_per_s_p50),
            format!("{:.0} µs", summary.latency_p50_us),
            format!("{}{}", summary.rounds, if summary.only_quiet { "" } else { ", not all quiet" }),
        ]
    };
    let rows: Vec<Vec<String>> = data.summaries.iter().map(row).collect();
    format!(
        "\nProcessor time per proxied request ({})\n{}",
        data.versions.join(", "),
        numbers(&headings, &rows)
    )
}

fn draw(common: &Common, data: &Data) -> Result<()> {
    let mut bars = Bars::new("Processor time per proxied request")
        .unit("µs")
        .group("cost", Hue::Blue)
        .describe("A bar for each proxy; HTTP/1.1, 1 KiB, keep-alive.");
    for summary in &data.summaries {
        bars = bars.row(summary.proxy.name(), vec![summary.cpu_us_p50]);
    }
    figures::write(Path::new(&common.out).join("figure.svg").as_path(), &[Panel::Bars(bars)])
}

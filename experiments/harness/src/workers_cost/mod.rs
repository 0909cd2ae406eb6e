//! `workers-cost`: processor time per request of Suimon before workers beside nginx: over FastCGI,
//! and over a Unix socket.
//!
//! All gateways run at the same time on one core, each with workers of its own, which share the
//! other core with the load. In each round each of them is loaded for a while, in random order, by
//! fewer connections than it has workers: a worker is free for each request, and only Suimon's gate
//! may hold one. The result is the processor time of the gateway's threads, by the scheduler's
//! nanosecond counters, divided by the number of answers.

mod contestants;
mod tell;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_model::Rng;
use suimon_statistics::{mean, median, quantile};

use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::cpu::{CoreTimes, CoreUse};
use crate::data;
use crate::machine::Machine;
use crate::proxy_cost::{Load, LoadOptions, shuffle};
use crate::trouble::{Result, Trouble, failed};
use crate::workers::{fpm_name, versions};
use crate::workspace::Workspace;
use contestants::{Contestant, Page, Place, Standing};

const NAME: &str = "workers-cost";
/// A round in which other processes used more than this share of the gateway's core does not count.
const FOREIGN_MAX: f64 = 0.15;
/// To get enough quiet rounds, at most so many more are played.
const ROUNDS_MORE: u32 = 4;

/// What does a request to PHP or Python cost the gateway, beside nginx before the same?
///
/// PHP over FastCGI: nginx before php-fpm, with a connection for each request and with kept ones;
/// Suimon before php-fpm, with its gates and without, and with a pool of php-cgi. Python over a Unix socket: nginx and Suimon
/// before gunicorn, and Suimon with a pool of gunicorn. Pages answer at once. Each gateway on one
/// core, load and workers on the other. It holds if Suimon costs at most 1.5 times as much as nginx.
/// Needs what ./scripts/setup --experiments installs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run workers-cost                       about 3 minutes on a quiet machine, 5 on one that is not
  ./experiments/run workers-cost --pages php --bytes 4096 --rounds 20

Rounds in which others had more than 15 % of the gateway's core are kept in the data but do not count.")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Which pages.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Page::Php, Page::Python])]
    pages: Vec<Page>,
    /// Sizes of an answer's body, bytes.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [4096, 65536],
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    bytes: Vec<u32>,
    /// Quiet rounds wanted.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=200))]
    rounds: u32,
    /// Length of a round for each gateway and size, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.2)]
    seconds: f64,
    /// Workers of each gateway.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: u32,
    /// Connections of the load.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=2000))]
    connections: u32,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    seconds: f64,
    connections: u32,
    workers: u32,
    /// Versions of the other programs.
    versions: Vec<String>,
    rounds: Vec<Round>,
    summaries: Vec<Summary>,
    claims: Vec<Claim>,
}

/// One gateway in one round, with one size of answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Round {
    round: u32,
    contestant: Contestant,
    bytes: u32,
    load: Load,
    /// Of the gateway's own process and its guardian, per request.
    cpu_us_per_request: f64,
    /// Of it, by what starts and watches the workers of a pool: their memory is looked at each
    /// second, however many requests there are.
    keeper_us_per_request: f64,
    /// Of the workers and what manages them, per request.
    workers_us_per_request: f64,
    gateway_cpu_share: f64,
    gateway_core: CoreUse,
    quiet: bool,
}

/// One gateway with one size of answers, over its quiet rounds; over all rounds if too few were
/// quiet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Summary {
    contestant: Contestant,
    bytes: u32,
    rounds: usize,
    only_quiet: bool,
    cpu_us_p25: f64,
    cpu_us_p50: f64,
    cpu_us_p75: f64,
    /// The mean: most rounds have no look at the workers' memory in them.
    keeper_us_mean: f64,
    workers_us_p50: f64,
    requests_per_s_p50: f64,
    latency_p50_us: f64,
    /// Its median ÷ that of nginx with a connection for each request.
    ratio_to_nginx: f64,
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
    let workspace = Workspace::open()?;
    let place = Place::new(&common, &workspace, options.workers)?;
    let contestants: Vec<Contestant> =
        options.pages.iter().flat_map(|page| page.contestants()).copied().collect();
    let standing: Vec<Standing> = contestants
        .iter()
        .enumerate()
        .map(|(number, contestant)| place.open(*contestant, number))
        .collect::<Result<_>>()?;
    let data = measure(&common, &options, &standing)?;
    data::save(&common.out.join("data/result.json"), &data)?;
    tell::draw(&data, &common.out.join("figure.svg"))?;
    print!("{}{}", tell::tables(&data), claims::text(&data.claims));
    Ok(common.quick || claims::all_hold(&data.claims))
}

fn measure(common: &Common, options: &Options, standing: &[Standing]) -> Result<Data> {
    let mut rng = Rng::stream(common.seed, 0);
    let mut cells: Vec<(&Standing, u32)> = standing
        .iter()
        .flat_map(|standing| options.bytes.iter().map(move |bytes| (standing, *bytes)))
        .collect();
    // One round without counting: workers have loaded their page, limits are found.
    for (standing, bytes) in &cells {
        play(common, options, 0, standing, *bytes)?;
    }
    let mut rounds: Vec<Round> = Vec::new();
    for round in 1..=options.rounds + ROUNDS_MORE {
        shuffle(&mut rng, &mut cells);
        for (standing, bytes) in &cells {
            let played = play(common, options, round, standing, *bytes)?;
            eprintln!(
                "round {round:>2}: {:<34} {:>6} bytes {:6.1} µs, workers {:6.1} µs, {:6.0} requests/s{}",
                played.contestant.name(),
                bytes,
                played.cpu_us_per_request,
                played.workers_us_per_request,
                played.load.requests_per_s(),
                if played.quiet { "" } else { " (not quiet)" }
            );
            rounds.push(played);
        }
        let quiet = |contestant, bytes| {
            let of_cell = |r: &&Round| r.contestant == contestant && r.bytes == bytes && r.quiet;
            rounds.iter().filter(of_cell).count() as u32
        };
        if cells.iter().all(|(standing, bytes)| quiet(standing.contestant, *bytes) >= options.rounds) {
            break;
        }
    }
    let of_all =
        standing.iter().flat_map(|standing| options.bytes.iter().map(move |bytes| (standing, bytes)));
    let mut summaries: Vec<Summary> = of_all
        .map(|(standing, bytes)| summary(standing.contestant, *bytes, &rounds, options.rounds))
        .collect();
    compare(&mut summaries);
    let fpm = fpm_name().unwrap_or_default();
    let programs = [("nginx", "-v"), (&fpm, "-v"), ("php-cgi", "-v"), ("gunicorn", "--version")];
    Ok(Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        seed: common.seed,
        seconds: options.seconds,
        connections: options.connections,
        workers: options.workers,
        versions: versions(&programs),
        claims: tell::judge(&summaries, &rounds),
        rounds,
        summaries,
    })
}

fn play(common: &Common, options: &Options, round: u32, standing: &Standing, bytes: u32) -> Result<Round> {
    let contestant = standing.contestant;
    let asks = LoadOptions {
        to: standing.address,
        page: contestant.page().target(bytes as usize),
        body: bytes as usize,
        seconds: options.seconds,
        connections: options.connections,
        strangers: false,
    };
    let (before, core) = (standing.used()?, CoreTimes::now(common.app_core)?);
    let load = asks.play(common)?;
    let core = core.until(&CoreTimes::now(common.app_core)?);
    let after = standing.used()?;
    if load.requests == 0 {
        return failed(format!("{} answered nothing", contestant.name()));
    }
    let gateway = after.gateway.saturating_sub(before.gateway).as_secs_f64();
    let per_request = |seconds: f64| seconds * 1e6 / load.requests as f64;
    let gateway_cpu_share = gateway / load.seconds;
    Ok(Round {
        round,
        contestant,
        bytes,
        cpu_us_per_request: per_request(gateway),
        keeper_us_per_request: per_request(after.keeper.saturating_sub(before.keeper).as_secs_f64()),
        workers_us_per_request: per_request(after.workers_since(&before).as_secs_f64()),
        gateway_cpu_share,
        gateway_core: core,
        quiet: core.foreign(gateway_cpu_share) <= FOREIGN_MAX,
        load,
    })
}

fn summary(contestant: Contestant, bytes: u32, rounds: &[Round], wanted: u32) -> Summary {
    let all: Vec<&Round> =
        rounds.iter().filter(|round| round.contestant == contestant && round.bytes == bytes).collect();
    let quiet: Vec<&Round> = all.iter().copied().filter(|round| round.quiet).collect();
    // Half of the wanted rounds are better than figures from a noisy machine.
    let only_quiet = quiet.len() * 2 >= wanted as usize;
    let counted = if only_quiet { quiet } else { all };
    let of = |value: &dyn Fn(&Round) -> f64| counted.iter().map(|round| value(round)).collect::<Vec<f64>>();
    let cost = of(&|round| round.cpu_us_per_request);
    Summary {
        contestant,
        bytes,
        rounds: counted.len(),
        only_quiet,
        cpu_us_p25: quantile(&cost, 0.25),
        cpu_us_p50: median(&cost),
        cpu_us_p75: quantile(&cost, 0.75),
        keeper_us_mean: mean(&of(&|round| round.keeper_us_per_request)),
        workers_us_p50: median(&of(&|round| round.workers_us_per_request)),
        requests_per_s_p50: median(&of(&|round| round.load.requests_per_s())),
        latency_p50_us: median(&of(&|round| round.load.latency_p50_us)),
        ratio_to_nginx: f64::NAN,
    }
}

/// Sets the ratios: to the first contestant before the same page.
fn compare(summaries: &mut [Summary]) {
    let costs: Vec<(Contestant, u32, f64)> =
        summaries.iter().map(|summary| (summary.contestant, summary.bytes, summary.cpu_us_p50)).collect();
    for summary in summaries {
        let nginx = summary.contestant.page().contestants()[0];
        let of_nginx =
            costs.iter().find(|(contestant, bytes, _)| *contestant == nginx && *bytes == summary.bytes);
        summary.ratio_to_nginx = of_nginx.map_or(f64::NAN, |(.., cost)| summary.cpu_us_p50 / cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(contestant: Contestant, cost: f64, quiet: bool) -> Round {
        Round {
            round: 1,
            contestant,
            bytes: 4096,
            load: Load::default(),
            cpu_us_per_request: cost,
            keeper_us_per_request: 0.0,
            workers_us_per_request: 100.0,
            gateway_cpu_share: 0.1,
            gateway_core: CoreUse { busy: 0.1, stolen: 0.0 },
            quiet,
        }
    }

    #[test]
    fn costs_are_compared_with_those_of_nginx_before_the_same_page() {
        let (nginx, kept, ours) = (Contestant::NginxFpm, Contestant::NginxFpmKept, Contestant::SuimonPhpPool);
        let rounds = [
            round(nginx, 40.0, true),
            round(kept, 20.0, true),
            round(ours, 50.0, true),
            round(ours, 900.0, false),
            round(Contestant::NginxGunicorn, 10.0, true),
        ];
        let mut summaries =
            [nginx, kept, ours, Contestant::SuimonGunicorn].map(|one| summary(one, 4096, &rounds, 1));
        compare(&mut summaries);
        let ratios = summaries.map(|summary| summary.ratio_to_nginx);
        assert_eq!(ratios[..3], [1.0, 0.5, 1.25], "what was not quiet does not count");
        assert!(ratios[3].is_nan(), "nothing to compare with was measured");
    }
}

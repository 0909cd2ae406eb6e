//! `waiting-cost`: what visitors in line cost: a ticket issued, a poll, a poll that comes too
//! early, and a million of them in memory.
//!
//! The application never answers, so that one session takes the only place and all other visitors
//! wait. The gateway has a core of its own; its processor time is what the kernel counts for its
//! process.

mod asks;

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Axis, Hue, Plot, Rule, Series};

use crate::apps;
use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::cpu::process_time;
use crate::data;
use crate::figures::{self, Panel};
use crate::gateways::{Gateway, start_suimon};
use crate::machine::Machine;
use crate::memory::{Stage, memory};
use crate::trouble::{Result, While, failed};

use asks::{Answers, Ask, Asker};
use suimon_statistics::median;
use suimon_statistics::table::numbers;

const NAME: &str = "waiting-cost";
/// Polls per second that one core must answer.
const POLLS_MIN: f64 = 20_000.0;
/// The most memory for a million waiting visitors, MB (1024² bytes).
const MEGABYTES_MAX: f64 = 16.0;
/// Connections, kept alive.
const CONNECTIONS: usize = 32;
/// Whole pages that are requested; the other tickets come with the JSON form.
const PAGES: u32 = 10_000;
/// People come in this many stages: they get tickets, and poll for the first time.
const STAGES: u32 = 10;
/// After this time no poll is too early, as the answers give whole seconds.
const NOT_EARLY: Duration = Duration::from_secs(2);
/// How many clients poll again at once, over and over.
const EARLY: usize = 500;
/// The longest time until the first request is in the application.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval at which the gateway's state is read meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// What do visitors in line cost: a ticket issued, a poll, a poll that comes too early, and a
/// million of them in memory?
///
/// HTTP/1.1 over kept-alive connections. It holds if one core answers at least 20,000 polls per
/// second, and a million waiting visitors take at most 16 MB.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run waiting-cost                    some three minutes
  ./experiments/run waiting-cost --people 50000")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// People who wait.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..=4_000_000))]
    people: u32,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    people: u32,
    /// Memory without waiting visitors, and with more and more of them.
    stages: Vec<Stage>,
    /// Anonymous memory for all of them, MB (1024² bytes).
    megabytes: f64,
    /// Processor time of the gateway, microseconds: for a whole page with a ticket, and for the
    /// JSON form with a ticket.
    page_us: f64,
    draw_us: f64,
    /// For a poll, by stages; how many of these polls were told to go on waiting; and for a poll
    /// that comes too early.
    polls_us: Vec<f64>,
    polls_told_to_wait: u64,
    early_us: f64,
    claims: Vec<Claim>,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(mut options: Options) -> Result<bool> {
    if options.common.quick {
        options.people = options.people.min(20_000);
    }
    let common = options.common.prepare(NAME)?;
    let backend = apps::silent()?;
    let gateway = start_suimon(&common, &common.scratch, backend, Some(SETTINGS), common.app_core)?;
    let data = measure(&common, &gateway, options.people)?;
    data::save(&common.out.join("data/result.json"), &data)?;
    draw(&common, &data)?;
    print!("{}{}", tables(&data), claims::text(&data.claims));
    Ok(common.quick || claims::all_hold(&data.claims))
}

/// One session at once, so that all visitors after the first wait; and the longest possible time to
/// the first byte.
const SETTINGS: &str = "[gate]\nsession_law = \"static\"\nstatic_sessions = 1\n\n[discovery]\nmode = \"off\"\n\n[timeouts]\nfirst_byte = \"1h\"\n\n\
     [[session]]\nkind = \"visit\"\nwaiting_room = true\nhold = \"100ms\"\n";

fn measure(common: &Common, gateway: &Gateway, people: u32) -> Result<Data> {
    let pid = gateway.pid().ok_or("has no process").trouble("the gateway")?;
    let _inside = take_the_only_place(gateway)?;
    let asker = Asker::new(gateway.address, CONNECTIONS);
    let mut stages = vec![Stage { waiting: 0, memory: memory(pid)? }];
    let mut draws_us = Vec::new();
    let mut polls_us = Vec::new();
    let mut waiting = 0;
    let mut newest = Vec::new();
    let each = people / STAGES;
    for stage in 1..=STAGES {
        let drawn = cost(&asker, pid, (0..each).map(|_| Ask::Draw), 503)?;
        draws_us.push(drawn.us);
        // A client that polls sooner is too early; one that polls much later counts as gone.
        thread::sleep(NOT_EARLY);
        let polled = cost(&asker, pid, drawn.answers.tickets.into_iter().map(Ask::Poll), 200)?;
        polls_us.push(polled.us);
        waiting += polled.answers.waiting;
        newest = polled.answers.tickets;
        stages.push(Stage { waiting: stage * each, memory: memory(pid)? });
        eprintln!("  {} wait", stage * each);
    }
    // Clients that just got an answer poll again at once.
    let newest = newest.split_off(newest.len().saturating_sub(EARLY));
    let again = newest.iter().cycle().take(each as usize / 4).cloned().map(Ask::Poll);
    let early = cost(&asker, pid, again, 429)?;
    let page = cost(&asker, pid, (0..each.min(PAGES)).map(|_| Ask::Page), 503)?;
    let (first, last) = (stages[0].memory, memory(pid)?);
    let megabytes = last.anonymous_kb.saturating_sub(first.anonymous_kb) as f64 / 1024.0;
    let per_second = 1e6 / median(&polls_us);
    let claims = vec![
        Claim::new(
            format!("one core answers at least {POLLS_MIN:.0} polls a second: {per_second:.0}"),
            per_second >= POLLS_MIN,
        ),
        Claim::new(
            format!("nearly all of these were told to wait on: {waiting} of {people}"),
            waiting >= u64::from(people) * 99 / 100,
        ),
        Claim::new(
            format!("{people} who wait take at most {MEGABYTES_MAX:.0} MB: {megabytes:.1} MB"),
            megabytes <= MEGABYTES_MAX,
        ),
    ];
    Ok(Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        people,
        stages,
        megabytes,
        page_us: page.us,
        draw_us: median(&draws_us),
        polls_us,
        polls_told_to_wait: waiting,
        early_us: early.us,
        claims,
    })
}

/// The cost of some requests.
struct Cost {
    /// Processor time of the gateway for each, microseconds.
    us: f64,
    answers: Answers,
}

/// Sends all of `asks`; every status must be `wanted`.
fn cost(asker: &Asker, pid: u32, asks: impl Iterator<Item = Ask>, wanted: u16) -> Result<Cost> {
    let before = process_time(pid)?;
    let answers = asker.ask(asks, wanted)?;
    let used = process_time(pid)?.saturating_sub(before).as_secs_f64();
    Ok(Cost { us: 1e6 * used / answers.count.max(1) as f64, answers })
}

/// Begins the only possible session, with a request that is never answered.
fn take_the_only_place(gateway: &Gateway) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(gateway.address).trouble("the gateway")?;
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\nAccept: text/html\r\n\r\n", gateway.address);
    stream.write_all(request.as_bytes()).trouble("the gateway")?;
    let deadline = Instant::now() + PATIENCE;
    while gateway.state().is_none_or(|state| state.totals.in_flight != 1) {
        if Instant::now() >= deadline {
            return failed(format!(
                "the first request was not in the application within {} s",
                PATIENCE.as_secs()
            ));
        }
        thread::sleep(ASK_EVERY);
    }
    Ok(stream)
}

fn tables(data: &Data) -> String {
    let row = |stage: &Stage| {
        let anonymous = stage.memory.anonymous_kb as f64 / 1024.0;
        vec![stage.waiting.to_string(), format!("{anonymous:.1}")]
    };
    let rows: Vec<Vec<String>> = data.stages.iter().map(row).collect();
    let costs = [
        ("a whole page with a number", data.page_us),
        ("the twin with a number", data.draw_us),
        ("a poll", median(&data.polls_us)),
        ("a poll that comes too early", data.early_us),
    ];
    let costs =
        costs.map(|(what, us)| vec![what.to_string(), format!("{us:.1}"), format!("{:.0}", 1e6 / us)]);
    format!(
        "\nMemory of the gateway\n{}\nProcessor time of the gateway\n{}",
        numbers(&["waiting", "anonymous MB"], &rows),
        numbers(&["for", "µs", "a second and core"], &costs)
    )
}

fn draw(common: &Common, data: &Data) -> Result<()> {
    let megabytes = |stage: &Stage| stage.memory.anonymous_kb as f64 / 1024.0;
    let points =
        data.stages.iter().map(|stage| (f64::from(stage.waiting) / 1000.0, megabytes(stage))).collect();
    let plot = Plot::new("Memory of the gateway, by people who wait in line")
        .x(Axis::new("thousands of people in line").from(0.0))
        .y(Axis::new("MB").from(0.0))
        .series(Series::dotted("anonymous", Hue::Blue, points))
        .rule(Rule::new(megabytes(&data.stages[0]) + MEGABYTES_MAX, "16 MB more"))
        .describe("Memory by the number of people who hold a place.");
    figures::write(&common.out.join("figure.svg"), &[Panel::Lines(plot, 340.0)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_settings_are_ones_suimon_understands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.toml");
        fs::write(&path, SETTINGS).unwrap();
        suimon_settings::Settings::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
    }
}

//! `waiting-memory`: what a waiting client costs, and how soon its disconnect is noticed.
//!
//! A request that is never answered takes the route's only slot; all other requests wait in its
//! queue. Memory is what the kernel counts for the gateway's process, without socket buffers, which
//! are the kernel's own.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Axis, Hue, Plot, Rule, Series};
use suimon_statistics::table::numbers;

use crate::apps;
use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::data;
use crate::figures::{self, Panel};
use crate::gateways::{Gateway, start_suimon};
use crate::machine::Machine;
use crate::memory::{Memory, Stage, memory};
use crate::trouble::{Result, Trouble, While, failed};

const NAME: &str = "waiting-memory";
/// The most memory a waiting client may take.
const KB_EACH_MAX: f64 = 20.0;
/// Descriptors that this process needs beside its clients.
const DESCRIPTORS_BESIDE: u32 = 200;
/// Memory is read at this many numbers of clients.
const STAGES: u32 = 6;
/// How long the gateway may take to hold the clients, or to notice that they have left.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval at which the gateway is asked how many requests wait.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// How much memory does a waiting client take at the gate, and how soon is its disconnect noticed?
///
/// HTTP/1.1, a connection each, and a descriptor each. It holds if each takes at most 20 KB.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run waiting-memory                   about 20 seconds
  ./experiments/run waiting-memory --clients 1000")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Clients held waiting.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=19_000))]
    clients: u32,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    clients: u32,
    /// Memory without waiting clients, and with more and more of them.
    stages: Vec<Stage>,
    /// Anonymous memory each, KB (1024 bytes): what was added ÷ clients.
    anonymous_kb_each: f64,
    /// The same of all resident memory.
    resident_kb_each: f64,
    /// From the moment at which all connections were closed until no request waited, seconds.
    noticed_within_s: f64,
    /// The part of that time that closing them took, seconds.
    closing_took_s: f64,
    /// Memory after all that.
    after: Memory,
    claims: Vec<Claim>,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(mut options: Options) -> Result<bool> {
    if options.common.quick {
        options.clients = options.clients.min(600);
    }
    let common = options.common.prepare(NAME)?;
    allow_descriptors(options.clients + DESCRIPTORS_BESIDE)?;
    let backend = apps::silent()?;
    let settings = settings(options.clients);
    let gateway = start_suimon(&common, &common.scratch, backend, Some(&settings), common.app_core)?;
    let data = measure(&common, &gateway, options.clients)?;
    data::save(&common.out.join("data/result.json"), &data)?;
    draw(&common, &data)?;
    print!("{}{}", tables(&data), claims::text(&data.claims));
    Ok(claims::all_hold(&data.claims))
}

/// One slot, taken by a request that is never answered; all other requests wait in the route's
/// queue for the whole run. (At the session gate they would be refused at once: nobody can predict
/// when that one place becomes free.)
fn settings(clients: u32) -> String {
    let room = clients + 100;
    format!(
        "[gate]\nsession_law = \"open\"\nwaiting_max = {room}\npatience = \"1h\"\n\n[discovery]\nmode = 1\n\n\
         [limits]\nconnections = {room}\n\n[timeouts]\nfirst_byte = \"1h\"\n"
    )
}

fn measure(common: &Common, gateway: &Gateway, clients: u32) -> Result<Data> {
    let pid = gateway.pid().ok_or("has no process").trouble("the gateway")?;
    // The request that takes the slot; it stays until the end.
    let inside = ask(gateway.address, clients)?;
    wait_until(gateway, "the first request is in the application", |state| state.totals.in_flight == 1)?;
    let mut stages = vec![Stage { waiting: 0, memory: memory(pid)? }];
    let mut waiting = Vec::with_capacity(clients as usize);
    for stage in 1..=STAGES {
        let wanted = clients * stage / STAGES;
        while (waiting.len() as u32) < wanted {
            waiting.push(ask(gateway.address, waiting.len() as u32)?);
        }
        let what = format!("{wanted} clients wait");
        wait_until(gateway, &what, |state| state.totals.waiting() >= wanted as usize)?;
        stages.push(Stage { waiting: wanted, memory: memory(pid)? });
        eprintln!("{what}");
    }
    let began = Instant::now();
    drop(waiting);
    let closing_took_s = began.elapsed().as_secs_f64();
    wait_until(gateway, "nobody waits any more", |state| state.totals.waiting() == 0)?;
    let noticed_within_s = began.elapsed().as_secs_f64();
    drop(inside);
    let after = memory(pid)?;
    let (first, last) = (stages[0].memory, stages[stages.len() - 1].memory);
    let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / f64::from(clients);
    let anonymous_kb_each = each(first.anonymous_kb, last.anonymous_kb);
    let claims = vec![
        Claim::new(
            format!(
                "{clients} clients wait with at most {KB_EACH_MAX:.0} KB each: {anonymous_kb_each:.1} KB"
            ),
            anonymous_kb_each <= KB_EACH_MAX,
        ),
        Claim::new(
            format!(
                "their leaving is noticed within a second of the last: {:.2} s",
                noticed_within_s - closing_took_s
            ),
            noticed_within_s - closing_took_s <= 1.0,
        ),
    ];
    Ok(Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        clients,
        resident_kb_each: each(first.resident_kb, last.resident_kb),
        stages,
        anonymous_kb_each,
        noticed_within_s,
        closing_took_s,
        after,
        claims,
    })
}

fn wait_until(
    gateway: &Gateway,
    what: &str,
    mut holds: impl FnMut(&suimon_admin::State) -> bool,
) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let state = gateway.state();
        if state.as_ref().is_some_and(&mut holds) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let how = state.map_or("it does not answer".to_string(), |state| {
                let refused: u64 = state.refusals.iter().map(|reason| reason.count).sum();
                let totals = state.totals;
                format!(
                    "{} wait, {} are in the application, {refused} were refused",
                    totals.waiting(),
                    totals.in_flight
                )
            });
            return failed(format!("not within {} s: {what}; {how}", PATIENCE.as_secs()));
        }
        thread::sleep(ASK_EVERY);
    }
}

/// Connects and sends a request as a browser would, but does not read.
fn ask(to: SocketAddr, number: u32) -> Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE).trouble(format!("client {number}"))?;
    let request = format!(
        "GET /catalogue/page?number={number} HTTP/1.1\r\nHost: {to}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n\
         Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en\r\nAccept-Encoding: gzip\r\n\
         Cookie: theme=dark; visitor={number:08x}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).trouble(format!("client {number}"))?;
    Ok(stream)
}

fn allow_descriptors(count: u32) -> Result<()> {
    suimon_process::allow_descriptors(count).map_err(|_| {
        Trouble::Usage(format!(
            "{count} descriptors cannot be had here (ulimit -Hn tells how many): name fewer --clients"
        ))
    })
}

fn tables(data: &Data) -> String {
    let row = |stage: &Stage| {
        vec![
            stage.waiting.to_string(),
            stage.memory.anonymous_kb.to_string(),
            stage.memory.resident_kb.to_string(),
        ]
    };
    let mut rows: Vec<Vec<String>> = data.stages.iter().map(row).collect();
    rows.push(vec![
        "all left".to_string(),
        data.after.anonymous_kb.to_string(),
        data.after.resident_kb.to_string(),
    ]);
    format!(
        "\nMemory of the gateway, KB\n{}\n  each waiting client: {:.1} KB anonymous, {:.1} KB resident\n  \
         all gone noticed {:.2} s after the first left; closing them took {:.2} s of that\n",
        numbers(&["waiting", "anonymous", "resident"], &rows),
        data.anonymous_kb_each,
        data.resident_kb_each,
        data.noticed_within_s,
        data.closing_took_s
    )
}

fn draw(common: &Common, data: &Data) -> Result<()> {
    let points = |kb: fn(&Memory) -> u64| {
        data.stages
            .iter()
            .map(|stage| (f64::from(stage.waiting), kb(&stage.memory) as f64 / 1024.0))
            .collect()
    };
    let allowed =
        data.stages[0].memory.anonymous_kb as f64 / 1024.0 + f64::from(data.clients) * KB_EACH_MAX / 1024.0;
    let plot = Plot::new("Memory of the gateway, by clients held waiting")
        .x(Axis::new("clients waiting").from(0.0))
        .y(Axis::new("MB").from(0.0))
        .series(Series::dotted("resident", Hue::Grey, points(|memory| memory.resident_kb)))
        .series(Series::dotted("anonymous", Hue::Blue, points(|memory| memory.anonymous_kb)))
        .rule(Rule::new(allowed, &format!("{KB_EACH_MAX:.0} KB each")))
        .describe("Memory grows in a straight line with the clients that wait.");
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
        fs::write(&path, settings(9000)).unwrap();
        suimon_settings::Settings::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
    }
}

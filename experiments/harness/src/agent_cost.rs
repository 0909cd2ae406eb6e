//! `agent-cost`: what load reports cost a gateway, genuine ones and others.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_agent::datagram::{Load, Report};
use suimon_agent::keyring::{Keyring, file_text};
use suimon_process::{Program, free_address};
use suimon_statistics::median;

use crate::claims::{self, Claim};
use crate::common::CommonOptions;
use crate::cpu::threads_time;
use crate::gateways::START_PATIENCE;
use crate::machine::Machine;
use crate::trouble::{Result, Trouble, While};
use crate::{data, http};

const NAME: &str = "agent-cost";
const NODES: usize = 25;
/// Time between two reports of a node, and how many each sends in a play.
const EVERY: Duration = Duration::from_millis(10);
/// Bytes of a datagram that is too long.
const OVERSIZED: usize = 2000;

/// What do load reports cost a gateway?
///
/// 25 nodes send 100 reports per second each to one gateway that serves nobody: none, genuine ones, forged,
/// replayed, old, oversized and malformed ones, at the same rate. It holds if every datagram is counted as
/// what it is, and if none but the genuine ones are believed.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Rounds; each plays every kind once.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    None,
    Genuine,
    Forged,
    Replayed,
    Old,
    Oversized,
    Malformed,
}

impl Kind {
    const ALL: [(Kind, &'static str); 7] = [
        (Kind::None, ""),
        (Kind::Genuine, "accepted"),
        (Kind::Forged, "bad_mac"),
        (Kind::Replayed, "replayed"),
        (Kind::Old, "old_boot"),
        (Kind::Oversized, "too_long"),
        (Kind::Malformed, "bad_magic"),
    ];
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    nodes: usize,
    plays: Vec<Play>,
    claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Play {
    kind: Kind,
    sent: u64,
    sent_per_s: f64,
    /// How many were counted as what they are, and as accepted.
    counted: u64,
    accepted: u64,
    /// The gateway's CPU time ÷ time.
    cpu_share: f64,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let (rounds, seconds) = if common.quick { (1, 1) } else { (options.rounds, 5) };
    let keys_file = common.scratch.join("agent.keys");
    let text = file_text(1, &[7; 32]);
    // The gateway refuses a file that others could read.
    fs::write(&keys_file, &text).trouble(keys_file.display())?;
    restrict(&keys_file)?;
    let ring = Keyring::parse(&text).map_err(|_| Trouble::Failed("the key is not one".to_owned()))?;
    let (listen, admin, reports) = (free_address()?, free_address()?, free_address()?);
    let names: Vec<String> = (1..=NODES).map(|at| format!("http://127.0.0.2:{}", 20_000 + at)).collect();
    let settings = format!(
        "[upstream]\nnodes = {names:?}\nbalance = \"reported\"\n[upstream.health]\ninterval = \"0s\"\n\
         [upstream.load_reports]\nlisten = \"{reports}\"\nkeys = {:?}\n",
        keys_file.display().to_string()
    );
    let path = common.scratch.join("gateway.toml");
    fs::write(&path, settings).trouble(path.display())?;
    let mut gateway = Program::new("gateway", &common.suimon)
        .cores(&[common.app_core])
        .args(["serve", "--lease-keys", "none", "--learned", "none", "--config", &path.to_string_lossy()])
        .args(["--listen".to_owned(), listen.to_string(), "--admin".to_owned(), admin.to_string()])
        .env("STATE_DIRECTORY", &common.scratch)
        .start(&common.scratch)?;
    gateway.wait_for_listener(admin, START_PATIENCE)?;
    let mut agents =
        Agents { names, ring, boot_us: now_us(), began: Instant::now(), sequence: 0, to: reports };
    let mut plays = Vec::new();
    for _ in 0..rounds {
        for (kind, result) in Kind::ALL {
            let play = play(&mut agents, (kind, result), admin, gateway.pid(), Duration::from_secs(seconds))?;
            eprintln!("{kind:?}: {:.4} of a core", play.cpu_share);
            plays.push(play);
        }
    }
    let mut data = Data {
        experiment: NAME.to_owned(),
        machine: common.machine.clone(),
        nodes: NODES,
        plays,
        claims: Vec::new(),
    };
    data.claims = judge(&data);
    data::save(&common.out.join("data/result.json"), &data)?;
    print!("{}{}", table(&data), claims::text(&data.claims));
    Ok(common.quick || claims::all_hold(&data.claims))
}

fn restrict(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).trouble(path.display())
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_micros() as u64)
}

/// The agents of all nodes.
struct Agents {
    names: Vec<String>,
    ring: Keyring,
    boot_us: u64,
    began: Instant,
    sequence: u64,
    to: SocketAddr,
}

impl Agents {
    fn datagram(&self, node: usize, kind: Kind) -> Result<Vec<u8>> {
        let since_us = self.began.elapsed().as_micros() as u64;
        let report = Report {
            name: self.names[node].clone(),
            // An old one is of an earlier run of the agent.
            boot_us: if kind == Kind::Old { self.boot_us - 60_000_000 } else { self.boot_us },
            // A replayed one has the number of one that was sent.
            sequence: self.sequence,
            since_boot: Duration::from_micros(since_us),
            clock_us: self.boot_us + since_us,
            load: Load {
                every: EVERY,
                run_queue: 2,
                mean_100ms_milli: 2000,
                mean_1s_milli: 2000,
                pressure: None,
                in_flight: None,
                processors: 2,
            },
        };
        let mut bytes =
            report.encode(&self.ring).map_err(|_| Trouble::Failed("a report is out of range".to_owned()))?;
        match kind {
            Kind::Forged => {
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                }
            }
            Kind::Oversized => bytes.resize(OVERSIZED, 0),
            Kind::Malformed => bytes[0] ^= 0xff,
            Kind::None | Kind::Genuine | Kind::Replayed | Kind::Old => {}
        }
        Ok(bytes)
    }
}

fn counted(admin: SocketAddr, result: &str) -> Result<u64> {
    let answer = http::get(admin, "/metrics", Duration::from_secs(5))?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let begins = format!("suimon_agent_datagrams_total{{result=\"{result}\"}} ");
    let found = text.lines().find_map(|line| line.strip_prefix(&begins)?.trim().parse::<f64>().ok());
    Ok(found.unwrap_or_default() as u64)
}

fn play(
    agents: &mut Agents,
    (kind, result): (Kind, &str),
    admin: SocketAddr,
    gateway: u32,
    lasts: Duration,
) -> Result<Play> {
    let socket = UdpSocket::bind("127.0.0.1:0").trouble("a socket")?;
    if kind == Kind::Genuine {
        agents.sequence += 1;
    }
    let before = [counted(admin, result)?, counted(admin, "accepted")?];
    let (cpu, began) = (threads_time(gateway)?, Instant::now());
    let mut sent = 0;
    let mut turn = 0;
    while began.elapsed() < lasts {
        if kind != Kind::None {
            agents.sequence += u64::from(kind == Kind::Genuine);
            for node in 0..NODES {
                let bytes = agents.datagram(node, kind)?;
                sent += u64::from(socket.send_to(&bytes, agents.to).is_ok());
            }
        }
        turn += 1;
        thread::sleep((EVERY * turn).saturating_sub(began.elapsed()));
    }
    let seconds = began.elapsed().as_secs_f64();
    let used = threads_time(gateway)?.saturating_sub(cpu).as_secs_f64();
    let after = [counted(admin, result)?, counted(admin, "accepted")?];
    Ok(Play {
        kind,
        sent,
        sent_per_s: sent as f64 / seconds,
        counted: after[0] - before[0],
        accepted: after[1] - before[1],
        cpu_share: used / seconds,
    })
}

fn share(data: &Data, kind: Kind) -> f64 {
    let of: Vec<f64> =
        data.plays.iter().filter(|play| play.kind == kind).map(|play| play.cpu_share).collect();
    median(&of)
}

fn judge(data: &Data) -> Vec<Claim> {
    let sum = |kind: Kind, of: fn(&Play) -> u64| -> u64 {
        data.plays.iter().filter(|play| play.kind == kind).map(of).sum()
    };
    let kinds = Kind::ALL.iter().filter(|(kind, _)| *kind != Kind::None);
    kinds
        .map(|(kind, result)| {
            let (sent, counted) = (sum(*kind, |play| play.sent), sum(*kind, |play| play.counted));
            let accepted = if *kind == Kind::Genuine { 0 } else { sum(*kind, |play| play.accepted) };
            Claim::new(
                format!("{kind:?}: all are counted as {result}, and none else is believed: {counted} of {sent}, {accepted} believed"),
                counted == sent && accepted == 0,
            )
        })
        .collect()
}

fn table(data: &Data) -> String {
    let mut out = format!(
        "\n{} nodes; median of all rounds\n\n| reports | per second | of a core | beyond none | µs each |\n|---|--:|--:|--:|--:|\n",
        data.nodes
    );
    let idle = share(data, Kind::None);
    for (kind, _) in Kind::ALL {
        let rates: Vec<f64> =
            data.plays.iter().filter(|it| it.kind == kind).map(|it| it.sent_per_s).collect();
        let (rate, used) = (median(&rates), share(data, kind));
        let each = if rate > 0.0 { format!("{:.1}", (used - idle) / rate * 1e6) } else { "-".to_owned() };
        out += &format!("| {kind:?} | {rate:.0} | {used:.4} | {:.4} | {each} |\n", used - idle);
    }
    out
}

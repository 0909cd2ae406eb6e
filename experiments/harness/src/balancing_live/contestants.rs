//! Who chooses the node of a request.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_process::{Program, Running, free_address};

use crate::common::Common;
use crate::gateways::{Gateway, HAPROXY, start_configured, start_haproxy};
use crate::lab_nodes::LabNode;
use crate::trouble::{Result, While};

/// How long an agent may take to begin.
const AGENT_PATIENCE: Duration = Duration::from_secs(20);

/// A way of choosing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Contestant {
    /// Suimon: shares, which it learns.
    Shares,
    /// Suimon, by what agents report every ten milliseconds.
    Fresh,
    /// The same, every second.
    Old,
    /// HAProxy, one node after the other.
    RoundRobin,
    /// HAProxy, the node with the fewest connections.
    LeastConn,
    /// HAProxy, of two random nodes the one with fewer connections.
    TwoRandom,
    /// HAProxy with the fewest connections, and told how many requests each node serves at once.
    LeastConnTold,
}

impl Contestant {
    pub(super) const ALL: [Contestant; 7] = [
        Contestant::Shares,
        Contestant::Fresh,
        Contestant::Old,
        Contestant::RoundRobin,
        Contestant::LeastConn,
        Contestant::TwoRandom,
        Contestant::LeastConnTold,
    ];
    /// Those that are compared under full load.
    pub(super) const FULL: [Contestant; 5] = [
        Contestant::Shares,
        Contestant::RoundRobin,
        Contestant::LeastConn,
        Contestant::TwoRandom,
        Contestant::LeastConnTold,
    ];
    /// Those that are compared where there is some room.
    pub(super) const REPORTS: [Contestant; 3] = [Contestant::Shares, Contestant::Fresh, Contestant::Old];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Contestant::Shares => "suimon",
            Contestant::Fresh => "suimon, reports every 10 ms",
            Contestant::Old => "suimon, reports every 1 s",
            Contestant::RoundRobin => "haproxy roundrobin",
            Contestant::LeastConn => "haproxy leastconn",
            Contestant::TwoRandom => "haproxy random(2)",
            Contestant::LeastConnTold => "haproxy leastconn, maxconn told",
        }
    }

    pub(super) const fn is_suimon(self) -> bool {
        matches!(self, Contestant::Shares | Contestant::Fresh | Contestant::Old)
    }

    /// Returns the time between two reports.
    const fn reports_every(self) -> Option<&'static str> {
        match self {
            Contestant::Fresh => Some("10ms"),
            Contestant::Old => Some("1s"),
            _ => None,
        }
    }

    /// Starts it in front of the nodes, on the load's core; the agents on that of the nodes.
    pub(super) fn start(self, common: &Common, folder: &Path, nodes: &[(LabNode, u32)]) -> Result<Standing> {
        fs::create_dir_all(folder).trouble(folder.display())?;
        let balance = match self {
            Contestant::Shares | Contestant::Fresh | Contestant::Old => {
                return self.start_suimon(common, folder, nodes);
            }
            Contestant::RoundRobin => "roundrobin",
            Contestant::TwoRandom => "random(2)",
            Contestant::LeastConn | Contestant::LeastConnTold => "leastconn",
        };
        let is_told = self == Contestant::LeastConnTold;
        let servers: String = nodes
            .iter()
            .enumerate()
            .map(|(at, (node, slots))| {
                let told = if is_told { format!(" maxconn {slots}") } else { String::new() };
                format!("    server node{at} {}{told}\n", node.address)
            })
            .collect();
        let gateway = start_haproxy(folder, common.load_core, |listen| haproxy(listen, balance, &servers))?;
        Ok(Standing { contestant: self, gateway, folder: folder.to_owned(), agents: Vec::new() })
    }

    fn start_suimon(self, common: &Common, folder: &Path, nodes: &[(LabNode, u32)]) -> Result<Standing> {
        let addresses: Vec<String> =
            nodes.iter().map(|(node, _)| format!("http://{}", node.address)).collect();
        // Only the choice of a node is compared: nobody waits in line, or is held back at the door. As
        // the others, it is told how long visitors wait.
        let patience = super::PATIENCE_S;
        let mut settings = format!(
            "[gate]\nsession_law = \"open\"\npatience = \"{patience}s\"\n\n[upstream]\nnodes = {addresses:?}\n"
        );
        let reports = free_address()?;
        let keys = folder.join("agent.keys");
        if self.reports_every().is_some() {
            make_keys(common, folder, &keys)?;
            settings += &format!(
                "balance = \"reported\"\n\n[upstream.load_reports]\nlisten = \"{reports}\"\nkeys = {:?}\n",
                keys.display().to_string()
            );
        }
        let gateway = start_configured(common, folder, &settings, &[common.load_core], None, None)?;
        let mut standing =
            Standing { contestant: self, gateway, folder: folder.to_owned(), agents: Vec::new() };
        let Some(every) = self.reports_every() else { return Ok(standing) };
        let agents = nodes.iter().zip(&addresses).enumerate().map(|(at, ((node, slots), name))| {
            let mut agent = Program::new(format!("agent{at}"), &common.suimon)
                .cores(&[common.app_core])
                .args(["agent", "--node", name, "--to", &reports.to_string(), "--every", every])
                .args(["--keys".to_owned(), keys.display().to_string()])
                .args(["--proc".to_owned(), node.proc.display().to_string()])
                .args(["--processors".to_owned(), slots.to_string()])
                .start(folder)?;
            agent.wait_for("word of reporting", AGENT_PATIENCE, |agent| {
                (agent.said() + &agent.complained()).contains("reports the load").then_some(())
            })?;
            Ok(agent)
        });
        standing.agents = agents.collect::<Result<Vec<Running>>>()?;
        Ok(standing)
    }
}

/// A contestant that listens, with its agents.
pub(super) struct Standing {
    pub(super) contestant: Contestant,
    pub(super) gateway: Gateway,
    /// For what it and its crowds write.
    pub(super) folder: PathBuf,
    #[allow(dead_code, reason = "they report for as long as it stands")]
    agents: Vec<Running>,
}

fn make_keys(common: &Common, folder: &Path, keys: &Path) -> Result<()> {
    // Of an earlier run; a key is never written over.
    let _ = fs::remove_file(keys);
    let mut made = Program::new("keys", &common.suimon)
        .cores(&[common.load_core])
        .args(["agent", "--new-key", &keys.to_string_lossy()])
        .start(folder)?;
    let status = made.wait(AGENT_PATIENCE)?;
    if status.success() { Ok(()) } else { Err(made.last_words()).trouble("the agents' key") }
}

/// Requests stay queued for as long as visitors wait, where there is a queue.
fn haproxy(listen: SocketAddr, balance: &str, servers: &str) -> String {
    format!(
        "{HAPROXY}    timeout server 60s
    timeout queue {}s
    option abortonclose

frontend visitors
    bind {listen}
    default_backend nodes

backend nodes
    balance {balance}
    http-reuse always
{servers}",
        super::PATIENCE_S
    )
}

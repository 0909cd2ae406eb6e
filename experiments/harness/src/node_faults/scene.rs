//! The nodes, and the gateway in front of them.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use suimon_process::free_address;

use crate::common::Common;
use crate::gateways::{self, Gateway, HAPROXY};
use crate::lab_nodes::{self, LabNode};
use crate::trouble::{Result, While};

pub(super) const NODES: u8 = 3;
/// What a node is: requests that it serves at once, and the mean time of one. It computes for a hundredth of it.
const SLOTS: u32 = 4;
const MEAN_S: f64 = 0.06;
const CPU: f64 = 0.01;
/// The name of the application where it has one, and where its nodes and those after them have their addresses.
const NAME: &str = "shop.internal";
const FIRST: u8 = 11;
const SECOND: u8 = 21;

/// Requests per second that all nodes can answer.
pub(super) fn capacity_per_s() -> f64 {
    f64::from(NODES) * f64::from(SLOTS) / MEAN_S
}

/// How the gateway knows its nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Known {
    /// Their addresses are in its settings.
    Settings,
    /// By the addresses of a host name.
    Name,
    /// By a file, where a process cannot be given names of its own.
    File,
}

/// Nodes of the application.
pub(super) struct Nodes<'a> {
    common: &'a Common,
    pub(super) folder: PathBuf,
    /// Those at the first addresses; `None`: it is not there.
    pub(super) first: Vec<(SocketAddr, Option<LabNode>)>,
    /// Those that come after them, if any do.
    second: Vec<(SocketAddr, LabNode)>,
    known: Known,
    /// The file with their names or addresses.
    names: PathBuf,
}

impl<'a> Nodes<'a> {
    /// Starts them, for a play of this name.
    pub(super) fn start(common: &'a Common, play: &str, is_found: bool) -> Result<Self> {
        let folder = common.scratch.join(play);
        // Those who waited in an earlier run are not there any more.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).trouble(folder.display())?;
        let mut nodes = Nodes {
            common,
            names: folder.join("names"),
            folder,
            first: Vec::new(),
            second: Vec::new(),
            known: Known::Settings,
        };
        if is_found {
            nodes.write("")?;
            let may = gateways::may_have_names(&nodes.folder, &nodes.names);
            nodes.known = if may { Known::Name } else { Known::File };
        }
        // What was learned in front of one application is not believed in front of another: they stay where they
        // are.
        let port = nodes_port()?;
        for number in 0..NODES {
            nodes.first.push((at(FIRST + number, port), None));
            nodes.bring_back(number.into())?;
            if is_found {
                let address = at(SECOND + number, port);
                let node = nodes.node(&format!("later{number}"), address)?;
                nodes.second.push((address, node));
            }
        }
        if is_found {
            nodes.name(false)?;
        }
        Ok(nodes)
    }

    fn node(&self, name: &str, address: SocketAddr) -> Result<LabNode> {
        lab_nodes::start_at(self.common, name, address, SLOTS, MEAN_S, CPU)
    }

    /// Starts the node of this number, where it was before.
    pub(super) fn bring_back(&mut self, number: usize) -> Result<()> {
        let address = self.first[number].0;
        // The port must be free again.
        self.first[number].1 = None;
        self.first[number].1 = Some(self.node(&format!("node{number}"), address)?);
        Ok(())
    }

    /// Kills the node of this number.
    pub(super) fn kill(&mut self, number: usize) {
        self.first[number].1 = None;
    }

    /// Has the name lead to the first or to the second nodes from now on.
    pub(super) fn name(&self, second: bool) -> Result<()> {
        let addresses: Vec<SocketAddr> = if second {
            self.second.iter().map(|(address, _)| *address).collect()
        } else {
            self.first.iter().map(|(address, _)| *address).collect()
        };
        let line = |address: &SocketAddr| match self.known {
            Known::Name => format!("{} {NAME}\n", address.ip()),
            Known::Settings | Known::File => format!("http://{address}\n"),
        };
        self.write(&addresses.iter().map(line).collect::<String>())
    }

    /// It is the same file for whoever has it in place of another, so it is not replaced.
    fn write(&self, text: &str) -> Result<()> {
        fs::write(&self.names, text).trouble(self.names.display())
    }

    pub(super) const fn known(&self) -> Known {
        self.known
    }

    /// Starts Suimon in front of them, with these further lines for `[upstream]`, and with what was learned
    /// before, if anything was. What it learns is in the file that is returned once it has ended.
    pub(super) fn suimon(&self, upstream: &str, learned: Option<&Path>) -> Result<(Gateway, PathBuf)> {
        let own = self.folder.join("learned.json");
        if let Some(learned) = learned {
            fs::copy(learned, &own).trouble(learned.display())?;
        }
        let port = self.first[0].0.port();
        let names = (self.known == Known::Name).then_some(self.names.as_path());
        let settings = match self.known {
            Known::Settings => {
                let addresses: Vec<String> =
                    self.first.iter().map(|(address, _)| format!("http://{address}")).collect();
                format!("[upstream]\nnodes = {addresses:?}\n{upstream}")
            }
            Known::Name => {
                format!("[upstream]\nnodes = [\"http://{NAME}:{port}\"]\ndiscover = \"dns\"\n{upstream}")
            }
            Known::File => format!("[upstream]\nnodes_file = {:?}\n", self.names.display().to_string()),
        };
        let cores = [self.common.load_core];
        let gateway =
            gateways::start_configured(self.common, &self.folder, &settings, &cores, Some(&own), names)?;
        Ok((gateway, own))
    }

    /// Starts HAProxy in front of them, which sends a request where the fewest are.
    pub(super) fn haproxy(&self) -> Result<Gateway> {
        let server = |(number, (address, _)): (usize, &(SocketAddr, _))| {
            format!("    server node{number} {address} check\n")
        };
        let servers: String = self.first.iter().enumerate().map(server).collect();
        gateways::start_haproxy(&self.folder, self.common.load_core, |listen| {
            format!(
                "{HAPROXY}    timeout server 60s
    option redispatch

frontend visitors
    bind {listen}
    default_backend nodes

backend nodes
    balance leastconn
    http-reuse always
{servers}"
            )
        })
    }
}

/// Returns the port of all nodes of this run.
fn nodes_port() -> Result<u16> {
    static PORT: OnceLock<u16> = OnceLock::new();
    if let Some(port) = PORT.get() {
        return Ok(*port);
    }
    let port = free_address()?.port();
    Ok(*PORT.get_or_init(|| port))
}

fn at(last: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), port)
}

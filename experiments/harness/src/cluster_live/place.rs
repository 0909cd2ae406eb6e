//! A gateway that starts and ends its nodes.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use suimon_admin::ScalingState;
use suimon_process::{Signal, group};

use super::scenario::Scenario;
use crate::common::Common;
use crate::gateways::{Gateway, start_configured};
use crate::http;
use crate::trouble::{Result, While, failed};

/// How long the first nodes may take to serve.
const SERVING_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A gateway with nodes of its own.
pub(super) struct Place {
    pub(super) gateway: Gateway,
    pub(super) folder: PathBuf,
    /// While this file is there no node comes to its start.
    hold: PathBuf,
}

/// A node's process and its port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NodeProcess {
    pub(super) pid: u32,
    pub(super) port: u16,
}

impl Place {
    /// Starts a gateway with this law for its nodes (`[nodes]` lines), and waits until as many serve as
    /// it begins with.
    pub(super) fn start(
        common: &Common,
        name: &str,
        scenario: &Scenario,
        law: &str,
        first: u32,
    ) -> Result<Place> {
        let folder = common.scratch.join(name);
        fs::create_dir_all(&folder).trouble(folder.display())?;
        let hold = folder.join("hold");
        // Of a run that was given up.
        let _ = fs::remove_file(&hold);
        let settings = settings(common, scenario, &hold, law);
        // Its nodes inherit the cores: they may use both, and move themselves to theirs.
        let cores = [common.load_core, common.app_core];
        let gateway = start_configured(common, &folder, &settings, &cores, None, None)?;
        let mut place = Place { gateway, folder, hold };
        let deadline = Instant::now() + SERVING_WITHIN;
        // It says nothing of nodes until it has looked at them for the first time.
        while place.state()?.scaling.is_none_or(|scaling| scaling.serving < first) {
            place.must_run()?;
            if Instant::now() > deadline {
                return failed(format!(
                    "{first} nodes do not come to serve:\n{}",
                    place.gateway.last_words()
                ));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(place)
    }

    pub(super) fn must_run(&mut self) -> Result<()> {
        self.gateway.must_run()
    }

    pub(super) fn state(&self) -> Result<suimon_admin::State> {
        match self.gateway.state() {
            Some(state) => Ok(state),
            None => failed("the gateway does not tell its state"),
        }
    }

    pub(super) fn scaling(&self) -> Result<ScalingState> {
        match self.state()?.scaling {
            Some(scaling) => Ok(scaling),
            None => failed("the gateway scales no nodes"),
        }
    }

    /// Returns the nodes' processes, the oldest first.
    pub(super) fn nodes(&self) -> Result<Vec<NodeProcess>> {
        let family =
            group::tree(self.gateway.pid().unwrap_or_default()).trouble("the gateway's processes")?;
        let mut nodes: Vec<NodeProcess> = family.into_iter().filter_map(node_process).collect();
        nodes.sort_by_key(|node| node.pid);
        Ok(nodes)
    }

    /// Returns nodes that answer, the oldest first.
    pub(super) fn answering(&self) -> Result<Vec<NodeProcess>> {
        let mut nodes = self.nodes()?;
        nodes.retain(|node| {
            http::get(node.to(), "/ready", Duration::from_secs(1)).is_ok_and(|answer| answer.status == 200)
        });
        Ok(nodes)
    }

    /// From now on no node comes to its start; or they may again.
    pub(super) fn hold_starts(&self, is_held: bool) -> Result<()> {
        if is_held { fs::write(&self.hold, "") } else { fs::remove_file(&self.hold) }
            .trouble(self.hold.display())
    }

    /// Ends it with all its nodes, and returns how many processes were left.
    pub(super) fn end(self) -> Result<usize> {
        let nodes = self.nodes()?;
        self.gateway.end(true)?;
        let left: Vec<NodeProcess> =
            nodes.into_iter().filter(|node| node_process(node.pid) == Some(*node)).collect();
        left.iter().for_each(|node| group::signal(node.pid, Signal::KILL));
        Ok(left.len())
    }
}

impl NodeProcess {
    pub(super) fn to(self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }
}

/// Returns the process as a node, if it is one.
fn node_process(pid: u32) -> Option<NodeProcess> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<&str> = std::str::from_utf8(&line).ok()?.split('\0').collect();
    let at = words.iter().position(|word| *word == "--port")?;
    let is_node = words.get(1) == Some(&"lab-node");
    is_node.then_some(NodeProcess { pid, port: words.get(at + 1)?.parse().ok()? })
}

/// Nodes run on the core of the application; a start waits while it is held.
fn settings(common: &Common, scenario: &Scenario, hold: &std::path::Path, law: &str) -> String {
    let node = scenario.node().join(" ");
    let (core, suimon, hold) = (common.app_core, common.suimon.display(), hold.display());
    let script = format!(
        "while [ -e '{hold}' ]; do sleep 0.1; done; exec taskset -c {core} '{suimon}' {node} --port $0"
    );
    format!(
        "[nodes]\nprovider = \"processes\"\ncommand = [\"sh\", \"-c\", {script:?}, \"{{port}}\"]\nready = \"/ready\"\n\
         processors = {}\n{law}\n\n[upstream.health]\npath = \"/ready\"\ninterval = \"500ms\"\n",
        scenario.nodes.core
    )
}

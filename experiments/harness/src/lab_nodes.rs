//! Nodes of a made-up application (`suimon lab-node`): how fast they are is said, and they take only a
//! part of a processor, so that several unequal ones fit on one core.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use suimon_process::{Program, Running, free_address};

use crate::common::Common;
use crate::http;
use crate::trouble::{Result, While, failed};

/// How long a node may take to listen.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long nodes may take to finish what they have.
const IDLE_WITHIN: Duration = Duration::from_secs(30);
/// How long a node may take to take in what it is told.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A node that listens.
pub(crate) struct LabNode {
    pub(crate) process: Running,
    pub(crate) address: SocketAddr,
    /// The folder that stands for its /proc.
    pub(crate) proc: PathBuf,
}

/// Starts a node with these slots and mean seconds of work, of which it computes this share.
pub(crate) fn start(common: &Common, name: &str, slots: u32, mean_s: f64, cpu: f64) -> Result<LabNode> {
    start_at(common, name, free_address()?, slots, mean_s, cpu)
}

/// Starts one at an address of this machine.
pub(crate) fn start_at(
    common: &Common,
    name: &str,
    address: SocketAddr,
    slots: u32,
    mean_s: f64,
    cpu: f64,
) -> Result<LabNode> {
    let folder = common.scratch.join(name);
    let proc = folder.join("proc");
    fs::create_dir_all(&proc).trouble(proc.display())?;
    let mut process = Program::new(name, &common.suimon)
        .cores(&[common.app_core])
        .args(["lab-node", "--starts-after", "0s", "--address", &address.ip().to_string()])
        .args(["--port", &address.port().to_string()])
        .args(["--slots".to_owned(), slots.to_string(), "--cpu".to_owned(), cpu.to_string()])
        .args(["--mean".to_owned(), format!("{:.0}ms", mean_s * 1000.0)])
        .args(["--proc".to_owned(), proc.display().to_string()])
        .start(&folder)?;
    process.wait_for_listener(address, START_PATIENCE)?;
    Ok(LabNode { process, address, proc })
}

/// Tells the node at `to` how to behave from now on, such as `mode=fail`.
pub(crate) fn tell(to: SocketAddr, mode: &str) -> Result<()> {
    let path = format!("/control?{mode}");
    let answer = http::ask(to, "node", &path, &[], Some((http::FORM, &[])), TOLD_WITHIN)?;
    if answer.status == 200 { Ok(()) } else { failed(format!("a node answers {}", answer.status)) }
}

/// Waits until none of them has a request.
pub(crate) fn wait_until_idle<'a>(nodes: impl Iterator<Item = &'a LabNode>) -> Result<()> {
    let deadline = Instant::now() + IDLE_WITHIN;
    for node in nodes {
        loop {
            let load = http::get(node.address, "/load", Duration::from_secs(5))?;
            if load.body == b"0\n" {
                break;
            }
            if Instant::now() > deadline {
                return failed(format!("{} does not finish what it has", node.address));
            }
            thread::sleep(LOOK_EVERY);
        }
    }
    Ok(())
}

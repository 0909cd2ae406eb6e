//! Nodes that are processes of this machine.
//!
//! Each leads a process group of its own, which is ended with it.

use crate::leader::{Leader, Starter};
use crate::manager::{self, Host};
use crate::ready::until_ready;
use crate::{Provided, Provider, begin};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use suimon_fleet::lifecycle::LifecycleParams;
use suimon_params::nodes::ProcessesParams;
use suimon_params::pool::{CommandParams, PORT_WORD};
use suimon_params::upstream::{NodeAddress, NodeParams, Protocol, Scheme};
use suimon_process::{Rights, Signal, free_address, port_owner};
use tokio::time::timeout;

/// Lines of what a process said last that are shown when it fails.
const LINES_SHOWN: usize = 8;
/// The most bytes that are read of it.
const SAID_BYTES_MAX: u64 = 16 << 10;

/// What the kernel says of tasks that wait for a processor of this machine, ...
const PRESSURE: &str = "/proc/pressure/cpu";
/// ... and the share of the last ten seconds, in percent, from which on it counts as crowded.
const CROWDED: f64 = 50.0;

/// Starts nodes as processes of this machine.
#[derive(Clone, Debug)]
pub struct Processes {
    params: ProcessesParams,
    lifecycle: LifecycleParams,
}

impl Processes {
    /// Returns a provider of such processes.
    pub fn new(params: ProcessesParams, lifecycle: LifecycleParams) -> Self {
        Processes { params, lifecycle }
    }
}

impl Provider for Processes {
    fn name(&self) -> &'static str {
        "processes"
    }

    fn begin(self: Box<Self>, wanted: u32) -> Provided {
        let Processes { params, lifecycle } = *self;
        begin(wanted, move |wires| async move {
            let host = ProcessHost { starter: Starter::new(), params, leaders: Mutex::default() };
            manager::run(host, lifecycle, wires).await;
        })
    }
}

struct ProcessHost {
    params: ProcessesParams,
    starter: Starter,
    /// The process of each node that is ready.
    leaders: Mutex<HashMap<String, u32>>,
}

/// A node, and the process that it is.
struct Process {
    leader: Leader,
    node: NodeParams,
}

impl Host for ProcessHost {
    type Node = Process;
    const OUTLIVES: bool = false;

    async fn list(&self) -> Result<Vec<(Process, NodeParams)>, String> {
        // None outlives the gateway.
        Ok(vec![])
    }

    async fn start(&self) -> Result<(Process, NodeParams), String> {
        let address = free_address().map_err(|error| error.to_string())?;
        let node = NodeParams {
            scheme: Scheme::Http,
            address: NodeAddress::Tcp { host: address.ip().to_string(), port: address.port() },
            protocol: Protocol::Http1,
        };
        let program = self.params.command.program.display().to_string();
        let output = self.params.output.clone();
        let command = filled(&self.params.command, address.port(), output.as_deref());
        let command = command.map_err(|error| {
            format!("nodes.processes: the output of a node cannot be written: {error}; see nodes.output")
        })?;
        let rights = self.params.command.user.as_ref().map(|user| Rights {
            user: user.id,
            group: user.group,
            groups: user.groups.clone(),
        });
        let leader = self.starter.start(command, rights).await;
        let mut leader = leader.map_err(|error| {
            format!("nodes.processes: {program} cannot be started: {error}; correct nodes.command")
        })?;
        tokio::select! {
            () = until_ready(&node, self.params.ready_path.as_deref()) => {}
            ended = leader.ended() => {
                return Err(format!(
                    "nodes.processes: {program} has ended before it was ready ({ended}){}",
                    last_words(output.as_deref(), address.port())
                ));
            }
        }
        is_own(&leader, address.port()).map_err(|why| format!("nodes.processes: {program}: {why}"))?;
        self.leaders().insert(node.to_string(), leader.number());
        Ok((Process { leader, node: node.clone() }, node))
    }

    async fn ended(&self, process: &mut Process) -> String {
        let ended = process.leader.ended().await;
        self.leaders().remove(&process.node.to_string());
        let words = match &process.node.address {
            NodeAddress::Tcp { port, .. } => last_words(self.params.output.as_deref(), *port),
            _ => String::new(),
        };
        format!("{}: the process of this node has ended by itself ({ended}){words}", process.node)
    }

    async fn end(&self, mut process: Process) -> Result<(), String> {
        self.leaders().remove(&process.node.to_string());
        let Process { leader, node } = &mut process;
        leader.signal(Signal::TERM);
        // One that is stopped would not hear of it.
        leader.signal(Signal::CONT);
        let patience = self.params.stop_within;
        if timeout(patience, leader.ended()).await.is_ok() {
            return Ok(());
        }
        leader.signal(Signal::KILL);
        // Only the kernel can keep it now, and it goes when that lets it.
        let _ = timeout(patience, leader.ended()).await;
        Err(format!(
            "{node}: the process of this node did not end within {} s of SIGTERM, and was killed; see nodes.stop_within",
            patience.as_secs_f64()
        ))
    }

    fn cpu_s(&self, nodes: &[&NodeParams]) -> Option<Vec<f64>> {
        let leaders: Vec<u32> = {
            let leaders = self.leaders();
            nodes.iter().map(|node| leaders.get(&node.to_string()).copied().unwrap_or_default()).collect()
        };
        let times = suimon_process::cpu::group_times(&leaders).ok()?;
        Some(times.into_iter().map(|time| time.as_secs_f64()).collect())
    }

    fn is_crowded(&self) -> bool {
        // A kernel without it says nothing, and then CPU time is all there is.
        fs::read_to_string(PRESSURE).is_ok_and(|text| pressure(&text).is_some_and(|share| share >= CROWDED))
    }
}

impl ProcessHost {
    fn leaders(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        // A panic under the lock leaves a map that is whole.
        self.leaders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an error if somebody else listens at the port that a node was told: it was free a moment before.
fn is_own(leader: &Leader, port: u16) -> Result<(), String> {
    match port_owner::is_of_group(port, leader.number()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!(
            "somebody else answers at port {port}, so this node is started again at another; a program that has another process listen outside of its process group needs provider = \"command\""
        )),
        Err(error) => Err(format!("who listens at port {port} is not known: {error}")),
    }
}

/// Returns the command of a node that listens at `port`, with its output where it belongs.
fn filled(params: &CommandParams, port: u16, output: Option<&Path>) -> io::Result<Command> {
    let port_word = port.to_string();
    let fill = |word: &String| word.replace(PORT_WORD, &port_word);
    let mut command = Command::new(&params.program);
    command
        .args(params.arguments.iter().map(fill))
        .env_clear()
        .envs(params.environment.iter().map(|(name, value)| (name, fill(value))))
        .stdin(Stdio::null())
        .process_group(0);
    if let Some(folder) = &params.folder {
        command.current_dir(folder);
    }
    let (out, err) = match output {
        None => (Stdio::null(), Stdio::null()),
        Some(folder) => {
            fs::create_dir_all(folder)?;
            let file = File::create(output_file(folder, port))?;
            (file.try_clone()?.into(), file.into())
        }
    };
    command.stdout(out).stderr(err);
    Ok(command)
}

/// Returns in how much of the last ten seconds some task waited for a processor, percent.
fn pressure(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}

fn output_file(folder: &Path, port: u16) -> std::path::PathBuf {
    folder.join(format!("node-{port}.log"))
}

/// Returns the end of a file, which may be long.
fn end_of(file: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SAID_BYTES_MAX)))?;
    let mut said = Vec::new();
    file.take(SAID_BYTES_MAX).read_to_end(&mut said)?;
    Ok(said)
}

/// Returns what a node said last, as the end of a sentence.
fn last_words(output: Option<&Path>, port: u16) -> String {
    let Some(folder) = output else {
        return "; nodes.output names a folder for what it says".to_owned();
    };
    let said = end_of(&output_file(folder, port)).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().collect();
    format!(":\n{}", lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pressure_is_that_of_some_over_ten_seconds() {
        let text = "some avg10=82.11 avg60=79.72 avg300=91.42 total=14332251440\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert!(pressure(text).is_some_and(|share| (share - 82.11).abs() < 1e-9));
        for wrong in ["", "full avg10=1.00", "some avg60=1.00", "some avg10=much"] {
            assert_eq!(pressure(wrong), None, "{wrong}");
        }
    }
}

//! Nodes that are processes of this machine.
//!
//! Each leads a process group of its own, which is ended with it. One thread starts them all and lives as
//! long as any of them: the kernel ends a process with the thread that started it, so none outlives the
//! gateway, in whatever way that ends.

use crate::manager::{self, Host};
use crate::ready::until_ready;
use crate::{Provided, Provider, begin};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use suimon_fleet::lifecycle::LifecycleParams;
use suimon_params::nodes::ProcessesParams;
use suimon_params::pool::{CommandParams, PORT_WORD};
use suimon_params::upstream::{NodeAddress, NodeParams, Protocol, Scheme};
use suimon_process::{Preparation, Rights, Signal, free_address, group};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Lines of what a process said last that are shown when it fails.
const LINES_SHOWN: usize = 8;
/// The most bytes that are read of it.
const SAID_BYTES_MAX: u64 = 16 << 10;

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

/// A process that leads a group. Dropping it kills the group.
struct Process {
    child: Child,
    end: oneshot::Receiver<()>,
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
        let child = self.starter.start(command, rights).await;
        let child = child.map_err(|error| {
            format!("nodes.processes: {program} cannot be started: {error}; correct nodes.command")
        })?;
        let mut process = Process::of(child, node.clone()).map_err(|error| error.to_string())?;
        tokio::select! {
            () = until_ready(&node, self.params.ready_path.as_deref()) => {}
            ended = process.ended() => {
                return Err(format!(
                    "nodes.processes: {program} has ended before it was ready ({ended}){}",
                    last_words(output.as_deref(), address.port())
                ));
            }
        }
        self.leaders().insert(node.to_string(), process.child.id());
        Ok((process, node))
    }

    async fn ended(&self, process: &mut Process) -> String {
        let ended = process.ended().await;
        self.leaders().remove(&process.node.to_string());
        let words = match &process.node.address {
            NodeAddress::Tcp { port, .. } => last_words(self.params.output.as_deref(), *port),
            _ => String::new(),
        };
        format!("{}: the process of this node has ended by itself ({ended}){words}", process.node)
    }

    async fn end(&self, mut process: Process) -> Result<(), String> {
        self.leaders().remove(&process.node.to_string());
        let leader = process.child.id();
        group::signal_all(leader, Signal::TERM);
        // One that is stopped would not hear of it.
        group::signal_all(leader, Signal::CONT);
        let patience = self.params.stop_within;
        match timeout(patience, process.ended()).await {
            Ok(_) => Ok(()),
            Err(_) => Err(format!(
                "{}: the process of this node did not end within {} s of SIGTERM, and was killed; see nodes.stop_within",
                process.node,
                patience.as_secs_f64()
            )),
        }
    }

    fn cpu_s(&self, nodes: &[&NodeParams]) -> Option<Vec<f64>> {
        let leaders: Vec<u32> = {
            let leaders = self.leaders();
            nodes.iter().map(|node| leaders.get(&node.to_string()).copied().unwrap_or_default()).collect()
        };
        let times = suimon_process::cpu::group_times(&leaders).ok()?;
        Some(times.into_iter().map(|time| time.as_secs_f64()).collect())
    }
}

impl ProcessHost {
    fn leaders(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        // A panic under the lock leaves a map that is whole.
        self.leaders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    fn of(mut child: Child, node: NodeParams) -> io::Result<Self> {
        let watched = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let (ended, end) = oneshot::channel();
        let watches = watched.map_err(io::Error::from).and_then(|process| {
            thread::Builder::new().name("node-end".to_owned()).spawn(move || {
                let mut events = [PollFd::new(&process, PollFlags::IN)];
                // A signal interrupts it; anything else is the end.
                while rustix::event::poll(&mut events, None) == Err(rustix::io::Errno::INTR) {}
                let _ = ended.send(());
            })
        });
        match watches {
            Ok(_) => Ok(Process { child, end, node }),
            Err(error) => {
                group::kill(child.id());
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Waits until it has ended, and returns how.
    async fn ended(&mut self) -> String {
        // The sender may only be dropped; that is an end, too.
        let _ = (&mut self.end).await;
        self.child
            .try_wait()
            .ok()
            .flatten()
            .map_or_else(|| "unknown".to_owned(), |it: ExitStatus| it.to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        group::kill(self.child.id());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The thread that starts processes. It ends when this is dropped, and so do they.
struct Starter(mpsc::Sender<Order>);

struct Order {
    command: Command,
    rights: Option<Rights>,
    started: oneshot::Sender<io::Result<Child>>,
}

impl Starter {
    fn new() -> Self {
        let (orders, ordered) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for Order { mut command, rights, started } in ordered {
                let preparation =
                    Preparation { has_descriptors_of_our_start: true, rights, ..Preparation::default() };
                preparation.apply(&mut command);
                if let Err(Ok(mut child)) = started.send(command.spawn()) {
                    // Nobody wants it any more.
                    group::kill(child.id());
                    let _ = child.wait();
                }
            }
        });
        Starter(orders)
    }

    async fn start(&self, command: Command, rights: Option<Rights>) -> io::Result<Child> {
        let (started, child) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts nodes has ended");
        self.0.send(Order { command, rights, started }).map_err(|_| gone())?;
        child.await.map_err(|_| gone())?
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

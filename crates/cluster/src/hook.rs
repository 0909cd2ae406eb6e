//! Nodes that a program of the operator starts and ends.
//!
//! It is told of them by their addresses, and an address may be that of another node by then: where a node has
//! ended though its `stop` has failed, the next one that is started may be given it. So a `stop` is not repeated
//! once another node has the address, nor while a start is under way, whose address nobody knows yet.

mod addresses;

use crate::manager::{self, Host, Told, Word, back_off};
use crate::ready::until_ready;
use crate::{Provided, Provider, begin};
use addresses::{Addresses, Holder};
use std::future::pending;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use suimon_fleet::lifecycle::LifecycleParams;
use suimon_params::nodes::HookParams;
use suimon_params::upstream::NodeParams;
use suimon_process::group;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// The most bytes that are kept of what the program writes, to either output.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// The most bytes of it that are shown.
const SHOWN_BYTES_MAX: usize = 500;
/// How long its outputs are still read once it has ended, where a child of it holds them.
const GRACE: Duration = Duration::from_millis(500);
/// Tries to stop a node after which it is taken to be gone if `list` does not name it.
const STOPS_MAX: u32 = 10;

/// Has nodes started and ended by a program: see [`HookParams`].
#[derive(Clone, Debug)]
pub struct Hook {
    params: HookParams,
    lifecycle: LifecycleParams,
}

impl Hook {
    /// Returns a provider that runs this program.
    pub fn new(params: HookParams, lifecycle: LifecycleParams) -> Self {
        Hook { params, lifecycle }
    }
}

impl Provider for Hook {
    fn name(&self) -> &'static str {
        "command"
    }

    fn begin(self: Box<Self>, wanted: u32) -> Provided {
        let Hook { params, lifecycle } = *self;
        begin(wanted, move |wires| async move {
            manager::run(HookHost::new(params, lifecycle.start_within, back_off), lifecycle, wires).await;
        })
    }
}

struct HookHost {
    params: HookParams,
    start_within: Duration,
    /// The wait after so many tries to stop a node that failed, and one.
    back_off: fn(u32) -> Duration,
    addresses: Addresses,
    /// How many starts are under way whose address is not known.
    starts: watch::Sender<usize>,
}

/// A start that is under way.
struct Start<'a>(&'a watch::Sender<usize>);

impl Drop for Start<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|starts| *starts -= 1);
    }
}

impl Host for HookHost {
    type Node = Holder;
    const OUTLIVES: bool = true;

    async fn list(&self) -> Result<Vec<(Holder, NodeParams)>, String> {
        let nodes = self.listed().await?.into_iter();
        Ok(nodes.filter_map(|node| Some((self.addresses.take(node.clone())?, node))).collect())
    }

    async fn start(&self) -> Result<(Holder, NodeParams), String> {
        let start = self.begin_start();
        let node = self.run(&["start"], self.start_within).await.node()?;
        let holder = self.take(node.clone())?;
        drop(start);
        until_ready(&node, self.params.ready_path.as_deref()).await;
        Ok((holder, node))
    }

    /// A program that is killed may have started a node by then. So it is waited for, for as long again as a
    /// start may take, and what it has started is ended.
    async fn start_unless_told(&self, told: &mut Told) -> Option<Result<(Holder, NodeParams), String>> {
        let (began, within) = (Instant::now(), self.start_within);
        let seconds = within.as_secs_f64();
        let start = self.begin_start();
        let mut runs = pin!(self.run(&["start"], within.saturating_mul(2)));
        let (ran, is_wanted) = tokio::select! {
            ran = &mut runs => (ran, true),
            word = told.word() => {
                if word == Word::End && began.elapsed() >= within {
                    told.complain(format!(
                        "nodes.command: `start` did not end within {seconds} s; what it still starts is stopped; see nodes.start_within"
                    ))
                    .await;
                }
                let ran = runs.await;
                if word == Word::Closing {
                    // The next gateway finds what it has started.
                    return None;
                }
                (ran, false)
            }
        };
        let mut trouble = ran.status.as_ref().err().cloned();
        let node = match ran.node() {
            Ok(node) => node,
            Err(trouble) => return Some(Err(trouble)),
        };
        let holder = match self.take(node.clone()) {
            Ok(holder) => holder,
            Err(trouble) => return Some(Err(trouble)),
        };
        drop(start);
        if is_wanted && trouble.is_none() {
            tokio::select! {
                () = until_ready(&node, self.params.ready_path.as_deref()) => {
                    return Some(Ok((holder, node)));
                }
                word = told.word() => if word == Word::Closing { return None },
            }
            trouble = (began.elapsed() >= within).then(|| format!(
                "nodes.command: {node} was not ready within {seconds} s, and is stopped; see nodes.ready and nodes.start_within"
            ));
        }
        self.end_for_good(holder, told).await.or(trouble).map(Err)
    }

    async fn ended(&self, _: &mut Holder) -> String {
        // Checks find that out.
        pending().await
    }

    async fn end(&self, holder: Holder) -> Result<(), String> {
        self.run(&["stop", &holder.node.to_string()], self.params.within).await.said().map(drop)
    }

    async fn end_for_good(&self, holder: Holder, told: &mut Told) -> Option<String> {
        self.addresses.end(&holder);
        let trouble = self.stop(&holder, told).await;
        self.addresses.leave(&holder);
        trouble
    }

    fn cpu_s(&self, _: &[&NodeParams]) -> Option<Vec<f64>> {
        None
    }

    fn patience(&self) -> Duration {
        self.params.within.saturating_add(GRACE)
    }
}

impl HookHost {
    fn new(params: HookParams, start_within: Duration, back_off: fn(u32) -> Duration) -> Self {
        let (addresses, starts) = (Addresses::default(), watch::Sender::new(0));
        HookHost { params, start_within, back_off, addresses, starts }
    }

    async fn run(&self, words: &[&str], within: Duration) -> Ran {
        run(&self.params, words, within).await
    }

    fn begin_start(&self) -> Start<'_> {
        self.starts.send_modify(|starts| *starts += 1);
        Start(&self.starts)
    }

    /// Takes in a node that was started.
    fn take(&self, node: NodeParams) -> Result<Holder, String> {
        let trouble = format!(
            "nodes.command: `start` has written {node}, and there is a node with that address already: each must have its own"
        );
        self.addresses.take(node).ok_or(trouble)
    }

    /// Returns the nodes that run.
    async fn listed(&self) -> Result<Vec<NodeParams>, String> {
        let said = self.run(&["list"], self.params.within).await.said()?;
        said.lines().map(str::trim).filter(|line| !line.is_empty()).map(address).collect()
    }

    /// Stops a node, again and again; returns what went wrong for good.
    async fn stop(&self, holder: &Holder, told: &mut Told) -> Option<String> {
        let node = &holder.node;
        for tries in 0.. {
            let trouble = match self.end(holder.clone()).await {
                Ok(()) if tries == 0 => return None,
                Ok(()) => {
                    told.is_well().await;
                    return None;
                }
                Err(trouble) => trouble,
            };
            told.complain(trouble).await;
            let is_there = tokio::select! {
                is_there = self.may_be_there(node) => is_there,
                () = told.is_closing() => return Some(left(node)),
            };
            if tries + 1 >= STOPS_MAX && !is_there {
                return Some(format!(
                    "nodes.command: {node} could not be stopped {STOPS_MAX} times in a row, and `list` does not name it: it is taken to have ended"
                ));
            }
            told.is_stuck(is_there).await;
            let waits = async {
                sleep((self.back_off)(tries)).await;
                // The sender is ours.
                let _ = self.starts.subscribe().wait_for(|starts| *starts == 0).await;
            };
            tokio::select! {
                () = waits => {}
                () = told.is_closing() => return Some(left(node)),
            }
            if !self.addresses.has(holder) {
                tracing::info!(%node, "it is not stopped again: one that was started later has its address");
                told.is_well().await;
                return None;
            }
        }
        None
    }

    /// Returns whether a node runs that could not be stopped; if nobody knows, it does.
    async fn may_be_there(&self, node: &NodeParams) -> bool {
        self.listed().await.map_or(true, |nodes| nodes.contains(node))
    }
}

/// Returns what is said of a node that is still to be stopped when the gateway ends.
fn left(node: &NodeParams) -> String {
    format!("nodes.command: {node} could not be stopped, and is found by the next `list` if it still runs")
}

/// What became of a run of the program.
struct Ran {
    /// What was run, for people.
    what: String,
    /// What it wrote to standard output, ...
    said: Vec<u8>,
    /// ... and to standard error.
    complained: Vec<u8>,
    /// How it ended; an error: why that is not known.
    status: Result<ExitStatus, String>,
}

impl Ran {
    /// Returns what it wrote, if it has done what it was to.
    fn said(self) -> Result<String, String> {
        let Ran { what, said, complained, status } = self;
        let status = status?;
        if !status.success() {
            let complained = String::from_utf8_lossy(&complained);
            let shown: String = complained.trim().chars().take(SHOWN_BYTES_MAX).collect();
            return Err(format!("{what} has failed ({status}): {shown}"));
        }
        String::from_utf8(said).map_err(|_| format!("{what} has written something that is no text"))
    }

    /// Returns the node that it has started. One that was killed may have said it before.
    fn node(self) -> Result<NodeParams, String> {
        let killed = self.status.as_ref().err().cloned();
        let said = match &killed {
            Some(_) => String::from_utf8_lossy(&self.said).into_owned(),
            None => self.said()?,
        };
        // A line that is not whole may be half an address.
        let whole =
            if killed.is_some() { said.rsplit_once('\n').map_or("", |(whole, _)| whole) } else { &said };
        let last = whole.lines().map(str::trim).rfind(|line| !line.is_empty());
        let node = last.ok_or("nodes.command: `start` has written no address".to_owned()).and_then(address);
        node.map_err(|trouble| killed.unwrap_or(trouble))
    }
}

/// Runs the program with these words, until it ends.
async fn run(params: &HookParams, words: &[&str], within: Duration) -> Ran {
    let command = &params.command;
    let what = format!("nodes.command: {} {}", command.program.display(), words.join(" "));
    let mut runs = Command::new(&command.program);
    runs.args(&command.arguments)
        .args(words)
        .env_clear()
        .envs(command.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A Ctrl-C is meant for the gateway; what is under way is brought to an end.
        .process_group(0);
    if let Some(folder) = &command.folder {
        runs.current_dir(folder);
    }
    let (mut said, mut complained) = (Vec::new(), Vec::new());
    let mut child = match runs.spawn() {
        Ok(child) => child,
        Err(error) => {
            let status = Err(format!("{what} cannot be run: {error}"));
            return Ran { what, said, complained, status };
        }
    };
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let status = {
        let mut reads = pin!(async { tokio::join!(read(out, &mut said), read(err, &mut complained)) });
        let mut has_read = false;
        let ends = async {
            loop {
                tokio::select! {
                    status = child.wait() => break status,
                    _ = &mut reads, if !has_read => has_read = true,
                }
            }
        };
        let ended = timeout(within, ends).await;
        if !has_read {
            // What it has started may hold its outputs for as long as it runs.
            let _ = timeout(GRACE, reads).await;
        }
        ended
    };
    let status = match status {
        Ok(status) => status.map_err(|error| format!("{what}: {error}")),
        Err(_) => {
            // What it has started would go on, as each run leads a group of its own. It was not waited for, so its
            // number is nobody else's.
            if let Some(leader) = child.id() {
                group::kill(leader);
            }
            let _ = child.kill().await;
            Err(format!("{what} did not end within {} s, and was killed", within.as_secs_f64()))
        }
    };
    Ran { what, said, complained, status }
}

/// Reads an output to its end, and keeps the first bytes of it.
async fn read(output: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut output) = output else { return };
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = output.read(&mut bytes).await {
        let room = OUTPUT_BYTES_MAX - kept.len();
        kept.extend_from_slice(&bytes[..count.min(room)]);
    }
}

fn address(line: &str) -> Result<NodeParams, String> {
    NodeParams::parse(line).map_err(|fault| {
        format!("nodes.command: {line:?} is no address such as http://10.0.0.7:8080: {fault}")
    })
}

#[cfg(test)]
mod tests;

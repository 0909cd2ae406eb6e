//! Nodes that a program of the operator starts and ends.

use crate::manager::{self, Host};
use crate::ready::until_ready;
use crate::{Provided, Provider, begin};
use std::future::pending;
use std::process::Stdio;
use std::time::Duration;
use suimon_fleet::lifecycle::LifecycleParams;
use suimon_params::nodes::HookParams;
use suimon_params::upstream::NodeParams;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

/// The most bytes that are read of what the program writes, to either output.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;
/// The most bytes of it that are shown.
const SHOWN_BYTES_MAX: usize = 500;

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
            let host = HookHost { params, start_within: lifecycle.start_within };
            manager::run(host, lifecycle, wires).await;
        })
    }
}

struct HookHost {
    params: HookParams,
    start_within: Duration,
}

impl Host for HookHost {
    type Node = NodeParams;
    const OUTLIVES: bool = true;

    async fn list(&self) -> Result<Vec<(NodeParams, NodeParams)>, String> {
        let said = self.run(&["list"], self.params.within).await?;
        let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| address(line).map(|node| (node.clone(), node))).collect()
    }

    async fn start(&self) -> Result<(NodeParams, NodeParams), String> {
        let said = self.run(&["start"], self.start_within).await?;
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
        let node = address(last.ok_or("nodes.command: `start` has written no address")?)?;
        // If it is not wanted any more, or not ready in time, it is ended all the same.
        let mut unready = Unready { host: Some(self.params.clone()), node: node.clone() };
        until_ready(&node, self.params.ready_path.as_deref()).await;
        unready.host = None;
        Ok((node.clone(), node))
    }

    async fn ended(&self, _: &mut NodeParams) -> String {
        // Checks find that out.
        pending().await
    }

    async fn end(&self, node: NodeParams) -> Result<(), String> {
        self.run(&["stop", &node.to_string()], self.params.within).await.map(drop)
    }

    fn cpu_s(&self, _: &[&NodeParams]) -> Option<Vec<f64>> {
        None
    }
}

impl HookHost {
    async fn run(&self, words: &[&str], within: Duration) -> Result<String, String> {
        run(&self.params, words, within).await
    }
}

/// A node that was started and is not ready. Dropping this ends it.
struct Unready {
    host: Option<HookParams>,
    node: NodeParams,
}

impl Drop for Unready {
    fn drop(&mut self) {
        let Some(params) = self.host.take() else { return };
        let node = self.node.to_string();
        tokio::spawn(async move {
            if let Err(trouble) = run(&params, &["stop", &node], params.within).await {
                tracing::warn!("{trouble}");
            }
        });
    }
}

/// Runs the program with these words, and returns what it wrote.
async fn run(params: &HookParams, words: &[&str], within: Duration) -> Result<String, String> {
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
        .kill_on_drop(true);
    if let Some(folder) = &command.folder {
        runs.current_dir(folder);
    }
    let mut child = runs.spawn().map_err(|error| format!("{what} cannot be run: {error}"))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let ends = async {
        let (mut said, mut complained) = (Vec::new(), Vec::new());
        let read_out = async {
            if let Some(out) = out {
                let _ = out.take(OUTPUT_BYTES_MAX).read_to_end(&mut said).await;
            }
        };
        let read_err = async {
            if let Some(err) = err {
                let _ = err.take(OUTPUT_BYTES_MAX).read_to_end(&mut complained).await;
            }
        };
        tokio::join!(read_out, read_err);
        (child.wait().await, said, complained)
    };
    let seconds = within.as_secs_f64();
    let ended = timeout(within, ends).await;
    let (status, said, complained) =
        ended.map_err(|_| format!("{what} did not end within {seconds} s, and was killed"))?;
    let status = status.map_err(|error| format!("{what}: {error}"))?;
    if !status.success() {
        let complained = String::from_utf8_lossy(&complained);
        let shown: String = complained.trim().chars().take(SHOWN_BYTES_MAX).collect();
        return Err(format!("{what} has failed ({status}): {shown}"));
    }
    String::from_utf8(said).map_err(|_| format!("{what} has written something that is no text"))
}

fn address(line: &str) -> Result<NodeParams, String> {
    NodeParams::parse(line).map_err(|fault| {
        format!("nodes.command: {line:?} is no address such as http://10.0.0.7:8080: {fault}")
    })
}

//! Nodes that come and go: who starts and ends them.
//!
//! A *provider* is told how many nodes should serve, and says which do. It is a task of its own, behind
//! [`Provided`]: the number goes in, [`NodeEvent`]s come out, and no request waits for it.
//!
//! - [`Observe`]: nobody starts any; the number is only published.
//! - [`Processes`]: processes of this machine, started and ended by the gateway.
//! - [`Hook`]: a program of the operator starts and ends them;
//! - `Kubernetes`, with the feature of that name: Kubernetes does, as the gateway orders, or as KEDA asks.
//!
//! `Processes` and `Hook` share the life of nodes (`manager`), which is decided by `suimon_fleet::lifecycle`. All
//! pass the same contract tests.

mod hook;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod leader;
mod manager;
mod observe;
mod processes;
mod ready;

pub use hook::Hook;
#[cfg(feature = "kubernetes")]
pub use kubernetes::{Kubernetes, check as check_kubernetes};
pub use observe::Observe;
pub use processes::Processes;

use suimon_params::nodes::{NodesParams, ProviderParams};
use suimon_params::upstream::NodeParams;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Events of a provider that wait until they are taken; then it waits, too.
pub const EVENTS_MAX: usize = 1024;
/// Words to a provider that wait until it takes them; then its nodes drain for longer.
pub const WORDS_MAX: usize = 1024;

/// What a provider says of its nodes.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeEvent {
    /// It takes requests from now on, for the first time or again.
    Ready(NodeParams),
    /// It takes no new sessions. Say [`NodeWord::Empty`] once it has nothing left.
    Draining(NodeParams),
    /// It is gone, or will be in a moment.
    Gone(NodeParams),
}

/// What a provider is told of its nodes.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeWord {
    /// It drains, and has nothing left.
    Empty(NodeParams),
    /// It has answered nothing for so long that another should take its place.
    Lost(NodeParams),
    /// It gets no requests because it does not answer or fails them: the first to go, if fewer are wanted.
    Down(NodeParams),
    /// It is up again.
    Up(NodeParams),
}

/// What can be seen of a provider.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ProviderView {
    /// Nodes that were ordered and are not ready yet.
    pub starting: u32,
    /// Nodes that are ready and take no requests.
    pub parked: u32,
    /// Nodes that could not be ended, and are still there.
    pub stuck: u32,
    /// The mean time of a start, seconds; `None`: none was seen.
    pub start_s: Option<f64>,
    /// CPU time that all its nodes have used since they were ready, seconds; `None`: it cannot tell.
    pub cpu_s: Option<f64>,
    /// Whether nodes may be waiting for processors that others have, so that CPU time says too little.
    pub is_crowded: bool,
    /// Nodes that ran before it began, and serve; `None`: it is not known yet.
    pub found: Option<u32>,
    /// What keeps it from its work, as a sentence that names the remedy.
    pub trouble: Option<String>,
}

/// A provider at work. Dropping `wanted` ends it, and with it the processes that it has started; `task` ends
/// after that. What a program of the operator has started goes on.
#[derive(Debug)]
pub struct Provided {
    /// How many nodes of the provider should serve.
    pub wanted: watch::Sender<u32>,
    /// What it is told of them.
    pub words: mpsc::Sender<NodeWord>,
    /// What it says of them.
    pub events: mpsc::Receiver<NodeEvent>,
    /// What can be seen of it.
    pub view: watch::Receiver<ProviderView>,
    /// The provider itself.
    pub task: JoinHandle<()>,
}

/// The ends of [`Provided`] that a provider holds.
#[derive(Debug)]
pub struct Wires {
    /// How many nodes should serve; an error: it is to end.
    pub wanted: watch::Receiver<u32>,
    /// What it is told of its nodes.
    pub words: mpsc::Receiver<NodeWord>,
    /// Where it says what they do.
    pub events: mpsc::Sender<NodeEvent>,
    /// Where it shows itself.
    pub view: watch::Sender<ProviderView>,
}

/// Who starts and ends nodes.
pub trait Provider: Send {
    /// Returns its name, as settings have it.
    fn name(&self) -> &'static str;

    /// Begins its work, with `wanted` nodes. Must be called inside the runtime that will run it.
    fn begin(self: Box<Self>, wanted: u32) -> Provided;
}

/// Returns the provider that these parameters are of.
pub fn provider(params: &NodesParams) -> Box<dyn Provider> {
    let lifecycle = params.lifecycle;
    match &params.provider {
        ProviderParams::Observe => Box::new(Observe),
        ProviderParams::Processes(params) => Box::new(Processes::new(params.clone(), lifecycle)),
        ProviderParams::Command(params) => Box::new(Hook::new(params.clone(), lifecycle)),
        #[cfg(feature = "kubernetes")]
        ProviderParams::Kubernetes(params) => Box::new(Kubernetes::new(params.clone())),
        #[cfg(not(feature = "kubernetes"))]
        ProviderParams::Kubernetes(_) => Box::new(Absent),
    }
}

/// What stands in for Kubernetes where it was left out.
#[cfg(not(feature = "kubernetes"))]
#[derive(Clone, Copy, Debug)]
struct Absent;

#[cfg(not(feature = "kubernetes"))]
impl Provider for Absent {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn begin(self: Box<Self>, wanted: u32) -> Provided {
        let trouble = "this suimon was built without Kubernetes: build it with --features kubernetes";
        tracing::error!("{trouble}");
        begin(wanted, |mut wires| async move {
            wires.view.send_modify(|view| {
                view.trouble = Some(trouble.to_owned());
                view.found = Some(0);
            });
            while wires.wanted.changed().await.is_ok() {}
        })
    }
}

/// Starts a provider's task between the two ends of its wires.
pub fn begin<T: Future<Output = ()> + Send + 'static>(
    wanted: u32,
    task: impl FnOnce(Wires) -> T,
) -> Provided {
    let (wanted, is_wanted) = watch::channel(wanted);
    let (words, told) = mpsc::channel(WORDS_MAX);
    let (says, events) = mpsc::channel(EVENTS_MAX);
    let (shows, view) = watch::channel(ProviderView::default());
    let wires = Wires { wanted: is_wanted, words: told, events: says, view: shows };
    Provided { wanted, words, events, view, task: tokio::spawn(task(wires)) }
}

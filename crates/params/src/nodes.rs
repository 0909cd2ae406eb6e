//! What is told of nodes that come and go: how many there should be, and who starts them.

use crate::kubernetes::KubernetesParams;
use crate::pool::CommandParams;
use std::path::PathBuf;
use std::time::Duration;
pub use suimon_fleet::lifecycle::LifecycleParams;
pub use suimon_fleet::scaling::{EAGERNESS, ScalingLaw};

/// Nodes that come and go beside those of [`UpstreamParams`](crate::upstream::UpstreamParams), which
/// stay.
#[derive(Clone, PartialEq, Debug)]
pub struct NodesParams {
    /// How their number is found.
    pub law: ScalingLaw,
    /// The fewest nodes, those that stay among them.
    pub least: u32,
    /// The most nodes, those that stay among them; at least `least`.
    pub most: u32,
    /// Who starts and ends them.
    pub provider: ProviderParams,
    /// The life of those that the gateway starts itself.
    pub lifecycle: LifecycleParams,
    /// Processors of a node, so that its CPU time is known as a part of it; above 0.
    pub processors: f64,
}

suimon_model::choices! {
    /// How the number of nodes is found.
    #[derive(Eq)]
    pub enum NodesLaw {
        /// [`ScalingLaw::Demand`].
        Demand = 0, "demand", "by the work that comes and that waits, those in line among it";
        /// [`ScalingLaw::Seed`].
        Seed = 1, "seed", "the paper's rule: by the mean length of the run queues";
        /// [`ScalingLaw::Fixed`].
        Fixed = 2, "fixed", "always count";
    }
}

suimon_model::choices! {
    /// Who starts and ends nodes.
    #[derive(Eq)]
    pub enum ProviderKind {
        /// [`ProviderParams::Observe`].
        Observe = 0, "observe", "nobody: the number is published in state and metrics, for others to act on";
        /// [`ProviderParams::Processes`].
        Processes = 1, "processes", "the gateway, as processes of this machine";
        /// [`ProviderParams::Command`].
        Command = 2, "command", "a program of yours, run with start, stop ADDRESS or list";
        /// [`ProviderParams::Kubernetes`], ordered by the gateway.
        Kubernetes = 3, "kubernetes", "Kubernetes: the endpoints of a Service; the gateway scales their workload";
        /// [`ProviderParams::Kubernetes`], ordered by KEDA.
        Keda = 4, "keda", "Kubernetes: the endpoints of a Service; KEDA asks the gateway for the number and scales their workload";
    }
}

/// Who starts and ends nodes, with what it is told.
#[derive(Clone, PartialEq, Debug)]
pub enum ProviderParams {
    /// Nobody: the number is published, for others to act on.
    Observe,
    /// The gateway, as processes of this machine.
    Processes(ProcessesParams),
    /// A program of the operator.
    Command(HookParams),
    /// Kubernetes.
    Kubernetes(KubernetesParams),
}

/// Nodes that are processes of this machine.
#[derive(Clone, PartialEq, Debug)]
pub struct ProcessesParams {
    /// What is started for each; `{port}` is where it must listen.
    pub command: CommandParams,
    /// The path at which a node answers with success once it is ready; `None`: it is ready once it
    /// accepts connections.
    pub ready_path: Option<String>,
    /// The longest from SIGTERM to SIGKILL.
    pub stop_within: Duration,
    /// Folder of the files with what they say; `None`: it is thrown away.
    pub output: Option<PathBuf>,
}

/// A program that starts and ends nodes. It is run with one more argument:
///
/// - `start`: starts a node and writes its address, such as `http://10.0.0.7:8080`, as its last line;
/// - `stop ADDRESS`: ends this node;
/// - `list`: writes the address of each node that runs, a line each; asked at the start, until it succeeds.
///
/// It ends with exit code 0 once that is done. Nodes go on when the gateway ends.
#[derive(Clone, PartialEq, Debug)]
pub struct HookParams {
    /// The program with its first arguments.
    pub command: CommandParams,
    /// The path at which a node answers with success once it is ready; `None`: it is ready once it
    /// accepts connections.
    pub ready_path: Option<String>,
    /// The longest that `stop` and `list` may run; `start` may take
    /// [`LifecycleParams::start_within`].
    pub within: Duration,
}

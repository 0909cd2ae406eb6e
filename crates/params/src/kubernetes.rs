//! What is told of nodes that Kubernetes starts and ends.

use crate::upstream::Protocol;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The port of the scaler, where nobody says another.
pub const KEDA_PORT: u16 = 9090;
/// The name of the metric, where nobody says another.
pub const KEDA_METRIC: &str = "suimon-nodes-wanted";
/// How long a pod has to end, where its workload does not say it either.
pub const GRACE: Duration = Duration::from_secs(30);

/// Nodes that are the endpoints of a Service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KubernetesParams {
    /// The namespace of all that is named here. `None`: that of the pod, or of the kubeconfig's
    /// context.
    pub namespace: Option<String>,
    /// The Service whose EndpointSlices list the nodes.
    pub service: String,
    /// The name of its port, or the number that its pods listen on. Empty: the only port it has.
    pub port: String,
    /// What is spoken with them, without TLS.
    pub protocol: Protocol,
    /// From the moment a pod is told to end until it is killed: its `terminationGracePeriodSeconds`.
    pub grace: Duration,
    /// A kubeconfig; `None`: the pod's service account, or else `$KUBECONFIG` or
    /// `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// Who makes their number the wanted one.
    pub orders: OrdersParams,
}

impl KubernetesParams {
    /// Returns what is usual: a Deployment named as its Service, which has one port.
    pub fn of(service: &str) -> Self {
        KubernetesParams {
            namespace: None,
            service: service.to_string(),
            port: String::new(),
            protocol: Protocol::Http1,
            grace: GRACE,
            kubeconfig: None,
            orders: OrdersParams::Scale(ScaleParams {
                target: Target::deployment(service),
                lease: format!("suimon-{service}"),
                identity: None,
            }),
        }
    }
}

/// Who makes the number of nodes the wanted one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OrdersParams {
    /// The gateway, by the `scale` subresource of a workload.
    Scale(ScaleParams),
    /// KEDA, which asks the gateway.
    Keda(KedaParams),
}

/// A workload that the gateway scales.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScaleParams {
    /// Which one.
    pub target: Target,
    /// The name of the Lease whose holder, of several gateways, writes the number.
    pub lease: String,
    /// Who we are among them; `None`: the host's name, which is the pod's, and a number.
    pub identity: Option<String>,
}

/// Something with a `scale` subresource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Group and version, such as `apps/v1`.
    pub api_version: String,
    /// Its kind, such as `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl Target {
    /// Returns a Deployment.
    pub fn deployment(name: &str) -> Self {
        Target { api_version: "apps/v1".to_string(), kind: "Deployment".to_string(), name: name.to_string() }
    }

    /// Returns the API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Returns the version within the group.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }
}

/// The scaler that KEDA asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KedaParams {
    /// Where it listens; gRPC without TLS.
    pub listen: SocketAddr,
    /// The name of the metric.
    pub metric: String,
    /// Whether no node at all may be wanted: KEDA then takes the last one away.
    pub zero: bool,
}

impl KedaParams {
    /// Returns a scaler that keeps one node.
    pub fn at(listen: SocketAddr) -> Self {
        KedaParams { listen, metric: KEDA_METRIC.to_string(), zero: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_group_has_no_name() {
        let mut target = Target::deployment("shop");
        assert_eq!((target.group(), target.version()), ("apps", "v1"));
        target.api_version = "v1".to_string();
        assert_eq!((target.group(), target.version()), ("", "v1"));
    }
}

//! What is asked before the gateway serves nodes of Kubernetes.

use suimon_params::nodes::{NodesParams, ProviderParams};

/// Returns why the gateway does not start: somebody else scales the workload, there is no way to the API server, or this
/// program was built without Kubernetes.
pub(super) async fn check(nodes: &NodesParams) -> Result<(), String> {
    check_build(nodes)?;
    match &nodes.provider {
        ProviderParams::Kubernetes(params) => ask(params).await,
        _ => Ok(()),
    }
}

/// Returns why no gateway of this program could serve such nodes: it was built without Kubernetes. Asks nobody.
pub(crate) fn check_build(nodes: &NodesParams) -> Result<(), String> {
    if cfg!(feature = "kubernetes") || !matches!(nodes.provider, ProviderParams::Kubernetes(_)) {
        return Ok(());
    }
    Err("nodes.provider: this suimon was built without Kubernetes; build it with --features kubernetes"
        .to_owned())
}

#[cfg(feature = "kubernetes")]
async fn ask(params: &suimon_params::kubernetes::KubernetesParams) -> Result<(), String> {
    suimon_cluster::check_kubernetes(params.clone()).await.map_err(|refusal| refusal.to_string())
}

#[cfg(not(feature = "kubernetes"))]
async fn ask(_: &suimon_params::kubernetes::KubernetesParams) -> Result<(), String> {
    Ok(())
}

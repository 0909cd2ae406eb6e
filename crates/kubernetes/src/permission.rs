//! What the API server must allow us, and the rules that are missing.

use kube::api::{ApiResource, GroupVersionKind};
use suimon_params::kubernetes::{KubernetesParams, OrdersParams, ScaleParams};

/// Verbs on one kind of object in the namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Need {
    /// The API group; empty for the core group.
    pub(crate) group: String,
    /// The resource, with its subresource where there is one, such as `deployments/scale`.
    pub(crate) resource: String,
    /// The only object that it is done with; `None`: any.
    pub(crate) name: Option<String>,
    /// What is done with it.
    pub(crate) verbs: Vec<&'static str>,
}

impl Need {
    fn new(group: &str, resource: &str, verbs: &[&'static str]) -> Self {
        Need { group: group.to_string(), resource: resource.to_string(), name: None, verbs: verbs.to_vec() }
    }

    fn of(self, name: &str) -> Self {
        Need { name: Some(name.to_string()), ..self }
    }
}

/// Returns all that is needed.
pub(crate) fn needs(params: &KubernetesParams) -> Vec<Need> {
    let mut needs = vec![Need::new("discovery.k8s.io", "endpointslices", &["list", "watch"])];
    let OrdersParams::Scale(ScaleParams { target, lease, .. }) = &params.orders else { return needs };
    let kind = GroupVersionKind::gvk(target.group(), target.version(), &target.kind);
    let plural = ApiResource::from_gvk(&kind).plural;
    needs.extend([
        Need::new(target.group(), &format!("{plural}/scale"), &["get", "patch"]).of(&target.name),
        Need::new("autoscaling", "horizontalpodautoscalers", &["list"]),
        Need::new("keda.sh", "scaledobjects", &["list"]),
        Need::new("coordination.k8s.io", "leases", &["get", "create", "update"]).of(lease),
    ]);
    needs
}

/// Returns a sentence that names each verb, resource, group and the namespace, and the rules to add to the Role.
pub(crate) fn sentence(missing: &[Need], namespace: &str) -> String {
    let what: Vec<String> = missing
        .iter()
        .map(|need| {
            let group = if need.group.is_empty() { "the core API group" } else { &need.group };
            format!("{} {} ({group})", need.verbs.join(" and "), need.resource)
        })
        .collect();
    let rules: Vec<String> = missing.iter().map(rule).collect();
    format!(
        "the API server does not let this service account {} in namespace {namespace}; add to its Role there: {}",
        what.join(", "),
        rules.join(" ")
    )
}

fn rule(need: &Need) -> String {
    let verbs: Vec<String> = need.verbs.iter().map(|verb| format!("\"{verb}\"")).collect();
    format!(
        "- {{apiGroups: [\"{}\"], resources: [\"{}\"], verbs: [{}]}}",
        need.group,
        need.resource,
        verbs.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_params::kubernetes::{KedaParams, Target};

    #[test]
    fn a_missing_rule_is_named_with_verb_resource_group_and_namespace_and_can_be_pasted() {
        let missing = [Need::new("apps", "deployments/scale", &["get", "patch"])];
        assert_eq!(
            sentence(&missing, "web"),
            "the API server does not let this service account get and patch deployments/scale (apps) in namespace web; \
             add to its Role there: - {apiGroups: [\"apps\"], resources: [\"deployments/scale\"], verbs: [\"get\", \"patch\"]}"
        );
    }

    #[test]
    fn what_is_needed_follows_who_orders_and_what() {
        let mut params = KubernetesParams::of("shop");
        let target = Target {
            api_version: "example.com/v1".to_string(),
            kind: "Box".to_string(),
            name: "shop".to_string(),
        };
        params.orders = OrdersParams::Scale(ScaleParams { target, lease: "x".to_string(), identity: None });
        let scale = Need::new("example.com", "boxes/scale", &["get", "patch"]).of("shop");
        assert!(needs(&params).contains(&scale));

        params.orders = OrdersParams::Keda(KedaParams::at("127.0.0.1:0".parse().unwrap()));
        assert_eq!(needs(&params), [Need::new("discovery.k8s.io", "endpointslices", &["list", "watch"])]);
    }
}

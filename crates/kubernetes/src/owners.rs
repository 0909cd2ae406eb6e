//! Who else scales the workload: two masters of one number undo each other's work.

use kube::api::DynamicObject;
use serde_json::Value;
use suimon_params::kubernetes::Target;

/// Somebody who scales the same workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    /// `HorizontalPodAutoscaler` or `ScaledObject`.
    pub(crate) kind: &'static str,
    /// Its name.
    pub(crate) name: String,
}

impl Owner {
    /// Returns what is wrong, and what to do about it.
    pub(crate) fn refusal(&self, target: &Target, namespace: &str) -> String {
        let Owner { kind, name } = self;
        let plural =
            if *kind == "ScaledObject" { "scaledobjects.keda.sh" } else { "horizontalpodautoscalers" };
        format!(
            "{kind} {name} scales {} {} in namespace {namespace}, too, and two scalers would undo each other's work: \
             delete it (kubectl -n {namespace} delete {plural} {name}), or let it scale and set nodes.provider to \
             \"keda\" or \"observe\"",
            target.kind, target.name
        )
    }
}

/// Returns the HorizontalPodAutoscaler that scales this target. One that a ScaledObject has made is told of as that.
pub(crate) fn autoscaler(autoscalers: &[DynamicObject], target: &Target) -> Option<Owner> {
    let found = autoscalers.iter().find(|one| aims_at(&one.data, target, ""))?;
    let maker = found.metadata.owner_references.iter().flatten().find(|maker| maker.kind == "ScaledObject");
    Some(match maker {
        Some(maker) => Owner { kind: "ScaledObject", name: maker.name.clone() },
        None => {
            Owner { kind: "HorizontalPodAutoscaler", name: found.metadata.name.clone().unwrap_or_default() }
        }
    })
}

/// Returns KEDA's ScaledObject that scales this target, whether it is paused or not.
pub(crate) fn scaled_object(objects: &[DynamicObject], target: &Target) -> Option<Owner> {
    let found = objects.iter().find(|one| aims_at(&one.data, target, "apps/v1"))?;
    Some(Owner { kind: "ScaledObject", name: found.metadata.name.clone().unwrap_or_default() })
}

/// Returns whether an object's `scaleTargetRef` is this target. The version does not count: a workload is the same by
/// each. `default`: what a group and version are where none are given; a kind is a Deployment then.
fn aims_at(object: &Value, target: &Target, default: &str) -> bool {
    let reference = &object["spec"]["scaleTargetRef"];
    let word =
        |key: &str, default| reference[key].as_str().filter(|word| !word.is_empty()).unwrap_or(default);
    let group = word("apiVersion", default).split_once('/').map_or("", |(group, _)| group);
    word("name", "") == target.name && word("kind", "Deployment") == target.kind && group == target.group()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(reference: &Value) -> DynamicObject {
        serde_json::from_value(
            json!({ "metadata": { "name": "other" }, "spec": { "scaleTargetRef": reference } }),
        )
        .unwrap()
    }

    #[test]
    fn an_autoscaler_of_the_same_workload_is_found_whatever_its_version() {
        let target = Target::deployment("shop");
        let reference = |version: &str, kind: &str, name: &str| json!({ "apiVersion": version, "kind": kind, "name": name });
        for (reference, is_ours) in [
            (reference("apps/v1", "Deployment", "shop"), true),
            (reference("apps/v1beta2", "Deployment", "shop"), true),
            (reference("apps/v1", "Deployment", "shop-2"), false),
            (reference("apps/v1", "StatefulSet", "shop"), false),
            (reference("example.com/v1", "Deployment", "shop"), false),
        ] {
            assert_eq!(autoscaler(&[object(&reference)], &target).is_some(), is_ours, "{reference}");
        }
    }

    #[test]
    fn a_scaled_object_aims_at_a_deployment_unless_it_says_otherwise() {
        let target = Target::deployment("shop");
        assert!(scaled_object(&[object(&json!({ "name": "shop" }))], &target).is_some());
        let set = json!({ "name": "shop", "kind": "StatefulSet" });
        assert_eq!(scaled_object(&[object(&set)], &target), None);
    }

    #[test]
    fn an_autoscaler_made_by_keda_is_told_of_by_its_maker_with_a_remedy() {
        let target = Target::deployment("shop");
        let mut made = object(&json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "shop" }));
        made.metadata.owner_references = Some(vec![
            serde_json::from_value(
                json!({ "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "by-queue", "uid": "1" }),
            )
            .unwrap(),
        ]);
        let refusal = autoscaler(&[made], &target).unwrap().refusal(&target, "web");
        assert!(refusal.starts_with("ScaledObject by-queue scales Deployment shop in namespace web, too"));
        assert!(refusal.contains("kubectl -n web delete scaledobjects.keda.sh by-queue"));
    }
}

//! The provider with a real API server, which `scripts/test-kubernetes` starts.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

mod cluster;

use cluster::{LONG, Namespace, Provider, folder, kubectl};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use suimon_kubernetes::{Event, Refusal, check};
use suimon_params::kubernetes::{OrdersParams, Target};
use tokio::time::timeout;

fn ready(n: u8) -> Value {
    json!({ "addresses": [format!("10.1.0.{n}")], "conditions": { "ready": true } })
}

fn ending(n: u8, serving: bool) -> Value {
    let conditions = json!({ "ready": false, "serving": serving, "terminating": true });
    json!({ "addresses": [format!("10.1.0.{n}")], "conditions": conditions })
}

fn at(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 1, 0, n], 8080))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-kubernetes"]
async fn the_wanted_number_becomes_the_replicas_up_and_down_and_stays() {
    let namespace = Namespace::with_shop(2);
    namespace.slice("shop-a", &json!([ready(1)]));
    let mut provider = Provider::of(&namespace);
    assert_eq!(provider.next_node().await, Event::Ready { address: at(1) });
    provider.wanted.send(5).unwrap();
    namespace.until_replicas(5).await;
    provider.wanted.send(3).unwrap();
    namespace.until_replicas(3).await;
    // Somebody else's number does not stay.
    namespace.kubectl(&["scale", "deployment", "shop", "--replicas", "9"]).unwrap();
    namespace.until_replicas(3).await;
    provider.wanted.send(0).unwrap();
    namespace.until_replicas(0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-kubernetes"]
async fn at_the_start_nothing_is_taken_away() {
    let namespace = Namespace::with_shop(4);
    let provider = Provider::of(&namespace);
    // It holds the Lease, so it could.
    let holder =
        || namespace.kubectl(&["get", "lease", "suimon-shop", "-o", "jsonpath={.spec.holderIdentity}"]);
    let end = Instant::now() + LONG;
    while holder() != Ok("one".to_string()) {
        assert!(Instant::now() < end, "nobody holds the Lease");
    }
    // Longer than a look takes.
    assert!(timeout(Duration::from_secs(12), std::future::pending::<()>()).await.is_err());
    assert_eq!(namespace.replicas(), 4);
    provider.wanted.send(5).unwrap();
    namespace.until_replicas(5).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-kubernetes"]
async fn a_stateful_set_is_scaled_like_a_deployment() {
    let namespace = Namespace::empty();
    namespace.apply(&json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "shop" },
        "spec": {
            "replicas": 1, "serviceName": "shop", "selector": { "matchLabels": { "app": "shop" } },
            "template": {
                "metadata": { "labels": { "app": "shop" } },
                "spec": { "containers": [{ "name": "shop", "image": "shop" }] },
            },
        },
    }));
    let role = json!([{ "op": "add", "path": "/rules/-", "value":
        { "apiGroups": ["apps"], "resources": ["statefulsets/scale"], "verbs": ["get", "patch"] } }]);
    namespace.kubectl(&["patch", "role", "suimon", "--type=json", "-p", &role.to_string()]).unwrap();
    let provider = Provider::start(&namespace, "gateway", "one", |params| {
        let OrdersParams::Scale(scale) = &mut params.orders else { panic!("not ours to order") };
        scale.target = Target { kind: "StatefulSet".to_string(), ..Target::deployment("shop") };
    });
    provider.wanted.send(3).unwrap();
    let replicas = || namespace.kubectl(&["get", "statefulset", "shop", "-o", "jsonpath={.spec.replicas}"]);
    let end = Instant::now() + LONG;
    while replicas() != Ok("3".to_string()) {
        assert!(Instant::now() < end, "not scaled");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-kubernetes"]
async fn a_workload_that_an_autoscaler_scales_is_refused_at_the_start() {
    let namespace = Namespace::with_shop(2);
    namespace.apply(&namespace.autoscaler());
    let refusal = check(cluster::params(&namespace, "gateway", "one")).await.unwrap_err();
    let Refusal::Owned(why) = &refusal else { panic!("{refusal}") };
    assert!(why.starts_with("HorizontalPodAutoscaler by-cpu scales Deployment shop in namespace"), "{why}");
    assert!(why.contains("delete it (kubectl -n "), "{why}");

    // One that has begun nevertheless finds nodes, and orders nothing.
    let mut provider = Provider::of(&namespace);
    provider.wanted.send(5).unwrap();
    provider.trouble("HorizontalPodAutoscaler by-cpu scales Deployment shop").await;
    assert_eq!(namespace.replicas(), 2);
    namespace.kubectl(&["delete", "horizontalpodautoscaler", "by-cpu"]).unwrap();
    assert_eq!(check(cluster::params(&namespace, "gateway", "one")).await, Ok(()));
    namespace.until_replicas(5).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-kubernetes"]
async fn a_workload_that_a_scaled_object_scales_is_refused_at_the_start() {
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "scaledobjects.keda.sh" },
        "spec": {
            "group": "keda.sh", "scope": "Namespaced",
            "names": { "kind": "ScaledObject", "plural": "scaledobjects", "singular": "scaledobject" },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "schema": { "openAPIV3Schema": anything },
            }],
        },
    });
    kubectl(&["apply", "-f", "-"], Some(&definition)).unwrap();
    let end = Instant::now() + LONG;
    while kubectl(&["get", "scaledobjects.keda.sh"], None).is_err() {
        assert!(Instant::now() < end, "no such kind");
    }
    let namespace = Namespace::with_shop(2);
    namespace.apply(&json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": { "name": "by-queue" },
        "spec": { "scaleTargetRef": { "name": "shop" }, "triggers": [] },
    }));
    let refusal = check(cluster::params(&namespace, "gateway", "one")).await.unwrap_err();
    assert!(refusal.to_string().starts_with("ScaledObject by-queue scales Deployment shop"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-kubernetes"]
async fn an_autoscaler_that_appears_later_stops_the_orders_until_it_is_gone() {
    let namespace = Namespace::with_shop(2);
    namespace.slice("shop-a", &json!([ready(1)]));
    let mut provider = Provider::of(&namespace);
    provider.wanted.send(3).unwrap();
    namespace.until_replicas(3).await;
    namespace.apply(&namespace.autoscaler());
    provider.trouble("HorizontalPodAutoscaler by-cpu scales Deployment shop").await;
    provider.wanted.send(7).unwrap();
    // Nodes are still told of.
    namespace.slice("shop-a", &json!([ready(1), ready(2)]));
    while provider.next_node().await != (Event::Ready { address: at(2) }) {}
    assert_eq!(namespace.replicas(), 3);
    namespace.kubectl(&["delete", "horizontalpodautoscaler", "by-cpu"]).unwrap();
    provider.well().await;
    namespace.until_replicas(7).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-kubernetes"]
async fn nodes_come_drain_and_go_with_their_endpoints() {
    let namespace = Namespace::with_shop(2);
    namespace.slice("shop-a", &json!([ready(1)]));
    let mut provider = Provider::of(&namespace);
    assert_eq!(provider.next_node().await, Event::Ready { address: at(1) });
    namespace.slice("shop-b", &json!([ready(2)]));
    assert_eq!(provider.next_node().await, Event::Ready { address: at(2) });

    let before = Instant::now();
    namespace.slice("shop-a", &json!([ending(1, true)]));
    let Event::Draining { address, until: Some(until) } = provider.next_node().await else {
        panic!("not draining")
    };
    assert_eq!(address, at(1));
    let grace = until.duration_since(before);
    assert!((Duration::from_secs(30)..LONG).contains(&grace), "{grace:?}");

    namespace.slice("shop-a", &json!([]));
    assert_eq!(provider.next_node().await, Event::Gone { address: at(1) });
    namespace.kubectl(&["delete", "endpointslice", "shop-b"]).unwrap();
    assert_eq!(provider.next_node().await, Event::Gone { address: at(2) });
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-kubernetes"]
async fn a_role_that_is_missing_is_named_rule_by_rule_and_what_it_allows_is_done_once_it_is_there() {
    let namespace = Namespace::with_shop(2);
    namespace.slice("shop-a", &json!([ready(1)]));
    let mut provider = Provider::start(&namespace, "nobody", "one", |_| {});
    provider.wanted.send(4).unwrap();
    let sentence = provider.trouble("add to its Role there").await;
    for rule in [
        "{apiGroups: [\"discovery.k8s.io\"], resources: [\"endpointslices\"], verbs: [\"list\", \"watch\"]}",
        "{apiGroups: [\"apps\"], resources: [\"deployments/scale\"], verbs: [\"get\", \"patch\"]}",
        "{apiGroups: [\"autoscaling\"], resources: [\"horizontalpodautoscalers\"], verbs: [\"list\"]}",
        "{apiGroups: [\"keda.sh\"], resources: [\"scaledobjects\"], verbs: [\"list\"]}",
        "{apiGroups: [\"coordination.k8s.io\"], resources: [\"leases\"], verbs: [\"get\", \"create\", \"update\"]}",
    ] {
        assert!(sentence.contains(rule), "{rule} is not in {sentence}");
    }
    assert!(sentence.contains(&format!("in namespace {}", namespace.0)), "{sentence}");
    assert_eq!(namespace.replicas(), 2);

    namespace.allow("nobody");
    assert_eq!(provider.next_node().await, Event::Ready { address: at(1) });
    namespace.until_replicas(4).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-kubernetes"]
async fn one_rule_that_is_missing_is_the_only_one_named() {
    let namespace = Namespace::with_shop(2);
    let remove = json!([{ "op": "test", "path": "/rules/1/resources/0", "value": "deployments/scale" },
        { "op": "replace", "path": "/rules/1/verbs", "value": ["get"] }]);
    namespace.kubectl(&["patch", "role", "suimon", "--type=json", "-p", &remove.to_string()]).unwrap();
    let mut provider = Provider::of(&namespace);
    let sentence = provider.trouble("add to its Role there").await;
    assert!(
        sentence.contains("this service account patch deployments/scale (apps) in namespace"),
        "{sentence}"
    );
    assert!(
        sentence
            .ends_with("- {apiGroups: [\"apps\"], resources: [\"deployments/scale\"], verbs: [\"patch\"]}")
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-kubernetes"]
async fn of_two_gateways_one_writes_and_the_other_takes_over_when_it_ends() {
    let namespace = Namespace::with_shop(2);
    let one = Provider::start(&namespace, "gateway", "one", |_| {});
    one.wanted.send(4).unwrap();
    namespace.until_replicas(4).await;
    let two = Provider::start(&namespace, "gateway", "two", |_| {});
    two.wanted.send(6).unwrap();
    one.wanted.send(5).unwrap();
    namespace.until_replicas(5).await;
    let holder =
        || namespace.kubectl(&["get", "lease", "suimon-shop", "-o", "jsonpath={.spec.holderIdentity}"]);
    assert_eq!(holder().unwrap(), "one");

    drop(one.wanted);
    timeout(LONG, one.running).await.unwrap().unwrap().unwrap();
    namespace.until_replicas(6).await;
    assert_eq!(holder().unwrap(), "two");

    // One that dies gives nothing back: its Lease runs out.
    two.running.abort();
    let three = Provider::start(&namespace, "gateway", "three", |_| {});
    three.wanted.send(7).unwrap();
    namespace.until_replicas(7).await;
    assert_eq!(holder().unwrap(), "three");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-kubernetes"]
async fn a_service_and_a_workload_that_are_not_there_are_named() {
    let namespace = Namespace::empty();
    let mut provider = Provider::of(&namespace);
    provider.trouble("Service shop has no EndpointSlice").await;
    provider.trouble("there is no Deployment shop with a scale subresource in namespace").await;
    namespace.slice("shop-a", &json!([ready(1)]));
    assert_eq!(provider.next_node().await, Event::Ready { address: at(1) });
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-kubernetes"]
async fn while_the_api_server_away_nothing_changes_and_afterwards_all_goes_on() {
    let namespace = Namespace::with_shop(2);
    namespace.slice("shop-a", &json!([ready(1), ready(2)]));
    let mut provider = Provider::of(&namespace);
    provider.wanted.send(3).unwrap();
    assert_eq!(provider.next_node().await, Event::Ready { address: at(1) });
    assert_eq!(provider.next_node().await, Event::Ready { address: at(2) });
    namespace.until_replicas(3).await;
    while provider.events.try_recv().is_ok() {}

    fs::write(folder().join("hold"), "").unwrap();
    let server = fs::read_to_string(folder().join("apiserver.pid")).unwrap();
    assert!(std::process::Command::new("kill").args(["-9", server.trim()]).status().unwrap().success());
    provider.wanted.send(5).unwrap();
    let mut said = Vec::new();
    let _ = timeout(Duration::from_secs(30), async {
        while let Some(event) = provider.events.recv().await {
            said.push(event);
        }
    })
    .await;
    let [Event::Trouble(sentence)] = said.as_slice() else { panic!("{said:?}") };
    assert!(sentence.starts_with("the API server does not answer ("), "{sentence}");
    assert!(sentence.contains("the nodes and their number stay as they are until it does"), "{sentence}");

    fs::remove_file(folder().join("hold")).unwrap();
    assert_eq!(provider.next().await, Event::Well);
    namespace.until_replicas(5).await;
    namespace.slice("shop-a", &json!([ready(2), ready(3)]));
    assert_eq!(provider.next_node().await, Event::Gone { address: at(1) });
    assert_eq!(provider.next_node().await, Event::Ready { address: at(3) });
}

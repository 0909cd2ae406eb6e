//! The scaler with KEDA itself and the autoscaler of Kubernetes, which `scripts/test-keda` starts.

#![allow(clippy::unwrap_used, dead_code, reason = "helpers of tests, which clippy does not take for tests")]

mod cluster;

use cluster::Namespace;
use std::fs;
use suimon_kubernetes::Keda;
use suimon_params::kubernetes::KedaParams;
use tokio::sync::watch;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/kubernetes/keda/scaled-object.yaml");

struct Scaled {
    namespace: Namespace,
    wanted: watch::Sender<Option<u32>>,
}

/// Starts a scaler, and lets KEDA scale a Deployment by the example of `deploy/`, with changes to its text.
async fn scaled(replicas: u32, zero: bool, change: impl Fn(String) -> String) -> Scaled {
    let (wanted, told) = watch::channel(None);
    let params = KedaParams { zero, ..KedaParams::at("127.0.0.1:0".parse().unwrap()) };
    let keda = Keda::bind(params).await.unwrap();
    let address = keda.address().unwrap();
    tokio::spawn(keda.run(told));

    let namespace = Namespace::with_shop(replicas);
    let example = fs::read_to_string(EXAMPLE).unwrap();
    let text = change(example.replace("suimon-keda:9090", &address.to_string()));
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    namespace.kubectl(&["apply", "-f", file.path().to_str().unwrap()]).unwrap();
    Scaled { namespace, wanted }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-keda"]
async fn the_replicas_become_the_wanted_number_and_no_other() {
    let scaled = scaled(2, false, |text| text).await;
    // Thirteen of twelve are within the usual tolerance.
    for wanted in [3, 12, 13, 12, 30, 2] {
        scaled.wanted.send(Some(wanted)).unwrap();
        scaled.namespace.until_replicas(wanted).await;
        println!("{wanted} replicas");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs scripts/test-keda"]
async fn the_last_one_goes_where_that_is_asked_for_and_comes_back_at_once() {
    let none = |text: String| text.replace("minReplicaCount: 1", "minReplicaCount: 0\n  cooldownPeriod: 1");
    let scaled = scaled(2, true, none).await;
    scaled.wanted.send(Some(1)).unwrap();
    scaled.namespace.until_replicas(1).await;
    scaled.wanted.send(Some(0)).unwrap();
    scaled.namespace.until_replicas(0).await;
    scaled.wanted.send(Some(4)).unwrap();
    scaled.namespace.until_replicas(4).await;
}

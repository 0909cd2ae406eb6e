//! `suimon serve` whose nodes are the endpoints of a Service of a real API server, which `scripts/test-kubernetes`
//! starts. No pod runs there: the endpoints are servers of this machine, at an address that is not a loopback's, as an
//! EndpointSlice takes none.

#![cfg(feature = "kubernetes")]
#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;

use common::{Gateway, file, get, run, try_get, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a node computes for a page.
const BUSY: Duration = Duration::from_millis(5);

fn cluster() -> PathBuf {
    std::env::var_os("SUIMON_CLUSTER").expect("run scripts/test-kubernetes").into()
}

fn kubectl(words: &[&str], input: &Value) -> String {
    let mut child =
        Command::new("kubectl").args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "kubectl {words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A namespace with a Deployment `shop`.
struct Site {
    namespace: String,
    folder: tempfile::TempDir,
}

impl Site {
    fn new(namespace: &str, replicas: u32) -> Site {
        let namespace = format!("{namespace}-{}", std::process::id());
        kubectl(&["create", "namespace", &namespace], &Value::Null);
        let site = Site { namespace, folder: tempfile::tempdir().unwrap() };
        site.apply(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "shop" },
            "spec": {
                "replicas": replicas, "selector": { "matchLabels": { "app": "shop" } },
                "template": {
                    "metadata": { "labels": { "app": "shop" } },
                    "spec": { "containers": [{ "name": "shop", "image": "shop" }] },
                },
            },
        }));
        site
    }

    fn apply(&self, object: &Value) {
        kubectl(&["-n", &self.namespace, "apply", "-f", "-"], object);
    }

    /// Writes the endpoints of the Service `shop`, as its controller would: a slice for each, as each has a port of its
    /// own here.
    fn endpoint(&self, name: &str, node: SocketAddr, is_ending: bool) {
        self.apply(&json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": { "name": name, "labels": { "kubernetes.io/service-name": "shop" } },
            "endpoints": [{
                "addresses": [node.ip()],
                "conditions": { "ready": !is_ending, "serving": true, "terminating": is_ending },
            }],
            "ports": [{ "name": "http", "port": node.port() }],
        }));
    }

    fn replicas(&self) -> String {
        let path = "jsonpath={.spec.replicas}";
        kubectl(&["-n", &self.namespace, "get", "deployment", "shop", "-o", path], &Value::Null)
    }

    fn settings(&self, nodes: &str) -> String {
        let kubeconfig = cluster().join("admin.yaml");
        let settings = format!(
            "[nodes]\nprovider = \"kubernetes\"\n{nodes}\n[nodes.kubernetes]\nservice = \"shop\"\nport = \"http\"\n\
             namespace = \"{}\"\nkubeconfig = \"{}\"\n",
            self.namespace,
            kubeconfig.display()
        );
        file(&self.folder, "suimon.toml", &settings)
    }
}

/// Starts a server that answers with its name.
fn node(name: &'static str) -> SocketAddr {
    let outwards = UdpSocket::bind("0.0.0.0:0").unwrap();
    outwards.connect("192.0.2.1:9").unwrap();
    let listener = TcpListener::bind((outwards.local_addr().unwrap().ip(), 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                // So that another node is less busy.
                let began = Instant::now();
                while began.elapsed() < BUSY {}
                let length = name.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{name}"
                );
            });
        }
    });
    address
}

/// Waits until exactly these nodes answer.
fn until_answer(gateway: &Gateway, names: &[&str]) {
    let wanted: BTreeSet<String> = names.iter().map(ToString::to_string).collect();
    until("those nodes answer, and no other", || {
        let clients = gateway.clients;
        let asked: Vec<_> = (0..12).map(|_| thread::spawn(move || try_get(clients, "/"))).collect();
        let page = |answer: std::io::Result<(u16, String)>| {
            answer.ok().filter(|(status, _)| *status == 200).map(|(_, page)| page)
        };
        let answers: Vec<_> = asked.into_iter().map(|asked| asked.join().unwrap()).collect();
        let pages: Option<BTreeSet<String>> = answers.into_iter().map(page).collect();
        pages == Some(wanted.clone())
    });
}

#[test]
#[ignore = "needs scripts/test-kubernetes"]
fn pods_serve_come_and_drain_and_the_wanted_number_is_ordered() {
    let site = Site::new("serve", 1);
    let (one, two) = (node("one"), node("two"));
    site.endpoint("shop-1", one, false);
    let settings = site.settings("law = \"fixed\"\ncount = 2\nmin = 1");
    let gateway = Gateway::start(&["--config", &settings, "--learned", "none"]);
    until_answer(&gateway, &["one"]);
    until("the number is ordered", || site.replicas() == "2");
    site.endpoint("shop-2", two, false);
    until_answer(&gateway, &["one", "two"]);
    let state = || serde_json::from_str::<Value>(&get(gateway.admin, "/api/state").1).unwrap();
    until("both are counted", || state()["scaling"]["serving"] == 2);
    assert_eq!(state()["scaling"]["provider"], "kubernetes");

    site.endpoint("shop-1", one, true);
    until_answer(&gateway, &["two"]);
    site.endpoint("shop-1", one, false);
    until_answer(&gateway, &["one", "two"]);
    gateway.process.finish();
    assert_eq!(site.replicas(), "2", "the number outlives the gateway");
}

#[test]
#[ignore = "needs scripts/test-kubernetes"]
fn a_gateway_that_is_started_anew_takes_no_pod_away() {
    let site = Site::new("anew", 2);
    for (name, node) in [("shop-1", node("one")), ("shop-2", node("two"))] {
        site.endpoint(name, node, false);
    }
    let settings = site.settings("min = 1\nmax = 5");
    let gateway = Gateway::start(&["--config", &settings, "--learned", "none"]);
    until_answer(&gateway, &["one", "two"]);
    let holder =
        ["-n", &site.namespace, "get", "lease", "suimon-shop", "-o", "jsonpath={.spec.holderIdentity}"];
    until("it could", || {
        Command::new("kubectl").args(holder).output().is_ok_and(|said| !said.stdout.is_empty())
    });
    let wanted = || get(gateway.admin, "/metrics").1.contains("suimon_nodes_wanted 2\n");
    until("two are wanted, as there were", wanted);
    assert_eq!(site.replicas(), "2");
}

#[test]
#[ignore = "needs scripts/test-kubernetes"]
fn it_does_not_start_beside_an_autoscaler() {
    let site = Site::new("owned", 2);
    site.apply(&json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "by-cpu" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "shop" },
            "minReplicas": 1, "maxReplicas": 9,
        },
    }));
    let ran =
        run(&["serve", "--config", &site.settings(""), "--listen", "127.0.0.1:0", "--lease-keys", "none"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("HorizontalPodAutoscaler by-cpu scales Deployment shop"), "{}", ran.err);
}

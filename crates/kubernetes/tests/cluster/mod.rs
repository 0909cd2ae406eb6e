//! A namespace of a real API server, and a provider that runs in it.

use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use suimon_kubernetes::{Event, Refusal, run};
use suimon_params::kubernetes::{KubernetesParams, OrdersParams, ScaleParams, Target};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Longer than anything takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Returns the folder that `scripts/test-kubernetes` has filled.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("SUIMON_CLUSTER").expect("run scripts/test-kubernetes").into()
}

/// Asks the API server as an administrator; returns what it printed, or what it complained of.
pub(crate) fn kubectl(words: &[&str], input: Option<&Value>) -> Result<String, String> {
    let mut child = Command::new("kubectl")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let text = input.map(Value::to_string).unwrap_or_default();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let print = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(print(output.stdout)) } else { Err(print(output.stderr)) }
}

/// A namespace of its own.
pub(crate) struct Namespace(pub(crate) String);

impl Namespace {
    /// Makes one with a Deployment `shop` of this many replicas and a Service `shop` with the port `http`.
    pub(crate) fn with_shop(replicas: u32) -> Self {
        let namespace = Namespace::empty();
        let pod = json!({
            "metadata": { "labels": { "app": "shop" } },
            "spec": { "containers": [{ "name": "shop", "image": "shop" }] },
        });
        namespace.apply(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "shop" },
            "spec": { "replicas": replicas, "selector": { "matchLabels": { "app": "shop" } }, "template": pod },
        }));
        namespace
    }

    /// Makes one with nothing in it that the gateway may not do.
    pub(crate) fn empty() -> Self {
        let namespace = Namespace::without_role();
        namespace.allow("gateway");
        namespace
    }

    /// Makes one in which only the administrator may anything.
    pub(crate) fn without_role() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        kubectl(&["create", "namespace", &name], None).unwrap();
        Namespace(name)
    }

    /// Lets a user do what the Role of `deploy/` says.
    pub(crate) fn allow(&self, user: &str) {
        let role = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/kubernetes/base/role.yaml");
        self.kubectl(&["apply", "-f", role]).unwrap();
        self.apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": user },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "suimon" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        }));
    }

    pub(crate) fn kubectl(&self, words: &[&str]) -> Result<String, String> {
        kubectl(&[&["-n", &self.0], words].concat(), None)
    }

    pub(crate) fn apply(&self, object: &Value) {
        kubectl(&["-n", &self.0, "apply", "-f", "-"], Some(object)).unwrap();
    }

    /// Writes an EndpointSlice of the Service `shop` as its controller would.
    pub(crate) fn slice(&self, name: &str, endpoints: &Value) {
        self.apply(&json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": { "name": name, "labels": { "kubernetes.io/service-name": "shop" } },
            "endpoints": endpoints, "ports": [{ "name": "http", "port": 8080 }],
        }));
    }

    /// Returns the number of replicas that are wanted of the Deployment.
    pub(crate) fn replicas(&self) -> u32 {
        let path = "jsonpath={.spec.replicas}";
        self.kubectl(&["get", "deployment", "shop", "-o", path]).unwrap().parse().unwrap()
    }

    /// Waits until the Deployment has this many replicas.
    pub(crate) async fn until_replicas(&self, wanted: u32) {
        let end = Instant::now() + LONG;
        let mut last = self.replicas();
        while last != wanted {
            assert!(Instant::now() < end, "{last} replicas, not {wanted}");
            // Asking takes a process, which is pause enough.
            last = self.replicas();
        }
    }

    /// Returns an autoscaler of the Deployment.
    pub(crate) fn autoscaler(&self) -> Value {
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "by-cpu" },
            "spec": {
                "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "shop" },
                "minReplicas": 1, "maxReplicas": 9,
            },
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // No controller empties a namespace here; those are gone with the API server.
        let _ = kubectl(&["delete", "namespace", &self.0, "--wait=false"], None);
    }
}

/// Returns what is told to a gateway that asks as `user`, and is called `me` among others.
pub(crate) fn params(namespace: &Namespace, user: &str, me: &str) -> KubernetesParams {
    let mut params = KubernetesParams::of("shop");
    params.namespace = Some(namespace.0.clone());
    params.port = "http".to_string();
    params.orders = OrdersParams::Scale(ScaleParams {
        target: Target::deployment("shop"),
        lease: "suimon-shop".to_string(),
        identity: Some(me.to_string()),
    });
    params.kubeconfig = Some(folder().join(format!("{user}.yaml")));
    params
}

/// A provider that runs.
pub(crate) struct Provider {
    pub(crate) wanted: watch::Sender<u32>,
    pub(crate) events: mpsc::Receiver<Event>,
    pub(crate) running: JoinHandle<Result<(), Refusal>>,
}

impl Provider {
    pub(crate) fn of(namespace: &Namespace) -> Self {
        Provider::start(namespace, "gateway", "one", |_| {})
    }

    /// Starts one that asks as `user`, and is called `me` among others.
    pub(crate) fn start(
        namespace: &Namespace,
        user: &str,
        me: &str,
        change: impl FnOnce(&mut KubernetesParams),
    ) -> Self {
        let mut params = params(namespace, user, me);
        change(&mut params);
        let (wanted, told) = watch::channel(0);
        let (tell, events) = mpsc::channel(16);
        Provider { wanted, events, running: tokio::spawn(run(params, told, tell)) }
    }

    /// Returns the next event.
    pub(crate) async fn next(&mut self) -> Event {
        let end = Instant::now() + LONG;
        timeout_at(end, self.events.recv()).await.expect("an event").expect("a provider that runs")
    }

    /// Returns the next event of a node.
    pub(crate) async fn next_node(&mut self) -> Event {
        loop {
            match self.next().await {
                Event::Trouble(_) | Event::Well | Event::Found(_) => {}
                event => return event,
            }
        }
    }

    /// Waits for a trouble with these words in it.
    pub(crate) async fn trouble(&mut self, words: &str) -> String {
        loop {
            if let Event::Trouble(sentence) = self.next().await
                && sentence.contains(words)
            {
                return sentence;
            }
        }
    }

    /// Waits until nothing is amiss.
    pub(crate) async fn well(&mut self) {
        while self.next().await != Event::Well {}
    }
}

//! The provider with answers of an API server that a real one gives seldom: news that have expired, and a workload that
//! somebody else changes between a look and a write.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use suimon_kubernetes::contract::{GetMetricsRequest, GetMetricsResponse, SERVICE};
use suimon_kubernetes::{Event, run};
use suimon_params::kubernetes::{KedaParams, KubernetesParams, OrdersParams};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(20);

/// What is answered, and what was asked.
#[derive(Default)]
struct Script {
    /// Answers to lists of EndpointSlices; the last one stays.
    lists: VecDeque<Value>,
    /// Answers to watches of them; without one, a watch stays open.
    watches: VecDeque<Value>,
    /// Versions that were watched from.
    watched: Vec<String>,
    /// How many writes of the number meet a conflict.
    conflicts: u32,
    /// The number and the version of the workload.
    replicas: (u64, u64),
    /// The versions that writes asked for.
    writes: Vec<String>,
}

type Shared = Arc<Mutex<Script>>;

async fn answer(script: Shared, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let path = head.uri.path().to_string();
    let query = head.uri.query().unwrap_or_default().to_string();
    let is_watch = path.ends_with("/endpointslices") && query.contains("watch=true");
    if is_watch {
        let from =
            query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion=")).unwrap_or_default();
        script.lock().unwrap().watched.push(from.to_string());
        let news = script.lock().unwrap().watches.pop_front();
        return match news {
            Some(news) => reply(200, &news),
            None => std::future::pending().await,
        };
    }
    let mut script = script.lock().unwrap();
    if path.ends_with("/endpointslices") {
        let last = script.lists.len() == 1;
        let list = if last { script.lists.front().cloned() } else { script.lists.pop_front() };
        return reply(200, &list.unwrap());
    }
    if path.ends_with("/selfsubjectaccessreviews") {
        let mut review: Value = serde_json::from_slice(&body).unwrap();
        review["status"] = json!({ "allowed": true });
        return reply(201, &review);
    }
    if path.contains("/leases") {
        return lease(&head.method, &body);
    }
    if path.ends_with("/scale") {
        return scale(&mut script, &head.method, &body);
    }
    reply(200, &json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": [] }))
}

fn lease(method: &Method, body: &[u8]) -> Response<Full<Bytes>> {
    if method == Method::GET {
        return failure(404);
    }
    let mut lease: Value = serde_json::from_slice(body).unwrap();
    lease["metadata"]["resourceVersion"] = json!("1");
    reply(201, &lease)
}

fn scale(script: &mut Script, method: &Method, body: &[u8]) -> Response<Full<Bytes>> {
    if method == Method::PATCH {
        let patch: Value = serde_json::from_slice(body).unwrap();
        script.writes.push(patch["metadata"]["resourceVersion"].as_str().unwrap().to_string());
        if script.conflicts > 0 {
            script.conflicts -= 1;
            script.replicas.1 += 1;
            return failure(409);
        }
        script.replicas = (patch["spec"]["replicas"].as_u64().unwrap(), script.replicas.1 + 1);
    }
    let (replicas, version) = script.replicas;
    reply(
        200,
        &json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": { "name": "shop", "resourceVersion": version.to_string() },
            "spec": { "replicas": replicas },
        }),
    )
}

fn reply(status: u16, body: &Value) -> Response<Full<Bytes>> {
    let body = Full::new(Bytes::from(format!("{body}\n")));
    Response::builder().status(status).header("content-type", "application/json").body(body).unwrap()
}

fn failure(code: u16) -> Response<Full<Bytes>> {
    let status =
        json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": "no" });
    reply(code, &status)
}

async fn serve(script: Shared) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let script = Arc::clone(&script);
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let script = Arc::clone(&script);
                    async move { Ok::<_, Infallible>(answer(script, request).await) }
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    address
}

/// A provider that asks a server with this script; the file is its kubeconfig.
struct Provider {
    wanted: watch::Sender<u32>,
    events: mpsc::Receiver<Event>,
    _kubeconfig: tempfile::NamedTempFile,
}

async fn provider(script: &Shared) -> Provider {
    provider_of(script, |_| {}).await
}

async fn provider_of(script: &Shared, change: impl FnOnce(&mut KubernetesParams)) -> Provider {
    let server = serve(Arc::clone(script)).await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test", "namespace": "web" } }],
        "clusters": [{ "name": "test", "cluster": { "server": format!("http://{server}") } }],
        "users": [{ "name": "test", "user": {} }],
    });
    file.write_all(config.to_string().as_bytes()).unwrap();
    let mut params = KubernetesParams::of("shop");
    params.kubeconfig = Some(file.path().to_path_buf());
    change(&mut params);
    let (wanted, told) = watch::channel(0);
    let (tell, events) = mpsc::channel(16);
    tokio::spawn(run(params, told, tell));
    Provider { wanted, events, _kubeconfig: file }
}

fn slice(version: u32, hosts: &[u8]) -> Value {
    let endpoints: Vec<Value> =
        hosts.iter().map(|n| json!({ "addresses": [format!("10.1.0.{n}")] })).collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": "shop-a", "resourceVersion": version.to_string() },
        "endpoints": endpoints, "ports": [{ "name": "http", "port": 8080 }],
    })
}

fn list(version: u32, hosts: &[u8]) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSliceList",
        "metadata": { "resourceVersion": version.to_string() }, "items": [slice(version, hosts)],
    })
}

fn at(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 1, 0, n], 8080))
}

async fn next(provider: &mut Provider) -> Event {
    loop {
        let event = timeout(LONG, provider.events.recv()).await.expect("an event");
        match event.expect("a provider that runs") {
            Event::Found(_) => {}
            event => return event,
        }
    }
}

#[tokio::test]
async fn news_that_have_expired_are_made_up_for_by_a_list_that_drops_no_node_that_stayed() {
    let gone =
        json!({ "apiVersion": "v1", "kind": "Status", "code": 410, "message": "too old resource version" });
    let script = Shared::default();
    {
        let mut script = script.lock().unwrap();
        script.lists = VecDeque::from([list(10, &[1, 2]), list(90, &[2, 3])]);
        script.watches = VecDeque::from([json!({ "type": "ERROR", "object": gone })]);
    }
    let mut provider = provider(&script).await;
    assert_eq!(next(&mut provider).await, Event::Ready { address: at(1) });
    assert_eq!(next(&mut provider).await, Event::Ready { address: at(2) });
    assert_eq!(next(&mut provider).await, Event::Gone { address: at(1) });
    assert_eq!(next(&mut provider).await, Event::Ready { address: at(3) });
    timeout(LONG, async {
        while script.lock().unwrap().watched.len() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(script.lock().unwrap().watched, ["10", "90"]);
}

#[tokio::test]
async fn a_watch_that_ends_goes_on_from_the_last_news() {
    let script = Shared::default();
    {
        let mut script = script.lock().unwrap();
        script.lists = VecDeque::from([list(10, &[1])]);
        script.watches = VecDeque::from([json!({ "type": "MODIFIED", "object": slice(17, &[1, 2]) })]);
    }
    let mut provider = provider(&script).await;
    assert_eq!(next(&mut provider).await, Event::Ready { address: at(1) });
    assert_eq!(next(&mut provider).await, Event::Ready { address: at(2) });
    timeout(LONG, async {
        while script.lock().unwrap().watched.len() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(script.lock().unwrap().watched, ["10", "17"]);
}

#[tokio::test]
async fn a_write_that_meets_a_change_by_somebody_else_is_made_again_for_the_new_version() {
    let script = Shared::default();
    {
        let mut script = script.lock().unwrap();
        script.lists = VecDeque::from([list(10, &[1])]);
        script.conflicts = 2;
        script.replicas = (2, 100);
    }
    let provider = provider(&script).await;
    provider.wanted.send(4).unwrap();
    timeout(LONG, async {
        while script.lock().unwrap().replicas.0 != 4 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(script.lock().unwrap().writes, ["100", "101", "102"]);
}

/// Asks the scaler until it knows.
async fn keda_hears(address: SocketAddr) -> i64 {
    let channel =
        tonic::transport::Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let asked = async {
        loop {
            let mut client = tonic::client::Grpc::new(channel.clone());
            if client.ready().await.is_err() {
                continue;
            }
            let path = format!("/{SERVICE}/GetMetrics").parse().unwrap();
            let codec = tonic_prost::ProstCodec::<GetMetricsRequest, GetMetricsResponse>::default();
            let metric_name = "suimon-nodes-wanted".to_string();
            let question = GetMetricsRequest { scaled_object_ref: None, metric_name };
            if let Ok(answer) = client.unary(tonic::Request::new(question), path, codec).await {
                return answer.into_inner().metric_values[0].metric_value;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, asked).await.expect("a number")
}

#[tokio::test]
async fn before_a_number_is_told_keda_hears_what_there_is_and_then_the_number() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let script = Shared::default();
    script.lock().unwrap().lists = VecDeque::from([list(10, &[1, 2, 3])]);
    let keda = OrdersParams::Keda(KedaParams::at(address));
    let provider = provider_of(&script, |params| params.orders = keda).await;
    assert_eq!(keda_hears(address).await, 3);
    provider.wanted.send(2).unwrap();
    timeout(LONG, async { while keda_hears(address).await != 2 {} }).await.unwrap();
}

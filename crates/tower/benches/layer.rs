//! What a request costs behind the layer, beside the same service without one and behind layers of `tower`:
//! `experiments/layer-cost`, which says how to run it.
//!
//! Everything runs on one thread, whose processor time is counted: by itself, and in a server and a client of
//! hyper. All contestants take turns, in an order that changes from round to round.

#![allow(clippy::unwrap_used, reason = "a measurement stops where something is wrong")]

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::process::ExitCode;
use std::task::{Context, Poll};
use std::time::Duration;
use suimon_statistics::median;
use suimon_tower::{Client, Gate};
use tokio::runtime::Runtime;
use tower::layer::util::Identity;
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::util::BoxCloneService;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

/// Visitors, each with a session cookie of the application.
const VISITORS: usize = 256;
/// More than are ever in flight: nobody waits.
const LIMIT: usize = 1024;
/// What a request may cost more than without a layer, microseconds.
const ADDED_MAX: f64 = 5.0;

const NAMES: [&str; 6] = [
    "no layer",
    "no-op layer",
    "ConcurrencyLimit",
    "LoadShed and ConcurrencyLimit",
    "gate, no sessions",
    "gate, sessions",
];
/// The one that the others are compared with, and the one that must not cost too much.
const NO_LAYER: usize = 0;
const GATE: usize = 5;

const SESSIONS: &str = "[[session]]\nkind = \"visit\"\napp_cookie = \"JSESSIONID\"\n";

type AnyError = Box<dyn Error + Send + Sync>;
type Answered = BoxCloneService<Request<Empty<Bytes>>, usize, AnyError>;

/// What a contestant is asked by: itself, and over a connection.
struct Contestant {
    called: Answered,
    connection: SendRequest<Empty<Bytes>>,
}

async fn page<B>(_: Request<B>) -> Result<Response<Full<Bytes>>, Infallible> {
    static PAGE: [u8; 1024] = [b'x'; 1024];
    Ok(Response::builder()
        .header("content-type", "text/html")
        .body(Full::new(Bytes::from_static(&PAGE)))
        .unwrap())
}

/// Makes a contestant of the page behind a layer.
macro_rules! contestant {
    ($layer:expr) => {{
        let layer = $layer;
        let called = ServiceBuilder::new().layer(layer.clone()).service(service_fn(page));
        let served = ServiceBuilder::new().layer(layer).service(service_fn(page));
        Contestant { called: BoxCloneService::new(Reads(called)), connection: connect(served).await }
    }};
}

/// Reads answers to their end, and returns how long they are.
#[derive(Clone)]
struct Reads<S>(S);

impl<S, B, R> Service<Request<B>> for Reads<S>
where
    S: Service<Request<B>, Response = Response<R>, Future: Send + 'static>,
    S::Error: Into<AnyError>,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<AnyError>,
{
    type Response = usize;
    type Error = AnyError;
    type Future = Pin<Box<dyn Future<Output = Result<usize, AnyError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AnyError>> {
        self.0.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move {
            let body = answer.await.map_err(Into::into)?.into_body();
            Ok(body.collect().await.map_err(Into::into)?.to_bytes().len())
        })
    }
}

/// Returns a connection to a server of the service.
async fn connect<S, R>(service: S) -> SendRequest<Empty<Bytes>>
where
    S: Service<Request<hyper::body::Incoming>, Response = Response<R>, Error: Into<AnyError>, Future: Send>
        + Clone
        + Send
        + 'static,
    R: Body<Data = Bytes, Error: Into<AnyError>> + Send + 'static,
{
    let (here, there) = tokio::io::duplex(1 << 16);
    let asked = hyper::service::service_fn(move |mut request: Request<_>| {
        request.extensions_mut().insert(client());
        service.clone().oneshot(request)
    });
    tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(here), asked));
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(there)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn client() -> Client {
    Client { address: [192, 0, 2, 7].into(), is_tls: false }
}

fn request(number: usize) -> Request<Empty<Bytes>> {
    let mut request = Request::get("/items/7")
        .header("host", "shop")
        .header("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
        .header("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
        .header("accept-language", "en-US,en;q=0.5")
        .header("cookie", format!("JSESSIONID=0123456789abcdef{:08x}", number % VISITORS))
        .body(Empty::new())
        .unwrap();
    request.extensions_mut().insert(client());
    request
}

fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns what a request took, microseconds: called, and over the connection.
fn play(runtime: &Runtime, contestant: &mut Contestant, requests: usize) -> [f64; 2] {
    let each = |from: Duration| (used() - from).as_secs_f64() * 1e6 / requests as f64;
    let called = runtime.block_on(async {
        let from = used();
        for number in 0..requests {
            let service = contestant.called.ready().await.unwrap();
            assert_eq!(service.call(request(number)).await.unwrap(), 1024);
        }
        each(from)
    });
    let served = runtime.block_on(async {
        let from = used();
        for number in 0..requests {
            contestant.connection.ready().await.unwrap();
            let answer = contestant.connection.send_request(request(number)).await.unwrap();
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), 1024);
        }
        each(from)
    });
    [called, served]
}

/// What was measured of one contestant, by round: called, and over the connection.
type Costs = Vec<[f64; 2]>;

/// Returns a quantile of what `of` says of each round.
fn quantile(costs: impl Iterator<Item = f64>, at: f64) -> f64 {
    let mut all: Vec<f64> = costs.collect();
    all.sort_by(f64::total_cmp);
    all[((all.len() - 1) as f64 * at).round() as usize]
}

fn main() -> ExitCode {
    // `cargo test --benches` only looks whether it runs.
    let is_quick = !std::env::args().any(|argument| argument == "--bench");
    let (rounds, requests) = if is_quick { (2, 20) } else { (300, 1000) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut contestants = runtime.block_on(async {
        let gate = |settings: &str| {
            let gate = Gate::open(settings).unwrap();
            let layer = gate.layer();
            tokio::spawn(gate.run(std::future::pending()));
            layer
        };
        let limit = ConcurrencyLimitLayer::new(LIMIT);
        vec![
            contestant!(Identity::new()),
            contestant!(NoOp),
            contestant!(limit.clone()),
            contestant!(tower::layer::util::Stack::new(limit, LoadShedLayer::new())),
            contestant!(gate("")),
            contestant!(gate(SESSIONS)),
        ]
    });
    let mut costs: Vec<Costs> = vec![Vec::new(); NAMES.len()];
    for round in 0..rounds {
        for turn in 0..NAMES.len() {
            // Steps of 1 and 5 are those that come to all six.
            let at = (turn * if round % 2 == 0 { 1 } else { 5 } + round) % NAMES.len();
            costs[at].push(play(&runtime, &mut contestants[at], requests));
        }
    }
    report(&costs, rounds, requests);
    let added: Vec<f64> = (0..rounds).map(|it| costs[GATE][it][0] - costs[NO_LAYER][it][0]).collect();
    let holds = is_quick || median(&added) <= ADDED_MAX;
    println!(
        "\na request costs at most {ADDED_MAX} µs more with the gate: {}",
        if holds { "holds" } else { "DOES NOT HOLD" }
    );
    ExitCode::from(u8::from(!holds))
}

fn report(costs: &[Costs], rounds: usize, requests: usize) {
    println!(
        "µs of processor per request; median of {rounds} rounds of {requests} requests, quartiles of what is added\n"
    );
    println!(
        "| | called | added | quartiles | over HTTP/1.1 | added | quartiles | times no layer |\n|---|--:|--:|---|--:|--:|---|--:|"
    );
    let mut rows = Vec::new();
    for (name, own) in NAMES.iter().zip(costs) {
        let of = |way: usize| quantile(own.iter().map(|round| round[way]), 0.5);
        let added = |way: usize, at: f64| {
            quantile(own.iter().zip(&costs[NO_LAYER]).map(|(own, none)| own[way] - none[way]), at)
        };
        let times = quantile(own.iter().zip(&costs[NO_LAYER]).map(|(own, none)| own[1] / none[1]), 0.5);
        let part = |way: usize| {
            let [low, mid, high] = [0.25, 0.5, 0.75].map(|at| added(way, at));
            format!("{:.2} | {mid:.2} | {low:.2} to {high:.2}", of(way))
        };
        println!("| {name} | {} | {} | {times:.3} |", part(0), part(1));
        let rounds =
            |way: usize| -> Vec<f64> { own.iter().map(|it| (it[way] * 1e3).round() / 1e3).collect() };
        rows.push(json!({ "name": name, "called_us": rounds(0), "served_us": rounds(1) }));
    }
    if let Some(path) = std::env::var_os("LAYER_COST_DATA") {
        let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let data = json!({ "experiment": "layer-cost", "processor": processor.map(|(_, name)| name),
            "rounds": rounds, "requests": requests, "contestants": rows });
        std::fs::write(path, format!("{data}\n")).unwrap();
    }
}

/// A layer that does nothing.
#[derive(Clone)]
struct NoOp;

impl<S> Layer<S> for NoOp {
    type Service = Passes<S>;

    fn layer(&self, inner: S) -> Passes<S> {
        Passes { inner }
    }
}

/// A service behind it.
#[derive(Clone)]
struct Passes<S> {
    inner: S,
}

impl<S: Service<Q>, Q> Service<Q> for Passes<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Q) -> S::Future {
        self.inner.call(request)
    }
}

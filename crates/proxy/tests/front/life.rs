//! Whole lives of connections: random clients, honest, slow, dead and hostile, before a random
//! application that is killed and comes back.
//!
//! Whatever they do, nothing of it stays: afterwards no slot is taken, nobody waits, no connection
//! is open on either side and nothing is held in memory or files. Meanwhile nobody gets another's
//! answer, and an honest client gets one for each request.
//!
//! Lives are drawn from a seed, and a failure names it; `SUIMON_LIVES_SEED=7` draws others.

mod application;
mod clients;

use crate::passage::{Files, certificate};
use crate::support::{Gateway, gateway, soon};
use application::Application;
use clients::{Life, life};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::sync::Arc;
use std::time::Duration;
use suimon_gate::RouteMode;
use suimon_model::Limit;
use suimon_params::upstream::NodeParams;
use suimon_params::{DeclaredRoute, OnClientDisconnect, Params, RoutePattern, Sessions, SpoolParams};
use tokio::task::JoinSet;

/// Lives in one run, of some three seconds in all.
const LIVES: usize = 150;

/// Connections where there are too few for everybody.
const FEW: usize = 40;

/// How long whatever is left may take to go: more than the longest of the time-outs below.
const GONE_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_any_life() {
    let files = Arc::new(certificate("a"));
    nothing_is_left(seed(), Arc::clone(&files), params(&files), Killed(false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_where_connections_are_few_and_work_is_cut_off() {
    let files = Arc::new(certificate("a"));
    let mut params = params(&files);
    params.limits.connections = FEW;
    params.on_client_disconnect = Some(OnClientDisconnect::Cancel);
    nothing_is_left(seed() + 1, files, params, Killed(true)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_at_the_gate_of_sessions() {
    let files = Arc::new(certificate("a"));
    let mut params = params(&files);
    params.sessions = Sessions::default();
    nothing_is_left(seed() + 2, files, params, Killed(true)).await;
}

/// Returns parameters with bounds and times so small that all of them are met.
fn params(files: &Files) -> Params {
    let mut params = Params::default();
    params.listen.plain = Some("127.0.0.1:0".parse().unwrap());
    params.listen.tls = Some(files.listen());
    params.sessions.kinds.clear();
    params.routes.declared = vec![DeclaredRoute {
        pattern: RoutePattern { method: None, path: "/two".to_owned() },
        query: None,
        mode: RouteMode::Fixed(Limit::of(2)),
    }];
    let short = Duration::from_millis(400);
    let times = &mut params.timeouts;
    (times.header_read, times.handshake) = (short, short);
    (times.body_read, times.body_write, times.body_total) = (short, short, 4 * short);
    (times.keep_alive, times.tunnel_idle, times.h2_ping) = (short, short, short);
    times.disconnect_watch_after = Duration::from_millis(5);
    params.limits.request_buffer_bytes = 4 << 10;
    params.limits.response_buffer_bytes = 16 << 10;
    params.limits.buffered_bytes = 256 << 10;
    params.limits.slow_uploads = 4;
    params.spool = SpoolParams { directory: None, bytes_max: 2 << 20, body_bytes_max: 256 << 10 };
    let upstream = &mut params.upstream;
    (upstream.connect_timeout, upstream.idle_timeout) = (short, 2 * short);
    (upstream.first_byte_timeout, upstream.pool_idle_age) = (3 * short, short);
    upstream.health.interval = short / 4;
    params
}

/// Whether the application is killed in the middle of everything, and comes back.
struct Killed(bool);

async fn nothing_is_left(seed: u64, files: Arc<Files>, mut params: Params, killed: Killed) {
    let application = Application::start().await;
    params.upstream.nodes = vec![NodeParams::parse(&format!("http://{}", application.address())).unwrap()];
    let mut gateway = gateway(params);

    let mut lives = JoinSet::new();
    for (number, life) in drawn(seed, LIVES).into_iter().enumerate() {
        let (plain, tls) = (gateway.plain, gateway.tls.unwrap());
        let files = Arc::clone(&files);
        lives.spawn(async move {
            let told = tokio::time::timeout(GONE_WITHIN, life.live(number, plain, tls, &files)).await;
            (number, life, told)
        });
    }
    if killed.0 {
        application.dies_and_returns().await;
    }
    while let Some(ended) = lives.join_next().await {
        let (number, life, told) = ended.unwrap();
        let Ok(told) = told else { panic!("seed {seed}, {number}: never closed: {life:?}") };
        assert!(told.is_own, "seed {seed}, {number}: another's answer: {life:?}\n{told:?}");
        let is_answered = killed.0 || !life.is_honest() || life.is_answered(&told);
        assert!(is_answered, "seed {seed}, {number}: not answered: {life:?}\n{told:?}");
    }
    nothing_left(seed, &gateway, &application).await;

    assert!(application.served() > LIVES / 4, "seed {seed}: nothing was tried");
    let answer = gateway.get("/healthz?id=0&plan=Fine").await;
    assert_eq!(answer.status, 200, "seed {seed}: it serves on");
    soon(gateway.stop()).await.unwrap();
}

fn seed() -> u64 {
    std::env::var("SUIMON_LIVES_SEED").map_or(1, |seed| seed.parse().unwrap())
}

fn drawn(seed: u64, count: usize) -> Vec<Life> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    (0..count).map(|_| life().new_tree(&mut runner).unwrap().current()).collect()
}

async fn nothing_left(seed: u64, gateway: &Gateway, application: &Application) {
    let left = || {
        let view = gateway.view();
        let all = [
            ("requests in the application", view.gate.in_flight),
            ("requests waiting", view.gate.waiting),
            ("ungated requests", view.ungated.gate.in_flight),
            ("connections", view.connections_open),
            ("tunnels", view.tunnels),
            ("bytes in memory", view.buffered_bytes),
            ("bytes in files", view.spooled_bytes as usize),
            ("connections of the application", application.open()),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>()
    };
    let gone = async {
        while !left().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let gone = tokio::time::timeout(GONE_WITHIN, gone).await;
    assert!(gone.is_ok(), "seed {seed}: left behind: {:?}", left());
}

//! The operator's listener over real sockets.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use suimon_admin::{
    Access, AccessParams, HistoryState, Learned, LineAnswer, LiveState, Params, PoolAnswer, Site, Source,
    State, serve,
};
use suimon_fleet::workers::{EndReason, WorkerEvent, WorkerId, WorkerState, WorkersCount, WorkersTotals};
use suimon_gate::{
    Counts, GateState, KindView, LearnedTransitions, RouteMode, RouteView, ServiceTimeStats, SessionEnds,
    Snapshot,
};
use suimon_model::{Instant, Limit, NodeId, PoolId, Quantity, Reason, Record, RouteId, Signals, Subject};
use suimon_params::{RoutePattern, SessionKind};
use suimon_proxy::RetryCounts;
use suimon_proxy::UpstreamNodeView;
use suimon_proxy::{LearnedView, LineCommand, LineCounts, LineError, LineReport, RouteReport, View};
use suimon_proxy::{Overridden, OverrideError, OverrideOrder};
use suimon_proxy::{PoolChange, PoolCommand, PoolError, PoolEvent, PoolReport, PoolStatus, WorkerStatus};
use tokio::net::TcpListener;

/// A gateway that always shows the same.
#[derive(Default)]
struct Fixed {
    draining: AtomicBool,
    node_down: AtomicBool,
    commands: Mutex<Vec<LineCommand>>,
    pool_commands: Mutex<Vec<PoolCommand>>,
    overridden: Mutex<Vec<OverrideOrder>>,
}

impl Source for Fixed {
    fn override_with(&self, order: OverrideOrder) -> Result<(), OverrideError> {
        match &order.what {
            Overridden::Route { name, .. } if name == "GET /none" => {
                Err(OverrideError::NoSuchRoute(name.clone()))
            }
            Overridden::Node { address } => Err(OverrideError::LastNode(address.clone())),
            _ => {
                self.overridden.lock().unwrap().push(order);
                Ok(())
            }
        }
    }

    fn lines(&self) -> Vec<LineReport> {
        let view = suimon_line::Line::new(suimon_line::Params::default(), Instant::ORIGIN).view();
        vec![LineReport {
            kind: "visit".to_string(),
            view,
            opens_at: None,
            seed_hash: None,
            message: String::new(),
        }]
    }

    fn command_line(&self, kind: Option<&str>, command: &LineCommand) -> Result<(), LineError> {
        match kind {
            None | Some("visit") => {
                self.commands.lock().unwrap().push(command.clone());
                Ok(())
            }
            Some(_) => Err(LineError::NoSuch(vec!["visit".to_string()])),
        }
    }

    fn invite(&self, _kind: Option<&str>, count: usize, _life: Duration) -> Result<Vec<String>, LineError> {
        Ok((0..count).map(|index| format!("suimon-invite={index}")).collect())
    }

    fn view(&self) -> View {
        let gate = RouteView {
            mode: RouteMode::Enforce,
            limit: Some(3),
            in_flight: 3,
            orphaned: 1,
            waiting: 7,
            // Of those refused one was shown a place in line.
            counts: Counts { offered: 110, completed: 90, failed: 2, abandoned: 5, refused: 3 },
            placed: 1,
            ..RouteView::default()
        };
        let mut search = RouteReport {
            name: "GET /search/\"x\"".to_string(),
            id: Some(RouteId(1)),
            statuses: [0, 90, 0, 0, 2],
            gate,
            ..RouteReport::default()
        };
        search.upstream.counts[10] = 92;
        search.upstream.sum_seconds = 7.5;
        let record = Record {
            at: Instant::from_nanos(5_000_000_000),
            subject: Subject::Route(RouteId(1)),
            quantity: Quantity::Limit,
            old: f64::INFINITY,
            new: 3.0,
            reason: Reason::TrialBetter,
            signals: Signals::none().with("gain", 0.12),
        };
        View {
            uptime: Duration::from_secs(12),
            connections_open: 8,
            connections: 40,
            connections_displaced: 5,
            tunnels: 2,
            requests: 120,
            faults: 1,
            upstream_errors: 2,
            retries: RetryCounts { unsent: 3, closed: 4, lost: 2, withheld: 1 },
            disconnects_waiting: 4,
            disconnects_upstream: 1,
            refusals: vec![(Reason::WaitTooLong, 3)],
            routes: vec![
                RouteReport { name: "other".into(), id: Some(RouteId(0)), ..RouteReport::default() },
                search,
            ],
            ungated: RouteReport { name: "ungated".into(), ..RouteReport::default() },
            kinds: vec![("visit".into(), visit())],
            lines: vec![LineCounts { pages: 728, polls: 1734, ..LineCounts::NONE }],
            sharing: Some(suimon_proxy::SharingView::default()),
            recalled: Some(suimon_proxy::Recalled {
                age: Duration::from_secs(90),
                routes: 3,
                version: "0.1.0".into(),
            }),
            gate: Snapshot {
                waiting: 7,
                in_flight: 3,
                suspended: 6,
                sessions: 20,
                records: vec![record],
                recorded: 1,
                probing: Some(RouteId(1)),
                ..Snapshot::default()
            },
            ..View::default()
        }
    }

    fn learned(&self) -> LearnedView {
        let place =
            |after, next: Vec<_>, ended_share| LearnedTransitions { after, seen: 20, next, ended_share };
        let kind = suimon_gate::LearnedKind {
            ended: 20,
            newcomers_per_second: Some(2.5),
            patience: f64::INFINITY,
            patience_source: "assumed",
            visits: vec![0.0, 1.5],
            transitions: vec![
                place(None, vec![(RouteId(1), 1.0)], 0.0),
                place(Some(RouteId(1)), vec![(RouteId(1), 0.25)], 0.75),
            ],
            ..suimon_gate::LearnedKind::default()
        };
        let search = suimon_gate::LearnedRoute {
            mode: RouteMode::Fixed(Limit::of(3)),
            limit: Some(3),
            took_alone: Some(ServiceTimeStats { count: 9, mean: 0.4, variation: 0.1 }),
            saturated: Some(4.5),
            ..suimon_gate::LearnedRoute::default()
        };
        LearnedView {
            uptime: Duration::from_secs(12),
            routes: vec![("other".into(), RouteId(0)), ("GET /search/\"x\"".into(), RouteId(1))],
            kinds: vec![SessionKind {
                ends: vec![RoutePattern { method: Some("POST".into()), path: "/logout".into() }],
                ..SessionKind::default()
            }],
            gate: suimon_gate::Learned {
                cores: 2,
                routes: vec![suimon_gate::LearnedRoute::default(), search],
                kinds: vec![kind],
                ..suimon_gate::Learned::default()
            },
        }
    }

    fn nodes(&self) -> Vec<UpstreamNodeView> {
        let down = self.node_down.load(Relaxed);
        vec![UpstreamNodeView {
            node: NodeId(0),
            pool: PoolId(0),
            address: "http://127.0.0.1:8080".into(),
            status: if down { "down" } else { "up" },
            reason: if down { "checks_failed" } else { "checks_passed" },
            explanation: if down { "health checks fail" } else { "health checks pass" },
            for_the_last: Duration::from_secs(3),
            ejected_for: None,
            slow_start_for: None,
            in_flight: 3,
            share: 1.0,
            sessions: Some((7, 2)),
            picked: 100,
            failures_in_a_row: 0,
            connections: 5,
            report: None,
            php: None,
        }]
    }

    fn pools(&self, since: u64) -> Vec<PoolReport> {
        vec![PoolReport {
            changes: changes().into_iter().filter(|it| it.number >= since).collect(),
            ..pool()
        }]
    }

    fn scaling(&self) -> Option<suimon_proxy::NodesReport> {
        None
    }

    fn command_pool(&self, name: Option<&str>, command: PoolCommand) -> Result<(), PoolError> {
        match (name, command) {
            (Some("shop") | None, PoolCommand::Resize(Some(9..))) => Err(PoolError::Size(8)),
            (Some("shop") | None, command) => {
                self.pool_commands.lock().unwrap().push(command);
                Ok(())
            }
            (Some(_), _) => Err(PoolError::NoSuch(vec!["shop".to_string()])),
        }
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }
}

fn changes() -> Vec<PoolChange> {
    let events = [
        PoolEvent::Wanted { from: 3, to: 2, why: "more workers are idle than are kept" },
        PoolEvent::Worker(WorkerId(7), WorkerEvent::Ends(EndReason::Surplus)),
        PoolEvent::Wrote(WorkerId(7), "a\u{1b}line".to_string()),
    ];
    let numbered = events.into_iter().zip(4_u64..);
    numbered
        .map(|(what, number)| PoolChange { number, at: Instant::from_nanos(number << 30), what })
        .collect()
}

/// A pool of a busy worker and an idle one, whose others have ended.
fn pool() -> PoolReport {
    let worker = |id, state, memory| WorkerStatus {
        id: WorkerId(id),
        pid: Some(4000 + id as u32),
        state,
        is_retiring: false,
        generation: 1,
        age: Duration::from_secs(60),
        start: Some(Duration::from_millis(40)),
        requests: 12,
        memory,
        is_proportional: true,
        swap: 0,
        major_faults: 0,
    };
    let mut totals = WorkersTotals { requests: 24, starts: 9, failed_starts: 1, ..WorkersTotals::default() };
    totals.ended[EndReason::Surplus as usize] = 6;
    let status = PoolStatus {
        name: "shop".into(),
        wanted: 2,
        count: WorkersCount { idle: 1, busy: 1, ..WorkersCount::default() },
        generation: 1,
        totals,
        unhealthy: None,
        worker_bytes: Some(9 << 20),
        fit: Some(40),
        start_s: Some(0.04),
        start_cpu_s: Some(0.02),
        last_move: changes().into_iter().next(),
        workers: vec![worker(5, WorkerState::Busy, 8 << 20), worker(6, WorkerState::Idle, 0)],
    };
    PoolReport { id: PoolId(0), status, kind: "http", law: "measured", fixed: None, most: 8, changes: vec![] }
}

/// A kind with 480 in line, who are told four minutes to five, and of whom five are held for four
/// seconds.
fn visit() -> KindView {
    let line = suimon_line::Line::new(suimon_line::Params::default(), Instant::ORIGIN).view();
    KindView {
        gate_state: GateState::Paced,
        waiting: 5,
        predicted_wait_seconds: 4.0,
        newcomer_wait: Some((240.0, 300.0)),
        line: Some(suimon_line::View { waiting: 480, ..line }),
        ends: SessionEnds { finished: 300, silent: 57, abandoned: 3, failed: 2, reopened: 1 },
        patience_source: "learned",
        ..KindView::default()
    }
}

async fn start() -> (SocketAddr, Arc<Fixed>) {
    start_until(std::future::pending()).await
}

async fn start_until(ended: impl Future<Output = ()> + Send + 'static) -> (SocketAddr, Arc<Fixed>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let source = Arc::new(Fixed::default());
    let access = AccessParams { trusts_loopback: true, ..AccessParams::default() };
    let access = Arc::new(Access::load(access).unwrap());
    let params = Params { hosts: vec!["gate.internal".into()], version: "9.9.9".into(), access };
    tokio::spawn(serve(listener, params, main_site(&source), ended));
    (address, source)
}

/// Returns a gateway's only site.
fn main_site(source: &Arc<Fixed>) -> Vec<Site> {
    let source = Arc::clone(source) as Arc<dyn Source>;
    vec![Site { name: "main".into(), serves: Arc::new(Vec::new), source }]
}

/// Returns status and whole answer of a request with these lines of head.
async fn ask(address: SocketAddr, head: String) -> (u16, String) {
    tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{head}Connection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    })
    .await
    .unwrap()
}

async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    ask(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n")).await
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[tokio::test]
async fn the_state_reads_back_as_it_was() {
    let (address, _) = start().await;
    let (status, answer) = get(address, "/api/state").await;
    assert_eq!(status, 200);
    let state: State = serde_json::from_str(body(&answer)).unwrap();
    assert_eq!(state.version, "9.9.9");
    assert!(state.ready);
    assert_eq!(state.probing.as_deref(), Some("GET /search/\"x\""));
    assert_eq!((state.totals.connections_displaced, state.totals.suspended), (5, 6));
    let search = &state.routes[1];
    assert_eq!((search.limit, search.in_flight, search.queued, search.offered), (Some(3), 3, 7, 110));
    assert_eq!(search.statuses.get("2xx"), Some(&90));
    assert!(search.upstream.p99.is_some() && search.waited.p99.is_none());
    let sentence = &state.verdict.sentence;
    assert!(sentence.starts_with("480 visitors wait, 4–5 min for a newcomer"), "{sentence}");
    assert!((state.now - state.started_at - 12.0).abs() < 1.0, "{} {}", state.now, state.started_at);
    let (_, later) = get(address, "/api/state?since=1").await;
    let later: State = serde_json::from_str(body(&later)).unwrap();
    assert!(later.decisions.is_empty());
    let decision = &state.decisions[0];
    assert_eq!((decision.reason.as_str(), decision.old, decision.new), ("trial_better", None, Some(3.0)));
    assert!(decision.explanation.contains("favour the new limit"));
    assert_eq!(decision.signals.get("gain"), Some(&Some(0.12)));
    assert!(answer.to_ascii_lowercase().contains("cache-control: no-store"));
}

async fn post(address: SocketAddr, headers: &str, text: &str) -> (u16, String) {
    post_to(address, "/api/waiting-room", headers, text).await
}

async fn post_to(address: SocketAddr, path: &str, headers: &str, text: &str) -> (u16, String) {
    let length = text.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Length: {length}\r\n");
    tokio::task::spawn_blocking({
        let text = text.to_string();
        move || {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "{head}Connection: close\r\n\r\n{text}").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
        }
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn lines_are_told_what_a_tool_says_and_nothing_of_a_page() {
    let (address, source) = start().await;
    const JSON: &str = "Content-Type: application/json\r\n";
    let at = std::time::SystemTime::UNIX_EPOCH + Duration::from_millis(1_000 * now_unix() + 60_500);
    let open = format!(r#"{{"order":"open","at":{}.5,"by_lot":true}}"#, now_unix_of(at));
    let (status, answer) = post(address, JSON, &open).await;
    assert_eq!(status, 200, "{answer}");
    let answer: LineAnswer = serde_json::from_str(body(&answer)).unwrap();
    assert_eq!((answer.lines[0].kind.as_str(), answer.lines[0].state.as_str()), ("visit", "moving"));
    assert_eq!(*source.commands.lock().unwrap(), [LineCommand::Open { at, by_lot: true }]);
    let (status, answer) =
        post(address, JSON, r#"{"order":"invite","count":2,"life_s":60,"kind":"visit"}"#).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("suimon-invite=1"), "{answer}");
    for (headers, text, status) in [
        ("Content-Type: text/plain\r\n", r#"{"order":"close"}"#, 403),
        ("Content-Type: application/json\r\nOrigin: http://evil.example\r\n", r#"{"order":"close"}"#, 403),
        (JSON, r#"{"order":"shut"}"#, 400),
        (JSON, "{", 400),
        (JSON, r#"{"order":"invite","count":0,"life_s":60}"#, 400),
        (JSON, r#"{"order":"close","kind":"other"}"#, 404),
    ] {
        assert_eq!(post(address, headers, text).await.0, status, "{headers}{text}");
    }
    assert_eq!(source.commands.lock().unwrap().len(), 1, "nothing else was done");
}

#[tokio::test]
async fn a_pool_is_shown_with_its_workers_and_what_has_happened_since() {
    let (address, _) = start().await;
    let (status, answer) = get(address, "/api/pool").await;
    assert_eq!(status, 200);
    let answer: PoolAnswer = serde_json::from_str(body(&answer)).unwrap();
    let shop = &answer.pools[0];
    let pool = &shop.pool;
    assert_eq!((pool.name.as_str(), pool.law.as_str(), pool.fixed), ("shop", "measured", None));
    assert_eq!((pool.wanted, pool.ready, pool.idle, pool.busy), (2, 2, 1, 1));
    assert_eq!(
        (pool.limit, pool.queued, pool.memory_bytes, pool.workers_fit),
        (Some(3), 7, 8 << 20, Some(40))
    );
    assert_eq!(pool.totals.ended, [("surplus".to_string(), 6)].into());
    let [busy, idle] = &shop.workers[..] else { panic!("{shop:?}") };
    assert_eq!((busy.pid, busy.state.as_str(), busy.memory_bytes), (Some(4005), "busy", Some(8 << 20)));
    assert_eq!((idle.state.as_str(), idle.memory_bytes), ("idle", None), "it was not looked at yet");
    let told: Vec<_> = shop.changes.iter().map(|it| (it.id, it.what.as_str(), it.worker)).collect();
    assert_eq!(told, [(5, "wanted", None), (6, "ends", Some(7)), (7, "wrote", Some(7))]);
    assert_eq!((shop.changes[0].old, shop.changes[0].new), (Some(3), Some(2)));
    assert_eq!(shop.changes[1].reason.as_deref(), Some("fewer workers are wanted"));
    assert_eq!(shop.changes[2].reason.as_deref(), Some(r#""a\u{1b}line""#), "no terminal obeys it");

    let (_, answer) = get(address, "/api/pool?since=6").await;
    let answer: PoolAnswer = serde_json::from_str(body(&answer)).unwrap();
    assert_eq!(answer.pools[0].changes.iter().map(|change| change.id).collect::<Vec<_>>(), [7]);

    let (_, answer) = get(address, "/api/state").await;
    let state: State = serde_json::from_str(body(&answer)).unwrap();
    let seen = &state.pools[0];
    assert_eq!((seen.ready, &seen.totals), (2, &pool.totals));
    let moved = seen.last_move.as_ref().unwrap();
    assert_eq!(moved.reason.as_deref(), Some("more workers are idle than are kept"));
    assert!((moved.at - state.started_at - 4.29).abs() < 0.01, "{} {}", moved.at, state.started_at);
}

#[tokio::test]
async fn pools_are_told_what_a_tool_says_and_nothing_of_a_page() {
    let (address, source) = start().await;
    const JSON: &str = "Content-Type: application/json\r\n";
    for order in
        [r#"{"order":"reload"}"#, r#"{"pool":"shop","order":{"resize":8}}"#, r#"{"order":{"resize":"auto"}}"#]
    {
        let (status, answer) = post_to(address, "/api/pool", JSON, order).await;
        assert_eq!(status, 200, "{answer}");
        let answer: PoolAnswer = serde_json::from_str(body(&answer)).unwrap();
        assert_eq!(answer.pools[0].pool.name, "shop");
    }
    for (headers, text, status) in [
        ("Content-Type: text/plain\r\n", r#"{"order":"reload"}"#, 403),
        ("Content-Type: application/json\r\nOrigin: http://evil.example\r\n", r#"{"order":"reload"}"#, 403),
        (JSON, r#"{"order":"restart"}"#, 400),
        (JSON, r#"{"order":{"resize":"many"}}"#, 400),
        (JSON, r#"{"order":{"resize":9}}"#, 400),
        (JSON, r#"{"pool":"other","order":"reload"}"#, 404),
    ] {
        let (found, answer) = post_to(address, "/api/pool", headers, text).await;
        assert_eq!(found, status, "{headers}{text}\n{answer}");
    }
    let commands = [PoolCommand::Reload, PoolCommand::Resize(Some(8)), PoolCommand::Resize(None)];
    assert_eq!(*source.pool_commands.lock().unwrap(), commands);
}

#[tokio::test]
async fn what_an_operator_overrides_is_handed_on_and_what_cannot_be_is_told_in_a_sentence() {
    let (address, source) = start().await;
    let json = "Content-Type: application/json\r\n";
    let (status, answer) = post_to(address, "/api/override", json, r#"{"gate":"open","for_s":5}"#).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer.ends_with(r#"{"overrides":[]}"#), "{answer}");
    let order = OverrideOrder {
        what: Overridden::Gate,
        life: Duration::from_secs(5),
        who: "admin".to_string(),
        why: None,
    };
    assert_eq!(*source.overridden.lock().unwrap(), [order]);
    for (order, wanted, part) in [
        (r#"{"gate":"shut"}"#, 400, "gate must be"),
        ("{", 400, "Failed to parse"),
        (r#"{"route":"GET /none","limit":5}"#, 404, "there is no route"),
        (r#"{"node":"http://a:1","drain":true}"#, 400, "last node that takes new requests"),
        (r#"{"release":9}"#, 404, "there is no override 9"),
    ] {
        let (status, answer) = post_to(address, "/api/override", json, order).await;
        assert_eq!(status, wanted, "{order}: {answer}");
        assert!(answer.contains(part), "{order}: {answer}");
    }
    assert_eq!(source.overridden.lock().unwrap().len(), 1);
    let (status, answer) = get(address, "/api/override").await;
    assert_eq!(status, 200, "{answer}");
    let (_, state) = get(address, "/api/state").await;
    assert!(state.contains(r#""takes_commands":true"#) && state.contains(r#""overrides":[]"#), "{state}");
}

#[tokio::test]
async fn who_can_show_nothing_commands_nothing_and_reads_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let source = Arc::new(Fixed::default());
    tokio::spawn(serve(listener, Params::default(), main_site(&source), std::future::pending()));
    for (path, order) in [
        ("/api/pool", r#"{"order":"reload"}"#),
        ("/api/waiting-room", r#"{"order":"pause"}"#),
        ("/api/override", r#"{"gate":"open"}"#),
    ] {
        let (status, answer) = post_to(address, path, "Content-Type: application/json\r\n", order).await;
        assert_eq!(status, 403, "{answer}");
        assert_eq!(get(address, path).await.0, 403);
    }
    assert!(source.pool_commands.lock().unwrap().is_empty() && source.commands.lock().unwrap().is_empty());
    assert!(source.overridden.lock().unwrap().is_empty());
}

fn now_unix() -> u64 {
    now_unix_of(std::time::SystemTime::now())
}

fn now_unix_of(time: std::time::SystemTime) -> u64 {
    time.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

#[tokio::test]
async fn an_opening_at_no_time_that_is_to_come_is_refused_and_the_listener_goes_on() {
    let (address, source) = start().await;
    for (at, part) in [
        ("1.7e19", "ten years"),
        ("1e300", "ten years"),
        ("-5", "in the past"),
        ("-1e300", "in the past"),
        ("1577836800", "in the past"),
    ] {
        let order = format!(r#"{{"order":"open","at":{at}}}"#);
        let (status, answer) = post(address, "Content-Type: application/json\r\n", &order).await;
        assert_eq!(status, 400, "{at}: {answer}");
        assert!(answer.contains(part) && answer.contains("seconds since 1970"), "{at}: {answer}");
    }
    assert_eq!(source.commands.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn metrics_are_in_the_form_prometheus_reads() {
    let (address, _) = start().await;
    let (status, answer) = get(address, "/metrics").await;
    assert_eq!(status, 200);
    assert!(answer.contains("text/plain; version=0.0.4"));
    let text = body(&answer);
    for line in [
        r#"suimon_build_info{version="9.9.9"} 1"#,
        r#"suimon_route_limit_requests{route="GET /search/\"x\""} 3"#,
        r#"http_server_active_requests{http_request_method="GET",http_route="/search/\"x\""} 9"#,
        r#"suimon_refusals_total{reason="predicted_wait_too_long"} 3"#,
        r#"suimon_route_ended_requests_total{route="GET /search/\"x\"",outcome="abandoned"} 5"#,
        r#"suimon_route_ended_requests_total{route="GET /search/\"x\"",outcome="refused"} 2"#,
        r#"suimon_route_ended_requests_total{route="GET /search/\"x\"",outcome="waiting_page"} 1"#,
        r#"suimon_waiting_pages_total{kind="visit"} 728"#,
        r#"suimon_polls_total{kind="visit"} 1734"#,
        r#"suimon_predicted_wait_high_seconds{kind="visit"} 300"#,
        r#"suimon_predicted_hold_seconds{kind="visit"} 4"#,
        r#"suimon_ended_sessions_total{kind="visit",outcome="silent"} 57"#,
        r#"suimon_ended_sessions_total{kind="visit",outcome="abandoned"} 3"#,
        r#"suimon_ended_sessions_total{kind="visit",outcome="failed"} 2"#,
        r#"http_client_request_duration_seconds_count{http_request_method="GET",http_route="/search/\"x\""} 92"#,
        r#"suimon_node_up{node="http://127.0.0.1:8080"} 1"#,
        r#"suimon_client_disconnects_total{phase="waiting"} 4"#,
        r#"suimon_client_disconnects_total{phase="upstream"} 1"#,
        "suimon_client_connections_displaced_total 5",
        "suimon_suspended_requests 6",
        r#"suimon_pool_workers{pool="shop",state="busy"} 1"#,
        r#"suimon_pool_wanted{pool="shop"} 2"#,
        r#"suimon_pool_healthy{pool="shop"} 1"#,
        r#"suimon_pool_ended_total{pool="shop",reason="surplus"} 6"#,
        r#"suimon_pool_worker_memory_bytes{pool="shop"} 9437184"#,
        r#"suimon_pool_start_seconds{pool="shop"} 0.04"#,
        "suimon_ready 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    // Every number belongs to the family announced last, and every family is announced once.
    let mut announced = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            announced.push(rest.split(' ').next().unwrap());
        } else if !line.starts_with('#') {
            let family = announced.last().unwrap();
            assert!(line.starts_with(family), "{line} under {family}");
            line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        }
    }
    let count = announced.len();
    announced.sort_unstable();
    announced.dedup();
    assert_eq!(announced.len(), count);
}

#[tokio::test]
async fn a_browser_gets_the_dashboard_and_a_tool_the_paths() {
    let (address, _) = start().await;
    let page = |accept| format!("GET / HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n");
    let (status, answer) = ask(address, page("text/html,application/xhtml+xml")).await;
    assert_eq!(status, 200);
    assert!(answer.contains("default-src 'none'; script-src 'self'") && answer.contains("<!doctype html>"));
    assert!(ask(address, page("*/*")).await.1.contains("/api/history"));
    for (path, kind) in [("/app.js", "text/javascript"), ("/app.css", "text/css")] {
        let (status, answer) = get(address, path).await;
        assert!(status == 200 && answer.contains(kind), "{path}");
    }
}

#[tokio::test]
async fn an_event_comes_at_once_and_after_that_only_what_is_new() {
    let (address, _) = start().await;
    let (first, later) = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /api/events HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        let mut events = BufReader::new(stream).lines().filter_map(|line| {
            let line = line.unwrap();
            line.strip_prefix("data: ").map(|data| serde_json::from_str::<LiveState>(data).unwrap())
        });
        (events.next().unwrap(), events.find(|event| event.sample.is_some()).unwrap())
    })
    .await
    .unwrap();
    assert_eq!(first.state.decisions.iter().map(|it| it.id).collect::<Vec<_>>(), [1]);
    assert!(later.state.decisions.is_empty(), "it was told before");
    assert_eq!(later.sample.unwrap().routes.len(), 2);

    let (_, answer) = get(address, "/api/history?seconds=60").await;
    let history: HistoryState = serde_json::from_str(body(&answer)).unwrap();
    assert_eq!(history.routes, ["other", "GET /search/\"x\""]);
    assert!(!history.samples.is_empty() && history.decisions.len() == 1, "{history:?}");
    for wrong in ["never", "-1", "86401", "NaN"] {
        assert_eq!(get(address, &format!("/api/history?seconds={wrong}")).await.0, 400, "{wrong}");
    }
}

#[tokio::test]
async fn the_live_stream_ends_where_another_process_answers() {
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let (address, _) = start_until(async move { drop(ended.await) }).await;
    let read = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /api/events HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines();
        lines.by_ref().find(|line| line.as_ref().unwrap().starts_with("data: ")).unwrap().unwrap();
        end.send(()).unwrap();
        // To its end, which comes.
        lines.map(Result::unwrap).last()
    });
    assert!(tokio::time::timeout(Duration::from_secs(20), read).await.is_ok());
}

#[tokio::test]
async fn readiness_ends_with_the_last_node_and_with_draining() {
    let (address, source) = start().await;
    assert_eq!(get(address, "/readyz").await.0, 200);

    source.node_down.store(true, Relaxed);
    let (status, answer) = get(address, "/readyz").await;
    assert_eq!(status, 503);
    assert!(body(&answer).contains("http://127.0.0.1:8080 is down: health checks fail"), "{answer}");

    source.node_down.store(false, Relaxed);
    source.draining.store(true, Relaxed);
    let (status, answer) = get(address, "/readyz").await;
    assert_eq!(status, 503);
    assert!(body(&answer).contains("shutting down"), "{answer}");
    assert_eq!(get(address, "/healthz").await.0, 200);
}

#[tokio::test]
async fn nothing_can_be_changed_from_here() {
    let (address, _) = start().await;
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let (status, answer) =
            ask(address, format!("{method} /api/state HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n"))
                .await;
        assert_eq!(status, 405, "{method}");
        assert!(answer.to_ascii_lowercase().contains("allow: get, head"), "{answer}");
    }
    assert_eq!(get(address, "/nowhere").await.0, 404);
}

#[tokio::test]
async fn a_name_of_a_strangers_is_refused() {
    let (address, _) = start().await;
    let port = address.port();
    for (host, wanted) in [
        (format!("evil.example:{port}"), 421),
        (format!("127.0.0.1.evil.example:{port}"), 421),
        (format!("localhost:{port}"), 200),
        (format!("gate.internal:{port}"), 200),
    ] {
        let (status, _) = ask(address, format!("GET /api/state HTTP/1.1\r\nHost: {host}\r\n")).await;
        assert_eq!(status, wanted, "{host}");
    }
    let (status, _) =
        ask(address, format!("GET /api/state HTTP/1.1\r\nHost: {address}\r\nHost: evil.example\r\n")).await;
    assert_ne!(status, 200);
}

#[tokio::test]
async fn connections_held_open_do_not_lock_others_out_for_ever() {
    let (address, _) = start().await;
    let held: Vec<TcpStream> =
        (0..suimon_admin::CONNECTIONS_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
    let asking = tokio::spawn(get_owned(address));
    drop(held);
    assert_eq!(asking.await.unwrap().0, 200);
}

async fn get_owned(address: SocketAddr) -> (u16, String) {
    get(address, "/healthz").await
}

#[tokio::test]
async fn what_was_learned_is_told_with_names() {
    let (address, _) = start().await;
    let (status, answer) = get(address, "/api/learned").await;
    assert_eq!(status, 200);
    let learned: Learned = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!((learned.version.as_str(), learned.cores, learned.nodes), ("9.9.9", 2, 1));
    let kind = &learned.kinds[0];
    assert_eq!((kind.name.as_str(), kind.ended, kind.patience_seconds), ("visit", 20, None));
    assert_eq!(kind.ends, ["POST /logout"]);
    let search = "GET /search/\"x\"";
    assert_eq!((kind.visits.len(), kind.visits[0].route.as_str(), kind.visits[0].visits), (1, search, 1.5));
    let [start, after] = kind.transitions.as_slice() else { panic!("{kind:?}") };
    assert_eq!((start.after.as_deref(), start.next[0].share, start.ended_share), (None, 1.0, 0.0));
    assert_eq!(
        (after.after.as_deref(), after.next[0].route.as_str(), after.ended_share),
        (Some(search), search, 0.75)
    );
    let route = &learned.routes[1];
    assert_eq!((route.name.as_str(), route.mode.as_str(), route.limit), (search, "fixed", Some(3)));
    assert_eq!(
        (route.service, route.service_alone.unwrap().count, route.capacity_per_second),
        (None, 9, Some(4.5))
    );

    let (_, index) = get(address, "/").await;
    assert!(index.contains("/api/learned ") && index.contains("/metrics "), "{index}");
}

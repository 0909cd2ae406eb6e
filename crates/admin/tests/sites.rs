//! Two sites behind one operator's listener.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use suimon_admin::{
    Access, AccessParams, ConfigAnswer, LiveState, Params, Site, SiteState, SitesAnswer, Source, State,
    metrics_text, serve,
};
use suimon_gate::{KindView, RouteView, Snapshot};
use suimon_model::{NodeId, PoolId, RouteId};
use suimon_proxy::{LearnedView, LineCommand, LineCounts, LineError, LineReport, RouteReport, View};
use suimon_proxy::{NodesReport, PoolCommand, PoolError, PoolReport, UpstreamNodeView};
use suimon_proxy::{OverrideError, OverrideOrder};
use tokio::net::TcpListener;

/// A site with a route of its own, in front of a node of its own.
struct Fake {
    route: &'static str,
    node: &'static str,
    in_flight: usize,
    held: usize,
    node_down: AtomicBool,
    done: Mutex<Vec<String>>,
}

impl Fake {
    fn new(route: &'static str, node: &'static str, in_flight: usize, held: usize) -> Arc<Fake> {
        Arc::new(Fake {
            route,
            node,
            in_flight,
            held,
            node_down: AtomicBool::new(false),
            done: Mutex::default(),
        })
    }

    fn note(&self, what: &str) {
        self.done.lock().unwrap().push(what.to_owned());
    }

    fn done(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }
}

impl Source for Fake {
    fn view(&self) -> View {
        let gate = RouteView { limit: Some(3), in_flight: self.in_flight, ..RouteView::default() };
        let mut route =
            RouteReport { name: self.route.into(), id: Some(RouteId(0)), gate, ..RouteReport::default() };
        route.upstream.counts[3] = 7;
        let kind = KindView {
            waiting: self.held,
            predicted_wait_seconds: 1.0,
            law: "flow",
            patience_source: "assumed",
            ..KindView::default()
        };
        View {
            uptime: Duration::from_secs(60),
            connections_open: 8,
            connections: 40,
            requests: 120,
            routes: vec![route],
            ungated: RouteReport { name: "ungated".into(), ..RouteReport::default() },
            kinds: vec![("visit".into(), kind)],
            lines: vec![LineCounts::NONE],
            gate: Snapshot { in_flight: self.in_flight, ..Snapshot::default() },
            ..View::default()
        }
    }

    fn learned(&self) -> LearnedView {
        LearnedView {
            uptime: Duration::from_secs(60),
            routes: vec![(self.route.into(), RouteId(0))],
            kinds: vec![],
            gate: suimon_gate::Learned {
                routes: vec![suimon_gate::LearnedRoute::default()],
                ..suimon_gate::Learned::default()
            },
        }
    }

    fn nodes(&self) -> Vec<UpstreamNodeView> {
        let down = self.node_down.load(Relaxed);
        vec![UpstreamNodeView {
            slow_start_for: None,
            node: NodeId(0),
            pool: PoolId(0),
            address: self.node.into(),
            status: if down { "down" } else { "up" },
            reason: if down { "checks_failed" } else { "checks_passed" },
            explanation: if down { "health checks fail" } else { "health checks pass" },
            for_the_last: Duration::from_secs(3),
            ejected_for: None,
            in_flight: 3,
            share: 1.0,
            sessions: None,
            picked: 100,
            failures_in_a_row: 0,
            connections: 5,
            report: None,
            php: None,
        }]
    }

    fn lines(&self) -> Vec<LineReport> {
        vec![]
    }

    fn command_line(&self, _: Option<&str>, _: &LineCommand) -> Result<(), LineError> {
        self.note("line");
        Ok(())
    }

    fn invite(&self, _: Option<&str>, _: usize, _: Duration) -> Result<Vec<String>, LineError> {
        Ok(vec![])
    }

    fn pools(&self, _: u64) -> Vec<PoolReport> {
        vec![]
    }

    fn command_pool(&self, _: Option<&str>, _: PoolCommand) -> Result<(), PoolError> {
        self.note("pool");
        Ok(())
    }

    fn override_with(&self, _: OverrideOrder) -> Result<(), OverrideError> {
        self.note("override");
        Ok(())
    }

    fn adopt_config(&self, _: &str, dry_run: bool) -> ConfigAnswer {
        self.note("config");
        ConfigAnswer { adopted: !dry_run, dry_run, ..ConfigAnswer::default() }
    }

    fn scaling(&self) -> Option<NodesReport> {
        None
    }

    fn is_draining(&self) -> bool {
        false
    }
}

struct Two {
    at: SocketAddr,
    main: Arc<Fake>,
    tickets: Arc<Fake>,
}

fn main_and_tickets() -> (Arc<Fake>, Arc<Fake>) {
    (Fake::new("GET /shop", "http://127.0.0.1:1", 2, 0), Fake::new("GET /seats", "http://127.0.0.1:2", 3, 5))
}

fn site(name: &str, serves: &[&str], source: &Arc<Fake>) -> Site {
    let serves: Vec<String> = serves.iter().map(|it| (*it).to_owned()).collect();
    let serves = Arc::new(move || serves.clone());
    Site { name: name.to_owned(), serves, source: Arc::clone(source) as Arc<dyn Source> }
}

async fn served(sites: Vec<Site>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let access = AccessParams { trusts_loopback: true, ..AccessParams::default() };
    let params = Params { access: Arc::new(Access::load(access).unwrap()), ..Params::default() };
    tokio::spawn(serve(listener, params, sites, std::future::pending()));
    at
}

async fn two() -> Two {
    let (main, tickets) = main_and_tickets();
    let hosts = ["tickets.example", "*.tickets.example/buy"];
    let at = served(vec![site("main", &[], &main), site("tickets", &hosts, &tickets)]).await;
    Two { at, main, tickets }
}

/// Returns status and body of what is answered.
async fn ask(at: SocketAddr, head: String, body: &'static str) -> (u16, String) {
    tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(at).unwrap();
        write!(stream, "{head} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    })
    .await
    .unwrap()
}

async fn get(at: SocketAddr, path: &str) -> (u16, String) {
    ask(at, format!("GET {path}"), "\r\n").await
}

#[tokio::test]
async fn each_site_has_a_state_of_its_own_and_the_main_one_is_meant_where_none_is_named() {
    let two = two().await;
    for (path, name, route) in [
        ("/api/state", "main", "GET /shop"),
        ("/api/state?site=main", "main", "GET /shop"),
        ("/api/state?site=tickets&since=3", "tickets", "GET /seats"),
    ] {
        let (status, answer) = get(two.at, path).await;
        assert_eq!(status, 200, "{path}: {answer}");
        let state: State = serde_json::from_str(&answer).unwrap();
        assert_eq!((state.site.as_deref(), state.routes[0].name.as_str()), (Some(name), route), "{path}");
    }
    for path in ["/api/waiting-room", "/api/pool", "/api/override"] {
        let (status, answer) = get(two.at, &format!("{path}?site=tickets")).await;
        assert!(status == 200 && answer.contains(r#""site":"tickets""#), "{path}: {status} {answer}");
    }
    let (_, history) = get(two.at, "/api/history?seconds=60&site=tickets").await;
    assert!(history.contains("GET /seats") && !history.contains("GET /shop"), "{history}");
    let (_, learned) = get(two.at, "/api/learned?site=tickets").await;
    assert!(learned.contains("GET /seats"), "{learned}");
}

#[tokio::test]
async fn a_site_that_is_not_there_is_refused_with_the_names_of_those_that_are() {
    let two = two().await;
    for path in [
        "/api/state",
        "/api/history",
        "/api/events",
        "/api/learned",
        "/api/waiting-room",
        "/api/pool",
        "/api/override",
        "/readyz",
    ] {
        let (status, answer) = get(two.at, &format!("{path}?site=shop")).await;
        assert_eq!((status, &*answer), (404, "there is no site of that name; there are: main, tickets\n"));
    }
    assert_eq!(get(two.at, "/api/state?site=main&site=tickets").await.0, 400, "that says nothing");
    let order = "Content-Type: application/json\r\nContent-Length: 17\r\n\r\n{\"order\":\"pause\"}";
    assert_eq!(ask(two.at, "POST /api/waiting-room?site=shop".into(), order).await.0, 404);
    assert_eq!((two.main.done(), two.tickets.done()), (vec![], vec![]));
}

#[tokio::test]
async fn a_command_is_for_the_site_that_is_named_and_settings_are_the_gateways() {
    let two = two().await;
    for (path, body) in [
        (
            "/api/waiting-room?site=tickets",
            "Content-Type: application/json\r\nContent-Length: 17\r\n\r\n{\"order\":\"pause\"}",
        ),
        (
            "/api/override?site=tickets",
            "Content-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"gate\":\"open\"}",
        ),
        ("/api/pool", "Content-Type: application/json\r\nContent-Length: 18\r\n\r\n{\"order\":\"reload\"}"),
        ("/api/config?site=tickets", "Content-Type: application/toml\r\nContent-Length: 5\r\n\r\na = 1"),
    ] {
        let (status, answer) = ask(two.at, format!("POST {path}"), body).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
    assert_eq!(two.tickets.done(), ["line", "override"]);
    assert_eq!(two.main.done(), ["pool", "config"]);
}

#[tokio::test]
async fn all_sites_are_listed_with_what_they_serve_and_how_they_stand() {
    let two = two().await;
    two.tickets.node_down.store(true, Relaxed);
    let (status, answer) = get(two.at, "/api/sites").await;
    assert_eq!(status, 200);
    let SitesAnswer { sites } = serde_json::from_str(&answer).unwrap();
    let [main, tickets] = &sites[..] else { panic!("{answer}") };
    assert_eq!((&*main.name, main.serves.len(), main.ready), ("main", 0, true));
    assert_eq!((main.waiting, main.in_flight, &*main.verdict.level), (0, 2, "ok"));
    assert_eq!(tickets.serves, ["tickets.example", "*.tickets.example/buy"]);
    assert_eq!((&*tickets.verdict.level, &*tickets.verdict.situation), ("critical", "application_down"));
    assert_eq!((tickets.waiting, tickets.in_flight, tickets.ready), (5, 3, false));
    assert!(tickets.not_ready_because.as_ref().unwrap().contains("http://127.0.0.1:2 is down"));
    let (_, state) = get(two.at, "/api/state?site=tickets").await;
    let state: State = serde_json::from_str(&state).unwrap();
    assert_eq!(state.verdict, tickets.verdict, "it is the same, and since the same moment");
}

#[tokio::test]
async fn the_gateway_is_ready_while_one_of_its_sites_is() {
    let two = two().await;
    assert_eq!(get(two.at, "/readyz").await, (200, "ready\n".to_owned()));
    two.tickets.node_down.store(true, Relaxed);
    let why = "no node of the application is up (http://127.0.0.1:2 is down: health checks fail)";
    assert_eq!(get(two.at, "/readyz").await, (200, format!("ready\ntickets is not ready: {why}\n")));
    assert_eq!(get(two.at, "/readyz?site=tickets").await, (503, format!("not ready: {why}\n")));
    assert_eq!(get(two.at, "/readyz?site=main").await, (200, "ready\n".to_owned()));
    two.main.node_down.store(true, Relaxed);
    let (status, answer) = get(two.at, "/readyz").await;
    assert_eq!(status, 503);
    assert!(answer.starts_with("not ready\nmain is not ready: ") && answer.lines().count() == 3, "{answer}");
    assert_eq!(get(two.at, "/healthz").await.0, 200);
}

/// Returns the first events of a stream, until one that is wanted.
async fn event(at: SocketAddr, path: &'static str, wanted: fn(&LiveState) -> bool) -> LiveState {
    tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(at).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
        let lines = BufReader::new(stream).lines().map(Result::unwrap);
        let data = lines.filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
        let mut events = data.map(|data| serde_json::from_str::<LiveState>(&data).unwrap());
        events.find(wanted).unwrap()
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn the_live_stream_is_a_sites_with_a_line_for_each_of_the_others() {
    let two = two().await;
    let names = |sites: &[SiteState]| sites.iter().map(|site| site.name.clone()).collect::<Vec<_>>();
    let first = event(two.at, "/api/events?site=tickets", |_| true).await;
    assert_eq!(
        (first.state.site.as_deref(), names(&first.sites)),
        (Some("tickets"), vec!["main".into(), "tickets".into()])
    );
    two.main.node_down.store(true, Relaxed);
    let later = event(two.at, "/api/events?site=tickets", |live| {
        live.sample.is_some() && live.sites[0].verdict.level == "critical"
    })
    .await;
    assert_eq!(later.state.verdict.level, "busy", "the other is not concerned");
    let main = event(two.at, "/api/events", |live| live.sample.is_some()).await;
    assert_eq!(main.state.site.as_deref(), Some("main"));
    assert!(
        (main.sample.unwrap().in_flight - 2.0).abs() < 1e-6
            && (later.sample.unwrap().in_flight - 3.0).abs() < 1e-6
    );
}

#[tokio::test]
async fn where_there_is_one_site_nothing_is_said_of_sites() {
    let (main, _) = main_and_tickets();
    let at = served(vec![site("main", &[], &main)]).await;
    for path in ["/api/state", "/api/state?site=main"] {
        let state: Value = serde_json::from_str(&get(at, path).await.1).unwrap();
        assert_eq!(state.get("site"), None);
    }
    for path in ["/api/waiting-room", "/api/pool", "/api/override"] {
        let (_, answer) = get(at, path).await;
        assert!(!answer.contains("site"), "{path}: {answer}");
    }
    let (_, listed) = get(at, "/api/sites").await;
    assert_eq!(serde_json::from_str::<SitesAnswer>(&listed).unwrap().sites.len(), 1);
    assert_eq!(get(at, "/api/state?site=tickets").await.0, 404);
    assert!(event(at, "/api/events", |_| true).await.sites.is_empty());
    main.node_down.store(true, Relaxed);
    let (status, answer) = get(at, "/readyz").await;
    assert!(status == 503 && answer.starts_with("not ready: no node of the application is up"), "{answer}");
}

#[tokio::test]
async fn without_a_site_nothing_is_listened_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let error = serve(listener, Params::default(), vec![], std::future::pending()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

/// Returns the numbers by family, in the order in which they are written.
fn families(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = vec![];
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(rest) => found.push((rest.split(' ').next().unwrap().to_owned(), vec![])),
            None if line.starts_with('#') => {}
            None => found.last_mut().unwrap().1.push(line.to_owned()),
        }
    }
    found
}

#[test]
fn the_numbers_of_two_sites_are_those_of_each_with_a_label_in_front() {
    let (main, tickets) = main_and_tickets();
    let sites = [site("main", &[], &main), site("tick\"ets", &[], &tickets)];
    let text = |sites: &[Site]| metrics_text(sites, "9.9.9", &Access::default());
    let together = families(&text(&sites));
    let mut names: Vec<_> = together.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), together.len(), "each family is there once");
    let (first, second): (BTreeMap<_, _>, BTreeMap<_, _>) = (
        families(&text(&sites[..1])).into_iter().collect(),
        families(&text(&sites[1..])).into_iter().collect(),
    );
    let mut of_gateway = vec![];
    for (name, lines) in &together {
        assert!(lines.iter().all(|line| line.starts_with(name)), "{name}: {lines:?}");
        if name.starts_with("process_") {
            continue;
        }
        if lines == &first[name] {
            if !lines.is_empty() {
                of_gateway.push(name.as_str());
            }
            continue;
        }
        // The same numbers, of the one and then of the other.
        let labelled = |lines: &[String], site: &str| -> Vec<String> {
            let label = format!("site=\"{site}\"");
            let with = |line: &String| match line.split_once('{') {
                Some((name, rest)) => format!("{name}{{{label},{rest}"),
                None => line.replacen(' ', &format!("{{{label}}} "), 1),
            };
            lines.iter().map(with).collect()
        };
        let both = [labelled(&first[name], "main"), labelled(&second[name], r#"tick\"ets"#)].concat();
        assert_eq!(*lines, both, "{name}");
    }
    assert_eq!(
        of_gateway,
        [
            "suimon_build_info",
            "suimon_uptime_seconds",
            "suimon_client_connections",
            "suimon_client_connections_total",
            "suimon_client_connections_displaced_total",
            "suimon_buffered_bytes",
            "suimon_spooled_bytes",
            "suimon_admin_refused_requests_total",
        ]
    );
}

#[tokio::test]
async fn open_metrics_of_two_sites_has_each_family_once_and_an_end() {
    let two = two().await;
    let accept = "Accept: application/openmetrics-text; version=1.0.0\r\n\r\n";
    let (status, text) = ask(two.at, "GET /metrics".into(), accept).await;
    assert_eq!(status, 200);
    let found = families(&text);
    let names: std::collections::BTreeSet<_> = found.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), found.len());
    assert!(found.iter().all(|(name, lines)| lines.iter().all(|line| line.starts_with(name))), "{text}");
    assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
    for line in [
        r#"suimon_route_in_flight_requests{site="main",route="GET /shop"} 2"#,
        r#"suimon_route_in_flight_requests{site="tickets",route="GET /seats"} 3"#,
        r#"suimon_node_up{site="tickets",node="http://127.0.0.1:2"} 1"#,
        r#"suimon_ready{site="tickets"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

//! `suimon profile` against a small server that counts what it gets, and against `suimon shop`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;

use common::{LONG, Running, address_in, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What a request costs the small server.
const SERVICE: Duration = Duration::from_millis(5);
/// The most of an answer that a profile reads, and what may be on its way beside it.
const READ_AND_BUFFERED: usize = (16 + 16) << 20;

/// What the server was asked for, by path.
#[derive(Clone, Default, Debug)]
struct Asked {
    requests: usize,
    now: usize,
    at_once_max: usize,
}

#[derive(Default)]
struct Counts {
    connections: usize,
    paths: BTreeMap<String, Asked>,
    heads: Vec<String>,
    endless_bytes: Vec<usize>,
}

/// A server that takes its time, tells of it, and counts.
struct Server {
    address: SocketAddr,
    counts: Arc<Mutex<Counts>>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(Mutex::new(Counts::default()));
        let shared = Arc::clone(&counts);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                shared.lock().unwrap().connections += 1;
                let counts = Arc::clone(&shared);
                thread::spawn(move || answer_all(&stream, &counts));
            }
        });
        Server { address, counts }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn asked(&self, path: &str) -> Asked {
        self.counts.lock().unwrap().paths.get(path).cloned().unwrap_or_default()
    }
}

fn answer_all(stream: &TcpStream, counts: &Mutex<Counts>) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(head) = head(&mut reader) {
        let path = head.split(' ').nth(1).unwrap_or("").to_string();
        {
            let mut counts = counts.lock().unwrap();
            let asked = counts.paths.entry(path.clone()).or_default();
            asked.requests += 1;
            asked.now += 1;
            asked.at_once_max = asked.at_once_max.max(asked.now);
            counts.heads.push(head);
        }
        thread::sleep(SERVICE);
        counts.lock().unwrap().paths.get_mut(&path).unwrap().now -= 1;
        if path == "/endless" {
            let sent = send_without_end(writer);
            counts.lock().unwrap().endless_bytes.push(sent);
            return;
        }
        // As in /status/302+Found?http://elsewhere/.
        let (status, location) = path.split_once('?').unwrap_or((&path, ""));
        let status = status.strip_prefix("/status/").unwrap_or("200 OK").replace('+', " ");
        let answer = format!(
            "HTTP/1.1 {status}\r\nServer-Timing: accept;dur=1.5, job;dur=3\r\nLocation: {location}\r\n\
             Content-Length: 3\r\n\r\nok\n"
        );
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn head(reader: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

fn send_without_end(mut writer: impl Write) -> usize {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n";
    let mut sent = 0;
    if writer.write_all(head.as_bytes()).is_ok() {
        while let Ok(more) = writer.write(&[b'x'; 65536]) {
            sent += more;
        }
    }
    sent
}

/// A listener that nobody may connect to.
struct Forbidden(TcpListener);

impl Forbidden {
    fn new() -> Forbidden {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Forbidden(listener)
    }

    fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }

    fn assert_nobody_came(&self) {
        assert_eq!(self.0.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

/// Short times, so that a run takes some seconds.
const SHORT: [&str; 4] = ["--seconds", "1", "--warmup", "200ms"];

/// Profiles with short times; returns what it did and its JSON.
fn profile(args: &[&str]) -> (common::Ran, Value) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("profile.json");
    let mut all = vec!["profile", "--json", json.to_str().unwrap()];
    all.extend(SHORT);
    all.extend(args);
    let ran = run(&all);
    let text = std::fs::read_to_string(&json).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (ran, serde_json::from_str(&text).unwrap())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Sees that the service was in a closed loop of `clients`.
fn assert_closed_loop(service: &Value, clients: f64, seconds: f64) {
    let in_flight = number(&service["in_flight_mean"]);
    // A client is idle for a moment between an answer and its next request, and no longer.
    assert!(
        in_flight <= clients + 1e-6 && in_flight >= 0.9 * clients,
        "{in_flight} of {clients}: {service:#}"
    );
    let (completed, mean) = (number(&service["completed"]), number(&service["response"]["mean_s"]));
    // A machine that stands still makes it longer than was asked for.
    let measured = completed / number(&service["per_second"]);
    assert!(measured >= 0.99 * seconds, "{measured} s of {seconds} s were measured: {service:#}");
    let longest = number(&service["response"]["max_s"]);
    // Each client has at most one request that reaches over an edge of the measured time, at each.
    let edges = 2.0 * clients * longest;
    let apart = (completed * mean - in_flight * measured).abs();
    assert!(apart <= edges + 0.02 * clients * measured, "{apart} apart, {edges} at the edges: {service:#}");
}

#[test]
fn as_many_requests_are_in_flight_as_were_asked_for() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("profile.html");
    let (ran, json) = profile(&[
        "--to",
        &server.url(),
        "--light",
        "GET /quote",
        "--heavy",
        "/report",
        "--light-in-flight",
        "4",
        "--heavy-in-flight",
        "0,3",
        "--report",
        page.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (light, heavy) = (server.asked("/quote"), server.asked("/report"));
    assert_eq!((light.at_once_max, heavy.at_once_max), (4, 3), "as the server saw it");

    let points = json["points"].as_array().unwrap();
    assert_eq!((points.len(), &json["ended"]), (4, &"all_points".into()));
    assert_closed_loop(&points[0]["light"], 1.0, 0.25);
    assert_closed_loop(&points[1]["heavy"], 1.0, 0.25);
    assert_closed_loop(&points[2]["light"], 4.0, 1.0);
    assert_closed_loop(&points[3]["light"], 4.0, 1.0);
    assert_closed_loop(&points[3]["heavy"], 3.0, 1.0);
    assert!(points[2]["heavy"].is_null() && points[1]["light"].is_null());
    let all: usize = json["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|second| (number(&second["light"]) + number(&second["heavy"])) as usize)
        .sum();
    assert_eq!(all, light.requests + heavy.requests, "each answer is in the series");

    let segments = &points[3]["light"]["segments"];
    let parts: f64 = ["connect", "write", "first byte", "last byte"]
        .iter()
        .map(|segment| number(&segments[segment]["mean_s"]))
        .sum();
    let mean = number(&points[3]["light"]["response"]["mean_s"]);
    assert!((parts - mean).abs() < 1e-6, "{parts} are not {mean}");
    // Not each first byte: a client may be late to note that its request is written.
    let response = &points[3]["light"]["response"];
    assert!(number(&response["min_s"]) >= SERVICE.as_secs_f64(), "{response:#}");
    assert!(number(&segments["first byte"]["mean_s"]) > mean / 2.0, "{segments:#}");
    let told = &points[3]["heavy"]["told"];
    assert!((number(&told["accept"]["mean_s"]) - 0.0015).abs() < 1e-9, "{told:#}");
    assert_eq!(told["job"]["count"], points[3]["heavy"]["completed"]);

    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("GET /quote completes") && page.contains("</html>"));
    assert!(
        ran.err.contains("at most 7 in flight") && ran.err.contains("4 + 3 in flight: GET /quote"),
        "{ran:?}"
    );
    assert!(ran.out.contains("told: job") && ran.out.contains("slowdown"), "{ran:?}");
    let counts = server.counts.lock().unwrap();
    assert!(counts.heads.iter().all(|head| head.contains("x-request-start: t=1")), "{:?}", counts.heads[0]);
    // One client more than once: each point begins with connections of its own.
    assert_eq!(counts.connections, 1 + 1 + 4 + 7);
}

#[test]
fn each_request_has_a_connection_of_its_own_if_asked_for() {
    let server = Server::start();
    let (ran, json) = profile(&[
        "--to",
        &server.url(),
        "--light",
        "/quote",
        "--heavy",
        "/report",
        "--light-in-flight",
        "2",
        "--heavy-in-flight",
        "1",
        "--scale",
        "0.5",
        "--new-connections",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let counts = server.counts.lock().unwrap();
    assert_eq!(counts.connections, counts.heads.len());
    assert!(counts.heads.iter().all(|head| head.contains("connection: close")));
    assert!(number(&json["points"][2]["light"]["segments"]["connect"]["min_s"]) > 0.0);
}

#[test]
fn the_shop_is_profiled_by_a_visitor_who_has_logged_in() {
    let shop = Running::start(&["shop", "--port", "0", "--light-work", "20", "--search-repeats", "2"]);
    let address = address_in(&shop.wait_out("listening on"));
    let cookie = format!("Cookie: {}", log_in(address));
    let url = format!("http://{address}");
    let site = ["--to", &url, "--light", "/browse?page=1", "--heavy", "/search?q=chair"];
    // Longer than elsewhere: beside other tests one search of an unoptimised shop may take a quarter of a second.
    let load = ["--light-in-flight", "3", "--heavy-in-flight", "0,4", "--header", &cookie, "--scale", "4"];
    let (ran, json) = profile(&[&site[..], &load].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let points = json["points"].as_array().unwrap();
    assert_closed_loop(&points[3]["light"], 3.0, 4.0);
    assert_closed_loop(&points[3]["heavy"], 4.0, 4.0);
    for point in points {
        for service in [&point["light"], &point["heavy"]] {
            assert!(
                service.is_null() || service["errors"] == 0 && number(&service["completed"]) > 0.0,
                "{point:#}"
            );
        }
    }
    shop.finish();
}

/// Returns the cookie of a new session.
fn log_in(address: SocketAddr) -> String {
    let form = "user=ann&password=secret";
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(
        stream,
        "POST /login HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let line = answer.lines().find(|line| line.to_ascii_lowercase().starts_with("set-cookie:")).unwrap();
    line.split_once(':').unwrap().1.split(';').next().unwrap().trim().to_string()
}

#[test]
fn a_dry_run_says_what_it_would_do_and_sends_nothing() {
    let site = Forbidden::new();
    let ran = run(&["profile", "--to", &site.url(), "--light", "/a", "--heavy", "POST /b", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for wanted in [
        "at most 70 in flight",
        "always 30 requests in flight of GET /a",
        "beside 0, 1, 5, 10, 20, 40 of POST /b",
        "8 points, 7 min 50 s in all",
        "more than 10 % of",
    ] {
        assert!(ran.out.contains(wanted), "{wanted}: {ran:?}");
    }
    site.assert_nobody_came();
}

#[test]
fn another_machine_is_not_loaded_unless_that_is_allowed() {
    // An address of RFC 5737, where nobody is.
    let to = ["profile", "--to", "http://192.0.2.1:8080", "--light", "/a", "--heavy", "/b"];
    let ran = run(&to);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("is not this machine") && ran.err.contains("--allow-remote"), "{ran:?}");
    let allowed = run(&[&to[..], &["--allow-remote", "--dry-run"]].concat());
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
}

#[test]
fn a_site_that_fails_is_left_alone_and_what_was_measured_is_told() {
    let server = Server::start();
    let (ran, json) = profile(&[
        "--to",
        &server.url(),
        "--light",
        "/quote",
        "--heavy",
        "/status/503+Busy",
        "--heavy-in-flight",
        "9",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err.contains("3 of 3 requests for GET /status/503+Busy failed (status_503 3), and 10 % may."),
        "{ran:?}"
    );
    assert_eq!((&json["ended"], json["points"].as_array().unwrap().len()), (&"errors".into(), 2));
    assert!(number(&json["points"][0]["light"]["completed"]) > 0.0);
    assert_eq!(server.asked("/status/503+Busy").requests, 3);

    // The kernel takes its connections, and nobody answers.
    let silent = Forbidden::new();
    let (ran, json) =
        profile(&["--to", &silent.url(), "--light", "/a", "--heavy", "/b", "--timeout", "50ms"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("(timeout 3)"), "{ran:?}");
    assert_eq!(json["points"][0]["light"]["completed"], 0);
}

#[test]
fn a_redirect_leads_nowhere() {
    let (server, elsewhere) = (Server::start(), Forbidden::new());
    let redirecting = format!("/status/302+Found?{}/", elsewhere.url());
    let (ran, _) = profile(&["--to", &server.url(), "--light", &redirecting, "--heavy", "/b"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("status_302") && server.asked(&redirecting).requests == 3, "{ran:?}");
    elsewhere.assert_nobody_came();
}

#[test]
fn of_an_answer_without_end_only_so_much_is_read() {
    let server = Server::start();
    let (ran, _) = profile(&["--to", &server.url(), "--light", "/endless", "--heavy", "/b"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("answer_too_long 3"), "{ran:?}");
    let counts = server.counts.lock().unwrap();
    assert!(counts.endless_bytes.iter().all(|sent| *sent < READ_AND_BUFFERED), "{:?}", counts.endless_bytes);
}

#[test]
fn a_wrong_command_line_ends_with_2_and_sends_nothing() {
    let site = Forbidden::new();
    let url = site.url();
    for args in [
        &["--light", "/a"][..],
        &["--light", "quote", "--heavy", "/b"],
        &["--light", "/a", "--heavy", "/b", "--heavy-in-flight", "1001"],
        &[
            "--light",
            "/a",
            "--heavy",
            "/b",
            "--heavy-in-flight",
            "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20",
        ],
        &["--light", "/a", "--heavy", "/b", "--light-in-flight", "0"],
        &["--light", "/a", "--heavy", "/b", "--seconds", "0"],
        &["--light", "/a", "--heavy", "/b", "--scale", "0"],
        &["--light", "/a", "--heavy", "/b", "--errors-max", "101%"],
        &["--light", "/a", "--heavy", "/b", "--timeout", "0s"],
        &["--light", "/a", "--heavy", "/b", "--header", "nothing"],
        &["--light", "/a", "--heavy", "/b", "--json", "/nowhere/profile.json"],
        &["--light", "/a", "--heavy", "/b", "--report", "/nowhere/profile.html"],
    ] {
        let ran = run(&[&["profile", "--to", &url], args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
    }
    for to in ["nowhere", "https://127.0.0.1", "http://127.0.0.1:9/?a=b"] {
        let ran = run(&["profile", "--to", to, "--light", "/a", "--heavy", "/b"]);
        assert_eq!(ran.code, Some(2), "{to}: {ran:?}");
    }
    site.assert_nobody_came();
}

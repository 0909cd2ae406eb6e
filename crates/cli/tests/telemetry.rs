//! What `suimon serve` tells of requests: access log, ids, warnings, metrics and traces.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

mod common;

use common::{Backend, Gateway, Running, file, get, until};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use suimon_process::Signal;

/// A gateway before a backend, with these settings.
fn start(folder: &tempfile::TempDir, to: &str, text: &str) -> Gateway {
    let path = file(folder, "suimon.toml", text);
    Gateway::start(&["--to", to, "--config", &path])
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Returns what one metric says, its labels included in `name`.
fn metric(admin: SocketAddr, name: &str) -> Option<f64> {
    let text = get(admin, "/metrics").1;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
    line.map(|value| value.parse().unwrap())
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn a_line_per_request_goes_to_standard_output_as_json() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let gateway = start(&folder, &backend.url(), "[log]\naccess = \"json\"\n");
    get(gateway.clients, "/items/7?token=secret");
    let line = json(&gateway.process.wait_out("/items/7"));
    for (key, value) in [
        ("method", "GET"),
        ("path", "/items/7"),
        ("outcome", "served"),
        ("client", "127.0.0.1"),
        ("protocol", "HTTP/1.1"),
        ("kind", "visit"),
        ("node", &backend.url()),
    ] {
        assert_eq!(line[key], value, "{key} of {line}");
    }
    assert_eq!(line["status"], 200);
    assert_eq!(line["bytes"], "you asked for /items/7?token=secret\n".len());
    assert!(!line.to_string().contains("secret"), "{line}");
    assert!(line["total_seconds"].as_f64() >= line["application_seconds"].as_f64(), "{line}");
    assert_eq!(line["request_id"].as_str().unwrap().len(), 32);
    assert_eq!(metric(gateway.admin, "suimon_access_log_lines_total{outcome=\"dropped\"}"), Some(0.0));
    until("the line is counted", || {
        metric(gateway.admin, "suimon_access_log_lines_total{outcome=\"written\"}") == Some(1.0)
    });
    gateway.process.finish();
}

#[test]
fn a_file_is_opened_anew_at_sighup_and_complete_at_the_end() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let (path, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let settings = format!(
        "[log]\naccess = \"common\"\naccess_file = {:?}\naccess_query = true\n",
        path.to_str().unwrap()
    );
    let gateway = start(&folder, &backend.url(), &settings);
    get(gateway.clients, "/a?b=c");
    until("it is written", || lines(&path).len() == 1);
    let [line] = &lines(&path)[..] else { panic!("one line") };
    assert!(line.starts_with("127.0.0.1 - ") && line.contains("] \"GET /a?b=c HTTP/1.1\" 200 "), "{line}");
    fs::rename(&path, &old).unwrap();
    gateway.process.signal(Signal::HUP);
    until("it is there again", || path.exists());
    for number in 0..50 {
        get(gateway.clients, &format!("/b/{number}"));
    }
    gateway.process.finish();
    assert_eq!((lines(&old).len(), lines(&path).len()), (1, 50));
}

#[test]
fn without_an_access_log_nothing_but_the_summary_is_on_standard_output() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let gateway = start(&folder, &backend.url(), "");
    get(gateway.clients, "/a");
    assert_eq!(metric(gateway.admin, "suimon_access_log_lines_total{outcome=\"written\"}"), None);
    gateway.process.finish();
}

#[test]
fn the_same_warning_is_written_a_few_times_and_then_counted_and_can_be_json() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody listens there.
    let gone = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let settings = "[log]\nformat = \"json\"\n";
    let path = file(&folder, "suimon.toml", settings);
    let gateway = Gateway::start(&["--to", &gone, "--config", &path]);
    let failed = |number: u32| get(gateway.clients, &format!("/robots.txt?{number}"));
    // What passes without a slot does not wait for the application's return.
    assert!((0..40).all(|number| failed(number).0 == 502));
    let first = json(&gateway.process.wait_err("no response from the application"));
    for (key, value) in [
        ("level", "warn"),
        ("method", "GET"),
        ("path", "/robots.txt"),
        ("reason", "connect"),
        ("node", &gone),
        ("target", "suimon_proxy::pipeline::forward"),
    ] {
        assert_eq!(first[key], value, "{key} of {first}");
    }
    assert_eq!(first["request_id"].as_str().unwrap().len(), 32);
    // On a slow machine they come in several windows.
    let (mut written, mut told, mut more) = (1, 0, 0);
    while written + more < 40 {
        let next = json(&gateway.process.wait_err("no response from the application"));
        match next["more"].as_u64() {
            Some(count) => (told, more) = (told + 1, more + count),
            None => written += 1,
        }
    }
    assert_eq!(written + more, 40);
    assert!(
        told > 0 && written <= 5 * (told + 1),
        "{written} were written, and {told} times others were counted"
    );
    gateway.process.finish();
}

#[test]
fn metrics_come_as_openmetrics_to_whoever_asks() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let gateway = start(&folder, &backend.url(), "");
    get(gateway.clients, "/a");
    let mut stream = TcpStream::connect(gateway.admin).unwrap();
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{answer}"
    );
    assert!(
        answer.contains("# TYPE suimon_requests counter\n") && answer.contains("\nsuimon_requests_total 1\n")
    );
    assert!(answer.ends_with("# EOF\n"));
    gateway.process.finish();
}

/// A collector that answers 503 to the first request, and keeps the spans of the others.
fn collector() -> (SocketAddr, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, (sender, spans)) = (listener.local_addr().unwrap(), channel());
    thread::spawn(move || {
        for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let mut reader = BufReader::new(&stream);
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                    length = bytes.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let status = if number == 0 { "503 Service Unavailable" } else { "200 OK" };
            write!(
                &stream,
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
            )
            .unwrap();
            if number > 0 {
                let _ = sender.send((head, serde_json::from_slice(&body).unwrap()));
            }
        }
    });
    (address, spans)
}

#[test]
fn spans_reach_a_collector_that_was_away_for_a_moment() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let (address, spans) = collector();
    let settings = format!("[telemetry]\notlp_endpoint = \"http://{address}\"\ntrace_ratio = 1.0\n");
    let gateway = start(&folder, &backend.url(), &settings);
    get(gateway.clients, "/items/7?secret");
    let (head, said) = spans.recv_timeout(common::LONG).unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: application/json"), "{head}");
    let spans = said["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let names: Vec<_> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["GET", "application", "response"], "{said}");
    assert!(!said.to_string().contains("secret"), "{said}");
    until("they are counted", || {
        metric(gateway.admin, "suimon_trace_spans_total{outcome=\"sent\"}") == Some(3.0)
    });
    assert_eq!(metric(gateway.admin, "suimon_trace_spans_total{outcome=\"dropped\"}"), Some(0.0));
    gateway.process.finish();
}

#[test]
fn an_access_log_that_cannot_be_opened_is_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        file(&folder, "suimon.toml", "[log]\naccess = \"json\"\naccess_file = \"/nowhere/access.log\"\n");
    let process = Running::start(&["serve", "--listen", "127.0.0.1:0", "--admin", "off", "--config", &path]);
    let said = process.wait_err("log.access_file");
    assert!(said.contains("in a folder that is there; /nowhere is not"), "{said}");
    assert_eq!(process.end().code(), Some(2));
    assert_eq!(common::run(&["check", &path]).code, Some(2), "as it is checked");
}

//! What waiting visitors see of orderly restarts and crashes: the order is kept, and no visitor is
//! invented.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod common;

use common::{Backend, Gateway, LONG, file, get};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use suimon_process::Signal;

/// The gateway writes the file of lines within a second of a change.
const WRITES_WITHIN: Duration = Duration::from_millis(1500);

/// A newcomer, or the holder of a position; each has its own User-Agent.
struct Visitor {
    browser: usize,
    /// The ticket's cookie.
    place: Option<String>,
}

/// A response to a visitor.
struct Told {
    status: u16,
    json: Value,
}

impl Visitor {
    fn new() -> Visitor {
        static BROWSERS: AtomicUsize = AtomicUsize::new(0);
        Visitor { browser: BROWSERS.fetch_add(1, SeqCst), place: None }
    }

    /// Requests a page, or polls the position.
    fn ask(&mut self, gateway: SocketAddr) -> Told {
        let mut stream = TcpStream::connect(gateway).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let held = self.place.as_ref().map(|place| format!("Cookie: {place}\r\nSuimon-Poll: waiting\r\n"));
        let held = held.unwrap_or_default();
        write!(
            stream,
            "GET /page HTTP/1.1\r\nHost: shop.example\r\nAccept: application/json\r\nUser-Agent: browser {}\r\n{held}Connection: close\r\n\r\n",
            self.browser
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let cookie = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let value = value.split(';').next()?;
            (name.eq_ignore_ascii_case("set-cookie") && value.contains("suimon-ticket-"))
                .then(|| value.to_owned())
        });
        self.place = cookie.or(self.place.take());
        Told { status, json: serde_json::from_str(body).unwrap_or_default() }
    }

    /// Polls the position until it gets its status: a client that polls too soon gets a 429.
    fn poll(&mut self, gateway: SocketAddr) -> Value {
        let since = Instant::now();
        loop {
            let told = self.ask(gateway);
            if told.status != 429 {
                return told.json;
            }
            assert!(since.elapsed() < LONG, "too early for ever");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Starts a gateway that admits at most `sessions` sessions, and keeps all of its state in
/// `folder`.
fn start(folder: &tempfile::TempDir, backend: &Backend, sessions: u32) -> Gateway {
    let state = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = format!(
        "[gate]\nsession_law = \"static\"\nstatic_sessions = {sessions}\n[waiting_room]\nstate = \"{}\"\ntickets_burst = 100000\n\
         [lease]\nkeys = \"{}\"\n[learned]\nstate = \"none\"\n",
        state("room.json"),
        state("lease.keys")
    );
    let settings = file(folder, "suimon.toml", &text);
    Gateway::start(&["--to", &backend.url(), "--config", &settings])
}

/// Ends a gateway with this signal: SIGTERM as an operator would, SIGKILL as in a crash.
fn end(gateway: Gateway, with: Signal) {
    gateway.process.signal(with);
    gateway.process.end();
}

fn line(gateway: &Gateway) -> Value {
    let (_, lines) = get(gateway.admin, "/api/waiting-room");
    let lines: Value = serde_json::from_str(&lines).unwrap();
    lines["lines"].get(0).unwrap_or_else(|| panic!("{lines}")).clone()
}

/// Runs `suimon waiting-room` with this order.
fn order(gateway: &Gateway, order: &str) {
    let done = common::run(&["waiting-room", order, "--admin", &gateway.admin_url()]);
    assert_eq!(done.code, Some(0), "{done:?}");
}

/// Waits until the gateway has written its lines; if nothing has changed, for as long as that would
/// take.
fn until_written(folder: &tempfile::TempDir) {
    let written = || std::fs::read_to_string(folder.path().join("room.json")).unwrap_or_default();
    let (before, since) = (written(), Instant::now());
    while written() == before && since.elapsed() < WRITES_WITHIN {
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ten_restarts_in_a_rush_keep_the_order_and_invent_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let backend = Backend::start();
    let mut gateway = start(&folder, &backend, 1);
    assert_eq!(
        Visitor::new().ask(gateway.clients).status,
        200,
        "the first begins the one session there may be"
    );
    let mut visitors = Vec::from_iter((0..200).map(|_| Visitor::new()));
    for (index, visitor) in visitors.iter_mut().enumerate() {
        let told = visitor.ask(gateway.clients);
        assert_eq!(told.status, 503, "{index}");
    }
    // A visitor who has polled is present.
    visitors.iter_mut().for_each(|visitor| _ = visitor.poll(gateway.clients));
    for round in 0..10 {
        let is_crash = round % 2 == 1;
        // The gateway writes its lines within a second. After a crash it does not know visitors who
        // came after the last write.
        until_written(&folder);
        let mut newcomer = Visitor::new();
        assert_eq!(newcomer.ask(gateway.clients).status, 503, "round {round}");
        end(gateway, if is_crash { Signal::KILL } else { Signal::TERM });
        gateway = start(&folder, &backend, 1);
        let there = line(&gateway);
        let (issued, present) = (there["issued"].as_u64().unwrap(), there["present"].as_u64().unwrap());
        let known = visitors.len() as u64;
        assert!((known..=known + 1).contains(&issued), "round {round}: {there}");
        assert!(present <= known + 1, "round {round}: {there}");
        // The newcomer is recognised, written or not.
        let told = newcomer.poll(gateway.clients);
        assert!(told["ahead_present"].as_u64() <= Some(known), "round {round}: {told}");
        visitors.push(newcomer);
        let mut last = 0;
        for visitor in visitors.iter_mut().step_by(20) {
            let told = visitor.poll(gateway.clients);
            let position = told["position"].as_u64().unwrap_or_else(|| panic!("{told}"));
            assert!(position > last, "round {round}");
            last = position;
        }
    }
    let mut last = 0;
    for (index, visitor) in visitors.iter_mut().enumerate() {
        let told = visitor.poll(gateway.clients);
        let position = told["position"].as_u64().unwrap_or_else(|| panic!("{told}"));
        assert!(position > last, "the order is kept: {index}");
        assert!(
            told["state"] == "your_turn" || told["ahead_present"].as_u64() <= Some(index as u64),
            "{index}: {told}"
        );
        last = position;
    }
    end(gateway, Signal::TERM);
}

#[test]
fn once_a_rush_is_over_no_restart_closes_the_site() {
    let folder = tempfile::tempdir().unwrap();
    let backend = Backend::start();
    let gateway = start(&folder, &backend, 1);
    order(&gateway, "pause");
    for _ in 0..300 {
        Visitor::new().ask(gateway.clients);
    }
    assert_eq!(line(&gateway)["issued"], 300, "a line has formed");
    // None of them polls again.
    let since = Instant::now();
    while line(&gateway)["provisional"] != 0 {
        assert!(since.elapsed() < LONG, "a visitor who has just drawn is waited for too long");
        thread::sleep(Duration::from_millis(50));
    }
    order(&gateway, "resume");
    end(gateway, Signal::TERM);
    for round in 0..4 {
        let gateway = start(&folder, &backend, 1000);
        let there = line(&gateway);
        assert_eq!((&there["present"], &there["issued"]), (&0.into(), &300.into()), "round {round}: {there}");
        for _ in 0..4 {
            assert_eq!(Visitor::new().ask(gateway.clients).status, 200, "round {round}");
        }
        until_written(&folder);
        end(gateway, if round % 2 == 0 { Signal::KILL } else { Signal::TERM });
    }
}

#[test]
fn a_broken_state_file_is_set_aside_with_a_word_on_it_and_a_broken_key_file_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let backend = Backend::start();
    end(start(&folder, &backend, 1), Signal::TERM);
    let room = folder.path().join("room.json");
    std::fs::write(&room, b"\x00\x01half of it").unwrap();
    let gateway = start(&folder, &backend, 1);
    let said = gateway.process.wait_err("room.json");
    assert!(said.contains("room.json.broken") && said.contains("begin anew"), "{said}");
    assert_eq!(get(gateway.clients, "/").0, 200);
    end(gateway, Signal::TERM);
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(&room).unwrap().permissions().mode() & 0o777, 0o600);

    // It signs the leases of admitted visitors. If the gateway silently made a new one, it would
    // send them all back to the line.
    let keys = folder.path().join("lease.keys");
    std::fs::write(&keys, "0 12").unwrap();
    let settings = folder.path().join("suimon.toml");
    let refused = common::run(&[
        "serve",
        "--to",
        &backend.url(),
        "--config",
        settings.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "off",
    ]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("lease.keys, line 1") && refused.err.contains("64 hexadecimal"),
        "{refused:?}"
    );
    assert_eq!(std::fs::read_to_string(&keys).unwrap(), "0 12", "it is left as it is");
}

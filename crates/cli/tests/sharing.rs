//! Two real gateways before one application, and a real engine between them.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod common;

use common::{Backend, Gateway, LONG, file, get, until};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use suimon_process::Signal;
use suimon_testing::engine::EngineServer;

/// Two gateways that admit so many sessions together.
struct Group {
    backend: Backend,
    a: Gateway,
    b: Gateway,
    _folder: tempfile::TempDir,
}

/// What a visitor was told, and the cookies it has from then on.
struct Told {
    status: u16,
    cookies: Vec<String>,
    json: Value,
}

impl Group {
    fn start(engine: &EngineServer, sessions: u32) -> Group {
        let folder = tempfile::tempdir().unwrap();
        let backend = Backend::start();
        let text = format!(
            "[gate]\nsession_law = \"static\"\nstatic_sessions = {sessions}\n[waiting_room]\ntickets_burst = 100000\n\
             state = \"none\"\n[lease]\nkeys = \"{}\"\n[learned]\nstate = \"none\"\n[sharing]\nengine = \"{}\"\ngroup = \"test\"\n",
            folder.path().join("lease.keys").to_str().unwrap(),
            engine.url(),
        );
        let settings = file(&folder, "suimon.toml", &text);
        let start = || Gateway::start(&["--to", &backend.url(), "--config", &settings]);
        let (a, b) = (start(), start());
        let group = Group { a, b, backend, _folder: folder };
        group.until_phase("shared");
        for gateway in [&group.a, &group.b] {
            until("both share", || sharing(gateway)["gateways"] == 2);
        }
        group
    }

    fn until_phase(&self, phase: &str) {
        for gateway in [&self.a, &self.b] {
            until(phase, || sharing(gateway)["phase"] == phase);
        }
    }
}

fn sharing(gateway: &Gateway) -> Value {
    let (_, state) = get(gateway.admin, "/api/state");
    serde_json::from_str::<Value>(&state).unwrap()["sharing"].clone()
}

/// Asks for a page, or polls the position that a ticket gives.
fn ask(gateway: &Gateway, browser: &str, cookies: &[String]) -> Told {
    let address: SocketAddr = gateway.clients;
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let polls = cookies.iter().any(|cookie| cookie.contains("suimon-ticket-"));
    let mut head = format!(
        "GET /page HTTP/1.1\r\nHost: shop.example\r\nAccept: application/json\r\nUser-Agent: {browser}\r\nConnection: close\r\n"
    );
    if !cookies.is_empty() {
        head += &format!("Cookie: {}\r\n", cookies.join("; "));
    }
    if polls {
        head += "Suimon-Poll: waiting\r\n";
    }
    write!(stream, "{head}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let fresh = head.lines().filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("set-cookie").then(|| value.split(';').next().unwrap().to_owned())
    });
    let mut all: Vec<String> = fresh.collect();
    if all.is_empty() {
        all = cookies.to_vec();
    }
    Told { status, cookies: all, json: serde_json::from_str(body).unwrap_or_default() }
}

/// Polls until it is not too early.
fn poll(gateway: &Gateway, browser: &str, cookies: &[String]) -> Told {
    let mut told = ask(gateway, browser, cookies);
    until("a poll is answered", || {
        if told.status == 429 {
            std::thread::sleep(Duration::from_millis(100));
            told = ask(gateway, browser, cookies);
        }
        told.status != 429
    });
    told
}

#[test]
fn a_lease_of_one_is_good_at_the_other() {
    let engine = EngineServer::start();
    let group = Group::start(&engine, 2);
    let first = ask(&group.a, "first", &[]);
    assert_eq!(first.status, 200);
    assert!(first.cookies.iter().any(|cookie| cookie.starts_with("suimon=")), "{:?}", first.cookies);
    assert_eq!(ask(&group.b, "second", &[]).status, 200, "the one session that B may have");
    assert_eq!(ask(&group.b, "third", &[]).status, 503, "B is full for newcomers");
    assert_eq!(ask(&group.b, "first", &first.cookies).status, 200, "and not for who has begun at A");
    group.a.process.signal(Signal::KILL);
    assert_eq!(ask(&group.b, "first", &first.cookies).status, 200, "whose gateway has died");
    drop(group.backend);
}

#[test]
fn a_ticket_of_one_is_good_at_the_other_and_the_order_is_one() {
    let engine = EngineServer::start();
    let group = Group::start(&engine, 2);
    for gateway in [&group.a, &group.b] {
        assert_eq!(ask(gateway, "inside", &[]).status, 200);
    }
    // More than three periods apart: within them the order is not told.
    let pause = || std::thread::sleep(Duration::from_millis(400));
    let draw = |gateway: &Gateway, browser: &str| {
        let told = ask(gateway, browser, &[]);
        assert_eq!(told.status, 503, "{browser}");
        told
    };
    // The first few are called at once, and ahead of nobody.
    let first = draw(&group.a, "first");
    let crowd: Vec<Told> = (0..8).map(|number| draw(&group.a, &format!("crowd {number}"))).collect();
    pause();
    let late = draw(&group.b, "late");
    pause();
    let last = draw(&group.a, "last");
    pause();
    let ahead = |told: &Told| told.json["ahead_present"].as_u64().unwrap_or_else(|| panic!("{}", told.json));
    let (first_at_b, late_at_a) =
        (poll(&group.b, "first", &first.cookies), poll(&group.a, "late", &late.cookies));
    let last_at_b = poll(&group.b, "last", &last.cookies);
    assert_eq!(ahead(&first_at_b), 0, "{}", first_at_b.json);
    assert!(ahead(&late_at_a) >= 5, "those who drew at A before: {}", late_at_a.json);
    assert!(ahead(&last_at_b) > 5, "those, too, at a gateway that has seen none of them: {}", last_at_b.json);
    assert_eq!(crowd.len(), 8);
    // The gateway that drew it is gone: the ticket itself proves the place.
    group.a.process.signal(Signal::KILL);
    let again = poll(&group.b, "first", &first_at_b.cookies);
    assert_eq!((again.status == 503 || again.status == 200, ahead(&again)), (true, 0), "{}", again.json);
}

#[test]
fn without_the_engine_there_is_a_safe_share_and_never_an_error() {
    let engine = EngineServer::start();
    let port = engine.port();
    let group = Group::start(&engine, 1000);
    let asks = |what: &str| {
        for number in 0..20 {
            for gateway in [&group.a, &group.b] {
                let told = ask(gateway, &format!("{what} {number}"), &[]);
                assert_eq!(told.status, 200, "{what}, request {number}");
            }
        }
    };
    asks("shared");
    drop(engine);
    asks("just lost");
    group.until_phase("safe_share");
    asks("safe");
    assert_eq!(sharing(&group.a)["gateways_max"], 2);
    let (_, metrics) = get(group.a.admin, "/metrics");
    assert!(metrics.contains("suimon_sharing_phase{phase=\"safe_share\"} 1"), "{metrics}");
    let engine = EngineServer::start_at(port);
    group.until_phase("shared");
    asks("shared again");
    engine.pause(true);
    asks("paused");
    group.until_phase("safe_share");
    engine.pause(false);
    group.until_phase("shared");
}

#[test]
fn a_gateway_that_starts_without_the_engine_serves_its_safe_share() {
    let engine = EngineServer::start();
    let port = engine.port();
    drop(engine);
    let folder = tempfile::tempdir().unwrap();
    let backend = Backend::start();
    let text = format!(
        "[lease]\nkeys = \"{}\"\n[learned]\nstate = \"none\"\n[sharing]\nengine = \"redis://127.0.0.1:{port}\"\ngateways = 3\n",
        folder.path().join("lease.keys").to_str().unwrap()
    );
    let settings = file(&folder, "suimon.toml", &text);
    let gateway = Gateway::start(&["--to", &backend.url(), "--config", &settings]);
    assert_eq!(ask(&gateway, "first", &[]).status, 200);
    assert_eq!(
        (sharing(&gateway)["phase"].as_str(), sharing(&gateway)["gateways_max"].as_u64()),
        (Some("safe_share"), Some(3))
    );
}

#[test]
fn nobody_is_refused_while_the_engine_does_not_answer_at_the_start() {
    // It takes connections, and says nothing.
    let engine = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let backend = Backend::start();
    let text = format!(
        "[lease]\nkeys = \"{}\"\n[learned]\nstate = \"none\"\n[sharing]\nengine = \"redis://{}\"\ngateways = 2\n",
        folder.path().join("lease.keys").to_str().unwrap(),
        engine.local_addr().unwrap(),
    );
    let settings = file(&folder, "suimon.toml", &text);
    let gateway = Gateway::start(&["--to", &backend.url(), "--config", &settings]);
    for number in 0..3 {
        assert_eq!(ask(&gateway, &format!("visitor {number}"), &[]).status, 200, "visitor {number}");
    }
    assert_eq!(sharing(&gateway)["phase"], "safe_share");
}

#[test]
fn check_says_what_is_shared_and_refuses_an_address_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("lease.keys");
    let of = |engine: &str| {
        let text = format!(
            "[upstream]\nnodes = [\"http://127.0.0.1:9\"]\n[lease]\nkeys = \"{}\"\n[sharing]\nengine = \"{engine}\"\n",
            keys.to_str().unwrap()
        );
        common::run(&["check", &file(&folder, "suimon.toml", &text)])
    };
    let right = of("redis://gate:s3cret@10.0.0.7:6379");
    let said = format!("{right:?}");
    assert_eq!(right.code, Some(0), "{said}");
    assert!(
        said.contains("not shared") && said.contains("10.0.0.7:6379") && !said.contains("s3cret"),
        "{said}"
    );
    let wrong = of("http://10.0.0.7");
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(format!("{wrong:?}").contains("sharing.engine"), "{wrong:?}");
}

//! `suimon override`: an operator overrides limits, gate and nodes of a running gateway for a while.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

mod common;

use common::{Backend, Gateway, Ran, file, get, run, suimon, until};
use std::fs;
use std::thread;
use suimon_admin::{OverrideAnswer, RouteState, State};
use suimon_process::Signal;

/// Runs `suimon override` against a gateway.
fn over(gateway: &Gateway, args: &[&str]) -> Ran {
    run(&[&["override"], args, &["--admin", &gateway.admin_url()]].concat())
}

/// As `over`, which must be done, with the overrides that there are then.
fn done(gateway: &Gateway, args: &[&str]) -> OverrideAnswer {
    let ran = over(gateway, &[args, &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

fn state(gateway: &Gateway) -> State {
    serde_json::from_str(&get(gateway.admin, "/api/state").1).unwrap()
}

fn route(gateway: &Gateway, name: &str) -> RouteState {
    state(gateway).routes.into_iter().find(|route| route.name == name).unwrap()
}

const HELD: &str = "[[route]]\nmatch = \"GET /held\"\nmode = 5\n";

#[test]
fn a_limit_that_is_pinned_holds_until_it_is_released_and_all_is_told() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let settings = file(&folder, "suimon.toml", HELD);
    let gateway = Gateway::start(&["--to", &backend.url(), "--config", &settings]);
    assert_eq!(over(&gateway, &["list"]).out, "Nothing is overridden.\n");
    let pin = ["pin", "GET /held", "1", "--for", "30m", "--who", "anna", "--why", "incident 12"];
    let pinned = done(&gateway, &pin).overrides;
    let [own] = &pinned[..] else { panic!("{pinned:?}") };
    assert_eq!(
        (own.id, &*own.subject, &*own.name, &*own.set, &*own.value),
        (1, "route", "GET /held", "limit", "1")
    );
    assert_eq!((&*own.who, own.why.as_deref()), ("anna", Some("incident 12")));
    assert!((own.until - own.since - 1800.0).abs() < 1.0, "{own:?}");
    let said = gateway.process.wait_err("overridden for 30m: route GET /held: limit 1");
    assert!(said.contains("anna") && said.contains("incident 12"), "{said}");

    let clients = gateway.clients;
    let visits: Vec<_> = (0..2).map(|_| thread::spawn(move || get(clients, "/held").0)).collect();
    until("one is queued", || {
        let held = route(&gateway, "GET /held");
        (held.in_flight, held.queued, held.limit) == (1, 1, Some(1))
    });
    assert_eq!(state(&gateway).overrides, pinned);
    let status = run(&["status", "--admin", &gateway.admin_url()]).out;
    assert!(status.contains("GET /held: limit 1") && status.contains("by anna: incident 12"), "{status}");

    assert_eq!(done(&gateway, &["release", "1", "--who", "ben"]).overrides, []);
    gateway.process.wait_err("no longer overridden (released by ben): route GET /held: limit 1");
    until("nobody is queued", || route(&gateway, "GET /held").in_flight == 2);
    assert_eq!(route(&gateway, "GET /held").limit, Some(5));
    backend.let_go();
    assert_eq!(visits.into_iter().map(|visit| visit.join().unwrap()).collect::<Vec<_>>(), [200, 200]);
    gateway.process.finish();
}

#[test]
fn an_override_ends_by_itself_and_what_cannot_be_overridden_is_refused() {
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url()]);
    assert_eq!(get(gateway.clients, "/page").0, 200);
    done(&gateway, &["open", "--for", "1s"]);
    gateway.process.wait_err("no longer overridden (its time is over): session gate: open");
    assert_eq!(state(&gateway).overrides, []);
    let node = backend.url();
    for (args, part) in [
        (&["pin", "GET /none", "5"][..], "there is no route \"GET /none\""),
        (&["pin", "other", "5"], "share no limit"),
        (&["drain-node", "http://10.0.0.1:1"], "there is no node http://10.0.0.1:1; there are: http"),
        (&["drain-node", &node], "is the last node that takes new requests"),
        (&["release", "7"], "there is no override 7"),
    ] {
        let ran = over(&gateway, args);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("the gateway refused") && ran.err.contains(part), "{ran:?}");
    }
    gateway.process.finish();
}

#[test]
fn a_recording_has_what_was_overridden_and_is_played_alike() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let recording = folder.path().join("gate.rec").display().to_string();
    let settings = file(&folder, "suimon.toml", HELD);
    let gateway = Gateway::start(&["--to", &backend.url(), "--config", &settings, "--record", &recording]);
    backend.let_go();
    let visit = || (0..5).for_each(|page| assert_eq!(get(gateway.clients, &format!("/items/{page}")).0, 200));
    visit();
    done(&gateway, &["pin", "GET /held", "1"]);
    done(&gateway, &["observe", "GET /items/{id}"]);
    done(&gateway, &["open"]);
    visit();
    assert_eq!(get(gateway.clients, "/held").0, 200);
    (1..=3).for_each(|id| _ = done(&gateway, &["release", &id.to_string()]));
    visit();
    gateway.process.finish();
    let replay = run(&["sim", "--replay", &recording]);
    assert_eq!(replay.code, Some(0), "{replay:?}");
}

#[test]
fn an_override_outlives_a_crash_of_the_gateway_until_its_time_is_over() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let settings = file(&folder, "suimon.toml", HELD);
    // A port of its own, as one that the system chooses has no files.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let start = || {
        let args = [
            "serve",
            "--listen",
            &listen,
            "--admin",
            "127.0.0.1:0",
            "--to",
            &backend.url(),
            "--config",
            &settings,
        ];
        let mut command = suimon(&args);
        command.env("STATE_DIRECTORY", folder.path());
        Gateway::of(command)
    };
    let gateway = start();
    let pinned = done(&gateway, &["pin", "GET /held", "1", "--who", "anna"]);
    assert_eq!(pinned.overrides.len(), 1);
    gateway.process.signal(Signal::KILL);
    gateway.process.end();
    let gateway = start();
    gateway.process.wait_err("still overridden, from before the start: route GET /held: limit 1");
    let again = state(&gateway).overrides;
    assert_eq!((&*again[0].name, &*again[0].who, again[0].id), ("GET /held", "anna", 1));
    assert!((again[0].until - pinned.overrides[0].until).abs() < 1e-3, "{again:?}");
    assert_eq!(route(&gateway, "GET /held").limit, Some(1));
    done(&gateway, &["release", "1"]);
    gateway.process.finish();
    let gateway = start();
    assert_eq!((state(&gateway).overrides, route(&gateway, "GET /held").limit), (vec![], Some(5)));
    gateway.process.finish();
}

#[test]
fn nobody_is_held_while_the_gate_is_open() {
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url()]);
    let gate = || state(&gateway).kinds[0].gate.clone();
    assert_eq!(gate(), "open");
    done(&gateway, &["open"]);
    assert_eq!(gate(), "observe");
    assert_eq!(get(gateway.clients, "/page").0, 200);
    done(&gateway, &["release", "1"]);
    assert_eq!(gate(), "open");
    gateway.process.finish();
}

#[test]
fn a_reload_keeps_an_override_unless_it_changes_that_very_thing() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let other = "[[route]]\nmatch = \"GET /other\"\nmode = ";
    let settings = file(&folder, "suimon.toml", &format!("{HELD}{other}7\n"));
    let gateway = Gateway::start(&["--to", &backend.url(), "--config", &settings]);
    done(&gateway, &["pin", "GET /held", "1"]);
    done(&gateway, &["observe", "GET /other"]);
    let reload = |text: String| {
        fs::write(&settings, text).unwrap();
        gateway.process.signal(Signal::HUP);
        gateway.process.wait_err("settings reloaded");
    };
    reload(format!("{HELD}{other}7\n[limits]\nurl_bytes = 1024\n"));
    assert_eq!(state(&gateway).overrides.len(), 2);
    assert_eq!(route(&gateway, "GET /held").limit, Some(1));
    assert_eq!(route(&gateway, "GET /other").mode.as_deref(), Some("observe"));
    reload(format!("{HELD}{other}9\n[limits]\nurl_bytes = 1024\n"));
    assert_eq!(state(&gateway).overrides.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["GET /held"]);
    assert_eq!((route(&gateway, "GET /held").limit, route(&gateway, "GET /other").limit), (Some(1), Some(9)));
    gateway.process.finish();
}

#[test]
fn a_drained_node_gets_nothing_new_until_it_is_released() {
    let (one, other) = (Backend::start(), Backend::start());
    let gateway = Gateway::start(&["--to", &one.url(), "--to", &other.url()]);
    done(&gateway, &["drain-node", &one.url()]);
    let node = || state(&gateway).nodes.into_iter().find(|node| node.address == one.url()).unwrap();
    assert_eq!(node().status, "draining");
    let picked = node().picked;
    (0..20).for_each(|page| assert_eq!(get(gateway.clients, &format!("/items/{page}")).0, 200));
    assert_eq!(node().picked, picked);
    let ran = over(&gateway, &["drain-node", &other.url()]);
    assert!(ran.err.contains("is the last node"), "{ran:?}");
    done(&gateway, &["release", "1"]);
    until("it serves again", || {
        get(gateway.clients, "/items/1");
        node().picked > picked
    });
    gateway.process.finish();
}

#[test]
fn a_drained_node_serves_again_where_no_other_is_left() {
    let (one, other, folder) = (Backend::start(), Backend::start(), tempfile::tempdir().unwrap());
    let nodes = file(&folder, "nodes", &format!("{}\n{}\n", one.url(), other.url()));
    let settings =
        file(&folder, "suimon.toml", &format!("[upstream]\nnodes = []\nnodes_file = \"{nodes}\"\n"));
    let gateway = Gateway::start(&["--config", &settings]);
    until("both are found", || state(&gateway).nodes.len() == 2);
    done(&gateway, &["drain-node", &one.url()]);
    fs::write(&nodes, format!("{}\n", one.url())).unwrap();
    gateway.process.wait_err("no longer overridden (no other node is left)");
    assert_eq!(get(gateway.clients, "/items/1").0, 200);
    assert_eq!(state(&gateway).overrides, []);
    gateway.process.finish();
}

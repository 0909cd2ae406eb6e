//! Settings that change while a gateway runs: posted to the admin listener, in a file that is watched,
//! and often under load.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

mod common;

use common::{Backend, Gateway, LONG, Load, file, get, until};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use suimon_admin::{ConfigAnswer, ConfigState, State};
use suimon_process::Signal;

/// Posts settings, and returns the status and what is answered.
fn post(admin: SocketAddr, query: &str, text: &str) -> (u16, ConfigAnswer) {
    let mut stream = TcpStream::connect(admin).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(
        stream,
        "POST /api/config{query} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\nContent-Type: application/toml\r\n\
         Content-Length: {}\r\n\r\n{text}",
        text.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let read = serde_json::from_str(body).unwrap_or_else(|error| panic!("{answer}: {error}"));
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), read)
}

fn state(gateway: &Gateway) -> State {
    serde_json::from_str(&get(gateway.admin, "/api/state").1).unwrap()
}

fn config(gateway: &Gateway) -> ConfigState {
    state(gateway).config.unwrap()
}

fn status_of_a_long_url(gateway: &Gateway) -> u16 {
    get(gateway.clients, &format!("/{}", "x".repeat(2000))).0
}

#[test]
fn posted_settings_are_adopted_whole_or_not_at_all_and_hold_until_the_next_reload() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let text = format!("[upstream]\nnodes = [\"{}\"]\n", backend.url());
    let path = file(&folder, "suimon.toml", &text);
    let gateway = Gateway::start(&["--config", &path]);
    assert_eq!(get(gateway.admin, "/api/config"), (200, text.clone()));
    assert_eq!((config(&gateway).source.as_str(), config(&gateway).differs_from_file), ("file", false));

    let wanted = format!("{text}[limits]\nurl_bytes = 1024\n");
    let (status, told) = post(gateway.admin, "?dry_run=true", &wanted);
    assert_eq!((status, told.adopted, told.dry_run), (200, false, true), "{told:?}");
    let [change] = &told.changes[..] else { panic!("{told:?}") };
    assert_eq!(
        (&*change.key, &*change.from, &*change.to, change.takes_restart),
        ("limits.url_bytes", "\"16KiB\"", "1024", false)
    );
    assert_eq!(status_of_a_long_url(&gateway), 200, "it was only asked");

    let (status, told) = post(gateway.admin, "", &format!("{wanted}head_bytes = 7\n[log]\nfilter = 5\n"));
    assert_eq!((status, told.adopted), (422, false), "{told:?}");
    let at: Vec<_> = told.faults.iter().map(|fault| (fault.at.as_deref(), fault.key.as_deref())).collect();
    assert_eq!(
        at,
        [(Some("posted:5"), Some("limits.head_bytes")), (Some("posted:7"), Some("log.filter"))],
        "all of them, each with its line: {told:?}"
    );
    let (status, told) = post(gateway.admin, "", "[upstream\n");
    assert_eq!((status, told.faults.len()), (422, 1), "{told:?}");
    let (status, told) = post(gateway.admin, "", &format!("{wanted}connections = 77\n"));
    assert_eq!((status, told.adopted), (409, false), "{told:?}");
    let restart = told.changes.iter().filter(|change| change.takes_restart);
    assert_eq!(restart.map(|change| &*change.key).collect::<Vec<_>>(), ["limits.connections"]);
    assert!(told.message.contains("take a restart"), "{told:?}");
    assert_eq!(status_of_a_long_url(&gateway), 200, "nothing of all that is adopted");
    assert!(config(&gateway).last_failure.is_some());

    let (status, told) = post(gateway.admin, "", &wanted);
    assert_eq!((status, told.adopted), (200, true), "{told:?}");
    assert_eq!(status_of_a_long_url(&gateway), 414);
    assert_eq!(get(gateway.admin, "/api/config").1, wanted);
    let now = config(&gateway);
    assert_eq!((&*now.source, now.differs_from_file, now.last_failure), ("posted", true, None));
    assert_eq!(now.file.as_deref(), Some(&*path));

    gateway.process.signal(Signal::HUP);
    gateway.process.wait_err("settings reloaded");
    assert_eq!(status_of_a_long_url(&gateway), 200, "the file says so");
    assert!(!config(&gateway).differs_from_file);
    gateway.process.finish();
}

#[test]
fn a_gateway_without_a_file_takes_posted_settings_and_shows_no_password() {
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url()]);
    assert_eq!(
        (config(&gateway).source.as_str(), get(gateway.admin, "/api/config").1),
        ("none", String::new())
    );
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let text = format!(
        "[sharing]\nengine = \"redis://me:s3cret@127.0.0.1:1\"\n[lease]\nkeys = \"{}\"\n",
        keys.display()
    );
    let (status, told) = post(gateway.admin, "", &text);
    assert_eq!(status, 409, "{told:?}");
    assert!(!format!("{told:?}").contains("s3cret"), "{told:?}");
    let (status, told) = post(gateway.admin, "", "[limits]\nurl_bytes = 1024\n");
    assert_eq!(status, 200, "{told:?}");
    assert_eq!(status_of_a_long_url(&gateway), 414);
    let complained = gateway.process.wait_err("settings posted to the admin listener adopted");
    assert!(complained.contains("limits.url_bytes"), "{complained}");
    gateway.process.finish();
}

#[test]
fn a_watched_file_is_adopted_when_it_changes_and_a_wrong_one_is_told() {
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let text = format!("[upstream]\nnodes = [\"{}\"]\n", backend.url());
    let path = file(&folder, "suimon.toml", &text);
    let gateway = Gateway::start(&["--config", &path, "--watch-config"]);
    fs::write(&path, format!("{text}[limits]\nurl_bytes = 10")).unwrap();
    let said = gateway.process.wait_err("settings not reloaded");
    assert!(said.contains("limits.url_bytes"), "{said}");
    assert_eq!(status_of_a_long_url(&gateway), 200);
    // As an editor replaces it.
    let next = file(&folder, "next.toml", &format!("{text}[limits]\nurl_bytes = 1024\n"));
    fs::rename(next, &path).unwrap();
    gateway.process.wait_err("settings reloaded");
    assert_eq!(status_of_a_long_url(&gateway), 414);
    // What is posted stays until the file changes again.
    assert_eq!(post(gateway.admin, "", &text).0, 200);
    assert_eq!(status_of_a_long_url(&gateway), 200);
    fs::write(&path, format!("{text}[limits]\nurl_bytes = 1025\n")).unwrap();
    gateway.process.wait_err("settings reloaded");
    assert!(!config(&gateway).differs_from_file);
    gateway.process.finish();
}

#[test]
fn a_hundred_reloads_under_load_fail_no_request_and_forget_no_limit() {
    const RELOADS: usize = 100;
    let (backend, folder) = (Backend::start(), tempfile::tempdir().unwrap());
    let text = |round: usize| {
        let message = format!("[waiting_room]\nmessage = \"round {round}\"\n");
        format!(
            "[upstream]\nnodes = [\"{}\"]\n[limits]\nurl_bytes = {}\n{message}",
            backend.url(),
            4096 + round
        )
    };
    let path = file(&folder, "suimon.toml", &text(0));
    let gateway = Gateway::start(&["--config", &path]);
    let load = Load::begin(gateway.clients, 4, "/page");
    load.until_served(100);
    // All that was decided of the route, and what its limit is after that.
    let decided = || {
        let state = state(&gateway);
        let limit = state.routes.iter().find(|route| route.name == "GET /page").and_then(|route| route.limit);
        let moves = state.decisions.into_iter().filter(|it| it.name == "GET /page" && it.quantity == "limit");
        (limit, moves.collect::<Vec<_>>())
    };
    until("a limit is known", || decided().0.is_some());
    for round in 1..=RELOADS {
        // Each way in turn, and in between what cannot be adopted.
        if round % 2 == 0 {
            let (status, told) = post(gateway.admin, "", &text(round));
            assert_eq!((status, told.changes.len()), (200, 2), "{told:?}");
        } else {
            fs::write(&path, text(round)).unwrap();
            gateway.process.signal(Signal::HUP);
            gateway.process.wait_err("settings reloaded");
        }
        if round % 10 == 0 {
            fs::write(&path, format!("{}head_bytes = 7\n", text(round))).unwrap();
            gateway.process.signal(Signal::HUP);
            let said = gateway.process.wait_err("settings not reloaded");
            assert!(said.contains("head_bytes"), "{said}");
            assert_eq!(get(gateway.admin, "/api/config").1, text(round), "it changes nothing");
        }
        // Whatever the limit is, the law has made it so, step by step: no reload has.
        let (limit, moves) = decided();
        assert!(limit.is_some(), "after {round} reloads");
        if let Some(last) = moves.last() {
            assert_eq!(last.new, limit.map(f64::from), "after {round} reloads: {moves:?}");
        }
        for pair in moves.windows(2) {
            assert_eq!(pair[0].new, pair[1].old, "after {round} reloads: {moves:?}");
        }
        load.until_served(2);
    }
    let (served, failed) = load.end();
    assert_eq!(failed, 0, "of {served} requests");
    gateway.process.finish();
}

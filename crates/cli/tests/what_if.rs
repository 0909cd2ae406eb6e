//! `suimon sim --from`: a scenario from what a real gateway has learned about a real crowd, checked
//! and played.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

mod common;

use common::{Backend, Gateway, Site, file, get, run};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;

#[test]
fn a_running_site_becomes_a_scenario_that_can_be_edited_and_played() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start(&[]);
    // Few visitors: on a slow machine, too, every search is answered within their patience. A visitor
    // whose search takes longer browses again.
    site.visit(10, &["login", "browse", "browse-2", "search"], "9s");
    let gateway = &site.gateway;

    let out = folder.path().join("site.toml");
    let out = out.to_str().unwrap();
    let made = run(&["sim", "--from", &gateway.admin_url(), "--out", out]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.out.contains(&format!("suimon sim {out}")), "{made:?}");
    let text = fs::read_to_string(out).unwrap();
    // The learned state has the crowd's journey (login, two pages, a search), and not what visitors
    // sent.
    let learned: Value = serde_json::from_str(&get(gateway.admin, "/api/learned").1).unwrap();
    let visits = learned["kinds"][0]["visits"].as_array().unwrap();
    let to_browse = visits.iter().find(|visits| visits["route"] == "GET /browse").unwrap();
    assert!((1.5..2.5).contains(&to_browse["visits"].as_f64().unwrap()), "{learned}");
    for said in [
        "path = \"/browse\"",
        "method = \"POST\", path = \"/login\"",
        "match = \"GET /search\"",
        "rate_per_s",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("chair") && !text.contains("secret"), "{text}");

    let checked = run(&["check", out]);
    assert_eq!(checked.code, Some(0), "{checked:?}\n{text}");
    // Plays the scenario unchanged except for a shorter time; users may change its name and
    // numbers.
    let short = text
        .replace("measure = \"600s\"", "measure = \"20s\"")
        .replace("warm_up = \"120s\"", "warm_up = \"20s\"");
    assert_ne!(short, text);
    let json = folder.path().join("numbers.json");
    let short = file(&folder, "short.toml", &short);
    let played = run(&["sim", &short, "--seed", "1", "--vs", "none", "--json", json.to_str().unwrap()]);
    assert_eq!(played.code, Some(0), "{played:?}\n{text}");
    let numbers: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let rate = numbers["scenarios"][0]["runs"][0]["summary"]["sessions_per_s"].as_f64();
    assert!(rate.unwrap_or_else(|| panic!("{numbers}")) > 1.0, "sessions are finished: {played:?}");

    // A file that may have been edited is not overwritten.
    fs::write(out, "edited").unwrap();
    let again = run(&["sim", "--from", &gateway.admin_url(), "--out", out]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.err.contains("--force"), "{again:?}");
    assert_eq!(fs::read_to_string(out).unwrap(), "edited");
    let forced = run(&["sim", "--from", &gateway.admin_url(), "--out", out, "--force"]);
    assert_eq!(forced.code, Some(0), "{forced:?}");
    assert!(fs::read_to_string(out).unwrap().contains("[[journey]]"));
    let printed = run(&["sim", "--from", &gateway.admin_url()]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    assert!(printed.out.contains("[[journey]]") && printed.out.contains("[server]"), "{printed:?}");
}

#[test]
fn where_nothing_was_learned_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("site.toml");
    let from = |url: &str, out: &str| run(&["sim", "--from", url, "--out", out]);
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url()]);
    get(gateway.clients, "/");
    let path = out.to_str().unwrap();

    let little = from(&gateway.admin_url(), path);
    assert_eq!(little.code, Some(1), "{little:?}");
    assert!(little.err.contains("too little was learned: 0 sessions have ended"), "{little:?}");

    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = from(&format!("http://{free}"), path);
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
    assert!(nobody.err.contains("Is the gateway running"), "{nobody:?}");

    let other = from(&backend.url(), path);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.err.contains("is it a gateway's operator address?"), "{other:?}");

    for (url, path) in [("8001", path), (gateway.admin_url().as_str(), "/nowhere/site.toml")] {
        assert_eq!(from(url, path).code, Some(2), "{url} {path}");
    }
    assert_eq!(run(&["sim", "--out", path]).code, Some(2), "--out is for --from");
    assert_eq!(run(&["sim", "--from", &gateway.admin_url(), "x.toml"]).code, Some(2), "one or the other");
    assert!(!out.exists());
}

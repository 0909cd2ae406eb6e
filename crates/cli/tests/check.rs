//! `suimon check`, and what the command line itself refuses.

mod common;

use common::{file, run};
use std::net::TcpListener;

#[test]
fn a_right_file_is_ok_and_its_port_stays_free() {
    let folder = tempfile::tempdir().unwrap();
    // Taken by us: a check that bound it would fail.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let path = file(
        &folder,
        "suimon.toml",
        &format!("[listen]\nhttp = \"{address}\"\n[[route]]\nmatch = \"GET /search\"\nmode = 3\n"),
    );
    let ran = run(&["check", &path]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("suimon.toml: ok"), "{ran:?}");
    assert!(
        ran.out.contains(&format!("http://{address}")) && ran.out.contains("GET /search fixed at 3"),
        "{ran:?}"
    );
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(
        &folder,
        "suimon.toml",
        "[upstream]\nnode = [\"http://x\"]\n[timeouts]\nconnect = \"soon\"\n[gate]\nsession_law = \"static\"\n",
    );
    let ran = run(&["check", &path]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for wanted in [
        "3 things are wrong",
        "did you mean upstream.nodes?",
        "timeouts.connect = \"soon\": must be",
        "gate.static_sessions is missing",
    ] {
        assert!(ran.out.contains(wanted), "{wanted}: {ran:?}");
    }
}

#[test]
fn a_syntax_error_has_its_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "suimon.toml", "[listen]\nhttp = 0.0.0.0:8000\n");
    let ran = run(&["check", &path]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.out.contains("suimon.toml:2:"), "{ran:?}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let ran = run(&["check", "/nowhere/suimon.toml"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.out.contains("/nowhere/suimon.toml: cannot be read"), "{ran:?}");
}

#[test]
fn json_carries_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = run(&["check", "--json", &file(&folder, "suimon.toml", "[listen]\nbacklog = 0\n")]);
    assert_eq!(wrong.code, Some(2));
    let json: serde_json::Value = serde_json::from_str(&wrong.out).unwrap();
    assert_eq!(
        (&json["ok"], &json["faults"][0]["key"], &json["faults"][0]["seen"]),
        (&false.into(), &"listen.backlog".into(), &"0".into())
    );

    let right = run(&["check", "--json", &file(&folder, "suimon.toml", "")]);
    assert_eq!(right.code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&right.out).unwrap();
    assert_eq!((&json["ok"], &json["summary"]["clients"]), (&true.into(), &"http://0.0.0.0:8000".into()));
}

#[test]
fn journey_files_are_checked_too() {
    let right = run(&["check", concat!(env!("CARGO_MANIFEST_DIR"), "/../crowd/journeys/shop.toml")]);
    assert_eq!(right.code, Some(0), "{right:?}");
    assert!(right.out.contains("journeys"), "{right:?}");

    let folder = tempfile::tempdir().unwrap();
    let wrong = run(&["check", &file(&folder, "suimon.toml", "[[journey]]\nname = \"x\"\n")]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn the_example_file_of_the_project_is_right() {
    let ran = run(&["check", concat!(env!("CARGO_MANIFEST_DIR"), "/../../suimon.example.toml")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn wrong_usage_ends_with_2_and_help_and_version_with_0() {
    for args in [
        &[][..],
        &["sreve"],
        &["check"],
        &["serve", "--listen", "8000"],
        &["crowd", "x.toml"],
        &["status", "--watch", "--json"],
    ] {
        assert_eq!(run(args).code, Some(2), "{args:?}");
    }
    for args in [&["--help"][..], &["--version"], &["serve", "--help"], &["status", "--help"]] {
        assert_eq!(run(args).code, Some(0), "{args:?}");
    }
    assert!(run(&["serve", "--help"]).out.contains("suimon serve --to http://127.0.0.1:8080"));
}

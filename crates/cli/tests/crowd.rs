//! `suimon crowd` against `suimon shop`, and against nobody.

mod common;

use common::{Running, address_in, file, run};
use std::net::TcpListener;

const JOURNEY: &str = r#"
[arrivals.closed]
users = 2
sessions_each = 2
[visitor]
think = "0s"
[[journey]]
name = "looking"
[[journey.steps]]
name = "front"
path = "/"
"#;

#[test]
fn a_crowd_visits_the_shop_and_reports() {
    let shop = Running::start(&["shop", "--port", "0", "--light-work", "1", "--search-repeats", "1"]);
    let url = format!("http://{}", address_in(&shop.wait_out("listening on")));
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let ran = run(&[
        "crowd",
        &file(&folder, "journey.toml", JOURNEY),
        "--to",
        &url,
        "--seed",
        "7",
        "--json",
        report.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("sessions completed"), "{ran:?}");
    let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!((&json["sessions_completed"], &json["seed"]), (&4.into(), &7.into()));

    shop.finish();
}

#[test]
fn a_crowd_before_a_closed_door_fails_and_says_so() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ran = run(&[
        "crowd",
        &file(&folder, "journey.toml", JOURNEY),
        "--to",
        &format!("http://{free}"),
        "--duration",
        "300ms",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("no session was completed"), "{ran:?}");
}

#[test]
fn a_wrong_file_or_flag_ends_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = run(&[
        "crowd",
        &file(&folder, "journey.toml", "[[journey]]\nnam = \"x\"\n"),
        "--to",
        "http://127.0.0.1:9",
    ]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("journey.toml"), "{wrong:?}");

    let good = file(&folder, "journey.toml", JOURNEY);
    for args in [
        &["--to", "nowhere"][..],
        &["--to", "http://127.0.0.1:9", "--duration", "soon"],
        &["--to", "http://127.0.0.1:9", "--users", "0"],
        &["--to", "http://127.0.0.1:9", "--json", "/nowhere/report.json"],
    ] {
        let mut all = vec!["crowd", &good];
        all.extend(args);
        assert_eq!(run(&all).code, Some(2), "{args:?}");
    }
}

#[test]
fn a_shop_whose_port_is_taken_says_so() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = run(&["shop", "--port", &port]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains(&port) && ran.err.contains("--port"), "{ran:?}");
    assert_eq!(run(&["shop", "--port", "0", "--scale", "0"]).code, Some(2));
}

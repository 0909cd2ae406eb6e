//! `suimon crowd` against `suimon shop`, against a waiting room in front of it, and without a
//! server.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;

use common::{Gateway, Running, address_in, file, run};
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
        &["--to", "http://127.0.0.1:9", "--farm", "2"],
        &["--to", "http://127.0.0.1:9", "--farm", "0.6", "--forge", "0.5"],
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

/// A shop behind a waiting room that opens after some seconds and then admits two visitors per
/// second. A network may get four tickets at once, and then one per second.
struct Room {
    gateway: Gateway,
    _shop: Running,
    folder: tempfile::TempDir,
}

impl Room {
    fn start() -> Room {
        let folder = tempfile::tempdir().unwrap();
        let shop = Running::start(&["shop", "--port", "0", "--light-work", "20", "--search-repeats", "2"]);
        let url = format!("http://{}", address_in(&shop.wait_out("listening on")));
        let own = |name: &str| folder.path().join(name).display().to_string();
        let settings = format!(
            "[listen]\ntrusted_proxies = [\"127.0.0.0/8\"]\n\
             [[session]]\nkind = \"visits\"\nends = [\"POST /logout\"]\nwaiting_room = true\n\
             [gate]\nsession_law = \"paper\"\n[gate.paper_session]\nup = \"500ms\"\nperiod = \"1h\"\n\
             [lease]\nkeys = \"{}\"\n\
             [waiting_room]\nstate = \"{}\"\ntickets_burst = 4\ntickets_per_second = 1\n",
            own("lease.keys"),
            own("line.json"),
        );
        let settings = file(&folder, "suimon.toml", &settings);
        let gateway = Gateway::start(&["--config", &settings, "--to", &url]);
        let opens = std::time::SystemTime::now() + std::time::Duration::from_secs(8);
        let opens = humantime::format_rfc3339_seconds(opens).to_string();
        let ordered = run(&["waiting-room", "open", "--at", &opens, "--admin", &gateway.admin_url()]);
        assert_eq!(ordered.code, Some(0), "{ordered:?}");
        Room { gateway, _shop: shop, folder }
    }

    /// Plays eight visitors, one session each; `in_line` says what they do in line. Returns the
    /// output and the report.
    fn rehearse(&self, in_line: &str, more: &[&str]) -> (String, serde_json::Value) {
        let journey = format!(
            "seed = 3\n[arrivals.closed]\nusers = 8\nstart_over = \"1s\"\nsessions_each = 1\n\
             [visitor]\nthink = \"100ms\"\n{in_line}\n[[journey]]\nname = \"visit\"\n\
             [[journey.steps]]\nname = \"login\"\npath = \"/login\"\n\
             form = {{ user = \"user{{user}}\", password = \"secret\" }}\n\
             headers = {{ X-Forwarded-For = \"{{address}}\" }}\n\
             [[journey.steps]]\nname = \"logout\"\nmethod = \"POST\"\npath = \"/logout\"\n"
        );
        let report = self.folder.path().join("report.json");
        let to = format!("http://{}", self.gateway.clients);
        let journey = file(&self.folder, "journey.toml", &journey);
        let all = [&["crowd", &journey, "--to", &to, "--json", report.to_str().unwrap()], more].concat();
        let ran = run(&all);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        (ran.out, serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap())
    }
}

#[test]
fn a_farm_gets_its_numbers_later_and_is_told_of_apart() {
    let farm = "[visitor.in_line.farm]\nnumbers = 8\njars = 8\nevery = \"50ms\"";
    let (told, report) = Room::start().rehearse(farm, &["--farm", "0.3"]);

    let (line, farm) = (&report["line"], &report["line"]["farm"]);
    assert_eq!(
        (&report["sessions_completed"], &line["visitors"], &line["entered"]),
        (&8.into(), &6.into(), &6.into())
    );
    // The first ticket is issued while nobody waits, and does not count against a quota.
    let waits = line["waits"].as_array().unwrap();
    let drawn_at_once =
        waits.iter().filter(|wait| wait["who"] == "farmer" && wait["from_s"].as_f64() < Some(5.0)).count();
    assert!((4..=6).contains(&drawn_at_once), "{line:#}");
    assert!(
        farm["put_off"].as_u64() > Some(0) && farm["numbers_entered"].as_u64() <= farm["farmers"].as_u64(),
        "{line:#}"
    );
    assert!(told.contains(" numbers by ") && told.contains("waiting room: 6 visitors"), "{told}");
}

#[test]
fn edited_tickets_gain_nothing() {
    let forge = "[visitor.in_line.forge]\ntickets = 9\nevery = \"1s\"";
    let (told, report) = Room::start().rehearse(forge, &["--forge", "0.4"]);

    let (line, forge) = (&report["line"], &report["line"]["forge"]);
    assert_eq!((&report["sessions_completed"], &line["entered"]), (&8.into(), &line["visitors"]));
    assert_eq!((&forge["taken"], &forge["entered"]), (&0.into(), &0.into()), "{forge:#}");
    for edit in ["bit", "number", "signature"] {
        assert!(forge["tickets"][edit].as_u64() > Some(0), "{edit}: {forge:#}");
    }
    assert!(told.contains("0 got in, 0 were taken for a position: both must be 0"), "{told}");
}

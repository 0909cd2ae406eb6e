//! The learned state of `suimon serve` survives a restart, and a recording made after it is
//! replayed to the last decision.

mod common;

use common::{Backend, Gateway, Site, get, run};
use serde_json::Value;
use std::fs;

#[test]
fn a_restarted_gateway_says_what_it_began_with_and_its_recording_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("learned.json");
    let learned = ["--learned", file.to_str().unwrap()];
    let recording = folder.path().join("gate.rec");
    let pages = ["login", "browse", "search", "logout"];

    let site = Site::start(&learned);
    site.gateway.process.wait_err("no learned state yet");
    site.visit(20, &pages, "4s");
    let site = site.restart(&[&learned[..], &["--record", recording.to_str().unwrap()]].concat());
    site.gateway.process.wait_err("starting with state learned");
    let (_, state) = get(site.gateway.admin, "/api/state");
    let state: Value = serde_json::from_str(&state).unwrap();
    assert!(state["recalled"]["routes"].as_u64() >= Some(4), "{state}");
    let status = run(&["status", "--admin", &site.gateway.admin_url()]);
    assert!(status.out.contains("started with limits of"), "{status:?}");
    // Another rush, in which trials and measurements of capacity start from the recalled ones.
    site.visit(20, &pages, "4s");
    site.end();

    let ran = run(&["sim", "--replay", recording.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("\nidentical: "), "{ran:?}");
}

#[test]
fn a_damaged_file_is_set_aside_with_a_word_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("learned.json");
    fs::write(&file, "suimon learned 1 5 7 0\nbroken\n").unwrap();
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url(), "--learned", file.to_str().unwrap()]);
    let said = gateway.process.wait_err("learned.json: its checksum does not hold");
    assert!(said.contains("learned.json.damaged") && said.contains("nothing known"), "{said}");
    assert_eq!(get(gateway.clients, "/").0, 200);
    gateway.process.finish();
    assert!(folder.path().join("learned.json.damaged").exists());
}

//! `suimon serve --record` under a real crowd, and `suimon sim --replay` of what it recorded.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

mod common;

use common::{Backend, Gateway, Ran, Site, file, get, record_two_runs, run};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn replay(recording: &Path, more: &[&str]) -> Ran {
    let mut args = vec!["sim", "--replay", recording.to_str().unwrap()];
    args.extend(more);
    run(&args)
}

#[test]
fn a_crowd_is_recorded_and_the_same_decisions_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("gate.rec");
    let site = Site::start(&["--record", recording.to_str().unwrap()]);
    // Enough load that limits are searched for and sessions wait.
    site.visit(30, &["login", "browse", "search", "logout"], "8s");
    site.end();

    let json = folder.path().join("replay.json");
    let ran = replay(&recording, &["--json", json.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("\nidentical: "), "{ran:?}");
    let told: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let number =
        |path: &str| told.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {told}"));
    assert!(number("/recorded/decided") >= 3.0, "there was something to decide: {ran:?}");
    assert!(number("/recorded/admitted") > 200.0 && number("/marks") >= 7.0, "{ran:?}");
    assert!(number("/recorded/wait_p95_s") > 0.0, "somebody waited: {ran:?}");
    let routes: Vec<&str> = told["recorded"]["routes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|route| route["route"].as_str().unwrap())
        .collect();
    assert!(routes.contains(&"GET /search"), "{routes:?}");

    // A recording has nothing that visitors sent, except their routes.
    let bytes = fs::read(&recording).unwrap();
    for secret in ["chair", "secret", "page=1", "SESSION"] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret}");
    }

    let ran = replay(&recording, &["--with", "gate.session_law=static", "--with", "gate.static_sessions=2"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("with gate.session_law=static") && ran.out.contains("did not come"), "{ran:?}");

    cut_changed_and_foreign_files_are_refused(&folder, &bytes);
}

fn cut_changed_and_foreign_files_are_refused(folder: &tempfile::TempDir, bytes: &[u8]) {
    let other = folder.path().join("other.rec");
    let json = folder.path().join("none.json");
    let refused = |bytes: &[u8], said: &str| {
        fs::write(&other, bytes).unwrap();
        let ran = replay(&other, &["--json", json.to_str().unwrap()]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("other.rec") && ran.err.contains(said), "{said}: {ran:?}");
        assert!(ran.out.is_empty() && !json.exists(), "nothing is shown or written: {ran:?}");
    };
    let length = bytes.len() * 2 / 3;
    refused(&bytes[..length], &format!("at byte {length}: it stops before its end"));
    let mut changed = bytes.to_vec();
    // The last byte is of no block's head, wherever blocks begin.
    changed[bytes.len() - 1] ^= 1;
    refused(&changed, "the checksum is wrong");
    refused(b"A letter to a friend.\n", "at byte 0: it is not a recording of Suimon's");
    refused(b"", "at byte 0: it is not a recording of Suimon's");

    // How many blocks there are depends on how long the crowd took: a cut in the first one leaves
    // nothing to play, which is said.
    fs::write(&other, &bytes[..length]).unwrap();
    let ran = replay(&other, &["--partial"]);
    let says_so =
        if ran.code == Some(0) { ran.out.contains("identical") } else { ran.err.contains("stops before") };
    assert!(says_so && matches!(ran.code, Some(0 | 2)), "{ran:?}");
    // All but the last are whole.
    fs::write(&other, &bytes[..bytes.len() - 1]).unwrap();
    let ran = replay(&other, &["--partial"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.out.contains("played up to where it is whole: at byte") && ran.out.contains("identical"),
        "{ran:?}"
    );
}

#[test]
fn a_run_after_another_goes_on_in_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record_two_runs(folder.path());
    let second = replay(&recording, &[]);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(second.out.contains("2 let in") && second.out.contains("of earlier runs"), "{second:?}");
    let first = replay(&folder.path().join("gate.rec.000001"), &[]);
    assert!(first.out.contains("identical") && first.out.contains("1 let in"), "{first:?}");
}

#[test]
fn a_gateway_does_not_start_over_a_file_that_is_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let letter = file(&folder, "letter.txt", "Dear friend,\n");
    let start = |more: &[&str]| {
        let mut args =
            vec!["serve", "--to", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--admin", "off"];
        args.extend(more);
        run(&args)
    };
    let ran = start(&["--record", &letter]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("letter.txt is there and is not a recording"), "{ran:?}");
    assert_eq!(fs::read_to_string(&letter).unwrap(), "Dear friend,\n");

    let ran = start(&["--record", "/no/such/folder/gate.rec"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("must be in a folder that is there"), "{ran:?}");
    let ran = start(&["--record-bytes-max", "64MiB"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("needs a recording"), "{ran:?}");
    let ran = start(&["--record", &letter, "--record-bytes-max", "1MiB"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("8MiB or more"), "{ran:?}");
}

#[test]
fn what_cannot_be_tried_is_told_as_for_the_settings_file() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("gate.rec");
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url(), "--record", recording.to_str().unwrap()]);
    get(gateway.clients, "/");
    gateway.process.finish();
    for (with, said) in [
        ("gate.order=fastest", "gate.order = \"fastest\": must be"),
        ("gate.ordr=fifo", "did you mean gate.order?"),
        ("listen.http=off", "only settings of [gate]"),
    ] {
        let ran = replay(&recording, &["--with", with]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(said) && ran.out.is_empty(), "{ran:?}");
    }
    let ran = replay(&folder.path().join("none.rec"), &[]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("none.rec: No such file"), "{ran:?}");
}

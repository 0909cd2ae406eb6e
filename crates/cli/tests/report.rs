//! `suimon report`: pages from recordings of real gateways, and from forged ones.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

mod common;

use common::{Ran, Site, record_two_runs, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use suimon_gate::{Arrival, Gate, KindParams, Params, RouteMode};
use suimon_model::{Instant, Outcome, RequestId, RouteId, seconds};
use suimon_record::{Encoder, Event, Header, SegmentEnd};

fn report(recordings: &[&Path], folder: &Path, more: &[&str]) -> (Ran, Option<String>, Option<Value>) {
    let (page, json) = (folder.join("report.html"), folder.join("report.json"));
    let mut args = vec!["report", "--out", page.to_str().unwrap(), "--json", json.to_str().unwrap()];
    args.extend(recordings.iter().map(|path| path.to_str().unwrap()));
    args.extend(more);
    let ran = run(&args);
    let numbers = fs::read_to_string(&json).ok().map(|text| serde_json::from_str(&text).unwrap());
    (ran, fs::read_to_string(&page).ok(), numbers)
}

/// Returns a number that must be there.
fn number(numbers: &Value, path: &str) -> f64 {
    numbers.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {numbers}"))
}

/// Returns the sum of a number over a list.
fn sum(numbers: &Value, list: &str, key: &str) -> f64 {
    let list = numbers[list].as_array().unwrap();
    list.iter().map(|entry| entry[key].as_f64().unwrap_or_else(|| panic!("{key}: {entry}"))).sum()
}

fn asks_nothing_of_anybody(page: &str) {
    for outside in ["src=", "href=\"http", "@import", "url(", "<link", "NaN", ">inf"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_recorded_crowd_becomes_a_page_with_the_numbers_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("gate.rec");
    let site = Site::start(&["--record", recording.to_str().unwrap()]);
    // Enough load that limits change and visitors wait.
    site.visit(40, &["login", "search"], "6s");
    site.end();

    let (ran, page, numbers) = report(&[&recording], folder.path(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (page, numbers) = (page.unwrap(), numbers.unwrap());
    assert!(ran.out.contains("the same") && ran.out.contains("report.html"), "{ran:?}");
    assert_eq!(numbers["identical"], true);
    // Bins and routes each count every request once, and the replay counts the same.
    let offered = number(&numbers, "/offered");
    assert!(offered > 100.0 && number(&numbers, "/changed") >= 1.0, "{ran:?}");
    for (of_all, of_each) in [("offered", "offered"), ("refused", "refused"), ("abandoned", "abandoned")] {
        let all = number(&numbers, &format!("/{of_all}"));
        assert!((sum(&numbers, "bins", of_each) - all).abs() < 0.5, "{of_each} in bins");
        assert!((sum(&numbers, "routes", of_each) - all).abs() < 0.5, "{of_each} by route");
    }
    let bins = numbers["bins"].as_array().unwrap();
    assert!(bins.len() as f64 * number(&numbers, "/bin_s") >= number(&numbers, "/span_s"));
    assert!(bins.iter().any(|bin| bin["in_flight"].as_u64() > Some(0)), "the gate was looked at");

    for words in [
        "Sessions: what was got done",
        "People in line",
        "Wait to get in",
        "Requests: what came, and what became of it",
        "GET /search",
        "POST /login",
        "Why it changed",
        "were made again",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(
        page.matches("<svg").count() >= 7,
        "both widths of the first figure, four beside it, and the mark"
    );
    asks_nothing_of_anybody(&page);
    let inside = page.split_once("id=\"numbers\">").unwrap().1.split_once("</script>").unwrap().0;
    assert_eq!(serde_json::from_str::<Value>(inside).unwrap(), numbers);
    assert!(!page.contains("chair") && !page.contains("secret"));

    cut_changed_and_foreign_files_show_nothing(&folder, &fs::read(&recording).unwrap());
}

fn cut_changed_and_foreign_files_show_nothing(folder: &tempfile::TempDir, bytes: &[u8]) {
    let other = folder.path().join("other.rec");
    let out = tempfile::tempdir().unwrap();
    // Cuts and changes its last events: two thirds of a short recording may be its initial state.
    let length = bytes.len() - 20;
    let mut changed = bytes.to_vec();
    changed[length] ^= 1;
    for (bytes, said) in [
        (&bytes[..length], "--partial plays what is whole"),
        (&changed, "the checksum is wrong"),
        (b"A letter to a friend.\n", "it is not a recording of Suimon's"),
    ] {
        fs::write(&other, bytes).unwrap();
        let (ran, page, numbers) = report(&[&other], out.path(), &[]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("other.rec") && ran.err.contains(said), "{said}: {ran:?}");
        assert!(page.is_none() && numbers.is_none() && ran.out.is_empty(), "nothing is shown: {ran:?}");
    }
    fs::write(&other, &bytes[..length]).unwrap();
    let (ran, page, numbers) = report(&[&other], out.path(), &["--partial"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(page.unwrap().contains("Shown up to where it is whole: at byte"));
    assert!(numbers.unwrap()["cut_at_byte"].as_u64().is_some());
}

#[test]
fn two_runs_are_drawn_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record_two_runs(folder.path());
    let first = folder.path().join("gate.rec.000001");
    // In any order, and named more than once.
    let (ran, page, numbers) = report(&[&recording, &first, &recording], folder.path(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let numbers = numbers.unwrap();
    assert_eq!((&numbers["runs"], &numbers["offered"]), (&2.into(), &3.into()));
    assert_eq!(numbers["restarts_s"].as_array().unwrap().len(), 1);
    assert!(page.unwrap().contains("in 2 runs"));
    // A report on one of them says that there is another.
    let (ran, page, _) = report(&[&recording], folder.path(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(page.unwrap().contains("of other runs"));
}

/// Returns a recording with one answered request of a route of this name; its mark is correct or
/// wrong.
fn forged(name: &str, true_mark: bool) -> Vec<u8> {
    let at = |tenths: u32| Instant::ORIGIN + seconds(f64::from(tenths) / 10.0);
    let params = Params::default();
    let mut gate = Gate::new(params.clone(), at(0));
    gate.declare_kind(at(0), KindParams::default());
    let header = Header {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        kinds: vec!["visit".to_owned()],
        params,
        ..Header::default()
    };
    let mut bytes = suimon_record::begin(&header, &gate.save().unwrap());
    let mut encoder = Encoder::default();
    let arrival = Arrival { route: RouteId(0), session: None };
    encoder.push(at(1), &Event::Route { is_mixed: false, mode: RouteMode::Enforce, name: name.to_owned() });
    encoder.push(at(2), &Event::Arrival(arrival));
    encoder.push(at(4), &Event::End(RequestId(0), Outcome::Completed));
    let mut trace = gate.trace();
    if !true_mark {
        trace.word(1);
    }
    gate.declare_route(at(1), RouteMode::Enforce);
    gate.handle_arrival(at(2), arrival);
    while let Some(output) = gate.poll_output() {
        encoder.answer(&output);
    }
    bytes.extend(suimon_record::events(&encoder.seal(trace, Vec::new())));
    bytes.extend(suimon_record::end(SegmentEnd::Closed));
    bytes
}

#[test]
fn other_decisions_are_told_and_end_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("forged.rec");
    for (true_mark, code, said) in [(true, 0, "were made again"), (false, 1, "does not decide alike")] {
        fs::write(&recording, forged("GET /", true_mark)).unwrap();
        let (ran, page, numbers) = report(&[&recording], folder.path(), &[]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(page.unwrap().contains(said) && ran.out.contains(said), "{ran:?}");
        assert_eq!(numbers.unwrap()["identical"], true_mark);
    }
}

#[test]
fn names_cannot_break_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("forged.rec");
    fs::write(&recording, forged("GET /</script><script>alert(1)</script>\"", true)).unwrap();
    let (ran, page, numbers) = report(&[&recording], folder.path(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = page.unwrap();
    assert_eq!(page.matches("<script").count(), 1, "the numbers alone");
    assert!(page.contains("GET /&lt;/script&gt;"), "{page}");
    assert_eq!(numbers.unwrap()["routes"][0]["completed"], 1);
    asks_nothing_of_anybody(&page);
}

#[test]
fn what_is_asked_for_wrongly_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("forged.rec");
    fs::write(&recording, forged("GET /", true)).unwrap();
    let recording = recording.to_str().unwrap();
    for args in [
        &["report"][..],
        &["report", "/nowhere/gate.rec", "--out", folder.path().join("x.html").to_str().unwrap()],
        &["report", recording, "--out", "/nowhere/report.html"],
        &[
            "report",
            recording,
            "--out",
            folder.path().join("y.html").to_str().unwrap(),
            "--json",
            "/nowhere/x.json",
        ],
    ] {
        let ran = run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was written");
}

//! `suimon demo`: a complete short run, what an early end leaves behind, and what it refuses.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

mod common;

use common::{LONG, run, suimon};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use suimon_process::{Program, Running, Signal};

#[test]
fn a_short_demo_tells_everything_it_promises() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (report, json, picture) = (path("report.html"), path("demo.json"), path("picture.svg"));
    let ran = run(&[
        "demo",
        "--clients",
        "30",
        "--scale",
        "20",
        "--seconds",
        "2",
        "--seed",
        "7",
        "--report",
        &report,
        "--json",
        &json,
        "--picture",
        &picture,
    ]);
    // This does not test whether Suimon keeps its promise in two seconds on a busy machine, but
    // whether the report tells the truth about it.
    let numbers: Value =
        serde_json::from_str(&fs::read_to_string(&json).unwrap_or_else(|_| panic!("{ran:?}"))).unwrap();
    let holds = numbers["holds"].as_bool().unwrap();
    assert_eq!(ran.code, Some(if holds { 0 } else { 1 }), "{ran:?}");
    assert_eq!(ran.out.contains("Suimon held"), holds, "{ran:?}");

    let bound = numbers["bound_sessions_per_s"].as_f64().unwrap();
    assert!(bound > 0.0);
    let runs = numbers["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "suimon"]);
    for run in runs {
        let number = |key: &str| run[key].as_f64().unwrap_or_else(|| panic!("{key} in {run}"));
        assert!((number("goodput_share") - number("sessions_per_s") / bound).abs() < 1e-9);
        let by_step = run["failures_by_step"].as_object().unwrap();
        let sum: f64 = by_step.values().map(|count| count.as_f64().unwrap()).sum();
        assert!((sum - number("mid_session_failures") - number("first_step_failures")).abs() < 1e-9, "{run}");
        assert!(by_step.contains_key("search") && number("wasted_requests") >= 0.0);
        // The same crowd came.
        assert_eq!(run["visitors"]["seed"], 7);
    }
    assert!(runs[0]["gateway"].as_array().unwrap().is_empty());

    for words in ["without Suimon", "with Suimon", "share of the bound", "failures by step", "Report: "] {
        assert!(ran.out.contains(words), "{words} in {}", ran.out);
    }
    // Standard error is no terminal: plain lines, nothing is redrawn.
    assert!(ran.err.contains("bound: ") && !ran.err.contains('\u{1b}'), "{}", ran.err);
    let page = fs::read_to_string(&report).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(fs::read_to_string(&picture).unwrap().starts_with("<svg"));
}

#[test]
fn a_short_demo_of_degradation_plays_the_real_tomcat_in_three_acts() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (report, json, picture) = (path("report.html"), path("demo.json"), path("picture.svg"));
    let jar = concat!(env!("CARGO_MANIFEST_DIR"), "/../../apps/tomcat-shop/target/tomcat-shop.jar");
    let ran = run(&[
        "demo",
        "--of",
        "degradation",
        "--jar",
        jar,
        "--seconds",
        "4",
        "--report",
        &report,
        "--json",
        &json,
        "--picture",
        &picture,
    ]);
    let numbers: Value =
        serde_json::from_str(&fs::read_to_string(&json).unwrap_or_else(|_| panic!("{ran:?}"))).unwrap();
    // Whether the wishes are kept within four seconds says nothing; that the truth is told does.
    assert_eq!(ran.code, Some(if ran.out.contains("Suimon held") { 0 } else { 1 }), "{ran:?}");
    let acts = numbers["acts"].as_array().unwrap();
    let fronts: Vec<&str> = acts.iter().map(|act| act["front"].as_str().unwrap()).collect();
    assert_eq!(fronts, ["nothing", "ratio", "floor"]);
    for act in acts {
        let number =
            |side: &str, key: &str| act[side][key].as_f64().unwrap_or_else(|| panic!("{key} in {act}"));
        let slowed = |side: &str, clients: f64| clients / number(side, "per_s") / number(side, "alone_s");
        let ratio = slowed("heavy", 20.0) / slowed("light", 30.0);
        assert!((ratio / act["ratio"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{act}");
        let pauses = act["pauses"].as_array().unwrap();
        assert_eq!(pauses.is_empty(), act["front"] == "nothing", "{act}");
    }
    for words in ["without Suimon", "slowdown 1 : 2", "floor ", "Report: "] {
        assert!(ran.out.contains(words), "{words} in {}", ran.out);
    }
    assert!(!ran.err.contains('\u{1b}'), "{}", ran.err);
    assert!(fs::read_to_string(&report).unwrap().trim_end().ends_with("</html>"));
    assert!(fs::read_to_string(&picture).unwrap().starts_with("<svg"));
}

#[test]
fn a_short_demo_of_a_cluster_needs_nothing_but_the_binary() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (report, json, picture) = (path("report.html"), path("demo.json"), path("picture.svg"));
    let ran = run(&[
        "demo",
        "--of",
        "cluster",
        "--seconds",
        "6",
        "--report",
        &report,
        "--json",
        &json,
        "--picture",
        &picture,
    ]);
    let numbers: Value =
        serde_json::from_str(&fs::read_to_string(&json).unwrap_or_else(|_| panic!("{ran:?}"))).unwrap();
    // Whether nodes come within six seconds says nothing; that the truth is told does.
    assert_eq!(ran.code, Some(if ran.out.contains("Suimon held") { 0 } else { 1 }), "{ran:?}");
    assert_eq!(numbers["phases"].as_array().unwrap().len(), 3);
    assert!(numbers["visitors"]["sessions_begun"].as_u64().unwrap() > 0);
    let samples = numbers["samples"].as_array().unwrap();
    assert!(samples.iter().any(|sample| sample["serving"].as_u64() >= Some(1)), "{samples:?}");
    for words in ["three times as much", "sessions/s asked for", "Report: "] {
        assert!(ran.out.contains(words), "{words} in {}", ran.out);
    }
    assert!(!ran.err.contains('\u{1b}'), "{}", ran.err);
    assert!(fs::read_to_string(&report).unwrap().trim_end().ends_with("</html>"));
    assert!(fs::read_to_string(&picture).unwrap().starts_with("<svg"));
}

#[test]
fn what_is_asked_for_wrongly_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("no/such/folder/report.html");
    let nowhere = nowhere.to_str().unwrap();
    let wrong: [(&[&str], &str); 6] = [
        (&["--clients", "0"], "--clients"),
        (&["--scale", "0"], "must be a number from 0.1 to 100"),
        (&["--seconds", "1"], "--seconds"),
        (&["--report", nowhere], "cannot be written"),
        (&["--json", nowhere], "--json"),
        (&["--of", "degradation", "--jar", nowhere], "Build the Tomcat shop"),
    ];
    for (arguments, said) in wrong {
        let mut all = vec!["demo"];
        all.extend(arguments);
        if !arguments.contains(&"--report") {
            let report = folder.path().join("report.html");
            all.extend(
                ["--report".to_string(), report.to_str().unwrap().to_string()].map(|text| &*text.leak()),
            );
        }
        let ran = run(&all);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(said), "{arguments:?}: {ran:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");
}

/// A demo that runs beside the test.
struct Begun {
    demo: Running,
    report_folder: tempfile::TempDir,
    _words: tempfile::TempDir,
}

impl Begun {
    fn start() -> Begun {
        let (folder, words) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let report = folder.path().join("report.html");
        let demo = Program::of("demo", suimon(&["demo", "--clients", "20", "--scale", "20"]))
            .args(["--seconds", "3600", "--report"])
            .arg(report.display());
        Begun { demo: demo.start(words.path()).unwrap(), report_folder: folder, _words: words }
    }

    /// Waits until the demo has a child with each of these words on its command line, and returns
    /// all children.
    fn wait_for_children(&self, words: &[&str]) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        wait_until("its processes", || {
            found = children_of(self.demo.pid());
            let lines: Vec<String> = found.iter().filter_map(|pid| proc_file(*pid, "cmdline")).collect();
            words.iter().all(|word| lines.iter().any(|line| line.split('\0').any(|part| part == *word)))
        });
        found
    }
}

#[test]
fn an_interrupted_demo_leaves_no_process_and_no_report() {
    let mut begun = Begun::start();
    let children = begun.wait_for_children(&["shop"]);
    begun.demo.signal(Signal::INT);
    let status = begun.demo.wait(2 * LONG).unwrap();
    assert_eq!(status.code(), Some(1));
    // The demo waits for its children, so they are gone now, not later.
    let left: Vec<&u32> = children.iter().filter(|pid| is_suimon(**pid)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(fs::read_dir(begun.report_folder.path()).unwrap().count(), 0);
}

#[test]
fn a_killed_demo_takes_its_processes_with_it() {
    let mut begun = Begun::start();
    let children = begun.wait_for_children(&["shop"]);
    begun.demo.signal(Signal::KILL);
    begun.demo.wait(LONG).unwrap();
    wait_until("their end", || !children.iter().any(|pid| is_suimon(*pid)));
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < 2 * LONG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn proc_file(pid: u32, name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/{name}")).ok()
}

/// Returns whether the process exists, runs our binary and is no zombie.
fn is_suimon(pid: u32) -> bool {
    let dead =
        proc_file(pid, "stat").and_then(|stat| Some(stat.rsplit_once(')')?.1.trim_start().starts_with('Z')));
    dead == Some(false)
        && proc_file(pid, "cmdline").is_some_and(|line| line.starts_with(env!("CARGO_BIN_EXE_suimon")))
}

fn children_of(parent: u32) -> BTreeSet<u32> {
    let pids = fs::read_dir(Path::new("/proc"))
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let parent_of = |pid: u32| -> Option<u32> {
        let stat = proc_file(pid, "stat")?;
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

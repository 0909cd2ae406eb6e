//! `suimon sim`: its output, files and exit codes; and the other commands that take its files.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which clippy does not take for tests")]

mod common;

use common::{Backend, Ran, Running, file, run};
use serde_json::Value;
use std::fs;
use suimon_process::Signal;

/// A few visitors, half of whom would keep the application busy; two pages, the second one heavy.
const SCENARIO: &str = r#"
question = "Do a few visitors get through?"
warm_up = "5s"
measure = "20s"
seeds = [3, 4]
[arrivals.closed]
users = 12
start_over = "1s"
[visitor]
think = "200ms"
patience = "30s"
[[journey]]
name = "looking"
steps = [{ name = "front", path = "/" }, { name = "search", path = "/search" }]
[server]
cores = 1
efficiency = "flat"
[[server.route]]
match = "* /*"
cpu = "10ms"
[[server.route]]
match = "GET /search"
cpu = "100ms"
"#;

const HOLDS: &str = "[expect]\ncompleted = { min = 20 }\nmid_session_failures = 0\n";
const DOES_NOT_HOLD: &str = "[expect]\ncompleted = { min = 20 }\nsessions_per_s = { min = 10 }\n";

fn scenario(folder: &tempfile::TempDir, name: &str, expect: &str) -> String {
    file(folder, name, &format!("{SCENARIO}{expect}"))
}

fn numbers(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns the names in the folder, to check what a command leaves behind.
fn names_in(folder: &tempfile::TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_holds_ends_with_0_and_is_shown_with_the_laws_it_was_compared_with() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(&["sim", &scenario(&folder, "few.toml", HOLDS), "--vs", "none,fixed:2+open"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for text in [
        "few: Do a few visitors get through?",
        "20s after 5s of warm-up; seeds 3, 4",
        "✓ completed at least 20",
        "✓ mid_session_failures exactly 0",
        "It holds: all 2 bands, 1 scenario.",
    ] {
        assert!(ran.out.contains(text), "{text}: {ran:?}");
    }
    let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let laws: Vec<String> =
        ran.out.lines().skip_while(|line| !line.contains("laws ")).filter_map(first).collect();
    assert_eq!(laws[..4], ["laws", "suimon", "none", "fixed:2+open"], "{ran:?}");
    assert!(ran.err.contains("6 of 6 runs played"), "{ran:?}");
}

#[test]
fn what_does_not_hold_ends_with_1_and_says_how_to_see_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = scenario(&folder, "few.toml", DOES_NOT_HOLD);
    let ran = run(&["sim", &path]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("✗ sessions_per_s at least 10"), "{ran:?}");
    assert!(ran.out.contains("✓ completed at least 20"), "{ran:?}");
    assert!(ran.out.contains("1 of 2 bands not kept"), "{ran:?}");

    let again = format!("suimon sim {path} --seed 4");
    let line =
        ran.out.lines().find(|line| line.contains(&again)).unwrap_or_else(|| panic!("{again}: {ran:?}"));
    let seen = |line: &str| line.trim().split("    ").next().map(str::to_owned);
    let alone = run(&["sim", &path, "--seed", "4"]);
    assert!(alone.out.lines().any(|other| seen(other) == seen(line)), "{line}: {alone:?}");
}

#[test]
fn the_json_has_every_run_with_what_a_script_wants() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("numbers.json").to_str().unwrap().to_string();
    let path = scenario(&folder, "few.toml", DOES_NOT_HOLD);
    let ran = run(&["sim", &path, "--seeds", "3", "--vs", "none", "--json", &json]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let numbers = numbers(&json);
    assert_eq!((&numbers["holds"], &numbers["complete"]), (&false.into(), &true.into()));
    let scenario = &numbers["scenarios"][0];
    assert_eq!((&scenario["scenario"], &scenario["file"]), (&"few".into(), &path.into()));
    let runs = scenario["runs"].as_array().unwrap();
    let who: Vec<(&str, u64)> =
        runs.iter().map(|run| (run["name"].as_str().unwrap(), run["seed"].as_u64().unwrap())).collect();
    assert_eq!(who, [("suimon", 1), ("suimon", 2), ("suimon", 3), ("none", 1), ("none", 2), ("none", 3)]);
    for run in runs {
        assert_eq!(run["laws"], if run["name"] == "none" { "off+open" } else { "set+set" });
        assert_eq!((&run["ended"], &run["own"]), (&"played".into(), &(run["name"] == "suimon").into()));
        let rate = run["summary"]["sessions_per_s"].as_f64().unwrap();
        assert!(rate > 1.0 && rate < 10.0, "{run}");
        let bands = run["bands"].as_array().unwrap();
        let band = bands.iter().find(|band| band["metric"] == "sessions_per_s").unwrap();
        assert_eq!((&band["min"], &band["held"]), (&10.0.into(), &false.into()));
        assert!((band["value"].as_f64().unwrap() - rate).abs() < 1e-9, "{run}");
        let trace = run["trace"].as_str().unwrap();
        assert!(trace.len() == 16 && u64::from_str_radix(trace, 16).is_ok(), "{trace}");
        assert!(run["events"].as_u64().unwrap() > 100 && run["wall_s"].as_f64().unwrap() >= 0.0);
    }
}

#[test]
fn how_many_run_at_once_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["b.toml", "a.toml"].map(|name| scenario(&folder, name, HOLDS));
    let played = |jobs: &str| -> (String, Value) {
        let json = folder.path().join(format!("{jobs}.json")).to_str().unwrap().to_string();
        let ran = run(&[
            "sim", &paths[0], &paths[1], "--seeds", "4", "--vs", "paper", "--jobs", jobs, "--json", &json,
        ]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let mut numbers = numbers(&json);
        for scenario in numbers["scenarios"].as_array_mut().unwrap() {
            for run in scenario["runs"].as_array_mut().unwrap() {
                run.as_object_mut().unwrap().remove("wall_s").expect("each run says how long it took");
            }
        }
        (ran.out, numbers)
    };
    let (one, two) = (played("1"), played("2"));
    assert_eq!(one, two);
    // Scenarios are in the order of the command line.
    assert_eq!(one.1["scenarios"][0]["scenario"], "b");
}

#[test]
fn a_folder_is_played_but_for_what_others_stand_on() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder, "_base.toml", SCENARIO);
    for (name, users) in [("two.toml", 2), ("one.toml", 1)] {
        file(
            &folder,
            name,
            &format!("base = \"_base.toml\"\nseeds = 1\n[arrivals.closed]\nusers = {users}\n"),
        );
    }
    let ran = run(&["sim", folder.path().to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let order: Vec<Option<usize>> =
        ["one: Do", "two: Do", "_base: "].iter().map(|name| ran.out.find(name)).collect();
    assert!(order[0].is_some() && order[0] < order[1] && order[2].is_none(), "{ran:?}");
    assert!(ran.out.contains("2 scenarios played; nothing is expected of them."), "{ran:?}");
}

#[test]
fn the_report_carries_all_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.html").to_str().unwrap().to_string();
    let path = scenario(&folder, "few.toml", DOES_NOT_HOLD);
    let ran = run(&["sim", &path, "--vs", "none", "--report", &report]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let page = fs::read_to_string(&report).unwrap();
    for text in
        ["<h1>It does not hold</h1>", "Do a few visitors get through?", "GET /search", "--seed 4", "bound "]
    {
        assert!(page.contains(text), "{text}");
    }
    for outside in ["src=", "href=\"http", "@import", "url(", "<link", "NaN", ">inf"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(
        page.matches("<svg").count() >= 6,
        "both widths of the first figure, three beside it, and the mark"
    );
    let inside = page.split_once("id=\"numbers\">").unwrap().1.split_once("</script>").unwrap().0;
    let numbers: Value = serde_json::from_str(inside).unwrap();
    assert_eq!(numbers["scenarios"][0]["runs"].as_array().unwrap().len(), 4);
}

#[test]
fn a_question_cannot_break_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let text = SCENARIO.replace("Do a few", "</script><script>Do a few");
    let report = folder.path().join("report.html").to_str().unwrap().to_string();
    assert_eq!(
        run(&["sim", &file(&folder, "x.toml", &text), "--seed", "1", "--report", &report]).code,
        Some(0)
    );
    assert_eq!(fs::read_to_string(&report).unwrap().matches("<script").count(), 1);
}

#[test]
fn what_is_wrong_is_told_at_once_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let good = scenario(&folder, "good.toml", HOLDS);
    let bad = file(&folder, "bad.toml", "[server]\ncores = 0\ncors = 1\n");
    let before = names_in(&folder);
    let json = folder.path().join("numbers.json").to_str().unwrap().to_string();
    let ran = run(&["sim", &good, &bad, "/nowhere/x.toml", "--vs", "nonsense", "--json", &json]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for text in [
        "\"nonsense\" is no law: write one of suimon",
        "bad.toml:3",
        "cors",
        "server.cores",
        "/nowhere/x.toml",
    ] {
        assert!(ran.err.contains(text), "{text}: {ran:?}");
    }
    assert_eq!((ran.out.as_str(), names_in(&folder)), ("", before));

    for args in [
        &[][..],
        &[&good, "--seeds", "0"],
        &[&good, "--seeds", "2", "--seed", "1"],
        &[&good, "--jobs", "0"],
        &[&good, "--json", "/nowhere/numbers.json"],
        &[&good, "--report", "/nowhere/report.html"],
        &[&tempfile::tempdir().unwrap().path().to_string_lossy()],
    ] {
        let all: Vec<&str> = ["sim"].iter().chain(args).copied().collect();
        assert_eq!(run(&all).code, Some(2), "{args:?}");
    }
}

#[test]
fn a_file_that_was_there_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = scenario(&folder, "few.toml", HOLDS);
    let json = file(&folder, "numbers.json", &"old ".repeat(100_000));
    assert_eq!(run(&["sim", &path, "--seed", "1", "--json", &json]).code, Some(0));
    assert_eq!(numbers(&json)["holds"], true);
    assert_eq!(names_in(&folder), ["few.toml", "numbers.json"]);
}

#[test]
fn told_to_stop_it_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let long = SCENARIO.replace("measure = \"20s\"", "measure = \"20h\"");
    let json = folder.path().join("numbers.json").to_str().unwrap().to_string();
    let path = file(&folder, "long.toml", &long);
    let sim = Running::start(&["sim", &path, "--seeds", "100000", "--jobs", "1", "--json", &json]);
    // It shows its progress, so it already listens for signals.
    sim.wait_err("of 100000 runs");
    sim.signal(Signal::INT);
    sim.wait_out("It does not hold: interrupted with");
    assert_eq!(sim.end().code(), Some(1));
    let numbers = numbers(&json);
    assert_eq!((&numbers["holds"], &numbers["complete"]), (&false.into(), &false.into()));
    let runs = numbers["scenarios"][0]["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[99_999]["ended"]), (100_000, &"not_played".into()));
}

#[test]
fn every_law_that_is_listed_can_be_played() {
    let listed = run(&["sim", "--list-laws"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("numbers.json").to_str().unwrap().to_string();
    let path = scenario(&folder, "few.toml", "");
    let ran = run(&["sim", &path, "--seed", "1", "--vs", "all", "--json", &json]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let numbers = numbers(&json);
    let runs = numbers["scenarios"][0]["runs"].as_array().unwrap();
    assert!(runs.len() > 4, "{ran:?}");
    for run in runs {
        let name = run["name"].as_str().unwrap();
        assert!(
            listed.out.lines().any(|line| line.split_whitespace().next() == Some(name)),
            "{name}: {listed:?}"
        );
    }
}

#[test]
fn check_knows_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let right = run(&["check", &scenario(&folder, "few.toml", HOLDS)]);
    assert_eq!(right.code, Some(0), "{right:?}");
    for text in ["few.toml: ok", "Do a few visitors", "1 cores", "completed at least 20"] {
        assert!(right.out.contains(text), "{text}: {right:?}");
    }
    let wrong = run(&["check", &scenario(&folder, "few.toml", "[expect]\ngoodput = 1\n")]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.out.contains("goodput"), "{wrong:?}");
}

#[test]
fn a_crowd_plays_a_scenario_and_judges_what_visitors_see() {
    let backend = Backend::start();
    let folder = tempfile::tempdir().unwrap();
    let live = SCENARIO.replace("warm_up = \"5s\"\nmeasure = \"20s\"", "warm_up = \"0s\"\nmeasure = \"20s\"");
    let live = live.replace("users = 12", "users = 2\nsessions_each = 2").replace("\"200ms\"", "\"0s\"");
    let crowd = |expect: &str| -> Ran {
        let path = file(&folder, "live.toml", &format!("{live}[expect]\n{expect}\n"));
        run(&["crowd", &path, "--to", &backend.url()])
    };
    let kept = crowd("completed = 4\nmid_session_failures = 0\ngoodput_share = { min = 0.9 }");
    assert_eq!(kept.code, Some(0), "{kept:?}");
    for text in [
        "✓ completed exactly 4: 4",
        "✓ mid_session_failures exactly 0",
        "· goodput_share at least 0.9: not judged",
        "seed 3",
    ] {
        assert!(kept.out.contains(text), "{text}: {kept:?}");
    }
    let missed = crowd("completed = 5");
    assert_eq!(missed.code, Some(1), "{missed:?}");
    assert!(missed.out.contains("✗ completed exactly 5: 4"), "{missed:?}");
}

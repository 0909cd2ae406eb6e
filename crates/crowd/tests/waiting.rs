//! The crowd before a waiting room: what those do who wait, and what is written down of it.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod room;
#[allow(dead_code, reason = "each file of tests is a crate of its own and uses its part")]
mod support;

use room::Rules;
use std::time::Duration;
use suimon_crowd::{LineReport, Options, Report, run};
use support::Server;

/// Plays so many users, one session each, who look at one page.
fn visit(server: &Server, users: u32, more: &str) -> Report {
    let text = format!(
        "seed = 7\n[arrivals.closed]\nusers = {users}\nstart_over = \"1s\"\nsessions_each = 1\n\
         [[journey]]\nname = \"visit\"\n[[journey.steps]]\nname = \"front\"\npath = \"/\"\n{more}"
    );
    let options = Options {
        base_url: server.url(),
        workload: suimon_settings::journey::read(&text).unwrap(),
        seed: None,
        warmup: Duration::ZERO,
        measure: None,
        progress: None,
    };
    run(options, std::future::pending()).unwrap()
}

fn line(report: &Report) -> &LineReport {
    report.line.as_ref().expect("somebody had to wait")
}

#[test]
fn everybody_waits_for_the_turn_and_what_they_saw_is_written_down() {
    let server = room::start(Rules { per_second: 2.0, numbers_max: u64::MAX });
    let report = visit(&server, 10, "");

    let line = line(&report);
    assert_eq!((report.sessions_completed, line.visitors, line.entered, line.gave_up), (10, 10, 10, 0));
    assert_eq!((line.still_waiting, line.waits.len(), line.order.judged), (0, 10, 10));
    assert!(line.wait.min_s > 5.0 && line.wait.p95_s < 20.0, "{:?}", line.wait);
    let mut numbers: Vec<u64> = line.waits.iter().filter_map(|wait| wait.position).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
    for wait in &line.waits {
        assert!(wait.entered && wait.line == "00ff" && !wait.told.is_empty(), "{wait:?}");
        assert!(wait.told[0].after_s <= wait.waited_s && wait.from_s <= 1.1, "{wait:?}");
    }
    let table = report.table();
    for wanted in ["waiting room: 10 visitors, of whom 10 got in, 0 gave up, 0 still waited", "overtaken"] {
        assert!(table.contains(wanted), "{wanted} in\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

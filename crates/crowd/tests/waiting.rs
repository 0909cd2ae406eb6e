//! The crowd in a waiting room: what waiting visitors do, and what the crowd reports.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod room;
#[allow(dead_code, reason = "each file of tests is a crate of its own and uses its part")]
mod support;

use room::Rules;
use std::time::Duration;
use suimon_crowd::{LineReport, Options, Report, Who, run};
use support::Server;

/// Plays `users` users, one session each, who look at one page.
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
    let server = room::start(Rules { per_second: 2.0, ..Rules::default() });
    let report = visit(&server, 10, "");

    let line = line(&report);
    assert_eq!((report.sessions_completed, line.visitors, line.entered, line.gave_up), (10, 10, 10, 0));
    assert_eq!((line.still_waiting, line.waits.len(), line.order.judged), (0, 10, 10));
    assert_eq!(report.refusals, 0, "a waiting page is no refusal");
    assert!(report.waiting_pages >= 10, "{}", report.waiting_pages);
    assert!(line.wait.min_s > 5.0 && line.wait.p95_s < 20.0, "{:?}", line.wait);
    let mut numbers: Vec<u64> = line.waits.iter().filter_map(|wait| wait.position).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
    for wait in &line.waits {
        assert!(wait.entered && wait.line == "00ff" && !wait.told.is_empty(), "{wait:?}");
        assert!(wait.told[0].after_s <= wait.waited_s && wait.from_s <= 1.1, "{wait:?}");
    }
    let table = report.table(100);
    for wanted in [
        "waiting room: 10 visitors, of whom 10 got in, 0 gave up, 0 still waited",
        "overtaken",
        "waiting pages",
    ] {
        assert!(table.contains(wanted), "{wanted} in\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn farmers_wait_with_several_numbers_and_come_in_with_one() {
    let server = room::start(Rules { per_second: 2.0, numbers_max: 8, ..Rules::default() });
    let farm = "[visitor.in_line.farm]\nshare = 0.5\nnumbers = 5\njars = 3\nevery = \"100ms\"";
    let report = visit(&server, 6, farm);

    let line = line(&report);
    let farm = line.farm.as_ref().expect("some of them farm");
    assert_eq!((report.sessions_completed, line.visitors + farm.farmers), (6, 6));
    assert!(line.visitors > 0 && line.entered == line.visitors, "{line:?}");
    assert_eq!((farm.numbers, farm.numbers_entered), (5 * farm.farmers, farm.farmers));
    assert_eq!(farm.wait.count, farm.farmers);
    // After the eighth ticket the room made the farmers wait for a second; without that, getting
    // the tickets takes 0.4 s.
    assert!(farm.put_off > 0 && farm.drawing.max_s > 0.95, "{farm:?}");
    let places = |entered| line.waits.iter().filter(|w| w.who == Who::Farmer && w.entered == entered).count();
    assert_eq!((places(true) as u64, places(false) as u64), (farm.farmers, 2 * farm.farmers));
    assert_eq!((line.wait.count, line.order.judged), (line.visitors, line.visitors));
    let table = report.table(100);
    assert!(table.contains("numbers by") && table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn farmers_without_cookies_draw_numbers_and_never_come_in() {
    let server = room::start(Rules::default());
    let farm = "[visitor.in_line.farm]\nshare = 1\nnumbers = 7\njars = 0\nevery = \"50ms\"";
    let report = visit(&server, 2, farm);
    let line = line(&report);
    let farm = line.farm.as_ref().unwrap();
    assert_eq!((farm.farmers, farm.numbers, farm.numbers_entered, farm.wait.count), (2, 14, 0, 0));
    assert_eq!((line.visitors, line.waits.len(), report.sessions_gave_up), (0, 0, 2));
}

#[test]
fn a_farmer_out_of_patience_leaves_with_all_places() {
    let server = room::start(Rules { per_second: 0.001, ..Rules::default() });
    let farm = "[visitor.in_line]\npatience = \"1s\"\n[visitor.in_line.farm]\nshare = 1\nnumbers = 3\nevery = \"10ms\"";
    let report = visit(&server, 1, farm);
    let line = line(&report);
    assert_eq!((report.sessions_gave_up, line.waits.len(), line.farm.as_ref().unwrap().numbers), (1, 3, 3));
    assert!(line.waits.iter().all(|wait| !wait.entered && wait.who == Who::Farmer));
}

const FORGE: &str = "[visitor.in_line.forge]\nshare = 0.5\ntickets = 12\nevery = \"1s\"";

#[test]
fn edited_tickets_are_sent_and_come_to_nothing() {
    let server = room::start(Rules { per_second: 0.5, ..Rules::default() });
    let report = visit(&server, 6, FORGE);

    let line = line(&report);
    let forge = line.forge.as_ref().expect("some of them forge");
    assert_eq!((report.sessions_completed, line.visitors + forge.forgers), (6, 6));
    assert!(line.visitors > 0 && line.entered == line.visitors, "{line:?}");
    assert_eq!((forge.forgers_entered, forge.taken, forge.entered), (forge.forgers, 0, 0), "{forge:?}");
    assert!(forge.tickets.len() == 3 && forge.tickets.values().all(|sent| *sent > 0), "{forge:?}");
    // Each of them gets a new ticket, as a request without one does.
    assert_eq!(forge.numbers, forge.tickets.values().sum::<u64>());
    let of_forgers = line.waits.iter().filter(|wait| wait.who == Who::Forger).count();
    assert_eq!((of_forgers as u64, line.wait.count), (forge.forgers, line.visitors));
    let table = report.table(100);
    assert!(table.contains("0 got in, 0 were taken for a position: both must be 0"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn a_room_that_believes_edited_tickets_is_found_out() {
    let server = room::start(Rules { per_second: 0.5, believes_all: true, ..Rules::default() });
    let report = visit(&server, 6, FORGE);
    let forge = line(&report).forge.as_ref().unwrap();
    assert!(forge.taken > 0 && forge.entered > 0, "{forge:?}");
}

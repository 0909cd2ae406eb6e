use clap::{Parser, Subcommand};
use serde_json::json;

use super::plan::{Method, Step, chosen, steps};
use super::{Cell, Data, Fixed, Options, Tried, report, verdict};
use crate::apps::Work;
use crate::bound::Bound;
use crate::claims::{Claim, all_hold};
use crate::cpu::CoreUse;
use crate::gateways::Control;
use crate::machine::Machine;
use crate::observe::Seen;

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Overload(Box<Options>),
}

fn options(words: &[&str]) -> Options {
    let line = ["program", "overload"].iter().chain(words);
    let Command::Overload(options) = Line::try_parse_from(line).unwrap_or_else(|e| panic!("{e}")).command;
    *options
}

fn bound(sessions_per_s: f64) -> Bound {
    let app_core = CoreUse { busy: 1.0, stolen: 0.0 };
    Bound { sessions: 80, cpu_s_per_session: 1.0 / sessions_per_s, sessions_per_s, app_core }
}

fn data() -> Data {
    let text = || "unknown".to_string();
    let machine = Machine {
        processor: text(),
        cores: 2,
        memory_gb: 1.0,
        system: text(),
        rust: text(),
        sources: text(),
    };
    Data {
        experiment: super::NAME.to_string(),
        machine,
        settings: Fixed { seed: 1, warmup_s: 20, measured_s: 45, scale: 4.0, heap_mb: 256, threads: 200 },
        work: Work { light: 1, search: 1 },
        bounds: vec![bound(6.0), bound(8.0)],
        scans: Vec::new(),
        cells: Vec::new(),
    }
}

fn seen(sessions_per_s: f64, mid_session_failures: u64) -> Seen {
    let spread = json!({ "count": 0, "mean_s": 0.0, "min_s": 0.0, "p50_s": 0.0, "p90_s": 0.0, "p95_s": 0.0,
        "p99_s": 0.0, "max_s": 0.0 });
    let crowd = json!({
        "base_url": "", "seed": 1, "ended": "time_over", "started_unix_s": 0.0, "duration_s": 65.0, "warmup_s": 20.0,
        "measured_s": 45.0, "sessions_per_s": sessions_per_s, "sessions_begun": 0, "sessions_completed": 0,
        "sessions_gave_up": 0, "sessions_under_way": 0, "sessions_failed_inside": 0,
        "mid_session_failures": mid_session_failures, "first_step_failures": 0, "failures_by_step": {},
        "failures_by_kind": {}, "refusals": 0, "wasted_requests": 0, "requests": 0, "requests_per_s": 0.0,
        "reconnects": 0, "users_not_started": 0, "session_time": spread, "session_time_distribution": [],
        "first_step_wait": spread, "steps": [], "series": [], "crowd_cpu_share": 0.0, "send_delay": spread,
    });
    let core = json!({ "busy": 1.0, "stolen": 0.0 });
    let seen = json!({
        "crowd": crowd, "completed_by_second": [], "app_cpu_share": 0.9, "gateway_cpu_share": null, "app_core": core,
        "load_core": core, "gateway_at_end": null,
    });
    serde_json::from_value(seen).unwrap()
}

fn cell(method: Method, users: u32, sessions_per_s: f64, failures: u64) -> Cell {
    let seen = Some(seen(sessions_per_s, failures));
    Cell { method, users, control: Control::None, bound: Some(bound(7.0)), seen, error: None }
}

fn tried(control: Control, sessions_per_s: f64, mid_session_failures: u64) -> Tried {
    Tried { method: Method::Static, users: 400, control, sessions_per_s, mid_session_failures }
}

/// The hoped-for result: B is 7, so 0.85 B is 5.95.
fn as_hoped() -> Data {
    let mut data = data();
    for users in [100, 200, 400] {
        data.cells.push(cell(Method::Suimon, users, 6.3, 0));
    }
    data.cells.push(cell(Method::None, 400, 0.1, 900));
    data.cells.push(cell(Method::RoutesOnly, 400, 1.0, 700));
    data.cells.push(cell(Method::Static, 400, 5.0, 0));
    data.cells.push(cell(Method::Paper, 400, 6.5, 3));
    data.cells.push(cell(Method::Haproxy, 400, 0.0, 500));
    data
}

fn broken(claims: &[Claim]) -> Vec<&str> {
    claims.iter().filter(|claim| !claim.holds).map(|claim| claim.sentence.as_str()).collect()
}

#[test]
fn what_is_hoped_for_holds() {
    let claims = verdict::claims(&as_hoped());
    assert!(all_hold(&claims), "{:?}", broken(&claims));
}

#[test]
fn a_single_failure_inside_a_session_is_one_too_many() {
    let mut data = as_hoped();
    data.cells[1] = cell(Method::Suimon, 200, 6.9, 1);
    let claims = verdict::claims(&data);
    assert_eq!(broken(&claims).len(), 1);
    assert!(broken(&claims)[0].contains("200 users"), "{:?}", broken(&claims));
}

#[test]
fn too_little_throughput_a_rival_that_sustains_and_a_missing_cell_are_each_told() {
    let mut data = as_hoped();
    data.cells[0] = cell(Method::Suimon, 100, 5.9, 0);
    data.cells[5] = cell(Method::Static, 400, 6.0, 0);
    data.cells.pop();
    let claims = verdict::claims(&data);
    let broken = broken(&claims).join("\n");
    for told in ["100 users", "static does not", "haproxy does not sustain 400 users: not measured"] {
        assert!(broken.contains(told), "{told}: {broken}");
    }
}

#[test]
fn the_best_of_a_scan_is_chosen_unless_one_is_named() {
    let mut data = data();
    data.scans.push(tried(Control::Static(20), 4.0, 0));
    data.scans.push(tried(Control::Static(36), 5.0, 2));
    data.scans.push(tried(Control::Static(50), 5.0, 9));
    assert_eq!(chosen(Method::Static, &options(&[]), &data), Some(Control::Static(36)));
    let named = options(&["--static-sessions", "7"]);
    assert_eq!(chosen(Method::Static, &named, &data), Some(Control::Static(7)));
    assert_eq!(chosen(Method::Paper, &options(&[]), &data), None);
}

#[test]
fn only_what_is_missing_is_planned_and_scans_only_where_they_are_needed() {
    let words = ["--users", "25,400", "--methods", "none,static"];
    let mut data = data();
    let all = steps(&options(&words), &data);
    assert_eq!(all.iter().filter(|step| matches!(step, Step::Scan(Method::Static, 400, _))).count(), 5);
    assert_eq!(all[5], Step::Cell(Method::None, 25));
    assert_eq!(all.len(), 5 + 4);

    data.scans.push(tried(Control::Static(36), 5.0, 0));
    data.cells.push(cell(Method::None, 25, 4.0, 0));
    assert_eq!(steps(&options(&words), &data).len(), 4 + 3);
    for users in [25, 400] {
        data.cells.push(cell(Method::Static, users, 4.0, 0));
    }
    assert_eq!(steps(&options(&words), &data), [Step::Cell(Method::None, 400)]);
}

#[test]
fn a_file_of_data_is_read_back_as_it_was_and_makes_tables() {
    let mut data = as_hoped();
    data.scans.push(tried(Control::Static(36), 5.0, 2));
    let text = serde_json::to_string(&data).unwrap();
    assert_eq!(serde_json::from_str::<Data>(&text).unwrap(), data);
    let tables = report::tables(&data);
    assert!(tables.contains("  0.90  0.90  0.90\n"), "{tables}");
}

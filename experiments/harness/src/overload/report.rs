//! The data as tables for people.

use suimon_statistics::table::numbers;

use super::plan::Method;
use super::{Cell, Data};
use crate::observe::Seen;

/// Returns one cell as a line.
pub(super) fn line(seen: &Seen, bound_per_s: f64) -> String {
    let crowd = &seen.crowd;
    format!(
        "{:.2} sessions/s = {:.2} B; failures: {} inside, {} at the start; {} refused; others had {:.0} % of the core",
        crowd.sessions_per_s,
        crowd.sessions_per_s / bound_per_s,
        crowd.mid_session_failures,
        crowd.first_step_failures,
        crowd.refusals,
        seen.foreign() * 100.0
    )
}

/// Returns all tables.
pub(super) fn tables(data: &Data) -> String {
    let bounds: Vec<String> =
        data.bounds.iter().map(|bound| format!("{:.2}", bound.sessions_per_s)).collect();
    let mut out = format!(
        "\nB = {:.2} sessions/s (measured: {}), {}, {} cores\n",
        data.bound_per_s(),
        bounds.join(", "),
        data.machine.processor,
        data.machine.cores
    );
    out += &matrix(data, "Sessions per second as a share of B, by users", |cell| {
        data.share(cell).map(|share| format!("{share:.2}"))
    });
    out += &matrix(data, "Failures inside sessions, by users", |cell| {
        cell.seen.as_ref().map(|seen| seen.crowd.mid_session_failures.to_string())
    });
    out += &details(data);
    out += &scans(data);
    out
}

fn matrix(data: &Data, title: &str, value: impl Fn(&Cell) -> Option<String>) -> String {
    let sizes = data.sizes();
    let headings: Vec<String> =
        std::iter::once("method".to_string()).chain(sizes.iter().map(u32::to_string)).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let row = |method: Method| {
        let cell = |users: &u32| {
            let cell = data.cell(method, *users);
            cell.map_or(String::new(), |cell| value(cell).unwrap_or_else(|| "failed".to_string()))
        };
        std::iter::once(method.name().to_string()).chain(sizes.iter().map(cell)).collect()
    };
    let measured = |method: &Method| data.cells.iter().any(|cell| cell.method == *method);
    let rows: Vec<Vec<String>> = Method::ALL.into_iter().filter(measured).map(row).collect();
    format!("\n{title}\n{}", numbers(&headings, &rows))
}

fn details(data: &Data) -> String {
    let headings = [
        "cell",
        "per s",
        "of B",
        "of own B",
        "inside",
        "at start",
        "refused",
        "wasted",
        "wait p90",
        "session p50",
        "app cpu",
        "gateway",
        "crowd",
        "others",
    ];
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let row = |cell: &Cell| {
        let name = format!("{} {}", cell.method.name(), cell.users);
        let Some(seen) = &cell.seen else { return vec![name, "failed".to_string()] };
        let crowd = &seen.crowd;
        let own = cell.bound.map_or(0.0, |bound| bound.sessions_per_s);
        vec![
            name,
            format!("{:.2}", crowd.sessions_per_s),
            format!("{:.2}", crowd.sessions_per_s / data.bound_per_s()),
            format!("{:.2}", crowd.sessions_per_s / own),
            crowd.mid_session_failures.to_string(),
            crowd.first_step_failures.to_string(),
            crowd.refusals.to_string(),
            crowd.wasted_requests.to_string(),
            format!("{:.1} s", crowd.first_step_wait.p90_s),
            format!("{:.1} s", crowd.session_time.p50_s),
            percent(seen.app_cpu_share),
            seen.gateway_cpu_share.map_or(String::new(), percent),
            percent(crowd.crowd_cpu_share),
            percent(seen.foreign()),
        ]
    };
    let mut cells: Vec<&Cell> = data.cells.iter().collect();
    cells.sort_by_key(|cell| (cell.method as u8, cell.users));
    let rows: Vec<Vec<String>> = cells.iter().map(|cell| row(cell)).collect();
    let mut out =
        format!("\nEvery cell (shares of processors are of one core)\n{}", numbers(&headings, &rows));
    for cell in cells {
        if let Some(seen) = cell.seen.as_ref().filter(|seen| !seen.crowd.failures_by_step.is_empty()) {
            let steps: Vec<String> = seen
                .crowd
                .failures_by_step
                .iter()
                .filter(|(_, count)| **count > 0)
                .map(|(step, count)| format!("{step} {count}"))
                .collect();
            if !steps.is_empty() {
                out +=
                    &format!("  {} {}: failures at {}\n", cell.method.name(), cell.users, steps.join(", "));
            }
        }
    }
    out
}

fn scans(data: &Data) -> String {
    if data.scans.is_empty() {
        return String::new();
    }
    let row = |tried: &super::Tried| {
        vec![
            format!("{}: {}", tried.method.name(), tried.control.setting()),
            tried.users.to_string(),
            format!("{:.2}", tried.sessions_per_s),
            tried.mid_session_failures.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = data.scans.iter().map(row).collect();
    format!("\nSettings tried\n{}", numbers(&["setting", "users", "per s", "inside"], &rows))
}

//! The claims, and what was measured as tables.

use suimon_statistics::table::numbers;

use super::serve::{Server, Told};
use super::visit::Exchange;
use super::{Cell, Data, Visited};
use crate::claims::Claim;

/// Words that are shown where two texts part.
const WORDS_SHOWN: usize = 12;
/// What the crowd calls a visitor who has waited in vain.
const TIME_OUT: &str = "timeout";

/// Returns what differs between the two visits.
pub(super) fn differences(visits: &[Visited]) -> Vec<String> {
    let [ours, other] = visits else { return vec!["there are no two visits".to_string()] };
    let (ours, other) = (&ours.exchanges, &other.exchanges);
    let mut found: Vec<String> =
        ours.iter().zip(other).flat_map(|(ours, other)| parting(ours, other)).collect();
    if ours.len() != other.len() {
        found.push(format!("{} requests and {}", ours.len(), other.len()));
    }
    found
}

fn parting(ours: &Exchange, other: &Exchange) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |of: &str, ours_has: String, other_has: String| {
        if ours_has != other_has {
            found.push(format!("{}: {of}: {ours_has} and {other_has}", ours.what));
        }
    };
    compare("status", ours.status.to_string(), other.status.to_string());
    compare("location", format!("{:?}", ours.location), format!("{:?}", other.location));
    compare("headers", format!("{:?}", ours.headers), format!("{:?}", other.headers));
    compare("cookies", format!("{:?}", ours.cookies), format!("{:?}", other.cookies));
    if ours.text != other.text {
        let (mut one, mut two) = (ours.text.split(' ').peekable(), other.text.split(' ').peekable());
        while one.peek() == two.peek() && one.peek().is_some() {
            one.next();
            two.next();
        }
        let words =
            |text: &mut dyn Iterator<Item = &str>| text.take(WORDS_SHOWN).collect::<Vec<_>>().join(" ");
        compare("text", words(&mut one), words(&mut two));
    }
    found
}

pub(super) fn judge(data: &Data) -> Vec<Claim> {
    let mut claims = Vec::new();
    if let Some(ours) = data.visits.first() {
        let all = ours.exchanges.len();
        let right = ours.exchanges.iter().filter(|exchange| exchange.wrong.is_empty()).count();
        claims.push(Claim::new(
            format!("every answer of a visit through Suimon is what MediaWiki means: {right} of {all}"),
            right == all,
        ));
        claims.push(Claim::new(
            format!(
                "it has the statuses, redirects, headers, cookies and texts of the same visit through nginx and php-fpm: {} differences",
                data.differences.len()
            ),
            data.differences.is_empty(),
        ));
    }
    let of = |wanted: fn(Server) -> bool| data.cells.iter().find(|cell| wanted(cell.server));
    let Some(ours) = of(|server| server == Server::Suimon(Told::Nothing)) else { return claims };
    // A time-out is what a visitor does, and a promise is broken by it all the same.
    let answered = ours.failures.iter().filter(|(kind, _)| *kind != TIME_OUT).map(|(_, count)| count);
    let answered: u64 = answered.sum();
    claims.push(Claim::new(
        format!(
            "with {} times as many sessions as can be served, Suimon answers no request of a begun session with an error, a refusal or a waiting page: {} errors, {} refusals and waiting pages",
            data.times, answered, ours.refused_inside
        ),
        answered == 0 && ours.refused_inside == 0,
    ));
    claims.push(Claim::new(
        format!(
            "none of them fails, by waiting in vain for {} s either: {} failures, {} sessions begun, {} completed",
            data.patience_s, ours.cut_off, ours.begun, ours.completed
        ),
        ours.cut_off == 0 && ours.completed > 0,
    ));
    let others = data.cells.iter().filter(|cell| !matches!(cell.server, Server::Suimon(_)));
    for other in others {
        claims.push(Claim::new(
            format!(
                "it completes no fewer sessions than {}: {:.2} and {:.2} per second",
                other.server.words(),
                ours.completed_per_s,
                other.completed_per_s
            ),
            ours.completed_per_s >= other.completed_per_s,
        ));
    }
    claims
}

pub(super) fn tables(data: &Data) -> String {
    let mut out = format!("\n{}\n", data.versions.join(", "));
    for visited in &data.visits {
        let wrong: Vec<_> = visited.exchanges.iter().filter(|exchange| !exchange.wrong.is_empty()).collect();
        out += &format!(
            "\nThe visit through {}: {} requests, {} not as meant\n",
            visited.server.words(),
            visited.exchanges.len(),
            wrong.len()
        );
        for exchange in wrong {
            out += &format!("  {}: {}\n", exchange.what, exchange.wrong.join("; "));
        }
    }
    for difference in &data.differences {
        out += &format!("  differs: {difference}\n");
    }
    if !data.closed.is_empty() {
        out += &format!("\nNothing ever rests; capacity {:.2} sessions/s\n", data.capacity_per_s);
        out += &table(&data.closed);
    }
    if !data.cells.is_empty() {
        out += &format!("\n{} times the capacity\n", data.times);
        out += &table(&data.cells);
        for cell in &data.cells {
            let list = |map: &std::collections::BTreeMap<String, u64>| {
                map.iter().map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>().join(", ")
            };
            if !cell.failures.is_empty() {
                out += &format!(
                    "  {}: {}; at {}\n",
                    cell.server.words(),
                    list(&cell.failures),
                    list(&cell.failures_by_step)
                );
            }
        }
    }
    out
}

fn table(cells: &[Cell]) -> String {
    let headings = [
        "server",
        "begun",
        "completed",
        "per s",
        "cut off",
        "at start",
        "told to wait",
        "session p50 s",
        "first page p90 s",
        "pages/s",
        "workers",
        "most",
        "starts",
        "memory MB",
        "own CPU",
        "others",
    ];
    let row = |cell: &Cell| {
        vec![
            cell.server.words(),
            cell.begun.to_string(),
            cell.completed.to_string(),
            format!("{:.2}", cell.completed_per_s),
            cell.cut_off.to_string(),
            cell.failed_at_start.to_string(),
            cell.asked_to_wait.to_string(),
            format!("{:.1}", cell.session_s_p50),
            format!("{:.1}", cell.wait_s_p90),
            format!("{:.1}", cell.requests_per_s),
            format!("{:.0}", cell.workers.workers_mean),
            cell.workers.workers_max.to_string(),
            cell.workers.starts.to_string(),
            format!("{:.0}", cell.workers.memory_mb_mean),
            format!("{:.2}", cell.workers.cpu_share),
            format!("{:.2}", cell.app_core.foreign(cell.workers.cpu_share)),
        ]
    };
    numbers(&headings, &cells.iter().map(row).collect::<Vec<_>>())
}

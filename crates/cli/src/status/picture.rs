//! A gateway's state as lines for people.

use crate::table::{Align, columns};
use std::fmt::Write;
use suimon_admin::{DecisionState, KindState, NodeState, RouteState, State};

/// The most routes shown: those where most waits or is under way, then those with most requests.
const ROUTES_MAX: usize = 20;

use Align::{Left, Right};

/// Returns the whole picture, with the last `decisions` decisions.
pub(crate) fn draw(state: &State, decisions: usize) -> String {
    let mut text = String::new();
    let ready = match &state.not_ready_because {
        None => "ready".to_string(),
        Some(why) => format!("NOT READY: {why}"),
    };
    let totals = &state.totals;
    let _ = writeln!(text, "suimon {}, up {}, {ready}", state.version, time(state.uptime_seconds));
    if let Some(recalled) = &state.recalled {
        let (routes, age) = (recalled.routes, time(recalled.age_seconds));
        let _ = writeln!(text, "  began with what was learned {age} before: the limits of {routes} routes");
    }
    let _ = writeln!(
        text,
        "  {} requests waiting, {} in the application; {} sessions; {} connections; {} requests in all",
        totals.waiting, totals.in_flight, totals.sessions, totals.connections_open, totals.requests
    );
    for (count, what) in [
        (totals.bad_requests, "requests were malformed and answered as bad"),
        (totals.upstream_errors, "requests failed because of the application or the way to it"),
        (totals.gone_while_waiting, "clients left while they waited to be let in"),
        (totals.ghosts, "clients left while the application worked for them"),
    ] {
        if count > 0 {
            let _ = writeln!(text, "  {count} {what}");
        }
    }
    section(&mut text, "Sessions", &kinds(&state.kinds));
    section(&mut text, "Routes", &routes(state));
    section(&mut text, "Application", &nodes(&state.nodes));
    section(&mut text, "Refused", &refusals(state));
    section(&mut text, "Last decisions", &last_decisions(state, decisions));
    text
}

fn section(text: &mut String, title: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(text, "\n{title}\n{body}");
    }
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(ToString::to_string).collect()
}

fn kinds(kinds: &[KindState]) -> String {
    if kinds.is_empty() {
        return String::new();
    }
    let mut rows = vec![row(&[
        "kind", "gate", "held", "in line", "active", "let in/s", "wait now", "patience", "let in", "refused",
    ])];
    for kind in kinds {
        let gate = match kind.interval_seconds {
            _ if kind.open => "open".to_string(),
            Some(interval) => format!("one in {}", time(interval)),
            None => "closed".to_string(),
        };
        rows.push(vec![
            kind.name.clone(),
            gate,
            kind.waiting.to_string(),
            kind.in_line.map_or_else(|| "none".to_string(), |people| people.to_string()),
            kind.active.to_string(),
            rate(kind.rate),
            kind.predicted_wait_seconds.map_or_else(|| "no end".to_string(), time),
            format!(
                "{} {}",
                kind.patience_seconds.map_or_else(|| "?".to_string(), time),
                kind.patience_source
            ),
            kind.admitted.to_string(),
            kind.refused.to_string(),
        ]);
    }
    columns(&[Left, Left, Right, Right, Right, Right, Right, Left, Right, Right], &rows)
}

fn routes(state: &State) -> String {
    let mut busiest: Vec<&RouteState> = state.routes.iter().filter(|route| route.offered > 0).collect();
    if busiest.is_empty() {
        return "  no gated request has come yet\n".to_string();
    }
    busiest.sort_by_key(|route| std::cmp::Reverse((route.waiting + route.in_flight, route.offered)));
    let mut rows = vec![row(&[
        "route",
        "limit",
        "in flight",
        "ghosts",
        "waiting",
        "done/s",
        "takes",
        "done",
        "failed",
        "left",
        "refused",
        "p99",
        "",
    ])];
    for route in busiest.iter().take(ROUTES_MAX) {
        let limit = match (route.mode.as_deref(), route.limit) {
            (Some("observe"), Some(limit)) => format!("({limit})"),
            (_, Some(limit)) => limit.to_string(),
            (_, None) => "none".to_string(),
        };
        let probed = state.probing.as_deref() == Some(route.name.as_str());
        rows.push(vec![
            route.name.clone(),
            limit,
            route.in_flight.to_string(),
            route.ghosts.to_string(),
            route.waiting.to_string(),
            rate(route.rate),
            time(route.service_seconds),
            route.completed.to_string(),
            route.failed.to_string(),
            route.abandoned.to_string(),
            route.refused.to_string(),
            route.upstream.p99.map_or_else(String::new, time),
            if probed { "limit on trial".to_string() } else { String::new() },
        ]);
    }
    let mut text = columns(
        &[Left, Right, Right, Right, Right, Right, Right, Right, Right, Right, Right, Right, Left],
        &rows,
    );
    if busiest.len() > ROUTES_MAX {
        let _ = writeln!(text, "  and {} quieter ones", busiest.len() - ROUTES_MAX);
    }
    text
}

fn nodes(nodes: &[NodeState]) -> String {
    let mut rows = Vec::new();
    for node in nodes {
        let mut why = format!("for {}: {}", time(node.for_seconds), node.explanation);
        if let Some(left) = node.ejected_for_seconds {
            let _ = write!(why, ", for another {}", time(left));
        }
        rows.push(vec![
            node.address.clone(),
            node.status.clone(),
            format!("{} in flight", node.in_flight),
            format!("{} connections", node.connections),
            why,
        ]);
    }
    columns(&[Left, Left, Right, Right, Left], &rows)
}

fn refusals(state: &State) -> String {
    let rows: Vec<_> = state
        .refusals
        .iter()
        .map(|refusal| vec![refusal.count.to_string(), refusal.explanation.clone()])
        .collect();
    columns(&[Right, Left], &rows)
}

fn last_decisions(state: &State, wanted: usize) -> String {
    let from = state.decisions.len().saturating_sub(wanted);
    let rows: Vec<_> = state.decisions[from..].iter().map(|decision| decision_row(state, decision)).collect();
    columns(&[Right, Left, Left, Left], &rows)
}

fn decision_row(state: &State, decision: &DecisionState) -> Vec<String> {
    let value = |value: Option<f64>| match value {
        None => "none".to_string(),
        Some(value) if decision.quantity == "interval" => time(value),
        Some(value) => format!("{value:.0}"),
    };
    let signals: Vec<String> = decision
        .signals
        .iter()
        .map(|(name, value)| format!("{name} {}", value.map_or_else(|| "?".to_string(), number)))
        .collect();
    let signals = if signals.is_empty() { String::new() } else { format!(" ({})", signals.join(", ")) };
    vec![
        format!("{} ago", time((state.uptime_seconds - decision.at_seconds).max(0.0))),
        decision.name.clone(),
        format!("{} {} to {}", decision.quantity, value(decision.old), value(decision.new)),
        format!("{}{signals}", decision.explanation),
    ]
}

/// Returns a time in the unit people would use.
fn time(seconds: f64) -> String {
    if seconds <= 0.0 {
        "0".to_string()
    } else if seconds < 0.001 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds < 0.1 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 10.0 {
        format!("{seconds:.1} s")
    } else if seconds < 120.0 {
        format!("{seconds:.0} s")
    } else if seconds < 7200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.1}") } else { format!("{per_second:.0}") }
}

/// Returns a number with as many digits as mean something.
fn number(value: f64) -> String {
    if value.abs() >= 100.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests;

//! A gateway's state as lines for people, the most important first.

mod cluster;
mod pools;
mod sites;

use crate::numbers::rough_time as time;
use crate::overrides::sentence;
use crate::terminal::{Colour, Line, Size, wrapped};
use suimon_admin::{
    DecisionState, KindState, NodeReportState, NodeState, OverrideState, RouteState, ServiceState, SiteState,
    State, Verdict,
};
use suimon_statistics::table::{Align, columns};

/// The most routes shown: first those with most queued or in-flight requests, then those with most
/// requests.
const ROUTES_MAX: usize = 20;
/// Lines for sites, nodes, refusals and decisions on a small screen; routes take the rest.
const SITES_FITTED: usize = 4;
const NODES_FITTED: usize = 3;
const REFUSALS_FITTED: usize = 1;
const DECISIONS_FITTED: usize = 3;
/// Most columns of a name.
const NAME_COLUMNS: usize = 26;
const KIND_COLUMNS: usize = 12;

/// Terms for first-time readers; docs/glossary.md has all of them.
const LEGEND: [&str; 6] = [
    "in line: has a position in the waiting room, not admitted yet; held: newcomer whose request is kept open at the session gate",
    "queued: request of an admitted session that waits for a slot of its route; active: active sessions",
    "admitted/s: admitted sessions per second, of the admission rate; ended/s: sessions that ended after a response; failed: after an error",
    "wait: predicted wait of a newcomer; waited: waits in line of visitors admitted in the last five minutes",
    "refused: turned away without a position in line; waiting pages and polls are counted separately and are not errors",
    "orphaned: in the application after a client disconnect; abandoned: client disconnects before a response",
];

use Align::{Left, Right};

/// How much of each part is shown.
struct Layout {
    columns: usize,
    routes: usize,
    nodes: usize,
    refusals: usize,
    decisions: usize,
}

/// Returns the whole picture in full width, with the last `decisions` decisions, below `sites` in a line
/// each.
pub(crate) fn whole(state: &State, sites: &[SiteState], decisions: usize) -> Vec<Line> {
    let layout = Layout {
        columns: usize::MAX,
        routes: ROUTES_MAX + 1,
        nodes: usize::MAX,
        refusals: usize::MAX,
        decisions,
    };
    let mut lines = sites::overview(sites, usize::MAX);
    lines.extend(draw(state, &layout));
    lines.push(Line::default());
    lines.extend(LEGEND.iter().map(|words| Line::default().faint("  ").faint(words)));
    lines
}

/// Returns as much of the picture as fits on a terminal of this size.
pub(crate) fn fitted(state: &State, sites: &[SiteState], decisions: usize, size: Size) -> Vec<Line> {
    let mut lines = sites::overview(sites, SITES_FITTED);
    let mut layout = Layout {
        columns: size.columns.saturating_sub(1),
        routes: 0,
        nodes: NODES_FITTED,
        refusals: REFUSALS_FITTED,
        decisions: decisions.min(DECISIONS_FITTED),
    };
    let without = lines.len() + draw(state, &layout).len();
    // `without` includes a line for the routes left out. That makes up for the terminal's last
    // line, which stays empty.
    layout.routes = size.lines.saturating_sub(without).clamp(1, ROUTES_MAX + 1);
    lines.extend(draw(state, &layout));
    lines
}

fn draw(state: &State, layout: &Layout) -> Vec<Line> {
    let mut lines = head(state, layout.columns);
    section(&mut lines, "Overridden", &overrides(state));
    section(&mut lines, "Sessions", &kinds(&state.kinds));
    for kind in &state.kinds {
        lines.extend(
            details(kind, state.kinds.len() > 1)
                .into_iter()
                .map(|text| Line::default().faint("  ").faint(&text)),
        );
    }
    section(&mut lines, "Routes", &routes(state, layout.routes));
    section(&mut lines, "Services", &services(&state.services));
    section(&mut lines, "Application", &nodes(&state.nodes, layout.nodes));
    lines.extend(state.scaling.as_ref().into_iter().flat_map(cluster::scaling));
    lines.extend(state.sharing.as_ref().into_iter().flat_map(cluster::sharing));
    section(&mut lines, "Workers", &pools::table(&state.pools));
    lines.extend(pools::details(state));
    section(&mut lines, "Refused", &refusals(state, layout.refusals));
    section(&mut lines, "Last decisions", &last_decisions(state, layout.decisions));
    lines
}

/// Returns what an operator overrides, with until when, by whom and why: never left out, as it explains what
/// else is shown.
fn overrides(state: &State) -> String {
    let row = |it: &OverrideState| {
        let (left, why) = (time(it.until - state.now), it.why.as_ref());
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        vec![it.id.to_string(), sentence(it), format!("for another {left}"), format!("by {}{why}", it.who)]
    };
    let rows: Vec<_> = state.overrides.iter().map(row).collect();
    columns(&[Right, Left, Left, Left], &rows)
}

fn head(state: &State, columns: usize) -> Vec<Line> {
    let (verdict, totals) = (&state.verdict, &state.totals);
    let first = Line::default()
        .bold(&format!("suimon {}", state.version))
        .plain(&state.site.as_ref().map_or_else(String::new, |name| format!(", site {name}")))
        .plain(&format!(", up {}, ", time(state.uptime_seconds)));
    let mut lines = vec![match &state.not_ready_because {
        None => first.coloured(Colour::Green, "ready"),
        Some(why) => first.coloured(Colour::Red, "NOT READY").plain(&format!(": {why}")),
    }];
    let colour = colour_of(verdict);
    let mark = verdict.situation.to_uppercase();
    let since = format!("for {}", time((state.now - verdict.since).max(0.0)));
    let sentence = format!("{} ({since})", verdict.sentence);
    let indent = mark.chars().count() + 2;
    let mut sentences = wrapped(&sentence, columns.saturating_sub(indent).max(20)).into_iter();
    let beginning = sentences.next().unwrap_or_default();
    lines.push(Line::default().coloured(colour, &mark).plain(": ").plain(&beginning));
    lines.extend(sentences.map(|rest| Line::default().plain(&" ".repeat(indent)).plain(&rest)));
    let text = format!(
        "  {} in line, {} held, {} queued, {} in the application; {}; {} requests in all",
        totals.in_line,
        totals.held,
        totals.queued,
        totals.in_flight,
        counted(totals.connections_open as u64, "connection"),
        totals.requests
    );
    lines.push(Line::default().plain(&text));
    if let Some(config) = state.config.as_ref().filter(|config| config.differs_from_file) {
        let file = config.file.as_deref().unwrap_or("what it started with");
        let text = format!(
            "  settings were posted {} ago and differ from {file}: they hold until the next reload or restart",
            time((state.now - config.adopted_at).max(0.0))
        );
        lines.push(Line::default().coloured(Colour::Yellow, &text));
    }
    if columns < usize::MAX {
        // A small picture has no room for anything but the current state.
        return lines;
    }
    if let Some(recalled) = &state.recalled {
        let (routes, age) = (recalled.routes, time(recalled.age_seconds));
        let text = format!("  started with limits of {routes} routes, learned {age} earlier");
        lines.push(Line::default().plain(&text));
    }
    for (count, what) in [
        (totals.bad_requests, "rejected as malformed (4xx)"),
        (totals.upstream_errors, "failed in the application or on the way to it (502 to 504)"),
        (totals.retried, "tried again, as a connection to a node could not be opened or gave no answer"),
        (totals.retries_withheld, "not sent again, as too many were (upstream.retry_share)"),
    ] {
        if count > 0 {
            lines.push(Line::default().plain(&format!("  {}: {what}", counted(count, "request"))));
        }
    }
    if totals.connections_displaced > 0 {
        let displaced = counted(totals.connections_displaced, "connection");
        let text = format!("  {displaced} closed to make room for others: limits.connections was reached");
        lines.push(Line::default().plain(&text));
    }
    if totals.suspended > 0 {
        let suspended = counted(totals.suspended as u64, "request");
        let text = format!("  {suspended} suspended: no slot until the client continues its body");
        lines.push(Line::default().plain(&text));
    }
    for (count, what) in [
        (totals.disconnects_waiting, "while the request was held or queued"),
        (totals.disconnects_upstream, "while the request was in the application"),
    ] {
        if count > 0 {
            lines.push(Line::default().plain(&format!("  {} {what}", counted(count, "client disconnect"))));
        }
    }
    lines
}

fn colour_of(verdict: &Verdict) -> Colour {
    match verdict.level.as_str() {
        "critical" => Colour::Red,
        "warning" => Colour::Yellow,
        "busy" => Colour::Blue,
        _ => Colour::Green,
    }
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn section(lines: &mut Vec<Line>, title: &str, body: &str) {
    if body.is_empty() {
        return;
    }
    lines.push(Line::default());
    lines.push(Line::default().bold(title));
    lines.extend(body.lines().map(|line| Line::default().plain(line)));
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(ToString::to_string).collect()
}

/// Returns the name; its middle is left out if it is too long for the column.
fn short(name: &str, columns: usize) -> String {
    let length = name.chars().count();
    if length <= columns {
        return name.to_owned();
    }
    let (front, back) = (columns.div_ceil(2) - 1, columns / 2);
    let ends = name.chars().take(front).chain(['…']).chain(name.chars().skip(length - back));
    ends.collect()
}

fn kinds(kinds: &[KindState]) -> String {
    if kinds.is_empty() {
        return String::new();
    }
    let mut rows = vec![row(&["kind", "gate", "in line", "held", "active", "admitted/s", "ended/s", "wait"])];
    for kind in kinds {
        let rates = &kind.last_minute;
        let planned = kind
            .admission_rate_per_second
            .map_or_else(String::new, |planned| format!(" of {}", rate(planned)));
        rows.push(vec![
            short(&kind.name, KIND_COLUMNS),
            gate(kind),
            kind.in_line.map_or_else(|| "none".to_string(), |people| people.to_string()),
            kind.held.to_string(),
            kind.active.to_string(),
            format!("{}{planned}", rate(kind.last_10s.admitted)),
            rate(rates.finished + rates.silent),
            match (kind.wait.low_seconds, kind.wait.high_seconds) {
                (Some(_), Some(high)) if high <= 0.0 => "none".to_string(),
                (Some(low), Some(high)) => range(low, high),
                _ => "unknown".to_string(),
            },
        ]);
    }
    columns(&[Left, Left, Right, Right, Right, Right, Right, Right, Right], &rows)
}

/// Returns what happens to the next newcomer.
fn gate(kind: &KindState) -> String {
    match (kind.gate.as_str(), kind.interval_seconds, kind.sessions_max) {
        ("full", _, Some(most)) => format!("{} of {most} in", kind.remembered),
        ("paced", Some(interval), _) if interval > 0.0 => format!("one in {}", time(interval)),
        ("paced", _, _) => "in turn".to_string(),
        ("shut", _, _) => kind
            .line
            .as_ref()
            .filter(|line| line.state != "moving")
            .map_or("shut", |line| line.state.as_str())
            .to_string(),
        (other, _, _) => other.to_string(),
    }
}

/// Returns further details of a kind.
fn details(kind: &KindState, several: bool) -> Vec<String> {
    let name = if several { format!("{}: ", short(&kind.name, KIND_COLUMNS)) } else { String::new() };
    let KindState { admitted, finished, silent, abandoned, failed, refused, .. } = kind;
    let mut lines = vec![format!(
        "{name}{admitted} admitted: {} ended, {abandoned} abandoned, {failed} failed; {refused} refused",
        finished + silent
    )];
    let wait = &kind.wait;
    if let (Some(half), Some(most)) = (wait.waited_p50_seconds, wait.waited_p95_seconds) {
        let (half, most) = (time(half), time(most));
        lines.push(format!(
            "{name}waited in line: half {half}, 95 of 100 {most}; {} waiting pages",
            kind.waiting_pages
        ));
    }
    if let Some(held) = wait.held_seconds.filter(|_| kind.held > 0) {
        let patience = kind.patience_seconds.map_or_else(|| "?".to_string(), time);
        lines.push(format!(
            "{name}held for up to {}; patience {patience} ({})",
            time(held),
            kind.patience_source
        ));
    }
    if let Some(line) = kind.line.as_ref().filter(|line| line.state != "moving" || !line.message.is_empty()) {
        let message = if line.message.is_empty() {
            String::new()
        } else {
            format!(": \u{201c}{}\u{201d}", line.message)
        };
        lines.push(format!("{name}the line is {}{message}", line.state));
    }
    lines
}

fn routes(state: &State, most: usize) -> String {
    let mut busiest: Vec<&RouteState> = state.routes.iter().filter(|route| route.offered > 0).collect();
    if busiest.is_empty() {
        return "  no gated request so far\n".to_string();
    }
    busiest.sort_by_key(|route| std::cmp::Reverse((route.queued + route.in_flight, route.offered)));
    let mut rows = vec![row(&[
        "route",
        "limit",
        "in flight",
        "queued",
        "done/s",
        "takes",
        "p99",
        "failed",
        "abandoned",
        "done",
        "refused",
        "orphaned",
        "",
    ])];
    // The last line says how many routes are left out.
    let shown = if busiest.len() > most { most.saturating_sub(1) } else { most };
    for route in busiest.iter().take(shown) {
        let limit = match (route.mode.as_deref(), route.limit) {
            (Some("observe"), Some(limit)) => format!("({limit})"),
            (_, Some(limit)) => limit.to_string(),
            (_, None) => "none".to_string(),
        };
        let probed = state.probing.as_deref() == Some(route.name.as_str());
        rows.push(vec![
            short(&route.name, NAME_COLUMNS),
            limit,
            route.in_flight.to_string(),
            route.queued.to_string(),
            rate(route.rate),
            time(route.service_seconds),
            route.upstream.p99.map_or_else(String::new, time),
            route.failed.to_string(),
            route.abandoned.to_string(),
            route.completed.to_string(),
            route.refused.to_string(),
            route.orphaned.to_string(),
            if probed { "limit under trial".to_string() } else { String::new() },
        ]);
    }
    let aligns = [Left, Right, Right, Right, Right, Right, Right, Right, Right, Right, Right, Right, Left];
    let mut text = columns(&aligns, &rows);
    if busiest.len() > shown {
        text.push_str(&format!("  and {} quieter ones\n", busiest.len() - shown));
    }
    text
}

/// Returns each service with its wish, what it has now, and what binds it.
fn services(services: &[ServiceState]) -> String {
    if services.is_empty() {
        return String::new();
    }
    let mut rows = vec![row(&[
        "service",
        "wish",
        "alone",
        "slowed",
        "share",
        "done/s",
        "cap",
        "pause",
        "in flight",
        "waiting",
        "bound by",
    ])];
    for service in services {
        let mut wish = match &*service.mode {
            "slowdown" => vec![format!("× {}", service.slowdown_wished)],
            "shares" | "bands" => vec![format!("weight {}", service.weight)],
            _ => vec!["measured only".to_owned()],
        };
        wish.extend(service.floor.iter().map(|floor| format!("≥ {floor}")));
        wish.extend(service.ceiling.iter().map(|ceiling| format!("≤ {ceiling}")));
        rows.push(vec![
            short(&service.name, NAME_COLUMNS),
            wish.join(", "),
            service.alone_seconds.map_or_else(|| "–".to_owned(), time),
            service.slowdown.map_or_else(|| "–".to_owned(), |slowdown| format!("× {slowdown:.1}")),
            format!("{:.0} %", 100.0 * service.share),
            rate(service.rate),
            service.cap.map_or_else(|| "none".to_owned(), |cap| format!("{cap:.2}")),
            if service.pause_ms > 0.0 { time(1e-3 * service.pause_ms) } else { "none".to_owned() },
            service.in_flight.to_string(),
            service.waiting.to_string(),
            service.binding.replace('_', " "),
        ]);
    }
    let aligns = [Left, Left, Right, Right, Right, Right, Right, Right, Right, Right, Left];
    columns(&aligns, &rows)
}

fn nodes(nodes: &[NodeState], most: usize) -> String {
    let mut nodes: Vec<&NodeState> = nodes.iter().collect();
    // Nodes with problems first.
    nodes.sort_by_key(|node| node.status == "up");
    let mut rows = Vec::new();
    for node in nodes.into_iter().take(most) {
        let mut why = format!("for {}: {}", time(node.for_seconds), node.explanation);
        if let Some(left) = node.ejected_for_seconds {
            why.push_str(&format!(", for another {}", time(left)));
        }
        if let Some(left) = node.slow_start_for_seconds {
            why.push_str(&format!("; slow start for another {}", time(left)));
        }
        if let Some(sessions) = node.sessions {
            why.push_str(&format!("; {} at it", counted(u64::from(sessions), "session")));
        }
        if let Some(report) = &node.report {
            why.push_str(&reported(report));
        }
        if let Some(php) = node.php {
            why.push_str(&format!(
                "; php-fpm: {} of {} children busy, {} queued, {} at its maximum",
                php.active,
                php.total,
                php.listen_queue,
                counted(php.max_children_reached, "time")
            ));
        }
        rows.push(vec![
            node.address.clone(),
            node.status.clone(),
            format!("{} in flight", node.in_flight),
            format!("{} kept open", counted(node.connections as u64, "idle connection")),
            why,
        ]);
    }
    columns(&[Left, Left, Right, Right, Left], &rows)
}

/// Returns what a node last reported of its load, as the rest of a sentence.
fn reported(report: &NodeReportState) -> String {
    let mut text = match &*report.source {
        "agent" => format!("; reported load {:.2} per processor", report.load),
        _ => format!("; reported utilization {:.0} %", 100.0 * report.load),
    };
    if let Some(pressure) = report.pressure {
        text.push_str(&format!(", pressure {:.0} %", 100.0 * pressure));
    }
    if !report.is_current {
        text.push_str(&format!(", too old: {} ago", time(report.age_seconds)));
    }
    text
}

fn refusals(state: &State, most: usize) -> String {
    let mut refusals: Vec<_> = state.refusals.iter().collect();
    refusals.sort_by_key(|refusal| std::cmp::Reverse(refusal.count));
    let rows: Vec<_> = refusals
        .iter()
        .take(most)
        .map(|refusal| vec![refusal.count.to_string(), refusal.explanation.clone()])
        .collect();
    columns(&[Right, Left], &rows)
}

fn last_decisions(state: &State, wanted: usize) -> String {
    let rows: Vec<_> =
        state.decisions.iter().rev().take(wanted).map(|decision| decision_row(state, decision)).collect();
    columns(&[Right, Left, Left, Left], &rows)
}

fn decision_row(state: &State, decision: &DecisionState) -> Vec<String> {
    let value = |value: Option<f64>| match value {
        None => "none".to_string(),
        Some(0.0) if decision.quantity == "interval" => "open".to_string(),
        Some(value) if decision.quantity == "interval" => time(value),
        Some(0.0) if decision.quantity == "cap" => "none".to_string(),
        Some(value) if decision.quantity == "cap" => format!("{value:.2}"),
        Some(value) => format!("{value:.0}"),
    };
    let signal = |(name, value): (&String, &Option<f64>)| match (&decision.for_route, name.as_str()) {
        (Some(route), "route") => format!("at {route}"),
        _ => format!("{name} {}", value.map_or_else(|| "?".to_string(), number)),
    };
    let signals: Vec<String> = decision.signals.iter().map(signal).collect();
    let signals = if signals.is_empty() { String::new() } else { format!(" ({})", signals.join(", ")) };
    vec![
        format!("{} ago", time((state.uptime_seconds - decision.at_seconds).max(0.0))),
        short(&decision.name, NAME_COLUMNS),
        format!("{} {} to {}", decision.quantity, value(decision.old), value(decision.new)),
        format!("{}{signals}", decision.explanation),
    ]
}

/// Returns a predicted wait as a range.
fn range(low: f64, high: f64) -> String {
    if high < 90.0 {
        return if high - low < 1.0 {
            time(high)
        } else {
            format!("{:.0}–{:.0} s", low.floor(), high.ceil())
        };
    }
    let (low, high) = ((low / 60.0).floor(), (high / 60.0).ceil());
    if high - low < 0.5 { format!("{high:.0} min") } else { format!("{low:.0}–{high:.0} min") }
}

fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate < 0.995 && rate > 0.0 => format!("{rate:.2}"),
        rate if rate < 10.0 => format!("{rate:.1}"),
        rate => format!("{rate:.0}"),
    }
}

/// Returns a number with its significant digits.
fn number(value: f64) -> String {
    if value.abs() >= 100.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests;

//! A gateway's state as lines for people, the most important first.

mod cluster;
mod fit;
mod pools;
mod routes;
mod sites;

use crate::numbers::rough_time as time;
use crate::overrides::sentence;
use crate::table::Table;
use crate::terminal::{Colour, Line, Size, wrapped};
use fit::Section;
use routes::{Routes, routes, services};
use std::cmp::Reverse;
use suimon_admin::{
    DecisionState, KindState, NodeReportState, NodeState, OverrideState, SiteState, State, Verdict,
};
use suimon_statistics::table::{Align, columns_of, harmless, width};

/// The most routes shown: first those with most queued or in-flight requests, then those with most
/// requests.
const ROUTES_MAX: usize = 20;
/// Sites that are named one by one above a small picture.
const SITES_FITTED: usize = 4;
/// Kinds of session that keep their order; of more, those for which most wait come first.
const KINDS_FITTED: usize = 4;
/// Screens with fewer lines do not list the sites.
const LINES_FOR_SITES: usize = 24;
/// Screens with fewer lines do not say above the tables how many there are of everything.
const LINES_FOR_COUNTS: usize = 16;
/// Screens with fewer columns show less of each node, and decisions without the signals.
const COLUMNS_FOR_ALL: usize = 110;
/// Most columns of a name.
const NAME_COLUMNS: usize = 26;
/// Columns of a name on a screen that has hardly any.
const NAME_COLUMNS_MIN: usize = 12;
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

/// Stands in place of the routes.
const NO_ROUTE: &str = "  no gated request so far";

use Align::{Left, Right};

/// Returns the whole picture with the last `decisions` decisions, below `sites` in a line each. What does
/// not fit into lines of `columns` columns goes on below.
pub(crate) fn whole(state: &State, sites: &[SiteState], decisions: usize, columns: usize) -> Vec<Line> {
    let mut lines = sites::overview(sites, usize::MAX);
    lines.extend(head(state, columns, Head::Whole));
    lines.extend(totals(state));
    let mut section = |title: &str, table: Table| titled(&mut lines, title, table.whole(columns));
    section("Overridden", overrides(state));
    section("Sessions", kinds(&state.kinds));
    for kind in &state.kinds {
        lines.extend(details(kind, state.kinds.len() > 1));
    }
    let Routes { table, more } = routes(state, NAME_COLUMNS);
    let mut body = if table.is_empty() { vec![NO_ROUTE.to_owned()] } else { table.whole(columns) };
    body.extend((more > 0).then(|| format!("  and {more} quieter ones")));
    titled(&mut lines, "Routes", body);
    let mut section = |title: &str, table: Table| titled(&mut lines, title, table.whole(columns));
    section("Services", services(&state.services, NAME_COLUMNS));
    section("Application", nodes(&state.nodes, true));
    lines.extend(state.scaling.as_ref().into_iter().flat_map(cluster::scaling));
    if let Some(sharing) = &state.sharing {
        lines.extend([Line::default(), Line::default().bold("Gateways")]);
        lines.extend(cluster::sharing(sharing));
    }
    titled(&mut lines, "Workers", pools::table(&state.pools).whole(columns));
    lines.extend(pools::unhealthy(state));
    lines.extend(pools::last_moves(state));
    let mut section = |title: &str, table: Table| titled(&mut lines, title, table.whole(columns));
    section("Refused", refusals(state));
    section("Last decisions", last_decisions(state, decisions, NAME_COLUMNS, true));
    lines.push(Line::default());
    lines.extend(LEGEND.iter().map(|words| Line::default().faint("  ").faint(words)));
    lines.into_iter().flat_map(|line| line.paragraph(columns)).collect()
}

/// Returns as much of the picture as fits on a terminal of this size: what is wrong first.
pub(crate) fn fitted(state: &State, sites: &[SiteState], decisions: usize, size: Size) -> Vec<Line> {
    // The last column stays empty.
    let columns = size.columns.saturating_sub(1);
    let names = NAME_COLUMNS.min(columns / 3).max(NAME_COLUMNS_MIN);
    let is_wide = size.columns >= COLUMNS_FOR_ALL;
    let mut lines = match size.lines >= LINES_FOR_SITES {
        true => sites::overview(sites, SITES_FITTED),
        false => sites::in_trouble(state, sites),
    };
    lines.extend(head(state, columns, Head::of(size.lines)));

    let numbers = |title, rows_are, table: &Table| Section::of_numbers(title, rows_are, table, columns);
    let sentences = |title, rows_are, table: &Table| Section::of_sentences(title, rows_are, table, columns);
    let mut of_kinds = state.kinds.clone();
    if of_kinds.len() > KINDS_FITTED {
        of_kinds.sort_by_key(|kind| Reverse(kind.in_line.unwrap_or_default() + kind.held as u64));
    }
    let several = of_kinds.len() > 1;
    let lines_are = of_kinds.iter().flat_map(|kind| line_is(kind, several)).collect();
    let details = of_kinds.iter().flat_map(|kind| counts(kind, several)).collect();
    let Routes { table, more } = routes(state, names);
    let routes = match table.is_empty() {
        true => Section::of_lines("Routes", "routes", vec![Line::default().plain(NO_ROUTE)]),
        false => numbers("Routes", "routes", &table).more(more),
    };
    let all_up = state.nodes.iter().all(|node| node.status == "up");
    let unhealthy = pools::unhealthy(state);
    let workers = if unhealthy.is_empty() { 6 } else { 2 };
    let shares_well = state.sharing.as_ref().is_none_or(|sharing| sharing.phase == "shared");
    let sharing = state.sharing.as_ref().map_or_else(Vec::new, cluster::sharing);
    let scaling = state.scaling.as_ref().map_or_else(Vec::new, cluster::scaling);
    let sections = [
        sentences("Overridden", "overrides", &overrides(state)).rank(1, usize::MAX),
        numbers("Sessions", "kinds of session", &kinds(&of_kinds))
            .rank(0, KINDS_FITTED)
            .alarms(lines_are)
            .details(details),
        routes.rank(3, 6),
        numbers("Services", "services", &services(&state.services, names)).rank(5, 4),
        sentences("Application", "nodes", &nodes(&state.nodes, is_wide)).rank(if all_up { 4 } else { 2 }, 3),
        Section::of_lines("Number of nodes", "lines", scaling).rank(7, 2),
        Section::of_lines("Gateways", "lines", sharing).rank(if shares_well { 8 } else { 2 }, 2),
        numbers("Workers", "pools", &pools::table(&state.pools))
            .rank(workers, 3)
            .alarms(unhealthy)
            .details(pools::last_moves(state)),
        sentences("Refused", "reasons", &refusals(state)).rank(9, 1),
        sentences("Last decisions", "decisions", &last_decisions(state, decisions, names, is_wide))
            .rank(10, 3),
    ];
    let sections: Vec<Section> = sections.into_iter().filter(Section::is_shown).collect();
    fit::fit(lines, &sections, size)
}

fn titled(lines: &mut Vec<Line>, title: &str, body: Vec<String>) {
    if !body.is_empty() {
        lines.extend([Line::default(), Line::default().bold(title)]);
        lines.extend(body.into_iter().map(|line| Line::default().plain(&line)));
    }
}

/// Returns what an operator overrides, with until when, by whom and why: never left out, as it explains what
/// else is shown.
fn overrides(state: &State) -> Table {
    let row = |it: &OverrideState| {
        let (left, why) = (time(it.until - state.now), it.why.as_ref());
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        vec![it.id.to_string(), sentence(it), format!("for another {left}"), format!("by {}{why}", it.who)]
    };
    let rows: Vec<_> = state.overrides.iter().map(row).collect();
    Table::of_sentences(&[Right, Left, Left, Left], rows)
}

/// How much is said above the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    /// For a picture of any size.
    Whole,
    /// In one line how many there are.
    Short,
    /// What is most important.
    Least,
}

impl Head {
    /// Returns what a screen of so many lines has room for.
    const fn of(lines: usize) -> Head {
        if lines >= LINES_FOR_COUNTS { Head::Short } else { Head::Least }
    }
}

/// Returns what must be known first: is it ready, the verdict, how many there are.
fn head(state: &State, columns: usize, head: Head) -> Vec<Line> {
    let (verdict, totals) = (&state.verdict, &state.totals);
    let first = Line::default()
        .bold(&format!("suimon {}", state.version))
        .plain(&state.site.as_ref().map_or_else(String::new, |name| format!(", site {name}")))
        .plain(&format!(", up {}, ", time(state.uptime_seconds)));
    let first = match &state.not_ready_because {
        None => first.marked(Colour::Green, "ready"),
        // What is in brackets, such as each node that is down, stands in the tables of a small picture.
        Some(why) if head != Head::Whole => {
            let why = why.split(" (").next().unwrap_or_default();
            first.marked(Colour::Red, "NOT READY").plain(&format!(": {why}"))
        }
        Some(why) => first.marked(Colour::Red, "NOT READY").plain(&format!(": {why}")),
    };
    // In one line: the verdict must be seen, however small the terminal is.
    let mut lines = if head == Head::Whole { first.paragraph(columns) } else { vec![first] };
    lines.extend(said(verdict, state.now, columns, head));
    let mut text = format!(
        "  {} in line, {} held, {} queued, {} in the application",
        totals.in_line, totals.held, totals.queued, totals.in_flight,
    );
    if head == Head::Whole {
        text.push_str(&format!("; {}", counted(totals.connections_open as u64, "connection")));
    }
    text.push_str(&format!("; {} requests in all", totals.requests));
    if head != Head::Least {
        lines.extend(Line::default().plain(&text).paragraph(columns));
    }
    if let Some(config) = state.config.as_ref().filter(|config| config.differs_from_file) {
        let file = config.file.as_deref().unwrap_or("what it started with");
        let text = format!(
            " {} ago and differ from {file}: they hold until the next reload or restart",
            time((state.now - config.adopted_at).max(0.0))
        );
        let line = Line::default().plain("  ").marked(Colour::Yellow, "settings were posted").plain(&text);
        lines.extend(line.paragraph(columns));
    }
    lines
}

/// Returns the verdict, its sentence beside the mark if there is room.
fn said(verdict: &Verdict, now: f64, columns: usize, head: Head) -> Vec<Line> {
    let mark = verdict.situation.replace('_', " ").to_uppercase();
    let marked = Line::default().marked(colour_of(verdict), &mark).plain(": ");
    let since = match head {
        Head::Least => String::new(),
        _ => format!(" (for {})", time((now - verdict.since).max(0.0))),
    };
    let (sentence, indent) = (format!("{}{since}", verdict.sentence), marked.width());
    if columns < 3 * indent {
        return marked.plain(&sentence).paragraph(columns);
    }
    let mut sentences = wrapped(&sentence, columns.saturating_sub(indent)).into_iter();
    let mut lines = vec![marked.plain(&sentences.next().unwrap_or_default())];
    lines.extend(sentences.map(|rest| Line::default().plain(&" ".repeat(indent)).plain(&rest)));
    lines
}

/// Returns what has happened since the start.
fn totals(state: &State) -> Vec<Line> {
    let totals = &state.totals;
    let mut lines = Vec::new();
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

/// Returns the name; its middle is left out if it is too long for the column.
fn short(name: &str, columns: usize) -> String {
    let name = harmless(name);
    if width(&name) <= columns {
        return name;
    }
    let fits = |letters: &mut dyn Iterator<Item = char>, columns: usize| -> Vec<char> {
        let mut room = columns;
        letters
            .map_while(|letter| {
                room = room.checked_sub(columns_of(letter))?;
                Some(letter)
            })
            .collect()
    };
    let front = fits(&mut name.chars(), columns.div_ceil(2) - 1);
    let back = fits(&mut name.chars().rev(), columns / 2);
    front.into_iter().chain(['…']).chain(back.into_iter().rev()).collect()
}

fn kinds(kinds: &[KindState]) -> Table {
    let columns = [
        ("kind", Left, 0),
        ("gate", Left, 3),
        ("in line", Right, 1),
        ("held", Right, 6),
        ("active", Right, 4),
        ("admitted/s", Right, 5),
        ("ended/s", Right, 7),
        ("wait", Right, 2),
    ];
    let mut rows = Vec::new();
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
    Table::of_numbers(&columns, rows)
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
            .map_or_else(|| "shut".to_owned(), |line| line.state.replace('_', " ")),
        (other, _, _) => other.to_string(),
    }
}

/// Returns further details of a kind.
fn details(kind: &KindState, several: bool) -> Vec<Line> {
    counts(kind, several).into_iter().chain(line_is(kind, several)).collect()
}

/// Returns the kind's name where there are several.
fn of_kind(kind: &KindState, several: bool) -> String {
    if several { format!("  {}: ", short(&kind.name, KIND_COLUMNS)) } else { "  ".to_owned() }
}

/// Returns what became of the sessions of a kind, and how long they waited.
fn counts(kind: &KindState, several: bool) -> Vec<Line> {
    let name = of_kind(kind, several);
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
    lines.iter().map(|text| Line::default().faint(text)).collect()
}

/// Returns what an operator has done with a kind's line, if anything.
fn line_is(kind: &KindState, several: bool) -> Option<Line> {
    let line = kind.line.as_ref().filter(|line| line.state != "moving" || !line.message.is_empty())?;
    let message =
        if line.message.is_empty() { String::new() } else { format!(": \u{201c}{}\u{201d}", line.message) };
    let text = format!("{}the line is {}{message}", of_kind(kind, several), line.state.replace('_', " "));
    Some(Line::default().faint(&text))
}

/// Returns the nodes, those with problems first; `all` with what is known of their connections.
fn nodes(nodes: &[NodeState], all: bool) -> Table {
    if nodes.iter().any(|node| node.in_process) {
        return Table::of_sentences(&[Left], vec![vec!["in this process".to_owned()]]);
    }
    let mut nodes: Vec<&NodeState> = nodes.iter().collect();
    nodes.sort_by_key(|node| node.status == "up");
    let mut rows = Vec::new();
    for node in nodes {
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
        let mut row = vec![
            if all { node.address.clone() } else { short(&node.address, NAME_COLUMNS) },
            node.status.clone(),
            format!("{} in flight", node.in_flight),
        ];
        row.extend(all.then(|| format!("{} kept open", counted(node.connections as u64, "idle connection"))));
        row.push(why);
        rows.push(row);
    }
    let aligns = [Left, Left, Right, Right, Left];
    Table::of_sentences(if all { &aligns } else { &aligns[1..] }, rows)
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

fn refusals(state: &State) -> Table {
    let mut refusals: Vec<_> = state.refusals.iter().collect();
    refusals.sort_by_key(|refusal| Reverse(refusal.count));
    let row = |refusal: &&_| {
        let suimon_admin::Refusals { count, explanation, .. } = *refusal;
        vec![count.to_string(), explanation.clone()]
    };
    Table::of_sentences(&[Right, Left], refusals.iter().map(row).collect())
}

/// Returns the last decisions, `all` with the signals they rest on.
fn last_decisions(state: &State, wanted: usize, names: usize, all: bool) -> Table {
    let last = state.decisions.iter().rev().take(wanted);
    let rows = last.map(|decision| decision_row(state, decision, names, all)).collect();
    Table::of_sentences(&[Right, Left, Left, Left], rows)
}

fn decision_row(state: &State, decision: &DecisionState, names: usize, all: bool) -> Vec<String> {
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
    let signals =
        if signals.is_empty() || !all { String::new() } else { format!(" ({})", signals.join(", ")) };
    vec![
        format!("{} ago", time((state.uptime_seconds - decision.at_seconds).max(0.0))),
        short(&decision.name, names),
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

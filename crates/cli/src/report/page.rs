//! The report: one page that contains all it needs and loads nothing from the network.

use super::Found;
use super::figures;
use super::numbers::{abandoned, finished, lost, name};
use crate::numbers::{count, plural, rate, time};
use crate::page::{self, both_widths, escape, half};
use serde_json::Value;
use std::fmt::{Result, Write as _};
use std::time::UNIX_EPOCH;
use suimon_model::{Quantity, Reason};
use suimon_sim::replay::{Change, RouteLine, Timeline, TimelineSubject, Visitors};
use suimon_statistics::Histogram;

/// Most changes listed on the page, the latest ones. The numbers have all that were kept.
const LISTED_MAX: usize = 300;
/// Most routes in the table, those with most requests.
const ROUTES_MAX: usize = 50;
/// Most reasons listed per route or kind.
const REASONS_MAX: usize = 6;

/// Returns the page, which contains `numbers`.
pub(super) fn page(found: &Found, numbers: &Value) -> String {
    let mut page = String::with_capacity(256 * 1024);
    // Writing into a String cannot fail.
    let _ = write_page(&mut page, found, numbers);
    page
}

/// Returns a sentence on whether the replay made the same decisions, and further notes about the
/// recording.
pub(super) fn verdict(found: &Found) -> (String, Vec<String>) {
    let replay = &found.replay;
    let sentence = match &replay.divergence {
        None => format!("Replayed, and the same {} decisions were made again.", replay.decided),
        Some(divergence) => format!(
            "The replay does not decide alike: {} is not what was recorded; alike until {:.3} s after the gateway's start, \
             not any more at {:.3} s. Nothing after that is shown.",
            divergence.what,
            divergence.after.as_secs_f64(),
            divergence.until.as_secs_f64()
        ),
    };
    let mut more = vec![];
    if let Some(damage) = found.cut {
        more.push(format!("Shown up to where it is whole: {damage}."));
    }
    if let Some(program) = &replay.other_program {
        more.push(format!(
            "It was recorded by suimon {program}, whose laws may decide otherwise than this one's."
        ));
    }
    if found.files.earlier > 0 {
        more.push(format!(
            "{} files beside it are of other runs; name them to see them.",
            found.files.earlier
        ));
    }
    (sentence, more)
}

fn write_page(page: &mut String, found: &Found, numbers: &Value) -> Result {
    let timeline = found.timeline();
    let headline = headline(found);
    page::begin(page, &format!("Suimon report: {headline}"), &headline, &lead(found))?;
    let (sentence, more) = verdict(found);
    let caution = found.replay.divergence.is_some() || !more.is_empty();
    let words = std::iter::once(sentence).chain(more).collect::<Vec<_>>().join(" ");
    let class = if caution { "caution" } else { "soft" };
    writeln!(page, "<p class=\"{class}\">{}</p>", escape(&words))?;
    drawings(page, timeline)?;
    page::section(page, "Routes", &routes_words(timeline), &routes(timeline))?;
    page::section(
        page,
        "Why it changed",
        &reasons_words(timeline),
        &(reasons(timeline) + &changes(timeline)),
    )?;
    page::section(page, "How this was found", "", METHOD)?;
    page::end(page, numbers)
}

const METHOD: &str = "<p>A recording holds what happened to the gate: who came for which route, when they left, when the application was done. \
     The gate was told the same again, by the same code, and what it answered and decided is shown here. Waits end when a \
     request is let in to the application. docs/recording.md tells what is in a recording and what is not.</p>\n\
     <p class=\"soft\">All numbers are inside this page, as JSON, in the element <code>numbers</code>.</p>\n";

fn headline(found: &Found) -> String {
    let figures = found.replay.figures();
    if figures.offered == 0 {
        return "Nobody came".to_owned();
    }
    let visitors = &found.timeline().visitors;
    if visitors.began > 0 {
        return headline_of(visitors, figures.refused);
    }
    let wait = time(figures.wait_p95.as_secs_f64());
    match figures.refused {
        0 if figures.wait_p95.as_secs_f64() < 0.01 => "Everybody was let in at once".to_owned(),
        0 => format!("Everybody was let in; 95 of 100 within {wait}"),
        refused => format!("{refused} of {} requests were refused", figures.offered),
    }
}

/// Returns the visitors' outcomes, in a sentence.
fn headline_of(visitors: &Visitors, refused: u64) -> String {
    let lost = match lost(&visitors.ends) {
        0 => "nobody was lost inside".to_owned(),
        some => format!("{some} were lost inside"),
    };
    let mut sentence =
        format!("{}; {lost}", plural(finished(&visitors.ends), "session finished", "sessions finished"));
    if visitors.in_line_max > 0 {
        sentence.push_str(&format!("; up to {} waited in line", visitors.in_line_max));
        if let Some(half) = visitors.waits.quantile(0.5).filter(|half| half.as_secs_f64() >= 1.0) {
            sentence.push_str(&format!(", half for under {}", short(half.as_secs_f64())));
        }
    }
    if refused > 0 {
        sentence.push_str(&format!("; {}", plural(refused, "request was refused", "requests were refused")));
    }
    sentence
}

/// Returns a waiting time in words.
fn short(seconds: f64) -> String {
    match seconds {
        s if s >= 100.0 => format!("{:.1} min", s / 60.0),
        s => time(s),
    }
}

/// Returns the outcomes of sessions and of visitors in line.
fn lead_of_visitors(visitors: &Visitors) -> String {
    if visitors.began == 0 {
        return String::new();
    }
    let ends = &visitors.ends;
    let mut text = format!(
        " Of {} newcomers {} began a session; {} sessions ended as the application said, {} with silence after an answer, {} were abandoned \
         before a response, and {} ended in an error.",
        visitors.newcomers, visitors.began, ends.finished, ends.silent, ends.abandoned, ends.failed
    );
    if visitors.issued > 0 {
        let quantile = |q| visitors.waits.quantile_s(q).map_or_else(none, short);
        text.push_str(&format!(
            " {} tickets were issued; {} of their holders gave up, and {} still waited at the end; half of the admitted visitors had waited for no more \
             than {}, 95 of 100 for no more than {}.",
            visitors.issued,
            visitors.abandoned(),
            visitors.still_waiting,
            quantile(0.5),
            quantile(0.95)
        ));
    }
    text
}

fn lead(found: &Found) -> String {
    let (replay, figures) = (&found.replay, found.replay.figures());
    let began = httpdate::fmt_http_date(UNIX_EPOCH + replay.began);
    let runs = if replay.runs > 1 { format!(" in {} runs", replay.runs) } else { String::new() };
    format!(
        "{} from {began} on{runs}.{} {} requests came: {} were let in, {} were shown a position in line, {} were refused, and {} were abandoned. \
         Requests that were let in had waited, held or queued, for {} at the mean, 95 of 100 of them for no more than {}.",
        span(found.timeline().seconds()),
        lead_of_visitors(&found.timeline().visitors),
        figures.offered,
        figures.admitted,
        figures.waiting_pages,
        figures.refused,
        abandoned(found.timeline()),
        time(figures.wait_mean.as_secs_f64()),
        time(figures.wait_p95.as_secs_f64())
    )
}

fn drawings(page: &mut String, timeline: &Timeline) -> Result {
    let bin = time(timeline.width);
    let restarts = match timeline.restarts.len() {
        0 => String::new(),
        _ => " Every other run, or part before which one is missing, has another ground; the time between is left out.".to_owned(),
    };
    page::section(
        page,
        "Sessions: what was got done",
        &format!(
            "Sessions a second, over {bin} each. Lost inside: ended in an error, or left before an answer.{restarts}"
        ),
        &both_widths(&figures::sessions(timeline)),
    )?;
    page.push_str("<div class=\"pair\">\n");
    for (title, words, plot) in [
        (
            "People in line",
            "Those who have a position in line, or are held at the gate, and sessions under way.",
            figures::line(timeline),
        ),
        (
            "Wait to get in",
            "From a visitor's arrival to admission, for admitted visitors, at the time of admission.",
            figures::entries(timeline),
        ),
    ] {
        page::section(page, title, words, &half(&plot))?;
    }
    page.push_str("</div>\n");
    page::section(
        page,
        "Requests: what came, and what became of it",
        &format!("Requests a second, over {bin} each.{restarts}"),
        &both_widths(&figures::requests(timeline)),
    )?;
    page.push_str("<div class=\"pair\">\n");
    for (title, words, plot) in [
        (
            "How much at once",
            "The limits of the routes with most work. Short steps up and down are trials.",
            figures::limits(timeline),
        ),
        (
            "When the next one is let in",
            "The pace at which sessions begin. 0: the gate is open.",
            figures::interval(timeline),
        ),
        (
            "Where requests are",
            "Newcomers held at the gate, requests queued for a slot, and in service.",
            figures::waiting(timeline),
        ),
        (
            "How long requests waited",
            "Held or queued, of those that were let in, when they were.",
            figures::waits(timeline),
        ),
    ] {
        page::section(page, title, words, &half(&plot))?;
    }
    if let Some(plot) = figures::workers(timeline) {
        let words = "Those that were ready, of the first two pools, and how many of them had a request.";
        page::section(page, "How many workers there were", words, &half(&plot))?;
    }
    page.push_str("</div>\n");
    Ok(())
}

fn routes_words(timeline: &Timeline) -> String {
    let shown = timeline.routes.iter().filter(|route| route.came > 0).count();
    match shown.saturating_sub(ROUTES_MAX) {
        0 => "What became of the requests of each route. Times are of all that were let in; abandoned: client disconnects, waiting or served.".to_owned(),
        more => format!("The {ROUTES_MAX} routes asked for most; {more} more are in the numbers."),
    }
}

/// A heading, and the function for a route's cell.
type Column = (&'static str, fn(&RouteLine) -> String);

const COLUMNS: [Column; 10] = [
    ("came", |route| route.came.to_string()),
    ("completed", |route| route.completed.to_string()),
    ("failed", |route| route.failed.to_string()),
    ("abandoned", |route| route.abandoned.to_string()),
    ("refused", |route| route.refused.to_string()),
    ("waiting page", |route| route.waiting_pages.to_string()),
    ("waited, half", |route| quantile(&route.waits, 0.5)),
    ("waited, 95 of 100", |route| quantile(&route.waits, 0.95)),
    ("served, mean", |route| route.services.mean().map_or_else(none, |mean| time(mean.as_secs_f64()))),
    ("served, 95 of 100", |route| quantile(&route.services, 0.95)),
];

fn none() -> String {
    "–".to_owned()
}

fn quantile(times: &Histogram, q: f64) -> String {
    times.quantile_s(q).map_or_else(none, time)
}

/// Returns a table with a row per route.
fn routes(timeline: &Timeline) -> String {
    let mut routes: Vec<&RouteLine> = timeline.routes.iter().filter(|route| route.came > 0).collect();
    routes.sort_by_key(|route| std::cmp::Reverse(route.came));
    let row = |route: &RouteLine| {
        (route.name.clone(), COLUMNS.iter().map(|(_, cell)| cell(route)).collect::<Vec<_>>())
    };
    let rows = routes.into_iter().take(ROUTES_MAX).map(row);
    page::table("laws routes", "route", &COLUMNS.map(|(name, _)| name), rows)
}

fn reasons_words(timeline: &Timeline) -> String {
    match timeline.changed {
        0 => "No limit and no interval was changed.".to_owned(),
        changed => format!("Limits and intervals were changed {changed} times. How often, and why:"),
    }
}

/// Returns the reasons for each route's and kind's changes of limit or interval, the most frequent
/// first, and the reasons for refusals.
fn reasons(timeline: &Timeline) -> String {
    let mut subjects: Vec<(TimelineSubject, u64)> = vec![];
    for ((of, _), count) in &timeline.reasons {
        match subjects.last_mut().filter(|(last, _)| last == of) {
            Some((_, sum)) => *sum += count,
            None => subjects.push((*of, *count)),
        }
    }
    subjects.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let line = |(reason, times): (Reason, u64)| {
        format!("<span><strong>{times}</strong> {}</span>", escape(reason.explain()))
    };
    let of_one = |of: TimelineSubject| {
        let mut reasons: Vec<(Reason, u64)> = timeline
            .reasons
            .iter()
            .filter(|((other, _), _)| *other == of)
            .map(|((_, reason), count)| (*reason, *count))
            .collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        reasons.into_iter().take(REASONS_MAX).map(line).collect::<String>()
    };
    let item = |(of, _): &(TimelineSubject, u64)| {
        let what = match of {
            TimelineSubject::Route(_) => "limit",
            TimelineSubject::Kind(_) => "interval",
            TimelineSubject::Service(_) => "cap",
        };
        format!("<li><i>{}</i> {what}{}</li>\n", escape(name(timeline, *of)), of_one(*of))
    };
    let mut items: String = subjects.iter().take(ROUTES_MAX).map(item).collect();
    if !timeline.refusals.is_empty() {
        let why: String = timeline.refusals.iter().map(|(reason, times)| line((*reason, *times))).collect();
        let _ = writeln!(items, "<li><i>refused</i>{why}</li>");
    }
    if items.is_empty() { String::new() } else { format!("<ul class=\"list reasons\">\n{items}</ul>\n") }
}

/// Returns the latest changes with their reasons and signals, folded.
fn changes(timeline: &Timeline) -> String {
    if timeline.changes.is_empty() {
        return String::new();
    }
    let kept = timeline.changes.len();
    let first = kept.saturating_sub(LISTED_MAX);
    let summary = match first {
        0 => format!("All {kept} changes, but for the windows of trials"),
        _ => format!("The last {LISTED_MAX} of {kept} changes, but for the windows of trials"),
    };
    let items: String = timeline.changes[first..].iter().map(|change| item(timeline, change)).collect();
    format!(
        "<details class=\"fold\"><summary>{summary}</summary>\n<ol class=\"list\">\n{items}</ol></details>\n"
    )
}

fn item(timeline: &Timeline, change: &Change) -> String {
    let record = &change.record;
    let value = |value: f64| match record.quantity {
        _ if !value.is_finite() => "none".to_owned(),
        Quantity::Limit => count(value),
        Quantity::Moving => if value == 0.0 { "stands still" } else { "moves" }.to_owned(),
        Quantity::Cap if value == 0.0 => "none".to_owned(),
        Quantity::Cap => format!("{value:.2}"),
        Quantity::Interval if value == 0.0 => "open".to_owned(),
        Quantity::Interval => time(value),
    };
    let signals: Vec<String> =
        record.signals.iter().map(|(name, value)| signal(timeline, name, value)).collect();
    format!(
        "<li>{} <i>{}</i> {} {} → <strong>{}</strong><span>{}</span><code>{}</code></li>\n",
        moment(change.at),
        escape(name(timeline, change.of)),
        record.quantity.name(),
        value(record.old),
        value(record.new),
        escape(record.reason.explain()),
        escape(&signals.join(" · "))
    )
}

/// Returns one signal of a decision. A route appears by its name if its number is unambiguous.
fn signal(timeline: &Timeline, name: &str, value: f64) -> String {
    let route = Some(value as usize).filter(|_| name == "route" && timeline.restarts.is_empty());
    if let Some(route) = route.and_then(|place| timeline.routes.get(place)) {
        return format!("at {}", route.name);
    }
    let value = if value.is_finite() { rate(value) } else { none() };
    format!("{} {value}", name.replace('_', "\u{a0}"))
}

/// Returns a moment of the time played.
fn moment(seconds: f64) -> String {
    let whole = seconds as u64;
    let tenths = ((seconds.fract() * 10.0) as u64).min(9);
    match whole / 3600 {
        0 => format!("{}:{:02}.{tenths}", whole / 60, whole % 60),
        hours => format!("{hours}:{:02}:{:02}.{tenths}", whole / 60 % 60, whole % 60),
    }
}

/// Returns how long it was.
fn span(seconds: f64) -> String {
    match seconds {
        s if s >= 7200.0 => format!("{:.1} hours", s / 3600.0),
        s if s >= 180.0 => format!("{:.1} minutes", s / 60.0),
        s => format!("{s:.1} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_is_about_sessions_and_people_in_line() {
        let mut visitors = Visitors { began: 391, in_line_max: 488, ..Visitors::default() };
        visitors.ends.silent = 357;
        for _ in 0..9 {
            visitors.waits.record(std::time::Duration::from_secs(194));
        }
        let told = headline_of(&visitors, 0);
        assert!(
            told.starts_with(
                "357 sessions finished; nobody was lost inside; up to 488 waited in line, half for under 3."
            ),
            "{told}"
        );
        visitors.ends.failed = 3;
        assert!(headline_of(&visitors, 2).contains("3 were lost inside"));
        assert!(headline_of(&visitors, 2).ends_with("; 2 requests were refused"));
    }

    #[test]
    fn moments_and_spans_are_told_as_clocks_and_people_do() {
        assert_eq!(
            [0.05, 61.27, 3600.0, 36_125.99].map(moment),
            ["0:00.0", "1:01.2", "1:00:00.0", "10:02:05.9"]
        );
        assert_eq!([12.0, 200.0, 10_000.0].map(span), ["12.0 seconds", "3.3 minutes", "2.8 hours"]);
    }
}

//! The report's numbers for scripts; the page contains them, too.

use super::Found;
use serde_json::{Value, json};
use suimon_gate::SessionEnds;
use suimon_sim::replay::{Bin, Change, RouteLine, Timeline, TimelineSubject, Visitors};

/// Returns everything the page is made from.
pub(super) fn of(found: &Found) -> Value {
    let (replay, timeline) = (&found.replay, found.timeline());
    let figures = replay.figures();
    let divergence = replay.divergence.as_ref().map(|divergence| {
        json!({
            "segment": divergence.segment,
            "same_until_s": divergence.after.as_secs_f64(),
            "different_at_s": divergence.until.as_secs_f64(),
            "what": divergence.what,
        })
    });
    let refusals: serde_json::Map<String, Value> =
        timeline.refusals.iter().map(|(reason, count)| (reason.code().to_owned(), json!(count))).collect();
    json!({
        "files": found.files.paths().iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        "began_unix_s": replay.began.as_secs_f64(),
        "span_s": timeline.seconds(),
        "runs": replay.runs,
        "restarts_s": timeline.restarts,
        "events": replay.events,
        "identical": divergence.is_none(),
        "divergence": divergence,
        "cut_at_byte": found.cut.map(|damage| damage.at),
        "offered": figures.offered,
        "admitted": figures.admitted,
        "refused": figures.refused,
        "refusals": refusals,
        "waiting_pages": figures.waiting_pages,
        "visitors": visitors(&timeline.visitors),
        "abandoned": abandoned(timeline),
        "wait_mean_s": figures.wait_mean.as_secs_f64(),
        "wait_p95_s": figures.wait_p95.as_secs_f64(),
        "decided": replay.decided,
        "changed": timeline.changed,
        "routes": timeline.routes.iter().map(route).collect::<Vec<_>>(),
        "kinds": timeline.kinds,
        "bin_s": timeline.width,
        "bins": timeline.bins.iter().map(bin).collect::<Vec<_>>(),
        "changes": timeline.changes.iter().map(|change| self::change(timeline, change)).collect::<Vec<_>>(),
    })
}

/// Returns how many requests were abandoned, while waiting or in flight.
pub(super) fn abandoned(timeline: &Timeline) -> u64 {
    timeline.bins.iter().map(|bin| bin.abandoned).sum()
}

/// Returns the name of a route, a kind or a service.
pub(super) fn name(timeline: &Timeline, of: TimelineSubject) -> &str {
    match of {
        TimelineSubject::Route(place) => timeline.routes.get(place).map_or("", |route| route.name.as_str()),
        TimelineSubject::Kind(place) => timeline.kinds.get(place).map_or("", String::as_str),
        TimelineSubject::Service(place) => timeline.services.get(place).map_or("", String::as_str),
    }
}

/// Returns how many sessions ended after a response.
pub(super) fn finished(ends: &SessionEnds) -> u64 {
    ends.finished + ends.silent
}

/// Returns how many sessions failed mid-session: no request after an error, or a client disconnect
/// before a response.
pub(super) fn lost(ends: &SessionEnds) -> u64 {
    ends.failed + ends.abandoned
}

fn visitors(visitors: &Visitors) -> Value {
    let ends = &visitors.ends;
    json!({
        "newcomers": visitors.newcomers,
        "sessions_began": visitors.began,
        "sessions_finished": ends.finished,
        "sessions_silent": ends.silent,
        "sessions_abandoned": ends.abandoned,
        "sessions_failed": ends.failed,
        "sessions_reopened": ends.reopened,
        "tickets_issued": visitors.issued,
        "tickets_admitted": visitors.admitted,
        "tickets_abandoned": visitors.abandoned(),
        "in_line_max": visitors.in_line_max,
        "polls": visitors.polls,
        "entry_wait_p50_s": visitors.waits.quantile_s(0.5),
        "entry_wait_p95_s": visitors.waits.quantile_s(0.95),
    })
}

fn route(route: &RouteLine) -> Value {
    json!({
        "route": route.name,
        "offered": route.came,
        "completed": route.completed,
        "failed": route.failed,
        "abandoned": route.abandoned,
        "refused": route.refused,
        "waiting_pages": route.waiting_pages,
        "wait_p50_s": route.waits.quantile_s(0.5),
        "wait_p95_s": route.waits.quantile_s(0.95),
        "service_mean_s": route.services.mean().map(|time| time.as_secs_f64()),
        "service_p95_s": route.services.quantile_s(0.95),
    })
}

fn bin(bin: &Bin) -> Value {
    json!({
        "offered": bin.came,
        "admitted": bin.let_in,
        "refused": bin.refused,
        "waiting_pages": bin.waiting_pages,
        "sessions_began": bin.began,
        "sessions_finished": finished(&bin.ends),
        "sessions_lost": lost(&bin.ends),
        "entry_wait_p50_s": bin.entries.quantile_s(0.5),
        "entry_wait_p95_s": bin.entries.quantile_s(0.95),
        "abandoned": bin.abandoned,
        "wait_p50_s": bin.waits.quantile_s(0.5),
        "wait_p95_s": bin.waits.quantile_s(0.95),
        "limits": bin.gate.limits,
        "intervals_s": bin.gate.intervals,
        "held": bin.gate.held,
        "in_line": bin.gate.in_line,
        "sessions": bin.gate.sessions,
        "queued": bin.gate.queued,
        "in_flight": bin.gate.in_flight,
        "workers": bin.gate.pools.iter().map(|pool| pool.ready).collect::<Vec<_>>(),
    })
}

fn change(timeline: &Timeline, change: &Change) -> Value {
    let signals: serde_json::Map<String, Value> =
        change.record.signals.iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
    json!({
        "at_s": change.at,
        "of": name(timeline, change.of),
        "quantity": change.record.quantity.name(),
        "old": change.record.old,
        "new": change.record.new,
        "reason": change.record.reason.code(),
        "signals": signals,
    })
}

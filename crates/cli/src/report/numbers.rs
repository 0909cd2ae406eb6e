//! The report's numbers, for scripts; they stand in the page, too.

use super::Found;
use serde_json::{Value, json};
use suimon_sim::replay::{Bin, Change, Of, RouteLine, Timeline};
use suimon_workload::Histogram;

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
        "left": left(timeline),
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

/// Returns how many clients left, waiting or served.
pub(super) fn left(timeline: &Timeline) -> u64 {
    timeline.bins.iter().map(|bin| bin.left).sum()
}

/// Returns the name of a route or a kind.
pub(super) fn name(timeline: &Timeline, of: Of) -> &str {
    match of {
        Of::Route(place) => timeline.routes.get(place).map_or("", |route| route.name.as_str()),
        Of::Kind(place) => timeline.kinds.get(place).map_or("", String::as_str),
    }
}

fn quantile(times: &Histogram, q: f64) -> Option<f64> {
    times.quantile(q).map(|time| time.as_secs_f64())
}

fn route(route: &RouteLine) -> Value {
    json!({
        "route": route.name,
        "offered": route.came,
        "completed": route.completed,
        "failed": route.failed,
        "left": route.left,
        "refused": route.refused,
        "wait_p50_s": quantile(&route.waits, 0.5),
        "wait_p95_s": quantile(&route.waits, 0.95),
        "service_mean_s": route.services.mean().map(|time| time.as_secs_f64()),
        "service_p95_s": quantile(&route.services, 0.95),
    })
}

fn bin(bin: &Bin) -> Value {
    json!({
        "offered": bin.came,
        "admitted": bin.let_in,
        "refused": bin.refused,
        "left": bin.left,
        "wait_p50_s": quantile(&bin.waits, 0.5),
        "wait_p95_s": quantile(&bin.waits, 0.95),
        "limits": bin.gate.limits,
        "intervals_s": bin.gate.intervals,
        "line": bin.gate.line,
        "queued": bin.gate.queued,
        "in_flight": bin.gate.in_flight,
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

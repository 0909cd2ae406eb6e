//! Everything at one moment, as `/api/state` tells it and `suimon status` reads it.
//!
//! These structs are the wire's own: names here stay while those inside may change.

use crate::Source;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use suimon_gate::{Counts, KindView, Mode};
use suimon_model::{Record, RouteId, Subject};
use suimon_proxy::upstream::UpstreamNodeView;
use suimon_proxy::{BUCKETS, RouteReport, Times, View};

/// Everything at one moment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct State {
    /// Version of the gateway.
    pub version: String,
    /// Time since the start, seconds.
    pub uptime_seconds: f64,
    /// Whether new visitors should be sent here.
    pub ready: bool,
    /// Why not, if not.
    pub not_ready_because: Option<String>,
    /// What it began with; absent: nothing was known.
    #[serde(default)]
    pub recalled: Option<RecalledState>,
    /// Sums over everything.
    pub totals: Totals,
    /// How many were refused, by reason.
    pub refusals: Vec<Refusals>,
    /// The route whose limit is being probed.
    pub probing: Option<String>,
    /// Every kind of session.
    pub kinds: Vec<KindState>,
    /// Every gated route.
    pub routes: Vec<RouteState>,
    /// Everything that passes without a slot, together.
    pub ungated: RouteState,
    /// Every node of the application.
    pub nodes: Vec<NodeState>,
    /// The last decisions, oldest first.
    pub decisions: Vec<DecisionState>,
}

/// What a gateway began with.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RecalledState {
    /// How old it was then, seconds.
    pub age_seconds: f64,
    /// Routes with a limit that was known.
    pub routes: usize,
    /// The version of the program that learned it.
    pub by: String,
}

/// Sums over everything.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Totals {
    /// Requests whose head was read.
    pub requests: u64,
    /// Requests answered as bad by the gateway itself.
    pub bad_requests: u64,
    /// Requests answered 502 to 504.
    pub upstream_errors: u64,
    /// Client connections open.
    pub connections_open: usize,
    /// Client connections ever accepted.
    pub connections: u64,
    /// Requests held waiting.
    pub waiting: usize,
    /// Requests in the application.
    pub in_flight: usize,
    /// Sessions remembered.
    pub sessions: usize,
    /// Clients that left while waiting.
    pub gone_while_waiting: u64,
    /// Clients that left while the application worked for them.
    pub ghosts: u64,
    /// Bytes held for slow clients.
    pub buffered_bytes: usize,
}

/// How many were refused for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refusals {
    /// Its short name.
    pub reason: String,
    /// The reason in words.
    pub explanation: String,
    /// How many.
    pub count: u64,
}

/// One kind of session.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KindState {
    /// Its name.
    pub name: String,
    /// Whether newcomers pass without being held back.
    pub open: bool,
    /// Seconds between two session starts; 0 while open; absent: nobody is let in.
    pub interval_seconds: Option<f64>,
    /// Newcomers held at the gate.
    pub waiting: usize,
    /// Visitors who wait in line, those held included; absent where there is none.
    pub in_line: Option<u64>,
    /// Sessions under way.
    pub active: usize,
    /// Sessions let in since the start.
    pub admitted: u64,
    /// Newcomers refused since the start.
    pub refused: u64,
    /// Sessions let in a second, lately.
    pub rate: f64,
    /// Seconds a newcomer arriving now would wait; absent: without end.
    pub predicted_wait_seconds: Option<f64>,
    /// How long visitors are taken to wait.
    pub patience_seconds: Option<f64>,
    /// `declared`, `learned`, `recalled` (from another run) or `assumed`.
    pub patience_source: String,
}

/// One route.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RouteState {
    /// `GET /items/{id}`, `other` or `ungated`.
    pub name: String,
    /// `enforce`, `observe`, `off` or `fixed`; absent where nothing is gated.
    pub mode: Option<String>,
    /// Requests that may be in the application at once.
    pub limit: Option<u32>,
    /// Requests in the application.
    pub in_flight: usize,
    /// Of these, requests whose client has gone.
    pub ghosts: usize,
    /// Requests waiting.
    pub waiting: usize,
    /// Completions a second, lately.
    pub rate: f64,
    /// Mean time in the application, lately, seconds.
    pub service_seconds: f64,
    /// Requests that came, since the start.
    pub offered: u64,
    /// Of these, completed.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// Abandoned by their clients.
    pub abandoned: u64,
    /// Refused.
    pub refused: u64,
    /// Answers by class of status, `1xx` to `5xx`; classes never seen are left out.
    pub statuses: BTreeMap<String, u64>,
    /// Time held waiting, of those that were.
    pub waited: Percentiles,
    /// Time in the application.
    pub upstream: Percentiles,
    /// Time the gateway added.
    pub added: Percentiles,
}

/// A distribution since the start, in seconds; absent where nothing was counted.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// How many.
    pub count: u64,
    /// Half were shorter. Read off buckets, so a little coarse.
    pub p50: Option<f64>,
    /// 99 of 100 were shorter.
    pub p99: Option<f64>,
}

/// One node of the application.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeState {
    /// `http://host:port`.
    pub address: String,
    /// `up`, `down`, `ejected` or `draining`.
    pub status: String,
    /// Short name of the reason.
    pub reason: String,
    /// The reason in words.
    pub explanation: String,
    /// How long it has been so, seconds.
    pub for_seconds: f64,
    /// How long an ejection still lasts, seconds.
    pub ejected_for_seconds: Option<f64>,
    /// Requests at the node.
    pub in_flight: u32,
    /// Requests it was picked for.
    pub picked: u64,
    /// Failed requests in a row.
    pub failures_in_a_row: u32,
    /// Connections kept open.
    pub connections: usize,
}

/// One decision.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DecisionState {
    /// Seconds since the start at which it was made.
    pub at_seconds: f64,
    /// `route` or `kind`.
    pub subject: String,
    /// The route's or kind's name.
    pub name: String,
    /// `limit` or `interval`.
    pub quantity: String,
    /// The value before; absent: none, or without end.
    pub old: Option<f64>,
    /// The value from then on.
    pub new: Option<f64>,
    /// Short name of the reason.
    pub reason: String,
    /// The reason in words.
    pub explanation: String,
    /// The numbers it rests on.
    pub signals: BTreeMap<String, Option<f64>>,
}

impl State {
    /// Returns everything that `source` shows now.
    pub(crate) fn of(source: &dyn Source, version: &str) -> State {
        let view = source.view();
        let nodes = source.nodes();
        let not_ready = not_ready_because(source.is_draining(), &nodes);
        let probing = view.gate.probing.map(|route| route_name(&view, route));
        State {
            version: version.to_string(),
            uptime_seconds: view.uptime.as_secs_f64(),
            ready: not_ready.is_none(),
            not_ready_because: not_ready,
            totals: totals(&view),
            refusals: view
                .refusals
                .iter()
                .map(|(reason, count)| Refusals {
                    reason: reason.code().to_string(),
                    explanation: reason.explain().to_string(),
                    count: *count,
                })
                .collect(),
            recalled: view.recalled.as_ref().map(|recalled| RecalledState {
                age_seconds: recalled.age.as_secs_f64(),
                routes: recalled.routes,
                by: recalled.by.clone(),
            }),
            probing,
            kinds: view.kinds.iter().map(|(name, kind)| kind_state(name, kind)).collect(),
            routes: view.routes.iter().map(route_state).collect(),
            ungated: route_state(&view.ungated),
            nodes: nodes.iter().map(node_state).collect(),
            decisions: view.gate.records.iter().map(|record| decision_state(&view, record)).collect(),
        }
    }
}

/// Returns why new visitors should not be sent here, if they should not.
pub(crate) fn not_ready_because(draining: bool, nodes: &[UpstreamNodeView]) -> Option<String> {
    if draining {
        return Some("the gateway is shutting down".to_string());
    }
    if nodes.iter().any(|node| node.status == "up") {
        return None;
    }
    let each: Vec<String> = nodes
        .iter()
        .map(|node| format!("{} is {}: {}", node.address, node.status, node.explanation))
        .collect();
    Some(format!("no node of the application is up ({})", each.join("; ")))
}

fn totals(view: &View) -> Totals {
    Totals {
        requests: view.requests,
        bad_requests: view.faults,
        upstream_errors: view.upstream_errors,
        connections_open: view.connections_open,
        connections: view.connections,
        waiting: view.gate.waiting,
        in_flight: view.gate.in_flight,
        sessions: view.gate.sessions,
        gone_while_waiting: view.gone_while_waiting,
        ghosts: view.ghosts,
        buffered_bytes: view.buffered_bytes,
    }
}

fn kind_state(name: &str, kind: &KindView) -> KindState {
    KindState {
        name: name.to_string(),
        open: kind.open,
        interval_seconds: finite(kind.interval_seconds),
        waiting: kind.waiting,
        in_line: kind.line.as_ref().map(|line| line.present.max(kind.waiting as u64)),
        active: kind.active,
        admitted: kind.admitted,
        refused: kind.refused,
        rate: finite(kind.rate).unwrap_or(0.0),
        predicted_wait_seconds: finite(kind.predicted_wait_seconds),
        patience_seconds: finite(kind.patience_seconds),
        patience_source: kind.patience_source.to_string(),
    }
}

fn route_state(route: &RouteReport) -> RouteState {
    let Counts { offered, completed, failed, abandoned, refused } = route.gate.counts;
    let statuses = route.statuses.iter().enumerate().filter(|(_, count)| **count > 0);
    RouteState {
        name: route.name.clone(),
        mode: route.id.map(|_| mode_name(route.gate.mode).to_string()),
        limit: route.gate.limit,
        in_flight: route.gate.in_flight,
        ghosts: route.gate.ghosts,
        waiting: route.gate.waiting,
        rate: finite(route.gate.rate).unwrap_or(0.0),
        service_seconds: finite(route.gate.service_seconds).unwrap_or(0.0),
        offered,
        completed,
        failed,
        abandoned,
        refused,
        statuses: statuses.map(|(index, count)| (format!("{}xx", index + 1), *count)).collect(),
        waited: percentiles(&route.waited),
        upstream: percentiles(&route.upstream),
        added: percentiles(&route.added),
    }
}

pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
        Mode::Off => "off",
        Mode::Fixed(_) => "fixed",
    }
}

fn node_state(node: &UpstreamNodeView) -> NodeState {
    NodeState {
        address: node.address.clone(),
        status: node.status.to_string(),
        reason: node.reason.to_string(),
        explanation: node.explanation.to_string(),
        for_seconds: node.for_the_last.as_secs_f64(),
        ejected_for_seconds: node.ejected_for.map(|left| left.as_secs_f64()),
        in_flight: node.in_flight,
        picked: node.picked,
        failures_in_a_row: node.failures_in_a_row,
        connections: node.connections,
    }
}

fn decision_state(view: &View, record: &Record) -> DecisionState {
    let (subject, name) = match record.subject {
        Subject::Route(route) => ("route", route_name(view, route)),
        Subject::Kind(kind) => {
            ("kind", view.kinds.get(kind.index()).map_or_else(String::new, |(name, _)| name.clone()))
        }
    };
    DecisionState {
        at_seconds: record.at.as_secs_f64(),
        subject: subject.to_string(),
        name,
        quantity: record.quantity.name().to_string(),
        old: finite(record.old),
        new: finite(record.new),
        reason: record.reason.code().to_string(),
        explanation: record.reason.explain().to_string(),
        signals: record.signals.iter().map(|(name, value)| (name.to_string(), finite(value))).collect(),
    }
}

fn route_name(view: &View, id: RouteId) -> String {
    view.routes.iter().find(|route| route.id == Some(id)).map_or_else(String::new, |route| route.name.clone())
}

fn percentiles(times: &Times) -> Percentiles {
    Percentiles { count: times.count(), p50: quantile(times, 0.5), p99: quantile(times, 0.99) }
}

/// Returns the time below which `share` of all were: within its bucket they are taken to lie evenly, and beyond the last
/// bound at the bound.
fn quantile(times: &Times, share: f64) -> Option<f64> {
    let count = times.count();
    if count == 0 {
        return None;
    }
    let rank = share * count as f64;
    let mut below = 0.0;
    for (index, in_bucket) in times.counts.iter().enumerate() {
        let in_bucket = *in_bucket as f64;
        if below + in_bucket >= rank && in_bucket > 0.0 {
            let from = if index == 0 { 0.0 } else { BUCKETS[index - 1] };
            let to = BUCKETS.get(index).copied().unwrap_or(from);
            return Some(from + (to - from) * ((rank - below) / in_bucket).clamp(0.0, 1.0));
        }
        below += in_bucket;
    }
    BUCKETS.last().copied()
}

/// Returns the number if it is one: JSON has no others.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(entries: &[(usize, u64)]) -> Times {
        let mut times = Times::default();
        for (bucket, count) in entries {
            times.counts[*bucket] = *count;
        }
        times
    }

    #[test]
    fn quantiles_lie_in_the_bucket_that_holds_them() {
        // 90 between 5 and 10 ms, 10 between 0.1 and 0.25 s.
        let times = times(&[(7, 90), (11, 10)]);
        let p50 = quantile(&times, 0.5).unwrap();
        let p99 = quantile(&times, 0.99).unwrap();
        assert!((0.005..=0.01).contains(&p50), "{p50}");
        assert!((0.1..=0.25).contains(&p99), "{p99}");
    }

    #[test]
    fn nothing_counted_has_no_quantile_and_what_is_too_long_is_at_least_the_last_bound() {
        assert_eq!(quantile(&Times::default(), 0.5), None);
        assert_eq!(quantile(&times(&[(BUCKETS.len(), 3)]), 0.5), Some(60.0));
    }

    #[test]
    fn numbers_that_json_cannot_hold_are_left_out() {
        let kind = KindView {
            predicted_wait_seconds: f64::INFINITY,
            patience_seconds: f64::NAN,
            ..KindView::default()
        };
        let state = kind_state("visit", &kind);
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<KindState>(&text).unwrap(), state);
        assert_eq!((state.predicted_wait_seconds, state.patience_seconds), (None, None));
    }
}

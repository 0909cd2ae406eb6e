//! Everything at one moment, as `/api/state` shows it and `suimon status` reads it.
//!
//! These structs are the wire's own: names here stay while those inside may change.

use crate::Source;
use crate::config::ConfigState;
use crate::load_reports::LoadReportsState;
use crate::nodes::NodeState;
use crate::overrides::OverrideState;
use crate::pool::PoolState;
use crate::scaling::ScalingState;
use crate::services::{self, ServiceState};
use crate::sharing::SharingState;
use crate::sums::{held, queued};
use crate::verdict::{self, SituationClock, Verdict};
use crate::waiting_room::LineState;
use crate::windows::{KindTotals, LONG_S, RouteTimes, SHORT_S, Windows};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};
use suimon_gate::{Counts, GateState, KindView};
use suimon_model::{PoolId, Record, RouteId, Subject};
use suimon_proxy::UpstreamNodeView;
use suimon_proxy::{BUCKETS, LineCounts, RouteReport, Times, View, WAIT_BUCKETS};

pub(crate) use crate::windows::lines;

/// Everything at one moment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct State {
    /// Version of the gateway.
    pub version: String,
    /// The site that all this is about; absent where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The wall clock, and when the gateway started, seconds since 1970.
    pub now: f64,
    /// See `now`.
    pub started_at: f64,
    /// The verdict, in one sentence.
    pub verdict: Verdict,
    /// Time since the start, seconds.
    pub uptime_seconds: f64,
    /// Whether new visitors should be sent here.
    pub ready: bool,
    /// Why not, if not.
    pub not_ready_because: Option<String>,
    /// What it began with; absent: nothing was known.
    #[serde(default)]
    pub recalled: Option<RecalledState>,
    /// How it shares with other gateways; absent: it is alone.
    #[serde(default)]
    pub sharing: Option<SharingState>,
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
    /// Every service, in the order in which floors are kept; empty where none is declared.
    #[serde(default)]
    pub services: Vec<ServiceState>,
    /// All ungated requests together.
    pub ungated: RouteState,
    /// Length of the window that the times of routes are measured in, seconds.
    pub route_times_window_seconds: f64,
    /// Every node of the application.
    pub nodes: Vec<NodeState>,
    /// The number of nodes; `null` where none come and go.
    #[serde(default)]
    pub scaling: Option<ScalingState>,
    /// How many load reports of nodes came; absent where none are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_reports: Option<LoadReportsState>,
    /// Every pool of workers; empty where none is declared.
    #[serde(default)]
    pub pools: Vec<PoolState>,
    /// Where the settings in force are from.
    #[serde(default)]
    pub config: Option<ConfigState>,
    /// What an operator overrides for a while, by number.
    #[serde(default)]
    pub overrides: Vec<OverrideState>,
    /// Whether commands of the client that asks would be taken, sent as it has asked.
    #[serde(default)]
    pub takes_commands: bool,
    /// The last decisions, oldest first; with `?since=ID`, those after that one.
    pub decisions: Vec<DecisionState>,
}

/// What a gateway began with.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecalledState {
    /// How old it was then, seconds.
    pub age_seconds: f64,
    /// Routes with a limit that was known.
    pub routes: usize,
    /// The version of the program that learned it.
    pub version: String,
}

/// Sums over everything.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Totals {
    /// Requests whose head was read.
    pub requests: u64,
    /// Requests answered as bad by the gateway itself.
    pub bad_requests: u64,
    /// Requests answered 502 to 504.
    pub upstream_errors: u64,
    /// Requests that were tried again, as a connection to a node could not be opened or gave no answer.
    #[serde(default)]
    pub retried: u64,
    /// Requests that were not, as too many were (`upstream.retry_share`).
    #[serde(default)]
    pub retries_withheld: u64,
    /// Client connections open.
    pub connections_open: usize,
    /// Client connections ever accepted.
    pub connections: u64,
    /// Of these, those that were closed to make room for others.
    #[serde(default)]
    pub connections_displaced: u64,
    /// Visitors in line, the held ones included.
    pub in_line: u64,
    /// Newcomers held at the gate.
    pub held: usize,
    /// Requests queued for a slot.
    pub queued: usize,
    /// Requests in the application.
    pub in_flight: usize,
    /// Beside these, suspended requests: they wait for their clients in the middle of a body,
    /// without a slot.
    #[serde(default)]
    pub suspended: usize,
    /// Sessions under way.
    pub sessions_active: usize,
    /// Sessions admitted and not known to have ended, the silent ones included.
    pub sessions_remembered: usize,
    /// Newcomers and requests sent away without a position in line.
    pub refused: u64,
    /// Answers that showed a position in line.
    pub waiting_pages: u64,
    /// Polls: requests of waiting pages for the status of their place.
    pub polls: u64,
    /// Client disconnects while the request was held or queued.
    pub disconnects_waiting: u64,
    /// Client disconnects while the request was in the application.
    pub disconnects_upstream: u64,
    /// Bytes held for slow clients.
    pub buffered_bytes: usize,
}

impl Totals {
    /// Returns how many requests are kept open before they go to the application: held or queued.
    pub fn waiting(&self) -> usize {
        self.held + self.queued
    }
}

/// How many were refused for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindState {
    /// Its name.
    pub name: String,
    /// Whether newcomers pass without being held back.
    pub open: bool,
    /// What happens to the next newcomer: `open`, `paced` (one after another), `full` (the maximum
    /// number of sessions), `shut`, or `observe` or `off`, where nobody is held back.
    pub gate: String,
    /// The session law: `flow`, `seed`, `static` or `open`.
    pub law: String,
    /// The maximum number of sessions, where the law goes by their number.
    pub sessions_max: Option<u32>,
    /// Seconds between two session starts; 0 while open; absent: nobody is admitted.
    pub interval_seconds: Option<f64>,
    /// Newcomers held at the gate: their requests are kept open.
    pub held: usize,
    /// Visitors who wait in line, those held included; absent where there is none.
    pub in_line: Option<u64>,
    /// Sessions under way.
    pub active: usize,
    /// Sessions admitted and not known to have ended, the silent ones included.
    pub remembered: usize,
    /// Newcomers since the start, whatever their outcome.
    pub newcomers: u64,
    /// Sessions admitted since the start.
    pub admitted: u64,
    /// Sessions ended since the start as the application said.
    pub finished: u64,
    /// Sessions without a request after an answer.
    pub silent: u64,
    /// Sessions abandoned: their clients disconnected before a response.
    pub abandoned: u64,
    /// Sessions without a request after an error.
    pub failed: u64,
    /// Reopened sessions: they went on after they were taken for ended, or are from before a
    /// restart.
    pub reopened: u64,
    /// Newcomers sent away without a position in line since the start.
    pub refused: u64,
    /// Answers that showed a position in line since the start.
    pub waiting_pages: u64,
    /// Polls of waiting pages since the start.
    pub polls: u64,
    /// The same per second, measured over the last ten seconds ...
    pub last_10s: Rates,
    /// ... and over the last minute.
    pub last_minute: Rates,
    /// Admission rate that the law plans, sessions per second; absent if unknown, or if everyone is
    /// admitted.
    pub admission_rate_per_second: Option<f64>,
    /// How long people wait to get in.
    pub wait: WaitState,
    /// The line; absent where there is none.
    pub line: Option<LineState>,
    /// How long visitors are assumed to wait.
    pub patience_seconds: Option<f64>,
    /// `declared`, `learned`, `recalled` (from another run) or `assumed`.
    pub patience_source: String,
}

/// What happens per second, as measured.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// Seconds it is measured over: fewer than asked for shortly after the start.
    pub seconds: f64,
    /// Newcomers.
    pub newcomers: f64,
    /// Sessions admitted.
    pub admitted: f64,
    /// Sessions that ended as the application said, ...
    pub finished: f64,
    /// ... with silence after an answer, ...
    pub silent: f64,
    /// ... abandoned before a response, ...
    pub abandoned: f64,
    /// ... and after an error.
    pub failed: f64,
    /// Newcomers sent away without a position in line.
    pub refused: f64,
    /// Answers that showed a position in line.
    pub waiting_pages: f64,
    /// Polls of waiting pages.
    pub polls: f64,
}

/// How long people wait to get in, seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitState {
    /// The least that a newcomer who arrives now waits, in line or held; absent: unknown.
    pub low_seconds: Option<f64>,
    /// The same at the most.
    pub high_seconds: Option<f64>,
    /// How long a newcomer who is held at the gate waits; absent: without end.
    pub held_seconds: Option<f64>,
    /// What visitors admitted recently had waited in line: how many they were, ...
    pub waited_count: u64,
    /// ... in a window of this many seconds, ...
    pub waited_window_seconds: f64,
    /// ... half of them no longer than this, ...
    pub waited_p50_seconds: Option<f64>,
    /// ... and 95 of 100 no longer than this.
    pub waited_p95_seconds: Option<f64>,
}

/// One route.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RouteState {
    /// `GET /items/{id}`, `other` or `ungated`.
    pub name: String,
    /// `enforce`, `observe`, `off` or `fixed`; absent where nothing is gated.
    pub mode: Option<String>,
    /// Requests that may be in the application at once.
    pub limit: Option<u32>,
    /// Requests in the application.
    pub in_flight: usize,
    /// Of these, orphaned requests: their clients have disconnected.
    pub orphaned: usize,
    /// Beside these, suspended requests: they wait for their clients in the middle of a body,
    /// without a slot.
    #[serde(default)]
    pub suspended: usize,
    /// Requests queued for a slot.
    pub queued: usize,
    /// Recent completions per second.
    pub rate: f64,
    /// Recent mean time in the application, seconds.
    pub service_seconds: f64,
    /// Requests that arrived, since the start.
    pub offered: u64,
    /// Of these, completed.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// Abandoned by their clients.
    pub abandoned: u64,
    /// Refused: sent away without a position in line.
    pub refused: u64,
    /// Shown a position in line.
    pub waiting_pages: u64,
    /// Answers by class of status, `1xx` to `5xx`, those of the waiting room left out; classes
    /// never seen are left out.
    pub statuses: BTreeMap<String, u64>,
    /// Time held or queued, of those that were.
    pub waited: Percentiles,
    /// Time in the application.
    pub upstream: Percentiles,
    /// Time the gateway added.
    pub added: Percentiles,
}

/// A distribution of the last half minute to minute, in seconds; absent where nothing was counted.
/// Those since the start are in the metrics.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Percentiles {
    /// How many.
    pub count: u64,
    /// Half were shorter. Read off buckets, so a little coarse.
    pub p50: Option<f64>,
    /// 99 of 100 were shorter.
    pub p99: Option<f64>,
}

/// One decision.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecisionState {
    /// Its number: they count up from 1.
    pub id: u64,
    /// When it was made, seconds since 1970.
    pub at: f64,
    /// The same in seconds since the start.
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
    /// The route that caused it, where a signal names one by its number.
    pub for_route: Option<String>,
}

impl State {
    /// Returns everything that `source` shows now.
    /// Decisions up to `since` are left out.
    pub(crate) fn of(
        source: &dyn Source,
        version: &str,
        windows: &Windows,
        verdicts: &mut SituationClock,
        since: u64,
    ) -> State {
        let view = source.view();
        let nodes = source.nodes();
        let now = now_unix();
        let started_at = now - view.uptime.as_secs_f64();
        let kinds = kinds(source, &view, windows);
        let node_states: Vec<NodeState> = nodes.iter().map(NodeState::of).collect();
        let totals = totals(&view, &kinds);
        let verdict = verdict::of(source.is_draining(), &totals, &kinds, &node_states);
        let not_ready = not_ready_because(source.is_draining(), &nodes);
        let probing = view.gate.probing.map(|route| route_name(&view, route));
        State {
            version: version.to_string(),
            // Only who has read the request knows.
            site: None,
            now,
            started_at,
            verdict: verdicts.note(verdict, now),
            uptime_seconds: view.uptime.as_secs_f64(),
            ready: not_ready.is_none(),
            not_ready_because: not_ready,
            totals,
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
                version: recalled.version.clone(),
            }),
            sharing: view.sharing.as_ref().map(SharingState::of),
            probing,
            kinds,
            routes: routes(&view, windows),
            services: (view.gate.services.iter())
                .map(|service| {
                    let routes = service.routes.iter().map(|route| route_name(&view, *route));
                    services::state_of(service, routes.collect())
                })
                .collect(),
            ungated: route_state(&view.ungated, &windows.route_times(&view.ungated, &view, None)),
            route_times_window_seconds: windows.route_seconds(&view),
            nodes: node_states,
            scaling: source.scaling().as_ref().map(ScalingState::of),
            load_reports: LoadReportsState::of(&source.load_reports()),
            pools: (source.pools(u64::MAX).iter())
                .map(|report| PoolState::of(report, &view, started_at))
                .collect(),
            config: source.config_state(),
            overrides: source.overrides().iter().map(OverrideState::of).collect(),
            // Only who has read the request knows.
            takes_commands: false,
            decisions: decisions(&view, started_at, since),
        }
    }
}

/// Returns the verdict of this moment, as far as it needs no earlier one.
pub fn verdict_now(source: &dyn Source) -> Verdict {
    Glance::of(source, &source.view(), &Windows::default()).verdict
}

/// How a site stands, in short.
pub(crate) struct Glance {
    pub(crate) verdict: Verdict,
    pub(crate) totals: Totals,
    /// Why new visitors should not be sent here, if they should not.
    pub(crate) not_ready: Option<String>,
}

impl Glance {
    /// Returns how `source`, which shows `view`, stands.
    pub(crate) fn of(source: &dyn Source, view: &View, windows: &Windows) -> Self {
        let kinds = kinds(source, view, windows);
        let (nodes, is_draining) = (source.nodes(), source.is_draining());
        let totals = totals(view, &kinds);
        let states: Vec<NodeState> = nodes.iter().map(NodeState::of).collect();
        let verdict = verdict::of(is_draining, &totals, &kinds, &states);
        Glance { verdict, totals, not_ready: not_ready_because(is_draining, &nodes) }
    }
}

/// Returns seconds since 1970.
pub(crate) fn now_unix() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Returns how long a newcomer who arrives now would wait, in line or held, seconds; `None`:
/// unknown, or nobody is admitted.
pub(crate) fn wait_of_newcomer(kind: &KindView) -> Option<(f64, f64)> {
    let held = kind.predicted_wait_seconds;
    let in_line = if kind.line.is_some() { kind.newcomer_wait? } else { (0.0, 0.0) };
    let (low, high) = (in_line.0.max(held), in_line.1.max(held));
    (low.is_finite() && high.is_finite() && kind.gate_state != GateState::Shut).then_some((low, high))
}

fn kinds(source: &dyn Source, view: &View, windows: &Windows) -> Vec<KindState> {
    let mut reports: BTreeMap<String, LineState> =
        source.lines().into_iter().map(|line| (line.kind.clone(), LineState::of(line))).collect();
    let kinds = view.kinds.iter().zip(lines(view)).enumerate();
    kinds
        .map(|(place, ((name, kind), counts))| {
            let rates = |seconds| Rates::of(windows.kind(view, place, seconds));
            let (waited, window_seconds) = windows.line_waits(view, place);
            let mut state = kind_state(name, kind, counts);
            (state.last_10s, state.last_minute) = (rates(SHORT_S), rates(LONG_S));
            state.wait.waited_count = waited.count();
            state.wait.waited_window_seconds = window_seconds;
            state.wait.waited_p50_seconds = waited.quantile(&WAIT_BUCKETS, 0.5);
            state.wait.waited_p95_seconds = waited.quantile(&WAIT_BUCKETS, 0.95);
            state.line = kind.line.as_ref().and_then(|_| reports.remove(name));
            state
        })
        .collect()
}

impl Rates {
    fn of((totals, seconds): (KindTotals, f64)) -> Rates {
        let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        Rates {
            seconds,
            newcomers: rate(totals.newcomers),
            admitted: rate(totals.admitted),
            finished: rate(totals.finished),
            silent: rate(totals.silent),
            abandoned: rate(totals.abandoned),
            failed: rate(totals.failed),
            refused: rate(totals.refused),
            waiting_pages: rate(totals.waiting_pages),
            polls: rate(totals.polls),
        }
    }
}

fn routes(view: &View, windows: &Windows) -> Vec<RouteState> {
    let times = |(place, route)| route_state(route, &windows.route_times(route, view, Some(place)));
    view.routes.iter().enumerate().map(times).collect()
}

pub(crate) fn decisions(view: &View, started_at: f64, since: u64) -> Vec<DecisionState> {
    let first = view.gate.recorded - view.gate.records.len() as u64 + 1;
    let numbered = (first..).zip(&view.gate.records).filter(|(id, _)| *id > since);
    numbered.map(|(id, record)| decision_state(view, id, started_at, record)).collect()
}

/// Returns why new visitors should not be sent here, if they should not.
pub(crate) fn not_ready_because(draining: bool, nodes: &[UpstreamNodeView]) -> Option<String> {
    if draining {
        return Some("the gateway is shutting down".to_string());
    }
    // A pool of some routes alone is no site.
    let of_rest = || nodes.iter().filter(|node| node.pool == PoolId(0));
    if of_rest().any(|node| node.status == "up") {
        return None;
    }
    let each: Vec<String> =
        of_rest().map(|node| format!("{} is {}: {}", node.address, node.status, node.explanation)).collect();
    Some(format!("no node of the application is up ({})", each.join("; ")))
}

fn totals(view: &View, kinds: &[KindState]) -> Totals {
    Totals {
        requests: view.requests,
        bad_requests: view.faults,
        upstream_errors: view.upstream_errors,
        retried: view.retries.unsent + view.retries.closed + view.retries.lost,
        retries_withheld: view.retries.withheld,
        connections_open: view.connections_open,
        connections: view.connections,
        connections_displaced: view.connections_displaced,
        in_line: kinds.iter().map(|kind| kind.in_line.unwrap_or(kind.held as u64)).sum(),
        held: held(view),
        queued: queued(view),
        in_flight: view.gate.in_flight,
        suspended: view.gate.suspended,
        sessions_active: kinds.iter().map(|kind| kind.active).sum(),
        sessions_remembered: view.gate.sessions,
        refused: view.refusals.iter().map(|(_, count)| count).sum(),
        waiting_pages: kinds.iter().map(|kind| kind.waiting_pages).sum(),
        polls: kinds.iter().map(|kind| kind.polls).sum(),
        disconnects_waiting: view.disconnects_waiting,
        disconnects_upstream: view.disconnects_upstream,
        buffered_bytes: view.buffered_bytes,
    }
}

/// Returns how many people of this kind wait, in line or held.
pub(crate) fn in_line(kind: &KindView) -> u64 {
    let held = kind.waiting as u64;
    kind.line.as_ref().map_or(held, |line| line.waiting.max(held))
}

/// Returns everything except what the windows provide.
fn kind_state(name: &str, kind: &KindView, line: &LineCounts) -> KindState {
    let wait = wait_of_newcomer(kind);
    KindState {
        name: name.to_string(),
        open: kind.open,
        gate: kind.gate_state.name().to_string(),
        law: kind.law.to_string(),
        sessions_max: kind.sessions_max,
        interval_seconds: finite(kind.interval_seconds),
        held: kind.waiting,
        in_line: kind.line.as_ref().map(|_| in_line(kind)),
        active: kind.active,
        remembered: kind.remembered,
        newcomers: kind.newcomers,
        admitted: kind.admitted,
        finished: kind.ends.finished,
        silent: kind.ends.silent,
        abandoned: kind.ends.abandoned,
        failed: kind.ends.failed,
        reopened: kind.ends.reopened,
        refused: kind.refused + line.refused,
        waiting_pages: line.pages,
        polls: line.polls,
        last_10s: Rates::default(),
        last_minute: Rates::default(),
        admission_rate_per_second: finite(kind.rate).filter(|rate| *rate > 0.0),
        wait: WaitState {
            low_seconds: wait.map(|(low, _)| low),
            high_seconds: wait.map(|(_, high)| high),
            held_seconds: finite(kind.predicted_wait_seconds),
            ..WaitState::default()
        },
        line: None,
        patience_seconds: finite(kind.patience_seconds),
        patience_source: kind.patience_source.to_string(),
    }
}

fn route_state(route: &RouteReport, times: &RouteTimes) -> RouteState {
    let Counts { offered, completed, failed, abandoned, refused } = route.gate.counts;
    let statuses = route.statuses.iter().enumerate().filter(|(_, count)| **count > 0);
    RouteState {
        name: route.name.clone(),
        mode: route.id.map(|_| route.gate.mode.word().to_string()),
        limit: route.gate.limit,
        in_flight: route.gate.in_flight,
        orphaned: route.gate.orphaned,
        suspended: route.gate.suspended,
        queued: route.gate.waiting,
        rate: finite(route.gate.rate).unwrap_or(0.0),
        service_seconds: finite(route.gate.service_seconds).unwrap_or(0.0),
        offered,
        completed,
        failed,
        abandoned,
        refused: refused.saturating_sub(route.gate.placed),
        waiting_pages: route.gate.placed,
        statuses: statuses.map(|(index, count)| (format!("{}xx", index + 1), *count)).collect(),
        waited: percentiles(&times.waited),
        upstream: percentiles(&times.upstream),
        added: percentiles(&times.added),
    }
}

fn decision_state(view: &View, id: u64, started_at: f64, record: &Record) -> DecisionState {
    let (subject, name) = match record.subject {
        Subject::Route(route) => ("route", route_name(view, route)),
        Subject::Service(id) => (
            "service",
            view.gate.services.get(id.index()).map_or_else(String::new, |service| service.name.clone()),
        ),
        Subject::Kind(kind) => {
            ("kind", view.kinds.get(kind.index()).map_or_else(String::new, |(name, _)| name.clone()))
        }
    };
    let for_route = record.signals.iter().find(|(name, _)| *name == "route");
    DecisionState {
        id,
        at: started_at + record.at.as_secs_f64(),
        for_route: for_route.map(|(_, route)| route_name(view, RouteId(route as u32))),
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

/// A number that none has belongs to a share of the first, `other`.
fn route_name(view: &View, id: RouteId) -> String {
    let named = view.routes.iter().find(|route| route.id == Some(id)).or(view.routes.first());
    named.map_or_else(String::new, |route| route.name.clone())
}

fn percentiles(times: &Times) -> Percentiles {
    let quantile = |share| times.quantile(&BUCKETS, share);
    Percentiles { count: times.count(), p50: quantile(0.5), p99: quantile(0.99) }
}

/// Returns the number if it is finite: JSON has no others.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::time::Duration;
    use suimon_gate::Snapshot;
    use suimon_model::{Instant, NodeId, PoolId};
    use suimon_proxy::{LearnedView, LineCommand, LineError, LineReport};
    use suimon_proxy::{NodesReport, PoolCommand, PoolError, PoolReport};

    /// A gateway at one moment: 24 sessions are under way.
    pub(crate) struct Still {
        pub(crate) view: View,
        pub(crate) node_status: &'static str,
    }

    impl Default for Still {
        fn default() -> Self {
            Still { view: view(), node_status: "up" }
        }
    }

    impl Still {
        /// Puts `people` in line, who are `told` a wait of this many seconds.
        pub(crate) fn waits(&mut self, people: u64, told: (f64, f64)) {
            let line = suimon_line::Line::new(suimon_line::Params::default(), Instant::ORIGIN);
            let kind = &mut self.view.kinds[0].1;
            kind.line = Some(suimon_line::View { waiting: people, ..line.view() });
            (kind.gate_state, kind.open, kind.newcomer_wait) = (GateState::Paced, false, Some(told));
        }
    }

    impl Source for Still {
        fn view(&self) -> View {
            self.view.clone()
        }

        fn learned(&self) -> LearnedView {
            unreachable!("nobody asks here")
        }

        fn nodes(&self) -> Vec<UpstreamNodeView> {
            vec![UpstreamNodeView {
                node: NodeId(0),
                pool: PoolId(0),
                address: "http://127.0.0.1:8080".into(),
                status: self.node_status,
                reason: "initial",
                explanation: "no state change since the start",
                for_the_last: Duration::from_secs(3),
                ejected_for: None,
                slow_start_for: None,
                in_flight: 3,
                share: 1.0,
                sessions: None,
                picked: 100,
                failures_in_a_row: 0,
                connections: 5,
                report: None,
                php: None,
            }]
        }

        fn lines(&self) -> Vec<LineReport> {
            let (name, kind) = &self.view.kinds[0];
            let report = |view| LineReport {
                kind: name.clone(),
                view,
                opens_at: None,
                seed_hash: None,
                message: String::new(),
            };
            kind.line.map(report).into_iter().collect()
        }

        fn command_line(&self, _: Option<&str>, _: &LineCommand) -> Result<(), LineError> {
            Ok(())
        }

        fn invite(&self, _: Option<&str>, _: usize, _: Duration) -> Result<Vec<String>, LineError> {
            Ok(vec![])
        }

        fn pools(&self, _: u64) -> Vec<PoolReport> {
            vec![]
        }

        fn command_pool(&self, _: Option<&str>, _: PoolCommand) -> Result<(), PoolError> {
            Ok(())
        }

        fn scaling(&self) -> Option<NodesReport> {
            None
        }

        fn is_draining(&self) -> bool {
            false
        }
    }

    /// One kind of session, and the route `other`.
    pub(crate) fn view() -> View {
        let kind = KindView {
            active: 24,
            open: true,
            law: "flow",
            patience_source: "assumed",
            ..KindView::default()
        };
        View {
            uptime: Duration::from_secs(60),
            connections_open: 8,
            connections: 40,
            requests: 120,
            routes: vec![RouteReport {
                name: "other".into(),
                id: Some(RouteId(0)),
                ..RouteReport::default()
            }],
            kinds: vec![("visit".into(), kind)],
            lines: vec![LineCounts::NONE],
            gate: Snapshot { in_flight: 3, sessions: 43, ..Snapshot::default() },
            ..View::default()
        }
    }

    fn state(view: View) -> State {
        let still = Still { view, ..Still::default() };
        State::of(&still, "9.9.9", &Windows::default(), &mut SituationClock::default(), 0)
    }

    #[test]
    fn the_wait_is_that_of_those_in_line_and_apart_from_that_of_the_held() {
        let mut still = Still::default();
        still.waits(480, (240.0, 300.0));
        (still.view.kinds[0].1.waiting, still.view.kinds[0].1.predicted_wait_seconds) = (5, 4.0);
        still.view.lines[0].waited.counts[12] = 20;
        let kind = &state(still.view).kinds[0];
        assert_eq!((kind.in_line, kind.held), (Some(480), 5));
        let WaitState { low_seconds, high_seconds, held_seconds, waited_p50_seconds, .. } = kind.wait;
        assert_eq!((low_seconds, high_seconds, held_seconds), (Some(240.0), Some(300.0), Some(4.0)));
        assert_eq!(waited_p50_seconds, Some(240.0), "between 180 and 300");
        assert_eq!(kind.line.as_ref().map(|line| line.state.as_str()), Some("moving"));
    }

    #[test]
    fn what_is_measured_stands_beside_what_is_planned() {
        let mut view = view();
        (view.kinds[0].1.rate, view.kinds[0].1.admitted) = (1.61, 60);
        let kind = &state(view).kinds[0];
        assert_eq!((kind.admission_rate_per_second, kind.last_minute.admitted), (Some(1.61), 1.0));
    }

    #[test]
    fn whoever_was_shown_a_place_is_no_refusal_of_a_route() {
        let mut view = view();
        (view.routes[0].gate.counts.refused, view.routes[0].gate.placed) = (730, 728);
        (view.lines[0].pages, view.lines[0].refused, view.kinds[0].1.refused) = (728, 1, 1);
        let state = state(view);
        assert_eq!((state.routes[0].refused, state.routes[0].waiting_pages), (2, 728));
        assert_eq!((state.kinds[0].refused, state.totals.waiting_pages), (2, 728));
    }

    #[test]
    fn decisions_have_numbers_by_which_the_later_ones_are_asked_for() {
        let record = |at| Record {
            at: Instant::from_nanos(at),
            subject: Subject::Kind(suimon_model::KindId(0)),
            quantity: suimon_model::Quantity::Interval,
            old: 0.0,
            new: 0.6,
            reason: suimon_model::Reason::Capacity,
            signals: suimon_model::Signals::none().with("route", 0.0),
        };
        let mut still = Still::default();
        still.view.gate.records = (7..10).map(record).collect();
        still.view.gate.recorded = 9;
        let ids = |since| {
            let state = State::of(&still, "9", &Windows::default(), &mut SituationClock::default(), since);
            state.decisions.iter().map(|decision| decision.id).collect::<Vec<_>>()
        };
        assert_eq!((ids(0), ids(8), ids(9)), (vec![7, 8, 9], vec![9], vec![]));
        let state = state(still.view);
        assert_eq!(state.decisions[0].for_route.as_deref(), Some("other"));
        assert!((state.decisions[0].at - state.started_at).abs() < 1e-3);
    }

    #[test]
    fn numbers_that_json_cannot_hold_are_left_out() {
        let kind = KindView {
            predicted_wait_seconds: f64::INFINITY,
            patience_seconds: f64::NAN,
            ..KindView::default()
        };
        let state = kind_state("visit", &kind, &LineCounts::NONE);
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<KindState>(&text).unwrap(), state);
        assert_eq!((state.wait.high_seconds, state.patience_seconds), (None, None));
    }
}

//! What was learned, as `/api/learned` shows it and `suimon sim --from` reads it.
//!
//! These structs are the wire's own, as those of `/api/state` are. Routes are named; shares are of
//! one.

use crate::state::finite;
use serde::{Deserialize, Serialize};
use suimon_gate::{
    LearnedKind as GateKind, LearnedRoute as GateRoute, LearnedTransitions as GateTransitions, RouteMode,
    ServiceTimeStats, Think,
};
use suimon_model::RouteId;
use suimon_params::{RoutePattern, SessionKind};
use suimon_proxy::LearnedView;

/// What was learned of the application and its visitors.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Learned {
    /// Version of the gateway.
    pub version: String,
    /// Processor cores the application is assumed to have, all nodes together.
    pub uptime_seconds: f64,
    /// Processor cores the application is thought to have, all nodes together.
    pub cores: u32,
    /// Nodes of the application.
    pub nodes: usize,
    /// Time between an answer and the session's next request, of all kinds together; absent: no
    /// session came back yet.
    pub think: Option<LearnedThink>,
    /// Every kind of session.
    pub kinds: Vec<LearnedKind>,
    /// Every gated route.
    pub routes: Vec<LearnedRoute>,
}

/// The last think times, a few hundred at most.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnedThink {
    /// How many.
    pub count: usize,
    /// Their mean.
    pub mean_seconds: f64,
    /// Standard deviation as a share of the mean.
    pub variation: f64,
    /// One in ten was shorter; and so on.
    pub p10_seconds: f64,
    /// One in four was shorter.
    pub p25_seconds: f64,
    /// Half were shorter.
    pub p50_seconds: f64,
    /// Three in four were shorter.
    pub p75_seconds: f64,
    /// Nine in ten were shorter.
    pub p90_seconds: f64,
}

/// One kind of session.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnedKind {
    /// Its name.
    pub name: String,
    /// Requests that begin one, as set; none: any.
    pub begins: Vec<String>,
    /// Requests that end one, as set.
    pub ends: Vec<String>,
    /// `enforce` if newcomers are held back when necessary; else `observe` or `off`.
    pub mode: String,
    /// Sessions that ended and were learned from, whether they said so or fell silent.
    pub ended: u64,
    /// Newcomers per second in the last minutes, including refused ones and those who came again;
    /// absent in the first seconds.
    pub newcomers_per_second: Option<f64>,
    /// Sessions admitted per second in the last minutes.
    pub admitted_per_second: Option<f64>,
    /// Newcomers refused since the start.
    pub refused: u64,
    /// How long visitors are assumed to wait.
    pub patience_seconds: Option<f64>,
    /// `declared`, `learned`, `recalled` (from another run) or `assumed`.
    pub patience_source: String,
    /// Visits a session makes in all, by route.
    pub visits: Vec<LearnedVisits>,
    /// Where a session can be, and what comes next.
    pub transitions: Vec<LearnedTransitions>,
}

/// Visits of a session to one route.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnedVisits {
    /// The route.
    pub route: String,
    /// Their mean number.
    pub visits: f64,
}

/// What comes next at a place of a session. The shares of all next routes and of sessions that
/// ended add up to one.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnedTransitions {
    /// The route of its last request; absent: it has made none yet.
    pub after: Option<String>,
    /// How often a session stood here.
    pub seen: u64,
    /// What came next.
    pub next: Vec<LearnedNext>,
    /// The share that ended here.
    pub ended_share: f64,
}

/// A route that came next.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnedNext {
    /// The route.
    pub route: String,
    /// How often, as a share.
    pub share: f64,
}

/// One route.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnedRoute {
    /// `GET /items/{id}` or `other`.
    pub name: String,
    /// `enforce`, `observe`, `off` or `fixed`.
    pub mode: String,
    /// Requests that may be in the application at once; absent: no limit is held.
    pub limit: Option<u32>,
    /// Recent time in the application, of all requests that did not fail.
    pub service: Option<LearnedTimes>,
    /// The same of those that had a core of their own when they began and when they ended: what a
    /// request takes by itself.
    pub service_alone: Option<LearnedTimes>,
    /// Share that failed, since the start.
    pub errors: f64,
    /// Completions per second under full load; absent: it never had that.
    pub capacity_per_second: Option<f64>,
}

/// Times in the application.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnedTimes {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_seconds: f64,
    /// Standard deviation as a share of the mean.
    pub variation: f64,
}

impl Learned {
    /// Returns what `view` shows of an application with this number of `nodes`.
    pub fn of(view: &LearnedView, nodes: usize, version: &str) -> Learned {
        let kinds = view.kinds.iter().zip(&view.gate.kinds);
        let routes =
            view.routes.iter().filter_map(|(name, id)| Some((name, view.gate.routes.get(id.index())?)));
        Learned {
            version: version.to_string(),
            uptime_seconds: view.uptime.as_secs_f64(),
            cores: view.gate.cores,
            nodes,
            think: view.gate.think.as_ref().map(think),
            kinds: kinds.map(|(set, kind)| kind_of(view, set, kind)).collect(),
            routes: routes.map(|(name, route)| route_of(name, route)).collect(),
        }
    }
}

fn think(think: &Think) -> LearnedThink {
    let [p10_seconds, p25_seconds, p50_seconds, p75_seconds, p90_seconds] = think.quantiles;
    LearnedThink {
        count: think.count,
        mean_seconds: think.mean,
        variation: think.variation,
        p10_seconds,
        p25_seconds,
        p50_seconds,
        p75_seconds,
        p90_seconds,
    }
}

fn kind_of(view: &LearnedView, set: &SessionKind, kind: &GateKind) -> LearnedKind {
    let names = |patterns: &[RoutePattern]| patterns.iter().map(RoutePattern::name).collect();
    let visits = (0u32..).map(RouteId).zip(&kind.visits).filter(|(_, visits)| **visits > 0.0);
    LearnedKind {
        name: set.name.clone(),
        begins: names(&set.begins),
        ends: names(&set.ends),
        mode: set.gate.mode.word().to_string(),
        ended: kind.ended,
        newcomers_per_second: kind.newcomers_per_second,
        admitted_per_second: kind.admitted_per_second,
        refused: kind.refused,
        patience_seconds: finite(kind.patience),
        patience_source: kind.patience_source.to_string(),
        visits: visits
            .map(|(route, visits)| LearnedVisits { route: name_of(view, route), visits: *visits })
            .collect(),
        transitions: kind.transitions.iter().map(|it| transitions_of(view, it)).collect(),
    }
}

fn transitions_of(view: &LearnedView, from: &GateTransitions) -> LearnedTransitions {
    LearnedTransitions {
        after: from.after.map(|route| name_of(view, route)),
        seen: from.seen,
        next: from
            .next
            .iter()
            .map(|(route, share)| LearnedNext { route: name_of(view, *route), share: *share })
            .collect(),
        ended_share: from.ended_share,
    }
}

fn route_of(name: &str, route: &GateRoute) -> LearnedRoute {
    let times = |took: ServiceTimeStats| LearnedTimes {
        count: took.count,
        mean_seconds: took.mean,
        variation: took.variation,
    };
    LearnedRoute {
        name: name.to_string(),
        mode: route.mode.word().to_string(),
        limit: route.limit.filter(|_| route.mode != RouteMode::Off),
        service: route.took.map(times),
        service_alone: route.took_alone.map(times),
        errors: route.errors,
        capacity_per_second: route.saturated.and_then(finite),
    }
}

fn name_of(view: &LearnedView, id: RouteId) -> String {
    let named = view.routes.iter().find(|(_, other)| *other == id);
    named.map_or_else(String::new, |(name, _)| name.clone())
}

//! What is remembered as text: JSON, a line for each route and each place of a session, to be read
//! by people.
//!
//! Read as strangers' bytes: every number is finite and in its range, every route named is in the
//! list, every list has a bound.

use super::{ROUTES_MAX, Remembered, RememberedKind, RememberedRoute};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use suimon_gate::{
    KnownDistribution, KnownKind, KnownMean, KnownRoute, RouteKnowledge, RouteVisits, ServiceTimeStats,
    SessionKnowledge, VisitsAfter, VisitsKnowledge,
};
use suimon_model::RouteId;
use suimon_params::KINDS_MAX;
use suimon_params::pool::POOLS_MAX;

/// The longest name of a route or a kind, and the most nodes.
const NAME_MAX: usize = 1024;
const NODES_MAX: usize = 10_000;
/// The most different think times.
const VALUES_MAX: usize = 1024;

/// Ranges: from above 0 to at most these.
const SECONDS_MAX: f64 = 1e7;
const RATE_MAX: f64 = 1e9;
const VISITS_MAX: f64 = 1e6;
const LIMIT_MAX: u64 = 1_000_000;

impl Remembered {
    /// Returns it as text.
    pub fn text(&self) -> String {
        let mut text = String::from("{\n");
        let head = [
            ("program", json!(self.program)),
            ("nodes", json!(self.nodes)),
            ("nodes_up", json!(self.nodes_up)),
            ("written", json!(self.written)),
            ("workers", json!(self.workers)),
            ("think", values(&self.visits.thinks)),
        ];
        for (name, value) in head {
            let _ = writeln!(text, "\"{name}\": {value},");
        }
        let none = RouteVisits::default();
        let visits = |index: usize| self.visits.routes.get(index).unwrap_or(&none);
        let routes = self.routes.iter().enumerate().map(|(index, it)| route(it, visits(index)));
        list(&mut text, "routes", routes);
        text.push_str(",\n");
        list(&mut text, "kinds", self.kinds.iter().map(kind));
        text.push_str(",\n");
        let places = self.visits.kinds.iter().enumerate();
        list(
            &mut text,
            "places",
            places.flat_map(|(kind, places)| places.iter().map(move |it| place(kind, it))),
        );
        text.push_str("\n}\n");
        text
    }

    /// Returns what a text says.
    pub fn parse(text: &[u8]) -> Result<Remembered, &'static str> {
        let text: Value = serde_json::from_slice(text).map_err(|_| "it is no JSON")?;
        let routes =
            array(&text["routes"], ROUTES_MAX).ok_or("it has no list of routes, or too long a one")?;
        let parsed = routes.iter().map(parse_route).collect::<Option<Vec<_>>>();
        let (routes, route_visits): (Vec<_>, Vec<_>) =
            parsed.ok_or("what it says of a route cannot be")?.into_iter().unzip();
        let kinds = array(&text["kinds"], KINDS_MAX).ok_or("it has no list of kinds, or too long a one")?;
        let kinds: Vec<RememberedKind> = kinds
            .iter()
            .map(parse_kind)
            .collect::<Option<_>>()
            .ok_or("what it says of a kind of session cannot be")?;
        let mut by_kind = vec![vec![]; kinds.len()];
        let places = array(&text["places"], (ROUTES_MAX + 1) * KINDS_MAX);
        for place in places.ok_or("it has no list of places, or too long a one")? {
            let (kind, place) =
                parse_place(place, kinds.len(), routes.len()).ok_or("what it says of a place cannot be")?;
            by_kind[kind].push(place);
        }
        let nodes = array(&text["nodes"], NODES_MAX).ok_or("it names no nodes")?;
        Ok(Remembered {
            started: 0,
            program: name(&text["program"]).ok_or("it does not say who wrote it")?,
            nodes: nodes.iter().map(name).collect::<Option<_>>().ok_or("it names no nodes")?,
            // Files of before nodes came and went do not say it.
            nodes_up: optional(&text["nodes_up"], count_of_nodes).ok_or("its number of nodes cannot be")?,
            written: text["written"].as_u64().ok_or("it does not say when it was written")?,
            workers: workers(&text["workers"]),
            routes,
            kinds,
            visits: VisitsKnowledge {
                routes: route_visits,
                kinds: by_kind,
                thinks: parse_values(&text["think"]).ok_or("its think times cannot be")?,
            },
        })
    }
}

/// Returns the numbers of workers. What cannot be one is left out: all else would be lost with it.
fn workers(it: &Value) -> BTreeMap<String, u32> {
    let count = |it: &Value| it.as_u64().filter(|count| (1..=LIMIT_MAX).contains(count));
    let pools = it.as_object().into_iter().flatten().filter(|(name, _)| name.len() <= NAME_MAX);
    pools.filter_map(|(name, it)| Some((name.clone(), count(it)? as u32))).take(POOLS_MAX).collect()
}

fn count_of_nodes(it: &Value) -> Option<u32> {
    it.as_u64().filter(|count| (1..=NODES_MAX as u64).contains(count)).map(|count| count as u32)
}

/// Appends a list of which each entry has a line.
fn list(text: &mut String, name: &str, entries: impl Iterator<Item = Value>) {
    let entries: Vec<String> = entries.map(|entry| entry.to_string()).collect();
    let _ = write!(text, "\"{name}\": [\n{}\n]", entries.join(",\n"));
}

fn route(it: &RememberedRoute, visits: &RouteVisits) -> Value {
    let KnownRoute { came: _, law, capacity, took, took_alone } = &it.known;
    json!({
        "name": it.name,
        "asked": it.asked,
        "limit": law.map(|law| law.limit),
        "settled": law.map(|law| law.settled),
        "service": law.and_then(|law| law.service).map(mean),
        "service_least": law.and_then(|law| law.service_least),
        "share": law.and_then(|law| law.share),
        "capacity": capacity.map(mean),
        "took": took.map(times),
        "took_alone": took_alone.map(times),
        "visits": mean(visits.visits),
        "delay": visits.delay,
        "rank": visits.rank,
    })
}

fn parse_route(it: &Value) -> Option<(RememberedRoute, RouteVisits)> {
    let law = match &it["limit"] {
        Value::Null => None,
        limit => Some(RouteKnowledge {
            limit: limit.as_u64().filter(|limit| (1..=LIMIT_MAX).contains(limit))? as u32,
            settled: it["settled"].as_bool()?,
            service: optional(&it["service"], |it| parse_mean(it, SECONDS_MAX))?,
            service_least: optional(&it["service_least"], |it| number(it, SECONDS_MAX))?,
            share: optional(&it["share"], |it| number(it, 1.0))?,
        }),
    };
    let known = KnownRoute {
        came: 0,
        law,
        capacity: optional(&it["capacity"], |it| parse_mean(it, RATE_MAX))?,
        took: optional(&it["took"], parse_times)?,
        took_alone: optional(&it["took_alone"], parse_times)?,
    };
    let visits = RouteVisits {
        visits: parse_mean(&it["visits"], VISITS_MAX)?,
        delay: number(&it["delay"], SECONDS_MAX)?,
        rank: number(&it["rank"], VISITS_MAX)?,
    };
    Some((RememberedRoute { name: name(&it["name"])?, asked: it["asked"].as_u64()?, known }, visits))
}

fn kind(it: &RememberedKind) -> Value {
    json!({
        "name": it.name,
        "patience": it.known.patience,
        "rate": it.known.law.map(|law| law.rate),
    })
}

fn parse_kind(it: &Value) -> Option<RememberedKind> {
    let rate = optional(&it["rate"], |it| number(it, RATE_MAX))?;
    let known = KnownKind {
        patience: optional(&it["patience"], |it| number(it, SECONDS_MAX))?,
        law: rate.map(|rate| SessionKnowledge { rate }),
    };
    Some(RememberedKind { name: name(&it["name"])?, known })
}

fn place(kind: usize, it: &VisitsAfter) -> Value {
    let pairs = |values: &[(RouteId, f64)]| -> Vec<Value> {
        values.iter().map(|(route, value)| json!([route.0, value])).collect()
    };
    json!({
        "kind": kind,
        "after": it.after.map(|route| route.0),
        "seen": it.seen,
        "further": pairs(&it.further),
        "next": pairs(&it.next),
        "returned": it.returned.map(mean),
    })
}

/// Returns the place, and the number of its kind.
fn parse_place(it: &Value, kinds: usize, routes: usize) -> Option<(usize, VisitsAfter)> {
    let route = |it: &Value| {
        let index = it.as_u64().filter(|index| *index < routes as u64)?;
        Some(RouteId(index as u32))
    };
    let pairs = |it: &Value, most: f64| -> Option<Vec<(RouteId, f64)>> {
        let pair = |it: &Value| Some((route(&it[0])?, number(&it[1], most)?));
        array(it, ROUTES_MAX)?.iter().map(pair).collect()
    };
    let returned: Vec<KnownMean> =
        array(&it["returned"], 64)?.iter().map(|it| parse_mean(it, 1.0)).collect::<Option<_>>()?;
    let place = VisitsAfter {
        after: optional(&it["after"], route)?,
        seen: it["seen"].as_u64()?,
        further: pairs(&it["further"], VISITS_MAX)?,
        next: pairs(&it["next"], 1.0)?,
        returned: returned.try_into().ok()?,
    };
    let kind = it["kind"].as_u64().filter(|kind| *kind < kinds as u64)?;
    Some((kind as usize, place))
}

fn mean(known: KnownMean) -> Value {
    json!([known.value, known.observations])
}

fn parse_mean(it: &Value, most: f64) -> Option<KnownMean> {
    Some(KnownMean { value: number(&it[0], most)?, observations: it[1].as_u64()? })
}

fn times(took: ServiceTimeStats) -> Value {
    json!([took.mean, took.count, took.variation])
}

fn parse_times(it: &Value) -> Option<ServiceTimeStats> {
    let KnownMean { value, observations } = parse_mean(it, SECONDS_MAX)?;
    Some(ServiceTimeStats { count: observations, mean: value, variation: number(&it[2], SECONDS_MAX)? })
}

fn values(values: &KnownDistribution) -> Value {
    json!({ "count": values.count, "shares": values.shares })
}

fn parse_values(it: &Value) -> Option<KnownDistribution> {
    let pair = |it: &Value| Some((number(&it[0], SECONDS_MAX)?, number(&it[1], 1.0)?));
    let shares = array(&it["shares"], VALUES_MAX)?.iter().map(pair).collect::<Option<_>>()?;
    Some(KnownDistribution { count: it["count"].as_u64()?, shares })
}

/// Returns a number from 0 to `most`; a little above 1 is 1.
fn number(it: &Value, most: f64) -> Option<f64> {
    it.as_f64().filter(|number| number.is_finite() && *number >= 0.0 && *number <= most + 1e-6)
}

fn name(it: &Value) -> Option<String> {
    it.as_str().filter(|name| name.len() <= NAME_MAX).map(str::to_owned)
}

fn array(it: &Value, most: usize) -> Option<&Vec<Value>> {
    it.as_array().filter(|list| list.len() <= most)
}

/// Returns what `parse` makes of a value, or that there is none.
fn optional<T>(it: &Value, parse: impl FnOnce(&Value) -> Option<T>) -> Option<Option<T>> {
    if it.is_null() { Some(None) } else { parse(it).map(Some) }
}

//! Scenario files: a question, who visits, what the application is, and what is expected.
//!
//! A scenario is a journey file (see [`crate::journey`]) with more in it:
//!
//! ```toml
//! question = "Does a cold gate hold against four hundred at once?"
//! base = "_shop.toml"          # whatever is not said here is as in this file
//! seeds = 5
//! warm_up = "120s"
//! measure = "600s"
//! [server]
//! cores = 2
//! [[server.route]]
//! match = "GET /search"
//! cpu = "400ms"
//! [[change]]
//! at = "300s"
//! server = { cores = 1 }
//! [expect]
//! goodput_share = { min = 0.9 }
//! ```
//!
//! The tables `[gate]`, `[[session]]`, `[[route]]` and `[discovery]` are those of `suimon serve`.
//! `scenarios/README.md` explains every key.

mod expect;
mod scaling;
mod server;

use crate::faults::Faults;
use crate::journey::known as journey_known;
use crate::journey::values::Reader;
use crate::known::KnownKeys;
use crate::lines::Lines;
use crate::read::{self, seen};
use crate::route::pattern;
use crate::settings;
use std::path::Path;
use std::sync::Arc;
use suimon_model::{Duration, KindId, RouteId};
use suimon_params::{Params, RoutePattern};
use suimon_sim::{Change, GateSetup, KindSetup, Route, Scenario, What};
use suimon_workload::Journey;
use toml::{Table, Value};

/// The most seeds a file can ask for.
const SEEDS_MAX: u64 = 1000;
/// The most virtual time of a run.
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);
/// The most changes during a run.
const CHANGES_MAX: usize = 1000;
/// The most a journey may weigh.
const WEIGHT_MAX: f64 = 1e6;
/// The most files that stand on one another.
const BASES_MAX: usize = 4;

const WARM_UP: Duration = Duration::from_secs(120);
const MEASURE: Duration = Duration::from_secs(600);

/// The tables that are those of `suimon serve`; for them its own schema is asked.
const OF_SERVE: &[&str] = &["gate", "session", "route", "discovery", "service", "degradation"];

const FILE: KnownKeys = KnownKeys {
    path: "",
    keys: &[
        "question",
        "base",
        "seeds",
        "warm_up",
        "measure",
        "server",
        "change",
        "expect",
        "seed",
        "arrivals",
        "visitor",
        "journey",
        "gate",
        "session",
        "route",
        "discovery",
        "service",
        "degradation",
    ],
};

/// Returns the scenario of the file at `path`.
///
/// # Errors
/// Fails if it cannot be read, or with everything that is wrong with it; each line names file, line
/// and key.
pub fn load(path: &Path) -> Result<Scenario, Faults> {
    let name = path.display().to_string();
    let text = read::text_of(path)?;
    let own = read::parse(&name, &text)?;
    let table = with_base(own, path, &name, 1)?;
    let stem = path.file_stem().map_or_else(|| name.clone(), |stem| stem.to_string_lossy().into_owned());
    scenario(stem, &table).map_err(|faults| Lines::new(&name, &text).name(&faults))
}

/// Returns the scenario that `text` describes, without a base.
///
/// # Errors
/// Fails with everything that is wrong with it.
pub fn read(name: &str, text: &str) -> Result<Scenario, Faults> {
    let table = read::parse(name, text)?;
    scenario(name.to_owned(), &table).map_err(|faults| Lines::new(name, text).name(&faults))
}

/// Returns `table` with what it does not say taken from its base, if it names one.
fn with_base(mut table: Table, path: &Path, name: &str, depth: usize) -> Result<Table, Faults> {
    let Some(base) = table.remove("base") else { return Ok(table) };
    let Some(base) = base.as_str() else {
        return Err(Faults::one(format!(
            "{name}: base = {}: must be the name of a file beside this one",
            seen(&base)
        )));
    };
    if depth > BASES_MAX {
        return Err(Faults::one(format!(
            "{name}: base = {base:?}: at most {BASES_MAX} files may stand on one another"
        )));
    }
    let base_path = path.with_file_name(base);
    let base_name = base_path.display().to_string();
    let text = read::text_of(&base_path)?;
    let below = with_base(read::parse(&base_name, &text)?, &base_path, &base_name, depth + 1)?;
    Ok(merged(below, table))
}

/// Returns `below` with what `above` says in its place; tables are merged, everything else is
/// replaced as a whole. So is a curve of efficiency: half of one and half of another is none.
fn merged(mut below: Table, above: Table) -> Table {
    // Two ways to arrive are one too many.
    if let (Some(Value::Table(arrivals)), Some(Value::Table(said))) =
        (below.get_mut("arrivals"), above.get("arrivals"))
    {
        arrivals.retain(|way, _| said.contains_key(way));
    }
    for (key, value) in above {
        match (below.remove(&key), value) {
            (Some(Value::Table(below_it)), Value::Table(above_it)) if key != "efficiency" => {
                below.insert(key, Value::Table(merged(below_it, above_it)));
            }
            (_, value) => _ = below.insert(key, value),
        }
    }
    below
}

fn scenario(name: String, table: &Table) -> Result<Scenario, Faults> {
    let mut reader = Reader::default();
    journey_known::refuse_with(
        &FILE,
        &[server::TABLES, scaling::TABLES, expect::TABLES].concat(),
        table,
        &mut reader.faults,
    );
    let workload = reader.workload(table.clone());
    let (names, steps) = Scenario::routes_of(&workload);
    let served = served(table, &mut reader.faults);
    let mut routes: Vec<Route> = names
        .iter()
        .map(|name| Route {
            name: name.clone(),
            mode: mode_of(&served, name),
            cost: suimon_sim::Cost::default(),
        })
        .collect();
    let empty = Table::new();
    let server = table.get("server").and_then(Value::as_table).unwrap_or(&empty);
    let machine = reader.machine("server", server, suimon_sim::Machine::default());
    let nodes = server.get("nodes").map_or(1, |nodes| reader.whole_u32("server.nodes", nodes, 1, 64));
    reader.costs("server.route", server.get("route"), &mut routes);
    let pool = reader.pool("server.pool", server.get("pool"), nodes);
    let scaling = reader.scaling("server.scaling", server.get("scaling"), nodes);
    if pool.is_some() && scaling.is_some() {
        reader.faults.value("server.scaling", "given", "left out where there is a pool");
    }
    let warm_up = reader.duration_or("warm_up", table.get("warm_up"), WARM_UP);
    let measure =
        table.get("measure").map_or(MEASURE, |measure| reader.duration_above_zero("measure", measure));
    if warm_up + measure > TIME_MAX {
        let hours = TIME_MAX.as_secs() / 3600;
        reader.faults.value(
            "measure",
            crate::duration::show(measure),
            format!("with warm_up at most {hours} hours"),
        );
    }
    let changes = reader.changes(table, machine.clone(), &routes, &workload.kinds, warm_up + measure);
    let gate = gate_setup(&served, &names, &steps, machine.cores * f64::from(nodes));
    let services: Vec<&str> = gate.services.services.iter().map(|service| service.name.as_str()).collect();
    let question = table.get("question");
    let question =
        question.and_then(|question| reader.text("question", question)).unwrap_or_default().to_owned();
    let scenario = Scenario {
        question,
        seeds: reader.seeds(table.get("seeds")),
        expect: reader.expected(table.get("expect"), (warm_up + measure).as_secs_f64(), &services),
        name,
        workload,
        routes,
        steps,
        machine,
        nodes,
        scaling,
        pool,
        changes,
        gate,
        warm_up,
        measure,
    };
    reader.faults.into_result(scenario)
}

/// Returns what `suimon serve` would make of its own tables in the file.
fn served(table: &Table, faults: &mut Faults) -> Params {
    let own: Table = table
        .iter()
        .filter(|(key, _)| OF_SERVE.contains(&key.as_str()))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let cores_given = own.get("gate").and_then(|gate| gate.get("cores")).is_some();
    let (settings, theirs) = settings::check(&own);
    faults.append(theirs);
    let mut params = settings.proxy;
    let routes = own.get("route").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (index, route) in routes.iter().enumerate() {
        let text = route.get("match").filter(|text| text.as_str().is_some_and(|text| text.contains('?')));
        if let Some(text) = text {
            let allowed = "without a query: the simulator tells routes apart by method and path";
            faults.value(format!("route[{index}].match"), seen(text), allowed);
        }
    }
    // A waiting room is played where it is asked for: scenarios are of laws, and most were written
    // without it.
    let tables = own.get("session").and_then(toml::Value::as_array);
    for (index, kind) in params.sessions.kinds.iter_mut().enumerate() {
        let table = tables.and_then(|tables| tables.get(index));
        if table.is_none_or(|table| table.get("waiting_room").is_none()) {
            kind.gate.line = None;
        }
    }
    if !cores_given {
        // This machine's are no matter: the model's are filled in.
        params.gate.cores = 0;
    }
    params
}

fn mode_of(served: &Params, route: &str) -> suimon_gate::RouteMode {
    let (method, path) = route.split_once(' ').unwrap_or(("GET", route));
    let declared = served.routes.declared.iter().find(|declared| declared.pattern.matches(method, path));
    declared.map_or(served.routes.discovered_mode, |declared| declared.mode)
}

fn gate_setup(served: &Params, names: &[String], steps: &[Vec<RouteId>], cores: f64) -> GateSetup {
    let matches = |patterns: &[RoutePattern], route: RouteId| {
        let (method, path) = names[route.index()].split_once(' ').unwrap_or(("GET", ""));
        patterns.iter().any(|pattern| pattern.matches(method, path))
    };
    let all = || (0..names.len()).map(|index| RouteId(index as u32));
    let kinds = &served.sessions.kinds;
    let kind_of = |steps: &Vec<RouteId>| {
        let first = steps.first().copied().unwrap_or(RouteId(0));
        let found = kinds.iter().position(|kind| kind.begins.is_empty() || matches(&kind.begins, first));
        KindId(found.unwrap_or(kinds.len().saturating_sub(1)) as u32)
    };
    let kind = |kind: &suimon_params::SessionKind| KindSetup {
        name: kind.name.clone(),
        params: kind.gate.clone(),
        ends: all().filter(|route| matches(&kind.ends, *route)).collect(),
    };
    let mut params = served.gate.clone();
    if params.cores == 0 {
        params.cores = (cores.ceil() as u32).max(1);
    }
    GateSetup {
        params,
        kind_of: steps.iter().map(kind_of).collect(),
        kinds: kinds.iter().map(kind).collect(),
        services: services_of(served, names),
        unaware: false,
    }
}

/// Returns the services, of the routes whose names fit those declared.
fn services_of(served: &Params, names: &[String]) -> suimon_gate::Services {
    let mut services = served.services.for_gate(0);
    for (service, declared) in services.services.iter_mut().zip(&served.services.services) {
        let of = |place: &usize| {
            let pattern = &served.routes.declared[*place].pattern;
            names.iter().position(|name| {
                let (method, path) = name.split_once(' ').unwrap_or(("GET", name));
                pattern.matches(method, path)
            })
        };
        service.routes = declared.routes.iter().filter_map(of).map(|route| RouteId(route as u32)).collect();
    }
    services
}

impl Reader {
    /// Reads `5`, which is the seeds from 1 to 5, or a list of seeds.
    fn seeds(&mut self, value: Option<&Value>) -> Vec<u64> {
        match value {
            None => vec![1, 2, 3],
            Some(Value::Array(seeds)) if !seeds.is_empty() && seeds.len() <= SEEDS_MAX as usize => {
                let seed = |(index, seed)| self.whole(&format!("seeds[{index}]"), seed, 0, i64::MAX as u64);
                seeds.iter().enumerate().map(seed).collect()
            }
            Some(Value::Array(seeds)) => {
                self.faults.value("seeds", format!("{} of them", seeds.len()), format!("1 to {SEEDS_MAX}"));
                vec![1]
            }
            Some(count) => (1..=self.whole("seeds", count, 1, SEEDS_MAX)).collect(),
        }
    }

    fn changes(
        &mut self,
        table: &Table,
        machine: suimon_sim::Machine,
        routes: &[Route],
        journeys: &[Arc<Journey>],
        end: Duration,
    ) -> Vec<Change> {
        let entries = table.get("change").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if entries.len() > CHANGES_MAX {
            self.faults.value(
                "change",
                format!("{} of them", entries.len()),
                format!("at most {CHANGES_MAX}"),
            );
            return vec![];
        }
        let mut machine = machine;
        let mut routes = routes.to_vec();
        let mut weights: Vec<f64> = journeys.iter().map(|journey| journey.weight).collect();
        let mut changes: Vec<Change> = vec![];
        for (index, entry) in entries.iter().enumerate() {
            let key = format!("change[{index}]");
            let Some(entry) = entry.as_table() else { continue };
            let at = match entry.get("at") {
                Some(at) => self.duration(&format!("{key}.at"), at),
                None => {
                    self.faults.missing(format!("{key}.at"), "when, such as \"300s\"");
                    Duration::ZERO
                }
            };
            if changes.last().is_some_and(|last| last.at > at) || at > end {
                let allowed = "not before the change before it, and before the end of the run";
                self.faults.value(format!("{key}.at"), crate::duration::show(at), allowed);
            }
            if let Some(server) = entry.get("server").and_then(Value::as_table) {
                machine = self.machine(&format!("{key}.server"), server, machine);
                changes.push(Change { at, what: What::Machine(machine.clone()) });
            }
            if let Some(route) = entry.get("route") {
                let before: Vec<_> = routes.iter().map(|route| route.cost).collect();
                self.costs(&format!("{key}.route"), Some(route), &mut routes);
                let changed = routes
                    .iter()
                    .zip(before)
                    .enumerate()
                    .filter(|(_, (route, before))| route.cost != *before);
                changes.extend(changed.map(|(index, (route, _))| Change {
                    at,
                    what: What::Cost(RouteId(index as u32), route.cost),
                }));
            }
            if let Some(changed) = entry.get("weights").and_then(Value::as_table) {
                if journeys.iter().any(|journey| journey.users.is_some()) {
                    let allowed = "left out where users keep to their journeys";
                    self.faults.value(format!("{key}.weights"), "given", allowed);
                }
                self.weights(&format!("{key}.weights"), changed, journeys, &mut weights);
                changes.push(Change { at, what: What::Weights(weights.clone()) });
            }
            if !["server", "route", "weights"].iter().any(|what| entry.contains_key(*what)) {
                let allowed = "what changes: server = { ... }, route = [{ match = \"GET /x\", ... }] or weights = { journey = 2 }";
                self.faults.missing(key, allowed);
            }
        }
        changes
    }

    /// Puts the weights of `changed` in the place of those of the journeys it names.
    fn weights(&mut self, key: &str, changed: &Table, journeys: &[Arc<Journey>], weights: &mut [f64]) {
        for (name, value) in changed {
            let key = format!("{key}.{name}");
            match journeys.iter().position(|journey| journey.name == *name) {
                Some(index) => weights[index] = self.number(&key, value, 0.0, true, WEIGHT_MAX),
                None => self.faults.value(key, seen(value), "the weight of a journey of this file"),
            }
        }
        if weights.iter().all(|weight| *weight == 0.0) {
            self.faults.value(key, "nothing but 0", "at least one journey that is begun");
        }
    }
}

/// Returns the pattern of a route of the application, or a sentence of what is allowed.
fn route_pattern(text: &str) -> Result<RoutePattern, &'static str> {
    let is_route =
        text.split_once(' ').is_some_and(|(method, path)| !method.is_empty() && path.starts_with('/'));
    if is_route {
        Ok(pattern(text))
    } else {
        Err("method (or *) and path, such as \"GET /search\" or \"* /*\"")
    }
}

#[cfg(test)]
mod tests;

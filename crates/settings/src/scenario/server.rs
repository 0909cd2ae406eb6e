//! The application's machine and costs.

use super::route_pattern;
use crate::journey::values::Reader;
use crate::known::KnownKeys;
use crate::read::seen;
use suimon_control::{DynamicParams, SizeLawKind};
use suimon_sim::{Cost, Curve, Efficiency, Machine, POINTS_MAX, Pauses, PoolSetup, Route};
use toml::{Table, Value};

/// The most cores, speed and so on: far beyond any machine, and no infinities.
const NUMBER_MAX: f64 = 1e6;
/// The longest a request may take, in CPU or elsewhere.
const SECONDS_MAX: f64 = 3600.0;
/// The most workers of a pool.
const WORKERS_MAX: u32 = suimon_sim::WORKERS_MAX as u32;
/// The most pieces that the work of a request can be done in.
const PIECES_MAX: u32 = 10_000;

const SERVER: [&str; 12] = [
    "nodes",
    "scaling",
    "pool",
    "cores",
    "speed",
    "sharing",
    "threads",
    "connections",
    "accept",
    "accept_crowded",
    "efficiency",
    "route",
];
/// What of it may change while it runs.
const CHANGED_SERVER: &[&str] = {
    let [_nodes, _scaling, _pool, machine @ .., _routes] = &SERVER;
    machine
};
const ROUTE: &[&str] = &[
    "match",
    "cpu",
    "variation",
    "memory",
    "elsewhere",
    "elsewhere_variation",
    "errors",
    "error_cpu",
    "own_pool",
    "pause",
];
const PAUSE: &[&str] = &["before", "inside", "pieces", "after"];
const POOL: &[&str] = &[
    "law",
    "workers",
    "known",
    "most",
    "start",
    "cached",
    "beyond",
    "memory",
    "budget",
    "machine",
    "swap",
    "spare_min",
    "spare_max",
];
const EFFICIENCY: &[&str] =
    &["knee", "slope", "floor", "heap", "resting", "cost", "contention", "coherency", "best", "measured"];

/// The keys of the tables read here.
pub(super) const TABLES: &[KnownKeys] = &[
    KnownKeys { path: "server", keys: &SERVER },
    KnownKeys { path: "server.efficiency", keys: EFFICIENCY },
    KnownKeys { path: "server.pool", keys: POOL },
    KnownKeys { path: "server.route[]", keys: ROUTE },
    KnownKeys { path: "server.route[].pause", keys: PAUSE },
    KnownKeys { path: "change[]", keys: &["at", "server", "route", "weights"] },
    KnownKeys { path: "change[].server", keys: CHANGED_SERVER },
    KnownKeys { path: "change[].server.efficiency", keys: EFFICIENCY },
    KnownKeys { path: "change[].route[]", keys: ROUTE },
    KnownKeys { path: "change[].route[].pause", keys: PAUSE },
];

impl Reader {
    /// Returns `machine` with what `table` says in its place.
    pub(super) fn machine(&mut self, key: &str, table: &Table, machine: Machine) -> Machine {
        let mut machine = machine;
        let number = |reader: &mut Self, name: &str, into: &mut f64| {
            if let Some(value) = table.get(name) {
                *into = reader.number(&format!("{key}.{name}"), value, 0.0, false, NUMBER_MAX);
            }
        };
        number(self, "cores", &mut machine.cores);
        number(self, "speed", &mut machine.speed);
        for (name, into) in [("accept", &mut machine.accept), ("accept_crowded", &mut machine.accept_crowded)]
        {
            if let Some(value) = table.get(name) {
                *into = self.duration(&format!("{key}.{name}"), value).as_secs_f64();
            }
        }
        for (name, into) in [("threads", &mut machine.threads), ("connections", &mut machine.connections)] {
            if let Some(value) = table.get(name) {
                *into = self.at_once(&format!("{key}.{name}"), value);
            }
        }
        match table.get("sharing").map(|sharing| (sharing, sharing.as_str())) {
            None => {}
            Some((_, Some("even"))) => machine.even = true,
            Some((_, Some("uneven"))) => machine.even = false,
            Some((sharing, _)) => {
                self.faults.value(format!("{key}.sharing"), seen(sharing), "\"even\" or \"uneven\"");
            }
        }
        if let Some(efficiency) = table.get("efficiency") {
            machine.efficiency = self.efficiency(&format!("{key}.efficiency"), efficiency);
        }
        machine
    }

    /// Reads the resident workers of the application, if it has some.
    pub(super) fn pool(&mut self, key: &str, value: Option<&Value>, nodes: u32) -> Option<PoolSetup> {
        let table = value?.as_table()?;
        if nodes > 1 {
            self.faults.value("server.nodes", nodes, "1 where there is a pool");
        }
        let mut pool = PoolSetup::default();
        for (name, into, low) in
            [("workers", &mut pool.workers, 1), ("most", &mut pool.most, 1), ("cached", &mut pool.cached, 0)]
        {
            if let Some(value) = table.get(name) {
                *into = self.whole_u32(&format!("{key}.{name}"), value, low, WORKERS_MAX);
            }
        }
        for (name, into) in [("start", &mut pool.start), ("swap", &mut pool.swap)] {
            if let Some(value) = table.get(name) {
                *into = self.an_hour_at_most(&format!("{key}.{name}"), value);
            }
        }
        for (name, into) in [("beyond", &mut pool.beyond), ("memory", &mut pool.memory)] {
            if let Some(value) = table.get(name) {
                *into = self.number(&format!("{key}.{name}"), value, 0.0, true, NUMBER_MAX);
            }
        }
        for (name, into) in [("budget", &mut pool.budget), ("machine", &mut pool.machine)] {
            *into =
                table.get(name).map(|value| self.number(&format!("{key}.{name}"), value, 0.0, false, 1e9));
        }
        pool.is_known = table.get("known").is_some_and(|known| self.is_true(&format!("{key}.known"), known));
        pool.law = self.size_law(key, table, &pool);
        Some(pool)
    }

    /// Reads how the number of workers is found; `None`: they are not resident.
    fn size_law(&mut self, key: &str, table: &Table, pool: &PoolSetup) -> Option<SizeLawKind> {
        let Some(word) = table.get("law") else { return Some(SizeLawKind::Measured) };
        match (word.as_str(), word.as_str().and_then(SizeLawKind::of)) {
            (Some("cgi"), _) => None,
            (_, Some(SizeLawKind::Fixed(_))) => Some(SizeLawKind::Fixed(pool.workers)),
            (_, Some(SizeLawKind::Dynamic(_))) => {
                let mut number = |name: &str, default: u32| {
                    let number = |value| self.whole_u32(&format!("{key}.{name}"), value, 1, WORKERS_MAX);
                    table.get(name).map_or(default, number)
                };
                let DynamicParams { spare_min, spare_max, .. } = DynamicParams::default();
                Some(SizeLawKind::Dynamic(DynamicParams {
                    start: pool.workers,
                    spare_min: number("spare_min", spare_min),
                    spare_max: number("spare_max", spare_max),
                    most: pool.most,
                }))
            }
            (_, Some(law)) => Some(law),
            (_, None) => {
                let words: Vec<&str> = SizeLawKind::CHOICES.iter().map(|choice| choice.word).collect();
                self.faults.value(
                    format!("{key}.law"),
                    seen(word),
                    format!("one of {}, cgi", words.join(", ")),
                );
                None
            }
        }
    }

    fn is_true(&mut self, key: &str, value: &Value) -> bool {
        value.as_bool().unwrap_or_else(|| {
            self.faults.value(key, seen(value), "true or false");
            false
        })
    }

    /// Reads how many there may be at once; `"unbounded"`: no end.
    fn at_once(&mut self, key: &str, value: &Value) -> Option<u32> {
        (value.as_str() != Some("unbounded")).then(|| self.whole_u32(key, value, 1, 1_000_000))
    }

    /// Reads `"flat"`, or one of the four curves, told apart by their keys.
    fn efficiency(&mut self, key: &str, value: &Value) -> Efficiency {
        let allowed = "\"flat\" or one of { knee, slope, floor }, { heap, resting, cost, floor }, { contention, best or coherency } or { measured }";
        let Some(table) = value.as_table() else {
            if value.as_str() != Some("flat") {
                self.faults.value(key, seen(value), allowed);
            }
            return Efficiency::Flat;
        };
        let named =
            ["knee", "heap", "contention", "measured"].into_iter().filter(|curve| table.contains_key(*curve));
        if named.count() != 1 {
            self.faults.value(key, seen(value), allowed);
            return Efficiency::Flat;
        }
        let mut number = |name: &str, default: f64, low_too: bool, high: f64| {
            table
                .get(name)
                .map_or(default, |value| self.number(&format!("{key}.{name}"), value, 0.0, low_too, high))
        };
        if table.contains_key("knee") {
            return Efficiency::Knee {
                knee: number("knee", 4.0, true, NUMBER_MAX),
                slope: number("slope", 0.25, true, NUMBER_MAX),
                floor: number("floor", 0.15, false, 1.0),
            };
        }
        if table.contains_key("heap") {
            let (heap, resting) = (number("heap", 1.0, false, 1e9), number("resting", 0.0, true, 1e9));
            let (cost, floor) = (number("cost", 0.1, true, NUMBER_MAX), number("floor", 0.02, false, 1.0));
            if resting >= heap {
                self.faults.value(format!("{key}.resting"), resting, format!("below {key}.heap ({heap})"));
            }
            return Efficiency::Heap { heap, resting, cost, floor };
        }
        if table.contains_key("contention") {
            let contention = number("contention", 0.02, true, 1.0);
            let best = number("best", 0.0, false, NUMBER_MAX);
            let stated = number("coherency", 0.0, true, 1.0);
            // The best number at once is the root of (1 − contention) / coherency.
            let coherency = if best > 0.0 { (1.0 - contention) / (best * best) } else { stated };
            return Efficiency::Scalability { contention, coherency };
        }
        match table.get("measured") {
            Some(points) => self.measured(&format!("{key}.measured"), points),
            None => Efficiency::Flat,
        }
    }

    /// Reads `[[memory, efficiency], …]`.
    fn measured(&mut self, key: &str, value: &Value) -> Efficiency {
        let number =
            |value: &Value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        let point = |value: &Value| match value.as_array()?.as_slice() {
            [memory, efficiency] => {
                let (memory, efficiency) = (number(memory)?, number(efficiency)?);
                let sane = (0.0..=NUMBER_MAX).contains(&memory) && (0.001..=10.0).contains(&efficiency);
                sane.then_some((memory, efficiency))
            }
            _ => None,
        };
        let points: Option<Vec<(f64, f64)>> =
            value.as_array().and_then(|points| points.iter().map(point).collect());
        if let Some(curve) = points.as_deref().and_then(Curve::through) {
            return Efficiency::Measured(curve);
        }
        let allowed = format!(
            "1 to {POINTS_MAX} pairs [memory, efficiency], memory rising, efficiency 0.001 to 10, such as [[1, 1.0], [8, 0.5]]"
        );
        self.faults.value(key, seen(value), allowed);
        Efficiency::Flat
    }

    /// Puts what the entries of `value` say into the costs of the routes they match, one entry
    /// after the other.
    pub(super) fn costs(&mut self, key: &str, value: Option<&Value>, routes: &mut [Route]) {
        let entries = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, entry) in entries.iter().enumerate() {
            let key = format!("{key}[{index}]");
            let Some(entry) = entry.as_table() else { continue };
            let Some(text) = entry.get("match") else {
                self.faults.missing(format!("{key}.match"), "which route, such as \"GET /search\"");
                continue;
            };
            let pattern = match route_pattern(text.as_str().unwrap_or_default()) {
                Ok(pattern) => pattern,
                Err(allowed) => {
                    self.faults.value(format!("{key}.match"), seen(text), allowed);
                    continue;
                }
            };
            let mut found = false;
            for route in routes.iter_mut() {
                let (method, path) = route.name.split_once(' ').unwrap_or(("GET", ""));
                if pattern.matches(method, path) {
                    found = true;
                    route.cost = self.cost(&key, entry, route.cost);
                }
            }
            if !found {
                let names: Vec<&str> = routes.iter().map(|route| route.name.as_str()).collect();
                let allowed = format!("a route that some step asks for: {}", names.join(", "));
                self.faults.value(format!("{key}.match"), seen(text), allowed);
            }
        }
    }

    fn cost(&mut self, key: &str, table: &Table, cost: Cost) -> Cost {
        let mut cost = cost;
        for (name, into) in
            [("cpu", &mut cost.cpu), ("elsewhere", &mut cost.elsewhere), ("error_cpu", &mut cost.error_cpu)]
        {
            let Some(value) = table.get(name) else { continue };
            *into = self.an_hour_at_most(&format!("{key}.{name}"), value);
        }
        for (name, into, high) in [
            ("variation", &mut cost.variation, 10.0),
            ("elsewhere_variation", &mut cost.elsewhere_variation, 10.0),
            ("memory", &mut cost.memory, NUMBER_MAX),
            ("errors", &mut cost.errors, 1.0),
        ] {
            if let Some(value) = table.get(name) {
                *into = self.number(&format!("{key}.{name}"), value, 0.0, true, high);
            }
        }
        if let Some(value) = table.get("own_pool") {
            cost.own_pool = self.at_once(&format!("{key}.own_pool"), value);
        }
        if let Some(pause) = table.get("pause").and_then(Value::as_table) {
            cost.pauses = self.pauses(&format!("{key}.pause"), pause);
        }
        cost
    }

    fn pauses(&mut self, key: &str, table: &Table) -> Pauses {
        let mut time = |name: &str| {
            table.get(name).map_or(0.0, |value| self.an_hour_at_most(&format!("{key}.{name}"), value))
        };
        let (before, inside, after) = (time("before"), time("inside"), time("after"));
        let pieces = table.get("pieces");
        let pieces = pieces.map_or(1, |value| self.whole_u32(&format!("{key}.pieces"), value, 1, PIECES_MAX));
        Pauses { before, inside, pieces, after }
    }

    /// Reads a duration of at most [`SECONDS_MAX`]; returns seconds.
    fn an_hour_at_most(&mut self, key: &str, value: &Value) -> f64 {
        let time = self.duration(key, value).as_secs_f64();
        if time > SECONDS_MAX {
            self.faults.value(key, seen(value), "at most an hour");
        }
        time
    }
}

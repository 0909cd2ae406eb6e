//! How nodes come and go while a scenario is played.

use crate::journey::values::Reader;
use crate::known::KnownKeys;
use crate::read::seen;
use std::time::Duration;
use suimon_params::nodes::NodesLaw;
use suimon_sim::NodesSetup;
use suimon_sim::cluster::ScalingLaw;
use toml::Value;

/// The most nodes.
const NODES_MAX: u32 = 64;
/// The greatest run queue that a rule can be told.
const LOAD_MAX: f64 = 1e6;

/// What the papers' rule has where nobody says it, as for `nodes`.
const SEED_INTERVAL: Duration = Duration::from_millis(500);
const SEED_LOAD_MAX: f64 = 5.0;

/// The keys of the table read here.
pub(super) const TABLES: &[KnownKeys] = &[KnownKeys {
    path: "server.scaling",
    keys: &[
        "law",
        "eagerness",
        "interval",
        "load_max",
        "min",
        "max",
        "start",
        "start_max",
        "parked",
        "sees_newcomers",
    ],
}];

impl Reader {
    /// Reads how nodes come and go. `nodes`: how many there are at the start.
    pub(super) fn scaling(&mut self, key: &str, value: Option<&Value>, nodes: u32) -> Option<NodesSetup> {
        let table = value?.as_table()?;
        let mut setup = NodesSetup::default();
        for (name, into, low) in
            [("min", &mut setup.least, 1), ("max", &mut setup.most, 1), ("parked", &mut setup.parked, 0)]
        {
            if let Some(value) = table.get(name) {
                *into = self.whole_u32(&format!("{key}.{name}"), value, low, NODES_MAX);
            }
        }
        if !(setup.least..=setup.most).contains(&nodes) {
            let allowed =
                format!("from {key}.min ({}) to {key}.max ({}): so many there are", setup.least, setup.most);
            self.faults.value("server.nodes", nodes, allowed);
        }
        if let Some(start) = table.get("start") {
            let start = self.duration(&format!("{key}.start"), start);
            setup.start = (start, start);
        }
        if let Some(most) = table.get("start_max") {
            setup.start.1 = self.duration(&format!("{key}.start_max"), most).max(setup.start.0);
        }
        let sees = table.get("sees_newcomers");
        setup.sees_newcomers = self.boolean(&format!("{key}.sees_newcomers"), sees, true);
        setup.law = match table.get("law").map(|word| (word, word.as_str().and_then(NodesLaw::of))) {
            None | Some((_, Some(NodesLaw::Demand))) => match table.get("eagerness") {
                None => ScalingLaw::default(),
                Some(value) => ScalingLaw::Demand {
                    eagerness: self.number(&format!("{key}.eagerness"), value, 0.0, true, 1.0),
                },
            },
            Some((_, Some(NodesLaw::Seed))) => {
                let every = table.get("interval");
                let interval = every.map_or(SEED_INTERVAL, |value| {
                    self.duration_above_zero(&format!("{key}.interval"), value)
                });
                let load_max = table.get("load_max").map_or(SEED_LOAD_MAX, |value| {
                    self.number(&format!("{key}.load_max"), value, 1.0, false, LOAD_MAX)
                });
                ScalingLaw::Seed { interval, load_max }
            }
            Some((_, Some(NodesLaw::Fixed))) => ScalingLaw::Fixed(nodes),
            Some((word, None)) => {
                let words: Vec<&str> = NodesLaw::CHOICES.iter().map(|choice| choice.word).collect();
                let allowed = format!("one of {}", words.join(", "));
                self.faults.value(format!("{key}.law"), seen(word), allowed);
                ScalingLaw::default()
            }
        };
        Some(setup)
    }
}

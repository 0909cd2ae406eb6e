//! The clients and the application of each figure: scenario files, which `suimon sim` plays too.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_sim::Scenario;
use suimon_workload::{Arrivals, Patience};

use crate::common::experiments;
use crate::trouble::{Result, Trouble};

/// The clients, and their patience.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum World {
    NoTimeout,
    Timeout60,
    Timeout30,
    Think1,
    Mixed,
}

/// The application.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Site {
    /// The paper's application, in the paper's times.
    Paper,
    /// This project's Tomcat shop, in its own times.
    Tomcat,
}

impl World {
    pub(super) const fn name(self) -> &'static str {
        match self {
            World::NoTimeout => "no-timeout",
            World::Timeout60 => "timeout-60",
            World::Timeout30 => "timeout-30",
            World::Think1 => "think-1",
            World::Mixed => "mixed",
        }
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            World::NoTimeout => "no timeouts, think time 3 s",
            World::Timeout60 => "timeout 60 s, think time 3 s",
            World::Timeout30 => "timeout 30 s, think time 3 s",
            World::Think1 => "timeout 60 s, think time 1 s",
            World::Mixed => "timeouts 30 s or 60 s, think time 3 s on average",
        }
    }

    /// Returns the number of sessions that the paper found best for its static method.
    pub(super) const fn best_static_of_the_paper(self) -> u32 {
        match self {
            World::NoTimeout => 75,
            World::Timeout30 => 15,
            World::Timeout60 | World::Think1 | World::Mixed => 35,
        }
    }
}

impl Site {
    /// Returns the divisor of the paper's times.
    pub(super) const fn scale(self) -> f64 {
        match self {
            Site::Paper => 1.0,
            Site::Tomcat => 4.0,
        }
    }

    const fn folder(self) -> &'static str {
        match self {
            Site::Paper => "sqs/model",
            Site::Tomcat => "tomcat-model",
        }
    }
}

/// Returns the scenario.
pub(super) fn load(site: Site, world: World) -> Result<Scenario> {
    let path = experiments().join(format!("{}/{}.toml", site.folder(), world.name()));
    suimon_settings::scenario::load(&path).map_err(|faults| Trouble::Usage(faults.to_string()))
}

/// Returns the same scenario with this number of clients.
pub(super) fn with_clients(mut scenario: Scenario, clients: u32) -> Scenario {
    if let Arrivals::Closed { users, .. } = &mut scenario.workload.arrivals {
        *users = clients;
    }
    scenario
}

/// Returns the shortest patience of a client, seconds; `None`: for ever.
pub(super) fn patience_s(scenario: &Scenario) -> Option<f64> {
    let of = |journey: &Arc<suimon_workload::Journey>| match &journey.patience {
        Patience::Endless => None,
        Patience::Constant(time) => Some(time.as_secs_f64()),
        Patience::Mixture(parts) => parts.iter().map(|(_, time)| time.as_secs_f64()).reduce(f64::min),
    };
    scenario.workload.kinds.iter().filter_map(of).reduce(f64::min)
}

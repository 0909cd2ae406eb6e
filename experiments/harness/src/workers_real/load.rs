//! What is asked for: one page, by visitors who do not come back.

use serde::{Deserialize, Serialize};

use super::Plan;
use crate::workers::Server;

/// Visitors of a closed load beyond the number of workers: nobody is ever without work.
const USERS_BEYOND: u32 = 20;
/// Workers that Suimon may try.
const SUIMON_TRIES: u32 = 100;
/// The peak: for one second, so many times the capacity.
const PEAK_SHARE: f64 = 2.5;
/// Seconds of the counted time before the peak.
const BEFORE_PEAK_S: u32 = 2;

/// An open load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Load {
    /// Steady, as a share of the capacity.
    Share(f64),
    /// The capacity, and for one second two and a half times as much.
    Peak,
}

impl Load {
    pub(super) fn words(self) -> String {
        match self {
            Load::Share(share) => format!("{share} of the capacity"),
            Load::Peak => "1 of the capacity, with a peak".to_string(),
        }
    }

    /// Returns the journey file.
    pub(super) fn journey(self, seed: u64, capacity_per_s: f64, plan: &Plan) -> String {
        let arrivals = match self {
            Load::Share(share) => format!("rate_per_s = {:.3}", share * capacity_per_s),
            Load::Peak => format!(
                "phases = [{{ for = \"{}s\", rate_per_s = {capacity_per_s:.3} }}, {{ for = \"1s\", rate_per_s = {:.3} }}, \
                 {{ rate_per_s = {capacity_per_s:.3} }}]",
                plan.warm_up_s + BEFORE_PEAK_S,
                PEAK_SHARE * capacity_per_s
            ),
        };
        journey(seed, &format!("[arrivals.open]\n{arrivals}\n"), plan.patience_s)
    }
}

/// Returns the journey file of a load that never lets a worker of this server rest.
pub(super) fn closed(seed: u64, server: Server) -> String {
    let workers = match server {
        Server::Cgi(workers) | Server::Fixed(workers) | Server::FpmTuned { workers, .. } => workers,
        Server::FpmPackaged | Server::GunicornFormula | Server::UwsgiBusyness => 0,
        // Whatever number it tries.
        Server::Suimon { .. } => SUIMON_TRIES,
    };
    let users = workers + USERS_BEYOND;
    journey(seed, &format!("[arrivals.closed]\nusers = {users}\nstart_over = \"50ms\"\n"), 60)
}

fn journey(seed: u64, arrivals: &str, patience_s: u32) -> String {
    format!(
        "seed = {seed}\n\n{arrivals}\n[visitor]\npatience = \"{patience_s}s\"\nreturning = false\n\n\
         [visitor.on_failure]\nretries_max = 0\n\n[visitor.on_refusal]\nretries_max = 0\n\n\
         [[journey]]\nname = \"page\"\n\n[[journey.steps]]\nname = \"page\"\npath = \"/?page=7\"\n\
         expect = {{ status = 200, text = \"Digest of the page\" }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_journey_is_one_the_crowd_understands() {
        let plan = Plan {
            learn_s: 1,
            numbers: vec![],
            loads: vec![],
            rounds: 1,
            seconds: 5,
            warm_up_s: 3,
            patience_s: 10,
        };
        let loads =
            [Load::Share(0.6), Load::Share(3.0), Load::Peak].map(|load| load.journey(1, 97.25, &plan));
        for text in loads.into_iter().chain([closed(1, Server::Fixed(20)), closed(1, Server::UwsgiBusyness)])
        {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("journey.toml");
            std::fs::write(&path, &text).unwrap();
            suimon_settings::journey::load(&path).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        }
    }
}

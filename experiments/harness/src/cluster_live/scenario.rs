//! The scenario: one file, for the simulator and for the gateway.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use suimon_sim::cluster::{ClusterSetup, Dispatch, PageViews};
use suimon_workload::{Arrivals, Phase, Spacing};

use crate::trouble::{Result, Trouble, While};

/// How long a visitor waits for a file, seconds, and in line.
const PATIENCE_S: u32 = 30;

#[derive(Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    pub(super) nodes: Nodes,
    pub(super) views: Views,
    pub(super) phase: Vec<Rate>,
    pub(super) counted: Counted,
}

#[derive(Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Nodes {
    pub(super) first: u32,
    pub(super) most: u32,
    pub(super) start_ms: u64,
    pub(super) slice_ms: u64,
    pub(super) core: f64,
}

#[derive(Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Views {
    pub(super) files: (u32, u32),
    pub(super) static_ms: f64,
    pub(super) dynamic: f64,
    pub(super) dynamic_ms: (f64, f64),
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Rate {
    pub(super) seconds: u32,
    pub(super) per_s: f64,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Counted {
    pub(super) from_s: u32,
    pub(super) until_s: u32,
}

impl Scenario {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).trouble(path.display())?;
        let scenario: Scenario = toml::from_str(&text).trouble(path.display())?;
        let Nodes { first, most, start_ms, slice_ms, core } = scenario.nodes;
        let is_sound = (1..=most).contains(&first)
            && (1..=60_000).contains(&start_ms)
            && slice_ms >= 1
            && core > 0.0
            && core <= 1.0
            && (1..=scenario.views.files.1).contains(&scenario.views.files.0)
            && scenario.views.dynamic_ms.0 > 0.0
            && scenario.views.dynamic_ms.1 > scenario.views.dynamic_ms.0
            && scenario.counted.from_s < scenario.counted.until_s;
        if is_sound {
            Ok(scenario)
        } else {
            Err(Trouble::Usage(format!("{}: is out of range", path.display())))
        }
    }

    /// Returns it for the simulator. A file goes to the node with the lowest load, with what was sent
    /// since it was told: as near to the gateway, which knows what it has sent, as the simulator has it.
    pub(super) fn simulated(&self) -> ClusterSetup {
        let phases = self.phase.iter().map(|rate| Phase {
            lasts: Duration::from_secs(rate.seconds.into()),
            from_per_s: rate.per_s,
            to_per_s: rate.per_s,
        });
        let start = Duration::from_millis(self.nodes.start_ms);
        ClusterSetup {
            arrivals: Arrivals::Open { phases: phases.collect(), spacing: Spacing::Even, users_max: 100_000 },
            nodes_first: self.nodes.first,
            nodes_most: self.nodes.most,
            start: (start, start),
            views: self.page_views(),
            reports_every: Duration::from_millis(10),
            dispatch: Dispatch::Corrected,
        }
    }

    fn page_views(&self) -> PageViews {
        let Views { files, static_ms, dynamic, dynamic_ms: (from, to) } = self.views;
        PageViews {
            files,
            // Each file is a request of its own to the gateway.
            kept: 0.0,
            static_s: static_ms / 1000.0,
            dynamic,
            dynamic_s: (from / 1000.0, to / 1000.0),
        }
    }

    /// Returns the work of a page view, node-seconds.
    pub(super) fn view_s(&self) -> f64 {
        self.page_views().mean_s()
    }

    pub(super) fn lasts_s(&self) -> u32 {
        self.phase.iter().map(|rate| rate.seconds).sum()
    }

    /// Returns the arguments of a node behind `suimon`.
    pub(super) fn node(&self) -> Vec<String> {
        let Views { static_ms, dynamic, dynamic_ms: (from, to), .. } = self.views;
        let Nodes { start_ms, slice_ms, core, .. } = self.nodes;
        // Times have no parts of a millisecond there, but may be microseconds.
        let time = |ms: f64| format!("{:.0}us", ms * 1000.0);
        let mut words: Vec<String> = vec!["lab-node".to_owned()];
        for (flag, value) in [
            ("--mean", time(static_ms)),
            ("--dynamic", dynamic.to_string()),
            ("--dynamic-from", time(from)),
            ("--dynamic-to", time(to)),
            ("--slice", format!("{slice_ms}ms")),
            ("--cpu", core.to_string()),
            ("--starts-after", format!("{start_ms}ms")),
        ] {
            words.extend([flag.to_owned(), value]);
        }
        words
    }

    /// Returns the journey file of these page views. Who fails gives up; who is to wait in line waits.
    pub(super) fn journey(&self, seed: u64, phases: &[Rate]) -> String {
        let phases: Vec<String> = phases
            .iter()
            .map(|rate| format!("{{ for = \"{}s\", rate_per_s = {:.3} }}", rate.seconds, rate.per_s))
            .collect();
        let mut text = format!(
            "seed = {seed}\n\n[arrivals.open]\nspacing = \"even\"\nphases = [{}]\n\n[visitor]\nthink = \"0s\"\n\
             patience = \"{PATIENCE_S}s\"\nreturning = false\n\n[visitor.in_line]\npatience = \"5m\"\n\n\
             [visitor.on_failure]\nretries_max = 0\n\n",
            phases.join(", ")
        );
        let (from, to) = self.views.files;
        for files in from..=to {
            text += &format!("[[journey]]\nname = \"files{files}\"\nweight = 1\n\n");
            for file in 1..=files {
                text += &format!(
                    "[[journey.steps]]\nname = \"file{file}\"\npath = \"/file\"\nexpect = {{ status = 200, text = \"served by\" }}\n\n"
                );
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulator_and_crowd_understand_the_scenario() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cluster-live/scenario.toml");
        let scenario = Scenario::read(&path).unwrap();
        assert!((scenario.view_s() - 0.49).abs() < 0.01, "three times that of the paper");
        assert_eq!(scenario.simulated().nodes_first, 3);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journey.toml");
        std::fs::write(&path, scenario.journey(1, &scenario.phase)).unwrap();
        suimon_settings::journey::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
    }
}

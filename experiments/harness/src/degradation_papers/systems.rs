//! The four operating systems: their scenario files, and what the paper measured on them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_chart::Hue;
use suimon_model::Duration;
use suimon_sim::{Pauses, Scenario};
use suimon_workload::Arrivals;

use super::NAME;
use crate::common::experiments;
use crate::trouble::{Result, Trouble};

/// Pieces of a job B: it walks its tree this often.
const WALKS: u32 = 100;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum System {
    Linux,
    Solaris,
    FreeBsd,
    Windows,
}

/// What the paper says of a system.
pub(super) struct Paper {
    /// Table 2: jobs A of 80 clients in one minute, jobs B of 80 clients in four.
    pub(super) alone: (u32, u32),
    /// Table 1: jobs A of 30 clients beside jobs B of 40, in three minutes.
    pub(super) both: (u32, u32),
    /// Section 2: jobs A beside 40 clients for B, relative to beside 1; at least and at most.
    pub(super) left: (f64, f64),
    /// Section 4: seconds of pause around each of 20 jobs B, what then becomes of A and of B,
    /// relative to no pause.
    pub(super) pause: (f64, f64, f64),
}

impl System {
    pub(super) const ALL: [System; 4] = [System::Linux, System::Solaris, System::FreeBsd, System::Windows];

    pub(super) const fn words(self) -> &'static str {
        match self {
            System::Linux => "Linux 2.6",
            System::Solaris => "Solaris 9",
            System::FreeBsd => "FreeBSD 5.2",
            System::Windows => "Windows 2003",
        }
    }

    pub(super) const fn hue(self) -> Hue {
        match self {
            System::Linux => Hue::Blue,
            System::Solaris => Hue::Amber,
            System::FreeBsd => Hue::Green,
            System::Windows => Hue::Purple,
        }
    }

    const fn file(self) -> &'static str {
        match self {
            System::Linux => "linux.toml",
            System::Solaris => "solaris.toml",
            System::FreeBsd => "freebsd.toml",
            System::Windows => "windows.toml",
        }
    }

    pub(super) const fn paper(self) -> Paper {
        let few = (0.0, 0.05);
        match self {
            System::Linux => {
                Paper { alone: (70045, 765), both: (1977, 834), left: few, pause: (4.0, 6.5, 0.95) }
            }
            System::Solaris => {
                Paper { alone: (37906, 742), both: (28171, 669), left: (0.15, 0.4), pause: (4.0, 1.4, 0.84) }
            }
            System::FreeBsd => {
                Paper { alone: (52633, 603), both: (5945, 778), left: few, pause: (4.0, 2.6, 0.92) }
            }
            System::Windows => {
                Paper { alone: (52072, 771), both: (3570, 958), left: few, pause: (2.0, 17.0, 0.86) }
            }
        }
    }
}

/// How job B pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Place {
    /// Half before it and half after it: S2 to S10.
    Around,
    /// After each of its walks: S2' to S10'.
    Inside,
}

/// What is played: so many clients, so long, with so much pause in each job B.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Setting {
    pub(super) system: System,
    pub(super) light: u32,
    pub(super) heavy: u32,
    pub(super) seconds: u32,
    pub(super) place: Place,
    pub(super) pause_s: f64,
}

impl Setting {
    pub(super) const fn new(system: System, light: u32, heavy: u32, seconds: u32) -> Self {
        Setting { system, light, heavy, seconds, place: Place::Around, pause_s: 0.0 }
    }

    /// Returns the setting as a scenario: the system's file, changed.
    pub(super) fn scenario(self) -> Result<Scenario> {
        let path = experiments().join(NAME).join(self.system.file());
        let mut scenario =
            suimon_settings::scenario::load(&path).map_err(|faults| Trouble::Usage(faults.to_string()))?;
        for (journey, users) in scenario.workload.kinds.iter_mut().zip([self.light, self.heavy]) {
            Arc::make_mut(journey).users = Some(users);
        }
        if let Arrivals::Closed { users, .. } = &mut scenario.workload.arrivals {
            *users = self.light + self.heavy;
        }
        let pauses = match self.place {
            Place::Around => {
                Pauses { before: self.pause_s / 2.0, after: self.pause_s / 2.0, ..Pauses::default() }
            }
            Place::Inside => Pauses { inside: self.pause_s, pieces: WALKS, ..Pauses::default() },
        };
        let heavy = scenario.steps[1][0];
        scenario.routes[heavy.index()].cost.pauses =
            if self.pause_s > 0.0 { pauses } else { Pauses::default() };
        scenario.measure = Duration::from_secs(self.seconds.into());
        Ok(scenario)
    }
}

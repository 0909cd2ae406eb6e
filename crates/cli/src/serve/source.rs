//! What stands beside the gateway that the admin listener shows and commands: its settings and logs.

use super::reload::Adopter;
use super::telemetry::Told;
use std::sync::Arc;
use suimon_admin::{Beside, Config, ConfigAnswer, ConfigState, LogCounts};

/// See the module.
pub(super) struct Process {
    pub(super) adopter: Adopter,
    pub(super) told: Arc<Told>,
}

impl Beside for Process {
    fn logs(&self) -> LogCounts {
        self.told.counts()
    }

    fn config(&self) -> Option<Config> {
        Some(self.adopter.config())
    }

    fn config_state(&self) -> Option<ConfigState> {
        Some(self.adopter.state())
    }

    fn adopt_config(&self, text: &str, dry_run: bool) -> ConfigAnswer {
        self.adopter.post(text, dry_run)
    }
}

//! How far a body has come.

use std::time::Duration;
use tokio::time::Instant;

/// What has come of a body, and how long its client was waited for.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Progress {
    pub(super) bytes: u64,
    pub(super) waited: Duration,
    pub(super) waits_since: Option<Instant>,
}

impl Progress {
    /// Returns how long the client was waited for, a wait that goes on included.
    pub(super) fn waited_by_now(&self) -> Duration {
        self.waited + self.waits_since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

//! A node that takes requests and answers none: whether it answers checks.
//!
//! What it has may take long, as long polls do. So it is asked by a check that must be answered; one that
//! answers this is well, and not asked again for a while. One that does not, twice in a row, hangs.

use suimon_model::{Duration, Instant};

/// Checks in a row that are not answered, after which a node hangs.
const MISSES: u32 = 2;
/// How long a node that has answered a check is not asked again.
const WELL_FOR: Duration = Duration::from_secs(10);

/// What is known of one node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    is_suspected: bool,
    misses: u32,
    /// Until when it is not suspected again.
    well_until: Option<Instant>,
}

impl Silence {
    /// Notes that it has requests and answers none, and returns whether it is suspected from now on.
    pub(crate) fn handle_owing(&mut self, now: Instant) -> bool {
        if self.is_suspected || self.well_until.is_some_and(|until| now < until) {
            return false;
        }
        self.is_suspected = true;
        true
    }

    /// Notes that a check was not answered; returns whether that counts.
    pub(crate) fn handle_miss(&mut self) -> bool {
        self.misses = if self.is_suspected { self.misses.saturating_add(1) } else { 0 };
        self.is_suspected
    }

    /// Notes that it has answered something; returns whether it was suspected.
    pub(crate) fn handle_answer(&mut self, now: Instant) -> bool {
        let was_suspected = self.is_suspected;
        if was_suspected {
            *self = Silence { well_until: Some(now + WELL_FOR), ..Silence::default() };
        }
        was_suspected
    }

    pub(crate) const fn is_suspected(&self) -> bool {
        self.is_suspected
    }

    /// Returns whether it hangs.
    pub(crate) const fn is_certain(&self) -> bool {
        self.misses >= MISSES
    }
}

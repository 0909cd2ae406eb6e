//! A node that takes requests and answers none: whether it answers checks.
//!
//! What it has may take long, as long polls do. So it is asked by a check that must be answered; one that
//! answers this is well, and not asked again for a while. One that does not hangs, if it still owes answers.

use suimon_model::{Duration, Instant};

/// How long a node that has answered a check is not asked again.
const WELL_FOR: Duration = Duration::from_secs(10);

/// What is known of one node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    is_suspected: bool,
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

    /// Notes that it has answered something; returns whether it was suspected.
    pub(crate) fn handle_answer(&mut self, now: Instant) -> bool {
        let was_suspected = self.is_suspected;
        if was_suspected {
            *self = Silence { is_suspected: false, well_until: Some(now + WELL_FOR) };
        }
        was_suspected
    }

    pub(crate) const fn is_suspected(&self) -> bool {
        self.is_suspected
    }
}

//! Whether answers should carry leases: while newcomers are turned away or held, and for some time
//! after.

use crate::api::LeaseDue;
use suimon_model::{Duration, Instant};

/// Leases are issued for this long after the last sign of pressure; to visitors that nothing else
/// identifies, also after a sign that it may come.
const PRESSURE: Duration = Duration::from_secs(600);
/// After a newcomer was held, however briefly, visitors that nothing else identifies get a lease
/// for this long: the next newcomer may not be admitted at all.
const CLOSE_HELD: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(super) struct Pressure {
    pressed_until: Instant,
    /// As long as the gate may close before long.
    close_until: Instant,
}

suimon_model::saved_struct!(Pressure { pressed_until, close_until });

impl Default for Pressure {
    fn default() -> Self {
        Pressure { pressed_until: Instant::ORIGIN, close_until: Instant::ORIGIN }
    }
}

impl Pressure {
    /// Takes note that somebody was turned away, or waits for long.
    pub(super) fn note(&mut self, now: Instant) {
        self.pressed_until = now + PRESSURE;
    }

    /// Takes note that newcomers come nearly as fast as they can be admitted.
    pub(super) fn note_close(&mut self, now: Instant) {
        self.close_until = self.close_until.max(now + PRESSURE);
    }

    /// Takes note that a newcomer was held who arrived then.
    pub(super) fn note_held(&mut self, arrived: Instant) {
        self.close_until = self.close_until.max(arrived + CLOSE_HELD);
    }

    /// Returns whether an answer of this moment should carry a lease. `is_rushed` returns whether
    /// newcomers come so fast that the gate may close at once.
    pub(super) fn lease_due(&self, now: Instant, is_rushed: impl FnOnce() -> bool) -> LeaseDue {
        if now < self.pressed_until {
            LeaseDue::Yes
        } else if now < self.close_until || is_rushed() {
            LeaseDue::IfUnknown
        } else {
            LeaseDue::No
        }
    }
}

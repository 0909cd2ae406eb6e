//! A concurrency limit.

use crate::persist::{Broken, Persist, Reader, Writer};
use std::fmt;

/// Requests of one route that may be in the application at once: at least one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Limit(u32);

impl Limit {
    /// The least there is: one request at a time.
    pub const LEAST: Limit = Limit(1);

    /// Returns the limit of `slots` slots, or the least limit if that is more.
    pub const fn of(slots: u32) -> Limit {
        if slots == 0 { Limit::LEAST } else { Limit(slots) }
    }

    /// Returns how many requests may be in the application at once.
    pub const fn slots(self) -> u32 {
        self.0
    }
}

impl Default for Limit {
    fn default() -> Self {
        Limit::LEAST
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Persist for Limit {
    fn save(&self, out: &mut Writer) {
        self.0.save(out);
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        match u32::load(from)? {
            0 => Err(from.broken("a limit of nothing")),
            slots => Ok(Limit(slots)),
        }
    }
}

//! Time as every pure crate sees it: nanoseconds since an origin, passed in by the shell that owns
//! a clock.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A moment, in nanoseconds since an origin chosen by the shell. Ordered, copied freely, never read
/// from a clock here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The origin itself.
    pub const ORIGIN: Instant = Instant(0);
    /// Later than anything that will happen: 584 years after the origin.
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// Returns the moment `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Returns nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns seconds since the origin.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Returns the time from `earlier` to here, or zero if `earlier` is later.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the seconds from `earlier` to here, or zero if `earlier` is later.
    pub fn secs_since(self, earlier: Instant) -> f64 {
        self.0.saturating_sub(earlier.0) as f64 * 1e-9
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, rhs: Duration) -> Instant {
        let nanos = u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_add(nanos))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, rhs: Duration) -> Instant {
        let nanos = u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_sub(nanos))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}s", self.as_secs_f64())
    }
}

/// Returns `secs` seconds as a duration. Negative and not-a-number become zero; anything past 10⁹ s
/// becomes 10⁹ s.
pub fn seconds(secs: f64) -> Duration {
    if secs > 0.0 { Duration::from_secs_f64(secs.min(1e9)) } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_before_the_origin_is_the_origin() {
        assert_eq!(Instant::ORIGIN - Duration::from_secs(1), Instant::ORIGIN);
        assert_eq!(Instant::ORIGIN.since(Instant::from_nanos(5)), Duration::ZERO);
    }

    #[test]
    fn the_far_future_stays_where_it_is() {
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
    }

    #[test]
    fn seconds_meets_bad_numbers_at_the_door() {
        assert_eq!(seconds(-1.0), Duration::ZERO);
        assert_eq!(seconds(f64::NAN), Duration::ZERO);
        assert_eq!(seconds(f64::INFINITY), Duration::from_secs(1_000_000_000));
        assert_eq!(seconds(1.5), Duration::from_millis(1500));
    }
}

//! Seconds since 1970 that never go back while the process runs.
//!
//! *Law*. The start is the system's clock less the monotonic one; the time is the start plus what
//! has passed since by the monotonic one. Where the system's clock is later than that (it was set
//! forward, or the machine slept), the start moves up to it; it never moves back. So a clock that
//! is set back makes no ticket and no lease one of the future, and no poll too early for ever.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime};

/// The clock, as far ahead of the monotonic one as it was ever seen, in milliseconds.
#[derive(Debug, Default)]
struct WallClock {
    start: AtomicU64,
}

impl WallClock {
    /// Returns seconds since 1970, where the system's clock says `system` milliseconds and `passed`
    /// milliseconds have passed by the monotonic one.
    fn at(&self, system: u64, passed: u64) -> u32 {
        let seen = system.saturating_sub(passed);
        let start = self.start.fetch_max(seen, Relaxed).max(seen);
        u32::try_from(start.saturating_add(passed) / 1000).unwrap_or(u32::MAX)
    }
}

/// Returns the seconds since 1970.
pub(crate) fn now_unix() -> u32 {
    static CLOCK: LazyLock<(Instant, WallClock)> = LazyLock::new(|| (Instant::now(), WallClock::default()));
    let (began, clock) = &*CLOCK;
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let system = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    clock.at(millis(system), millis(began.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_stands_for_no_moment_and_goes_back_for_none() {
        let clock = WallClock::default();
        assert_eq!(clock.at(1_000_000, 0), 1000);
        assert_eq!(clock.at(1_005_000, 5_000), 1005);
        assert_eq!(clock.at(906_000, 6_000), 1006, "set back by 100 s");
        assert_eq!(clock.at(907_000, 7_000), 1007, "and goes on");
        assert_eq!(clock.at(1_500_000, 8_000), 1500, "set forward, or the machine slept");
        assert_eq!(clock.at(1_501_000, 9_000), 1501);
        assert_eq!(clock.at(0, 10_000), 1502, "nothing at all");
    }
}

//! How fast a body must come.

use std::time::Duration;

/// How fast a client must send a body, while it is the client who is waited for.
#[derive(Clone, Copy, Debug)]
pub struct BodyRateLimits {
    /// The longest pause, and what a body may take beside the time that its length at the least
    /// rate takes.
    pub pause_max: Duration,
    /// The least rate, bytes per second. 0: none.
    pub rate_min: u64,
    /// The longest it may take in all.
    pub total_max: Duration,
}

impl BodyRateLimits {
    /// Returns how much longer a client may be waited for now, after `bytes` of its body have come
    /// and it has been `waited` for in all.
    pub(super) fn allows(&self, bytes: u64, waited: Duration) -> Duration {
        let by_rate = bytes.checked_div(self.rate_min).map_or(Duration::MAX, Duration::from_secs);
        let in_all = self.pause_max.saturating_add(by_rate).min(self.total_max);
        in_all.saturating_sub(waited).min(self.pause_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: BodyRateLimits = BodyRateLimits {
        pause_max: Duration::from_secs(30),
        rate_min: 500,
        total_max: Duration::from_secs(3600),
    };

    /// Returns when a client is given up that sends `bytes` bytes, the first of them at once, each
    /// `every` seconds.
    fn lasts(bytes: u64, every: u64) -> Option<u64> {
        let (mut sent, mut waited) = (bytes, 0);
        while waited < 24 * 3600 {
            let allowed = PACE.allows(sent, Duration::from_secs(waited)).as_secs();
            if allowed < every {
                return Some(waited + allowed);
            }
            (sent, waited) = (sent + bytes, waited + every);
        }
        None
    }

    #[test]
    fn a_body_that_drips_is_given_up_and_one_that_flows_is_not_before_its_time() {
        assert_eq!(lasts(1, 5), Some(30));
        assert_eq!(lasts(1, 29), Some(30));
        // 50 MB at 1 Mbit/s take 400 s.
        assert_eq!(lasts(125_000, 1), Some(3600));
        assert_eq!(lasts(125_000, 31), Some(30), "no pause is longer");
        let none = BodyRateLimits { rate_min: 0, ..PACE };
        assert_eq!(none.allows(1, Duration::from_secs(60)), none.pause_max, "without a least rate");
    }
}

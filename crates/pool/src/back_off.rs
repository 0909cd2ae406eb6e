//! Delays between attempts at what fails.

use std::time::Duration;
use suimon_fleet::workers::BACK_OFF_S_MAX;

/// The longest delay.
const MOST: Duration = Duration::from_secs(BACK_OFF_S_MAX as u64);

/// The delay after a failure: twice as long after each further one, up to a minute.
#[derive(Clone, Copy, Debug)]
pub(super) struct BackOff {
    first: Duration,
    next: Duration,
}

impl BackOff {
    /// Returns one that begins with this delay.
    pub(super) fn new(first: Duration) -> Self {
        BackOff { first, next: first }
    }

    /// Takes note of a failure, and returns how long to wait until the next attempt.
    pub(super) fn fail(&mut self) -> Duration {
        let delay = self.next.min(MOST);
        self.next = 2 * delay;
        delay
    }

    /// Takes note of a success.
    pub(super) fn succeed(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_delay_is_twice_the_one_before_up_to_a_minute() {
        let mut back_off = BackOff::new(Duration::from_secs(1));
        let mut delays = || (0..8).map(|_| back_off.fail().as_secs()).collect::<Vec<_>>();
        assert_eq!(delays(), [1, 2, 4, 8, 16, 32, 60, 60]);
        back_off.succeed();
        assert_eq!(back_off.fail(), Duration::from_secs(1));
    }
}

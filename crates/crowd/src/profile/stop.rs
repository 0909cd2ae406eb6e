//! When so much fails that a run is stopped.

/// Requests that a share is taken of at the least: one failure among the first few is no rate.
const JUDGED_OF_MIN: u64 = 20;

/// Stops a run when more than a share of a service's requests at a point fail.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct StopRule {
    share_max: f64,
}

impl StopRule {
    /// Returns the rule; the share is 0 to 1.
    pub(crate) const fn new(share_max: f64) -> Self {
        StopRule { share_max }
    }

    /// Returns whether `errors` of `ended` requests are too many.
    pub(crate) fn is_broken(self, errors: u64, ended: u64) -> bool {
        errors as f64 > self.share_max * ended.max(JUDGED_OF_MIN) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_failures_at_the_beginning_are_no_rate() {
        let rule = StopRule::new(0.1);
        assert!(!rule.is_broken(1, 1) && !rule.is_broken(2, 2));
        assert!(rule.is_broken(3, 3), "more than a tenth, whatever the next 17 are");
        assert!(!rule.is_broken(10, 100) && rule.is_broken(11, 100));
    }

    #[test]
    fn of_all_none_are_too_many_and_of_none_one_is() {
        assert!(!StopRule::new(1.0).is_broken(1000, 1000));
        assert!(StopRule::new(0.0).is_broken(1, 1000) && !StopRule::new(0.0).is_broken(0, 1000));
    }
}

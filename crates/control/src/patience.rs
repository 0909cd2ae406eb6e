//! How long visitors wait for one answer, learned from those who left.
//!
//! *Law*: patience is the age by which 10 % of those who are still waiting would have left: the first age at
//! which the product-limit estimate of survival,
//!
//! ```text
//! S(t) = Π over ages a ≤ t at which somebody left of (1 − left(a) / still there at a)        (1)
//! ```
//!
//! falls to 0.9. *Signals*: for each request its age when it ended and whether the client had left; those that
//! were served are censored there, which (1) accounts for. *Units*: seconds. *Regimes*: with fewer than
//! [`LEAVERS_MIN`] leavers among the last [`OBSERVATIONS_MAX`] observations, or when S never falls to 0.9, nothing is
//! learned and the assumed value stands. *Source*: Kaplan & Meier 1958; the choice of the 10th percentile is ours.

/// Observations kept; the oldest makes room.
const OBSERVATIONS_MAX: usize = 512;
/// Leavers needed before anything is concluded.
const LEAVERS_MIN: usize = 10;
/// Served requests younger than this say nothing about patience and are not kept, seconds.
const AGE_MIN: f64 = 0.5;
/// Survival at which patience is read off.
const SURVIVAL: f64 = 0.9;

/// Learns patience from ages.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    observations: Vec<(f64, bool)>,
    next: usize,
    unread: bool,
    learned: Option<f64>,
}

suimon_model::saved_struct!(Patience { observations, next, unread, learned }, |it: &Patience| {
    it.observations.len() <= OBSERVATIONS_MAX && it.next < OBSERVATIONS_MAX
});

impl Patience {
    /// Folds in a request that was `age` seconds old when it ended; `left`: the client went away by itself.
    pub fn fold(&mut self, age: f64, left: bool) {
        if !left && age < AGE_MIN {
            return;
        }
        if self.observations.len() < OBSERVATIONS_MAX {
            self.observations.push((age, left));
        } else {
            self.observations[self.next] = (age, left);
            self.next = (self.next + 1) % OBSERVATIONS_MAX;
        }
        // Served requests alone never lower the estimate; sorting for each of them would be work for nothing.
        self.unread |= left || self.learned.is_some();
    }

    /// Works the newest observations into the estimate. Sorts up to [`OBSERVATIONS_MAX`] values: for the tick, not for a request.
    pub fn refresh(&mut self) {
        if self.unread {
            self.unread = false;
            self.learned = self.estimate();
        }
    }

    /// Returns the patience learned, seconds, or `None` as long as too few have left.
    pub fn learned(&self) -> Option<f64> {
        self.learned
    }

    fn estimate(&self) -> Option<f64> {
        let leavers = self.observations.iter().filter(|(_, left)| *left).count();
        if leavers < LEAVERS_MIN {
            return None;
        }
        let mut sorted = self.observations.clone();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut survival = 1.0;
        for (i, (age, left)) in sorted.iter().enumerate() {
            if *left {
                survival *= 1.0 - 1.0 / (sorted.len() - i) as f64;
            }
            // Rounding must not decide: a tenth is reached by a hundred factors near one.
            if survival <= SURVIVAL + 1e-9 {
                return Some(age.max(AGE_MIN));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(observations: impl IntoIterator<Item = (f64, bool)>) -> Option<f64> {
        let mut patience = Patience::default();
        observations.into_iter().for_each(|(age, left)| patience.fold(age, left));
        patience.refresh();
        patience.learned()
    }

    #[test]
    fn a_few_leavers_teach_nothing() {
        assert_eq!(learned((0..9).map(|_| (15.0, true))), None);
    }

    #[test]
    fn everybody_leaving_at_fifteen_seconds_is_a_patience_of_fifteen() {
        let served = (0..200).map(|i| (f64::from(i) * 0.05, false));
        assert_eq!(learned(served.chain((0..40).map(|_| (15.0, true)))), Some(15.0));
    }

    #[test]
    fn quick_answers_do_not_hide_the_leavers() {
        // 400 were served within 2 s; of the 20 who waited on, all left at 10 s. One in twenty of all, all of those who could.
        let served = (0..400).map(|_| (2.0, false));
        assert_eq!(learned(served.chain((0..20).map(|_| (10.0, true)))), Some(10.0));
    }

    #[test]
    fn a_tenth_leaving_early_sets_the_patience_early() {
        let early = (0..30).map(|_| (5.0, true));
        assert_eq!(learned(early.chain((0..170).map(|_| (30.0, true)))), Some(5.0));
    }
}

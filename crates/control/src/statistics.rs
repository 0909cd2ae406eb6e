//! The few statistics the laws need.

use suimon_model::real::ln;

/// An average that forgets: the plain mean at first, exponential with weight `floor` later.
#[derive(Clone, Copy, Debug)]
pub struct Average {
    value: f64,
    count: u64,
    floor: f64,
}

suimon_model::saved_struct!(Average { value, count, floor });

impl Average {
    /// Returns an empty average whose newest value weighs max(`floor`, 1/n). `floor` is above 0 and at most 1.
    pub const fn new(floor: f64) -> Self {
        Average { value: 0.0, count: 0, floor }
    }

    /// Folds in one value.
    pub fn fold(&mut self, value: f64) {
        self.count += 1;
        let weight = self.floor.max(1.0 / self.count as f64);
        self.value += weight * (value - self.value);
    }

    /// Returns the average, or `None` if nothing was folded in.
    pub fn get(&self) -> Option<f64> {
        (self.count > 0).then_some(self.value)
    }

    /// Returns how many values were folded in.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Raises the average to `value` if it is lower.
    pub fn raise(&mut self, value: f64) {
        if self.count > 0 {
            self.value = self.value.max(value);
        }
    }
}

/// How values from a millisecond to hours are spread, slowly forgetting: a histogram of [`Spread::BUCKETS`] buckets, each
/// [`Spread::RATIO`] times as wide as the one before.
///
/// Keeping the newest values instead would be simpler, and wrong: in a lull only long thinkers come back, and the newest are all theirs.
#[derive(Clone, Debug)]
pub struct Spread {
    weights: Vec<f64>,
    total: f64,
    count: u64,
    /// What the newest value weighs; it grows where the old would have to shrink.
    newest: f64,
}

impl Spread {
    /// Buckets: up to 0.001 · 1.1¹⁷⁵ s, some five hours.
    const BUCKETS: usize = 176;
    const RATIO: f64 = 1.1;
    const LEAST: f64 = 0.001;
    /// A value weighs e times less after so many others.
    const MEMORY: f64 = 2000.0;

    /// Folds in one value.
    pub fn fold(&mut self, value: f64) {
        let steps = if value > Self::LEAST { ln(value / Self::LEAST) / ln(Self::RATIO) } else { 0.0 };
        self.weights[(steps as usize).min(Self::BUCKETS - 1)] += self.newest;
        self.total += self.newest;
        self.count += 1;
        self.newest *= 1.0 + 1.0 / Self::MEMORY;
        if self.newest > 1e12 {
            self.weights.iter_mut().for_each(|weight| *weight /= self.newest);
            self.total /= self.newest;
            self.newest = 1.0;
        }
    }

    /// Returns the `q`-quantile (0 to 1), within a tenth, or `None` if nothing was folded in.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let mut left = q.clamp(0.0, 1.0) * self.total;
        let mut low = Self::LEAST;
        let mut last = None;
        for weight in &self.weights {
            if *weight > 0.0 {
                // Within a bucket values are taken to lie evenly.
                let share = (left / weight).clamp(0.0, 1.0);
                last = Some(low * (1.0 + share * (Self::RATIO - 1.0)));
                if left <= *weight {
                    return last;
                }
                left -= weight;
            }
            low *= Self::RATIO;
        }
        last
    }

    /// Returns how many values were folded in.
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl Default for Spread {
    fn default() -> Self {
        Spread { weights: vec![0.0; Self::BUCKETS], total: 0.0, count: 0, newest: 1.0 }
    }
}

suimon_model::saved_struct!(Spread { weights, total, count, newest }, |it: &Spread| it.weights.len()
    == Spread::BUCKETS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_begins_as_the_mean_and_then_forgets() {
        let mut average = Average::new(0.1);
        assert_eq!(average.get(), None);
        average.fold(1.0);
        average.fold(3.0);
        assert_eq!(average.get(), Some(2.0));
        (0..200).for_each(|_| average.fold(10.0));
        assert!((average.get().unwrap() - 10.0).abs() < 1e-6);
    }

    #[test]
    fn quantiles_are_within_a_tenth_and_forget_slowly() {
        let mut spread = Spread::default();
        assert_eq!(spread.quantile(0.5), None);
        (0..1000).for_each(|i| spread.fold(f64::from(i * 617 % 1000) * 0.01));
        for (q, exact) in [(0.1, 1.0), (0.5, 5.0), (0.99, 9.9)] {
            let seen = spread.quantile(q).unwrap();
            assert!((seen / exact - 1.0).abs() < 0.1, "{q}: {seen}");
        }
        (0..60_000).for_each(|_| spread.fold(100.0));
        assert!((spread.quantile(0.01).unwrap() / 100.0 - 1.0).abs() < 0.11);
    }

    #[test]
    fn values_beyond_either_end_are_kept_there() {
        let mut spread = Spread::default();
        [0.0, -1.0, f64::NAN].iter().for_each(|value| spread.fold(*value));
        assert!(spread.quantile(1.0).unwrap() <= 0.0011);
        spread.fold(f64::INFINITY);
        assert!(spread.quantile(1.0).unwrap() > 3600.0);
    }
}

//! Statistics given away as plain values, and begun from such.

use super::{Average, DecayingHistogram, Moments};
use crate::knowledge::{KnownDistribution, KnownMean, Trust, VALUES_MAX};

impl Average {
    /// Returns the mean and how many values it stands for, if there were any.
    pub fn knowledge(&self) -> Option<KnownMean> {
        self.get().map(|value| KnownMean { value, observations: self.count })
    }

    /// Begins anew with what is left of `known`, if anything is.
    pub fn recall(&mut self, known: KnownMean, trust: Trust) {
        if let Some(KnownMean { value, observations }) = trust.in_mean(known) {
            (self.value, self.count) = (value, observations);
        }
    }
}

impl Moments {
    /// Begins anew with a mean and a coefficient of variation.
    pub fn recall(&mut self, mean: KnownMean, variation: f64, trust: Trust) {
        let square = mean.value * mean.value * (1.0 + variation * variation);
        if square.is_finite() {
            self.mean.recall(mean, trust);
            self.square.recall(KnownMean { value: square, ..mean }, trust);
        }
    }
}

impl DecayingHistogram {
    /// Returns how its values are spread.
    pub fn knowledge(&self) -> KnownDistribution {
        let mut low = Self::LEAST;
        let mut shares = vec![];
        for weight in &self.weights {
            if *weight > 0.0 {
                shares.push((low * (1.0 + Self::RATIO) / 2.0, weight / self.total));
            }
            low *= Self::RATIO;
        }
        KnownDistribution { count: self.count, shares }
    }

    /// Begins anew with what is left of `values`.
    pub fn recall(&mut self, values: &KnownDistribution, trust: Trust) {
        let count = trust.observations(values.count, VALUES_MAX);
        let is_sound = |(value, share): &&(f64, f64)| value.is_finite() && *share > 0.0 && share.is_finite();
        let total: f64 = values.shares.iter().filter(is_sound).map(|(_, share)| share).sum();
        if count == 0 || !(total > 0.0 && total.is_finite()) {
            return;
        }
        *self = DecayingHistogram::default();
        for (value, share) in values.shares.iter().filter(is_sound) {
            self.weights[Self::bucket(*value)] += count as f64 * share / total;
        }
        (self.count, self.total) = (count, self.weights.iter().sum());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::Duration;

    const FRESH: fn() -> Trust = || Trust::after(Duration::ZERO);

    #[test]
    fn a_recalled_average_is_soon_outweighed() {
        let mut before = Average::new(0.02);
        (0..10_000).for_each(|_| before.fold(8.0));
        let mut after = Average::new(0.02);
        after.recall(before.knowledge().unwrap(), FRESH());
        assert_eq!((after.get(), after.count()), (Some(8.0), 20));
        (0..60).for_each(|_| after.fold(4.0));
        assert!((after.get().unwrap() - 4.0).abs() < 1.5, "{after:?}");
        after.recall(KnownMean { value: f64::INFINITY, observations: 9 }, FRESH());
        assert!(after.get().unwrap().is_finite(), "nonsense is not taken in");
    }

    #[test]
    fn recalled_values_are_spread_as_they_were() {
        let mut before = DecayingHistogram::default();
        (0..5000).for_each(|n| before.fold(f64::from(n % 100) * 0.1));
        let mut after = DecayingHistogram::default();
        after.recall(&before.knowledge(), FRESH());
        for q in [0.1, 0.5, 0.9, 0.99] {
            let (was, is) = (before.quantile(q).unwrap(), after.quantile(q).unwrap());
            assert!((is / was - 1.0).abs() < 0.11, "{q}: {was} {is}");
        }
        assert_eq!(after.count(), 100);
        (0..400).for_each(|_| after.fold(60.0));
        assert!(after.quantile(0.5).unwrap() > 50.0, "new values soon weigh more");
        for nonsense in [vec![], vec![(f64::NAN, 1.0)], vec![(1.0, f64::NAN), (1.0, -1.0), (2.0, 0.0)]] {
            let mut spread = DecayingHistogram::default();
            spread.recall(&KnownDistribution { count: 50, shares: nonsense }, FRESH());
            assert_eq!(spread.count(), 0);
        }
    }

    #[test]
    fn recalled_moments_keep_mean_and_spread() {
        let mut moments = Moments::new(0.01);
        moments.recall(KnownMean { value: 0.2, observations: 500 }, 0.5, FRESH());
        assert!((moments.mean().unwrap() - 0.2).abs() < 1e-9 && (moments.variation() - 0.5).abs() < 1e-9);
    }
}

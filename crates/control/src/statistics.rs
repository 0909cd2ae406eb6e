//! The few statistics that the laws and the reports need.

mod knowledge;

use suimon_model::Instant;

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
    /// Returns an empty average whose newest value weighs max(`floor`, 1/n). `floor` is above 0 and
    /// at most 1.
    pub const fn new(floor: f64) -> Self {
        Average { value: 0.0, count: 0, floor }
    }

    /// Folds in one value.
    pub fn fold(&mut self, value: f64) {
        self.fold_at_least(value, self.floor);
    }

    /// Folds in one value that weighs max(`floor`, 1/n), whatever others do.
    pub fn fold_at_least(&mut self, value: f64, floor: f64) {
        self.count += 1;
        let weight = floor.max(1.0 / self.count as f64);
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

    /// Makes the average `ratio` times what it is.
    pub fn scale(&mut self, ratio: f64) {
        self.value *= ratio;
    }

    /// Raises the average to `value` if it is lower.
    pub fn raise(&mut self, value: f64) {
        if self.count > 0 {
            self.value = self.value.max(value);
        }
    }
}

/// Mean and spread of values, of which the newest weigh as in an [`Average`].
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    mean: Average,
    square: Average,
}

suimon_model::saved_struct!(Moments { mean, square });

impl Moments {
    /// Returns one without any value. `floor` as in [`Average::new`].
    pub const fn new(floor: f64) -> Self {
        Moments { mean: Average::new(floor), square: Average::new(floor) }
    }

    /// Folds in one value.
    pub fn fold(&mut self, value: f64) {
        self.mean.fold(value);
        self.square.fold(value * value);
    }

    /// Folds in one value as [`Average::fold_at_least`] does.
    pub fn fold_at_least(&mut self, value: f64, floor: f64) {
        self.mean.fold_at_least(value, floor);
        self.square.fold_at_least(value * value, floor);
    }

    /// Returns the mean, or `None` if nothing was folded in.
    pub fn mean(&self) -> Option<f64> {
        self.mean.get()
    }

    /// Returns the standard deviation as a share of the mean; 0 where there is no mean to share.
    pub fn variation(&self) -> f64 {
        match (self.mean.get(), self.square.get()) {
            (Some(mean), Some(square)) if mean > 0.0 => (square - mean * mean).max(0.0).sqrt() / mean,
            _ => 0.0,
        }
    }

    /// Returns how many values were folded in.
    pub fn count(&self) -> u64 {
        self.mean.count()
    }
}

/// How often something happens: a mean over windows, of which the newest weigh as in an
/// [`Average`].
#[derive(Clone, Copy, Debug)]
pub struct RateMeter {
    since: Instant,
    count: u64,
    rate: Average,
}

suimon_model::saved_struct!(RateMeter { since, count, rate });

impl RateMeter {
    /// Length of a window, seconds.
    const WINDOW: f64 = 2.0;
    /// The least weight of the newest window: about two minutes are remembered.
    const WEIGHT_MIN: f64 = 0.03;

    /// Returns one that begins at `now`, of which nothing is known.
    pub const fn new(now: Instant) -> Self {
        RateMeter { since: now, count: 0, rate: Average::new(RateMeter::WEIGHT_MIN) }
    }

    /// Takes note that it happened.
    pub fn note(&mut self) {
        self.count += 1;
    }

    /// Ends the window if it is long enough. For the tick.
    pub fn tick(&mut self, now: Instant) {
        let passed = now.secs_since(self.since);
        if passed >= RateMeter::WINDOW {
            self.rate.fold(self.count as f64 / passed);
            (self.since, self.count) = (now, 0);
        }
    }

    /// Returns how often per second, or `None` as long as no window is over.
    pub fn per_second(&self) -> Option<f64> {
        self.rate.get()
    }
}

/// A distribution of values from a millisecond to hours, slowly forgetting: a histogram of
/// [`DecayingHistogram::BUCKETS`] buckets, each [`DecayingHistogram::RATIO`] times as wide as the
/// one before.
///
/// Keeping the newest values instead would be simpler, and wrong: in a lull only long thinkers come
/// back, and the newest are all theirs.
#[derive(Clone, Debug)]
pub struct DecayingHistogram {
    weights: Vec<f64>,
    total: f64,
    count: u64,
    /// The weight of the newest value; it grows where the old ones would have to shrink.
    newest: f64,
}

impl DecayingHistogram {
    /// Buckets: up to 0.001 · 1.1¹⁷⁵ s, some five hours.
    const BUCKETS: usize = 176;
    const RATIO: f64 = 1.1;
    const LEAST: f64 = 0.001;
    /// The weight of a value falls by a factor of e after this many others.
    const MEMORY: f64 = 2000.0;

    /// Folds in one value.
    pub fn fold(&mut self, value: f64) {
        self.weights[Self::bucket(value)] += self.newest;
        self.total += self.newest;
        self.count += 1;
        self.newest *= 1.0 + 1.0 / Self::MEMORY;
        if self.newest > 1e12 {
            self.weights.iter_mut().for_each(|weight| *weight /= self.newest);
            self.total /= self.newest;
            self.newest = 1.0;
        }
    }

    fn bucket(value: f64) -> usize {
        let steps = if value > Self::LEAST { ln(value / Self::LEAST) / ln(Self::RATIO) } else { 0.0 };
        (steps as usize).min(Self::BUCKETS - 1)
    }

    /// Returns the `q`-quantile (0 to 1), within a tenth, or `None` if nothing was folded in.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let mut left = q.clamp(0.0, 1.0) * self.total;
        let mut low = Self::LEAST;
        let mut last = None;
        for weight in &self.weights {
            if *weight > 0.0 {
                // Values are assumed to lie evenly within a bucket.
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

    /// Returns mean and coefficient of variation, each bucket's values assumed to lie in its
    /// middle, or `None` if nothing was folded in.
    pub fn mean_and_variation(&self) -> Option<(f64, f64)> {
        let (mut low, mut sum, mut squares) = (Self::LEAST, 0.0, 0.0);
        for weight in &self.weights {
            let middle = low * (1.0 + Self::RATIO) / 2.0;
            sum += weight * middle;
            squares += weight * middle * middle;
            low *= Self::RATIO;
        }
        let mean = sum / self.total;
        (self.count > 0).then(|| (mean, (squares / self.total - mean * mean).max(0.0).sqrt() / mean))
    }

    /// Returns how many values were folded in.
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl Default for DecayingHistogram {
    fn default() -> Self {
        DecayingHistogram { weights: vec![0.0; Self::BUCKETS], total: 0.0, count: 0, newest: 1.0 }
    }
}

suimon_model::saved_struct!(DecayingHistogram { weights, total, count, newest }, |it: &DecayingHistogram| it
    .weights
    .len()
    == DecayingHistogram::BUCKETS);

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
    fn moments_tell_how_far_values_lie_apart() {
        let mut moments = Moments::new(0.01);
        assert_eq!((moments.mean(), moments.variation()), (None, 0.0));
        (0..100).for_each(|n| moments.fold(if n % 2 == 0 { 1.0 } else { 3.0 }));
        assert!((moments.mean().unwrap() - 2.0).abs() < 1e-9 && (moments.variation() - 0.5).abs() < 1e-9);
        let mut even = Moments::new(0.01);
        (0..100).for_each(|_| even.fold(0.3));
        assert!(even.variation() < 1e-6, "rounding is no spread: {}", even.variation());
    }

    #[test]
    fn a_pace_is_known_after_a_window_and_follows_what_happens() {
        let at = |seconds: f64| Instant::ORIGIN + suimon_model::seconds(seconds);
        let mut pace = RateMeter::new(at(0.0));
        pace.note();
        pace.tick(at(1.0));
        assert_eq!(pace.per_second(), None);
        pace.note();
        pace.tick(at(2.0));
        assert_eq!(pace.per_second(), Some(1.0));
        for window in 2..400 {
            (0..10).for_each(|_| pace.note());
            pace.tick(at(2.0 * f64::from(window)));
        }
        assert!((pace.per_second().unwrap() - 5.0).abs() < 0.01);
    }

    #[test]
    fn quantiles_are_within_a_tenth_and_forget_slowly() {
        let mut spread = DecayingHistogram::default();
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
    fn mean_and_variation_are_within_a_tenth() {
        let mut spread = DecayingHistogram::default();
        assert_eq!(spread.mean_and_variation(), None);
        (0..1000).for_each(|n| spread.fold(if n % 2 == 0 { 1.0 } else { 3.0 }));
        let (mean, variation) = spread.mean_and_variation().unwrap();
        assert!((mean / 2.0 - 1.0).abs() < 0.1 && (variation / 0.5 - 1.0).abs() < 0.1, "{mean} {variation}");
    }

    #[test]
    fn values_beyond_either_end_are_kept_there() {
        let mut spread = DecayingHistogram::default();
        [0.0, -1.0, f64::NAN].iter().for_each(|value| spread.fold(*value));
        assert!(spread.quantile(1.0).unwrap() <= 0.0011);
        spread.fold(f64::INFINITY);
        assert!(spread.quantile(1.0).unwrap() > 3600.0);
    }
}

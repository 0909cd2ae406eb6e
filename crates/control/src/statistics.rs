//! The few statistics the laws need, and those who ask what was learned.

use suimon_model::Instant;

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

/// Mean and spread of values, of which the newest weigh as in an [`Average`].
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    mean: Average,
    square: Average,
}

suimon_model::saved_struct!(Moments { mean, square });

impl Moments {
    /// Returns what is known of no value. `floor` as in [`Average::new`].
    pub const fn new(floor: f64) -> Self {
        Moments { mean: Average::new(floor), square: Average::new(floor) }
    }

    /// Folds in one value.
    pub fn fold(&mut self, value: f64) {
        self.mean.fold(value);
        self.square.fold(value * value);
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

/// How often something happens: a mean over windows, of which the newest weigh as in an [`Average`].
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    since: Instant,
    count: u64,
    rate: Average,
}

suimon_model::saved_struct!(Pace { since, count, rate });

impl Pace {
    /// Length of a window, seconds.
    const WINDOW: f64 = 2.0;
    /// The least weight of the newest window: about two minutes are remembered.
    const WEIGHT_MIN: f64 = 0.03;

    /// Returns what is known at `now`: nothing.
    pub const fn new(now: Instant) -> Self {
        Pace { since: now, count: 0, rate: Average::new(Pace::WEIGHT_MIN) }
    }

    /// Takes note that it happened.
    pub fn note(&mut self) {
        self.count += 1;
    }

    /// Ends the window if it is long enough. For the tick.
    pub fn tick(&mut self, now: Instant) {
        let passed = now.secs_since(self.since);
        if passed >= Pace::WINDOW {
            self.rate.fold(self.count as f64 / passed);
            (self.since, self.count) = (now, 0);
        }
    }

    /// Returns how often a second, or `None` as long as no window is over.
    pub fn per_second(&self) -> Option<f64> {
        self.rate.get()
    }
}

/// The last [`Recent::MAX`] values, for quantiles.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    values: Vec<f64>,
    next: usize,
}

suimon_model::saved_struct!(Recent { values, next }, |it: &Recent| it.values.len() <= Recent::MAX
    && it.next < Recent::MAX);

impl Recent {
    /// The most values kept.
    pub const MAX: usize = 256;

    /// Folds in one value; the oldest makes room.
    pub fn fold(&mut self, value: f64) {
        if self.values.len() < Self::MAX {
            self.values.push(value);
        } else {
            self.values[self.next] = value;
            self.next = (self.next + 1) % Self::MAX;
        }
    }

    /// Returns the values kept, the least first.
    pub fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    }

    /// Returns the `q`-quantile (0 to 1) of the values kept, or `None` if there are none.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let sorted = self.sorted();
        let last = sorted.len().checked_sub(1)?;
        Some(sorted[(q.clamp(0.0, 1.0) * last as f64).round() as usize])
    }

    /// Returns how many values are kept.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether no value is kept.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

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
        let mut pace = Pace::new(at(0.0));
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
    fn quantiles_are_of_the_newest_values_only() {
        let mut recent = Recent::default();
        assert_eq!(recent.quantile(0.5), None);
        (0..1000).for_each(|i| recent.fold(f64::from(i)));
        assert_eq!(recent.len(), Recent::MAX);
        assert_eq!(recent.quantile(0.0), Some(744.0));
        assert_eq!(recent.quantile(1.0), Some(999.0));
    }
}

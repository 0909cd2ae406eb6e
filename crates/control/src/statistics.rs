//! The few statistics the laws need.

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
    fn quantiles_are_of_the_newest_values_only() {
        let mut recent = Recent::default();
        assert_eq!(recent.quantile(0.5), None);
        (0..1000).for_each(|i| recent.fold(f64::from(i)));
        assert_eq!(recent.len(), Recent::MAX);
        assert_eq!(recent.quantile(0.0), Some(744.0));
        assert_eq!(recent.quantile(1.0), Some(999.0));
    }
}

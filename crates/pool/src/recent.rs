//! The last few of some numbers, and their median.

use std::collections::VecDeque;

/// How many are kept.
const KEPT_MAX: usize = 16;

#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    values: VecDeque<f64>,
}

impl Recent {
    /// Returns the median; `None`: there is no number yet.
    pub(super) fn median(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.values.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}

impl Extend<f64> for Recent {
    fn extend<T: IntoIterator<Item = f64>>(&mut self, values: T) {
        self.values.extend(values);
        self.values.drain(..self.values.len().saturating_sub(KEPT_MAX));
    }
}

//! Exact statistics of values that are all in memory.

/// Returns the value below which `share` (0 to 1) of the values lie, interpolated linearly between
/// two of them; NaN if there are none.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// Returns the median, which a few disturbed rounds do not move.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns the mean; NaN if there are none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean, minimum and maximum of some values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeanAndRange {
    /// The mean.
    pub mean: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl MeanAndRange {
    /// Returns mean, minimum and maximum of the values; `None` if there are none.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<MeanAndRange> {
        let (mut count, mut sum, mut min, mut max) = (0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            (count, sum, min, max) = (count + 1.0, sum + value, value.min(min), value.max(max));
        }
        (count > 0.0).then(|| MeanAndRange { mean: sum / count, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert!((median(&values) - 2.5).abs() < 1e-12);
        assert!((quantile(&values, 0.0) - 1.0).abs() < 1e-12);
        assert!((quantile(&values, 1.0) - 4.0).abs() < 1e-12);
        assert!(median(&[]).is_nan());
        assert!((mean(&values) - 2.5).abs() < 1e-12 && mean(&[]).is_nan());
    }

    #[test]
    fn a_spread_is_of_what_is_there() {
        assert_eq!(MeanAndRange::of([].into_iter()), None);
        let spread = MeanAndRange { mean: 2.0, min: 1.0, max: 3.0 };
        assert_eq!(MeanAndRange::of([3.0, 1.0, 2.0].into_iter()), Some(spread));
    }
}

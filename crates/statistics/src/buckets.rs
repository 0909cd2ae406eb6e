//! Counts up to given bounds: what Prometheus calls a histogram.

/// Counts at or below each bound, ascending; the last bound is infinite.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Buckets(Vec<(f64, f64)>);

impl Buckets {
    /// Returns the buckets with these counts, not cumulated. There is one count more than bounds:
    /// the last is for values beyond all of them.
    pub fn new(bounds: &[f64], counts: &[u64]) -> Self {
        let bounds = bounds.iter().copied().chain([f64::INFINITY]);
        let mut sum = 0;
        let cumulated = counts.iter().map(|count| {
            sum += count;
            sum as f64
        });
        Buckets(bounds.zip(cumulated).collect())
    }

    /// Adds `count` values at or below `bound`.
    pub fn add(&mut self, bound: f64, count: f64) {
        match self.0.binary_search_by(|(known, _)| known.total_cmp(&bound)) {
            Ok(place) => self.0[place].1 += count,
            Err(place) => self.0.insert(place, (bound, count)),
        }
    }

    /// Returns what was added since `before`.
    pub fn since(&self, before: &Buckets) -> Self {
        Buckets(self.0.iter().map(|(bound, count)| (*bound, count - before.up_to(*bound))).collect())
    }

    /// Returns how many values there are.
    pub fn count(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, count)| *count)
    }

    /// Returns how many values are at or below `bound`, or else at or below the next lower bound
    /// that exists.
    pub fn up_to(&self, bound: f64) -> f64 {
        self.0.iter().take_while(|(known, _)| *known <= bound).last().map_or(0.0, |(_, count)| *count)
    }

    /// Returns the value below which `share` (0 to 1) of the values lie, interpolated linearly in
    /// its bucket. Returns the last finite bound for values beyond it, and NaN if there are none.
    pub fn quantile(&self, share: f64) -> f64 {
        let rank = share * self.count();
        let (mut from, mut below) = (0.0, 0.0);
        for (bound, count) in &self.0 {
            if *count >= rank && *count > below {
                let part = (rank - below) / (count - below);
                return if bound.is_finite() { from + (bound - from) * part } else { from };
            }
            (from, below) = (*bound, *count);
        }
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_and_what_was_before_is_taken_away() {
        let mut all = Buckets::new(&[0.1], &[4, 2]);
        all.add(0.1, 1.0);
        all.add(f64::INFINITY, 4.0);
        assert_eq!(all, Buckets(vec![(0.1, 5.0), (f64::INFINITY, 10.0)]));
        assert!((all.up_to(0.2) - 5.0).abs() < 1e-12 && all.up_to(0.05) < 1e-12);
        assert!(all.since(&all).count() < 1e-12);
        assert_eq!(all.since(&Buckets::default()), all);
    }

    #[test]
    fn quantiles_lie_within_their_bucket() {
        let all = Buckets::new(&[0.1], &[5, 5]);
        assert!((all.quantile(0.25) - 0.05).abs() < 1e-12);
        assert!((all.quantile(0.9) - 0.1).abs() < 1e-12);
        assert!(Buckets::default().quantile(0.5).is_nan());
    }
}

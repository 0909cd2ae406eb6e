//! Durations in logarithmic buckets: 64 per doubling, so a percentile is at most 1.6 % off.

use suimon_model::Duration;

/// log2 of the buckets per doubling.
const FINE_BITS: u32 = 6;
const FINE: u64 = 1 << FINE_BITS;
/// Values from 2^40 µs on (12 days) share the last bucket.
const VALUE_MAX: u64 = (1 << 40) - 1;

/// Counts durations in bounded memory, whatever is recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    /// Grows to the highest bucket in use; at most 2,240.
    counts: Vec<u64>,
    count: u64,
    sum: Duration,
    min: Duration,
    max: Duration,
}

/// A bucket that is not empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bin {
    /// The lowest duration in it.
    pub from: Duration,
    /// The first duration above it.
    pub to: Duration,
    /// How many.
    pub count: u64,
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&mut self, time: Duration) {
        let index = index_of(micros(time));
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.min = if self.count == 0 { time } else { self.min.min(time) };
        self.max = self.max.max(time);
        self.count += 1;
        self.sum = self.sum.saturating_add(time);
    }

    /// Adds everything `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Returns how many were counted.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the exact mean; `None` if empty.
    pub fn mean(&self) -> Option<Duration> {
        (self.count > 0).then(|| self.sum.div_f64(self.count as f64))
    }

    /// Returns the exact minimum; `None` if empty.
    pub fn min(&self) -> Option<Duration> {
        (self.count > 0).then_some(self.min)
    }

    /// Returns the exact maximum; `None` if empty.
    pub fn max(&self) -> Option<Duration> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns the duration that a share `quantile` (0 to 1) of them does not exceed; `None` if
    /// empty.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        let rank = ((quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let index = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        let middle = (low_edge(index) + low_edge(index + 1)) / 2;
        Some(Duration::from_micros(middle).clamp(self.min, self.max))
    }

    /// Returns the same in seconds.
    pub fn quantile_s(&self, quantile: f64) -> Option<f64> {
        self.quantile(quantile).map(|time| time.as_secs_f64())
    }

    /// Returns the non-empty buckets in order, each `merge` neighbours combined (a power of two up
    /// to 64 gives 64 ÷ `merge` bins per doubling).
    pub fn bins(&self, merge: usize) -> Vec<Bin> {
        let merge = merge.clamp(1, FINE as usize);
        let edge = |index: usize| Duration::from_micros(low_edge(index));
        let groups = self.counts.chunks(merge).enumerate();
        groups
            .map(|(i, group)| Bin {
                from: edge(i * merge),
                to: edge((i + 1) * merge),
                count: group.iter().sum(),
            })
            .filter(|bin| bin.count > 0)
            .collect()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min(VALUE_MAX)
}

/// Values below 2·FINE have a bucket each; above that, each doubling has FINE buckets.
fn index_of(micros: u64) -> usize {
    let exponent = 63 - (micros | 1).leading_zeros();
    let shift = exponent.saturating_sub(FINE_BITS);
    (u64::from(shift) * FINE + (micros >> shift)) as usize
}

fn low_edge(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * FINE {
        return index;
    }
    let shift = index / FINE - 1;
    (index % FINE + FINE) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn every_value_lies_between_its_buckets_edges() {
        let mut value = 1u64;
        while value < VALUE_MAX {
            for v in [value - 1, value, value + 1] {
                let index = index_of(v);
                assert!(low_edge(index) <= v && v < low_edge(index + 1), "{v} in {index}");
            }
            value = value * 3 / 2 + 1;
        }
        assert!(index_of(VALUE_MAX) < 2_240);
    }

    #[test]
    fn percentiles_are_within_two_percent() {
        let mut histogram = Histogram::default();
        (1..=10_000).for_each(|i| histogram.record(ms(i)));
        for quantile in [0.01, 0.5, 0.9, 0.99, 0.999] {
            let seen = histogram.quantile(quantile).unwrap().as_secs_f64();
            let exact = quantile * 10.0;
            assert!((seen / exact - 1.0).abs() < 0.02, "{quantile}: {seen} for {exact}");
        }
        assert_eq!(histogram.quantile(1.0), Some(ms(10_000)));
        assert_eq!(histogram.min(), Some(ms(1)));
        assert_eq!(histogram.mean().unwrap().as_micros(), 5_000_500);
    }

    #[test]
    fn nothing_has_no_percentile() {
        let nothing = Histogram::default();
        assert_eq!(nothing.quantile(0.5), None);
        assert_eq!((nothing.mean(), nothing.min(), nothing.max()), (None, None, None));
        assert!(nothing.bins(8).is_empty());
    }

    #[test]
    fn one_value_is_its_own_percentile() {
        let mut histogram = Histogram::default();
        histogram.record(ms(1234));
        assert_eq!(histogram.quantile(0.0), Some(ms(1234)));
        assert_eq!(histogram.quantile(0.99), Some(ms(1234)));
    }

    #[test]
    fn bins_hold_everything_and_do_not_overlap() {
        let mut histogram = Histogram::default();
        for time in [Duration::ZERO, ms(3), ms(3), ms(900), Duration::from_secs(90), Duration::MAX] {
            histogram.record(time);
        }
        for merge in [1, 8, 64] {
            let bins = histogram.bins(merge);
            assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), 6);
            assert!(bins.windows(2).all(|pair| pair[0].to <= pair[1].from));
        }
    }

    #[test]
    fn merging_is_recording_both() {
        let (mut left, mut right, mut both) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for i in 0..100 {
            let time = ms(i * i);
            if i % 3 == 0 {
                left.record(time);
            } else {
                right.record(time);
            }
            both.record(time);
        }
        left.merge(&right);
        left.merge(&Histogram::default());
        assert_eq!(left, both);
    }
}

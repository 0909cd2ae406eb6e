//! Random numbers that are the same again for the same seed, on every machine.
//!
//! Generator: xoshiro256++ (Blackman & Vigna, 2019), its state filled by `SplitMix64` as its
//! authors advise.

use crate::real::{cos, exp, ln};

/// A seeded source of random numbers. `Clone` copies its state, so a run can be snapshotted.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

crate::saved_struct!(Rng { state });

impl Rng {
    /// Returns the source of `seed`. Equal seeds give equal streams.
    pub fn new(seed: u64) -> Self {
        let mut mix = seed;
        Rng { state: std::array::from_fn(|_| split_mix(&mut mix)) }
    }

    /// Returns a source of its own for `stream`, so that drawing more in one place never changes
    /// another.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut mix = stream;
        Rng::new(seed ^ split_mix(&mut mix))
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let out = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c1, d1) = (c ^ a, d ^ b);
        self.state = [a ^ d1, b ^ c1, c1 ^ (b << 17), d1.rotate_left(45)];
        out
    }

    /// Returns a number in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns a number in [`low`, `high`).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Returns an index below `n`. `n` must be above zero.
    pub fn below(&mut self, n: usize) -> usize {
        debug_assert!(n > 0, "an index below zero does not exist");
        // The bias of the multiply-shift is below n / 2^64.
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Returns true with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Returns an exponential number with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * ln(1.0 - self.uniform())
    }

    /// Returns a standard normal number (Box–Muller, one of the pair).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * ln(1.0 - self.uniform())).sqrt();
        radius * cos(std::f64::consts::TAU * self.uniform())
    }

    /// Returns a lognormal number with the given mean and coefficient of variation.
    pub fn lognormal(&mut self, mean: f64, cv: f64) -> f64 {
        if cv <= 0.0 || mean <= 0.0 {
            return mean;
        }
        let variance = ln(1.0 + cv * cv);
        exp(ln(mean) - variance / 2.0 + variance.sqrt() * self.normal())
    }

    /// Returns an index drawn with the given weights, or `None` if they add up to nothing.
    pub fn weighted(&mut self, weights: &[f64]) -> Option<usize> {
        let total: f64 = weights.iter().filter(|w| **w > 0.0).sum();
        if total <= 0.0 {
            return None;
        }
        let mut left = self.uniform() * total;
        let mut last = None;
        for (i, w) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            last = Some(i);
            left -= w;
            if left < 0.0 {
                break;
            }
        }
        last
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_and_deviation(mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let n = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let x = draw();
            sum += x;
            squares += x * x;
        }
        let mean = sum / f64::from(n);
        (mean, (squares / f64::from(n) - mean * mean).sqrt())
    }

    #[test]
    fn equal_seeds_give_equal_streams_and_streams_differ() {
        let draw = |mut rng: Rng| (0..4).map(|_| rng.bits()).collect::<Vec<_>>();
        assert_eq!(draw(Rng::new(7)), draw(Rng::new(7)));
        assert_ne!(draw(Rng::new(7)), draw(Rng::new(8)));
        assert_ne!(draw(Rng::stream(7, 1)), draw(Rng::stream(7, 2)));
    }

    #[test]
    fn distributions_have_their_declared_moments() {
        let mut rng = Rng::new(11);
        let (mean, deviation) = mean_and_deviation(|| rng.lognormal(0.4, 0.5));
        assert!((mean - 0.4).abs() < 0.005 && (deviation - 0.2).abs() < 0.01, "{mean} {deviation}");
        let (mean, deviation) = mean_and_deviation(|| rng.exponential(3.0));
        assert!((mean - 3.0).abs() < 0.05 && (deviation - 3.0).abs() < 0.1, "{mean} {deviation}");
        let (mean, deviation) = mean_and_deviation(|| rng.uniform());
        assert!((mean - 0.5).abs() < 0.005 && (deviation - 12f64.sqrt().recip()).abs() < 0.005);
    }

    #[test]
    fn weights_of_nothing_draw_nothing() {
        let mut rng = Rng::new(1);
        assert_eq!(rng.weighted(&[]), None);
        assert_eq!(rng.weighted(&[0.0, -1.0]), None);
        assert_eq!(rng.weighted(&[0.0, 2.0, 0.0]), Some(1));
    }
}

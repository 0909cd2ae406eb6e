//! The opening lottery: numbers drawn before the opening become ranks, by a keyed permutation.
//!
//! A Feistel network over the smallest even number of bits that holds all of them, walked along its
//! cycle until the rank is one of them (Black & Rogaway, CT-RSA 2002): a bijection for each seed,
//! with nothing stored but the seed. An operator who publishes a hash of the seed before the first
//! number is drawn, and the seed after the opening, cannot choose who is first: anybody can compute
//! every rank again.

/// Rounds of the network.
const ROUNDS: u64 = 6;

/// A permutation of the numbers `from .. to`; the others keep theirs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lottery {
    seed: [u64; 2],
    from: u64,
    to: u64,
}

suimon_model::saved_struct!(Lottery { seed, from, to }, |it: &Lottery| it.from <= it.to);

impl Lottery {
    /// Returns the permutation of `from .. to` that this seed gives.
    pub fn new(seed: [u64; 2], from: u64, to: u64) -> Self {
        Lottery { seed, from, to: to.max(from) }
    }

    /// Returns the seed.
    pub fn seed(&self) -> [u64; 2] {
        self.seed
    }

    /// Returns the first number that is permuted, and the first behind them.
    pub fn range(&self) -> (u64, u64) {
        (self.from, self.to)
    }

    /// Returns the rank of `number`.
    pub fn rank(&self, number: u64) -> u64 {
        if number < self.from || number >= self.to {
            return number;
        }
        let numbers = self.to - self.from;
        let bits = u64::BITS - (numbers - 1).leading_zeros();
        let half = bits.div_ceil(2).max(1);
        // The network's range is at most four times as many, so four steps are enough on average;
        // the cycle leads back to `number` at the latest.
        let mut rank = self.once(number - self.from, half);
        while rank >= numbers {
            rank = self.once(rank, half);
        }
        self.from + rank
    }

    fn once(&self, number: u64, half: u32) -> u64 {
        let mask = (1 << half) - 1;
        let (mut left, mut right) = (number >> half & mask, number & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ (self.scramble(round, right) & mask));
        }
        left << half | right
    }

    /// Returns a number that reveals nothing of `half` without the seed: three rounds of a 64-bit
    /// finaliser, a part of the seed folded in after each.
    fn scramble(&self, round: u64, half: u64) -> u64 {
        let mut word = half ^ self.seed[0].wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for key in [self.seed[1], self.seed[0].rotate_left(32), self.seed[1].rotate_left(17)] {
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word = (word ^ (word >> 31)) ^ key;
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn every_number_has_one_rank_and_every_rank_one_number(seed in any::<[u64; 2]>(), from in 0_u64..100, numbers in 0_u64..3000) {
            let lottery = Lottery::new(seed, from, from + numbers);
            let ranks: BTreeSet<u64> = (from..from + numbers).map(|number| lottery.rank(number)).collect();
            prop_assert!(ranks.iter().copied().eq(from..from + numbers));
            prop_assert!((0..from).chain(from + numbers..from + numbers + 10).all(|number| lottery.rank(number) == number));
        }
    }

    #[test]
    fn early_numbers_are_no_better_than_late_ones() {
        // Of 1,000 numbers the first hundred over 400 seeds: the mean rank of a fair lot is 499.5,
        // that of this many is within 1.5 of it at one standard deviation.
        let mut sum = 0;
        for seed in 0..400 {
            let lottery = Lottery::new([seed, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)], 0, 1000);
            sum += (0..100).map(|number| lottery.rank(number)).sum::<u64>();
        }
        let mean = sum as f64 / 40_000.0;
        assert!((mean - 499.5).abs() < 6.0, "{mean}");
    }

    #[test]
    fn the_order_is_another_for_another_seed() {
        let [one, other] = [1, 2].map(|seed| Lottery::new([seed, 0], 0, 10_000));
        let same = (0..10_000).filter(|number| one.rank(*number) == other.rank(*number)).count();
        assert!(same < 10, "chance alone leaves one of them: {same}");
    }
}

//! Which lane has the next turn.
//!
//! *Law*. Stride scheduling (Waldspurger & Weihl, 1995): each lane has a pass, next is the
//! non-empty lane with the least pass, and its pass then grows by 1/weight. Over time lanes with
//! people in them get turns in proportion to their weights, and each of them its share of all
//! weights at least: that is the floor of the normal lane. A lane that was empty begins where the
//! others are, so nothing is saved up.

use crate::lane::{LANES, Lane};

/// Passes of all lanes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shares {
    weights: [f64; LANES],
    virtual_times: [f64; LANES],
    /// The pass of the last turn.
    reached: f64,
}

suimon_model::saved_struct!(Shares { weights, virtual_times, reached });

impl Shares {
    /// Returns shares by these weights, each above 0, by [`Lane::index`].
    pub const fn new(weights: [f64; LANES]) -> Self {
        Shares { weights, virtual_times: [0.0; LANES], reached: 0.0 }
    }

    /// Returns the lane whose turn it is among those that are not empty by `has`.
    pub fn next(&self, has: impl Fn(Lane) -> bool) -> Option<Lane> {
        let there = Lane::ALL.into_iter().filter(|lane| has(*lane));
        there.min_by(|a, b| self.virtual_time(*a).total_cmp(&self.virtual_time(*b)))
    }

    /// Takes note that a visitor of `lane` had a turn.
    pub fn took(&mut self, lane: Lane) {
        self.reached = self.virtual_time(lane);
        self.virtual_times[lane.index()] = self.reached + 1.0 / self.weights[lane.index()];
    }

    /// Returns the share of turns of `lane` where `has` says which others are not empty; 0 if it is
    /// empty itself.
    pub fn share(&self, lane: Lane, has: impl Fn(Lane) -> bool) -> f64 {
        let weight = |lane: &Lane| self.weights[lane.index()];
        let all: f64 = Lane::ALL.iter().filter(|lane| has(**lane)).map(weight).sum();
        if has(lane) { weight(&lane) / all } else { 0.0 }
    }

    fn virtual_time(&self, lane: Lane) -> f64 {
        self.virtual_times[lane.index()].max(self.reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(shares: &mut Shares, count: usize, has: impl Fn(Lane) -> bool + Copy) -> [usize; LANES] {
        let mut turns = [0; LANES];
        for _ in 0..count {
            let lane = shares.next(has).expect("somebody is there");
            shares.took(lane);
            turns[lane.index()] += 1;
        }
        turns
    }

    #[test]
    fn turns_are_shared_by_weight_and_the_normal_lane_has_its_floor() {
        let mut shares = Shares::new([2.0, 2.0, 5.0, 1.0]);
        assert_eq!(turns(&mut shares, 1000, |_| true), [200, 200, 500, 100]);
        assert!((shares.share(Lane::Normal, |_| true) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_lane_alone_has_every_turn() {
        let mut shares = Shares::new([2.0, 2.0, 5.0, 1.0]);
        assert_eq!(turns(&mut shares, 100, |lane| lane == Lane::Crawlers), [0, 0, 0, 100]);
        assert_eq!(shares.next(|_| false), None);
    }

    #[test]
    fn nothing_is_saved_up_by_staying_away() {
        let mut shares = Shares::new([1.0, 1.0, 1.0, 1.0]);
        turns(&mut shares, 1000, |lane| lane == Lane::Normal);
        let turns = turns(&mut shares, 100, |lane| matches!(lane, Lane::Normal | Lane::Invited));
        assert!((49..=51).contains(&turns[Lane::Invited.index()]), "{turns:?}");
    }
}

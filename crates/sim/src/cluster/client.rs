//! A client that fetches the files of a page view.

use super::PageViews;
use suimon_model::real::{exp, ln};
use suimon_model::{Instant, Rng};

/// A page view under way.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) began: Instant,
    /// Files that it still has to ask for, and those that it has got.
    pub(super) left: u32,
    pub(super) got: u32,
    /// Whether its connection stays open.
    pub(super) keeps: bool,
    /// The node of its connection.
    pub(super) node: Option<usize>,
    rng: Rng,
}

impl Client {
    pub(super) fn new(now: Instant, views: &PageViews, mut rng: Rng) -> Self {
        let (fewest, most) = views.files;
        let left = fewest + rng.below((most - fewest + 1) as usize) as u32;
        let keeps = rng.chance(views.kept);
        Client { began: now, left, got: 0, keeps, node: None, rng }
    }

    /// Returns the time of the next file on the processor, seconds.
    pub(super) fn next_file(&mut self, views: &PageViews) -> f64 {
        self.left -= 1;
        if self.rng.chance(views.dynamic) {
            let (low, high) = views.dynamic_s;
            exp(self.rng.between(ln(low), ln(high)))
        } else {
            self.rng.exponential(views.static_s)
        }
    }
}

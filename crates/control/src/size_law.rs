//! The laws of how many workers of a pool are resident: one row each, and one front.

use crate::residents::{ResidentMove, ResidentParams, ResidentSample, Residents};
use crate::spare_rule::{DynamicParams, SpareRule};
use suimon_model::Instant;

suimon_model::choices! {
    /// How the number of resident workers is found.
    pub enum SizeLawKind {
        /// By what they complete.
        Measured = 0, "measured", "the number that completes the most requests, found by trials";
        /// The paper's rule of idle workers.
        Seed = 1, "seed", "the paper's rule: fewer than 5 idle, 1, 2, 4, 8, 16 more a second; more than 10 idle, one fewer";
        /// The rule of idle workers of `pm = dynamic`.
        Dynamic(params: DynamicParams) = 2, "dynamic", "php-fpm's rule: spare workers between two numbers";
        /// A number.
        Fixed(workers: u32) = 3, "fixed", "always as many";
    }
}

/// The law of one pool.
#[derive(Clone, Debug)]
pub enum SizeLaw {
    /// By what they complete.
    Measured(Box<Residents>),
    /// By how many are idle.
    Spare(SpareRule),
    /// A number.
    Fixed(u32),
}

impl SizeLaw {
    /// Returns the law of a pool. Of `params`, the others than [`SizeLawKind::Measured`] use `most`
    /// and, the paper's, `initial`.
    pub fn new(kind: SizeLawKind, params: ResidentParams) -> Self {
        match kind {
            SizeLawKind::Measured => SizeLaw::Measured(Box::new(Residents::new(params))),
            SizeLawKind::Seed => SizeLaw::Spare(SpareRule::seed(params.initial, params.most)),
            SizeLawKind::Dynamic(dynamic) => SizeLaw::Spare(SpareRule::dynamic(dynamic, params.most)),
            SizeLawKind::Fixed(workers) => SizeLaw::Fixed(workers.clamp(1, params.most.max(1))),
        }
    }

    /// Returns how many should be resident.
    pub fn wanted(&self) -> u32 {
        match self {
            SizeLaw::Measured(law) => law.wanted(),
            SizeLaw::Spare(rule) => rule.wanted(),
            SizeLaw::Fixed(workers) => *workers,
        }
    }

    /// Returns the number that was found best, if the law looks for one and has found it.
    pub fn learned(&self) -> Option<u32> {
        match self {
            SizeLaw::Measured(law) => law.learned(),
            SizeLaw::Spare(_) | SizeLaw::Fixed(_) => None,
        }
    }

    /// Takes note of what happened in the `passed` seconds before `now`, and returns the new number,
    /// if it changes. To be called once a second.
    pub fn on_tick(&mut self, now: Instant, passed: f64, sample: &ResidentSample) -> Option<ResidentMove> {
        match self {
            SizeLaw::Measured(law) => law.on_tick(now, passed, sample),
            SizeLaw::Spare(rule) => rule.on_tick(sample),
            SizeLaw::Fixed(_) => None,
        }
    }
}

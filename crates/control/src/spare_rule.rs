//! Rules that keep some workers idle, for comparison: the paper's, and that of php-fpm's
//! `pm = dynamic`.
//!
//! *Law*, once a second, with i idle workers:
//!
//! ```text
//! i < i_min      k more, and k doubles up to k_max; k = 1 at first, and after any other second       (1)
//! i > i_max      one fewer                                                                           (2)
//!                paper (P4)                          php-fpm
//! i_min, i_max   5, 10                               min_spare_servers, max_spare_servers
//! k_max          16                                  32
//! k more         as it is                            at most i_min − i, and max_children in all
//! i counts       idle and starting (its starts are   idle
//!                forks, which are idle at once)
//! ```
//!
//! *Signals*: idle workers. *Units*: workers. *Regimes*: overloaded, none is idle and the rule grows to
//! the most, whether that helps or not: this is what it is compared for. *Limits*: 1 to `most`.
//! *Source*: P4; `fpm_process_ctl.c` of PHP.

use crate::residents::{ResidentMove, ResidentReason, ResidentSample};

/// What php-fpm's rule is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DynamicParams {
    /// `pm.start_servers`.
    pub start: u32,
    /// `pm.min_spare_servers`.
    pub spare_min: u32,
    /// `pm.max_spare_servers`.
    pub spare_max: u32,
    /// `pm.max_children`.
    pub most: u32,
}

suimon_model::saved_struct!(DynamicParams { start, spare_min, spare_max, most });

impl Default for DynamicParams {
    /// What Debian ships.
    fn default() -> Self {
        DynamicParams { start: 2, spare_min: 1, spare_max: 3, most: 5 }
    }
}

/// A rule of idle workers, of one pool.
#[derive(Clone, Debug)]
pub struct SpareRule {
    wanted: u32,
    most: u32,
    idle_min: u32,
    idle_max: u32,
    /// k of (1), and the most of it.
    at_once: u32,
    at_once_max: u32,
    is_seed: bool,
}

impl SpareRule {
    /// Returns the paper's rule.
    pub fn seed(initial: u32, most: u32) -> Self {
        SpareRule {
            wanted: initial.clamp(1, most.max(1)),
            most: most.max(1),
            idle_min: 5,
            idle_max: 10,
            at_once: 1,
            at_once_max: 16,
            is_seed: true,
        }
    }

    /// Returns php-fpm's rule. `most` bounds it besides its own.
    pub fn dynamic(params: DynamicParams, most: u32) -> Self {
        let most = params.most.min(most).max(1);
        SpareRule {
            wanted: params.start.clamp(1, most),
            most,
            idle_min: params.spare_min,
            idle_max: params.spare_max,
            at_once: 1,
            at_once_max: 32,
            is_seed: false,
        }
    }

    /// Returns how many should be resident.
    pub fn wanted(&self) -> u32 {
        self.wanted
    }

    /// Takes note of the second that has passed, and returns the new number, if it changes.
    pub fn on_tick(&mut self, sample: &ResidentSample) -> Option<ResidentMove> {
        let idle = if self.is_seed { sample.idle + sample.starting } else { sample.idle };
        let at_once = std::mem::replace(&mut self.at_once, 1);
        let (wanted, why) = if idle > self.idle_max {
            (self.wanted.saturating_sub(1).max(1), ResidentReason::Idle)
        } else if idle < self.idle_min && self.wanted < self.most {
            self.at_once = (2 * at_once).min(self.at_once_max);
            let more = if self.is_seed { at_once } else { at_once.min(self.idle_min - idle) };
            ((self.wanted + more).min(self.most), ResidentReason::Waits)
        } else {
            return None;
        };
        let has_changed = wanted != self.wanted;
        self.wanted = wanted;
        has_changed.then_some(ResidentMove { wanted, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(rule: &mut SpareRule, idle: &[u32]) -> Vec<u32> {
        let tick = |idle: &u32| {
            let _ = rule.on_tick(&ResidentSample { idle: *idle, ..ResidentSample::default() });
            rule.wanted()
        };
        idle.iter().map(tick).collect()
    }

    #[test]
    fn the_papers_rule_starts_1_2_4_8_16_and_ends_one_a_second() {
        let mut rule = SpareRule::seed(5, 100);
        assert_eq!(play(&mut rule, &[0; 7]), [6, 8, 12, 20, 36, 52, 68]);
        assert_eq!(play(&mut rule, &[5, 10, 4]), [68, 68, 69], "anew from one");
        assert_eq!(play(&mut rule, &[11, 12]), [68, 67]);
    }

    #[test]
    fn the_rule_of_php_fpm_starts_no_more_than_are_missing_and_stays_below_its_most() {
        let mut rule =
            SpareRule::dynamic(DynamicParams { start: 4, spare_min: 3, spare_max: 6, most: 12 }, 100);
        assert_eq!(play(&mut rule, &[0, 0, 0, 2, 0]), [5, 7, 10, 11, 12]);
        assert_eq!(play(&mut rule, &[0, 6, 7, 7]), [12, 12, 11, 10]);
    }
}

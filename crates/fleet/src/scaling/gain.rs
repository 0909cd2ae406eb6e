//! Whether more nodes serve more.
//!
//! Where nodes are full and their processors idle, requests wait: for a thread, which another node has, or
//! for something that all nodes share, such as a database, which it has not. Only trying tells. So the rate
//! at which requests end is remembered when nodes are ordered for such a reason, and compared once the new
//! ones have served for long enough:
//!
//! ```text
//! gain  = X / X₀ − 1          X: answered per second, before and after
//! due   = f / n₀ − 1          f: nodes that are filled; n₀: nodes before
//! gain < due / 4  →  back to n₀, and no more for a minute, then two, four … at most 32 minutes
//! ```
//!
//! What is due is in proportion to the nodes that are filled, and not to those that are there: nobody knows what
//! nodes would serve that hardly anybody was let in to. *Units*: requests per second, node-seconds per second,
//! seconds. *Limits*: no verdict while nodes start, before half of the new ones are filled, or while nobody waits,
//! since then less may simply be asked for.

use super::api::ScalingSample;
use suimon_model::real::exp;
use suimon_model::{Duration, Instant};

/// The part of the gain in proportion that new nodes must bring.
const DUE: f64 = 0.25;
/// The time constant of the rate, seconds, ...
const RATE_S: f64 = 10.0;
/// ... and the shortest time that new nodes serve before they are judged: in that time constants, and in
/// times that a request takes.
const RATES: f64 = 3.0;
const ANSWERS: f64 = 3.0;
/// The part of the new nodes that must be filled before they are judged.
const FILLED: f64 = 0.5;
/// The weight from which on a rate is known: that of one time constant.
const KNOWN: f64 = 0.63;
/// How long nobody tries again after the first failure, and how often that doubles.
const CALM: Duration = Duration::from_secs(60);
const DOUBLINGS_MAX: u32 = 5;

/// What is known of the gain of more nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gain {
    /// Requests that are answered per second, nodes that are filled, and how much of a whole mean both are: from 0
    /// to 1.
    rate: f64,
    filled: f64,
    weight: f64,
    trial: Option<Trial>,
    failures: u32,
    calm_until: Option<Instant>,
}

/// More nodes than before, whose gain is not known yet.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The nodes before, and what they answered per second in the last seconds in which there were no
    /// more.
    nodes: u32,
    rate: f64,
    /// Since when some serve that were not there before, and none starts.
    serving: Option<Instant>,
}

impl Gain {
    /// Takes in what happened in the `passed` seconds, and returns to how many nodes to go back, if more have
    /// not served more.
    pub(super) fn look(&mut self, now: Instant, passed: f64, sample: &ScalingSample) -> Option<u32> {
        let kept = exp(-passed / RATE_S);
        self.weight = kept * self.weight + 1.0 - kept;
        let share = (1.0 - kept) / self.weight;
        self.rate += share * (sample.answered as f64 / passed - self.rate);
        self.filled += share * (sample.work_s / passed - self.filled);
        let trial = self.trial.as_mut()?;
        // None has come yet, or none is there any more: what is compared with is what these serve.
        if sample.serving <= trial.nodes {
            trial.nodes = sample.serving;
            trial.rate += (1.0 - kept) * (self.rate - trial.rate);
            trial.serving = None;
            return None;
        }
        if sample.starting > 0 {
            return None;
        }
        let since = now.secs_since(*trial.serving.get_or_insert(now));
        let answer = f64::from(sample.requests) / self.rate.max(1e-3);
        if since < (RATES * RATE_S).max(ANSWERS * answer) {
            return None;
        }
        let Trial { nodes, rate, .. } = *trial;
        let beyond = |count: f64| count / f64::from(nodes.max(1)) - 1.0;
        let (due, most) = (beyond(self.filled), beyond(f64::from(sample.serving)));
        // Nobody waits: they serve all that comes.
        let is_judged = sample.is_held && sample.by_fullness;
        if is_judged && due < FILLED * most {
            return None;
        }
        self.trial = None;
        if !is_judged || self.rate >= rate * (1.0 + DUE * due) {
            self.failures = 0;
            return None;
        }
        self.calm_until = Some(now + CALM * (1 << self.failures.min(DOUBLINGS_MAX)));
        self.failures += 1;
        Some(nodes)
    }

    /// Returns whether nodes may be ordered because nodes are full.
    pub(super) fn may_try(&self, now: Instant) -> bool {
        // What is not known yet cannot be compared.
        let may_add = self.trial.is_none_or(|trial| trial.serving.is_none());
        self.weight >= KNOWN && may_add && self.calm_until.is_none_or(|until| now >= until)
    }

    /// Notes that nodes were ordered where there were `nodes`.
    pub(super) fn handle_order(&mut self, nodes: u32) {
        // More that are ordered while others start are of the same trial.
        self.trial.get_or_insert(Trial { nodes, rate: self.rate, serving: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::seconds;

    struct Play {
        gain: Gain,
        now: Instant,
    }

    impl Play {
        /// So many seconds with so many nodes, which answer `answered` requests per second; they are full, and more
        /// wait, or hardly used. Returns to how many nodes to go back, if so.
        fn look(&mut self, seconds_long: u32, serving: u32, answered: u64, is_full: bool) -> Option<u32> {
            self.look_while(0, seconds_long, serving, answered, is_full)
        }

        fn look_while(
            &mut self,
            starting: u32,
            seconds_long: u32,
            serving: u32,
            answered: u64,
            is_full: bool,
        ) -> Option<u32> {
            let sample = ScalingSample {
                serving,
                starting,
                answered,
                work_s: f64::from(serving),
                requests: 8,
                by_fullness: is_full,
                is_held: is_full,
                ..ScalingSample::default()
            };
            let mut back = None;
            for _ in 0..seconds_long {
                self.now += seconds(1.0);
                back = back.or(self.gain.look(self.now, 1.0, &sample));
            }
            back
        }
    }

    fn full_node() -> Play {
        let mut play = Play { gain: Gain::default(), now: Instant::ORIGIN };
        assert_eq!(play.look(60, 1, 10, true), None);
        play.gain.handle_order(1);
        play
    }

    #[test]
    fn nodes_that_serve_no_more_are_given_back() {
        assert_eq!(full_node().look(120, 2, 10, true), Some(1));
        assert_eq!(full_node().look(120, 2, 18, true), None);
    }

    #[test]
    fn a_rush_that_was_over_before_it_was_judged_does_not_judge_the_next() {
        let mut play = full_node();
        assert_eq!(play.look(5, 2, 15, true), None, "it is over soon");
        assert_eq!(play.look(15, 2, 3, false), None);
        assert_eq!(play.look(3600, 1, 3, false), None);
        assert_eq!(play.look(120, 1, 5, true), None, "the next one is for longer pages");
        play.gain.handle_order(1);
        assert_eq!(play.look(120, 2, 10, true), None, "two nodes do twice what one did");
    }

    #[test]
    fn a_start_that_failed_is_judged_by_what_was_served_before_the_one_that_came() {
        let mut play = full_node();
        assert_eq!(play.look(300, 1, 5, true), None, "none has come, and pages are longer now");
        play.gain.handle_order(1);
        assert_eq!(play.look(120, 2, 10, true), None);
    }

    #[test]
    fn a_long_start_is_judged_by_what_was_served_at_its_end() {
        let mut play = full_node();
        assert_eq!(play.look_while(1, 300, 1, 5, true), None, "pages are longer before the node has come");
        assert_eq!(play.look(120, 2, 10, true), None, "it has doubled what is served");
    }

    #[test]
    fn a_node_that_is_away_for_a_moment_is_judged_by_what_was_served_without_it() {
        let mut play = full_node();
        assert_eq!(play.look(25, 2, 18, true), None);
        assert_eq!(play.look(2, 1, 18, true), None, "what it had is still answered");
        assert_eq!(play.look(120, 2, 18, true), None);
    }
}

//! How wrong predicted waits are, as this very line has shown.
//!
//! *Law*. Now and then some numbers of the line are noted, with the wait that is predicted for
//! each. When one is called, the real wait is compared with that: r = was / predicted. For a
//! predicted wait of w seconds the page shows
//!
//! ```text
//! low  = w · q10(r) · (1 − z/√n)⁺      high = w · q90(r) · (1 + z/√n)        (1)
//! ```
//!
//! over the latest r of waits that were predicted to be at least a third as long, since an error of
//! a minute says little of an hour; n people are ahead, and z = 0.5: among few people it is chance
//! whether one takes long, whatever was learned. *Signals*: calls. *Units*: seconds, shares.
//! *Regimes*: before errors are known, and among few of them, [`PRIOR`] stands for them: a law that
//! still learns admits more and more, a busy application less. *Limits*: errors of [`LATEST_MAX`]
//! numbers are kept, some minutes' worth; a rate that changes in a way it never did before is not
//! predicted. *Source*: measured over simulated lines that are slow and fast, steady, faster,
//! slower and pausing: `suimon-sim`'s `waiting`.

use std::collections::VecDeque;
use suimon_model::{Duration, Instant};

/// How often numbers are noted, and how many are on their way at once.
const EVERY: Duration = Duration::from_secs(5);
const NOTED_MAX: usize = 128;
/// Errors that are kept.
const LATEST_MAX: usize = 48;
/// Where no error is known: real waits as shares of the predicted ones, at least and at most, ...
const PRIOR: (f64, f64) = (0.6, 1.5);
/// ... worth this many errors at either end.
const PRIOR_WEIGHT: usize = 2;
/// Of the predicted waits, one in this many may turn out shorter, and one longer.
const OUTSIDE: usize = 10;
/// Errors of waits that are this many times as long as others say nothing of these.
const LONGER: f64 = 3.0;
/// Classes of waits: the first up to this long, seconds, the next up to twice as long, and so on.
const CLASS_FIRST: f64 = 30.0;
const CLASSES: usize = 12;
/// z in (1).
const CHANCE: f64 = 0.5;

/// A number that was noted.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Noted {
    number: u64,
    at: Instant,
    foreseen: f64,
}

suimon_model::saved_struct!(Noted { number, at, foreseen });

/// What is known of the errors of one lane.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Calibration {
    noted: Vec<Noted>,
    noted_at: Option<Instant>,
    turn: u32,
    /// For past predicted waits, seconds: the real wait as a share of the predicted one; the oldest
    /// first.
    latest: VecDeque<(f64, f64)>,
    /// By class: q10 and q90. Empty: nothing is known yet.
    factors: Vec<(f64, f64)>,
}

suimon_model::saved_struct!(Calibration { noted, noted_at, turn, latest, factors }, |it: &Calibration| {
    it.noted.len() <= NOTED_MAX
        && it.latest.len() <= LATEST_MAX
        && (it.factors.is_empty() || it.factors.len() == CLASSES)
});

impl Calibration {
    /// Returns how far behind the first number that is not called a number is to be noted now, as a
    /// share of those waiting; `None`: none is.
    pub(crate) fn is_due(&mut self, now: Instant) -> Option<f64> {
        let is_due = self.noted_at.is_none_or(|at| now.since(at) >= EVERY);
        if !is_due || self.noted.len() >= NOTED_MAX {
            return None;
        }
        self.noted_at = Some(now);
        self.turn = (self.turn + 1) % 3;
        Some([0.25, 0.5, 1.0][self.turn as usize])
    }

    /// Notes a number, and the wait that is predicted for it, seconds.
    pub(crate) fn note(&mut self, now: Instant, number: u64, foreseen: f64) {
        if foreseen >= 1.0 && self.noted.len() < NOTED_MAX {
            self.noted.push(Noted { number, at: now, foreseen });
        }
    }

    /// Takes note that all numbers below `called` are called, and begin `later` seconds later.
    pub(crate) fn called(&mut self, now: Instant, called: u64, later: f64) {
        let before = self.noted.len();
        let latest = &mut self.latest;
        self.noted.retain(|noted| {
            if noted.number >= called {
                return true;
            }
            if latest.len() == LATEST_MAX {
                latest.pop_front();
            }
            latest.push_back((noted.foreseen, (now.secs_since(noted.at) + later) / noted.foreseen));
            false
        });
        if self.noted.len() < before {
            self.factors = (0..CLASSES).map(|class| self.factors_of(class)).collect();
        }
    }

    /// Forgets the numbers on their way: the line was stopped, or has another order.
    pub(crate) fn interrupt(&mut self) {
        self.noted.clear();
    }

    /// Returns (1) for a wait that is predicted to be `wait` seconds behind `ahead` people.
    pub(crate) fn range(&self, wait: f64, ahead: f64) -> (f64, f64) {
        let (low, high) = self.factors.get(class_of(wait)).copied().unwrap_or(PRIOR);
        let chance = CHANCE / ahead.max(1.0).sqrt();
        (wait * low * (1.0 - chance).max(0.0), wait * high * (1.0 + chance))
    }

    fn factors_of(&self, class: usize) -> (f64, f64) {
        let longest = CLASS_FIRST * f64::from(1_u32 << class);
        let fits = self.latest.iter().filter(|(foreseen, _)| foreseen * LONGER >= longest / 2.0);
        let mut ratios: Vec<f64> = fits.map(|(_, ratio)| *ratio).collect();
        ratios.extend([[PRIOR.0, PRIOR.1]; PRIOR_WEIGHT].as_flattened());
        ratios.sort_by(f64::total_cmp);
        let at = ratios.len() / OUTSIDE;
        (ratios[at], ratios[ratios.len() - 1 - at])
    }
}

fn class_of(wait: f64) -> usize {
    (0..CLASSES - 1).find(|class| wait <= CLASS_FIRST * f64::from(1_u32 << class)).unwrap_or(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::seconds;

    fn at(secs: f64) -> Instant {
        Instant::ORIGIN + seconds(secs)
    }

    /// Notes forty waits predicted as `foreseen`, each of which turned out to be this share of it.
    fn shown(foreseen: f64, share: f64) -> Calibration {
        let mut known = Calibration::default();
        for number in 0..40 {
            known.note(at(0.0), number, foreseen);
        }
        known.called(at(foreseen * share), 40, 0.0);
        known
    }

    #[test]
    fn what_nobody_knows_is_told_widely_and_what_has_come_true_narrowly() {
        let (low, high) = Calibration::default().range(600.0, 1e6);
        assert!(low < 370.0 && high > 890.0, "{low} {high}");
        let (low, high) = shown(600.0, 1.0).range(600.0, 1e6);
        assert!((low - 600.0).abs() < 1.0 && (high - 600.0).abs() < 1.0, "{low} {high}");
        let (low, high) = shown(600.0, 1.0).range(600.0, 4.0);
        assert!(low < 460.0 && high > 740.0, "among few chance is much: {low} {high}");
    }

    #[test]
    fn a_line_that_was_always_faster_is_told_to_be() {
        let (low, high) = shown(600.0, 0.7).range(500.0, 1e6);
        assert!(low < 351.0 && high < 355.0, "{low} {high}");
    }

    #[test]
    fn a_minute_that_came_true_says_nothing_of_an_hour() {
        let known = shown(60.0, 1.0);
        assert_eq!(known.range(3600.0, 1e6), Calibration::default().range(3600.0, 1e6));
    }

    #[test]
    fn no_more_are_noted_than_may_be() {
        let mut known = Calibration::default();
        (0..1000).for_each(|number| known.note(at(0.0), number, 60.0));
        assert_eq!(known.noted.len(), NOTED_MAX);
        assert!(known.is_due(at(10.0)).is_none());
        known.called(at(60.0), 1000, 0.0);
        assert_eq!((known.noted.len(), known.latest.len()), (0, LATEST_MAX));
    }
}

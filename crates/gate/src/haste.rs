//! Whether newcomers give up so soon that they are held for less.
//!
//! Clients that give up after a second and try again at once keep the session gate full of requests that are a
//! second old. Held for longer, each would be admitted just as it leaves, and the application would work for nobody.
//!
//! *Law*. How long newcomers wait is learned from those alone that were held for [`HELD_MIN`]. Where fewer than
//! [`STAY`] of these would stay for the least patience that is otherwise used, newcomers are held for [`HOLD_SHARE`] of what
//! was learned. That holds for [`BELIEVED_FOR`]. Then they are held as usual, and it is learned anew.
//!
//! *Who counts*. What a client does with a slow page says nothing about those who are held: a robot that leaves one
//! again and again, each time as another visitor, would be believed wherever nobody else waits. At the session gate it is
//! one among all who are held, and has to be most of them.
//!
//! *Why anew*. Those who are held for less do not show how long they would have waited, so nobody can disprove
//! what is believed. That a part of them is held as usual does not help: served in the order in which they came, these
//! are admitted as the others leave.
//!
//! *Units*: seconds. *Limits*: to learn it anew takes some seconds, in which those who give up are admitted too late:
//! where they are far too many all the time, a fiftieth of the time. *Source*: ours.

use suimon_control::Patience;
use suimon_model::Instant;

/// A newcomer shows how long it waits once it has been held for so long, seconds: the age at which waiting
/// begins.
pub(crate) const HELD_MIN: f64 = 0.5;
/// Where fewer than this share of those who are held would stay for the least patience that is otherwise used ...
const STAY: f64 = 0.5;
/// ... newcomers are held for this share of what was learned, ...
const HOLD_SHARE: f64 = 0.4;
/// ... for so many seconds.
const BELIEVED_FOR: f64 = 300.0;

/// Learns how long newcomers wait who are held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Haste {
    learner: Patience,
    /// The patience that is believed, seconds, and until when.
    believed: Option<(f64, Instant)>,
}

suimon_model::saved_struct!(Haste { learner, believed });

impl Haste {
    /// Folds in a request of `visitor`, if it is known, that had been held for [`HELD_MIN`] and was `age` seconds old
    /// when it ended; `left`: its client went away.
    pub(crate) fn fold(&mut self, visitor: Option<u64>, age: f64, left: bool) {
        if self.believed.is_none() {
            self.learner.fold_of(visitor, age, left);
        }
    }

    /// Returns whether `refresh` must know who still waits: see [`Haste::fold_waiting`].
    pub(crate) fn asks_who_waits(&self, now: Instant) -> bool {
        self.learner.asks_who_waits(now)
    }

    /// Takes note, just before `refresh`, of such a request that still waits and is `age` seconds old.
    pub(crate) fn fold_waiting(&mut self, age: f64) {
        self.learner.fold_waiting(age);
    }

    /// Concludes from what was folded in, for newcomers who are believed to stay for `patience_min` otherwise.
    pub(crate) fn refresh(&mut self, now: Instant, patience_min: f64) {
        self.believed.take_if(|(_, until)| *until <= now);
        if self.believed.is_some() {
            return;
        }
        // Those who still wait are forgotten with the conclusion.
        let is_due = self.learner.asks_who_waits(now);
        let stay = self.learner.survival(patience_min).filter(|_| is_due);
        self.learner.refresh(now);
        let learned = self.learner.learned().filter(|seconds| *seconds < patience_min);
        if let Some(seconds) = learned
            && stay.is_some_and(|stay| stay < STAY)
        {
            self.believed = Some((seconds, now + suimon_model::seconds(BELIEVED_FOR)));
            self.learner = Patience::default();
        }
    }

    /// Returns the longest a newcomer is held, seconds, where most give up soon.
    pub(crate) fn hold(&self) -> Option<f64> {
        self.believed.map(|(seconds, _)| HOLD_SHARE * seconds)
    }
}

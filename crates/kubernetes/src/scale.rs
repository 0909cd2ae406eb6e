//! How many replicas are written, and when somebody else writes them, too.
//!
//! The number that is wanted is a level: whatever the workload has is compared with it, at each look, and written if it
//! differs. A number that was told before the nodes were found is a floor: a gateway that has just started knows nothing,
//! so it adds what is short of it and takes nothing away.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Changes by somebody else that are remembered, which is how many in [`FIGHT`] are a fight.
pub(crate) const CHANGES_MAX: usize = 3;
/// Within this time.
const FIGHT: Duration = Duration::from_secs(300);

/// What the workload says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    /// How many replicas are wanted of it.
    pub(crate) replicas: u32,
    /// Which version of the workload said that.
    pub(crate) version: String,
}

/// What is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// This number or more.
    AtLeast(u32),
    /// This number.
    Exactly(u32),
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// It has what is wanted.
    Keep,
    /// This number, if the workload still has this version.
    Write {
        /// How many.
        replicas: u32,
        /// The version that the number was compared with.
        version: String,
    },
}

/// Compares what is wanted with what is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scaling {
    /// What was written last.
    written: Option<u32>,
    changes: VecDeque<Instant>,
}

impl Scaling {
    /// Returns what is to be done about what was seen.
    pub(crate) fn look(&mut self, now: Instant, wanted: Wanted, seen: &Seen) -> Step {
        if self.written.is_some_and(|written| written != seen.replicas) {
            self.written = Some(seen.replicas);
            self.changes.push_back(now);
            if self.changes.len() > CHANGES_MAX {
                self.changes.pop_front();
            }
        }
        let replicas = match wanted {
            Wanted::AtLeast(least) => seen.replicas.max(least),
            Wanted::Exactly(wanted) => wanted,
        };
        if replicas == seen.replicas {
            return Step::Keep;
        }
        Step::Write { replicas, version: seen.version.clone() }
    }

    /// Learns that this number was written.
    pub(crate) fn wrote(&mut self, replicas: u32) {
        self.written = Some(replicas);
    }

    /// Forgets what was written: from now on, somebody else writes.
    pub(crate) fn hand_over(&mut self) {
        *self = Scaling::default();
    }

    /// Returns whether somebody else has changed the number again and again of late.
    pub(crate) fn is_fight(&self, now: Instant) -> bool {
        self.changes.len() == CHANGES_MAX
            && self.changes.iter().all(|change| now.saturating_duration_since(*change) < FIGHT)
    }
}

#[cfg(test)]
mod tests {
    use super::Wanted::{AtLeast, Exactly};
    use super::*;

    fn seen(replicas: u32) -> Seen {
        Seen { replicas, version: format!("v{replicas}") }
    }

    #[test]
    fn the_number_is_written_where_it_differs_with_the_version_it_was_compared_with() {
        let mut scaling = Scaling::default();
        let now = Instant::now();
        assert_eq!(scaling.look(now, Exactly(3), &seen(3)), Step::Keep);
        assert_eq!(
            scaling.look(now, Exactly(5), &seen(3)),
            Step::Write { replicas: 5, version: "v3".to_string() }
        );
        assert_eq!(
            scaling.look(now, Exactly(0), &seen(3)),
            Step::Write { replicas: 0, version: "v3".to_string() }
        );
    }

    #[test]
    fn the_number_at_the_start_adds_and_takes_nothing_away() {
        let now = Instant::now();
        assert_eq!(Scaling::default().look(now, AtLeast(3), &seen(7)), Step::Keep);
        assert_eq!(
            Scaling::default().look(now, AtLeast(3), &seen(1)),
            Step::Write { replicas: 3, version: "v1".to_string() }
        );
    }

    #[test]
    fn three_changes_by_somebody_else_within_five_minutes_are_a_fight() {
        let mut scaling = Scaling::default();
        let start = Instant::now();
        let mut fought = Vec::new();
        for minute in 0..4 {
            scaling.wrote(5);
            let now = start + Duration::from_secs(60 * minute);
            scaling.look(now, Exactly(5), &seen(2));
            fought.push(scaling.is_fight(now));
        }
        assert_eq!(fought, [false, false, true, true]);
        assert!(!scaling.is_fight(start + Duration::from_secs(60 * 7)));
        scaling.hand_over();
        assert!(!scaling.is_fight(start));
    }

    #[test]
    fn a_number_that_stays_changed_counts_once() {
        let mut scaling = Scaling::default();
        let now = Instant::now();
        scaling.wrote(5);
        for _ in 0..10 {
            scaling.look(now, AtLeast(0), &seen(2));
        }
        assert!(!scaling.is_fight(now));
    }
}

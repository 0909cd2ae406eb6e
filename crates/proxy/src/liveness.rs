//! How the answers of a route come: what is usual, and whether any comes now.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The least and the most time that counts as late, and the time where little is known.
const LATE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));
const LATE_UNKNOWN: Duration = Duration::from_secs(20);
/// Where nothing was answered for this long, requests with a slot may be waiting for one that has
/// none.
const SILENT: Duration = Duration::from_secs(1);
/// A response is late after this many times the usual time; a single one after this many times
/// that.
const LATE_TIMES: u32 = 2;
const ALONE_TIMES: u32 = 2;
/// The usual time is the quantile that all but one in this many responses keep, ...
const RARE: u32 = 50;
/// ... of the most recent responses; fewer than the first number say nothing, and at the second all
/// counts are halved.
const KNOWN_LEAST: u32 = 20;
const KNOWN_HALVED: u32 = 512;

/// Answers are counted by the time until their heads: up to this many milliseconds, twice as many,
/// and so on; the last count is of all that take longer.
const FIRST_MS: u128 = 250;
const CLASSES: usize = 9;
/// Moments closer to each other than this, milliseconds, are one: most requests then write nothing
/// that others read.
const HEARD_EVERY: u64 = 50;

/// What is known of a route's answers, and whether any comes now.
#[derive(Default, Debug)]
pub(crate) struct ResponseLiveness {
    took: [AtomicU32; CLASSES],
    known: AtomicU32,
    unanswered: AtomicU32,
    /// See [`moment`].
    silent_since: AtomicU64,
}

impl ResponseLiveness {
    /// Forgets how long its answers took.
    pub(crate) fn reset(&self) {
        self.took.iter().chain([&self.known]).for_each(|count| count.store(0, Relaxed));
    }

    pub(crate) fn sent(&self, now: u64) {
        // Before it counts: a look in between must not take an old silence for its own.
        if self.unanswered.load(Relaxed) == 0 {
            self.silent_since.store(now, Relaxed);
        }
        self.unanswered.fetch_add(1, Relaxed);
    }

    pub(crate) fn answered(&self, now: u64) {
        if now >= self.silent_since.load(Relaxed) + HEARD_EVERY {
            self.silent_since.store(now, Relaxed);
        }
    }

    pub(crate) fn learn(&self, took: Duration) {
        let class = (0..CLASSES - 1).find(|class| took.as_millis() <= FIRST_MS << class);
        self.took[class.unwrap_or(CLASSES - 1)].fetch_add(1, Relaxed);
        if self.known.fetch_add(1, Relaxed) + 1 == KNOWN_HALVED {
            let half = |count: &AtomicU32| count.store(count.load(Relaxed) / 2, Relaxed);
            self.took.iter().chain([&self.known]).for_each(half);
        }
    }

    /// Takes note that a request is answered, or never will be.
    pub(crate) fn ended(&self) {
        self.unanswered.fetch_sub(1, Relaxed);
    }

    /// Returns whether too few answers are known to say what is usual.
    pub(crate) fn is_little_known(&self) -> bool {
        self.known.load(Relaxed) < KNOWN_LEAST
    }

    pub(crate) fn is_stuck(&self, now: u64) -> bool {
        let unanswered = self.unanswered.load(Relaxed);
        unanswered > 0 && self.late(unanswered == 1).is_some_and(|late| self.silence(now) >= late)
    }

    /// Returns whether some wait, and nothing was answered for longer than usual.
    pub(crate) fn is_silent(&self, now: u64) -> bool {
        let usual = self.usual().flatten().unwrap_or_default();
        self.unanswered.load(Relaxed) > 0 && self.silence(now) >= usual.max(SILENT)
    }

    fn silence(&self, now: u64) -> Duration {
        Duration::from_millis(now.saturating_sub(self.silent_since.load(Relaxed)))
    }

    /// Returns the time that counts as late. `None`: nothing is late on a route whose answers may
    /// take for ever.
    fn late(&self, is_alone: bool) -> Option<Duration> {
        let Some(usual) = self.usual() else { return Some(LATE_UNKNOWN) };
        let late = (LATE_TIMES * usual?).max(LATE.0);
        Some((if is_alone { ALONE_TIMES * late } else { late }).min(LATE.1))
    }

    /// Returns how long it usually takes until an answer begins, if that is known, and if it has an
    /// end.
    fn usual(&self) -> Option<Option<Duration>> {
        let known = self.known.load(Relaxed);
        if known < KNOWN_LEAST {
            return None;
        }
        let mut longer = known;
        let class = self.took.iter().position(|count| {
            longer = longer.saturating_sub(count.load(Relaxed));
            longer <= known / RARE
        });
        let class = class.filter(|class| *class < CLASSES - 1);
        Some(class.map(|class| Duration::from_millis((FIRST_MS << class) as u64)))
    }
}

/// Returns a moment as milliseconds since the first that was asked for.
pub(crate) fn moment(at: Instant) -> u64 {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(at.saturating_duration_since(*BEGUN).as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taught(answers: &[(u32, f64)]) -> ResponseLiveness {
        let liveness = ResponseLiveness::default();
        for (count, seconds) in answers {
            (0..*count).for_each(|_| liveness.learn(Duration::from_secs_f64(*seconds)));
        }
        liveness
    }

    #[test]
    fn late_is_twice_what_is_usual_but_neither_soon_nor_never() {
        let late = |answers: &[(u32, f64)]| taught(answers).late(false).map_or(0, |late| late.as_secs());
        assert_eq!(late(&[(19, 0.02)]), 20, "not known yet");
        assert_eq!(late(&[(100, 0.02)]), 10);
        assert_eq!(late(&[(100, 0.02), (2, 12.0)]), 10, "what few of them take");
        assert_eq!(late(&[(100, 0.02), (3, 12.0)]), 32, "12 s count as 16");
        assert_eq!(late(&[(100, 30.0)]), 60);
        assert_eq!(late(&[(100, 90.0)]), 0, "never: they may be long polls");
        assert_eq!(late(&[(400, 90.0), (5000, 0.02)]), 10, "what was is forgotten");
        assert_eq!(
            taught(&[(100, 0.02)]).late(true).unwrap().as_secs(),
            20,
            "one alone may be one of those few"
        );
        assert_eq!(taught(&[(100, 12.0)]).late(true).unwrap().as_secs(), 60);
    }

    #[test]
    fn a_route_is_stuck_if_those_in_the_application_are_not_answered_whoever_leaves() {
        let liveness = taught(&[(100, 0.02)]);
        assert!(!liveness.is_stuck(1_000_000), "nobody asks");
        liveness.sent(1000);
        liveness.sent(5900);
        assert!(!liveness.is_stuck(10_999) && liveness.is_stuck(11_000), "since the first of them was sent");
        liveness.answered(11_000);
        assert!(!liveness.is_stuck(20_900) && liveness.is_stuck(21_000));
        liveness.unanswered.fetch_sub(1, Relaxed);
        assert!(!liveness.is_stuck(21_000) && liveness.is_stuck(31_000), "one alone");
        liveness.sent(21_000);
        assert!(liveness.is_stuck(21_000), "and a client that asks again is not as new as it looks");
    }
}

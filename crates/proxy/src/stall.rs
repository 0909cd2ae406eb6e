//! Requests that wait because the application waits for somebody else's client.
//!
//! How many workers an application has is known to nobody here, so no number says how many of them may read from slow clients. What can be seen is that others
//! wait: then room is made ([`suimon_downstream::uploads`]).
//!
//! *In the application*. A route is stuck if requests of it are there and no answer of it has begun for longer than is usual: `silence ≥ late`, where silence is the
//! time since its last head came, or since the first of those unanswered was sent, and
//!
//! ```text
//! late = 2 × the time within which 98 of 100 of its answers begin, 10 to 60 s
//!        twice that, if only one request is unanswered: it may be one of those that take long
//!        20 s, where fewer than 20 are known; never, where they take longer than 32 s
//! ```
//!
//! Other routes' answers say nothing: they may come from other workers, or from what stands before them. Who leaves does not end the silence; who asks again
//! makes it two. What is usual is learned while nobody's client is waited for, else those who hold the workers would teach that everything takes long.
//!
//! *At the gate*. Somebody inside is held for 5 s, at a route whose limit is found: the application has less to give than is asked of it. Then strangers' slow uploads
//! go, and those of others beyond half of what it was seen to work at.
//!
//! An application that is merely slow for once looks the same as one that is stuck. So it takes long, and begins with one. *Source*: ours.

use crate::pipeline::Core;
use crate::telemetry::Telemetry;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use suimon_downstream::uploads::ROOM_EVERY;
use suimon_routes::RouteIndex;

/// The least and the most that is late, and what is where little is known.
const LATE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));
const LATE_UNKNOWN: Duration = Duration::from_secs(20);
/// Somebody inside is held for too long after this.
const HELD: Duration = Duration::from_secs(5);
/// Where nothing was answered for so long, those who have a slot may wait for one who has none.
const SILENT: Duration = Duration::from_secs(1);
/// So many times what is usual is late, and so many times that for one alone.
const LATE_TIMES: u32 = 2;
const ALONE_TIMES: u32 = 2;
/// All but one in so many is what is usual, ...
const RARE: u32 = 50;
/// ... of the last so many, or twice as many; fewer than the first say nothing.
const KNOWN_LEAST: u32 = 20;
const KNOWN_HALVED: u32 = 512;

/// Answers are counted by the time until their heads: up to this many milliseconds, twice as many, and so on; the last count is of all that take longer.
const FIRST_MS: u128 = 250;
const CLASSES: usize = 9;
/// Moments closer to each other than this, milliseconds, are one: most requests then write nothing that others read.
const HEARD_EVERY: u64 = 50;

/// What is known of a route's answers, and whether any comes now.
#[derive(Default, Debug)]
pub(crate) struct Pulse {
    took: [AtomicU32; CLASSES],
    known: AtomicU32,
    unanswered: AtomicU32,
    /// See [`moment`].
    silent_since: AtomicU64,
}

/// Where a request goes, and whether anything goes on there.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) route: Option<RouteIndex>,
}

/// A request whose answer has not begun. Dropped, it never will.
#[derive(Debug)]
pub(crate) struct Unanswered {
    telemetry: Arc<Telemetry>,
    route: Option<RouteIndex>,
    sent: Instant,
    says_how_long: bool,
}

impl Pulse {
    /// Forgets how long its answers took.
    pub(crate) fn reset(&self) {
        self.took.iter().chain([&self.known]).for_each(|count| count.store(0, Relaxed));
    }

    fn sent(&self, now: u64) {
        // Before it counts: a look in between must not take an old silence for its own.
        if self.unanswered.load(Relaxed) == 0 {
            self.silent_since.store(now, Relaxed);
        }
        self.unanswered.fetch_add(1, Relaxed);
    }

    fn answered(&self, now: u64) {
        if now >= self.silent_since.load(Relaxed) + HEARD_EVERY {
            self.silent_since.store(now, Relaxed);
        }
    }

    fn learn(&self, took: Duration) {
        let class = (0..CLASSES - 1).find(|class| took.as_millis() <= FIRST_MS << class);
        self.took[class.unwrap_or(CLASSES - 1)].fetch_add(1, Relaxed);
        if self.known.fetch_add(1, Relaxed) + 1 == KNOWN_HALVED {
            let half = |count: &AtomicU32| count.store(count.load(Relaxed) / 2, Relaxed);
            self.took.iter().chain([&self.known]).for_each(half);
        }
    }

    fn is_stuck(&self, now: u64) -> bool {
        let unanswered = self.unanswered.load(Relaxed);
        unanswered > 0 && self.late(unanswered == 1).is_some_and(|late| self.silence(now) >= late)
    }

    /// Returns whether some wait, and nothing was answered for longer than usual.
    fn is_silent(&self, now: u64) -> bool {
        let usual = self.usual().flatten().unwrap_or_default();
        self.unanswered.load(Relaxed) > 0 && self.silence(now) >= usual.max(SILENT)
    }

    fn silence(&self, now: u64) -> Duration {
        Duration::from_millis(now.saturating_sub(self.silent_since.load(Relaxed)))
    }

    /// Returns what is late. `None`: nothing is, on a route whose answers may take for ever.
    fn late(&self, is_alone: bool) -> Option<Duration> {
        let Some(usual) = self.usual() else { return Some(LATE_UNKNOWN) };
        let late = (LATE_TIMES * usual?).max(LATE.0);
        Some((if is_alone { ALONE_TIMES * late } else { late }).min(LATE.1))
    }

    /// Returns how long it usually takes until an answer begins, if that is known, and if it has an end.
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

impl suimon_downstream::charge::Way for Way {
    fn is_silent(&self) -> bool {
        self.telemetry.route(self.route).pulse().is_silent(moment(Instant::now()))
    }
}

impl Unanswered {
    /// Takes note that a request of this route is sent, as of `sent`. `says_how_long`: nobody has to wait for others' clients now.
    pub(crate) fn new(
        telemetry: &Arc<Telemetry>,
        route: Option<RouteIndex>,
        sent: Instant,
        says_how_long: bool,
    ) -> Self {
        telemetry.route(route).pulse().sent(moment(sent));
        Unanswered { telemetry: Arc::clone(telemetry), route, sent, says_how_long }
    }

    /// Takes note that its answer begins. `says_how_long`: as when it was sent.
    pub(crate) fn answered(self, now: Instant, says_how_long: bool) {
        let pulse = self.telemetry.route(self.route).pulse();
        pulse.answered(moment(now));
        if self.says_how_long && says_how_long || pulse.known.load(Relaxed) < KNOWN_LEAST {
            pulse.learn(now.saturating_duration_since(self.sent));
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.telemetry.route(self.route).pulse().unanswered.fetch_sub(1, Relaxed);
    }
}

impl Core {
    /// Makes room for those who wait because the application waits for others' clients. Never returns.
    pub(crate) async fn make_room(&self) {
        loop {
            tokio::time::sleep(ROOM_EVERY).await;
            let all = [&self.uploads, &self.held_answers];
            if all.iter().all(|of| of.count() == 0) || !self.upstream.is_up() {
                continue;
            }
            let now = Instant::now();
            let broken_off: usize = if self.telemetry.pulses().any(|pulse| pulse.is_stuck(moment(now))) {
                let broken_off = all.map(|of| of.make_room(0, now)).into_iter().sum();
                if broken_off > 0 {
                    all.iter().for_each(|of| of.be_wary(now));
                }
                broken_off
            } else if self.keeper.holds_insider_for(HELD) {
                let may_stay = self.keeper.in_flight_max() / 2;
                all.map(|of| of.make_room(may_stay, now)).into_iter().sum()
            } else {
                0
            };
            if broken_off > 0 {
                tracing::warn!(
                    requests = broken_off,
                    "others wait for the application, which waits for slow clients: the slowest are broken off"
                );
            }
        }
    }
}

/// Returns a moment as milliseconds since the first that was asked for.
fn moment(at: Instant) -> u64 {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(at.saturating_duration_since(*BEGUN).as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taught(answers: &[(u32, f64)]) -> Pulse {
        let pulse = Pulse::default();
        for (count, seconds) in answers {
            (0..*count).for_each(|_| pulse.learn(Duration::from_secs_f64(*seconds)));
        }
        pulse
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
        let pulse = taught(&[(100, 0.02)]);
        assert!(!pulse.is_stuck(1_000_000), "nobody asks");
        pulse.sent(1000);
        pulse.sent(5900);
        assert!(!pulse.is_stuck(10_999) && pulse.is_stuck(11_000), "since the first of them was sent");
        pulse.answered(11_000);
        assert!(!pulse.is_stuck(20_900) && pulse.is_stuck(21_000));
        pulse.unanswered.fetch_sub(1, Relaxed);
        assert!(!pulse.is_stuck(21_000) && pulse.is_stuck(31_000), "one alone");
        pulse.sent(21_000);
        assert!(pulse.is_stuck(21_000), "and whoever asks again is not as new as it looks");
    }
}

//! Those who wait because the application waits for somebody else's client.
//!
//! How many workers an application has is known to nobody here, so no number says how many may read from slow clients. What can be seen is that others wait for
//! it: a request that is far longer in the application than its route usually is, while nothing at all comes back from there; or one of somebody inside that is
//! held by the gate for long. Then room is made ([`Uploads::make_room`]): for the first, all that are waited for may have to go; for the second those beyond half
//! of what the application was seen to work at.
//!
//! An application that is merely slow for once looks the same. So it takes seconds, and begins with one.

use crate::connection::Connection;
use crate::pipeline::Core;
use crate::routes::RouteIndex;
use crate::telemetry::{BUCKETS, Times};
use crate::uploads::{ROOM_EVERY, Uploads};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Nobody waits for too long before this.
const LATE_AFTER: Duration = Duration::from_secs(5);
/// Where it is not known how long requests of a route usually take.
const LATE_AFTER_UNKNOWN: Duration = Duration::from_secs(10);
/// So many times known are enough to tell, ...
const TIMES_LEAST: u64 = 10;
/// ... and this share of them is what is usual.
const USUAL: f64 = 0.9;
/// A request is late after so many times what is usual.
const LATE: u32 = 2;
/// Moments closer to each other than this, in ms, are one: most requests then write nothing that others read.
const HEARD_EVERY: u64 = 50;

/// When the application was heard last, by any request.
#[derive(Debug)]
pub(crate) struct Silence {
    begun: Instant,
    /// Milliseconds since then.
    heard: AtomicU64,
}

impl Silence {
    pub(crate) fn new() -> Self {
        Silence { begun: Instant::now(), heard: AtomicU64::new(0) }
    }

    /// Takes note that the head of an answer has come, `now`.
    pub(crate) fn broken(&self, now: Instant) {
        let now = self.since_begun(now);
        if now >= self.heard.load(Relaxed) + HEARD_EVERY {
            self.heard.store(now, Relaxed);
        }
    }

    /// Returns for how long nothing has come that could have, for a request sent at that time.
    fn for_one_sent(&self, sent: Instant, now: Instant) -> Duration {
        let heard = self.begun + Duration::from_millis(self.heard.load(Relaxed));
        now.saturating_duration_since(sent.max(heard))
    }

    fn since_begun(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.begun).as_millis()).unwrap_or(u64::MAX)
    }
}

impl Core {
    /// Sees to it that a request in the application does not wait there for others' clients. Never returns.
    pub(crate) async fn make_room_in_application(
        &self,
        connection: &Connection,
        route: Option<RouteIndex>,
        sent: Instant,
    ) -> Infallible {
        connection.rested(self.timeouts.watch_after).await;
        let mut pause = LATE_AFTER;
        loop {
            tokio::time::sleep(pause).await;
            let stuck = self.silence.for_one_sent(sent, Instant::now());
            let late_after = late_after(&self.telemetry.route(route).served_in());
            pause = late_after.checked_sub(stuck).filter(|left| !left.is_zero()).unwrap_or_else(|| {
                self.make_room(0);
                ROOM_EVERY
            });
        }
    }

    /// Sees to it that a request of somebody inside is not held because the application waits for others' clients. Never returns.
    pub(crate) async fn make_room_before_gate(&self, connection: &Connection) -> Infallible {
        connection.rested(self.timeouts.watch_after).await;
        let mut pause = LATE_AFTER;
        loop {
            tokio::time::sleep(pause).await;
            self.make_room(self.keeper.in_flight_max() / 2);
            pause = ROOM_EVERY;
        }
    }

    fn make_room(&self, may_stay: usize) {
        let gone = Uploads::make_room(&self.uploads, may_stay, Instant::now());
        if gone > 0 {
            tracing::warn!(
                uploads = gone,
                "others wait for the application, which waits for slow uploads: the slowest are broken off"
            );
        }
    }
}

/// Returns after how long a request is late on whose route these were the times in the application.
fn late_after(times: &Times) -> Duration {
    match times.quantile(&BUCKETS, USUAL).filter(|_| times.count() >= TIMES_LEAST) {
        Some(usual) => LATE_AFTER.max(Duration::from_secs_f64(usual) * LATE),
        None => LATE_AFTER_UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Histogram;

    #[test]
    fn a_request_is_late_after_twice_what_is_usual_but_never_soon() {
        let seconds = |seconds: f64| Duration::from_secs_f64(seconds);
        let times = Histogram::default();
        let late = |count: usize, each: f64| {
            (0..count).for_each(|_| times.record(seconds(each)));
            late_after(&times.read()).as_secs()
        };
        assert_eq!(late(9, 0.02), 10, "not known yet");
        assert_eq!(late(91, 0.02), 5);
        assert_eq!(late(10, 12.0), 5, "what few of them take");
        assert!((24..=40).contains(&late(10, 12.0)));
        let long = Histogram::default();
        (0..20).for_each(|_| long.record(seconds(90.0)));
        assert_eq!(late_after(&long.read()).as_secs(), 120, "twice the last bound");
    }

    #[test]
    fn it_is_silent_for_a_request_since_that_was_sent_or_something_came() {
        let silence = Silence::new();
        let at = |millis| silence.begun + Duration::from_millis(millis);
        let lasts = |sent, now| silence.for_one_sent(at(sent), at(now)).as_millis();
        assert_eq!(lasts(1000, 6000), 5000);
        silence.broken(at(4000));
        assert_eq!(lasts(1000, 6000), 2000);
        silence.broken(at(4010));
        assert_eq!(lasts(5000, 6000), 1000);
        silence.broken(at(9000));
        assert_eq!(lasts(5000, 6000), 0);
    }
}

//! Requests that wait because the application waits for another request's client.
//!
//! Nobody here knows how many workers an application has, so no number says how many of them may
//! read from slow clients. What can be seen is that others wait: then room is made
//! ([`suimon_downstream::uploads`]).
//!
//! *In the application*. A route is stuck if it has requests in the application and none of its
//! answers has begun for longer than is usual: `silence ≥ late`, where silence is the time since
//! its last head came, or since the first of those unanswered was sent, and
//!
//! ```text
//! late = 2 × the time within which 98 of 100 of its answers begin, 10 to 60 s
//!        twice that, if only one request is unanswered: it may be one of those that take long
//!        20 s, where fewer than 20 are known; never, where they take longer than 32 s
//! ```
//!
//! Other routes' answers say nothing: they may come from other workers, or from something in front
//! of them. A client that leaves does not end the silence; one that asks again makes it two. What
//! is usual is learned while no client is waited for, else clients that hold the workers would
//! teach that everything takes long.
//!
//! *At the gate*. An admitted visitor's request is held for 5 s, at a route whose limit is found by
//! the law: the application has less capacity than is asked of it. Then strangers' slow uploads go,
//! and those of others beyond half of its highest observed concurrency.
//!
//! An application that is slow just once looks the same as one that is stuck. So the reaction takes
//! long, and begins with a single upload. *Source*: ours.

use crate::backend::Backend;
use crate::liveness::moment;
use crate::telemetry::Telemetry;
use std::sync::Arc;
use std::time::{Duration, Instant};
use suimon_downstream::uploads::ROOM_EVERY;
use suimon_model::RouteId;

/// An admitted visitor is held for too long after this.
const HELD: Duration = Duration::from_secs(5);
/// A request's route, and whether anything is answered there.
#[derive(Debug)]
pub(crate) struct RouteActivity {
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) route: Option<RouteId>,
}

/// A request whose answer has not begun. Dropped, it never will.
#[derive(Debug)]
pub(crate) struct Unanswered {
    telemetry: Arc<Telemetry>,
    route: Option<RouteId>,
    sent: Instant,
    says_how_long: bool,
}

impl suimon_downstream::charge::RouteActivity for RouteActivity {
    fn is_silent(&self) -> bool {
        self.telemetry.route(self.route).liveness().is_silent(moment(Instant::now()))
    }
}

impl Unanswered {
    /// Takes note that a request of this route is sent, as of `sent`. `says_how_long`: nobody has
    /// to wait for others' clients now.
    pub(crate) fn new(
        telemetry: &Arc<Telemetry>,
        route: Option<RouteId>,
        sent: Instant,
        says_how_long: bool,
    ) -> Self {
        telemetry.route(route).liveness().sent(moment(sent));
        Unanswered { telemetry: Arc::clone(telemetry), route, sent, says_how_long }
    }

    /// Takes note that its answer begins. `says_how_long`: as when it was sent.
    pub(crate) fn answered(self, now: Instant, says_how_long: bool) {
        let liveness = self.telemetry.route(self.route).liveness();
        liveness.answered(moment(now));
        if self.says_how_long && says_how_long || liveness.is_little_known() {
            liveness.learn(now.saturating_duration_since(self.sent));
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.telemetry.route(self.route).liveness().ended();
    }
}

impl Backend {
    /// Makes room for requests that wait because the application waits for others' clients. Never
    /// returns.
    pub(crate) async fn make_room(&self) {
        loop {
            tokio::time::sleep(ROOM_EVERY).await;
            let all = [&self.uploads, &self.held_answers];
            if all.iter().all(|of| of.count() == 0) || !self.is_up() {
                continue;
            }
            let now = Instant::now();
            let broken_off: usize =
                if self.telemetry.liveness_of_routes().any(|liveness| liveness.is_stuck(moment(now))) {
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
                    "the application waits for slow clients while other requests wait for it: aborting the slowest"
                );
            }
        }
    }
}

//! Requests that are tried again, as callers tell of them.

use super::Fleet;
use crate::retries::{Retry, RetryCounts};
use suimon_model::{Instant, RouteId};

impl Fleet {
    /// Notes that a request of a route, if it has one, is sent for the first time.
    pub fn handle_request(&mut self, now: Instant, route: Option<RouteId>) {
        self.retries.handle_request(now, route);
    }

    /// Notes that a request is tried again of which nothing had been sent.
    pub fn handle_unsent(&mut self) {
        self.retries.handle_unsent();
    }

    /// Notes that a request is sent again, as a kept connection closed as it was sent.
    pub fn handle_closed(&mut self) {
        self.retries.handle_closed();
    }

    /// Returns a retry if a request of a route, if it has one, may be sent again that a node may have worked on. It
    /// counts as sent until [`Fleet::handle_retry_answered`].
    pub fn ask_retry(&mut self, now: Instant, route: Option<RouteId>) -> Option<Retry> {
        self.retries.ask(now, route)
    }

    /// Notes that a request that was sent again has got a good answer.
    pub fn handle_retry_answered(&mut self, now: Instant, retry: Retry) {
        self.retries.handle_answered(now, retry);
    }

    /// Returns how many requests were tried again.
    pub fn retry_counts(&self) -> RetryCounts {
        self.retries.counts()
    }
}

//! What is tried again, and what that is counted as.

use super::error::UpstreamError;
use http::StatusCode;
use std::io;
use suimon_fleet::{Fleet, Retry};
use suimon_model::{Instant, RouteId};

/// Why a request is tried again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// Nothing of it had been sent.
    Unsent,
    /// A kept connection closed as it was sent, and the node had not read it.
    Closed,
    /// A node had it and gave no answer.
    Lost,
}

/// The tries of one request.
#[derive(Default)]
pub(super) struct Tries {
    /// Why there is another one, until it is counted.
    pub(super) again: Option<Again>,
    /// What was taken of the budget.
    retry: Option<Retry>,
}

impl Tries {
    /// Returns whether there may be another one, of a request of this route, and takes note of it.
    pub(super) fn may_go_on(&mut self, now: Instant, fleet: &mut Fleet, route: Option<RouteId>) -> bool {
        match self.again.take() {
            None => {}
            Some(Again::Unsent) => fleet.handle_unsent(),
            Some(Again::Closed) => fleet.handle_closed(),
            Some(Again::Lost) => {
                self.retry = fleet.ask_retry(now, route);
                return self.retry.is_some();
            }
        }
        true
    }

    /// Returns what was taken of the budget, to be given back once the request is answered without a fault.
    pub(super) fn retry(&mut self) -> Option<Retry> {
        self.retry.take()
    }
}

/// Returns whether a connection broke because what was sent had not been read: a socket that is closed then, or
/// was before, resets the connection. One that had read it ends as usual, even if its process is killed.
pub(super) fn is_unread(error: &UpstreamError) -> bool {
    let kind = error.find::<io::Error>().map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe))
}

/// Returns whether a status tells of a fault of the node.
pub(super) fn is_fault(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
}

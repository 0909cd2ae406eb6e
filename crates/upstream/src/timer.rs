//! A timeout for the application's silence, without the time in which the client is waited for.

use super::request::Progress;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Is over when the application was silent for its limit, while nothing was awaited from the
/// client.
///
/// It lives as long as its connection, and its timer is reset only when it fires: many short waits
/// cost one timer.
pub(super) struct Silence {
    limit: Duration,
    since: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl Silence {
    /// Returns a wait of `limit` that begins now.
    pub(super) fn new(limit: Duration) -> Self {
        Silence { limit, since: Instant::now(), sleep: Box::pin(sleep(limit)) }
    }

    /// Begins a new wait of `limit`.
    pub(super) fn begin(&mut self, limit: Duration) {
        self.limit = limit;
        self.since = Instant::now();
        let due = self.since + limit;
        // An early timer costs one more look; a late one would make the timeout late.
        if self.sleep.deadline() > due {
            self.sleep.as_mut().reset(due);
        }
    }

    /// Drops the waker of the task that waited. The timer may still fire, without effect.
    pub(super) fn rest(&mut self) {
        let _ = self.sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }

    /// Is ready once the wait is over. `progress` is that of the request's body, if it has one.
    pub(super) fn poll_over(&mut self, cx: &mut Context<'_>, progress: Option<&Arc<Progress>>) -> Poll<()> {
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            let mut silent = self.since.elapsed();
            if let Some(progress) = progress {
                if progress.awaits_client() {
                    self.since = Instant::now();
                }
                silent = silent.min(self.since.elapsed()).min(progress.still_for());
            }
            if silent >= self.limit {
                return Poll::Ready(());
            }
            let left = self.limit - silent;
            self.sleep.as_mut().reset(Instant::now() + left);
        }
    }
}

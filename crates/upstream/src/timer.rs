//! A wait that ends: how long the application may keep silent, not counting what the client has yet
//! to send.

use super::request::Progress;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Ends when the application was silent for as long as it may, while nobody waited for the client.
///
/// One lives as long as its connection and is moved only when it goes off: many short waits cost
/// one timer.
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

    /// Begins a wait of `limit` anew.
    pub(super) fn begin(&mut self, limit: Duration) {
        self.limit = limit;
        self.since = Instant::now();
        let due = self.since + limit;
        // Going off early costs one more look; going off late would be late.
        if self.sleep.deadline() > due {
            self.sleep.as_mut().reset(due);
        }
    }

    /// Lets go of the task that waited. The timer may still go off, for nobody.
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

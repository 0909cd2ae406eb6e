//! A deadline that may be moved often at no cost: its timer is moved only when it goes off too
//! early.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// A moment, or never.
#[derive(Default, Debug)]
pub struct Deadline {
    at: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Returns whether there is a moment.
    pub fn is_set(&self) -> bool {
        self.at.is_some()
    }

    /// Sets the moment to `limit` from now, or to never.
    pub fn set(&mut self, limit: Option<Duration>) {
        self.at = limit.map(|limit| Instant::now() + limit);
    }

    /// Is ready once the moment has come.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else {
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        // A timer set for later than this is of no use; one set for earlier checks again when it
        // goes off.
        if timer.deadline() > at || timer.is_elapsed() {
            timer.as_mut().reset(at);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= at {
                return Poll::Ready(());
            }
            timer.as_mut().reset(at);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_moves_holds_at_its_last_place() {
        let start = Instant::now();
        let mut deadline = Deadline::default();
        deadline.set(Some(Duration::from_secs(1)));
        assert!(poll_fn(|cx| Poll::Ready(deadline.poll(cx))).await.is_pending());
        deadline.set(Some(Duration::from_secs(3)));
        poll_fn(|cx| deadline.poll(cx)).await;
        assert_eq!(start.elapsed().as_secs(), 3);
        deadline.set(Some(Duration::from_secs(60)));
        assert!(poll_fn(|cx| Poll::Ready(deadline.poll(cx))).await.is_pending());
        deadline.set(Some(Duration::from_secs(2)));
        poll_fn(|cx| deadline.poll(cx)).await;
        assert_eq!(start.elapsed().as_secs(), 5);
    }
}

//! An open connection with what is under way on it, whatever is spoken over it.

use super::connect::Stream;
use super::error::UpstreamErrorKind;
use super::fault::{BodyFault, Failed};
use super::incoming::Incoming;
use super::outgoing::{Left, Outgoing, SendFault};
use super::request::{Progress, RequestBody};
use super::timer::Silence;
use http::response;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::unconstrained;

/// A connection for one request at a time.
pub(super) struct Wire {
    pub(super) stream: Stream,
    pub(super) outgoing: Outgoing,
    pub(super) read: Incoming,
    pub(super) silence: Silence,
}

impl Wire {
    /// Returns an unused connection over `stream`. `timeout` is about how long it will wait for the
    /// heads of responses.
    pub(super) fn new(stream: Stream, timeout: Duration) -> Self {
        Wire {
            stream,
            outgoing: Outgoing::default(),
            read: Incoming::default(),
            silence: Silence::new(timeout),
        }
    }

    /// Begins another request, whose head is what `write` writes. Its response has to begin no later
    /// than `timeout` after the last piece of it.
    pub(super) fn begin(
        &mut self,
        timeout: Duration,
        (body, left): (RequestBody, Left),
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.silence.begin(timeout);
        self.outgoing.begin(body, left, write);
    }

    /// Continues to send the request while its response is read, which may come before the end of
    /// it.
    ///
    /// # Errors
    /// The client's body is not what the node was promised, and the node waits for it.
    pub(super) fn keep_sending(&mut self, cx: &mut Context<'_>) -> Result<(), BodyFault> {
        match self.outgoing.poll(&mut self.stream, cx) {
            Poll::Ready(Err(SendFault::Body(error))) => Err(BodyFault::Request(error)),
            // Whoever closes in the middle of a request may have answered all the same.
            Poll::Ready(Err(SendFault::Connection(_)) | Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// Returns whether the other end has neither closed the connection nor sent anything unasked.
    /// Leaves no task's waker registered.
    pub(super) fn is_quiet(&mut self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        // Outside the task's cooperative budget: if that is spent, a closed connection would look
        // open.
        let read = pin!(unconstrained(poll_fn(|cx| self.poll_read(cx))));
        read.poll(&mut nobody).is_pending()
    }

    /// Gives back what an idle connection does not need.
    pub(super) fn rest(&mut self) {
        self.silence.rest();
        self.read.rest();
    }

    /// Reads what is available; ready with 0 at the connection's end.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.read.poll_read(&mut self.stream, cx)
    }
}

/// Sends the request that was begun on the wire of `connection`, and returns the head of its
/// response, which `poll_head` reads.
pub(super) async fn answer<C>(
    connection: &mut C,
    wire: fn(&mut C) -> &mut Wire,
    progress: Option<&Arc<Progress>>,
    mut poll_head: impl FnMut(&mut C, &mut Context<'_>) -> Poll<Result<response::Parts, Failed>>,
) -> Result<response::Parts, Failed> {
    poll_fn(|cx| {
        let Wire { stream, outgoing, .. } = wire(connection);
        if let Poll::Ready(Err(fault)) = outgoing.poll(stream, cx) {
            Failed::unsent(fault, outgoing)?;
        }
        if let Poll::Ready(head) = poll_head(connection, cx) {
            return Poll::Ready(head);
        }
        wire(connection)
            .silence
            .poll_over(cx, progress)
            .map(|()| Err(Failed::new(UpstreamErrorKind::FirstByteTimeout, "no response came in time")))
    })
    .await
}

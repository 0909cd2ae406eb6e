//! Whose time a request's body takes: the application's, for which a slot stands, or the client's,
//! for which no slot is held.

use crate::deadline::Deadline;
use crate::uploads::{PASS_EVERY, Reserved, Sender, Upload, Uploads};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;

/// A slot that can be given back for as long as a client is waited for.
pub trait Slot: fmt::Debug + Send {
    /// Returns whether it is given back for now.
    fn is_paused(&self) -> bool;

    /// Gives it back; its client has been waited for `client_time` already. Returns whether there
    /// was a slot to give back.
    fn pause(&mut self, client_time: Duration) -> bool;

    /// Takes it again; ready once it is held.
    fn poll_resumed(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// The route of a request, and whether anything is answered there.
pub trait RouteActivity: fmt::Debug + Send {
    /// Returns whether some wait there, and nothing has been answered for a while.
    fn is_silent(&self) -> bool;
}

/// A slot that stands for the application's time and not the client's; or, without a slot, a worker
/// of the application.
#[derive(Debug)]
pub(crate) struct SlotCharge {
    pub(crate) turn: Option<Box<dyn Slot>>,
    /// When the slot is given back, because it has been held for enough of the client's time.
    pub(crate) due: Deadline,
    /// The wait that `due` was set in.
    pub(crate) waits_since: Option<Instant>,
    /// How long the client had been waited for when the slot was taken.
    pub(crate) before: Duration,
    pub(crate) sender: Sender,
    pub(crate) uploads: Arc<Uploads>,
    /// This body among those that are waited for without a slot.
    pub(crate) upload: Option<Upload>,
    /// Before that: its place among them, in case it becomes slow.
    pub(crate) reserved: Option<Reserved>,
    /// The end of the body, that the application gets once the slot is held again, ...
    pub(crate) end: Option<Option<Bytes>>,
    /// ... or for which nothing but this is awaited; asked again then.
    pub(crate) way: Box<dyn RouteActivity>,
    pub(crate) asked_again: Deadline,
}

impl SlotCharge {
    /// Gives the slot back, if there is one. Returns false if there was one and is none any more.
    pub(crate) fn pause(&mut self, client_time: Duration) -> bool {
        self.turn.as_mut().is_none_or(|turn| turn.pause(client_time))
    }

    pub(crate) fn poll_resumed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.turn.as_mut().map_or(Poll::Ready(()), |turn| turn.poll_resumed(cx))
    }

    /// Is ready once the application may have the end of the body: the slot is held again. If no
    /// slot is available, the requests that hold them may be waiting for the worker that waits for
    /// this end: then one body now and then goes on without a slot.
    pub(crate) fn poll_may_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.poll_resumed(cx).is_pending() {
            if !self.asked_again.is_set() {
                self.asked_again.set(Some(PASS_EVERY));
            }
            ready!(self.asked_again.poll(cx));
            self.asked_again.set(None);
            if self.way.is_silent() && self.uploads.may_pass(std::time::Instant::now()) {
                // The gate goes on to count it, once there is a slot.
                self.turn = None;
            }
        }
        Poll::Ready(())
    }

    /// Returns whether no worker that could serve others waits for the client.
    pub(crate) fn is_paused(&self) -> bool {
        self.turn.as_ref().map_or(self.upload.is_some(), |turn| turn.is_paused())
    }
}

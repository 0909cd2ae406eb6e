//! Whose time a request's body takes: the application's, which a slot stands for, or the client's,
//! which no slot is held for.

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
    /// was one to give back.
    fn pause(&mut self, client_time: Duration) -> bool;

    /// Takes it again; ready once it is held.
    fn poll_resumed(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// Where a request goes, and whether anything goes on there.
pub trait RouteActivity: fmt::Debug + Send {
    /// Returns whether some wait there, and nothing has been answered for a while.
    fn is_silent(&self) -> bool;
}

/// A slot that is the application's time and not the client's; or, without one, a worker of the
/// application that is.
#[derive(Debug)]
pub(crate) struct SlotCharge {
    pub(crate) turn: Option<Box<dyn Slot>>,
    /// When so much of the client's time has been the slot's that it is given back.
    pub(crate) due: Deadline,
    /// The wait that `due` was set in.
    pub(crate) waits_since: Option<Instant>,
    /// How long the client had been waited for when the slot was taken.
    pub(crate) before: Duration,
    pub(crate) sender: Sender,
    pub(crate) uploads: Arc<Uploads>,
    /// This body among those that are waited for without a slot.
    pub(crate) upload: Option<Upload>,
    /// Before that: its place among them, should it be slow.
    pub(crate) reserved: Option<Reserved>,
    /// The end of the body, that the application gets once the slot is held again, ...
    pub(crate) end: Option<Option<Bytes>>,
    /// ... or where that waits for nothing but this; asked again then.
    pub(crate) way: Box<dyn RouteActivity>,
    pub(crate) asked_again: Deadline,
}

impl SlotCharge {
    /// Gives the slot back, if there is one. Returns false where there was and is none any more.
    pub(crate) fn pause(&mut self, client_time: Duration) -> bool {
        self.turn.as_mut().is_none_or(|turn| turn.pause(client_time))
    }

    pub(crate) fn poll_resumed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.turn.as_mut().map_or(Poll::Ready(()), |turn| turn.poll_resumed(cx))
    }

    /// Is ready once the application may have the end of the body: the slot is held again. Or it is
    /// not to be had, as those who have slots may be waiting for the worker that waits for this
    /// end: then one now and then goes on without.
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

    /// Returns whether the client is waited for by nobody who could serve others meanwhile.
    pub(crate) fn is_paused(&self) -> bool {
        self.turn.as_ref().map_or(self.upload.is_some(), |turn| turn.is_paused())
    }
}

//! What the tests of the layer begin with.

#![allow(clippy::unwrap_used, dead_code, reason = "helpers of several tests, of which none uses all")]

use bytes::Bytes;
use http_body::Frame;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use suimon_tower::{Gate, Observer};
use tokio::sync::{mpsc, oneshot};

/// One slot for `/one`, and no kinds of session.
pub(crate) const ONE_SLOT: &str = "[discovery]\nmode = \"off\"\n[gate]\nsession_law = \"open\"\n[[route]]\nmatch = \"GET /one\"\nmode = 1\n";

pub(crate) struct Running {
    pub(crate) layer: suimon_tower::GateLayer,
    pub(crate) observer: Observer,
    _stop: oneshot::Sender<()>,
}

pub(crate) fn gate(settings: &str) -> Running {
    let gate = Gate::open(settings).unwrap();
    let (layer, observer) = (gate.layer(), gate.observer());
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(gate.run(async { _ = stopped.await }));
    Running { layer, observer, _stop: stop }
}

pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let becomes = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), becomes).await.unwrap_or_else(|_| panic!("never: {what}"));
}

impl Running {
    /// Returns how many requests were completed, failed and abandoned.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let view = self.observer.view();
        let sum =
            |of: fn(&suimon_tower::Counts) -> u64| view.routes.iter().map(|it| of(&it.gate.counts)).sum();
        (sum(|it| it.completed), sum(|it| it.failed), sum(|it| it.abandoned))
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.observer.view().gate.in_flight
    }
}

/// A piece of an answer.
pub(crate) type Piece = Result<Frame<Bytes>, Infallible>;

/// The pieces of an answer: all of these, at once.
#[derive(Debug)]
pub(crate) struct Pieces(std::vec::IntoIter<Piece>);

/// Returns these pieces.
pub(crate) fn pieces(all: impl IntoIterator<Item = Piece>) -> Pieces {
    Pieces(all.into_iter().collect::<Vec<_>>().into_iter())
}

impl futures_core::Stream for Pieces {
    type Item = Piece;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Piece>> {
        Poll::Ready(self.0.next())
    }
}

/// The pieces of an answer, as they are made.
#[derive(Debug)]
pub(crate) struct Works(mpsc::UnboundedReceiver<Piece>);

/// Returns what makes pieces, until it is dropped, and those pieces.
pub(crate) fn works() -> (mpsc::UnboundedSender<Piece>, Works) {
    let (more, pieces) = mpsc::unbounded_channel();
    (more, Works(pieces))
}

impl futures_core::Stream for Works {
    type Item = Piece;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        self.0.poll_recv(cx)
    }
}

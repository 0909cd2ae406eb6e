//! The body of an answer, which holds the request's slot until the service is done with it.

use crate::held::Held;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use suimon_proxy::{Admitted, BodyEnd};

/// The body of an answer: the service's own, or the gate's.
pub struct GatedBody<R: Body<Data = Bytes>> {
    kind: Kind<R>,
    /// As long as the service has not made all of it.
    held: Option<Held>,
}

enum Kind<R: Body<Data = Bytes>> {
    Answer(Option<Bytes>),
    Served {
        body: Pin<Box<R>>,
        /// Made with the head, and not taken yet.
        first: Option<Piece<R>>,
        /// Nothing follows, but for `first`.
        is_over: bool,
    },
}

type Piece<R> = Result<Frame<Bytes>, <R as Body>::Error>;

impl<R: Body<Data = Bytes>> GatedBody<R> {
    /// Returns the body of the gate's own answer.
    pub(crate) fn answer(text: String) -> Self {
        let text = Some(Bytes::from(text)).filter(|text| !text.is_empty());
        GatedBody { kind: Kind::Answer(text), held: None }
    }

    /// Returns the body of the service's answer, which ends at `end`. Its first piece is taken at once, if it
    /// is there: mostly it is the last one, and the slot is free before the client has taken any.
    pub(crate) fn served(body: R, mut end: BodyEnd, admitted: Box<Admitted>, cx: &mut Context<'_>) -> Self {
        end.or_declare(body.size_hint().exact());
        let is_done = admitted.streams() || end.is_over() || body.is_end_stream();
        let mut body = Box::pin(body);
        if is_done {
            admitted.end();
            return GatedBody { kind: Kind::Served { body, first: None, is_over: false }, held: None };
        }
        let held = Held::new(admitted, end);
        let (first, is_over, holds) = match body.as_mut().poll_frame(cx) {
            Poll::Ready(first) => {
                let holds = held.made(first.as_ref(), body.is_end_stream());
                let is_over = first.is_none();
                (first, is_over, holds)
            }
            Poll::Pending => (None, false, true),
        };
        if holds {
            held.watch();
        }
        GatedBody { kind: Kind::Served { body, first, is_over }, held: holds.then_some(held) }
    }
}

impl<R: Body<Data = Bytes>> Body for GatedBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Piece<R>>> {
        let GatedBody { kind, held } = &mut *self;
        let mut piece = match kind {
            Kind::Answer(text) => text.take().map(|text| Ok(Frame::data(text))),
            Kind::Served { first, .. } if first.is_some() => first.take(),
            Kind::Served { is_over: true, .. } => None,
            Kind::Served { body, is_over, .. } => {
                if let Some(held) = held {
                    held.asked();
                }
                let piece = ready!(body.as_mut().poll_frame(cx));
                *is_over = piece.is_none();
                if held.as_ref().is_some_and(|held| !held.made(piece.as_ref(), body.is_end_stream())) {
                    *held = None;
                }
                piece
            }
        };
        if let Some(Ok(frame)) = &mut piece
            && let Some(trailers) = frame.trailers_mut()
        {
            Admitted::strip_trailers(trailers);
        }
        Poll::Ready(piece)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Answer(text) => text.is_none(),
            Kind::Served { body, first, is_over } => first.is_none() && (*is_over || body.is_end_stream()),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Answer(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Kind::Served { body, first, .. } => {
                let mut hint = body.size_hint();
                let first = first.as_ref().and_then(|piece| piece.as_ref().ok()?.data_ref());
                let ahead = first.map_or(0, Bytes::len) as u64;
                if let Some(upper) = hint.upper() {
                    hint.set_upper(upper.saturating_add(ahead));
                }
                hint.set_lower(hint.lower().saturating_add(ahead));
                hint
            }
        }
    }
}

// The service's own body is of no account: as with a box of it.
impl<R: Body<Data = Bytes>> Unpin for GatedBody<R> {}

impl<R: Body<Data = Bytes>> fmt::Debug for GatedBody<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatedBody").field("held", &self.held).finish_non_exhaustive()
    }
}

//! The body of an answer on its way to the client, so that a slow client does not hold a slot.
//!
//! A response that is small, or complete at once, is taken whole before its head goes out: no task,
//! no second wake-up, and the slot is free. A longer one is read by its own task, as fast as the
//! application sends it, into a bounded queue that the client's connection empties at its own pace.
//! Past the bound, once the client has been waited for a moment, the rest goes through a file (see
//! [`crate::spool`]), so that the application is done as soon as it has sent all. The response
//! holds its slot until then, as long as it is mostly the application that is waited for: where
//! there is no file, or it is full or slower than the application, the application has to wait, and
//! the slot is soon released. A stream that never ends (server-sent events, a switched protocol) is
//! passed through and buffered nowhere.

use crate::BoxError;
use crate::budget::Budget;
use crate::connection::Busy;
use crate::connections::ClientWait;
use crate::piece::{Counted, Piece};
use crate::queue::Reader;
use crate::streams::Delivery;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use suimon_message::headers;

/// Over HTTP/1.1, complete answers no longer than this are not counted: they are on their way at
/// once, and their heads weigh as much.
const UNCOUNTED_MAX: usize = 16 << 10;

/// Looks on while the body of an answer goes out. Dropped with it: without [`BodyWatch::ended`]
/// before, the client did not take all of it.
pub trait BodyWatch: Send {
    /// So many bytes more are handed on to the client's connection.
    fn passed(&mut self, bytes: usize);

    /// That was all. `failed`: it broke off where it comes from.
    fn ended(&mut self, failed: bool);
}

/// The body of an answer.
pub struct ResponseBody {
    source: Source,
    /// What it holds beside a queue.
    counted: Option<Counted>,
    /// How the client takes it, where its connection does not show that.
    taking: Option<Arc<Delivery>>,
    /// Whether the client is waited for, where its connection does not show that: over HTTP/2, and
    /// for a stream that says nothing.
    client: Option<ClientWait>,
    watch: Option<Box<dyn BodyWatch>>,
    /// Dropped when the answer is complete or given up.
    _until_done: Option<Busy>,
}

enum Source {
    /// All of it.
    Whole { first: Option<Bytes>, rest: VecDeque<Frame<Bytes>> },
    /// A queue that a task fills.
    Queued(Reader),
    /// As it comes.
    Streamed(UnsyncBoxBody<Bytes, BoxError>),
}

impl ResponseBody {
    /// Returns a complete body.
    pub fn whole(first: Option<Bytes>, rest: VecDeque<Frame<Bytes>>) -> Self {
        ResponseBody::of(Source::Whole { first, rest })
    }

    fn of(source: Source) -> Self {
        ResponseBody { source, counted: None, taking: None, client: None, watch: None, _until_done: None }
    }

    /// Counts what it holds in `budget`, if that is much.
    pub fn counted(mut self, budget: &Arc<Budget>) -> Self {
        let bytes = usize::try_from(self.size_hint().lower()).unwrap_or(usize::MAX);
        // Over HTTP/2 a client may leave a hundred of them unread for as long as it likes.
        if bytes > UNCOUNTED_MAX || Delivery::current().is_some() {
            self.counted = Some(Counted::new(budget, bytes));
        }
        self
    }

    /// Returns a body of one piece, or of none.
    pub fn text(text: String) -> Self {
        ResponseBody::whole((!text.is_empty()).then(|| Bytes::from(text)), VecDeque::new())
    }

    /// Returns an empty body.
    pub fn empty() -> Self {
        ResponseBody::whole(None, VecDeque::new())
    }

    /// Returns the body that `reader` takes out of its queue.
    pub fn queued(reader: Reader) -> Self {
        ResponseBody::of(Source::Queued(reader))
    }

    /// Returns a body passed through as it comes.
    pub fn streamed<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        ResponseBody::of(Source::Streamed(body.map_err(Into::into).boxed_unsync()))
    }

    /// Keeps `busy` until the body is complete or given up.
    pub fn keeping(mut self, busy: Busy) -> Self {
        self.taking = Delivery::current();
        if (self.taking.is_some() || self.is_streamed()) && !self.is_end_stream() {
            // Over HTTP/2 the first piece is not asked for before there is room for it.
            let mut client = busy.client_wait();
            client.begin();
            self.client = Some(client);
        }
        self._until_done = Some(busy);
        if let Some(taking) = self.taking.as_ref().filter(|_| self.is_end_stream()) {
            taking.gave_all();
        }
        self
    }

    /// Tells `watch` what becomes of the body.
    pub fn watched(mut self, mut watch: Box<dyn BodyWatch>) -> Self {
        if self.is_end_stream() {
            watch.ended(false);
        }
        self.watch = Some(watch);
        self
    }

    fn tell(watch: &mut dyn BodyWatch, frame: Option<&Result<Frame<Piece>, BoxError>>, is_last: bool) {
        match frame {
            Some(Ok(frame)) => {
                watch.passed(frame.data_ref().map_or(0, |piece| piece.bytes.len()));
                if is_last {
                    watch.ended(false);
                }
            }
            Some(Err(_)) => watch.ended(true),
            None => watch.ended(false),
        }
    }

    fn is_streamed(&self) -> bool {
        matches!(self.source, Source::Streamed(_))
    }

    /// Counts a piece for as long as the client's connection keeps it: all of them over HTTP/2, and
    /// those counted before.
    fn count(&mut self, piece: &mut Piece) {
        let bytes = piece.bytes.len();
        if piece.counted.is_none() {
            piece.counted = match (&mut self.counted, &self.taking) {
                (Some(all), _) => Some(all.split(bytes)),
                (None, Some(taking)) => Some(Counted::new(taking.budget(), bytes)),
                (None, None) => None,
            };
        }
        piece._given = self.taking.as_ref().map(Delivery::give);
    }

    /// Takes note of what the client is given, or waits for.
    fn note(&mut self, polled: &Poll<Option<Result<Frame<Piece>, BoxError>>>) {
        let is_streamed = self.is_streamed();
        if let Some(client) = &mut self.client {
            match polled {
                // It is the application's turn, but no slot is held: as with a tunnel, the client
                // keeps it open.
                Poll::Pending if is_streamed => client.begin(),
                Poll::Pending => client.end(),
                Poll::Ready(_) => {
                    client.end();
                    client.begin();
                }
            }
        }
        let Some(taking) = &self.taking else { return };
        match polled {
            Poll::Pending => taking.waits_for_more(),
            Poll::Ready(Some(Ok(frame))) if frame.is_data() && !self.is_end_stream() => taking.gave(),
            // The client is not to blame for an answer that breaks off.
            Poll::Ready(_) => {
                taking.gave();
                taking.gave_all();
            }
        }
    }
}

impl Body for ResponseBody {
    type Data = Piece;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, BoxError>>> {
        let polled = self.source.poll_frame(cx);
        if self.taking.is_some() || self.client.is_some() {
            self.note(&polled);
        }
        let mut frame = ready!(polled);
        let is_last = self.watch.is_some() && self.is_end_stream();
        if let Some(watch) = &mut self.watch {
            ResponseBody::tell(&mut **watch, frame.as_ref(), is_last);
        }
        if let Some(Ok(frame)) = &mut frame {
            if let Some(piece) = frame.data_mut() {
                self.count(piece);
            } else if let Some(trailers) = frame.trailers_mut() {
                headers::prepare_trailers(trailers);
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Whole { first, rest } => first.is_none() && rest.is_empty(),
            Source::Queued(_) => false,
            Source::Streamed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Whole { first, rest } => {
                let of = |bytes: &Bytes| bytes.len() as u64;
                let bytes: u64 = rest.iter().filter_map(Frame::data_ref).map(of).sum();
                let bytes = first.as_ref().map_or(0, of) + bytes;
                let mut hint = SizeHint::with_exact(bytes);
                // A length before the body leaves no place for trailers behind it.
                if rest.back().is_some_and(Frame::is_trailers) {
                    hint = SizeHint::new();
                    hint.set_lower(bytes);
                }
                hint
            }
            // A declared length stays in the head, which is more precise.
            Source::Queued(_) => SizeHint::default(),
            Source::Streamed(body) => body.size_hint(),
        }
    }
}

impl Source {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Piece>, BoxError>>> {
        let frame = match self {
            Source::Whole { first, rest } => {
                first.take().map(Frame::data).or_else(|| rest.pop_front()).map(Ok)
            }
            Source::Queued(reader) => return reader.poll_frame(cx),
            Source::Streamed(body) => ready!(Pin::new(body).poll_frame(cx)),
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(Piece::from))))
    }
}

//! The body of an answer on its way to the client, so that a slow client does not hold a slot.
//!
//! A response that is small, or there at once, is taken whole before its head goes out: no task, no second wake-up,
//! and the slot is free. A longer one is read by a task of its own, as fast as the application gives it, into a
//! bounded queue that the client's connection empties at its own pace; past the bound, once the client has been waited for a moment, what follows
//! goes through a file (see [`crate::spool`]), so that the application is done as soon as it has said all. It holds its slot until then, as long as it is
//! mostly the application that is waited for: where the file cannot be had, is full, or is filled more slowly than the application would, it has to wait,
//! and soon holds no slot for it.
//! A stream that never ends (server-sent events, a switched protocol) is passed through and held by nobody.

use crate::connections::ClientWait;
use crate::deadline::Deadline;
use crate::exchange;
use crate::headers;
use crate::spool::{Filling, PIECE_BYTES, Reading, Spool};
use crate::streams::{Given, Taking};
use crate::upstream::{BoxError, UpstreamBody};
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use std::{fmt, io};
use suimon_model::Failure;
use tokio::time::Instant;

/// Over HTTP/1.1 answers that are all there and no longer than this count nowhere: they are on their way at once, and their heads weigh as much.
const UNCOUNTED_MAX: usize = 16 << 10;

/// The body of an answer.
pub(crate) struct AnswerBody {
    source: Source,
    /// What it holds beside a queue.
    counted: Option<Counted>,
    /// How the client takes it, where its connection does not tell.
    taking: Option<Arc<Taking>>,
    /// Whether the client is waited for, where its connection does not tell: over HTTP/2, and by a stream that says nothing.
    client: Option<ClientWait>,
    /// Let go of when the answer is complete or given up.
    _until_done: Option<crate::connection::Busy>,
}

enum Source {
    /// All of it.
    Whole { first: Option<Bytes>, rest: VecDeque<Frame<Bytes>> },
    /// A queue that a task fills.
    Queued(Reader),
    /// As it comes.
    Passing(Box<UpstreamBody>),
}

/// A piece of an answer in the hands of the client's connection, which keeps it until it is written: over HTTP/2 until its client has opened a window for all of it,
/// whether or not the rest of the answer has been asked for meanwhile.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Bytes,
    counted: Option<Counted>,
    _given: Option<Given>,
}

/// Bytes of an answer in the budget.
#[derive(Debug)]
struct Counted {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Counted {
    fn new(budget: &Arc<Budget>, bytes: usize) -> Self {
        budget.hold(bytes);
        Counted { budget: Arc::clone(budget), bytes }
    }

    /// Returns so many of the bytes, counted by themselves from now on.
    fn split(&mut self, bytes: usize) -> Counted {
        self.bytes -= bytes;
        Counted { budget: Arc::clone(&self.budget), bytes }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

impl From<Bytes> for Piece {
    fn from(bytes: Bytes) -> Self {
        Piece { bytes, counted: None, _given: None }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

impl AnswerBody {
    /// Returns a body that is all there.
    pub(crate) fn whole(first: Option<Bytes>, rest: VecDeque<Frame<Bytes>>) -> Self {
        AnswerBody::of(Source::Whole { first, rest })
    }

    fn of(source: Source) -> Self {
        AnswerBody { source, counted: None, taking: None, client: None, _until_done: None }
    }

    /// Counts what it holds in `budget`, if that is much.
    pub(crate) fn counted(mut self, budget: &Arc<Budget>) -> Self {
        let bytes = usize::try_from(self.size_hint().lower()).unwrap_or(usize::MAX);
        // Over HTTP/2 a client may leave a hundred of them lying for as long as it likes.
        if bytes > UNCOUNTED_MAX || Taking::current().is_some() {
            self.counted = Some(Counted::new(budget, bytes));
        }
        self
    }

    /// Returns a body of one piece, or of none.
    pub(crate) fn text(text: String) -> Self {
        AnswerBody::whole((!text.is_empty()).then(|| Bytes::from(text)), VecDeque::new())
    }

    /// Returns a body of nothing.
    pub(crate) fn empty() -> Self {
        AnswerBody::whole(None, VecDeque::new())
    }

    /// Returns the body that `reader` takes out of its queue.
    pub(crate) fn queued(reader: Reader) -> Self {
        AnswerBody::of(Source::Queued(reader))
    }

    /// Returns a body passed through as it comes.
    pub(crate) fn passing(body: UpstreamBody) -> Self {
        AnswerBody::of(Source::Passing(Box::new(body)))
    }

    /// Keeps `busy` until the body is complete or given up.
    pub(crate) fn keeping(mut self, busy: crate::connection::Busy) -> Self {
        self.taking = Taking::current();
        if (self.taking.is_some() || self.is_passing()) && !self.is_end_stream() {
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

    fn is_passing(&self) -> bool {
        matches!(self.source, Source::Passing(_))
    }

    /// Counts a piece for as long as the client's connection keeps it: all of them over HTTP/2, and those counted before.
    fn count(&mut self, piece: &mut Piece) {
        let bytes = piece.bytes.len();
        if piece.counted.is_none() {
            piece.counted = match (&mut self.counted, &self.taking) {
                (Some(all), _) => Some(all.split(bytes)),
                (None, Some(taking)) => Some(Counted::new(taking.budget(), bytes)),
                (None, None) => None,
            };
        }
        piece._given = self.taking.as_ref().map(Taking::give);
    }

    /// Takes note of what the client is given, or waits for.
    fn note(&mut self, polled: &Poll<Option<Result<Frame<Piece>, BoxError>>>) {
        let is_passing = self.is_passing();
        if let Some(client) = &mut self.client {
            match polled {
                // It is for the application to go on, but no slot is held: like a tunnel, it is the client who keeps it open.
                Poll::Pending if is_passing => client.begin(),
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
            // An answer that breaks off is no fault of its client's.
            Poll::Ready(_) => {
                taking.gave();
                taking.gave_all();
            }
        }
    }
}

impl Body for AnswerBody {
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
            Source::Passing(body) => body.is_end_stream(),
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
            // A declared length stays in the head, which says it better.
            Source::Queued(_) => SizeHint::default(),
            Source::Passing(body) => body.size_hint(),
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
            Source::Passing(body) => {
                ready!(Pin::new(body.as_mut()).poll_frame(cx)).map(|frame| frame.map_err(Into::into))
            }
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(Piece::from))))
    }
}

/// Bytes held for clients: of requests that wait, and of answers for slow ones.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    max: usize,
}

impl Budget {
    /// Returns the budget of `max` bytes.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Budget { held: AtomicUsize::new(0), max })
    }

    /// Returns the bytes held now.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// Returns whether as much is held as may be.
    pub(crate) fn is_used_up(&self) -> bool {
        self.held() >= self.max
    }

    /// Counts bytes that are held from now on.
    pub(crate) fn hold(&self, bytes: usize) {
        self.held.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes that are held no longer.
    pub(crate) fn release(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Relaxed);
    }
}

/// The end of a queue that a task fills from the application.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: Arc<Queue>,
    /// How long the client may take nothing while the queue is full.
    stall_max: Duration,
    stalled: Deadline,
    /// What was in the queue then, and read of the file.
    stalled_at: (usize, u64),
    /// How long the application may be kept waiting before that is told: once before there is a file, and once with it.
    client_time_max: Duration,
    /// How long it was, for the client or the file, less what it was waited for itself afterwards: what it says meanwhile makes up for that.
    client_time: Duration,
    /// What that was when the file began.
    before_spool: Duration,
    waits_since: Option<Instant>,
    /// Since when the application is waited for.
    asks_since: Option<Instant>,
    due: Deadline,
    is_told: bool,
    /// Where what the client does not take goes, until that is full.
    spool: Option<Arc<Spool>>,
    written: u64,
    /// What is on its way there.
    spilling: Option<Spilling>,
    /// What has come of the answer.
    bytes: u64,
}

/// Frames on their way to a file.
struct Spilling {
    frames: VecDeque<Frame<Bytes>>,
    bytes: usize,
    is_written: Filling,
}

/// The end of a queue that the client's connection empties.
pub(crate) struct Reader {
    queue: Arc<Queue>,
    /// A piece on its way from the file.
    reading: Option<Reading>,
}

#[derive(Debug)]
struct Queue {
    budget: Arc<Budget>,
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    frames: VecDeque<Frame<Bytes>>,
    /// What follows them: the file, from what is read of it to what is written, and what is being written to it ...
    spool: Option<Arc<Spool>>,
    read: u64,
    written: u64,
    is_writing: bool,
    /// ... and what comes behind that.
    behind: VecDeque<Frame<Bytes>>,
    behind_bytes: usize,
    /// Bytes of both in memory.
    bytes: usize,
    end: Option<Result<(), BoxError>>,
    reader_gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What a task that fills a queue should do next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Go on; a frame was taken over.
    Moved,
    /// Go on; by now the client has been waited for so long that the application is not to be kept waiting for it, nor its slot to be held.
    ClientSlow,
    /// The application is done, or failed in this way.
    Done(Option<Failure>),
    /// The client has gone, or has taken nothing for too long.
    ReaderGone,
}

/// Returns the two ends of a queue of at most `bytes_max` bytes, whose client may take nothing for at most `stall_max` while
/// it is full. After `client_time_max` of waits for it, that is told. One frame is always taken, however long.
pub(crate) fn queue(
    budget: Arc<Budget>,
    bytes_max: usize,
    stall_max: Duration,
    client_time_max: Duration,
) -> (Writer, Reader) {
    let queue = Arc::new(Queue { budget, bytes_max, state: Mutex::default() });
    let writer = Writer {
        queue: Arc::clone(&queue),
        stall_max,
        stalled: Deadline::default(),
        stalled_at: (0, 0),
        client_time_max,
        client_time: Duration::ZERO,
        before_spool: Duration::ZERO,
        waits_since: None,
        asks_since: None,
        due: Deadline::default(),
        is_told: false,
        spool: None,
        written: 0,
        spilling: None,
        bytes: 0,
    };
    (writer, Reader { queue, reading: None })
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Puts in what is there already.
    pub(crate) fn push(&self, frame: Frame<Bytes>) {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        let reader = {
            let mut state = self.queue.lock();
            if state.reader_gone {
                return;
            }
            state.bytes += bytes;
            self.queue.budget.hold(bytes);
            let is_full = state.bytes > self.queue.bytes_max || self.queue.budget.is_used_up();
            let is_full = is_full && self.spool.is_some();
            if state.is_spooled() || is_full {
                state.behind_bytes += bytes;
                state.behind.push_back(frame);
            } else {
                state.frames.push_back(frame);
            }
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Moves the next frame of `body` into the queue, once there is room.
    pub(crate) fn poll_move(&mut self, cx: &mut Context<'_>, body: &mut UpstreamBody) -> Poll<Next> {
        {
            let mut state = self.queue.lock();
            if state.reader_gone {
                return Poll::Ready(Next::ReaderGone);
            }
            // Registered also while the application is waited for: the client's leaving must be heard then, too.
            match &mut state.writer {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            let is_due = state.behind_bytes >= PIECE_BYTES || self.queue.budget.is_used_up();
            if let Some(spool) = self.spool.as_ref().filter(|_| self.spilling.is_none())
                && state.behind_bytes > 0
                && is_due
            {
                self.spilling = Some(state.spill(spool, self.written));
            }
            let is_full = state.bytes >= self.queue.bytes_max || self.queue.budget.is_used_up();
            let over = is_full && self.spool.is_none();
            // Something of its own is always in there when a response waits, so its own reader will wake it.
            if over && state.bytes > 0 {
                let at = (state.bytes, state.read);
                drop(state);
                if self.poll_client_slow(cx).is_ready() {
                    return Poll::Ready(Next::ClientSlow);
                }
                return self.poll_stalled(cx, at).map(|()| Next::ReaderGone);
            }
        }
        if let Some(spilling) = &mut self.spilling {
            let Poll::Ready(is_written) = spilling.is_written.as_mut().poll(cx) else {
                return self.poll_client_slow(cx).map(|()| Next::ClientSlow);
            };
            self.spilled(is_written);
            return Poll::Ready(Next::Moved);
        }
        self.stalled.set(None);
        self.end_wait();
        let polled = Pin::new(body).poll_frame(cx);
        match polled {
            Poll::Pending => _ = self.asks_since.get_or_insert_with(Instant::now),
            Poll::Ready(_) => self.end_asking(),
        }
        let end = match ready!(polled) {
            Some(Ok(frame)) => {
                self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                self.push(frame);
                return Poll::Ready(Next::Moved);
            }
            Some(Err(error)) => Err(error),
            None => Ok(()),
        };
        let failure = end.as_ref().err().map(exchange::failure);
        self.end(end.map_err(Into::into));
        Poll::Ready(Next::Done(failure))
    }

    /// Lets what comes from now on go through a file, where the client does not take it at once. The application waits for that from now on.
    pub(crate) fn spool(&mut self, spool: Arc<Spool>) {
        self.queue.lock().spool = Some(Arc::clone(&spool));
        self.spool = Some(spool);
        self.end_wait();
        self.before_spool = std::mem::take(&mut self.client_time);
        self.is_told = false;
    }

    /// Takes note that what was on its way to the file is there. Where the file is full, what follows waits for the client.
    fn spilled(&mut self, is_written: bool) {
        let Some(Spilling { frames, bytes, .. }) = self.spilling.take() else { return };
        let reader = {
            let mut state = self.queue.lock();
            state.is_writing = false;
            // What its reader held when it left is let go of there.
            if is_written && !state.reader_gone {
                self.written += bytes as u64;
                state.written = self.written;
                // Trailers are no part of a file.
                state.behind = frames.into_iter().filter(|frame| !frame.is_data()).collect();
                state.bytes -= bytes;
                state.behind_bytes -= bytes;
                self.queue.budget.release(bytes);
            } else {
                state.behind = frames;
                self.spool = None;
                // From now on it is the client that is waited for.
                self.is_told = false;
            }
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Returns how long the application was kept waiting.
    pub(crate) fn client_time(&self) -> Duration {
        let now = self.waits_since.map_or(Duration::ZERO, |since| since.elapsed());
        self.before_spool + self.client_time + now
    }

    /// Returns how long it may be.
    pub(crate) fn client_time_max(&self) -> Duration {
        self.client_time_max
    }

    /// Is ready, once, when the application has been kept waiting for so long that it is to be told.
    fn poll_client_slow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.waits_since.is_none() {
            self.end_asking();
            self.waits_since = Some(Instant::now());
            self.due.set(Some(self.client_time_max.saturating_sub(self.client_time)));
        }
        if self.is_told {
            return Poll::Pending;
        }
        ready!(self.due.poll(cx));
        self.is_told = true;
        Poll::Ready(())
    }

    /// The application is kept waiting no longer.
    fn end_wait(&mut self) {
        if let Some(since) = self.waits_since.take() {
            self.client_time += since.elapsed();
        }
    }

    /// The application is waited for no longer.
    fn end_asking(&mut self) {
        if let Some(since) = self.asks_since.take() {
            self.client_time = self.client_time.saturating_sub(since.elapsed());
        }
    }

    /// Returns whether it is the file that the application waits for.
    pub(crate) fn fills_file(&self) -> bool {
        self.spilling.is_some()
    }

    /// Returns how many bytes of the answer have come.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Breaks the answer off.
    pub(crate) fn cut(self) {
        self.end(Err(io::Error::from(io::ErrorKind::ConnectionAborted).into()));
    }

    /// Is ready when the client has taken nothing for too long; the answer is broken off then.
    fn poll_stalled(&mut self, cx: &mut Context<'_>, at: (usize, u64)) -> Poll<()> {
        if !self.stalled.is_set() || self.stalled_at != at {
            self.stalled.set(Some(self.stall_max));
            self.stalled_at = at;
        }
        ready!(self.stalled.poll(cx));
        self.end(Err(io::Error::from(io::ErrorKind::TimedOut).into()));
        Poll::Ready(())
    }

    fn end(&self, end: Result<(), BoxError>) {
        let reader = {
            let mut state = self.queue.lock();
            state.end = Some(end);
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Reader {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Piece>, BoxError>>> {
        let mut state = self.queue.lock();
        if state.frames.is_empty() && state.is_spooled() {
            if let Some(spool) = state.spool.clone().filter(|_| state.read < state.written) {
                let (read, written) = (state.read, state.written);
                drop(state);
                return self.poll_spool(cx, &spool, read, written);
            }
            if state.is_writing {
                state.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            state.frames = std::mem::take(&mut state.behind);
            state.behind_bytes = 0;
        }
        if let Some(frame) = state.frames.pop_front() {
            state.bytes -= frame.data_ref().map_or(0, Bytes::len);
            let writer = state.writer.take();
            drop(state);
            if let Some(writer) = writer {
                writer.wake();
            }
            return Poll::Ready(Some(Ok(frame.map_data(|bytes| self.piece(bytes)))));
        }
        match state.end.take() {
            Some(Ok(())) => {
                state.end = Some(Ok(()));
                Poll::Ready(None)
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Reader {
    fn poll_spool(
        &mut self,
        cx: &mut Context<'_>,
        spool: &Arc<Spool>,
        read: u64,
        written: u64,
    ) -> Poll<Option<Result<Frame<Piece>, BoxError>>> {
        let reading = self.reading.get_or_insert_with(|| spool.read(read, written));
        let piece = ready!(reading.as_mut().poll(cx));
        self.reading = None;
        Poll::Ready(Some(piece.map_err(Into::into).map(|piece| {
            self.queue.budget.hold(piece.len());
            self.queue.lock().read += piece.len() as u64;
            Frame::data(self.piece(piece))
        })))
    }

    /// Returns a piece that is in the budget already.
    fn piece(&self, bytes: Bytes) -> Piece {
        let counted = Counted { budget: Arc::clone(&self.queue.budget), bytes: bytes.len() };
        Piece { counted: Some(counted), ..Piece::from(bytes) }
    }
}

impl State {
    /// Returns whether something that has come later than what `frames` hold is still to be taken.
    fn is_spooled(&self) -> bool {
        self.read < self.written || self.is_writing || !self.behind.is_empty()
    }

    /// Sends on to the file, which holds `written` bytes, what has come behind it.
    fn spill(&mut self, spool: &Arc<Spool>, written: u64) -> Spilling {
        self.is_writing = true;
        let frames = std::mem::take(&mut self.behind);
        let pieces: Vec<Bytes> = frames.iter().filter_map(Frame::data_ref).cloned().collect();
        let bytes = pieces.iter().map(Bytes::len).sum();
        Spilling { frames, bytes, is_written: spool.fill(written, pieces) }
    }
}

impl fmt::Debug for Spilling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spilling({} bytes)", self.bytes)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let writer = {
            let mut state = self.queue.lock();
            state.reader_gone = true;
            self.queue.budget.release(state.bytes);
            (state.bytes, state.behind_bytes) = (0, 0);
            state.frames.clear();
            state.behind.clear();
            state.writer.take()
        };
        if let Some(writer) = writer {
            writer.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize) -> Frame<Bytes> {
        Frame::data(Bytes::from(vec![0; bytes]))
    }

    #[test]
    fn the_budget_counts_what_is_held_and_nothing_else() {
        let budget = Budget::new(100);
        let (writer, mut reader) =
            queue(Arc::clone(&budget), 50, Duration::from_secs(1), Duration::from_secs(1));
        writer.push(frame(30));
        writer.push(frame(20));
        assert_eq!(budget.held(), 50);
        let mut cx = Context::from_waker(Waker::noop());
        let first = reader.poll_frame(&mut cx);
        let second = reader.poll_frame(&mut cx);
        assert!(matches!(&second, Poll::Ready(Some(Ok(_)))));
        assert_eq!(budget.held(), 50, "the connection has both");
        drop(first);
        assert_eq!(budget.held(), 20, "until each is written");
        drop(reader);
        assert_eq!(budget.held(), 20);
        drop(second);
        assert_eq!(budget.held(), 0);
        writer.push(frame(9));
        assert_eq!(budget.held(), 0, "nothing is held for a client that has gone");
    }

    #[tokio::test(start_paused = true)]
    async fn an_application_is_kept_waiting_only_if_it_is_not_mostly_waited_for() {
        const MS: Duration = Duration::from_millis(1);
        let (mut writer, _reader) = queue(Budget::new(100), 50, Duration::from_secs(1), 50 * MS);
        let mut cx = Context::from_waker(Waker::noop());
        let mut waits_of = async |waits: Duration, says: Duration| {
            for count in 0..1000 {
                if writer.poll_client_slow(&mut cx).is_ready() {
                    return count;
                }
                tokio::time::advance(waits).await;
                if writer.poll_client_slow(&mut cx).is_ready() {
                    return count;
                }
                writer.end_wait();
                writer.asks_since = Some(Instant::now());
                tokio::time::advance(says).await;
                writer.end_asking();
            }
            1000
        };
        assert_eq!(
            waits_of(3 * MS, 5 * MS).await,
            1000,
            "a file that takes less time than what is written to it"
        );
        assert_eq!(waits_of(10 * MS, MS).await, 5, "one that takes more");
    }
}

//! The queue between an application that answers and a client that takes the answer at its own
//! pace.
//!
//! A task of its own fills it, as fast as the application gives the answer, and the client's
//! connection empties it. Past the bound, once the client has been waited for a moment, what
//! follows goes through a file ([`crate::spool`]).

use crate::BoxError;
use crate::budget::Budget;
use crate::deadline::Deadline;
use crate::piece::{Counted, Piece};
use crate::spool::{PIECE_BYTES, PieceRead, PieceWrite, Spool};
use bytes::Bytes;
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use std::{fmt, io};
use suimon_model::Failure;
use tokio::time::Instant;

/// The end of a queue that a task fills from the application.
#[derive(Debug)]
pub struct Writer {
    queue: Arc<Queue>,
    /// How long the client may take nothing while the queue is full.
    stall_max: Duration,
    stalled: Deadline,
    /// What was in the queue then, and read of the file.
    stalled_at: (usize, u64),
    /// How long the application may be kept waiting before that is reported: once before there is a
    /// file, and once with it.
    client_time_max: Duration,
    /// How long it was kept waiting, for the client or the file, less the time that it was waited
    /// for afterwards: what it sends meanwhile makes up for that.
    client_time: Duration,
    /// That value when the file began.
    before_spool: Duration,
    waits_since: Option<Instant>,
    /// Since when the application is waited for.
    asks_since: Option<Instant>,
    due: Deadline,
    is_told: bool,
    /// Where what the client does not take goes, until that is full.
    spool: Option<Arc<Spool>>,
    written: u64,
    /// Pieces on their way there.
    spilling: Option<Spilling>,
    /// Bytes of the answer that have come.
    bytes: u64,
}

/// Frames on their way to a file.
struct Spilling {
    frames: VecDeque<Frame<Bytes>>,
    bytes: usize,
    is_written: PieceWrite,
}

/// The end of a queue that the client's connection empties.
pub struct Reader {
    queue: Arc<Queue>,
    /// A piece on its way from the file.
    reading: Option<PieceRead>,
}

#[derive(Debug)]
struct Queue {
    budget: Arc<Budget>,
    bytes_max: usize,
    state: Mutex<QueueInner>,
}

#[derive(Default, Debug)]
struct QueueInner {
    frames: VecDeque<Frame<Bytes>>,
    /// The file behind these pieces: from the position read to the position written, and what is
    /// being written to it ...
    spool: Option<Arc<Spool>>,
    read: u64,
    written: u64,
    is_writing: bool,
    /// ... and the pieces behind that.
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
pub enum Next {
    /// Go on; a frame was taken over.
    Moved,
    /// Go on; the client has been waited for long enough by now that the application should not be
    /// kept waiting for it, nor its slot be held.
    ClientSlow,
    /// The application is done, or failed in this way.
    Done(Option<Failure>),
    /// The client has gone, or has taken nothing for too long.
    ReaderGone,
}

/// Returns the two ends of a queue of at most `bytes_max` bytes, whose client may take nothing for
/// at most `stall_max` while it is full. After `client_time_max` of waiting for it, that is
/// reported. One frame is always taken, however long.
pub fn queue(
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
    fn lock(&self) -> MutexGuard<'_, QueueInner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Puts in what is there already.
    pub fn push(&self, frame: Frame<Bytes>) {
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

    /// Moves the next frame of `body` into the queue, once there is room. `failure`: what an error
    /// of it counts as.
    pub fn poll_move<B>(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut B,
        failure: impl Fn(&B::Error) -> Failure,
    ) -> Poll<Next>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        {
            let mut state = self.queue.lock();
            if state.reader_gone {
                return Poll::Ready(Next::ReaderGone);
            }
            // Registered also while the application is waited for: the client's leaving must be
            // heard then, too.
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
            // A waiting response always has something of its own in there, so its own reader will
            // wake it.
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
        let failure = end.as_ref().err().map(failure);
        self.end(end.map_err(Into::into));
        Poll::Ready(Next::Done(failure))
    }

    /// Lets what comes from now on go through a file, where the client does not take it at once.
    /// The application waits for that from now on.
    pub fn spool(&mut self, spool: Arc<Spool>) {
        self.queue.lock().spool = Some(Arc::clone(&spool));
        self.spool = Some(spool);
        self.end_wait();
        self.before_spool = std::mem::take(&mut self.client_time);
        self.is_told = false;
    }

    /// Takes note that what was on its way to the file is there. Where the file is full, what
    /// follows waits for the client.
    fn spilled(&mut self, is_written: bool) {
        let Some(Spilling { frames, bytes, .. }) = self.spilling.take() else { return };
        let reader = {
            let mut state = self.queue.lock();
            state.is_writing = false;
            // Its reader has dropped what it held when it left.
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
    pub fn client_time(&self) -> Duration {
        let now = self.waits_since.map_or(Duration::ZERO, |since| since.elapsed());
        self.before_spool + self.client_time + now
    }

    /// Returns how long it may be.
    pub fn client_time_max(&self) -> Duration {
        self.client_time_max
    }

    /// Is ready, once, when the application has been kept waiting for so long that it must be
    /// reported.
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
    pub fn fills_file(&self) -> bool {
        self.spilling.is_some()
    }

    /// Returns how many bytes of the answer have come.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Breaks the answer off.
    pub fn cut(self) {
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
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, BoxError>>> {
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

impl QueueInner {
    /// Returns whether data later than that in `frames` is still to be taken.
    fn is_spooled(&self) -> bool {
        self.read < self.written || self.is_writing || !self.behind.is_empty()
    }

    /// Sends the pieces behind it on to the file, which holds `written` bytes.
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

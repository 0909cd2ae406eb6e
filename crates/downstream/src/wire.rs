//! The bytes of one client connection, between the socket (or TLS) and the HTTP library.
//!
//! Handles what only the bytes can show: framing faults (see [`crate::framing`]), how long a head
//! takes, how long a connection is idle, and how long a client takes nothing. Timers are moved only
//! when they go off, so a request on a busy connection costs none.

use crate::connection::{Connection, HALF_CLOSED_MAX};
use crate::connections::ClientWait;
use crate::deadline::Deadline;
use crate::early::H2Preface;
use crate::framing::{Framing, Phase};
use bytes::{Buf, Bytes};
use http::HeaderMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use suimon_message::accept;
use suimon_message::validate::RequestFault;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Answers up to this many bytes, head included, are written in one piece.
const JOINED_MAX: usize = 2048;

/// The library's own answer to a request it cannot read is shorter than this, in bytes.
const LIBRARY_WORDS_MAX: usize = 160;

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub struct ClientTimeouts {
    /// For the head of a request.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// For the next piece of what is written.
    pub write: Duration,
    /// The least rate at which it must take what is written, bytes per second: beyond `write`, it
    /// may be waited for no longer than that takes. 0: none.
    pub rate_min: u64,
}

/// A connection's bytes.
#[derive(Debug)]
pub struct Wire<S> {
    stream: S,
    connection: Arc<Connection>,
    /// `None`: HTTP/2, whose library frames for itself.
    framing: Option<Framing>,
    /// What an HTTP/2 connection begins with, until it has come.
    opening: Option<H2Preface>,
    timeouts: ClientTimeouts,
    awaited: Awaited,
    reading: Deadline,
    writing: Deadline,
    /// Since when a write waits for the client.
    writes_since: Option<Instant>,
    /// How long writes have waited, less the time that the bytes taken meanwhile may take at the
    /// least rate.
    slowness: Duration,
    /// Whether the client takes what it is sent; `None`: HTTP/2, whose answers tell for themselves.
    taking: Option<ClientWait>,
    is_fresh: bool,
    /// The client sends no more, and is still being answered.
    is_half_closed: bool,
    /// The rest of our own text, written in place of the library's last words.
    last_words: Option<Bytes>,
    /// What the first piece of a head that did not come in one piece said of its sender: people get
    /// a page even where the head is never read.
    accepts: Option<HeaderMap>,
}

/// What the next read waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    /// Anything; the wait has no limit here.
    Anything,
    /// The next request, after this many.
    Request(u32),
    /// The rest of a head, after this many; or of what HTTP/2 begins with.
    Head(u32),
}

impl<S> Wire<S> {
    /// Returns the bytes of an HTTP/1 connection.
    pub fn http1(stream: S, connection: Arc<Connection>, timeouts: ClientTimeouts) -> Self {
        Wire::new(stream, connection, Some(Framing::default()), timeouts)
    }

    /// Returns the bytes of an HTTP/2 connection.
    pub fn http2(stream: S, connection: Arc<Connection>, timeouts: ClientTimeouts) -> Self {
        Wire::new(stream, connection, None, timeouts)
    }

    fn new(
        stream: S,
        connection: Arc<Connection>,
        framing: Option<Framing>,
        timeouts: ClientTimeouts,
    ) -> Self {
        Wire {
            stream,
            taking: framing.is_some().then(|| ClientWait::new(connection.standing())),
            connection,
            opening: framing.is_none().then(H2Preface::default),
            framing,
            timeouts,
            awaited: Awaited::Anything,
            reading: Deadline::default(),
            writing: Deadline::default(),
            writes_since: None,
            slowness: Duration::ZERO,
            is_fresh: true,
            is_half_closed: false,
            last_words: None,
            accepts: None,
        }
    }

    fn awaited(&self) -> Awaited {
        let Some(framing) = &self.framing else {
            return if self.opening.is_some() { Awaited::Head(0) } else { Awaited::Anything };
        };
        match framing.phase() {
            Phase::Head => Awaited::Head(framing.heads()),
            // While a request is being answered the client may be silent.
            Phase::Between if framing.heads() == self.connection.done() => Awaited::Request(framing.heads()),
            _ => Awaited::Anything,
        }
    }

    /// Returns whether the client has asked for something, whole, that is not answered yet.
    fn is_asked(&self) -> bool {
        let is_asked = |framing: &Framing| {
            framing.phase() == Phase::Between && framing.heads() != self.connection.done()
        };
        self.framing.as_ref().is_some_and(is_asked)
    }

    /// Is ready when what the client has asked for is answered, or has taken too long.
    fn poll_half_closed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_asked() {
            ready!(self.reading.poll(cx));
        }
        Poll::Ready(Ok(()))
    }

    /// Is ready when the client has taken too long.
    fn poll_timeouts(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let awaited = self.awaited();
        if self.awaited != awaited {
            self.awaited = awaited;
            let limit = match awaited {
                Awaited::Anything => None,
                // A connection that has sent nothing at all is worth less than one that has sent
                // something.
                Awaited::Request(_) if self.is_fresh => Some(self.timeouts.head),
                Awaited::Request(_) => Some(self.timeouts.idle),
                Awaited::Head(_) => Some(self.timeouts.head),
            };
            self.reading.set(limit);
        }
        ready!(self.reading.poll(cx));
        match awaited {
            Awaited::Head(_) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            // As if the client had closed it: between two requests nothing is lost.
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl<S> Drop for Wire<S> {
    fn drop(&mut self) {
        // The stream goes after this, and with it the socket's number.
        self.connection.close();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.is_half_closed {
            return this.poll_half_closed(cx);
        }
        let before = buf.filled().len();
        match Pin::new(&mut this.stream).poll_read(cx, buf) {
            // The library would take it for the end of everything.
            Poll::Ready(Ok(())) if buf.filled().len() == before && buf.remaining() > 0 && this.is_asked() => {
                this.is_half_closed = true;
                this.reading.set(Some(HALF_CLOSED_MAX));
                this.poll_half_closed(cx)
            }
            Poll::Ready(result) => {
                if let Some(framing) = &mut this.framing {
                    let was_within = framing.phase() == Phase::Head;
                    framing.scan(&mut buf.filled_mut()[before..]);
                    if framing.phase() == Phase::Head && !was_within {
                        this.accepts = accept::of_beginning(&buf.filled()[before..]);
                    }
                    // An empty line before a request says nothing either.
                    this.is_fresh &= (framing.phase(), framing.heads()) == (Phase::Between, 0);
                }
                if this.opening.as_mut().is_some_and(|opening| opening.scan(&buf.filled()[before..])) {
                    this.opening = None;
                }
                Poll::Ready(result)
            }
            Poll::Pending => this.poll_timeouts(cx),
        }
    }
}

impl<S: AsyncWrite + Unpin> Wire<S> {
    fn poll_writing<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let polled = poll(Pin::new(&mut self.stream), cx);
        if polled.is_ready() {
            self.writing.set(None);
            if let Some(since) = self.writes_since.take() {
                self.connection.note_writes_wait(false);
                if self.timeouts.rate_min > 0 {
                    self.slowness += since.elapsed();
                }
            }
            if let Some(taking) = &mut self.taking {
                taking.end();
            }
            return polled;
        }
        if let Some(taking) = &mut self.taking {
            taking.begin();
        }
        if !self.writing.is_set() {
            self.writing.set(Some(self.timeouts.write.saturating_sub(self.slowness)));
            self.writes_since = Some(Instant::now());
            self.connection.note_writes_wait(true);
        }
        ready!(self.writing.poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Writes, and takes note of how much the client has taken.
    fn poll_taken(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let bytes = ready!(self.poll_writing(cx, poll))?;
        if !self.slowness.is_zero() {
            let millis = (bytes as u64 * 1000).checked_div(self.timeouts.rate_min);
            self.slowness = self.slowness.saturating_sub(Duration::from_millis(millis.unwrap_or(u64::MAX)));
        }
        Poll::Ready(Ok(bytes))
    }
}

impl<S: AsyncWrite + Unpin> Wire<S> {
    /// Writes `bytes`, or something better in their place.
    fn poll_write_one(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(fault) = self.refused_by_library(bytes) {
            self.last_words = Some(self.connection.unreadable(fault, self.accepts.take()));
        }
        let Some(mut words) = self.last_words.clone() else {
            return self.poll_taken(cx, |stream, cx| stream.poll_write(cx, bytes));
        };
        while !words.is_empty() {
            let written = ready!(self.poll_taken(cx, |stream, cx| stream.poll_write(cx, &words)))?;
            if written == 0 {
                return Poll::Ready(Ok(0));
            }
            words.advance(written);
            self.last_words = Some(words.clone());
        }
        Poll::Ready(Ok(bytes.len()))
    }

    /// Returns what is wrong with the request that the library answers with `bytes`: a head without
    /// explanation, for a request that was never handed on.
    fn refused_by_library(&self, bytes: &[u8]) -> Option<RequestFault> {
        let framing = self.framing.as_ref().filter(|_| self.last_words.is_none())?;
        let is_handed_on = framing.phase() != Phase::Head && framing.heads() == self.connection.begun();
        if is_handed_on || bytes.len() > LIBRARY_WORDS_MAX {
            return None;
        }
        let mut lines = bytes.strip_suffix(b"\r\n\r\n")?.split(|byte| *byte == b'\n');
        let fault = match lines.next()?.strip_prefix(b"HTTP/1.1 ")?.get(..3)? {
            b"400" => RequestFault::BadHead,
            b"414" => RequestFault::UrlTooLong,
            b"431" => RequestFault::HeadTooLarge,
            _ => return None,
        };
        // The application's answers have no `connection: close` here, unless their client asked for
        // it.
        const OWN: [&[u8]; 3] = [b"connection: close", b"content-length: 0", b"date: "];
        let mut closes = false;
        let is_bare = lines.all(|line| {
            closes |= line.starts_with(OWN[0]);
            OWN.iter().any(|own| line.starts_with(own))
        });
        (is_bare && closes).then_some(fault)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_one(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // Copying a small answer behind its head costs less than a plain write saves as a cheaper
        // system call.
        let total: usize = bufs.iter().map(|buf| buf.len()).sum();
        match bufs {
            [one] => self.poll_write_one(cx, one),
            _ if total <= JOINED_MAX => {
                let mut joined = [0; JOINED_MAX];
                let mut end = 0;
                for buf in bufs {
                    joined[end..end + buf.len()].copy_from_slice(buf);
                    end += buf.len();
                }
                self.poll_taken(cx, |stream, cx| stream.poll_write(cx, &joined[..end]))
            }
            _ => self.poll_taken(cx, |stream, cx| stream.poll_write_vectored(cx, bufs)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_writing(cx, |stream, cx| stream.poll_flush(cx)))?;
        if self.is_half_closed {
            if !self.is_asked() {
                cx.waker().wake_by_ref();
            }
            return Poll::Ready(Ok(()));
        }
        // With its last byte an answer is over, and the library does not read again before there is
        // something to read: the idle time of the connection begins here. It has only just begun,
        // so the read that it wakes handles its end.
        let _ = self.poll_timeouts(cx);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_writing(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}

//! A socket that notes when bytes went out and came in.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// When the bytes of one exchange moved.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    written: Cell<Option<Instant>>,
    first_read: Cell<Option<Instant>>,
}

impl Marks {
    /// Forgets what was, before the next exchange.
    pub(crate) fn clear(&self) {
        self.written.set(None);
        self.first_read.set(None);
    }

    /// Returns when the last byte of the request was given to the kernel.
    pub(crate) const fn written(&self) -> Option<Instant> {
        self.written.get()
    }

    /// Returns when the first byte of the answer was taken from the kernel.
    pub(crate) const fn first_read(&self) -> Option<Instant> {
        self.first_read.get()
    }

    fn note_written(&self, bytes: usize) {
        // What is written once the answer has begun does not belong to what it answers.
        if bytes > 0 && self.first_read.get().is_none() {
            self.written.set(Some(Instant::now()));
        }
    }

    fn note_read(&self, bytes: usize) {
        if bytes > 0 && self.first_read.get().is_none() {
            self.first_read.set(Some(Instant::now()));
        }
    }
}

/// The socket.
#[derive(Debug)]
pub(crate) struct Marked {
    stream: TcpStream,
    marks: Rc<Marks>,
}

impl Marked {
    pub(crate) const fn new(stream: TcpStream, marks: Rc<Marks>) -> Self {
        Marked { stream, marks }
    }
}

impl AsyncRead for Marked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.marks.note_read(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Marked {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.marks.note_written(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, pieces))?;
        self.marks.note_written(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

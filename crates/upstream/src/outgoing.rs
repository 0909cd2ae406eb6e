//! A request on its way into a connection: first its head, then its body piece by piece.

use super::connect::Stream;
use super::head::RequestHead;
use super::request::{BoxError, RequestBody};
use bytes::{Buf, Bytes};
use http::header::CONTENT_LENGTH;
use http_body::Body;
use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use suimon_fastcgi::record::HEADER;
use suimon_fastcgi::request::stdin;
use tokio::io::AsyncWrite;

/// What is still to be sent. It lives as long as its connection and keeps its buffer.
#[derive(Default)]
pub(super) struct Outgoing {
    /// The head, or what is ahead of a piece of the body: the line with a chunk's size, the header
    /// of a record. Sent up to `written`.
    text: Vec<u8>,
    written: usize,
    /// A piece of the body, to be sent after `text`, and what follows it.
    piece: Bytes,
    tail: &'static [u8],
    /// What did not fit into the record of `piece`.
    rest: Bytes,
    body: RequestBody,
    left: Left,
    has_begun: bool,
}

/// What is left of a body, and how its pieces are framed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Left {
    /// Nothing: the kernel has all of it.
    #[default]
    Nothing,
    /// Only what is in the buffers.
    Buffered,
    /// This many bytes, as the head declares.
    Bytes(u64),
    /// An unknown number of chunks.
    Chunks,
    /// This many bytes, as the head declares, in records of FastCGI.
    Records(u64),
    /// Unknown; it can no longer be sent.
    Lost,
}

/// The record that ends a body.
const BODY_END: [u8; HEADER] = stdin(0);

/// Why a request could not be sent.
#[derive(Debug)]
pub(super) enum SendFault {
    /// The client's body ended early, is malformed, or differs from its declared length.
    Body(BoxError),
    /// The connection failed.
    Connection(io::Error),
}

impl Left {
    /// Returns what is left before anything was sent of `body`, whose head is `head`.
    pub(super) fn of(head: &RequestHead, body: &RequestBody) -> Self {
        if body.is_end_stream() {
            return Left::Buffered;
        }
        Left::declared(head, body).map_or(Left::Chunks, Left::Bytes)
    }

    /// Returns the length of `body`, as the head declares it or as the body knows it.
    pub(super) fn declared(head: &RequestHead, body: &RequestBody) -> Option<u64> {
        let declared = head.parts.headers.get(CONTENT_LENGTH);
        let declared = declared.and_then(|length| length.to_str().ok()?.parse().ok());
        declared.or_else(|| body.size_hint().exact())
    }
}

impl Outgoing {
    /// Begins another request, whose head is what `write` writes.
    pub(super) fn begin(&mut self, body: RequestBody, left: Left, write: impl FnOnce(&mut Vec<u8>)) {
        self.text.clear();
        self.written = 0;
        self.piece = Bytes::new();
        self.tail = b"";
        self.rest = Bytes::new();
        self.has_begun = false;
        self.left = left;
        self.body = body;
        write(&mut self.text);
    }

    /// Returns whether the kernel has all of the request.
    pub(super) fn is_sent(&self) -> bool {
        self.left == Left::Nothing
    }

    /// Returns the body, if nothing of the request was written.
    pub(super) fn take_unsent(&mut self) -> Option<RequestBody> {
        (!self.has_begun).then(|| std::mem::take(&mut self.body))
    }

    /// Continues to send. Ready when the kernel has all of it, and after a fault, of which there is
    /// at most one.
    pub(super) fn poll(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<Result<(), SendFault>> {
        let sent = ready!(self.poll_sent(stream, cx));
        if sent.is_err() {
            self.left = Left::Lost;
        }
        Poll::Ready(sent)
    }

    fn poll_sent(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<Result<(), SendFault>> {
        while !matches!(self.left, Left::Nothing | Left::Lost) {
            ready!(self.poll_write(stream, cx)).map_err(SendFault::Connection)?;
            // Data that a TLS session buffers must not stay there while the client is waited for.
            ready!(Pin::new(&mut *stream).poll_flush(cx)).map_err(SendFault::Connection)?;
            if !self.rest.is_empty() {
                self.put_record();
                continue;
            }
            if self.left == Left::Buffered {
                self.left = Left::Nothing;
                // An idle connection keeps no data of a client.
                self.body = RequestBody::empty();
                self.piece = Bytes::new();
                break;
            }
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            let frame = frame.transpose().map_err(SendFault::Body)?;
            match frame.map(http_body::Frame::into_data) {
                Some(Ok(data)) => self.put(data).map_err(|fault| SendFault::Body(fault.into()))?,
                // Trailers are dropped: few applications read them, and the head does not promise
                // any.
                Some(Err(_)) => {}
                None => self.end().map_err(|fault| SendFault::Body(fault.into()))?,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let text = &self.text[self.written..];
            let wrote = if !self.piece.is_empty() || !self.tail.is_empty() {
                let all = [IoSlice::new(text), IoSlice::new(&self.piece), IoSlice::new(self.tail)];
                ready!(Pin::new(&mut *stream).poll_write_vectored(cx, &all))?
            } else if !text.is_empty() {
                ready!(Pin::new(&mut *stream).poll_write(cx, text))?
            } else {
                return Poll::Ready(Ok(()));
            };
            if wrote == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.has_begun = true;
            let of_text = wrote.min(text.len());
            let of_piece = (wrote - of_text).min(self.piece.len());
            self.written += of_text;
            self.piece.advance(of_piece);
            self.tail = &self.tail[wrote - of_text - of_piece..];
        }
    }

    /// Takes the next piece of the body, after the previous one is sent.
    fn put(&mut self, data: Bytes) -> Result<(), &'static str> {
        if data.is_empty() {
            return Ok(());
        }
        if let Left::Bytes(left) | Left::Records(left) = &mut self.left {
            let longer = "the request's body is longer than its head says";
            *left = left.checked_sub(data.len() as u64).ok_or(longer)?;
        }
        if let Left::Records(_) = self.left {
            self.rest = data;
            self.put_record();
            return Ok(());
        }
        if self.left == Left::Chunks {
            self.text.clear();
            self.written = 0;
            // Into memory: cannot fail.
            let _ = write!(self.text, "{:x}\r\n", data.len());
            self.tail = b"\r\n";
        }
        self.piece = data;
        Ok(())
    }

    /// Takes the next record out of a piece that is longer than one may be.
    fn put_record(&mut self) {
        let length = u16::try_from(self.rest.len()).unwrap_or(u16::MAX);
        self.piece = self.rest.split_to(length.into());
        self.text.clear();
        self.written = 0;
        self.text.extend_from_slice(&stdin(length));
    }

    fn end(&mut self) -> Result<(), &'static str> {
        match self.left {
            Left::Bytes(1..) | Left::Records(1..) => {
                return Err("the request's body is shorter than its head says");
            }
            Left::Chunks => self.tail = b"0\r\n\r\n",
            Left::Records(0) => self.tail = &BODY_END,
            _ => {}
        }
        self.left = Left::Buffered;
        Ok(())
    }
}

//! A request on its way into a connection: first its head, then its body piece by piece.

use super::super::connect::Stream;
use super::super::head::RequestHead;
use super::super::request::BoxError;
use super::super::request::RequestBody;
use bytes::{Buf, Bytes};
use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING};
use http::{HeaderMap, Method};
use http_body::Body;
use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// What is still to be sent. It lives as long as its connection and keeps its buffer.
#[derive(Default)]
pub(super) struct Outgoing {
    /// The head, or the line with a chunk's size; sent up to `written`.
    text: Vec<u8>,
    written: usize,
    /// A piece of the body, to be sent after `text`, and what follows it.
    piece: Bytes,
    tail: &'static [u8],
    body: RequestBody,
    left: Left,
    has_begun: bool,
}

/// What is left of a body.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Left {
    /// Nothing: the kernel has all of it.
    #[default]
    Nothing,
    /// Only what is in the buffers.
    Buffered,
    /// This many bytes, as the head declares.
    Bytes(u64),
    /// An unknown number of chunks.
    Chunks,
    /// Unknown; it can no longer be sent.
    Lost,
}

/// Why a request could not be sent.
#[derive(Debug)]
pub(super) enum SendFault {
    /// The client's body ended early, is malformed, or differs from its declared length.
    Body(BoxError),
    /// The connection failed.
    Connection(io::Error),
}

impl Outgoing {
    /// Begins another request. `host` is for a request that names none.
    pub(super) fn begin(&mut self, head: &RequestHead, host: &HeaderValue, body: RequestBody) {
        self.text.clear();
        self.written = 0;
        self.piece = Bytes::new();
        self.tail = b"";
        self.has_begun = false;
        self.left = if body.is_end_stream() { Left::Buffered } else { left(&head.parts.headers, &body) };
        self.body = body;
        write_head(&mut self.text, head, host, self.left);
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
        if let Left::Bytes(left) = &mut self.left {
            let longer = "the request's body is longer than its head says";
            *left = left.checked_sub(data.len() as u64).ok_or(longer)?;
        } else {
            self.text.clear();
            self.written = 0;
            // Into memory: cannot fail.
            let _ = write!(self.text, "{:x}\r\n", data.len());
            self.tail = b"\r\n";
        }
        self.piece = data;
        Ok(())
    }

    fn end(&mut self) -> Result<(), &'static str> {
        match self.left {
            Left::Bytes(1..) => return Err("the request's body is shorter than its head says"),
            Left::Chunks => self.tail = b"0\r\n\r\n",
            _ => {}
        }
        self.left = Left::Buffered;
        Ok(())
    }
}

fn left(headers: &HeaderMap, body: &RequestBody) -> Left {
    let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    declared.or_else(|| body.size_hint().exact()).map_or(Left::Chunks, Left::Bytes)
}

/// Headers that are not copied from the request: its length is given in one way only, and trailers
/// are neither sent nor asked for.
const NOT_SENT: [HeaderName; 4] = [CONTENT_LENGTH, TRANSFER_ENCODING, TE, TRAILER];

/// Writes the head in origin form, with exactly one way to tell the body's length.
fn write_head(text: &mut Vec<u8>, head: &RequestHead, host: &HeaderValue, left: Left) {
    let RequestHead { parts: head, forwarding } = head;
    text.extend_from_slice(head.method.as_str().as_bytes());
    text.push(b' ');
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    // An absolute target may have no path: `http://shop?b=c`.
    if !target.starts_with(['/', '*']) {
        text.push(b'/');
    }
    text.extend_from_slice(target.as_bytes());
    text.extend_from_slice(b" HTTP/1.1\r\n");
    let mut line = |name: &str, value: &[u8]| {
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value);
        text.extend_from_slice(b"\r\n");
    };
    let (mut asked_for, mut has_length) = (None, false);
    for (name, value) in &head.headers {
        if NOT_SENT.contains(name) {
            has_length |= *name == CONTENT_LENGTH;
            continue;
        }
        if *name == HOST {
            asked_for = Some(value);
        }
        line(name.as_str(), value.as_bytes());
    }
    if asked_for.is_none() {
        line(HOST.as_str(), host.as_bytes());
    }
    if let Some(forwarding) = forwarding {
        forwarding.lines(asked_for).for_each(|(name, value)| line(name.as_str(), value.as_bytes()));
    }
    let says_length = has_length
        // RFC 9110, section 8.6: methods whose requests usually have a body should say that there
        // is none.
        || matches!(head.method, Method::POST | Method::PUT | Method::PATCH);
    match left {
        Left::Chunks => line(TRANSFER_ENCODING.as_str(), b"chunked"),
        Left::Bytes(length) => line(CONTENT_LENGTH.as_str(), length.to_string().as_bytes()),
        _ if says_length => line(CONTENT_LENGTH.as_str(), b"0"),
        _ => {}
    }
    text.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn written(request: Request<()>, left: Left) -> String {
        let mut text = vec![];
        write_head(&mut text, &request.into_parts().0.into(), &HeaderValue::from_static("node:80"), left);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_head_tells_the_length_of_its_body_in_one_way() {
        let get = Request::builder().uri("http://shop/a?b=c").header(HOST, "shop").body(()).unwrap();
        assert_eq!(written(get, Left::Buffered), "GET /a?b=c HTTP/1.1\r\nhost: shop\r\n\r\n");
        let bare = Request::builder().uri("http://shop?b=c").header(HOST, "shop").body(()).unwrap();
        assert_eq!(written(bare, Left::Buffered), "GET /?b=c HTTP/1.1\r\nhost: shop\r\n\r\n");
        let post = || Request::post("/a").header(CONTENT_LENGTH, "5").header(TRANSFER_ENCODING, "gzip");
        let begin = "POST /a HTTP/1.1\r\n";
        let sized = format!("{begin}host: node:80\r\ncontent-length: 5\r\n\r\n");
        assert_eq!(written(post().body(()).unwrap(), Left::Bytes(5)), sized);
        let chunked = format!("{begin}host: node:80\r\ntransfer-encoding: chunked\r\n\r\n");
        assert_eq!(written(post().body(()).unwrap(), Left::Chunks), chunked);
        let empty = format!("{begin}host: node:80\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(written(Request::post("/a").body(()).unwrap(), Left::Buffered), empty);
        assert_eq!(
            written(Request::options("*").body(()).unwrap(), Left::Buffered),
            "OPTIONS * HTTP/1.1\r\nhost: node:80\r\n\r\n"
        );
    }
}

//! The first bytes of a connection: what they say of its protocol, and how that protocol's parser
//! reads them again.

use crate::proxy_protocol;
use bytes::{Buf, Bytes, BytesMut};
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// How an HTTP/2 connection with prior knowledge begins; no method of HTTP/1 begins like this.
const PREFACE: &[u8; 3] = b"PRI";

/// Headers of the PROXY protocol are rarely longer, in bytes.
const HEADER_USUAL: usize = 256;

/// Bytes of the whole preface, and of the head of a frame, which begins with its length in three
/// bytes.
const PREFACE_BYTES: usize = 24;
const FRAME_HEAD_BYTES: usize = 9;
const FRAME_LENGTH_BYTES: usize = 3;

/// A stream of which some bytes have been read already; they are read again first.
#[derive(Debug)]
pub struct PeekedStream<S> {
    bytes: Bytes,
    stream: S,
}

impl<S> PeekedStream<S> {
    /// Returns `stream` with `bytes` in front.
    pub fn new(bytes: Bytes, stream: S) -> Self {
        PeekedStream { bytes, stream }
    }
}

impl<S: AsyncRead + Unpin> PeekedStream<S> {
    /// Reads a header of the PROXY protocol, and returns the client that it names, if any. What
    /// follows it is read again.
    ///
    /// # Errors
    /// With [`io::ErrorKind::InvalidData`] if the bytes are no such header.
    pub async fn header(&mut self) -> io::Result<Option<IpAddr>> {
        let mut bytes = BytesMut::with_capacity(HEADER_USUAL);
        loop {
            match proxy_protocol::read(&bytes) {
                Ok(proxy_protocol::Read::Header { length, client }) => {
                    self.bytes = bytes.split_off(length).freeze();
                    return Ok(client);
                }
                Ok(proxy_protocol::Read::More) => {
                    if self.stream.read_buf(&mut bytes).await? == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(fault) => return Err(io::Error::new(io::ErrorKind::InvalidData, fault)),
            }
        }
    }

    /// Returns whether the client speaks HTTP/2 by prior knowledge, once it has sent enough to
    /// tell, or nothing more comes.
    pub async fn begins_as_h2(&mut self) -> io::Result<bool> {
        let mut start = [0; PREFACE.len()];
        let mut length = self.bytes.len().min(start.len());
        start[..length].copy_from_slice(&self.bytes[..length]);
        while length < PREFACE.len() && start[..length] == PREFACE[..length] {
            let count = self.stream.read(&mut start[length..]).await?;
            if count == 0 {
                break;
            }
            length += count;
        }
        if length > self.bytes.len() {
            self.bytes = Bytes::copy_from_slice(&start[..length]);
        }
        Ok(start[..length] == *PREFACE)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PeekedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.bytes.is_empty() {
            return Pin::new(&mut this.stream).poll_read(cx, buf);
        }
        let count = this.bytes.len().min(buf.remaining());
        buf.put_slice(&this.bytes[..count]);
        this.bytes.advance(count);
        if buf.remaining() > 0 {
            // The rest has most likely arrived, and the reader is spared a second look. An error
            // comes again.
            let _ = Pin::new(&mut this.stream).poll_read(cx, buf);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PeekedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
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

/// Follows what an HTTP/2 client begins with: the preface, and the frame of its settings behind it.
///
/// The HTTP library waits for both without a limit of time.
#[derive(Default, Debug)]
pub struct H2Preface {
    seen: usize,
    /// Of the frame, as far as it has come.
    length: usize,
}

impl H2Preface {
    /// Follows the bytes just read, and returns whether the frame is complete.
    pub fn scan(&mut self, bytes: &[u8]) -> bool {
        for &byte in bytes {
            let at = self.seen;
            if (PREFACE_BYTES..PREFACE_BYTES + FRAME_LENGTH_BYTES).contains(&at) {
                self.length = self.length << 8 | usize::from(byte);
            }
            self.seen += 1;
            if self.is_complete() {
                return true;
            }
        }
        false
    }

    fn is_complete(&self) -> bool {
        let head = PREFACE_BYTES + FRAME_HEAD_BYTES;
        self.seen >= head && self.seen >= head + self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    async fn told(pieces: &[&[u8]]) -> (bool, Vec<u8>) {
        let (mut client, server) = tokio::io::duplex(64);
        let mut early = PeekedStream::new(Bytes::new(), server);
        let says = async {
            for piece in pieces {
                client.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            drop(client);
        };
        let (is_h2, ()) = tokio::join!(early.begins_as_h2(), says);
        let mut all = Vec::new();
        early.read_to_end(&mut all).await.unwrap();
        (is_h2.unwrap(), all)
    }

    #[tokio::test]
    async fn the_first_bytes_tell_the_protocol_however_they_are_cut_and_none_is_lost() {
        for (pieces, is_h2) in [
            (&[&b"PRI * HTTP/2.0"[..]][..], true),
            (&[b"P", b"R", b"I * HTTP/2.0"], true),
            (&[b"PR", b"OPFIND / HTTP/1.1"], false),
            (&[b"P", b"OST / HTTP/1.1"], false),
            (&[b"GET / HTTP/1.1"], false),
            (&[b"P"], false),
            (&[], false),
        ] {
            assert_eq!(told(pieces).await, (is_h2, pieces.concat()), "{pieces:?}");
        }
    }

    #[test]
    fn an_opening_is_over_with_the_last_byte_of_the_first_frame() {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0".to_vec();
        bytes.extend([0, 3, 0, 0, 0, 100]);
        for size in 1..bytes.len() {
            let mut opening = H2Preface::default();
            let over: Vec<bool> = bytes.chunks(size).map(|piece| opening.scan(piece)).collect();
            let (last, before) = over.split_last().unwrap();
            assert!(*last && !before.contains(&true), "pieces of {size} bytes");
        }
        let empty = [&bytes[..24], &[0; 9]].concat();
        assert!(H2Preface::default().scan(&empty));
    }
}

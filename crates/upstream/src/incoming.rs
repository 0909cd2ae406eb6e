//! Bytes on their way out of a connection.

use super::connect::Stream;
use bytes::BytesMut;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncReadExt;

/// Bounds of the free space for a read, in bytes: it doubles with each read that fills it.
const READ_MIN: usize = 4 << 10;
const READ_MAX: usize = 64 << 10;
/// The largest buffer an idle connection keeps, in bytes.
const IDLE_BUFFER_MAX: usize = 16 << 10;

/// What was read from a connection and is not used yet.
pub(super) struct Incoming {
    pub(super) bytes: BytesMut,
    room: usize,
}

impl Default for Incoming {
    fn default() -> Self {
        Incoming { bytes: BytesMut::new(), room: READ_MIN }
    }
}

impl Incoming {
    /// Reads what is available; ready with 0 at the connection's end.
    pub(super) fn poll_read(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.bytes.capacity() - self.bytes.len() < READ_MIN {
            self.bytes.reserve(self.room);
        }
        let room = self.bytes.capacity() - self.bytes.len();
        let read = ready!(pin!(stream.read_buf(&mut self.bytes)).poll(cx))?;
        if read == room {
            self.room = (self.room * 2).min(READ_MAX);
        }
        Poll::Ready(Ok(read))
    }

    /// Gives back memory that an idle connection does not need.
    pub(super) fn rest(&mut self) {
        self.room = READ_MIN;
        if self.bytes.capacity() > IDLE_BUFFER_MAX {
            self.bytes = BytesMut::new();
        }
    }
}

//! Notices that a client has closed its connection, whatever of its bytes nobody has read yet.
//!
//! The HTTP library reads on only while its buffer is empty and the request's body is finished, so pipelined bytes or an
//! unread body hide the end of the connection from it. The kernel is asked instead, about the closing alone: a
//! second descriptor of the socket, registered for reading (so that the kernel reports the peer's shutdown) but
//! awaited for priority events only, which the runtime wakes for a close but not for data. That costs about
//! 5 µs, so it is done for requests that really wait. HTTP/2 has no need of it: its streams end by themselves.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A watch over one connection.
#[derive(Debug)]
pub(crate) struct Watch(AsyncFd<OwnedFd>);

impl Watch {
    /// Returns a watch over the socket `fd`, which must be open: it is the socket of the connection whose request's
    /// future makes the call, and that future does not outlive its connection.
    #[expect(
        unsafe_code,
        reason = "the runtime offers a second registration of one socket by descriptor only"
    )]
    pub(crate) fn new(fd: RawFd) -> io::Result<Self> {
        // SAFETY: the connection owns the socket and keeps it open while it polls the request's future, which is where we
        // are (see above).
        let own = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()?;
        // SAFETY: `own` is a valid descriptor that nobody else has; the `AsyncFd` owns it from here on, never gives it out,
        // and an `OwnedFd` returns the same descriptor each time.
        let registered = unsafe { AsyncFd::register_with_interest(own, Interest::READABLE) };
        Ok(Watch(registered.map_err(io::Error::from)?))
    }

    /// Returns once the client has closed its connection, or its sending half of it.
    pub(crate) async fn closed(&self) {
        loop {
            match self.0.ready(Interest::PRIORITY).await {
                Ok(guard) if guard.ready().is_read_closed() => return,
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn a_close_is_seen_behind_unread_bytes_and_bytes_alone_are_not() {
        let (mut client, server) = pair().await;
        let watch = Watch::new(server.as_raw_fd()).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let early = tokio::time::timeout(Duration::from_millis(50), watch.closed()).await;
        assert!(early.is_err(), "data alone is no close");
        drop(client);
        tokio::time::timeout(Duration::from_secs(5), watch.closed()).await.unwrap();
    }
}

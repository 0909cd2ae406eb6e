//! A listener that holds at most so many connections at once.

use axum::serve::Listener;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections open at once; more wait in the kernel's queue. A scraper and a few people need no more, and nobody can use up
/// the gateway's file descriptors from here.
pub const CONNECTIONS_MAX: usize = 64;

/// Accepts while fewer than [`CONNECTIONS_MAX`] connections are open.
pub(crate) struct Bounded {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

/// A connection, and its place among those that may be open.
pub(crate) struct Held {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

impl Bounded {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Bounded { listener, room: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }
}

impl Listener for Bounded {
    type Io = Held;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Held, SocketAddr) {
        let place = Arc::clone(&self.room).acquire_owned().await.expect("nobody closes the semaphore");
        // axum's own accept waits out errors such as a lack of descriptors.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Held { stream, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Held {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Held {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

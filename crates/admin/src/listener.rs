//! A listener with a limit on open connections, which keeps none that nobody uses.
//!
//! Any client that reaches it may open connections and send nothing. That must not keep a health
//! check out: a new connection replaces the one that has been silent for longest, and none stays
//! silent for long.

use axum::serve::Listener;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep};

/// Connections open at once; one more displaces the one that was silent for the longest time. A
/// scraper and a few people need no more, and nobody can use up the gateway's file descriptors from
/// here.
pub const CONNECTIONS_MAX: usize = 64;

/// How long a connection may go without a byte of an answer: answers are sent at once, so it is
/// idle, sends half a head, or takes nothing.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Accepts, and displaces where [`CONNECTIONS_MAX`] connections are open.
pub(crate) struct Bounded {
    listener: TcpListener,
    open: Arc<Mutex<Vec<Arc<ConnectionSlot>>>>,
    silence_max: Duration,
}

/// A connection, and its place among those that may be open.
pub(crate) struct TrackedConnection {
    stream: TcpStream,
    seat: Arc<ConnectionSlot>,
    open: Arc<Mutex<Vec<Arc<ConnectionSlot>>>>,
    silence_max: Duration,
    silence: Pin<Box<Sleep>>,
}

struct ConnectionSlot(Mutex<LastActivity>);

struct LastActivity {
    /// When it was opened, or the last piece of an answer was taken.
    last: Instant,
    is_displaced: bool,
    reader: Option<Waker>,
}

impl Bounded {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Bounded { listener, open: Arc::default(), silence_max: SILENCE_MAX }
    }

    fn hold(&self, stream: TcpStream) -> TrackedConnection {
        let last = Instant::now();
        let seat =
            Arc::new(ConnectionSlot(Mutex::new(LastActivity { last, is_displaced: false, reader: None })));
        let mut open = lock(&self.open);
        if open.len() >= CONNECTIONS_MAX
            && let Some((at, _)) = open.iter().enumerate().min_by_key(|(_, seat)| seat.spoken().last)
        {
            open.swap_remove(at).displace();
        }
        open.push(Arc::clone(&seat));
        drop(open);
        let silence = Box::pin(tokio::time::sleep(self.silence_max));
        TrackedConnection {
            stream,
            seat,
            open: Arc::clone(&self.open),
            silence_max: self.silence_max,
            silence,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ConnectionSlot {
    fn spoken(&self) -> MutexGuard<'_, LastActivity> {
        lock(&self.0)
    }

    fn displace(&self) {
        let reader = {
            let mut spoken = self.spoken();
            spoken.is_displaced = true;
            spoken.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl TrackedConnection {
    /// Is ready when the connection is to be closed.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let last = {
            let mut spoken = self.seat.spoken();
            if spoken.is_displaced {
                return Poll::Ready(io::ErrorKind::ConnectionAborted.into());
            }
            spoken.reader = Some(cx.waker().clone());
            spoken.last
        };
        loop {
            ready!(self.silence.as_mut().poll(cx));
            let until = last + self.silence_max;
            if self.silence.deadline() >= until {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.silence.as_mut().reset(until);
        }
    }
}

impl Drop for TrackedConnection {
    fn drop(&mut self) {
        lock(&self.open).retain(|seat| !Arc::ptr_eq(seat, &self.seat));
    }
}

impl Listener for Bounded {
    type Io = TrackedConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TrackedConnection, SocketAddr) {
        // axum's own accept waits out errors such as a lack of descriptors.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (self.hold(stream), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for TrackedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Ready(read) => Poll::Ready(read),
            Poll::Pending => self.poll_over(cx).map(Err),
        }
    }
}

impl AsyncWrite for TrackedConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(cx, buf) {
            Poll::Ready(written) => {
                self.seat.spoken().last = Instant::now();
                Poll::Ready(written)
            }
            Poll::Pending => self.poll_over(cx).map(Err),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn bounded() -> Bounded {
        Bounded::new(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    async fn opened(bounded: &mut Bounded) -> (TcpStream, TrackedConnection) {
        let address = bounded.local_addr().unwrap();
        let (client, (held, _)) = tokio::join!(TcpStream::connect(address), bounded.accept());
        (client.unwrap(), held)
    }

    #[tokio::test]
    async fn one_more_displaces_the_one_that_was_silent_for_the_longest_time() {
        let mut bounded = bounded().await;
        let mut open = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            open.push(opened(&mut bounded).await);
        }
        open[0].1.write_all(b"an answer").await.unwrap();
        let reading = tokio::spawn(async move {
            let mut second = open.remove(1);
            let read = second.1.read_u8().await;
            (open, second, read)
        });
        tokio::task::yield_now().await;
        let newcomer = opened(&mut bounded).await;
        let (mut open, _second, read) = reading.await.unwrap();
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        open[0].0.write_u8(7).await.unwrap();
        assert_eq!(open[0].1.read_u8().await.unwrap(), 7, "it has just been answered");
        assert_eq!(lock(&bounded.open).len(), CONNECTIONS_MAX);
        drop((open, newcomer));
        assert_eq!(lock(&bounded.open).len(), 0);
    }

    #[tokio::test]
    async fn half_a_head_keeps_no_connection_however_its_bytes_drip() {
        let mut bounded = bounded().await;
        bounded.silence_max = Duration::from_millis(200);
        let (mut client, mut held) = opened(&mut bounded).await;
        let dripping = tokio::spawn(async move {
            while client.write_all(b"X").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let read = async {
            loop {
                if let Err(error) = held.read_u8().await {
                    return error;
                }
            }
        };
        let error = tokio::time::timeout(Duration::from_secs(20), read).await.unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        dripping.abort();
    }
}

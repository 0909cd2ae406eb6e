//! A listener with a limit on open connections, which keeps none that nobody uses.
//!
//! Any client that reaches it may open connections and send nothing. That must not keep a health
//! check out: a new connection replaces the one that has been silent for longest, and none stays
//! silent for long.

use crate::access::Peer;
use crate::tls::Tls;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use socket2::{Domain, SockAddr, Socket, Type};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, Sleep, timeout};

/// Connections open at once; one more displaces the one that was silent for the longest time. A
/// scraper and a few people need no more, and nobody can use up the gateway's file descriptors from
/// here.
pub const CONNECTIONS_MAX: usize = 64;

/// How long a connection may go without a byte of an answer: answers are sent at once, so it is
/// idle, sends half a head, or takes nothing.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// TLS handshakes under way at once; one more displaces the one that has taken the longest.
pub const HANDSHAKES_MAX: usize = 64;

/// How long a TLS handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// What the name of a socket ends in until it listens.
const BESIDE: &str = ".new";

/// What the mode of a Unix socket is: its owner and group may open it.
const SOCKET_MODE: u32 = 0o660;

/// Bytes both ways.
trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// What accepts connections of operators.
pub struct AdminListener(Way);

/// A Unix socket that listens beside the path that it is for: who takes over from another process
/// leaves that one its own until it is in its place.
#[derive(Debug)]
pub struct UnixBeside {
    listener: UnixListener,
    beside: PathBuf,
    path: PathBuf,
}

enum Way {
    Tcp(TcpListener),
    Unix(UnixListener),
    Tls { listener: TcpListener, tls: Arc<Tls>, handshakes: Handshakes },
}

/// TLS handshakes under way.
#[derive(Default)]
struct Handshakes {
    tasks: JoinSet<Option<(Box<dyn Bytes>, Peer)>>,
    /// The oldest first.
    order: VecDeque<AbortHandle>,
}

impl Handshakes {
    fn begin(&mut self, tls: &Arc<Tls>, stream: TcpStream, address: SocketAddr) {
        self.order.retain(|task| !task.is_finished());
        if self.order.len() >= HANDSHAKES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            oldest.abort();
        }
        let tls = Arc::clone(tls);
        self.order.push_back(self.tasks.spawn(async move { shake_hands(&tls, stream, address).await }));
    }
}

impl UnixBeside {
    /// Returns a Unix socket for this path, which its owner and group may open. One that an earlier
    /// process has left there will be replaced; one at which another process listens only if this one
    /// `takes_over`.
    ///
    /// # Errors
    /// If the path cannot be had: another process listens there, or something else is there.
    pub fn bind(path: &Path, takes_over: bool) -> io::Result<Self> {
        if let Ok(found) = std::fs::symlink_metadata(path) {
            let is_dead = || {
                let tried = std::os::unix::net::UnixStream::connect(path);
                tried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
            };
            if !found.file_type().is_socket() || !(takes_over || is_dead()) {
                return Err(io::ErrorKind::AddrInUse.into());
            }
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(BESIDE);
        let _ = std::fs::remove_file(&beside);
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(&beside)?)?;
        // Nobody can connect before it listens.
        std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(SOCKET_MODE))?;
        socket.listen(CONNECTIONS_MAX as i32)?;
        socket.set_nonblocking(true)?;
        let listener = UnixListener::from_std(socket.into())?;
        Ok(UnixBeside { listener, beside: beside.into(), path: path.to_owned() })
    }

    /// Puts it at its path. At no moment is there none.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn put_in_place(self) -> io::Result<AdminListener> {
        std::fs::rename(&self.beside, &self.path)?;
        Ok(AdminListener(Way::Unix(self.listener)))
    }
}

impl From<TcpListener> for AdminListener {
    fn from(listener: TcpListener) -> Self {
        AdminListener(Way::Tcp(listener))
    }
}

impl AdminListener {
    /// Returns one that speaks TLS.
    pub fn with_tls(listener: TcpListener, tls: Arc<Tls>) -> Self {
        AdminListener(Way::Tls { listener, tls, handshakes: Handshakes::default() })
    }

    /// Returns another descriptor of its socket, to be handed to another process; `None` for a Unix
    /// socket, whose place in the file system is its own.
    pub fn descriptor(&self) -> Option<OwnedFd> {
        match &self.0 {
            Way::Tcp(listener) | Way::Tls { listener, .. } => listener.as_fd().try_clone_to_owned().ok(),
            Way::Unix(_) => None,
        }
    }

    /// Returns the address, if there is one.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Way::Tcp(listener) | Way::Tls { listener, .. } => listener.local_addr().ok(),
            Way::Unix(_) => None,
        }
    }

    async fn accept(&mut self) -> (Box<dyn Bytes>, Peer) {
        // axum's own accept waits out errors such as a lack of descriptors.
        match &mut self.0 {
            Way::Tcp(listener) => {
                let (stream, address) = Listener::accept(listener).await;
                (Box::new(stream), Peer { address: Some(address.ip()), is_certified: false })
            }
            Way::Unix(listener) => {
                let (stream, _) = Listener::accept(listener).await;
                (Box::new(stream), Peer { address: None, is_certified: false })
            }
            Way::Tls { listener, tls, handshakes } => loop {
                tokio::select! {
                    Some(done) = handshakes.tasks.join_next() => {
                        if let Ok(Some(connection)) = done {
                            return connection;
                        }
                    }
                    (stream, address) = Listener::accept(listener) => handshakes.begin(tls, stream, address),
                }
            },
        }
    }
}

async fn shake_hands(tls: &Tls, stream: TcpStream, address: SocketAddr) -> Option<(Box<dyn Bytes>, Peer)> {
    let stream = timeout(HANDSHAKE_WITHIN, tls.acceptor().accept(stream)).await.ok()?.ok()?;
    // Those that are not trusted fail the handshake.
    let is_certified = stream.get_ref().1.peer_certificates().is_some_and(|chain| !chain.is_empty());
    Some((Box::new(stream), Peer { address: Some(address.ip()), is_certified }))
}

impl Connected<IncomingStream<'_, Bounded>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Bounded>) -> Self {
        *stream.remote_addr()
    }
}

/// Accepts, and displaces where [`CONNECTIONS_MAX`] connections are open.
pub(crate) struct Bounded {
    listener: AdminListener,
    open: Arc<Mutex<Vec<Arc<ConnectionSlot>>>>,
    silence_max: Duration,
}

/// A connection, and its place among those that may be open.
pub(crate) struct TrackedConnection {
    stream: Box<dyn Bytes>,
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
    pub(crate) fn new(listener: AdminListener) -> Self {
        Bounded { listener, open: Arc::default(), silence_max: SILENCE_MAX }
    }

    fn hold(&self, stream: Box<dyn Bytes>) -> TrackedConnection {
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
    type Addr = Peer;

    async fn accept(&mut self) -> (TrackedConnection, Peer) {
        let (stream, peer) = self.listener.accept().await;
        (self.hold(stream), peer)
    }

    fn local_addr(&self) -> io::Result<Peer> {
        let address = self.listener.address().map(|address| address.ip());
        Ok(Peer { address, is_certified: false })
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
        Bounded::new(TcpListener::bind("127.0.0.1:0").await.unwrap().into())
    }

    async fn opened(bounded: &mut Bounded) -> (TcpStream, TrackedConnection) {
        let address = bounded.listener.address().unwrap();
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
    async fn a_socket_is_taken_over_from_the_dead_and_from_who_hands_it_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        let mut first = UnixBeside::bind(&path, false).unwrap().put_in_place().unwrap();
        let taken = UnixBeside::bind(&path, false).map(drop).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        let under_way = tokio::net::UnixStream::connect(&path).await.unwrap();
        let second = UnixBeside::bind(&path, true).unwrap();
        let early = tokio::net::UnixStream::connect(&path).await.unwrap();
        let mut second = second.put_in_place().unwrap();
        let (connected, (_, peer)) = tokio::join!(tokio::net::UnixStream::connect(&path), second.accept());
        assert!(connected.is_ok());
        assert_eq!(peer, Peer { address: None, is_certified: false });
        // Who has come before is still answered by the first.
        first.accept().await;
        first.accept().await;
        drop((under_way, early, first, second));
        let third = UnixBeside::bind(&path, false).unwrap().put_in_place();
        assert!(third.is_ok(), "both are dead");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        let file = folder.path().join("file");
        std::fs::write(&file, "mine").unwrap();
        assert!(UnixBeside::bind(&file, true).is_err(), "that is no socket");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
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

//! Opens connections to one node: name lookup, TCP, TLS, all within one time limit.

use super::error::UpstreamErrorKind;
use super::request::BoxError;
use super::tls;
use rustix::io::Errno;
use rustls_pki_types::ServerName;
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::io::IoSlice;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use suimon_params::upstream::{NodeAddress, NodeParams, Protocol, Scheme, TlsParams};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe;
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Idle time after which the kernel sends TCP keepalive probes.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long a Unix socket with a full queue of connections is left alone before the next attempt.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(5);

/// A connection to a node, before any protocol is spoken.
pub(super) enum Stream {
    Plain(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// The standard input and output of a program.
    Program {
        /// `None`: it reads no more.
        stdin: Option<pipe::Sender>,
        stdout: pipe::Receiver,
    },
}

impl Stream {
    /// Lets a program come to the end of its standard input.
    pub(super) fn close_stdin(&mut self) {
        if let Stream::Program { stdin, .. } = self {
            *stdin = None;
        }
    }
}

/// Returns the standard input of a program that reads still.
fn open(stdin: &mut Option<pipe::Sender>) -> io::Result<Pin<&mut pipe::Sender>> {
    stdin.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}

/// How to reach one node.
pub(super) struct Connector {
    address: NodeAddress,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    timeout: Duration,
}

/// Why a connection could not be opened.
#[derive(Debug)]
pub(super) struct ConnectError {
    pub(super) kind: UpstreamErrorKind,
    pub(super) detail: &'static str,
    pub(super) cause: Option<BoxError>,
}

impl Connector {
    /// Returns the connector for `node`.
    ///
    /// # Errors
    /// A sentence about a CA file that cannot be used, or a name that no certificate can have.
    pub(super) fn new(node: &NodeParams, tls: &TlsParams, timeout: Duration) -> Result<Self, String> {
        let tls = match node.scheme {
            Scheme::Http | Scheme::FastCgi => None,
            Scheme::Https => {
                let alpn: &[&[u8]] = if node.protocol == Protocol::Http2 { &[b"h2"] } else { &[b"http/1.1"] };
                let name = tls.server_name.as_ref().map_or(node.host(), String::as_str);
                let name = ServerName::try_from(name.to_owned())
                    .map_err(|_| format!("{node}: {name:?} is not a name a certificate can be for"))?;
                Some((TlsConnector::from(tls::client(tls, alpn)?), name))
            }
        };
        Ok(Connector { address: node.address.clone(), tls, timeout })
    }

    /// Returns the connector for what listens at `address`, without TLS.
    pub(super) fn plain(address: NodeAddress, timeout: Duration) -> Self {
        Connector { address, tls: None, timeout }
    }

    /// Returns the longest that opening a connection may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Opens a connection.
    pub(super) async fn connect(&self) -> Result<Stream, ConnectError> {
        self.connect_to(&self.address).await
    }

    /// Opens a connection to another address than the node's.
    pub(super) async fn connect_to(&self, address: &NodeAddress) -> Result<Stream, ConnectError> {
        match tokio::time::timeout(self.timeout, self.open(address)).await {
            Ok(result) => result,
            Err(_) => {
                let detail = "the connection was not open in time";
                Err(ConnectError { kind: UpstreamErrorKind::ConnectTimeout, detail, cause: None })
            }
        }
    }

    async fn open(&self, address: &NodeAddress) -> Result<Stream, ConnectError> {
        let refused = |error: io::Error| {
            let (kind, detail) = if lacks_descriptors(&error) {
                (UpstreamErrorKind::GatewayFull, "the gateway has no descriptor left for a connection")
            } else {
                (UpstreamErrorKind::Connect, "the node cannot be connected to")
            };
            ConnectError { kind, detail, cause: Some(error.into()) }
        };
        let stream = match address {
            NodeAddress::Tcp { host, port } => {
                TcpStream::connect((host.as_str(), *port)).await.map_err(refused)?
            }
            NodeAddress::Found { address, .. } => TcpStream::connect(address).await.map_err(refused)?,
            NodeAddress::Unix(path) => {
                return unix(path).await.map(Stream::Unix).map_err(refused);
            }
            NodeAddress::Workers(_) => return Err(refused(io::ErrorKind::AddrNotAvailable.into())),
        };
        // Neither option is worth failing a request for: without them the gateway only sends more
        // slowly, or notices a dead peer later.
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE));
        let Some((connector, name)) = &self.tls else { return Ok(Stream::Plain(stream)) };
        let handshake = |detail, cause| ConnectError { kind: UpstreamErrorKind::TlsHandshake, detail, cause };
        let stream = connector
            .connect(name.clone(), stream)
            .await
            .map_err(|error| handshake("the TLS handshake with the node failed", Some(error.into())))?;
        let wants_h2 = connector.config().alpn_protocols.iter().any(|name| name == b"h2");
        if wants_h2 && stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(handshake("the node does not offer HTTP/2 (ALPN h2)", None));
        }
        Ok(Stream::Tls(Box::new(stream)))
    }
}

/// Opens a connection to a Unix socket: at once, or once its queue of connections has room. A server
/// with a full queue is busy, not away, and the kernel says so instead of waiting as with TCP.
async fn unix(path: &Path) -> io::Result<UnixStream> {
    let address = SockAddr::unix(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    loop {
        match socket.connect(&address) {
            Ok(()) => return UnixStream::from_std(socket.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(FULL_QUEUE_PAUSE).await,
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether a connection could not be opened because file descriptors ran out.
pub(super) fn lacks_descriptors(error: &io::Error) -> bool {
    let is_lack = |error: &io::Error| {
        let lacks = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
        error.raw_os_error().is_some_and(|code| lacks.contains(&code))
    };
    // A name lookup needs a descriptor, too, and the resolver does not report that there was none.
    is_lack(error)
        || error.raw_os_error().is_none() && TcpSocket::new_v4().is_err_and(|error| is_lack(&error))
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Program { stdout, .. } => Pin::new(stdout).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Program { stdin, .. } => open(stdin)?.poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
            // What is written is with the kernel.
            Stream::Program { .. } => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Program { stdin, .. } => {
                *stdin = None;
                Poll::Ready(Ok(()))
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // Heads without a body are one buffer, and a plain send is cheaper than a vectored one.
        if let [only] = bufs {
            return self.poll_write(cx, only);
        }
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Program { stdin, .. } => open(stdin)?.poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Unix(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
            Stream::Program { stdin, .. } => stdin.as_ref().is_some_and(AsyncWrite::is_write_vectored),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;

    /// Returns a socket at `path` whose queue of connections is full, and the connections in it.
    fn full(path: &Path) -> (Socket, Vec<Socket>) {
        let socket = || Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None).unwrap();
        let (listener, address) = (socket(), SockAddr::unix(path).unwrap());
        listener.bind(&address).unwrap();
        listener.listen(1).unwrap();
        let mut queued = vec![];
        loop {
            let next = socket();
            match next.connect(&address) {
                Ok(()) => queued.push(next),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    return (listener, queued);
                }
            }
        }
    }

    #[tokio::test]
    async fn a_socket_whose_queue_is_full_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (listener, _queued) = full(&path);
        let to = |timeout| Connector::plain(NodeAddress::Unix(path.clone()), timeout);
        let patient = to(Duration::from_secs(30));
        let mut connecting = pin!(patient.connect());
        let waits = poll_fn(|cx| Poll::Ready(connecting.as_mut().poll(cx).is_pending())).await;
        assert!(waits, "it has no room");
        let hasty = to(Duration::from_millis(10)).connect().await.err().unwrap();
        assert_eq!(hasty.kind, UpstreamErrorKind::ConnectTimeout);
        listener.accept().unwrap();
        assert!(connecting.await.is_ok(), "it has room now");
    }
}

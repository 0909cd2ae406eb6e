//! Accepts connections and gives each its protocol.

use crate::BoxError;
use crate::connection::Connection;
use crate::connections::{CloseRequest, Connections, Entry, Origin};
use crate::early::PeekedStream;
use crate::host::Host;
use crate::service::{Rules, Service};
use crate::streams::Streams;
use crate::tls::Certificate;
use crate::watch::Socket;
use crate::wire::{ClientTimeouts, Wire};
use bytes::Bytes;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::future::{pending, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use suimon_message::peer::{self, Peer};
use suimon_message::validate::RequestFault;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Pause after the system could not give us a connection, for example when descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a client of HTTP/2 that has been told goodbye, and asks for nothing, may take to leave.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the goodbye to a client that is cut off may take to be written.
const LAST_WORD: Duration = Duration::from_millis(100);

/// HTTP/2 flow-control windows: of a stream, of a connection. They bound what a client may send
/// before we have read it, which is counted nowhere. One upload gets at most the first per round
/// trip; eight uploads that wait unread at a gate fill the second, and then all others of the
/// connection stand still, too.
const STREAM_WINDOW_MAX: u32 = 64 << 10;
const CONNECTION_WINDOW_MAX: u32 = 512 << 10;

/// The smallest read buffer the HTTP library works with.
const BUFFER_MIN: usize = 16 << 10;

/// What accepts connections.
#[derive(Debug)]
pub struct Acceptor<S> {
    service: Arc<S>,
    certificate: Option<Arc<Certificate>>,
    connections: Arc<Connections>,
    accepting: watch::Receiver<Accepting>,
}

/// Whether connections are accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accepting {
    /// They are.
    Yes,
    /// They wait in the kernel's queue: others may accept them, or we later.
    Paused,
    /// Others accept them from now on.
    HandedOver,
    /// Never again.
    Ended,
}

impl<S> Clone for Acceptor<S> {
    fn clone(&self) -> Self {
        Acceptor {
            service: Arc::clone(&self.service),
            certificate: self.certificate.clone(),
            connections: Arc::clone(&self.connections),
            accepting: self.accepting.clone(),
        }
    }
}

impl<S: Service> Acceptor<S> {
    /// Returns what accepts connections, over TLS if there is a certificate, as long as `accepting`
    /// says so.
    pub fn new(
        service: Arc<S>,
        certificate: Option<Arc<Certificate>>,
        connections: Arc<Connections>,
        accepting: watch::Receiver<Accepting>,
    ) -> Self {
        Acceptor { service, certificate, connections, accepting }
    }

    /// Accepts connections until others do, or nobody does any more, each served by a task of its own.
    pub async fn run(self, listener: Arc<TcpListener>) {
        let mut accepting = self.accepting.clone();
        loop {
            // Whoever could say otherwise is gone: all ends.
            let now = accepting.wait_for(|now| *now != Accepting::Paused).await.map(|now| *now);
            if !matches!(now, Ok(Accepting::Yes)) {
                return;
            }
            let accepted = tokio::select! {
                biased;
                _ = accepting.wait_for(|now| *now != Accepting::Yes) => continue,
                accepted = listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let rules = self.service.rules();
            // What it stands for may be many, and they may be inside.
            let is_balancer = peer::is_in(peer.ip(), &rules.balancers);
            let is_trusted = !is_balancer && peer::is_in(peer.ip(), &rules.trusted);
            let origin = Origin::of(peer.ip()).filter(|_| !is_trusted && !is_balancer);
            let entry = tokio::select! {
                biased;
                // One that is accepted is served here, whoever accepts the next.
                _ = accepting.wait_for(|now| *now == Accepting::Ended) => return,
                entry = self.connections.enter(origin, is_trusted) => entry,
            };
            match entry {
                Some(entry) => {
                    let acceptor = self.clone();
                    tokio::spawn(async move { acceptor.serve(rules, stream, peer, entry).await });
                }
                None => {
                    tracing::debug!(%peer, "connection refused: limits.connections is reached, and this address has more than its share");
                }
            }
        }
    }

    async fn serve(self, rules: Arc<Rules>, stream: TcpStream, peer: SocketAddr, entry: Entry) {
        let socket = stream.as_raw_fd();
        let mut stream = PeekedStream::new(Bytes::new(), stream);
        let mut client = peer.ip();
        if peer::is_in(client, &rules.balancers) {
            match told_by_balancer(&rules, &mut stream, &entry).await {
                Ok(told) => client = told.unwrap_or(client),
                Err(error) => return self.refuse_balancer(peer, stream, &error).await,
            }
            let is_trusted = peer::is_in(client, &rules.trusted);
            if is_trusted {
                entry.standing().note_admitted();
            }
            if !entry.note_origin(Origin::of(client).filter(|_| !is_trusted && client != peer.ip())) {
                return;
            }
        }
        // On the heap, like the protocols below: a connection should weigh what it needs, not what
        // the largest might.
        let ended = match self.certificate.clone() {
            None => self.serve_plain(rules, stream, socket, client, entry).await,
            Some(certificate) => {
                Box::pin(self.serve_tls(rules, &certificate, stream, socket, client, entry)).await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%peer, "a connection ended: {error}");
        }
    }

    async fn refuse_balancer(
        &self,
        peer: SocketAddr,
        mut stream: PeekedStream<TcpStream>,
        error: &io::Error,
    ) {
        if error.kind() != io::ErrorKind::InvalidData {
            // Some clients only check whether the port is open, and send nothing.
            tracing::debug!(%peer, "a connection of a balancer's ended before its PROXY header: {error}");
            return;
        }
        if self.service.is_to_warn_of_balancer() {
            tracing::warn!(
                %peer,
                "a connection is refused: {error}; let the balancer send the header, or take it out of listen.proxy_protocol"
            );
        }
        if self.certificate.is_none() {
            // It may have gone.
            let _ = stream.write_all(&self.service.unreadable(RequestFault::NoProxyHeader, None)).await;
        }
    }

    async fn serve_plain(
        self,
        rules: Arc<Rules>,
        mut stream: PeekedStream<TcpStream>,
        socket: RawFd,
        client: IpAddr,
        entry: Entry,
    ) -> Result<(), BoxError> {
        let is_h2 = tokio::select! {
            biased;
            is_h2 = tokio::time::timeout(rules.timeouts.header_read, stream.begins_as_h2()) => is_h2??,
            // It has asked for nothing.
            _ = entry.standing().hears(CloseRequest::End) => return Ok(()),
        };
        self.speak(rules, stream, socket, is_h2, client, entry).await
    }

    async fn serve_tls(
        self,
        rules: Arc<Rules>,
        certificate: &Certificate,
        stream: PeekedStream<TcpStream>,
        socket: RawFd,
        client: IpAddr,
        entry: Entry,
    ) -> Result<(), BoxError> {
        let handshake = certificate.acceptor().accept(stream);
        let stream = tokio::select! {
            biased;
            stream = tokio::time::timeout(rules.timeouts.handshake, handshake) => stream??,
            // It has asked for nothing.
            _ = entry.standing().hears(CloseRequest::End) => return Ok(()),
        };
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        self.speak(rules, stream, socket, is_h2, client, entry).await
    }

    async fn speak<I>(
        self,
        rules: Arc<Rules>,
        stream: I,
        socket: RawFd,
        is_h2: bool,
        client: IpAddr,
        entry: Entry,
    ) -> Result<(), BoxError>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Acceptor { service, certificate, .. } = self;
        let peer = Peer::new(client, certificate.is_some(), &rules.trusted);
        let watched = (!is_h2).then(|| Socket::new(socket, Arc::clone(&rules.watcher)));
        let host: Arc<dyn Host> = Arc::clone(&service) as _;
        let connection = Connection::new(peer, watched, host, entry);
        let timeouts = &rules.timeouts;
        let patience = ClientTimeouts {
            head: timeouts.header_read,
            idle: timeouts.keep_alive,
            write: timeouts.body_write,
            rate_min: rules.limits.body_rate_min,
        };
        if is_h2 {
            let wire = Wire::http2(stream, Arc::clone(&connection), patience);
            Box::pin(http2(service, &rules, connection, wire)).await?;
        } else {
            let wire = Wire::http1(stream, Arc::clone(&connection), patience);
            Box::pin(http1(service, &rules, connection, wire)).await?;
        }
        Ok(())
    }
}

async fn told_by_balancer(
    rules: &Rules,
    stream: &mut PeekedStream<TcpStream>,
    entry: &Entry,
) -> io::Result<Option<IpAddr>> {
    tokio::select! {
        biased;
        told = tokio::time::timeout(rules.timeouts.header_read, stream.header()) => told?,
        // Nobody is behind it yet.
        _ = entry.standing().hears(CloseRequest::End) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

async fn http1<S, I>(
    service: Arc<S>,
    rules: &Rules,
    connection: Arc<Connection>,
    wire: Wire<I>,
) -> hyper::Result<()>
where
    S: Service,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder
        // Our wire keeps the time: the library's timer would be set anew for each request.
        .header_read_timeout(None)
        .max_headers(rules.limits.headers)
        .max_header_size(rules.limits.head_bytes)
        .max_buf_size(rules.limits.head_bytes.max(BUFFER_MIN));
    let asked = Arc::clone(&connection);
    let service = service_fn(move |request| Arc::clone(&service).serve(Arc::clone(&connection), request));
    let mut served = pin!(builder.serve_connection(TokioIo::new(wire), service).with_upgrades());
    let mut hears = pin!(asked.standing().hears(CloseRequest::End));
    let mut listens = false;
    let ended = poll_fn(|cx| {
        if let Poll::Ready(ended) = served.as_mut().poll(cx) {
            return Poll::Ready(Some(ended));
        }
        // Once it knows of this task it need not be polled again each time: a change is seen
        // without it.
        if listens && asked.standing().told() < CloseRequest::End {
            return Poll::Pending;
        }
        listens = true;
        hears.as_mut().poll(cx).map(|_| None)
    });
    if let Some(ended) = ended.await {
        return ended;
    }
    if asked.standing().told() == CloseRequest::Close {
        return Ok(());
    }
    served.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        ended = served.as_mut() => ended,
        _ = asked.standing().hears(CloseRequest::Close) => Ok(()),
    }
}

async fn http2<S, I>(
    service: Arc<S>,
    rules: &Rules,
    connection: Arc<Connection>,
    wire: Wire<I>,
) -> hyper::Result<()>
where
    S: Service,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let streams = Streams::new(rules.timeouts.body_write, Arc::clone(&rules.budget));
    let mut builder = http2::Builder::new(streams.clone());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(rules.timeouts.h2_ping)
        .keep_alive_timeout(rules.timeouts.h2_ping)
        .max_concurrent_streams(rules.limits.h2_streams)
        .max_header_list_size(u32::try_from(rules.limits.head_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW_MAX)
        .initial_connection_window_size(CONNECTION_WINDOW_MAX);
    if rules.tunnels {
        builder.enable_connect_protocol();
    }
    let keep_alive = rules.timeouts.keep_alive;
    let asked = Arc::clone(&connection);
    let service = service_fn(move |request| Arc::clone(&service).serve(Arc::clone(&connection), request));
    let mut served = pin!(builder.serve_connection(TokioIo::new(wire), service));
    // A proxy in front of us takes, or does not take, for all of its clients.
    let left_lying = async || {
        if asked.peer().is_trusted() {
            return pending().await;
        }
        streams.left_lying(|| asked.is_written()).await;
        tracing::debug!("a client does not read its responses");
    };
    let told = tokio::select! {
        biased;
        ended = served.as_mut() => return ended,
        told = asked.standing().hears(CloseRequest::AfterNext) => told,
        () = idle(&asked, keep_alive) => CloseRequest::End,
        () = left_lying() => CloseRequest::End,
        // A proxy in front of us resets for all of its clients.
        () = streams.too_many_resets(), if !asked.peer().is_trusted() => {
            tracing::debug!("a client resets too many HTTP/2 streams");
            served.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(LAST_WORD, served.as_mut()).await;
            return Ok(());
        }
    };
    if told == CloseRequest::Close {
        return Ok(());
    }
    served.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        ended = served.as_mut() => ended,
        // The client has to answer the goodbye, and one that has fallen silent does not.
        () = idle(&asked, FAREWELL) => Ok(()),
        () = left_lying() => Ok(()),
        _ = asked.standing().hears(CloseRequest::Close) => Ok(()),
    }
}

/// Returns once no request came on a connection for `limit`, and at most after twice that.
async fn idle(connection: &Connection, limit: Duration) {
    let mut before = None;
    loop {
        tokio::time::sleep(limit).await;
        let begun = connection.begun();
        if before == Some(begun) && connection.done() == begun {
            return;
        }
        before = Some(begun);
    }
}

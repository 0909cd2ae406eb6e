//! Application servers that behave as badly as a test needs, over real sockets.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A server on its own port; closed with all connections when dropped.
pub(super) struct Backend {
    pub(super) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

/// One connection of a client, seen byte by byte.
pub(super) struct Talk {
    stream: TcpStream,
    unread: Vec<u8>,
    requests: Arc<AtomicUsize>,
}

/// A request as received.
pub(super) struct Received {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Backend {
    /// Returns a server that has `talk` with each connection; its argument counts connections from
    /// 1.
    pub(super) async fn talking<F, T>(talk: F) -> Backend
    where
        F: Fn(Talk, usize) -> T + Send + 'static,
        T: Future<Output = Option<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Backend::on(listener, talk)
    }

    /// As [`Backend::talking`], on an existing listener.
    pub(super) fn on<F, T>(listener: TcpListener, talk: F) -> Backend
    where
        F: Fn(Talk, usize) -> T + Send + 'static,
        T: Future<Output = Option<()>> + Send + 'static,
    {
        Backend::accepting(listener, move |stream, number, requests| {
            talk(Talk { stream, unread: Vec::new(), requests }, number)
        })
    }

    /// Returns a server that answers everything with the bytes of `answer`, and keeps connections
    /// open.
    pub(super) async fn answering(answer: &'static [u8]) -> Backend {
        Backend::talking(move |mut talk, _| async move {
            loop {
                talk.request().await?;
                talk.send(answer).await?;
            }
        })
        .await
    }

    /// Returns an HTTP/2 server, over TLS if `tls` is given, that answers `method path ` and the
    /// request's body.
    pub(super) async fn http2(tls: Option<ServerConfig>, streams_max: u32) -> Backend {
        Backend::http2_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), tls, streams_max)
    }

    /// As [`Backend::http2`], on an existing listener.
    pub(super) fn http2_on(listener: TcpListener, tls: Option<ServerConfig>, streams_max: u32) -> Backend {
        let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        Backend::accepting(listener, move |stream, _, requests| {
            let tls = tls.clone();
            async move {
                let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                builder.max_concurrent_streams(streams_max);
                let echo = service_fn(move |request| echo(request, Arc::clone(&requests)));
                match tls {
                    None => builder.serve_connection(TokioIo::new(stream), echo).await.ok(),
                    Some(tls) => builder
                        .serve_connection(TokioIo::new(tls.accept(stream).await.ok()?), echo)
                        .await
                        .ok(),
                }
            }
        })
    }

    /// Returns an HTTP/1.1 server over TLS that answers `method path ` and the request's body.
    pub(super) async fn https(tls: ServerConfig) -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tls = TlsAcceptor::from(Arc::new(tls));
        Backend::accepting(listener, move |stream, _, requests| {
            let tls = tls.clone();
            async move {
                let echo = service_fn(move |request| echo(request, Arc::clone(&requests)));
                let stream = TokioIo::new(tls.accept(stream).await.ok()?);
                hyper::server::conn::http1::Builder::new().serve_connection(stream, echo).await.ok()
            }
        })
    }

    /// Returns how many connections were accepted.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }

    /// Returns how many whole requests were received.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(SeqCst)
    }

    fn accepting<F, T>(listener: TcpListener, accept: F) -> Backend
    where
        F: Fn(TcpStream, usize, Arc<AtomicUsize>) -> T + Send + 'static,
        T: Future<Output = Option<()>> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (accepted, received) = (Arc::clone(&connections), Arc::clone(&requests));
        let task = tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let number = accepted.fetch_add(1, SeqCst) + 1;
                open.spawn(accept(stream, number, Arc::clone(&received)));
            }
        });
        Backend { address, connections, requests, task }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Talk {
    /// Reads one request with its body (by `content-length` or chunked); `None` after the client
    /// has closed.
    pub(super) async fn request(&mut self) -> Option<Received> {
        let head = self.head().await?;
        let length = head
            .to_lowercase()
            .split("content-length: ")
            .nth(1)
            .map(|rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
        let body = match length {
            Some(length) => self.take(length).await?,
            None if head.to_lowercase().contains("transfer-encoding: chunked") => self.chunks().await?,
            None => Vec::new(),
        };
        self.requests.fetch_add(1, SeqCst);
        Some(Received { head, body })
    }

    /// Reads a request's head.
    pub(super) async fn head(&mut self) -> Option<String> {
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            self.more().await?;
        };
        Some(String::from_utf8(self.take(end).await?).unwrap())
    }

    /// Writes `bytes` as they are.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).await.ok()
    }

    /// Writes a response with `body`.
    pub(super) async fn answer(&mut self, body: &str) -> Option<()> {
        let length = body.len();
        self.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}").as_bytes()).await
    }

    /// Reads `count` bytes.
    pub(super) async fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.unread.len() < count {
            self.more().await?;
        }
        let rest = self.unread.split_off(count);
        Some(std::mem::replace(&mut self.unread, rest))
    }

    /// Returns once something has come, and reads nothing of it.
    pub(super) async fn unread(&mut self) -> Option<()> {
        self.stream.peek(&mut [0]).await.ok().map(drop)
    }

    /// Returns once the client has closed the connection; discards what it still sends.
    pub(super) async fn closed(&mut self) -> Option<()> {
        while self.more().await.is_some() {}
        Some(())
    }

    async fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = self.unread.windows(2).position(|bytes| bytes == b"\r\n") {
                    break end;
                }
                self.more().await?;
            };
            let line = self.take(end + 2).await?;
            let length = usize::from_str_radix(std::str::from_utf8(&line[..end]).unwrap(), 16).unwrap();
            let chunk = self.take(length + 2).await?;
            if length == 0 {
                return Some(body);
            }
            body.extend_from_slice(&chunk[..length]);
        }
    }

    async fn more(&mut self) -> Option<()> {
        let read = self.stream.read_buf(&mut self.unread).await.unwrap_or(0);
        (read > 0).then_some(())
    }
}

/// A certificate for `localhost` and 127.0.0.1 in PEM, and a server's configuration with it that
/// offers `alpn`.
pub(super) fn certificate(alpn: &[&[u8]]) -> (String, ServerConfig) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    (made.cert.pem(), config)
}

async fn echo(
    request: Request<Incoming>,
    requests: Arc<AtomicUsize>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    requests.fetch_add(1, SeqCst);
    let authority = head.uri.authority().map(ToString::to_string);
    let host = head.headers.get("host").and_then(|host| host.to_str().ok()).map(str::to_owned);
    let mut answer =
        format!("{} {} {} ", head.method, head.uri.path(), authority.or(host).unwrap_or_default())
            .into_bytes();
    answer.extend_from_slice(&body);
    Ok(Response::new(Full::new(Bytes::from(answer))))
}

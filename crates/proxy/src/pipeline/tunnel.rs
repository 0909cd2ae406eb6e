//! A connection that has switched to another protocol: bytes both ways, as long as either side
//! sends anything.

use super::Core;
use crate::account::Account;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::request::Parts;
use http::{HeaderValue, Method, Request};
use hyper::ext::Protocol;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use suimon_downstream::connection::Connection;
use suimon_downstream::connections::{ClientWait, CloseRequest};
use suimon_identity::keys;
use suimon_upstream::UpstreamBody;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Returns whether a request of HTTP/2 asks for a tunnel that WebSocket is spoken through (RFC
/// 8441).
pub(super) fn asks_for_tunnel<B>(request: &Request<B>) -> bool {
    let is_websocket = |protocol: &Protocol| protocol.as_str() == "websocket";
    request.method() == Method::CONNECT && request.extensions().get::<Protocol>().is_some_and(is_websocket)
}

/// Returns whether a request of HTTP/2 names a protocol for a tunnel.
pub(super) fn names_protocol(parts: &Parts) -> bool {
    parts.extensions.get::<Protocol>().is_some()
}

/// Returns the key with which a client of HTTP/1.1 asks for WebSocket (RFC 6455, section 4.1).
pub(super) fn websocket_key() -> HeaderValue {
    let mut key = [0; 16];
    // Without random numbers it is a key all the same: it keeps caches away and guards no secret.
    let _ = keys::fill_random(&mut key);
    HeaderValue::try_from(BASE64.encode(key)).expect("base64 is visible ASCII")
}

impl Core {
    /// Carries bytes both ways between a client and the application until one of them closes, or
    /// neither has sent anything for `tunnel_idle`. A shutdown leaves it alone for as long as it
    /// waits at all.
    pub(super) fn tunnel(
        &self,
        connection: &Arc<Connection>,
        switch: OnUpgrade,
        body: UpstreamBody,
        account: Option<Arc<Account>>,
    ) {
        // The connection is in use for as long.
        let busy = connection.begin(Instant::now());
        let counted = self.telemetry.tunnel();
        let idle = self.params.timeouts.tunnel_idle;
        let wait = ClientWait::tunnel(connection.standing());
        let connection = Arc::clone(connection);
        tokio::spawn(async move {
            let _held = (busy, counted);
            let Some(mut application) = body.into_upgraded() else { return };
            let Ok(client) = switch.await else { return };
            let (carried, given) = (AtomicU64::new(0), AtomicU64::new(0));
            let mut client =
                Counted { stream: TokioIo::new(client), carried: &carried, given: &given, wait: &wait };
            // Both sides are closed when the carrier is dropped.
            tokio::select! {
                // Broken off is how most of them end.
                _ = tokio::io::copy_bidirectional(&mut client, &mut application) => {}
                () = silence(&carried, idle) => {}
                _ = connection.standing().hears(CloseRequest::Close) => {}
            }
            if let Some(account) = account {
                account.carried(given.load(Relaxed));
            }
        });
    }
}

/// Returns once nothing was carried for `limit`, and at most twice that.
async fn silence(carried: &AtomicU64, limit: Duration) {
    let mut before = None;
    loop {
        let now = carried.load(Relaxed);
        if before == Some(now) {
            return;
        }
        before = Some(now);
        tokio::time::sleep(limit).await;
    }
}

/// A stream that counts what it carries, either way.
struct Counted<'a, S> {
    stream: S,
    carried: &'a AtomicU64,
    /// Bytes written to it.
    given: &'a AtomicU64,
    wait: &'a ClientWait,
}

impl<S> Counted<'_, S> {
    fn note(&self) {
        self.carried.fetch_add(1, Relaxed);
        self.wait.note_moved();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.note();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<'_, S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.stream).poll_write(cx, buf))?;
        self.given.fetch_add(count as u64, Relaxed);
        self.note();
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

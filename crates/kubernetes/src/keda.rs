//! The wanted number as an external push scaler of KEDA (trigger type `external-push`).
//!
//! KEDA asks over gRPC without TLS; nothing that is said here is secret, and nothing can be changed.

pub mod contract;
mod published;
mod service;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use service::Scaler;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use suimon_params::kubernetes::KedaParams;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Connections at once; KEDA has one for each of its replicas.
const CONNECTIONS_MAX: usize = 64;
/// Calls at once on a connection.
const CALLS_MAX: u32 = 64;
/// Bytes of the header lines of a call.
const HEAD_MAX: u32 = 16 << 10;
/// From one ping to the next, and until its answer: a connection that is dead goes.
const PING: Duration = Duration::from_secs(20);
/// How long nothing is accepted after that has failed, such as for want of descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A scaler that has a port.
#[derive(Debug)]
pub struct Keda {
    listener: TcpListener,
    metric: Arc<str>,
    zero: bool,
}

impl Keda {
    /// Takes the port.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(params: KedaParams) -> io::Result<Self> {
        let listener = TcpListener::bind(params.listen).await?;
        Ok(Keda { listener, metric: params.metric.into(), zero: params.zero })
    }

    /// Returns where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until the sender of `wanted` is gone. While that is `None`, the scaler says that it is unavailable, and
    /// KEDA leaves the replicas as they are.
    pub async fn run(self, mut wanted: watch::Receiver<Option<u32>>) {
        let scaler = Scaler { metric: self.metric, zero: self.zero, wanted: wanted.clone() };
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                changed = wanted.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        // Beyond the bound, the newcomer is closed.
                        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                        let scaler = scaler.clone();
                        connections.spawn(async move {
                            serve(stream, scaler).await;
                            drop(place);
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the scaler cannot accept a connection");
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

async fn serve(stream: TcpStream, scaler: Scaler) {
    let service = service_fn(move |request| {
        let scaler = scaler.clone();
        async move { Ok::<_, Infallible>(scaler.answer(request).await) }
    });
    let ended = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING)
        .max_concurrent_streams(CALLS_MAX)
        .max_header_list_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of KEDA's ended");
    }
}

//! What serves the requests of connections, and what holds for these.

use crate::answer_body::ResponseBody;
use crate::budget::Budget;
use crate::connection::Connection;
use crate::host::Host;
use crate::watch::Watcher;
use http::{Request, Response};
use hyper::body::Incoming;
use std::error;
use std::sync::Arc;
use suimon_params::{Limits, Network, Timeouts};

/// What serves requests.
pub trait Service: Host {
    /// Why a request gets no answer: its client has gone.
    type Gone: error::Error + Send + Sync + 'static;

    /// Returns what holds for a connection that is accepted now.
    fn rules(&self) -> Arc<Rules>;

    /// Takes one request from its head to its answer.
    fn serve(
        self: Arc<Self>,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, Self::Gone>> + Send;
}

/// What holds for a connection, as it was when the connection was accepted.
#[derive(Debug)]
pub struct Rules {
    /// Peers whose word on where the client is counts.
    pub trusted: Arc<[Network]>,
    /// Balancers that begin each connection with a header of the PROXY protocol.
    pub balancers: Vec<Network>,
    /// How long each phase may take.
    pub timeouts: Timeouts,
    /// How much of everything is accepted.
    pub limits: Limits,
    /// Whether WebSocket over HTTP/2 is offered.
    pub tunnels: bool,
    /// The memory that answers for slow clients may take.
    pub budget: Arc<Budget>,
    /// Notices clients that leave.
    pub watcher: Arc<Watcher>,
}

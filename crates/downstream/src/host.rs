//! What a connection asks of whoever serves it.

use crate::answer_body::AnswerBody;
use crate::budget::Budget;
use crate::connection::Connection;
use crate::watch::Watcher;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use std::sync::Arc;
use std::{error, fmt};
use suimon_message::validate::Fault;
use suimon_params::{Limits, Timeouts};

/// Who counts connections, and says what is answered where there is no request.
pub trait Host: fmt::Debug + Send + Sync + 'static {
    /// Takes note that a connection is open.
    fn note_connection_opened(&self);

    /// Takes note that a connection is closed.
    fn note_connection_closed(&self);

    /// Takes note of a request that could not be read.
    fn note_unreadable(&self);

    /// Returns the whole answer, as bytes, to an HTTP/1 request that could not be read. `accepts`: what its head says of the answer it asks for, as far as that is known.
    fn unreadable(&self, fault: Fault, accepts: Option<HeaderMap>) -> Bytes;

    /// Returns whether the log is to tell of a balancer whose connections are refused: not each time.
    fn is_to_warn_of_balancer(&self) -> bool;
}

/// What serves requests.
pub trait Service: Host {
    /// Why a request gets no answer: its client has gone.
    type Gone: error::Error + Send + Sync + 'static;

    /// Takes one request from its head to its answer.
    fn serve(
        self: Arc<Self>,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<AnswerBody>, Self::Gone>> + Send;
}

/// What holds for all connections.
#[derive(Debug)]
pub struct Rules {
    /// How long each phase may take.
    pub timeouts: Timeouts,
    /// How much of everything is accepted.
    pub limits: Limits,
    /// Whether WebSocket over HTTP/2 is offered.
    pub tunnels: bool,
    /// What answers for slow clients may take of the memory.
    pub budget: Arc<Budget>,
    /// What notices clients that leave.
    pub watcher: Arc<Watcher>,
}

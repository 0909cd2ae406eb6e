//! Why a request got no whole response: what happened, on which node, who caused it, and whether a
//! retry may help.

use super::head::RequestHead;
use super::request::{BoxError, Progress, RequestBody};
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use suimon_model::NodeId;

/// Why a request got no response, or only a part of one.
#[derive(Debug)]
pub struct UpstreamError {
    kind: UpstreamErrorKind,
    node: Option<NodeId>,
    detail: &'static str,
    cause: Option<BoxError>,
    /// Behind a lock because a request's body is not `Sync`.
    unsent: Mutex<Option<Box<Unsent>>>,
}

/// A request that reached no node, or one that may be sent again and was lost by nodes that died:
/// unchanged.
pub struct Unsent {
    pub(super) head: RequestHead,
    pub(super) body: RequestBody,
    pub(super) progress: Option<Arc<Progress>>,
    /// Nodes that had it and died without an answer: it is one that may be sent again.
    pub(super) losses: u64,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UpstreamErrorKind {
    /// No node may get a request: all are draining.
    NoNode,
    /// The gateway has no file descriptor left for a connection, which says nothing about the node.
    GatewayFull,
    /// The connection was refused, or the node's name is unknown.
    Connect,
    /// The TLS handshake failed, or the node does not speak the configured protocol.
    TlsHandshake,
    /// The connection was not open in time.
    ConnectTimeout,
    /// The head of the response did not come in time.
    FirstByteTimeout,
    /// The next piece of the response body did not come in time.
    IdleTimeout,
    /// The connection closed before anything of a response arrived.
    BrokenBeforeHead,
    /// The connection closed in the middle of the response body.
    BrokenInBody,
    /// What the node sent is not an HTTP response, exceeds the limits, or breaks off in its head.
    BadResponse,
    /// The client's request body ended early or was malformed.
    RequestBody,
    /// The application has no program for the request's path.
    NoProgram,
}

/// Who caused an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The client sent something malformed, or disconnected.
    Client,
    /// The application, or the network to it.
    Upstream,
    /// The gateway has no node or no file descriptor left for the request.
    Gateway,
}

impl UpstreamErrorKind {
    /// Every kind there is.
    pub const ALL: &[UpstreamErrorKind] = &[
        UpstreamErrorKind::NoNode,
        UpstreamErrorKind::GatewayFull,
        UpstreamErrorKind::Connect,
        UpstreamErrorKind::TlsHandshake,
        UpstreamErrorKind::ConnectTimeout,
        UpstreamErrorKind::FirstByteTimeout,
        UpstreamErrorKind::IdleTimeout,
        UpstreamErrorKind::BrokenBeforeHead,
        UpstreamErrorKind::BrokenInBody,
        UpstreamErrorKind::BadResponse,
        UpstreamErrorKind::RequestBody,
        UpstreamErrorKind::NoProgram,
    ];

    /// Returns the short name used in metrics, headers and JSON; it never changes.
    pub const fn code(self) -> &'static str {
        match self {
            UpstreamErrorKind::NoNode => "no_node",
            UpstreamErrorKind::GatewayFull => "gateway_full",
            UpstreamErrorKind::Connect => "connect",
            UpstreamErrorKind::TlsHandshake => "tls_handshake",
            UpstreamErrorKind::ConnectTimeout => "connect_timeout",
            UpstreamErrorKind::FirstByteTimeout => "first_byte_timeout",
            UpstreamErrorKind::IdleTimeout => "idle_timeout",
            UpstreamErrorKind::BrokenBeforeHead => "broken_before_head",
            UpstreamErrorKind::BrokenInBody => "broken_in_body",
            UpstreamErrorKind::BadResponse => "bad_response",
            UpstreamErrorKind::RequestBody => "request_body",
            UpstreamErrorKind::NoProgram => "no_program",
        }
    }

    /// Returns who caused it.
    pub const fn fault(self) -> Blame {
        match self {
            UpstreamErrorKind::NoNode | UpstreamErrorKind::GatewayFull => Blame::Gateway,
            UpstreamErrorKind::RequestBody | UpstreamErrorKind::NoProgram => Blame::Client,
            _ => Blame::Upstream,
        }
    }

    /// Returns whether it is a timeout, for which `504` says more than `502`.
    pub const fn is_timeout(self) -> bool {
        matches!(
            self,
            UpstreamErrorKind::ConnectTimeout
                | UpstreamErrorKind::FirstByteTimeout
                | UpstreamErrorKind::IdleTimeout
        )
    }

    /// Returns whether a retry a little later may succeed, and the application has certainly not
    /// worked on the request.
    pub const fn retry_may_help(self) -> bool {
        matches!(
            self,
            UpstreamErrorKind::NoNode
                | UpstreamErrorKind::GatewayFull
                | UpstreamErrorKind::Connect
                | UpstreamErrorKind::TlsHandshake
                | UpstreamErrorKind::ConnectTimeout
        )
    }
}

impl UpstreamError {
    /// Returns what happened.
    pub fn kind(&self) -> UpstreamErrorKind {
        self.kind
    }

    /// Returns the node it happened on, if one was chosen.
    pub fn node(&self) -> Option<NodeId> {
        self.node
    }

    /// Returns who caused it.
    pub fn fault(&self) -> Blame {
        self.kind.fault()
    }

    /// Returns whether a retry a little later may succeed, and the application has certainly not
    /// worked on the request.
    pub fn retry_may_help(&self) -> bool {
        self.kind.retry_may_help()
    }

    /// Returns the cause of type `E`, if there is one: so a body's own error is found again.
    pub fn find<E: Error + 'static>(&self) -> Option<&E> {
        let mut cause = self.source();
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref::<E>() {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }

    pub(super) fn new(kind: UpstreamErrorKind, node: NodeId, detail: &'static str) -> Self {
        UpstreamError { kind, node: Some(node), detail, cause: None, unsent: Mutex::default() }
    }

    pub(super) fn no_node() -> Self {
        let detail = "no node accepts requests: all are draining";
        UpstreamError {
            kind: UpstreamErrorKind::NoNode,
            node: None,
            detail,
            cause: None,
            unsent: Mutex::default(),
        }
    }

    /// Returns the request, once, if no connection could be opened for it, or if it may be sent
    /// again and no node is left.
    pub fn take_unsent(&mut self) -> Option<Box<Unsent>> {
        self.unsent.get_mut().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns whether no connection could be opened.
    pub(super) fn is_unreached(&self) -> bool {
        matches!(self.kind, UpstreamErrorKind::Connect | UpstreamErrorKind::ConnectTimeout)
    }

    /// Puts the request into the error, if no connection could be opened for it.
    #[must_use]
    pub(super) fn with_unsent(self, unsent: Unsent) -> Self {
        let may_wait = self.is_unreached();
        self.with_unsent_if(may_wait, unsent)
    }

    /// Puts the request into the error, if it `may_wait` for a node.
    #[must_use]
    pub(super) fn with_unsent_if(mut self, may_wait: bool, unsent: Unsent) -> Self {
        if may_wait {
            self.unsent = Mutex::new(Some(Box::new(unsent)));
        }
        self
    }

    /// Says that the request could be sent again, and is not.
    #[must_use]
    pub(super) fn not_sent_again(self) -> Self {
        let detail = "the connection closed before a response came, and too many requests were sent again to do so with this one (upstream.retry_share)";
        UpstreamError { detail, ..self }
    }

    #[must_use]
    pub(super) fn caused_by(mut self, cause: impl Into<BoxError>) -> Self {
        self.cause = Some(cause.into());
        self
    }
}

impl fmt::Debug for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unsent").field("head", &self.head).finish_non_exhaustive()
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.detail)?;
        if let Some(node) = self.node {
            write!(f, " (node {})", node.0)?;
        }
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl Error for UpstreamError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }
}

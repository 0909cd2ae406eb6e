//! Why a request got no (whole) response: what happened, on which node, whose fault it was, and
//! whether trying again may help.

use super::head::RequestHead;
use super::request::{BoxError, Progress, RequestBody};
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use suimon_model::NodeId;

/// Why a request got no response, or no whole one.
#[derive(Debug)]
pub struct UpstreamError {
    kind: UpstreamErrorKind,
    node: Option<NodeId>,
    detail: &'static str,
    cause: Option<BoxError>,
    /// Behind a lock as a body is no part of a shared error.
    unsent: Mutex<Option<Box<Unsent>>>,
}

/// A request that no node was reached for, as it was handed in: to be sent again.
pub struct Unsent {
    pub(super) head: RequestHead,
    pub(super) body: RequestBody,
    pub(super) progress: Option<Arc<Progress>>,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UpstreamErrorKind {
    /// No node may be given a request: all are being drained.
    NoNode,
    /// The gateway has no descriptor left for a connection, which says nothing about the node.
    GatewayFull,
    /// The connection was refused, or the node's name is not known.
    Connect,
    /// The TLS handshake failed, or the node does not speak the protocol it was declared with.
    TlsHandshake,
    /// The connection was not open in time.
    ConnectTimeout,
    /// The head of the response did not come in time.
    FirstByteTimeout,
    /// The next piece of the response body did not come in time.
    IdleTimeout,
    /// The connection broke before the head of a response came.
    BrokenBeforeHead,
    /// The connection broke in the middle of the response body.
    BrokenInBody,
    /// What the node sent is no HTTP response, or one past the limits.
    BadResponse,
    /// The client's own request body broke off or was malformed.
    RequestBody,
}

/// Whose fault an error is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The client sent something broken, or went away.
    Client,
    /// The application or the way to it.
    Upstream,
    /// The gateway has nothing to send the request to, or no descriptor left to do so.
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
        }
    }

    /// Returns whose fault it is.
    pub const fn fault(self) -> Blame {
        match self {
            UpstreamErrorKind::NoNode | UpstreamErrorKind::GatewayFull => Blame::Gateway,
            UpstreamErrorKind::RequestBody => Blame::Client,
            _ => Blame::Upstream,
        }
    }

    /// Returns whether it is about time, so that `504` tells more than `502`.
    pub const fn is_timeout(self) -> bool {
        matches!(
            self,
            UpstreamErrorKind::ConnectTimeout
                | UpstreamErrorKind::FirstByteTimeout
                | UpstreamErrorKind::IdleTimeout
        )
    }

    /// Returns whether the same request may succeed a little later and is certain not to have been
    /// worked on.
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

    /// Returns whose fault it is.
    pub fn fault(&self) -> Blame {
        self.kind.fault()
    }

    /// Returns whether the same request may succeed a little later and is certain not to have been
    /// worked on.
    pub fn retry_may_help(&self) -> bool {
        self.kind.retry_may_help()
    }

    /// Returns the error of type `E` this one was caused by, if there is one: how a body's own
    /// error is found again.
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

    /// Returns the request if no connection could be opened for it, once: it is certain not to have
    /// been worked on since.
    pub fn take_unsent(&mut self) -> Option<Box<Unsent>> {
        self.unsent.get_mut().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Hands back the request itself where no connection could be opened for it.
    #[must_use]
    pub(super) fn with_unsent(mut self, unsent: Unsent) -> Self {
        if matches!(self.kind, UpstreamErrorKind::Connect | UpstreamErrorKind::ConnectTimeout) {
            self.unsent = Mutex::new(Some(Box::new(unsent)));
        }
        self
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

//! Why an exchange over a connection fails, before it is known what becomes of its request.

use super::error::UpstreamErrorKind;
use super::outgoing::{Outgoing, SendFault};
use super::request::{BoxError, RequestBody};
use std::io;

/// Why no head of a response arrived, and the request's body if nothing of the request was written.
pub(super) struct Failed {
    pub(super) kind: UpstreamErrorKind,
    pub(super) detail: &'static str,
    pub(super) cause: Option<BoxError>,
    pub(super) unsent: Option<RequestBody>,
}

impl Failed {
    pub(super) fn new(kind: UpstreamErrorKind, detail: &'static str) -> Self {
        Failed { kind, detail, cause: None, unsent: None }
    }

    pub(super) fn caused_by(self, cause: impl Into<BoxError>) -> Self {
        Failed { cause: Some(cause.into()), ..self }
    }

    /// Returns the error if the request could not be sent and no answer can follow. A node that
    /// closes the connection in the middle of a request may have answered why.
    pub(super) fn unsent(fault: SendFault, outgoing: &mut Outgoing) -> Result<(), Self> {
        match fault {
            SendFault::Body(error) => {
                let detail = "the request's body broke off or is malformed";
                Err(Failed::new(UpstreamErrorKind::RequestBody, detail).caused_by(error))
            }
            SendFault::Connection(error) => match outgoing.take_unsent() {
                Some(body) => {
                    let detail = "the connection broke before the request was sent";
                    let failed = Failed::new(UpstreamErrorKind::BrokenBeforeHead, detail).caused_by(error);
                    Err(Failed { unsent: Some(body), ..failed })
                }
                None => Ok(()),
            },
        }
    }

    /// Returns the error of a connection that ended, or broke with an error, before a response.
    pub(super) fn before_head(error: Option<io::Error>) -> Self {
        let detail = match error {
            None => "the connection ended before a response came",
            Some(_) => "the connection broke before a response came",
        };
        error.into_iter().fold(Failed::new(UpstreamErrorKind::BrokenBeforeHead, detail), Failed::caused_by)
    }

    /// Returns the error of a connection that ended, or broke with an error, when a response had begun.
    pub(super) fn in_head(error: Option<io::Error>) -> Self {
        let detail = "the connection closed in the middle of the head of a response";
        error.into_iter().fold(Failed::new(UpstreamErrorKind::BadResponse, detail), Failed::caused_by)
    }
}

/// Why a response's body ended too early.
#[derive(Debug)]
pub(super) enum BodyFault {
    /// The client's request body ended early, and the node waits for it.
    Request(BoxError),
    /// What the node sent is not a body of the announced kind.
    Malformed(BoxError),
    /// The connection ended or broke.
    Broken(io::Error),
}

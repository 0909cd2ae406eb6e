//! What a connection asks of the service behind it.

use bytes::Bytes;
use http::HeaderMap;
use std::fmt;
use suimon_message::validate::RequestFault;

/// Counts connections, and says what is answered where there is no request.
pub trait Host: fmt::Debug + Send + Sync + 'static {
    /// Takes note that a connection is open.
    fn note_connection_opened(&self);

    /// Takes note that a connection is closed.
    fn note_connection_closed(&self);

    /// Takes note of a request that could not be read.
    fn note_unreadable(&self);

    /// Returns the whole answer, as bytes, to an HTTP/1 request that could not be read. `accepts`:
    /// what its head says of the answer it asks for, as far as that is known.
    fn unreadable(&self, fault: RequestFault, accepts: Option<HeaderMap>) -> Bytes;

    /// Returns whether to log that a balancer's connections are refused: not each time.
    fn is_to_warn_of_balancer(&self) -> bool;
}

//! A request's head on its way to a node, and what is said there of its client.

use http::request::Parts;
use std::sync::Arc;
use suimon_message::peer::Forwarding;

/// A request's head: what the client asks for, and who it is where that is not in the headers
/// already.
#[derive(Debug)]
pub struct RequestHead {
    /// On the heap: it is handed on through many calls, and large to move.
    pub(super) parts: Box<Parts>,
    /// Beside the headers: it is the same for all requests of a connection, and to put it among
    /// theirs takes longer than to write it.
    pub(super) forwarding: Option<Arc<Forwarding>>,
}

impl RequestHead {
    /// Returns the head of a request of the client that `forwarding` tells of.
    pub fn of(parts: Box<Parts>, forwarding: Option<Arc<Forwarding>>) -> Self {
        RequestHead { parts, forwarding }
    }
}

impl From<Parts> for RequestHead {
    fn from(parts: Parts) -> Self {
        RequestHead::of(Box::new(parts), None)
    }
}

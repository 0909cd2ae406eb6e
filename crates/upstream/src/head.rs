//! A request's head on its way to a node, and what it tells the node of the client.

use http::request::Parts;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use suimon_message::peer::Forwarding;
use suimon_model::{NodeId, RouteId};

/// A request's head: what the client asks for, and who the client is, unless the headers already
/// say so.
#[derive(Debug)]
pub struct RequestHead {
    /// Boxed: it passes through many calls and is expensive to move.
    pub(super) parts: Box<Parts>,
    /// Not among the headers: it is the same for all requests of a connection, and inserting it
    /// there takes longer than writing it.
    pub(super) forwarding: Option<Arc<Forwarding>>,
    /// For applications that are told it by other means than headers.
    pub(super) client: Option<RequestClient>,
    /// Whether nobody counts it among those that are let in.
    pub(super) is_ungated: bool,
    /// Its route, if it has one: how long it takes is compared with others of it.
    pub(super) route: Option<RouteId>,
    /// Whether its path has no route of its own yet, so that nobody knows how long it takes.
    pub(super) is_new_path: bool,
    /// The node of its client's connection, where all requests of one go to the same.
    pub(super) pin: Option<NodePin>,
}

/// The node that the requests of a client's connection go to. It is kept as a number where the
/// connection is; `u32::MAX`: none yet.
#[derive(Debug)]
pub struct NodePin(pub Arc<AtomicU32>);

impl NodePin {
    pub(super) fn node(&self) -> Option<NodeId> {
        Some(self.0.load(Relaxed)).filter(|node| *node != u32::MAX).map(NodeId)
    }

    pub(super) fn set(&self, node: NodeId) {
        self.0.store(node.0, Relaxed);
    }
}

/// The client of a request, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestClient {
    /// Its address.
    pub address: IpAddr,
    /// Whether its connection is encrypted.
    pub is_secure: bool,
}

impl RequestHead {
    /// Returns the head of a request whose client `forwarding` describes.
    pub fn of(parts: Box<Parts>, forwarding: Option<Arc<Forwarding>>, client: RequestClient) -> Self {
        RequestHead {
            parts,
            forwarding,
            client: Some(client),
            is_ungated: false,
            route: None,
            is_new_path: false,
            pin: None,
        }
    }

    /// Returns the same, of a client's connection with this pin.
    #[must_use]
    pub fn pinned(self, pin: NodePin) -> Self {
        RequestHead { pin: Some(pin), ..self }
    }

    /// Returns the same, of a request of a route; `None`: it has none. `is_new_path`: it is a route for all paths
    /// of which nothing is known yet.
    #[must_use]
    pub fn of_route(self, route: Option<RouteId>, is_new_path: bool) -> Self {
        RequestHead { route, is_new_path, ..self }
    }

    /// Returns the same, of a request that nobody counts among those that are let in.
    #[must_use]
    pub fn ungated(self) -> Self {
        RequestHead { is_ungated: true, ..self }
    }
}

impl From<Parts> for RequestHead {
    fn from(parts: Parts) -> Self {
        RequestHead {
            parts: Box::new(parts),
            forwarding: None,
            client: None,
            is_ungated: false,
            route: None,
            is_new_path: false,
            pin: None,
        }
    }
}

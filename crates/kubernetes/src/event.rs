//! What a provider tells.

use std::net::SocketAddr;
use std::time::Instant;

/// Something about the nodes, or about knowing of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A node takes requests.
    Ready {
        /// Where it listens.
        address: SocketAddr,
    },
    /// A node finishes its sessions and gets no others.
    Draining {
        /// Where it listens.
        address: SocketAddr,
        /// When it will be ended; `None`: it may come back.
        until: Option<Instant>,
    },
    /// A node is no more.
    Gone {
        /// Where it listened.
        address: SocketAddr,
    },
    /// All nodes that there are have been told of for the first time; so many are ready.
    Found(u32),
    /// Nodes cannot be found or ordered: why, and what to do about it.
    Trouble(String),
    /// The trouble is over.
    Well,
}

//! Where a request comes from.

use http::Extensions;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The peer of a request's connection. Put it into the request's extensions where nothing else says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Client {
    /// Its address.
    pub address: IpAddr,
    /// Whether its connection is encrypted.
    pub is_tls: bool,
}

impl Client {
    /// Returns the client that these extensions tell of.
    pub(crate) fn of(extensions: &Extensions) -> Client {
        if let Some(client) = extensions.get::<Client>() {
            return *client;
        }
        let address = extensions.get::<SocketAddr>().copied().or_else(|| connect_info(extensions));
        let address = address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip());
        Client { address, is_tls: false }
    }
}

#[cfg(feature = "axum")]
fn connect_info(extensions: &Extensions) -> Option<SocketAddr> {
    extensions.get::<axum::extract::ConnectInfo<SocketAddr>>().map(|info| info.0)
}

#[cfg(not(feature = "axum"))]
const fn connect_info(_extensions: &Extensions) -> Option<SocketAddr> {
    None
}

#[cfg(all(test, feature = "axum"))]
mod tests {
    use super::*;
    use axum::extract::ConnectInfo;

    #[test]
    fn axum_says_which_client_it_is() {
        for peer in ["192.0.2.7:4711", "[2001:db8::7]:4711"] {
            let peer: SocketAddr = peer.parse().unwrap();
            let mut extensions = Extensions::new();
            extensions.insert(ConnectInfo(peer));
            assert_eq!(Client::of(&extensions).address, peer.ip());
        }
    }
}

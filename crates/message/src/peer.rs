//! Who a connection's requests come from, and what the application is told of it.

use crate::lists::items;
use http::header::{FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue, REFERER};
use http::request;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, OnceLock};
use suimon_params::Network;

pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(crate) const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
pub(crate) const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Stands for clients whose address is unreadable: an address of the discard prefix (RFC 6666). All
/// of them share the limits of one network.
pub(crate) const UNREADABLE: IpAddr = IpAddr::V6(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0));

/// Who a connection's requests come from, as the application is told. Made once per connection.
#[derive(Debug)]
pub struct Peer {
    /// Once something is forwarded: who works on requests here needs none, and has a peer for each of them.
    forwarding: OnceLock<Arc<Forwarding>>,
    pub(crate) is_tls: bool,
    pub(crate) ip: IpAddr,
    /// The networks of trusted proxies; `None`: this peer is a stranger.
    pub(crate) trusted: Option<Arc<[Network]>>,
}

/// What the application is told of a connection's peer: the same for each request, except for the
/// host that the request asks for.
#[derive(Debug)]
pub struct Forwarding {
    pub(crate) address: HeaderValue,
    pub(crate) forwarded: HeaderValue,
    pub(crate) scheme: HeaderValue,
}

impl Forwarding {
    fn of(address: IpAddr, is_tls: bool) -> Self {
        let scheme = if is_tls { "https" } else { "http" };
        let node = match address {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("\"[{v6}]\""),
        };
        let value =
            |text: String| HeaderValue::try_from(text).expect("addresses and schemes are visible ASCII");
        Forwarding {
            address: value(address.to_string()),
            forwarded: value(format!("for={node};proto={scheme}")),
            scheme: HeaderValue::from_static(scheme),
        }
    }

    /// Returns the headers that describe a stranger who asks for `host`.
    pub fn lines<'a>(
        &'a self,
        host: Option<&'a HeaderValue>,
    ) -> impl Iterator<Item = (HeaderName, &'a HeaderValue)> {
        let own = [
            (X_FORWARDED_FOR, &self.address),
            (FORWARDED, &self.forwarded),
            (X_FORWARDED_PROTO, &self.scheme),
        ];
        own.into_iter().chain(host.map(|host| (X_FORWARDED_HOST, host)))
    }

    /// Adds them to `headers`, from which a stranger's own claims have been removed.
    pub fn add_to(&self, headers: &mut HeaderMap) {
        let host = headers.get(HOST).cloned();
        for (name, value) in self.lines(host.as_ref()) {
            headers.insert(name, value.clone());
        }
    }
}

impl Peer {
    /// Returns the peer at `address`; its statements about others are believed if one of `trusted`
    /// contains it.
    pub fn new(address: IpAddr, is_tls: bool, trusted: &Arc<[Network]>) -> Self {
        let address = address.to_canonical();
        Peer {
            forwarding: OnceLock::new(),
            is_tls,
            ip: address,
            trusted: is_in(address, trusted).then(|| Arc::clone(trusted)),
        }
    }

    /// Returns whether the client's own connection is encrypted, as far as can be known.
    pub fn is_secure(&self, headers: &HeaderMap) -> bool {
        self.security(headers).unwrap_or(self.is_tls)
    }

    /// Returns whether the client's own connection is encrypted; `None`: it is a trusted peer's to
    /// say, and it does not. Of several proxies the first met the client.
    pub fn security(&self, headers: &HeaderMap) -> Option<bool> {
        if self.trusted.is_none() {
            return Some(self.is_tls);
        }
        let said = items(headers, &X_FORWARDED_PROTO).next();
        let said = said.or_else(|| forwarded_alone(headers).find_map(|element| parameter(element, b"proto")));
        let said = said?;
        let is = |protocol: &[u8]| said.eq_ignore_ascii_case(protocol);
        // Some name a WebSocket's scheme.
        match () {
            () if is(b"https") || is(b"wss") => Some(true),
            () if is(b"http") || is(b"ws") => Some(false),
            () => None,
        }
    }

    /// Returns the client's address: the peer's own, or the last address that a trusted peer names
    /// and that is not itself trusted. An unreadable entry counts as a stranger, never as a trusted
    /// proxy.
    pub fn client(&self, headers: &HeaderMap) -> IpAddr {
        let Some(trusted) = &self.trusted else { return self.ip };
        let alone = forwarded_alone(headers).map(|element| parameter(element, b"for").unwrap_or_default());
        let mut client = self.ip;
        for name in items(headers, &X_FORWARDED_FOR).chain(alone).rev() {
            let Some(address) = address_of(name) else { return UNREADABLE };
            client = address.to_canonical();
            if !is_in(client, trusted) {
                break;
            }
        }
        client
    }

    /// Returns what to tell the application beside the request's headers; `None` for a trusted
    /// peer, whose headers already tell it.
    pub fn forwarding(&self) -> Option<Arc<Forwarding>> {
        self.trusted.is_none().then(|| Arc::clone(self.described()))
    }

    /// Returns what describes it, believed or not.
    pub(crate) fn described(&self) -> &Arc<Forwarding> {
        self.forwarding.get_or_init(|| Arc::new(Forwarding::of(self.ip, self.is_tls)))
    }

    /// Returns whether its statements about others are believed: its connections carry requests of
    /// many clients.
    pub fn is_trusted(&self) -> bool {
        self.trusted.is_some()
    }

    /// Returns whom a peer that is not trusted claims to stand for: the first address it names.
    /// Anybody can claim anything.
    pub fn says<'a>(&self, headers: &'a HeaderMap) -> Option<&'a [u8]> {
        if self.is_trusted() {
            return None;
        }
        let named = headers.get(X_FORWARDED_FOR).or_else(|| headers.get(FORWARDED))?;
        named.as_bytes().split(|byte| *byte == b',').next().map(<[u8]>::trim_ascii)
    }
}

/// Returns whether one of `networks` contains `address`.
pub fn is_in(address: IpAddr, networks: &[Network]) -> bool {
    networks.iter().any(|network| network.contains(address))
}

/// Returns whether an address is not public: it may belong to a load balancer and stand for all
/// visitors.
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

/// Returns whether a request shows that it comes from a page of the same site. Browsers say so in a
/// header; other clients can only forge it.
pub fn is_from_own_page(parts: &request::Parts) -> bool {
    if let Some(site) = parts.headers.get("sec-fetch-site") {
        return site.as_bytes() == b"same-origin";
    }
    let (Some(from), Some(host)) = (parts.headers.get(REFERER), host_of(parts)) else { return false };
    let from = from.as_bytes();
    let Some(at) = from.windows(3).position(|three| three == b"://") else { return false };
    let from = &from[at + 3..];
    from[..from.iter().position(|byte| *byte == b'/').unwrap_or(from.len())].eq_ignore_ascii_case(host)
}

fn host_of(parts: &request::Parts) -> Option<&[u8]> {
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    authority.or_else(|| parts.headers.get(HOST).map(HeaderValue::as_bytes))
}

/// Returns the address in an entry of `X-Forwarded-For`, which some write with a port.
pub(crate) fn address_of(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<std::net::SocketAddr>().ok().map(|address| address.ip()))
}

/// Returns the elements of `Forwarded`, if no other header says who the client is.
pub(crate) fn forwarded_alone(headers: &HeaderMap) -> impl DoubleEndedIterator<Item = &[u8]> {
    let is_alone =
        [X_FORWARDED_FOR, X_FORWARDED_PROTO, X_FORWARDED_HOST].iter().all(|name| !headers.contains_key(name));
    items(headers, &FORWARDED).filter(move |_| is_alone)
}

/// Returns the value of a parameter of an element of `Forwarded` (RFC 7239), without quotes.
pub(crate) fn parameter<'a>(element: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let pairs = element.split(|byte| *byte == b';').filter_map(|pair| {
        let at = memchr::memchr(b'=', pair)?;
        Some((pair[..at].trim_ascii(), pair[at + 1..].trim_ascii()))
    });
    let (_, value) = pairs.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name))?;
    let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    Some(bare.unwrap_or(value))
}

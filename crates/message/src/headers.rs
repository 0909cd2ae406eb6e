//! Header hygiene: hop-by-hop headers stay on their connection, and only the gateway says who the
//! client is.
//!
//! The order matters. First all headers of the client's connection are removed, including those
//! that `Connection` names. Only then the gateway sets its own, so that `Connection:
//! x-forwarded-for` cannot remove them again.
//!
//! From a stranger, no header is kept that applications take for a proxy's statement. From a
//! trusted proxy all are kept, and `Forwarded` is written from its `X-Forwarded-*`, so that the two
//! agree. Its own `Forwarded` is believed only if it sends none of these.

use crate::lists::{items, list};
use crate::peer::{
    Forwarding, Peer, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO, address_of, forwarded_alone,
    parameter,
};
use crate::validate::is_host;
use http::header::{
    AGE, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, COOKIE, DATE, EXPECT, EXPIRES, FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue,
    LOCATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, RANGE, RETRY_AFTER, SEC_WEBSOCKET_ACCEPT, SET_COOKIE,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY, VIA, WWW_AUTHENTICATE,
};
use http::{Request, StatusCode, Uri, Version, request, response};
use std::fmt::Write as _;
use std::net::IpAddr;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Prefix of the headers that only the gateway may send to the application.
const OWN_PREFIX: &str = "suimon-";

/// Headers in which proxies describe a client and its request, beside all that begin with
/// `x-forwarded`.
const CLAIMS: [&str; 45] = [
    "ali-cdn-real-ip",
    "cdn-src-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "cf-visitor",
    "client-ip",
    "do-connecting-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "forwarded",
    "forwarded-for",
    "front-end-https",
    "incap-client-ip",
    "proxy-client-ip",
    "remote-user",
    "true-client-ip",
    "wl-proxy-client-ip",
    "x-appengine-user-ip",
    "x-arr-ssl",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-envoy-original-path",
    "x-forward-for",
    "x-host",
    "x-http-host-override",
    "x-original-forwarded-for",
    "x-original-host",
    "x-original-uri",
    "x-original-url",
    "x-originating-ip",
    "x-real-ip",
    "x-real-port",
    "x-remote-addr",
    "x-remote-ip",
    "x-remote-user",
    "x-rewrite-url",
    "x-scheme",
    "x-ssl-client-verify",
    "x-sucuri-clientip",
    "x-url-scheme",
    "x-vercel-forwarded-for",
];
const CLAIMS_PREFIX: &str = "x-forwarded";
/// CGI programs take this header for their own proxy setting (httpoxy). No request needs it.
const PROXY: &str = "proxy";
/// Headers that frame a message; no other spelling of them may pass either.
const FRAMING: [&str; 2] = ["content-length", "transfer-encoding"];

/// Headers that hold for one connection only, beside those that `Connection` names.
const HOP_BY_HOP: [HeaderName; 7] =
    [KEEP_ALIVE, PROXY_CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE];

/// Headers that may be in a head and never in a trailer (RFC 9110, section 6.5.1). A server may
/// have acted on the body before it reads a trailer, so one that frames, addresses, authorises or
/// names a session could contradict the head.
const NEVER_TRAILERS: [HeaderName; 24] = [
    AGE,
    ALLOW,
    AUTHORIZATION,
    CACHE_CONTROL,
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    COOKIE,
    DATE,
    EXPECT,
    EXPIRES,
    FORWARDED,
    HOST,
    LOCATION,
    RANGE,
    RETRY_AFTER,
    SET_COOKIE,
    TRAILER,
    VARY,
    VIA,
    WWW_AUTHENTICATE,
    X_FORWARDED_FOR,
];

/// Makes the head of a validated request fit for the application: removes what belongs to the
/// client's connection and what is forged. The headers that describe a stranger are not added here;
/// they are in [`Peer::forwarding`].
///
/// With `upgrade`, the request asks the application to switch to WebSocket and keeps the two
/// headers for it.
pub fn prepare_request(parts: &mut request::Parts, peer: &Peer, upgrade: bool, via: bool) {
    let version = parts.version;
    own_host(parts);
    let headers = &mut parts.headers;
    let takes_trailers = list(headers, &TE).any(|word| word.eq_ignore_ascii_case("trailers"));
    strip_hop_by_hop(headers);
    if takes_trailers {
        // `trailers` is the only value that HTTP/2 allows (RFC 9113, section 8.2.2), and gRPC
        // demands it. It is true of the gateway's connection too: the gateway passes trailers on.
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    drop_claims(headers, peer.is_trusted());
    // The gateway sends the body as it arrives, without waiting for a `100 Continue`.
    headers.remove(EXPECT);
    if version == Version::HTTP_2 {
        join_cookies(headers);
    }
    if peer.is_trusted() {
        forward(headers, peer.described());
    }
    if upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    }
    if via {
        let received = if version == Version::HTTP_2 { "2.0 suimon" } else { "1.1 suimon" };
        headers.append(VIA, HeaderValue::from_static(received));
    }
}

/// Removes from a response's head what holds only for the application's connection, and what the
/// application says to the gateway; returns the latter.
pub fn prepare_response(head: &mut response::Parts, upgrade: bool) -> HeaderMap {
    // The version is the gateway's own (RFC 9110, section 2.5). A client could not notice that an
    // HTTP/1.0 answer without a length was cut off.
    head.version = Version::HTTP_11;
    strip_hop_by_hop(&mut head.headers);
    let said = take_signals(&mut head.headers);
    if upgrade {
        head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        head.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    }
    said
}

/// Removes from a message's trailers what may only be in a head, belongs to one connection, or is
/// between the gateway and the application.
pub fn prepare_trailers(trailers: &mut HeaderMap) {
    strip_hop_by_hop(trailers);
    take_signals(trailers);
    NEVER_TRAILERS.iter().for_each(|name| _ = trailers.remove(name));
}

/// As [`prepare_trailers`], for a request: trailers never describe a client. A trusted proxy does
/// that in the head.
pub fn prepare_request_trailers(trailers: &mut HeaderMap) {
    prepare_trailers(trailers);
    drop_claims(trailers, false);
}

/// Returns whether a message is gRPC: `application/grpc`, with or without an encoding such as
/// `+proto`.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    is_of_kind(content_type(headers), &[b"application/grpc"])
}

/// Returns the content type that a message declares; empty if it declares none.
pub fn content_type(headers: &HeaderMap) -> &[u8] {
    headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default()
}

/// Returns whether a content type begins like one of `kinds`.
pub fn is_of_kind(content_type: &[u8], kinds: &[&[u8]]) -> bool {
    kinds
        .iter()
        .any(|kind| content_type.len() >= kind.len() && content_type[..kind.len()].eq_ignore_ascii_case(kind))
}

/// Turns the head of a response that switched protocols into one of HTTP/2, where a successful
/// status opens the tunnel.
pub fn open_tunnel(head: &mut response::Parts) {
    head.status = StatusCode::OK;
    for name in [CONNECTION, UPGRADE, SEC_WEBSOCKET_ACCEPT, CONTENT_LENGTH] {
        head.headers.remove(name);
    }
}

/// Returns whether a request asks to switch to WebSocket.
pub fn asks_for_websocket<B>(request: &Request<B>) -> bool {
    let Some(upgrade) = request.headers().get(UPGRADE) else {
        return false;
    };
    request.version() == Version::HTTP_11
        && request.method() == http::Method::GET
        && upgrade.as_bytes().eq_ignore_ascii_case(b"websocket")
        && list(request.headers(), &CONNECTION).any(|option| option.eq_ignore_ascii_case("upgrade"))
}

/// Moves the host from the target, which carries it in HTTP/2 and in absolute targets, into `Host`.
fn own_host(parts: &mut request::Parts) {
    let Some(authority) = parts.uri.authority() else {
        return;
    };
    if !parts.headers.contains_key(HOST)
        && let Ok(host) = HeaderValue::try_from(authority.as_str())
    {
        parts.headers.insert(HOST, host);
    }
    let target = parts.uri.path_and_query().cloned();
    parts.uri = target.map_or_else(|| Uri::from_static("/"), Uri::from);
}

fn strip_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let named: Vec<HeaderName> = list(headers, &CONNECTION)
            .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
            // Headers that frame or address the message are end-to-end, whatever the client says.
            .filter(|name| *name != HOST && *name != CONTENT_LENGTH)
            .collect();
        for name in named {
            headers.remove(name);
        }
        headers.remove(CONNECTION);
    }
    // Most heads have none of them, and one pass over the names costs less than a look-up of each.
    if headers.keys().any(|name| HOP_BY_HOP.contains(name)) {
        for name in &HOP_BY_HOP {
            headers.remove(name);
        }
    }
}

/// Removes the headers that are between the gateway and the application, and returns them.
pub fn take_signals(headers: &mut HeaderMap) -> HeaderMap {
    let is_own = |name: &&HeaderName| is_own(name.as_str());
    // Neither collection allocates when there are none.
    let names: Vec<HeaderName> = headers.keys().filter(is_own).cloned().collect();
    let mut own = HeaderMap::new();
    for name in names {
        headers.get_all(&name).iter().for_each(|value| _ = own.append(&name, value.clone()));
        headers.remove(name);
    }
    own
}

/// Returns whether only the gateway may send a header of this name. CGI programs read an underscore
/// as a hyphen.
fn is_own(name: &str) -> bool {
    name.strip_prefix(OWN_PREFIX.trim_end_matches('-')).is_some_and(|rest| rest.starts_with(['-', '_']))
}

/// Removes the headers that only the gateway may send; those that only a trusted proxy may send, if
/// `is_trusted` is false; and all that a CGI program could take for one of these or for the
/// message's framing.
pub fn drop_claims(headers: &mut HeaderMap, is_trusted: bool) {
    // Does not allocate when there are none.
    let mut names: Vec<HeaderName> = Vec::new();
    for name in headers.keys() {
        if is_dropped(name.as_str(), is_trusted) {
            names.push(name.clone());
        }
    }
    for name in names {
        headers.remove(name);
    }
}

fn is_dropped(name: &str, is_trusted: bool) -> bool {
    // CGI programs find a header in a variable's name, in which some servers write an underscore
    // for every character that is not a letter or a digit.
    let is_plain = |byte: u8| byte == b'-' || byte.is_ascii_alphanumeric();
    if !name.bytes().all(is_plain) {
        let folded = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        return is_own(&folded) || is_claim(&folded) || FRAMING.contains(&folded.as_str());
    }
    match name.as_bytes() {
        [b's', ..] => is_own(name),
        _ => name == PROXY || !is_trusted && is_claim(name),
    }
}

fn is_claim(name: &str) -> bool {
    // Of the usual header names, only those with an x begin like one of these.
    match name.as_bytes() {
        [b'x', ..] => name.starts_with(CLAIMS_PREFIX) || CLAIMS.binary_search(&name).is_ok(),
        [b'c', b'd' | b'f' | b'l', ..]
        | [b'a', b'l', b'i', ..]
        | [b'd', b'o', ..]
        | [b'f', ..]
        | [b'i', b'n', ..]
        | [b'p', b'r', ..]
        | [b'r', b'e', b'm', ..]
        | [b't', b'r', ..]
        | [b'w', b'l', ..] => CLAIMS.binary_search(&name).is_ok(),
        _ => false,
    }
}

/// HTTP/2 may split cookies into several headers; before HTTP/2 there is one (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let mut cookies = headers.get_all(COOKIE).iter();
    if let (Some(first), Some(second)) = (cookies.next(), cookies.next()) {
        let mut joined = first.as_bytes().to_vec();
        for cookie in std::iter::once(second).chain(cookies) {
            joined.extend_from_slice(b"; ");
            joined.extend_from_slice(cookie.as_bytes());
        }
        if let Ok(joined) = HeaderValue::from_maybe_shared(bytes::Bytes::from(joined)) {
            headers.insert(COOKIE, joined);
        }
    }
}

/// Appends a trusted peer's address to the list of those that forwarded the request.
fn forward(headers: &mut HeaderMap, peer: &Forwarding) {
    let host = headers.get(HOST).cloned();
    if forwarded_alone(headers).next().is_some() {
        translate_forwarded(headers);
        append_to_list(headers, FORWARDED, &peer.forwarded);
        append_to_list(headers, X_FORWARDED_FOR, &peer.address);
    } else {
        append_to_list(headers, X_FORWARDED_FOR, &peer.address);
        headers.remove(FORWARDED);
    }
    if !headers.contains_key(X_FORWARDED_PROTO) {
        headers.insert(X_FORWARDED_PROTO, peer.scheme.clone());
    }
    if let Some(host) = host.filter(|_| !headers.contains_key(X_FORWARDED_HOST)) {
        headers.insert(X_FORWARDED_HOST, host);
    }
    if !headers.contains_key(FORWARDED) {
        let forwarded = forwarded_of(headers);
        headers.insert(FORWARDED, forwarded);
    }
}

/// Writes as `X-Forwarded-*` what a proxy that sends only `Forwarded` has said.
fn translate_forwarded(headers: &mut HeaderMap) {
    let value = |text: &[u8]| HeaderValue::from_bytes(text).ok();
    let nodes: Vec<&[u8]> = items(headers, &FORWARDED).filter_map(|it| parameter(it, b"for")).collect();
    let nodes = value(&nodes.join(&b", "[..]));
    let first = |name: &[u8]| items(headers, &FORWARDED).next().and_then(|it| parameter(it, name));
    let proto = first(b"proto").filter(|proto| is_scheme(proto)).and_then(value);
    let host = first(b"host").filter(|host| is_host(host)).and_then(value);
    let said = [(X_FORWARDED_FOR, nodes), (X_FORWARDED_PROTO, proto), (X_FORWARDED_HOST, host)];
    for (name, value) in said.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        headers.insert(name, value);
    }
}

/// Returns `X-Forwarded-*` as `Forwarded`: the first address with what it asked for, then the
/// addresses that forwarded it.
fn forwarded_of(headers: &HeaderMap) -> HeaderValue {
    const INFALLIBLE: &str = "a text takes all that is written to it";
    let mut out = String::with_capacity(96);
    for (at, item) in items(headers, &X_FORWARDED_FOR).enumerate() {
        out.push_str(if at == 0 { "for=" } else { ", for=" });
        match address_of(item).map(|address| address.to_canonical()) {
            Some(IpAddr::V4(address)) => write!(out, "{address}").expect(INFALLIBLE),
            Some(IpAddr::V6(address)) => write!(out, "\"[{address}]\"").expect(INFALLIBLE),
            None => out.push_str("unknown"),
        }
        if at > 0 {
            continue;
        }
        let first = |name| items(headers, &name).next();
        if let Some(proto) = first(X_FORWARDED_PROTO).filter(|proto| is_scheme(proto)) {
            write!(out, ";proto={}", String::from_utf8_lossy(proto)).expect(INFALLIBLE);
        }
        if let Some(host) = first(X_FORWARDED_HOST).filter(|host| is_host(host)) {
            write!(out, ";host=\"{}\"", String::from_utf8_lossy(host)).expect(INFALLIBLE);
        }
    }
    HeaderValue::try_from(out).expect("addresses, schemes and hosts are visible ASCII")
}

fn is_scheme(text: &[u8]) -> bool {
    text.eq_ignore_ascii_case(b"http") || text.eq_ignore_ascii_case(b"https")
}

fn append_to_list(headers: &mut HeaderMap, name: HeaderName, value: &HeaderValue) {
    let mut items: Vec<u8> = Vec::new();
    for line in headers.get_all(&name) {
        items.extend_from_slice(line.as_bytes());
        items.extend_from_slice(b", ");
    }
    items.extend_from_slice(value.as_bytes());
    if let Ok(items) = HeaderValue::from_maybe_shared(bytes::Bytes::from(items)) {
        headers.insert(name, items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::{UNREADABLE, is_private};
    use proptest::prelude::*;
    use std::sync::Arc;
    use suimon_params::Network;
    use suimon_testing::headers;

    fn prepared(version: Version, peer: &Peer, headers: &[(&'static str, &'static str)]) -> request::Parts {
        let mut parts = Request::builder().version(version).uri("/x?y").body(()).unwrap().into_parts().0;
        for (name, value) in headers {
            parts.headers.append(*name, HeaderValue::from_static(value));
        }
        prepare_request(&mut parts, peer, false, false);
        as_sent(parts, peer)
    }

    fn as_sent(mut parts: request::Parts, peer: &Peer) -> request::Parts {
        if let Some(forwarding) = peer.forwarding() {
            forwarding.add_to(&mut parts.headers);
        }
        parts
    }

    fn stranger() -> Peer {
        Peer::new("192.0.2.7".parse().unwrap(), false, &Arc::from([]))
    }

    fn balancer() -> Peer {
        let trusted = Arc::from([Network { address: "10.0.0.0".parse().unwrap(), prefix: 8 }]);
        Peer::new("10.1.2.3".parse().unwrap(), false, &trusted)
    }

    fn all(parts: &request::Parts, name: &str) -> Vec<String> {
        parts.headers.get_all(name).iter().map(|v| v.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn what_the_connection_owns_stays_on_it() {
        let parts = prepared(
            Version::HTTP_11,
            &stranger(),
            &[
                ("host", "a"),
                ("connection", "keep-alive, X-Secret"),
                ("connection", "x-other,host, content-length"),
                ("content-length", "3"),
                ("x-secret", "1"),
                ("x-other", "1"),
                ("keep-alive", "timeout=5"),
                ("te", "trailers"),
                ("proxy-authorization", "Basic x"),
                ("upgrade", "h2c"),
                ("accept", "*/*"),
            ],
        );
        let mut names: Vec<_> = parts.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let kept = ["accept", "content-length", "forwarded", "host", "te"];
        assert_eq!(names[..5], kept);
        assert!(names[5..].iter().all(|name| name.starts_with("x-forwarded-")), "{names:?}");
    }

    #[test]
    fn a_stranger_is_not_believed() {
        let parts = prepared(
            Version::HTTP_11,
            &stranger(),
            &[
                ("host", "shop"),
                ("connection", "x-forwarded-for"),
                ("x-forwarded-for", "1.1.1.1"),
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "evil"),
                ("forwarded", "for=1.1.1.1"),
                ("suimon-session", "1"),
            ],
        );
        assert_eq!(all(&parts, "x-forwarded-for"), ["192.0.2.7"]);
        assert_eq!(all(&parts, "x-forwarded-proto"), ["http"]);
        assert_eq!(all(&parts, "x-forwarded-host"), ["shop"]);
        assert_eq!(all(&parts, "forwarded"), ["for=192.0.2.7;proto=http"]);
        assert!(!parts.headers.contains_key("suimon-session"));
    }

    #[test]
    fn a_trusted_balancer_is_believed_and_added_to() {
        let peer = balancer();
        let parts = prepared(
            Version::HTTP_11,
            &peer,
            &[
                ("host", "shop"),
                ("x-forwarded-for", "1.1.1.1"),
                ("x-forwarded-for", "2.2.2.2"),
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "www.shop"),
            ],
        );
        assert_eq!(all(&parts, "x-forwarded-for"), ["1.1.1.1, 2.2.2.2, 10.1.2.3"]);
        assert_eq!(all(&parts, "x-forwarded-proto"), ["https"]);
        assert_eq!(all(&parts, "x-forwarded-host"), ["www.shop"]);
        let agrees = "for=1.1.1.1;proto=https;host=\"www.shop\", for=2.2.2.2, for=10.1.2.3";
        assert_eq!(all(&parts, "forwarded"), [agrees]);
        assert!(peer.is_secure(&parts.headers));
        assert!(!stranger().is_secure(&parts.headers));
    }

    #[test]
    fn what_a_trusted_proxy_says_in_two_ways_agrees() {
        let of = |said: &[(&'static str, &'static str)]| {
            let parts = prepared(Version::HTTP_11, &balancer(), &[&[("host", "shop")], said].concat());
            ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded"]
                .map(|name| all(&parts, name).join("|"))
        };
        let passed_on = [
            ("forwarded", "for=6.6.6.6;proto=http;host=evil"),
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-proto", "https"),
        ];
        let [nodes, proto, host, forwarded] = of(&passed_on);
        assert_eq!([nodes, proto, host], ["1.1.1.1, 10.1.2.3", "https", "shop"]);
        assert_eq!(
            forwarded, "for=1.1.1.1;proto=https;host=\"shop\", for=10.1.2.3",
            "a stranger's is not passed on"
        );
        let [nodes, proto, host, forwarded] = of(&[("forwarded", "for=1.1.1.1;proto=https;host=www.shop")]);
        assert_eq!([nodes, proto, host], ["1.1.1.1, 10.1.2.3", "https", "www.shop"], "where it is alone");
        assert_eq!(forwarded, "for=1.1.1.1;proto=https;host=www.shop, for=10.1.2.3;proto=http");
        let [nodes, _, _, forwarded] =
            of(&[("x-forwarded-for", "unknown, 2001:db8::1"), ("x-forwarded-proto", "gopher\"")]);
        assert_eq!(nodes, "unknown, 2001:db8::1, 10.1.2.3");
        assert_eq!(forwarded, "for=unknown;host=\"shop\", for=\"[2001:db8::1]\", for=10.1.2.3");
        let [nodes, proto, _, forwarded] = of(&[]);
        assert_eq!([nodes, proto, forwarded], ["10.1.2.3", "http", "for=10.1.2.3;proto=http;host=\"shop\""]);
    }

    #[test]
    fn claims_are_in_order_so_that_they_are_found() {
        assert!(CLAIMS.is_sorted());
        assert!(CLAIMS.iter().all(|name| is_claim(name)));
    }

    #[test]
    fn a_trusted_proxy_may_say_what_a_stranger_may_not() {
        let said = [("x-real-ip", "1.1.1.1"), ("x-forwarded-port", "443"), ("x-original-url", "/a")];
        let names = |peer: &Peer| {
            let parts = prepared(Version::HTTP_11, peer, &said);
            said.map(|(name, _)| parts.headers.contains_key(name))
        };
        assert_eq!((names(&balancer()), names(&stranger())), ([true; 3], [false; 3]));
        let folded = [
            ("x_forwarded_proto", "https"),
            ("x.forwarded~for", "evil"),
            ("x-real.ip", "evil"),
            ("suimon_waiting", "1"),
            ("suimon.waiting", "1"),
            ("proxy", "evil"),
            ("content_length", "3"),
            ("api_key", "x"),
            ("api.key", "x"),
        ];
        for peer in [balancer(), stranger()] {
            let parts = prepared(Version::HTTP_11, &peer, &folded);
            let kept = folded.map(|(name, _)| parts.headers.contains_key(name));
            assert_eq!(kept, [false, false, false, false, false, false, false, true, true]);
        }
    }

    #[test]
    fn trailers_of_requests_say_nothing_that_only_a_proxy_may() {
        let mut trailers = HeaderMap::new();
        for name in
            ["x-real-ip", "x-forwarded-host", "x_forwarded_for", "transfer_encoding", "proxy", "suimon-lease"]
        {
            trailers.insert(name, HeaderValue::from_static("evil"));
        }
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        prepare_request_trailers(&mut trailers);
        assert_eq!(trailers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["grpc-status"]);
        // The application may describe itself in any way.
        let mut answered = HeaderMap::new();
        answered.insert("x-host", HeaderValue::from_static("a"));
        prepare_trailers(&mut answered);
        assert!(answered.contains_key("x-host"));
    }

    #[test]
    fn the_client_is_the_last_that_no_trusted_one_stands_for() {
        let headers = |lines: &[&str]| headers(&X_FORWARDED_FOR, lines);
        let of = |lines: &[&str]| balancer().client(&headers(lines)).to_string();
        assert_eq!(
            of(&["1.1.1.1", "2.2.2.2, 10.9.9.9"]),
            "2.2.2.2",
            "whatever stands before it may be made up"
        );
        assert_eq!(of(&["2.2.2.2:443"]), "2.2.2.2");
        assert_eq!(of(&["[2001:db8::1]:443"]), "2001:db8::1");
        assert_eq!(of(&[]), "10.1.2.3");
        assert_eq!(of(&["nonsense, 10.9.9.9"]), "100::", "a stranger, and not the proxy that saw it");
        assert_eq!(of(&["nonsense, 2.2.2.2"]), "2.2.2.2");
        assert_eq!(of(&["[2001:db8::1], 10.9.9.9"]), "2001:db8::1");
        assert!(!is_private(UNREADABLE));
        let alone = self::headers(
            &FORWARDED,
            &["for=1.1.1.1;proto=https, for=\"[2001:db8::2]:443\"", "for=10.9.9.9"],
        );
        assert_eq!(balancer().client(&alone).to_string(), "2001:db8::2");
        assert!(balancer().is_secure(&alone) && !stranger().is_secure(&alone));
        assert_eq!(stranger().client(&headers(&["1.1.1.1"])).to_string(), "192.0.2.7");
    }

    #[test]
    fn networks_hold_what_lies_in_them() {
        let network = |address: &str, prefix| Network { address: address.parse().unwrap(), prefix };
        let holds = |n: Network, address: &str| n.contains(address.parse().unwrap());
        assert!(holds(network("10.0.0.0", 8), "10.255.0.1"));
        assert!(holds(network("10.0.0.0", 8), "::ffff:10.1.1.1"));
        assert!(!holds(network("10.0.0.0", 8), "11.0.0.1"));
        assert!(holds(network("0.0.0.0", 0), "203.0.113.1"));
        assert!(holds(network("192.0.2.1", 32), "192.0.2.1"));
        assert!(!holds(network("192.0.2.1", 32), "192.0.2.2"));
        assert!(holds(network("2001:db8::", 32), "2001:db8:1::1"));
        assert!(!holds(network("2001:db8::", 32), "2001:db9::1"));
        assert!(!holds(network("::", 0), "10.0.0.1"));
    }

    #[test]
    fn split_cookies_of_http2_are_joined_and_the_target_loses_its_host() {
        let mut parts = Request::builder()
            .version(Version::HTTP_2)
            .uri("https://shop/x?y")
            .body(())
            .unwrap()
            .into_parts()
            .0;
        parts.headers.append(COOKIE, HeaderValue::from_static("a=1"));
        parts.headers.append(COOKIE, HeaderValue::from_static("b=2"));
        prepare_request(&mut parts, &stranger(), false, true);
        assert_eq!(all(&parts, "cookie"), ["a=1; b=2"]);
        assert_eq!(all(&parts, "host"), ["shop"]);
        assert_eq!(parts.uri, "/x?y");
        assert_eq!(all(&parts, "via"), ["2.0 suimon"]);
    }

    #[test]
    fn only_a_real_websocket_request_asks_for_one() {
        let asks = |version, connection: &'static str, upgrade: &'static str| {
            let request = Request::builder().version(version);
            let request = request.header(CONNECTION, connection).header(UPGRADE, upgrade);
            asks_for_websocket(&request.body(()).unwrap())
        };
        assert!(asks(Version::HTTP_11, "keep-alive, Upgrade", "WebSocket"));
        assert!(!asks(Version::HTTP_11, "keep-alive", "websocket"));
        assert!(!asks(Version::HTTP_11, "upgrade", "h2c"));
        assert!(!asks(Version::HTTP_2, "upgrade", "websocket"));
    }

    proptest! {
        #[test]
        fn whatever_is_said_of_a_client_it_is_an_address_that_was_said_or_the_peers(
            lines in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..40),
                    "((10|192)\\.[0-9]\\.[0-9]\\.[0-9](:[0-9]{1,5})?|\\[?2001:db8::[0-9]\\]?|[, x]){0,5}".prop_map(String::into_bytes),
                ],
                0..4,
            ),
        ) {
            let mut headers = HeaderMap::new();
            for line in lines.iter().filter_map(|line| HeaderValue::from_bytes(line).ok()) {
                headers.append(X_FORWARDED_FOR, line);
            }
            let client = balancer().client(&headers);
            let said: Vec<IpAddr> =
                items(&headers, &X_FORWARDED_FOR).filter_map(address_of).map(|said| said.to_canonical()).collect();
            let is_one = client == balancer().ip || client == UNREADABLE || said.into_iter().any(|said| said == client);
            prop_assert!(is_one, "{}", client);
            let names_itself = items(&headers, &X_FORWARDED_FOR).any(|item| address_of(item) == Some(balancer().ip));
            let names_nobody = items(&headers, &X_FORWARDED_FOR).next().is_none();
            prop_assert!(client != balancer().ip || names_itself || names_nobody, "a proxy stands for nobody it names");
            prop_assert_eq!(stranger().client(&headers), stranger().ip);
            // A proxy appends the address it has seen to the list it received.
            let mut line = headers.get(X_FORWARDED_FOR).map(|line| line.as_bytes().to_vec()).unwrap_or_default();
            line.extend_from_slice(b", 203.0.113.5");
            headers.insert(X_FORWARDED_FOR, HeaderValue::from_bytes(&line).unwrap());
            prop_assert_eq!(balancer().client(&headers).to_string(), "203.0.113.5");
            let mut parts = Request::builder().uri("/").body(()).unwrap().into_parts().0;
            parts.headers = headers;
            prepare_request(&mut parts, &balancer(), false, false);
            let nodes = items(&parts.headers, &X_FORWARDED_FOR).count();
            prop_assert_eq!(items(&parts.headers, &FORWARDED).count(), nodes);
        }

        #[test]
        fn no_stranger_says_what_only_a_proxy_may(
            claims in proptest::collection::vec((0..CLAIMS.len(), any::<u32>(), "x-forwarded(-[a-z]{1,8})?"), 0..8),
        ) {
            let mut parts = Request::builder().uri("/").header(HOST, "shop").body(()).unwrap().into_parts().0;
            for (index, low_lines, other) in &claims {
                for name in [CLAIMS[*index], other] {
                    let spelled: String = name.chars().enumerate().map(|(at, letter)| if letter == '-' && low_lines >> (at % 32) & 1 == 1 { '_' } else { letter }).collect();
                    parts.headers.append(HeaderName::try_from(spelled).unwrap(), HeaderValue::from_static("evil"));
                }
            }
            prepare_request(&mut parts, &stranger(), false, false);
            prop_assert!(parts.headers.values().all(|value| value != "evil"), "{:?}", parts.headers);
        }
    }
}

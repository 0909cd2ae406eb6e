//! Where requests by plain HTTP are sent, and what answers carry beside what they say.
//!
//! A redirect names the host that the client asked for itself, or the one of the settings: nothing
//! else that a request says decides where its client goes.

use http::header::{CACHE_CONTROL, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION};
use http::uri::{Authority, PathAndQuery};
use http::{Method, Response, StatusCode, request};
use std::sync::Arc;
use suimon_message::peer::Peer;
use suimon_message::validate::RequestFault;
use suimon_params::{HttpsParams, Params};

const STRICT_TRANSPORT_SECURITY: HeaderName = HeaderName::from_static("strict-transport-security");

/// Below it an authority looks, by plain HTTP, for the proof that a host is ours (RFC 8555, section
/// 8.3).
const ACME: &str = "/.well-known/acme-challenge/";

/// Port of a URL that names none.
const HTTP: u16 = 80;
const HTTPS: u16 = 443;

/// The ports that our listeners really have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListenerPorts {
    pub(crate) plain: Option<u16>,
    pub(crate) tls: Option<u16>,
}

/// Headers that an answer carries unless it has one of that name.
#[derive(Clone, Debug)]
pub(crate) struct AddedHeaders(Arc<[(HeaderName, HeaderValue)]>);

/// See the module.
#[derive(Debug)]
pub(crate) struct Https {
    params: HttpsParams,
    ports: ListenerPorts,
    /// What is added to answers by plain HTTP; `None`: nothing.
    plain: Option<AddedHeaders>,
    /// The same by HTTPS.
    secure: Option<AddedHeaders>,
}

impl Https {
    /// Returns what the settings say, for listeners at these ports.
    pub(crate) fn new(params: &Params, ports: ListenerPorts) -> Self {
        let mut headers: Vec<_> =
            params.response_headers.iter().map(|it| (it.name.clone(), it.value.clone())).collect();
        let added = |headers: &[_]| (!headers.is_empty()).then(|| AddedHeaders(headers.into()));
        let plain = added(&headers);
        // Browsers must not be told over plain HTTP, where anybody could say it (RFC 6797, 7.2).
        headers.extend(params.https.hsts.map(|hsts| (STRICT_TRANSPORT_SECURITY, hsts.value())));
        Https { params: params.https.clone(), ports, plain, secure: added(&headers) }
    }

    /// Returns what other settings say.
    pub(crate) fn adopting(&self, params: &Params) -> Self {
        Https::new(params, self.ports)
    }

    /// Returns what is added to the answer of a request with these headers, if anything is.
    pub(crate) fn added(&self, peer: &Peer, headers: &HeaderMap) -> Option<AddedHeaders> {
        match (&self.plain, &self.secure) {
            (None, None) => None,
            (plain, secure) => (if peer.is_secure(headers) { secure } else { plain }).clone(),
        }
    }

    /// Returns where a validated request is sent because it came by plain HTTP, or why it is sent
    /// nowhere; `None`: it is served.
    pub(crate) fn redirect(
        &self,
        peer: &Peer,
        parts: &request::Parts,
    ) -> Option<Result<HeaderValue, RequestFault>> {
        if !self.params.redirect || peer.security(&parts.headers) != Some(false) || is_acme(parts.uri.path())
        {
            return None;
        }
        Some(self.location(peer, parts))
    }

    fn location(&self, peer: &Peer, parts: &request::Parts) -> Result<HeaderValue, RequestFault> {
        let asked = parts.uri.authority().map(Authority::as_str);
        let asked = asked.or_else(|| parts.headers.get(HOST)?.to_str().ok());
        let (asked_host, asked_port) = asked.map_or(("", None), split_port);
        let host = match &self.params.redirect_host {
            Some(host) if host.contains(':') => format!("[{host}]"),
            Some(host) => host.clone(),
            None if asked_host.is_empty() => return Err(RequestFault::NoHost),
            None if !is_plain_host(asked_host) => return Err(RequestFault::BadHost),
            None => asked_host.to_owned(),
        };
        let port = match self.port(peer, asked_port) {
            HTTPS => String::new(),
            port => format!(":{port}"),
        };
        // `*` is asked of a host as a whole.
        let target = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let target = if target == "*" { "" } else { target };
        HeaderValue::try_from(format!("https://{host}{port}{target}")).map_err(|_| RequestFault::BadTarget)
    }

    /// Returns the port at which a client that asked for `asked` finds HTTPS.
    fn port(&self, peer: &Peer, asked: Option<u16>) -> u16 {
        if let Some(port) = self.params.redirect_port {
            return port;
        }
        // Whoever comes to the plain listener's own port finds the other one likewise. With ports
        // mapped on the way, or a proxy, nothing is known but what is usual.
        let is_direct = !peer.is_trusted() && self.ports.plain == Some(asked.unwrap_or(HTTP));
        self.ports.tls.filter(|_| is_direct).unwrap_or(HTTPS)
    }
}

impl AddedHeaders {
    /// Adds what an answer of this status does not say itself.
    pub(crate) fn add_to(&self, status: StatusCode, headers: &mut HeaderMap) {
        // It has said all it has to when the protocol changes.
        if status.is_informational() {
            return;
        }
        for (name, value) in self.0.iter() {
            if !headers.contains_key(name) {
                headers.insert(name, value.clone());
            }
        }
    }
}

/// Returns the answer that sends a client elsewhere for good. Old clients know 301; with other
/// methods some of them would follow it with a GET. It is not stored: a cache that does not tell
/// HTTP from HTTPS would answer both with it, and settings may change.
pub(crate) fn redirect_to(location: HeaderValue, method: &Method) -> Response<String> {
    let mut response = Response::new(String::new());
    let is_read = method == Method::GET || method == Method::HEAD;
    *response.status_mut() =
        if is_read { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT };
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns whether a path is that of one proof: a token of base64url, and nothing below it.
fn is_acme(path: &str) -> bool {
    path.strip_prefix(ACME).is_some_and(|token| {
        !token.is_empty()
            && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    })
}

/// Returns host and port of a validated `Host`; a port that none can be counts as not named.
fn split_port(host: &str) -> (&str, Option<u16>) {
    let name_ends = host.rfind(']').map_or(0, |at| at + 1);
    match host[name_ends..].find(':') {
        Some(at) => (&host[..name_ends + at], host[name_ends + at + 1..].parse().ok()),
        None => (host, None),
    }
}

/// Returns whether a validated host is a name or an address as it stands: what is escaped in it a
/// browser may read as something else.
fn is_plain_host(host: &str) -> bool {
    host.starts_with('[') || host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;
    use suimon_params::{Hsts, Network, ResponseHeader};

    fn stranger() -> Peer {
        Peer::new("192.0.2.7".parse().unwrap(), false, &Arc::from([]))
    }

    fn proxy() -> Peer {
        let trusted = Arc::from([Network { address: "10.0.0.0".parse().unwrap(), prefix: 8 }]);
        Peer::new("10.1.2.3".parse().unwrap(), false, &trusted)
    }

    fn https(change: impl FnOnce(&mut HttpsParams)) -> Https {
        let mut params = Params::default();
        params.https.redirect = true;
        change(&mut params.https);
        Https::new(&params, ListenerPorts { plain: Some(8000), tls: Some(8443) })
    }

    fn asked(target: &str, headers: &[(&'static str, &str)]) -> request::Parts {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn location(https: &Https, peer: &Peer, target: &str, headers: &[(&'static str, &str)]) -> String {
        match https.redirect(peer, &asked(target, headers)) {
            None => "served".to_owned(),
            Some(Ok(location)) => location.to_str().unwrap().to_owned(),
            Some(Err(fault)) => format!("{fault:?}"),
        }
    }

    #[test]
    fn whoever_comes_by_plain_http_is_sent_to_the_same_page_by_https() {
        let https = https(|_| ());
        let to = |target, host| location(&https, &stranger(), target, &[("host", host)]);
        assert_eq!(to("/a/b?c=d%20e&f", "shop.example"), "https://shop.example/a/b?c=d%20e&f");
        assert_eq!(to("//evil.example/x", "shop.example"), "https://shop.example//evil.example/x");
        assert_eq!(to("/\\evil.example", "shop.example"), "https://shop.example/\\evil.example");
        assert_eq!(to("*", "shop.example"), "https://shop.example");
        assert_eq!(to("/", "[2001:db8::1]"), "https://[2001:db8::1]/");
        assert_eq!(location(&https, &stranger(), "http://shop.example/x", &[]), "https://shop.example/x");
    }

    #[test]
    fn the_port_is_the_one_at_which_that_client_finds_https() {
        let found = https(|_| ());
        let to = |https: &Https, peer: &Peer, host| {
            location(https, peer, "/", &[("host", host), ("x-forwarded-proto", "http")])
        };
        for (host, wanted) in [
            // It came to our own port, and finds our other one.
            ("a:8000", "https://a:8443/"),
            ("[::1]:8000", "https://[::1]:8443/"),
            // Ports are mapped on the way.
            ("a", "https://a/"),
            ("a:8080", "https://a/"),
            ("a:99999", "https://a/"),
            ("a:", "https://a/"),
        ] {
            assert_eq!(to(&found, &stranger(), host), wanted, "{host}");
        }
        assert_eq!(to(&found, &proxy(), "a:8000"), "https://a/", "the proxy's own port says nothing of ours");
        let said = https(|https| https.redirect_port = Some(444));
        assert_eq!(to(&said, &stranger(), "a:8000"), "https://a:444/");
        assert_eq!(to(&said, &proxy(), "a"), "https://a:444/");
        let usual = Https { ports: ListenerPorts { plain: Some(80), tls: Some(8443) }, ..https(|_| ()) };
        assert_eq!(to(&usual, &stranger(), "a"), "https://a:8443/");
        let usual = Https { ports: ListenerPorts { plain: Some(80), tls: Some(443) }, ..https(|_| ()) };
        assert_eq!(to(&usual, &stranger(), "a"), "https://a/");
        assert_eq!(to(&usual, &stranger(), "a:80"), "https://a/");
    }

    #[test]
    fn nothing_but_the_host_or_the_settings_decide_where_a_client_goes() {
        let found = https(|_| ());
        let others = [
            ("host", "shop.example"),
            ("x-forwarded-host", "evil.example"),
            ("forwarded", "host=evil.example"),
            ("x-forwarded-proto", "http"),
        ];
        for peer in [stranger(), proxy()] {
            assert_eq!(location(&found, &peer, "/", &others), "https://shop.example/");
        }
        assert_eq!(location(&found, &stranger(), "/", &[]), "NoHost");
        assert_eq!(location(&found, &stranger(), "/", &[("host", "a%2fevil.example")]), "BadHost");
        let said = https(|https| https.redirect_host = Some("www.example".to_owned()));
        assert_eq!(
            location(&said, &stranger(), "/x", &[("host", "evil.example:81")]),
            "https://www.example/x"
        );
        assert_eq!(location(&said, &stranger(), "/x", &[]), "https://www.example/x");
        let said = https(|https| https.redirect_host = Some("2001:db8::1".to_owned()));
        assert_eq!(location(&said, &stranger(), "/x", &[]), "https://[2001:db8::1]/x");
    }

    #[test]
    fn a_proxys_request_is_sent_away_only_if_it_says_that_it_came_by_plain_http() {
        let https = https(|_| ());
        let to = |peer: &Peer, said| {
            let headers = [("host", "a"), ("x-forwarded-proto", said)];
            location(&https, peer, "/", &headers[..if said.is_empty() { 1 } else { 2 }])
        };
        for (said, wanted) in [
            ("", "served"),
            ("https", "served"),
            ("HTTPS", "served"),
            ("wss", "served"),
            ("gopher", "served"),
            ("https, http", "served"),
            ("http", "https://a/"),
            ("Http", "https://a/"),
            ("ws", "https://a/"),
            ("http, https", "https://a/"),
        ] {
            assert_eq!(to(&proxy(), said), wanted, "{said}");
        }
        assert_eq!(to(&stranger(), "https"), "https://a/", "a stranger is not believed");
        let forwarded = [("host", "a"), ("forwarded", "for=192.0.2.1;proto=http")];
        assert_eq!(location(&https, &proxy(), "/", &forwarded), "https://a/");
        let over_tls = Peer::new("192.0.2.7".parse().unwrap(), true, &Arc::from([]));
        assert_eq!(to(&over_tls, "http"), "served");
    }

    #[test]
    fn proofs_for_an_authority_are_served_and_nothing_beside_them() {
        let https = https(|_| ());
        let to = |path| location(&https, &stranger(), path, &[("host", "a")]);
        assert_eq!(to("/.well-known/acme-challenge/abc-DEF_123"), "served");
        assert_eq!(to("/.well-known/acme-challenge/abc?x=y"), "served");
        for path in [
            "/.well-known/acme-challenge/",
            "/.well-known/acme-challenge",
            "/.well-known/acme-challenge/../../account",
            "/.well-known/acme-challenge/..%2faccount",
            "/.well-known/other",
        ] {
            assert_eq!(to(path), format!("https://a{path}"));
        }
    }

    #[test]
    fn a_redirect_keeps_the_method_and_is_not_stored() {
        let to = |method| redirect_to(HeaderValue::from_static("https://a/"), &method);
        assert_eq!([to(Method::GET), to(Method::HEAD)].map(|it| it.status()), [301, 301].map(status));
        let others = [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS];
        assert!(
            others.map(to).iter().all(|it| it.status() == 308 && it.headers()[CACHE_CONTROL] == "no-store")
        );
    }

    fn status(code: u16) -> StatusCode {
        StatusCode::from_u16(code).unwrap()
    }

    #[test]
    fn headers_are_added_to_what_does_not_have_them_and_hsts_over_https_only() {
        let mut params = Params::default();
        assert!(
            Https::new(&params, ListenerPorts::default()).added(&stranger(), &HeaderMap::new()).is_none()
        );
        let max_age = std::time::Duration::from_secs(60);
        params.https.hsts = Some(Hsts { max_age, subdomains: false, preload: false });
        let hsts_alone = Https::new(&params, ListenerPorts::default());
        assert!(hsts_alone.added(&stranger(), &HeaderMap::new()).is_none());
        params.response_headers = vec![ResponseHeader::parse("X-Frame-Options: DENY").unwrap()];
        let https = Https::new(&params, ListenerPorts::default());
        let said = |proto: &str| asked("/", &[("x-forwarded-proto", proto)]).headers;
        let answered = |proto, own: &str, status| {
            let mut response = Response::builder().status(status);
            if !own.is_empty() {
                response = response.header(STRICT_TRANSPORT_SECURITY, own).header("x-frame-options", own);
            }
            let mut response = response.body(()).unwrap();
            let status = response.status();
            https.added(&proxy(), &said(proto)).unwrap().add_to(status, response.headers_mut());
            let of =
                |name| response.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
            (of("strict-transport-security"), of("x-frame-options"))
        };
        let both = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(answered("https", "", 200), both("max-age=60", "DENY"));
        assert_eq!(answered("https", "own", 200), both("own", "own"));
        assert_eq!(answered("http", "", 200), both("", "DENY"));
        assert_eq!(answered("https", "", 101), both("", ""));
    }
}

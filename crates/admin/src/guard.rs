//! Who may read, and who may change something: whom the access lets, only under a host name that is
//! ours, and no page from elsewhere.

use crate::access::{Access, Denied, Peer, WRONG_TOKEN_DELAY};
use crate::config::CONFIG_TYPE;
use crate::names;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// What the guard goes by.
#[derive(Clone)]
pub(crate) struct Guard {
    /// Names the listener answers to, beside localhost and addresses.
    pub(crate) hosts: Arc<[String]>,
    pub(crate) access: Arc<Access>,
}

/// Passes on allowed requests, and marks every answer as not to be stored or guessed at.
pub(crate) async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let mut response = match guard.check(&request) {
        Ok(()) => next.run(request).await,
        Err(Refused::Denied(denied)) => {
            guard.access.note(denied, peer_of(&request));
            if denied == Denied::WrongToken {
                tokio::time::sleep(WRONG_TOKEN_DELAY).await;
            }
            guard.answer(denied, request.uri().path())
        }
        Err(Refused::Method(allow)) => {
            let why = format!("only {allow} are allowed here\n");
            (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, allow)], why).into_response()
        }
        Err(Refused::Host) => {
            let why = "this listener answers to IP addresses, localhost and the names in admin.hosts; name this host there to allow it\n";
            (StatusCode::MISDIRECTED_REQUEST, why).into_response()
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Why a request is not passed on.
enum Refused {
    /// With the methods that are allowed there.
    Method(&'static str),
    Host,
    Denied(Denied),
}

impl Guard {
    fn check(&self, request: &Request) -> Result<(), Refused> {
        let (path, headers) = (request.uri().path(), request.headers());
        let takes_commands = names::COMMAND_PATHS.contains(&path);
        let changes = takes_commands && request.method() == Method::POST;
        if !changes && !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(Refused::Method(if takes_commands { "GET, HEAD, POST" } else { "GET, HEAD" }));
        }
        let host = host_of(headers, request.uri());
        if !is_known(host, &self.hosts) {
            return Err(Refused::Host);
        }
        self.access.check(peer_of(request), path, headers).map_err(Refused::Denied)?;
        let is_ours = || headers.get(header::CONTENT_TYPE).is_some_and(|it| is_type(it, type_of(path)));
        if changes && !(is_ours() && may_command(headers, host, true)) {
            return Err(Refused::Denied(Denied::Page));
        }
        Ok(())
    }

    fn answer(&self, denied: Denied, path: &str) -> Response {
        let (status, why) = match denied {
            Denied::Nothing if self.access.asks_for_token() => (
                StatusCode::UNAUTHORIZED,
                "a token is needed: Authorization: Bearer TOKEN, or suimon with --token-file\n".to_owned(),
            ),
            Denied::Nothing => {
                (StatusCode::FORBIDDEN, "a client certificate is needed that admin.tls.client_ca trusts\n".to_owned())
            }
            Denied::WrongToken => (StatusCode::UNAUTHORIZED, "this is not the token\n".to_owned()),
            Denied::Elsewhere => (
                StatusCode::FORBIDDEN,
                "this is answered on the gateway's machine only, as nothing proves who asks: see admin.token_file and admin.tls.client_ca\n"
                    .to_owned(),
            ),
            Denied::Page => {
                let kind = type_of(path);
                let why = format!(
                    "commands must be sent as {kind}, and by no web page but those of this listener; use `suimon waiting-room`, `suimon pool` or `suimon override`\n"
                );
                (StatusCode::FORBIDDEN, why)
            }
        };
        let mut response = (status, why).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let headers = response.headers_mut();
            for way in ["Bearer realm=\"suimon\"", "Basic realm=\"suimon\", charset=\"UTF-8\""] {
                headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static(way));
            }
        }
        response
    }
}

/// Returns who sends a request. Where that is unknown it is somebody far away.
fn peer_of(request: &Request) -> Peer {
    let far = Peer { address: Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), is_certified: false };
    request.extensions().get::<ConnectInfo<Peer>>().map_or(far, |info| info.0)
}

/// Returns the type that commands at a path are sent as.
fn type_of(path: &str) -> &'static str {
    if path == names::CONFIG_PATH { CONFIG_TYPE } else { "application/json" }
}

/// Returns whether this is the type, whatever its parameters.
fn is_type(value: &HeaderValue, kind: &str) -> bool {
    let name = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(kind.as_bytes())
}

/// Returns whether a request was sent by a tool or by a page of this listener. Pages name their origin
/// with each command (`names_origin`), but need not where they only read; and browsers say of pages
/// from elsewhere that they are.
fn may_command(headers: &HeaderMap, host: Option<&str>, names_origin: bool) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (None, _) => None,
        (Some(origin), None) => Some(origin.to_str().unwrap_or_default()),
        (Some(_), Some(_)) => return false,
    };
    let is_own = |origin: &str| {
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        authority.zip(host).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host))
    };
    match (headers.get("sec-fetch-site").map(HeaderValue::as_bytes), origin) {
        (None, None) => true,
        (Some(b"same-origin"), None) => !names_origin,
        (Some(b"same-origin") | None, Some(origin)) => is_own(origin),
        // What is typed into the address bar is no command.
        (Some(_), _) => false,
    }
}

/// Returns whether commands of the client that sends this request would be taken.
pub(crate) fn would_command(headers: &HeaderMap, uri: &Uri) -> bool {
    may_command(headers, host_of(headers, uri), false)
}

/// Returns the host a request is for, port and all, if it names exactly one. A target that names
/// one comes before `Host` (RFC 9112, 3.2.2), of which there is one at most.
fn host_of<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let mut named = headers.get_all(header::HOST).iter();
    match (uri.authority(), named.next(), named.next()) {
        (_, _, Some(_)) => None,
        (Some(authority), ..) => Some(authority.as_str()),
        (None, host, None) => host?.to_str().ok(),
    }
}

/// Returns whether a host is an address, localhost, or one of `hosts`. A stranger could point other
/// names here.
fn is_known(host: Option<&str>, hosts: &[String]) -> bool {
    let Some(authority) = host.and_then(|host| host.parse::<Authority>().ok()) else { return false };
    // Neither a user before the host, nor anything but a port behind it.
    let Some(port) = authority.as_str().strip_prefix(authority.host()) else { return false };
    if !(port.is_empty() || port.starts_with(':')) {
        return false;
    }
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_named_hosts_are_known() {
        let hosts = ["Gate.internal".to_string()];
        for host in [
            "127.0.0.1:8001",
            "127.0.0.1",
            "[::1]:8001",
            "[::1]",
            "localhost:1",
            "LOCALHOST",
            "10.0.0.1",
            "gate.internal:8001",
        ] {
            assert!(is_known(Some(host), &hosts), "{host}");
        }
    }

    #[test]
    fn tools_and_own_pages_may_command_and_pages_from_elsewhere_never() {
        let may = |origin: Option<&'static str>, site: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            origin.map(|it| headers.insert(header::ORIGIN, HeaderValue::from_static(it)));
            site.map(|it| headers.insert("sec-fetch-site", HeaderValue::from_static(it)));
            may_command(&headers, Some("127.0.0.1:8001"), true)
        };
        assert!(may(None, None), "a tool");
        assert!(may(Some("http://127.0.0.1:8001"), Some("same-origin")), "an own page");
        assert!(may(Some("http://127.0.0.1:8001"), None), "an own page of an old browser");
        for (origin, site) in [
            (None, Some("same-origin")),
            (None, Some("none")),
            (None, Some("cross-site")),
            (Some("http://127.0.0.1:8001"), Some("same-site")),
            (Some("http://127.0.0.1:8001"), Some("cross-site")),
            (Some("http://127.0.0.1:3000"), Some("same-site")),
            (Some("http://127.0.0.1:3000"), Some("same-origin")),
            (Some("http://127.0.0.1"), None),
            (Some("http://evil.example"), None),
            (Some("null"), None),
            (Some(""), None),
        ] {
            assert!(!may(origin, site), "{origin:?} {site:?}");
        }
    }

    #[test]
    fn a_target_that_names_a_host_is_for_that_one() {
        let host = |uri: &'static str, hosts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            hosts.iter().for_each(|host| _ = headers.append(header::HOST, HeaderValue::from_static(host)));
            host_of(&headers, &Uri::from_static(uri)).map(str::to_string)
        };
        let evil = Some("evil.example".to_string());
        assert_eq!(host("http://evil.example/api/state", &["localhost"]), evil);
        assert_eq!(host("http://evil.example/api/state", &[]), evil);
        assert_eq!(host("/api/state", &["localhost:1"]), Some("localhost:1".to_string()));
        assert_eq!(host("/api/state", &[]), None);
        assert_eq!(host("http://localhost/", &["localhost", "localhost"]), None);
    }

    #[test]
    fn names_a_stranger_could_point_here_are_not_known() {
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:8001",
            "localhost.evil.example",
            "",
            "[",
            ":8001",
            "[evil]",
            "a@127.0.0.1",
            "localhost:x@evil",
            "[::1]evil",
        ] {
            assert!(!is_known(Some(host), &[]), "{host}");
        }
        assert!(!is_known(None, &[]));
    }
}

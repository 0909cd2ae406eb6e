//! Who may read, and who may change something: only under a host name that is ours, and no page
//! from elsewhere.

use crate::config::CONFIG_TYPE;
use crate::names;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;
use std::sync::Arc;

/// Passes on allowed requests, and marks every answer as not to be stored or guessed at.
pub(crate) async fn guard(State(hosts): State<Arc<[String]>>, request: Request, next: Next) -> Response {
    let takes_commands = names::COMMAND_PATHS.contains(&request.uri().path());
    let changes = takes_commands && request.method() == Method::POST;
    let mut response = if !changes && !matches!(*request.method(), Method::GET | Method::HEAD) {
        let allow = [(header::ALLOW, "GET, HEAD")];
        (StatusCode::METHOD_NOT_ALLOWED, allow, "only GET and HEAD are allowed here\n").into_response()
    } else if changes && !is_from_a_tool(request.uri().path(), request.headers()) {
        let kind = type_of(request.uri().path());
        let why = format!(
            "must be sent as {kind} and not by a web page; use `suimon waiting-room`, `suimon pool` or `suimon override`\n"
        );
        (StatusCode::FORBIDDEN, why).into_response()
    } else if !is_known(host_of(request.headers(), request.uri()), &hosts) {
        let why = "this listener answers to IP addresses, localhost and the names in admin.hosts; name this host there to allow it\n";
        (StatusCode::MISDIRECTED_REQUEST, why).into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Returns the type that commands at a path are sent as.
fn type_of(path: &str) -> &'static str {
    if path == names::CONFIG_PATH { CONFIG_TYPE } else { "application/json" }
}

/// Returns whether a request was sent by no browser's page: pages name their origin, and may not
/// send this type elsewhere without permission.
fn is_from_a_tool(path: &str, headers: &HeaderMap) -> bool {
    let kind = type_of(path);
    let is_ours = headers.get(header::CONTENT_TYPE).is_some_and(|it| it.as_bytes() == kind.as_bytes());
    is_ours && !headers.contains_key(header::ORIGIN) && !headers.contains_key("sec-fetch-site")
}

/// Returns whether a request is of a sort of client whose commands would be taken.
pub(crate) fn asks_as_a_commander(headers: &HeaderMap) -> bool {
    !headers.contains_key(header::ORIGIN) && !headers.contains_key("sec-fetch-site")
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

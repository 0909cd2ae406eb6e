//! What a request must fulfil before anything else reads it.
//!
//! What another HTTP parser behind the gateway could read differently is refused, not repaired. The
//! HTTP library itself refuses bad line folding, control characters and broken lengths; what it
//! silently repairs is caught in `framing`.

use http::header::{COOKIE, EXPECT, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Method, Version};
use suimon_params::Limits;

/// What is wrong with a request. The client's fault; the same request will fail again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestFault {
    /// The head is not HTTP/1, or could be read in more than one way. The HTTP library or `framing`
    /// found it.
    BadHead,
    /// A load balancer's connection lacks the PROXY protocol header that it is configured to send.
    NoProxyHeader,
    /// The head is longer, or has more headers, than is accepted.
    HeadTooLarge,
    /// Neither a `Host` header nor, in HTTP/2, an authority. HTTP/1.0 needs none.
    NoHost,
    /// More than one `Host`.
    ManyHosts,
    /// `Host` is not a host with an optional port.
    BadHost,
    /// The target names another host than `Host` does.
    HostMismatch,
    /// The target is not a path, or names a scheme other than http and https.
    BadTarget,
    /// The path is one site's as it is written, and another's as some servers read it.
    AmbiguousPath,
    /// A transfer coding other than `chunked`.
    TransferCoding,
    /// More than one `Transfer-Encoding`.
    ManyTransferCodings,
    /// `Expect` asks for something other than `100-continue`.
    Expectation,
    /// A tunnel for something other than WebSocket, or to an application that does not speak it.
    Protocol,
    /// A method that a gateway does not pass on.
    Method,
    /// The target is longer than is accepted.
    UrlTooLong,
    /// The body is longer than is accepted.
    BodyTooLarge,
    /// The body is not framed as it should be.
    BadBody,
    /// The body broke off: the client has most likely gone.
    BrokenBody,
    /// The body came too slowly.
    BodyTimeout,
    /// The application has no program for the path.
    NotFound,
}

/// Checks a request's head. `limits` bound the head and a declared length; `names_protocol`:
/// whether an HTTP/2 request names a protocol for a tunnel.
pub fn validate(parts: &Parts, limits: &Limits, names_protocol: bool) -> Result<(), RequestFault> {
    if has_too_many_headers(parts, limits.headers) {
        return Err(RequestFault::HeadTooLarge);
    }
    if names_protocol && parts.method == Method::CONNECT {
        return Err(RequestFault::Protocol);
    }
    if parts.method == Method::CONNECT || parts.method == Method::TRACE {
        return Err(RequestFault::Method);
    }
    target(parts, limits.url_bytes)?;
    host(parts)?;
    framing(parts)?;
    let is_understood = |expect: &http::HeaderValue| expect.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if !parts.headers.get_all(EXPECT).iter().all(is_understood) {
        return Err(RequestFault::Expectation);
    }
    if let Some(max) = limits.body_bytes
        && declared_length(parts).is_some_and(|length| length > max)
    {
        return Err(RequestFault::BodyTooLarge);
    }
    Ok(())
}

/// Returns whether there are more than `max` header lines. In HTTP/2 browsers send each cookie on a
/// line of its own; here they count as one.
fn has_too_many_headers(parts: &Parts, max: usize) -> bool {
    parts.headers.len() > max && {
        let cookies = parts.headers.get_all(COOKIE).iter().count();
        parts.headers.len() - cookies.saturating_sub(1) > max
    }
}

/// Returns the length the request's body was declared to have.
pub fn declared_length(parts: &Parts) -> Option<u64> {
    parts.headers.get(http::header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn target(parts: &Parts, url_max: usize) -> Result<(), RequestFault> {
    let uri = &parts.uri;
    let length = uri.path_and_query().map_or(0, |target| target.as_str().len());
    if length > url_max {
        return Err(RequestFault::UrlTooLong);
    }
    if uri.scheme_str().is_some_and(|scheme| scheme != "http" && scheme != "https") {
        return Err(RequestFault::BadTarget);
    }
    let path = uri.path();
    let is_asterisk = path == "*" && parts.method == Method::OPTIONS;
    if path.starts_with('/') || is_asterisk { Ok(()) } else { Err(RequestFault::BadTarget) }
}

fn host(parts: &Parts) -> Result<(), RequestFault> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(RequestFault::ManyHosts);
    }
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    // Before HTTP/2 the target's authority does not replace `Host`: the header is required.
    let Some(named) = host.map(http::HeaderValue::as_bytes).or(authority.filter(|_| is_h2(parts))) else {
        // HTTP/1.0 does not require a host, and load balancers' health checks send none.
        let needs_none = parts.version == Version::HTTP_10 && authority.is_none();
        return if needs_none { Ok(()) } else { Err(RequestFault::NoHost) };
    };
    if !is_host(named) {
        return Err(RequestFault::BadHost);
    }
    match authority {
        Some(authority) if !authority.eq_ignore_ascii_case(named) => Err(RequestFault::HostMismatch),
        _ => Ok(()),
    }
}

fn is_h2(parts: &Parts) -> bool {
    parts.version == Version::HTTP_2
}

fn framing(parts: &Parts) -> Result<(), RequestFault> {
    let mut codings = parts.headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        (Some(_), None) => Err(RequestFault::TransferCoding),
        (Some(_), Some(_)) => Err(RequestFault::ManyTransferCodings),
    }
}

/// Returns whether `text` is a host name or address with an optional port, and nothing else: no
/// user, no path.
pub fn is_host(text: &[u8]) -> bool {
    let (name, port) = if text.first() == Some(&b'[') {
        let Some(end) = text.iter().position(|byte| *byte == b']') else {
            return false;
        };
        let inside = &text[1..end];
        if inside.is_empty() || !inside.iter().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.')) {
            return false;
        }
        (inside, &text[end + 1..])
    } else {
        let end = text.iter().position(|byte| *byte == b':').unwrap_or(text.len());
        let name = &text[..end];
        if !name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'~' | b'%')) {
            return false;
        }
        (name, &text[end..])
    };
    let is_port = match port {
        [] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    !name.is_empty() && is_port
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn check(
        version: Version,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<(), RequestFault> {
        let mut request = Request::builder().version(version).method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let limits = Limits { url_bytes: 100, body_bytes: Some(10), headers: 10, ..Limits::default() };
        validate(&request.body(()).unwrap().into_parts().0, &limits, false)
    }

    fn h1(target: &str, headers: &[(&str, &str)]) -> Result<(), RequestFault> {
        check(Version::HTTP_11, "GET", target, headers)
    }

    #[test]
    fn there_is_exactly_one_host_and_it_is_one() {
        assert_eq!(h1("/", &[("host", "a")]), Ok(()));
        assert_eq!(h1("/", &[]), Err(RequestFault::NoHost));
        assert_eq!(h1("http://a/", &[]), Err(RequestFault::NoHost));
        assert_eq!(h1("/", &[("host", "a"), ("host", "a")]), Err(RequestFault::ManyHosts));
        for host in ["", "a b", "user@a", "a/b", "a:b", "a:123456", ":80", "a,b", "[::1", "[::1]x", "[]"] {
            assert_eq!(h1("/", &[("host", host)]), Err(RequestFault::BadHost), "{host:?}");
        }
        for host in ["a", "a.b-c_d:8080", "127.0.0.1:1", "[::1]", "[fe80::1]:443", "a:"] {
            assert_eq!(h1("/", &[("host", host)]), Ok(()), "{host:?}");
        }
    }

    #[test]
    fn the_first_version_of_http_needs_no_host() {
        let h1_0 = |target, headers: &[(&str, &str)]| check(Version::HTTP_10, "GET", target, headers);
        assert_eq!(h1_0("/", &[]), Ok(()));
        assert_eq!(h1_0("/", &[("host", "a b")]), Err(RequestFault::BadHost));
        assert_eq!(h1_0("http://a/", &[]), Err(RequestFault::NoHost));
    }

    #[test]
    fn the_target_names_the_same_host() {
        assert_eq!(h1("http://A.b:1/x", &[("host", "a.B:1")]), Ok(()));
        assert_eq!(h1("http://other/x", &[("host", "a")]), Err(RequestFault::HostMismatch));
        let h2 = |target, headers: &[(&str, &str)]| check(Version::HTTP_2, "GET", target, headers);
        assert_eq!(h2("https://a/x", &[]), Ok(()));
        assert_eq!(h2("https://a/x", &[("host", "a")]), Ok(()));
        assert_eq!(h2("https://a/x", &[("host", "b")]), Err(RequestFault::HostMismatch));
        assert_eq!(h2("https://user@a/x", &[]), Err(RequestFault::BadHost));
    }

    #[test]
    fn targets_are_paths_of_a_bounded_length() {
        assert_eq!(h1("ftp://a/x", &[("host", "a")]), Err(RequestFault::BadTarget));
        assert_eq!(check(Version::HTTP_11, "OPTIONS", "*", &[("host", "a")]), Ok(()));
        assert_eq!(h1("*", &[("host", "a")]), Err(RequestFault::BadTarget));
        assert_eq!(h1(&format!("/{}", "x".repeat(100)), &[("host", "a")]), Err(RequestFault::UrlTooLong));
    }

    #[test]
    fn lines_of_headers_are_bounded_and_all_cookies_are_one() {
        let lines = |name: &'static str, count: usize| {
            let headers: Vec<_> =
                std::iter::once(("host", "a")).chain((0..count).map(|_| (name, "x=y"))).collect();
            check(Version::HTTP_2, "GET", "https://a/", &headers)
        };
        assert_eq!(lines("x-any", 9), Ok(()));
        assert_eq!(lines("x-any", 10), Err(RequestFault::HeadTooLarge));
        assert_eq!(lines("cookie", 60), Ok(()));
    }

    #[test]
    fn only_chunked_only_once() {
        let host = ("host", "a");
        assert_eq!(h1("/", &[host, ("transfer-encoding", "Chunked")]), Ok(()));
        assert_eq!(
            h1("/", &[host, ("transfer-encoding", "gzip, chunked")]),
            Err(RequestFault::TransferCoding)
        );
        assert_eq!(
            h1("/", &[host, ("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")]),
            Err(RequestFault::ManyTransferCodings)
        );
    }

    #[test]
    fn methods_expectations_and_lengths_have_their_bounds() {
        let host = ("host", "a");
        assert_eq!(check(Version::HTTP_11, "TRACE", "/", &[host]), Err(RequestFault::Method));
        assert_eq!(check(Version::HTTP_11, "CONNECT", "a:1", &[host]), Err(RequestFault::Method));
        assert_eq!(h1("/", &[host, ("expect", "100-Continue")]), Ok(()));
        assert_eq!(h1("/", &[host, ("expect", "a-pony")]), Err(RequestFault::Expectation));
        assert_eq!(
            h1("/", &[host, ("expect", "100-continue"), ("expect", "200-ok")]),
            Err(RequestFault::Expectation)
        );
        assert_eq!(h1("/", &[host, ("content-length", "10")]), Ok(()));
        assert_eq!(h1("/", &[host, ("content-length", "11")]), Err(RequestFault::BodyTooLarge));
    }
}

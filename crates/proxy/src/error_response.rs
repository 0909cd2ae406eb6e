//! The one place that turns a refusal, a bad request or a failing application into an answer.
//!
//! Browsers get a page, all others `application/problem+json` (RFC 9457). Every such answer gives
//! its reason in `Proxy-Status` (RFC 9209), is never stored, and carries `Retry-After` exactly
//! where coming back may help.
//!
//! A gRPC client gets what it can read: 200 and nothing but trailers, with `grpc-status`,
//! `grpc-message` and, where coming back may help, `grpc-retry-pushback-ms`.

use crate::request_ids::{self, X_REQUEST_ID};
use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName,
    HeaderValue, RETRY_AFTER, SET_COOKIE,
};
use http::request::Parts;
use http::{Method, Response, StatusCode, Version};
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::Duration;
use suimon_gate::Refusal;
use suimon_message::accept::Form;
use suimon_message::headers;
use suimon_message::validate::RequestFault;
use suimon_model::Reason;
use suimon_upstream::{UpstreamError, UpstreamErrorKind};
use suimon_waiting_room::{BrowserPreferences, ErrorDetails, ErrorTopic, Pages};

pub(crate) const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_RETRY_PUSHBACK_MS: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// `Retry-After` when the application is down and nothing better is known.
const RETRY_UPSTREAM: Duration = Duration::from_secs(5);

/// The client, as far as it decides the form of an answer.
#[derive(Clone, Debug)]
pub(crate) struct ErrorFormat {
    /// How to speak to it, where the answer is a page.
    speaks: Option<Box<BrowserPreferences>>,
    /// Whether the page may ask the browser to try again by itself.
    pub(crate) may_reload: bool,
    /// Whether it can have a `Connection` header: HTTP/1.
    has_connection_header: bool,
    /// Whether it speaks gRPC.
    pub(crate) is_grpc: bool,
    /// What the request is called; made when it is first asked for.
    request_id: OnceLock<HeaderValue>,
}

/// An answer of ours, before it takes a form.
struct Answer<'a> {
    status: StatusCode,
    /// What people are told.
    trouble: ErrorTopic,
    /// Short name, which never changes.
    code: &'a str,
    title: &'a str,
    detail: &'a str,
    /// Type of error in RFC 9209's registry.
    proxy_error: &'static str,
    retry_after: Option<Duration>,
    predicted_wait: Option<Duration>,
}

impl ErrorFormat {
    /// Returns who asks, by the request's head. `request_id`: what somebody we trust calls it.
    pub(crate) fn new(parts: &Parts, request_id: Option<HeaderValue>) -> Self {
        let is_page = Form::of(&parts.headers) == Form::Page;
        ErrorFormat {
            speaks: is_page.then(|| Box::new(BrowserPreferences::of(&parts.headers))),
            may_reload: is_page && parts.method == Method::GET && is_visit(&parts.headers),
            has_connection_header: parts.version < Version::HTTP_2,
            is_grpc: headers::is_grpc(&parts.headers),
            request_id: request_id.map(OnceLock::from).unwrap_or_default(),
        }
    }

    /// Returns what the request is called, in logs and towards the application and the client.
    pub(crate) fn request_id(&self) -> &HeaderValue {
        self.request_id.get_or_init(request_ids::fresh)
    }

    /// Returns the answer to a request that is not admitted. `waited` is how long it was held
    /// before.
    pub(crate) fn refused(&self, refusal: &Refusal, waited: Duration, pages: &Pages) -> Response<String> {
        let (title, detail) = match refusal.reason {
            Reason::ShuttingDown => (
                "Back in a moment",
                "This server is being restarted. Nothing you have done is lost; please come back in a moment.",
            ),
            Reason::ApplicationDown => (
                "The site is not answering",
                "It does not answer at the moment. What you asked for did not reach it, and nothing was lost; please try again in a moment.",
            ),
            Reason::WaitedTooLong => (
                "Still too busy",
                "More people are here than can be served well. We held your request for as long as was reasonable, but it was not your turn in time.",
            ),
            Reason::GatewayFull => (
                "Too many people at once",
                "More people are waiting already than can be let in within a reasonable time.",
            ),
            _ => (
                "Too many people at once",
                "More people are here than can be served well. Rather than keep you waiting for nothing, we ask you to come back later.",
            ),
        };
        let mut response = self.answer(
            &Answer {
                status: StatusCode::SERVICE_UNAVAILABLE,
                trouble: match refusal.reason {
                    Reason::ShuttingDown => ErrorTopic::Restart,
                    Reason::ApplicationDown => ErrorTopic::Away,
                    _ => ErrorTopic::Busy,
                },
                code: refusal.reason.code(),
                title,
                detail,
                proxy_error: "http_request_denied",
                retry_after: Some(refusal.retry_after),
                predicted_wait: Some(refusal.predicted_wait),
            },
            pages,
        );
        let timing = server_timing(refusal.reason.code(), waited);
        response.headers_mut().insert(SERVER_TIMING, timing);
        response
    }

    /// Returns the answer to a bad request. The connection is closed where the rest of it cannot be
    /// trusted.
    pub(crate) fn fault(&self, fault: RequestFault, pages: &Pages) -> Response<String> {
        let (status, code, title, detail) = describe(fault);
        let mut response = self.answer(
            &Answer {
                status,
                trouble: trouble(fault),
                code,
                title,
                detail,
                proxy_error: "http_request_error",
                retry_after: None,
                predicted_wait: None,
            },
            pages,
        );
        let headers = response.headers_mut();
        if fault == RequestFault::Method {
            let allowed = HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH");
            headers.insert(ALLOW, allowed);
        }
        if self.has_connection_header && fault != RequestFault::NotFound {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// Returns the answer where the application gave none.
    pub(crate) fn failed(&self, error: &UpstreamError, pages: &Pages) -> Response<String> {
        let kind = error.kind();
        let status = match kind {
            UpstreamErrorKind::NoNode | UpstreamErrorKind::GatewayFull => StatusCode::SERVICE_UNAVAILABLE,
            _ if kind.is_timeout() => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        };
        let (title, detail, proxy_error) = match kind {
            UpstreamErrorKind::NoNode => (
                "The application is not available",
                "No server of the application accepts requests at the moment. Please try again shortly.",
                "destination_unavailable",
            ),
            UpstreamErrorKind::GatewayFull => (
                "Too many people at once",
                "More people are here than can be served at the moment. Your request did not reach the application; please try again shortly.",
                "connection_limit_reached",
            ),
            UpstreamErrorKind::Connect => (
                "The application cannot be reached",
                "The server behind this address does not answer. Your request did not reach it; please try again shortly.",
                "connection_refused",
            ),
            UpstreamErrorKind::TlsHandshake => (
                "The application cannot be reached",
                "No secure connection to the server behind this address could be made. Your request did not reach it.",
                "tls_protocol_error",
            ),
            UpstreamErrorKind::ConnectTimeout => (
                "The application cannot be reached",
                "The server behind this address does not answer in time. Your request did not reach it; please try again shortly.",
                "connection_timeout",
            ),
            UpstreamErrorKind::FirstByteTimeout | UpstreamErrorKind::IdleTimeout => (
                "The application takes too long",
                "The application got your request but did not answer in time. It may still have done what you asked for.",
                "http_response_timeout",
            ),
            UpstreamErrorKind::BadResponse => (
                "Invalid response from the application",
                "The application got your request, but its answer cannot be understood.",
                "http_protocol_error",
            ),
            UpstreamErrorKind::BrokenBeforeHead
            | UpstreamErrorKind::BrokenInBody
            | UpstreamErrorKind::RequestBody
            | UpstreamErrorKind::NoProgram => (
                "The connection to the application was lost",
                "The application got your request, but its connection broke before the answer was complete. It may have done what you asked for.",
                "connection_terminated",
            ),
        };
        let trouble = match kind {
            UpstreamErrorKind::GatewayFull => ErrorTopic::Busy,
            UpstreamErrorKind::NoNode
            | UpstreamErrorKind::Connect
            | UpstreamErrorKind::TlsHandshake
            | UpstreamErrorKind::ConnectTimeout => ErrorTopic::Away,
            _ => ErrorTopic::Unsure,
        };
        self.answer(
            &Answer {
                status,
                trouble,
                code: kind.code(),
                title,
                detail,
                proxy_error,
                retry_after: error.retry_may_help().then_some(RETRY_UPSTREAM),
                predicted_wait: None,
            },
            pages,
        )
    }

    /// Returns the answer to a request that has a place in line, or could have one: `response`, or
    /// the part of it that a gRPC client can read.
    pub(crate) fn in_line(&self, mut response: Response<String>) -> Response<String> {
        response.headers_mut().insert(X_REQUEST_ID, self.request_id().clone());
        if !self.is_grpc {
            return response;
        }
        let (mut head, _) = response.into_parts();
        let seconds = head.headers.get(RETRY_AFTER).and_then(|seconds| seconds.to_str().ok()?.parse().ok());
        let message = "Others are waiting to be let in, and come first.";
        tell_grpc(&mut head.headers, Grpc::Unavailable, message, seconds.map(Duration::from_secs));
        head.status = StatusCode::OK;
        head.extensions.insert(Instead(StatusCode::SERVICE_UNAVAILABLE));
        Response::from_parts(head, String::new())
    }

    fn answer(&self, answer: &Answer<'_>, pages: &Pages) -> Response<String> {
        let mut response =
            if self.is_grpc { self.status_of_grpc(answer) } else { self.document(answer, pages) };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let status = format!("suimon; error={}; details=\"{}\"", answer.proxy_error, answer.code);
        headers.insert(PROXY_STATUS, HeaderValue::try_from(status).expect("codes are words"));
        headers.insert(X_REQUEST_ID, self.request_id().clone());
        if let Some(seconds) = self.retry_seconds(answer) {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// Returns after how many seconds coming back may help, if it may: for header and document
    /// alike.
    fn retry_seconds(&self, answer: &Answer<'_>) -> Option<u64> {
        let least = if self.speaks.is_some() { ErrorDetails::RETRY_LEAST } else { 1 };
        answer.retry_after.map(|time| whole_seconds(time).max(least))
    }

    fn status_of_grpc(&self, answer: &Answer<'_>) -> Response<String> {
        let mut response = Response::new(String::new());
        let message = format!("{}: {}", answer.title, answer.detail);
        tell_grpc(response.headers_mut(), Grpc::of(answer), &message, answer.retry_after);
        response.extensions_mut().insert(Instead(answer.status));
        response
    }

    fn document(&self, answer: &Answer<'_>, pages: &Pages) -> Response<String> {
        let retry_seconds = self.retry_seconds(answer);
        let mut response = Response::new(String::new());
        *response.status_mut() = answer.status;
        let headers = response.headers_mut();
        let content_type = if let Some(speaks) = &self.speaks {
            let particulars = ErrorDetails { code: answer.code, retry_seconds, may_reload: self.may_reload };
            let page = pages.error(speaks, answer.trouble, &particulars);
            headers.insert(CONTENT_SECURITY_POLICY, page.policy);
            headers.extend(page.tries.map(|tries| (SET_COOKIE, tries)));
            *response.body_mut() = page.text;
            "text/html; charset=utf-8"
        } else {
            let mut problem = json!({
                "type": format!("urn:suimon:{}", answer.code),
                "title": answer.title,
                "status": answer.status.as_u16(),
                "detail": answer.detail,
                "reason": answer.code,
                "request_id": request_ids::text(self.request_id()),
            });
            if let Some(seconds) = retry_seconds {
                problem["retry_after_seconds"] = Value::from(seconds);
            }
            if let Some(wait) = answer.predicted_wait {
                problem["predicted_wait_seconds"] = Value::from((wait.as_secs_f64() * 10.0).round() / 10.0);
            }
            *response.body_mut() = problem.to_string();
            "application/problem+json"
        };
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        response
    }
}

/// The closest status of gRPC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Grpc {
    DeadlineExceeded = 4,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
}

/// For gRPC clients, who do not see the status line.
#[derive(Clone, Copy, Debug)]
struct Instead(StatusCode);

impl Grpc {
    fn of(answer: &Answer<'_>) -> Self {
        match answer.status {
            // A full gateway is ours to report; where the application is short, the client's own
            // rules say when to retry.
            StatusCode::SERVICE_UNAVAILABLE if answer.code == Reason::GatewayFull.code() => {
                Grpc::ResourceExhausted
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY => Grpc::Unavailable,
            // Not connected in time: it was not worked on.
            StatusCode::GATEWAY_TIMEOUT if answer.retry_after.is_some() => Grpc::Unavailable,
            StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => Grpc::DeadlineExceeded,
            StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::URI_TOO_LONG
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Grpc::ResourceExhausted,
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => Grpc::Unimplemented,
            _ => Grpc::Internal,
        }
    }
}

/// Writes an answer of trailers only into the headers of a response without a body.
fn tell_grpc(headers: &mut HeaderMap, status: Grpc, message: &str, retry_after: Option<Duration>) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(GRPC_STATUS, HeaderValue::from(status as u16));
    headers.insert(GRPC_MESSAGE, percent_encoded(message));
    if let Some(after) = retry_after {
        let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).max(1);
        headers.insert(GRPC_RETRY_PUSHBACK_MS, HeaderValue::from(millis));
    }
}

/// Returns a message as gRPC writes it: visible ASCII as it is, everything else and `%` as `%XX`.
fn percent_encoded(message: &str) -> HeaderValue {
    let mut text = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::try_from(text).expect("visible ASCII and spaces")
}

/// Returns the status of a response, also where a gRPC client is told it in another way.
pub(crate) fn status<B>(response: &Response<B>) -> StatusCode {
    response.extensions().get::<Instead>().map_or(response.status(), |instead| instead.0)
}

/// Returns the whole answer, as bytes, to an HTTP/1 request that could not even be read. `speaks`:
/// the client, if the readable part of the head shows that it is a browser.
pub(crate) fn unreadable(fault: RequestFault, speaks: Option<BrowserPreferences>, pages: &Pages) -> Bytes {
    let speaks = speaks.map(Box::new);
    let error_format = ErrorFormat {
        speaks,
        may_reload: false,
        has_connection_header: true,
        is_grpc: false,
        request_id: OnceLock::new(),
    };
    let (head, text) = error_format.fault(fault, pages).into_parts();
    let reason = head.status.canonical_reason().unwrap_or_default();
    let mut answer = format!("HTTP/1.1 {} {reason}\r\n", head.status.as_str()).into_bytes();
    for (name, value) in &head.headers {
        answer.extend_from_slice(name.as_str().as_bytes());
        answer.extend_from_slice(b": ");
        answer.extend_from_slice(value.as_bytes());
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(format!("content-length: {}\r\n\r\n", text.len()).as_bytes());
    answer.extend_from_slice(text.as_bytes());
    answer.into()
}

/// Returns what `Server-Timing` says of a request that waited.
pub(crate) fn server_timing(what: &str, waited: Duration) -> HeaderValue {
    let value = format!("suimon;desc=\"{what}\";dur={:.1}", waited.as_secs_f64() * 1e3);
    HeaderValue::try_from(value).expect("codes are words")
}

/// Rounded up: a client that comes back a moment early has come for nothing.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Returns whether a page is loaded to be seen, not prefetched and not inside another page: only
/// there an automatic retry is useful.
fn is_visit(headers: &HeaderMap) -> bool {
    const DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");
    const BEFOREHAND: [HeaderName; 2] =
        [HeaderName::from_static("sec-purpose"), HeaderName::from_static("purpose")];
    !BEFOREHAND.iter().any(|name| headers.contains_key(name))
        && headers.get(DESTINATION).is_none_or(|what| what.as_bytes() == b"document")
}

/// Returns what people are told of a bad request.
fn trouble(fault: RequestFault) -> ErrorTopic {
    match fault {
        RequestFault::BodyTooLarge => ErrorTopic::Large,
        RequestFault::HeadTooLarge => ErrorTopic::Cookies,
        RequestFault::AmbiguousPath | RequestFault::UrlTooLong => ErrorTopic::Address,
        RequestFault::BrokenBody | RequestFault::BodyTimeout => ErrorTopic::Slow,
        _ => ErrorTopic::Bad,
    }
}

/// Returns the short name of what is wrong with a request.
pub(crate) fn code_of(fault: RequestFault) -> &'static str {
    describe(fault).1
}

fn describe(fault: RequestFault) -> (StatusCode, &'static str, &'static str, &'static str) {
    let bad = StatusCode::BAD_REQUEST;
    match fault {
        RequestFault::BadHead => (
            bad,
            "bad_head",
            "Bad request",
            "The request's head is not well-formed HTTP/1.1, or could be read in more than one way.",
        ),
        RequestFault::HeadTooLarge => (
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "head_too_large",
            "Head too large",
            "The request's head is longer, or has more headers, than is accepted.",
        ),
        RequestFault::NoHost => (bad, "no_host", "Bad request", "The request has no Host header."),
        RequestFault::ManyHosts => {
            (bad, "many_hosts", "Bad request", "The request has more than one Host header.")
        }
        RequestFault::NoProxyHeader => (
            bad,
            "no_proxy_header",
            "Bad request",
            "The connection does not begin with the PROXY header that its balancer is set to send.",
        ),
        RequestFault::BadHost => {
            (bad, "bad_host", "Bad request", "The request's Host is not a host name with an optional port.")
        }
        RequestFault::HostMismatch => (
            bad,
            "host_mismatch",
            "Bad request",
            "The request's target names another host than its Host header.",
        ),
        RequestFault::BadTarget => {
            (bad, "bad_target", "Bad request", "The request's target is not a path on this server.")
        }
        RequestFault::TransferCoding => (
            StatusCode::NOT_IMPLEMENTED,
            "transfer_coding",
            "Not implemented",
            "The request's transfer coding is not chunked.",
        ),
        RequestFault::ManyTransferCodings => {
            (bad, "many_transfer_codings", "Bad request", "The request has more than one Transfer-Encoding.")
        }
        RequestFault::Expectation => (
            StatusCode::EXPECTATION_FAILED,
            "expectation",
            "Expectation failed",
            "The request expects something other than 100-continue.",
        ),
        RequestFault::Protocol => (
            StatusCode::NOT_IMPLEMENTED,
            "protocol",
            "Not implemented",
            "This connection can only be upgraded to WebSocket, or the application did not switch to it.",
        ),
        RequestFault::Method => (
            StatusCode::METHOD_NOT_ALLOWED,
            "method",
            "Method not allowed",
            "This gateway does not forward requests with this method.",
        ),
        RequestFault::AmbiguousPath => (
            bad,
            "ambiguous_path",
            "Bad request",
            "The request's path could be read in more than one way, as different sites'.",
        ),
        RequestFault::UrlTooLong => (
            StatusCode::URI_TOO_LONG,
            "url_too_long",
            "Address too long",
            "The request's target is longer than is accepted.",
        ),
        RequestFault::BodyTooLarge => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            "Too large",
            "The request's body is larger than is accepted.",
        ),
        RequestFault::BadBody => (bad, "bad_body", "Bad request", "The request's body is malformed."),
        RequestFault::BrokenBody => (bad, "broken_body", "Bad request", "The request's body ended early."),
        RequestFault::BodyTimeout => {
            (StatusCode::REQUEST_TIMEOUT, "body_timeout", "Too slow", "The request's body came too slowly.")
        }
        RequestFault::NotFound => {
            (StatusCode::NOT_FOUND, "not_found", "Not found", "There is no page at this address.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use http::header::ACCEPT;

    use suimon_model::RequestId;

    fn body(response: Response<String>) -> String {
        response.into_body()
    }

    fn pages() -> Pages {
        Pages::of(&suimon_params::WaitingRoomParams::default(), None, true)
    }

    fn refusal(millis: u64) -> Refusal {
        Refusal {
            request: RequestId(0),
            reason: Reason::WaitTooLong,
            retry_after: Duration::from_millis(millis),
            predicted_wait: Duration::from_millis(48_760),
            waiting: 3,
        }
    }

    fn error_format(method: &Method, accept: &'static str) -> ErrorFormat {
        let request = http::Request::builder().method(method).header(ACCEPT, accept);
        ErrorFormat::new(&request.body(()).unwrap().into_parts().0, None)
    }

    #[test]
    fn a_browser_gets_a_page_that_comes_back_by_itself() {
        let browser = error_format(&Method::GET, "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
        let response = browser.refused(&refusal(31_200), Duration::from_millis(1500), &pages());
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()[RETRY_AFTER], "32");
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
        assert_eq!(response.headers()[SERVER_TIMING], "suimon;desc=\"predicted_wait_too_long\";dur=1500.0");
        assert_eq!(
            response.headers()[PROXY_STATUS],
            "suimon; error=http_request_denied; details=\"predicted_wait_too_long\""
        );
        assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        let page = body(response);
        assert!(page.contains("<meta http-equiv=refresh content=32>"), "{page}");
        let posted =
            error_format(&Method::POST, "text/html").refused(&refusal(5000), Duration::ZERO, &pages());
        assert!(!body(posted).contains("http-equiv=refresh"), "a form is not sent twice unasked");
    }

    #[test]
    fn a_page_and_its_head_name_the_same_time() {
        for (millis, seconds) in [(10, "2"), (1000, "2"), (1001, "2"), (2001, "3")] {
            let posted = error_format(&Method::POST, "text/html");
            let response = posted.refused(&refusal(millis), Duration::ZERO, &pages());
            assert_eq!(response.headers()[RETRY_AFTER], seconds, "{millis} ms");
            let page = body(response);
            assert!(page.contains(&format!("in about {seconds} seconds.")), "{millis} ms: {page}");
        }
    }

    #[test]
    fn a_program_gets_a_problem_it_can_read() {
        for accept in ["text/html;q=0, */*", "text/html;q=0.1, application/json"] {
            assert!(error_format(&Method::GET, accept).speaks.is_none(), "{accept}");
        }
        let response = error_format(&Method::GET, "*/*").refused(&refusal(10), Duration::ZERO, &pages());
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        let problem: Value = serde_json::from_str(&body(response)).unwrap();
        assert_eq!(problem["type"], "urn:suimon:predicted_wait_too_long");
        assert_eq!(problem["status"], 503);
        assert_eq!(problem["retry_after_seconds"], 1);
        assert_eq!(problem["predicted_wait_seconds"], 48.8);
    }

    #[test]
    fn a_grpc_client_gets_a_status_and_nothing_else() {
        let call = http::Request::builder().version(Version::HTTP_2).method(Method::POST);
        let call = call.header(CONTENT_TYPE, "application/grpc+proto").body(()).unwrap();
        let caller = ErrorFormat::new(&call.into_parts().0, None);
        let of = |response: &Response<String>| {
            assert_eq!(
                (response.status(), &response.headers()[CONTENT_TYPE]),
                (StatusCode::OK, &HeaderValue::from_static("application/grpc"))
            );
            assert!(response.body().is_empty(), "trailers only");
            response.headers()[GRPC_STATUS].to_str().unwrap().to_owned()
        };
        for (reason, grpc) in
            [(Reason::WaitTooLong, "14"), (Reason::ShuttingDown, "14"), (Reason::GatewayFull, "8")]
        {
            let refused = caller.refused(&Refusal { reason, ..refusal(1200) }, Duration::ZERO, &pages());
            assert_eq!((of(&refused).as_str(), status(&refused)), (grpc, StatusCode::SERVICE_UNAVAILABLE));
            assert_eq!(refused.headers()[GRPC_RETRY_PUSHBACK_MS], "1200");
            assert!(refused.headers().contains_key(PROXY_STATUS));
        }
        for (fault, grpc) in [
            (RequestFault::BodyTooLarge, "8"),
            (RequestFault::BodyTimeout, "4"),
            (RequestFault::BrokenBody, "13"),
            (RequestFault::Method, "12"),
        ] {
            let response = caller.fault(fault, &pages());
            assert_eq!(of(&response), grpc, "{fault:?}");
            assert_eq!(
                response.headers().get(GRPC_RETRY_PUSHBACK_MS),
                None,
                "the same again would be as bad"
            );
        }
        assert_eq!(percent_encoded("100 % of \u{6c34}\n"), "100 %25 of %E6%B0%B4%0A");
    }

    #[test]
    fn every_reason_and_every_fault_has_an_answer() {
        let program = error_format(&Method::GET, "*/*");
        for reason in Reason::ALL {
            let refused =
                program.refused(&Refusal { reason: *reason, ..refusal(1000) }, Duration::ZERO, &pages());
            assert_eq!(refused.status(), 503);
        }
        for (fault, status) in [
            (RequestFault::NoHost, 400),
            (RequestFault::TransferCoding, 501),
            (RequestFault::Method, 405),
            (RequestFault::UrlTooLong, 414),
            (RequestFault::BodyTooLarge, 413),
            (RequestFault::BodyTimeout, 408),
            (RequestFault::Expectation, 417),
        ] {
            let response = program.fault(fault, &pages());
            assert_eq!(response.status(), status);
            assert_eq!(response.headers().get(RETRY_AFTER), None, "the same again would be as bad");
            assert_eq!(response.headers().contains_key(ALLOW), status == 405);
        }
    }
}

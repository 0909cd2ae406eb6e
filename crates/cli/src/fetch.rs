//! One request to a gateway's admin listener, over plain HTTP.

use crate::args::AdminAt;
use crate::exit::Exit;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Builder;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::path::Path;
use std::time::Duration;
use suimon_params::upstream::{NodeAddress, NodeParams, Scheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// The longest a gateway may take to respond.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most bytes of a response that are read.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Why nothing was fetched.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// The URL cannot be used.
    BadUrl(String),
    /// The file of the token cannot be used.
    BadToken(String),
    /// The gateway refused the request; its reason.
    Refused(String),
    /// There was no response, or not a gateway's.
    NoAnswer(String),
}

impl FetchError {
    /// Prints what is wrong with the gateway at `url`, which the user named with `option`, and
    /// returns the command's exit code.
    pub(crate) fn explain(&self, option: &str, url: &str) -> Exit {
        eprintln!("{}", self.explanation(option, url));
        match self {
            FetchError::BadUrl(_) | FetchError::BadToken(_) => Exit::Usage,
            FetchError::Refused(_) | FetchError::NoAnswer(_) => Exit::Failed,
        }
    }

    fn explanation(&self, option: &str, url: &str) -> String {
        match self {
            FetchError::BadUrl(why) => format!("{option}: {why}"),
            FetchError::BadToken(why) => format!("--token-file: {why}"),
            FetchError::Refused(why) => format!("the gateway refused: {why}"),
            FetchError::NoAnswer(why) => format!(
                "nobody answers at {url} ({why}).\nIs the gateway running, and is this its operator address? \
                 `suimon serve` prints it, and {option} names another."
            ),
        }
    }
}

/// Returns the body of a successful response to `GET path`.
pub(crate) async fn get(at: &AdminAt, path: &str) -> Result<Bytes, FetchError> {
    ask(at, Request::get(with_site(at, path)), String::new()).await
}

/// Returns the body of a successful response to `POST path` with this JSON.
pub(crate) async fn post(at: &AdminAt, path: &str, json: String) -> Result<Bytes, FetchError> {
    ask(at, Request::post(with_site(at, path)).header("content-type", "application/json"), json).await
}

/// Returns the path with the site that is meant, if one is named.
fn with_site(at: &AdminAt, path: &str) -> String {
    let Some(site) = &at.site else { return path.to_owned() };
    let mark = if path.contains('?') { '&' } else { '?' };
    let mut url = format!("{path}{mark}site=");
    for byte in site.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(byte)),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

/// Returns the line that stands above an answer about one of several sites.
pub(crate) fn of_site(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("Site {name}\n"))
}

async fn ask(at: &AdminAt, mut request: Builder, body: String) -> Result<Bytes, FetchError> {
    let origin = origin(&at.admin)?;
    if let Some(file) = &at.token_file {
        request = request.header(AUTHORIZATION, bearer(file).map_err(FetchError::BadToken)?);
    }
    match tokio::time::timeout(PATIENCE, exchange(&origin, request, body)).await {
        Ok(answer) => answer.map_err(FetchError::NoAnswer)?.body(),
        Err(_) => Err(FetchError::NoAnswer(format!("no answer within {} s", PATIENCE.as_secs()))),
    }
}

/// Returns the listener at `base`, a URL or `HOST:PORT`.
fn origin(base: &str) -> Result<NodeParams, FetchError> {
    let wrong = |why: &str| {
        let example =
            "the operator's listener is HOST:PORT, http://HOST:PORT or unix:/PATH, such as 127.0.0.1:8001";
        Err(FetchError::BadUrl(format!("{base:?}: {why}; {example}")))
    };
    let url = match base.split_once(':') {
        None => return wrong("has no port"),
        Some(_) if base.contains("://") || base.starts_with("unix:") => base.to_owned(),
        Some(_) => format!("http://{base}"),
    };
    match NodeParams::parse(&url) {
        Ok(origin) if origin.scheme != Scheme::Http => wrong("it speaks plain http"),
        Ok(origin) if matches!(origin.address, NodeAddress::Tcp { .. } | NodeAddress::Unix(_)) => Ok(origin),
        _ => wrong("cannot be read"),
    }
}

/// Returns the header that carries the token in a file.
fn bearer(file: &Path) -> Result<HeaderValue, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut value = HeaderValue::from_str(&format!("Bearer {}", text.trim()))
        .map_err(|_| format!("{}: must hold a token, of characters that are printed", file.display()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A response.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    /// Returns the body, if the status is a success.
    fn body(self) -> Result<Bytes, FetchError> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let said = String::from_utf8_lossy(&self.body);
        let said = said.lines().next().unwrap_or("");
        // The gateway gives its reasons as plain text. An HTML error page comes from another server
        // on that address.
        let is_text =
            self.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
        if self.status.is_client_error() && is_text && !said.is_empty() {
            return Err(FetchError::Refused(said.to_owned()));
        }
        Err(FetchError::NoAnswer(format!("answered {}: {said}", self.status)))
    }
}

async fn exchange(origin: &NodeParams, request: Builder, body: String) -> Result<Answer, String> {
    if let NodeAddress::Unix(path) = &origin.address {
        let stream = UnixStream::connect(path).await.map_err(|error| error.to_string())?;
        return exchange_over(stream, "localhost", request, body).await;
    }
    let host = origin.authority();
    let stream = TcpStream::connect(&*host).await.map_err(|error| error.to_string())?;
    exchange_over(stream, &host, request, body).await
}

async fn exchange_over(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    host: &str,
    request: Builder,
    body: String,
) -> Result<Answer, String> {
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let driver = tokio::spawn(connection);
    let request = request.header("host", host).header("connection", "close");
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let (head, body) = response.into_parts();
    let body =
        Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| error.to_string())?.to_bytes();
    driver.abort();
    Ok(Answer { status: head.status, headers: head.headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explanation_of(status: StatusCode, kind: &'static str, body: &'static str) -> String {
        let headers = [(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind))];
        let answer = Answer { status, headers: headers.into_iter().collect(), body: Bytes::from(body) };
        answer.body().unwrap_err().explanation("--admin", "http://127.0.0.1:8001")
    }

    #[test]
    fn the_site_that_is_meant_stands_in_the_query() {
        let of = |site: Option<&str>, path| {
            with_site(&AdminAt { site: site.map(str::to_owned), ..AdminAt::of("127.0.0.1:1") }, path)
        };
        assert_eq!(of(None, "/api/pool?since=3"), "/api/pool?since=3");
        assert_eq!(of(Some("tickets-2"), "/api/pool?since=3"), "/api/pool?since=3&site=tickets-2");
        assert_eq!(of(Some("a&b é"), "/api/state"), "/api/state?site=a%26b%20%C3%A9");
    }

    #[test]
    fn a_refusal_is_told_with_the_gateways_reason_and_nobody_is_asked_whether_it_runs() {
        let why = "there is no line of that name; there are: shop\n";
        let told = explanation_of(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", why);
        assert_eq!(told, "the gateway refused: there is no line of that name; there are: shop");
    }

    #[test]
    fn what_is_no_gateways_refusal_is_asked_about() {
        for (status, kind, body) in [
            (StatusCode::NOT_FOUND, "text/html", "<!doctype html>"),
            (StatusCode::NOT_FOUND, "text/plain", ""),
            (StatusCode::BAD_GATEWAY, "text/plain", "nobody there"),
        ] {
            let told = explanation_of(status, kind, body);
            assert!(told.starts_with("nobody answers at http://127.0.0.1:8001 (answered "), "{told}");
            assert!(told.contains("Is the gateway running"), "{told}");
        }
    }
}

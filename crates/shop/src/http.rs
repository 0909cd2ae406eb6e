//! The part of HTTP/1.1 that the shop needs: it reads a request with a bounded head and body and
//! writes a response. The connection stays open unless either side asks to close it.
//!
//! An ambiguous request is refused and its connection closed: both kinds of length, a repeated
//! length, folded headers, a missing or repeated host. A body of unknown length gets a 411, as HTTP
//! allows.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, SystemTime};

/// Largest request head, bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Most header fields in a request.
const HEADERS_MAX: usize = 100;
/// Largest request body, bytes.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;
/// A connection that is silent for this long is closed.
const IDLE: Duration = Duration::from_secs(75);
/// After a refusal the client has this long to stop sending and read the response.
const LINGER: Duration = Duration::from_secs(1);

/// One complete request.
#[derive(Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    /// The value of each cookie header.
    pub(crate) cookies: Vec<String>,
    pub(crate) body: Vec<u8>,
    /// Whether the connection may be kept: the client speaks HTTP/1.1 and did not ask to close it.
    pub(crate) keep: bool,
}

impl Request {
    /// Returns the field of the query, decoded, or nothing.
    pub(crate) fn query_field(&self, name: &str) -> Option<String> {
        field(&self.query, name)
    }

    /// Returns the field of the submitted form, decoded, or nothing.
    pub(crate) fn form_field(&self, name: &str) -> Option<String> {
        field(std::str::from_utf8(&self.body).ok()?, name)
    }

    /// Returns the cookie's value, or nothing.
    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let pairs = self.cookies.iter().flat_map(|cookies| cookies.split(';'));
        pairs
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }
}

/// One response.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    /// Whole header lines, each with its line end.
    pub(crate) headers: String,
    pub(crate) body: String,
}

/// Why no request could be read from a connection.
#[derive(Debug)]
pub(crate) enum HttpFault {
    /// The client's bytes are not a request that the shop accepts: answer with this status and
    /// reason, then close.
    Refused(u16, &'static str),
    /// There is no client left to answer.
    Gone,
}

impl From<io::Error> for HttpFault {
    fn from(_: io::Error) -> Self {
        HttpFault::Gone
    }
}

/// A client's connection, with the bytes that are read but not used yet.
pub(crate) struct Connection {
    stream: TcpStream,
    unused: Vec<u8>,
}

/// A parsed request head, and what it says about the body.
struct Head {
    request: Request,
    head_bytes: usize,
    body_bytes: usize,
    expects_continue: bool,
}

impl Connection {
    /// Returns the connection with its socket options set.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(IDLE))?;
        stream.set_write_timeout(Some(IDLE))?;
        Ok(Connection { stream, unused: Vec::new() })
    }

    /// Waits for a request and returns it.
    pub(crate) fn read_request(&mut self) -> Result<Request, HttpFault> {
        let head = loop {
            if let Some(head) = parse_head(&self.unused)? {
                break head;
            }
            if self.unused.len() > HEAD_BYTES_MAX {
                return Err(HttpFault::Refused(431, "The request's head is too large"));
            }
            self.read_more()?;
        };
        let whole = head.head_bytes + head.body_bytes;
        if head.expects_continue && self.unused.len() < whole {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        while self.unused.len() < whole {
            self.read_more()?;
        }
        let mut request = head.request;
        request.body = self.unused[head.head_bytes..whole].to_vec();
        self.unused.drain(..whole);
        Ok(request)
    }

    /// Sends the response. If `keep` is false, its head says that the connection closes. A response
    /// to HEAD has no body.
    pub(crate) fn write_response(
        &mut self,
        response: &Response,
        head_only: bool,
        keep: bool,
    ) -> io::Result<()> {
        let Response { status, content_type, headers, body } = response;
        let mut bytes = format!(
            "HTTP/1.1 {status} {}\r\nDate: {}\r\nContent-Type: {content_type}; charset=utf-8\r\nContent-Length: {}\r\n{}{headers}\r\n",
            phrase(*status),
            httpdate::fmt_http_date(SystemTime::now()),
            body.len(),
            if keep { "" } else { "Connection: close\r\n" },
        )
        .into_bytes();
        if !head_only {
            bytes.extend_from_slice(body.as_bytes());
        }
        self.stream.write_all(&bytes)
    }

    /// Closes the connection slowly, so that a client that is still sending can read the response.
    pub(crate) fn linger(mut self) {
        let patient = self.stream.shutdown(Shutdown::Write).and(self.stream.set_read_timeout(Some(LINGER)));
        let mut scratch = [0; 4096];
        let mut left = BODY_BYTES_MAX;
        while patient.is_ok() && left > 0 {
            match self.stream.read(&mut scratch) {
                Ok(0) | Err(_) => break,
                Ok(read) => left = left.saturating_sub(read),
            }
        }
    }

    fn read_more(&mut self) -> Result<(), HttpFault> {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(HttpFault::Gone),
            Ok(read) => {
                self.unused.extend_from_slice(&chunk[..read]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the head at the beginning of the bytes, nothing if it is not complete yet.
fn parse_head(bytes: &[u8]) -> Result<Option<Head>, HttpFault> {
    let bad = |reason| Err(HttpFault::Refused(400, reason));
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    let head_bytes = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(HttpFault::Refused(431, "Too many header fields"));
        }
        Err(httparse::Error::Version) => {
            return Err(HttpFault::Refused(505, "Only HTTP/1.0 and HTTP/1.1 are spoken here"));
        }
        Err(_) => return bad("The request's head is malformed"),
    };
    if head_bytes > HEAD_BYTES_MAX {
        return Err(HttpFault::Refused(431, "The request's head is too large"));
    }
    let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version) else {
        return bad("The request's head is malformed");
    };
    let all = |name: &'static str| {
        let fields = parsed.headers.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        fields.map(|field| String::from_utf8_lossy(field.value).trim().to_owned())
    };

    let hosts = all("host").count();
    if hosts > 1 || (hosts == 0 && version == 1) {
        return bad("There must be exactly one Host");
    }
    let lengths: Vec<String> = all("content-length").collect();
    if all("transfer-encoding").next().is_some() {
        return if lengths.is_empty() {
            Err(HttpFault::Refused(411, "A body needs its Content-Length here"))
        } else {
            bad("Content-Length and Transfer-Encoding exclude each other")
        };
    }
    let body_bytes = match lengths.as_slice() {
        [] => 0,
        [length] if !length.is_empty() && length.bytes().all(|digit| digit.is_ascii_digit()) => {
            length.parse().unwrap_or(usize::MAX)
        }
        _ => return bad("Content-Length must be one whole number"),
    };
    if body_bytes > BODY_BYTES_MAX {
        return Err(HttpFault::Refused(413, "The request's body is too large"));
    }
    let expectations: Vec<String> = all("expect").collect();
    if expectations.iter().any(|expected| !expected.eq_ignore_ascii_case("100-continue")) {
        return Err(HttpFault::Refused(417, "Only 100-continue can be expected here"));
    }
    let Some((path, query)) = origin_form(target) else {
        return bad("The request's target must be a path");
    };

    let said = |word: &str| {
        all("connection").any(|value| value.split(',').any(|option| option.trim().eq_ignore_ascii_case(word)))
    };
    let keep = version == 1 && !said("close");
    let request = Request {
        method: method.to_owned(),
        path,
        query,
        cookies: all("cookie").collect(),
        body: Vec::new(),
        keep,
    };
    // HTTP/1.0 clients do not know interim responses.
    let expects_continue = version == 1 && !expectations.is_empty();
    Ok(Some(Head { request, head_bytes, body_bytes, expects_continue }))
}

/// Returns path and query of `/path?query` or `http://host/path?query`, nothing for anything else.
fn origin_form(target: &str) -> Option<(String, String)> {
    let local = match target.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
            rest.find('/').map_or("/", |at| &rest[at..])
        }
        _ => target,
    };
    let (path, query) = local.split_once('?').unwrap_or((local, ""));
    path.starts_with('/').then(|| (path.to_owned(), query.to_owned()))
}

/// Returns the first field of that name in `a=1&b=2`, decoded.
fn field(form: &str, name: &str) -> Option<String> {
    let pairs = form.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs
        .map(|(key, value)| (decoded(key), value))
        .find(|(key, _)| key == name)
        .map(|(_, value)| decoded(value))
}

/// Returns the text with `+` and `%41` decoded. A `%` without two digits after it is kept.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(code)) => {
                plain.push(code);
                at += 3;
                continue;
            }
            (b'+', _) => plain.push(b' '),
            (byte, _) => plain.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_decoded() {
        assert_eq!(field("q=red+silk%21&page=2", "q").as_deref(), Some("red silk!"));
        assert_eq!(field("q=red&page=2", "page").as_deref(), Some("2"));
        assert_eq!(field("flag&x=%zz%4", "x").as_deref(), Some("%zz%4"));
        assert_eq!(field("flag", "flag").as_deref(), Some(""));
        assert_eq!(field("", "q"), None);
    }

    #[test]
    fn a_target_is_a_path_or_a_whole_address() {
        let both = |path: &str, query: &str| Some((path.to_owned(), query.to_owned()));
        assert_eq!(origin_form("/search?q=a?b"), both("/search", "q=a?b"));
        assert_eq!(origin_form("http://shop/buy"), both("/buy", ""));
        assert_eq!(origin_form("http://shop"), both("/", ""));
        assert_eq!(origin_form("*"), None);
        assert_eq!(origin_form("shop:80"), None);
    }
}

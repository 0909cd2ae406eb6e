//! Single requests over plain HTTP/1.1: for the gateway's state, and for witnesses.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::trouble::{Result, Trouble, While, failed};

/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// The most header lines of an answer.
const HEADERS_MAX: usize = 64;
/// The content type of a form's fields.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Returns the first header of this name (in small letters).
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the names and values of the cookies it sets.
    pub(crate) fn cookies(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.headers.iter().filter(|(name, _)| name == "set-cookie");
        lines.filter_map(|(_, value)| value.split(';').next()?.trim().split_once('='))
    }
}

/// A visitor who keeps all cookies for ever and opens a new connection for each request.
#[derive(Debug)]
pub(crate) struct Visitor {
    to: SocketAddr,
    cookies: BTreeMap<String, String>,
    patience: Duration,
    browser: Option<String>,
}

impl Visitor {
    /// Returns a stranger.
    pub(crate) fn new(to: SocketAddr, patience: Duration) -> Self {
        Visitor { to, cookies: BTreeMap::new(), patience, browser: None }
    }

    /// Returns it with a browser of its own.
    pub(crate) fn with_browser(self, name: String) -> Self {
        Visitor { browser: Some(name), ..self }
    }

    /// Returns the names of the visitor's cookies.
    pub(crate) fn cookie_names(&self) -> impl Iterator<Item = &str> {
        self.cookies.keys().map(String::as_str)
    }

    /// Requests `path`; posts `form` if there is one.
    pub(crate) fn ask(&mut self, path: &str, form: Option<&str>) -> Result<Answer> {
        self.send(path, form, None)
    }

    /// Asks how the own place in line stands, as the script of the waiting page does.
    pub(crate) fn poll(&mut self, path: &str) -> Result<Answer> {
        self.send(path, None, Some(("Suimon-Poll", "waiting".to_string())))
    }

    fn send(
        &mut self,
        path: &str,
        form: Option<&str>,
        header: Option<(&'static str, String)>,
    ) -> Result<Answer> {
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut headers = vec![("Accept", "application/json".to_string())];
        headers.extend(self.browser.clone().map(|browser| ("User-Agent", browser)));
        headers.extend(header);
        if !cookies.is_empty() {
            headers.push(("Cookie", cookies.join("; ")));
        }
        let form = form.map(|form| (FORM, form.as_bytes()));
        let answer = ask(self.to, &self.to.to_string(), path, &headers, form, self.patience)?;
        for (name, value) in answer.cookies() {
            self.cookies.insert(name.to_string(), value.to_string());
        }
        Ok(answer)
    }
}

/// Returns the answer to a GET of `path`.
pub(crate) fn get(to: SocketAddr, path: &str, patience: Duration) -> Result<Answer> {
    ask(to, &to.to_string(), path, &[], None, patience)
}

/// Requests `path` of `host` at `to`: a POST if there is a body, given with its content type.
pub(crate) fn ask(
    to: SocketAddr,
    host: &str,
    path: &str,
    headers: &[(&str, String)],
    body: Option<(&str, &[u8])>,
    patience: Duration,
) -> Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&to, patience).trouble(format!("{to}"))?;
    let limited =
        stream.set_read_timeout(Some(patience)).and_then(|()| stream.set_write_timeout(Some(patience)));
    limited.trouble(to)?;
    let method = if body.is_some() { "POST" } else { "GET" };
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if let Some((kind, bytes)) = body {
        head += &format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", bytes.len());
    }
    let request = [head.as_bytes(), b"\r\n", body.map_or(&[][..], |(_, bytes)| bytes)].concat();
    stream.write_all(&request).trouble(format!("{to}{path}"))?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes).trouble(format!("{to}{path}"))?;
    read(&bytes).ok_or_else(|| Trouble::Failed(format!("{to}{path}: the answer is not HTTP")))
}

fn read(bytes: &[u8]) -> Option<Answer> {
    let mut lines = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut lines);
    let httparse::Status::Complete(length) = response.parse(bytes).ok()? else { return None };
    let headers = response
        .headers
        .iter()
        .map(|header| (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned()));
    let mut answer =
        Answer { status: response.code?, headers: headers.collect(), body: bytes[length..].to_vec() };
    if answer.header("transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked")) {
        answer.body = whole(&answer.body)?;
    }
    Some(answer)
}

/// Returns a chunked body as a whole; `None` if it is malformed or not complete.
fn whole(chunked: &[u8]) -> Option<Vec<u8>> {
    let (mut rest, mut whole) = (chunked, Vec::new());
    loop {
        let httparse::Status::Complete((begin, length)) = httparse::parse_chunk_size(rest).ok()? else {
            return None;
        };
        if length == 0 {
            return Some(whole);
        }
        let end = begin.checked_add(usize::try_from(length).ok()?)?;
        whole.extend_from_slice(rest.get(begin..end)?);
        rest = rest.get(end..)?.strip_prefix(b"\r\n")?;
    }
}

/// Returns the gateway's state, from its admin listener.
pub(crate) fn gateway_state(admin: SocketAddr) -> Result<suimon_admin::State> {
    let answer = get(admin, "/api/state", Duration::from_secs(5))?;
    if answer.status != 200 {
        return failed(format!("{admin}/api/state: status {}", answer.status));
    }
    serde_json::from_slice(&answer.body).trouble(format!("{admin}/api/state"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn a_chunked_body_is_put_together_and_must_be_complete() {
        let answer = |body: &str| {
            read(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}").as_bytes())
        };
        assert_eq!(answer("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n").unwrap().body, b"abc0123456789");
        assert!(answer("3\r\nabc\r\nA\r\n01234").is_none());
        assert!(answer("3\r\nabc\r\n").is_none());
    }

    #[test]
    fn a_visitor_brings_back_what_he_was_given() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let mut seen = Vec::new();
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut bytes = [0; 2000];
                let length = stream.read(&mut bytes).unwrap();
                seen.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
                let answer = "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\n\r\nhello";
                stream.write_all(answer.as_bytes()).unwrap();
            }
            seen
        });
        let mut visitor = Visitor::new(address, Duration::from_secs(10));
        let answer = visitor.ask("/login", Some("user=x")).unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"hello".as_slice()));
        visitor.ask("/next", None).unwrap();
        assert_eq!(visitor.cookie_names().collect::<Vec<_>>(), ["a", "b"]);
        let seen = server.join().unwrap();
        assert!(
            seen[0].starts_with("POST /login HTTP/1.1\r\n") && !seen[0].contains("Cookie"),
            "{}",
            seen[0]
        );
        assert!(seen[1].contains("Cookie: a=1; b=2\r\n"), "{}", seen[1]);
    }
}

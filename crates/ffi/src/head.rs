//! Heads of requests and answers, as text and back.

use crate::code::Fault;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, Uri, Version, request};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr};

/// Tells the application what the request is called.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Bytes of a head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Lines of a head, and of what is told of an answer.
const HEADERS_MAX: usize = 256;

/// The address of clients of whom none is known. To limits by network they are one.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Returns the head of a request.
pub(crate) fn request(head: &[u8]) -> Result<request::Parts, Fault> {
    if head.len() > HEAD_BYTES_MAX {
        return Err(Fault::invalid(format!("head: longer than {HEAD_BYTES_MAX} bytes")));
    }
    // One copy of all: targets and values are parts of it.
    let head = Bytes::copy_from_slice(head);
    let mut lines = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut read = httparse::Request::new(&mut []);
    match read.parse_with_uninit_headers(&head, &mut lines) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        Ok(httparse::Status::Complete(_)) => {
            return Err(Fault::invalid("head: something follows its empty line"));
        }
        Ok(httparse::Status::Partial) => {
            return Err(Fault::invalid("head: it does not end in an empty line"));
        }
        Err(error) => return Err(Fault::invalid(format!("head: {error}"))),
    }
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = Method::from_bytes(read.method.unwrap_or_default().as_bytes())
        .map_err(|_| Fault::invalid("head: no method"))?;
    parts.uri = Uri::from_maybe_shared(head.slice_ref(read.path.unwrap_or_default().as_bytes()))
        .map_err(|error| Fault::invalid(format!("head: the target: {error}")))?;
    parts.version = if read.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    parts.headers = map(read.headers, &head, "head")?;
    Ok(parts)
}

/// Returns header lines: `name: value`, each with its end of line.
pub(crate) fn lines(lines: &[u8]) -> Result<HeaderMap, Fault> {
    if lines.len() > HEAD_BYTES_MAX {
        return Err(Fault::invalid(format!("lines: longer than {HEAD_BYTES_MAX} bytes")));
    }
    if lines.is_empty() {
        return Ok(HeaderMap::new());
    }
    let whole = Bytes::from([lines, b"\r\n"].concat());
    // Room for the most would be 8 KiB.
    let count = memchr::memchr_iter(b'\n', &whole).count().min(HEADERS_MAX);
    let mut read = vec![httparse::EMPTY_HEADER; count];
    match httparse::parse_headers(&whole, &mut read) {
        Ok(httparse::Status::Complete((length, headers))) if length == whole.len() => {
            map(headers, &whole, "lines")
        }
        Ok(httparse::Status::Complete(_)) => Err(Fault::invalid("lines: an empty line is among them")),
        Ok(httparse::Status::Partial) => Err(Fault::invalid("lines: the last one has no end")),
        Err(error) => Err(Fault::invalid(format!("lines: {error}"))),
    }
}

/// Returns headers that were read from `whole`, and whose values are parts of it.
fn map(headers: &[httparse::Header<'_>], whole: &Bytes, what: &'static str) -> Result<HeaderMap, Fault> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for httparse::Header { name, value } in headers {
        let wrong = || Fault::invalid(format!("{what}: the header {name} cannot be read"));
        let value = HeaderValue::from_maybe_shared(whole.slice_ref(value)).map_err(|_| wrong())?;
        map.append(HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value);
    }
    Ok(map)
}

/// Returns an address as people and proxies write it: in brackets or not, with a port or without. What is none
/// stands for all clients that nobody knows.
pub(crate) fn address(text: &[u8]) -> IpAddr {
    let text = str::from_utf8(text).unwrap_or_default();
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(address, _port)| address),
        // Only IPv6 has more than one colon.
        None => match text.split_once(':') {
            Some((address, port)) if !port.contains(':') => address,
            _ => text,
        },
    };
    // What follows the sign names a network card of ours.
    let bare = bare.split_once('%').map_or(bare, |(address, _)| address);
    bare.parse().unwrap_or(UNKNOWN)
}

/// Returns an answer as it is sent. Without its body, if the request was `HEAD`.
pub(crate) fn whole(answer: &Response<String>, to_head: bool) -> Vec<u8> {
    let status = answer.status();
    let body = answer.body().as_bytes();
    let mut text = Vec::with_capacity(1024 + body.len());
    text.extend_from_slice(b"HTTP/1.1 ");
    text.extend_from_slice(status.as_str().as_bytes());
    text.push(b' ');
    text.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    text.extend_from_slice(b"\r\n");
    answer.headers().iter().for_each(|(name, value)| line(&mut text, b"", name, Some(value)));
    if !answer.headers().contains_key(CONTENT_LENGTH) {
        line(&mut text, b"", &CONTENT_LENGTH, Some(&HeaderValue::from(body.len())));
    }
    text.extend_from_slice(b"\r\n");
    text.extend_from_slice(if to_head { b"" } else { body });
    text
}

/// Returns what makes one head of another, a line each: `+` adds, `=` sets, `-` takes out.
pub(crate) fn changes(before: &HeaderMap, after: &HeaderMap) -> Vec<u8> {
    let mut text = Vec::new();
    for name in after.keys() {
        let kept = before.get_all(name).iter().zip(after.get_all(name)).take_while(|(old, new)| old == new);
        let kept = kept.count();
        let is_whole = kept == before.get_all(name).iter().count();
        let added = after.get_all(name).iter().skip(if is_whole { kept } else { 0 });
        for (index, value) in added.enumerate() {
            line(&mut text, if is_whole || index > 0 { b"+" } else { b"=" }, name, Some(value));
        }
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    gone.for_each(|name| line(&mut text, b"-", name, None));
    text
}

/// Appends one header line.
pub(crate) fn line(text: &mut Vec<u8>, mark: &[u8], name: &HeaderName, value: Option<&HeaderValue>) {
    text.extend_from_slice(mark);
    text.extend_from_slice(name.as_str().as_bytes());
    if let Some(value) = value {
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
    }
    text.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;

//! The head of a response, as a program writes it before the body.
//!
//! *Source*: RFC 3875, section 6: header fields, with `Status` and `Location` among them, a blank
//! line, the body. Lines end with CR LF or LF.

use bytes::{Buf, BytesMut};
use http::header::{HeaderName, HeaderValue, LOCATION};
use http::{StatusCode, response};
use std::fmt;

/// The most header fields of one head.
pub const FIELDS_MAX: usize = 256;

/// A head that no program may write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadHead {
    /// It has more than this many bytes.
    TooLong(usize),
    /// It has more than [`FIELDS_MAX`] fields.
    TooManyFields,
    /// This line is not a header field.
    Line(String),
    /// Its status is not a number from 200 to 599.
    Status(String),
    /// It has no header field.
    Empty,
}

impl fmt::Display for BadHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadHead::TooLong(max) => write!(f, "its head has more than {max} bytes"),
            BadHead::TooManyFields => write!(f, "its head has more than {FIELDS_MAX} fields"),
            BadHead::Line(line) => write!(f, "its head has a line that is not a header field: {line:?}"),
            BadHead::Status(status) => write!(f, "its status {status:?} is not a number from 200 to 599"),
            BadHead::Empty => write!(f, "it has no header field before its body"),
        }
    }
}

impl std::error::Error for BadHead {}

/// Takes the head out of `bytes` and leaves the beginning of the body; `None`: it needs more bytes.
/// `searched`: where a call before this one has stopped looking for the end; 0 at first.
///
/// A `Location` without a status redirects (302). A program may mean by a `Location` without a host
/// that the server should answer with that page itself; the browser gets there by the redirect.
///
/// # Errors
/// A head that no program may write, or one of more than `bytes_max` bytes.
pub fn take(
    bytes: &mut BytesMut,
    searched: &mut usize,
    bytes_max: usize,
) -> Result<Option<response::Parts>, BadHead> {
    let within = bytes.len().min(bytes_max);
    let Some((length, end)) = find_end(&bytes[..within], searched) else {
        return if within < bytes_max { Ok(None) } else { Err(BadHead::TooLong(bytes_max)) };
    };
    let parts = parse(&bytes[..length])?;
    bytes.advance(end);
    *searched = 0;
    Ok(Some(parts))
}

fn parse(lines: &[u8]) -> Result<response::Parts, BadHead> {
    let (mut parts, ()) = http::Response::new(()).into_parts();
    let mut status = None;
    for line in lines.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let (name, value) = field(line)?;
        if name == "status" {
            status = Some(status_of(value)?);
        } else if parts.headers.len() == FIELDS_MAX {
            return Err(BadHead::TooManyFields);
        } else {
            let value = HeaderValue::from_bytes(value).map_err(|_| bad_line(line))?;
            parts.headers.append(name, value);
        }
    }
    parts.status = match status {
        Some(status) => status,
        None if parts.headers.is_empty() => return Err(BadHead::Empty),
        None if parts.headers.contains_key(LOCATION) => StatusCode::FOUND,
        None => StatusCode::OK,
    };
    Ok(parts)
}

/// Returns where the last field ends and where the body begins. `searched`: the beginning of the
/// first line that is not complete yet.
fn find_end(bytes: &[u8], searched: &mut usize) -> Option<(usize, usize)> {
    while let Some(length) = bytes[*searched..].iter().position(|byte| *byte == b'\n') {
        let begin = *searched;
        let line = &bytes[begin..begin + length];
        *searched = begin + length + 1;
        if line.is_empty() || line == b"\r" {
            return Some((begin, *searched));
        }
    }
    None
}

fn field(line: &[u8]) -> Result<(HeaderName, &[u8]), BadHead> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or_else(|| bad_line(line))?;
    let name = HeaderName::from_bytes(&line[..colon]).map_err(|_| bad_line(line))?;
    Ok((name, line[colon + 1..].trim_ascii()))
}

/// Reads `404 Not Found` or `404`.
fn status_of(value: &[u8]) -> Result<StatusCode, BadHead> {
    let number = value.split(u8::is_ascii_whitespace).next().unwrap_or(value);
    let status = StatusCode::from_bytes(number).ok().filter(|status| (200..600).contains(&status.as_u16()));
    status.ok_or_else(|| BadHead::Status(shown(value)))
}

fn bad_line(line: &[u8]) -> BadHead {
    BadHead::Line(shown(line))
}

/// The most of a line that an error shows, in bytes.
const SHOWN: usize = 80;

fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(SHOWN)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Result<Option<(u16, Vec<String>, String)>, BadHead> {
        let mut bytes = BytesMut::from(text);
        let parts = take(&mut bytes, &mut 0, 1000)?;
        Ok(parts.map(|parts| {
            let line =
                |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
            let body = String::from_utf8(bytes.to_vec()).unwrap();
            (parts.status.as_u16(), parts.headers.iter().map(line).collect(), body)
        }))
    }

    #[test]
    fn a_head_has_status_fields_and_a_body_after_it() {
        for text in ["Status: 404 Not Found\r\nX-A:  b \r\n\r\nbody", "status:404\nx-a: b\n\nbody"] {
            assert_eq!(taken(text), Ok(Some((404, vec!["x-a: b".into()], "body".into()))));
        }
    }

    #[test]
    fn without_a_status_it_succeeds_or_redirects() {
        assert_eq!(taken("A: b\n\n").unwrap().unwrap().0, 200);
        assert_eq!(taken("Location: /elsewhere\n\n").unwrap().unwrap().0, 302);
        assert_eq!(taken("Location: /made\nStatus: 201\n\n").unwrap().unwrap().0, 201);
    }

    #[test]
    fn several_fields_of_a_name_stay_several() {
        let fields = taken("Set-Cookie: a=1\nSet-Cookie: b=2\n\n").unwrap().unwrap().1;
        assert_eq!(fields, ["set-cookie: a=1", "set-cookie: b=2"]);
    }

    #[test]
    fn an_unfinished_head_waits_wherever_it_is_cut() {
        let whole = "Status: 200 OK\r\nA: b\r\n\r\n";
        let (mut bytes, mut searched) = (BytesMut::new(), 0);
        for (at, byte) in whole.bytes().enumerate() {
            bytes.extend_from_slice(&[byte]);
            let head = take(&mut bytes, &mut searched, 1000).unwrap();
            assert_eq!(head.is_some(), at + 1 == whole.len(), "after {at}");
        }
        assert!(bytes.is_empty());
    }

    #[test]
    fn what_no_program_may_write_is_named() {
        for (text, expected) in [
            ("\n", BadHead::Empty),
            ("hello\n\n", BadHead::Line("hello".into())),
            ("a b: c\n\n", BadHead::Line("a b: c".into())),
            ("A: \0\n\n", BadHead::Line("A: \0".into())),
            ("Status: 101 Go\n\n", BadHead::Status("101 Go".into())),
            ("Status: fine\n\n", BadHead::Status("fine".into())),
            (&"A: b\n".repeat(FIELDS_MAX + 1)[..], BadHead::TooLong(1000)),
        ] {
            assert_eq!(taken(text), Err(expected), "{text:?}");
        }
        let mut many = BytesMut::from(&format!("{}\n", "A: b\n".repeat(FIELDS_MAX + 1))[..]);
        assert_eq!(take(&mut many, &mut 0, 10_000).unwrap_err(), BadHead::TooManyFields);
    }
}

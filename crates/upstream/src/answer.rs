//! The answer of a program over FastCGI or CGI: what its head says of its body.

use super::error::UpstreamErrorKind;
use super::fault::{BodyFault, Failed};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};
use http::{Method, StatusCode, response};
use http_body::SizeHint;
use std::fmt;

/// What is still expected of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expected {
    /// Nothing that a client may get, as for `HEAD`; the program may write all the same.
    Nothing,
    /// This many bytes, as the head says.
    Bytes(u64),
    /// All that the program writes.
    All,
}

/// Returns the head of an answer as it is passed on, and what is expected of the body.
pub(super) fn begin(
    mut head: response::Parts,
    method: &Method,
) -> Result<(response::Parts, Expected), BadLength> {
    // The gateway frames the body itself.
    head.headers.remove(TRANSFER_ENCODING);
    let mut length = None;
    for value in &head.headers.get_all(CONTENT_LENGTH) {
        let own = digits(value).ok_or(BadLength)?;
        if length.replace(own).is_some_and(|other| other != own) {
            return Err(BadLength);
        }
    }
    if let Some(length) = length {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    let is_bodiless = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let expected = match length {
        _ if is_bodiless || method == Method::HEAD => Expected::Nothing,
        Some(length) => Expected::Bytes(length),
        None => Expected::All,
    };
    Ok((head, expected))
}

impl Expected {
    /// Returns what of `written` is for the client, if anything is.
    pub(super) fn take(&mut self, written: Bytes) -> Option<Result<Bytes, BodyFault>> {
        if written.is_empty() || *self == Expected::Nothing {
            return None;
        }
        if let Expected::Bytes(left) = self {
            let Some(rest) = left.checked_sub(written.len() as u64) else {
                return Some(Err(BodyFault::Malformed("it is longer than its head says".into())));
            };
            *left = rest;
        }
        Some(Ok(written))
    }

    /// Notes the end of the body.
    pub(super) fn end(self) -> Result<(), BodyFault> {
        match self {
            Expected::Bytes(1..) => Err(BodyFault::Malformed("it is shorter than its head says".into())),
            Expected::Nothing | Expected::Bytes(0) | Expected::All => Ok(()),
        }
    }

    /// Returns what is known of the length of the rest.
    pub(super) fn size_hint(self) -> SizeHint {
        match self {
            Expected::Nothing => SizeHint::with_exact(0),
            Expected::Bytes(left) => SizeHint::with_exact(left),
            Expected::All => SizeHint::default(),
        }
    }
}

/// A head with a length that is no number, or with several.
#[derive(Debug)]
pub(super) struct BadLength;

impl fmt::Display for BadLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its Content-Length is not one number")
    }
}

impl std::error::Error for BadLength {}

pub(super) fn bad_response(cause: impl std::error::Error + Send + Sync + 'static) -> Failed {
    let detail = "the program sent no response that can be passed on";
    Failed::new(UpstreamErrorKind::BadResponse, detail).caused_by(cause)
}

/// Reads a number of digits only: `+5` is none.
fn digits(value: &HeaderValue) -> Option<u64> {
    let text = value.to_str().ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

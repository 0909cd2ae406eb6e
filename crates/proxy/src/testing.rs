//! What the tests of several files begin with.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Returns a head in which `name` stands once for each of `lines`.
pub(crate) fn headers(name: &HeaderName, lines: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    lines.iter().for_each(|line| _ = headers.append(name, HeaderValue::from_str(line).unwrap()));
    headers
}

//! Headers that are lists, separated by commas.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Returns the items of a comma-separated header, all of its lines together.
pub fn list<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> + use<'a> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|item| !item.is_empty())
}

/// As [`list`], as bytes, so that items that are not text are included.
pub(crate) fn items<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a> {
    let lines = headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
    let items = lines.flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    items.filter(|item| !item.is_empty())
}

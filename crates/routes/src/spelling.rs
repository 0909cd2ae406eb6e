//! How a path may be spelled, and what servers of different leniency read there.

use std::borrow::Cow;

/// How often a path is decoded: no server does so more often.
const DECODED_MAX: usize = 3;
/// Endings of programs.
const PROGRAMS: [&str; 19] = [
    "php", "php3", "php4", "php5", "php7", "php8", "phtml", "jsp", "jspx", "do", "action", "cgi", "fcgi",
    "pl", "py", "rb", "asp", "aspx", "cfm",
];

/// Returns whether an application may take the path for another one: by dot segments, empty ones,
/// parameters, a program before its end, or what is encoded though it need not be. Nothing passes
/// ungated by such a path.
pub(crate) fn is_ambiguous(path: &str) -> bool {
    path.contains([';', '\\'])
        || path.contains("//")
        || path.split('/').any(|segment| matches!(segment, "." | ".."))
        || path.rsplit('/').skip(1).any(is_program)
        || (path.contains('%') && !is_encoded_text(path))
}

/// Returns whether a segment names a program: some servers run it, and hand it what follows.
fn is_program(segment: &str) -> bool {
    let extension = segment.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| PROGRAMS.iter().any(|known| known.eq_ignore_ascii_case(extension)))
}

/// Returns whether all that is encoded in a path is text: none of the marks that divide a path, no
/// control characters, and no mark of an encoding, which some decode a second time.
fn is_encoded_text(path: &str) -> bool {
    let (decoded, is_whole) = decoded(path);
    let has_mark = memchr::memchr_iter(b'%', path.as_bytes()).any(|at| {
        let byte = encoded_byte(&path.as_bytes()[at..]);
        byte.is_some_and(|byte| byte.is_ascii_control() || b"#%./;?\\".contains(&byte))
    });
    // What is not UTF-8 may be a mark, too, for a server that reads it leniently.
    is_whole && !has_mark && std::str::from_utf8(&decoded).is_ok()
}

/// Returns the path with what is encoded decoded, and whether every percent sign stood for a byte.
pub(crate) fn decoded(path: &str) -> (Vec<u8>, bool) {
    let (mut out, mut is_whole) = (Vec::with_capacity(path.len()), true);
    let mut rest = path.as_bytes();
    while let Some(first) = rest.first() {
        let byte = if *first == b'%' { encoded_byte(rest) } else { None };
        is_whole &= *first != b'%' || byte.is_some();
        out.push(byte.unwrap_or(*first));
        rest = &rest[if byte.is_some() { 3 } else { 1 }..];
    }
    (out, is_whole)
}

/// Returns the byte that a text begins with, which is written as `%` and two hexadecimal digits.
pub(crate) fn encoded_byte(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    Some((digit(1)? << 4 | digit(2)?) as u8)
}

/// A path as it is written, and as the most lenient of servers reads it.
#[derive(Debug)]
pub struct Readings<'a> {
    pub(crate) written: &'a str,
    /// `None`: most paths can be read in one way only.
    pub(crate) lenient: Option<String>,
}

impl<'a> Readings<'a> {
    /// Returns the readings of `path`.
    pub fn of(path: &'a str) -> Self {
        let lenient = has_other_reading(path).then(|| as_read_leniently(path));
        Readings { written: path, lenient }
    }
}

/// Returns whether [`as_read_leniently`] may read a path otherwise than [`segments`] does.
pub(crate) fn has_other_reading(path: &str) -> bool {
    memchr::memchr2(b'%', b'\\', path.as_bytes()).is_some() || has_dot_segment(path)
}

/// Returns whether a segment begins with a dot and may be a dot segment: most paths have none.
fn has_dot_segment(path: &str) -> bool {
    memchr::memmem::find(path.as_bytes(), b"/.").is_some()
        && segments(path).any(|segment| matches!(segment, "." | ".."))
}

/// Returns a path with what need not be encoded decoded and dot segments resolved (RFC 3986,
/// 6.2.2), as all servers read it. What is still encoded then is part of a segment to some, and
/// more than one to others.
pub(crate) fn plainly_spelled(path: &str) -> Cow<'_, str> {
    if !has_other_reading(path) {
        return Cow::Borrowed(path);
    }
    let mut text = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = memchr::memchr(b'%', rest.as_bytes()) {
        let (before, encoded) = rest.split_at(at);
        text.push_str(before);
        let byte = encoded_byte(encoded.as_bytes());
        match byte.filter(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(byte)) {
            Some(byte) => {
                text.push(char::from(byte));
                rest = &encoded[3..];
            }
            None => {
                text.push('%');
                rest = &encoded[1..];
            }
        }
    }
    text.push_str(rest);
    Cow::Owned(without_dot_segments(&text))
}

/// Returns the path without empty segments and parameters, dot segments resolved.
fn without_dot_segments(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in segments(path) {
        match segment {
            "." => {}
            ".." => _ = kept.pop(),
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Returns a path as the most lenient of servers reads it: decoded until nothing is left to decode,
/// up to what would be a query then, back-slashes for slashes, without parameters, dot segments
/// resolved.
pub(crate) fn as_read_leniently(path: &str) -> String {
    let mut text = path.to_owned();
    for _ in 0..DECODED_MAX {
        if !text.contains('%') {
            break;
        }
        text = String::from_utf8_lossy(&decoded(&text).0).into_owned();
    }
    without_dot_segments(&text.split(['?', '#', '\0']).next().unwrap_or_default().replace('\\', "/"))
}

/// Returns the non-empty segments of a path, without parameters such as `;jsessionid=…`.
pub(crate) fn segments(path: &str) -> impl Iterator<Item = &str> {
    let plain = path.split('/').map(|segment| segment.split(';').next().unwrap_or_default());
    plain.filter(|segment| !segment.is_empty())
}

//! How a path may be spelled, and how servers of different leniency read it.

use std::borrow::Cow;

/// How often a path is decoded; no server decodes more often.
const DECODED_MAX: usize = 3;
/// File extensions of programs.
const PROGRAMS: [&str; 19] = [
    "php", "php3", "php4", "php5", "php7", "php8", "phtml", "jsp", "jspx", "do", "action", "cgi", "fcgi",
    "pl", "py", "rb", "asp", "aspx", "cfm",
];

/// Returns whether an application may take the path for another one: because of dot segments, empty
/// ones, parameters, backslashes, a program before its end, or needless encoding. A request with
/// such a path never passes ungated.
pub(crate) fn is_ambiguous(path: &str) -> bool {
    path.contains([';', '\\'])
        || path.contains("//")
        || path.split('/').any(|segment| matches!(segment, "." | ".."))
        || path.rsplit('/').skip(1).any(is_program)
        || (path.contains('%') && !is_encoded_text(path))
}

/// Returns whether a segment names a program: some servers run it, and pass it the rest of the
/// path.
fn is_program(segment: &str) -> bool {
    let extension = segment.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| PROGRAMS.iter().any(|known| known.eq_ignore_ascii_case(extension)))
}

/// Returns whether all encoded bytes of a path are text: no separators of a path, no control
/// characters, and no percent sign, which some servers decode a second time.
fn is_encoded_text(path: &str) -> bool {
    let (decoded, is_whole) = decoded(path);
    let has_mark = memchr::memchr_iter(b'%', path.as_bytes()).any(|at| {
        let byte = encoded_byte(&path.as_bytes()[at..]);
        byte.is_some_and(|byte| byte.is_ascii_control() || b"#%./;?\\".contains(&byte))
    });
    // A server that reads invalid UTF-8 leniently may see a separator in it, too.
    is_whole && !has_mark && std::str::from_utf8(&decoded).is_ok()
}

/// Returns the path decoded, and whether every percent sign began an escape.
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

/// Returns the byte that a text begins with, if it begins with `%` and two hexadecimal digits.
pub(crate) fn encoded_byte(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    Some((digit(1)? << 4 | digit(2)?) as u8)
}

/// A path as it is written, and as the most lenient of servers reads it.
#[derive(Debug)]
pub struct Readings<'a> {
    pub(crate) written: &'a str,
    /// `None`, for most paths: there is only one reading.
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

/// Returns a path with needless encoding decoded and dot segments resolved (RFC 3986, 6.2.2), as
/// all servers read it. They differ on what is then still encoded: to some it is part of a segment,
/// to others it separates segments.
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

/// Returns the path without empty segments and parameters, and with dot segments resolved.
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

/// Returns a path as the most lenient server reads it: decoded up to [`DECODED_MAX`] times, cut at
/// `?`, `#` or NUL, with slashes for backslashes, without parameters, and with dot segments
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

/// Calls `look` with the first `depth` segments of every way in which some server may read a path, until
/// it returns false. Returns what it returned last.
///
/// Servers differ on how often they decode, whether what follows a `;` is a parameter, whether empty
/// segments count, and whether they resolve dot segments at all; what is behind an encoded `?`, `#` or
/// NUL, some cut off.
pub(crate) fn all_readings(path: &str, depth: usize, mut look: impl FnMut(&[&str]) -> bool) -> bool {
    if !path.contains(['%', ';', '\\']) && !path.contains("/.") {
        let segments: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).take(depth).collect();
        return look(&segments);
    }
    let mut text = path.to_owned();
    for decoded_times in 0..=DECODED_MAX {
        if decoded_times > 0 {
            if !text.contains('%') {
                break;
            }
            text = String::from_utf8_lossy(&decoded(&text).0).into_owned();
        }
        let whole = text.replace('\\', "/");
        let cut = whole.split(['?', '#', '\0']).next().unwrap_or_default();
        let mut texts = vec![text.as_str(), &whole, cut];
        texts.dedup();
        for text in texts {
            // What makes no difference is not tried.
            let parameters = 1 + u8::from(text.contains(';'));
            let empty = 1 + u8::from(text.contains("//"));
            let dots = 1 + u8::from(text.contains("/."));
            for flags in 0..parameters * empty * dots {
                let cuts_parameters = flags % parameters == 1;
                let keeps_empty = flags / parameters % empty == 1;
                let resolves = flags / parameters / empty == 1;
                let mut kept: Vec<&str> = Vec::new();
                for segment in text.split('/').skip(1) {
                    let bare = segment.split(';').next().unwrap_or_default();
                    match if cuts_parameters { bare } else { segment } {
                        "" if !keeps_empty => {}
                        "." if resolves => {}
                        ".." if resolves => _ = kept.pop(),
                        // What has parameters is nothing else to who does not know them, or not there.
                        _ => kept.push(bare),
                    }
                }
                // Servers that count empty segments find nothing below them.
                let first: Vec<&str> = kept.into_iter().filter(|it| !it.is_empty()).take(depth).collect();
                if !look(&first) {
                    return false;
                }
            }
        }
    }
    true
}

/// Returns the non-empty segments of a path, without parameters such as `;jsessionid=…`.
pub(crate) fn segments(path: &str) -> impl Iterator<Item = &str> {
    let plain = path.split('/').map(|segment| segment.split(';').next().unwrap_or_default());
    plain.filter(|segment| !segment.is_empty())
}

//! Sessions of the application that stay at their nodes: what the application's own cookie says in
//! requests and responses. Which node that leads to, the fleet knows.

use super::head::RequestHead;
use http::header::{COOKIE, HeaderMap, SET_COOKIE};
use std::hash::{BuildHasher as _, RandomState};
use suimon_fleet::{SessionKey, SessionSaid};
use suimon_params::upstream::AffinityParams;

/// The longest suffix of a value that may be the name of a node.
const SUFFIX_BYTES_MAX: usize = 64;

/// Reads one cookie.
pub(super) struct SessionCookie {
    name: Vec<u8>,
    /// `;name=` in lower case: a part of the path that stands for the cookie, as Tomcat has it for
    /// clients that keep none.
    in_path: Vec<u8>,
    /// A value is known by its keyed hash only.
    hash: RandomState,
}

impl SessionCookie {
    pub(super) fn new(params: &AffinityParams) -> Self {
        SessionCookie {
            name: params.cookie.clone().into_bytes(),
            in_path: format!(";{}=", params.cookie.to_ascii_lowercase()).into_bytes(),
            hash: RandomState::new(),
        }
    }

    /// Returns what a request comes with: the cookie, or else what stands for it in the path.
    pub(super) fn asked(&self, head: &RequestHead) -> Option<SessionKey> {
        let lines = head.parts.headers.get_all(COOKIE).into_iter();
        let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';').filter_map(pair));
        let value = pairs.into_iter().find_map(|(name, value)| (name == self.name).then_some(value));
        let value = value.or_else(|| self.in_path(head.parts.uri.path().as_bytes()));
        value.filter(|value| !value.is_empty()).map(|value| self.key(value))
    }

    /// Returns what a response says of the session. Of several words the last counts, as in a browser.
    pub(super) fn said(&self, headers: &HeaderMap) -> SessionSaid {
        let mut lines = headers.get_all(SET_COOKIE).into_iter().filter_map(|line| {
            let mut parts = line.as_bytes().split(|byte| *byte == b';');
            let (name, value) = pair(parts.next()?)?;
            (name == self.name).then_some((value, parts))
        });
        match lines.next_back() {
            None => SessionSaid::Nothing,
            Some((value, attributes)) if value.is_empty() || is_withdrawn(attributes.clone()) => {
                SessionSaid::Withdrawn
            }
            Some((value, _)) => SessionSaid::Set(self.key(value)),
        }
    }

    fn in_path<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        let mut rest = path;
        while let Some(at) = memchr::memchr(b';', rest) {
            rest = &rest[at..];
            if rest.get(..self.in_path.len()).is_some_and(|name| name.eq_ignore_ascii_case(&self.in_path)) {
                let value = &rest[self.in_path.len()..];
                return value.split(|byte| matches!(byte, b';' | b'/')).next();
            }
            rest = &rest[1..];
        }
        None
    }

    fn key(&self, value: &[u8]) -> SessionKey {
        let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        let suffix = memchr::memrchr(b'.', value).map(|dot| &value[dot + 1..]);
        let suffix = suffix.filter(|suffix| (1..=SUFFIX_BYTES_MAX).contains(&suffix.len()));
        // Told apart, so that a value is not taken for another's suffix.
        SessionKey {
            value: self.hash.hash_one((0_u8, value)),
            suffix: suffix.map(|suffix| self.hash.hash_one((1_u8, suffix))),
        }
    }
}

/// Returns whether a cookie with these attributes is taken back: what is no longer good was not good
/// for long. A date is looked at only for its year, as those who take a cookie back name one long ago.
fn is_withdrawn<'a>(attributes: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut by_date = false;
    for (name, value) in attributes.filter_map(pair) {
        if name.eq_ignore_ascii_case(b"max-age") {
            // It goes before any date.
            return value.starts_with(b"-") || !value.is_empty() && value.iter().all(|byte| *byte == b'0');
        }
        if name.eq_ignore_ascii_case(b"expires") {
            by_date = year(value).is_some_and(|year| year < 2000);
        }
    }
    by_date
}

/// Returns the year in a date: `Thu, 01 Jan 1970 00:00:00 GMT`, or with dashes and two digits.
fn year(date: &[u8]) -> Option<u32> {
    let words = date.split(|byte| matches!(byte, b' ' | b'-')).filter(|word| !word.is_empty());
    let mut numbers = words.filter_map(|word| std::str::from_utf8(word).ok()?.parse::<u32>().ok());
    // The first number is the day.
    numbers.nth(1).map(|year| match year {
        0..70 => 2000 + year,
        70..100 => 1900 + year,
        year => year,
    })
}

fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'=', text)?;
    Some((text[..at].trim_ascii(), text[at + 1..].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, Request};

    fn cookie() -> SessionCookie {
        let idle = std::time::Duration::from_secs(1);
        SessionCookie::new(&AffinityParams { cookie: "JSESSIONID".to_owned(), idle })
    }

    fn asked(cookie: &SessionCookie, path: &str, lines: &[&str]) -> Option<SessionKey> {
        let request = lines.iter().fold(Request::get(path), |request, line| request.header(COOKIE, *line));
        let (parts, ()) = request.body(()).unwrap().into_parts();
        cookie.asked(&RequestHead::from(parts))
    }

    fn said(cookie: &SessionCookie, lines: &[&str]) -> SessionSaid {
        let lines = lines.iter().map(|line| (SET_COOKIE, HeaderValue::from_str(line).unwrap()));
        cookie.said(&lines.collect())
    }

    #[test]
    fn what_was_set_is_what_is_asked_with() {
        let cookie = cookie();
        let SessionSaid::Set(set) = said(&cookie, &["a=b", "JSESSIONID=abc; Path=/; HttpOnly"]) else {
            panic!("it is set");
        };
        for lines in [
            &["JSESSIONID=abc"] as &[_],
            &["a=b; JSESSIONID=abc;c=d"],
            &["a=b", "x; JSESSIONID = abc "],
            &["JSESSIONID=\"abc\""],
        ] {
            assert_eq!(asked(&cookie, "/", lines), Some(set), "{lines:?}");
        }
        for lines in
            [&[] as &[_], &["XJSESSIONID=abc"], &["jsessionid=abc"], &["JSESSIONID="], &["JSESSIONID"]]
        {
            assert_eq!(asked(&cookie, "/", lines), None, "{lines:?}");
        }
        assert_ne!(asked(&cookie, "/", &["JSESSIONID=abd"]), Some(set));
    }

    #[test]
    fn a_part_of_the_path_stands_for_the_cookie() {
        let cookie = cookie();
        let by_cookie = asked(&cookie, "/", &["JSESSIONID=abc"]);
        for path in [
            "/shop;jsessionid=abc",
            "/shop;v=1;jsessionid=abc;x/cart?a=1",
            "/;JSESSIONID=abc/",
            "/a;jsession;jsessionid=abc",
        ] {
            assert_eq!(asked(&cookie, path, &[]), by_cookie, "{path}");
        }
        for path in ["/shop;jsessionid", "/shop;xjsessionid=abc", "/?a=;jsessionid=abc", "/;jsessionid="] {
            assert_eq!(asked(&cookie, path, &[]), None, "{path}");
        }
        assert_eq!(asked(&cookie, "/;jsessionid=xyz", &["JSESSIONID=abc"]), by_cookie);
    }

    #[test]
    fn a_cookie_is_withdrawn_by_an_empty_value_or_an_end_that_is_past() {
        let cookie = cookie();
        for line in [
            "JSESSIONID=; Path=/",
            "JSESSIONID=abc; Max-Age=0",
            "JSESSIONID=abc; max-age=-1; Expires=Thu, 01 Jan 2099 00:00:00 GMT",
            "JSESSIONID=abc; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "JSESSIONID=abc; expires=Thu, 01-Jan-70 00:00:10 GMT",
        ] {
            assert_eq!(said(&cookie, &[line]), SessionSaid::Withdrawn, "{line}");
        }
        for line in [
            "JSESSIONID=abc",
            "JSESSIONID=abc; Max-Age=3600",
            "JSESSIONID=abc; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "JSESSIONID=abc; Expires=Fri, 01 Jan 2038 00:00:00 GMT",
            "JSESSIONID=abc; Expires=soon",
        ] {
            assert!(matches!(said(&cookie, &[line]), SessionSaid::Set(_)), "{line}");
        }
        assert_eq!(said(&cookie, &["other=abc; Max-Age=0"]), SessionSaid::Nothing);
        assert!(matches!(said(&cookie, &["JSESSIONID=; Max-Age=0", "JSESSIONID=abc"]), SessionSaid::Set(_)));
    }

    #[test]
    fn what_stands_behind_the_last_dot_is_a_suffix() {
        let cookie = cookie();
        let suffix = |value: &str| asked(&cookie, "/", &[&format!("JSESSIONID={value}")]).unwrap().suffix;
        assert_eq!(suffix("abc.node1"), suffix("xyz.7.node1"));
        assert_ne!(suffix("abc.node1"), suffix("abc.node2"));
        assert_eq!(
            (suffix("abc"), suffix("abc."), suffix(&format!("a.{}", "b".repeat(65)))),
            (None, None, None)
        );
    }
}

//! One user's cookies: kept and sent as RFC 6265 says, for one host.

use std::time::{Duration, SystemTime};

use cookie::Cookie;
use http::HeaderValue;
use suimon_model::Instant;

use crate::target::BaseUrl;

/// How the names of ticket cookies begin, on plain and on encrypted connections. The line's name
/// follows.
const TICKETS: [&str; 2] = ["suimon-ticket-", "__Host-suimon-ticket-"];

/// The most cookies kept; beyond that the oldest is removed. (RFC 6265 asks for at least 50 per
/// domain.)
const COOKIES_MAX: usize = 64;
/// A longer `Set-Cookie` is ignored.
const COOKIE_BYTES_MAX: usize = 8 * 1024;

/// One user's cookies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jar {
    /// In the order in which they were first set.
    kept: Vec<Kept>,
}

#[derive(Clone, Debug)]
struct Kept {
    name: String,
    value: String,
    path: String,
    /// `None`: a session cookie, kept as long as the visit lasts.
    ends: Option<Instant>,
}

/// A ticket, as a cookie holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TicketCookie<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
    /// Which line.
    pub(crate) line: &'a str,
}

impl Jar {
    /// Returns a jar with one cookie in it, for all paths.
    pub(crate) fn with(name: &str, value: &str) -> Self {
        let (name, value, path) = (name.to_owned(), value.to_owned(), "/".to_owned());
        Jar { kept: vec![Kept { name, value, path, ends: None }] }
    }

    /// Returns the ticket it holds; of several, the one whose line came last.
    pub(crate) fn ticket(&self) -> Option<TicketCookie<'_>> {
        let ticket = |kept: &'_ Kept| line_of(&kept.name).is_some();
        let kept = self.kept.iter().rfind(|kept| ticket(kept))?;
        Some(TicketCookie { name: &kept.name, value: &kept.value, line: line_of(&kept.name)? })
    }

    /// Stores one `Set-Cookie` of a response to a request for `path`. Ignores cookies that a
    /// browser would ignore.
    pub(crate) fn store(&mut self, base: &BaseUrl, path: &str, header: &HeaderValue, now: Instant) {
        let Some(cookie) = header.to_str().ok().filter(|text| text.len() <= COOKIE_BYTES_MAX) else { return };
        let Ok(cookie) = Cookie::parse(cookie) else { return };
        let secure = cookie.secure() == Some(true);
        let prefixed = cookie.name().starts_with("__Secure-") || cookie.name().starts_with("__Host-");
        if secure && !base.is_loopback() || prefixed && !secure {
            return;
        }
        if cookie.domain().is_some_and(|domain| !covers(domain, &base.host)) {
            return;
        }
        let own_path = cookie.path().filter(|path| path.starts_with('/'));
        if cookie.name().starts_with("__Host-") && (own_path != Some("/") || cookie.domain().is_some()) {
            return;
        }
        let kept = Kept {
            name: cookie.name().to_owned(),
            value: cookie.value().to_owned(),
            path: own_path.unwrap_or_else(|| default_path(path)).to_owned(),
            ends: ends(&cookie, now),
        };
        self.put(kept, now);
    }

    fn put(&mut self, new: Kept, now: Instant) {
        let same = |old: &Kept| old.name == new.name && old.path == new.path;
        let over = new.ends.is_some_and(|ends| ends <= now);
        match self.kept.iter().position(same) {
            Some(old) if over => drop(self.kept.remove(old)),
            Some(old) => self.kept[old] = new,
            None if over => {}
            None => {
                if self.kept.len() >= COOKIES_MAX {
                    self.kept.remove(0);
                }
                self.kept.push(new);
            }
        }
    }

    /// Returns the `Cookie` header of a request for `path`, if there is anything to send.
    pub(crate) fn header(&mut self, path: &str, now: Instant) -> Option<HeaderValue> {
        self.kept.retain(|kept| kept.ends.is_none_or(|ends| ends > now));
        let mut fitting: Vec<&Kept> = self.kept.iter().filter(|kept| matches(&kept.path, path)).collect();
        if fitting.is_empty() {
            return None;
        }
        fitting.sort_by_key(|kept| std::cmp::Reverse(kept.path.len()));
        let pairs: Vec<String> = fitting.iter().map(|kept| format!("{}={}", kept.name, kept.value)).collect();
        HeaderValue::try_from(pairs.join("; ")).ok()
    }
}

/// Returns when the cookie expires. `Max-Age` takes precedence over `Expires`.
fn ends(cookie: &Cookie<'_>, now: Instant) -> Option<Instant> {
    if let Some(age) = cookie.max_age() {
        return Some(now + Duration::try_from(age).unwrap_or_default());
    }
    let expires = SystemTime::from(cookie.expires_datetime()?);
    Some(now + expires.duration_since(SystemTime::now()).unwrap_or_default())
}

fn covers(domain: &str, host: &str) -> bool {
    let domain = domain.trim_start_matches('.').to_ascii_lowercase();
    let host = host.to_ascii_lowercase();
    host == domain || host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.'))
}

/// The folder of the request's path (RFC 6265, 5.1.4).
fn default_path(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or_default();
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(slash) => &path[..slash],
    }
}

fn matches(cookie_path: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.strip_prefix(cookie_path)
        .is_some_and(|rest| rest.is_empty() || cookie_path.ends_with('/') || rest.starts_with('/'))
}

/// Returns the line of a ticket cookie with this name, or `None` for another cookie.
pub(crate) fn line_of(cookie: &str) -> Option<&str> {
    TICKETS.iter().find_map(|prefix| cookie.strip_prefix(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    fn jar_at(url: &str, path: &str, set: &[&str]) -> Jar {
        let base = BaseUrl::parse(url).unwrap();
        let mut jar = Jar::default();
        for header in set {
            jar.store(&base, path, &HeaderValue::from_str(header).unwrap(), NOW);
        }
        jar
    }

    fn sent(jar: &mut Jar, path: &str) -> String {
        jar.header(path, NOW).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    }

    fn after(set: &[&str]) -> String {
        sent(&mut jar_at("http://127.0.0.1:1", "/", set), "/")
    }

    #[test]
    fn cookies_come_back_and_the_newest_value_wins() {
        assert_eq!(after(&["a=1; HttpOnly; SameSite=Lax", "b=\"2\"", "a=3"]), "a=3; b=\"2\"");
    }

    #[test]
    fn a_cookie_with_no_time_left_is_forgotten() {
        assert_eq!(after(&["a=1", "a=; Max-Age=0"]), "");
        assert_eq!(after(&["a=1", "a=; Max-Age=-5"]), "");
        assert_eq!(after(&["a=1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]), "");
        assert_eq!(after(&["a=1; Max-Age=9; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]), "a=1", "Max-Age wins");
    }

    #[test]
    fn a_cookie_ends_when_its_time_is_over() {
        let mut jar = jar_at("http://127.0.0.1", "/", &["a=1; Max-Age=5", "b=2"]);
        let later = NOW + Duration::from_secs(5);
        assert_eq!(jar.header("/", later).unwrap(), "b=2");
    }

    #[test]
    fn paths_decide_where_a_cookie_goes() {
        let mut jar = jar_at(
            "http://127.0.0.1",
            "/shop/cart?x=/y/z",
            &["own=1", "all=2; Path=/", "buy=3; Path=/shop/buy"],
        );
        assert_eq!(sent(&mut jar, "/shop/buy?now"), "buy=3; own=1; all=2");
        assert_eq!(sent(&mut jar, "/shop"), "own=1; all=2");
        assert_eq!(sent(&mut jar, "/shopping"), "all=2");
        assert_eq!(sent(&mut jar, "/shop/buyer"), "own=1; all=2");
    }

    #[test]
    fn a_secure_cookie_is_taken_only_where_browsers_take_it() {
        let secure = ["a=1; Secure", "__Host-l=2; Secure; Path=/"];
        assert_eq!(sent(&mut jar_at("http://localhost", "/", &secure), "/"), "a=1; __Host-l=2");
        assert_eq!(sent(&mut jar_at("http://shop.example", "/", &secure), "/"), "");
        assert_eq!(after(&["__Host-a=1; Path=/", "__Secure-b=1", "__Host-c=1; Secure; Path=/x"]), "");
    }

    #[test]
    fn a_cookie_for_another_domain_is_not_taken() {
        let set = ["a=1; Domain=example.com", "b=2; Domain=evil.com", "c=3; Domain=ple.com"];
        assert_eq!(sent(&mut jar_at("http://shop.example.com", "/", &set), "/"), "a=1");
    }

    #[test]
    fn the_jar_is_bounded() {
        let mut jar = Jar::default();
        let base = BaseUrl::parse("http://127.0.0.1").unwrap();
        for i in 0..200 {
            jar.store(&base, "/", &HeaderValue::try_from(format!("c{i}=1")).unwrap(), NOW);
        }
        assert_eq!(jar.kept.len(), COOKIES_MAX);
        assert!(sent(&mut jar, "/").ends_with("c199=1"));
        jar.store(&base, "/", &HeaderValue::try_from("x".repeat(9000) + "=1").unwrap(), NOW);
        assert!(sent(&mut jar, "/").ends_with("c199=1"));
    }

    #[test]
    fn rubbish_is_not_taken() {
        assert_eq!(after(&["", "=1", "novalue", ";;;"]), "");
    }
}

//! Which of the application's cookies identify a visitor.
//!
//! A declared one does. So does one whose name says so, whatever hash it ends in, unless everybody
//! could have its value. The rest are known by their behaviour: a cookie that scripts cannot read
//! (`HttpOnly`), with a long and random value, of which three sessions in a row were given values
//! of their own. As soon as two sessions are given the same value under a name that is being
//! observed, it is that of a setting, and never observed again. Names are few and are remembered
//! without the hash.

use std::sync::{Mutex, OnceLock, PoisonError};
use suimon_model::SessionId;

/// What the names of session cookies have in common: PHPSESSID, JSESSIONID, connect.sid,
/// laravel_session, `_shop_key`, ... Compared without regard to case.
const TELLING_PARTS: [&[u8]; 3] = [b"sess", b"cfid", b"cakephp"];
const TELLING_ENDS: [&[u8]; 3] = [b"sid", b"_key", b"symfony"];
/// The shortest value that can identify a visitor, under a telling name and under any; `sess=1`
/// cannot.
const VALUE_MIN: usize = 12;
const VALUE_MIN_ANY: usize = 16;
/// The shortest end of a name that is a hash.
const HASH_MIN: usize = 6;
/// Names found to be of session cookies, and names under observation, at most.
const FOUND_MAX: usize = 8;
const LOOKED_AT_MAX: usize = 32;
/// Sessions that must have been given values of their own.
const OWN_VALUES: usize = 3;

/// Names of cookies, and what is known of them.
#[derive(Debug)]
pub(super) struct CookieNames {
    /// Those that were found. Filled from the front, so that requests read them without a lock.
    found: [OnceLock<Box<[u8]>>; FOUND_MAX],
    looked_at: Mutex<Vec<LookedAt>>,
}

/// A name that may be that of session cookies.
#[derive(Debug)]
struct LookedAt {
    stem: Box<[u8]>,
    /// Values by their keyed hash, and the sessions they were given to.
    given: Vec<(u128, SessionId)>,
    is_setting: bool,
}

impl CookieNames {
    /// Returns a memory that knows no name yet.
    pub(super) fn new() -> CookieNames {
        CookieNames { found: Default::default(), looked_at: Mutex::default() }
    }

    /// Returns whether a cookie of this name and value, in a request or in an answer, identifies
    /// its visitor.
    pub(super) fn tell(&self, name: &[u8], value: &[u8]) -> bool {
        if value.len() < VALUE_MIN || !is_random(value) {
            return false;
        }
        if has_telling_name(name) {
            return true;
        }
        let Some(first) = self.found[0].get() else { return false };
        let stem = stem(name);
        let mut found = std::iter::once(first).chain(self.found[1..].iter().map_while(OnceLock::get));
        value.len() >= VALUE_MIN_ANY && found.any(|found| **found == *stem)
    }

    /// Observes a cookie that an answer gives to `session` and that [`CookieNames::tell`] does not
    /// know. `key` is the keyed hash of its name and value. Returns whether it may be that of a
    /// session, so that its value is worth remembering.
    pub(super) fn look_at(&self, name: &[u8], value: &[u8], key: u128, session: SessionId) -> bool {
        if value.len() < VALUE_MIN_ANY || !is_random(value) {
            return false;
        }
        let stem = stem(name);
        let mut all = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|it| *it.stem == *stem);
        let Some(at) = at.or_else(|| {
            let is_room = all.len() < LOOKED_AT_MAX;
            is_room
                .then(|| all.push(LookedAt { stem: stem.into(), given: Vec::new(), is_setting: false }))?;
            Some(all.len() - 1)
        }) else {
            return false;
        };
        let it = &mut all[at];
        it.is_setting |= it.given.iter().any(|(other, to)| *other == key && *to != session);
        if it.is_setting || it.given.len() == OWN_VALUES {
            return !it.is_setting;
        }
        if it.given.iter().all(|(_, to)| *to != session) {
            it.given.push((key, session));
        }
        if it.given.len() == OWN_VALUES
            && let Some(free) = self.found.iter().find(|slot| slot.get().is_none())
        {
            // Only here, under the lock, are they filled.
            let _ = free.set(it.stem.clone());
        }
        true
    }
}

/// Returns whether an answer's `Set-Cookie` deletes a cookie rather than setting one. `now` is in
/// seconds since 1970.
pub(super) fn is_withdrawn(line: &[u8], value: &[u8], now: impl FnOnce() -> u32) -> bool {
    if value.is_empty() || value == b"deleted" {
        return true;
    }
    let is = |name: &[u8], one: &[u8]| name.eq_ignore_ascii_case(one);
    let attributes = || line.split(|byte| *byte == b';').skip(1).filter_map(super::split_pair);
    if let Some((_, age)) = attributes().find(|(name, _)| is(name, b"max-age")) {
        return age == b"0" || age.first() == Some(&b'-');
    }
    let Some((_, expires)) = attributes().find(|(name, _)| is(name, b"expires")) else { return false };
    // By the year alone: a deletion says 1970, or a year ago.
    let words = expires.split(|byte| matches!(byte, b' ' | b'-'));
    let year =
        words.filter(|word| word.len() == 4).find_map(|word| std::str::from_utf8(word).ok()?.parse().ok());
    year.is_some_and(|year: u32| year < 1970 + now() / 31_556_952)
}

/// Returns whether an answer's `Set-Cookie` keeps the cookie from scripts.
pub(super) fn is_http_only(line: &[u8]) -> bool {
    line.split(|byte| *byte == b';').any(|part| part.trim_ascii().eq_ignore_ascii_case(b"httponly"))
}

/// Returns whether a value looks random rather than written by a person: `not-logged-in-yet` and
/// `accepted-v2` do not.
fn is_random(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_mixed = || value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase);
    digits >= 2 || value.len() >= 20 && is_mixed()
}

fn has_telling_name(name: &[u8]) -> bool {
    let part = |part: &&[u8]| name.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part));
    let stem = stem(name);
    let end_of = |name: &[u8], end: &[u8]| {
        name.len() >= end.len() && name[name.len() - end.len()..].eq_ignore_ascii_case(end)
    };
    let end = |end: &&[u8]| {
        let bare = stem.strip_suffix(b"_").or(stem.strip_suffix(b"-")).or(stem.strip_suffix(b"."));
        end_of(name, end) || end_of(bare.unwrap_or(stem), end)
    };
    TELLING_PARTS.iter().any(part) || TELLING_ENDS.iter().any(end)
}

/// Returns a name without the hash it ends in: `wordpress_sec_` of `wordpress_sec_5c016e8f`,
/// nothing of a name that is all hash.
fn stem(name: &[u8]) -> &[u8] {
    let has_digit = |text: &[u8]| text.iter().any(u8::is_ascii_digit);
    let after = name.iter().rposition(|byte| !byte.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    let tail = &name[after..];
    if after > 0 && tail.len() >= HASH_MIN && has_digit(tail) {
        return &name[..after];
    }
    let hex = name.iter().rposition(|byte| !byte.is_ascii_hexdigit()).map_or(0, |at| at + 1);
    let is_hash = name.len() - hex >= HASH_MIN + 2 && has_digit(&name[hex..]);
    if is_hash { &name[..hex] } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONG: &[u8] = b"8f1c2d3e4b5a6978";

    fn given(names: &CookieNames, name: &str, value: &str, session: u64) -> bool {
        let key = u128::from_le_bytes(blake3::hash(value.as_bytes()).as_bytes()[..16].try_into().unwrap());
        names.look_at(name.as_bytes(), value.as_bytes(), key, SessionId(session))
    }

    fn own(n: u64) -> String {
        format!("{}|{n}", blake3::hash(&n.to_le_bytes()).to_hex())
    }

    #[test]
    fn names_tell_whatever_hash_they_end_in() {
        let names = CookieNames::new();
        for name in [
            "JSESSIONID",
            "JSESSIONID.node1",
            "PHPSESSID_abc",
            "connect.sid",
            "SSESS3f2a9c0011aabbccddeeff0011223344",
            "ASPSESSIONIDQQABCDEF",
            "ASP.NET_SessionId",
            "laravel_session",
            "_myapp_session",
            "__Host-shop_sid",
            "sid_3f2a9c00",
            "shop-sid-3f2a9c00",
            "app_key.3f2a9c00",
        ] {
            assert!(names.tell(name.as_bytes(), LONG), "{name}");
        }
        for name in ["theme", "csrftoken", "_ga", "lang", "s", "_ga_3F2A9C0011", "side", "XSRF-TOKEN"] {
            assert!(!names.tell(name.as_bytes(), LONG), "{name}");
        }
        for value in ["1", "not-logged-in-yet", "accepted-all-v2", ""] {
            assert!(!names.tell(b"session", value.as_bytes()), "everybody could have {value}");
        }
    }

    #[test]
    fn a_name_nobody_knows_tells_once_three_sessions_were_given_values_of_their_own() {
        let names = CookieNames::new();
        let name = |hash: u64| format!("wordpress_sec_{hash:016x}");
        let value = own(0);
        for session in 0..3 {
            assert!(!names.tell(name(9).as_bytes(), value.as_bytes()), "{session}");
            assert!(given(&names, &name(9), &own(session), session));
        }
        assert!(names.tell(name(9).as_bytes(), value.as_bytes()));
        assert!(names.tell(name(0x1234).as_bytes(), own(7).as_bytes()), "the hash may be another");
        assert!(!names.tell(b"wordpress_test_cookie", value.as_bytes()));
        assert!(!names.tell(name(9).as_bytes(), b"no"));
    }

    #[test]
    fn one_session_alone_or_the_same_value_for_all_make_no_name() {
        let names = CookieNames::new();
        for n in 0..10 {
            given(&names, "renewed", &own(n), 1);
            given(&names, "variant", "8f1c2d3e4b5a6978", n);
        }
        assert!(!names.tell(b"renewed", own(1).as_bytes()) && !names.tell(b"variant", LONG));
        (20..30).for_each(|n| _ = given(&names, "variant", &own(n), n));
        assert!(!names.tell(b"variant", own(21).as_bytes()), "a setting stays one");
    }

    #[test]
    fn names_are_bounded() {
        let names = CookieNames::new();
        for n in 0..1000_u64 {
            let name = format!("name{}", "x".repeat(n as usize));
            (0..3).for_each(|session| _ = given(&names, &name, &own(session * 1000 + n), session));
        }
        assert!(names.looked_at.lock().unwrap().len() <= LOOKED_AT_MAX);
        assert!(names.found.iter().all(|slot| slot.get().is_some()));
    }

    #[test]
    fn what_takes_a_cookie_away_is_told_from_what_gives_one() {
        let is = |line: &str| {
            let value = line.split_once('=').unwrap().1.split(';').next().unwrap();
            is_withdrawn(line.as_bytes(), value.as_bytes(), || 1_795_000_000)
        };
        for line in [
            "PHPSESSID=deleted; expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0; path=/",
            "sessionid=\"\"; expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=0; Path=/",
            "sid=; Path=/",
            "sid=0123456789abcdef; Max-Age=-1",
            "sid=0123456789abcdef; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        ] {
            assert!(is(line), "{line}");
        }
        for line in [
            "sid=0123456789abcdef",
            "sid=0123456789abcdef; Max-Age=3600; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "sid=0123456789abcdef; Expires=Wed, 01 Dec 2027 00:00:00 GMT",
        ] {
            assert!(!is(line), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_met_without_a_stumble(name in prop::collection::vec(any::<u8>(), 0..40), value in prop::collection::vec(any::<u8>(), 0..40)) {
            let names = CookieNames::new();
            names.look_at(&name, &value, 1, SessionId(1));
            names.tell(&name, &value);
            is_withdrawn(&name, &value, || 0);
            prop_assert!(name.starts_with(stem(&name)));
        }
    }
}

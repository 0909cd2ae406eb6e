//! The lease: a signed cookie that says "this session was admitted".
//!
//! Fixed width, sealed (see [`crate::sealed`]): 43 characters for 32 bytes.
//!
//! | bytes | holds |
//! |---|---|
//! | 1 | version, 1 |
//! | 1 | id of the key it is signed with |
//! | 2 | tag of the session's kind: the first bytes of its name's hash, so that kinds may be reordered |
//! | 8 | session id |
//! | 4 | seconds since 1970 it was issued at |
//! | 16 | keyed BLAKE3 of all before, cut to 128 bits |
//!
//! It proves admission and nothing else. A thief of one skips the line; it opens no account.
//!
//! A lease *stands* by itself for its life before and after the moment it was issued: before it,
//! since a clock that was ahead may have been corrected meanwhile. A lease from before the last
//! opening of its line does not. A lease that does not stand still names its session, and is good
//! as long as the gate has that session.

use crate::keys::Keys;
use crate::sealed::{self, Seal};
use http::HeaderValue;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use suimon_model::{KindId, SessionId};

const BYTES: usize = 32;
/// Characters of one.
pub const TEXT_LEN: usize = sealed::text_len(BYTES);
const VERSION: u8 = 1;

/// The cookie's name on plain connections. Where there are several kinds of session, or several sites,
/// each has its own: the kind's tag follows, four hexadecimal digits.
const NAME: &str = "suimon";
/// How the name begins where the client's connection is encrypted: browsers then keep other hosts
/// and paths from setting it.
const SECURE: &str = "__Host-";

/// Issues and checks leases.
#[derive(Debug)]
pub struct Leases {
    seal: Seal,
    life: u32,
    /// By kind.
    tags: Vec<[u8; 2]>,
    /// Whether the cookie's name ends in the kind's tag.
    is_tagged: bool,
    /// By kind: leases issued until then, seconds since 1970, do not stand by themselves.
    after: Vec<AtomicU32>,
}

/// A lease that was found good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proof {
    /// The session's kind.
    pub kind: KindId,
    /// The session.
    pub session: SessionId,
    /// Whether it proves the session by itself, whatever the gate knows.
    pub stands: bool,
    /// Whether the visitor is to get a newer one.
    pub renewal_due: bool,
}

impl Leases {
    /// Returns leases for the kinds of these names, good for `life` seconds. Two names whose tags
    /// are equal are returned as an error. `site`: its name, where a gateway has several and this is not
    /// the main one; another site's cookies may be of the same host.
    pub fn new<'a>(
        keys: Keys,
        life: u32,
        site: Option<&str>,
        kinds: impl Iterator<Item = &'a str>,
    ) -> Result<Self, (String, String)> {
        let mut names: Vec<&str> = Vec::new();
        let mut tags: Vec<[u8; 2]> = Vec::new();
        for name in kinds {
            let hash = match site {
                None => blake3::hash(name.as_bytes()),
                Some(site) => blake3::hash(format!("{site}/{name}").as_bytes()),
            };
            let tag = [hash.as_bytes()[0], hash.as_bytes()[1]];
            if let Some(at) = tags.iter().position(|other| *other == tag) {
                return Err((names[at].to_owned(), name.to_owned()));
            }
            names.push(name);
            tags.push(tag);
        }
        let after = tags.iter().map(|_| AtomicU32::new(0)).collect();
        let is_tagged = site.is_some() || tags.len() > 1;
        Ok(Leases { seal: Seal::of_leases(keys), life, tags, is_tagged, after })
    }

    /// Returns what distinguishes each kind's leases and tickets from those of the others.
    pub fn tags(&self) -> Vec<[u8; 2]> {
        self.tags.clone()
    }

    /// Takes note that an opening ends the leases of `kind` that were issued until `now`: they are
    /// good only for sessions that the gate has.
    pub fn end_all(&self, kind: KindId, now: u32) {
        if let Some(after) = self.after.get(kind.index()) {
            after.store(now, Relaxed);
        }
    }

    /// Returns until when leases of `kind` were ended by an opening, seconds since 1970; 0: none
    /// were.
    pub fn ended_until(&self, kind: KindId) -> u32 {
        self.after.get(kind.index()).map_or(0, |after| after.load(Relaxed))
    }

    /// Returns the `Set-Cookie` of a fresh lease. `now` is in seconds since 1970.
    pub fn issue(&self, kind: KindId, session: SessionId, now: u32, secure: bool) -> HeaderValue {
        let tag = self.tags.get(kind.index()).copied().unwrap_or_default();
        let mut lease = [0; BYTES];
        lease[0] = VERSION;
        lease[1] = self.seal.key();
        lease[2..4].copy_from_slice(&tag);
        lease[4..12].copy_from_slice(&session.0.to_be_bytes());
        lease[12..16].copy_from_slice(&now.to_be_bytes());
        self.seal.sign(&mut lease);
        self.cookie(kind, |out| sealed::encode(&lease, out), self.life, secure)
    }

    /// Returns the `Set-Cookie` that takes a lease of `kind` back, once its session has ended.
    pub fn withdraw(&self, kind: KindId, secure: bool) -> HeaderValue {
        self.cookie(kind, |_| {}, 0, secure)
    }

    /// Returns what the cookie's `text` proves, if it is a lease of ours. `now` is in seconds since
    /// 1970.
    pub fn check(&self, text: &[u8], now: u32) -> Option<Proof> {
        let lease: [u8; BYTES] = sealed::decode(text)?;
        if lease[0] != VERSION || !self.seal.is_ours(&lease) {
            return None;
        }
        let kind = self.tags.iter().position(|tag| *tag == lease[2..4])?;
        let issued = u32::from_be_bytes(lease[12..16].try_into().expect("four bytes"));
        let stands = now.abs_diff(issued) < self.life && issued > self.after[kind].load(Relaxed);
        let session = SessionId(u64::from_be_bytes(lease[4..12].try_into().expect("eight bytes")));
        let is_old = now.abs_diff(issued) > self.life / 2;
        let renewal_due = !stands || is_old || lease[1] != self.seal.key();
        Some(Proof { kind: KindId(kind as u32), session, stands, renewal_due })
    }

    fn cookie(&self, kind: KindId, value: impl FnOnce(&mut Vec<u8>), age: u32, secure: bool) -> HeaderValue {
        // A payment provider's cross-site POST back into checkout has to carry it; it grants no
        // authority.
        let (secure, flags) = if secure { (SECURE, "Secure; SameSite=None") } else { ("", "SameSite=Lax") };
        match self.tags.get(kind.index()) {
            Some([high, low]) if self.is_tagged => {
                sealed::set_cookie(format_args!("{secure}{NAME}-{high:02x}{low:02x}"), value, age, flags)
            }
            _ => sealed::set_cookie(format_args!("{secure}{NAME}"), value, age, flags),
        }
    }
}

/// Returns whether a cookie of this name may be a lease.
pub fn is_name(name: &[u8]) -> bool {
    let name = name.strip_prefix(SECURE.as_bytes()).unwrap_or(name);
    let Some(rest) = name.strip_prefix(NAME.as_bytes()) else { return false };
    match rest {
        [] => true,
        [b'-', tag @ ..] => {
            tag.len() == 4 && tag.iter().all(|letter| matches!(letter, b'0'..=b'9' | b'a'..=b'f'))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leases(keys: Keys) -> Leases {
        Leases::new(keys, 3600, None, ["visit", "shopping"].into_iter()).unwrap()
    }

    fn value(cookie: &HeaderValue) -> Vec<u8> {
        let text = cookie.to_str().unwrap();
        let value = text.split_once('=').unwrap().1.split(';').next().unwrap();
        value.as_bytes().to_vec()
    }

    fn keys(lines: &[(u8, char)]) -> Keys {
        use std::os::unix::fs::PermissionsExt;
        let file = tempfile::NamedTempFile::new().unwrap();
        let text: String =
            lines.iter().map(|(id, digit)| format!("{id} {}\n", digit.to_string().repeat(64))).collect();
        std::fs::write(file.path(), text).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
        Keys::open(file.path()).unwrap()
    }

    #[test]
    fn a_lease_proves_its_session_until_it_is_old() {
        let leases = leases(keys(&[(1, 'a')]));
        let text = value(&leases.issue(KindId(1), SessionId(77), 1_000_000, false));
        let proof = |now| leases.check(&text, now);
        let fresh = Proof { kind: KindId(1), session: SessionId(77), stands: true, renewal_due: false };
        let old = Proof { stands: false, renewal_due: true, ..fresh };
        assert_eq!(proof(1_000_000), Some(fresh));
        assert_eq!(proof(1_001_801), Some(Proof { renewal_due: true, ..fresh }));
        assert_eq!(proof(1_003_599), Some(Proof { renewal_due: true, ..fresh }));
        assert_eq!(proof(1_003_600), Some(old), "it names its session, and proves nothing");
    }

    #[test]
    fn a_lease_issued_by_a_clock_that_was_ahead_stands_for_its_life() {
        let leases = leases(keys(&[(1, 'a')]));
        let text = value(&leases.issue(KindId(1), SessionId(77), 1_000_000, false));
        let stands = |now| leases.check(&text, now).unwrap().stands;
        assert!(stands(999_935) && stands(1_000_000 - 3_599));
        assert!(!stands(1_000_000 - 3_600), "ahead by its life");
    }

    #[test]
    fn an_opening_ends_what_was_issued_before_it_of_its_kind_alone() {
        let leases = leases(keys(&[(1, 'a')]));
        let issued = |kind, now| value(&leases.issue(KindId(kind), SessionId(77), now, false));
        let (before, at_once, after) = (issued(1, 999), issued(1, 1000), issued(1, 1001));
        let other = issued(0, 999);
        leases.end_all(KindId(1), 1000);
        assert_eq!((leases.ended_until(KindId(0)), leases.ended_until(KindId(1))), (0, 1000));
        let stands = |text: &[u8]| leases.check(text, 1001).unwrap().stands;
        assert_eq!([before, at_once, after, other].map(|text| stands(&text)), [false, false, true, true]);
        assert!(leases.check(&issued(1, 1000), 1001).unwrap().renewal_due);
    }

    #[test]
    fn names_of_leases_are_told_from_all_others() {
        for name in ["suimon", "__Host-suimon", "suimon-0a9f", "__Host-suimon-0a9f"] {
            assert!(is_name(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "suimonx",
            "suimon-",
            "suimon-pass",
            "suimon-ticket-0a9f",
            "suimon-0A9F",
            "suimon-0a9fb",
            "Suimon",
        ] {
            assert!(!is_name(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn keys_rotate_without_losing_anybody() {
        let old = leases(keys(&[(1, 'a')]));
        let both = leases(keys(&[(2, 'b'), (1, 'a')]));
        let new = leases(keys(&[(2, 'b')]));
        let text = value(&old.issue(KindId(0), SessionId(5), 1000, false));
        assert!(both.check(&text, 1000).unwrap().renewal_due, "signed anew with the new key");
        assert_eq!(new.check(&text, 1000), None);
        let renewed = value(&both.issue(KindId(0), SessionId(5), 1000, false));
        assert!(new.check(&renewed, 1000).is_some());
        assert_eq!(leases(keys(&[(2, 'c')])).check(&renewed, 1000), None, "same id, another key");
    }

    #[test]
    fn kinds_may_be_reordered_but_not_invented() {
        let leases = leases(keys(&[(1, 'a')]));
        let text = value(&leases.issue(KindId(0), SessionId(5), 1000, false));
        let reordered =
            Leases::new(keys(&[(1, 'a')]), 3600, None, ["shopping", "visit"].into_iter()).unwrap();
        assert_eq!(reordered.check(&text, 1000).unwrap().kind, KindId(1));
        let others = Leases::new(keys(&[(1, 'a')]), 3600, None, ["other"].into_iter()).unwrap();
        assert_eq!(others.check(&text, 1000), None);
    }

    #[test]
    fn the_cookie_carries_the_flags_of_its_connection() {
        let leases = leases(keys(&[(1, 'a')]));
        let name = |cookie: &HeaderValue| cookie.to_str().unwrap().split_once('=').unwrap().0.to_owned();
        let own = |kind| name(&leases.issue(KindId(kind), SessionId(1), 1, false));
        assert_ne!(own(0), own(1), "of several kinds each has its own");
        assert!(is_name(own(0).as_bytes()));
        let leases = Leases::new(keys(&[(1, 'a')]), 3600, None, ["visit"].into_iter()).unwrap();
        let plain = leases.issue(KindId(0), SessionId(1), 1, false);
        assert_eq!(name(&plain), "suimon");
        assert!(plain.to_str().unwrap().ends_with("; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax"));
        let secure = leases.issue(KindId(0), SessionId(1), 1, true);
        assert!(secure.to_str().unwrap().starts_with("__Host-suimon="));
        assert!(
            secure.to_str().unwrap().ends_with("; Path=/; Max-Age=3600; HttpOnly; Secure; SameSite=None")
        );
        assert!(
            leases.withdraw(KindId(0), false).to_str().unwrap().starts_with("suimon=; Path=/; Max-Age=0;")
        );
    }

    proptest! {
        #[test]
        fn nothing_but_a_lease_is_a_lease(at in 0_usize..sealed::text_len(BYTES), letter in any::<u8>(), session in any::<u64>()) {
            let leases = leases(Keys::fresh().unwrap());
            let mut text = value(&leases.issue(KindId(0), SessionId(session), 1000, false));
            prop_assert_eq!(leases.check(&text, 1000).unwrap().session, SessionId(session));
            let before = text[at];
            text[at] = letter;
            prop_assert_eq!(leases.check(&text, 1000).is_some(), letter == before);
        }

        #[test]
        fn any_bytes_are_met_without_a_stumble(text in proptest::collection::vec(any::<u8>(), 0..90)) {
            prop_assert_eq!(leases(Keys::fresh().unwrap()).check(&text, 1000), None);
        }
    }
}

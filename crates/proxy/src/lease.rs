//! The lease: a signed cookie that says "this session was let in".
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
//! It proves admission and nothing else. Whoever steals one skips the line; it opens no account.

use crate::keys::Keys;
use crate::sealed::{self, Seal};
use http::HeaderValue;
use suimon_model::{KindId, SessionId};

const BYTES: usize = 32;
const VERSION: u8 = 1;
/// How far ahead of ours the clock of a gateway that shares our keys may be, in seconds.
const SKEW: u32 = 60;

/// The cookie's name on plain connections.
pub(crate) const NAME: &str = "suimon";
/// The cookie's name where the client's connection is encrypted: browsers then keep other hosts and paths from setting it.
pub(crate) const NAME_SECURE: &str = "__Host-suimon";

/// Issues and checks leases.
#[derive(Debug)]
pub(crate) struct Leases {
    seal: Seal,
    life: u32,
    /// By kind.
    tags: Vec<[u8; 2]>,
}

/// A lease that was found good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Proof {
    pub(crate) kind: KindId,
    pub(crate) session: SessionId,
    /// Whether more than half of its life is gone.
    pub(crate) renewal_due: bool,
}

impl Leases {
    /// Returns leases for the kinds of these names, good for `life` seconds. Two names whose tags are equal are returned as an error.
    pub(crate) fn new<'a>(
        keys: Keys,
        life: u32,
        kinds: impl Iterator<Item = &'a str>,
    ) -> Result<Self, (String, String)> {
        let mut names: Vec<&str> = Vec::new();
        let mut tags: Vec<[u8; 2]> = Vec::new();
        for name in kinds {
            let hash = blake3::hash(name.as_bytes());
            let tag = [hash.as_bytes()[0], hash.as_bytes()[1]];
            if let Some(at) = tags.iter().position(|other| *other == tag) {
                return Err((names[at].to_owned(), name.to_owned()));
            }
            names.push(name);
            tags.push(tag);
        }
        Ok(Leases { seal: Seal::of_leases(keys), life, tags })
    }

    /// Returns what tells each kind's leases and tickets from those of the others.
    pub(crate) fn tags(&self) -> Vec<[u8; 2]> {
        self.tags.clone()
    }

    /// Returns the `Set-Cookie` of a fresh lease. `now` is in seconds since 1970.
    pub(crate) fn issue(&self, kind: KindId, session: SessionId, now: u32, secure: bool) -> HeaderValue {
        let tag = self.tags.get(kind.index()).copied().unwrap_or_default();
        let mut lease = [0; BYTES];
        lease[0] = VERSION;
        lease[1] = self.seal.key();
        lease[2..4].copy_from_slice(&tag);
        lease[4..12].copy_from_slice(&session.0.to_be_bytes());
        lease[12..16].copy_from_slice(&now.to_be_bytes());
        self.seal.sign(&mut lease);
        self.cookie(|out| sealed::encode(&lease, out), self.life, secure)
    }

    /// Returns the `Set-Cookie` that takes a lease back, once its session has ended.
    pub(crate) fn withdraw(&self, secure: bool) -> HeaderValue {
        self.cookie(|_| {}, 0, secure)
    }

    /// Returns what the cookie's `text` proves, if it is a lease of ours that is still good. `now` is in seconds since 1970.
    pub(crate) fn check(&self, text: &[u8], now: u32) -> Option<Proof> {
        let lease: [u8; BYTES] = sealed::decode(text)?;
        if lease[0] != VERSION || !self.seal.is_ours(&lease) {
            return None;
        }
        let kind = self.tags.iter().position(|tag| *tag == lease[2..4])?;
        let issued = u32::from_be_bytes(lease[12..16].try_into().expect("four bytes"));
        let age = now.saturating_sub(issued);
        if age >= self.life || issued > now.saturating_add(SKEW) {
            return None;
        }
        let session = SessionId(u64::from_be_bytes(lease[4..12].try_into().expect("eight bytes")));
        let renewal_due = age > self.life / 2 || lease[1] != self.seal.key();
        Some(Proof { kind: KindId(kind as u32), session, renewal_due })
    }

    fn cookie(&self, value: impl FnOnce(&mut Vec<u8>), age: u32, secure: bool) -> HeaderValue {
        // A payment provider's cross-site POST back into checkout has to carry it; it grants no authority.
        let (name, flags) =
            if secure { (NAME_SECURE, "Secure; SameSite=None") } else { (NAME, "SameSite=Lax") };
        sealed::set_cookie(name, value, age, flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leases(keys: Keys) -> Leases {
        Leases::new(keys, 3600, ["visit", "shopping"].into_iter()).unwrap()
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
        let fresh = Proof { kind: KindId(1), session: SessionId(77), renewal_due: false };
        assert_eq!(proof(1_000_000), Some(fresh));
        assert_eq!(proof(999_950), Some(fresh), "a little ahead of our clock");
        assert_eq!(proof(1_001_801), Some(Proof { renewal_due: true, ..fresh }));
        assert_eq!(proof(1_003_600), None, "too old");
        assert_eq!(proof(999_000), None, "from the future");
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
        let reordered = Leases::new(keys(&[(1, 'a')]), 3600, ["shopping", "visit"].into_iter()).unwrap();
        assert_eq!(reordered.check(&text, 1000).unwrap().kind, KindId(1));
        let others = Leases::new(keys(&[(1, 'a')]), 3600, ["other"].into_iter()).unwrap();
        assert_eq!(others.check(&text, 1000), None);
    }

    #[test]
    fn the_cookie_carries_the_flags_of_its_connection() {
        let leases = leases(keys(&[(1, 'a')]));
        let plain = leases.issue(KindId(0), SessionId(1), 1, false);
        assert!(plain.to_str().unwrap().ends_with("; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax"));
        let secure = leases.issue(KindId(0), SessionId(1), 1, true);
        assert!(secure.to_str().unwrap().starts_with("__Host-suimon="));
        assert!(
            secure.to_str().unwrap().ends_with("; Path=/; Max-Age=3600; HttpOnly; Secure; SameSite=None")
        );
        assert!(leases.withdraw(false).to_str().unwrap().starts_with("suimon=; Path=/; Max-Age=0;"));
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

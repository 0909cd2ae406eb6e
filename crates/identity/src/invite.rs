//! Invitations: signed links whose visitors wait in a lane of their own.
//!
//! | bytes | holds |
//! |---|---|
//! | 1 | version, 1 |
//! | 1 | id of the key it is signed with |
//! | 2 | tag of the session's kind |
//! | 4 | seconds since 1970 it is good until |
//! | 8 | id |
//! | 16 | signature |
//!
//! Each is good for one place. Which were used is kept in memory: after a restart one may be used
//! once more.

use crate::keys::{self, Keys, KeysError};
use crate::sealed::{self, Seal};
use http::Uri;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use suimon_model::KindId;

const BYTES: usize = 32;
const VERSION: u8 = 1;
/// Its name in the query of a link.
pub const PARAMETER: &str = "suimon-invite";
/// Invitations known to be used, of those that are still good; beyond that none is accepted.
const USED_MAX: usize = 100_000;

/// Writes and reads invitations.
#[derive(Debug)]
pub struct Invites {
    seal: Seal,
    /// By kind.
    tags: Vec<[u8; 2]>,
    /// By id, until when they would be good.
    used: Mutex<HashMap<u64, u32>>,
}

impl Invites {
    /// Returns invitations to the lines of the kinds with these tags.
    pub fn new(keys: &Keys, tags: Vec<[u8; 2]>) -> Invites {
        Invites { seal: Seal::new("suimon invitation 1", keys), tags, used: Mutex::default() }
    }

    /// Returns a new one for a session of `kind`, good `until` then, seconds since 1970, as it
    /// stands in a link.
    pub fn write(&self, kind: KindId, until: u32) -> Result<String, KeysError> {
        let mut id = [0; 8];
        keys::fill_random(&mut id)?;
        Ok(format!("{PARAMETER}={}", self.text(kind, until, id)))
    }

    /// Returns the text of the one of this id.
    pub fn text(&self, kind: KindId, until: u32, id: [u8; 8]) -> String {
        let mut bytes = [0; BYTES];
        bytes[0] = VERSION;
        bytes[1] = self.seal.key();
        bytes[2..4].copy_from_slice(&self.tags.get(kind.index()).copied().unwrap_or_default());
        bytes[4..8].copy_from_slice(&until.to_be_bytes());
        bytes[8..16].copy_from_slice(&id);
        self.seal.sign(&mut bytes);
        let mut text = Vec::new();
        sealed::encode(&bytes, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Uses the invitation in a link's query, and returns whether there was one that is good for a
    /// session of `kind`.
    pub fn takes(&self, uri: &Uri, kind: KindId, now: impl Fn() -> u32) -> bool {
        uri.query().is_some_and(|query| query.contains(PARAMETER)) && self.take(uri, kind, now()).is_some()
    }

    fn take(&self, uri: &Uri, kind: KindId, now: u32) -> Option<()> {
        let query = uri.query()?;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, text) = pairs.find(|(name, _)| *name == PARAMETER)?;
        let (id, until) = self.read(text.as_bytes(), kind, now)?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= USED_MAX {
            used.retain(|_, until| now < *until);
        }
        let is_new = used.len() < USED_MAX && used.insert(id, until).is_none();
        is_new.then_some(())
    }

    /// Returns the id of an invitation of ours for a session of `kind`, and until when it is good,
    /// if it still is.
    pub fn read(&self, text: &[u8], kind: KindId, now: u32) -> Option<(u64, u32)> {
        let bytes: [u8; BYTES] = sealed::decode(text)?;
        let is_for_kind = self.tags.get(kind.index()).is_some_and(|tag| bytes[2..4] == tag[..]);
        if bytes[0] != VERSION || !is_for_kind || !self.seal.is_ours(&bytes) {
            return None;
        }
        let until = u32::from_be_bytes(bytes[4..8].try_into().expect("four bytes"));
        let id = u64::from_be_bytes(bytes[8..16].try_into().expect("eight bytes"));
        (now < until).then_some((id, until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_is_good_for_its_kind_until_its_time_and_once() {
        let invites = Invites::new(&Keys::fresh().unwrap(), vec![[1, 2], [3, 4]]);
        let link = invites.write(KindId(1), 1000).unwrap();
        let takes = |link: &str, kind, now| {
            invites.takes(&format!("/sale?a=b&{link}").parse().unwrap(), KindId(kind), || now)
        };
        assert!(!takes(&link, 1, 1000) && !takes(&link, 0, 999) && !takes("", 1, 999));
        assert!(!takes(&link.to_lowercase(), 1, 999), "edited");
        assert!(takes(&link, 1, 999) && !takes(&link, 1, 999));
        assert!(takes(&invites.write(KindId(1), 1000).unwrap(), 1, 999));
    }
}

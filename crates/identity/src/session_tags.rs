//! What a session is called where many may read it, such as in logs: a keyed hash, from which
//! nobody learns its number, and with which nobody can pretend to be it.

use crate::keys::Keys;
use std::fmt;
use suimon_model::{KindId, SessionId};

/// Gives the same session the same tag, on every gateway that has the same keys.
pub struct SessionTags([u8; 32]);

impl SessionTags {
    /// Returns what tags sessions as long as the key that signs is this one.
    pub fn of(keys: &Keys) -> Self {
        SessionTags(keys.derived("suimon 2026 tags of sessions in logs").signing().secret)
    }

    /// Returns the tag of a session.
    pub fn tag(&self, (kind, session): (KindId, SessionId)) -> u64 {
        let mut named = [0; 12];
        named[..4].copy_from_slice(&kind.0.to_be_bytes());
        named[4..].copy_from_slice(&session.0.to_be_bytes());
        let hash = blake3::keyed_hash(&self.0, &named);
        let mut tag = [0; 8];
        tag.copy_from_slice(&hash.as_bytes()[..8]);
        u64::from_be_bytes(tag)
    }
}

impl fmt::Debug for SessionTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionTags")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_the_same_for_the_same_keys_and_tells_nothing_without_them() {
        let (keys, others) = (Keys::fresh().unwrap(), Keys::fresh().unwrap());
        let session = (KindId(0), SessionId(7));
        let tag = SessionTags::of(&keys).tag(session);
        assert_eq!(SessionTags::of(&keys).tag(session), tag);
        assert_ne!(SessionTags::of(&others).tag(session), tag);
        assert_ne!(SessionTags::of(&keys).tag((KindId(1), SessionId(7))), tag);
        assert_ne!(tag, 7);
    }
}

//! The keys that load reports are sealed with.

use std::fmt;

/// The most keys of a ring: as many as a file of keys may hold.
pub const KEYS_MAX: usize = 16;

/// What makes these keys good for load reports alone, whatever else the same secret is used for.
const PURPOSE: &str = "suimon load report, datagram version 1";

/// Keys by number. The first one seals; each opens what names it.
#[derive(Clone)]
pub struct Keyring {
    keys: Vec<(u8, [u8; 32])>,
}

impl Keyring {
    /// Returns the ring of these numbers and secrets, at least one; what is beyond [`KEYS_MAX`], and
    /// a number that was there before, is left out. `None`: there is none.
    pub fn new(secrets: impl IntoIterator<Item = (u8, [u8; 32])>) -> Option<Self> {
        let mut keys: Vec<(u8, [u8; 32])> = Vec::new();
        for (id, secret) in secrets {
            if keys.len() < KEYS_MAX && !keys.iter().any(|(other, _)| *other == id) {
                keys.push((id, blake3::derive_key(PURPOSE, &secret)));
            }
        }
        (!keys.is_empty()).then_some(Keyring { keys })
    }

    /// Returns the key that seals, and its number.
    pub(crate) fn sealing(&self) -> (u8, &[u8; 32]) {
        let (id, key) = self.keys.first().expect("a ring has at least one key");
        (*id, key)
    }

    /// Returns the key of this number.
    pub(crate) fn find(&self, id: u8) -> Option<&[u8; 32]> {
        self.keys.iter().find(|(other, _)| *other == id).map(|(_, key)| key)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Secrets do not belong in logs.
        f.debug_list().entries(self.keys.iter().map(|(id, _)| id)).finish()
    }
}

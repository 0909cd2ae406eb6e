//! What is remembered of sessions: which cookies of the application's are theirs, and which of them have ended.

use crate::generations::Generations;
use std::hash::{BuildHasherDefault, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use suimon_model::{KindId, SessionId};

/// The lease of a session that has ended is good for so long, seconds: its page may still be loading.
pub(super) const ENDING: u32 = 10;

/// A keyed hash of an application cookie's name and value.
pub(super) type AliasKey = u128;

/// A cookie that was given to so many others than the one it was first seen with is everybody's.
const OTHERS_MAX: u8 = 3;

/// Which session an application's cookie belongs to. Holds hashes under a key of this process, never the cookies.
#[derive(Debug)]
pub(super) struct Aliases {
    secret: [u8; 32],
    sessions: Mutex<Sessions>,
}

type Sessions = Generations<AliasKey, Alias, BuildHasherDefault<AlreadyHashed>>;

#[derive(Clone, Copy, Debug)]
struct Alias {
    session: (KindId, SessionId),
    /// Other sessions that the application has given the same cookie.
    others: u8,
}

impl Aliases {
    pub(super) fn new(max: usize, secret: [u8; 32]) -> Self {
        Aliases { secret, sessions: Mutex::new(Generations::new(max)) }
    }

    pub(super) fn key(&self, name: &[u8], value: &[u8]) -> AliasKey {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(name).update(b"=").update(value);
        let hash = hasher.finalize();
        u128::from_le_bytes(hash.as_bytes()[..16].try_into().expect("sixteen of thirty-two bytes"))
    }

    pub(super) fn find(&self, key: AliasKey) -> Option<(KindId, SessionId)> {
        self.lock().find(key).filter(|alias| alias.others < OTHERS_MAX).map(|alias| alias.session)
    }

    /// Returns whether the application has given this cookie to everybody.
    pub(super) fn is_everybodys(&self, key: AliasKey) -> bool {
        self.lock().find(key).is_some_and(|alias| alias.others >= OTHERS_MAX)
    }

    /// Takes note that a visitor of `session` has this cookie.
    pub(super) fn insert(&self, key: AliasKey, session: (KindId, SessionId)) {
        let mut sessions = self.lock();
        let others = sessions.find(key).map_or(0, |alias| alias.others);
        sessions.insert(key, Alias { session, others });
    }

    /// Takes note that the application gives this cookie to a visitor of `session` who does not have it, and returns whether the visitor is known by it from now on.
    pub(super) fn give(&self, key: AliasKey, session: (KindId, SessionId)) -> bool {
        let mut sessions = self.lock();
        match sessions.find_mut(key) {
            // Whose it was first stays known by it, until it is everybody's.
            Some(alias) if alias.session != session => {
                alias.others = alias.others.saturating_add(1);
                false
            }
            Some(alias) => alias.others < OTHERS_MAX,
            None => {
                sessions.insert(key, Alias { session, others: 0 });
                true
            }
        }
    }

    pub(super) fn remove(&self, key: AliasKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sessions that the application has ended, and when, seconds since 1970: a lease of one that somebody has kept opens nothing.
#[derive(Debug)]
pub(super) struct Ended(Mutex<Generations<SessionId, u32, RandomState>>);

impl Ended {
    pub(super) fn new(max: usize) -> Self {
        Ended(Mutex::new(Generations::new(max)))
    }

    pub(super) fn note(&self, session: SessionId, now: u32) {
        self.lock().insert(session, now);
    }

    pub(super) fn is_over(&self, session: SessionId, now: u32) -> bool {
        self.lock().find(session).is_some_and(|ended| now.saturating_sub(ended) > ENDING)
    }

    fn lock(&self) -> MutexGuard<'_, Generations<SessionId, u32, RandomState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keys are hashes under a secret key already; one half of one is as good as any hash of it.
#[derive(Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

//! What is remembered of sessions: which cookies of the application's are theirs, and which of them
//! have ended.

use crate::generations::Generations;
use std::hash::{BuildHasherDefault, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use suimon_model::{KindId, SessionId};

/// How long the lease of a session that has ended stays good, seconds: its page may still be
/// loading.
pub(super) const ENDING: u32 = 10;

/// A keyed hash of an application cookie's name and value.
pub(super) type AliasKey = u128;

/// A cookie that was given to this many others than the one it was first seen with is everybody's.
const OTHERS_MAX: u8 = 3;

/// Which session an application's cookie belongs to, and which sessions have ended. Holds hashes
/// under a key of this process, never the cookies.
///
/// One cookie may belong to a session of each kind. Cookies by which a visitor came back are kept
/// apart from those that were only learned: however many newcomers come, and however many cookies
/// one of them brings, admitted visitors stay known.
#[derive(Debug)]
pub(super) struct CookieSessions {
    secret: [u8; 32],
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    learned: Sessions,
    used: Sessions,
    /// Sessions that the application has ended, and when, seconds since 1970.
    ended: Generations<SessionId, u32, RandomState>,
}

type Sessions = Generations<AliasKey, Alias, BuildHasherDefault<AlreadyHashed>>;

#[derive(Clone, Copy, Debug)]
struct Alias {
    session: SessionId,
    /// Other sessions that have come with the same cookie, or were given it.
    others: u8,
}

/// The state of a session that the application may have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SessionEnd {
    /// It has not.
    None,
    /// Just now: requests of the same moment may still come.
    JustNow,
    /// It is over.
    Over,
}

impl CookieSessions {
    /// Returns a memory that knows nothing yet. `max`: the maximum of learned cookies, of cookies
    /// by which visitors came back, and of ended sessions, each.
    pub(super) fn new(max: usize, secret: [u8; 32]) -> Self {
        let inner = Inner {
            learned: Generations::new(max),
            used: Generations::new(max),
            ended: Generations::new(max),
        };
        CookieSessions { secret, inner: Mutex::new(inner) }
    }

    pub(super) fn key(&self, name: &[u8], value: &[u8]) -> AliasKey {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(name).update(b"=").update(value);
        let hash = hasher.finalize();
        u128::from_le_bytes(hash.as_bytes()[..16].try_into().expect("sixteen of thirty-two bytes"))
    }

    /// Returns the session of `kind` that a visitor with this cookie belongs to, as far as is known
    /// here. One that has ended is nobody's.
    pub(super) fn find(&self, kind: KindId, key: AliasKey) -> Option<SessionId> {
        let key = of(kind, key);
        let mut inner = self.lock();
        let alias = match inner.used.find(key) {
            Some(alias) => alias,
            None => {
                let alias = inner.learned.remove(key)?;
                inner.used.insert(key, alias);
                alias
            }
        };
        let is_open = alias.others < OTHERS_MAX && inner.ended.find(alias.session).is_none();
        is_open.then_some(alias.session)
    }

    /// Takes note that the gate no longer has the session of `kind` that a cookie belongs to.
    pub(super) fn forget(&self, kind: KindId, key: AliasKey, session: SessionId) {
        let key = of(kind, key);
        let mut inner = self.lock();
        // That everybody has it is not forgotten.
        if inner.find(key).is_some_and(|alias| alias.session == session && alias.others < OTHERS_MAX) {
            inner.remove(key);
        }
    }

    /// Returns whether everybody comes with this cookie, or is given it.
    pub(super) fn is_everybodys(&self, kind: KindId, key: AliasKey) -> bool {
        self.lock().find(of(kind, key)).is_some_and(|alias| alias.others >= OTHERS_MAX)
    }

    /// Takes note that a visitor of `session` has this cookie. One that visitors of another session
    /// come with may be everybody's.
    pub(super) fn insert(&self, key: AliasKey, (kind, session): (KindId, SessionId)) {
        let key = of(kind, key);
        let mut inner = self.lock();
        inner.free(key);
        match inner.find(key) {
            Some(alias) if alias.session == session => {}
            Some(alias) => *alias = Alias { session, others: alias.others.saturating_add(1) },
            None => inner.learned.insert(key, Alias { session, others: 0 }),
        }
    }

    /// Takes note that the application gives this cookie to a visitor of `session` who does not
    /// have it, and returns whether the visitor is known by it from now on.
    pub(super) fn give(&self, key: AliasKey, (kind, session): (KindId, SessionId)) -> bool {
        let key = of(kind, key);
        let mut inner = self.lock();
        inner.free(key);
        match inner.find(key) {
            // The visitor who had it first stays known by it, until it is everybody's.
            Some(alias) if alias.session != session => {
                alias.others = alias.others.saturating_add(1);
                false
            }
            Some(alias) => alias.others < OTHERS_MAX,
            None => {
                inner.learned.insert(key, Alias { session, others: 0 });
                true
            }
        }
    }

    /// Takes note that the application has ended a session: its cookies admit nobody from now on,
    /// and its lease soon does not.
    pub(super) fn end(&self, session: SessionId, now: u32) {
        let mut inner = self.lock();
        // Requests in the moment that its lease is still good for do not prolong it.
        if inner.ended.find(session).is_none() {
            inner.ended.insert(session, now);
        }
    }

    /// Returns the state of a session that the application may have ended.
    pub(super) fn end_of(&self, session: SessionId, now: u32) -> SessionEnd {
        match self.lock().ended.find(session) {
            None => SessionEnd::None,
            Some(ended) if now.saturating_sub(ended) <= ENDING => SessionEnd::JustNow,
            Some(_) => SessionEnd::Over,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Forgets a cookie whose session has ended, unless it is everybody's.
    fn free(&mut self, key: AliasKey) {
        let Some(alias) = self.find(key).copied() else { return };
        if alias.others < OTHERS_MAX && self.ended.find(alias.session).is_some() {
            self.remove(key);
        }
    }

    fn find(&mut self, key: AliasKey) -> Option<&mut Alias> {
        self.used.find_mut(key).or_else(|| self.learned.find_mut(key))
    }

    fn remove(&mut self, key: AliasKey) {
        self.used.remove(key);
        self.learned.remove(key);
    }
}

/// Returns the key of a cookie for sessions of `kind`.
fn of(kind: KindId, key: AliasKey) -> AliasKey {
    // The half that hashes: neighbours in the table cost nothing.
    key ^ u128::from(kind.0)
}

/// The keys are hashes under a secret key already; half of one serves as well as any hash of it.
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

//! Who is logged in, and what they have chosen.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most sessions at once.
const SESSIONS_MAX: usize = 100_000;
/// A session that is unused for this long may be removed to make room for another.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// A logged-in visitor, with a cart for one item.
pub(crate) struct Visitor {
    pub(crate) name: String,
    /// The token that an order must carry; `None` while the cart is empty.
    cart: Mutex<Option<String>>,
}

/// Why something cannot be bought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unsold {
    EmptyCart,
    WrongToken,
    NoSuchLine,
}

impl Visitor {
    /// Puts an item into the cart, replacing what was there, and returns the token for buying it.
    pub(crate) fn choose(&self) -> String {
        let token = secret();
        *self.cart.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        token
    }

    /// Checks whether line `line` of the cart may be bought with the token; with `take`, also
    /// removes it from the cart.
    pub(crate) fn buy(&self, line: &str, token: &str, take: bool) -> Result<(), Unsold> {
        let mut cart = self.cart.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = cart.as_deref().ok_or(Unsold::EmptyCart)?;
        if expected != token {
            return Err(Unsold::WrongToken);
        }
        if line != "1" {
            return Err(Unsold::NoSuchLine);
        }
        if take {
            *cart = None;
        }
        Ok(())
    }
}

/// All sessions by the value of their cookie.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Session>>,
}

struct Session {
    visitor: Arc<Visitor>,
    used: Instant,
}

impl Sessions {
    /// Begins a session and returns its cookie's value; nothing when there are too many.
    pub(crate) fn begin(&self, name: String) -> Option<String> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if open.len() >= SESSIONS_MAX {
            open.retain(|_, session| now.duration_since(session.used) < IDLE);
        }
        if open.len() >= SESSIONS_MAX {
            return None;
        }
        let key = secret();
        let visitor = Arc::new(Visitor { name, cart: Mutex::new(None) });
        open.insert(key.clone(), Session { visitor, used: now });
        Some(key)
    }

    /// Returns who the cookie belongs to, or nothing.
    pub(crate) fn visitor(&self, key: &str) -> Option<Arc<Visitor>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let session = open.get_mut(key)?;
        session.used = Instant::now();
        Some(Arc::clone(&session.visitor))
    }

    /// Ends the session of that cookie.
    pub(crate) fn end(&self, key: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// Returns 32 hexadecimal digits that nobody can guess without the process's random keys. That is
/// secure enough for a shop that sells nothing.
fn secret() -> String {
    let half = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_chosen_can_be_bought_and_only_once() {
        let sessions = Sessions::default();
        let visitor = sessions.visitor(&sessions.begin("ann".to_owned()).unwrap()).unwrap();
        assert_eq!(visitor.buy("1", "", true), Err(Unsold::EmptyCart));
        let old = visitor.choose();
        let token = visitor.choose();
        assert_eq!(visitor.buy("1", &old, true), Err(Unsold::WrongToken));
        assert_eq!(visitor.buy("2", &token, true), Err(Unsold::NoSuchLine));
        assert_eq!(visitor.buy("1", &token, false), Ok(()));
        assert_eq!(visitor.buy("1", &token, true), Ok(()));
        assert_eq!(visitor.buy("1", &token, true), Err(Unsold::EmptyCart));
    }

    #[test]
    fn an_ended_session_is_nobodys() {
        let sessions = Sessions::default();
        let key = sessions.begin("ann".to_owned()).unwrap();
        assert!(sessions.visitor(&key).is_some());
        sessions.end(&key);
        assert!(sessions.visitor(&key).is_none());
        assert_ne!(sessions.begin("ann".to_owned()), Some(key));
    }
}

//! Short codes by which a place goes to another device. It moves: the ticket it leaves behind is
//! worthless from then on.
//!
//! Kept in memory and no longer than needed. After a restart a code is lost, and a ticket left
//! behind counts again; as a place begins one session, no matter which client presents it and how
//! often, nothing is won by that.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use suimon_identity::keys;
use suimon_identity::ticket::Ticket;
use suimon_line::Position;
use suimon_model::KindId;

/// Minutes for which a code is good.
pub(crate) const LIFE_MINUTES: u64 = 10;
const LIFE: Duration = Duration::from_secs(60 * LIFE_MINUTES);
/// Codes that are good at once, and places that are known to have moved; beyond that the oldest are
/// forgotten.
const CODES_MAX: usize = 10_000;
const MOVED_MAX: usize = 100_000;
/// Letters of a code: only those that cannot be confused. 40 bits: with all codes in use, one guess
/// in a hundred million finds one.
const LETTERS: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const LENGTH: usize = 8;

/// The key of a place: kind, epoch of the line, place.
type Key = (KindId, u32, Position);

/// Codes given out, and places moved.
#[derive(Debug)]
pub(crate) struct Moves {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    codes: HashMap<[u8; LENGTH], (Ticket, Instant)>,
    /// The code that is out for a place.
    out: HashMap<Key, [u8; LENGTH]>,
    moved: HashMap<Key, u16>,
}

impl Moves {
    pub(crate) fn new() -> Moves {
        Moves { inner: Mutex::default() }
    }

    /// Returns a fresh code for the place of `ticket`, as it is shown; the one before is no longer
    /// valid. `None`: the system gives no random bytes, or too many codes are in use.
    pub(crate) fn give(&self, ticket: &Ticket) -> Option<String> {
        let mut bytes = [0; LENGTH];
        keys::fill_random(&mut bytes).ok()?;
        let code = bytes.map(|byte| LETTERS[usize::from(byte % 32)]);
        let now = Instant::now();
        let mut inner = self.lock();
        if let Some(before) = inner.out.remove(&key(ticket)) {
            inner.codes.remove(&before);
        }
        if inner.codes.len() >= CODES_MAX {
            inner.codes.retain(|_, (_, at)| now.duration_since(*at) < LIFE);
            let Inner { codes, out, .. } = &mut *inner;
            out.retain(|_, code| codes.contains_key(code));
        }
        if inner.codes.len() >= CODES_MAX {
            return None;
        }
        inner.codes.insert(code, (*ticket, now));
        inner.out.insert(key(ticket), code);
        Some(shown(&code))
    }

    /// Returns the code that is out for the place of `ticket`.
    pub(crate) fn code_of(&self, ticket: &Ticket) -> Option<String> {
        let inner = self.lock();
        let code = inner.out.get(&key(ticket))?;
        inner.codes.get(code).filter(|(_, at)| at.elapsed() < LIFE).map(|_| shown(code))
    }

    /// Returns the ticket, for another device, of the place that `code` stands for. Once.
    pub(crate) fn take(&self, code: &str) -> Option<Ticket> {
        let letters: Vec<u8> = code.bytes().filter(u8::is_ascii_alphanumeric).take(LENGTH + 1).collect();
        let code: [u8; LENGTH] = letters.to_ascii_uppercase().try_into().ok()?;
        let mut inner = self.lock();
        let (mut ticket, at) = inner.codes.remove(&code)?;
        inner.out.remove(&key(&ticket));
        if at.elapsed() >= LIFE {
            return None;
        }
        ticket.moved = ticket.moved.wrapping_add(1);
        if inner.moved.len() >= MOVED_MAX {
            inner.moved.clear();
        }
        inner.moved.insert(key(&ticket), ticket.moved);
        Some(ticket)
    }

    /// Returns whether the place of `ticket` has gone to another device.
    pub(crate) fn was_moved(&self, ticket: &Ticket) -> bool {
        let inner = self.lock();
        let moved = inner.moved.get(&key(ticket));
        moved.is_some_and(|moved| *moved != ticket.moved)
    }

    /// Returns how often a place has gone to another device.
    pub(crate) fn count(&self, kind: KindId, epoch: u32, position: Position) -> u16 {
        self.lock().moved.get(&(kind, epoch, position)).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(ticket: &Ticket) -> Key {
    (ticket.kind, ticket.epoch, ticket.position)
}

fn shown(code: &[u8; LENGTH]) -> String {
    let text = String::from_utf8_lossy(code);
    let (first, second) = text.split_at(LENGTH / 2);
    format!("{first}-{second}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_line::Lane;

    fn ticket(number: u64) -> Ticket {
        let position = Position { lane: Lane::Normal, number };
        Ticket {
            kind: KindId(0),
            position,
            epoch: 1,
            start: 1,
            drawn: 5,
            heard: 5,
            again_after: 2,
            fewest_ahead: 9,
            turn_by: 0,
            moved: 0,
        }
    }

    #[test]
    fn a_place_moves_once_and_is_not_copied() {
        let moves = Moves::new();
        let old = moves.give(&ticket(7)).unwrap();
        let code = moves.give(&ticket(7)).unwrap();
        assert_eq!(moves.take(&old), None, "another was asked for since");
        assert_eq!(moves.code_of(&ticket(7)), Some(code.clone()));
        let typed = code.to_lowercase().replace('-', " ");
        let moved = moves.take(&typed).unwrap();
        assert_eq!(moved.position, ticket(7).position);
        assert!(moves.was_moved(&ticket(7)) && !moves.was_moved(&moved) && !moves.was_moved(&ticket(8)));
        assert_eq!(moves.take(&code), None, "once");
        assert_eq!(moves.take("no code at all"), None);
    }
}

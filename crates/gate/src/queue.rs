//! A route's queue: by position in the session, then by arrival; anybody can leave from the middle at once.

use std::collections::BTreeMap;
use suimon_model::RequestId;

/// Positions beyond this are equal: by then a session is far along.
const POSITION_MAX: u32 = 1000;

/// Waiting requests of one route. Bounded by the gate's `waiting_max` for newcomers; members are bounded by the shell's connections.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: BTreeMap<(u32, u64), RequestId>,
    arrivals: u64,
    /// Those behind all others, at position 0.
    last: usize,
}

suimon_model::saved_struct!(Queue { entries, arrivals, last }, |it: &Queue| {
    it.last == it.entries.keys().filter(|key| is_last(**key)).count()
});

impl Queue {
    /// Puts `request` in; a higher `position` goes first. Returns the key to take it out by.
    pub(crate) fn push(&mut self, position: u32, request: RequestId) -> (u32, u64) {
        let key = (POSITION_MAX - position.min(POSITION_MAX), self.arrivals);
        self.arrivals += 1;
        self.entries.insert(key, request);
        self.last += usize::from(is_last(key));
        key
    }

    pub(crate) fn pop(&mut self) -> Option<RequestId> {
        let (key, request) = self.entries.pop_first()?;
        self.last -= usize::from(is_last(key));
        Some(request)
    }

    pub(crate) fn remove(&mut self, key: (u32, u64)) {
        if self.entries.remove(&key).is_some() {
            self.last -= usize::from(is_last(key));
        }
    }

    pub(crate) fn get(&self, key: (u32, u64)) -> Option<RequestId> {
        self.entries.get(&key).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns how many whoever comes now has to wait for: all but those behind all others.
    pub(crate) fn ahead(&self) -> usize {
        self.entries.len() - self.last
    }
}

fn is_last((position, _): (u32, u64)) -> bool {
    position == POSITION_MAX
}

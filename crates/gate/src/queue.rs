//! A route's queue: by position in the session, then by arrival; a request can leave from the
//! middle at once.
//!
//! First come, first served, completes nothing once the wait is as long as the patience: each
//! visitor's turn comes when they are about to leave, and the application works for nobody. So a
//! request that has waited too long to be answered in time goes behind those that can be, the
//! newest of them first: that one's visitor has the most patience left. As long as no request waits
//! for that long it is a plain queue.

use std::collections::BTreeMap;
use suimon_model::RequestId;

/// Positions beyond this are equal: by then a session is far along.
const PRIORITY_MAX: u32 = 1000;
/// The rank of one that is late: behind those who can be answered in time, before those at position 0.
pub(crate) const LATE: u32 = PRIORITY_MAX;

/// Waiting requests of one route. Bounded by the gate's `waiting_max` for newcomers; requests of
/// sessions are bounded by the shell's connections.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: BTreeMap<(u32, u64), RequestId>,
    /// Those who can hardly be answered in time, by arrival.
    late: BTreeMap<u64, ((u32, u64), RequestId)>,
    arrivals: u64,
    /// Those behind all others, at position 0.
    last: usize,
}

suimon_model::saved_struct!(Queue { entries, late, arrivals, last }, |it: &Queue| {
    it.last == it.entries.keys().filter(|key| is_last(**key)).count()
        && it.late.iter().all(|(arrival, (key, _))| *arrival == key.1 && !is_last(*key))
});

impl Queue {
    /// Puts `request` in; a higher `position` goes first. Returns the key to take it out by.
    pub(crate) fn push(&mut self, position: u32, request: RequestId) -> (u32, u64) {
        let key = (PRIORITY_MAX - position.min(PRIORITY_MAX), self.arrivals);
        self.arrivals += 1;
        self.entries.insert(key, request);
        self.last += usize::from(is_last(key));
        key
    }

    /// Counts one that is served at once, as nobody waits.
    pub(crate) fn pass_by(&mut self) {
        self.arrivals += 1;
    }

    /// Takes out the next request. `is_late` says which ones can hardly be answered in time.
    pub(crate) fn pop(&mut self, mut is_late: impl FnMut(RequestId) -> bool) -> Option<RequestId> {
        while let Some(first) = self.entries.first_entry().filter(|first| !is_last(*first.key())) {
            let (key, request) = first.remove_entry();
            if !is_late(request) {
                return Some(request);
            }
            self.late.insert(key.1, (key, request));
        }
        if let Some((_, (_, request))) = self.late.pop_last() {
            return Some(request);
        }
        let (_, request) = self.entries.pop_first()?;
        self.last -= 1;
        Some(request)
    }

    /// Returns who would be next if nobody else were late, and their rank: the lowest of several
    /// queues goes first. Of those at [`LATE`] the one that came last.
    pub(crate) fn head(&self) -> Option<(u32, RequestId)> {
        let late = self.late.last_key_value().map(|(_, (_, request))| (LATE, *request));
        let first = self.entries.first_key_value().map(|(key, request)| (*key, *request));
        let in_time = first.filter(|(key, _)| !is_last(*key)).map(|(key, request)| (key.0, request));
        in_time.or(late).or(first.map(|(_, request)| (LATE + 1, request)))
    }

    pub(crate) fn remove(&mut self, key: (u32, u64)) {
        if self.late.remove(&key.1).is_none() && self.entries.remove(&key).is_some() {
            self.last -= usize::from(is_last(key));
        }
    }

    pub(crate) fn get(&self, key: (u32, u64)) -> Option<RequestId> {
        let late = self.late.get(&key.1).map(|(_, request)| request);
        self.entries.get(&key).or(late).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.late.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() + self.late.len()
    }

    /// Returns how many requests a new one has to wait for: all but those that go behind all
    /// others.
    pub(crate) fn ahead(&self) -> usize {
        self.len() - self.last
    }
}

fn is_last((position, _): (u32, u64)) -> bool {
    position == PRIORITY_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(positions: &[u32]) -> (Queue, Vec<(u32, u64)>) {
        let mut queue = Queue::default();
        let keys = (0..).zip(positions).map(|(id, position)| queue.push(*position, RequestId(id))).collect();
        (queue, keys)
    }

    fn order(queue: &mut Queue, is_late: impl Fn(u64) -> bool) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop(|request| is_late(request.0))).map(|request| request.0).collect()
    }

    #[test]
    fn first_come_first_served_as_long_as_all_are_in_time() {
        assert_eq!(order(&mut queue(&[1, 1, 1]).0, |_| false), [0, 1, 2]);
        assert_eq!(
            order(&mut queue(&[1, 0, 3, 1]).0, |_| false),
            [2, 0, 3, 1],
            "further along first, beyond the budget last"
        );
    }

    #[test]
    fn who_can_be_answered_in_time_goes_before_who_cannot_and_the_newest_of_those_first() {
        let mut queue = queue(&[1, 1, 1, 1, 1, 0]).0;
        assert_eq!(order(&mut queue, |request| request < 3), [3, 4, 2, 1, 0, 5]);
    }

    #[test]
    fn anybody_can_leave_from_anywhere() {
        let (mut queue, keys) = queue(&[1, 1, 1, 1, 0]);
        assert_eq!(queue.pop(|request| request.0 < 2), Some(RequestId(2)));
        assert_eq!((queue.len(), queue.ahead()), (4, 3));
        assert_eq!(queue.get(keys[0]), Some(RequestId(0)), "one that is late is still there");
        for key in [keys[0], keys[3], keys[4], keys[2]] {
            queue.remove(key);
        }
        assert_eq!((queue.len(), queue.ahead(), queue.get(keys[0])), (1, 1, None));
        assert_eq!(order(&mut queue, |_| true), [1]);
    }
}

//! Newcomers held on their connections until they may begin: by lane, each lane in the order of its
//! numbers; and all of them by how long they have been held.

use std::collections::{BTreeMap, BTreeSet};
use suimon_line::{LANES, Lane, Params, Shares};
use suimon_model::{Instant, RequestId};

/// Where a held newcomer stands: its lane, and its rank there.
pub(crate) type Key = (Lane, u64);

/// One newcomer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Newcomer {
    pub(crate) key: Key,
    pub(crate) request: RequestId,
    pub(crate) arrived: Instant,
}

/// All of a kind.
#[derive(Debug)]
pub(crate) struct HeldNewcomers {
    lanes: [BTreeMap<u64, (RequestId, Instant)>; LANES],
    by_arrival: BTreeSet<(Instant, Key)>,
    shares: Shares,
}

suimon_model::saved_struct!(HeldNewcomers { lanes, by_arrival, shares }, |it: &HeldNewcomers| {
    let is_listed =
        |(arrived, key): &(Instant, Key)| it.at(*key).is_some_and(|held| held.arrived == *arrived);
    it.by_arrival.len() == it.len() && it.by_arrival.iter().all(is_listed)
});

impl HeldNewcomers {
    pub(crate) fn new(line: Option<Params>) -> Self {
        HeldNewcomers {
            lanes: Default::default(),
            by_arrival: BTreeSet::new(),
            shares: Shares::new(line.unwrap_or_default().weights),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lanes.iter().map(BTreeMap::len).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_arrival.is_empty()
    }

    /// Returns whether another of its lane stands behind `key`.
    pub(crate) fn is_passed_by(&self, key: Key) -> bool {
        self.lanes[key.0.index()].last_key_value().is_some_and(|(last, _)| *last > key.1)
    }

    /// Returns how many of its lane stand before `key`.
    pub(crate) fn before(&self, key: Key) -> usize {
        self.lanes[key.0.index()].range(..key.1).count()
    }

    /// Returns the newcomer who stands there.
    pub(crate) fn at(&self, key: Key) -> Option<Newcomer> {
        let (lane, rank) = key;
        let (request, arrived) = *self.lanes[lane.index()].get(&rank)?;
        Some(Newcomer { key, request, arrived })
    }

    /// Holds a newcomer; the caller has checked that none is there.
    pub(crate) fn insert(&mut self, newcomer: Newcomer) {
        let Newcomer { key, request, arrived } = newcomer;
        self.lanes[key.0.index()].insert(key.1, (request, arrived));
        self.by_arrival.insert((arrived, key));
    }

    pub(crate) fn remove(&mut self, key: Key) {
        if let Some((_, arrived)) = self.lanes[key.0.index()].remove(&key.1) {
            self.by_arrival.remove(&(arrived, key));
        }
    }

    /// Returns the next newcomer to begin: the first of those heads of lanes for which `may_be`
    /// holds.
    pub(crate) fn head(&self, may_be: impl Fn(Key) -> bool) -> Option<Newcomer> {
        let first = |lane: Lane| Some((lane, *self.lanes[lane.index()].first_key_value()?.0));
        let lane = self.shares.next(|lane| first(lane).is_some_and(&may_be))?;
        self.at(first(lane)?)
    }

    /// Returns the newcomer held longest.
    pub(crate) fn longest(&self) -> Option<Newcomer> {
        self.at(self.by_arrival.first()?.1)
    }

    /// Returns the newcomer who came last.
    pub(crate) fn last(&self) -> Option<Newcomer> {
        self.at(self.by_arrival.last()?.1)
    }

    /// Takes out the next newcomer, because it begins.
    pub(crate) fn begins(&mut self, key: Key) {
        self.remove(key);
        self.shares.took(key.0);
    }
}

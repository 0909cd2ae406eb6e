//! Newcomers held on their connections until they may begin: by lane, each lane in the order of its numbers.

use std::collections::BTreeMap;
use suimon_line::{LANES, Lane, Params, Shares};
use suimon_model::RequestId;

/// Where a held newcomer stands: its lane, and its rank there.
pub(crate) type Key = (Lane, u64);

/// All of a kind.
#[derive(Debug)]
pub(crate) struct Held {
    lanes: [BTreeMap<u64, RequestId>; LANES],
    shares: Shares,
}

suimon_model::saved_struct!(Held { lanes, shares });

impl Held {
    pub(crate) fn new(line: Option<Params>) -> Self {
        Held { lanes: Default::default(), shares: Shares::new(line.unwrap_or_default().weights) }
    }

    pub(crate) fn len(&self) -> usize {
        self.lanes.iter().map(BTreeMap::len).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.iter().all(BTreeMap::is_empty)
    }

    pub(crate) fn get(&self, (lane, rank): Key) -> Option<RequestId> {
        self.lanes[lane.index()].get(&rank).copied()
    }

    /// Holds a newcomer; the caller has seen that nobody is there.
    pub(crate) fn insert(&mut self, (lane, rank): Key, request: RequestId) {
        self.lanes[lane.index()].insert(rank, request);
    }

    pub(crate) fn remove(&mut self, (lane, rank): Key) {
        self.lanes[lane.index()].remove(&rank);
    }

    /// Returns who is next.
    pub(crate) fn head(&self) -> Option<(Key, RequestId)> {
        let lane = self.shares.next(|lane| !self.lanes[lane.index()].is_empty())?;
        let (rank, request) = self.lanes[lane.index()].first_key_value()?;
        Some(((lane, *rank), *request))
    }

    /// Takes out whoever is next, because it begins.
    pub(crate) fn begins(&mut self, key: Key) {
        self.remove(key);
        self.shares.took(key.0);
    }

    /// Returns all of them, lane by lane.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, RequestId)> + '_ {
        let of = |lane: Lane| {
            self.lanes[lane.index()].iter().map(move |(rank, request)| ((lane, *rank), *request))
        };
        Lane::ALL.into_iter().flat_map(of)
    }
}

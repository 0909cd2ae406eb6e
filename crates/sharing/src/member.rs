//! What is known of one other gateway.

use crate::{Ended, Record};
use std::collections::BTreeMap;

/// The last record of a gateway, and what had ended there by then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    pub(crate) record: Record,
    /// By route, as of the newest record that had it.
    ended: BTreeMap<u64, Ended>,
}

impl Member {
    /// Takes in a record, and returns what has ended since the one before, by route: nothing of a
    /// record that is older, or the first of its process, or `after_gap`.
    pub(crate) fn take(&mut self, record: Record, after_gap: bool) -> Vec<(u64, Ended)> {
        let is_same_life = record.life == self.record.life && record.number > 0 && self.record.number > 0;
        if is_same_life && record.number <= self.record.number {
            return vec![];
        }
        if !is_same_life {
            self.ended.clear();
        }
        let mut fresh = vec![];
        for route in &record.routes {
            let key = route.report.key;
            let before = self.ended.insert(key, route.report.ended);
            if let Some(before) = before.filter(|_| !after_gap) {
                fresh.push((key, route.report.ended.since(&before)));
            }
        }
        self.record = record;
        fresh
    }
}

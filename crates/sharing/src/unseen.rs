//! Lanes of gateways that were heard of recently and are not now. Their people have not gone: they
//! come to another gateway within a minute, or their gateway is only cut off.

use crate::{GATEWAYS_MAX, GatewayId, LaneRecord, MEMBERSHIP_SECONDS, Record};
use std::collections::BTreeMap;
use suimon_model::Instant;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unseen {
    gateways: BTreeMap<GatewayId, Gone>,
}

#[derive(Clone, Debug)]
struct Gone {
    /// Since when others are heard of, and it is not.
    since: Instant,
    /// By kind.
    lanes: BTreeMap<u64, Vec<LaneRecord>>,
}

impl Unseen {
    /// Takes note at `now` of those `gone`, with their last records, and of those heard of again.
    /// `after_gap`: nobody was heard of for a while, so nobody is missed yet.
    pub(crate) fn handle_exchange<'a>(
        &mut self,
        now: Instant,
        after_gap: bool,
        gone: impl Iterator<Item = (GatewayId, &'a Record)>,
        is_heard: impl Fn(GatewayId) -> bool,
    ) {
        if after_gap {
            self.gateways.values_mut().for_each(|gone| gone.since = now);
        }
        for (id, record) in gone {
            let lanes = |kind: &crate::KindRecord| (kind.report.key, kind.report.lanes.clone());
            let lanes = record.kinds.iter().map(lanes).collect();
            if self.gateways.len() < GATEWAYS_MAX {
                self.gateways.insert(id, Gone { since: now, lanes });
            }
        }
        self.gateways.retain(|id, gone| !is_heard(*id) && now.secs_since(gone.since) <= MEMBERSHIP_SECONDS);
    }

    /// Returns their lanes of a kind.
    pub(crate) fn lanes(&self, key: u64) -> impl Iterator<Item = &LaneRecord> {
        self.gateways.values().filter_map(move |gone| gone.lanes.get(&key)).flatten()
    }
}

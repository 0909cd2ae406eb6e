//! Rendezvous hashing: each member has a weight for each key, and the heaviest learns. When a member
//! goes only its own keys move.

use crate::{GatewayId, Record};

/// Returns the key of a route or kind by its name: FNV-1a over its bytes, the same at every gateway.
pub fn key_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns which of `members` learns `key`; `None` of none.
pub fn learner(key: u64, members: impl Iterator<Item = GatewayId>) -> Option<GatewayId> {
    members.max_by_key(|member| (weight(key, *member), *member))
}

/// The key of the limits, all routes together.
const LIMITS: u64 = 0x6c69_6d69_7473;
/// A gateway with less than this share of the traffic of the one that has most does not begin to
/// learn: its own requests tell when a comparison is over.
const TRAFFIC_MIN: f64 = 0.5;
/// One that learns goes on until it has less than this share.
const TRAFFIC_LEFT: f64 = 0.25;

/// Returns which of `members` learns the limits: one that does already, or else one of those with
/// the most traffic; of several, [`learner`] says which. One for all routes, as they stand before
/// the same processors: two that tried at once would take the effect of the other for their own.
pub(crate) fn limit_learner<'a>(
    members: &(impl Iterator<Item = (GatewayId, &'a Record)> + Clone),
) -> Option<GatewayId> {
    let rate = |record: &Record| record.routes.iter().map(|route| route.rate).sum::<f64>();
    let most = members.clone().map(|(_, record)| rate(record)).fold(0.0, f64::max);
    let among = |is_candidate: &dyn Fn(&Record) -> bool| {
        learner(LIMITS, members.clone().filter(|(_, record)| is_candidate(record)).map(|(id, _)| id))
    };
    among(&|record| record.learns && rate(record) >= TRAFFIC_LEFT * most)
        .or_else(|| among(&|record| rate(record) >= TRAFFIC_MIN * most))
}

/// Returns a number that any change of `key` or `member` changes in about half of its bits.
pub(crate) fn weight(key: u64, member: GatewayId) -> u64 {
    let mut bits = key ^ member.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(count: u64) -> impl Iterator<Item = GatewayId> + Clone {
        (1..=count).map(GatewayId)
    }

    #[test]
    fn a_member_that_goes_moves_only_what_it_learned() {
        for key in (0..1000).map(|number| key_of(&format!("GET /{number}"))) {
            let before = learner(key, members(5)).expect("there are members");
            let after = learner(key, members(5).filter(|member| *member != GatewayId(3)));
            assert!(before == GatewayId(3) || Some(before) == after);
        }
    }

    #[test]
    fn each_learns_about_as_much() {
        let mut learned = [0; 4];
        for key in (0..4000).map(|number| key_of(&format!("GET /{number}"))) {
            let GatewayId(member) = learner(key, members(4)).expect("there are members");
            learned[member as usize - 1] += 1;
        }
        assert!(learned.iter().all(|count| (850..1150).contains(count)), "{learned:?}");
    }
}

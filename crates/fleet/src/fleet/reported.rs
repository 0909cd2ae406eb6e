//! The choice of a node by what nodes report.

use super::{Fitness, Fleet};
use crate::api::{Balance, Pick, PickReason};
use suimon_model::{Instant, NodeId};

impl Fleet {
    /// Returns a pick by reports among the nodes that are fit, without `avoid`. `None`: nodes are not
    /// picked by reports, there are fewer than two, or one of them has no report that is young enough:
    /// its load cannot be compared with that of the others then.
    pub(super) fn choose_reported(
        &mut self,
        now: Instant,
        avoid: Option<NodeId>,
        fitness: Fitness,
    ) -> Option<Pick> {
        if self.params.balance == Balance::Shares || self.nodes.len() < 2 {
            return None;
        }
        let (mut chosen, mut least, mut alike, mut count) = (None, (f64::INFINITY, 0.0), 0, 0);
        for index in 0..self.nodes.len() {
            let is_fit = Some(index) != avoid.map(NodeId::index)
                && self.is_fit(now, index, &self.nodes[index], fitness);
            if !is_fit {
                continue;
            }
            let in_flight = self.nodes[index].in_flight;
            let load = match self.params.balance {
                Balance::Paper => self.reports.run_queue(now, index)?,
                _ => self.reports.load(now, index, self.shares.part(now, index), in_flight)?,
            };
            count += 1;
            // Of equals the one with the fewest requests for its share, ...
            let tie = match self.params.balance {
                Balance::Reported if load <= least.0 => f64::from(in_flight) / self.shares.share(index),
                _ => 0.0,
            };
            if (load, tie) < least {
                (least, alike) = ((load, tie), 0);
            }
            // ... and a random one where that is equal, too.
            if (load, tie) <= least {
                alike += 1;
                if alike == 1 || self.rng.below(alike) == 0 {
                    chosen = Some(index);
                }
            }
        }
        let node = NodeId(u32::try_from(chosen.filter(|_| count > 1)?).ok()?);
        Some(Pick { node, reason: PickReason::LeastReported })
    }
}

#[cfg(test)]
mod tests;

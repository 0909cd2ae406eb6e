//! Sessions of the application that stay at their nodes.

use super::Fleet;
use crate::affinity::{SessionKey, SessionSaid};
use crate::api::{AsksFor, Output, Pick, PickReason, Status};
use suimon_model::{Instant, NodeId};

impl Fleet {
    /// Returns a node for one request with a cookie of the application: the one that the session is
    /// at, if that is known and it can be had; else as [`Fleet::pick`].
    ///
    /// A node that drains can be had, as it keeps its sessions. One that is down or ejected can not
    /// while another is up. A node has no limit of its own: however much it has to do, the request
    /// goes there, and waits there.
    pub fn pick_for(
        &mut self,
        now: Instant,
        asks: AsksFor,
        session: SessionKey,
        avoid: Option<NodeId>,
    ) -> Option<Pick> {
        self.end_ejections(now);
        let home = self.affinity.as_mut().and_then(|affinity| affinity.home(now, session));
        match home.filter(|node| avoid != Some(*node) && self.can_be_had(*node)) {
            Some(node) => {
                self.take(now, node, asks);
                Some(Pick { node, reason: PickReason::SameSession })
            }
            None => self.pick(now, asks, avoid),
        }
    }

    /// Folds in what an answer of `node` says of the session of its request. `asked`: the cookie that
    /// the request came with.
    pub fn handle_session(
        &mut self,
        now: Instant,
        node: NodeId,
        asked: Option<SessionKey>,
        said: SessionSaid,
    ) {
        let is_there = self.nodes.get(node.index()).is_some_and(|node| !node.gone);
        if let Some(affinity) = self.affinity.as_mut().filter(|_| is_there) {
            affinity.handle_answer(now, node, asked, said);
            self.tell_released(now);
        }
    }

    /// Lets the sessions at `node` go elsewhere, as it will be gone in a moment.
    pub fn release_sessions(&mut self, now: Instant, node: NodeId) {
        if let Some(affinity) = &mut self.affinity {
            affinity.release(node);
            self.tell_released(now);
        }
    }

    /// Returns how many sessions are known to be at `node`; 0 where they are not kept there.
    pub fn sessions(&self, node: NodeId) -> u32 {
        self.affinity.as_ref().map_or(0, |affinity| affinity.count(node).0)
    }

    fn can_be_had(&self, node: NodeId) -> bool {
        let Some(state) = self.nodes.get(node.index()).filter(|node| !node.gone) else { return false };
        match state.status() {
            Status::Up | Status::Draining => true,
            // Where none is up, no other node would be of more use.
            Status::Down | Status::Ejected => !self.is_up(),
        }
    }

    pub(super) fn tell_released(&mut self, now: Instant) {
        while let Some((node, sessions)) =
            self.affinity.as_mut().and_then(|affinity| affinity.poll_released(now))
        {
            self.tell(Output::Released { node, sessions });
        }
    }
}

#[cfg(test)]
mod tests;

//! Nodes that are ejected for a while, and those that are asked whether they hang.

use super::*;

impl Fleet {
    /// Lets ejected nodes return until they are not more than half of those that are left.
    pub(super) fn return_some(&mut self, now: Instant) {
        while let out = self.present().filter(|(_, node)| node.ejection.is_out())
            && out.clone().count() > self.present().count() / 2
            && let Some((first, _)) = out.min_by_key(|(_, node)| node.ejection.until())
        {
            let state = &mut self.nodes[first.index()];
            let from = state.status();
            state.ejection.end(now);
            self.changed(now, first, from, Why::EjectionOver, Duration::ZERO);
        }
    }

    /// Notes that a node answers requests or checks. `was_mute`: whether it was left out because it did not.
    pub(super) fn hear(&mut self, now: Instant, node: NodeId, was_mute: bool) {
        let Some(state) = self.nodes.get_mut(node.index()) else { return };
        if !state.silence.handle_answer(now) || !state.ejection.is_out() || !was_mute {
            return;
        }
        let from = state.status();
        state.ejection.end(now);
        self.changed(now, node, from, Why::Reached, Duration::ZERO);
    }

    /// Suspects the nodes that have requests and answer none of them, so that a check shows whether they
    /// answer anything.
    pub(super) fn suspect(&mut self, now: Instant) {
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            if node.status() == Status::Up
                && self.shares.owes(now, index, Owes::Check)
                && self.is_alone(now, index, Owes::Check)
                && self.nodes[index].silence.handle_owing(now)
            {
                self.nodes[index].health.look(now);
            }
        }
    }

    /// Returns whether a node that owes answers does so beside one that owes none and has answered meanwhile:
    /// where all hang, it is not the node, and one that is idle proves nothing. Where a node holds all slots of
    /// the gate nobody can answer; then its requests are proof enough, unless they had to go there.
    fn is_alone(&self, now: Instant, index: usize, what: Owes) -> bool {
        let may_hold_all = self.affinity.is_none() && self.params.balance == Balance::Shares;
        self.present().map(|(other, node)| (other.index(), node)).any(|(other, node)| {
            other != index
                && node.status() == Status::Up
                && !self.shares.is_mute(other)
                && (self.shares.has_answered_since(index, other)
                    || may_hold_all && self.shares.holds_all(index, other))
                && !self.shares.owes(now, other, what)
        })
    }

    /// Notes that a check of `node` asked for an answer and got none.
    pub(super) fn miss(&mut self, now: Instant, node: NodeId) {
        let Some(state) = self.nodes.get_mut(node.index()) else { return };
        if !state.silence.is_suspected() || self.params.ejection.after == 0 {
            return;
        }
        state.health.look(now);
        let is_down = state.status() == Status::Down;
        let hangs = self.shares.is_mute(node.index()) || self.shares.owes(now, node.index(), Owes::Silence);
        if hangs && self.is_alone(now, node.index(), Owes::Silence) {
            self.shares.handle_mute(now, node.index());
            if !is_down {
                self.eject(now, node, Why::Silent);
            }
            let since = self.shares.mute_since(node.index());
            if since.is_some_and(|since| now.since(since) >= self.params.ejection.base) {
                self.tell(Output::Hangs(node));
            }
        }
    }

    /// Counts a check of a doubted `node` that failed like the requests before it, and the requests
    /// that were lost: in doubt, such a check proves as much as a request.
    pub(super) fn bear_out(&mut self, now: Instant, node: NodeId, checked: Checked) {
        let Some(state) = self.nodes.get_mut(node.index()) else { return };
        if checked == Checked::Closed && state.is_only_suspected() && !self.shares.is_mute(node.index()) {
            // It is there, whatever it makes of the question: it does not hang.
            state.silence.handle_answer(now);
            return;
        }
        if !state.is_doubted() || state.lost {
            return;
        }
        state.unreached = state.unreached.saturating_add(1);
        if state.unreached <= LOST_AFTER {
            state.health.hurry(now);
        }
        let losses = std::mem::take(&mut state.losses);
        self.fail(now, node, losses.saturating_add(1));
    }

    /// Folds in `times` failures of `node`.
    pub(super) fn fail(&mut self, now: Instant, node: NodeId, times: u32) {
        self.end_ejections(now);
        let Some(state) = self.nodes.get_mut(node.index()) else { return };
        if state.ejection.failed(times, &self.params.ejection) {
            self.eject(now, node, Why::RequestsFailed);
        }
    }

    /// Ejects `node`, unless it is out, or half of all are.
    pub(super) fn eject(&mut self, now: Instant, node: NodeId, why: Why) {
        self.end_ejections(now);
        let ejected = self.present().filter(|(_, node)| node.ejection.is_out()).count();
        let may_eject = ejected < self.present().count() / 2;
        let Some(state) = self.nodes.get_mut(node.index()) else { return };
        if state.ejection.is_out() || !may_eject {
            return;
        }
        let from = state.status();
        let lasts = state.ejection.eject(now, &self.params.ejection);
        self.changed(now, node, from, why, lasts);
    }

    pub(super) fn end_ejections(&mut self, now: Instant) {
        for index in 0..self.nodes.len() {
            let from = self.nodes[index].status();
            if self.nodes[index].ejection.ends(now) {
                self.changed(now, NodeId(index as u32), from, Why::EjectionOver, Duration::ZERO);
                self.lose(now);
            }
        }
    }
}

//! Replacing workers: whose turn it is, and when the old one ends.

use super::table::Worker;
use super::{AWAITED_AFTER, EndReason, WorkerEvent, WorkerId, Workers};
use suimon_model::Instant;

impl Workers {
    /// Returns how many of those that are wanted there can be.
    pub(super) fn attainable(&self) -> usize {
        self.wanted.min(self.room.max(1))
    }

    /// Returns whether one is due to be replaced, and all others are there.
    pub(super) fn may_replace(&self) -> bool {
        !self.due.is_empty()
            && self.retiring.is_none()
            && self.table.serving_ready() >= self.attainable().max(1)
    }

    /// Lets one worker that is due retire.
    pub(super) fn retire_next(&mut self, now: Instant) {
        if now < self.starts.may_start() {
            return;
        }
        while self.may_replace() {
            let id = self.idle_due().or_else(|| self.due.first().copied()).expect("one is due");
            self.retire(now, id);
        }
    }

    /// Returns one that is due to be replaced and has no request.
    fn idle_due(&self) -> Option<WorkerId> {
        self.due.iter().copied().find(|id| self.is_idle(*id))
    }

    /// Lets a worker retire whose turn it is. Returns whether it is due still.
    fn retire(&mut self, now: Instant, id: WorkerId) -> bool {
        self.due.remove(&id);
        let Some(worker) = self.table.of(id).copied() else { return false };
        let Some(why) = self.replaced_for(&worker) else { return false };
        self.retiring = Some(id);
        self.table.change(id, |it| (it.is_retiring, it.was_told) = (true, true));
        // It may have given its turn to another one, and have it again.
        if !worker.was_told {
            self.table.change(id, |it| it.awaited_at = now + AWAITED_AFTER);
            self.totals.ended[why as usize] += 1;
            self.tell(now, id, WorkerEvent::Replaced(why));
        }
        true
    }

    /// Returns why a worker is to be replaced, if it is.
    fn replaced_for(&self, worker: &Worker) -> Option<EndReason> {
        if !worker.is_ready() {
            None
        } else if worker.generation < self.generation {
            Some(EndReason::Reload)
        } else if self.params.memory_max.is_some_and(|max| worker.memory > max) {
            Some(EndReason::Memory)
        } else if worker.requests >= worker.requests_max {
            Some(EndReason::Requests)
        } else {
            worker.is_old.then_some(EndReason::Age)
        }
    }

    /// Ends the one that retires, once others are ready in its place and it has no request. While it
    /// has one, another one that is due takes its turn.
    pub(super) fn end_retired(&mut self, now: Instant) {
        let Some(id) = self.retiring else { return };
        if self.table.serving_ready() < self.attainable() {
            return;
        }
        if self.is_idle(id) {
            self.end(now, id);
            return;
        }
        while let Some(other) = self.idle_due() {
            if self.retire(now, other) {
                self.table.change(id, |worker| worker.is_retiring = false);
                self.due.insert(id);
                self.end(now, other);
                return;
            }
        }
    }

    /// Takes note that a worker is old, or that it is waited for. It may have to wait for its
    /// turn: then there is nothing more to be woken for.
    pub(super) fn note_time(&mut self, now: Instant, id: WorkerId) {
        let Some(worker) = self.table.of(id).copied() else { return };
        if worker.old_at <= now {
            self.table.change(id, |it| (it.is_old, it.old_at) = (true, Instant::FAR_FUTURE));
            if self.retiring != Some(id) {
                self.due.insert(id);
            }
        }
        if worker.awaited_at <= now {
            self.table.change(id, |it| it.awaited_at = Instant::FAR_FUTURE);
            if worker.is_busy() {
                self.tell(now, id, WorkerEvent::Awaited);
            }
        }
    }
}

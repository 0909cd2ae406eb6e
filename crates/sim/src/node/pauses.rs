//! Requests that rest although they could work: what an application does to leave the processor to
//! others.
//!
//! A request that pauses holds its thread and its lock, and from the first piece of its work to the
//! last its memory, but not the processor.

use super::{Job, Node};
use std::cmp::Reverse;
use suimon_model::{Instant, seconds};

/// When a request rests, seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Pauses {
    /// Before its work.
    pub before: f64,
    /// In the middle of it, all pieces together: after each piece of work for an equal part of this
    /// time.
    pub inside: f64,
    /// Equal pieces that the work is done in; 0 is 1.
    pub pieces: u32,
    /// After its work.
    pub after: f64,
}

impl Pauses {
    /// Returns all of them together, seconds.
    pub fn seconds(&self) -> f64 {
        self.before + self.inside + self.after
    }

    fn count(&self) -> u32 {
        self.pieces.max(1)
    }

    fn each(&self) -> f64 {
        self.inside / f64::from(self.count())
    }
}

/// How far a request with pauses has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paced {
    job: Job,
    /// Pieces of its work that are still to be done.
    left: u32,
}

impl Paced {
    /// Whether it is in the middle of its work.
    fn inside(&self) -> bool {
        (1..self.job.pauses.count()).contains(&self.left)
    }
}

impl Node {
    pub(super) fn pause_before_work(&mut self, now: Instant, job: Job) {
        self.paced.insert(job.id, Paced { job, left: job.pauses.count() });
        self.paused.push(Reverse((now + seconds(job.pauses.before), job.id)));
    }

    /// Goes on with a request whose pause is over: with the next piece of its work, or its end.
    pub(super) fn resume(&mut self, now: Instant, id: u64) {
        let paced = self.paced[&id];
        let Paced { job, left } = paced;
        if left == 0 {
            self.paced.remove(&id);
            return self.end(now, id);
        }
        let elsewhere = if paced.inside() { 0.0 } else { job.elsewhere };
        if paced.inside() {
            self.processor.paused_memory -= job.memory;
        }
        if self.paused.is_empty() {
            // Sums of floats drift; when nobody pauses is the moment to set them right.
            self.processor.paused_memory = 0.0;
        }
        self.work(now, Job { elsewhere, cpu: job.cpu / f64::from(job.pauses.count()), ..job });
    }

    /// Lets a request pause that has done a piece of its work; returns whether it pauses at all.
    pub(super) fn pause_after_work(&mut self, now: Instant, id: u64) -> bool {
        let Some(paced) = self.paced.get_mut(&id) else { return false };
        paced.left -= 1;
        let (pauses, last) = (paced.job.pauses, paced.left == 0);
        if paced.inside() {
            self.processor.paused_memory += paced.job.memory;
        }
        let pause = pauses.each() + if last { pauses.after } else { 0.0 };
        self.paused.push(Reverse((now + seconds(pause), id)));
        true
    }
}

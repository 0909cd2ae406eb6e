//! The right to use a worker for one request.

use super::{Kept, Pool};
use std::sync::Arc;
use suimon_fleet::workers::{Release, WorkerId};
use suimon_params::upstream::NodeAddress;

/// An idle worker, taken for one request.
///
/// It ends in exactly one way: [`Lease::done`] or [`Lease::done_keeping`], [`Lease::stuck`], or by
/// being dropped, which says that the request was cancelled. The worker may go on with a cancelled request for as long as it
/// likes. It is given nothing else until it says that it is idle, and ends if it does not say so in
/// time. So no worker is lost, whatever becomes of the request.
#[must_use = "dropping this says that the request was cancelled"]
pub struct Lease {
    pool: Pool,
    worker: WorkerId,
    address: Arc<NodeAddress>,
    deaths: u64,
    /// `None`: it has ended.
    how: Option<Release>,
}

impl Lease {
    pub(super) fn new(pool: Pool, worker: WorkerId, address: Arc<NodeAddress>, deaths: u64) -> Self {
        Lease { pool, worker, address, deaths, how: Some(Release::Cancelled) }
    }

    /// Returns where the worker listens.
    pub fn address(&self) -> &Arc<NodeAddress> {
        &self.address
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns which worker it is.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Returns how many workers had died when this one was taken: see [`Pool::deaths`].
    pub fn deaths(&self) -> u64 {
        self.deaths
    }

    /// Returns whether the worker's process lives, and was not killed either: the pool hears of a death a
    /// moment later.
    pub fn is_alive(&self) -> bool {
        self.pool.is_alive(self.worker)
    }

    /// Takes the connection that was left with the worker, if any: see [`Lease::done_keeping`].
    pub fn take_kept(&self) -> Option<Kept> {
        self.pool.state().processes.get_mut(&self.worker)?.kept.take()
    }

    /// Says that from now on nobody counts the request among those that are let in, although the
    /// worker has it still.
    pub fn ungate(&self) {
        self.pool.change(|state, _| state.workers.ungate(self.worker));
    }

    /// Gives the worker back: its answer was read to the end.
    pub fn done(mut self) {
        self.how = Some(Release::Done);
    }

    /// As [`Lease::done`], and leaves an open connection with the worker for its next request. It is
    /// dropped before the worker is told to end.
    pub fn done_keeping(mut self, connection: Kept) {
        self.how = None;
        // What nobody will use is closed outside of the lock.
        let (worker, mut kept) = (self.worker, Some(connection));
        self.pool.change(|state, now| {
            state.release(now, worker, Release::Done);
            if state.workers.is_idle(worker)
                && let Some(process) = state.processes.get_mut(&worker)
            {
                process.kept = kept.take();
            }
        });
    }

    /// Says that the worker did not answer in time: it ends, as nobody knows what it does.
    pub fn stuck(mut self) {
        self.how = Some(Release::Stuck);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(how) = self.how.take() {
            self.pool.change(|state, now| state.release(now, self.worker, how));
        }
    }
}

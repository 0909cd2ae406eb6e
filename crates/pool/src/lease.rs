//! The right to use a worker for one request.

use super::Pool;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::sync::Arc;
use suimon_fleet::workers::{Release, WorkerId};
use suimon_params::upstream::NodeAddress;

/// An idle worker, taken for one request.
///
/// It ends in exactly one way: [`Lease::done`], [`Lease::stuck`], or by being dropped, which says
/// that the request was cancelled. The worker may go on with a cancelled request for as long as it
/// likes. It is given nothing else until it says that it is idle, and ends if it does not say so in
/// time. So no worker is lost, whatever becomes of the request.
#[must_use = "dropping this says that the request was cancelled"]
pub struct Lease {
    pool: Pool,
    worker: WorkerId,
    address: Arc<NodeAddress>,
    deaths: u64,
    how: Release,
}

impl Lease {
    pub(super) fn new(pool: Pool, worker: WorkerId, address: Arc<NodeAddress>, deaths: u64) -> Self {
        Lease { pool, worker, address, deaths, how: Release::Cancelled }
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

    /// Returns whether the worker's process lives: the pool hears of a death a moment later.
    pub fn is_alive(&self) -> bool {
        let Some(pid) = self.pool.state().processes.get(&self.worker).map(|process| process.pid) else {
            return false;
        };
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
        // Whoever is dead is not reaped by looking.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        matches!(waitid(WaitId::Pid(pid), options), Ok(None))
    }

    /// Says that from now on nobody counts the request among those that are let in, although the
    /// worker has it still.
    pub fn ungate(&self) {
        self.pool.change(|state, _| state.workers.ungate(self.worker));
    }

    /// Gives the worker back: its answer was read to the end.
    pub fn done(mut self) {
        self.how = Release::Done;
    }

    /// Says that the worker did not answer in time: it ends, as nobody knows what it does.
    pub fn stuck(mut self) {
        self.how = Release::Stuck;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (worker, how) = (self.worker, self.how);
        self.pool.change(|state, now| state.release(now, worker, how));
    }
}

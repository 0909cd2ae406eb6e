//! What a request holds while a node has it.

use crate::fastcgi::FastCgi;
use crate::http1::Http1;
use crate::{Node, Pool, Shared};
use std::sync::Arc;
use suimon_model::RouteId;
use suimon_pool::{Kept, Lease};

/// A request's place at a node; freed when dropped.
pub(crate) struct Guard {
    pub(crate) shared: Arc<Shared>,
    pub(crate) node: Arc<Node>,
    /// And whether no other node would have done: see [`suimon_fleet::Served`].
    pub(crate) route: Option<(RouteId, bool)>,
    /// The worker that has the request; dropping it says that the request was cancelled.
    pub(crate) worker: Option<Lease>,
}

impl Guard {
    /// Gives back the worker: its answer was read to the end.
    pub(crate) fn done(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.done();
        }
    }

    /// Gives back the worker with an open connection, if there is one.
    pub(crate) fn keep(&mut self, connection: Option<Box<FastCgi>>) {
        let Some((connection, worker)) = connection.and_then(|it| Some((it, self.worker.take()?))) else {
            return;
        };
        if let Some(workers) = self.node.pool.workers()
            && connection.was_reused()
        {
            workers.note_kept();
        }
        worker.done_keeping(Kept::new(connection));
    }

    /// Says that the worker did not answer in time.
    pub(crate) fn stuck(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.stuck();
        }
    }

    /// Notes that the node has broken off an answer.
    pub(crate) fn note_broken(&self) {
        if let Some((route, is_bound)) = self.route {
            self.shared.note_served((self.node.id, is_bound), self.shared.now(), Some(route), false);
        }
    }

    /// Returns a connection to the pool of this guard's node.
    pub(crate) fn put_back(&self, connection: Box<Http1>) {
        if let Pool::Http1(pool) = &self.node.pool {
            pool.put(connection);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let now = self.shared.now();
        let mut fleet = self.shared.fleet();
        fleet.handle_release(now, self.node.id);
        if let Some((route, _)) = self.route {
            fleet.handle_ended(self.node.id, route);
        }
    }
}

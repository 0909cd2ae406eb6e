//! What a request holds while a node has it.

use crate::fastcgi::FastCgi;
use crate::http1::Http1;
use crate::{Node, Pool, Shared};
use std::sync::Arc;
use suimon_fleet::AsksFor;
use suimon_model::RouteId;
use suimon_pool::{Kept, Lease};

/// A request's place at a node; freed when dropped.
pub(crate) struct Guard {
    pub(crate) shared: Arc<Shared>,
    pub(crate) node: Arc<Node>,
    pub(crate) asked: Asked,
    /// The worker that has the request; dropping it says that the request was cancelled.
    pub(crate) worker: Option<Lease>,
}

/// What the fleet must be told of a request. Small, as each answer carries it.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) route: Option<RouteId>,
    pub(crate) is_new_path: bool,
    /// Whether no other node would have done: see [`suimon_fleet::Served`].
    pub(crate) is_bound: bool,
    /// Whether the answer has begun.
    pub(crate) is_answered: bool,
}

impl Asked {
    pub(crate) fn asks(self) -> AsksFor {
        match self.route {
            _ if self.is_new_path => AsksFor::NewPath,
            Some(route) => AsksFor::Route(route),
            None => AsksFor::Ungated,
        }
    }
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

    /// Notes that the node has answered.
    pub(crate) fn note_answer(&mut self) {
        self.shared.note_answer(self.node.id, self.asked.asks());
        self.asked.is_answered = true;
    }

    /// Notes that the node has broken off an answer.
    pub(crate) fn note_broken(&self) {
        let Asked { route, is_bound, .. } = self.asked;
        self.shared.note_served((self.node.id, is_bound), self.shared.now(), route, false);
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
        if self.asked.is_answered {
            fleet.handle_release(now, self.node.id);
        } else {
            fleet.handle_unanswered(now, self.node.id, self.asked.asks());
        }
    }
}

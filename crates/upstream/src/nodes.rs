//! The table of nodes. It changes while requests run: a request holds its node, and a place in the
//! table is free again only once the fleet says that no request is there.

use arc_swap::ArcSwap;
use std::sync::Arc;
use suimon_model::NodeId;

/// All nodes, by id. Read without a lock; changed under the fleet's lock only.
pub(super) struct Nodes<N>(ArcSwap<Vec<Option<Arc<N>>>>);

impl<N> Nodes<N> {
    pub(super) fn new(nodes: Vec<Arc<N>>) -> Self {
        Nodes(ArcSwap::from_pointee(nodes.into_iter().map(Some).collect()))
    }

    pub(super) fn get(&self, id: NodeId) -> Option<Arc<N>> {
        self.0.load().get(id.index()).cloned().flatten()
    }

    /// Returns whether this very node is still there: its id may belong to another.
    pub(super) fn has(&self, id: NodeId, node: &Arc<N>) -> bool {
        let nodes = self.0.load();
        nodes.get(id.index()).and_then(Option::as_ref).is_some_and(|there| Arc::ptr_eq(there, node))
    }

    pub(super) fn is_single(&self) -> bool {
        self.0.load().iter().flatten().nth(1).is_none()
    }

    pub(super) fn any(&self, is_meant: impl Fn(&N) -> bool) -> bool {
        self.0.load().iter().flatten().any(|node| is_meant(node))
    }

    /// Returns those that are there now.
    pub(super) fn present(&self) -> Vec<Arc<N>> {
        self.0.load().iter().flatten().cloned().collect()
    }

    pub(super) fn set(&self, id: NodeId, node: Option<Arc<N>>) {
        let mut nodes = Vec::clone(&self.0.load());
        if nodes.len() <= id.index() {
            nodes.resize(id.index() + 1, None);
        }
        nodes[id.index()] = node;
        self.0.store(Arc::new(nodes));
    }
}

//! The table of nodes. It changes while requests run: a request holds its node, and a place in the
//! table is free again only once the fleet says that no request is there.

use super::{Node, Upstream};
use arc_swap::ArcSwap;
use std::sync::Arc;
use suimon_model::NodeId;
use suimon_params::upstream::NodeParams;

/// All nodes, by id. Read without a lock; changed under the fleet's lock only.
pub(super) struct Nodes(ArcSwap<Vec<Option<Arc<Node>>>>);

impl Nodes {
    pub(super) fn new(nodes: Vec<Arc<Node>>) -> Self {
        Nodes(ArcSwap::from_pointee(nodes.into_iter().map(Some).collect()))
    }

    pub(super) fn get(&self, id: NodeId) -> Option<Arc<Node>> {
        self.0.load().get(id.index()).cloned().flatten()
    }

    /// Returns whether this very node is still there: its id may belong to another.
    pub(super) fn has(&self, id: NodeId, node: &Arc<Node>) -> bool {
        self.0.load().get(id.index()).and_then(Option::as_ref).is_some_and(|there| Arc::ptr_eq(there, node))
    }

    pub(super) fn is_single(&self) -> bool {
        self.0.load().iter().flatten().nth(1).is_none()
    }

    pub(super) fn any(&self, is_meant: impl Fn(&Node) -> bool) -> bool {
        self.0.load().iter().flatten().any(|node| is_meant(node))
    }

    /// Returns those that are there now.
    pub(super) fn present(&self) -> Vec<(NodeId, Arc<Node>)> {
        let ids = (0u32..).map(NodeId);
        ids.zip(self.0.load().iter())
            .filter_map(|(id, node)| Some((id, Arc::clone(node.as_ref()?))))
            .collect()
    }

    fn set(&self, id: NodeId, node: Option<Arc<Node>>) {
        let mut nodes = Vec::clone(&self.0.load());
        if nodes.len() <= id.index() {
            nodes.resize(id.index() + 1, None);
        }
        nodes[id.index()] = node;
        self.0.store(Arc::new(nodes));
    }
}

impl Upstream {
    /// Takes in a node that serves from now on, and returns its id.
    ///
    /// # Errors
    /// A sentence: too many nodes, or an address that cannot be used.
    pub fn add_node(&self, node: &NodeParams) -> Result<NodeId, String> {
        let shared = &self.shared;
        let node = Arc::new(Node::new(shared.origin, node, &shared.params)?);
        let id = {
            let mut fleet = shared.fleet();
            let id = fleet.add_node(shared.now()).map_err(|full| full.to_string())?;
            shared.nodes.set(id, Some(node));
            id
        };
        shared.hurry.notify_one();
        shared.tell_changes();
        Ok(id)
    }

    /// Lets a node go that drains and has no request; returns whether it is gone. Its idle
    /// connections are closed, and its id belongs to the next node that is added.
    pub fn remove_node(&self, id: NodeId) -> bool {
        let shared = &self.shared;
        // What is known of it is said while it has a name.
        shared.tell_changes();
        let mut fleet = shared.fleet();
        let is_gone = fleet.remove_node(shared.now(), id);
        if is_gone {
            shared.nodes.set(id, None);
        }
        is_gone
    }
}

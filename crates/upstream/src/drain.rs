//! Nodes that get nothing new, and go.

use super::Upstream;
use suimon_model::NodeId;

impl Upstream {
    /// Gives a node no new requests if `draining`, or gives it new ones again. Its requests in
    /// flight continue.
    pub fn drain(&self, node: NodeId, draining: bool) {
        let now = self.shared.now();
        self.shared.fleet().drain(now, node, draining);
        self.shared.tell_changes();
    }

    /// Gives the nodes whose addresses `is_meant` names nothing new, whatever else is said of them,
    /// and no others.
    pub fn hold_back(&self, is_meant: impl Fn(&str) -> bool) {
        let (now, shared) = (self.shared.now(), &self.shared);
        let nodes = shared.nodes.present();
        {
            let mut fleet = shared.fleet();
            for node in nodes {
                fleet.hold_back(now, node.id, is_meant(&node.params.to_string()));
            }
        }
        shared.tell_changes();
    }

    /// Lets the sessions of the application that are at a node go elsewhere, as it will be gone in a
    /// moment.
    pub fn release_sessions(&self, node: NodeId) {
        let now = self.shared.now();
        self.shared.fleet().release_sessions(now, node);
        self.shared.tell_changes();
    }

    /// Lets a node go that drains and has no request, and no session that stays at its node; returns
    /// whether it is gone. Its idle connections are closed, and its id belongs to the next node that is
    /// added.
    pub fn remove_node(&self, id: NodeId) -> bool {
        let shared = &self.shared;
        // What is known of it is said while it has a name.
        shared.tell_changes();
        let mut fleet = shared.fleet();
        let is_gone = fleet.remove_node(shared.now(), id);
        if is_gone {
            shared.nodes.set(id, None);
            shared.name_reporter(id, None);
        }
        is_gone
    }
}

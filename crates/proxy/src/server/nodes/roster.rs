//! Nodes that came while the gateway runs, as the way to the application knows them.

use suimon_model::NodeId;
use suimon_params::upstream::NodeParams;
use suimon_upstream::Upstream;

/// Nodes that came, and those of them that go.
pub(crate) struct Roster {
    upstream: Upstream,
    nodes: Vec<Come>,
}

/// A node that came.
pub(super) struct Come {
    pub(super) address: NodeParams,
    pub(super) id: NodeId,
    /// Whether the provider was told that it is down.
    pub(super) is_down: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Serving,
    /// It finishes its requests and keeps its sessions.
    Draining,
    /// It finishes its requests.
    Gone,
}

impl Roster {
    pub(crate) fn new(upstream: Upstream) -> Self {
        Roster { upstream, nodes: Vec::new() }
    }

    /// Has a node serve from now on, for the first time or again.
    ///
    /// # Errors
    /// A sentence: too many nodes, or an address that cannot be used.
    pub(crate) fn serve(&mut self, address: &NodeParams) -> Result<(), String> {
        if let Some(node) = self.find(address) {
            node.state = State::Serving;
            let id = node.id;
            self.upstream.drain(id, false);
            return Ok(());
        }
        let id = self.upstream.add_node(address)?;
        tracing::info!(node = %address, "a node serves");
        self.nodes.push(Come { address: address.clone(), id, is_down: false, state: State::Serving });
        Ok(())
    }

    /// Gives a node no more requests but those of its sessions.
    pub(crate) fn drain(&mut self, address: &NodeParams) {
        self.part_with(address, State::Draining);
    }

    /// Gives a node no more requests: it is gone, or will be in a moment.
    pub(crate) fn end(&mut self, address: &NodeParams) {
        self.part_with(address, State::Gone);
    }

    fn part_with(&mut self, address: &NodeParams, state: State) {
        let Some(node) = self.find(address) else { return };
        node.state = state;
        let id = node.id;
        self.upstream.drain(id, true);
        if state == State::Gone {
            self.upstream.release_sessions(id);
        }
    }

    /// Lets nodes go that have nothing left, and returns those that drained.
    pub(crate) fn let_go(&mut self) -> Vec<NodeParams> {
        let (upstream, mut empty) = (&self.upstream, Vec::new());
        self.nodes.retain(|node| {
            if node.state == State::Serving || !upstream.remove_node(node.id) {
                return true;
            }
            if node.state == State::Draining {
                empty.push(node.address.clone());
            }
            false
        });
        empty
    }

    /// The same, to note what was said of them.
    pub(super) fn serving_mut(&mut self) -> impl Iterator<Item = &mut Come> {
        self.nodes.iter_mut().filter(|node| node.state == State::Serving)
    }

    /// Returns those that serve.
    pub(super) fn serving(&self) -> impl Iterator<Item = &Come> {
        self.nodes.iter().filter(|node| node.state == State::Serving)
    }

    /// Returns whether a node is one that came.
    pub(super) fn has(&self, id: NodeId) -> bool {
        self.nodes.iter().any(|node| node.id == id)
    }

    fn find(&mut self, address: &NodeParams) -> Option<&mut Come> {
        // One that is gone may still have requests when another begins at its address.
        self.nodes.iter_mut().find(|node| node.state != State::Gone && node.address == *address)
    }
}

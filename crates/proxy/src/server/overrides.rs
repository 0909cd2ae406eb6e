//! Overrides as an operator sees and commands them.

use super::Observer;
use crate::overrides::{Overridden, Override, OverrideError, OverrideOrder};
use suimon_model::RouteId;
use suimon_routes::OTHER;
use suimon_upstream::{Upstream, UpstreamNodeView};

impl Observer {
    /// Returns the overrides in force, by their numbers.
    pub fn overrides(&self) -> Vec<Override> {
        self.gateway.overrides()
    }

    /// Puts an override in force.
    ///
    /// # Errors
    /// If there is no such route or node, or it cannot be overridden so. Nothing is changed then.
    pub fn override_with(&self, order: OverrideOrder) -> Result<(), OverrideError> {
        match &order.what {
            Overridden::Route { name, mode } => {
                let names = self.backend().telemetry.route_names();
                let mut ids = names.iter().filter(|(own, _)| own == name).map(|(_, id)| *id);
                match ids.next() {
                    None => return Err(OverrideError::NoSuchRoute(name.clone())),
                    Some(OTHER) if mode.fixed().is_some() => {
                        return Err(OverrideError::Several(name.clone()));
                    }
                    Some(RouteId(_)) => {}
                }
            }
            Overridden::Gate => {}
            Overridden::Node { address } => self.may_drain(address)?,
        }
        self.gateway.override_with(order)
    }

    /// Ends an override before its time, because `who` says so.
    ///
    /// # Errors
    /// If there is none of this number.
    pub fn release(&self, id: u64, who: &str) -> Result<(), OverrideError> {
        self.gateway.release(id, who)
    }

    /// Returns whether a node is there, and another one takes new requests in its place.
    fn may_drain(&self, address: &str) -> Result<(), OverrideError> {
        let backend = self.backend();
        let views: Vec<_> = backend
            .upstreams()
            .filter(|(_, it)| has_nodes(it))
            .map(|(_, upstream)| upstream.view())
            .collect();
        if views.iter().flatten().all(|node| node.address != *address) {
            let others = views.into_iter().flatten().map(|node| node.address).collect();
            return Err(OverrideError::NoSuchNode(address.to_owned(), others));
        }
        let is_last = |nodes: &Vec<UpstreamNodeView>| {
            let mut up = nodes.iter().filter(|node| node.status == "up");
            up.next().is_some_and(|node| node.address == *address) && up.next().is_none()
        };
        if views.iter().any(is_last) {
            return Err(OverrideError::LastNode(address.to_owned()));
        }
        Ok(())
    }
}

/// Returns whether the requests go to nodes, not to workers that the gateway runs itself.
pub(crate) fn has_nodes(upstream: &Upstream) -> bool {
    upstream.pool().is_none()
}

//! The nodes that would be found now: by the addresses of their names, or in a file.

use std::net::ToSocketAddrs as _;
use suimon_params::discovery::{DiscoveryParams, DiscoverySource, read_nodes};
use suimon_params::upstream::{NodeAddress, NodeParams};

/// The most nodes named one by one.
const NAMED_MAX: usize = 8;

/// Returns where nodes are found, in a few words.
pub(crate) fn place(discovery: &DiscoveryParams) -> String {
    match &discovery.source {
        DiscoverySource::File { path, .. } => format!("those in {}", path.display()),
        DiscoverySource::Dns { names, every } => {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let every = suimon_settings::duration::show(*every);
            format!("each address of {}, looked up every {every}", names.join(", "))
        }
    }
}

/// Returns the nodes that are found now, for people. Looks names up, which may take a while.
pub(crate) fn now(discovery: &DiscoveryParams) -> String {
    match &discovery.source {
        DiscoverySource::File { path, protocol } => {
            let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
            match text.and_then(|text| read_nodes(&text, *protocol)) {
                Ok(nodes) => named(&nodes.into_iter().map(|(_, node)| node).collect::<Vec<_>>()),
                Err(why) => format!("{} {why}", path.display()),
            }
        }
        DiscoverySource::Dns { names, .. } => names.iter().map(looked_up).collect::<Vec<_>>().join("; "),
    }
}

fn looked_up(name: &NodeParams) -> String {
    let NodeAddress::Tcp { host, port } = &name.address else { return name.to_string() };
    match (host.as_str(), *port).to_socket_addrs() {
        Ok(addresses) => {
            let mut addresses: Vec<_> = addresses.collect();
            addresses.sort_unstable();
            addresses.dedup();
            let nodes: Vec<_> = addresses.into_iter().map(|address| name.found_at(address)).collect();
            format!("{host}: {}", named(&nodes))
        }
        // It may be known where the gateway will run.
        Err(error) => format!("{host} cannot be looked up here: {error}"),
    }
}

fn named(nodes: &[NodeParams]) -> String {
    let count = nodes.len();
    let mut names: Vec<String> = nodes.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    if count > NAMED_MAX {
        names.push(format!("and {} more", count - NAMED_MAX));
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

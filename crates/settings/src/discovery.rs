//! Where nodes are found.

use crate::Faults;
use crate::read::Sections;
use suimon_params::discovery::{Discover, DiscoveryParams, DiscoverySource};
use suimon_params::upstream::{NodeParams, Protocol};

/// Returns how nodes are found. Those of `nodes` that are names to be looked up are taken out.
pub(crate) fn discovery(
    sections: &Sections,
    nodes: &mut Vec<NodeParams>,
    protocol: Protocol,
    faults: &mut Faults,
) -> Option<DiscoveryParams> {
    let values = sections.once("upstream");
    let file = values.given_path("nodes_file");
    let by_dns = values.choice("discover", Discover::of) == Discover::Dns;
    let given = match (&file, by_dns) {
        (Some(path), false) => ("upstream.nodes_file", format!("{path:?}")),
        (None, true) => ("upstream.discover", "\"dns\"".to_owned()),
        (None, false) => return None,
        (Some(path), true) => {
            let allowed = "left out with upstream.discover = \"dns\": one list says which nodes there are";
            faults.value("upstream.nodes_file", format!("{path:?}"), allowed);
            return None;
        }
    };
    if crate::nodes::come(sections) {
        let allowed = "left out where nodes.provider starts nodes: it says which nodes there are";
        faults.value(given.0, given.1, allowed);
        return None;
    }
    let source = match file {
        Some(path) => DiscoverySource::File { path, protocol },
        None => {
            let (names, others) = std::mem::take(nodes).into_iter().partition(NodeParams::is_named);
            *nodes = others;
            if Vec::is_empty(&names) {
                let allowed = "\"off\" where upstream.nodes has no host name, as it has addresses only";
                faults.value(given.0, given.1, allowed);
            }
            DiscoverySource::Dns { names, every: values.time("discover_every") }
        }
    };
    Some(DiscoveryParams { source, drain_within: values.time("drain_within") })
}

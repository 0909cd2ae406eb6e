//! Which nodes there are, by the EndpointSlices of a Service.
//!
//! A Service has several slices, and while they are rearranged an endpoint may be in two of them or, for a moment, in a
//! stale one: the best that is said of it counts. A pod with an address of each family is one node; IPv4 is taken.
//!
//! | endpoint | node |
//! |---|---|
//! | `ready` | ready |
//! | listed, not ready, not `terminating` | known ones are unready: what they have goes on, nothing new comes |
//! | `terminating` | known ones are leaving, until they are killed or finished |
//! | not listed | gone |
//!
//! A node that was never ready is not told of.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// Nodes at most; endpoints beyond these are left alone, and that is said.
pub(crate) const NODES_MAX: usize = 1000;
/// Slices of a Service at most; those beyond are not looked at, and that is said.
pub(crate) const SLICES_MAX: usize = 1000;

/// How a node stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Standing {
    /// It is being ended.
    Leaving,
    /// It is not ready at the moment.
    Unready,
    /// It takes requests.
    Ready,
}

/// What became of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// It stands like this now.
    Stands(SocketAddr, Standing),
    /// It is no more.
    Gone(SocketAddr),
}

/// One slice, reduced to what decides.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Slice {
    endpoints: Vec<Endpoint>,
    /// Names of its ports, if none of them is the one that is asked for.
    other_ports: Option<Vec<String>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Endpoint {
    /// The pod, or the address if it is none.
    identity: String,
    address: SocketAddr,
    standing: Standing,
}

impl Slice {
    /// Returns what a slice says of the port that has this name or number. Empty: of its only port.
    pub(crate) fn read(slice: &EndpointSlice, port: &str) -> Slice {
        let ports = slice.ports.as_deref().unwrap_or_default();
        let chosen = ports.iter().find(|candidate| {
            let name = candidate.name.as_deref().unwrap_or_default();
            name == port
                || (port.is_empty() && ports.len() == 1)
                || candidate.port.is_some_and(|number| number.to_string() == port)
        });
        let Some(number) = chosen.and_then(|port| port.port).and_then(|port| u16::try_from(port).ok()) else {
            let names = ports.iter().map(|port| port.name.clone().unwrap_or_default()).collect();
            let is_empty = slice.endpoints.is_empty();
            return Slice { endpoints: Vec::new(), other_ports: (!is_empty).then_some(names) };
        };
        let endpoints = slice.endpoints.iter().filter_map(|endpoint| {
            // All addresses of an endpoint are the same pod; the first is the one to use. Names are
            // no addresses: `FQDN` slices hold no nodes.
            let ip: IpAddr = endpoint.addresses.first()?.parse().ok()?;
            let conditions = endpoint.conditions.as_ref();
            // What is not said: ready unless it ends (discovery/v1).
            let terminating = conditions.and_then(|all| all.terminating).unwrap_or(false);
            let ready = conditions.and_then(|all| all.ready).unwrap_or(true);
            let standing = match (terminating, ready) {
                (true, _) => Standing::Leaving,
                (false, true) => Standing::Ready,
                (false, false) => Standing::Unready,
            };
            let pod = endpoint.target_ref.as_ref();
            let address = SocketAddr::new(ip, number);
            let identity = pod.and_then(|pod| pod.uid.clone()).unwrap_or_else(|| address.to_string());
            Some(Endpoint { identity, address, standing })
        });
        Slice { endpoints: endpoints.collect(), other_ports: None }
    }
}

/// All slices of a Service, and what was told of its nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    slices: BTreeMap<String, Slice>,
    told: BTreeMap<SocketAddr, (String, Standing)>,
    /// Whether there are more slices than are looked at.
    has_more_slices: bool,
    /// Whether there are more nodes than are told of.
    has_more_nodes: bool,
}

impl Directory {
    /// Takes a slice that is new or has changed.
    pub(crate) fn put(&mut self, name: &str, slice: Slice) -> Vec<Change> {
        if self.slices.len() >= SLICES_MAX && !self.slices.contains_key(name) {
            self.has_more_slices = true;
            return Vec::new();
        }
        self.slices.insert(name.to_string(), slice);
        self.tell()
    }

    /// Takes a slice away.
    pub(crate) fn remove(&mut self, name: &str) -> Vec<Change> {
        self.slices.remove(name);
        self.tell()
    }

    /// Takes all slices that there are, in place of all before: a node that is in both stays.
    pub(crate) fn replace(&mut self, slices: impl IntoIterator<Item = (String, Slice)>) -> Vec<Change> {
        let mut all = slices.into_iter();
        self.slices = all.by_ref().take(SLICES_MAX).collect();
        self.has_more_slices = all.next().is_some();
        self.tell()
    }

    /// Returns how many nodes that were told of are ready.
    pub(crate) fn ready(&self) -> u32 {
        let ready = self.told.values().filter(|(_, standing)| *standing == Standing::Ready).count();
        u32::try_from(ready).unwrap_or(u32::MAX)
    }

    /// Returns what is amiss with what the slices say, if anything is.
    pub(crate) fn complaint(&self, service: &str, port: &str) -> Option<String> {
        if self.slices.is_empty() {
            return Some(format!(
                "Service {service} has no EndpointSlice: check its name and namespace, and that it has a selector"
            ));
        }
        let others: BTreeSet<&str> = self
            .slices
            .values()
            .filter_map(|slice| slice.other_ports.as_ref())
            .flatten()
            .map(String::as_str)
            .collect();
        if self.told.is_empty() && !others.is_empty() {
            let others: Vec<&str> = others.into_iter().collect();
            return Some(format!(
                "Service {service} has no port {port:?}, only: {}; set the name of one of them",
                others.join(", ")
            ));
        }
        (self.has_more_slices || self.has_more_nodes).then(|| {
            format!(
                "Service {service} has more than {NODES_MAX} endpoints: the others get no requests; give it fewer, larger pods"
            )
        })
    }

    /// Returns the changes since the last time, and remembers them as told.
    fn tell(&mut self) -> Vec<Change> {
        let now = self.nodes();
        let mut changes = Vec::new();
        self.has_more_nodes = false;
        self.told.retain(|address, (identity, _)| {
            // An address that another pod has taken is another node.
            let stays = now.get(address).is_some_and(|(other, _)| other == identity);
            if !stays {
                changes.push(Change::Gone(*address));
            }
            stays
        });
        for (address, (identity, standing)) in now {
            match self.told.get(&address) {
                Some((_, told)) if *told == standing => continue,
                None if standing != Standing::Ready => continue,
                None if self.told.len() >= NODES_MAX => {
                    self.has_more_nodes = true;
                    continue;
                }
                _ => {}
            }
            changes.push(Change::Stands(address, standing));
            self.told.insert(address, (identity, standing));
        }
        changes
    }

    /// Returns each node once, at one address.
    fn nodes(&self) -> BTreeMap<SocketAddr, (String, Standing)> {
        let mut pods: BTreeMap<&str, (SocketAddr, Standing)> = BTreeMap::new();
        for endpoint in self.slices.values().flat_map(|slice| &slice.endpoints) {
            let (address, standing) = (endpoint.address, endpoint.standing);
            let kept = pods.entry(&endpoint.identity).or_insert((address, standing));
            let is_better = (address.is_ipv4(), standing) > (kept.0.is_ipv4(), kept.1);
            if is_better {
                *kept = (address, standing);
            }
        }
        pods.into_iter().fold(BTreeMap::new(), |mut nodes, (identity, (address, standing))| {
            let best = nodes.entry(address).or_insert((identity.to_string(), standing));
            if standing > best.1 {
                *best = (identity.to_string(), standing);
            }
            nodes
        })
    }
}

#[cfg(test)]
mod tests;

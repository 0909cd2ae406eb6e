//! Where nodes are found that the settings do not name one by one.

use crate::upstream::{NODES_MAX, NodeAddress, NodeParams, Protocol};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The most bytes of a file of nodes.
pub const NODES_FILE_BYTES_MAX: u64 = 64 << 10;
/// The word of a file that means to have no nodes.
const NONE: &str = "none";

/// How nodes are found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiscoveryParams {
    /// Where.
    pub source: DiscoverySource,
    /// How long a node that is found no longer may go on with what it has.
    pub drain_within: Duration,
}

/// Where nodes are found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiscoverySource {
    /// Each address of these names is a node.
    Dns {
        /// Nodes by name.
        names: Vec<NodeParams>,
        /// Time from one lookup to the next.
        every: Duration,
    },
    /// A file names them, one a line.
    File {
        /// The file.
        path: PathBuf,
        /// What is spoken to them.
        protocol: Protocol,
    },
}

suimon_model::choices! {
    /// Whether names of nodes are looked up again.
    #[derive(Eq)]
    pub enum Discover {
        /// A name is one node.
        Off = 0, "off", "a name is one node, at whichever of its addresses takes the connection";
        /// Each address of a name is a node.
        Dns = 1, "dns", "each address of a name in nodes is a node; looked up again every discover_every";
    }
}

impl NodeParams {
    /// Returns whether the node is known by a name, which may have several addresses.
    pub fn is_named(&self) -> bool {
        let NodeAddress::Tcp { host, .. } = &self.address else { return false };
        host.parse::<std::net::IpAddr>().is_err()
    }

    /// Returns the node at one address of this one's name.
    #[must_use]
    pub fn found_at(&self, address: SocketAddr) -> NodeParams {
        let name = self.host().into();
        NodeParams { address: NodeAddress::Found { name, address }, ..self.clone() }
    }
}

/// Returns the nodes in the text of a file, each with its line from 1: one a line, and `#` begins a
/// comment. A file with the single word `none` has none.
///
/// # Errors
/// A sentence that names the line and what is wrong with it. A file without nodes is a fault, as it
/// may be one that is still being written.
pub fn read_nodes(text: &str, protocol: Protocol) -> Result<Vec<(usize, NodeParams)>, String> {
    let lines =
        (1..).zip(text.lines().map(|line| line.split_once('#').map_or(line, |(line, _)| line).trim()));
    let lines: Vec<(usize, &str)> = lines.filter(|(_, line)| !line.is_empty()).collect();
    match *lines {
        [] => return Err(format!("has no nodes; write the word {NONE} to mean that")),
        [(_, NONE)] => return Ok(Vec::new()),
        _ if lines.len() > NODES_MAX => {
            return Err(format!("has {} nodes, and at most {NODES_MAX} are allowed", lines.len()));
        }
        _ => {}
    }
    let mut nodes: Vec<(usize, NodeParams)> = Vec::with_capacity(lines.len());
    for (number, line) in lines {
        let node = NodeParams::parse(line).map_err(|why| format!("line {number}: {why}"))?;
        let node = NodeParams { protocol, ..node };
        if let Some((earlier, _)) = nodes.iter().find(|(_, earlier)| *earlier == node) {
            return Err(format!("line {number}: {node} is in line {earlier} already"));
        }
        nodes.push((number, node));
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let nodes = read_nodes(text, Protocol::Http1)?;
        Ok(nodes.into_iter().map(|(line, node)| format!("{line} {node}")).collect())
    }

    #[test]
    fn a_file_names_one_node_a_line() {
        let text = "# shop\n\nhttp://10.0.0.1:80 # the first\r\n  https://[::1]:8443\nunix:/run/app.sock";
        let expected = ["3 http://10.0.0.1:80", "4 https://[::1]:8443", "5 unix:/run/app.sock"];
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn a_fault_names_its_line() {
        for (text, expected) in [
            ("http://10.0.0.1:80\n10.0.0.2:80\n", "line 2: \"10.0.0.2:80\": no scheme"),
            ("http://a:80\n#\nhttp://a:80/\n", "line 3: http://a:80 is in line 1 already"),
            ("http://a:80\nnone\n", "line 2: \"none\": no scheme"),
            ("http://a:80 http://b:80\n", "line 1: "),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.starts_with(expected), "{text}: {why}");
        }
        let many: String = (0..=NODES_MAX).map(|port| format!("http://a:{}\n", port + 1)).collect();
        assert_eq!(read(&many).unwrap_err(), "has 257 nodes, and at most 256 are allowed");
    }

    #[test]
    fn a_file_without_nodes_says_so_or_is_a_fault() {
        assert_eq!(read("# for now\nnone\n").unwrap(), [""; 0]);
        for text in ["", "\n\n", "# http://10.0.0.1:80\n"] {
            assert!(read(text).unwrap_err().starts_with("has no nodes; write the word none"), "{text}");
        }
    }

    #[test]
    fn a_node_that_was_found_is_called_by_the_name_it_was_found_by() {
        let node = NodeParams::parse("https://shop.internal:8443").unwrap();
        assert!(node.is_named());
        let found = node.found_at("10.0.0.7:8443".parse().unwrap());
        assert_eq!(found.to_string(), "https://10.0.0.7:8443");
        assert_eq!((found.authority(), found.host()), ("shop.internal:8443".to_owned(), "shop.internal"));
        assert!(!found.is_named() && !NodeParams::parse("http://[::1]:80").unwrap().is_named());
    }
}

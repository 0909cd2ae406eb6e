//! Nodes that a file names.

use super::{News, Source};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use suimon_params::Params;
use suimon_params::discovery::{DiscoverySource, NODES_FILE_BYTES_MAX, read_nodes};
use suimon_params::upstream::{NodeParams, Protocol};
use suimon_upstream::Upstream;

/// A file that is read again when it changes.
pub(super) struct NodesFile {
    path: PathBuf,
    protocol: Protocol,
    /// Knows which nodes can be used.
    upstream: Upstream,
    /// The file as it was when it was last read; `None`: it could not be looked at since.
    read: Option<Stamp>,
    /// The file as it was at the last look: it is read once it has not changed for one, as it may still
    /// be written. The first time it is read at once.
    last: Option<Stamp>,
    is_first: bool,
}

/// What changes with the content of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

impl NodesFile {
    pub(super) fn new(path: PathBuf, protocol: Protocol, upstream: Upstream) -> Self {
        NodesFile { path, protocol, upstream, read: None, last: None, is_first: true }
    }

    async fn changed(&mut self) -> Result<Option<Vec<NodeParams>>, String> {
        let is_first = std::mem::take(&mut self.is_first);
        let stamp = stamp(&self.path).await.inspect_err(|_| self.read = None)?;
        let is_settled = self.last.replace(stamp) == Some(stamp) || is_first;
        if self.read == Some(stamp) || !is_settled {
            return Ok(None);
        }
        let path = self.path.clone();
        let bytes = tokio::task::spawn_blocking(move || bytes_of(&path)).await;
        let bytes = bytes.map_err(|error| error.to_string()).and_then(|bytes| bytes);
        if stamp != self::stamp(&self.path).await? {
            return Ok(None);
        }
        // What keeps it from being read may go away without a change of it: rights, or a lack of descriptors.
        let bytes = bytes?;
        self.read = Some(stamp);
        nodes_in(&bytes, self.protocol, &self.upstream).map(Some)
    }
}

impl Source for NodesFile {
    async fn look(&mut self) -> Option<News> {
        match self.changed().await {
            Ok(nodes) => nodes.map(|nodes| News { nodes: Some(nodes), trouble: None }),
            Err(why) => Some(News { nodes: None, trouble: Some(format!("{} {why}", self.path.display())) }),
        }
    }
}

/// Returns what is wrong with the file that names nodes, if one does.
pub(in super::super) fn check(params: &Params) -> Result<(), String> {
    let source = params.node_discovery.as_ref().map(|discovery| &discovery.source);
    let Some(DiscoverySource::File { path, protocol }) = source else { return Ok(()) };
    // What is wrong with other settings is told of with them.
    let Ok(upstream) = Upstream::new(params.upstream.clone()) else { return Ok(()) };
    let nodes = bytes_of(path).and_then(|bytes| nodes_in(&bytes, *protocol, &upstream));
    nodes.map(drop).map_err(|why| format!("{} {why}", path.display()))
}

/// Returns the nodes in a file, all of them or none.
fn nodes_in(bytes: &[u8], protocol: Protocol, upstream: &Upstream) -> Result<Vec<NodeParams>, String> {
    if bytes.len() as u64 > NODES_FILE_BYTES_MAX {
        return Err(format!("has more than {NODES_FILE_BYTES_MAX} bytes"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| format!("is no text in UTF-8: {error}"))?;
    let nodes = read_nodes(text, protocol)?;
    for (line, node) in &nodes {
        upstream.check_node(node).map_err(|why| format!("line {line}: {why}"))?;
    }
    Ok(nodes.into_iter().map(|(_, node)| node).collect())
}

async fn stamp(path: &Path) -> Result<Stamp, String> {
    let file = tokio::fs::metadata(path).await.map_err(unread)?;
    Ok(Stamp { modified: file.modified().ok(), bytes: file.len(), inode: file.ino() })
}

/// Returns the bytes of a file, and one more at most than it may have.
fn bytes_of(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unread)?;
    file.take(NODES_FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unread)?;
    Ok(bytes)
}

#[allow(clippy::needless_pass_by_value, reason = "as errors are mapped")]
fn unread(error: io::Error) -> String {
    format!("cannot be read: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_params::upstream::UpstreamParams;

    fn upstream() -> Upstream {
        Upstream::new(UpstreamParams { grows: true, ..UpstreamParams::default() }).unwrap()
    }

    fn file(folder: &tempfile::TempDir) -> NodesFile {
        NodesFile::new(folder.path().join("nodes"), Protocol::Http1, upstream())
    }

    fn write(folder: &tempfile::TempDir, text: &str) {
        // As an operator's tools do: whole, under another name, and then in its place.
        let new = folder.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, folder.path().join("nodes")).unwrap();
    }

    fn named(news: Option<News>) -> Result<Vec<String>, String> {
        let News { nodes, trouble } = news.expect("there is news");
        match (nodes, trouble) {
            (Some(nodes), None) => Ok(nodes.iter().map(ToString::to_string).collect()),
            (None, Some(trouble)) => Err(trouble.split_once("nodes ").unwrap().1.to_owned()),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_file_is_read_again_once_it_has_changed_and_then_not_for_a_look() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder, "http://10.0.0.1:80\n");
        let mut file = file(&folder);
        assert_eq!(named(file.look().await).unwrap(), ["http://10.0.0.1:80"]);
        assert_eq!(file.look().await, None);
        write(&folder, "http://10.0.0.2:80\n");
        assert_eq!(file.look().await, None, "it may still be written");
        assert_eq!(named(file.look().await).unwrap(), ["http://10.0.0.2:80"]);
        assert_eq!(file.look().await, None);
    }

    #[tokio::test]
    async fn a_file_that_can_be_looked_at_and_not_read_is_tried_again_though_it_has_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file(&folder);
        // As one without rights, or while no descriptor is left.
        std::fs::create_dir(folder.path().join("nodes")).unwrap();
        for _ in 0..3 {
            assert!(named(file.look().await).unwrap_err().starts_with("cannot be read: "));
        }
        std::fs::remove_dir(folder.path().join("nodes")).unwrap();
        write(&folder, "http://10.0.0.1:80\n");
        file.look().await;
        assert_eq!(named(file.look().await).unwrap(), ["http://10.0.0.1:80"]);
        assert_eq!(file.look().await, None);
    }

    #[tokio::test]
    async fn a_file_with_a_fault_or_without_nodes_or_that_is_gone_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file(&folder);
        assert!(named(file.look().await).unwrap_err().starts_with("cannot be read: "));
        for (text, expected) in [
            ("http://10.0.0.1:80\nhttp://10.0.0.2:x\n", "line 2: \"http://10.0.0.2:x\": port"),
            ("# nothing\n", "has no nodes"),
            ("http://10.0.0.1:80\nfastcgi://10.0.0.2:9000\n", "line 2: fastcgi://10.0.0.2:9000: a FastCGI"),
            (&"#".repeat(65537), "has more than 65536 bytes"),
        ] {
            write(&folder, text);
            file.look().await;
            let why = named(file.look().await).unwrap_err();
            assert!(why.starts_with(expected), "{why}");
            assert_eq!(file.look().await, None, "once");
        }
        write(&folder, "none\n");
        file.look().await;
        assert_eq!(named(file.look().await).unwrap(), [""; 0]);
        std::fs::rename(folder.path().join("nodes"), folder.path().join("away")).unwrap();
        assert!(named(file.look().await).unwrap_err().starts_with("cannot be read: "));
        // The same file is news again, as it was not known that it would be.
        std::fs::rename(folder.path().join("away"), folder.path().join("nodes")).unwrap();
        assert_eq!(named(file.look().await).unwrap(), [""; 0]);
    }
}

//! Where something is kept that outlives the process.

use std::path::PathBuf;

/// Where something is kept that outlives the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StatePath {
    /// In a folder for state that the user who starts the gateway chooses.
    StateFolder,
    /// In this file.
    File(PathBuf),
    /// Nowhere: they end with the process.
    Nowhere,
}

/// Returns the place that a setting names.
pub(crate) fn kept(path: Option<PathBuf>) -> StatePath {
    match path {
        None => StatePath::StateFolder,
        Some(path) if path.as_os_str() == "none" => StatePath::Nowhere,
        Some(path) => StatePath::File(path),
    }
}

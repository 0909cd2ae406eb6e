//! Where something is kept that outlives the process.

use std::env;
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

/// Returns the folder for state: systemd's, else $XDG_STATE_HOME's, else the usual one in $HOME.
pub fn state_folder() -> Option<PathBuf> {
    folder_of(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
}

fn folder_of(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // systemd may name several folders, separated by colons; the first is ours.
    let systemd = variable("STATE_DIRECTORY").and_then(|paths| env::split_paths(&paths).next());
    systemd
        .or_else(|| variable("XDG_STATE_HOME").map(|home| home.join("suimon")))
        .or_else(|| variable("HOME").map(|home| home.join(".local/state/suimon")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(set: &[(&str, &str)]) -> Option<PathBuf> {
        folder_of(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value)))
    }

    #[test]
    fn the_state_folder_is_systemds_then_the_desktops_then_the_homes() {
        let all = [("STATE_DIRECTORY", "/s/a:/s/b"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(folder(&all), Some("/s/a".into()));
        assert_eq!(folder(&all[1..]), Some("/x/suimon".into()));
        assert_eq!(folder(&all[2..]), Some("/h/.local/state/suimon".into()));
        assert_eq!(folder(&[]), None);
    }
}

//! Where the keys that sign leases are kept, and what survives a restart of the line.

use std::env;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use suimon_proxy::keys::{Keys, KeysError};
use suimon_settings::Kept;

/// The file of keys in the state folder; those of lines are named by the port, so that two gateways do not write to the same.
const KEYS: &str = "lease.keys";

/// Returns the file that holds the keys, if one does. A state folder that cannot be used is no reason not to serve: keys
/// then end with the process, and that is said.
pub(crate) fn keys(kept: &Kept) -> Option<PathBuf> {
    let consequence = "leases end with this process: after a restart, visitors under way count as newcomers; name a file with --lease-keys or lease.keys";
    let path = file(kept, KEYS, consequence)?;
    match (kept, Keys::open(&path)) {
        (Kept::StateFolder, Err(error @ KeysError::Io(..))) => {
            tracing::warn!("{error}, so {consequence}");
            None
        }
        // A file that is there and wrong is told by whoever opens it to use it.
        _ => Some(path),
    }
}

/// Returns the file in which the line of a gateway that listens on `port` survives a restart, if there is one. On a port that
/// is taken by chance nobody comes back.
pub(crate) fn line(kept: &Kept, port: u16) -> Option<PathBuf> {
    if port == 0 && *kept == Kept::StateFolder {
        return None;
    }
    file(
        kept,
        &format!("waiting-room-{port}.json"),
        "the line ends with this process: after a restart everybody waits in a new one; name a file with waiting_room.state",
    )
}

fn file(kept: &Kept, name: &str, consequence: &str) -> Option<PathBuf> {
    match kept {
        Kept::Nowhere => return None,
        Kept::File(path) => return Some(path.clone()),
        Kept::StateFolder => {}
    }
    let Some(folder) =
        state_folder(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
    else {
        tracing::warn!(
            "there is no state folder ($STATE_DIRECTORY, $XDG_STATE_HOME and $HOME are not set), so {consequence}"
        );
        return None;
    };
    if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(&folder) {
        tracing::warn!("{}: cannot be made ({error}), so {consequence}", folder.display());
        return None;
    }
    Some(folder.join(name))
}

/// Returns the folder for state: systemd's, else the desktop's, else the one that is usual in a home.
fn state_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // systemd may name several, with colons between; the first is ours.
    let systemd = variable("STATE_DIRECTORY").and_then(|paths| env::split_paths(&paths).next());
    systemd
        .or_else(|| variable("XDG_STATE_HOME").map(|home| home.join("suimon")))
        .or_else(|| variable("HOME").map(|home| home.join(".local/state/suimon")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(set: &[(&str, &str)]) -> Option<PathBuf> {
        state_folder(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value))
        })
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

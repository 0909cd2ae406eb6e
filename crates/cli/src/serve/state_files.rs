//! Paths of the files that survive a restart: the keys that sign leases, the line, and the learned
//! state.

use rustix::fs::Access;
use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use suimon_identity::keys::{Keys, KeysError};
use suimon_params::AccessFormat;
use suimon_settings::{Faults, Settings, StatePath, state_folder};

/// The key file in the state folder. The other files are named by port or address, so that two
/// gateways never write to the same file.
const KEYS: &str = "lease.keys";

/// Returns the key file, if there is one. If the state folder cannot be used, the gateway serves
/// anyway: it warns that the keys end with the process.
pub(crate) fn keys(kept: &StatePath) -> Option<PathBuf> {
    let consequence = "leases end with this process: after a restart, visitors under way count as newcomers; name a file with --lease-keys or lease.keys";
    let path = file(kept, Some(KEYS), consequence)?;
    match (kept, Keys::open(&path)) {
        (StatePath::StateFolder, Err(error @ KeysError::Io(..))) => {
            tracing::warn!("{error}, so {consequence}");
            None
        }
        // A file that exists but is wrong is reported by the code that opens it to use it.
        _ => Some(path),
    }
}

/// Returns the key file that a start would read, if it exists. Creates nothing.
pub(crate) fn keys_there(kept: &StatePath) -> Option<PathBuf> {
    match kept {
        StatePath::Nowhere => None,
        StatePath::File(path) => Some(path.clone()),
        StatePath::StateFolder => state_folder().map(|folder| folder.join(KEYS)).filter(|path| path.exists()),
    }
}

/// Notes files that settings name but that cannot be written, because the folder is missing or
/// write-protected. Creates nothing.
pub(crate) fn check(settings: &Settings, faults: &mut Faults) {
    let access_file =
        settings.telemetry.access_file.clone().filter(|_| settings.telemetry.access != AccessFormat::Off);
    let named = |kept: &StatePath| if let StatePath::File(path) = kept { Some(path.clone()) } else { None };
    let recorded =
        |params: &suimon_params::Params| params.record.as_ref().map(|recording| recording.file.clone());
    let mut files = vec![
        ("lease.keys".to_owned(), named(&settings.lease_keys)),
        ("waiting_room.state".to_owned(), named(&settings.waiting_room_state)),
        ("learned.state".to_owned(), named(&settings.learned_state)),
        ("log.access_file".to_owned(), access_file),
        ("record.file".to_owned(), recorded(&settings.proxy)),
    ];
    for (index, (site, state)) in settings.proxy.sites.iter().zip(&settings.site_states).enumerate() {
        files.extend([
            (format!("site[{index}].waiting_room.state"), named(&state.waiting_room)),
            (format!("site[{index}].learned.state"), named(&state.learned)),
            (format!("site[{index}].record.file"), recorded(&site.params)),
        ]);
    }
    let files: Vec<_> = files.into_iter().filter_map(|(key, path)| Some((key, path?))).collect();
    for (index, (key, path)) in files.iter().enumerate() {
        if let Some((other, _)) = files[..index].iter().find(|(_, earlier)| earlier == path) {
            let allowed = format!("another file than {other}, which is written otherwise");
            faults.value(key.as_str(), format!("\"{}\"", path.display()), allowed);
            continue;
        }
        // An existing key file is only read, and an existing log is written without a new file.
        if ["lease.keys", "log.access_file"].contains(&key.as_str()) && path.exists() && !path.is_dir() {
            continue;
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let seen = format!("\"{}\"", path.display());
        if path.is_dir() {
            faults.value(key.as_str(), seen, "a file; this is a folder");
        } else if !folder.is_dir() {
            faults.value(
                key.as_str(),
                seen,
                format!("in a folder that is there; {} is not", folder.display()),
            );
        } else if let Err(error) = rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK) {
            faults.value(
                key.as_str(),
                seen,
                format!("in a folder that can be written to; {} cannot ({error})", folder.display()),
            );
        }
    }
}

/// Names the files of state of all sites of a gateway that listens at `address`. Without an address, or
/// at a port that the system chooses, there are only those that the settings name, since it may be
/// another one at the next start.
pub(crate) fn name(settings: &mut Settings, address: Option<SocketAddr>) {
    let address = address.filter(|address| address.port() != 0);
    let params = &mut settings.proxy;
    params.waiting_room.state_file = line(&settings.waiting_room_state, address, None);
    params.learned_file = learned(&settings.learned_state, address, None);
    params.overrides_file = overrides(address, None);
    for (site, state) in params.sites.iter_mut().zip(&settings.site_states) {
        let (name, own) = (site.params.site.clone(), &mut site.params);
        own.waiting_room.state_file = line(&state.waiting_room, address, name.as_deref());
        own.learned_file = learned(&state.learned, address, name.as_deref());
        own.overrides_file = overrides(address, name.as_deref());
    }
}

/// Returns the file that keeps the line of a gateway over a restart, if there is one.
fn line(kept: &StatePath, address: Option<SocketAddr>, site: Option<&str>) -> Option<PathBuf> {
    let name = address.map(|address| format!("waiting-room-{}{}.json", address.port(), ending(site)));
    file(
        kept,
        name.as_deref(),
        "the line ends with this process: after a restart everybody waits in a new one; name a file with waiting_room.state",
    )
}

/// Returns the file that keeps the learned state of a gateway over a restart, if there is one.
fn learned(kept: &StatePath, address: Option<SocketAddr>, site: Option<&str>) -> Option<PathBuf> {
    let name = address.map(|address| format!("learned-{}{}.json", place(address), ending(site)));
    file(
        kept,
        name.as_deref(),
        "what is learned ends with this process: after a restart limits are searched anew; name a file with --learned or learned.state",
    )
}

/// Returns the file that keeps what an operator overrides over a restart, if there is one.
fn overrides(address: Option<SocketAddr>, site: Option<&str>) -> Option<PathBuf> {
    let name = address.map(|address| format!("overrides-{}{}.json", place(address), ending(site)));
    file(&StatePath::StateFolder, name.as_deref(), "overrides of an operator end with this process")
}

fn place(address: SocketAddr) -> String {
    format!("{}-{}", address.ip().to_string().replace(':', "_"), address.port())
}

fn ending(site: Option<&str>) -> String {
    site.map_or(String::new(), |site| format!("-{site}"))
}

/// Returns the file that is named, or the one of this name in the state folder.
fn file(kept: &StatePath, name: Option<&str>, consequence: &str) -> Option<PathBuf> {
    match kept {
        StatePath::Nowhere => return None,
        StatePath::File(path) => return Some(path.clone()),
        StatePath::StateFolder => {}
    }
    let name = name?;
    let Some(folder) = state_folder() else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_a_learned_file_of_its_own_and_one_taken_by_chance_has_none() {
        let named = StatePath::File("/l".into());
        assert_eq!(learned(&StatePath::StateFolder, None, None), None);
        assert_eq!(learned(&named, None, None), Some("/l".into()));
        let at = |address: &str, site| {
            let path = learned(&StatePath::StateFolder, Some(address.parse().unwrap()), site);
            path.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()))
        };
        if let Some(name) = at("[::1]:80", Some("tickets")) {
            assert_eq!(name, "learned-__1-80-tickets.json");
        }
        assert_eq!(learned(&StatePath::Nowhere, Some("127.0.0.1:80".parse().unwrap()), None), None);
    }
}

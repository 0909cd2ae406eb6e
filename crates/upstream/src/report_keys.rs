//! The file of keys that load reports are sealed with, on gateways and nodes.

use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{error, fmt, fs};
use suimon_agent::keyring::{BadKeys, Keyring};

/// The longest file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 10;

/// Why there are no keys.
#[derive(Debug)]
pub enum ReportKeysError {
    /// The file could not be read.
    Io(PathBuf, io::Error),
    /// Users other than its owner may read the file, or change it; its mode.
    Open(PathBuf, u32),
    /// It is longer than any file of keys.
    TooLong(PathBuf),
    /// What is wrong in it.
    Bad(PathBuf, BadKeys),
}

/// Returns the keys in the file at `path`.
///
/// # Errors
/// See [`ReportKeysError`]; the message names the file and the remedy.
pub fn open(path: &Path) -> Result<Keyring, ReportKeysError> {
    let io = |error| ReportKeysError::Io(path.to_owned(), error);
    let file = fs::File::open(path).map_err(io)?;
    let mode = file.metadata().map_err(io)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(ReportKeysError::Open(path.to_owned(), mode));
    }
    let mut text = String::new();
    let length = file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(io)?;
    if length as u64 > BYTES_MAX {
        return Err(ReportKeysError::TooLong(path.to_owned()));
    }
    Keyring::parse(&text).map_err(|bad| ReportKeysError::Bad(path.to_owned(), bad))
}

impl fmt::Display for ReportKeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ReportKeysError::Io(path, _)
        | ReportKeysError::Open(path, _)
        | ReportKeysError::TooLong(path)
        | ReportKeysError::Bad(path, _)) = self;
        let path = path.display();
        write!(f, "keys of load reports {path}: ")?;
        match self {
            ReportKeysError::Io(_, error) if error.kind() == io::ErrorKind::NotFound => write!(
                f,
                "there is no such file; make one with `suimon agent --new-key {path}`, and copy it to every gateway and node"
            ),
            ReportKeysError::Io(_, error) => error.fmt(f),
            ReportKeysError::Open(_, mode) => {
                write!(f, "others may read or change it (mode {mode:04o}); run: chmod 600 {path}")
            }
            ReportKeysError::TooLong(_) => f.write_str("it is too long for a file of keys"),
            ReportKeysError::Bad(_, bad) => bad.fmt(f),
        }
    }
}

impl error::Error for ReportKeysError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            ReportKeysError::Io(_, error) => Some(error),
            ReportKeysError::Bad(_, bad) => Some(bad),
            ReportKeysError::Open(..) | ReportKeysError::TooLong(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_agent::keyring::file_text;

    #[test]
    fn only_a_file_that_is_its_owners_alone_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.keys");
        let missing = open(&path).unwrap_err().to_string();
        assert!(missing.contains("suimon agent --new-key"), "{missing}");
        let write = |text: &str, mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            open(&path)
        };
        let good = file_text(0, &[9; 32]);
        assert!(write(&good, 0o600).is_ok() && write(&good, 0o400).is_ok());
        for mode in [0o640, 0o604, 0o620, 0o660] {
            let message = write(&good, mode).unwrap_err().to_string();
            assert!(message.contains("chmod 600"), "{message}");
        }
        assert!(matches!(write("0 12", 0o600), Err(ReportKeysError::Bad(..))));
        assert!(matches!(write(&"#".repeat(70_000), 0o600), Err(ReportKeysError::TooLong(_))));
    }
}

//! Files of state: written whole or not at all, and never older state over newer.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Writes the file: under another name first, so that whoever looks finds the old content or the new.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let unfinished = with_ending(path, &std::process::id().to_string());
    let written = File::create(&unfinished).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_data()
    });
    written.and_then(|()| fs::rename(&unfinished, path)).inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })
}

/// Returns the path with `.ending` behind it.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut longer = path.as_os_str().to_owned();
    longer.push(".");
    longer.push(ending);
    PathBuf::from(longer)
}

/// The order of writings: one that is still under way when another begins, as may be at the end, must not come after it.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// How many have begun.
    begun: AtomicU64,
    /// The number of the newest that has reached the disk; held while one is written.
    newest: Mutex<u64>,
}

impl Order {
    /// Returns the number of a writing that begins now.
    pub(crate) fn begin(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// Does what `write` does, unless one with a number above `own` was written already.
    pub(crate) fn write<T: Default>(&self, own: u64, write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if own < *newest {
            return Ok(T::default());
        }
        let written = write()?;
        *newest = own;
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_is_not_written_over_what_is_newer() {
        let (order, written) = (Order::default(), std::cell::Cell::new(None));
        let write = |own| {
            order.write(own, || {
                written.set(Some(own));
                Ok(())
            })
        };
        write(1).unwrap();
        write(0).unwrap();
        assert_eq!(written.get(), Some(1));
        let broken = || -> io::Result<()> { Err(io::Error::other("the disk is full")) };
        assert!(order.write(3, broken).is_err());
        write(2).unwrap();
        assert_eq!(written.get(), Some(2), "what failed was not written");
    }

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        for content in ["old and longer", "new"] {
            write(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(&folder.path().join("nowhere/state"), b"").is_err());
    }
}

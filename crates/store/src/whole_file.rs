//! Files of state: written whole or not at all, and never older state over newer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most files of one name that are set aside; past it the one that was written first goes.
pub const BROKEN_MAX: usize = 3;

/// Writes the file, for its owner alone: under another name first, so that a reader finds the old
/// content or the new, also after a power failure.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let unfinished = with_ending(path, &std::process::id().to_string());
    // Left by a process of the same id that ended while it wrote, as in a container every one has.
    let _ = fs::remove_file(&unfinished);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished);
    let written = file.and_then(|mut file| {
        file.write_all(content)?;
        file.sync_data()
    });
    written.and_then(|()| fs::rename(&unfinished, path)).inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })?;
    sync_folder(path)
}

/// Waits until the names in the folder of `path` are on the disk.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems do not support this; and a user who may write in a folder need not be
        // allowed to read it.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

/// A file that cannot be used, under another name. It gets its own back when this is dropped before it is
/// kept: a start that fails changes no file, one that was set aside before included.
#[derive(Debug)]
#[must_use = "dropped, it is put back"]
pub struct SetAside {
    own: PathBuf,
    /// Where it is until it is kept.
    meanwhile: PathBuf,
    aside: PathBuf,
    is_kept: bool,
}

impl SetAside {
    /// Takes the file from `path`, to be called `aside` once it is kept.
    pub fn new(path: &Path, aside: PathBuf) -> io::Result<Self> {
        let meanwhile = with_ending(path, "unused");
        fs::rename(path, &meanwhile)?;
        Ok(SetAside { own: path.to_owned(), meanwhile, aside, is_kept: false })
    }

    /// Returns where it is once it is kept.
    pub fn aside(&self) -> &Path {
        &self.aside
    }

    /// Leaves it aside.
    pub fn keep(mut self) {
        self.is_kept = true;
        if let Err(error) = fs::rename(&self.meanwhile, &self.aside) {
            tracing::warn!("{}: it keeps this name ({error})", self.meanwhile.display());
        }
    }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        // One that was written meanwhile is another gateway's.
        if self.is_kept || self.own.exists() {
            return;
        }
        match fs::rename(&self.meanwhile, &self.own) {
            Ok(()) => {
                tracing::warn!("{}: it is back under this name, as the start failed", self.own.display());
            }
            Err(error) => {
                tracing::error!("{}: it cannot be put back ({error})", self.meanwhile.display());
            }
        }
    }
}

/// Gives a file that cannot be used another name, `.broken` and the like. At most [`BROKEN_MAX`] are kept.
pub fn set_aside(path: &Path) -> io::Result<SetAside> {
    let name = |index: usize| match index {
        0 => with_ending(path, "broken"),
        _ => with_ending(path, &format!("broken-{}", index + 1)),
    };
    let written = |path: &PathBuf| fs::symlink_metadata(path).and_then(|there| there.modified()).ok();
    // One that is missing counts as written before all others.
    let aside = (0..BROKEN_MAX).map(name).min_by_key(written).expect("there is a name");
    SetAside::new(path, aside)
}

/// Returns the path with `.ending` behind it.
pub fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut longer = path.as_os_str().to_owned();
    longer.push(".");
    longer.push(ending);
    PathBuf::from(longer)
}

/// The order of writes: one that is still under way when another begins, as may be at the end, must
/// not come after it.
#[derive(Debug, Default)]
pub struct WriteOrder {
    /// How many have begun.
    begun: AtomicU64,
    /// The number of the newest that has reached the disk; held while one is written.
    newest: Mutex<u64>,
}

impl WriteOrder {
    /// Returns the number of a writing that begins now.
    pub fn begin(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// Does what `write` does, unless one with a number above `own` was written already.
    pub fn write<T: Default>(&self, own: u64, write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
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
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_older_is_not_written_over_what_is_newer() {
        let (order, written) = (WriteOrder::default(), std::cell::Cell::new(None));
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
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600,
            "it is its owner's alone"
        );
        // A process of the same id was ended while it wrote.
        fs::write(with_ending(&path, &std::process::id().to_string()), "half").unwrap();
        write(&path, b"newer").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(&folder.path().join("nowhere/state"), b"").is_err());
    }

    #[test]
    fn what_is_not_kept_aside_is_put_back_unless_there_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let count = || fs::read_dir(folder.path()).unwrap().count();
        let earlier = (0..BROKEN_MAX).map(|number| {
            fs::write(&path, format!("broken before {number}")).unwrap();
            let set_aside = set_aside(&path).unwrap();
            let aside = set_aside.aside().to_owned();
            set_aside.keep();
            aside
        });
        let earlier = earlier.collect::<Vec<_>>();
        fs::write(&path, "broken").unwrap();
        drop(set_aside(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "broken");
        for (number, aside) in earlier.iter().enumerate() {
            assert_eq!(fs::read_to_string(aside).unwrap(), format!("broken before {number}"));
        }
        assert_eq!(count(), BROKEN_MAX + 1);
        let aside = set_aside(&path).unwrap();
        fs::write(&path, "another").unwrap();
        drop(aside);
        assert_eq!(fs::read_to_string(&path).unwrap(), "another");
        assert_eq!(count(), BROKEN_MAX + 2);
    }

    #[test]
    fn so_many_that_cannot_be_used_are_kept_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut kept = std::collections::BTreeSet::new();
        for round in 0..2 * BROKEN_MAX {
            fs::write(&path, round.to_string()).unwrap();
            let set_aside = set_aside(&path).unwrap();
            let aside = set_aside.aside().to_owned();
            set_aside.keep();
            assert_eq!(fs::read_to_string(&aside).unwrap(), round.to_string());
            assert!(aside.to_str().unwrap().contains("state.broken") && !path.exists());
            kept.insert(aside);
        }
        assert_eq!((kept.len(), fs::read_dir(folder.path()).unwrap().count()), (BROKEN_MAX, BROKEN_MAX));
    }
}

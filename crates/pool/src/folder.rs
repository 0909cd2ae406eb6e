//! The folder of a pool's sockets: one for each gateway process and pool, made anew at each start.
//!
//! It is `NAME.PID` in the folder of the settings, mode 0700, and belongs to the user of the
//! workers, so that they can open sockets there and nobody else can use them. Beside it lies
//! `NAME.PID.lock`, which the gateway keeps locked: the kernel unlocks it when the gateway ends,
//! however that happens, and so a folder that nobody uses any more is told from one in use for sure.

use rustix::fs::{AtFlags, Mode, OFlags};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use suimon_params::pool::User;

/// Folders of dead gateways that are removed at one start; the next start removes more.
const REMOVED_MAX: usize = 64;
/// What the name of a lock ends in.
const LOCK: &str = ".lock";

/// A folder of a pool's own. Dropping this removes it.
pub(super) struct Folder {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder of the pool `name` in `parent`, and removes those of dead gateways there.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn make(parent: &Path, name: &str, user: Option<&User>) -> io::Result<Self> {
        if !parent.exists() {
            DirBuilder::new().recursive(true).mode(0o711).create(parent)?;
            // Workers of other users have to get through it, whatever our mask of modes says.
            fs::set_permissions(parent, fs::Permissions::from_mode(0o711))?;
        }
        remove_dead(parent, name)?;
        let path = parent.join(format!("{name}.{}", std::process::id()));
        let lock_path = parent.join(format!("{name}.{}{LOCK}", std::process::id()));
        let Some(lock) = locked(&lock_path)? else {
            let text = format!("{} is in use: another pool has this name", lock_path.display());
            return Err(io::Error::other(text));
        };
        // An earlier process may have had the same number.
        remove(&path)?;
        DirBuilder::new().mode(0o700).create(&path)?;
        if let Some(user) = user.filter(|_| rustix::process::geteuid().is_root()) {
            std::os::unix::fs::lchown(&path, Some(user.id), Some(user.group))?;
        }
        Ok(Folder { path, lock_path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays is removed by the next gateway.
        let _ = remove(&self.path);
        let _ = fs::remove_file(&self.lock_path);
    }
}

/// Removes the folders of this pool whose gateways have ended.
fn remove_dead(parent: &Path, name: &str) -> io::Result<()> {
    let number = |file: &str| {
        let number = file.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(LOCK)?;
        number.parse::<u32>().ok()
    };
    let mut removed = 0;
    for entry in fs::read_dir(parent)? {
        let file = entry?.file_name();
        let Some(pid) = file.to_str().and_then(number).filter(|_| removed < REMOVED_MAX) else { continue };
        let lock_path = parent.join(&file);
        if let Ok(Some(_lock)) = locked(&lock_path) {
            remove(&parent.join(format!("{name}.{pid}")))?;
            fs::remove_file(&lock_path)?;
            removed += 1;
        }
    }
    Ok(())
}

/// Returns the file at this path, locked; `None`: somebody else has locked it.
fn locked(path: &Path) -> io::Result<Option<File>> {
    loop {
        let follow_no_link = OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(false).mode(0o600).custom_flags(follow_no_link);
        let file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Whoever had it locked may have removed it meanwhile.
        let own = file.metadata()?;
        if fs::symlink_metadata(path).is_ok_and(|it| (it.dev(), it.ino()) == (own.dev(), own.ino())) {
            return Ok(Some(file));
        }
    }
}

/// Removes a folder and the files in it. The workers' user can put anything there: no link is
/// followed, nothing below it is touched, and a folder with folders in it stays.
fn remove(path: &Path) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let folder = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for entry in rustix::fs::Dir::read_from(&folder)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            rustix::fs::unlinkat(&folder, entry.file_name(), AtFlags::empty())?;
        }
    }
    fs::remove_dir(path)
}

/// Returns whether this may be the name of a pool: it is part of paths.
pub(super) fn is_name(name: &str) -> bool {
    let bytes = Path::new(name).as_os_str().as_bytes();
    let is_usual = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=NAME_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(is_usual)
}

/// The longest name of a pool, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_only_the_workers_and_goes_with_the_pool() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::make(parent.path(), "shop", None).unwrap();
        let mode = fs::metadata(folder.path()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::write(folder.path().join("1.sock"), "").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn one_of_a_dead_gateway_is_removed_and_one_in_use_stays() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        let kept = tempfile::tempdir().unwrap();
        fs::write(kept.path().join("kept"), "").unwrap();
        for name in ["shop.1", "shop.2", "shop2.1", "other.1"] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(&format!("{name}/0.sock")), "").unwrap();
            fs::write(path(&format!("{name}.lock")), "").unwrap();
        }
        std::os::unix::fs::symlink(kept.path(), path("shop.1/link")).unwrap();
        let in_use = locked(&path("shop.2.lock")).unwrap().expect("nobody else has it");
        let folder = Folder::make(parent.path(), "shop", None).unwrap();
        assert!(!path("shop.1").exists() && !path("shop.1.lock").exists());
        assert!(path("shop.2/0.sock").exists() && path("shop2.1").exists() && path("other.1").exists());
        assert!(kept.path().join("kept").exists(), "no link is followed");
        drop((in_use, folder));
    }

    #[test]
    fn two_pools_of_one_name_are_refused() {
        let parent = tempfile::tempdir().unwrap();
        let _first = Folder::make(parent.path(), "shop", None).unwrap();
        assert!(Folder::make(parent.path(), "shop", None).is_err());
    }

    #[test]
    fn a_name_is_no_path() {
        assert!(is_name("shop-2_b"));
        for name in ["", "..", "a/b", "a b", "sh\u{f6}p", "a.b", &"x".repeat(33)] {
            assert!(!is_name(name), "{name}");
        }
    }
}

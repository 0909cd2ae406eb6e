//! The folder of a pool's sockets: one for each gateway process and pool, made anew at each start.
//!
//! It is `NAME.PID` in the folder of the settings, mode 0700, and belongs to the user of the
//! workers, so that they can open sockets there and nobody else can use them. Beside it lies
//! `NAME.PID.lock`, which the gateway keeps locked: the kernel unlocks it when the gateway ends,
//! however that happens, and so a folder that nobody uses any more is told from one in use for sure.
//!
//! The folder of the settings may lie where everybody may make files, as `/tmp`, and somebody else may
//! have been the first to make it. It is used only if it is a folder and no link, belongs to the
//! gateway's user or to root, and nobody else may write there.

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
        open_parent(parent)?;
        remove_dead(parent, name).map_err(|error| told_of(parent, &error))?;
        let path = parent.join(format!("{name}.{}", std::process::id()));
        let lock_path = parent.join(format!("{name}.{}{LOCK}", std::process::id()));
        let Some(lock) = locked(&lock_path).map_err(|error| told_of(&lock_path, &error))? else {
            let text = format!("{} is in use: another pool has this name", lock_path.display());
            return Err(io::Error::other(text));
        };
        // An earlier process may have had the same number.
        remove(&path)
            .and_then(|()| DirBuilder::new().mode(0o700).create(&path))
            .map_err(|error| told_of(&path, &error))?;
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

/// Makes the folder in which those of the pools are, unless it is there, and checks that it is ours.
fn open_parent(parent: &Path) -> io::Result<()> {
    if let Some(above) = parent.parent().filter(|above| !above.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o711).create(above)?;
    }
    let is_new = match DirBuilder::new().mode(0o711).create(parent) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(told_of(parent, &error)),
    };
    if let Some(why) = stranger(parent).map_err(|error| told_of(parent, &error))? {
        return Err(io::Error::other(format!("the folder of the sockets, {}, {why}", parent.display())));
    }
    if is_new {
        // Workers of other users have to get through it, whatever our mask of modes says.
        fs::set_permissions(parent, fs::Permissions::from_mode(0o711))?;
    }
    Ok(())
}

fn told_of(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Returns why the folder of the sockets is not to be trusted, if it is not.
///
/// # Errors
/// It is not there, or cannot be looked at.
pub(super) fn stranger(folder: &Path) -> io::Result<Option<String>> {
    // A slash at the end would follow a link.
    let metadata = fs::symlink_metadata(folder.components().collect::<PathBuf>())?;
    let (own, owner, mode) = (rustix::process::geteuid().as_raw(), metadata.uid(), metadata.mode() & 0o7777);
    Ok(if metadata.is_symlink() {
        Some("is a symbolic link".to_owned())
    } else if !metadata.is_dir() {
        Some("is no folder".to_owned())
    } else if owner != own && owner != 0 {
        Some(format!("belongs to user {owner}, and the gateway runs as user {own}"))
    } else if mode & 0o022 != 0 {
        // With the sticky bit nobody else may remove our files, but they could be the first to make
        // them.
        Some(format!("is writable for other users (mode {mode:04o}); chmod go-w"))
    } else {
        None
    })
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
    fn what_somebody_else_may_have_made_is_refused() {
        let above = tempfile::tempdir().unwrap();
        let parent = above.path().join("sockets");
        let why = || Folder::make(&parent, "shop", None).map(|_| ()).unwrap_err().to_string();
        let (other, chmod) = (above.path().join("other"), |mode| fs::Permissions::from_mode(mode));
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, &parent).unwrap();
        assert!(why().contains("sockets, is a symbolic link"), "{}", why());
        assert!(stranger(&parent.join("")).unwrap().is_some(), "a slash follows it");
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        fs::remove_file(&parent).unwrap();
        fs::write(&parent, "").unwrap();
        assert!(why().contains("is no folder"), "{}", why());
        fs::remove_file(&parent).unwrap();
        fs::create_dir(&parent).unwrap();
        for mode in [0o777, 0o1777, 0o720] {
            fs::set_permissions(&parent, chmod(mode)).unwrap();
            assert!(why().contains("is writable for other users"), "{}", why());
        }
        fs::set_permissions(&parent, chmod(0o755)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&parent, Some(65_534), None).unwrap();
            assert!(why().contains("belongs to user 65534, and the gateway runs as user 0"), "{}", why());
            std::os::unix::fs::chown(&parent, Some(0), None).unwrap();
        }
        assert!(Folder::make(&parent, "shop", None).is_ok());
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

//! The keys that leases are signed with: read from a file, made on the first start.
//!
//! One key a line: an id from 0 to 255, a space, 64 hexadecimal digits. The first signs; all are
//! accepted. To rotate, put a new line first; remove the old one when no lease signed with it can
//! still be good. Of several gateways, all must accept a key before one of them signs with it: a line
//! that begins with `next` is accepted and does nothing else.

use ring::rand::{SecureRandom as _, SystemRandom};
use rustix::process::geteuid;
use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{error, fmt, fs};
use suimon_store::whole_file::{sync_folder, with_ending};

/// The most keys a file may hold.
pub const KEYS_MAX: usize = 16;
/// The longest file that is read.
const BYTES_MAX: u64 = 64 << 10;

/// The keys, the signing one first; at least one.
#[derive(Clone)]
pub struct Keys {
    keys: Vec<Key>,
    /// Those that are accepted before they sign.
    next: Vec<Key>,
}

/// One key and the id leases name it by.
#[derive(Clone, Copy)]
pub struct Key {
    /// What names it.
    pub id: u8,
    /// What it signs with.
    pub secret: [u8; 32],
}

/// Why there are no keys.
#[derive(Debug)]
pub enum KeysError {
    /// The file could not be read or made.
    Io(PathBuf, io::Error),
    /// Users other than its owner may read the file; its mode.
    Readable(PathBuf, u32),
    /// A line, counted from 1, is wrong, and in what way.
    Line(PathBuf, usize, &'static str),
    /// It is no file of keys, and in what way.
    Foreign(PathBuf, &'static str),
    /// There is no key in the file.
    Empty(PathBuf),
    /// The system gave no random bytes.
    Random,
}

impl Keys {
    /// Returns the keys of the file at `path`, made with one fresh key and mode 0600 if it is not
    /// there.
    ///
    /// # Errors
    /// See [`KeysError`]; the message names the file and the remedy.
    pub fn open(path: &Path) -> Result<Keys, KeysError> {
        match fs::File::open(path) {
            Ok(file) => Keys::read(path, file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Keys::create(path),
            Err(error) => Err(KeysError::Io(path.to_owned(), error)),
        }
    }

    /// Checks whether [`Keys::open`] could give keys, and creates nothing: a file that is missing
    /// is created at the start.
    ///
    /// # Errors
    /// See [`KeysError`].
    pub fn check(path: &Path) -> Result<(), KeysError> {
        match fs::File::open(path) {
            Ok(file) => Keys::read(path, file).map(drop),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(KeysError::Io(path.to_owned(), error)),
        }
    }

    /// Returns one fresh key that nobody else has.
    ///
    /// # Errors
    /// Where the system gives no random bytes.
    pub fn fresh() -> Result<Keys, KeysError> {
        let mut secret = [0; 32];
        fill_random(&mut secret)?;
        Ok(Keys { keys: vec![Key { id: 0, secret }], next: vec![] })
    }

    /// Returns keys of the same ids for one purpose alone.
    pub fn derived(&self, purpose: &str) -> Keys {
        let of = |key: &Key| Key { id: key.id, secret: blake3::derive_key(purpose, &key.secret) };
        Keys { keys: self.keys.iter().map(of).collect(), next: self.next.iter().map(of).collect() }
    }

    /// Returns the key that signs.
    pub fn signing(&self) -> &Key {
        self.keys.first().expect("there is at least one key")
    }

    /// Returns the key that signed before all others: the last one of the file.
    pub fn oldest(&self) -> &Key {
        self.keys.last().expect("there is at least one key")
    }

    /// Returns the key of that id.
    pub fn find(&self, id: u8) -> Option<&Key> {
        self.keys.iter().chain(&self.next).find(|key| key.id == id)
    }

    fn read(path: &Path, file: fs::File) -> Result<Keys, KeysError> {
        let io = |error| KeysError::Io(path.to_owned(), error);
        let metadata = file.metadata().map_err(io)?;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & forbidden(metadata.uid(), geteuid().as_raw()) != 0 {
            return Err(KeysError::Readable(path.to_owned(), mode));
        }
        let mut text = String::new();
        match file.take(BYTES_MAX + 1).read_to_string(&mut text) {
            Ok(length) if length as u64 > BYTES_MAX => {
                return Err(KeysError::Foreign(path.to_owned(), "it is too long"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(KeysError::Foreign(path.to_owned(), "it is no text"));
            }
            Err(error) => return Err(io(error)),
        }
        let (mut keys, mut next): (Vec<Key>, Vec<Key>) = (Vec::new(), Vec::new());
        let mut ids = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fault = |what| KeysError::Line(path.to_owned(), at + 1, what);
            let (line, of) = match line.strip_prefix("next ") {
                Some(line) => (line.trim_start(), &mut next),
                None => (line, &mut keys),
            };
            let key = parse(line).map_err(fault)?;
            if ids.contains(&key.id) {
                return Err(fault("has the id of a key above it; every key needs its own"));
            }
            if ids.len() == KEYS_MAX {
                return Err(fault("is one key too many; at most 16 are allowed, remove the oldest"));
            }
            ids.push(key.id);
            of.push(key);
        }
        if keys.is_empty() { Err(KeysError::Empty(path.to_owned())) } else { Ok(Keys { keys, next }) }
    }

    fn create(path: &Path) -> Result<Keys, KeysError> {
        let io = |error| KeysError::Io(path.to_owned(), error);
        let keys = Keys::fresh()?;
        let mut text = String::from(
            "# Keys that leases are signed with. Keep this file secret; share it among gateways of one application.\n\
             # One a line: id (0 to 255), 64 hexadecimal digits. The first signs, all are accepted.\n",
        );
        let Key { id, secret } = keys.signing();
        let _ = write!(text, "{id} ");
        for byte in secret {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
        // Complete before it gets its name: two gateways that start together agree on the one that
        // came first.
        let unfinished = with_ending(path, &std::process::id().to_string());
        // Left by a process of the same id that ended before it was done; in a container every one
        // has the same.
        let _ = fs::remove_file(&unfinished);
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished).map_err(io)?;
        let named = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        let named = named.and_then(|()| name(&unfinished, path));
        let _ = fs::remove_file(&unfinished);
        match named {
            Ok(()) => sync_folder(path).map(|()| keys).map_err(io),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Keys::read(path, fs::File::open(path).map_err(io)?)
            }
            Err(error) => Err(io(error)),
        }
    }
}

/// Returns the bits of a file's mode with which others than us could read or change it. A file of root's may be readable
/// by its group: so it is where root hands it to us, as Kubernetes does with secrets, and we could not read it otherwise.
fn forbidden(owner: u32, we: u32) -> u32 {
    const ROOT: u32 = 0;
    if owner == ROOT && we != ROOT { 0o037 } else { 0o077 }
}

/// Gives a complete file its final name, unless there is one of that name.
fn name(complete: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(complete, path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // The volume does not support links.
        Err(_) => name_without_link(complete, path),
    }
}

/// As [`name`] does, where there are no links.
fn name_without_link(complete: &Path, path: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(
        rustix::fs::CWD,
        complete,
        rustix::fs::CWD,
        path,
        rustix::fs::RenameFlags::NOREPLACE,
    ) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::EXIST) => Err(io::ErrorKind::AlreadyExists.into()),
        // Not supported either. Then only two gateways that start for the first time in the same
        // moment could take each other's place.
        Err(_) if path.symlink_metadata().is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(complete, path),
    }
}

/// Fills `bytes` from the system's source of random numbers.
pub fn fill_random(bytes: &mut [u8]) -> Result<(), KeysError> {
    SystemRandom::new().fill(bytes).map_err(|_| KeysError::Random)
}

fn parse(line: &str) -> Result<Key, &'static str> {
    let (id, digits) = line.split_once(char::is_whitespace).ok_or("is not an id and a key")?;
    let id = id.parse().map_err(|_| "begins with something that is not an id from 0 to 255")?;
    let digits = digits.trim().as_bytes();
    if digits.len() != 64 {
        return Err("has a key that is not 64 hexadecimal digits long");
    }
    let mut secret = [0; 32];
    for (byte, pair) in secret.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| {
            (pair[at] as char).to_digit(16).ok_or("has a key with a digit that is not 0-9 or a-f")
        };
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Ok(Key { id, secret })
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Secrets do not belong in logs.
        f.debug_list().entries(self.keys.iter().map(|key| key.id)).finish()
    }
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeysError::Io(path, error) => {
                write!(f, "keys file {}: {error}; its directory must exist and be writable", path.display())
            }
            KeysError::Readable(path, mode) => write!(
                f,
                "keys file {} may be read by others (mode {mode:04o}); run: chmod 600 {}",
                path.display(),
                path.display()
            ),
            KeysError::Line(path, line, what) => write!(
                f,
                "keys file {}, line {line}: {what}; a line is an id from 0 to 255, a space and 64 hexadecimal digits",
                path.display()
            ),
            KeysError::Foreign(path, what) => write!(
                f,
                "keys file {}: {what}; bring back the file, or name the right one with lease.keys",
                path.display()
            ),
            KeysError::Empty(path) => write!(
                f,
                "keys file {}: holds no key; bring back the file, or remove it and one is made on the next start: leases and places given before are then good no more",
                path.display()
            ),
            KeysError::Random => f.write_str("the system gave no random bytes for a signing key"),
        }
    }
}

impl error::Error for KeysError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            KeysError::Io(_, error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn the_first_start_makes_a_secret_file_and_the_next_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        let made = Keys::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Keys::open(&path).unwrap().signing().secret, made.signing().secret);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing unfinished is left behind");
        assert_ne!(Keys::fresh().unwrap().signing().secret, made.signing().secret);
    }

    #[test]
    fn a_file_that_root_hands_to_our_group_is_secret_and_one_of_anybody_else_is_not() {
        const HANDED: u32 = 0o440;
        assert_eq!(forbidden(0, 65532) & HANDED, 0);
        assert_ne!(forbidden(0, 0) & HANDED, 0);
        assert_ne!(forbidden(65532, 65532) & HANDED, 0);
        assert_ne!(forbidden(0, 65532) & 0o460, 0);
        assert_ne!(forbidden(0, 65532) & 0o444, 0);
    }

    #[test]
    fn a_key_to_come_is_accepted_and_neither_signs_nor_counts_as_the_oldest() {
        let (old, new) = ("11".repeat(32), "22".repeat(32));
        let (_dir, path) = file(&format!("7 {old}\nnext 8 {new}\n"), 0o600);
        let keys = Keys::open(&path).unwrap();
        assert_eq!((keys.signing().id, keys.oldest().id), (7, 7));
        assert_eq!(keys.find(8).map(|key| key.secret), Some([0x22; 32]));
        assert!(keys.derived("a purpose").find(8).is_some());
        let (_dir, path) = file(&format!("next 8 {new}\n"), 0o600);
        assert!(matches!(Keys::open(&path), Err(KeysError::Empty(_))), "nothing would sign");
        let (_dir, path) = file(&format!("8 {old}\nnext 8 {new}\n"), 0o600);
        assert!(matches!(Keys::open(&path), Err(KeysError::Line(_, 2, _))), "one id, two keys");
    }

    #[test]
    fn what_a_process_of_the_same_id_left_unfinished_is_in_nobodys_way() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        fs::write(with_ending(&path, &std::process::id().to_string()), "# half").unwrap();
        let made = Keys::open(&path).unwrap();
        assert_eq!(Keys::open(&path).unwrap().signing().secret, made.signing().secret);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn where_a_volume_knows_no_links_the_file_that_came_first_stays_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other, path] = ["one", "other", "keys"].map(|name| dir.path().join(name));
        fs::write(&one, "1").unwrap();
        fs::write(&other, "2").unwrap();
        name_without_link(&one, &path).unwrap();
        assert_eq!(name_without_link(&other, &path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "1");
    }

    #[test]
    fn what_is_no_file_of_keys_is_refused_and_left_as_it_is() {
        for (bytes, part) in [(vec![0xff; 40], "no text"), (vec![b'0'; 100_000], "too long")] {
            let (_dir, path) = file("", 0o600);
            fs::write(&path, &bytes).unwrap();
            let message = Keys::open(&path).unwrap_err().to_string();
            assert!(message.contains(part) && message.contains("bring back"), "{message}");
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
    }

    #[test]
    fn a_file_others_may_read_is_refused() {
        let (_dir, path) = file(&format!("0 {}\n", "0".repeat(64)), 0o640);
        let message = Keys::open(&path).unwrap_err().to_string();
        assert!(message.contains("0640") && message.contains("chmod 600"), "{message}");
    }

    #[test]
    fn bad_content_is_named_by_its_line() {
        let good = format!("7 {}", "aB".repeat(32));
        for (text, part) in [
            ("", "holds no key"),
            ("# only words\n\n", "holds no key"),
            (&format!("{good}\n300 {}", "0".repeat(64)), "line 2: begins with"),
            (&format!("# x\n{good}0"), "line 2: has a key that is not 64"),
            (&format!("1 {}", "g".repeat(64)), "line 1: has a key with a digit"),
            ("nonsense", "line 1: is not an id and a key"),
            (&format!("{good}\n{good}"), "line 2: has the id of a key above"),
        ] {
            let (_dir, path) = file(text, 0o600);
            let message = Keys::open(&path).unwrap_err().to_string();
            assert!(message.contains(part), "{text:?}: {message}");
        }
        let (_dir, path) = file(&good, 0o600);
        assert_eq!(Keys::open(&path).unwrap().signing().secret, [0xAB; 32]);
    }
}

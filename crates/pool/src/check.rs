//! What would keep a pool from working, told before it starts.

use super::folder;
use super::guardian::SHELL;
use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use suimon_params::pool::{PoolParams, User, WorkerKind, WorkerListen};

/// The longest path of a Unix socket, in bytes: what the kernel has room for.
const SOCKET_PATH_MAX: usize = 107;
/// Room for what the name of a socket has after the pool's: the numbers of a process and a worker.
const SOCKET_NAME_BYTES: usize = "/.4194304/18446744073709551615.sock".len();
/// Where programs are looked for without a `PATH`, as execvp(3) does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Something that keeps a pool from working.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolFault {
    /// The name is no name of a file.
    BadName,
    /// There is no such program.
    NoProgram(PathBuf),
    /// The program is there, and the workers' user may not run it.
    NotExecutable(PathBuf),
    /// The working folder is not there, or the workers' user may not use it.
    NoWorkingFolder(PathBuf),
    /// The folder of the sockets cannot be made, or the gateway may not write there.
    FolderNotWritable(PathBuf, String),
    /// The folder of the sockets is no folder, a link, belongs to somebody else, or others may write
    /// to it: which of these.
    FolderNotOurs(PathBuf, String),
    /// The workers' user cannot get through this folder to the sockets.
    FolderClosed(PathBuf),
    /// The path of a socket would be longer than the kernel allows, in bytes.
    SocketPathTooLong(usize),
    /// The gateway may not start programs as another user.
    OtherUser,
    /// The gateway is root and nobody says whose rights the workers have.
    RootWithoutUser,
    /// The command does not say where the worker listens.
    NoPlaceForAddress(WorkerListen),
    /// There is no guardian: what workers start may outlive a gateway that is killed.
    NoGuardian(PathBuf),
}

impl fmt::Display for PoolFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolFault::BadName => {
                let max = folder::NAME_BYTES_MAX;
                write!(f, "name: needs 1 to {max} letters, digits, - and _")
            }
            PoolFault::NoProgram(path) => write!(f, "command: {} is not there", path.display()),
            PoolFault::NotExecutable(path) => {
                write!(f, "command: {} is not executable for the workers' user", path.display())
            }
            PoolFault::NoWorkingFolder(path) => {
                write!(f, "working folder: {} is no folder that the workers' user may use", path.display())
            }
            PoolFault::FolderNotWritable(path, why) => {
                write!(f, "socket folder: {} is not writable: {why}", path.display())
            }
            PoolFault::FolderNotOurs(path, why) => write!(f, "socket folder: {} {why}", path.display()),
            PoolFault::FolderClosed(path) => {
                write!(f, "socket folder: {} is closed for the workers' user", path.display())
            }
            PoolFault::SocketPathTooLong(bytes) => {
                write!(
                    f,
                    "socket folder: sockets would have paths of {bytes} bytes, at most {SOCKET_PATH_MAX} are allowed"
                )
            }
            PoolFault::OtherUser => f.write_str("user: only root may start workers as another user"),
            PoolFault::RootWithoutUser => {
                f.write_str("user: is needed, as the gateway runs as root; \"root\" if that is meant")
            }
            PoolFault::NoPlaceForAddress(listen) => {
                let word = if *listen == WorkerListen::Port { "{port}" } else { "{socket}" };
                write!(f, "command: {word} must be in an argument or in the environment")
            }
            PoolFault::NoGuardian(path) => write!(f, "guardian: {} is not executable", path.display()),
        }
    }
}

/// Returns the user of this name; `None`: there is none.
///
/// # Errors
/// The system's directory of users cannot be asked.
pub fn find_user(name: &str) -> io::Result<Option<User>> {
    let found = suimon_process::find_user(name)?;
    Ok(found.map(|rights| User { id: rights.user, group: rights.group, groups: rights.groups }))
}

/// Returns everything that would keep a pool from working. It opens, makes and starts nothing.
pub fn check(params: &PoolParams) -> Vec<PoolFault> {
    let mut faults = Vec::new();
    let we = Rights::ours();
    let worker = params.command.user.as_ref().map_or_else(|| we.clone(), Rights::of);
    if !folder::is_name(&params.name) {
        faults.push(PoolFault::BadName);
    }
    match &params.command.user {
        None if we.user == 0 => faults.push(PoolFault::RootWithoutUser),
        Some(user) if we.user != 0 && user.id != we.user => faults.push(PoolFault::OtherUser),
        _ => {}
    }
    let is_once = params.kind == WorkerKind::Cgi;
    // Without a command each request says which program runs.
    if !is_once || !params.command.program.as_os_str().is_empty() {
        faults.extend(program_fault(params, &worker));
    }
    if let Some(folder) = &params.command.folder
        && !fs::metadata(folder).is_ok_and(|it| it.is_dir() && worker.may(&it, 1))
    {
        faults.push(PoolFault::NoWorkingFolder(folder.clone()));
    }
    if !is_once {
        faults.extend(listen_faults(params, &we, &worker));
    }
    let guardian = params.guardian.as_ref().map_or(Path::new(SHELL), |guardian| &guardian.program);
    if !fs::metadata(guardian).is_ok_and(|it| it.is_file() && we.may(&it, 1)) {
        faults.push(PoolFault::NoGuardian(guardian.to_owned()));
    }
    faults
}

/// Returns what would keep workers from listening.
fn listen_faults(params: &PoolParams, we: &Rights, worker: &Rights) -> Vec<PoolFault> {
    let mut faults = Vec::new();
    let listen = params.command.listen;
    if matches!(listen, WorkerListen::Socket | WorkerListen::Port)
        && params.command.listen_by_words() != Some(listen)
    {
        faults.push(PoolFault::NoPlaceForAddress(listen));
    }
    if listen == WorkerListen::Descriptor3 && !Path::new(SHELL).exists() {
        faults.push(PoolFault::NoProgram(SHELL.into()));
    }
    faults.extend(folder_fault(&params.folder, we));
    if listen == WorkerListen::Socket {
        // The worker opens its socket by the path.
        let is_closed = |path: &&Path| fs::metadata(path).is_ok_and(|it| it.is_dir() && !worker.may(&it, 1));
        let closed = params.folder.ancestors().find(is_closed);
        faults.extend(closed.map(|path| PoolFault::FolderClosed(path.to_owned())));
    }
    let longest = params.folder.as_os_str().len() + params.name.len() + SOCKET_NAME_BYTES + 1;
    if longest > SOCKET_PATH_MAX {
        faults.push(PoolFault::SocketPathTooLong(longest));
    }
    faults
}

/// Looks for the program as the start of a worker does.
fn program_fault(params: &PoolParams, worker: &Rights) -> Option<PoolFault> {
    let program = &params.command.program;
    let candidates: Vec<PathBuf> = if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        let base = params.command.folder.clone().unwrap_or_default();
        vec![base.join(program)]
    } else {
        let path = params.command.environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map_or(DEFAULT_PATH, |(_, value)| value);
        path.split(':').map(|folder| Path::new(folder).join(program)).collect()
    };
    let there: Vec<(PathBuf, Metadata)> =
        candidates.into_iter().filter_map(|path| fs::metadata(&path).ok().map(|it| (path, it))).collect();
    if there.iter().any(|(_, it)| it.is_file() && worker.may(it, 1)) {
        return None;
    }
    Some(match there.into_iter().next() {
        Some((path, _)) => PoolFault::NotExecutable(path),
        None => PoolFault::NoProgram(program.clone()),
    })
}

/// Looks whether the folder can be used, or made.
fn folder_fault(folder: &Path, we: &Rights) -> Option<PoolFault> {
    let not_writable = |why: &str| Some(PoolFault::FolderNotWritable(folder.to_owned(), why.to_owned()));
    // Somebody else could be the first to make it where everybody may make files.
    if let Ok(Some(why)) = folder::stranger(folder) {
        return Some(PoolFault::FolderNotOurs(folder.to_owned(), why));
    }
    for ancestor in folder.ancestors().filter(|it| !it.as_os_str().is_empty()) {
        match fs::metadata(ancestor) {
            Ok(it) if !it.is_dir() => return not_writable(&format!("{} is no folder", ancestor.display())),
            Ok(it) if !we.may(&it, 3) => {
                return not_writable(&format!("the gateway may not write to {}", ancestor.display()));
            }
            Ok(_) => return None,
            // It is made at the start.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return not_writable(&error.to_string()),
        }
    }
    None
}

/// Who somebody is to the file system.
#[derive(Clone, Debug)]
struct Rights {
    user: u32,
    groups: Vec<u32>,
}

impl Rights {
    fn ours() -> Self {
        let mut groups: Vec<u32> = rustix::process::getgroups()
            .unwrap_or_default()
            .into_iter()
            .map(|group| group.as_raw())
            .collect();
        groups.push(rustix::process::getegid().as_raw());
        Rights { user: rustix::process::geteuid().as_raw(), groups }
    }

    fn of(user: &User) -> Self {
        let mut groups = user.groups.clone();
        groups.push(user.group);
        Rights { user: user.id, groups }
    }

    /// Returns whether these bits of `rwx` are set for them. Root may write anything, and run
    /// what anybody may run.
    fn may(&self, file: &Metadata, bits: u32) -> bool {
        let mode = file.mode();
        let granted = if self.user == 0 {
            let run = u32::from(file.is_dir() || mode & 0o111 != 0);
            6 | run
        } else if file.uid() == self.user {
            mode >> 6
        } else if self.groups.contains(&file.gid()) {
            mode >> 3
        } else {
            mode
        };
        granted & bits == bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use suimon_params::pool::{CommandParams, GuardianParams, MemoryParams, WorkersParams};

    const NOBODY: u32 = 65_534;

    fn params(folder: &Path) -> PoolParams {
        let ours = Rights::ours();
        PoolParams {
            name: "shop".into(),
            kind: WorkerKind::FastCgi,
            command: CommandParams {
                program: "sh".into(),
                user: Some(User { id: ours.user, group: ours.groups[0], groups: vec![] }),
                ..CommandParams::default()
            },
            workers: WorkersParams::default(),
            memory: MemoryParams::default(),
            folder: folder.join("new/sockets"),
            guardian: None,
        }
    }

    #[test]
    fn a_pool_that_works_has_no_fault_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(check(&params(folder.path())), []);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn each_fault_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let good = params(folder.path());
        let of = |change: &dyn Fn(&mut PoolParams)| {
            let mut params = good.clone();
            change(&mut params);
            check(&params)
        };
        assert_eq!(of(&|it| it.name = "a/b".into()), [PoolFault::BadName]);
        assert_eq!(of(&|it| it.command.program = "no-such".into()), [PoolFault::NoProgram("no-such".into())]);
        assert_eq!(of(&|it| it.command.program = file.clone()), [PoolFault::NotExecutable(file.clone())]);
        let missing = folder.path().join("missing");
        assert_eq!(
            of(&|it| it.command.folder = Some(missing.clone())),
            [PoolFault::NoWorkingFolder(missing.clone())]
        );
        assert!(matches!(of(&|it| it.folder = file.join("in"))[..], [PoolFault::FolderNotWritable(..)]));
        let open = folder.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(of(&|it| it.folder = open.clone())[..], [PoolFault::FolderNotOurs(..)]));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        let is_link = "is a symbolic link".to_owned();
        assert_eq!(of(&|it| it.folder = link.clone()), [PoolFault::FolderNotOurs(link.clone(), is_link)]);
        let long = folder.path().join("x".repeat(90));
        assert!(matches!(of(&|it| it.folder = long.clone())[..], [PoolFault::SocketPathTooLong(108..)]));
        for listen in [WorkerListen::Port, WorkerListen::Socket] {
            assert_eq!(of(&|it| it.command.listen = listen), [PoolFault::NoPlaceForAddress(listen)]);
        }
        let guardian = GuardianParams { program: missing.clone(), arguments: vec![] };
        assert_eq!(of(&|it| it.guardian = Some(guardian.clone())), [PoolFault::NoGuardian(missing)]);
        if rustix::process::geteuid().is_root() {
            assert_eq!(of(&|it| it.command.user = None), [PoolFault::RootWithoutUser]);
            let nobody = User { id: NOBODY, group: NOBODY, groups: vec![] };
            fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
            let faults = of(&|it| {
                (it.command.user, it.command.program) = (Some(nobody.clone()), file.clone());
            });
            assert_eq!(faults, [PoolFault::NotExecutable(file)]);
            let faults = of(&|it| {
                (it.command.user, it.command.listen) = (Some(nobody.clone()), WorkerListen::Socket);
                it.command.arguments = vec!["{socket}".to_owned()];
            });
            assert_eq!(faults, [PoolFault::FolderClosed(folder.path().to_owned())]);
        } else {
            let root = User { id: 0, group: 0, groups: vec![] };
            assert!(of(&|it| it.command.user = Some(root.clone())).contains(&PoolFault::OtherUser));
        }
    }
}

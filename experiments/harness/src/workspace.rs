//! A temporary folder and an ordinary user for servers that refuse to run as root, and the end of
//! all that they start.
//!
//! A server that forks leaves its children behind when it is killed. Therefore each has a process
//! group, which is killed as a whole; and if this program is killed itself, a guard process, which
//! notices by the end of its input, kills all groups and removes the folder.

use std::fs;
use std::io::{BufRead, Write, stdin};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use suimon_process::{Program, Running, Signal, group};

use crate::trouble::{Result, Trouble, While, failed};

/// Begins the name of every such folder: the guard removes no other.
pub(crate) const PREFIX: &str = "suimon-workers-";
/// How long a killed group may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// How long servers may take to end after a polite signal.
const POLITE: Duration = Duration::from_secs(3);
/// How long the guard waits between asking and killing.
const GUARD_WAITS: Duration = Duration::from_millis(500);
/// How often a wait checks its condition.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The guard of a folder. It reads `+PID` and `-PID`: groups that are there, and that are gone; and
/// paths of other folders, which it removes at the end if they are empty.
#[derive(Args, Debug)]
pub(crate) struct GuardOptions {
    #[arg(long)]
    folder: PathBuf,
}

/// A temporary folder with an owner, removed on drop.
pub(crate) struct Workspace {
    folder: tempfile::TempDir,
    /// Who owns it and runs what is started in it; `None`: the user of this program.
    owner: Option<Owner>,
    guard: Arc<Guard>,
}

#[derive(Clone, Copy)]
struct Owner {
    user: u32,
    group: u32,
}

/// A server with all its children, ended on drop: asked first, so that it waits for its children and
/// leaves none to a machine's first process that may not.
pub(crate) struct Group {
    pub(crate) process: Running,
    guard: Arc<Guard>,
}

struct Guard {
    process: Mutex<Child>,
}

impl Workspace {
    /// Makes one in the system's folder for temporary files. If this program is run by root, it
    /// belongs to `nobody`.
    pub(crate) fn open() -> Result<Self> {
        // Short, because the path of a Unix socket has at most 107 bytes.
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().trouble("a temporary folder")?;
        let is_root =
            fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        let owner = if is_root { Some(nobody()?) } else { None };
        let workspace = Workspace { guard: Arc::new(Guard::start(folder.path())?), folder, owner };
        workspace.hand_over(workspace.path())?;
        Ok(workspace)
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a new, empty folder in it.
    pub(crate) fn fresh(&self, name: &str) -> Result<PathBuf> {
        let folder = self.path().join(name);
        let _ = fs::remove_dir_all(&folder); // a missing one counts as an empty one
        fs::create_dir_all(&folder).trouble(folder.display())?;
        self.hand_over(&folder)?;
        Ok(folder)
    }

    /// Copies the files of folder `from` into a new folder in it.
    pub(crate) fn copy(&self, from: &Path, name: &str) -> Result<PathBuf> {
        let folder = self.fresh(name)?;
        for entry in fs::read_dir(from).trouble(from.display())? {
            let path = entry.trouble(from.display())?.path();
            if let (true, Some(name)) = (path.is_file(), path.file_name()) {
                let copy = folder.join(name);
                fs::copy(&path, &copy).trouble(path.display())?;
                self.hand_over(&copy)?;
            }
        }
        Ok(folder)
    }

    /// Returns `program` as something to start as the owner. `name` names its output files.
    pub(crate) fn program(&self, name: &str, program: &Path) -> Program {
        let mut command = Command::new(program);
        command.current_dir(self.path());
        if let Some(owner) = self.owner {
            command.uid(owner.user).gid(owner.group).env("HOME", self.path());
        }
        Program::of(name, command)
    }

    /// Starts it, with its output in `logs`, and guards its group.
    pub(crate) fn start(&self, program: Program, logs: &Path) -> Result<Group> {
        let process = program.start(logs)?;
        self.guard.say('+', process.pid())?;
        Ok(Group { process, guard: Arc::clone(&self.guard) })
    }

    /// Lets the guard remove an empty folder elsewhere at the end, such as a control group's. Its name
    /// begins with [`PREFIX`].
    pub(crate) fn remove_at_the_end(&self, folder: &Path) -> Result<()> {
        self.guard.tell(&folder.display().to_string())
    }

    /// Runs it to its end, which must be a success.
    pub(crate) fn run(&self, program: Program, logs: &Path, patience: Duration) -> Result<()> {
        let mut group = self.start(program, logs)?;
        let status = group.process.wait(patience)?;
        if status.success() { Ok(()) } else { failed(format!("{status}:\n{}", group.process.last_words())) }
    }

    /// Gives a file or folder to the owner, readable for everybody.
    pub(crate) fn hand_over(&self, path: &Path) -> Result<()> {
        if let Some(owner) = self.owner {
            chown(path, Some(owner.user), Some(owner.group)).trouble(path.display())?;
        }
        let mode = fs::metadata(path).trouble(path.display())?.permissions().mode() | 0o444;
        let mode = if path.is_dir() { mode | 0o111 } else { mode };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).trouble(path.display())
    }
}

impl Group {
    /// Asks its leader to end by `signal` instead of SIGTERM.
    pub(crate) fn end(mut self, signal: Signal) {
        self.process.signal(signal);
        let _ = self.process.wait(POLITE);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let leader = self.process.pid();
        if self.process.ended().is_ok_and(|status| status.is_none()) {
            self.process.signal(Signal::TERM);
            let _ = self.process.wait(POLITE);
        }
        group::kill(leader);
        let deadline = Instant::now() + GONE_WITHIN;
        while group::members(leader).is_ok_and(|left| !left.is_empty()) && Instant::now() < deadline {
            thread::sleep(LOOK_EVERY);
        }
        // The guard may have ended already; then there is nobody to tell.
        let _ = self.guard.say('-', leader);
    }
}

impl Guard {
    fn start(folder: &Path) -> Result<Self> {
        let own = std::env::current_exe().trouble("this program cannot find itself")?;
        let mut command = Command::new(own);
        command.args(["workers-guard", "--folder"]).arg(folder);
        // A group of its own: a terminal's Ctrl-C must not reach it.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Ok(Guard { process: Mutex::new(command.spawn().trouble("the guard")?) })
    }

    fn say(&self, sign: char, group: u32) -> Result<()> {
        self.tell(&format!("{sign}{group}"))
    }

    fn tell(&self, line: &str) -> Result<()> {
        let mut guard = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(input) = guard.stdin.as_mut() else { return failed("the guard has no input") };
        writeln!(input, "{line}").trouble("the guard")
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let guard = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop(guard.stdin.take());
        let _ = guard.wait();
    }
}

/// Guards until this program's starter ends.
pub(crate) fn guard(options: &GuardOptions) -> Result<bool> {
    let (mut groups, mut empty): (Vec<u32>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    for line in stdin().lock().lines().map_while(std::io::Result::ok) {
        if line.starts_with('/') {
            empty.push(line.into());
            continue;
        }
        let Some((sign, group)) = line.split_at_checked(1) else { continue };
        let Ok(group) = group.parse() else { continue };
        groups.retain(|known| *known != group);
        if sign == "+" {
            groups.push(group);
        }
    }
    if !groups.is_empty() {
        // A database that is killed leaves a shared memory segment behind.
        groups.iter().for_each(|leader| group::signal(*leader, Signal::QUIT));
        thread::sleep(GUARD_WAITS);
        groups.iter().for_each(|leader| group::kill(*leader));
    }
    let is_ours = |folder: &Path| {
        folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
    };
    for folder in empty.iter().filter(|folder| is_ours(folder)) {
        let _ = fs::remove_dir(folder);
    }
    if is_ours(&options.folder) {
        // It is gone already where the program ended by itself.
        let _ = fs::remove_dir_all(&options.folder);
    }
    Ok(true)
}

fn nobody() -> Result<Owner> {
    let users = fs::read_to_string("/etc/passwd").trouble("/etc/passwd")?;
    let owner = |line: &str| {
        let mut fields = line.strip_prefix("nobody:")?.split(':').skip(1);
        Some(Owner { user: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
    };
    users
        .lines()
        .find_map(owner)
        .ok_or_else(|| Trouble::Usage("there is no user nobody to run a database as".into()))
}

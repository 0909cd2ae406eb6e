//! Child processes: pinned to cores, with their output in files, and killed when this process ends.
//!
//! - [`Program`]: what to start, on which cores, with how many descriptors.
//! - [`Running`]: the process. Dropping this kills it. If we are killed ourselves, the kernel kills
//!   it when the thread that started it ends. A terminal's Ctrl-C does not reach it, because it has
//!   its own process group.
//! - [`Preparation`]: what a process does before it becomes its program; [`find_user`]: whose rights
//!   it may have.
//! - [`cpu`]: CPU time of processes and cores.
//! - [`is_ending`]: whether a process has been killed, though it is still there.
//! - [`group`]: what a process has started, and how to end all of it.
//! - [`inherited`]: descriptors that a process gets from the one that started it.
//! - [`port_owner`]: who listens at a port.
//! - [`allowed_cores`], [`stay_on`]: the cores for this thread and everything it starts.

pub mod cpu;
mod descriptors;
mod ending;
pub mod group;
pub mod inherited;
pub mod port_owner;
mod preparation;
mod user;

pub use descriptors::{allow as allow_descriptors, raise as raise_descriptors};
pub use ending::is_ending;
pub use preparation::{Preparation, Rights};
pub use rustix::process::Signal;
pub use user::find as find_user;

use rustix::process::Pid;
use rustix::thread::CpuSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often a wait checks its condition.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How many lines of a process's output are shown when it fails.
const LINES_SHOWN: usize = 8;
/// Timeout of one attempt to connect to a listener.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// What went wrong with a process: a sentence and its last output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessError(String);

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProcessError {}

/// Result of an operation on a process.
pub type Result<T> = std::result::Result<T, ProcessError>;

/// A process to start.
#[derive(Debug)]
pub struct Program {
    name: String,
    command: Command,
    cores: Option<CpuSet>,
    descriptors: Option<u64>,
    control_group: Option<OwnedFd>,
}

impl Program {
    /// Returns a program that will run on this thread's cores. `name` names its output files and
    /// appears in messages.
    pub fn new(name: impl Into<String>, program: impl AsRef<OsStr>) -> Self {
        Program::of(name, Command::new(program))
    }

    /// Returns this command as a program that will run on this thread's cores.
    pub fn of(name: impl Into<String>, command: Command) -> Self {
        Program { name: name.into(), command, cores: None, descriptors: None, control_group: None }
    }

    /// Adds an argument.
    pub fn arg(self, word: impl ToString) -> Self {
        self.args([word])
    }

    /// Adds arguments.
    pub fn args<T: ToString>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.command.args(words.into_iter().map(|word| word.to_string()));
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes a variable from its environment.
    pub fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Lets it run on these cores only.
    pub fn cores(mut self, cores: &[usize]) -> Self {
        self.cores = Some(set_of(cores));
        self
    }

    /// Sets how many descriptors it may have.
    pub fn descriptors(mut self, count: u32) -> Self {
        self.descriptors = Some(count.into());
        self
    }

    /// Lets it join a control group, whose file `cgroup.procs` is open for writing here.
    pub fn control_group(mut self, processes: OwnedFd) -> Self {
        self.control_group = Some(processes);
        self
    }

    /// Starts it. Its output goes to `NAME.out` and `NAME.err` in `folder`.
    ///
    /// Call it on a thread that lives as long as the process should: the kernel kills the process
    /// when that thread ends.
    ///
    /// # Errors
    /// The files cannot be written, or the program cannot be run as asked for.
    pub fn start(mut self, folder: &Path) -> Result<Running> {
        let out = folder.join(format!("{}.out", self.name));
        let err = folder.join(format!("{}.err", self.name));
        let file = |path: &Path| {
            File::create(path)
                .map_err(|error| ProcessError(format!("{}: cannot be written: {error}", path.display())))
        };
        self.command.stdin(Stdio::null()).stdout(file(&out)?).stderr(file(&err)?).process_group(0);
        let preparation = Preparation {
            cores: self.cores,
            descriptors: self.descriptors,
            control_group: self.control_group,
            ..Preparation::default()
        };
        preparation.apply(&mut self.command);
        let child = self.command.spawn();
        let child =
            child.map_err(|error| ProcessError(format!("{} could not be started: {error}", self.name)))?;
        Ok(Running { name: self.name, child, out, err })
    }
}

/// Ties the process that a command starts to us: the kernel kills it when the thread that starts it
/// ends, and so when we end, in whatever way.
pub fn end_with_us(command: &mut Command) {
    Preparation::default().apply(command);
}

/// A child process. Dropping this kills it at once, with SIGKILL.
#[derive(Debug)]
#[must_use = "it is killed when this is dropped"]
pub struct Running {
    name: String,
    child: std::process::Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    /// Returns its process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its standard output so far.
    pub fn said(&self) -> String {
        read(&self.out)
    }

    /// Returns its standard error so far.
    pub fn complained(&self) -> String {
        read(&self.err)
    }

    /// Returns its exit status, or `None` if it still runs.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().map_err(|error| ProcessError(format!("{}: {error}", self.name)))
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// It has ended; the error has its last output.
    pub fn must_run(&mut self) -> Result<()> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => self.failed(&format!("ended by itself ({status})")),
        }
    }

    /// Returns the last lines of its output.
    pub fn last_words(&self) -> String {
        let all = self.said() + &self.complained();
        let lines: Vec<&str> = all.lines().collect();
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
    }

    fn failed<T>(&self, what: &str) -> Result<T> {
        Err(ProcessError(format!("{} {what}:\n{}", self.name, self.last_words())))
    }

    /// Waits until `ready` returns a value.
    ///
    /// # Errors
    /// The process ends first, or `patience` runs out.
    pub fn wait_for<T>(
        &mut self,
        what: &str,
        patience: Duration,
        mut ready: impl FnMut(&Running) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(value) = ready(self) {
                return Ok(value);
            }
            self.must_run()?;
            if Instant::now() >= deadline {
                return self.failed(&format!("gave no {what} within {} s", patience.as_secs()));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Sends it a signal, unless it has ended.
    pub fn signal(&self, signal: Signal) {
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), signal);
    }

    /// Sends SIGTERM, as an operator does, waits until the process has ended and returns its exit
    /// status.
    ///
    /// # Errors
    /// It does not end within `patience`.
    pub fn terminate(&mut self, patience: Duration) -> Result<ExitStatus> {
        self.signal(Signal::TERM);
        self.wait(patience)
    }

    /// Waits until it has ended and returns its exit status.
    ///
    /// # Errors
    /// It does not end within `patience`.
    pub fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                return self.failed(&format!("does not end within {} s", patience.as_secs()));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until a listener accepts connections at `address`.
    ///
    /// # Errors
    /// The process ends first, or `patience` runs out.
    pub fn wait_for_listener(&mut self, address: SocketAddr, patience: Duration) -> Result<()> {
        let what = format!("answer at {address}");
        self.wait_for(&what, patience, |_| {
            TcpStream::connect_timeout(&address, CONNECT_WITHIN).ok().map(drop)
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a free loopback address. If another process takes it first, the process that is to
/// listen there reports that.
///
/// # Errors
/// There is no free port.
pub fn free_address() -> Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|error| ProcessError(format!("no free port on loopback: {error}")))
}

/// Returns the address in a line `listening on http://ADDRESS`.
pub fn listening_address(said: &str) -> Option<SocketAddr> {
    said.lines().find_map(|line| line.strip_prefix("listening on http://")?.trim().parse().ok())
}

/// Returns the number of the user that we run as.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the cores this thread may run on, in order.
///
/// # Errors
/// The system does not report it.
pub fn allowed_cores() -> io::Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
}

/// Pins this thread, and everything it starts from now on, to these cores.
///
/// # Errors
/// This machine has none of them, or forbids it.
pub fn stay_on(cores: &[usize]) -> io::Result<()> {
    Ok(rustix::thread::sched_setaffinity(None, &set_of(cores))?)
}

/// Pins one thread, of this process or of another one of ours, to these cores.
///
/// # Errors
/// It has ended, this machine has none of them, or forbids it.
pub fn pin_thread(thread: u32, cores: &[usize]) -> io::Result<()> {
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::thread::sched_setaffinity(Some(thread), &set_of(cores))?)
}

fn set_of(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
        set.set(*core);
    }
    set
}

fn read(path: &Path) -> String {
    // A missing file counts as empty output.
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_itself_and_ends_with_its_handle() {
        let logs = tempfile::tempdir().unwrap();
        let mut sleeper = Program::new("sleeper", "sleep").cores(&[0]).arg(30).start(logs.path()).unwrap();
        let stat = format!("/proc/{}/comm", sleeper.pid());
        let is_itself = |_: &Running| (read(Path::new(&stat)).trim() == "sleep").then_some(());
        sleeper.wait_for("sleep", Duration::from_secs(10), is_itself).unwrap();
        drop(sleeper);
        assert!(!Path::new(&stat).exists());
    }

    #[test]
    fn one_that_ends_too_soon_is_told_with_its_last_words() {
        let logs = tempfile::tempdir().unwrap();
        let program = Program::new("early", "sh").cores(&[0]).args(["-c", "echo no coffee >&2; exit 3"]);
        let mut early = program.start(logs.path()).unwrap();
        let error = early.wait_for("coffee", Duration::from_secs(10), |_| None::<()>).unwrap_err();
        assert!(error.to_string().contains("no coffee"), "{error}");
        assert!(error.to_string().contains('3'), "{error}");
    }

    #[test]
    fn the_address_is_read_from_the_line_that_tells_it() {
        let said = "work: much\nlistening on http://127.0.0.1:4711\n";
        assert_eq!(listening_address(said), Some("127.0.0.1:4711".parse().unwrap()));
        assert_eq!(listening_address("listening on http://127."), None);
    }
}

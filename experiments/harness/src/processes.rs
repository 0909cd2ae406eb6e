//! Processes of ours: pinned to a core, logged to a file, and gone when we are.
//!
//! `setpriv` and `taskset` (util-linux) put themselves in front of the program and then become it,
//! so the process we started is the program itself; a command line seen in a log can be run by
//! hand.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::trouble::{Result, Trouble, While, failed};

/// How often what is waited for is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How much of a log is shown when its process failed.
const LOG_LINES_SHOWN: usize = 8;
/// How long a process may take to end in peace before it is killed.
const PEACE: Duration = Duration::from_secs(3);

/// A process to be started.
pub(crate) struct Program {
    name: String,
    words: Vec<String>,
    core: usize,
    descriptors: Option<u32>,
}

impl Program {
    /// Returns a program that will run on `core` only. `name` names its logs and stands in
    /// messages.
    pub(crate) fn new(name: impl Into<String>, program: impl AsRef<Path>, core: usize) -> Self {
        let program = program.as_ref().to_string_lossy().into_owned();
        Program { name: name.into(), words: vec![program], core, descriptors: None }
    }

    /// Adds an argument.
    pub(crate) fn arg(self, word: impl ToString) -> Self {
        self.args([word])
    }

    /// Adds arguments.
    pub(crate) fn args<T: ToString>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.words.extend(words.into_iter().map(|word| word.to_string()));
        self
    }

    /// Lets it have this many descriptors.
    pub(crate) fn descriptors(mut self, count: u32) -> Self {
        self.descriptors = Some(count);
        self
    }

    /// Starts it; what it says goes to `NAME.out` and `NAME.err` in `logs`.
    ///
    /// Must be called from the main thread: the kernel ends the process when the thread that
    /// started it ends.
    pub(crate) fn start(self, logs: &Path) -> Result<Running> {
        let out = logs.join(format!("{}.out", self.name));
        let err = logs.join(format!("{}.err", self.name));
        let file = |path: &Path| File::create(path).trouble(format!("{}: cannot be written", path.display()));
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(count) = self.descriptors {
            command.arg("prlimit").arg(format!("--nofile={count}"));
        }
        command.args(["taskset", "-c"]).arg(self.core.to_string()).args(&self.words);
        // What a gateway would keep for its next start.
        command.env("STATE_DIRECTORY", logs);
        command.stdin(Stdio::null()).stdout(file(&out)?).stderr(file(&err)?);
        let child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => Trouble::Failed(
                "setpriv was not found: install util-linux (it also brings taskset and prlimit)".to_string(),
            ),
            _ => Trouble::Failed(format!("{} did not start: {error}", self.name)),
        })?;
        Ok(Running { name: self.name, child, out, err })
    }
}

/// A process of ours. Killed with SIGKILL, at once, when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    name: String,
    child: std::process::Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    /// Returns its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns what it said on standard output so far.
    pub(crate) fn said(&self) -> String {
        read(&self.out)
    }

    /// Returns what it said on standard error so far.
    pub(crate) fn complained(&self) -> String {
        read(&self.err)
    }

    /// Returns how it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().trouble(&self.name)
    }

    /// Fails if it has ended, with the last it said.
    pub(crate) fn must_run(&mut self) -> Result<()> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => {
                failed(format!("{} ended by itself ({status}):\n{}", self.name, self.last_words()))
            }
        }
    }

    /// Returns the last lines it said.
    pub(crate) fn last_words(&self) -> String {
        let all = self.said() + &self.complained();
        let lines: Vec<&str> = all.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
    }

    /// Waits until `ready` gives something; fails when the process ends first or `patience` does.
    pub(crate) fn wait_for<T>(
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
                let (name, secs, words) = (&self.name, patience.as_secs(), self.last_words());
                return failed(format!("{name}: no {what} within {secs} s:\n{words}"));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Asks it to end, as an operator does, and waits until it has.
    pub(crate) fn terminate(&mut self, patience: Duration) -> Result<()> {
        let status = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status();
        status.trouble("kill (util-linux) did not start")?;
        let deadline = Instant::now() + patience;
        while self.ended()?.is_none() {
            if Instant::now() >= deadline {
                return failed(format!("{} does not end within {} s", self.name, patience.as_secs()));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Waits until somebody accepts connections at `address`.
    pub(crate) fn wait_for_listener(&mut self, address: SocketAddr, patience: Duration) -> Result<()> {
        let what = format!("answer at {address}");
        self.wait_for(&what, patience, |_| TcpStream::connect_timeout(&address, PEACE).ok().map(drop))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an address on loopback that nobody listens on. Another process could take it before it
/// is used; the process told to listen there then says so.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).trouble("no free port on loopback")?;
    listener.local_addr().trouble("no free port on loopback")
}

/// Returns the address in a line `listening on http://ADDRESS`.
pub(crate) fn listening_address(said: &str) -> Option<SocketAddr> {
    said.lines().find_map(|line| line.strip_prefix("listening on http://")?.trim().parse().ok())
}

/// Puts this process on `core`, so that it does not disturb the one that is measured.
pub(crate) fn pin_self(core: usize) -> Result<()> {
    let pid = std::process::id().to_string();
    let status = Command::new("taskset")
        .args(["-a", "-p", "-c", &core.to_string(), &pid])
        .stdout(Stdio::null())
        .status()
        .trouble("taskset (util-linux) is needed and did not start")?;
    if status.success() {
        return Ok(());
    }
    Err(Trouble::Usage(format!("core {core} cannot be used: name others with --app-core and --load-core")))
}

fn read(path: &Path) -> String {
    // A log that is not there yet is an empty one.
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_itself_and_ends_with_its_handle() {
        let logs = tempfile::tempdir().unwrap();
        let mut sleeper = Program::new("sleeper", "sleep", 0).arg(30).start(logs.path()).unwrap();
        let stat = format!("/proc/{}/comm", sleeper.pid());
        let is_itself = |_: &Running| (read(Path::new(&stat)).trim() == "sleep").then_some(());
        sleeper.wait_for("sleep", Duration::from_secs(10), is_itself).unwrap();
        drop(sleeper);
        assert!(!Path::new(&stat).exists());
    }

    #[test]
    fn one_that_ends_too_soon_is_told_with_its_last_words() {
        let logs = tempfile::tempdir().unwrap();
        let program = Program::new("early", "sh", 0).args(["-c", "echo no coffee >&2; exit 3"]);
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

//! Children: processes of this same binary that never outlive us.
//!
//! Each is ended when its `Process` is dropped, whatever the path. A terminal's Ctrl-C does not
//! reach them, for they are in groups of their own; should we ourselves be killed, the kernel ends
//! them (on Linux).

use super::DemoError;
use super::cores::Cores;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Lines that wait to be read; a child that says more waits for us.
const LINES_MAX: usize = 1024;
/// Lines kept of what a child said on standard error, to be shown should it fail.
const LAST_WORDS_MAX: usize = 8;
/// The longest a child may take until it is ready: measuring its own work takes seconds, on a busy
/// machine more.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How often we look whether we were told to stop.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// Ticks of a second in /proc: part of Linux' interface, whatever the kernel's own ticks are.
pub(super) const TICKS_PER_S: f64 = 100.0;

/// A child.
pub(super) struct Process {
    name: &'static str,
    child: Child,
    lines: Receiver<String>,
    last_words: Arc<Mutex<VecDeque<String>>>,
}

/// Which cores a child belongs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CoreGroup {
    Shop,
    Others,
}

impl Process {
    /// Starts this binary with these arguments. Must be called on a thread that lives as long as
    /// the child should: the kernel ends the child with that thread.
    pub(super) fn start(
        name: &'static str,
        arguments: &[String],
        cores: &Cores,
        side: CoreGroup,
    ) -> Result<Process, DemoError> {
        let failed =
            |error: std::io::Error| DemoError::Failed(format!("{name} could not be started: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The demo shows Suimon as it is, not as somebody's shell has set it.
        command.env_remove("SUIMON_LOG").process_group(0);
        bind_to_us(&mut command, cores, side);
        let mut child = command.spawn().map_err(failed)?;
        let (sender, lines) = sync_channel(LINES_MAX);
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let (out, err) = (child.stdout.take(), child.stderr.take());
        // From here on the child ends with this value, also if the threads cannot be had.
        let process = Process { name, child, lines, last_words };
        if let (Some(out), Some(err)) = (out, err) {
            listen(out, sender.clone(), None).map_err(failed)?;
            listen(err, sender, Some(Arc::clone(&process.last_words))).map_err(failed)?;
        }
        Ok(process)
    }

    /// Waits until the child has said a line containing each of `wanted`, on either stream, and
    /// returns these lines.
    pub(super) fn wait_for<const N: usize>(
        &mut self,
        wanted: [&str; N],
        interrupted: &AtomicBool,
    ) -> Result<[String; N], DemoError> {
        let began = Instant::now();
        let mut found: [Option<String>; N] = [const { None }; N];
        while found.iter().any(Option::is_none) {
            if began.elapsed() > READY_WITHIN {
                return Err(self.failure("was not ready in a minute"));
            }
            if let Some(line) = self.next_line(interrupted)? {
                for (wanted, found) in wanted.iter().zip(&mut found) {
                    if found.is_none() && line.contains(wanted) {
                        *found = Some(line.clone());
                    }
                }
            }
        }
        Ok(found.map(Option::unwrap_or_default))
    }

    /// Returns the child's next line if it comes within [`LOOK`].
    ///
    /// # Errors
    /// Fails if we were told to stop, or the child has ended.
    pub(super) fn next_line(&mut self, interrupted: &AtomicBool) -> Result<Option<String>, DemoError> {
        if interrupted.load(Relaxed) {
            return Err(DemoError::Interrupted);
        }
        match self.lines.recv_timeout(LOOK) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.failure("ended before its time")),
        }
    }

    /// Fails if the child has ended.
    pub(super) fn ensure_alive(&mut self) -> Result<(), DemoError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.failure("ended before its time")),
        }
    }

    /// Returns the CPU time of all threads the child ever had, in seconds, where the system tells.
    pub(super) fn cpu_seconds(&self) -> Option<f64> {
        cpu_seconds_in(&std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?)
    }

    /// Returns what went wrong, with the child's last words.
    pub(super) fn failure(&mut self, what: &str) -> DemoError {
        // If it is ending it may still be speaking.
        let _ = self.child.kill();
        let status = self.child.wait().map_or(String::new(), |status| format!(" ({status})"));
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        let words: String = words.iter().map(|line| format!("\n  {line}")).collect();
        DemoError::Failed(format!("the {} {what}{status}{words}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing it could still do is of use. Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends on what is read, line by line, and keeps the last. Goes on reading when nobody listens any
/// more, so that the child never waits for us.
fn listen(
    stream: impl Read + Send + 'static,
    to: SyncSender<String>,
    keep: Option<Arc<Mutex<VecDeque<String>>>>,
) -> std::io::Result<()> {
    let read = move || {
        let mut to = Some(to);
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if let Some(words) = &keep {
                let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
                if words.len() == LAST_WORDS_MAX {
                    words.pop_front();
                }
                words.push_back(line.clone());
                // Remarks are not worth waiting for.
                let _ = to.as_ref().map(|to| to.try_send(line));
            } else if to.as_ref().is_some_and(|to| to.send(line).is_err()) {
                to = None;
            }
        }
    };
    thread::Builder::new().name("listener".to_owned()).spawn(read).map(drop)
}

#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "the standard library has no other way to do something in the child before exec"
)]
fn bind_to_us(command: &mut Command, cores: &Cores, side: CoreGroup) {
    let cores = match side {
        CoreGroup::Shop => cores.shop.clone(),
        CoreGroup::Others => cores.others.clone(),
    };
    let us = std::process::id();
    let before_exec = move || {
        // SAFETY: prctl with these arguments touches no memory.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: getppid takes nothing and cannot fail. If we ended before the line above, nobody
        // would tell the child.
        if u32::try_from(unsafe { libc::getppid() }) != Ok(us) {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        cores.as_deref().map_or(Ok(()), super::cores::stay_on)
    };
    // SAFETY: the closure only makes system calls; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(before_exec) };
}

#[cfg(not(target_os = "linux"))]
fn bind_to_us(_: &mut Command, _: &Cores, _: CoreGroup) {}

/// Returns the seconds of user and system time in the text of a /proc/PID/stat.
fn cpu_seconds_in(stat: &str) -> Option<f64> {
    // The command's name is in parentheses and may hold anything, these too.
    let after_name = stat.rsplit_once(')')?.1;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_behind_any_name() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 1 0 0 0 250 50 7 7 20 0 1 0 99";
        assert_eq!(cpu_seconds_in(stat), Some(3.0));
        assert_eq!(cpu_seconds_in("42 (cut"), None);
    }
}

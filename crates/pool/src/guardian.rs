//! The guardian: a process beside the gateway that ends what is left if the gateway is killed.
//!
//! The kernel kills the workers themselves then (parent-death signal), and nobody kills what *they*
//! have started: that signal is not inherited. The guardian reads the numbers of the workers'
//! process groups from a pipe that only the gateway can write to. The pipe ends when the gateway
//! does, however that happens, and the guardian kills all groups that are left.
//!
//! - A worker announces itself to the pipe before it becomes its program, so there is no moment in
//!   which it could start something that the guardian does not know of.
//! - A group is struck off before its leader is waited for. Until then nobody else can have its
//!   number, so the guardian never kills a stranger's group.
//! - It is a program, and not a copy of the gateway made by fork(2): such a copy would keep all
//!   memory of the gateway that the gateway changes later. By default it is `/bin/sh` with a fixed
//!   script of builtin commands, into which nothing is filled in, so it needs no file that an
//!   installation may lack. Where there is no shell, [`guard`] does the same in any program.
//! - It ignores the signals that end a session or a service, and has its own process group, so it
//!   ends after the gateway. If it is killed, the pool starts another one.
//!
//! What leaves its process group (a daemon that calls setsid(2)) is out of reach.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use suimon_params::pool::GuardianParams;

/// The system's shell.
pub(super) const SHELL: &str = "/bin/sh";
/// What the shell does. `+NUMBER`: there is this group; `-NUMBER`: there is not; `=`: there is none.
const SCRIPT: &str = r#"trap '' HUP INT QUIT TERM
groups=' '
while read -r line; do
  number=${line#?}
  case $line in
    +*) groups="$groups$number " ;;
    -*) case $groups in *" $number "*) groups="${groups%% "$number" *} ${groups#* "$number" }" ;; esac ;;
    =) groups=' ' ;;
  esac
done
for number in $groups; do kill -s KILL -- "-$number"; done 2>/dev/null
"#;
/// The longest that a write to the pipe may wait for room.
const ROOM_WITHIN: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The guardian's process, and the pipe to it.
pub(super) struct Guardian {
    pipe: OwnedFd,
    process: OwnedFd,
}

impl Guardian {
    /// Starts one that knows of these groups.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(
        params: Option<&GuardianParams>,
        groups: impl Iterator<Item = u32>,
    ) -> io::Result<Self> {
        let (read, write) = io::pipe()?;
        let write = OwnedFd::from(write);
        // Nobody waits for ever for one that does not read.
        rustix::io::ioctl_fionbio(&write, true)?;
        let mut command = match params {
            Some(params) => {
                let mut command = Command::new(&params.program);
                command.args(&params.arguments);
                command
            }
            None => {
                let mut command = Command::new(SHELL);
                command.args(["-c", SCRIPT]);
                command
            }
        };
        let mut child = command
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(read))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let process = match rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(process) => process,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error.into());
            }
        };
        let guardian = Guardian { pipe: write, process };
        match guardian.know_only(groups) {
            Ok(()) => Ok(guardian),
            Err(error) => {
                guardian.kill();
                Err(error)
            }
        }
    }

    /// Returns another handle of the pipe, for a process that announces itself.
    pub(super) fn pipe(&self) -> io::Result<OwnedFd> {
        self.pipe.try_clone()
    }

    /// Says that this group is no more.
    ///
    /// # Errors
    /// It does not read.
    pub(super) fn forget(&self, group: u32) -> io::Result<()> {
        self.tell(&format!("-{group}\n"))
    }

    /// Says which groups there are.
    ///
    /// # Errors
    /// It does not read.
    pub(super) fn know_only(&self, groups: impl Iterator<Item = u32>) -> io::Result<()> {
        let lines: Vec<String> = groups.map(|group| format!("+{group}\n")).collect();
        self.tell(&format!("=\n{}", lines.concat()))
    }

    /// Returns what is readable once it has ended.
    pub(super) fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// Ends it before its pipe does, so that it kills nobody.
    pub(super) fn kill(self) {
        // It may have ended already.
        let _ = rustix::process::pidfd_send_signal(&self.process, Signal::KILL);
        let _ = waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED);
    }

    /// Waits until it has ended: at once if it was killed, or once the pipe is closed.
    pub(super) fn end(self) {
        let Guardian { pipe, process } = self;
        drop(pipe);
        let _ = waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::EXITED);
    }

    fn tell(&self, lines: &str) -> io::Result<()> {
        let mut rest = lines.as_bytes();
        while !rest.is_empty() {
            match rustix::io::write(&self.pipe, rest) {
                Ok(written) => rest = &rest[written..],
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    let mut room = [PollFd::new(&self.pipe, PollFlags::OUT)];
                    if poll(&mut room, Some(&ROOM_WITHIN))? == 0 {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Does what a guardian does: reads which process groups there are until `input` ends, then kills
/// those that are left. For a program of one's own in place of the shell, which should ignore the
/// signals that end a session or a service, and do nothing else.
///
/// # Errors
/// `input` cannot be read. The groups known until then are killed all the same.
pub fn guard(input: impl BufRead) -> io::Result<()> {
    let mut groups = BTreeSet::new();
    let mut result = Ok(());
    for line in input.lines() {
        match line {
            Ok(line) => note(&mut groups, &line),
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        // It may have ended meanwhile.
        let _ = kill_process_group(group, Signal::KILL);
    }
    result
}

fn note(groups: &mut BTreeSet<i32>, line: &str) {
    let number = line.get(1..).and_then(|digits| digits.parse().ok()).filter(|number| *number > 1);
    match (line.bytes().next(), number) {
        (Some(b'+'), Some(number)) => _ = groups.insert(number),
        (Some(b'-'), Some(number)) => _ = groups.remove(&number),
        (Some(b'='), _) => groups.clear(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn sleeper() -> std::process::Child {
        Command::new("/bin/sleep").arg("1000").process_group(0).spawn().unwrap()
    }

    /// Tells the guardian of three groups, one of which is struck off, and returns who was killed.
    fn killed(tell: impl FnOnce(&str)) -> Vec<bool> {
        let mut sleepers = [sleeper(), sleeper(), sleeper()];
        let [first, second, third] = [sleepers[0].id(), sleepers[1].id(), sleepers[2].id()];
        tell(&format!("+{second}\n=\n+{first}\n+{second}\n+{third}\n-{second}\n"));
        sleepers[1].kill().unwrap();
        rustix::process::kill_process(Pid::from_child(&sleepers[1]), Signal::TERM).unwrap();
        sleepers.iter_mut().map(|it| it.wait().unwrap().signal() == Some(9)).collect()
    }

    #[test]
    fn the_shell_kills_what_is_left_once_the_pipe_ends_and_not_before() {
        let guardian = Guardian::start(None, std::iter::empty()).unwrap();
        let mut other = sleeper();
        let killed = killed(|lines| {
            guardian.tell(&format!("{lines}+{}\n-{}\n", other.id(), other.id())).unwrap();
            guardian.end();
        });
        assert_eq!(killed, [true, true, true]);
        assert!(other.try_wait().unwrap().is_none(), "it was struck off");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn so_does_the_function() {
        let mut other = sleeper();
        let killed = killed(|lines| {
            guard(format!("{lines}+{}\nwhat\n+1\n+-1\n-{}\n", other.id(), other.id()).as_bytes()).unwrap();
        });
        assert_eq!(killed, [true, true, true]);
        assert!(other.try_wait().unwrap().is_none(), "it was struck off");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn one_that_is_killed_is_noticed() {
        let guardian = Guardian::start(None, [1 << 22].into_iter()).unwrap();
        rustix::process::pidfd_send_signal(guardian.process(), Signal::TERM).unwrap();
        rustix::process::pidfd_send_signal(guardian.process(), Signal::KILL).unwrap();
        let mut ended = [PollFd::new(&guardian.process, PollFlags::IN)];
        assert_eq!(poll(&mut ended, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })).unwrap(), 1);
        guardian.end();
    }
}

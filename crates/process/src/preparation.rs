//! What a process does before it becomes its program.

use crate::descriptors;
use rustix::process::{Gid, Pid, Resource, Rlimit, Signal, Uid};
use rustix::thread::CpuSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Whose rights a process has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rights {
    /// The user's number.
    pub user: u32,
    /// The number of the user's group.
    pub group: u32,
    /// The user's other groups. The process is in no others.
    pub groups: Vec<u32>,
}

/// What a process does before it becomes its program. In each case it ties itself to us: the kernel
/// kills it when the thread that starts it ends.
#[derive(Debug, Default)]
pub struct Preparation {
    /// The cores that it runs on; `None`: this thread's.
    pub cores: Option<CpuSet>,
    /// How many descriptors it may have; `None`: as many as we.
    pub descriptors: Option<u64>,
    /// Whether its soft limit of descriptors is the one that we were started with, in place of the one
    /// to which [`raise_descriptors`](crate::raise_descriptors) has raised ours: programs that use
    /// `select` do not work with more, and others close as many as they may have, one by one.
    pub has_descriptors_of_our_start: bool,
    /// Whose rights it has; `None`: ours. Only root may give away rights.
    pub rights: Option<Rights>,
    /// Where it writes `+`, its number and a line feed, so that somebody knows of it before it can
    /// have started anything. It does not start if that would wait.
    pub announced_to: Option<OwnedFd>,
    /// The file `cgroup.procs` of the control group that it joins, open for writing.
    pub control_group: Option<OwnedFd>,
}

impl Preparation {
    /// Lets the process that a command starts do this.
    #[expect(unsafe_code, reason = "nothing else does something in a process before it becomes its program")]
    pub fn apply(self, command: &mut Command) {
        let us = std::process::id();
        let groups = self.rights.iter().flat_map(|rights| &rights.groups);
        let groups: Vec<Gid> = groups.map(|group| Gid::from_raw(*group)).collect();
        let at_start = descriptors::at_start().filter(|_| self.has_descriptors_of_our_start);
        let before_exec = move || {
            if let Some(file) = &self.control_group {
                rustix::io::write(file, b"0")?;
            }
            if let Some(pipe) = &self.announced_to {
                let (line, length) = announcement(std::process::id());
                rustix::io::write(pipe, &line[..length])?;
            }
            if let Some(Rights { user, group, .. }) = self.rights {
                rustix::thread::set_thread_groups(&groups)?;
                let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
                rustix::thread::set_thread_res_gid(group, group, group)?;
                rustix::thread::set_thread_res_uid(user, user, user)?;
            }
            // After the change of rights, which would undo it.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // If we ended before the line above, the kernel would not signal the process.
            let parent = rustix::process::getppid().map(Pid::as_raw_pid);
            if parent.and_then(|pid| u32::try_from(pid).ok()) != Some(us) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if let Some(current) = at_start {
                let limit = Rlimit { current, ..rustix::process::getrlimit(Resource::Nofile) };
                rustix::process::setrlimit(Resource::Nofile, limit)?;
            }
            if let Some(count) = self.descriptors {
                let limit = Rlimit { current: Some(count), maximum: Some(count) };
                rustix::process::setrlimit(Resource::Nofile, limit)?;
            }
            Ok(self.cores.map_or(Ok(()), |cores| rustix::thread::sched_setaffinity(None, &cores))?)
        };
        // SAFETY: the closure only makes system calls; it allocates nothing and takes no lock.
        unsafe { command.pre_exec(before_exec) };
    }
}

/// Returns `+`, the number and a line feed, and how long that is, without allocating.
fn announcement(pid: u32) -> ([u8; 12], usize) {
    let mut digits = [0; 10];
    let (mut rest, mut count) = (pid, 0);
    while count == 0 || rest > 0 {
        digits[count] = b'0' + (rest % 10) as u8;
        (rest, count) = (rest / 10, count + 1);
    }
    let mut line = [b'\n'; 12];
    line[0] = b'+';
    for (place, digit) in line[1..].iter_mut().zip(digits[..count].iter().rev()) {
        *place = *digit;
    }
    (line, count + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_is_a_plus_a_number_and_a_line_feed() {
        for (pid, expected) in
            [(0, "+0\n"), (7, "+7\n"), (1_048_570, "+1048570\n"), (u32::MAX, "+4294967295\n")]
        {
            let (line, length) = announcement(pid);
            assert_eq!(&line[..length], expected.as_bytes());
        }
    }
}

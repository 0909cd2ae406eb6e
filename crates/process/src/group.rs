//! Processes that belong together: those that a process has started, and those of its group.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use rustix::process::{Pid, Signal};

/// Returns process `root` and everything that it has started, directly or not, in order of their
/// IDs; empty if there is no such process.
///
/// # Errors
/// The system does not report it.
pub fn tree(root: u32) -> io::Result<Vec<u32>> {
    let parents: BTreeMap<u32, u32> = all()?.into_iter().map(|seen| (seen.pid, seen.parent)).collect();
    let belongs = |pid: u32| {
        let line = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
        // A process that ends meanwhile may leave a loop of reused IDs.
        line.take(parents.len() + 1).any(|ancestor| ancestor == root)
    };
    Ok(parents.keys().copied().filter(|pid| belongs(*pid)).collect())
}

/// Returns the processes of the group of `leader`, except those that have ended and are only not
/// waited for.
///
/// # Errors
/// The system does not report it.
pub fn members(leader: u32) -> io::Result<Vec<u32>> {
    let here = all()?.into_iter().filter(|seen| seen.group == leader && !seen.ended);
    Ok(here.map(|seen| seen.pid).collect())
}

/// Returns all processes that have not ended, each with its group.
pub(crate) fn groups() -> io::Result<impl Iterator<Item = (u32, u32)>> {
    Ok(all()?.into_iter().filter(|seen| !seen.ended).map(|seen| (seen.pid, seen.group)))
}

/// Kills the group of `leader` with SIGKILL; nothing happens if there is none.
pub fn kill(leader: u32) {
    if let Some(leader) = id(leader) {
        let _ = rustix::process::kill_process_group(leader, Signal::KILL);
    }
}

/// Sends a signal to the group of `leader`; nothing happens if there is none.
pub fn signal_all(leader: u32, signal: Signal) {
    if let Some(leader) = id(leader) {
        let _ = rustix::process::kill_process_group(leader, signal);
    }
}

/// Sends a signal to `process`; nothing happens if there is none.
pub fn signal(process: u32, signal: Signal) {
    if let Some(process) = id(process) {
        let _ = rustix::process::kill_process(process, signal);
    }
}

fn id(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

struct Seen {
    pid: u32,
    parent: u32,
    group: u32,
    ended: bool,
}

fn all() -> io::Result<Vec<Seen>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that has just ended no longer has a file.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        all.extend(read(pid, &stat));
    }
    Ok(all)
}

/// Reads state, parent and group, which follow the name, which may contain anything.
fn read(pid: u32, stat: &str) -> Option<Seen> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    Some(Seen { pid, parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()?, ended })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;
    use std::time::Duration;

    #[test]
    fn a_group_is_killed_with_all_that_its_leader_has_started() {
        let logs = tempfile::tempdir().unwrap();
        let shell = Program::new("family", "sh").cores(&[0]).args(["-c", "sleep 30 & sleep 30 & wait"]);
        let mut shell = shell.start(logs.path()).unwrap();
        let pid = shell.pid();
        let patience = Duration::from_secs(10);
        let three = |_: &crate::Running| (tree(pid).unwrap().len() == 3).then_some(());
        shell.wait_for("two children", patience, three).unwrap();
        assert_eq!(members(pid).unwrap(), tree(pid).unwrap());
        kill(pid);
        shell.wait(patience).unwrap();
        let deadline = std::time::Instant::now() + patience;
        while !members(pid).unwrap().is_empty() {
            assert!(std::time::Instant::now() < deadline, "they live on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_process_name_with_blanks_and_brackets_does_not_shift_the_fields() {
        let seen = read(42, "42 (my (odd) name) Z 1 41 40 0").unwrap();
        assert_eq!((seen.parent, seen.group, seen.ended), (1, 41, true));
        assert!(read(42, "42 (cut").is_none());
    }
}

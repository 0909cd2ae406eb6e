//! Whether a process is about to end.

use std::fs;

/// The bit of SIGKILL in a mask of signals, as `/proc` writes them.
const KILL: u64 = 1 << (9 - 1);
/// The kernel's flag of a process that exits (`PF_EXITING`), and the field of `/proc/PID/stat` with the
/// flags, counted behind the name.
const EXITING: u64 = 0x4;
const FLAGS: usize = 6;

/// Returns whether process `pid` has ended, exits, or was killed and does not know it yet. A process
/// that nothing can be read of lives.
///
/// Between SIGKILL and the end lies the time in which the process gives back its memory, and all that
/// time its sockets still take connections.
pub fn is_ending(pid: u32) -> bool {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
    // In this order: from the first on, whoever was killed is at least exiting by the time of the second.
    read("status").is_ok_and(|status| was_killed(&status)) || read("stat").is_ok_and(|stat| exits(&stat))
}

/// Returns whether SIGKILL waits for a process, by its `status`.
fn was_killed(status: &str) -> bool {
    let masks = status.lines().filter_map(|line| {
        line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:")).map(str::trim)
    });
    masks.filter_map(|mask| u64::from_str_radix(mask, 16).ok()).any(|mask| mask & KILL != 0)
}

/// Returns whether a process exits or has ended, by its `stat`. Its name may contain anything.
fn exits(stat: &str) -> bool {
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let fields: Vec<&str> = fields.split_whitespace().take(FLAGS + 1).collect();
    let flags = fields.get(FLAGS).and_then(|flags| flags.parse::<u64>().ok());
    matches!(fields.first(), Some(&("Z" | "X"))) || flags.is_some_and(|flags| flags & EXITING != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;
    use rustix::process::{Pid, Signal, kill_process};

    #[test]
    fn one_that_was_killed_is_ending_until_it_is_gone() {
        let logs = tempfile::tempdir().unwrap();
        let sleeper = Program::new("sleeper", "sleep").cores(&[0]).args(["30"]).start(logs.path()).unwrap();
        let pid = sleeper.pid();
        assert!(!is_ending(pid));
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
        // Nobody has waited for it, so it stays.
        let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        while !stat().contains(") Z ") {
            assert!(is_ending(pid));
        }
        assert!(is_ending(pid));
    }

    #[test]
    fn what_the_kernel_writes_is_understood() {
        let status = |own, shared| {
            format!("Name:\tphp\nState:\tR (running)\nSigQ:\t0/95\nSigPnd:\t{own}\nShdPnd:\t{shared}\n")
        };
        assert!(!was_killed(&status("0000000000000000", "0000000000000000")));
        assert!(!was_killed(&status("0000000000004000", "0000000000000080")));
        assert!(was_killed(&status("0000000000000100", "0000000000000000")));
        assert!(was_killed(&status("0000000000004000", "0000000000000180")));
        assert!(!exits("17 (php) Z 4) S 1 17 17 0 -1 4194560 99 0"));
        assert!(exits("17 (php) R 1 17 17 0 -1 4194308 99 0"));
        assert!(exits("17 (php) Z 1 17 17 0 -1 4194560 99 0"));
        assert!(!exits("17 (php) S"));
        assert!(!exits(""));
    }
}

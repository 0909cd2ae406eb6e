//! What the process uses, as reported by the kernel. Without /proc there is nothing.

use std::fs;

/// What the process uses now.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Usage {
    pub(crate) cpu_seconds: f64,
    pub(crate) resident_bytes: u64,
    pub(crate) open_files: usize,
}

/// Returns what the process uses, or `None` where the kernel does not report it.
pub(crate) fn usage() -> Option<Usage> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (user, system) = cpu_ticks(&stat)?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(Usage {
        cpu_seconds: (user + system) as f64 / TICKS_A_SECOND,
        resident_bytes: resident_bytes(&status)?,
        open_files: fs::read_dir("/proc/self/fd").ok()?.count(),
    })
}

/// The kernel reports processor time of all threads, living and ended, in hundredths of a second
/// (USER_HZ, fixed by its interface).
const TICKS_A_SECOND: f64 = 100.0;

/// Returns user and system ticks: fields 14 and 15, counted after the name, which may hold
/// anything.
fn cpu_ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 8 0 1 2 3";
        assert_eq!(cpu_ticks(stat), Some((250, 50)));
    }

    #[test]
    fn resident_memory_is_told_in_bytes() {
        assert_eq!(resident_bytes("VmPeak:\t 9 kB\nVmRSS:\t  1024 kB\n"), Some(1 << 20));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_something() {
        let usage = usage().unwrap();
        assert!(usage.resident_bytes > 0 && usage.open_files > 0 && usage.cpu_seconds >= 0.0);
    }
}

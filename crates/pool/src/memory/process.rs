//! The memory of processes.

use super::kibibytes;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What memory a process takes, or several together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ProcessMemory {
    /// Pages of its own, and of shared ones its part (proportional set size, proc(5)); bytes.
    pub(crate) bytes: u64,
    /// Whether the kernel tells that. If not, `bytes` counts shared pages in full.
    pub(crate) is_proportional: bool,
    /// Its swapped pages, bytes.
    pub(crate) swap: u64,
    /// Pages that were read from disk for it since its start.
    pub(crate) major_faults: u64,
}

impl ProcessMemory {
    /// Returns what both take.
    fn and(self, other: Self) -> Self {
        ProcessMemory {
            bytes: self.bytes + other.bytes,
            is_proportional: self.is_proportional && other.is_proportional,
            swap: self.swap + other.swap,
            major_faults: self.major_faults + other.major_faults,
        }
    }
}

/// Returns the processes of each process group, by the group's number.
pub(crate) fn groups(proc: &Path) -> BTreeMap<u32, Vec<u32>> {
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir(proc).into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // Whatever has ended meanwhile has no group.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(group) = group_of(&stat) {
            groups.entry(group).or_default().push(pid);
        }
    }
    groups
}

/// Returns the memory of several processes together. `None`: there is none of them.
pub(crate) fn of_all(proc: &Path, pids: &[u32]) -> Option<ProcessMemory> {
    pids.iter().filter_map(|pid| of(proc, *pid)).reduce(ProcessMemory::and)
}

/// Returns the fifth field of /proc/PID/stat, the process group. The second, a name, may have blanks
/// and brackets.
fn group_of(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

/// Returns the memory of a process. `None`: it has ended, or is not ours to look at.
fn of(proc: &Path, pid: u32) -> Option<ProcessMemory> {
    let folder = proc.join(pid.to_string());
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let rolled_up = read("smaps_rollup").and_then(|text| {
        let bytes = kibibytes(&text, "Pss:").filter(|bytes| *bytes > 0)?;
        Some((bytes, kibibytes(&text, "SwapPss:").or_else(|| kibibytes(&text, "Swap:"))))
    });
    let (bytes, swap, is_proportional) = match rolled_up {
        Some((bytes, swap)) => (bytes, swap, true),
        None => {
            let text = read("status")?;
            (kibibytes(&text, "VmRSS:")?, kibibytes(&text, "VmSwap:"), false)
        }
    };
    let major_faults = read("stat").and_then(|text| major_faults(&text)).unwrap_or_default();
    Some(ProcessMemory { bytes, is_proportional, swap: swap.unwrap_or_default(), major_faults })
}

/// Returns the twelfth field of /proc/PID/stat.
fn major_faults(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(9)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::Fake;
    use super::*;

    #[test]
    fn this_process_has_memory() {
        let own = of(Path::new("/proc"), std::process::id()).unwrap();
        assert!(own.bytes > 1 << 16, "{own:?}");
    }

    #[test]
    fn shared_pages_count_in_part_where_the_kernel_tells_and_in_full_where_not() {
        let fake = Fake::new();
        fake.put("proc/7/smaps_rollup", "Rss: 50 kB\nPss: 20 kB\nSwap: 9 kB\nSwapPss: 4 kB\n");
        fake.put("proc/7/stat", "7 (a) b) S 1 7 7 0 -1 0 100 0 33 0 5 6\n");
        let expected =
            ProcessMemory { bytes: 20 << 10, is_proportional: true, swap: 4 << 10, major_faults: 33 };
        assert_eq!(of(&fake.proc(), 7), Some(expected));
        fake.put("proc/8/status", "Name: x\nVmRSS:\t  50 kB\nVmSwap:\t  9 kB\n");
        let expected =
            ProcessMemory { bytes: 50 << 10, is_proportional: false, swap: 9 << 10, major_faults: 0 };
        assert_eq!(of(&fake.proc(), 8), Some(expected));
        assert_eq!(of(&fake.proc(), 9), None);
        assert_eq!(groups(&fake.proc()), [(7, vec![7])].into());
        let both = of_all(&fake.proc(), &[7, 8, 9]).unwrap();
        assert_eq!((both.bytes, both.swap, both.is_proportional), (70 << 10, 13 << 10, false));
    }
}

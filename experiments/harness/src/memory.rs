//! Memory of a process, as the kernel counts it.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::trouble::{Result, While};

/// Memory of a process, KB (1024 bytes).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) resident_kb: u64,
    pub(crate) anonymous_kb: u64,
}

/// Memory with this many waiting.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Stage {
    pub(crate) waiting: u32,
    pub(crate) memory: Memory,
}

/// Returns the memory of process `pid`.
pub(crate) fn memory(pid: u32) -> Result<Memory> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).trouble(&path)?;
    memory_in(&text).ok_or("not understood").trouble(path)
}

/// Returns the proportional set size of process `pid`, KB: memory that several processes share
/// counts in equal parts for each. `None` if the process has ended.
pub(crate) fn proportional_kb(pid: u32) -> Option<u64> {
    field(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss")
}

fn memory_in(rollup: &str) -> Option<Memory> {
    Some(Memory { resident_kb: field(rollup, "Rss")?, anonymous_kb: field(rollup, "Anonymous")? })
}

fn field(rollup: &str, name: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_sums_are_read_by_their_whole_names() {
        let text = "5570-7ffe ---p 00000000 00:00 0 [rollup]\nRss:            3000 kB\nPss_Anon: 1 kB\nAnonymous:      1200 kB\nAnonHugePages: 0 kB\n";
        assert_eq!(memory_in(text), Some(Memory { resident_kb: 3000, anonymous_kb: 1200 }));
        assert_eq!(memory_in("Rss: 1 kB\n"), None);
    }
}

//! Processor time, as reported by the kernel.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use suimon_process::cpu::{self, CoreTime};
use suimon_process::pin_thread;

use crate::trouble::{Result, Trouble, While};

/// Returns the processor time of process `pid`, including ended threads; to a hundredth of a
/// second.
pub(crate) fn process_time(pid: u32) -> Result<Duration> {
    cpu::process_time(pid).trouble(format!("processor time of {pid}"))
}

/// Returns the processor time of all living threads of process `pid`, to the nanosecond.
pub(crate) fn threads_time(pid: u32) -> Result<Duration> {
    named_threads_time(pid, |_| true)
}

/// Returns that of the threads whose names are `wanted`.
pub(crate) fn named_threads_time(pid: u32, wanted: impl Fn(&str) -> bool) -> Result<Duration> {
    // A thread that has just ended no longer has a file.
    let nanos = |thread: &PathBuf| {
        let times = fs::read_to_string(thread.join("schedstat")).ok()?;
        times.split_whitespace().next()?.parse::<u64>().ok()
    };
    let threads = named_threads(pid, wanted)?;
    Ok(Duration::from_nanos(threads.iter().filter_map(nanos).sum()))
}

/// Pins them to `core`, and returns how many there are.
pub(crate) fn pin_named_threads(pid: u32, wanted: impl Fn(&str) -> bool, core: usize) -> Result<usize> {
    let threads = named_threads(pid, wanted)?;
    let numbers = threads.iter().filter_map(|thread| thread.file_name()?.to_str()?.parse().ok());
    let pinned = numbers.map(|number| pin_thread(number, &[core]).trouble(format!("thread {number}")));
    Ok(pinned.collect::<Result<Vec<()>>>()?.len())
}

/// Returns the folders of the living threads of process `pid` whose names are `wanted`.
fn named_threads(pid: u32, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let folder = format!("/proc/{pid}/task");
    let mut threads = Vec::new();
    for entry in fs::read_dir(&folder).trouble(&folder)? {
        let thread = entry.trouble(&folder)?.path();
        if wanted(fs::read_to_string(thread.join("comm")).unwrap_or_default().trim_end()) {
            threads.push(thread);
        }
    }
    Ok(threads)
}

/// What a core did since the machine started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CoreTimes {
    until: CoreTime,
    at: Instant,
}

/// How a core's time was used in a span.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CoreUse {
    /// Share of the time in which a process of this machine used it.
    pub(crate) busy: f64,
    /// Share of the time that was given to other machines on the same hardware.
    pub(crate) stolen: f64,
}

impl CoreTimes {
    /// Returns what `core` has done so far.
    pub(crate) fn now(core: usize) -> Result<CoreTimes> {
        let until = cpu::core_time(core)
            .trouble("/proc/stat")?
            .ok_or_else(|| Trouble::Usage(format!("there is no core {core} on this machine")))?;
        Ok(CoreTimes { until, at: Instant::now() })
    }

    /// Returns what it did since `self` was taken.
    pub(crate) fn until(&self, later: &CoreTimes) -> CoreUse {
        let elapsed = later.at.duration_since(self.at).as_secs_f64().max(1e-9);
        let (before, after) = (self.until, later.until);
        let share = |before: Duration, after: Duration| after.saturating_sub(before).as_secs_f64() / elapsed;
        CoreUse { busy: share(before.busy, after.busy), stolen: share(before.stolen, after.stolen) }
    }
}

impl CoreUse {
    /// Returns the share of the time in which the core was neither idle nor used by the process
    /// with the share `own`.
    pub(crate) fn foreign(&self, own: f64) -> f64 {
        (self.busy - own).max(0.0) + self.stolen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_work_is_seen() {
        let pid = std::process::id();
        let (before, fine_before) = (process_time(pid).unwrap(), threads_time(pid).unwrap());
        let mut sum = 0_u64;
        while process_time(pid).unwrap() < before + Duration::from_millis(30) {
            sum = std::hint::black_box(sum.wrapping_mul(31) + 1);
        }
        assert!(threads_time(pid).unwrap() > fine_before);
    }

    #[test]
    fn foreign_time_is_what_is_left_of_busy_and_all_that_was_stolen() {
        let use_of_core = CoreUse { busy: 0.9, stolen: 0.05 };
        assert!((use_of_core.foreign(0.7) - 0.25).abs() < 1e-9);
        assert!((use_of_core.foreign(0.95) - 0.05).abs() < 1e-9);
    }
}

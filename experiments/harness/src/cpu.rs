//! Processor time, as the kernel tells it.

use std::fs;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::trouble::{Result, Trouble, While};

/// The kernel's unit in `/proc`: on Linux always a hundredth of a second, whatever its own clock
/// does.
const TICKS_PER_S: f64 = 100.0;

/// Returns the processor time process `pid` has used, threads that ended included; to a hundredth
/// of a second.
pub(crate) fn process_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).trouble(&path)?;
    let ticks = ticks_of(&text).ok_or_else(|| Trouble::Failed(format!("{path}: not understood")))?;
    Ok(Duration::from_secs_f64(ticks as f64 / TICKS_PER_S))
}

/// Returns the processor time of all living threads of process `pid`, to the nanosecond.
pub(crate) fn threads_time(pid: u32) -> Result<Duration> {
    let folder = format!("/proc/{pid}/task");
    let mut nanos = 0;
    for entry in fs::read_dir(&folder).trouble(&folder)? {
        let path = entry.trouble(&folder)?.path().join("schedstat");
        // A thread that has just ended has no file any more.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        nanos += text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

/// What a core did since the machine started, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CoreTimes {
    busy: u64,
    stolen: u64,
    at: Instant,
}

/// What became of a core's time in a span.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CoreUse {
    /// Share of the time in which somebody here worked on it.
    pub(crate) busy: f64,
    /// Share of the time that was given to other machines on the same hardware.
    pub(crate) stolen: f64,
}

impl CoreTimes {
    /// Returns what `core` did so far.
    pub(crate) fn now(core: usize) -> Result<CoreTimes> {
        let text = fs::read_to_string("/proc/stat").trouble("/proc/stat")?;
        let (busy, stolen) = core_ticks(&text, core)
            .ok_or_else(|| Trouble::Usage(format!("there is no core {core} on this machine")))?;
        Ok(CoreTimes { busy, stolen, at: Instant::now() })
    }

    /// Returns what it did since `self` was taken.
    pub(crate) fn until(&self, later: &CoreTimes) -> CoreUse {
        let elapsed = later.at.duration_since(self.at).as_secs_f64().max(1e-9);
        let share = |before: u64, after: u64| after.saturating_sub(before) as f64 / TICKS_PER_S / elapsed;
        CoreUse { busy: share(self.busy, later.busy), stolen: share(self.stolen, later.stolen) }
    }
}

impl CoreUse {
    /// Returns the share of the time that neither the process that used `own` (a share) nor
    /// idleness had.
    pub(crate) fn foreign(&self, own: f64) -> f64 {
        (self.busy - own).max(0.0) + self.stolen
    }
}

/// Fields 14 and 15, counted behind the name, which may hold anything.
fn ticks_of(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Returns busy and stolen ticks. Fields: user nice system idle iowait irq softirq steal; guests
/// are in user already.
fn core_ticks(stat: &str, core: usize) -> Option<(u64, u64)> {
    let name = format!("cpu{core}");
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else { return None };
    Some((user + nice + system + irq + softirq, steal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_blanks_and_brackets_does_not_shift_the_fields() {
        let stat = "42 (my (odd) name) S 1 42 42 0 -1 4194560 100 0 0 0 250 30 0 0 20 0 1 0 5 6 7";
        assert_eq!(ticks_of(stat), Some(280));
        assert_eq!(ticks_of("42 (cut"), None);
    }

    #[test]
    fn a_core_is_told_from_one_that_begins_with_its_number() {
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 1 2 3 400 5 6 7 8 0 0\ncpu10 9 9 9 9 9 9 9 9 0 0\n";
        assert_eq!(core_ticks(stat, 1), Some((19, 8)));
        assert_eq!(core_ticks(stat, 2), None);
    }

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

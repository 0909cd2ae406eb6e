//! CPU time, as the kernel reports it.

use std::fs;
use std::io;
use std::time::Duration;

/// The unit of CPU time in `/proc`: always 1/100 s on Linux, whatever the kernel's own clock rate.
const TICK: Duration = Duration::from_millis(10);

/// How a core has spent its time since the machine started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreTime {
    /// It worked for this machine.
    pub busy: Duration,
    /// It was given to other machines on the same hardware.
    pub stolen: Duration,
}

/// Returns the CPU time that process `pid` has used, ended threads included, in steps of 1/100 s.
///
/// # Errors
/// There is no such process, or the system does not report it.
pub fn process_time(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    ticks_of(&stat).map(time).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Returns the CPU time that process `pid` has used, with that of its children that have ended and
/// were waited for, in steps of 1/100 s.
///
/// # Errors
/// There is no such process, or the system does not report it.
pub fn family_time(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    ticks_in(&stat, 4).map(time).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Returns the CPU time that the processes of a group have used, with that of their children that have
/// ended and were waited for, in steps of 1/100 s.
///
/// # Errors
/// There is no such group, or the system does not report it.
pub fn group_time(leader: u32) -> io::Result<Duration> {
    // Whatever has ended meanwhile is counted by its parent.
    let times: Vec<Duration> =
        crate::group::members(leader)?.into_iter().filter_map(|pid| family_time(pid).ok()).collect();
    if times.is_empty() {
        return family_time(leader);
    }
    Ok(times.into_iter().sum())
}

/// Returns the same for several groups, in their order, with one look at all processes. A group that is
/// not there has used nothing.
///
/// # Errors
/// The system does not report it.
pub fn group_times(leaders: &[u32]) -> io::Result<Vec<Duration>> {
    let mut times = vec![Duration::ZERO; leaders.len()];
    for (pid, group) in crate::group::groups()? {
        if let Some(index) = leaders.iter().position(|leader| *leader == group) {
            // One that has ended meanwhile is counted by its parent.
            times[index] += family_time(pid).unwrap_or_default();
        }
    }
    Ok(times)
}

/// Returns the CPU time that this thread has used, to the nanosecond.
pub fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default() // it is never negative
}

/// Returns how `core` has spent its time since the machine started, or `None` if there is no such
/// core.
///
/// # Errors
/// The system does not report it.
pub fn core_time(core: usize) -> io::Result<Option<CoreTime>> {
    let stat = fs::read_to_string("/proc/stat")?;
    let told = |(busy, stolen)| CoreTime { busy: time(busy), stolen: time(stolen) };
    Ok(core_ticks(&stat, core).map(told))
}

fn time(ticks: u64) -> Duration {
    TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
}

fn ticks_of(stat: &str) -> Option<u64> {
    ticks_in(stat, 2)
}

/// Returns the sum of so many fields from field 14 on: two of the process, two of its children.
/// They are counted after the name, which may contain anything.
fn ticks_in(stat: &str, fields: usize) -> Option<u64> {
    let all: Vec<u64> = stat
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .skip(11)
        .take(fields)
        .map_while(|field| field.parse().ok())
        .collect();
    (all.len() == fields).then(|| all.iter().sum())
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
        assert_eq!(ticks_in(stat, 4), Some(280));
        assert_eq!(ticks_in(&stat.replace(" 250 30 0 0 ", " 250 30 7 4 "), 4), Some(291));
        assert_eq!(time(280), Duration::from_millis(2800));
        assert_eq!(ticks_of("42 (cut"), None);
    }

    #[test]
    fn the_time_of_a_thread_is_that_of_its_work() {
        let before = thread_time();
        let work = || (0..100_000_u64).fold(1_u64, |sum, next| std::hint::black_box(sum ^ next));
        let until = std::time::Instant::now() + Duration::from_secs(10);
        while thread_time() == before && std::time::Instant::now() < until {
            std::hint::black_box(work());
        }
        assert!(thread_time() > before);
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
        let before = process_time(pid).unwrap();
        let mut sum = 0_u64;
        while process_time(pid).unwrap() < before + Duration::from_millis(30) {
            sum = std::hint::black_box(sum.wrapping_mul(31) + 1);
        }
    }
}

//! Memory: what workers take, how many fit, and whether they are swapped.

pub(super) mod no_swap;
pub(super) mod pace;
pub(super) mod process;
pub(super) mod room;

use process::ProcessMemory;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use suimon_fleet::workers::WorkerId;
use suimon_params::pool::MemoryParams;

/// Growth of the swapped memory of all workers from one look to the next, in bytes, from which they
/// count as being swapped.
const SWAP_GROWTH: u64 = 1 << 20;
/// Pages per second that workers with swapped memory read from disk, from which they count as being
/// swapped.
const FAULTS_PER_S: f64 = 10.0;
/// The share of workers that take at most what a worker is reckoned to take.
const RECKONED_SHARE: f64 = 0.95;

/// Processes that may run until a look has shown what one takes.
pub(super) const UNMEASURED_MAX: usize = 4;
/// What a worker takes that has served for a while, as a multiple of what one takes that has just
/// become ready: what is reckoned with until one has served for a while.
const FRESH_FACTOR: u64 = 2;
/// From one look to the next a pool may grow by one part in so many of what is left: what a worker
/// takes, and what others do, may change meanwhile.
const GROWTH_PARTS: usize = 2;

/// How far a worker is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// It tells nothing of what a worker takes.
    Starts,
    /// It is ready, and may not have loaded all that it needs.
    Fresh,
    /// It has been ready for a while.
    Settled,
}

/// What a look at the workers' memory has shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub(super) workers: BTreeMap<WorkerId, ProcessMemory>,
    /// What nearly every worker takes at most, bytes; `None`: there is none.
    pub(super) worker_bytes: Option<u64>,
    /// How many workers fit into the budget; `None`: not known.
    pub(super) fit: Option<usize>,
    /// How many processes there may be until the next look; `None`: as many as before.
    pub(super) room: Option<usize>,
    /// CPU time of the look.
    pub(super) cost: Duration,
    /// Swapped memory of all workers, bytes.
    pub(super) swap_bytes: u64,
    /// Pages that all workers have read from disk, per second since the look before.
    pub(super) faults_per_s: f64,
    pub(super) is_swapping: bool,
}

/// Looks again and again.
#[derive(Default)]
pub(super) struct Looks {
    /// When the last one was, and what it has shown.
    last: Option<(Instant, BTreeMap<WorkerId, ProcessMemory>)>,
}

impl Looks {
    /// Looks at the workers whose process groups have these numbers: a worker may have started
    /// others.
    pub(super) fn look(
        &mut self,
        roots: &Roots<'_>,
        params: &MemoryParams,
        pids: impl Iterator<Item = (WorkerId, u32, Stage)>,
    ) -> Look {
        let began = cpu_time();
        let groups = process::groups(roots.proc);
        let pids: Vec<(WorkerId, u32, Stage)> = pids.collect();
        let found = |pid| process::of_all(roots.proc, groups.get(&pid)?);
        let seen: Vec<(WorkerId, ProcessMemory, Stage)> =
            pids.iter().filter_map(|(id, pid, stage)| Some((*id, found(*pid)?, *stage))).collect();
        let taken = seen.iter().map(|(_, it, _)| it.bytes).sum();
        let budget = room::of_workers(roots.proc, roots.cgroup, taken, params);
        let at = |stage| seen.iter().filter(move |it| it.2 == stage).map(|(_, it, _)| it.bytes);
        let (worker_bytes, fresh_bytes) = (reckoned(at(Stage::Settled)), reckoned(at(Stage::Fresh)));
        let fit_of = |each: u64, budget: u64| usize::try_from(budget / each.max(1)).unwrap_or(usize::MAX);
        let cautious = match (worker_bytes, fresh_bytes) {
            (Some(settled), fresh) => Some(settled.max(fresh.unwrap_or_default())),
            (None, fresh) => fresh.map(|fresh| fresh.saturating_mul(FRESH_FACTOR)),
        };
        let room = match (cautious, budget) {
            (Some(each), Some(budget)) => Some(room_until_next(pids.len(), fit_of(each, budget))),
            // Where nobody tells, none is kept from starting.
            (Some(_), None) => Some(usize::MAX),
            (None, _) => groups.is_empty().then_some(usize::MAX),
        };
        let workers: BTreeMap<WorkerId, ProcessMemory> =
            seen.into_iter().map(|(id, memory, _)| (id, memory)).collect();
        let now = Instant::now();
        let last = self.last.replace((now, workers.clone()));
        let (mut grown, mut faults, mut spent) = (0_u64, 0, Duration::ZERO);
        if let Some((then, before)) = last {
            spent = now - then;
            for (id, memory) in &workers {
                if let Some(before) = before.get(id) {
                    grown += memory.swap.saturating_sub(before.swap);
                    faults += memory.major_faults.saturating_sub(before.major_faults);
                }
            }
        }
        let swap_bytes = workers.values().map(|it| it.swap).sum();
        let faults_per_s = if spent.is_zero() { 0.0 } else { faults as f64 / spent.as_secs_f64() };
        Look {
            worker_bytes,
            fit: worker_bytes.zip(budget).map(|(each, budget)| fit_of(each, budget)),
            room,
            swap_bytes,
            faults_per_s,
            // Pages of the program's own files are read from disk without swap, too.
            is_swapping: grown >= SWAP_GROWTH || (swap_bytes > 0 && faults_per_s >= FAULTS_PER_S),
            workers,
            cost: cpu_time().saturating_sub(began),
        }
    }
}

/// Returns how many processes there may be until the next look, where there are so many and this many
/// fit.
fn room_until_next(processes: usize, fit: usize) -> usize {
    let left = fit.saturating_sub(processes);
    fit.min(processes.saturating_add(left.div_ceil(GROWTH_PARTS)))
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Where the kernel tells of processes and control groups.
pub(super) struct Roots<'a> {
    pub(super) proc: &'a Path,
    pub(super) cgroup: &'a Path,
}

/// Returns what nearly every worker takes at most.
fn reckoned(bytes: impl Iterator<Item = u64>) -> Option<u64> {
    let mut sorted: Vec<u64> = bytes.collect();
    sorted.sort_unstable();
    let place = (sorted.len() as f64 * RECKONED_SHARE).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied()
}

/// Returns the value of a line such as `Pss: 1234 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// Folders that look like /proc and /sys/fs/cgroup.
    pub(super) struct Fake {
        folder: tempfile::TempDir,
    }

    impl Fake {
        pub(super) fn new() -> Self {
            Fake { folder: tempfile::tempdir().unwrap() }
        }

        pub(super) fn put(&self, path: &str, text: &str) {
            let file = self.folder.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }

        pub(super) fn proc(&self) -> PathBuf {
            self.folder.path().join("proc")
        }

        pub(super) fn cgroup(&self) -> PathBuf {
            self.folder.path().join("cgroup")
        }

        fn worker(&self, pid: u32, pss_kib: u64, swap_kib: u64, faults: u64) {
            let rollup = format!("Rss: 99999 kB\nPss: {pss_kib} kB\nSwap: 9 kB\nSwapPss: {swap_kib} kB\n");
            self.put(&format!("proc/{pid}/smaps_rollup"), &rollup);
            self.put(
                &format!("proc/{pid}/stat"),
                &format!("{pid} (a b) S 1 {pid} 1 0 -1 0 5 0 {faults} 0 0\n"),
            );
        }
    }

    #[test]
    fn as_many_fit_as_what_nearly_all_take_goes_into_what_is_left() {
        let fake = Fake::new();
        fake.put("proc/meminfo", "MemTotal: 102400 kB\nMemAvailable: 50000 kB\n");
        for pid in 1..=20 {
            fake.worker(pid, if pid == 20 { 9000 } else { 1000 }, 0, 0);
        }
        let params = MemoryParams { budget: None, reserve: Some(8000 << 10) };
        let roots = Roots { proc: &fake.proc(), cgroup: &fake.cgroup() };
        let at = |stage| {
            let pids = (1..=20).map(|pid| (WorkerId(pid.into()), pid, stage));
            Looks::default().look(&roots, &params, pids)
        };
        let look = at(Stage::Settled);
        assert_eq!(look.worker_bytes, Some(1000 << 10));
        assert_eq!(look.fit, Some(28 + 50 - 8));
        assert_eq!(look.room, Some(20 + (70 - 20) / 2), "half of what is left");
        let fresh = at(Stage::Fresh);
        assert_eq!(
            (fresh.fit, fresh.room),
            (None, Some(20 + (35 - 20) / 2 + 1)),
            "each may take twice as much"
        );
        let none = at(Stage::Starts);
        assert_eq!((none.fit, none.room), (None, None), "those that start do not tell what a worker takes");
    }

    #[test]
    fn the_room_is_what_fits_where_nearly_all_is_taken_and_unbounded_where_nobody_tells() {
        for (processes, fit, room) in [(0, 10, 5), (9, 10, 10), (10, 10, 10), (12, 10, 10), (1, 2, 2)] {
            assert_eq!(room_until_next(processes, fit), room, "{processes} of {fit}");
        }
        let fake = Fake::new();
        let params = MemoryParams::default();
        let look = || {
            let roots = Roots { proc: &fake.proc(), cgroup: &fake.cgroup() };
            Looks::default().look(&roots, &params, [(WorkerId(1), 1, Stage::Fresh)].into_iter())
        };
        assert_eq!(look().room, Some(usize::MAX), "there is no /proc");
        fake.worker(1, 1000, 0, 0);
        assert_eq!(look().room, Some(usize::MAX), "the machine does not tell what it has");
        fake.put("proc/meminfo", "MemTotal: 102400 kB\nMemAvailable: 50000 kB\n");
        assert!(look().room.is_some_and(|room| room < 50));
    }

    #[test]
    fn swapping_is_more_swap_or_pages_read_back() {
        let fake = Fake::new();
        fake.put("proc/meminfo", "MemTotal: 102400 kB\nMemAvailable: 50000 kB\n");
        let (mut looks, params) = (Looks::default(), MemoryParams::default());
        let mut swapping = |swap_kib, faults| {
            fake.worker(1, 1000, swap_kib, faults);
            let roots = Roots { proc: &fake.proc(), cgroup: &fake.cgroup() };
            looks.look(&roots, &params, [(WorkerId(1), 1, Stage::Settled)].into_iter()).is_swapping
        };
        assert!(!swapping(0, 0));
        assert!(!swapping(0, 1_000_000), "pages of its own files");
        assert!(swapping(2048, 1_000_000), "more is swapped");
        assert!(!swapping(2048, 1_000_000), "it only lies there");
        assert!(swapping(2048, 2_000_000), "it is read back");
    }
}

//! Memory: what workers take, how many fit, and whether they are swapped.

pub(super) mod no_swap;
pub(super) mod process;
pub(super) mod room;

use process::ProcessMemory;
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

/// What a look at the workers' memory has shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub(super) workers: BTreeMap<WorkerId, ProcessMemory>,
    /// What nearly every worker takes at most, bytes; `None`: there is none.
    pub(super) worker_bytes: Option<u64>,
    /// How many workers fit into the budget; `None`: not known.
    pub(super) fit: Option<usize>,
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
    /// others. Those that are `settled` have run for a while.
    pub(super) fn look(
        &mut self,
        roots: &Roots<'_>,
        params: &MemoryParams,
        pids: impl Iterator<Item = (WorkerId, u32)>,
        settled: impl Fn(WorkerId) -> bool,
    ) -> Look {
        let groups = process::groups(roots.proc);
        let found = pids.filter_map(|(id, pid)| Some((id, process::of_all(roots.proc, groups.get(&pid)?)?)));
        let workers: BTreeMap<WorkerId, ProcessMemory> = found.collect();
        let taken = workers.values().map(|it| it.bytes).sum();
        let room = room::of_workers(roots.proc, roots.cgroup, taken, params);
        let worker_bytes = reckoned(workers.iter().filter(|(id, _)| settled(**id)).map(|(_, it)| it.bytes));
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
            fit: worker_bytes
                .zip(room)
                .map(|(each, room)| usize::try_from(room / each.max(1)).unwrap_or(usize::MAX)),
            swap_bytes,
            faults_per_s,
            // Pages of the program's own files are read from disk without swap, too.
            is_swapping: grown >= SWAP_GROWTH || (swap_bytes > 0 && faults_per_s >= FAULTS_PER_S),
            workers,
        }
    }
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
        let pids = || (1..=20).map(|pid| (WorkerId(pid.into()), pid));
        let look = Looks::default().look(&roots, &params, pids(), |_| true);
        assert_eq!(look.worker_bytes, Some(1000 << 10));
        assert_eq!(look.fit, Some(28 + 50 - 8));
        let none = Looks::default().look(&roots, &params, pids(), |_| false);
        assert_eq!(none.fit, None, "those that start do not tell what a worker takes");
    }

    #[test]
    fn swapping_is_more_swap_or_pages_read_back() {
        let fake = Fake::new();
        fake.put("proc/meminfo", "MemTotal: 102400 kB\nMemAvailable: 50000 kB\n");
        let (mut looks, params) = (Looks::default(), MemoryParams::default());
        let mut swapping = |swap_kib, faults| {
            fake.worker(1, 1000, swap_kib, faults);
            let roots = Roots { proc: &fake.proc(), cgroup: &fake.cgroup() };
            looks.look(&roots, &params, [(WorkerId(1), 1)].into_iter(), |_| true).is_swapping
        };
        assert!(!swapping(0, 0));
        assert!(!swapping(0, 1_000_000), "pages of its own files");
        assert!(swapping(2048, 1_000_000), "more is swapped");
        assert!(!swapping(2048, 1_000_000), "it only lies there");
        assert!(swapping(2048, 2_000_000), "it is read back");
    }
}

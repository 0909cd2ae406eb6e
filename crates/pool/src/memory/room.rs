//! How much memory the workers of a pool may take: what they have, and what the machine and each
//! control group that we are in have left, less a reserve.

use super::kibibytes;
use std::fs;
use std::path::{Path, PathBuf};
use suimon_params::pool::MemoryParams;

/// The part of what there is that is left to others, unless somebody says how much.
const RESERVE: u64 = 10;

/// Returns how many bytes the workers may take that now take `taken`. `None`: not known.
///
/// `proc` and `cgroup` are the folders /proc and /sys/fs/cgroup.
pub(crate) fn of_workers(proc: &Path, cgroup: &Path, taken: u64, params: &MemoryParams) -> Option<u64> {
    let machine = fs::read_to_string(proc.join("meminfo")).ok().and_then(|text| of_machine(&text));
    let groups = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    let holders = machine.into_iter().chain(of_groups(&groups, cgroup));
    let rooms = holders.map(|Holder { limit, left }| {
        let reserve = params.reserve.unwrap_or(limit / RESERVE);
        (taken + left).min(limit).saturating_sub(reserve)
    });
    rooms.chain(params.budget).min()
}

/// Something that has memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Holder {
    limit: u64,
    left: u64,
}

fn of_machine(meminfo: &str) -> Option<Holder> {
    let limit = kibibytes(meminfo, "MemTotal:")?;
    Some(Holder { limit, left: kibibytes(meminfo, "MemAvailable:").unwrap_or(limit) })
}

/// Returns what the control groups have that `groups` lists, in the form of /proc/PID/cgroup, and
/// those that these are in.
fn of_groups(groups: &str, root: &Path) -> impl Iterator<Item = Holder> {
    groups
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let (root, files) = match controllers {
                "" => (root.to_owned(), &SECOND),
                _ if controllers.split(',').any(|it| it == "memory") => (root.join("memory"), &FIRST),
                _ => return None,
            };
            let own = root.join(path.trim_start_matches('/'));
            let all: Vec<PathBuf> =
                own.ancestors().take_while(|it| it.starts_with(&root)).map(Path::to_owned).collect();
            Some(all.into_iter().filter_map(|folder| of_group(&folder, files)))
        })
        .flatten()
}

/// The names of a control group's files.
struct Files {
    /// Each may have a limit.
    limits: [&'static str; 2],
    usage: &'static str,
    /// Pages of files that the kernel takes back first, as `memory.stat` calls them.
    inactive: &'static str,
}

const FIRST: Files = Files {
    limits: ["memory.limit_in_bytes", "memory.soft_limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    inactive: "total_inactive_file ",
};
const SECOND: Files =
    Files { limits: ["memory.max", "memory.high"], usage: "memory.current", inactive: "inactive_file " };

fn of_group(folder: &Path, files: &Files) -> Option<Holder> {
    // `max` is no number, and no limit.
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = files.limits.iter().filter_map(|name| number(name)).min()?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let inactive =
        stat.lines().find_map(|line| line.strip_prefix(files.inactive)?.trim().parse::<u64>().ok());
    let used = number(files.usage).unwrap_or_default().saturating_sub(inactive.unwrap_or_default());
    Some(Holder { limit, left: limit.saturating_sub(used) })
}

#[cfg(test)]
mod tests {
    use super::super::tests::Fake;
    use super::*;

    const NO_RESERVE: MemoryParams = MemoryParams { budget: None, reserve: Some(0) };

    fn room(fake: &Fake, taken: u64, params: MemoryParams) -> Option<u64> {
        of_workers(&fake.proc(), &fake.cgroup(), taken, &params)
    }

    #[test]
    fn the_machine_has_what_is_left_and_what_the_workers_have() {
        let fake = Fake::new();
        assert_eq!(room(&fake, 0, NO_RESERVE), None);
        fake.put("proc/meminfo", "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\n");
        assert_eq!(room(&fake, 10 << 10, NO_RESERVE), Some(50 << 10));
        assert_eq!(room(&fake, 90 << 10, NO_RESERVE), Some(100 << 10), "never more than there is");
        assert_eq!(room(&fake, 10 << 10, MemoryParams::default()), Some(40 << 10), "less a tenth of all");
        let budget = MemoryParams { budget: Some(12_345), ..NO_RESERVE };
        assert_eq!(room(&fake, 10 << 10, budget), Some(12_345));
    }

    #[test]
    fn the_tightest_group_of_the_second_version_counts() {
        let fake = Fake::new();
        fake.put("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 1000 kB\n");
        fake.put("proc/self/cgroup", "0::/shop.slice/gateway\n");
        fake.put("cgroup/shop.slice/gateway/memory.max", "max\n");
        fake.put("cgroup/shop.slice/memory.max", "8192\n");
        fake.put("cgroup/shop.slice/memory.high", "4096\n");
        fake.put("cgroup/shop.slice/memory.current", "3000\n");
        fake.put("cgroup/shop.slice/memory.stat", "anon 1\ninactive_file 1000\nactive_file 7\n");
        assert_eq!(room(&fake, 500, NO_RESERVE), Some(4096 - 2000 + 500));
    }

    #[test]
    fn the_tightest_group_of_the_first_version_counts() {
        let fake = Fake::new();
        fake.put("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 1000 kB\n");
        fake.put("proc/self/cgroup", "5:cpu,memory:/docker/abc\n1:name=systemd:/\n");
        fake.put("cgroup/memory/docker/memory.limit_in_bytes", "9223372036854771712\n");
        fake.put("cgroup/memory/memory.limit_in_bytes", "4096\n");
        fake.put("cgroup/memory/memory.usage_in_bytes", "1096\n");
        fake.put("cgroup/memory/memory.stat", "inactive_file 5\ntotal_inactive_file 96\n");
        assert_eq!(room(&fake, 0, NO_RESERVE), Some(3096));
    }
}

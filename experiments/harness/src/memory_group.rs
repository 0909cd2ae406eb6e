//! A control group whose processes share a bounded amount of memory, of either version.

use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::trouble::{Result, While, failed};
use crate::workspace::{PREFIX, Workspace};

/// Where control groups are.
const ROOT: &str = "/sys/fs/cgroup";
/// How long the processes of a group may take to be gone before it is removed.
const EMPTY_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A control group of our own, inside the one that we are in. Dropping this removes it, once its
/// processes have ended.
pub(crate) struct MemoryGroup {
    folder: PathBuf,
    files: &'static Files,
}

/// The names of the files of a version.
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// Has a line `oom_kill N`.
    events: &'static str,
}

const FIRST: Files =
    Files { limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", events: "memory.oom_control" };
const SECOND: Files = Files { limit: "memory.max", usage: "memory.current", events: "memory.events" };

impl MemoryGroup {
    /// Makes one with a limit of so many bytes, and without swap where there is any.
    pub(crate) fn make(workspace: &Workspace, name: &str, limit: u64) -> Result<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").trouble("/proc/self/cgroup")?;
        let Some((parents, files)) = parents(&own, Path::new(ROOT)) else {
            return failed("this process is in no control group for memory");
        };
        let name = format!("{PREFIX}{}-{name}", std::process::id());
        let mut why = String::new();
        for parent in parents {
            let group = MemoryGroup { folder: parent.join(&name), files };
            match group.set_up(limit) {
                Ok(()) => {
                    workspace.remove_at_the_end(&group.folder)?;
                    return Ok(group);
                }
                Err(trouble) => why = trouble.to_string(),
            }
        }
        failed(why)
    }

    fn set_up(&self, limit: u64) -> Result<()> {
        fs::create_dir(&self.folder).trouble(self.folder.display())?;
        let file = self.folder.join(self.files.limit);
        fs::write(&file, limit.to_string()).trouble(file.display())?;
        // A machine without swap may lack the file.
        let _ = fs::write(self.folder.join("memory.swap.max"), "0");
        Ok(())
    }

    /// Returns the file by which a process joins it.
    pub(crate) fn processes(&self) -> Result<OwnedFd> {
        let file = self.folder.join("cgroup.procs");
        Ok(OpenOptions::new().write(true).open(&file).trouble(file.display())?.into())
    }

    /// Returns its processes.
    pub(crate) fn members(&self) -> Result<Vec<u32>> {
        let file = self.folder.join("cgroup.procs");
        let text = fs::read_to_string(&file).trouble(file.display())?;
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Returns how many of its processes the kernel has killed for lack of memory.
    pub(crate) fn kills(&self) -> Result<u64> {
        let file = self.folder.join(self.files.events);
        let text = fs::read_to_string(&file).trouble(file.display())?;
        kills_in(&text).ok_or("does not tell how many were killed").trouble(file.display())
    }

    /// Returns how much memory it has taken, bytes, with the files that its processes have read.
    pub(crate) fn usage(&self) -> Result<u64> {
        let file = self.folder.join(self.files.usage);
        fs::read_to_string(&file).trouble(file.display())?.trim().parse().trouble(file.display())
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + EMPTY_WITHIN;
        // It cannot be removed while a process is in it; then the guard removes it.
        while self.folder.is_dir() && fs::remove_dir(&self.folder).is_err() && Instant::now() < deadline {
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Returns the groups in which one may be made, and how its files are called. `own` is
/// /proc/self/cgroup.
fn parents(own: &str, root: &Path) -> Option<(Vec<PathBuf>, &'static Files)> {
    let of = |wanted: fn(&str) -> bool| {
        own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            wanted(controllers).then(|| path.trim_start_matches('/').to_string())
        })
    };
    if let Some(path) = of(|controllers| controllers.split(',').any(|it| it == "memory")) {
        return Some((vec![root.join("memory").join(path)], &FIRST));
    }
    let group = root.join(of(str::is_empty)?);
    // A group with processes in it, as ours is, may not divide its memory: then it is one beside it.
    let beside = group.parent().filter(|parent| parent.starts_with(root)).map(Path::to_owned);
    Some(([group].into_iter().chain(beside).collect(), &SECOND))
}

fn kills_in(events: &str) -> Option<u64> {
    events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_made_in_our_own_or_beside_it() {
        let root = Path::new("/groups");
        let of = |own| parents(own, root).map(|(parents, files)| (parents, files.limit));
        let first = "5:cpu,memory:/docker/abc\n1:name=systemd:/\n0::/\n";
        assert_eq!(of(first), Some((vec!["/groups/memory/docker/abc".into()], FIRST.limit)));
        let both = vec!["/groups/user/shell".into(), "/groups/user".into()];
        assert_eq!(of("0::/user/shell\n"), Some((both, SECOND.limit)));
        assert_eq!(of("1:name=systemd:/\n"), None);
    }

    #[test]
    fn kills_are_read_from_either_version() {
        assert_eq!(kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), Some(3));
        assert_eq!(kills_in("low 0\nmax 7\noom 2\noom_kill 12\noom_group_kill 0\n"), Some(12));
        assert_eq!(kills_in("oom 1\n"), None);
    }
}

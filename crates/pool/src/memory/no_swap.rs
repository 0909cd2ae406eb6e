//! Keeping workers from being swapped: "never let workers be swapped out" (paper P3).
//!
//! Only a control group can forbid it to other programs. A pool makes one of its own, with
//! `memory.swap.max` 0, where that is asked for by nobody else: in a group that was delegated to us
//! (systemd's `Delegate=` with `DelegateSubgroup=`), which leaves the mark `user.delegate` or
//! `trusted.delegate` on it. Anywhere else the groups are somebody else's, and the reason is told.
//! The first version of control groups knows no delegation.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// What the names of our groups begin with.
const PREFIX: &str = "suimon-pool-";

/// A control group without swap. Dropping this removes it, once it is empty.
pub(crate) struct NoSwap {
    folder: PathBuf,
    /// Where processes join it.
    pub(crate) processes: File,
}

impl NoSwap {
    /// Makes one for the pool `name`, and removes those of dead gateways.
    ///
    /// # Errors
    /// We may not: says why.
    pub(crate) fn make(name: &str) -> Result<Self, String> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let parent = delegated(&groups, Path::new("/sys/fs/cgroup"), is_marked)?;
        make_in(&parent, name, std::process::id())
    }
}

impl Drop for NoSwap {
    fn drop(&mut self) {
        // It stays while a process is in it; the next gateway removes it.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Returns the group that was delegated to us, in which we may make others.
fn delegated(groups: &str, root: &Path, is_marked: impl Fn(&Path) -> bool) -> Result<PathBuf, String> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let own = root.join(path.ok_or("there are no control groups of the second version")?);
    // We are in a group of our own in the one that was delegated: a group with processes in it may
    // not divide its memory.
    let parent = own.parent().filter(|parent| parent.starts_with(root) && is_marked(parent));
    let parent = parent.ok_or("no control group was delegated to the gateway")?;
    let divided = fs::read_to_string(parent.join("cgroup.subtree_control")).unwrap_or_default();
    if !divided.split_whitespace().any(|it| it == "memory") {
        fs::write(parent.join("cgroup.subtree_control"), "+memory")
            .map_err(|error| format!("{}: memory cannot be divided: {error}", parent.display()))?;
    }
    Ok(parent.to_owned())
}

fn make_in(parent: &Path, name: &str, pid: u32) -> Result<NoSwap, String> {
    let prefix = format!("{PREFIX}{name}.");
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            // A group with processes in it cannot be removed.
            let _ = fs::remove_dir(entry.path());
        }
    }
    let folder = parent.join(format!("{prefix}{pid}"));
    let make = || -> io::Result<NoSwap> {
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("memory.swap.max"), "0")?;
        let processes = OpenOptions::new().write(true).open(folder.join("cgroup.procs"))?;
        Ok(NoSwap { folder: folder.clone(), processes })
    };
    make().map_err(|error| format!("{}: {error}", folder.display()))
}

/// Returns whether systemd has marked a group as delegated.
fn is_marked(folder: &Path) -> bool {
    ["user.delegate", "trusted.delegate"].into_iter().any(|name| {
        let mut value = [0; 8];
        rustix::fs::getxattr(folder, name, &mut value[..]).is_ok_and(|length| value[..length] == *b"1")
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::Fake;
    use super::*;

    #[test]
    fn a_group_is_made_only_where_one_was_delegated() {
        let fake = Fake::new();
        fake.put("cgroup/shop.service/cgroup.subtree_control", "cpu\n");
        fake.put("cgroup/shop.service/gateway/cgroup.procs", "");
        let of = |groups: &str, marked: &str| {
            delegated(groups, &fake.cgroup(), |it| it.ends_with(marked)).map_err(|_| ())
        };
        assert_eq!(of("0::/shop.service/gateway\n", "shop.service"), Ok(fake.cgroup().join("shop.service")));
        let file = fake.cgroup().join("shop.service/cgroup.subtree_control");
        assert_eq!(fs::read_to_string(file).unwrap(), "+memory");
        assert_eq!(of("0::/shop.service/gateway\n", "gateway"), Err(()), "we are in it");
        assert_eq!(of("0::/shop.service/gateway\n", "none"), Err(()));
        assert_eq!(of("4:memory:/shop.service/gateway\n", "shop.service"), Err(()));
        assert_eq!(of("0::/\n", "cgroup"), Err(()));
    }

    #[test]
    fn it_forbids_swap() {
        let fake = Fake::new();
        fake.put("cgroup/suimon-pool-shop.8/cgroup.procs", "");
        let folder = fake.cgroup().join("suimon-pool-shop.8");
        let group = make_in(&fake.cgroup(), "shop", 8).unwrap();
        assert_eq!(fs::read_to_string(folder.join("memory.swap.max")).unwrap(), "0");
        drop(group);
    }
}

//! Who runs on which core.

use super::process::TICKS_PER_S;
use std::thread;

/// A set of cores for the shop and one for everybody else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cores {
    /// Cores the shop can use at once.
    pub(super) of_the_shop: usize,
    /// Where the shop runs; `None`: wherever the system likes.
    pub(super) shop: Option<Vec<usize>>,
    /// Where everybody else runs.
    pub(super) others: Option<Vec<usize>>,
}

impl Cores {
    /// Returns one core for the shop and the rest for the others, where there are two or more and
    /// processes may be told where to run.
    pub(super) fn share_out() -> Cores {
        let all = thread::available_parallelism().map_or(1, usize::from);
        match system::allowed().as_deref() {
            Some([first, rest @ ..]) if !rest.is_empty() && system::may_choose() => {
                Cores { of_the_shop: 1, shop: Some(vec![*first]), others: Some(rest.to_vec()) }
            }
            _ => Cores { of_the_shop: all, shop: None, others: None },
        }
    }

    /// Says where the shop runs.
    pub(super) fn describe(&self) -> &'static str {
        match (&self.shop, self.of_the_shop) {
            (Some(_), _) => "the shop has one core to itself",
            (None, 1) => "shop, gateway and crowd share one core",
            (None, _) => "shop, gateway and crowd share all cores",
        }
    }
}

/// Returns how long a core has been busy since the machine started, in seconds, where the system
/// tells.
pub(super) fn busy_seconds(core: usize) -> Option<f64> {
    busy_seconds_in(&std::fs::read_to_string("/proc/stat").ok()?, core)
}

fn busy_seconds_in(stat: &str, core: usize) -> Option<f64> {
    let name = format!("cpu{core}");
    let mut fields = stat
        .lines()
        .map(str::split_ascii_whitespace)
        .find_map(|mut fields| (fields.next() == Some(&name)).then_some(fields))?;
    // user nice system idle iowait irq softirq steal: all but the fourth and fifth.
    let mut ticks = 0.0;
    for index in 0..8 {
        let field: f64 = fields.next()?.parse().ok()?;
        ticks += if index == 3 || index == 4 { 0.0 } else { field };
    }
    Some(ticks / TICKS_PER_S)
}

#[cfg(target_os = "linux")]
pub(super) use system::stay_on;

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::mem::size_of;

    /// Returns the cores this process may run on, in order.
    #[expect(unsafe_code, reason = "sched_getaffinity only writes the set it is given")]
    pub(super) fn allowed() -> Option<Vec<usize>> {
        // SAFETY: a cpu_set_t is plain bits, of which all zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` lives through the call and its size is given.
        let status = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
        let cores = 0..libc::CPU_SETSIZE as usize;
        // SAFETY: every core asked for is below CPU_SETSIZE.
        (status == 0).then(|| cores.filter(|core| unsafe { libc::CPU_ISSET(*core, &set) }).collect())
    }

    /// Returns whether a process may say where it runs: some sandboxes forbid it.
    pub(super) fn may_choose() -> bool {
        allowed().is_some_and(|all| stay_on(&all).is_ok())
    }

    /// Keeps the calling thread, and all it begins, on these cores. Safe to call between fork and
    /// exec.
    #[expect(unsafe_code, reason = "sched_setaffinity only reads the set it is given")]
    pub(in super::super) fn stay_on(cores: &[usize]) -> io::Result<()> {
        // SAFETY: as above.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for core in cores.iter().filter(|core| **core < libc::CPU_SETSIZE as usize) {
            // SAFETY: the core is below CPU_SETSIZE.
            unsafe { libc::CPU_SET(*core, &mut set) };
        }
        // SAFETY: `set` lives through the call and its size is given.
        match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn allowed() -> Option<Vec<usize>> {
        None
    }

    pub(super) fn may_choose() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_busy_with_everything_but_idling() {
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\ncpu1 100 50 50 999 999 10 20 70 5 5\nintr 1\n";
        assert_eq!(busy_seconds_in(stat, 1), Some(3.0));
        assert_eq!(busy_seconds_in(stat, 2), None);
    }

    #[test]
    fn nobody_runs_on_the_shops_core() {
        let cores = Cores::share_out();
        assert!(cores.of_the_shop >= 1);
        if let (Some(shop), Some(others)) = (&cores.shop, &cores.others) {
            assert_eq!(shop.len(), 1);
            assert!(!others.is_empty() && !others.contains(&shop[0]), "{cores:?}");
        }
    }
}

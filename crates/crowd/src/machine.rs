//! What the crowd asks of the machine it runs on: its own CPU time, and enough descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Descriptors beyond one per user: the runtime's, the standard streams, a caller's files.
const DESCRIPTORS_BESIDE: u64 = 64;

/// Returns the CPU time this thread has used so far.
pub(crate) fn thread_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Makes sure that this process may hold `users` connections. Raises the soft limit if needed and
/// possible.
///
/// # Errors
/// Fails with the number of descriptors needed and the number allowed.
pub(crate) fn ensure_descriptors(users: u32) -> Result<(), (u64, u64)> {
    let needed = u64::from(users) + DESCRIPTORS_BESIDE;
    // No limit: any number is allowed.
    let Rlimit { current: Some(current), maximum } = getrlimit(Resource::Nofile) else { return Ok(()) };
    if current >= needed {
        return Ok(());
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum });
    raised.map_err(|_| (needed, maximum.unwrap_or(current)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_in_the_cpu_time() {
        let before = thread_cpu_time();
        let mut sum = 0u64;
        while thread_cpu_time() == before {
            sum = std::hint::black_box(sum.wrapping_mul(31) + 1);
        }
        assert!(thread_cpu_time() > before);
    }

    #[test]
    fn too_many_users_are_told_the_limit() {
        assert_eq!(ensure_descriptors(1), Ok(()));
        let (needed, limit) = ensure_descriptors(u32::MAX).unwrap_err();
        assert!(needed > limit);
    }
}

//! What the crowd asks of the machine it runs on: its own CPU time, and enough descriptors.
//!
//! The two system calls here have no safe wrapper among our dependencies.

use std::time::Duration;

/// Descriptors beyond one a user: the runtime's own, the standard streams, a caller's files.
const DESCRIPTORS_BESIDE: u64 = 64;

/// Returns the CPU time this thread has used so far.
#[expect(unsafe_code, reason = "clock_gettime only writes the struct it is given")]
pub(crate) fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that lives through the call.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if status != 0 {
        return Duration::ZERO;
    }
    let (secs, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(secs.unwrap_or(0), nanos.unwrap_or(0))
}

/// Makes sure that this process may hold `users` connections, raising its own limit where it may.
///
/// # Errors
/// Fails with how many descriptors are needed and how many there can be.
#[expect(unsafe_code, reason = "getrlimit and setrlimit only touch the struct they are given")]
pub(crate) fn ensure_descriptors(users: u32) -> Result<(), (u64, u64)> {
    let needed = u64::from(users) + DESCRIPTORS_BESIDE;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit that lives through the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        // Nothing is known, so nothing is forbidden.
        return Ok(());
    }
    if limit.rlim_cur >= needed {
        return Ok(());
    }
    if limit.rlim_max < needed {
        return Err((needed, limit.rlim_max));
    }
    limit.rlim_cur = needed;
    // SAFETY: as above; the new soft limit is at most the hard one.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } {
        0 => Ok(()),
        _ => Err((needed, limit.rlim_max)),
    }
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

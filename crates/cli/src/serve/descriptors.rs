//! How many connections the process may hold.

/// Descriptors beside those of connections: listeners, files, the operator's connections, the
/// runtime's own.
const SPARE: u64 = 200;
/// Descriptors a client's connection may need: its own and one to the application.
const EACH: u64 = 2;

/// Raises the soft limit of open descriptors to the hard one, and says so if `connections` would
/// still need more.
///
/// The soft limit is often 1,024 for the sake of old programs that use `select`; this one does not,
/// so it takes what it may. There is no safe way to set it in the standard library, hence libc.
#[allow(unsafe_code, reason = "getrlimit and setrlimit have no safe form in the standard library")]
pub(crate) fn raise(connections: usize) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a whole rlimit on this stack, which the call fills in.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return;
    }
    if limit.rlim_cur < limit.rlim_max {
        let wanted = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        // SAFETY: the pointer is to a whole rlimit on this stack, which the call only reads.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const wanted) } == 0 {
            limit = wanted;
        }
    }
    let needed = connections as u64 * EACH + SPARE;
    if needed > limit.rlim_cur {
        tracing::warn!(
            "limits.connections = {connections} may need {needed} descriptors and this process may have {}: raise the hard limit \
             (ulimit -Hn, or LimitNOFILE= in a systemd unit), or lower limits.connections",
            limit.rlim_cur
        );
    }
}

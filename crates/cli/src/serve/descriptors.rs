//! How many connections the process may hold.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors beside those of connections: listeners, files, the operator's connections, the
/// runtime's own.
const SPARE: u64 = 200;
/// Descriptors a client's connection may need: its own and one to the application.
const EACH: u64 = 2;

/// Raises the soft limit of open descriptors to the hard one, and says so if `connections` would
/// still need more.
///
/// The soft limit is often 1,024 for the sake of old programs that use `select`; this one does not,
/// so it takes what it may.
pub(crate) fn raise(connections: usize) {
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let most = if raised.is_ok() { limit.maximum } else { limit.current };
    let needed = connections as u64 * EACH + SPARE;
    // None: there is no limit.
    if let Some(most) = most.filter(|most| needed > *most) {
        tracing::warn!(
            "limits.connections = {connections} may need {needed} descriptors and this process may have {most}: raise the hard limit \
             (ulimit -Hn, or LimitNOFILE= in a systemd unit), or lower limits.connections"
        );
    }
}

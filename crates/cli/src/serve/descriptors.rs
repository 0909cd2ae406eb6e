//! How many connections the process may hold.

/// Descriptors beyond those of connections: listeners, files, connections of the admin listener,
/// the runtime's own.
const SPARE: u64 = 200;
/// Descriptors a client's connection may need: its own and one to the application.
const EACH: u64 = 2;

/// Raises the soft limit of open descriptors to the hard limit, and warns if `connections` need
/// even more.
///
/// The soft limit is often 1,024 for old programs that use `select`. The gateway does not use it,
/// so it takes all it may have. Workers of a pool get the limit of before.
pub(crate) fn raise(connections: usize) {
    let most = suimon_process::raise_descriptors();
    let needed = connections as u64 * EACH + SPARE;
    // None: there is no limit.
    if let Some(most) = most.filter(|most| needed > *most) {
        tracing::warn!(
            "limits.connections = {connections} may need {needed} descriptors and this process may have {most}: raise the hard limit \
             (ulimit -Hn, or LimitNOFILE= in a systemd unit), or lower limits.connections"
        );
    }
}

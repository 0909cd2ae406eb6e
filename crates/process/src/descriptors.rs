//! Limits of descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::sync::OnceLock;

/// The soft limit before it was raised; the inner `None`: there was none.
static AT_START: OnceLock<Option<u64>> = OnceLock::new();

/// Raises this process's soft limit of descriptors to its hard limit, and returns how many it may have
/// then; `None`: there is no limit. The processes that it starts have that limit, too, unless their
/// [`Preparation`](crate::Preparation) says otherwise.
pub fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    AT_START.get_or_init(|| limit.current);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    if raised.is_ok() { limit.maximum } else { limit.current }
}

/// Sets this process's soft limit of descriptors to `count`; its hard limit stays.
///
/// # Errors
/// `count` is above the hard limit.
pub fn allow(count: u32) -> io::Result<()> {
    let limit = Rlimit { current: Some(count.into()), ..getrlimit(Resource::Nofile) };
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Returns the soft limit that this process had before it was raised; `None`: it was not.
pub(crate) fn at_start() -> Option<Option<u64>> {
    AT_START.get().copied()
}

//! Times of day, as the waiting page and its twin show them: in UTC. The page's script turns them
//! into the visitor's own.

use std::time::{Duration, SystemTime};

/// Returns the time `unix` seconds after 1970 began, in the format of RFC 3339:
/// `2025-07-05T14:03:22Z`.
pub(crate) fn rfc3339(unix: u32) -> String {
    humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(unix)))
        .to_string()
}

/// Returns the hour and minute: `14:03 UTC`.
pub(crate) fn clock(unix: u32) -> String {
    format!("{} UTC", &rfc3339(unix)[11..16])
}

/// Returns the day: `2025-07-05`.
pub(crate) fn day(unix: u32) -> String {
    rfc3339(unix)[..10].to_owned()
}

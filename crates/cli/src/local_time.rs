//! The local time of this machine.

use std::time::{Duration, SystemTime};

/// Returns the time at which this machine's local clock shows what a UTC clock shows at `wall`.
pub(crate) fn at(wall: SystemTime) -> Option<SystemTime> {
    let seconds = wall.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    let seconds = libc::time_t::try_from(seconds).ok()?;
    #[allow(unsafe_code, reason = "the standard library knows no time zones")]
    // SAFETY: a `tm` is plain numbers and one pointer that may be null. Both calls access only
    // their arguments and the time zone, which nothing here changes.
    let local = unsafe {
        let mut fields: libc::tm = std::mem::zeroed();
        if libc::gmtime_r(&raw const seconds, &raw mut fields).is_null() {
            return None;
        }
        // -1: the time zone decides whether daylight saving time applies.
        fields.tm_isdst = -1;
        libc::mktime(&raw mut fields)
    };
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(local).ok()?))
}

//! The clock on the wall of this machine.

use std::time::{Duration, SystemTime};

/// Returns the time at which the clock on the wall shows what a clock in UTC shows at `wall`.
pub(crate) fn at(wall: SystemTime) -> Option<SystemTime> {
    let seconds = wall.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    let seconds = libc::time_t::try_from(seconds).ok()?;
    #[allow(unsafe_code, reason = "the standard library knows no time zones")]
    // SAFETY: a `tm` is plain numbers and one pointer that may be null; both calls read and write
    // nothing but the values they are given, and the zone, which nobody here changes.
    let local = unsafe {
        let mut fields: libc::tm = std::mem::zeroed();
        if libc::gmtime_r(&raw const seconds, &raw mut fields).is_null() {
            return None;
        }
        // Whether it is summer then, is for the zone to say.
        fields.tm_isdst = -1;
        libc::mktime(&raw mut fields)
    };
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(local).ok()?))
}

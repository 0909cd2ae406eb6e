//! Users of the system, by name.

use super::Rights;
use std::ffi::{CString, c_char};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// Room for the entry of a user, in bytes.
const ENTRY_BYTES: usize = 64 << 10;
/// The most groups of a user: what Linux allows a process.
const GROUPS_MAX: usize = 65_536;

/// Returns the rights of the user of this name, with all groups, as the system's directories know
/// them; `None`: there is no such user.
///
/// # Errors
/// A directory cannot be asked.
#[expect(unsafe_code, reason = "the standard library knows no users, and a directory may be far away")]
pub fn find(name: &str) -> io::Result<Option<Rights>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    let mut room = vec![0 as c_char; ENTRY_BYTES];
    let (mut entry, mut found) = (MaybeUninit::<libc::passwd>::uninit(), ptr::null_mut());
    // SAFETY: all pointers are of things that live until the call returns, and the length is that of
    // the room.
    let error = unsafe {
        libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), room.as_mut_ptr(), room.len(), &raw mut found)
    };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    if found.is_null() {
        return Ok(None);
    }
    // SAFETY: the call has succeeded and found an entry, so it has filled this one.
    let entry = unsafe { entry.assume_init() };
    let (user, group) = (entry.pw_uid, entry.pw_gid);
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut count = i32::try_from(groups.len()).expect("at most GROUPS_MAX");
        // SAFETY: the name ends in a zero, and `count` is how many the vector has room for.
        let fits = unsafe { libc::getgrouplist(name.as_ptr(), group, groups.as_mut_ptr(), &raw mut count) };
        if fits >= 0 {
            groups.truncate(usize::try_from(count).unwrap_or_default());
            return Ok(Some(Rights { user, group, groups }));
        }
        if groups.len() >= GROUPS_MAX {
            return Err(io::Error::other("the user is in too many groups"));
        }
        groups.resize((2 * groups.len()).min(GROUPS_MAX), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_superuser_is_found_and_a_stranger_is_not() {
        let root = find("root").unwrap().expect("every system has it");
        assert_eq!((root.user, root.group), (0, 0));
        assert!(root.groups.contains(&0));
        assert_eq!(find("no user has this name").unwrap(), None);
        assert_eq!(find("nor\0this").unwrap(), None);
    }
}

//! Descriptors that a process gets from the one that started it, or gives to one that it starts.

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The descriptors that were taken over, so that none is taken twice.
static TAKEN: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

/// Takes over the descriptor of this number, which was open when this process became its program and
/// which nothing else in it uses. Processes that are started do not get it.
///
/// # Errors
/// There is no such descriptor, it is one of the three standard ones, or it was taken over before.
#[expect(unsafe_code, reason = "a descriptor that was inherited is known by its number alone")]
pub fn take_over(number: RawFd) -> io::Result<OwnedFd> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if number <= 2 || taken.contains(&number) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: it is only asked whether it is open; the number is not -1.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = fcntl_getfd(borrowed)?;
    // What this program opens itself is closed in the programs that it starts, and so cannot have been
    // there at its start.
    if flags.contains(FdFlags::CLOEXEC) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    fcntl_setfd(borrowed, flags | FdFlags::CLOEXEC)?;
    taken.push(number);
    // SAFETY: it is open, it was inherited, and it is handed out once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Lets the process that a command starts have these descriptors, under the numbers that they have
/// here. No other process gets them.
#[expect(unsafe_code, reason = "nothing else does something in a process before it becomes its program")]
pub fn hand_down(command: &mut Command, descriptors: Vec<OwnedFd>) {
    let before_exec = move || {
        for descriptor in &descriptors {
            let descriptor = descriptor.as_fd();
            fcntl_setfd(descriptor, fcntl_getfd(descriptor)? - FdFlags::CLOEXEC)?;
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(before_exec) };
}

/// Returns the number that a descriptor has here.
pub fn number_of(descriptor: &impl AsFd) -> RawFd {
    descriptor.as_fd().as_raw_fd()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_this_program_has_opened_is_not_taken_over_nor_what_is_not_there() {
        let own = File::open("/dev/null").unwrap();
        assert!(take_over(own.as_raw_fd()).is_err(), "it has an owner");
        assert!(take_over(1_000_000).is_err());
        for standard in -1..=2 {
            assert!(take_over(standard).is_err());
        }
    }

    #[test]
    fn a_process_has_what_is_handed_down_under_the_same_number_and_no_other_has() {
        let file = File::open("/dev/null").unwrap();
        let number = file.as_raw_fd();
        let looks = || {
            let mut command = Command::new("test");
            command.args(["-e", &format!("/proc/self/fd/{number}")]);
            command
        };
        let mut gets = looks();
        hand_down(&mut gets, vec![file.into()]);
        assert!(gets.status().unwrap().success());
        assert!(!looks().status().unwrap().success());
    }
}

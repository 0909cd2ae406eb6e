//! What is to be done about requests that wait: which call, to be asked what has become of them, and whose results
//! are to be told.
//!
//! A request that waits has no task of its own. Whoever gives a slot back calls for it here, on its own thread, and
//! the thread that hears results asks it: one change of threads instead of two.

use crate::code::Fault;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a server that closes goes without a look whether it is over, if nothing calls.
const LOOK_EVERY: Duration = Duration::from_millis(10);

thread_local! {
    /// What has become due since this thread holds the bell; `None`: it does not.
    static HELD: Cell<Option<u32>> = const { Cell::new(None) };
}

/// See the module. Each request is in it twice at most, so its bound is theirs.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    due: Mutex<AllDue>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct AllDue {
    calls: VecDeque<u64>,
    results: VecDeque<u64>,
    /// Threads that wait for the bell: to ring for nobody takes a system call, too.
    listeners: usize,
    /// Whether the thread that closes listens, too, which wants calls alone.
    is_closing: bool,
    is_closed: bool,
}

/// This thread's hold on the bell: calls ring once it is dropped. They come under the gate's lock, and a thread that
/// is woken there runs against it.
#[derive(Debug)]
pub(crate) struct HeldBell<'a>(&'a Queue);

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    /// This request is to be asked.
    Call(u64),
    /// The result of this one is to be told.
    Result(u64),
}

impl Queue {
    /// Takes note that a request wants to be asked.
    pub(crate) fn call(&self, number: u64) {
        let mut due = self.lock();
        due.calls.push_back(number);
        match HELD.get() {
            Some(held) => HELD.set(Some(held + 1)),
            None => self.ring(&due),
        }
    }

    /// Takes note that the result of a request is there.
    pub(crate) fn decided(&self, number: u64) {
        let mut due = self.lock();
        due.results.push_back(number);
        self.ring(&due);
    }

    /// Holds the bell while this thread does what may make requests call.
    pub(crate) fn hold_bell(&self) -> HeldBell<'_> {
        HELD.set(Some(0));
        HeldBell(self)
    }

    fn ring(&self, due: &AllDue) {
        match due.listeners {
            0 => {}
            _ if due.is_closing => self.bell.notify_all(),
            _ => self.bell.notify_one(),
        }
    }

    /// Waits until something is due, or some time has passed.
    fn listen<'a>(&self, mut due: MutexGuard<'a, AllDue>, time: Duration) -> MutexGuard<'a, AllDue> {
        due.listeners += 1;
        (due, _) = self.bell.wait_timeout(due, time).unwrap_or_else(PoisonError::into_inner);
        due.listeners -= 1;
        due
    }

    /// Waits for what is to be done; `None`: nothing was by then.
    pub(crate) fn next_until(&self, until: Instant) -> Result<Option<Due>, Fault> {
        let mut due = self.lock();
        loop {
            if due.is_closed {
                return Err(Fault::Closed);
            }
            if let Some(number) = due.results.pop_front() {
                return Ok(Some(Due::Result(number)));
            }
            if let Some(number) = due.calls.pop_front() {
                return Ok(Some(Due::Call(number)));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            due = self.listen(due, left);
        }
    }

    /// Waits for a call while the server closes; `None`: it is over.
    pub(crate) fn call_until(&self, is_over: impl Fn() -> bool) -> Option<u64> {
        let mut due = self.lock();
        due.is_closing = true;
        loop {
            if let Some(number) = due.calls.pop_front() {
                return Some(number);
            }
            if is_over() {
                return None;
            }
            due = self.listen(due, LOOK_EVERY);
        }
    }

    /// Lets go of what is to be done about a request.
    pub(crate) fn forget(&self, number: u64) {
        let mut due = self.lock();
        due.calls.retain(|called| *called != number);
        due.results.retain(|ready| *ready != number);
    }

    /// Lets go of all, from now on.
    pub(crate) fn close(&self) {
        let mut due = self.lock();
        *due = AllDue { is_closed: true, listeners: due.listeners, ..AllDue::default() };
        drop(due);
        self.bell.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, AllDue> {
        // What is inside is whole after each statement.
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldBell<'_> {
    /// Takes note that this thread has done one of the things itself.
    pub(crate) fn spare_one(&self) {
        HELD.set(HELD.get().map(|held| held.saturating_sub(1)));
    }
}

impl Drop for HeldBell<'_> {
    fn drop(&mut self) {
        for _ in 0..HELD.take().unwrap_or_default() {
            self.0.ring(&self.0.lock());
        }
    }
}

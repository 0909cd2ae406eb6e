//! The idle HTTP/1.1 connections of one node: last in, first out, so that few are used often and
//! the others age until they are closed.

use super::http1::Http1;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Idle connections, the longest idle one first.
pub(super) struct IdlePool {
    idle: Mutex<VecDeque<Box<Http1>>>,
    max: usize,
    age: Duration,
}

impl IdlePool {
    /// Returns a pool that keeps at most `max` connections, each no longer than `age` or the node's
    /// own keep-alive.
    pub(super) fn new(max: usize, age: Duration) -> Self {
        IdlePool { idle: Mutex::new(VecDeque::new()), max, age }
    }

    /// Returns the connection that was used last, if it is open and not too old. Closes dead ones
    /// that it meets.
    pub(super) fn take(&self) -> Option<Box<Http1>> {
        loop {
            let mut connection = self.lock().pop_back()?;
            if !connection.is_stale(self.age) && connection.is_open() {
                return Some(connection);
            }
        }
    }

    /// Takes back a reusable connection. If the pool is full, the longest idle one is closed.
    pub(super) fn put(&self, mut connection: Box<Http1>) {
        connection.note_idle();
        let surplus = {
            let mut idle = self.lock();
            idle.push_back(connection);
            if idle.len() > self.max { idle.pop_front() } else { None }
        };
        // Closing a socket is a system call; not under the lock.
        drop(surplus);
    }

    /// Returns how many connections there are.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Closes connections that are too old or that the node has closed. Takes the lock for one
    /// connection at a time.
    pub(super) fn sweep(&self) {
        let mut next = 0;
        loop {
            let mut idle = self.lock();
            let Some(connection) = idle.get_mut(next) else { return };
            if !connection.is_stale(self.age) && connection.is_open() {
                next += 1;
                continue;
            }
            let dead = idle.remove(next);
            drop(idle);
            drop(dead);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Box<Http1>>> {
        // A panic under the lock leaves one connection fewer at most.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

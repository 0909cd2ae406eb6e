//! Paths that look like static assets but are pages: some applications answer such paths, too, and
//! each answer costs as much as a page.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The most paths remembered; a newer one replaces an older one.
const PAGES_MAX: usize = 1024;

/// Hashes of paths.
#[derive(Debug)]
pub(super) struct Pages {
    /// Indexed by the hash; 0: empty.
    slots: Box<[AtomicU64]>,
    /// Slots that were ever taken; 0 on most sites.
    taken: AtomicUsize,
}

impl Pages {
    pub(super) fn new() -> Self {
        Pages {
            slots: std::iter::repeat_with(AtomicU64::default).take(PAGES_MAX).collect(),
            taken: AtomicUsize::new(0),
        }
    }

    /// Returns whether no page was ever noted.
    pub(super) fn is_empty(&self) -> bool {
        self.taken.load(Relaxed) == 0
    }

    pub(super) fn has(&self, path: u64) -> bool {
        self.slot(path).load(Relaxed) == path
    }

    pub(super) fn add(&self, path: u64) {
        if self.slot(path).swap(path, Relaxed) == 0 {
            self.taken.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn remove(&self, path: u64) {
        // A freed slot holds 1, which is no longer 0, so `taken` counts it only once.
        let _ = self.slot(path).compare_exchange(path, 1, Relaxed, Relaxed);
    }

    fn slot(&self, path: u64) -> &AtomicU64 {
        &self.slots[path as usize % PAGES_MAX]
    }
}

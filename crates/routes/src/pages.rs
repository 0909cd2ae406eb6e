//! Paths that look like static assets and are pages: applications answer those, too, and each takes
//! the work of one.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Paths remembered; a newer one takes the place of an older one.
const PAGES_MAX: usize = 1024;

/// Hashes of paths.
#[derive(Debug)]
pub(super) struct Pages {
    /// By the hash; 0: none.
    slots: Box<[AtomicU64]>,
    /// Slots that were ever taken: most sites have none.
    taken: AtomicUsize,
}

impl Pages {
    pub(super) fn new() -> Self {
        Pages {
            slots: std::iter::repeat_with(AtomicU64::default).take(PAGES_MAX).collect(),
            taken: AtomicUsize::new(0),
        }
    }

    /// Returns whether none was ever there.
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
        // A slot that is free again still counts as one that was taken.
        let _ = self.slot(path).compare_exchange(path, 1, Relaxed, Relaxed);
    }

    fn slot(&self, path: u64) -> &AtomicU64 {
        &self.slots[path as usize % PAGES_MAX]
    }
}

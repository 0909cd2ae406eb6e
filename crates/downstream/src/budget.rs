//! How much memory bodies may take while clients are waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes held for clients: of requests that wait, and of answers for slow ones.
#[derive(Debug)]
pub struct Budget {
    held: AtomicUsize,
    max: usize,
}

impl Budget {
    /// Returns the budget of `max` bytes.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Budget { held: AtomicUsize::new(0), max })
    }

    /// Returns the bytes held now.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// Returns whether the maximum is held.
    pub fn is_used_up(&self) -> bool {
        self.held() >= self.max
    }

    /// Counts bytes that are held from now on.
    pub fn hold(&self, bytes: usize) {
        self.held.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes that are held no longer.
    pub fn release(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Relaxed);
    }
}

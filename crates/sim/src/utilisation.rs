//! How busy the processors are, passed from the code that measures it to the code that uses it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The share of the processors' time in recent use, 0 to 1. All clones share one number.
///
/// The host must set it at least as often as the gate ticks, to the mean since the last time.
#[derive(Clone, Debug, Default)]
pub struct Utilisation {
    /// The bits of an `f64`; those of zero are zero.
    bits: Arc<AtomicU64>,
}

impl Utilisation {
    /// Sets the share.
    pub fn set(&self, share: f64) {
        self.bits.store(share.to_bits(), Ordering::Relaxed);
    }

    /// Returns the share that was set last; 0 before.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.bits.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_show_what_any_of_them_was_set_to() {
        let (mine, yours) = (Utilisation::default(), Utilisation::default());
        let copy = mine.clone();
        assert!(copy.get().abs() < 1e-12);
        mine.set(0.75);
        assert!((copy.get() - 0.75).abs() < 1e-12 && yours.get().abs() < 1e-12);
    }
}

//! A bounded map that keeps entries in use.
//!
//! Two generations: when the young one is full it becomes the old one, and the old one is
//! forgotten. Entries that are looked up move back into the young one.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// The map.
#[derive(Debug)]
pub(crate) struct Generations<K, V, S> {
    young: HashMap<K, V, S>,
    old: HashMap<K, V, S>,
    /// Entries of one generation.
    max: usize,
}

impl<K: Eq + Hash + Copy, V, S: BuildHasher + Default> Generations<K, V, S> {
    /// Returns the map of at most `max` entries, two at least, with nothing in it.
    pub(crate) fn new(max: usize) -> Self {
        Generations { young: HashMap::default(), old: HashMap::default(), max: (max / 2).max(1) }
    }

    /// Returns what is kept under `key`, to be changed.
    pub(crate) fn find_mut(&mut self, key: K) -> Option<&mut V> {
        if !self.young.contains_key(&key) {
            if self.old.is_empty() {
                return None;
            }
            let value = self.old.remove(&key)?;
            self.insert(key, value);
        }
        self.young.get_mut(&key)
    }

    /// Keeps `value` under `key`.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.max && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    /// Forgets what is kept under `key`, and returns it.
    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let old = self.old.remove(&key);
        self.young.remove(&key).or(old)
    }

    /// Returns whether nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }
}

impl<K: Eq + Hash + Copy, V: Copy, S: BuildHasher + Default> Generations<K, V, S> {
    /// Returns what is kept under `key`.
    pub(crate) fn find(&mut self, key: K) -> Option<V> {
        self.find_mut(key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::RandomState;

    #[test]
    fn it_is_bounded_and_what_is_in_use_stays() {
        let mut map: Generations<u32, u32, RandomState> = Generations::new(100);
        for n in 0..1000 {
            map.insert(n, n);
            assert_eq!(map.find(0), Some(0), "in use all the time");
        }
        assert!(map.young.len() + map.old.len() <= 100);
        assert_eq!(map.find(1), None);
        map.remove(0);
        assert_eq!(map.find(0), None);
    }
}

//! The pool of parsed shelves, which makes too many searches at once expensive.
//!
//! A search works on its own parsed copy of each shelf (a visitor's shelf carries the visitor's
//! prices). The copies of all searches share one pool with a fixed number of places, as pages share
//! a database's buffer pool. With a few searches at once everything stays parsed. With more, each
//! search takes places from the others: when it returns to a shelf, the shelf is gone, so it parses
//! it again and evicts another one. That work is real, and all of it is waste.
//!
//! Popular shelves are looked at far more often than the rest (see `search`), so the loss grows
//! gradually with the number of searches, not all at once.
//!
//! Measured with `examples/knee` at scale 4 on one core, searches per second of CPU as a share of
//! one search at a time: 2 at once 90 %, 4 77 %, 8 43 %, 16 27 %, 32 26 %, 64 24 %. (A noisy
//! machine. Up to 5 at once nothing is parsed twice; the loss there has another cause, probably the
//! processor's caches.)

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::document::Element;

/// The places and their contents. When a place is needed, the least recently used shelf is evicted.
pub(crate) struct Pool {
    places: usize,
    next_search: AtomicU64,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    kept: HashMap<Key, Kept>,
    looks: u64,
}

/// Which search, and which of its shelves.
type Key = (u64, usize);

struct Kept {
    shelf: Arc<Element>,
    looked_at: u64,
}

impl Pool {
    /// Returns an empty pool of `places` places; at least one.
    pub(crate) fn new(places: usize) -> Self {
        Pool { places, next_search: AtomicU64::new(0), inside: Mutex::default() }
    }

    /// Returns a new search's handle to the pool. Dropping it removes the search's shelves.
    pub(crate) fn open(&self) -> Holding<'_> {
        Holding { pool: self, search: self.next_search.fetch_add(1, Ordering::Relaxed) }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inside) -> T) -> T {
        // No update can be left half done, so a panic in another request does not stop this one.
        work(&mut self.inside.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One search's handle to the pool.
pub(crate) struct Holding<'a> {
    pool: &'a Pool,
    search: u64,
}

impl Holding<'_> {
    /// Returns the shelf: the one in the pool, or a new one from `parse`, which runs without the
    /// lock.
    pub(crate) fn shelf(&self, shelf: usize, parse: impl FnOnce() -> Element) -> Arc<Element> {
        let key = (self.search, shelf);
        let kept = self.pool.with(|inside| {
            inside.looks += 1;
            let looks = inside.looks;
            inside.kept.get_mut(&key).map(|kept| {
                kept.looked_at = looks;
                Arc::clone(&kept.shelf)
            })
        });
        if let Some(kept) = kept {
            return kept;
        }
        let parsed = Arc::new(parse());
        // Freed after the lock is released, because freeing a tree takes long.
        let _evicted = self.pool.with(|inside| {
            let evicted = if inside.kept.len() < self.pool.places { None } else { inside.evict() };
            let looked_at = inside.looks;
            inside.kept.insert(key, Kept { shelf: Arc::clone(&parsed), looked_at });
            evicted
        });
        parsed
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        let _freed: Vec<Kept> = self.pool.with(|inside| {
            let mine: Vec<Key> =
                inside.kept.keys().filter(|(search, _)| *search == self.search).copied().collect();
            mine.iter().filter_map(|key| inside.kept.remove(key)).collect()
        });
    }
}

impl Inside {
    fn evict(&mut self) -> Option<Kept> {
        // Scanning a few hundred places costs little compared with the parse that needs one.
        let (key, _) = self.kept.iter().min_by_key(|(key, kept)| (kept.looked_at, **key))?;
        let key = *key;
        self.kept.remove(&key)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Looks at shelves `0..shelves` in turn and returns how many had to be parsed.
    fn parsed(holding: &Holding<'_>, shelves: usize) -> usize {
        let parsed = Cell::new(0);
        for shelf in 0..shelves {
            holding.shelf(shelf, || {
                parsed.set(parsed.get() + 1);
                Element::default()
            });
        }
        parsed.get()
    }

    #[test]
    fn what_fits_is_parsed_once() {
        let pool = Pool::new(10);
        let (one, other) = (pool.open(), pool.open());
        assert_eq!((parsed(&one, 5), parsed(&other, 5)), (5, 5), "nobody shares another's shelves");
        assert_eq!((parsed(&one, 5), parsed(&other, 5)), (0, 0));
    }

    #[test]
    fn searches_that_do_not_fit_put_each_other_out() {
        let pool = Pool::new(8);
        let (one, other) = (pool.open(), pool.open());
        parsed(&one, 5);
        parsed(&other, 5);
        assert_eq!(parsed(&one, 5), 5, "going round in turn, each finds its next one gone");
    }

    #[test]
    fn a_search_that_ends_gives_its_places_back() {
        let pool = Pool::new(5);
        let one = pool.open();
        parsed(&one, 3);
        parsed(&pool.open(), 2);
        assert_eq!(parsed(&pool.open(), 2), 2);
        assert_eq!(parsed(&one, 3), 0, "nothing of it was put out, for there was room");
    }
}

//! The heavy page's work.
//!
//! A search first parses and walks the whole catalogue for the word. Then it looks for goods like
//! the best match: it repeatedly takes two of that item's words and walks a shelf for them, popular
//! shelves far more often than others. The number of these lookups sets the page's cost. Each finds
//! its shelf in the pool or parses it again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use suimon_model::Rng;

use crate::catalogue::{Catalogue, SHELVES};
use crate::document::{Element, parse};
use crate::pool::{Holding, Pool};

/// Matches shown.
const MATCHES: usize = 10;
/// A shelf is drawn as `SHELVES * uniform^POPULARITY`: half of all lookups go to the first three
/// shelves.
const POPULARITY: i32 = 3;
/// Words of the best match that a lookup counts on its shelf. With fewer words a lookup is cheaper
/// compared with the parse it may need, so the collapse is deeper.
const WORDS_A_LOOK: usize = 2;
/// Longest word searched for, in bytes; the rest of a longer one is ignored.
const WORD_BYTES_MAX: usize = 100;

/// One item found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Match {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) price: String,
    pub(crate) matches: usize,
    description: String,
}

/// The result of a search.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    /// Best first; never empty: if too few items have the word, items without it.
    pub(crate) matches: Vec<Match>,
    /// How often the lookups found a word of the best match.
    pub(crate) alike: usize,
}

/// Searches the catalogue; all searches share one pool.
pub(crate) struct Search {
    catalogue: Arc<Catalogue>,
    pool: Pool,
}

impl Search {
    pub(crate) fn new(catalogue: Arc<Catalogue>, pool_shelves: usize) -> Self {
        Search { catalogue, pool: Pool::new(pool_shelves) }
    }

    /// Returns what is found for the word in one walk over all shelves and `repeats` lookups on
    /// single shelves.
    pub(crate) fn find(&self, word: &str, repeats: u32) -> Found {
        let word: String = word.to_lowercase().chars().take(WORD_BYTES_MAX).collect();
        let holding = self.pool.open();
        let mut matches = Vec::new();
        for shelf in 0..SHELVES {
            keep_best(&mut matches, &self.shelf(&holding, shelf), &word);
        }
        let likings: Vec<String> = matches
            .first()
            .map(|best: &Match| best.description.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default();
        let mut random = Rng::new(hash(&word));
        let mut alike = 0;
        for _ in 0..repeats {
            let shelf = (SHELVES as f64 * random.uniform().powi(POPULARITY)) as usize;
            let shelf = self.shelf(&holding, shelf.min(SHELVES - 1));
            for _ in 0..WORDS_A_LOOK {
                alike += shelf.occurrences(&likings[random.below(likings.len())]);
            }
        }
        Found { matches, alike }
    }

    fn shelf(&self, holding: &Holding<'_>, shelf: usize) -> Arc<Element> {
        holding.shelf(shelf, || parse(self.catalogue.shelf(shelf)).expect("our own catalogue is well-formed"))
    }
}

fn keep_best(best: &mut Vec<Match>, shelf: &Element, word: &str) {
    for item in shelf.elements() {
        let matches = item.occurrences(word);
        if best.len() == MATCHES && best[MATCHES - 1].matches >= matches {
            continue;
        }
        let place = best.partition_point(|kept| kept.matches >= matches);
        best.insert(place, found(item, matches));
        best.truncate(MATCHES);
    }
}

fn found(item: &Element, matches: usize) -> Match {
    let text = |name| item.text_of(name).unwrap_or_default().to_owned();
    Match {
        id: item.attribute("id").unwrap_or_default().to_owned(),
        name: text("name"),
        price: text("price"),
        matches,
        description: text("description"),
    }
}

fn hash(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(pool_shelves: usize) -> Search {
        Search::new(Arc::new(Catalogue::generate(1, 60_000)), pool_shelves)
    }

    #[test]
    fn matches_come_best_first_and_are_the_same_again() {
        let search = search(SHELVES);
        let found = search.find("Lantern", 50);
        assert_eq!(found.matches.len(), MATCHES);
        assert!(found.matches[0].matches >= 1);
        assert!(found.matches.is_sorted_by(|a, b| a.matches >= b.matches));
        assert_eq!(found, search.find("lantern", 50));
    }

    #[test]
    fn a_pool_too_small_costs_time_but_changes_nothing() {
        assert_eq!(search(SHELVES).find("silk", 100), search(2).find("silk", 100));
    }

    #[test]
    fn a_word_nobody_sells_still_offers_something() {
        let found = search(SHELVES).find("zeppelin", 1);
        assert_eq!((found.matches.len(), found.matches[0].matches), (MATCHES, 0));
    }
}

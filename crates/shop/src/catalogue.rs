//! The shop's goods: XML, shelf by shelf, made from a seed. The same seed and size give the same
//! bytes everywhere.

use std::fmt::Write;

use suimon_model::Rng;

/// Number of XML documents in the catalogue, one per shelf.
pub(crate) const SHELVES: usize = 26;
/// Items listed on one catalogue page.
pub(crate) const ITEMS_A_PAGE: usize = 20;
/// Catalogue pages that can be browsed.
pub(crate) const PAGES: usize = 3;

/// One thing for sale, as the light pages show it.
pub(crate) struct Item {
    pub(crate) id: usize,
    pub(crate) name: String,
    pub(crate) price: String,
}

/// All goods.
pub(crate) struct Catalogue {
    shelves: Vec<String>,
    shown: Vec<Item>,
}

impl Catalogue {
    /// Returns a catalogue of `bytes` bytes of XML, within one item per shelf.
    pub(crate) fn generate(seed: u64, bytes: usize) -> Self {
        let mut random = Rng::new(seed);
        let (mut shelves, mut shown) = (Vec::with_capacity(SHELVES), Vec::new());
        let mut id = 0;
        for shelf in 0..SHELVES {
            let mut xml = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<shelf id=\"{shelf}\">\n");
            while xml.len() < bytes / SHELVES || (shelf == 0 && shown.len() < PAGES * ITEMS_A_PAGE) {
                id += 1;
                let name = words(&mut random, 3);
                let price = format!("{}.{:02}", 1 + random.below(499), random.below(100));
                append_item(&mut xml, id, &name, &price, &mut random);
                if shown.len() < PAGES * ITEMS_A_PAGE {
                    shown.push(Item { id, name, price });
                }
            }
            xml.push_str("</shelf>\n");
            shelves.push(xml);
        }
        Catalogue { shelves, shown }
    }

    /// Returns the document of shelf `shelf`, which must be below [`SHELVES`].
    pub(crate) fn shelf(&self, shelf: usize) -> &str {
        &self.shelves[shelf]
    }

    /// Returns the items of catalogue page `page`, from 1 to [`PAGES`].
    pub(crate) fn page(&self, page: usize) -> &[Item] {
        &self.shown[(page - 1) * ITEMS_A_PAGE..page * ITEMS_A_PAGE]
    }
}

fn append_item(xml: &mut String, id: usize, name: &str, price: &str, random: &mut Rng) {
    let stock = 1 + random.below(99);
    let (maker, description) = (words(random, 2), words(random, 24));
    let written = write!(
        xml,
        "<item id=\"{id}\" stock=\"{stock}\"><name>{name}</name><price currency=\"EUR\">{price}</price>\
         <maker>{maker}</maker><description>{description}</description>"
    );
    written.expect("writing to a String cannot fail");
    for _ in 0..4 {
        xml.push_str("<tag>");
        xml.push_str(WORDS[random.below(WORDS.len())]);
        xml.push_str("</tag>");
    }
    xml.push_str("</item>\n");
}

fn words(random: &mut Rng, count: usize) -> String {
    let chosen: Vec<&str> = (0..count).map(|_| WORDS[random.below(WORDS.len())]).collect();
    chosen.join(" ")
}

const WORDS: &[&str] = &[
    "amber",
    "anchor",
    "apple",
    "arrow",
    "autumn",
    "bamboo",
    "basket",
    "bell",
    "birch",
    "blanket",
    "blossom",
    "boat",
    "bottle",
    "bowl",
    "brass",
    "bridge",
    "bronze",
    "brush",
    "candle",
    "canvas",
    "cedar",
    "ceramic",
    "charm",
    "cherry",
    "clay",
    "cloud",
    "coat",
    "copper",
    "coral",
    "cotton",
    "crane",
    "crystal",
    "cup",
    "curtain",
    "dawn",
    "desk",
    "drum",
    "ember",
    "fan",
    "feather",
    "fern",
    "flute",
    "forest",
    "frame",
    "frost",
    "garden",
    "glass",
    "gold",
    "harbour",
    "hat",
    "hinge",
    "ivory",
    "jade",
    "jar",
    "kettle",
    "kite",
    "ladder",
    "lake",
    "lamp",
    "lantern",
    "leaf",
    "leather",
    "lemon",
    "linen",
    "lotus",
    "maple",
    "marble",
    "mask",
    "mat",
    "mirror",
    "moon",
    "moss",
    "mountain",
    "needle",
    "oak",
    "olive",
    "orchid",
    "paper",
    "pearl",
    "pebble",
    "pine",
    "plate",
    "plum",
    "pocket",
    "porcelain",
    "quilt",
    "rain",
    "ribbon",
    "rice",
    "river",
    "robe",
    "rope",
    "rose",
    "saddle",
    "salt",
    "sand",
    "satin",
    "screen",
    "shell",
    "silk",
    "silver",
    "snow",
    "spoon",
    "spring",
    "stone",
    "summer",
    "table",
    "tea",
    "thread",
    "tile",
    "tray",
    "umbrella",
    "vase",
    "velvet",
    "walnut",
    "water",
    "wave",
    "willow",
    "winter",
    "wood",
    "wool",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_catalogue_of_about_the_size_asked_for() {
        let (one, again, other) = (
            Catalogue::generate(7, 650 * 1024),
            Catalogue::generate(7, 650 * 1024),
            Catalogue::generate(8, 650 * 1024),
        );
        assert_eq!(one.shelves, again.shelves);
        assert_ne!(one.shelves, other.shelves);
        let bytes: usize = one.shelves.iter().map(String::len).sum();
        assert!((650 * 1024..690 * 1024).contains(&bytes), "{bytes} bytes");
    }

    #[test]
    fn even_the_smallest_catalogue_fills_the_pages_that_are_browsed() {
        let small = Catalogue::generate(1, 20_000);
        assert!((1..=PAGES).all(|page| small.page(page).len() == ITEMS_A_PAGE));
    }
}

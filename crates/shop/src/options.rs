//! The shop's options.

use std::io;

/// How the shop listens and what its pages cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// Divides the CPU cost of every page, from 0.01 to 1000. At 1 a light page costs about 30 ms,
    /// a search 400 ms.
    pub scale: f64,
    /// Most connections at once, each with a thread; further ones wait in the kernel. At least 1.
    pub threads_max: usize,
    /// Renderings of a light page; `None` measures this machine at start.
    pub light_work: Option<u32>,
    /// Shelf lookups of a search after its first walk over all shelves; `None` measures this
    /// machine at start.
    pub search_repeats: Option<u32>,
    /// Approximate size of the catalogue's XML, bytes; from 20,000 to 100,000,000.
    pub catalogue_bytes: usize,
    /// Parsed shelves the pool holds, all searches together; a search uses 26. At least 1.
    pub pool_shelves: usize,
    /// Seed of the catalogue's contents.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            port: 8080,
            scale: 1.0,
            threads_max: 2000,
            light_work: None,
            search_repeats: None,
            catalogue_bytes: 650 * 1024,
            pool_shelves: 5 * crate::catalogue::SHELVES,
            seed: 1,
        }
    }
}

impl Options {
    /// Returns an error of kind `InvalidInput` naming the first value that is out of range.
    pub(crate) fn check(&self) -> io::Result<()> {
        let fault = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if !(0.01..=1000.0).contains(&self.scale) {
            return fault(format!("scale = {}: must be from 0.01 to 1000", self.scale));
        }
        if self.threads_max == 0 {
            return fault("threads_max = 0: must be at least 1".to_owned());
        }
        if self.light_work == Some(0) || self.search_repeats == Some(0) {
            return fault(
                "light_work and search_repeats must be at least 1; leave them out to measure".to_owned(),
            );
        }
        if !(20_000..=100_000_000).contains(&self.catalogue_bytes) {
            return fault(format!(
                "catalogue_bytes = {}: must be from 20000 to 100000000",
                self.catalogue_bytes
            ));
        }
        if self.pool_shelves == 0 {
            return fault("pool_shelves = 0: must be at least 1".to_owned());
        }
        Ok(())
    }
}

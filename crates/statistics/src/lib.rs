//! What many numbers come to, and how they stand under each other; the same for the crowd, the
//! simulator, the command's reports and the experiments.
//!
//! - [`Histogram`]: durations in fine logarithmic buckets, recorded one by one.
//! - [`Buckets`]: counts up to given bounds, as a gateway's metrics have them.
//! - [`quantile`], [`median`], [`mean`], [`MeanAndRange`]: of values that are all at hand, exactly.
//! - [`table`]: rows of text as aligned columns.
//!
//! Why no crate of others: `hdrhistogram` has other bucket edges, which would move every simulated
//! percentile, and brings two crates more for the hundred lines of [`Histogram`]; `quantiles`
//! estimates from streams too long to keep, and everything here is either kept or bucketed.

mod buckets;
mod histogram;
pub mod table;
mod values;

pub use buckets::Buckets;
pub use histogram::{Bin, Histogram};
pub use values::{MeanAndRange, mean, median, quantile};

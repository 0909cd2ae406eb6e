//! Summaries of many values, and aligned tables; shared by the crowd, the simulator, the command's
//! reports and the experiments.
//!
//! - [`Histogram`]: durations in fine logarithmic buckets, recorded one by one.
//! - [`Buckets`]: counts up to given bounds, as a gateway's metrics have them.
//! - [`quantile`], [`median`], [`mean`], [`MeanAndRange`]: exact, of values that are all in memory.
//! - [`table`]: rows of text as aligned columns.
//!
//! Why no external crate: `hdrhistogram` has other bucket edges, which would move every simulated
//! percentile, and brings two more crates to replace the hundred lines of [`Histogram`].
//! `quantiles` estimates from streams too long to keep, and everything here is either kept or
//! bucketed.

mod buckets;
mod histogram;
pub mod table;
mod values;

pub use buckets::Buckets;
pub use histogram::{Bin, Histogram};
pub use values::{MeanAndRange, mean, median, quantile};

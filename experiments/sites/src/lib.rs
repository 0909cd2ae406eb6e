//! Sites drawn from a number: scenarios that nobody designed, to test laws on sites for which they
//! were not tuned.
//!
//! - [`generate`]: sites of similar kinds, on which laws were tuned.
//! - [`world`]: sites of every kind, with demand below, around and above their capacity;
//!   [`SiteName`] names one.
//!
//! The same number gives the same site, on every machine.

mod draw;
mod generate;
mod world;

pub use generate::generate;
pub use world::{Family, HELD_OUT_FROM, Regime, SiteName, world};

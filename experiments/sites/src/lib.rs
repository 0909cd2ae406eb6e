//! Sites drawn from a number: scenarios nobody thought of, to see what laws are worth where they
//! were not tuned.
//!
//! - [`generate`]: sites much alike, on which laws were tuned.
//! - [`world`]: sites of every kind there is, below, around and above what they can do;
//!   [`SiteName`] names one.
//!
//! The same number gives the same site, on every machine.

mod draw;
mod generate;
mod world;

pub use generate::generate;
pub use world::{Family, HELD_OUT_FROM, Regime, SiteName, world};

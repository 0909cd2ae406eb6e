//! HTTP in and out: listeners, pipeline, upstream pool, refusals.

pub mod params;
pub mod upstream;

//! What the tests of several crates begin with. Nothing but tests knows it.

pub mod engine;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::fs;
use std::path::Path;

/// Returns the inputs of the fuzz target `name`: at least one.
///
/// # Panics
/// Where there is none, or it cannot be read.
pub fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let read = |file: std::io::Result<fs::DirEntry>| fs::read(file?.path());
    let inputs: std::io::Result<Vec<_>> = files.map(read).collect();
    let inputs = inputs.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    assert!(!inputs.is_empty(), "{}: has nothing", folder.display());
    inputs
}

/// Returns a head in which `name` stands once for each of `lines`.
///
/// # Panics
/// Where a line is no value of a header.
pub fn headers(name: &HeaderName, lines: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(name, HeaderValue::from_str(line).expect("visible ASCII"));
    }
    headers
}

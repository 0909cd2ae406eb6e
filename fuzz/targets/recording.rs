//! Recordings.
#![no_main]

use suimon_record::{Part, Segment};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(segment) = Segment::read(bytes) else { return };
    for part in segment.parts() {
        let Ok(Part::Block(block)) = part else { continue };
        // Each event takes a byte at the least, and what is wrong is said once.
        assert!(block.events().count() <= bytes.len() + 1);
    }
});

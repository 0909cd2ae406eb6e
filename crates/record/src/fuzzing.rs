//! What must hold for any bytes that are read as a recording. `fuzz/` feeds it, and the test here
//! replays what the fuzzer has found.

use crate::{BLOCK_BYTES_MAX, Block, Damage, Encoder, Event, Header, Part, Segment, SegmentEnd, block};
use std::sync::LazyLock;
use suimon_gate::{Gate, Params};
use suimon_model::{Instant, TraceHash};

/// Bytes are either a recording or are refused with the place of the damage. The same holds for
/// these bytes with this program's version and right checksums, which a fuzzer does not find by
/// itself, and for these bytes as a block of events.
pub fn recording(bytes: &[u8]) {
    read(bytes);
    read(&sealed(bytes));
    if bytes.len() <= BLOCK_BYTES_MAX {
        read(&[BEGINNING.as_slice(), &crate::events(bytes), &crate::end(SegmentEnd::Closed)].concat());
    }
}

static BEGINNING: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let gate = Gate::new(Params::default(), Instant::ORIGIN);
    crate::begin(&Header::default(), &gate.save().expect("it holds nothing yet"))
});

fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    block::seal(&mut bytes);
    bytes
}

fn read(bytes: &[u8]) {
    let is_inside = |damage: Damage| assert!(damage.at <= bytes.len(), "{damage:?}");
    let segment = match Segment::read(bytes) {
        Ok(segment) => segment,
        Err(damage) => return is_inside(damage),
    };
    // A replay reports what is refused here.
    let _ = Gate::restore(segment.header.params.clone(), &segment.snapshot);
    for part in segment.parts() {
        match part {
            Ok(Part::Block(block)) => events(&block, bytes.len()).unwrap_or_else(is_inside),
            Ok(Part::End(_)) => {}
            Err(damage) => is_inside(damage),
        }
    }
}

/// There are no more events than bytes, and an event that is read and written again says the same.
fn events(block: &Block<'_>, bytes: usize) -> Result<(), Damage> {
    // Damage is reported once, as the last item.
    let all: Vec<_> = block.events().take(bytes + 2).collect();
    assert!(all.len() <= bytes + 1, "{} events", all.len());
    let all: Vec<(Instant, Event)> = all.into_iter().collect::<Result<_, _>>()?;
    let mut encoder = Encoder::default();
    all.iter().for_each(|(at, event)| encoder.push(*at, event));
    let content = encoder.seal(TraceHash::default(), Vec::new());
    let again: Vec<_> = Block::read(0, &content)?.events().collect::<Result<_, _>>()?;
    assert_eq!(format!("{again:?}"), format!("{all:?}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_testing::corpus;

    #[test]
    fn what_a_fuzzer_has_found_still_holds() {
        let corpus = corpus("recording");
        corpus.iter().for_each(|bytes| recording(bytes));
        let is_read = |bytes: &Vec<u8>| Segment::read(&sealed(bytes)).is_ok();
        assert!(corpus.iter().any(is_read), "it has none to begin with; `suimon serve --record` makes one");
    }
}

//! Writing: events into blocks, blocks into a segment.

use crate::answers::Answers;
use crate::block::{BLOCK_BYTES_MAX, BlockKind, MAGIC, frame};
use crate::damage::VERSION;
use crate::event::Event;
use crate::segment::{Header, SegmentEnd};
use suimon_gate::Output;
use suimon_model::persist::Writer;
use suimon_model::{Instant, TraceHash};

/// A block with this much in it is full. The most that one call of the gate can add still fits into
/// [`BLOCK_BYTES_MAX`].
pub const BLOCK_FULL: usize = 60 << 10;

/// Packs events into the contents of blocks.
#[derive(Debug, Default)]
pub struct Encoder {
    out: Writer,
    last: u64,
    events: u32,
    answers: Answers,
}

impl Encoder {
    /// Adds one event. The caller also tells the gate of it.
    pub fn push(&mut self, at: Instant, event: &Event) {
        let at = at.as_nanos();
        if self.events == 0 {
            self.out.number(at);
            self.last = at;
        }
        event.encode(self.last, at, &mut self.out);
        self.last = at;
        self.events += 1;
    }

    /// Notes what the gate answered.
    pub fn answer(&mut self, output: &Output) {
        self.answers.fold(output);
    }

    /// Returns whether nothing was added since the last block.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Returns whether it is time to [`Encoder::seal`].
    pub fn is_full(&self) -> bool {
        self.out.len() >= BLOCK_FULL
    }

    /// Ends the block, after the gate has answered all events in it; `trace` is the gate's. Returns
    /// the block's content; the next block is written into `buffer`.
    pub fn seal(&mut self, trace: TraceHash, mut buffer: Vec<u8>) -> Vec<u8> {
        buffer.clear();
        let mut out = std::mem::replace(&mut self.out, Writer::over(buffer));
        out.raw(&self.events.to_le_bytes());
        out.raw(&trace.value().to_le_bytes());
        out.raw(&self.answers.value().to_le_bytes());
        self.events = 0;
        out.into_bytes()
    }

    /// Begins a segment: its answers are hashed from zero.
    pub fn restart(&mut self) {
        self.answers = Answers::default();
    }
}

/// Returns the beginning of a segment: the header, the names, and the gate's state at that moment.
pub fn begin(header: &Header, snapshot: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(snapshot.len() + 4096);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    let mut content = Writer::default();
    header.save(snapshot.len(), &mut content);
    // The names of ten thousand routes exceed one block, so the header takes as many blocks as it
    // needs.
    let content = content.into_bytes();
    content.chunks(BLOCK_FULL).for_each(|part| frame(BlockKind::Header, part, &mut out));
    snapshot.chunks(BLOCK_FULL).for_each(|part| frame(BlockKind::Snapshot, part, &mut out));
    out
}

/// Returns a block of events, from the content that [`Encoder::seal`] returned. Returns nothing if
/// the content exceeds a block, which happens only in a recording that has to end at once.
pub fn events(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 16);
    if content.len() <= BLOCK_BYTES_MAX {
        frame(BlockKind::Events, content, &mut out);
    }
    out
}

/// Returns the end of a segment.
pub fn end(ending: SegmentEnd) -> Vec<u8> {
    let mut out = Vec::new();
    frame(BlockKind::End, &[ending.code()], &mut out);
    out
}

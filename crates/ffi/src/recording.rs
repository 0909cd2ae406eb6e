//! A recording, event by event.

use crate::code::{Code, Fault};
use crate::out::Out;
use serde_json::json;
use std::collections::VecDeque;
use suimon_model::Instant;
use suimon_record::{Event, Part, Parts, Segment};

/// An event: suimon_gate_apply does what it says. The buffer has it.
pub const SUIMON_EVENT: u32 = 1;
/// A mark: what the gate had decided and answered by then.
pub const SUIMON_MARK: u32 = 2;
/// The end of the file; the buffer says why it ends, as text.
pub const SUIMON_END: u32 = 3;

/// A piece of a recording. Which fields say something depends on `what`; the others are 0.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordingPart {
    /// SUIMON_EVENT, SUIMON_MARK or SUIMON_END.
    pub what: u32,
    /// Of a mark: events since the one before.
    pub events: u32,
    /// Of an event: when it happened, nanoseconds.
    pub at: u64,
    /// Of a mark: what suimon_gate_trace then was.
    pub trace: u64,
    /// Of a mark: what suimon_gate_answers then was, of a gate restored from this file.
    pub answers: u64,
}

/// One file of a recording being read.
#[derive(Debug)]
pub(crate) struct Recording {
    bytes: Vec<u8>,
    header: String,
    /// Where the next block begins.
    at: Option<usize>,
    /// What is left of the block.
    events: VecDeque<(Instant, Event)>,
    mark: Option<RecordingPart>,
    end: Option<String>,
}

impl Recording {
    /// Returns the recording in `bytes`, the whole of one file.
    pub(crate) fn open(bytes: &[u8]) -> Result<Recording, Fault> {
        let bytes = bytes.to_vec();
        let segment = Segment::read(&bytes).map_err(|damage| Fault::invalid(damage.to_string()))?;
        let header = &segment.header;
        let header = json!({
            "program": header.program, "run": header.run, "segment": header.segment,
            "at": header.at.as_nanos(), "since_1970_seconds": header.since_1970.as_secs_f64(),
            "routes": header.routes, "kinds": header.kinds,
        });
        let at = segment.parts().at();
        Ok(Recording {
            header: header.to_string(),
            at,
            bytes,
            events: VecDeque::new(),
            mark: None,
            end: None,
        })
    }

    /// Returns what it says of itself, as JSON.
    pub(crate) fn header(&self) -> &str {
        &self.header
    }

    /// Tells the next piece. Where its bytes do not fit, it stays the next.
    pub(crate) fn next(&mut self, part: &mut RecordingPart, out: &mut Out<'_>) -> Result<Code, Fault> {
        if self.events.is_empty() && self.mark.is_none() && self.end.is_none() {
            let Some(at) = self.at else { return Ok(Code::Nothing) };
            self.read(at)?;
        }
        if let Some((at, event)) = self.events.front() {
            *part = RecordingPart { what: SUIMON_EVENT, at: at.as_nanos(), ..RecordingPart::default() };
            if !out.put(&event.to_bytes()) {
                return Ok(Code::TooSmall);
            }
            self.events.pop_front();
        } else if let Some(mark) = self.mark.take() {
            *part = mark;
        } else if let Some(why) = &self.end {
            *part = RecordingPart { what: SUIMON_END, ..RecordingPart::default() };
            if !out.put(why.as_bytes()) {
                return Ok(Code::TooSmall);
            }
            self.end = None;
        }
        Ok(Code::Ok)
    }

    fn read(&mut self, at: usize) -> Result<(), Fault> {
        // After damage nothing follows.
        self.at = None;
        let mut parts = Parts::resume(&self.bytes, at);
        let damaged = |damage: suimon_record::Damage| Fault::invalid(damage.to_string());
        match parts.next().transpose().map_err(damaged)? {
            Some(Part::Block(block)) => {
                self.events = block.events().collect::<Result<_, _>>().map_err(damaged)?;
                let mark = block.mark;
                self.mark = Some(RecordingPart {
                    what: SUIMON_MARK,
                    events: mark.events,
                    trace: mark.trace,
                    answers: mark.answers,
                    at: 0,
                });
                self.at = parts.at();
            }
            Some(Part::End(end)) => self.end = Some(end.to_string()),
            None => {}
        }
        Ok(())
    }
}

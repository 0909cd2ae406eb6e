//! Reading: a segment's header, the state it begins with, and its parts one after another.

use crate::block::{self, BlockKind, MAGIC, PREFIX, unframe};
use crate::damage::{Damage, VERSION, What};
use crate::event::{Event, load_name, save_name};
use std::fmt;
use suimon_gate::Params;
use suimon_model::persist::{Broken, Persist, Reader, Writer};
use suimon_model::{Duration, Instant};

/// The most bytes of a header: the names of ten thousand routes and of all kinds.
const HEADER_BYTES_MAX: usize = 4 << 20;
/// Length of a [`Mark`].
const MARK: usize = 20;

/// The header of a segment.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// The version of the program that wrote it. Another program's laws may decide otherwise.
    pub program: String,
    /// Distinguishes one run of a gateway from the next: its start, in nanoseconds since 1970.
    pub run: u64,
    /// The segment's number; it goes on counting across runs.
    pub segment: u64,
    /// When it begins, by the gate's clock.
    pub at: Instant,
    /// When it begins, since 1970.
    pub since_1970: Duration,
    /// The gate's settings that were in force when it began.
    pub params: Params,
    /// Names of the routes that existed when it began, in the order of their ids.
    pub routes: Vec<String>,
    /// Names of the kinds of session, likewise.
    pub kinds: Vec<String>,
}

/// A segment being read.
#[derive(Debug)]
pub struct Segment<'a> {
    /// What it says of itself.
    pub header: Header,
    /// The gate's state when it began, for `Gate::restore`.
    pub snapshot: Vec<u8>,
    bytes: &'a [u8],
    /// Where the first part begins.
    begin: usize,
}

/// The parts of a segment. The iterator ends after the end part, or after damage.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    bytes: &'a [u8],
    at: usize,
    over: bool,
}

/// One part of a segment.
#[derive(Clone, Debug)]
pub enum Part<'a> {
    /// Events, and a mark after the last.
    Block(Block<'a>),
    /// Nothing follows.
    End(SegmentEnd),
}

/// Events, and a mark after the last.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    /// What the gate had decided after the last event.
    pub mark: Mark,
    content: &'a [u8],
    /// Where the content begins in the file.
    base: usize,
}

/// What a gate had decided when a block ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Events of the block.
    pub events: u32,
    /// `Gate::trace`.
    pub trace: u64,
    /// [`crate::Answers`] since the segment began.
    pub answers: u64,
}

/// The events of a block. The iterator ends after damage.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    from: Reader<'a>,
    base: usize,
    last: u64,
    left: u32,
}

/// Why a segment ends where it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentEnd {
    /// The gateway shut down in good order.
    Closed,
    /// It was long enough; the next segment continues.
    Continued,
    /// The disk could not keep up.
    TooSlow,
    /// Writing to the file failed.
    WriteFailed,
    /// The gate's state could not be saved for the beginning of the next segment.
    NoSnapshot,
}

impl SegmentEnd {
    const ALL: [SegmentEnd; 5] = [
        SegmentEnd::Closed,
        SegmentEnd::Continued,
        SegmentEnd::TooSlow,
        SegmentEnd::WriteFailed,
        SegmentEnd::NoSnapshot,
    ];

    /// Returns its number in the file.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the reason with this number.
    pub fn from_code(code: u8) -> Option<SegmentEnd> {
        SegmentEnd::ALL.into_iter().find(|ending| ending.code() == code)
    }
}

impl fmt::Display for SegmentEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SegmentEnd::Closed => "the gateway ended",
            SegmentEnd::Continued => "the next segment goes on",
            SegmentEnd::TooSlow => "the disk could not keep up",
            SegmentEnd::WriteFailed => "the file could not be written any more",
            SegmentEnd::NoSnapshot => "the state of the gate was too large to begin another segment with",
        })
    }
}

impl Header {
    pub(crate) fn save(&self, snapshot_bytes: usize, out: &mut Writer) {
        save_name(&self.program, out);
        self.run.save(out);
        self.segment.save(out);
        self.at.save(out);
        self.since_1970.save(out);
        self.params.save(out);
        save_names(&self.routes, out);
        save_names(&self.kinds, out);
        snapshot_bytes.save(out);
    }

    /// Returns the run and the number of the segment that begins with these bytes. `None` if this
    /// program does not read its format or its first block is not whole.
    pub fn place_of(beginning: &[u8]) -> Option<(u64, u64)> {
        let version: [u8; 2] = beginning.strip_prefix(&MAGIC)?.first_chunk().copied()?;
        let (BlockKind::Header, content, _) = unframe(beginning, PREFIX).ok()? else { return None };
        if u16::from_le_bytes(version) != VERSION {
            return None;
        }
        let mut from = Reader::new(content);
        load_name(&mut from).ok()?;
        Some((u64::load(&mut from).ok()?, u64::load(&mut from).ok()?))
    }

    fn load(from: &mut Reader<'_>) -> Result<(Header, usize), Broken> {
        let header = Header {
            program: load_name(from)?,
            run: Persist::load(from)?,
            segment: Persist::load(from)?,
            at: Persist::load(from)?,
            since_1970: Persist::load(from)?,
            params: Persist::load(from)?,
            routes: load_names(from)?,
            kinds: load_names(from)?,
        };
        let snapshot_bytes = Persist::load(from)?;
        from.finish()?;
        Ok((header, snapshot_bytes))
    }
}

impl<'a> Segment<'a> {
    /// Reads the beginning of a segment: all that precedes its first event.
    ///
    /// # Errors
    /// Returns [`Damage`] if the bytes are not the beginning of a segment.
    pub fn read(bytes: &'a [u8]) -> Result<Segment<'a>, Damage> {
        if !block::is_recording(bytes) {
            let alike = bytes.iter().zip(MAGIC).take_while(|(a, b)| **a == *b).count();
            // A file with only a part of the magic was cut there.
            let cut = alike == bytes.len() && !bytes.is_empty();
            return Err(Damage { at: alike, what: if cut { What::CutOff } else { What::Foreign } });
        }
        let Some(version) = bytes.get(MAGIC.len()..PREFIX) else {
            return Err(Damage { at: bytes.len(), what: What::CutOff });
        };
        let version = u16::from_le_bytes([version[0], version[1]]);
        if version != VERSION {
            return Err(Damage { at: MAGIC.len(), what: What::Version(version) });
        }
        let (content, after_header) = gather(bytes, PREFIX, BlockKind::Header, HEADER_BYTES_MAX)?;
        let base = PREFIX + block::FRAME;
        let (header, snapshot_bytes) = match Header::load(&mut Reader::new(&content)) {
            Ok(loaded) => loaded,
            Err(_) if after_header == bytes.len() => {
                return Err(Damage { at: after_header, what: What::CutOff });
            }
            // Something else is in the header's place.
            Err(_) if after_header == PREFIX => {
                return Err(Damage { at: PREFIX, what: What::Misplaced });
            }
            Err(broken) => return Err(Damage::inside(base, broken)),
        };
        let (snapshot, begin) = gather(bytes, after_header, BlockKind::Snapshot, snapshot_bytes)?;
        if snapshot.len() != snapshot_bytes {
            let what = match begin == bytes.len() {
                true => What::CutOff,
                false => What::Content("the gate's state is not all there"),
            };
            return Err(Damage { at: begin, what });
        }
        Ok(Segment { header, snapshot, bytes, begin })
    }

    /// Returns the parts after the beginning, in order.
    pub fn parts(&self) -> Parts<'a> {
        Parts { bytes: self.bytes, at: self.begin, over: false }
    }
}

/// Returns the joined contents of all blocks of `kind` from `at` on, and where they end.
fn gather(
    bytes: &[u8],
    mut at: usize,
    kind: BlockKind,
    bytes_max: usize,
) -> Result<(Vec<u8>, usize), Damage> {
    let mut gathered = Vec::new();
    // The kind is checked first: damage in the next block of another kind does not affect these.
    while bytes.get(at) == Some(&(kind as u8)) {
        let (_, content, next) = unframe(bytes, at)?;
        if gathered.len() + content.len() > bytes_max {
            return Err(Damage { at, what: What::TooLong });
        }
        gathered.extend_from_slice(content);
        at = next;
    }
    Ok((gathered, at))
}

impl<'a> Parts<'a> {
    /// Returns where the next part begins, for [`Parts::resume`]; `None`: there is none.
    pub fn at(&self) -> Option<usize> {
        (!self.over).then_some(self.at)
    }

    /// Returns the parts of the segment in `bytes` from a place that [`Parts::at`] has told.
    pub fn resume(bytes: &'a [u8], at: usize) -> Self {
        Parts { bytes, at: at.min(bytes.len()), over: false }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<Part<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let at = self.at;
        let part = unframe(self.bytes, at).and_then(|(kind, content, next)| {
            self.at = next;
            let base = at + block::FRAME;
            match (kind, content) {
                (BlockKind::Events, content) => Block::read(base, content).map(Part::Block),
                (BlockKind::End, [code]) => match SegmentEnd::from_code(*code) {
                    Some(_) if next < self.bytes.len() => {
                        Err(Damage { at: next, what: What::Content("something follows the end") })
                    }
                    Some(ending) => Ok(Part::End(ending)),
                    None => Err(Damage { at: base, what: What::Content("there is no such ending") }),
                },
                (BlockKind::End, _) => Err(Damage { at: base, what: What::Content("an end says one thing") }),
                (BlockKind::Header | BlockKind::Snapshot, _) => Err(Damage { at, what: What::Misplaced }),
            }
        });
        self.over = !matches!(part, Ok(Part::Block(_)));
        Some(part)
    }
}

impl<'a> Block<'a> {
    pub(crate) fn read(base: usize, content: &'a [u8]) -> Result<Self, Damage> {
        let Some((events, mark)) = content.split_last_chunk::<MARK>() else {
            return Err(Damage { at: base, what: What::Content("a block has a mark") });
        };
        let mut from = Reader::new(mark);
        let mut read = || {
            let events = u32::from_le_bytes(from.array()?);
            let (trace, answers) = (u64::from_le_bytes(from.array()?), u64::from_le_bytes(from.array()?));
            Ok(Mark { events, trace, answers })
        };
        let mark = read().map_err(|broken| Damage::inside(base + events.len(), broken))?;
        Ok(Block { mark, content: events, base })
    }

    /// Returns its events, each with its time.
    pub fn events(&self) -> Events<'a> {
        let mut from = Reader::new(self.content);
        let last = if self.mark.events > 0 { from.number().unwrap_or(0) } else { 0 };
        Events { from, base: self.base, last, left: self.mark.events }
    }
}

impl Iterator for Events<'_> {
    type Item = Result<(Instant, Event), Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            // Reported once: the block holds more than the mark counts.
            let rest = self.from.finish().err()?;
            self.from = Reader::new(&[]);
            return Some(Err(Damage::inside(self.base, rest)));
        }
        self.left -= 1;
        match Event::decode(self.last, &mut self.from) {
            Ok((at, event)) => {
                self.last = at;
                Some(Ok((Instant::from_nanos(at), event)))
            }
            Err(broken) => {
                self.left = 0;
                self.from = Reader::new(&[]);
                Some(Err(Damage::inside(self.base, broken)))
            }
        }
    }
}

fn save_names(names: &[String], out: &mut Writer) {
    names.len().save(out);
    names.iter().for_each(|name| save_name(name, out));
}

fn load_names(from: &mut Reader<'_>) -> Result<Vec<String>, Broken> {
    (0..from.length()?).map(|_| load_name(from)).collect()
}

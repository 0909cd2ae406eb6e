//! Writes what happens to the gate, for replay: the part under the gate's lock.
//!
//! Each call is put into a block in memory; a full block, or after a second a partial one, goes
//! over a bounded channel to a thread that writes it. Nobody here ever waits for the disk: if it
//! cannot keep up the recording ends, with a mark in the file, since a recording with a gap would
//! be worthless.

mod store;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{error, fmt, io};
use store::{Message, Store};
use suimon_gate::{Gate, Output};
use suimon_model::{Instant, TraceHash};
use suimon_params::Recording;
use suimon_record::{BLOCK_BYTES_MAX, BLOCK_FULL, Encoder, Event, Header, SegmentEnd};

/// Blocks on their way to the disk: about four megabytes, seconds of the busiest gateway.
const BLOCKS_MAX: usize = 64;
/// Recorded calls are handed on after this long at the latest.
const HAND_ON_AFTER: Duration = Duration::from_secs(1);
/// Files that one recording is spread over, so that the oldest eighth can be given up.
const SEGMENTS: u64 = 8;
/// The longest file: a replay holds one in memory.
const SEGMENT_BYTES_MAX: u64 = 256 << 20;

/// What a recording calls the gate's routes and kinds, in the order of their ids.
#[derive(Clone, Debug, Default)]
pub struct RecordNames {
    /// By route.
    pub routes: Vec<String>,
    /// By kind of session.
    pub kinds: Vec<String>,
}

/// Why a recording cannot begin.
#[derive(Debug)]
pub enum RecordError {
    /// There is a file of that name that is something else.
    Foreign(PathBuf),
    /// Another gateway writes this recording.
    InUse(PathBuf),
    /// It cannot be read, made or written.
    Io(PathBuf, io::Error),
    /// The gate's state cannot be put into bytes.
    Unsavable,
}

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    encoder: Encoder,
    handed_on: Instant,
    /// What the next segment says of itself, except for its state and names.
    header: Header,
    /// When the gate's clock was at its origin, since 1970.
    origin: Duration,
    segment_bytes: u64,
    /// Bytes of this segment so far.
    written: u64,
    blocks: SyncSender<Message>,
    /// Buffers that were written, to be filled again.
    spare: Receiver<Vec<u8>>,
    /// How it ended, for the thread to write when there are no more senders.
    ending: Arc<AtomicU8>,
    thread: JoinHandle<()>,
}

/// The recording has ended; why has been logged.
#[derive(Debug)]
pub struct Ended;

impl Recorder {
    /// Returns why a recording could not begin, as far as can be seen without changing a file.
    pub fn check(recording: &Recording) -> Result<(), RecordError> {
        Store::open(recording, 0).and_then(|store| store.check())
    }

    /// Begins to record a gate as it is `now`.
    pub fn begin(
        recording: &Recording,
        gate: &Gate,
        names: &RecordNames,
        now: Instant,
    ) -> Result<Self, RecordError> {
        let segment_bytes = (recording.bytes_max / SEGMENTS).min(SEGMENT_BYTES_MAX);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut store = Store::open(recording, segment_bytes)?;
        let header = Header {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            run: u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX),
            segment: store.next_segment(),
            at: now,
            since_1970,
            params: gate.params().clone(),
            routes: names.routes.clone(),
            kinds: names.kinds.clone(),
        };
        let snapshot = gate.save().map_err(|_| RecordError::Unsavable)?;
        store.begin(&header, &snapshot).map_err(|error| RecordError::Io(recording.file.clone(), error))?;
        let written = size_of_beginning(&header, &snapshot);
        let (blocks, messages) = sync_channel(BLOCKS_MAX);
        let (used, spare) = sync_channel(BLOCKS_MAX);
        let ending = Arc::new(AtomicU8::new(SegmentEnd::Closed.code()));
        let heard = Arc::clone(&ending);
        let thread = thread::Builder::new()
            .name("recording".to_owned())
            .spawn(move || store::write(store, &messages, &used, &heard))
            .map_err(|error| RecordError::Io(recording.file.clone(), error))?;
        tracing::info!(file = %recording.file.display(), "recording what happens to the gate");
        let origin = since_1970.saturating_sub(now.since(Instant::ORIGIN));
        Ok(Recorder {
            encoder: Encoder::default(),
            handed_on: now,
            header,
            origin,
            segment_bytes,
            written,
            blocks,
            spare,
            ending,
            thread,
        })
    }

    /// Takes note of a call that is about to be made.
    pub fn push(&mut self, now: Instant, event: &Event) {
        self.encoder.push(now, event);
    }

    /// Takes note of what the gate answered.
    pub fn answer(&mut self, output: &Output) {
        self.encoder.answer(output);
    }

    /// Returns whether it is time to [`Recorder::hand_on`].
    pub fn is_due(&self, now: Instant) -> bool {
        self.encoder.is_full() || now.since(self.handed_on) >= HAND_ON_AFTER
    }

    /// Hands on what there is, and begins another segment when this one is long enough.
    pub fn hand_on(&mut self, gate: &Gate, names: &RecordNames, now: Instant) -> Result<(), Ended> {
        self.handed_on = now;
        if self.encoder.is_empty() {
            return Ok(());
        }
        let content = self.seal(gate.trace());
        if content.len() > BLOCK_BYTES_MAX {
            return Err(self.give_up(SegmentEnd::TooSlow));
        }
        self.written += content.len() as u64;
        self.send(Message::Events(content))?;
        if self.written + BLOCK_BYTES_MAX as u64 <= self.segment_bytes {
            return Ok(());
        }
        self.header.segment += 1;
        self.header.at = now;
        // Others may have been adopted since the last segment.
        self.header.params = gate.params().clone();
        self.header.since_1970 = self.origin + now.since(Instant::ORIGIN);
        self.header.routes.clone_from(&names.routes);
        self.header.kinds.clone_from(&names.kinds);
        let Ok(snapshot) = gate.save() else { return Err(self.give_up(SegmentEnd::NoSnapshot)) };
        self.written = size_of_beginning(&self.header, &snapshot);
        if self.written > self.segment_bytes / 2 {
            return Err(self.give_up(SegmentEnd::NoSnapshot));
        }
        self.encoder.restart();
        self.send(Message::Begin(Box::new(self.header.clone()), snapshot))
    }

    /// Ends it in good order: waits until all there is to write is written. `trace` is the gate's.
    pub fn end(mut self, trace: TraceHash) {
        let content = self.seal(trace);
        // A thread that is gone has logged why.
        let _ = self.blocks.send(Message::Events(content));
        let Recorder { blocks, thread, .. } = self;
        drop(blocks);
        let _ = thread.join();
    }

    fn seal(&mut self, trace: TraceHash) -> Vec<u8> {
        let buffer = self.spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK_FULL + 1024));
        self.encoder.seal(trace, buffer)
    }

    fn send(&mut self, message: Message) -> Result<(), Ended> {
        match self.blocks.try_send(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(self.give_up(SegmentEnd::TooSlow)),
            Err(TrySendError::Disconnected(_)) => Err(Ended),
        }
    }

    fn give_up(&self, why: SegmentEnd) -> Ended {
        self.ending.store(why.code(), Relaxed);
        tracing::error!("recording stopped: {why}; the gateway continues without it");
        Ended
    }
}

/// Returns about how many bytes a segment begins with.
fn size_of_beginning(header: &Header, snapshot: &[u8]) -> u64 {
    let names = header.routes.iter().chain(&header.kinds).map(|name| name.len() + 2).sum::<usize>();
    (names + snapshot.len() + snapshot.len() / 1024 + 1024) as u64
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Foreign(path) => write!(
                f,
                "{} is there and is not a recording of Suimon's; it was not touched: name another file",
                path.display()
            ),
            RecordError::InUse(path) => {
                write!(f, "{} is being written by another gateway: name another file", path.display())
            }
            RecordError::Io(path, error) => write!(
                f,
                "the recording {} cannot be written: {error}; its folder must be there and writable",
                path.display()
            ),
            RecordError::Unsavable => f.write_str("the gate's laws cannot be recorded"),
        }
    }
}

impl error::Error for RecordError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            RecordError::Io(_, error) => Some(error),
            RecordError::Foreign(_) | RecordError::InUse(_) | RecordError::Unsavable => None,
        }
    }
}

#[cfg(test)]
mod tests;

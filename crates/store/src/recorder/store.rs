//! The files of a recording, and the thread that writes them.
//!
//! `FILE` is the one being written. When it is long enough, or another run begins, it is set aside
//! as `FILE.000001` and so on, by the number of its segment; the oldest are removed so that all
//! together stay within bounds. Nothing that is not a recording is ever renamed, removed or written
//! to.

use super::RecordError;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};
use suimon_params::Recording;
use suimon_record::{BLOCK_BYTES_MAX, Header, SegmentEnd};

/// Written data is synced to the disk after this long at the latest, as long as more is written.
const SYNC_AFTER: Duration = Duration::from_secs(1);

/// A message to the thread.
#[derive(Debug)]
pub(super) enum Message {
    /// The content of a block.
    Events(Vec<u8>),
    /// Another segment begins, with this state.
    Begin(Box<Header>, Vec<u8>),
}

/// The files.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    bytes_max: u64,
    segment_bytes: u64,
    /// The number of the segment in `path`, if there is one.
    segment: Option<u64>,
    /// The last segment there ever was, as far as can be seen.
    last: u64,
    file: Option<File>,
    /// Bytes of `file` that make whole blocks.
    whole: u64,
    synced: Instant,
}

impl Store {
    /// Looks at what is there, and changes nothing.
    pub(super) fn open(recording: &Recording, segment_bytes: u64) -> Result<Self, RecordError> {
        let path = recording.file.clone();
        let io = |error| RecordError::Io(path.clone(), error);
        let aside = set_aside(&path).map_err(io)?;
        let last_aside = aside.last().map_or(0, |(number, _)| *number);
        let mut store = Store {
            path: path.clone(),
            bytes_max: recording.bytes_max,
            segment_bytes,
            segment: None,
            last: last_aside,
            file: None,
            whole: 0,
            synced: Instant::now(),
        };
        let there = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(store),
            Err(error) => return Err(io(error)),
        };
        let mut beginning = Vec::new();
        (&there).take(BLOCK_BYTES_MAX as u64).read_to_end(&mut beginning).map_err(io)?;
        if !suimon_record::is_recording(&beginning) {
            return Err(RecordError::Foreign(path));
        }
        match there.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RecordError::InUse(path)),
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let number =
            Header::place_of(&beginning).map(|(_, number)| number).filter(|number| *number > last_aside);
        store.last = number.unwrap_or(last_aside + 1);
        store.segment = Some(store.last);
        // Held until the file is set aside, so that no other gateway takes it meanwhile.
        store.file = Some(there);
        Ok(store)
    }

    /// Returns the number the next segment has.
    pub(super) fn next_segment(&self) -> u64 {
        self.last + 1
    }

    /// Returns why the segment there is could not be set aside.
    pub(super) fn check(&self) -> Result<(), RecordError> {
        let aside = self.segment.map_or(Ok(()), |number| self.free_aside(number).map(drop));
        aside.map_err(|error| RecordError::Io(self.path.clone(), error))
    }

    /// Returns the name that a segment is set aside as, which no other file has.
    fn free_aside(&self, number: u64) -> io::Result<PathBuf> {
        let aside = aside(&self.path, number);
        if aside.try_exists()? {
            let why = format!("{} is in the way", aside.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        Ok(aside)
    }

    /// Sets aside the segment there is, and begins another.
    pub(super) fn begin(&mut self, header: &Header, snapshot: &[u8]) -> io::Result<()> {
        if let Some(number) = self.segment.take() {
            fs::rename(&self.path, self.free_aside(number)?)?;
        }
        self.file = None;
        self.make_room()?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path)?;
        // No other process can have a file that was created a moment ago, except one that looks at
        // the very same moment.
        file.try_lock().map_err(io::Error::from)?;
        self.file = Some(file);
        self.whole = 0;
        self.segment = Some(header.segment);
        self.last = header.segment;
        self.append(&suimon_record::begin(header, snapshot))?;
        self.sync()
    }

    /// Writes one or more whole blocks, or nothing.
    fn append(&mut self, blocks: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Err(error) = file.write_all(blocks) {
            // Best effort: what is left half-written is noticed when it is read.
            let _ = file.set_len(self.whole);
            let _ = io::Seek::seek(file, io::SeekFrom::Start(self.whole));
            return Err(error);
        }
        self.whole += blocks.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.synced = Instant::now();
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }

    /// Removes the oldest segments until one more fits.
    fn make_room(&self) -> io::Result<()> {
        let aside = set_aside(&self.path)?;
        let mut sizes = Vec::new();
        for (_, path) in &aside {
            sizes.push(fs::metadata(path)?.len());
        }
        let mut total: u64 = sizes.iter().sum();
        for ((_, path), size) in aside.iter().zip(sizes) {
            if total + self.segment_bytes <= self.bytes_max {
                break;
            }
            fs::remove_file(path)?;
            total -= size;
        }
        Ok(())
    }

    fn take(&mut self, message: &Message) -> io::Result<()> {
        match message {
            Message::Events(content) => self.append(&suimon_record::events(content))?,
            Message::Begin(header, snapshot) => {
                self.append(&suimon_record::end(SegmentEnd::Continued))?;
                self.sync()?;
                self.begin(header, snapshot)?;
            }
        }
        if self.synced.elapsed() >= SYNC_AFTER { self.sync() } else { Ok(()) }
    }

    fn end(&mut self, ending: SegmentEnd) -> io::Result<()> {
        self.append(&suimon_record::end(ending))?;
        self.sync()
    }
}

/// Writes what it is sent until there are no more senders, and then how it ended. `used` takes back
/// the buffers.
pub(super) fn write(
    mut store: Store,
    messages: &Receiver<Message>,
    used: &SyncSender<Vec<u8>>,
    ending: &AtomicU8,
) {
    while let Ok(message) = messages.recv() {
        if let Err(error) = store.take(&message) {
            tracing::error!(
                file = %store.path.display(),
                "the recording has ended: it cannot be written ({error}); the gateway goes on without it"
            );
            // Perhaps there is room for this; if not, the end is missing, which is noticed when it
            // is read.
            let _ = store.end(SegmentEnd::WriteFailed);
            return;
        }
        if let Message::Events(buffer) = message {
            // A surplus buffer is freed.
            let _ = used.try_send(buffer);
        }
    }
    let ending = SegmentEnd::from_code(ending.load(Relaxed)).unwrap_or(SegmentEnd::Closed);
    if let Err(error) = store.end(ending) {
        tracing::error!(file = %store.path.display(), "the end of the recording cannot be written: {error}");
    }
}

/// Returns the segments set aside beside `path`, the oldest first.
fn set_aside(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(number) = number_of(path, &entry.file_name()) else { continue };
        let mut beginning = [0; suimon_record::MAGIC.len()];
        let read = File::open(entry.path()).and_then(|mut file| file.read_exact(&mut beginning));
        if read.is_ok() && suimon_record::is_recording(&beginning) {
            found.push((number, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns the number in the name of a segment set aside: `FILE.000012`.
fn number_of(path: &Path, name: &OsString) -> Option<u64> {
    let own = path.file_name()?.to_str()?;
    let digits = name.to_str()?.strip_prefix(own)?.strip_prefix('.')?;
    let written = digits.len() >= 6 && digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| written)
}

fn aside(path: &Path, number: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number:06}"));
    PathBuf::from(name)
}

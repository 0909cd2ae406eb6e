//! The access log: a line for each request, written by a thread of its own.
//!
//! Requests never wait for it: where it falls behind, lines are dropped, counted, and told in the
//! log once a minute.

pub(super) mod line;

use line::Lines;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use suimon_params::{AccessFormat, Telemetry};
use suimon_proxy::RequestRecord;

/// Requests that have ended and are not written yet.
const PENDING_MAX: usize = 8192;
/// Bytes that are written at once.
const BATCH_BYTES: usize = 64 << 10;
/// The longest that the end of the process waits for the last lines.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Where lines go.
#[derive(Debug)]
pub(super) struct AccessLog {
    sender: SyncSender<Message>,
    shared: Arc<Shared>,
}

/// How many lines were written, and how many were not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub(super) written: u64,
    pub(super) dropped: u64,
}

#[derive(Debug, Default)]
struct Shared {
    written: AtomicU64,
    dropped: AtomicU64,
    /// Whether the file is to be opened anew.
    reopen: AtomicBool,
    /// Why lines could not be written, last.
    why: Mutex<Option<String>>,
}

#[derive(Debug)]
enum Message {
    Ended(Box<RequestRecord>),
    /// See what else is to be done.
    Look,
    /// Write what there is, say so, and end.
    End(SyncSender<()>),
}

impl AccessLog {
    /// Begins to write, if there is an access log.
    ///
    /// # Errors
    /// Returns a sentence that says why the file cannot be written.
    pub(super) fn begin(settings: &Telemetry) -> Result<Option<AccessLog>, String> {
        let lines = match settings.access {
            AccessFormat::Off => return Ok(None),
            AccessFormat::Json => Lines::Json { query: settings.access_query },
            AccessFormat::Common => Lines::Common { query: settings.access_query },
        };
        let path = settings.access_file.clone();
        let out = match &path {
            None => Out::Standard,
            Some(path) => Out::File(open(path).map_err(|error| explain(path, &error))?),
        };
        let (sender, receiver) = sync_channel(PENDING_MAX);
        let shared = Arc::new(Shared::default());
        let writer = Writer {
            lines,
            path,
            out: BufWriter::with_capacity(BATCH_BYTES, out),
            shared: Arc::clone(&shared),
        };
        thread::Builder::new()
            .name("access log".to_owned())
            .spawn(move || writer.run(&receiver))
            .map_err(|error| format!("no thread for the access log can be started: {error}"))?;
        Ok(Some(AccessLog { sender, shared }))
    }

    /// Writes a line for a request, if there is room.
    pub(super) fn write(&self, record: Box<RequestRecord>) {
        if self.sender.try_send(Message::Ended(record)).is_err() {
            self.shared.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Opens the file anew: it may have been renamed.
    pub(super) fn reopen(&self) {
        self.shared.reopen.store(true, Relaxed);
        // If there is no room the thread is busy, and looks by itself.
        let _ = self.sender.try_send(Message::Look);
    }

    /// Writes what there is and nothing more. Waits for that, but not for ever.
    pub(super) fn end(&self) {
        let (done, is_done) = sync_channel(1);
        let sender = self.sender.clone();
        // Where the log does not move there is no room for this either.
        thread::spawn(move || _ = sender.send(Message::End(done)));
        let _ = is_done.recv_timeout(END_WITHIN);
    }

    /// Returns how many lines were written, and how many were not.
    pub(super) fn counts(&self) -> Counts {
        Counts { written: self.shared.written.load(Relaxed), dropped: self.shared.dropped.load(Relaxed) }
    }

    /// Returns why lines could not be written, if that happened since it was last asked.
    pub(super) fn take_trouble(&self) -> Option<String> {
        self.shared.why.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What writes the lines.
struct Writer {
    lines: Lines,
    path: Option<PathBuf>,
    out: BufWriter<Out>,
    shared: Arc<Shared>,
}

enum Out {
    Standard,
    File(File),
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Out::Standard => io::stdout().write(bytes),
            Out::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Standard => io::stdout().flush(),
            Out::File(file) => file.flush(),
        }
    }
}

impl Writer {
    fn run(mut self, receiver: &Receiver<Message>) {
        while let Ok(first) = receiver.recv() {
            let mut pending = 0;
            let mut end = None;
            let mut line = String::new();
            let mut next = Some(first);
            while let Some(message) = next.take() {
                match message {
                    Message::Ended(record) => {
                        line.clear();
                        self.lines.write(&record, &mut line);
                        match self.out.write_all(line.as_bytes()) {
                            Ok(()) => pending += 1,
                            Err(error) => self.lose(1, &error),
                        }
                    }
                    Message::Look => {}
                    Message::End(done) => {
                        end = Some(done);
                        break;
                    }
                }
                if self.shared.reopen.swap(false, Relaxed) {
                    pending = self.flush(pending);
                    self.open_anew();
                }
                next = receiver.try_recv().ok();
            }
            self.flush(pending);
            if let Some(done) = end {
                let _ = done.try_send(());
                return;
            }
        }
    }

    /// Writes what is buffered: so many lines. Returns how many still are.
    fn flush(&mut self, lines: u64) -> u64 {
        match self.out.flush() {
            Ok(()) => _ = self.shared.written.fetch_add(lines, Relaxed),
            Err(error) => {
                self.lose(lines, &error);
                self.forget();
            }
        }
        0
    }

    /// Drops what is buffered: some of it may have been written, and none of it is to be twice.
    fn forget(&mut self) {
        let out = std::mem::replace(&mut self.out, BufWriter::with_capacity(BATCH_BYTES, Out::Standard));
        let (out, _) = out.into_parts();
        self.out = BufWriter::with_capacity(BATCH_BYTES, out);
    }

    fn lose(&self, lines: u64, error: &io::Error) {
        self.shared.dropped.fetch_add(lines, Relaxed);
        *self.shared.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }

    fn open_anew(&mut self) {
        let Some(path) = &self.path else { return };
        match open(path) {
            Ok(file) => self.out = BufWriter::with_capacity(BATCH_BYTES, Out::File(file)),
            Err(error) => {
                tracing::error!("{}; lines go to the file that was open before", explain(path, &error));
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

fn explain(path: &Path, error: &io::Error) -> String {
    format!("log.access_file: {} cannot be written: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::line::tests::record;
    use super::*;
    use std::fs;

    fn settings(path: &Path) -> Telemetry {
        Telemetry {
            access: AccessFormat::Json,
            access_file: Some(path.to_owned()),
            ..suimon_settings::Settings::default().telemetry
        }
    }

    fn lines(path: &Path) -> usize {
        fs::read_to_string(path).unwrap().lines().count()
    }

    #[test]
    fn a_renamed_file_is_left_for_a_new_one_and_no_line_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
        let log = AccessLog::begin(&settings(&path)).unwrap().unwrap();
        for _ in 0..100 {
            log.write(Box::new(record()));
        }
        fs::rename(&path, &old).unwrap();
        log.reopen();
        for _ in 0..50 {
            log.write(Box::new(record()));
        }
        log.end();
        assert_eq!(lines(&old) + lines(&path), 150);
        assert_eq!(log.counts(), Counts { written: 150, dropped: 0 });
    }

    #[test]
    fn nobody_waits_for_a_log_that_does_not_move() {
        let (sender, receiver) = sync_channel(PENDING_MAX);
        let log = AccessLog { sender, shared: Arc::default() };
        for _ in 0..PENDING_MAX + 7 {
            log.write(Box::new(record()));
        }
        assert_eq!(log.counts(), Counts { written: 0, dropped: 7 });
        drop(receiver);
    }

    #[test]
    fn a_full_disk_is_counted_and_told() {
        let log = AccessLog::begin(&settings(Path::new("/dev/full"))).unwrap().unwrap();
        log.write(Box::new(record()));
        log.end();
        assert_eq!(log.counts(), Counts { written: 0, dropped: 1 });
        assert!(log.take_trouble().is_some_and(|why| why.contains("No space left")));
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_told_at_the_start() {
        let why = AccessLog::begin(&settings(Path::new("/nowhere/access.log"))).unwrap_err();
        assert!(why.starts_with("log.access_file: /nowhere/access.log cannot be written"), "{why}");
    }
}

//! Bodies that clients send or take slowly and that do not fit into memory: in files without a
//! name, which are freed with their last reader.
//!
//! A spool is written at its end and read from its beginning, both outside the reactor. All spools
//! together are bounded by a setting and by the free space of the file system, of which half stays
//! free. Of that, answers have half at most, so that they cannot displace bodies of requests, and
//! one address has a share. Where a spool is not available, or is full, bodies travel as they would
//! without one.

use crate::uploads::{Origin, SHARES};
use bytes::Bytes;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use suimon_params::SpoolParams;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Files at once.
pub const FILES_MAX: usize = 1024;
/// Bytes that are written or read at once.
pub const PIECE_BYTES: usize = 64 << 10;
/// The largest file that is freed where its last reader is done, bytes.
const FREED_HERE_MAX: u64 = 1 << 20;
/// Writes and reads at once; further ones wait for these.
const DISK_MAX: usize = 16;
/// Bytes per second that go from applications into files, all answers together, and as many from
/// files to applications, all uploads together: data that nobody waits for must not slow requests
/// that are waited for.
const PER_S_MAX: u64 = 64 << 20;
/// How often the log tells that files cannot be written.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// All spools.
#[derive(Debug)]
pub struct Spools {
    directory: PathBuf,
    body_bytes_max: u64,
    bytes_max: u64,
    is_on: bool,
    taken: Mutex<SpoolUsage>,
    disk: Arc<Semaphore>,
    /// When the next piece of an answer may be written.
    fills: DiskPacer,
    sends: DiskPacer,
    warned: Mutex<Option<Instant>>,
}

/// When the next piece may be moved.
#[derive(Debug)]
struct DiskPacer(Mutex<Instant>);

/// One of them.
#[derive(Debug)]
pub struct Spool {
    /// `None` once it is dropped.
    kept: Option<SpoolContents>,
}

/// What a spool keeps until it is freed: the file goes first.
#[derive(Debug)]
struct SpoolContents {
    file: File,
    place: SpoolQuota,
}

/// What a spool takes of the bounds.
#[derive(Debug)]
struct SpoolQuota {
    all: Arc<Spools>,
    body: BodyKind,
    origin: Origin,
    bytes: AtomicU64,
}

/// Whose bodies there are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BodyKind {
    /// A request's, on its way to the application.
    Request,
    /// An answer's, on its way to the client.
    Answer,
}

/// What is taken of the bounds.
#[derive(Default, Debug)]
struct SpoolUsage {
    /// What all together may have, in bytes, as of when the last spool began.
    waiting_room: u64,
    in_all: Part,
    answers: Part,
    /// The same by address, for those that have any.
    by_origin: HashMap<(BodyKind, Origin), Part>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Part {
    files: usize,
    bytes: u64,
}

/// A piece on its way from the file.
pub type PieceRead = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

/// Pieces on their way to the file; whether they are there.
pub type PieceWrite = Pin<Box<dyn Future<Output = bool> + Send>>;

impl Spools {
    /// Returns the maker of spools. If none can be made that is logged here, and never again.
    pub fn new(params: &SpoolParams) -> Arc<Self> {
        let directory = params.directory.clone().unwrap_or_else(std::env::temp_dir);
        let is_on = params.bytes_max > 0
            && make(&directory)
                .inspect_err(|error| {
                    tracing::warn!(
                        directory = %directory.display(),
                        "cannot create files there, so slow clients will keep the application waiting: {error}"
                    );
                })
                .is_ok();
        Arc::new(Spools {
            directory,
            body_bytes_max: params.body_bytes_max,
            bytes_max: params.bytes_max,
            is_on,
            taken: Mutex::default(),
            disk: Arc::new(Semaphore::new(DISK_MAX)),
            fills: DiskPacer::new(),
            sends: DiskPacer::new(),
            warned: Mutex::default(),
        })
    }

    /// Returns whether there are any.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Returns the bytes in all of them.
    pub fn bytes(&self) -> u64 {
        self.taken().in_all.bytes
    }

    /// Makes a spool for a body of this sort, from a client or for it, if there is room for one.
    pub async fn begin(self: &Arc<Self>, body: BodyKind, origin: Origin) -> Option<Arc<Spool>> {
        if !self.is_on || !self.taken().take(body, origin, Part { files: 1, bytes: 0 }) {
            return None;
        }
        let place = SpoolQuota { all: Arc::clone(self), body, origin, bytes: AtomicU64::new(0) };
        let directory = self.directory.clone();
        let made = self.on_disk(move || {
            make(&directory).map(|(file, free)| (Spool { kept: Some(SpoolContents { file, place }) }, free))
        });
        match made.await {
            Ok((spool, free)) => {
                let mut taken = self.taken();
                taken.waiting_room = self.bytes_max.min(free.saturating_add(taken.in_all.bytes) / 2);
                Some(Arc::new(spool))
            }
            Err(error) => {
                self.warn(&error);
                None
            }
        }
    }

    /// Does work that may wait for the disk, when its turn comes. If its caller has gone it still
    /// counts until it is done.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let permit = Arc::clone(&self.disk).acquire_owned().await.expect("it is never closed");
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn taken(&self) -> MutexGuard<'_, SpoolUsage> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn warn(&self, error: &io::Error) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            *warned = Some(Instant::now());
            tracing::warn!(directory = %self.directory.display(), "cannot buffer a slow body on disk: {error}");
        }
    }
}

impl DiskPacer {
    fn new() -> Self {
        DiskPacer(Mutex::new(Instant::now()))
    }

    /// Waits for the turn of `bytes` bytes, and takes their time.
    async fn turn(&self, bytes: u64) {
        let at = {
            let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let at = (*next).max(Instant::now());
            *next = at + Duration::from_secs_f64(bytes as f64 / PER_S_MAX as f64);
            at
        };
        tokio::time::sleep_until(at).await;
    }
}

impl Spool {
    fn kept(&self) -> &SpoolContents {
        self.kept.as_ref().expect("only its drop takes it")
    }

    /// Writes as [`Spool::write`] does, when it is the turn of these bytes of an answer.
    pub fn fill(self: &Arc<Self>, at: u64, pieces: Vec<Bytes>) -> PieceWrite {
        let spool = Arc::clone(self);
        Box::pin(async move {
            let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
            spool.kept().place.all.fills.turn(bytes).await;
            spool.write(at, pieces).await
        })
    }

    /// Writes `pieces` behind what is there, which is `at` bytes. Returns whether there was room
    /// and it is done.
    pub async fn write(self: &Arc<Self>, at: u64, pieces: Vec<Bytes>) -> bool {
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        if !self.kept().place.take(bytes) {
            return false;
        }
        let all = &self.kept().place.all;
        let spool = Arc::clone(self);
        let written = all.on_disk(move || {
            let mut at = at;
            pieces.iter().try_for_each(|piece| {
                let written = spool.kept().file.write_all_at(piece, at);
                at += piece.len() as u64;
                written
            })
        });
        match written.await {
            Ok(()) => true,
            Err(error) => {
                all.warn(&error);
                false
            }
        }
    }

    /// Reads as [`Spool::read`] does, when it is the turn of these bytes of an upload.
    pub fn send(self: &Arc<Self>, at: u64, end: u64) -> PieceRead {
        let spool = Arc::clone(self);
        Box::pin(async move {
            spool.kept().place.all.sends.turn((end - at).min(PIECE_BYTES as u64)).await;
            spool.read(at, end).await
        })
    }

    /// Reads a piece that begins at `at`, of what is there up to `end`.
    pub fn read(self: &Arc<Self>, at: u64, end: u64) -> PieceRead {
        let spool = Arc::clone(self);
        let bytes = usize::try_from(end - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        Box::pin(async move {
            let all = Arc::clone(&spool.kept().place.all);
            let read = all.on_disk(move || {
                let mut piece = vec![0; bytes];
                spool.kept().file.read_exact_at(&mut piece, at).map(|()| Bytes::from(piece))
            });
            read.await.inspect_err(|error| all.warn(error))
        })
    }
}

/// The content of a large file is freed outside the reactor as well, as one of the writes and
/// reads: for 50 MB the kernel takes 6 ms. Until then it counts.
impl Drop for Spool {
    fn drop(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        let is_large = kept.place.bytes.load(Relaxed) > FREED_HERE_MAX;
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && is_large
        {
            let all = Arc::clone(&kept.place.all);
            runtime.spawn(async move {
                let freed = move || {
                    drop(kept);
                    Ok(())
                };
                _ = all.on_disk(freed).await;
            });
        }
    }
}

impl SpoolQuota {
    /// Takes room for `bytes` bytes, if there is.
    fn take(&self, bytes: u64) -> bool {
        let own = self.bytes.load(Relaxed) + bytes;
        let more = Part { files: 0, bytes };
        let fits = own <= self.all.body_bytes_max && self.all.taken().take(self.body, self.origin, more);
        if fits {
            self.bytes.store(own, Relaxed);
        }
        fits
    }
}

impl Drop for SpoolQuota {
    fn drop(&mut self) {
        let own = Part { files: 1, bytes: *self.bytes.get_mut() };
        self.all.taken().give_back(self.body, self.origin, own);
    }
}

impl SpoolUsage {
    /// Takes so much more, if there is room for it.
    fn take(&mut self, body: BodyKind, origin: Origin, more: Part) -> bool {
        let in_all = Part { files: FILES_MAX, bytes: self.waiting_room };
        let of_sort = match body {
            BodyKind::Request => in_all,
            BodyKind::Answer => in_all.one_in(2),
        };
        let own = self.by_origin.get(&(body, origin)).copied().unwrap_or_default();
        let fits = self.in_all.has_room(more, in_all)
            && (body == BodyKind::Request || self.answers.has_room(more, of_sort))
            && (origin == Origin::Anybody || own.has_room(more, of_sort.one_in(SHARES)));
        if fits {
            self.parts(body, origin).into_iter().flatten().for_each(|part| part.add(more));
        }
        fits
    }

    fn give_back(&mut self, body: BodyKind, origin: Origin, less: Part) {
        self.parts(body, origin).into_iter().flatten().for_each(|part| part.remove(less));
        if self.by_origin.get(&(body, origin)) == Some(&Part::default()) {
            self.by_origin.remove(&(body, origin));
        }
    }

    /// Returns all that a body counts in.
    fn parts(&mut self, body: BodyKind, origin: Origin) -> [Option<&mut Part>; 3] {
        let answers = (body == BodyKind::Answer).then_some(&mut self.answers);
        let own = (origin != Origin::Anybody).then(|| self.by_origin.entry((body, origin)).or_default());
        [Some(&mut self.in_all), answers, own]
    }
}

impl Part {
    fn one_in(self, count: usize) -> Part {
        Part { files: self.files / count, bytes: self.bytes / count as u64 }
    }

    fn has_room(self, more: Part, max: Part) -> bool {
        (more.files == 0 || self.files + more.files <= max.files)
            && (more.bytes == 0 || self.bytes + more.bytes <= max.bytes)
    }

    fn add(&mut self, more: Part) {
        self.files += more.files;
        self.bytes += more.bytes;
    }

    fn remove(&mut self, less: Part) {
        self.files -= less.files;
        self.bytes -= less.bytes;
    }
}

/// Makes a file without a name, and returns how much is free where it is.
fn make(directory: &Path) -> io::Result<(File, u64)> {
    let file = tempfile::tempfile_in(directory)?;
    let stat = rustix::fs::fstatvfs(&file)?;
    Ok((file, stat.f_bavail.saturating_mul(stat.f_frsize)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::pin::pin;

    fn spools(bytes_max: u64, body_bytes_max: u64) -> Arc<Spools> {
        Spools::new(&SpoolParams { directory: None, bytes_max, body_bytes_max })
    }

    #[tokio::test]
    async fn what_is_written_is_read_and_no_more_is_taken_than_may_be() {
        let all = spools(100_000, 80_000);
        let spool = all.begin(BodyKind::Request, Origin::Anybody).await.unwrap();
        let piece = |byte: u8, bytes: usize| Bytes::from(vec![byte; bytes]);
        assert!(spool.write(0, vec![piece(1, 10), piece(2, 69_990)]).await);
        assert!(!spool.write(70_000, vec![piece(3, 10_001)]).await, "more than one may have");
        let other = all.begin(BodyKind::Request, Origin::Anybody).await.unwrap();
        assert!(!other.write(0, vec![piece(3, 30_001)]).await, "more than all may have");
        assert_eq!(all.bytes(), 70_000);
        let first = spool.read(0, 70_000).await.unwrap();
        let second = spool.read(first.len() as u64, 70_000).await.unwrap();
        assert_eq!((first.len(), second.len()), (PIECE_BYTES, 70_000 - PIECE_BYTES));
        assert_eq!((first[9], first[10], second[0]), (1, 2, 2));
        drop((spool, other));
        assert_eq!((all.bytes(), all.taken().in_all.files), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn answers_together_fill_files_and_uploads_leave_them_at_a_pace() {
        let all = spools(PER_S_MAX, PER_S_MAX);
        let spool = all.begin(BodyKind::Request, Origin::Anybody).await.unwrap();
        let start = Instant::now();
        let turns = async |pace: &DiskPacer, pieces: u64| {
            for _ in 0..pieces {
                pace.turn(PIECE_BYTES as u64).await;
            }
        };
        tokio::join!(turns(&all.fills, 512), turns(&all.fills, 512), turns(&all.sends, 1024));
        let took = start.elapsed();
        assert!(took.abs_diff(Duration::from_secs(1)) < Duration::from_millis(20), "64 MiB took {took:?}");
        tokio::time::sleep(Duration::from_secs(5)).await;
        let start = Instant::now();
        assert!(spool.fill(0, vec![Bytes::from_static(b"x")]).await);
        assert!(start.elapsed() < Duration::from_millis(20), "nobody waits where nobody fills");
    }

    #[tokio::test]
    async fn answers_have_half_and_one_address_a_quarter_of_what_its_sort_may_have() {
        let all = spools(800, 800);
        let from = |host| Origin::of(IpAddr::from([192, 0, 2, host]));
        let write = async |body, origin, bytes| {
            let spool = all.begin(body, origin).await.expect("a file");
            spool.write(0, vec![Bytes::from(vec![0; bytes])]).await.then_some(spool)
        };
        let mut kept = Vec::new();
        for host in 1..=4 {
            kept.push(write(BodyKind::Answer, from(host), 100).await.expect("a share"));
            assert!(write(BodyKind::Answer, from(host), 1).await.is_none(), "and no more");
        }
        for origin in [from(5), Origin::Anybody] {
            assert!(write(BodyKind::Answer, origin, 1).await.is_none(), "half of all is taken");
        }
        kept.push(write(BodyKind::Request, from(1), 200).await.expect("a share of its own"));
        assert!(write(BodyKind::Request, from(1), 1).await.is_none());
        kept.push(write(BodyKind::Request, Origin::Anybody, 200).await.expect("all that is left"));
        assert!(write(BodyKind::Request, from(2), 1).await.is_none());
        kept.clear();
        for (body, max) in
            [(BodyKind::Answer, FILES_MAX / 2 / SHARES), (BodyKind::Request, FILES_MAX / SHARES)]
        {
            while let Some(spool) = all.begin(body, from(1)).await {
                kept.push(spool);
            }
            assert_eq!(kept.len(), max);
            kept.push(all.begin(body, from(2)).await.expect("another's share"));
            kept.clear();
        }
        assert_eq!(all.taken().in_all, Part::default());
        assert!(all.taken().by_origin.is_empty());
    }

    #[test]
    fn what_is_broken_off_counts_until_the_disk_is_done_with_it() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let all = spools(100_000, 80_000);
            let spool = all.begin(BodyKind::Request, Origin::Anybody).await.unwrap();
            // The disk stands still.
            let (go_on, waits) = std::sync::mpsc::channel::<()>();
            let disk = tokio::task::spawn_blocking(move || waits.recv());
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            let write = || spool.write(0, vec![Bytes::from_static(b"x")]);
            for _ in 0..2 {
                assert!(pin!(write()).poll(&mut cx).is_pending());
                assert!(pin!(all.begin(BodyKind::Request, Origin::Anybody)).poll(&mut cx).is_pending());
                assert!(spool.read(0, 1).as_mut().poll(&mut cx).is_pending());
            }
            assert_eq!(all.disk.available_permits(), DISK_MAX - 6);
            assert_eq!(all.taken().in_all.files, 3);
            drop(spool);
            assert_eq!(all.taken().in_all.files, 3);
            go_on.send(()).unwrap();
            disk.await.unwrap().unwrap();
            let _all = all.disk.acquire_many(DISK_MAX as u32).await.unwrap();
            // What the last of them made is dropped right after its permit.
            tokio::task::spawn_blocking(|| ()).await.unwrap();
            assert_eq!((all.bytes(), all.taken().in_all.files), (0, 0));
        });
    }

    #[tokio::test]
    async fn where_no_file_can_be_made_there_are_no_spools() {
        let directory = Some(PathBuf::from("/there/is/no/such/place"));
        let all = Spools::new(&SpoolParams { directory, bytes_max: 1 << 20, body_bytes_max: 1 << 20 });
        assert!(!all.is_on() && all.begin(BodyKind::Request, Origin::Anybody).await.is_none());
        assert!(!spools(0, 0).is_on(), "nor where none are wanted");
    }
}

//! What a worker writes to its standard error: into the log, and the last of it kept for whoever
//! asks why the worker has ended.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use suimon_fleet::workers::WorkerId;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Duration, Instant, timeout};

/// The most that is kept of one worker, in bytes.
const KEPT_MAX: usize = 2 << 10;
/// The longest line, in bytes: a longer one counts as several.
const LINE_MAX: usize = 1 << 10;
/// Lines of one worker, or of all programs of a pool that run once, that are logged in a second. The
/// others are read and dropped: a worker that cannot write stands still.
pub(super) const LINES_MAX: u32 = 20;
/// The longest wait for the last of what a worker wrote, once it has ended: what has left its
/// process group may go on writing.
const WORDS_WITHIN: Duration = Duration::from_secs(1);

/// Counts lines, second by second.
#[derive(Debug)]
pub(super) struct LineBudget {
    /// When the present second began, and the lines in it.
    second: Mutex<(Instant, u32)>,
}

impl Default for LineBudget {
    fn default() -> Self {
        LineBudget { second: Mutex::new((Instant::now(), 0)) }
    }
}

impl LineBudget {
    /// Counts one more, and returns how many there are in this second.
    pub(super) fn take(&self) -> u32 {
        // A panic under the lock leaves a number.
        let mut second = self.second.lock().unwrap_or_else(PoisonError::into_inner);
        if second.0.elapsed() >= Duration::from_secs(1) {
            *second = (Instant::now(), 0);
        }
        second.1 = second.1.saturating_add(1);
        second.1
    }
}

/// Reads all that a worker writes until it has ended, and returns the last of it. `log` bounds what is
/// logged of it.
pub(super) async fn read(
    pool: Arc<str>,
    worker: WorkerId,
    from: impl AsyncRead + Unpin,
    ended: impl Future<Output = ()>,
    log: &LineBudget,
) -> String {
    let mut words = Words {
        pool,
        worker,
        line: Vec::with_capacity(LINE_MAX),
        kept: VecDeque::with_capacity(KEPT_MAX + LINE_MAX),
        log,
    };
    {
        let all = words.read_all(from);
        tokio::pin!(all);
        tokio::select! {
            () = &mut all => {}
            () = ended => drop(timeout(WORDS_WITHIN, all).await),
        }
    }
    words.note_line();
    String::from_utf8_lossy(words.kept.make_contiguous()).trim().to_owned()
}

/// What one worker has written.
struct Words<'a> {
    pool: Arc<str>,
    worker: WorkerId,
    /// The line that has begun.
    line: Vec<u8>,
    kept: VecDeque<u8>,
    log: &'a LineBudget,
}

impl Words<'_> {
    async fn read_all(&mut self, mut from: impl AsyncRead + Unpin) {
        let mut piece = [0; LINE_MAX];
        // An error is as good as the end: there is nothing more to read.
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            for byte in &piece[..length] {
                if *byte == b'\n' || self.line.len() == LINE_MAX {
                    self.note_line();
                }
                if *byte != b'\n' {
                    self.line.push(*byte);
                }
            }
            self.kept.extend(&piece[..length]);
            self.kept.drain(..self.kept.len().saturating_sub(KEPT_MAX));
        }
    }

    /// Logs the line that has begun, and begins another one.
    fn note_line(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        if !text.trim().is_empty() {
            let (pool, worker) = (&self.pool, self.worker.0);
            match self.log.take() {
                // Quoted: it may repeat what a client has sent.
                ..=LINES_MAX => tracing::warn!(pool = %pool, worker, "a worker wrote: {text:?}"),
                n if n == LINES_MAX + 1 => tracing::warn!(
                    pool = %pool,
                    worker,
                    "a worker writes too much: the rest of this second is not logged"
                ),
                _ => {}
            }
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_of_it_is_kept_and_no_more() {
        let text = format!("{}\nthe end\n", "a long line".repeat(1000));
        let last =
            read("shop".into(), WorkerId(1), text.as_bytes(), std::future::pending(), &LineBudget::default())
                .await;
        assert!(last.ends_with("line\nthe end") && last.len() <= KEPT_MAX, "{last}");
    }

    #[tokio::test]
    async fn what_was_written_is_known_even_if_somebody_keeps_it_open() {
        let (mut write, read_end) = tokio::io::duplex(64);
        tokio::io::AsyncWriteExt::write_all(&mut write, b"no database").await.unwrap();
        let last = read("shop".into(), WorkerId(1), read_end, async {}, &LineBudget::default()).await;
        assert_eq!(last, "no database");
        drop(write);
    }
}

//! A generous limit for ungated requests: at most as many are in the application at once as it
//! completes within a second.
//!
//! Requests for static assets and health checks belong to no session and wait for nobody. But the
//! application may be what answers them, so without any limit a stranger could have it work on
//! hundreds of them at once. The limit opens by completions: where as many end within a second as
//! it allows, it doubles; where much fewer do, it halves, down to where it began. A site that
//! answers them quickly therefore never reaches it, at whatever rate they come.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How far a limit opens.
const LIMIT_MAX: usize = 4096;
/// Requests that wait at a limit at once, ...
const WAITING_MAX: usize = 1024;
/// ... and the time over which completions are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// One such limit.
#[derive(Debug)]
pub(crate) struct UngatedLimit {
    least: usize,
    patience: Duration,
    permits: Semaphore,
    waiting: AtomicUsize,
    done: AtomicU64,
    /// Permits that end with the requests that have them, as the limit was lowered.
    surplus: AtomicUsize,
    window: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    limit: usize,
    begun: Instant,
    done: u64,
}

/// The right to be in the application. Dropped, it goes to the next.
#[derive(Debug)]
pub(crate) struct UngatedPermit(Arc<UngatedLimit>);

struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl UngatedLimit {
    /// Returns a limit that is never below `least`, at which a request waits for at most
    /// `patience`.
    pub(crate) fn new(least: usize, patience: Duration) -> Arc<Self> {
        Arc::new(UngatedLimit {
            least,
            patience,
            permits: Semaphore::new(least),
            waiting: AtomicUsize::new(0),
            done: AtomicU64::new(0),
            surplus: AtomicUsize::new(0),
            window: Mutex::new(Window { limit: least, begun: Instant::now(), done: 0 }),
        })
    }

    /// Lets a request in, at once or after a wait; `None` where it waited for too long, or too many
    /// wait.
    pub(crate) async fn enter(self: &Arc<Self>) -> Option<UngatedPermit> {
        if let Ok(permit) = self.permits.try_acquire() {
            permit.forget();
            return Some(UngatedPermit(Arc::clone(self)));
        }
        self.wait().await
    }

    async fn wait(self: &Arc<Self>) -> Option<UngatedPermit> {
        let waits = Waits(&self.waiting);
        if self.waiting.fetch_add(1, Relaxed) >= WAITING_MAX {
            return None;
        }
        self.look();
        let permit = tokio::time::timeout(self.patience, self.permits.acquire()).await;
        drop(waits);
        permit.ok()?.ok()?.forget();
        Some(UngatedPermit(Arc::clone(self)))
    }

    /// Opens or narrows the limit by what has ended since the last time. Only where somebody waits.
    fn look(&self) {
        // Another thread is at it just now.
        let Ok(mut window) = self.window.try_lock() else { return };
        let (now, done) = (Instant::now(), self.done.load(Relaxed));
        let ended = usize::try_from(done - window.done).unwrap_or(usize::MAX);
        let is_over = now.duration_since(window.begun) > WINDOW;
        let limit = window.limit;
        if !is_over && ended < limit {
            return;
        }
        *window = Window { limit, begun: now, done };
        if !is_over {
            window.limit = (2 * limit).min(LIMIT_MAX.max(self.least));
            self.permits.add_permits(window.limit - limit);
        } else if 2 * ended < limit {
            window.limit = (limit / 2).max(self.least);
            self.surplus.fetch_add(limit - window.limit, Relaxed);
        }
    }
}

impl Drop for UngatedPermit {
    fn drop(&mut self) {
        let limit = &*self.0;
        limit.done.fetch_add(1, Relaxed);
        let is_surplus = limit.surplus.load(Relaxed) > 0
            && limit.surplus.fetch_update(Relaxed, Relaxed, |surplus| surplus.checked_sub(1)).is_ok();
        if !is_surplus {
            limit.permits.add_permits(1);
        }
        if limit.waiting.load(Relaxed) > 0 {
            limit.look();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    const PATIENCE: Duration = Duration::from_secs(20);

    async fn enter(limit: &Arc<UngatedLimit>, count: usize) -> Vec<UngatedPermit> {
        let mut passes = vec![];
        for _ in 0..count {
            passes.push(limit.enter().await.expect("there is room"));
        }
        passes
    }

    #[tokio::test]
    async fn one_too_many_waits_for_another_to_end() {
        let limit = UngatedLimit::new(4, PATIENCE);
        let mut passes = enter(&limit, 4).await;
        let mut next = pin!(limit.enter());
        assert!(futures_ready(&mut next).await.is_none(), "it waits");
        passes.pop();
        assert!(next.await.is_some());
    }

    async fn futures_ready<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn where_nothing_ends_the_wait_is_short() {
        let limit = UngatedLimit::new(4, Duration::from_millis(10));
        let _passes = enter(&limit, 4).await;
        assert!(limit.enter().await.is_none());
    }

    #[tokio::test]
    async fn what_ends_quickly_opens_the_limit() {
        let limit = UngatedLimit::new(4, PATIENCE);
        let held = enter(&limit, 3).await;
        // Each waits for the one before: the limit is full all the time, and all of it is done
        // within a second on any machine, or again.
        for _ in 0..1000 {
            let last = limit.enter().await.expect("there is room");
            let mut next = pin!(limit.enter());
            if futures_ready(&mut next).await.is_some_and(|pass| pass.is_some()) {
                return drop(held);
            }
            drop(last);
            next.await.expect("there is room");
        }
        panic!("a thousand ended one after another, and never were five there at once");
    }

    #[tokio::test]
    async fn too_many_do_not_even_wait() {
        let limit = UngatedLimit::new(1, PATIENCE);
        let _pass = enter(&limit, 1).await;
        let waiting: Vec<_> = (0..WAITING_MAX)
            .map(|_| {
                let limit = Arc::clone(&limit);
                tokio::spawn(async move { limit.enter().await })
            })
            .collect();
        while limit.waiting.load(Relaxed) < WAITING_MAX {
            tokio::task::yield_now().await;
        }
        assert!(limit.enter().await.is_none());
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

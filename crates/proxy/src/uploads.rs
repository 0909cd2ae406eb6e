//! Requests in the application whose clients are waited for in the middle of their bodies. They hold no slot, so how many there may be is bounded
//! here: beyond, the slowest of them is broken off.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// All that there are.
#[derive(Debug)]
pub(crate) struct Uploads {
    under_way: Mutex<Vec<Arc<Pace>>>,
    max: usize,
}

/// One of them. Dropped, it is none of them any more.
#[derive(Debug)]
pub(crate) struct Upload {
    all: Arc<Uploads>,
    pace: Arc<Pace>,
}

#[derive(Debug)]
struct Pace {
    /// What has come of its body, and since when its client is waited for, waits before that put together.
    bytes: AtomicU64,
    since: Instant,
    is_broken_off: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Uploads {
    /// Returns the place for at most `max` of them.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Uploads { under_way: Mutex::default(), max })
    }

    /// Adds a request of whose body so many bytes have come after waits of so long. Where there are as many as may be the slowest has to go; `None`: it is
    /// this one.
    pub(crate) fn begin(self: &Arc<Self>, bytes: u64, waited: Duration) -> Option<Upload> {
        let now = Instant::now();
        let pace = Arc::new(Pace {
            bytes: AtomicU64::new(bytes),
            since: now.checked_sub(waited).unwrap_or(now),
            is_broken_off: AtomicBool::new(false),
            waker: Mutex::default(),
        });
        let mut under_way = self.lock();
        if under_way.len() >= self.max {
            let rates = under_way.iter().map(|pace| pace.rate(now));
            let (slowest, least) = rates.enumerate().min_by(|one, other| one.1.total_cmp(&other.1))?;
            if least > pace.rate(now) {
                return None;
            }
            under_way.swap_remove(slowest).break_off();
        }
        under_way.push(Arc::clone(&pace));
        drop(under_way);
        Some(Upload { all: Arc::clone(self), pace })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Pace>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upload {
    /// Takes note of what has come since.
    pub(crate) fn note(&self, bytes: u64) {
        self.pace.bytes.store(bytes, Relaxed);
    }

    /// Is ready once it has to go.
    pub(crate) fn poll_broken_off(&self, cx: &mut Context<'_>) -> Poll<()> {
        *self.pace.waker() = Some(cx.waker().clone());
        if self.pace.is_broken_off.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.all.lock().retain(|pace| !Arc::ptr_eq(pace, &self.pace));
    }
}

impl Pace {
    /// Returns bytes a second, up to now.
    fn rate(&self, now: Instant) -> f64 {
        self.bytes.load(Relaxed) as f64 / (now - self.since).as_secs_f64().max(0.001)
    }

    fn break_off(&self) {
        self.is_broken_off.store(true, Relaxed);
        if let Some(waker) = self.waker().take() {
            waker.wake();
        }
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_the_slowest_has_to_go() {
        let all = Uploads::new(2);
        let mut cx = Context::from_waker(Waker::noop());
        let second = Duration::from_secs(1);
        let slow = all.begin(10, second).unwrap();
        let quick = all.begin(1000, second).unwrap();
        assert!(all.begin(5, second).is_none(), "slower than all others");
        let other = all.begin(500, second).unwrap();
        assert!(slow.poll_broken_off(&mut cx).is_ready());
        assert!(quick.poll_broken_off(&mut cx).is_pending() && other.poll_broken_off(&mut cx).is_pending());
        other.note(100_000);
        drop(all.begin(5000, second).unwrap());
        assert!(quick.poll_broken_off(&mut cx).is_ready(), "it has become the slowest");
        assert!(other.poll_broken_off(&mut cx).is_pending());
        drop((slow, quick, other));
        assert_eq!(all.lock().len(), 0);
    }
}

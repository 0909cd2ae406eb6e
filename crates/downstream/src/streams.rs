//! What only requests of one HTTP/2 connection do: a client may close the window of one of them,
//! which the connection's bytes do not show, and may reset any number of them.
//!
//! The library gives each request a task. Here each is watched: a client that takes nothing of an
//! answer for too long has its stream reset, and with it go the answer and the connection to the
//! application. A client that resets far more streams than it lets end has its connection closed.
//!
//! The task ends when the library has the last piece of an answer, whatever the window: a single
//! byte of it is enough. What is not taken then can no longer be reset, but it is counted: a client
//! that leaves it unread for too long is sent a goodbye and has its connection closed.

use crate::budget::Budget;
use crate::deadline::Deadline;
use hyper::rt::Executor;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long a client may take nothing while no more memory may be held for anybody.
const STALL_MAX_PRESSED: Duration = Duration::from_secs(5);

/// Requests that a client may reset at once, and per second after that, beside one for each that it
/// lets end. A browser that leaves a page resets what is under way, and one that searches while its
/// user types does so a few times per second.
const RESETS_BURST: f64 = 200.0;
const RESETS_PER_SECOND: f64 = 20.0;

tokio::task_local! {
    static TAKING: Arc<Delivery>;
}

/// Runs the requests of one connection.
#[derive(Clone, Debug)]
pub struct Streams(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// How long a client may take nothing of an answer.
    stall_max: Duration,
    budget: Arc<Budget>,
    resets: Mutex<Resets>,
    too_many: Notify,
    untaken: UnreadAnswers,
}

/// Answers whose requests have ended before all of them was written, by the period in which they
/// did.
#[derive(Default, Debug)]
struct UnreadAnswers {
    period: AtomicUsize,
    /// Of even periods and of odd ones: there are never more than two.
    answers: [AtomicUsize; 2],
}

/// A piece of an answer that is not written yet.
#[derive(Debug)]
pub struct UnwrittenPiece(Arc<Delivery>);

/// How a client takes one answer.
#[derive(Debug)]
pub struct Delivery {
    shared: Arc<Shared>,
    begin: Instant,
    /// When it was given a piece that it must take before the next, in nanoseconds since `begin`.
    /// 0: it is not waited for.
    since: AtomicU64,
    has_all: AtomicBool,
    /// Pieces that are not written yet, and one more until the request has ended, ...
    unwritten: AtomicUsize,
    /// ... which it has in this period.
    ended_in: AtomicUsize,
    /// Sides of the request that wait for the client: its body, its answer.
    waits: AtomicU32,
}

/// How many requests a client has reset recently.
#[derive(Debug)]
struct Resets {
    level: f64,
    at: Instant,
}

impl Streams {
    /// Returns what runs the requests of one connection whose client may take nothing for
    /// `stall_max`.
    pub fn new(stall_max: Duration, budget: Arc<Budget>) -> Self {
        let resets = Mutex::new(Resets { level: 0.0, at: Instant::now() });
        let (too_many, untaken) = (Notify::new(), UnreadAnswers::default());
        Streams(Arc::new(Shared { stall_max, budget, resets, too_many, untaken }))
    }

    /// Returns once the client has left the end of an answer unread for longer than it may, after
    /// at most twice that time. What is unread while writes wait for the client, as `is_written`
    /// says, does not count: that has bounds of its own.
    pub async fn left_lying(&self, is_written: impl Fn() -> bool) {
        loop {
            tokio::time::sleep(self.0.stall_max).await;
            if is_written() && self.0.untaken.is_old() {
                return;
            }
        }
    }

    /// Returns how the client takes an answer that is still to come.
    pub fn taking(&self) -> Arc<Delivery> {
        Arc::new(Delivery {
            shared: Arc::clone(&self.0),
            begin: Instant::now(),
            since: AtomicU64::new(0),
            has_all: AtomicBool::new(false),
            unwritten: AtomicUsize::new(1),
            ended_in: AtomicUsize::new(0),
            waits: AtomicU32::new(0),
        })
    }

    /// Returns once the client has reset more than it may.
    pub async fn too_many_resets(&self) {
        self.0.too_many.notified().await;
    }
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let (shared, taking) = (Arc::clone(&self.0), self.taking());
        tokio::spawn(async move {
            shared.run(&taking, TAKING.scope(Arc::clone(&taking), future)).await;
            shared.note_end(Instant::now(), taking.has_all.load(Relaxed));
            taking.end();
        });
    }
}

impl Shared {
    /// Returns once `future` is ready, or its client has taken nothing for too long.
    async fn run(&self, taking: &Delivery, future: impl Future<Output = ()>) {
        let mut future = pin!(future);
        let (mut deadline, mut armed, mut is_pressed) = (Deadline::default(), 0, true);
        poll_fn(|cx| {
            if future.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let since = taking.since.load(Relaxed);
            if since != armed {
                (armed, is_pressed) = (since, true);
                deadline.set((since > 0).then(|| self.stall_max.min(STALL_MAX_PRESSED)));
            }
            while deadline.poll(cx).is_ready() {
                if !is_pressed || self.budget.is_used_up() || self.stall_max <= STALL_MAX_PRESSED {
                    return Poll::Ready(());
                }
                is_pressed = false;
                deadline.set(Some(self.stall_max - STALL_MAX_PRESSED));
            }
            Poll::Pending
        })
        .await;
    }

    fn note_end(&self, now: Instant, has_all: bool) {
        let is_too_many = self.resets.lock().unwrap_or_else(PoisonError::into_inner).note(now, has_all);
        if is_too_many {
            self.too_many.notify_one();
        }
    }
}

impl UnreadAnswers {
    /// Enters an answer, and returns in which period.
    fn enter(&self) -> usize {
        let period = self.period.load(Relaxed);
        self.answers[period % 2].fetch_add(1, Relaxed);
        period
    }

    fn leave(&self, period: usize) {
        self.answers[period % 2].fetch_sub(1, Relaxed);
    }

    /// Begins a period, unless there are still answers of the one before the last. Returns whether
    /// there are.
    fn is_old(&self) -> bool {
        let next = self.period.load(Relaxed).wrapping_add(1);
        if self.answers[next % 2].load(Relaxed) > 0 {
            return true;
        }
        self.period.store(next, Relaxed);
        false
    }
}

impl Drop for UnwrittenPiece {
    fn drop(&mut self) {
        self.0.note_written();
    }
}

impl Resets {
    /// Takes note of the end of a request, and returns whether that is one reset too many.
    fn note(&mut self, now: Instant, has_all: bool) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        let change = if has_all { -1.0 } else { 1.0 };
        self.level = (self.level - passed * RESETS_PER_SECOND).max(0.0) + change;
        self.level = self.level.max(0.0);
        self.at = now;
        self.level > RESETS_BURST
    }
}

impl Delivery {
    /// Returns that of the request under way, if it came over HTTP/2.
    pub fn current() -> Option<Arc<Delivery>> {
        TAKING.try_with(Arc::clone).ok()
    }

    /// Takes note that one side of the request waits for the client. Returns whether it is the
    /// first.
    pub fn begin_wait(&self) -> bool {
        self.waits.fetch_add(1, Relaxed) == 0
    }

    /// Takes note that one side of the request no longer waits for the client. Returns whether it
    /// was the last.
    pub fn end_wait(&self) -> bool {
        self.waits.fetch_sub(1, Relaxed) == 1
    }

    /// Returns what the pieces of the answer count in.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.shared.budget
    }

    /// Returns what to keep with a piece of the answer until it is written.
    pub fn give(self: &Arc<Self>) -> UnwrittenPiece {
        self.unwritten.fetch_add(1, Relaxed);
        UnwrittenPiece(Arc::clone(self))
    }

    /// Takes note that the request has ended: nothing but what is written of its answer is known
    /// from now on.
    fn end(&self) {
        self.ended_in.store(self.shared.untaken.enter(), Relaxed);
        self.note_written();
    }

    fn note_written(&self) {
        if self.unwritten.fetch_sub(1, AcqRel) == 1 {
            self.shared.untaken.leave(self.ended_in.load(Relaxed));
        }
    }

    /// Takes note that the client was given a piece of the answer.
    pub fn gave(&self) {
        let nanos = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.since.store(nanos.max(1), Relaxed);
    }

    /// Takes note that it is the application who is waited for.
    pub fn waits_for_more(&self) {
        self.since.store(0, Relaxed);
    }

    /// Takes note that the client was given all of the answer.
    pub fn gave_all(&self) {
        self.has_all.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_leaves_lying_is_found_after_a_period_and_before_the_end_of_the_next() {
        let untaken = UnreadAnswers::default();
        for _ in 0..5 {
            let (slow, quick) = (untaken.enter(), untaken.enter());
            untaken.leave(quick);
            assert!(!untaken.is_old(), "it has just begun");
            let other = untaken.enter();
            untaken.leave(slow);
            assert!(!untaken.is_old(), "it was taken within a period");
            assert!(untaken.is_old(), "the other was not");
            assert!(untaken.is_old());
            untaken.leave(other);
        }
    }

    #[test]
    fn resets_are_bounded_and_what_ends_makes_up_for_them() {
        let begin = Instant::now();
        let at = |millis: u64| begin + Duration::from_millis(millis);
        let fresh = || Resets { level: 0.0, at: begin };
        let mut attacker = fresh();
        let until = (1..1000).find(|n| attacker.note(at(5 * n), false));
        assert!(until.is_some_and(|n| (200..230).contains(&n)), "{until:?}");
        let mut typing = fresh();
        assert!((1..10_000).all(|n| !typing.note(at(100 * n), false)), "ten a second");
        let mut proxy = fresh();
        assert!((1..10_000).all(|n| !proxy.note(at(n), n % 2 == 0)), "as many end");
    }
}

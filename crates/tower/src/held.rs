//! The slot of an answer whose body is under way.
//!
//! A slot stands for the work of the service. It is given back with the last piece that the service makes,
//! though the client may not have taken it yet; and before that where the client is waited for, as the
//! gateway does with an answer that it cannot keep: the service makes no piece before the last one is
//! taken. The slot is not taken again.

use bytes::Bytes;
use http_body::Frame;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use suimon_proxy::{Admitted, BodyEnd, CLIENT_TIME_MAX, STREAM_AFTER};
use tokio::runtime::Handle;
use tokio::time::Instant;

/// Holds the slot for a body. Dropped with it before its end, the request is abandoned.
#[derive(Debug)]
pub(crate) struct Held(Arc<Mutex<Work>>);

#[derive(Debug)]
struct Work {
    /// `None`: the slot is given back.
    admitted: Option<Box<Admitted>>,
    end: BodyEnd,
    /// How long the client was waited for, ...
    client_time: Duration,
    /// ... and since when it is, unless it is the service that is waited for.
    waits_since: Option<Instant>,
}

impl Held {
    /// Returns the hold on a slot whose answer's head is there.
    pub(crate) fn new(admitted: Box<Admitted>, end: BodyEnd) -> Self {
        let (client_time, waits_since) = (Duration::ZERO, Some(Instant::now()));
        Held(Arc::new(Mutex::new(Work { admitted: Some(admitted), end, client_time, waits_since })))
    }

    /// Takes note that the next piece is asked for.
    pub(crate) fn asked(&self) {
        let mut work = lock(&self.0);
        work.client_time = work.waited(Instant::now());
        work.waits_since = None;
    }

    /// Takes note of what the service has made; `is_last`: it says that nothing follows. Returns whether
    /// something may follow for which the slot is held.
    pub(crate) fn made<E>(&self, piece: Option<&Result<Frame<Bytes>, E>>, is_last: bool) -> bool {
        let mut work = lock(&self.0);
        match piece {
            Some(Err(_)) => {
                if let Some(admitted) = work.admitted.take() {
                    admitted.fail();
                }
            }
            Some(Ok(frame)) => match frame.data_ref() {
                Some(data) => work.end.passed(data.len()),
                // Trailers: nothing comes behind them.
                None => work.end.end(),
            },
            None => work.end.end(),
        }
        if is_last || work.end.is_over() {
            let client_time = work.client_time;
            work.give_back(client_time);
        }
        work.waits_since = Some(Instant::now());
        work.admitted.is_some()
    }

    /// Gives the slot back once it is not the service that is waited for, or when the answer has become a
    /// stream. Without a runtime nobody looks on.
    pub(crate) fn watch(&self) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(watch(Arc::downgrade(&self.0), Instant::now() + STREAM_AFTER));
        }
    }
}

impl Work {
    fn waited(&self, now: Instant) -> Duration {
        self.client_time
            + self.waits_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn give_back(&mut self, client_time: Duration) {
        if let Some(admitted) = self.admitted.take() {
            admitted.end_without(client_time);
        }
    }
}

async fn watch(work: Weak<Mutex<Work>>, stream_at: Instant) {
    let mut pause = CLIENT_TIME_MAX;
    loop {
        tokio::time::sleep(pause).await;
        // The body is gone, or has ended.
        let Some(work) = work.upgrade() else { return };
        let mut work = lock(&work);
        let now = Instant::now();
        let waited = work.waited(now);
        if waited >= CLIENT_TIME_MAX || now >= stream_at {
            work.give_back(waited);
        }
        if work.admitted.is_none() {
            return;
        }
        // While the service is waited for that time stands still.
        pause = if work.waits_since.is_some() { CLIENT_TIME_MAX - waited } else { CLIENT_TIME_MAX };
    }
}

fn lock(work: &Mutex<Work>) -> MutexGuard<'_, Work> {
    // What is inside is whole after each statement.
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

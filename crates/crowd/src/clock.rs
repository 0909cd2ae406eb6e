//! The time of a run.

use suimon_model::Instant;

/// Time since the run began.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    origin: tokio::time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock { origin: tokio::time::Instant::now() }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::ORIGIN + self.origin.elapsed()
    }

    pub(crate) async fn sleep_until(&self, at: Instant) {
        let since_origin = at.since(Instant::ORIGIN);
        match self.origin.checked_add(since_origin) {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

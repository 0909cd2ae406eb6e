//! A request that waits: what will become of it, and how it calls once it can be asked.

use crate::queue::Queue;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::task::{Context, Poll, Wake, Waker};
use suimon_proxy::Entered;

/// See the module. Dropped, it has left.
pub(crate) struct Waiting {
    entering: Pin<Box<dyn Future<Output = Entered> + Send>>,
    /// Whether it is a `HEAD`.
    to_head: bool,
    call: Arc<Call>,
}

/// How a request calls.
#[derive(Debug)]
pub(crate) struct Call {
    number: u64,
    /// Since it was asked last. One call is enough.
    is_made: AtomicBool,
    queue: Arc<Queue>,
}

impl Waiting {
    pub(crate) fn new(
        entering: impl Future<Output = Entered> + Send + 'static,
        number: u64,
        to_head: bool,
        queue: &Arc<Queue>,
    ) -> Self {
        let call = Call { number, is_made: AtomicBool::new(false), queue: Arc::clone(queue) };
        Waiting { entering: Box::pin(entering), to_head, call: Arc::new(call) }
    }

    /// Asks what has become of it. If that is open it calls later, perhaps before this returns.
    pub(crate) fn ask(&mut self) -> Poll<Entered> {
        // It sees what was done before a call that this takes back.
        self.call.is_made.swap(false, AcqRel);
        let waker = Waker::from(Arc::clone(&self.call));
        self.entering.as_mut().poll(&mut Context::from_waker(&waker))
    }

    pub(crate) const fn to_head(&self) -> bool {
        self.to_head
    }

    pub(crate) const fn call(&self) -> &Arc<Call> {
        &self.call
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Nobody asks it any more. What it lets go of would make it call.
        self.call.is_made.store(true, Release);
    }
}

impl Call {
    /// Returns whether it has called since it was asked last.
    pub(crate) fn is_made(&self) -> bool {
        self.is_made.load(Acquire)
    }
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_made.swap(true, AcqRel) {
            self.queue.call(self.number);
        }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("call", &self.call).finish_non_exhaustive()
    }
}

//! The body of a request, as the service within reads it.
//!
//! A slot stands for the work of the service. While the client has to be waited for the slot is given back, and it is
//! taken again before the service gets the end of the body, as the gateway does with bodies that it sends on.

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use suimon_proxy::{Admitted, UPLOAD_TIME_MAX, UploadSlot};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep_until};

/// How long the end of a body waits for the slot, at most. Those that have the slots may wait for what its service holds,
/// such as a permit of a limit within: then it goes on, and the gate counts it once there is a slot.
const RESUME_MAX: Duration = Duration::from_secs(5);

pin_project! {
    /// The body of a request that was let in: the client's own, without what only the gate or a proxy may say
    /// in its trailers.
    pub struct RequestBody<B: Body> {
        #[pin]
        body: B,
        // Until the end of the body.
        upload: Option<Upload>,
        // What came last, until the slot is held again.
        end: Option<Piece<B>>,
    }
}

type Piece<B> = Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>;

/// The slot of the request, and for how long it was held for the client alone.
struct Upload {
    slot: UploadSlot,
    waited: Duration,
    /// Since when the client is waited for, and what tells that it was for too long.
    wait: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<B: Body> RequestBody<B> {
    /// Returns the body of what is let in.
    pub(crate) fn new(body: B, admitted: &Admitted) -> Self {
        // Without a runtime there is no clock to look at.
        let is_timed = !body.is_end_stream() && Handle::try_current().is_ok();
        let slot = is_timed.then(|| admitted.upload()).flatten();
        let upload = slot.map(|slot| Upload { slot, waited: Duration::ZERO, wait: None });
        RequestBody { body, upload, end: None }
    }

    /// Returns the client's own body, whose trailers say whatever the client likes, and whose client is waited for
    /// with the slot held.
    pub fn into_inner(self) -> B {
        self.body
    }
}

impl<B: Body> Body for RequestBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        if this.end.is_none() {
            let Poll::Ready(mut piece) = this.body.as_mut().poll_frame(cx) else {
                if this.upload.as_mut().is_some_and(|upload| !upload.waits(cx)) {
                    *this.upload = None;
                }
                return Poll::Pending;
            };
            let mut is_end = this.body.is_end_stream() || !matches!(piece, Some(Ok(_)));
            if let Some(Ok(frame)) = &mut piece
                && let Some(trailers) = frame.trailers_mut()
            {
                Admitted::strip_request_trailers(trailers);
                is_end = true;
            }
            if let Some(upload) = this.upload.as_mut() {
                upload.came();
            }
            if !is_end || this.upload.is_none() {
                return Poll::Ready(piece);
            }
            *this.end = Some(piece);
        }
        if let Some(upload) = this.upload.as_mut() {
            ready!(upload.poll_may_end(cx));
            *this.upload = None;
        }
        Poll::Ready(this.end.take().flatten())
    }

    fn is_end_stream(&self) -> bool {
        self.end.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        if let Some(Some(Ok(frame))) = &self.end
            && let Some(data) = frame.data_ref()
        {
            let ahead = bytes::Buf::remaining(data) as u64;
            if let Some(upper) = hint.upper() {
                hint.set_upper(upper.saturating_add(ahead));
            }
            hint.set_lower(hint.lower().saturating_add(ahead));
        }
        hint
    }
}

impl Upload {
    /// Takes note that the client is waited for. Returns false if the request has no slot any more.
    fn waits(&mut self, cx: &mut Context<'_>) -> bool {
        // A body may be read where no clock is.
        if self.slot.is_suspended() || self.wait.is_none() && Handle::try_current().is_err() {
            return true;
        }
        let (since, enough) = self.wait.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + UPLOAD_TIME_MAX.saturating_sub(self.waited))))
        });
        if enough.as_mut().poll(cx).is_pending() {
            return true;
        }
        let waited = self.waited + since.elapsed();
        self.wait = None;
        self.slot.suspend(waited)
    }

    /// Is ready once the service may have the end of the body.
    fn poll_may_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.slot.poll_resumed(cx).is_ready() || Handle::try_current().is_err() {
            return Poll::Ready(());
        }
        let (_, enough) = self.wait.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + RESUME_MAX)))
        });
        enough.as_mut().poll(cx)
    }

    /// Takes note that the client is waited for no more.
    fn came(&mut self) {
        if let Some((since, _)) = self.wait.take() {
            self.waited += since.elapsed();
        }
    }
}

impl<B: Body> fmt::Debug for RequestBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").finish_non_exhaustive()
    }
}

//! A request's body on its way to the application, and the part of it that is read before the gate
//! is asked.
//!
//! A slot stands for the application's time, not the client's: so up to a bound the body is read
//! ahead and replayed later, and only then a slot is asked for. The exception is a client that
//! expects `100 Continue` and may have to wait: reading would request a body that may not be
//! wanted.
//!
//! Nor does the client hold a worker of the application. A request with a body of declared length
//! whose client has to be waited for gives its slot back after admission; the body is kept until it
//! is whole or no more of it may be kept, and only then the application is asked. A body of
//! undeclared length, which may be a stream, is sent on as it comes, unless the application was
//! recently stuck because of such bodies ([`crate::uploads`]). What needs no slot is kept, declared
//! or not, before it takes one of the places it has instead.
//!
//! However it is read, its client must keep a pace: no long pause, a least rate, and a longest
//! total time.

mod fault;
mod progress;
mod rate;

pub use fault::BodyFault;
pub use rate::BodyRateLimits;

use crate::budget::Budget;
use crate::charge::{RouteActivity, Slot, SlotCharge};
use crate::connections::ClientWait;
use crate::deadline::Deadline;
use crate::spool::{BodyKind, PIECE_BYTES, PieceRead, Spool, Spools};
use crate::uploads::{Sender, Upload, Uploads};
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use progress::Progress;
use std::collections::VecDeque;
use std::fmt;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use suimon_message::headers;
use suimon_message::validate::RequestFault;
use tokio::time::Instant;

/// How long a client may be waited for while its request holds a slot, all of its body together.
pub const CLIENT_TIME_MAX: Duration = Duration::from_millis(250);

/// The part of a body that shows how fast its client sends.
const TELLING_BYTES: usize = 256 << 10;

/// A request body as it is sent on.
#[derive(Debug)]
pub struct RequestBody {
    /// `None`: there is no body, or it is read elsewhere.
    inner: Option<Box<Inner>>,
    is_elsewhere: bool,
}

#[derive(Debug)]
struct Inner {
    early: VecDeque<Bytes>,
    early_bytes: usize,
    /// What follows it, as far as that is buffered.
    kept: Option<Box<BufferedRest>>,
    /// The budget that both count in, apart from what is in a file.
    budget: Arc<Budget>,
    /// What came behind the body, to be sent on behind it.
    trailers: Option<HeaderMap>,
    rest: Incoming,
    rest_ended: bool,
    /// Bytes that are still to come, where that was declared.
    declared: Option<u64>,
    /// Bytes that may still come.
    left: u64,
    pace: BodyRateLimits,
    progress: Progress,
    client: ClientWait,
    /// Whether the client may be silent for as long as it likes.
    unhurried: Arc<AtomicBool>,
    stall_deadline: Deadline,
    /// The slot that the request holds while the rest of its body is sent on.
    charge: Option<Box<SlotCharge>>,
}

/// Which bodies are buffered until they are whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferPolicy {
    /// Those that do not come as quickly as they began.
    Slow,
    /// Those that are not complete at once: how fast they began says nothing about the client, as
    /// where the request was held, or is not believed.
    All,
    /// The same, but possible streams only while the application was stuck recently.
    WhileWary,
}

/// The buffered part of a slow client's body: first what is in a file, then what is not there yet.
#[derive(Default)]
struct BufferedRest {
    spool: Option<Arc<Spool>>,
    written: u64,
    read: u64,
    reading: Option<PieceRead>,
    tail: VecDeque<Bytes>,
    tail_bytes: usize,
}

impl RequestBody {
    /// Returns the body that comes in over `rest` at this pace: at most `bytes_max`. What of it is
    /// read ahead counts in `budget`. `client`: whether it waits.
    pub fn new(
        rest: Incoming,
        bytes_max: Option<u64>,
        pace: BodyRateLimits,
        budget: &Arc<Budget>,
        client: impl FnOnce() -> ClientWait,
    ) -> Self {
        if rest.is_end_stream() {
            return RequestBody { inner: None, is_elsewhere: false };
        }
        RequestBody {
            is_elsewhere: false,
            inner: Some(Box::new(Inner {
                early: VecDeque::new(),
                early_bytes: 0,
                kept: None,
                budget: Arc::clone(budget),
                trailers: None,
                declared: rest.size_hint().exact(),
                rest,
                rest_ended: false,
                left: bytes_max.unwrap_or(u64::MAX),
                pace,
                progress: Progress::default(),
                client: client(),
                unhurried: Arc::default(),
                stall_deadline: Deadline::default(),
                charge: None,
            })),
        }
    }

    /// Returns the body of a request whose body others read: nothing can be known of it.
    pub const fn elsewhere() -> Self {
        RequestBody { inner: None, is_elsewhere: true }
    }

    /// Returns a flag to set if the body turns out to be one side of a conversation: its client may
    /// then be silent. `None`: there is no body.
    pub fn unhurried(&self) -> Option<Arc<AtomicBool>> {
        self.inner.as_ref().map(|inner| Arc::clone(&inner.unhurried))
    }

    /// Returns whether there is a body, or may be.
    pub fn is_some(&self) -> bool {
        self.inner.is_some()
    }

    /// Returns whether more of it is to come from the client.
    pub fn is_unfinished(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| !inner.rest_ended && !inner.rest.is_end_stream())
    }

    /// Returns whether its length was said beforehand: one without may be a stream.
    pub fn is_declared(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.declared.is_some())
    }

    /// Sees to it that from now on the slot of the request is held for the application only, and
    /// not for the client. Without a slot the request is among `uploads` only while its client is
    /// waited for.
    pub fn charge(
        &mut self,
        turn: Option<Box<dyn Slot>>,
        uploads: &Arc<Uploads>,
        sender: Sender,
        way: Box<dyn RouteActivity>,
    ) {
        let Some(inner) = &mut self.inner else { return };
        inner.charge = Some(Box::new(SlotCharge {
            turn,
            due: Deadline::default(),
            waits_since: None,
            before: inner.progress.waited,
            sender,
            uploads: Arc::clone(uploads),
            upload: None,
            reserved: None,
            end: None,
            way,
            asked_again: Deadline::default(),
        }));
    }

    /// Takes note that what is left of it is sent on as it comes.
    pub fn streams(&mut self) {
        if let Some(charge) = self.inner.as_mut().and_then(|inner| inner.charge.as_mut()) {
            charge.reserved = Some(charge.uploads.reserve());
        }
    }

    /// Reads ahead with the slot given back, for a body that may be asked for only now, and takes
    /// the slot again.
    pub async fn ask_for(&mut self, bytes_max: usize) -> Result<(), BodyFault> {
        let Some(inner) = &mut self.inner else { return Ok(()) };
        if let Some(charge) = &mut inner.charge {
            charge.pause(Duration::ZERO);
        }
        poll_fn(|cx| inner.poll_ahead(cx, bytes_max)).await?;
        if let Some(charge) = &mut inner.charge {
            poll_fn(|cx| charge.poll_resumed(cx)).await;
            charge.before = inner.progress.waited;
        }
        Ok(())
    }

    /// Buffers a body whose client is slow, until it is whole or no more of it may be buffered: the
    /// slot is given back meanwhile, and taken again.
    pub async fn keep(
        &mut self,
        spools: &Arc<Spools>,
        among: &Arc<Uploads>,
        sender: Sender,
        keeps: BufferPolicy,
    ) -> Result<(), BodyFault> {
        let Some(inner) = &mut self.inner else { return Ok(()) };
        if inner.rest_ended || !spools.is_on() {
            return Ok(());
        }
        let before = inner.progress.waited_by_now();
        if inner.is_quick(keeps).await? {
            return Ok(());
        }
        let client_time = inner.progress.waited_by_now().saturating_sub(before);
        if let Some(charge) = &mut inner.charge {
            charge.pause(client_time);
        }
        inner.keep(spools, among, sender, keeps).await?;
        if let Some(charge) = &mut inner.charge {
            poll_fn(|cx| charge.poll_resumed(cx)).await;
            charge.before = inner.progress.waited;
        }
        Ok(())
    }

    /// Reads until the body has ended, `bytes_max` are held, or the budget is used up. Waits for
    /// nothing where there is no body, and only for the client where there is one. May be dropped
    /// at any moment without losing anything.
    pub async fn read_ahead(&mut self, bytes_max: usize) -> Result<(), BodyFault> {
        let Some(inner) = &mut self.inner else { return Ok(()) };
        poll_fn(|cx| inner.poll_ahead(cx, bytes_max)).await
    }

    /// Reads on as [`RequestBody::read_ahead`] does, then waits for ever; returns only if the body
    /// breaks.
    pub async fn fill(&mut self, bytes_max: usize) -> BodyFault {
        match self.read_ahead(bytes_max).await {
            Ok(()) => pending().await,
            Err(fault) => fault,
        }
    }

    /// Returns the whole body, if it is no longer than `bytes_max` and comes without a break.
    pub async fn collect(&mut self, bytes_max: usize) -> Option<Vec<u8>> {
        if self.is_elsewhere {
            return None;
        }
        let mut all = Vec::new();
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await {
            let Ok(piece) = frame.ok()?.into_data() else { continue };
            if all.len() + piece.len() > bytes_max {
                return None;
            }
            all.extend_from_slice(&piece);
        }
        Some(all)
    }

    /// Reads the body to its end, its break, or past `bytes_max`, and keeps nothing of it.
    pub async fn drain(&mut self, bytes_max: usize) {
        let mut bytes = 0;
        while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > bytes_max {
                return;
            }
        }
    }
}

impl Inner {
    fn poll_ahead(&mut self, cx: &mut Context<'_>, bytes_max: usize) -> Poll<Result<(), BodyFault>> {
        while !self.rest_ended && self.early_bytes < bytes_max && !self.budget.is_used_up() {
            ready!(self.poll_early(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_early(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyFault>> {
        if let Some(piece) = ready!(self.poll_rest(cx)).transpose()? {
            self.early_bytes += piece.len();
            self.budget.hold(piece.len());
            self.early.push_back(piece);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads on for a moment, and returns whether the client need not be waited for: the body is
    /// whole, or will be within [`CLIENT_TIME_MAX`] in all if the rest comes as fast as what has
    /// come. Where the budget leaves too little to tell, it has to be waited for.
    async fn is_quick(&mut self, keeps: BufferPolicy) -> Result<bool, BodyFault> {
        let read = poll_fn(|cx| {
            // One piece is read whatever the budget holds: most bodies are no longer.
            if self.early.is_empty() {
                ready!(self.poll_early(cx))?;
            }
            self.poll_ahead(cx, TELLING_BYTES)
        });
        let Ok(read) = tokio::time::timeout(CLIENT_TIME_MAX, read).await else { return Ok(false) };
        read?;
        if self.rest_ended || self.declared == Some(0) {
            return Ok(true);
        }
        let Progress { bytes, waited, .. } = self.progress;
        let whole = bytes + self.declared.unwrap_or(0);
        let in_all = waited.as_secs_f64() * whole as f64 / bytes.max(1) as f64;
        Ok(keeps == BufferPolicy::Slow
            && bytes >= TELLING_BYTES as u64
            && in_all <= CLIENT_TIME_MAX.as_secs_f64())
    }

    /// Reads on until the body is whole, or no more of it may be buffered. Broken off where too
    /// many are buffered and this one is the slowest.
    async fn keep(
        &mut self,
        spools: &Arc<Spools>,
        among: &Arc<Uploads>,
        sender: Sender,
        keeps: BufferPolicy,
    ) -> Result<(), BodyFault> {
        let mut upload = None;
        loop {
            poll_fn(|cx| self.poll_tail(cx, upload.as_ref())).await?;
            let kept = self.kept.get_or_insert_default();
            if self.rest_ended {
                return Ok(());
            }
            if kept.spool.is_none() {
                let Progress { bytes, waited, .. } = self.progress;
                upload = among.begin(sender, bytes, waited);
                if upload.is_none() {
                    return Err(BodyFault(RequestFault::BodyTimeout));
                }
                let Some(begun) = spools.begin(BodyKind::Request, sender.origin).await else { return Ok(()) };
                kept.spool = Some(begun);
            }
            let Some(spool) = &kept.spool else { return Ok(()) };
            if !spool.write(kept.written, kept.tail.iter().cloned().collect()).await {
                return Ok(());
            }
            kept.tail.clear();
            let written = std::mem::take(&mut kept.tail_bytes);
            kept.written += written as u64;
            self.budget.release(written);
            let is_wary =
                || self.charge.as_ref().is_some_and(|it| it.uploads.is_wary(std::time::Instant::now()));
            if keeps == BufferPolicy::WhileWary && self.declared.is_none() && !is_wary() {
                return Ok(());
            }
        }
    }

    /// Reads until the body is whole or a piece is there to be written.
    fn poll_tail(&mut self, cx: &mut Context<'_>, upload: Option<&Upload>) -> Poll<Result<(), BodyFault>> {
        loop {
            let kept = self.kept.get_or_insert_default();
            let is_due = kept.tail_bytes >= PIECE_BYTES || kept.tail_bytes > 0 && self.budget.is_used_up();
            if self.rest_ended || is_due {
                return Poll::Ready(Ok(()));
            }
            let Poll::Ready(piece) = self.poll_rest(cx) else {
                let Some(upload) = upload else { return Poll::Pending };
                ready!(upload.poll_broken_off(cx));
                return Poll::Ready(Err(BodyFault(RequestFault::BodyTimeout)));
            };
            let Some(piece) = piece.transpose()? else { continue };
            if let Some(upload) = upload {
                upload.note(self.progress.bytes);
            }
            let kept = self.kept.get_or_insert_default();
            kept.tail_bytes += piece.len();
            self.budget.hold(piece.len());
            kept.tail.push_back(piece);
        }
    }

    /// Takes the next piece to send on of what came before the application was asked.
    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFault>>> {
        if let Some(piece) = self.early.pop_front() {
            self.early_bytes -= piece.len();
            self.budget.release(piece.len());
            return Poll::Ready(Some(Ok(piece)));
        }
        let Some(kept) = &mut self.kept else { return Poll::Ready(None) };
        if let Some(spool) = kept.spool.as_ref().filter(|_| kept.read < kept.written) {
            let reading = kept.reading.get_or_insert_with(|| spool.send(kept.read, kept.written));
            let read = ready!(reading.as_mut().poll(cx));
            kept.reading = None;
            let Ok(piece) = read else { return Poll::Ready(Some(Err(BodyFault(RequestFault::BrokenBody)))) };
            kept.read += piece.len() as u64;
            return Poll::Ready(Some(Ok(piece)));
        }
        kept.spool = None;
        let Some(piece) = kept.tail.pop_front() else {
            self.kept = None;
            return Poll::Ready(None);
        };
        kept.tail_bytes -= piece.len();
        self.budget.release(piece.len());
        Poll::Ready(Some(Ok(piece)))
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFault>>> {
        loop {
            let Poll::Ready(frame) = Pin::new(&mut self.rest).poll_frame(cx) else {
                self.client.begin();
                ready!(self.poll_stall_deadline(cx));
                return Poll::Ready(Some(Err(BodyFault(RequestFault::BodyTimeout))));
            };
            self.client.end();
            if let Some(since) = self.progress.waits_since.take() {
                self.progress.waited += since.elapsed();
            }
            match frame {
                Some(Ok(frame)) => {
                    let piece = match frame.into_data() {
                        Ok(piece) => piece,
                        Err(frame) => {
                            self.trailers = frame.into_trailers().ok().and_then(fit);
                            continue;
                        }
                    };
                    self.progress.bytes += piece.len() as u64;
                    self.declared = self.declared.map(|left| left.saturating_sub(piece.len() as u64));
                    match self.left.checked_sub(piece.len() as u64) {
                        Some(left) => self.left = left,
                        None => return Poll::Ready(Some(Err(BodyFault(RequestFault::BodyTooLarge)))),
                    }
                    return Poll::Ready(Some(Ok(piece)));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(BodyFault::of(&error)))),
                None => {
                    self.rest_ended = true;
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// Takes the next piece to send on. The end only while the slot is held, or where nothing else
    /// goes on.
    fn poll_charged(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFault>>> {
        loop {
            if let Some(charge) = &mut self.charge
                && charge.end.is_some()
            {
                ready!(charge.poll_may_end(cx));
                return Poll::Ready(charge.end.take().flatten().map(Ok));
            }
            let Poll::Ready(piece) = self.poll_rest(cx) else {
                ready!(self.poll_charge(cx));
                return Poll::Ready(Some(Err(BodyFault(RequestFault::BodyTimeout))));
            };
            let piece = piece.transpose()?;
            let is_end = piece.is_none() || self.declared == Some(0) || self.rest.is_end_stream();
            match &mut self.charge {
                Some(charge) if charge.is_paused() => {
                    if let Some(upload) = &charge.upload {
                        upload.note(self.progress.bytes);
                    }
                    if !is_end {
                        return Poll::Ready(piece.map(Ok));
                    }
                    charge.end = Some(piece);
                    // Its client is waited for no longer.
                    charge.upload = None;
                }
                _ => return Poll::Ready(piece.map(Ok)),
            }
        }
    }

    /// Gives the slot back once the client has been waited for long enough. Ready where the maximum
    /// number of clients is waited for and this one is the slowest.
    fn poll_charge(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(charge) = &mut self.charge else { return Poll::Pending };
        let Progress { bytes, waited, waits_since } = self.progress;
        // A conversation that has begun is no upload: its sides may be silent.
        if self.unhurried.load(Relaxed) {
            self.charge = None;
            return Poll::Pending;
        }
        if !charge.is_paused() {
            if charge.waits_since != waits_since {
                charge.waits_since = waits_since;
                charge.due.set(Some((charge.before + CLIENT_TIME_MAX).saturating_sub(waited)));
            }
            ready!(charge.due.poll(cx));
            if !charge.pause(CLIENT_TIME_MAX) {
                // A request that is answered already has no slot, and may hold a worker all the
                // same.
                charge.turn = None;
            }
            charge.upload = charge.uploads.begin(charge.sender, bytes, self.progress.waited_by_now());
            charge.reserved = None;
        }
        if let Some(upload) = &charge.upload {
            return upload.poll_broken_off(cx);
        }
        Poll::Ready(())
    }

    /// Is ready when the client has been too slow.
    fn poll_stall_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.unhurried.load(Relaxed) {
            return Poll::Pending;
        }
        if self.progress.waits_since.is_none() {
            self.progress.waits_since = Some(Instant::now());
            self.stall_deadline.set(Some(self.pace.allows(self.progress.bytes, self.progress.waited)));
        }
        ready!(self.stall_deadline.poll(cx));
        // Set since then, perhaps.
        if self.unhurried.load(Relaxed) { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl BufferedRest {
    /// Returns how many bytes are still to be sent on.
    fn left(&self) -> u64 {
        self.written - self.read + self.tail_bytes as u64
    }
}

impl fmt::Debug for BufferedRest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({} of {} written, {} not)", self.written - self.read, self.written, self.tail_bytes)
    }
}

/// Returns the trailers that may be sent on, if any are left.
fn fit(mut trailers: HeaderMap) -> Option<HeaderMap> {
    headers::prepare_request_trailers(&mut trailers);
    (!trailers.is_empty()).then_some(trailers)
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.budget.release(self.early_bytes + self.kept.as_ref().map_or(0, |kept| kept.tail_bytes));
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let Some(inner) = &mut self.inner else {
            return Poll::Ready(None);
        };
        if let Some(piece) = ready!(inner.poll_held(cx)) {
            return Poll::Ready(Some(piece.map(Frame::data)));
        }
        let is_kept = inner.charge.as_ref().is_some_and(|charge| charge.end.is_some());
        if (!inner.rest_ended || is_kept)
            && let Some(piece) = ready!(inner.poll_charged(cx))
        {
            return Poll::Ready(Some(piece.map(Frame::data)));
        }
        Poll::Ready(inner.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(|inner| {
            inner.early.is_empty()
                && inner.kept.as_ref().is_none_or(|kept| kept.left() == 0)
                && inner.charge.as_ref().is_none_or(|charge| charge.end.is_none())
                && inner.trailers.is_none()
                && (inner.rest_ended || inner.rest.is_end_stream())
        })
    }

    fn size_hint(&self) -> SizeHint {
        let Some(inner) = &self.inner else {
            return SizeHint::with_exact(0);
        };
        let early =
            inner.early.iter().chain(inner.charge.iter().filter_map(|charge| charge.end.as_ref()?.as_ref()));
        let early: u64 = early.map(|piece| piece.len() as u64).sum();
        let early = early + inner.kept.as_ref().map_or(0, |kept| kept.left());
        let rest = if inner.rest_ended { SizeHint::with_exact(0) } else { inner.rest.size_hint() };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + early);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + early);
        }
        hint
    }
}

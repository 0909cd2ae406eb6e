//! A request that the process itself works on: its phases up to the work, and what follows from its answer.
//!
//! Nothing is forwarded, so there is no node, no exchange and no body: whoever works on the request reads
//! it and writes the answer. Waits, refusals and the waiting room are those of the gateway.

use super::admit::AdmittedRequest;
use super::finish::Due;
use super::gather::{is_stream, outcome_of};
use super::learn::PathLesson;
use super::{ClientGone, Core, RequestContext};
use crate::account::Account;
use crate::body_end::BodyEnd;
use crate::error_response::{self, ErrorFormat};
use crate::exchange;
use crate::gatekeeper::{BodySlot, GateAdmission, Slot, UnidentifiedClient};
use crate::https::AddedHeaders;
use crate::request_ids::{self, X_REQUEST_ID};
use crate::request_record::RequestOutcome;
use crate::ungated::UngatedPermit;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode, request};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker, ready};
use std::thread;
use std::time::{Duration, Instant};
use suimon_downstream::charge::Slot as _;
use suimon_downstream::connection::{Busy, Connection};
use suimon_downstream::request_body::RequestBody;
use suimon_gate::{LeaseDue, Refusal};
use suimon_identity::identify;
use suimon_message::validate::{RequestFault, validate};
use suimon_message::{headers, signals};
use suimon_model::{Failure, KindId, Outcome, Reason, RequestId, SessionId};

/// When it is worth coming back to a process that has no place, as it is full or ends.
const RETRY_NO_PLACE: Duration = Duration::from_secs(2);

/// Whether a request may be worked on.
#[derive(Debug)]
pub enum Entered {
    /// It may, from now on.
    Admitted(Box<Admitted>),
    /// It may not, and this is its answer.
    Answered(Response<String>),
}

/// A request that may be worked on. It holds a slot until [`Admitted::end`]; dropped, it ends as abandoned, or
/// as failed where the thread panics.
#[derive(Debug)]
pub struct Admitted {
    core: Arc<Core>,
    connection: Arc<Connection>,
    _busy: Busy,
    /// Its head, until it is taken out.
    head: Option<Box<request::Parts>>,
    method: Method,
    /// Until the answer is there.
    lesson: Option<PathLesson>,
    secure: bool,
    gives_passes: bool,
    context: RequestContext,
    slot: Option<Slot>,
    _open: Option<UngatedPermit>,
    session: Option<(KindId, SessionId)>,
    lease: LeaseDue,
    unknown: Option<UnidentifiedClient>,
    ends: bool,
    waited: Duration,
    /// Seconds of pause that it is to take for each second of work.
    pause_ratio: f64,
    since: Instant,
    /// How long the client was waited for to send the body, in microseconds.
    upload_time: Arc<AtomicU64>,
    added: Option<AddedHeaders>,
    /// Of the answer, once it is there, ...
    status: Option<StatusCode>,
    /// ... and whether it goes on without end.
    streams: bool,
    is_over: bool,
}

/// The slot of a request as its body sees it: one stands for the work, and none is needed for a client that has
/// to be waited for.
#[derive(Debug)]
pub struct UploadSlot {
    slot: BodySlot,
    /// Since when it is given back.
    suspended_at: Option<Instant>,
    upload_time: Arc<AtomicU64>,
}

/// Takes one request from its head to the work on it, or to its answer. `sites`: whether it is known whose
/// it is.
pub(crate) async fn enter(
    core: Arc<Core>,
    sites: Result<(), RequestFault>,
    connection: Arc<Connection>,
    parts: request::Parts,
) -> Result<Entered, ClientGone> {
    let arrived = Instant::now();
    let busy = connection.begin(arrived);
    core.telemetry.note_request();
    let parts = Box::new(parts);
    let error_format = ErrorFormat::new(&parts, request_ids::given(connection.peer(), &parts.headers));
    let account = Account::begin(&core.backend, &connection, &parts, &error_format, arrived);
    let added = core.https.added(connection.peer(), &parts.headers);
    let answered = |account: Option<&Arc<Account>>, response: Response<String>| {
        if let Some(account) = account {
            account.answered(response.status());
        }
        let mut response = response;
        if let Some(added) = &added {
            added.add_to(response.status(), response.headers_mut());
        }
        Entered::Answered(response)
    };
    if let Err(fault) = validate(&parts, &core.params.limits, false).and(sites) {
        core.telemetry.note_fault();
        if let Some(account) = &account {
            account.ends(RequestOutcome::BadRequest, Some(error_response::code_of(fault)), Duration::ZERO);
        }
        return Ok(answered(account.as_ref(), error_format.fault(fault, &core.pages)));
    }
    let (class, pool) = core.table.classify_at_pool(&parts.method, parts.uri.path(), parts.uri.query());
    let (asks_room, visitor) = core.identify(&parts, class);
    let mut body = RequestBody::elsewhere();
    let context = RequestContext { arrived, error_format, account, visitor, class, pool, tunnel: false };
    if let Some(waiting_room) = asks_room {
        let page = core.answer_waiting_room(waiting_room, &connection, &parts, &mut body, &context).await?;
        context.ends(RequestOutcome::WaitingRoom, None, Duration::ZERO);
        return Ok(answered(context.account.as_ref(), page));
    }
    let AdmittedRequest { admission, open, unknown, ends, .. } =
        match core.admit(&connection, &parts, &mut body, &context).await {
            Ok(admitted) => admitted,
            Err(why) => {
                let is_of_room = why.is_of_room();
                let response = core.send_away(why, &connection, &parts, body, &context).await?;
                if !is_of_room {
                    core.telemetry.route(class.route()).answered(error_response::status(&response));
                }
                return Ok(answered(context.account.as_ref(), response));
            }
        };
    let since = Instant::now();
    if let Some(account) = &context.account {
        account.sends(since);
    }
    let (slot, session, lease, waited, pause_ratio) = match admission {
        Some(GateAdmission { slot, session, lease, waited, pause_ratio, .. }) => {
            (Some(slot), session, lease, waited, pause_ratio)
        }
        None => (None, None, LeaseDue::No, Duration::ZERO, 0.0),
    };
    Ok(Entered::Admitted(Box::new(Admitted {
        lesson: Some(core.lesson(context.class, &parts.method, parts.uri.path())),
        method: parts.method.clone(),
        secure: core.params.lease.secure || connection.peer().is_secure(&parts.headers),
        gives_passes: core.gives_passes(&parts),
        head: Some(parts),
        core,
        connection,
        _busy: busy,
        context,
        slot,
        _open: open,
        session,
        lease,
        unknown,
        ends,
        waited,
        pause_ratio,
        since,
        upload_time: Arc::default(),
        added,
        status: None,
        streams: false,
        is_over: false,
    })))
}

/// Returns the answer to a request for which there is no place to wait at, and why.
pub(crate) fn no_place(core: &Core, parts: &request::Parts, reason: Reason) -> Entered {
    core.telemetry.note_request();
    core.telemetry.note_refusal(reason);
    let refusal = Refusal {
        request: RequestId(0),
        reason,
        retry_after: RETRY_NO_PLACE,
        predicted_wait: Duration::ZERO,
        waiting: 0,
    };
    let error_format = ErrorFormat::new(parts, None);
    Entered::Answered(error_format.refused(&refusal, Duration::ZERO, &core.pages))
}

impl Admitted {
    /// Takes out the head of the request as whoever works on it is to see it: without cookies of ours and what
    /// only a gateway may say, and with what a gateway says. `None`: it was taken out before.
    pub fn take_request(&mut self) -> Option<request::Parts> {
        let mut parts = *self.head.take()?;
        if self.context.visitor.has_own_cookie {
            identify::strip_own_cookies(&mut parts.headers);
        }
        headers::drop_claims(&mut parts.headers, self.connection.peer().is_trusted());
        for (name, value) in self.said() {
            parts.headers.insert(name, value);
        }
        Some(parts)
    }

    /// Returns what a gateway says to the application of this request: how many visitors wait, how long it
    /// was held, how much it is to pause inside, and what it is called.
    pub fn said(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let waiting = self.core.keeper.waiting();
        let waiting = (waiting > 0).then(|| (signals::WAITING, HeaderValue::from(waiting)));
        let held = u64::try_from(self.waited.as_millis()).unwrap_or(u64::MAX);
        let held = (!self.waited.is_zero()).then(|| (signals::HELD, HeaderValue::from(held)));
        let is_named = self.core.backend.notes.get().is_some();
        let id = is_named.then(|| (X_REQUEST_ID, self.request_id().clone()));
        waiting.into_iter().chain(held).chain(signals::pause(self.pause_ratio)).chain(id)
    }

    /// Removes from the trailers of a request what only a gateway or a proxy may say: both say it in the head.
    pub fn strip_request_trailers(trailers: &mut HeaderMap) {
        headers::drop_claims(trailers, false);
    }

    /// Removes from the trailers of an answer what only a gateway hears. It comes too late to be heeded.
    pub fn strip_trailers(trailers: &mut HeaderMap) {
        headers::take_signals(trailers);
    }

    /// Returns the slot as the body of the request sees it, whose client may be slow. `None`: it holds none.
    pub fn upload(&self) -> Option<UploadSlot> {
        let slot = self.slot.as_ref()?.turn()?;
        Some(UploadSlot { slot, suspended_at: None, upload_time: Arc::clone(&self.upload_time) })
    }

    /// Returns what the request is called in logs.
    pub fn request_id(&self) -> &HeaderValue {
        self.context.error_format.request_id()
    }

    /// Takes note of the head of the answer, and completes it: what it says to the gateway is done and taken
    /// out, and the cookies that identify the session are set. Once: what comes later changes nothing.
    pub fn answer(&mut self, status: StatusCode, head: &mut HeaderMap) {
        if self.status.is_some() {
            return;
        }
        self.status = Some(status);
        let Admitted { core, context, method, .. } = self;
        if let Some(lesson) = self.lesson.take() {
            core.learn_from(lesson, method, status, head, self.since);
        }
        self.streams = status == StatusCode::SWITCHING_PROTOCOLS || is_stream(head);
        let said = headers::take_signals(head);
        exchange::note_pauses(self.slot.as_ref(), &said);
        let is_good = !status.is_client_error() && !status.is_server_error();
        let due = Due {
            session: self.session,
            lease: self.lease,
            unknown: self.unknown,
            ends: self.ends && is_good,
            gives_passes: self.gives_passes,
            waited: self.waited,
            secure: self.secure,
        };
        core.conclude(None, &context.visitor, due, &said, head);
        if let Some(added) = &self.added {
            added.add_to(status, head);
        }
        if let Some(account) = &context.account {
            account.answered(status);
        }
        core.telemetry.route(context.class.route()).answered(status);
    }

    /// Returns where the body of the answer ends, whose head this is.
    pub fn body_end(&self, status: StatusCode, head: &HeaderMap) -> BodyEnd {
        BodyEnd::of(&self.method, status, head)
    }

    /// Returns whether the answer is a stream, or opens one: it needs a slot until its head, and is to be
    /// ended there.
    pub fn streams(&self) -> bool {
        self.streams
    }

    /// Takes note that the client has gone. The slot stays taken for as long as the work goes on.
    pub fn client_left(&self) {
        if let Some(slot) = &self.slot {
            self.core.telemetry.note_disconnect_upstream();
            slot.depart();
        }
    }

    /// Ends the work, which has failed, perhaps in the middle of its answer.
    pub fn fail(mut self) {
        self.settle(None, Duration::ZERO);
    }

    /// Ends the work: the slot is given back. The answer's status says how it went; without one the process
    /// has failed to answer.
    pub fn end(self) {
        self.end_without(Duration::ZERO);
    }

    /// As [`Admitted::end`], where the client was waited for `client_time` of it, which is no time of the
    /// work's.
    pub fn end_without(mut self, client_time: Duration) {
        self.settle(self.status, client_time);
    }

    /// `answer_time`: how long the client was waited for to take the answer.
    fn settle(&mut self, status: Option<StatusCode>, answer_time: Duration) {
        self.is_over = true;
        let now = Instant::now();
        let client_time = answer_time + Duration::from_micros(self.upload_time.load(Relaxed));
        let took = now.saturating_duration_since(self.since).saturating_sub(client_time);
        let route = self.core.telemetry.route(self.context.class.route());
        route.served(took);
        let added = self.context.arrived.elapsed().saturating_sub(self.waited + took + client_time);
        route.passed(self.waited, added);
        if let Some(account) = &self.context.account {
            account.done(took);
            if status.is_none() {
                account.ends(RequestOutcome::UpstreamError, None, Duration::ZERO);
            }
        }
        let outcome = status.map_or(Outcome::Failed(Failure::ServerError), outcome_of);
        match self.slot.take() {
            Some(slot) if answer_time.is_zero() => slot.end_at(outcome, now),
            Some(slot) => slot.end_without(outcome, answer_time),
            None => {}
        }
    }
}

impl UploadSlot {
    /// Gives the slot back, after the client was waited for `client_time`. Returns false if there is none any more.
    pub fn suspend(&mut self, client_time: Duration) -> bool {
        let was_held = self.slot.pause(client_time);
        if was_held {
            self.add(client_time);
            self.suspended_at = Some(Instant::now());
        }
        was_held
    }

    /// Returns whether it is given back for now.
    pub fn is_suspended(&self) -> bool {
        self.suspended_at.is_some()
    }

    /// Takes it again; ready once it is held, or the request has ended.
    pub fn poll_resumed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.slot.poll_resumed(cx));
        if let Some(since) = self.suspended_at.take() {
            self.add(since.elapsed());
        }
        Poll::Ready(())
    }

    fn add(&self, time: Duration) {
        self.upload_time.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }
}

impl Drop for UploadSlot {
    fn drop(&mut self) {
        // Nobody reads on, and work goes on that needs it.
        if self.is_suspended() {
            let _ = self.poll_resumed(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        // Who worked on it has panicked: no client has left.
        if !self.is_over && thread::panicking() {
            self.settle(None, Duration::ZERO);
        }
    }
}

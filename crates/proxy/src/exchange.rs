//! One exchange with the application, and what becomes of it when its client leaves.
//!
//! If an exchange is dropped before its end, nobody needs its result: by default it is read to its
//! end all the same and keeps its slot, because most applications go on regardless and their
//! capacity is not free before they are done. Where the application does stop when the connection
//! closes, it is cancelled.

use crate::account::Account;
use crate::backend::Backend;
use crate::gatekeeper::Slot;
use crate::returns::WaitOwner;
use crate::stall::Unanswered;
use bytes::Bytes;
use http::{HeaderMap, response};
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use suimon_downstream::charge::Slot as _;
use suimon_downstream::queue::{Next, Writer};
use suimon_downstream::spool::{BodyKind, Spool};
use suimon_downstream::uploads::{CROWD_LEAST, Sender, Upload};
use suimon_message::signals;
use suimon_model::{Failure, KindId, NodeId, Outcome, PoolId, RouteId};
use suimon_params::OnClientDisconnect;
use suimon_upstream::{Blame, Sending, Unsent, UpstreamBody, UpstreamError};
use tokio::runtime::Handle;

/// A body of a declared length up to this many bytes is taken whole before its head goes out.
const WHOLE_MAX: u64 = 64 << 10;

/// Where the application was stuck: a client that is waited for has to take this many bytes ...
const TRIAL_BYTES: u64 = 2 << 20;
/// ... in this time.
const TRIAL: Duration = Duration::from_secs(2);

/// How long after its head a response may go on before it counts as a stream.
pub const STREAM_AFTER: Duration = Duration::from_secs(30);

/// An exchange under way.
#[derive(Debug)]
pub(crate) struct Exchange {
    backend: Arc<Backend>,
    phase: Phase,
    /// `None`: ungated.
    slot: Option<Slot>,
    tally: ExchangeInfo,
    /// As long as no head has come.
    unanswered: Option<Unanswered>,
    /// The request that waits for the application's return where no node can be connected to: whose
    /// it is and of which kind; `None`: it does not wait.
    awaits: Option<(WaitOwner, Option<KindId>)>,
    /// Where note is kept of the request, if it is.
    account: Option<Arc<Account>>,
}

/// What is needed to count an exchange, and to end it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeInfo {
    pub(crate) sent: Instant,
    pub(crate) route: Option<RouteId>,
    /// Whose workers it is for.
    pub(crate) pool: PoolId,
    /// What is done when the client leaves.
    pub(crate) on_client_disconnect: OnClientDisconnect,
    /// Whose it is.
    pub(crate) sender: Sender,
    /// Whether, by staying unanswered, it shows that the application waits for others' clients.
    pub(crate) tells_of_others: bool,
}

enum Phase {
    Sending(Sending),
    Reading(UpstreamBody),
    Over,
}

/// What was available of a body.
#[derive(Debug)]
pub(crate) enum Gathered {
    /// All of it.
    Whole { first: Option<Bytes>, rest: VecDeque<Frame<Bytes>> },
    /// A part; the application has more to say.
    More { first: Option<Bytes>, rest: VecDeque<Frame<Bytes>> },
}

impl Exchange {
    /// Returns the exchange that begins with `sending` and holds `slot` while the application
    /// works.
    pub(crate) fn new(
        backend: Arc<Backend>,
        sending: Sending,
        slot: Option<Slot>,
        tally: ExchangeInfo,
        awaits: Option<(WaitOwner, Option<KindId>)>,
    ) -> Self {
        Exchange {
            backend,
            phase: Phase::Sending(sending),
            slot,
            tally,
            unanswered: None,
            awaits,
            account: None,
        }
    }

    /// Tells the request's account, if there is one, when the application is done.
    pub(crate) fn noted_in(mut self, account: Option<Arc<Account>>) -> Self {
        self.account = account;
        self
    }

    /// Returns where note is kept of the request, if it is.
    pub(crate) fn account(&self) -> Option<Arc<Account>> {
        self.account.clone()
    }

    /// Returns the node that has answered.
    pub(crate) fn node(&self) -> Option<NodeId> {
        if let Phase::Reading(body) = &self.phase { Some(body.node()) } else { None }
    }

    /// Waits for the head of the response, and returns it and when it came. On an error the
    /// exchange is over and its slot given back.
    ///
    /// Where no node can be connected to, a request of a session first waits for the application's
    /// return: without its slot, and as long as requests that come once the application is known to
    /// be down.
    pub(crate) async fn head(&mut self) -> Result<(response::Parts, Instant), UpstreamError> {
        let mut return_by = None;
        loop {
            let ExchangeInfo { sent, route, tells_of_others, .. } = self.tally;
            let says_how_long = is_usual(&self.backend);
            self.unanswered =
                tells_of_others.then(|| Unanswered::new(&self.backend.telemetry, route, sent, says_how_long));
            let answered = match &mut self.phase {
                Phase::Sending(sending) => sending.await,
                Phase::Reading(_) | Phase::Over => {
                    unreachable!("the head is asked for once, at the beginning")
                }
            };
            let mut error = match answered {
                Ok(response) => {
                    let now = Instant::now();
                    note_head(&self.backend, self.unanswered.take(), now);
                    let (head, body) = response.into_parts();
                    note_pauses(self.slot.as_ref(), &head.headers);
                    self.phase = Phase::Reading(body);
                    return Ok((head, now));
                }
                Err(error) => error,
            };
            // Nothing is under way any more that would have to be read to its end.
            self.phase = Phase::Over;
            self.unanswered = None;
            // On the heap: requests should not carry what hardly any of them needs.
            let again = Box::pin(return_of(
                (&self.backend, self.tally.pool),
                self.slot.as_ref(),
                self.awaits,
                &mut error,
                &mut return_by,
            ))
            .await;
            let Some(again) = again else {
                self.settle(Outcome::Failed(failure(&error)));
                return Err(error);
            };
            self.tally.sent = Instant::now();
            self.phase = Phase::Sending(self.backend.upstream(self.tally.pool).send_again(*again));
        }
    }

    /// Takes what is available of the body without waiting; a short one of declared length, all of
    /// it. At most about `bytes_max` bytes. On an error the exchange is over and its slot given
    /// back.
    pub(crate) async fn gather(&mut self, bytes_max: usize) -> Result<Gathered, UpstreamError> {
        let gathered = {
            let Phase::Reading(body) = &mut self.phase else {
                unreachable!("the body comes after the head");
            };
            gather(body, bytes_max).await
        };
        if let Err(error) = &gathered {
            self.settle(Outcome::Failed(failure(error)));
        }
        gathered
    }

    /// Ends the exchange: the slot is given back. Returns the body, whatever is still to come of
    /// it.
    pub(crate) fn release(mut self, outcome: Outcome) -> Option<UpstreamBody> {
        let phase = std::mem::replace(&mut self.phase, Phase::Over);
        if let Phase::Reading(body) = &phase {
            body.ungate();
        }
        self.settle(outcome);
        match phase {
            Phase::Reading(body) => Some(body),
            Phase::Sending(_) | Phase::Over => None,
        }
    }

    /// Reads the rest of the body into `writer`, as fast as the application sends it and the queue
    /// takes it. Where the client takes it too slowly it goes through a file. The exchange gives
    /// its slot back once the application is kept waiting, for the file or without one, and when it
    /// is not over by a certain time, which makes it a stream.
    ///
    /// If the application waits, one of its workers waits: then the answer is among those that may
    /// be aborted once others wait for a worker; and if the application was stuck recently, and
    /// many wait already, a client that takes little is aborted at once.
    pub(crate) async fn pump(mut self, mut writer: Writer, outcome: Outcome) {
        let mut becomes_stream = pin!(tokio::time::sleep(STREAM_AFTER));
        let mut may_spool = true;
        let mut held: Option<Upload> = None;
        let (mut trial, mut tried) = (pin!(tokio::time::sleep(TRIAL)), None);
        loop {
            let holds_slot = self.slot.is_some();
            let Phase::Reading(body) = &mut self.phase else { return };
            let next = {
                tokio::select! {
                    biased;
                    next = poll_fn(|cx| writer.poll_move(cx, body, failure)) => next,
                    () = becomes_stream.as_mut(), if holds_slot => {
                        self.end_slot(outcome);
                        continue;
                    }
                    () = broken_off(held.as_ref()) => return writer.cut(),
                    () = trial.as_mut(), if tried.is_some() => {
                        if tried.take().is_some_and(|before| writer.bytes() < before + TRIAL_BYTES) {
                            return writer.cut();
                        }
                        continue;
                    }
                }
            };
            match next {
                Next::Moved => {
                    if let Some(held) = &held {
                        held.note(writer.bytes());
                    }
                }
                Next::ClientSlow => {
                    if std::mem::take(&mut may_spool)
                        && let Some(spool) = self.begin_spool(&mut writer, outcome).await
                    {
                        writer.spool(spool);
                        continue;
                    }
                    self.end_slot_without(outcome, writer.client_time());
                    if !writer.fills_file() {
                        let (all, now) = (&self.backend.held_answers, Instant::now());
                        held = all.begin(self.tally.sender, writer.bytes(), self.tally.sent.elapsed());
                        if self.backend.uploads.is_wary(now)
                            && !all.has_room(self.backend.keeper.in_flight_max(), now)
                        {
                            tried = Some(writer.bytes());
                            trial.as_mut().reset(tokio::time::Instant::now() + TRIAL);
                        }
                    }
                }
                Next::Done(failure) => {
                    let outcome = failure.map_or(outcome, Outcome::Failed);
                    self.end_slot_without(outcome, writer.client_time());
                    return self.settle(outcome);
                }
                Next::ReaderGone if is_passed_on(body) => {
                    // The client has all of it, and the worker is not done: its slot stays taken.
                    let rest = async { while let Some(Ok(_)) = next_frame(body).await {} };
                    let _ = tokio::time::timeout(STREAM_AFTER, rest).await;
                    return self.settle(outcome);
                }
                // Dropping the exchange does what the setting says.
                Next::ReaderGone => return,
            }
        }
    }

    /// Makes the file for what the client does not take, if there is room for one. If that takes
    /// long, the slot is given back first.
    async fn begin_spool(&mut self, writer: &mut Writer, outcome: Outcome) -> Option<Arc<Spool>> {
        let backend = Arc::clone(&self.backend);
        let mut begin = pin!(backend.spools.begin(BodyKind::Answer, self.tally.sender.origin));
        if let Ok(begun) = tokio::time::timeout(writer.client_time_max(), begin.as_mut()).await {
            return begun;
        }
        self.end_slot_without(outcome, writer.client_time());
        begin.await
    }

    fn settle(&mut self, outcome: Outcome) {
        self.phase = Phase::Over;
        let now = Instant::now();
        let took = now.saturating_duration_since(self.tally.sent);
        self.backend.telemetry.route(self.tally.route).served(took);
        if let Some(account) = &self.account {
            account.done(took);
        }
        if let Some(slot) = self.slot.take() {
            slot.end_at(outcome, now);
        }
    }

    /// What is still read of the body keeps a worker that no slot counts any more.
    fn end_slot(&mut self, outcome: Outcome) {
        if let Phase::Reading(body) = &self.phase {
            body.ungate();
        }
        if let Some(slot) = self.slot.take() {
            slot.end(outcome);
        }
    }

    /// Gives back the slot, if it is held, of an application that was kept waiting for
    /// `client_time`.
    fn end_slot_without(&mut self, outcome: Outcome, client_time: Duration) {
        if let Phase::Reading(body) = &self.phase {
            body.ungate();
        }
        match self.slot.take() {
            Some(slot) if client_time.is_zero() => slot.end(outcome),
            Some(slot) => slot.end_without(outcome, client_time),
            None => {}
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let phase = std::mem::replace(&mut self.phase, Phase::Over);
        if matches!(phase, Phase::Over) {
            return;
        }
        // Without a slot it holds nothing worth finishing for.
        let Some(slot) = self.slot.take() else {
            return;
        };
        self.backend.telemetry.note_disconnect_upstream();
        match (self.tally.on_client_disconnect, Handle::try_current()) {
            (OnClientDisconnect::Finish, Ok(runtime)) => {
                slot.depart();
                let (backend, unanswered) = (Arc::clone(&self.backend), self.unanswered.take());
                runtime.spawn(finish(backend, phase, unanswered, slot));
            }
            // First the connection to the application, then the slot: so there are never more in
            // the application than the limit.
            _ => {
                drop(phase);
                slot.end(Outcome::Abandoned);
            }
        }
    }
}

/// Waits, by `return_by`, for a node that can be connected to, and returns the request that could
/// not be sent, its slot held again.
async fn return_of(
    (backend, pool): (&Backend, PoolId),
    slot: Option<&Slot>,
    awaits: Option<(WaitOwner, Option<KindId>)>,
    error: &mut UpstreamError,
    return_by: &mut Option<Instant>,
) -> Option<Box<Unsent>> {
    let (Some(slot), Some((whose, kind))) = (slot, awaits) else { return None };
    let unsent = error.take_unsent()?;
    let _place = backend.returns.enter(whose)?;
    let by = *return_by.get_or_insert_with(|| Instant::now() + backend.keeper.awaits_application(kind));
    let mut turn = slot.turn()?;
    turn.pause(Duration::ZERO);
    tokio::time::timeout_at(by.into(), backend.upstream(pool).reached()).await.ok()?;
    poll_fn(|cx| turn.poll_resumed(cx)).await;
    Some(unsent)
}

/// Reads an exchange to its end, with no client left.
async fn finish(backend: Arc<Backend>, phase: Phase, unanswered: Option<Unanswered>, slot: Slot) {
    let body = match phase {
        Phase::Sending(sending) => {
            let answered = sending.await.ok().map(|response| {
                note_pauses(Some(&slot), response.headers());
                response.into_body()
            });
            note_head(&backend, unanswered.filter(|_| answered.is_some()), Instant::now());
            answered
        }
        Phase::Reading(body) => Some(body),
        Phase::Over => None,
    };
    if let Some(mut body) = body {
        // A broken connection is an end, too.
        let rest = async { while let Some(Ok(_)) = next_frame(&mut body).await {} };
        // What still comes after that is a stream that would never end.
        let _ = tokio::time::timeout(STREAM_AFTER, rest).await;
        drop(body);
    }
    slot.end(Outcome::Abandoned);
}

/// Returns the next piece of a body; `None`: it is over.
async fn next_frame(body: &mut UpstreamBody) -> Option<Result<Frame<Bytes>, UpstreamError>> {
    poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await
}

/// Returns whether a client needs nothing more of a body, though it may not be over.
fn is_passed_on(body: &UpstreamBody) -> bool {
    body.size_hint().exact() == Some(0)
}

/// Returns once an answer that holds a worker has to be aborted; never, if it holds none.
async fn broken_off(held: Option<&Upload>) {
    match held {
        Some(held) => held.broken_off().await,
        None => pending().await,
    }
}

/// Takes note that the head of an answer has come.
fn note_head(backend: &Backend, unanswered: Option<Unanswered>, now: Instant) {
    if let Some(unanswered) = unanswered {
        unanswered.answered(now, is_usual(backend));
    }
}

/// Takes note of what the application says it has paused inside a request.
pub(crate) fn note_pauses(slot: Option<&Slot>, said: &HeaderMap) {
    if let Some(slot) = slot
        && let Some(paused) = signals::paused(said)
    {
        slot.paused(paused);
    }
}

/// Returns whether the clients that hold workers are few enough to make no request wait.
fn is_usual(backend: &Backend) -> bool {
    backend.uploads.count() + backend.held_answers.count() < CROWD_LEAST
}

async fn gather(body: &mut UpstreamBody, bytes_max: usize) -> Result<Gathered, UpstreamError> {
    let declared = body.size_hint().exact();
    let wait_for_all = declared.is_some_and(|length| length <= WHOLE_MAX);
    let bytes_max = if wait_for_all { bytes_max.max(WHOLE_MAX as usize) } else { bytes_max };
    let mut bytes = 0;
    let mut first = None;
    let mut rest = VecDeque::new();
    let is_whole = loop {
        if body.is_end_stream() {
            break true;
        }
        if bytes >= bytes_max {
            break false;
        }
        // A worker may go on after the last byte: the client need not wait for that.
        let waits = wait_for_all && !is_passed_on(body);
        let frame = poll_fn(|cx| match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Pending if !waits => Poll::Ready(None),
            polled => polled.map(Some),
        });
        match frame.await {
            None => break false,
            Some(None) => break true,
            Some(Some(Ok(frame))) => {
                bytes += frame.data_ref().map_or(0, Bytes::len);
                match frame.into_data() {
                    Ok(data) if first.is_none() && rest.is_empty() => first = Some(data),
                    Ok(data) => rest.push_back(Frame::data(data)),
                    Err(other) => rest.push_back(other),
                }
            }
            Some(Some(Err(error))) => return Err(error),
        }
    };
    Ok(if is_whole { Gathered::Whole { first, rest } } else { Gathered::More { first, rest } })
}

/// Returns what the gate is told of an error.
pub(crate) fn failure(error: &UpstreamError) -> Failure {
    match error.fault() {
        Blame::Client => Failure::BadRequest,
        _ if error.kind().is_timeout() => Failure::Timeout,
        _ => Failure::Connection,
    }
}

impl std::fmt::Debug for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Phase::Sending(_) => "Sending",
            Phase::Reading(_) => "Reading",
            Phase::Over => "Over",
        })
    }
}

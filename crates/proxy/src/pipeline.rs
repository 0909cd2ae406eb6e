//! The life of a request, phase by phase.
//!
//! | phase | does | why here |
//! |---|---|---|
//! | accept | [`suimon_downstream::listener`]: connection, TLS, HTTP framing | |
//! | validate | refuses what could be read in two ways | before anybody believes a word of it |
//! | identify | lease and application cookies → session; without, connection, address and browser | needs the request as it came, cookies and all |
//! | classify | path, and query where a route names one → route, gated or not | decides whether there is a gate to pass |
//! | read ahead | the body, up to a bound | a slot is the application's time: no client sends while it holds one |
//! | gate | a slot now, a wait, or a refusal | before the application is touched at all |
//! | keep | what a slow client has still to send, with the slot given back | no client sends while it holds a worker of the application either |
//! | prepare | hop-by-hop headers out, forwarding headers in | last, so that a waiting request costs as little as it can |
//! | forward | node, exchange, response head | holds the slot |
//! | gather | the body, as far as it takes no waiting on the client | the slot ends when the application is done |
//! | finish | slot back, cookies, counters | |
//!
//! A client may leave at any point: the library, or our watch, drops the future, and the guards settle the rest.
//!
//! Here the phases stand in their order. `gather` and `finish` have files of their own, and so has, in `line`, what a request has to do with the
//! waiting room.

mod finish;
mod gather;
mod host;
mod line;
mod tunnel;

use crate::error_response::{self, Asker};
use crate::exchange::{Exchange, Tally};
use crate::gatekeeper::{
    Admission, Arrived, Gatekeeper, MemberOf, Named, Slot, TurnedAway, Unknown, Waiting, kind_of,
};
use crate::returns::{self, Returns};
use crate::stall::Way;
use crate::telemetry::Telemetry;
use crate::ungated::{OpenLimit, OpenPass};
use crate::wall_clock::now_unix;
use http::header::{CONNECTION, EXPECT, HeaderValue, SEC_WEBSOCKET_KEY, UPGRADE};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version, request};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use std::{error, fmt};
use suimon_downstream::answer_body::AnswerBody;
use suimon_downstream::budget::Budget;
use suimon_downstream::charge;
use suimon_downstream::connection::{Busy, Connection};
use suimon_downstream::connections::Told;
use suimon_downstream::request_body::{BodyFault, Keeps, Pace, RequestBody};
use suimon_downstream::spool::Spools;
use suimon_downstream::uploads::{Origin, Sender, Uploads};
use suimon_downstream::watch::Watcher;
use suimon_gate::{Arrival, InLine, LeaseDue, Membership, Mode, Refusal};
use suimon_identity::identify::{self, Identifier, Visitor};
use suimon_message::headers;
use suimon_message::signals;
use suimon_message::validate::{Fault, validate};
use suimon_model::{KindId, Reason, RequestId, RouteId, SessionId};
use suimon_params::{Limits, OnAbandon, SessionKind, Timeouts};
use suimon_routes::{Class, Exempt, Seat, Table};
use suimon_upstream::{Fault as Whose, RequestHead, Upstream, UpstreamError};
use suimon_waiting_room::{self as room, Pages, Room};
use tokio::sync::Semaphore;
use tunnel::{asks_for_tunnel, names_protocol, websocket_key};

/// The longest a request waits for the gate before it is watched for its client's leaving: far below the 20 ms in which that is
/// to be noticed, and long enough that short waits, the most frequent ones, cost no system call.
const WATCH_WAITING_AFTER: Duration = Duration::from_millis(10);

/// A page that takes at least this long begins with the limit that it had in `other`: to find one anew would take many times as long.
const LONG: Duration = Duration::from_secs(1);

/// What may be in the application at once without a slot, before it is known how much of it ends within a second: static assets, ...
const ASSETS_LEAST: usize = 64;
/// ... what is listed, which may be long polls, and the page that gives passes, ...
const LISTED_LEAST: usize = 1024;
/// ... and what is sent to that page: log-ins, which take a core each.
const PASS_FORMS_LEAST: usize = 4;
/// How long a request waits at such a limit.
const ASSET_PATIENCE: Duration = Duration::from_secs(2);
const PASS_FORM_PATIENCE: Duration = Duration::from_secs(10);
/// When it is worth coming back to one.
const RETRY_UNGATED: Duration = Duration::from_secs(2);

/// The limits of what passes without a slot.
#[derive(Debug)]
pub(crate) struct OpenLimits {
    listed: Arc<OpenLimit>,
    assets: Arc<OpenLimit>,
    pass_forms: Arc<OpenLimit>,
}

impl OpenLimits {
    /// Returns limits at which nobody is.
    pub(crate) fn new() -> Self {
        OpenLimits {
            listed: OpenLimit::new(LISTED_LEAST, ASSET_PATIENCE),
            assets: OpenLimit::new(ASSETS_LEAST, ASSET_PATIENCE),
            pass_forms: OpenLimit::new(PASS_FORMS_LEAST, PASS_FORM_PATIENCE),
        }
    }

    fn of(&self, exempt: Exempt) -> &Arc<OpenLimit> {
        match exempt {
            Exempt::Listed => &self.listed,
            Exempt::Static => &self.assets,
            Exempt::PassForm => &self.pass_forms,
        }
    }
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: Limits,
    pub(crate) on_abandon: OnAbandon,
    pub(crate) via: bool,
    pub(crate) lease_secure: bool,
    /// Whether visitors whom nothing else tells apart get a lease however little there is to do.
    pub(crate) leases_always: bool,
    /// Whether WebSocket over HTTP/2 is offered: nodes are spoken to in HTTP/1.1, which can switch.
    pub(crate) tunnels: bool,
    pub(crate) discovered_mode: Mode,
    pub(crate) table: Table,
    pub(crate) open: OpenLimits,
    pub(crate) identifier: Identifier,
    /// Where some kind of session has a line.
    pub(crate) room: Option<Room>,
    /// What people see where it is not the application's.
    pub(crate) pages: Arc<Pages>,
    /// Connections that may hold a place which waits to begin.
    pub(crate) entering: Semaphore,
    /// The kinds of session as they were set, for whoever asks.
    pub(crate) kinds: Vec<SessionKind>,
    pub(crate) keeper: Arc<Gatekeeper>,
    pub(crate) upstream: Upstream,
    /// Requests that no node was reached for, and that wait for the application's return.
    pub(crate) returns: Arc<Returns>,
    pub(crate) budget: Arc<Budget>,
    /// Requests in the application whose clients are waited for in the middle of their bodies, or of their answers, and calls, whose sides speak by turns.
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) held_answers: Arc<Uploads>,
    pub(crate) calls: Arc<Uploads>,
    pub(crate) spools: Arc<Spools>,
    /// Requests before the application whose bodies are kept in files until they are whole.
    pub(crate) kept: Arc<Uploads>,
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) telemetry: Arc<Telemetry>,
}

/// The client has closed its connection: there is nobody to answer.
#[derive(Debug)]
pub(crate) struct Gone;

/// Why a request got no slot.
enum NotAdmitted {
    Refused(Refusal, Duration),
    InLine(InLine),
    Later(KindId, u32),
    AsksForPass(KindId),
    BadBody(Fault),
    Gone,
}

impl From<BodyFault> for NotAdmitted {
    fn from(BodyFault(fault): BodyFault) -> Self {
        match fault {
            Fault::BrokenBody => NotAdmitted::Gone,
            fault => NotAdmitted::BadBody(fault),
        }
    }
}

/// Takes one request from its head to its answer.
pub(crate) fn serve(
    core: Arc<Core>,
    connection: Arc<Connection>,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response<AnswerBody>, Gone>> {
    let arrived = Instant::now();
    let busy = connection.begin(arrived);
    core.telemetry.note_request();

    let tunnel = asks_for_tunnel(&request);
    let asks_to_switch = request.headers().contains_key(UPGRADE);
    let switches = tunnel || asks_to_switch && headers::asks_for_websocket(&request);
    let switch = switches.then(|| hyper::upgrade::on(&mut request));
    if tunnel {
        // To routes and to the application it is what it would be in HTTP/1.1.
        *request.method_mut() = Method::GET;
    }
    // A client that offered another protocol and does not get it may send it all the same.
    let close = asks_to_switch && request.version() < Version::HTTP_2;
    let (parts, incoming) = request.into_parts();
    // On the heap: a head is handed on from phase to phase, and is large to move. And before the future, which would keep room for the request to its end.
    let parts = Box::new(parts);
    serve_parts(core, connection, Came { arrived, busy, parts, incoming, tunnel, switch, close })
}

/// A request taken apart.
struct Came {
    arrived: Instant,
    busy: Busy,
    parts: Box<request::Parts>,
    incoming: Incoming,
    /// Whether a good status would open a tunnel: WebSocket over HTTP/2.
    tunnel: bool,
    switch: Option<OnUpgrade>,
    /// Whether its connection is to be closed behind the answer.
    close: bool,
}

async fn serve_parts(
    core: Arc<Core>,
    connection: Arc<Connection>,
    Came { arrived, busy, parts, incoming, tunnel, switch, close }: Came,
) -> Result<Response<AnswerBody>, Gone> {
    let asker = Asker::new(&parts);
    if let Err(fault) = validate(&parts, &core.limits, names_protocol(&parts)) {
        core.telemetry.note_fault();
        return Ok(last_if(close, asker.fault(fault, &core.pages).map(AnswerBody::text))
            .map(|body| body.keeping(busy)));
    }

    let visitor = core.identifier.read(&parts.headers, core.room.as_ref().map(Room::credentials), now_unix);
    let class = core.table.classify(&parts.method, parts.uri.path(), parts.uri.query());
    let is_call = core.is_call(&parts, class);
    let mut body =
        RequestBody::new(incoming, core.limits.body_bytes, core.pace(is_call), &core.budget, || {
            busy.client_wait()
        });
    let mut asked = Asked { arrived, asker, visitor, class, tunnel };
    if let Some(room) = core.room.as_ref().filter(|_| room::is_for_it(&parts)) {
        // On the heap: see below.
        let answered = Box::pin(core.beside(room, &connection, &parts, &mut body, &asked)).await;
        if answered.is_err() {
            core.telemetry.note_gone_while_waiting();
        }
        let close = close | spares_connection(&connection, parts.version);
        return answered
            .map(|page| last_if(close, page.map(AnswerBody::text)).map(|body| body.keeping(busy)));
    }

    let version = parts.version;
    // What needs no slot is asked for at once: a place is for what the application has to do.
    let waits_to_ask = || parts.headers.contains_key(EXPECT) && !matches!(class, Class::Ungated(_));
    let reads_ahead = body.is_some() && !is_call && !tunnel && !waits_to_ask();
    let passed = match core.read_ahead(&connection, &parts, &mut body, &mut asked, reads_ahead).await {
        Ok(()) => core.admit(&connection, &parts, &mut body, &asked).await,
        Err(fault) => Err(fault.into()),
    };
    if passed.as_ref().is_ok_and(|passed| passed.admission.is_some()) {
        connection.standing().note_admitted();
    }
    let waits = passed.is_err();
    // What the waiting room answers is no answer of a route: it has counters of its own.
    let mut is_of_room = false;
    let answered = match passed {
        Ok(passed) => {
            // On the heap: what only admitted requests need is nothing that waiting ones should carry.
            let pass = Box::pin(core.pass(&connection, parts, body, &asked, switch, passed));
            pass.await
        }
        Err(NotAdmitted::Refused(refusal, waited)) => {
            Ok(asked.asker.refused(&refusal, waited, &core.pages).map(AnswerBody::text))
        }
        Err(NotAdmitted::InLine(waits)) => {
            is_of_room = true;
            match waits.place {
                Some(_) => core.telemetry.note_waiting_page(waits.kind),
                None => core.telemetry.note_refusal_in_line(waits.kind, Reason::LineClosed),
            }
            // On the heap: it holds what was sent.
            let page = Box::pin(core.wait_in_line(&connection, &parts, body, &asked, &waits)).await;
            Ok(asked.asker.in_line(page).map(AnswerBody::text))
        }
        Err(NotAdmitted::Later(kind, after)) => {
            is_of_room = true;
            core.telemetry.note_refusal_in_line(kind, Reason::NetworkDrawsMany);
            let Some(room) = &core.room else { unreachable!("no kind has a line without a room") };
            let page = room.later(&parts, kind, after, core.at(&connection, &parts));
            Ok(asked.asker.in_line(page).map(AnswerBody::text))
        }
        Err(NotAdmitted::AsksForPass(kind)) => {
            is_of_room = true;
            core.telemetry.note_refusal_in_line(kind, Reason::PassNeeded);
            let Some(room) = &core.room else { unreachable!("no kind has a line without a room") };
            let page = room.asks_for_pass(&parts, kind, core.at(&connection, &parts));
            Ok(asked.asker.in_line(page).map(AnswerBody::text))
        }
        Err(NotAdmitted::BadBody(fault)) => {
            core.telemetry.note_fault();
            Ok(asked.asker.fault(fault, &core.pages).map(AnswerBody::text))
        }
        Err(NotAdmitted::Gone) => {
            core.telemetry.note_gone_while_waiting();
            Err(Gone)
        }
    };
    let close = close | (waits && spares_connection(&connection, version));
    let response = last_if(close, answered?);
    let_others_catch_up().await;
    if !is_of_room {
        core.telemetry.route(class.route()).answered(error_response::status(&response));
    }
    Ok(response.map(|body| body.keeping(busy)))
}

/// Sees to it that whoever only waits holds no connection once there are few left for those who are inside. Returns whether an HTTP/1 one is to be closed.
///
/// As long as there are many, to keep it until the next poll is cheaper than a handshake for each.
fn spares_connection(connection: &Connection, version: Version) -> bool {
    if !connection.is_to_spare() {
        return false;
    }
    let is_h2 = version >= Version::HTTP_2;
    if is_h2 {
        connection.standing().tell(Told::End);
    }
    !is_h2
}

/// Returns an answer, as the last of its HTTP/1 connection if `close` and it does not switch to another protocol.
fn last_if(close: bool, mut response: Response<AnswerBody>) -> Response<AnswerBody> {
    if close && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// What is known of a request beside its head and body.
struct Asked {
    arrived: Instant,
    asker: Asker,
    visitor: Visitor,
    class: Class,
    /// Whether a good status would open a tunnel: WebSocket over HTTP/2.
    tunnel: bool,
}

/// A request that may go to the application: its slot and session, or neither if its route is ungated.
struct Passed {
    admission: Option<Admission>,
    /// Without a slot: the place it has instead until the application answers.
    open: Option<OpenPass>,
    /// Its client, if no cookie of the request tells it from others, and whether it was found to be of a session all the same.
    unknown: Option<Unknown>,
    /// Whether this request, once answered, ends its session.
    ends: bool,
    /// Whether it came with nothing that shows it to be of a session.
    is_new: bool,
}

/// A request that was taken to the gate.
struct Come {
    /// `None`: the session that its cookies name is not there, and nothing was done.
    arrived: Option<Arrived>,
    /// How it belongs to a session.
    session: Option<Membership>,
    /// See [`Passed::unknown`].
    unknown: Option<Unknown>,
}

impl Core {
    /// Returns whether a request is a call whose sides may speak by turns, so that its body may be waiting for the answer. A log-in is none.
    fn is_call(&self, parts: &request::Parts, class: Class) -> bool {
        parts.version == Version::HTTP_2
            && headers::is_grpc(&parts.headers)
            && self.upstream.speaks_http2()
            && class != Class::Ungated(Exempt::PassForm)
    }

    /// Returns how fast clients must send.
    fn pace(&self, is_call: bool) -> Pace {
        let (rate_min, total_max) =
            if is_call { (0, Duration::MAX) } else { (self.limits.body_rate, self.timeouts.body_total) };
        Pace { pause_max: self.timeouts.body_read, rate_min, total_max }
    }

    /// Reads a request's body before the gate is asked, unless reading would ask the client for it, or it may never come.
    async fn read_ahead(
        &self,
        connection: &Connection,
        parts: &request::Parts,
        body: &mut RequestBody,
        asked: &mut Asked,
        reads_ahead: bool,
    ) -> Result<(), BodyFault> {
        if reads_ahead {
            body.read_ahead(self.limits.prefix_bytes).await?;
            if body.is_unfinished()
                && let Class::Ungated(exempt) = asked.class
            {
                // There will be no slot to give back. Log-ins have so few places that none is taken before all is there.
                let origin = Origin::of(connection.peer().client(&parts.headers));
                let sender = Sender { origin, is_inside: false };
                let keeps = if exempt == Exempt::PassForm { Keeps::All } else { Keeps::Slow };
                Box::pin(body.keep(&self.spools, &self.kept, sender, keeps)).await?;
            }
            // What the client took to send is no wait of ours.
            asked.arrived = Instant::now();
        }
        Ok(())
    }

    /// Identified and classified: passes the gate, at once or after a wait.
    async fn admit(
        &self,
        connection: &Connection,
        parts: &request::Parts,
        body: &mut RequestBody,
        asked: &Asked,
    ) -> Result<Passed, NotAdmitted> {
        let route = match self.telemetry.gate_route(asked.class) {
            Ok(route) => route,
            Err(exempt) => return self.admit_ungated(connection, exempt, asked.arrived).await,
        };
        let named = self.membership(&asked.visitor, parts, |_| true);
        let mut come = self.arrive(connection, parts, &asked.visitor, (route, named), Named::First)?;
        // Only where the gate has not got the session that was named is it asked which it has.
        if come.arrived.is_none() {
            let stands = self.membership(&asked.visitor, parts, |session| self.keeper.has(session));
            come = self.arrive(connection, parts, &asked.visitor, (route, stands), Named::Last)?;
        }
        let Come { arrived, session, unknown } = come;
        if self.kinds.is_empty() || matches!(session, Some(Membership::Member { .. })) {
            connection.standing().note_admitted();
        }
        let admission = match arrived.expect("what was named last is taken in") {
            Arrived::Admitted(admission) => admission,
            Arrived::TurnedAway(away) => return Err(self.turned_away(away, Duration::ZERO)),
            Arrived::Waiting(waiting) => {
                let expects = parts.headers.contains_key(EXPECT);
                // On the heap, like all that few requests need.
                Box::pin(self.wait(connection, waiting, body, expects, asked.arrived)).await?
            }
        };
        if let Some(own) = admission.session
            && !is_known_as(session, own)
        {
            self.identifier.learn_request(&asked.visitor, own);
        }
        let ends = matches!(session, Some(Membership::Member { ends: true, .. }));
        let is_new = !matches!(session, Some(Membership::Member { .. } | Membership::Placed { .. }));
        Ok(Passed { admission: Some(admission), open: None, unknown, ends, is_new })
    }

    /// Lets in a request that needs no slot, unless very many are there.
    async fn admit_ungated(
        &self,
        connection: &Connection,
        exempt: Exempt,
        arrived: Instant,
    ) -> Result<Passed, NotAdmitted> {
        let entered = tokio::select! {
            biased;
            entered = self.open.of(exempt).enter() => entered,
            () = connection.closed(self.timeouts.watch_after) => return Err(NotAdmitted::Gone),
        };
        let Some(pass) = entered else {
            let refusal = Refusal {
                request: RequestId(0),
                reason: Reason::GatewayFull,
                retry_after: RETRY_UNGATED,
                predicted_wait: Duration::ZERO,
                waiting: 0,
            };
            return Err(self.turned_away(TurnedAway::Refused(refusal), arrived.elapsed()));
        };
        Ok(Passed { admission: None, open: Some(pass), unknown: None, ends: false, is_new: true })
    }

    fn membership(
        &self,
        visitor: &Visitor,
        parts: &request::Parts,
        is_begun: impl Fn(SessionId) -> bool,
    ) -> Option<Membership> {
        self.identifier.membership(visitor, &parts.method, parts.uri.path(), is_begun)
    }

    /// Takes a request to the gate, as belonging to what its cookies say, or to what is remembered of its client.
    fn arrive(
        &self,
        connection: &Connection,
        parts: &request::Parts,
        visitor: &Visitor,
        (route, session): (RouteId, Option<Membership>),
        named: Named,
    ) -> Result<Come, NotAdmitted> {
        let client = self.identifier.client(visitor, session, parts, connection.peer());
        let mut unknown =
            client.map(|client| Unknown { client, hint: connection.session_of(client.key), found: None });
        let member = |own| self.identifier.recalled(own, &parts.method, parts.uri.path(), now_unix());
        // Where somebody waits, before the line: to ask there draws on what a network may ask for.
        let is_waited_in = self.room.is_some() && self.keeper.waiting() > 0;
        if let Some(unknown) = unknown.as_mut().filter(|_| is_waited_in) {
            self.keeper.recognise(unknown, kind_of(session), &member);
        }
        let session = match (unknown.and_then(|unknown| unknown.found).and_then(member), session) {
            (Some(found), _) => Some(found),
            (None, Some(session)) => Some(self.in_line(session, visitor, parts, connection)?),
            (None, None) => None,
        };
        let asks = unknown.as_mut().filter(|_| !is_waited_in).map(|it| (it, &member as MemberOf<'_>));
        let arrived = self.keeper.arrive(Arrival { route, session }, asks, named);
        let session = unknown.and_then(|unknown| unknown.found).and_then(member).or(session);
        Ok(Come { arrived, session, unknown })
    }

    #[allow(clippy::needless_pass_by_value, reason = "what is turned away is answered here, and once")]
    fn turned_away(&self, away: TurnedAway, waited: Duration) -> NotAdmitted {
        match away {
            TurnedAway::Refused(refusal) => {
                self.telemetry.note_refusal(refusal.reason);
                NotAdmitted::Refused(refusal, waited)
            }
            TurnedAway::InLine(place) => NotAdmitted::InLine(place),
        }
    }

    /// Holds a request until the gate has decided, while its client is there and part of its body comes in.
    async fn wait(
        &self,
        connection: &Connection,
        mut waiting: Waiting,
        body: &mut RequestBody,
        expects_continue: bool,
        arrived: Instant,
    ) -> Result<Admission, NotAdmitted> {
        // Reading the body of a client that expects `100 Continue` would ask for it.
        let prefix_bytes = if expects_continue { 0 } else { self.limits.prefix_bytes };
        let watch_after = self.timeouts.watch_after.min(WATCH_WAITING_AFTER);
        let mut guard = LeftWaiting { telemetry: Some(&self.telemetry) };
        let outcome = tokio::select! {
            biased;
            verdict = waiting.verdict() => verdict.map_err(|away| self.turned_away(away, arrived.elapsed())),
            () = connection.closed(watch_after) => Err(NotAdmitted::Gone),
            fault = body.fill(prefix_bytes) => Err(fault.into()),
        };
        guard.telemetry = None;
        outcome
    }

    /// Admitted: takes a request to the application and its answer back.
    async fn pass(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        mut parts: Box<request::Parts>,
        mut body: RequestBody,
        asked: &Asked,
        switch: Option<OnUpgrade>,
        passed: Passed,
    ) -> Result<Response<AnswerBody>, Gone> {
        let Passed { admission, open, unknown, ends, is_new } = passed;
        let is_call = self.is_call(&parts, asked.class);
        let (slot, session, lease, waited) = match admission {
            Some(Admission { slot, session, lease, waited }) => (Some(slot), session, lease, waited),
            None => (None, None, LeaseDue::No, Duration::ZERO),
        };
        let origin = Origin::of(connection.peer().client(&parts.headers));
        let sender = Sender { origin, is_inside: !is_new || self.kinds.is_empty() };
        if body.is_unfinished() {
            let turn: Option<Box<dyn charge::Slot>> =
                slot.as_ref().and_then(Slot::turn).map(|turn| Box::new(turn) as _);
            let has_slot = turn.is_some();
            let uploads = if is_call { &self.calls } else { &self.uploads };
            let way = Box::new(Way { telemetry: Arc::clone(&self.telemetry), route: asked.class.route() });
            body.charge(turn, uploads, sender, way);
            if has_slot && parts.headers.contains_key(EXPECT) {
                let asked_for = tokio::select! {
                    biased;
                    asked_for = body.ask_for(self.limits.prefix_bytes) => asked_for,
                    () = connection.closed(self.timeouts.watch_after) => return Err(Gone),
                };
                if let Err(fault) = asked_for {
                    return self.broken_off(asked, fault);
                }
            }
            let now = Instant::now();
            let may_stream = may_stream(&parts.method);
            let is_wary = self.uploads.is_wary(now);
            let has_room = self.uploads.has_room(self.keeper.in_flight_max(), now);
            let keeps = if may_stream && is_wary {
                Keeps::WhileWary
            } else if !may_stream || !has_room || !waited.is_zero() {
                Keeps::All
            } else {
                Keeps::Slow
            };
            let is_stream = !body.is_declared() && may_stream && has_room && !is_wary;
            if has_slot && !is_call && !is_stream {
                // On the heap: short bodies are there by now.
                let kept = Box::pin(body.keep(&self.spools, &self.kept, sender, keeps));
                let kept = tokio::select! {
                    biased;
                    kept = kept => kept,
                    () = connection.closed(self.timeouts.watch_after) => return Err(Gone),
                };
                if let Err(fault) = kept {
                    return self.broken_off(asked, fault);
                }
            }
            if !is_call && body.is_unfinished() {
                body.streams();
            }
        }
        let secure = self.lease_secure || connection.peer().is_secure(&parts.headers);
        let method = parts.method.clone();
        // Kept for the table only if the path is new to it.
        let room = self.room.as_ref();
        let passes = room.and_then(Room::passes).filter(|passes| passes.is_page(parts.uri.path()));
        let novel = matches!(asked.class, Class::Unknown(_)).then(|| parts.uri.path().to_owned());
        let asset = self.table.asset_of(asked.class, &method, parts.uri.path());

        if asked.visitor.has_own_cookie {
            identify::strip_own_cookies(&mut parts.headers);
        }
        // Only what is of a session waits, as where the application is known to be down.
        let awaits = session.map(|(kind, session)| {
            let newcomer = || returns::Whose::of(connection.peer().client(&parts.headers));
            (if is_new { newcomer() } else { returns::Whose::Session(session) }, Some(kind))
        });
        headers::prepare_request(&mut parts, connection.peer(), switch.is_some(), self.via);
        if switch.is_some() {
            // HTTP/2 has none: there it is no proof of anything. To the application we are the client.
            parts.headers.entry(SEC_WEBSOCKET_KEY).or_insert_with(websocket_key);
        }
        let waiting_for_all = self.keeper.waiting();
        if waiting_for_all > 0 {
            parts.headers.insert(signals::WAITING, HeaderValue::from(waiting_for_all));
        }
        if !waited.is_zero() {
            let held = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
            parts.headers.insert(signals::HELD, HeaderValue::from(held));
        }

        let_others_catch_up().await;
        let sent = Instant::now();
        // To cancel a call is part of gRPC: its servers stop. What only says it is one may go on being worked on.
        let on_abandon = if is_call { OnAbandon::Cancel } else { self.on_abandon };
        // What waits for its own client says nothing about others.
        let tells_of_others = slot.is_some() && !is_call && !body.is_unfinished();
        let tally = Tally { sent, route: asked.class.route(), on_abandon, sender, tells_of_others };
        let unhurried = body.unhurried().filter(|_| is_call);
        let head = RequestHead::of(parts, connection.peer().forwarding());
        let sending = self.upstream.send(head, body, None);
        let mut exchange = Exchange::new(Arc::clone(self), sending, slot, tally, awaits);
        let head = tokio::select! {
            biased;
            head = exchange.head() => head,
            () = connection.left(self.timeouts.watch_after) => return Err(Gone),
        };
        let (mut head, came) = match head {
            Ok(head) => head,
            Err(error) => return Ok(self.failed(asked, &error)),
        };
        let answered = came.saturating_duration_since(sent);
        // What is still to come waits on the client.
        drop(open);
        if let Some(asset) = asset.filter(|_| head.status == StatusCode::OK) {
            self.table.note_answer(asset, is_page(&head.headers));
        }
        if asked.tunnel && head.status.is_success() {
            // It has answered the request, and did not switch. Its status would say that it did.
            return Ok(asked.asker.fault(Fault::Protocol, &self.pages).map(AnswerBody::text));
        }
        if let Some(unhurried) = unhurried.filter(|_| headers::is_grpc(&head.headers)) {
            // Both sides have begun, and either may have nothing to say for long. Pings tell whether they are there.
            unhurried.store(true, Relaxed);
        }

        let is_good = !head.status.is_client_error() && !head.status.is_server_error();
        let body = match self.gather(connection, &head, &mut exchange).await? {
            Ok(gathered) => self.answer_with(connection, &head, exchange, gathered, switch),
            Err(error) => return Ok(self.failed(asked, &error)),
        };
        if let Some(path) = novel.filter(|_| shows_a_route(&method, head.status)) {
            let was_long = sent.elapsed() >= LONG;
            self.learn(&method, &path, self.telemetry.gate_route(asked.class).ok().filter(|_| was_long));
        }
        let switched = head.status == StatusCode::SWITCHING_PROTOCOLS;
        let said = headers::prepare_response(&mut head, switched);
        if switched && asked.tunnel {
            headers::open_tunnel(&mut head);
        }
        let ends = self.heed(&said, session) || (ends && is_good);
        if let Some(session) = session {
            // What was said when it started may be too little by now.
            let lease = if asked.visitor.lease_of(session).is_none() {
                lease.max(self.keeper.lease_due())
            } else {
                lease
            };
            let has_app_cookie =
                unknown.map_or(asked.visitor.has_app_cookie(), |unknown| unknown.client.has_app_cookie);
            let before = (&asked.visitor, has_app_cookie);
            let known_by = self.keep_session(&mut head.headers, before, session, lease, ends, secure);
            if let Some(unknown) = unknown {
                self.keep_client(connection, &unknown, session, known_by);
            }
        }
        if let Some(passes) = passes {
            finish::give_pass(passes, &said, &mut head.headers, secure);
        }
        if !waited.is_zero() {
            head.headers
                .append(error_response::SERVER_TIMING, error_response::server_timing("waited", waited));
        }
        let total = asked.arrived.elapsed();
        let added = total.saturating_sub(waited).saturating_sub(answered);
        self.telemetry.route(asked.class.route()).passed(waited, added);
        Ok(Response::from_parts(head, body))
    }

    fn broken_off(&self, asked: &Asked, BodyFault(fault): BodyFault) -> Result<Response<AnswerBody>, Gone> {
        if fault == Fault::BrokenBody {
            return Err(Gone);
        }
        self.telemetry.note_fault();
        Ok(asked.asker.fault(fault, &self.pages).map(AnswerBody::text))
    }

    fn failed(&self, asked: &Asked, error: &UpstreamError) -> Response<AnswerBody> {
        if error.fault() == Whose::Client {
            self.telemetry.note_fault();
            let fault = error.find::<BodyFault>().map_or(Fault::BadBody, |fault| fault.0);
            return asked.asker.fault(fault, &self.pages).map(AnswerBody::text);
        }
        self.telemetry.note_upstream_error();
        tracing::warn!(reason = error.kind().code(), "no answer from the application: {error}");
        asked.asker.failed(error, &self.pages).map(AnswerBody::text)
    }

    /// Finds a route. `limit_of`: the gate's route with whose limit it begins, where it would take long to find one.
    fn learn(&self, method: &Method, path: &str, limit_of: Option<RouteId>) {
        let uses = |index| self.telemetry.route(Some(index)).good_answers();
        let begin = |id| limit_of.map(|share| self.keeper.begin_with_limit_of(id, share));
        self.table.learn(method, path, Instant::now(), uses, |seat, name| match seat {
            Seat::New(_) => {
                let id = self.keeper.declare_route(name, self.discovered_mode);
                begin(id);
                self.telemetry.name_route(name, id);
                tracing::info!(route = name, "a route was found");
                true
            }
            Seat::Of(index) => {
                let id = self.telemetry.route_id(index);
                let is_free = self.keeper.renew_route(id, name, self.discovered_mode);
                if is_free {
                    begin(id);
                    let before = self.telemetry.rename_route(index, name);
                    tracing::info!(
                        route = name,
                        before,
                        "a route was found, and has the place of one that nobody asks for"
                    );
                }
                is_free
            }
        });
    }
}

/// Returns whether an answer shows that there is something at a path: what redirects a reader may redirect everybody who mistypes, while a form that was
/// taken is answered so.
fn shows_a_route(method: &Method, status: StatusCode) -> bool {
    let is_read = method == Method::GET || method == Method::HEAD;
    status.is_success()
        || status.is_informational()
        || status == StatusCode::NOT_MODIFIED
        || (status.is_redirection() && !is_read)
}

/// Returns whether a body of unknown length may be a stream: what nobody expects one of may be answered before it has come.
fn may_stream(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}

/// Returns whether an answer is a page for people.
fn is_page(headers: &HeaderMap) -> bool {
    headers::is_of_kind(headers::content_type(headers), &[b"text/html", b"application/xhtml+xml"])
}

/// Lets every other request that moved with the same look at the sockets get as far as this one.
///
/// What is written wakes the process at the other end, and to wake one that has gone to sleep is the dearest part of
/// a request. Written one right behind the other, many requests wake it once (`experiments/proxy-cost`).
async fn let_others_catch_up() {
    tokio::task::yield_now().await;
}

/// Counts a client that left while it waited, when the library drops the future.
struct LeftWaiting<'a> {
    telemetry: Option<&'a Telemetry>,
}

impl Drop for LeftWaiting<'_> {
    fn drop(&mut self) {
        if let Some(telemetry) = self.telemetry {
            telemetry.note_gone_while_waiting();
        }
    }
}

fn is_known_as(membership: Option<Membership>, own: (KindId, SessionId)) -> bool {
    matches!(membership, Some(Membership::Member { kind, session, leased: false, .. }) if (kind, session) == own)
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client has closed its connection")
    }
}

impl error::Error for Gone {}

//! The life of a request, phase by phase.
//!
//! | phase | does | why here |
//! |---|---|---|
//! | accept | [`suimon_downstream::listener`]: connection, TLS, HTTP framing | |
//! | validate | refuses what could be read in two ways | before any of it is believed |
//! | redirect | plain HTTP → HTTPS, where the settings say so | what is not served needs no session, slot or place |
//! | classify | path, and query where a route names one → route, gated or not | decides whether there is a gate to pass |
//! | identify | lease and application cookies → session; without, connection, address and browser | only for gated requests, and before a cookie is taken out |
//! | read ahead | the body, up to a bound | a slot is the application's time: no client sends while it holds one |
//! | gate | a slot now, a wait, or a refusal | before the application is touched at all |
//! | keep | buffers the rest of a slow client's body, with the slot given back | no client sends while it holds a worker of the application either |
//! | prepare | hop-by-hop headers out, forwarding headers in | last, so that a waiting request costs as little as it can |
//! | forward | node, exchange, response head | holds the slot |
//! | gather | the body, as far as it takes no waiting on the client | the slot ends when the application is done |
//! | finish | slot back, cookies, counters | |
//!
//! A client may leave at any point: the library, or our watch, drops the future, and the guards
//! settle the rest.
//!
//! The phases stand here in their order. `gather` and `finish` have files of their own, and so has
//! `line`, which handles the waiting room.

mod admit;
mod core;
mod embedded;
mod finish;
mod forward;
mod gather;
mod learn;
mod line;
mod not_admitted;
mod redirect;
mod tunnel;

pub(crate) use core::{Core, Parts};
pub use embedded::{Admitted, Entered, UploadSlot};
pub(crate) use embedded::{enter, no_place};
pub use gather::CLIENT_TIME_MAX;
pub(crate) use line::FORM_BYTES_MAX;

use crate::account::Account;
use crate::error_response::{self, ErrorFormat};
use crate::https::AddedHeaders;
use crate::request_ids;
use crate::request_record::RequestOutcome;
use crate::wall_clock::now_unix;
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderValue, UPGRADE};
use http::{Method, Request, Response, StatusCode, Version, request};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use not_admitted::NotAdmitted;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{error, fmt};
use suimon_downstream::answer_body::ResponseBody;
use suimon_downstream::connection::{Busy, Connection};
use suimon_downstream::connections::CloseRequest;
use suimon_downstream::request_body::{BodyFault, BodyRateLimits, BufferPolicy, RequestBody};
use suimon_downstream::uploads::{Origin, Sender};
use suimon_identity::identify::Visitor;
use suimon_message::headers;
use suimon_message::validate::{RequestFault, validate};
use suimon_model::PoolId;
use suimon_routes::{Class, Exempt};
use suimon_waiting_room::{self as waiting_room, WaitingRoom};
use tunnel::{asks_for_tunnel, names_protocol};

/// The client has closed its connection: there is nobody to answer.
#[derive(Debug)]
pub(crate) struct ClientGone;

/// Takes one request from its head to its answer. `sites`: whether it is known whose it is.
pub(crate) fn serve(
    core: Arc<Core>,
    sites: Result<(), RequestFault>,
    connection: Arc<Connection>,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response<ResponseBody>, ClientGone>> {
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
    // A client that offered another protocol and does not get it may use it all the same.
    let close = asks_to_switch && request.version() < Version::HTTP_2;
    let (parts, incoming) = request.into_parts();
    // On the heap: a head is handed on from phase to phase, and is large to move. And allocated
    // before the future, which would keep room for the request to its end.
    let parts = Box::new(parts);
    serve_parts(
        core,
        connection,
        IncomingRequest { arrived, busy, parts, incoming, tunnel, switch, close, sites },
    )
}

/// A request taken apart.
struct IncomingRequest {
    arrived: Instant,
    busy: Busy,
    parts: Box<request::Parts>,
    incoming: Incoming,
    /// Whether a good status would open a tunnel: WebSocket over HTTP/2.
    tunnel: bool,
    switch: Option<OnUpgrade>,
    /// Whether its connection is to be closed behind the answer.
    close: bool,
    sites: Result<(), RequestFault>,
}

async fn serve_parts(
    core: Arc<Core>,
    connection: Arc<Connection>,
    IncomingRequest { arrived, busy, parts, incoming, tunnel, switch, close, sites }: IncomingRequest,
) -> Result<Response<ResponseBody>, ClientGone> {
    let error_format = ErrorFormat::new(&parts, request_ids::given(connection.peer(), &parts.headers));
    let account = Account::begin(&core.backend, &connection, &parts, &error_format, arrived);
    let added = core.https.added(connection.peer(), &parts.headers);
    let is_head = parts.method == Method::HEAD && parts.version >= Version::HTTP_2;
    if let Err(fault) = validate(&parts, &core.params.limits, names_protocol(&parts)).and(sites) {
        core.telemetry.note_fault();
        let close = close | is_last(&connection, parts.version);
        let response = last_if(close, error_format.fault(fault, &core.pages).map(ResponseBody::text));
        if let Some(account) = &account {
            account.ends(RequestOutcome::BadRequest, Some(error_response::code_of(fault)), Duration::ZERO);
        }
        let response = with(added.as_ref(), is_head, response);
        return Ok(noted(account.as_ref(), &parts.method, response).map(|body| body.keeping(busy)));
    }
    if let Some(location) = core.https.redirect(connection.peer(), &parts) {
        let (pace, budget) = (core.pace(false), &core.backend.budget);
        let body = RequestBody::new(incoming, None, pace, budget, || busy.client_wait());
        // On the heap: requests that are served should not carry it.
        let answer = Box::pin(core.redirect(location, &parts, body, &error_format, account.as_ref()));
        let response = answer.await;
        let close = close | is_last(&connection, parts.version);
        let response = with(added.as_ref(), is_head, last_if(close, response));
        return Ok(noted(account.as_ref(), &parts.method, response).map(|body| body.keeping(busy)));
    }

    let (class, pool) = core.table.classify_at_pool(&parts.method, parts.uri.path(), parts.uri.query());
    let (asks_room, visitor) = core.identify(&parts, class);
    let is_call = core.is_call(&parts, class, pool);
    let mut body = RequestBody::new(
        incoming,
        core.params.limits.body_bytes,
        core.pace(is_call),
        &core.backend.budget,
        || busy.client_wait(),
    );
    let mut context = RequestContext { arrived, error_format, account, visitor, class, pool, tunnel };
    if let Some(waiting_room) = asks_room {
        // On the heap: see below.
        let answered =
            Box::pin(core.answer_waiting_room(waiting_room, &connection, &parts, &mut body, &context)).await;
        if answered.is_err() {
            core.telemetry.note_disconnect_waiting();
        }
        if answered.is_ok() {
            context.ends(RequestOutcome::WaitingRoom, None, Duration::ZERO);
        }
        let close =
            close | spares_connection(&connection, parts.version) | is_last(&connection, parts.version);
        return answered.map(|page| {
            let page = with(added.as_ref(), is_head, last_if(close, page.map(ResponseBody::text)));
            noted(context.account.as_ref(), &parts.method, page).map(|body| body.keeping(busy))
        });
    }

    let version = parts.version;
    let method = context.account.is_some().then(|| parts.method.clone());
    // Ungated requests are started at once: places are for the application's work.
    let waits_to_ask = || parts.headers.contains_key(EXPECT) && !matches!(class, Class::Ungated(_));
    let reads_ahead = body.is_some() && !is_call && !tunnel && !waits_to_ask();
    let passed = match core.read_ahead(&connection, &parts, &mut body, &mut context, reads_ahead).await {
        Ok(()) => core.admit(&connection, &parts, &mut body, &context).await,
        Err(fault) => Err(fault.into()),
    };
    if passed.as_ref().is_ok_and(|passed| passed.admission.is_some()) {
        connection.standing().note_admitted();
    }
    let waits = passed.is_err();
    // An answer of the waiting room is no answer of a route: it has counters of its own.
    let is_of_room = passed.as_ref().is_err_and(NotAdmitted::is_of_room);
    // On the heap, both: waiting requests should not carry what only admitted ones need, nor the
    // other way round.
    let answered = match passed {
        Ok(passed) => Box::pin(core.forward(&connection, parts, body, &context, switch, passed)).await,
        Err(why) => {
            let sent_away = Box::pin(core.send_away(why, &connection, &parts, body, &context)).await;
            sent_away.map(|answer| answer.map(ResponseBody::text))
        }
    };
    let close = close | (waits && spares_connection(&connection, version)) | is_last(&connection, version);
    let response = with(added.as_ref(), is_head, last_if(close, answered?));
    yield_to_coalesce_writes().await;
    if !is_of_room {
        core.telemetry.route(context.class.route()).answered(error_response::status(&response));
    }
    let response = match method {
        Some(method) => noted(context.account.as_ref(), &method, response),
        None => response,
    };
    Ok(response.map(|body| body.keeping(busy)))
}

/// Returns a response with the headers that are added to it, if any are. `is_head`: it answers a HEAD over HTTP/2, where
/// the server sends what body there is.
fn with(
    added: Option<&AddedHeaders>,
    is_head: bool,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    if let Some(added) = added {
        added.add_to(response.status(), response.headers_mut());
    }
    if is_head
        && !response.body().is_end_stream()
        && let Some(length) = response.body().size_hint().exact()
    {
        response.headers_mut().entry(CONTENT_LENGTH).or_insert(HeaderValue::from(length));
        return response.map(|_| ResponseBody::empty());
    }
    response
}

/// Returns a response that is noted in the request's account, if there is one.
fn noted(
    account: Option<&Arc<Account>>,
    method: &Method,
    response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    match account {
        Some(account) => account.answers(response, method),
        None => response,
    }
}

/// Sees to it that clients that only wait hold no connection once few are left for admitted
/// visitors. Returns whether an HTTP/1 one is to be closed.
///
/// As long as there are many, to keep it until the next poll is cheaper than a handshake for each.
fn spares_connection(connection: &Connection, version: Version) -> bool {
    if !connection.is_to_spare() {
        return false;
    }
    let is_h2 = version >= Version::HTTP_2;
    if is_h2 {
        connection.standing().tell(CloseRequest::End);
    }
    !is_h2
}

/// Returns whether this answer is to be the last of an HTTP/1 connection.
fn is_last(connection: &Connection, version: Version) -> bool {
    version < Version::HTTP_2 && connection.standing().told() >= CloseRequest::AfterNext
}

/// Returns an answer, as the last of its HTTP/1 connection if `close` and it does not switch to
/// another protocol.
fn last_if(close: bool, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    if close && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// What is known of a request beside its head and body.
#[derive(Debug)]
struct RequestContext {
    arrived: Instant,
    error_format: ErrorFormat,
    /// If somebody wants to be told of it.
    account: Option<Arc<Account>>,
    visitor: Visitor,
    class: Class,
    /// Whose workers it is for.
    pool: PoolId,
    /// Whether a good status would open a tunnel: WebSocket over HTTP/2.
    tunnel: bool,
}

impl RequestContext {
    /// Takes note how a request is answered by us, and why, after it had `waited`.
    fn ends(&self, outcome: RequestOutcome, reason: Option<&'static str>, waited: Duration) {
        if let Some(account) = &self.account {
            account.ends(outcome, reason, waited);
        }
    }
}

impl Core {
    /// Returns the waiting room, if a request is for it, and who the request is from.
    fn identify(&self, parts: &request::Parts, class: Class) -> (Option<&WaitingRoom>, Visitor) {
        let asks_room =
            self.waiting_room.as_ref().filter(|_| waiting_room::is_for_it(parts, &self.params.waiting_room));
        let visitor = match class {
            // Any client may ask for a static asset, and none of them is worth a signature.
            Class::Ungated(_) if asks_room.is_none() => Visitor::unread(&parts.headers),
            _ => {
                let credentials = self.waiting_room.as_ref().map(WaitingRoom::credentials);
                self.identifier.read(&parts.headers, credentials, now_unix)
            }
        };
        (asks_room, visitor)
    }

    /// Returns whether the waiting room answers a request by what its body says.
    pub(crate) fn takes_form(&self, parts: &request::Parts) -> bool {
        self.waiting_room.is_some()
            && waiting_room::InternalEndpoint::of(parts.uri.path(), &self.params.waiting_room)
                .is_some_and(waiting_room::InternalEndpoint::takes_body)
    }

    /// Returns whether a request is a call whose sides may take turns, so that its body may be
    /// waiting for the answer. A log-in is not.
    fn is_call(&self, parts: &request::Parts, class: Class, pool: PoolId) -> bool {
        parts.version == Version::HTTP_2
            && headers::is_grpc(&parts.headers)
            && self.backend.upstream(pool).speaks_http2()
            && class != Class::Ungated(Exempt::PassForm)
    }

    /// Returns how fast clients must send.
    fn pace(&self, is_call: bool) -> BodyRateLimits {
        let (rate_min, total_max) = if is_call {
            (0, Duration::MAX)
        } else {
            (self.params.limits.body_rate_min, self.params.timeouts.body_total)
        };
        BodyRateLimits { pause_max: self.params.timeouts.body_read, rate_min, total_max }
    }

    /// Reads a request's body before the gate is asked, unless reading would ask the client for it,
    /// or it may never come.
    async fn read_ahead(
        &self,
        connection: &Connection,
        parts: &request::Parts,
        body: &mut RequestBody,
        context: &mut RequestContext,
        reads_ahead: bool,
    ) -> Result<(), BodyFault> {
        if reads_ahead {
            body.read_ahead(self.params.limits.request_buffer_bytes).await?;
            if body.is_unfinished()
                && let Class::Ungated(exempt) = context.class
            {
                // There will be no slot to give back. Log-ins have so few places that none is taken
                // before the body is complete.
                let origin = Origin::of(connection.peer().client(&parts.headers));
                let sender = Sender { origin, is_inside: false };
                let upstream = self.backend.upstream(context.pool);
                let needs_all =
                    upstream.wants_whole_bodies() || !body.is_declared() && upstream.needs_length();
                let keeps = if exempt == Exempt::PassForm || needs_all {
                    BufferPolicy::All
                } else {
                    BufferPolicy::Slow
                };
                Box::pin(body.keep(&self.backend.spools, &self.backend.kept, sender, keeps)).await?;
            }
            // The time the client took to send is no wait of ours.
            context.arrived = Instant::now();
            self.classify_again(parts, context);
        }
        Ok(())
    }

    /// Finds the route of a request that was still being sent: its own may have been given to
    /// another path meanwhile, even to one of another pool.
    fn classify_again(&self, parts: &request::Parts, context: &mut RequestContext) {
        if matches!(context.class, Class::Known(_)) {
            let (class, _) = self.table.classify_at_pool(&parts.method, parts.uri.path(), parts.uri.query());
            // What the gate was to be asked for does not pass it in the end.
            if !matches!(class, Class::Ungated(_)) {
                context.class = class;
            }
        }
    }
}

/// Lets every other request that was woken by the same poll of the sockets get as far as this one.
///
/// A write wakes the process at the other end, and waking one that has gone to sleep is the most
/// expensive part of a request. Many requests, written one right behind the other, wake it once
/// (`experiments/proxy-cost`).
async fn yield_to_coalesce_writes() {
    tokio::task::yield_now().await;
}

impl fmt::Display for ClientGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client has closed its connection")
    }
}

impl error::Error for ClientGone {}

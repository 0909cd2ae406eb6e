//! One request, from the pick of its node to the head of its response, with the retries that are
//! safe.

use super::body::{SentRequest, UpstreamBody};
use super::cgi::Cgi;
use super::connect::ConnectError;
use super::error::{Unsent, UpstreamError, UpstreamErrorKind};
use super::fastcgi::{Call, FastCgi, Programs};
use super::fault::Failed;
use super::head::RequestHead;
use super::http1::Http1;
use super::http2::StreamPermit;
use super::request::{Progress, RequestBody, is_safe};
use super::retries::{Again, Tries, is_fault, is_unread};
use super::workers::{Open, Wanted};
use super::{Guard, Node, Pool, Shared};
use http::header::{CONNECTION, HOST, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{HeaderValue, Request, Response, StatusCode, Version, response};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use suimon_model::NodeId;
use suimon_pool::Lease;
use tokio::sync::Notify;

/// How long a body may stand still that its client still sends.
const GOES_ON_WITHIN: Duration = Duration::from_secs(5);

/// The most tries for one request.
pub const TRIES_MAX: u32 = 3;
/// A request that this many nodes lost, while the whole application died, is sent once more when it is
/// back; if that is lost, too, it is the request.
const LOSSES_MAX: u64 = 2;
/// The longest that a request waits, before it is sent again, for the end of the worker that lost it.
const DEATH_WITHIN: Duration = Duration::from_millis(500);

/// The same where a kept connection closes: after that, a worker that has not ended lives. And a node that
/// closes one within this time of a request had not seen it: the connection had been idle for too long.
pub(super) const CLOSES_WITHIN: Duration = Duration::from_millis(20);

/// A request under way. It is small: its state is on the heap.
pub type Sending = Pin<Box<dyn Future<Output = Result<Response<UpstreamBody>, UpstreamError>> + Send>>;

/// An open connection, ready for one request.
enum Link {
    Http1(Box<Http1>),
    Http2(StreamPermit),
    FastCgi(Box<FastCgi>),
    /// A place at which a program runs, with the most bytes of a head.
    Cgi {
        head_max: usize,
    },
}

/// Why a try failed.
enum Missed {
    /// Nothing of the request was written; this is its body, unchanged.
    Unsent(UpstreamError, RequestBody),
    /// The connection closed without an answer; the node may have worked on the request.
    Lost(UpstreamError),
    Failed(UpstreamError),
}

/// Sends a request and returns the response, with retries as the crate's documentation says.
pub(super) async fn send(
    shared: Arc<Shared>,
    head: RequestHead,
    mut body: RequestBody,
    progress: Option<Arc<Progress>>,
    avoid: Option<NodeId>,
    // By nodes that died with it, before it waited for the application's return.
    mut losses: u64,
) -> Result<Response<UpstreamBody>, UpstreamError> {
    let replayable = progress.is_none() && is_safe(&head.parts.method);
    let session = shared.affinity.as_ref().and_then(|cookie| cookie.asked(&head));
    let mut last_error: Option<UpstreamError> = None;
    let mut all_tries = Tries::default();
    let mut refused: Option<NodeId> = None;
    // Of workers, before the first try.
    let mut deaths_before = None;
    for tries in 1..=TRIES_MAX {
        let picked = shared.pick(tries == 1, refused.or(avoid), &head, session);
        let Some((pick, mut guard)) = picked else {
            let error = last_error.unwrap_or_else(UpstreamError::no_node);
            // Where all are draining none comes back by itself.
            let is_gone = !*shared.is_reached.borrow();
            return Err(error.with_unsent_if(is_gone, Unsent { head, body, progress, losses }));
        };
        if let Some(error) = last_error.take() {
            // A node that has just refused would refuse again.
            if refused == Some(pick.node) {
                let is_gone = error.is_unreached()
                    || is_gone_soon(&shared).await
                        && all_tries.may_go_on(shared.now(), &mut shared.fleet(), head.route);
                return Err(error.with_unsent_if(is_gone, Unsent { head, body, progress, losses }));
            }
            if !all_tries.may_go_on(shared.now(), &mut shared.fleet(), head.route) {
                return Err(error.not_sent_again());
            }
        }
        let node = Arc::clone(&guard.node);
        // What no program answers costs no connection, which is a worker's place.
        let call =
            node.pool.programs().map(|programs| programs.call(&head, &body).map(|call| (programs, call)));
        let call = match call.transpose() {
            Ok(call) => call,
            Err(Failed { kind, detail, cause, .. }) => {
                let error = UpstreamError::new(kind, pick.node, detail);
                return Err(cause.into_iter().fold(error, UpstreamError::caused_by));
            }
        };
        let is_fresh = losses > 0 || tries == TRIES_MAX;
        let wanted = Wanted { passes: head.is_ungated, is_fresh, is_replayable: replayable };
        let (link, used_before) = match open(&node, &shared, wanted, &mut guard).await {
            Ok(link) => link,
            Err(ConnectError { kind, detail, cause }) => {
                if kind != UpstreamErrorKind::GatewayFull {
                    shared.note_unreached(pick.node);
                }
                let error = UpstreamError::new(kind, pick.node, detail);
                let error = cause.into_iter().fold(error, UpstreamError::caused_by);
                if shared.nodes.is_single() {
                    return Err(error.with_unsent(Unsent { head, body, progress, losses }));
                }
                last_error = Some(error);
                refused = Some(pick.node);
                all_tries.again = Some(Again::Unsent);
                continue;
            }
        };
        let worker = guard.worker.as_ref().map(Lease::worker);
        let was_kept = matches!(&link, Link::FastCgi(connection) if connection.is_kept());
        deaths_before = deaths_before.or(guard.worker.as_ref().map(Lease::deaths));
        let sent = SentRequest {
            node: pick.node,
            tries,
            idle_timeout: shared.params.idle_timeout,
            progress: progress.clone(),
            guard,
        };
        let unsent = std::mem::take(&mut body);
        let since = shared.now();
        let answer = attempt(link, &node, &head, call, unsent, sent, shared.params.first_byte_timeout);
        let tried = if shared.nodes.is_single() {
            answer.await
        } else {
            let hangs = if replayable { &node.hangs } else { &node.hangs_on };
            tokio::select! {
                biased;
                tried = answer => tried,
                // Dropping it has closed the connection.
                () = given_up(hangs, progress.as_deref()) => Err(Missed::Lost(UpstreamError::new(
                    UpstreamErrorKind::FirstByteTimeout,
                    pick.node,
                    "the node answers nothing, while others do",
                ))),
            }
        };
        // A failed connection from the pool proves nothing about the node. A new one that fails
        // does, or proves something about the request.
        let is_given_up =
            matches!(&tried, Err(Missed::Lost(error)) if error.kind() == UpstreamErrorKind::FirstByteTimeout);
        if is_given_up {
            refused = Some(pick.node);
        } else if !used_before && let Err(Missed::Unsent(..) | Missed::Lost(_)) = tried {
            match tried {
                Err(Missed::Unsent(..)) => shared.note_unreached(pick.node),
                _ => shared.note_lost(pick.node),
            }
            refused = Some(pick.node);
        }
        match tried {
            Ok(mut response) => {
                if let Some(cookie) = &shared.affinity {
                    shared.note_session(pick.node, session, cookie.said(response.headers()));
                }
                if shared.params.load_reports.orca {
                    shared.take_orca(pick.node, response.headers_mut());
                }
                // Only what was asked for tells how long it takes, and only if no client was waited for.
                let status = response.status();
                let is_good = status.is_success() || status == StatusCode::NOT_MODIFIED;
                if let Some(retry) = all_tries.retry().filter(|_| !is_fault(status)) {
                    shared.fleet().handle_retry_answered(shared.now(), retry);
                }
                if head.route.is_some() && (is_fault(status) || is_good && progress.is_none()) {
                    shared.note_served((pick.node, pick.reason.is_bound()), since, head.route, is_good);
                } else if is_good {
                    shared.note_took(since, head.route);
                }
                return Ok(response);
            }
            Err(Missed::Unsent(error, unsent)) => {
                all_tries.again = Some(Again::Unsent);
                body = unsent;
                last_error = Some(error);
            }
            Err(Missed::Lost(error)) => {
                losses += 1;
                if !replayable {
                    return Err(error);
                }
                // Of a worker it is known whether it lives.
                let may_be_idle = used_before && worker.is_none() && !is_given_up;
                let closes = may_be_idle && (is_unread(&error) || shared.now().since(since) < CLOSES_WITHIN);
                let (mut deaths, mut lives) = (0, false);
                if let Some((workers, worker)) = node.pool.workers().zip(worker) {
                    // Whoever lives has only closed the connection.
                    lives = was_kept && {
                        workers.pool.ended(worker, CLOSES_WITHIN).await;
                        workers.note_closed(worker)
                    };
                    if !lives {
                        workers.pool.ended(worker, DEATH_WITHIN).await;
                    }
                    deaths = workers.pool.deaths();
                }
                all_tries.again = Some(if lives || closes { Again::Closed } else { Again::Lost });
                // Two losses mean that the request breaks the application, not that an idle connection
                // had closed; unless workers have died meanwhile that had nothing to do with it.
                let others_died = deaths > deaths_before.unwrap_or(deaths) + losses;
                if losses > 1 && !others_died {
                    // ... or that the whole application died at once. Then it may wait, once; it asks nobody
                    // before there is somebody, so that it has no need of a budget.
                    let is_gone = losses == LOSSES_MAX && is_gone_soon(&shared).await;
                    return Err(error.with_unsent_if(is_gone, Unsent { head, body, progress, losses }));
                }
                last_error = Some(error);
            }
            Err(Missed::Failed(error)) => {
                if error.kind() == UpstreamErrorKind::FirstByteTimeout {
                    shared.note_failure(pick.node);
                }
                if matches!(
                    error.kind(),
                    UpstreamErrorKind::FirstByteTimeout | UpstreamErrorKind::BadResponse
                ) {
                    shared.note_served((pick.node, pick.reason.is_bound()), since, head.route, false);
                }
                return Err(error);
            }
        }
    }
    let error = last_error.expect("a try that does not return leaves its error");
    Err(error.with_unsent(Unsent { head, body, progress, losses }))
}

/// Waits until what a node that hangs has is given up; not an upload that goes on, as the node waits for its
/// client. One that stands still may be a call that waits for the node.
async fn given_up(hangs: &Notify, progress: Option<&Progress>) {
    loop {
        hangs.notified().await;
        if !progress.is_some_and(|body| body.awaits_client() && body.still_for() < GOES_ON_WITHIN) {
            return;
        }
    }
}

/// Returns whether no node can be connected to, or soon none can: that one has lost a request is known
/// before it is known that it has died.
async fn is_gone_soon(shared: &Shared) -> bool {
    let mut is_reached = shared.is_reached.subscribe();
    let gone = is_reached.wait_for(|is_reached| !is_reached);
    tokio::time::timeout(DEATH_WITHIN, gone).await.is_ok()
}

/// Returns a connection to `node` and whether it was used before. Leaves the worker that it leads to
/// with `guard`.
async fn open(
    node: &Node,
    shared: &Shared,
    wanted: Wanted,
    guard: &mut Guard,
) -> Result<(Link, bool), ConnectError> {
    let (head_max, timeout) = (shared.params.max_head_bytes, shared.params.first_byte_timeout);
    match &node.pool {
        Pool::Http1(pool) => {
            if !wanted.is_fresh
                && let Some(connection) = pool.take()
            {
                return Ok((Link::Http1(connection), true));
            }
            // Boxed: most requests find a connection, and their futures should not be larger for
            // those that do not.
            let stream = Box::pin(node.connector.connect()).await?;
            Ok((Link::Http1(Http1::new(stream, head_max, timeout)), false))
        }
        Pool::Http2(pool) => {
            let (lease, used_before) = Box::pin(pool.lease(&node.connector, wanted.is_fresh)).await?;
            Ok((Link::Http2(lease), used_before))
        }
        Pool::FastCgi(_) => {
            let stream = Box::pin(node.connector.connect()).await?;
            Ok((Link::FastCgi(FastCgi::new(stream, &node.params, head_max, timeout)), false))
        }
        Pool::Workers(workers) if workers.runs_once => {
            guard.worker = Some(Box::pin(workers.take_place(&node.connector, wanted.passes)).await?);
            Ok((Link::Cgi { head_max }, true))
        }
        Pool::Workers(workers) => {
            let (open, worker) = Box::pin(workers.open(&node.connector, wanted)).await?;
            guard.worker = Some(worker);
            let link = match open {
                Open::Kept(connection) => Link::FastCgi(connection),
                Open::New(stream) if workers.programs.is_some() => {
                    let mut connection = FastCgi::new(stream, &node.params, head_max, timeout);
                    if workers.keeps() {
                        connection.keep();
                    }
                    Link::FastCgi(connection)
                }
                Open::New(stream) => Link::Http1(Http1::new(stream, head_max, timeout)),
            };
            // That a worker ends proves nothing about the others.
            Ok((link, true))
        }
    }
}

async fn attempt(
    link: Link,
    node: &Node,
    head: &RequestHead,
    call: Option<(&Programs, Call<'_>)>,
    body: RequestBody,
    mut sent: SentRequest,
    first_byte_timeout: Duration,
) -> Result<Response<UpstreamBody>, Missed> {
    let progress = sent.progress.clone();
    let id = sent.node;
    let missed = |sent: &mut SentRequest, failed: Failed| {
        let Failed { kind, detail, cause, unsent } = failed;
        if kind == UpstreamErrorKind::FirstByteTimeout {
            sent.guard.stuck();
        }
        let error = UpstreamError::new(kind, id, detail);
        let error = cause.into_iter().fold(error, UpstreamError::caused_by);
        match unsent {
            Some(body) => Missed::Unsent(error, body),
            None if kind == UpstreamErrorKind::BrokenBeforeHead => Missed::Lost(error),
            None => Missed::Failed(error),
        }
    };
    match link {
        Link::Http1(mut connection) => {
            let exchange =
                connection.exchange(head, &node.authority, body, progress.as_ref(), first_byte_timeout);
            let answer = exchange.await.map_err(|failed| missed(&mut sent, failed))?;
            if answer.status == StatusCode::SWITCHING_PROTOCOLS {
                return upgrade(answer, *connection, head.parts.headers.contains_key(UPGRADE), sent);
            }
            Ok(Response::from_parts(answer, UpstreamBody::http1(connection, sent)))
        }
        Link::Http2(mut lease) => {
            let request = http2_request(head, body, node);
            let answer = lease.exchange(request, progress.as_ref(), first_byte_timeout).await;
            Ok(answer
                .map_err(|failed| missed(&mut sent, failed))?
                .map(|body| UpstreamBody::http2(body, lease, sent)))
        }
        Link::FastCgi(mut connection) => {
            let (programs, call) = call.expect("a FastCGI connection leads to a FastCGI node");
            let exchange = connection.exchange(
                head,
                (programs, &call),
                &node.authority,
                body,
                progress.as_ref(),
                first_byte_timeout,
            );
            let answer = exchange.await.map_err(|failed| missed(&mut sent, failed))?;
            Ok(Response::from_parts(answer, UpstreamBody::fastcgi(connection, sent)))
        }
        Link::Cgi { head_max } => {
            let call = call.as_ref().map(|(programs, call)| (*programs, call));
            let call = call.expect("a program is run at a node that has programs");
            let lease = sent.guard.worker.as_ref().expect("a program is run at a place");
            let limits = (head_max, first_byte_timeout);
            let exchange =
                Cgi::exchange(lease, head, call, &node.authority, body, progress.as_ref(), limits).await;
            let (answer, program) = exchange.map_err(|failed| missed(&mut sent, failed))?;
            Ok(Response::from_parts(answer, UpstreamBody::cgi(program, sent)))
        }
    }
}

/// Takes the raw connection out of one that has switched protocols.
fn upgrade(
    answer: response::Parts,
    connection: Http1,
    was_asked: bool,
    sent: SentRequest,
) -> Result<Response<UpstreamBody>, Missed> {
    if !was_asked {
        let detail = "the node switched protocols without being asked to";
        return Err(Missed::Failed(UpstreamError::new(UpstreamErrorKind::BadResponse, sent.node, detail)));
    }
    let (stream, early) = connection.into_upgraded();
    Ok(Response::from_parts(answer, UpstreamBody::upgraded(stream, early, sent)))
}

/// Returns a request in the form that HTTP/2 needs. Its headers are shared with `head`, not copied.
pub(super) fn http2_request(head: &RequestHead, body: RequestBody, node: &Node) -> Request<RequestBody> {
    let RequestHead { parts, forwarding, .. } = head;
    let mut request = Request::new(body);
    let host = parts.headers.get(HOST).unwrap_or(&node.authority);
    *request.method_mut() = parts.method.clone();
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = absolute(&parts.uri, host, node);
    *request.headers_mut() = parts.headers.clone();
    if let Some(forwarding) = forwarding {
        forwarding.add_to(request.headers_mut());
    }
    for own in [HOST, CONNECTION, UPGRADE] {
        request.headers_mut().remove(own);
    }
    request
}

/// Returns `uri` with scheme and authority, as HTTP/2 sends them.
fn absolute(uri: &Uri, host: &HeaderValue, node: &Node) -> Uri {
    let authority =
        Authority::try_from(host.as_bytes()).or_else(|_| Authority::try_from(node.authority.as_bytes()));
    let mut parts = uri.clone().into_parts();
    parts.scheme = Some(match node.params.scheme {
        suimon_params::upstream::Scheme::Http | suimon_params::upstream::Scheme::FastCgi => Scheme::HTTP,
        suimon_params::upstream::Scheme::Https => Scheme::HTTPS,
    });
    parts.authority = authority.ok();
    parts.path_and_query.get_or_insert_with(|| PathAndQuery::from_static("/"));
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

//! One request, from the choice of its node to the head of its response, with the tries that are safe.

use super::body::{Sent, UpstreamBody};
use super::connect::ConnectError;
use super::error::{UpstreamError, UpstreamErrorKind};
use super::http1::{Failed, Http1};
use super::http2::Lease;
use super::request::{Progress, RequestBody, copy_of, is_safe};
use super::{Node, Pool, Shared};
use http::header::{CONNECTION, HOST, UPGRADE};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{Extensions, HeaderValue, Request, Response, StatusCode, Version};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use suimon_model::NodeId;

/// The most times one request is sent, or is tried to be.
pub const TRIES_MAX: u32 = 3;

/// A request under way. Small and on the heap, whatever it waits for.
pub type Sending = Pin<Box<dyn Future<Output = Result<Response<UpstreamBody>, UpstreamError>> + Send>>;

/// An open connection, ready for one request.
enum Link {
    Http1(Box<Http1>),
    Http2(Lease),
}

/// How a try came to nothing.
enum Missed {
    /// Nothing of the request was written; here it is again.
    Unsent(UpstreamError, Box<Request<RequestBody>>),
    /// The connection broke without an answer, which the node may have been working on.
    Lost(UpstreamError),
    Failed(UpstreamError),
}

/// Sends a request and returns the response, trying again as the module's promise says.
pub(super) async fn send(
    shared: Arc<Shared>,
    mut head: Parts,
    mut body: RequestBody,
    progress: Option<Arc<Progress>>,
    avoid: Option<NodeId>,
) -> Result<Response<UpstreamBody>, UpstreamError> {
    // What the front side left in there belongs to its connection, not to the node's.
    head.extensions = Extensions::new();
    let replayable = progress.is_none() && is_safe(&head.method);
    let mut last_error: Option<UpstreamError> = None;
    let mut refused: Option<NodeId> = None;
    for tries in 1..=TRIES_MAX {
        let Some((pick, guard)) = shared.pick(refused.or(avoid)) else {
            return Err(last_error.unwrap_or_else(UpstreamError::no_node));
        };
        // A node that just refused would refuse again.
        if let Some(error) = last_error.take()
            && refused == Some(pick.node)
        {
            return Err(error);
        }
        let node = &shared.nodes[pick.node.index()];
        let last = tries == TRIES_MAX;
        let (link, used_before) = match open(node, &shared, last).await {
            Ok(link) => link,
            Err(ConnectError { kind, detail, cause }) => {
                shared.note_failure(pick.node);
                let error = UpstreamError::new(kind, pick.node, detail);
                let error = cause.into_iter().fold(error, UpstreamError::caused_by);
                if shared.nodes.len() == 1 {
                    return Err(error);
                }
                last_error = Some(error);
                refused = Some(pick.node);
                continue;
            }
        };
        let copy = (replayable && !last).then(|| copy_of(&head));
        prepare(&mut head, node);
        let request = Request::from_parts(head, body);
        let sent = Sent {
            node: pick.node,
            tries,
            idle_timeout: shared.params.idle_timeout,
            progress: progress.clone(),
            guard,
        };
        let tried = attempt(link, request, sent, shared.params.first_byte_timeout).await;
        // A connection from the pool says nothing about the node; a new one that breaks does.
        if !used_before && matches!(tried, Err(Missed::Unsent(..) | Missed::Lost(_))) {
            shared.note_failure(pick.node);
            refused = Some(pick.node);
        }
        match tried {
            Ok(response) => {
                shared.note_answer(pick.node);
                return Ok(response);
            }
            Err(Missed::Unsent(error, request)) => {
                (head, body) = request.into_parts();
                last_error = Some(error);
            }
            Err(Missed::Lost(error)) => {
                let Some(copy) = copy else { return Err(error) };
                (head, body) = (copy, RequestBody::empty());
                last_error = Some(error);
            }
            Err(Missed::Failed(error)) => {
                if error.kind() == UpstreamErrorKind::FirstByteTimeout {
                    shared.note_failure(pick.node);
                }
                return Err(error);
            }
        }
    }
    Err(last_error.expect("a try that does not return leaves its error"))
}

/// Returns a connection to `node` and whether it was used before. `fresh` asks for a new one.
async fn open(node: &Node, shared: &Shared, fresh: bool) -> Result<(Link, bool), ConnectError> {
    match &node.pool {
        Pool::Http1(pool) => {
            if !fresh && let Some(connection) = pool.take() {
                return Ok((Link::Http1(connection), true));
            }
            // On the heap: most requests find a connection, and none should be larger for those that do not.
            let stream = Box::pin(node.connector.connect()).await?;
            let connection =
                Http1::open(stream, shared.params.max_head_bytes, shared.params.first_byte_timeout)
                    .await
                    .map_err(|error| ConnectError {
                        kind: UpstreamErrorKind::Connect,
                        detail: "the connection to the node broke while it was set up",
                        cause: Some(error.into()),
                    })?;
            Ok((Link::Http1(connection), false))
        }
        Pool::Http2(pool) => {
            let (lease, used_before) = Box::pin(pool.lease(&node.connector, fresh)).await?;
            Ok((Link::Http2(lease), used_before))
        }
    }
}

async fn attempt(
    link: Link,
    request: Request<RequestBody>,
    sent: Sent,
    first_byte_timeout: Duration,
) -> Result<Response<UpstreamBody>, Missed> {
    let progress = sent.progress.clone();
    let node = sent.node;
    let failed = |failed: Failed| {
        let Failed { kind, detail, cause, unsent } = failed;
        let error = UpstreamError::new(kind, node, detail);
        let error = cause.into_iter().fold(error, UpstreamError::caused_by);
        match unsent {
            Some(request) => Missed::Unsent(error, request),
            None if kind == UpstreamErrorKind::BrokenBeforeHead => Missed::Lost(error),
            None => Missed::Failed(error),
        }
    };
    match link {
        Link::Http1(mut connection) => {
            let upgradable = request.headers().contains_key(UPGRADE);
            match connection.exchange(request, progress.as_ref(), first_byte_timeout).await {
                Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    upgrade(response.into_parts().0, connection, upgradable, sent).await
                }
                Ok(response) => Ok(response.map(|body| UpstreamBody::http1(body, connection, sent))),
                Err(failure) => Err(failed(failure)),
            }
        }
        Link::Http2(mut lease) => {
            match lease.exchange(request, progress.as_ref(), first_byte_timeout).await {
                Ok(response) => Ok(response.map(|body| UpstreamBody::http2(body, lease, sent))),
                Err(failure) => Err(failed(failure)),
            }
        }
    }
}

/// Takes the raw connection out of one that has switched protocols.
async fn upgrade(
    mut head: http::response::Parts,
    mut connection: Box<Http1>,
    upgradable: bool,
    sent: Sent,
) -> Result<Response<UpstreamBody>, Missed> {
    let wrong =
        |detail| Err(Missed::Failed(UpstreamError::new(UpstreamErrorKind::BadResponse, sent.node, detail)));
    if !upgradable {
        return wrong("the node switched protocols without being asked to");
    }
    // The library's own way to the raw connection is of no use without its task; ours is the body.
    head.extensions = Extensions::new();
    poll_fn(|cx| connection.poll(cx)).await;
    let Some((stream, early)) = connection.into_upgraded() else {
        return wrong("the connection ended while it switched protocols");
    };
    Ok(Response::from_parts(head, UpstreamBody::upgraded(stream, early, sent)))
}

/// Puts the head into the form the node's protocol wants.
pub(super) fn prepare(head: &mut Parts, node: &Node) {
    match node.pool {
        Pool::Http1(_) => {
            head.version = Version::HTTP_11;
            // Whole targets come from a first try at an HTTP/2 node, which has taken the header's place.
            let authority = head.uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
            if authority.is_some() {
                head.uri = origin(&head.uri);
            }
            if !head.headers.contains_key(HOST) {
                head.headers.insert(HOST, authority.unwrap_or_else(|| node.authority.clone()));
            }
        }
        Pool::Http2(_) => {
            head.version = Version::HTTP_2;
            let host = head.headers.remove(HOST);
            head.headers.remove(CONNECTION);
            head.headers.remove(UPGRADE);
            // A second try has it in the target already.
            if head.uri.authority().is_none() {
                head.uri = absolute(&head.uri, host.as_ref().unwrap_or(&node.authority), node);
            }
        }
    }
}

/// Returns `uri` without scheme and authority, as HTTP/1.1 sends them.
fn origin(uri: &Uri) -> Uri {
    uri.path_and_query().map_or_else(|| Uri::from_static("/"), |target| Uri::from(target.clone()))
}

/// Returns `uri` with scheme and authority, as HTTP/2 sends them.
fn absolute(uri: &Uri, host: &HeaderValue, node: &Node) -> Uri {
    let authority =
        Authority::try_from(host.as_bytes()).or_else(|_| Authority::try_from(node.authority.as_bytes()));
    let mut parts = uri.clone().into_parts();
    parts.scheme = Some(match node.params.scheme {
        super::Scheme::Http => Scheme::HTTP,
        super::Scheme::Https => Scheme::HTTPS,
    });
    parts.authority = authority.ok();
    parts.path_and_query.get_or_insert_with(|| PathAndQuery::from_static("/"));
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

//! What is told of one request once its response has ended: for access logs and traces.

use crate::trace_context::TraceContext;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, StatusCode, Version};
use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Takes what is told of requests. It is called while they are served, and must not block.
pub trait RequestSink: Debug + Send + Sync {
    /// Takes note of a request that has ended.
    fn end(&self, record: Box<RequestRecord>);
}

/// What is noted of requests beside what is counted.
#[derive(Clone, Debug, Default)]
pub struct RequestNotes {
    /// Who is told of requests; `None`: nobody, and requests only get an id.
    pub sink: Option<Arc<dyn RequestSink>>,
    /// Whether only those are told whose spans are taken.
    pub traced_only: bool,
    /// The share of requests whose spans are taken; `None`: there are no traces.
    pub trace_ratio: Option<f64>,
}

/// One request. Times that are missing are those of what did not happen.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// When its head had been read.
    pub arrived: Instant,
    /// From there to the end of its response.
    pub total: Duration,
    /// The site that it was for; `None`: the main one.
    pub site: Option<Arc<str>>,
    /// What it is called.
    pub id: HeaderValue,
    /// Its trace, if its spans are taken.
    pub trace: Option<TraceContext>,
    /// Its client, as trusted proxies say.
    pub client: IpAddr,
    /// Whether the client's connection is encrypted, as far as can be known.
    pub is_secure: bool,
    /// Its method.
    pub method: Method,
    /// Path and query; the query may hold secrets.
    pub target: Option<PathAndQuery>,
    /// Its protocol.
    pub version: Version,
    /// `Host` as it was asked for.
    pub host: Option<HeaderValue>,
    /// The status of the response; `None`: there was none.
    pub status: Option<StatusCode>,
    /// Bytes of the response's body that were handed on to the client's connection.
    pub bytes: u64,
    /// How it ended.
    pub outcome: RequestOutcome,
    /// Why, if it was not served: the code of a refusal, a failure or a fault.
    pub reason: Option<&'static str>,
    /// `GET /items/{id}`, `other` or `ungated`; `None`: the waiting room's own.
    pub route: Option<String>,
    /// The kind of its session, and what the session is called in logs.
    pub session: Option<(String, u64)>,
    /// When it came to the gate, its body read as far as it is read ahead.
    pub asked: Option<Instant>,
    /// Time at the session gate.
    pub held: Duration,
    /// Time in its route's queue.
    pub queued: Duration,
    /// The limit of its route when it was admitted.
    pub limit: Option<u32>,
    /// Requests of its route in the application then, with this one.
    pub in_flight: Option<usize>,
    /// The node that answered, or failed to.
    pub node: Option<String>,
    /// When it was sent to the application.
    pub sent: Option<Instant>,
    /// From there to the head of the application's response.
    pub first_byte: Option<Duration>,
    /// From there until the application was done.
    pub application: Option<Duration>,
}

suimon_model::choices! {
    /// How a request ended.
    #[derive(Eq)]
    pub enum RequestOutcome {
        /// The application's response was passed on.
        Served = 0, "served", "the application's response was passed on, whatever its status";
        /// It was refused.
        Refused = 1, "refused", "refused, with a reason and Retry-After";
        /// It got a place in line, and was shown it.
        InLine = 2, "in_line", "shown its place in line";
        /// Its client left.
        ClientGone = 3, "client_gone", "the client disconnected before the response, or before all of it";
        /// The application gave no response, or not all of it.
        UpstreamError = 4, "upstream_error", "the application gave no response, or broke off";
        /// It was not as it should be.
        BadRequest = 5, "bad_request", "the request was not valid";
        /// It was for the waiting room and not for the application.
        WaitingRoom = 6, "waiting_room", "a poll of a waiting page, or another request to the waiting room itself";
        /// It came by plain HTTP, and was sent to HTTPS.
        Redirected = 7, "redirected", "redirected from plain HTTP to HTTPS";
    }
}

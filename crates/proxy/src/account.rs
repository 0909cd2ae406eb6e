//! Keeps note of one request while it is under way, and tells of it when its response has ended.
//!
//! There is none unless somebody wants to be told. It is shared by whatever still works on the
//! request; when the last of them is done, so is the request.

use crate::backend::Backend;
use crate::body_end::BodyEnd;
use crate::error_response::ErrorFormat;
use crate::gatekeeper::GateAdmission;
use crate::request_ids::X_REQUEST_ID;
use crate::request_record::{RequestOutcome, RequestRecord, RequestSink};
use crate::trace_context::TraceContext;
use http::header::{HOST, HeaderMap, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Response, StatusCode, request};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use suimon_downstream::answer_body::{BodyWatch, ResponseBody};
use suimon_downstream::connection::Connection;
use suimon_model::{KindId, NodeId, PoolId, RouteId, SessionId};
use suimon_routes::Class;

/// See the module.
#[derive(Debug)]
pub(crate) struct Account {
    backend: Arc<Backend>,
    sink: Arc<dyn RequestSink>,
    noted: Mutex<Noted>,
}

#[derive(Debug)]
struct Noted {
    /// `None`: it was told of.
    record: Option<Box<RequestRecord>>,
    /// `Some(None)`: ungated.
    route: Option<Option<RouteId>>,
    session: Option<(KindId, SessionId)>,
}

/// Returns a copy of its own. As it came it is a part of the request's whole head, which a record that
/// waits to be written would keep in memory.
fn own(value: &HeaderValue) -> HeaderValue {
    HeaderValue::from_bytes(value.as_bytes()).unwrap_or(HeaderValue::from_static(""))
}

impl Account {
    /// Begins to keep note of a request, if somebody wants to be told of it.
    pub(crate) fn begin(
        backend: &Arc<Backend>,
        connection: &Connection,
        parts: &request::Parts,
        error_format: &ErrorFormat,
        arrived: Instant,
    ) -> Option<Arc<Account>> {
        let notes = backend.notes.get()?;
        let sink = Arc::clone(notes.sink.as_ref()?);
        let peer = connection.peer();
        let sample = |ratio| TraceContext::sample(&parts.headers, peer.is_trusted(), ratio);
        let trace = notes.trace_ratio.and_then(sample);
        if notes.traced_only && trace.is_none() {
            return None;
        }
        let record = Box::new(RequestRecord {
            arrived,
            total: Duration::ZERO,
            site: backend.site.clone(),
            id: own(error_format.request_id()),
            trace,
            client: peer.client(&parts.headers),
            is_secure: peer.is_secure(&parts.headers),
            method: parts.method.clone(),
            target: parts
                .uri
                .path_and_query()
                .and_then(|target| PathAndQuery::try_from(target.as_str()).ok()),
            version: parts.version,
            host: parts
                .headers
                .get(HOST)
                .map(own)
                .or_else(|| HeaderValue::try_from(parts.uri.authority()?.as_str()).ok()),
            status: None,
            bytes: 0,
            outcome: RequestOutcome::ClientGone,
            reason: None,
            route: None,
            session: None,
            asked: None,
            held: Duration::ZERO,
            queued: Duration::ZERO,
            limit: None,
            in_flight: None,
            node: None,
            sent: None,
            first_byte: None,
            application: None,
        });
        let noted = Mutex::new(Noted { record: Some(record), route: None, session: None });
        Some(Arc::new(Account { backend: Arc::clone(backend), sink, noted }))
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut RequestRecord)) {
        if let Some(record) = &mut self.lock().record {
            change(record);
        }
    }

    /// It comes to the gate, as of this class.
    pub(crate) fn asks(&self, class: Class, at: Instant) {
        self.lock().route = Some(class.route());
        self.note(|record| record.asked = Some(at));
    }

    /// It may go to the application.
    pub(crate) fn admitted(&self, admission: &GateAdmission) {
        self.lock().session = admission.session;
        self.note(|record| {
            (record.held, record.queued) = (admission.held, admission.waited.saturating_sub(admission.held));
            (record.limit, record.in_flight) = (admission.limit, Some(admission.in_flight));
        });
    }

    /// It is sent now, with these headers.
    pub(crate) fn sends(&self, now: Instant) {
        self.note(|record| record.sent = Some(now));
    }

    /// A node of the application has answered, or failed to.
    pub(crate) fn came_from(&self, pool: PoolId, node: Option<NodeId>, first_byte: Option<Duration>) {
        let node = node.and_then(|node| self.backend.upstream(pool).address_of(node));
        self.note(|record| (record.node, record.first_byte) = (node, first_byte));
    }

    /// The application is done with it.
    pub(crate) fn done(&self, took: Duration) {
        self.note(|record| record.application = Some(took));
    }

    /// It is answered by us: how, and why. `waited`: how long it had been held or queued.
    pub(crate) fn ends(&self, outcome: RequestOutcome, reason: Option<&'static str>, waited: Duration) {
        self.note(|record| {
            (record.outcome, record.reason) = (outcome, reason);
            record.held = record.held.max(waited);
        });
    }

    /// Looks on while a response goes out.
    pub(crate) fn answers(
        self: &Arc<Self>,
        response: Response<ResponseBody>,
        method: &Method,
    ) -> Response<ResponseBody> {
        let status = response.status();
        self.answered(status);
        let end = BodyEnd::of(method, status, response.headers());
        let watch = Watch { account: Arc::clone(self), end };
        response.map(|body| body.watched(Box::new(watch)))
    }

    /// It is answered. Where the process itself works on it, which also sends the answer, nobody looks on.
    pub(crate) fn answered(&self, status: StatusCode) {
        self.note(|record| {
            record.status = Some(status);
            // Whatever was said before is more precise.
            if record.outcome == RequestOutcome::ClientGone {
                record.outcome = RequestOutcome::Served;
            }
        });
    }

    /// So many bytes went to the client behind the response, by another protocol.
    pub(crate) fn carried(&self, bytes: u64) {
        self.note(|record| record.bytes = bytes);
    }

    /// Tells the application of the request's trace.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        if let Some(trace) = self.lock().record.as_ref().and_then(|record| record.trace) {
            trace.write(headers);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let noted = self.noted.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(mut record) = noted.record.take() else { return };
        record.total = record.arrived.elapsed();
        record.route = noted.route.map(|route| self.backend.telemetry.name_of(route));
        record.session = noted.session.map(|session| {
            let kind = self.backend.telemetry.kind_names().get(session.0.index());
            (kind.cloned().unwrap_or_default(), self.backend.session_tags.tag(session))
        });
        self.sink.end(record);
    }
}

/// Counts what a client takes of a response.
struct Watch {
    account: Arc<Account>,
    end: BodyEnd,
}

impl BodyWatch for Watch {
    fn passed(&mut self, bytes: usize) {
        self.end.passed(bytes);
    }

    fn ended(&mut self, failed: bool) {
        self.end.end();
        if failed {
            self.account.note(|record| record.outcome = RequestOutcome::UpstreamError);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let end = self.end;
        self.account.note(|record| {
            record.bytes = end.bytes();
            if !end.is_over() {
                record.outcome = RequestOutcome::ClientGone;
            }
        });
    }
}

/// Sets what a request is called for the application.
pub(crate) fn name_request(headers: &mut HeaderMap, id: &HeaderValue) {
    headers.insert(X_REQUEST_ID, id.clone());
}

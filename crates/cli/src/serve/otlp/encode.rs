//! Requests as spans: `ExportTraceServiceRequest` of OTLP, in its JSON.
//!
//! | span | kind | from | to |
//! |---|---|---|---|
//! | `GET /items/{id}` | server | head read | response ended |
//! | `session gate` | internal | asked | session begun |
//! | `route gate` | internal | session begun | slot |
//! | `application` | client | sent | application done |
//! | `response` | internal | its head | response ended |
//!
//! Waits that were not there have no span.

use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime};
use suimon_proxy::{RequestOutcome, RequestRecord, TraceContext};

/// Kinds of spans, and their states, in the protocol's numbers.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
const CLIENT: u8 = 3;
const ERROR: u8 = 2;

/// Whose spans they are.
pub(super) struct Resource<'a> {
    pub(super) service_name: &'a str,
    pub(super) version: &'a str,
}

/// A part of a request's time.
struct Part {
    name: &'static str,
    kind: u8,
    /// Where it lies in the request, from its arrival.
    from: Duration,
    to: Duration,
}

/// Returns the spans of these requests.
pub(super) fn spans_of(batch: &[Box<RequestRecord>], resource: &Resource<'_>) -> Value {
    let clock = Clock { now: Instant::now(), wall: SystemTime::now() };
    let spans: Vec<Value> = batch
        .iter()
        .filter_map(|record| Some((record, record.trace?)))
        .flat_map(|(record, trace)| of_request(record, trace, clock))
        .collect();
    json!({
        "resourceSpans": [{
            "resource": resource_of(resource),
            "scopeSpans": [{ "scope": { "name": "suimon", "version": resource.version }, "spans": spans }],
        }]
    })
}

/// Returns whose spans or numbers they are.
pub(super) fn resource_of(resource: &Resource<'_>) -> Value {
    json!({ "attributes": [
        text("service.name", resource.service_name),
        text("service.version", resource.version),
    ] })
}

/// Returns how many spans a request has.
pub(super) fn count(record: &RequestRecord) -> u64 {
    if record.trace.is_some() { 1 + parts(record).len() as u64 } else { 0 }
}

/// One moment by both clocks.
#[derive(Clone, Copy)]
struct Clock {
    now: Instant,
    wall: SystemTime,
}

impl Clock {
    /// Returns a moment in nanoseconds since 1970, as text: a JSON number is not that exact.
    fn nanos(self, at: Instant) -> String {
        let wall = match self.now.checked_duration_since(at) {
            Some(ago) => self.wall.checked_sub(ago),
            None => self.wall.checked_add(at.duration_since(self.now)),
        };
        let since = wall.and_then(|wall| wall.duration_since(SystemTime::UNIX_EPOCH).ok());
        since.unwrap_or_default().as_nanos().to_string()
    }
}

fn of_request(record: &RequestRecord, trace: TraceContext, clock: Clock) -> Vec<Value> {
    let id = format!("{:032x}", trace.trace);
    let at = |since: Duration| clock.nanos(record.arrived + since);
    let mut own = json!({
        "traceId": id,
        "spanId": format!("{:016x}", trace.span),
        "name": name(record),
        "kind": SERVER,
        "startTimeUnixNano": at(Duration::ZERO),
        "endTimeUnixNano": at(record.total),
        "attributes": attributes(record),
        "status": status(record),
    });
    if let Some(parent) = trace.parent {
        own["parentSpanId"] = format!("{parent:016x}").into();
    }
    let mut spans = vec![own];
    for (number, part) in (1..).zip(parts(record)) {
        // Any number will do that no other span of the trace has; the application's is told to it.
        let span =
            if part.kind == CLIENT { trace.application } else { trace.span.rotate_left(number).max(1) };
        let mut attributes = Vec::new();
        if part.kind == CLIENT {
            attributes.push(text("http.request.method", record.method.as_str()));
            attributes.extend(record.node.as_deref().map(|node| text("server.address", node)));
            attributes.extend(
                record.status.map(|status| number_of("http.response.status_code", status.as_u16().into())),
            );
        }
        spans.push(json!({
            "traceId": id,
            "spanId": format!("{span:016x}"),
            "parentSpanId": format!("{:016x}", trace.span),
            "name": part.name,
            "kind": part.kind,
            "startTimeUnixNano": at(part.from),
            "endTimeUnixNano": at(part.to),
            "attributes": attributes,
            "status": if part.kind == CLIENT { status(record) } else { json!({}) },
        }));
    }
    spans
}

/// Returns the parts of a request's time that have spans of their own.
fn parts(record: &RequestRecord) -> Vec<Part> {
    let since = |at: Instant| at.saturating_duration_since(record.arrived);
    let end = record.total;
    let mut parts = Vec::new();
    let asked = record.asked.map_or(Duration::ZERO, since);
    let begun = asked + record.held;
    if !record.held.is_zero() {
        parts.push(Part { name: "session gate", kind: INTERNAL, from: asked, to: begun.min(end) });
    }
    if !record.queued.is_zero() {
        parts.push(Part {
            name: "route gate",
            kind: INTERNAL,
            from: begun,
            to: (begun + record.queued).min(end),
        });
    }
    if let Some(sent) = record.sent.map(since) {
        let done = record.application.map_or(end, |took| sent + took);
        parts.push(Part { name: "application", kind: CLIENT, from: sent, to: done });
        if let Some(took) = record.first_byte {
            parts.push(Part { name: "response", kind: INTERNAL, from: (sent + took).min(end), to: end });
        }
    }
    parts
}

/// Returns the name of a request's span: method and template, as far as that is known.
fn name(record: &RequestRecord) -> String {
    match record.route.as_deref().filter(|route| route.contains(' ')) {
        Some(route) => route.to_owned(),
        None => record.method.to_string(),
    }
}

fn attributes(record: &RequestRecord) -> Vec<Value> {
    let path = record.target.as_ref().map_or("", |target| target.path());
    let template =
        record.route.as_deref().and_then(|route| route.split_once(' ')).map(|(_, template)| template);
    let host = record.host.as_ref().and_then(|host| host.to_str().ok());
    let version = match record.version {
        hyper::Version::HTTP_2 => "2",
        hyper::Version::HTTP_10 => "1.0",
        _ => "1.1",
    };
    let mut all = vec![
        text("http.request.method", record.method.as_str()),
        text("url.path", path),
        text("url.scheme", if record.is_secure { "https" } else { "http" }),
        text("network.protocol.name", "http"),
        text("network.protocol.version", version),
        text("client.address", &record.client.to_string()),
        number_of("http.response.body.size", record.bytes),
        text("suimon.request_id", record.id.to_str().unwrap_or_default()),
        text("suimon.outcome", record.outcome.word()),
    ];
    all.extend(template.map(|template| text("http.route", template)));
    all.extend(host.map(|host| text("server.address", host)));
    all.extend(record.status.map(|status| number_of("http.response.status_code", status.as_u16().into())));
    all.extend(record.reason.map(|reason| text("suimon.reason", reason)));
    all.extend(error_type(record).map(|error| text("error.type", &error)));
    if let Some((kind, tag)) = &record.session {
        all.push(text("suimon.session.kind", kind));
        all.push(text("suimon.session", &format!("{tag:016x}")));
    }
    all.extend(record.limit.map(|limit| number_of("suimon.route.limit", limit.into())));
    all.extend(record.in_flight.map(|count| number_of("suimon.route.in_flight", count as u64)));
    all
}

/// Returns what went wrong, if it is not the client's fault.
fn error_type(record: &RequestRecord) -> Option<String> {
    match (record.outcome, record.status) {
        (RequestOutcome::UpstreamError, _) => Some(record.reason.unwrap_or("upstream_error").to_owned()),
        (_, Some(status)) if status.is_server_error() => Some(status.as_str().to_owned()),
        _ => None,
    }
}

fn status(record: &RequestRecord) -> Value {
    if error_type(record).is_some() { json!({ "code": ERROR }) } else { json!({}) }
}

/// Returns an attribute.
pub(super) fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number_of(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::access_log::line::tests::record;

    fn traced() -> RequestRecord {
        let record = record();
        let arrived = record.arrived;
        RequestRecord {
            site: None,
            trace: Some(TraceContext { trace: 0xa, parent: Some(0xb), span: 0xc, application: 0xd }),
            asked: Some(arrived + Duration::from_millis(1)),
            sent: Some(arrived + Duration::from_millis(31)),
            ..record
        }
    }

    fn spans(record: RequestRecord) -> Vec<Value> {
        let resource = Resource { service_name: "shop", version: "1" };
        let mut all = spans_of(&[Box::new(record)], &resource);
        let resource = &all["resourceSpans"][0]["resource"]["attributes"][0];
        assert_eq!(resource["value"]["stringValue"], "shop");
        let Value::Array(spans) = all["resourceSpans"][0]["scopeSpans"][0]["spans"].take() else {
            panic!("no spans in {all}")
        };
        spans
    }

    fn millis(span: &Value, from: &str) -> i128 {
        let nanos = |name: &str| span[name].as_str().unwrap().parse::<i128>().unwrap();
        (nanos(from) - nanos("startTimeUnixNano")) / 1_000_000
    }

    #[test]
    fn each_wait_is_a_span_below_that_of_the_request() {
        let spans = spans(traced());
        let names: Vec<_> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["GET /items/{id}", "session gate", "route gate", "application", "response"]);
        assert_eq!(count(&traced()), 5);
        let took: Vec<_> = spans.iter().map(|span| millis(span, "endTimeUnixNano")).collect();
        assert_eq!(took, [123, 10, 20, 60, 42]);
        assert_eq!(spans[0]["parentSpanId"], "000000000000000b");
        assert!(spans[1..].iter().all(|span| span["parentSpanId"] == "000000000000000c"));
        assert!(spans.iter().all(|span| span["traceId"] == "0000000000000000000000000000000a"));
        assert_eq!(spans[3]["spanId"], "000000000000000d", "as the application is told");
        let ids: std::collections::BTreeSet<_> =
            spans.iter().map(|span| span["spanId"].to_string()).collect();
        assert_eq!(ids.len(), 5);
    }

    #[test]
    fn attributes_have_the_names_of_the_conventions() {
        let [span, ..] = &spans(traced())[..] else { panic!("no span") };
        let value = |key: &str| {
            let all = span["attributes"].as_array().unwrap();
            all.iter().find(|it| it["key"] == key).map(|it| it["value"].clone()).unwrap_or_default()
        };
        assert_eq!(value("http.request.method")["stringValue"], "GET");
        assert_eq!(value("http.route")["stringValue"], "/items/{id}");
        assert_eq!(value("http.response.status_code")["intValue"], "200");
        assert_eq!(value("server.address")["stringValue"], "shop.example");
        assert_eq!(value("suimon.route.limit")["intValue"], "8");
        assert!(!span.to_string().contains("secret"), "a query may hold secrets: {span}");
    }

    #[test]
    fn what_was_not_has_no_span() {
        let refused = RequestRecord {
            held: Duration::ZERO,
            queued: Duration::ZERO,
            sent: None,
            outcome: RequestOutcome::Refused,
            status: Some(hyper::StatusCode::SERVICE_UNAVAILABLE),
            reason: Some("gateway_full"),
            ..traced()
        };
        let spans = spans(refused);
        assert_eq!(spans.len(), 1);
        assert_eq!(spans[0]["status"]["code"], 2);
        assert_eq!(count(&record()), 0, "without a trace there is none");
    }
}

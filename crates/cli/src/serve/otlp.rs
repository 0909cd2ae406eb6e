//! Sends the spans of requests, and the numbers of `/metrics`, to a collector: OTLP over HTTP, as
//! JSON.
//!
//! Requests never wait for it: what the collector does not take in time is dropped and counted.

mod encode;
mod metrics;

use encode::{Resource, spans_of};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use suimon_params::OtlpParams;
use suimon_proxy::RequestRecord;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, timeout};

/// Requests whose spans are not sent yet.
const PENDING_MAX: usize = 4096;
/// Requests whose spans are sent together.
const BATCH_MAX: usize = 256;
/// How long a request's spans wait for others.
const BATCH_WITHIN: Duration = Duration::from_secs(1);
/// The longest that the collector may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How often a batch is sent, if the collector cannot be reached or asks to come again, ...
const TRIES_MAX: u32 = 3;
/// ... and how long after the first try the next one is; after that twice as long.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Takes requests whose spans are to be sent.
#[derive(Debug)]
pub(super) struct Spans {
    sender: Sender<Box<RequestRecord>>,
    shared: Arc<Shared>,
}

/// How many spans were taken by the collector, and how many were not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) dropped: u64,
}

#[derive(Debug, Default)]
struct Shared {
    sent: AtomicU64,
    dropped: AtomicU64,
    /// Why spans could not be sent, last.
    why: Mutex<Option<String>>,
}

/// Why a batch was not taken.
struct Missed {
    why: String,
    /// Whether it may be taken later.
    again: bool,
}

impl Spans {
    /// Returns what takes requests, and what sends their spans for as long as it is polled.
    pub(super) fn to(params: &OtlpParams) -> (Spans, impl Future<Output = ()> + Send + 'static) {
        let (sender, receiver) = mpsc::channel(PENDING_MAX);
        let shared = Arc::new(Shared::default());
        let exporter = Exporter { params: params.clone(), shared: Arc::clone(&shared) };
        (Spans { sender, shared }, exporter.run(receiver))
    }

    /// Takes a request, if there is room.
    pub(super) fn take(&self, record: Box<RequestRecord>) {
        if let Err(error) = self.sender.try_send(record) {
            let record = match &error {
                mpsc::error::TrySendError::Full(record) | mpsc::error::TrySendError::Closed(record) => record,
            };
            self.shared.dropped.fetch_add(encode::count(record), Relaxed);
        }
    }

    /// Returns how many spans were taken by the collector, and how many were not.
    pub(super) fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// Returns why spans could not be sent, if that happened since it was last asked.
    pub(super) fn take_trouble(&self) -> Option<String> {
        self.shared.take_trouble()
    }
}

struct Exporter {
    params: OtlpParams,
    shared: Arc<Shared>,
}

impl Exporter {
    async fn run(self, mut receiver: Receiver<Box<RequestRecord>>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while let Some(first) = receiver.recv().await {
            batch.push(first);
            let until = Instant::now() + BATCH_WITHIN;
            while batch.len() < BATCH_MAX {
                match tokio::time::timeout_at(until, receiver.recv()).await {
                    Ok(Some(next)) => batch.push(next),
                    Ok(None) | Err(_) => break,
                }
            }
            self.send(&batch).await;
            batch.clear();
        }
    }

    /// Sends the spans of a batch, several times if need be.
    async fn send(&self, batch: &[Box<RequestRecord>]) {
        let spans = batch.iter().map(|record| encode::count(record)).sum();
        let resource = resource(&self.params);
        let body = Bytes::from(spans_of(batch, &resource).to_string());
        let mut after = AGAIN_AFTER;
        for tries in 1..=TRIES_MAX {
            let answer =
                timeout(ANSWER_WITHIN, post(&self.params, "traces", body.clone(), "rejectedSpans")).await;
            let late = || Err(Missed { why: "no answer in time".to_owned(), again: true });
            match answer.unwrap_or_else(|_| late()) {
                Ok(rejected) => {
                    let rejected = rejected.min(spans);
                    self.shared.sent.fetch_add(spans - rejected, Relaxed);
                    if rejected > 0 {
                        self.shared.lose(rejected, "the collector rejected spans".to_owned());
                    }
                    return;
                }
                Err(Missed { again: true, .. }) if tries < TRIES_MAX => {
                    // Nothing tells when the collector is back.
                    tokio::time::sleep(after).await;
                    after *= 2;
                }
                Err(Missed { why, .. }) => return self.shared.lose(spans, why),
            }
        }
    }
}

/// Sends something once to `/v1/what`, and returns how much of it the collector has rejected, as it
/// says under this name.
async fn post(params: &OtlpParams, what: &str, body: Bytes, rejected: &str) -> Result<u64, Missed> {
    let authority = &params.authority;
    let lost = |error: &dyn std::fmt::Display| Missed { why: format!("{authority}: {error}"), again: true };
    let stream = TcpStream::connect(authority).await.map_err(|error| lost(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| lost(&error))?;
    let driven = tokio::spawn(connection);
    let request = Request::post(format!("{}/v1/{what}", params.path))
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("suimon/", env!("CARGO_PKG_VERSION")))
        .body(Full::new(body))
        .map_err(|error| Missed { again: false, ..lost(&error) })?;
    let answer = sender.send_request(request).await.map_err(|error| lost(&error))?;
    let status = answer.status();
    let said = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    driven.abort();
    if !status.is_success() {
        // As the protocol has it: these four alone may be tried again.
        let again = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::BAD_GATEWAY,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::GATEWAY_TIMEOUT,
        ];
        return Err(Missed { again: again.contains(&status), ..lost(&status) });
    }
    let said = said.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let said: Value = serde_json::from_slice(&said).unwrap_or_default();
    let rejected = &said["partialSuccess"][rejected];
    // Numbers of 64 bits are strings in its JSON.
    Ok(rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or(0))
}

fn resource(params: &OtlpParams) -> Resource<'_> {
    Resource { service_name: &params.service_name, version: env!("CARGO_PKG_VERSION") }
}

/// Sends numbers, and counts how often that went well.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers(Arc<Shared>);

impl Numbers {
    /// Sends each `every` what `exposition` returns, the text of `/metrics`. Never returns.
    pub(super) async fn send(self, params: OtlpParams, every: Duration, exposition: impl Fn() -> String) {
        let (began, mut ticks) = (SystemTime::now(), tokio::time::interval(every));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let body = metrics::metrics_of(&exposition(), &resource(&params), began).to_string();
            // What is lost stands in the next ones, too: they count since the start.
            let sends = post(&params, "metrics", body.into(), "rejectedDataPoints");
            let why = match timeout(ANSWER_WITHIN, sends).await {
                Ok(Ok(0)) => {
                    self.0.sent.fetch_add(1, Relaxed);
                    continue;
                }
                Ok(Ok(rejected)) => format!("the collector rejected {rejected} numbers"),
                Ok(Err(Missed { why, .. })) => why,
                Err(_) => "no answer in time".to_owned(),
            };
            self.0.lose(1, why);
        }
    }

    /// Returns how often numbers were taken by the collector, and how often not.
    pub(super) fn counts(&self) -> Counts {
        self.0.counts()
    }

    /// Returns why numbers could not be sent, if that happened since it was last asked.
    pub(super) fn take_trouble(&self) -> Option<String> {
        self.0.take_trouble()
    }
}

impl Shared {
    fn counts(&self) -> Counts {
        Counts { sent: self.sent.load(Relaxed), dropped: self.dropped.load(Relaxed) }
    }

    fn lose(&self, count: u64, why: String) {
        self.dropped.fetch_add(count, Relaxed);
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    fn take_trouble(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

//! What is told of requests, and to whom: the access log, and the spans of traces.

use super::access_log::AccessLog;
use super::otlp::{Numbers, Spans};
use std::sync::Arc;
use std::time::Duration;
use suimon_admin::{LogCounts, Passed};
use suimon_params::{RequestIds, Telemetry};
use suimon_proxy::{RequestNotes, RequestRecord, RequestSink};
use tokio::time::Instant;

/// How often it is looked whether something was dropped.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The shortest time between two warnings of that.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Whoever is told of requests.
#[derive(Debug, Default)]
pub(super) struct Told {
    access: Option<AccessLog>,
    spans: Option<Spans>,
    numbers: Option<Numbers>,
}

impl Told {
    /// Begins to listen for requests. Inside the runtime.
    ///
    /// # Errors
    /// Returns a sentence that says why the access log cannot be written.
    pub(super) fn begin(settings: &Telemetry) -> Result<Arc<Told>, String> {
        let access = AccessLog::begin(settings)?;
        let spans = settings.otlp.as_ref().map(|params| {
            let (spans, sends) = Spans::to(params);
            tokio::spawn(sends);
            spans
        });
        let every = settings.otlp.as_ref().and_then(|params| params.metrics_every);
        let told = Arc::new(Told { access, spans, numbers: every.map(|_| Numbers::default()) });
        if told.is_any() {
            tokio::spawn(Arc::clone(&told).warn_of_drops());
        }
        Ok(told)
    }

    fn is_any(&self) -> bool {
        self.access.is_some() || self.spans.is_some()
    }

    /// Returns what the proxy is to note of requests; `None`: nothing.
    pub(super) fn notes(self: &Arc<Self>, settings: &Telemetry) -> Option<RequestNotes> {
        let is_wanted = self.is_any() || settings.request_ids == RequestIds::Always;
        is_wanted.then(|| RequestNotes {
            sink: self.is_any().then(|| Arc::clone(self) as Arc<dyn RequestSink>),
            traced_only: self.access.is_none(),
            trace_ratio: settings.otlp.as_ref().map(|otlp| otlp.trace_ratio),
        })
    }

    /// Sends the numbers of `/metrics` to the collector until `ended`, if that is asked for.
    pub(super) fn send_numbers(
        &self,
        settings: &Telemetry,
        exposition: impl Fn() -> String + Send + 'static,
        ended: impl Future<Output = ()> + Send + 'static,
    ) {
        if let (Some(numbers), Some(params)) = (&self.numbers, settings.otlp.clone())
            && let Some(every) = params.metrics_every
        {
            let numbers = numbers.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = ended => {}
                    () = numbers.send(params, every, exposition) => {}
                }
            });
        }
    }

    /// Opens the file of the access log anew.
    pub(super) fn reopen(&self) {
        if let Some(access) = &self.access {
            access.reopen();
        }
    }

    /// Writes what there is, and nothing more.
    pub(super) fn end(&self) {
        if let Some(access) = &self.access {
            access.end();
        }
    }

    /// Returns what was told, and what was dropped.
    pub(super) fn counts(&self) -> LogCounts {
        let lines = self.access.as_ref().map(AccessLog::counts);
        let spans = self.spans.as_ref().map(Spans::counts);
        LogCounts {
            access_lines: lines.map(|lines| Passed { passed: lines.written, dropped: lines.dropped }),
            spans: spans.map(|spans| Passed { passed: spans.sent, dropped: spans.dropped }),
            exports: self
                .numbers
                .as_ref()
                .map(Numbers::counts)
                .map(|exports| Passed { passed: exports.sent, dropped: exports.dropped }),
        }
    }

    /// Says once a minute at most what was dropped. Never returns.
    async fn warn_of_drops(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        let (mut lines, mut spans, mut exports) = (Drops::default(), Drops::default(), Drops::default());
        loop {
            ticks.tick().await;
            let counts = self.counts();
            let now = Instant::now();
            if let Some(more) = counts.access_lines.and_then(|it| lines.due(now, it.dropped)) {
                let why = self.access.as_ref().and_then(AccessLog::take_trouble);
                let why = why.unwrap_or_else(|| "it is written more slowly than requests end".to_owned());
                tracing::warn!(reason = "access_log", "{more} lines of the access log were dropped: {why}");
            }
            if let Some(more) = counts.spans.and_then(|it| spans.due(now, it.dropped)) {
                let why = self.spans.as_ref().and_then(Spans::take_trouble);
                let why = why.unwrap_or_else(|| "the collector takes them too slowly".to_owned());
                tracing::warn!(reason = "otlp", "{more} spans of traces were dropped: {why}");
            }
            if let Some(more) = counts.exports.and_then(|it| exports.due(now, it.dropped)) {
                let why = self.numbers.as_ref().and_then(Numbers::take_trouble).unwrap_or_default();
                tracing::warn!(reason = "otlp_metrics", "metrics could not be sent {more} times: {why}");
            }
        }
    }
}

impl RequestSink for Told {
    fn end(&self, record: Box<RequestRecord>) {
        match (&self.access, self.spans.as_ref().filter(|_| record.trace.is_some())) {
            (Some(access), Some(spans)) => {
                spans.take(record.clone());
                access.write(record);
            }
            (Some(access), None) => access.write(record),
            (None, Some(spans)) => spans.take(record),
            (None, None) => {}
        }
    }
}

/// When it was last told how many were dropped.
#[derive(Default)]
struct Drops {
    told: u64,
    at: Option<Instant>,
}

impl Drops {
    /// Returns how many more were dropped, if that is to be told now.
    fn due(&mut self, now: Instant, dropped: u64) -> Option<u64> {
        let more = dropped.saturating_sub(self.told);
        let is_due = more > 0 && self.at.is_none_or(|at| now.duration_since(at) >= WARN_EVERY);
        is_due.then(|| {
            (self.told, self.at) = (dropped, Some(now));
            more
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_told_at_once_and_then_once_a_minute() {
        let (mut drops, start) = (Drops::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert_eq!(drops.due(start, 0), None);
        assert_eq!(drops.due(start + second, 7), Some(7));
        assert_eq!(drops.due(start + 2 * second, 9), None);
        assert_eq!(drops.due(start + 61 * second, 9), Some(2));
        assert_eq!(drops.due(start + 200 * second, 9), None);
    }
}

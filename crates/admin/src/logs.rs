//! What was told of requests elsewhere, and what was dropped: lines of the access log, and spans.

use crate::names;
use crate::text::Exposition;

/// What became of lines and spans; `None`: there are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogCounts {
    /// Lines of the access log.
    pub access_lines: Option<Passed>,
    /// Spans for the collector.
    pub spans: Option<Passed>,
    /// Times that numbers were sent to the collector.
    pub exports: Option<Passed>,
}

/// How many were passed on, and how many were not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passed {
    /// Written, or taken by the collector.
    pub passed: u64,
    /// Dropped.
    pub dropped: u64,
}

pub(crate) fn render(out: &mut Exposition, counts: LogCounts) {
    if let Some(Passed { passed, dropped }) = counts.exports {
        let mut exports = out.gateway_family(names::METRIC_EXPORTS);
        exports.value(&[("outcome", "sent")], passed as f64);
        exports.value(&[("outcome", "dropped")], dropped as f64);
    }
    if let Some(Passed { passed, dropped }) = counts.access_lines {
        let mut lines = out.gateway_family(names::ACCESS_LINES);
        lines.value(&[("outcome", "written")], passed as f64);
        lines.value(&[("outcome", "dropped")], dropped as f64);
    }
    if let Some(Passed { passed, dropped }) = counts.spans {
        let mut spans = out.gateway_family(names::SPANS);
        spans.value(&[("outcome", "sent")], passed as f64);
        spans.value(&[("outcome", "dropped")], dropped as f64);
    }
}

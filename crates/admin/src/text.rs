//! Prometheus' text format, version 0.0.4.
//!
//! A writer of our own: every number is read from one moment's view, so a registry of live metrics
//! (what the client crates are built around) would only hold copies; and route names come from
//! traffic, so labels must be escaped.

use std::fmt::Write;

/// One family of numbers: its name, what it is, and what it means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: MetricKind,
    pub(crate) help: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MetricKind {
    /// Goes up and down.
    Gauge,
    /// Only goes up.
    Counter,
    /// Counts by upper bound, sum and count.
    Histogram,
}

/// Names and values that distinguish the numbers of a family.
pub(crate) type Labels<'a> = &'a [(&'static str, &'a str)];

/// The text as it grows.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a family; its numbers follow at once.
    pub(crate) fn family(&mut self, metric: Metric) -> Family<'_> {
        let kind = match metric.kind {
            MetricKind::Gauge => "gauge",
            MetricKind::Counter => "counter",
            MetricKind::Histogram => "histogram",
        };
        let help = metric.help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.text, "# HELP {} {help}\n# TYPE {} {kind}", metric.name, metric.name);
        Family { metric, text: &mut self.text }
    }

    /// Writes a family of one number without labels.
    pub(crate) fn single(&mut self, metric: Metric, value: f64) {
        self.family(metric).value(&[], value);
    }

    /// Returns the whole text.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// A family that has begun.
pub(crate) struct Family<'a> {
    metric: Metric,
    text: &'a mut String,
}

impl Family<'_> {
    /// Writes one number.
    pub(crate) fn value(&mut self, labels: Labels<'_>, value: f64) -> &mut Self {
        debug_assert_ne!(self.metric.kind, MetricKind::Histogram);
        self.line("", labels, None, value);
        self
    }

    /// Writes one distribution: `counts` by upper bound, not cumulated, and one more for what is
    /// beyond the last bound.
    pub(crate) fn histogram(
        &mut self,
        labels: Labels<'_>,
        bounds: &[f64],
        counts: &[u64],
        sum: f64,
    ) -> &mut Self {
        debug_assert_eq!(self.metric.kind, MetricKind::Histogram);
        debug_assert_eq!(counts.len(), bounds.len() + 1);
        let mut cumulated = 0;
        for (index, count) in counts.iter().enumerate() {
            cumulated += count;
            let bound = bounds.get(index).copied().unwrap_or(f64::INFINITY);
            self.line("_bucket", labels, Some(bound), cumulated as f64);
        }
        self.line("_sum", labels, None, sum);
        self.line("_count", labels, None, cumulated as f64);
        self
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<f64>, value: f64) {
        self.text.push_str(self.metric.name);
        self.text.push_str(suffix);
        if !labels.is_empty() || bound.is_some() {
            let mut parts: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            parts.extend(bound.map(|bound| format!("le=\"{}\"", number(bound))));
            let _ = write!(self.text, "{{{}}}", parts.join(","));
        }
        let _ = writeln!(self.text, " {}", number(value));
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_string()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_string()
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAUGE: Metric = Metric { name: "suimon_x", kind: MetricKind::Gauge, help: "An x\\y." };

    #[test]
    fn a_family_has_help_type_and_numbers() {
        let mut exposition = Exposition::default();
        exposition.family(GAUGE).value(&[("a", "1"), ("b", "2")], 0.5).value(&[], 3.0);
        assert_eq!(
            exposition.finish(),
            "# HELP suimon_x An x\\\\y.\n# TYPE suimon_x gauge\nsuimon_x{a=\"1\",b=\"2\"} 0.5\nsuimon_x 3\n"
        );
    }

    #[test]
    fn labels_from_strangers_cannot_break_out() {
        let mut exposition = Exposition::default();
        exposition.family(GAUGE).value(&[("route", "GET /\"\\\n} 1")], 1.0);
        let text = exposition.finish();
        assert_eq!(text.lines().last(), Some(r#"suimon_x{route="GET /\"\\\n} 1"} 1"#));
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn buckets_are_cumulated_and_end_at_infinity() {
        let metric = Metric { name: "h", kind: MetricKind::Histogram, help: "h" };
        let mut exposition = Exposition::default();
        exposition.family(metric).histogram(&[("r", "x")], &[0.1, 1.0], &[2, 1, 4], 9.5);
        let text = exposition.finish();
        let numbers: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            numbers,
            [
                "h_bucket{r=\"x\",le=\"0.1\"} 2",
                "h_bucket{r=\"x\",le=\"1\"} 3",
                "h_bucket{r=\"x\",le=\"+Inf\"} 7",
                "h_sum{r=\"x\"} 9.5",
                "h_count{r=\"x\"} 7",
            ]
        );
    }

    #[test]
    fn numbers_that_are_none_have_prometheus_words() {
        assert_eq!(
            (number(f64::NAN), number(f64::INFINITY), number(-f64::INFINITY)),
            ("NaN".into(), "+Inf".into(), "-Inf".into())
        );
    }
}

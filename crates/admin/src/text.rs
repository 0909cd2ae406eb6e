//! Prometheus' text format, version 0.0.4, and OpenMetrics, version 1.0.0.
//!
//! A writer of our own: every number is read from one moment's view, so a registry of live metrics
//! (what the client crates are built around) would only hold copies; and route names come from
//! traffic, so labels must be escaped.

use axum::http::{HeaderMap, header};
use std::collections::BTreeMap;
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

/// How the numbers are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Format {
    /// Prometheus' own.
    #[default]
    Prometheus,
    /// What was made of it.
    OpenMetrics,
}

impl Format {
    /// Returns the format that a client would rather have.
    pub(crate) fn accepted(headers: &HeaderMap) -> Format {
        let wish = |of: &str| {
            let words = headers
                .get_all(header::ACCEPT)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .flat_map(|value| value.split(','));
            let fits = words.filter_map(|word| {
                let mut parts = word.split(';').map(str::trim);
                let kind = parts.next()?;
                let mut wish = 1.0;
                for part in parts {
                    match part.split_once('=')? {
                        ("version", version)
                            if kind == OPEN_METRICS && !OPEN_METRICS_VERSIONS.contains(&version) =>
                        {
                            return None;
                        }
                        ("q", value) => wish = value.parse().ok()?,
                        _ => {}
                    }
                }
                (kind == of).then_some(wish)
            });
            fits.fold(0.0, f64::max)
        };
        let is_wished = wish(OPEN_METRICS) > 0.0 && wish(OPEN_METRICS) >= wish("text/plain");
        if is_wished { Format::OpenMetrics } else { Format::Prometheus }
    }

    /// Returns its name in HTTP.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text";
/// The first was never more than a draft, and is the same.
const OPEN_METRICS_VERSIONS: [&str; 2] = ["1.0.0", "0.0.1"];
/// What OpenMetrics calls a unit, if a name ends in it.
const UNITS: [&str; 3] = ["seconds", "bytes", "ratio"];

/// The text as it grows: families in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    families: Vec<String>,
    /// Where each of them is. Of several sites each adds its own numbers to a family.
    places: BTreeMap<&'static str, usize>,
    format: Format,
    /// Every family there is.
    all: &'static [Metric],
    /// The site whose numbers follow, where there are several.
    site: Option<String>,
}

impl Exposition {
    /// Returns an empty one. `all`: every family that may be in it.
    pub(crate) fn new(format: Format, all: &'static [Metric]) -> Self {
        Exposition { format, all, ..Exposition::default() }
    }

    /// Gives all numbers from now on the label of this site, or none.
    pub(crate) fn set_site(&mut self, name: Option<&str>) {
        self.site = name.map(str::to_owned);
    }

    /// Begins a family, or goes on with it; its numbers follow at once.
    pub(crate) fn family(&mut self, metric: Metric) -> Family<'_> {
        let place = *self.places.entry(metric.name).or_insert(self.families.len());
        if place == self.families.len() {
            let head = match self.format {
                Format::Prometheus => head_of_prometheus(metric),
                Format::OpenMetrics => self.head_of_open_metrics(metric),
            };
            self.families.push(head);
        }
        Family { metric, text: &mut self.families[place], site: self.site.as_deref() }
    }

    /// Goes on with a family of the gateway, whose numbers have no site.
    pub(crate) fn gateway_family(&mut self, metric: Metric) -> Family<'_> {
        Family { site: None, ..self.family(metric) }
    }

    /// A counter's family is called like its numbers without `_total`; where something else has
    /// that name, it is a family of numbers of which nothing is known.
    fn head_of_open_metrics(&self, metric: Metric) -> String {
        let stem = metric.name.strip_suffix("_total").filter(|_| metric.kind == MetricKind::Counter);
        let is_taken = |stem: &str| self.all.iter().any(|other| other.name == stem);
        let (name, kind) = match (metric.kind, stem) {
            (MetricKind::Gauge, _) => (metric.name, "gauge"),
            (MetricKind::Histogram, _) => (metric.name, "histogram"),
            (MetricKind::Counter, Some(stem)) if !is_taken(stem) => (stem, "counter"),
            (MetricKind::Counter, _) => (metric.name, "unknown"),
        };
        let unit = UNITS.iter().find(|unit| name.ends_with(&format!("_{unit}")));
        let unit = unit.map_or_else(String::new, |unit| format!("# UNIT {name} {unit}\n"));
        format!("# TYPE {name} {kind}\n{unit}# HELP {name} {}\n", escaped(metric.help))
    }

    /// Writes a family of one number without labels.
    pub(crate) fn single(&mut self, metric: Metric, value: f64) {
        self.family(metric).value(&[], value);
    }

    /// Returns the whole text.
    pub(crate) fn finish(self) -> String {
        let end = if self.format == Format::OpenMetrics { "# EOF\n" } else { "" };
        self.families.concat() + end
    }
}

fn head_of_prometheus(metric: Metric) -> String {
    let kind = match metric.kind {
        MetricKind::Gauge => "gauge",
        MetricKind::Counter => "counter",
        MetricKind::Histogram => "histogram",
    };
    let help = metric.help.replace('\\', "\\\\").replace('\n', "\\n");
    format!("# HELP {} {help}\n# TYPE {} {kind}\n", metric.name, metric.name)
}

/// A family that has begun.
pub(crate) struct Family<'a> {
    metric: Metric,
    text: &'a mut String,
    site: Option<&'a str>,
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
        let site = self.site.map(|site| ("site", site));
        if site.is_some() || !labels.is_empty() || bound.is_some() {
            let labels = site.iter().chain(labels);
            let mut parts: Vec<String> =
                labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            parts.extend(bound.map(|bound| format!("le=\"{}\"", bound_text(bound))));
            let _ = write!(self.text, "{{{}}}", parts.join(","));
        }
        let _ = writeln!(self.text, " {}", number(value));
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns the bound of a bucket: written in the one way that OpenMetrics allows, and so in the
/// other format, too, as it is part of what a number is called.
fn bound_text(bound: f64) -> String {
    if bound.is_finite() && bound > 0.0 && bound < 1e-4 {
        let text = format!("{bound:e}");
        let (digits, exponent) = text.split_once("e-").unwrap_or((&text, "0"));
        return format!("{digits}e-{exponent:0>2}");
    }
    let text = number(bound);
    if bound.is_finite() && !text.contains('.') { text + ".0" } else { text }
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
                "h_bucket{r=\"x\",le=\"1.0\"} 3",
                "h_bucket{r=\"x\",le=\"+Inf\"} 7",
                "h_sum{r=\"x\"} 9.5",
                "h_count{r=\"x\"} 7",
            ]
        );
    }

    #[test]
    fn open_metrics_names_counters_without_their_ending_and_tells_units() {
        let counter = |name| Metric { name, kind: MetricKind::Counter, help: "Said \"so\"." };
        const GAUGES: &[Metric] =
            &[Metric { name: "suimon_client_connections", kind: MetricKind::Gauge, help: "Open." }];
        let mut exposition = Exposition::new(Format::OpenMetrics, GAUGES);
        exposition.single(counter("process_cpu_seconds_total"), 1.5);
        exposition.single(counter("suimon_client_connections_total"), 2.0);
        let text = exposition.finish();
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "# TYPE process_cpu_seconds counter",
                "# UNIT process_cpu_seconds seconds",
                "# HELP process_cpu_seconds Said \\\"so\\\".",
                "process_cpu_seconds_total 1.5",
                // A gauge has its name without the ending.
                "# TYPE suimon_client_connections_total unknown",
                "# HELP suimon_client_connections_total Said \\\"so\\\".",
                "suimon_client_connections_total 2",
                "# EOF",
            ]
        );
    }

    #[test]
    fn a_client_gets_the_format_that_it_would_rather_have() {
        let accepted = |accept: &'static str| {
            Format::accepted(&HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]))
        };
        for open in [
            "application/openmetrics-text",
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "text/plain; q=0.5, application/openmetrics-text; version=0.0.1",
        ] {
            assert_eq!(accepted(open), Format::OpenMetrics, "{open}");
        }
        for other in [
            "*/*",
            "text/plain",
            "application/openmetrics-text;version=2.0.0,text/plain",
            "application/openmetrics-text;q=0.1,text/plain",
            "application/openmetrics-text;q=0",
            "text/html;x,*/*",
        ] {
            assert_eq!(accepted(other), Format::Prometheus, "{other}");
        }
        assert_eq!(Format::accepted(&HeaderMap::new()), Format::Prometheus);
    }

    #[test]
    fn bounds_are_written_in_one_way() {
        for (bound, text) in
            [(0.000_05, "5e-05"), (0.000_25, "0.00025"), (1.0, "1.0"), (7200.0, "7200.0"), (2.5, "2.5")]
        {
            assert_eq!(bound_text(bound), text);
        }
        assert_eq!(bound_text(f64::INFINITY), "+Inf");
    }

    #[test]
    fn numbers_that_are_none_have_prometheus_words() {
        assert_eq!(
            (number(f64::NAN), number(f64::INFINITY), number(-f64::INFINITY)),
            ("NaN".into(), "+Inf".into(), "-Inf".into())
        );
    }
}

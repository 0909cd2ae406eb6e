//! The numbers of `/metrics` as an `ExportMetricsServiceRequest` of OTLP, in its JSON.
//!
//! Made of the text that `/metrics` answers, so that both say the same under the same names; those
//! that OpenTelemetry has names for are called by them.

use super::encode::{Resource, resource_of, text};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// Counts since the start, in the protocol's number.
const CUMULATIVE: u8 = 2;

/// Names of the conventions, as they are written for Prometheus.
const CONVENTIONS: [(&str, &str); 2] = [
    ("http_server_active_requests", "http.server.active_requests"),
    ("http_client_request_duration_seconds", "http.client.request.duration"),
];

/// What one family says.
struct Family<'a> {
    name: &'a str,
    kind: &'a str,
    help: &'a str,
    samples: Vec<Sample<'a>>,
}

/// One number: what stands behind the family's name, its labels, and the value.
struct Sample<'a> {
    suffix: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

/// Returns the numbers in `exposition`, as of now; counters count since `began`.
pub(super) fn metrics_of(exposition: &str, resource: &Resource<'_>, began: SystemTime) -> Value {
    let (start, now) = (nanos(began), nanos(SystemTime::now()));
    let times = Times { start: &start, now: &now };
    let metrics: Vec<Value> = families(exposition).iter().map(|family| metric(family, &times)).collect();
    json!({
        "resourceMetrics": [{
            "resource": resource_of(resource),
            "scopeMetrics": [{ "scope": { "name": "suimon", "version": resource.version }, "metrics": metrics }],
        }]
    })
}

struct Times<'a> {
    start: &'a str,
    now: &'a str,
}

/// Returns nanoseconds since 1970, as text: a JSON number is not that exact.
fn nanos(at: SystemTime) -> String {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos().to_string()
}

fn families(exposition: &str) -> Vec<Family<'_>> {
    let mut all: Vec<Family<'_>> = Vec::new();
    for line in exposition.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            all.push(Family { name, kind: "", help, samples: Vec::new() });
        } else if let Some((_, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            if let Some(family) = all.last_mut() {
                family.kind = kind;
            }
        } else if let Some(family) = all.last_mut() {
            family.samples.extend(sample(family.name, line));
        }
    }
    all
}

fn sample<'a>(name: &str, line: &'a str) -> Option<Sample<'a>> {
    let rest = line.strip_prefix(name)?;
    // Labels come from strangers, and may hold anything; behind the last space there is a number.
    let (rest, value) = rest.rsplit_once(' ')?;
    let (suffix, labels) = match rest.split_once('{') {
        Some((suffix, labels)) => (suffix, labels.strip_suffix('}')?),
        None => (rest, ""),
    };
    Some(Sample { suffix, labels: labels_in(labels)?, value: value.parse().ok()? })
}

/// Returns the labels in `a="b",c="d"`.
fn labels_in(mut rest: &str) -> Option<Vec<(&str, String)>> {
    let mut labels = Vec::new();
    while !rest.is_empty() {
        let (name, behind) = rest.split_once("=\"")?;
        let (mut value, mut end, mut is_escaped) = (String::new(), None, false);
        for (at, letter) in behind.char_indices() {
            match (is_escaped, letter) {
                (true, 'n') => value.push('\n'),
                (false, '\\') => {
                    is_escaped = true;
                    continue;
                }
                (false, '"') => {
                    end = Some(at);
                    break;
                }
                (_, other) => value.push(other),
            }
            is_escaped = false;
        }
        labels.push((name, value));
        rest = behind.get(end? + 1..)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Some(labels)
}

fn metric(family: &Family<'_>, times: &Times<'_>) -> Value {
    let convention =
        CONVENTIONS.iter().find(|(name, _)| *name == family.name).map(|(_, convention)| *convention);
    let unit = match family.name.strip_suffix("_total").unwrap_or(family.name) {
        name if name.ends_with("_per_second") => "1/s",
        name if name.ends_with("_seconds") => "s",
        name if name.ends_with("_bytes") => "By",
        _ => "1",
    };
    let mut metric = json!({
        "name": convention.unwrap_or(family.name),
        "description": family.help.replace("\\\\", "\\"),
        "unit": unit,
    });
    let is_convention = convention.is_some();
    match family.kind {
        "histogram" => {
            metric["histogram"] = json!({
                "aggregationTemporality": CUMULATIVE,
                "dataPoints": histograms(family, is_convention, times),
            });
        }
        "counter" => {
            metric["sum"] = json!({
                "aggregationTemporality": CUMULATIVE,
                "isMonotonic": true,
                "dataPoints": points(family, is_convention, times),
            });
        }
        _ => metric["gauge"] = json!({ "dataPoints": points(family, is_convention, times) }),
    }
    metric
}

fn points(family: &Family<'_>, is_convention: bool, times: &Times<'_>) -> Vec<Value> {
    let point = |sample: &Sample<'_>| {
        json!({
            "attributes": attributes(&sample.labels, is_convention),
            "startTimeUnixNano": times.start,
            "timeUnixNano": times.now,
            "asDouble": double(sample.value),
        })
    };
    family.samples.iter().map(point).collect()
}

fn histograms(family: &Family<'_>, is_convention: bool, times: &Times<'_>) -> Vec<Value> {
    let mut by_labels: BTreeMap<Vec<(&str, String)>, Map<String, Value>> = BTreeMap::new();
    let mut counted = 0.0;
    for Sample { suffix, labels, value } in &family.samples {
        let (bounds, labels): (Vec<_>, Vec<_>) = labels.iter().cloned().partition(|(name, _)| *name == "le");
        let point = by_labels.entry(labels.clone()).or_insert_with(|| {
            counted = 0.0;
            let mut point = Map::new();
            point.insert("attributes".to_owned(), attributes(&labels, is_convention));
            point.insert("startTimeUnixNano".to_owned(), times.start.into());
            point.insert("timeUnixNano".to_owned(), times.now.into());
            point.insert("bucketCounts".to_owned(), json!([]));
            point.insert("explicitBounds".to_owned(), json!([]));
            point
        });
        match (*suffix, bounds.first().map(|(_, bound)| bound.parse::<f64>())) {
            ("_bucket", Some(Ok(bound))) => {
                push(point, "bucketCounts", whole(value - counted));
                counted = *value;
                if bound.is_finite() {
                    push(point, "explicitBounds", bound.into());
                }
            }
            ("_sum", _) => _ = point.insert("sum".to_owned(), double(*value)),
            ("_count", _) => _ = point.insert("count".to_owned(), whole(*value)),
            _ => {}
        }
    }
    by_labels.into_values().map(Value::Object).collect()
}

fn push(point: &mut Map<String, Value>, key: &str, value: Value) {
    if let Some(Value::Array(all)) = point.get_mut(key) {
        all.push(value);
    }
}

/// Returns labels as attributes; those of the conventions have dots.
fn attributes(labels: &[(&str, String)], is_convention: bool) -> Value {
    let named = |name: &str| match name {
        "http_request_method" if is_convention => "http.request.method".to_owned(),
        "http_route" if is_convention => "http.route".to_owned(),
        other => other.to_owned(),
    };
    labels.iter().map(|(name, value)| text(&named(name), value)).collect()
}

/// Returns a number of the protocol: those that JSON has none for are words.
fn double(value: f64) -> Value {
    match value {
        _ if value.is_nan() => "NaN".into(),
        _ if value.is_infinite() => if value > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        _ => value.into(),
    }
}

/// Returns a whole number of 64 bits, which is text in the protocol's JSON.
fn whole(value: f64) -> Value {
    format!("{:.0}", value.max(0.0)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# HELP suimon_requests_total Requests.
# TYPE suimon_requests_total counter
suimon_requests_total 7
# HELP suimon_admission_rate_per_second Rate.
# TYPE suimon_admission_rate_per_second gauge
suimon_admission_rate_per_second{kind="a"} +Inf
suimon_admission_rate_per_second{kind="b \"c\", d=\"e\"\\ } 9"} 0.5
# HELP http_client_request_duration_seconds Time.
# TYPE http_client_request_duration_seconds histogram
http_client_request_duration_seconds_bucket{http_request_method="GET",http_route="/a",le="0.1"} 2
http_client_request_duration_seconds_bucket{http_request_method="GET",http_route="/a",le="1.0"} 5
http_client_request_duration_seconds_bucket{http_request_method="GET",http_route="/a",le="+Inf"} 6
http_client_request_duration_seconds_sum{http_request_method="GET",http_route="/a"} 3.5
http_client_request_duration_seconds_count{http_request_method="GET",http_route="/a"} 6
http_client_request_duration_seconds_bucket{http_route="ungated",le="0.1"} 1
http_client_request_duration_seconds_bucket{http_route="ungated",le="1.0"} 1
http_client_request_duration_seconds_bucket{http_route="ungated",le="+Inf"} 1
http_client_request_duration_seconds_sum{http_route="ungated"} 0.01
http_client_request_duration_seconds_count{http_route="ungated"} 1
"#;

    #[test]
    fn counters_gauges_and_distributions_are_those_of_the_text() {
        let resource = Resource { service_name: "shop", version: "1" };
        let all = metrics_of(TEXT, &resource, SystemTime::UNIX_EPOCH + Duration::from_secs(1));
        let metrics = all["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let [requests, rate, duration] = &metrics[..] else { panic!("three: {all}") };
        let point = &requests["sum"]["dataPoints"][0];
        assert_eq!((&requests["sum"]["isMonotonic"], &point["asDouble"]), (&true.into(), &7.0.into()));
        assert_eq!(point["startTimeUnixNano"], "1000000000");
        assert_eq!(rate["unit"], "1/s");
        let points = &rate["gauge"]["dataPoints"];
        assert_eq!(points[0]["asDouble"], "Infinity");
        assert_eq!(points[1]["attributes"][0]["value"]["stringValue"], "b \"c\", d=\"e\"\\ } 9");
        assert_eq!(
            (&duration["name"], &duration["unit"]),
            (&"http.client.request.duration".into(), &"s".into())
        );
        let points = duration["histogram"]["dataPoints"].as_array().unwrap();
        assert_eq!(points.len(), 2);
        assert_eq!(points[0]["bucketCounts"], json!(["2", "3", "1"]));
        assert_eq!(points[0]["explicitBounds"], json!([0.1, 1.0]));
        assert_eq!((&points[0]["count"], &points[0]["sum"]), (&"6".into(), &3.5.into()));
        assert_eq!(points[0]["attributes"][0]["key"], "http.request.method");
        assert_eq!(points[1]["bucketCounts"], json!(["1", "0", "0"]));
    }

    #[test]
    fn lines_that_are_no_numbers_are_left_out() {
        let all = families("# HELP a A.\n# TYPE a gauge\na\na{b} 1\na{b=\"c} 1\na 1 2 x\na 3\n");
        let [family] = &all[..] else { panic!("one") };
        assert_eq!(family.samples.iter().map(|sample| sample.value).collect::<Vec<_>>(), [3.0]);
    }
}

//! What a line says.

use serde::Serialize;
use std::fmt::Write;
use std::time::{Duration, SystemTime};
use suimon_proxy::{RequestOutcome, RequestRecord};

/// How lines are written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lines {
    Json { query: bool },
    Common { query: bool },
}

/// A line in JSON. What is not there is left out.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<&'a str>,
    client: String,
    method: &'a str,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    protocol: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    bytes: u64,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    held_seconds: f64,
    queued_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_byte_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_seconds: Option<f64>,
    total_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_flight: Option<usize>,
}

impl Lines {
    /// Writes the line of a request.
    pub(super) fn write(self, record: &RequestRecord, out: &mut String) {
        let began = SystemTime::now().checked_sub(record.arrived.elapsed()).unwrap_or(SystemTime::UNIX_EPOCH);
        match self {
            Lines::Json { query } => json(record, began, query, out),
            Lines::Common { query } => common(record, began, query, out),
        }
        out.push('\n');
    }
}

fn json(record: &RequestRecord, began: SystemTime, with_query: bool, out: &mut String) {
    let target = record.target.as_ref();
    let line = Line {
        time: humantime::format_rfc3339_micros(began).to_string(),
        request_id: record.id.to_str().unwrap_or_default(),
        trace_id: record.trace.map(|trace| format!("{:032x}", trace.trace)),
        site: record.site.as_deref(),
        client: record.client.to_string(),
        method: record.method.as_str(),
        path: target.map_or("", |target| target.path()),
        query: target.and_then(|target| target.query()).filter(|_| with_query),
        host: record.host.as_ref().and_then(|host| host.to_str().ok()),
        protocol: protocol(record),
        status: record.status.map(|status| status.as_u16()),
        bytes: record.bytes,
        outcome: record.outcome.word(),
        reason: record.reason,
        route: record.route.as_deref(),
        kind: record.session.as_ref().map(|(kind, _)| kind.as_str()),
        session: record.session.as_ref().map(|(_, tag)| format!("{tag:016x}")),
        held_seconds: seconds(record.held),
        queued_seconds: seconds(record.queued),
        first_byte_seconds: record.first_byte.map(seconds),
        application_seconds: record.application.map(seconds),
        total_seconds: seconds(record.total),
        node: record.node.as_deref(),
        limit: record.limit,
        in_flight: record.in_flight,
    };
    let text = serde_json::to_string(&line).expect("it holds nothing but text and numbers");
    // JSON may hold them, and terminals and readers of lines take them for commands and ends of lines.
    for letter in text.chars() {
        if is_unsafe(letter) {
            let _ = write!(out, "\\u{:04x}", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
}

/// Returns whether a character would move a cursor, or end a line for some readers.
fn is_unsafe(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// The Common Log Format: client, nobody, session, time, request, status, bytes. Clients that left
/// before there was a status have 499, as with nginx.
fn common(record: &RequestRecord, began: SystemTime, with_query: bool, out: &mut String) {
    let session = record.session.as_ref().map_or("-".to_owned(), |(_, tag)| format!("{tag:016x}"));
    let target = record.target.as_ref();
    let asked = target.map_or("", |target| if with_query { target.as_str() } else { target.path() });
    let status = match (record.status, record.outcome) {
        (Some(status), _) => status.as_str().to_owned(),
        (None, RequestOutcome::ClientGone) => "499".to_owned(),
        (None, _) => "-".to_owned(),
    };
    let _ = write!(
        out,
        "{} - {session} [{}] \"{} {} {}\" {status} {}",
        record.client,
        clock(began),
        record.method,
        escaped(asked),
        protocol(record),
        record.bytes
    );
}

/// Returns a time as the Common Log Format has it: `28/Nov/2026:16:01:47 +0000`.
fn clock(at: SystemTime) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = humantime::format_rfc3339_seconds(at).to_string();
    let number = |from: usize| text.get(from..from + 2).unwrap_or("01");
    let month = number(5).parse().unwrap_or(1_usize).clamp(1, 12);
    format!("{}/{}/{}:{} +0000", number(8), MONTHS[month - 1], &text[..4], &text[11..19])
}

/// Returns text that stands between quotes, in visible ASCII.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'\\' | b'"' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02X}");
            }
        }
    }
    out
}

fn protocol(record: &RequestRecord) -> &'static str {
    match record.version {
        hyper::Version::HTTP_2 => "HTTP/2",
        hyper::Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e6
}

#[cfg(test)]
pub(in crate::serve) mod tests {
    use super::*;
    use hyper::StatusCode;
    use hyper::header::HeaderValue;
    use std::time::Instant;

    /// Returns a request that was served.
    pub(in crate::serve) fn record() -> RequestRecord {
        RequestRecord {
            site: None,
            arrived: Instant::now(),
            total: Duration::from_micros(123_456),
            id: HeaderValue::from_static("0af7651916cd43dd8448eb211c80319c"),
            trace: None,
            client: [192, 0, 2, 7].into(),
            is_secure: true,
            method: hyper::Method::GET,
            target: Some("/items/7\"?token=secret".parse().unwrap()),
            version: hyper::Version::HTTP_11,
            host: Some(HeaderValue::from_static("shop.example")),
            status: Some(StatusCode::OK),
            bytes: 512,
            outcome: RequestOutcome::Served,
            reason: None,
            route: Some("GET /items/{id}".to_owned()),
            session: Some(("visit".to_owned(), 0xabc)),
            asked: None,
            held: Duration::from_millis(10),
            queued: Duration::from_millis(20),
            limit: Some(8),
            in_flight: Some(3),
            node: Some("http://127.0.0.1:8080".to_owned()),
            sent: None,
            first_byte: Some(Duration::from_millis(50)),
            application: Some(Duration::from_millis(60)),
        }
    }

    #[test]
    fn nothing_in_a_path_ends_a_line_or_commands_a_terminal() {
        let path = "/a\u{9b}31m\u{85}\u{2028}é\"";
        let record = RequestRecord { target: Some(path.parse().unwrap()), ..record() };
        let (mut json, mut common) = (String::new(), String::new());
        Lines::Json { query: false }.write(&record, &mut json);
        Lines::Common { query: false }.write(&record, &mut common);
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["path"], path);
        let shown = |line: &str| !line.trim_end_matches('\n').chars().any(is_unsafe);
        assert!(shown(&json) && shown(&common) && common.is_ascii(), "{json}{common}");
        assert!(common.contains(r#""GET /a\xC2\x9B31m\xC2\x85\xE2\x80\xA8\xC3\xA9\" HTTP"#), "{common}");
    }

    #[test]
    fn a_line_of_json_has_everything_but_the_query() {
        let (mut line, mut with_query) = (String::new(), String::new());
        Lines::Json { query: false }.write(&record(), &mut line);
        Lines::Json { query: true }.write(&record(), &mut with_query);
        assert!(line.ends_with("}\n") && line.lines().count() == 1, "{line}");
        assert!(!line.contains("secret"), "{line}");
        assert!(with_query.contains(r#""query":"token=secret""#), "{with_query}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        for (key, value) in [
            ("client", "192.0.2.7".into()),
            ("path", "/items/7\"".into()),
            ("status", serde_json::Value::from(200)),
            ("route", "GET /items/{id}".into()),
            ("session", "0000000000000abc".into()),
            ("queued_seconds", 0.02.into()),
            ("limit", 8.into()),
            ("outcome", "served".into()),
        ] {
            assert_eq!(read[key], value, "{key} of {line}");
        }
    }

    #[test]
    fn a_common_line_is_what_web_servers_write() {
        let mut line = String::new();
        Lines::Common { query: false }.write(&record(), &mut line);
        let (before, behind) = line.split_once('[').unwrap();
        assert_eq!(before, "192.0.2.7 - 0000000000000abc ");
        assert_eq!(behind.split_once("] ").unwrap().1, "\"GET /items/7\\\" HTTP/1.1\" 200 512\n");
        let gone = RequestRecord { status: None, outcome: RequestOutcome::ClientGone, ..record() };
        line.clear();
        Lines::Common { query: false }.write(&gone, &mut line);
        assert!(line.ends_with(" 499 512\n"), "{line}");
    }

    #[test]
    fn times_are_those_of_the_format() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_881_707);
        assert_eq!(clock(at), "28/Nov/2026:16:01:47 +0000");
    }
}

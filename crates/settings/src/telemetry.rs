//! `[log]` beside its filter, and `[telemetry]`: what is told of requests, and to whom.

use crate::faults::Faults;
use crate::read::{Sections, Values};
use suimon_params::upstream::NodeParams;
use suimon_params::{AccessFormat, LogFormat, OtlpParams, RequestIds, Telemetry};

/// The port of OTLP over HTTP.
const PORT: u16 = 4318;

/// Returns what is told of requests.
pub(crate) fn telemetry(sections: &Sections, faults: &mut Faults) -> Telemetry {
    let log = sections.once("log");
    Telemetry {
        log_format: log.choice("format", LogFormat::of),
        access: log.choice("access", AccessFormat::of),
        access_file: log.given_path("access_file"),
        access_query: log.flag("access_query"),
        request_ids: log.choice("request_id", RequestIds::of),
        otlp: otlp(sections.once("telemetry"), faults),
    }
}

fn otlp(values: &Values, faults: &mut Faults) -> Option<OtlpParams> {
    let endpoint = values.given_text("otlp_endpoint")?;
    let Some((authority, path)) = parse(endpoint) else {
        faults.value(
            "telemetry.otlp_endpoint",
            format!("{endpoint:?}"),
            "http://, a host, a port if it is not 4318 and a path if need be, such as \"http://127.0.0.1:4318\"",
        );
        return None;
    };
    Some(OtlpParams {
        authority,
        path,
        metrics_every: values.given_time("metrics_every"),
        trace_ratio: values.number("trace_ratio"),
        service_name: values.text("service_name").to_owned(),
    })
}

/// Returns authority and path of an endpoint.
fn parse(endpoint: &str) -> Option<(String, String)> {
    let rest = endpoint.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let has_port = authority.rsplit(']').next().is_some_and(|behind| behind.contains(':'));
    let authority = if has_port { authority.to_owned() } else { format!("{authority}:{PORT}") };
    NodeParams::parse(&format!("http://{authority}")).ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    path.bytes().all(is_plain).then(|| (authority, path.trim_end_matches('/').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    #[test]
    fn nothing_is_told_of_requests_unless_it_is_asked_for() {
        let told = Settings::default().telemetry;
        assert_eq!((told.access, told.log_format, told.request_ids), Default::default());
        assert_eq!((told.otlp, told.access_query), (None, false));
    }

    #[test]
    fn a_collector_is_named_by_its_url() {
        let parsed = |endpoint| parse(endpoint).map(|(authority, path)| format!("{authority} {path}"));
        assert_eq!(parsed("http://127.0.0.1:4318"), Some("127.0.0.1:4318 ".into()));
        assert_eq!(parsed("http://collector/"), Some("collector:4318 ".into()));
        assert_eq!(parsed("http://[::1]:9/otlp/"), Some("[::1]:9 /otlp".into()));
        for wrong in
            ["https://a", "a:4318", "http://", "http://a/?b", "http://u:p@a", "http://a b", "http://a#c"]
        {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
        let faults = Settings::parse("test.toml", "[telemetry]\notlp_endpoint = \"https://a\"").unwrap_err();
        assert!(faults.to_string().contains("telemetry.otlp_endpoint"), "{faults}");
    }
}

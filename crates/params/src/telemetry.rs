//! What is told of requests, and to whom: logs and traces.

use std::path::PathBuf;
use std::time::Duration;

suimon_model::choices! {
    /// How lines on standard error are written.
    #[derive(Eq)]
    pub enum LogFormat {
        /// For people.
        Text = 0, "text", "for people, coloured on a terminal";
        /// For programs.
        Json = 1, "json", "one JSON object per line";
    }
}

suimon_model::choices! {
    /// How lines of the access log are written.
    #[derive(Eq)]
    pub enum AccessFormat {
        /// There is none.
        Off = 0, "off", "there is none";
        /// Everything.
        Json = 1, "json", "one JSON object per request, see docs/telemetry.md";
        /// What most tools read.
        Common = 2, "common", "the Common Log Format of web servers, which has no waits and no reasons";
    }
}

suimon_model::choices! {
    /// Which requests get an id.
    #[derive(Eq)]
    pub enum RequestIds {
        /// Those that get an error or a place in line.
        Trouble = 0, "trouble", "requests that are refused, wait in line or fail, in response and log; and all of them where there is an access log or traces";
        /// All.
        Always = 1, "always", "all requests; the application gets it as X-Request-Id";
    }
}

/// What is told of requests.
#[derive(Clone, PartialEq, Debug)]
pub struct Telemetry {
    /// How lines on standard error are written.
    pub log_format: LogFormat,
    /// How lines of the access log are written.
    pub access: AccessFormat,
    /// The file of the access log; `None`: standard output.
    pub access_file: Option<PathBuf>,
    /// Whether the access log has queries.
    pub access_query: bool,
    /// Which requests get an id.
    pub request_ids: RequestIds,
    /// Where traces go; `None`: there are none.
    pub otlp: Option<OtlpParams>,
}

/// A collector of OpenTelemetry's.
#[derive(Clone, PartialEq, Debug)]
pub struct OtlpParams {
    /// Host and port.
    pub authority: String,
    /// The path before `/v1/traces`, without a slash at its end.
    pub path: String,
    /// How often numbers are sent; `None`: never.
    pub metrics_every: Option<Duration>,
    /// The share of requests whose spans are sent, 0 to 1.
    pub trace_ratio: f64,
    /// `service.name`.
    pub service_name: String,
}

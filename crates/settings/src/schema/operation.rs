//! What an operator sees and keeps: learned state, admin listener, recordings and logs.

use super::DefaultValue::{Is, Required, Unset};
use super::{ENTRIES_MAX, Form, GIB, HOUR, SECOND, Section, key};
use crate::shape::Shape::{
    AddressSocketOrOff, Count, Flag, Host, List, Name, Number, Path, Size, Text, Time, Word,
};
use suimon_model::Choice;
use suimon_params::{AccessFormat, LogFormat, RequestIds};

pub(super) const LEARNED: Section = Section {
    path: "learned",
    form: Form::Table,
    doc: "What the gateway has learned of the application and its visitors: limits, capacities, paths of sessions, think times. No addresses, cookies or queries.",
    keys: &[key(
        "state",
        Path,
        Unset {
            means: "learned-ADDRESS-PORT.json in the state folder, see `suimon serve --help`",
            example: "\"/var/lib/suimon/learned.json\"",
        },
        "File that keeps it over a restart; written every minute. A file that is damaged, belongs to another application or was written by a newer version is renamed, and the gateway starts from scratch. \"none\": nothing is kept.",
    )],
};

/// What of the admin listener may be public.
const PUBLIC: &[Choice] = &[
    Choice { word: "/metrics", means: "numbers, for Prometheus" },
    Choice { word: "/healthz", means: "that the process answers" },
    Choice { word: "/readyz", means: "that it is ready for new visitors" },
];

pub(super) const ADMIN_TLS: Section = Section {
    path: "admin.tls",
    form: Form::Optional,
    doc: "TLS for the admin listener. Read again at each reload.",
    keys: &[
        key(
            "cert",
            Path,
            Required { example: "\"/etc/suimon/admin.pem\"" },
            "Certificate chain, PEM, the server's own first.",
        ),
        key("key", Path, Required { example: "\"/etc/suimon/admin.key\"" }, "Private key, PEM."),
        key(
            "client_ca",
            Path,
            Unset { means: "clients need no certificate", example: "\"/etc/suimon/operators.pem\"" },
            "Certificates, PEM, of whoever signs those of operators. Then all but admin.public needs such a certificate, or the token.",
        ),
    ],
};

pub(super) const ADMIN: Section = Section {
    path: "admin",
    form: Form::Table,
    doc: "The admin listener: metrics, state, and what an operator says to the gateway. On loopback it answers everybody there. Beyond loopback it answers whoever shows the token or a client certificate, and to others nothing but admin.public. See docs/admin.md.",
    keys: &[
        key(
            "listen",
            AddressSocketOrOff,
            Is("\"127.0.0.1:8001\""),
            "Where it listens. A Unix socket has mode 0660, and answers everything to whoever can open it. An address beyond loopback needs admin.token_file, admin.tls.client_ca or admin.public.",
        ),
        key(
            "token_file",
            Path,
            Unset { means: "no token is asked for", example: "\"/etc/suimon/admin.token\"" },
            "File with a token of at least 32 characters, which others may not read. Then all but admin.public needs `Authorization: Bearer TOKEN`, or the token as the password a browser asks for; on loopback, too. Read again at each reload.",
        ),
        key(
            "public",
            List(&Word(PUBLIC), PUBLIC.len()),
            Is("[]"),
            "What is answered to everybody, without token or certificate: for probes and for Prometheus.",
        ),
        key(
            "hosts",
            List(&Host, ENTRIES_MAX),
            Is("[]"),
            "Host names it answers to, besides localhost and IP addresses. Requests with any other Host header are refused (protection against DNS rebinding).",
        ),
    ],
};

pub(super) const RECORD: Section = Section {
    path: "record",
    form: Form::Table,
    doc: "A recording of what happens to the gate, for `suimon sim --replay`. It holds times, routes and session numbers; no addresses, no cookies, no queries. See docs/recording.md.",
    keys: &[
        key(
            "file",
            Path,
            Unset { means: "nothing is recorded", example: "\"/var/lib/suimon/gate.rec\"" },
            "File to write, created with mode 0600. Full segments are renamed to FILE.000001 and so on. A file that is not a recording is never touched.",
        ),
        key(
            "bytes_max",
            Size(suimon_params::Recording::BYTES_MIN, 1024 * GIB),
            Is("\"1GiB\""),
            "Most bytes of all segments together; the oldest is deleted.",
        ),
    ],
};

pub(super) const SHARING: Section = Section {
    path: "sharing",
    form: Form::Table,
    doc: "Several gateways before one application: they share limits, what begins and the line through a Redis or Valkey server, which is not on the path of requests. Alone is the default. All need the same `lease.keys`. See docs/sharing.md.",
    keys: &[
        key(
            "engine",
            Text,
            Unset { means: "this gateway is alone", example: "\"redis://10.0.0.7:6379\"" },
            "The server: redis:// or unix://, with user, password and database if need be; rediss:// for TLS.",
        ),
        key(
            "group",
            Text,
            Is("\"suimon\""),
            "Name of the gateways that share: 1 to 64 letters, digits, \"-\", \"_\" or \".\". One group for each application.",
        ),
        key(
            "gateways",
            Count(1, suimon_params::SharingParams::GATEWAYS_MAX as u64),
            Is("2"),
            "How many gateways there usually are. Used only by one that has never reached the engine: it takes its limits divided by this.",
        ),
        key(
            "period",
            Time(50, 200),
            Is("\"100ms\""),
            "How often amounts are exchanged. A share that was not confirmed for three periods expires.",
        ),
    ],
};

pub(super) const LOG: Section = Section {
    path: "log",
    form: Form::Table,
    doc: "What is written to standard error, and the access log. See docs/telemetry.md.",
    keys: &[
        key(
            "filter",
            Text,
            Is("\"info\""),
            "error, warn, info, debug or trace; or per module, such as \"info,suimon_proxy=debug\". The environment variable SUIMON_LOG takes precedence.",
        ),
        key("format", Word(LogFormat::CHOICES), Is("\"text\""), "How lines on standard error are written."),
        key(
            "access",
            Word(AccessFormat::CHOICES),
            Is("\"off\""),
            "The access log: a line per request, once its response has ended. A line for which there is no room is dropped and counted; no request waits for the log.",
        ),
        key(
            "access_file",
            Path,
            Unset {
                means: "the access log goes to standard output",
                example: "\"/var/log/suimon/access.log\"",
            },
            "File of the access log, if access is not off: created with mode 0640 and opened again at SIGHUP, after logrotate has renamed it.",
        ),
        key(
            "access_query",
            Flag,
            Is("false"),
            "Whether the access log has the queries of requests, which may hold secrets.",
        ),
        key(
            "request_id",
            Word(RequestIds::CHOICES),
            Is("\"trouble\""),
            "Which requests get an id. One from a trusted proxy (X-Request-Id) is kept, any other is made here.",
        ),
    ],
};

pub(super) const TELEMETRY: Section = Section {
    path: "telemetry",
    form: Form::Table,
    doc: "For OpenTelemetry: traces, with a span for each request, and below it one for each wait, the application and the response; and metrics. See docs/telemetry.md.",
    keys: &[
        key(
            "otlp_endpoint",
            Text,
            Unset { means: "neither traces nor metrics are sent", example: "\"http://127.0.0.1:4318\"" },
            "A collector that takes OTLP over HTTP, as JSON: spans go to /v1/traces below it.",
        ),
        key(
            "trace_ratio",
            Number(0.0, 1.0),
            Is("0.01"),
            "The share of requests whose spans are sent. Where a trusted proxy sends traceparent, its flag decides instead.",
        ),
        key(
            "metrics_every",
            Time(SECOND, HOUR),
            Unset { means: "no metrics are sent; /metrics has them all the same", example: "\"60s\"" },
            "How often the numbers of /metrics are sent to the collector, to /v1/metrics.",
        ),
        key("service_name", Name, Is("\"suimon\""), "What the spans are from: service.name."),
    ],
};

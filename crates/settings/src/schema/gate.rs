//! What is gated, and by which rules: sessions, routes, laws and leases.

use super::DefaultValue::{Is, Required, Unset};
use super::{DAY, ENTRIES_MAX, Form, HOUR, MINUTE, ROUTES_MAX, SECOND, Section, key};
use crate::shape::Shape::{
    Count, Flag, List, Name, Number, Path, Route, RouteAndQuery, Time, UrlPath, Word, WordOrCount,
};
use suimon_control::{RouteLawKind, SessionLawKind};
use suimon_gate::{KindMode, QueueOrder, RouteMode};
use suimon_params::LeaseIssued;

pub(super) const SESSION: Section = Section {
    path: "session",
    form: Form::Repeated(suimon_params::KINDS_MAX),
    doc: "A kind of session: requests of one visitor that pay off only when the last is answered. The first kind whose begins match a request is its kind. With none declared, every visitor's requests are one kind, \"visit\".",
    keys: &[
        key("kind", Name, Required { example: "\"shopping\"" }, "Its name in metrics, pages and logs."),
        key(
            "begins",
            List(&Route, ENTRIES_MAX),
            Is("[]"),
            "Requests that begin one, by method and path, whatever their query. Empty: the first gated request of a visitor who is in no session.",
        ),
        key(
            "ends",
            List(&Route, ENTRIES_MAX),
            Is("[]"),
            "Requests that, once answered, end one. Empty: it ends when the visitor stays silent for gate.session_idle.",
        ),
        key(
            "app_cookie",
            Name,
            Unset { means: "see gate.detect_app_cookies", example: "\"JSESSIONID\"" },
            "The application's own session cookie, with values of 8 characters or more: visitors who already have one are let through when the gate first closes.",
        ),
        key(
            "patience",
            Time(100, HOUR),
            Unset { means: "learned from visitors who leave, until then gate.patience", example: "\"30s\"" },
            "How long visitors wait for one answer before they give up.",
        ),
        key(
            "hold",
            Time(0, HOUR),
            Unset {
                means: "0.7 of the patience, at most 5 s, or 10 s without a waiting room",
                example: "\"20s\"",
            },
            "The longest a newcomer is held waiting before being shown the waiting room, or told to come back later, instead.",
        ),
        key(
            "waiting_room",
            Flag,
            Is("true"),
            "Whether a newcomer who cannot begin soon gets a place in line. false: they are told to come back later, as is right for programs that know no cookies and read no pages.",
        ),
        key("mode", Word(KindMode::CHOICES), Is("\"enforce\""), "What is done with newcomers."),
    ],
};

pub(super) const ROUTE: Section = Section {
    path: "route",
    form: Form::Repeated(ROUTES_MAX),
    doc: "A route known beforehand: it has one queue and one limit. The first that matches a request is its route, and of several with that very path the one that names most of the query; what matches none is found from traffic (see discovery).",
    keys: &[
        key(
            "match",
            RouteAndQuery,
            Required { example: "\"GET /search\"" },
            "Method (or *) and path; {name} stands for one segment, a last * for the rest. Where one path has pages of different costs, parameters of the query tell them apart: \"GET /?s\" is what has an s of any value, \"GET /index.php?page=search\" what has a page of this one; with & between them all must be there, in any order, and one that is there several times fits by any of its values. Up to 8 of them and 512 bytes, each name and value up to 128, written as in a URL. A route without a query has what is left of its path.",
        ),
        key(
            "mode",
            WordOrCount(RouteMode::WORDS, 1, 10_000),
            Is("\"enforce\""),
            "What is done here; a number is a limit that is held to.",
        ),
    ],
};

pub(super) const DISCOVERY: Section = Section {
    path: "discovery",
    form: Form::Table,
    doc: "Routes found from traffic, and what is never gated.",
    keys: &[
        key(
            "routes_max",
            Count(1, 1000),
            Is("200"),
            "The most routes found from traffic; the rest share one, named other. Where all places are taken, a path that is asked for gets that of a route that is not any more. What sessions do is kept for each pair of routes and kind of session: with 1000 that is some 17 MB a kind, and a few milliseconds of each quarter of a second.",
        ),
        key(
            "mode",
            WordOrCount(RouteMode::WORDS, 1, 10_000),
            Is("\"enforce\""),
            "What is done on them; as route.mode.",
        ),
        key(
            "static_extensions",
            List(&Name, ENTRIES_MAX),
            Is(
                "[\"css\", \"js\", \"mjs\", \"map\", \"png\", \"jpg\", \"jpeg\", \"gif\", \"svg\", \"webp\", \"avif\", \"ico\", \"woff\", \"woff2\", \"ttf\", \"otf\", \"eot\", \"mp4\", \"webm\", \"mp3\", \"wasm\"]",
            ),
            "GET and HEAD of paths that end in a dot and one of these pass without a slot, at most 64 at once, or as many as are answered within a second; further ones wait for up to two seconds. One that is answered with a page (200 and text/html) is gated like any other path from then on.",
        ),
        key(
            "static_prefixes",
            List(&UrlPath, ENTRIES_MAX),
            Is("[]"),
            "GET and HEAD of paths that begin with one of these pass without a slot.",
        ),
        key(
            "ungated",
            List(&UrlPath, ENTRIES_MAX),
            Is(
                "[\"/robots.txt\", \"/favicon.ico\", \"/.well-known/\", \"/health\", \"/healthz\", \"/livez\", \"/readyz\", \"/actuator/health\"]",
            ),
            "Paths that pass without a slot whatever the method, at most 1024 at once, or as many as are answered within a second; one that ends in / stands for everything below it.",
        ),
    ],
};

pub(super) const GATE: Section = Section {
    path: "gate",
    form: Form::Table,
    doc: "How limits are found and sessions let in. Nothing here needs to be set.",
    keys: &[
        key("route_law", Word(RouteLawKind::CHOICES), Is("\"paired\""), "How a route's limit is found."),
        key("session_law", Word(SessionLawKind::CHOICES), Is("\"flow\""), "How sessions are let in."),
        key(
            "static_sessions",
            Count(1, 1_000_000),
            Unset { means: "needed with session_law = \"static\" only", example: "35" },
            "Sessions under way at once.",
        ),
        key("order", Word(QueueOrder::CHOICES), Is("\"fifo\""), "Who goes first in a route's queue."),
        key(
            "cores",
            Count(1, 4096),
            Unset { means: "as many as this machine has", example: "2" },
            "Processor cores the application has. Only where the search for limits starts.",
        ),
        key(
            "patience",
            Time(100, HOUR),
            Is("\"1m\""),
            "How long clients wait for one answer as long as nothing was declared or learned.",
        ),
        key(
            "detect_app_cookies",
            Flag,
            Is("true"),
            "Whether session cookies are recognised without being named: by their names (JSESSIONID, PHPSESSID, ..., also with a hash at the end), or by long random values, kept from scripts, of which each session is given one of its own.",
        ),
        key(
            "waiting_max",
            Count(1, 1_000_000),
            Is("20000"),
            "Requests held waiting at once; newcomers beyond it are refused.",
        ),
        key(
            "sessions_max",
            Count(100, 10_000_000),
            Is("200000"),
            "Sessions remembered; the longest idle one is forgotten for a new one.",
        ),
        key("session_idle", Time(SECOND, 7 * DAY), Is("\"30m\""), "A session idle for longer is forgotten."),
        key("decisions_max", Count(1, 100_000), Is("256"), "Decisions kept to be shown."),
        key(
            "seed",
            Count(0, i64::MAX as u64),
            Is("1"),
            "Of all random choices: the jitter of Retry-After, which of two nodes.",
        ),
    ],
};

pub(super) const GATE_SEED_ROUTE: Section = Section {
    path: "gate.paper_route",
    form: Form::Table,
    doc: "The numbers of the paper's route rule, for gate.route_law = \"paper\".",
    keys: &[
        key("initial", Count(1, 512), Is("5"), "The limit to start from."),
        key("period", Time(100, HOUR), Is("\"2s\""), "Length of a throughput window."),
    ],
};

pub(super) const GATE_SEED_SESSION: Section = Section {
    path: "gate.paper_session",
    form: Form::Table,
    doc: "The numbers of the paper's session rule, for gate.session_law = \"paper\".",
    keys: &[
        key(
            "threshold",
            Number(0.0, 100_000.0),
            Is("3.0"),
            "Mean queue length at which the admission interval begins to grow.",
        ),
        key(
            "up",
            Time(1, HOUR),
            Is("\"50ms\""),
            "Added to the interval in each period at or over the threshold.",
        ),
        key("down", Time(1, HOUR), Is("\"50ms\""), "Taken from it in each period under the threshold."),
        key("period", Time(100, HOUR), Is("\"1s\""), "Time between two decisions."),
    ],
};

pub(super) const LEASE: Section = Section {
    path: "lease",
    form: Form::Table,
    doc: "The signed cookie that says \"this session was let in\". It grants no other right.",
    keys: &[
        key(
            "keys",
            Path,
            Unset {
                means: "lease.keys in the state folder, see `suimon serve --help`",
                example: "\"/var/lib/suimon/lease.keys\"",
            },
            "File of the signing keys, made with mode 0600 on the first start. \"none\": a key that ends with the process, so that leases do not outlive a restart. Gateways that share a line share this file.",
        ),
        key(
            "life",
            Time(MINUTE, 7 * DAY),
            Is("\"1h\""),
            "How long a lease is good for; renewed in passing once half of it has gone by.",
        ),
        key(
            "secure",
            Flag,
            Is("false"),
            "Whether TLS ends in front of Suimon, so that the cookie carries Secure on the plain listener too.",
        ),
        key("issued", Word(LeaseIssued::CHOICES), Is("\"needed\""), "When visitors get one."),
    ],
};

//! What is gated, and by which rules: sessions, routes, laws and leases.

use super::DefaultValue::{Is, Required, Unset};
use super::{
    DAY, ENTRIES_MAX, Form, HOUR, MINUTE, ROUTES_MAX, SECOND, SERVICE_ROUTES_MAX, SERVICES_MAX, Section, key,
};
use crate::shape::Shape::{
    Amount, Count, Flag, List, Name, Number, Path, Route, RouteAndQuery, Time, UrlPath, Word, WordOrCount,
};
use suimon_control::{RouteLawKind, SessionLawKind};
use suimon_gate::{DegradationMode, KindMode, PausePlace, QueueOrder, RouteMode};
use suimon_params::LeaseIssued;

pub(super) const SESSION: Section = Section {
    path: "session",
    form: Form::Repeated(suimon_params::KINDS_MAX),
    doc: "A kind of session: a series of requests by one visitor that is worth something only if the last one is answered. A request belongs to the first kind whose begins match it. If no kind is declared, there is one kind, \"visit\", for all visitors.",
    keys: &[
        key("kind", Name, Required { example: "\"shopping\"" }, "Its name in metrics, pages and logs."),
        key(
            "begins",
            List(&Route, ENTRIES_MAX),
            Is("[]"),
            "Requests that begin a session, by method and path; the query is ignored. Empty: the first gated request of a visitor without a session.",
        ),
        key(
            "ends",
            List(&Route, ENTRIES_MAX),
            Is("[]"),
            "Requests that end a session once they are answered. Empty: a session ends when its visitor has been silent for longer than visitors usually are between two requests, and is forgotten after gate.session_idle.",
        ),
        key(
            "app_cookie",
            Name,
            Unset { means: "see gate.detect_app_cookies", example: "\"JSESSIONID\"" },
            "Name of the application's own session cookie (values of at least 8 characters). Visitors who already have it when the gate first closes are treated as admitted.",
        ),
        key(
            "patience",
            Time(100, HOUR),
            Unset { means: "learned from visitors who leave, until then gate.patience", example: "\"30s\"" },
            "How long visitors wait for one response before they give up.",
        ),
        key(
            "hold",
            Time(0, HOUR),
            Unset { means: "0.7 × patience, at most 5 s (10 s without a waiting room)", example: "\"20s\"" },
            "Longest time a newcomer's request is held open at the session gate. After that, at most a quarter later, the newcomer gets the waiting page, or a 503 with Retry-After if there is no waiting room. Where patience is not declared either and most clients leave within 3 s, it is 0.4 of what was learned: they are clients with a timeout.",
        ),
        key(
            "waiting_room",
            Flag,
            Is("true"),
            "Whether newcomers who cannot be admitted soon get a position in line. false: they get a 503 with Retry-After, which suits API clients without cookies.",
        ),
        key("mode", Word(KindMode::CHOICES), Is("\"enforce\""), "What is done with newcomers."),
    ],
};

pub(super) const ROUTE: Section = Section {
    path: "route",
    form: Form::Repeated(ROUTES_MAX),
    doc: "A declared route: it has one queue and one concurrency limit. A request belongs to the first route that matches it; of several routes with the same path, to the one with the most query parameters. Requests that match no declared route get a discovered one (see discovery).",
    keys: &[
        key(
            "match",
            RouteAndQuery,
            Required { example: "\"GET /search\"" },
            "Method (or *) and path; {name} stands for one segment, a last * for the rest. Where one path has pages of different costs, parameters of the query tell them apart: \"GET /?s\" matches any value of s, \"GET /index.php?page=search\" only this value of page; parameters joined by & must all be present, in any order; a repeated parameter matches by any of its values. Up to 8 parameters and 512 bytes, each name and value up to 128 bytes, written as in a URL. A route without a query gets all other requests of its path.",
        ),
        key(
            "mode",
            WordOrCount(RouteMode::WORDS, 1, 10_000),
            Is("\"enforce\""),
            "What is done here; a number is a fixed limit.",
        ),
    ],
};

pub(super) const DISCOVERY: Section = Section {
    path: "discovery",
    form: Form::Table,
    doc: "Discovered routes, and paths that are never gated.",
    keys: &[
        key(
            "routes_max",
            Count(1, 1000),
            Is("200"),
            "Most discovered routes; all other paths share one route named \"other\". When the table is full, a path that is requested often replaces a route that is hardly requested any more. Statistics are kept per pair of routes and kind of session: with 1000 routes about 17 MB per kind, and a few milliseconds of CPU four times per second.",
        ),
        key(
            "mode",
            WordOrCount(RouteMode::WORDS, 1, 10_000),
            Is("\"enforce\""),
            "Mode of discovered routes; see route.mode.",
        ),
        key(
            "static_extensions",
            List(&Name, ENTRIES_MAX),
            Is(
                "[\"css\", \"js\", \"mjs\", \"map\", \"png\", \"jpg\", \"jpeg\", \"gif\", \"svg\", \"webp\", \"avif\", \"ico\", \"woff\", \"woff2\", \"ttf\", \"otf\", \"eot\", \"mp4\", \"webm\", \"mp3\", \"wasm\"]",
            ),
            "GET and HEAD requests for paths with one of these extensions need no slot: up to 64 at once, or as many as are answered within one second, whichever is more; further ones wait up to two seconds. A path that is answered with a page (200 and text/html) is gated from then on.",
        ),
        key(
            "static_prefixes",
            List(&UrlPath, ENTRIES_MAX),
            Is("[]"),
            "GET and HEAD requests for paths with one of these prefixes need no slot.",
        ),
        key(
            "ungated",
            List(&UrlPath, ENTRIES_MAX),
            Is(
                "[\"/robots.txt\", \"/favicon.ico\", \"/.well-known/\", \"/health\", \"/healthz\", \"/livez\", \"/readyz\", \"/actuator/health\"]",
            ),
            "Paths that need no slot, whatever the method: up to 1024 requests at once, or as many as are answered within one second, whichever is more. A path that ends in / covers everything below it.",
        ),
    ],
};

pub(super) const GATE: Section = Section {
    path: "gate",
    form: Form::Table,
    doc: "How concurrency limits are found and sessions are admitted. Nothing here needs to be set.",
    keys: &[
        key("route_law", Word(RouteLawKind::CHOICES), Is("\"paired\""), "How a route's limit is found."),
        key("session_law", Word(SessionLawKind::CHOICES), Is("\"flow\""), "How sessions are admitted."),
        key(
            "static_sessions",
            Count(1, 1_000_000),
            Unset { means: "needed with session_law = \"static\" only", example: "35" },
            "Most sessions at once. One counts until it ends or has been idle for gate.session_idle.",
        ),
        key("order", Word(QueueOrder::CHOICES), Is("\"fifo\""), "Who goes first in a route's queue."),
        key(
            "cores",
            Count(1, 4096),
            Unset { means: "as many as this machine has", example: "2" },
            "CPU cores of the application: set it if the application runs on another machine. The search for limits and the first admissions start from it, and a request ran alone if the application held no more requests than it has cores.",
        ),
        key(
            "patience",
            Time(100, HOUR),
            Is("\"1m\""),
            "Patience to assume until it is declared or learned: how long clients wait for one response.",
        ),
        key(
            "detect_app_cookies",
            Flag,
            Is("true"),
            "Whether the application's session cookies are detected automatically: by well-known names (JSESSIONID, PHPSESSID, ..., also with a hash appended), or because they are HttpOnly and have a long random value that differs from session to session.",
        ),
        key(
            "waiting_max",
            Count(1, 1_000_000),
            Is("20000"),
            "Most requests that wait at once, in all queues together; newcomers beyond that are refused.",
        ),
        key(
            "sessions_max",
            Count(100, 10_000_000),
            Is("200000"),
            "Most sessions remembered; beyond that the one idle longest is forgotten.",
        ),
        key(
            "session_idle",
            Time(SECOND, 7 * DAY),
            Is("\"30m\""),
            "A session that is idle for longer is forgotten.",
        ),
        key(
            "decisions_max",
            Count(1, 100_000),
            Is("256"),
            "Most recent decisions kept for `suimon status` and /api/state.",
        ),
        key(
            "seed",
            Count(0, i64::MAX as u64),
            Is("1"),
            "Seed of all random choices, such as the jitter of Retry-After and the choice between two nodes.",
        ),
    ],
};

pub(super) const SERVICE: Section = Section {
    path: "service",
    form: Form::Repeated(SERVICES_MAX),
    doc: "A group of routes, and what is wished for it while the host cannot do all that is asked of it: see docs/degradation.md. In mode \"bands\" floors are kept in the order in which services are written.",
    keys: &[
        key("name", Name, Required { example: "\"quote\"" }, "What status, metrics and records call it."),
        key(
            "routes",
            List(&RouteAndQuery, SERVICE_ROUTES_MAX),
            Required { example: "[\"GET /quote\"]" },
            "Its routes, written as in route.match; each is in one service at most. One that is no [[route]] is declared by this, with mode = \"enforce\"; none may stand behind a wider one, which would take its requests. What waits for a service waits whatever the mode of its route.",
        ),
        key(
            "slowdown",
            Number(0.01, 100.0),
            Is("1.0"),
            "In mode \"slowdown\": how much it may be slowed relative to the other services. With 1.0 for quote and 4.0 for search, search's response time, as a multiple of its time alone, may be four times quote's.",
        ),
        key(
            "weight",
            Number(0.01, 100.0),
            Is("1.0"),
            "In modes \"shares\" and \"bands\": its part of the work, relative to the others', when not all can have what they ask for.",
        ),
        key(
            "floor",
            Amount,
            Unset { means: "nothing is kept for it", example: "\"30 %\"" },
            "What it gets before the others, as long as it asks for that much: completions per second (\"40/s\"), or a share of the processor seconds that all services together use (\"30 %\").",
        ),
        key(
            "ceiling",
            Amount,
            Unset { means: "no bound", example: "\"60 %\"" },
            "What it never gets more than, even if nobody else needs the rest: completions per second (\"40/s\"), or a share of the most processor seconds that all services together have used (\"60 %\").",
        ),
        key(
            "alone",
            Time(1, HOUR),
            Unset { means: "it is learned from calm times", example: "\"350ms\"" },
            "What one of its requests takes in the application when nothing else runs: one time for all its routes. Worth saying where the application is never calm.",
        ),
        key(
            "pause",
            Time(0, MINUTE),
            Is("\"0s\""),
            "For how long every request is held before it goes on, busy or not, in every mode: the fixed pause of the papers, for comparison. What a service needs is found without it.",
        ),
        key(
            "pause_ratio",
            Number(0.0, suimon_gate::PAUSE_RATIO_MAX),
            Is("0.0"),
            "Seconds of pause for each second of work, busy or not, in every mode: with 2.0 a service works a third of the time that it would take.",
        ),
        key(
            "pauses",
            Word(PausePlace::CHOICES),
            Is("\"around\""),
            "Where the pauses are taken that pause_ratio and caps come to. inside needs an application that reads Suimon-Pause and answers with Suimon-Paused, such as one with the Java agent: see docs/degradation.md. What pause holds is always held around.",
        ),
    ],
};
pub(super) const DEGRADATION: Section = Section {
    path: "degradation",
    form: Form::Table,
    doc: "How services share the host when it cannot do all that is asked of it.",
    keys: &[
        key(
            "mode",
            Word(DegradationMode::CHOICES),
            Unset { means: "\"off\" without any [[service]], else \"slowdown\"", example: "\"shares\"" },
            "What the split goes by. Floors and ceilings hold in all modes but \"off\".",
        ),
        key(
            "lag_guard",
            Flag,
            Is("false"),
            "Whether the service with the most work per request gives way while health checks show that the application is late to take in requests: by more than 5 ms over their least. Needs upstream.health.path, of something that is no work.",
        ),
    ],
};
pub(super) const GATE_PAPER_ROUTE: Section = Section {
    path: "gate.paper_route",
    form: Form::Table,
    doc: "The numbers of the paper's route rule, for gate.route_law = \"paper\".",
    keys: &[
        key("initial", Count(1, 512), Is("5"), "The limit to start from."),
        key("period", Time(100, HOUR), Is("\"2s\""), "Length of a throughput window."),
    ],
};

pub(super) const GATE_PAPER_SESSION: Section = Section {
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
            "Increase of the admission interval per period at or above the threshold.",
        ),
        key("down", Time(1, HOUR), Is("\"50ms\""), "Decrease per period below the threshold."),
        key("period", Time(100, HOUR), Is("\"1s\""), "Time between two decisions."),
    ],
};

pub(super) const LEASE: Section = Section {
    path: "lease",
    form: Form::Table,
    doc: "The signed cookie that proves that a session was admitted. It grants no other right.",
    keys: &[
        key(
            "keys",
            Path,
            Unset {
                means: "lease.keys in the state folder, see `suimon serve --help`",
                example: "\"/var/lib/suimon/lease.keys\"",
            },
            "File with the signing keys, created with mode 0600 on the first start. \"none\": a key in memory only, so that leases do not survive a restart. Gateways with the same visitors need the same file.",
        ),
        key(
            "life",
            Time(MINUTE, 7 * DAY),
            Is("\"1h\""),
            "How long a lease is valid. It is renewed with a response once half of that time is over.",
        ),
        key(
            "secure",
            Flag,
            Is("false"),
            "Whether TLS is terminated in front of Suimon: then cookies set on the plain listener are Secure too.",
        ),
        key("issued", Word(LeaseIssued::CHOICES), Is("\"needed\""), "When visitors get one."),
    ],
};

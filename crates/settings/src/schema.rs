//! Every setting there is: name, form, range, default and meaning in one table.
//!
//! The reader, the example file and `docs/settings.md` are all made from it; a test holds its defaults against those of
//! the rooms.

use crate::shape::Shape;

/// A table of the file.
pub(crate) struct Section {
    /// Its name as it stands between the brackets.
    pub(crate) path: &'static str,
    pub(crate) form: Form,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
}

/// How often a section stands in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Once; left out, every key has its default.
    Table,
    /// Once; left out, what it describes is not there.
    Optional,
    /// As `[[section]]`, up to so many times.
    Repeated(usize),
}

/// One setting.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) default: LeftOut,
    pub(crate) doc: &'static str,
}

/// What holds where a setting is left out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LeftOut {
    /// This value, as it would be written in the file.
    Is(&'static str),
    /// No value; what that means, and an example of one.
    Unset { means: &'static str, example: &'static str },
    /// It must be there; an example.
    Required { example: &'static str },
}

use LeftOut::{Is, Required, Unset};
use Shape::{
    AddressOrOff, Colour, Count, Flag, Host, List, Name, Network, Node, Number, Path, Route, Size, Text,
    Time, UrlPath, Word, WordOrCount,
};

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The most routes declared beforehand.
const ROUTES_MAX: usize = 1000;
/// The most entries of any other list.
const ENTRIES_MAX: usize = 256;

const fn key(name: &'static str, shape: Shape, default: LeftOut, doc: &'static str) -> Key {
    Key { name, shape, default, doc }
}

/// All of them, in the order in which they are shown.
pub(crate) const SECTIONS: &[Section] = &[
    Section {
        path: "listen",
        form: Form::Table,
        doc: "Where clients connect.",
        keys: &[
            key(
                "http",
                AddressOrOff,
                Is("\"0.0.0.0:8000\""),
                "HTTP/1.1, and HTTP/2 with prior knowledge, in clear. Port 0 takes a free one.",
            ),
            key(
                "trusted_proxies",
                List(&Network, ENTRIES_MAX),
                Is("[]"),
                "Peers whose X-Forwarded-* and Forwarded headers are believed. Anybody else's are replaced.",
            ),
            key(
                "backlog",
                Count(1, 65_535),
                Is("4096"),
                "Connections the kernel holds ready to be accepted.",
            ),
        ],
    },
    Section {
        path: "listen.tls",
        form: Form::Optional,
        doc: "TLS for clients, beside plain HTTP: HTTP/1.1 and HTTP/2 by ALPN. Set listen.http = \"off\" for TLS alone.",
        keys: &[
            key("address", AddressOrOff, Is("\"0.0.0.0:8443\""), "Where TLS clients connect."),
            key(
                "cert",
                Path,
                Required { example: "\"/etc/suimon/cert.pem\"" },
                "Certificate chain, PEM, the server's own first.",
            ),
            key("key", Path, Required { example: "\"/etc/suimon/key.pem\"" }, "Private key, PEM."),
            key(
                "reload_every",
                Time(100, DAY),
                Is("\"30s\""),
                "How often both files are looked at for a change. A pair that cannot be used is reported, and the old one stays.",
            ),
        ],
    },
    Section {
        path: "upstream",
        form: Form::Table,
        doc: "The application.",
        keys: &[
            key(
                "nodes",
                List(&Node, suimon_proxy::upstream::NODES_MAX),
                Is("[\"http://127.0.0.1:8080\"]"),
                "The application's servers. A route's limit is for all of them together.",
            ),
            key(
                "protocol",
                Word(&["http1", "http2"]),
                Is("\"http1\""),
                "What is spoken to the nodes; http2 in clear is by prior knowledge (h2c).",
            ),
            key(
                "on_abandon",
                Word(&["finish", "cancel"]),
                Is("\"finish\""),
                "What becomes of the work of a client that has gone. finish: the application works on regardless, so the answer is read to its end and the slot kept. cancel: for applications that stop when the connection closes.",
            ),
            key("via", Flag, Is("false"), "Whether requests to the application carry a Via header."),
            key("pool_idle_max", Count(0, 10_000), Is("1024"), "Unused connections kept open to one node."),
            key(
                "pool_idle_age",
                Time(SECOND, HOUR),
                Is("\"50s\""),
                "How long an unused connection is kept. Keep it shorter than the application's own keep-alive (Tomcat: 60 s).",
            ),
            key("h2_connections_max", Count(1, 1000), Is("4"), "Connections to one HTTP/2 node."),
            key(
                "h2_streams_max",
                Count(1, 10_000),
                Is("100"),
                "Requests at once on one HTTP/2 connection, if the node does not allow fewer.",
            ),
            key(
                "head_bytes_max",
                Size(8 * KIB, MIB),
                Is("\"64KiB\""),
                "The largest head of an answer that is accepted.",
            ),
        ],
    },
    Section {
        path: "upstream.health",
        form: Form::Table,
        doc: "Checks of every node, whether or not there is traffic.",
        keys: &[
            key(
                "path",
                UrlPath,
                Unset { means: "opening a TCP connection is enough", example: "\"/health\"" },
                "Asked for with GET; a healthy node answers with a status from 200 to 399.",
            ),
            key(
                "interval",
                Time(0, HOUR),
                Is("\"2s\""),
                "From one check of a node to the next, give or take a tenth. \"0s\": no checks.",
            ),
            key("timeout", Time(10, 5 * MINUTE), Is("\"2s\""), "The longest one check may take."),
            key(
                "down_after",
                Count(1, 100),
                Is("3"),
                "Failed checks in a row after which a node is taken out.",
            ),
            key(
                "up_after",
                Count(1, 100),
                Is("2"),
                "Passed checks in a row after which it is taken back in.",
            ),
        ],
    },
    Section {
        path: "upstream.ejection",
        form: Form::Table,
        doc: "When a node that fails requests is left out for a while.",
        keys: &[
            key(
                "after",
                Count(0, 1000),
                Is("5"),
                "Requests in a row that could not connect or got no answer. 0: never.",
            ),
            key(
                "base",
                Time(100, HOUR),
                Is("\"5s\""),
                "How long it is left out the first time; doubled each time it fails again at once.",
            ),
            key("max", Time(100, DAY), Is("\"1m\""), "The longest it is left out."),
        ],
    },
    Section {
        path: "upstream.tls",
        form: Form::Table,
        doc: "How https nodes are believed to be who they say they are.",
        keys: &[
            key(
                "ca_file",
                Path,
                Unset { means: "the authorities the web trusts", example: "\"/etc/suimon/ca.pem\"" },
                "Certificate authorities to trust, PEM.",
            ),
            key(
                "server_name",
                Host,
                Unset { means: "the host each node is reached at", example: "\"shop.internal\"" },
                "Name the nodes' certificates are for.",
            ),
            key(
                "verify",
                Flag,
                Is("true"),
                "false accepts any certificate: anybody on the way can read and change everything.",
            ),
        ],
    },
    Section {
        path: "session",
        form: Form::Repeated(suimon_proxy::KINDS_MAX),
        doc: "A kind of session: requests of one visitor that pay off only when the last is answered. The first kind whose begins match a request is its kind. With none declared, every visitor's requests are one kind, \"visit\".",
        keys: &[
            key("kind", Name, Required { example: "\"shopping\"" }, "Its name in metrics, pages and logs."),
            key(
                "begins",
                List(&Route, ENTRIES_MAX),
                Is("[]"),
                "Requests that begin one. Empty: the first gated request of a visitor who is in no session.",
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
                "The application's own session cookie: visitors who already have one are let through when the gate first closes.",
            ),
            key(
                "patience",
                Time(100, HOUR),
                Unset {
                    means: "learned from visitors who leave, until then gate.patience",
                    example: "\"30s\"",
                },
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
            key(
                "mode",
                Word(&["enforce", "observe", "off"]),
                Is("\"enforce\""),
                "enforce: newcomers are held back when there is need. observe: it is shown when they would be. off: nobody is ever held back.",
            ),
        ],
    },
    Section {
        path: "route",
        form: Form::Repeated(ROUTES_MAX),
        doc: "A route known beforehand: it has one queue and one limit. The first that matches a request is its route; what matches none is found from traffic (see discovery).",
        keys: &[
            key(
                "match",
                Route,
                Required { example: "\"GET /search\"" },
                "Method (or *) and path; {name} stands for one segment, a last * for the rest.",
            ),
            key(
                "mode",
                WordOrCount(&["enforce", "observe", "off"], 1, 10_000),
                Is("\"enforce\""),
                "enforce: a limit is found and held to. observe: found and shown, nobody waits. off: only counted. A number: that limit.",
            ),
        ],
    },
    Section {
        path: "discovery",
        form: Form::Table,
        doc: "Routes found from traffic, and what is never gated.",
        keys: &[
            key(
                "routes_max",
                Count(1, 10_000),
                Is("200"),
                "The most routes found from traffic; the rest share one, named other.",
            ),
            key(
                "mode",
                WordOrCount(&["enforce", "observe", "off"], 1, 10_000),
                Is("\"enforce\""),
                "What is done on them; as route.mode.",
            ),
            key(
                "static_extensions",
                List(&Name, ENTRIES_MAX),
                Is(
                    "[\"css\", \"js\", \"mjs\", \"map\", \"png\", \"jpg\", \"jpeg\", \"gif\", \"svg\", \"webp\", \"avif\", \"ico\", \"woff\", \"woff2\", \"ttf\", \"otf\", \"eot\", \"mp4\", \"webm\", \"mp3\", \"wasm\"]",
                ),
                "GET and HEAD of paths that end in a dot and one of these pass without a slot.",
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
                "Paths that pass without a slot whatever the method; one that ends in / stands for everything below it.",
            ),
        ],
    },
    Section {
        path: "gate",
        form: Form::Table,
        doc: "How limits are found and sessions let in. Nothing here needs to be set.",
        keys: &[
            key(
                "route_law",
                Word(&["paired", "seed"]),
                Is("\"paired\""),
                "How a route's limit is found. paired: trials in paired windows, one route at a time, for the most useful work of the whole host. seed: the paper's rule, one step up or down on each route's own throughput.",
            ),
            key(
                "session_law",
                Word(&["flow", "seed", "static", "open"]),
                Is("\"flow\""),
                "How sessions are let in. flow: by the work that sessions already let in still have to bring. seed: the paper's rule on the mean route queue. static: at most gate.static_sessions at once. open: everybody, only routes are gated.",
            ),
            key(
                "static_sessions",
                Count(1, 1_000_000),
                Unset { means: "needed with session_law = \"static\" only", example: "35" },
                "Sessions under way at once.",
            ),
            key(
                "order",
                Word(&["first_in", "later_in_session"]),
                Is("\"first_in\""),
                "Who goes first in a route's queue: whoever came first, or the session with more requests behind it. The latter saves more where session_law = \"open\", and lets those at an earlier step starve.",
            ),
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
            key(
                "session_idle",
                Time(SECOND, 7 * DAY),
                Is("\"30m\""),
                "A session idle for longer is forgotten.",
            ),
            key("records_max", Count(1, 100_000), Is("256"), "Decisions kept to be shown."),
            key(
                "seed",
                Count(0, i64::MAX as u64),
                Is("1"),
                "Of all random choices: the jitter of Retry-After, which of two nodes.",
            ),
        ],
    },
    Section {
        path: "gate.seed_route",
        form: Form::Table,
        doc: "The numbers of the paper's route rule, for gate.route_law = \"seed\".",
        keys: &[
            key("initial", Count(1, 512), Is("5"), "The limit to start from."),
            key("period", Time(100, HOUR), Is("\"2s\""), "Length of a throughput window."),
        ],
    },
    Section {
        path: "gate.seed_session",
        form: Form::Table,
        doc: "The numbers of the paper's session rule, for gate.session_law = \"seed\".",
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
    },
    Section {
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
            key(
                "given",
                Word(&["needed", "always"]),
                Is("\"needed\""),
                "When visitors get one. needed: under pressure, and where the application has no session cookie of its own, once newcomers come at half of the pace at which they could be let in, or several at once to a gateway that has just started; whoever was served before is known by connection, address and browser for ten minutes. always: where it has none, with the first answer that caches may not keep for all; set this if visitors without any cookie share address and browser and a rush comes at once.",
            ),
        ],
    },
    Section {
        path: "waiting_room",
        form: Form::Table,
        doc: "What those see who wait for their turn, and what is kept of the line. `suimon waiting-room preview` shows it.",
        keys: &[
            key(
                "name",
                Text,
                Unset { means: "the host that was asked for", example: "\"Riverside Tickets\"" },
                "The site's name, as its visitors know it.",
            ),
            key(
                "logo",
                UrlPath,
                Unset { means: "no picture", example: "\"/assets/logo.svg\"" },
                "A picture of the site's own. The gate lets it pass to everybody if it is a static asset (see discovery).",
            ),
            key(
                "colour",
                Colour,
                Unset { means: "a blue", example: "\"#862346\"" },
                "What stands out on light ground, #e6f0f3: contrast at least 4.5 to 1.",
            ),
            key(
                "colour_dark",
                Colour,
                Unset { means: "a light blue", example: "\"#f0a3bf\"" },
                "What stands out on dark ground, #14252e: contrast at least 4.5 to 1. Given with colour, or not at all.",
            ),
            key(
                "message",
                Text,
                Unset { means: "nothing", example: "\"Doors open at 19:00.\"" },
                "Your words to all who wait. They can be changed while running: `suimon waiting-room say`.",
            ),
            key(
                "template",
                Path,
                Unset { means: "Suimon's own page", example: "\"/etc/suimon/waiting.html\"" },
                "A page in place of Suimon's: see docs/waiting-room.md.",
            ),
            key(
                "hide_numbers",
                Flag,
                Is("false"),
                "Whether numbers of people are kept from those who wait, and only times are told.",
            ),
            key(
                "status",
                Word(&["503", "429", "200"]),
                Is("\"503\""),
                "Status of the page. 503: right where Suimon is what visitors reach. 429: where a content delivery network stands in front that answers a 503 with a page of its own. 200: only for what cannot do with the others, as search engines may take the page for yours.",
            ),
            key(
                "turn_held",
                Time(2 * MINUTE, DAY),
                Is("\"10m\""),
                "For how long visitors are told that their turn is held. After that they come in at the head of the line.",
            ),
            key("place_kept", Time(2 * HOUR, 7 * DAY), Is("\"24h\""), "For how long a place is kept."),
            key(
                "draws_burst",
                Count(1, 1_000_000),
                Is("200"),
                "Numbers that one network (a /24, or a /56 of IPv6) may draw at once; whoever comes beyond draws a little later.",
            ),
            key(
                "draws_per_second",
                Number(0.01, 1e6),
                Is("10.0"),
                "Numbers that one network may draw a second after that.",
            ),
            key(
                "crawlers",
                List(&Network, ENTRIES_MAX),
                Is("[]"),
                "Networks of search engines, as these publish them: their visitors come in by a lane of their own, at some twenty-fifth of the pace, however long the line is.",
            ),
            key(
                "pass_page",
                UrlPath,
                Unset { means: "anybody may draw a number", example: "\"/human\"" },
                "A page of the application's, a challenge or a log-in, that says who may draw a number: see docs/waiting-room.md. It passes the gate; one that ends in / stands for everything below it.",
            ),
            key(
                "pass_for",
                Word(&["many", "everybody"]),
                Is("\"many\""),
                "Who is sent there. many: whoever comes from a network that has drawn draws_burst numbers, instead of a little later. everybody: whoever would draw a number while others wait.",
            ),
            key(
                "state",
                Path,
                Unset {
                    means: "waiting-room-PORT.json in the state folder, see `suimon serve --help`",
                    example: "\"/var/lib/suimon/waiting-room.json\"",
                },
                "File that the line survives a restart in, written each second. \"none\": after a restart everybody waits in a new line, those who waited before the others.",
            ),
        ],
    },
    Section {
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
            "File that it survives a restart in, written each minute. One that is damaged, of another application or of a newer version is set aside, and the gateway starts with nothing known. \"none\": it ends with the process.",
        )],
    },
    Section {
        path: "timeouts",
        form: Form::Table,
        doc: "How long each phase may take.",
        keys: &[
            key(
                "header_read",
                Time(10, HOUR),
                Is("\"10s\""),
                "From a request's first byte to the end of its head.",
            ),
            key(
                "body_read",
                Time(10, HOUR),
                Is("\"30s\""),
                "From one piece of a request's body to the next.",
            ),
            key(
                "connect",
                Time(10, HOUR),
                Is("\"3s\""),
                "Opening a connection to the application: name look-up, TCP and TLS together.",
            ),
            key(
                "first_byte",
                Time(10, DAY),
                Is("\"1m\""),
                "From the last piece of the request sent to the head of the application's answer.",
            ),
            key(
                "idle",
                Time(10, DAY),
                Is("\"1m\""),
                "From one piece of the application's answer to the next.",
            ),
            key(
                "body_write",
                Time(10, HOUR),
                Is("\"1m\""),
                "From one piece of an answer that a client takes to the next.",
            ),
            key(
                "keep_alive",
                Time(10, DAY),
                Is("\"75s\""),
                "How long a client's connection may be idle between two requests.",
            ),
            key("handshake", Time(10, HOUR), Is("\"10s\""), "A client's TLS handshake."),
            key(
                "drain",
                Time(0, DAY),
                Is("\"70s\""),
                "How long a graceful shutdown waits for what is under way.",
            ),
            key(
                "watch_after",
                Time(0, MINUTE),
                Is("\"50ms\""),
                "How long a client waits before it is watched for leaving; shorter waits are not worth the watch.",
            ),
            key(
                "h2_ping",
                Time(SECOND, HOUR),
                Is("\"20s\""),
                "Between two HTTP/2 pings on a connection with open streams, and the longest a pong may take.",
            ),
        ],
    },
    Section {
        path: "limits",
        form: Form::Table,
        doc: "How much of everything is accepted.",
        keys: &[
            key(
                "connections",
                Count(1, 1_000_000),
                Is("9000"),
                "Client connections open at once; more wait in the kernel's queue.",
            ),
            key(
                "head_bytes",
                Size(8 * KIB, MIB),
                Is("\"64KiB\""),
                "A request's head; more is answered with 431.",
            ),
            key(
                "headers",
                Count(10, 1000),
                Is("100"),
                "Header lines of a request; more is answered with 431.",
            ),
            key(
                "url_bytes",
                Size(256, 64 * KIB),
                Is("\"16KiB\""),
                "A request's path and query; more is answered with 414.",
            ),
            key(
                "body_bytes",
                Size(0, 1024 * GIB),
                Unset { means: "the application decides", example: "\"64MiB\"" },
                "A request's body; more is answered with 413.",
            ),
            key(
                "prefix_bytes",
                Size(KIB, 16 * MIB),
                Is("\"64KiB\""),
                "Of a request's body, read while it waits to be let in.",
            ),
            key(
                "response_bytes",
                Size(0, GIB),
                Is("\"1MiB\""),
                "Of one answer, held for a slow client before the application has to wait for it.",
            ),
            key("responses_bytes", Size(0, 64 * GIB), Is("\"256MiB\""), "Of all such answers together."),
            key(
                "h2_streams",
                Count(1, 10_000),
                Is("128"),
                "HTTP/2 streams open at once on a client's connection.",
            ),
            key(
                "aliases",
                Count(100, 10_000_000),
                Is("200000"),
                "Application cookies remembered as belonging to a session that was let in; and as many sessions that have ended, whose leases open nothing.",
            ),
        ],
    },
    Section {
        path: "admin",
        form: Form::Table,
        doc: "The operator's listener: /metrics, /api/state, /api/learned, /healthz, /readyz. It has no password: keep it on an address only you can reach.",
        keys: &[
            key("listen", AddressOrOff, Is("\"127.0.0.1:8001\""), "Where it listens."),
            key(
                "hosts",
                List(&Host, ENTRIES_MAX),
                Is("[]"),
                "Names it may be reached by, beside localhost and IP addresses. Any other Host header is refused, so that a web page cannot read it through a name of its own.",
            ),
        ],
    },
    Section {
        path: "record",
        form: Form::Table,
        doc: "A recording of what happens to the gate, for `suimon sim --replay`. It holds times, routes and session numbers; no addresses, no cookies, no queries. See docs/recording.md.",
        keys: &[
            key(
                "file",
                Path,
                Unset { means: "nothing is recorded", example: "\"/var/lib/suimon/gate.rec\"" },
                "The file being written, made with mode 0600; full ones are set aside beside it as FILE.000001 and so on. A file that is no recording is never touched.",
            ),
            key(
                "bytes_max",
                Size(suimon_proxy::params::Recording::BYTES_MIN, 1024 * GIB),
                Is("\"1GiB\""),
                "Of all these files together; the oldest is removed.",
            ),
        ],
    },
    Section {
        path: "log",
        form: Form::Table,
        doc: "What is written to standard error.",
        keys: &[key(
            "filter",
            Text,
            Is("\"info\""),
            "error, warn, info, debug or trace; or by part, such as \"info,suimon_proxy=debug\". The environment variable SUIMON_LOG wins over it.",
        )],
    },
];

/// Returns the section with this path.
pub(crate) fn section(path: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.path == path)
}

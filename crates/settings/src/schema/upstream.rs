//! The application: its nodes, and which of them are asked.

use super::DefaultValue::{Is, Unset};
use super::{DAY, Form, HOUR, KIB, MIB, MINUTE, SECOND, Section, key};
use crate::shape::Shape::{
    AddressOrOff, Count, Flag, Host, List, Node, Number, Path, Size, Text, Time, UrlPath, Word,
};
use suimon_params::OnClientDisconnect;
use suimon_params::discovery::Discover;
use suimon_params::upstream::{Balance, Protocol};

pub(super) const UPSTREAM: Section = Section {
    path: "upstream",
    form: Form::Table,
    doc: "The application.",
    keys: &[
        key(
            "nodes",
            List(&Node, suimon_params::upstream::NODES_MAX),
            Is("[\"http://127.0.0.1:8080\"]"),
            "Upstream servers of the application. A route's concurrency limit is for all of them together. Those with fastcgi: also need [upstream.fastcgi].",
        ),
        key(
            "discover",
            Word(Discover::CHOICES),
            Is("\"off\""),
            "Whether host names in nodes are looked up again while running: see docs/nodes.md.",
        ),
        key(
            "discover_every",
            Time(SECOND, HOUR),
            Is("\"30s\""),
            "With discover = \"dns\": time from one lookup to the next.",
        ),
        key(
            "nodes_file",
            Path,
            Unset { means: "nodes are those of nodes", example: "\"/etc/suimon/nodes\"" },
            "A file with the address of a node in each line, read again when it changes. Those of nodes, if it is given, stay beside them.",
        ),
        key(
            "drain_within",
            Time(0, DAY),
            Is("\"60s\""),
            "With discover or nodes_file: how long a node that is found no longer keeps its sessions (affinity). Its requests are answered in any case.",
        ),
        key(
            "protocol",
            Word(Protocol::CHOICES),
            Is("\"http1\""),
            "Protocol towards the nodes; those with fastcgi: speak FastCGI.",
        ),
        key(
            "balance",
            Word(Balance::CHOICES),
            Is("\"shares\""),
            "How a node is chosen among several. \"reported\" and \"paper\" need [upstream.load_reports], and go by shares while a node has no recent report.",
        ),
        key(
            "affinity",
            Text,
            Unset { means: "any node will do", example: "\"JSESSIONID\"" },
            "Name of the application's session cookie, where a session must stay at the node that began it: see docs/nodes.md.",
        ),
        key(
            "affinity_idle",
            Time(SECOND, 30 * DAY),
            Is("\"30m\""),
            "With affinity: how long a session may be silent until its node is forgotten. As long as the application keeps sessions (Tomcat: 30 minutes).",
        ),
        key(
            "on_client_disconnect",
            Word(OnClientDisconnect::CHOICES),
            Unset {
                means: "\"finish\"; \"cancel\" with a pool of kind = \"cgi\", whose processes are killed then",
                example: "\"cancel\"",
            },
            "What becomes of the work of a client that has gone.",
        ),
        key(
            "slow_start",
            Time(0, HOUR),
            Is("\"10s\""),
            "How long a node that comes, or comes back, takes to get its whole share of the requests: it begins with a quarter of it. \"0s\": at once. Not with balance = \"paper\".",
        ),
        key(
            "retry_share",
            Number(0.0, 1.0),
            Is("0.2"),
            "Share of the requests of the last 10 s that may be sent again although a node may have worked on them: GET, HEAD and OPTIONS without a body whose connection closed before any of the answer; 20 of them in any case. Half of what its own requests allow is for each route alone. 0: none. What no node was reached for always goes to another one. See docs/nodes.md.",
        ),
        key("via", Flag, Is("false"), "Whether requests to the application carry a Via header."),
        key("pool_idle_max", Count(0, 10_000), Is("1024"), "Most idle connections kept open per node."),
        key(
            "pool_idle_age",
            Time(SECOND, HOUR),
            Is("\"50s\""),
            "How long an idle connection is kept open. Must be shorter than the application's own keep-alive timeout (Tomcat: 60 s).",
        ),
        key("h2_connections_max", Count(1, 1000), Is("4"), "Connections to one HTTP/2 node."),
        key(
            "h2_streams_max",
            Count(1, 10_000),
            Is("100"),
            "Most concurrent requests per HTTP/2 connection; fewer if the node allows fewer.",
        ),
        key(
            "head_bytes_max",
            Size(8 * KIB, MIB),
            Is("\"64KiB\""),
            "Most bytes of a response's status line and headers.",
        ),
    ],
};

pub(super) const UPSTREAM_HEALTH: Section = Section {
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
            "Time between two checks of a node, ±10 %. \"0s\": no checks.",
        ),
        key(
            "timeout",
            Time(10, 5 * MINUTE),
            Unset { means: "as long as the interval, and 2s at most", example: "\"1s\"" },
            "The longest one check may take.",
        ),
        key(
            "down_after",
            Count(1, 100),
            Is("3"),
            "A node is marked down after this many failed checks in a row.",
        ),
        key(
            "up_after",
            Count(1, 100),
            Is("2"),
            "It is marked up again after this many successful checks in a row.",
        ),
    ],
};

pub(super) const UPSTREAM_EJECTION: Section = Section {
    path: "upstream.ejection",
    form: Form::Table,
    doc: "Ejection of nodes whose requests fail (outlier detection).",
    keys: &[
        key(
            "after",
            Count(0, 1000),
            Is("5"),
            "A node is ejected after this many requests in a row that could not connect or got no response, or, at the least, were answered with errors while other nodes answered the same routes well. 0: never.",
        ),
        key(
            "base",
            Time(100, HOUR),
            Is("\"5s\""),
            "Length of the first ejection; doubled each time the node fails again right after its return.",
        ),
        key("max", Time(100, DAY), Is("\"1m\""), "Longest ejection."),
    ],
};

pub(super) const UPSTREAM_LOAD_REPORTS: Section = Section {
    path: "upstream.load_reports",
    form: Form::Table,
    doc: "The load that nodes report: see docs/agent.md.",
    keys: &[
        key(
            "listen",
            AddressOrOff,
            Is("\"off\""),
            "UDP address that `suimon agent` on the nodes sends its load reports to.",
        ),
        key(
            "keys",
            Path,
            Unset { means: "needed with listen", example: "\"/etc/suimon/agent.keys\"" },
            "File of the keys that reports are sealed with, the same as on the nodes; `suimon agent --new-key FILE` makes one. Who can read it can report for every node.",
        ),
        key(
            "clock_skew_max",
            Time(100, HOUR),
            Is("\"10s\""),
            "How far the clocks of gateway and nodes may be apart when an agent is heard for the first time. Recordings of reports that are older are refused then.",
        ),
        key(
            "orca",
            Flag,
            Is("false"),
            "Whether load reports in responses (ORCA: the headers endpoint-load-metrics and endpoint-load-metrics-bin) are read. They are then taken out, so that clients do not see them; else they are passed on.",
        ),
        key(
            "agent_check",
            Count(1, 65_535),
            Unset { means: "nodes are not asked", example: "8003" },
            "TCP port of each node at which it says its load once a second, as for HAProxy's agent-check; `suimon agent --agent-check` does. Not with orca = true.",
        ),
    ],
};

pub(super) const UPSTREAM_TLS: Section = Section {
    path: "upstream.tls",
    form: Form::Table,
    doc: "How the certificates of https nodes are verified.",
    keys: &[
        key(
            "ca_file",
            Path,
            Unset { means: "the public (WebPKI) certificate authorities", example: "\"/etc/suimon/ca.pem\"" },
            "Certificate authorities to trust, PEM.",
        ),
        key(
            "server_name",
            Host,
            Unset { means: "the host each node is reached at", example: "\"shop.internal\"" },
            "Name that the nodes' certificates must be valid for.",
        ),
        key(
            "verify",
            Flag,
            Is("true"),
            "false accepts any certificate: anyone on the network path can read and change everything.",
        ),
    ],
};

pub(super) const UPSTREAM_FASTCGI: Section = Section {
    path: "upstream.fastcgi",
    form: Form::Table,
    doc: "Which programs answer where nodes speak FastCGI (php-fpm and others).",
    keys: &[
        key(
            "root",
            Path,
            Unset {
                means: "the folder of `program`, or the working directory of the pool",
                example: "\"/var/www/shop\"",
            },
            "Folder of the site, as the nodes see it. A path is answered by the program at it, or by the one that the path begins with; the rest is its PATH_INFO.",
        ),
        key(
            "suffix",
            Text,
            Is("\".php\""),
            "What the names of programs end in. With check_files no other file under root is run.",
        ),
        key("index", Text, Is("\"index.php\""), "The program that answers for a folder."),
        key(
            "fallback",
            UrlPath,
            Unset { means: "404", example: "\"/index.php\"" },
            "The program under root that answers for paths without one of their own (front controller).",
        ),
        key(
            "check_files",
            Flag,
            Is("true"),
            "Whether a program is run only if its file exists on this machine. false where root is on another machine: then set cgi.fix_pathinfo=0 or security.limit_extensions there, or PHP runs `cat.jpg` for the path `/cat.jpg/x.php`.",
        ),
        key(
            "program",
            Path,
            Unset { means: "programs are under `root`", example: "\"/srv/shop/app.fcgi\"" },
            "One program that answers every path, which is its PATH_INFO, whatever is under root.",
        ),
        key(
            "status",
            UrlPath,
            Unset { means: "php-fpm is not asked", example: "\"/status\"" },
            "The path that php-fpm's pm.status_path names. Nodes are asked for it every 5 s, and what it says is shown in status, /api/state and metrics. Nothing is decided by it.",
        ),
    ],
};

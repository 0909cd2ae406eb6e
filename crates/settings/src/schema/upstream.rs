//! The application: its nodes, and which of them are asked.

use super::DefaultValue::{Is, Unset};
use super::{DAY, Form, HOUR, KIB, MIB, MINUTE, SECOND, Section, key};
use crate::shape::Shape::{Count, Flag, Host, List, Node, Path, Size, Time, UrlPath, Word};
use suimon_params::OnClientDisconnect;
use suimon_params::upstream::Protocol;

pub(super) const UPSTREAM: Section = Section {
    path: "upstream",
    form: Form::Table,
    doc: "The application.",
    keys: &[
        key(
            "nodes",
            List(&Node, suimon_params::upstream::NODES_MAX),
            Is("[\"http://127.0.0.1:8080\"]"),
            "The application's servers. A route's limit is for all of them together.",
        ),
        key("protocol", Word(Protocol::CHOICES), Is("\"http1\""), "What is spoken to the nodes."),
        key(
            "on_client_disconnect",
            Word(OnClientDisconnect::CHOICES),
            Is("\"finish\""),
            "What becomes of the work of a client that has gone.",
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
            "From one check of a node to the next, give or take a tenth. \"0s\": no checks.",
        ),
        key(
            "timeout",
            Time(10, 5 * MINUTE),
            Unset { means: "as long as the interval, and 2s at most", example: "\"1s\"" },
            "The longest one check may take.",
        ),
        key("down_after", Count(1, 100), Is("3"), "Failed checks in a row after which a node is taken out."),
        key("up_after", Count(1, 100), Is("2"), "Passed checks in a row after which it is taken back in."),
    ],
};

pub(super) const UPSTREAM_EJECTION: Section = Section {
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
};

pub(super) const UPSTREAM_TLS: Section = Section {
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
};

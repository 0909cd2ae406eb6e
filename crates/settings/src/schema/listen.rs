//! Where clients connect.

use super::DefaultValue::{Is, Required};
use super::{DAY, ENTRIES_MAX, Form, Section, key};
use crate::shape::Shape::{AddressOrOff, Count, List, Network, Path, Time};

pub(super) const LISTEN: Section = Section {
    path: "listen",
    form: Form::Table,
    doc: "Where clients connect.",
    keys: &[
        key(
            "http",
            AddressOrOff,
            Is("\"0.0.0.0:8000\""),
            "Address for plain HTTP/1.1 and for HTTP/2 with prior knowledge (h2c). Port 0 picks a free port.",
        ),
        key(
            "trusted_proxies",
            List(&Network, ENTRIES_MAX),
            Is("[]"),
            "Proxies whose X-Forwarded-* headers are trusted (Forwarded, if they send none of those). From any other peer these headers are replaced, and the other headers by which proxies describe a client (X-Forwarded-Port, X-Real-IP, X-Original-URL and the like) are removed.",
        ),
        key(
            "proxy_protocol",
            List(&Network, ENTRIES_MAX),
            Is("[]"),
            "TCP load balancers that begin each connection with a PROXY header, version 1 or 2; the client address is taken from it. Their connections without the header are refused. A PROXY header from any other peer is not interpreted.",
        ),
        key(
            "backlog",
            Count(1, 65_535),
            Is("4096"),
            "Length of the kernel's queue of connections that are not accepted yet (listen backlog).",
        ),
    ],
};

pub(super) const LISTEN_TLS: Section = Section {
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
            "How often both files are checked for changes. An invalid certificate/key pair is logged and the current one is kept.",
        ),
    ],
};

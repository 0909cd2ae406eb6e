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
            "HTTP/1.1, and HTTP/2 with prior knowledge, in clear. Port 0 takes a free one.",
        ),
        key(
            "trusted_proxies",
            List(&Network, ENTRIES_MAX),
            Is("[]"),
            "Peers whose X-Forwarded-* headers are believed (Forwarded, where they send none of those). Anybody else's are replaced, and what else proxies say of clients is taken out: X-Forwarded-Port, X-Real-IP, X-Original-URL and the like.",
        ),
        key(
            "proxy_protocol",
            List(&Network, ENTRIES_MAX),
            Is("[]"),
            "Balancers that pass bytes on and begin each connection with a PROXY header, version 1 or 2: the client is at the address it names. A connection of theirs without one is refused; nobody else's is read.",
        ),
        key("backlog", Count(1, 65_535), Is("4096"), "Connections the kernel holds ready to be accepted."),
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
            "How often both files are looked at for a change. A pair that cannot be used is reported, and the old one stays.",
        ),
    ],
};

//! Where clients connect.

use super::DefaultValue::{Is, Required, Unset};
use super::{DAY, ENTRIES_MAX, Form, Section, key};
use crate::shape::Shape::{AddressOrOff, Count, Flag, Header, Host, List, Network, Path, Time};
use suimon_params::ResponseHeader;

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

pub(super) const HTTPS: Section = Section {
    path: "https",
    form: Form::Table,
    doc: "Clients that use HTTPS, whether TLS ends here ([listen.tls]) or at a proxy of listen.trusted_proxies: see docs/https.md.",
    keys: &[
        key(
            "redirect",
            Flag,
            Is("false"),
            "Whether requests by plain HTTP are redirected to HTTPS: 301 for GET and HEAD, 308 for all others. Requests of a trusted proxy are redirected only if it says that they came by plain HTTP (X-Forwarded-Proto: http). Those for /.well-known/acme-challenge/ never are.",
        ),
        key(
            "redirect_host",
            Host,
            Unset { means: "the host that was asked for", example: "\"www.example.com\"" },
            "With redirect: the host that clients are sent to.",
        ),
        key(
            "redirect_port",
            Count(1, 65_535),
            Unset {
                means: "that of listen.tls where clients reach listen.http at its own port, else 443",
                example: "8443",
            },
            "With redirect: the port at which clients reach HTTPS.",
        ),
        key(
            "hsts",
            Time(0, 366 * DAY),
            Unset { means: "no such header", example: "\"365d\"" },
            "Strict-Transport-Security, with this max-age, on answers over HTTPS: browsers come by HTTPS alone for so long. An answer of the application that has this header keeps its own. \"0s\": browsers forget it.",
        ),
        key(
            "hsts_subdomains",
            Flag,
            Is("false"),
            "With hsts: whether it holds for all hosts below, too (includeSubDomains).",
        ),
        key(
            "hsts_preload",
            Flag,
            Is("false"),
            "With hsts: whether browsers may be shipped with it (preload), which takes long to undo. Needs hsts_subdomains and at least \"365d\".",
        ),
    ],
};

pub(super) const RESPONSE: Section = Section {
    path: "response",
    form: Form::Table,
    doc: "What clients are told with every answer.",
    keys: &[key(
        "headers",
        List(&Header, ResponseHeader::MOST),
        Is("[]"),
        "Headers added to answers, those of Suimon among them, unless they have one of that name: such as \"X-Content-Type-Options: nosniff\".",
    )],
};

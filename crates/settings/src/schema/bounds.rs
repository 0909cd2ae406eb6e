//! How long everything may take, and how much of it is accepted.

use super::DefaultValue::{Is, Unset};
use super::{DAY, Form, GIB, HOUR, KIB, MIB, MINUTE, SECOND, Section, key};
use crate::shape::Shape::{Count, Path, Size, Time};

pub(super) const TIMEOUTS: Section = Section {
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
        key("body_read", Time(10, HOUR), Is("\"30s\""), "From one piece of a request's body to the next."),
        key(
            "body_total",
            Time(10, DAY),
            Is("\"1h\""),
            "The longest that a client is waited for in all while it sends one body.",
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
            "response_read",
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
        key(
            "tunnel_idle",
            Time(10, DAY),
            Is("\"1h\""),
            "How long a WebSocket may carry nothing either way before both of its sides are closed; a ping is something. A graceful shutdown leaves it open until drain is over.",
        ),
        key("handshake", Time(10, HOUR), Is("\"10s\""), "A client's TLS handshake."),
        key(
            "drain",
            Time(0, DAY),
            Is("\"70s\""),
            "How long a graceful shutdown waits for what is under way.",
        ),
        key(
            "disconnect_watch_after",
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
};

pub(super) const LIMITS: Section = Section {
    path: "limits",
    form: Form::Table,
    doc: "How much of everything is accepted.",
    keys: &[
        key(
            "connections",
            Count(1, 1_000_000),
            Is("9000"),
            "Client connections open at once. With all taken a newcomer displaces the one worth least: silent ones first, then strangers' idle ones, then idle ones of those inside; somebody inside who is being answered stays, and with nothing to displace newcomers wait in the kernel's queue.",
        ),
        key(
            "head_bytes",
            Size(8 * KIB, MIB),
            Is("\"64KiB\""),
            "A request's head; more is answered with 431.",
        ),
        key("headers", Count(10, 1000), Is("100"), "Header lines of a request; more is answered with 431."),
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
            "body_rate_min",
            Size(0, GIB),
            Is("500"),
            "Bytes a second that a client must send of a body in the mean, once it has been waited for longer than `timeouts.body_read`; less is answered with 408. And of an answer that it must take, once it has been waited for longer than `timeouts.body_write`; less closes its connection. 0: no least rate.",
        ),
        key(
            "slow_uploads",
            Count(1, 1_000_000),
            Is("512"),
            "The most requests in the application, of all routes, whose clients are waited for in the middle of their bodies: they hold no slot meanwhile. A quarter of them may be of one public address. Beyond it the slowest of the address that has most is broken off; where others wait for the application because of them, the slowest of all. gRPC calls count apart, up to this number.",
        ),
        key(
            "request_buffer_bytes",
            Size(KIB, 16 * MIB),
            Is("\"64KiB\""),
            "Of a request's body, read before it is let in.",
        ),
        key(
            "response_buffer_bytes",
            Size(0, GIB),
            Is("\"1MiB\""),
            "Of one answer, held in memory for a slow client; what follows goes through a file (see [spool]), or the application has to wait.",
        ),
        key(
            "buffered_bytes",
            Size(0, 64 * GIB),
            Is("\"256MiB\""),
            "Of all such answers together, and of all that is read of requests before they are let in.",
        ),
        key(
            "h2_streams",
            Count(1, 10_000),
            Is("128"),
            "HTTP/2 streams open at once on a client's connection.",
        ),
        key(
            "session_cookies",
            Count(100, 10_000_000),
            Is("200000"),
            "Application cookies remembered as belonging to a session that was let in, as many more by which somebody came back, and as many sessions that have ended, whose cookies and leases open nothing.",
        ),
    ],
};

pub(super) const SPOOL: Section = Section {
    path: "spool",
    form: Form::Table,
    doc: "Bodies that their clients send or take slowly, so that the application has them at once or is done with them at once: what does not fit into memory is kept in files without a name.",
    keys: &[
        key(
            "directory",
            Path,
            Unset { means: "the system's directory for temporary files", example: "\"/var/tmp\"" },
            "Where these files are. Where none can be made, slow clients keep the application waiting, and a warning says so at the start.",
        ),
        key(
            "bytes_max",
            Size(0, 1024 * GIB),
            Is("\"4GiB\""),
            "Of all of them, and never more than half of what is free there; at most half of it answers, and of one public address a quarter of what requests or answers may have. 0: none are made.",
        ),
        key(
            "body_bytes_max",
            Size(MIB, 64 * GIB),
            Is("\"256MiB\""),
            "Of one body; the rest travels at its client's pace.",
        ),
    ],
};

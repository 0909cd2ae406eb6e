//! Timeouts and limits.

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
            "From the first byte of a request to the end of its headers.",
        ),
        key("body_read", Time(10, HOUR), Is("\"30s\""), "Between two successive reads of a request's body."),
        key(
            "body_total",
            Time(10, DAY),
            Is("\"1h\""),
            "Longest total time that Suimon waits for a client within one request body.",
        ),
        key(
            "connect",
            Time(10, HOUR),
            Is("\"3s\""),
            "Connecting to a node: DNS lookup, TCP and TLS together.",
        ),
        key(
            "first_byte",
            Time(10, DAY),
            Is("\"1m\""),
            "From sending the last piece of a request to receiving the response headers.",
        ),
        key(
            "response_read",
            Time(10, DAY),
            Is("\"1m\""),
            "Between two successive reads of the application's response.",
        ),
        key(
            "body_write",
            Time(10, HOUR),
            Is("\"1m\""),
            "Between two successive writes of a response to a client that make progress.",
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
            "A WebSocket is closed on both sides after this long without data in either direction (pings count as data). A graceful shutdown leaves it open until timeouts.drain is over.",
        ),
        key("handshake", Time(10, HOUR), Is("\"10s\""), "TLS handshake with a client."),
        key(
            "drain",
            Time(0, DAY),
            Unset { means: "70 s; in Kubernetes 25 s, in another container 9 s", example: "\"60s\"" },
            "How long a graceful shutdown waits for requests and connections to finish. Left out, it ends before the gateway is killed: Kubernetes waits for 30 s, Docker for 10 s and systemd for 90 s, unless told otherwise (docs/restarts.md).",
        ),
        key(
            "disconnect_watch_after",
            Time(0, MINUTE),
            Is("\"50ms\""),
            "How long a request is in the application before Suimon starts to watch for its client's disconnect (while it waits: 10 ms at most). For shorter requests the watch is not worth its cost.",
        ),
        key(
            "h2_ping",
            Time(SECOND, HOUR),
            Is("\"20s\""),
            "Interval of HTTP/2 pings on connections with open streams, and timeout of the answer to a ping.",
        ),
    ],
};

pub(super) const LIMITS: Section = Section {
    path: "limits",
    form: Form::Table,
    doc: "Limits on connections, sizes and memory.",
    keys: &[
        key(
            "connections",
            Count(1, 1_000_000),
            Is("9000"),
            "Most client connections at once. When all are in use, a new connection displaces the least valuable one: first those without a request so far, then idle ones of clients without a session, then idle ones of admitted visitors. A connection on which an admitted visitor is being answered stays; if nothing can be displaced, new connections wait in the kernel's queue.",
        ),
        key(
            "head_bytes",
            Size(8 * KIB, MIB),
            Is("\"64KiB\""),
            "Most bytes of a request line and its headers; more gets a 431.",
        ),
        key("headers", Count(10, 1000), Is("100"), "Most header lines of a request; more get a 431."),
        key(
            "url_bytes",
            Size(256, 64 * KIB),
            Is("\"16KiB\""),
            "Most bytes of a request's path and query; more get a 414.",
        ),
        key(
            "body_bytes",
            Size(0, 1024 * GIB),
            Unset { means: "the application decides", example: "\"64MiB\"" },
            "Most bytes of a request's body; more get a 413.",
        ),
        key(
            "body_rate_min",
            Size(0, GIB),
            Is("500"),
            "Minimum mean rate of a client, bytes per second. Applies to a request body once the client has been waited for longer than `timeouts.body_read` (slower: 408), and to a response once it has been waited for longer than `timeouts.body_write` (slower: the connection is closed). 0: no minimum.",
        ),
        key(
            "slow_uploads",
            Count(1, 1_000_000),
            Is("512"),
            "Most requests, over all routes, that are in the application while Suimon waits for their clients in the middle of a body; they hold no slot meanwhile. One public address may have a quarter of them. Beyond that, the slowest upload of the address with the most is aborted; if other requests wait for the application because of such uploads, the slowest of all. gRPC calls are counted separately, up to the same number.",
        ),
        key(
            "request_buffer_bytes",
            Size(KIB, 16 * MIB),
            Is("\"64KiB\""),
            "Bytes of a request's body that are read before the request asks for a slot.",
        ),
        key(
            "response_buffer_bytes",
            Size(0, GIB),
            Is("\"1MiB\""),
            "Most bytes of one response buffered in memory for a slow client. The rest goes through a file (see [spool]); without one the application has to wait.",
        ),
        key(
            "buffered_bytes",
            Size(0, 64 * GIB),
            Is("\"256MiB\""),
            "Most bytes of all such buffers together, including request bodies that are read ahead.",
        ),
        key(
            "h2_streams",
            Count(1, 10_000),
            Is("128"),
            "Most concurrent HTTP/2 streams per client connection.",
        ),
        key(
            "session_cookies",
            Count(100, 10_000_000),
            Is("200000"),
            "Most application cookies that are remembered for admitted sessions; as many again by which a visitor has come back; and as many ended sessions, whose cookies and leases are no longer accepted.",
        ),
    ],
};

pub(super) const SPOOL: Section = Section {
    path: "spool",
    form: Form::Table,
    doc: "Disk buffering of bodies that clients send or receive slowly, so that they do not keep the application busy. What does not fit into memory is kept in unnamed temporary files.",
    keys: &[
        key(
            "directory",
            Path,
            Unset { means: "the system's directory for temporary files", example: "\"/var/tmp\"" },
            "Directory of these files. If none can be created there, a warning is logged at the start, and slow clients keep the application waiting.",
        ),
        key(
            "bytes_max",
            Size(0, 1024 * GIB),
            Is("\"4GiB\""),
            "Most bytes of all files together, and never more than half of the free space. Responses may use half of it; one public address a quarter of what requests or responses may use. 0: no files.",
        ),
        key(
            "body_bytes_max",
            Size(MIB, 64 * GIB),
            Is("\"256MiB\""),
            "Most bytes of one body; the rest is passed on at its client's speed.",
        ),
    ],
};

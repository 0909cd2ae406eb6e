//! What an operator sees and keeps: learned state, admin listener, recordings and logs.

use super::DefaultValue::{Is, Unset};
use super::{ENTRIES_MAX, Form, GIB, Section, key};
use crate::shape::Shape::{AddressOrOff, Count, Host, List, Path, Size, Text, Time};

pub(super) const LEARNED: Section = Section {
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
        "File that keeps it over a restart; written every minute. A file that is damaged, belongs to another application or was written by a newer version is renamed, and the gateway starts from scratch. \"none\": nothing is kept.",
    )],
};

pub(super) const ADMIN: Section = Section {
    path: "admin",
    form: Form::Table,
    doc: "The admin listener: /metrics, /api/state, /api/learned, /api/waiting-room, /healthz, /readyz. It has no authentication: keep it on an address that only operators can reach.",
    keys: &[
        key("listen", AddressOrOff, Is("\"127.0.0.1:8001\""), "Where it listens."),
        key(
            "hosts",
            List(&Host, ENTRIES_MAX),
            Is("[]"),
            "Host names it answers to, besides localhost and IP addresses. Requests with any other Host header are refused (protection against DNS rebinding).",
        ),
    ],
};

pub(super) const RECORD: Section = Section {
    path: "record",
    form: Form::Table,
    doc: "A recording of what happens to the gate, for `suimon sim --replay`. It holds times, routes and session numbers; no addresses, no cookies, no queries. See docs/recording.md.",
    keys: &[
        key(
            "file",
            Path,
            Unset { means: "nothing is recorded", example: "\"/var/lib/suimon/gate.rec\"" },
            "File to write, created with mode 0600. Full segments are renamed to FILE.000001 and so on. A file that is not a recording is never touched.",
        ),
        key(
            "bytes_max",
            Size(suimon_params::Recording::BYTES_MIN, 1024 * GIB),
            Is("\"1GiB\""),
            "Most bytes of all segments together; the oldest is deleted.",
        ),
    ],
};

pub(super) const SHARING: Section = Section {
    path: "sharing",
    form: Form::Table,
    doc: "Several gateways before one application: they share limits, what begins and the line through a Redis or Valkey server, which is not on the path of requests. Alone is the default. All need the same `lease.keys`. See docs/sharing.md.",
    keys: &[
        key(
            "engine",
            Text,
            Unset { means: "this gateway is alone", example: "\"redis://10.0.0.7:6379\"" },
            "The server: redis:// or unix://, with user, password and database if need be; rediss:// for TLS.",
        ),
        key(
            "group",
            Text,
            Is("\"suimon\""),
            "Name of the gateways that share: 1 to 64 letters, digits, \"-\", \"_\" or \".\". One group for each application.",
        ),
        key(
            "gateways",
            Count(1, suimon_params::SharingParams::GATEWAYS_MAX as u64),
            Is("2"),
            "How many gateways there usually are. Used only by one that has never reached the engine: it takes its limits divided by this.",
        ),
        key(
            "period",
            Time(50, 200),
            Is("\"100ms\""),
            "How often amounts are exchanged. A share that was not confirmed for three periods expires.",
        ),
    ],
};

pub(super) const LOG: Section = Section {
    path: "log",
    form: Form::Table,
    doc: "What is written to standard error.",
    keys: &[key(
        "filter",
        Text,
        Is("\"info\""),
        "error, warn, info, debug or trace; or per module, such as \"info,suimon_proxy=debug\". The environment variable SUIMON_LOG takes precedence.",
    )],
};

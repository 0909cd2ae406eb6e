//! What an operator sees and keeps: learned state, admin listener, recordings and logs.

use super::DefaultValue::{Is, Unset};
use super::{ENTRIES_MAX, Form, GIB, Section, key};
use crate::shape::Shape::{AddressOrOff, Host, List, Path, Size, Text};

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
        "File that it survives a restart in, written each minute. One that is damaged, of another application or of a newer version is set aside, and the gateway starts with nothing known. \"none\": it ends with the process.",
    )],
};

pub(super) const ADMIN: Section = Section {
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
            "The file being written, made with mode 0600; full ones are set aside beside it as FILE.000001 and so on. A file that is no recording is never touched.",
        ),
        key(
            "bytes_max",
            Size(suimon_params::Recording::BYTES_MIN, 1024 * GIB),
            Is("\"1GiB\""),
            "Of all these files together; the oldest is removed.",
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
        "error, warn, info, debug or trace; or by part, such as \"info,suimon_proxy=debug\". The environment variable SUIMON_LOG wins over it.",
    )],
};

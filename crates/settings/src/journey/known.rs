//! The keys of a journey file.

use crate::faults::Faults;
use crate::known::{KnownKeys, refuse_unknown};
use toml::Table;

const ON_FAILURE: &[&str] =
    &["retry_from", "retry_from_after_error", "retries_max", "pause_after_timeout", "pause_after_error"];
const ON_REFUSAL: &[&str] = &["retries_max", "wait_default", "wait_max"];
const IN_LINE: &[&str] = &["patience", "away", "farm", "forge"];
const FARM: &[&str] = &["share", "numbers", "jars", "every"];
const FORGE: &[&str] = &["share", "tickets", "every"];

/// All of them but those of the file itself.
pub(crate) const TABLES: &[KnownKeys] = &[
    KnownKeys { path: "arrivals", keys: &["closed", "open"] },
    KnownKeys {
        path: "arrivals.closed",
        keys: &["users", "start_over", "spacing", "sessions_each", "pause"],
    },
    KnownKeys { path: "arrivals.open", keys: &["rate_per_s", "phases", "spacing", "users_max"] },
    KnownKeys { path: "arrivals.open.phases[]", keys: &["for", "rate_per_s", "from_per_s", "to_per_s"] },
    KnownKeys {
        path: "visitor",
        keys: &["returning", "think", "patience", "leave", "on_failure", "on_refusal", "in_line"],
    },
    KnownKeys { path: "visitor.on_failure", keys: ON_FAILURE },
    KnownKeys { path: "visitor.on_refusal", keys: ON_REFUSAL },
    KnownKeys { path: "visitor.in_line", keys: IN_LINE },
    KnownKeys { path: "visitor.in_line.farm", keys: FARM },
    KnownKeys { path: "visitor.in_line.forge", keys: FORGE },
    KnownKeys {
        path: "journey[]",
        keys: &[
            "name",
            "weight",
            "users",
            "think",
            "patience",
            "leave",
            "on_failure",
            "on_refusal",
            "in_line",
            "steps",
        ],
    },
    KnownKeys { path: "journey[].on_failure", keys: ON_FAILURE },
    KnownKeys { path: "journey[].on_refusal", keys: ON_REFUSAL },
    KnownKeys { path: "journey[].in_line", keys: IN_LINE },
    KnownKeys { path: "journey[].in_line.farm", keys: FARM },
    KnownKeys { path: "journey[].in_line.forge", keys: FORGE },
    KnownKeys {
        path: "journey[].steps[]",
        keys: &[
            "name",
            "method",
            "path",
            "form",
            "body",
            "content_type",
            "headers",
            "expect",
            "capture",
            "think",
            "patience",
            "leave",
        ],
    },
    KnownKeys { path: "journey[].steps[].form", keys: &["*"] },
    KnownKeys { path: "journey[].steps[].headers", keys: &["*"] },
    KnownKeys { path: "journey[].steps[].expect", keys: &["status", "text"] },
    KnownKeys { path: "journey[].steps[].capture", keys: &["*"] },
    KnownKeys { path: "journey[].steps[].capture.*", keys: &["input", "header", "between"] },
];

/// The keys of the file itself.
pub(crate) const FILE: &[&str] = &["seed", "arrivals", "visitor", "journey"];

/// Notes every key of `table`, a file that may hold `file` besides journeys' tables, that is not
/// known.
pub(crate) fn refuse(file: &KnownKeys, table: &Table, faults: &mut Faults) {
    refuse_with(file, &[], table, faults);
}

/// The same for a file that may hold further tables.
pub(crate) fn refuse_with(file: &KnownKeys, tables: &[KnownKeys], table: &Table, faults: &mut Faults) {
    refuse_unknown(table, &[std::slice::from_ref(file), TABLES, tables].concat(), faults);
}

//! The keys of a journey file.

use crate::faults::Faults;
use crate::known::{Known, refuse_unknown};
use toml::Table;

const ON_FAILURE: &[&str] =
    &["retry_from", "retry_from_after_error", "retries_max", "pause_after_timeout", "pause_after_error"];
const ON_REFUSAL: &[&str] = &["retries_max", "wait_default", "wait_max"];
const IN_LINE: &[&str] = &["patience", "away", "farm", "forge"];
const FARM: &[&str] = &["share", "numbers", "jars", "every"];
const FORGE: &[&str] = &["share", "tickets", "every"];

/// All of them but those of the file itself.
pub(crate) const TABLES: &[Known] = &[
    Known { path: "arrivals", keys: &["closed", "open"] },
    Known { path: "arrivals.closed", keys: &["users", "start_over", "spacing", "sessions_each", "pause"] },
    Known { path: "arrivals.open", keys: &["rate_per_s", "phases", "spacing", "users_max"] },
    Known { path: "arrivals.open.phases[]", keys: &["for", "rate_per_s", "from_per_s", "to_per_s"] },
    Known {
        path: "visitor",
        keys: &["returning", "think", "patience", "leave", "on_failure", "on_refusal", "in_line"],
    },
    Known { path: "visitor.on_failure", keys: ON_FAILURE },
    Known { path: "visitor.on_refusal", keys: ON_REFUSAL },
    Known { path: "visitor.in_line", keys: IN_LINE },
    Known { path: "visitor.in_line.farm", keys: FARM },
    Known { path: "visitor.in_line.forge", keys: FORGE },
    Known {
        path: "journey[]",
        keys: &[
            "name",
            "weight",
            "think",
            "patience",
            "leave",
            "on_failure",
            "on_refusal",
            "in_line",
            "steps",
        ],
    },
    Known { path: "journey[].on_failure", keys: ON_FAILURE },
    Known { path: "journey[].on_refusal", keys: ON_REFUSAL },
    Known { path: "journey[].in_line", keys: IN_LINE },
    Known { path: "journey[].in_line.farm", keys: FARM },
    Known { path: "journey[].in_line.forge", keys: FORGE },
    Known {
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
    Known { path: "journey[].steps[].form", keys: &["*"] },
    Known { path: "journey[].steps[].headers", keys: &["*"] },
    Known { path: "journey[].steps[].expect", keys: &["status", "text"] },
    Known { path: "journey[].steps[].capture", keys: &["*"] },
    Known { path: "journey[].steps[].capture.*", keys: &["input", "header", "between"] },
];

/// The keys of the file itself.
pub(crate) const FILE: &[&str] = &["seed", "arrivals", "visitor", "journey"];

/// Notes every key of `table`, a file that may hold `file` besides journeys' tables, that is not known.
pub(crate) fn refuse(file: &Known, table: &Table, faults: &mut Faults) {
    refuse_with(file, &[], table, faults);
}

/// The same for a file that may hold further tables.
pub(crate) fn refuse_with(file: &Known, tables: &[Known], table: &Table, faults: &mut Faults) {
    refuse_unknown(table, &[std::slice::from_ref(file), TABLES, tables].concat(), faults);
}

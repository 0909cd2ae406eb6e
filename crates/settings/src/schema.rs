//! Every setting there is: name, form, range, default and meaning in one table, whose sections
//! stand by subject in the files below.
//!
//! The reader, the example file and `docs/settings.md` are all made from it; a test compares its
//! defaults with those of the crates.

mod bounds;
mod gate;
mod kubernetes;
mod listen;
mod nodes;
mod operation;
mod pool;
mod site;
mod upstream;
mod waiting_room;

use crate::shape::Shape;
use toml::Table;

/// A table of the file.
pub(crate) struct Section {
    /// Its name as it stands between the brackets.
    pub(crate) path: &'static str,
    pub(crate) form: Form,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
}

/// How often a section stands in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Once; left out, every key has its default.
    Table,
    /// Once; left out, what it describes is not there.
    Optional,
    /// As `[[section]]`, up to this many times.
    Repeated(usize),
}

/// One setting.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) default: DefaultValue,
    pub(crate) doc: &'static str,
}

impl Key {
    /// Returns what it means, with what each of its words does.
    pub(crate) fn meaning(&self) -> String {
        let words = match self.shape {
            Shape::Word(choices) | Shape::WordOrCount(choices, ..) => choices,
            _ => &[],
        };
        let words = words.iter().map(|choice| format!(" {}: {}.", choice.word, choice.means));
        words.fold(self.doc.to_string(), |meaning, word| meaning + &word)
    }
}

/// What holds where a setting is left out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DefaultValue {
    /// This value, as it would be written in the file.
    Is(&'static str),
    /// No value; what that means, and an example of one.
    Unset { means: &'static str, example: &'static str },
    /// It must be there; an example.
    Required { example: &'static str },
}

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The most routes declared beforehand.
const ROUTES_MAX: usize = 1000;
/// The most services, and routes of one.
const SERVICES_MAX: usize = 32;
const SERVICE_ROUTES_MAX: usize = 64;
/// The most entries of any other list.
const ENTRIES_MAX: usize = 256;

const fn key(name: &'static str, shape: Shape, default: DefaultValue, doc: &'static str) -> Key {
    Key { name, shape, default, doc }
}

/// All of them, in the order in which they are shown.
pub(crate) const SECTIONS: &[Section] = &[
    listen::LISTEN,
    listen::LISTEN_TLS,
    listen::HTTPS,
    listen::RESPONSE,
    upstream::UPSTREAM,
    upstream::UPSTREAM_HEALTH,
    upstream::UPSTREAM_EJECTION,
    upstream::UPSTREAM_LOAD_REPORTS,
    upstream::UPSTREAM_TLS,
    upstream::UPSTREAM_FASTCGI,
    pool::POOL,
    nodes::NODES,
    kubernetes::NODES_KUBERNETES,
    kubernetes::NODES_KEDA,
    gate::SESSION,
    gate::ROUTE,
    gate::DISCOVERY,
    gate::SERVICE,
    gate::DEGRADATION,
    gate::GATE,
    gate::GATE_PAPER_ROUTE,
    gate::GATE_PAPER_SESSION,
    gate::LEASE,
    waiting_room::WAITING_ROOM,
    operation::LEARNED,
    bounds::TIMEOUTS,
    bounds::LIMITS,
    bounds::SPOOL,
    operation::ADMIN,
    operation::ADMIN_TLS,
    operation::RECORD,
    operation::SHARING,
    operation::LOG,
    operation::TELEMETRY,
    site::SITE,
];

/// What takes effect at the next start only, since it is bound, opened or counted on from the start:
/// sections and single keys. All else a running gateway adopts when it is told to read its file
/// again.
const TAKES_RESTART: &[&str] = &[
    "listen.http",
    "listen.backlog",
    "listen.tls",
    "upstream.nodes",
    "upstream.discover",
    "upstream.discover_every",
    "upstream.nodes_file",
    "upstream.drain_within",
    "upstream.protocol",
    "upstream.balance",
    "upstream.affinity",
    "upstream.affinity_idle",
    "upstream.slow_start",
    "upstream.retry_share",
    "upstream.pool_idle_max",
    "upstream.pool_idle_age",
    "upstream.h2_connections_max",
    "upstream.h2_streams_max",
    "upstream.head_bytes_max",
    "upstream.health",
    "upstream.ejection",
    "upstream.load_reports",
    "upstream.tls",
    "upstream.fastcgi",
    "pool",
    "nodes",
    "nodes.kubernetes",
    "nodes.keda",
    "session.kind",
    "session.waiting_room",
    "session.app_cookie",
    "route.match",
    "discovery.routes_max",
    "service.name",
    "service.routes",
    "gate.seed",
    "gate.detect_app_cookies",
    "lease.keys",
    "lease.life",
    "waiting_room.turn_ttl",
    "waiting_room.position_ttl",
    "waiting_room.tickets_burst",
    "waiting_room.tickets_per_second",
    "waiting_room.tickets_for_opening",
    "waiting_room.pass_page",
    "waiting_room.pass_for",
    "waiting_room.state",
    "learned",
    "timeouts.connect",
    "timeouts.first_byte",
    "timeouts.response_read",
    "limits.connections",
    "limits.slow_uploads",
    "limits.buffered_bytes",
    "limits.session_cookies",
    "spool",
    "admin",
    "admin.tls",
    "record",
    "sharing",
    "log.format",
    "log.access",
    "log.access_file",
    "log.access_query",
    "log.request_id",
    "telemetry",
    "site.name",
    "site.cert",
    "site.key",
];

/// Returns whether a setting takes effect at the next start only.
pub(crate) fn takes_restart(section: &str, key: &str) -> bool {
    TAKES_RESTART.iter().any(|path| *path == section || *path == format!("{section}.{key}"))
}

/// The section that has all others below it, too.
pub(crate) const SITE: &str = site::SITE.path;

/// Returns whether a key of an entry of a section is a section of its own: those of a site are.
pub(crate) fn is_nested(section: &str, key: &str) -> bool {
    section == SITE && self::section(key).is_some()
}

/// Returns a site's own settings: all but what says which site it is.
pub(crate) fn own_table(site: &Table) -> Table {
    let nested = site.iter().filter(|(key, _)| is_nested(SITE, key));
    nested.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Returns the section with this path.
pub(crate) fn section(path: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_takes_a_restart_is_a_setting() {
        for path in TAKES_RESTART {
            let is_key = |section: &Section| {
                section.keys.iter().any(|key| format!("{}.{}", section.path, key.name) == *path)
            };
            assert!(section(path).is_some() || SECTIONS.iter().any(is_key), "{path}");
        }
    }
}

//! Finds out what a TOML file for Suimon contains, by its tables.

use std::path::Path;

/// What a file contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileKind {
    /// Settings of `suimon serve`. Also a file that cannot be read: the reader of settings then
    /// reports why.
    Settings,
    /// Journeys of a crowd.
    Journeys,
    /// A scenario of the simulator: visitors, and the application they visit.
    Scenario,
}

/// Only a scenario has one of these. A `[server]` alone does not make a scenario: other programs
/// use that name for their listener.
const OF_SCENARIOS: &[&str] = &["base", "question", "change", "expect", "seeds", "warm_up", "measure"];

impl FileKind {
    /// Returns what the file at `path` seems to contain.
    pub(crate) fn of(path: &Path) -> FileKind {
        suimon_settings::text_of(path).map_or(FileKind::Settings, |text| FileKind::of_text(&text))
    }

    /// Returns what `text` seems to contain.
    pub(crate) fn of_text(text: &str) -> FileKind {
        let table = text.parse::<toml::Table>().ok();
        table.map_or(FileKind::Settings, |table| FileKind::of_table(&table))
    }

    fn of_table(table: &toml::Table) -> FileKind {
        let has = |key: &&str| table.contains_key(*key);
        let visitors_and_gate = has(&"journey") && (has(&"gate") || has(&"server"));
        if OF_SCENARIOS.iter().any(has) || visitors_and_gate {
            FileKind::Scenario
        } else if has(&"journey") {
            FileKind::Journeys
        } else {
            FileKind::Settings
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_its_tables_say() {
        for (text, kind) in [
            ("", FileKind::Settings),
            ("[gate]\ncores = 2", FileKind::Settings),
            ("[[journey]]\nname = \"x\"", FileKind::Journeys),
            ("[[journey]]\nname = \"x\"\n[gate]\ncores = 2", FileKind::Scenario),
            ("[[journey]]\nname = \"x\"\n[expect]\ncompleted = 1", FileKind::Scenario),
            ("[[change]]\nat = \"1s\"", FileKind::Scenario),
            ("base = \"_shop.toml\"", FileKind::Scenario),
        ] {
            assert_eq!(FileKind::of_table(&text.parse().unwrap()), kind, "{text}");
        }
    }
}

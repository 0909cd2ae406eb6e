//! What a TOML file of ours holds, by the tables in it.

use std::path::Path;

/// What a file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileKind {
    /// What `suimon serve` is told; also whatever cannot be read, so that its reader says why.
    Settings,
    /// What a crowd is told.
    Journeys,
    /// What a simulator is told: visitors, and what they are played against.
    Scenario,
}

/// Only a scenario has one of these. A `[server]` alone is what other programs call where they
/// listen, and none.
const OF_SCENARIOS: &[&str] = &["base", "question", "change", "expect", "seeds", "warm_up", "measure"];

impl FileKind {
    /// Returns what the file at `path` seems to hold.
    pub(crate) fn of(path: &Path) -> FileKind {
        suimon_settings::text_of(path).map_or(FileKind::Settings, |text| FileKind::of_text(&text))
    }

    /// Returns what `text` seems to hold.
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

//! The files written from the schema: the commented example, and the table of all settings.

use crate::schema::{DefaultValue, Form, Key, SECTIONS, Section, takes_restart};
use std::fmt::Write;

/// What is said of a setting that a running gateway does not adopt.
const AT_START: &str = " Takes effect at the next start.";

/// How wide prose in the example file may be.
const WIDTH: usize = 100;

const EXAMPLE_HEAD: &str = "\
# Suimon's settings: every one there is, with its default. Written by `cargo xtask docs`; do not edit.
#
# All of it is optional. Keep what you change and delete the rest: `suimon check FILE` tells everything
# that is wrong with a file, and touches nothing. A key behind a # is not set; take the # away to set it.
";

const DOCUMENT_HEAD: &str = "\
# Settings

Written from the schema by `cargo xtask docs`; do not edit. `suimon.example.toml` holds the same as a file to start from.

Every setting is optional; `suimon serve --to URL` works with none. Unknown keys are refused. `suimon check FILE` reports all faults
together, each with its key, the value seen and what is allowed, and opens no port. Flags of `suimon serve` win over the file.

On SIGHUP `suimon serve --config FILE` reads the file again, checks it whole, and adopts all of it or
nothing: what is wrong, or takes a restart, is logged and nothing changes. Nobody loses a connection, a
session or a position in line by it, and nothing that was learned is forgotten. Settings that say \"takes
effect at the next start\" are those that take a restart.

Times are written `\"250ms\"`, `\"30s\"`, `\"5m\"`, `\"1h\"`; sizes as bytes or `\"64KiB\"`, `\"1MiB\"`, `\"1GiB\"`. Faults count repeated
sections from 0: `session[0]` is the first `[[session]]`.
";

/// Returns `suimon.example.toml`: every key with its meaning, range and default.
pub fn example_file() -> String {
    let mut text = EXAMPLE_HEAD.to_string();
    for section in SECTIONS {
        text.push('\n');
        comment(&mut text, &about_section(section));
        let off = if section.form == Form::Table { "" } else { "#" };
        let _ = writeln!(text, "{off}{}", heading(section));
        for key in section.keys {
            text.push('\n');
            comment(&mut text, &format!("{} ({})", about(section, key), range(key)));
            match key.default {
                DefaultValue::Is(literal) => {
                    let _ = writeln!(text, "{off}{} = {literal}", key.name);
                }
                DefaultValue::Unset { means, example } => {
                    comment(&mut text, &format!("Left out: {means}."));
                    let _ = writeln!(text, "#{} = {example}", key.name);
                }
                DefaultValue::Required { example } => {
                    let _ = writeln!(text, "#{} = {example}", key.name);
                }
            }
        }
    }
    text
}

/// Returns `docs/settings.md`.
pub fn settings_document() -> String {
    let mut text = DOCUMENT_HEAD.to_string();
    for section in SECTIONS {
        let _ = write!(text, "\n## `{}`\n\n{}\n\n", heading(section), cell(&about_section(section)));
        text.push_str("| key | default | allowed | meaning |\n|---|---|---|---|\n");
        for key in section.keys {
            let default = match key.default {
                DefaultValue::Is(literal) => format!("`{literal}`"),
                DefaultValue::Unset { means, .. } => means.to_string(),
                DefaultValue::Required { .. } => "must be given".to_string(),
            };
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {} |",
                key.name,
                cell(&default),
                cell(&key.shape.summary()),
                cell(&about(section, key))
            );
        }
    }
    text
}

fn about_section(section: &Section) -> String {
    let at_start = if takes_restart(section.path, "") { AT_START } else { "" };
    format!("{}{at_start}", section.doc)
}

/// Said once where it is so of the whole section.
fn about(section: &Section, key: &Key) -> String {
    let is_own = takes_restart(section.path, key.name) && !takes_restart(section.path, "");
    format!("{}{}", key.meaning(), if is_own { AT_START } else { "" })
}

fn heading(section: &Section) -> String {
    match section.form {
        Form::Table | Form::Optional => format!("[{}]", section.path),
        Form::Repeated(_) => format!("[[{}]]", section.path),
    }
}

fn range(key: &Key) -> String {
    key.shape.summary().replace('`', "")
}

/// Writes prose as comment lines of at most [`WIDTH`] characters.
fn comment(text: &mut String, prose: &str) {
    let mut line = String::from("#");
    for word in prose.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

/// Returns text that keeps within a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    #[test]
    fn the_example_file_says_nothing_but_the_defaults() {
        let example = Settings::parse("suimon.example.toml", &example_file()).unwrap();
        assert_eq!(format!("{example:?}"), format!("{:?}", Settings::default()));
    }

    /// What is said of nodes, and so not where workers of a pool take all requests.
    const OF_NODES: &[&str] = &["affinity", "nodes_file"];

    #[test]
    fn the_example_file_is_right_with_everything_switched_on() {
        // Workers of a pool that takes everything are no nodes, so one or the other is left out.
        for left_out in ["pool", "nodes"] {
            let mut text = String::new();
            let mut section = "";
            for line in example_file().lines() {
                let bare = line.strip_prefix('#').unwrap_or(line);
                let key = bare.split(' ').next().unwrap_or("");
                let is_key =
                    SECTIONS.iter().any(|section| section.keys.iter().any(|known| known.name == key))
                        && bare.starts_with(&format!("{key} = "));
                let headed = SECTIONS.iter().find(|section| bare == heading(section));
                section = headed.map_or(section, |section| section.path);
                let is_of_nodes = section == "upstream" && OF_NODES.contains(&key);
                let is_left_out = section.starts_with(left_out) || left_out == "nodes" && is_of_nodes;
                let is_on = (is_key || headed.is_some()) && !is_left_out;
                let _ = writeln!(text, "{}", if is_on { bare } else { line });
            }
            let settings = Settings::parse("test.toml", &text).unwrap();
            assert!(settings.proxy.listen.tls.is_some());
            assert_eq!(settings.proxy.sessions.kinds[0].name, "shopping");
            let routes = settings.proxy.routes.declared;
            let names: Vec<_> = routes.iter().map(suimon_params::DeclaredRoute::name).collect();
            assert_eq!(names, ["GET /search", "GET /quote"], "the second by its service");
        }
    }

    #[test]
    fn both_documents_name_every_key() {
        let (example, document) = (example_file(), settings_document());
        for section in SECTIONS {
            assert!(example.contains(&heading(section)) && document.contains(&heading(section)));
            for key in section.keys {
                assert!(example.contains(&format!("{} = ", key.name)), "{}", key.name);
                assert!(document.contains(&format!("| `{}` |", key.name)), "{}", key.name);
            }
        }
    }
}

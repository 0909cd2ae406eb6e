//! The files that are generated: from the settings' schema, from the tables of reasons and metrics,
//! and the table of events inside `docs/recording.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// What stands above the reasons.
const REASONS_HEAD: &str = "\
# Reasons

Written from `crates/model/src/record.rs` by `cargo xtask docs`; do not edit.

Every decision and every refusal has a reason. Its code never changes; it stands in `/api/state`
(`decisions[].reason`, `refusals[].reason`), in `suimon_refusals_total{reason}`, in recordings and,
of a refusal, in the response: `Proxy-Status`, `Server-Timing` and the problem's `reason`.
[why.md](why.md) says where to look first. A request that reached no node, or no good one, has no
reason but an error; [why.md](why.md#the-response) lists these.

| code | meaning |
|---|---|
";

/// The file with the table of events, ...
const RECORDING: &str = "docs/recording.md";
/// ... and the lines between which it stands.
const TAGS_BEGIN: &str =
    "<!-- Written from crates/record/src/event.rs by `cargo xtask docs`; do not edit. -->\n";
const TAGS_END: &str = "<!-- End of what is written. -->\n";

/// Returns each generated file, relative to the workspace, and what belongs in it.
///
/// # Errors
/// If the file with the table of events cannot be read, or has no place for it.
fn files(root: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let recording = fs::read_to_string(root.join(RECORDING))
        .map_err(|error| format!("{RECORDING}: cannot be read: {error}"))?;
    Ok(vec![
        ("suimon.example.toml", suimon_settings::example_file()),
        ("docs/settings.md", suimon_settings::settings_document()),
        ("docs/reasons.md", reasons()),
        ("docs/metrics.md", suimon_admin::metrics_document()),
        ("crates/admin/openapi.json", suimon_admin::openapi_document()),
        (RECORDING, with_tags(&recording)?),
        (crate::header::FILE, crate::header::text(&crate::root())?),
    ])
}

fn reasons() -> String {
    let mut text = REASONS_HEAD.to_owned();
    for reason in suimon_model::Reason::ALL {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "| `{}` | {} |", reason.code(), reason.explain());
    }
    text
}

/// Returns the text with the table of events between its two lines.
fn with_tags(text: &str) -> Result<String, String> {
    let place = || {
        let (before, rest) = text.split_once(TAGS_BEGIN)?;
        Some((before, rest.split_once(TAGS_END)?.1))
    };
    let (before, after) = place()
        .ok_or_else(|| format!("{RECORDING}: lacks the lines between which the table of events stands"))?;
    let mut table =
        format!("Events of version {}:\n\n| tag | event | fields |\n|---|---|---|\n", suimon_record::VERSION);
    for tag in suimon_record::TAGS {
        let numbers = if tag.first == tag.last {
            tag.first.to_string()
        } else {
            format!("{} to {}", tag.first, tag.last)
        };
        let _ = writeln!(table, "| {numbers} | {} | {} |", tag.event, tag.fields);
    }
    Ok(format!("{before}{TAGS_BEGIN}\n{table}\n{TAGS_END}{after}"))
}

/// Writes the generated files and says which of them changed.
pub(crate) fn write(root: &Path) -> Result<Vec<String>, String> {
    for (name, wanted) in files(root)? {
        let path = root.join(name);
        if fs::read_to_string(&path).is_ok_and(|found| found == wanted) {
            println!("{name}: unchanged");
            continue;
        }
        fs::write(&path, wanted).map_err(|error| format!("{name}: cannot be written: {error}"))?;
        println!("{name}: written");
    }
    Ok(Vec::new())
}

/// Returns a line for each generated file that is not what would be written now.
pub(crate) fn compare(root: &Path) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for (name, wanted) in files(root)? {
        let found = fs::read_to_string(root.join(name))
            .map_err(|error| format!("{name}: cannot be read: {error}"))?;
        if found == wanted {
            continue;
        }
        let line = found.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count() + 1;
        faults.push(format!("{name}:{line}: differs from the code; write it anew with `cargo xtask docs`"));
    }
    if faults.is_empty() {
        println!("generated documents are those of the code");
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_documents_are_those_of_the_code() {
        assert_eq!(compare(&crate::root()), Ok(Vec::new()));
    }

    #[test]
    fn a_document_that_was_edited_by_hand_is_named_with_its_line() {
        let folder = std::env::temp_dir().join(format!("suimon-xtask-docs-{}", std::process::id()));
        ["docs", "crates/admin", "crates/ffi/include"]
            .iter()
            .for_each(|inner| fs::create_dir_all(folder.join(inner)).unwrap());
        let recording = fs::read_to_string(crate::root().join(RECORDING)).unwrap();
        fs::write(folder.join(RECORDING), recording).unwrap();
        write(&folder).unwrap();
        assert_eq!(compare(&folder), Ok(Vec::new()));

        let path = folder.join("docs/settings.md");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen('\n', "\nby hand\n", 1)).unwrap();
        let faults = compare(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("docs/settings.md:2:"), "{faults:?}");
    }

    #[test]
    fn what_stands_around_the_table_of_events_stays() {
        let around = format!("before\n{TAGS_BEGIN}stale\n{TAGS_END}after\n");
        let text = with_tags(&around).unwrap();
        assert!(text.starts_with("before\n") && text.ends_with("after\n") && !text.contains("stale"));
        assert!(text.contains("| 0 | timeout"), "{text}");
        assert_eq!(with_tags(&text), Ok(text.clone()));
        assert!(with_tags("no place").is_err());
    }
}

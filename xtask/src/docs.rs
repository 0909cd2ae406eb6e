//! The files generated from the settings' schema.

use std::fs;
use std::path::Path;

/// Each generated file, relative to the workspace, and what belongs in it.
fn files() -> [(&'static str, String); 2] {
    [
        ("suimon.example.toml", suimon_settings::example_file()),
        ("docs/settings.md", suimon_settings::settings_document()),
    ]
}

/// Writes the generated files and says which of them changed.
pub(crate) fn write(root: &Path) -> Result<Vec<String>, String> {
    for (name, wanted) in files() {
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
    for (name, wanted) in files() {
        let found = fs::read_to_string(root.join(name))
            .map_err(|error| format!("{name}: cannot be read: {error}"))?;
        if found == wanted {
            continue;
        }
        let line = found.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count() + 1;
        faults.push(format!("{name}:{line}: differs from the schema; write it anew with `cargo xtask docs`"));
    }
    if faults.is_empty() {
        println!("generated documents are those of the schema");
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_documents_are_those_of_the_schema() {
        assert_eq!(compare(&crate::root()), Ok(Vec::new()));
    }

    #[test]
    fn a_document_that_was_edited_by_hand_is_named_with_its_line() {
        let folder = std::env::temp_dir().join(format!("suimon-xtask-docs-{}", std::process::id()));
        fs::create_dir_all(folder.join("docs")).unwrap();
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
}

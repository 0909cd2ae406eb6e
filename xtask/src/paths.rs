//! What the documents point to is there: every file they name, every link and its heading.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose files nobody wrote.
const NOT_OURS: &[&str] = &["target", ".git", "node_modules"];
/// Endings by which a word between backticks is taken for a file's name.
const ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".json", ".svg", ".png", ".sh", ".html"];

/// Returns every file that a document names and every link it has that leads nowhere.
///
/// # Errors
/// If a folder or a document cannot be read.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    walk(root, root, &mut files)?;
    let mut faults = Vec::new();
    for document in files.iter().filter(|file| is_document(file)) {
        let text = fs::read_to_string(root.join(document))
            .map_err(|error| format!("{document}: cannot be read: {error}"))?;
        for name in named(&text) {
            let end = format!("/{name}");
            if !files.iter().any(|file| *file == name || file.ends_with(&end)) {
                faults.push(format!("{document}: there is no file {name}"));
            }
        }
        for link in links(&text) {
            if let Some(fault) = leads_nowhere(root, document, &text, &link) {
                faults.push(format!("{document}: the link {link} leads nowhere: {fault}"));
            }
        }
    }
    Ok(faults)
}

/// The documents for people, and not what an experiment's run has written.
fn is_document(file: &str) -> bool {
    let is_top = !file.contains('/');
    file.ends_with(".md") && (is_top || file.starts_with("docs/") || file.ends_with("/README.md"))
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<String>) -> Result<(), String> {
    let failed = |error| format!("{}: cannot be read: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), entry.file_name());
        if NOT_OURS.iter().any(|other| name == **other) {
            continue;
        }
        if entry.file_type().map_err(failed)?.is_dir() {
            walk(root, &path, files)?;
        } else if let Ok(inside) = path.strip_prefix(root) {
            files.push(inside.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// Returns the words between backticks, outside of blocks of code, that are names of files of ours:
/// with a folder before them, and without what stands for several.
fn named(text: &str) -> Vec<String> {
    let words = outside_of_blocks(text).into_iter().flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_file = |word: &&str| {
        let is_plain = word.chars().all(|it| it.is_ascii_alphanumeric() || "/._-".contains(it));
        is_plain
            && word.contains('/')
            && !word.starts_with(['/', '.'])
            && ENDINGS.iter().any(|ending| word.ends_with(ending))
            // A place to be filled in, such as `languages/TAG.json`.
            && !word.split(['/', '.']).any(|part| part.len() > 1 && part.chars().all(|it| it.is_ascii_uppercase()) && part != "README" && part != "CHANGELOG")
    };
    words.filter(is_file).map(str::to_owned).collect()
}

/// Returns where the links of a document lead, those to other sites left out.
fn links(text: &str) -> Vec<String> {
    let targets = outside_of_blocks(text)
        .into_iter()
        .flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(to, _)| to)));
    targets.filter(|to| !to.contains("://") && !to.starts_with("mailto:")).map(str::to_owned).collect()
}

fn leads_nowhere(root: &Path, document: &str, text: &str, link: &str) -> Option<String> {
    let (path, heading) = link.split_once('#').map_or((link, None), |(path, heading)| (path, Some(heading)));
    let target: PathBuf = match path {
        "" => root.join(document),
        path => root.join(document).parent().unwrap_or(root).join(path),
    };
    if !target.exists() {
        return Some(format!("{path} is not there"));
    }
    let heading = heading?;
    let text = if path.is_empty() { text.to_owned() } else { fs::read_to_string(target).ok()? };
    let is_there = outside_of_blocks(&text)
        .into_iter()
        .any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == heading);
    (!is_there).then(|| format!("no heading is #{heading}"))
}

/// Returns the anchor that a heading gets: letters and digits, small, with `-` for each space.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
    kept.flat_map(char::to_lowercase).map(|it| if it == ' ' { '-' } else { it }).collect()
}

fn outside_of_blocks(text: &str) -> Vec<&str> {
    let mut is_block = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_document_names_are_found_and_places_to_fill_in_are_not() {
        let text = "`crates/gate/src/gate.rs`, `pipeline/pass.rs`, `gate.rs`, `languages/TAG.json`, `/etc/a.toml`\n```\n`a/b.rs`\n```\n`docs/laws/*.md`";
        assert_eq!(named(text), ["crates/gate/src/gate.rs", "pipeline/pass.rs"]);
    }

    #[test]
    fn links_and_their_headings_are_found() {
        assert_eq!(links("[a](docs/a.md#b-c) and [d](https://e.example/) [f](#g)"), ["docs/a.md#b-c", "#g"]);
        assert_eq!(anchor(" `[listen.tls]`"), "listentls");
        assert_eq!(anchor(" How turns come"), "how-turns-come");
    }

    #[test]
    fn a_document_that_points_nowhere_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        at("README.md", "# One\n`src/gone.rs` [a](#one) [b](#two) [c](OTHER.md) [d](NONE.md)\n");
        at("OTHER.md", "");
        assert_eq!(
            check(folder.path()).unwrap(),
            [
                "README.md: there is no file src/gone.rs",
                "README.md: the link #two leads nowhere: no heading is #two",
                "README.md: the link NONE.md leads nowhere: NONE.md is not there",
            ]
        );
    }
}

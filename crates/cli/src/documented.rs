//! Every `suimon` command in the documents is one that the command line takes, and the settings
//! in the guides are settings.

use crate::args::Cli;
use clap::{CommandFactory, Parser};
use std::fs;
use std::path::{Path, PathBuf};
use suimon_settings::{Fault, Settings};

/// What is said of files and folders that are only on the reader's machine.
const NOT_HERE: [&str; 2] = ["a file that can be read", "a folder of this machine"];

#[test]
fn every_command_in_the_documents_is_one() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for file in documents() {
        let text = fs::read_to_string(&file).unwrap();
        for line in shell_lines(&text) {
            let words = words(line);
            let Some(at) = words.iter().position(|word| word == "suimon") else { continue };
            // `cargo install …` and the like name it as something else.
            if at > 0 && !words[..at].iter().all(|word| word.contains('=') || word == "sudo") {
                continue;
            }
            count += 1;
            if let Err(error) = Cli::try_parse_from(&words[at..])
                && error.use_stderr()
            {
                wrong.push(format!("{}: {line}\n{error}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 40, "only {count} commands were found: are the documents where they were?");
    Cli::command().debug_assert();
}

#[test]
fn the_settings_in_the_guides_are_settings() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for file in documents() {
        let name = file.display().to_string();
        if !name.contains("docs/guides/") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for block in blocks(&text, "toml") {
            count += 1;
            if let Err(faults) = Settings::of_file(&name, block) {
                wrong.extend(
                    faults
                        .iter()
                        .filter(|fault| !is_elsewhere(fault))
                        .map(|fault| format!("{name}: {fault}\n{block}")),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 10, "only {count} blocks of settings were found: are the guides where they were?");
}

/// Returns whether a fault is that a named file or folder is not on this machine.
fn is_elsewhere(fault: &Fault) -> bool {
    match fault {
        Fault::At { fault, .. } => is_elsewhere(fault),
        Fault::Value { allowed, .. } => NOT_HERE.iter().any(|said| allowed.starts_with(said)),
        _ => false,
    }
}

/// Returns the files that a user reads.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md"), root.join("deploy/README.md")];
    for folder in ["docs", "docs/guides"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            files.push(entry.unwrap().path());
        }
    }
    files.retain(|file| file.extension().is_some_and(|end| end == "md"));
    files.sort();
    files
}

/// Returns the lines of all blocks marked as `sh`.
fn shell_lines(text: &str) -> impl Iterator<Item = &str> {
    blocks(text, "sh").flat_map(str::lines)
}

/// Returns all blocks marked as of `language`.
fn blocks<'a>(text: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    let mark = format!("```{language}\n");
    let all: Vec<&str> =
        text.split(mark.as_str()).skip(1).filter_map(|block| block.split("```").next()).collect();
    all.into_iter()
}

/// Returns the words of a line's first command, as a shell splits them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '&' | ';') => {
                // `2>file`: the number is no word.
                word = word.filter(|word| !(letter == '>' && word.parse::<u8>().is_ok()));
                break;
            }
            (None, '#') if word.is_none() => break,
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

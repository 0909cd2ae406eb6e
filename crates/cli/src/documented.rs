//! Every `suimon` command in the documents is one that the command line takes.

use crate::args::Cli;
use clap::{CommandFactory, Parser};
use std::fs;
use std::path::{Path, PathBuf};

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

/// Returns the files that a user reads.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md"), root.join("deploy/README.md")];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        files.push(entry.unwrap().path());
    }
    files.retain(|file| file.extension().is_some_and(|end| end == "md"));
    files.sort();
    files
}

/// Returns the lines of all blocks marked as `sh`.
fn shell_lines(text: &str) -> impl Iterator<Item = &str> {
    let blocks = text.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
    blocks.flat_map(str::lines)
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

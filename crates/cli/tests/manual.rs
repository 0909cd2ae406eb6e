//! Man pages and completions: what packages install beside the command.

mod common;

use common::run;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn each_command_has_a_man_page_and_hidden_ones_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let ran = run(&["manual", pages.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut names: Vec<String> = fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let help = run(&["--help"]).out;
    let commands = help.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    for command in commands.lines().filter_map(|line| line.split_whitespace().next()) {
        let page = format!("suimon-{command}.1");
        assert!(names.contains(&page), "{page} in {names:?}");
    }
    for hidden in ["suimon-manual.1", "suimon-lab-node.1"] {
        assert!(!names.iter().any(|name| name == hidden), "{hidden}");
    }
    let serve = fs::read_to_string(pages.join("suimon-serve.1")).unwrap();
    assert!(serve.contains(r"\-\-listen") && serve.contains("Examples:"), "{serve}");
}

#[test]
fn completions_are_what_the_shell_understands() {
    let ran = run(&["completions", "bash"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(ran.out.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success());
    assert!(ran.out.contains("waiting-room") && ran.out.contains("--listen"));
    assert_eq!(run(&["completions", "cmd"]).code, Some(2));
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let folder = file.path().join("man1");
    let ran = run(&["manual", folder.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the man pages cannot be written"), "{}", ran.err);
}

//! `docs/tutorial.md`, every command as it stands there, in a network of its own: its ports are those
//! that everybody uses.

mod common;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What ends when the shell does, however it ends.
const CLEAN_UP: &str = "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n";

#[test]
fn the_tutorial_works_as_it_is_written() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks: String =
        page.split("```sh\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tutorial.sh"), format!("set -e\n{CLEAN_UP}{blocks}")).unwrap();

    let programs = Path::new(env!("CARGO_BIN_EXE_suimon")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let ran = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "bash", "-c", "ip link set lo up && bash tutorial.sh"])
        .current_dir(folder.path())
        .env("PATH", path)
        .env("STATE_DIRECTORY", folder.path())
        .output()
        .expect("unshare is part of every Linux");
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("Welcome"), "{said}");

    let count = |file: &str, key: &str| {
        let report: Value =
            serde_json::from_str(&fs::read_to_string(folder.path().join(file)).unwrap()).unwrap();
        report[key].as_u64().unwrap()
    };
    let lost = |file| count(file, "mid_session_failures");
    assert!(count("with.json", "sessions_completed") > count("without.json", "sessions_completed"), "{said}");
    assert!(10 * lost("with.json") <= lost("without.json"), "{said}");
}

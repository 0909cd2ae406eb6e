//! What people see, in a real browser: Chromium, driven by the scripts in `browser/`.

use std::path::Path;
use std::process::Command;

#[test]
fn visitors_wait_and_are_let_in_in_a_real_browser() {
    play("waiting-room.mjs");
}

#[test]
fn the_dashboard_shows_what_is_so_in_a_real_browser() {
    play("dashboard.mjs");
}

#[test]
fn the_dashboard_tells_sites_apart_in_a_real_browser() {
    play("sites.mjs");
}

/// Runs this script before the gateway, with a folder for its files.
fn play(script: &str) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    assert!(
        scripts.join("node_modules").is_dir(),
        "what drives the browser is not installed: ./scripts/setup installs what is needed"
    );
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made");
    let ran = Command::new("node")
        .arg(scripts.join(script))
        .args([env!("CARGO_BIN_EXE_suimon").as_ref(), folder.path()])
        .output()
        .expect("node runs: ./scripts/setup installs what is needed");
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");
}

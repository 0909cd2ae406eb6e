//! The waiting room in a real browser: Chromium, driven by `browser/waiting-room.mjs`.

use std::path::Path;
use std::process::Command;

#[test]
fn visitors_wait_and_are_let_in_in_a_real_browser() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    assert!(
        scripts.join("node_modules").is_dir(),
        "what drives the browser is not installed: ./scripts/setup installs what is needed"
    );
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let ran = Command::new("node")
        .arg(scripts.join("waiting-room.mjs"))
        .args([env!("CARGO_BIN_EXE_suimon").as_ref(), folder.path()])
        .output()
        .expect("node runs: ./scripts/setup installs what is needed");
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");
}

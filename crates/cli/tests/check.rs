//! `suimon check`, and what the command line itself refuses.

mod common;

use common::{file, run};
use std::net::TcpListener;

#[test]
fn a_right_file_is_ok_and_its_port_stays_free() {
    let folder = tempfile::tempdir().unwrap();
    // The test holds this port: a check that bound it would fail.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let path = file(
        &folder,
        "suimon.toml",
        &format!("[listen]\nhttp = \"{address}\"\n[[route]]\nmatch = \"GET /search\"\nmode = 3\n"),
    );
    let ran = run(&["check", &path]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("suimon.toml: ok"), "{ran:?}");
    assert!(
        ran.out.contains(&format!("http://{address}")) && ran.out.contains("GET /search fixed at 3"),
        "{ran:?}"
    );
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(
        &folder,
        "suimon.toml",
        "[upstream]\nnode = [\"http://x\"]\n[timeouts]\nconnect = \"soon\"\n[gate]\nsession_law = \"static\"\n",
    );
    let ran = run(&["check", &path]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for wanted in [
        "3 things are wrong",
        "did you mean upstream.nodes?",
        "timeouts.connect = \"soon\": must be",
        "gate.static_sessions is missing",
    ] {
        assert!(ran.out.contains(wanted), "{wanted}: {ran:?}");
    }
}

#[test]
fn a_syntax_error_has_its_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "suimon.toml", "[listen]\nhttp = 0.0.0.0:8000\n");
    let ran = run(&["check", &path]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.out.contains("suimon.toml:2:"), "{ran:?}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let ran = run(&["check", "/nowhere/suimon.toml"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.out.contains("/nowhere/suimon.toml: cannot be read"), "{ran:?}");
}

#[test]
fn json_carries_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = run(&["check", "--json", &file(&folder, "suimon.toml", "[listen]\nbacklog = 0\n")]);
    assert_eq!(wrong.code, Some(2));
    let json: serde_json::Value = serde_json::from_str(&wrong.out).unwrap();
    assert_eq!(
        (&json["ok"], &json["faults"][0]["key"], &json["faults"][0]["seen"]),
        (&false.into(), &"listen.backlog".into(), &"0".into())
    );

    let right = run(&["check", "--json", &file(&folder, "suimon.toml", "")]);
    assert_eq!(right.code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&right.out).unwrap();
    assert_eq!((&json["ok"], &json["summary"]["clients"]), (&true.into(), &"http://0.0.0.0:8000".into()));
}

#[test]
fn journey_files_are_checked_too() {
    let right = run(&["check", concat!(env!("CARGO_MANIFEST_DIR"), "/../crowd/journeys/shop.toml")]);
    assert_eq!(right.code, Some(0), "{right:?}");
    assert!(right.out.contains("journeys"), "{right:?}");

    let folder = tempfile::tempdir().unwrap();
    let wrong = run(&["check", &file(&folder, "suimon.toml", "[[journey]]\nname = \"x\"\n")]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn the_example_file_of_the_project_is_right() {
    let ran = run(&["check", concat!(env!("CARGO_MANIFEST_DIR"), "/../../suimon.example.toml")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn wrong_usage_ends_with_2_and_help_and_version_with_0() {
    for args in [
        &[][..],
        &["sreve"],
        &["check"],
        &["serve", "--listen", "8000"],
        &["crowd", "x.toml"],
        &["status", "--watch", "--json"],
    ] {
        assert_eq!(run(args).code, Some(2), "{args:?}");
    }
    for args in [&["--help"][..], &["--version"], &["serve", "--help"], &["status", "--help"]] {
        assert_eq!(run(args).code, Some(0), "{args:?}");
    }
    assert!(run(&["serve", "--help"]).out.contains("suimon serve --to http://127.0.0.1:8080"));
}

/// Makes a certificate and its key in `folder`, named after `name`.
fn certificate(folder: &tempfile::TempDir, name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let cert = file(folder, &format!("{name}.pem"), &made.cert.pem());
    let key = file(folder, &format!("{name}.key"), &made.signing_key.serialize_pem());
    (cert, key)
}

#[test]
fn what_serve_would_refuse_is_refused_with_the_line_it_stands_in() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(&folder, "a");
    let (_, other) = certificate(&folder, "b");
    let keys = file(&folder, "lease.keys", &format!("1 {}\n", "ab".repeat(32)));
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o644)).unwrap();
    let template = file(&folder, "hostname", "shop-1\n");
    let long = file(&folder, "long.html", &"x".repeat((1 << 20) + 1));
    let tls = |cert: &str, key: &str| {
        format!(
            "[listen]\nhttp = \"127.0.0.1:0\"\n[listen.tls]\naddress = \"127.0.0.1:0\"\ncert = \"{cert}\"\nkey = \"{key}\"\n"
        )
    };
    let inside = folder.path().display();
    for (text, line, why) in [
        (tls(&cert, &other), 5, "key"),
        (tls(&key, &cert), 5, "certificate"),
        (format!("[lease]\nkeys = \"{keys}\"\n"), 2, "chmod 600"),
        (format!("[waiting_room]\ntemplate = \"{template}\"\n"), 2, "is no template"),
        ("[waiting_room]\ntemplate = \"/dev/zero\"\n".to_owned(), 2, "it is no regular file"),
        (format!("[waiting_room]\ntemplate = \"{long}\"\n"), 2, "longer than 1048576 bytes"),
        (format!("[waiting_room]\nstate = \"{inside}/nowhere/line.json\"\n"), 2, "in a folder that is there"),
        (format!("[learned]\nstate = \"{inside}/nowhere/learned.json\"\n"), 2, "in a folder that is there"),
        (format!("[learned]\nstate = \"{inside}\"\n"), 2, "this is a folder"),
        (format!("[record]\nfile = \"{inside}/nowhere/x.suirec\"\n"), 2, "in a folder that is there"),
        ("[log]\nfilter = \"verbose\"\n".to_owned(), 2, "\"verbose\" is no level"),
        (
            "\n[upstream.health]\ninterval = \"1s\"\ntimeout = \"5s\"\n".to_owned(),
            4,
            "at most upstream.health.interval (\"1s\")",
        ),
        (
            "[upstream]\nnodes = [\"http://a:1\", \"http://a:99999\", \"a\"]\n".to_owned(),
            2,
            "upstream.nodes[1] = \"http://a:99999\": must be",
        ),
        (
            "[upstream]\nnodes = [\"http://a:1\", \"http://a:99999\", \"a\"]\n".to_owned(),
            2,
            "upstream.nodes[2] = \"a\": must be",
        ),
        ("[server]\nport = 80\n".to_owned(), 1, "server = { ... }: there is no such key"),
        ("[timeouts]\nconnect = \"soon\"\n".to_owned(), 2, "timeouts.connect = \"soon\": must be"),
    ] {
        let path = file(&folder, "suimon.toml", &text);
        let ran = run(&["check", &path]);
        assert_eq!(ran.code, Some(2), "{text}\n{ran:?}");
        assert!(ran.out.contains(why), "{why}: {ran:?}");
        assert!(ran.out.contains(&format!("suimon.toml:{line}: ")), "line {line}: {ran:?}");
        // `suimon serve` reports the same before it binds anything.
        if !text.contains("[log]") {
            let served = run(&["serve", "--config", &path, "--admin", "off"]);
            assert_eq!(served.code, Some(2), "{text}\n{served:?}");
            assert!(served.err.contains(why), "{why}: {served:?}");
        }
    }
    let path = file(&folder, "suimon.toml", &tls(&cert, &key));
    assert_eq!(run(&["check", &path]).code, Some(0));
}

#[test]
fn faults_as_json_carry_key_and_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "suimon.toml", "[timeouts]\nconnect = \"soon\"\n");
    let ran = run(&["check", "--json", &path]);
    let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let fault = &said["faults"][0];
    assert_eq!((&fault["key"], &fault["seen"]), (&"timeouts.connect".into(), &"\"soon\"".into()), "{said}");
    assert_eq!(fault["at"], format!("{path}:2"));
}

#[test]
fn a_file_without_end_and_one_too_long_are_refused_by_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let long = file(&folder, "long.toml", &"# nothing\n".repeat(500_000));
    for path in ["/dev/zero", &long] {
        let ran = run(&["check", path]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.out.contains("is longer than 4194304 bytes"), "{ran:?}");
    }
}

#[test]
fn a_file_can_come_by_standard_input() {
    for (text, code, said) in [
        ("[gate]\nsession_idle = \"1d\"\n", 0, "-: ok"),
        ("[gate]\nsession_idle = \"soon\"\n", 2, "-:2: gate.session_idle"),
    ] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_suimon"))
            .args(["check", "-"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        let ran = child.wait_with_output().unwrap();
        let out = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert_eq!(ran.status.code(), Some(code), "{out}");
        assert!(out.contains(said), "{out}");
    }
}

#[cfg(not(feature = "kubernetes"))]
#[test]
fn nodes_that_this_program_cannot_serve_are_refused_as_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[nodes]\nprovider = \"kubernetes\"\n[nodes.kubernetes]\nservice = \"shop\"\n";
    let path = file(&folder, "suimon.toml", text);
    let (checked, served) =
        (run(&["check", &path]), run(&["serve", "--config", &path, "--listen", "127.0.0.1:0"]));
    assert_eq!((checked.code, served.code), (Some(2), Some(2)), "{checked:?} {served:?}");
    let why = served.err.lines().last().unwrap();
    assert!(why.contains("built without Kubernetes") && checked.out.contains(why), "{checked:?} {served:?}");
}

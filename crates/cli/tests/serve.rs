//! `suimon serve` and `suimon status`: a real gateway before a tiny real application.

mod common;

use common::{Backend, Gateway, file, get, run, try_get};
use std::net::TcpListener;
use std::thread;
use suimon_process::Signal;

#[test]
fn an_application_is_protected_with_nothing_configured() {
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url()]);
    for item in 0..5 {
        let path = format!("/items/{item}");
        assert_eq!(get(gateway.clients, &path), (200, format!("you asked for {path}\n")));
    }

    assert_eq!(get(gateway.admin, "/readyz").0, 200);
    let (status, metrics) = get(gateway.admin, "/metrics");
    assert_eq!(status, 200);
    assert!(metrics.contains("\nsuimon_requests_total 5\n"), "{metrics}");
    assert!(metrics.contains(&format!("suimon_node_up{{node=\"{}\"}} 1", backend.url())), "{metrics}");
    assert!(metrics.contains("suimon_route_limit_requests{route=\"GET /items/{id}\"}"), "{metrics}");

    let shown = run(&["status", "--admin", &gateway.admin_url()]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let by_port = run(&["status", "--admin", gateway.admin_url().trim_start_matches("http://")]);
    assert_eq!(by_port.code, Some(0), "{by_port:?}");
    for wanted in ["ready", "5 requests in all", "GET /items/{id}", &backend.url()] {
        assert!(shown.out.contains(wanted), "{wanted}: {}", shown.out);
    }
    let shown = run(&["status", "--json", "--admin", &gateway.admin_url()]);
    let json: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(json["totals"]["requests"], 5);

    gateway.process.finish();
}

#[test]
fn sigterm_lets_what_is_under_way_end() {
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url()]);
    let clients = gateway.clients;
    let held = thread::spawn(move || get(clients, "/held"));
    backend.wait_for("/held");

    gateway.process.signal(Signal::TERM);
    gateway.process.wait_err("draining");
    let (status, why) = get(gateway.admin, "/readyz");
    assert_eq!(status, 503);
    assert!(why.contains("shutting down"), "{why}");

    backend.let_go();
    assert_eq!(held.join().unwrap(), (200, "you asked for /held\n".to_string()));
    assert_eq!(gateway.process.end().code(), Some(0));
}

#[test]
fn a_hangup_is_told_and_changes_nothing() {
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url()]);
    gateway.process.signal(Signal::HUP);
    gateway.process.wait_err("SIGHUP ignored");
    assert_eq!(get(gateway.clients, "/x").0, 200);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url()]);
    let clients = gateway.clients;
    let held = thread::spawn(move || try_get(clients, "/held"));
    backend.wait_for("/held");

    gateway.process.signal(Signal::INT);
    gateway.process.wait_err("draining");
    gateway.process.signal(Signal::INT);
    gateway.process.wait_err("ending at once");
    assert_eq!(gateway.process.end().code(), Some(1));
    assert!(held.join().unwrap().is_err(), "its request was cut off");
}

#[test]
fn a_port_in_use_is_named_with_the_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let clients = run(&["serve", "--to", "http://127.0.0.1:9", "--listen", &address, "--admin", "off"]);
    assert_eq!(clients.code, Some(1), "{clients:?}");
    assert!(clients.err.contains(&address) && clients.err.contains("choose another port"), "{clients:?}");

    let admin = run(&["serve", "--to", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--admin", &address]);
    assert_eq!(admin.code, Some(1), "{admin:?}");
    assert!(admin.err.contains(&address) && admin.err.contains("--admin off"), "{admin:?}");
}

#[test]
fn an_application_that_is_not_there_is_said_and_answered_for() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway = Gateway::start(&["--to", &format!("http://{free}")]);
    let said = gateway.process.wait_err("cannot be reached");
    assert!(said.contains(&free.to_string()) && said.contains("start the application"), "{said}");
    let (status, _) = get(gateway.clients, "/");
    assert!((502..=504).contains(&status), "{status}");
}

#[test]
fn what_is_wrong_is_told_before_anything_is_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "bad.toml", "[upstrem]\nnodes = []\n[listen]\nhttp = 5\n");
    let ran = run(&["serve", "--config", &path]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("did you mean upstream?") && ran.err.contains("listen.http = 5: must be"),
        "{ran:?}"
    );

    let ran = run(&["serve", "--to", "127.0.0.1:8080", "--to", "ftp://x"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ran.err.matches("--to: ").count(), 2, "{ran:?}");

    let ran = run(&["serve", "--to", "http://127.0.0.1:8000", "--listen", "127.0.0.1:8000"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("not Suimon's own listen.http"), "{ran:?}");

    let ran = run(&["serve", "--log", "suimon=loud"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("--log = \"suimon=loud\": must be"), "{ran:?}");
}

#[test]
fn flags_win_over_the_file() {
    let backend = Backend::start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(
        &folder,
        "suimon.toml",
        "[listen]\nhttp = \"203.0.113.1:1\"\n[upstream]\nnodes = [\"http://203.0.113.2:1\"]\n[lease]\nkeys = \"none\"\n",
    );
    let gateway = Gateway::start(&["--config", &path, "--to", &backend.url()]);
    assert_eq!(get(gateway.clients, "/x").0, 200);
}

#[test]
fn lease_keys_are_made_once_for_the_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let backend = Backend::start();
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let keys = keys.to_str().unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let gateway = Gateway::start(&["--to", &backend.url(), "--lease-keys", keys]);
        seen.push(std::fs::read_to_string(keys).unwrap());
        gateway.process.finish();
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(std::fs::metadata(keys).unwrap().permissions().mode() & 0o777, 0o600);

    std::fs::write(keys, "not a key\n").unwrap();
    let ran = run(&[
        "serve",
        "--to",
        &backend.url(),
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "off",
        "--lease-keys",
        keys,
    ]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains(keys), "{ran:?}");
}

#[test]
fn a_gateway_that_does_not_answer_is_said_to_be_silent() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = run(&["status", "--admin", &format!("http://{free}")]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("nobody answers") && ran.err.contains("Is the gateway running"), "{ran:?}");

    let ran = run(&["status", "--admin", "8001"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("HOST:PORT") && !ran.err.contains("node"), "{ran:?}");

    let backend = Backend::start();
    let ran = run(&["status", "--admin", &backend.url()]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("is it a gateway's operator address?"), "{ran:?}");
}

#[test]
fn what_a_gateway_refuses_is_told_with_its_reason() {
    let backend = Backend::start();
    let folder = tempfile::tempdir().unwrap();
    let settings = "[[session]]\nkind = \"visit\"\nwaiting_room = false\n";
    let settings = file(&folder, "suimon.toml", settings);
    let gateway = Gateway::start(&["--to", &backend.url(), "--config", &settings]);
    let ran = run(&["waiting-room", "pause", "--admin", &gateway.admin_url()]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the gateway refused: no kind of session has a line"), "{ran:?}");
    assert!(!ran.err.contains("running"), "{ran:?}");
}

#[test]
fn watching_ends_with_ctrl_c_and_says_when_nobody_answers() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let watching = common::Running::start(&["status", "--watch", "--admin", &format!("http://{free}")]);
    watching.wait_out("still trying");
    watching.signal(Signal::INT);
    assert_eq!(watching.end().code(), Some(0));
}

#[test]
fn a_soft_limit_of_descriptors_is_raised_to_the_hard_one() {
    let backend = Backend::start();
    let script = format!(
        "ulimit -Sn 64; exec {} serve --to {} --listen 127.0.0.1:0 --admin off --lease-keys none",
        env!("CARGO_BIN_EXE_suimon"),
        backend.url()
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let mut child = shell.spawn().unwrap();
    let mut head = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut head)
        .unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    let limits = limits.unwrap();
    let open_files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = open_files.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers[0], numbers[1], "{open_files}");
}

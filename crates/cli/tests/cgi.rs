//! `suimon serve` that runs a process for each request: shell scripts as they are, and php-cgi.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;

use common::{Gateway, LONG, file, get, run, runs, try_get, until};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use suimon_process::Signal;

/// Tells what it was told, and does what it is asked for.
const SCRIPT: &str = r#"#!/bin/sh
root=$DOCUMENT_ROOT
case $QUERY_STRING in
    silent*) echo 'no coffee left' >&2; exit 3 ;;
    killed*) kill -9 $$ ;;
    noise*) for i in 1 2 3 4 5 6 7 8 9 10; do echo noise noise >&2; done ;;
    hang*) sleep 1000 & echo $! > "$root/started"; wait ;;
    broken*) printf 'Content-Type: text/plain\n\nhalf'; kill -9 $$ ;;
    short*) printf 'Content-Type: text/plain\nContent-Length: 9\n\nhalf'; exit ;;
    moved*) printf 'Location: /elsewhere\n\n'; exit ;;
    status*) printf 'Status: 418 Teapot\nContent-Type: text/plain\n\nshort and stout'; exit ;;
    deaf*) printf 'Content-Type: text/plain\n\nI do not listen'; exit ;;
    slow*) printf 'Content-Type: text/plain\n\nfirst\n'
        while [ ! -e "$root/go" ]; do sleep 0.01; done
        echo second; exit ;;
    after*) printf 'Content-Type: text/plain\nContent-Length: 5\n\nhello'
        while [ ! -e "$root/go" ]; do sleep 0.01; done
        touch "$root/done"; exit ;;
    detached*) printf 'Content-Type: text/plain\n\nhello'; exec >&-
        while [ ! -e "$root/go" ]; do sleep 0.01; done
        touch "$root/done"; exit ;;
    nap*) sleep 0.05 ;;
    runs*) echo $$ > "$root/runs.$$"
        while [ ! -e "$root/go" ]; do sleep 0.01; done ;;
esac
printf 'Content-Type: text/plain\r\n\r\n'
echo "$GATEWAY_INTERFACE $REQUEST_METHOD $PATH_INFO|$QUERY_STRING|$CONTENT_LENGTH|$GREETING|$(pwd)"
exec cat
"#;

/// A gateway that runs a process for each request.
struct Site {
    gateway: Gateway,
    folder: tempfile::TempDir,
}

impl Site {
    /// Starts one whose script answers every path.
    fn start(pool: &str, other: &str) -> Self {
        let folder = folder();
        let script = script(&folder, "shop.sh", SCRIPT);
        let settings =
            settings(&folder, pool, &format!("{other}\n[upstream.fastcgi]\nprogram = \"{script}\""));
        Site::over(folder, &settings)
    }

    fn over(folder: tempfile::TempDir, settings: &str) -> Self {
        let checked = run(&["check", settings]);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        Site { gateway: Gateway::start(&["--config", settings, "--learned", "none"]), folder }
    }

    fn state(&self) -> Value {
        serde_json::from_str(&get(self.gateway.admin, "/api/state").1).unwrap()
    }

    fn pool(&self) -> Value {
        self.state()["pools"][0].clone()
    }

    fn ask(&self, request: &str, body: &[u8]) -> String {
        ask(self.gateway.clients, &[request.as_bytes(), body].concat())
    }

    /// Returns status and page of an answer.
    fn page(&self, path: &str) -> (u16, String) {
        // In a version that knows no chunks.
        let answer = self.ask(&format!("GET {path} HTTP/1.0\r\nHost: shop\r\n\r\n"), b"");
        let (head, page) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), page.to_owned())
    }

    /// Returns the processes whose numbers the script has left.
    fn left(&self, name: &str) -> Vec<u32> {
        let entries = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap());
        let named = entries.filter(|entry| entry.file_name().to_str().unwrap().starts_with(name));
        let texts = named.map(|entry| fs::read_to_string(entry.path()).unwrap());
        texts.filter_map(|text| text.trim().parse().ok()).collect()
    }

    /// Returns the one that a hanging script has started.
    fn started(&self) -> u32 {
        until("it has started something", || self.left("started").len() == 1);
        self.left("started")[0]
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // The programs are run as somebody else, who leaves files here.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// Writes a program.
fn script(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = file(folder, name, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn settings(folder: &tempfile::TempDir, pool: &str, other: &str) -> String {
    let user = if suimon_process::user_id() == 0 { "user = \"nobody\"\n" } else { "" };
    let text = format!(
        "{other}\n[discovery]\nmode = \"off\"\n[[pool]]\nname = \"plain\"\nkind = \"cgi\"\n{user}{pool}\n"
    );
    file(folder, "suimon.toml", &text)
}

/// Sends `request` as it is, and returns the answer.
fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = vec![];
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

#[test]
fn a_script_learns_of_its_request_and_its_answer_passes() {
    let site = Site::start("environment = [\"GREETING=hello\"]", "");
    let clients = site.gateway.clients;
    let folder = site.folder.path().display();
    let (status, page) = site.page("/chairs/7?colour=red");
    assert_eq!((status, &*page), (200, &*format!("CGI/1.1 GET /chairs/7|colour=red||hello|{folder}\n")));
    let head = "POST /a HTTP/1.0\r\nHost: shop\r\n";
    let body: String = (0..300_000).map(|number| format!("{number}\n")).collect();
    let answer = site.ask(&format!("{head}Content-Length: {}\r\n\r\n", body.len()), body.as_bytes());
    let told = format!("CGI/1.1 POST /a||{}|hello|{folder}\n", body.len());
    assert!(answer.ends_with(&(told + &body)));
    let chunked = format!(
        "{}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        head.replace("/1.0", "/1.1") + "Connection: close\r\n"
    );
    let answer = site.ask(&chunked, b"");
    assert!(answer.contains("||5|hello|") && answer.contains("hello"), "{answer}");

    let status_of = |query: &str| get(clients, &format!("/?{query}")).0;
    assert_eq!((status_of("moved"), status_of("status")), (302, 418));
    let answer = site.ask(
        &format!("{head}Content-Length: {}\r\n\r\n", body.len()).replace("/a", "/?deaf"),
        body.as_bytes(),
    );
    assert!(answer.contains("I do not listen"), "a body that nobody reads is no fault: {answer}");
    let answer = ask(clients, b"HEAD / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"), "{answer}");

    until("all places are free", || site.pool()["idle"] == site.pool()["wanted"]);
    let pool = site.pool();
    assert_eq!(pool["kind"], "cgi");
    assert_eq!((&pool["totals"]["starts"], &pool["totals"]["deaths"]), (&7.into(), &0.into()), "{pool}");
    assert!(pool["start_seconds"].as_f64().unwrap() > 0.0);
    site.gateway.process.finish();
}

#[test]
fn a_program_that_fails_is_told_with_its_exit_and_its_last_words() {
    let site = Site::start("", "");
    let clients = site.gateway.clients;
    assert_eq!(get(clients, "/?silent").0, 502);
    site.gateway.process.wait_err("exit code 3; the last that it wrote: \"no coffee left\"");
    assert_eq!(get(clients, "/?killed").0, 502);
    site.gateway.process.wait_err("signal 9");
    for query in ["broken", "short"] {
        let answer =
            site.ask(&format!("GET /?{query} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"), b"");
        let is_whole = answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("0\r\n\r\n");
        assert!(!is_whole, "a part does not pass for all of it: {answer}");
    }
    for _ in 0..10 {
        assert_eq!(get(clients, "/?noise").0, 200);
    }
    site.gateway.process.wait_err("writes too much");
    until("all places are free", || site.pool()["idle"] == site.pool()["wanted"]);
    let pool = site.pool();
    assert_eq!((&pool["totals"]["starts"], &pool["totals"]["deaths"]), (&14.into(), &3.into()), "{pool}");
    let shown = run(&["pool", "status", "--admin", &site.gateway.admin_url()]);
    assert!(shown.out.contains("a process for each request (cgi)"), "{shown:?}");
    let trace = run(&["pool", "trace", "--admin", &site.gateway.admin_url()]);
    assert!(trace.out.contains("failed") && trace.out.contains("exit code 3"), "{trace:?}");
    site.gateway.process.finish();
}

#[test]
fn an_answer_passes_piece_by_piece() {
    let site = Site::start("", "");
    let mut stream = TcpStream::connect(site.gateway.clients).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(b"GET /?slow HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n").unwrap();
    let (mut answer, mut piece) = (String::new(), [0; 512]);
    while !answer.contains("first") {
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "{answer}");
        answer += std::str::from_utf8(&piece[..length]).unwrap();
    }
    assert!(!answer.contains("second"));
    file(&site.folder, "go", "");
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("second"), "{answer}");
    site.gateway.process.finish();
}

#[test]
fn a_program_may_go_on_after_its_answer_and_keeps_its_place_meanwhile() {
    for query in ["after", "detached"] {
        let site = Site::start("workers = 1", "");
        let (status, page) = site.page(&format!("/?{query}"));
        assert_eq!((status, &*page), (200, "hello"), "{query}");
        let other = std::thread::spawn({
            let clients = site.gateway.clients;
            move || get(clients, "/").0
        });
        until("the next one waits", || site.pool()["queued"] == 1);
        assert_eq!(site.pool()["busy"], 1);
        file(&site.folder, "go", "");
        assert_eq!(other.join().unwrap(), 200);
        assert!(site.folder.path().join("done").exists(), "{query}: it was not killed");
        assert_eq!(site.pool()["totals"]["kills"], 0);
        site.gateway.process.finish();
    }
}

#[test]
fn one_that_does_not_end_after_its_answer_is_killed() {
    let site = Site::start("workers = 1\nstop_within = \"1s\"", "");
    assert_eq!(site.page("/?detached").1, "hello");
    assert_eq!(get(site.gateway.clients, "/").0, 200, "its place is free");
    assert_eq!(site.pool()["totals"]["kills"], 1);
    site.gateway.process.finish();
}

#[test]
fn no_more_run_at_once_than_the_settings_say() {
    for most in ["workers = 2", "max = 2"] {
        let site = Site::start(most, "");
        let clients = site.gateway.clients;
        // Before the gate knows how many may run, it holds nobody.
        assert_eq!(get(clients, "/").0, 200);
        until("both places are free", || site.pool()["idle"] == 2);
        let asked: Vec<_> = (0..6).map(|_| std::thread::spawn(move || get(clients, "/?runs").0)).collect();
        let began = Instant::now();
        while site.left("runs.").len() != 2 || site.pool()["queued"] != 4 {
            assert!(began.elapsed() < LONG, "two do not run while the others wait: {}", site.state());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!((site.left("runs.").len(), &site.pool()["busy"]), (2, &2.into()));
        file(&site.folder, "go", "");
        assert!(asked.into_iter().all(|it| it.join().unwrap() == 200));
        assert_eq!(site.left("runs.").len(), 6);
        site.gateway.process.finish();
    }
}

#[test]
fn a_program_is_killed_with_all_it_has_started_when_its_client_leaves() {
    let site = Site::start("workers = 1", "");
    let mut client = TcpStream::connect(site.gateway.clients).unwrap();
    client.write_all(b"GET /?hang HTTP/1.1\r\nHost: shop\r\n\r\n").unwrap();
    let started = site.started();
    assert!(runs(started));
    drop(client);
    until("what it has started ends", || !runs(started));
    assert_eq!(get(site.gateway.clients, "/").0, 200, "its place is free");
    assert_eq!(site.pool()["totals"]["kills"], 1);
    site.gateway.process.finish();
}

#[test]
fn a_program_that_does_not_answer_in_time_is_killed_with_all_it_has_started() {
    let site = Site::start("workers = 1", "[timeouts]\nfirst_byte = \"500ms\"");
    assert_eq!(get(site.gateway.clients, "/?hang").0, 504);
    let started = site.started();
    until("what it has started ends", || !runs(started));
    assert_eq!(get(site.gateway.clients, "/").0, 200, "its place is free");
    site.gateway.process.finish();
}

#[test]
fn every_place_is_free_again_however_requests_end() {
    let site = Site::start("workers = 4", "");
    let clients = site.gateway.clients;
    let client = |number: u64| {
        std::thread::spawn(move || {
            for turn in 0..20 {
                let mut stream = TcpStream::connect(clients).unwrap();
                stream.write_all(b"GET /?nap HTTP/1.0\r\nHost: shop\r\n\r\n").unwrap();
                if (turn + number).is_multiple_of(2) {
                    // It leaves before, at and after the start of its program.
                    std::thread::sleep(Duration::from_millis(20 * number));
                    continue;
                }
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
            }
        })
    };
    let all: Vec<_> = (0..8).map(client).collect();
    all.into_iter().for_each(|client| client.join().unwrap());
    until("all places are free", || site.pool()["idle"] == 4 && site.state()["totals"]["in_flight"] == 0);
    let totals = site.pool()["totals"].clone();
    let count = |name: &str| totals[name].as_u64().unwrap();
    assert!(count("requests") >= 80, "{totals}");
    assert_eq!((count("deaths"), count("failed_starts")), (0, 0), "{totals}");
    assert!(count("starts") >= count("requests") + count("kills"), "{totals}");
    site.gateway.process.finish();
}

#[test]
fn nothing_that_runs_is_left_of_a_gateway_that_ends_or_is_killed() {
    for signal in [Signal::TERM, Signal::KILL] {
        let site = Site::start("stop_within = \"1s\"", "[timeouts]\ndrain = \"500ms\"");
        let mut client = TcpStream::connect(site.gateway.clients).unwrap();
        client.write_all(b"GET /?hang HTTP/1.1\r\nHost: shop\r\n\r\n").unwrap();
        let started = site.started();
        site.gateway.process.signal(signal);
        until("what it has started ends", || !runs(started));
        assert_eq!(site.gateway.process.end().success(), signal == Signal::TERM);
    }
}

#[test]
fn programs_in_a_folder_run_themselves_and_files_are_no_programs() {
    let folder = folder();
    script(
        &folder,
        "hello.cgi",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s' \"$SCRIPT_NAME $(pwd)\"\n",
    );
    file(&folder, "closed.cgi", "#!/bin/sh\n");
    file(&folder, "secret.txt", "no program");
    let path = folder.path().display().to_string();
    let other = format!("[upstream.fastcgi]\nroot = \"{path}\"\nsuffix = \".cgi\"");
    let settings = settings(&folder, "", &other);
    let site = Site::over(folder, &settings);
    let clients = site.gateway.clients;
    assert_eq!(site.page("/hello.cgi/more").1, format!("/hello.cgi {path}"));
    assert_eq!(get(clients, "/secret.txt").0, 404);
    assert_eq!(get(clients, "/closed.cgi").0, 502);
    site.gateway.process.wait_err("could not be started");
    assert_eq!(site.pool()["totals"]["failed_starts"], 1);
    site.gateway.process.finish();
}

#[test]
fn php_runs_once_for_each_request() {
    let folder = folder();
    file(
        &folder,
        "index.php",
        "<?php header('X-Own: 1'); echo getmypid(), ' ', $_POST['name'] ?? '-', ' ', $_SERVER['PATH_INFO'] ?? '';",
    );
    let path = folder.path().display().to_string();
    let settings = settings(&folder, &format!("command = [\"php-cgi\"]\ndirectory = \"{path}\""), "");
    let site = Site::over(folder, &settings);
    let pid = |path: &str| site.page(path).1.split(' ').next().unwrap().parse::<u32>().unwrap();
    assert_ne!(pid("/"), pid("/"), "none stays");
    let form = "name=Anna";
    let head = "POST /index.php/chairs HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    let answer = site.ask(&format!("{head}Content-Length: {}\r\n\r\n", form.len()), form.as_bytes());
    assert!(answer.contains("x-own: 1") && answer.contains(" Anna /chairs"), "{answer}");
    site.gateway.process.finish();
}

#[test]
fn the_number_at_once_is_changed_while_it_runs() {
    let site = Site::start("workers = 1", "");
    let url = site.gateway.admin_url();
    let ran = run(&["pool", "resize", "3", "--admin", &url]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    until("three may run", || site.pool()["idle"] == 3);
    let ran = run(&["pool", "reload", "--wait", "--admin", &url]);
    assert_eq!(ran.code, Some(0), "there is nothing to replace: {ran:?}");
    assert_eq!(get(site.gateway.clients, "/").0, 200);
    assert!(
        matches!(try_get(site.gateway.admin, "/metrics"), Ok((200, text)) if text.contains("suimon_pool_starts_total{pool=\"plain\"} 1"))
    );
    site.gateway.process.finish();
}

#[test]
fn settings_that_make_no_sense_for_it_are_refused() {
    let folder = folder();
    let open = script(&folder, "shop.sh", SCRIPT);
    let closed = file(&folder, "closed.sh", SCRIPT);
    let program = |path: &str| format!("[upstream.fastcgi]\nprogram = \"{path}\"");
    for (pool, program, words) in [
        ("", program("/srv/nowhere/shop.sh"), "/srv/nowhere/shop.sh is not there"),
        ("", program(&closed), "closed.sh is not executable"),
        ("command = [\"/srv/nowhere/php-cgi\"]", program(&open), "/srv/nowhere/php-cgi is not there"),
        ("size_law = \"measured\"", program(&open), "\"fixed\" or left out with kind = \"cgi\""),
        ("size_law = \"dynamic\"", program(&open), "\"fixed\" or left out with kind = \"cgi\""),
        ("requests_max = 10", program(&open), "pool[0].requests_max = given: must be left out"),
        ("listen = \"socket\"", program(&open), "left out with kind = \"cgi\""),
        ("command = [\"php-cgi\", \"{socket}\"]", program(&open), "without {socket} and {port}"),
    ] {
        let ran = run(&["check", &settings(&folder, pool, &program)]);
        assert_eq!(ran.code, Some(2), "{pool}: {ran:?}");
        assert!(ran.out.contains(words), "{pool}: {ran:?}");
    }
    let fixed = settings(&folder, "size_law = \"fixed\"\nworkers = 4", &program(&open));
    let ran = run(&["check", &fixed]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

//! `suimon serve` that runs real PHP as its workers: what happens when they die, hang, or cannot
//! start, and when the gateway itself is killed.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;

use common::{Gateway, Load, file, get, run, runs, try_get, until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use suimon_process::Signal;

/// Answers with the number of its process, and does what it is asked for.
const PAGE: &str = r"<?php
if (isset($_GET['die'])) posix_kill(getmypid(), SIGKILL);
if (isset($_GET['ms'])) usleep(1000 * (int)$_GET['ms']);
if (isset($_GET['hang'])) while (true) usleep(1000);
echo getmypid();
";

/// A gateway with a pool of `workers`, and these settings besides.
struct Site {
    gateway: Gateway,
    folder: tempfile::TempDir,
}

impl Site {
    fn start(pool: &str, other: &str) -> Self {
        let folder = folder();
        let settings = settings(&folder, pool, other);
        assert_eq!(run(&["check", &settings]).code, Some(0), "{}", run(&["check", &settings]).out);
        Site { gateway: Gateway::start(&["--config", &settings, "--learned", "none"]), folder }
    }

    /// Returns the processes of so many workers, once all of them answer.
    fn all(&self, count: usize) -> BTreeSet<u32> {
        let mut workers = BTreeSet::new();
        until("all workers answer", || {
            workers = self.workers(count);
            workers.len() == count
        });
        workers
    }

    /// Returns the processes that answer so many requests at once.
    fn workers(&self, at_once: usize) -> BTreeSet<u32> {
        let clients = self.gateway.clients;
        let asked: Vec<_> =
            (0..at_once).map(|_| std::thread::spawn(move || get(clients, "/?ms=300"))).collect();
        let answers = asked.into_iter().map(|it| it.join().unwrap());
        answers.map(|(status, page)| page.parse().unwrap_or_else(|_| panic!("{status} {page}"))).collect()
    }

    fn state(&self) -> Value {
        serde_json::from_str(&get(self.gateway.admin, "/api/state").1).unwrap()
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // The workers are somebody else.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    file(&folder, "index.php", PAGE);
    folder
}

fn settings(folder: &tempfile::TempDir, pool: &str, other: &str) -> String {
    let path = folder.path().display();
    let user = if suimon_process::user_id() == 0 { "user = \"nobody\"\n" } else { "" };
    let text = format!(
        "{other}\n[discovery]\nmode = \"off\"\n[upstream.fastcgi]\nroot = \"{path}\"\n[[pool]]\nname = \"php\"\nkind = \"fastcgi\"\n\
         sockets = \"{path}/sockets\"\n{user}{pool}\n"
    );
    file(folder, "suimon.toml", &text)
}

/// Whom the gate asks to come later says nothing of workers.
const OPEN: &str = "[gate]\nsession_law = \"open\"";

fn php(workers: usize) -> String {
    format!("command = [\"php-cgi\"]\nsize_law = \"fixed\"\nworkers = {workers}\n")
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn workers_that_are_killed_under_load_cost_no_request_that_may_be_sent_again() {
    let site = Site::start(&php(3), OPEN);
    let workers = site.all(3);
    let load = Load::begin(site.gateway.clients, 6, "/?ms=5");
    load.until_served(20);
    kill(*workers.first().unwrap());
    load.until_served(20);
    workers.iter().copied().skip(1).for_each(kill);
    load.until_served(20);
    let (served, failed) = load.end();
    assert_eq!(failed, 0, "of {served}");
    until("all slots are free", || site.state()["totals"]["in_flight"] == 0);
    assert!(site.all(3).is_disjoint(&workers), "each has another in its place");
    site.gateway.process.finish();
}

#[test]
fn workers_that_are_killed_all_at_once_cost_no_request_that_may_be_sent_again() {
    let site = Site::start(&php(12), OPEN);
    let mut workers = site.all(12);
    let load = Load::begin(site.gateway.clients, 10, "/?ms=150");
    for _ in 0..3 {
        load.until_served(30);
        // They end one after the other all the same, as each has memory to give back.
        workers.into_iter().for_each(kill);
        load.until_served(30);
        workers = site.all(12);
    }
    let (served, failed) = load.end();
    assert_eq!(failed, 0, "of {served}");
    site.gateway.process.finish();
}

#[test]
fn a_request_that_kills_its_worker_is_not_sent_for_ever() {
    let site = Site::start(&php(2), "");
    assert_eq!(get(site.gateway.clients, "/?die").0, 502);
    assert_eq!(get(site.gateway.clients, "/").0, 200, "it was tried twice, and others came");
    let post = b"POST /?die HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let mut stream = TcpStream::connect(site.gateway.clients).unwrap();
    stream.write_all(post).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 502 "), "it may have done what it was asked for: {answer}");
    assert_eq!(site.state()["totals"]["in_flight"], 0);
    site.gateway.process.finish();
}

#[test]
fn a_worker_that_hangs_is_replaced() {
    let site = Site::start(&php(1), "[timeouts]\nfirst_byte = \"500ms\"");
    let before = site.workers(1);
    assert_eq!(get(site.gateway.clients, "/?hang").0, 504);
    let after = site.workers(1);
    assert_ne!(before, after);
    until("the one that hung is gone", || !runs(*before.first().unwrap()));
    site.gateway.process.finish();
}

#[test]
fn a_program_that_cannot_start_is_told_with_its_last_words() {
    let site = Site::start(
        "command = [\"sh\", \"-c\", \"echo no coffee left >&2; exit 3\"]\nmin = 1\n",
        "[gate]\npatience = \"1s\"",
    );
    site.gateway.process.wait_err("no coffee left");
    site.gateway.process.wait_err("exit code 3");
    let (status, page) = get(site.gateway.clients, "/");
    assert_eq!(status, 503, "{page}");
    site.gateway.process.finish();
}

#[test]
fn nothing_is_left_of_a_gateway_that_is_killed() {
    let site = Site::start(&php(3), "");
    let workers = site.all(3);
    site.gateway.process.signal(Signal::KILL);
    until("its workers end", || !workers.iter().copied().any(runs));
    assert!(!site.gateway.process.end().success());
}

#[test]
fn requests_that_need_no_slot_do_not_keep_visitors_out() {
    let site = Site::start(&php(4), "");
    fs::create_dir(site.folder.path().join(".well-known")).unwrap();
    file(&site.folder, ".well-known/slow.php", PAGE);
    site.all(4);
    let clients = site.gateway.clients;
    let _asked: Vec<_> = (0..12)
        .map(|_| std::thread::spawn(move || try_get(clients, "/.well-known/slow.php?ms=20000")))
        .collect();
    let has_half = || site.state()["pools"][0]["busy"] == 2;
    until("they have their half of the workers", has_half);
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(get(clients, "/?ms=5").0, 200);
    }
    assert!(has_half() && begun.elapsed() < Duration::from_secs(15), "they have them still");
}

#[test]
fn a_command_alone_is_enough_to_try_it() {
    let folder = folder();
    let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--admin", "off", "--learned", "none"];
    if suimon_process::user_id() == 0 {
        args.extend(["--user", "nobody"]);
    }
    args.extend(["--", "php-cgi", "-d", "cgi.fix_pathinfo=0"]);
    let mut command = common::suimon(&args);
    command.current_dir(folder.path());
    let process = common::Running::of(command);
    let clients = common::address_in(&process.wait_out("  clients "));
    until("it answers", || matches!(try_get(clients, "/index.php"), Ok((200, _))));
    process.finish();
}

#[test]
fn what_keeps_a_pool_from_working_is_found_before_the_start() {
    let folder = folder();
    for (pool, words) in [
        ("command = [\"/srv/nowhere/php-cgi\"]", "/srv/nowhere/php-cgi is not there"),
        ("command = [\"/etc/passwd\"]", "/etc/passwd is not executable"),
        ("command = [\"php-cgi\"]\ndirectory = \"/srv/nowhere\"", "working folder"),
        ("command = [\"php-cgi\"]\nlisten = \"socket\"", "{socket} must be in an argument"),
        ("command = [\"php-cgi\"]\nmin = 9\nmax = 3", "at most pool[0].max (3)"),
        ("command = []", "name the program"),
    ] {
        let ran = run(&["check", &settings(&folder, pool, "")]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.out.contains(words), "{ran:?}");
    }
    let unknown = settings(&folder, "command = [\"php-cgi\"]", "");
    let text = fs::read_to_string(&unknown).unwrap().replace("user = \"nobody\"\n", "");
    let ran = run(&["check", &file(&folder, "user.toml", &(text + "user = \"nobody-here\"\n"))]);
    assert!(ran.out.contains("a user of this machine"), "{ran:?}");
    let ran = run(&["check", &settings(&folder, &php(1), "[upstream]\nnodes = [\"http://127.0.0.1:9\"]")]);
    assert!(ran.out.contains("the pool takes all requests"), "{ran:?}");
}
